//! A kernel that touches memory it must not ends its grid with an error, as on a GPU, and not the process.
//!
//! Kernel code is called through [`Guard::call`], which notes where the stack was. When the thread faults in there, our
//! signal handler lets it go on behind the call, with the fault as status. Every other fault goes to whoever handled
//! it before us. Kernel code owns nothing, so nothing is lost; services that do own something hold a [`Pause`].
//!
//! Every thread that runs kernels has a signal stack, so a kernel that runs over its thread's stack ends in the same way.
//!
//! The handler runs for faults of any thread, also inside `malloc`, so it uses no thread-locals of ours: those of a library
//! that was opened at run time are allocated at a thread's first use of them. What it has to know is in a [`Slot`].

use std::arch::naked_asm;
use std::cell::{Cell, OnceCell};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};

use super::fiber;
use crate::thread;

/// Statuses that no kernel returns.
pub const ILLEGAL_ADDRESS: i32 = -1000;
pub const ARITHMETIC: i32 = -1001;
pub const STACK_OVERFLOW: i32 = -1002;

/// What the handler knows of a thread that runs kernels.
struct Slot {
    /// The system's number of the thread; 0 while the slot is nobody's.
    thread: AtomicI32,
    /// Stack pointer to go back to; 0 outside kernel code.
    back: AtomicUsize,
    /// Where the last fault was.
    address: AtomicUsize,
    /// Our handler is passing a fault on.
    is_passing: AtomicBool,
}

/// Slots are found by looking at all of them, which only faults do.
struct Slots {
    slots: [Slot; 64],
    next: AtomicPtr<Slots>,
}

static SLOTS: Slots = Slots::new();

impl Slots {
    const fn new() -> Slots {
        Slots {
            slots: [const {
                Slot {
                    thread: AtomicI32::new(0),
                    back: AtomicUsize::new(0),
                    address: AtomicUsize::new(0),
                    is_passing: AtomicBool::new(false),
                }
            }; 64],
            next: AtomicPtr::new(null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Slots> {
        // SAFETY: null, or leaked by `take`.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn all() -> impl Iterator<Item = &'static Slot> {
        std::iter::successors(Some(&SLOTS), |slots| slots.next()).flat_map(|slots| &slots.slots)
    }

    /// A thread's slot. For signal handlers.
    fn of(thread: i32) -> Option<&'static Slot> {
        Slots::all().find(|slot| slot.thread.load(Ordering::Relaxed) == thread)
    }

    /// A slot that is nobody's becomes the thread's. For signal handlers.
    fn free(thread: i32) -> Option<&'static Slot> {
        let is_taken = |slot: &&Slot| {
            slot.thread.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        Slots::all().find(is_taken)
    }

    /// As [`Self::free`], where memory may be allocated. There are as many slots as there were threads at one time.
    fn take(thread: i32) -> &'static Slot {
        // A handler that jumped out of ours left it so.
        if let Some(slot) = Slots::of(thread) {
            slot.is_passing.store(false, Ordering::Relaxed);
            return slot;
        }
        loop {
            if let Some(slot) = Slots::free(thread) {
                return slot;
            }
            let mut last = &SLOTS;
            while let Some(next) = last.next() {
                last = next;
            }
            let more = Box::into_raw(Box::new(Slots::new()));
            if last.next.compare_exchange(null_mut(), more, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                // SAFETY: nobody has seen it; another thread's came first.
                drop(unsafe { Box::from_raw(more) });
            }
        }
    }
}

impl Slot {
    fn give_back(&self) {
        self.back.store(0, Ordering::Relaxed);
        self.is_passing.store(false, Ordering::Relaxed);
        self.thread.store(0, Ordering::Release);
    }
}

/// Gives a thread's slot back when the thread ends.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(slot) = SLOT.replace(None) {
            slot.give_back();
        }
    }
}

thread_local! {
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    static ENDS: Ends = const { Ends };
    static SIGNAL_STACK: OnceCell<SignalStack> = const { OnceCell::new() };
}

/// The calling thread's slot.
fn slot() -> &'static Slot {
    SLOT.get().unwrap_or_else(|| {
        let slot = Slots::take(thread::number());
        SLOT.set(Some(slot));
        // A thread that is ending already keeps its slot.
        let _ = ENDS.try_with(|_| ());
        slot
    })
}

/// This thread's leave to run kernel code.
pub struct Guard {
    slot: &'static Slot,
    // Belongs to the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Guard {
    #[expect(clippy::new_without_default, reason = "to enter a guarded section is said aloud")]
    pub fn new() -> Guard {
        install();
        let _ = SIGNAL_STACK.try_with(|stack| {
            stack.get_or_init(SignalStack::new);
        });
        Guard { slot: slot(), _not_send: PhantomData }
    }

    /// Calls kernel code with up to four arguments.
    ///
    /// # Safety
    /// `function` takes these arguments in the C convention, answers a status, and owns nothing that a jump out of it
    /// would lose.
    pub unsafe fn call(&self, function: *const c_void, arguments: [u64; 4]) -> i32 {
        let [a, b, c, d] = arguments;
        // SAFETY: the caller's promise; the slot is this thread's and outlives the call.
        unsafe { enter(function, a, b, c, d, self.slot.back.as_ptr()) }
    }
}

/// Where the last fault of this thread was.
pub fn address() -> usize {
    slot().address.load(Ordering::Relaxed)
}

/// From here to where kernel code was entered: the frames that are kernel code's, and the caller's. On a fiber that is
/// another stack, and the answer is as much as a fiber has.
pub fn stack() -> std::ops::Range<usize> {
    let marker = 0u8;
    let here = std::hint::black_box(&raw const marker) as usize;
    let entered = slot().back.load(Ordering::Relaxed);
    let is_near = entered.wrapping_sub(here) < 2 * fiber::STACK_BYTES;
    here..if is_near { entered } else { here + fiber::STACK_BYTES }
}

/// Leaves the kernel code that called us, as a fault does.
///
/// # Safety
/// Called below [`Guard::call`] with no [`Pause`] and nothing alive that must be dropped.
pub unsafe fn abandon(status: i32) -> ! {
    let noted = slot().back.load(Ordering::Relaxed);
    // SAFETY: the noted stack frame is `enter`'s.
    unsafe {
        std::arch::asm!(
            "mov rsp, {noted}",
            "jmp {leave}",
            noted = in(reg) noted,
            in("eax") status,
            leave = sym leave,
            options(noreturn)
        )
    }
}

/// For a fault that a service found before the memory did.
pub fn set_address(address: usize) {
    slot().address.store(address, Ordering::Relaxed);
}

/// While it lives, a fault is the process's own.
pub struct Pause(usize);

impl Pause {
    #[expect(clippy::new_without_default, reason = "to leave a guarded section is said aloud")]
    pub fn new() -> Pause {
        Pause(slot().back.swap(0, Ordering::Relaxed))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        slot().back.store(self.0, Ordering::Relaxed);
    }
}

/// Saves what a callee must keep, notes the stack pointer in `*cell`, calls, and goes on in [`leave`]'s way.
#[unsafe(naked)]
unsafe extern "C" fn enter(function: *const c_void, a: u64, b: u64, c: u64, d: u64, cell: *mut usize) -> i32 {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov [rsp], r9",
        "mov [r9], rsp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov rcx, r8",
        "call rax",
        "jmp {leave}",
        leave = sym leave,
    )
}

/// The end of [`enter`], with the stack pointer as noted and the status in `eax`.
#[unsafe(naked)]
unsafe extern "C" fn leave() {
    naked_asm!(
        "mov r9, [rsp]",
        "mov qword ptr [r9], 0",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

const SIGNALS: [c_int; 3] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE];
type Action = libc::sigaction;
/// Who handled each signal before us, as last seen; never freed, since the handler may be reading it.
static BEFORE: [AtomicPtr<Action>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];
/// Who did at the very first: called when a handler that took our place calls us back.
static FIRST: [AtomicPtr<Action>; 3] = [const { AtomicPtr::new(null_mut()) }; 3];

/// Makes our handler the one that is called. A program may register its own at any time; then ours goes in front of it.
fn install() {
    static ONE: parking_lot::Mutex<()> = parking_lot::Mutex::new(());
    // SAFETY: `sigaction` is plain data; the handler keeps to what a signal handler may do.
    unsafe {
        let mut now = MaybeUninit::<Action>::zeroed().assume_init();
        libc::sigaction(libc::SIGSEGV, std::ptr::null(), &mut now);
        if now.sa_sigaction == handler() {
            return;
        }
        let _one = ONE.lock();
        let mut own = MaybeUninit::<Action>::zeroed().assume_init();
        own.sa_sigaction = handler();
        own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for (at, signal) in SIGNALS.into_iter().enumerate() {
            let mut before = MaybeUninit::<Action>::zeroed().assume_init();
            libc::sigaction(signal, std::ptr::null(), &mut before);
            if before.sa_sigaction == handler() {
                continue;
            }
            // Kept before ours can be called.
            let before = Box::into_raw(Box::new(before));
            BEFORE[at].store(before, Ordering::Release);
            let _ = FIRST[at].compare_exchange(null_mut(), before, Ordering::AcqRel, Ordering::Acquire);
            libc::sigaction(signal, &raw const own, null_mut());
        }
    }
}

fn handler() -> usize {
    handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

/// The stack that a thread's signals run on. A thread that has one already keeps it.
struct SignalStack(Option<*mut c_void>);

const SIGNAL_STACK_BYTES: usize = 64 << 10;

impl SignalStack {
    fn new() -> SignalStack {
        // SAFETY: asks, maps fresh memory, and registers it; the memory stays until the drop.
        unsafe {
            let mut now = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
            if libc::sigaltstack(std::ptr::null(), &mut now) != 0 || now.ss_flags & libc::SS_DISABLE == 0 {
                return SignalStack(None);
            }
            let (access, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let base = libc::mmap(null_mut(), SIGNAL_STACK_BYTES, access, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return SignalStack(None);
            }
            let own = libc::stack_t { ss_sp: base, ss_flags: 0, ss_size: SIGNAL_STACK_BYTES };
            if libc::sigaltstack(&raw const own, null_mut()) != 0 {
                libc::munmap(base, SIGNAL_STACK_BYTES);
                return SignalStack(None);
            }
            SignalStack(Some(base))
        }
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let Some(base) = self.0 else { return };
        // SAFETY: as registered above. A stack that somebody else registered since then stays; ours is not in use, since
        // this is no signal handler.
        unsafe {
            let mut now = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
            if libc::sigaltstack(std::ptr::null(), &mut now) == 0 && now.ss_sp == base {
                let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
                libc::sigaltstack(&raw const none, null_mut());
            }
            libc::munmap(base, SIGNAL_STACK_BYTES);
        }
    }
}

/// How far from the stack pointer a fault counts as the stack's: frames are touched page by page as they grow.
const NEAR_BYTES: usize = 64 << 10;

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let thread = thread::number();
    let slot = Slots::of(thread);
    let noted = slot.map_or(0, |slot| slot.back.swap(0, Ordering::Relaxed));
    // SAFETY: the kernel passes valid pointers; the noted stack frame is `enter`'s, still there below the fault.
    unsafe {
        // Sent by a process, not by an instruction: not the kernel's doing.
        let is_fault = (*info).si_code > 0;
        if let Some(slot) = slot
            && noted != 0
            && is_fault
        {
            let address = (*info).si_addr() as usize;
            slot.address.store(address, Ordering::Relaxed);
            let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            let stack = registers[libc::REG_RSP as usize] as usize;
            let status = match signal {
                libc::SIGFPE => ARITHMETIC,
                _ if address.abs_diff(stack) < NEAR_BYTES => STACK_OVERFLOW,
                _ => ILLEGAL_ADDRESS,
            };
            registers[libc::REG_RSP as usize] = noted as i64;
            registers[libc::REG_RIP as usize] = leave as unsafe extern "C" fn() as usize as i64;
            registers[libc::REG_RAX as usize] = i64::from(status);
            return;
        }
        if let Some(slot) = slot {
            slot.back.store(noted, Ordering::Relaxed);
            pass_on(signal, info, context, Some(slot));
        } else {
            // Noted for as long as it takes, so that a handler that calls us back is known.
            let slot = Slots::free(thread);
            pass_on(signal, info, context, slot);
            slot.into_iter().for_each(Slot::give_back);
        }
    }
}

/// # Safety
/// Called from the handler with what it got.
unsafe fn pass_on(
    signal: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
    slot: Option<&'static Slot>,
) {
    let Some(at) = SIGNALS.iter().position(|&s| s == signal) else { return };
    let again = slot.is_some_and(|slot| slot.is_passing.swap(true, Ordering::Relaxed));
    let kept = if again { &FIRST[at] } else { &BEFORE[at] };
    // SAFETY: null or a box that is never freed.
    let Some(before) = (unsafe { kept.load(Ordering::Acquire).as_ref() }) else { return };
    // SAFETY: the handler that was there before us, called as it was registered.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The instruction faults again, and then the system does what it did without us.
                libc::sigaction(signal, std::ptr::from_ref(before), null_mut());
                if (*info).si_code <= 0 && before.sa_sigaction == libc::SIG_DFL {
                    libc::raise(signal);
                }
            }
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                std::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(
                    handler,
                )(signal, info, context);
            }
            handler => std::mem::transmute::<usize, extern "C" fn(c_int)>(handler)(signal),
        }
    }
    if let Some(slot) = slot {
        slot.is_passing.store(again, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn sum(a: u64, b: u64, c: u64, d: u64) -> i32 {
        (a + b + c + d) as i32
    }

    extern "C" fn read(at: *const i32) -> i32 {
        // SAFETY: none; this is what the guard is for.
        unsafe { at.read_volatile() }
    }

    #[test]
    fn a_call_passes_its_arguments_and_its_answer() {
        // SAFETY: `sum` takes four integers and owns nothing.
        assert_eq!(unsafe { Guard::new().call(sum as *const c_void, [1, 2, 3, 4]) }, 10);
    }

    #[test]
    fn a_fault_is_a_status_every_time_and_on_every_thread() {
        std::thread::scope(|scope| {
            for t in 1..5u64 {
                scope.spawn(move || {
                    let guard = Guard::new();
                    for _ in 0..100 {
                        // SAFETY: `read` owns nothing.
                        let status = unsafe { guard.call(read as *const c_void, [8 * t, 0, 0, 0]) };
                        assert_eq!((status, address()), (ILLEGAL_ADDRESS, 8 * t as usize));
                        let value = 7 * t as i32;
                        // SAFETY: as above.
                        let read = unsafe {
                            guard.call(read as *const c_void, [(&raw const value) as u64, 0, 0, 0])
                        };
                        assert_eq!(read, value);
                    }
                });
            }
        });
    }

    #[test]
    fn threads_have_slots_of_their_own_and_give_them_back() {
        let n_slots = 3 * SLOTS.slots.len();
        let ready = std::sync::Barrier::new(n_slots);
        let slots: std::collections::BTreeSet<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..n_slots)
                .map(|_| {
                    scope.spawn(|| {
                        let own = slot();
                        ready.wait();
                        assert_eq!(own.thread.load(Ordering::Relaxed), thread::number());
                        assert!(Slots::of(thread::number()).is_some_and(|found| std::ptr::eq(found, own)));
                        std::ptr::from_ref(own) as usize
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(slots.len(), n_slots);
        // Another thread has one of them.
        let later = std::thread::spawn(|| std::ptr::from_ref(slot()) as usize).join().unwrap();
        assert!(Slots::all().any(|slot| std::ptr::from_ref(slot) as usize == later));
        assert!(Slots::all().count() < 2 * n_slots + 64);
    }

    /// Recursion that the optimiser cannot turn into a loop.
    #[expect(unconditional_recursion, reason = "that is the test")]
    extern "C" fn deep(n: u64) -> i32 {
        let mut room = [n; 64];
        std::hint::black_box(&mut room);
        let below = deep(n + 1);
        room[below as usize & 63] as i32
    }

    #[test]
    fn a_stack_that_is_used_up_is_a_status_also_on_a_thread_of_the_programs() {
        // A C thread: unlike Rust's it has no signal stack of its own.
        extern "C" fn body(_: *mut c_void) -> *mut c_void {
            let guard = Guard::new();
            let mut good = 0usize;
            for _ in 0..3 {
                // SAFETY: `deep` owns nothing.
                let status = unsafe { guard.call(deep as *const c_void, [0; 4]) };
                good += usize::from(status == STACK_OVERFLOW);
                // SAFETY: as above.
                good += usize::from(unsafe { guard.call(sum as *const c_void, [1, 2, 3, 4]) } == 10);
            }
            good as *mut c_void
        }
        let (mut thread, mut good) = (0, null_mut());
        // SAFETY: the thread is joined; its function fits.
        unsafe {
            assert_eq!(libc::pthread_create(&mut thread, std::ptr::null(), body, null_mut()), 0);
            assert_eq!(libc::pthread_join(thread, &mut good), 0);
        }
        assert_eq!(good as usize, 6);
    }
}
