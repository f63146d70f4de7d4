// Clusters: blocks that run together, wait for each other and read each other's shared memory. For compute_90.
#include "example.h"

#include <cooperative_groups.h>

namespace groups = cooperative_groups;

// A histogram whose bins lie in the shared memory of all blocks of the cluster.
__global__ void histogram(const unsigned char *from, unsigned *bins, int n, int bins_per_block)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ unsigned own[];
    const groups::cluster_group cluster = groups::this_cluster();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const int bin = from[i];
        unsigned *const there = cluster.map_shared_rank(own, bin / bins_per_block);
        atomicAdd(there + bin % bins_per_block, 1u);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < bins_per_block; i += blockDim.x)
        atomicAdd(&bins[cluster.block_rank() * bins_per_block + i], own[i]);
#endif
}

// Its cluster is compiled in. Each block says who its neighbour in the cluster is, through the neighbour's memory.
__global__ void __cluster_dims__(2, 2, 1) ring(unsigned *out)
{
#if __CUDA_ARCH__ >= 900
    __shared__ unsigned from_neighbour;
    const groups::cluster_group cluster = groups::this_cluster();
    const unsigned rank = cluster.block_rank(), blocks = cluster.num_blocks();
    if (threadIdx.x == 0)
        *cluster.map_shared_rank(&from_neighbour, (rank + 1) % blocks) = 1000 * rank + blockIdx.y * gridDim.x + blockIdx.x;
    cluster.sync();
    if (threadIdx.x == 0)
        out[blockIdx.y * gridDim.x + blockIdx.x] = from_neighbour;
    cluster.sync();
#endif
}

int main()
{
    int ordinal = 0, supported = 0;
    CHECK(cudaGetDevice(&ordinal));
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, ordinal));
    expect_equal("cluster launch attribute", supported, 1);

    const int n = 20011;
    std::vector<unsigned char> host(n);
    std::vector<unsigned> expected(256), got(256);
    Numbers numbers{23};
    for (unsigned char &value : host) {
        value = static_cast<unsigned char>(numbers.next() % 256 & numbers.next() % 256);
        expected[value]++;
    }
    unsigned char *from;
    unsigned *bins;
    CHECK(cudaMalloc(&from, n));
    CHECK(cudaMalloc(&bins, 256 * 4));
    CHECK(cudaMemcpy(from, host.data(), n, cudaMemcpyHostToDevice));
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    cudaLaunchConfig_t config = {};
    config.blockDim = dim3(64);
    config.attrs = attribute;
    config.numAttrs = 1;
    for (const unsigned size : {1u, 2u, 4u, 8u}) {
        attribute[0].val.clusterDim.x = size;
        attribute[0].val.clusterDim.y = attribute[0].val.clusterDim.z = 1;
        config.gridDim = dim3(2 * size);
        config.dynamicSmemBytes = 256 / size * 4;
        int clusters = 0;
        CHECK(cudaOccupancyMaxActiveClusters(&clusters, histogram, &config));
        if (clusters < 1)
            fail("no cluster of %u blocks fits", size);
        CHECK(cudaMemset(bins, 0, 256 * 4));
        CHECK(cudaLaunchKernelEx(&config, histogram, (const unsigned char *)from, bins, n, 256 / static_cast<int>(size)));
        CHECK(cudaMemcpy(got.data(), bins, 256 * 4, cudaMemcpyDeviceToHost));
        expect_equal("bins", got, expected);
    }

    // What CUDA refuses: a grid that is no multiple, more blocks than are portable.
    attribute[0].val.clusterDim.x = 4;
    config.gridDim = dim3(6);
    expect_equal("six blocks in fours", cudaLaunchKernelEx(&config, histogram, (const unsigned char *)from, bins, n, 64), cudaErrorInvalidClusterSize);
    attribute[0].val.clusterDim.x = 16;
    config.gridDim = dim3(16);
    config.dynamicSmemBytes = 16 * 4;
    expect_equal("sixteen blocks", cudaLaunchKernelEx(&config, histogram, (const unsigned char *)from, bins, n, 16), cudaErrorInvalidClusterSize);
    CHECK(cudaFuncSetAttribute(histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    int largest = 0;
    CHECK(cudaOccupancyMaxPotentialClusterSize(&largest, histogram, &config));
    if (largest >= 16) {
        CHECK(cudaMemset(bins, 0, 256 * 4));
        CHECK(cudaLaunchKernelEx(&config, histogram, (const unsigned char *)from, bins, n, 16));
        CHECK(cudaMemcpy(got.data(), bins, 256 * 4, cudaMemcpyDeviceToHost));
        expect_equal("bins of sixteen blocks", got, expected);
    }
    (void)cudaGetLastError();

    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, ring));
#if CUDART_VERSION >= 12000
    expect_equal("required width", attributes.requiredClusterWidth, 2);
    expect_equal("required height", attributes.requiredClusterHeight, 2);
#endif
    unsigned *out;
    CHECK(cudaMalloc(&out, 16 * 4));
    ring<<<dim3(4, 4), 32>>>(out);
    CHECK(cudaGetLastError());
    std::vector<unsigned> pairs(16);
    CHECK(cudaMemcpy(pairs.data(), out, 16 * 4, cudaMemcpyDeviceToHost));
    for (unsigned y = 0; y < 4; y++)
        for (unsigned x = 0; x < 4; x++) {
            // Ranks count x first.
            const unsigned rank = (y % 2) * 2 + x % 2, before = (rank + 3) % 4;
            const unsigned block = (y / 2 * 2 + before / 2) * 4 + x / 2 * 2 + before % 2;
            expect_equal("neighbour", pairs[y * 4 + x], 1000 * before + block);
        }
    expect_equal("odd grid", (ring<<<dim3(3, 4), 32>>>(out), cudaGetLastError()), cudaErrorInvalidClusterSize);
    CHECK(cudaFree(out));
    CHECK(cudaFree(from));
    CHECK(cudaFree(bins));
    std::printf("clusters: of 1 to 8 blocks, and compiled in\n");
    return passed();
}
