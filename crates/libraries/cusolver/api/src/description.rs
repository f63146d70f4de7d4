//! What a `cusparseMatDescr_t` says. It is an object of cuSPARSE's, which the process has if it has made one, and which alone knows it.

use core::ffi::{CStr, c_int, c_uint, c_void};
use core::ptr::NonNull;
use std::sync::OnceLock;

use crate::error::require;
use crate::types::cusparseMatDescr_t;
use crate::{Error, Result};

const LIBRARIES: [&CStr; 2] = [c"libcusparse.so.12", c"libcusparse.so.11"];

type Ask = unsafe extern "C" fn(cusparseMatDescr_t) -> c_uint;
type Set = unsafe extern "C" fn(cusparseMatDescr_t, c_uint) -> c_int;

struct Sparse {
    base: Ask,
    kind: Ask,
    set_kind: Set,
}

fn sparse() -> Option<&'static Sparse> {
    static SPARSE: OnceLock<Sparse> = OnceLock::new();
    if let Some(known) = SPARSE.get() {
        return Some(known);
    }
    // CUDA 11's object and the later ones' are one implementation, and know each other's objects.
    let found = LIBRARIES.iter().find_map(|library| {
        let function = |name| kit::release::function_of(library, name);
        let ask = |at: NonNull<c_void>| {
            // SAFETY: the signature of the two functions below, in cusparse.h.
            unsafe { core::mem::transmute::<*mut c_void, Ask>(at.as_ptr()) }
        };
        // SAFETY: cusparse.h's signature.
        let set = |at: NonNull<c_void>| unsafe { core::mem::transmute::<*mut c_void, Set>(at.as_ptr()) };
        Some(Sparse {
            base: ask(function(c"cusparseGetMatIndexBase")?),
            kind: ask(function(c"cusparseGetMatType")?),
            set_kind: set(function(c"cusparseSetMatType")?),
        })
    });
    found.map(|found| SPARSE.get_or_init(|| found))
}

/// From which number the matrix counts, if it is a general one.
pub fn base(descr: cusparseMatDescr_t) -> Result<c_int> {
    require(!descr.is_null(), "the matrix's descriptor is NULL")?;
    let sparse = sparse().ok_or(Error::InvalidValue("the process has no cuSPARSE that made a descriptor"))?;
    // SAFETY: cuSOLVER's contract: a descriptor of cuSPARSE's; ours looks it up.
    let (kind, base) = unsafe { ((sparse.kind)(descr), (sparse.base)(descr)) };
    // The type that it has, which only a descriptor that there is takes.
    // SAFETY: as above.
    require(unsafe { (sparse.set_kind)(descr, kind) } == 0, "the matrix's descriptor is none")?;
    if kind == 0 { Ok(base as c_int) } else { Err(Error::NotGeneral) }
}
