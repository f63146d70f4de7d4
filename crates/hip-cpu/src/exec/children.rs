//! What a grid asks of the device runtime: grids, copies and fills that come after it, and questions.
//!
//! A grid's children begin when its last block has ended, one after the other in the order they were launched: that is an order of
//! every stream and of every event. A grid is done when its children are; then what it gave to its tail stream follows. What a block
//! waits for by CUDA 11's `cudaDeviceSynchronize`, all that it has launched so far, is run then, on a thread of its own; and so is all
//! that the grid has launched so far where one launch more would be more than may be pending.
//! Source: CUDA C++ Programming Guide, "CUDA Dynamic Parallelism".

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use compiler::device_runtime::answer::{
    Code, INVALID_CONFIGURATION, INVALID_DEVICE, INVALID_DEVICE_FUNCTION, INVALID_RESOURCE_HANDLE,
    INVALID_VALUE, LAUNCH_FAILURE, MEMORY_ALLOCATION, NOT_SUPPORTED, PENDING_COUNT_EXCEEDED, SUCCESS,
    SYNC_DEPTH_EXCEEDED, name,
};
use compiler::device_runtime::graphs::Mode;
use compiler::device_runtime::order::{self, Standing, Work as _};
use compiler::device_runtime::{
    Call, DISABLE_TIMING, FIRE_AND_FORGET, FIRST_HANDLE, MOST_PARAMETERS, OWN_STREAMS, RUNTIME_VERSION,
    STREAM_FLAGS, TAIL, WHO_BYTES, kernel_of_address,
};
use hip_sys::{hipErrorIllegalAddress, hipErrorLaunchFailure};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::guard::Pause;
use super::{Launch, ParamLine, printf, services};
use crate::device::{self, MAX_BLOCK, MAX_GRID, SHARED_OPTIN};
use crate::error::Result;
use crate::graph::Environment;
use crate::launch::{self, Shape};
use crate::memory;
use crate::module::{self, Function, Module};
use crate::node::{self, Update};
use crate::runner;
use crate::stream::{self, Place, Shape as Box3};

type Answer<T = ()> = std::result::Result<T, Code>;

/// `cudaLimitDevRuntimePendingLaunchCount`: launches by kernels that may be outstanding. Grids inside of grids are, for each waits for
/// the one in it: an H200 goes that deep.
pub static PENDING_LAUNCHES: AtomicUsize = AtomicUsize::new(2048);
/// `cudaLimitDevRuntimeSyncDepth`: how many grids inside of each other may wait for what they have launched.
pub static SYNC_DEPTH: AtomicUsize = AtomicUsize::new(2);
/// Bytes of what one grid has launched, its parameters most of all.
const MOST_WAITING: usize = 1 << 30;

/// What comes after the grid.
pub enum Work {
    Launch(Asked, Vec<ParamLine>),
    Copy { to: Place, from: Place, shape: Box3 },
    Fill { to: Place, value: u8, shape: Box3 },
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
    /// By the block that launched them, each with its place among all.
    children: BTreeMap<u64, Vec<(u64, Work)>>,
    n_children: u64,
    tail: Vec<Work>,
    /// Launches among the children that have not begun, and in the tail.
    n_waiting: usize,
    n_tail: usize,
    /// A thread runs children, so that there is room for more.
    is_making_room: bool,
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
    pub standing: Standing,
    /// Of the graph that the grid is part of.
    environment: Option<Arc<Environment>>,
    /// That the grid runs in.
    context: usize,
    state: Mutex<State>,
    has_made_room: Condvar,
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

/// The same of several words.
fn give_all(place: u64, words: &[u32]) -> Code {
    let mut answer = SUCCESS;
    for (nth, &word) in words.iter().enumerate() {
        answer = give(if place == 0 { 0 } else { place + 4 * nth as u64 }, word);
    }
    answer
}

/// `cudaFuncAttributes` as words: CUDA 11's, or with what CUDA 12 has added.
fn attributes(function: &Function, is_second: bool) -> Vec<u32> {
    let long = |value: u64| [value as u32, (value >> 32) as u32];
    let shared = function.shared_bytes();
    let most_dynamic = SHARED_OPTIN.saturating_sub(shared);
    let architecture = config::get().architecture();
    let sizes = [long(shared.into()), long(0), long(function.facts().local_bytes)].concat();
    // As the host is told: threads, registers, versions, caching, shared memory, carveout, and padding.
    let numbers = [function.max_threads(), 32, architecture, architecture, 0, most_dynamic, -1i32 as u32];
    let mut words = [sizes.as_slice(), &numbers].concat();
    let cluster = function.header().cluster;
    if is_second {
        words.push(u32::from(cluster.explicit));
        words.extend(cluster.required.unwrap_or_default());
        // Scheduling as the device likes, and no larger clusters than all devices have.
        words.extend([0; 2]);
    }
    words.resize(if is_second { 36 } else { 14 }, 0);
    words
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
    children.answer(call, Call::is_second(number), who, &mut given)
}

impl Children {
    pub fn new(module: Arc<Module>, standing: Standing, environment: Option<Arc<Environment>>) -> Children {
        let (context, state) = (device::context(), Mutex::default());
        Children { module, standing, environment, context, state, has_made_room: Condvar::new() }
    }

    /// What was asked for and has not begun: children, then what comes after them, in that order.
    pub fn into_work(self) -> Vec<(Work, Standing)> {
        let mut state = self.state.into_inner();
        let (children, tail) = (state.take_all(), std::mem::take(&mut state.tail));
        order::behind(self.standing, children, tail)
    }

    fn answer(&self, call: Call, is_second: bool, who: (u64, u64), given: &mut Arguments) -> u64 {
        let asking = who.0;
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
                code_of(asked.and_then(|asked| self.launch(asking, buffer, Some(asked), stream)))
            }
            Call::LaunchDeviceV2 => {
                let (buffer, stream) = (given.size(), given.long());
                code_of(self.launch(asking, buffer, None, stream))
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
                self.copy(asking, stream, Place::of_row(to), Place::of_row(from), Box3::of_row(width))
            }
            Call::Memcpy2DAsync => {
                let to = Place { at: given.size(), pitch: given.size(), slice: 0 };
                let from = Place { at: given.size(), pitch: given.size(), slice: 0 };
                let shape = Box3 { width: given.size(), height: given.size(), depth: 1 };
                let (_kind, stream) = (given.word(), given.long());
                match shape.width <= to.pitch.min(from.pitch) {
                    true => self.copy(asking, stream, to, from, shape),
                    false => INVALID_VALUE,
                }
            }
            Call::Memcpy3DAsync => {
                let (params, stream) = (given.long(), given.long());
                match copy_of(params) {
                    Ok((to, from, shape)) => self.copy(asking, stream, to, from, shape),
                    Err(NOT_SUPPORTED) => refuse(call, " of arrays"),
                    Err(code) => code,
                }
            }
            Call::MemsetAsync => {
                let (to, value, width, stream) = (given.size(), given.word(), given.size(), given.long());
                self.fill(asking, stream, Place::of_row(to), value, Box3::of_row(width))
            }
            Call::Memset2DAsync => {
                let (to, pitch, value) = (given.size(), given.size(), given.word());
                let shape = Box3 { width: given.size(), height: given.size(), depth: 1 };
                let stream = given.long();
                match shape.width <= pitch {
                    true => self.fill(asking, stream, Place { at: to, pitch, slice: 0 }, value, shape),
                    false => INVALID_VALUE,
                }
            }
            Call::Memset3DAsync => {
                let (to, pitch, _row, rows) = (given.size(), given.size(), given.size(), given.size());
                let value = given.word();
                let shape = Box3 { width: given.size(), height: given.size(), depth: given.size() };
                let stream = given.long();
                match pitched([to, pitch, rows], [0; 3], shape) {
                    Ok(to) => self.fill(asking, stream, to, value, shape),
                    Err(code) => code,
                }
            }
            Call::GraphLaunch => {
                let (graph, stream) = (given.long(), given.long());
                self.launch_graph(graph, stream)
            }
            Call::GraphKernelNodeSetParam => {
                let (node, offset, value, bytes) = (given.long(), given.size(), given.long(), given.size());
                match bytes_at(value, bytes) {
                    Some(bytes) => update(&[(node, Update::Arguments(offset, bytes))]),
                    None => INVALID_VALUE,
                }
            }
            Call::GraphKernelNodeSetEnabled => {
                let (node, is_enabled) = (given.long(), given.word());
                // A `bool`, of which the low byte counts.
                update(&[(node, Update::Enabled(is_enabled & 0xff != 0))])
            }
            Call::GraphKernelNodeSetGridDim => {
                let (node, grid) = (given.long(), given.dim());
                update(&[(node, Update::Grid(grid))])
            }
            Call::GraphKernelNodeUpdatesApply => match updates_at(given.long(), given.size()) {
                Some(updates) => update(&updates),
                None => INVALID_VALUE,
            },
            Call::DeviceSynchronize => self.synchronize(asking),
            Call::FuncGetAttributes => {
                let (place, function) = (given.long(), given.long());
                match self.of_function(function, move |function| attributes(function, is_second)) {
                    Ok(found) => give_all(place, &found),
                    Err(code) => code,
                }
            }
            Call::OccupancyMaxActiveBlocksPerMultiprocessor
            | Call::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => {
                let (place, function, n_threads, shared) =
                    (given.long(), given.long(), given.word(), given.size());
                let is_flagged = call == Call::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
                let flags = if is_flagged { given.word() } else { 0 };
                // CUDA: the default, or that caching is no reason for less.
                if n_threads.cast_signed() <= 0 || flags > 1 {
                    INVALID_VALUE
                } else {
                    let shared = u32::try_from(shared).unwrap_or(u32::MAX);
                    let blocks =
                        move |function: &Function| launch::blocks_per_core(function, n_threads, shared);
                    match self.of_function(function, blocks) {
                        Ok(blocks) => give(place, blocks),
                        Err(code) => code,
                    }
                }
            }
            Call::RuntimeGetVersion => give(given.long(), RUNTIME_VERSION),
        };
        self.fail(who, code);
        code.into()
    }

    fn kernel(&self, function: u64) -> Answer<usize> {
        let kernel = kernel_of_address(function).filter(|&kernel| kernel < self.module.n_kernels());
        kernel.ok_or(INVALID_DEVICE_FUNCTION)
    }

    /// Kernel `function` of this module, for a launch that is possible.
    fn asked(&self, function: u64, grid: [u32; 3], block: [u32; 3], shared: u32) -> Answer<Asked> {
        let kernel = self.kernel(function)?;
        let shape = Shape { grid, block, dynamic_shared: shared, ..Shape::default() };
        // What variables take is known when it runs.
        let fits = launch::check_sides(self.module.header(kernel), &shape).is_ok() && shared <= SHARED_OPTIN;
        if fits { Ok(Asked { kernel, shape }) } else { Err(INVALID_CONFIGURATION) }
    }

    /// The address of room for parameters; null where there is none.
    fn buffer(&self, asked: Option<Asked>, bytes: usize, who: (u64, u64)) -> u64 {
        let lines = bytes / size_of::<ParamLine>() + 1;
        if bytes > MOST_PARAMETERS {
            self.fail(who, INVALID_VALUE);
            return 0;
        }
        let _pause = Pause::new();
        let mut state = self.state.lock();
        if self.is_full(&state) {
            drop(state);
            self.fail(who, PENDING_COUNT_EXCEEDED);
            return 0;
        }
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
    fn launch(&self, block: u64, buffer: usize, said: Option<Asked>, stream: u64) -> Answer {
        self.known(stream)?;
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
        drop(state);
        let mut state = self.with_room()?;
        state.put(block, stream, Work::Launch(asked, params));
        Ok(())
    }

    /// Whether the limit allows no launch, though all children had ended.
    fn is_full(&self, state: &State) -> bool {
        state.n_tail >= self.standing.room(PENDING_LAUNCHES.load(Ordering::Relaxed))
    }

    /// Waits until one launch more may be outstanding. CUDA: a child may begin as soon as it was launched. So where too many have not
    /// begun they are run now; what remains outstanding then is what cannot have ended, and with too much of that the launch fails.
    fn with_room(&self) -> Answer<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        loop {
            if self.is_full(&state) {
                return Err(PENDING_COUNT_EXCEEDED);
            }
            let outstanding = self.standing.outstanding + state.n_tail + state.n_waiting;
            if outstanding < PENDING_LAUNCHES.load(Ordering::Relaxed) {
                return Ok(state);
            }
            if state.is_making_room {
                self.has_made_room.wait(&mut state);
                continue;
            }
            state.is_making_room = true;
            let (work, n_tail) = (state.take_all(), state.n_tail);
            drop(state);
            let ran = self.run(work, n_tail);
            state = self.state.lock();
            state.is_making_room = false;
            self.has_made_room.notify_all();
            if ran != SUCCESS {
                return Err(ran);
            }
        }
    }

    /// Runs what the block has launched so far, and all that comes of it.
    fn synchronize(&self, block: u64) -> Code {
        if self.standing.depth as usize >= SYNC_DEPTH.load(Ordering::Relaxed) {
            return SYNC_DEPTH_EXCEEDED;
        }
        let _pause = Pause::new();
        let (work, n_tail) = {
            let mut state = self.state.lock();
            // What is being run may be this block's.
            while state.is_making_room {
                self.has_made_room.wait(&mut state);
            }
            (state.take(block), state.n_tail)
        };
        self.run(work, n_tail)
    }

    /// Runs children, with so many launches in the grid's tail, and waits for all that comes of them.
    fn run(&self, work: Vec<Work>, n_tail: usize) -> Code {
        if work.is_empty() {
            return SUCCESS;
        }
        let (module, context) = (self.module.clone(), self.context);
        let standing = self.standing.of_child(n_tail);
        let ran = runner::run_and_wait(move || {
            let before = device::enter(context);
            launch::run_asked(&module, work.into_iter().map(|work| (work, standing)).collect());
            let is_well = device::healthy().is_ok();
            device::enter(before);
            is_well
        });
        match ran {
            Ok(true) => SUCCESS,
            // The device has the error already.
            Ok(false) => LAUNCH_FAILURE,
            // What was launched cannot be done.
            Err(runner::NoThread) => {
                let before = device::enter(self.context);
                device::fail_with(hipErrorLaunchFailure);
                device::enter(before);
                LAUNCH_FAILURE
            }
        }
    }

    /// What is to be known of a kernel; it may have to be looked into first, which takes more stack than a kernel's thread has.
    fn of_function<T: Send + 'static>(
        &self,
        function: u64,
        ask: impl FnOnce(&Function) -> T + Send + 'static,
    ) -> Answer<T> {
        let kernel = self.kernel(function)?;
        let _pause = Pause::new();
        let (module, context) = (self.module.clone(), self.context);
        let found = runner::run_and_wait(move || {
            let before = device::enter(context);
            let function = module.function(&module.header(kernel).name).and_then(module::function_of_handle);
            device::enter(before);
            function.map(|function| ask(&function))
        });
        found.map_err(|runner::NoThread| MEMORY_ALLOCATION)?.map_err(|_| INVALID_DEVICE_FUNCTION)
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

    fn copy(&self, block: u64, stream: u64, to: Place, from: Place, shape: Box3) -> Code {
        self.add(block, stream, Work::Copy { to, from, shape })
    }

    fn fill(&self, block: u64, stream: u64, to: Place, value: u32, shape: Box3) -> Code {
        self.add(block, stream, Work::Fill { to, value: value as u8, shape })
    }

    fn add(&self, block: u64, stream: u64, work: Work) -> Code {
        if let Err(code) = self.known(stream) {
            return code;
        }
        let _pause = Pause::new();
        let mut state = self.state.lock();
        state.bytes += size_of::<Work>();
        if state.bytes > MOST_WAITING {
            return MEMORY_ALLOCATION;
        }
        state.put(block, stream, work);
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
    fn put(&mut self, block: u64, stream: u64, work: Work) {
        let is_launch = usize::from(work.is_launch());
        if stream == TAIL {
            self.n_tail += is_launch;
            return self.tail.push(work);
        }
        self.n_waiting += is_launch;
        self.children.entry(block).or_default().push((self.n_children, work));
        self.n_children += 1;
    }

    /// What a block has launched so far, but for the tail.
    fn take(&mut self, block: u64) -> Vec<Work> {
        let work = self.children.remove(&block).unwrap_or_default();
        self.taken(work)
    }

    /// What all blocks have.
    fn take_all(&mut self) -> Vec<Work> {
        let mut work: Vec<_> = std::mem::take(&mut self.children).into_values().flatten().collect();
        work.sort_unstable_by_key(|&(place, _)| place);
        self.taken(work)
    }

    fn taken(&mut self, work: Vec<(u64, Work)>) -> Vec<Work> {
        self.bytes -= work.iter().map(|(_, work)| work.bytes()).sum::<usize>().min(self.bytes);
        self.n_waiting -= work.iter().filter(|(_, work)| work.is_launch()).count();
        work.into_iter().map(|(_, work)| work).collect()
    }
}

impl order::Work for Work {
    fn is_launch(&self) -> bool {
        matches!(self, Work::Launch(..))
    }
}

impl Work {
    /// What it takes of [`MOST_WAITING`].
    fn bytes(&self) -> usize {
        match self {
            Work::Launch(_, params) => size_of_val(params.as_slice()),
            Work::Copy { .. } | Work::Fill { .. } => size_of::<Work>(),
        }
    }

    /// Copies or fills, all of it in memory that kernels may use.
    pub fn move_bytes(&self) -> Result {
        match *self {
            Work::Copy { to, from, shape } if !shape.is_empty() => {
                check(to, shape, memory::target)?;
                check(from, shape, memory::range)?;
                // SAFETY: both boxes were checked.
                unsafe { stream::copy_box(to, from, shape) };
            }
            Work::Fill { to, value, shape } if !shape.is_empty() => {
                check(to, shape, memory::target)?;
                // SAFETY: as above; units are bytes.
                unsafe { stream::set_box(to, shape, value.into(), 1) };
            }
            _ => {}
        }
        Ok(())
    }
}

/// `cudaMemcpy3DParms` between pitched memories, read where the kernel has it: where to, where from, how much.
fn copy_of(params: u64) -> Answer<(Place, Place, Box3)> {
    if params == 0 {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the kernel's own; a fault here ends the grid as the kernel's.
    let words: [usize; 19] = unsafe { (params as *const [usize; 19]).read_unaligned() };
    // An array, a position and a pitched pointer (address, pitch, bytes of a row, rows) of either side; the extent.
    let [source_array, x, y, z, from, from_pitch, _, from_rows, rest @ ..] = words;
    let [target_array, to_x, to_y, to_z, to, to_pitch, _, to_rows, width, height, depth] = rest;
    if source_array != 0 || target_array != 0 {
        return Err(NOT_SUPPORTED);
    }
    let shape = Box3 { width, height, depth };
    let to = pitched([to, to_pitch, to_rows], [to_x, to_y, to_z], shape)?;
    let from = pitched([from, from_pitch, from_rows], [x, y, z], shape)?;
    Ok((to, from, shape))
}

/// A box at a position in pitched memory.
fn pitched([at, pitch, rows]: [usize; 3], [x, y, z]: [usize; 3], shape: Box3) -> Answer<Place> {
    // CUDA: rows of the box fit into the pitch, and its slices into those of the memory.
    let fits = |at: usize, n: usize, most: usize| at.checked_add(n).is_some_and(|end| end <= most);
    let slice = pitch.checked_mul(rows).ok_or(INVALID_VALUE)?;
    if !fits(x, shape.width, pitch) || (shape.depth > 1 && !fits(y, shape.height, rows)) {
        return Err(INVALID_VALUE);
    }
    let skipped = z.checked_mul(slice).and_then(|z| y.checked_mul(pitch)?.checked_add(z)?.checked_add(x));
    let at = skipped.and_then(|skipped| at.checked_add(skipped)).ok_or(INVALID_VALUE)?;
    Ok(Place { at, pitch, slice })
}

/// Bytes that a kernel gives, as many as arguments can have.
fn bytes_at(place: u64, bytes: usize) -> Option<Vec<u8>> {
    if place == 0 || bytes > MOST_PARAMETERS {
        return None;
    }
    // SAFETY: the kernel's own; a fault here ends the grid as the kernel's.
    Some(unsafe { std::slice::from_raw_parts(place as *const u8, bytes) }.to_vec())
}

/// An array of `cudaGraphKernelNodeUpdate`.
fn updates_at(place: u64, count: usize) -> Option<Vec<(u64, Update)>> {
    if place == 0 {
        return None;
    }
    let one = |nth: usize| {
        // SAFETY: the kernel's own; a fault here ends the grid as the kernel's.
        let words: [u64; 5] = unsafe { (place as *const [u64; 5]).add(nth).read_unaligned() };
        // The node, the field, and what the field needs.
        let [node, field, first, second, third] = words;
        let update = match field as u32 {
            1 => Update::Grid([first as u32, (first >> 32) as u32, second as u32]),
            2 => Update::Arguments(second as usize, bytes_at(first, third as usize)?),
            3 => Update::Enabled(first as u32 != 0),
            _ => return None,
        };
        Some((node, update))
    };
    (0..count).map(one).collect()
}

fn update(updates: &[(u64, Update)]) -> Code {
    let _pause = Pause::new();
    if node::update(updates).is_ok() { SUCCESS } else { INVALID_VALUE }
}

/// Whether kernels may use the box: an allocation's, or device `malloc`'s.
fn check(
    place: Place,
    shape: Box3,
    of_allocation: fn(usize, usize) -> Result<Option<memory::Allocation>>,
) -> Result {
    let rows = (shape.height - 1).checked_mul(place.pitch);
    let slices = (shape.depth - 1).checked_mul(place.slice);
    let bytes =
        rows.zip(slices).and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(shape.width));
    let bytes = bytes.ok_or(hipErrorIllegalAddress)?;
    let address = place.at;
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
        3 => Some(SYNC_DEPTH.load(Ordering::Relaxed)),
        4 => Some(PENDING_LAUNCHES.load(Ordering::Relaxed)),
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
