// Numbers handed from device to device: each one's stream waits for an event that the device before it has recorded.
#include "example.h"

#if DEVICE_CODE
// So long that a stream which does not wait reads what is not there yet.
KERNEL step(unsigned *data, int n, unsigned salt)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned value = data[i];
    for (int round = 0; round < 500; round++)
        value = value * 1664525u + salt + round;
    data[i] = value;
}
#endif

const int N = 40007, LAPS = 3;

int main()
{
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    // With one device its two streams hand the numbers to each other.
    const int places = devices < 2 ? 2 : devices;
    std::vector<unsigned *> data(places);
    std::vector<cudaStream_t> streams(places);
    std::vector<cudaEvent_t> done(places);
    for (int i = 0; i < places; i++) {
        CHECK(cudaSetDevice(i % devices));
        CHECK(cudaMalloc(&data[i], N * sizeof(unsigned)));
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
    }
    std::vector<unsigned> numbers(N), expected(N);
    for (int i = 0; i < N; i++)
        expected[i] = numbers[i] = static_cast<unsigned>(i) * 2654435761u;

    CHECK(cudaSetDevice(0));
    CHECK(cudaMemcpyAsync(data[0], numbers.data(), N * sizeof(unsigned), cudaMemcpyHostToDevice, streams[0]));
    int at = 0;
    for (int lap = 0; lap < LAPS * places; lap++) {
        const unsigned salt = static_cast<unsigned>(lap) * 97 + 13;
        CHECK(cudaSetDevice(at % devices));
        LAUNCH(step, (N + 127) / 128, 128, 0, streams[at])(data[at], N, salt);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(done[at], streams[at]));
        for (unsigned &value : expected)
            for (int round = 0; round < 500; round++)
                value = value * 1664525u + salt + round;
        // The event is of one device, the stream of the next.
        const int next = (at + 1) % places;
        CHECK(cudaSetDevice(next % devices));
        CHECK(cudaStreamWaitEvent(streams[next], done[at], 0));
        CHECK(cudaMemcpyPeerAsync(data[next], next % devices, data[at], at % devices, N * sizeof(unsigned), streams[next]));
        at = next;
    }
    CHECK(cudaMemcpyAsync(numbers.data(), data[at], N * sizeof(unsigned), cudaMemcpyDeviceToHost, streams[at]));
    CHECK(cudaStreamSynchronize(streams[at]));
    expect_equal("the numbers", numbers, expected);
    for (int i = 0; i < places; i++) {
        CHECK(cudaSetDevice(i % devices));
        CHECK(cudaEventDestroy(done[i]));
        CHECK(cudaStreamDestroy(streams[i]));
        CHECK(cudaFree(data[i]));
    }
    std::printf("device_relay: %d steps\n", LAPS * places);
    return passed();
}
