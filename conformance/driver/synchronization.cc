// CUDA Driver API, "API synchronization behavior": what has ended when a call returns.
#include "../device.h"

constexpr size_t BYTES = 1 << 20;

static void *locked(size_t n_bytes)
{
    void *host;
    OK(cuMemHostAlloc(&host, n_bytes, 0));
    return host;
}

PROMISE(a_launch_does_not_wait_for_the_kernel)
{
    start();
    CUstream stream = create_stream();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(stream);
    launch(store, word, 1, stream);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(stream));
}

PROMISE(a_copy_from_pageable_memory_has_read_it_when_it_returns)
{
    start();
    CUdeviceptr memory = allocate(BYTES);
    std::vector<unsigned char> host(BYTES, 1);
    OK(cuMemcpyHtoD(memory, host.data(), BYTES));
    std::fill(host.begin(), host.end(), 2);
    OK(cuMemcpyDtoH(host.data(), memory, BYTES));
    TRUE(host[0] == 1 && host[BYTES - 1] == 1);
}

PROMISE(an_async_copy_from_pageable_memory_has_read_it_when_it_returns)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory = allocate(BYTES);
    std::vector<unsigned char> host(BYTES, 1);
    OK(cuMemcpyHtoDAsync(memory, host.data(), BYTES, stream));
    std::fill(host.begin(), host.end(), 2);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(host.data(), memory, BYTES));
    TRUE(host[0] == 1 && host[BYTES - 1] == 1);
}

PROMISE(an_async_copy_to_pageable_memory_has_ended_when_it_returns)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory = allocate(BYTES);
    OK(cuMemsetD8Async(memory, 3, BYTES, stream));
    std::vector<unsigned char> host(BYTES, 1);
    OK(cuMemcpyDtoHAsync(host.data(), memory, BYTES, stream));
    TRUE(host[0] == 3 && host[BYTES - 1] == 3);
}

PROMISE(async_copies_of_page_locked_memory_do_not_wait)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory = allocate(4);
    auto *from = static_cast<volatile unsigned *>(locked(4)), *to = static_cast<volatile unsigned *>(locked(4));
    *from = 1;
    *to = 0;
    Gate gate(stream);
    OK(cuMemcpyHtoDAsync(memory, const_cast<unsigned *>(from), 4, stream));
    OK(cuMemcpyDtoHAsync(const_cast<unsigned *>(to), memory, 4, stream));
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    SAME(*to, 0);
    // Nothing was read yet: the copy sees what is written now.
    *from = 2;
    gate.open();
    OK(cuStreamSynchronize(stream));
    SAME(*to, 2);
}

PROMISE(a_copy_to_the_host_has_ended_when_it_returns)
{
    start();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    launch(store, word, 44);
    SAME(word_at(word), 44);
}

PROMISE(a_copy_waits_for_blocking_streams)
{
    start();
    CUstream blocking = create_stream(CU_STREAM_DEFAULT);
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    launch(store, word, 45, blocking);
    SAME(word_at(word), 45);
}

PROMISE(fills_are_asynchronous_for_device_memory)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr word = allocate(4);
    Gate gate(stream);
    OK(cuMemsetD32Async(word, 9, 1, stream));
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(stream));
    SAME(word_at(word), 9);
}

PROMISE(work_of_a_freed_buffer_ends_first)
{
    start();
    CUstream stream = create_stream();
    CUfunction add = kernel("add");
    CUdeviceptr word = allocate(4);
    for (int i = 0; i < 20; i++)
        launch(add, word, 1, stream, 256);
    OK(cuMemFree(word));
    OK(cuStreamSynchronize(stream));
}

PROMISE(synchronizing_the_context_waits_for_non_blocking_streams_too)
{
    start();
    CUstream stream = create_stream();
    static std::atomic<bool> is_done{false};
    OK(cuLaunchHostFunc(stream, [](void *) { usleep(20000); is_done = true; }, nullptr));
    OK(cuCtxSynchronize());
    TRUE(is_done);
}

PROMISE(a_fill_of_memory_the_host_sees_has_ended_when_it_returns)
{
    start();
    auto *host = static_cast<volatile unsigned *>(locked(BYTES));
    CUdeviceptr memory;
    OK(cuMemHostGetDevicePointer(&memory, const_cast<unsigned *>(host), 0));
    OK(cuMemsetD32(memory, 5, BYTES / 4));
    SAME(host[BYTES / 4 - 1], 5);
    OK(cuMemAllocManaged(&memory, BYTES, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemsetD32(memory, 6, BYTES / 4));
    SAME(reinterpret_cast<volatile unsigned *>(memory)[BYTES / 4 - 1], 6);
}
