//! Systems whose matrices have one pattern: LU again, without looking for pivots. Source: cuSOLVER manual, "cuSolverRF: Refactorization
//! Reference".
//!
//! All calls here are done when they come back; those that take memory of the device wait for the NULL stream. What the manual asks for
//! beforehand and was not done is `NOT_INITIALIZED`.

use core::ffi::c_int;
use std::sync::Arc;

use border::Out;
use cusolver_cpu::refactor::{Lines, Matrix, Outcome, Pattern, order};
use kit::{Address, Registry};
use parking_lot::Mutex;

use super::sparse::{on_device, slice};
use crate::arguments::{array, place};
use crate::error::require;
use crate::handle::Context;
use crate::types::*;
use crate::{Error, Result};

/// What a handle says of how it works.
#[derive(Clone, Copy)]
struct Settings {
    format: cusolverRfMatrixFormat_t,
    diagonal: cusolverRfUnitDiagonal_t,
    algorithms: (cusolverRfFactorization_t, cusolverRfTriangularSolve_t),
    fast: cusolverRfResetValuesFastMode_t,
    zero: f64,
    boost: f64,
    report: cusolverRfNumericBoostReport_t,
}

/// A pattern, and the matrices that have it.
struct Work {
    is_batch: bool,
    by_columns: bool,
    pattern: Pattern,
    /// A's lines as they were given, for what is said of later ones.
    given: (Vec<c_int>, Vec<c_int>),
    /// Which entry of A as it was given is which by rows; none where it came by rows.
    from: Option<Vec<usize>>,
    /// Values before elimination, one matrix behind the other, and factors.
    values: Vec<Vec<f64>>,
    factors: Vec<Vec<f64>>,
    outcomes: Vec<Outcome>,
    is_factored: bool,
    /// Where kernels see the factors.
    shown: Option<Shown>,
}

pub struct Refactorisation {
    context: Context,
    settings: Mutex<Settings>,
    work: Mutex<Option<Work>>,
}

static HANDLES: Registry<Refactorisation> = Registry::new();

fn get(handle: cusolverRfHandle_t) -> Result<Arc<Refactorisation>> {
    Ok(HANDLES.get(handle)?)
}

fn computing(handle: cusolverRfHandle_t) -> Result<Arc<Refactorisation>> {
    let found = get(handle)?;
    found.context.can_compute()?;
    Ok(found)
}

/// An array in the device's memory.
struct Buffer(u64);

impl Buffer {
    fn of<T: Copy>(values: &[T]) -> Result<Buffer> {
        kit::driver::context(None)?;
        let mut address = 0;
        let bytes = size_of_val(values).max(1);
        // SAFETY: a place for the address.
        let code = unsafe { (kit::driver::driver()?.cuMemAlloc_v2)(&mut address, bytes) };
        kit::driver::check("cuMemAlloc", code).map_err(|_| Error::NoMemory)?;
        let made = Buffer(address);
        made.fill(values)?;
        Ok(made)
    }

    fn at<T>(&self) -> *mut T {
        core::ptr::with_exposed_provenance_mut(self.0 as usize)
    }

    fn fill<T: Copy>(&self, values: &[T]) -> Result {
        // SAFETY: as many as it was made for.
        Ok(unsafe { kit::far::write(values, self.at()) }?)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Ok(driver) = kit::driver::driver() {
            // SAFETY: allocated above, and no call has it any more.
            unsafe { (driver.cuMemFree_v2)(self.0) };
        }
    }
}

struct Shown {
    starts: Buffer,
    indices: Buffer,
    values: Buffer,
    count: c_int,
}

impl Work {
    /// A's values of one matrix, which are as many as its lines say.
    fn assembled(&self, values: &[f64]) -> Vec<f64> {
        match &self.from {
            Some(from) => self.pattern.assembled(from.iter().map(|at| values[*at])),
            None => self.pattern.assembled(values.iter().copied()),
        }
    }

    fn bundled(&self) -> Matrix {
        self.pattern.bundled(&self.factors[0], self.by_columns)
    }

    /// Kernels see what the factors are now.
    fn show(&self) -> Result {
        match &self.shown {
            Some(shown) => shown.values.fill(&self.bundled().values),
            None => Ok(()),
        }
    }

    fn reset(&mut self, values: Vec<Vec<f64>>) -> Result {
        self.values = values.iter().map(|values| self.assembled(values)).collect();
        self.factors.clone_from(&self.values);
        self.outcomes = vec![Outcome::default(); self.values.len()];
        self.is_factored = false;
        self.show()
    }

    fn factor(&mut self, zero: f64, boost: f64) -> Result {
        self.factors.clone_from(&self.values);
        let (pattern, outcomes) = (&self.pattern, Mutex::new(&mut self.outcomes));
        let matrices: Vec<Mutex<&mut Vec<f64>>> = self.factors.iter_mut().map(Mutex::new).collect();
        cusolver_cpu::each(matrices.len() as i64, |number| {
            let number = number as usize;
            let outcome = pattern.factor(&mut matrices[number].lock(), zero, boost);
            outcomes.lock()[number] = outcome;
        });
        self.is_factored = true;
        self.show()
    }
}

impl Refactorisation {
    /// Does something with what was set up, for one matrix or for a batch.
    fn with<R>(&self, is_batch: bool, body: impl FnOnce(&mut Work) -> Result<R>) -> Result<R> {
        let mut work = self.work.lock();
        let work = work.as_mut().ok_or(Error::NotInitialized)?;
        require(work.is_batch == is_batch, "one matrix was set up, or several were")?;
        body(work)
    }
}

pub fn cusolverRfCreate(handle: Out<'_, cusolverRfHandle_t>) -> Result {
    let settings = Settings {
        format: cusolverRfMatrixFormat_t::CUSOLVERRF_MATRIX_FORMAT_CSR,
        diagonal: cusolverRfUnitDiagonal_t::CUSOLVERRF_UNIT_DIAGONAL_STORED_L,
        algorithms: (
            cusolverRfFactorization_t::CUSOLVERRF_FACTORIZATION_ALG0,
            cusolverRfTriangularSolve_t::CUSOLVERRF_TRIANGULAR_SOLVE_ALG1,
        ),
        fast: cusolverRfResetValuesFastMode_t::CUSOLVERRF_RESET_VALUES_FAST_MODE_OFF,
        zero: 0.0,
        boost: 0.0,
        report: cusolverRfNumericBoostReport_t::CUSOLVERRF_NUMERIC_BOOST_NOT_USED,
    };
    let made =
        Refactorisation { context: Context::new()?, settings: Mutex::new(settings), work: Mutex::new(None) };
    handle.write(HANDLES.add(made));
    Ok(())
}

pub fn cusolverRfDestroy(handle: cusolverRfHandle_t) -> Result {
    HANDLES.remove(handle)?;
    Ok(())
}

pub fn cusolverRfGetMatrixFormat(
    handle: cusolverRfHandle_t,
    format: Out<'_, cusolverRfMatrixFormat_t>,
    diag: Out<'_, cusolverRfUnitDiagonal_t>,
) -> Result {
    let settings = *get(handle)?.settings.lock();
    format.write(settings.format);
    diag.write(settings.diagonal);
    Ok(())
}

/// Of matrices that are set up later.
pub fn cusolverRfSetMatrixFormat(
    handle: cusolverRfHandle_t,
    format: cusolverRfMatrixFormat_t,
    diag: cusolverRfUnitDiagonal_t,
) -> Result {
    let found = get(handle)?;
    require(format.0 <= 1 && diag.0 <= 3, "there is no such format")?;
    let mut settings = found.settings.lock();
    (settings.format, settings.diagonal) = (format, diag);
    Ok(())
}

/// Neither is below 0.
pub fn cusolverRfSetNumericProperties(handle: cusolverRfHandle_t, zero: f64, boost: f64) -> Result {
    let found = get(handle)?;
    require(!(zero < 0.0 || boost < 0.0), "a negative bound")?;
    let mut settings = found.settings.lock();
    (settings.zero, settings.boost) = (zero, boost);
    Ok(())
}

pub fn cusolverRfGetNumericProperties(
    handle: cusolverRfHandle_t,
    zero: Out<'_, f64>,
    boost: Out<'_, f64>,
) -> Result {
    let settings = *get(handle)?.settings.lock();
    zero.write(settings.zero);
    boost.write(settings.boost);
    Ok(())
}

/// Whether the last factorization put a pivot in the place of one that was none.
pub fn cusolverRfGetNumericBoostReport(
    handle: cusolverRfHandle_t,
    report: Out<'_, cusolverRfNumericBoostReport_t>,
) -> Result {
    report.write(get(handle)?.settings.lock().report);
    Ok(())
}

/// All do the same here; those that do not go together are refused as the manual has it.
pub fn cusolverRfSetAlgs(
    handle: cusolverRfHandle_t,
    factAlg: cusolverRfFactorization_t,
    solveAlg: cusolverRfTriangularSolve_t,
) -> Result {
    let found = get(handle)?;
    require(factAlg.0 <= 2 && matches!(solveAlg.0, 1..=3), "there is no such algorithm")?;
    let goes_together = factAlg == cusolverRfFactorization_t::CUSOLVERRF_FACTORIZATION_ALG0
        || solveAlg != cusolverRfTriangularSolve_t::CUSOLVERRF_TRIANGULAR_SOLVE_ALG1;
    require(goes_together, "algorithms that do not go together")?;
    found.settings.lock().algorithms = (factAlg, solveAlg);
    Ok(())
}

pub fn cusolverRfGetAlgs(
    handle: cusolverRfHandle_t,
    factAlg: Out<'_, cusolverRfFactorization_t>,
    solveAlg: Out<'_, cusolverRfTriangularSolve_t>,
) -> Result {
    let (factorization, solve) = get(handle)?.settings.lock().algorithms;
    factAlg.write(factorization);
    solveAlg.write(solve);
    Ok(())
}

pub fn cusolverRfGetResetValuesFastMode(
    handle: cusolverRfHandle_t,
    fastMode: Out<'_, cusolverRfResetValuesFastMode_t>,
) -> Result {
    fastMode.write(get(handle)?.settings.lock().fast);
    Ok(())
}

/// In the fast mode new values are believed to have the pattern and the orders that were set up; else that is looked at.
pub fn cusolverRfSetResetValuesFastMode(
    handle: cusolverRfHandle_t,
    fastMode: cusolverRfResetValuesFastMode_t,
) -> Result {
    let found = get(handle)?;
    require(fastMode.0 <= 1, "there is no such mode")?;
    found.settings.lock().fast = fastMode;
    Ok(())
}

/// A matrix's lines as a call gives them.
#[derive(Clone, Copy)]
struct Given {
    n: usize,
    entries: usize,
    starts: Address<*mut c_int>,
    indices: Address<*mut c_int>,
}

impl Given {
    fn new(n: c_int, entries: c_int, starts: *const c_int, indices: *const c_int) -> Result<Given> {
        require(n > 0 && entries >= 0, "a size is not above 0")?;
        let (starts, indices) = (array(starts, i64::from(n) + 1)?, array(indices, entries.into())?);
        Ok(Given { n: n as usize, entries: entries as usize, starts, indices })
    }

    /// # Safety
    /// The arrays are there, and nobody writes them.
    unsafe fn read(&self) -> (&[c_int], &[c_int]) {
        // SAFETY: the caller's word.
        unsafe { (slice(self.starts.get(), self.n + 1), slice(self.indices.get(), self.entries)) }
    }

    /// # Safety
    /// As [`read`](Self::read).
    unsafe fn lines(&self) -> Result<Lines> {
        // SAFETY: the caller's word.
        let (starts, indices) = unsafe { self.read() };
        Ok(Lines::new(starts, indices)?)
    }
}

/// A, what its factors are like, and the orders in which they are A's.
#[derive(Clone, Copy)]
struct Setup {
    a: Given,
    l: Given,
    u: Given,
    orders: (Address<*mut c_int>, Address<*mut c_int>),
    /// None where there is one matrix, whose values are the first ones.
    batch: Option<usize>,
}

/// # Safety
/// The arrays are there, and nobody writes them.
unsafe fn set_up(handle: &Refactorisation, setup: &Setup, values: &[&[f64]]) -> Result {
    let settings = *handle.settings.lock();
    let by_columns = settings.format == cusolverRfMatrixFormat_t::CUSOLVERRF_MATRIX_FORMAT_CSC;
    // SAFETY: the caller's word.
    let (lines, given, orders) = unsafe {
        let (starts, indices) = setup.a.read();
        let orders = (slice(setup.orders.0.get(), setup.a.n), slice(setup.orders.1.get(), setup.a.n));
        (
            [setup.a.lines()?, setup.l.lines()?, setup.u.lines()?],
            (starts.to_vec(), indices.to_vec()),
            (order(orders.0)?, order(orders.1)?),
        )
    };
    let [a, l, u] = lines;
    let (a, from, l, u) = if by_columns {
        let (a, from) = a.transposed();
        (a, Some(from), l.transposed().0, u.transposed().0)
    } else {
        (a, None, l, u)
    };
    let mut work = Work {
        is_batch: setup.batch.is_some(),
        by_columns,
        pattern: Pattern::new(&a, &l, &u, orders.0, orders.1)?,
        given,
        from,
        values: Vec::new(),
        factors: Vec::new(),
        outcomes: Vec::new(),
        is_factored: false,
        shown: None,
    };
    work.reset(values.iter().map(|values| values.to_vec()).collect())?;
    *handle.work.lock() = Some(work);
    Ok(())
}

fn setup_of(
    n: c_int,
    a: (c_int, *const c_int, *const c_int),
    l: (c_int, *const c_int, *const c_int, *const f64),
    u: (c_int, *const c_int, *const c_int, *const f64),
    (p, q): (*const c_int, *const c_int),
    batch: Option<usize>,
) -> Result<Setup> {
    // The factors' values are those of the first matrix, and have to be there as the manual has it.
    array(l.3, l.0.into())?;
    array(u.3, u.0.into())?;
    Ok(Setup {
        a: Given::new(n, a.0, a.1, a.2)?,
        l: Given::new(n, l.0, l.1, l.2)?,
        u: Given::new(n, u.0, u.1, u.2)?,
        orders: (array(p, n.into())?, array(q, n.into())?),
        batch,
    })
}

/// # Safety
/// The arrays are there as the manual says of them, while the call lasts.
pub unsafe fn cusolverRfSetupHost(
    n: c_int,
    nnzA: c_int,
    h_csrRowPtrA: *mut c_int,
    h_csrColIndA: *mut c_int,
    h_csrValA: *mut f64,
    nnzL: c_int,
    h_csrRowPtrL: *mut c_int,
    h_csrColIndL: *mut c_int,
    h_csrValL: *mut f64,
    nnzU: c_int,
    h_csrRowPtrU: *mut c_int,
    h_csrColIndU: *mut c_int,
    h_csrValU: *mut f64,
    h_P: *mut c_int,
    h_Q: *mut c_int,
    handle: cusolverRfHandle_t,
) -> Result {
    let handle = computing(handle)?;
    let setup = setup_of(
        n,
        (nnzA, h_csrRowPtrA, h_csrColIndA),
        (nnzL, h_csrRowPtrL, h_csrColIndL, h_csrValL),
        (nnzU, h_csrRowPtrU, h_csrColIndU, h_csrValU),
        (h_P, h_Q),
        None,
    )?;
    let values = array(h_csrValA, nnzA.into())?;
    // SAFETY: the caller's word.
    unsafe { set_up(&handle, &setup, &[slice(values.get(), setup.a.entries)]) }
}

/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfSetupDevice(
    n: c_int,
    nnzA: c_int,
    csrRowPtrA: *mut c_int,
    csrColIndA: *mut c_int,
    csrValA: *mut f64,
    nnzL: c_int,
    csrRowPtrL: *mut c_int,
    csrColIndL: *mut c_int,
    csrValL: *mut f64,
    nnzU: c_int,
    csrRowPtrU: *mut c_int,
    csrColIndU: *mut c_int,
    csrValU: *mut f64,
    P: *mut c_int,
    Q: *mut c_int,
    handle: cusolverRfHandle_t,
) -> Result {
    let handle = computing(handle)?;
    let setup = setup_of(
        n,
        (nnzA, csrRowPtrA, csrColIndA),
        (nnzL, csrRowPtrL, csrColIndL, csrValL),
        (nnzU, csrRowPtrU, csrColIndU, csrValU),
        (P, Q),
        None,
    )?;
    let values = array(csrValA, nnzA.into())?;
    let of = Arc::clone(&handle);
    // SAFETY: as above.
    on_device(&handle.context, move || unsafe {
        set_up(&of, &setup, &[slice(values.get(), setup.a.entries)])
    })
}

/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfBatchSetupHost(
    batchSize: c_int,
    n: c_int,
    nnzA: c_int,
    h_csrRowPtrA: *mut c_int,
    h_csrColIndA: *mut c_int,
    h_csrValA_array: *mut *mut f64,
    nnzL: c_int,
    h_csrRowPtrL: *mut c_int,
    h_csrColIndL: *mut c_int,
    h_csrValL: *mut f64,
    nnzU: c_int,
    h_csrRowPtrU: *mut c_int,
    h_csrColIndU: *mut c_int,
    h_csrValU: *mut f64,
    h_P: *mut c_int,
    h_Q: *mut c_int,
    handle: cusolverRfHandle_t,
) -> Result {
    let handle = computing(handle)?;
    require(batchSize > 0, "no matrix is in the batch")?;
    let setup = setup_of(
        n,
        (nnzA, h_csrRowPtrA, h_csrColIndA),
        (nnzL, h_csrRowPtrL, h_csrColIndL, h_csrValL),
        (nnzU, h_csrRowPtrU, h_csrColIndU, h_csrValU),
        (h_P, h_Q),
        Some(batchSize as usize),
    )?;
    let all = array(h_csrValA_array, batchSize.into())?;
    // SAFETY: as above.
    unsafe {
        let values = matrices(all.get(), batchSize as usize, setup.a.entries)?;
        set_up(&handle, &setup, &values)
    }
}

/// Arrays of a batch, of so many elements each.
///
/// # Safety
/// They are there, and nobody writes them.
unsafe fn matrices<'a>(all: *mut *mut f64, count: usize, entries: usize) -> Result<Vec<&'a [f64]>> {
    // SAFETY: the caller's word.
    let all = unsafe { slice(all, count) };
    all.iter()
        // SAFETY: as above.
        .map(|at| array(*at, entries as i64).map(|at| unsafe { slice(at.get(), entries) }))
        .collect()
}

/// Nothing has to be analysed; it has to be set up.
pub fn cusolverRfAnalyze(handle: cusolverRfHandle_t) -> Result {
    computing(handle)?.with(false, |_| Ok(()))
}

/// As `cusolverRfAnalyze`.
pub fn cusolverRfBatchAnalyze(handle: cusolverRfHandle_t) -> Result {
    computing(handle)?.with(true, |_| Ok(()))
}

fn refactor(handle: cusolverRfHandle_t, is_batch: bool) -> Result<Option<usize>> {
    let handle = computing(handle)?;
    let settings = *handle.settings.lock();
    let (is_boosted, zero_pivot) = handle.with(is_batch, |work| {
        work.factor(settings.zero, settings.boost)?;
        let zero_pivot = work.outcomes.iter().find_map(|outcome| outcome.zero_pivot);
        Ok((work.outcomes.iter().any(|outcome| outcome.is_boosted), zero_pivot))
    })?;
    handle.settings.lock().report = if is_boosted {
        cusolverRfNumericBoostReport_t::CUSOLVERRF_NUMERIC_BOOST_USED
    } else {
        cusolverRfNumericBoostReport_t::CUSOLVERRF_NUMERIC_BOOST_NOT_USED
    };
    Ok(zero_pivot)
}

/// Factors the values that were given last, as often as it is called.
pub fn cusolverRfRefactor(handle: cusolverRfHandle_t) -> Result {
    match refactor(handle, false)? {
        None => Ok(()),
        Some(_) => Err(Error::ZeroPivot),
    }
}

/// A matrix that has no pivot somewhere is told of by `cusolverRfBatchZeroPivot` alone.
pub fn cusolverRfBatchRefactor(handle: cusolverRfHandle_t) -> Result {
    refactor(handle, true).map(drop)
}

/// -1 for each matrix that has its factors, else the first row without a pivot.
///
/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfBatchZeroPivot(handle: cusolverRfHandle_t, position: *mut c_int) -> Result {
    computing(handle)?.with(true, |work| {
        require(work.is_factored, "nothing was factored")?;
        let position = array(position, work.outcomes.len() as i64)?;
        for (at, outcome) in work.outcomes.iter().enumerate() {
            let row = outcome.zero_pivot.map_or(-1, |row| row as c_int);
            // SAFETY: the caller's word: a number for each matrix.
            unsafe { position.get().add(at).write(row) };
        }
        let has_all = work.outcomes.iter().all(|outcome| outcome.zero_pivot.is_none());
        if has_all { Ok(()) } else { Err(Error::ZeroPivot) }
    })
}

/// New values where A's entries are.
#[derive(Clone, Copy)]
struct Reset {
    a: Given,
    orders: (Address<*mut c_int>, Address<*mut c_int>),
    is_trusted: bool,
}

impl Reset {
    fn new(
        handle: &Refactorisation,
        n: c_int,
        a: (c_int, *const c_int, *const c_int),
        (p, q): (*const c_int, *const c_int),
    ) -> Result<Reset> {
        let fast = handle.settings.lock().fast;
        Ok(Reset {
            a: Given::new(n, a.0, a.1, a.2)?,
            orders: (array(p, n.into())?, array(q, n.into())?),
            is_trusted: fast == cusolverRfResetValuesFastMode_t::CUSOLVERRF_RESET_VALUES_FAST_MODE_ON,
        })
    }

    /// # Safety
    /// The arrays are there, and nobody writes them.
    unsafe fn check(&self, work: &Work) -> Result {
        let (starts, indices) = &work.given;
        let fits = self.a.n + 1 == starts.len() && self.a.entries == indices.len();
        require(fits, "not the sizes that were set up")?;
        if self.is_trusted {
            return Ok(());
        }
        // SAFETY: the caller's word.
        let (lines, p, q) = unsafe {
            let (p, q) = self.orders;
            (self.a.read(), slice(p.get(), self.a.n), slice(q.get(), self.a.n))
        };
        let (rows, columns) = work.pattern.orders();
        let same = |given: &[c_int], known: &[usize]| {
            given.iter().zip(known).all(|(given, known)| usize::try_from(*given) == Ok(*known))
        };
        require(
            lines == (&starts[..], &indices[..]) && same(p, rows) && same(q, columns),
            "not the pattern that was set up, or not its orders",
        )
    }
}

/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfResetValues(
    n: c_int,
    nnzA: c_int,
    csrRowPtrA: *mut c_int,
    csrColIndA: *mut c_int,
    csrValA: *mut f64,
    P: *mut c_int,
    Q: *mut c_int,
    handle: cusolverRfHandle_t,
) -> Result {
    let handle = computing(handle)?;
    let reset = Reset::new(&handle, n, (nnzA, csrRowPtrA, csrColIndA), (P, Q))?;
    let values = array(csrValA, nnzA.into())?;
    let of = Arc::clone(&handle);
    on_device(&handle.context, move || {
        of.with(false, |work| {
            // SAFETY: the caller's word.
            unsafe {
                reset.check(work)?;
                work.reset(vec![slice(values.get(), reset.a.entries).to_vec()])
            }
        })
    })
}

/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfBatchResetValues(
    batchSize: c_int,
    n: c_int,
    nnzA: c_int,
    csrRowPtrA: *mut c_int,
    csrColIndA: *mut c_int,
    csrValA_array: *mut *mut f64,
    P: *mut c_int,
    Q: *mut c_int,
    handle: cusolverRfHandle_t,
) -> Result {
    let handle = computing(handle)?;
    require(batchSize > 0, "no matrix is in the batch")?;
    let reset = Reset::new(&handle, n, (nnzA, csrRowPtrA, csrColIndA), (P, Q))?;
    let all = array(csrValA_array, batchSize.into())?;
    let of = Arc::clone(&handle);
    on_device(&handle.context, move || {
        of.with(true, |work| {
            require(work.values.len() == batchSize as usize, "not as many matrices as were set up")?;
            // SAFETY: as above.
            unsafe {
                reset.check(work)?;
                let values = matrices(all.get(), work.values.len(), reset.a.entries)?;
                work.reset(values.iter().map(|values| values.to_vec()).collect())
            }
        })
    })
}

/// Memory of the C library's, which the caller frees.
fn for_caller<T: Copy>(values: &[T]) -> Result<*mut T> {
    // SAFETY: a size.
    let at = unsafe { libc::malloc(size_of_val(values).max(1)) }.cast::<T>();
    if at.is_null() {
        return Err(Error::NoMemory);
    }
    // SAFETY: as long as the values.
    unsafe { core::ptr::copy_nonoverlapping(values.as_ptr(), at, values.len()) };
    Ok(at)
}

type Arrays<'a> = (Out<'a, c_int>, Out<'a, *mut c_int>, Out<'a, *mut c_int>, Out<'a, *mut f64>);

fn give(matrix: &Matrix, (count, starts, indices, values): Arrays<'_>) -> Result {
    count.write(matrix.indices.len() as c_int);
    starts.write(for_caller(&matrix.starts)?);
    indices.write(for_caller(&matrix.indices)?);
    values.write(for_caller(&matrix.values)?);
    Ok(())
}

/// `M = (L - I) + U` in the format that was set, whichever diagonal is of ones there.
pub fn cusolverRfExtractBundledFactorsHost(
    handle: cusolverRfHandle_t,
    h_nnzM: Out<'_, c_int>,
    h_Mp: Out<'_, *mut c_int>,
    h_Mi: Out<'_, *mut c_int>,
    h_Mx: Out<'_, *mut f64>,
) -> Result {
    computing(handle)?.with(false, |work| give(&work.bundled(), (h_nnzM, h_Mp, h_Mi, h_Mx)))
}

/// Memory of the device's that the handle keeps: later factorizations write there.
pub fn cusolverRfAccessBundledFactorsDevice(
    handle: cusolverRfHandle_t,
    nnzM: Out<'_, c_int>,
    Mp: Out<'_, *mut c_int>,
    Mi: Out<'_, *mut c_int>,
    Mx: Out<'_, *mut f64>,
) -> Result {
    computing(handle)?.with(false, |work| {
        if work.shown.is_none() {
            let matrix = work.bundled();
            work.shown = Some(Shown {
                starts: Buffer::of(&matrix.starts)?,
                indices: Buffer::of(&matrix.indices)?,
                values: Buffer::of(&matrix.values)?,
                count: matrix.indices.len() as c_int,
            });
        }
        if let Some(shown) = &work.shown {
            nnzM.write(shown.count);
            Mp.write(shown.starts.at());
            Mi.write(shown.indices.at());
            Mx.write(shown.values.at());
        }
        Ok(())
    })
}

/// L and U with the diagonals that the format says.
pub fn cusolverRfExtractSplitFactorsHost(
    handle: cusolverRfHandle_t,
    h_nnzL: Out<'_, c_int>,
    h_csrRowPtrL: Out<'_, *mut c_int>,
    h_csrColIndL: Out<'_, *mut c_int>,
    h_csrValL: Out<'_, *mut f64>,
    h_nnzU: Out<'_, c_int>,
    h_csrRowPtrU: Out<'_, *mut c_int>,
    h_csrColIndU: Out<'_, *mut c_int>,
    h_csrValU: Out<'_, *mut f64>,
) -> Result {
    let handle = computing(handle)?;
    let diagonal = handle.settings.lock().diagonal;
    let unit_upper = matches!(
        diagonal,
        cusolverRfUnitDiagonal_t::CUSOLVERRF_UNIT_DIAGONAL_STORED_U
            | cusolverRfUnitDiagonal_t::CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_U
    );
    let stored = matches!(
        diagonal,
        cusolverRfUnitDiagonal_t::CUSOLVERRF_UNIT_DIAGONAL_STORED_L
            | cusolverRfUnitDiagonal_t::CUSOLVERRF_UNIT_DIAGONAL_STORED_U
    );
    handle.with(false, |work| {
        let (l, u) = work.pattern.split(&work.factors[0], work.by_columns, unit_upper, stored);
        give(&l, (h_nnzL, h_csrRowPtrL, h_csrColIndL, h_csrValL))?;
        give(&u, (h_nnzU, h_csrRowPtrU, h_csrColIndU, h_csrValU))
    })
}

/// Right sides in the place of which solutions come.
///
/// # Safety
/// The orders' arrays, and the right sides that `sides` answers, are there while the call lasts.
unsafe fn solve(
    handle: cusolverRfHandle_t,
    is_batch: bool,
    (p, q): (*const c_int, *const c_int),
    nrhs: c_int,
    (temp, ldt): (*const f64, c_int),
    ldxf: c_int,
    sides: impl Fn(usize, usize) -> Result<Vec<Address<*mut f64>>> + Send + Sync + 'static,
) -> Result {
    let handle = computing(handle)?;
    require(nrhs == 1, "other than one right side")?;
    require(!temp.is_null() && !p.is_null() && !q.is_null(), "an array is NULL")?;
    let aligned = temp.is_aligned() && p.is_aligned() && q.is_aligned();
    require(aligned, "an array is not aligned to its type")?;
    // How long they are is what was set up.
    let (p, q) = (Address(p), Address(q));
    let of = Arc::clone(&handle);
    on_device(&handle.context, move || {
        of.with(is_batch, |work| {
            require(work.is_factored, "the values that were given last were not factored")?;
            let n = work.given.0.len() - 1;
            require(
                ldt as usize >= n && ldxf as usize >= n && ldt.min(ldxf) > 0,
                "ldt or ldxf is too small",
            )?;
            let sides = sides(work.factors.len(), n)?;
            let (p, q) = (array(p.get(), n as i64)?, array(q.get(), n as i64)?);
            // SAFETY: the caller's word.
            let (rows, columns) = unsafe { (order(slice(p.get(), n))?, order(slice(q.get(), n))?) };
            cusolver_cpu::each(sides.len() as i64, |number| {
                let (factors, at) = (&work.factors[number as usize], &sides[number as usize]);
                // SAFETY: as above; a right side for each call.
                let x = unsafe { core::slice::from_raw_parts_mut(at.get(), n) };
                work.pattern.solve(factors, (&rows, &columns), x);
            });
            Ok(())
        })
    })
}

/// One right side, as the manual has it.
///
/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfSolve(
    handle: cusolverRfHandle_t,
    P: *mut c_int,
    Q: *mut c_int,
    nrhs: c_int,
    Temp: *mut f64,
    ldt: c_int,
    XF: *mut f64,
    ldxf: c_int,
) -> Result {
    let x = place(XF)?;
    // SAFETY: the caller's word.
    unsafe {
        solve(handle, false, (P, Q), nrhs, (Temp, ldt), ldxf, move |_, n| Ok(vec![array(x.get(), n as i64)?]))
    }
}

/// One right side of each matrix.
///
/// # Safety
/// As [`cusolverRfSetupHost`].
pub unsafe fn cusolverRfBatchSolve(
    handle: cusolverRfHandle_t,
    P: *mut c_int,
    Q: *mut c_int,
    nrhs: c_int,
    Temp: *mut f64,
    ldt: c_int,
    XF_array: *mut *mut f64,
    ldxf: c_int,
) -> Result {
    let all = place(XF_array)?;
    // SAFETY: the caller's word.
    unsafe {
        solve(handle, true, (P, Q), nrhs, (Temp, ldt), ldxf, move |count, n| {
            let all = array(all.get(), count as i64)?;
            slice(all.get(), count).iter().map(|at| array(*at, n as i64)).collect()
        })
    }
}
