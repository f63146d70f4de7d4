// cooperative_groups: tiles, coalesced groups, block and grid groups; warp intrinsics; device printf is next door.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "example.h"

namespace cg = cooperative_groups;

__global__ void tiles(int *out)
{
    const cg::thread_block block = cg::this_thread_block();
    const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    const int i = block.thread_rank();
    out[i * 4 + 0] = cg::reduce(tile, i, cg::plus<int>());
    out[i * 4 + 1] = tile.shfl_xor(i, 3);
    if (i % 3 == 0) {
        const cg::coalesced_group group = cg::coalesced_threads();
        out[i * 4 + 2] = group.size() * 100 + group.thread_rank();
    } else {
        out[i * 4 + 2] = -1;
    }
    out[i * 4 + 3] = tile.any(i % 8 == 5 && i > 20) * 2 + (tile.ballot(i & 1) == 0xaau);
    block.sync();
}

// The sum of all numbers in three grid-wide phases.
__global__ void phases(const int *in, int *partial, int *out, int n)
{
    const cg::grid_group grid = cg::this_grid();
    int sum = 0;
    for (int i = grid.thread_rank(); i < n; i += grid.size())
        sum += in[i];
    partial[grid.thread_rank()] = sum;
    grid.sync();
    for (unsigned half = grid.size() / 2; half > 0; half /= 2) {
        if (grid.thread_rank() < half)
            partial[grid.thread_rank()] += partial[grid.thread_rank() + half];
        grid.sync();
    }
    if (grid.thread_rank() == 0)
        *out = partial[0];
}

// One lane of each group of equal keys adds for all of them.
__global__ void aggregate(const int *keys, int *counts)
{
    const int key = keys[blockIdx.x * blockDim.x + threadIdx.x];
#if __CUDA_ARCH__ >= 700
    const unsigned same = __match_any_sync(__activemask(), key);
#else
    unsigned same = 0;
    for (int k = 0; k < 16; k++) {
        const unsigned lanes = __ballot_sync(0xffffffffu, key == k);
        if (key == k)
            same = lanes;
    }
#endif
    if (__ffs(same) - 1 == threadIdx.x % 32)
        atomicAdd(&counts[key], __popc(same));
}

int main()
{
    const int threads = 64;
    int *device;
    std::vector<int> got(threads * 4), wanted(threads * 4);
    CHECK(cudaMalloc(&device, 1 << 20));
    tiles<<<1, threads>>>(device);
    CHECK(cudaMemcpy(got.data(), device, got.size() * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < threads; i++) {
        const int first = i / 8 * 8, warp = i / 32 * 32;
        int size = 0, rank = 0;
        for (int k = warp; k < warp + 32; k++)
            if (k % 3 == 0)
                size++, rank += k < i;
        wanted[i * 4 + 0] = 8 * first + 28;
        wanted[i * 4 + 1] = i ^ 3;
        wanted[i * 4 + 2] = i % 3 == 0 ? size * 100 + rank : -1;
        wanted[i * 4 + 3] = (first + 5 > 20 ? 2 : 0) + 1;
    }
    expect_equal("tiles", got, wanted);

    const int n = 5000;
    std::vector<int> numbers(n);
    long long total = 0;
    Numbers source{3};
    for (int &number : numbers)
        total += number = source.next() % 1000;
    int *in = device, *partial = device + 8192, *out = device + 16384, cooperative = 0;
    CHECK(cudaMemcpy(in, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
    expect_equal("cudaDevAttrCooperativeLaunch", cooperative, 1);
    int per_core = 0, cores = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_core, phases, 64, 0));
    CHECK(cudaDeviceGetAttribute(&cores, cudaDevAttrMultiProcessorCount, 0));
    int blocks = 1;
    while (blocks < 8 && blocks * 2 <= per_core * cores)
        blocks *= 2;
    int count = n;
    void *arguments[] = {&in, &partial, &out, &count};
    CHECK(cudaLaunchCooperativeKernel((void *)phases, dim3(blocks), dim3(64), arguments, 0, 0));
    int sum = 0;
    CHECK(cudaMemcpy(&sum, out, sizeof(int), cudaMemcpyDeviceToHost));
    expect_equal("grid sum", sum, total);
    const cudaError_t error = cudaLaunchCooperativeKernel((void *)phases, dim3(per_core * cores + 1), dim3(64), arguments, 0, 0);
    expect_equal("too many blocks", error, cudaErrorCooperativeLaunchTooLarge);
    expect_equal("and it is the last error", cudaGetLastError(), cudaErrorCooperativeLaunchTooLarge);

    std::vector<int> keys(1024), counts(16), expected(16);
    for (int &key : keys)
        expected[key = source.next() % 16]++;
    CHECK(cudaMemcpy(in, keys.data(), keys.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(out, 0, 64));
    aggregate<<<4, 256>>>(in, out);
    CHECK(cudaMemcpy(counts.data(), out, 64, cudaMemcpyDeviceToHost));
    expect_equal("counts", counts, expected);
    CHECK(cudaFree(device));
    return passed();
}
