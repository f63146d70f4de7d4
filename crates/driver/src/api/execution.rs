//! Execution Control: launches. These are the calls whose cost is measured (benches/forward.rs).

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use compiler::device_runtime::order::Standing;
use cuda_abi::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END,
    CUDA_KERNEL_NODE_PARAMS, CUevent, CUfunction, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUlaunchConfig, CUstream,
};
use hip_sys::{
    HIP_LAUNCH_CONFIG, HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END,
    hipLaunchAttribute, hipLaunchAttributeClusterDimension, hipLaunchAttributeCooperative,
    hipLaunchAttributeValue,
};

use super::children;
use crate::object::gfx::graphs;
use crate::object::gfx::timing::timed;
use crate::object::graph::capture::{captured, captured_event_record};
use crate::object::graph::device::{self, Updatable, Use};
use crate::object::graph::fired;
use crate::object::graph::{Arguments, Kernel, Op, Params};
use crate::object::module::Launchable;
use crate::object::{Event, Function, Stream, library};
use crate::{Error, Result};

/// Shape of a launch.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared_bytes: c_uint,
}

impl Shape {
    /// What CUDA refuses before a launch.
    #[inline]
    fn check(&self, function: &Launchable) -> Result {
        let bounds = &function.context.device.bounds;
        let [x, y, z] = self.block;
        // CUDA: an empty dimension, or one beyond the device's maximum, is an invalid value.
        let in_bounds = |size: [c_uint; 3], most: [u32; 3]| {
            size.iter().zip(most).all(|(&size, most)| size > 0 && size <= most)
        };
        if !in_bounds(self.block, bounds.block) {
            return Err(Error::InvalidValue("blockDim"));
        }
        if !in_bounds(self.grid, bounds.grid) {
            return Err(Error::InvalidValue("gridDim"));
        }
        let n_threads = u64::from(x) * u64::from(y) * u64::from(z);
        if n_threads > u64::from(bounds.threads_per_block) {
            return Err(Error::InvalidValue("blockDim: too many threads"));
        }
        // CUDA: more threads than the kernel's own bound (.maxntid) allows is an invalid value too.
        if n_threads > u64::from(function.max_threads) {
            return Err(Error::InvalidValue("blockDim: more threads than the kernel allows"));
        }
        // CUDA: more than every block gets only for a function that was allowed to (cuFuncSetAttribute).
        if self.shared_bytes > function.dynamic_shared {
            return Err(Error::InvalidValue("sharedMemBytes"));
        }
        Ok(())
    }
}

/// Attributes that stay with a kernel node; the others say how a launch stands to its stream.
pub(crate) fn is_kept(id: CUlaunchAttributeID) -> bool {
    matches!(
        id,
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            | device::DEVICE_UPDATABLE
    )
}

/// How the blocks of a launch stand to each other.
#[derive(Clone, Copy, Default)]
pub(super) struct Manner {
    /// All of them run at the same time.
    is_cooperative: bool,
    /// They come in groups of these dimensions, which the launch asked for.
    cluster: Option<[c_uint; 3]>,
}

impl Manner {
    pub(super) fn of_cluster(cluster: Option<[c_uint; 3]>) -> Manner {
        Manner { is_cooperative: false, cluster }
    }

    /// What CUDA says of clusters before a launch.
    #[inline]
    fn check(&self, grid: [c_uint; 3], function: &Launchable) -> Result {
        let Some(cluster) = self.cluster.or(function.cluster()) else {
            return if function.must_have_cluster { Err(Error::InvalidClusterSize) } else { Ok(()) };
        };
        // CUDA: a kernel compiled for one cluster size is launched with no other.
        let is_other = function.cluster().is_some_and(|own| own != cluster);
        let divides = grid.iter().zip(cluster).all(|(&blocks, size)| size > 0 && blocks % size == 0);
        let n_blocks = cluster.iter().fold(1, |n: c_uint, &size| n.saturating_mul(size));
        if is_other || !divides || n_blocks > function.most_in_cluster {
            return Err(Error::InvalidClusterSize);
        }
        Ok(())
    }

    /// The attributes that a graph's node has: those of the launch, and what the call itself says.
    fn with(&self, attributes: &[CUlaunchAttribute]) -> Vec<CUlaunchAttribute> {
        let mut attributes: Vec<_> = attributes.iter().filter(|known| is_kept(known.id)).copied().collect();
        let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        if self.is_cooperative && !attributes.iter().any(|known| known.id == id) {
            let value = CUlaunchAttributeValue { cooperative: 1 };
            attributes.push(CUlaunchAttribute { id, pad: [0; 4], value });
        }
        attributes
    }

    /// As HIP takes it, and how many of the places are used.
    fn attributes(&self) -> ([hipLaunchAttribute; 2], usize) {
        let unused = hipLaunchAttribute { id: 0, pad: 0, value: hipLaunchAttributeValue { cooperative: 0 } };
        let (mut attributes, mut n) = ([unused; 2], 0);
        let mut push = |id, value| {
            attributes[n] = hipLaunchAttribute { id, pad: 0, value };
            n += 1;
        };
        if self.is_cooperative {
            push(hipLaunchAttributeCooperative, hipLaunchAttributeValue { cooperative: 1 });
        }
        if let Some(clusterDim) = self.cluster {
            push(hipLaunchAttributeClusterDimension, hipLaunchAttributeValue { clusterDim });
        }
        (attributes, n)
    }
}

/// `extra` as HIP takes it.
///
/// HIP differs: the list ends with 3 there, with 0 here.
struct Extra([*mut c_void; 5]);

impl Extra {
    /// # Safety
    /// `extra` is a list that CUDA would take.
    unsafe fn read(extra: *mut *mut c_void) -> Result<Extra> {
        let mut buffer = core::ptr::null_mut();
        let mut size = core::ptr::null_mut();
        let mut at = extra;
        loop {
            // SAFETY: the caller's list ends with CU_LAUNCH_PARAM_END; each tag has a value behind it.
            let tag = unsafe { *at };
            if tag == CU_LAUNCH_PARAM_END {
                break;
            }
            // SAFETY: as above.
            let value = unsafe { *at.add(1) };
            if tag == CU_LAUNCH_PARAM_BUFFER_POINTER {
                buffer = value;
            } else if tag == CU_LAUNCH_PARAM_BUFFER_SIZE {
                size = value;
            } else {
                return Err(Error::InvalidValue("extra"));
            }
            // SAFETY: as above.
            at = unsafe { at.add(2) };
        }
        if buffer.is_null() || size.is_null() {
            return Err(Error::InvalidValue("extra"));
        }
        Ok(Extra([
            HIP_LAUNCH_PARAM_BUFFER_POINTER,
            buffer,
            HIP_LAUNCH_PARAM_BUFFER_SIZE,
            size,
            HIP_LAUNCH_PARAM_END,
        ]))
    }
}

/// Copies a launch's arguments to their places in the parameter buffer.
///
/// # Safety
/// `kernel_params` or `extra` are what a launch of a kernel with these parameters would take.
unsafe fn gather(
    params: &[(usize, usize)],
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    to: &mut [u8],
) -> Result {
    let packed = if extra.is_null() {
        None
    } else {
        // SAFETY: the caller's promise.
        let Extra([_, from, _, size, _]) = unsafe { Extra::read(extra) }?;
        // SAFETY: CUDA's contract: the size belongs to the buffer.
        Some((from.cast::<u8>(), unsafe { *size.cast::<usize>() }))
    };
    if packed.is_none() && kernel_params.is_null() && !params.is_empty() {
        return Err(Error::InvalidValue("kernelParams"));
    }
    for (index, &(offset, len)) in params.iter().enumerate() {
        let from = match packed {
            Some((_, size)) if offset + len > size => return Err(Error::InvalidValue("extra")),
            // SAFETY: inside the program's buffer.
            Some((from, _)) => unsafe { from.add(offset) },
            // SAFETY: CUDA's contract: one pointer per parameter.
            None => unsafe { *kernel_params.add(index) }.cast::<u8>(),
        };
        // SAFETY: CUDA's contract: `len` bytes of an argument.
        to[offset..offset + len].copy_from_slice(unsafe { core::slice::from_raw_parts(from, len) });
    }
    Ok(())
}

/// Bytes that a kernel's parameters take.
fn params_bytes(params: &[(usize, usize)]) -> usize {
    params.iter().map(|(offset, len)| offset + len).max().unwrap_or(0)
}

impl Arguments {
    /// # Safety
    /// `kernel_params` or `extra` are what a launch of a kernel with these parameters would take.
    unsafe fn copy(
        params: &[(usize, usize)],
        kernel_params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> Result<Arguments> {
        let len_bytes = params_bytes(params);
        let mut buffer = vec![0u128; len_bytes.div_ceil(16)];
        let start = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: the buffer is at least as long.
        let bytes = unsafe { core::slice::from_raw_parts_mut(start, len_bytes) };
        // SAFETY: the caller's promise.
        unsafe { gather(params, kernel_params, extra, bytes) }?;
        // SAFETY: inside the buffer.
        let pointers = params.iter().map(|&(offset, _)| unsafe { start.add(offset) }.cast()).collect();
        Ok(Arguments { buffer, pointers })
    }
}

/// A launch that happens later, with the arguments as they are now.
///
/// # Safety
/// `kernel_params` and `extra` are NULL, or what CUDA's launches take: the kernel's parameters, and a list that ends.
unsafe fn kernel_op(
    f: CUfunction,
    shape: Shape,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    attributes: Vec<CUlaunchAttribute>,
) -> Result<Arc<Op>> {
    let manner = Wishes::read(&attributes)?.manner;
    let updatable = Updatable::of(&attributes)?;
    let function = Function::from_handle(f)?;
    let launchable = Function::launchable(f)?;
    shape.check(&launchable)?;
    manner.check(shape.grid, &launchable)?;
    // SAFETY: the caller's promise.
    let arguments = Arc::new(unsafe { Arguments::copy(&function.info.params, kernel_params, extra) }?);
    // CUDA: a node names a function or a kernel.
    let is_kernel = library::function_of(f)?.is_some();
    let (func, kern) = if is_kernel { (core::ptr::null_mut(), f.cast()) } else { (f, core::ptr::null_mut()) };
    let ([gridDimX, gridDimY, gridDimZ], [blockDimX, blockDimY, blockDimZ]) = (shape.grid, shape.block);
    let kernel = Kernel {
        params: CUDA_KERNEL_NODE_PARAMS {
            func,
            gridDimX,
            gridDimY,
            gridDimZ,
            blockDimX,
            blockDimY,
            blockDimZ,
            sharedMemBytes: shape.shared_bytes,
            kernelParams: arguments.pointers.as_ptr().cast_mut(),
            extra: core::ptr::null_mut(),
            kern,
            ctx: launchable.context.handle(),
        },
        attributes,
        arguments,
        context_id: launchable.context.id(),
        is_cooperative: manner.is_cooperative,
        name: function.info.name.to_string_lossy().into_owned(),
        updatable,
    };
    let run = move |params: &Params, stream| match params {
        Params::Kernel(kernel) => {
            let CUDA_KERNEL_NODE_PARAMS { func, kern, kernelParams, .. } = kernel.params;
            let f = if func.is_null() { kern.cast() } else { func };
            // SAFETY: the node keeps its parameters.
            unsafe { launch(f, shape, stream, kernelParams, core::ptr::null_mut(), manner, &[]) }
        }
        _ => Ok(()),
    };
    Ok(Op::new(Params::Kernel(kernel), run))
}

/// The launch of a graph's kernel node.
pub(crate) fn node_op(node: &CUDA_KERNEL_NODE_PARAMS, attributes: Vec<CUlaunchAttribute>) -> Result<Arc<Op>> {
    let shape = Shape {
        grid: [node.gridDimX, node.gridDimY, node.gridDimZ],
        block: [node.blockDimX, node.blockDimY, node.blockDimZ],
        shared_bytes: node.sharedMemBytes,
    };
    // CUDA: parameters come in one of the two ways.
    if !node.kernelParams.is_null() && !node.extra.is_null() {
        return Err(Error::InvalidValue("kernelParams and extra"));
    }
    // CUDA: the kernel is named by a function or, without one, by a CUkernel.
    let f = if node.func.is_null() { node.kern.cast() } else { node.func };
    // SAFETY: CUDA's contract for the structure's parameters.
    unsafe { kernel_op(f, shape, node.kernelParams, node.extra, attributes) }
}

/// # Safety
/// `kernel_params` and `extra` are NULL, or what CUDA's launches take: the kernel's parameters, and a list that ends.
#[inline]
pub(super) unsafe fn launch(
    f: CUfunction,
    shape: Shape,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    manner: Manner,
    attributes: &[CUlaunchAttribute],
) -> Result {
    // SAFETY: the caller's promise.
    let later = || unsafe { kernel_op(f, shape, kernel_params, extra, manner.with(attributes)) };
    if captured(stream, later)? {
        return Ok(());
    }
    // CUDA: only what is captured becomes a node.
    if attributes.iter().any(|attribute| attribute.id == device::DEVICE_UPDATABLE) {
        return Err(Error::InvalidValue("attrs: a device-updatable node outside of a capture"));
    }
    let function = Function::launchable(f)?;
    let stream = Stream::from_handle(stream)?;
    // CUDA: function and stream belong to the same context.
    if !core::ptr::eq(stream.context, function.context) {
        return Err(Error::InvalidHandle("hStream: of another context than the function"));
    }
    shape.check(&function)?;
    manner.check(shape.grid, &function)?;
    let manner = Manner { cluster: manner.cluster.or(function.cluster()), ..manner };
    if function.is_gfx {
        // CUDA: parameters come in one of the two ways.
        if !extra.is_null() && !kernel_params.is_null() {
            return Err(Error::InvalidValue("kernelParams and extra"));
        }
        let whole = Function::from_handle(f)?;
        let params = &whole.info.params;
        let mut bytes = vec![0; params_bytes(params)];
        // SAFETY: the caller's promise.
        unsafe { gather(params, kernel_params, extra, &mut bytes) }?;
        let mut shape = shape;
        if let Some(turn) = Use::take() {
            // CUDA: a node that kernels change is launched as they have made it.
            let said = graphs::Launch { grid: shape.grid, arguments: bytes };
            let Some(now) = turn.now(said)? else { return Ok(()) };
            (shape.grid, bytes) = (now.grid, now.arguments);
        }
        let next = gfx::launch(&whole, &function, shape, &stream, &bytes, manner, Standing::default())?;
        children::run(&whole, &stream, next);
        return Ok(());
    }
    if manner.cluster.is_some() || (manner.is_cooperative && !extra.is_null()) {
        // SAFETY: the caller's promise.
        return unsafe { launch_with_attributes(&function, shape, &stream, kernel_params, extra, manner) };
    }
    if manner.is_cooperative {
        // SAFETY: the caller's promise.
        return unsafe { cooperative(&function, shape, &stream, kernel_params) };
    }
    if extra.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { plain(&function, shape, &stream, kernel_params, core::ptr::null_mut()) };
    }
    // CUDA: parameters come in one of the two ways.
    if !kernel_params.is_null() {
        return Err(Error::InvalidValue("kernelParams and extra"));
    }
    // SAFETY: the caller's promise: a list.
    let mut extra = unsafe { Extra::read(extra) }?;
    // SAFETY: the caller's promise.
    unsafe { plain(&function, shape, &stream, kernel_params, extra.0.as_mut_ptr()) }
}

/// The parameters come as HIP asks for them, in one of the two ways.
///
/// # Safety
/// `kernel_params` and `extra` are NULL, or what CUDA's launches take: the kernel's parameters, and a list that ends.
#[inline]
unsafe fn plain(
    function: &Launchable,
    shape: Shape,
    stream: &Stream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = shape;
    // SAFETY: function and stream are alive; the caller's promise for the parameters is HIP's contract.
    Ok(unsafe {
        function.context.hip().hipModuleLaunchKernel(
            function.hip.0,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            shared_bytes,
            stream.hip.0,
            kernel_params,
            extra,
        )
    }?)
}

/// HIP differs: a cooperative launch takes a list of parameters only.
///
/// # Safety
/// `kernel_params` is NULL, or has the kernel's parameters.
unsafe fn cooperative(
    function: &Launchable,
    shape: Shape,
    stream: &Stream,
    kernel_params: *mut *mut c_void,
) -> Result {
    let Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = shape;
    // SAFETY: as for `plain`.
    Ok(unsafe {
        function.context.hip().hipModuleLaunchCooperativeKernel(
            function.hip.0,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            shared_bytes,
            stream.hip.0,
            kernel_params,
        )
    }?)
}

/// Launches on AMD GPUs: the kernarg segment is made here, whole, since the code object's metadata calls it one argument.
pub(super) mod gfx {
    use super::*;
    use crate::api::context::malloc_heap_bytes;
    use crate::object::gfx::heap;
    use crate::object::gfx::queue::{Queue, Work};
    use crate::object::gfx::services::Buffer;
    use crate::object::{gfx, memory};

    /// Launches in the code that there is for such blocks. Gives what the kernel has asked for, of one that may ask when it has ended.
    pub fn launch(
        whole: &Function,
        function: &Launchable,
        shape: Shape,
        stream: &Stream,
        params: &[u8],
        manner: Manner,
        standing: Standing,
    ) -> Result<Vec<(Work, Standing)>> {
        let kernel = whole.gfx.as_ref().ok_or(Error::InvalidHandle("f"))?;
        let queue = kernel.uses_queue.then(|| children::queue(whole, standing)).transpose()?;
        let address = queue.as_ref().map_or(0, Queue::address);
        let launched = timed(&whole.info.name, stream, || {
            if kernel.launched_block(shape.block).is_some() {
                return launch_in(function, kernel, shape, stream, params, manner, address);
            }
            // CUDA: a kernel that needs too much of something for so many threads.
            let n_threads = shape.block.iter().product::<c_uint>();
            if n_threads > kernel.max_threads {
                tracing::error!(
                    target: "cudaway::driver",
                    "{} cannot be launched in blocks of more than {} threads on this GPU: each of its warps takes a wave of 64 \
                     lanes, because they meet at barriers for a part of the block",
                    whole.info.name.to_string_lossy(), kernel.max_threads
                );
                return Err(Error::LaunchOutOfResources);
            }
            let (hip, kernel) = whole.for_large_blocks()?;
            let mut large = *function;
            large.hip = hip;
            launch_in(&large, &kernel, shape, stream, params, manner, address)
        });
        match (queue, launched) {
            (None, launched) => launched.map(|()| vec![]),
            (Some(queue), Ok(())) => queue.read(stream, standing),
            (Some(queue), Err(error)) => {
                queue.put_back();
                Err(error)
            }
        }
    }

    fn launch_in(
        function: &Launchable,
        kernel: &gfx::Kernel,
        shape: Shape,
        stream: &Stream,
        params: &[u8],
        manner: Manner,
        queue: u64,
    ) -> Result {
        if manner.cluster.is_some_and(|size| size != [1; 3]) {
            return Err(Error::NotSupported("clusters of blocks on AMD GPUs"));
        }
        let Shape { grid, block, shared_bytes } = shape;
        let shape = Shape { block: kernel.launched_block(block).unwrap_or(block), ..shape };
        let heap = match kernel.uses_heap {
            true => heap::of(function.context, || malloc_heap_bytes(function.context))?,
            false => 0,
        };
        let services = kernel.uses_services.then(|| Buffer::take(function.context)).transpose()?;
        let address = services.as_ref().map_or(0, Buffer::address);
        let told = gfx::Shape {
            grid,
            block,
            dynamic_shared: shared_bytes,
            workspace: 0,
            services: address,
            heap,
            queue,
            graph: fired::current_graph(),
        };
        let launched = if manner.is_cooperative {
            Workspace::new(stream).and_then(|workspace| {
                let told = gfx::Shape { workspace: memory::device_pointer(workspace.at), ..told };
                let mut segment = kernel.segment(params, &told);
                // SAFETY: the segment is alive, and the one parameter.
                unsafe { cooperative(function, shape, stream, [segment.as_mut_ptr().cast()].as_mut_ptr()) }
            })
        } else {
            with_segment(function, shape, stream, &mut kernel.segment(params, &told))
        };
        match services {
            Some(buffer) if launched.is_ok() => buffer.follow(stream),
            Some(buffer) => {
                buffer.put_back();
                launched
            }
            None => launched,
        }
    }

    fn with_segment(function: &Launchable, shape: Shape, stream: &Stream, segment: &mut [u8]) -> Result {
        let mut len_bytes = segment.len();
        let mut extra = [
            HIP_LAUNCH_PARAM_BUFFER_POINTER,
            segment.as_mut_ptr().cast(),
            HIP_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut len_bytes).cast(),
            HIP_LAUNCH_PARAM_END,
        ];
        // SAFETY: a list that ends, of the segment.
        unsafe { plain(function, shape, stream, core::ptr::null_mut(), extra.as_mut_ptr()) }
    }

    /// Where the blocks of a cooperative grid meet: its bytes, and a word that begins as 0 (docs/architecture.md). It comes
    /// and goes in the stream's order.
    struct Workspace<'s> {
        stream: &'s Stream,
        at: *mut c_void,
    }

    impl<'s> Workspace<'s> {
        const BYTES: u32 = 8;

        fn new(stream: &'s Stream) -> Result<Workspace<'s>> {
            let mut at = core::ptr::null_mut();
            // SAFETY: `at` is writable, the stream is alive.
            unsafe { stream.hip().hipMallocAsync(&mut at, Self::BYTES as usize, stream.hip.0) }?;
            let workspace = Workspace { stream, at };
            for (word, value) in [Self::BYTES, 0].into_iter().enumerate() {
                let to = at.wrapping_byte_add(4 * word);
                // SAFETY: one of the two words that were just allocated.
                unsafe { stream.hip().hipMemsetD32Async(to, value.cast_signed(), 1, stream.hip.0) }?;
            }
            Ok(workspace)
        }
    }

    impl Drop for Workspace<'_> {
        fn drop(&mut self) {
            // SAFETY: the stream frees it when the launch is done. There is nobody to tell if it does not.
            let _ = unsafe { self.stream.hip().hipFreeAsync(self.at, self.stream.hip.0) };
        }
    }
}

/// A launch that only HIP's extended call can describe.
///
/// # Safety
/// `kernel_params` and `extra` are NULL, or what CUDA's launches take: the kernel's parameters, and a list that ends.
unsafe fn launch_with_attributes(
    function: &Launchable,
    shape: Shape,
    stream: &Stream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    manner: Manner,
) -> Result {
    let (mut attributes, n_attributes) = manner.attributes();
    let config = HIP_LAUNCH_CONFIG {
        gridDimX: shape.grid[0],
        gridDimY: shape.grid[1],
        gridDimZ: shape.grid[2],
        blockDimX: shape.block[0],
        blockDimY: shape.block[1],
        blockDimZ: shape.block[2],
        sharedMemBytes: shape.shared_bytes,
        hStream: stream.hip.0,
        attrs: attributes.as_mut_ptr(),
        numAttrs: n_attributes as c_uint,
    };
    let mut packed = if extra.is_null() {
        None
    } else if kernel_params.is_null() {
        // SAFETY: the caller's promise: a list.
        Some(unsafe { Extra::read(extra) }?)
    } else {
        return Err(Error::InvalidValue("kernelParams and extra"));
    };
    let extra = packed.as_mut().map_or(core::ptr::null_mut(), |extra| extra.0.as_mut_ptr());
    // SAFETY: function and stream are alive; the caller's promise for the parameters is HIP's contract.
    Ok(unsafe { function.context.hip().hipDrvLaunchKernelEx(&config, function.hip.0, kernel_params, extra) }?)
}

/// # Safety
/// `kernelParams` and `extra` are NULL, or what CUDA's launches take: the kernel's parameters, and a list that ends.
pub unsafe fn cuLaunchKernel(
    f: CUfunction,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    hStream: CUstream,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let shape = Shape {
        grid: [gridDimX, gridDimY, gridDimZ],
        block: [blockDimX, blockDimY, blockDimZ],
        shared_bytes: sharedMemBytes,
    };
    // SAFETY: the caller's promise.
    unsafe { launch(f, shape, hStream, kernelParams, extra, Manner::default(), &[]) }
}

/// All blocks of a cooperative launch run at the same time, so that they may wait for each other.
///
/// # Safety
/// `kernelParams` is NULL, or has the kernel's parameters.
pub unsafe fn cuLaunchCooperativeKernel(
    f: CUfunction,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    hStream: CUstream,
    kernelParams: *mut *mut c_void,
) -> Result {
    let shape = Shape {
        grid: [gridDimX, gridDimY, gridDimZ],
        block: [blockDimX, blockDimY, blockDimZ],
        shared_bytes: sharedMemBytes,
    };
    let manner = Manner { is_cooperative: true, cluster: None };
    // SAFETY: the caller's promise.
    unsafe { launch(f, shape, hStream, kernelParams, core::ptr::null_mut(), manner, &[]) }
}

/// What a launch's attributes ask for beyond a plain launch.
#[derive(Default)]
struct Wishes {
    manner: Manner,
    /// Recorded behind the launch: when all blocks have begun is not known earlier than when they ended.
    event: Option<CUevent>,
}

impl Wishes {
    fn read(attributes: &[CUlaunchAttribute]) -> Result<Wishes> {
        let mut wishes = Wishes::default();
        for attribute in attributes {
            match attribute.id {
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => {
                    // SAFETY: the member that belongs to the id is the one set.
                    wishes.manner.is_cooperative = unsafe { attribute.value.cooperative } != 0;
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                    // SAFETY: the member that belongs to the id is the one set.
                    let cluster = unsafe { attribute.value.clusterDim };
                    // A node's attributes that were copied from one without say 0.
                    let size = [cluster.x, cluster.y, cluster.z];
                    wishes.manner.cluster = (size != [0; 3]).then_some(size);
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                    // SAFETY: the member that belongs to the id is the one set.
                    wishes.event = Some(unsafe { attribute.value.launchCompletionEvent.event });
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
                    // SAFETY: the member that belongs to the id is the one set.
                    wishes.event = Some(unsafe { attribute.value.programmaticEvent.event });
                }
                device::DEVICE_UPDATABLE
                    if device::asked_of(attribute).is_some_and(|(asked, _)| !matches!(asked, 0 | 1)) =>
                {
                    return Err(Error::InvalidValue("deviceUpdatableKernelNode.deviceUpdatable"));
                }
                // Hints: where to keep data, how eagerly to start, which kernel goes first.
                CUlaunchAttributeID(_) => {}
            }
        }
        Ok(wishes)
    }
}

impl Wishes {
    fn of(config: &CUlaunchConfig) -> Result<Wishes> {
        Wishes::read(attributes(config)?)
    }
}

fn attributes(config: &CUlaunchConfig) -> Result<&[CUlaunchAttribute]> {
    match config.numAttrs as usize {
        0 => Ok(&[]),
        _ if config.attrs.is_null() => Err(Error::InvalidValue("config.attrs")),
        // SAFETY: CUDA's contract: `numAttrs` entries.
        n => Ok(unsafe { core::slice::from_raw_parts(config.attrs.cast_const(), n) }),
    }
}

/// The cluster that a configuration asks for.
pub(crate) fn cluster_of(config: &CUlaunchConfig) -> Result<Option<[c_uint; 3]>> {
    Ok(Wishes::of(config)?.manner.cluster)
}

/// # Safety
/// `kernelParams` and `extra` are NULL, or what CUDA's launches take: the kernel's parameters, and a list that ends.
pub unsafe fn cuLaunchKernelEx(
    config: &CUlaunchConfig,
    f: CUfunction,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let wishes = Wishes::of(config)?;
    let shape = Shape {
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        shared_bytes: config.sharedMemBytes,
    };
    let given = attributes(config)?;
    let asks =
        |attribute: &CUlaunchAttribute| device::asked_of(attribute).is_some_and(|(asked, _)| asked == 1);
    if let Some(place) = given.iter().position(asks) {
        // A node of its own, whatever handle the program has left there. It lives in the node's work.
        let node = Updatable::new(Function::launchable(f)?.context)?;
        let mut own = given.to_vec();
        own[place] = node.attribute();
        // SAFETY: the caller's promise.
        unsafe { launch(f, shape, config.hStream, kernelParams, extra, wishes.manner, &own) }?;
        // SAFETY: one of the program's attributes, in which CUDA's contract has the handle returned.
        unsafe { config.attrs.add(place).write(own[place]) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { launch(f, shape, config.hStream, kernelParams, extra, wishes.manner, given) }?;
    }
    if let Some(event) = wishes.event {
        if captured_event_record(event, config.hStream)? {
            return Ok(());
        }
        let event = Event::from_handle(event)?;
        let stream = Stream::from_handle(config.hStream)?;
        // SAFETY: both are alive.
        unsafe { stream.hip().hipEventRecord(event.hip.0, stream.hip.0) }?;
    }
    Ok(())
}

/// CUDA: only where CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH is 1, which no device is any more; deprecated since CUDA 11.3.
pub fn cuLaunchCooperativeKernelMultiDevice(
    launchParamsList: *mut cuda_abi::CUDA_LAUNCH_PARAMS,
    numDevices: c_uint,
    flags: c_uint,
) -> Result {
    crate::process::driver()?;
    if launchParamsList.is_null() || numDevices == 0 || flags & !3 != 0 {
        return Err(Error::InvalidValue("launchParamsList, numDevices or flags"));
    }
    Err(Error::NotSupported("cuLaunchCooperativeKernelMultiDevice: grids of several devices cannot meet"))
}
