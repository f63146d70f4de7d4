// CUDA Driver API, "Stream Ordered Memory Allocator".
#include "../device.h"

static CUmemoryPool default_pool()
{
    CUmemoryPool pool;
    OK(cuDeviceGetDefaultMemPool(&pool, first_device()));
    return pool;
}

static CUmemoryPool create_pool(size_t most = 0)
{
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = first_device();
    properties.maxSize = most;
    CUmemoryPool pool;
    OK(cuMemPoolCreate(&pool, &properties));
    return pool;
}

template <typename T> static T told(CUmemoryPool pool, CUmemPool_attribute which)
{
    T value{};
    OK(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

PROMISE(memory_can_be_used_behind_its_allocation)
{
    start();
    CUstream stream = create_stream();
    CUfunction add = kernel("add");
    CUdeviceptr memory;
    OK(cuMemAllocAsync(&memory, 4, stream));
    OK(cuMemsetD32Async(memory, 1, 1, stream));
    launch(add, memory, 2, stream);
    unsigned got = 0;
    OK(cuMemcpyDtoHAsync(&got, memory, 4, stream));
    OK(cuMemFreeAsync(memory, stream));
    OK(cuStreamSynchronize(stream));
    SAME(got, 3);
}

PROMISE(another_stream_uses_it_behind_an_event)
{
    start();
    CUstream first = create_stream(), second = create_stream();
    CUfunction store = kernel("store");
    CUevent event = create_event(CU_EVENT_DISABLE_TIMING);
    CUdeviceptr memory;
    Gate gate(first);
    OK(cuMemAllocAsync(&memory, 4, first));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    launch(store, memory, 15, second);
    gate.open();
    OK(cuStreamSynchronize(second));
    SAME(word_at(memory), 15);
}

PROMISE(a_free_waits_for_the_work_in_front_of_it)
{
    start();
    CUstream stream = create_stream(), other = create_stream();
    CUfunction store = kernel("store");
    CUdeviceptr memory, kept = allocate(4);
    OK(cuMemAllocAsync(&memory, 1 << 20, stream));
    Gate gate(stream);
    launch(store, memory, 77, stream);
    OK(cuMemcpyDtoDAsync(kept, memory, 4, stream));
    OK(cuMemFreeAsync(memory, stream));
    // What others get meanwhile is not this memory.
    CUdeviceptr others[8];
    for (CUdeviceptr &one : others) {
        OK(cuMemAllocAsync(&one, 1 << 20, other));
        OK(cuMemsetD32Async(one, 0, 1 << 18, other));
    }
    OK(cuStreamSynchronize(other));
    gate.open();
    OK(cuStreamSynchronize(stream));
    SAME(word_at(kept), 77);
}

PROMISE(either_free_takes_either_memory)
{
    start();
    CUstream stream = create_stream();
    CUdeviceptr memory;
    OK(cuMemAllocAsync(&memory, 64, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree(memory));
    OK(cuMemFreeAsync(allocate(64), stream));
    OK(cuStreamSynchronize(stream));
}

PROMISE(only_what_was_allocated_is_freed)
{
    start();
    int own = 0;
    IS(cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(&own), nullptr), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr memory;
    IS(cuMemAllocAsync(nullptr, 64, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(cuMemAllocAsync(&memory, size_t(1) << 50, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
}

PROMISE(a_device_begins_with_its_default_pool)
{
    start();
    CUmemoryPool current = nullptr;
    OK(cuDeviceGetMemPool(&current, first_device()));
    TRUE(current == default_pool());
    TRUE(cuMemPoolDestroy(current) != CUDA_SUCCESS);
    IS(cuDeviceGetMemPool(&current, 1000), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(allocations_come_from_the_current_pool)
{
    start();
    CUmemoryPool own = create_pool(), from = nullptr;
    OK(cuDeviceSetMemPool(first_device(), own));
    CUdeviceptr memory;
    OK(cuMemAllocAsync(&memory, 64, nullptr));
    OK(cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
    TRUE(from == own);
    OK(cuMemAllocFromPoolAsync(&memory, 64, default_pool(), nullptr));
    OK(cuPointerGetAttribute(&from, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
    TRUE(from == default_pool());
}

PROMISE(when_the_current_pool_is_destroyed_the_default_takes_its_place)
{
    start();
    CUmemoryPool own = create_pool(), current = nullptr;
    OK(cuDeviceSetMemPool(first_device(), own));
    OK(cuMemPoolDestroy(own));
    OK(cuDeviceGetMemPool(&current, first_device()));
    TRUE(current == default_pool());
}

PROMISE(memory_of_a_destroyed_pool_lives_until_it_is_freed)
{
    start();
    CUmemoryPool own = create_pool();
    CUdeviceptr memory;
    OK(cuMemAllocFromPoolAsync(&memory, 64, own, nullptr));
    OK(cuMemPoolDestroy(own));
    OK(cuMemsetD32(memory, 8, 1));
    SAME(word_at(memory), 8);
    OK(cuMemFreeAsync(memory, nullptr));
    OK(cuCtxSynchronize());
}

PROMISE(reuse_is_allowed_and_nothing_is_kept_unless_it_is_said)
{
    start();
    CUmemoryPool pool = create_pool();
    SAME(told<int>(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES), 1);
    SAME(told<int>(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1);
    SAME(told<int>(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES), 1);
    SAME(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 0);
}

PROMISE(attributes_of_a_pool_are_kept)
{
    start();
    CUmemoryPool pool = create_pool();
    int off = 0;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &off));
    SAME(told<int>(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 0);
    cuuint64_t threshold = 1 << 20;
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    SAME(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), 1 << 20);
    IS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &threshold), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_pool_counts_what_is_used)
{
    start();
    CUmemoryPool pool = create_pool();
    CUdeviceptr first, second;
    SAME(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    OK(cuMemAllocFromPoolAsync(&first, 1 << 20, pool, nullptr));
    OK(cuMemAllocFromPoolAsync(&second, 1 << 20, pool, nullptr));
    cuuint64_t both = told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    TRUE(both >= 2 << 20);
    TRUE(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= both);
    OK(cuMemFreeAsync(first, nullptr));
    OK(cuCtxSynchronize());
    TRUE(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) < both);
    SAME(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), both);
    cuuint64_t zero = 0, one = 1;
    IS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    TRUE(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) < both);
}

PROMISE(a_plain_free_is_counted_too)
{
    start();
    CUmemoryPool pool = create_pool();
    CUdeviceptr memory;
    OK(cuMemAllocFromPoolAsync(&memory, 1 << 20, pool, nullptr));
    OK(cuMemFree(memory));
    // NVIDIA's pool counts it later.
    OK(cuCtxSynchronize());
    SAME(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
}

PROMISE(trimming_keeps_what_is_used)
{
    start();
    CUmemoryPool pool = create_pool();
    cuuint64_t all = ~cuuint64_t(0);
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    CUdeviceptr kept, gone;
    OK(cuMemAllocFromPoolAsync(&kept, 64, pool, nullptr));
    OK(cuMemAllocFromPoolAsync(&gone, 64 << 20, pool, nullptr));
    OK(cuMemsetD32(kept, 6, 1));
    OK(cuMemFreeAsync(gone, nullptr));
    OK(cuCtxSynchronize());
    OK(cuMemPoolTrimTo(pool, 0));
    TRUE(told<cuuint64_t>(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 64 << 20);
    SAME(word_at(kept), 6);
}

PROMISE(a_pool_gives_no_more_than_its_largest_size)
{
    start();
    CUmemoryPool pool = create_pool(32 << 20);
    CUdeviceptr memory;
    OK(cuMemAllocFromPoolAsync(&memory, 1 << 20, pool, nullptr));
    IS(cuMemAllocFromPoolAsync(&memory, 256 << 20, pool, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
}

PROMISE(a_pools_own_device_reads_and_writes_it)
{
    start();
    CUmemAccess_flags access{};
    CUmemLocation device{};
    device.type = CU_MEM_LOCATION_TYPE_DEVICE;
    device.id = first_device();
    OK(cuMemPoolGetAccess(&access, create_pool(), &device));
    SAME(access, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}
