//! Device properties: one struct per ABI, all filled from the driver's attributes, so that they agree with each other and
//! with it.

use core::ffi::{c_char, c_int, c_uint};

use border::Out;
use cuda_abi::runtime::{v11, v12, v13};
use cuda_abi::{CUdevice_attribute, CUuuid};

use crate::device::{self, Device};
use crate::{Result, driver};

pub fn cudaGetDeviceProperties_v11(prop: Out<'_, v11::cudaDeviceProp>, device: c_int) -> Result {
    prop.write(properties_v11(device::at(device)?)?);
    Ok(())
}

/// CUDA 12 differs: under the plain name it keeps 11's layout, for programs built before 12.
pub fn cudaGetDeviceProperties_v12(prop: Out<'_, v11::cudaDeviceProp>, device: c_int) -> Result {
    cudaGetDeviceProperties_v11(prop, device)
}

pub fn cudaGetDeviceProperties_v2(prop: Out<'_, v12::cudaDeviceProp>, device: c_int) -> Result {
    prop.write(properties_v12(device::at(device)?)?);
    Ok(())
}

pub fn cudaGetDeviceProperties_v13(prop: Out<'_, v13::cudaDeviceProp>, device: c_int) -> Result {
    prop.write(properties_v13(device::at(device)?)?);
    Ok(())
}

/// What cudaChooseDevice looks at in a wish.
struct Wish {
    capability: (c_int, c_int),
    memory_bytes: usize,
}

/// CUDA: the device that fits best. A device of at least the wished capability and memory fits; 0 in a wish means any.
fn choose(wish: &Wish) -> Result<c_int> {
    let fits = |device: &&Device| {
        let capability = (
            device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR).unwrap_or(0),
            device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR).unwrap_or(0),
        );
        capability >= wish.capability
            && Identity::of(device).is_ok_and(|identity| identity.memory_bytes >= wish.memory_bytes)
    };
    let all = device::all()?;
    Ok(all.iter().find(fits).map_or(0, |device| device.ordinal))
}

pub fn cudaChooseDevice_v11(device: Out<'_, c_int>, prop: &v11::cudaDeviceProp) -> Result {
    device.write(choose(&Wish { capability: (prop.major, prop.minor), memory_bytes: prop.totalGlobalMem })?);
    Ok(())
}

pub fn cudaChooseDevice_v12(device: Out<'_, c_int>, prop: &v12::cudaDeviceProp) -> Result {
    device.write(choose(&Wish { capability: (prop.major, prop.minor), memory_bytes: prop.totalGlobalMem })?);
    Ok(())
}

pub fn cudaChooseDevice_v13(device: Out<'_, c_int>, prop: &v13::cudaDeviceProp) -> Result {
    device.write(choose(&Wish { capability: (prop.major, prop.minor), memory_bytes: prop.totalGlobalMem })?);
    Ok(())
}

/// A field's value from an attribute's.
trait FromAttribute {
    fn from_attribute(value: c_int) -> Self;
}

impl FromAttribute for c_int {
    fn from_attribute(value: c_int) -> Self {
        value
    }
}

impl FromAttribute for c_uint {
    fn from_attribute(value: c_int) -> Self {
        value.cast_unsigned()
    }
}

impl FromAttribute for usize {
    fn from_attribute(value: c_int) -> Self {
        // A size beyond 2 GiB - 1 (the largest pitch) is told as the largest int.
        usize::try_from(value).unwrap_or(0)
    }
}

impl<T: FromAttribute, const N: usize> FromAttributes<N> for [T; N] {
    fn from_attributes(values: [c_int; N]) -> Self {
        values.map(T::from_attribute)
    }
}

impl<T: FromAttribute> FromAttributes<1> for T {
    fn from_attributes([value]: [c_int; 1]) -> Self {
        T::from_attribute(value)
    }
}

trait FromAttributes<const N: usize> {
    fn from_attributes(values: [c_int; N]) -> Self;
}

/// The attributes of a field, 0 where the driver does not know one.
fn read<const N: usize, T: FromAttributes<N>>(device: &Device, attributes: [CUdevice_attribute; N]) -> T {
    T::from_attributes(attributes.map(|attribute| device.attribute(attribute).unwrap_or(0)))
}

/// What the driver tells in other ways than by attributes.
struct Identity {
    name: [c_char; 256],
    uuid: CUuuid,
    memory_bytes: usize,
}

impl Identity {
    fn of(device: &Device) -> Result<Self> {
        let driver = driver::get()?;
        let mut identity = Identity { name: [0; 256], uuid: CUuuid::default(), memory_bytes: 0 };
        driver.cuDeviceGetName(identity.name.as_mut_ptr(), 256, device.handle)?;
        driver.cuDeviceTotalMem_v2(&mut identity.memory_bytes, device.handle)?;
        driver
            .cuDeviceGetUuid_v2(&mut identity.uuid, device.handle)
            .or_else(|_| driver.cuDeviceGetUuid(&mut identity.uuid, device.handle))?;
        Ok(identity)
    }
}

use CUdevice_attribute as A;

/// Field by field: the attributes it is read from.
macro_rules! attributes {
    ($device:ident, $field:ident) => {
        read($device, attributes!(@ $field))
    };
    (@ sharedMemPerBlock) => { [A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] };
    (@ regsPerBlock) => { [A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] };
    (@ warpSize) => { [A::CU_DEVICE_ATTRIBUTE_WARP_SIZE] };
    (@ memPitch) => { [A::CU_DEVICE_ATTRIBUTE_MAX_PITCH] };
    (@ maxThreadsPerBlock) => { [A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] };
    (@ maxThreadsDim) => { [A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] };
    (@ maxGridSize) => { [A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] };
    (@ clockRate) => { [A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE] };
    (@ totalConstMem) => { [A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] };
    (@ major) => { [A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] };
    (@ minor) => { [A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] };
    (@ textureAlignment) => { [A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] };
    (@ texturePitchAlignment) => { [A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] };
    (@ deviceOverlap) => { [A::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] };
    (@ multiProcessorCount) => { [A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] };
    (@ kernelExecTimeoutEnabled) => { [A::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT] };
    (@ integrated) => { [A::CU_DEVICE_ATTRIBUTE_INTEGRATED] };
    (@ canMapHostMemory) => { [A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] };
    (@ computeMode) => { [A::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE] };
    (@ maxTexture1D) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH] };
    (@ maxTexture1DMipmap) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH] };
    (@ maxTexture1DLinear) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] };
    (@ maxTexture2D) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT] };
    (@ maxTexture2DMipmap) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT] };
    (@ maxTexture2DLinear) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH] };
    (@ maxTexture2DGather) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT] };
    (@ maxTexture3D) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH] };
    (@ maxTexture3DAlt) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE] };
    (@ maxTextureCubemap) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH] };
    (@ maxTexture1DLayered) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS] };
    (@ maxTexture2DLayered) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS] };
    (@ maxTextureCubemapLayered) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS] };
    (@ maxSurface1D) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH] };
    (@ maxSurface2D) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT] };
    (@ maxSurface3D) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH] };
    (@ maxSurface1DLayered) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS] };
    (@ maxSurface2DLayered) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS] };
    (@ maxSurfaceCubemap) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH] };
    (@ maxSurfaceCubemapLayered) => { [A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, A::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS] };
    (@ surfaceAlignment) => { [A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] };
    (@ concurrentKernels) => { [A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] };
    (@ ECCEnabled) => { [A::CU_DEVICE_ATTRIBUTE_ECC_ENABLED] };
    (@ pciBusID) => { [A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] };
    (@ pciDeviceID) => { [A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] };
    (@ pciDomainID) => { [A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] };
    (@ tccDriver) => { [A::CU_DEVICE_ATTRIBUTE_TCC_DRIVER] };
    (@ asyncEngineCount) => { [A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] };
    (@ unifiedAddressing) => { [A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] };
    (@ memoryClockRate) => { [A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] };
    (@ memoryBusWidth) => { [A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] };
    (@ l2CacheSize) => { [A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] };
    (@ persistingL2CacheMaxSize) => { [A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE] };
    (@ maxThreadsPerMultiProcessor) => { [A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] };
    (@ streamPrioritiesSupported) => { [A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] };
    (@ globalL1CacheSupported) => { [A::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] };
    (@ localL1CacheSupported) => { [A::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] };
    (@ sharedMemPerMultiprocessor) => { [A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] };
    (@ regsPerMultiprocessor) => { [A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] };
    (@ managedMemory) => { [A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] };
    (@ isMultiGpuBoard) => { [A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD] };
    (@ multiGpuBoardGroupID) => { [A::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID] };
    (@ hostNativeAtomicSupported) => { [A::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED] };
    (@ singleToDoublePrecisionPerfRatio) => { [A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] };
    (@ pageableMemoryAccess) => { [A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS] };
    (@ concurrentManagedAccess) => { [A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] };
    (@ computePreemptionSupported) => { [A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED] };
    (@ canUseHostPointerForRegisteredMem) => { [A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM] };
    (@ cooperativeLaunch) => { [A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] };
    (@ cooperativeMultiDeviceLaunch) => { [A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH] };
    (@ sharedMemPerBlockOptin) => { [A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] };
    (@ pageableMemoryAccessUsesHostPageTables) => { [A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES] };
    (@ directManagedMemAccessFromHost) => { [A::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST] };
    (@ maxBlocksPerMultiProcessor) => { [A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] };
    (@ accessPolicyMaxWindowSize) => { [A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE] };
    (@ reservedSharedMemPerBlock) => { [A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] };
    (@ hostRegisterSupported) => { [A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] };
    (@ sparseCudaArraySupported) => { [A::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED] };
    (@ hostRegisterReadOnlySupported) => { [A::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED] };
    (@ timelineSemaphoreInteropSupported) => { [A::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED] };
    (@ memoryPoolsSupported) => { [A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] };
    (@ gpuDirectRDMASupported) => { [A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED] };
    (@ gpuDirectRDMAFlushWritesOptions) => { [A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS] };
    (@ gpuDirectRDMAWritesOrdering) => { [A::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING] };
    (@ memoryPoolSupportedHandleTypes) => { [A::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES] };
    (@ deferredMappingCudaArraySupported) => { [A::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED] };
    (@ ipcEventSupported) => { [A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] };
    (@ clusterLaunch) => { [A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH] };
    (@ unifiedFunctionPointers) => { [A::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS] };
    (@ deviceNumaConfig) => { [A::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG] };
    (@ deviceNumaId) => { [A::CU_DEVICE_ATTRIBUTE_NUMA_ID] };
    (@ mpsEnabled) => { [A::CU_DEVICE_ATTRIBUTE_MPS_ENABLED] };
    (@ hostNumaId) => { [A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] };
    (@ gpuPciDeviceID) => { [A::CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID] };
    (@ gpuPciSubsystemID) => { [A::CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID] };
    (@ hostNumaMultinodeIpcSupported) => { [A::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED] };
}

/// Writes out the reading of one properties struct: identity, then the named fields from their attributes; what is reserved
/// is 0, and so are the LUID and its mask, which Windows alone has.
macro_rules! properties {
    ($name:ident, $properties:ty; $($field:ident),* $(,)?) => {
        fn $name(device: &Device) -> Result<$properties> {
            let identity = Identity::of(device)?;
            let mut properties = <$properties>::default();
            properties.name = identity.name;
            properties.uuid = identity.uuid;
            properties.totalGlobalMem = identity.memory_bytes;
            $(properties.$field = attributes!(device, $field);)*
            Ok(properties)
        }
    };
}

properties! {
    properties_v11, v11::cudaDeviceProp;
        sharedMemPerBlock, regsPerBlock, warpSize, memPitch, maxThreadsPerBlock, maxThreadsDim, maxGridSize,
        clockRate, totalConstMem, major, minor, textureAlignment, texturePitchAlignment, deviceOverlap,
        multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode, maxTexture1D,
        maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D, maxTexture2DMipmap, maxTexture2DLinear,
        maxTexture2DGather, maxTexture3D, maxTexture3DAlt, maxTextureCubemap, maxTexture1DLayered,
        maxTexture2DLayered, maxTextureCubemapLayered, maxSurface1D, maxSurface2D, maxSurface3D, maxSurface1DLayered,
        maxSurface2DLayered, maxSurfaceCubemap, maxSurfaceCubemapLayered, surfaceAlignment, concurrentKernels,
        ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing,
        memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor,
        streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported, sharedMemPerMultiprocessor,
        regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported,
        singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
        canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch, sharedMemPerBlockOptin,
        pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
        accessPolicyMaxWindowSize, reservedSharedMemPerBlock,
}

properties! {
    properties_v12, v12::cudaDeviceProp;
        sharedMemPerBlock, regsPerBlock, warpSize, memPitch, maxThreadsPerBlock, maxThreadsDim, maxGridSize,
        clockRate, totalConstMem, major, minor, textureAlignment, texturePitchAlignment, deviceOverlap,
        multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode, maxTexture1D,
        maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D, maxTexture2DMipmap, maxTexture2DLinear,
        maxTexture2DGather, maxTexture3D, maxTexture3DAlt, maxTextureCubemap, maxTexture1DLayered,
        maxTexture2DLayered, maxTextureCubemapLayered, maxSurface1D, maxSurface2D, maxSurface3D, maxSurface1DLayered,
        maxSurface2DLayered, maxSurfaceCubemap, maxSurfaceCubemapLayered, surfaceAlignment, concurrentKernels,
        ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing,
        memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor,
        streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported, sharedMemPerMultiprocessor,
        regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported,
        singleToDoublePrecisionPerfRatio, pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
        canUseHostPointerForRegisteredMem, cooperativeLaunch, cooperativeMultiDeviceLaunch, sharedMemPerBlockOptin,
        pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
        accessPolicyMaxWindowSize, reservedSharedMemPerBlock, hostRegisterSupported, sparseCudaArraySupported,
        hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported, memoryPoolsSupported,
        gpuDirectRDMASupported, gpuDirectRDMAFlushWritesOptions, gpuDirectRDMAWritesOrdering,
        memoryPoolSupportedHandleTypes, deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch,
        unifiedFunctionPointers,
}

properties! {
    properties_v13, v13::cudaDeviceProp;
        sharedMemPerBlock, regsPerBlock, warpSize, memPitch, maxThreadsPerBlock, maxThreadsDim, maxGridSize,
        totalConstMem, major, minor, textureAlignment, texturePitchAlignment, multiProcessorCount, integrated,
        canMapHostMemory, maxTexture1D, maxTexture1DMipmap, maxTexture2D, maxTexture2DMipmap, maxTexture2DLinear,
        maxTexture2DGather, maxTexture3D, maxTexture3DAlt, maxTextureCubemap, maxTexture1DLayered,
        maxTexture2DLayered, maxTextureCubemapLayered, maxSurface1D, maxSurface2D, maxSurface3D, maxSurface1DLayered,
        maxSurface2DLayered, maxSurfaceCubemap, maxSurfaceCubemapLayered, surfaceAlignment, concurrentKernels,
        ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount, unifiedAddressing,
        memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported,
        globalL1CacheSupported, localL1CacheSupported, sharedMemPerMultiprocessor, regsPerMultiprocessor,
        managedMemory, isMultiGpuBoard, multiGpuBoardGroupID, hostNativeAtomicSupported, pageableMemoryAccess,
        concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem, cooperativeLaunch,
        sharedMemPerBlockOptin, pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
        maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize, reservedSharedMemPerBlock, hostRegisterSupported,
        sparseCudaArraySupported, hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported,
        memoryPoolsSupported, gpuDirectRDMASupported, gpuDirectRDMAFlushWritesOptions, gpuDirectRDMAWritesOrdering,
        memoryPoolSupportedHandleTypes, deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch,
        unifiedFunctionPointers, deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId, gpuPciDeviceID,
        gpuPciSubsystemID, hostNumaMultinodeIpcSupported,
}
