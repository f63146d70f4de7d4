//! The C types of the HIP ABI in their ROCm 6.4 shape, as `libcudaway_cpu.so` implements them and `hip-sys` calls them.
//!
//! Where an older ROCm differs (device properties, `hipMemoryType`, `HIP_MEMCPY3D`), `negotiate` converts; no one else
//! may look at a version. Enums are integers here: a provider may answer with a value that this header does not know.

use core::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use core::mem::{offset_of, size_of};

use crate::hipError_t;

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident = *mut $object:ident;)*) => {
        $(
            #[repr(C)]
            pub struct $object {
                _opaque: [u8; 0],
            }
            $(#[$doc])*
            pub type $handle = *mut $object;
        )*
    };
}

handles! {
    hipCtx_t                        = *mut ihipCtx_t;
    hipStream_t                     = *mut ihipStream_t;
    hipEvent_t                      = *mut ihipEvent_t;
    hipModule_t                     = *mut ihipModule_t;
    hipFunction_t                   = *mut ihipModuleSymbol_t;
    hipMemPool_t                    = *mut ihipMemPoolHandle_t;
    hipGraph_t                      = *mut ihipGraph;
    hipGraphNode_t                  = *mut hipGraphNode;
    hipGraphExec_t                  = *mut hipGraphExec;
    hipUserObject_t                 = *mut hipUserObject;
    hipArray_t                      = *mut hipArray;
    hipMipmappedArray_t             = *mut hipMipmappedArray;
    hipTextureObject_t              = *mut __hip_texture;
    hipSurfaceObject_t              = *mut __hip_surface;
    hipMemGenericAllocationHandle_t = *mut ihipMemGenericAllocationHandle;
}

pub type hipArray_const_t = *const hipArray;
pub type hipMipmappedArray_const_t = *const hipMipmappedArray;
pub type hipExternalMemory_t = *mut c_void;
pub type hipExternalSemaphore_t = *mut c_void;
pub type hipDeviceptr_t = *mut c_void;
pub type hipDevice_t = c_int;

pub type hipStreamCallback_t =
    Option<unsafe extern "C" fn(stream: hipStream_t, status: hipError_t, userData: *mut c_void)>;
pub type hipHostFn_t = Option<unsafe extern "C" fn(userData: *mut c_void)>;

/// The default stream that waits for all blocking streams of its device. A null stream means the same.
pub const hipStreamLegacy: hipStream_t = 1 as hipStream_t;
/// The calling thread's own default stream.
pub const hipStreamPerThread: hipStream_t = 2 as hipStream_t;

macro_rules! constants {
    ($($ty:ty: $($name:ident = $value:expr),* $(,)?;)*) => { $($(pub const $name: $ty = $value;)*)* };
}
pub(crate) use constants;

pub type hipMemoryType = c_int;
pub type hipMemcpyKind = c_int;
pub type hipLimit_t = c_int;
pub type hipFuncCache_t = c_int;
pub type hipSharedMemConfig = c_int;
pub type hipFuncAttribute = c_int;
pub type hipFunction_attribute = c_int;
pub type hipPointer_attribute = c_int;
pub type hipMemoryAdvise = c_int;
pub type hipMemRangeAttribute = c_int;
pub type hipMemPoolAttr = c_int;
pub type hipMemLocationType = c_int;
pub type hipMemAccessFlags = c_int;
pub type hipMemAllocationType = c_int;
pub type hipMemAllocationHandleType = c_int;
pub type hipMemAllocationGranularity_flags = c_int;
pub type hipJitOption = c_int;
pub type hipDeviceP2PAttr = c_int;
pub type hipStreamCaptureMode = c_int;
pub type hipStreamCaptureStatus = c_int;
pub type hipGraphNodeType = c_int;
pub type hipGraphExecUpdateResult = c_int;
pub type hipGraphInstantiateResult = c_int;
pub type hipGraphMemAttributeType = c_int;
pub type hipDriverProcAddressQueryResult = c_int;
pub type hipArray_Format = c_int;
pub type hipChannelFormatKind = c_int;
pub type hipResourceType = c_int;

constants! {
    hipMemoryType:
        hipMemoryTypeUnregistered = 0, hipMemoryTypeHost = 1, hipMemoryTypeDevice = 2, hipMemoryTypeManaged = 3,
        hipMemoryTypeArray = 10, hipMemoryTypeUnified = 11;
    hipMemcpyKind:
        hipMemcpyHostToHost = 0, hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2,
        hipMemcpyDeviceToDevice = 3, hipMemcpyDefault = 4;
    hipLimit_t:
        hipLimitStackSize = 0, hipLimitPrintfFifoSize = 1, hipLimitMallocHeapSize = 2,
        hipLimitDevRuntimeSyncDepth = 3, hipLimitDevRuntimePendingLaunchCount = 4;
    hipFuncCache_t:
        hipFuncCachePreferNone = 0, hipFuncCachePreferShared = 1, hipFuncCachePreferL1 = 2, hipFuncCachePreferEqual = 3;
    hipFunction_attribute:
        HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
        HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
        HIP_FUNC_ATTRIBUTE_NUM_REGS = 4, HIP_FUNC_ATTRIBUTE_PTX_VERSION = 5,
        HIP_FUNC_ATTRIBUTE_BINARY_VERSION = 6, HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
        HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
        HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9;
    hipPointer_attribute:
        HIP_POINTER_ATTRIBUTE_CONTEXT = 1, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        HIP_POINTER_ATTRIBUTE_DEVICE_POINTER = 3, HIP_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        HIP_POINTER_ATTRIBUTE_P2P_TOKENS = 5, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7, HIP_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE = 10,
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11, HIP_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        HIP_POINTER_ATTRIBUTE_MAPPED = 13, HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15, HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17;
    hipMemPoolAttr:
        hipMemPoolReuseFollowEventDependencies = 1, hipMemPoolReuseAllowOpportunistic = 2,
        hipMemPoolReuseAllowInternalDependencies = 3, hipMemPoolAttrReleaseThreshold = 4,
        hipMemPoolAttrReservedMemCurrent = 5, hipMemPoolAttrReservedMemHigh = 6,
        hipMemPoolAttrUsedMemCurrent = 7, hipMemPoolAttrUsedMemHigh = 8;
    hipMemoryAdvise:
        hipMemAdviseSetReadMostly = 1, hipMemAdviseUnsetReadMostly = 2, hipMemAdviseSetPreferredLocation = 3,
        hipMemAdviseUnsetPreferredLocation = 4, hipMemAdviseSetAccessedBy = 5, hipMemAdviseUnsetAccessedBy = 6;
    hipMemLocationType:
        hipMemLocationTypeInvalid = 0, hipMemLocationTypeDevice = 1;
    hipMemAllocationType:
        hipMemAllocationTypeInvalid = 0, hipMemAllocationTypePinned = 1;
    hipStreamCaptureStatus:
        hipStreamCaptureStatusNone = 0, hipStreamCaptureStatusActive = 1, hipStreamCaptureStatusInvalidated = 2;
    hipArray_Format:
        HIP_AD_FORMAT_UNSIGNED_INT8 = 0x01, HIP_AD_FORMAT_UNSIGNED_INT16 = 0x02, HIP_AD_FORMAT_UNSIGNED_INT32 = 0x03,
        HIP_AD_FORMAT_SIGNED_INT8 = 0x08, HIP_AD_FORMAT_SIGNED_INT16 = 0x09, HIP_AD_FORMAT_SIGNED_INT32 = 0x0a,
        HIP_AD_FORMAT_HALF = 0x10, HIP_AD_FORMAT_FLOAT = 0x20;
    c_uint:
        hipStreamDefault = 0, hipStreamNonBlocking = 1,
        hipEventDefault = 0, hipEventBlockingSync = 1, hipEventDisableTiming = 2, hipEventInterprocess = 4,
        hipHostMallocDefault = 0, hipHostMallocPortable = 1, hipHostMallocMapped = 2, hipHostMallocWriteCombined = 4, hipHostMallocCoherent = 0x4000_0000,
        hipHostRegisterDefault = 0, hipHostRegisterPortable = 1, hipHostRegisterMapped = 2,
        hipHostRegisterIoMemory = 4, hipHostRegisterReadOnly = 8,
        hipMemAttachGlobal = 1, hipMemAttachHost = 2, hipMemAttachSingle = 4,
        hipDeviceScheduleAuto = 0, hipDeviceScheduleSpin = 1, hipDeviceScheduleYield = 2,
        hipDeviceScheduleBlockingSync = 4, hipDeviceMapHost = 8, hipDeviceLmemResizeToMax = 16;
}

pub const hipCpuDeviceId: c_int = -1;
pub const hipInvalidDeviceId: c_int = -2;

/// The tags of `hipModuleLaunchKernel`'s `extra` list. HIP differs: its end tag is 3, CUDA's is 0.
pub const HIP_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = core::ptr::without_provenance_mut(1);
pub const HIP_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = core::ptr::without_provenance_mut(2);
pub const HIP_LAUNCH_PARAM_END: *mut c_void = core::ptr::without_provenance_mut(3);

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hipUUID {
    pub bytes: [u8; 16],
}

/// 17 one-bit flags; the first is the lowest bit.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipDeviceArch_t {
    pub bits: c_uint,
}

/// Device properties as `hipGetDevicePropertiesR0600` fills them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipDeviceProp_tR0600 {
    pub name: [c_char; 256],
    pub uuid: hipUUID,
    pub luid: [c_char; 8],
    pub luidDeviceNodeMask: c_uint,
    pub totalGlobalMem: usize,
    pub sharedMemPerBlock: usize,
    pub regsPerBlock: c_int,
    pub warpSize: c_int,
    pub memPitch: usize,
    pub maxThreadsPerBlock: c_int,
    pub maxThreadsDim: [c_int; 3],
    pub maxGridSize: [c_int; 3],
    pub clockRate: c_int,
    pub totalConstMem: usize,
    pub major: c_int,
    pub minor: c_int,
    pub textureAlignment: usize,
    pub texturePitchAlignment: usize,
    pub deviceOverlap: c_int,
    pub multiProcessorCount: c_int,
    pub kernelExecTimeoutEnabled: c_int,
    pub integrated: c_int,
    pub canMapHostMemory: c_int,
    pub computeMode: c_int,
    pub maxTexture1D: c_int,
    pub maxTexture1DMipmap: c_int,
    pub maxTexture1DLinear: c_int,
    pub maxTexture2D: [c_int; 2],
    pub maxTexture2DMipmap: [c_int; 2],
    pub maxTexture2DLinear: [c_int; 3],
    pub maxTexture2DGather: [c_int; 2],
    pub maxTexture3D: [c_int; 3],
    pub maxTexture3DAlt: [c_int; 3],
    pub maxTextureCubemap: c_int,
    pub maxTexture1DLayered: [c_int; 2],
    pub maxTexture2DLayered: [c_int; 3],
    pub maxTextureCubemapLayered: [c_int; 2],
    pub maxSurface1D: c_int,
    pub maxSurface2D: [c_int; 2],
    pub maxSurface3D: [c_int; 3],
    pub maxSurface1DLayered: [c_int; 2],
    pub maxSurface2DLayered: [c_int; 3],
    pub maxSurfaceCubemap: c_int,
    pub maxSurfaceCubemapLayered: [c_int; 2],
    pub surfaceAlignment: usize,
    pub concurrentKernels: c_int,
    pub ECCEnabled: c_int,
    pub pciBusID: c_int,
    pub pciDeviceID: c_int,
    pub pciDomainID: c_int,
    pub tccDriver: c_int,
    pub asyncEngineCount: c_int,
    pub unifiedAddressing: c_int,
    pub memoryClockRate: c_int,
    pub memoryBusWidth: c_int,
    pub l2CacheSize: c_int,
    pub persistingL2CacheMaxSize: c_int,
    pub maxThreadsPerMultiProcessor: c_int,
    pub streamPrioritiesSupported: c_int,
    pub globalL1CacheSupported: c_int,
    pub localL1CacheSupported: c_int,
    pub sharedMemPerMultiprocessor: usize,
    pub regsPerMultiprocessor: c_int,
    pub managedMemory: c_int,
    pub isMultiGpuBoard: c_int,
    pub multiGpuBoardGroupID: c_int,
    pub hostNativeAtomicSupported: c_int,
    pub singleToDoublePrecisionPerfRatio: c_int,
    pub pageableMemoryAccess: c_int,
    pub concurrentManagedAccess: c_int,
    pub computePreemptionSupported: c_int,
    pub canUseHostPointerForRegisteredMem: c_int,
    pub cooperativeLaunch: c_int,
    pub cooperativeMultiDeviceLaunch: c_int,
    pub sharedMemPerBlockOptin: usize,
    pub pageableMemoryAccessUsesHostPageTables: c_int,
    pub directManagedMemAccessFromHost: c_int,
    pub maxBlocksPerMultiProcessor: c_int,
    pub accessPolicyMaxWindowSize: c_int,
    pub reservedSharedMemPerBlock: usize,
    pub hostRegisterSupported: c_int,
    pub sparseHipArraySupported: c_int,
    pub hostRegisterReadOnlySupported: c_int,
    pub timelineSemaphoreInteropSupported: c_int,
    pub memoryPoolsSupported: c_int,
    pub gpuDirectRDMASupported: c_int,
    pub gpuDirectRDMAFlushWritesOptions: c_uint,
    pub gpuDirectRDMAWritesOrdering: c_int,
    pub memoryPoolSupportedHandleTypes: c_uint,
    pub deferredMappingHipArraySupported: c_int,
    pub ipcEventSupported: c_int,
    pub clusterLaunch: c_int,
    pub unifiedFunctionPointers: c_int,
    pub reserved: [c_int; 63],
    pub hipReserved: [c_int; 32],
    pub gcnArchName: [c_char; 256],
    pub maxSharedMemoryPerMultiProcessor: usize,
    pub clockInstructionRate: c_int,
    pub arch: hipDeviceArch_t,
    pub hdpMemFlushCntl: *mut c_uint,
    pub hdpRegFlushCntl: *mut c_uint,
    pub cooperativeMultiDeviceUnmatchedFunc: c_int,
    pub cooperativeMultiDeviceUnmatchedGridDim: c_int,
    pub cooperativeMultiDeviceUnmatchedBlockDim: c_int,
    pub cooperativeMultiDeviceUnmatchedSharedMem: c_int,
    pub isLargeBar: c_int,
    pub asicRevision: c_int,
}

// Read from the built 6.4 library (shared/amd/hip_layouts.txt).
const _: () = {
    assert!(size_of::<hipDeviceProp_tR0600>() == 1472);
    assert!(offset_of!(hipDeviceProp_tR0600, uuid) == 256);
    assert!(offset_of!(hipDeviceProp_tR0600, luid) == 272);
    assert!(offset_of!(hipDeviceProp_tR0600, totalGlobalMem) == 288);
    assert!(offset_of!(hipDeviceProp_tR0600, sharedMemPerBlock) == 296);
    assert!(offset_of!(hipDeviceProp_tR0600, regsPerBlock) == 304);
    assert!(offset_of!(hipDeviceProp_tR0600, warpSize) == 308);
    assert!(offset_of!(hipDeviceProp_tR0600, memPitch) == 312);
    assert!(offset_of!(hipDeviceProp_tR0600, maxThreadsPerBlock) == 320);
    assert!(offset_of!(hipDeviceProp_tR0600, maxGridSize) == 336);
    assert!(offset_of!(hipDeviceProp_tR0600, clockRate) == 348);
    assert!(offset_of!(hipDeviceProp_tR0600, major) == 360);
    assert!(offset_of!(hipDeviceProp_tR0600, multiProcessorCount) == 388);
    assert!(offset_of!(hipDeviceProp_tR0600, integrated) == 396);
    assert!(offset_of!(hipDeviceProp_tR0600, canMapHostMemory) == 400);
    assert!(offset_of!(hipDeviceProp_tR0600, computeMode) == 404);
    assert!(offset_of!(hipDeviceProp_tR0600, concurrentKernels) == 576);
    assert!(offset_of!(hipDeviceProp_tR0600, pciBusID) == 584);
    assert!(offset_of!(hipDeviceProp_tR0600, l2CacheSize) == 616);
    assert!(offset_of!(hipDeviceProp_tR0600, maxThreadsPerMultiProcessor) == 624);
    assert!(offset_of!(hipDeviceProp_tR0600, managedMemory) == 652);
    assert!(offset_of!(hipDeviceProp_tR0600, cooperativeLaunch) == 688);
    assert!(offset_of!(hipDeviceProp_tR0600, gcnArchName) == 1160);
    assert!(offset_of!(hipDeviceProp_tR0600, hdpMemFlushCntl) == 1432);
    assert!(offset_of!(hipDeviceProp_tR0600, asicRevision) == 1468);
};

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipPointerAttribute_t {
    pub r#type: hipMemoryType,
    pub device: c_int,
    pub devicePointer: *mut c_void,
    pub hostPointer: *mut c_void,
    pub isManaged: c_int,
    pub allocationFlags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipFuncAttributes {
    pub binaryVersion: c_int,
    pub cacheModeCA: c_int,
    pub constSizeBytes: usize,
    pub localSizeBytes: usize,
    pub maxDynamicSharedSizeBytes: c_int,
    pub maxThreadsPerBlock: c_int,
    pub numRegs: c_int,
    pub preferredShmemCarveout: c_int,
    pub ptxVersion: c_int,
    pub sharedSizeBytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipExtent {
    pub width: usize,
    pub height: usize,
    pub depth: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipPos {
    pub x: usize,
    pub y: usize,
    pub z: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipPitchedPtr {
    pub ptr: *mut c_void,
    pub pitch: usize,
    pub xsize: usize,
    pub ysize: usize,
}

/// 128 bytes in every version; the two `MemoryType` members are numbered by the version.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hip_Memcpy2D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcMemoryType: hipMemoryType,
    pub srcHost: *const c_void,
    pub srcDevice: hipDeviceptr_t,
    pub srcArray: hipArray_t,
    pub srcPitch: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstMemoryType: hipMemoryType,
    pub dstHost: *mut c_void,
    pub dstDevice: hipDeviceptr_t,
    pub dstArray: hipArray_t,
    pub dstPitch: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
}

/// 184 bytes from ROCm 6 on, with 64-bit positions and sizes; 128 bytes with 32-bit ones in ROCm 5.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_MEMCPY3D {
    pub srcXInBytes: usize,
    pub srcY: usize,
    pub srcZ: usize,
    pub srcLOD: usize,
    pub srcMemoryType: hipMemoryType,
    pub srcHost: *const c_void,
    pub srcDevice: hipDeviceptr_t,
    pub srcArray: hipArray_t,
    pub srcPitch: usize,
    pub srcHeight: usize,
    pub dstXInBytes: usize,
    pub dstY: usize,
    pub dstZ: usize,
    pub dstLOD: usize,
    pub dstMemoryType: hipMemoryType,
    pub dstHost: *mut c_void,
    pub dstDevice: hipDeviceptr_t,
    pub dstArray: hipArray_t,
    pub dstPitch: usize,
    pub dstHeight: usize,
    pub WidthInBytes: usize,
    pub Height: usize,
    pub Depth: usize,
}

const _: () = {
    assert!(size_of::<hipPointerAttribute_t>() == 32);
    assert!(offset_of!(hipPointerAttribute_t, devicePointer) == 8);
    assert!(offset_of!(hipPointerAttribute_t, hostPointer) == 16);
    assert!(offset_of!(hipPointerAttribute_t, isManaged) == 24);
    assert!(size_of::<hip_Memcpy2D>() == 128);
    assert!(size_of::<HIP_MEMCPY3D>() == 184);
};

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipChannelFormatDesc {
    pub x: c_int,
    pub y: c_int,
    pub z: c_int,
    pub w: c_int,
    pub f: hipChannelFormatKind,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_ARRAY_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Format: hipArray_Format,
    pub NumChannels: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_ARRAY3D_DESCRIPTOR {
    pub Width: usize,
    pub Height: usize,
    pub Depth: usize,
    pub Format: hipArray_Format,
    pub NumChannels: c_uint,
    pub Flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipIpcMemHandle_t {
    pub reserved: [c_char; 64],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipIpcEventHandle_t {
    pub reserved: [c_char; 64],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct hipMemLocation {
    pub r#type: hipMemLocationType,
    pub id: c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemAccessDesc {
    pub location: hipMemLocation,
    pub flags: hipMemAccessFlags,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemPoolProps {
    pub allocType: hipMemAllocationType,
    pub handleTypes: hipMemAllocationHandleType,
    pub location: hipMemLocation,
    pub win32SecurityAttributes: *mut c_void,
    pub maxSize: usize,
    pub reserved: [c_uchar; 56],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipMemPoolPtrExportData {
    pub reserved: [c_uchar; 64],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemAllocationPropFlags {
    pub compressionType: c_uchar,
    pub gpuDirectRDMACapable: c_uchar,
    pub usage: c_ushort,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemAllocationProp {
    pub r#type: hipMemAllocationType,
    pub requestedHandleType: hipMemAllocationHandleType,
    pub location: hipMemLocation,
    pub win32HandleMetaData: *mut c_void,
    pub allocFlags: hipMemAllocationPropFlags,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipHostNodeParams {
    pub r#fn: hipHostFn_t,
    pub userData: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipKernelNodeParams {
    pub blockDim: dim3,
    pub extra: *mut *mut c_void,
    pub func: *mut c_void,
    pub gridDim: dim3,
    pub kernelParams: *mut *mut c_void,
    pub sharedMemBytes: c_uint,
}

/// Launch attributes (ROCm 7); the others are hints.
pub type hipLaunchAttributeID = c_uint;
pub const hipLaunchAttributeIgnore: hipLaunchAttributeID = 0;
pub const hipLaunchAttributeCooperative: hipLaunchAttributeID = 2;
pub const hipLaunchAttributeClusterDimension: hipLaunchAttributeID = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub union hipLaunchAttributeValue {
    pub pad: [u64; 8],
    pub cooperative: c_int,
    /// x, y, z.
    pub clusterDim: [c_uint; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipLaunchAttribute {
    pub id: hipLaunchAttributeID,
    pub pad: c_uint,
    pub value: hipLaunchAttributeValue,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_LAUNCH_CONFIG {
    pub gridDimX: c_uint,
    pub gridDimY: c_uint,
    pub gridDimZ: c_uint,
    pub blockDimX: c_uint,
    pub blockDimY: c_uint,
    pub blockDimZ: c_uint,
    pub sharedMemBytes: c_uint,
    pub hStream: hipStream_t,
    pub attrs: *mut hipLaunchAttribute,
    pub numAttrs: c_uint,
}

const _: () = {
    assert!(size_of::<hipLaunchAttribute>() == 72 && offset_of!(hipLaunchAttribute, value) == 8);
    assert!(offset_of!(HIP_LAUNCH_CONFIG, hStream) == 32 && size_of::<HIP_LAUNCH_CONFIG>() == 56);
};

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemsetParams {
    pub dst: *mut c_void,
    pub elementSize: c_uint,
    pub height: usize,
    pub pitch: usize,
    pub value: c_uint,
    pub width: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HIP_MEMSET_NODE_PARAMS {
    pub dst: hipDeviceptr_t,
    pub pitch: usize,
    pub value: c_uint,
    pub elementSize: c_uint,
    pub width: usize,
    pub height: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipGraphInstantiateParams {
    pub errNode_out: hipGraphNode_t,
    pub flags: u64,
    pub result_out: hipGraphInstantiateResult,
    pub uploadStream: hipStream_t,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemAllocNodeParams {
    pub poolProps: hipMemPoolProps,
    pub accessDescs: *const hipMemAccessDesc,
    pub accessDescCount: usize,
    pub bytesize: usize,
    pub dptr: *mut c_void,
}
