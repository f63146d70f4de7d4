//! Seeing every object the loader maps, before its constructors run.
//! The loader calls the address in `_r_debug.r_brk` (a function that does nothing, for debuggers) after each change of its list.
//! A jump written there brings us the call. The rule: inside it the loader's lock is held, so nothing here opens a library,
//! allocates, logs or waits.

use crate::compilers;
use crate::memory::Tables;
use crate::patch::{self, Island, Unprotected};
use crate::record::{self, Outcome, Record};
use crate::takeover::{self, Loaded, MayHold};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// `struct link_map`, the public part.
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
    dynamic: usize,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// `struct r_debug_extended`; `next` exists from version 2 on.
#[repr(C)]
struct Rendezvous {
    version: c_int,
    map: *const LinkMap,
    notify: usize,
    state: c_int,
    loader: usize,
    next: *const Rendezvous,
}

const STATE_CONSISTENT: c_int = 0;

static RENDEZVOUS: AtomicPtr<Rendezvous> = AtomicPtr::new(ptr::null_mut());

/// Looks at all objects that are loaded, then keeps looking as more come. Called once, from our constructor. `program_runs`: the
/// program's code and that of its libraries may be running already, in any thread.
pub fn start(startup: bool, program_runs: bool) {
    // SAFETY: dlsym with a literal name.
    let rendezvous = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_r_debug".as_ptr()) }.cast::<Rendezvous>();
    if rendezvous.is_null() {
        return;
    }
    RENDEZVOUS.store(rendezvous, Ordering::Release);
    look(startup, program_runs);
    // SAFETY: the loader's own structure, valid for the process's life.
    let notify = unsafe { (*rendezvous).notify };
    if hook(notify).is_none() {
        let mut trouble = Record::new(c"ld.so");
        trouble.outcome = Outcome::UnknownLoader;
        record::add(trouble);
    }
}

/// Writes the jump over the notification function, if it is what we know: nothing but a return and room behind it.
fn hook(notify: usize) -> Option<()> {
    const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
    const RET: u8 = 0xc3;
    if notify == 0 || notify % 4096 > 4096 - 16 {
        return None;
    }
    // SAFETY: the loader calls this address, so code is mapped here; 16 bytes stay inside its page.
    let code = unsafe { core::slice::from_raw_parts(notify as *const u8, 16) };
    let start = if code.starts_with(&ENDBR64) { ENDBR64.len() } else { 0 };
    let [RET, rest @ ..] = code.get(start..)? else { return None };
    if patch::padding_bytes(rest) < patch::JUMP_BYTES - 1 {
        return None;
    }
    let at = notify + start;
    let island = Island::near(at, at + patch::JUMP_BYTES, patch::STUB_BYTES, |bytes| {
        if let Some(stub) = bytes.first_chunk_mut::<{ patch::STUB_BYTES }>() {
            *stub = patch::absolute_stub(on_change as *const () as usize);
        }
    })?;
    // Other threads may run the loader's code right now, so its page stays executable.
    let during = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: a page of the loader's text, which glibc maps readable and executable.
    let _writable =
        unsafe { Unprotected::new(at, at + patch::JUMP_BYTES, during, libc::PROT_READ | libc::PROT_EXEC) }?;
    // SAFETY: over a return and the nops behind it; whoever runs it meanwhile returns or arrives at `on_change`.
    unsafe { patch::write_jump(at, island.at) };
    Some(())
}

/// What the loader calls instead of its empty function.
extern "C" fn on_change() {
    // SAFETY: errno's address is the thread's own and always valid.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    look(false, MISSED.load(Ordering::Relaxed));
    // SAFETY: as above.
    unsafe { *errno = saved };
}

/// A change came while another was looked at, so that objects are seen later than they were opened.
static MISSED: AtomicBool = AtomicBool::new(false);

/// One pass over the loader's lists: objects not seen before are considered.
fn look(startup: bool, is_in_use: bool) {
    static BUSY: AtomicBool = AtomicBool::new(false);
    if BUSY.swap(true, Ordering::Acquire) {
        MISSED.store(true, Ordering::Relaxed);
        return;
    }
    // SAFETY: BUSY makes us the only user until it is cleared.
    let seen = unsafe { &mut *SEEN.0.get() };
    let mut pass = seen.pass();
    let mut is_program = true;
    let mut consistent = true;
    let mut rendezvous = RENDEZVOUS.load(Ordering::Acquire).cast_const();
    // SAFETY: the loader's structures; it does not change them while it is in its notification call, or while it runs our constructor.
    while let Some(one) = unsafe { rendezvous.as_ref() } {
        if one.state == STATE_CONSISTENT {
            let mut map = one.map;
            // SAFETY: as above.
            while let Some(object) = unsafe { map.as_ref() } {
                if !pass.knows(object.bias, object.dynamic) {
                    consider(object, is_program, startup, is_in_use);
                }
                is_program = false;
                map = object.next;
            }
        } else {
            consistent = false;
        }
        rendezvous = if one.version >= 2 { one.next } else { ptr::null() };
    }
    // While a list is being changed the rest of what we knew is kept.
    if consistent {
        pass.forget_the_rest();
    }
    BUSY.store(false, Ordering::Release);
}

fn consider(object: &LinkMap, is_program: bool, startup: bool, is_in_use: bool) {
    if object.name.is_null() {
        return;
    }
    // SAFETY: the loader's string, alive as long as the object is listed.
    let name = unsafe { CStr::from_ptr(object.name) };
    // SAFETY: the loader's list has it.
    let tables = unsafe { Tables::read(object.bias, object.dynamic) };
    if let Some(tables) = &tables {
        let file = if is_program { c"/proc/self/exe" } else { name };
        // SAFETY: as above.
        unsafe { compilers::consider_exports(tables, file, object.bias, is_in_use) };
    }
    // What cannot be judged may hold anything. A program that is running already keeps its runtime.
    // SAFETY: as above.
    let may_hold = unsafe {
        MayHold {
            runtime: (startup || !is_program) && tables.as_ref().is_none_or(|it| it.may_hold_runtime()),
            compiler: tables.as_ref().is_none_or(|it| it.may_hold_compiler()),
        }
    };
    if !may_hold.runtime && !may_hold.compiler {
        return;
    }
    let mut loaded = Loaded {
        file: name,
        bias: object.bias,
        dynamic: object.dynamic,
        runs: startup && is_program,
        is_in_use,
        may_hold,
    };
    let mut found = None;
    if !is_program {
        if !name.is_empty() {
            found = takeover::consider(loaded);
        }
    } else {
        loaded.file = c"/proc/self/exe";
        found = takeover::consider(loaded);
        // Of a program with more rights than its user has, that user chose the path, and could put another file there by now.
        if found.is_none() && startup && !secure::is_secure_execution() {
            // `ld.so ./program` runs the program without being replaced by it.
            // SAFETY: getauxval has no preconditions; AT_EXECFN is a string that lives as long as the process.
            let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
            if !path.is_null() {
                // SAFETY: as above.
                loaded.file = unsafe { CStr::from_ptr(path) };
                found = takeover::consider(loaded);
            }
        }
    }
    if let Some(record) = found {
        record::add(record);
    }
}

/// The objects of the last pass, in the loader's order, in memory of our own.
struct Seen {
    entries: *mut [usize; 2],
    n: usize,
    capacity: usize,
}

struct Shared(UnsafeCell<Seen>);
// SAFETY: `look` lets one thread in at a time.
unsafe impl Sync for Shared {}
static SEEN: Shared = Shared(UnsafeCell::new(Seen { entries: ptr::null_mut(), n: 0, capacity: 0 }));

/// Compares the loader's list with what we knew. Both are in the same order except for what went and what came,
/// so one walk over both is enough.
struct Pass<'a> {
    seen: &'a mut Seen,
    /// Entries before this are of the current pass.
    n_kept: usize,
    /// The next entry of the last pass.
    next: usize,
    n_last: usize,
}

impl Seen {
    fn pass(&mut self) -> Pass<'_> {
        let n_last = self.n;
        Pass { seen: self, n_kept: 0, next: 0, n_last }
    }

    fn slice(&mut self) -> &mut [[usize; 2]] {
        if self.entries.is_null() {
            return &mut [];
        }
        // SAFETY: `grow` mapped `capacity` entries, all zero or written.
        unsafe { core::slice::from_raw_parts_mut(self.entries, self.capacity) }
    }

    fn grow(&mut self) -> Option<()> {
        let capacity = (self.capacity * 2).max(512);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                capacity * 16,
                protection,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return None;
        }
        let entries = memory.cast::<[usize; 2]>();
        // SAFETY: both are mappings of at least `self.capacity` entries, and different.
        unsafe { ptr::copy_nonoverlapping(self.entries.cast_const(), entries, self.capacity) };
        if !self.entries.is_null() {
            // SAFETY: our own old mapping.
            unsafe { libc::munmap(self.entries.cast::<c_void>(), self.capacity * 16) };
        }
        self.entries = entries;
        self.capacity = capacity;
        Some(())
    }
}

impl Pass<'_> {
    /// Whether the object was there in the last pass; from now on it is known.
    fn knows(&mut self, bias: usize, dynamic: usize) -> bool {
        let key = [bias, dynamic];
        let (next, n_last) = (self.next, self.n_last);
        let ahead =
            self.seen.slice().get(next..n_last).and_then(|rest| rest.iter().position(|&entry| entry == key));
        let known = ahead.is_some();
        if let Some(ahead) = ahead {
            self.next += ahead + 1;
        } else if self.n_kept == self.next {
            // No free place before the entries still to be compared: move them up by one.
            if self.n_last == self.seen.capacity && self.seen.grow().is_none() {
                return known;
            }
            let (next, n_last) = (self.next, self.n_last);
            self.seen.slice().copy_within(next..n_last, next + 1);
            self.next += 1;
            self.n_last += 1;
        }
        let n_kept = self.n_kept;
        if let Some(entry) = self.seen.slice().get_mut(n_kept) {
            *entry = key;
            self.n_kept += 1;
        }
        self.seen.n = self.n_kept.max(self.n_last);
        known
    }

    /// What was not met again is gone.
    fn forget_the_rest(self) {
        self.seen.n = self.n_kept;
    }
}
