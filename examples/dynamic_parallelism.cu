// Kernels that launch kernels, linked with libcudadevrt. Where that does not work, those kernels say so alone: the error is
// cudaErrorCdpNotSupported, and everything else of the program runs.
#include "example.h"

__global__ void child(int *out, int value)
{
    out[threadIdx.x] = value + threadIdx.x;
}

__global__ void parent(int *out)
{
    child<<<1, 32>>>(out, 100);
}

__global__ void parent_with_stream(int *out)
{
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    child<<<1, 32, 0, stream>>>(out, 100);
    cudaStreamDestroy(stream);
}

__global__ void count_devices(int *out)
{
    *out = -1;
    cudaGetDeviceCount(out);
}

// cudaErrorCdpNotSupported, which CUDA 11's headers do not name yet.
static const auto not_supported = static_cast<cudaError_t>(811);

template <typename Launch>
static bool works(const char *what, int *device, int first, Launch launch)
{
    launch();
    const cudaError_t error = cudaGetLastError();
    if (error == not_supported)
        return false;
    check(error, what, __FILE__, __LINE__);
    CHECK(cudaDeviceSynchronize());
    int got = 0;
    CHECK(cudaMemcpy(&got, device, sizeof got, cudaMemcpyDeviceToHost));
    expect_equal(what, got, first);
    return true;
}

int main()
{
    int *device, devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaMalloc(&device, 32 * sizeof(int)));
    const bool first = works("parent", device, 100, [&] { parent<<<1, 1>>>(device); });
    const bool second = works("parent with a stream", device, 100, [&] { parent_with_stream<<<1, 1>>>(device); });
    const bool third = works("devices", device, devices, [&] { count_devices<<<1, 1>>>(device); });
    // The others are not touched by that.
    child<<<1, 32>>>(device, 7);
    CHECK(cudaGetLastError());
    std::vector<int> got(32), expected(32);
    for (int i = 0; i < 32; i++)
        expected[i] = 7 + i;
    CHECK(cudaMemcpy(got.data(), device, 32 * sizeof(int), cudaMemcpyDeviceToHost));
    expect_equal("child", got, expected);
    CHECK(cudaFree(device));
    std::printf("dynamic_parallelism: %s %s %s\n", first ? "yes" : "no", second ? "yes" : "no", third ? "yes" : "no");
    return passed();
}
