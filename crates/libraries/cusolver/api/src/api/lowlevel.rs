//! Factors of sparse matrices that a program keeps: LU, QR and Cholesky step by step, and QR of batches. Source: cusolverSp_LOWLEVEL_PREVIEW.h
//! and cuSOLVER manual, `cusolverSp<t>csrqrsvBatched`.
//!
//! A body whose name has T in the place of the type's letter is that of all four types. All calls here are done when they come back: those
//! whose names end with `Host` need no device, the others wait for the stream and cannot be captured. Columns are taken in their order: the
//! caller has reordered the matrix. A step whose step before is missing is an invalid value, and so is an area that is NULL.

use core::any::Any;
use core::ffi::{c_int, c_void};
use std::sync::Arc;

use border::Out;
use cusolver_cpu::factors::{Factored, Factors, Triangles, first_small};
use cusolver_cpu::sparse::{Columns, Method};
use cusolver_cpu::{Complex, Field, Real, Scalar};
use kit::{Address, Registry};
use parking_lot::Mutex;

use super::sparse::{Rows, get, on_device, slice};
use crate::arguments::array;
use crate::description;
use crate::error::require;
use crate::handle::Context;
use crate::types::*;
use crate::{Error, Result};

/// Rows, columns and entries.
type Shape = (c_int, c_int, c_int);

/// Of whichever type: a matrix, or its factors.
type Held = Arc<dyn Any + Send + Sync>;

type Kept<T> = Factored<Box<dyn Factors<T>>>;

/// What an info keeps from one step to the next.
#[derive(Default)]
struct State {
    /// What was analysed.
    shape: Option<Shape>,
    /// For how many matrices of a batch there is an area.
    batch: c_int,
    matrix: Option<Held>,
    factors: Option<Held>,
}

type Info = Mutex<State>;

static LU: Registry<Info> = Registry::new();
static QR: Registry<Info> = Registry::new();
static CHOLESKY: Registry<Info> = Registry::new();

/// An info that is none is an invalid value: only handles are "not initialized".
fn info<H>(registry: &Registry<Info>, handle: *mut H) -> Result<Arc<Info>> {
    registry.get(handle).map_err(|_| Error::InvalidValue("the info is not one that was created"))
}

fn create<H>(registry: &Registry<Info>, handle: Out<'_, *mut H>) -> Result {
    handle.write(registry.add(Info::default()));
    Ok(())
}

fn destroy<H>(registry: &Registry<Info>, handle: *mut H) -> Result {
    registry.remove(handle).map_err(|_| Error::InvalidValue("the info is not one that was created"))?;
    Ok(())
}

/// Where arrays are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Memory {
    Host,
    Device,
}

fn context(handle: cusolverSpHandle_t, memory: Memory) -> Result<Arc<Context>> {
    let context = get(handle)?;
    if memory == Memory::Device {
        context.can_compute()?;
    }
    Ok(context)
}

fn run(context: &Context, memory: Memory, work: impl Fn() -> Result + Send + Sync + 'static) -> Result {
    match memory {
        Memory::Host => work(),
        Memory::Device => on_device(context, work),
    }
}

/// No matrix is empty, and none is wide.
fn check_shape((m, n, nnz): Shape) -> Result {
    require(m > 0 && n > 0 && nnz > 0, "a size is not above 0")?;
    require(m >= n, "there are more columns than rows")
}

fn check_area(area: *mut c_void) -> Result {
    require(!area.is_null(), "the area is NULL")
}

impl State {
    fn require(&self, shape: Shape) -> Result {
        require(self.shape == Some(shape), "not the sizes that were analysed, or none were")
    }

    /// The factors, of this type.
    fn factors<T: Field>(&self, (m, n): (c_int, c_int)) -> Result<Held> {
        let fits = self.shape.is_some_and(|shape| (shape.0, shape.1) == (m, n));
        require(fits, "not the sizes that were analysed, or none were")?;
        self.factors_of::<T>()
    }

    fn factors_of<T: Field>(&self) -> Result<Held> {
        let held = self.factors.clone().filter(|held| held.is::<Kept<T>>());
        held.ok_or(Error::InvalidValue("nothing of this type was factored"))
    }
}

/// # Errors
/// There are none.
fn whole<T: Field>(held: &Held) -> Result<&dyn Factors<T>> {
    match held.downcast_ref::<Kept<T>>() {
        Some(Factored::Whole(factors)) => Ok(&**factors),
        _ => Err(Error::ZeroPivot),
    }
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
unsafe fn analyse(
    context: &Context,
    memory: Memory,
    info: Arc<Info>,
    shape: Shape,
    descr: cusparseMatDescr_t,
    (starts, columns): (*const c_int, *const c_int),
) -> Result {
    check_shape(shape)?;
    let a = Rows::pattern(shape, descr, (starts, columns))?;
    run(context, memory, move || {
        // SAFETY: the caller's word.
        unsafe { a.check()? };
        *info.lock() = State { shape: Some(shape), ..State::default() };
        Ok(())
    })
}

/// Bytes that are kept, about, and those of an area that is not used, but not empty either.
fn areas<T: Scalar>(
    info: &Info,
    shape: Shape,
    descr: cusparseMatDescr_t,
    batch: c_int,
    (kept, area): (Out<'_, usize>, Out<'_, usize>),
) -> Result {
    description::base(descr)?;
    require(batch > 0, "no matrix is in the batch")?;
    let mut state = info.lock();
    state.require(shape)?;
    state.batch = batch;
    let entries = shape.2 as usize;
    kept.write(entries.saturating_mul(size_of::<T>() + size_of::<usize>()).saturating_mul(batch as usize));
    area.write((shape.0 as usize).saturating_mul(size_of::<T>()));
    Ok(())
}

/// Factors a matrix in the order of its columns.
///
/// # Safety
/// The matrix's arrays are there while the call lasts.
unsafe fn factor<T: Field>(
    context: &Context,
    memory: Memory,
    info: Arc<Info>,
    method: Method,
    a: Rows<T>,
    shape: Shape,
) -> Result {
    info.lock().require(shape)?;
    run(context, memory, move || {
        // SAFETY: as above.
        let factors: Kept<T> = T::factored(method, &unsafe { a.read()? }, false)?;
        info.lock().factors = Some(Arc::new(factors));
        Ok(())
    })
}

/// Columns and pivots, as complex numbers, or the column at which a factorization ended.
type Pivots<R> = Factored<Vec<(usize, Complex<R>)>>;

/// The columns and pivots of factors whose type has these real numbers.
fn pivots<R: Field + Real>(held: Option<Held>) -> Result<Pivots<R>>
where
    Complex<R>: Field + Scalar<Real = R>,
{
    fn of<T: Field>(kept: &Kept<T>) -> Pivots<T::Real> {
        match kept {
            Factored::Whole(factors) => {
                let wide = |(column, pivot): &(usize, T)| (*column, Complex::new(pivot.real(), pivot.imag()));
                Factored::Whole(factors.pivots().iter().map(wide).collect())
            }
            Factored::Ended(column) => Factored::Ended(*column),
        }
    }
    let real = held.as_ref().and_then(|held| held.downcast_ref::<Kept<R>>());
    let complex = held.as_ref().and_then(|held| held.downcast_ref::<Kept<Complex<R>>>());
    match (real, complex) {
        (Some(kept), _) => Ok(of(kept)),
        (_, Some(kept)) => Ok(of(kept)),
        _ => Err(Error::InvalidValue("nothing of this type was factored")),
    }
}

/// The first column whose pivot is not above the bound, or at which a factorization ended, or -1.
fn zero_pivot<R: Field + Real>(info: &Info, tol: R, position: Out<'_, c_int>) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    let held = info.lock().factors.clone();
    let found = match pivots::<R>(held)? {
        Factored::Whole(pivots) => first_small(&pivots, tol.to_f64().unwrap_or(0.0)),
        Factored::Ended(column) => Some(column),
    };
    position.write(found.map_or(-1, |column| column as c_int));
    Ok(())
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
unsafe fn solve<T: Field>(
    context: &Context,
    memory: Memory,
    info: &Info,
    (m, n): (c_int, c_int),
    (b, x): (*const T, *mut T),
    area: *mut c_void,
) -> Result {
    check_area(area)?;
    let held = info.lock().factors::<T>((m, n))?;
    let (b, x) = (array(b, m.into())?, array(x, n.into())?);
    run(context, memory, move || {
        // SAFETY: as above.
        unsafe { write_solution(whole::<T>(&held)?, slice(b.get(), m as usize), x.get()) }
    })
}

/// # Safety
/// There is room for as many numbers as the matrix has columns.
unsafe fn write_solution<T: Field>(factors: &dyn Factors<T>, b: &[T], x: *mut T) -> Result {
    let found = factors.solve(b)?;
    // SAFETY: the caller's word.
    unsafe { core::ptr::copy_nonoverlapping(found.as_ptr(), x, found.len()) };
    Ok(())
}

pub fn cusolverSpCreateCsrluInfoHost(info: Out<'_, csrluInfoHost_t>) -> Result {
    create(&LU, info)
}

pub fn cusolverSpDestroyCsrluInfoHost(info: csrluInfoHost_t) -> Result {
    destroy(&LU, info)
}

/// # Safety
/// The arrays are there as the manual says of them, while the call lasts.
pub unsafe fn cusolverSpXcsrluAnalysisHost(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrluInfoHost_t,
) -> Result {
    let context = context(handle, Memory::Host)?;
    let info = self::info(&LU, info)?;
    // SAFETY: the caller's word.
    unsafe { analyse(&context, Memory::Host, info, (n, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }
}

pub fn cusolverSpTcsrluBufferInfoHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    _csrValA: *const T,
    _csrRowPtrA: *const c_int,
    _csrColIndA: *const c_int,
    info: csrluInfoHost_t,
    internalDataInBytes: Out<'_, usize>,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    get(handle)?;
    let info = self::info(&LU, info)?;
    areas::<T>(&info, (n, n, nnzA), descrA, 1, (internalDataInBytes, workspaceInBytes))
}

/// The largest entry of a column is its pivot, as a threshold of 1 asks for: a smaller one allows others, and does not demand them.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrluFactorHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrluInfoHost_t,
    _pivot_threshold: T::Real,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Host)?;
    let info = self::info(&LU, info)?;
    check_area(pBuffer)?;
    let a = Rows::new((n, nnzA), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { factor(&context, Memory::Host, info, Method::Lu, a, (n, n, nnzA)) }
}

pub fn cusolverSpTcsrluZeroPivotHost<R: Field + Real>(
    handle: cusolverSpHandle_t,
    info: csrluInfoHost_t,
    tol: R,
    position: Out<'_, c_int>,
) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    get(handle)?;
    zero_pivot::<R>(&*self::info(&LU, info)?, tol, position)
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrluSolveHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    b: *const T,
    x: *mut T,
    info: csrluInfoHost_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Host)?;
    // SAFETY: the caller's word.
    unsafe { solve(&context, Memory::Host, &*self::info(&LU, info)?, (n, n), (b, x), pBuffer) }
}

/// LU's factors, of whichever type, as something of each.
macro_rules! of_each_type {
    ($held:expr, $triangles:ident => $body:expr) => {{
        let held: &Held = $held;
        if held.is::<Kept<f32>>() {
            let $triangles = whole::<f32>(held)?.triangles();
            $body
        } else if held.is::<Kept<f64>>() {
            let $triangles = whole::<f64>(held)?.triangles();
            $body
        } else if held.is::<Kept<cuComplex>>() {
            let $triangles = whole::<cuComplex>(held)?.triangles();
            $body
        } else {
            let $triangles = whole::<cuDoubleComplex>(held)?.triangles();
            $body
        }
    }};
}

const NO_TRIANGLES: Error = Error::InvalidValue("nothing was factored by LU");

/// How many entries there are, without L's diagonal.
pub fn cusolverSpXcsrluNnzHost(
    handle: cusolverSpHandle_t,
    nnzLRef: Out<'_, c_int>,
    nnzURef: Out<'_, c_int>,
    info: csrluInfoHost_t,
) -> Result {
    get(handle)?;
    let held = self::info(&LU, info)?.lock().factors.clone().ok_or(NO_TRIANGLES)?;
    let (l, u) = of_each_type!(&held, triangles => {
        let triangles = triangles.ok_or(NO_TRIANGLES)?;
        (triangles.lower.parts().1.len(), triangles.upper.parts().1.len())
    });
    nnzLRef.write(l as c_int);
    nnzURef.write(u as c_int);
    Ok(())
}

/// Where a matrix by rows goes, and from which number it counts.
#[derive(Clone, Copy)]
struct Target<T> {
    base: c_int,
    values: *mut T,
    starts: *mut c_int,
    columns: *mut c_int,
}

impl<T: Scalar> Target<T> {
    /// # Safety
    /// There is room for the matrix, which was looked at for NULL.
    unsafe fn write(&self, matrix: &Columns<T>) {
        // Columns of the transposed matrix are rows.
        let turned = matrix.transposed();
        let (starts, columns, values) = turned.parts();
        let number = |of: &usize| *of as c_int + self.base;
        // SAFETY: the caller's word.
        unsafe {
            (0..).zip(starts).for_each(|(at, start)| self.starts.offset(at).write(number(start)));
            (0..).zip(columns).for_each(|(at, column)| self.columns.offset(at).write(number(column)));
            core::ptr::copy_nonoverlapping(values.as_ptr(), self.values, values.len());
        }
    }

    fn check(&self, matrix: &Columns<T>) -> Result {
        let entries = matrix.parts().1.len() as i64;
        array(self.values, entries)?;
        array(self.columns, entries)?;
        array(self.starts, matrix.size().0 as i64 + 1)?;
        Ok(())
    }
}

/// `A(P, Q) = L·U`, L without its diagonal.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrluExtractHost<T: Field>(
    handle: cusolverSpHandle_t,
    P: *mut c_int,
    Q: *mut c_int,
    descrL: cusparseMatDescr_t,
    csrValL: *mut T,
    csrRowPtrL: *mut c_int,
    csrColIndL: *mut c_int,
    descrU: cusparseMatDescr_t,
    csrValU: *mut T,
    csrRowPtrU: *mut c_int,
    csrColIndU: *mut c_int,
    info: csrluInfoHost_t,
    pBuffer: *mut c_void,
) -> Result {
    get(handle)?;
    let info = self::info(&LU, info)?;
    check_area(pBuffer)?;
    let (base_l, base_u) = (description::base(descrL)?, description::base(descrU)?);
    let held = info.lock().factors_of::<T>()?;
    let Triangles { rows, columns, lower, upper } = whole::<T>(&held)?.triangles().ok_or(NO_TRIANGLES)?;
    let l = Target { base: base_l, values: csrValL, starts: csrRowPtrL, columns: csrColIndL };
    let u = Target { base: base_u, values: csrValU, starts: csrRowPtrU, columns: csrColIndU };
    l.check(&lower)?;
    u.check(&upper)?;
    let (p, q) = (array(P, rows.len() as i64)?, array(Q, columns.len() as i64)?);
    // SAFETY: the caller's word: as much room as `cusolverSpXcsrluNnzHost` said.
    unsafe {
        l.write(&lower);
        u.write(&upper);
        (0..).zip(&rows).for_each(|(at, row)| p.get().offset(at).write(*row as c_int));
        (0..).zip(&columns).for_each(|(at, column)| q.get().offset(at).write(*column as c_int));
    }
    Ok(())
}

pub fn cusolverSpCreateCsrqrInfoHost(info: Out<'_, csrqrInfoHost_t>) -> Result {
    create(&QR, info)
}

pub fn cusolverSpDestroyCsrqrInfoHost(info: csrqrInfoHost_t) -> Result {
    destroy(&QR, info)
}

pub fn cusolverSpCreateCsrqrInfo(info: Out<'_, csrqrInfo_t>) -> Result {
    create(&QR, info)
}

pub fn cusolverSpDestroyCsrqrInfo(info: csrqrInfo_t) -> Result {
    destroy(&QR, info)
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpXcsrqrAnalysisHost(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrqrInfoHost_t,
) -> Result {
    let context = context(handle, Memory::Host)?;
    let info = self::info(&QR, info)?;
    // SAFETY: the caller's word.
    unsafe { analyse(&context, Memory::Host, info, (m, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpXcsrqrAnalysis(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrqrInfo_t,
) -> Result {
    let context = context(handle, Memory::Device)?;
    let info = self::info(&QR, info)?;
    // SAFETY: the caller's word.
    unsafe { analyse(&context, Memory::Device, info, (m, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpXcsrqrAnalysisBatched(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrqrInfo_t,
) -> Result {
    // SAFETY: the caller's word.
    unsafe { cusolverSpXcsrqrAnalysis(handle, m, n, nnzA, descrA, csrRowPtrA, csrColIndA, info) }
}

pub fn cusolverSpTcsrqrBufferInfoHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    _csrValA: *const T,
    _csrRowPtrA: *const c_int,
    _csrColIndA: *const c_int,
    info: csrqrInfoHost_t,
    internalDataInBytes: Out<'_, usize>,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    get(handle)?;
    let info = self::info(&QR, info)?;
    areas::<T>(&info, (m, n, nnzA), descrA, 1, (internalDataInBytes, workspaceInBytes))
}

pub fn cusolverSpTcsrqrBufferInfo<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrqrInfo_t,
    internalDataInBytes: Out<'_, usize>,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    cusolverSpTcsrqrBufferInfoBatched(
        handle,
        m,
        n,
        nnzA,
        descrA,
        csrValA,
        csrRowPtrA,
        csrColIndA,
        1,
        info,
        internalDataInBytes,
        workspaceInBytes,
    )
}

pub fn cusolverSpTcsrqrBufferInfoBatched<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    _csrVal: *const T,
    _csrRowPtr: *const c_int,
    _csrColInd: *const c_int,
    batchSize: c_int,
    info: csrqrInfo_t,
    internalDataInBytes: Out<'_, usize>,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    context(handle, Memory::Device)?;
    let info = self::info(&QR, info)?;
    areas::<T>(&info, (m, n, nnz), descrA, batchSize, (internalDataInBytes, workspaceInBytes))
}

/// Keeps `A - mu·I` for the factorization.
///
/// # Safety
/// As [`factor`].
unsafe fn set_up<T: Field>(
    context: &Context,
    memory: Memory,
    info: Arc<Info>,
    shape: Shape,
    a: Rows<T>,
    mu: T,
) -> Result {
    info.lock().require(shape)?;
    run(context, memory, move || {
        // SAFETY: as above.
        let a = unsafe { a.read()? };
        let a = if mu.is_zero() { a } else { a.shifted(mu) };
        let mut state = info.lock();
        let held: Held = Arc::new(a);
        (state.matrix, state.factors) = (Some(held), None);
        Ok(())
    })
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrSetupHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    mu: T,
    info: csrqrInfoHost_t,
) -> Result {
    let context = context(handle, Memory::Host)?;
    let info = self::info(&QR, info)?;
    let a = Rows::of((m, n, nnzA), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { set_up(&context, Memory::Host, info, (m, n, nnzA), a, mu) }
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrSetup<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    mu: T,
    info: csrqrInfo_t,
) -> Result {
    let context = context(handle, Memory::Device)?;
    let info = self::info(&QR, info)?;
    let a = Rows::of((m, n, nnzA), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { set_up(&context, Memory::Device, info, (m, n, nnzA), a, mu) }
}

/// Factors what was set up, as often as it is called, and solves at once where a right side is given.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
unsafe fn factor_kept<T: Field>(
    context: &Context,
    memory: Memory,
    info: Arc<Info>,
    shape: Shape,
    (b, x): (*const T, *mut T),
    area: *mut c_void,
) -> Result {
    check_area(area)?;
    require(b.is_null() == x.is_null(), "b without x, or x without b")?;
    let is_solved = !b.is_null();
    let count = |size: c_int| if is_solved { i64::from(size) } else { 0 };
    let (b, x) = (array(b, count(shape.0))?, array(x, count(shape.1))?);
    let matrix = {
        let state = info.lock();
        state.require(shape)?;
        state.matrix.clone().filter(|held| held.is::<Columns<T>>())
    };
    let matrix = matrix.ok_or(Error::InvalidValue("nothing of this type was set up"))?;
    run(context, memory, move || {
        let Some(matrix) = matrix.downcast_ref::<Columns<T>>() else { return Ok(()) };
        let factors: Kept<T> = T::factored(Method::Qr, matrix, false)?;
        let held: Held = Arc::new(factors);
        info.lock().factors = Some(Arc::clone(&held));
        if is_solved {
            // SAFETY: as above.
            unsafe { write_solution(whole::<T>(&held)?, slice(b.get(), shape.0 as usize), x.get())? };
        }
        Ok(())
    })
}

/// b stays as it is.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrFactorHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    b: *mut T,
    x: *mut T,
    info: csrqrInfoHost_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Host)?;
    // SAFETY: the caller's word.
    unsafe { factor_kept(&context, Memory::Host, self::info(&QR, info)?, (m, n, nnzA), (b, x), pBuffer) }
}

/// As `cusolverSpTcsrqrFactorHost`.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrFactor<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnzA: c_int,
    b: *mut T,
    x: *mut T,
    info: csrqrInfo_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Device)?;
    // SAFETY: the caller's word.
    unsafe { factor_kept(&context, Memory::Device, self::info(&QR, info)?, (m, n, nnzA), (b, x), pBuffer) }
}

pub fn cusolverSpTcsrqrZeroPivotHost<R: Field + Real>(
    handle: cusolverSpHandle_t,
    info: csrqrInfoHost_t,
    tol: R,
    position: Out<'_, c_int>,
) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    get(handle)?;
    zero_pivot::<R>(&*self::info(&QR, info)?, tol, position)
}

pub fn cusolverSpTcsrqrZeroPivot<R: Field + Real>(
    handle: cusolverSpHandle_t,
    info: csrqrInfo_t,
    tol: R,
    position: Out<'_, c_int>,
) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    context(handle, Memory::Device)?;
    zero_pivot::<R>(&*self::info(&QR, info)?, tol, position)
}

/// Least squares where there are more rows than columns; b stays as it is.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrSolveHost<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    b: *mut T,
    x: *mut T,
    info: csrqrInfoHost_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Host)?;
    // SAFETY: the caller's word.
    unsafe { solve(&context, Memory::Host, &*self::info(&QR, info)?, (m, n), (b.cast_const(), x), pBuffer) }
}

/// As `cusolverSpTcsrqrSolveHost`.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrSolve<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    b: *mut T,
    x: *mut T,
    info: csrqrInfo_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Device)?;
    // SAFETY: the caller's word.
    unsafe { solve(&context, Memory::Device, &*self::info(&QR, info)?, (m, n), (b.cast_const(), x), pBuffer) }
}

/// Matrices of one pattern, values and sides one behind the other; at most as many as the area was asked for.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrqrsvBatched<T: Field>(
    handle: cusolverSpHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    b: *const T,
    x: *mut T,
    batchSize: c_int,
    info: csrqrInfo_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Device)?;
    let info = self::info(&QR, info)?;
    check_area(pBuffer)?;
    {
        let state = info.lock();
        state.require((m, n, nnz))?;
        require(batchSize > 0 && batchSize <= state.batch, "not as many matrices as there is an area for")?;
    }
    let all = |size: c_int| i64::from(size) * i64::from(batchSize);
    let a = Rows::of((m, n, nnz), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // The values of all matrices, behind those of the first one.
    array(csrValA, all(nnz))?;
    let (b, x) = (array(b, all(m))?, array(x, all(n))?);
    on_device(&context, move || {
        let failed = Mutex::new(Ok(()));
        cusolver_cpu::each(batchSize.into(), |number| {
            let number = number as usize;
            // SAFETY: as above; a matrix and its sides for each call.
            let done = unsafe {
                let (b, x) = (b.get().add(number * m as usize), x.get().add(number * n as usize));
                a.number(number).and_then(|a| solve_one(&a, slice(b, m as usize), x))
            };
            if done.is_err() {
                *failed.lock() = done;
            }
        });
        failed.into_inner()
    })
}

/// # Safety
/// There is room for as many numbers as the matrix has columns.
unsafe fn solve_one<T: Field>(a: &Columns<T>, b: &[T], x: *mut T) -> Result {
    match T::factored(Method::Qr, a, false)? {
        // SAFETY: the caller's word.
        Factored::Whole(factors) => unsafe { write_solution(&*factors, b, x) },
        Factored::Ended(_) => Err(Error::ZeroPivot),
    }
}

pub fn cusolverSpCreateCsrcholInfoHost(info: Out<'_, csrcholInfoHost_t>) -> Result {
    create(&CHOLESKY, info)
}

pub fn cusolverSpDestroyCsrcholInfoHost(info: csrcholInfoHost_t) -> Result {
    destroy(&CHOLESKY, info)
}

pub fn cusolverSpCreateCsrcholInfo(info: Out<'_, csrcholInfo_t>) -> Result {
    create(&CHOLESKY, info)
}

pub fn cusolverSpDestroyCsrcholInfo(info: csrcholInfo_t) -> Result {
    destroy(&CHOLESKY, info)
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpXcsrcholAnalysisHost(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrcholInfoHost_t,
) -> Result {
    let context = context(handle, Memory::Host)?;
    let info = self::info(&CHOLESKY, info)?;
    // SAFETY: the caller's word.
    unsafe { analyse(&context, Memory::Host, info, (n, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpXcsrcholAnalysis(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrcholInfo_t,
) -> Result {
    let context = context(handle, Memory::Device)?;
    let info = self::info(&CHOLESKY, info)?;
    // SAFETY: the caller's word.
    unsafe { analyse(&context, Memory::Device, info, (n, n, nnzA), descrA, (csrRowPtrA, csrColIndA)) }
}

pub fn cusolverSpTcsrcholBufferInfoHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    _csrValA: *const T,
    _csrRowPtrA: *const c_int,
    _csrColIndA: *const c_int,
    info: csrcholInfoHost_t,
    internalDataInBytes: Out<'_, usize>,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    get(handle)?;
    let info = self::info(&CHOLESKY, info)?;
    areas::<T>(&info, (n, n, nnzA), descrA, 1, (internalDataInBytes, workspaceInBytes))
}

pub fn cusolverSpTcsrcholBufferInfo<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    _csrValA: *const T,
    _csrRowPtrA: *const c_int,
    _csrColIndA: *const c_int,
    info: csrcholInfo_t,
    internalDataInBytes: Out<'_, usize>,
    workspaceInBytes: Out<'_, usize>,
) -> Result {
    context(handle, Memory::Device)?;
    let info = self::info(&CHOLESKY, info)?;
    areas::<T>(&info, (n, n, nnzA), descrA, 1, (internalDataInBytes, workspaceInBytes))
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrcholFactorHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrcholInfoHost_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Host)?;
    let info = self::info(&CHOLESKY, info)?;
    check_area(pBuffer)?;
    let a = Rows::new((n, nnzA), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { factor(&context, Memory::Host, info, Method::Cholesky, a, (n, n, nnzA)) }
}

/// The upper triangle is not read.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrcholFactor<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    nnzA: c_int,
    descrA: cusparseMatDescr_t,
    csrValA: *const T,
    csrRowPtrA: *const c_int,
    csrColIndA: *const c_int,
    info: csrcholInfo_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Device)?;
    let info = self::info(&CHOLESKY, info)?;
    check_area(pBuffer)?;
    let a = Rows::new((n, nnzA), descrA, (csrValA, csrRowPtrA, csrColIndA))?;
    // SAFETY: the caller's word.
    unsafe { factor(&context, Memory::Device, info, Method::Cholesky, a, (n, n, nnzA)) }
}

pub fn cusolverSpTcsrcholZeroPivotHost<R: Field + Real>(
    handle: cusolverSpHandle_t,
    info: csrcholInfoHost_t,
    tol: R,
    position: Out<'_, c_int>,
) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    get(handle)?;
    zero_pivot::<R>(&*self::info(&CHOLESKY, info)?, tol, position)
}

/// Counted from 0, as on the host.
pub fn cusolverSpTcsrcholZeroPivot<R: Field + Real>(
    handle: cusolverSpHandle_t,
    info: csrcholInfo_t,
    tol: R,
    position: Out<'_, c_int>,
) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    context(handle, Memory::Device)?;
    zero_pivot::<R>(&*self::info(&CHOLESKY, info)?, tol, position)
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrcholSolveHost<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    b: *const T,
    x: *mut T,
    info: csrcholInfoHost_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Host)?;
    // SAFETY: the caller's word.
    unsafe { solve(&context, Memory::Host, &*self::info(&CHOLESKY, info)?, (n, n), (b, x), pBuffer) }
}

/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrcholSolve<T: Field>(
    handle: cusolverSpHandle_t,
    n: c_int,
    b: *const T,
    x: *mut T,
    info: csrcholInfo_t,
    pBuffer: *mut c_void,
) -> Result {
    let context = context(handle, Memory::Device)?;
    // SAFETY: the caller's word.
    unsafe { solve(&context, Memory::Device, &*self::info(&CHOLESKY, info)?, (n, n), (b, x), pBuffer) }
}

/// The diagonal of L, in the device's memory.
///
/// # Safety
/// As [`cusolverSpXcsrluAnalysisHost`].
pub unsafe fn cusolverSpTcsrcholDiag<R: Field + Real>(
    handle: cusolverSpHandle_t,
    info: csrcholInfo_t,
    diag: *mut R,
) -> Result
where
    Complex<R>: Field + Scalar<Real = R>,
{
    let context = context(handle, Memory::Device)?;
    let held = self::info(&CHOLESKY, info)?.lock().factors.clone();
    let Factored::Whole(pivots) = pivots::<R>(held)? else { return Err(Error::ZeroPivot) };
    let values: Vec<R> = pivots.iter().map(|(_, pivot)| pivot.re).collect();
    let diag: Address<*mut R> = array(diag, values.len() as i64)?;
    on_device(&context, move || {
        // SAFETY: as above; a number for each column.
        unsafe { core::ptr::copy_nonoverlapping(values.as_ptr(), diag.get(), values.len()) };
        Ok(())
    })
}
