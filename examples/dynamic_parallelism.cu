// Kernels that launch kernels, linked with libcudadevrt: what a grid has launched, copied and filled is there when the host's wait
// for that grid ends. Where a device cannot do it, those kernels alone answer cudaErrorCdpNotSupported.
#define __CDPRT_SUPPRESS_SYNC_DEPRECATION_WARNING
#include "example.h"

__global__ void add(int *out, int value)
{
    out[threadIdx.x] += value + threadIdx.x;
}

// Each thread launches for its own numbers; the child sees what its parent has written.
__global__ void parents(int *out)
{
    int *own = out + 32 * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int i = 0; i < 32; i++)
        own[i] = i;
    add<<<1, 32>>>(own, 100);
    // In the block's own stream: after the first.
    add<<<1, 32>>>(own, 1000);
}

// The sum of a binary tree's leaves, a launch for every node.
__global__ void tree(unsigned *sum, unsigned from, unsigned to)
{
    if (to - from <= 4) {
        for (unsigned i = from + threadIdx.x; i < to; i += 2)
            atomicAdd(sum, i * i);
        return;
    }
    const unsigned middle = from + (to - from) / 2;
    if (threadIdx.x == 0)
        tree<<<1, 2>>>(sum, from, middle);
    else
        tree<<<1, 2>>>(sum, middle, to);
}

__global__ void count_one(unsigned *count)
{
    atomicAdd(count, 1u);
}

// More than may be pending at once, none of which waits for the grid.
__global__ void many(unsigned *count, int launches, unsigned *errors)
{
    for (int i = 0; i < launches; i++) {
        count_one<<<1, 1>>>(count);
        if (cudaGetLastError() != cudaSuccess)
            atomicAdd(errors, 1u);
    }
}

// A box of 3 x 2 x 2 bytes: filled within a memory of 8 x 4 x 3, then copied to another place there.
__global__ void boxes(unsigned char *memory, int *answers)
{
    const cudaExtent extent = {3, 2, 2};
    const cudaPitchedPtr whole = {memory, 8, 8, 4}, second_row = {memory + 8 + 1, 8, 7, 4};
    answers[0] = cudaMemset3DAsync(second_row, 9, extent, nullptr);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = copy.dstPtr = whole;
    copy.srcPos = {1, 1, 0};
    copy.dstPos = {5, 2, 1};
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToDevice;
    answers[1] = cudaMemcpy3DAsync(&copy, nullptr);
}

// 0 where the answers are what the programming guide says, else the line.
__device__ int answers(int *scratch)
{
#define EXPECT(condition) \
    if (!(condition))     \
        return __LINE__
    cudaStream_t stream = nullptr, other = nullptr;
    cudaEvent_t timed = nullptr;
    EXPECT(cudaEventCreateWithFlags(&timed, cudaEventDefault) == cudaErrorInvalidValue);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(stream != other);
    cudaEvent_t event = nullptr;
    EXPECT(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    EXPECT(cudaMemsetAsync(scratch, 0, 64 * sizeof(int), stream) == cudaSuccess);
    add<<<1, 32, 0, stream>>>(scratch, 7);
    EXPECT(cudaGetLastError() == cudaSuccess);
    EXPECT(cudaEventRecord(event, stream) == cudaSuccess);
    EXPECT(cudaStreamWaitEvent(other, event, 0) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(scratch + 32, scratch, 32 * sizeof(int), cudaMemcpyDeviceToDevice, other) == cudaSuccess);
    EXPECT(cudaEventDestroy(event) == cudaSuccess);
    EXPECT(cudaStreamDestroy(stream) == cudaSuccess && cudaStreamDestroy(other) == cudaSuccess);
    // No such block.
    add<<<1, 2000>>>(scratch, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    add<<<0, 32>>>(scratch, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
    int devices = 0, device = -1, threads = 0;
    EXPECT(cudaGetDeviceCount(&devices) == cudaSuccess && devices >= 1);
    EXPECT(cudaGetDevice(&device) == cudaSuccess && device == 0);
    EXPECT(cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerBlock, 0) == cudaSuccess && threads == 1024);
    // The device runtime's own number, which is no toolkit's.
    int version = 0;
    EXPECT(cudaRuntimeGetVersion(&version) == cudaSuccess && version == 6000);
    EXPECT(cudaRuntimeGetVersion(nullptr) == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue);
    const char *name = cudaGetErrorName(cudaErrorInvalidValue);
    EXPECT(name[0] == 'c' && name[4] == 'E' && name[9] == 'I');
    return 0;
}

__global__ void asking(int *scratch, int *line)
{
    *line = answers(scratch);
}

#if CUDART_VERSION >= 12000
__global__ void append(unsigned *list, unsigned value)
{
    list[1 + list[0]++] = value;
}

// What goes to the tail stream comes after the grid and all its children; what such a grid itself appends, before the next of them.
__global__ void append_and_go_on(unsigned *list, unsigned value)
{
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(list, value + 1);
    append<<<1, 1, 0, cudaStreamFireAndForget>>>(list, value);
}

__global__ void tails(unsigned *list)
{
    append_and_go_on<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 20);
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 30);
    append_and_go_on<<<1, 1>>>(list, 10);
}

// All in the tail stream, where nothing begins before the grid has ended: how many launches succeeded, and what the first other said.
__global__ void many_tails(unsigned *count, int launches, int *answers)
{
    answers[0] = answers[1] = 0;
    for (int i = 0; i < launches; i++) {
        count_one<<<1, 1, 0, cudaStreamTailLaunch>>>(count);
        const cudaError_t error = cudaGetLastError();
        if (error == cudaSuccess)
            answers[0]++;
        else if (answers[1] == 0)
            answers[1] = error;
    }
}

// Itself once more, when it has ended: only one of them is ever there.
__global__ void again(unsigned *count, unsigned most)
{
    if (++*count < most)
        again<<<1, 1, 0, cudaStreamTailLaunch>>>(count, most);
}
#endif

#if CUDART_VERSION < 12000
// CUDA 11: a grid waits for what its block has launched, and reads it. As deep as the limit says, whose default is two.
__global__ void waiting(int *numbers, int *answers, int depth)
{
    add<<<1, 32>>>(numbers, 100);
    answers[2 * depth] = cudaDeviceSynchronize();
    int sum = 0;
    for (int i = 0; i < 32; i++)
        sum += numbers[i];
    answers[2 * depth + 1] = sum;
    if (depth == 2)
        return;
    waiting<<<1, 1>>>(numbers, answers, depth + 1);
}
#endif

// Deeper than any device goes: each grid waits for the one in it, and no more than 2048 can.
__global__ void deeper(int *depth)
{
    ++*depth;
    deeper<<<1, 1>>>(depth);
}

// cudaErrorCdpNotSupported, which CUDA 11's headers do not name yet.
static const auto not_supported = static_cast<cudaError_t>(811);

// Whether the device can do it; what is launched is done then.
template <typename Launch>
static bool works(const char *what, Launch launch)
{
    launch();
    const cudaError_t error = cudaGetLastError();
    if (error == not_supported)
        return false;
    check(error, what, __FILE__, __LINE__);
    CHECK(cudaDeviceSynchronize());
    return true;
}

template <typename T>
static std::vector<T> fetched(const T *device, size_t count)
{
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

int main()
{
    const int PARENTS = 6 * 8;
    int *device;
    CHECK(cudaMalloc(&device, 32 * PARENTS * sizeof(int)));
    unsigned *words;
    CHECK(cudaMalloc(&words, 16 * sizeof(unsigned)));
    const bool can = works("parents", [&] { parents<<<6, 8>>>(device); });
    if (can) {
        std::vector<int> expected(32 * PARENTS);
        for (int i = 0; i < 32 * PARENTS; i++)
            expected[i] = 1100 + 3 * (i % 32);
        expect_equal("parents", fetched(device, expected.size()), expected);

        CHECK(cudaMemset(words, 0, 16 * sizeof(unsigned)));
        works("tree", [&] { tree<<<1, 2>>>(words, 0, 1000); });
        unsigned sum = 0;
        for (unsigned i = 0; i < 1000; i++)
            sum += i * i;
        expect_equal("tree", fetched(words, 1), {sum});

        works("asking", [&] { asking<<<1, 1>>>(device, device + 100); });
        expect_equal("the line of a wrong answer", fetched(device + 100, 1), {0});
        std::vector<int> scratch(64);
        for (int i = 0; i < 64; i++)
            scratch[i] = 7 + i % 32;
        expect_equal("streams", fetched(device, 64), scratch);
        unsigned char *memory;
        CHECK(cudaMalloc(&memory, 8 * 4 * 3));
        CHECK(cudaMemset(memory, 0, 8 * 4 * 3));
        works("boxes", [&] { boxes<<<1, 1>>>(memory, device); });
        expect_equal("answers for boxes", fetched(device, 2), {0, 0});
        std::vector<unsigned char> boxed(8 * 4 * 3);
        for (int z = 0; z < 3; z++)
            for (int y = 0; y < 4; y++)
                for (int x = 0; x < 8; x++) {
                    const bool filled = x >= 1 && x < 4 && y >= 1 && y < 3 && z < 2;
                    const bool copied = x >= 5 && y >= 2 && z >= 1;
                    boxed[8 * (4 * z + y) + x] = filled || copied ? 9 : 0;
                }
        expect_equal("boxes", fetched(memory, boxed.size()), boxed);
        CHECK(cudaFree(memory));
#if CUDART_VERSION >= 12000
        CHECK(cudaMemset(words, 0, 16 * sizeof(unsigned)));
        works("tails", [&] { tails<<<1, 1>>>(words); });
        const std::vector<unsigned> list = {5, 10, 11, 20, 21, 30};
        expect_equal("tails", fetched(words, list.size()), list);

        size_t pending = 0;
        CHECK(cudaDeviceGetLimit(&pending, cudaLimitDevRuntimePendingLaunchCount));
        if (pending != 2048)
            fail("%zu launches may be pending", pending);
        // 2048 of 2100, and all where the limit is 4096.
        for (const int most : {2048, 2100}) {
            CHECK(cudaMemset(words, 0, 16 * sizeof(unsigned)));
            works("many_tails", [&] { many_tails<<<1, 1>>>(words, 2100, device); });
            expect_equal("launches into the tail", fetched(device, 2), {most, most == 2100 ? 0 : cudaErrorLaunchPendingCountExceeded});
            expect_equal("tails that ran", fetched(words, 1), {static_cast<unsigned>(most)});
            CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
        }
        CHECK(cudaDeviceGetLimit(&pending, cudaLimitDevRuntimePendingLaunchCount));
        if (pending != 4096)
            fail("%zu launches may be pending after 4096 were asked for", pending);
        CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048));
        CHECK(cudaMemset(words, 0, 16 * sizeof(unsigned)));
        works("again", [&] { again<<<1, 1>>>(words, 2500); });
        expect_equal("again", fetched(words, 1), {2500u});
#endif
        CHECK(cudaMemset(words, 0, 16 * sizeof(unsigned)));
        works("many", [&] { many<<<2, 1>>>(words, 2500, words + 1); });
        expect_equal("many", fetched(words, 2), {5000u, 0u});
#if CUDART_VERSION < 12000
        CHECK(cudaMemset(device, 0, 128 * sizeof(int)));
        works("waiting", [&] { waiting<<<1, 1>>>(device, device + 64, 0); });
        const std::vector<int> waited = fetched(device + 64, 6);
        // 0 to 31 and 32 times 100, once more at each depth; the third may not wait.
        const int once = 32 * 100 + 31 * 32 / 2;
        expect_equal("waiting", std::vector<int>(waited.begin(), waited.begin() + 5), {0, once, 0, 2 * once, cudaErrorSyncDepthExceeded});
        expect_equal("waiting, in the end", fetched(device, 1), {300});
        // CUDA 11's device runtime, and with it the limit, end before compute capability 9.0.
        int major = 0;
        CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
        const cudaError_t raised = cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 3);
        if (raised != (major < 9 ? cudaSuccess : cudaErrorUnsupportedLimit))
            fail("raising the limit: %d", static_cast<int>(raised));
        (void)cudaGetLastError();
        if (raised == cudaSuccess) {
            CHECK(cudaMemset(device, 0, 128 * sizeof(int)));
            works("waiting", [&] { waiting<<<1, 1>>>(device, device + 64, 0); });
            expect_equal("waiting deeper", fetched(device + 64, 6), {0, once, 0, 2 * once, 0, 3 * once});
        }
#endif
        CHECK(cudaMemset(device, 0, sizeof(int)));
        works("deeper", [&] { deeper<<<1, 1>>>(device); });
        const int depth = fetched(device, 1)[0];
        if (depth < 2 || depth > 2049)
            fail("deeper: %d grids inside of each other", depth);
    }
    // The others are not touched by that.
    CHECK(cudaMemset(device, 0, 32 * sizeof(int)));
    add<<<1, 32>>>(device, 7);
    CHECK(cudaGetLastError());
    std::vector<int> expected(32);
    for (int i = 0; i < 32; i++)
        expected[i] = 7 + i;
    expect_equal("the child by itself", fetched(device, 32), expected);
    CHECK(cudaFree(device));
    CHECK(cudaFree(words));
    std::printf("dynamic_parallelism: %s\n", can ? "yes" : "no");
    return passed();
}
