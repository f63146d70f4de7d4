//! `libamd_comgr`, opened at run time: text in as bitcode (which it may be), relocatable code, executable code object.

use core::ffi::{c_char, c_int};
use std::ffi::CString;
use std::path::Path;

use comgr::protocol::Reply;
use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW, Symbol};

use super::{Job, OPAQUE_POINTERS, OPTIONS, wants_opaque_pointers};

/// What comgr calls by number.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
struct Handle(u64);

type Status = c_int;
const SUCCESS: Status = 0;

/// `amd_comgr_data_kind_t`, the same in every version so far.
mod kind {
    pub const LOG: i32 = 5;
    pub const BC: i32 = 6;
    pub const EXECUTABLE: i32 = 8;
}

/// `amd_comgr_action_kind_t`
#[derive(Clone, Copy)]
enum Action {
    CodegenToRelocatable,
    LinkToExecutable,
}

impl Action {
    /// The actions of interface 3 (ROCm 7) are numbered anew: two of the earlier ones are gone.
    fn number(self, major: usize) -> c_int {
        match (self, major) {
            (Action::CodegenToRelocatable, ..3) => 6,
            (Action::LinkToExecutable, ..3) => 9,
            (Action::CodegenToRelocatable, _) => 4,
            (Action::LinkToExecutable, _) => 7,
        }
    }
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*);)*) => {
        /// Its functions, by their names without `amd_comgr_`.
        struct Functions {
            $($name: Symbol<unsafe extern "C" fn($($argument),*) -> Status>,)*
        }

        impl Functions {
            /// # Safety
            /// `library` is a `libamd_comgr` and stays open.
            unsafe fn of(library: &Loaded) -> Result<Functions, String> {
                Ok(Functions {
                    // SAFETY: the caller's promise; the types are those of amd_comgr.h.
                    $($name: unsafe { library.get(concat!("amd_comgr_", stringify!($name), "\0").as_bytes()) }
                        .map_err(|error| error.to_string())?,)*
                })
            }
        }
    };
}

functions! {
    create_data: fn(c_int, *mut Handle);
    set_data: fn(Handle, usize, *const u8);
    set_data_name: fn(Handle, *const c_char);
    release_data: fn(Handle);
    get_data: fn(Handle, *mut usize, *mut u8);
    create_data_set: fn(*mut Handle);
    destroy_data_set: fn(Handle);
    data_set_add: fn(Handle, Handle);
    action_data_count: fn(Handle, c_int, *mut usize);
    action_data_get_data: fn(Handle, c_int, usize, *mut Handle);
    create_action_info: fn(*mut Handle);
    destroy_action_info: fn(Handle);
    action_info_set_isa_name: fn(Handle, *const c_char);
    action_info_set_logging: fn(Handle, bool);
    action_info_set_option_list: fn(Handle, *const *const c_char, usize);
    do_action: fn(c_int, Handle, Handle, Handle);
}

/// Calls one of comgr's functions; the name goes into the failure.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),*)) => {{
        let function = &$functions.$name;
        // SAFETY: each use says why.
        match unsafe { function($($argument),*) } {
            SUCCESS => Ok(()),
            status => Err(Failure::Call(stringify!($name), status)),
        }
    }};
}

pub struct Library {
    functions: Functions,
    major: usize,
    // Below what came from it.
    _loaded: Loaded,
}

/// A call that comgr refused, or an action with what it said of it.
enum Failure {
    Call(&'static str, Status),
    UnknownTarget,
    Action(String),
}

impl Library {
    pub fn open(path: &Path) -> Result<Library, String> {
        // SAFETY: the library that the user's configuration leads to; its constructors run.
        let loaded = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
        let loaded = loaded.map_err(|error| error.to_string())?;
        // SAFETY: it has comgr's names, and is kept.
        let functions = unsafe { Functions::of(&loaded) }?;
        // SAFETY: `void amd_comgr_get_version(size_t *major, size_t *minor)`.
        let version: Symbol<unsafe extern "C" fn(*mut usize, *mut usize)> =
            unsafe { loaded.get(b"amd_comgr_get_version\0") }.map_err(|error| error.to_string())?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both are writable.
        unsafe { version(&mut major, &mut minor) };
        Ok(Library { functions, major, _loaded: loaded })
    }

    pub fn compile(&self, job: &Job) -> Reply {
        let mut answer = self.build(job, &OPTIONS);
        if let Err(Failure::Action(log)) = &answer
            && wants_opaque_pointers(log)
        {
            answer = self.build(job, &[OPTIONS, OPAQUE_POINTERS].concat());
        }
        match answer {
            Ok((code, log)) => Reply::Done { code, log },
            Err(Failure::Call(call, status)) => Reply::Refused(format!("amd_comgr_{call} answered {status}")),
            Err(Failure::UnknownTarget) => Reply::Unavailable(format!("it does not know {}", job.target)),
            Err(Failure::Action(log)) => Reply::Refused(log),
        }
    }

    fn build(&self, job: &Job, options: &[&str]) -> Result<(Vec<u8>, String), Failure> {
        let text = Data::new(self, kind::BC, job.text.as_bytes())?;
        let input = Set::new(self)?;
        // SAFETY: both were made and live.
        call!(self.functions, data_set_add(input.handle, text.handle))?;
        let (relocatable, mut log) = self.act(Action::CodegenToRelocatable, job.target, options, &input)?;
        let (executable, said) = self.act(Action::LinkToExecutable, job.target, &[], &relocatable)?;
        log += &said;
        let code = executable.contents(kind::EXECUTABLE)?.pop();
        code.map(|code| (code, log)).ok_or_else(|| Failure::Action("no code object was made".to_owned()))
    }

    /// Does one step; gives what it made and what it said.
    fn act(
        &self,
        action: Action,
        target: &str,
        options: &[&str],
        input: &Set,
    ) -> Result<(Set<'_>, String), Failure> {
        let info = Info::new(self)?;
        let isa = c_string(&format!("amdgcn-amd-amdhsa--{target}"))?;
        // SAFETY: a live handle and a C string that comgr copies.
        call!(self.functions, action_info_set_isa_name(info.handle, isa.as_ptr()))
            .map_err(|_| Failure::UnknownTarget)?;
        // SAFETY: a live handle.
        call!(self.functions, action_info_set_logging(info.handle, true))?;
        let options: Vec<CString> =
            options.iter().map(|option| c_string(option)).collect::<Result<_, _>>()?;
        let list: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        if !list.is_empty() {
            // SAFETY: as many C strings as said, which comgr copies.
            call!(self.functions, action_info_set_option_list(info.handle, list.as_ptr(), list.len()))?;
        }
        let output = Set::new(self)?;
        let number = action.number(self.major);
        // SAFETY: live handles.
        let done = call!(self.functions, do_action(number, info.handle, input.handle, output.handle));
        let log = output.contents(kind::LOG)?.concat();
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
        match done {
            Ok(()) => Ok((output, log)),
            Err(failure) if log.trim().is_empty() => Err(failure),
            Err(_) => Err(Failure::Action(log)),
        }
    }
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::Action(format!("{text:?} has a zero in it")))
}

/// A piece of data that comgr holds.
struct Data<'l> {
    library: &'l Library,
    handle: Handle,
}

impl<'l> Data<'l> {
    fn new(library: &'l Library, kind: c_int, bytes: &[u8]) -> Result<Data<'l>, Failure> {
        let mut handle = Handle::default();
        // SAFETY: a writable handle.
        call!(library.functions, create_data(kind, &mut handle))?;
        let data = Data { library, handle };
        // SAFETY: `bytes` are readable; comgr copies them.
        call!(library.functions, set_data(handle, bytes.len(), bytes.as_ptr()))?;
        // SAFETY: a C string that comgr copies.
        call!(library.functions, set_data_name(handle, c"kernel.ll".as_ptr()))?;
        Ok(data)
    }
}

impl Drop for Data<'_> {
    fn drop(&mut self) {
        // SAFETY: its last use.
        let _ = call!(self.library.functions, release_data(self.handle));
    }
}

/// A set of data: what goes into an action or comes out of one.
struct Set<'l> {
    library: &'l Library,
    handle: Handle,
}

impl<'l> Set<'l> {
    fn new(library: &'l Library) -> Result<Set<'l>, Failure> {
        let mut handle = Handle::default();
        // SAFETY: a writable handle.
        call!(library.functions, create_data_set(&mut handle))?;
        Ok(Set { library, handle })
    }

    /// The bytes of all data of a kind in it.
    fn contents(&self, kind: c_int) -> Result<Vec<Vec<u8>>, Failure> {
        let functions = &self.library.functions;
        let mut n = 0;
        // SAFETY: a live handle and a writable number.
        call!(functions, action_data_count(self.handle, kind, &mut n))?;
        let one = |index| {
            let mut handle = Handle::default();
            // SAFETY: as above.
            call!(functions, action_data_get_data(self.handle, kind, index, &mut handle))?;
            let data = Data { library: self.library, handle };
            let mut len = 0;
            // SAFETY: without a buffer it says how long the data is.
            call!(functions, get_data(data.handle, &mut len, core::ptr::null_mut()))?;
            let mut bytes = vec![0; len];
            // SAFETY: room for as much.
            call!(functions, get_data(data.handle, &mut len, bytes.as_mut_ptr()))?;
            Ok(bytes)
        };
        (0..n).map(one).collect()
    }
}

impl Drop for Set<'_> {
    fn drop(&mut self) {
        // SAFETY: its last use.
        let _ = call!(self.library.functions, destroy_data_set(self.handle));
    }
}

/// What an action is told.
struct Info<'l> {
    library: &'l Library,
    handle: Handle,
}

impl<'l> Info<'l> {
    fn new(library: &'l Library) -> Result<Info<'l>, Failure> {
        let mut handle = Handle::default();
        // SAFETY: a writable handle.
        call!(library.functions, create_action_info(&mut handle))?;
        Ok(Info { library, handle })
    }
}

impl Drop for Info<'_> {
    fn drop(&mut self) {
        // SAFETY: its last use.
        let _ = call!(self.library.functions, destroy_action_info(self.handle));
    }
}
