// Lists the devices, and checks that every way to ask gives the same answer.
#include "example.h"

static int checks = 0;

static void same(const char *what, long long one, long long other)
{
    if (one != other)
        fail("%s: %lld by one way, %lld by another", what, one, other);
    checks++;
}

static void plausible(const char *what, bool holds)
{
    if (!holds)
        fail("%s is not plausible", what);
    checks++;
}

#if DEVICE_CODE
static int attribute(cudaDeviceAttr which, int device)
{
    int value = -1;
    CHECK(cudaDeviceGetAttribute(&value, which, device));
    return value;
}

static void query(int device)
{
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, device));
    std::printf("device %d: %s\n", device, properties.name);
    std::printf("  compute capability     %d.%d\n", properties.major, properties.minor);
    std::printf("  multiprocessors        %d\n", properties.multiProcessorCount);
    std::printf("  global memory          %zu MiB\n", properties.totalGlobalMem >> 20);
    std::printf("  shared memory a block  %zu bytes\n", properties.sharedMemPerBlock);
    std::printf("  registers a block      %d\n", properties.regsPerBlock);
    std::printf("  threads a block        %d\n", properties.maxThreadsPerBlock);
    std::printf("  warp size              %d\n", properties.warpSize);
    std::printf("  PCI bus id             %04x:%02x:%02x.0\n", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    std::printf("  UUID                   ");
    for (int i = 0; i < 16; i++)
        std::printf("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", static_cast<unsigned char>(properties.uuid.bytes[i]));
    std::printf("\n");

    same("major", properties.major, attribute(cudaDevAttrComputeCapabilityMajor, device));
    same("minor", properties.minor, attribute(cudaDevAttrComputeCapabilityMinor, device));
    same("multiProcessorCount", properties.multiProcessorCount, attribute(cudaDevAttrMultiProcessorCount, device));
    same("warpSize", properties.warpSize, attribute(cudaDevAttrWarpSize, device));
    same("maxThreadsPerBlock", properties.maxThreadsPerBlock, attribute(cudaDevAttrMaxThreadsPerBlock, device));
    same("maxThreadsDim[0]", properties.maxThreadsDim[0], attribute(cudaDevAttrMaxBlockDimX, device));
    same("maxThreadsDim[1]", properties.maxThreadsDim[1], attribute(cudaDevAttrMaxBlockDimY, device));
    same("maxThreadsDim[2]", properties.maxThreadsDim[2], attribute(cudaDevAttrMaxBlockDimZ, device));
    same("maxGridSize[0]", properties.maxGridSize[0], attribute(cudaDevAttrMaxGridDimX, device));
    same("maxGridSize[1]", properties.maxGridSize[1], attribute(cudaDevAttrMaxGridDimY, device));
    same("maxGridSize[2]", properties.maxGridSize[2], attribute(cudaDevAttrMaxGridDimZ, device));
    same("sharedMemPerBlock", properties.sharedMemPerBlock, attribute(cudaDevAttrMaxSharedMemoryPerBlock, device));
    same("sharedMemPerBlockOptin", properties.sharedMemPerBlockOptin, attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    same("sharedMemPerMultiprocessor", properties.sharedMemPerMultiprocessor, attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device));
    same("regsPerBlock", properties.regsPerBlock, attribute(cudaDevAttrMaxRegistersPerBlock, device));
    same("totalConstMem", properties.totalConstMem, attribute(cudaDevAttrTotalConstantMemory, device));
    same("l2CacheSize", properties.l2CacheSize, attribute(cudaDevAttrL2CacheSize, device));
    same("memoryBusWidth", properties.memoryBusWidth, attribute(cudaDevAttrGlobalMemoryBusWidth, device));
    same("asyncEngineCount", properties.asyncEngineCount, attribute(cudaDevAttrAsyncEngineCount, device));
    same("unifiedAddressing", properties.unifiedAddressing, attribute(cudaDevAttrUnifiedAddressing, device));
    same("managedMemory", properties.managedMemory, attribute(cudaDevAttrManagedMemory, device));
    same("concurrentManagedAccess", properties.concurrentManagedAccess, attribute(cudaDevAttrConcurrentManagedAccess, device));
    same("maxThreadsPerMultiProcessor", properties.maxThreadsPerMultiProcessor, attribute(cudaDevAttrMaxThreadsPerMultiProcessor, device));
    same("pciDomainID", properties.pciDomainID, attribute(cudaDevAttrPciDomainId, device));
    same("pciBusID", properties.pciBusID, attribute(cudaDevAttrPciBusId, device));
    same("pciDeviceID", properties.pciDeviceID, attribute(cudaDevAttrPciDeviceId, device));

    char bus[32], expected[32];
    CHECK(cudaDeviceGetPCIBusId(bus, sizeof bus, device));
    std::snprintf(expected, sizeof expected, "%04x:%02x:%02x.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
    for (char *c = bus; *c; c++)
        *c = *c >= 'A' && *c <= 'F' ? *c + 32 : *c;
    if (std::strcmp(bus, expected) != 0)
        fail("the PCI bus id is %s by one way, %s by another", expected, bus);
    int found = -1;
    CHECK(cudaDeviceGetByPCIBusId(&found, bus));
    same("the device with that PCI bus id", found, device);

    CHECK(cudaSetDevice(device));
    size_t free_bytes = 0, total_bytes = 0;
    CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    plausible("free memory", free_bytes > 0 && free_bytes <= total_bytes && total_bytes <= properties.totalGlobalMem);
    plausible("compute capability", properties.major >= 3 && properties.major < 100);
    plausible("the name", properties.name[0] != '\0' && std::memchr(properties.name, 0, sizeof properties.name));
    plausible("threads a block", properties.maxThreadsPerBlock >= 512);
    same("warp size", properties.warpSize, 32);
}
#else
static int attribute(CUdevice_attribute which, CUdevice device)
{
    int value = -1;
    CHECK(EXPORTED(cuDeviceGetAttribute)(&value, which, device));
    return value;
}

static void query(int ordinal)
{
    CUdevice device;
    char name[256];
    size_t bytes = 0;
    CUuuid uuid;
    CHECK(EXPORTED(cuDeviceGet)(&device, ordinal));
    CHECK(EXPORTED(cuDeviceGetName)(name, sizeof name, device));
    CHECK(ENTRY(cuDeviceTotalMem)(&bytes, device));
    CHECK(EXPORTED(cuDeviceGetUuid)(&uuid, device));
    std::printf("device %d: %s\n", ordinal, name);
    std::printf("  compute capability     %d.%d\n", attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    std::printf("  multiprocessors        %d\n", attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
    std::printf("  global memory          %zu MiB\n", bytes >> 20);
    std::printf("  threads a block        %d\n", attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));

    char bus[32];
    CHECK(EXPORTED(cuDeviceGetPCIBusId)(bus, sizeof bus, device));
    CUdevice found = -1;
    CHECK(EXPORTED(cuDeviceGetByPCIBusId)(&found, bus));
    same("the device with that PCI bus id", found, device);
    CHECK(cudaSetDevice(ordinal));
    size_t free_bytes = 0, total_bytes = 0;
    CHECK(ENTRY(cuMemGetInfo)(&free_bytes, &total_bytes));
    plausible("free memory", free_bytes > 0 && free_bytes <= total_bytes && total_bytes <= bytes);
    plausible("the name", name[0] != '\0');
    plausible("threads a block", attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device) >= 512);
    same("warp size", attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, device), 32);
}
#endif

#if DEVICE_CODE
// nvcc makes an image even of a program that launches nothing; this one does launch, on every device.
KERNEL ordinal(int *out, int value)
{
    *out = value + warpSize;
}
#endif

int main()
{
    int driver = 0;
#if DEVICE_CODE
    int runtime = 0;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    std::printf("driver %d.%d, runtime %d.%d\n", driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    same("the runtime's version", runtime / 1000, CUDART_VERSION / 1000);
    plausible("the driver's version", driver >= runtime / 1000 * 1000);
#else
    CHECK(EXPORTED(cuDriverGetVersion)(&driver));
    std::printf("driver %d.%d\n", driver / 1000, driver % 1000 / 10);
    plausible("the driver's version", driver >= 11000);
#endif

    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 1)
        fail("no device");
    for (int device = 0; device < count; device++) {
        query(device);
        int *out, value = 0;
        CHECK(cudaSetDevice(device));
        CHECK(cudaMalloc(&out, sizeof value));
        LAUNCH(ordinal, 1, 1)(out, device + 10);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
        CHECK(cudaFree(out));
        same("what a kernel on it wrote", value, device + 10 + 32);
    }
    std::printf("%d device(s), %d answers compared\n", count, checks);
    return passed();
}
