// CUDA Runtime API, "Occupancy", and its C++ templates.
#include "../check.h"

#include <algorithm>

__global__ void plain(int *to) { *to = threadIdx.x; }
__global__ void __launch_bounds__(64) small(int *to) { *to = threadIdx.x; }

static cudaDeviceProp properties()
{
    cudaDeviceProp p;
    OK(cudaGetDeviceProperties(&p, 0));
    return p;
}

PROMISE(blocks_per_multiprocessor_stay_within_the_device)
{
    const cudaDeviceProp p = properties();
    for (int threads : {32, 64, 128, 256, 512, 1024}) {
        int blocks = 0;
        OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, threads, 0));
        TRUE(blocks >= 1);
        TRUE(blocks <= p.maxBlocksPerMultiProcessor);
        TRUE(blocks * threads <= p.maxThreadsPerMultiProcessor);
    }
}

PROMISE(shared_memory_limits_the_blocks)
{
    const cudaDeviceProp p = properties();
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 32, p.sharedMemPerBlock));
    TRUE(blocks >= 1);
    TRUE(blocks * p.sharedMemPerBlock <= p.sharedMemPerMultiprocessor);
}

PROMISE(flags_are_default_or_no_caching_override)
{
    int with = 0, without = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with, plain, 128, 0, cudaOccupancyDefault));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&without, plain, 128, 0));
    SAME(with, without);
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with, plain, 128, 0,
                                                              cudaOccupancyDisableCachingOverride));
    IS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&with, plain, 128, 0, 0x80), cudaErrorInvalidValue);
}

PROMISE(what_is_no_kernel_is_refused)
{
    int blocks = 0;
    static int nothing;
    IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, static_cast<const void *>(&nothing), 128, 0),
       cudaErrorInvalidResourceHandle);
    IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, plain, 128, 0), cudaErrorInvalidValue);
    IS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 0, 0), cudaErrorInvalidValue);
}

PROMISE(the_best_block_size_is_within_the_kernels_bounds)
{
    int blocks = 0, threads = 0;
    OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, plain));
    TRUE(threads >= 1 && threads <= properties().maxThreadsPerBlock);
    TRUE(blocks >= properties().multiProcessorCount);
    OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, small));
    TRUE(threads >= 1 && threads <= 64);
    OK(cudaOccupancyMaxPotentialBlockSize(&blocks, &threads, plain, 0, 96));
    TRUE(threads >= 1 && threads <= 96);
}

PROMISE(the_best_block_size_is_found_for_memory_that_grows_with_it)
{
    int blocks = 0, threads = 0;
    OK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&blocks, &threads, plain, [](int n) { return 16 * n; }));
    TRUE(threads >= 1);
    TRUE(16u * threads <= properties().sharedMemPerBlock);
}

PROMISE(shared_memory_left_for_so_many_blocks_lets_them_be_resident)
{
    size_t bytes = 0;
    OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, plain, 2, 64));
    TRUE(bytes > 0);
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 64,
                                                     std::min(bytes, properties().sharedMemPerBlock)));
    TRUE(blocks >= 2);
}

PROMISE(clusters_are_counted_where_the_device_has_them)
{
    if (!properties().clusterLaunch)
        SKIP("a device without clusters");
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(64);
    config.blockDim = dim3(64);
    int size = 0;
    OK(cudaOccupancyMaxPotentialClusterSize(&size, plain, &config));
    TRUE(size >= 1);
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    OK(cudaOccupancyMaxActiveClusters(&clusters, plain, &config));
    TRUE(clusters >= 1);
}
