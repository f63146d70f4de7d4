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
#pragma unroll 1
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

__device__ unsigned shared_address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void copy16(void *to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
}

// As libraries write it: a block of four warps makes 64 x 16 of D; tiles come through cp.async in two stages, fragments
// through ldmatrix (B's transposed), and each warp has a 16 x 16 part made of two m16n8k16 products.
extern "C" __global__ void half_pipeline(const half *a, const half *b, const float *c, float *d, int n, int k) {
    __shared__ __align__(16) half sa[2][64][24], sb[2][16][24];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    int row = blockIdx.x / (n / 16) * 64, column = blockIdx.x % (n / 16) * 16;
    auto stage = [&](int s, int i) {
        copy16(&sa[s][t / 2][t % 2 * 8], a + (row + t / 2) * k + i + t % 2 * 8);
        if (t < 32) copy16(&sb[s][t / 2][t % 2 * 8], b + (i + t / 2) * n + column + t % 2 * 8);
        asm volatile("cp.async.commit_group;");
    };
    float sum[2][4];
    for (int tile = 0; tile < 2; tile++)
        for (int e = 0; e < 4; e++)
            sum[tile][e] =
                c[(row + warp * 16 + lane / 4 + e / 2 * 8) * n + column + tile * 8 + lane % 4 * 2 + e % 2];
    stage(0, 0);
    for (int i = 0, s = 0; i < k; i += 16, s ^= 1) {
        if (i + 16 < k) {
            stage(s ^ 1, i + 16);
            asm volatile("cp.async.wait_group 1;");
        } else {
            asm volatile("cp.async.wait_group 0;");
        }
        __syncthreads();
        unsigned fa[4], fb[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
                     : "r"(shared_address(&sa[s][warp * 16 + lane % 16][lane / 16 * 8])));
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
                     : "r"(shared_address(&sb[s][lane % 16][lane / 16 * 8])));
        for (int tile = 0; tile < 2; tile++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                         "{%0, %1, %2, %3};"
                         : "+f"(sum[tile][0]), "+f"(sum[tile][1]), "+f"(sum[tile][2]), "+f"(sum[tile][3])
                         : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[2 * tile]), "r"(fb[2 * tile + 1]));
        __syncthreads();
    }
    for (int tile = 0; tile < 2; tile++)
        for (int e = 0; e < 4; e++)
            d[(row + warp * 16 + lane / 4 + e / 2 * 8) * n + column + tile * 8 + lane % 4 * 2 + e % 2] = sum[tile][e];
}
