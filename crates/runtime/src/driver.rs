//! The driver's C functions, found in `libcuda.so.1` at the first call that needs one.
//! The rule: nothing here is private to our own driver. A function the driver lacks is not supported; the others still work.

use core::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_abi::*;
use libloading::os::unix::Library;
use once_cell::sync::OnceCell;

use crate::error::check;
use crate::{Error, Result};

/// Declares the table: a field for each function and a method of the same name that calls it.
macro_rules! driver {
    ($($name:ident($($parameter:ident: $type:ty),* $(,)?);)*) => {
        pub struct Driver {
            $($name: Option<unsafe extern "C" fn($($type),*) -> CUresult>,)*
        }

        impl Driver {
            /// Looks every function up.
            fn of(library: &Library) -> Self {
                Driver {
                    $($name: {
                        // SAFETY: the name in the driver's ABI has this type; the library is never closed.
                        unsafe { library.get(concat!(stringify!($name), "\0")) }.ok().map(|symbol| *symbol)
                    },)*
                }
            }

            // The addresses among the arguments are the program's (valid by CUDA's contract with it) or our own locals;
            // handles are checked by the driver.
            $(pub fn $name(&self, $($parameter: $type),*) -> Result {
                let function = self.$name.ok_or(Error::NewerDriver(stringify!($name)))?;
                // SAFETY: see above.
                check(unsafe { function($($parameter),*) })
            })*
        }
    };
}

driver! {
    cuDriverGetVersion(driverVersion: *mut c_int);
    cuInit(Flags: c_uint);
    cuGetProcAddress_v2(symbol: *const c_char, pfn: *mut *mut c_void, cudaVersion: c_int, flags: cuuint64_t, symbolStatus: *mut CUdriverProcAddressQueryResult);

    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, dev: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, dev: CUdevice);
    cuDeviceGetAttribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, dev: CUdevice);
    cuDeviceGetUuid(uuid: *mut CUuuid, dev: CUdevice);
    cuDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, dev: CUdevice);
    cuDeviceGetByPCIBusId(dev: *mut CUdevice, pciBusId: *const c_char);
    cuDeviceCanAccessPeer(canAccessPeer: *mut c_int, dev: CUdevice, peerDev: CUdevice);
    cuDeviceGetP2PAttribute(value: *mut c_int, attrib: CUdevice_P2PAttribute, srcDevice: CUdevice, dstDevice: CUdevice);
    cuDeviceGetDefaultMemPool(pool_out: *mut CUmemoryPool, dev: CUdevice);
    cuDeviceGetMemPool(pool: *mut CUmemoryPool, dev: CUdevice);
    cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool);

    cuDevicePrimaryCtxRetain(pctx: *mut CUcontext, dev: CUdevice);
    cuDevicePrimaryCtxReset_v2(dev: CUdevice);
    cuDevicePrimaryCtxGetState(dev: CUdevice, flags: *mut c_uint, active: *mut c_int);
    cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: c_uint);

    cuCtxGetCurrent(pctx: *mut CUcontext);
    cuCtxSetCurrent(ctx: CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxSynchronize();
    cuCtxGetLimit(pvalue: *mut usize, limit: CUlimit);
    cuCtxSetLimit(limit: CUlimit, value: usize);
    cuCtxGetCacheConfig(pconfig: *mut CUfunc_cache);
    cuCtxSetCacheConfig(config: CUfunc_cache);
    cuCtxGetSharedMemConfig(pConfig: *mut CUsharedconfig);
    cuCtxSetSharedMemConfig(config: CUsharedconfig);
    cuCtxGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int);
    cuCtxGetFlags(flags: *mut c_uint);
    cuCtxEnablePeerAccess(peerContext: CUcontext, Flags: c_uint);
    cuCtxDisablePeerAccess(peerContext: CUcontext);
    cuCtxResetPersistingL2Cache();

    cuLibraryLoadData(library: *mut CUlibrary, code: *const c_void, jitOptions: *mut CUjit_option, jitOptionsValues: *mut *mut c_void, numJitOptions: c_uint, libraryOptions: *mut CUlibraryOption, libraryOptionValues: *mut *mut c_void, numLibraryOptions: c_uint);
    cuLibraryLoadFromFile(library: *mut CUlibrary, fileName: *const c_char, jitOptions: *mut CUjit_option, jitOptionsValues: *mut *mut c_void, numJitOptions: c_uint, libraryOptions: *mut CUlibraryOption, libraryOptionValues: *mut *mut c_void, numLibraryOptions: c_uint);
    cuLibraryUnload(library: CUlibrary);
    cuLibraryGetKernel(pKernel: *mut CUkernel, library: CUlibrary, name: *const c_char);
    cuLibraryGetGlobal(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
    cuLibraryGetManaged(dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char);
    cuLibraryGetKernelCount(count: *mut c_uint, lib: CUlibrary);
    cuLibraryEnumerateKernels(kernels: *mut CUkernel, numKernels: c_uint, lib: CUlibrary);
    cuLibraryGetUnifiedFunction(fptr: *mut *mut c_void, library: CUlibrary, symbol: *const c_char);

    cuKernelGetFunction(pFunc: *mut CUfunction, kernel: CUkernel);
    cuKernelSetAttribute(attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice);
    cuKernelGetName(name: *mut *const c_char, hfunc: CUkernel);
    cuKernelGetParamInfo(kernel: CUkernel, paramIndex: usize, paramOffset: *mut usize, paramSize: *mut usize);

    cuFuncGetAttribute(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction);
    cuFuncSetAttribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int);
    cuFuncSetCacheConfig(hfunc: CUfunction, config: CUfunc_cache);

    cuLaunchKernel(f: CUfunction, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, hStream: CUstream, kernelParams: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchKernelEx(config: *const CUlaunchConfig, f: CUfunction, kernelParams: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchCooperativeKernel(f: CUfunction, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, hStream: CUstream, kernelParams: *mut *mut c_void);
    cuLaunchHostFunc(hStream: CUstream, fn_: CUhostFn, userData: *mut c_void);

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks: *mut c_int, func: CUfunction, blockSize: c_int, dynamicSMemSize: usize, flags: c_uint);
    cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize: *mut usize, func: CUfunction, numBlocks: c_int, blockSize: c_int);
    cuOccupancyMaxPotentialClusterSize(clusterSize: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);
    cuOccupancyMaxActiveClusters(numClusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig);

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize);
    cuMemAllocPitch_v2(dptr: *mut CUdeviceptr, pPitch: *mut usize, WidthInBytes: usize, Height: usize, ElementSizeBytes: c_uint);
    cuMemFree_v2(dptr: CUdeviceptr);
    cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, Flags: c_uint);
    cuMemFreeHost(p: *mut c_void);
    cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, Flags: c_uint);
    cuMemHostUnregister(p: *mut c_void);
    cuMemHostGetDevicePointer_v2(pdptr: *mut CUdeviceptr, p: *mut c_void, Flags: c_uint);
    cuMemHostGetFlags(pFlags: *mut c_uint, p: *mut c_void);
    cuMemAllocManaged(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint);
    cuMemAllocAsync(dptr: *mut CUdeviceptr, bytesize: usize, hStream: CUstream);
    cuMemAllocFromPoolAsync(dptr: *mut CUdeviceptr, bytesize: usize, pool: CUmemoryPool, hStream: CUstream);
    cuMemFreeAsync(dptr: CUdeviceptr, hStream: CUstream);
    cuMemAdvise_v2(devPtr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation);
    cuMemPrefetchAsync_v2(devPtr: CUdeviceptr, count: usize, location: CUmemLocation, flags: c_uint, hStream: CUstream);
    cuMemRangeGetAttribute(data: *mut c_void, dataSize: usize, attribute: CUmem_range_attribute, devPtr: CUdeviceptr, count: usize);

    cuMemcpyHtoD_v2(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize);
    cuMemcpyDtoH_v2(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize);
    cuMemcpyDtoD_v2(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize);
    cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize);
    cuMemcpyHtoDAsync_v2(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize, hStream: CUstream);
    cuMemcpyDtoHAsync_v2(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize, hStream: CUstream);
    cuMemcpyDtoDAsync_v2(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize, hStream: CUstream);
    cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize, hStream: CUstream);
    cuMemcpy2DUnaligned_v2(pCopy: *const CUDA_MEMCPY2D);
    cuMemcpy2DAsync_v2(pCopy: *const CUDA_MEMCPY2D, hStream: CUstream);
    cuMemcpyPeer(dstDevice: CUdeviceptr, dstContext: CUcontext, srcDevice: CUdeviceptr, srcContext: CUcontext, ByteCount: usize);
    cuMemcpyPeerAsync(dstDevice: CUdeviceptr, dstContext: CUcontext, srcDevice: CUdeviceptr, srcContext: CUcontext, ByteCount: usize, hStream: CUstream);
    cuMemcpy3D_v2(pCopy: *const CUDA_MEMCPY3D);
    cuMemcpy3DAsync_v2(pCopy: *const CUDA_MEMCPY3D, hStream: CUstream);

    cuArray3DCreate_v2(pHandle: *mut CUarray, pAllocateArray: *const CUDA_ARRAY3D_DESCRIPTOR);
    cuArray3DGetDescriptor_v2(pArrayDescriptor: *mut CUDA_ARRAY3D_DESCRIPTOR, hArray: CUarray);
    cuArrayDestroy(hArray: CUarray);
    cuArrayGetPlane(pPlaneArray: *mut CUarray, hArray: CUarray, planeIdx: c_uint);
    cuArrayGetMemoryRequirements(memoryRequirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, array: CUarray, device: CUdevice);
    cuArrayGetSparseProperties(sparseProperties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, array: CUarray);
    cuMipmappedArrayCreate(pHandle: *mut CUmipmappedArray, pMipmappedArrayDesc: *const CUDA_ARRAY3D_DESCRIPTOR, numMipmapLevels: c_uint);
    cuMipmappedArrayGetLevel(pLevelArray: *mut CUarray, hMipmappedArray: CUmipmappedArray, level: c_uint);
    cuMipmappedArrayDestroy(hMipmappedArray: CUmipmappedArray);
    cuMipmappedArrayGetMemoryRequirements(memoryRequirements: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS, mipmap: CUmipmappedArray, device: CUdevice);
    cuMipmappedArrayGetSparseProperties(sparseProperties: *mut CUDA_ARRAY_SPARSE_PROPERTIES, mipmap: CUmipmappedArray);
    cuMemcpyAtoA_v2(dstArray: CUarray, dstOffset: usize, srcArray: CUarray, srcOffset: usize, ByteCount: usize);
    cuMemGetAddressRange_v2(pbase: *mut CUdeviceptr, psize: *mut usize, dptr: CUdeviceptr);

    cuTexObjectCreate(pTexObject: *mut CUtexObject, pResDesc: *const CUDA_RESOURCE_DESC, pTexDesc: *const CUDA_TEXTURE_DESC, pResViewDesc: *const CUDA_RESOURCE_VIEW_DESC);
    cuTexObjectDestroy(texObject: CUtexObject);
    cuTexObjectGetResourceDesc(pResDesc: *mut CUDA_RESOURCE_DESC, texObject: CUtexObject);
    cuTexObjectGetTextureDesc(pTexDesc: *mut CUDA_TEXTURE_DESC, texObject: CUtexObject);
    cuTexObjectGetResourceViewDesc(pResViewDesc: *mut CUDA_RESOURCE_VIEW_DESC, texObject: CUtexObject);
    cuSurfObjectCreate(pSurfObject: *mut CUsurfObject, pResDesc: *const CUDA_RESOURCE_DESC);
    cuSurfObjectDestroy(surfObject: CUsurfObject);
    cuSurfObjectGetResourceDesc(pResDesc: *mut CUDA_RESOURCE_DESC, surfObject: CUsurfObject);
    cuDeviceGetTexture1DLinearMaxWidth(maxWidthInElements: *mut usize, format: CUarray_format, numChannels: c_uint, dev: CUdevice);
    cuModuleGetLoadingMode(mode: *mut CUmoduleLoadingMode);
    cuLibraryGetModule(pMod: *mut CUmodule, library: CUlibrary);
    cuModuleGetTexRef(pTexRef: *mut CUtexref, hmod: CUmodule, name: *const c_char);
    cuModuleGetSurfRef(pSurfRef: *mut CUsurfref, hmod: CUmodule, name: *const c_char);
    cuSurfRefSetArray(hSurfRef: CUsurfref, hArray: CUarray, Flags: c_uint);
    cuTexRefSetArray(hTexRef: CUtexref, hArray: CUarray, Flags: c_uint);
    cuTexRefSetMipmappedArray(hTexRef: CUtexref, hMipmappedArray: CUmipmappedArray, Flags: c_uint);
    cuTexRefSetAddress_v2(ByteOffset: *mut usize, hTexRef: CUtexref, dptr: CUdeviceptr, bytes: usize);
    cuTexRefSetAddress2D_v3(hTexRef: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR, dptr: CUdeviceptr, Pitch: usize);
    cuTexRefSetFormat(hTexRef: CUtexref, fmt: CUarray_format, NumPackedComponents: c_int);
    cuTexRefSetAddressMode(hTexRef: CUtexref, dim: c_int, am: CUaddress_mode);
    cuTexRefSetFilterMode(hTexRef: CUtexref, fm: CUfilter_mode);
    cuTexRefSetMipmapFilterMode(hTexRef: CUtexref, fm: CUfilter_mode);
    cuTexRefSetMipmapLevelBias(hTexRef: CUtexref, bias: f32);
    cuTexRefSetMipmapLevelClamp(hTexRef: CUtexref, minMipmapLevelClamp: f32, maxMipmapLevelClamp: f32);
    cuTexRefSetMaxAnisotropy(hTexRef: CUtexref, maxAniso: c_uint);
    cuTexRefSetFlags(hTexRef: CUtexref, Flags: c_uint);

    cuMemsetD8_v2(dstDevice: CUdeviceptr, uc: c_uchar, N: usize);
    cuMemsetD8_v2_ptds(dstDevice: CUdeviceptr, uc: c_uchar, N: usize);
    cuMemsetD8Async(dstDevice: CUdeviceptr, uc: c_uchar, N: usize, hStream: CUstream);
    cuMemsetD2D8_v2(dstDevice: CUdeviceptr, dstPitch: usize, uc: c_uchar, Width: usize, Height: usize);
    cuMemsetD2D8_v2_ptds(dstDevice: CUdeviceptr, dstPitch: usize, uc: c_uchar, Width: usize, Height: usize);
    cuMemsetD2D8Async(dstDevice: CUdeviceptr, dstPitch: usize, uc: c_uchar, Width: usize, Height: usize, hStream: CUstream);
    cuPointerGetAttributes(numAttributes: c_uint, attributes: *mut CUpointer_attribute, data: *mut *mut c_void, ptr: CUdeviceptr);

    cuGraphCreate(phGraph: *mut CUgraph, flags: c_uint);
    cuGraphDestroy(hGraph: CUgraph);
    cuGraphClone(phGraphClone: *mut CUgraph, originalGraph: CUgraph);
    cuGraphGetId(hGraph: CUgraph, graphId: *mut c_uint);
    cuGraphExecGetId(hGraphExec: CUgraphExec, graphId: *mut c_uint);
    cuGraphDebugDotPrint(hGraph: CUgraph, path: *const c_char, flags: c_uint);
    cuGraphAddDependencies(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, numDependencies: usize);
    cuGraphAddDependencies_v2(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edgeData: *const CUgraphEdgeData, numDependencies: usize);
    cuGraphRemoveDependencies(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, numDependencies: usize);
    cuGraphRemoveDependencies_v2(hGraph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edgeData: *const CUgraphEdgeData, numDependencies: usize);
    cuGraphGetNodes(hGraph: CUgraph, nodes: *mut CUgraphNode, numNodes: *mut usize);
    cuGraphGetRootNodes(hGraph: CUgraph, rootNodes: *mut CUgraphNode, numRootNodes: *mut usize);
    cuGraphGetEdges(hGraph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, numEdges: *mut usize);
    cuGraphGetEdges_v2(hGraph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, edgeData: *mut CUgraphEdgeData, numEdges: *mut usize);
    cuGraphNodeGetDependencies(hNode: CUgraphNode, dependencies: *mut CUgraphNode, numDependencies: *mut usize);
    cuGraphNodeGetDependencies_v2(hNode: CUgraphNode, dependencies: *mut CUgraphNode, edgeData: *mut CUgraphEdgeData, numDependencies: *mut usize);
    cuGraphNodeGetDependentNodes(hNode: CUgraphNode, dependentNodes: *mut CUgraphNode, numDependentNodes: *mut usize);
    cuGraphNodeGetDependentNodes_v2(hNode: CUgraphNode, dependentNodes: *mut CUgraphNode, edgeData: *mut CUgraphEdgeData, numDependentNodes: *mut usize);
    cuGraphNodeGetType(hNode: CUgraphNode, type_: *mut CUgraphNodeType);
    cuGraphDestroyNode(hNode: CUgraphNode);
    cuGraphNodeFindInClone(phNode: *mut CUgraphNode, hOriginalNode: CUgraphNode, hClonedGraph: CUgraph);
    cuGraphNodeGetContainingGraph(hNode: CUgraphNode, phGraph: *mut CUgraph);
    cuGraphNodeGetLocalId(hNode: CUgraphNode, nodeId: *mut c_uint);
    cuGraphNodeGetToolsId(hNode: CUgraphNode, toolsNodeId: *mut c_ulonglong);
    cuGraphNodeSetEnabled(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: c_uint);
    cuGraphNodeGetEnabled(hGraphExec: CUgraphExec, hNode: CUgraphNode, isEnabled: *mut c_uint);
    cuGraphInstantiateWithFlags(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, flags: c_ulonglong);
    cuGraphInstantiateWithParams(phGraphExec: *mut CUgraphExec, hGraph: CUgraph, instantiateParams: *mut CUDA_GRAPH_INSTANTIATE_PARAMS);
    cuGraphExecDestroy(hGraphExec: CUgraphExec);
    cuGraphExecGetFlags(hGraphExec: CUgraphExec, flags: *mut cuuint64_t);
    cuGraphUpload(hGraph: CUgraphExec, hStream: CUstream);
    cuGraphLaunch(hGraph: CUgraphExec, hStream: CUstream);
    cuGraphExecUpdate_v2(hGraphExec: CUgraphExec, hGraph: CUgraph, resultInfo: *mut CUgraphExecUpdateResultInfo);
    cuGraphConditionalHandleCreate(pHandle_out: *mut CUgraphConditionalHandle, hGraph: CUgraph, ctx: CUcontext, defaultLaunchValue: c_uint, flags: c_uint);
    cuDeviceGetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void);
    cuDeviceSetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void);
    cuDeviceGraphMemTrim(device: CUdevice);
    cuUserObjectCreate(object_out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, initialRefcount: c_uint, flags: c_uint);
    cuUserObjectRetain(object: CUuserObject, count: c_uint);
    cuUserObjectRelease(object: CUuserObject, count: c_uint);
    cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint);
    cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint);
    cuGraphAddKernelNode_v2(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_KERNEL_NODE_PARAMS);
    cuGraphKernelNodeGetParams_v2(hNode: CUgraphNode, nodeParams: *mut CUDA_KERNEL_NODE_PARAMS);
    cuGraphKernelNodeSetParams_v2(hNode: CUgraphNode, nodeParams: *const CUDA_KERNEL_NODE_PARAMS);
    cuGraphExecKernelNodeSetParams_v2(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_KERNEL_NODE_PARAMS);
    cuGraphKernelNodeGetAttribute(hNode: CUgraphNode, attr: CUkernelNodeAttrID, value_out: *mut CUkernelNodeAttrValue);
    cuGraphKernelNodeSetAttribute(hNode: CUgraphNode, attr: CUkernelNodeAttrID, value: *const CUkernelNodeAttrValue);
    cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode);
    cuGraphAddMemcpyNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, copyParams: *const CUDA_MEMCPY3D, ctx: CUcontext);
    cuGraphMemcpyNodeGetParams(hNode: CUgraphNode, nodeParams: *mut CUDA_MEMCPY3D);
    cuGraphMemcpyNodeSetParams(hNode: CUgraphNode, nodeParams: *const CUDA_MEMCPY3D);
    cuGraphExecMemcpyNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, copyParams: *const CUDA_MEMCPY3D, ctx: CUcontext);
    cuGraphAddMemsetNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, memsetParams: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext);
    cuGraphMemsetNodeGetParams(hNode: CUgraphNode, nodeParams: *mut CUDA_MEMSET_NODE_PARAMS);
    cuGraphMemsetNodeSetParams(hNode: CUgraphNode, nodeParams: *const CUDA_MEMSET_NODE_PARAMS);
    cuGraphExecMemsetNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, memsetParams: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext);
    cuGraphAddHostNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_HOST_NODE_PARAMS);
    cuGraphHostNodeGetParams(hNode: CUgraphNode, nodeParams: *mut CUDA_HOST_NODE_PARAMS);
    cuGraphHostNodeSetParams(hNode: CUgraphNode, nodeParams: *const CUDA_HOST_NODE_PARAMS);
    cuGraphExecHostNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_HOST_NODE_PARAMS);
    cuGraphAddChildGraphNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, childGraph: CUgraph);
    cuGraphChildGraphNodeGetGraph(hNode: CUgraphNode, phGraph: *mut CUgraph);
    cuGraphExecChildGraphNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, childGraph: CUgraph);
    cuGraphAddEmptyNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize);
    cuGraphAddEventRecordNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, event: CUevent);
    cuGraphEventRecordNodeGetEvent(hNode: CUgraphNode, event_out: *mut CUevent);
    cuGraphEventRecordNodeSetEvent(hNode: CUgraphNode, event: CUevent);
    cuGraphExecEventRecordNodeSetEvent(hGraphExec: CUgraphExec, hNode: CUgraphNode, event: CUevent);
    cuGraphAddEventWaitNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, event: CUevent);
    cuGraphEventWaitNodeGetEvent(hNode: CUgraphNode, event_out: *mut CUevent);
    cuGraphEventWaitNodeSetEvent(hNode: CUgraphNode, event: CUevent);
    cuGraphExecEventWaitNodeSetEvent(hGraphExec: CUgraphExec, hNode: CUgraphNode, event: CUevent);
    cuGraphAddMemAllocNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *mut CUDA_MEM_ALLOC_NODE_PARAMS);
    cuGraphMemAllocNodeGetParams(hNode: CUgraphNode, params_out: *mut CUDA_MEM_ALLOC_NODE_PARAMS);
    cuGraphAddMemFreeNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, dptr: CUdeviceptr);
    cuGraphMemFreeNodeGetParams(hNode: CUgraphNode, dptr_out: *mut CUdeviceptr);
    cuGraphAddNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *mut CUgraphNodeParams);
    cuGraphAddNode_v2(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, nodeParams: *mut CUgraphNodeParams);
    cuGraphNodeSetParams(hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams);
    cuGraphExecNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams);
    cuGraphNodeGetParams(hNode: CUgraphNode, nodeParams: *mut CUgraphNodeParams);
    cuStreamBeginCapture_v2(hStream: CUstream, mode: CUstreamCaptureMode);
    cuStreamBeginCaptureToGraph(hStream: CUstream, hGraph: CUgraph, dependencies: *const CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, mode: CUstreamCaptureMode);
    cuStreamEndCapture(hStream: CUstream, phGraph: *mut CUgraph);
    cuStreamGetCaptureInfo_v3(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, edgeData_out: *mut *const CUgraphEdgeData, numDependencies_out: *mut usize);
    cuStreamGetCaptureInfo_v2(hStream: CUstream, captureStatus_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, numDependencies_out: *mut usize);
    cuStreamUpdateCaptureDependencies(hStream: CUstream, dependencies: *mut CUgraphNode, numDependencies: usize, flags: c_uint);
    cuStreamUpdateCaptureDependencies_v2(hStream: CUstream, dependencies: *mut CUgraphNode, dependencyData: *const CUgraphEdgeData, numDependencies: usize, flags: c_uint);
    cuStreamBeginRecaptureToGraph(hStream: CUstream, mode: CUstreamCaptureMode, hGraph: CUgraph, callbackFunc: CUgraphRecaptureCallback, userData: *mut c_void);

    cuGraphAddExternalSemaphoresSignalNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    cuGraphExternalSemaphoresSignalNodeGetParams(hNode: CUgraphNode, params_out: *mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    cuGraphExternalSemaphoresSignalNodeSetParams(hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    cuGraphExecExternalSemaphoresSignalNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    cuGraphAddExternalSemaphoresWaitNode(phGraphNode: *mut CUgraphNode, hGraph: CUgraph, dependencies: *const CUgraphNode, numDependencies: usize, nodeParams: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    cuGraphExternalSemaphoresWaitNodeGetParams(hNode: CUgraphNode, params_out: *mut CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    cuGraphExternalSemaphoresWaitNodeSetParams(hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    cuGraphExecExternalSemaphoresWaitNodeSetParams(hGraphExec: CUgraphExec, hNode: CUgraphNode, nodeParams: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    cuMemcpyBatchAsync(dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attrs: *mut CUmemcpyAttributes, attrsIdxs: *mut usize, numAttrs: usize, failIdx: *mut usize, hStream: CUstream);
    cuMemcpyBatchAsync_v2(dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attrs: *mut CUmemcpyAttributes, attrsIdxs: *mut usize, numAttrs: usize, hStream: CUstream);
    cuMemcpy3DBatchAsync(numOps: usize, opList: *mut CUDA_MEMCPY3D_BATCH_OP, failIdx: *mut usize, flags: c_ulonglong, hStream: CUstream);
    cuMemcpy3DBatchAsync_v2(numOps: usize, opList: *mut CUDA_MEMCPY3D_BATCH_OP, flags: c_ulonglong, hStream: CUstream);
    cuMemcpyWithAttributesAsync(dst: CUdeviceptr, src: CUdeviceptr, size: usize, attr: *mut CUmemcpyAttributes, hStream: CUstream);
    cuMemcpy3DWithAttributesAsync(op: *mut CUDA_MEMCPY3D_BATCH_OP, flags: c_ulonglong, hStream: CUstream);
    cuCtxFromGreenCtx(pContext: *mut CUcontext, hCtx: CUgreenCtx);

    cuMemPoolCreate(pool: *mut CUmemoryPool, poolProps: *const CUmemPoolProps);
    cuMemPoolDestroy(pool: CUmemoryPool);
    cuMemPoolGetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolSetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void);
    cuMemPoolTrimTo(pool: CUmemoryPool, minBytesToKeep: usize);
    cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize);
    cuMemPoolGetAccess(flags: *mut CUmemAccess_flags, memPool: CUmemoryPool, location: *mut CUmemLocation);

    cuStreamCreate(phStream: *mut CUstream, Flags: c_uint);
    cuStreamCreateWithPriority(phStream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(hStream: CUstream);
    cuStreamSynchronize(hStream: CUstream);
    cuStreamQuery(hStream: CUstream);
    cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, Flags: c_uint);
    cuStreamAddCallback(hStream: CUstream, callback: CUstreamCallback, userData: *mut c_void, flags: c_uint);
    cuStreamGetFlags(hStream: CUstream, flags: *mut c_uint);
    cuStreamGetPriority(hStream: CUstream, priority: *mut c_int);
    cuStreamGetId(hStream: CUstream, streamId: *mut c_ulonglong);
    cuStreamGetDevice(hStream: CUstream, device: *mut CUdevice);
    cuStreamAttachMemAsync(hStream: CUstream, dptr: CUdeviceptr, length: usize, flags: c_uint);
    cuStreamIsCapturing(hStream: CUstream, captureStatus: *mut CUstreamCaptureStatus);
    cuStreamGetAttribute(hStream: CUstream, attr: CUstreamAttrID, value: *mut CUstreamAttrValue);
    cuStreamSetAttribute(hStream: CUstream, attr: CUstreamAttrID, param: *const CUstreamAttrValue);
    cuStreamCopyAttributes(dstStream: CUstream, srcStream: CUstream);
    cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);

    cuEventCreate(phEvent: *mut CUevent, Flags: c_uint);
    cuEventDestroy_v2(hEvent: CUevent);
    cuEventRecord(hEvent: CUevent, hStream: CUstream);
    cuEventRecordWithFlags(hEvent: CUevent, hStream: CUstream, flags: c_uint);
    cuEventQuery(hEvent: CUevent);
    cuEventSynchronize(hEvent: CUevent);
    cuEventElapsedTime(pMilliseconds: *mut f32, hStart: CUevent, hEnd: CUevent);

    cuIpcGetMemHandle(pHandle: *mut CUipcMemHandle, dptr: CUdeviceptr);
    cuIpcOpenMemHandle_v2(pdptr: *mut CUdeviceptr, handle: CUipcMemHandle, Flags: c_uint);
    cuIpcCloseMemHandle(dptr: CUdeviceptr);
    cuIpcGetEventHandle(pHandle: *mut CUipcEventHandle, event: CUevent);
    cuIpcOpenEventHandle(phEvent: *mut CUevent, handle: CUipcEventHandle);

    cuDeviceGetDevResource(device: CUdevice, resource: *mut CUdevResource, type_: CUdevResourceType);
    cuStreamGetDevResource(hStream: CUstream, resource: *mut CUdevResource, type_: CUdevResourceType);
    cuCtxGetDevResource(hCtx: CUcontext, resource: *mut CUdevResource, type_: CUdevResourceType);
    cuGreenCtxGetDevResource(hCtx: CUgreenCtx, resource: *mut CUdevResource, type_: CUdevResourceType);
    cuDevSmResourceSplitByCount(result: *mut CUdevResource, nbGroups: *mut c_uint, input: *const CUdevResource, remainder: *mut CUdevResource, flags: c_uint, minCount: c_uint);
    cuDevSmResourceSplit(result: *mut CUdevResource, nbGroups: c_uint, input: *const CUdevResource, remainder: *mut CUdevResource, flags: c_uint, groupParams: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS);
    cuDevResourceGenerateDesc(phDesc: *mut CUdevResourceDesc, resources: *mut CUdevResource, nbResources: c_uint);
    cuGreenCtxCreate(phCtx: *mut CUgreenCtx, desc: CUdevResourceDesc, dev: CUdevice, flags: c_uint);
    cuGreenCtxDestroy(hCtx: CUgreenCtx);
    cuGreenCtxGetId(greenCtx: CUgreenCtx, greenCtxId: *mut c_ulonglong);
    cuGreenCtxStreamCreate(phStream: *mut CUstream, greenCtx: CUgreenCtx, flags: c_uint, priority: c_int);
    cuGreenCtxRecordEvent(hCtx: CUgreenCtx, hEvent: CUevent);
    cuGreenCtxWaitEvent(hCtx: CUgreenCtx, hEvent: CUevent);
    cuCtxGetId(ctx: CUcontext, ctxId: *mut c_ulonglong);
    cuCtxSynchronize_v2(ctx: CUcontext);
    cuCtxRecordEvent(hCtx: CUcontext, hEvent: CUevent);
    cuCtxWaitEvent(hCtx: CUcontext, hEvent: CUevent);

    cuLogsRegisterCallback(callbackFunc: CUlogsCallback, userData: *mut c_void, callback_out: *mut CUlogsCallbackHandle);
    cuLogsUnregisterCallback(callback: CUlogsCallbackHandle);
    cuLogsCurrent(iterator_out: *mut CUlogIterator, flags: c_uint);
    cuLogsDumpToFile(iterator: *mut CUlogIterator, pathToFile: *const c_char, flags: c_uint);
    cuLogsDumpToMemory(iterator: *mut CUlogIterator, buffer: *mut c_char, size: *mut usize, flags: c_uint);

    cuImportExternalMemory(extMem_out: *mut CUexternalMemory, memHandleDesc: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
    cuExternalMemoryGetMappedBuffer(devPtr: *mut CUdeviceptr, extMem: CUexternalMemory, bufferDesc: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC);
    cuExternalMemoryGetMappedMipmappedArray(mipmap: *mut CUmipmappedArray, extMem: CUexternalMemory, mipmapDesc: *const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC);
    cuDestroyExternalMemory(extMem: CUexternalMemory);
    cuImportExternalSemaphore(extSem_out: *mut CUexternalSemaphore, semHandleDesc: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC);
    cuDestroyExternalSemaphore(extSem: CUexternalSemaphore);
    cuSignalExternalSemaphoresAsync(extSemArray: *const CUexternalSemaphore, paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, numExtSems: c_uint, stream: CUstream);
    cuWaitExternalSemaphoresAsync(extSemArray: *const CUexternalSemaphore, paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, numExtSems: c_uint, stream: CUstream);

    cuMemGetDefaultMemPool(pool_out: *mut CUmemoryPool, location: *mut CUmemLocation, type_: CUmemAllocationType);
    cuMemGetMemPool(pool: *mut CUmemoryPool, location: *mut CUmemLocation, type_: CUmemAllocationType);
    cuMemSetMemPool(location: *mut CUmemLocation, type_: CUmemAllocationType, pool: CUmemoryPool);
    cuMemPoolExportToShareableHandle(handle_out: *mut c_void, pool: CUmemoryPool, handleType: CUmemAllocationHandleType, flags: c_ulonglong);
    cuMemPoolImportFromShareableHandle(pool_out: *mut CUmemoryPool, handle: *mut c_void, handleType: CUmemAllocationHandleType, flags: c_ulonglong);
    cuMemPoolExportPointer(shareData_out: *mut CUmemPoolPtrExportData, ptr: CUdeviceptr);
    cuMemPoolImportPointer(ptr_out: *mut CUdeviceptr, pool: CUmemoryPool, shareData: *mut CUmemPoolPtrExportData);

    cuMemRangeGetAttributes(data: *mut *mut c_void, dataSizes: *mut usize, attributes: *mut CUmem_range_attribute, numAttributes: usize, devPtr: CUdeviceptr, count: usize);
    cuMemDiscardBatchAsync(dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, flags: c_ulonglong, hStream: CUstream);
    cuMemPrefetchBatchAsync(dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, prefetchLocs: *mut CUmemLocation, prefetchLocIdxs: *mut usize, numPrefetchLocs: usize, flags: c_ulonglong, hStream: CUstream);
    cuMemDiscardAndPrefetchBatchAsync(dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, prefetchLocs: *mut CUmemLocation, prefetchLocIdxs: *mut usize, numPrefetchLocs: usize, flags: c_ulonglong, hStream: CUstream);
    cuMemGetLocationInfo(ptr: CUdeviceptr, size: usize, summaryGranularity: usize, samplingGranularity: usize, location_out: *mut CUmemLocation);

    cuFlushGPUDirectRDMAWrites(target: CUflushGPUDirectRDMAWritesTarget, scope: CUflushGPUDirectRDMAWritesScope);
    cuDeviceGetHostAtomicCapabilities(capabilities: *mut c_uint, operations: *const CUatomicOperation, count: c_uint, dev: CUdevice);
    cuDeviceGetP2PAtomicCapabilities(capabilities: *mut c_uint, operations: *const CUatomicOperation, count: c_uint, srcDevice: CUdevice, dstDevice: CUdevice);
    cuDeviceRegisterAsyncNotification(device: CUdevice, callbackFunc: CUasyncCallback, userData: *mut c_void, callback: *mut CUasyncCallbackHandle);
    cuDeviceUnregisterAsyncNotification(device: CUdevice, callback: CUasyncCallbackHandle);
    cuDeviceGetNvSciSyncAttributes(nvSciSyncAttrList: *mut c_void, dev: CUdevice, flags: c_int);

    cuLaunchHostFunc_v2(hStream: CUstream, fn_: CUhostFn, userData: *mut c_void, syncMode: c_uint);
    cuKernelGetParamCount(kernel: CUkernel, paramCount: *mut usize);
    cuGetExportTable(ppExportTable: *mut *const c_void, pExportTableId: *const CUuuid);
    cuProfilerInitialize(configFile: *const c_char, outputFile: *const c_char, outputMode: CUoutput_mode);

    cuProfilerStart();
    cuProfilerStop();
}

/// The driver, opened but not initialised.
pub fn open() -> Result<&'static Driver> {
    static DRIVER: OnceCell<Driver> = OnceCell::new();
    DRIVER.get_or_try_init(|| {
        let library = library()?;
        let driver = Driver::of(&library);
        // SAFETY: the name has this type where it exists, which is in our own driver.
        let instance_of = unsafe { library.get::<InstanceOf>("cudaway_runtime_instance\0") };
        _ = INSTANCE_OF.set(instance_of.ok().map(|symbol| *symbol));
        // The driver has threads and handlers of its own: it stays.
        std::mem::forget(library);
        Ok(driver)
    })
}

type InstanceOf = unsafe extern "C" fn(*const c_void) -> *const c_void;

static INSTANCE_OF: OnceLock<Option<InstanceOf>> = OnceLock::new();

/// Tells which taken-over static runtime an address belongs to; `None` before the driver is open and on other drivers.
pub fn instance_of() -> Option<InstanceOf> {
    *INSTANCE_OF.get()?
}

/// A bit for each runtime major of which the process uses functions.
static MAJORS: AtomicU32 = AtomicU32::new(0);

/// Says that the process uses functions of this major, before its first call.
pub fn use_major(major: u32) {
    MAJORS.fetch_or(1u32.checked_shl(major).unwrap_or(0), Ordering::Relaxed);
}

/// A bit for each major that [`use_major`] was told of.
pub fn majors() -> u32 {
    MAJORS.load(Ordering::Relaxed)
}

/// The driver after cuInit. A failure is an answer for good, as in CUDA.
pub fn get() -> Result<&'static Driver> {
    static READY: OnceCell<Result<&'static Driver>> = OnceCell::new();
    *READY.get_or_init(|| {
        let driver = open()?;
        let mut version = 0;
        driver.cuDriverGetVersion(&mut version)?;
        tracing::debug!(target: "cudaway::runtime", "driver version {version}");
        // CUDA: a driver serves runtimes of its own major and older ones.
        let newest = majors().checked_ilog2().unwrap_or(0);
        if u32::try_from(version / 1000).unwrap_or(0) < newest {
            return Err(Error::NoDriver("it is older than the runtime"));
        }
        driver.cuInit(0)?;
        Ok(driver)
    })
}

/// The process's `libcuda.so.1`.
fn library() -> Result<Library> {
    let failed =
        |path: &CStr, reason: &CStr| tracing::debug!(target: "cudaway::runtime", "{path:?}: {reason:?}");
    let handle = loader::place::open(library as *const c_void, c"libcuda.so.1", failed);
    let handle = handle.ok_or(Error::NoDriver("libcuda.so.1 cannot be opened"))?;
    // SAFETY: the loader's handle, which nobody else closes.
    Ok(unsafe { Library::from_raw(handle.as_ptr()) })
}
