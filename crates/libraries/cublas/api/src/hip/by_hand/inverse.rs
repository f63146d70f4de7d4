//! Inverses of small matrices that stay as they are.
//!
//! HIP differs: hipBLAS factorizes in place. So the matrices are copied, and the copies factorized, in memory that lasts
//! for the work on the stream.

use core::ffi::c_int;

use kit::driver::{check as check_driver, driver};

use crate::hip::call::{HipCall, check};
use crate::hip::calls;
use crate::hip::convert::*;
use crate::*;

/// Device memory of the stream: what is enqueued before it ends may use it.
struct Scratch<'h> {
    address: u64,
    hip: &'h HipCall,
}

impl Scratch<'_> {
    fn new(hip: &HipCall, bytes: usize) -> Result<Scratch<'_>> {
        let mut address = 0;
        // SAFETY: `address` is writable.
        let code = unsafe { (driver()?.cuMemAllocAsync)(&mut address, bytes, hip.stream) };
        check_driver("cuMemAllocAsync", code).map_err(|_| Error::AllocFailed("memory for factors"))?;
        Ok(Scratch { address, hip })
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            // SAFETY: it came from `new`, and is freed once.
            let _ = unsafe { (driver.cuMemFreeAsync)(self.address, self.hip.stream) };
        }
    }
}

/// Where the parts of the scratch memory are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The copies, n × n each.
    factors: u64,
    /// A pointer to each copy.
    pointers: u64,
    pivots: u64,
    bytes: usize,
}

impl Parts {
    pub fn at(address: u64, n: usize, batch: usize, element_bytes: usize) -> Parts {
        // Widest first, so that each is aligned.
        let factors_bytes = n * n * batch * element_bytes;
        let pointers_bytes = batch * size_of::<u64>();
        let pointers = address + factors_bytes.next_multiple_of(16) as u64;
        let pivots = pointers + pointers_bytes as u64;
        let bytes = (pivots - address) as usize + n * batch * size_of::<c_int>();
        Parts { factors: address, pointers, pivots, bytes }
    }

    #[cfg(test)]
    pub fn of(factors: u64, pointers: u64, pivots: u64, bytes: usize) -> Parts {
        Parts { factors, pointers, pivots, bytes }
    }

    fn pointers_to_copies(&self, n: usize, batch: usize, element_bytes: usize) -> Vec<u64> {
        (0..batch).map(|index| self.factors + (index * n * n * element_bytes) as u64).collect()
    }
}

/// Largest side that cuBLAS inverts.
const MAX_SIDE: c_int = 32;

macro_rules! inverses {
    ($($name:ident $enqueue:ident: $ty:ty, $one:expr, $copy:expr, $factorize:ident, $invert:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $name(
            hip: &HipCall,
            n: c_int,
            A: *const *const $ty,
            lda: c_int,
            Ainv: *const *mut $ty,
            lda_inv: c_int,
            info: *mut c_int,
            batchSize: c_int,
        ) -> Result {
            let (Ok(side @ 0..), Ok(batch)) = (usize::try_from(n), usize::try_from(batchSize)) else {
                return Err(Error::InvalidValue("n or batchSize"));
            };
            require(n <= MAX_SIDE && lda >= n.max(1) && lda_inv >= n.max(1), "n, lda or lda_inv")?;
            if side == 0 || batch == 0 {
                return Ok(());
            }
            const BYTES: usize = size_of::<$ty>();
            let scratch = Scratch::new(hip, Parts::at(0, side, batch, BYTES).bytes)?;
            let parts = Parts::at(scratch.address, side, batch, BYTES);
            let copies = parts.pointers_to_copies(side, batch, BYTES);
            // SAFETY: the copies' addresses go where they have room; CUDA has read pageable memory when the call returns.
            let code = unsafe {
                (driver()?.cuMemcpyHtoDAsync_v2)(parts.pointers, copies.as_ptr().cast(), size_of_val(&copies[..]), hip.stream)
            };
            check_driver("cuMemcpyHtoDAsync", code)?;
            // SAFETY: the caller's promise.
            unsafe { $enqueue(hip, parts, n, A, lda, Ainv, lda_inv, info, batchSize) }
        }

        /// The three steps, with the scratch memory ready.
        ///
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub(crate) unsafe fn $enqueue(
            hip: &HipCall,
            parts: Parts,
            n: c_int,
            A: *const *const $ty,
            lda: c_int,
            Ainv: *const *mut $ty,
            lda_inv: c_int,
            info: *mut c_int,
            batchSize: c_int,
        ) -> Result {
            let copies: *const *mut $ty = core::ptr::without_provenance(parts.pointers as usize);
            let pivots: *mut c_int = core::ptr::without_provenance_mut(parts.pivots as usize);
            let (one, zero): ($ty, $ty) = ($one, <$ty>::default());
            hip.with_factors_on_host(|| {
                let add = hip.function($copy)?;
                let same = hipblasOperation_t::HIPBLAS_OP_N;
                // SAFETY: hipBLAS's signature (tools/data/hip); the caller's promise.
                unsafe {
                    let add: unsafe extern "C" fn(
                        hipblasHandle_t, hipblasOperation_t, hipblasOperation_t, c_int, c_int,
                        *const $ty, *const *const $ty, c_int, *const $ty, *const *const $ty, c_int,
                        *const *mut $ty, c_int, c_int,
                    ) -> hipblasStatus_t = core::mem::transmute(add);
                    check(add(hip.handle, same, same, n, n, &one, A, lda, &zero, A, lda, copies, n, batchSize))
                }
            })?;
            // SAFETY: the caller's promise; what the factorization says of a singular matrix the inversion says again.
            unsafe {
                calls::$factorize(hip, n, copies, n, pivots, info, batchSize)?;
                calls::$invert(hip, n, copies.cast(), n, pivots, Ainv, lda_inv, info, batchSize)
            }
        }
    )* };
}

inverses! {
    cublasSmatinvBatched enqueue_s: f32, 1., c"hipblasSgeamBatched", cublasSgetrfBatched, cublasSgetriBatched;
    cublasDmatinvBatched enqueue_d: f64, 1., c"hipblasDgeamBatched", cublasDgetrfBatched, cublasDgetriBatched;
    cublasCmatinvBatched enqueue_c: cuComplex, cuComplex::new(1., 0.), c"hipblasCgeamBatched", cublasCgetrfBatched,
        cublasCgetriBatched;
    cublasZmatinvBatched enqueue_z: cuDoubleComplex, cuDoubleComplex::new(1., 0.), c"hipblasZgeamBatched",
        cublasZgetrfBatched, cublasZgetriBatched;
}
