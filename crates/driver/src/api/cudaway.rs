//! CUDAway's own two exports, after libblastrampoline's `lbt_forward` and `lbt_get_config`: look at the choice of
//! providers and change it by API, before the first `cuInit` that succeeds.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;

use hip_sys::Provider;
use parking_lot::Mutex;

use crate::process;

/// One provider.
#[repr(C)]
pub struct CudawayProvider {
    /// What was opened.
    pub path: *const c_char,
    /// `hipRuntimeGetVersion`.
    pub hip_version: c_int,
    pub n_devices: c_int,
    /// How many HIP functions it exports of those CUDAway can use.
    pub n_functions: c_int,
}

/// The providers in use, or chosen so far, in the order of their devices.
#[repr(C)]
pub struct CudawayConfig {
    /// Bytes of this structure, so that members may be added at its end.
    pub size_bytes: usize,
    pub n_providers: usize,
    pub providers: *const CudawayProvider,
}

/// Takes the library at `path` as a provider; `clear` forgets those chosen before. Gives the number of HIP functions
/// found in it, or 0 when it could not be taken (the log says why; with `verbose` also stderr).
///
/// # Safety
/// `path` is NULL or a C string.
pub unsafe fn forward(path: *const c_char, clear: c_int, verbose: c_int) -> c_int {
    config::logging::init();
    if path.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_owned();
    let taken = catch_unwind(|| {
        let provider =
            Provider::open(OsStr::from_bytes(path.to_bytes())).map_err(|error| error.to_string())?;
        let n_functions = c_int::try_from(provider.hip.n_present()).unwrap_or(c_int::MAX);
        process::choose(provider, clear != 0)
            .map_err(|_| "the device list is already made; choose before cuInit".to_owned())?;
        Ok::<c_int, String>(n_functions)
    });
    match taken {
        Ok(Ok(n_functions)) => n_functions,
        Ok(Err(reason)) => {
            tracing::error!(target: "cudaway::hip", "cudaway_forward: {reason}");
            if verbose != 0 {
                eprintln!("cudaway_forward: {reason}");
            }
            0
        }
        Err(_) => 0,
    }
}

/// What `cudaway_get_config` gave out; kept for the process's life, one entry per different answer.
struct Given(Vec<(Vec<*const Provider>, Box<CudawayConfig>)>);

// SAFETY: the pointers are to providers and strings that live as long as the process and are never written.
unsafe impl Send for Given {}

/// The providers; the answer stays valid for the process's life.
#[must_use]
pub fn config_now() -> *const CudawayConfig {
    static GIVEN: Mutex<Given> = Mutex::new(Given(Vec::new()));
    let providers = process::providers();
    let key: Vec<*const Provider> = providers.iter().map(|provider| core::ptr::from_ref(*provider)).collect();
    let mut given = GIVEN.lock();
    if let Some((_, config)) = given.0.iter().find(|(known, _)| *known == key) {
        return &raw const **config;
    }
    let rows: Vec<CudawayProvider> = providers
        .iter()
        .map(|provider| CudawayProvider {
            path: CString::new(provider.path.as_os_str().as_bytes()).unwrap_or_default().into_raw(),
            hip_version: provider.version,
            n_devices: provider.n_devices,
            n_functions: c_int::try_from(provider.hip.n_present()).unwrap_or(c_int::MAX),
        })
        .collect();
    let rows: &'static [CudawayProvider] = rows.leak();
    let config = Box::new(CudawayConfig {
        size_bytes: size_of::<CudawayConfig>(),
        n_providers: rows.len(),
        providers: rows.as_ptr(),
    });
    let at = &raw const *config;
    given.0.push((key, config));
    at
}
