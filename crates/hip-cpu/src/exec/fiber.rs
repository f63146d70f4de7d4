//! Threads that wait for others inside a function that calls itself: its frames lie on a stack, so each such thread
//! gets one of its own and keeps it until the outermost call is over. Everything else of setting L is a state machine.

use std::cell::Cell;
use std::ffi::c_void;

use corosensei::stack::DefaultStack;
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
struct State {
    worker: Worker,
    yielder: Cell<*const Yielder<(), i32>>,
}

struct Fiber {
    coroutine: Coroutine<(), i32, i32, DefaultStack>,
    state: Box<State>,
}

/// The fibers of a block's threads, and stacks that are free.
#[derive(Default)]
pub struct Fibers {
    by_thread: Vec<Option<Fiber>>,
    stacks: Vec<DefaultStack>,
}

impl Fibers {
    /// Every thread of a new block is at its start.
    pub fn begin(&mut self, n_threads: usize) {
        for mut fiber in self.by_thread.drain(..).flatten() {
            // SAFETY: kernel code owns nothing, so its frames may go as they are (a grid that failed leaves some).
            unsafe { fiber.coroutine.force_reset() };
            self.stacks.push(fiber.coroutine.into_stack());
        }
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
            let stack = match self.stacks.pop() {
                Some(stack) => stack,
                None => DefaultStack::new(STACK_BYTES).map_err(|_| Fault::Memory(STACK_BYTES as u64))?,
            };
            // SAFETY: the emitter's entry has this signature.
            let step = unsafe { std::mem::transmute::<*const c_void, Step>(step.0) };
            self.by_thread[t] = Some(Fiber::new(stack, step, launch, *worker, thread));
        }
        let Some(fiber) = &mut self.by_thread[t] else { unreachable!("made above") };
        let arguments = [std::ptr::from_mut(fiber) as u64, 0, 0, 0];
        // SAFETY: `resume` owns nothing; a fiber that a fault jumped out of is dropped with its block.
        let status = unsafe { guard.call(resume as *const c_void, arguments) };
        if fiber.coroutine.done()
            && let Some(fiber) = self.by_thread[t].take()
        {
            self.stacks.push(fiber.coroutine.into_stack());
        }
        Ok(status)
    }
}

impl Fiber {
    fn new(stack: DefaultStack, step: Step, launch: &Launch, worker: Worker, thread: *mut Thread) -> Fiber {
        let state = Box::new(State { worker, yielder: Cell::new(std::ptr::null()) });
        let (launch, at): (*const Launch, *const State) = (launch, &raw const *state);
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the state lives as long as the fiber; the rest is the promise of `Fibers::step`.
            unsafe {
                (*at).yielder.set(yielder);
                step(launch, &raw const (*at).worker, thread)
            }
        });
        Fiber { coroutine, state }
    }
}

impl Drop for Fibers {
    fn drop(&mut self) {
        self.begin(0);
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
