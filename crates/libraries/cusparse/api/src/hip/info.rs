//! hipSPARSE's infos of typed calls behind ours.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};

use once_cell::sync::OnceCell;

use super::call::Step;
use super::calls;
use super::library::Library;
use super::objects::Made;
use crate::Result;
use crate::api::info::Info;

/// The functions of one kind of them.
pub struct Kind {
    create: usize,
    destroy: usize,
}

macro_rules! kinds {
    ($($kind:ident $create:ident $destroy:ident;)*) => {
        $(pub const $kind: Kind = Kind { create: calls::$create, destroy: calls::$destroy };)*
    };
}

kinds! {
    BSRIC02 hipsparseCreateBsric02Info hipsparseDestroyBsric02Info;
    BSRILU02 hipsparseCreateBsrilu02Info hipsparseDestroyBsrilu02Info;
    BSRSM2 hipsparseCreateBsrsm2Info hipsparseDestroyBsrsm2Info;
    BSRSV2 hipsparseCreateBsrsv2Info hipsparseDestroyBsrsv2Info;
    COLOR hipsparseCreateColorInfo hipsparseDestroyColorInfo;
    CSRGEMM2 hipsparseCreateCsrgemm2Info hipsparseDestroyCsrgemm2Info;
    CSRIC02 hipsparseCreateCsric02Info hipsparseDestroyCsric02Info;
    CSRILU02 hipsparseCreateCsrilu02Info hipsparseDestroyCsrilu02Info;
    CSRSM2 hipsparseCreateCsrsm2Info hipsparseDestroyCsrsm2Info;
    CSRSV2 hipsparseCreateCsrsv2Info hipsparseDestroyCsrsv2Info;
    CSRU2CSR hipsparseCreateCsru2csrInfo hipsparseDestroyCsru2csrInfo;
    PRUNE hipsparseCreatePruneInfo hipsparseDestroyPruneInfo;
}

/// What of hipSPARSE's lies behind an info of ours.
#[derive(Default)]
pub struct Behind {
    made: OnceCell<Made>,
    /// hipSPARSE does what goes on with the info.
    has_begun: AtomicBool,
}

/// Runs with hipSPARSE's info. What begins says whether the rest is hipSPARSE's, and what that refuses is our own code's from then on.
pub fn with(
    info: &Info,
    library: &'static Library,
    kind: &'static Kind,
    step: Step,
    work: impl FnOnce(*mut c_void) -> Result<bool>,
) -> Result<bool> {
    let behind = &info.hip;
    if step == Step::GoesOn && !behind.has_begun.load(Ordering::Acquire) {
        return Ok(false);
    }
    // HIP differs: hipSPARSE reads the two numbers of a boost on the host when it factorizes, cuSPARSE when it is given them.
    if step != Step::Asks && info.boost.lock().is_some() {
        behind.has_begun.store(false, Ordering::Release);
        return Ok(false);
    }
    let made = behind.made.get_or_try_init(|| Made::new(library, kind.create, kind.destroy))?;
    let done = work(made.raw());
    let is_done = match &done {
        Ok(done) => *done,
        Err(error) => !error.is_refusal(),
    };
    match step {
        Step::Asks => {}
        Step::Begins => behind.has_begun.store(matches!(done, Ok(true)), Ordering::Release),
        Step::GoesOn if !is_done => behind.has_begun.store(false, Ordering::Release),
        Step::GoesOn => {}
    }
    done
}
