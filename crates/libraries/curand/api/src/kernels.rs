//! Numbers made on the device: kernels of ours (kernels/rand.cu), whose state lies in the device's memory, so that a captured call
//! goes on in the sequence with each run of its graph.
//!
//! The rule: what a program sets is copied to the device in front of the next numbers, in their stream. Numbers that are captured
//! find it there: it is copied while they are captured, apart from all streams of the program.

use core::ffi::{CStr, c_uint, c_void};
use core::ptr;

use cuda_abi::{CUcontext, CUdeviceptr, CUevent, CUstream, CUstreamCaptureStatus};
use curand_cpu::{Kind, Recipe};
use kit::driver::{self, check, driver};
use kit::kernels::{Module, Relaxed};

use crate::draw::Draw;
use crate::{Error, Result};

/// What nvcc makes of rand.cu, with C's end behind it; a test has the two belong together.
static PTX: &str = concat!(include_str!("../kernels/rand.ptx"), "\0");

/// `CU_STREAM_PER_THREAD`, which is another stream on each thread.
const PER_THREAD: usize = 2;

/// Threads of a block; a twister of MTGP32 has as many.
const BLOCK: usize = 256;

/// `CU_STREAM_NON_BLOCKING`, `CU_EVENT_DISABLE_TIMING`.
const APART: c_uint = 1;
const UNTIMED: c_uint = 2;

/// A generator's things on its device.
#[derive(Default)]
pub struct Device {
    context: CUcontext,
    module: Option<Module>,
    state: CUdeviceptr,
    /// Behind the last numbers that no graph has.
    event: CUevent,
    /// The stream of those numbers, if there are any.
    last: Option<CUstream>,
    /// The last capture that has numbers of this generator.
    capture: Option<u64>,
    /// Direction vectors of so many dimensions.
    tables: (CUdeviceptr, u32),
    poisson: Option<Table>,
    /// What a graph may read, until the generator is destroyed.
    kept: Vec<CUdeviceptr>,
}

/// A Poisson distribution on the device.
#[derive(Clone, Copy)]
struct Table {
    mean: u64,
    at: CUdeviceptr,
    parameters: Parameters,
    is_captured: bool,
}

/// `Draw` of rand.cu.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Parameters {
    mean: f64,
    deviation: f64,
    ends: CUdeviceptr,
    n: u32,
    first: u32,
    method: u32,
    exponential: u32,
}

// SAFETY: the driver's numbers, good on every thread.
unsafe impl Send for Device {}

impl Device {
    /// Enqueues the launch that writes `n` numbers of the sequence, which goes on by as many.
    pub fn write(
        &mut self,
        stream: CUstream,
        sequence: &mut curand_cpu::Generator,
        draw: Draw,
        at: CUdeviceptr,
        n: usize,
    ) -> Result {
        let kind = sequence.kind();
        let capture = capture(stream)?;
        let relaxed = Relaxed::new()?;
        self.prepare(kind)?;
        if capture.is_none() {
            self.follow(stream)?;
        }
        if let Some(image) = sequence.image() {
            if capture.is_some() && capture == self.capture {
                return Err(Error::NotSupported("another setting between two calls that one graph captures"));
            }
            self.copy(stream, capture.is_some(), self.state, bytes(&image))?;
            sequence.image_is_there();
        }
        let mut parameters = self.parameters(stream, kind, draw, capture.is_some())?;
        let mut dimensions = sequence.dimensions();
        if kind.is_quasi() {
            self.tables(stream, kind, dimensions, capture.is_some())?;
        }
        drop(relaxed);

        let (mut state, mut to, mut count, mut tables) = (self.state, at, n as u64, self.tables.0);
        let mut arguments = [
            (&raw mut state).cast::<c_void>(),
            (&raw mut to).cast(),
            (&raw mut count).cast(),
            (&raw mut parameters).cast(),
            (&raw mut tables).cast(),
            (&raw mut dimensions).cast(),
        ];
        let [x, y] = grid(kind, draw, n, dimensions);
        let module = self.module.as_ref().ok_or(Error::NotSupported("numbers without a module"))?;
        // SAFETY: the arguments are those of the kernel; quasirandom sequences alone look at the last two.
        unsafe { module.launch(name(kind, draw), [x, y, 1], BLOCK as c_uint, stream, &mut arguments) }?;
        sequence.skip(n, draw.is_normal())?;
        if capture.is_some() {
            self.capture = capture;
        } else {
            // SAFETY: the driver looks at both itself.
            check("cuEventRecord", unsafe { (driver()?.cuEventRecord)(self.event, stream) })?;
            self.last = Some(stream);
        }
        Ok(())
    }

    /// The module, the state's memory and the event, made once.
    fn prepare(&mut self, kind: Kind) -> Result {
        if self.state != 0 {
            return Ok(());
        }
        let driver = driver()?;
        self.context = driver::context(None)?;
        if self.module.is_none() {
            self.module = Some(Module::load(PTX)?);
        }
        if self.event.is_null() {
            // SAFETY: the event's place outlives the call.
            check("cuEventCreate", unsafe { (driver.cuEventCreate)(&mut self.event, UNTIMED) })?;
        }
        self.state = allocate(4 * kind.image_words())?;
        Ok(())
    }

    /// The numbers before lie in front of what is enqueued in the stream from here on.
    fn follow(&self, stream: CUstream) -> Result {
        match self.last {
            Some(last) if last != stream || stream.addr() == PER_THREAD => {
                // SAFETY: the driver looks at both itself.
                let code = unsafe { (driver()?.cuStreamWaitEvent)(stream, self.event, 0) };
                Ok(check("cuStreamWaitEvent", code)?)
            }
            _ => Ok(()),
        }
    }

    /// Copies to memory that numbers in the stream read: in the stream, or, since a graph would copy with each run, at once and
    /// behind all numbers that no graph has.
    fn copy(&self, stream: CUstream, is_captured: bool, to: CUdeviceptr, bytes: &[u8]) -> Result {
        let driver = driver()?;
        // SAFETY: pageable memory is read before the call returns; `to` has room for the bytes.
        let copy =
            |stream| unsafe { (driver.cuMemcpyHtoDAsync_v2)(to, bytes.as_ptr().cast(), bytes.len(), stream) };
        if !is_captured {
            return Ok(check("cuMemcpyHtoDAsync", copy(stream))?);
        }
        let mut own = CUstream::default();
        // SAFETY: the stream's place outlives the call.
        check("cuStreamCreate", unsafe { (driver.cuStreamCreate)(&mut own, APART) })?;
        let waited = if self.last.is_some() {
            // SAFETY: the driver looks at both itself.
            check("cuStreamWaitEvent", unsafe { (driver.cuStreamWaitEvent)(own, self.event, 0) })
        } else {
            Ok(())
        };
        let copied = waited
            .and_then(|()| check("cuMemcpyHtoDAsync", copy(own)))
            .and_then(|()| kit::stream::synchronize(own));
        // SAFETY: the stream is this call's own.
        let destroyed = check("cuStreamDestroy_v2", unsafe { (driver.cuStreamDestroy_v2)(own) });
        Ok(copied.and(destroyed)?)
    }

    /// Memory with these bytes, for numbers in the stream.
    fn filled(&self, stream: CUstream, is_captured: bool, bytes: &[u8]) -> Result<CUdeviceptr> {
        let mut at = CUdeviceptr::default();
        let driver = driver()?;
        // SAFETY: `at` outlives the call.
        let in_order = !is_captured
            && check("cuMemAllocAsync", unsafe { (driver.cuMemAllocAsync)(&mut at, bytes.len(), stream) })
                .is_ok();
        // A graph's memory is not the graph's own; and some devices allocate in no stream's order.
        if !in_order {
            at = allocate(bytes.len())?;
        }
        if let Err(error) = self.copy(stream, is_captured, at, bytes) {
            free(at);
            return Err(error);
        }
        Ok(at)
    }

    fn tables(&mut self, stream: CUstream, kind: Kind, dimensions: u32, is_captured: bool) -> Result {
        let (old, known) = self.tables;
        if known < dimensions {
            let words = kind.tables(dimensions);
            self.tables = (self.filled(stream, is_captured, bytes(&words))?, dimensions);
            // Graphs may read it still.
            self.kept.push(old);
        }
        Ok(())
    }

    fn parameters(
        &mut self,
        stream: CUstream,
        kind: Kind,
        draw: Draw,
        is_captured: bool,
    ) -> Result<Parameters> {
        let (Draw::NormalSingle(normal) | Draw::NormalDouble(normal)) = draw else {
            let Draw::Poisson { mean } = draw else { return Ok(Parameters::default()) };
            return self.poisson(stream, kind, mean, is_captured);
        };
        let (mean, deviation) = (normal.mean, normal.deviation);
        Ok(Parameters { mean, deviation, exponential: normal.exponential.into(), ..Parameters::default() })
    }

    fn poisson(&mut self, stream: CUstream, kind: Kind, mean: f64, is_captured: bool) -> Result<Parameters> {
        if let Some(table) = self.poisson.as_mut().filter(|table| table.mean == mean.to_bits()) {
            table.is_captured |= is_captured;
            return Ok(table.parameters);
        }
        let mut parameters = Parameters::default();
        let at = match Recipe::poisson(kind, mean) {
            Recipe::Normal { mean, deviation } => {
                (parameters.mean, parameters.deviation, parameters.method) = (mean, deviation, 2);
                0
            }
            Recipe::Histogram { first, ends, others } => {
                (parameters.first, parameters.n) = (first, ends.len() as u32);
                let ends = ends.iter().flat_map(|end| end.to_ne_bytes());
                let all: Vec<u8> = ends.chain(others.iter().flat_map(|other| other.to_ne_bytes())).collect();
                self.filled(stream, is_captured, &all)?
            }
            Recipe::Inverse { first, sums } => {
                (parameters.first, parameters.n, parameters.method) = (first, sums.len() as u32, 1);
                let all: Vec<u8> = sums.iter().flat_map(|sum| sum.to_ne_bytes()).collect();
                self.filled(stream, is_captured, &all)?
            }
        };
        parameters.ends = at;
        let table = Table { mean: mean.to_bits(), at, parameters, is_captured };
        match self.poisson.replace(table) {
            Some(old) if old.is_captured || is_captured => self.kept.push(old.at),
            Some(old) => free_behind(stream, old.at),
            None => {}
        }
        Ok(parameters)
    }
}

impl Drop for Device {
    /// Freeing waits for the numbers that are still to be written.
    fn drop(&mut self) {
        let (Ok(driver), false) = (driver(), self.context.is_null()) else { return };
        // A context that is gone has taken its memory with it.
        let (Ok(_inside), Ok(_relaxed)) = (Inside::enter(self.context), Relaxed::new()) else { return };
        let tables = self.poisson.iter().map(|table| table.at);
        tables.chain([self.state, self.tables.0]).chain(self.kept.drain(..)).for_each(free);
        // SAFETY: this generator's own; NULL is refused.
        unsafe { (driver.cuEventDestroy_v2)(self.event) };
    }
}

/// While it is there, the generator's context is this thread's.
pub struct Inside {
    /// What it was before, if that is another one.
    before: Option<CUcontext>,
}

impl Inside {
    pub fn enter(context: CUcontext) -> Result<Inside> {
        let driver = driver()?;
        let mut before = CUcontext::default();
        // SAFETY: the context's place outlives the call.
        check("cuCtxGetCurrent", unsafe { (driver.cuCtxGetCurrent)(&mut before) })?;
        if before == context {
            return Ok(Inside { before: None });
        }
        // SAFETY: the driver looks at the context itself.
        check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(context) })?;
        Ok(Inside { before: Some(before) })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let (Some(before), Ok(driver)) = (self.before, driver()) {
            // SAFETY: as above; NULL is none.
            unsafe { (driver.cuCtxSetCurrent)(before) };
        }
    }
}

/// Which capture the stream is in.
fn capture(stream: CUstream) -> Result<Option<u64>> {
    let (mut status, mut id) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, 0);
    let none = ptr::null_mut::<c_void>();
    // SAFETY: the places outlive the call; NULL is asked for nothing.
    let code = unsafe {
        (driver()?.cuStreamGetCaptureInfo_v2)(
            stream,
            &mut status,
            &mut id,
            none.cast(),
            none.cast(),
            none.cast(),
        )
    };
    check("cuStreamGetCaptureInfo", code)?;
    Ok((status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE).then_some(id))
}

fn allocate(bytes: usize) -> Result<CUdeviceptr> {
    let mut at = CUdeviceptr::default();
    // SAFETY: `at` outlives the call.
    let code = unsafe { (driver()?.cuMemAlloc_v2)(&mut at, bytes) };
    check("cuMemAlloc", code).map_err(|_| Error::Allocation)?;
    Ok(at)
}

fn free(at: CUdeviceptr) {
    if let (1.., Ok(driver)) = (at, driver()) {
        // SAFETY: allocated above, and freed once.
        unsafe { (driver.cuMemFree_v2)(at) };
    }
}

/// Frees it when the stream has come to this.
fn free_behind(stream: CUstream, at: CUdeviceptr) {
    if let (1.., Ok(driver)) = (at, driver()) {
        // SAFETY: as in `free`. What it refuses is freed at once.
        if check("cuMemFreeAsync", unsafe { (driver.cuMemFreeAsync)(at, stream) }).is_err() {
            free(at);
        }
    }
}

fn bytes(words: &[u32]) -> &[u8] {
    // SAFETY: every byte of a word is one.
    unsafe { core::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Blocks for `n` numbers.
fn grid(kind: Kind, draw: Draw, n: usize, dimensions: u32) -> [c_uint; 2] {
    let blocks = |threads: usize| threads.div_ceil(BLOCK) as c_uint;
    match kind {
        Kind::Xorwow => [blocks(n.min(4096)), 1],
        Kind::Mrg32k3a => [blocks(n.div_ceil(if draw.is_normal() { 2 } else { 1 }).min(81_920)), 1],
        // The first four numbers may be those that the last call began.
        Kind::Philox4x32 => [blocks((n / 4 + 2).min(65_536)), 1],
        // As may be the first twister's words.
        Kind::Mtgp32 => [(n / BLOCK + 2).min(192) as c_uint, 1],
        // Sixteen generators each.
        Kind::Mt19937 => [512, 1],
        _ => {
            let points = blocks(n / dimensions as usize);
            [points.min((16_384 / dimensions).max(1)), dimensions]
        }
    }
}

/// Of each generator, in the order of `name`'s distributions.
macro_rules! names {
    ($kind:literal) => {{
        const NAMES: [&str; 6] = [
            concat!($kind, "_bits\0"),
            concat!($kind, "_uniform_f32\0"),
            concat!($kind, "_uniform_f64\0"),
            concat!($kind, "_normal_f32\0"),
            concat!($kind, "_normal_f64\0"),
            concat!($kind, "_poisson\0"),
        ];
        NAMES
    }};
}

fn name(kind: Kind, draw: Draw) -> &'static CStr {
    let names = match kind {
        Kind::Xorwow => names!("xorwow"),
        Kind::Mrg32k3a => names!("mrg"),
        Kind::Mtgp32 => names!("mtgp"),
        Kind::Philox4x32 => names!("philox"),
        Kind::Sobol32 | Kind::ScrambledSobol32 => names!("sobol32"),
        Kind::Sobol64 | Kind::ScrambledSobol64 => names!("sobol64"),
        Kind::Mt19937 => names!("mt"),
    };
    let name = names[match draw {
        Draw::Bits => 0,
        Draw::UniformSingle => 1,
        Draw::UniformDouble => 2,
        Draw::NormalSingle(_) => 3,
        Draw::NormalDouble(_) => 4,
        Draw::Poisson { .. } => 5,
    }];
    CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or_default()
}
