//! Info objects of the typed calls: what is known of a matrix beside its arrays, and where it has no pivot. Source: cuSPARSE manual,
//! `csrsv2Info_t` and the like.

use core::ffi::c_int;

use border::Out;
use parking_lot::Mutex;

use super::triangular::Analysis;
use crate::descriptor::Descriptors;
use crate::handle;
use crate::hip::info::Behind;
use crate::memory::{Factor, check_array};
use crate::types::*;
use crate::{Error, Result};

/// That of each kind: what a kind does not need stays empty.
#[derive(Default)]
pub struct Info {
    /// The first row without a pivot, counted from the matrix's base; of blocks the row of blocks.
    pub zero: Mutex<Option<c_int>>,
    /// The tolerance, and what is put in a small pivot's place.
    pub boost: Mutex<Option<(Factor, Factor)>>,
    pub(super) analysis: Analysis,
    /// Where each entry was before rows were sorted.
    pub order: Mutex<Vec<usize>>,
    /// Whether a sum has a product and another matrix.
    pub terms: Mutex<(bool, bool)>,
    pub(crate) hip: Behind,
}

// SAFETY: addresses are numbers until the work follows them.
unsafe impl Send for Info {}
// SAFETY: as above.
unsafe impl Sync for Info {}

pub static INFOS: Descriptors<Info> = Descriptors::new();

pub fn cusparseCreateCsrilu02Info<I>(info: Out<'_, *mut I>) -> Result {
    info.write(INFOS.add(Info::default()));
    Ok(())
}

/// NULL is no error.
pub fn cusparseDestroyCsrilu02Info<I>(info: *mut I) -> Result {
    INFOS.remove(info)
}

/// Waits for the stream. The position is −1 where all pivots are there.
///
/// # Safety
/// `position` is NULL or a number's place, on the host or on the device.
pub unsafe fn cusparseXcsrilu02_zeroPivot<I>(
    handle: cusparseHandle_t,
    info: *mut I,
    position: *mut c_int,
) -> Result {
    let (context, info) = (handle::get(handle)?, INFOS.get(info)?);
    check_array(position.cast(), 1, align_of::<c_int>())?;
    let zero = context.now(position, |position: *mut c_int| {
        let zero = *info.zero.lock();
        // SAFETY: not NULL and aligned; the caller's promise.
        unsafe { position.write(zero.unwrap_or(-1)) };
        zero
    })?;
    if zero.is_some() { Err(Error::ZeroPivot) } else { Ok(()) }
}

pub use self::cusparseCreateCsrilu02Info as cusparseCreateBsric02Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateBsrilu02Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateBsrsm2Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateBsrsv2Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateColorInfo;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateCsrgemm2Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateCsric02Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateCsrsm2Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateCsrsv2Info;
pub use self::cusparseCreateCsrilu02Info as cusparseCreateCsru2csrInfo;
pub use self::cusparseCreateCsrilu02Info as cusparseCreatePruneInfo;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyBsric02Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyBsrilu02Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyBsrsm2Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyBsrsv2Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyColorInfo;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyCsrgemm2Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyCsric02Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyCsrsm2Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyCsrsv2Info;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyCsru2csrInfo;
pub use self::cusparseDestroyCsrilu02Info as cusparseDestroyPruneInfo;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXbsric02_zeroPivot;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXbsrilu02_zeroPivot;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXbsrsm2_zeroPivot;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXbsrsv2_zeroPivot;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXcsric02_zeroPivot;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXcsrsm2_zeroPivot;
pub use self::cusparseXcsrilu02_zeroPivot as cusparseXcsrsv2_zeroPivot;
