//! What reaches hipSOLVER, looked at from its side: a library in C that has the functions of a release of ROCm (tools/data/hip) and writes
//! down each call. cuSOLVER's routines are called from C too, with arguments that are all different.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::sync::Arc;

use testkit::recorder::{BEGINNING, Callers, Param, Recorder, Signature, exports, facts};

use super::library::Library;
use super::{HipCall, HipHandle, by_hand, calls, convert};
use crate::api::jacobi;
use crate::handle::{Emulation, State};
use crate::types::*;
use crate::{Error, Result};

const RELEASES: [&str; 5] = ["5.2", "5.7", "6.4", "7.2", "10.0"];

fn c_type(ty: &str) -> &'static str {
    match ty {
        "f32" => "float",
        "f64" => "double",
        "i64" => "long long",
        "usize" => "unsigned long",
        "c_schar" => "signed char",
        "c_int" | "cudaDataType" | "hipDataType" | "hipStream_t" if ty != "hipStream_t" => "int",
        "hipStream_t" => "void *",
        _ if ty.starts_with('*') || ty.ends_with("Handle_t") || ty.ends_with("Info_t") => "void *",
        _ if ty.ends_with("Params_t") => "void *",
        // Enumerations.
        _ => "int",
    }
}

/// What the recorder gives out: a handle, parameters, objects of iterations.
const MADE: [(&str, i64); 4] = [
    ("hipsolverDnCreate", 0x501),
    ("hipsolverDnCreateParams", 0x502),
    ("hipsolverDnCreateSyevjInfo", 0x503),
    ("hipsolverDnCreateGesvdjInfo", 0x504),
];
const HANDLE: i64 = MADE[0].1;

/// What it says work areas have.
const AREA: i64 = 1000;

/// hipSOLVER of one release, which does nothing but write down.
fn recorder(release: &str) -> Recorder<Library> {
    let mut text = BEGINNING.to_owned();
    for (name, params) in exports("hipsolver", release) {
        let typed: Vec<_> =
            params.iter().enumerate().map(|(i, param)| format!("{} a{i}", c_type(&param.ty))).collect();
        let values: String =
            (0..params.len()).map(|i| format!(" PUT(\" %lld\", (long long)a{i});")).collect();
        let made = MADE.iter().find(|(create, _)| *create == name);
        let mut does = made.map_or(String::new(), |(_, value)| format!("*(void **)a0 = (void *){value};"));
        let last = params.len() - 1;
        if name.ends_with("_bufferSize") && params[last].ty == "*mut c_int" {
            // Addresses of tests that are looked at alone are small.
            write!(does, "if ((long long)a{last} > 1 << 20) *(int *)a{last} = {AREA};").unwrap();
        }
        let typed = typed.join(", ");
        writeln!(
            text,
            "int {name}({typed}) {{ PUT(\"{name}\");{values} PUT(\"\\n\"); {does} return answer(__func__); }}"
        )
        .unwrap();
    }
    Recorder::of("libhipsolver.so", &text, Library::open)
}

fn call_of(recorder: &Recorder<Library>) -> HipCall {
    let handle = Arc::new(HipHandle::of(recorder.library).unwrap());
    recorder.recorded();
    HipCall { handle, stream: cudaStream_t::default() }
}

fn syevj_info() -> syevjInfo_t {
    let mut info: syevjInfo_t = ptr::null_mut();
    jacobi::cusolverDnCreateSyevjInfo((&mut info).into()).unwrap();
    info
}

fn gesvdj_info() -> gesvdjInfo_t {
    let mut info: gesvdjInfo_t = ptr::null_mut();
    jacobi::cusolverDnCreateGesvdjInfo((&mut info).into()).unwrap();
    info
}

/// The argument for a parameter: as the program passes it, and as hipSOLVER must get it. `pass` changes the enumerations.
fn argument(param: &Param, place: usize, pass: usize, iter: i64) -> (i64, i64) {
    let at = place as i64;
    let pick = |pairs: &[(i64, i64)]| pairs[(place + pass) % pairs.len()];
    match param.ty.as_str() {
        _ if param.name == "iter" => (iter, iter),
        // Norms that the program asks for are not hipSOLVER's.
        _ if param.name == "h_R_nrmF" => (0, 0),
        "c_schar" => (60 + at, 60 + at),
        "f32" | "f64" | "c_int" => (100 + at, 100 + at),
        "i64" | "usize" => (5_000_000_000 + at, 5_000_000_000 + at),
        ty if ty.starts_with('*') => (0x10000 + 0x100 * at, 0x10000 + 0x100 * at),
        // Numbers of the headers of CUDA 13 and of ROCm 5.2 to 7.2.
        "cublasOperation_t" => pick(&[(0, 111), (1, 112), (2, 113)]),
        "cublasFillMode_t" => pick(&[(0, 122), (1, 121)]),
        "cublasSideMode_t" => pick(&[(0, 141), (1, 142)]),
        "cusolverEigMode_t" => pick(&[(0, 201), (1, 202)]),
        "cusolverEigType_t" => pick(&[(1, 211), (2, 212), (3, 213)]),
        "cusolverEigRange_t" => pick(&[(1001, 221), (1002, 223), (1003, 222)]),
        // R_32F, R_64F, C_32F
        "cudaDataType" => pick(&[(0, 0), (1, 1), (4, 4)]),
        "cusolverDnParams_t" => (0, MADE[1].1),
        "syevjInfo_t" => (syevj_info().addr() as i64, MADE[2].1),
        "gesvdjInfo_t" => (gesvdj_info().addr() as i64, MADE[3].1),
        other => panic!("say in tests.rs what is passed for {other}"),
    }
}

/// The function that a routine must reach.
fn expected(routine: &str) -> String {
    let rest = routine.strip_prefix("cusolverDn").unwrap();
    let letters: Vec<char> = rest.chars().collect();
    match rest {
        "Getrf" | "Getrf_bufferSize" => rest.replace("Get", "hipsolverDnXget"),
        "Getrs" => "hipsolverDnXgetrs".to_owned(),
        "Geqrf" | "Geqrf_bufferSize" => rest.replace("Geq", "hipsolverDnXgeq"),
        "Potrf" | "Potrf_bufferSize" | "Potrs" => rest.replace("Pot", "hipsolverDnXpot"),
        _ if letters[0].is_uppercase() && letters[1].is_uppercase() => {
            format!("hipsolverDn{}{}{}", letters[0], letters[0], &rest[2..])
        }
        _ => format!("hipsolverDn{rest}"),
    }
}

#[test]
fn every_generated_routine_hands_over_what_it_was_given() {
    let signatures: BTreeMap<String, Signature> = facts("cusolver/cusolver.json");
    // What an iteration came to is told by another test; it waits for a driver's stream.
    let routines: Vec<_> = calls::for_c().into_iter().filter(|(name, _)| !name.contains("jGet")).collect();
    assert!(routines.len() > 250, "{}", routines.len());
    for release in RELEASES {
        let (recorder, exports) = (recorder(release), exports("hipsolver", release));
        let mut iterations: c_int = 7;
        let iter = ptr::from_mut(&mut iterations).expose_provenance() as i64;
        let mut callers = Callers::default();
        let mut wanted = BTreeMap::new();
        for (name, _) in &routines {
            let params = &signatures[*name].params[1..];
            let function = expected(name);
            for pass in 0..3 {
                let (given, mut got): (Vec<i64>, Vec<i64>) =
                    params.iter().enumerate().map(|(i, param)| argument(param, i, pass, iter)).unzip();
                let arguments: Vec<_> =
                    params.iter().zip(&given).map(|(param, value)| (c_type(&param.ty), *value)).collect();
                callers.add(&format!("{name}_{pass}"), &arguments);
                // The first generic functions have no work area on the host.
                if name.starts_with("cusolverDnGe") || name.starts_with("cusolverDnPot") {
                    let size = if name.ends_with("_bufferSize") { 1 } else { 2 };
                    match name.ends_with("rs") {
                        true => {}
                        false if size == 1 => got.push(-1),
                        false => {
                            let info = got.pop().unwrap();
                            got.extend([0, 0, info]);
                        }
                    }
                }
                wanted.insert(
                    (*name, pass),
                    exports.contains_key(&function).then_some((function.clone(), got)),
                );
            }
        }
        let caller = callers.compiled();
        let mut n_reached = 0;
        for (name, function) in &routines {
            for pass in 0..3 {
                let wanted = &wanted[&(*name, pass)];
                // Where a release lacks these, functions of one type do the work.
                if wanted.is_none() && ["Xpotr", "Xgeqrf", "Xsyevd"].iter().any(|part| name.contains(part)) {
                    continue;
                }
                let hip = call_of(&recorder);
                // SAFETY: the caller's functions take the two pointers; the recorder follows no pointer of these.
                let status = unsafe { caller.call(&format!("{name}_{pass}"), &hip, *function) };
                // Parameters and objects are made ready before.
                let recorded = recorder.recorded();
                let ready = ["CreateParams", "Info", "jSet"];
                let lines: Vec<_> =
                    recorded.lines().filter(|l| !ready.iter().any(|r| l.contains(r))).collect();
                let Some((function, got)) = wanted else {
                    assert_eq!((lines, status), (vec![], -1), "{name} on ROCm {release}");
                    continue;
                };
                assert_eq!((lines.len(), status), (1, 0), "{name} on ROCm {release}: {recorded}");
                let mut words = lines[0].split(' ');
                assert_eq!(words.next(), Some(function.as_str()), "{name} on ROCm {release}");
                let values: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
                assert_eq!(values[0], HANDLE, "{name} on ROCm {release}");
                assert_eq!(values.len() - 1, got.len(), "{name} on ROCm {release}");
                let same =
                    values[1..].iter().zip(got).all(|(value, wanted)| *wanted == -1 || value == wanted);
                assert!(same, "{name} on ROCm {release}: {values:?}, not {got:?}");
                n_reached += 1;
            }
        }
        assert_eq!(iterations, 0, "solvers that refine say that there were no iterations");
        let n_all = 3 * routines.len();
        assert!(n_reached > n_all * 8 / 10, "ROCm {release}: {n_reached} of {n_all}");
        assert!(release != "10.0" || n_reached == n_all, "ROCm {release}: {n_reached} of {n_all}");
    }
}

#[test]
fn numbers_are_those_of_every_release() {
    let facts: BTreeMap<String, BTreeMap<String, BTreeMap<String, u32>>> =
        facts("hip/hipsolver_numbers.json");
    let number = |enumeration: &str, name: &str| {
        let values = &facts[enumeration][name];
        assert_eq!(values.len(), 1, "{name} differs between releases");
        *values.values().next().unwrap()
    };
    let of = |result: Result<u32>| result.unwrap();
    for (enumeration, name, ours) in [
        ("hipsolverFillMode_t", "HIPSOLVER_FILL_MODE_UPPER", of(convert::fill_mode(cublasFillMode_t(1)))),
        ("hipsolverFillMode_t", "HIPSOLVER_FILL_MODE_LOWER", of(convert::fill_mode(cublasFillMode_t(0)))),
        ("hipsolverOperation_t", "HIPSOLVER_OP_N", of(convert::operation(cublasOperation_t(0)))),
        ("hipsolverOperation_t", "HIPSOLVER_OP_T", of(convert::operation(cublasOperation_t(1)))),
        ("hipsolverOperation_t", "HIPSOLVER_OP_C", of(convert::operation(cublasOperation_t(2)))),
        ("hipsolverSideMode_t", "HIPSOLVER_SIDE_LEFT", of(convert::side_mode(cublasSideMode_t(0)))),
        ("hipsolverSideMode_t", "HIPSOLVER_SIDE_RIGHT", of(convert::side_mode(cublasSideMode_t(1)))),
        ("hipsolverEigMode_t", "HIPSOLVER_EIG_MODE_NOVECTOR", of(convert::eig_mode(cusolverEigMode_t(0)))),
        ("hipsolverEigMode_t", "HIPSOLVER_EIG_MODE_VECTOR", of(convert::eig_mode(cusolverEigMode_t(1)))),
        ("hipsolverEigType_t", "HIPSOLVER_EIG_TYPE_1", of(convert::eig_type(cusolverEigType_t(1)))),
        ("hipsolverEigType_t", "HIPSOLVER_EIG_TYPE_2", of(convert::eig_type(cusolverEigType_t(2)))),
        ("hipsolverEigType_t", "HIPSOLVER_EIG_TYPE_3", of(convert::eig_type(cusolverEigType_t(3)))),
        ("hipsolverEigRange_t", "HIPSOLVER_EIG_RANGE_ALL", of(convert::eig_range(cusolverEigRange_t(1001)))),
        ("hipsolverEigRange_t", "HIPSOLVER_EIG_RANGE_I", of(convert::eig_range(cusolverEigRange_t(1002)))),
        ("hipsolverEigRange_t", "HIPSOLVER_EIG_RANGE_V", of(convert::eig_range(cusolverEigRange_t(1003)))),
        (
            "hipsolverDeterministicMode_t",
            "HIPSOLVER_DETERMINISTIC_RESULTS",
            of(convert::deterministic_mode(cusolverDeterministicMode_t(1))),
        ),
        (
            "hipsolverDeterministicMode_t",
            "HIPSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS",
            of(convert::deterministic_mode(cusolverDeterministicMode_t(2))),
        ),
    ] {
        assert_eq!(number(enumeration, name), ours, "{name}");
    }
    // What neither cuSOLVER nor hipSOLVER has.
    assert!(matches!(convert::fill_mode(cublasFillMode_t(2)), Err(Error::InvalidValue(_))));
    assert!(matches!(convert::operation(cublasOperation_t(3)), Err(Error::InvalidValue(_))));
    // CUSOLVER_STATUS_*, by the names of hipSOLVER's.
    for (name, ours) in [
        ("SUCCESS", 0),
        ("NOT_INITIALIZED", 1),
        ("ALLOC_FAILED", 2),
        ("INVALID_VALUE", 3),
        ("MAPPING_ERROR", 5),
        ("EXECUTION_FAILED", 6),
        ("INTERNAL_ERROR", 7),
        ("NOT_SUPPORTED", 9),
        ("ARCH_MISMATCH", 4),
        ("HANDLE_IS_NULLPTR", 1),
        ("INVALID_ENUM", 3),
        ("UNKNOWN", 7),
        ("ZERO_PIVOT", 10),
        ("MATRIX_TYPE_NOT_SUPPORTED", 8),
    ] {
        let theirs = number("hipsolverStatus_t", &format!("HIPSOLVER_STATUS_{name}"));
        assert_eq!(convert::status(theirs as c_int).0, ours, "{name}");
    }
    assert_eq!(facts["hipsolverStatus_t"].len(), 14);
}

#[test]
fn an_answer_of_hipsolver_is_the_status_that_a_program_gets() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    for (theirs, ours) in [(0, 0), (2, 2), (5, 6), (7, 9), (12, 10), (99, 7)] {
        recorder.answer_next(theirs);
        let null = ptr::null_mut();
        // SAFETY: the recorder follows no pointer.
        let answer = unsafe {
            calls::cusolverDnSpotrf(&hip, cublasFillMode_t(0), 1, null, 1, null, 0, ptr::null_mut())
        };
        assert_eq!(answer.map_or_else(|error| error.code().0, |_| 0), ours, "hipsolverStatus_t {theirs}");
    }
}

#[test]
fn what_hipsolver_means_otherwise_is_our_own_code_s() {
    let recorder = recorder("7.2");
    let hip = call_of(&recorder);
    let (a, info) = (ptr::without_provenance_mut::<f32>(0x1000), ptr::without_provenance_mut(0x2000));
    // SAFETY: the recorder follows no pointer.
    let done = unsafe {
        [
            calls::cusolverDnSgetrs(&hip, cublasOperation_t(0), 2, 1, a, 2, ptr::null(), a, 2, info),
            calls::cusolverDnSsytrf(&hip, cublasFillMode_t(0), 2, a, 2, ptr::null_mut(), a, 8, info),
        ]
    };
    assert!(done.iter().all(|done| matches!(done, Ok(false))), "{done:?}");
    assert_eq!(recorder.recorded(), "");
}

#[test]
fn a_handle_is_told_what_has_changed_and_only_that() {
    let mut state = State {
        stream: cudaStream_t::default(),
        determinism: cusolverDeterministicMode_t::CUSOLVER_DETERMINISTIC_RESULTS,
        math: cusolverMathMode_t::CUSOLVER_DEFAULT_MATH,
        emulation: Emulation::default(),
    };
    for release in ["5.2", "7.2"] {
        let recorder = recorder(release);
        let handle = HipHandle::of(recorder.library).unwrap();
        assert!(recorder.recorded().starts_with("hipsolverDnCreate "));
        // Results are the same again by default, which hipSOLVER's are not.
        let mode = |mode: i64| match release {
            "5.2" => String::new(),
            _ => format!("hipsolverDnSetDeterministicMode {HANDLE} {mode}\n"),
        };
        state.determinism = cusolverDeterministicMode_t::CUSOLVER_DETERMINISTIC_RESULTS;
        handle.tell(ptr::null_mut(), &state).unwrap();
        assert_eq!(recorder.recorded(), mode(241));
        let stream = ptr::without_provenance_mut(0x77);
        state.determinism = cusolverDeterministicMode_t::CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS;
        handle.tell(stream, &state).unwrap();
        assert_eq!(recorder.recorded(), format!("hipsolverDnSetStream {HANDLE} {}\n{}", 0x77, mode(242)));
        handle.tell(stream, &state).unwrap();
        assert_eq!(recorder.recorded(), "");
        drop(handle);
        assert_eq!(recorder.recorded(), format!("hipsolverDnDestroy {HANDLE}\n"));
    }
}

#[test]
fn an_iteration_s_object_says_what_the_program_said() {
    let recorder = recorder("5.7");
    let hip = call_of(&recorder);
    let info = gesvdj_info();
    let raw = hip.gesvdj_info(info).unwrap();
    assert_eq!(raw.addr() as i64, MADE[3].1);
    let lines = recorder.recorded();
    // cuSOLVER's: 100 sweeps, sorted, and a tolerance that is the type's own.
    let set =
        format!("hipsolverDnXgesvdjSetMaxSweeps {0} 100\nhipsolverDnXgesvdjSetSortEig {0} 1\n", MADE[3].1);
    assert!(lines.starts_with("hipsolverDnCreateGesvdjInfo ") && lines.ends_with(&set), "{lines}");
    jacobi::cusolverDnXgesvdjSetTolerance(info, 3.0).unwrap();
    jacobi::cusolverDnXgesvdjSetMaxSweeps(info, 15).unwrap();
    jacobi::cusolverDnXgesvdjSetSortEig(info, 0).unwrap();
    hip.gesvdj_info(info).unwrap();
    let set = format!(
        "hipsolverDnXgesvdjSetTolerance {0} 3\nhipsolverDnXgesvdjSetMaxSweeps {0} 15\nhipsolverDnXgesvdjSetSortEig {0} 0\n",
        MADE[3].1
    );
    assert_eq!(recorder.recorded(), set);
    jacobi::cusolverDnDestroyGesvdjInfo(info).unwrap();
    assert_eq!(recorder.recorded(), format!("hipsolverDnDestroyGesvdjInfo {}\n", MADE[3].1));
    assert!(matches!(hip.gesvdj_info(info), Err(Error::InvalidValue(_))));
}

#[test]
fn wide_calls_without_a_function_are_those_of_one_type() {
    // ROCm 5 has no function of the 64-bit API, and ROCm 10 is the first with one for eigenvalues.
    let recorder = recorder("5.7");
    let hip = call_of(&recorder);
    let (z, real) = (cudaDataType::CUDA_C_64F, cudaDataType::CUDA_R_64F);
    let at = ptr::without_provenance_mut::<c_void>;
    let (mut device, mut host) = (7, 7);
    let (vector, upper) = (cusolverEigMode_t(1), cublasFillMode_t(1));
    // SAFETY: the recorder writes the size of a work area alone.
    let done = unsafe {
        by_hand::cusolverDnXsyevd_bufferSize(
            &hip,
            ptr::null_mut(),
            vector,
            upper,
            5,
            z,
            at(0x100),
            6,
            real,
            at(0x200),
            z,
            &mut device,
            &mut host,
        )
    };
    assert!(matches!(done, Ok(true)), "{done:?}");
    // Elements there, bytes here.
    assert_eq!((device, host), (16 * AREA as usize, 0));
    let recorded = recorder.recorded();
    let wanted = format!("hipsolverDnZheevd_bufferSize {HANDLE} 202 121 5 256 6 512 ");
    assert!(recorded.starts_with(&wanted), "{recorded}");
    let info = ptr::without_provenance_mut(0x400);
    // SAFETY: the recorder follows no pointer of these.
    let done = unsafe {
        by_hand::cusolverDnXsyevd(
            &hip,
            ptr::null_mut(),
            vector,
            upper,
            5,
            z,
            at(0x100),
            6,
            real,
            at(0x200),
            z,
            at(0x300),
            device,
            ptr::null_mut(),
            0,
            info,
        )
    };
    assert!(matches!(done, Ok(true)), "{done:?}");
    assert_eq!(
        recorder.recorded(),
        format!("hipsolverDnZheevd {HANDLE} 202 121 5 256 6 512 768 {AREA} 1024\n")
    );
    // SAFETY: as above.
    let done = unsafe {
        calls::cusolverDnXpotrs(
            &hip,
            ptr::null_mut(),
            upper,
            5,
            2,
            real,
            at(0x100),
            6,
            real,
            at(0x200),
            7,
            info,
        )
    };
    assert!(matches!(done, Ok(true)), "{done:?}");
    assert_eq!(recorder.recorded(), format!("hipsolverDnDpotrs {HANDLE} 121 5 2 256 6 512 7 1024\n"));
    // SAFETY: as above.
    let done = unsafe {
        by_hand::cusolverDnXgesvd(
            &hip,
            ptr::null_mut(),
            b'S' as _,
            b'N' as _,
            1 << 31,
            1,
            z,
            at(1),
            1,
            real,
            at(2),
            z,
            at(3),
            1,
            z,
            at(4),
            1,
            z,
            at(5),
            9,
            ptr::null_mut(),
            0,
            info,
        )
    };
    assert!(matches!(done, Ok(false)), "a size that no int has is not hipSOLVER's: {done:?}");
    // SAFETY: as above.
    let done = unsafe {
        by_hand::cusolverDnXgesvd(
            &hip,
            ptr::null_mut(),
            b'S' as _,
            b'N' as _,
            3,
            2,
            z,
            at(16),
            4,
            real,
            at(32),
            real,
            at(48),
            5,
            z,
            at(64),
            6,
            z,
            at(80),
            160,
            ptr::null_mut(),
            0,
            info,
        )
    };
    assert!(matches!(done, Err(Error::InvalidValue(_))), "types that do not go together: {done:?}");
    // SAFETY: as above.
    let done = unsafe {
        by_hand::cusolverDnXgesvd(
            &hip,
            ptr::null_mut(),
            b'S' as _,
            b'N' as _,
            3,
            2,
            z,
            at(16),
            4,
            real,
            at(32),
            z,
            at(48),
            5,
            z,
            at(64),
            6,
            z,
            at(80),
            160,
            ptr::null_mut(),
            0,
            info,
        )
    };
    assert!(matches!(done, Ok(true)), "{done:?}");
    let wanted = format!("hipsolverDnZgesvd {HANDLE} {} {} 3 2 16 4 32 48 5 64 6 80 10 0 1024\n", b'S', b'N');
    assert_eq!(recorder.recorded(), wanted);
}

#[test]
fn what_is_no_hipsolver_is_not_taken_for_one() {
    let refused = Library::open(OsStr::new("libc.so.6"));
    assert!(refused.is_err_and(|reason| reason.contains("no hipsolverDnCreate")));
}

#[test]
fn a_release_whose_soname_is_not_there_falls_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("lib")).unwrap();
    let names = super::library::HIPSOLVER.names;
    for name in ["libhipsolver.so.1", "libhipsolver.so.0"] {
        std::fs::write(dir.path().join("lib").join(name), "").unwrap();
    }
    let found = kit::hip::candidates(names, Some(dir.path()), |_| None);
    let wanted =
        ["lib/libhipsolver.so.1", "lib/libhipsolver.so.0"].map(|name| dir.path().join(name).into_os_string());
    assert_eq!(found, wanted);
}
