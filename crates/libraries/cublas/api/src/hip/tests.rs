//! What reaches hipBLAS, looked at from its side: a library in C that has the functions of a release of ROCm (tools/data/hip)
//! and writes down each call. cuBLAS's routines are called from C too, with arguments that are all different.

#[path = "tests/by_hand.rs"]
mod of_by_hand;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;

use kit::hip::candidates;
use testkit::recorder::{BEGINNING, Callers, Param, Recorder, Signature, compile, exports, facts};

use super::library::Library;
use super::lt::{Layout, LtHandle, LtLibrary, Operands, Operation, Product};
use super::{HipCall, HipHandle, Release, by_hand, calls, convert};
use crate::*;

const RELEASES: [(&str, Release); 4] =
    [("5.2", Release::Rocm5), ("5.7", Release::Rocm5), ("6.4", Release::Rocm6), ("7.2", Release::Rocm7)];

fn c_type(ty: &str) -> &'static str {
    match ty {
        "i64" | "c_longlong" => "long long",
        "u64" | "usize" => "unsigned long",
        // hipBLASLt's descriptors are pointers as handles are.
        _ if ty.starts_with('*') || ty.ends_with("Handle_t") || ty == "hipStream_t" => "void *",
        "hipblasLtMatmulDesc_t" | "hipblasLtMatrixLayout_t" | "hipblasLtMatmulPreference_t" => "void *",
        "hipblasLtMatrixTransformDesc_t" => "void *",
        // Integers and enumerations.
        _ => "int",
    }
}

/// The handle that the recorder gives out.
const HANDLE: i64 = 0xb1a5;

/// A function's parameters in C, and what writes down these.
fn written(params: &[Param]) -> (String, impl Fn(std::ops::Range<usize>) -> String) {
    let typed: Vec<_> =
        params.iter().enumerate().map(|(i, param)| format!("{} a{i}", c_type(&param.ty))).collect();
    let said = |range: std::ops::Range<usize>| {
        range.map(|i| format!(" PUT(\" %lld\", (long long)a{i});")).collect::<String>()
    };
    (typed.join(", "), said)
}

/// hipBLAS of one release, which does nothing but write down.
fn recorder(release: &str) -> Recorder<Library> {
    let mut text = BEGINNING.to_owned();
    for (name, params) in exports("hipblas", release) {
        let (typed, said) = written(&params);
        let values = said(0..params.len());
        let made =
            if name == "hipblasCreate" { format!("*(void **)a0 = (void *){HANDLE};") } else { String::new() };
        writeln!(
            text,
            "int {name}({typed}) {{ PUT(\"{name}\");{values} PUT(\"\\n\"); {made} return answer(__func__); }}"
        )
        .unwrap();
    }
    Recorder::of("libhipblas.so", &text, Library::open)
}

fn call_of(recorder: &Recorder<Library>) -> HipCall {
    HipCall {
        library: recorder.library,
        handle: core::ptr::without_provenance_mut(HANDLE as usize),
        stream: core::ptr::null_mut(),
        pointer_mode: convert::hipblasPointerMode_t::HIPBLAS_POINTER_MODE_DEVICE,
    }
}

/// The argument for a parameter: as the program passes it, and as hipBLAS must get it. `pass` changes the enumerations.
/// `data` counts the types of data, `is_old` is hipBLAS with types of its own.
fn argument(ty: &str, place: usize, pass: usize, data: usize, is_old: bool, is_wide: bool) -> (i64, i64) {
    let at = place as i64;
    let turn = place + pass;
    let pick = |pairs: &[(i64, i64)]| pairs[turn % pairs.len()];
    match ty {
        "c_int" => (100 + at, 100 + at),
        "i64" if !is_wide => (100 + at, 100 + at),
        "i64" => (5_000_000_000 + at, 5_000_000_000 + at),
        // Strides have 64 bits in every release.
        "c_longlong" => (6_000_000_000 + at, 6_000_000_000 + at),
        _ if ty.starts_with('*') => (0x10000 + 0x100 * at, 0x10000 + 0x100 * at),
        // Numbers of the headers of CUDA 13 and of ROCm 5.2 to 7.2.
        "cublasOperation_t" => pick(&[(0, 111), (1, 112), (2, 113)]),
        "cublasFillMode_t" => pick(&[(0, 122), (1, 121)]),
        "cublasDiagType_t" => pick(&[(0, 131), (1, 132)]),
        "cublasSideMode_t" => pick(&[(0, 141), (1, 142)]),
        "cublasGemmAlgo_t" => (-1, 160),
        "cublasComputeType_t" if is_old => [(68, 151), (70, 152)][pass],
        "cublasComputeType_t" => [(68, 2), (70, 7)][pass],
        "cudaDataType" | "cudaDataType_t" => {
            // R_32F, R_64F, C_32F, R_16BF, R_16F
            let kinds = [(0, 151), (1, 152), (4, 154), (14, 168), (2, 150)];
            let (new, old) = kinds[(data + pass) % kinds.len()];
            (new, if is_old { old } else { new })
        }
        other => panic!("say in tests.rs what is passed for {other}"),
    }
}

/// The function of a release that a routine must reach: (name, whether its sizes have 64 bits).
fn expected(
    routine: &str,
    types: &[&str],
    release: &str,
    exports: &BTreeMap<String, Vec<Param>>,
) -> Option<(String, bool)> {
    let plain = routine.strip_prefix("cublas").unwrap();
    let (plain, asks_wide) = plain.strip_suffix("_64").map_or((plain, false), |plain| (plain, true));
    let mut stem = format!("hipblas{}", plain.strip_suffix("_v2").unwrap_or(plain)).replace("gemm3m", "gemm");
    if stem.ends_with("trmm") && release < "6" {
        stem += "Outofplace";
    }
    if types.iter().any(|ty| ty.starts_with("cudaDataType")) && release.starts_with('6') {
        stem += "_v2";
    }
    let wide = format!("{stem}_64");
    if asks_wide && exports.contains_key(&wide) {
        return Some((wide, true));
    }
    // An index of 64 bits cannot be written by a function with 32.
    let fits = !(asks_wide && types.contains(&"*mut i64"));
    (fits && exports.contains_key(&stem)).then_some((stem, false))
}

#[test]
fn every_generated_routine_hands_over_what_it_was_given() {
    let signatures: BTreeMap<String, Signature> = facts("cublas/cublas.json");
    let routines = calls::for_c();
    assert!(routines.len() > 400, "{}", routines.len());
    for (release, _) in RELEASES {
        let (recorder, exports) = (recorder(release), exports("hipblas", release));
        // What these do instead has a test of its own.
        let in_place = |name: &str| release == "5.2" && name.contains("trmm");
        let routines: Vec<_> = routines.iter().filter(|(name, _)| !in_place(name)).collect();
        let mut callers = Callers::default();
        let mut wanted = BTreeMap::new();
        for (name, _) in routines.iter().copied() {
            let types: Vec<&str> =
                signatures[*name].params[1..].iter().map(|param| param.ty.as_str()).collect();
            let target = expected(name, &types, release, &exports);
            let is_wide = target.as_ref().is_some_and(|(_, is_wide)| *is_wide);
            for pass in 0..2 {
                let mut data = 0;
                let (given, got): (Vec<i64>, Vec<i64>) = types
                    .iter()
                    .enumerate()
                    .map(|(place, ty)| {
                        let pair = argument(ty, place, pass, data, release < "6", is_wide);
                        data += usize::from(ty.starts_with("cudaDataType"));
                        pair
                    })
                    .unzip();
                let arguments: Vec<_> =
                    types.iter().zip(&given).map(|(ty, value)| (c_type(ty), *value)).collect();
                callers.add(&format!("{name}_{pass}"), &arguments);
                let line = target.as_ref().map(|(function, _)| {
                    let values: String = got.iter().map(|value| format!(" {value}")).collect();
                    format!("{function} {HANDLE}{values}\n")
                });
                wanted.insert((*name, pass), line);
            }
        }
        let caller = callers.compiled();
        let mut n_reached = 0;
        for (name, function) in routines.iter().copied() {
            for pass in 0..2 {
                // SAFETY: the caller's functions take the two pointers; the recorder follows no pointer.
                let status =
                    unsafe { caller.call(&format!("{name}_{pass}"), &call_of(&recorder), *function) };
                let (got, wanted) = (recorder.recorded(), &wanted[&(*name, pass)]);
                assert_eq!(got, wanted.clone().unwrap_or_default(), "{name} on ROCm {release}");
                let not_supported = cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED.0 as i32;
                assert_eq!(
                    status,
                    if wanted.is_some() { 0 } else { not_supported },
                    "{name} on ROCm {release}"
                );
                n_reached += usize::from(wanted.is_some());
            }
        }
        // Less than one in ten is missing in the oldest, nothing in the newest.
        let n_all = 2 * routines.len();
        assert!(n_reached > n_all * 8 / 10, "ROCm {release}: {n_reached} of {n_all}");
        assert!(release < "7" || n_reached == n_all, "ROCm {release}: {n_reached} of {n_all}");
    }
}

#[test]
fn the_release_is_known_by_what_the_library_exports() {
    for (name, release) in RELEASES {
        assert_eq!(recorder(name).library.release, release, "ROCm {name}");
    }
    assert!(Library::open(OsStr::new("libc.so.6")).is_err_and(|reason| reason.contains("no hipblasCreate")));
}

#[test]
fn libraries_are_looked_for_where_hip_is() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("lib")).unwrap();
    let there = dir.path().join("lib/libhipblas.so.2");
    std::fs::write(&there, "").unwrap();
    let names = ["libhipblas.so", "libhipblas.so.2"];
    assert_eq!(candidates(&names, Some(dir.path()), |_| None), [there.as_os_str()]);
    let by_variable = candidates(&names, None, |name| (name == "ROCM_PATH").then(|| dir.path().into()));
    // The loader's own search comes last.
    assert_eq!(by_variable, [there.as_os_str(), OsStr::new(names[0]), OsStr::new(names[1])]);
}

#[test]
fn numbers_are_those_of_the_headers() {
    let facts: BTreeMap<String, BTreeMap<String, u32>> = facts("hip/hipblas_numbers.json");
    assert!(convert::NUMBERS.len() > 50);
    for (enumeration, name, number) in convert::NUMBERS {
        assert_eq!(facts[*enumeration].get(*name), Some(number), "{enumeration}::{name}");
    }
}

#[test]
fn a_status_of_hipblas_is_the_one_of_cublas_that_says_the_same() {
    let recorder = recorder("6.4");
    // CUBLAS_STATUS_*: 1 NOT_INITIALIZED, 3 ALLOC_FAILED, 7 INVALID_VALUE, 8 ARCH_MISMATCH, 11 MAPPING_ERROR,
    // 13 EXECUTION_FAILED, 14 INTERNAL_ERROR, 15 NOT_SUPPORTED
    let cublas = [0, 1, 3, 7, 11, 13, 14, 15, 8, 1, 7, 14, 14];
    for (hip, cublas) in cublas.into_iter().enumerate() {
        recorder.answer_next(hip as i32);
        // SAFETY: the recorder follows no pointer.
        let answer = unsafe {
            calls::cublasSasum_v2(&call_of(&recorder), 1, core::ptr::null(), 1, core::ptr::null_mut())
        };
        assert_eq!(answer.map_or_else(|error| error.code().0, |()| 0), cublas, "hipblasStatus_t {hip}");
    }
}

#[test]
fn a_handle_is_told_what_has_changed_and_only_that() {
    let recorder = recorder("5.7");
    let handle = HipHandle::of(recorder.library).unwrap();
    assert!(recorder.recorded().starts_with("hipblasCreate "));
    use convert::hipblasPointerMode_t as Mode;
    let (host, device) = (Mode::HIPBLAS_POINTER_MODE_HOST, Mode::HIPBLAS_POINTER_MODE_DEVICE);
    let (without, with) =
        (cublasAtomicsMode_t::CUBLAS_ATOMICS_NOT_ALLOWED, cublasAtomicsMode_t::CUBLAS_ATOMICS_ALLOWED);
    let tell = |stream, pointer_mode, atomics_mode| {
        handle.tell(place(stream), pointer_mode, atomics_mode).unwrap();
        recorder.recorded()
    };
    assert_eq!(
        tell(0x5000, host, without),
        "hipblasSetStream 45477 20480\nhipblasSetPointerMode 45477 0\nhipblasSetAtomicsMode 45477 0\n"
    );
    assert_eq!(tell(0x5000, host, without), "");
    assert_eq!(tell(0x5000, device, without), "hipblasSetPointerMode 45477 1\n");
    assert_eq!(tell(0, device, with), "hipblasSetStream 45477 0\nhipblasSetAtomicsMode 45477 1\n");
    drop(handle);
    assert_eq!(recorder.recorded(), "hipblasDestroy 45477\n");
}

fn at<T>(address: usize) -> *const T {
    core::ptr::without_provenance(address)
}

fn place<T>(address: usize) -> *mut T {
    core::ptr::without_provenance_mut(address)
}

#[test]
fn a_product_in_single_precision_is_a_general_one() {
    let (n, t) = (cublasOperation_t::CUBLAS_OP_N, cublasOperation_t::CUBLAS_OP_T);
    let (half, float) = (cudaDataType::CUDA_R_16F, cudaDataType::CUDA_R_32F);
    let call = |recorder: &Recorder<Library>| {
        // SAFETY: the recorder follows no pointer.
        unsafe {
            by_hand::cublasSgemmEx(
                &call_of(recorder),
                n,
                t,
                3,
                4,
                5,
                at(16),
                at(32),
                half,
                6,
                at(48),
                half,
                7,
                at(64),
                place(80),
                float,
                8,
            )
        }
        .unwrap();
        recorder.recorded()
    };
    assert_eq!(
        call(&recorder("7.2")),
        "hipblasGemmEx_64 45477 111 112 3 4 5 16 32 2 6 48 2 7 64 80 0 8 2 160\n"
    );
    assert_eq!(
        call(&recorder("5.2")),
        "hipblasGemmEx 45477 111 112 3 4 5 16 32 150 6 48 150 7 64 80 151 8 151 160\n"
    );
}

#[test]
fn a_matrix_with_a_vector_of_mixed_types_is_a_product_with_one_row() {
    let recorder = recorder("7.2");
    let call = |trans, incx| {
        // SAFETY: the recorder follows no pointer.
        unsafe {
            by_hand::cublasHSSgemvStridedBatched(
                &call_of(&recorder),
                trans,
                3,
                4,
                at(16),
                at(32),
                5,
                60,
                at(48),
                incx,
                70,
                at(64),
                place(80),
                2,
                90,
                9,
            )
        }
        .map(|()| recorder.recorded())
    };
    // y' = x'·A' has 1 x 3 elements for a matrix of 3 x 4, and x'·A has 1 x 4.
    assert_eq!(
        call(cublasOperation_t::CUBLAS_OP_N, 7).unwrap(),
        "hipblasGemmStridedBatchedEx_64 45477 111 112 1 3 4 16 48 2 7 70 32 2 5 60 64 80 0 2 90 9 2 160\n"
    );
    assert_eq!(
        call(cublasOperation_t::CUBLAS_OP_T, 7).unwrap(),
        "hipblasGemmStridedBatchedEx_64 45477 111 111 1 4 3 16 48 2 7 70 32 2 5 60 64 80 0 2 90 9 2 160\n"
    );
    assert!(matches!(call(cublasOperation_t::CUBLAS_OP_N, -7), Err(Error::NotSupported(_))));
}

#[test]
fn groups_are_batches_one_after_the_other() {
    let recorder = recorder("6.4");
    let (n, t) = (cublasOperation_t::CUBLAS_OP_N, cublasOperation_t::CUBLAS_OP_T);
    let (factors, counts) = ([1f64, 2., 3.], [2, 0, 3]);
    // SAFETY: what belongs to the groups is here; the recorder follows no other pointer.
    unsafe {
        by_hand::cublasDgemmGroupedBatched(
            &call_of(&recorder),
            [n, n, t].as_ptr(),
            [t, t, n].as_ptr(),
            [1, 2, 3].as_ptr(),
            [4, 5, 6].as_ptr(),
            [7, 8, 9].as_ptr(),
            factors.as_ptr(),
            at(0x1000),
            [10, 11, 12].as_ptr(),
            at(0x2000),
            [13, 14, 15].as_ptr(),
            factors.as_ptr(),
            at(0x3000),
            [16, 17, 18].as_ptr(),
            3,
            counts.as_ptr(),
        )
    }
    .unwrap();
    let (first, third) = (factors.as_ptr().addr(), factors.as_ptr().addr() + 16);
    // The second group is empty; the third one's matrices follow the first one's two.
    assert_eq!(
        recorder.recorded(),
        format!(
            "hipblasGemmBatchedEx_v2_64 45477 111 112 1 4 7 {first} 4096 1 10 8192 1 13 {first} 12288 1 16 2 7 160\n\
             hipblasGemmBatchedEx_v2_64 45477 112 111 3 6 9 {third} 4112 1 12 8208 1 15 {third} 12304 1 18 3 7 160\n"
        )
    );
}

#[test]
fn a_triangle_is_unpacked_column_by_column() {
    let recorder = recorder("7.2");
    // SAFETY: the recorder follows no pointer.
    unsafe {
        by_hand::cublasDtpttr(
            &call_of(&recorder),
            cublasFillMode_t::CUBLAS_FILL_MODE_UPPER,
            2,
            at(64),
            place(1024),
            4,
        )
    }
    .unwrap();
    // Doubles: a12 is the second packed one, and stands at the fifth place of the matrix.
    assert_eq!(
        recorder.recorded(),
        "hipblasDcopy_64 45477 1 64 1 1024 1\nhipblasDcopy_64 45477 2 72 1 1056 1\n"
    );
}

#[test]
fn trmm_of_the_oldest_hipblas_works_on_a_copy_of_b_in_place() {
    let recorder = recorder("5.2");
    let (left, upper) = (cublasSideMode_t::CUBLAS_SIDE_LEFT, cublasFillMode_t::CUBLAS_FILL_MODE_UPPER);
    let (same, unit) = (cublasOperation_t::CUBLAS_OP_N, cublasDiagType_t::CUBLAS_DIAG_UNIT);
    let call = |c: usize, ldc| {
        let hip = call_of(&recorder);
        // SAFETY: the recorder follows no pointer.
        unsafe {
            calls::cublasStrmm_v2(
                &hip,
                left,
                upper,
                same,
                unit,
                3,
                4,
                at(16),
                at(32),
                5,
                at(48),
                6,
                place(c),
                ldc,
            )
        }
        .unwrap();
        recorder.recorded()
    };
    let product = |b, ldb| format!("hipblasStrmm 45477 141 121 111 132 3 4 16 32 5 {b} {ldb}\n");
    assert_eq!(call(48, 6), product(48, 6));
    let said = call(64, 7);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!((lines[0], lines[2]), ("hipblasSetPointerMode 45477 0", "hipblasSetPointerMode 45477 1"));
    assert!(
        lines[1].starts_with("hipblasSgeam 45477 111 111 3 4 ") && lines[1].ends_with(" 48 6 64 7"),
        "{said}"
    );
    assert_eq!(lines[3..], [product(64, 7).trim()]);
}

#[test]
fn an_index_of_64_bits_comes_from_one_of_32_where_the_host_gets_it() {
    let recorder = recorder("5.7");
    let host = convert::hipblasPointerMode_t::HIPBLAS_POINTER_MODE_HOST;
    let hip = HipCall { pointer_mode: host, ..call_of(&recorder) };
    let mut index = -1;
    // SAFETY: the recorder follows no pointer, and leaves the result as it is.
    unsafe { calls::cublasIdamax_v2_64(&hip, 9, at(64), 2, &mut index) }.unwrap();
    assert_eq!(index, 0);
    assert!(recorder.recorded().starts_with("hipblasIdamax 45477 9 64 2 "));
    // In device memory there is nobody to widen it.
    // SAFETY: as above.
    let answer = unsafe { calls::cublasIdamax_v2_64(&call_of(&recorder), 9, at(64), 2, &mut index) };
    assert!(matches!(answer, Err(Error::NotSupported(_))));
}

#[test]
fn an_inverse_is_made_from_a_copy_with_our_factors_on_the_host() {
    let recorder = recorder("5.7");
    // Two matrices of 3 x 3 doubles: 144 bytes of copies, two pointers, six pivots.
    let parts = by_hand::inverse::Parts::at(0x1000, 3, 2, 8);
    assert_eq!(parts, by_hand::inverse::Parts::of(0x1000, 0x1000 + 144, 0x1000 + 160, 184));
    // SAFETY: the recorder follows no pointer.
    unsafe { by_hand::inverse::enqueue_d(&call_of(&recorder), parts, 3, at(64), 4, at(80), 5, place(96), 2) }
        .unwrap();
    let said = recorder.recorded();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "hipblasSetPointerMode 45477 0");
    // The factors are on our stack; C is the copies, with a leading dimension of their own.
    let words: Vec<&str> = lines[1].split(' ').collect();
    assert_eq!(words[..6], ["hipblasDgeamBatched", "45477", "111", "111", "3", "3"]);
    assert_eq!((&words[7..9], &words[10..]), (&["64", "4"][..], &["64", "4", "4240", "3", "2"][..]));
    assert_eq!(
        lines[2..],
        [
            "hipblasSetPointerMode 45477 1",
            "hipblasDgetrfBatched 45477 3 4240 3 4256 96 2",
            "hipblasDgetriBatched 45477 3 4240 3 4256 80 5 96 2",
        ]
    );
}

#[test]
fn level_1_of_any_type_is_that_of_the_type_or_refused() {
    let recorder = recorder("7.2");
    let sum = |data, result| {
        // SAFETY: the recorder follows no pointer.
        unsafe { by_hand::cublasAsumEx(&call_of(&recorder), 9, at(64), data, 2, place(80), result, result) }
            .map(|()| recorder.recorded())
    };
    let (float, half) = (cudaDataType::CUDA_R_32F, cudaDataType::CUDA_R_16F);
    assert_eq!(sum(cudaDataType::CUDA_C_32F, float).unwrap(), "hipblasScasum_64 45477 9 64 2 80\n");
    assert_eq!(sum(float, float).unwrap(), "hipblasSasum_64 45477 9 64 2 80\n");
    assert!(matches!(sum(half, float), Err(Error::NotSupported(_))));
    assert!(matches!(sum(half, half), Err(Error::NotSupported(_))));
}

/// hipBLASLt of one release: it gives out numbers as handles, writes down what attributes hold, and knows two algorithms.
fn lt_text(release: &str) -> String {
    let mut text =
        BEGINNING.to_owned() + "#include <stdint.h>\n#include <string.h>\nstatic long long next = 100;\n";
    for (name, params) in exports("hipblaslt", release) {
        let (typed, said) = written(&params);
        let body = match name.as_str() {
            // What the place holds before is nobody's affair.
            name if name.ends_with("Create") => {
                format!("{} *(void **)a0 = (void *)++next;", said(1..params.len()))
            }
            name if name.ends_with("SetAttribute") => format!(
                "{} PUT(\" %d %lld\", (int)a3, a3 == 8 ? *(long long *)a2 : *(int32_t *)a2);",
                said(0..2)
            ),
            "hipblasLtMatmulAlgoGetHeuristic" => format!(
                "{} *(int *)a9 = a7 < 2 ? a7 : 2; for (int i = 0; i < *(int *)a9; i++) {{ char *r = (char *)a8 + 56 * i; \
                 memset(r, 7 + i, 24); *(int64_t *)(r + 24) = 100 + i; *(int *)(r + 32) = 0; *(float *)(r + 36) = 0.5f; }}",
                said(0..8)
            ),
            // The algorithm is one of the two.
            "hipblasLtMatmul" => format!("{} PUT(\" %d\", *(char *)a12);{}", said(0..12), said(13..16)),
            _ => said(0..params.len()),
        };
        writeln!(
            text,
            "int {name}({typed}) {{ PUT(\"{name}\");{body} PUT(\"\\n\"); return answer(__func__); }}"
        )
        .unwrap();
    }
    text
}

fn lt_recorder(release: &str) -> Recorder<LtLibrary> {
    Recorder::of("libhipblaslt.so", &lt_text(release), LtLibrary::open)
}

fn lines(recorder: &Recorder<LtLibrary>) -> Vec<String> {
    recorder.recorded().lines().map(str::to_owned).collect()
}

/// cublasLtMatmul, cublasLtMatmulAlgoGetHeuristic and cublasLtMatmulAlgoCheck; with a stream
/// (cublasLtMatmulAlgoGetHeuristicForStream, cublasLtMatmulAlgoCheckForStream) they are the same.
#[test]
fn a_product_of_cublaslt_is_told_in_the_numbers_of_hipblaslt() {
    for release in ["6.3", "7.2"] {
        let recorder = lt_recorder(release);
        let handle = LtHandle::of(recorder.library).unwrap();
        assert_eq!(lines(&recorder), ["hipblasLtCreate"]);

        let word = u32::to_ne_bytes;
        let bias = 0xb1a50u64.to_ne_bytes();
        // CUBLASLT_MATMUL_DESC_: TRANSA 3, TRANSC 5, EPILOGUE 7 (GELU_BIAS is 36), BIAS_POINTER 8, FAST_ACCUM 25,
        // BIAS_DATA_TYPE 26 (-1 is a new descriptor's)
        let attributes: Vec<(u32, Vec<u8>)> = vec![
            (3, word(1).to_vec()),
            (5, word(0).to_vec()),
            (7, word(36).to_vec()),
            (8, bias.to_vec()),
            (25, vec![1]),
            (26, word(u32::MAX).to_vec()),
        ];
        let attributes: Vec<(u32, &[u8])> =
            attributes.iter().map(|(key, bytes)| (*key, &bytes[..])).collect();
        // CUBLASLT_MATRIX_LAYOUT_: ORDER 1, BATCH_COUNT 5, STRIDED_BATCH_OFFSET 6
        let (row, batch, stride) = (word(1), word(9), 4_000_000_000_000i64.to_ne_bytes());
        let of_a: [(u32, &[u8]); 3] = [(1, &row), (5, &batch), (6, &stride)];
        let layout = |data, rows, attributes| Layout { data, rows, cols: 20, ld: 30, attributes };
        let half = cudaDataType::CUDA_R_16F;
        let product = Product {
            operation: Operation {
                compute: cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
                scale: cudaDataType::CUDA_R_32F,
                attributes: &attributes,
            },
            a: layout(half, 11, &of_a),
            b: layout(cudaDataType::CUDA_R_8F_E4M3, 12, &[]),
            c: layout(half, 13, &[]),
            d: layout(half, 14, &[]),
        };
        let made = [
            "hipblasLtMatmulDescCreate 2 0",
            "hipblasLtMatmulDescSetAttribute 102 0 4 112",
            "hipblasLtMatmulDescSetAttribute 102 2 4 36",
            "hipblasLtMatmulDescSetAttribute 102 3 8 727632",
            "hipblasLtMatrixLayoutCreate 2 11 20 30",
            "hipblasLtMatrixLayoutSetAttribute 103 3 4 1",
            "hipblasLtMatrixLayoutSetAttribute 103 0 4 9",
            "hipblasLtMatrixLayoutSetAttribute 103 1 8 4000000000000",
            "hipblasLtMatrixLayoutCreate 28 12 20 30",
            "hipblasLtMatrixLayoutCreate 2 13 20 30",
            "hipblasLtMatrixLayoutCreate 2 14 20 30",
        ];
        let mut results = [cublasLtMatmulHeuristicResult_t::default(); 3];
        let bytes = 4096u64.to_ne_bytes();
        // CUBLASLT_MATMUL_PREF_: MAX_WORKSPACE_BYTES 1, MIN_ALIGNMENT_A_BYTES 5
        let n_found = handle.heuristics(&product, &[(1, &bytes), (5, &word(256))], &mut results).unwrap();
        assert_eq!(n_found, 2);
        assert_eq!(
            (results[0].workspaceSize, results[1].workspaceSize, results[1].wavesCount),
            (100, 101, 0.5)
        );
        assert_eq!(results[1].state, cublasStatus_t::CUBLAS_STATUS_SUCCESS);
        let said = lines(&recorder);
        assert_eq!(said[..11], made);
        assert_eq!(
            said[11..14],
            [
                "hipblasLtMatmulPreferenceCreate",
                "hipblasLtMatmulPreferenceSetAttribute 107 1 8 4096",
                "hipblasLtMatmulAlgoGetHeuristic 101 102 103 104 105 106 107 3",
            ]
        );
        // What was made is destroyed: a preference, a product, four layouts.
        assert_eq!(said[14..].iter().filter(|line| line.contains("Destroy ")).count(), 6);
        assert_eq!(said.len(), 20);

        let at = Operands { alpha: at(16), a: at(32), b: at(48), beta: at(64), c: at(80), d: place(96) };
        // SAFETY: the recorder follows none of these pointers.
        unsafe { handle.matmul_on(&product, &at, Some(&results[1].algo), place(112), 4096, place(128)) }
            .unwrap();
        let said = lines(&recorder);
        // The handles count on: 108 is the product, 109 to 112 are the layouts. The second algorithm's bytes are eights.
        assert_eq!(said[11], "hipblasLtMatmul 101 108 16 32 109 48 110 64 80 111 96 112 8 112 4096 128");

        // Without an algorithm the first that fits the workspace is taken.
        // SAFETY: as above.
        unsafe { handle.matmul_on(&product, &at, None, place(112), 512, place(128)) }.unwrap();
        let said = lines(&recorder);
        assert_eq!(said[12], "hipblasLtMatmulPreferenceSetAttribute 118 1 8 512");
        assert!(
            said.iter()
                .any(|line| line.starts_with("hipblasLtMatmul 101 113 ") && line.ends_with(" 7 112 512 128"))
        );

        // An algorithm that the heuristics name for the product is right, and no other.
        assert_eq!(handle.check(&product, &results[1].algo).unwrap().workspaceSize, 101);
        let mut other = results[1].algo;
        other.data[0] += 1;
        assert!(matches!(handle.check(&product, &other), Err(Error::NotSupported(_))));

        // CUBLASLT_EPILOGUE_RELU_AUX is 130; its mask is cuBLASLt's own. FILL_MODE (6): 0 is the lower triangle.
        for refused in [(7, word(130)), (6, word(0)), (2, word(2)), (10, word(5))] {
            let attributes: [(u32, &[u8]); 1] = [(refused.0, &refused.1)];
            let operation = Operation { attributes: &attributes, ..product.operation };
            let answer = handle.heuristics(&Product { operation, ..product }, &[], &mut results);
            assert!(matches!(answer, Err(Error::NotSupported(_))), "{refused:?}");
        }
    }
    // ROCm 5.7's has other numbers.
    let dir = tempfile::tempdir().unwrap();
    let old = compile(dir.path(), "libhipblaslt.so", &lt_text("5.7"));
    assert!(
        LtLibrary::open(old.as_os_str()).is_err_and(|reason| reason.contains("hipblasLtMatrixTransform"))
    );
}
