// CUDA Runtime API, "Device Management".
#include "../check.h"

#include <thread>

static int attribute(cudaDeviceAttr which, int device = 0)
{
    int value = -1;
    OK(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

PROMISE(there_is_a_device)
{
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    TRUE(count >= 1);
}

PROMISE(the_first_device_is_current_at_the_start)
{
    int device = -1;
    OK(cudaGetDevice(&device));
    SAME(device, 0);
}

PROMISE(devices_that_do_not_exist_are_refused)
{
    int count = 0, value = 0;
    OK(cudaGetDeviceCount(&count));
    cudaDeviceProp properties;
    IS(cudaSetDevice(count), cudaErrorInvalidDevice);
    IS(cudaSetDevice(-1), cudaErrorInvalidDevice);
    IS(cudaGetDeviceProperties(&properties, count), cudaErrorInvalidDevice);
    IS(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count), cudaErrorInvalidDevice);
    IS(cudaInitDevice(count, 0, 0), cudaErrorInvalidDevice);
    int device = -1;
    OK(cudaGetDevice(&device));
    SAME(device, 0);
}

PROMISE(attributes_that_do_not_exist_are_refused)
{
    int value = 0;
    IS(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(0), 0), cudaErrorInvalidValue);
    IS(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(100000), 0), cudaErrorInvalidValue);
    IS(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0), cudaErrorInvalidValue);
}

PROMISE(properties_agree_with_attributes)
{
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    TRUE(p.name[0] != 0);
    TRUE(std::memchr(p.name, 0, sizeof p.name) != nullptr);
    TRUE(p.totalGlobalMem > 0);
    SAME(p.warpSize, attribute(cudaDevAttrWarpSize));
    SAME(p.warpSize, 32);
    SAME(p.major, attribute(cudaDevAttrComputeCapabilityMajor));
    SAME(p.minor, attribute(cudaDevAttrComputeCapabilityMinor));
    SAME(p.maxThreadsPerBlock, attribute(cudaDevAttrMaxThreadsPerBlock));
    SAME(p.maxThreadsDim[0], attribute(cudaDevAttrMaxBlockDimX));
    SAME(p.maxThreadsDim[1], attribute(cudaDevAttrMaxBlockDimY));
    SAME(p.maxThreadsDim[2], attribute(cudaDevAttrMaxBlockDimZ));
    SAME(p.maxGridSize[0], attribute(cudaDevAttrMaxGridDimX));
    SAME(p.maxGridSize[1], attribute(cudaDevAttrMaxGridDimY));
    SAME(p.maxGridSize[2], attribute(cudaDevAttrMaxGridDimZ));
    SAME(p.sharedMemPerBlock, attribute(cudaDevAttrMaxSharedMemoryPerBlock));
    SAME(p.sharedMemPerBlockOptin, attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    SAME(p.sharedMemPerMultiprocessor, attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
    SAME(p.reservedSharedMemPerBlock, attribute(cudaDevAttrReservedSharedMemoryPerBlock));
    SAME(p.totalConstMem, attribute(cudaDevAttrTotalConstantMemory));
    SAME(p.regsPerBlock, attribute(cudaDevAttrMaxRegistersPerBlock));
    SAME(p.regsPerMultiprocessor, attribute(cudaDevAttrMaxRegistersPerMultiprocessor));
    SAME(p.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount));
    SAME(p.maxThreadsPerMultiProcessor, attribute(cudaDevAttrMaxThreadsPerMultiProcessor));
    SAME(p.maxBlocksPerMultiProcessor, attribute(cudaDevAttrMaxBlocksPerMultiprocessor));
    SAME(p.memPitch, attribute(cudaDevAttrMaxPitch));
    SAME(p.textureAlignment, attribute(cudaDevAttrTextureAlignment));
    SAME(p.texturePitchAlignment, attribute(cudaDevAttrTexturePitchAlignment));
    SAME(p.surfaceAlignment, attribute(cudaDevAttrSurfaceAlignment));
    SAME(p.integrated, attribute(cudaDevAttrIntegrated));
    SAME(p.canMapHostMemory, attribute(cudaDevAttrCanMapHostMemory));
    SAME(p.concurrentKernels, attribute(cudaDevAttrConcurrentKernels));
    SAME(p.ECCEnabled, attribute(cudaDevAttrEccEnabled));
    SAME(p.pciBusID, attribute(cudaDevAttrPciBusId));
    SAME(p.pciDeviceID, attribute(cudaDevAttrPciDeviceId));
    SAME(p.pciDomainID, attribute(cudaDevAttrPciDomainId));
    SAME(p.tccDriver, attribute(cudaDevAttrTccDriver));
    SAME(p.asyncEngineCount, attribute(cudaDevAttrAsyncEngineCount));
    SAME(p.unifiedAddressing, attribute(cudaDevAttrUnifiedAddressing));
    SAME(p.memoryBusWidth, attribute(cudaDevAttrGlobalMemoryBusWidth));
    SAME(p.l2CacheSize, attribute(cudaDevAttrL2CacheSize));
    SAME(p.persistingL2CacheMaxSize, attribute(cudaDevAttrMaxPersistingL2CacheSize));
    SAME(p.accessPolicyMaxWindowSize, attribute(cudaDevAttrMaxAccessPolicyWindowSize));
    SAME(p.streamPrioritiesSupported, attribute(cudaDevAttrStreamPrioritiesSupported));
    SAME(p.globalL1CacheSupported, attribute(cudaDevAttrGlobalL1CacheSupported));
    SAME(p.localL1CacheSupported, attribute(cudaDevAttrLocalL1CacheSupported));
    SAME(p.managedMemory, attribute(cudaDevAttrManagedMemory));
    SAME(p.concurrentManagedAccess, attribute(cudaDevAttrConcurrentManagedAccess));
    SAME(p.pageableMemoryAccess, attribute(cudaDevAttrPageableMemoryAccess));
    SAME(p.isMultiGpuBoard, attribute(cudaDevAttrIsMultiGpuBoard));
    SAME(p.multiGpuBoardGroupID, attribute(cudaDevAttrMultiGpuBoardGroupID));
    SAME(p.hostNativeAtomicSupported, attribute(cudaDevAttrHostNativeAtomicSupported));
    SAME(p.computePreemptionSupported, attribute(cudaDevAttrComputePreemptionSupported));
    SAME(p.canUseHostPointerForRegisteredMem, attribute(cudaDevAttrCanUseHostPointerForRegisteredMem));
    SAME(p.cooperativeLaunch, attribute(cudaDevAttrCooperativeLaunch));
    SAME(p.hostRegisterSupported, attribute(cudaDevAttrHostRegisterSupported));
    SAME(p.memoryPoolsSupported, attribute(cudaDevAttrMemoryPoolsSupported));
    SAME(p.memoryPoolSupportedHandleTypes, attribute(cudaDevAttrMemoryPoolSupportedHandleTypes));
    SAME(p.gpuDirectRDMASupported, attribute(cudaDevAttrGPUDirectRDMASupported));
    SAME(p.deferredMappingCudaArraySupported, attribute(cudaDevAttrDeferredMappingCudaArraySupported));
    SAME(p.clusterLaunch, attribute(cudaDevAttrClusterLaunch));
    SAME(p.maxTexture1D, attribute(cudaDevAttrMaxTexture1DWidth));
    SAME(p.maxTexture2D[0], attribute(cudaDevAttrMaxTexture2DWidth));
    SAME(p.maxTexture2D[1], attribute(cudaDevAttrMaxTexture2DHeight));
    SAME(p.maxTexture3D[0], attribute(cudaDevAttrMaxTexture3DWidth));
    SAME(p.maxTexture3D[1], attribute(cudaDevAttrMaxTexture3DHeight));
    SAME(p.maxTexture3D[2], attribute(cudaDevAttrMaxTexture3DDepth));
    SAME(p.maxSurface2D[0], attribute(cudaDevAttrMaxSurface2DWidth));
    SAME(p.maxSurface2D[1], attribute(cudaDevAttrMaxSurface2DHeight));
}

PROMISE(properties_agree_with_the_driver)
{
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    char name[256];
    OK(cuDeviceGetName(name, sizeof name, 0));
    SAME(std::string(p.name), std::string(name));
    size_t bytes = 0;
    OK(cuDeviceTotalMem(&bytes, 0));
    SAME(p.totalGlobalMem, bytes);
    CUuuid uuid;
    OK(cuDeviceGetUuid(&uuid, 0));
    SAME(std::memcmp(&p.uuid, &uuid, sizeof uuid), 0);
}

PROMISE(properties_need_a_place)
{
    IS(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
    IS(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
    IS(cudaGetDevice(nullptr), cudaErrorInvalidValue);
}

PROMISE(a_device_is_chosen_by_its_properties)
{
    cudaDeviceProp wanted;
    std::memset(&wanted, 0, sizeof wanted);
    int device = -1, count = 0;
    OK(cudaChooseDevice(&device, &wanted));
    OK(cudaGetDeviceCount(&count));
    TRUE(device >= 0 && device < count);
    IS(cudaChooseDevice(nullptr, &wanted), cudaErrorInvalidValue);
    IS(cudaChooseDevice(&device, nullptr), cudaErrorInvalidValue);
}

PROMISE(a_device_is_found_by_its_bus_id)
{
    char id[32] = "";
    OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
    int domain = -1, bus = -1, slot = -1, function = -1;
    SAME(std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function), 4);
    SAME(domain, attribute(cudaDevAttrPciDomainId));
    SAME(bus, attribute(cudaDevAttrPciBusId));
    SAME(slot, attribute(cudaDevAttrPciDeviceId));
    int device = -1;
    OK(cudaDeviceGetByPCIBusId(&device, id));
    SAME(device, 0);
    IS(cudaDeviceGetPCIBusId(nullptr, 32, 0), cudaErrorInvalidValue);
    IS(cudaDeviceGetByPCIBusId(&device, nullptr), cudaErrorInvalidValue);
    IS(cudaDeviceGetByPCIBusId(nullptr, id), cudaErrorInvalidValue);
}

PROMISE(limits_have_values)
{
    size_t stack = 0, fifo = 0, heap = 0;
    OK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
    OK(cudaDeviceGetLimit(&fifo, cudaLimitPrintfFifoSize));
    OK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    TRUE(stack > 0);
    TRUE(fifo > 0);
    TRUE(heap > 0);
}

PROMISE(limits_that_were_set_are_at_least_what_was_asked)
{
    size_t value = 0;
    OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    OK(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    TRUE(value >= 4096);
    OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
    OK(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize));
    TRUE(value >= (2 << 20));
    OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    OK(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    TRUE(value >= (16 << 20));
}

PROMISE(limits_that_do_not_exist_are_refused)
{
    size_t value = 0;
    IS(cudaDeviceGetLimit(&value, static_cast<cudaLimit>(99)), cudaErrorInvalidValue);
    IS(cudaDeviceSetLimit(static_cast<cudaLimit>(99), 1), cudaErrorInvalidValue);
    IS(cudaDeviceGetLimit(nullptr, cudaLimitStackSize), cudaErrorInvalidValue);
}

PROMISE(cache_preferences_are_accepted)
{
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferShared));
    cudaFuncCache config;
    OK(cudaDeviceGetCacheConfig(&config));
    OK(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
    IS(cudaDeviceGetCacheConfig(nullptr), cudaErrorInvalidValue);
}

PROMISE(priorities_of_streams_form_a_range_about_zero)
{
    int least = 1, greatest = 1;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    TRUE(greatest <= least);
    SAME(least, 0);
    OK(cudaDeviceGetStreamPriorityRange(nullptr, &greatest));
    OK(cudaDeviceGetStreamPriorityRange(&least, nullptr));
}

PROMISE(flags_set_before_the_device_is_used_can_be_read)
{
    OK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    unsigned flags = 0;
    OK(cudaGetDeviceFlags(&flags));
    SAME(flags & cudaDeviceScheduleMask, cudaDeviceScheduleBlockingSync);
    OK(cudaFree(nullptr));
    OK(cudaGetDeviceFlags(&flags));
    SAME(flags & cudaDeviceScheduleMask, cudaDeviceScheduleBlockingSync);
}

PROMISE(flags_may_be_set_while_the_device_is_in_use)
{
    OK(cudaFree(nullptr));
    OK(cudaSetDeviceFlags(cudaDeviceScheduleYield));
    unsigned flags = 0;
    OK(cudaGetDeviceFlags(&flags));
    SAME(flags & cudaDeviceScheduleMask, cudaDeviceScheduleYield);
}

PROMISE(flags_that_do_not_exist_are_refused)
{
    IS(cudaSetDeviceFlags(0x40000000), cudaErrorInvalidValue);
    IS(cudaGetDeviceFlags(nullptr), cudaErrorInvalidValue);
}

PROMISE(a_device_can_be_initialised_with_flags_and_stays_unchosen)
{
    OK(cudaInitDevice(0, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid));
    unsigned flags = 0;
    OK(cudaGetDeviceFlags(&flags));
    SAME(flags & cudaDeviceScheduleMask, cudaDeviceScheduleSpin);
    unsigned primary_flags = 0;
    int is_active = 0;
    OK(cuDevicePrimaryCtxGetState(0, &primary_flags, &is_active));
    SAME(is_active, 1);
}

PROMISE(setting_the_device_initialises_it)
{
    OK(cudaSetDevice(0));
    unsigned flags = 0;
    int is_active = 0;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    SAME(is_active, 1);
    CUcontext current = nullptr;
    OK(cuCtxGetCurrent(&current));
    TRUE(current != nullptr);
}

PROMISE(asking_for_the_count_initialises_no_device)
{
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    cudaDeviceProp properties;
    OK(cudaGetDeviceProperties(&properties, 0));
    unsigned flags = 0;
    int is_active = 1;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    SAME(is_active, 0);
}

PROMISE(the_device_is_chosen_per_thread)
{
    OK(cudaSetDevice(0));
    int device = -1;
    std::thread([&] { cudaGetDevice(&device); }).join();
    SAME(device, 0);
}

PROMISE(a_list_of_valid_devices_is_checked)
{
    int good[] = {0};
    int bad[] = {1000};
    OK(cudaSetValidDevices(good, 1));
    IS(cudaSetValidDevices(bad, 1), cudaErrorInvalidDevice);
    IS(cudaSetValidDevices(nullptr, 1), cudaErrorInvalidValue);
}

PROMISE(synchronising_waits_for_all_streams)
{
    int *value = nullptr;
    OK(cudaMallocManaged(&value, 2 * sizeof *value));
    cudaStream_t first, second;
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    static int seen[2];
    auto slow = [](void *which) {
        usleep(50000);
        *static_cast<int *>(which) = 7;
    };
    OK(cudaLaunchHostFunc(first, slow, &seen[0]));
    OK(cudaLaunchHostFunc(second, slow, &seen[1]));
    OK(cudaDeviceSynchronize());
    SAME(seen[0], 7);
    SAME(seen[1], 7);
}

__device__ int counter = 5;
__global__ void add(int n) { counter += n; }

PROMISE(a_reset_gives_up_the_memory_and_starts_the_variables_anew)
{
    void *memory = nullptr;
    OK(cudaMalloc(&memory, 64));
    add<<<1, 1>>>(3);
    int value = 0;
    OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    SAME(value, 8);
    OK(cudaDeviceReset());
    OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    SAME(value, 5);
    add<<<1, 1>>>(4);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
    SAME(value, 9);
}

PROMISE(a_device_has_a_default_and_a_current_pool)
{
    cudaMemPool_t standard = nullptr, current = nullptr;
    OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    OK(cudaDeviceGetMemPool(&current, 0));
    TRUE(standard != nullptr);
    SAME(current, standard);
}

PROMISE(widths_of_linear_textures_are_known)
{
    size_t elements = 0;
    const cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>();
    OK(cudaDeviceGetTexture1DLinearMaxWidth(&elements, &floats, 0));
    TRUE(elements > 0);
}
