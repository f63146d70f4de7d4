//! The generic API's work by hipSPARSE. What comes here has been looked at by our own bodies: cuSPARSE takes it.

use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::Arc;

use super::HipCall;
use super::call::{must, settle};
use super::calls;
use super::convert::{data_type, operation, spgemm_alg, spmm_alg, spmv_alg};
use super::library::Generation;
use super::objects::{Kept, Made, Matrix, Use, dense_matrix, dense_vector, sparse_vector};
use crate::descriptor::{DenseMatrix, DenseVector, SparseMatrix, SparseVector};
use crate::types::*;
use crate::{Error, Result};

/// The bytes of a work area that hipSPARSE asks for; where it refuses none, and `leave` is called.
fn bytes(what: &str, ask: impl FnOnce(&mut usize) -> Result, leave: impl FnOnce()) -> Result<usize> {
    let mut bytes = 0;
    if settle(ask(&mut bytes).map(|()| true), what)? {
        return Ok(bytes);
    }
    leave();
    Ok(0)
}

/// Whether hipSPARSE has done it.
fn done(what: &str, answer: Result) -> Result<bool> {
    settle(answer.map(|()| true), what)
}

/// Where hipSPARSE takes a call without a work area for a question after its size.
fn has_area(buffer: *mut c_void) -> Result {
    if buffer.is_null() { Err(Error::NotSupported("hipSPARSE without a work area")) } else { Ok(()) }
}

/// `y = alpha · op(A) · x + beta · y`
pub struct TimesVector<'a> {
    pub kept: &'a Kept,
    pub op: cusparseOperation_t,
    pub a: &'a SparseMatrix,
    pub x: &'a DenseVector,
    pub y: &'a DenseVector,
    pub factors: [*const c_void; 2],
    pub compute: cudaDataType,
    pub alg: cusparseSpMVAlg_t,
}

/// A call of a function of these arguments, and of those behind them.
macro_rules! times_vector {
    ($self:ident, $hip:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        let a = $self.kept.matrix(library, $self.what(), $self.a)?;
        let (x, y) = (dense_vector(library, $self.x)?, dense_vector(library, $self.y)?);
        must!(library, $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.op)?,
            *const c_void = $self.factors[0],
            *mut c_void = a.raw(),
            *mut c_void = x.raw(),
            *const c_void = $self.factors[1],
            *mut c_void = y.raw(),
            c_uint = data_type($self.compute)?,
            c_uint = spmv_alg($self.alg, library.generation),
            $($last)*
        ))
    }};
}

impl TimesVector<'_> {
    fn what(&self) -> Use {
        Use::Vector(self.op, self.compute, self.alg)
    }

    pub fn bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| times_vector!(self, hip, hipsparseSpMV_bufferSize(*mut usize = to));
        bytes("SpMV", ask, || self.kept.leave(self.what()))
    }

    pub fn prepare(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let prepare = || times_vector!(self, hip, hipsparseSpMV_preprocess(*mut c_void = buffer));
        done("SpMV", self.area(hip, buffer).and_then(|()| prepare()))
    }

    pub fn run(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let run = || times_vector!(self, hip, hipsparseSpMV(*mut c_void = buffer));
        done("SpMV", self.area(hip, buffer).and_then(|()| run()))
    }

    fn area(&self, hip: &HipCall, buffer: *mut c_void) -> Result {
        if hip.library().generation == Generation::First { has_area(buffer) } else { Ok(()) }
    }
}

/// `C = alpha · op(A) · op(B) + beta · C`, with A sparse.
pub struct TimesDense<'a> {
    pub kept: &'a Kept,
    pub ops: [cusparseOperation_t; 2],
    pub a: &'a SparseMatrix,
    pub b: &'a DenseMatrix,
    pub c: &'a DenseMatrix,
    pub factors: [*const c_void; 2],
    pub compute: cudaDataType,
    pub alg: cusparseSpMMAlg_t,
}

macro_rules! times_dense {
    ($self:ident, $hip:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        let a = $self.kept.matrix(library, $self.what(), $self.a)?;
        let (b, c) = (dense_matrix(library, $self.b)?, dense_matrix(library, $self.c)?);
        must!(library, $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.ops[0])?,
            c_uint = operation($self.ops[1])?,
            *const c_void = $self.factors[0],
            *mut c_void = a.raw(),
            *mut c_void = b.raw(),
            *const c_void = $self.factors[1],
            *mut c_void = c.raw(),
            c_uint = data_type($self.compute)?,
            c_uint = spmm_alg($self.alg, library.generation),
            $($last)*
        ))
    }};
}

impl TimesDense<'_> {
    fn what(&self) -> Use {
        Use::Dense(self.ops, self.compute, self.alg)
    }

    pub fn bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| times_dense!(self, hip, hipsparseSpMM_bufferSize(*mut usize = to));
        bytes("SpMM", ask, || self.kept.leave(self.what()))
    }

    pub fn prepare(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let prepare = || times_dense!(self, hip, hipsparseSpMM_preprocess(*mut c_void = buffer));
        done("SpMM", prepare())
    }

    pub fn run(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let run = || times_dense!(self, hip, hipsparseSpMM(*mut c_void = buffer));
        done("SpMM", run())
    }
}

/// The product of two dense matrices where C has entries.
pub struct Sampled<'a> {
    pub kept: &'a Kept,
    pub ops: [cusparseOperation_t; 2],
    pub a: &'a DenseMatrix,
    pub b: &'a DenseMatrix,
    pub c: &'a SparseMatrix,
    pub factors: [*const c_void; 2],
    pub compute: cudaDataType,
}

macro_rules! sampled {
    ($self:ident, $hip:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        // HIP differs: hipSPARSE has no batches of sampled products.
        if $self.a.batches > 1 || $self.b.batches > 1 || $self.c.batches > 1 {
            return Err(Error::NotSupported("batches of sampled products by hipSPARSE"));
        }
        let c = $self.kept.matrix(library, $self.what(), $self.c)?;
        let (a, b) = (dense_matrix(library, $self.a)?, dense_matrix(library, $self.b)?);
        must!(library, $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.ops[0])?,
            c_uint = operation($self.ops[1])?,
            *const c_void = $self.factors[0],
            *mut c_void = a.raw(),
            *mut c_void = b.raw(),
            *const c_void = $self.factors[1],
            *mut c_void = c.raw(),
            c_uint = data_type($self.compute)?,
            // The default, which is the only one.
            c_uint = 0,
            $($last)*
        ))
    }};
}

impl Sampled<'_> {
    fn what(&self) -> Use {
        Use::Sampled(self.ops, self.compute)
    }

    pub fn bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| sampled!(self, hip, hipsparseSDDMM_bufferSize(*mut usize = to));
        bytes("SDDMM", ask, || self.kept.leave(self.what()))
    }

    pub fn prepare(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let prepare = || sampled!(self, hip, hipsparseSDDMM_preprocess(*mut c_void = buffer));
        done("SDDMM", prepare())
    }

    pub fn run(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let run = || sampled!(self, hip, hipsparseSDDMM(*mut c_void = buffer));
        done("SDDMM", run())
    }
}

/// A sparse vector and a dense one.
pub struct Vectors<'a> {
    pub x: &'a SparseVector,
    pub y: &'a DenseVector,
}

impl Vectors<'_> {
    fn made(&self, hip: &HipCall) -> Result<(Made, Made)> {
        Ok((sparse_vector(hip.library(), self.x)?, dense_vector(hip.library(), self.y)?))
    }

    pub fn add(&self, hip: &HipCall, alpha: *const c_void, beta: *const c_void) -> Result<bool> {
        let run = || {
            let (x, y) = self.made(hip)?;
            must!(
                hip.library(),
                hipsparseAxpby(
                    *mut c_void = hip.raw(),
                    *const c_void = alpha,
                    *mut c_void = x.raw(),
                    *const c_void = beta,
                    *mut c_void = y.raw()
                )
            )
        };
        done("Axpby", run())
    }

    pub fn gather(&self, hip: &HipCall) -> Result<bool> {
        let run = || {
            let (x, y) = self.made(hip)?;
            must!(
                hip.library(),
                hipsparseGather(*mut c_void = hip.raw(), *mut c_void = y.raw(), *mut c_void = x.raw())
            )
        };
        done("Gather", run())
    }

    pub fn scatter(&self, hip: &HipCall) -> Result<bool> {
        let run = || {
            let (x, y) = self.made(hip)?;
            must!(
                hip.library(),
                hipsparseScatter(*mut c_void = hip.raw(), *mut c_void = x.raw(), *mut c_void = y.raw())
            )
        };
        done("Scatter", run())
    }

    pub fn rotate(&self, hip: &HipCall, c: *const c_void, s: *const c_void) -> Result<bool> {
        let run = || {
            let (x, y) = self.made(hip)?;
            must!(
                hip.library(),
                hipsparseRot(
                    *mut c_void = hip.raw(),
                    *const c_void = c,
                    *const c_void = s,
                    *mut c_void = x.raw(),
                    *mut c_void = y.raw()
                )
            )
        };
        done("Rot", run())
    }

    pub fn dot_bytes(
        &self,
        hip: &HipCall,
        op: cusparseOperation_t,
        result: *const c_void,
        compute: cudaDataType,
    ) -> Result<usize> {
        let ask = |to: &mut usize| {
            let (x, y) = self.made(hip)?;
            must!(
                hip.library(),
                hipsparseSpVV_bufferSize(
                    *mut c_void = hip.raw(),
                    c_uint = operation(op)?,
                    *mut c_void = x.raw(),
                    *mut c_void = y.raw(),
                    *mut c_void = result.cast_mut(),
                    c_uint = data_type(compute)?,
                    *mut usize = to
                )
            )
        };
        // Our own code asks for none, without which hipSPARSE does nothing.
        bytes("SpVV", ask, || {})
    }

    pub fn dot(
        &self,
        hip: &HipCall,
        op: cusparseOperation_t,
        result: *mut c_void,
        compute: cudaDataType,
        buffer: *mut c_void,
    ) -> Result<bool> {
        let run = || {
            has_area(buffer)?;
            let (x, y) = self.made(hip)?;
            must!(
                hip.library(),
                hipsparseSpVV(
                    *mut c_void = hip.raw(),
                    c_uint = operation(op)?,
                    *mut c_void = x.raw(),
                    *mut c_void = y.raw(),
                    *mut c_void = result,
                    c_uint = data_type(compute)?,
                    *mut c_void = buffer
                )
            )
        };
        done("SpVV", run())
    }
}

/// A sparse matrix and a dense one, of which one becomes the other.
pub struct Conversion<'a> {
    pub kept: &'a Kept,
    pub sparse: &'a SparseMatrix,
    pub dense: &'a DenseMatrix,
}

macro_rules! to_dense {
    ($self:ident, $hip:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        let sparse = $self.kept.matrix(library, Use::ToDense, $self.sparse)?;
        let dense = dense_matrix(library, $self.dense)?;
        // Of algorithms there is the default alone.
        must!(library, $function(
            *mut c_void = $hip.raw(), *mut c_void = sparse.raw(), *mut c_void = dense.raw(), c_uint = 0, $($last)*
        ))
    }};
}

macro_rules! to_sparse {
    ($self:ident, $hip:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        let sparse = $self.kept.matrix(library, Use::FromDense, $self.sparse)?;
        let dense = dense_matrix(library, $self.dense)?;
        must!(library, $function(
            *mut c_void = $hip.raw(), *mut c_void = dense.raw(), *mut c_void = sparse.raw(), c_uint = 0, $($last)*
        ))
        .map(|()| sparse)
    }};
}

impl Conversion<'_> {
    pub fn dense_bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| to_dense!(self, hip, hipsparseSparseToDense_bufferSize(*mut usize = to));
        bytes("SparseToDense", ask, || self.kept.leave(Use::ToDense))
    }

    pub fn to_dense(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let run = || {
            has_area(buffer)?;
            to_dense!(self, hip, hipsparseSparseToDense(*mut c_void = buffer))
        };
        done("SparseToDense", run())
    }

    pub fn sparse_bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| {
            to_sparse!(self, hip, hipsparseDenseToSparse_bufferSize(*mut usize = to)).map(drop)
        };
        bytes("DenseToSparse", ask, || self.kept.leave(Use::FromDense))
    }

    /// How many entries the dense matrix has, if hipSPARSE says so. It writes where the rows begin, too.
    pub fn count(&self, hip: &HipCall, buffer: *mut c_void) -> Result<Option<usize>> {
        *self.kept.counted.lock() = None;
        let mut entries = None;
        let mut run = || {
            has_area(buffer)?;
            let sparse = to_sparse!(self, hip, hipsparseDenseToSparse_analysis(*mut c_void = buffer))?;
            hip.synchronize()?;
            entries = Some(sparse.entries()?);
            Ok(())
        };
        let is_done = done("DenseToSparse", run())?;
        *self.kept.counted.lock() = is_done.then(|| self.places());
        Ok(entries.filter(|_| is_done))
    }

    /// What was counted at the same places.
    pub fn to_sparse(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        if *self.kept.counted.lock() != Some(self.places()) {
            return Ok(false);
        }
        let run = || {
            has_area(buffer)?;
            to_sparse!(self, hip, hipsparseDenseToSparse_convert(*mut c_void = buffer)).map(drop)
        };
        done("DenseToSparse", run())
    }

    fn places(&self) -> (usize, usize) {
        (self.sparse.offsets.addr(), self.dense.values.addr())
    }
}

/// hipSPARSE's descriptor of a system with a triangle, and the matrix whose analysis is kept.
pub struct Solve {
    made: Made,
    matrix: Matrix,
    /// The work area of the analysis, which a solution uses again.
    buffer: AtomicPtr<c_void>,
    has_begun: AtomicBool,
}

impl Solve {
    fn new(hip: &HipCall, create: usize, destroy: usize, a: &SparseMatrix) -> Result<Solve> {
        Ok(Solve {
            made: Made::new(hip.library(), create, destroy)?,
            matrix: Matrix::new(hip.library(), a)?,
            buffer: AtomicPtr::default(),
            has_begun: AtomicBool::new(false),
        })
    }

    /// hipSPARSE has the analysis.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    fn begin(&self, buffer: *mut c_void) {
        self.buffer.store(buffer, Ordering::Release);
        self.has_begun.store(true, Ordering::Release);
    }
}

/// What our own descriptor keeps of it.
pub type KeptSolve = parking_lot::Mutex<Option<Arc<Solve>>>;

/// The kept one if it is of the same matrix, or a new one.
fn solve_of(
    kept: &KeptSolve,
    hip: &HipCall,
    (create, destroy): (usize, usize),
    a: &SparseMatrix,
) -> Result<Arc<Solve>> {
    let mut kept = kept.lock();
    if let Some(solve) = &*kept
        && solve.matrix.follow(a)?
    {
        return Ok(Arc::clone(solve));
    }
    let solve = Arc::new(Solve::new(hip, create, destroy, a)?);
    *kept = Some(Arc::clone(&solve));
    Ok(solve)
}

/// The one of which hipSPARSE has said how large its work area is.
fn asked(kept: &KeptSolve, a: &SparseMatrix) -> Result<Arc<Solve>> {
    let known = kept.lock().clone().ok_or(Error::NotSupported("an analysis without a question"))?;
    same_matrix(known.matrix.follow(a)?)?;
    Ok(known)
}

/// The analysis's, which there has to be for what goes on with it.
fn begun(kept: &KeptSolve) -> Option<Arc<Solve>> {
    kept.lock().clone().filter(|solve| solve.has_begun())
}

/// `op(A) · y = alpha · x`
pub struct System<'a> {
    pub kept: &'a KeptSolve,
    pub op: cusparseOperation_t,
    pub alpha: *const c_void,
    pub a: &'a SparseMatrix,
    pub x: &'a DenseVector,
    pub y: &'a DenseVector,
    pub compute: cudaDataType,
}

macro_rules! system {
    ($self:ident, $hip:ident, $solve:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        let (x, y) = (dense_vector(library, $self.x)?, dense_vector(library, $self.y)?);
        must!(library, $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.op)?,
            *const c_void = $self.alpha,
            *mut c_void = $solve.matrix.raw(),
            *mut c_void = x.raw(),
            *mut c_void = y.raw(),
            c_uint = data_type($self.compute)?,
            // The default, which is the only one.
            c_uint = 0,
            *mut c_void = $solve.made.raw(),
            $($last)*
        ))
    }};
}

impl System<'_> {
    fn solve(&self, hip: &HipCall) -> Result<Arc<Solve>> {
        let made = (calls::hipsparseSpSV_createDescr, calls::hipsparseSpSV_destroyDescr);
        solve_of(self.kept, hip, made, self.a)
    }

    pub fn bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| {
            let solve = self.solve(hip)?;
            system!(self, hip, solve, hipsparseSpSV_bufferSize(*mut usize = to))
        };
        bytes("SpSV", ask, || *self.kept.lock() = None)
    }

    /// Whether hipSPARSE does this analysis, and the solutions.
    pub fn analyse(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let run = || {
            has_area(buffer)?;
            let solve = asked(self.kept, self.a)?;
            system!(self, hip, solve, hipsparseSpSV_analysis(*mut c_void = buffer))?;
            solve.begin(buffer);
            Ok(())
        };
        let is_done = done("SpSV", run())?;
        if !is_done {
            *self.kept.lock() = None;
        }
        Ok(is_done)
    }

    /// Whether hipSPARSE has the analysis, and this solution.
    pub fn run(&self, hip: &HipCall) -> Result<bool> {
        let Some(solve) = begun(self.kept) else { return Ok(false) };
        same_matrix(solve.matrix.follow(self.a)?)?;
        if hip.library().generation == Generation::Second {
            system!(self, hip, solve, hipsparseSpSV_solve())?;
        } else {
            let buffer = solve.buffer.load(Ordering::Acquire);
            system!(self, hip, solve, hipsparseSpSV_solve(*mut c_void = buffer))?;
        }
        Ok(true)
    }
}

fn same_matrix(is_same: bool) -> Result {
    crate::error::require(is_same, "the descriptor was not analysed for this matrix")
}

/// `op(A) · C = alpha · op(B)`
pub struct Systems<'a> {
    pub kept: &'a KeptSolve,
    pub ops: [cusparseOperation_t; 2],
    pub alpha: *const c_void,
    pub a: &'a SparseMatrix,
    pub b: &'a DenseMatrix,
    pub c: &'a DenseMatrix,
    pub compute: cudaDataType,
}

macro_rules! systems {
    ($self:ident, $hip:ident, $solve:ident, $function:ident($($last:tt)*)) => {{
        let library = $hip.library();
        let (b, c) = (dense_matrix(library, $self.b)?, dense_matrix(library, $self.c)?);
        must!(library, $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.ops[0])?,
            c_uint = operation($self.ops[1])?,
            *const c_void = $self.alpha,
            *mut c_void = $solve.matrix.raw(),
            *mut c_void = b.raw(),
            *mut c_void = c.raw(),
            c_uint = data_type($self.compute)?,
            c_uint = 0,
            *mut c_void = $solve.made.raw(),
            $($last)*
        ))
    }};
}

impl Systems<'_> {
    fn solve(&self, hip: &HipCall) -> Result<Arc<Solve>> {
        let made = (calls::hipsparseSpSM_createDescr, calls::hipsparseSpSM_destroyDescr);
        solve_of(self.kept, hip, made, self.a)
    }

    pub fn bytes(&self, hip: &HipCall) -> Result<usize> {
        let ask = |to: &mut usize| {
            let solve = self.solve(hip)?;
            systems!(self, hip, solve, hipsparseSpSM_bufferSize(*mut usize = to))
        };
        bytes("SpSM", ask, || *self.kept.lock() = None)
    }

    /// As [`System::analyse`].
    pub fn analyse(&self, hip: &HipCall, buffer: *mut c_void) -> Result<bool> {
        let run = || {
            has_area(buffer)?;
            let solve = asked(self.kept, self.a)?;
            systems!(self, hip, solve, hipsparseSpSM_analysis(*mut c_void = buffer))?;
            solve.begin(buffer);
            Ok(())
        };
        let is_done = done("SpSM", run())?;
        if !is_done {
            *self.kept.lock() = None;
        }
        Ok(is_done)
    }

    /// As [`System::run`].
    pub fn run(&self, hip: &HipCall) -> Result<bool> {
        let Some(solve) = begun(self.kept) else { return Ok(false) };
        same_matrix(solve.matrix.follow(self.a)?)?;
        let buffer = solve.buffer.load(Ordering::Acquire);
        systems!(self, hip, solve, hipsparseSpSM_solve(*mut c_void = buffer))?;
        Ok(true)
    }
}

/// hipSPARSE's descriptor of a product of sparse matrices, and the matrices, by whose descriptors it keeps what it finds.
pub struct Product {
    made: Made,
    a: Matrix,
    b: Matrix,
    c: Matrix,
}

/// What our own descriptor keeps of it.
pub type KeptProduct = parking_lot::Mutex<Option<Arc<Product>>>;

/// From ROCm 6.2 on the steps are cuSPARSE's: before that the first did nothing, and the last needed C's arrays.
const FIRST_VERSION: core::ffi::c_int = 300_100;

/// `C = alpha · A · B + beta · C`, all three sparse.
pub struct Products<'a> {
    pub kept: &'a KeptProduct,
    pub ops: [cusparseOperation_t; 2],
    pub a: &'a SparseMatrix,
    pub b: &'a SparseMatrix,
    pub c: &'a SparseMatrix,
    pub alg: cusparseSpGEMMAlg_t,
}

/// Of the steps that have factors.
pub struct Scale {
    pub factors: [*const c_void; 2],
    pub compute: cudaDataType,
}

macro_rules! scaled {
    ($self:ident, $hip:ident, $product:ident, $scale:ident, $function:ident($($last:tt)*)) => {
        must!($hip.library(), $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.ops[0])?,
            c_uint = operation($self.ops[1])?,
            *const c_void = $scale.factors[0],
            *mut c_void = $product.a.raw(),
            *mut c_void = $product.b.raw(),
            *const c_void = $scale.factors[1],
            *mut c_void = $product.c.raw(),
            c_uint = data_type($scale.compute)?,
            c_uint = spgemm_alg($self.alg)?,
            *mut c_void = $product.made.raw(),
            $($last)*
        ))
    };
}

macro_rules! pattern {
    ($self:ident, $hip:ident, $product:ident, $function:ident($($last:tt)*)) => {
        must!($hip.library(), $function(
            *mut c_void = $hip.raw(),
            c_uint = operation($self.ops[0])?,
            c_uint = operation($self.ops[1])?,
            *mut c_void = $product.a.raw(),
            *mut c_void = $product.b.raw(),
            *mut c_void = $product.c.raw(),
            c_uint = spgemm_alg($self.alg)?,
            *mut c_void = $product.made.raw(),
            $($last)*
        ))
    };
}

/// A step's work areas: places of sizes, and of the areas.
pub type Areas<'a, const N: usize> = [(&'a mut usize, *mut c_void); N];

impl Products<'_> {
    fn begin(&self, hip: &HipCall) -> Result<Arc<Product>> {
        let library = hip.library();
        if hip.handle.version < FIRST_VERSION {
            return Err(Error::NotSupported("products of sparse matrices by a hipSPARSE before ROCm 6.2"));
        }
        Ok(Arc::new(Product {
            made: Made::new(
                library,
                calls::hipsparseSpGEMM_createDescr,
                calls::hipsparseSpGEMM_destroyDescr,
            )?,
            a: Matrix::new(library, self.a)?,
            b: Matrix::new(library, self.b)?,
            c: Matrix::new(library, self.c)?,
        }))
    }

    /// The one of the steps before, whose matrices are told where they lie now.
    fn known(&self) -> Result<Option<Arc<Product>>> {
        let Some(product) = self.kept.lock().clone() else { return Ok(None) };
        let same = product.a.follow(self.a)? && product.b.follow(self.b)? && product.c.follow(self.c)?;
        crate::error::require(same, "the descriptor is of another product")?;
        Ok(Some(product))
    }

    /// The first step. A question after its size begins the product: hipSPARSE keeps the answer.
    fn first(&self, hip: &HipCall, area: *mut c_void, call: impl FnOnce(&Product) -> Result) -> Result<bool> {
        let run = || {
            if area.is_null() {
                let product = self.begin(hip)?;
                call(&product)?;
                *self.kept.lock() = Some(product);
                return Ok(());
            }
            let product = self.known()?.ok_or(Error::NotSupported("a product without a question"))?;
            call(&product)?;
            product.c.has_moved();
            Ok(())
        };
        let is_done = done("SpGEMM", run())?;
        if !is_done {
            *self.kept.lock() = None;
        }
        Ok(is_done)
    }

    /// Whether hipSPARSE does this product.
    pub fn estimate(&self, hip: &HipCall, scale: &Scale, [(size, area)]: Areas<'_, 1>) -> Result<bool> {
        self.first(hip, area, |product| {
            scaled!(self, hip, product, scale, hipsparseSpGEMM_workEstimation(*mut usize = size, *mut c_void = area))
        })
    }

    /// As [`Self::estimate`], of a product whose pattern is used again.
    pub fn estimate_reused(&self, hip: &HipCall, [(size, area)]: Areas<'_, 1>) -> Result<bool> {
        self.first(hip, area, |product| {
            pattern!(
                self,
                hip,
                product,
                hipsparseSpGEMMreuse_workEstimation(*mut usize = size, *mut c_void = area)
            )
        })
    }

    /// A step behind the first that finds entries: how many C has, which a question does not change. None: it is our own code's.
    fn find(&self, is_question: bool, call: impl FnOnce(&Product) -> Result) -> Result<Option<usize>> {
        let Some(product) = self.known()? else { return Ok(None) };
        let mut entries = self.c.nnz;
        let run = || {
            call(&product)?;
            if !is_question {
                entries = product.c.entries()?;
                product.c.has_moved();
            }
            Ok(())
        };
        if done("SpGEMM", run())? {
            return Ok(Some(entries));
        }
        *self.kept.lock() = None;
        Ok(None)
    }

    pub fn compute(&self, hip: &HipCall, scale: &Scale, areas: Areas<'_, 1>) -> Result<Option<usize>> {
        let [(size, area)] = areas;
        self.find(area.is_null(), |product| {
            scaled!(self, hip, product, scale, hipsparseSpGEMM_compute(*mut usize = size, *mut c_void = area))
        })
    }

    pub fn pattern(&self, hip: &HipCall, areas: Areas<'_, 3>) -> Result<Option<usize>> {
        let is_question = areas.iter().any(|(_, area)| area.is_null());
        let [(size2, area2), (size3, area3), (size4, area4)] = areas;
        self.find(is_question, |product| {
            pattern!(
                self,
                hip,
                product,
                hipsparseSpGEMMreuse_nnz(
                    *mut usize = size2,
                    *mut c_void = area2,
                    *mut usize = size3,
                    *mut c_void = area3,
                    *mut usize = size4,
                    *mut c_void = area4
                )
            )
        })
    }

    /// Whether hipSPARSE has the product, which lies where C does now.
    pub fn copy(&self, hip: &HipCall, scale: &Scale) -> Result<bool> {
        let Some(product) = self.known()? else { return Ok(false) };
        scaled!(self, hip, product, scale, hipsparseSpGEMM_copy())?;
        Ok(true)
    }

    pub fn copy_pattern(&self, hip: &HipCall, areas: Areas<'_, 1>) -> Result<bool> {
        let [(size, area)] = areas;
        let Some(product) = self.known()? else { return Ok(false) };
        pattern!(self, hip, product, hipsparseSpGEMMreuse_copy(*mut usize = size, *mut c_void = area))?;
        Ok(true)
    }

    pub fn compute_values(&self, hip: &HipCall, scale: &Scale) -> Result<bool> {
        let Some(product) = self.known()? else { return Ok(false) };
        scaled!(self, hip, product, scale, hipsparseSpGEMMreuse_compute())?;
        Ok(true)
    }
}
