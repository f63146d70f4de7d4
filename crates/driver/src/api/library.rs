//! Library Management: code that belongs to no context, and its kernels.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};

use border::{OptOut, Out};
use cuda_abi::{
    CUdevice, CUdeviceptr, CUfunc_cache, CUfunction, CUfunction_attribute, CUjit_option, CUkernel, CUlibrary,
    CUlibraryOption, CUmodule,
};

use super::module::{attribute, capability, check, read_file, set_attribute};
use crate::image;
use crate::jit;
use crate::object::{Context, Device, Function, Kernel, Library};
use crate::{Error, Result};

/// # Safety
/// `code` is NULL, or an image that stays as it is during the call; the arrays of options are NULL, or have as many elements as is
/// said, with the buffers that they name.
pub unsafe fn cuLibraryLoadData(
    library: Out<'_, CUlibrary>,
    code: *const c_void,
    jitOptions: *mut CUjit_option,
    jitOptionsValues: *mut *mut c_void,
    numJitOptions: c_uint,
    libraryOptions: *mut CUlibraryOption,
    _libraryOptionValues: *mut *mut c_void,
    numLibraryOptions: c_uint,
) -> Result {
    crate::process::driver()?;
    if code.is_null() {
        return Err(Error::InvalidValue("code"));
    }
    if numLibraryOptions > 0 && libraryOptions.is_null() {
        return Err(Error::InvalidValue("libraryOptions"));
    }
    for index in 0..numLibraryOptions as usize {
        // SAFETY: the caller's promise: `numLibraryOptions` entries.
        let option = unsafe { *libraryOptions.add(index) };
        // Both options only allow the driver to keep less: the image is copied here in any case.
        if option.0 >= CUlibraryOption::CU_LIBRARY_NUM_OPTIONS.0 {
            return Err(Error::InvalidValue("libraryOptions"));
        }
    }
    // SAFETY: the caller's promise for the two arrays and the buffers they name.
    let options = unsafe { jit::Options::read(numJitOptions, jitOptions, jitOptionsValues) }?;
    // SAFETY: the caller's promise: an image that stays as it is during the call.
    let linked = check(unsafe { image::read(code, capability()) }, &options);
    if let Err(error @ Error::InvalidValue(_)) = linked {
        return Err(error);
    }
    let is_eager = config::get().eager_loading;
    // CUDA, lazy loading: what is wrong with the code is an error when some of it is needed (measured on driver 580).
    let handle = Library::enter(if is_eager { Ok(linked?) } else { linked })?;
    // CUDA, eager loading: into the contexts there are; we know of the caller's.
    if is_eager
        && let Ok(context) = Context::current()
        && let Err(error) = Library::from_handle(handle)?.module(context)
    {
        Library::unload(handle)?;
        return Err(error);
    }
    library.write(handle);
    Ok(())
}

/// # Safety
/// `fileName` is NULL or a C string; options are as for [`cuLibraryLoadData`].
pub unsafe fn cuLibraryLoadFromFile(
    library: Out<'_, CUlibrary>,
    fileName: *const c_char,
    jitOptions: *mut CUjit_option,
    jitOptionsValues: *mut *mut c_void,
    numJitOptions: c_uint,
    libraryOptions: *mut CUlibraryOption,
    libraryOptionValues: *mut *mut c_void,
    numLibraryOptions: c_uint,
) -> Result {
    crate::process::driver()?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { read_file(fileName, "fileName") }?;
    // SAFETY: the caller's promise.
    unsafe {
        cuLibraryLoadData(
            library,
            bytes.as_ptr().cast(),
            jitOptions,
            jitOptionsValues,
            numJitOptions,
            libraryOptions,
            libraryOptionValues,
            numLibraryOptions,
        )
    }
}

pub fn cuLibraryUnload(library: CUlibrary) -> Result {
    Library::unload(library)
}

pub fn cuLibraryGetKernel(pKernel: Out<'_, CUkernel>, library: CUlibrary, name: &CStr) -> Result {
    pKernel.write(Library::from_handle(library)?.kernel(name)?);
    Ok(())
}

pub fn cuLibraryGetKernelCount(count: Out<'_, c_uint>, lib: CUlibrary) -> Result {
    let library = Library::from_handle(lib)?;
    count.write(c_uint::try_from(library.code()?.kernels.len()).unwrap_or(c_uint::MAX));
    Ok(())
}

/// # Safety
/// `kernels` is NULL, or has room for `numKernels` handles.
pub unsafe fn cuLibraryEnumerateKernels(
    kernels: *mut CUkernel,
    numKernels: c_uint,
    lib: CUlibrary,
) -> Result {
    let library = Library::from_handle(lib)?;
    if kernels.is_null() {
        return Err(Error::InvalidValue("kernels"));
    }
    let code = library.code()?;
    let usable = code.kernels.iter().filter(|kernel| code.failure(kernel).is_none());
    for (index, info) in usable.take(numKernels as usize).enumerate() {
        let kernel = library.kernel_of(info)?;
        // SAFETY: the caller's promise: room for `numKernels` handles.
        unsafe { kernels.add(index).write(kernel) };
    }
    Ok(())
}

pub fn cuLibraryGetModule(pMod: Out<'_, CUmodule>, library: CUlibrary) -> Result {
    let library = Library::from_handle(library)?;
    pMod.write(library.module(Context::current()?)?.0);
    Ok(())
}

pub fn cuLibraryGetGlobal(
    dptr: OptOut<'_, CUdeviceptr>,
    bytes: OptOut<'_, usize>,
    library: CUlibrary,
    name: &CStr,
) -> Result {
    let (base, len_bytes) = Library::from_handle(library)?.global(name)?;
    dptr.write(base);
    bytes.write(len_bytes);
    Ok(())
}

/// The address of a managed variable, the same on host and device.
pub fn cuLibraryGetManaged(
    dptr: OptOut<'_, CUdeviceptr>,
    bytes: OptOut<'_, usize>,
    library: CUlibrary,
    name: &CStr,
) -> Result {
    let library = Library::from_handle(library)?;
    if !library.code()?.global(name)?.is_managed {
        return Err(Error::NotFound);
    }
    // CUDA: managed variables belong to the process; any context of it will do.
    let context = match Context::current() {
        Ok(context) => context,
        Err(Error::InvalidContext) => {
            let context = Context::retain_primary(Device::get(0)?)?;
            context.bind()?;
            context
        }
        Err(error) => return Err(error),
    };
    let (base, len_bytes) = library.module(context)?.1.global(name)?;
    dptr.write(base);
    bytes.write(len_bytes);
    Ok(())
}

/// There are no unified function pointers (the device attribute says 0).
pub fn cuLibraryGetUnifiedFunction(
    _fptr: Out<'_, *mut c_void>,
    library: CUlibrary,
    _symbol: &CStr,
) -> Result {
    Library::from_handle(library)?;
    Err(Error::NotFound)
}

pub fn cuKernelGetFunction(pFunc: Out<'_, CUfunction>, kernel: CUkernel) -> Result {
    let kernel = Kernel::from_handle(kernel)?;
    pFunc.write(kernel.function(Context::current()?)?);
    Ok(())
}

pub fn cuKernelGetLibrary(pLib: Out<'_, CUlibrary>, kernel: CUkernel) -> Result {
    pLib.write(Kernel::from_handle(kernel)?.library_handle.0);
    Ok(())
}

/// The name lives as long as the library.
pub fn cuKernelGetName(name: Out<'_, *const c_char>, hfunc: CUkernel) -> Result {
    name.write(Kernel::from_handle(hfunc)?.info.name.as_ptr());
    Ok(())
}

pub fn cuKernelGetParamCount(kernel: CUkernel, paramCount: Out<'_, usize>) -> Result {
    paramCount.write(Kernel::from_handle(kernel)?.info.params.len());
    Ok(())
}

pub fn cuKernelGetParamInfo(
    kernel: CUkernel,
    paramIndex: usize,
    paramOffset: Out<'_, usize>,
    paramSize: OptOut<'_, usize>,
) -> Result {
    let kernel = Kernel::from_handle(kernel)?;
    let &(offset, len_bytes) = kernel.info.params.get(paramIndex).ok_or(Error::InvalidValue("paramIndex"))?;
    paramOffset.write(offset);
    paramSize.write(len_bytes);
    Ok(())
}

/// The kernel's function on `dev`: in the current context if that is the device's, else in its primary one.
fn on_device(kernel: CUkernel, dev: CUdevice) -> Result<Function> {
    let kernel = Kernel::from_handle(kernel)?;
    let device = Device::get(dev)?;
    let context = match Context::current() {
        Ok(context) if core::ptr::eq(context.device, device) => context,
        _ => Context::primary(device)?,
    };
    context.bind().map_err(|_| Error::InvalidContext)?;
    Function::from_handle(kernel.function(context)?)
}

pub fn cuKernelGetAttribute(
    pi: Out<'_, c_int>,
    attrib: CUfunction_attribute,
    kernel: CUkernel,
    dev: CUdevice,
) -> Result {
    pi.write(attribute(&on_device(kernel, dev)?, attrib)?);
    Ok(())
}

pub fn cuKernelSetAttribute(
    attrib: CUfunction_attribute,
    val: c_int,
    kernel: CUkernel,
    dev: CUdevice,
) -> Result {
    set_attribute(&on_device(kernel, dev)?, attrib, val)
}

/// A preference without a choice on our devices.
pub fn cuKernelSetCacheConfig(kernel: CUkernel, config: CUfunc_cache, dev: CUdevice) -> Result {
    Kernel::from_handle(kernel)?;
    Device::get(dev)?;
    if config.0 > CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
        return Err(Error::InvalidValue("config"));
    }
    Ok(())
}
