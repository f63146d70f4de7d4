//! The parameters of solvers that refine what a lower precision has found, and what they tell. Source: cuSOLVER manual, `cusolverDnIRSParams…`,
//! `cusolverDnIRSInfos…`, `cusolverDnIRSXgesv` and `cusolverDnIRSXgels`.
//!
//! As in `mixed`: a lower precision is allowed and not asked for. The factorization is that of the main one, which leaves nothing to be refined.
//! The number of iterations is 0, and the history of residuals has the solution's alone.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use border::Out;
use cusolver_cpu::{Complex, Field, least};
use kit::Registry;
use parking_lot::Mutex;

use super::mixed::check_sizes;
use crate::arguments::{Given, matrix, place};
use crate::handle::{Context, computing};
use crate::types::*;
use crate::{Error, Result};

#[derive(Clone, Copy)]
struct Settings {
    refinement: cusolverIRSRefinement_t,
    main: Option<cusolverPrecType_t>,
    lowest: Option<cusolverPrecType_t>,
    max_iterations: c_int,
}

static PARAMS: Registry<Mutex<Settings>> = Registry::new();

/// What a solver has told.
struct Told {
    wants_history: bool,
    max_iterations: c_int,
    iterations: c_int,
    /// Of each right side a column of as many residuals as there may be iterations, and one more; of the type that the solver worked in.
    history: History,
}

enum History {
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
}

static INFOS: Registry<Mutex<Told>> = Registry::new();

const NO_PARAMS: Error = Error::Refinement(
    cusolverStatus_t::CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED,
    "the parameters are none that were created",
);

const NO_INFOS: Error = Error::Refinement(
    cusolverStatus_t::CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED,
    "the information is none that was created",
);

fn params(params: cusolverDnIRSParams_t) -> Result<Arc<Mutex<Settings>>> {
    PARAMS.get(params).map_err(|_| NO_PARAMS)
}

fn infos(infos: cusolverDnIRSInfos_t) -> Result<Arc<Mutex<Told>>> {
    INFOS.get(infos).map_err(|_| NO_INFOS)
}

fn change(params: cusolverDnIRSParams_t, change: impl FnOnce(&mut Settings)) -> Result {
    change(&mut self::params(params)?.lock());
    Ok(())
}

/// The refinement and both precisions have to be set before anything is solved.
pub fn cusolverDnIRSParamsCreate(params_ptr: Out<'_, cusolverDnIRSParams_t>) -> Result {
    params_ptr.write(PARAMS.add(Mutex::new(Settings {
        refinement: cusolverIRSRefinement_t::CUSOLVER_IRS_REFINE_NOT_SET,
        main: None,
        lowest: None,
        max_iterations: 50,
    })));
    Ok(())
}

pub fn cusolverDnIRSParamsDestroy(params: cusolverDnIRSParams_t) -> Result {
    PARAMS.remove(params).map_err(|_| NO_PARAMS)?;
    Ok(())
}

pub fn cusolverDnIRSParamsSetRefinementSolver(
    params: cusolverDnIRSParams_t,
    refinement_solver: cusolverIRSRefinement_t,
) -> Result {
    if !matches!(refinement_solver.0, 1100..=1106) {
        return Err(Error::InvalidValue("there is no such refinement"));
    }
    change(params, |settings| settings.refinement = refinement_solver)
}

fn check_precision(precision: cusolverPrecType_t) -> Result<cusolverPrecType_t> {
    let is_known = matches!(precision.0, 1203..=1207 | 1213..=1217);
    is_known.then_some(precision).ok_or(Error::InvalidValue("there is no such precision"))
}

pub fn cusolverDnIRSParamsSetSolverMainPrecision(
    params: cusolverDnIRSParams_t,
    solver_main_precision: cusolverPrecType_t,
) -> Result {
    let main = check_precision(solver_main_precision)?;
    change(params, |settings| settings.main = Some(main))
}

pub fn cusolverDnIRSParamsSetSolverLowestPrecision(
    params: cusolverDnIRSParams_t,
    solver_lowest_precision: cusolverPrecType_t,
) -> Result {
    let lowest = check_precision(solver_lowest_precision)?;
    change(params, |settings| settings.lowest = Some(lowest))
}

pub fn cusolverDnIRSParamsSetSolverPrecisions(
    params: cusolverDnIRSParams_t,
    solver_main_precision: cusolverPrecType_t,
    solver_lowest_precision: cusolverPrecType_t,
) -> Result {
    cusolverDnIRSParamsSetSolverMainPrecision(params, solver_main_precision)?;
    cusolverDnIRSParamsSetSolverLowestPrecision(params, solver_lowest_precision)
}

/// Nothing is refined until it is small enough: every bound holds.
pub fn cusolverDnIRSParamsSetTol(params: cusolverDnIRSParams_t, _val: f64) -> Result {
    change(params, |_| {})
}

/// As `cusolverDnIRSParamsSetTol`.
pub fn cusolverDnIRSParamsSetTolInner(params: cusolverDnIRSParams_t, _val: f64) -> Result {
    change(params, |_| {})
}

pub fn cusolverDnIRSParamsSetMaxIters(params: cusolverDnIRSParams_t, maxiters: c_int) -> Result {
    if maxiters < 0 {
        return Err(Error::InvalidValue("a negative number of iterations"));
    }
    change(params, |settings| settings.max_iterations = maxiters)
}

/// There are no inner iterations to be counted.
pub fn cusolverDnIRSParamsSetMaxItersInner(params: cusolverDnIRSParams_t, maxiters_inner: c_int) -> Result {
    if maxiters_inner < 0 {
        return Err(Error::InvalidValue("a negative number of iterations"));
    }
    change(params, |_| {})
}

pub fn cusolverDnIRSParamsGetMaxIters(params: cusolverDnIRSParams_t, maxiters: Out<'_, c_int>) -> Result {
    maxiters.write(self::params(params)?.lock().max_iterations);
    Ok(())
}

/// What a solver would fall back to, the main precision, is what it works in.
pub fn cusolverDnIRSParamsEnableFallback(params: cusolverDnIRSParams_t) -> Result {
    change(params, |_| {})
}

/// As `cusolverDnIRSParamsEnableFallback`.
pub fn cusolverDnIRSParamsDisableFallback(params: cusolverDnIRSParams_t) -> Result {
    change(params, |_| {})
}

pub fn cusolverDnIRSInfosCreate(infos_ptr: Out<'_, cusolverDnIRSInfos_t>) -> Result {
    infos_ptr.write(INFOS.add(Mutex::new(Told {
        wants_history: false,
        max_iterations: 0,
        iterations: 0,
        history: History::Doubles(Vec::new()),
    })));
    Ok(())
}

pub fn cusolverDnIRSInfosDestroy(infos: cusolverDnIRSInfos_t) -> Result {
    INFOS.remove(infos).map_err(|_| NO_INFOS)?;
    Ok(())
}

pub fn cusolverDnIRSInfosGetNiters(infos: cusolverDnIRSInfos_t, niters: Out<'_, c_int>) -> Result {
    niters.write(self::infos(infos)?.lock().iterations);
    Ok(())
}

pub fn cusolverDnIRSInfosGetOuterNiters(infos: cusolverDnIRSInfos_t, outer_niters: Out<'_, c_int>) -> Result {
    outer_niters.write(self::infos(infos)?.lock().iterations);
    Ok(())
}

/// How many the last solver could have made.
pub fn cusolverDnIRSInfosGetMaxIters(infos: cusolverDnIRSInfos_t, maxiters: Out<'_, c_int>) -> Result {
    maxiters.write(self::infos(infos)?.lock().max_iterations);
    Ok(())
}

pub fn cusolverDnIRSInfosRequestResidual(infos: cusolverDnIRSInfos_t) -> Result {
    self::infos(infos)?.lock().wants_history = true;
    Ok(())
}

/// Memory of the host's, of the real numbers of the main precision: a column for each right side. It is there until the information is
/// destroyed or used again.
pub fn cusolverDnIRSInfosGetResidualHistory(
    infos: cusolverDnIRSInfos_t,
    residual_history: Out<'_, *mut c_void>,
) -> Result {
    let infos = self::infos(infos)?;
    let told = infos.lock();
    if !told.wants_history {
        return Err(Error::InvalidValue("no history of residuals was asked for"));
    }
    residual_history.write(match &told.history {
        History::Singles(norms) => norms.as_ptr().cast_mut().cast(),
        History::Doubles(norms) => norms.as_ptr().cast_mut().cast(),
    });
    Ok(())
}

/// The main precision, when all that has to be set is set and goes together.
fn main_precision(settings: &Settings) -> Result<cusolverPrecType_t> {
    if settings.refinement == cusolverIRSRefinement_t::CUSOLVER_IRS_REFINE_NOT_SET {
        return Err(Error::Refinement(
            cusolverStatus_t::CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE,
            "no refinement was set",
        ));
    }
    let goes_together = settings.main.zip(settings.lowest).is_some_and(|(main, lowest)| {
        // 64 bits, 32, and three kinds of 16; ten on for complex numbers.
        matches!(main.0, 1203 | 1204 | 1213 | 1214) && main.0 / 10 == lowest.0 / 10 && lowest.0 >= main.0
    });
    settings.main.filter(|_| goes_together).ok_or(Error::Refinement(
        cusolverStatus_t::CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC,
        "the precisions were not set, or do not go together",
    ))
}

/// Runs a body with `$T` as the type of a main precision.
macro_rules! precise {
    ($precision:expr, $T:ident => $body:expr) => {
        match $precision {
            cusolverPrecType_t::CUSOLVER_R_64F => {
                type $T = f64;
                $body
            }
            cusolverPrecType_t::CUSOLVER_R_32F => {
                type $T = f32;
                $body
            }
            cusolverPrecType_t::CUSOLVER_C_64F => {
                type $T = Complex<f64>;
                $body
            }
            _ => {
                type $T = Complex<f32>;
                $body
            }
        }
    };
}

fn area(
    handle: cusolverDnHandle_t,
    params: cusolverDnIRSParams_t,
    (m, n, nrhs): (c_int, c_int, c_int),
    bytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    main_precision(&self::params(params)?.lock())?;
    check_sizes((m, n, nrhs), (m.max(1), m.max(1), n.max(1)))?;
    bytes.write(size_of::<cuDoubleComplex>());
    Ok(())
}

pub fn cusolverDnIRSXgesv_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnIRSParams_t,
    n: c_int,
    nrhs: c_int,
    lwork_bytes: Out<'_, usize>,
) -> Result {
    area(handle, params, (n, n, nrhs), lwork_bytes)
}

pub fn cusolverDnIRSXgels_bufferSize(
    handle: cusolverDnHandle_t,
    params: cusolverDnIRSParams_t,
    m: c_int,
    n: c_int,
    nrhs: c_int,
    lwork_bytes: Out<'_, usize>,
) -> Result {
    area(handle, params, (m, n, nrhs), lwork_bytes)
}

/// A system whose sizes were looked at, and who is told of it.
struct System<T> {
    a: Given<T>,
    b: Given<T>,
    x: Given<T>,
    told: Arc<Mutex<Told>>,
    max_iterations: c_int,
}

impl<T: Field> System<T> {
    /// Solves it when the stream has come to it, and waits: the number of iterations goes to the host.
    ///
    /// # Safety
    /// Places for numbers: the host's while the call lasts, the device's until the stream has done the work.
    unsafe fn run(
        self,
        context: &Context,
        niters: *mut c_int,
        d_info: *mut c_int,
        solve: impl Fn(&System<T>) -> i64 + Send + Sync + 'static,
    ) -> Result {
        let niters = place(niters)?;
        // SAFETY: the caller's word.
        unsafe {
            context.run(d_info, move || {
                let info = solve(&self);
                self.tell(info == 0);
                niters.get().write(0);
                info
            })
        }?;
        context.deliver()
    }

    fn tell(&self, is_solved: bool) {
        let mut told = self.told.lock();
        (told.iterations, told.max_iterations) = (0, self.max_iterations);
        if !told.wants_history {
            return;
        }
        let (length, columns) = (self.max_iterations as usize + 1, self.b.columns.max(0) as usize);
        let mut norms = vec![0.0; length * columns];
        if is_solved {
            // SAFETY: the promise to `system`.
            let found = unsafe {
                least::residuals(
                    self.a.rows,
                    self.a.columns,
                    self.b.columns,
                    self.a.matrix,
                    self.b.matrix,
                    self.x.matrix,
                )
            };
            norms.iter_mut().step_by(length).zip(found).for_each(|(to, norm)| *to = norm);
        }
        told.history = match size_of::<T::Real>() {
            4 => History::Singles(norms.into_iter().map(|norm| norm as f32).collect()),
            _ => History::Doubles(norms),
        };
    }
}

/// # Safety
/// The matrices are there until the stream has done the work.
unsafe fn system<T: Field>(
    (m, n, nrhs): (c_int, c_int, c_int),
    (dA, ldda): (*mut c_void, c_int),
    (dB, lddb): (*mut c_void, c_int),
    (dX, lddx): (*mut c_void, c_int),
    told: Arc<Mutex<Told>>,
    max_iterations: c_int,
) -> Result<System<T>> {
    check_sizes((m, n, nrhs), (ldda, lddb, lddx))?;
    let (a, b) = (matrix(dA.cast::<T>(), (m, n), ldda)?, matrix(dB.cast::<T>(), (m, nrhs), lddb)?);
    Ok(System { a, b, x: matrix(dX.cast::<T>(), (n, nrhs), lddx)?, told, max_iterations })
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusolverDnIRSXgesv(
    handle: cusolverDnHandle_t,
    gesv_irs_params: cusolverDnIRSParams_t,
    gesv_irs_infos: cusolverDnIRSInfos_t,
    n: c_int,
    nrhs: c_int,
    dA: *mut c_void,
    ldda: c_int,
    dB: *mut c_void,
    lddb: c_int,
    dX: *mut c_void,
    lddx: c_int,
    _dWorkspace: *mut c_void,
    _lwork_bytes: usize,
    niters: *mut c_int,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    let settings = *params(gesv_irs_params)?.lock();
    let told = infos(gesv_irs_infos)?;
    precise!(main_precision(&settings)?, T => {
        let sizes = (n, n, nrhs);
        // SAFETY: the caller's word.
        unsafe {
            let system = system::<T>(sizes, (dA, ldda), (dB, lddb), (dX, lddx), told, settings.max_iterations)?;
            system.run(&context, niters, d_info, |of| {
                least::gesv(of.a.rows, of.b.columns, of.a.matrix, of.b.matrix, of.x.matrix).0
            })
        }
    })
}

/// Of matrices that are not wide, as the manual has it.
///
/// # Safety
/// As [`cusolverDnIRSXgesv`].
pub unsafe fn cusolverDnIRSXgels(
    handle: cusolverDnHandle_t,
    gels_irs_params: cusolverDnIRSParams_t,
    gels_irs_infos: cusolverDnIRSInfos_t,
    m: c_int,
    n: c_int,
    nrhs: c_int,
    dA: *mut c_void,
    ldda: c_int,
    dB: *mut c_void,
    lddb: c_int,
    dX: *mut c_void,
    lddx: c_int,
    _dWorkspace: *mut c_void,
    _lwork_bytes: usize,
    niters: *mut c_int,
    d_info: *mut c_int,
) -> Result {
    let context = computing(handle)?;
    let settings = *params(gels_irs_params)?.lock();
    let told = infos(gels_irs_infos)?;
    precise!(main_precision(&settings)?, T => {
        let sizes = (m, n, nrhs);
        // SAFETY: the caller's word.
        unsafe {
            let system = system::<T>(sizes, (dA, ldda), (dB, lddb), (dX, lddx), told, settings.max_iterations)?;
            system.run(&context, niters, d_info, |of| {
                least::gels(of.a.rows, of.a.columns, of.b.columns, of.a.matrix, of.b.matrix, of.x.matrix)
            })
        }
    })
}
