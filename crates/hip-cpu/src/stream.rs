//! Streams: queues that run in order, beside each other and beside the program.
//!
//! Every stream has a thread of its own, started with its first work. Who waits for a stream runs its queue itself
//! when the thread has not begun yet, so short work, of libraries too, does not wait for a wake-up (the program's own functions excepted).
//! The order between the legacy default
//! stream and the blocking streams is fixed at enqueue, under [`ORDER`]. Each context has its own of both, and default streams
//! of its own; contexts do not wait for each other.
//!
//! Lock order: `LEGACY` → `STREAMS`; `ORDER` → `STREAMS` or `LEAVING` → a stream's `inner`. No lock is held while an operation runs.

mod boxes;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hip_sys::*;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use crate::device;
use crate::error::Result;
use crate::event::Event;
use crate::exec::printf;
use crate::exec::{self, Rounding};
use crate::graph::{self, Environment};
use crate::handle::Registry;
use crate::launch::Launched;
use crate::memory::Allocation;
use crate::thread;

pub use boxes::{Place, Shape, copy_box, set_box};

pub enum Op {
    Copy {
        to: usize,
        from: usize,
        bytes: usize,
    },
    /// From a copy made at enqueue: the program may change its pageable memory at once.
    Staged {
        to: usize,
        bytes: Box<[u8]>,
    },
    CopyBox {
        to: Place,
        from: Place,
        shape: Shape,
    },
    /// `unit` bytes (1, 2 or 4) of `value`, repeated.
    Set {
        to: Place,
        shape: Shape,
        value: u32,
        unit: usize,
    },
    Launch(Box<Launched>),
    Record(Arc<Event>, u64),
    AwaitEvent(Arc<Event>, u64),
    /// Another stream's work up to a number.
    After(Arc<Stream>, u64),
    Host(unsafe extern "C" fn(*mut c_void), usize),
    /// What a library of ours computes on the CPU.
    Work(unsafe extern "C" fn(*mut c_void), usize),
    Callback {
        call: unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void),
        stream: usize,
        data: usize,
    },
    Free(Allocation),
    /// A launch of a graph begins; `0`: of none that kernels may launch.
    BeginGraph(u64),
    EndGraph,
    Upload(u64, Arc<graph::Program>),
    Write {
        to: usize,
        value: u64,
        bytes: usize,
    },
    AwaitValue {
        from: usize,
        value: u64,
        mask: u64,
        bytes: usize,
        flags: u32,
    },
}

impl Op {
    /// Whether a thread of the program that waits for it may run it: never the program's own code, and else where its stack suffices.
    fn may_run_here(&self) -> bool {
        match self {
            Op::Host(..) | Op::Callback { .. } => false,
            Op::Work(..) => thread::has_room(thread::WORK_BYTES),
            Op::Launch(launched) => thread::has_room(thread::KERNEL_BYTES + launched.stack_bytes()),
            _ => thread::has_room(thread::KERNEL_BYTES),
        }
    }

    /// Whether it may be a step of a graph that kernels launch: it does the same each time, and waits for nothing.
    pub fn can_be_repeated(&self) -> bool {
        matches!(self, Op::Copy { .. } | Op::CopyBox { .. } | Op::Set { .. } | Op::Launch(_))
    }

    /// Copies and fills; others move nothing.
    pub fn move_bytes(&self) {
        match *self {
            // SAFETY: the ranges were checked at enqueue, and freeing waits for the streams.
            Op::Copy { to, from, bytes } => unsafe {
                std::ptr::copy(from as *const u8, to as *mut u8, bytes);
            },
            // SAFETY: as above.
            Op::CopyBox { to, from, shape } => unsafe { copy_box(to, from, shape) },
            // SAFETY: as above.
            Op::Set { to, shape, value, unit } => unsafe { set_box(to, shape, value, unit) },
            _ => {}
        }
    }
}

/// An operation and the context that it was queued in.
struct Queued {
    op: Op,
    context: usize,
}

#[derive(Default)]
struct Inner {
    queue: VecDeque<Queued>,
    /// Operations ever queued, and of these ended.
    submitted: u64,
    completed: u64,
    /// A thread is running the queue.
    draining: bool,
    has_thread: bool,
    closed: bool,
    /// Threads waiting on `done`.
    n_waiting: u32,
    /// The stream's own thread sleeps on `work`.
    parked: bool,
    /// Last number of the legacy stream this one waits for already.
    after_legacy: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Legacy,
    Blocking,
    NonBlocking,
}

pub struct Stream {
    pub class: Class,
    /// The context that it was made in.
    context: usize,
    /// The context's legacy stream, or a thread's own.
    is_default: bool,
    /// A blocking stream's legacy stream.
    legacy: Option<Arc<Stream>>,
    pub flags: u32,
    pub priority: i32,
    /// Number of the stream in the log.
    pub id: u64,
    inner: Mutex<Inner>,
    work: Condvar,
    done: Condvar,
    /// As in `inner`, readable without the lock.
    submitted: AtomicU64,
    completed: AtomicU64,
    /// It has no handle any more.
    is_closed: AtomicBool,
    /// Launch records kept for the next launch.
    #[expect(
        clippy::vec_box,
        reason = "the queue holds boxes, and a box that comes back is used again as it is"
    )]
    spare: Mutex<Vec<Box<Launched>>>,
    /// Of the graph that the stream is running, and whether there is one, readable without the lock.
    environment: Mutex<Option<Arc<Environment>>>,
    is_in_graph: AtomicBool,
    /// Its queue is kept for [`Stream::recorded`] and not run.
    is_recording: AtomicBool,
}

static STREAMS: Registry<Stream> = Registry::new();
/// Streams without a handle whose work goes on: destroyed ones, and default streams of threads that ended. They count
/// in everything that waits for all streams. Idle ones go when the next one comes.
static LEAVING: Mutex<Vec<Arc<Stream>>> = Mutex::new(Vec::new());
/// Whether [`LEAVING`] has any, readable without the lock.
static ANY_LEAVES: AtomicBool = AtomicBool::new(false);
/// Fixes the order between the legacy stream and the blocking ones; holds the latter.
static ORDER: Mutex<()> = Mutex::new(());
/// The legacy stream of each context that used it, until the context ends.
static LEGACY: RwLock<Vec<Arc<Stream>>> = RwLock::new(Vec::new());

thread_local! {
    /// The thread's default stream in each context that it used one in.
    static PER_THREAD: RefCell<Vec<PerThread>> = const { RefCell::new(Vec::new()) };
}

fn legacy_of(context: usize) -> Arc<Stream> {
    let known = |all: &[Arc<Stream>]| all.iter().find(|stream| stream.context == context).cloned();
    if let Some(stream) = known(&LEGACY.read()) {
        return stream;
    }
    let mut all = LEGACY.write();
    known(&all).unwrap_or_else(|| {
        let stream = Stream::new(Class::Legacy, true, hipStreamDefault, 0);
        STREAMS.add(stream.clone());
        all.push(stream.clone());
        stream
    })
}

/// The calling thread's default stream in a context.
fn per_thread_of(context: usize, own: &mut Vec<PerThread>) -> Arc<Stream> {
    let is_it = |stream: &Stream| stream.context == context && !stream.is_closed.load(Ordering::Acquire);
    if let Some(known) = own.iter().find(|known| is_it(&known.0)) {
        return known.0.clone();
    }
    own.retain(|known| !known.0.is_closed.load(Ordering::Acquire));
    let stream = Stream::new(Class::Blocking, true, hipStreamDefault, 0);
    STREAMS.add(stream.clone());
    own.push(PerThread(stream.clone()));
    stream
}

/// The default streams of a context go with it; it may come back and gets new ones.
pub fn forget_context(context: usize) {
    LEGACY.write().retain(|stream| stream.context != context);
    let mut defaults = Vec::new();
    STREAMS.for_each(|stream| {
        if stream.context == context && stream.is_default {
            defaults.push(stream.clone());
        }
    });
    for stream in defaults {
        let _ = STREAMS.remove(handle_of(&stream));
        stream.close();
    }
}

/// Ends the calling thread's default stream with the thread.
struct PerThread(Arc<Stream>);

impl Drop for PerThread {
    fn drop(&mut self) {
        leave(&self.0);
        let _ = STREAMS.remove(handle_of(&self.0));
        self.0.close();
    }
}

fn handle_of(stream: &Arc<Stream>) -> usize {
    Arc::as_ptr(stream) as usize
}

/// How long a stream's thread looks for more work before it sleeps, and who waits for that work looks for its end.
const SPIN: Duration = Duration::from_micros(15);
/// Launch records kept per stream.
const MAX_SPARE: usize = 64;

/// The stream behind a handle; null is the legacy default stream.
pub fn of_handle(handle: hipStream_t) -> Result<Arc<Stream>> {
    if handle.is_null() || handle == hipStreamLegacy {
        return Ok(legacy_of(device::context()));
    }
    if handle == hipStreamPerThread {
        let context = device::context();
        let stream = PER_THREAD.try_with(|own| per_thread_of(context, &mut own.borrow_mut()));
        return stream.map_err(|_| hipErrorInvalidHandle);
    }
    STREAMS.get(handle as usize)
}

/// Makes a stream and its handle.
pub fn create(flags: u32, priority: i32) -> Result<hipStream_t> {
    let class = match flags {
        hipStreamDefault => Class::Blocking,
        hipStreamNonBlocking => Class::NonBlocking,
        _ => return Err(hipErrorInvalidValue),
    };
    N_CREATED.fetch_add(1, Ordering::Relaxed);
    Ok(STREAMS.add(Stream::new(class, false, flags, priority)) as hipStream_t)
}

/// Streams that [`create`] made and [`destroy`] did not end.
static N_CREATED: AtomicUsize = AtomicUsize::new(0);

/// Streams that were not destroyed.
pub fn left() -> usize {
    N_CREATED.load(Ordering::Relaxed)
}

/// HIP: the queued work is done, the handle is gone at once.
pub fn destroy(handle: hipStream_t) -> Result {
    if handle.is_null() || handle == hipStreamLegacy || handle == hipStreamPerThread {
        return Err(hipErrorInvalidHandle);
    }
    leave(&STREAMS.get(handle as usize)?);
    STREAMS.remove(handle as usize)?.close();
    N_CREATED.fetch_sub(1, Ordering::Relaxed);
    Ok(())
}

/// Keeps a stream that is about to lose its handle among those that are waited for, until its work is done.
fn leave(stream: &Arc<Stream>) {
    if stream.is_idle() {
        return;
    }
    let mut leaving = LEAVING.lock();
    leaving.retain(|other| !other.is_idle());
    leaving.push(stream.clone());
    ANY_LEAVES.store(true, Ordering::Release);
}

/// Every stream with work, some twice.
fn for_each_busy(mut visit: impl FnMut(&Arc<Stream>)) {
    let mut busy = |stream: &Arc<Stream>| {
        if !stream.is_idle() {
            visit(stream);
        }
    };
    STREAMS.for_each(&mut busy);
    if ANY_LEAVES.load(Ordering::Acquire) {
        let mut leaving = LEAVING.lock();
        leaving.retain(|stream| !stream.is_idle());
        leaving.iter().for_each(&mut busy);
        ANY_LEAVES.store(!leaving.is_empty(), Ordering::Release);
    }
}

/// Waits for everything that is queued in the calling thread's context.
pub fn synchronize_context() {
    let context = device::context();
    let mut busy = Vec::new();
    for_each_busy(|stream| {
        if stream.context == context {
            busy.push(stream.clone());
        }
    });
    for stream in busy {
        stream.synchronize();
    }
    printf::flush();
}

/// Waits for everything that is queued anywhere.
pub fn synchronize_all() {
    let mut busy = Vec::new();
    for_each_busy(|stream| busy.push(stream.clone()));
    for stream in busy {
        stream.synchronize();
    }
    printf::flush();
}

/// An operation's place in a queue.
struct Pushed {
    number: u64,
    /// Nothing is before it, here or elsewhere.
    is_next: bool,
}

impl Stream {
    fn new(class: Class, is_default: bool, flags: u32, priority: i32) -> Arc<Stream> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let context = device::context();
        let legacy = (class == Class::Blocking).then(|| legacy_of(context));
        Arc::new(Stream {
            class,
            context,
            legacy,
            is_default,
            flags,
            priority,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            inner: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            spare: Mutex::default(),
            environment: Mutex::default(),
            is_in_graph: AtomicBool::new(false),
            is_recording: AtomicBool::new(false),
        })
    }

    /// From now on what is queued is kept, for a graph, and neither run nor waited for.
    pub fn record_steps(&self) {
        self.is_recording.store(true, Ordering::Relaxed);
    }

    /// What was queued since.
    pub fn recorded(&self) -> Vec<Op> {
        std::mem::take(&mut self.inner.lock().queue).into_iter().map(|queued| queued.op).collect()
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.inner.lock().closed = true;
        self.work.notify_all();
    }

    fn is_idle(&self) -> bool {
        self.completed.load(Ordering::Acquire) == self.submitted.load(Ordering::Acquire)
    }

    /// Queues an operation; answers its number.
    pub fn enqueue(self: &Arc<Stream>, op: Op) -> u64 {
        let Pushed { number, .. } = self.push(op, true);
        number
    }

    /// Queues an operation that nobody waits for before another one is queued.
    pub fn enqueue_behind(self: &Arc<Stream>, op: Op) {
        self.push(op, false);
    }

    /// Queues an operation that takes less time than to wake a thread: where it waits for nothing, it is done on this one.
    pub fn enqueue_short(self: &Arc<Stream>, op: Op) {
        let Pushed { number, is_next } = self.push(op, false);
        if is_next {
            self.wait_for(number);
        } else {
            self.wake(&mut self.inner.lock());
        }
    }

    /// Queues an operation and waits for it, on this thread when the stream is idle.
    pub fn run(self: &Arc<Stream>, op: Op) {
        let Pushed { number, .. } = self.push(op, false);
        self.wait_for(number);
    }

    fn push(self: &Arc<Stream>, op: Op, wake: bool) -> Pushed {
        if self.is_recording.load(Ordering::Relaxed) {
            self.inner.lock().queue.push_back(Queued { op, context: device::context() });
            return Pushed { number: 0, is_next: true };
        }
        let order = match self.class {
            Class::NonBlocking => None,
            Class::Legacy | Class::Blocking => Some(ORDER.lock()),
        };
        let mut before = Vec::new();
        match self.class {
            Class::NonBlocking => {}
            Class::Legacy => {
                for_each_busy(|other| {
                    if other.class == Class::Blocking && other.context == self.context {
                        before.push((other.clone(), other.submitted.load(Ordering::Acquire)));
                    }
                });
            }
            Class::Blocking => {
                if let Some(legacy) = self.legacy.as_ref().filter(|legacy| !legacy.is_idle()) {
                    before.push((legacy.clone(), legacy.submitted.load(Ordering::Acquire)));
                }
            }
        }
        let context = device::context();
        let mut inner = self.inner.lock();
        let is_next = before.is_empty() && inner.completed == inner.submitted;
        for (other, number) in before {
            if self.class == Class::Blocking {
                if inner.after_legacy >= number {
                    continue;
                }
                inner.after_legacy = number;
            }
            inner.queue.push_back(Queued { op: Op::After(other, number), context });
            inner.submitted += 1;
        }
        inner.queue.push_back(Queued { op, context });
        inner.submitted += 1;
        let number = inner.submitted;
        self.submitted.store(number, Ordering::Release);
        drop(order);
        if wake {
            self.wake(&mut inner);
        }
        Pushed { number, is_next }
    }

    /// Makes sure that the stream's own thread will see the queue.
    fn wake(self: &Arc<Stream>, inner: &mut Inner) {
        if inner.draining {
            return;
        }
        if !inner.has_thread {
            let stream = self.clone();
            let started = thread::spawn(format!("cudaway-s{}", self.id), move || stream.serve());
            match started {
                Ok(_) => inner.has_thread = true,
                // The next one who waits for the stream does the work.
                Err(error) => {
                    tracing::error!(target: "cudaway::cpu", "no thread for stream {}: {error}", self.id)
                }
            }
        } else if inner.parked {
            self.work.notify_one();
        }
    }

    /// Everything queued so far has ended.
    pub fn query(&self) -> bool {
        self.is_idle() || {
            let inner = self.inner.lock();
            inner.completed >= inner.submitted
        }
    }

    /// Waits for everything queued so far; the legacy stream stands for the blocking ones too.
    pub fn synchronize(self: &Arc<Stream>) {
        if self.class == Class::Legacy {
            let mut busy = Vec::new();
            for_each_busy(|other| {
                if other.class == Class::Blocking && other.context == self.context {
                    busy.push((other.clone(), other.submitted.load(Ordering::Acquire)));
                }
            });
            for (other, number) in busy {
                other.wait_for(number);
            }
        }
        let number = self.submitted.load(Ordering::Acquire);
        self.wait_for(number);
        printf::flush();
    }

    /// Waits until operation `number` has ended.
    pub fn wait_for(self: &Arc<Stream>, number: u64) {
        if self.completed.load(Ordering::Acquire) >= number {
            return;
        }
        let mut inner = self.inner.lock();
        if inner.draining && self.ends_soon(&mut inner, number) {
            return;
        }
        while inner.completed < number {
            let mine = !inner.draining && inner.queue.front().is_some_and(|queued| queued.op.may_run_here());
            if mine {
                inner.draining = true;
                while inner.completed < number {
                    let Some(queued) = inner.queue.pop_front_if(|queued| queued.op.may_run_here()) else {
                        break;
                    };
                    self.run_next(&mut inner, queued);
                }
                inner.draining = false;
                if !inner.queue.is_empty() {
                    self.wake(&mut inner);
                }
            } else {
                if !inner.draining {
                    self.wake(&mut inner);
                }
                inner.n_waiting += 1;
                self.done.wait(&mut inner);
                inner.n_waiting -= 1;
            }
        }
    }

    /// Looks for the end of an operation that another thread runs or comes to, without the lock: to sleep and be woken takes longer
    /// than a small kernel.
    fn ends_soon(&self, inner: &mut MutexGuard<'_, Inner>, number: u64) -> bool {
        if exec::pool::workers() == 1 {
            return false;
        }
        MutexGuard::unlocked(inner, || {
            let until = Instant::now() + SPIN;
            while self.completed.load(Ordering::Acquire) < number {
                if Instant::now() >= until {
                    return false;
                }
                std::hint::spin_loop();
            }
            true
        })
    }

    /// Runs an operation, without the lock, and counts it.
    fn run_next(&self, inner: &mut MutexGuard<'_, Inner>, queued: Queued) {
        if matches!(queued.op, Op::Record(..)) {
            // Who has seen the event finds the stream past it, and the other way round: both change under the lock.
            self.execute(queued);
        } else {
            MutexGuard::unlocked(inner, || self.execute(queued));
        }
        self.complete(inner);
    }

    fn complete(&self, inner: &mut Inner) {
        inner.completed += 1;
        self.completed.store(inner.completed, Ordering::Release);
        if inner.n_waiting > 0 {
            self.done.notify_all();
        }
    }

    /// The stream's own thread.
    fn serve(self: Arc<Stream>) {
        let mut inner = self.inner.lock();
        loop {
            if !inner.draining && !inner.queue.is_empty() {
                inner.draining = true;
                while let Some(queued) = inner.queue.pop_front() {
                    self.run_next(&mut inner, queued);
                }
                inner.draining = false;
                drop(inner);
                let until = Instant::now() + SPIN;
                while self.is_idle() && Instant::now() < until {
                    std::hint::spin_loop();
                }
                inner = self.inner.lock();
                continue;
            }
            if inner.closed && inner.queue.is_empty() {
                // Whoever still has the stream and queues something starts another one.
                inner.has_thread = false;
                return;
            }
            inner.parked = true;
            self.work.wait(&mut inner);
            inner.parked = false;
        }
    }

    /// Runs an operation in the context that it was queued in.
    fn execute(&self, queued: Queued) {
        let before = device::enter(queued.context);
        self.execute_here(queued.op);
        device::enter(before);
    }

    fn execute_here(&self, op: Op) {
        let healthy = device::healthy();
        // CUDA: after a fault nothing more runs on the device; waiting ends and the program's own functions are called.
        match op {
            Op::Copy { .. } | Op::CopyBox { .. } | Op::Set { .. } if healthy.is_ok() => op.move_bytes(),
            // SAFETY: the range was checked at enqueue, and freeing waits for the streams.
            Op::Staged { to, bytes } if healthy.is_ok() => unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len());
            },
            Op::Launch(mut launched) => {
                if healthy.is_ok() {
                    let is_in_graph = self.is_in_graph.load(Ordering::Relaxed);
                    let environment = is_in_graph.then(|| self.environment.lock().clone()).flatten();
                    launched.execute(environment.as_ref());
                }
                launched.clear();
                let mut spare = self.spare.lock();
                if spare.len() < MAX_SPARE {
                    spare.push(launched);
                }
            }
            Op::Record(event, number) => event.complete(number),
            Op::AwaitEvent(event, number) => event.wait_for(number),
            Op::After(stream, number) => stream.wait_for(number),
            Op::Host(call, data) => {
                if healthy.is_ok() {
                    // SAFETY: the program passed its function and its argument.
                    unsafe { call(data as *mut c_void) }
                }
            }
            Op::Work(call, data) => {
                if healthy.is_ok() {
                    let _own = Rounding::ptx();
                    // SAFETY: as above, a library of ours.
                    unsafe { call(data as *mut c_void) }
                }
            }
            Op::Callback { call, stream, data } => {
                let status = healthy.err().unwrap_or(hipSuccess);
                // SAFETY: as above.
                unsafe { call(stream as hipStream_t, status, data as *mut c_void) }
            }
            Op::Free(allocation) => crate::memory::release(&allocation),
            Op::BeginGraph(graph) => {
                *self.environment.lock() = Some(graph::begin(graph, device::context()));
                self.is_in_graph.store(true, Ordering::Relaxed);
            }
            Op::EndGraph => {
                self.is_in_graph.store(false, Ordering::Relaxed);
                let environment = self.environment.lock().take();
                if let Some(environment) = environment {
                    graph::end(&environment);
                }
            }
            Op::Upload(graph, program) => graph::keep(graph, program),
            // SAFETY: as above; `value_at` checked the alignment.
            Op::Write { to, value, bytes } if healthy.is_ok() => unsafe {
                use std::sync::atomic::{AtomicU32, AtomicU64};
                if bytes == 4 {
                    (*(to as *const AtomicU32)).store(value as u32, Ordering::SeqCst);
                } else {
                    (*(to as *const AtomicU64)).store(value, Ordering::SeqCst);
                }
            },
            Op::AwaitValue { from, value, mask, bytes, flags } => {
                await_value(from, value, mask, bytes, flags)
            }
            Op::Copy { .. } | Op::Staged { .. } | Op::CopyBox { .. } | Op::Set { .. } | Op::Write { .. } => {}
        }
    }

    /// A launch record, used before if there is one.
    pub fn record(&self) -> Box<Launched> {
        self.spare.lock().pop().unwrap_or_default()
    }
}

/// Waits for a value in memory; the host or another stream writes it.
fn await_value(from: usize, value: u64, mask: u64, bytes: usize, flags: u32) {
    let mut tries = 0u32;
    while device::healthy().is_ok() {
        // SAFETY: checked at enqueue.
        let seen = unsafe {
            use std::sync::atomic::{AtomicU32, AtomicU64};
            if bytes == 4 {
                u64::from((*(from as *const AtomicU32)).load(Ordering::SeqCst))
            } else {
                (*(from as *const AtomicU64)).load(Ordering::SeqCst)
            }
        } & mask;
        let width = 8 * bytes as u32;
        let arrived = match flags & 3 {
            // Greater or equal, cyclically.
            0 => seen.wrapping_sub(value) >> (width - 1) & 1 == 0,
            1 => seen == value,
            2 => seen & value != 0,
            _ => !(seen | value) & mask & (u64::MAX >> (64 - width)) != 0,
        };
        if arrived {
            return;
        }
        tries = tries.saturating_add(1);
        if tries < 100 { std::thread::yield_now() } else { std::thread::sleep(Duration::from_micros(50)) }
    }
}

/// Waits for all streams; memory that they use may then go.
pub fn quiesce() {
    synchronize_all();
}
