// nvcc: --default-stream per-thread
// CUDA Runtime API, "Stream synchronization behavior": a file compiled with the per-thread default stream.
#include "../check.h"

#include <atomic>
#include <thread>

__global__ void store(int *to, int value) { *to = value; }

struct Gate {
    std::atomic<bool> is_open{false};
    void hold(cudaStream_t stream)
    {
        OK(cudaLaunchHostFunc(
            stream,
            [](void *gate) {
                while (!static_cast<Gate *>(gate)->is_open)
                    usleep(1000);
            },
            this));
    }
};

static int *memory()
{
    int *at = nullptr;
    OK(cudaMallocManaged(&at, 64));
    *at = 0;
    return at;
}

PROMISE(stream_zero_is_the_threads_own)
{
    unsigned long long own = 0, named = 0, legacy = 0;
    OK(cudaStreamGetId(nullptr, &own));
    OK(cudaStreamGetId(cudaStreamPerThread, &named));
    OK(cudaStreamGetId(cudaStreamLegacy, &legacy));
    SAME(own, named);
    TRUE(own != legacy);
}

PROMISE(launches_without_a_stream_go_to_the_threads_own)
{
    static Gate gate;
    int *to = memory();
    gate.hold(cudaStreamPerThread);
    store<<<1, 1>>>(to, 3);
    usleep(60000);
    SAME(*to, 0);
    SAME(cudaStreamQuery(nullptr), cudaErrorNotReady);
    gate.is_open = true;
    OK(cudaStreamSynchronize(nullptr));
    SAME(*to, 3);
}

PROMISE(a_thread_does_not_wait_for_anothers_default_stream)
{
    static Gate gate;
    gate.hold(nullptr);
    static int *to = memory();
    std::thread([] {
        store<<<1, 1>>>(to, 4);
        OK(cudaStreamSynchronize(nullptr));
        int got = 0;
        OK(cudaMemcpy(&got, to, 4, cudaMemcpyDefault));
        SAME(got, 4);
    }).join();
    SAME(*to, 4);
    gate.is_open = true;
    OK(cudaDeviceSynchronize());
}

PROMISE(the_own_default_stream_does_not_wait_for_blocking_streams)
{
    static Gate gate;
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    gate.hold(stream);
    int *to = memory();
    store<<<1, 1>>>(to, 5);
    OK(cudaStreamSynchronize(nullptr));
    SAME(*to, 5);
    gate.is_open = true;
    OK(cudaDeviceSynchronize());
}

PROMISE(the_legacy_stream_still_waits_for_the_own_one)
{
    static Gate gate;
    gate.hold(nullptr);
    int *to = memory();
    store<<<1, 1, 0, cudaStreamLegacy>>>(to, 6);
    usleep(60000);
    SAME(*to, 0);
    gate.is_open = true;
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    SAME(*to, 6);
}

PROMISE(copies_and_fills_go_to_the_threads_own)
{
    static Gate gate;
    static int *device = nullptr;
    OK(cudaMalloc(&device, 64));
    OK(cudaMemset(device, 0, 64));
    OK(cudaStreamSynchronize(nullptr));
    gate.hold(nullptr);
    std::thread([] {
        const int sent = 7;
        int got = 0;
        OK(cudaMemcpy(device, &sent, 4, cudaMemcpyHostToDevice));
        OK(cudaMemset(device + 1, 1, 4));
        OK(cudaMemcpy(&got, device, 4, cudaMemcpyDeviceToHost));
        SAME(got, 7);
        OK(cudaMemcpyAsync(&got, device + 1, 4, cudaMemcpyDeviceToHost));
        OK(cudaStreamSynchronize(nullptr));
        SAME(got, 0x01010101);
    }).join();
    gate.is_open = true;
    OK(cudaDeviceSynchronize());
}

PROMISE(events_without_a_stream_are_recorded_in_the_threads_own)
{
    static Gate gate;
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    gate.hold(nullptr);
    OK(cudaEventRecord(event));
    SAME(cudaEventQuery(event), cudaErrorNotReady);
    gate.is_open = true;
    OK(cudaEventSynchronize(event));
}
