// y = a x + y in four streams: asynchronous copies from pinned memory, events that order streams and measure time.
#include "example.h"

#if DEVICE_CODE
KERNEL saxpy(float a, const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = a * x[i] + y[i];
}
#endif

int main()
{
    const int streams = 4, chunk = (1 << 18) + 5, n = streams * chunk;
    const float a = 3.0f;
    float *x, *y;
    CHECK(cudaMallocHost(&x, n * sizeof(float)));
    CHECK(cudaMallocHost(&y, n * sizeof(float)));
    // Whole numbers: a x + y is exact with or without a fused multiply-add.
    std::vector<float> expected(n);
    Numbers numbers{3};
    for (int i = 0; i < n; i++) {
        x[i] = static_cast<float>(numbers.next() % 100000);
        y[i] = static_cast<float>(numbers.next() % 100000);
        expected[i] = a * (a * x[i] + y[i]) + (a * x[i] + y[i]);
    }

    float *device_x, *device_y;
    CHECK(cudaMalloc(&device_x, n * sizeof(float)));
    CHECK(cudaMalloc(&device_y, n * sizeof(float)));
    cudaStream_t stream[streams];
    cudaEvent_t start, done[streams], end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    for (int s = 0; s < streams; s++) {
        CHECK(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
        CHECK(cudaEventCreate(&done[s]));
    }

    CHECK(cudaEventRecord(start, stream[0]));
    for (int s = 0; s < streams; s++) {
        const size_t at = static_cast<size_t>(s) * chunk, bytes = chunk * sizeof(float);
        CHECK(cudaStreamWaitEvent(stream[s], start, 0));
        CHECK(cudaMemcpyAsync(device_x + at, x + at, bytes, cudaMemcpyHostToDevice, stream[s]));
        CHECK(cudaMemcpyAsync(device_y + at, y + at, bytes, cudaMemcpyHostToDevice, stream[s]));
        LAUNCH(saxpy, 64, 128, 0, stream[s])(a, (const float *)(device_x + at), device_y + at, chunk);
        CHECK(cudaGetLastError());
        // y = a y + y, in the same stream and so after the first.
        LAUNCH(saxpy, 64, 128, 0, stream[s])(a, (const float *)(device_y + at), device_y + at, chunk);
        CHECK(cudaGetLastError());
        CHECK(cudaEventRecord(done[s], stream[s]));
    }
    // Stream 0 takes all results back; the events hold it until the other streams are done.
    for (int s = 0; s < streams; s++)
        CHECK(cudaStreamWaitEvent(stream[0], done[s], 0));
    CHECK(cudaMemcpyAsync(y, device_y, n * sizeof(float), cudaMemcpyDeviceToHost, stream[0]));
    CHECK(cudaEventRecord(end, stream[0]));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventQuery(end));
    for (int s = 0; s < streams; s++) {
        CHECK(cudaStreamSynchronize(stream[s]));
        CHECK(cudaStreamQuery(stream[s]));
    }

    float ms = -1.0f;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    std::printf("saxpy_streams: %d elements in %d streams, %.3f ms\n", n, streams, ms);
    if (!(ms > 0.0f && ms < 600000.0f))
        fail("the elapsed time is %f ms", ms);
    const std::vector<float> got(y, y + n);
    for (int s = 0; s < streams; s++) {
        CHECK(cudaStreamDestroy(stream[s]));
        CHECK(cudaEventDestroy(done[s]));
    }
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(device_y));
    CHECK(cudaFreeHost(x));
    CHECK(cudaFreeHost(y));
    expect_equal("y", got, expected);
    return passed();
}
