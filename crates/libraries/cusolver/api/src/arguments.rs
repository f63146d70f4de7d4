//! What calls say of sizes and memory, checked before anything is enqueued.
//!
//! The rule: an array with elements is neither NULL nor out of line, and what is left of it for the work are sizes and addresses that the
//! host can follow ([`kit::far`]): whoever looks at an array says all that is there.

use core::ffi::{c_int, c_uint};

use cusolver_cpu::{Diag, Matrix, Op, Scalar, Side, Uplo};
use kit::far::Extent;
use kit::{Address, far};

use crate::Result;
use crate::error::require;
use crate::types::*;

/// A matrix whose sizes were looked at.
#[derive(Clone, Copy)]
pub struct Given<T> {
    pub rows: i64,
    pub columns: i64,
    pub matrix: Matrix<T>,
}

// SAFETY: an address and sizes.
unsafe impl<T> Send for Given<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Given<T> {}

pub fn size(of: impl Into<i64>) -> Result<i64> {
    let of = of.into();
    require(of >= 0, "a size is negative")?;
    Ok(of)
}

/// An array's address, NULL where it has no elements.
pub fn array<T>(at: *const T, count: i64) -> Result<Address<*mut T>> {
    named(at, count, Extent::of::<T>(count.max(0) as usize))
}

/// The address of what has elements where `count` is not 0.
fn named<T>(at: *const T, count: i64, extent: Extent) -> Result<Address<*mut T>> {
    require(count <= 0 || !at.is_null(), "an array is NULL")?;
    require(count <= 0 || at.is_aligned(), "an array is not aligned to its type")?;
    Ok(Address(far::near(at.cast_mut(), if count <= 0 { Extent::of::<T>(0) } else { extent })?))
}

/// Several arrays of some elements each, so far from each other. Sizes have been looked at.
pub fn arrays<T>(at: *const T, count: i64, number: i64, stride: i64) -> Result<Address<*mut T>> {
    let [count, number, stride] = [count, number, stride].map(|value| value.max(0) as usize);
    named(at, count.min(number) as i64, Extent::lines::<T>(number, count, stride))
}

/// Where one value goes.
pub fn place<T>(at: *mut T) -> Result<Address<*mut T>> {
    array(at, 1)
}

pub fn matrix<T: Scalar>(
    at: *const T,
    (rows, columns): (impl Into<i64>, impl Into<i64>),
    ld: impl Into<i64>,
) -> Result<Given<T>> {
    let (rows, columns, ld) = (size(rows)?, size(columns)?, ld.into());
    require(ld >= rows.max(1), "a leading dimension is smaller than a column")?;
    let count = ld.checked_mul(columns).and_then(|count| count.checked_mul(size_of::<T>() as i64));
    require(count.is_some(), "no memory has such a matrix")?;
    let extent = Extent::lines::<T>(columns as usize, rows as usize, ld as usize);
    let at = named(at, rows.min(columns), extent)?;
    Ok(Given { rows, columns, matrix: Matrix::new(at.get(), ld) })
}

/// The first of several matrices so far from each other. Sizes have been looked at.
pub fn strided<T: Scalar>(
    at: *const T,
    (rows, columns, ld): (i64, i64, i64),
    count: i64,
    stride: i64,
) -> Result<Address<*mut T>> {
    let all =
        if rows == 0 || columns == 0 { 0 } else { (columns - 1).saturating_mul(ld).saturating_add(rows) };
    arrays(at, all, count, stride)
}

/// How many elements of work area a call asks for. None is used, but there are programs that refuse an empty one.
pub fn area(given: i64) -> c_int {
    c_int::try_from(given.max(1)).unwrap_or(c_int::MAX)
}

fn one_of<T: Copy>(number: c_uint, meanings: &[T], what: &'static str) -> Result<T> {
    let found = meanings.get(number as usize).copied();
    found.ok_or(crate::Error::InvalidValue(what))
}

pub fn triangle(uplo: cublasFillMode_t) -> Result<Uplo> {
    one_of(uplo.0, &[Uplo::Lower, Uplo::Upper], "there is no such triangle")
}

pub fn operation(trans: cublasOperation_t) -> Result<Op> {
    one_of(trans.0, &[Op::N, Op::T, Op::C], "there is no such operation")
}

pub fn side(side: cublasSideMode_t) -> Result<Side> {
    one_of(side.0, &[Side::Left, Side::Right], "there is no such side")
}

pub fn diagonal(diag: cublasDiagType_t) -> Result<Diag> {
    one_of(diag.0, &[Diag::NonUnit, Diag::Unit], "there is no such diagonal")
}

/// Whether vectors are wanted.
pub fn vectors(jobz: cusolverEigMode_t) -> Result<bool> {
    one_of(jobz.0, &[false, true], "there is no such job")
}
