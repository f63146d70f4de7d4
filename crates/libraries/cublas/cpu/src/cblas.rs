//! A CBLAS found by `dlopen`: OpenBLAS, BLIS, MKL, or whatever has `cblas_?gemm`.
//!
//! Once opened it computes every product whose sizes fit its integers; it stays loaded for the process's life.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::{Op, Scalar};

/// Where a CBLAS usually is, in the order in which [`find`] tries.
pub const NAMES: [&str; 6] = [
    "libopenblas.so.0",
    "libopenblas64.so.0",
    "libblis.so.4",
    "libblis64.so.4",
    "libmkl_rt.so.2",
    "libcblas.so.3",
];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {reason}")]
    Open { path: String, reason: String },
    #[error("{path} has no {symbol}")]
    NotCblas { path: String, symbol: &'static str },
}

/// The width of a library's integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 32 bits.
    Lp64,
    /// 64 bits.
    Ilp64,
}

/// What was opened.
#[derive(Clone, Debug)]
pub struct Info {
    pub path: String,
    pub width: Width,
    /// What the library says of itself, where we know how to ask.
    pub version: Option<String>,
}

type Function = unsafe extern "C" fn();

/// How libraries spell `cblas_sgemm`. The spellings with 64 promise wide integers.
const SPELLINGS: [Spelling; 5] = [
    Spelling { before: "", after: "64_", width: Some(Width::Ilp64) },
    Spelling { before: "scipy_", after: "64_", width: Some(Width::Ilp64) },
    // MKL's, beside the plain names.
    Spelling { before: "", after: "_64", width: Some(Width::Ilp64) },
    Spelling { before: "", after: "", width: None },
    Spelling { before: "scipy_", after: "", width: None },
];

struct Spelling {
    before: &'static str,
    after: &'static str,
    width: Option<Width>,
}

/// The gemms' names, in [`letter`]'s order.
const GEMMS: [&str; 4] = ["cblas_sgemm", "cblas_dgemm", "cblas_cgemm", "cblas_zgemm"];

pub(crate) struct Cblas {
    info: Info,
    gemm: [Function; 4],
    _library: Library,
}

static CURRENT: AtomicPtr<Cblas> = AtomicPtr::new(null_mut());

/// The library that [`open`] or [`find`] chose.
pub(crate) fn current() -> Option<&'static Cblas> {
    // SAFETY: what was once stored is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Takes the products from this library from now on.
pub fn open(path: &str) -> Result<Info, Error> {
    let cblas = Cblas::open(path)?;
    let info = cblas.info.clone();
    CURRENT.store(Box::into_raw(Box::new(cblas)), Ordering::Release);
    Ok(info)
}

/// Takes the products from the first of [`NAMES`] that is installed.
pub fn find() -> Option<Info> {
    NAMES.iter().find_map(|name| open(name).ok())
}

/// Takes the products from the `gemm` crate again, as at the start.
pub fn leave() {
    CURRENT.store(null_mut(), Ordering::Release);
}

/// What is in use.
pub fn info() -> Option<Info> {
    current().map(|cblas| cblas.info.clone())
}

impl Cblas {
    fn open(path: &str) -> Result<Self, Error> {
        // SAFETY: the library's constructors run, as everyone's who opens it.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| Error::Open { path: path.to_owned(), reason: reason(&error) })?;
        let lookup = |name: &str| -> Option<Function> {
            // SAFETY: only called with the signature that the name has.
            unsafe { library.get::<Function>(name.as_bytes()) }.ok().map(|symbol| *symbol)
        };
        let missing = |symbol| Error::NotCblas { path: path.to_owned(), symbol };
        for spelling in &SPELLINGS {
            let spelled = |name: &str| lookup(&format!("{}{name}{}", spelling.before, spelling.after));
            if spelled(GEMMS[0]).is_none() {
                continue;
            }
            let mut gemm: [Option<Function>; 4] = [None; 4];
            for (slot, name) in gemm.iter_mut().zip(GEMMS) {
                *slot = Some(spelled(name).ok_or_else(|| missing(name))?);
            }
            let width = match spelling.width {
                Some(width) => width,
                None => measure(spelled("cblas_isamax").ok_or_else(|| missing("cblas_isamax"))?),
            };
            let info = Info { path: path.to_owned(), width, version: version(lookup) };
            return Ok(Self {
                info,
                gemm: gemm.map(|found| found.expect("each was found")),
                _library: library,
            });
        }
        Err(missing(GEMMS[0]))
    }

    /// Whether the library's integers can say this size.
    pub fn fits(&self, size: i64) -> bool {
        self.info.width == Width::Ilp64 || i32::try_from(size).is_ok()
    }

    /// [`crate::gemm()`] by the library.
    ///
    /// # Safety
    /// As there; every size [`fits`](Self::fits).
    #[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
    pub unsafe fn gemm<S: Scalar>(
        &self,
        op_a: Op,
        op_b: Op,
        m: i64,
        n: i64,
        k: i64,
        alpha: S,
        a: *const S,
        lda: i64,
        b: *const S,
        ldb: i64,
        beta: S,
        c: *mut S,
        ldc: i64,
    ) {
        let function = self.gemm[letter::<S>()];
        // SAFETY: the caller's word; the name says which signature the function has, the width which integers. Real
        // factors are given by value and complex ones by address.
        unsafe {
            macro_rules! call {
                ($int:ty, $factor:ty, $give:expr) => {{
                    type Gemm<S, F> = unsafe extern "C" fn(
                        c_int,
                        c_int,
                        c_int,
                        $int,
                        $int,
                        $int,
                        F,
                        *const S,
                        $int,
                        *const S,
                        $int,
                        F,
                        *mut S,
                        $int,
                    );
                    let give = $give;
                    transmute::<Function, Gemm<S, $factor>>(function)(
                        COLUMN_MAJOR,
                        transposition(op_a),
                        transposition(op_b),
                        m as $int,
                        n as $int,
                        k as $int,
                        give(&alpha),
                        a,
                        lda as $int,
                        b,
                        ldb as $int,
                        give(&beta),
                        c,
                        ldc as $int,
                    )
                }};
            }
            let address = |factor: &S| std::ptr::from_ref(factor).cast::<c_void>();
            match (self.info.width, S::IS_COMPLEX) {
                (Width::Lp64, false) => call!(i32, S, |factor: &S| *factor),
                (Width::Lp64, true) => call!(i32, *const c_void, address),
                (Width::Ilp64, false) => call!(i64, S, |factor: &S| *factor),
                (Width::Ilp64, true) => call!(i64, *const c_void, address),
            }
        }
    }
}

const COLUMN_MAJOR: c_int = 102;

fn transposition(op: Op) -> c_int {
    match op {
        Op::N => 111,
        Op::T => 112,
        Op::C => 113,
    }
}

/// S, D, C or Z.
fn letter<S: Scalar>() -> usize {
    2 * usize::from(S::IS_COMPLEX) + usize::from(size_of::<S::Real>() == size_of::<f64>())
}

/// How wide the integers are that `isamax` takes: 32 bits of this n are 2, 64 bits of it are less than none.
fn measure(isamax: Function) -> Width {
    let n = (-1_i64 << 32) | 2;
    let x = [1.0_f32, 2.0];
    // SAFETY: two elements are there, and an increment of 1 says so in either width.
    let largest = unsafe {
        transmute::<Function, unsafe extern "C" fn(i64, *const f32, i64) -> usize>(isamax)(n, x.as_ptr(), 1)
    };
    // A library may return 32 bits and leave the others as they were.
    if largest as u32 == 1 { Width::Lp64 } else { Width::Ilp64 }
}

fn version(lookup: impl Fn(&str) -> Option<Function>) -> Option<String> {
    const ASK: [&str; 5] = [
        "openblas_get_config64_",
        "openblas_get_config",
        "scipy_openblas_get_config64_",
        "scipy_openblas_get_config",
        "bli_info_get_version_str",
    ];
    let function = ASK.into_iter().find_map(lookup)?;
    // SAFETY: each of these takes nothing and returns a static text.
    let text = unsafe { transmute::<Function, unsafe extern "C" fn() -> *const c_char>(function)() };
    // SAFETY: as above.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().trim_end().to_owned())
}

fn reason(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
