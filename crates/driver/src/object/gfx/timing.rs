//! How long kernels run on AMD GPUs, for `cudaway trace`: HIP's events before and behind each launch, read when they are over.
//! Without a trace nothing of this happens.
//!
//! No lock is held over a call that waits. What cannot be timed is left out; the launch never fails for it.

use core::ffi::CStr;

use hip_sys::{self as hip, hipEvent_t};
use parking_lot::Mutex;

use super::super::{Context, Shared, Stream};
use crate::Result;

/// A place in a stream's work.
struct Mark {
    event: Shared<hipEvent_t>,
    context: &'static Context,
}

impl Mark {
    fn set(stream: &Stream) -> Option<Mark> {
        let mut event: hipEvent_t = core::ptr::null_mut();
        // SAFETY: a writable handle.
        unsafe { stream.hip().hipEventCreateWithFlags(&mut event, 0) }.ok()?;
        let mark = Mark { event: Shared(event), context: stream.context };
        // SAFETY: both are alive.
        unsafe { stream.hip().hipEventRecord(event, stream.hip.0) }.ok()?;
        Some(mark)
    }

    /// `None` when it is not over, or HIP cannot tell.
    fn nanoseconds_since(&self, earlier: &Mark) -> Option<u64> {
        let mut ms = 0.0;
        // SAFETY: both events live as long as their marks.
        unsafe { self.context.hip().hipEventElapsedTime(&mut ms, earlier.event.0, self.event.0) }.ok()?;
        // A negative or absurd answer becomes the nearest number.
        Some((f64::from(ms) * 1e6) as u64)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: made above and known to nobody else. There is nobody to tell if it cannot be.
        let _ = unsafe { self.context.hip().hipEventDestroy(self.event.0) };
    }
}

/// A launch that may still run.
struct Launch {
    name: String,
    before: Mark,
    behind: Mark,
}

static LAUNCHES: Mutex<Vec<Launch>> = Mutex::new(Vec::new());

/// A mark of each device with the time at which it was passed: HIP tells times between marks only.
static ORIGINS: Mutex<Vec<(Mark, u64)>> = Mutex::new(Vec::new());

/// Launches, and writes down how long the kernel took if somebody asks.
pub fn timed(name: &CStr, stream: &Stream, launch: impl FnOnce() -> Result) -> Result {
    if !trace::is_on() {
        return launch();
    }
    begin(stream);
    let before = Mark::set(stream);
    launch()?;
    if let (Some(before), Some(behind)) = (before, Mark::set(stream)) {
        LAUNCHES.lock().push(Launch { name: name.to_string_lossy().into_owned(), before, behind });
    }
    collect();
    Ok(())
}

fn is_of(mark: &Mark, context: &Context) -> bool {
    mark.context.device.ordinal == context.device.ordinal
}

/// The first launch of a device waits for what its stream had to do before.
fn begin(stream: &Stream) {
    if ORIGINS.lock().iter().any(|(mark, _)| is_of(mark, stream.context)) {
        return;
    }
    let Some(mark) = Mark::set(stream) else { return };
    // SAFETY: the event is alive.
    if unsafe { stream.hip().hipEventSynchronize(mark.event.0) }.is_ok() {
        ORIGINS.lock().push((mark, trace::nanoseconds()));
    }
}

/// Writes down the launches that are over.
pub fn collect() {
    let mut launches = LAUNCHES.lock();
    let (still, over): (Vec<Launch>, Vec<Launch>) = launches.drain(..).partition(Launch::runs);
    *launches = still;
    drop(launches);
    over.iter().for_each(Launch::write);
}

impl Launch {
    fn runs(&self) -> bool {
        // SAFETY: the event is alive.
        let answer = unsafe { self.behind.context.hip().hipEventQuery(self.behind.event.0) };
        answer.is_err_and(|error| error.code() == hip::hipErrorNotReady)
    }

    fn write(&self) {
        let Some(took) = self.behind.nanoseconds_since(&self.before) else { return };
        let origins = ORIGINS.lock();
        let origin = origins.iter().find(|(mark, _)| is_of(mark, self.before.context));
        // HIP tells it in a float: after a minute to some microseconds.
        let start = origin.and_then(|(mark, at)| Some(at + self.before.nanoseconds_since(mark)?));
        drop(origins);
        let start = start.unwrap_or_else(|| trace::nanoseconds().saturating_sub(took));
        trace::kernel_at(&self.name, &self.name, start, took);
    }
}
