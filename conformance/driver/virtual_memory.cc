// CUDA Driver API, "Virtual Memory Management".
#include "../check.h"

static CUmemAllocationProp properties(bool exportable = false)
{
    CUmemAllocationProp asked = {};
    asked.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    asked.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    asked.location.id = 0;
    if (exportable)
        asked.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    return asked;
}

static size_t granularity()
{
    const CUmemAllocationProp asked = properties();
    size_t least = 0;
    OK(cuMemGetAllocationGranularity(&least, &asked, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    TRUE(least > 0 && (least & (least - 1)) == 0);
    return least;
}

// A context, where the device has the feature.
static void start()
{
    OK(cuInit(0));
    int supported = 0;
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!supported)
        SKIP("the device has no virtual memory management");
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}

static void set_access(CUdeviceptr at, size_t size, CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
{
    CUmemAccessDesc access = {};
    access.location = properties().location;
    access.flags = flags;
    OK(cuMemSetAccess(at, size, &access, 1));
}

PROMISE(the_recommended_granularity_is_a_multiple_of_the_least)
{
    start();
    const CUmemAllocationProp asked = properties();
    size_t recommended = 0;
    OK(cuMemGetAllocationGranularity(&recommended, &asked, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    SAME(recommended % granularity(), 0u);
}

PROMISE(no_context_is_needed)
{
    OK(cuInit(0));
    int supported = 0;
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!supported)
        SKIP("the device has no virtual memory management");
    const size_t size = granularity();
    const CUmemAllocationProp asked = properties();
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&at, size, 0, 0, 0));
    OK(cuMemCreate(&memory, size, &asked, 0));
    OK(cuMemMap(at, size, 0, memory, 0));
    OK(cuMemUnmap(at, size));
    OK(cuMemRelease(memory));
    OK(cuMemAddressFree(at, size));
}

PROMISE(memory_of_the_host_is_mapped_too_where_the_device_says_so)
{
    start();
    int supported = 0;
    OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
    if (!supported)
        SKIP("the device maps no memory of the host");
    CUmemAllocationProp asked = properties();
    asked.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    asked.location.id = 0;
    size_t size = 0;
    OK(cuMemGetAllocationGranularity(&size, &asked, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&at, size, 0, 0, 0));
    OK(cuMemCreate(&memory, size, &asked, 0));
    OK(cuMemMap(at, size, 0, memory, 0));
    CUmemAccessDesc access[2] = {};
    access[0].location = properties().location;
    access[1].location = asked.location;
    access[0].flags = access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemSetAccess(at, size, access, 2));
    OK(cuMemsetD32(at, 0x01020304, size / 4));
    OK(cuCtxSynchronize());
    const unsigned *words = reinterpret_cast<const unsigned *>(at);
    SAME(words[0], 0x01020304u);
    SAME(words[size / 4 - 1], 0x01020304u);
    CUmemAllocationProp got = {};
    OK(cuMemGetAllocationPropertiesFromHandle(&got, memory));
    SAME(static_cast<int>(got.location.type), static_cast<int>(CU_MEM_LOCATION_TYPE_HOST_NUMA));
    OK(cuMemUnmap(at, size));
    OK(cuMemRelease(memory));
    OK(cuMemAddressFree(at, size));
}

PROMISE(sizes_are_multiples_of_the_granularity_and_flags_are_zero)
{
    start();
    const size_t size = granularity();
    const CUmemAllocationProp asked = properties();
    CUmemGenericAllocationHandle memory;
    IS(cuMemCreate(&memory, size + 1, &asked, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemCreate(&memory, 0, &asked, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemCreate(&memory, size, &asked, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemCreate(nullptr, size, &asked, 0), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr at = 0;
    IS(cuMemAddressReserve(&at, size + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAddressReserve(&at, size, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAddressReserve(&at, size, 0, 0, 1), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(an_alignment_is_kept)
{
    start();
    const size_t size = granularity(), alignment = 64 * size;
    CUdeviceptr at = 0;
    OK(cuMemAddressReserve(&at, size, alignment, 0, 0));
    SAME(at % alignment, 0u);
    OK(cuMemAddressFree(at, size));
    IS(cuMemAddressFree(at, size), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(memory_outlives_its_handle_while_it_is_mapped)
{
    start();
    const size_t size = granularity();
    const CUmemAllocationProp asked = properties();
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&at, size, 0, 0, 0));
    OK(cuMemCreate(&memory, size, &asked, 0));
    OK(cuMemMap(at, size, 0, memory, 0));
    OK(cuMemRelease(memory));
    set_access(at, size);
    OK(cuMemsetD32(at, 0x12345678, size / 4));
    unsigned word = 0;
    OK(cuMemcpyDtoH(&word, at + size - 4, 4));
    SAME(word, 0x12345678u);
    // Its handle can be found again, and has to be released again.
    OK(cuMemRetainAllocationHandle(&memory, reinterpret_cast<void *>(at + 100)));
    CUmemAllocationProp found = {};
    OK(cuMemGetAllocationPropertiesFromHandle(&found, memory));
    SAME(found.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
    OK(cuMemRelease(memory));
    OK(cuMemUnmap(at, size));
    OK(cuMemAddressFree(at, size));
}

PROMISE(access_can_be_asked_for_and_taken_away)
{
    start();
    const size_t size = granularity();
    const CUmemAllocationProp asked = properties();
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&at, size, 0, 0, 0));
    OK(cuMemCreate(&memory, size, &asked, 0));
    OK(cuMemMap(at, size, 0, memory, 0));
    unsigned long long flags = 77;
    OK(cuMemGetAccess(&flags, &asked.location, at));
    SAME(flags, 0u);
    set_access(at, size);
    OK(cuMemGetAccess(&flags, &asked.location, at));
    SAME(flags, 3u);
    OK(cuMemsetD8(at, 9, size));
    set_access(at, size, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    TRUE(cuMemsetD8(at, 9, size) != CUDA_SUCCESS);
}

PROMISE(nothing_is_mapped_over_something_or_outside_a_reservation)
{
    start();
    const size_t size = granularity();
    const CUmemAllocationProp asked = properties();
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&at, 2 * size, 0, 0, 0));
    OK(cuMemCreate(&memory, size, &asked, 0));
    OK(cuMemMap(at, size, 0, memory, 0));
    TRUE(cuMemMap(at, size, 0, memory, 0) != CUDA_SUCCESS);
    TRUE(cuMemMap(at + size, 2 * size, 0, memory, 0) != CUDA_SUCCESS);
    TRUE(cuMemAddressFree(at, 2 * size) != CUDA_SUCCESS);
    IS(cuMemUnmap(at, size / 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(at, size));
}

PROMISE(a_pointer_into_a_mapping_is_device_memory)
{
    start();
    const size_t size = granularity();
    const CUmemAllocationProp asked = properties();
    CUdeviceptr at = 0, base = 0;
    CUmemGenericAllocationHandle memory;
    OK(cuMemAddressReserve(&at, size, 0, 0, 0));
    OK(cuMemCreate(&memory, size, &asked, 0));
    OK(cuMemMap(at, size, 0, memory, 0));
    set_access(at, size);
    CUmemorytype type;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 5));
    SAME(type, CU_MEMORYTYPE_DEVICE);
    size_t length = 0;
    OK(cuMemGetAddressRange(&base, &length, at + 5));
    SAME(base, at);
    SAME(length, size);
    IS(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_descriptor_of_exported_memory_is_for_memory_that_asked_for_it)
{
    start();
    const size_t size = granularity();
    const CUmemAllocationProp plain = properties(), exportable = properties(true);
    CUmemGenericAllocationHandle memory, imported;
    int descriptor = -1;
    OK(cuMemCreate(&memory, size, &plain, 0));
    IS(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuMemRelease(memory));
    OK(cuMemCreate(&memory, size, &exportable, 0));
    OK(cuMemExportToShareableHandle(&descriptor, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    TRUE(descriptor >= 0);
    OK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void *>(static_cast<uintptr_t>(descriptor)),
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    SAME(close(descriptor), 0);
    OK(cuMemRelease(imported));
    OK(cuMemRelease(memory));
}
