//! Every `hip*` function of the library, by chapter: name and signature. The body of the same name is in
//! `hip_cpu::api`; a HIP function that is not here does not exist, which `hip-sys` sees as `None`.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};

use cuda_abi::ahead::{cudaway_compile_t, cudaway_told_t};
use hip_sys::*;

macro_rules! exports {
    ($($name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        $(
            /// # Safety
            /// HIP's contract for this function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> hipError_t {
                hip_cpu::entry(stringify!($name), || {
                    // SAFETY: the caller's promise.
                    hip_cpu::api::$name($(unsafe { hip_cpu::given($arg, stringify!($arg)) }?),*)
                })
            }
        )*

        /// Names of the functions above.
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

exports! {
    // device
    hipInit(flags: c_uint);
    hipDriverGetVersion(driverVersion: *mut c_int);
    hipRuntimeGetVersion(runtimeVersion: *mut c_int);
    hipGetDeviceCount(count: *mut c_int);
    hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int);
    hipSetDevice(deviceId: c_int);
    hipGetDevice(deviceId: *mut c_int);
    hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t);
    hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t);
    hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t);
    hipDeviceGetPCIBusId(pciBusId: *mut c_char, len: c_int, device: c_int);
    hipDeviceGetByPCIBusId(device: *mut c_int, pciBusId: *const c_char);
    hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t);
    hipGetDevicePropertiesR0600(prop: *mut hipDeviceProp_tR0600, deviceId: c_int);
    hipDeviceGetAttribute(pi: *mut c_int, attr: hipDeviceAttribute_t, deviceId: c_int);
    hipDeviceGetP2PAttribute(value: *mut c_int, attr: hipDeviceP2PAttr, src: c_int, dst: c_int);
    hipDeviceCanAccessPeer(canAccessPeer: *mut c_int, deviceId: c_int, peerDeviceId: c_int);
    hipDeviceEnablePeerAccess(peerDeviceId: c_int, flags: c_uint);
    hipDeviceDisablePeerAccess(peerDeviceId: c_int);
    hipDeviceSynchronize();
    hipDeviceReset();
    hipCtxSetCurrent(ctx: hipCtx_t);
    hipDeviceSetCacheConfig(cacheConfig: hipFuncCache_t);
    hipDeviceGetCacheConfig(cacheConfig: *mut hipFuncCache_t);
    hipDeviceSetSharedMemConfig(config: hipSharedMemConfig);
    hipDeviceGetSharedMemConfig(pConfig: *mut hipSharedMemConfig);
    hipSetDeviceFlags(flags: c_uint);
    hipGetDeviceFlags(flags: *mut c_uint);
    hipDeviceGetLimit(pValue: *mut usize, limit: hipLimit_t);
    hipDeviceSetLimit(limit: hipLimit_t, value: usize);
    hipDrvGetErrorName(hipError: hipError_t, errorString: *mut *const c_char);
    hipDrvGetErrorString(hipError: hipError_t, errorString: *mut *const c_char);
    // memory
    hipMalloc(ptr: *mut *mut c_void, size: usize);
    hipExtMallocWithFlags(ptr: *mut *mut c_void, sizeBytes: usize, flags: c_uint);
    hipMallocManaged(dev_ptr: *mut *mut c_void, size: usize, flags: c_uint);
    hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
    hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
    hipMallocHost(ptr: *mut *mut c_void, size: usize);
    hipMemAllocHost(ptr: *mut *mut c_void, size: usize);
    hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize);
    hipMemAllocPitch(dptr: *mut hipDeviceptr_t, pitch: *mut usize, widthInBytes: usize, height: usize, elementSizeBytes: c_uint);
    hipMalloc3D(pitchedDevPtr: *mut hipPitchedPtr, extent: hipExtent);
    hipFree(ptr: *mut c_void);
    hipHostFree(ptr: *mut c_void);
    hipFreeHost(ptr: *mut c_void);
    hipHostRegister(hostPtr: *mut c_void, sizeBytes: usize, flags: c_uint);
    hipHostUnregister(hostPtr: *mut c_void);
    hipHostGetDevicePointer(devPtr: *mut *mut c_void, hstPtr: *mut c_void, flags: c_uint);
    hipHostGetFlags(flagsPtr: *mut c_uint, hostPtr: *mut c_void);
    hipMemGetInfo(free: *mut usize, total: *mut usize);
    hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize);
    hipMemGetAddressRange(pbase: *mut hipDeviceptr_t, psize: *mut usize, dptr: hipDeviceptr_t);
    hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void);
    hipPointerGetAttribute(data: *mut c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t);
    hipDrvPointerGetAttributes(numAttributes: c_uint, attributes: *mut hipPointer_attribute, data: *mut *mut c_void, ptr: hipDeviceptr_t);
    hipMemPrefetchAsync(dev_ptr: *const c_void, count: usize, device: c_int, stream: hipStream_t);
    hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int);
    hipMemRangeGetAttribute(data: *mut c_void, data_size: usize, attribute: hipMemRangeAttribute, dev_ptr: *const c_void, count: usize);
    hipStreamAttachMemAsync(stream: hipStream_t, dev_ptr: *mut c_void, length: usize, flags: c_uint);
    // copy
    hipMemcpy(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind);
    hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t);
    hipMemcpyAsync(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind, stream: hipStream_t);
    hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, sizeBytes: usize);
    hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize);
    hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize);
    hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *mut c_void, sizeBytes: usize, stream: hipStream_t);
    hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t);
    hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize, stream: hipStream_t);
    hipMemcpyPeer(dst: *mut c_void, dstDevice: c_int, src: *const c_void, srcDevice: c_int, size: usize);
    hipMemcpyPeerAsync(dst: *mut c_void, dstDevice: c_int, src: *const c_void, srcDevice: c_int, size: usize, stream: hipStream_t);
    hipMemcpy2D(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind);
    hipMemcpy2DAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t);
    hipMemcpyParam2D(pCopy: *const hip_Memcpy2D);
    hipMemcpyParam2DAsync(pCopy: *const hip_Memcpy2D, stream: hipStream_t);
    hipDrvMemcpy2DUnaligned(pCopy: *const hip_Memcpy2D);
    hipDrvMemcpy3D(pCopy: *const HIP_MEMCPY3D);
    hipDrvMemcpy3DAsync(pCopy: *const HIP_MEMCPY3D, stream: hipStream_t);
    hipMemset(dst: *mut c_void, value: c_int, sizeBytes: usize);
    hipMemsetAsync(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t);
    hipMemsetD8(dest: hipDeviceptr_t, value: c_uchar, count: usize);
    hipMemsetD8Async(dest: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t);
    hipMemsetD16(dest: hipDeviceptr_t, value: c_ushort, count: usize);
    hipMemsetD16Async(dest: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t);
    hipMemsetD32(dest: hipDeviceptr_t, value: c_int, count: usize);
    hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t);
    hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize);
    hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t);
    hipMemset3D(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent);
    hipMemset3DAsync(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t);
    hipMemsetD2D8(dst: hipDeviceptr_t, dstPitch: usize, value: c_uchar, width: usize, height: usize);
    hipMemsetD2D8Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_uchar, width: usize, height: usize, stream: hipStream_t);
    hipMemsetD2D16(dst: hipDeviceptr_t, dstPitch: usize, value: c_ushort, width: usize, height: usize);
    hipMemsetD2D16Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_ushort, width: usize, height: usize, stream: hipStream_t);
    hipMemsetD2D32(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize);
    hipMemsetD2D32Async(dst: hipDeviceptr_t, dstPitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t);
    // array
    hipArray3DCreate(array: *mut hipArray_t, pAllocateArray: *const HIP_ARRAY3D_DESCRIPTOR);
    hipArrayCreate(pHandle: *mut hipArray_t, pAllocateArray: *const HIP_ARRAY_DESCRIPTOR);
    hipMallocArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, width: usize, height: usize, flags: c_uint);
    hipMalloc3DArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, flags: c_uint);
    hipArrayDestroy(array: hipArray_t);
    hipFreeArray(array: hipArray_t);
    hipArray3DGetDescriptor(pArrayDescriptor: *mut HIP_ARRAY3D_DESCRIPTOR, array: hipArray_t);
    hipArrayGetDescriptor(pArrayDescriptor: *mut HIP_ARRAY_DESCRIPTOR, array: hipArray_t);
    hipArrayGetInfo(desc: *mut hipChannelFormatDesc, extent: *mut hipExtent, flags: *mut c_uint, array: hipArray_t);
    hipGetChannelDesc(desc: *mut hipChannelFormatDesc, array: hipArray_const_t);
    hipMipmappedArrayCreate(pHandle: *mut hipMipmappedArray_t, pMipmappedArrayDesc: *mut HIP_ARRAY3D_DESCRIPTOR, numMipmapLevels: c_uint);
    hipMallocMipmappedArray(mipmappedArray: *mut hipMipmappedArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, numLevels: c_uint, flags: c_uint);
    hipMipmappedArrayDestroy(hMipmappedArray: hipMipmappedArray_t);
    hipFreeMipmappedArray(mipmappedArray: hipMipmappedArray_t);
    hipMipmappedArrayGetLevel(pLevelArray: *mut hipArray_t, hMipMappedArray: hipMipmappedArray_t, level: c_uint);
    hipGetMipmappedArrayLevel(levelArray: *mut hipArray_t, mipmappedArray: hipMipmappedArray_const_t, level: c_uint);
    hipMemcpyAtoD(dstDevice: hipDeviceptr_t, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize);
    hipMemcpyDtoA(dstArray: hipArray_t, dstOffset: usize, srcDevice: hipDeviceptr_t, ByteCount: usize);
    hipMemcpyAtoA(dstArray: hipArray_t, dstOffset: usize, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize);
    hipMemcpyAtoH(dst: *mut c_void, srcArray: hipArray_t, srcOffset: usize, count: usize);
    hipMemcpyHtoA(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, count: usize);
    hipMemcpyAtoHAsync(dstHost: *mut c_void, srcArray: hipArray_t, srcOffset: usize, ByteCount: usize, stream: hipStream_t);
    hipMemcpyHtoAAsync(dstArray: hipArray_t, dstOffset: usize, srcHost: *const c_void, ByteCount: usize, stream: hipStream_t);
    hipMemcpy2DToArray(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind);
    hipMemcpy2DToArrayAsync(dst: hipArray_t, wOffset: usize, hOffset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t);
    hipMemcpy2DFromArray(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind);
    hipMemcpy2DFromArrayAsync(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, wOffset: usize, hOffset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t);
    hipMemcpy2DArrayToArray(dst: hipArray_t, wOffsetDst: usize, hOffsetDst: usize, src: hipArray_const_t, wOffsetSrc: usize, hOffsetSrc: usize, width: usize, height: usize, kind: hipMemcpyKind);
    // texture
    hipTexObjectCreate(pTexObject: *mut hipTextureObject_t, pResDesc: *const HIP_RESOURCE_DESC, pTexDesc: *const HIP_TEXTURE_DESC, pResViewDesc: *const HIP_RESOURCE_VIEW_DESC);
    hipTexObjectDestroy(texObject: hipTextureObject_t);
    hipTexObjectGetResourceDesc(pResDesc: *mut HIP_RESOURCE_DESC, texObject: hipTextureObject_t);
    hipTexObjectGetTextureDesc(pTexDesc: *mut HIP_TEXTURE_DESC, texObject: hipTextureObject_t);
    hipTexObjectGetResourceViewDesc(pResViewDesc: *mut HIP_RESOURCE_VIEW_DESC, texObject: hipTextureObject_t);
    hipCreateTextureObject(pTexObject: *mut hipTextureObject_t, pResDesc: *const hipResourceDesc, pTexDesc: *const hipTextureDesc, pResViewDesc: *const hipResourceViewDesc);
    hipDestroyTextureObject(textureObject: hipTextureObject_t);
    hipGetTextureObjectResourceDesc(pResDesc: *mut hipResourceDesc, textureObject: hipTextureObject_t);
    hipGetTextureObjectTextureDesc(pTexDesc: *mut hipTextureDesc, textureObject: hipTextureObject_t);
    hipGetTextureObjectResourceViewDesc(pResViewDesc: *mut hipResourceViewDesc, textureObject: hipTextureObject_t);
    hipCreateSurfaceObject(pSurfObject: *mut hipSurfaceObject_t, pResDesc: *const hipResourceDesc);
    hipDestroySurfaceObject(surfaceObject: hipSurfaceObject_t);
    hipModuleGetTexRef(texRef: *mut *mut textureReference, hmod: hipModule_t, name: *const c_char);
    hipTexRefSetArray(tex: *mut textureReference, array: hipArray_const_t, flags: c_uint);
    hipTexRefSetMipmappedArray(texRef: *mut textureReference, mipmappedArray: hipMipmappedArray_t, Flags: c_uint);
    hipTexRefSetAddress(ByteOffset: *mut usize, texRef: *mut textureReference, dptr: hipDeviceptr_t, bytes: usize);
    hipTexRefSetAddress2D(texRef: *mut textureReference, desc: *const HIP_ARRAY_DESCRIPTOR, dptr: hipDeviceptr_t, Pitch: usize);
    hipTexRefSetFormat(texRef: *mut textureReference, fmt: hipArray_Format, NumPackedComponents: c_int);
    hipTexRefSetAddressMode(texRef: *mut textureReference, dim: c_int, am: hipTextureAddressMode);
    hipTexRefSetFilterMode(texRef: *mut textureReference, fm: hipTextureFilterMode);
    hipTexRefSetFlags(texRef: *mut textureReference, Flags: c_uint);
    hipTexRefSetBorderColor(texRef: *mut textureReference, pBorderColor: *mut [f32; 4]);
    hipTexRefSetMaxAnisotropy(texRef: *mut textureReference, maxAniso: c_uint);
    hipTexRefSetMipmapFilterMode(texRef: *mut textureReference, fm: hipTextureFilterMode);
    hipTexRefSetMipmapLevelBias(texRef: *mut textureReference, bias: f32);
    hipTexRefSetMipmapLevelClamp(texRef: *mut textureReference, minMipMapLevelClamp: f32, maxMipMapLevelClamp: f32);
    hipTexRefGetArray(pArray: *mut hipArray_t, texRef: *const textureReference);
    hipTexRefGetMipMappedArray(pArray: *mut hipMipmappedArray_t, texRef: *const textureReference);
    hipTexRefGetAddress(dev_ptr: *mut hipDeviceptr_t, texRef: *const textureReference);
    hipTexRefGetFormat(pFormat: *mut hipArray_Format, pNumChannels: *mut c_int, texRef: *const textureReference);
    hipTexRefGetAddressMode(pam: *mut hipTextureAddressMode, texRef: *const textureReference, dim: c_int);
    hipTexRefGetFilterMode(pfm: *mut hipTextureFilterMode, texRef: *const textureReference);
    hipTexRefGetFlags(pFlags: *mut c_uint, texRef: *const textureReference);
    hipTexRefGetBorderColor(pBorderColor: *mut [f32; 4], texRef: *const textureReference);
    hipTexRefGetMaxAnisotropy(pmaxAnsio: *mut c_int, texRef: *const textureReference);
    hipTexRefGetMipmapFilterMode(pfm: *mut hipTextureFilterMode, texRef: *const textureReference);
    hipTexRefGetMipmapLevelBias(pbias: *mut f32, texRef: *const textureReference);
    hipTexRefGetMipmapLevelClamp(pminMipmapLevelClamp: *mut f32, pmaxMipmapLevelClamp: *mut f32, texRef: *const textureReference);
    // stream
    hipStreamCreate(stream: *mut hipStream_t);
    hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint);
    hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int);
    hipDeviceGetStreamPriorityRange(leastPriority: *mut c_int, greatestPriority: *mut c_int);
    hipStreamDestroy(stream: hipStream_t);
    hipStreamQuery(stream: hipStream_t);
    hipStreamSynchronize(stream: hipStream_t);
    hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint);
    hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint);
    hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int);
    hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t);
    hipStreamAddCallback(stream: hipStream_t, callback: hipStreamCallback_t, userData: *mut c_void, flags: c_uint);
    hipLaunchHostFunc(stream: hipStream_t, r#fn: hipHostFn_t, userData: *mut c_void);
    hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint);
    hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint);
    hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32);
    hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64);
    hipStreamIsCapturing(stream: hipStream_t, pCaptureStatus: *mut hipStreamCaptureStatus);
    // event
    hipEventCreate(event: *mut hipEvent_t);
    hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint);
    hipEventRecord(event: hipEvent_t, stream: hipStream_t);
    hipEventDestroy(event: hipEvent_t);
    hipEventSynchronize(event: hipEvent_t);
    hipEventQuery(event: hipEvent_t);
    hipEventElapsedTime(ms: *mut f32, start: hipEvent_t, stop: hipEvent_t);
    // module
    hipModuleLoadData(module: *mut hipModule_t, image: *const c_void);
    hipModuleLoadDataEx(module: *mut hipModule_t, image: *const c_void, numOptions: c_uint, options: *mut hipJitOption, optionValues: *mut *mut c_void);
    hipModuleLoad(module: *mut hipModule_t, fname: *const c_char);
    hipModuleUnload(module: hipModule_t);
    hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, kname: *const c_char);
    hipModuleGetGlobal(dptr: *mut hipDeviceptr_t, bytes: *mut usize, hmod: hipModule_t, name: *const c_char);
    hipFuncGetAttribute(value: *mut c_int, attrib: hipFunction_attribute, hfunc: hipFunction_t);
    hipFuncSetAttribute(func: *const c_void, attr: hipFuncAttribute, value: c_int);
    // launch
    hipModuleLaunchCooperativeKernel(f: hipFunction_t, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, stream: hipStream_t, kernelParams: *mut *mut c_void);
    hipDrvLaunchKernelEx(config: *const HIP_LAUNCH_CONFIG, f: hipFunction_t, params: *mut *mut c_void, extra: *mut *mut c_void);
    hipModuleLaunchKernel(f: hipFunction_t, gridDimX: c_uint, gridDimY: c_uint, gridDimZ: c_uint, blockDimX: c_uint, blockDimY: c_uint, blockDimZ: c_uint, sharedMemBytes: c_uint, stream: hipStream_t, kernelParams: *mut *mut c_void, extra: *mut *mut c_void);
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks: *mut c_int, f: hipFunction_t, blockSize: c_int, dynSharedMemPerBlk: usize);
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks: *mut c_int, f: hipFunction_t, blockSize: c_int, dynSharedMemPerBlk: usize, flags: c_uint);
    hipModuleOccupancyMaxPotentialBlockSize(gridSize: *mut c_int, blockSize: *mut c_int, f: hipFunction_t, dynSharedMemPerBlk: usize, blockSizeLimit: c_int);
    hipModuleOccupancyMaxPotentialBlockSizeWithFlags(gridSize: *mut c_int, blockSize: *mut c_int, f: hipFunction_t, dynSharedMemPerBlk: usize, blockSizeLimit: c_int, flags: c_uint);
    // pool
    hipMallocFromPoolAsync(dev_ptr: *mut *mut c_void, size: usize, mem_pool: hipMemPool_t, stream: hipStream_t);
    hipMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: hipStream_t);
    hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t);
    hipDeviceGetDefaultMemPool(mem_pool: *mut hipMemPool_t, device: c_int);
    hipDeviceGetMemPool(mem_pool: *mut hipMemPool_t, device: c_int);
    hipDeviceSetMemPool(device: c_int, mem_pool: hipMemPool_t);
    hipMemPoolCreate(mem_pool: *mut hipMemPool_t, pool_props: *const hipMemPoolProps);
    hipMemPoolDestroy(mem_pool: hipMemPool_t);
    hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize);
    hipMemPoolSetAttribute(mem_pool: hipMemPool_t, attr: hipMemPoolAttr, value: *mut c_void);
    hipMemPoolGetAttribute(mem_pool: hipMemPool_t, attr: hipMemPoolAttr, value: *mut c_void);
    hipMemPoolSetAccess(mem_pool: hipMemPool_t, desc_list: *const hipMemAccessDesc, count: usize);
    hipMemPoolGetAccess(flags: *mut hipMemAccessFlags, mem_pool: hipMemPool_t, location: *mut hipMemLocation);
    // virtual memory
    hipMemGetAllocationGranularity(granularity: *mut usize, prop: *const hipMemAllocationProp, option: hipMemAllocationGranularity_flags);
    hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, prop: *const hipMemAllocationProp, flags: u64);
    hipMemRelease(handle: hipMemGenericAllocationHandle_t);
    hipMemRetainAllocationHandle(handle: *mut hipMemGenericAllocationHandle_t, addr: *mut c_void);
    hipMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t);
    hipMemExportToShareableHandle(shareableHandle: *mut c_int, handle: hipMemGenericAllocationHandle_t, handleType: hipMemAllocationHandleType, flags: u64);
    hipMemImportFromShareableHandle(handle: *mut hipMemGenericAllocationHandle_t, osHandle: *mut c_void, shHandleType: hipMemAllocationHandleType);
    hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, addr: *mut c_void, flags: u64);
    hipMemAddressFree(devPtr: *mut c_void, size: usize);
    hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: u64);
    hipMemUnmap(ptr: *mut c_void, size: usize);
    hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize);
    hipMemGetAccess(flags: *mut u64, location: *const hipMemLocation, ptr: *mut c_void);
    // between processes and APIs
    hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, devPtr: *mut c_void);
    hipIpcOpenMemHandle(devPtr: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint);
    hipIpcCloseMemHandle(devPtr: *mut c_void);
    hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t);
    hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t);
    hipMemPoolExportToShareableHandle(shared_handle: *mut c_int, mem_pool: hipMemPool_t, handle_type: hipMemAllocationHandleType, flags: c_uint);
    hipMemPoolImportFromShareableHandle(mem_pool: *mut hipMemPool_t, shared_handle: *mut c_void, handle_type: hipMemAllocationHandleType, flags: c_uint);
    hipMemPoolExportPointer(export_data: *mut hipMemPoolPtrExportData, dev_ptr: *mut c_void);
    hipMemPoolImportPointer(dev_ptr: *mut *mut c_void, mem_pool: hipMemPool_t, export_data: *mut hipMemPoolPtrExportData);
    hipImportExternalMemory(extMem_out: *mut hipExternalMemory_t, memHandleDesc: *const c_void);
    hipExternalMemoryGetMappedBuffer(devPtr: *mut *mut c_void, extMem: hipExternalMemory_t, bufferDesc: *const c_void);
    hipDestroyExternalMemory(extMem: hipExternalMemory_t);
}

// These four answer something else than a call's success.

#[unsafe(no_mangle)]
pub extern "C" fn hipGetLastError() -> hipError_t {
    hip_cpu::api::hipGetLastError()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipPeekAtLastError() -> hipError_t {
    hip_cpu::api::hipPeekAtLastError()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorName(hip_error: hipError_t) -> *const c_char {
    hip_cpu::api::error_text(hip_error).unwrap_or(c"hipErrorUnknown").as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn hipGetErrorString(hip_error: hipError_t) -> *const c_char {
    hipGetErrorName(hip_error)
}

/// See [`cuda_abi::ahead::cudaway_compile_t`], which has this signature.
///
/// # Safety
/// What that says: an image, C strings, three numbers for each block, a function that takes `data` from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_compile(
    image: *const c_void,
    processor: *const c_char,
    folder: *const c_char,
    blocks: *const u32,
    n_blocks: usize,
    told: cudaway_told_t,
    data: *mut c_void,
) -> c_int {
    hip_cpu::entry("cudaway_compile", || {
        hip_cpu::api::cudaway_compile(image, processor, folder, blocks, n_blocks, told, data)
    })
    .0
}

const _: cudaway_compile_t = cudaway_compile;

/// See [`hip_sys::Hip::prepare`].
///
/// # Safety
/// None: a handle is looked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_prepare(
    function: hipFunction_t,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    is_clustered: c_int,
) -> hipError_t {
    hip_cpu::entry("cudaway_prepare", || {
        hip_cpu::api::cudaway_prepare(function, [x, y, z], is_clustered != 0)
    })
}

const _: hip_sys::Prepare = cudaway_prepare;

/// See [`hip_sys::Hip::graph`].
///
/// # Safety
/// None: handles are looked for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaway_graph(
    what: c_uint,
    graph: u64,
    stream: hipStream_t,
    other: hipStream_t,
) -> hipError_t {
    hip_cpu::entry("cudaway_graph", || hip_cpu::api::cudaway_graph(what, graph, stream, other))
}

const _: hip_sys::Graph = cudaway_graph;

#[cfg(test)]
mod tests {
    use super::NAMES;

    #[test]
    fn every_name_is_one_of_the_table() {
        for name in NAMES {
            assert!(hip_sys::Hip::NAMES.contains(name) || *name == "hipFuncSetAttribute", "{name}");
        }
    }
}
