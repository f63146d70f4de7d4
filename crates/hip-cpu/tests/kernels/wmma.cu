// Tiled products with nvcuda::wmma, as CUDA programs write them. wmma.ptx is made from this by
//   nvcc -ptx -arch=sm_90 -O3 wmma.cu -o wmma.ptx
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
#include <stdint.h>

using namespace nvcuda;

// Each warp makes one tile of D = alpha A B + beta C straight from global memory.
template <typename In, typename Kind, typename Out, int M, int N, int K, typename LayoutA, typename LayoutB>
__device__ void tile(const In *a, const In *b, const Out *c, Out *d, int n, int k, Out alpha, Out beta) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    int row = warp / (n / N) * M, column = warp % (n / N) * N;
    wmma::fragment<wmma::matrix_a, M, N, K, Kind, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, Kind, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Out> sum, old;
    wmma::fill_fragment(sum, Out(0));
    const bool a_rows = std::is_same<LayoutA, wmma::row_major>::value;
    const bool b_rows = std::is_same<LayoutB, wmma::row_major>::value;
    int m = gridDim.x * blockDim.x / warpSize / (n / N) * M;
    for (int i = 0; i < k; i += K) {
        wmma::load_matrix_sync(fa, a_rows ? a + row * k + i : a + i * m + row, a_rows ? k : m);
        wmma::load_matrix_sync(fb, b_rows ? b + i * n + column : b + column * k + i, b_rows ? n : k);
        if constexpr (std::is_same<Kind, wmma::precision::tf32>::value) {
            for (int e = 0; e < fa.num_elements; e++) fa.x[e] = wmma::__float_to_tf32(fa.x[e]);
            for (int e = 0; e < fb.num_elements; e++) fb.x[e] = wmma::__float_to_tf32(fb.x[e]);
        }
        wmma::mma_sync(sum, fa, fb, sum);
    }
    wmma::load_matrix_sync(old, c + row * n + column, n, wmma::mem_row_major);
    for (int e = 0; e < sum.num_elements; e++) sum.x[e] = alpha * sum.x[e] + beta * old.x[e];
    wmma::store_matrix_sync(d + row * n + column, sum, n, wmma::mem_row_major);
}

extern "C" __global__ void half_rows(const half *a, const half *b, const float *c, float *d, int n, int k) {
    tile<half, half, float, 16, 16, 16, wmma::row_major, wmma::row_major>(a, b, c, d, n, k, 2.0f, 3.0f);
}
extern "C" __global__ void half_columns(const half *a, const half *b, const float *c, float *d, int n, int k) {
    tile<half, half, float, 32, 8, 16, wmma::col_major, wmma::col_major>(a, b, c, d, n, k, 2.0f, 3.0f);
}
extern "C" __global__ void half_sums(const half *a, const half *b, const half *c, half *d, int n, int k) {
    tile<half, half, half, 16, 16, 16, wmma::row_major, wmma::col_major>(a, b, c, d, n, k, half(2.0f), half(3.0f));
}
extern "C" __global__ void bfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const float *c, float *d, int n, int k) {
    tile<__nv_bfloat16, __nv_bfloat16, float, 8, 32, 16, wmma::row_major, wmma::col_major>(a, b, c, d, n, k, 2.0f, 3.0f);
}
extern "C" __global__ void tf32(const float *a, const float *b, const float *c, float *d, int n, int k) {
    tile<float, wmma::precision::tf32, float, 16, 16, 8, wmma::row_major, wmma::col_major>(a, b, c, d, n, k, 2.0f, 3.0f);
}
extern "C" __global__ void bytes(const int8_t *a, const int8_t *b, const int *c, int *d, int n, int k) {
    tile<signed char, signed char, int, 16, 16, 16, wmma::row_major, wmma::col_major>(a, b, c, d, n, k, 2, 3);
}
extern "C" __global__ void doubles(const double *a, const double *b, const double *c, double *d, int n, int k) {
    tile<double, double, double, 8, 8, 4, wmma::row_major, wmma::col_major>(a, b, c, d, n, k, 2.0, 3.0);
}

// A block of four warps stages 32 x 16 of A and 16 x 32 of B in shared memory, with padding against bank conflicts.
extern "C" __global__ void half_shared(const half *a, const half *b, const float *c, float *d, int n, int k) {
    __shared__ half sa[32][24], sb[16][40];
    int warp = threadIdx.x / 32, tiles = n / 32;
    int row = blockIdx.x / tiles * 32, column = blockIdx.x % tiles * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(sum, c + (row + warp / 2 * 16) * n + column + warp % 2 * 16, n, wmma::mem_row_major);
    for (int i = 0; i < k; i += 16) {
        for (int e = threadIdx.x; e < 32 * 16; e += blockDim.x) {
            sa[e / 16][e % 16] = a[(row + e / 16) * k + i + e % 16];
            sb[e / 32][e % 32] = b[(i + e / 32) * n + column + e % 32];
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
        wmma::load_matrix_sync(fa, &sa[warp / 2 * 16][0], 24);
        wmma::load_matrix_sync(fb, &sb[0][warp % 2 * 16], 40);
        wmma::mma_sync(sum, fa, fb, sum);
        __syncthreads();
    }
    wmma::store_matrix_sync(d + (row + warp / 2 * 16) * n + column + warp % 2 * 16, sum, n, wmma::mem_row_major);
}
