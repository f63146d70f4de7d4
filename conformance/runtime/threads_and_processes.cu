// CUDA Runtime API, "Difference between the driver and runtime APIs" and "Error Handling"; Programming Guide,
// "Initialization" and "Error Checking": what holds per thread, after a fork and when the process ends.
#include "../check.h"

#include <atomic>
#include <thread>

__device__ int variable = 1;
__global__ void store(int *to, int value) { *to = value; }

PROMISE(the_last_error_is_each_threads_own)
{
    SAME(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    cudaError_t other = cudaErrorUnknown;
    std::thread([&] { other = cudaGetLastError(); }).join();
    SAME(other, cudaSuccess);
    std::thread([] { SAME(cudaSetDevice(1000), cudaErrorInvalidDevice); }).join();
    IS(cudaGetLastError(), cudaErrorInvalidValue);
}

PROMISE(many_threads_start_the_runtime_at_once)
{
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int i = 0; i < 32; i++)
        threads.emplace_back([&right, i] {
            int *memory = nullptr, got = 0;
            OK(cudaMalloc(&memory, 64));
            store<<<1, 1>>>(memory, i);
            OK(cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost));
            right += got == i;
            OK(cudaFree(memory));
        });
    for (std::thread &thread : threads)
        thread.join();
    SAME(right.load(), 32);
}

PROMISE(memory_and_streams_outlive_the_thread_that_made_them)
{
    static int *memory = nullptr;
    static cudaStream_t stream = nullptr;
    std::thread([] {
        OK(cudaMalloc(&memory, 64));
        OK(cudaStreamCreate(&stream));
        store<<<1, 1, 0, stream>>>(memory, 9);
    }).join();
    OK(cudaStreamSynchronize(stream));
    int got = 0;
    OK(cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost));
    SAME(got, 9);
}

PROMISE(work_on_a_threads_default_stream_goes_on_after_the_thread)
{
    static std::atomic<int> done{0};
    std::thread([] {
        OK(cudaLaunchHostFunc(
            cudaStreamPerThread,
            [](void *) {
                usleep(60000);
                done = 1;
            },
            nullptr));
    }).join();
    OK(cudaDeviceSynchronize());
    SAME(done.load(), 1);
}

// How a child ended: its exit status, or 128 and the signal.
using check::ended;

static int uses_the_device()
{
    int *memory = nullptr, got = 0;
    if (cudaMalloc(&memory, 64) != cudaSuccess)
        return 1;
    store<<<1, 1>>>(memory, 21);
    if (cudaMemcpy(&got, memory, 4, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 2;
    return got == 21 ? 0 : 3;
}

PROMISE(a_child_may_use_the_device_if_its_parent_did_not)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(uses_the_device());
    SAME(ended(child), 0);
    SAME(uses_the_device(), 0);
}

PROMISE(a_child_of_a_parent_that_used_the_device_ends)
{
    SAME(uses_the_device(), 0);
    const pid_t child = fork();
    if (child == 0) {
        // What its calls answer is open; that they answer is not.
        void *memory = nullptr;
        cudaMalloc(&memory, 64);
        cudaDeviceSynchronize();
        _exit(0);
    }
    SAME(ended(child), 0);
    SAME(uses_the_device(), 0);
}

static int exits(void (*how)())
{
    const pid_t child = fork();
    if (child == 0) {
        how();
        std::exit(0);
    }
    return ended(child);
}

PROMISE(a_process_ends_with_work_under_way)
{
    SAME(exits([] {
             cudaStream_t stream;
             OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
             int *memory = nullptr;
             OK(cudaMalloc(&memory, 64));
             for (int i = 0; i < 1000; i++)
                 store<<<1, 1, 0, stream>>>(memory, i);
         }),
         0);
}

PROMISE(calls_at_exit_answer)
{
    SAME(exits([] {
             static void *memory = nullptr;
             std::atexit([] {
                 cudaFree(memory);
                 cudaDeviceSynchronize();
             });
             OK(cudaMalloc(&memory, 64));
         }),
         0);
}

PROMISE(a_reset_at_the_end_is_allowed)
{
    SAME(exits([] {
             SAME(uses_the_device(), 0);
             OK(cudaDeviceReset());
         }),
         0);
}

PROMISE(a_thread_may_still_call_while_the_process_ends)
{
    const int end = exits([] {
        OK(cudaFree(nullptr));
        std::thread([] {
            for (;;) {
                void *memory = nullptr;
                cudaMalloc(&memory, 64);
                cudaFree(memory);
            }
        }).detach();
        usleep(20000);
    });
    // NVIDIA's runtime is gone under such a thread, and signal 11 ends the process.
    TRUE(end == 0 || (check::is_beside_nvidia() && end == 128 + SIGSEGV));
}
