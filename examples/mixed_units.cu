// Two translation units linked with -rdc, of which one came as machine code only: its kernel, and a kernel of ours that calls
// its function, are said to be there for no such device; the others run.
#include "example.h"

extern __global__ void of_other_unit(int *out);
extern __device__ int helper_of_other_unit(int value);

__global__ void own(int *out)
{
    *out = 5;
}

__global__ void calls_other_unit(int *out)
{
    *out = helper_of_other_unit(1);
}

int main()
{
    int *device, got = 0;
    CHECK(cudaMalloc(&device, sizeof(int)));
    own<<<1, 1>>>(device);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&got, device, sizeof(int), cudaMemcpyDeviceToHost));
    expect_equal("own kernel", got, 5);
    of_other_unit<<<1, 1>>>(device);
    expect_equal("kernel of the other unit", cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    calls_other_unit<<<1, 1>>>(device);
    expect_equal("call of the other unit", cudaGetLastError(), cudaErrorNoKernelImageForDevice);
    own<<<1, 1>>>(device);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(device));
    std::printf("mixed_units: what has PTX runs\n");
    return passed();
}
