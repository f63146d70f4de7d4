//! What kernels call: the table of docs/architecture.md, "Services".

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::fiber::suspend;
use super::guard::Pause;
use super::{Launch, Thread, Worker, printf, sanitize, tensor, tensor_memory};
use crate::memory::watched;

#[repr(C)]
pub struct Services {
    vprintf: unsafe extern "C" fn(*const Launch, *const c_char, *const u8) -> i32,
    malloc: unsafe extern "C" fn(*const Launch, i64) -> *mut c_void,
    free: unsafe extern "C" fn(*const Launch, *mut c_void),
    assert: AssertFail,
    global_timer: unsafe extern "C" fn() -> i64,
    nanosleep: unsafe extern "C" fn(i32),
    suspend: unsafe extern "C" fn(i32),
    check: unsafe extern "C" fn(*const Launch, *const Worker, *const Thread, *const u8, u32, u32) -> i32,
    texture: unsafe extern "C" fn(*const Launch, u64, *mut u64) -> i32,
    tensor: tensor::Copier,
    texture_group: unsafe extern "C" fn(*const Launch, u64, *mut u8, u64, u32) -> i32,
    commit: unsafe extern "C" fn(*const Worker),
    device_runtime: unsafe extern "C" fn(*const Launch, *const u8, u64) -> u64,
    tensor_memory: tensor_memory::Service,
    cancel_cluster: unsafe extern "C" fn(*const Launch) -> u64,
}

/// Message, file, line, function, bytes of a character; then the block's three indices and the thread's number in it.
type AssertFail = unsafe extern "C" fn(
    *const Launch,
    *const c_char,
    *const c_char,
    i32,
    *const c_char,
    i64,
    u32,
    u32,
    u32,
    u32,
);

pub static SERVICES: Services = Services {
    vprintf,
    malloc,
    free,
    assert: assert_failed,
    global_timer,
    nanosleep,
    suspend,
    check: sanitize::check,
    texture: super::texture::access,
    tensor: tensor::copy,
    texture_group: super::texture::access_group,
    commit: super::gate::commit,
    device_runtime: super::children::ask,
    tensor_memory: tensor_memory::ask,
    cancel_cluster: super::cancel::cancel_cluster,
};

unsafe extern "C" fn vprintf(_: *const Launch, format: *const c_char, arguments: *const u8) -> i32 {
    if format.is_null() {
        return -1;
    }
    let _pause = Pause::new();
    // SAFETY: the kernel passes a NUL-terminated format and the packed arguments that it describes.
    unsafe { printf::print(CStr::from_ptr(format), arguments) }
}

/// `hipLimitMallocHeapSize`: what all device `malloc`s together may hold.
pub static HEAP_LIMIT: AtomicUsize = AtomicUsize::new(8 << 20);
/// What device `malloc` gave out and has not got back, by address; and the sum of it.
static HEAP: Mutex<(BTreeMap<usize, usize>, usize)> = Mutex::new((BTreeMap::new(), 0));
/// What it got back lately, start and size, kept from being given out again while the sanitizer is on.
static FREED: Mutex<VecDeque<(usize, usize)>> = Mutex::new(VecDeque::new());
const MAX_FREED: usize = 4096;

/// Ours, not the program's allocator: a device pointer given to the host's `free` is an error in CUDA too.
pub(super) unsafe extern "C" fn malloc(_: *const Launch, bytes: i64) -> *mut c_void {
    let _pause = Pause::new();
    let Ok(bytes) = usize::try_from(bytes) else { return std::ptr::null_mut() };
    let mut heap = HEAP.lock();
    let (blocks, used) = &mut *heap;
    // CUDA: NULL when the heap has no room for it.
    let fits = used.checked_add(bytes).is_some_and(|sum| sum <= HEAP_LIMIT.load(Ordering::Relaxed));
    if bytes == 0 || !fits {
        return std::ptr::null_mut();
    }
    // SAFETY: a fresh allocation; the result is checked. CUDA aligns to 16 bytes, as C does here. Zeros: what the host's heap
    // held is not for kernels.
    let at = unsafe { libc::calloc(bytes, 1) };
    if !at.is_null() {
        *used += bytes;
        blocks.insert(at as usize, bytes);
    }
    at
}

pub(super) unsafe extern "C" fn free(_: *const Launch, pointer: *mut c_void) {
    if pointer.is_null() {
        return;
    }
    let _pause = Pause::new();
    let mut heap = HEAP.lock();
    let (blocks, used) = &mut *heap;
    match blocks.remove(&(pointer as usize)) {
        Some(bytes) => {
            *used -= bytes;
            let mut gone = pointer;
            if watched::is_on() {
                let mut freed = FREED.lock();
                freed.push_back((pointer as usize, bytes));
                let oldest = if freed.len() > MAX_FREED { freed.pop_front() } else { None };
                gone = oldest.map_or(std::ptr::null_mut(), |(at, _)| at as *mut c_void);
            }
            // SAFETY: null, or what came from `malloc` above and was in one of the lists until now.
            unsafe { libc::free(gone) }
        }
        // Undefined in CUDA; here the heap stays whole.
        None => tracing::error!(
            target: "cudaway::cpu",
            "a kernel frees {pointer:p}, which device malloc did not give or has got back"
        ),
    }
}

/// The block that device `free` got back and that held the address: start and size.
pub fn freed_heap_block(address: usize) -> Option<(usize, usize)> {
    let freed = FREED.lock();
    freed.iter().rev().find(|(base, bytes)| address >= *base && address - base < *bytes).copied()
}

/// The block of device `malloc` that holds the address or is nearest: start and size.
pub fn nearest_heap_block(address: usize) -> Option<(usize, usize)> {
    let heap = HEAP.lock();
    let below = heap.0.range(..=address).next_back();
    let above = heap.0.range(address..).next();
    let distance = |&(&base, &bytes): &(&usize, &usize)| match address < base {
        true => base - address,
        false => address.saturating_sub(base + bytes),
    };
    below.into_iter().chain(above).min_by_key(distance).map(|(&base, &bytes)| (base, bytes))
}

/// A generic string whose characters have `size` bytes (wide in wide assertions).
unsafe fn text(pointer: *const c_char, size: i64) -> String {
    if pointer.is_null() {
        return "?".to_owned();
    }
    let size = usize::try_from(size).unwrap_or(1).max(1);
    let mut text = String::new();
    for i in 0..4096 {
        // SAFETY: the kernel passes a terminated string of such characters.
        let unit = unsafe { pointer.cast::<u8>().add(i * size).read() };
        if unit == 0 {
            break;
        }
        text.push(char::from(unit));
    }
    text
}

/// CUDA prints one line per failed thread, on stderr.
unsafe extern "C" fn assert_failed(
    launch: *const Launch,
    message: *const c_char,
    file: *const c_char,
    line: i32,
    function: *const c_char,
    size: i64,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    thread: u32,
) {
    let _pause = Pause::new();
    // SAFETY: three strings of the kernel's.
    let (message, file, function) = unsafe { (text(message, size), text(file, size), text(function, size)) };
    // SAFETY: the kernel passes the launch that it was called with.
    let [x, y, z] = super::thread_index(thread, unsafe { (*launch).block });
    printf::queue_assertion(&format!(
        "{file}:{line}: {function}: block: [{block_x},{block_y},{block_z}], thread: [{x},{y},{z}] Assertion `{message}` failed.\n"
    ));
}

/// Nanoseconds since the epoch, as on NVIDIA.
unsafe extern "C" fn global_timer() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}

unsafe extern "C" fn nanosleep(nanoseconds: i32) {
    // PTX: the sleep lies in [0, 2t]; below what the OS can do, spin.
    let wanted = Duration::from_nanos(u64::from(nanoseconds.cast_unsigned()).min(1_000_000));
    if wanted > Duration::from_micros(60) {
        std::thread::sleep(wanted);
        return;
    }
    let until = Instant::now() + wanted;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    static CORES: OnceLock<usize> = OnceLock::new();
    // With more waiting threads than cores, the one waited for must get its turn.
    if *CORES.get_or_init(super::pool::workers) < 4 {
        std::thread::yield_now();
    }
}
