//! Sparse vectors in bare arrays. Source: cuSPARSE manual of CUDA 11, `axpyi`, `gthr`, `gthrz`, `sctr`, `roti`.

use core::ffi::c_int;

use crate::Result;
use crate::bare::*;
use crate::descriptor::check_base;
use crate::handle;
use crate::memory::{Computed, Factor, check_array, slice, slice_mut};
use crate::types::*;

/// Entries, and the vector that they are of: nobody says how long it is, so it ends behind the last of them.
#[derive(Clone, Copy)]
struct Vector<T> {
    nnz: usize,
    values: *mut T,
    indices: *const c_int,
    y: *mut T,
    base: usize,
}

kit::addresses! { Vector<T> { values, indices, y } }

/// The slices behind it.
type Slices<'a, T> = (&'a [c_int], &'a mut [T], &'a mut [T]);

impl<T: Computed> Vector<T> {
    fn new(
        nnz: c_int,
        (values, indices, y): (*const T, *const c_int, *const T),
        base: cusparseIndexBase_t,
    ) -> Result<Vector<T>> {
        let nnz = count(nnz)?;
        check_base(base)?;
        check_array(values.cast(), nnz, align_of::<T>())?;
        check_numbers(indices, nnz)?;
        check_array(y.cast(), nnz, align_of::<T>())?;
        Ok(Vector { nnz, values: values.cast_mut(), indices, y: y.cast_mut(), base: base.0 as usize })
    }

    /// # Safety
    /// The arrays are there, and nobody else uses them.
    unsafe fn slices<'a>(self) -> Slices<'a, T> {
        // SAFETY: the caller's promise.
        let indices = unsafe { slice::<c_int>(self.indices.cast(), self.nnz) };
        let place = |index: &c_int| {
            usize::try_from(i64::from(*index) - self.base as i64).expect("an entry in front of the first")
        };
        let length = indices.iter().map(place).max().map_or(0, |last| last + 1);
        // SAFETY: as above.
        unsafe { (indices, slice_mut(self.values.cast(), self.nnz), slice_mut(self.y.cast(), length)) }
    }

    /// The work gets the factors, too.
    fn run<const N: usize>(
        self,
        handle: cusparseHandle_t,
        factors: [Factor; N],
        work: impl Fn(Slices<'_, T>, usize, [T; N]) + Send + Sync + 'static,
    ) -> Result {
        handle::get(handle)?.enqueue((self, factors), move |(vector, factors)| {
            // SAFETY: cuSPARSE's contract: the arrays and the factors are there until the stream has come here.
            let (slices, factors) = unsafe { (vector.slices(), factors.map(|factor| factor.get::<T>())) };
            work(slices, vector.base, factors);
        })
    }
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseTaxpyi<T: Computed>(
    handle: cusparseHandle_t,
    nnz: c_int,
    alpha: *const T,
    xVal: *const T,
    xInd: *const c_int,
    y: *mut T,
    idxBase: cusparseIndexBase_t,
) -> Result {
    // SAFETY: the caller's promise.
    let alpha = unsafe { Factor::new(alpha.cast(), T::TYPE, handle::get(handle)?.on_host()) }?;
    let vector = Vector::new(nnz, (xVal, xInd, y.cast_const()), idxBase)?;
    vector.run(handle, [alpha], |(indices, values, y), base, [alpha]| {
        cusparse_cpu::axpby::<T, c_int, T>((alpha, T::ONE), (indices, values, base), y);
    })
}

/// # Safety
/// As [`cusparseTaxpyi`].
pub unsafe fn cusparseTgthr<T: Computed>(
    handle: cusparseHandle_t,
    nnz: c_int,
    y: *const T,
    xVal: *mut T,
    xInd: *const c_int,
    idxBase: cusparseIndexBase_t,
) -> Result {
    let vector = Vector::new(nnz, (xVal.cast_const(), xInd, y), idxBase)?;
    vector.run(handle, [], |(indices, values, y), base, []| cusparse_cpu::gather(y, (indices, base), values))
}

/// What is gathered is 0 afterwards.
///
/// # Safety
/// As [`cusparseTaxpyi`].
pub unsafe fn cusparseTgthrz<T: Computed>(
    handle: cusparseHandle_t,
    nnz: c_int,
    y: *mut T,
    xVal: *mut T,
    xInd: *const c_int,
    idxBase: cusparseIndexBase_t,
) -> Result {
    let vector = Vector::new(nnz, (xVal.cast_const(), xInd, y.cast_const()), idxBase)?;
    vector.run(handle, [], |(indices, values, y), base, []| {
        cusparse_cpu::gather(y, (indices, base), values);
        let zeros = vec![T::ZERO; indices.len()];
        cusparse_cpu::scatter((indices, &zeros, base), y);
    })
}

/// # Safety
/// As [`cusparseTaxpyi`].
pub unsafe fn cusparseTsctr<T: Computed>(
    handle: cusparseHandle_t,
    nnz: c_int,
    xVal: *const T,
    xInd: *const c_int,
    y: *mut T,
    idxBase: cusparseIndexBase_t,
) -> Result {
    let vector = Vector::new(nnz, (xVal, xInd, y.cast_const()), idxBase)?;
    vector.run(handle, [], |(indices, values, y), base, []| cusparse_cpu::scatter((indices, values, base), y))
}

/// # Safety
/// As [`cusparseTaxpyi`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTroti<T: Computed>(
    handle: cusparseHandle_t,
    nnz: c_int,
    xVal: *mut T,
    xInd: *const c_int,
    y: *mut T,
    c: *const T,
    s: *const T,
    idxBase: cusparseIndexBase_t,
) -> Result {
    let on_host = handle::get(handle)?.on_host();
    // SAFETY: the caller's promise.
    let turn = unsafe { Factor::pair([c.cast(), s.cast()], T::TYPE, on_host) }?;
    let vector = Vector::new(nnz, (xVal.cast_const(), xInd, y.cast_const()), idxBase)?;
    vector.run(handle, turn.into(), |(indices, values, y), base, [c, s]| {
        cusparse_cpu::rotate((c, s), (indices, values, base), y);
    })
}
