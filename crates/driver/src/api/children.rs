//! What kernels on AMD GPUs launch, copy and fill, graphs among it: run here when the grid that asked for it has ended.
//!
//! HIP differs: its kernels launch none. So a kernel that may launch is waited for by its own launch, and what it has asked for is
//! put into its stream before that call returns, each with all that comes of it: what the program puts there afterwards comes later.
//! Such a launch does not return before its kernel has ended, so that one waits forever that waits for what its own thread does next.

use core::ffi::c_uint;

use compiler::device_runtime::order::{Standing, run_all};
use compiler::gcn::children::{Facts, Header, N_LIMITS};
use cuda_abi::{CUdevice_attribute, CUfunction_attribute, CUlimit, CUmodule};
use hip_sys::hipMemcpyDefault;

use super::context::limit_of;
use super::device::attribute;
use super::execution::{Manner, Shape, gfx};
use super::{module, occupancy};
use crate::object::gfx::heap;
use crate::object::gfx::queue::{Launch, Place, Queue, Work};
use crate::object::gfx::services;
use crate::object::graph::fired;
use crate::object::module::Module;
use crate::object::{Context, Function, Stream, memory};
use crate::{Error, Result};

/// `cudaDeviceAttr`s that kernels may ask for: those that size launches, which the CPU device tells, too.
const ATTRIBUTES: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 39, 81, 97];
const BLOCKS_PER_MULTIPROCESSOR: u32 = 106;

/// Launches that may be outstanding.
fn limit(context: &'static Context) -> Result<usize> {
    limit_of(context, CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT)
}

/// A queue for a launch of the function, of that standing.
pub(super) fn queue(function: &Function, standing: Standing) -> Result<Queue> {
    let context = function.context;
    let room = standing.room(limit(context)?);
    let module = Module::from_handle(function.module.0)?;
    let asks = function.gfx.is_some_and(|kernel| kernel.asks_of_kernels);
    let settings = asks.then(Function::settings_version);
    let facts = || asks.then(|| facts(&module, function.module.0, context));
    Queue::take(
        context,
        function.module.0,
        || Header { facts: facts(), ..header(&module, context) },
        settings,
        room,
    )
}

fn header(module: &Module, context: &'static Context) -> Header {
    let bounds = &context.device.bounds;
    // In the order of `cudaLimit`'s numbers: those that a kernel may ask for.
    let limits: [Option<u64>; N_LIMITS as usize] = [
        None,
        limit_of(context, CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE).ok(),
        limit_of(context, CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE).ok(),
        None,
        limit(context).ok(),
    ]
    .map(|value| value.map(|value| value as u64));
    let numbers = ATTRIBUTES.into_iter().chain([BLOCKS_PER_MULTIPROCESSOR]);
    let attributes =
        numbers.filter_map(|number| Some((number, attribute(context.device, CUdevice_attribute(number))?)));
    let kernels = module.linked.kernels_of_code().iter().map(|kernel| {
        let most = kernel.max_threads().unwrap_or(bounds.threads_per_block);
        (most, kernel.params_bytes, kernel.req_ntid.unwrap_or_default())
    });
    Header {
        tail_room: 0,
        most_grid: bounds.grid,
        most_block: bounds.block,
        most_threads: bounds.threads_per_block,
        most_shared: bounds.shared_per_block_optin,
        limits,
        attributes: attributes.collect(),
        kernels: kernels.collect(),
        facts: None,
    }
}

/// What a kernel may ask of each kernel of its module, which is compiled for that.
fn facts(module: &Module, handle: CUmodule, context: &'static Context) -> Vec<Option<Facts>> {
    let all = attribute(
        context.device,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    );
    let multiprocessor_shared = all.map_or(0, i32::cast_unsigned);
    let of_one = |number| {
        let function = Function::from_handle(module.kernel_at(handle, number).ok()?).ok()?;
        let word = |number: u32| {
            let asked = module::attribute(&function, CUfunction_attribute(number));
            asked.unwrap_or(0).cast_unsigned()
        };
        let mut attributes = [0; 36];
        // Bytes of shared, constant and local memory, of 64 bits each; then words as the host is told them: threads, registers,
        // versions, caching, dynamic shared memory, carveout, clusters.
        for (nth, number) in [1, 2, 3].into_iter().enumerate() {
            attributes[2 * nth] = word(number);
        }
        for (nth, number) in [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 14].into_iter().enumerate() {
            attributes[6 + nth] = word(number);
        }
        let blocks = core::array::from_fn(|nth| {
            let n_threads = 32 * (nth as i32 + 1);
            let held = occupancy::active_blocks(&function, n_threads, 0).unwrap_or(0);
            u16::try_from(held).unwrap_or(0)
        });
        Some(Facts {
            attributes,
            blocks,
            shared: word(1),
            most_dynamic: u32::try_from(occupancy::most_shared(&function).ok()?).unwrap_or(u32::MAX),
            multiprocessor_shared,
        })
    };
    (0..module.linked.kernels_of_code().len()).map(of_one).collect()
}

/// Runs what came of a launch of the function by the host. What goes wrong is its context's error, as a fault of its kernel.
pub(super) fn run(function: &Function, stream: &Stream, first: Vec<(Work, Standing)>) {
    if first.is_empty() {
        return;
    }
    let context = function.context;
    let ran = run_all(first, |work, standing| {
        // What has failed launches nothing more.
        services::read_all();
        context.check_fault()?;
        match work {
            Work::Launch(asked) => launch(function, stream, asked, standing),
            Work::Copy { to, from, extent } => {
                copy(context, function, stream, [to, from], extent).map(|()| vec![])
            }
            Work::Fill { to, value, extent } => {
                fill(context, function, stream, to, value, extent).map(|()| vec![])
            }
            Work::Graph { graph, mode } => fired::launch(graph, mode).map(|()| vec![]),
        }
    });
    if let Err(error) = ran {
        context.fail(error);
    }
}

/// A launch by a kernel of the function's module.
fn launch(
    parent: &Function,
    stream: &Stream,
    asked: Launch,
    standing: Standing,
) -> Result<Vec<(Work, Standing)>> {
    let module = Module::from_handle(parent.module.0)?;
    let header = module.linked.kernels_of_code().get(asked.kernel).ok_or(Error::LaunchFailed)?;
    let mut params = asked.params;
    params.resize((header.params_bytes as usize).max(params.len()), 0);
    let shape = Shape { grid: asked.grid, block: asked.block, shared_bytes: asked.dynamic_shared };
    let launched = module.kernel_at(parent.module.0, asked.kernel).and_then(|handle| {
        let child = Function::from_handle(handle)?;
        let launchable = Function::launchable(handle)?;
        let manner = Manner::of_cluster(launchable.cluster());
        gfx::launch(&child, &launchable, shape, stream, &params, manner, standing)
    });
    launched.map_err(|error| {
        tracing::error!(
            target: "cudaway::driver",
            "kernel {}, launched by a kernel, cannot run: {error:?}", header.name
        );
        Error::LaunchFailed
    })
}

/// Whether the kernel may use the box: memory of an allocation, of its module's variables, or of the heap.
fn check(context: &Context, function: &Function, place: Place, [width, height, depth]: [u64; 3]) -> Result {
    let rows = (height - 1).checked_mul(place.pitch);
    let slices = (depth - 1).checked_mul(place.slice);
    let bytes = rows.zip(slices).and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(width));
    let is_its = bytes.is_some_and(|bytes| {
        let is_variable =
            || Module::from_handle(function.module.0).is_ok_and(|module| module.holds(place.at, bytes));
        heap::holds(context, place.at, bytes) || is_variable() || is_allocated(place.at, bytes)
    });
    if is_its {
        return Ok(());
    }
    tracing::error!(target: "cudaway::driver", "a kernel copies or fills what is no memory of the device");
    Err(Error::IllegalAddress)
}

fn is_allocated(at: u64, bytes: u64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| memory::check(at, bytes, "a kernel's").is_ok())
}

/// The slices of a box.
fn slices(place: Place, depth: u64) -> impl Iterator<Item = u64> {
    (0..depth).map(move |nth| place.at + nth * place.slice)
}

fn copy(
    context: &'static Context,
    function: &Function,
    stream: &Stream,
    [to, from]: [Place; 2],
    extent: [u64; 3],
) -> Result {
    if extent.contains(&0) {
        return Ok(());
    }
    check(context, function, to, extent)?;
    check(context, function, from, extent)?;
    let [width, height, depth] = extent.map(|side| side as usize);
    let (hip, queue) = (context.hip(), stream.hip.0);
    for (to_slice, from_slice) in slices(to, depth as u64).zip(slices(from, depth as u64)) {
        let (target, source) = (memory::raw(to_slice), memory::raw(from_slice));
        if height == 1 {
            // SAFETY: both lie in memory that was looked up.
            unsafe { hip.hipMemcpyAsync(target, source, width, hipMemcpyDefault, queue) }?;
        } else {
            let pitches = [to.pitch as usize, from.pitch as usize];
            // SAFETY: as above, all rows of it.
            unsafe {
                hip.hipMemcpy2DAsync(
                    target,
                    pitches[0],
                    source,
                    pitches[1],
                    width,
                    height,
                    hipMemcpyDefault,
                    queue,
                )
            }?;
        }
    }
    Ok(())
}

fn fill(
    context: &'static Context,
    function: &Function,
    stream: &Stream,
    to: Place,
    value: u8,
    extent: [u64; 3],
) -> Result {
    if extent.contains(&0) {
        return Ok(());
    }
    check(context, function, to, extent)?;
    let [width, height, depth] = extent.map(|side| side as usize);
    let (hip, queue) = (context.hip(), stream.hip.0);
    for slice in slices(to, depth as u64) {
        let target = memory::raw(slice);
        if height == 1 {
            // SAFETY: it lies in memory that was looked up.
            unsafe { hip.hipMemsetD8Async(target, value, width, queue) }?;
        } else {
            let value = c_uint::from(value).cast_signed();
            // SAFETY: as above, all rows of it.
            unsafe { hip.hipMemset2DAsync(target, to.pitch as usize, value, width, height, queue) }?;
        }
    }
    Ok(())
}
