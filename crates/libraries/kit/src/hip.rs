//! ROCm's library behind one of NVIDIA's: where it is looked for, which of its functions are there, and the HIP stream that
//! its work goes to.

use core::ffi::{CStr, c_int, c_void};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};

use config::LibraryChoice;
use cuda_abi::{CUresult, CUstream, CudawayHipStream};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use crate::driver::{Number, check, driver};
use crate::{Error, Result};

/// The HIP stream behind a CUDA stream, with this thread bound to its device. `enqueues`: work of HIP's follows.
pub fn stream(stream: CUstream, enqueues: bool) -> Result<CudawayHipStream> {
    let Some(ask) = driver()?.cudaway_hip_stream else {
        return Err(Error::NoDevice(
            "libcuda.so.1 is not CUDAway's, and ROCm's libraries work on HIP's streams",
        ));
    };
    let mut answer = CudawayHipStream::default();
    // SAFETY: the driver looks at the stream itself; `answer` outlives the call.
    match unsafe { ask(Number(stream), c_int::from(enqueues), &mut answer) } {
        // HIP differs: what its libraries enqueue is in no graph of the driver's.
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED => {
            Err(Error::NotSupported("work of ROCm's libraries cannot be captured into a graph"))
        }
        code => check("cudaway_hip_stream", code).map(|()| answer),
    }
}

/// A function that is called often.
pub struct Entry {
    pub index: usize,
    pub name: &'static CStr,
}

impl Entry {
    pub fn text(&self) -> &'static str {
        self.name.to_str().unwrap_or_default()
    }
}

/// One library, of which `N` functions are called often: each is looked for when it is first called.
pub struct Object<const N: usize> {
    library: Library,
    pub path: PathBuf,
    /// NULL: not looked for yet.
    entries: [AtomicPtr<c_void>; N],
}

/// Stands for a function that the library lacks.
const ABSENT: *mut c_void = core::ptr::without_provenance_mut(1);

impl<const N: usize> Object<N> {
    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr) -> core::result::Result<Object<N>, String> {
        // SAFETY: the constructors of a library that the user's configuration or ROCm's folders name.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let entries = [const { AtomicPtr::new(core::ptr::null_mut()) }; N];
        Ok(Object { library, path: PathBuf::from(path), entries })
    }

    /// The function's address, if the library has it.
    pub fn find(&self, entry: &Entry) -> Option<*mut c_void> {
        let slot = &self.entries[entry.index];
        let mut found = slot.load(Ordering::Relaxed);
        if found.is_null() {
            found = self.find_other(entry.name).unwrap_or(ABSENT);
            slot.store(found, Ordering::Relaxed);
        }
        (found != ABSENT).then_some(found)
    }

    /// As [`Self::find`], of a function that is called seldom.
    pub fn find_other(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: only the address is taken; the library is never closed while it is used.
        let symbol = unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        Some(symbol.into_raw()).filter(|address| !address.is_null())
    }

    pub fn has(&self, name: &CStr) -> bool {
        self.find_other(name).is_some()
    }
}

/// One library, of which the functions of a list are looked for at once: each is known by its place there.
pub struct Listed<const N: usize> {
    /// Open as long as its functions are called.
    _object: Object<0>,
    functions: [Option<*mut c_void>; N],
}

// SAFETY: addresses of functions.
unsafe impl<const N: usize> Send for Listed<N> {}
// SAFETY: as above.
unsafe impl<const N: usize> Sync for Listed<N> {}

impl<const N: usize> Listed<N> {
    /// `first`: the place of a function without which it is none.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn open(path: &OsStr, names: &[&CStr; N], first: usize) -> core::result::Result<Listed<N>, String> {
        let object = Object::<0>::open(path)?;
        let functions = names.map(|name| object.find_other(name));
        if functions[first].is_none() {
            return Err(format!("{} exports no {}", path.display(), names[first].to_string_lossy()));
        }
        Ok(Listed { _object: object, functions })
    }

    /// The address of the function with this place, if the library has it.
    pub fn find(&self, place: usize) -> Option<*mut c_void> {
        self.functions.get(place).copied().flatten()
    }

    /// Which of the names this release has not.
    pub fn lacks(&self, names: &[&'static CStr; N]) -> Vec<&'static str> {
        let all = names.iter().zip(&self.functions);
        let lacks = all.filter(|(_, function)| function.is_none());
        lacks.map(|(name, _)| name.to_str().unwrap_or_default()).collect()
    }
}

/// The stream that a handle of ROCm's was told last: HIP's default stream, on which a new one works, if none.
#[derive(Default)]
pub struct LastStream(AtomicPtr<c_void>);

impl LastStream {
    /// Tells it another stream than before.
    ///
    /// # Errors
    /// That of `set`, after which it has the stream that it had.
    pub fn tell<E>(
        &self,
        stream: *mut c_void,
        set: impl FnOnce(Number<*mut c_void>) -> core::result::Result<(), E>,
    ) -> core::result::Result<(), E> {
        if self.0.load(Ordering::Relaxed) != stream {
            set(Number(stream))?;
            self.0.store(stream, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A library of ROCm's.
pub struct Wanted {
    /// The names under which ROCm has it, newest first.
    pub names: &'static [&'static str],
    /// The library of NVIDIA's whose work it does.
    pub stands_for: &'static str,
    /// The variable that may name its file.
    pub variable: &'static str,
}

impl Wanted {
    /// As [`Self::first`]; none where our own code is asked for.
    pub fn unless_own<T>(
        &self,
        choices: &[LibraryChoice],
        open: impl Fn(&OsStr) -> core::result::Result<T, String>,
    ) -> Option<T> {
        if choices.contains(&LibraryChoice::Own) { None } else { self.first(choices, open) }
    }

    /// The first that can be opened: a path among `choices`, or one of the names where ROCm is.
    pub fn first<T>(
        &self,
        choices: &[LibraryChoice],
        open: impl Fn(&OsStr) -> core::result::Result<T, String>,
    ) -> Option<T> {
        let paths = choices.iter().filter_map(|choice| match choice {
            LibraryChoice::Path(path) => Some(path.as_os_str().to_owned()),
            _ => None,
        });
        let rocm = candidates(self.names, config::get().rocm_root.as_deref(), config::var);
        let found = paths.chain(rocm).find_map(|path| {
            let may_run = config::named::library(Path::new(&path));
            let library =
                may_run.map_err(|why| format!("{}: {why}", path.display())).and_then(|()| open(&path));
            if let Err(reason) = &library {
                tracing::debug!(target: "cudaway::library", "{reason}");
            }
            library.ok()
        });
        if found.is_none() {
            tracing::warn!(
                target: "cudaway::library",
                "{} is not found, which does {}'s work on AMD GPUs: install ROCm's, or name it in {}",
                self.names[0],
                self.stands_for,
                self.variable
            );
        }
        found
    }
}

/// Every place where one of ROCm's libraries may be, in order: as HIP itself is looked for.
pub fn candidates(
    names: &[&str],
    root: Option<&Path>,
    var: impl Fn(&str) -> Option<OsString>,
) -> Vec<OsString> {
    let folders = config::rocm_roots(root, var)
        .into_iter()
        .flat_map(|root| config::ROCM_LIBRARY_FOLDERS.map(|folder| root.join(folder)));
    let files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    let mut candidates: Vec<OsString> =
        files.filter(|path| path.exists()).map(PathBuf::into_os_string).collect();
    if root.is_none() {
        candidates.extend(names.iter().map(OsString::from));
    }
    candidates
}

/// A struct `Functions` of what a release of ROCm has of one of its libraries, from names and arguments as its header has them; each
/// answers with a status.
///
/// `Functions::of` looks them up in an [`Object`].
#[macro_export]
macro_rules! hip_functions {
    ($($name:ident($($argument:ty),*);)*) => {
        /// What a release of ROCm has of it.
        #[derive(Debug)]
        pub struct Functions {
            $(pub(crate) $name: Option<unsafe extern "C" fn($($argument),*) -> ::core::ffi::c_int>,)*
        }

        impl Functions {
            fn of(library: &$crate::hip::Object<0>) -> Functions {
                $(let $name = library.find_other(
                    ::core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()).unwrap_or_default()
                );)*
                // SAFETY: each field has its name's type in the library's header.
                unsafe { Functions { $($name: $name.map(|address| ::core::mem::transmute(address)),)* } }
            }

            /// The names that this release has not.
            #[allow(dead_code, reason = "not every library tells of them")]
            pub(crate) fn lacks(&self) -> Vec<&'static str> {
                let all = [$((stringify!($name), self.$name.is_none()),)*];
                all.into_iter().filter(|(_, lacks)| *lacks).map(|(name, _)| name).collect()
            }
        }
    };
}

/// One of [`hip_functions`], with the arguments: what the release lacks, or answers with one of the statuses `$lacks` of what it does
/// not implement, is the library's `Error::NotSupported`, every other failure its `Error::Hip`.
///
/// The caller's word: the arguments are what the library's header asks for, handles live, and places for answers outlive the call.
#[macro_export]
macro_rules! hip_call {
    ($functions:expr, $name:ident($($argument:expr),*), lacks: [$($lacks:pat),*]) => {
        match $functions.$name {
            // SAFETY: the caller's word.
            Some(function) => match unsafe { function($($argument),*) } {
                0 => Ok(()),
                $($lacks => Err(Error::NotSupported(concat!("this release of ROCm does not implement it: ", stringify!($name)))),)*
                code => Err(Error::Hip { call: stringify!($name), code }),
            },
            None => Err(Error::NotSupported(concat!("this release of ROCm has no ", stringify!($name)))),
        }
    };
}

/// Tells in the log which library computes, and which functions its release lacks.
#[macro_export]
macro_rules! hip_opened {
    ($target:literal, $name:literal, $path:expr, $lacks:expr) => {
        ::tracing::info!(target: $target, "{} computes on AMD GPUs", $path.display());
        let lacks: ::std::vec::Vec<&str> = $lacks;
        if !lacks.is_empty() {
            ::tracing::info!(target: $target, "this release of {} lacks {}", $name, lacks.join(", "));
        }
    };
}

/// A function of a [`Listed`](hip::Listed) library with these types of arguments, called with these values: its status as `$check` has it,
/// or `None` where a release lacks it.
///
/// The caller's word: the signature is that of the library's header, handles live, and pointers are what the header asks for.
#[macro_export]
macro_rules! listed_call {
    ($library:expr, $place:path, $check:path, ($($ty:ty = $value:expr),* $(,)?)) => {
        $library.find($place).map(|function| {
            // SAFETY: the caller's word.
            let function = unsafe {
                ::core::mem::transmute::<
                    *mut ::core::ffi::c_void,
                    unsafe extern "C" fn($($ty),*) -> ::core::ffi::c_int,
                >(function)
            };
            // SAFETY: the caller's word.
            $check(unsafe { function($($value),*) })
        })
    };
}

/// Routines that are handed on, for tests that call them from C: each gets the library's `HipCall` before its arguments, and `$status`
/// makes a number of its answer.
#[macro_export]
macro_rules! hip_for_c {
    ($call:ty, $status:path; $($name:ident($($param:ident: $ty:ty),*);)*) => {
        #[cfg(test)]
        pub fn for_c() -> ::std::vec::Vec<(&'static str, *const ::core::ffi::c_void)> {
            ::std::vec![$({
                unsafe extern "C" fn $name(hip: &$call, $($param: $ty),*) -> ::core::ffi::c_int {
                    // SAFETY: the caller's promise.
                    $status(unsafe { self::$name(hip, $($param),*) })
                }
                (stringify!($name), $name as *const ::core::ffi::c_void)
            }),*]
        }
    };
}
