// 64 host threads that allocate, launch, copy and record on streams of their own and on shared ones, for as many seconds
// as the first argument says. Each checks what it computed; at the end nothing is left (CUDAWAY_LEAKS tells).
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

constexpr int THREADS = 64, SHARED = 4, N = 1024;

static std::atomic<bool> is_wrong{false};
static std::atomic<long> rounds{0}, called{0};
static cudaStream_t shared[SHARED];
static cudaEvent_t of_all;

#define OK(call)                                                                               \
    do {                                                                                       \
        const cudaError_t code = (call);                                                       \
        if (code != cudaSuccess) {                                                             \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(code)); \
            std::_Exit(1);                                                                     \
        }                                                                                      \
    } while (0)

__global__ void add(int *at, int n, int value)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        at[i] += value;
}

__global__ void reversed(int *to, const int *from)
{
    __shared__ int block[256];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    block[threadIdx.x] = from[i];
    __syncthreads();
    to[i] = block[blockDim.x - 1 - threadIdx.x];
}

static void check(const int *got, int number, const char *what)
{
    for (int i = 0; i < N; i++) {
        const int block = i / 256, at = 255 - i % 256;
        const int wanted = block * 256 + at + 3 * number;
        if (got[i] != wanted) {
            std::fprintf(stderr, "%s: thread %d, element %d is %d, not %d\n", what, number, i, got[i], wanted);
            is_wrong = true;
            return;
        }
    }
}

// Own memory and own stream; the second kernel and the copy back run on a stream that all share.
static void one_round(int number, int round)
{
    cudaStream_t own = nullptr, other = shared[(number + round) % SHARED];
    const bool is_blocking = round % 3 == 0;
    OK(cudaStreamCreateWithFlags(&own, is_blocking ? cudaStreamDefault : cudaStreamNonBlocking));
    cudaEvent_t done = nullptr;
    OK(cudaEventCreateWithFlags(&done, round % 2 ? cudaEventDisableTiming : cudaEventDefault));
    int *first = nullptr, *second = nullptr, *host = nullptr;
    if (round % 4 == 1) {
        OK(cudaMallocAsync(&first, N * sizeof(int), own));
    } else {
        OK(cudaMalloc(&first, N * sizeof(int)));
    }
    OK(cudaMalloc(&second, N * sizeof(int)));
    OK(cudaMallocHost(&host, N * sizeof(int)));
    for (int i = 0; i < N; i++)
        host[i] = i;
    OK(cudaMemcpyAsync(first, host, N * sizeof(int), cudaMemcpyHostToDevice, own));
    add<<<N / 128, 128, 0, own>>>(first, N, number);
    add<<<N / 128, 128, 0, own>>>(first, N, 2 * number);
    OK(cudaGetLastError());
    OK(cudaLaunchHostFunc(own, [](void *) { called++; }, nullptr));
    OK(cudaEventRecord(done, own));
    OK(cudaStreamWaitEvent(other, done, 0));
    reversed<<<N / 256, 256, 0, other>>>(second, first);
    OK(cudaGetLastError());
    std::vector<int> got(N, -1);
    OK(cudaMemcpyAsync(got.data(), second, N * sizeof(int), cudaMemcpyDeviceToHost, other));
    OK(cudaEventRecord(of_all, other));
    OK(cudaStreamSynchronize(other));
    check(got.data(), number, "shared stream");
    if (round % 5 == 0) {
        OK(cudaMemcpy(got.data(), second, N * sizeof(int), cudaMemcpyDefault));
        check(got.data(), number, "default stream");
    }
    const cudaError_t state = cudaEventQuery(of_all);
    if (state != cudaErrorNotReady)
        OK(state);
    cudaGetLastError();
    if (round % 4 == 1) {
        OK(cudaFreeAsync(first, own));
    }
    OK(cudaStreamDestroy(own));
    OK(cudaEventDestroy(done));
    if (round % 4 != 1) {
        OK(cudaFree(first));
    }
    OK(cudaFree(second));
    OK(cudaFreeHost(host));
    rounds++;
}

int main(int argc, char **argv)
{
    const double seconds = argc > 1 ? std::atof(argv[1]) : 3;
    for (cudaStream_t &stream : shared)
        OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreate(&of_all));
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    std::vector<std::thread> threads;
    for (int number = 0; number < THREADS; number++)
        threads.emplace_back([=] {
            int round = 0;
            do
                one_round(number, round++);
            while (!is_wrong && std::chrono::steady_clock::now() < end);
        });
    for (std::thread &thread : threads)
        thread.join();
    OK(cudaDeviceSynchronize());
    if (called != rounds)
        is_wrong = true;
    for (cudaStream_t &stream : shared)
        OK(cudaStreamDestroy(stream));
    OK(cudaEventDestroy(of_all));
    std::printf("%s: %ld rounds\n", is_wrong ? "wrong" : "right", rounds.load());
    OK(cudaDeviceReset());
    return is_wrong;
}
