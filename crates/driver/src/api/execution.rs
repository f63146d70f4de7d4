//! Execution Control: launches. These are the calls whose cost is measured (benches/forward.rs).

use core::ffi::{c_int, c_uint, c_void};

use cuda_abi::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END, CUevent, CUfunction,
    CUhostFn, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig, CUstream,
};
use hip_sys::{HIP_LAUNCH_PARAM_BUFFER_POINTER, HIP_LAUNCH_PARAM_BUFFER_SIZE, HIP_LAUNCH_PARAM_END};

use crate::object::module::Launchable;
use crate::object::{Event, Function, Stream};
use crate::{Error, Result};

/// Shape of a launch.
#[derive(Clone, Copy)]
struct Shape {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
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
        if self.shared_bytes > bounds.shared_per_block_optin {
            return Err(Error::InvalidValue("sharedMemBytes"));
        }
        Ok(())
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

#[inline]
fn launch(
    f: CUfunction,
    shape: Shape,
    stream: CUstream,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    is_cooperative: bool,
) -> Result {
    let function = Function::launchable(f)?;
    let stream = Stream::from_handle(stream)?;
    // CUDA: function and stream belong to the same context.
    if !core::ptr::eq(stream.context, function.context) {
        return Err(Error::InvalidHandle("hStream: of another context than the function"));
    }
    shape.check(&function)?;
    let Shape { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes } = shape;
    let hip = function.context.hip();
    if is_cooperative {
        // SAFETY: function and stream are alive; CUDA's contract for the parameters is HIP's.
        return Ok(unsafe {
            hip.hipModuleLaunchCooperativeKernel(
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
        }?);
    }
    if extra.is_null() {
        // SAFETY: as above.
        return Ok(unsafe {
            hip.hipModuleLaunchKernel(
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
                core::ptr::null_mut(),
            )
        }?);
    }
    // CUDA: parameters come in one of the two ways.
    if !kernel_params.is_null() {
        return Err(Error::InvalidValue("kernelParams and extra"));
    }
    // SAFETY: CUDA's contract for the list.
    let mut extra = unsafe { Extra::read(extra) }?;
    // SAFETY: as above.
    Ok(unsafe {
        hip.hipModuleLaunchKernel(
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
            extra.0.as_mut_ptr(),
        )
    }?)
}

pub fn cuLaunchKernel(
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
    launch(f, shape, hStream, kernelParams, extra, false)
}

/// All blocks of a cooperative launch run at the same time, so that they may wait for each other.
pub fn cuLaunchCooperativeKernel(
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
    launch(f, shape, hStream, kernelParams, core::ptr::null_mut(), true)
}

/// What a launch's attributes ask for beyond a plain launch.
#[derive(Default)]
struct Wishes {
    is_cooperative: bool,
    /// Recorded behind the launch: when all blocks have begun is not known earlier than when they ended.
    event: Option<CUevent>,
}

impl Wishes {
    fn read(attributes: &[CUlaunchAttribute]) -> Result<Wishes> {
        let mut wishes = Wishes::default();
        for attribute in attributes {
            // SAFETY (all unions): CUDA's contract: the member that belongs to the id is the one set.
            match attribute.id {
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE => {
                    wishes.is_cooperative = unsafe { attribute.value.cooperative } != 0;
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                    let cluster = unsafe { attribute.value.clusterDim };
                    if (cluster.x.max(1), cluster.y.max(1), cluster.z.max(1)) != (1, 1, 1) {
                        return Err(Error::NotSupported("cuLaunchKernelEx: clusters of more than one block"));
                    }
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                    wishes.event = Some(unsafe { attribute.value.launchCompletionEvent.event });
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT => {
                    wishes.event = Some(unsafe { attribute.value.programmaticEvent.event });
                }
                CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => {
                    return Err(Error::NotSupported("cuLaunchKernelEx: device-updatable kernel nodes"));
                }
                // Hints: where to keep data, how eagerly to start, which kernel goes first.
                CUlaunchAttributeID(_) => {}
            }
        }
        Ok(wishes)
    }
}

pub fn cuLaunchKernelEx(
    config: *const CUlaunchConfig,
    f: CUfunction,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    // SAFETY: CUDA's contract: a readable structure.
    let config = unsafe { cuda_abi::out::borrow(config, "config") }?;
    let attributes = match config.numAttrs as usize {
        0 => &[],
        _ if config.attrs.is_null() => return Err(Error::InvalidValue("config.attrs")),
        // SAFETY: CUDA's contract: `numAttrs` entries.
        n => unsafe { core::slice::from_raw_parts(config.attrs.cast_const(), n) },
    };
    let wishes = Wishes::read(attributes)?;
    let shape = Shape {
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        shared_bytes: config.sharedMemBytes,
    };
    launch(f, shape, config.hStream, kernelParams, extra, wishes.is_cooperative)?;
    if let Some(event) = wishes.event {
        let event = Event::from_handle(event)?;
        let stream = Stream::from_handle(config.hStream)?;
        // SAFETY: both are alive.
        unsafe { stream.hip().hipEventRecord(event.hip.0, stream.hip.0) }?;
    }
    Ok(())
}

/// Runs `fn_` on the host when the stream gets there. It may not call CUDA.
pub fn cuLaunchHostFunc(hStream: CUstream, fn_: CUhostFn, userData: *mut c_void) -> Result {
    if fn_.is_none() {
        return Err(Error::InvalidValue("fn"));
    }
    let stream = Stream::from_handle(hStream)?;
    // SAFETY: the stream is alive; both ABIs have the same function type.
    Ok(unsafe { stream.hip().hipLaunchHostFunc(stream.hip.0, fn_, userData) }?)
}

/// `syncMode` says how the stream waits for the function; there is one way.
pub fn cuLaunchHostFunc_v2(
    hStream: CUstream,
    fn_: CUhostFn,
    userData: *mut c_void,
    _syncMode: c_uint,
) -> Result {
    cuLaunchHostFunc(hStream, fn_, userData)
}

/// Deprecated since CUDA 4: the shape and parameters set on the function before. Nothing sets them.
pub fn cuLaunchGrid(_f: CUfunction, _grid_width: c_int, _grid_height: c_int) -> Result {
    Err(Error::NotSupported("cuLaunchGrid: use cuLaunchKernel"))
}
