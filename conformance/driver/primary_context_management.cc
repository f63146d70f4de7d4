// CUDA Driver API, "Primary Context Management".
#include "../device.h"

static int is_active(unsigned *flags = nullptr)
{
    unsigned own;
    int active = -1;
    OK(cuDevicePrimaryCtxGetState(first_device(), flags ? flags : &own, &active));
    return active;
}

PROMISE(a_primary_context_is_active_while_it_is_retained)
{
    SAME(is_active(), 0);
    CUcontext first, second;
    OK(cuDevicePrimaryCtxRetain(&first, first_device()));
    SAME(is_active(), 1);
    OK(cuDevicePrimaryCtxRetain(&second, first_device()));
    TRUE(first == second);
    OK(cuDevicePrimaryCtxRelease(first_device()));
    SAME(is_active(), 1);
    OK(cuDevicePrimaryCtxRelease(first_device()));
    SAME(is_active(), 0);
}

PROMISE(releasing_what_is_not_retained_is_an_invalid_context)
{
    IS(cuDevicePrimaryCtxRelease(first_device()), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuDevicePrimaryCtxRelease(1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(retaining_does_not_make_it_current)
{
    CUcontext context, current;
    OK(cuDevicePrimaryCtxRetain(&context, first_device()));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == nullptr);
    IS(cuDevicePrimaryCtxRetain(nullptr, first_device()), CUDA_ERROR_INVALID_VALUE);
    IS(cuDevicePrimaryCtxRetain(&context, 1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(flags_can_be_set_before_and_while_it_is_active)
{
    unsigned flags = 0;
    OK(cuDevicePrimaryCtxSetFlags(first_device(), CU_CTX_SCHED_YIELD));
    is_active(&flags);
    SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
    start();
    OK(cuCtxGetFlags(&flags));
    SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_YIELD);
    OK(cuDevicePrimaryCtxSetFlags(first_device(), CU_CTX_SCHED_BLOCKING_SYNC));
    is_active(&flags);
    SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    IS(cuDevicePrimaryCtxSetFlags(first_device(), 0x10000), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_primary_context_is_not_destroyed_like_others)
{
    CUcontext context = start();
    TRUE(cuCtxDestroy(context) != CUDA_SUCCESS);
    OK(cuMemFree(allocate(16)));
}

PROMISE(its_memory_ends_with_the_last_release)
{
    start();
    CUdeviceptr memory = allocate(64);
    OK(cuDevicePrimaryCtxRelease(first_device()));
    start();
    CUdeviceptr base;
    size_t size;
    IS(cuMemGetAddressRange(&base, &size, memory), CUDA_ERROR_NOT_FOUND);
}

PROMISE(a_reset_takes_its_memory_and_a_retain_brings_it_back)
{
    start();
    CUdeviceptr memory = allocate(64);
    OK(cuDevicePrimaryCtxReset(first_device()));
    start();
    CUdeviceptr base;
    size_t size;
    IS(cuMemGetAddressRange(&base, &size, memory), CUDA_ERROR_NOT_FOUND);
    OK(cuMemFree(allocate(64)));
    IS(cuDevicePrimaryCtxReset(1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(a_release_never_pops_and_what_is_current_is_destroyed)
{
    CUcontext context = start(), current = nullptr;
    OK(cuDevicePrimaryCtxRelease(first_device()));
    OK(cuCtxGetCurrent(&current));
    TRUE(current == context);
    CUdeviceptr memory;
    IS(cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}
