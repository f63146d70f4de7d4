//! Threads that wait for others inside a function that calls itself: its frames lie on a stack, so each such thread
//! gets one of its own and keeps it until the outermost call is over. Everything else of setting `lane` is a state machine.
//! In setting `simd` a block that waits for other blocks is on a fiber ([`super::strand`]).

use std::cell::Cell;
use std::ffi::c_void;

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::guard::Guard;
use super::{Fault, Launch, StepFn, Thread, Worker};

/// What recursion may take (`STACK_LIMIT` of the emitter) and room for the frames around and above it.
pub const STACK_BYTES: usize = 640 << 10;

type Step = unsafe extern "C" fn(*const Launch, *const Worker, *mut Thread) -> i32;

thread_local! {
    /// The fiber that runs.
    static CURRENT: Cell<*const State> = const { Cell::new(std::ptr::null()) };
}

/// What a fiber's frames point to, so it stays where it is.
pub(super) struct State {
    pub worker: Worker,
    yielder: Cell<*const Yielder<(), i32>>,
}

pub(super) struct Fiber {
    coroutine: Coroutine<(), i32, i32, DefaultStack>,
    state: Box<State>,
}

/// Frames up to this are among what [`STACK_BYTES`] has room for.
const SMALL_FRAMES: usize = 64 << 10;

/// A stack for a fiber whose code takes so many bytes for its frames: `free`, if it is large enough. Only touched pages count.
pub(super) fn stack(frames: usize, free: Option<DefaultStack>) -> Result<DefaultStack, Fault> {
    let bytes = STACK_BYTES + if frames > SMALL_FRAMES { frames } else { 0 };
    match free.filter(|free| free.base().get() - free.limit().get() >= bytes) {
        Some(free) => Ok(free),
        None => DefaultStack::new(bytes).map_err(|_| Fault::Memory(bytes as u64)),
    }
}

/// The fibers of a block's threads, and stacks that are free.
#[derive(Default)]
pub struct Fibers {
    by_thread: Vec<Option<Fiber>>,
    stacks: Vec<DefaultStack>,
    /// What the code takes of a stack for its frames.
    frames: usize,
}

impl Fibers {
    /// Every thread of a new block is at its start, in code that takes so many bytes of stack for its frames.
    pub fn begin(&mut self, n_threads: usize, frames: usize) {
        self.frames = frames;
        self.stacks.extend(self.by_thread.drain(..).flatten().map(Fiber::into_stack));
        self.by_thread.resize_with(n_threads, || None);
    }

    /// Steps thread `t`; as [`StepFn::call`].
    ///
    /// # Safety
    /// As for [`StepFn::call`]; `launch` and `thread` stay where they are until the thread has ended.
    pub unsafe fn step(
        &mut self,
        t: usize,
        step: StepFn,
        guard: &Guard,
        launch: &Launch,
        worker: &Worker,
        thread: *mut Thread,
    ) -> Result<i32, Fault> {
        if self.by_thread[t].is_none() {
            let stack = stack(self.frames, self.stacks.pop())?;
            // SAFETY: the emitter's entry has this signature.
            let step = unsafe { std::mem::transmute::<*const c_void, Step>(step.0) };
            let launch: *const Launch = launch;
            // SAFETY: the promise of this function.
            let body = move |worker: &Worker| unsafe { step(launch, worker, thread) };
            self.by_thread[t] = Some(Fiber::new(stack, *worker, body));
        }
        let Some(fiber) = &mut self.by_thread[t] else { unreachable!("made above") };
        let status = fiber.resume(guard);
        if fiber.is_done()
            && let Some(fiber) = self.by_thread[t].take()
        {
            self.stacks.push(fiber.into_stack());
        }
        Ok(status)
    }
}

impl Fiber {
    /// `body` runs kernel code for the worker it gets.
    pub fn new(stack: DefaultStack, worker: Worker, body: impl FnOnce(&Worker) -> i32 + 'static) -> Fiber {
        let state = Box::new(State { worker, yielder: Cell::new(std::ptr::null()) });
        let at: *const State = &raw const *state;
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the state lives as long as the fiber.
            let state = unsafe { &*at };
            state.yielder.set(yielder);
            body(&state.worker)
        });
        Fiber { coroutine, state }
    }

    /// Goes on to where it suspends itself or ends; answers its status, or the fault's.
    pub fn resume(&mut self, guard: &Guard) -> i32 {
        let arguments = [std::ptr::from_mut(self) as u64, 0, 0, 0];
        // SAFETY: `resume` owns nothing; a fiber that a fault jumped out of is not resumed again.
        unsafe { guard.call(resume as *const c_void, arguments) }
    }

    pub fn is_done(&self) -> bool {
        self.coroutine.done()
    }

    /// Of a fiber that has ended, or that nobody resumes again.
    pub fn into_stack(mut self) -> DefaultStack {
        if !self.coroutine.done() {
            // SAFETY: kernel code owns nothing, so its frames may go as they are (a grid that failed leaves some).
            unsafe { self.coroutine.force_reset() };
        }
        self.coroutine.into_stack()
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        self.begin(0, 0);
    }
}

extern "C" fn resume(fiber: *mut Fiber) -> i32 {
    // SAFETY: `Fibers::step` passes its own.
    let fiber = unsafe { &mut *fiber };
    CURRENT.set(&raw const *fiber.state);
    match fiber.coroutine.resume(()) {
        CoroutineResult::Yield(status) | CoroutineResult::Return(status) => status,
    }
}

/// The service a function that calls itself waits by: the step answers `status`, and the next one goes on here.
pub unsafe extern "C" fn suspend(status: i32) {
    let state = CURRENT.get();
    // SAFETY: only code of a fiber calls this, and the fiber that runs was noted when it was resumed.
    unsafe { (*(*state).yielder.get()).suspend(status) }
}
