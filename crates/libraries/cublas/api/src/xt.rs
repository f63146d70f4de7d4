//! cuBLASXt: level 3 on matrices that lie anywhere, in calls that end when the result is there. Each routine is cuBLAS's own
//! on the first device that the program selected: on the CPU device with the matrices where they are; on a GPU with those
//! of the host copied there and back. Source: cuBLAS manual, "Using the cuBLASXt API".

use core::ffi::{c_int, c_void};
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use cuda_abi::{CUcontext, CUmemorytype, CUpointer_attribute, CUresult};
use kit::Registry;
use kit::driver::{Number, check, driver, inside, primary_context};
use parking_lot::Mutex;

use crate::api::vector::{Copy2d, Direction};
use crate::handle::{self, Engine, Handle};
use crate::{
    Error, Result, cublasFillMode_t, cublasHandle_t, cublasOperation_t, cublasSideMode_t, cublasStatus_t,
    cublasXtHandle_t, cublasXtPinnedMemMode_t, require,
};

/// What a program has set. Tiles, pinned memory and work for the host's processor change speed alone: the device computes
/// whole matrices.
#[derive(Clone, Default)]
pub struct State {
    device: Option<Device>,
    pub block_dim: c_int,
    pub pinning: cublasXtPinnedMemMode_t,
}

impl Default for cublasXtPinnedMemMode_t {
    fn default() -> Self {
        cublasXtPinnedMemMode_t::CUBLASXT_PINNING_DISABLED
    }
}

#[derive(Clone, Copy)]
struct Device {
    context: Number<CUcontext>,
    /// cuBLAS's; an address.
    handle: usize,
}

// SAFETY: a context is the driver's number, good on every thread.
unsafe impl Send for Device {}

impl Device {
    fn handle(self) -> cublasHandle_t {
        std::ptr::with_exposed_provenance_mut(self.handle)
    }
}

static HANDLES: Registry<Mutex<State>> = Registry::new();

/// Tiles of the default have this size, which is ours.
const BLOCK_DIM: c_int = 2048;

pub fn create() -> cublasXtHandle_t {
    HANDLES.add(Mutex::new(State { block_dim: BLOCK_DIM, ..State::default() }))
}

pub fn destroy(handle: cublasXtHandle_t) -> Result {
    let device = HANDLES.remove(handle)?.lock().device;
    device.map_or(Ok(()), |device| handle::remove(device.handle()).map(drop))
}

pub fn get(handle: cublasXtHandle_t) -> Result<Arc<Mutex<State>>> {
    Ok(HANDLES.get(handle)?)
}

pub fn n_devices() -> Result<c_int> {
    let mut count = 0;
    // SAFETY: the place outlives the call.
    check("cuDeviceGetCount", unsafe { (driver()?.cuDeviceGetCount)(&mut count) })?;
    Ok(count)
}

/// The first of the devices computes.
pub fn select(handle: cublasXtHandle_t, devices: &[c_int]) -> Result {
    let state = get(handle)?;
    let count = n_devices()?;
    require(devices.iter().all(|device| (0..count).contains(device)), "there is no such device")?;
    let &[first, ..] = devices else { return Err(Error::InvalidValue("no device is selected")) };
    let context = primary_context(first)?;
    let made = inside(context, Handle::new)?;
    let device = Device { context, handle: handle::add(made).expose_provenance() };
    if let Some(old) = state.lock().device.replace(device) {
        _ = handle::remove(old.handle());
    }
    Ok(())
}

/// One routine: `body` calls cuBLAS's with the matrices that [`Call`] gives it.
pub fn call(
    name: &'static str,
    handle: cublasXtHandle_t,
    mut body: impl FnMut(&Call) -> Result<cublasStatus_t>,
) -> cublasStatus_t {
    routine(name, handle, &mut body)
}

/// [`call`], once for all routines.
fn routine(
    name: &'static str,
    handle: cublasXtHandle_t,
    body: &mut dyn FnMut(&Call) -> Result<cublasStatus_t>,
) -> cublasStatus_t {
    crate::entry(name, || {
        let device = get(handle)?.lock().device.ok_or(Error::NotInitialized)?;
        inside(device.context, || {
            let call = Call { handle: device.handle(), staged: RefCell::default(), kept: RefCell::default() };
            // What other streams still write is there first.
            call.wait()?;
            match body(&call)? {
                cublasStatus_t::CUBLAS_STATUS_SUCCESS => {}
                status => return Err(Error::Answered(status)),
            }
            call.wait()?;
            call.staged.borrow().iter().filter(|staged| staged.is_result).try_for_each(Staged::back)
        })
    })
}

/// A size or leading dimension as cuBLAS's routines take it.
pub fn size(size: usize) -> Result<i64> {
    i64::try_from(size).map_err(|_| Error::InvalidValue("a size is too large"))
}

/// Rows and columns of a matrix that an operation makes `rows` by `columns`.
pub fn shape(operation: cublasOperation_t, rows: usize, columns: usize) -> (usize, usize) {
    if operation == cublasOperation_t::CUBLAS_OP_N { (rows, columns) } else { (columns, rows) }
}

/// Rows and columns of the square matrix that stands at a side of one of `m` by `n`.
pub fn square(side: cublasSideMode_t, m: usize, n: usize) -> (usize, usize) {
    let order = if side == cublasSideMode_t::CUBLAS_SIDE_LEFT { m } else { n };
    (order, order)
}

/// A matrix as the device sees it.
pub struct Matrix<T> {
    pub at: *mut T,
    pub ld: i64,
}

pub struct Call {
    handle: cublasHandle_t,
    staged: RefCell<Vec<Staged>>,
    /// What the device reads until the routine has run.
    kept: RefCell<Vec<Box<dyn Any>>>,
}

impl Call {
    pub fn blas(&self) -> cublasHandle_t {
        self.handle
    }

    fn wait(&self) -> Result {
        Ok(kit::stream::synchronize(handle::get(self.handle)?.stream()?)?)
    }

    fn is_on_cpu(&self) -> Result<bool> {
        Ok(matches!(handle::get(self.handle)?.engine, Engine::Cpu))
    }

    /// A matrix that is read.
    ///
    /// # Safety
    /// `at` is NULL, or such a matrix, in memory of the host's or of a device's, until the routine has ended.
    pub unsafe fn matrix<T>(&self, at: *const T, shape: (usize, usize), ld: usize) -> Result<Matrix<T>> {
        // SAFETY: the caller's promise.
        unsafe { self.seen(at, shape, ld, false) }
    }

    /// One that is written, and perhaps read.
    ///
    /// # Safety
    /// As [`Self::matrix`].
    pub unsafe fn result<T>(&self, at: *mut T, shape: (usize, usize), ld: usize) -> Result<Matrix<T>> {
        // SAFETY: the caller's promise.
        unsafe { self.seen(at, shape, ld, true) }
    }

    /// # Safety
    /// As [`Self::matrix`].
    unsafe fn seen<T>(
        &self,
        at: *const T,
        (rows, columns): (usize, usize),
        ld: usize,
        is_result: bool,
    ) -> Result<Matrix<T>> {
        if rows == 0 || columns == 0 || at.is_null() || self.is_on_cpu()? || !is_of_host(at.cast())? {
            return Ok(Matrix { at: at.cast_mut(), ld: size(ld)? });
        }
        require(ld >= rows, "a leading dimension is too small")?;
        // SAFETY: the caller's promise.
        let staged = unsafe { Staged::new(at, (rows, columns), ld, is_result)? };
        staged.there()?;
        let (at, ld) = (staged.copy.to.cast(), staged.copy.to_ld);
        self.staged.borrow_mut().push(staged);
        Ok(Matrix { at, ld })
    }

    /// A symmetric matrix of which a triangle is packed, with the triangle in its place.
    ///
    /// # Safety
    /// `packed` is NULL, or has such a triangle, in memory of the host's or of a device's.
    pub unsafe fn unpacked<T: Copy + Default + 'static>(
        &self,
        packed: *const T,
        side: cublasSideMode_t,
        fill: cublasFillMode_t,
        (m, n): (usize, usize),
    ) -> Result<Matrix<T>> {
        let uplo = crate::convert::uplo(fill)?;
        crate::convert::side(side)?;
        let (order, _) = square(side, m, n);
        let too_large = Error::InvalidValue("a size is too large");
        let n_packed = order.checked_add(1).and_then(|next| next.checked_mul(order)).ok_or(too_large)? / 2;
        require(!packed.is_null() || n_packed == 0, "AP is NULL")?;
        let mut copied = Vec::new();
        let packed: &[T] = match n_packed {
            0 => &[],
            _ if self.is_on_cpu()? || is_of_host(packed.cast())? => {
                // SAFETY: memory that the CPU reads; the caller's promise.
                unsafe { std::slice::from_raw_parts(packed, n_packed) }
            }
            _ => {
                copied.resize(n_packed, T::default());
                let (n, bytes, to) = (size(n_packed)?, size(size_of::<T>())?, copied.as_mut_ptr());
                let copy = Copy2d::vector(n, bytes, packed.cast(), 1, to.cast(), 1);
                // SAFETY: the caller's promise; `copied` has room for as many.
                unsafe { copy.run(Direction::ToHost, None)? };
                &copied
            }
        };
        let mut dense = vec![T::default(); order.checked_mul(order).ok_or(too_large)?];
        let mut packed = packed.iter();
        for column in 0..order {
            let rows = match uplo {
                cublas_cpu::Uplo::Lower => column..order,
                cublas_cpu::Uplo::Upper => 0..column + 1,
            };
            for (row, value) in rows.zip(&mut packed) {
                dense[row + column * order] = *value;
            }
        }
        // SAFETY: the matrix is kept until the routine has ended.
        let seen = unsafe { self.matrix(dense.as_ptr(), (order, order), order.max(1)) };
        self.kept.borrow_mut().push(Box::new(dense));
        seen
    }
}

/// Memory of the host's that a GPU's own routines may not be given.
fn is_of_host(at: *const c_void) -> Result<bool> {
    let mut kind = 0u32;
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the place has room for the attribute; the driver does not follow the address.
    let code = unsafe {
        (driver()?.cuPointerGetAttribute)((&raw mut kind).cast(), attribute, at.expose_provenance() as u64)
    };
    // The driver knows nothing of memory that nobody registered.
    Ok(code != CUresult::CUDA_SUCCESS || kind == CUmemorytype::CU_MEMORYTYPE_HOST.0)
}

/// A matrix of the host's on the device, without what lies between its columns.
struct Staged {
    /// To the device.
    copy: Copy2d,
    is_result: bool,
}

impl Staged {
    /// # Safety
    /// `host` is such a matrix as long as this is there.
    unsafe fn new<T>(
        host: *const T,
        (rows, columns): (usize, usize),
        ld: usize,
        is_result: bool,
    ) -> Result<Staged> {
        let bytes = rows.checked_mul(columns).and_then(|elements| elements.checked_mul(size_of::<T>()));
        let bytes = bytes.ok_or(Error::InvalidValue("a size is too large"))?;
        let mut copy = Copy2d {
            element_bytes: size(size_of::<T>())?,
            rows: size(rows)?,
            columns: size(columns)?,
            from: host.cast(),
            from_ld: size(ld)?,
            to: std::ptr::null_mut(),
            to_ld: size(rows)?,
        };
        let mut device = 0;
        // SAFETY: the place outlives the call.
        match unsafe { (driver()?.cuMemAlloc_v2)(&mut device, bytes) } {
            CUresult::CUDA_SUCCESS => copy.to = std::ptr::with_exposed_provenance_mut(device as usize),
            _ => return Err(Error::AllocFailed("cuMemAlloc")),
        }
        Ok(Staged { copy, is_result })
    }

    fn there(&self) -> Result {
        // SAFETY: the promise to `new`, and memory of ours of the same size.
        unsafe { self.copy.run(Direction::ToDevice, None) }
    }

    fn back(&self) -> Result {
        // SAFETY: as above.
        unsafe { self.copy.reversed().run(Direction::ToHost, None) }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            // SAFETY: allocated above, and no work with it is left: the driver waits.
            _ = unsafe { (driver.cuMemFree_v2)(self.copy.to.addr() as u64) };
        }
    }
}
