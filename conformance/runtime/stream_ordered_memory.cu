// CUDA Runtime API, "Stream Ordered Memory Allocator".
#include "../check.h"

#include <cstdint>

__global__ void fill(int *at, int value) { at[threadIdx.x] = value; }

static cudaStream_t stream()
{
    cudaStream_t made;
    OK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
}

static cudaMemPool_t pool()
{
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t made = nullptr;
    OK(cudaMemPoolCreate(&made, &properties));
    TRUE(made != nullptr);
    return made;
}

template <typename T> static T attribute(cudaMemPool_t of, cudaMemPoolAttr which)
{
    T value = {};
    OK(cudaMemPoolGetAttribute(of, which, &value));
    return value;
}

PROMISE(memory_is_usable_in_the_streams_order)
{
    cudaStream_t on = stream();
    int *memory = nullptr, got[32];
    OK(cudaMallocAsync(&memory, 128, on));
    SAME(reinterpret_cast<uintptr_t>(memory) % 256, 0);
    fill<<<1, 32, 0, on>>>(memory, 3);
    OK(cudaMemcpyAsync(got, memory, 128, cudaMemcpyDeviceToHost, on));
    OK(cudaFreeAsync(memory, on));
    OK(cudaStreamSynchronize(on));
    for (int one : got)
        SAME(one, 3);
}

PROMISE(memory_of_a_pool_can_be_freed_at_once)
{
    cudaStream_t on = stream();
    int *memory = nullptr;
    OK(cudaMallocAsync(&memory, 128, on));
    OK(cudaStreamSynchronize(on));
    OK(cudaFree(memory));
}

PROMISE(plain_memory_can_be_freed_in_stream_order)
{
    cudaStream_t on = stream();
    int *memory = nullptr;
    OK(cudaMalloc(&memory, 128));
    OK(cudaFreeAsync(memory, on));
    OK(cudaStreamSynchronize(on));
}

PROMISE(freeing_what_was_never_allocated_is_refused)
{
    static int local;
    IS(cudaFreeAsync(&local, stream()), cudaErrorInvalidValue);
    IS(cudaMallocAsync(static_cast<void **>(nullptr), 16, stream()), cudaErrorInvalidValue);
}

PROMISE(pools_count_what_is_used)
{
    cudaStream_t on = stream();
    cudaMemPool_t own = pool();
    SAME(attribute<uint64_t>(own, cudaMemPoolAttrUsedMemCurrent), 0);
    void *memory = nullptr;
    OK(cudaMallocFromPoolAsync(&memory, 1 << 20, own, on));
    OK(cudaStreamSynchronize(on));
    TRUE(attribute<uint64_t>(own, cudaMemPoolAttrUsedMemCurrent) >= (1 << 20));
    TRUE(attribute<uint64_t>(own, cudaMemPoolAttrReservedMemCurrent) >= (1 << 20));
    OK(cudaFreeAsync(memory, on));
    OK(cudaStreamSynchronize(on));
    SAME(attribute<uint64_t>(own, cudaMemPoolAttrUsedMemCurrent), 0);
    TRUE(attribute<uint64_t>(own, cudaMemPoolAttrUsedMemHigh) >= (1 << 20));
    uint64_t zero = 0;
    OK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrUsedMemHigh, &zero));
    SAME(attribute<uint64_t>(own, cudaMemPoolAttrUsedMemHigh), 0);
    OK(cudaMemPoolDestroy(own));
}

PROMISE(thresholds_and_reuse_are_as_set)
{
    cudaMemPool_t own = pool();
    SAME(attribute<uint64_t>(own, cudaMemPoolAttrReleaseThreshold), 0);
    uint64_t threshold = UINT64_MAX;
    OK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
    SAME(attribute<uint64_t>(own, cudaMemPoolAttrReleaseThreshold), UINT64_MAX);
    for (cudaMemPoolAttr which : {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
                                  cudaMemPoolReuseAllowInternalDependencies}) {
        SAME(attribute<int>(own, which), 1);
        int off = 0;
        OK(cudaMemPoolSetAttribute(own, which, &off));
        SAME(attribute<int>(own, which), 0);
    }
}

PROMISE(trimming_gives_back_what_is_not_used)
{
    cudaStream_t on = stream();
    cudaMemPool_t own = pool();
    uint64_t threshold = UINT64_MAX;
    OK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));
    void *memory = nullptr;
    OK(cudaMallocFromPoolAsync(&memory, 4 << 20, own, on));
    OK(cudaFreeAsync(memory, on));
    OK(cudaStreamSynchronize(on));
    OK(cudaMemPoolTrimTo(own, 0));
    SAME(attribute<uint64_t>(own, cudaMemPoolAttrReservedMemCurrent), 0);
}

PROMISE(a_devices_pool_can_be_changed)
{
    cudaMemPool_t standard = nullptr, current = nullptr, own = pool();
    OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    OK(cudaDeviceSetMemPool(0, own));
    OK(cudaDeviceGetMemPool(&current, 0));
    SAME(current, own);
    cudaStream_t on = stream();
    void *memory = nullptr;
    OK(cudaMallocAsync(&memory, 1 << 20, on));
    OK(cudaStreamSynchronize(on));
    TRUE(attribute<uint64_t>(own, cudaMemPoolAttrUsedMemCurrent) >= (1 << 20));
    OK(cudaFreeAsync(memory, on));
    OK(cudaStreamSynchronize(on));
    OK(cudaMemPoolDestroy(own));
    OK(cudaDeviceGetMemPool(&current, 0));
    SAME(current, standard);
}

PROMISE(the_default_pool_cannot_be_destroyed)
{
    cudaMemPool_t standard = nullptr;
    OK(cudaDeviceGetDefaultMemPool(&standard, 0));
    TRUE(cudaMemPoolDestroy(standard) != cudaSuccess);
}

PROMISE(a_device_has_access_to_its_own_pools)
{
    cudaMemPool_t own = pool();
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
    OK(cudaMemPoolGetAccess(&flags, own, &here));
    SAME(flags, cudaMemAccessFlagsProtReadWrite);
}

PROMISE(a_pool_goes_when_its_memory_does)
{
    cudaStream_t on = stream();
    cudaMemPool_t own = pool();
    int *memory = nullptr;
    OK(cudaMallocFromPoolAsync(&memory, 128, own, on));
    OK(cudaMemPoolDestroy(own));
    fill<<<1, 32, 0, on>>>(memory, 4);
    int got = 0;
    OK(cudaMemcpyAsync(&got, memory, 4, cudaMemcpyDeviceToHost, on));
    OK(cudaFreeAsync(memory, on));
    OK(cudaStreamSynchronize(on));
    SAME(got, 4);
}

PROMISE(memory_freed_on_one_stream_is_not_given_to_another_too_early)
{
    cudaStream_t first = stream(), second = stream();
    int *memory = nullptr, *other = nullptr;
    OK(cudaMallocAsync(&memory, 4096, first));
    OK(cudaLaunchHostFunc(first, [](void *) { usleep(40000); }, nullptr));
    fill<<<1, 32, 0, first>>>(memory, 1);
    int got[32] = {};
    OK(cudaMemcpyAsync(got, memory, sizeof got, cudaMemcpyDeviceToHost, first));
    OK(cudaFreeAsync(memory, first));
    OK(cudaMallocAsync(&other, 4096, second));
    fill<<<1, 32, 0, second>>>(other, 2);
    OK(cudaStreamSynchronize(second));
    OK(cudaStreamSynchronize(first));
    for (int one : got)
        SAME(one, 1);
    int there[32];
    OK(cudaMemcpy(there, other, sizeof there, cudaMemcpyDeviceToHost));
    for (int one : there)
        SAME(one, 2);
}
