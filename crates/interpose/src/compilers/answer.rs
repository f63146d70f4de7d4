//! What NVIDIA's compilers answer in their functions' place, called by the program with the library's own functions behind its arguments.
//! The rule: the library's own answer comes first, and where it is an error, or says that there is no machine code, it stands.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::NonNull;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::Originals;
use crate::elf;

/// `nvrtcResult`, `nvPTXCompileResult`, `nvFatbinResult`: 0 is success.
type Status = c_int;
type GetSize = unsafe extern "C" fn(*mut c_void, *mut usize) -> Status;
type GetBytes = unsafe extern "C" fn(*mut c_void, *mut c_char) -> Status;

/// Told of a call: the function's name, and what became of it.
type Tell = fn(&'static str, &'static str);

static TELL: OnceLock<Tell> = OnceLock::new();

/// Gives the function that is told of each call in which PTX takes the place of machine code, by the C name of what was called.
pub fn tell_by(tell: Tell) {
    _ = TELL.set(tell);
}

fn tell(function: &'static str, what: &'static str) {
    if let Some(tell) = TELL.get() {
        tell(function, what);
    }
}

const GIVES_PTX: &str = "asked for machine code, gives the PTX of the same compilation";

/// The library's function as what it is.
///
/// # Safety
/// `$at` is the address of a function of this type.
macro_rules! function {
    ($at:expr, $type:ty) => {
        core::mem::transmute::<usize, $type>($at)
    };
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Programs whose cubin's size was asked for here, of libraries that were in use before: another thread may have asked for a size
/// before the jump was there, and have that much room.
static ASKED_HERE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// Bytes of the PTX of a program for which NVRTC made a cubin, its zero included.
///
/// # Safety
/// `originals` are NVRTC's.
unsafe fn ptx_in_place_of_cubin(program: *mut c_void, originals: &Originals) -> Option<usize> {
    // SAFETY: NVRTC's functions by these names; they check the program.
    let (cubin_size, ptx_size) =
        unsafe { (function!(originals.replaced[0], GetSize), function!(originals.used[0], GetSize)) };
    let has = |size: GetSize| {
        let mut bytes = 0;
        // SAFETY: `bytes` is writable.
        (unsafe { size(program, &mut bytes) } == 0).then_some(bytes)
    };
    // Of a virtual architecture there is no cubin, of LTO IR no PTX but its zero.
    has(cubin_size).filter(|&bytes| bytes > 0)?;
    has(ptx_size).filter(|&bytes| bytes > 1)
}

/// `nvrtcGetCUBINSize`
pub unsafe extern "C" fn nvrtc_cubin_size(
    program: *mut c_void,
    size: *mut usize,
    originals: &Originals,
) -> Status {
    // SAFETY: the stub passes NVRTC's.
    let original = unsafe { function!(originals.replaced[0], GetSize) };
    // SAFETY: the call as it came.
    let status = unsafe { original(program, size) };
    // SAFETY: as above.
    let ptx = if status == 0 { unsafe { ptx_in_place_of_cubin(program, originals) } } else { None };
    if let (Some(ptx), Some(size)) = (ptx, NonNull::new(size)) {
        if originals.was_in_use {
            locked(&ASKED_HERE).insert(program.addr());
        }
        // SAFETY: NVRTC has just written it.
        unsafe { size.write(ptx) };
    }
    status
}

/// `nvrtcGetCUBIN`
pub unsafe extern "C" fn nvrtc_cubin(
    program: *mut c_void,
    cubin: *mut c_char,
    originals: &Originals,
) -> Status {
    let has_room = || !originals.was_in_use || locked(&ASKED_HERE).contains(&program.addr());
    // SAFETY: the stub passes NVRTC's.
    let gives_ptx = unsafe { ptx_in_place_of_cubin(program, originals) }.is_some() && has_room();
    // SAFETY: as above.
    let (original, ptx) =
        unsafe { (function!(originals.replaced[1], GetBytes), function!(originals.used[1], GetBytes)) };
    if gives_ptx {
        tell("nvrtcGetCUBIN", GIVES_PTX);
        // SAFETY: the program made room for what `nvrtcGetCUBINSize` says.
        return unsafe { ptx(program, cubin) };
    }
    // SAFETY: the call as it came.
    unsafe { original(program, cubin) }
}

/// The texts that live compilers were made with, each with a zero behind it.
static TEXTS: Mutex<BTreeMap<usize, Arc<[u8]>>> = Mutex::new(BTreeMap::new());

fn text_of(compiler: *mut c_void) -> Option<Arc<[u8]>> {
    locked(&TEXTS).get(&compiler.addr()).cloned()
}

/// `nvPTXCompilerCreate`
pub unsafe extern "C" fn ptx_compiler_create(
    compiler: *mut *mut c_void,
    len_bytes: usize,
    ptx: *const c_char,
    originals: &Originals,
) -> Status {
    type Create = unsafe extern "C" fn(*mut *mut c_void, usize, *const c_char) -> Status;
    // SAFETY: the stub passes nvPTXCompiler's.
    let original = unsafe { function!(originals.replaced[2], Create) };
    // SAFETY: the call as it came.
    let status = unsafe { original(compiler, len_bytes, ptx) };
    if status == 0 && !compiler.is_null() && !ptx.is_null() {
        // SAFETY: the caller's promise: a text this long. The compiler was written.
        let (bytes, handle) =
            unsafe { (core::slice::from_raw_parts(ptx.cast::<u8>(), len_bytes), (*compiler).addr()) };
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        locked(&TEXTS).insert(handle, text.iter().copied().chain([0]).collect());
    }
    status
}

/// `nvPTXCompilerDestroy`
pub unsafe extern "C" fn ptx_compiler_destroy(compiler: *mut *mut c_void, originals: &Originals) -> Status {
    type Destroy = unsafe extern "C" fn(*mut *mut c_void) -> Status;
    if !compiler.is_null() {
        // Before its address can be another's.
        // SAFETY: the caller's promise: it is readable.
        locked(&TEXTS).remove(&unsafe { *compiler }.addr());
    }
    // SAFETY: the stub passes nvPTXCompiler's; the call as it came.
    unsafe { function!(originals.replaced[3], Destroy)(compiler) }
}

/// `nvPTXCompilerGetCompiledProgramSize`
pub unsafe extern "C" fn ptx_compiler_program_size(
    compiler: *mut c_void,
    size: *mut usize,
    originals: &Originals,
) -> Status {
    // SAFETY: the stub passes nvPTXCompiler's.
    let original = unsafe { function!(originals.replaced[0], GetSize) };
    // SAFETY: the call as it came.
    let status = unsafe { original(compiler, size) };
    if let (0, Some(size), Some(text)) = (status, NonNull::new(size), text_of(compiler)) {
        // SAFETY: the library has just written it.
        unsafe { size.write(text.len()) };
    }
    status
}

/// `nvPTXCompilerGetCompiledProgram`
pub unsafe extern "C" fn ptx_compiler_program(
    compiler: *mut c_void,
    program: *mut c_char,
    originals: &Originals,
) -> Status {
    // SAFETY: the stub passes nvPTXCompiler's.
    let (size, original) =
        unsafe { (function!(originals.replaced[0], GetSize), function!(originals.replaced[1], GetBytes)) };
    let mut bytes = 0;
    // What was not compiled, or not without mistakes, has no program.
    // SAFETY: the library checks the handle, and `bytes` is writable.
    let is_compiled = unsafe { size(compiler, &mut bytes) } == 0;
    if let (true, false, Some(text)) = (is_compiled, program.is_null(), text_of(compiler)) {
        tell("nvPTXCompilerGetCompiledProgram", GIVES_PTX);
        // SAFETY: the program made room for what `nvPTXCompilerGetCompiledProgramSize` says.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), program.cast::<u8>(), text.len()) };
        return 0;
    }
    // SAFETY: the call as it came.
    unsafe { original(compiler, program) }
}

/// `nvFatbinAddCubin`: PTX, which the others gave in place of a cubin, is added as such.
pub unsafe extern "C" fn fatbin_add_cubin(
    fatbin: *mut c_void,
    code: *const c_char,
    len_bytes: usize,
    arch: *const c_char,
    identifier: *const c_char,
    originals: &Originals,
) -> Status {
    type AddCubin =
        unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, *const c_char) -> Status;
    type AddPtx = unsafe extern "C" fn(
        *mut c_void,
        *const c_char,
        usize,
        *const c_char,
        *const c_char,
        *const c_char,
    ) -> Status;
    /// `NVFATBIN_ERROR_ELF_ARCH_MISMATCH`
    const ELF_ARCH_MISMATCH: Status = 2;
    // SAFETY: the stub passes nvFatbin's.
    let (add_cubin, add_ptx) =
        unsafe { (function!(originals.replaced[0], AddCubin), function!(originals.used[0], AddPtx)) };
    // SAFETY: the caller's promise.
    let Some(text) = (unsafe { ptx(code, len_bytes) }) else {
        // SAFETY: the call as it came.
        return unsafe { add_cubin(fatbin, code, len_bytes, arch, identifier) };
    };
    // A cubin is for one architecture, where PTX is for later ones as well.
    // SAFETY: the caller's promise: NULL or a string.
    let wanted =
        (!arch.is_null()).then(|| unsafe { CStr::from_ptr(arch) }).and_then(|arch| number(arch.to_bytes()));
    if let (Some(wanted), Some(made_for)) = (wanted, target(text))
        && wanted != made_for
    {
        return ELF_ARCH_MISMATCH;
    }
    tell("nvFatbinAddCubin", "given PTX in place of machine code, adds it as PTX");
    // SAFETY: the call as it came, without options for ptxas.
    unsafe { add_ptx(fatbin, code, text.len(), arch, identifier, core::ptr::null()) }
}

/// The text, with its zero where it has one, if it is PTX.
///
/// # Safety
/// `code` is null or has so many bytes, for as long as the answer is used.
unsafe fn ptx<'a>(code: *const c_char, len_bytes: usize) -> Option<&'a [u8]> {
    if code.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(code.cast::<u8>(), len_bytes) };
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes_with_nul);
    // Every PTX file has the directive; a cubin is an ELF file, which has a zero in its header.
    elf::mentions(text, b".version").then_some(text)
}

/// 90 of `.target sm_90a, debug`.
fn target(text: &[u8]) -> Option<u32> {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let target = lines.find_map(|line| line.strip_prefix(b".target"))?;
    number(target.trim_ascii_start().strip_prefix(b"sm_")?)
}

/// The number that a text begins with.
fn number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    core::str::from_utf8(text.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_told_from_cubins_and_knows_its_target() {
        let text = b"//\n// Generated by NVIDIA NVVM Compiler\n//\n\n.version 9.0\n .target\tsm_90a, debug\n.address_size 64\n\0rest";
        // SAFETY: the array is as long as it says.
        let found = unsafe { ptx(text.as_ptr().cast(), text.len()) }.unwrap();
        assert_eq!((found.len(), target(found)), (text.len() - 4, Some(90)));
        let cubin = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0.version";
        // SAFETY: as above.
        assert_eq!(unsafe { ptx(cubin.as_ptr().cast(), cubin.len()) }, None);
        // SAFETY: nothing is read.
        assert_eq!(unsafe { ptx(core::ptr::null(), 100) }, None);
        assert_eq!(
            [&b""[..], b"a", b"80", b"100f", b"99999999999"].map(number),
            [None, None, Some(80), Some(100), None]
        );
        assert_eq!(target(b".version 9.0"), None);
    }
}
