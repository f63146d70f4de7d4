//! Orders of sparse matrices in the host's memory. Source: cuSOLVER manual, `cusolverSpXcsrsymrcmHost` and those behind it.
//!
//! Every order here is one that its name promises to look for: fewer entries in factors. `symmdq`, `symamd` and `metisnd` are one of them,
//! approximate minimum degree.

use core::ffi::{c_int, c_void};

use border::Out;
use cusolver_cpu::Field;
use cusolver_cpu::ordering::{Pattern, permuted};
use cusolver_cpu::sparse::Failure;

use super::sparse::{get, slice};
use crate::Result;
use crate::arguments::array;
use crate::description;
use crate::error::require;
use crate::types::*;

/// A matrix by rows as a call gives it.
struct Rows<'a> {
    base: c_int,
    columns: usize,
    starts: &'a [c_int],
    indices: &'a [c_int],
}

impl Rows<'_> {
    /// # Safety
    /// The arrays are there, and nobody writes them, for `'a`.
    unsafe fn new<'a>(
        (m, n, nnz): (c_int, c_int, c_int),
        descr: cusparseMatDescr_t,
        (starts, indices): (*const c_int, *const c_int),
    ) -> Result<Rows<'a>> {
        require(m >= 0 && n >= 0 && nnz >= 0, "a size is negative")?;
        let base = description::base(descr)?;
        let count = if m == 0 { 0 } else { i64::from(m) + 1 };
        let (starts, indices) = (array(starts, count)?, array(indices, nnz.into())?);
        // SAFETY: the caller's word.
        let (starts, indices) =
            unsafe { (slice(starts.get(), count as usize), slice(indices.get(), nnz as usize)) };
        Ok(Rows { base, columns: n as usize, starts, indices })
    }

    fn pattern(&self, counts: impl Fn(usize) -> bool) -> Result<Pattern> {
        let ends = self.starts.get(1..).unwrap_or_default();
        let starts = &self.starts[..ends.len()];
        Ok(Pattern::of_rows(self.base, self.columns, (starts, ends), self.indices, counts)?)
    }
}

/// Writes an order, which counts from 0 whatever the matrix does.
///
/// # Safety
/// `to` is NULL, or has room for as many numbers.
unsafe fn give(order: &[usize], to: *mut c_int) -> Result {
    let to = array(to, order.len() as i64)?;
    for (at, from) in order.iter().enumerate() {
        // SAFETY: the caller's word: room for as many.
        unsafe { to.get().add(at).write(*from as c_int) };
    }
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them, while the call lasts.
pub unsafe fn cusolverSpXcsrsymrcmHost(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    p: *mut c_int,
) -> Result {
    get(handle)?;
    // SAFETY: the caller's word.
    let a = unsafe { Rows::new((n, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }?;
    // SAFETY: the caller's word.
    unsafe { give(&a.pattern(|_| true)?.reverse_cuthill_mckee(), p) }
}

/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpXcsrsymmdqHost(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    p: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe { cusolverSpXcsrsymamdHost(handle, n, nnzA, descrA, csrRowPtrA, csrColIndA, p) }
}

/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpXcsrsymamdHost(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    p: *mut c_int,
) -> Result {
    get(handle)?;
    // SAFETY: the caller's word.
    let a = unsafe { Rows::new((n, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }?;
    // SAFETY: the caller's word.
    unsafe { give(&a.pattern(|_| true)?.minimum_degree()?, p) }
}

/// The options are METIS's, which is not asked.
///
/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpXcsrmetisndHost(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    _options: *const i64,
    p: *mut c_int,
) -> Result {
    // SAFETY: the caller's word.
    unsafe { cusolverSpXcsrsymamdHost(handle, n, nnzA, descrA, csrRowPtrA, csrColIndA, p) }
}

/// An order of the rows by which the diagonal has entries that are not zero. Fewer of them than rows: no order has all.
///
/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpTcsrzfdHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    P: *mut c_int,
    numnz: Out<'_, c_int>,
) -> Result {
    get(handle)?;
    // SAFETY: the caller's word.
    let a = unsafe { Rows::new((n, n, nnz), descrA, (csrRowPtrA, csrColIndA)) }?;
    let values = array(csrValA, nnz.into())?;
    // SAFETY: the caller's word: as many values as entries.
    let values = unsafe { slice(values.get(), nnz as usize) };
    let (order, count) = a.pattern(|at| !values[at].is_zero())?.zero_free_diagonal();
    // SAFETY: the caller's word.
    unsafe { give(&order, P) }?;
    numnz.write(count as c_int);
    Ok(())
}

/// Whether each entry has one across the diagonal, whatever their values. Row `i` ends where `csrEndPtrA` says it.
///
/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpXcsrissymHost(
    handle: cusolverSpHandle_t,
    m: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrEndPtrA: *const c_int,
    csrColIndA: *const c_int,
    issym: Out<'_, c_int>,
) -> Result {
    get(handle)?;
    require(m >= 0 && nnzA >= 0, "a size is negative")?;
    let base = description::base(descrA)?;
    let (starts, ends) = (array(csrRowPtrA, m.into())?, array(csrEndPtrA, m.into())?);
    let indices = array(csrColIndA, nnzA.into())?;
    let rows = m as usize;
    // SAFETY: the caller's word.
    let (starts, ends, indices) =
        unsafe { (slice(starts.get(), rows), slice(ends.get(), rows), slice(indices.get(), nnzA as usize)) };
    let pattern = Pattern::of_rows(base, rows, (starts, ends), indices, |_| true)?;
    issym.write(pattern.is_symmetric().into());
    Ok(())
}

/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpXcsrperm_bufferSizeHost(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    p: *const c_int,
    q: *const c_int,
    bufferSizeInBytes: Out<'_, usize>,
) -> Result {
    get(handle)?;
    // SAFETY: the caller's word.
    unsafe { Rows::new((m, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }?;
    array(p, m.into())?;
    array(q, n.into())?;
    // Not used, but there are programs that refuse an empty one.
    bufferSizeInBytes.write(size_of::<c_int>());
    Ok(())
}

/// `B = A(p, q)` in A's place, columns in order; `map`, which the caller has filled, goes with the entries.
///
/// # Safety
/// As [`cusolverSpXcsrsymrcmHost`].
pub unsafe fn cusolverSpXcsrpermHost(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *mut c_int,
    csrColIndA: *mut c_int,
    p: *const c_int,
    q: *const c_int,
    map: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    get(handle)?;
    // SAFETY: the caller's word.
    let a = unsafe { Rows::new((m, n, nnzA), descrA, (csrRowPtrA.cast_const(), csrColIndA.cast_const())) }?;
    let (rows, columns, map) = (array(p, m.into())?, array(q, n.into())?, array(map, nnzA.into())?);
    let (to_starts, to_indices) = (array(csrRowPtrA, m.into())?, array(csrColIndA, nnzA.into())?);
    let base = a.base;
    // Of numbers that are none `permuted` tells.
    let numbers = |of: &[c_int], base: c_int| -> Vec<usize> {
        of.iter().map(|it| usize::try_from(i64::from(*it) - i64::from(base)).unwrap_or(usize::MAX)).collect()
    };
    let (starts, indices) = (numbers(a.starts, base), numbers(a.indices, base));
    let ends = starts.last().copied().unwrap_or(0);
    if ends != indices.len() || !starts.is_sorted() {
        return Err(Failure::NotAMatrix.into());
    }
    // SAFETY: the caller's word: as many rows, columns and entries.
    let (rows, columns, before) = unsafe {
        (
            slice(rows.get(), m as usize),
            slice(columns.get(), n as usize),
            slice(map.get(), nnzA as usize).to_vec(),
        )
    };
    let orders = (numbers(rows, 0), numbers(columns, 0));
    let (starts, indices, from) = permuted((&starts, &indices), (&orders.0, &orders.1))?;
    // SAFETY: as above; nothing that was read of them is used any more.
    unsafe {
        if m > 0 {
            (0..).zip(&starts).for_each(|(i, start)| to_starts.get().offset(i).write(*start as c_int + base));
        }
        (0..).zip(&indices).for_each(|(i, index)| to_indices.get().offset(i).write(*index as c_int + base));
        (0..).zip(&from).for_each(|(i, from)| map.get().offset(i).write(before[*from]));
    }
    Ok(())
}
