//! Libraries that the program loads itself, and the kernel handles that come from the driver.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::collections::HashSet;
use std::ptr;
use std::sync::LazyLock;

use border::{OptOut, Out};
use cuda_abi::runtime::{cudaFuncAttribute, cudaJitOption, cudaKernel_t, cudaLibrary_t, cudaLibraryOption};
use cuda_abi::{
    CUdevice, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary, CUlibraryOption, CUresult,
};
use parking_lot::RwLock;

use super::memory::pointer;
use crate::{Error, Result, device, registry};

/// Kernel handles that the program got from this runtime: they may be launched like functions.
static KNOWN: LazyLock<RwLock<HashSet<usize>>> = LazyLock::new(Default::default);

pub fn remember_kernel(kernel: CUkernel) {
    KNOWN.write().insert(kernel.addr());
}

pub fn known_kernel(kernel: CUkernel) -> Option<CUkernel> {
    KNOWN.read().contains(&kernel.addr()).then_some(kernel)
}

/// The options have the driver's numbers and values.
pub fn cudaLibraryLoadData(
    library: Out<'_, cudaLibrary_t>,
    code: *const c_void,
    jitOptions: *mut cudaJitOption,
    jitOptionsValues: *mut *mut c_void,
    numJitOptions: c_uint,
    libraryOptions: *mut cudaLibraryOption,
    libraryOptionValues: *mut *mut c_void,
    numLibraryOptions: c_uint,
) -> Result {
    let mut loaded: CUlibrary = ptr::null_mut();
    device::attach()?.cuLibraryLoadData(
        &mut loaded,
        code,
        jitOptions.cast::<CUjit_option>(),
        jitOptionsValues,
        numJitOptions,
        libraryOptions.cast::<CUlibraryOption>(),
        libraryOptionValues,
        numLibraryOptions,
    )?;
    library.write(loaded);
    Ok(())
}

pub fn cudaLibraryLoadFromFile(
    library: Out<'_, cudaLibrary_t>,
    fileName: *const c_char,
    jitOptions: *mut cudaJitOption,
    jitOptionsValues: *mut *mut c_void,
    numJitOptions: c_uint,
    libraryOptions: *mut cudaLibraryOption,
    libraryOptionValues: *mut *mut c_void,
    numLibraryOptions: c_uint,
) -> Result {
    let mut loaded: CUlibrary = ptr::null_mut();
    device::attach()?.cuLibraryLoadFromFile(
        &mut loaded,
        fileName,
        jitOptions.cast::<CUjit_option>(),
        jitOptionsValues,
        numJitOptions,
        libraryOptions.cast::<CUlibraryOption>(),
        libraryOptionValues,
        numLibraryOptions,
    )?;
    library.write(loaded);
    Ok(())
}

pub fn cudaLibraryUnload(library: cudaLibrary_t) -> Result {
    device::attach()?.cuLibraryUnload(library)
}

pub fn cudaLibraryGetKernel(
    pKernel: Out<'_, cudaKernel_t>,
    library: cudaLibrary_t,
    name: *const c_char,
) -> Result {
    let mut kernel = ptr::null_mut();
    device::attach()?.cuLibraryGetKernel(&mut kernel, library, name)?;
    remember_kernel(kernel);
    pKernel.write(kernel);
    Ok(())
}

pub fn cudaLibraryGetKernelCount(count: Out<'_, c_uint>, lib: cudaLibrary_t) -> Result {
    let mut found = 0;
    device::attach()?.cuLibraryGetKernelCount(&mut found, lib)?;
    count.write(found);
    Ok(())
}

pub fn cudaLibraryEnumerateKernels(
    kernels: Out<'_, cudaKernel_t>,
    numKernels: c_uint,
    lib: cudaLibrary_t,
) -> Result {
    let mut found = vec![ptr::null_mut(); usize::try_from(numKernels).unwrap_or(0)];
    device::attach()?.cuLibraryEnumerateKernels(found.as_mut_ptr(), numKernels, lib)?;
    for (index, kernel) in found.into_iter().enumerate() {
        if !kernel.is_null() {
            remember_kernel(kernel);
        }
        // SAFETY: CUDA's contract: room for `numKernels` handles.
        unsafe { kernels.as_ptr().add(index).write(kernel) };
    }
    Ok(())
}

pub fn cudaLibraryGetGlobal(
    dptr: OptOut<'_, *mut c_void>,
    bytes: OptOut<'_, usize>,
    library: cudaLibrary_t,
    name: *const c_char,
) -> Result {
    let (mut address, mut len_bytes) = (0, 0);
    device::attach()?
        .cuLibraryGetGlobal(&mut address, &mut len_bytes, library, name)
        .map_err(symbol_not_found)?;
    dptr.write(pointer(address));
    bytes.write(len_bytes);
    Ok(())
}

pub fn cudaLibraryGetManaged(
    dptr: OptOut<'_, *mut c_void>,
    bytes: OptOut<'_, usize>,
    library: cudaLibrary_t,
    name: *const c_char,
) -> Result {
    let (mut address, mut len_bytes) = (0, 0);
    device::attach()?
        .cuLibraryGetManaged(&mut address, &mut len_bytes, library, name)
        .map_err(symbol_not_found)?;
    dptr.write(pointer(address));
    bytes.write(len_bytes);
    Ok(())
}

pub fn cudaLibraryGetUnifiedFunction(
    fptr: Out<'_, *mut c_void>,
    library: cudaLibrary_t,
    symbol: *const c_char,
) -> Result {
    let mut function = ptr::null_mut();
    device::attach()?
        .cuLibraryGetUnifiedFunction(&mut function, library, symbol)
        .map_err(symbol_not_found)?;
    fptr.write(function);
    Ok(())
}

pub fn cudaKernelSetAttributeForDevice(
    kernel: cudaKernel_t,
    attr: cudaFuncAttribute,
    value: c_int,
    device: c_int,
) -> Result {
    let driver = device::attach()?;
    let device: CUdevice = device::at(device)?.handle;
    let kernel = registry::kernel(kernel.cast_const().cast())?;
    driver.cuKernelSetAttribute(CUfunction_attribute(attr.0), value, kernel, device)
}

fn symbol_not_found(error: Error) -> Error {
    match error {
        Error::Driver(CUresult::CUDA_ERROR_NOT_FOUND) => Error::SymbolNotFound,
        other => other,
    }
}
