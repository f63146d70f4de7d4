// Kernels that ask what other kernels are like. What the host is told of the same kernels is what they are to be told, and where
// shared memory is what bounds the blocks of a multiprocessor, its size is. Linked with libcudadevrt.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        const cudaError_t error = (call);                                                      \
        if (error != cudaSuccess) {                                                            \
            std::printf("FAILED line %d: %s\n", __LINE__, cudaGetErrorName(error));            \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

__global__ void plain(int *to)
{
    to[threadIdx.x] = threadIdx.x;
}

__global__ void __launch_bounds__(128) bounded(int *to)
{
    __shared__ int all[1024];
    all[threadIdx.x] = to[threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = all[127 - threadIdx.x];
}

const int SIZES[] = {32, 96, 128, 256, 1024, 2048};
const size_t SHARED[] = {0, 1000, 16000, 1 << 20};
const int N_SIZES = 6, N_SHARED = 4;

struct Answers {
    cudaError_t errors[2];
    cudaFuncAttributes attributes[2];
    cudaError_t asked[2][N_SIZES][N_SHARED];
    int blocks[2][N_SIZES][N_SHARED];
    cudaError_t wrong[4], last;
};

__global__ void ask(Answers *to)
{
    const int sizes[] = {32, 96, 128, 256, 1024, 2048};
    const size_t shared[] = {0, 1000, 16000, 1 << 20};
    to->errors[0] = cudaFuncGetAttributes(&to->attributes[0], plain);
    to->errors[1] = cudaFuncGetAttributes(&to->attributes[1], bounded);
    for (int size = 0; size < N_SIZES; size++)
        for (int nth = 0; nth < N_SHARED; nth++) {
            to->asked[0][size][nth] =
                cudaOccupancyMaxActiveBlocksPerMultiprocessor(&to->blocks[0][size][nth], plain, sizes[size], shared[nth]);
            to->asked[1][size][nth] = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                &to->blocks[1][size][nth], bounded, sizes[size], shared[nth], cudaOccupancyDisableCachingOverride);
        }
    int blocks;
    to->wrong[0] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0);
    to->wrong[1] = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, plain, 32, 0, 2);
    to->wrong[2] = cudaOccupancyMaxActiveBlocksPerMultiprocessor((int *)nullptr, plain, 32, 0);
    to->wrong[3] = cudaFuncGetAttributes((cudaFuncAttributes *)nullptr, plain);
    to->last = cudaGetLastError();
}

static int failed;

static void expect(const char *what, long long got, long long expected)
{
    if (got != expected) {
        std::printf("FAILED %s: %lld, expected %lld\n", what, got, expected);
        failed = 1;
    }
}

template <typename Kernel>
static void compare(const Answers *answers, int nth, Kernel kernel)
{
    cudaFuncAttributes host;
    CHECK(cudaFuncGetAttributes(&host, kernel));
    const cudaFuncAttributes &device = answers->attributes[nth];
    expect("the error", answers->errors[nth], cudaSuccess);
    expect("bytes of shared memory", device.sharedSizeBytes, host.sharedSizeBytes);
    expect("bytes of local memory", device.localSizeBytes, host.localSizeBytes);
    expect("threads", device.maxThreadsPerBlock, host.maxThreadsPerBlock);
    expect("version", device.binaryVersion, host.binaryVersion);
    for (int size = 0; size < N_SIZES; size++)
        for (int shared = 0; shared < N_SHARED; shared++) {
            int blocks;
            CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, SIZES[size], SHARED[shared]));
            expect("the answer", answers->asked[nth][size][shared], cudaSuccess);
            expect("blocks", answers->blocks[nth][size][shared], blocks);
        }
}

int main()
{
    Answers *answers;
    CHECK(cudaMallocManaged(&answers, sizeof(Answers)));
    for (int turn = 0; turn < 2; turn++) {
        ask<<<1, 1>>>(answers);
        CHECK(cudaDeviceSynchronize());
        compare(answers, 0, plain);
        compare(answers, 1, bounded);
        for (const cudaError_t wrong : answers->wrong)
            expect("what is wrong", wrong, cudaErrorInvalidValue);
        expect("the last error", answers->last, cudaErrorInvalidValue);
        expect("threads of a bounded kernel", answers->attributes[1].maxThreadsPerBlock <= 128, 1);
        expect("its variables", answers->attributes[1].sharedSizeBytes, 4096);
        expect("more threads than it has", answers->blocks[1][3][0], 0);
    }
    CHECK(cudaFree(answers));
    std::printf(failed ? "FAILED\n" : "PASSED\n");
    return failed;
}
