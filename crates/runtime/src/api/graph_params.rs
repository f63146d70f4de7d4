//! Parameters of graph nodes, between the runtime's structures and the driver's.
//!
//! Kernels are host functions' addresses here and kernel handles there; copies count an array's elements here and bytes
//! there; the rest has the same bytes under other names.

use core::ffi::c_void;
use std::ptr;

use cuda_abi::runtime::{
    cudaArray_t, cudaExecutionContext_t, cudaExtent, cudaGraphNodeType, cudaKernelNodeParams,
    cudaMemcpy3DParms, cudaMemcpyKind, cudaPitchedPtr, cudaPos, dim3, v12, v13,
};
use cuda_abi::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEMCPY_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS_v2,
    CUgraphChildGraphNodeOwnership, CUgraphNodeParams, CUgraphNodeType, CUmemorytype,
};

use super::execution::check_dimensions;
use super::execution_context::driver_context;
use super::memory::{address, boxes, element, pointer};
use crate::driver::Driver;
use crate::{Error, Result, device, registry};

/// CUDA: bad dimensions are an invalid value for a node, and the kernel is one that was registered.
pub fn kernel(params: &cudaKernelNodeParams) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    device::attach()?;
    let kern = registry::kernel(params.func)?;
    check_dimensions(params.gridDim, params.blockDim)?;
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: ptr::null_mut(),
        gridDimX: params.gridDim.x,
        gridDimY: params.gridDim.y,
        gridDimZ: params.gridDim.z,
        blockDimX: params.blockDim.x,
        blockDimY: params.blockDim.y,
        blockDimZ: params.blockDim.z,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
        kern,
        ctx: ptr::null_mut(),
    })
}

/// The function is the one the program registered, if it was the program's.
pub fn kernel_back(params: &CUDA_KERNEL_NODE_PARAMS) -> cudaKernelNodeParams {
    let handle: *mut c_void = if params.kern.is_null() { params.func.cast() } else { params.kern.cast() };
    cudaKernelNodeParams {
        func: registry::host_of(params.kern).unwrap_or(handle),
        gridDim: dim3 { x: params.gridDimX, y: params.gridDimY, z: params.gridDimZ },
        blockDim: dim3 { x: params.blockDimX, y: params.blockDimY, z: params.blockDimZ },
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
    }
}

/// A copy of bytes as the structure for three dimensions.
pub fn row(dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind) -> cudaMemcpy3DParms {
    let place = |ptr| cudaPitchedPtr { ptr, pitch: count, xsize: count, ysize: 1 };
    cudaMemcpy3DParms {
        srcPtr: place(src.cast_mut()),
        dstPtr: place(dst),
        extent: cudaExtent { width: count, height: 1, depth: 1 },
        kind,
        ..Default::default()
    }
}

pub fn copy(parms: &cudaMemcpy3DParms) -> Result<CUDA_MEMCPY3D> {
    boxes(device::attach()?, parms)
}

pub fn copy_back(driver: &Driver, copy: &CUDA_MEMCPY3D) -> Result<cudaMemcpy3DParms> {
    let array = |kind, array: cudaArray_t| match kind {
        CUmemorytype::CU_MEMORYTYPE_ARRAY => array,
        _ => ptr::null_mut(),
    };
    let srcArray = array(copy.srcMemoryType, copy.srcArray.cast());
    let dstArray = array(copy.dstMemoryType, copy.dstArray.cast());
    let (source, target) = (element(driver, srcArray)?, element(driver, dstArray)?);
    let place = |kind, host: *mut c_void, device, pitch, ysize| {
        let ptr = match kind {
            CUmemorytype::CU_MEMORYTYPE_ARRAY => return cudaPitchedPtr::default(),
            CUmemorytype::CU_MEMORYTYPE_HOST => host,
            _ => pointer(device),
        };
        cudaPitchedPtr { ptr, pitch, xsize: copy.WidthInBytes, ysize }
    };
    let host = |kind| match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => Some(true),
        CUmemorytype::CU_MEMORYTYPE_UNIFIED => None,
        _ => Some(false),
    };
    let kind = match (host(copy.srcMemoryType), host(copy.dstMemoryType)) {
        (Some(true), Some(true)) => cudaMemcpyKind::cudaMemcpyHostToHost,
        (Some(true), Some(false)) => cudaMemcpyKind::cudaMemcpyHostToDevice,
        (Some(false), Some(true)) => cudaMemcpyKind::cudaMemcpyDeviceToHost,
        (Some(false), Some(false)) => cudaMemcpyKind::cudaMemcpyDeviceToDevice,
        _ => cudaMemcpyKind::cudaMemcpyDefault,
    };
    let unit = source.or(target).unwrap_or(1);
    Ok(cudaMemcpy3DParms {
        srcArray,
        srcPos: cudaPos { x: copy.srcXInBytes / source.unwrap_or(1), y: copy.srcY, z: copy.srcZ },
        srcPtr: place(
            copy.srcMemoryType,
            copy.srcHost.cast_mut(),
            copy.srcDevice,
            copy.srcPitch,
            copy.srcHeight,
        ),
        dstArray,
        dstPos: cudaPos { x: copy.dstXInBytes / target.unwrap_or(1), y: copy.dstY, z: copy.dstZ },
        dstPtr: place(copy.dstMemoryType, copy.dstHost, copy.dstDevice, copy.dstPitch, copy.dstHeight),
        extent: cudaExtent { width: copy.WidthInBytes / unit, height: copy.Height, depth: copy.Depth },
        kind,
    })
}

/// The generic structure of a major, as the calls for nodes of any type take it.
pub trait NodeParams {
    fn to_driver(&self) -> Result<CUgraphNodeParams>;
    /// Takes over what the driver gives back when a node is made.
    fn take_back(&mut self, made: &CUgraphNodeParams);
}

/// One major's structure; `$func` reads the kernel's function.
macro_rules! node_params {
    ($major:ident, |$kernel:ident| $func:expr, |$node:ident| $context:expr) => {
        impl NodeParams for $major::cudaGraphNodeParams {
            fn to_driver(&self) -> Result<CUgraphNodeParams> {
                let driver = device::attach()?;
                let $node = self;
                let context = driver_context(driver, $context)?;
                let mut node =
                    CUgraphNodeParams { type_: CUgraphNodeType(self.type_.0), ..Default::default() };
                node.reserved0 = self.reserved0;
                node.reserved2 = self.reserved2;
                let (from, to) = (&self.__bindgen_anon_1, &mut node.__bindgen_anon_1);
                match self.type_ {
                    cudaGraphNodeType::cudaGraphNodeTypeKernel => {
                        // SAFETY: the member that belongs to the type.
                        let $kernel = unsafe { &from.kernel };
                        let params = kernel(&cudaKernelNodeParams {
                            func: $func,
                            gridDim: $kernel.gridDim,
                            blockDim: $kernel.blockDim,
                            sharedMemBytes: $kernel.sharedMemBytes,
                            kernelParams: $kernel.kernelParams,
                            extra: $kernel.extra,
                        })?;
                        to.kernel = (&CUDA_KERNEL_NODE_PARAMS { ctx: context, ..params }).into();
                    }
                    cudaGraphNodeType::cudaGraphNodeTypeMemcpy => {
                        // SAFETY: the member that belongs to the type.
                        let copyParams = copy(unsafe { &from.memcpy.copyParams })?;
                        to.memcpy =
                            CUDA_MEMCPY_NODE_PARAMS { flags: 0, reserved: 0, copyCtx: context, copyParams };
                    }
                    cudaGraphNodeType::cudaGraphNodeTypeMemset => {
                        // SAFETY: the member that belongs to the type.
                        let fill = unsafe { &from.memset };
                        to.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
                            dst: address(fill.dst),
                            pitch: fill.pitch,
                            value: fill.value,
                            elementSize: fill.elementSize,
                            width: fill.width,
                            height: fill.height,
                            ctx: context,
                        };
                    }
                    cudaGraphNodeType::cudaGraphNodeTypeConditional => {
                        // SAFETY: the member that belongs to the type.
                        let conditional = unsafe { &from.conditional };
                        to.conditional = cuda_abi::CUDA_CONDITIONAL_NODE_PARAMS {
                            handle: conditional.handle,
                            type_: cuda_abi::CUgraphConditionalNodeType(conditional.type_.0),
                            size: conditional.size,
                            phGraph_out: ptr::null_mut(),
                            ctx: context,
                        };
                    }
                    // The other members have the driver's bytes.
                    // SAFETY: the padding spans both unions.
                    _ => to.reserved1 = unsafe { from.reserved1 },
                }
                Ok(node)
            }

            fn take_back(&mut self, made: &CUgraphNodeParams) {
                let (from, to) = (&made.__bindgen_anon_1, &mut self.__bindgen_anon_1);
                match self.type_ {
                    cudaGraphNodeType::cudaGraphNodeTypeConditional => {
                        // SAFETY: the member that belongs to the type.
                        unsafe { to.conditional.phGraph_out = from.conditional.phGraph_out };
                    }
                    cudaGraphNodeType::cudaGraphNodeTypeMemAlloc => {
                        // SAFETY: the member that belongs to the type.
                        unsafe { to.alloc.dptr = pointer(from.alloc.dptr) };
                    }
                    _ => {}
                }
            }
        }
    };
}

node_params!(v12, |kernel| kernel.func, |_node| ptr::null_mut());
node_params!(v13, |kernel| function(kernel)?, |node| context_of(node));

/// 13's kernel nodes say what their function is: a host function, a kernel handle, or a driver's function.
fn function(params: &v13::cudaKernelNodeParamsV2) -> Result<*mut c_void> {
    // SAFETY: all members are one pointer.
    let func = unsafe { params.__bindgen_anon_1.func };
    match params.functionType.0 {
        0..=2 => Ok(func),
        3 => Err(Error::NotSupported("graph nodes of a driver's function")),
        _ => Err(Error::InvalidValue("nodeParams.kernel.functionType")),
    }
}

/// The context that a node names, if any.
fn context_of(node: &v13::cudaGraphNodeParams) -> cudaExecutionContext_t {
    let body = &node.__bindgen_anon_1;
    // SAFETY: the member that belongs to the type.
    unsafe {
        match node.type_ {
            cudaGraphNodeType::cudaGraphNodeTypeKernel => body.kernel.ctx,
            cudaGraphNodeType::cudaGraphNodeTypeMemcpy => body.memcpy.ctx,
            cudaGraphNodeType::cudaGraphNodeTypeMemset => body.memset.ctx,
            cudaGraphNodeType::cudaGraphNodeTypeHost => body.host.ctx,
            cudaGraphNodeType::cudaGraphNodeTypeEventRecord => body.eventRecord.ctx,
            cudaGraphNodeType::cudaGraphNodeTypeConditional => body.conditional.ctx,
            _ => ptr::null_mut(),
        }
    }
}

/// A node's parameters as 13 gives them. Contexts are left out: they are the driver's.
pub fn from_driver_v13(node: &CUgraphNodeParams) -> Result<v13::cudaGraphNodeParams> {
    let mut out = v13::cudaGraphNodeParams { type_: cudaGraphNodeType(node.type_.0), ..Default::default() };
    let (from, to) = (&node.__bindgen_anon_1, &mut out.__bindgen_anon_1);
    match node.type_ {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: the member that belongs to the type.
            let kernel = unsafe { &from.kernel };
            let found = kernel_back(&CUDA_KERNEL_NODE_PARAMS {
                func: kernel.func,
                gridDimX: kernel.gridDimX,
                gridDimY: kernel.gridDimY,
                gridDimZ: kernel.gridDimZ,
                blockDimX: kernel.blockDimX,
                blockDimY: kernel.blockDimY,
                blockDimZ: kernel.blockDimZ,
                sharedMemBytes: kernel.sharedMemBytes,
                kernelParams: kernel.kernelParams,
                extra: kernel.extra,
                kern: kernel.kern,
                ctx: kernel.ctx,
            });
            let mut params = v13::cudaKernelNodeParamsV2 {
                gridDim: found.gridDim,
                blockDim: found.blockDim,
                sharedMemBytes: found.sharedMemBytes,
                kernelParams: found.kernelParams,
                extra: found.extra,
                ..Default::default()
            };
            params.__bindgen_anon_1.func = found.func;
            to.kernel = params;
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => {
            // SAFETY: the member that belongs to the type.
            let copyParams = copy_back(device::attach()?, unsafe { &from.memcpy.copyParams })?;
            to.memcpy = v13::cudaMemcpyNodeParams { flags: 0, reserved: 0, ctx: ptr::null_mut(), copyParams };
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => {
            // SAFETY: the member that belongs to the type.
            let fill = unsafe { &from.memset };
            to.memset = v13::cudaMemsetParamsV2 {
                dst: pointer(fill.dst),
                pitch: fill.pitch,
                value: fill.value,
                elementSize: fill.elementSize,
                width: fill.width,
                height: fill.height,
                ctx: ptr::null_mut(),
            };
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
            // SAFETY: the member that belongs to the type.
            unsafe { to.graph.graph = from.graph.graph };
            let invalid = CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID;
            to.graph.ownership = cuda_abi::runtime::cudaGraphChildGraphNodeOwnership(invalid.0);
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
            // SAFETY: the member that belongs to the type.
            let conditional = unsafe { &from.conditional };
            to.conditional = v13::cudaConditionalNodeParams {
                handle: conditional.handle,
                type_: cuda_abi::runtime::cudaGraphConditionalNodeType(conditional.type_.0),
                size: conditional.size,
                phGraph_out: conditional.phGraph_out,
                ctx: ptr::null_mut(),
            };
        }
        // The other members have the driver's bytes.
        // SAFETY: the padding spans both unions.
        _ => to.reserved1 = unsafe { from.reserved1 },
    }
    Ok(out)
}
