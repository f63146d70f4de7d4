//! Systems with a triangle of a sparse matrix. Source: cuSPARSE manual, `cusparseSpSV`, `cusparseSpSM`.
//!
//! The rule: the analysis takes the triangle's values along, in stream order, and solutions are made of those; `updateMatrix` gives it
//! others. A diagonal that is zero or missing gives infinities, as on a GPU. Our own code uses no work area.

use core::ffi::c_void;
use std::any::Any;
use std::sync::Arc;

use border::Out;
use cusparse_cpu::{Dense, DenseMut, Layout, Operation, Shape, SharedRows, Triangle};
use parking_lot::Mutex;

use super::conversion::SOME;
use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::hip::generic::{KeptSolve, System, Systems};
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

/// What an analysis was asked for, and what it has found when the stream has come to it.
#[derive(Default)]
pub(super) struct Analysis {
    asked: Mutex<Option<Asked>>,
    /// A [`Triangle`] of the type that is computed with.
    found: Mutex<Option<Box<dyn Any + Send>>>,
    /// hipSPARSE's analysis, where that is whose.
    hip: KeptSolve,
    /// Of what that is.
    matrix: Mutex<Option<SparseMatrix>>,
}

// SAFETY: addresses are numbers until the work follows them.
unsafe impl Send for Analysis {}
// SAFETY: as above.
unsafe impl Sync for Analysis {}

impl Analysis {
    /// Another matrix than the one that was analysed is refused.
    pub(super) fn check(&self, asked: Asked) -> Result {
        let is_known = *self.asked.lock() == Some(asked);
        require(is_known, "the descriptor was not analysed for this matrix and operation")
    }

    /// The same, whatever triangle and operation are asked for.
    pub(super) fn check_matrix(&self, asked: Asked) -> Result {
        let known = self.asked.lock().map(|known| Asked { shape: asked.shape, ..known });
        require(known == Some(asked), "the info was not analysed for this matrix")
    }

    /// hipSPARSE has it.
    fn taken(&self, asked: Asked, a: SparseMatrix) {
        self.ask(asked);
        *self.matrix.lock() = Some(a);
    }

    pub(super) fn ask(&self, asked: Asked) {
        *self.asked.lock() = Some(asked);
    }

    pub(super) fn find<C: Computed>(&self, triangle: Triangle<C>) {
        *self.found.lock() = Some(Box::new(triangle));
    }

    /// Runs with the triangle, which there is when the analysis has run.
    pub(super) fn with<C: Computed, R>(&self, work: impl FnOnce(&mut Triangle<C>) -> R) -> Option<R> {
        self.found.lock().as_mut().and_then(|found| found.downcast_mut::<Triangle<C>>()).map(work)
    }
}

#[derive(Clone, Copy, PartialEq)]
pub(super) struct Asked {
    compute: cudaDataType,
    size: usize,
    entries: usize,
    shape: Shape,
    /// Values lie in the order of rows, so that others can take their place.
    in_order: bool,
}

/// Both kinds of descriptors are the same here.
static ANALYSES: Descriptors<Analysis> = Descriptors::new();

/// What is asked of a square matrix.
fn asked(a: &SparseMatrix, opA: cusparseOperation_t, compute: cudaDataType) -> Result<Asked> {
    require(a.rows == a.cols, "the matrix is not square")?;
    if !matches!(a.format, Format::Csr | Format::Coo | Format::SlicedEll { .. }) {
        return Err(Error::NotSupported("systems in this format"));
    }
    check_matrix(a)?;
    Asked::new(a, opA, compute)
}

impl Asked {
    /// Of a square matrix in any format.
    pub(super) fn new(a: &SparseMatrix, opA: cusparseOperation_t, compute: cudaDataType) -> Result<Asked> {
        let operation = operation(opA)?;
        let shape = Shape {
            upper: a.is_upper(),
            unit: a.is_unit(),
            transposed: operation.transposed,
            conjugated: operation.conjugated,
        };
        Ok(Asked { compute, size: a.rows, entries: a.nnz, shape, in_order: a.format.has_rows_in_order() })
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }
}

fn uniform(types: &[cudaDataType], compute: cudaDataType) -> Result {
    let is_one = types_go_together((compute, compute), compute, compute, false)
        && compute != cudaDataType::CUDA_R_32I
        && types.iter().all(|ty| *ty == compute);
    if is_one { Ok(()) } else { Err(Error::NotSupported("these types together")) }
}

fn analyse(context: &handle::Context, a: SparseMatrix, asked: Asked, analysis: Arc<Analysis>) -> Result {
    context.can_compute()?;
    *analysis.hip.lock() = None;
    analysis.ask(asked);
    context.enqueue(a, move |a| {
        compute!(asked.compute, C => index!(a.index_type, I => {
            // SAFETY: cuSPARSE's contract: what the descriptor says is there until the stream has come here.
            let (a, _) = unsafe { matrix::<C, I>(&a, 0) };
            analysis.find(Triangle::<C>::new(&a, asked.shape));
        }))
    })
}

fn update(
    context: &handle::Context,
    analysis: Arc<Analysis>,
    newValues: *mut c_void,
    is_diagonal: bool,
) -> Result {
    let asked = (*analysis.asked.lock()).ok_or(Error::InvalidValue("the descriptor was not analysed"))?;
    if !is_diagonal && !asked.in_order {
        return Err(Error::NotSupported("other values for slices"));
    }
    let count = if is_diagonal { asked.size } else { asked.entries };
    check_values(newValues, count, asked.compute)?;
    if analysis.hip.lock().is_some() {
        // HIP differs: hipSPARSE's solutions are made of what lies in the matrix, which only our own analysis takes along.
        let a = *analysis.matrix.lock();
        match a {
            Some(a) if is_diagonal || a.values != newValues => {
                analyse(context, a, asked, Arc::clone(&analysis))?;
            }
            _ => return context.can_compute(),
        }
    }
    context.enqueue(newValues, move |new: *mut c_void| {
        compute!(asked.compute, C => {
            // SAFETY: as above.
            let values = unsafe { slice::<C>(new, count) };
            analysis.with::<C, _>(|triangle| {
                if is_diagonal { triangle.set_diagonal(values) } else { triangle.set_values(values) }
            });
        })
    })
}

pub fn cusparseSpSV_createDescr(descr: Out<'_, cusparseSpSVDescr_t>) -> Result {
    descr.write(ANALYSES.add(Analysis::default()));
    Ok(())
}

pub fn cusparseSpSV_destroyDescr(descr: cusparseSpSVDescr_t) -> Result {
    ANALYSES.remove(descr)
}

struct Side {
    asked: Asked,
    a: SparseMatrix,
    x: DenseVector,
    y: DenseVector,
}

fn side(
    opA: cusparseOperation_t,
    matA: cusparseSpMatDescr_t,
    vecX: cusparseDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSVAlg_t,
) -> Result<Side> {
    let (a, x, y) = (SPARSE_MATRICES.get(matA)?, DENSE_VECTORS.get(vecX)?, DENSE_VECTORS.get(vecY)?);
    require(alg <= cusparseSpSVAlg_t::CUSPARSE_SPSV_ALG2, "there is no such algorithm")?;
    require(x.size == a.rows && y.size == a.rows, "the vectors' sizes are not the matrix's")?;
    uniform(&[a.value_type, x.value_type, y.value_type], computeType)?;
    check_dense_vector(&x)?;
    check_dense_vector(&y)?;
    Ok(Side { asked: asked(&a, opA, computeType)?, a, x, y })
}

fn system<'a>(
    analysis: &'a Analysis,
    op: cusparseOperation_t,
    alpha: *const c_void,
    Side { a, x, y, .. }: &'a Side,
    compute: cudaDataType,
) -> System<'a> {
    System { kept: &analysis.hip, op, alpha, a, x, y, compute }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpSV_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSVAlg_t,
    spsvDescr: cusparseSpSVDescr_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null(), "alpha is NULL")?;
    let analysis = ANALYSES.get(spsvDescr)?;
    let side = side(opA, matA, vecX, vecY, computeType, alg)?;
    let bytes = |hip| system(&analysis, opA, alpha, &side, computeType).bytes(&hip);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), bytes)?.max(SOME));
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpSV_analysis(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSVAlg_t,
    spsvDescr: cusparseSpSVDescr_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null(), "alpha is NULL")?;
    let analysis = ANALYSES.get(spsvDescr)?;
    let side = side(opA, matA, vecX, vecY, computeType, alg)?;
    if let Some(hip) = context.hip(true)?
        && system(&analysis, opA, alpha, &side, computeType).analyse(&hip, externalBuffer)?
    {
        analysis.taken(side.asked, side.a);
        return Ok(());
    }
    analyse(&context, side.a, side.asked, analysis)
}

/// # Safety
/// As [`cusparseSpSV_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpSV_solve(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    vecX: cusparseConstDnVecDescr_t,
    vecY: cusparseDnVecDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSVAlg_t,
    spsvDescr: cusparseSpSVDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let alpha_at = alpha;
    // SAFETY: the caller's promise.
    let alpha = unsafe { Factor::new(alpha, computeType, context.on_host()) }?;
    let analysis = ANALYSES.get(spsvDescr)?;
    let side = side(opA, matA, vecX, vecY, computeType, alg)?;
    let Side { asked, x, y, .. } = side;
    analysis.check(asked)?;
    if let Some(hip) = context.hip(true)?
        && system(&analysis, opA, alpha_at, &side, computeType).run(&hip)?
    {
        return Ok(());
    }
    context.enqueue((x, y, alpha), move |(x, y, alpha)| {
        compute!(asked.compute, C => {
            analysis.with::<C, _>(|triangle| {
                // SAFETY: cuSPARSE's contract: the vectors are there until the stream has come here. Both may be the same one.
                unsafe { solve_vector(triangle, alpha.get(), x.values, y.values) };
            });
        })
    })
}

/// # Safety
/// As [`cusparseSpSV_analysis`].
pub unsafe fn cusparseSpSV_updateMatrix(
    handle: cusparseHandle_t,
    spsvDescr: cusparseSpSVDescr_t,
    newValues: *mut c_void,
    updatePart: cusparseSpSVUpdate_t,
) -> Result {
    let context = handle::get(handle)?;
    require(updatePart <= cusparseSpSVUpdate_t::CUSPARSE_SPSV_UPDATE_DIAGONAL, "there is no such part")?;
    let is_diagonal = updatePart == cusparseSpSVUpdate_t::CUSPARSE_SPSV_UPDATE_DIAGONAL;
    update(&context, ANALYSES.get(spsvDescr)?, newValues, is_diagonal)
}

pub fn cusparseSpSM_createDescr(descr: Out<'_, cusparseSpSMDescr_t>) -> Result {
    descr.write(ANALYSES.add(Analysis::default()));
    Ok(())
}

pub fn cusparseSpSM_destroyDescr(descr: cusparseSpSMDescr_t) -> Result {
    ANALYSES.remove(descr)
}

struct Sides {
    asked: Asked,
    a: SparseMatrix,
    b: DenseMatrix,
    c: DenseMatrix,
    b_operation: cusparse_cpu::Operation,
}

fn sides(
    (opA, opB): (cusparseOperation_t, cusparseOperation_t),
    matA: cusparseSpMatDescr_t,
    matB: cusparseDnMatDescr_t,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSMAlg_t,
) -> Result<Sides> {
    let (a, b, c) = (SPARSE_MATRICES.get(matA)?, DENSE_MATRICES.get(matB)?, DENSE_MATRICES.get(matC)?);
    require(alg == cusparseSpSMAlg_t::CUSPARSE_SPSM_ALG_DEFAULT, "there is no such algorithm")?;
    let b_operation = operation(opB)?;
    let (rows, cols) = b_operation.size(b.rows, b.cols);
    require(rows == a.rows && c.rows == a.rows && c.cols == cols, "the matrices' sizes do not fit")?;
    uniform(&[a.value_type, b.value_type, c.value_type], computeType)?;
    if matches!(a.format, Format::SlicedEll { .. }) {
        return Err(Error::NotSupported("several right sides with Sliced-ELL"));
    }
    if a.batches > 1 || b.batches > 1 || c.batches > 1 {
        return Err(Error::NotSupported("systems of batches"));
    }
    check_dense_matrix(&b)?;
    check_dense_matrix(&c)?;
    Ok(Sides { asked: asked(&a, opA, computeType)?, a, b, c, b_operation })
}

fn systems<'a>(
    analysis: &'a Analysis,
    ops: [cusparseOperation_t; 2],
    alpha: *const c_void,
    Sides { a, b, c, .. }: &'a Sides,
    compute: cudaDataType,
) -> Systems<'a> {
    Systems { kept: &analysis.hip, ops, alpha, a, b, c, compute }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpSM_bufferSize(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSMAlg_t,
    spsmDescr: cusparseSpSMDescr_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null(), "alpha is NULL")?;
    let analysis = ANALYSES.get(spsmDescr)?;
    let sides = sides((opA, opB), matA, matB, matC, computeType, alg)?;
    let bytes = |hip| systems(&analysis, [opA, opB], alpha, &sides, computeType).bytes(&hip);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), bytes)?.max(SOME));
    Ok(())
}

/// # Safety
/// As [`cusparseSpSV_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpSM_analysis(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSMAlg_t,
    spsmDescr: cusparseSpSMDescr_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    require(!alpha.is_null(), "alpha is NULL")?;
    let analysis = ANALYSES.get(spsmDescr)?;
    let sides = sides((opA, opB), matA, matB, matC, computeType, alg)?;
    if let Some(hip) = context.hip(true)?
        && systems(&analysis, [opA, opB], alpha, &sides, computeType).analyse(&hip, externalBuffer)?
    {
        analysis.taken(sides.asked, sides.a);
        return Ok(());
    }
    analyse(&context, sides.a, sides.asked, analysis)
}

/// # Safety
/// As [`cusparseSpSV_analysis`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseSpSM_solve(
    handle: cusparseHandle_t,
    opA: cusparseOperation_t,
    opB: cusparseOperation_t,
    alpha: *const c_void,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseConstDnMatDescr_t,
    matC: cusparseDnMatDescr_t,
    computeType: cudaDataType,
    alg: cusparseSpSMAlg_t,
    spsmDescr: cusparseSpSMDescr_t,
) -> Result {
    let context = handle::get(handle)?;
    let alpha_at = alpha;
    // SAFETY: the caller's promise.
    let alpha = unsafe { Factor::new(alpha, computeType, context.on_host()) }?;
    let analysis = ANALYSES.get(spsmDescr)?;
    let sides = sides((opA, opB), matA, matB, matC, computeType, alg)?;
    let Sides { asked, b, c, b_operation, .. } = sides;
    analysis.check(asked)?;
    if let Some(hip) = context.hip(true)?
        && systems(&analysis, [opA, opB], alpha_at, &sides, computeType).run(&hip)?
    {
        return Ok(());
    }
    context.enqueue((b, c, alpha), move |(b, c, alpha)| {
        compute!(asked.compute, C => {
            // SAFETY: as in `cusparseSpSV_solve`.
            analysis.with::<C, _>(|triangle| unsafe {
                solve_sides(triangle, alpha.get(), (&b, b_operation), (&c, false));
            });
        })
    })
}

/// `y = alpha · op(A)⁻¹ · x`, in y's place; x may be the same vector.
///
/// # Safety
/// As [`slice_mut`], of as many values as the triangle has rows.
unsafe fn solve_vector<C: Computed>(triangle: &Triangle<C>, alpha: C, x: *mut c_void, y: *mut c_void) {
    let n = triangle.size();
    if x != y {
        // SAFETY: the caller's promise; they are different vectors.
        unsafe { slice_mut::<C>(y, n).copy_from_slice(slice(x, n)) };
    }
    // SAFETY: as above.
    let y = unsafe { slice_mut::<C>(y, n) };
    if alpha != C::ONE {
        y.iter_mut().for_each(|value| *value *= alpha);
    }
    triangle.solve(y);
}

/// The solution of `op(A) · X = alpha · op(B)`, or its transposed. B and X may be the same matrix.
///
/// # Safety
/// As [`packed`] and [`blend`].
pub(super) unsafe fn solve_sides<C: Computed>(
    triangle: &Triangle<C>,
    alpha: C,
    (b, b_operation): (&DenseMatrix, Operation),
    (x, x_transposed): (&DenseMatrix, bool),
) {
    let turn = |layout: Layout, transposed| if transposed { layout.transposed() } else { layout };
    let (mut from, to) = (turn(b.layout(), b_operation.transposed), turn(x.layout(), x_transposed));
    let (mut values, mut copy) = (b.values.cast::<C>(), Vec::new());
    if b.values == x.values && from != to {
        // What is written would be read again.
        // SAFETY: the caller's promise.
        copy = unsafe { packed::<C>(b, 0, b_operation.transposed, false) }.into_owned();
        (values, from) = (copy.as_mut_ptr(), Layout { ld: to.cols, row_major: true, ..to });
    }
    let size = (triangle.size(), to.cols);
    let is_by_rows = to.row_major && from.row_major && !b_operation.conjugated;
    let solutions = x.values.cast::<C>();
    if is_by_rows {
        // SAFETY: the caller's promise.
        let (from, to) =
            unsafe { (SharedRows::new(values, size, from.ld), SharedRows::new(solutions, size, to.ld)) };
        return triangle.solve_all(alpha, from, to);
    }
    // By rows in between: each entry asks for one value of every right side.
    // SAFETY: the caller's promise.
    let mut sides = unsafe {
        let from = Dense { layout: from, values: slice::<C>(values.cast(), from.len()) };
        from.packed::<C>(b_operation.conjugated)
    };
    // SAFETY: nobody else has these values.
    let rows = unsafe { SharedRows::new(sides.as_mut_ptr(), size, size.1.max(1)) };
    triangle.solve_all(alpha, rows, rows);
    // SAFETY: the caller's promise.
    let values = unsafe { slice_mut::<C>(solutions.cast(), to.len()) };
    DenseMut { layout: to, values }.put(&sides);
    drop(copy);
}

/// # Safety
/// As [`cusparseSpSV_analysis`].
pub unsafe fn cusparseSpSM_updateMatrix(
    handle: cusparseHandle_t,
    spsmDescr: cusparseSpSMDescr_t,
    newValues: *mut c_void,
    updatePart: cusparseSpSMUpdate_t,
) -> Result {
    let context = handle::get(handle)?;
    require(updatePart <= cusparseSpSMUpdate_t::CUSPARSE_SPSM_UPDATE_DIAGONAL, "there is no such part")?;
    let is_diagonal = updatePart == cusparseSpSMUpdate_t::CUSPARSE_SPSM_UPDATE_DIAGONAL;
    update(&context, ANALYSES.get(spsmDescr)?, newValues, is_diagonal)
}
