// CUDA Driver API, "Device Management".
#include "../device.h"

PROMISE(ordinals_go_from_0_to_the_count)
{
    OK(cuInit(0));
    int count = 0;
    OK(cuDeviceGetCount(&count));
    TRUE(count > 0);
    CUdevice device;
    for (int ordinal = 0; ordinal < count; ordinal++)
        OK(cuDeviceGet(&device, ordinal));
    IS(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetCount(nullptr), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_name_is_text_that_ends_within_its_buffer)
{
    char name[256], cut[4];
    OK(cuDeviceGetName(name, sizeof name, first_device()));
    TRUE(std::memchr(name, 0, sizeof name));
    TRUE(std::strlen(name) > 0);
    OK(cuDeviceGetName(cut, sizeof cut, first_device()));
    TRUE(std::memchr(cut, 0, sizeof cut));
    IS(cuDeviceGetName(nullptr, 4, first_device()), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetName(name, sizeof name, 1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(an_unknown_attribute_is_an_invalid_value)
{
    int value;
    IS(cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), first_device()), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetAttribute(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, first_device()), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(attributes_keep_the_guides_minima)
{
    SAME(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY), 65536);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), 1024);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y), 1024);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), 64);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), 2147483647);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), 65535);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z), 65535);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK), 49152);
    TRUE(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) >= 49152);
    TRUE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) >= 1);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
}

PROMISE(compute_capability_is_the_same_by_all_ways)
{
    int major = 0, minor = -1;
    OK(cuDeviceComputeCapability(&major, &minor, first_device()));
    SAME(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), major);
    SAME(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), minor);
    TRUE(major >= 5);
}

PROMISE(old_properties_agree_with_the_attributes)
{
    CUdevprop old;
    OK(cuDeviceGetProperties(&old, first_device()));
    SAME(old.maxThreadsPerBlock, attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
    SAME(old.maxThreadsDim[2], attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z));
    SAME(old.maxGridSize[0], attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X));
    SAME(old.SIMDWidth, 32);
    SAME(old.totalConstantMemory, 65536);
}

PROMISE(total_memory_holds_what_is_free)
{
    start();
    size_t total = 0, free = 0, all = 0;
    OK(cuDeviceTotalMem(&total, first_device()));
    OK(cuMemGetInfo(&free, &all));
    TRUE(total > 0);
    TRUE(free <= all);
    IS(cuDeviceTotalMem(&total, 1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(uuids_stay_and_differ_between_devices)
{
    CUuuid first, again;
    OK(cuDeviceGetUuid(&first, first_device()));
    OK(cuDeviceGetUuid(&again, first_device()));
    TRUE(std::memcmp(&first, &again, sizeof first) == 0);
    int count = 0;
    OK(cuDeviceGetCount(&count));
    for (int other = 1; other < count; other++) {
        OK(cuDeviceGetUuid(&again, other));
        TRUE(std::memcmp(&first, &again, sizeof first) != 0);
    }
}

PROMISE(a_bus_id_leads_back_to_its_device)
{
    char id[32];
    OK(cuDeviceGetPCIBusId(id, sizeof id, first_device()));
    CUdevice device = -1;
    OK(cuDeviceGetByPCIBusId(&device, id));
    SAME(device, first_device());
    IS(cuDeviceGetByPCIBusId(&device, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(cuDeviceGetByPCIBusId(nullptr, id), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(the_width_of_linear_textures_is_known_by_format)
{
    size_t narrow = 0, wide = 0;
    OK(cuDeviceGetTexture1DLinearMaxWidth(&narrow, CU_AD_FORMAT_UNSIGNED_INT8, 1, first_device()));
    OK(cuDeviceGetTexture1DLinearMaxWidth(&wide, CU_AD_FORMAT_FLOAT, 4, first_device()));
    TRUE(wide > 0);
    TRUE(narrow >= wide);
}

PROMISE(execution_affinity_is_there_or_not)
{
    int support = -1;
    OK(cuDeviceGetExecAffinitySupport(&support, CU_EXEC_AFFINITY_TYPE_SM_COUNT, first_device()));
    TRUE(support == 0 || support == 1);
}

PROMISE(every_attribute_of_the_header_has_an_answer)
{
    // CUDA 13.0's driver knows them up to this one.
    const int end = check::is_driver_older() ? CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED : CU_DEVICE_ATTRIBUTE_MAX;
    for (int which = 1; which < end; which++) {
        int value;
        if (cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(which), first_device()) != CUDA_SUCCESS)
            SAME(which, 0);
    }
}

PROMISE(devices_answer_before_there_is_a_context)
{
    TRUE(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) > 0);
    CUcontext current = reinterpret_cast<CUcontext>(1);
    OK(cuCtxGetCurrent(&current));
    TRUE(current == nullptr);
}
