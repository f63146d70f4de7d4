//! `cudaway selftest`: a kernel, end to end, and every runtime, on whichever libraries the loader gives for CUDA's names.

use std::ffi::{CStr, c_int, c_void};

use anyhow::{Context as _, Result, anyhow, ensure};
use libloading::Library;

use crate::doctor::function;

/// Checks that CUDA works here: loads the libraries by name, as programs do, and runs a kernel.
///
/// Under `cudaway run` the libraries are CUDAway's.
#[derive(clap::Args)]
pub struct Arguments {}

const RUNTIMES: [&str; 3] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"];

pub fn run(_: &Arguments) -> Result<()> {
    let driver = open("libcuda.so.1", b"cuInit\0")?;
    println!("{}", function::kernel(&driver).map_err(|why| anyhow!(why))?);
    for name in RUNTIMES {
        let runtime = open(name, COUNT)?;
        println!("{name} sees {} device(s)", n_devices(&runtime)?);
    }
    println!("PASSED");
    Ok(())
}

const COUNT: &[u8] = b"cudaGetDeviceCount\0";

/// The library of that name, and says which file it is: the one that holds the function `known`.
fn open(name: &str, known: &[u8]) -> Result<Library> {
    // SAFETY: any program may open CUDA's libraries.
    let library = unsafe { Library::new(name) }.with_context(|| format!("{name} cannot be opened"))?;
    // SAFETY: only its address is looked at.
    let function = unsafe { library.get::<*const c_void>(known) }.with_context(|| name.to_owned())?;
    println!("{name}: {}", object_of(*function));
    Ok(library)
}

fn n_devices(runtime: &Library) -> Result<c_int> {
    let mut n_devices = 0;
    // SAFETY: `cudaError_t cudaGetDeviceCount(int *)`, and a local to write to.
    let answer = unsafe { runtime.get::<unsafe extern "C" fn(*mut c_int) -> c_int>(COUNT)?(&mut n_devices) };
    ensure!(answer == 0, "cudaGetDeviceCount answers {answer}");
    Ok(n_devices)
}

/// The file that holds an address.
fn object_of(address: *const c_void) -> String {
    // SAFETY: an all-zero Dl_info is a valid one.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the answer's strings live as long as the library.
    match unsafe { libc::dladdr(address, &mut info) } {
        0 => "?".to_owned(),
        // SAFETY: as above.
        _ => unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned(),
    }
}
