//! A HIP library for tests: the CPU device with the face of a ROCm release, which looks at every argument, writes down
//! every call, and answers as a script says.
//!
//! `cargo xtask test --only rocm` links it once for each release with a version script of that release's exports, as
//! `libhip_recorder-5.2.so` and so on: what a release lacks is not there, and what its ABI has otherwise it has so
//! ([`face`]). An argument that no caller may pass ends the process with the call and the argument on stderr.
//!
//! | variable | |
//! |---|---|
//! | `HIP_RECORDER_BODY` | path of `libcudaway_cpu.so` |
//! | `HIP_RECORDER_LOG` | a file to which every call is added: name, then the answer |
//! | `HIP_RECORDER_SCRIPT` | what goes wrong ([`script`]) |
//! | `HIP_RECORDER_FAR` | device memory is where the host cannot read it ([`far`]) |
#![allow(non_snake_case, reason = "names are HIP's")]

mod argument;
mod face;
mod far;
mod script;

use core::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use std::io::Write as _;
use std::sync::OnceLock;

use argument::Argument;
use hip_sys::*;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// The CPU device's functions.
fn body() -> &'static Hip {
    static BODY: OnceLock<Hip> = OnceLock::new();
    BODY.get_or_init(|| {
        let path =
            std::env::var_os("HIP_RECORDER_BODY").unwrap_or_else(|| refuse("HIP_RECORDER_BODY is not set"));
        // SAFETY: the CPU device's library; it stays open.
        let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
        let library = std::mem::ManuallyDrop::new(library.unwrap_or_else(|error| refuse(&error.to_string())));
        // SAFETY: names with the prefix `hip` have HIP's signatures.
        unsafe {
            Hip::from_lookup(|name| {
                let symbol = library.get::<*mut c_void>(name.to_bytes_with_nul());
                symbol.map_or(core::ptr::null_mut(), |symbol| symbol.into_raw())
            })
        }
    })
}

/// The caller or the test is wrong: the process ends, and the test with it.
fn refuse(what: &str) -> ! {
    eprintln!("hip-recorder: {what}");
    std::process::abort()
}

/// One call: its arguments, the script's word, then what the CPU device does.
fn call(
    name: &'static str,
    arguments: &[(&str, &dyn Argument)],
    run: impl FnOnce(&'static Hip) -> Result<(), HipError>,
) -> hipError_t {
    for (argument, value) in arguments {
        if let Some(fault) = value.fault() {
            refuse(&format!("{name}: {argument} {fault}"));
        }
    }
    let answer =
        script::answer(name).unwrap_or_else(|| run(body()).map_or_else(HipError::code, |()| hipSuccess));
    if let Some(file) = log() {
        // One write, so that the lines of several threads and processes stay whole.
        let _ = (&*file).write_all(format!("{name} {}\n", answer.0).as_bytes());
    }
    answer
}

fn log() -> Option<&'static std::fs::File> {
    static LOG: OnceLock<Option<std::fs::File>> = OnceLock::new();
    LOG.get_or_init(|| {
        let path = std::env::var_os("HIP_RECORDER_LOG")?;
        std::fs::File::options().append(true).create(true).open(path).ok()
    })
    .as_ref()
}

macro_rules! export {
    // These have another layout in some releases: `face` has them.
    (hipRuntimeGetVersion $($rest:tt)*) => {};
    (hipGetDeviceProperties $($rest:tt)*) => {};
    (hipPointerGetAttributes $($rest:tt)*) => {};
    (hipPointerGetAttribute $($rest:tt)*) => {};
    (hipDrvPointerGetAttributes $($rest:tt)*) => {};
    (hipMemcpyParam2D $($rest:tt)*) => {};
    (hipMemcpyParam2DAsync $($rest:tt)*) => {};
    (hipDrvMemcpy3D $($rest:tt)*) => {};
    (hipDrvMemcpy3DAsync $($rest:tt)*) => {};
    // These hand out addresses and take them back: `far` has them.
    (hipMalloc $($rest:tt)*) => {};
    (hipMallocAsync $($rest:tt)*) => {};
    (hipFree $($rest:tt)*) => {};
    (hipFreeAsync $($rest:tt)*) => {};
    ($name:ident $($arg:ident: $ty:ty),*) => {
        /// # Safety
        /// HIP's.
        #[allow(clippy::too_many_arguments, reason = "the signature is HIP's")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> hipError_t {
            let arguments: &[(&str, &dyn Argument)] = &[$((stringify!($arg), &$arg)),*];
            // SAFETY: the caller's promise.
            call(stringify!($name), arguments, |body| unsafe { body.$name($($arg.near()),*) })
        }
    };
}

macro_rules! exports {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => { $(export! { $name $($arg: $ty),* })* };
}

hip_sys::with_hip_functions!(exports);
