// The sum of a vector three ways: a tree in shared memory, warp shuffles, atomics; and its extremes by atomics.
#include "example.h"

const int BLOCK = 256;

#if DEVICE_CODE
// Each block leaves its own sum in `partial`.
KERNEL reduce_tree(const int *in, int *partial, int n)
{
    __shared__ int sums[BLOCK];
    int sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        sum += in[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        partial[blockIdx.x] = sums[0];
}

__device__ int warp_sum(int value)
{
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    return value;
}

KERNEL reduce_shuffle(const int *in, int *partial, int n)
{
    __shared__ int sums[BLOCK / 32];
    int sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        sum += in[i];
    sum = warp_sum(sum);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0)
        sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < BLOCK / 32 ? sums[lane] : 0);
        if (lane == 0)
            partial[blockIdx.x] = sum;
    }
}

// Every warp's lanes end with the same sum; odd lanes exchange with xor, and all lanes vote on the result.
KERNEL reduce_butterfly(const int *in, int *partial, int n)
{
    __shared__ int sums[BLOCK / 32];
    int sum = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        sum += in[i];
    for (int mask = 1; mask < 32; mask *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    const int first = __shfl_sync(0xffffffffu, sum, 0);
    const unsigned agree = __ballot_sync(0xffffffffu, sum == first);
    if (threadIdx.x % 32 == 0)
        sums[threadIdx.x / 32] = agree == 0xffffffffu ? sum : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        int total = 0;
        for (int warp = 0; warp < BLOCK / 32; warp++)
            total += sums[warp];
        partial[blockIdx.x] = total;
    }
}

KERNEL reduce_atomic(const int *in, int *sum, int *least, int *greatest, unsigned long long *count, int n)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) {
        atomicAdd(sum, in[i]);
        atomicMin(least, in[i]);
        atomicMax(greatest, in[i]);
        atomicAdd(count, 1ull);
    }
}
#endif

int main()
{
    const int n = (1 << 19) + 77, grid = 96;
    std::vector<int> in(n);
    Numbers numbers{4};
    long long sum = 0;
    int least = INT32_MAX, greatest = INT32_MIN;
    for (int &value : in) {
        value = static_cast<int>(numbers.next() % 2001) - 900;
        sum += value;
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
    }

    int *device_in, *device_partial;
    CHECK(cudaMalloc(&device_in, n * sizeof(int)));
    CHECK(cudaMalloc(&device_partial, grid * sizeof(int)));
    CHECK(cudaMemcpy(device_in, in.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    std::vector<int> partial(grid);
    const auto total = [&] {
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(partial.data(), device_partial, grid * sizeof(int), cudaMemcpyDeviceToHost));
        CHECK(cudaMemset(device_partial, 0xff, grid * sizeof(int)));
        long long all = 0;
        for (const int value : partial)
            all += value;
        return all;
    };

    std::printf("reduce: %d elements, sum %lld\n", n, sum);
    LAUNCH(reduce_tree, grid, BLOCK)((const int *)device_in, device_partial, n);
    expect_equal("sum by shared memory", total(), sum);
    LAUNCH(reduce_shuffle, grid, BLOCK)((const int *)device_in, device_partial, n);
    expect_equal("sum by warp shuffles", total(), sum);
    LAUNCH(reduce_butterfly, grid, BLOCK)((const int *)device_in, device_partial, n);
    expect_equal("sum by butterfly shuffles", total(), sum);

    int *device_results;
    unsigned long long *device_count, count = 0;
    int results[3] = {0, INT32_MAX, INT32_MIN};
    CHECK(cudaMalloc(&device_results, sizeof results));
    CHECK(cudaMalloc(&device_count, sizeof count));
    CHECK(cudaMemcpy(device_results, results, sizeof results, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(device_count, 0, sizeof count));
    LAUNCH(reduce_atomic, (n + BLOCK - 1) / BLOCK, BLOCK)
    ((const int *)device_in, device_results, device_results + 1, device_results + 2, device_count, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(results, device_results, sizeof results, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&count, device_count, sizeof count, cudaMemcpyDeviceToHost));
    expect_equal("sum by atomics", results[0], sum);
    expect_equal("least by atomics", results[1], least);
    expect_equal("greatest by atomics", results[2], greatest);
    expect_equal("count by 64-bit atomics", static_cast<long long>(count), n);

    CHECK(cudaFree(device_in));
    CHECK(cudaFree(device_partial));
    CHECK(cudaFree(device_results));
    CHECK(cudaFree(device_count));
    return passed();
}
