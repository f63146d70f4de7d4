//! `libnvidia-ml.so.1` as a program opens it. Each call is looked up by name; what fails gives NVML's number.

use core::ffi::{CStr, c_char, c_int, c_uint};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use libloading::Library;
use nvml::types::{nvmlDevice_t, nvmlProcessInfo_t, nvmlReturn_t};

pub type Answer<T> = core::result::Result<T, nvmlReturn_t>;

pub struct Nvml(Library);

/// Room for every text of NVML's.
const TEXT_BYTES: usize = 256;

impl Nvml {
    /// Opens the library in `lib` and initialises it.
    pub fn open(lib: &Path) -> Result<Nvml> {
        let path = lib.join(loader::names::NVML.to_string_lossy().as_ref());
        // SAFETY: our own library; its constructors do nothing.
        let library = unsafe { Library::new(&path) }.with_context(|| path.display().to_string())?;
        let nvml = Nvml(library);
        let code = nvml.call0("nvmlInit_v2")?;
        ensure!(code == nvmlReturn_t::NVML_SUCCESS, "NVML does not start: {}", nvml.why(code));
        Ok(nvml)
    }

    fn call0(&self, name: &str) -> Result<nvmlReturn_t> {
        // SAFETY: calls without parameters have this type.
        let call = unsafe { self.0.get::<unsafe extern "C" fn() -> nvmlReturn_t>(name) }
            .context("the library's exports")?;
        // SAFETY: as above.
        Ok(unsafe { call() })
    }

    fn why(&self, code: nvmlReturn_t) -> String {
        // SAFETY: the name has this type.
        match unsafe { self.0.get::<unsafe extern "C" fn(nvmlReturn_t) -> *const c_char>("nvmlErrorString") }
        {
            // SAFETY: it gives a string that lives as long as the library.
            Ok(call) => unsafe { CStr::from_ptr(call(code)) }.to_string_lossy().into_owned(),
            Err(_) => code.0.to_string(),
        }
    }

    pub fn devices(&self) -> Result<Vec<Device<'_>>> {
        let count: c_uint =
            self.number("nvmlDeviceGetCount_v2").map_err(|code| anyhow::anyhow!(self.why(code)))?;
        let handle = |index: c_uint| self.with::<nvmlDevice_t, _>("nvmlDeviceGetHandleByIndex_v2", index);
        Ok((0..count)
            .filter_map(|index| Some(Device { nvml: self, handle: handle(index).ok()?.0 }))
            .collect())
    }

    /// `name(&mut T)`
    pub fn number<T: Default>(&self, name: &str) -> Answer<T> {
        let mut value = T::default();
        // SAFETY: the caller names a call of this type.
        let call = unsafe { self.0.get::<unsafe extern "C" fn(*mut T) -> nvmlReturn_t>(name) };
        let call = call.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: `value` is writable.
        checked(unsafe { call(&mut value) }).map(|()| value)
    }

    /// `name(text, bytes)`
    pub fn text(&self, name: &str) -> Answer<String> {
        let mut text = [0; TEXT_BYTES];
        type Call = unsafe extern "C" fn(*mut c_char, c_uint) -> nvmlReturn_t;
        // SAFETY: the caller names a call of this type.
        let call =
            unsafe { self.0.get::<Call>(name) }.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: so many bytes are writable.
        checked(unsafe { call(text.as_mut_ptr(), TEXT_BYTES as c_uint) }).map(|()| string(&text))
    }

    /// `name(argument, &mut T)`; a handle is a null pointer before.
    fn with<T, A>(&self, name: &str, argument: A) -> Answer<Held<T>>
    where
        Held<T>: Default,
    {
        let mut value = Held::<T>::default();
        // SAFETY: the caller names a call of this type.
        let call = unsafe { self.0.get::<unsafe extern "C" fn(A, *mut Held<T>) -> nvmlReturn_t>(name) };
        let call = call.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: `value` is writable.
        checked(unsafe { call(argument, &mut value) }).map(|()| value)
    }

    pub fn process_name(&self, pid: c_uint) -> Answer<String> {
        let mut text = [0; 4096];
        type Call = unsafe extern "C" fn(c_uint, *mut c_char, c_uint) -> nvmlReturn_t;
        // SAFETY: the name has this type.
        let call = unsafe { self.0.get::<Call>("nvmlSystemGetProcessName") }
            .map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: so many bytes are writable.
        checked(unsafe { call(pid, text.as_mut_ptr(), 4096) }).map(|()| string(&text))
    }
}

/// What a call writes; pointers have no `Default`.
#[repr(transparent)]
struct Held<T>(T);

impl Default for Held<nvmlDevice_t> {
    fn default() -> Self {
        Held(core::ptr::null_mut())
    }
}

fn checked(code: nvmlReturn_t) -> Answer<()> {
    if code == nvmlReturn_t::NVML_SUCCESS { Ok(()) } else { Err(code) }
}

fn string(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|c| c.cast_unsigned()).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub struct Device<'n> {
    nvml: &'n Nvml,
    handle: nvmlDevice_t,
}

impl Device<'_> {
    /// `name(device, &mut T)`
    pub fn get<T: Default>(&self, name: &str) -> Answer<T> {
        let mut value = T::default();
        // SAFETY: the caller names a call of this type.
        let call =
            unsafe { self.nvml.0.get::<unsafe extern "C" fn(nvmlDevice_t, *mut T) -> nvmlReturn_t>(name) };
        let call = call.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: `value` is writable.
        checked(unsafe { call(self.handle, &mut value) }).map(|()| value)
    }

    /// `name(device, &mut T, &mut T)`
    pub fn pair<T: Default>(&self, name: &str) -> Answer<(T, T)> {
        let mut values = (T::default(), T::default());
        type Call<T> = unsafe extern "C" fn(nvmlDevice_t, *mut T, *mut T) -> nvmlReturn_t;
        // SAFETY: the caller names a call of this type.
        let call = unsafe { self.nvml.0.get::<Call<T>>(name) };
        let call = call.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: both are writable.
        checked(unsafe { call(self.handle, &mut values.0, &mut values.1) }).map(|()| values)
    }

    /// `name(device, which, &mut number)`, where `which` is an enum.
    pub fn of(&self, name: &str, which: c_int) -> Answer<c_uint> {
        let mut value = 0;
        type Call = unsafe extern "C" fn(nvmlDevice_t, c_int, *mut c_uint) -> nvmlReturn_t;
        // SAFETY: the caller names a call of this type.
        let call = unsafe { self.nvml.0.get::<Call>(name) };
        let call = call.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: `value` is writable.
        checked(unsafe { call(self.handle, which, &mut value) }).map(|()| value)
    }

    /// What is the same for all devices.
    pub fn system(&self, name: &str) -> Answer<String> {
        self.nvml.text(name)
    }

    pub fn count(&self) -> Answer<String> {
        self.nvml.number::<c_uint>("nvmlDeviceGetCount_v2").map(|count| count.to_string())
    }

    /// `name(device, text, bytes)`
    pub fn text(&self, name: &str) -> Answer<String> {
        let mut text = [0; TEXT_BYTES];
        type Call = unsafe extern "C" fn(nvmlDevice_t, *mut c_char, c_uint) -> nvmlReturn_t;
        // SAFETY: the caller names a call of this type.
        let call = unsafe { self.nvml.0.get::<Call>(name) };
        let call = call.map_err(|_| nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND)?;
        // SAFETY: so many bytes are writable.
        checked(unsafe { call(self.handle, text.as_mut_ptr(), TEXT_BYTES as c_uint) }).map(|()| string(&text))
    }

    pub fn processes(&self) -> Vec<nvmlProcessInfo_t> {
        type Call = unsafe extern "C" fn(nvmlDevice_t, *mut c_uint, *mut nvmlProcessInfo_t) -> nvmlReturn_t;
        // SAFETY: the name has this type.
        let Ok(call) = (unsafe { self.nvml.0.get::<Call>("nvmlDeviceGetComputeRunningProcesses_v3") }) else {
            return Vec::new();
        };
        let mut found = vec![nvmlProcessInfo_t::default(); 64];
        loop {
            let mut count = c_uint::try_from(found.len()).unwrap_or(c_uint::MAX);
            // SAFETY: so many elements are writable.
            let code = unsafe { call(self.handle, &mut count, found.as_mut_ptr()) };
            let count = usize::try_from(count).unwrap_or(0);
            match code {
                nvmlReturn_t::NVML_SUCCESS => {
                    found.truncate(count);
                    return found;
                }
                // More have come meanwhile.
                nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE => {
                    found.resize(count + 16, nvmlProcessInfo_t::default())
                }
                _ => return Vec::new(),
            }
        }
    }
}
