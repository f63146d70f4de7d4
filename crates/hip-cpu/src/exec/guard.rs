//! A kernel that touches memory it must not ends its grid with an error, as on a GPU, and not the process.
//!
//! Kernel code is called through [`Guard::call`], which notes where the stack was. When the thread faults in there, our
//! signal handler lets it go on behind the call, with the fault as status. Every other fault goes to whoever handled
//! it before us. Kernel code owns nothing, so nothing is lost; services that do own something hold a [`Pause`].

use std::arch::naked_asm;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::{Once, OnceLock};

/// Statuses that no kernel returns.
pub const ILLEGAL_ADDRESS: i32 = -1000;
pub const ARITHMETIC: i32 = -1001;

thread_local! {
    /// Stack pointer to go back to; 0 outside kernel code.
    static RETURN: Cell<usize> = const { Cell::new(0) };
    static ADDRESS: Cell<usize> = const { Cell::new(0) };
}

/// This thread's leave to run kernel code.
pub struct Guard {
    cell: *const Cell<usize>,
    // Belongs to the thread that made it.
    _not_send: PhantomData<*const ()>,
}

impl Guard {
    #[expect(clippy::new_without_default, reason = "to enter a guarded section is said aloud")]
    pub fn new() -> Guard {
        install();
        Guard { cell: RETURN.with(std::ptr::from_ref), _not_send: PhantomData }
    }

    /// Calls kernel code with up to four arguments.
    ///
    /// # Safety
    /// `function` takes these arguments in the C convention, answers a status, and owns nothing that a jump out of it
    /// would lose.
    pub unsafe fn call(&self, function: *const c_void, arguments: [u64; 4]) -> i32 {
        let [a, b, c, d] = arguments;
        // SAFETY: the caller's promise; the cell is this thread's and outlives the call.
        unsafe { enter(function, a, b, c, d, self.cell.cast_mut().cast()) }
    }
}

/// Where the last fault of this thread was.
pub fn address() -> usize {
    ADDRESS.with(Cell::get)
}

/// While it lives, a fault is the process's own.
pub struct Pause(usize);

impl Pause {
    #[expect(clippy::new_without_default, reason = "to leave a guarded section is said aloud")]
    pub fn new() -> Pause {
        Pause(RETURN.with(|cell| cell.replace(0)))
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        RETURN.with(|cell| cell.set(self.0));
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
static BEFORE: OnceLock<[libc::sigaction; 3]> = OnceLock::new();

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `sigaction` is plain data; the handler keeps to what a signal handler may do.
        unsafe {
            let mut before = [MaybeUninit::<libc::sigaction>::zeroed().assume_init(); 3];
            for (signal, before) in SIGNALS.into_iter().zip(&mut before) {
                libc::sigaction(signal, std::ptr::null(), before);
            }
            let _ = BEFORE.set(before);
            let mut own = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            own.sa_sigaction = handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            for signal in SIGNALS {
                libc::sigaction(signal, &raw const own, std::ptr::null_mut());
            }
        }
    });
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let noted = RETURN.with(|cell| cell.replace(0));
    // SAFETY: the kernel passes valid pointers; the noted stack frame is `enter`'s, still there below the fault.
    unsafe {
        // Sent by a process, not by an instruction: not the kernel's doing.
        let is_fault = (*info).si_code > 0;
        if noted != 0 && is_fault {
            ADDRESS.with(|cell| cell.set((*info).si_addr() as usize));
            let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
            registers[libc::REG_RSP as usize] = noted as i64;
            registers[libc::REG_RIP as usize] = leave as unsafe extern "C" fn() as usize as i64;
            let status = if signal == libc::SIGFPE { ARITHMETIC } else { ILLEGAL_ADDRESS };
            registers[libc::REG_RAX as usize] = i64::from(status);
            return;
        }
        RETURN.with(|cell| cell.set(noted));
        pass_on(signal, info, context);
    }
}

/// # Safety
/// Called from the handler with what it got.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let at = SIGNALS.iter().position(|&s| s == signal);
    let Some(before) = at.and_then(|at| Some(BEFORE.get()?[at])) else { return };
    // SAFETY: the handler that was there before us, called as it was registered.
    unsafe {
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The instruction faults again, and then the system does what it did without us.
                libc::sigaction(signal, &raw const before, std::ptr::null_mut());
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
}
