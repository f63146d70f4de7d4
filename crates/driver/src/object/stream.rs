//! Streams: created ones by handle, and the two default streams, which every context has without asking.

use core::ffi::{c_int, c_uint};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_abi::{CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, CUgreenCtx, CUstream};
use hip_sys::{Hip, hipStream_t, hipStreamPerThread};

use super::{Context, Shared};
use crate::handle::{Registry, Shown};
use crate::shown::shown;
use crate::{Error, Result};

static STREAMS: Registry<Stream, CUstream, Stream> = Registry::new(2);

#[derive(Clone, Copy)]
pub struct Stream {
    pub hip: Shared<hipStream_t>,
    pub context: &'static Context,
    context_id: u64,
    pub flags: c_uint,
    pub priority: c_int,
    /// What `cuStreamGetId` answers.
    pub id: u64,
    /// The green context that made it, or NULL.
    pub green: Shared<CUgreenCtx>,
}

shown!(Stream in Cells {
    hip: Shared<hipStream_t>,
    context: &'static Context,
    context_id: u64,
    flags: c_uint,
    priority: c_int,
    id: u64,
    green: Shared<CUgreenCtx>,
});

impl Shown<Stream> for Stream {
    fn of(stream: &Stream) -> Stream {
        *stream
    }
}

thread_local! {
    /// Whether a null stream means the thread's own default stream in the call that is running (`_ptsz`, `_ptds`).
    static NULL_IS_PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Runs a body with the null stream meaning the calling thread's default stream.
pub fn with_per_thread_default<R>(body: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            NULL_IS_PER_THREAD.set(self.0);
        }
    }
    let _restore = Restore(NULL_IS_PER_THREAD.replace(true));
    body()
}

/// Whether the running call is a `_ptsz` or `_ptds` one.
#[inline]
pub fn null_is_per_thread() -> bool {
    NULL_IS_PER_THREAD.get()
}

/// Ids of the default streams: the legacy one's is its handle; others count from here.
const FIRST_ID: u64 = 8;

impl Stream {
    /// `cuStreamCreate` in the current context.
    pub fn create(flags: c_uint, priority: c_int) -> Result<CUstream> {
        Stream::create_in(Context::current()?, flags, priority, Shared(core::ptr::null_mut()))
    }

    /// The same in a named context, with this thread bound to its device.
    pub fn create_in(
        context: &'static Context,
        flags: c_uint,
        priority: c_int,
        green: Shared<CUgreenCtx>,
    ) -> Result<CUstream> {
        context.bind()?;
        // CUDA: CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING, nothing else.
        if flags > 1 {
            return Err(Error::InvalidValue("flags"));
        }
        // CUDA: 0 is in every device's range.
        let priority = if priority == 0 {
            0
        } else {
            let (least, greatest) = priority_range(context);
            priority.clamp(greatest, least)
        };
        let mut stream: hipStream_t = core::ptr::null_mut();
        // SAFETY: `stream` is a writable handle.
        let made = unsafe { context.hip().hipStreamCreateWithPriority(&mut stream, flags, priority) };
        match made {
            // SAFETY: as above.
            Err(hip_sys::HipError::Missing(_)) => {
                // SAFETY: the member that belongs to the operation is the one set.
                unsafe { context.hip().hipStreamCreateWithFlags(&mut stream, flags) }?
            }
            other => other?,
        }
        static NEXT_ID: AtomicU64 = AtomicU64::new(FIRST_ID);
        let entry = Stream {
            hip: Shared(stream),
            context,
            context_id: context.id(),
            flags,
            priority,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            green,
        };
        STREAMS.insert(entry).ok_or(Error::OutOfMemory)
    }

    /// The stream a handle means: null and the two special numbers included, with this thread bound to its device.
    #[inline]
    pub fn from_handle(handle: CUstream) -> Result<Stream> {
        if handle.is_null() || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD {
            let context = Context::current()?;
            let per_thread = handle == CU_STREAM_PER_THREAD || (handle.is_null() && null_is_per_thread());
            return Ok(Stream::default_of(context, per_thread));
        }
        let stream = Stream::created(handle)?;
        stream.context.bind()?;
        Ok(stream)
    }

    /// As [`Stream::from_handle`], for calls whose work goes to the current context.
    #[inline]
    pub fn in_current(handle: CUstream) -> Result<Stream> {
        let context = Context::current()?;
        let stream = Stream::from_handle(handle)?;
        if !core::ptr::eq(stream.context, context) {
            // CUDA: the stream belongs to another context.
            context.bind()?;
            return Err(Error::InvalidHandle("hStream: of another context"));
        }
        Ok(stream)
    }

    #[inline]
    fn created(handle: CUstream) -> Result<Stream> {
        crate::process::driver()?;
        // CUDA: a destroyed or foreign handle is CUDA_ERROR_INVALID_HANDLE (newer drivers: CONTEXT_IS_DESTROYED).
        STREAMS.peek(handle).ok_or(Error::InvalidHandle("hStream"))
    }

    pub fn default_of(context: &'static Context, per_thread: bool) -> Stream {
        Stream {
            hip: Shared(if per_thread { hipStreamPerThread } else { core::ptr::null_mut() }),
            context,
            context_id: context.id(),
            flags: 0,
            priority: 0,
            id: if per_thread { 2 } else { 1 },
            green: Shared(core::ptr::null_mut()),
        }
    }

    /// `cuStreamDestroy`: returns at once; queued work still runs.
    pub fn destroy(handle: CUstream) -> Result<Stream> {
        let stream = Stream::created(handle)?;
        stream.context.bind()?;
        STREAMS.remove(handle).ok_or(Error::InvalidHandle("hStream"))?;
        // SAFETY: the handle is out of the registry, so this is the only destroy of it.
        unsafe { stream.hip().hipStreamDestroy(stream.hip.0) }?;
        Ok(stream)
    }

    #[inline]
    pub fn hip(&self) -> &'static Hip {
        self.context.hip()
    }

    pub fn is_default(&self) -> bool {
        self.id < FIRST_ID
    }

    pub fn synchronize(&self) -> Result {
        // SAFETY: the stream is alive or a default one.
        Ok(unsafe { self.hip().hipStreamSynchronize(self.hip.0) }?)
    }
}

/// Lowest and highest priority, as numbers: lower numbers run first.
pub fn priority_range(context: &'static Context) -> (c_int, c_int) {
    let (mut least, mut greatest) = (0, 0);
    // SAFETY: both are writable ints.
    match unsafe { context.hip().hipDeviceGetStreamPriorityRange(&mut least, &mut greatest) } {
        Ok(()) => (least, greatest),
        Err(_) => (0, 0),
    }
}

/// Copies of the created streams that `wanted` picks.
pub fn all_where(wanted: impl Fn(&Stream) -> bool) -> Vec<Stream> {
    let found = RefCell::new(Vec::new());
    STREAMS.for_each(|stream| {
        if wanted(stream) {
            found.borrow_mut().push(*stream);
        }
    });
    found.into_inner()
}

/// Destroys every stream of a context that ends.
pub fn destroy_all(context_id: u64) {
    for stream in STREAMS.remove_where(|stream| stream.context_id == context_id) {
        // SAFETY: it just left the registry. The context ends whatever HIP says.
        let _ = unsafe { stream.hip().hipStreamDestroy(stream.hip.0) };
    }
}
