// Eight host threads over all devices, each with its own device, stream and memory; then copies from one device to the next in the NULL
// stream, which wait for both devices, and both for them.
#include <atomic>
#include <string>
#include <thread>

#include "example.h"

#if DEVICE_CODE
KERNEL scramble(unsigned *data, int n, unsigned salt)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] = data[i] * 1664525u + salt;
}

KERNEL walk(unsigned *data, int n, unsigned salt)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = i;
    for (int step = 0; step < 300; step++)
        x = x * 1664525u + salt;
    data[i] = x;
}
#endif

const int THREADS = 8, ROUNDS = 25, N = 20011;

static void work(int thread, int devices)
{
    const int mine = thread % devices;
    CHECK(cudaSetDevice(mine));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    std::vector<unsigned> data(N), expected(N);
    for (int i = 0; i < N; i++)
        expected[i] = data[i] = static_cast<unsigned>(i * 31 + thread);

    unsigned *device_data;
    CHECK(cudaMalloc(&device_data, N * sizeof(unsigned)));
    CHECK(cudaMemcpyAsync(device_data, data.data(), N * sizeof(unsigned), cudaMemcpyHostToDevice, stream));
    for (int round = 0; round < ROUNDS; round++) {
        const unsigned salt = static_cast<unsigned>(thread * 1000 + round);
        LAUNCH(scramble, (N + 255) / 256, 256, 0, stream)(device_data, N, salt);
        CHECK(cudaGetLastError());
        for (unsigned &value : expected)
            value = value * 1664525u + salt;
        if (round % 8 == thread)
            CHECK(cudaStreamSynchronize(stream));
#if DEVICE_CODE
        // An error is this thread's own: no other thread's cudaGetLastError sees it.
        if (thread == 3) {
            if (cudaMalloc((void **)nullptr, 4) != cudaErrorInvalidValue)
                fail("thread %d: cudaMalloc(NULL) is accepted", thread);
            if (cudaGetLastError() != cudaErrorInvalidValue)
                fail("thread %d: its own last error is gone", thread);
        }
#endif
    }
    CHECK(cudaMemcpyAsync(data.data(), device_data, N * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    int current = -1;
    CHECK(cudaGetDevice(&current));
    expect_equal("the thread's device", current, mine);
    CHECK(cudaFree(device_data));
    CHECK(cudaStreamDestroy(stream));
    expect_equal(("data of thread " + std::to_string(thread)).c_str(), data, expected);
}

// What the second device gets is what the first one's kernel before the copy wrote, not what the one behind it does.
static void copy_between()
{
    unsigned *there, *here;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&there, N * sizeof(unsigned)));
    CHECK(cudaSetDevice(1));
    CHECK(cudaMalloc(&here, N * sizeof(unsigned)));
    for (unsigned round = 0; round < 10; round++) {
        CHECK(cudaSetDevice(0));
        LAUNCH(walk, (N + 255) / 256, 256, 0, 0)(there, N, round);
        CHECK(cudaSetDevice(1));
        if (round % 2)
            CHECK(cudaMemcpy(here, there, N * sizeof(unsigned), cudaMemcpyDeviceToDevice));
        else
            CHECK(cudaMemcpyAsync(here, there, N * sizeof(unsigned), cudaMemcpyDeviceToDevice, 0));
        LAUNCH(scramble, (N + 255) / 256, 256, 0, 0)(here, N, 1);
        CHECK(cudaSetDevice(0));
        CHECK(cudaMemsetAsync(there, 0, N * sizeof(unsigned), 0));
        CHECK(cudaSetDevice(1));
        std::vector<unsigned> found(N), expected(N);
        CHECK(cudaMemcpy(found.data(), here, N * sizeof(unsigned), cudaMemcpyDeviceToHost));
        for (unsigned i = 0; i < N; i++) {
            unsigned x = i;
            for (int step = 0; step < 300; step++)
                x = x * 1664525u + round;
            expected[i] = x * 1664525u + 1;
        }
        expect_equal(("copy " + std::to_string(round) + " between devices").c_str(), found, expected);
    }
    CHECK(cudaFree(here));
    CHECK(cudaSetDevice(0));
    CHECK(cudaFree(there));
}

int main()
{
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices < 1)
        fail("no device");
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; thread++)
        threads.emplace_back(work, thread, devices);
    for (std::thread &thread : threads)
        thread.join();
    if (devices > 1)
        copy_between();
    std::printf("multi_gpu_threads: %d threads, %d launches each\n", THREADS, ROUNDS);
    return passed();
}
