//! Module Management; functions of modules.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use border::{OptOut, Out};
use cuda_abi::{
    CUdeviceptr, CUfunc_cache, CUfunction, CUfunction_attribute, CUfunctionLoadingState, CUjit_option,
    CUmodule, CUmoduleLoadingMode, CUsharedconfig,
};

use crate::image::{self, Failure, Image};
use crate::jit;
use crate::object::linked::{Bodies, Linked};
use crate::object::{Context, Function, Module};
use crate::{Error, Result};

/// The device's architecture, for which images are read.
pub(crate) fn capability() -> u32 {
    config::get().architecture()
}

/// Checks an image and tells what was wrong with it.
pub(crate) fn check(image: core::result::Result<Image, Failure>, options: &jit::Options) -> Result<Linked> {
    let bodies = if options.has_error_log() { Bodies::All } else { Bodies::Short };
    told(image.and_then(|image| Linked::check(image, bodies)), options)
}

/// Tells the program's log buffers and our log what was wrong with an image.
pub(crate) fn told(checked: core::result::Result<Linked, Failure>, options: &jit::Options) -> Result<Linked> {
    match checked {
        Ok(linked) => {
            if !linked.complaints.is_empty() {
                tracing::warn!(target: "cudaway::driver", "some kernels cannot be translated:\n{}", linked.complaints);
            }
            options.finish(&linked.complaints, "");
            Ok(linked)
        }
        Err(Failure { error, message }) => {
            tracing::error!(target: "cudaway::driver", "the image cannot be loaded: {message}");
            options.finish(&message, "");
            Err(error)
        }
    }
}

/// # Safety
/// `image` is NULL, or an image that stays as it is during the call.
unsafe fn load(module: Out<'_, CUmodule>, image: *const c_void, options: &jit::Options) -> Result {
    let context = Context::current()?;
    if image.is_null() {
        return Err(Error::InvalidValue("image"));
    }
    // SAFETY: the caller's promise: an image that stays as it is during the call.
    let linked = check(unsafe { image::read(image, capability()) }, options)?;
    let (handle, made) = Module::load(&Arc::new(linked), context)?;
    if options.has_error_log() {
        let said = made.make_all(handle);
        let (Ok(message) | Err(Failure { message, .. })) = &said;
        if !message.is_empty() {
            options.finish(message, "");
        }
        if let Err(Failure { error, .. }) = said {
            Module::unload(handle)?;
            return Err(error);
        }
    }
    module.write(handle);
    Ok(())
}

/// # Safety
/// `image` is NULL, or an image that stays as it is during the call.
pub unsafe fn cuModuleLoadData(module: Out<'_, CUmodule>, image: *const c_void) -> Result {
    // SAFETY: the caller's promise.
    unsafe { load(module, image, &jit::Options::none()) }
}

/// # Safety
/// `image` is NULL, or an image; both arrays are NULL, or have `numOptions` elements, with the buffers that they name.
pub unsafe fn cuModuleLoadDataEx(
    module: Out<'_, CUmodule>,
    image: *const c_void,
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
) -> Result {
    // SAFETY: the caller's promise for the two arrays and the buffers they name.
    let options = unsafe { jit::Options::read(numOptions, options, optionValues) }?;
    // SAFETY: the caller's promise.
    unsafe { load(module, image, &options) }
}

/// # Safety
/// `fatCubin` is NULL, or an image that stays as it is during the call.
pub unsafe fn cuModuleLoadFatBinary(module: Out<'_, CUmodule>, fatCubin: *const c_void) -> Result {
    // SAFETY: the caller's promise.
    unsafe { load(module, fatCubin, &jit::Options::none()) }
}

/// # Safety
/// `fname` is NULL or a C string.
pub unsafe fn cuModuleLoad(module: Out<'_, CUmodule>, fname: *const c_char) -> Result {
    Context::current()?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { read_file(fname, "fname") }?;
    // SAFETY: the file's bytes, with a NUL behind them.
    unsafe { load(module, bytes.as_ptr().cast(), &jit::Options::none()) }
}

/// A file the program names, with a NUL behind it.
///
/// # Safety
/// `name` is NULL or a C string.
pub(crate) unsafe fn read_file(name: *const c_char, parameter: &'static str) -> Result<Vec<u8>> {
    if name.is_null() {
        return Err(Error::InvalidValue(parameter));
    }
    // SAFETY: the caller's promise: a C string.
    let name = unsafe { CStr::from_ptr(name) };
    image::file(Path::new(OsStr::from_bytes(name.to_bytes())))
}

pub fn cuModuleUnload(hmod: CUmodule) -> Result {
    Module::unload(hmod)
}

/// Kernels are compiled at their first launch, or when they are loaded.
pub fn cuModuleGetLoadingMode(mode: Out<'_, CUmoduleLoadingMode>) -> Result {
    crate::process::driver()?;
    mode.write(match config::get().eager_loading {
        true => CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING,
        false => CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING,
    });
    Ok(())
}

pub fn cuModuleGetFunction(hfunc: Out<'_, CUfunction>, hmod: CUmodule, name: &CStr) -> Result {
    let module = Module::from_handle(hmod)?;
    hfunc.write(module.function(hmod, name)?);
    Ok(())
}

pub fn cuModuleGetFunctionCount(count: Out<'_, c_uint>, mod_: CUmodule) -> Result {
    let module = Module::from_handle(mod_)?;
    count.write(c_uint::try_from(module.linked.kernels.len()).unwrap_or(c_uint::MAX));
    Ok(())
}

/// # Safety
/// `functions` is NULL, or has room for `numFunctions` handles.
pub unsafe fn cuModuleEnumerateFunctions(
    functions: *mut CUfunction,
    numFunctions: c_uint,
    mod_: CUmodule,
) -> Result {
    let module = Module::from_handle(mod_)?;
    if functions.is_null() {
        return Err(Error::InvalidValue("functions"));
    }
    let usable = module.linked.kernels.iter().filter_map(|kernel| {
        let function = module.function(mod_, &kernel.name);
        // What cannot be translated is left out.
        let is_broken = function == Err(Error::InvalidPtx)
            || function.is_err() && module.linked.failure(kernel).is_some();
        if is_broken { None } else { Some(function) }
    });
    for (index, function) in usable.take(numFunctions as usize).enumerate() {
        // SAFETY: the caller's promise: room for `numFunctions` handles.
        unsafe { functions.add(index).write(function?) };
    }
    Ok(())
}

pub fn cuModuleGetGlobal_v2(
    dptr: OptOut<'_, CUdeviceptr>,
    bytes: OptOut<'_, usize>,
    hmod: CUmodule,
    name: &CStr,
) -> Result {
    let (base, len_bytes) = Module::from_handle(hmod)?.global(name)?;
    dptr.write(base);
    bytes.write(len_bytes);
    Ok(())
}

pub fn cuFuncGetModule(hmod: Out<'_, CUmodule>, hfunc: CUfunction) -> Result {
    hmod.write(Function::from_handle(hfunc)?.module.0);
    Ok(())
}

/// The name lives as long as the module.
pub fn cuFuncGetName(name: Out<'_, *const c_char>, hfunc: CUfunction) -> Result {
    let function = Function::from_handle(hfunc)?;
    name.write(function.info.name.as_ptr());
    Ok(())
}

pub fn cuFuncGetParamCount(func: CUfunction, paramCount: Out<'_, usize>) -> Result {
    paramCount.write(Function::from_handle(func)?.info.params.len());
    Ok(())
}

pub fn cuFuncGetParamInfo(
    func: CUfunction,
    paramIndex: usize,
    paramOffset: Out<'_, usize>,
    paramSize: OptOut<'_, usize>,
) -> Result {
    let function = Function::from_handle(func)?;
    let &(offset, len_bytes) =
        function.info.params.get(paramIndex).ok_or(Error::InvalidValue("paramIndex"))?;
    paramOffset.write(offset);
    paramSize.write(len_bytes);
    Ok(())
}

pub fn cuFuncIsLoaded(state: Out<'_, CUfunctionLoadingState>, function: CUfunction) -> Result {
    Function::from_handle(function)?;
    state.write(CUfunctionLoadingState::CU_FUNCTION_LOADING_STATE_LOADED);
    Ok(())
}

pub fn cuFuncLoad(function: CUfunction) -> Result {
    Function::from_handle(function).map(|_| ())
}

pub fn cuFuncGetAttribute(pi: Out<'_, c_int>, attrib: CUfunction_attribute, hfunc: CUfunction) -> Result {
    let function = Function::from_handle(hfunc)?;
    pi.write(attribute(&function, attrib)?);
    Ok(())
}

/// HIP numbers the first ten attributes as CUDA does; what the program may set is kept here.
pub(crate) fn attribute(function: &Function, attrib: CUfunction_attribute) -> Result<c_int> {
    match attrib {
        // The architecture that runs is the one reported for the device, whatever the PTX was written for.
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION => Ok(capability() as c_int),
        // Programs choose tunings by it that must match what the PTX was compiled for.
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION => Ok(match function.info.target {
            0 => capability() as c_int,
            target => target as c_int,
        }),
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => {
            let bound = function.attribute(attrib.0)?;
            let asked = function.most_threads().and_then(|n| c_int::try_from(n).ok()).unwrap_or(c_int::MAX);
            Ok(bound.min(asked))
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => {
            let own = function.attribute(attrib.0).unwrap_or(0);
            Ok(own.max(c_int::try_from(function.const_bytes()).unwrap_or(c_int::MAX)))
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let most = function.settings.dynamic_shared.load(Ordering::Relaxed);
            Ok(c_int::try_from(most).unwrap_or(c_int::MAX))
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
            Ok(function.settings.carveout.load(Ordering::Relaxed))
        }
        CUfunction_attribute(0..=9) => function.attribute(attrib.0),
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET => {
            Ok(c_int::from(function.info.must_have_cluster || function.info.required_cluster.is_some()))
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        | CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        | CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => {
            let axis = attrib.0 - CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.0;
            let size = function.cluster().unwrap_or_default()[axis as usize];
            Ok(c_int::try_from(size).unwrap_or(c_int::MAX))
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
            Ok(c_int::from(function.settings.clusters.allows_non_portable.load(Ordering::Relaxed)))
        }
        CUfunction_attribute(number) if number < CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX.0 => Ok(0),
        _ => Err(Error::InvalidValue("attrib")),
    }
}

pub fn cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int) -> Result {
    let function = Function::from_handle(hfunc)?;
    set_attribute(&function, attrib, value)
}

pub(crate) fn set_attribute(function: &Function, attrib: CUfunction_attribute, value: c_int) -> Result {
    match attrib {
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES => {
            let fixed =
                function.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES.0).unwrap_or(0);
            let most = function.context.device.bounds.shared_per_block_optin;
            let wanted = u32::try_from(i64::from(value) + i64::from(fixed)).ok();
            // CUDA: static and dynamic shared memory together stay below the device's opt-in maximum.
            if value < 0 || wanted.is_none_or(|wanted| wanted > most) {
                return Err(Error::InvalidValue("value"));
            }
            set_in_provider(function, attrib, value)?;
            function.settings.dynamic_shared.store(value.unsigned_abs(), Ordering::Relaxed);
            function.settings_changed();
            Ok(())
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => {
            if !(-1..=100).contains(&value) {
                return Err(Error::InvalidValue("value"));
            }
            set_in_provider(function, attrib, value)?;
            function.settings.carveout.store(value, Ordering::Relaxed);
            Ok(())
        }
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED => {
            function.settings.clusters.allows_non_portable.store(value != 0, Ordering::Relaxed);
            function.settings_changed();
            Ok(())
        }
        // How clusters are spread over the device: a hint.
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE => Ok(()),
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        | CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT
        | CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH => {
            // CUDA: what was set when the kernel was compiled cannot be set at run time.
            if function.info.required_cluster.is_some() {
                return Err(Error::NotPermitted);
            }
            let axis = attrib.0 - CUfunction_attribute::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH.0;
            let size = u32::try_from(value).map_err(|_| Error::InvalidValue("value"))?;
            function.settings.clusters.required[axis as usize].store(size, Ordering::Relaxed);
            function.settings_changed();
            Ok(())
        }
        _ => Err(Error::InvalidValue("attrib")),
    }
}

fn set_in_provider(function: &Function, attrib: CUfunction_attribute, value: c_int) -> Result {
    let number = c_int::try_from(attrib.0).map_err(|_| Error::InvalidValue("attrib"))?;
    // SAFETY: HIP takes a kernel's module handle here as well; the function is alive.
    let answer = unsafe {
        function.context.hip().hipFuncSetAttribute(function.hip.0.cast_const().cast(), number, value)
    };
    match answer.map_err(Error::from) {
        // HIP differs: it has no opt-in (we keep it); every kernel may use all shared memory there is, and it knows kernels
        // by their host address only. Nothing has to be set, so nothing failed.
        Ok(()) | Err(Error::NotSupported(_) | Error::InvalidValue(_) | Error::InvalidHandle(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// A preference without a choice on our devices.
pub fn cuFuncSetCacheConfig(hfunc: CUfunction, config: CUfunc_cache) -> Result {
    Function::from_handle(hfunc)?;
    if config.0 > CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
        return Err(Error::InvalidValue("config"));
    }
    Ok(())
}

/// A preference without a choice on our devices.
pub fn cuFuncSetSharedMemConfig(hfunc: CUfunction, config: CUsharedconfig) -> Result {
    Function::from_handle(hfunc)?;
    if config.0 > CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0 {
        return Err(Error::InvalidValue("config"));
    }
    Ok(())
}
