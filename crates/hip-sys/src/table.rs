//! The HIP table: each function of the ABI declared once, filled by name from a provider.
//!
//! `hip.hipMalloc(&mut p, n)` calls; a function that the provider lacks is `None` in the table and the call answers
//! `HipError::Missing`, logged once with its name.

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use core::fmt;

use crate::attribute::hipDeviceAttribute_t;
use crate::error::{hipError_t, hipSuccess};
use crate::texture::*;
use crate::types::*;

/// Why a call through the table gave nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HipError {
    /// The provider answered with an error.
    Code { call: &'static str, code: hipError_t },
    /// The provider has no such function.
    Missing(&'static str),
}

impl HipError {
    #[must_use]
    pub fn call(self) -> &'static str {
        match self {
            HipError::Code { call, .. } | HipError::Missing(call) => call,
        }
    }

    /// The code, where a missing function counts as `hipErrorNotSupported`.
    pub fn code(self) -> hipError_t {
        match self {
            HipError::Code { code, .. } => code,
            HipError::Missing(_) => crate::error::hipErrorNotSupported,
        }
    }
}

impl fmt::Display for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HipError::Code { call, code } => write!(f, "{call} answered {code}"),
            HipError::Missing(call) => write!(f, "the provider has no {call}"),
        }
    }
}

impl fmt::Debug for HipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for HipError {}

#[cold]
fn missing(call: &'static str) -> HipError {
    use std::sync::Mutex;
    static SEEN: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut seen = SEEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !seen.contains(&call) {
        seen.push(call);
        tracing::warn!(target: "cudaway::hip", "the HIP provider has no {call}");
    }
    HipError::Missing(call)
}

#[cold]
fn failed(call: &'static str, code: hipError_t) -> HipError {
    tracing::debug!(target: "cudaway::hip", "{call} answered {code}");
    HipError::Code { call, code }
}

/// `cudaway_graph` of `libcudaway_cpu.so`: what is asked ([`graph`]), a graph's handle, a stream, another stream.
pub type Graph = unsafe extern "C" fn(c_uint, u64, hipStream_t, hipStream_t) -> hipError_t;

/// What [`Graph`] is asked for.
pub mod graph {
    use core::ffi::c_uint;

    /// What comes into the stream is kept as the steps of a graph, and not run.
    pub const RECORD: c_uint = 0;
    /// The steps kept in the stream become the graph's, at their turn in the other stream.
    pub const UPLOAD: c_uint = 1;
    /// What comes into the stream is a launch of the graph, or of none that kernels may launch (0).
    pub const BEGIN: c_uint = 2;
    /// The end of that.
    pub const END: c_uint = 3;
    /// The graph is destroyed.
    pub const FORGET: c_uint = 4;
    /// What the calling thread launches next is the kernel node of that handle, which kernels may change. No stream is named.
    pub const NODE: c_uint = 5;
    /// It was not launched after all.
    pub const NO_NODE: c_uint = 6;
    /// The node is gone.
    pub const FORGET_NODE: c_uint = 7;
    /// All of the above.
    pub const KINDS: c_uint = 0xff;
    /// With `NODE`: what the launch says takes the place of what kernels have set; the node does not run; the launch is taken at its
    /// turn, and not run.
    pub const NODE_NEW: c_uint = 0x100;
    pub const NODE_OFF: c_uint = 0x200;
    pub const NODE_UPLOAD: c_uint = 0x400;
}

/// `cudaway_prepare` of `libcudaway_cpu.so`.
pub type Prepare = unsafe extern "C" fn(hipFunction_t, c_uint, c_uint, c_uint, c_int) -> hipError_t;

/// `cudaway_work` of `libcudaway_cpu.so`: as `hipLaunchHostFunc`, for what is not the program's own code.
pub type Work = unsafe extern "C" fn(hipStream_t, hipHostFn_t, *mut c_void) -> hipError_t;

macro_rules! hip_functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        /// What a provider exports, by HIP's names; `None` where it has no such function.
        pub struct Hip {
            $($name: Option<unsafe extern "C" fn($($ty),*) -> hipError_t>,)*
            prepare: Option<Prepare>,
            graph: Option<Graph>,
            work: Option<Work>,
        }

        impl Hip {
            /// Every function name in the table.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Fills the table by name; `lookup` answers null for a name it does not have.
            ///
            /// # Safety
            /// A non-null answer is a function with the name's HIP signature, callable as long as the table is used.
            pub unsafe fn from_lookup(mut lookup: impl FnMut(&CStr) -> *mut c_void) -> Hip {
                const fn c_name(bytes: &'static [u8]) -> &'static CStr {
                    match CStr::from_bytes_with_nul(bytes) {
                        Ok(name) => name,
                        Err(_) => panic!("a function name holds no NUL"),
                    }
                }
                Hip {
                    $($name: {
                        let address = lookup(const { c_name(concat!(stringify!($name), "\0").as_bytes()) });
                        // SAFETY: the caller promised the signature; a null pointer is `None`.
                        unsafe {
                            core::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "C" fn($($ty),*) -> hipError_t>,
                            >(address)
                        }
                    },)*
                    prepare: {
                        let address = lookup(c"cudaway_prepare");
                        // SAFETY: only a library of ours has the name, with this signature; a null pointer is `None`.
                        unsafe { core::mem::transmute::<*mut c_void, Option<Prepare>>(address) }
                    },
                    graph: {
                        let address = lookup(c"cudaway_graph");
                        // SAFETY: as above.
                        unsafe { core::mem::transmute::<*mut c_void, Option<Graph>>(address) }
                    },
                    work: {
                        let address = lookup(c"cudaway_work");
                        // SAFETY: as above.
                        unsafe { core::mem::transmute::<*mut c_void, Option<Work>>(address) }
                    },
                }
            }

            /// Tells a provider of ours that the function will be launched with such blocks, in clusters of several if
            /// `is_clustered`; it answers at once. Others are not told.
            ///
            /// # Safety
            /// A function of this provider's.
            pub unsafe fn prepare(&self, function: hipFunction_t, [x, y, z]: [c_uint; 3], is_clustered: bool) {
                if let Some(prepare) = self.prepare {
                    // SAFETY: the caller's promise. What cannot be prepared is told when it is launched.
                    let _ = unsafe { prepare(function, x, y, z, c_int::from(is_clustered)) };
                }
            }

            /// Whether kernels of this provider's may launch graphs.
            #[must_use]
            pub fn has_device_graphs(&self) -> bool {
                self.graph.is_some()
            }

            /// Asks a provider of ours for something of [`graph`] about graphs that kernels launch; others have none.
            ///
            /// # Safety
            /// Streams are this provider's, or null.
            pub unsafe fn graph(
                &self,
                what: c_uint,
                graph: u64,
                stream: hipStream_t,
                other: hipStream_t,
            ) -> Result<(), HipError> {
                let call = self.graph.ok_or_else(|| missing("cudaway_graph"))?;
                // SAFETY: the caller's promise.
                match unsafe { call(what, graph, stream, other) } {
                    hipSuccess => Ok(()),
                    code => Err(failed("cudaway_graph", code)),
                }
            }

            /// Has a provider of ours call `function` at its turn in the stream, on any thread, one that waits for the stream among them;
            /// others by `hipLaunchHostFunc`.
            ///
            /// # Safety
            /// A stream of this provider's, or null; the function may be called with `data`, once, on any thread.
            pub unsafe fn work(
                &self,
                stream: hipStream_t,
                function: hipHostFn_t,
                data: *mut c_void,
            ) -> Result<(), HipError> {
                // SAFETY: the caller's promise.
                unsafe {
                    let Some(work) = self.work else { return self.hipLaunchHostFunc(stream, function, data) };
                    match work(stream, function, data) {
                        hipSuccess => Ok(()),
                        code => Err(failed("cudaway_work", code)),
                    }
                }
            }

            /// Whether the provider exports `name`.
            #[must_use]
            pub fn has(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }

            /// Whether both have the same functions, all of one library.
            #[must_use]
            pub fn is_same(&self, other: &Hip) -> bool {
                self.hipInit.map(|it| it as usize) == other.hipInit.map(|it| it as usize)
            }

            /// How many functions of the table the provider has.
            #[must_use]
            pub fn n_present(&self) -> usize {
                0 $(+ usize::from(self.$name.is_some()))*
            }

            $(
                /// The provider's function of this name.
                ///
                /// # Safety
                /// What HIP's documentation asks of the arguments: pointers valid for what the call does with them.
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "the signature is HIP's")]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> Result<(), HipError> {
                    let Some(function) = self.$name else { return Err(missing(stringify!($name))) };
                    // SAFETY: the caller's promise is the function's.
                    let code = unsafe { function($($arg),*) };
                    if code == hipSuccess { Ok(()) } else { Err(failed(stringify!($name), code)) }
                }
            )*
        }
    };
}

with_hip_functions!(hip_functions);
