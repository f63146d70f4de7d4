//! The helper's life: requests from standard input until there are none for a while, one at a time.

mod library;
mod tools;

use std::collections::HashMap;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::path::PathBuf;
use std::process::ExitCode;

use comgr::protocol::{Compiler, IDLE_S, Reply, Request};

/// What the two ways to compile need to know.
pub struct Job<'a> {
    pub target: &'a str,
    pub text: &'a str,
}

/// What both tell the compiler. The text carries the module flag that belongs to the version: LLVM 15 heeds one of them,
/// LLVM 17 either in part, LLVM 21 the other.
pub const OPTIONS: [&str; 2] = ["-O2", "-mcode-object-version=4"];

/// LLVM 14 reads `ptr` only if it is told to, and LLVM 17 and later know the option no more.
pub const OPAQUE_POINTERS: [&str; 2] = ["-mllvm", "-opaque-pointers"];

/// Whether an old LLVM stumbled over `ptr`.
pub fn wants_opaque_pointers(log: &str) -> bool {
    log.contains("expected type")
}

/// Takes leave of the program that this was started from: its signals, its open files, its terminal.
pub fn settle() {
    // SAFETY: plain system calls on this process, which has one thread.
    unsafe {
        // It was started with all signals blocked, and may have inherited that some are ignored.
        for signal in [libc::SIGCHLD, libc::SIGALRM, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = core::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, core::ptr::null_mut());
        // What the program left open would not be closed when it closes it.
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) != 0 {
            for file in 3..1024 {
                libc::close(file);
            }
        }
        libc::setsid();
        // The compiler ends by abort: no core file in the user's folder.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
}

pub fn run() -> ExitCode {
    // SAFETY: standard input is the socket, open until the process ends.
    let mut socket = ManuallyDrop::new(unsafe { File::from_raw_fd(0) });
    let mut libraries = Libraries::default();
    while is_asked() {
        // The client went away.
        let Ok(request) = Request::read(&mut *socket) else { break };
        // SAFETY: a plain call; without a handler the alarm ends the process.
        unsafe { libc::alarm(request.limit_s) };
        let reply = answer(&mut libraries, &request);
        // SAFETY: as above.
        unsafe { libc::alarm(0) };
        if reply.write(&mut *socket).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Waits for a request, but not for ever.
fn is_asked() -> bool {
    let mut socket = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure.
    unsafe { libc::poll(&mut socket, 1, IDLE_S as libc::c_int * 1000) == 1 }
}

/// Opened once; why not, where they could not be.
type Libraries = HashMap<PathBuf, Result<library::Library, String>>;

fn answer(libraries: &mut Libraries, Request { compiler, target, text, .. }: &Request) -> Reply {
    let job = Job { target, text };
    match compiler {
        Compiler::Library(path) => {
            let open = || library::Library::open(path);
            match libraries.entry(path.clone()).or_insert_with(open) {
                Ok(library) => library.compile(&job),
                Err(why) => Reply::Unavailable(why.clone()),
            }
        }
        Compiler::Tools { compiler, linker } => tools::compile(compiler, linker, &job),
    }
}
