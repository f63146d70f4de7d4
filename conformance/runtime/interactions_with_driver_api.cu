// CUDA Runtime API, "Interactions with the CUDA Driver API".
#include "../check.h"

#include <thread>

__device__ int variable = 3;
__global__ void store(int *to, int value) { *to = value; }

static CUcontext current()
{
    CUcontext context = nullptr;
    OK(cuCtxGetCurrent(&context));
    return context;
}

static CUcontext primary()
{
    CUcontext context = nullptr;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    return context;
}

static bool primary_is_active()
{
    unsigned flags = 0;
    int active = 0;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    return active;
}

PROMISE(the_runtime_uses_the_primary_context)
{
    OK(cudaFree(nullptr));
    SAME(current(), primary());
}

PROMISE(the_first_call_that_needs_a_context_makes_it)
{
    OK(cuInit(0));
    SAME(current(), nullptr);
    TRUE(!primary_is_active());
    void *memory = nullptr;
    OK(cudaMalloc(&memory, 16));
    TRUE(primary_is_active());
    TRUE(current() != nullptr);
}

PROMISE(a_launch_makes_the_context)
{
    OK(cuInit(0));
    store<<<1, 1>>>(nullptr, 0);
    TRUE(primary_is_active());
    cudaDeviceSynchronize();
}

PROMISE(a_thread_whose_context_was_taken_away_gets_the_primary_one_again)
{
    int *memory = nullptr;
    cudaStream_t stream = nullptr;
    int got = 0;
    OK(cudaMalloc(&memory, sizeof(int)));
    OK(cuCtxSetCurrent(nullptr));
    store<<<1, 1>>>(memory, 7);
    OK(cudaGetLastError());
    SAME(current(), primary());
    OK(cuCtxSetCurrent(nullptr));
    OK(cudaMemcpy(&got, memory, sizeof(int), cudaMemcpyDeviceToHost));
    SAME(current(), primary());
    SAME(got, 7);
    OK(cuCtxSetCurrent(nullptr));
    OK(cudaStreamCreate(&stream));
    SAME(current(), primary());
    OK(cuCtxSetCurrent(nullptr));
    OK(cudaMemsetAsync(memory, 0, sizeof(int)));
    SAME(current(), primary());
    OK(cuCtxSetCurrent(nullptr));
    void *more = nullptr;
    OK(cudaMalloc(&more, 16));
    SAME(current(), primary());
}

PROMISE(a_context_made_current_by_the_driver_is_used)
{
    OK(cuInit(0));
    CUcontext own = nullptr;
    OK(cuCtxCreate(&own, nullptr, 0, 0));
    int *memory = nullptr;
    OK(cudaMalloc(&memory, 64));
    CUcontext of = nullptr;
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(memory)));
    SAME(of, own);
    store<<<1, 1>>>(memory, 5);
    int got = 0;
    OK(cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost));
    SAME(got, 5);
    SAME(current(), own);
    OK(cudaFree(memory));
}

PROMISE(each_context_has_its_own_variables)
{
    void *in_primary = nullptr, *in_own = nullptr;
    OK(cudaGetSymbolAddress(&in_primary, variable));
    CUcontext own = nullptr;
    OK(cuCtxCreate(&own, nullptr, 0, 0));
    OK(cudaGetSymbolAddress(&in_own, variable));
    TRUE(in_primary != in_own);
    const int changed = 9;
    OK(cudaMemcpyToSymbol(variable, &changed, 4));
    CUcontext popped = nullptr;
    OK(cuCtxPopCurrent(&popped));
    SAME(popped, own);
    int got = 0;
    OK(cudaMemcpyFromSymbol(&got, variable, 4));
    SAME(got, 3);
}

PROMISE(pushing_and_popping_selects_the_context_of_runtime_calls)
{
    OK(cudaFree(nullptr));
    const CUcontext first = current();
    CUcontext own = nullptr, popped = nullptr;
    OK(cuCtxCreate(&own, nullptr, 0, 0));
    OK(cuCtxPopCurrent(&popped));
    SAME(current(), first);
    OK(cuCtxPushCurrent(own));
    void *memory = nullptr;
    OK(cudaMalloc(&memory, 64));
    CUcontext of = nullptr;
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(memory)));
    SAME(of, own);
    OK(cuCtxPopCurrent(&popped));
    OK(cudaMalloc(&memory, 64));
    OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(memory)));
    SAME(of, first);
}

PROMISE(setting_the_device_makes_its_primary_context_current)
{
    OK(cuInit(0));
    CUcontext own = nullptr;
    OK(cuCtxCreate(&own, nullptr, 0, 0));
    SAME(current(), own);
    OK(cudaSetDevice(0));
    SAME(current(), primary());
}

PROMISE(memory_is_the_same_for_both)
{
    int *by_runtime = nullptr;
    OK(cudaMalloc(&by_runtime, 64));
    OK(cuMemsetD32(reinterpret_cast<CUdeviceptr>(by_runtime), 7, 16));
    int got = 0;
    OK(cudaMemcpy(&got, by_runtime + 15, 4, cudaMemcpyDeviceToHost));
    SAME(got, 7);
    OK(cuMemFree(reinterpret_cast<CUdeviceptr>(by_runtime)));
    CUdeviceptr by_driver = 0;
    OK(cuMemAlloc(&by_driver, 64));
    OK(cudaMemset(reinterpret_cast<void *>(by_driver), 1, 64));
    OK(cuMemcpyDtoH(&got, by_driver, 4));
    SAME(got, 0x01010101);
    OK(cudaFree(reinterpret_cast<void *>(by_driver)));
}

PROMISE(streams_and_events_are_the_same_for_both)
{
    cudaStream_t by_runtime;
    OK(cudaStreamCreateWithFlags(&by_runtime, cudaStreamNonBlocking));
    unsigned flags = 0;
    OK(cuStreamGetFlags(by_runtime, &flags));
    SAME(flags, CU_STREAM_NON_BLOCKING);
    CUevent by_driver;
    OK(cuEventCreate(&by_driver, CU_EVENT_DEFAULT));
    OK(cudaEventRecord(by_driver, by_runtime));
    OK(cuEventSynchronize(by_driver));
    OK(cudaEventQuery(by_driver));
    OK(cuStreamDestroy(by_runtime));
    OK(cudaEventDestroy(by_driver));
}

PROMISE(arrays_are_the_same_for_both)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    OK(cudaMallocArray(&array, &format, 8, 4));
    CUDA_ARRAY_DESCRIPTOR found;
    OK(cuArrayGetDescriptor(&found, reinterpret_cast<CUarray>(array)));
    SAME(found.Width, 8);
    SAME(found.Height, 4);
    SAME(found.Format, CU_AD_FORMAT_FLOAT);
    SAME(found.NumChannels, 1);
    OK(cuArrayDestroy(reinterpret_cast<CUarray>(array)));
}

PROMISE(every_thread_shares_the_primary_context)
{
    OK(cudaFree(nullptr));
    const CUcontext here = current();
    CUcontext there = nullptr, before = here;
    std::thread([&] {
        before = current();
        OK(cudaFree(nullptr));
        there = current();
    }).join();
    SAME(before, nullptr);
    SAME(there, here);
}

PROMISE(a_released_primary_context_stays_while_the_runtime_uses_it)
{
    void *memory = nullptr;
    OK(cudaMalloc(&memory, 64));
    primary();
    OK(cuDevicePrimaryCtxRelease(0));
    TRUE(primary_is_active());
    OK(cudaMemset(memory, 0, 64));
}

PROMISE(errors_of_driver_calls_are_no_last_error_of_the_runtime)
{
    OK(cudaFree(nullptr));
    SAME(cuMemAlloc(nullptr, 16), CUDA_ERROR_INVALID_VALUE);
    OK(cudaGetLastError());
}
