//! A cache of code for the CPU device, made by the installed `libcudaway_cpu.so`: only what made code may say by what it is found.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use compiler::{Module, image};
use cuda_abi::ahead::{cudaway_compile_t, cudaway_compiled_t};
use libloading::Library;

use crate::{own, table};

pub const NATIVE: &str = "native";
/// What code can be made for: this processor, and the levels of x86-64 that have vectors of 256 and 512 bits.
pub const PROCESSORS: [&str; 3] = [NATIVE, "x86-64-v3", "x86-64-v4"];

/// Fills the cache; how many kernels could not be compiled.
pub fn run(modules: &[Module], processors: &[&str], folder: &Path, blocks: &[[u32; 3]]) -> Result<usize> {
    let path = own::lib(None)?.join("libcudaway_cpu.so");
    // SAFETY: our own library, which any program may open.
    let library = unsafe { Library::new(&path) }.with_context(|| path.display().to_string())?;
    // SAFETY: our library's function of this name has this signature.
    let compile = unsafe { library.get::<cudaway_compile_t>(b"cudaway_compile\0") };
    let compile = *compile.with_context(|| format!("{} is of another release", path.display()))?;
    let folder = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    let head = ["kernel", "processor", "block", "setting", "bytes", ""].map(str::to_owned).to_vec();
    let mut told = Told { processor: String::new(), rows: vec![head], errors: vec![] };
    for module in modules {
        // As the driver hands a module over.
        let image = image::encode(module.sources());
        for &processor in processors {
            processor.clone_into(&mut told.processor);
            let name = CString::new(processor)?;
            let n_errors = told.errors.len();
            // SAFETY: an image of ours, C strings, three numbers for each block, and a function that takes what `told` points to.
            let code = unsafe {
                compile(
                    image.as_ptr().cast(),
                    name.as_ptr(),
                    folder.as_ptr(),
                    blocks.as_ptr().cast(),
                    blocks.len(),
                    tell,
                    (&raw mut told).cast(),
                )
            };
            if code != 0 && told.errors.len() == n_errors {
                return Err(anyhow!("libcudaway_cpu.so answers {code}"));
            }
        }
    }
    for error in &told.errors {
        eprintln!("{}\n", error.trim_end());
    }
    print!("{}", table::lines(&told.rows));
    Ok(told.errors.len())
}

/// What became of kernels so far.
struct Told {
    processor: String,
    rows: Vec<Vec<String>>,
    errors: Vec<String>,
}

/// # Safety
/// `data` is a [`Told`] that nobody else uses now, `compiled` what the library says.
unsafe extern "C" fn tell(data: *mut c_void, compiled: *const cudaway_compiled_t) {
    // SAFETY: what the caller owes; one call at a time.
    let (told, compiled) = unsafe { (&mut *data.cast::<Told>(), &*compiled) };
    let text = |text: *const c_char| {
        // SAFETY: null, or a C string during the call.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    let (kernel, blocks) = (text(compiled.kernel), text(compiled.blocks).unwrap_or_default());
    if let Some(error) = text(compiled.error) {
        let what = kernel.map_or_else(String::new, |kernel| {
            let blocks = if blocks.is_empty() { String::new() } else { format!(" in blocks of {blocks}") };
            format!("{kernel} cannot be had{blocks}:\n")
        });
        told.errors.push(format!("{what}{error}"));
        return;
    }
    told.rows.push(vec![
        kernel.unwrap_or_default(),
        told.processor.clone(),
        blocks,
        text(compiled.setting).unwrap_or_default(),
        compiled.bytes.to_string(),
        if compiled.was_there == 0 { String::new() } else { "was there".to_owned() },
    ]);
}
