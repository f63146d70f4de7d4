//! Sums and products of sparse matrices in bare arrays. Source: cuSPARSE manual, `csrgeam2`, and `csrgemm2` (of 11).

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::{Index, Matrix, Product, Row};

use super::conversion::SOME;
use super::info::INFOS;
use crate::bare::*;
use crate::descriptor::SparseMatrix;
use crate::error::require;
use crate::handle;
use crate::memory::{Computed, Factor, matrix, slice_mut};
use crate::types::*;
use crate::{Error, Result};

/// Adds a row.
type Add<C> = Box<dyn Fn(usize, &mut Row<C>) + Sync>;

/// What is added to a sum: how much there is to do in front of a row, and the adding of a row.
pub(super) struct Term<C> {
    before: Box<dyn Fn(usize) -> usize + Sync>,
    add: Add<C>,
}

impl<C: Computed> Term<C> {
    /// `alpha · A`, or the conjugated of it.
    pub(super) fn scaled<I: Index>(alpha: C, a: Matrix<'static, C, I>, conjugated: bool) -> Term<C> {
        let a = std::sync::Arc::new(a);
        let of = a.clone();
        Term {
            before: Box::new(move |row| of.before(row)),
            add: Box::new(move |row, line| line.add_row((alpha, conjugated), &a, row)),
        }
    }

    /// `alpha · A · B`
    fn product<I: Index>(alpha: C, a: Matrix<'static, C, I>, b: Matrix<'static, C, I>) -> Term<C> {
        let before = cusparse_cpu::products(&a, &b);
        Term {
            before: Box::new(move |row| before[row]),
            add: Box::new(move |row, line| line.add_product(alpha, (&a, &b), row)),
        }
    }
}

/// By rows, with its columns in order.
pub(super) fn sum<C: Computed>(size: (usize, usize), terms: &[Term<C>]) -> Product<C> {
    let before = |row| terms.iter().map(|term| (term.before)(row)).sum();
    cusparse_cpu::sum_rows(size, before, |row, line| terms.iter().for_each(|term| (term.add)(row, line)))
}

/// Where a sum goes.
#[derive(Clone, Copy)]
struct Target {
    base: usize,
    offsets: *mut c_int,
    indices: *mut c_int,
    values: *mut c_void,
    /// Where the number of entries goes.
    total: *mut c_int,
}

kit::addresses! { Target { offsets, indices, values, total } }

impl Target {
    fn new(descr: cusparseMatDescr_t) -> Result<Target> {
        let base = general(descr)?.base.0 as usize;
        let none = core::ptr::null_mut();
        Ok(Target { base, offsets: none, indices: none, values: none.cast(), total: none })
    }

    /// Writes what has a place.
    ///
    /// # Safety
    /// Room for all, which nobody else uses.
    unsafe fn write<C: Computed>(self, product: &Product<C>) {
        let count = product.len();
        // SAFETY: the caller's promise.
        unsafe {
            if !self.offsets.is_null() {
                product
                    .copy_offsets(self.base, slice_mut::<c_int>(self.offsets.cast(), product.offsets.len()));
            }
            if !self.indices.is_null() {
                product.copy_indices(self.base, slice_mut::<c_int>(self.indices.cast(), count));
                product.copy_values(slice_mut::<C>(self.values, count));
            }
            tell(self.total, count);
        }
    }
}

/// Where there are entries alone.
type Pattern = (*const c_int, *const c_int);

/// Asks for the pattern of `A + B`, or of `A · B + D`: both may be missing.
fn count_sum(
    handle: cusparseHandle_t,
    size: (c_int, c_int),
    (product, others): (Option<[SparseMatrix; 2]>, [Option<SparseMatrix>; 2]),
    target: Target,
) -> Result {
    let context = handle::get(handle)?;
    let size = (count(size.0)?, count(size.1)?);
    check_numbers(target.offsets, size.0 + 1)?;
    context.enqueue((product, others[0], others[1], target), move |(product, a, b, target)| {
        let mut terms = Vec::new();
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            if let Some([a, b]) = product {
                terms.push(Term::product(1.0, pattern_matrix::<c_int>(&a), pattern_matrix::<c_int>(&b)));
            }
            for a in [a, b].into_iter().flatten() {
                terms.push(Term::scaled(1.0, pattern_matrix::<c_int>(&a), false));
            }
            target.write(&sum::<f32>(size, &terms));
        }
    })?;
    // The number is on the host when the call is over.
    if !target.total.is_null() && context.on_host() { context.deliver() } else { Ok(()) }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrgeam2_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    nnzA: c_int,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    beta: *const T,
    descrB: cusparseMatDescr_t,
    nnzB: c_int,
    csrSortedValB: *const T,
    csrSortedRowPtrB: *const c_int,
    csrSortedColIndB: *const c_int,
    descrC: cusparseMatDescr_t,
    _csrSortedValC: *const T,
    _csrSortedRowPtrC: *const c_int,
    _csrSortedColIndC: *const c_int,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    require(!alpha.is_null() && !beta.is_null(), "alpha or beta is NULL")?;
    // The size may be asked for before there are values.
    csr_pattern((m, n, nnzA), descrA, (csrSortedRowPtrA, csrSortedColIndA))?;
    csr_pattern((m, n, nnzB), descrB, (csrSortedRowPtrB, csrSortedColIndB))?;
    let _ = (csrSortedValA, csrSortedValB);
    Target::new(descrC)?;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcsrgeam2Nnz(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    descrA: cusparseMatDescr_t,
    nnzA: c_int,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    descrB: cusparseMatDescr_t,
    nnzB: c_int,
    csrSortedRowPtrB: *const c_int,
    csrSortedColIndB: *const c_int,
    descrC: cusparseMatDescr_t,
    csrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
    _workspace: *mut c_void,
) -> Result {
    let a = csr_pattern((m, n, nnzA), descrA, (csrSortedRowPtrA, csrSortedColIndA))?;
    let b = csr_pattern((m, n, nnzB), descrB, (csrSortedRowPtrB, csrSortedColIndB))?;
    require(!nnzTotalDevHostPtr.is_null(), "there is no place for the number of entries")?;
    let target = Target { offsets: csrSortedRowPtrC, total: nnzTotalDevHostPtr, ..Target::new(descrC)? };
    count_sum(handle, (m, n), (None, [Some(a), Some(b)]), target)
}

/// # Safety
/// As [`cusparseXcsrgeam2Nnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrgeam2<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    nnzA: c_int,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    beta: *const T,
    descrB: cusparseMatDescr_t,
    nnzB: c_int,
    csrSortedValB: *const T,
    csrSortedRowPtrB: *const c_int,
    csrSortedColIndB: *const c_int,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *mut c_int,
    csrSortedColIndC: *mut c_int,
    _pBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let a = csr((m, n, nnzA), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA))?;
    let b = csr((m, n, nnzB), descrB, (csrSortedValB, csrSortedRowPtrB, csrSortedColIndB))?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { Factor::pair([alpha.cast(), beta.cast()], T::TYPE, context.on_host()) }?;
    let target = Target {
        offsets: csrSortedRowPtrC,
        indices: csrSortedColIndC,
        values: csrSortedValC.cast(),
        ..Target::new(descrC)?
    };
    check_target(target, a.rows, a.nnz.max(b.nnz))?;
    context.enqueue((a, b, (alpha, beta), target), |(a, b, (alpha, beta), target)| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            let terms = [
                Term::scaled(alpha.get::<T>(), matrix::<T, c_int>(&a, 0).0, false),
                Term::scaled(beta.get::<T>(), matrix::<T, c_int>(&b, 0).0, false),
            ];
            target.write(&sum((a.rows, a.cols), &terms));
        }
    })
}

/// So many entries there are at least.
fn check_target(target: Target, rows: usize, entries: usize) -> Result {
    check_numbers(target.offsets, rows + 1)?;
    check_numbers(target.indices, entries)?;
    require(entries == 0 || !target.values.is_null(), "an array is NULL")
}

/// What is there of `A · B` and of D, where a factor's address is NULL.
type Parts<M> = (Option<[M; 2]>, Option<M>);

/// A matrix's description, its number of entries and its arrays of numbers.
type Bare = (cusparseMatDescr_t, c_int, Pattern);

fn parts(
    (m, n, k): (c_int, c_int, c_int),
    (has_product, has_d): (bool, bool),
    [a, b, d]: [Bare; 3],
) -> Result<Parts<SparseMatrix>> {
    let one = |rows, cols, (descr, nnz, pattern): Bare| csr_pattern((rows, cols, nnz), descr, pattern);
    let product = if has_product { Some([one(m, k, a)?, one(k, n, b)?]) } else { None };
    Ok((product, if has_d { Some(one(m, n, d)?) } else { None }))
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseTcsrgemm2_bufferSizeExt<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    nnzA: c_int,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    descrB: cusparseMatDescr_t,
    nnzB: c_int,
    csrSortedRowPtrB: *const c_int,
    csrSortedColIndB: *const c_int,
    beta: *const T,
    descrD: cusparseMatDescr_t,
    nnzD: c_int,
    csrSortedRowPtrD: *const c_int,
    csrSortedColIndD: *const c_int,
    info: csrgemm2Info_t,
    pBufferSizeInBytes: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    let info = INFOS.get(info)?;
    let terms = (!alpha.is_null(), !beta.is_null());
    require(terms.0 || terms.1, "both factors are NULL")?;
    let bare = [
        (descrA, nnzA, (csrSortedRowPtrA, csrSortedColIndA)),
        (descrB, nnzB, (csrSortedRowPtrB, csrSortedColIndB)),
        (descrD, nnzD, (csrSortedRowPtrD, csrSortedColIndD)),
    ];
    parts((m, n, k), terms, bare)?;
    *info.terms.lock() = terms;
    pBufferSizeInBytes.write(SOME);
    Ok(())
}

/// Which factors there are is what the call for the buffer's size said.
///
/// # Safety
/// As [`cusparseXcsrgeam2Nnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseXcsrgemm2Nnz(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    descrA: cusparseMatDescr_t,
    nnzA: c_int,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    descrB: cusparseMatDescr_t,
    nnzB: c_int,
    csrSortedRowPtrB: *const c_int,
    csrSortedColIndB: *const c_int,
    descrD: cusparseMatDescr_t,
    nnzD: c_int,
    csrSortedRowPtrD: *const c_int,
    csrSortedColIndD: *const c_int,
    descrC: cusparseMatDescr_t,
    csrSortedRowPtrC: *mut c_int,
    nnzTotalDevHostPtr: *mut c_int,
    info: csrgemm2Info_t,
    _pBuffer: *mut c_void,
) -> Result {
    let terms = *INFOS.get(info)?.terms.lock();
    require(terms.0 || terms.1, "the buffer's size was not asked for")?;
    let bare = [
        (descrA, nnzA, (csrSortedRowPtrA, csrSortedColIndA)),
        (descrB, nnzB, (csrSortedRowPtrB, csrSortedColIndB)),
        (descrD, nnzD, (csrSortedRowPtrD, csrSortedColIndD)),
    ];
    let (product, d) = parts((m, n, k), terms, bare)?;
    let target = Target { offsets: csrSortedRowPtrC, total: nnzTotalDevHostPtr, ..Target::new(descrC)? };
    count_sum(handle, (m, n), (product, [d, None]), target)
}

/// # Safety
/// As [`cusparseXcsrgeam2Nnz`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseTcsrgemm2<T: Computed>(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    k: c_int,
    alpha: *const T,
    descrA: cusparseMatDescr_t,
    nnzA: c_int,
    csrSortedValA: *const T,
    csrSortedRowPtrA: *const c_int,
    csrSortedColIndA: *const c_int,
    descrB: cusparseMatDescr_t,
    nnzB: c_int,
    csrSortedValB: *const T,
    csrSortedRowPtrB: *const c_int,
    csrSortedColIndB: *const c_int,
    beta: *const T,
    descrD: cusparseMatDescr_t,
    nnzD: c_int,
    csrSortedValD: *const T,
    csrSortedRowPtrD: *const c_int,
    csrSortedColIndD: *const c_int,
    descrC: cusparseMatDescr_t,
    csrSortedValC: *mut T,
    csrSortedRowPtrC: *const c_int,
    csrSortedColIndC: *mut c_int,
    info: csrgemm2Info_t,
    _pBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    INFOS.get(info)?;
    let factor = |at: *const T| match at.is_null() {
        true => Ok(None),
        // SAFETY: the caller's promise.
        false => unsafe { Factor::new(at.cast(), T::TYPE, context.on_host()) }.map(Some),
    };
    let (alpha, beta) = (factor(alpha)?, factor(beta)?);
    let product = match alpha {
        Some(alpha) => {
            let a = csr((m, k, nnzA), descrA, (csrSortedValA, csrSortedRowPtrA, csrSortedColIndA))?;
            let b = csr((k, n, nnzB), descrB, (csrSortedValB, csrSortedRowPtrB, csrSortedColIndB))?;
            Some((alpha, [a, b]))
        }
        None => None,
    };
    let other = match beta {
        Some(beta) => {
            Some((beta, csr((m, n, nnzD), descrD, (csrSortedValD, csrSortedRowPtrD, csrSortedColIndD))?))
        }
        None => None,
    };
    if product.is_none() && other.is_none() {
        return Err(Error::InvalidValue("both factors are NULL"));
    }
    let size = (count(m)?, count(n)?);
    check_numbers(csrSortedRowPtrC, size.0 + 1)?;
    let target = Target { indices: csrSortedColIndC, values: csrSortedValC.cast(), ..Target::new(descrC)? };
    context.enqueue((product, other, target), move |(product, other, target)| {
        let mut terms = Vec::new();
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            if let Some((alpha, [a, b])) = product {
                let (a, b) = (matrix::<T, c_int>(&a, 0).0, matrix::<T, c_int>(&b, 0).0);
                terms.push(Term::product(alpha.get::<T>(), a, b));
            }
            if let Some((beta, d)) = other {
                terms.push(Term::scaled(beta.get::<T>(), matrix::<T, c_int>(&d, 0).0, false));
            }
            target.write(&sum(size, &terms));
        }
    })
}
