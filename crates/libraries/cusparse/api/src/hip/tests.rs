//! What reaches hipSPARSE, looked at from its side: a library in C that has the functions of a release of ROCm (tools/data/hip) and writes
//! down each call. cuSPARSE's routines are called from C too, with arguments that are all different.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::sync::Arc;

use testkit::recorder::{BEGINNING, Callers, Param, Recorder, Signature, compile, exports, facts};

use super::call::Step;
use super::generic::*;
use super::library::{Generation, Library};
use super::objects::{Kept, Use};
use super::{HipCall, HipHandle, calls, convert, info};
use crate::api::info::INFOS;
use crate::api::{info as infos, legacy};
use crate::descriptor::*;
use crate::types::*;
use crate::{Error, Result};

const RELEASES: [&str; 5] = ["5.2", "5.7", "6.4", "7.2", "10.0"];

fn c_type(ty: &str) -> &'static str {
    match ty {
        "f32" => "float",
        "f64" => "double",
        "i64" => "long long",
        "usize" => "unsigned long",
        "hipComplex" | "cuComplex" => "struct narrow",
        "hipDoubleComplex" | "cuDoubleComplex" => "struct wide",
        "hipStream_t" => "void *",
        _ if ["Handle_t", "Info_t", "Descr_t"].iter().any(|end| ty.ends_with(end)) => "void *",
        _ if ty.starts_with('*') => "void *",
        // Numbers and enumerations.
        _ => "int",
    }
}

const COMPLEX: &str = "struct narrow { float x, y; }; struct wide { double x, y; };\n";

/// What the recorder gives out for an object that this function makes.
fn made(function: &str) -> i64 {
    let known = calls::NAMES.iter().position(|name| name.to_str() == Ok(function));
    0x5000 + known.unwrap_or_else(|| panic!("{function} is not called")) as i64
}

/// What it says work areas have, and matrices.
const AREA: i64 = 1000;
const ENTRIES: i64 = 77;

/// Of hipsparse-version.h.
fn version(release: &str) -> i64 {
    match release {
        "5.2" => 200_200,
        "5.7" => 200_308,
        "6.4" => 300_200,
        "7.2" => 400_200,
        _ => 500_000,
    }
}

fn is_size(param: &Param) -> bool {
    param.name.contains("uffer") && matches!(param.ty.as_str(), "*mut usize" | "*mut c_int")
}

/// hipSPARSE of one release, which does nothing but write down.
fn recorder(release: &str) -> Recorder<Library> {
    let mut text = format!("{COMPLEX}{BEGINNING}");
    for (name, params) in exports("hipsparse", release) {
        let typed: Vec<_> =
            params.iter().enumerate().map(|(i, param)| format!("{} a{i}", c_type(&param.ty))).collect();
        let part = |ty: &str| if c_type(ty).starts_with("struct") { ".x" } else { "" };
        let values: String = params
            .iter()
            .enumerate()
            .map(|(i, param)| format!(" PUT(\" %lld\", (long long)a{i}{});", part(&param.ty)))
            .collect();
        let does = does(release, &name, &params);
        let typed = typed.join(", ");
        writeln!(
            text,
            "int {name}({typed}) {{ PUT(\"{name}\");{values} {does} PUT(\"\\n\"); return answer(__func__); }}"
        )
        .unwrap();
    }
    Recorder::of("libhipsparse.so", &text, Library::open)
}

/// What it does beside, in C.
fn does(release: &str, name: &str, params: &[Param]) -> String {
    let mut does = String::new();
    // ROCm 5 has nothing behind these.
    let is_empty = release.starts_with("5.") && name.contains("_createDescr");
    let makes = name.starts_with("hipsparseCreate") && params[0].ty.starts_with("*mut ");
    if (makes || name.contains("_createDescr")) && !is_empty {
        write!(does, "*(void **)a0 = (void *){};", made(name)).unwrap();
    }
    for (i, size) in params.iter().enumerate().filter(|(_, param)| is_size(param)) {
        let ty = if size.ty == "*mut usize" { "unsigned long" } else { "int" };
        // Addresses of tests that are looked at alone are small.
        write!(does, "if ((long long)a{i} > 1 << 20) *({ty} *)a{i} = {AREA};").unwrap();
    }
    match name {
        "hipsparseGetVersion" => write!(does, "*(int *)a1 = {};", version(release)).unwrap(),
        "hipsparseSpMatGetSize" => write!(does, "*(long long *)a3 = {ENTRIES};").unwrap(),
        "hipsparseSpMatSetAttribute" => does.push_str("PUT(\" %d\", *(int *)a2);"),
        _ => {}
    }
    does
}

fn call_of(recorder: &Recorder<Library>) -> HipCall {
    let handle = Arc::new(HipHandle::of(recorder.library).unwrap());
    recorder.recorded();
    HipCall { handle, stream: cudaStream_t::default() }
}

/// What was called since the last time, without the objects that were made and ended, and without the addresses of hipSPARSE's own.
fn work_of(recorder: &Recorder<Library>) -> Vec<String> {
    let is_work = |line: &&str| !line.starts_with("hipsparseCreate") && !line.starts_with("hipsparseDestroy");
    recorder.recorded().lines().filter(is_work).map(str::to_owned).collect()
}

fn description() -> cusparseMatDescr_t {
    let mut descr: cusparseMatDescr_t = ptr::null_mut();
    legacy::cusparseCreateMatDescr((&mut descr).into()).unwrap();
    descr
}

fn info_of<I>() -> *mut I {
    let mut info: *mut I = ptr::null_mut();
    infos::cusparseCreateCsrilu02Info((&mut info).into()).unwrap();
    info
}

/// An info with which hipSPARSE has begun.
fn begun(library: &'static Library, kind: &'static info::Kind) -> i64 {
    let raw: *mut c_void = info_of();
    info::with(&INFOS.get(raw).unwrap(), library, kind, Step::Begins, |_| Ok(true)).unwrap();
    raw.expose_provenance() as i64
}

/// An info's kind, and what makes hipSPARSE's.
fn kind(ty: &str) -> Option<(&'static info::Kind, &'static str)> {
    Some(match ty {
        "bsric02Info_t" => (&info::BSRIC02, "hipsparseCreateBsric02Info"),
        "bsrilu02Info_t" => (&info::BSRILU02, "hipsparseCreateBsrilu02Info"),
        "bsrsm2Info_t" => (&info::BSRSM2, "hipsparseCreateBsrsm2Info"),
        "bsrsv2Info_t" => (&info::BSRSV2, "hipsparseCreateBsrsv2Info"),
        "cusparseColorInfo_t" => (&info::COLOR, "hipsparseCreateColorInfo"),
        "csrgemm2Info_t" => (&info::CSRGEMM2, "hipsparseCreateCsrgemm2Info"),
        "csric02Info_t" => (&info::CSRIC02, "hipsparseCreateCsric02Info"),
        "csrilu02Info_t" => (&info::CSRILU02, "hipsparseCreateCsrilu02Info"),
        "csrsm2Info_t" => (&info::CSRSM2, "hipsparseCreateCsrsm2Info"),
        "csrsv2Info_t" => (&info::CSRSV2, "hipsparseCreateCsrsv2Info"),
        "csru2csrInfo_t" => (&info::CSRU2CSR, "hipsparseCreateCsru2csrInfo"),
        "pruneInfo_t" => (&info::PRUNE, "hipsparseCreatePruneInfo"),
        _ => return None,
    })
}

/// Any value.
const ANY: i64 = -1;

/// The argument for a parameter: as the program passes it, and as hipSPARSE must get it. `pass` changes the enumerations.
fn argument(library: &'static Library, param: &Param, place: usize, pass: usize, size: i64) -> (i64, i64) {
    let at = place as i64;
    let pick = |pairs: &[(i64, i64)]| pairs[(place + pass) % pairs.len()];
    if let Some((kind, create)) = kind(&param.ty) {
        return (begun(library, kind), made(create));
    }
    match param.ty.as_str() {
        "*mut usize" | "*mut c_int" if param.name.contains("uffer") => (size, ANY),
        "f32" | "f64" | "c_int" | "cuComplex" | "cuDoubleComplex" => (100 + at, 100 + at),
        ty if ty.starts_with('*') => (0x10000 + 0x100 * at, 0x10000 + 0x100 * at),
        "cusparseMatDescr_t" => (description().expose_provenance() as i64, made("hipsparseCreateMatDescr")),
        // Numbers of the headers of CUDA 13 and of ROCm 5.2 to 7.2.
        "cusparseOperation_t" => pick(&[(0, 0), (1, 1), (2, 2)]),
        "cusparseDirection_t" | "cusparseIndexBase_t" | "cusparseAction_t" | "cusparseSolvePolicy_t" => {
            pick(&[(0, 0), (1, 1)])
        }
        "cusparseCsr2CscAlg_t" => pick(&[(1, 1), (2, 2)]),
        // R_32F, R_64F, C_32F, C_64F
        "cudaDataType" => pick(&[(0, 0), (1, 1), (4, 4), (5, 5)]),
        other => panic!("say in tests.rs what is passed for {other}"),
    }
}

#[test]
fn every_generated_routine_hands_over_what_it_was_given() {
    let signatures: BTreeMap<String, Signature> = facts("cusparse/cusparse.json");
    let routines = calls::for_c();
    assert!(routines.len() > 300, "{}", routines.len());
    for release in RELEASES {
        let (recorder, exports) = (recorder(release), exports("hipsparse", release));
        let mut bytes = 0u64;
        let size = ptr::from_mut(&mut bytes).expose_provenance() as i64;
        let mut callers = Callers::with(COMPLEX);
        let mut wanted = BTreeMap::new();
        for (name, _) in &routines {
            let params = &signatures[*name].params[1..];
            for pass in 0..3 {
                let (given, got): (Vec<i64>, Vec<i64>) = params
                    .iter()
                    .enumerate()
                    .map(|(i, param)| argument(recorder.library, param, i, pass, size))
                    .unzip();
                let arguments: Vec<_> =
                    params.iter().zip(&given).map(|(param, value)| (c_type(&param.ty), *value)).collect();
                callers.add(&format!("{name}_{pass}"), &arguments);
                wanted.insert((*name, pass), got);
            }
        }
        let caller = callers.compiled();
        let mut n_reached = 0;
        for (name, function) in &routines {
            let theirs = name.replacen("cu", "hip", 1);
            for pass in 0..3 {
                let hip = call_of(&recorder);
                // SAFETY: a number's place of this test.
                unsafe { ptr::with_exposed_provenance_mut::<u64>(size as usize).write(0) };
                // SAFETY: the caller's functions take the two pointers; the recorder follows no pointer of these but the size's.
                let status = unsafe { caller.call(&format!("{name}_{pass}"), &hip, *function) };
                let recorded = recorder.recorded();
                // Descriptors are made ready before.
                let ready = ["hipsparseCreateMatDescr", "hipsparseSetMat"];
                let lines: Vec<_> =
                    recorded.lines().filter(|l| !ready.iter().any(|r| l.starts_with(r))).collect();
                if !exports.contains_key(&theirs) {
                    assert_eq!((lines, status), (vec![], -1), "{name} on ROCm {release}");
                    continue;
                }
                assert_eq!((lines.len(), status), (1, 0), "{name} on ROCm {release}: {recorded}");
                let mut words = lines[0].split(' ');
                assert_eq!(words.next(), Some(theirs.as_str()), "{name} on ROCm {release}");
                let values: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
                assert_eq!(values[0], made("hipsparseCreate"), "{name} on ROCm {release}");
                let got = &wanted[&(*name, pass)];
                assert_eq!(values.len() - 1, got.len(), "{name} on ROCm {release}");
                let same =
                    values[1..].iter().zip(got).all(|(value, wanted)| *wanted == ANY || value == wanted);
                assert!(same, "{name} on ROCm {release}: {values:?}, not {got:?}");
                // SAFETY: as above.
                let bytes = unsafe { ptr::with_exposed_provenance::<u64>(size as usize).read() };
                let asks = name.contains("_bufferSize");
                assert_eq!(bytes as i64, if asks { AREA } else { 0 }, "{name} on ROCm {release}");
                n_reached += 1;
            }
        }
        // ROCm 5.2 has no CSR to CSC of a type that is an argument.
        let n_all = 3 * routines.len();
        let n_lacks = if release == "5.2" { 2 * 3 } else { 0 };
        assert_eq!(n_reached, n_all - n_lacks, "ROCm {release}");
    }
}

type Numbers = BTreeMap<String, BTreeMap<String, BTreeMap<String, u32>>>;

/// The number of a release, by the name behind the enumeration's.
fn number(facts: &Numbers, enumeration: &str, name: &str, release: &str) -> u32 {
    let values = facts[enumeration].get(name).unwrap_or_else(|| panic!("no {name}"));
    let found = values.iter().find(|(releases, _)| releases.split(' ').any(|one| one == release));
    *found.unwrap_or_else(|| panic!("no {name} in ROCm {release}")).1
}

#[test]
fn numbers_are_those_of_every_release() {
    let facts: Numbers = facts("hip/hipsparse_numbers.json");
    let of = |result: Result<u32>| result.unwrap();
    // The last of these releases in which it is the same is told by `generations` below.
    for release in ["5.2", "5.7", "6.4", "7.2"] {
        for (enumeration, name, ours) in [
            (
                "hipsparseOperation_t",
                "OPERATION_NON_TRANSPOSE",
                of(convert::operation(cusparseOperation_t(0))),
            ),
            ("hipsparseOperation_t", "OPERATION_TRANSPOSE", of(convert::operation(cusparseOperation_t(1)))),
            (
                "hipsparseOperation_t",
                "OPERATION_CONJUGATE_TRANSPOSE",
                of(convert::operation(cusparseOperation_t(2))),
            ),
            ("hipsparseDirection_t", "DIRECTION_ROW", of(convert::direction(cusparseDirection_t(0)))),
            ("hipsparseDirection_t", "DIRECTION_COLUMN", of(convert::direction(cusparseDirection_t(1)))),
            ("hipsparseIndexBase_t", "INDEX_BASE_ZERO", of(convert::index_base(cusparseIndexBase_t(0)))),
            ("hipsparseIndexBase_t", "INDEX_BASE_ONE", of(convert::index_base(cusparseIndexBase_t(1)))),
            ("hipsparseAction_t", "ACTION_SYMBOLIC", of(convert::action(cusparseAction_t(0)))),
            ("hipsparseAction_t", "ACTION_NUMERIC", of(convert::action(cusparseAction_t(1)))),
            (
                "hipsparseSolvePolicy_t",
                "SOLVE_POLICY_NO_LEVEL",
                of(convert::solve_policy(cusparseSolvePolicy_t(0))),
            ),
            (
                "hipsparseSolvePolicy_t",
                "SOLVE_POLICY_USE_LEVEL",
                of(convert::solve_policy(cusparseSolvePolicy_t(1))),
            ),
            (
                "hipsparsePointerMode_t",
                "POINTER_MODE_HOST",
                of(convert::pointer_mode(cusparsePointerMode_t(0))),
            ),
            (
                "hipsparsePointerMode_t",
                "POINTER_MODE_DEVICE",
                of(convert::pointer_mode(cusparsePointerMode_t(1))),
            ),
            ("hipsparseFillMode_t", "FILL_MODE_LOWER", of(convert::fill_mode(cusparseFillMode_t(0)))),
            ("hipsparseFillMode_t", "FILL_MODE_UPPER", of(convert::fill_mode(cusparseFillMode_t(1)))),
            ("hipsparseDiagType_t", "DIAG_TYPE_NON_UNIT", of(convert::diag_type(cusparseDiagType_t(0)))),
            ("hipsparseDiagType_t", "DIAG_TYPE_UNIT", of(convert::diag_type(cusparseDiagType_t(1)))),
            (
                "hipsparseMatrixType_t",
                "MATRIX_TYPE_GENERAL",
                of(convert::matrix_type(cusparseMatrixType_t(0))),
            ),
            ("hipsparseIndexType_t", "INDEX_32I", of(convert::index_type(cusparseIndexType_t(2)))),
            ("hipsparseIndexType_t", "INDEX_64I", of(convert::index_type(cusparseIndexType_t(3)))),
            // What is written as a plain number.
            ("hipsparseSDDMMAlg_t", "SDDMM_ALG_DEFAULT", 0),
            ("hipsparseSpSVAlg_t", "SPSV_ALG_DEFAULT", 0),
            ("hipsparseSpSMAlg_t", "SPSM_ALG_DEFAULT", 0),
            ("hipsparseSparseToDenseAlg_t", "SPARSETODENSE_ALG_DEFAULT", 0),
            ("hipsparseDenseToSparseAlg_t", "DENSETOSPARSE_ALG_DEFAULT", 0),
            ("hipsparseSpMatAttribute_t", "SPMAT_FILL_MODE", 0),
            ("hipsparseSpMatAttribute_t", "SPMAT_DIAG_TYPE", 1),
        ] {
            let theirs = number(&facts, enumeration, &format!("HIPSPARSE_{name}"), release);
            assert_eq!(theirs, ours, "{name} of ROCm {release}");
        }
        let which = if release < "6" { Generation::First } else { Generation::Second };
        for (name, ours) in [("COLUMN", 1), ("ROW", 2)] {
            let theirs = number(&facts, "hipsparseOrder_t", &format!("HIPSPARSE_ORDER_{name}"), release);
            assert_eq!(theirs, of(convert::order(cusparseOrder_t(ours), which)), "{name} of ROCm {release}");
        }
        // By cuSPARSE's numbers of the same names.
        for (name, ours) in
            [("ALG_DEFAULT", 0), ("COO_ALG1", 1), ("CSR_ALG1", 2), ("CSR_ALG2", 3), ("COO_ALG2", 4)]
        {
            let theirs = number(&facts, "hipsparseSpMVAlg_t", &format!("HIPSPARSE_SPMV_{name}"), release);
            assert_eq!(theirs, convert::spmv_alg(cusparseSpMVAlg_t(ours), which), "{name} of ROCm {release}");
        }
        for (name, ours) in [
            ("ALG_DEFAULT", 0),
            ("COO_ALG1", 1),
            ("COO_ALG2", 2),
            ("COO_ALG3", 3),
            ("CSR_ALG1", 4),
            ("COO_ALG4", 5),
            ("CSR_ALG2", 6),
            ("CSR_ALG3", 12),
            ("BLOCKED_ELL_ALG1", 13),
        ] {
            let theirs = number(&facts, "hipsparseSpMMAlg_t", &format!("HIPSPARSE_SPMM_{name}"), release);
            assert_eq!(theirs, convert::spmm_alg(cusparseSpMMAlg_t(ours), which), "{name} of ROCm {release}");
        }
        for (name, ours) in [
            ("DEFAULT", 0),
            ("CSR_ALG_DETERMINISTIC", 1),
            ("CSR_ALG_NONDETERMINISTIC", 2),
            ("ALG1", 3),
            ("ALG2", 4),
            ("ALG3", 5),
        ] {
            // Of ROCm 5 they are not called.
            if which == Generation::Second {
                let theirs =
                    number(&facts, "hipsparseSpGEMMAlg_t", &format!("HIPSPARSE_SPGEMM_{name}"), release);
                assert_eq!(
                    theirs,
                    of(convert::spgemm_alg(cusparseSpGEMMAlg_t(ours))),
                    "{name} of ROCm {release}"
                );
            }
        }
        // CUSPARSE_STATUS_*, by the names of hipSPARSE's.
        for (name, ours) in [
            ("SUCCESS", 0),
            ("NOT_INITIALIZED", 1),
            ("ALLOC_FAILED", 2),
            ("INVALID_VALUE", 3),
            ("ARCH_MISMATCH", 4),
            ("MAPPING_ERROR", 5),
            ("EXECUTION_FAILED", 6),
            ("INTERNAL_ERROR", 7),
            ("MATRIX_TYPE_NOT_SUPPORTED", 8),
            ("ZERO_PIVOT", 9),
            ("NOT_SUPPORTED", 10),
            ("INSUFFICIENT_RESOURCES", 11),
        ] {
            let theirs = number(&facts, "hipsparseStatus_t", &format!("HIPSPARSE_STATUS_{name}"), release);
            assert_eq!(convert::status(theirs as c_int).0, ours, "{name} of ROCm {release}");
        }
    }
    for (name, ours) in [("ALG1", 1), ("ALG2", 2)] {
        let theirs = number(&facts, "hipsparseCsr2CscAlg_t", &format!("HIPSPARSE_CSR2CSC_{name}"), "7.2");
        assert_eq!(theirs, of(convert::csr2csc_alg(cusparseCsr2CscAlg_t(ours))));
    }
    assert_eq!(facts["hipsparseStatus_t"].len(), 12);
    assert_eq!(convert::status(99).0, 7);
    // What only the newest releases know is a hint, and what none knows never reaches them.
    assert_eq!(convert::spmv_alg(cusparseSpMVAlg_t(6), Generation::First), 4);
    assert_eq!(convert::spmm_alg(cusparseSpMMAlg_t(14), Generation::Second), 0);
    let refused = [
        convert::operation(cusparseOperation_t(3)),
        convert::matrix_type(cusparseMatrixType_t(1)),
        convert::index_type(cusparseIndexType_t(1)),
        convert::data_type(cudaDataType::CUDA_R_16F),
        convert::data_type(cudaDataType::CUDA_R_8I),
    ];
    assert!(refused.iter().all(|one| one.is_err_and(Error::is_refusal)), "{refused:?}");
}

#[test]
fn a_release_is_known_by_what_it_exports() {
    for release in RELEASES {
        let wanted = if release.starts_with("5.") { Generation::First } else { Generation::Second };
        let recorder = recorder(release);
        assert_eq!(recorder.library.generation, wanted, "ROCm {release}");
        assert_eq!(i64::from(call_of(&recorder).handle.version), version(release));
    }
}

#[test]
fn an_answer_of_hipsparse_is_the_status_that_a_program_gets_or_our_own_code_s() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let at = ptr::without_provenance_mut::<f32>;
    // What is refused of arguments is done, or refused, by our own code.
    for (theirs, ours) in [
        (0, Ok(true)),
        (3, Ok(false)),
        (8, Ok(false)),
        (10, Ok(false)),
        (2, Err(2)),
        (6, Err(6)),
        (99, Err(7)),
    ] {
        recorder.answer_to(c"hipsparseSaxpyi", theirs);
        // SAFETY: the recorder follows no pointer.
        let answer = unsafe {
            calls::cusparseSaxpyi(&hip, 1, at(16), at(32), at(48).cast(), at(64), cusparseIndexBase_t(0))
        };
        assert_eq!(answer.map_err(|error| error.code().0), ours, "hipsparseStatus_t {theirs}");
    }
    recorder.recorded();
    // Numbers that hipSPARSE would end the process for.
    // SAFETY: as above.
    let answer = unsafe {
        calls::cusparseSaxpyi(&hip, 1, at(16), at(32), at(48).cast(), at(64), cusparseIndexBase_t(2))
    };
    assert!(matches!(answer, Ok(false)), "{answer:?}");
    assert_eq!(recorder.recorded(), "");
}

#[test]
fn a_handle_is_told_what_has_changed_and_only_that() {
    let recorder = recorder("7.2");
    let handle = HipHandle::of(recorder.library).unwrap();
    recorder.recorded();
    let raw = made("hipsparseCreate");
    let (host, device) = (
        cusparsePointerMode_t::CUSPARSE_POINTER_MODE_HOST,
        cusparsePointerMode_t::CUSPARSE_POINTER_MODE_DEVICE,
    );
    handle.tell(ptr::null_mut(), host).unwrap();
    assert_eq!(recorder.recorded(), "");
    let stream = ptr::without_provenance_mut(0x77);
    handle.tell(stream, device).unwrap();
    assert_eq!(
        recorder.recorded(),
        format!("hipsparseSetStream {raw} {}\nhipsparseSetPointerMode {raw} 1\n", 0x77)
    );
    handle.tell(stream, host).unwrap();
    assert_eq!(recorder.recorded(), format!("hipsparseSetPointerMode {raw} 0\n"));
    drop(handle);
    assert_eq!(recorder.recorded(), format!("hipsparseDestroy {raw}\n"));
}

#[test]
fn a_typed_descriptor_is_told_what_it_says_when_that_changes() {
    let recorder = recorder("5.7");
    let hip = call_of(&recorder);
    let (descr, raw) = (description(), made("hipsparseCreateMatDescr"));
    let told = |fill: u32, diagonal: u32, base: u32| {
        format!(
            "hipsparseSetMatType {raw} 0\nhipsparseSetMatFillMode {raw} {fill}\n\
             hipsparseSetMatDiagType {raw} {diagonal}\nhipsparseSetMatIndexBase {raw} {base}\n"
        )
    };
    assert_eq!(hip.description(descr).unwrap().addr() as i64, raw);
    let recorded = recorder.recorded();
    assert!(
        recorded.starts_with("hipsparseCreateMatDescr ") && recorded.ends_with(&told(0, 0, 0)),
        "{recorded}"
    );
    hip.description(descr).unwrap();
    assert_eq!(recorder.recorded(), "");
    legacy::cusparseSetMatFillMode(descr, cusparseFillMode_t(1)).unwrap();
    legacy::cusparseSetMatDiagType(descr, cusparseDiagType_t(1)).unwrap();
    legacy::cusparseSetMatIndexBase(descr, cusparseIndexBase_t(1)).unwrap();
    hip.description(descr).unwrap();
    assert_eq!(recorder.recorded(), told(1, 1, 1));
    // Of a matrix that is not general our own code says what cuSPARSE says.
    legacy::cusparseSetMatType(descr, cusparseMatrixType_t(1)).unwrap();
    assert!(hip.description(descr).is_err_and(Error::is_refusal));
    legacy::cusparseDestroyMatDescr(descr).unwrap();
    assert_eq!(recorder.recorded(), format!("hipsparseDestroyMatDescr {raw}\n"));
    assert!(hip.description(ptr::null_mut()).is_err_and(Error::is_refusal));
}

/// The calls of a system in bare arrays.
fn analyse(hip: &HipCall, info: csrsv2Info_t, descr: cusparseMatDescr_t) -> Result<bool> {
    let at = ptr::without_provenance_mut::<f64>;
    let (op, policy) = (cusparseOperation_t(0), cusparseSolvePolicy_t(1));
    // SAFETY: the recorder follows no pointer.
    unsafe {
        calls::cusparseDcsrsv2_analysis(
            hip,
            op,
            4,
            9,
            descr,
            at(16),
            at(32).cast(),
            at(48).cast(),
            info,
            policy,
            at(64).cast(),
        )
    }
}

fn solve(hip: &HipCall, info: csrsv2Info_t, descr: cusparseMatDescr_t) -> Result<bool> {
    let at = ptr::without_provenance_mut::<f64>;
    let (op, policy) = (cusparseOperation_t(0), cusparseSolvePolicy_t(1));
    // SAFETY: as above.
    unsafe {
        calls::cusparseDcsrsv2_solve(
            hip,
            op,
            4,
            9,
            at(8),
            descr,
            at(16),
            at(32).cast(),
            at(48).cast(),
            info,
            at(80),
            at(96),
            policy,
            at(64).cast(),
        )
    }
}

#[test]
fn what_goes_on_with_an_info_is_done_where_it_has_begun() {
    let recorder = recorder("6.4");
    let hip = call_of(&recorder);
    let (info, descr): (csrsv2Info_t, _) = (info_of(), description());
    // Nothing has begun.
    assert!(matches!(solve(&hip, info, descr), Ok(false)));
    assert_eq!(recorder.recorded(), "");
    // hipSPARSE refuses the analysis: solutions are our own code's, too.
    recorder.answer_to(c"hipsparseDcsrsv2_analysis", 10);
    assert!(matches!(analyse(&hip, info, descr), Ok(false)));
    recorder.recorded();
    assert!(matches!(solve(&hip, info, descr), Ok(false)));
    assert_eq!(recorder.recorded(), "");
    // It does it.
    assert!(matches!(analyse(&hip, info, descr), Ok(true)));
    assert!(matches!(solve(&hip, info, descr), Ok(true)));
    let raw = made("hipsparseCreateCsrsv2Info");
    let (handle, descr_raw) = (made("hipsparseCreate"), made("hipsparseCreateMatDescr"));
    assert_eq!(
        work_of(&recorder),
        [
            format!("hipsparseDcsrsv2_analysis {handle} 0 4 9 {descr_raw} 16 32 48 {raw} 1 64"),
            format!("hipsparseDcsrsv2_solve {handle} 0 4 9 8 {descr_raw} 16 32 48 {raw} 80 96 1 64"),
        ]
    );
    // A pivot that is missing is no refusal.
    recorder.answer_to(c"hipsparseXcsrsv2_zeroPivot", 9);
    // SAFETY: the recorder follows no pointer.
    let pivot = unsafe { calls::cusparseXcsrsv2_zeroPivot(&hip, info, ptr::without_provenance_mut(16)) };
    assert!(matches!(pivot, Err(Error::ZeroPivot)), "{pivot:?}");
    assert!(matches!(solve(&hip, info, descr), Ok(true)));
    recorder.recorded();
    infos::cusparseDestroyCsrilu02Info(info).unwrap();
    assert_eq!(recorder.recorded(), format!("hipsparseDestroyCsrsv2Info {raw}\n"));
    assert!(matches!(solve(&hip, info, descr), Ok(false)), "an info that is none");
}

#[test]
fn a_work_area_that_was_sized_for_our_own_code_never_reaches_hipsparse() {
    let recorder = recorder("6.4");
    let (hip, other) = (call_of(&recorder), call_of(&recorder));
    let at = ptr::without_provenance_mut::<c_int>;
    let mut bytes = 0usize;
    // SAFETY: the recorder follows no pointer but the size's.
    let mut ask = |hip: &HipCall| unsafe {
        calls::cusparseXcsrsort_bufferSizeExt(hip, 4, 5, 9, at(16), at(32), &raw mut bytes)
    };
    // SAFETY: as above.
    let sort = |hip: &HipCall| unsafe {
        calls::cusparseXcsrsort(hip, 4, 5, 9, description(), at(16), at(32), at(48), at(64).cast())
    };
    assert!(matches!((ask(&hip), sort(&hip)), (Ok(true), Ok(true))));
    recorder.answer_to(c"hipsparseXcsrsort_bufferSizeExt", 3);
    assert!(matches!(ask(&hip), Ok(false)));
    recorder.recorded();
    assert!(matches!(sort(&hip), Ok(false)));
    assert_eq!(work_of(&recorder), Vec::<String>::new());
    assert!(matches!((ask(&other), sort(&other)), (Ok(true), Ok(true))), "another handle's is its own");

    // The generic API's are a matrix's, or a descriptor's.
    let (kept, solves) = (Kept::default(), KeptSolve::default());
    let a = SparseMatrix { cols: 4, ..csr(0x300) };
    let (x, y) = (vector(4, 0x400), vector(4, 0x500));
    let factors = [address::<c_void>(0x600).cast_const(); 2];
    let alg = cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
    let product = TimesVector { kept: &kept, op: PLAIN, a: &a, x: &x, y: &y, factors, compute: R64, alg };
    recorder.answer_to(c"hipsparseSpMV_bufferSize", 10);
    assert_eq!(product.bytes(&hip).unwrap(), 0);
    assert!(!product.run(&hip, address(0x800)).unwrap());
    let system = System { kept: &solves, op: PLAIN, alpha: factors[0], a: &a, x: &x, y: &y, compute: R64 };
    assert!(!system.analyse(&hip, address(0x800)).unwrap(), "no question");
    recorder.answer_to(c"hipsparseSpSV_bufferSize", 10);
    assert_eq!(system.bytes(&hip).unwrap(), 0);
    assert!(!system.analyse(&hip, address(0x800)).unwrap());
}

#[test]
fn a_factorization_that_is_boosted_is_our_own_code_s() {
    let recorder = recorder("7.2");
    let (info, raw) = (info_of::<csrilu02Info>(), |info| INFOS.get(info).unwrap());
    let with = |step| info::with(&raw(info), recorder.library, &info::CSRILU02, step, |_| Ok(true));
    assert!(matches!(with(Step::Begins), Ok(true)));
    assert!(matches!(with(Step::GoesOn), Ok(true)));
    // SAFETY: a number of ours, read at once.
    let one = unsafe { crate::memory::Factor::new((&raw const ONE).cast(), cudaDataType::CUDA_R_64F, true) }
        .unwrap();
    *raw(info).boost.lock() = Some((one, one));
    assert!(matches!(with(Step::GoesOn), Ok(false)));
    // Where the pivots are is known to who has factorized.
    *raw(info).boost.lock() = None;
    assert!(matches!(with(Step::GoesOn), Ok(false)));
    assert!(matches!(with(Step::Begins), Ok(true)));
}

static ONE: f64 = 1.0;

fn address<T>(at: usize) -> *mut T {
    ptr::without_provenance_mut(at)
}

fn csr(values: usize) -> SparseMatrix {
    SparseMatrix {
        offsets: address(0x100),
        indices: address(0x200),
        values: address(values),
        offset_type: cusparseIndexType_t::CUSPARSE_INDEX_64I,
        value_type: cudaDataType::CUDA_R_64F,
        base: cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ONE,
        ..SparseMatrix::new(Format::Csr, (4, 5, 9)).unwrap()
    }
}

fn vector(size: usize, at: usize) -> DenseVector {
    DenseVector { size, values: address(at), value_type: cudaDataType::CUDA_R_64F }
}

fn dense(rows: usize, cols: usize, at: usize) -> DenseMatrix {
    DenseMatrix {
        rows,
        cols,
        ld: cols + 1,
        values: address(at),
        value_type: cudaDataType::CUDA_R_64F,
        order: cusparseOrder_t::CUSPARSE_ORDER_ROW,
        batches: 1,
        stride: 0,
    }
}

const R64: cudaDataType = cudaDataType::CUDA_R_64F;
const PLAIN: cusparseOperation_t = cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE;
const TURNED: cusparseOperation_t = cusparseOperation_t::CUSPARSE_OPERATION_TRANSPOSE;

#[test]
fn a_product_with_a_vector_has_the_numbers_of_its_release() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let kept = Kept::default();
        let (a, x, y) = (csr(0x300), vector(5, 0x400), vector(4, 0x500));
        let factors = [address::<c_void>(0x600).cast_const(), address::<c_void>(0x700).cast_const()];
        let alg = cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2;
        let product = TimesVector { kept: &kept, op: PLAIN, a: &a, x: &x, y: &y, factors, compute: R64, alg };
        assert_eq!(product.bytes(&hip).unwrap(), AREA as usize);
        let (handle, made_a, made_v) =
            (made("hipsparseCreate"), made("hipsparseCreateCsr"), made("hipsparseCreateDnVec"));
        let recorded = recorder.recorded();
        let lines: Vec<&str> = recorded.lines().collect();
        // Addresses of what is written are not looked at.
        let behind = |line: &str| line.split(' ').skip(2).collect::<Vec<_>>().join(" ");
        assert_eq!(behind(lines[0]), "4 5 9 256 512 768 3 2 1 1", "{recorded}");
        assert_eq!([behind(lines[1]), behind(lines[2])], ["5 1024 1", "4 1280 1"], "{recorded}");
        let alg_there = if release.starts_with("5.") { 8 } else { 3 };
        let wanted = format!(
            "hipsparseSpMV_bufferSize {handle} 0 1536 {made_a} {made_v} 1792 {made_v} 1 {alg_there} "
        );
        assert!(lines[3].starts_with(&wanted), "{recorded}");
        assert_eq!(lines[4..], vec![format!("hipsparseDestroyDnVec {made_v}"); 2], "{recorded}");

        assert!(product.prepare(&hip, address(0x800)).unwrap());
        assert!(product.run(&hip, address(0x800)).unwrap());
        let wanted = |function: &str| {
            format!("{function} {handle} 0 1536 {made_a} {made_v} 1792 {made_v} 1 {alg_there} 2048")
        };
        // The matrix is the one of before, with what is known of it.
        assert_eq!(work_of(&recorder), [wanted("hipsparseSpMV_preprocess"), wanted("hipsparseSpMV")]);
        // Another operation is another analysis; the same matrix at another place is not.
        let moved = csr(0x900);
        assert!(TimesVector { a: &moved, ..product }.run(&hip, address(0x800)).unwrap());
        let recorded = recorder.recorded();
        assert!(recorded.contains(&format!("hipsparseCsrSetPointers {made_a} 256 512 2304\n")), "{recorded}");
        assert!(!recorded.contains("hipsparseCreateCsr"), "{recorded}");
        assert!(TimesVector { op: TURNED, x: &y, y: &x, ..product }.run(&hip, address(0x800)).unwrap());
        assert!(recorder.recorded().contains("hipsparseCreateCsr"));
        // Without a work area ROCm 5 would only say how large it is.
        let done = product.run(&hip, ptr::null_mut()).unwrap();
        assert_eq!(done, !release.starts_with("5."), "ROCm {release}");
        recorder.recorded();
        drop(kept);
        assert_eq!(recorder.recorded(), format!("hipsparseDestroySpMat {made_a}\n").repeat(2));
    }
}

#[test]
fn what_hipsparse_refuses_or_has_not_got_is_our_own_code_s() {
    let recorder = recorder("7.2");
    let hip = call_of(&recorder);
    let kept = Kept::default();
    let (a, x, y) = (csr(0x300), vector(5, 0x400), vector(4, 0x500));
    let factors = [address::<c_void>(0x600).cast_const(), address::<c_void>(0x700).cast_const()];
    let alg = cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT;
    let product = TimesVector { kept: &kept, op: PLAIN, a: &a, x: &x, y: &y, factors, compute: R64, alg };
    recorder.answer_to(c"hipsparseSpMV", 10);
    assert!(!product.run(&hip, address(0x800)).unwrap());
    recorder.answer_to(c"hipsparseSpMV", 6);
    assert!(matches!(product.run(&hip, address(0x800)), Err(Error::Hip(6))));
    recorder.answer_to(c"hipsparseCreateDnVec", 3);
    assert!(!product.run(&hip, address(0x800)).unwrap());
    recorder.recorded();
    // Types and formats that no release takes reach none.
    let half = DenseVector { value_type: cudaDataType::CUDA_R_16F, ..x };
    let slices = SparseMatrix { format: Format::SlicedEll { slice: 2, values: 9 }, ..a };
    let blocks = SparseMatrix { format: Format::Bsr { size: 2, row_major: true }, ..a };
    let narrow = SparseMatrix { index_type: cusparseIndexType_t::CUSPARSE_INDEX_16U, ..a };
    assert!(!TimesVector { x: &half, ..product }.run(&hip, address(0x800)).unwrap());
    for a in [slices, blocks, narrow] {
        assert!(!TimesVector { kept: &Kept::default(), a: &a, ..product }.run(&hip, address(0x800)).unwrap());
    }
    assert_eq!(work_of(&recorder), Vec::<String>::new());
    // A release without the function.
    let dir = tempfile::tempdir().unwrap();
    let text = "int hipsparseCreate(void **h) { *h = (void *)7; return 0; } int hipsparseDestroy(void *h) { return 0; }\n\
                int hipsparseGetVersion(void *h, int *v) { *v = 400000; return 0; }\n";
    let path = compile(dir.path(), "libhipsparse.so", text);
    let bare: &'static Library = Box::leak(Box::new(Library::open(path.as_os_str()).unwrap()));
    let handle = Arc::new(HipHandle::of(bare).unwrap());
    let hip = HipCall { handle, stream: cudaStream_t::default() };
    let product = TimesVector { kept: &Kept::default(), ..product };
    assert_eq!(product.bytes(&hip).unwrap(), 0);
    assert!(!product.run(&hip, address(0x800)).unwrap());
}

#[test]
fn products_with_dense_matrices_have_their_orders_and_batches() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let kept = Kept::default();
        let is_first = release.starts_with("5.");
        let row = if is_first { 0 } else { 2 };
        let (handle, made_a, made_d) =
            (made("hipsparseCreate"), made("hipsparseCreateCsr"), made("hipsparseCreateDnMat"));
        let a =
            SparseMatrix { batches: 3, strides: Strides { offsets: 5, indices: 9, values: 9 }, ..csr(0x300) };
        let b = DenseMatrix { batches: 3, stride: 40, ..dense(5, 6, 0x400) };
        let c = DenseMatrix { batches: 3, stride: 30, ..dense(4, 6, 0x500) };
        let factors = [address::<c_void>(0x600).cast_const(), address::<c_void>(0x700).cast_const()];
        let alg = cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG3;
        let product =
            TimesDense { kept: &kept, ops: [PLAIN, PLAIN], a: &a, b: &b, c: &c, factors, compute: R64, alg };
        assert!(product.run(&hip, address(0x800)).unwrap());
        let recorded = recorder.recorded();
        let made: Vec<_> = recorded.lines().filter(|line| line.starts_with("hipsparseCreateDnMat")).collect();
        assert!(made[0].ends_with(&format!(" 5 6 7 1024 1 {row}")), "{recorded}");
        for line in [
            format!("hipsparseCsrSetStridedBatch {made_a} 3 5 9"),
            format!("hipsparseDnMatSetStridedBatch {made_d} 3 40"),
            format!("hipsparseDnMatSetStridedBatch {made_d} 3 30"),
            format!(
                "hipsparseSpMM {handle} 0 0 1536 {made_a} {made_d} 1792 {made_d} 1 {} 2048",
                if is_first { 13 } else { 12 }
            ),
        ] {
            assert!(recorded.lines().any(|there| there == line), "{line} in {recorded}");
        }
        // No release has batches of sampled products.
        let one = csr(0x300);
        let (b, c) = (dense(4, 3, 0x400), dense(3, 5, 0x500));
        let sampled =
            Sampled { kept: &kept, ops: [PLAIN, PLAIN], a: &b, b: &c, c: &one, factors, compute: R64 };
        assert!(sampled.run(&hip, address(0x800)).unwrap());
        let wanted = format!("hipsparseSDDMM {handle} 0 0 1536 {made_d} {made_d} 1792 {made_a} 1 0 2048");
        assert_eq!(work_of(&recorder), [wanted]);
        assert!(!Sampled { c: &a, ..sampled }.run(&hip, address(0x800)).unwrap());
    }
}

#[test]
fn vectors_reach_hipsparse_in_its_order_of_arguments() {
    let recorder = recorder("5.2");
    let hip = call_of(&recorder);
    let x = SparseVector {
        size: 8,
        nnz: 3,
        indices: address(0x100),
        values: address(0x200),
        index_type: cusparseIndexType_t::CUSPARSE_INDEX_32I,
        base: cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO,
        value_type: R64,
    };
    let y = vector(8, 0x300);
    let both = Vectors { x: &x, y: &y };
    let (one, two) = (address::<c_void>(0x400).cast_const(), address::<c_void>(0x500).cast_const());
    assert!(both.add(&hip, one, two).unwrap());
    assert!(
        both.gather(&hip).unwrap() && both.scatter(&hip).unwrap() && both.rotate(&hip, one, two).unwrap()
    );
    assert_eq!(both.dot_bytes(&hip, TURNED, two, R64).unwrap(), AREA as usize);
    recorder.answer_to(c"hipsparseSpVV", 0);
    assert!(both.dot(&hip, TURNED, two.cast_mut(), R64, address(0x600)).unwrap());
    assert!(
        !both.dot(&hip, TURNED, two.cast_mut(), R64, ptr::null_mut()).unwrap(),
        "a question after the size"
    );
    let (h, sv, dv) = (made("hipsparseCreate"), made("hipsparseCreateSpVec"), made("hipsparseCreateDnVec"));
    let work = work_of(&recorder);
    assert_eq!(
        work[..4],
        [
            format!("hipsparseAxpby {h} 1024 {sv} 1280 {dv}"),
            format!("hipsparseGather {h} {dv} {sv}"),
            format!("hipsparseScatter {h} {sv} {dv}"),
            format!("hipsparseRot {h} 1024 1280 {sv} {dv}"),
        ]
    );
    assert!(work[4].starts_with(&format!("hipsparseSpVV_bufferSize {h} 1 {sv} {dv} 1280 1 ")), "{work:?}");
    assert_eq!(work[5..], [format!("hipsparseSpVV {h} 1 {sv} {dv} 1280 1 1536")]);
}

#[test]
fn a_system_s_solution_is_where_its_analysis_is() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let is_first = release.starts_with("5.");
        let (h, m, v) = (made("hipsparseCreate"), made("hipsparseCreateCsr"), made("hipsparseCreateDnVec"));
        let descr = if is_first { 0 } else { made("hipsparseSpSV_createDescr") };
        let kept = KeptSolve::default();
        let mut a = SparseMatrix { cols: 4, ..csr(0x300) };
        a.attributes = [1, 1, 0, 0];
        let (x, y) = (vector(4, 0x400), vector(4, 0x500));
        let alpha = address::<c_void>(0x600).cast_const();
        let system = System { kept: &kept, op: TURNED, alpha, a: &a, x: &x, y: &y, compute: R64 };
        assert!(!system.run(&hip).unwrap(), "nothing was analysed");
        assert_eq!(system.bytes(&hip).unwrap(), AREA as usize);
        let recorded = recorder.recorded();
        // Upper, with a diagonal of ones.
        for attribute in 0..2 {
            let line = format!("hipsparseSpMatSetAttribute {m} {attribute} ");
            let found = recorded.lines().find(|there| there.starts_with(&line));
            assert!(found.is_some_and(|line| line.ends_with(" 4 1")), "{recorded}");
        }
        assert!(!system.run(&hip).unwrap(), "a size is no analysis");
        assert!(system.analyse(&hip, address(0x800)).unwrap());
        assert!(system.run(&hip).unwrap());
        let area = if is_first { " 2048" } else { "" };
        assert_eq!(
            work_of(&recorder),
            [
                format!("hipsparseSpSV_analysis {h} 1 1536 {m} {v} {v} 1 0 {descr} 2048"),
                format!("hipsparseSpSV_solve {h} 1 1536 {m} {v} {v} 1 0 {descr}{area}"),
            ],
            "ROCm {release}"
        );
        // What fails in a solution is no refusal: our own code has no analysis.
        recorder.answer_to(c"hipsparseSpSV_solve", 10);
        assert!(system.run(&hip).is_err());
        recorder.answer_to(c"hipsparseSpSV_analysis", 10);
        assert!(!system.analyse(&hip, address(0x800)).unwrap());
        assert!(!system.run(&hip).unwrap(), "our own code has the analysis");
        recorder.recorded();

        let (b, c) = (dense(4, 2, 0x400), dense(4, 2, 0x500));
        let (kept, d) = (KeptSolve::default(), made("hipsparseCreateDnMat"));
        let descr = if is_first { 0 } else { made("hipsparseSpSM_createDescr") };
        let systems = Systems { kept: &kept, ops: [PLAIN, TURNED], alpha, a: &a, b: &b, c: &c, compute: R64 };
        assert_eq!(systems.bytes(&hip).unwrap(), AREA as usize);
        assert!(systems.analyse(&hip, address(0x800)).unwrap());
        recorder.recorded();
        assert!(systems.run(&hip).unwrap());
        // The work area is the analysis's.
        let wanted = format!("hipsparseSpSM_solve {h} 0 1 1536 {m} {d} {d} 1 0 {descr} 2048");
        assert_eq!(work_of(&recorder), [wanted], "ROCm {release}");
    }
}

#[test]
fn a_product_of_sparse_matrices_is_hipsparse_s_from_the_first_step_on() {
    for release in RELEASES {
        let recorder = recorder(release);
        let hip = call_of(&recorder);
        let kept = KeptProduct::default();
        let (a, b) = (csr(0x300), SparseMatrix { rows: 5, cols: 4, ..csr(0x400) });
        let c = SparseMatrix { cols: 4, nnz: 0, offsets: address(0x111), ..csr(0) };
        let scale = Scale {
            factors: [address::<c_void>(0x600).cast_const(), address::<c_void>(0x700).cast_const()],
            compute: R64,
        };
        let alg = cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG1;
        let product = Products { kept: &kept, ops: [PLAIN, PLAIN], a: &a, b: &b, c: &c, alg };
        let area = address::<c_void>(0x800);
        let mut bytes = 0;
        // With a work area whose size was not asked for hipSPARSE does not begin.
        assert!(!product.estimate(&hip, &scale, [(&mut bytes, area)]).unwrap());
        let begins = product.estimate(&hip, &scale, [(&mut bytes, ptr::null_mut())]).unwrap();
        // Before ROCm 6.2 the steps are others.
        if release.starts_with("5.") {
            assert!(!begins);
            assert!(product.compute(&hip, &scale, [(&mut bytes, area)]).unwrap().is_none());
            assert!(!product.copy(&hip, &scale).unwrap());
            assert_eq!(work_of(&recorder), Vec::<String>::new());
            continue;
        }
        assert!(begins);
        assert_eq!(bytes, AREA as usize);
        recorder.recorded();
        assert!(product.estimate(&hip, &scale, [(&mut bytes, area)]).unwrap());
        assert_eq!(product.compute(&hip, &scale, [(&mut bytes, ptr::null_mut())]).unwrap(), Some(0));
        assert_eq!(product.compute(&hip, &scale, [(&mut bytes, area)]).unwrap(), Some(ENTRIES as usize));
        let work = work_of(&recorder);
        let (h, m, d) =
            (made("hipsparseCreate"), made("hipsparseCreateCsr"), made("hipsparseSpGEMM_createDescr"));
        let step = |name: &str| format!("hipsparseSpGEMM{name} {h} 0 0 1536 {m} {m} 1792 {m} 1 3 {d}");
        assert!(work[0].starts_with(&step("_workEstimation")) && work[0].ends_with(" 2048"), "{work:?}");
        // hipSPARSE has put arrays of its own into C.
        assert_eq!(work[1], format!("hipsparseCsrSetPointers {m} {} 512 0", 0x111));
        assert!(work[2].starts_with(&step("_compute")) && work[2].ends_with(" 0"), "{work:?}");
        let last = &work[3..];
        assert!(last[0].starts_with(&step("_compute")) && last[0].ends_with(" 2048"), "{work:?}");
        assert!(last[1].starts_with(&format!("hipsparseSpMatGetSize {m} ")), "{work:?}");
        // The program has made room, and says where.
        let c = SparseMatrix { nnz: ENTRIES as usize, values: address(0x999), ..c };
        let product = Products { c: &c, ..product };
        assert!(product.copy(&hip, &scale).unwrap());
        assert_eq!(
            work_of(&recorder),
            [format!("hipsparseCsrSetPointers {m} {} 512 {}", 0x111, 0x999), step("_copy")]
        );
        // Another product with the descriptor of this one.
        let other = SparseMatrix { rows: 3, ..a };
        assert!(matches!(Products { a: &other, ..product }.copy(&hip, &scale), Err(Error::InvalidValue(_))));

        // A pattern that is used again.
        let c = SparseMatrix { nnz: 0, ..c };
        let product = Products { c: &c, ..product };
        assert!(product.estimate_reused(&hip, [(&mut bytes, ptr::null_mut())]).unwrap());
        assert!(product.estimate_reused(&hip, [(&mut bytes, area)]).unwrap());
        let (mut second, mut third) = (0, 0);
        let areas = [(&mut bytes, area), (&mut second, area), (&mut third, area)];
        assert_eq!(product.pattern(&hip, areas).unwrap(), Some(ENTRIES as usize));
        recorder.recorded();
        let c = SparseMatrix { nnz: ENTRIES as usize, ..c };
        let product = Products { c: &c, ..product };
        assert!(product.copy_pattern(&hip, [(&mut bytes, area)]).unwrap());
        assert!(product.compute_values(&hip, &scale).unwrap());
        let work = work_of(&recorder);
        let first = format!("hipsparseSpGEMMreuse_copy {h} 0 0 {m} {m} {m} 3 {d} ");
        assert!(work[1].starts_with(&first) && work[1].ends_with(" 2048"), "{work:?}");
        assert_eq!(work[2..], [step("reuse_compute")]);
    }
}

#[test]
fn what_is_no_hipsparse_is_not_taken_for_one() {
    let refused = Library::open(OsStr::new("libc.so.6"));
    assert!(refused.is_err_and(|reason| reason.contains("no hipsparseCreate")));
}

#[test]
fn a_release_whose_soname_is_not_there_falls_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("lib")).unwrap();
    let names = super::library::HIPSPARSE.names;
    for name in ["libhipsparse.so.4", "libhipsparse.so.1", "libhipsparse.so.0"] {
        std::fs::write(dir.path().join("lib").join(name), "").unwrap();
    }
    let found = kit::hip::candidates(names, Some(dir.path()), |_| None);
    let wanted = ["lib/libhipsparse.so.4", "lib/libhipsparse.so.1", "lib/libhipsparse.so.0"]
        .map(|name| dir.path().join(name).into_os_string());
    assert_eq!(found, wanted);
}

#[test]
fn matrices_are_kept_by_what_they_are_for() {
    let recorder = recorder("6.4");
    let kept = Kept::default();
    let coo = SparseMatrix { format: Format::Coo, ..csr(0x300) };
    let first = kept.matrix(recorder.library, Use::ToDense, &coo).unwrap();
    let again =
        kept.matrix(recorder.library, Use::ToDense, &SparseMatrix { values: address(0x10), ..coo }).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let raw = made("hipsparseCreateCoo");
    assert_eq!(work_of(&recorder), [format!("hipsparseCooSetPointers {raw} 256 512 16")]);
    let larger = kept.matrix(recorder.library, Use::ToDense, &SparseMatrix { nnz: 10, ..coo }).unwrap();
    assert!(!Arc::ptr_eq(&first, &larger));
    let blocks = SparseMatrix { format: Format::BlockedEll { size: 2, ell_cols: 4 }, ..csr(0x300) };
    kept.matrix(recorder.library, Use::FromDense, &blocks).unwrap();
    let recorded = recorder.recorded();
    let made = recorded.lines().find(|line| line.starts_with("hipsparseCreateBlockedEll")).unwrap();
    assert!(made.ends_with(" 4 5 2 4 512 768 2 1 1"), "{recorded}");
}
