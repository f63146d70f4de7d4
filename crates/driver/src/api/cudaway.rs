//! CUDAway's own exports: after libblastrampoline's `lbt_forward` and `lbt_get_config`, those that show the choice of
//! providers and change it before the first `cuInit` that succeeds; the HIP stream behind a CUDA stream; and work of
//! libraries of ours that a stream or a graph owns.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::sync::Arc;

use border::Out;
use cuda_abi::{
    CUDA_HOST_NODE_PARAMS, CUdevice_attribute, CUhostFn, CUstream, CudawayDevice, CudawayHipStream,
};
use hip_sys::Provider;
use parking_lot::Mutex;

use super::device::attribute as attribute_of;
use super::host_function::enqueue_work;
use crate::object::Device;
use crate::object::device::Target;
use crate::object::graph::capture::{self, captured};
use crate::object::graph::{Op, Params};
use crate::object::stream::Stream;
use crate::{Error, Result, process};

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

/// Who all devices are, also those that `CUDA_VISIBLE_DEVICES` hides: NVML lists these as well. `count` gets how many there are;
/// what has no `room` in the list is not written.
///
/// # Safety
/// `list` is NULL or has room for `room` elements.
pub unsafe fn devices(
    size_bytes: usize,
    list: *mut CudawayDevice,
    room: c_int,
    count: Out<'_, c_int>,
) -> Result {
    if size_bytes != size_of::<CudawayDevice>() {
        return Err(Error::InvalidValue("size_bytes"));
    }
    let all = process::all_devices()?;
    count.write(c_int::try_from(all.len()).unwrap_or(c_int::MAX));
    let room = if list.is_null() { 0 } else { usize::try_from(room).unwrap_or(0) };
    for (at, device) in all.into_iter().take(room).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { list.add(at).write(known(device)) };
    }
    Ok(())
}

fn known(device: &Device) -> CudawayDevice {
    use CUdevice_attribute as Of;
    let number = |attribute| attribute_of(device, attribute).unwrap_or(0);
    let mut known = CudawayDevice {
        uuid: device.uuid,
        total_memory: device.total_memory as u64,
        compute_capability: [
            number(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            number(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        ],
        pci: [
            number(Of::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
            number(Of::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
            number(Of::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID),
        ],
        memory_bus_bits: number(Of::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        has_ecc: number(Of::CU_DEVICE_ATTRIBUTE_ECC_ENABLED),
        compute_mode: number(Of::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE),
        is_cpu: c_int::from(device.target == Target::Cpu),
        ..CudawayDevice::default()
    };
    for (to, from) in known.name.iter_mut().take(255).zip(device.name.bytes()) {
        *to = from.cast_signed();
    }
    known
}

/// The HIP stream behind `stream`, with this thread bound to its device: what a library of ROCm needs to work in its order.
/// With `enqueues` the caller is about to hand it work that no graph of ours can hold: a capture of the stream ends, and
/// the answer is `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`.
pub fn hip_stream(stream: CUstream, enqueues: bool, answer: Out<'_, CudawayHipStream>) -> Result {
    if enqueues {
        capture::forbid_in_capture(stream)?;
    }
    let stream = Stream::from_handle(stream)?;
    let device = stream.context.device;
    answer.write(CudawayHipStream {
        stream: stream.hip.0.cast(),
        device: device.hip_ordinal,
        is_cpu: c_int::from(device.is_ours()),
    });
    Ok(())
}

/// What a host function works on, and who lets go of it.
struct Owned {
    function: CUhostFn,
    data: *mut c_void,
    free: CUhostFn,
}

// SAFETY: `launch_host_function`'s caller gave data that any thread may use.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            // SAFETY: nobody runs the function any more.
            unsafe { free(self.data) };
        }
    }
}

impl Owned {
    /// Runs the function when the stream gets there; the data stay until it has run.
    fn launch(self: &Arc<Owned>, stream: CUstream) -> Result {
        let data = Arc::into_raw(Arc::clone(self)).cast_mut().cast::<c_void>();
        // SAFETY: the function may run anywhere, with the reference that it is given.
        unsafe { enqueue_work(stream, Some(run_owned), data) }.inspect_err(|_| {
            // SAFETY: the reference just made, which nobody was given.
            drop(unsafe { Arc::from_raw(data.cast::<Owned>()) });
        })
    }
}

unsafe extern "C" fn run_owned(data: *mut c_void) {
    // SAFETY: `Owned::launch` gave this reference away; a host function runs once.
    let owned = unsafe { Arc::from_raw(data.cast_const().cast::<Owned>()) };
    if let Some(function) = owned.function {
        // SAFETY: `launch_host_function`'s caller says so.
        unsafe { function(owned.data) };
    }
}

/// As `cuLaunchHostFunc`, with data that the driver owns from here on: `free` is called once, when the function runs no more.
/// That is behind its one run; with the last graph that has it, if the stream is being captured; at once after an error.
///
/// # Safety
/// `function` and `free` take `data`, on any thread, the first on several at a time if the stream is captured.
pub unsafe fn launch_host_function(
    stream: CUstream,
    function: CUhostFn,
    data: *mut c_void,
    free: CUhostFn,
) -> Result {
    let owned = Arc::new(Owned { function, data, free });
    if function.is_none() {
        return Err(Error::InvalidValue("function"));
    }
    let node = || {
        let (owned, params) = (Arc::clone(&owned), CUDA_HOST_NODE_PARAMS { fn_: function, userData: data });
        Ok(Op::new(Params::Host(params), move |_, stream| owned.launch(stream)))
    };
    if captured(stream, node)? { Ok(()) } else { owned.launch(stream) }
}
