//! Launches: arguments are copied at the call, checks are made there, blocks run when the stream gets to them.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use compiler::back::cpu::steps;
use compiler::device_runtime::order::{self, Standing};
use compiler::program::Header;
use hip_sys::*;

use crate::device::{self, MAX_BLOCK, MAX_GRID, SHARED_OPTIN};
use crate::error::Result;
use crate::exec::children::{Asked, Children, Work};
use crate::exec::sanitize::{self, Run};
use crate::exec::{self, Fault, Grid, Launch, Workspace, pool, services::SERVICES};
use crate::graph::Environment;
use crate::module::{self, Function, Module};
use crate::node;
use crate::profile;
use crate::stream::{Op, Stream};

/// A launch in a stream's queue. Used again for later launches, so it allocates nothing when warm.
#[derive(Default)]
pub struct Launched {
    code: Option<Arc<exec::Kernel>>,
    function: Option<Arc<Function>>,
    /// PTX's param space.
    params: Vec<exec::ParamLine>,
    shape: Shape,
    /// Blocks of a cluster.
    cluster: [u32; 3],
    explicit_cluster: bool,
    shared_bytes: u32,
    /// Nanoseconds that the longest block takes in baseline code; `None` where nobody knows.
    block_ns: Option<u64>,
    /// Among what kernels have launched.
    standing: Standing,
    /// Of a node that kernels change.
    node: Option<node::Use>,
}

/// What a launch says besides its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    /// All blocks are to be resident together.
    pub cooperative: bool,
    /// Blocks of a cluster, where the launch says so.
    pub cluster: Option<[u32; 3]>,
}

/// Blocks that a cluster has at most (more than 8 only where the program allows it, which is the driver's business).
pub const MAX_CLUSTER: u32 = 16;

/// The arguments as `hipModuleLaunchKernel` got them.
#[derive(Clone, Copy)]
pub struct Arguments {
    pub params: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// Checks, compiles at the first launch with a block shape, and queues.
///
/// # Safety
/// `arguments` are HIP's for this function.
pub unsafe fn launch(
    function: &Arc<Function>,
    shape: Shape,
    stream: &Arc<Stream>,
    arguments: Arguments,
) -> Result {
    let node = node::take_next();
    check(function, &shape)?;
    let cluster = cluster(function, &shape)?;
    if shape.cooperative {
        check_resident(function, &shape)?;
    }
    let code = function.code(shape.block, cluster != [1; 3])?;
    let mut launched = stream.record();
    // SAFETY: the caller's promise.
    unsafe { launched.take_arguments(function, arguments)? };
    launched.shape = shape;
    launched.block_ns = launched.foretold(&code);
    launched.code = Some(code);
    launched.node = node;
    launched.function = Some(function.clone());
    launched.cluster = cluster;
    launched.explicit_cluster = shape.cluster.or(function.header().cluster.required).is_some();
    launched.shared_bytes = exec::shared_bytes(&function.facts().shared, shape.dynamic_shared);
    stream.enqueue(Op::Launch(launched));
    Ok(())
}

/// Blocks of this launch's clusters.
fn cluster(function: &Function, shape: &Shape) -> Result<[u32; 3]> {
    let rules = function.header().cluster;
    let cluster = match (rules.required, shape.cluster) {
        // PTX: a launch may repeat what the kernel requires, and nothing else.
        (Some(required), Some(asked)) if required != asked => return Err(hipErrorInvalidConfiguration),
        (Some(required), _) => required,
        (None, Some(asked)) => asked,
        (None, None) if rules.explicit => return Err(hipErrorInvalidConfiguration),
        (None, None) => return Ok([1; 3]),
    };
    let n_blocks = cluster.iter().try_fold(1u32, |n, &size| n.checked_mul(size));
    let most = rules.max_rank.unwrap_or(MAX_CLUSTER).min(MAX_CLUSTER);
    let divides = shape.grid.iter().zip(cluster).all(|(&grid, size)| size > 0 && grid % size == 0);
    if divides && n_blocks.is_some_and(|n| n <= most) {
        Ok(cluster)
    } else {
        Err(hipErrorInvalidConfiguration)
    }
}

/// A cooperative grid may have as many blocks as the occupancy calls promise.
fn check_resident(function: &Function, shape: &Shape) -> Result {
    let n_threads = shape.block.iter().product();
    let per_core = blocks_per_core(function, n_threads, shape.dynamic_shared);
    let most = u64::from(per_core) * device::get().n_cores as u64;
    let n_blocks: u64 = shape.grid.iter().map(|&n| u64::from(n)).product();
    if n_blocks > most { Err(hipErrorCooperativeLaunchTooLarge) } else { Ok(()) }
}

/// Blocks with so many threads that one core's limits would hold at once.
pub fn blocks_per_core(function: &Function, n_threads: u32, dynamic_shared: u32) -> u32 {
    if n_threads == 0 || n_threads > function.max_threads() {
        return 0;
    }
    let shared = exec::shared_bytes(&function.facts().shared, dynamic_shared);
    if shared > SHARED_OPTIN {
        return 0;
    }
    let by_shared = device::SHARED_PER_CORE / (shared + device::SHARED_RESERVED);
    let by_threads = device::THREADS_PER_CORE / n_threads.next_multiple_of(32);
    by_shared.min(by_threads).min(device::BLOCKS_PER_CORE)
}

fn check(function: &Function, shape: &Shape) -> Result {
    check_sides(function.header(), shape)?;
    if exec::shared_bytes(&function.facts().shared, shape.dynamic_shared) > SHARED_OPTIN {
        return Err(hipErrorInvalidValue);
    }
    Ok(())
}

/// Whether the kernel takes such a grid and such blocks.
pub fn check_sides(kernel: &Header, shape: &Shape) -> Result {
    let Shape { grid, block, .. } = *shape;
    let within = |dims: [u32; 3], most: [u32; 3]| dims.iter().zip(most).all(|(&n, most)| n >= 1 && n <= most);
    if !within(grid, MAX_GRID) || !within(block, MAX_BLOCK) {
        return Err(hipErrorInvalidValue);
    }
    let n_threads: u32 = block.iter().product();
    if n_threads > device::MAX_THREADS || kernel.req_ntid.is_some_and(|wanted| wanted != block) {
        return Err(hipErrorInvalidValue);
    }
    if n_threads > module::max_threads(kernel) {
        return Err(hipErrorLaunchOutOfResources);
    }
    Ok(())
}

/// Runs what kernels of the module have asked for, one after the other, each with all that comes of it: its children, then its tail. A
/// fault, or what cannot be done, is the device's error and ends it.
pub fn run_asked(module: &Arc<Module>, waiting: Vec<(Work, Standing)>) {
    let ran: Result = order::run_all(waiting, |work, standing| {
        device::healthy()?;
        match work {
            Work::Launch(asked, params) => {
                let launched = Launched::inside(module, asked, params, standing).map_err(|error| {
                    let name = &module.header(asked.kernel).name;
                    tracing::error!(target: "cudaway::cpu", "kernel {name}, launched by a kernel, cannot run: {error:?}");
                    device::fail_with(hipErrorLaunchFailure);
                    hipErrorLaunchFailure
                })?;
                Ok(launched.execute_alone(None).map(Children::into_work).unwrap_or_default())
            }
            Work::Copy { .. } | Work::Fill { .. } => {
                work.move_bytes().inspect_err(|&error| {
                    tracing::error!(target: "cudaway::cpu", "a kernel copies or fills what is no memory of the device");
                    device::fail_with(error);
                })?;
                Ok(vec![])
            }
        }
    });
    // The device has the error.
    let _ = ran;
}

impl Launched {
    /// Copies the arguments into the parameter buffer.
    unsafe fn take_arguments(&mut self, function: &Function, arguments: Arguments) -> Result {
        let kernel = function.header();
        let bytes = kernel.params_bytes as usize;
        self.params.clear();
        self.params.resize(bytes / size_of::<exec::ParamLine>() + 1, exec::ParamLine::default());
        let buffer = self.params.as_mut_ptr().cast::<u8>();
        if !arguments.params.is_null() {
            for (i, param) in kernel.params.iter().enumerate() {
                // SAFETY: HIP's contract: one pointer per parameter, each to a value of the parameter's type; the
                // parameter lies inside the buffer.
                unsafe {
                    let from = arguments.params.add(i).read();
                    if from.is_null() {
                        return Err(hipErrorInvalidValue);
                    }
                    let to = buffer.add(param.offset as usize);
                    to.copy_from_nonoverlapping(from.cast::<u8>(), param.bytes as usize);
                }
            }
            return Ok(());
        }
        if arguments.extra.is_null() {
            return if kernel.params.is_empty() { Ok(()) } else { Err(hipErrorInvalidValue) };
        }
        let (mut packed, mut packed_bytes) = (std::ptr::null_mut::<c_void>(), 0usize);
        let mut at = arguments.extra;
        loop {
            // SAFETY: HIP's contract: pairs of tag and value up to the end tag. CUDA's end tag is 0.
            let tag = unsafe { at.read() };
            if tag == HIP_LAUNCH_PARAM_END || tag.is_null() {
                break;
            }
            // SAFETY: as above.
            let value = unsafe { at.add(1).read() };
            if tag == HIP_LAUNCH_PARAM_BUFFER_POINTER {
                packed = value;
            } else if tag == HIP_LAUNCH_PARAM_BUFFER_SIZE {
                if value.is_null() {
                    return Err(hipErrorInvalidValue);
                }
                // SAFETY: the size tag's value points to a size.
                packed_bytes = unsafe { value.cast::<usize>().read() };
            } else {
                return Err(hipErrorInvalidValue);
            }
            // SAFETY: as above.
            at = unsafe { at.add(2) };
        }
        // Callers may pass trailing padding.
        if packed.is_null() && bytes > 0 || packed_bytes < bytes {
            return Err(hipErrorInvalidValue);
        }
        if bytes > 0 {
            // SAFETY: the caller's buffer has `packed_bytes`, at least as many as are copied.
            unsafe { buffer.copy_from_nonoverlapping(packed.cast::<u8>(), bytes) };
        }
        Ok(())
    }

    /// Runs the grid, and what it launches; a fault becomes the device's sticky error. In an environment it is part of a graph, and may
    /// launch others.
    pub fn execute(&self, environment: Option<&Arc<Environment>>) {
        if let Some(node) = &self.node {
            if let Some(mut now) = node.now(self) {
                now.block_ns = now.code.as_ref().and_then(|code| now.foretold(code));
                now.execute(environment);
            }
            return;
        }
        let asked = self.execute_alone(environment);
        if let (Some(function), Some(asked)) = (&self.function, asked) {
            run_asked(&function.module, asked.into_work());
        }
    }

    /// A launch by a kernel of the module.
    fn inside(
        module: &Arc<Module>,
        Asked { kernel, shape }: Asked,
        params: Vec<exec::ParamLine>,
        standing: Standing,
    ) -> Result<Launched> {
        let function = module::function_of_handle(module.function(&module.header(kernel).name)?)?;
        check(&function, &shape)?;
        let cluster = cluster(&function, &shape)?;
        let mut launched = Launched {
            code: None,
            block_ns: None,
            shared_bytes: exec::shared_bytes(&function.facts().shared, shape.dynamic_shared),
            explicit_cluster: function.header().cluster.required.is_some(),
            function: Some(function.clone()),
            params,
            shape,
            cluster,
            standing,
            node: None,
        };
        let code = function.code(shape.block, cluster != [1; 3])?;
        launched.block_ns = launched.foretold(&code);
        launched.code = Some(code);
        Ok(launched)
    }

    /// What its code may take of a thread's stack for frames.
    pub fn stack_bytes(&self) -> usize {
        self.code.as_ref().map_or(0, |code| code.most_stack_bytes())
    }

    /// Nanoseconds that the longest block takes in the code, where that is baseline code and what the launch says decides it.
    fn foretold(&self, code: &exec::Kernel) -> Option<u64> {
        let params = exec::ParamLine::bytes(&self.params);
        code.queue(&steps::Launch { params, grid: self.shape.grid, block: self.shape.block })
    }

    /// Runs the grid; what it has asked for.
    fn execute_alone(&self, environment: Option<&Arc<Environment>>) -> Option<Children> {
        let (Some(code), Some(function)) = (&self.code, &self.function) else { return None };
        let children = Children::new(function.module.clone(), self.standing, environment.cloned());
        static GRID_ID: AtomicU64 = AtomicU64::new(1);
        let module: &Module = &function.module;
        let workspace = Workspace::new();
        let launch = Launch {
            params: self.params.as_ptr().cast(),
            globals: module.addresses(),
            services: &raw const SERVICES,
            grid: self.shape.grid,
            block: self.shape.block,
            dynamic_shared: self.shape.dynamic_shared,
            workers: pool::workers() as u32,
            grid_id: GRID_ID.fetch_add(1, Ordering::Relaxed),
            functions: std::ptr::null(),
            workspace: if self.shape.cooperative { &raw const workspace } else { std::ptr::null() },
            cluster: self.cluster,
            explicit_cluster: self.explicit_cluster.into(),
            children: &raw const children,
            graph: environment.map_or(0, |environment| environment.graph),
        };
        let watched = config::get().sanitize.then(|| function.watched());
        let watched = watched.map(|program| Run::new(program, &program.kernels[0], &launch));
        let grid = Grid {
            kernel: code,
            launch: &launch,
            shared_bytes: self.shared_bytes,
            tensor_memory: function.facts().shared.tensor_memory,
            sanitizer: watched.as_ref(),
            block_ns: self.block_ns,
        };
        let start = profile::is_wanted().then(Instant::now);
        let fault = exec::run(&grid).err();
        if let Some(start) = start {
            profile::ran(&function.header().name, self.shape.block, code.best(), start.elapsed());
        }
        function.reconsider(code, self.shape.block);
        if let Some(fault) = fault {
            self.report(fault);
        }
        // What the sanitizer found came first.
        if let Some(code) = watched.and_then(|run| run.finish(fault)) {
            device::fail_with(code);
        }
        if let Some(fault) = fault {
            device::fail(fault);
            return None;
        }
        Some(children)
    }

    fn report(&self, fault: Fault) {
        let Some(function) = &self.function else { return };
        let name = &function.header().name;
        let Shape { grid, block, .. } = self.shape;
        let places = match fault {
            Fault::Deadlock(stuck) => sanitize::places(stuck, function.module.linked.lines(), block),
            _ => vec![],
        };
        let places: String = places.iter().map(|place| format!("; {place}")).collect();
        tracing::error!(target: "cudaway::cpu", "kernel {name}, grid {grid:?}, block {block:?}: {fault}{places}");
    }

    /// Lets go of what it ran.
    pub fn clear(&mut self) {
        self.code = None;
        self.function = None;
        self.node = None;
    }

    /// The same, run as it is.
    pub fn without_node(&self) -> Launched {
        Launched {
            code: self.code.clone(),
            function: self.function.clone(),
            params: self.params.clone(),
            node: None,
            ..*self
        }
    }

    /// What the kernel takes, as PTX lays it out.
    pub fn arguments(&self) -> &[u8] {
        &exec::ParamLine::bytes(&self.params)[..self.argument_bytes()]
    }

    pub fn arguments_mut(&mut self) -> &mut [u8] {
        let bytes = self.argument_bytes();
        &mut exec::ParamLine::bytes_mut(&mut self.params)[..bytes]
    }

    fn argument_bytes(&self) -> usize {
        self.function.as_ref().map_or(0, |function| function.header().params_bytes as usize)
    }

    /// Whether it could be launched with such a grid.
    pub fn can_have_grid(&self, grid: [u32; 3]) -> bool {
        let shape = Shape { grid, ..self.shape };
        self.function.as_ref().is_some_and(|function| {
            check(function, &shape).is_ok()
                && cluster(function, &shape).is_ok()
                && (!shape.cooperative || check_resident(function, &shape).is_ok())
        })
    }

    pub fn set_grid(&mut self, grid: [u32; 3]) {
        self.shape.grid = grid;
    }
}
