// CUDA Driver API, "Occupancy".
#include "../device.h"

PROMISE(at_least_one_block_fits_and_no_more_threads_than_the_processor_has)
{
    start();
    CUfunction nothing = kernel("nothing");
    int threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    for (int size : {32, 128, 1024}) {
        int blocks = 0;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, size, 0));
        TRUE(blocks >= 1);
        TRUE(blocks * size <= threads);
        int again = 0;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&again, nothing, size, 0, CU_OCCUPANCY_DEFAULT));
        SAME(again, blocks);
    }
}

PROMISE(shared_memory_limits_the_blocks)
{
    start();
    CUfunction nothing = kernel("nothing");
    int free = 0, full = 0;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&free, nothing, 32, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&full, nothing, 32, 49152));
    TRUE(full >= 1);
    TRUE(full <= free);
    size_t all = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    TRUE(full * size_t(49152) <= all);
}

PROMISE(a_block_of_no_threads_is_an_invalid_value)
{
    start();
    CUfunction nothing = kernel("nothing");
    int blocks;
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 0, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, nothing, 32, 0), CUDA_ERROR_INVALID_VALUE);
    IS(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, nothing, 32, 0, 0x100), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(the_suggested_block_keeps_the_limit)
{
    start();
    CUfunction nothing = kernel("nothing");
    int grid = 0, block = 0;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, nullptr, 0, 0));
    TRUE(block >= 32 && block <= 1024);
    TRUE(grid >= attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, nullptr, 0, 96));
    TRUE(block > 0 && block <= 96);
}

PROMISE(the_suggested_block_heeds_memory_by_size)
{
    start();
    CUfunction nothing = kernel("nothing");
    int grid = 0, block = 0;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, [](int size) { return size_t(size) * 192; }, 0, 0));
    TRUE(block > 0 && block * 192 <= 49152);
}

PROMISE(what_is_left_lets_the_blocks_run)
{
    start();
    CUfunction nothing = kernel("nothing");
    size_t left = 0;
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&left, nothing, 1, 64));
    TRUE(left >= 49152 - 1024);
    int blocks = 0;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 64, left));
    TRUE(blocks >= 1);
}

PROMISE(clusters_that_fit_are_counted)
{
    start();
    if (!attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
        SKIP("the device has no clusters");
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {2, 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = 2;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 64;
    config.attrs = &cluster;
    config.numAttrs = 1;
    CUfunction nothing = kernel("nothing");
    int clusters = 0, size = 0;
    OK(cuOccupancyMaxActiveClusters(&clusters, nothing, &config));
    TRUE(clusters >= 1);
    config.numAttrs = 0;
    OK(cuOccupancyMaxPotentialClusterSize(&size, nothing, &config));
    TRUE(size >= 2);
}
