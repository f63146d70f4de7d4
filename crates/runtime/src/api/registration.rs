//! What nvcc's generated code calls before `main`, at exit and around each launch.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::cell::RefCell;

use border::{OptOut, Out};
use cuda_abi::runtime::{cudaKernel_t, cudaStream_t, dim3, uint3};

use crate::{Error, Result, driver, registry};

/// Records a fat binary. It never fails: what is wrong with the image is said by the first call that needs it.
pub fn __cudaRegisterFatBinary(fatCubin: *const c_void) -> *mut *mut c_void {
    registry::add_binary(fatCubin)
}

pub fn __cudaRegisterFatBinaryEnd(_fatCubinHandle: *mut *mut c_void) {}

pub fn __cudaUnregisterFatBinary(fatCubinHandle: *mut *mut c_void) {
    registry::remove_binary(fatCubinHandle);
}

/// # Safety
/// `deviceName` is NULL, or a C string that stays as long as `fatCubinHandle`.
pub unsafe fn __cudaRegisterFunction(
    fatCubinHandle: *mut *mut c_void,
    hostFun: *const c_char,
    _deviceFun: *mut c_char,
    deviceName: *const c_char,
    _thread_limit: c_int,
    _tid: *mut uint3,
    _bid: *mut uint3,
    _bDim: *mut dim3,
    _gDim: *mut dim3,
    _wSize: *mut c_int,
) {
    if deviceName.is_null() {
        return;
    }
    // SAFETY: the caller's promise; generated code passes a literal.
    unsafe { registry::add_function(fatCubinHandle, hostFun, deviceName) };
}

/// # Safety
/// `deviceName` is NULL, or a C string that stays as long as `fatCubinHandle`.
pub unsafe fn __cudaRegisterVar(
    fatCubinHandle: *mut *mut c_void,
    hostVar: *mut c_char,
    _deviceAddress: *mut c_char,
    deviceName: *const c_char,
    _ext: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if deviceName.is_null() {
        return;
    }
    // SAFETY: the caller's promise; generated code passes a literal.
    unsafe { registry::add_variable(fatCubinHandle, hostVar, deviceName) };
}

/// # Safety
/// `deviceName` is NULL, or a C string, and `hostVarPtrAddress` NULL, or a pointer that may be written; both stay as long as
/// `fatCubinHandle`.
pub unsafe fn __cudaRegisterManagedVar(
    fatCubinHandle: *mut *mut c_void,
    hostVarPtrAddress: *mut *mut c_void,
    _deviceAddress: *mut c_char,
    deviceName: *const c_char,
    _ext: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    if deviceName.is_null() || hostVarPtrAddress.is_null() {
        return;
    }
    // SAFETY: the caller's promise; generated code passes a literal and the address of a static pointer.
    unsafe { registry::add_managed_variable(fatCubinHandle, hostVarPtrAddress, deviceName) };
}

/// Called before host code touches a managed variable: 1 once the binary is loaded, 0 if it cannot be.
pub fn __cudaInitModule(fatCubinHandle: *mut *mut c_void) -> c_char {
    c_char::from(registry::init_module(fatCubinHandle))
}

struct CallConfiguration {
    grid: dim3,
    block: dim3,
    shared_bytes: usize,
    stream: cudaStream_t,
}

thread_local! {
    /// `<<<…>>>` of the calls in progress on this thread; an argument of a launch may contain another launch.
    static CONFIGURATIONS: RefCell<Vec<CallConfiguration>> = const { RefCell::new(Vec::new()) };
}

/// 0 when the launch may go on. The values are looked at by the launch itself.
pub fn __cudaPushCallConfiguration(
    gridDim: dim3,
    blockDim: dim3,
    sharedMem: usize,
    stream: cudaStream_t,
) -> c_uint {
    let configuration = CallConfiguration { grid: gridDim, block: blockDim, shared_bytes: sharedMem, stream };
    let pushed = CONFIGURATIONS.try_with(|stack| stack.borrow_mut().push(configuration));
    c_uint::from(pushed.is_err())
}

/// # Safety
/// `stream` is NULL, or has room for a stream's handle.
pub unsafe fn __cudaPopCallConfiguration(
    gridDim: OptOut<'_, dim3>,
    blockDim: OptOut<'_, dim3>,
    sharedMem: OptOut<'_, usize>,
    stream: *mut c_void,
) -> Result {
    let popped = CONFIGURATIONS.try_with(|stack| stack.borrow_mut().pop()).ok().flatten();
    let configuration = popped.ok_or(Error::MissingConfiguration)?;
    gridDim.write(configuration.grid);
    blockDim.write(configuration.block);
    sharedMem.write(configuration.shared_bytes);
    if !stream.is_null() {
        // SAFETY: the caller's promise: generated code passes the address of a stream variable.
        unsafe { stream.cast::<cudaStream_t>().write(configuration.stream) };
    }
    Ok(())
}

/// The lasting handle of a kernel. Nothing is loaded yet: the caller keeps the handle for the process's life.
pub fn __cudaGetKernel(kernel: Out<'_, cudaKernel_t>, hostFun: *const c_void) -> Result {
    let handle = registry::handle_of(hostFun)?;
    driver::open()?;
    kernel.write(handle);
    Ok(())
}

pub fn __cudaLaunchKernel(
    kernel: cudaKernel_t,
    gridDim: dim3,
    blockDim: dim3,
    args: *mut *mut c_void,
    sharedMem: usize,
    stream: cudaStream_t,
) -> Result {
    super::execution::cudaLaunchKernel(kernel.cast_const().cast(), gridDim, blockDim, args, sharedMem, stream)
}

#[cfg(test)]
mod tests {
    use cuda_abi::runtime::cudaError_t;

    use super::*;

    #[test]
    fn call_configurations_nest() {
        let dim = |x| dim3 { x, y: 1, z: 1 };
        assert_eq!(__cudaPushCallConfiguration(dim(1), dim(32), 8, core::ptr::null_mut()), 0);
        assert_eq!(__cudaPushCallConfiguration(dim(2), dim(64), 16, core::ptr::null_mut()), 0);
        for (x, shared) in [(2, 16), (1, 8)] {
            let (mut grid, mut bytes) = (dim(0), 0);
            let mut stream: cudaStream_t = core::ptr::null_mut();
            // SAFETY: a stream variable, or NULL.
            let popped = unsafe {
                __cudaPopCallConfiguration(
                    Some(&mut grid).into(),
                    None.into(),
                    Some(&mut bytes).into(),
                    (&raw mut stream).cast(),
                )
            };
            assert_eq!(popped, Ok(()));
            assert_eq!((grid.x, bytes), (x, shared));
        }
        // SAFETY: a stream variable, or NULL.
        let empty = unsafe {
            __cudaPopCallConfiguration(None.into(), None.into(), None.into(), core::ptr::null_mut())
        };
        assert_eq!(empty.unwrap_err().code(), cudaError_t::cudaErrorMissingConfiguration);
    }

    #[test]
    fn a_handle_holds_its_wrapper_and_an_unknown_kernel_is_98() {
        let wrapper = [0x4662_43b1_u32, 1, 0, 0, 0, 0];
        let handle = __cudaRegisterFatBinary(wrapper.as_ptr().cast());
        // SAFETY: registration gave a handle that points to the wrapper's address.
        assert_eq!(unsafe { *handle }.cast_const(), wrapper.as_ptr().cast());
        let mut kernel: cudaKernel_t = core::ptr::null_mut();
        let unknown = __cudaGetKernel((&mut kernel).into(), wrapper.as_ptr().cast());
        assert_eq!(unknown.unwrap_err().code(), cudaError_t::cudaErrorInvalidDeviceFunction);
        __cudaUnregisterFatBinary(handle);
    }
}
