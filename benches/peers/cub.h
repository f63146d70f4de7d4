// CUB's device-wide algorithms, by rows: compiled apart, for their headers are long.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

cudaError_t cub_segmented_sort(const uint32_t *in, uint32_t *out, int n, const int *starts, int segments);
cudaError_t cub_sort_pairs(const uint32_t *keys, const uint32_t *values, uint32_t *keys_out, uint32_t *values_out, int n);
cudaError_t cub_histogram_even(const float *samples, uint32_t *bins, int n);
cudaError_t cub_topk(const float *in, float *out, int n, int k);
