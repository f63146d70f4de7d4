//! Modules, functions, variables.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use border::{OptOut, Out};
use hip_sys::*;

use crate::device::{self, healthy};
use crate::error::Result;
use crate::module::{self, Refusal, function_of_handle};
use crate::stream;

/// # Safety
/// `image` is NULL, an image of ours, or PTX text that ends with a NUL.
pub unsafe fn hipModuleLoadData(module: Out<'_, hipModule_t>, image: *const c_void) -> Result {
    // SAFETY: the caller's promise.
    let loaded = unsafe { load(module, image) };
    loaded.map_err(|refusal| {
        tracing::error!(target: "cudaway::cpu", "hipModuleLoadData: {}", refusal.text);
        refusal.error
    })
}

/// # Safety
/// As [`hipModuleLoadData`].
unsafe fn load(module: Out<'_, hipModule_t>, image: *const c_void) -> std::result::Result<(), Refusal> {
    let refuse = |error: hipError_t| Refusal { error, text: error.to_string() };
    if image.is_null() {
        return Err(refuse(hipErrorInvalidValue));
    }
    healthy().map_err(refuse)?;
    // SAFETY: not NULL; the caller's promise.
    let sources = unsafe { module::sources(image.cast()) }?;
    module.write(module::load(sources)?);
    Ok(())
}

const JIT_ERROR_LOG_BUFFER: hipJitOption = 5;
const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: hipJitOption = 6;

/// As `hipModuleLoadData`; of the options the error log is filled, the others have no meaning here.
///
/// # Safety
/// `image` is one; both arrays are NULL, or have `numOptions` elements, of which a buffer has the size that is given beside it.
pub unsafe fn hipModuleLoadDataEx(
    module: Out<'_, hipModule_t>,
    image: *const c_void,
    numOptions: c_uint,
    options: *mut hipJitOption,
    optionValues: *mut *mut c_void,
) -> Result {
    if numOptions > 0 && (options.is_null() || optionValues.is_null()) {
        return Err(hipErrorInvalidValue);
    }
    let (mut buffer, mut bytes, mut bytes_at) = (std::ptr::null_mut::<u8>(), 0, None);
    for i in 0..numOptions as usize {
        // SAFETY: the caller's promise.
        let (option, value) = unsafe { (options.add(i).read(), optionValues.add(i).read()) };
        match option {
            JIT_ERROR_LOG_BUFFER => buffer = value.cast(),
            JIT_ERROR_LOG_BUFFER_SIZE_BYTES => (bytes, bytes_at) = (value as usize & 0xffff_ffff, Some(i)),
            _ => {}
        }
    }
    // SAFETY: the caller's promise.
    let loaded = unsafe { load(module, image) };
    let text = loaded.as_ref().err().map_or("", |refusal| &refusal.text);
    if !buffer.is_null() && bytes > 0 {
        let n = text.len().min(bytes - 1);
        // SAFETY: the caller's promise: the buffer has the size given beside it.
        unsafe {
            buffer.copy_from_nonoverlapping(text.as_ptr(), n);
            buffer.add(n).write(0);
            if let Some(i) = bytes_at {
                optionValues.add(i).write(n as *mut c_void);
            }
        }
    }
    loaded.map_err(|refusal| refusal.error)
}

/// # Safety
/// `fname` is NULL or a C string.
pub unsafe fn hipModuleLoad(module: Out<'_, hipModule_t>, fname: *const c_char) -> Result {
    if fname.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(fname) };
    let path = std::path::Path::new(std::ffi::OsStr::new(path.to_str().map_err(|_| hipErrorFileNotFound)?));
    let mut image = std::fs::read(path).map_err(|_| hipErrorFileNotFound)?;
    image.push(0);
    // SAFETY: a file's bytes that end with a NUL.
    unsafe { hipModuleLoadData(module, image.as_ptr().cast()) }
}

pub fn hipModuleUnload(module: hipModule_t) -> Result {
    // Launches that run keep their code; CUDA waits for them all the same.
    stream::quiesce();
    module::unload(module)
}

/// # Errors
/// `hipErrorNotFound` when `name` is not UTF-8, which all names in PTX are.
pub(super) fn text(name: &CStr) -> Result<&str> {
    name.to_str().map_err(|_| hipErrorNotFound)
}

pub fn hipModuleGetFunction(function: Out<'_, hipFunction_t>, module: hipModule_t, kname: &CStr) -> Result {
    let module = module::of_handle(module)?;
    function.write(module.function(text(kname)?)?);
    Ok(())
}

pub fn hipModuleGetGlobal(
    dptr: OptOut<'_, hipDeviceptr_t>,
    bytes: OptOut<'_, usize>,
    hmod: hipModule_t,
    name: &CStr,
) -> Result {
    let module = module::of_handle(hmod)?;
    let found = module.global(text(name)?)?;
    dptr.write(found.base as hipDeviceptr_t);
    bytes.write(found.bytes);
    Ok(())
}

pub fn hipFuncGetAttribute(
    value: Out<'_, c_int>,
    attrib: hipFunction_attribute,
    hfunc: hipFunction_t,
) -> Result {
    let function = function_of_handle(hfunc)?;
    let saturate = |n: u64| c_int::try_from(n).unwrap_or(c_int::MAX);
    value.write(match attrib {
        HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => function.max_threads() as c_int,
        HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => saturate(function.shared_bytes().into()),
        HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => 0,
        HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => saturate(function.facts().local_bytes),
        // CPU differs: registers do not limit a block; a number that occupancy calculations can divide by.
        HIP_FUNC_ATTRIBUTE_NUM_REGS => 32,
        HIP_FUNC_ATTRIBUTE_PTX_VERSION | HIP_FUNC_ATTRIBUTE_BINARY_VERSION => {
            config::get().architecture() as c_int
        }
        HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA => 0,
        HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            saturate(device::SHARED_OPTIN.saturating_sub(function.shared_bytes()).into())
        }
        HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => -1,
        _ => return Err(hipErrorInvalidValue),
    });
    Ok(())
}

/// Wishes about shared memory: up to the device's limit every launch gets what it asks for.
pub fn hipFuncSetAttribute(func: *const c_void, attr: hipFuncAttribute, value: c_int) -> Result {
    let function = function_of_handle(func.cast_mut().cast())?;
    let value = i64::from(value);
    let most = i64::from(device::SHARED_OPTIN) - i64::from(function.shared_bytes());
    let legal = match attr {
        HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => (0..=most).contains(&value),
        HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => (-1..=100).contains(&value),
        _ => false,
    };
    if legal { Ok(()) } else { Err(hipErrorInvalidValue) }
}
