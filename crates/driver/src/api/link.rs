//! Linking: PTX texts and fat binaries put together into one image.

use core::ffi::{c_char, c_uint, c_void};
use std::sync::Arc;

use border::Out;
use compiler::Cause;
use cuda_abi::{CUjit_option, CUjitInputType, CUlinkState};
use parking_lot::Mutex;

use super::module::{capability, read_file, told};
use crate::handle::Registry;
use crate::image::{self, Failure, Image};
use crate::jit;
use crate::object::Context;
use crate::object::linked::{Bodies, Linked};
use crate::{Error, Result};

static LINKS: Registry<Arc<Link>, CUlinkState> = Registry::new(8);

struct Link {
    /// Written from several calls of one thread, as CUDA allows; the lock makes a second thread wait, not crash.
    state: Mutex<State>,
}

struct State {
    inputs: Image,
    /// What `cuLinkComplete` gave; lives until `cuLinkDestroy`.
    completed: Option<Result<Vec<u8>>>,
    /// Why inputs did not fit together: no later call makes an image of them.
    refused: Option<Error>,
    options: jit::Options,
}

// SAFETY: the program's log buffers are written under the lock only; CUDA's contract keeps them alive until then.
unsafe impl Send for State {}

fn from_handle(state: CUlinkState) -> Result<Arc<Link>> {
    crate::process::driver()?;
    LINKS.get(state).ok_or(Error::InvalidHandle("state"))
}

/// # Safety
/// Both arrays are NULL, or have `numOptions` elements; the buffers that they name live until the link is destroyed.
pub unsafe fn cuLinkCreate_v2(
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
    stateOut: Out<'_, CUlinkState>,
) -> Result {
    Context::current()?;
    // SAFETY: the caller's promise: the arrays and buffers live until the link is destroyed.
    let options = unsafe { jit::Options::read(numOptions, options, optionValues) }?;
    let state = State { inputs: Image::default(), completed: None, refused: None, options };
    let link = Arc::new(Link { state: Mutex::new(state) });
    stateOut.write(LINKS.insert(link).ok_or(Error::OutOfMemory)?);
    Ok(())
}

/// # Safety
/// As [`cuLinkCreate_v2`].
pub unsafe fn cuLinkCreate(
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
    stateOut: Out<'_, CUlinkState>,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuLinkCreate_v2(numOptions, options, optionValues, stateOut) }
}

/// # Safety
/// There are `size` bytes at `data`; `name` is NULL or a C string; both arrays are NULL, or have `numOptions` elements.
pub unsafe fn cuLinkAddData_v2(
    state: CUlinkState,
    type_: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: *const c_char,
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
) -> Result {
    let link = from_handle(state)?;
    // SAFETY: the caller's promise for the two arrays. Options of one input tune code that is not made here.
    let _ = unsafe { jit::Options::read(numOptions, options, optionValues) }?;
    let name = if name.is_null() {
        String::new()
    } else {
        // SAFETY: the caller's promise: a C string.
        unsafe { core::ffi::CStr::from_ptr(name) }.to_string_lossy().into_owned()
    };
    let mut state = link.state.lock();
    // Driver 580: one that could not be completed takes no more, either.
    if state.completed.is_some() {
        return Err(Error::InvalidValue("state: already complete"));
    }
    // SAFETY: the caller's promise: `size` bytes at `data`.
    let input = unsafe { read_input(type_, data, size, &name) }?;
    let input = input.and_then(|input| match type_ {
        CUjitInputType::CU_JIT_INPUT_PTX => Linked::check_part(&input.sources).map(|()| input),
        _ => Ok(input),
    });
    let added = input.and_then(|input| {
        joined(&state.inputs, input).inspect_err(|failure| state.refused = Some(failure.error))
    });
    match added {
        Ok(inputs) => {
            state.inputs = inputs;
            Ok(())
        }
        Err(Failure { error, message }) => {
            tracing::error!(target: "cudaway::driver", "cuLinkAddData {name}: {message}");
            state.options.finish(&message, "");
            Err(error)
        }
    }
}

/// The PTX of one input; the outer error is about the call, the inner about the data.
///
/// # Safety
/// `size` bytes at `data` are readable.
unsafe fn read_input(
    type_: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: &str,
) -> Result<core::result::Result<Image, Failure>> {
    match type_ {
        CUjitInputType::CU_JIT_INPUT_PTX
        | CUjitInputType::CU_JIT_INPUT_FATBINARY
        | CUjitInputType::CU_JIT_INPUT_CUBIN
        | CUjitInputType::CU_JIT_INPUT_OBJECT
        | CUjitInputType::CU_JIT_INPUT_LIBRARY => {}
        CUjitInputType::CU_JIT_INPUT_NVVM => return Err(Error::NotSupported("cuLinkAddData: LTO input")),
        _ => return Err(Error::InvalidValue("type")),
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { image::read_sized(data, size, capability(), name) })
}

/// All inputs, if they can stand together. CUDA says of a name defined twice when the second one comes.
fn joined(inputs: &Image, more: Image) -> core::result::Result<Image, Failure> {
    let mut all = inputs.clone();
    all.sources.extend(more.sources);
    all.machine_code.extend(more.machine_code);
    Linked::check_names(&all.sources)?;
    Ok(all)
}

/// A link, unlike a module, leaves nothing undefined but what the driver itself provides to the device runtime, and what
/// that provides where its own code did not fit: a kernel that needs one of those fails alone, and says so when it is asked
/// for.
fn complete(inputs: Image) -> core::result::Result<Linked, Failure> {
    let left_out = inputs.machine_code.first().map(|unit| unit.why_left_out("a member that was left out"));
    // Driver 580, of what no input defines; a name of machine code that was left out has its own error.
    let undefined = if left_out.is_some() { Error::NoBinaryForGpu } else { Error::InvalidSource };
    let linked = Linked::check(inputs, Bodies::All).map_err(|failure| match failure.error {
        Error::NoBinaryForGpu => Failure { error: undefined, ..failure },
        _ => failure,
    })?;
    let is_told_later = |name: &str| {
        let is_of_the_driver = !name.starts_with("cuda");
        Cause::Undefined(name.to_owned()).is_device_runtime() && (is_of_the_driver || left_out.is_some())
    };
    if linked.undefined.iter().all(|name| is_told_later(name)) {
        return Ok(linked);
    }
    let message = match left_out {
        Some(why) => format!("{}\n{why}", linked.complaints),
        None => linked.complaints,
    };
    Err(Failure { error: undefined, message })
}

/// # Safety
/// As [`cuLinkAddData_v2`].
pub unsafe fn cuLinkAddData(
    state: CUlinkState,
    type_: CUjitInputType,
    data: *mut c_void,
    size: usize,
    name: *const c_char,
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuLinkAddData_v2(state, type_, data, size, name, numOptions, options, optionValues) }
}

/// # Safety
/// `path` is NULL or a C string; both arrays are NULL, or have `numOptions` elements.
pub unsafe fn cuLinkAddFile_v2(
    state: CUlinkState,
    type_: CUjitInputType,
    path: *const c_char,
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
) -> Result {
    from_handle(state)?;
    // SAFETY: the caller's promise.
    let mut bytes = unsafe { read_file(path, "path") }?;
    let data = bytes.as_mut_ptr().cast();
    // SAFETY: the caller's promise.
    unsafe { cuLinkAddData_v2(state, type_, data, bytes.len(), path, numOptions, options, optionValues) }
}

/// # Safety
/// As [`cuLinkAddFile_v2`].
pub unsafe fn cuLinkAddFile(
    state: CUlinkState,
    type_: CUjitInputType,
    path: *const c_char,
    numOptions: c_uint,
    options: *mut CUjit_option,
    optionValues: *mut *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cuLinkAddFile_v2(state, type_, path, numOptions, options, optionValues) }
}

/// The linked image, in a form of ours that the module calls take; lives until the link is destroyed.
pub fn cuLinkComplete(
    state: CUlinkState,
    cubinOut: Out<'_, *mut c_void>,
    sizeOut: border::OptOut<'_, usize>,
) -> Result {
    let link = from_handle(state)?;
    let mut state = link.state.lock();
    if let Some(error) = state.refused {
        return Err(error);
    }
    let State { inputs, completed, options, .. } = &mut *state;
    let completed = completed.get_or_insert_with(|| {
        let linked = told(complete(inputs.clone()), options)?;
        Ok(fatbin::cubin::wrap(capability(), &compiler::image::encode(linked.sources())))
    });
    let image = completed.as_mut().map_err(|error| *error)?;
    cubinOut.write(image.as_mut_ptr().cast());
    sizeOut.write(image.len());
    Ok(())
}

pub fn cuLinkDestroy(state: CUlinkState) -> Result {
    from_handle(state)?;
    LINKS.remove(state).map(|_| ()).ok_or(Error::InvalidHandle("state"))
}
