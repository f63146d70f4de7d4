//! What the program that compiles notices of its helpers: nothing. One test, because it looks at its whole process.

mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use support::{FATAL, Rig, library, request, store};

static CHILD_SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    CHILD_SIGNALS.fetch_add(1, Ordering::Relaxed);
}

fn open_files() -> BTreeSet<i32> {
    let list = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    list.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // SAFETY: a plain call; the list's own descriptor is closed by now.
        .filter(|&file| unsafe { libc::fcntl(file, libc::F_GETFD) } >= 0)
        .collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_program_does_not_notice_its_helpers() {
    // It starts a process of its own, before they are counted.
    let rig = Rig::new();
    // SAFETY: handlers that only count, or the defaults.
    unsafe {
        libc::signal(libc::SIGCHLD, count as extern "C" fn(libc::c_int) as libc::sighandler_t);
        // Rust's test programs ignore it; a C program dies of it.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    let compiler = rig.compiler(library());
    let before = open_files();
    compiler.compile(&request("gfx90a", &store(1))).unwrap();

    // What was opened goes no further than this program.
    for file in open_files().difference(&before) {
        // SAFETY: a plain call.
        let flags = unsafe { libc::fcntl(*file, libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC, "descriptor {file}");
    }
    // The helper keeps nothing of the program's open, and is nobody's child here.
    let helpers = rig.processes();
    assert_eq!(helpers.len(), 1);
    let held = std::fs::read_dir(format!("/proc/{}/fd", helpers[0])).unwrap().flatten();
    let held: Vec<_> = held.map(|entry| std::fs::read_link(entry.path()).unwrap()).collect();
    assert!(
        held.iter().all(|to| !to.starts_with("/tmp") && !to.to_string_lossy().starts_with("pipe:")),
        "{held:?}"
    );
    // SAFETY: a plain call.
    let child = unsafe { libc::waitpid(-1, core::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(child, -1, "no child");
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ECHILD));

    // A helper that is killed while it waits: the next request starts another, and no signal ends us.
    // SAFETY: a process that this test started.
    unsafe { libc::kill(helpers[0], libc::SIGKILL) };
    wait_until("the helper is gone", || rig.processes().is_empty());
    compiler.compile(&request("gfx90a", &store(2))).unwrap();
    // One that ends in its work.
    compiler.compile(&request("gfx90a", FATAL)).unwrap_err();
    compiler.compile(&request("gfx90a", &store(3))).unwrap();

    // A forked process has helpers of its own, while the parent goes on with its.
    // SAFETY: the child compiles and leaves; no other thread of this program holds a lock.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let is_done = compiler.compile(&request("gfx90a", &store(4))).is_ok();
        // SAFETY: leaves without the test's own ending.
        unsafe { libc::_exit(if is_done { 17 } else { 1 }) };
    }
    compiler.compile(&request("gfx90a", &store(5))).unwrap();
    let mut status = 0;
    // SAFETY: `status` is writable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(libc::WEXITSTATUS(status), 17);
    // The test's own child, and nothing else.
    assert_eq!(CHILD_SIGNALS.load(Ordering::Relaxed), 1);
    // SAFETY: the handler asked for with a null pointer, which changes nothing.
    let mut now: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: `now` is writable.
    unsafe { libc::sigaction(libc::SIGPIPE, core::ptr::null(), &mut now) };
    assert_eq!(now.sa_sigaction, libc::SIG_DFL);
}
