//! What is our own: `cudaway_compile` for `cudaway compile --target cpu`, `cudaway_prepare` for graphs.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use compiler::back::cpu::Setting;
use cuda_abi::ahead::{cudaway_compiled_t, cudaway_told_t};
use hip_sys::*;

use super::module::text;
use crate::ahead::{self, Request, Told};
use crate::error::Result;
use crate::foreseen;
use crate::jit::Target;
use crate::module::{self, Blocks};

/// See [`cuda_abi::ahead::cudaway_compile_t`].
///
/// # Safety
/// What that says: an image, C strings, three numbers for each block, a function that takes `data` from any thread.
pub unsafe fn cudaway_compile(
    image: *const c_void,
    processor: *const c_char,
    folder: *const c_char,
    blocks: *const u32,
    n_blocks: usize,
    told: cudaway_told_t,
    data: *mut c_void,
) -> Result {
    if image.is_null() || processor.is_null() || folder.is_null() || (blocks.is_null() && n_blocks > 0) {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: not NULL; the caller's promise.
    let (processor, folder) = unsafe { (CStr::from_ptr(processor), CStr::from_ptr(folder)) };
    let target = Target::named(text(processor)?).ok_or(hipErrorInvalidValue)?;
    let folder = PathBuf::from(OsStr::from_bytes(folder.to_bytes()));
    // SAFETY: the caller's promise: three numbers for each block.
    let block = |index: usize| [0, 1, 2].map(|side| unsafe { blocks.add(3 * index + side).read() });
    let blocks: Vec<[u32; 3]> = (0..n_blocks).map(block).collect();
    let listener = Listener { told, data };
    // SAFETY: the caller's promise: an image of ours or PTX text.
    let sources = unsafe { module::sources(image.cast()) };
    let done = sources.and_then(|sources| {
        ahead::compile(&Request { sources, target, folder, blocks }, &|it| listener.tell(it))
    });
    done.map_err(|refusal| {
        listener.call(None, "", "", 0, false, Some(&refusal.text));
        refusal.error
    })
}

/// See [`hip_sys::Hip::prepare`].
pub fn cudaway_prepare(function: hipFunction_t, block: [u32; 3], is_clustered: bool) -> Result {
    let function = module::function_of_handle(function)?;
    foreseen::prepare(&function, block, is_clustered);
    Ok(())
}

/// Who is told.
struct Listener {
    told: cudaway_told_t,
    data: *mut c_void,
}

// SAFETY: the caller's promise: it may be called from any thread, with the data that it gave.
unsafe impl Sync for Listener {}

impl Listener {
    fn tell(&self, told: &Told) {
        let blocks = match told.blocks {
            Some(Blocks::Of([x, y, z])) => format!("{x}x{y}x{z}"),
            Some(Blocks::Flat(most)) => format!("flat, to {most}"),
            None => String::new(),
        };
        match told.made {
            Ok(made) => {
                let name = made.setting.name();
                let setting = match made.setting {
                    Setting::Simd => format!("{name}, {}", made.width),
                    Setting::Lane | Setting::Warp => name.to_owned(),
                };
                self.call(Some(told.kernel), &blocks, &setting, made.bytes, made.was_there, None);
            }
            Err(why) => self.call(Some(told.kernel), &blocks, "", 0, false, Some(why)),
        }
    }

    fn call(
        &self,
        kernel: Option<&str>,
        blocks: &str,
        setting: &str,
        bytes: usize,
        was_there: bool,
        error: Option<&str>,
    ) {
        let c_text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let (kernel, error) = (kernel.map(c_text), error.map(c_text));
        let (blocks, setting) = (c_text(blocks), c_text(setting));
        let pointer = |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        let compiled = cudaway_compiled_t {
            kernel: pointer(&kernel),
            blocks: blocks.as_ptr(),
            setting: setting.as_ptr(),
            bytes: bytes as u64,
            was_there: was_there.into(),
            error: pointer(&error),
        };
        // SAFETY: the caller's function, with what it asked for.
        unsafe { (self.told)(self.data, &compiled) };
    }
}
