// CUDA Driver API, "Stream Management", and the order between streams ("Stream synchronization behavior").
#include "../device.h"

#include <thread>

PROMISE(a_stream_runs_in_order)
{
    start();
    CUstream stream = create_stream();
    CUfunction store = kernel("store"), add = kernel("add");
    CUdeviceptr word = allocate(4);
    Gate gate(stream);
    launch(store, word, 10, stream);
    launch(add, word, 5, stream);
    OK(cuMemsetD8Async(word + 1, 1, 1, stream));
    gate.open();
    OK(cuStreamSynchronize(stream));
    SAME(word_at(word), 0x10f);
}

PROMISE(a_query_tells_whether_work_is_left)
{
    start();
    CUstream stream = create_stream();
    OK(cuStreamQuery(stream));
    Gate gate(stream);
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(stream));
    OK(cuStreamQuery(stream));
}

PROMISE(streams_run_beside_each_other)
{
    start();
    CUstream held = create_stream(), free = create_stream();
    CUdeviceptr word = allocate(4);
    CUfunction store = kernel("store");
    Gate gate(held);
    launch(store, word, 3, free);
    OK(cuStreamSynchronize(free));
    IS(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    gate.open();
}

PROMISE(the_legacy_stream_waits_for_blocking_streams)
{
    start();
    CUstream blocking = create_stream(CU_STREAM_DEFAULT);
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(blocking);
    launch(store, word, 1, CU_STREAM_LEGACY);
    IS(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
    OK(cuStreamQuery(blocking));
}

PROMISE(blocking_streams_wait_for_the_legacy_stream)
{
    start();
    CUstream blocking = create_stream(CU_STREAM_DEFAULT);
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(nullptr);
    launch(store, word, 1, blocking);
    IS(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(blocking));
}

PROMISE(non_blocking_streams_do_not_wait_for_the_legacy_stream)
{
    start();
    CUstream free = create_stream(CU_STREAM_NON_BLOCKING);
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(nullptr);
    launch(store, word, 1, free);
    OK(cuStreamSynchronize(free));
    IS(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    gate.open();
}

PROMISE(the_legacy_stream_does_not_wait_for_non_blocking_streams)
{
    start();
    CUstream held = create_stream(CU_STREAM_NON_BLOCKING);
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(held);
    launch(store, word, 1, nullptr);
    OK(cuStreamSynchronize(nullptr));
    gate.open();
}

PROMISE(the_per_thread_stream_is_a_blocking_one)
{
    start();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(CU_STREAM_LEGACY);
    launch(store, word, 1, CU_STREAM_PER_THREAD);
    IS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

PROMISE(each_thread_has_a_per_thread_stream_of_its_own)
{
    CUcontext context = start();
    Gate gate(CU_STREAM_PER_THREAD);
    std::thread([&] {
        OK(cuCtxSetCurrent(context));
        OK(cuStreamQuery(CU_STREAM_PER_THREAD));
        OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    }).join();
    IS(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    gate.open();
}

PROMISE(flags_are_default_or_non_blocking)
{
    start();
    CUstream stream;
    unsigned flags = 99;
    OK(cuStreamGetFlags(create_stream(CU_STREAM_NON_BLOCKING), &flags));
    SAME(flags, CU_STREAM_NON_BLOCKING);
    OK(cuStreamGetFlags(create_stream(CU_STREAM_DEFAULT), &flags));
    SAME(flags, CU_STREAM_DEFAULT);
    IS(cuStreamCreate(&stream, 0x100), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(priorities_are_taken_to_the_nearest_in_range)
{
    start();
    int least, greatest, priority = 99;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    CUstream stream;
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
    OK(cuStreamGetPriority(stream, &priority));
    SAME(priority, greatest);
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest - 100));
    OK(cuStreamGetPriority(stream, &priority));
    SAME(priority, greatest);
    OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, least + 100));
    OK(cuStreamGetPriority(stream, &priority));
    SAME(priority, least);
    OK(cuStreamGetPriority(create_stream(), &priority));
    SAME(priority, 0);
}

PROMISE(a_stream_knows_its_context_and_device)
{
    CUcontext context = create_context(), owner = nullptr;
    CUstream stream = create_stream();
    OK(cuStreamGetCtx(stream, &owner));
    TRUE(owner == context);
    OK(cuStreamGetCtx(nullptr, &owner));
    TRUE(owner == context);
    CUdevice device = -1;
    OK(cuStreamGetDevice(stream, &device));
    SAME(device, first_device());
}

PROMISE(ids_of_streams_differ)
{
    start();
    unsigned long long first = 0, second = 0, again = 0;
    CUstream stream = create_stream();
    OK(cuStreamGetId(stream, &first));
    OK(cuStreamGetId(create_stream(), &second));
    OK(cuStreamGetId(stream, &again));
    TRUE(first != second);
    SAME(again, first);
}

PROMISE(a_destroyed_stream_still_does_its_work)
{
    start();
    CUstream stream = create_stream();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    CUevent event = create_event();
    Gate gate(stream);
    launch(store, word, 19, stream);
    OK(cuEventRecord(event, stream));
    OK(cuStreamDestroy(stream));
    gate.open();
    OK(cuEventSynchronize(event));
    SAME(word_at(word), 19);
}

PROMISE(a_stream_waits_for_an_event_of_another)
{
    start();
    CUstream first = create_stream(), second = create_stream();
    CUfunction store = kernel("store"), add = kernel("add");
    CUdeviceptr word = allocate(4);
    CUevent event = create_event(CU_EVENT_DISABLE_TIMING);
    Gate gate(first);
    launch(store, word, 100, first);
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, CU_EVENT_WAIT_DEFAULT));
    launch(add, word, 1, second);
    IS(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(second));
    SAME(word_at(word), 101);
    IS(cuStreamWaitEvent(second, event, 0x100), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamWaitEvent(second, nullptr, 0), CUDA_ERROR_INVALID_HANDLE);
}

PROMISE(a_callback_comes_after_the_work_and_holds_what_follows)
{
    start();
    CUstream stream = create_stream();
    CUfunction store = kernel("store");
    static unsigned *word;
    static struct Seen {
        CUstream stream;
        CUresult status;
        unsigned value;
    } seen;
    OK(cuMemHostAlloc(reinterpret_cast<void **>(&word), 4, 0));
    launch(store, reinterpret_cast<CUdeviceptr>(word), 1, stream);
    OK(cuStreamAddCallback(stream, [](CUstream stream, CUresult status, void *data) {
        *static_cast<Seen *>(data) = {stream, status, *word};
    }, &seen, 0));
    launch(store, reinterpret_cast<CUdeviceptr>(word), 2, stream);
    OK(cuStreamSynchronize(stream));
    TRUE(seen.stream == stream);
    SAME(seen.status, CUDA_SUCCESS);
    SAME(seen.value, 1);
    SAME(*word, 2);
    IS(cuStreamAddCallback(stream, nullptr, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(attributes_of_streams_are_kept_and_copied)
{
    start();
    CUstream stream = create_stream(), other = create_stream();
    CUstreamAttrValue value{};
    value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
    OK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value = {};
    OK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    SAME(value.syncPolicy, CU_SYNC_POLICY_BLOCKING_SYNC);
    OK(cuStreamCopyAttributes(other, stream));
    value = {};
    OK(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    SAME(value.syncPolicy, CU_SYNC_POLICY_BLOCKING_SYNC);
}

PROMISE(a_stream_takes_work_from_any_thread)
{
    CUcontext context = start();
    CUstream stream = create_stream();
    CUfunction add = kernel("add");
    CUdeviceptr word = allocate(4);
    OK(cuMemsetD32Async(word, 0, 1, stream));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([&] {
            OK(cuCtxSetCurrent(context));
            for (int n = 0; n < 50; n++)
                launch(add, word, 1, stream);
        });
    for (std::thread &thread : threads)
        thread.join();
    OK(cuStreamSynchronize(stream));
    SAME(word_at(word), 200);
}

PROMISE(work_of_a_stream_needs_no_current_context_but_its_own)
{
    create_context();
    CUstream stream = create_stream();
    CUevent event = create_event();
    create_context();
    OK(cuStreamQuery(stream));
    OK(cuStreamSynchronize(stream));
    OK(cuEventQuery(event));
}

PROMISE(a_wait_of_the_legacy_stream_holds_blocking_streams)
{
    start();
    CUstream held = create_stream(), blocking = create_stream(CU_STREAM_DEFAULT);
    CUevent event = create_event(CU_EVENT_DISABLE_TIMING);
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(held);
    OK(cuEventRecord(event, held));
    OK(cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0));
    launch(store, word, 1, blocking);
    IS(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(blocking));
}

PROMISE(managed_memory_is_attached_to_a_stream)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory;
    OK(cuMemAllocManaged(&memory, 4096, CU_MEM_ATTACH_HOST));
    OK(cuStreamAttachMemAsync(stream, memory, 0, CU_MEM_ATTACH_SINGLE));
    OK(cuStreamSynchronize(stream));
    IS(cuStreamAttachMemAsync(stream, memory, 0, 0x100), CUDA_ERROR_INVALID_VALUE);
    IS(cuStreamAttachMemAsync(stream, allocate(64), 0, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
}
