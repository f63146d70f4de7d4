//! What kernels on AMD GPUs say to the host: faults, failed assertions, `printf` (`compiler::gcn::services`).
//!
//! A launch that may say something gets a buffer of its own, which is read when the launch is done: by the first call of the
//! program that comes after that, a synchronisation at the latest. So nobody writes into a buffer that is being read.
//! Rule: no lock is held while HIP is asked.

use core::ffi::{c_char, c_void};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicUsize, Ordering};

use compiler::gcn::services::{CAPACITY, Fault, Kind, RECORDS, TAKEN};
use hip_sys::{self as hip, hipEvent_t};
use parking_lot::Mutex;

use super::super::{Context, Shared, Stream, memory};
use super::host_memory::HostMemory;
use crate::process::driver;
use crate::{Error, Result};

/// `CU_LIMIT_PRINTF_FIFO_SIZE` as CUDA begins with. CUDA differs: there it is for all launches together.
const BYTES: usize = 1 << 20;
/// Launches of a context that may wait to be read; the next waits for the first of them.
const MOST_WAITING: usize = 8;

/// Host memory that a kernel writes to.
pub struct Buffer {
    memory: HostMemory,
    /// Recorded behind the launch.
    done: Shared<hipEvent_t>,
    context: &'static Context,
    context_id: u64,
}

/// Launches whose buffers were not read yet, in their order.
static WAITING: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
static N_WAITING: AtomicUsize = AtomicUsize::new(0);
/// Buffers for the next launches.
static FREE: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());

impl Buffer {
    /// One for a launch in `context`: empty.
    pub fn take(context: &'static Context) -> Result<Buffer> {
        let is_own = |buffer: &Buffer| buffer.context_id == context.id();
        let oldest = {
            let waiting = WAITING.lock();
            let mut own = waiting.iter().filter(|buffer| is_own(buffer));
            own.clone().nth(MOST_WAITING - 1).and_then(|_| own.next()).map(|buffer| buffer.done)
        };
        if let Some(done) = oldest {
            // SAFETY: events live until their context ends.
            unsafe { context.hip().hipEventSynchronize(done.0) }?;
            read_what_is_done();
        }
        let mut free = FREE.lock();
        if let Some(index) = free.iter().position(is_own) {
            return Ok(free.swap_remove(index));
        }
        drop(free);
        Buffer::new(context)
    }

    fn new(context: &'static Context) -> Result<Buffer> {
        let memory = HostMemory::new(context, BYTES)?;
        let mut done: hipEvent_t = core::ptr::null_mut();
        // SAFETY: a writable handle.
        let made = unsafe { context.hip().hipEventCreateWithFlags(&mut done, hip::hipEventDisableTiming) };
        if let Err(error) = made {
            memory.give_back(context);
            return Err(error.into());
        }
        let buffer = Buffer { memory, done: Shared(done), context, context_id: context.id() };
        buffer.set(CAPACITY, BYTES as u64 - RECORDS);
        Ok(buffer)
    }

    /// Where the kernel finds it.
    pub fn address(&self) -> u64 {
        self.memory.device
    }

    /// The launch that writes to it was queued.
    pub fn follow(self, stream: &Stream) -> Result {
        // SAFETY: both are alive.
        unsafe { stream.hip().hipEventRecord(self.done.0, stream.hip.0) }?;
        let mut waiting = WAITING.lock();
        waiting.push(self);
        N_WAITING.store(waiting.len(), Ordering::Release);
        Ok(())
    }

    /// The launch did not come about.
    pub fn put_back(self) {
        FREE.lock().push(self);
    }

    fn is_done(&self) -> bool {
        // SAFETY: the event lives. A device that is gone writes nothing more.
        let answer = unsafe { self.context.hip().hipEventQuery(self.done.0) };
        !answer.is_err_and(|error| error.code() == hip::hipErrorNotReady)
    }

    fn at<const N: usize>(&self, offset: u64) -> [u8; N] {
        let offset = (offset as usize).min(BYTES - N);
        // SAFETY: inside the buffer, to which nobody writes any more.
        unsafe { self.memory.host.0.add(offset).cast::<[u8; N]>().read_volatile() }
    }

    fn word(&self, offset: u64) -> u32 {
        u32::from_le_bytes(self.at(offset))
    }

    fn wide(&self, offset: u64) -> u64 {
        u64::from_le_bytes(self.at(offset))
    }

    fn set(&self, offset: u64, value: u64) {
        // SAFETY: one of the header's words.
        unsafe { self.memory.host.0.add(offset as usize).cast::<u64>().write_volatile(value) };
    }

    /// Shows what the launch said, empties the buffer, and notes the launch's fault in its context.
    fn read(&self) {
        let end = (RECORDS + self.wide(TAKEN)).min(BYTES as u64);
        let mut texts = Texts { context: self.context, known: HashMap::new() };
        let (mut printed, mut assertions, mut at) = (Vec::new(), Vec::new(), RECORDS);
        while at + 8 <= end {
            let bytes = u64::from(self.word(at)) & !7;
            // Not finished, or damaged by a kernel that writes where it may not.
            if bytes < 16 || at + bytes > end {
                break;
            }
            let kind = self.word(at + 4);
            if kind == Kind::Printf as u32 {
                self.print(at, bytes, &mut texts, &mut printed);
            } else if kind == Kind::Assertion as u32 && bytes >= 64 {
                assertions.extend(self.assertion(at, &mut texts).into_bytes());
            }
            at += bytes;
        }
        show(&printed, &assertions);
        let fault = self.word(0);
        // SAFETY: the part of the buffer that was written to.
        unsafe { self.memory.host.0.add(RECORDS as usize).write_bytes(0, (end - RECORDS) as usize) };
        self.set(TAKEN, 0);
        self.set(0, 0);
        if fault != 0 {
            self.context.fail(error_of(fault));
        }
    }

    fn print(&self, at: u64, bytes: u64, texts: &mut Texts, out: &mut Vec<u8>) {
        let format = texts.at(self.wide(at + 8));
        let mut words: Vec<u64> = (16..bytes).step_by(8).map(|offset| self.wide(at + offset)).collect();
        // The kernel counted what the format asks for; a format that changed since finds zeros.
        let asked = format.to_bytes().iter().filter(|&&letter| matches!(letter, b'%' | b'*')).count();
        words.resize(words.len().max(asked) + 1, 0);
        let mut string = |address: usize| texts.pointer(address as u64);
        // SAFETY: 8 bytes for everything that the format asks for; `texts` keeps the strings.
        unsafe { printf::format(format.to_bytes(), words.as_ptr().cast(), &mut string, out) };
    }

    /// One line per failed thread, as CUDA's.
    fn assertion(&self, at: u64, texts: &mut Texts) -> String {
        let [message, file, function] =
            [8, 16, 24].map(|offset| texts.at(self.wide(at + offset)).to_string_lossy().into_owned());
        let [line, bx, by, bz, x, y, z] = [32, 36, 40, 44, 48, 52, 56].map(|offset| self.word(at + offset));
        format!(
            "{file}:{line}: {function}: block: [{bx},{by},{bz}], thread: [{x},{y},{z}] Assertion `{message}` failed.\n"
        )
    }

    fn destroy(self) {
        // SAFETY: it is this buffer's, and nobody uses it any more. There is nobody to tell of an error.
        let _ = unsafe { self.context.hip().hipEventDestroy(self.done.0) };
        self.memory.give_back(self.context);
    }
}

fn error_of(fault: u32) -> Error {
    match fault {
        it if it == Fault::Assertion as u32 => Error::Assert,
        it if it == Fault::Stack as u32 => Error::HardwareStackError,
        it if it == Fault::InvalidPc as u32 => Error::InvalidPc,
        _ => Error::LaunchFailed,
    }
}

/// Strings in the device's memory, each read once.
struct Texts {
    context: &'static Context,
    known: HashMap<u64, CString>,
}

impl Texts {
    /// Longest string that is believed.
    const MOST: usize = 1 << 16;

    fn at(&mut self, address: u64) -> CString {
        let context = self.context;
        self.known.entry(address).or_insert_with(|| Texts::read(context, address)).clone()
    }

    /// Good for as long as `self` is.
    fn pointer(&mut self, address: u64) -> *const c_char {
        let context = self.context;
        self.known.entry(address).or_insert_with(|| Texts::read(context, address)).as_ptr()
    }

    fn read(context: &Context, address: u64) -> CString {
        const PIECE: u64 = 256;
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < Texts::MOST {
            // Up to the next border: device memory is allocated in such pieces.
            let n = (PIECE - at % PIECE) as usize;
            let mut piece = [0u8; PIECE as usize];
            let to = piece.as_mut_ptr().cast();
            // SAFETY: room for `n` bytes; HIP refuses an address that is not the device's.
            let copied =
                unsafe { context.hip().hipMemcpy(to, memory::raw(at), n, hip::hipMemcpyDeviceToHost) };
            if copied.is_err() {
                return CString::from(c"?");
            }
            let end = piece[..n].iter().position(|&byte| byte == 0);
            text.extend(&piece[..end.unwrap_or(n)]);
            if end.is_some() {
                break;
            }
            at += n as u64;
        }
        CString::new(text).unwrap_or_default()
    }
}

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

/// Through C's streams, so that it keeps its order with what the program prints.
fn show(printed: &[u8], assertions: &[u8]) {
    let write = |bytes: &[u8], file: *mut libc::FILE| {
        if !bytes.is_empty() {
            // SAFETY: one of C's own streams, and a buffer of that length.
            unsafe { libc::fwrite(bytes.as_ptr().cast::<c_void>(), 1, bytes.len(), file) };
        }
    };
    // SAFETY: C's own variables.
    let (out, error) = unsafe { (stdout, stderr) };
    write(printed, out);
    write(assertions, error);
}

/// Reads the buffers of launches that are done. The answer is the current context's fault, if one of them had it.
#[inline]
pub fn settle() -> Result {
    if N_WAITING.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    settle_now()
}

#[cold]
fn settle_now() -> Result {
    if driver().is_err() {
        return Ok(());
    }
    read_what_is_done();
    Context::current_raw()?.map_or(Ok(()), |context| context.check_fault())
}

fn read_what_is_done() {
    let all = std::mem::take(&mut *WAITING.lock());
    let (done, not_yet): (Vec<_>, Vec<_>) = all.into_iter().partition(Buffer::is_done);
    {
        let mut waiting = WAITING.lock();
        // In front of those that came meanwhile.
        waiting.splice(0..0, not_yet);
        N_WAITING.store(waiting.len(), Ordering::Release);
    }
    for buffer in done {
        buffer.read();
        FREE.lock().push(buffer);
    }
}

/// Before a module or its context goes: what its kernels said is in its memory. The device is idle.
pub fn read_all() {
    if N_WAITING.load(Ordering::Acquire) != 0 {
        read_what_is_done();
    }
}

/// Whether a launch of the context was not read yet.
pub fn has_waiting(context_id: u64) -> bool {
    WAITING.lock().iter().any(|buffer| buffer.context_id == context_id)
}

/// A context ends, and its device is idle.
pub fn forget_context(context_id: u64) {
    read_all();
    let is_its = |buffer: &mut Buffer| buffer.context_id == context_id;
    let mut gone: Vec<Buffer> = FREE.lock().extract_if(.., is_its).collect();
    {
        let mut waiting = WAITING.lock();
        gone.extend(waiting.extract_if(.., is_its));
        N_WAITING.store(waiting.len(), Ordering::Release);
    }
    gone.into_iter().for_each(Buffer::destroy);
}
