//! Threads of ours inside somebody else's process: large stacks, no signals of the program's, and what a fork means.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::thread::JoinHandle;

use parking_lot::Mutex;

/// Stack of our threads: kernels with calls, and LLVM itself, use more than Rust's default. Only touched pages count.
pub const STACK_BYTES: usize = 64 << 20;

/// Below this a thread of the program's does not run kernels; the stream's own thread does.
pub const KERNEL_BYTES: usize = 1 << 20;

/// The same for what libraries of ours compute on the CPU, which divides and is then done again in halves.
pub const WORK_BYTES: usize = 4 << 20;

static STARTED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);

/// Starts a thread for the rest of the process's life.
pub fn spawn(name: String, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    begin();
    std::thread::Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        leave_signals_to_the_program();
        work();
    })
}

/// The system's number of the calling thread. For signal handlers too.
pub fn number() -> libc::pid_t {
    // SAFETY: it has no parameters and cannot fail.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as libc::pid_t
}

/// This thread, and those that it starts, run by so much less than others.
pub fn yield_to_others(nice: libc::c_int) {
    // SAFETY: asks about this thread alone. A refusal changes nothing but who waits.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, number() as libc::id_t, nice) };
}

/// Threads that work on one thing, whose priority may fall while they do.
#[derive(Debug, Default)]
pub struct Crew(Mutex<Vec<libc::id_t>>);

thread_local! {
    static CREW: RefCell<Option<Arc<Crew>>> = const { RefCell::new(None) };
}

impl Crew {
    /// This thread belongs to it until what is returned is dropped.
    pub fn join(self: &Arc<Crew>) -> Member {
        let number = number() as libc::id_t;
        self.0.lock().push(number);
        CREW.replace(Some(self.clone()));
        Member { crew: self.clone(), number }
    }

    /// Of this thread.
    pub fn own() -> Option<Arc<Crew>> {
        CREW.with_borrow(Clone::clone)
    }

    /// All of them run by so much less than others from now on, if they do not already; nobody may raise that again.
    pub fn yield_to_others(&self, nice: libc::c_int) {
        for &number in &*self.0.lock() {
            // SAFETY: threads of this process, which are alive while they are listed. A refusal changes nothing but who waits.
            unsafe {
                if libc::getpriority(libc::PRIO_PROCESS, number) < nice {
                    libc::setpriority(libc::PRIO_PROCESS, number, nice);
                }
            }
        }
    }
}

/// A thread of a crew, which belongs to it until this is dropped.
pub struct Member {
    crew: Arc<Crew>,
    number: libc::id_t,
}

impl Drop for Member {
    fn drop(&mut self) {
        CREW.replace(None);
        self.crew.0.lock().retain(|&number| number != self.number);
    }
}

/// By how much less than others this thread runs.
pub fn nice() -> i32 {
    // SAFETY: asks about this thread alone.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// From now on a forked child lacks threads that it would need.
pub fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler only stores to a static.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    STARTED.store(true, Ordering::Relaxed);
}

extern "C" fn in_child() {
    FORKED.store(STARTED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// This process is a fork of one that had used the device: as in CUDA, the device is not there.
pub fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// The program's signal handlers run on the program's threads. Faults of the thread itself still arrive.
pub fn leave_signals_to_the_program() {
    let mut signals = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is filled before it is changed and used.
    unsafe {
        libc::sigfillset(signals.as_mut_ptr());
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT] {
            libc::sigdelset(signals.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, signals.as_ptr(), std::ptr::null_mut());
    }
}

/// Whether so many bytes are left of this thread's stack; where that ends is asked once per thread.
pub fn has_room(bytes: usize) -> bool {
    thread_local! {
        static END: Cell<Option<usize>> = const { Cell::new(None) };
    }
    let marker = 0u8;
    let here = std::hint::black_box(&raw const marker).addr();
    END.try_with(|end| {
        let end = end.get().unwrap_or_else(|| {
            let found = stack_end().unwrap_or(usize::MAX);
            end.set(Some(found));
            found
        });
        here.saturating_sub(end) >= bytes
    })
    .unwrap_or(false)
}

/// The lowest address of this thread's stack.
fn stack_end() -> Option<usize> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: the attributes are filled by the first call, read by the second and destroyed by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let (mut base, mut bytes) = (std::ptr::null_mut(), 0);
        let got = libc::pthread_attr_getstack(attributes.as_ptr(), &mut base, &mut bytes);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (got == 0).then_some(base.addr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crew_yields_together_while_it_works() {
        let crew = Arc::<Crew>::default();
        let (tell, told) = std::sync::mpsc::channel();
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let theirs = crew.clone();
        let worker = std::thread::spawn(move || {
            let member = theirs.join();
            assert!(Crew::own().is_some_and(|own| Arc::ptr_eq(&own, &theirs)));
            tell.send(()).unwrap();
            goes_on.recv().unwrap();
            let within = nice();
            drop(member);
            assert!(Crew::own().is_none());
            tell.send(()).unwrap();
            goes_on.recv().unwrap();
            [within, nice()]
        });
        let own = nice();
        told.recv().unwrap();
        crew.yield_to_others(own + 2);
        crew.yield_to_others(own + 1);
        go_on.send(()).unwrap();
        told.recv().unwrap();
        crew.yield_to_others(own + 3);
        go_on.send(()).unwrap();
        assert_eq!(worker.join().unwrap(), [own + 2; 2], "within, and behind it");
        assert_eq!(nice(), own, "who is not of it");
    }

    #[test]
    fn a_small_stack_is_not_roomy_and_ours_is() {
        let small =
            std::thread::Builder::new().stack_size(128 << 10).spawn(|| has_room(KERNEL_BYTES)).unwrap();
        assert!(!small.join().unwrap());
        let (send, receive) = std::sync::mpsc::channel();
        let ours = spawn("test".to_owned(), move || send.send(has_room(KERNEL_BYTES)).unwrap()).unwrap();
        assert!(receive.recv().unwrap());
        ours.join().unwrap();
    }
}
