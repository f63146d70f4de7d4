//! The traced program's process. Signals are for it: we outlive it, to tell of it.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

/// What ends a program that does not ask for it.
const SIGNALS: [c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];

static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// Waits for its end; until then, a signal that would end us is the program's.
pub fn wait(mut child: Child) -> io::Result<ExitStatus> {
    PROGRAM.store(child.id().cast_signed(), Ordering::Relaxed);
    // SAFETY: all zero bytes are a sigaction without flags and mask.
    let mut handing_on: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    handing_on.sa_sigaction = hand_on as *const () as libc::sighandler_t;
    handing_on.sa_flags = libc::SA_RESTART;
    let before = SIGNALS.map(|signal| answer(signal, &handing_on));
    let ended = child.wait();
    for (signal, before) in SIGNALS.iter().zip(&before) {
        answer(*signal, before);
    }
    ended
}

/// What a terminal sends (^C, ^\) the program has already: it goes to all of a group.
extern "C" fn hand_on(signal: c_int) {
    if !matches!(signal, libc::SIGINT | libc::SIGQUIT) {
        // SAFETY: allowed in a handler. The program is our child and not waited for, or has ended this moment.
        unsafe { libc::kill(PROGRAM.load(Ordering::Relaxed), signal) };
    }
}

/// From now on the signal does this; what it did before.
fn answer(signal: c_int, action: &libc::sigaction) -> libc::sigaction {
    let mut before = MaybeUninit::zeroed();
    // SAFETY: a signal that may be caught, and a handler that does what handlers may; all zero bytes are a sigaction.
    unsafe {
        libc::sigaction(signal, action, before.as_mut_ptr());
        before.assume_init()
    }
}
