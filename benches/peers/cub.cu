#include "cub.h"

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cub/device/device_topk.cuh>
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/output_ordering.h>
#include <cuda/__execution/require.h>

#include "sizes.h"

// Calls with the storage that the algorithm asks for: made at the first call, as a program keeps it.
template <typename Call>
static cudaError_t with_storage(Call call)
{
    static void *storage = nullptr;
    static size_t bytes = 0;
    if (!storage) {
        if (const cudaError_t error = call(nullptr, bytes))
            return error;
        if (const cudaError_t error = cudaMalloc(&storage, bytes ? bytes : 1))
            return error;
    }
    return call(storage, bytes);
}

cudaError_t cub_segmented_sort(const uint32_t *in, uint32_t *out, int n, const int *starts, int segments)
{
    return with_storage([=](void *storage, size_t &bytes) {
        return cub::DeviceSegmentedSort::SortKeys(storage, bytes, in, out, n, segments, starts, starts + 1);
    });
}

cudaError_t cub_sort_pairs(const uint32_t *keys, const uint32_t *values, uint32_t *keys_out, uint32_t *values_out, int n)
{
    return with_storage([=](void *storage, size_t &bytes) {
        return cub::DeviceRadixSort::SortPairs(storage, bytes, keys, keys_out, values, values_out, n);
    });
}

cudaError_t cub_histogram_even(const float *samples, uint32_t *bins, int n)
{
    return with_storage([=](void *storage, size_t &bytes) {
        return cub::DeviceHistogram::HistogramEven(storage, bytes, samples, bins, EVEN_BINS + 1, 0.0f, EVEN_UPPER, n);
    });
}

cudaError_t cub_topk(const float *in, float *out, int n, int k)
{
    // The one configuration that CCCL 3 has.
    const auto any_order = cuda::execution::require(cuda::execution::determinism::not_guaranteed, cuda::execution::output_ordering::unsorted);
    return with_storage([=](void *storage, size_t &bytes) {
        return cub::DeviceTopK::MaxKeys(storage, bytes, in, out, n, k, any_order);
    });
}
