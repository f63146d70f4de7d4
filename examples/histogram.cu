// Counts bytes: atomics in shared memory first and in global memory last, then in global memory only.
#include "example.h"

const int BINS = 256;

#if DEVICE_CODE
KERNEL histogram_shared(const unsigned char *in, unsigned *bins, int n)
{
    extern __shared__ unsigned own[];  // sized by the launch
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        own[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[in[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        if (own[bin] != 0)
            atomicAdd(&bins[bin], own[bin]);
}

KERNEL histogram_global(const unsigned char *in, unsigned *bins, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[in[i]], 1u);
}
#endif

int main()
{
    const int n = (1 << 20) + 321;
    std::vector<unsigned char> in(n);
    std::vector<unsigned> expected(BINS, 0);
    Numbers numbers{5};
    for (unsigned char &value : in) {
        const uint32_t wide = numbers.next();
        value = static_cast<unsigned char>((wide & 0xff) < 200 ? wide >> 10 : 42);  // one crowded bin
        expected[value]++;
    }

    unsigned char *device_in;
    unsigned *device_bins;
    const size_t bin_bytes = BINS * sizeof(unsigned);
    CHECK(cudaMalloc(&device_in, n));
    CHECK(cudaMalloc(&device_bins, bin_bytes));
    CHECK(cudaMemcpy(device_in, in.data(), n, cudaMemcpyHostToDevice));
    std::vector<unsigned> bins(BINS);

    std::printf("histogram: %d bytes, bin 42 has %u\n", n, expected[42]);
    CHECK(cudaMemset(device_bins, 0, bin_bytes));
    LAUNCH(histogram_shared, 24, 192, bin_bytes)((const unsigned char *)device_in, device_bins, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(bins.data(), device_bins, bin_bytes, cudaMemcpyDeviceToHost));
    expect_equal("bins by shared memory", bins, expected);

    CHECK(cudaMemset(device_bins, 0, bin_bytes));
    LAUNCH(histogram_global, (n + 255) / 256, 256)((const unsigned char *)device_in, device_bins, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(bins.data(), device_bins, bin_bytes, cudaMemcpyDeviceToHost));
    expect_equal("bins by global memory", bins, expected);

    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_bins));
    return passed();
}
