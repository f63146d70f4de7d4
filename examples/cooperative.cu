// A cooperative grid: blocks that wait for each other, as many as the device holds at once and not one more.
#include "example.h"

#include <cooperative_groups.h>

namespace groups = cooperative_groups;

// Every step each element becomes the sum of its two neighbours: wrong if a block runs ahead.
__global__ void steps(uint32_t *a, uint32_t *b, int n, int n_steps)
{
    const groups::grid_group grid = groups::this_grid();
    for (int step = 0; step < n_steps; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size())
            b[i] = a[(i + n - 1) % n] + a[(i + 1) % n];
        grid.sync();
        uint32_t *const swap = a;
        a = b, b = swap;
    }
}

// A sum in one kernel: the last word is added up after every block has written its own.
__global__ void sum(const uint32_t *from, uint32_t *parts, uint32_t *total, int n)
{
    const groups::grid_group grid = groups::this_grid();
    extern __shared__ uint32_t words[];
    uint32_t own = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size())
        own += from[i];
    words[threadIdx.x] = own;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            words[threadIdx.x] += words[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        parts[blockIdx.x] = words[0];
    grid.sync();
    if (grid.thread_rank() == 0) {
        uint32_t all = 0;
        for (unsigned block = 0; block < gridDim.x; block++)
            all += parts[block];
        *total = grid.is_valid() ? all : 0;
    }
}

int main()
{
    int ordinal = 0, supported = 0, processors = 0;
    CHECK(cudaGetDevice(&ordinal));
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, ordinal));
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, ordinal));
    expect_equal("cooperative launch attribute", supported, 1);
    const int threads = 64, n = 1000;
    int per_processor = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, steps, threads, 0));
    const int most = per_processor * processors;
    const int blocks = most < 6 ? most : 6;

    std::vector<uint32_t> host(n);
    Numbers numbers{17};
    for (uint32_t &value : host)
        value = numbers.next();
    uint32_t *a, *b, *parts, *total;
    CHECK(cudaMalloc(&a, n * 4));
    CHECK(cudaMalloc(&b, n * 4));
    CHECK(cudaMalloc(&parts, blocks * 4));
    CHECK(cudaMalloc(&total, 4));
    CHECK(cudaMemcpy(a, host.data(), n * 4, cudaMemcpyHostToDevice));
    int n_elements = n, n_steps = 21;
    void *arguments[] = {&a, &b, &n_elements, &n_steps};
    CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(steps), dim3(blocks), dim3(threads), arguments, 0, 0));
    std::vector<uint32_t> got(n), next(n);
    CHECK(cudaMemcpy(got.data(), b, n * 4, cudaMemcpyDeviceToHost));
    for (int step = 0; step < n_steps; step++) {
        for (int i = 0; i < n; i++)
            next[i] = host[(i + n - 1) % n] + host[(i + 1) % n];
        host.swap(next);
    }
    expect_equal("after the steps", got, host);

    // The same through a launch attribute.
    uint32_t expected = 0, result = 0;
    for (const uint32_t value : host)
        expected += value;
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeCooperative;
    attribute[0].val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = threads * 4;
    config.attrs = attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, sum, (const uint32_t *)b, parts, total, n));
    CHECK(cudaMemcpy(&result, total, 4, cudaMemcpyDeviceToHost));
    expect_equal("sum", result, expected);

    // One block too many cannot wait for each other.
    expect_equal("too many blocks", cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(steps), dim3(most + 1), dim3(threads), arguments, 0, 0),
                 cudaErrorCooperativeLaunchTooLarge);
    expect_equal("last error", cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);
    CHECK(cudaDeviceSynchronize());
    for (uint32_t *memory : {a, b, parts, total})
        CHECK(cudaFree(memory));
    std::printf("cooperative: %d steps of a grid that waits for itself\n", n_steps);
    return passed();
}
