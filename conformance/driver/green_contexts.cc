// CUDA Driver API, "Green Contexts".
#include "../check.h"

static CUdevResource start()
{
    OK(cuInit(0));
    CUdevResource all = {};
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    return all;
}

static CUgreenCtx green_context(CUdevResource *part)
{
    CUdevResourceDesc description;
    OK(cuDevResourceGenerateDesc(&description, part, 1));
    CUgreenCtx green;
    OK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    return green;
}

PROMISE(a_device_has_its_multiprocessors_as_a_resource)
{
    const CUdevResource all = start();
    int count = 0;
    OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    SAME(all.type, CU_DEV_RESOURCE_TYPE_SM);
    SAME(all.sm.smCount, static_cast<unsigned>(count));
    CUdevResource none = {};
    IS(cuDeviceGetDevResource(1000, &none, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_DEVICE);
    IS(cuDeviceGetDevResource(0, nullptr, CU_DEV_RESOURCE_TYPE_SM), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_split_tells_how_many_groups_there_would_be)
{
    const CUdevResource all = start();
    unsigned groups = 0;
    OK(cuDevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, all.sm.minSmPartitionSize));
    TRUE(groups >= 1);
    std::vector<CUdevResource> parts(groups);
    CUdevResource rest = {};
    unsigned made = groups;
    OK(cuDevSmResourceSplitByCount(parts.data(), &made, &all, &rest, 0, all.sm.minSmPartitionSize));
    SAME(made, groups);
    unsigned sum = rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0;
    for (const CUdevResource &part : parts) {
        TRUE(part.sm.smCount >= all.sm.minSmPartitionSize);
        sum += part.sm.smCount;
    }
    SAME(sum, all.sm.smCount);
    IS(cuDevSmResourceSplitByCount(nullptr, &groups, &all, nullptr, 0, all.sm.smCount + 1),
       CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

PROMISE(a_resource_that_no_call_gave_describes_nothing)
{
    start();
    CUdevResource wrong = {};
    CUdevResourceDesc description;
    wrong.type = CU_DEV_RESOURCE_TYPE_INVALID;
    TRUE(cuDevResourceGenerateDesc(&description, &wrong, 1) != CUDA_SUCCESS);
    IS(cuDevResourceGenerateDesc(nullptr, &wrong, 1), CUDA_ERROR_INVALID_VALUE);
    IS(cuDevResourceGenerateDesc(&description, nullptr, 1), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(streams_of_a_green_context_know_it_and_do_not_block)
{
    CUdevResource all = start();
    const CUgreenCtx green = green_context(&all);
    CUstream stream;
    IS(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    CUgreenCtx found = nullptr;
    OK(cuStreamGetGreenCtx(stream, &found));
    TRUE(found == green);
    unsigned flags = 0;
    OK(cuStreamGetFlags(stream, &flags));
    SAME(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
    OK(cuStreamDestroy(stream));
    OK(cuGreenCtxDestroy(green));
}

PROMISE(a_green_context_works_where_its_context_is_current)
{
    CUdevResource all = start();
    const CUgreenCtx green = green_context(&all);
    CUcontext context;
    OK(cuCtxFromGreenCtx(&context, green));
    OK(cuCtxSetCurrent(context));
    CUdeviceptr memory = 0;
    OK(cuMemAlloc(&memory, 64));
    CUstream stream;
    OK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    OK(cuMemsetD32Async(memory, 17, 16, stream));
    CUevent event;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    // Behind everything of the green context, also what is in streams that do not block.
    OK(cuGreenCtxRecordEvent(green, event));
    OK(cuEventSynchronize(event));
    unsigned word = 0;
    OK(cuMemcpyDtoH(&word, memory + 60, 4));
    SAME(word, 17u);
    OK(cuGreenCtxWaitEvent(green, event));
    CUdevResource own = {};
    OK(cuGreenCtxGetDevResource(green, &own, CU_DEV_RESOURCE_TYPE_SM));
    SAME(own.sm.smCount, all.sm.smCount);
    OK(cuMemFree(memory));
    OK(cuGreenCtxDestroy(green));
}

PROMISE(green_contexts_have_ids_of_their_own)
{
    CUdevResource all = start();
    const CUgreenCtx a = green_context(&all), b = green_context(&all);
    unsigned long long id_of_a = 0, id_of_b = 0;
    OK(cuGreenCtxGetId(a, &id_of_a));
    OK(cuGreenCtxGetId(b, &id_of_b));
    TRUE(id_of_a != id_of_b);
}
