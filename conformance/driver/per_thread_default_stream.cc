// CUDA Driver API, "Stream synchronization behavior": programs compiled for per-thread default streams.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "../device.h"

#include <thread>

PROMISE(the_null_stream_is_the_threads_own)
{
    start();
    Gate gate(nullptr);
    IS(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    IS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(nullptr));
    OK(cuStreamQuery(CU_STREAM_PER_THREAD));
}

PROMISE(null_streams_of_two_threads_do_not_wait_for_each_other)
{
    CUcontext context = start();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(nullptr);
    std::thread([&] {
        OK(cuCtxSetCurrent(context));
        launch(store, word, 5);
        OK(cuStreamSynchronize(nullptr));
        SAME(word_at(word), 5);
    }).join();
    IS(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    gate.open();
}

PROMISE(a_copy_waits_for_the_threads_own_stream)
{
    start();
    CUdeviceptr word = allocate(4);
    launch(kernel("store"), word, 6);
    SAME(word_at(word), 6);
}

PROMISE(a_copy_does_not_wait_for_other_streams)
{
    start();
    CUstream blocking = create_stream(CU_STREAM_DEFAULT);
    CUdeviceptr word = allocate(4);
    OK(cuMemsetD32(word, 7, 1));
    Gate gate(blocking);
    SAME(word_at(word), 7);
    gate.open();
}

PROMISE(the_legacy_stream_is_still_waited_for)
{
    start();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(CU_STREAM_LEGACY);
    launch(store, word, 8);
    IS(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(nullptr));
    SAME(word_at(word), 8);
}

PROMISE(events_of_the_null_stream_are_the_threads_own)
{
    CUcontext context = start();
    CUevent event = create_event();
    Gate gate(nullptr);
    std::thread([&] {
        OK(cuCtxSetCurrent(context));
        OK(cuEventRecord(event, nullptr));
        OK(cuEventSynchronize(event));
    }).join();
    OK(cuEventRecord(event, nullptr));
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuEventSynchronize(event));
}

PROMISE(pools_and_fills_use_the_threads_own_stream)
{
    start();
    Gate gate(nullptr);
    CUdeviceptr memory;
    OK(cuMemAllocAsync(&memory, 64, nullptr));
    OK(cuMemsetD32Async(memory, 9, 16, nullptr));
    IS(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    gate.open();
    SAME(word_at(memory), 9);
    OK(cuMemFreeAsync(memory, nullptr));
    OK(cuStreamSynchronize(nullptr));
}
