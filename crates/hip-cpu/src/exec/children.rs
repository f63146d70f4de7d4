//! What a grid asks of the device runtime: grids, copies and fills that come after it, and questions.
//!
//! Nothing a grid has launched can be waited for inside of it (CUDA took `cudaDeviceSynchronize` out of kernels), so its children
//! begin when its last block has ended, one after the other in the order they were launched: that is an order of every stream and of
//! every event. A grid is done when its children are; then what it gave to its tail stream follows.
//! Source: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism".

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_void};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use compiler::device_runtime::{Call, WHO_BYTES, kernel_of_address};
use hip_sys::hipErrorIllegalAddress;
use parking_lot::Mutex;

use super::guard::Pause;
use super::{Launch, ParamLine, printf, services};
use crate::device::{self, MAX_BLOCK, MAX_GRID, SHARED_OPTIN};
use crate::error::Result;
use crate::graph::{Environment, Mode};
use crate::launch::{self, Shape};
use crate::memory;
use crate::module::Module;

/// CUDA's numbers.
type Code = u32;
type Answer<T = ()> = std::result::Result<T, Code>;
const SUCCESS: Code = 0;
const INVALID_VALUE: Code = 1;
const MEMORY_ALLOCATION: Code = 2;
const INVALID_CONFIGURATION: Code = 9;
const PENDING_COUNT_EXCEEDED: Code = 69;
const INVALID_DEVICE_FUNCTION: Code = 98;
const INVALID_DEVICE: Code = 101;
const INVALID_RESOURCE_HANDLE: Code = 400;
const NOT_SUPPORTED: Code = 801;

/// Grids inside of grids: each waits for the one in it, and `cudaLimitDevRuntimePendingLaunchCount` is that many, so an H200 goes as deep.
const MOST_DEPTH: u32 = 2048;
/// Bytes of a kernel's parameters.
const MOST_PARAMETERS: usize = 32764;
/// Bytes of what one grid has launched, its parameters most of all.
const MOST_WAITING: usize = 1 << 30;

/// A kernel's streams are `cudaStreamNonBlocking`, or have no flag, which the manual refuses and an H200 does not; its events are
/// `cudaEventDisableTiming`.
const STREAM_FLAGS: std::ops::RangeInclusive<u32> = 0..=1;
const DISABLE_TIMING: u32 = 2;
/// Handles that are no handles: the block's own stream by its three names, and two that end with the grid.
const OWN_STREAMS: std::ops::RangeInclusive<u64> = 0..=2;
const TAIL: u64 = 3;
const FIRE_AND_FORGET: u64 = 4;
const FIRST_HANDLE: u64 = 0x100;

/// What comes after the grid.
pub enum Work {
    Launch(Asked, Vec<ParamLine>),
    Copy { to: usize, to_pitch: usize, from: usize, from_pitch: usize, width: usize, height: usize },
    Fill { to: usize, pitch: usize, value: u8, width: usize, height: usize },
}

/// A launch but for its parameters: a kernel of the module, and how it is to run.
#[derive(Clone, Copy)]
pub struct Asked {
    pub kernel: usize,
    pub shape: Shape,
}

/// Parameters that the kernel writes, and what they are for where that was said.
struct Buffer {
    asked: Option<Asked>,
    params: Vec<ParamLine>,
}

#[derive(Default)]
struct State {
    buffers: HashMap<usize, Buffer>,
    children: Vec<Work>,
    tail: Vec<Work>,
    n_handles: u64,
    streams: HashSet<u64>,
    events: HashSet<u64>,
    bytes: usize,
    /// Of each thread, by the block's number and its own.
    errors: HashMap<(u64, u64), Code>,
}

/// What one grid asks for.
pub struct Children {
    pub module: Arc<Module>,
    pub depth: u32,
    /// Of the graph that the grid is part of.
    environment: Option<Arc<Environment>>,
    state: Mutex<State>,
}

/// Arguments, one after the other.
struct Arguments {
    at: *const u8,
    next: usize,
}

impl Arguments {
    /// The next eight bytes.
    fn long(&mut self) -> u64 {
        let at = self.next;
        self.next += 8;
        // SAFETY: the function of ours in PTX has written them there.
        unsafe { self.at.add(at).cast::<u64>().read_unaligned() }
    }

    fn size(&mut self) -> usize {
        self.long() as usize
    }

    fn word(&mut self) -> u32 {
        self.long() as u32
    }

    fn dim(&mut self) -> [u32; 3] {
        let (xy, z) = (self.long(), self.long());
        [xy as u32, (xy >> 32) as u32, z as u32]
    }
}

fn code_of(answer: Answer) -> Code {
    answer.err().unwrap_or(SUCCESS)
}

/// Writes where a kernel wants it; a bad place is the kernel's fault, as any store of its own.
fn give<T>(place: u64, value: T) -> Code {
    if place == 0 {
        return INVALID_VALUE;
    }
    // SAFETY: outside of any lock and of `Pause`: a fault here ends the grid as the kernel's own.
    unsafe { (place as *mut T).write_unaligned(value) };
    SUCCESS
}

/// The service: its table is in docs/architecture.md.
///
/// # Safety
/// The launch is one that runs, and the arguments are as [`Call`] has them.
pub unsafe extern "C" fn ask(launch: *const Launch, arguments: *const u8, number: u64) -> u64 {
    // SAFETY: the launch that runs; what it points to lives as long as its grid.
    let children = unsafe { (*launch).children.as_ref() };
    let (Some(children), Some(call)) = (children, Call::of(number)) else { return NOT_SUPPORTED.into() };
    let mut given = Arguments { at: arguments, next: 0 };
    let who = (given.long(), given.long());
    debug_assert_eq!(given.next, WHO_BYTES);
    children.answer(call, who, &mut given)
}

impl Children {
    pub fn new(module: Arc<Module>, depth: u32, environment: Option<Arc<Environment>>) -> Children {
        Children { module, depth, environment, state: Mutex::default() }
    }

    /// What was asked for: children, and what comes after them.
    pub fn into_work(self) -> [Vec<Work>; 2] {
        let state = self.state.into_inner();
        [state.children, state.tail]
    }

    fn answer(&self, call: Call, who: (u64, u64), given: &mut Arguments) -> u64 {
        let code = match call {
            Call::GetParameterBuffer => {
                let (_align, bytes) = (given.long(), given.size());
                return self.buffer(None, bytes, who);
            }
            Call::GetParameterBufferV2 => {
                let (function, grid, block, shared) = (given.long(), given.dim(), given.dim(), given.word());
                return match self.asked(function, grid, block, shared) {
                    Ok(asked) => {
                        let bytes = self.module.header(asked.kernel).params_bytes as usize;
                        self.buffer(Some(asked), bytes, who)
                    }
                    Err(code) => {
                        self.fail(who, code);
                        0
                    }
                };
            }
            Call::LaunchDevice => {
                let (function, buffer) = (given.long(), given.size());
                let (grid, block, shared, stream) = (given.dim(), given.dim(), given.word(), given.long());
                let asked = self.asked(function, grid, block, shared);
                code_of(asked.and_then(|asked| self.launch(buffer, Some(asked), stream)))
            }
            Call::LaunchDeviceV2 => {
                let (buffer, stream) = (given.size(), given.long());
                code_of(self.launch(buffer, None, stream))
            }
            Call::GetLastError => return self.last(who, true).into(),
            Call::PeekAtLastError => return self.last(who, false).into(),
            Call::GetErrorName => return name(given.word()).0.as_ptr() as u64,
            Call::GetErrorString => return name(given.word()).1.as_ptr() as u64,
            Call::GetDeviceCount => give(given.long(), 1i32),
            Call::GetDevice => give(given.long(), 0i32),
            Call::StreamCreateWithFlags | Call::EventCreateWithFlags => {
                let (place, flags) = (given.long(), given.word());
                let is_stream = call == Call::StreamCreateWithFlags;
                let fits = if is_stream { STREAM_FLAGS.contains(&flags) } else { flags == DISABLE_TIMING };
                if fits { give(place, self.handle(is_stream)) } else { INVALID_VALUE }
            }
            Call::StreamDestroy => self.forget(given.long(), true),
            Call::EventDestroy => self.forget(given.long(), false),
            // What was launched first runs first, in all streams.
            Call::StreamWaitEvent => {
                let (stream, event) = (given.long(), given.long());
                code_of(self.known(stream).and_then(|()| self.known_event(event)))
            }
            Call::EventRecord | Call::EventRecordWithFlags => {
                let (event, stream) = (given.long(), given.long());
                code_of(self.known(stream).and_then(|()| self.known_event(event)))
            }
            Call::DeviceGetAttribute => {
                let (place, number, device) = (given.long(), given.word(), given.word());
                match (device, attribute(number)) {
                    (0, Some(value)) => give(place, value),
                    (0, None) => refuse(call, &format!(" of attribute {number}")),
                    _ => INVALID_DEVICE,
                }
            }
            Call::DeviceGetLimit => {
                let (place, number) = (given.long(), given.word());
                match limit(number) {
                    Some(value) => give(place, value),
                    None => refuse(call, &format!(" of limit {number}")),
                }
            }
            Call::DeviceGetCacheConfig | Call::DeviceGetSharedMemConfig => give(given.long(), 0i32),
            Call::Malloc => {
                let (place, bytes) = (given.long(), given.long());
                // SAFETY: as a kernel's own call.
                let at = unsafe { services::malloc(std::ptr::null(), bytes.cast_signed()) };
                if at.is_null() && bytes > 0 { MEMORY_ALLOCATION } else { give(place, at as u64) }
            }
            Call::Free => {
                // SAFETY: as a kernel's own call, which looks the address up.
                unsafe { services::free(std::ptr::null(), given.long() as *mut c_void) };
                SUCCESS
            }
            Call::MemcpyAsync => {
                let (to, from, width) = (given.size(), given.size(), given.size());
                let (_kind, stream) = (given.word(), given.long());
                self.add(
                    stream,
                    Work::Copy { to, to_pitch: width, from, from_pitch: width, width, height: 1 },
                )
            }
            Call::Memcpy2DAsync => {
                let (to, to_pitch, from, from_pitch) =
                    (given.size(), given.size(), given.size(), given.size());
                let (width, height, _kind, stream) = (given.size(), given.size(), given.word(), given.long());
                if width > to_pitch || width > from_pitch {
                    INVALID_VALUE
                } else {
                    self.add(stream, Work::Copy { to, to_pitch, from, from_pitch, width, height })
                }
            }
            Call::MemsetAsync => {
                let (to, value, width, stream) = (given.size(), given.word(), given.size(), given.long());
                self.add(stream, Work::Fill { to, pitch: width, value: value as u8, width, height: 1 })
            }
            Call::Memset2DAsync => {
                let (to, pitch, value) = (given.size(), given.size(), given.word() as u8);
                let (width, height, stream) = (given.size(), given.size(), given.long());
                if width > pitch {
                    INVALID_VALUE
                } else {
                    self.add(stream, Work::Fill { to, pitch, value, width, height })
                }
            }
            Call::GraphLaunch => {
                let (graph, stream) = (given.long(), given.long());
                self.launch_graph(graph, stream)
            }
            Call::DeviceSynchronize
            | Call::FuncGetAttributes
            | Call::Memcpy3DAsync
            | Call::Memset3DAsync
            | Call::RuntimeGetVersion
            | Call::OccupancyMaxActiveBlocksPerMultiprocessor
            | Call::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => refuse(call, ""),
        };
        self.fail(who, code);
        code.into()
    }

    /// Kernel `function` of this module, for a launch that is possible.
    fn asked(&self, function: u64, grid: [u32; 3], block: [u32; 3], shared: u32) -> Answer<Asked> {
        let kernel = kernel_of_address(function).filter(|&kernel| kernel < self.module.n_kernels());
        let kernel = kernel.ok_or(INVALID_DEVICE_FUNCTION)?;
        let shape = Shape { grid, block, dynamic_shared: shared, ..Shape::default() };
        // What variables take is known when it runs.
        let fits = launch::check_sides(self.module.header(kernel), &shape).is_ok() && shared <= SHARED_OPTIN;
        if fits { Ok(Asked { kernel, shape }) } else { Err(INVALID_CONFIGURATION) }
    }

    /// The address of room for parameters; null where there is none.
    fn buffer(&self, asked: Option<Asked>, bytes: usize, who: (u64, u64)) -> u64 {
        let lines = bytes / size_of::<ParamLine>() + 1;
        let is_possible = bytes <= MOST_PARAMETERS;
        if !is_possible || self.depth >= MOST_DEPTH {
            self.fail(who, if is_possible { PENDING_COUNT_EXCEEDED } else { INVALID_VALUE });
            return 0;
        }
        let _pause = Pause::new();
        let mut state = self.state.lock();
        state.bytes += lines * size_of::<ParamLine>();
        if state.bytes > MOST_WAITING {
            drop(state);
            self.fail(who, MEMORY_ALLOCATION);
            return 0;
        }
        let mut params = vec![ParamLine::default(); lines];
        let address = params.as_mut_ptr() as usize;
        state.buffers.insert(address, Buffer { asked, params });
        address as u64
    }

    /// Launches what a buffer was made for, or what is said here.
    fn launch(&self, buffer: usize, said: Option<Asked>, stream: u64) -> Answer {
        self.known(stream)?;
        if self.depth >= MOST_DEPTH {
            return Err(PENDING_COUNT_EXCEEDED);
        }
        let _pause = Pause::new();
        let mut state = self.state.lock();
        let held = match state.buffers.remove(&buffer) {
            Some(held) => held,
            // A kernel without parameters needs no buffer.
            None if buffer == 0 && said.is_some() => Buffer { asked: None, params: vec![] },
            None => return Err(INVALID_VALUE),
        };
        let asked = said.or(held.asked).ok_or(INVALID_VALUE)?;
        let mut params = held.params;
        let lines = self.module.header(asked.kernel).params_bytes as usize / size_of::<ParamLine>() + 1;
        params.resize(lines.max(params.len()), ParamLine::default());
        state.queue(stream).push(Work::Launch(asked, params));
        Ok(())
    }

    /// CUDA: the call succeeds, or something is invalid.
    fn launch_graph(&self, graph: u64, stream: u64) -> Code {
        let _pause = Pause::new();
        let why = match (&self.environment, Mode::of_stream(stream)) {
            (None, _) => "the launching kernel is no node of a graph".to_owned(),
            (_, None) => format!("{stream:#x} is none of the streams for it"),
            (Some(environment), Some(mode)) => match environment.launch(graph, mode) {
                Ok(()) => return SUCCESS,
                Err(refusal) => refusal.to_string(),
            },
        };
        tracing::debug!(target: "cudaway::cpu", "a kernel cannot launch graph {graph:#x}: {why}");
        INVALID_VALUE
    }

    fn add(&self, stream: u64, work: Work) -> Code {
        if let Err(code) = self.known(stream) {
            return code;
        }
        let _pause = Pause::new();
        let mut state = self.state.lock();
        state.bytes += size_of::<Work>();
        if state.bytes > MOST_WAITING {
            return MEMORY_ALLOCATION;
        }
        state.queue(stream).push(work);
        SUCCESS
    }

    fn known(&self, stream: u64) -> Answer {
        let is_named = OWN_STREAMS.contains(&stream) || stream == TAIL || stream == FIRE_AND_FORGET;
        let _pause = Pause::new();
        if is_named || self.state.lock().streams.contains(&stream) {
            Ok(())
        } else {
            Err(INVALID_RESOURCE_HANDLE)
        }
    }

    fn known_event(&self, event: u64) -> Answer {
        let _pause = Pause::new();
        if self.state.lock().events.contains(&event) { Ok(()) } else { Err(INVALID_RESOURCE_HANDLE) }
    }

    /// A new stream or event. They are the grid's: other grids cannot use them.
    fn handle(&self, is_stream: bool) -> u64 {
        let _pause = Pause::new();
        let mut state = self.state.lock();
        let handle = FIRST_HANDLE + state.n_handles;
        state.n_handles += 1;
        if is_stream { &mut state.streams } else { &mut state.events }.insert(handle);
        handle
    }

    /// What was put into a stream is done all the same.
    fn forget(&self, handle: u64, is_stream: bool) -> Code {
        let _pause = Pause::new();
        let mut state = self.state.lock();
        let known = if is_stream { &mut state.streams } else { &mut state.events };
        if known.remove(&handle) { SUCCESS } else { INVALID_RESOURCE_HANDLE }
    }

    fn fail(&self, who: (u64, u64), code: Code) {
        if code != SUCCESS {
            let _pause = Pause::new();
            self.state.lock().errors.insert(who, code);
        }
    }

    fn last(&self, who: (u64, u64), reset: bool) -> Code {
        let _pause = Pause::new();
        let errors = &mut self.state.lock().errors;
        let found = if reset { errors.remove(&who) } else { errors.get(&who).copied() };
        found.unwrap_or(SUCCESS)
    }
}

impl State {
    fn queue(&mut self, stream: u64) -> &mut Vec<Work> {
        if stream == TAIL { &mut self.tail } else { &mut self.children }
    }
}

impl Work {
    /// Copies or fills rows.
    pub fn move_bytes(&self) -> Result {
        match *self {
            Work::Copy { to, to_pitch, from, from_pitch, width, height } if width > 0 && height > 0 => {
                check(to, to_pitch, [width, height], memory::target)?;
                check(from, from_pitch, [width, height], memory::range)?;
                for row in 0..height {
                    let (to, from) = (to + row * to_pitch, from + row * from_pitch);
                    // SAFETY: all rows lie in memory that kernels may use.
                    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, width) };
                }
            }
            Work::Fill { to, pitch, value, width, height } if width > 0 && height > 0 => {
                check(to, pitch, [width, height], memory::target)?;
                for row in 0..height {
                    // SAFETY: as above.
                    unsafe { std::ptr::write_bytes((to + row * pitch) as *mut u8, value, width) };
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Whether kernels may use the rows: an allocation's, or device `malloc`'s.
fn check(
    address: usize,
    pitch: usize,
    [width, height]: [usize; 2],
    of_allocation: fn(usize, usize) -> Result<Option<memory::Allocation>>,
) -> Result {
    let bytes = (height - 1).checked_mul(pitch).and_then(|last| last.checked_add(width));
    let bytes = bytes.ok_or(hipErrorIllegalAddress)?;
    let is_inside =
        |(at, len): (usize, usize)| at <= address && address - at <= len && bytes <= len - (address - at);
    let is_heap = services::nearest_heap_block(address).is_some_and(is_inside);
    if is_heap || of_allocation(address, bytes).is_ok_and(|found| found.is_some()) {
        Ok(())
    } else {
        Err(hipErrorIllegalAddress)
    }
}

/// Said once for each call.
fn refuse(call: Call, of: &str) -> Code {
    let _pause = Pause::new();
    static SAID: Mutex<Vec<Call>> = Mutex::new(vec![]);
    let mut said = SAID.lock();
    if !said.contains(&call) {
        said.push(call);
        tracing::warn!(target: "cudaway::cpu", "a kernel calls cuda{call:?}{of}, which is not supported inside of kernels");
    }
    NOT_SUPPORTED
}

/// `cudaLimit`
fn limit(number: u32) -> Option<usize> {
    match number {
        1 => Some(printf::FIFO_BYTES.load(Ordering::Relaxed)),
        2 => Some(services::HEAP_LIMIT.load(Ordering::Relaxed)),
        _ => None,
    }
}

/// `cudaDeviceAttr`, those that size launches.
fn attribute(number: u32) -> Option<i32> {
    let [block, grid] = [MAX_BLOCK, MAX_GRID];
    let value = match number {
        1 => device::MAX_THREADS,
        2..=4 => block[number as usize - 2],
        5..=7 => grid[number as usize - 5],
        8 => device::SHARED_PER_BLOCK,
        10 => 32,
        16 => device::get().n_cores as u32,
        39 => device::THREADS_PER_CORE,
        81 => device::SHARED_PER_CORE,
        97 => SHARED_OPTIN,
        106 => device::BLOCKS_PER_CORE,
        _ => return None,
    };
    i32::try_from(value).ok()
}

/// Name and text of what calls inside of kernels answer.
fn name(code: Code) -> (&'static CStr, &'static CStr) {
    match code {
        SUCCESS => (c"cudaSuccess", c"no error"),
        INVALID_VALUE => (c"cudaErrorInvalidValue", c"invalid argument"),
        MEMORY_ALLOCATION => (c"cudaErrorMemoryAllocation", c"out of memory"),
        INVALID_CONFIGURATION => (c"cudaErrorInvalidConfiguration", c"invalid configuration argument"),
        PENDING_COUNT_EXCEEDED => (
            c"cudaErrorLaunchPendingCountExceeded",
            c"launch would exceed maximum number of pending launches",
        ),
        INVALID_DEVICE_FUNCTION => (c"cudaErrorInvalidDeviceFunction", c"invalid device function"),
        INVALID_DEVICE => (c"cudaErrorInvalidDevice", c"invalid device ordinal"),
        INVALID_RESOURCE_HANDLE => (c"cudaErrorInvalidResourceHandle", c"invalid resource handle"),
        NOT_SUPPORTED => (c"cudaErrorNotSupported", c"operation not supported"),
        _ => (c"unrecognized error code", c"unrecognized error code"),
    }
}
