//! cuFFTW under its C names: cuFFT manual, "FFTW Interface to cuFFT". A body serves both precisions, which its pointers say;
//! the names of single precision have no bodies of their own (xtask/src/codegen/library.rs).
//!
//! Planner's flags change nothing: there is one way to a plan.

use core::ffi::{c_int, c_uint, c_void};

use cufft_cpu::{Complex, Value};

use crate::error::{or_null, or_say};
use crate::fftw::{self, Dim, Plan, axes, dense, dims};
use crate::types::*;
use crate::{Error, Result};

/// Memory that vectors of every processor take as it is.
const ALIGNMENT: usize = 64;

fn planned<In: Value, Out: Value>(
    name: &'static str,
    dims: Result<Vec<Dim>>,
    batches: Result<Vec<Dim>>,
    memory: (*mut In, *mut Out),
    sign: c_int,
) -> fftw_plan {
    let plan = || Ok(fftw::add(Plan::new(&dims?, &batches?, memory, sign)?));
    or_null(name, plan())
}

fn in_place<In, Out>(input: *mut In, output: *mut Out) -> bool {
    core::ptr::eq(input.cast::<u8>(), output.cast())
}

/// The one index of a batch.
fn batch(n: c_int, input: c_int, output: c_int) -> Result<Vec<Dim>> {
    Ok(vec![Dim { n: n.into(), input: input.into(), output: output.into() }])
}

fn narrow(dim: fftw_iodim) -> Dim {
    Dim { n: dim.n.into(), input: dim.is.into(), output: dim.os.into() }
}

fn wide(dim: fftw_iodim64) -> Dim {
    Dim { n: dim.n as i64, input: dim.is as i64, output: dim.os as i64 }
}

pub fn fftw_plan_dft_1d<T>(
    n: c_int,
    in_: *mut Complex<T>,
    out: *mut Complex<T>,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<Complex<T>, Complex<T>>(&[n], in_place(in_, out));
    planned("fftw_plan_dft_1d", axes, Ok(Vec::new()), (in_, out), sign)
}

pub fn fftw_plan_dft_2d<T>(
    n0: c_int,
    n1: c_int,
    in_: *mut Complex<T>,
    out: *mut Complex<T>,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<Complex<T>, Complex<T>>(&[n0, n1], in_place(in_, out));
    planned("fftw_plan_dft_2d", axes, Ok(Vec::new()), (in_, out), sign)
}

pub fn fftw_plan_dft_3d<T>(
    n0: c_int,
    n1: c_int,
    n2: c_int,
    in_: *mut Complex<T>,
    out: *mut Complex<T>,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<Complex<T>, Complex<T>>(&[n0, n1, n2], in_place(in_, out));
    planned("fftw_plan_dft_3d", axes, Ok(Vec::new()), (in_, out), sign)
}

/// # Safety
/// `n` has `rank` numbers.
pub unsafe fn fftw_plan_dft<T>(
    rank: c_int,
    n: *const c_int,
    in_: *mut Complex<T>,
    out: *mut Complex<T>,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let none = (core::ptr::null(), 1);
    // SAFETY: the caller's promise.
    let axes = unsafe { axes::<Complex<T>, Complex<T>>(rank, n, none, none, in_place(in_, out)) };
    planned("fftw_plan_dft", axes, Ok(Vec::new()), (in_, out), sign)
}

/// # Safety
/// `n`, and `inembed` and `onembed` if they are not NULL, have `rank` numbers.
pub unsafe fn fftw_plan_many_dft<T>(
    rank: c_int,
    n: *const c_int,
    count: c_int,
    in_: *mut Complex<T>,
    inembed: *const c_int,
    istride: c_int,
    idist: c_int,
    out: *mut Complex<T>,
    onembed: *const c_int,
    ostride: c_int,
    odist: c_int,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let axes = unsafe {
        axes::<Complex<T>, Complex<T>>(rank, n, (inembed, istride), (onembed, ostride), in_place(in_, out))
    };
    planned("fftw_plan_many_dft", axes, batch(count, idist, odist), (in_, out), sign)
}

/// # Safety
/// `dims` has `rank` structures, `batch_dims` has `batch_rank`.
pub unsafe fn fftw_plan_guru_dft<T>(
    rank: c_int,
    axes: *const fftw_iodim,
    batch_rank: c_int,
    batch_dims: *const fftw_iodim,
    in_: *mut Complex<T>,
    out: *mut Complex<T>,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let (axes, batches) = unsafe { (dims(rank, axes, narrow), dims(batch_rank, batch_dims, narrow)) };
    planned("fftw_plan_guru_dft", axes, batches, (in_, out), sign)
}

/// # Safety
/// `dims` has `rank` structures, `batch_dims` has `batch_rank`.
pub unsafe fn fftw_plan_guru64_dft<T>(
    rank: c_int,
    axes: *const fftw_iodim64,
    batch_rank: c_int,
    batch_dims: *const fftw_iodim64,
    in_: *mut Complex<T>,
    out: *mut Complex<T>,
    sign: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let (axes, batches) = unsafe { (dims(rank, axes, wide), dims(batch_rank, batch_dims, wide)) };
    planned("fftw_plan_guru64_dft", axes, batches, (in_, out), sign)
}

pub fn fftw_plan_dft_r2c_1d<T>(n: c_int, in_: *mut T, out: *mut Complex<T>, flags: c_uint) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<T, Complex<T>>(&[n], in_place(in_, out));
    planned("fftw_plan_dft_r2c_1d", axes, Ok(Vec::new()), (in_, out), CUFFT_FORWARD)
}

pub fn fftw_plan_dft_r2c_2d<T>(
    n0: c_int,
    n1: c_int,
    in_: *mut T,
    out: *mut Complex<T>,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<T, Complex<T>>(&[n0, n1], in_place(in_, out));
    planned("fftw_plan_dft_r2c_2d", axes, Ok(Vec::new()), (in_, out), CUFFT_FORWARD)
}

pub fn fftw_plan_dft_r2c_3d<T>(
    n0: c_int,
    n1: c_int,
    n2: c_int,
    in_: *mut T,
    out: *mut Complex<T>,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<T, Complex<T>>(&[n0, n1, n2], in_place(in_, out));
    planned("fftw_plan_dft_r2c_3d", axes, Ok(Vec::new()), (in_, out), CUFFT_FORWARD)
}

/// # Safety
/// `n` has `rank` numbers.
pub unsafe fn fftw_plan_dft_r2c<T>(
    rank: c_int,
    n: *const c_int,
    in_: *mut T,
    out: *mut Complex<T>,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let none = (core::ptr::null(), 1);
    // SAFETY: the caller's promise.
    let axes = unsafe { axes::<T, Complex<T>>(rank, n, none, none, in_place(in_, out)) };
    planned("fftw_plan_dft_r2c", axes, Ok(Vec::new()), (in_, out), CUFFT_FORWARD)
}

/// # Safety
/// `n`, and `inembed` and `onembed` if they are not NULL, have `rank` numbers.
pub unsafe fn fftw_plan_many_dft_r2c<T>(
    rank: c_int,
    n: *const c_int,
    count: c_int,
    in_: *mut T,
    inembed: *const c_int,
    istride: c_int,
    idist: c_int,
    out: *mut Complex<T>,
    onembed: *const c_int,
    ostride: c_int,
    odist: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let axes =
        unsafe { axes::<T, Complex<T>>(rank, n, (inembed, istride), (onembed, ostride), in_place(in_, out)) };
    planned("fftw_plan_many_dft_r2c", axes, batch(count, idist, odist), (in_, out), CUFFT_FORWARD)
}

/// # Safety
/// `dims` has `rank` structures, `batch_dims` has `batch_rank`.
pub unsafe fn fftw_plan_guru_dft_r2c<T>(
    rank: c_int,
    axes: *const fftw_iodim,
    batch_rank: c_int,
    batch_dims: *const fftw_iodim,
    in_: *mut T,
    out: *mut Complex<T>,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let (axes, batches) = unsafe { (dims(rank, axes, narrow), dims(batch_rank, batch_dims, narrow)) };
    planned("fftw_plan_guru_dft_r2c", axes, batches, (in_, out), CUFFT_FORWARD)
}

/// # Safety
/// `dims` has `rank` structures, `batch_dims` has `batch_rank`.
pub unsafe fn fftw_plan_guru64_dft_r2c<T>(
    rank: c_int,
    axes: *const fftw_iodim64,
    batch_rank: c_int,
    batch_dims: *const fftw_iodim64,
    in_: *mut T,
    out: *mut Complex<T>,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let (axes, batches) = unsafe { (dims(rank, axes, wide), dims(batch_rank, batch_dims, wide)) };
    planned("fftw_plan_guru64_dft_r2c", axes, batches, (in_, out), CUFFT_FORWARD)
}

pub fn fftw_plan_dft_c2r_1d<T>(n: c_int, in_: *mut Complex<T>, out: *mut T, flags: c_uint) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<Complex<T>, T>(&[n], in_place(in_, out));
    planned("fftw_plan_dft_c2r_1d", axes, Ok(Vec::new()), (in_, out), CUFFT_INVERSE)
}

pub fn fftw_plan_dft_c2r_2d<T>(
    n0: c_int,
    n1: c_int,
    in_: *mut Complex<T>,
    out: *mut T,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<Complex<T>, T>(&[n0, n1], in_place(in_, out));
    planned("fftw_plan_dft_c2r_2d", axes, Ok(Vec::new()), (in_, out), CUFFT_INVERSE)
}

pub fn fftw_plan_dft_c2r_3d<T>(
    n0: c_int,
    n1: c_int,
    n2: c_int,
    in_: *mut Complex<T>,
    out: *mut T,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let axes = dense::<Complex<T>, T>(&[n0, n1, n2], in_place(in_, out));
    planned("fftw_plan_dft_c2r_3d", axes, Ok(Vec::new()), (in_, out), CUFFT_INVERSE)
}

/// # Safety
/// `n` has `rank` numbers.
pub unsafe fn fftw_plan_dft_c2r<T>(
    rank: c_int,
    n: *const c_int,
    in_: *mut Complex<T>,
    out: *mut T,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    let none = (core::ptr::null(), 1);
    // SAFETY: the caller's promise.
    let axes = unsafe { axes::<Complex<T>, T>(rank, n, none, none, in_place(in_, out)) };
    planned("fftw_plan_dft_c2r", axes, Ok(Vec::new()), (in_, out), CUFFT_INVERSE)
}

/// # Safety
/// `n`, and `inembed` and `onembed` if they are not NULL, have `rank` numbers.
pub unsafe fn fftw_plan_many_dft_c2r<T>(
    rank: c_int,
    n: *const c_int,
    count: c_int,
    in_: *mut Complex<T>,
    inembed: *const c_int,
    istride: c_int,
    idist: c_int,
    out: *mut T,
    onembed: *const c_int,
    ostride: c_int,
    odist: c_int,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let axes =
        unsafe { axes::<Complex<T>, T>(rank, n, (inembed, istride), (onembed, ostride), in_place(in_, out)) };
    planned("fftw_plan_many_dft_c2r", axes, batch(count, idist, odist), (in_, out), CUFFT_INVERSE)
}

/// # Safety
/// `dims` has `rank` structures, `batch_dims` has `batch_rank`.
pub unsafe fn fftw_plan_guru_dft_c2r<T>(
    rank: c_int,
    axes: *const fftw_iodim,
    batch_rank: c_int,
    batch_dims: *const fftw_iodim,
    in_: *mut Complex<T>,
    out: *mut T,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let (axes, batches) = unsafe { (dims(rank, axes, narrow), dims(batch_rank, batch_dims, narrow)) };
    planned("fftw_plan_guru_dft_c2r", axes, batches, (in_, out), CUFFT_INVERSE)
}

/// # Safety
/// `dims` has `rank` structures, `batch_dims` has `batch_rank`.
pub unsafe fn fftw_plan_guru64_dft_c2r<T>(
    rank: c_int,
    axes: *const fftw_iodim64,
    batch_rank: c_int,
    batch_dims: *const fftw_iodim64,
    in_: *mut Complex<T>,
    out: *mut T,
    flags: c_uint,
) -> fftw_plan
where
    T: Value,
    Complex<T>: Value,
{
    _ = flags;
    // SAFETY: the caller's promise.
    let (axes, batches) = unsafe { (dims(rank, axes, wide), dims(batch_rank, batch_dims, wide)) };
    planned("fftw_plan_guru64_dft_c2r", axes, batches, (in_, out), CUFFT_INVERSE)
}

/// # Safety
/// The memory that the plan was made for is there.
pub unsafe fn fftw_execute(plan: fftw_plan) {
    // SAFETY: the caller's promise.
    or_say("fftw_execute", fftw::get(plan).and_then(|plan| unsafe { plan.execute() }));
}

/// # Safety
/// The memory has what the plan was made of.
unsafe fn execute_on(name: &'static str, plan: fftw_plan, input: *mut c_void, output: *mut c_void) {
    // SAFETY: the caller's promise.
    or_say(name, fftw::get(plan).and_then(|plan| unsafe { plan.execute_on(input, output) }));
}

/// # Safety
/// The memory has what the plan was made of.
pub unsafe fn fftw_execute_dft<T>(plan: fftw_plan, idata: *mut Complex<T>, odata: *mut Complex<T>) {
    // SAFETY: the caller's promise.
    unsafe { execute_on("fftw_execute_dft", plan, idata.cast(), odata.cast()) }
}

/// # Safety
/// The memory has what the plan was made of.
pub unsafe fn fftw_execute_dft_r2c<T>(plan: fftw_plan, idata: *mut T, odata: *mut Complex<T>) {
    // SAFETY: the caller's promise.
    unsafe { execute_on("fftw_execute_dft_r2c", plan, idata.cast(), odata.cast()) }
}

/// # Safety
/// The memory has what the plan was made of.
pub unsafe fn fftw_execute_dft_c2r<T>(plan: fftw_plan, idata: *mut Complex<T>, odata: *mut T) {
    // SAFETY: the caller's promise.
    unsafe { execute_on("fftw_execute_dft_c2r", plan, idata.cast(), odata.cast()) }
}

/// NULL is let pass, as FFTW does.
pub fn fftw_destroy_plan(plan: fftw_plan) {
    if !plan.is_null() {
        or_say("fftw_destroy_plan", fftw::remove(plan));
    }
}

/// Plans that are left stay.
pub fn fftw_cleanup() {}

pub fn fftw_malloc(n: usize) -> *mut c_void {
    let mut at = core::ptr::null_mut();
    // SAFETY: the alignment is a power of two, and `at` outlives the call.
    let failed = unsafe { libc::posix_memalign(&mut at, ALIGNMENT, n.max(1)) };
    or_null("fftw_malloc", if failed == 0 { Ok(at) } else { Err(Error::Allocation(n)) })
}

/// # Safety
/// NULL, or memory of `fftw_malloc`'s.
pub unsafe fn fftw_free(pointer: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe { libc::free(pointer) }
}

/// There is no wisdom: plans are made in one way.
pub fn fftw_export_wisdom_to_file(output_file: *mut c_void) {
    _ = output_file;
}

/// 0: nothing was taken in.
pub fn fftw_import_wisdom_from_file(input_file: *mut c_void) -> c_int {
    _ = input_file;
    0
}

/// No search is bounded, since there is none.
pub fn fftw_set_timelimit(seconds: f64) {
    _ = seconds;
}

/// Writes what it is to the program's stdout, which the program asks for.
pub fn fftw_print_plan(plan: fftw_plan) {
    let print = |plan: std::sync::Arc<Plan>| {
        let text = std::ffi::CString::new(plan.text()).unwrap_or_default();
        // SAFETY: both are C strings. C's own buffer keeps the order of what the program prints.
        unsafe { libc::printf(c"%s".as_ptr(), text.as_ptr()) };
    };
    or_say("fftw_print_plan", fftw::get(plan).map(print));
}

/// Operations: there is no measure of time.
pub fn fftw_cost(plan: fftw_plan) -> f64 {
    fftw::get(plan).map_or(0.0, |plan| plan.operations())
}

/// As a transform by twos has them: three additions to two products.
///
/// # Safety
/// Each place is NULL or writable.
pub unsafe fn fftw_flops(plan: fftw_plan, add: *mut f64, mul: *mut f64, fma: *mut f64) {
    let operations = fftw_cost(plan);
    for (at, value) in [(add, 0.6 * operations), (mul, 0.4 * operations), (fma, 0.0)] {
        if !at.is_null() {
            // SAFETY: the caller's promise.
            unsafe { at.write_unaligned(value) };
        }
    }
}
