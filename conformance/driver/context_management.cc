// CUDA Driver API, "Context Management", and contexts under threads.
#include "../device.h"

#include <thread>

static CUcontext current()
{
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    return context;
}

PROMISE(a_created_context_is_current_and_on_the_stack)
{
    CUcontext first = create_context();
    TRUE(current() == first);
    CUcontext second = create_context();
    TRUE(current() == second);
    CUcontext popped = nullptr;
    OK(cuCtxPopCurrent(&popped));
    TRUE(popped == second);
    TRUE(current() == first);
    OK(cuCtxPushCurrent(second));
    TRUE(current() == second);
}

PROMISE(an_empty_stack_has_nothing_to_pop)
{
    OK(cuInit(0));
    CUcontext popped;
    IS(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
    TRUE(current() == nullptr);
}

PROMISE(without_a_context_calls_answer_invalid_context)
{
    OK(cuInit(0));
    CUdevice device;
    unsigned flags;
    size_t value;
    CUdeviceptr memory;
    CUstream stream;
    IS(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCtxGetFlags(&flags), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuMemAlloc(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
}

PROMISE(setting_current_replaces_the_top_of_the_stack)
{
    CUcontext below = create_context(), top = create_context(), other = create_context();
    OK(cuCtxPopCurrent(nullptr));
    OK(cuCtxSetCurrent(other));
    TRUE(current() == other);
    OK(cuCtxPopCurrent(nullptr));
    TRUE(current() == below);
    (void)top;
}

PROMISE(setting_null_current_pops)
{
    CUcontext below = create_context();
    create_context();
    OK(cuCtxSetCurrent(nullptr));
    TRUE(current() == below);
    OK(cuCtxSetCurrent(nullptr));
    OK(cuCtxSetCurrent(nullptr));
    TRUE(current() == nullptr);
}

PROMISE(destroying_the_current_context_pops_it)
{
    CUcontext below = create_context(), top = create_context();
    OK(cuCtxDestroy(top));
    TRUE(current() == below);
    OK(cuCtxDestroy(below));
    TRUE(current() == nullptr);
}

PROMISE(destroying_a_context_that_is_not_current_leaves_the_stack)
{
    CUcontext other = create_context(), top = create_context();
    OK(cuCtxPopCurrent(nullptr));
    OK(cuCtxPopCurrent(nullptr));
    OK(cuCtxPushCurrent(top));
    OK(cuCtxDestroy(other));
    TRUE(current() == top);
    OK(cuMemFree(allocate(16)));
}

PROMISE(a_context_current_elsewhere_stays_so_and_says_it_is_destroyed)
{
    CUcontext context = create_context();
    std::atomic<int> step{0};
    std::thread other([&] {
        OK(cuCtxSetCurrent(context));
        step = 1;
        while (step != 2)
            usleep(100);
        CUdeviceptr memory;
        IS(cuMemAlloc(&memory, 16), CUDA_ERROR_CONTEXT_IS_DESTROYED);
        IS(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    });
    while (step != 1)
        usleep(100);
    OK(cuCtxDestroy(context));
    step = 2;
    other.join();
}

PROMISE(a_context_takes_its_memory_with_it)
{
    start();
    CUcontext context = create_context();
    CUdeviceptr memory = allocate(64);
    OK(cuCtxDestroy(context));
    CUdeviceptr base;
    size_t size;
    IS(cuMemGetAddressRange(&base, &size, memory), CUDA_ERROR_NOT_FOUND);
}

PROMISE(a_new_thread_has_no_context_and_may_share_one)
{
    CUcontext context = create_context();
    CUdeviceptr memory = allocate(4);
    std::thread([&] {
        TRUE(current() == nullptr);
        OK(cuCtxSetCurrent(context));
        OK(cuMemsetD32(memory, 5, 1));
    }).join();
    SAME(word_at(memory), 5);
}

PROMISE(each_thread_has_its_own_stack)
{
    CUcontext mine = create_context();
    std::thread([&] {
        CUcontext own = create_context();
        TRUE(current() == own);
        OK(cuCtxPopCurrent(nullptr));
        TRUE(current() == nullptr);
    }).join();
    TRUE(current() == mine);
}

PROMISE(one_context_may_be_current_to_many_threads_at_once)
{
    CUcontext context = start();
    CUfunction add = kernel("add");
    CUdeviceptr sum = allocate(4);
    OK(cuMemsetD32(sum, 0, 1));
    OK(cuCtxSynchronize());
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&] {
            OK(cuCtxSetCurrent(context));
            CUstream own = create_stream();
            for (int n = 0; n < 20; n++)
                launch(add, sum, 1, own, 32);
            OK(cuStreamSynchronize(own));
        });
    for (std::thread &thread : threads)
        thread.join();
    SAME(word_at(sum), 8 * 20 * 32);
}

PROMISE(flags_of_creation_are_read_back)
{
    create_context(CU_CTX_SCHED_BLOCKING_SYNC);
    unsigned flags = 0;
    OK(cuCtxGetFlags(&flags));
    SAME(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    CUcontext context;
    IS(cuCtxCreate(&context, nullptr, 0x10000, first_device()), CUDA_ERROR_INVALID_VALUE);
    IS(cuCtxCreate(&context, nullptr, 0, 1000), CUDA_ERROR_INVALID_DEVICE);
    IS(cuCtxCreate(nullptr, nullptr, 0, first_device()), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_context_knows_its_device_and_version)
{
    CUcontext context = create_context();
    CUdevice device = -1;
    OK(cuCtxGetDevice(&device));
    SAME(device, first_device());
    unsigned version = 0;
    OK(cuCtxGetApiVersion(context, &version));
    TRUE(version >= 3010);
    version = 0;
    OK(cuCtxGetApiVersion(nullptr, &version));
    TRUE(version >= 3010);
}

PROMISE(ids_of_contexts_differ)
{
    CUcontext first = create_context(), second = create_context();
    unsigned long long a = 0, b = 0, now = 0;
    OK(cuCtxGetId(first, &a));
    OK(cuCtxGetId(second, &b));
    OK(cuCtxGetId(nullptr, &now));
    TRUE(a != b);
    SAME(now, b);
}

PROMISE(limits_hold_at_least_what_was_asked_for)
{
    create_context();
    for (CUlimit limit : {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE}) {
        size_t before = 0, after = 0;
        OK(cuCtxGetLimit(&before, limit));
        OK(cuCtxSetLimit(limit, before * 2));
        OK(cuCtxGetLimit(&after, limit));
        TRUE(after >= before * 2);
    }
    IS(cuCtxGetLimit(nullptr, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(limits_belong_to_one_context)
{
    create_context();
    size_t fresh = 0, other = 0;
    OK(cuCtxGetLimit(&fresh, CU_LIMIT_PRINTF_FIFO_SIZE));
    OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, fresh * 4));
    create_context();
    OK(cuCtxGetLimit(&other, CU_LIMIT_PRINTF_FIFO_SIZE));
    SAME(other, fresh);
}

PROMISE(a_cache_preference_is_kept_or_there_is_none)
{
    create_context();
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    CUfunc_cache config;
    OK(cuCtxGetCacheConfig(&config));
    TRUE(config == CU_FUNC_CACHE_PREFER_L1 || config == CU_FUNC_CACHE_PREFER_NONE);
}

PROMISE(greater_priorities_are_lower_numbers_and_either_may_be_left_out)
{
    create_context();
    int least = -100, greatest = 100, again = 0;
    OK(cuCtxGetStreamPriorityRange(&least, &greatest));
    TRUE(greatest <= least);
    OK(cuCtxGetStreamPriorityRange(nullptr, &again));
    SAME(again, greatest);
    OK(cuCtxGetStreamPriorityRange(&again, nullptr));
    SAME(again, least);
}

PROMISE(synchronizing_waits_for_every_stream)
{
    start();
    CUfunction store = kernel("store");
    CUdeviceptr words = allocate(16);
    for (unsigned i = 0; i < 4; i++)
        launch(store, words + 4 * i, i + 1, create_stream());
    OK(cuCtxSynchronize());
    CUstream own = create_stream();
    unsigned read[4] = {};
    OK(cuMemcpyDtoHAsync(read, words, sizeof read, own));
    OK(cuStreamSynchronize(own));
    SAME(read[0] + read[1] * 10 + read[2] * 100 + read[3] * 1000, 4321);
}

PROMISE(attaching_takes_no_flags)
{
    CUcontext context = create_context(), attached = nullptr;
    IS(cuCtxAttach(&attached, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxAttach(&attached, 0));
    TRUE(attached == context);
    OK(cuCtxDetach(context));
    TRUE(current() == context);
}

PROMISE(synchronizing_a_context_does_not_wait_for_another)
{
    create_context();
    CUstream held = create_stream();
    Gate gate(held);
    create_context();
    OK(cuCtxSynchronize());
    gate.open();
}

PROMISE(each_context_has_a_legacy_stream_of_its_own)
{
    create_context();
    Gate gate(nullptr);
    create_context();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    launch(store, word, 4);
    OK(cuStreamSynchronize(nullptr));
    CUstream blocking = create_stream(CU_STREAM_DEFAULT);
    launch(store, word, 5, blocking);
    OK(cuStreamSynchronize(blocking));
    SAME(word_at(word), 5);
    gate.open();
}

PROMISE(destroying_a_context_does_not_wait_for_another)
{
    create_context();
    CUstream held = create_stream();
    Gate gate(held);
    CUcontext other = create_context();
    OK(cuCtxDestroy(other));
    gate.open();
}

PROMISE(the_per_thread_stream_is_one_for_each_context)
{
    create_context();
    Gate gate(CU_STREAM_PER_THREAD);
    create_context();
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    gate.open();
}

PROMISE(a_stream_waits_for_an_event_of_another_context)
{
    create_context();
    CUstream held = create_stream();
    CUevent event = create_event(CU_EVENT_DISABLE_TIMING);
    Gate gate(held);
    OK(cuEventRecord(event, held));
    create_context();
    CUstream stream = create_stream();
    OK(cuStreamWaitEvent(stream, event, 0));
    IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(stream));
}

PROMISE(memory_of_one_context_is_used_by_another)
{
    create_context();
    CUdeviceptr word = allocate(4);
    OK(cuMemsetD32(word, 3, 1));
    OK(cuCtxSynchronize());
    create_context();
    launch(kernel("add"), word, 4);
    SAME(word_at(word), 7);
    OK(cuMemFree(word));
}
