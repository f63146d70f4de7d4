//! oneDNN found by `dlopen`: what it computes sooner than we do is its, once it has been opened.
//!
//! Its C API is that of release 3 (`dnnl.h`). A layer is a [`Program`](program::Program): a primitive with what rearranges arrays for it, made
//! once for each geometry and kept. What it cannot make, or what means something else there than in cuDNN, is computed by our own code.
//!
//! The rule: which of both computes is decided by the layer's sizes alone, so that the same call gives the same numbers again.

mod layers;
mod program;

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

pub(crate) use layers::{Lstm, Way, convolution, lstm, mean_backward, mean_forward};
use program::Programs;

use crate::value::{Kind, Value};

/// Where it usually is.
pub const NAMES: [&str; 1] = ["libdnnl.so.3"];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {reason}")]
    Open { path: String, reason: String },
    #[error("{path} has no {symbol}")]
    NotOneDnn { path: String, symbol: &'static str },
    #[error("{path} is oneDNN {major}, and release 3 is needed")]
    Release { path: String, major: c_int },
    #[error("{path} does not start: status {status}")]
    Start { path: String, status: c_int },
}

/// What was opened.
#[derive(Clone, Debug)]
pub struct Info {
    pub path: String,
    pub version: [c_int; 3],
}

/// `dnnl_dims_t`
pub(crate) type Dims = [i64; 12];

/// An object of its own.
pub(crate) type Object = *mut c_void;

/// `dnnl_exec_arg_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Argument {
    pub number: c_int,
    pub memory: Object,
}

/// `dnnl_version_t`, as far as it is read.
#[repr(C)]
pub(crate) struct Version {
    numbers: [c_int; 3],
}

/// Functions of dnnl.h, whose statuses are 0 where they have succeeded.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),* $(,)?) $(-> $answer:ty)?;)*) => {
        pub(crate) struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Functions, &'static str> {
                Ok(Functions {
                    $($name: {
                        let symbol = concat!("dnnl_", stringify!($name));
                        // SAFETY: the signature is dnnl.h's.
                        *unsafe { library.get(symbol.as_bytes()) }.map_err(|_| symbol)?
                    },)*
                })
            }
        }
    };
}

functions! {
    version: fn() -> *const Version;
    engine_create: fn(*mut Object, c_int, usize) -> c_int;
    stream_create: fn(*mut Object, Object, u32) -> c_int;
    stream_wait: fn(Object) -> c_int;
    stream_destroy: fn(Object) -> c_int;
    memory_desc_create_with_strides: fn(*mut Object, c_int, *const i64, c_int, *const i64) -> c_int;
    memory_desc_create_with_tag: fn(*mut Object, c_int, *const i64, c_int, c_int) -> c_int;
    memory_desc_destroy: fn(Object) -> c_int;
    memory_desc_equal: fn(Object, Object) -> c_int;
    memory_desc_get_size: fn(Object) -> usize;
    memory_create: fn(*mut Object, Object, Object, *mut c_void) -> c_int;
    memory_set_data_handle: fn(Object, *mut c_void) -> c_int;
    memory_destroy: fn(Object) -> c_int;
    primitive_attr_create: fn(*mut Object) -> c_int;
    primitive_attr_set_scratchpad_mode: fn(Object, c_int) -> c_int;
    primitive_desc_query_md: fn(Object, c_int, c_int) -> Object;
    primitive_desc_destroy: fn(Object) -> c_int;
    primitive_create: fn(*mut Object, Object) -> c_int;
    primitive_execute: fn(Object, Object, c_int, *const Argument) -> c_int;
    primitive_destroy: fn(Object) -> c_int;
    reorder_primitive_desc_create: fn(*mut Object, Object, Object, Object, Object, Object) -> c_int;
    convolution_forward_primitive_desc_create: fn(
        *mut Object, Object, c_int, c_int, Object, Object, Object, Object,
        *const i64, *const i64, *const i64, *const i64, Object,
    ) -> c_int;
    convolution_backward_data_primitive_desc_create: fn(
        *mut Object, Object, c_int, Object, Object, Object,
        *const i64, *const i64, *const i64, *const i64, Object, Object,
    ) -> c_int;
    convolution_backward_weights_primitive_desc_create: fn(
        *mut Object, Object, c_int, Object, Object, Object, Object,
        *const i64, *const i64, *const i64, *const i64, Object, Object,
    ) -> c_int;
    pooling_forward_primitive_desc_create: fn(
        *mut Object, Object, c_int, c_int, Object, Object,
        *const i64, *const i64, *const i64, *const i64, *const i64, Object,
    ) -> c_int;
    pooling_backward_primitive_desc_create: fn(
        *mut Object, Object, c_int, Object, Object,
        *const i64, *const i64, *const i64, *const i64, *const i64, Object, Object,
    ) -> c_int;
    lstm_forward_primitive_desc_create: fn(
        *mut Object, Object, c_int, c_int, Object, Object, Object, Object, Object, Object, Object, Object,
        Object, Object, Object, u32, Object,
    ) -> c_int;
}

/// The library, its engine for the CPU, and the programs that were made.
pub(crate) struct OneDnn {
    functions: Functions,
    engine: Object,
    /// Attributes that leave the room a primitive needs to us: one that is its own is not for several threads.
    attributes: Object,
    programs: Programs,
    info: Info,
    _library: Library,
}

// SAFETY: engines and attributes are used by several threads as they are.
unsafe impl Send for OneDnn {}
// SAFETY: as above.
unsafe impl Sync for OneDnn {}

static CURRENT: OnceLock<OneDnn> = OnceLock::new();

/// What is in front, for arrays of this type.
pub(crate) fn current<V: Value>() -> Option<&'static OneDnn> {
    if V::KIND == Kind::F32 { CURRENT.get() } else { None }
}

/// Has it in front for the process's life. The first that is opened stays.
pub fn open(path: &str) -> Result<Info, Error> {
    let opened = OneDnn::open(path)?;
    Ok(CURRENT.get_or_init(|| opened).info.clone())
}

/// The only engine kind that there is here.
const CPU: c_int = 1;

/// `dnnl_scratchpad_mode_user`
const ROOM_IS_OURS: c_int = 1;

impl OneDnn {
    fn open(path: &str) -> Result<OneDnn, Error> {
        // SAFETY: the library's constructors run, as everyone's who opens it.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| Error::Open { path: path.to_owned(), reason: reason(&error) })?;
        let functions =
            Functions::of(&library).map_err(|symbol| Error::NotOneDnn { path: path.to_owned(), symbol })?;
        // SAFETY: it answers a constant's address.
        let version = unsafe { (functions.version)().as_ref() }.map_or([0; 3], |version| version.numbers);
        if version[0] != 3 {
            return Err(Error::Release { path: path.to_owned(), major: version[0] });
        }
        let started = |status: c_int| match status {
            0 => Ok(()),
            status => Err(Error::Start { path: path.to_owned(), status }),
        };
        let (mut engine, mut attributes) = (null_mut(), null_mut());
        // SAFETY: the addresses are there.
        started(unsafe { (functions.engine_create)(&raw mut engine, CPU, 0) })?;
        // SAFETY: as above.
        started(unsafe { (functions.primitive_attr_create)(&raw mut attributes) })?;
        // SAFETY: the attributes were made.
        started(unsafe { (functions.primitive_attr_set_scratchpad_mode)(attributes, ROOM_IS_OURS) })?;
        let info = Info { path: path.to_owned(), version };
        Ok(OneDnn { functions, engine, attributes, programs: Programs::default(), info, _library: library })
    }
}

/// The loader's own words.
fn reason(error: &libloading::Error) -> String {
    use std::error::Error;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}
