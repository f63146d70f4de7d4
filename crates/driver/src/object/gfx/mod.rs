//! What a module is on an AMD GPU: a block of memory with its variables, and a code object for each kernel that was asked for.
//!
//! Rule: no lock is held while the compiler runs. Two threads may both make the same kernel; both get one that works.

pub mod graphs;
pub mod heap;
mod host_memory;
pub mod queue;
pub mod sampler;
pub mod services;
pub mod timing;

use core::ffi::{CStr, c_int, c_void};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

use cache::dump;
use comgr::Compiler;
use compiler::gcn::{Blocks, Kernarg, Launch, Packing, Target, Variables};
use compiler::ir::GlobalId;
use cuda_abi::CUfunction_attribute;
use hip_sys::{self as hip, hipFunction_t, hipModule_t};
use parking_lot::Mutex;

use crate::image::Failure;
use crate::object::linked::{KernelInfo, Linked};
use crate::object::{Context, Device, Shared, memory};
use crate::{Error, Result};

/// A module's code in one context.
pub struct Code {
    target: Target,
    variables: Variables,
    /// Where they lie; 0 when there are none.
    base: u64,
    device: &'static Device,
    /// One for each kernel that was asked for.
    loaded: Mutex<Vec<Shared<hipModule_t>>>,
    /// Kernels for larger blocks than their usual code has room for.
    large: Mutex<HashMap<CString, (Shared<hipFunction_t>, Kernel)>>,
    /// Kernels that could not be had, CUDA's answer, and why.
    refused: Mutex<HashMap<CString, (Error, String)>>,
}

/// What the driver knows of a kernel that was compiled.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    kernarg: Kernarg,
    variables: u64,
    multiprocessors: u32,
    tick: u64,
    /// It may fail, assert or print: a launch needs a buffer for that.
    pub uses_services: bool,
    /// It asks the device runtime: a launch needs a queue, and is waited for.
    pub uses_queue: bool,
    /// What it asks of other kernels stands in the queue.
    pub asks_of_kernels: bool,
    /// It calls `malloc`: a launch needs the context's heap.
    pub uses_heap: bool,
    registers: u32,
    lds_bytes: u32,
    scratch_bytes: u32,
    packing: Packing,
    /// Threads of CUDA's that a block can have.
    pub max_threads: u32,
}

/// What a launch says besides its parameters.
#[derive(Clone, Copy)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    /// Address; of a cooperative grid, else 0.
    pub workspace: u64,
    /// Address of the services buffer, or 0.
    pub services: u64,
    /// Address of the heap of `malloc`, or 0.
    pub heap: u64,
    /// Address of the queue of what comes after the grid, or 0.
    pub queue: u64,
    /// The graph for the device that it is part of, or 0.
    pub graph: u64,
}

impl Code {
    /// Puts the module's variables into the device's memory. Kernels come later, one by one.
    pub fn load(linked: &Linked, context: &'static Context) -> Result<Code> {
        let target = target(context.device)?;
        let globals = linked.globals_of_code();
        let variables = Variables::of(globals);
        let base = allocate(context, variables.bytes(), globals.iter().any(|global| global.managed))?;
        let code = Code {
            target,
            base,
            device: context.device,
            loaded: Mutex::default(),
            large: Mutex::default(),
            refused: Mutex::default(),
            variables,
        };
        if base != 0 {
            let written = code.initialise(globals, context);
            if let Err(error) = written {
                let _ = free(context, base);
                return Err(error);
            }
        }
        Ok(code)
    }

    fn initialise(&self, globals: &[compiler::program::Global], context: &Context) -> Result {
        let bytes = usize::try_from(self.variables.bytes()).map_err(|_| Error::OutOfMemory)?;
        let hip = context.hip();
        // SAFETY: the block was just allocated with so many bytes; no stream in particular is asked for.
        unsafe { hip.hipMemsetD8Async(memory::raw(self.base), 0, bytes, core::ptr::null_mut()) }?;
        // SAFETY: a plain call.
        unsafe { hip.hipDeviceSynchronize() }?;
        for (offset, piece) in self.variables.initial(globals, self.base) {
            let to = memory::raw(self.base + offset);
            // SAFETY: a variable's bytes into its place in the block.
            unsafe { hip.hipMemcpy(to, piece.as_ptr().cast(), piece.len(), hip::hipMemcpyHostToDevice) }?;
        }
        Ok(())
    }

    /// Whether so many bytes are those of variables.
    pub fn holds(&self, at: u64, bytes: u64) -> bool {
        let len = self.variables.bytes();
        at >= self.base && at - self.base <= len && bytes <= len - (at - self.base)
    }

    /// Where a variable lies.
    pub fn variable(&self, id: GlobalId) -> u64 {
        self.base + self.variables.offset(id)
    }

    /// The kernel, compiled and loaded.
    pub fn function(
        &self,
        linked: &Linked,
        info: &KernelInfo,
        context: &'static Context,
    ) -> Result<(Shared<hipFunction_t>, Kernel)> {
        // Another compiler may be there the next time; what a compiler refused it refuses again.
        let known = self.refused.lock().get(&info.name).map(|(error, _)| *error);
        if let Some(error) = known.filter(|error| *error != Error::JitCompilerNotFound) {
            return Err(error);
        }
        self.make(linked, info, context, Blocks::Declared)
    }

    /// Why the kernel could not be had when it was asked for.
    pub fn refusal(&self, name: &CStr) -> Option<String> {
        self.refused.lock().get(name).map(|(_, why)| why.clone())
    }

    /// The same for blocks that the usual code has no room for, when one is launched for the first time.
    pub fn for_large_blocks(
        &self,
        linked: &Linked,
        info: &KernelInfo,
        context: &'static Context,
    ) -> Result<(Shared<hipFunction_t>, Kernel)> {
        if let Some(&known) = self.large.lock().get(&info.name) {
            return Ok(known);
        }
        tracing::warn!(
            target: "cudaway::driver",
            "{} is launched in blocks of more than {} threads: two warps share a wave, and one that waits in a loop for \
             the other waits forever",
            info.name.to_string_lossy(), Packing::Alone.most_threads()
        );
        let made = self.make(linked, info, context, Blocks::Large)?;
        Ok(*self.large.lock().entry(info.name.clone()).or_insert(made))
    }

    fn make(
        &self,
        linked: &Linked,
        info: &KernelInfo,
        context: &'static Context,
        blocks: Blocks,
    ) -> Result<(Shared<hipFunction_t>, Kernel)> {
        let made = self.compile(linked, info, blocks);
        let (object, symbol, kernel) = made.map_err(|Failure { error, message }| {
            let name = info.name.to_string_lossy();
            tracing::error!(
                target: "cudaway::driver", "kernel {name} cannot be had for {}: {message}", self.target
            );
            self.refused.lock().insert(info.name.clone(), (error, message));
            error
        })?;
        let mut module: hipModule_t = core::ptr::null_mut();
        // SAFETY: a writable handle; the object is whole and lives through the call.
        unsafe { context.hip().hipModuleLoadData(&mut module, object.as_ptr().cast()) }?;
        self.loaded.lock().push(Shared(module));
        let mut function: hipFunction_t = core::ptr::null_mut();
        // SAFETY: a writable handle, a live module, a C string.
        unsafe { context.hip().hipModuleGetFunction(&mut function, module, symbol.as_ptr()) }?;
        Ok((Shared(function), kernel))
    }

    /// The kernel's code object, its name in there, and what it says of itself.
    fn compile(
        &self,
        linked: &Linked,
        info: &KernelInfo,
        blocks: Blocks,
    ) -> core::result::Result<(Vec<u8>, CString, Kernel), Failure> {
        let code = linked.gfx_code(info, &self.target, blocks)?;
        let name = info.name.to_string_lossy();
        if code.lanes_may_wait {
            tracing::warn!(
                target: "cudaway::driver",
                "{name} has a loop in which lanes of a warp may wait for each other; on AMD GPUs that may never end"
            );
        }
        dump::keep(&name, &format!("{}.ll", self.target.processor()), code.text.as_bytes());
        let request = comgr::Request {
            name: &name,
            target: self.target.name(),
            text: &code.text,
            translator: compiler::TRANSLATOR,
        };
        let object = Compiler::global().compile(&request).map_err(|error| failure(&error))?;
        dump::keep(&name, &format!("{}.co", self.target.processor()), &object.bytes);
        let damaged = |message: &str| Failure { error: Error::InvalidPtx, message: message.to_owned() };
        let facts = object.kernel(&code.symbol).ok_or_else(|| damaged("the code object lacks it"))?;
        // HIP reads as many bytes from a launch as the code object says.
        if facts.kernarg_bytes != code.kernarg.bytes {
            return Err(damaged("the code object takes other arguments"));
        }
        // Dynamic shared memory begins where the code takes it to.
        if facts.lds_bytes != code.shared_bytes {
            return Err(damaged("the code object takes other LDS"));
        }
        let symbol = CString::new(code.symbol).map_err(|_| damaged("its name has a zero in it"))?;
        let kernel = Kernel {
            kernarg: code.kernarg,
            variables: self.base,
            multiprocessors: multiprocessors(self.device),
            tick: tick(self.device),
            uses_services: code.uses_services,
            uses_queue: code.uses_queue,
            asks_of_kernels: code.asks_of_kernels,
            uses_heap: code.uses_heap,
            registers: facts.vgprs,
            lds_bytes: facts.lds_bytes,
            scratch_bytes: facts.scratch_bytes,
            packing: code.packing,
            max_threads: match code.packing {
                Packing::Dense => facts.max_threads,
                Packing::Alone => code.most_threads,
            },
        };
        Ok((object.bytes, symbol, kernel))
    }

    /// Gives everything back; the first error is the answer.
    pub fn dispose(&self, context: &Context) -> Result {
        if services::has_waiting(context.id()) {
            // What its kernels said is in its memory.
            // SAFETY: a plain call. Whatever it says, nothing of this module can be used any more.
            let _ = unsafe { context.hip().hipDeviceSynchronize() };
            services::read_all();
        }
        let mut answer = Ok(());
        for module in self.loaded.lock().drain(..) {
            // SAFETY: its only unload.
            let unloaded = unsafe { context.hip().hipModuleUnload(module.0) };
            answer = answer.and(unloaded.map_err(Error::from));
        }
        if self.base != 0 {
            answer = answer.and(free(context, self.base));
        }
        answer
    }
}

fn target(device: &Device) -> Result<Target> {
    device.arch.parse().map_err(|error| {
        tracing::error!(target: "cudaway::driver", "{}: {error}", device.name);
        Error::NoBinaryForGpu
    })
}

/// CUDA's answer to what the compiler said.
fn failure(error: &comgr::Error) -> Failure {
    let answer = match error {
        comgr::Error::NoHelper(_) | comgr::Error::NoCompiler { .. } => Error::JitCompilerNotFound,
        comgr::Error::Refused { .. }
        | comgr::Error::Crashed { .. }
        | comgr::Error::TimedOut { .. }
        | comgr::Error::Undefined(_)
        | comgr::Error::Damaged(_) => Error::InvalidPtx,
    };
    Failure { error: answer, message: error.to_string() }
}

/// A module with a managed variable has all of them in managed memory.
fn allocate(context: &Context, bytes: u64, is_managed: bool) -> Result<u64> {
    let bytes = usize::try_from(bytes).map_err(|_| Error::OutOfMemory)?;
    if bytes == 0 {
        return Ok(0);
    }
    let mut at: *mut c_void = core::ptr::null_mut();
    if is_managed {
        // SAFETY: `at` is writable.
        unsafe { context.hip().hipMallocManaged(&mut at, bytes, hip::hipMemAttachGlobal) }?;
    } else {
        // SAFETY: `at` is writable.
        unsafe { context.hip().hipMalloc(&mut at, bytes) }?;
    }
    Ok(memory::device_pointer(at))
}

fn free(context: &Context, base: u64) -> Result {
    // SAFETY: `allocate` got it, and this is its only release.
    Ok(unsafe { context.hip().hipFree(memory::raw(base)) }?)
}

impl Kernel {
    /// What the code object says, by CUDA's number; `None` is for HIP to say.
    pub fn attribute(&self, attribute: CUfunction_attribute) -> Option<c_int> {
        let value = match attribute {
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK => self.max_threads,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES => self.lds_bytes,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES => self.scratch_bytes,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS => self.registers,
            // Constant variables are the module's, not in its code objects.
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES => 0,
            _ => return None,
        };
        Some(c_int::try_from(value).unwrap_or(c_int::MAX))
    }

    /// The block that HIP is told for CUDA's, or `None` where this code has no room for it.
    pub fn launched_block(&self, block: [u32; 3]) -> Option<[u32; 3]> {
        let threads = block.iter().fold(1u32, |all, &n| all.saturating_mul(n));
        (threads <= self.packing.most_threads()).then(|| self.packing.block(block))
    }

    /// Threads that HIP is told for a block of CUDA's, or `None` where there is no code for so many.
    pub fn launched_threads(&self, threads: u32) -> Option<u32> {
        let fits = threads <= self.packing.most_threads();
        // Larger blocks are dense.
        let launched = if fits { self.packing.threads(threads) } else { threads };
        (threads <= self.max_threads).then_some(launched)
    }

    /// The whole kernarg segment, for parameters that lie in `params` as PTX lays them out.
    pub fn segment(&self, params: &[u8], shape: &Shape) -> Vec<u8> {
        static GRIDS: AtomicU64 = AtomicU64::new(1);
        let launch = Launch {
            variables: self.variables,
            services: shape.services,
            workspace: shape.workspace,
            grid_id: GRIDS.fetch_add(1, Ordering::Relaxed),
            tick: self.tick,
            grid: shape.grid,
            block: shape.block,
            dynamic_shared: shape.dynamic_shared,
            multiprocessors: self.multiprocessors,
            heap: shape.heap,
            queue: shape.queue,
            graph: shape.graph,
        };
        self.kernarg.fill(params, &launch)
    }
}

fn multiprocessors(device: &Device) -> u32 {
    let asked = device.hip_attribute(hip::hipDeviceAttributeMultiprocessorCount);
    asked.and_then(|n| u32::try_from(n).ok()).unwrap_or(1)
}

/// Nanoseconds of a tick of the GPU's constant clock, times 2^32.
fn tick(device: &Device) -> u64 {
    // HIP differs: providers before 5.3 do not tell the clock's rate, which is 100 MHz on most GPUs and 25 MHz on the others.
    let slow = ["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c"];
    let usual = if slow.iter().any(|name| device.arch.starts_with(name)) { 25_000 } else { 100_000 };
    let asked = device.hip_attribute(hip::hipDeviceAttributeWallClockRate);
    let khz = asked.and_then(|khz| u64::try_from(khz).ok()).filter(|&khz| khz > 0).unwrap_or(usual);
    (1_000_000 << 32) / khz
}
