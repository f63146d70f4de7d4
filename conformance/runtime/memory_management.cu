// CUDA Runtime API, "Memory Management" (arrays are in arrays.cu).
#include "../check.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

template <typename T> static T *device(size_t n)
{
    T *memory = nullptr;
    OK(cudaMalloc(&memory, n * sizeof(T)));
    TRUE(memory != nullptr);
    return memory;
}

static std::vector<int> numbers(size_t n)
{
    std::vector<int> all(n);
    std::iota(all.begin(), all.end(), 1);
    return all;
}

__device__ int variable[4] = {1, 2, 3, 4};
__constant__ int constant[4] = {5, 6, 7, 8};
__managed__ int managed[2] = {9, 10};
__global__ void copy_constant(int *to) { to[threadIdx.x] = constant[threadIdx.x]; }
__global__ void add_one(int *at) { at[threadIdx.x] += 1; }

PROMISE(memory_is_aligned_for_every_type)
{
    for (size_t bytes : {1, 3, 64, 1000, 1 << 20})
        SAME(reinterpret_cast<uintptr_t>(device<char>(bytes)) % 256, 0);
}

PROMISE(no_bytes_give_a_null_pointer)
{
    void *memory = &memory;
    OK(cudaMalloc(&memory, 0));
    SAME(memory, nullptr);
}

PROMISE(more_than_there_is_fails_and_the_device_goes_on)
{
    void *memory = nullptr;
    IS(cudaMalloc(&memory, size_t(1) << 60), cudaErrorMemoryAllocation);
    IS(cudaGetLastError(), cudaErrorMemoryAllocation);
    device<int>(16);
    OK(cudaGetLastError());
}

PROMISE(freeing_null_does_nothing)
{
    OK(cudaFree(nullptr));
    OK(cudaFreeHost(nullptr));
    OK(cudaFreeArray(nullptr));
    OK(cudaFreeMipmappedArray(nullptr));
}

PROMISE(memory_is_freed_once)
{
    int *memory = device<int>(16);
    OK(cudaFree(memory));
    IS(cudaFree(memory), cudaErrorInvalidValue);
    int local = 0;
    IS(cudaFree(&local), cudaErrorInvalidValue);
    IS(cudaFree(device<int>(16) + 1), cudaErrorInvalidValue);
}

PROMISE(free_memory_shrinks_and_comes_back)
{
    size_t before = 0, during = 0, total = 0;
    OK(cudaMemGetInfo(&before, &total));
    TRUE(before <= total);
    TRUE(total > 0);
    char *memory = device<char>(64 << 20);
    OK(cudaMemGetInfo(&during, &total));
    TRUE(during < before);
    OK(cudaFree(memory));
    size_t after = 0;
    OK(cudaMemGetInfo(&after, &total));
    TRUE(after > during);
}

PROMISE(copies_of_every_kind_arrive)
{
    const std::vector<int> sent = numbers(1000);
    std::vector<int> got(1000), host(1000);
    int *first = device<int>(1000), *second = device<int>(1000);
    const size_t bytes = 1000 * sizeof(int);
    OK(cudaMemcpy(host.data(), sent.data(), bytes, cudaMemcpyHostToHost));
    OK(cudaMemcpy(first, host.data(), bytes, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(second, first, bytes, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(got.data(), second, bytes, cudaMemcpyDeviceToHost));
    TRUE(got == sent);
}

PROMISE(default_copies_infer_the_direction)
{
    const std::vector<int> sent = numbers(100);
    std::vector<int> got(100), host(100);
    int *first = device<int>(100), *second = device<int>(100);
    OK(cudaMemcpy(host.data(), sent.data(), 400, cudaMemcpyDefault));
    OK(cudaMemcpy(first, host.data(), 400, cudaMemcpyDefault));
    OK(cudaMemcpy(second, first, 400, cudaMemcpyDefault));
    OK(cudaMemcpy(got.data(), second, 400, cudaMemcpyDefault));
    TRUE(got == sent);
}

PROMISE(directions_that_do_not_exist_are_refused)
{
    int a = 0, b = 0;
    IS(cudaMemcpy(&a, &b, 4, static_cast<cudaMemcpyKind>(77)), cudaErrorInvalidMemcpyDirection);
    IS(cudaMemcpyAsync(&a, &b, 4, static_cast<cudaMemcpyKind>(77), nullptr), cudaErrorInvalidMemcpyDirection);
    int *memory = device<int>(16);
    IS(cudaMemcpy2D(memory, 8, memory, 8, 4, 1, static_cast<cudaMemcpyKind>(77)), cudaErrorInvalidMemcpyDirection);
}

PROMISE(copies_of_nothing_succeed)
{
    int local = 0;
    OK(cudaMemcpy(device<int>(4), &local, 0, cudaMemcpyHostToDevice));
    OK(cudaMemcpyAsync(device<int>(4), &local, 0, cudaMemcpyHostToDevice, nullptr));
    OK(cudaMemset(device<int>(4), 0, 0));
}

PROMISE(a_copy_to_the_host_has_arrived_when_it_returns)
{
    int *memory = device<int>(32);
    OK(cudaMemset(memory, 0, 128));
    add_one<<<1, 32>>>(memory);
    int got[32];
    OK(cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost));
    for (int one : got)
        SAME(one, 1);
}

PROMISE(pageable_memory_may_change_after_an_asynchronous_copy_was_queued_from_it)
{
    // Synchronization behaviour: pageable memory is staged before the call returns.
    int *memory = device<int>(256);
    std::vector<int> host = numbers(256);
    const std::vector<int> sent = host;
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMemcpyAsync(memory, host.data(), 1024, cudaMemcpyHostToDevice, stream));
    std::fill(host.begin(), host.end(), -1);
    OK(cudaStreamSynchronize(stream));
    std::vector<int> got(256);
    OK(cudaMemcpy(got.data(), memory, 1024, cudaMemcpyDeviceToHost));
    TRUE(got == sent);
}

PROMISE(fills_set_bytes)
{
    unsigned char *memory = device<unsigned char>(100);
    OK(cudaMemset(memory, 0, 100));
    OK(cudaMemset(memory + 10, 0x1ab, 50));
    unsigned char got[100];
    OK(cudaMemcpy(got, memory, 100, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 100; i++)
        SAME(int(got[i]), i >= 10 && i < 60 ? 0xab : 0);
}

PROMISE(fills_of_rows_leave_the_rest_of_the_pitch)
{
    unsigned char *memory = device<unsigned char>(64 * 4);
    OK(cudaMemset(memory, 1, 64 * 4));
    OK(cudaMemset2D(memory, 64, 7, 20, 3));
    unsigned char got[64 * 4];
    OK(cudaMemcpy(got, memory, sizeof got, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 64; x++)
            SAME(int(got[y * 64 + x]), y < 3 && x < 20 ? 7 : 1);
}

PROMISE(fills_of_boxes_leave_the_rest_of_the_slices)
{
    cudaPitchedPtr memory;
    OK(cudaMalloc3D(&memory, make_cudaExtent(10, 4, 3)));
    OK(cudaMemset(memory.ptr, 1, memory.pitch * 4 * 3));
    OK(cudaMemset3D(memory, 9, make_cudaExtent(5, 2, 2)));
    std::vector<unsigned char> got(memory.pitch * 4 * 3);
    OK(cudaMemcpy(got.data(), memory.ptr, got.size(), cudaMemcpyDeviceToHost));
    for (int z = 0; z < 3; z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 10; x++)
                SAME(int(got[(z * 4 + y) * memory.pitch + x]), z < 2 && y < 2 && x < 5 ? 9 : 1);
}

PROMISE(pitched_rows_are_long_enough_and_aligned)
{
    void *memory = nullptr;
    size_t pitch = 0;
    OK(cudaMallocPitch(&memory, &pitch, 100, 10));
    TRUE(pitch >= 100);
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    SAME(pitch % p.texturePitchAlignment, 0);
    OK(cudaFree(memory));
    IS(cudaMallocPitch(nullptr, &pitch, 100, 10), cudaErrorInvalidValue);
}

PROMISE(three_dimensional_memory_describes_itself)
{
    cudaPitchedPtr memory;
    OK(cudaMalloc3D(&memory, make_cudaExtent(100, 6, 5)));
    TRUE(memory.ptr != nullptr);
    TRUE(memory.pitch >= 100);
    SAME(memory.xsize, 100);
    SAME(memory.ysize, 6);
}

PROMISE(rows_are_copied_between_pitches)
{
    void *memory = nullptr;
    size_t pitch = 0;
    OK(cudaMallocPitch(&memory, &pitch, 5 * sizeof(int), 4));
    const std::vector<int> sent = numbers(20);
    std::vector<int> got(4 * 7, -1);
    OK(cudaMemcpy2D(memory, pitch, sent.data(), 20, 20, 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(got.data(), 28, memory, pitch, 20, 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 7; x++)
            SAME(got[y * 7 + x], x < 5 ? sent[y * 5 + x] : -1);
}

PROMISE(rows_wider_than_their_pitch_are_refused)
{
    char *memory = device<char>(256);
    char host[256];
    IS(cudaMemcpy2D(memory, 16, host, 32, 32, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    IS(cudaMemcpy2D(memory, 32, host, 16, 32, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
    // A single row needs no pitch.
    OK(cudaMemcpy2D(memory, 8, host, 8, 32, 1, cudaMemcpyHostToDevice));
}

PROMISE(boxes_are_copied)
{
    const int W = 6, H = 5, D = 4;
    const std::vector<int> sent = numbers(W * H * D);
    cudaPitchedPtr memory;
    OK(cudaMalloc3D(&memory, make_cudaExtent(W * sizeof(int), H, D)));
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(const_cast<int *>(sent.data()), W * sizeof(int), W, H);
    in.dstPtr = memory;
    in.extent = make_cudaExtent(W * sizeof(int), H, D);
    in.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&in));
    std::vector<int> got(2 * 3 * 2, -1);
    cudaMemcpy3DParms out = {};
    out.srcPtr = memory;
    out.srcPos = make_cudaPos(sizeof(int), 2, 1);
    out.dstPtr = make_cudaPitchedPtr(got.data(), 2 * sizeof(int), 2, 3);
    out.extent = make_cudaExtent(2 * sizeof(int), 3, 2);
    out.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&out));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 2; x++)
                SAME(got[(z * 3 + y) * 2 + x], sent[((z + 1) * H + y + 2) * W + x + 1]);
}

PROMISE(pinned_memory_has_the_flags_it_was_made_with)
{
    int *memory = nullptr;
    unsigned flags = 0;
    OK(cudaHostAlloc(&memory, 64, cudaHostAllocMapped | cudaHostAllocPortable));
    OK(cudaHostGetFlags(&flags, memory));
    SAME(flags & (cudaHostAllocMapped | cudaHostAllocPortable), cudaHostAllocMapped | cudaHostAllocPortable);
    memory[0] = 4;
    OK(cudaFreeHost(memory));
    IS(cudaHostAlloc(&memory, 64, 0x1000), cudaErrorInvalidValue);
    int local = 0;
    IS(cudaHostGetFlags(&flags, &local), cudaErrorInvalidValue);
}

PROMISE(pinned_memory_is_seen_by_the_device)
{
    int *memory = nullptr, *there = nullptr;
    OK(cudaHostAlloc(&memory, 128, cudaHostAllocMapped));
    std::memset(memory, 0, 128);
    OK(cudaHostGetDevicePointer(&there, memory, 0));
    add_one<<<1, 32>>>(there);
    OK(cudaDeviceSynchronize());
    SAME(memory[31], 1);
    IS(cudaHostGetDevicePointer(&there, memory, 1), cudaErrorInvalidValue);
    OK(cudaFreeHost(memory));
}

PROMISE(host_memory_can_be_registered_once)
{
    static char pages[3 * 4096];
    char *memory = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(pages) + 4095) / 4096 * 4096);
    OK(cudaHostRegister(memory, 4096, cudaHostRegisterMapped));
    IS(cudaHostRegister(memory, 4096, cudaHostRegisterMapped), cudaErrorHostMemoryAlreadyRegistered);
    void *there = nullptr;
    OK(cudaHostGetDevicePointer(&there, memory, 0));
    TRUE(there != nullptr);
    OK(cudaHostUnregister(memory));
    IS(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);
    IS(cudaHostRegister(nullptr, 4096, 0), cudaErrorInvalidValue);
    IS(cudaHostRegister(memory, 0, 0), cudaErrorInvalidValue);
}

PROMISE(managed_memory_is_one_for_host_and_device)
{
    int *memory = nullptr;
    OK(cudaMallocManaged(&memory, 128));
    for (int i = 0; i < 32; i++)
        memory[i] = i;
    add_one<<<1, 32>>>(memory);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++)
        SAME(memory[i], i + 1);
    OK(cudaFree(memory));
}

PROMISE(managed_memory_refuses_no_bytes_and_unknown_flags)
{
    int *memory = nullptr;
    IS(cudaMallocManaged(&memory, 64, 0), cudaErrorInvalidValue);
    IS(cudaMallocManaged(&memory, 64, cudaMemAttachSingle), cudaErrorInvalidValue);
}

PROMISE(managed_memory_takes_advice_and_tells_it)
{
    int has = 0;
    OK(cudaDeviceGetAttribute(&has, cudaDevAttrConcurrentManagedAccess, 0));
    if (!has)
        SKIP("no concurrent managed access");
    char *memory = nullptr;
    OK(cudaMallocManaged(&memory, 1 << 16));
    const cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    OK(cudaMemAdvise(memory, 1 << 16, cudaMemAdviseSetReadMostly, here));
    int value = -1;
    OK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, 1 << 16));
    SAME(value, 1);
    OK(cudaMemAdvise(memory, 1 << 16, cudaMemAdviseUnsetReadMostly, here));
    OK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, 1 << 16));
    SAME(value, 0);
    OK(cudaMemAdvise(memory, 1 << 16, cudaMemAdviseSetPreferredLocation, here));
    OK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributePreferredLocation, memory, 1 << 16));
    SAME(value, 0);
    OK(cudaMemAdvise(memory, 1 << 16, cudaMemAdviseUnsetPreferredLocation, here));
    OK(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributePreferredLocation, memory, 1 << 16));
    SAME(value, cudaInvalidDeviceId);
    OK(cudaMemAdvise(memory, 1 << 16, cudaMemAdviseSetAccessedBy, here));
    int list[2] = {-5, -5};
    OK(cudaMemRangeGetAttribute(list, sizeof list, cudaMemRangeAttributeAccessedBy, memory, 1 << 16));
    SAME(list[0], 0);
    SAME(list[1], cudaInvalidDeviceId);
}

PROMISE(managed_memory_is_prefetched)
{
    int has = 0;
    OK(cudaDeviceGetAttribute(&has, cudaDevAttrConcurrentManagedAccess, 0));
    if (!has)
        SKIP("no concurrent managed access");
    char *memory = nullptr;
    OK(cudaMallocManaged(&memory, 1 << 16));
    memory[5] = 6;
    OK(cudaMemPrefetchAsync(memory, 1 << 16, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, nullptr));
    OK(cudaDeviceSynchronize());
    int place = -9;
    OK(cudaMemRangeGetAttribute(&place, sizeof place, cudaMemRangeAttributeLastPrefetchLocation, memory, 1 << 16));
    SAME(place, 0);
    OK(cudaMemPrefetchAsync(memory, 1 << 16, cudaMemLocation{cudaMemLocationTypeHost, 0}, 0, nullptr));
    OK(cudaDeviceSynchronize());
    OK(cudaMemRangeGetAttribute(&place, sizeof place, cudaMemRangeAttributeLastPrefetchLocation, memory, 1 << 16));
    SAME(place, cudaCpuDeviceId);
    SAME(int(memory[5]), 6);
    char *plain = device<char>(64);
    IS(cudaMemPrefetchAsync(plain, 64, cudaMemLocation{cudaMemLocationTypeDevice, 0}, 0, nullptr),
       cudaErrorInvalidValue);
}

PROMISE(symbols_have_an_address_and_a_size)
{
    void *at = nullptr;
    size_t bytes = 0;
    OK(cudaGetSymbolAddress(&at, variable));
    TRUE(at != nullptr);
    OK(cudaGetSymbolSize(&bytes, variable));
    SAME(bytes, 16);
    OK(cudaGetSymbolSize(&bytes, constant));
    SAME(bytes, 16);
    int got[4];
    OK(cudaMemcpy(got, at, 16, cudaMemcpyDeviceToHost));
    SAME(got[3], 4);
}

PROMISE(symbols_are_copied_from_and_to)
{
    int got[2] = {};
    OK(cudaMemcpyFromSymbol(got, variable, 8, 4));
    SAME(got[0], 2);
    SAME(got[1], 3);
    const int sent[2] = {20, 30};
    OK(cudaMemcpyToSymbol(constant, sent, 8, 8));
    int *memory = device<int>(4);
    copy_constant<<<1, 4>>>(memory);
    int all[4];
    OK(cudaMemcpy(all, memory, 16, cudaMemcpyDeviceToHost));
    SAME(all[0], 5);
    SAME(all[1], 6);
    SAME(all[2], 20);
    SAME(all[3], 30);
    OK(cudaMemcpyToSymbolAsync(variable, memory, 8, 0, cudaMemcpyDeviceToDevice, nullptr));
    OK(cudaMemcpyFromSymbolAsync(got, variable, 8, 0, cudaMemcpyDeviceToHost, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(got[0], 5);
    SAME(got[1], 6);
}

PROMISE(what_is_no_symbol_is_refused)
{
    static int nothing;
    void *at = nullptr;
    size_t bytes = 0;
    int local = 0;
    IS(cudaGetSymbolAddress(&at, static_cast<const void *>(&nothing)), cudaErrorInvalidSymbol);
    IS(cudaGetSymbolSize(&bytes, static_cast<const void *>(&nothing)), cudaErrorInvalidSymbol);
    IS(cudaMemcpyToSymbol(static_cast<const void *>(&nothing), &local, 4), cudaErrorInvalidSymbol);
    IS(cudaMemcpyToSymbol(variable, &local, 4, 0, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
}

PROMISE(copies_beyond_a_symbol_are_refused)
{
    int many[8] = {};
    IS(cudaMemcpyToSymbol(variable, many, 32), cudaErrorInvalidValue);
    IS(cudaMemcpyFromSymbol(many, variable, 8, 12), cudaErrorInvalidValue);
}

PROMISE(managed_variables_are_one_for_host_and_device)
{
    OK(cudaFree(nullptr));
    SAME(managed[0], 9);
    int *at = nullptr;
    OK(cudaGetSymbolAddress(reinterpret_cast<void **>(&at), managed));
    add_one<<<1, 2>>>(at);
    OK(cudaDeviceSynchronize());
    SAME(managed[0], 10);
    SAME(managed[1], 11);
}

PROMISE(copies_beyond_an_allocation_are_refused)
{
    char host[64] = {};
    char *memory = device<char>(64);
    IS(cudaMemcpy(memory, host, size_t(1) << 40, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

PROMISE(null_places_are_refused)
{
    int local = 0;
    IS(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    IS(cudaMemset(nullptr, 0, 16), cudaErrorInvalidValue);
    IS(cudaMemcpy(nullptr, &local, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    IS(cudaMallocManaged(static_cast<void **>(nullptr), 16), cudaErrorInvalidValue);
    IS(cudaHostAlloc(static_cast<void **>(nullptr), 16, 0), cudaErrorInvalidValue);
}

// No text says it; a GPU's pages come to a process as zeros, and programs count on it.
PROMISE(fresh_memory_is_zero_whatever_the_programs_heap_held)
{
    const auto use_the_heap = [](size_t bytes) {
        std::vector<std::vector<unsigned char>> blocks(32, std::vector<unsigned char>(bytes, 0xaa));
    };
    const auto is_zero = [](const void *memory, size_t bytes) {
        std::vector<unsigned char> found(bytes, 1);
        OK(cudaMemcpy(found.data(), memory, bytes, cudaMemcpyDefault));
        SAME(size_t(std::count(found.begin(), found.end(), 0)), bytes);
    };
    for (size_t bytes : {1, 100, 5000, 100000, 2000000}) {
        void *memory = nullptr;
        use_the_heap(bytes);
        OK(cudaMalloc(&memory, bytes));
        is_zero(memory, bytes);
        OK(cudaMallocManaged(&memory, bytes));
        is_zero(memory, bytes);
        OK(cudaHostAlloc(&memory, bytes, cudaHostAllocMapped));
        is_zero(memory, bytes);
        OK(cudaMallocAsync(&memory, bytes, nullptr));
        OK(cudaStreamSynchronize(nullptr));
        is_zero(memory, bytes);
        size_t pitch = 0;
        OK(cudaMallocPitch(&memory, &pitch, bytes, 2));
        is_zero(memory, 2 * pitch);
    }
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    cudaArray_t array = nullptr;
    use_the_heap(64 * 32 * 4);
    OK(cudaMallocArray(&array, &format, 64, 32));
    std::vector<unsigned char> found(64 * 32 * 4, 1);
    OK(cudaMemcpy2DFromArray(found.data(), 256, array, 0, 0, 256, 32, cudaMemcpyDeviceToHost));
    SAME(size_t(std::count(found.begin(), found.end(), 0)), found.size());
}
