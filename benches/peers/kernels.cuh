// The rows in CUDA C++, as a CUDA programmer writes them: 32-bit indices, guards, shared tiles, barriers.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include "sizes.h"

#define HASH_FUNCTION __device__ __forceinline__
#define HASH_U32 uint32_t
#define HASH_U64 uint64_t
#define HASH_U32_OF(number) (number)
#define HASH_U64_OF(number) (number)
#include "hash.h"

__global__ void empty() {}

__global__ void vecadd(const float *a, const float *b, float *c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

__global__ void saxpy(float a, const float *x, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

__global__ void sgemm_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[GEMM_TILE][GEMM_TILE], tile_b[GEMM_TILE][GEMM_TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * GEMM_TILE + ty, column = blockIdx.x * GEMM_TILE + tx;
    float sum = 0;
    for (int start = 0; start < n; start += GEMM_TILE) {
        tile_a[ty][tx] = a[row * n + start + tx];
        tile_b[ty][tx] = b[(start + ty) * n + column];
        __syncthreads();
        for (int k = 0; k < GEMM_TILE; k++)
            sum += tile_a[ty][k] * tile_b[k][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

__global__ void sgemm_blocked(const float *a, const float *b, float *c, int n)
{
    __shared__ float tile_a[GEMM_STEP][GEMM_BLOCK], tile_b[GEMM_STEP][GEMM_BLOCK];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
    const int top = blockIdx.y * GEMM_BLOCK, left = blockIdx.x * GEMM_BLOCK;
    float sum[4][4] = {};
    for (int start = 0; start < n; start += GEMM_STEP) {
        for (int i = thread; i < GEMM_BLOCK * GEMM_STEP; i += 256) {
            tile_a[i % GEMM_STEP][i / GEMM_STEP] = a[(top + i / GEMM_STEP) * n + start + i % GEMM_STEP];
            tile_b[i / GEMM_BLOCK][i % GEMM_BLOCK] = b[(start + i / GEMM_BLOCK) * n + left + i % GEMM_BLOCK];
        }
        __syncthreads();
        for (int k = 0; k < GEMM_STEP; k++) {
            float row[4], column[4];
            for (int i = 0; i < 4; i++) {
                row[i] = tile_a[k][ty * 4 + i];
                column[i] = tile_b[k][tx * 4 + i];
            }
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++)
                    sum[i][j] += row[i] * column[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            c[(top + ty * 4 + i) * n + left + tx * 4 + j] = sum[i][j];
}

__global__ void reduce_barrier(const float *in, float *sums, int n)
{
    __shared__ float part[BLOCK];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = part[0];
}

__device__ float warp_sum(float value)
{
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffffu, value, step);
    return value;
}

__global__ void reduce_shuffle(const float *in, float *sums, int n)
{
    __shared__ float part[BLOCK / 32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float value = warp_sum(i < n ? in[i] : 0);
    if (lane == 0)
        part[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_sum(lane < BLOCK / 32 ? part[lane] : 0);
        if (lane == 0)
            sums[blockIdx.x] = value;
    }
}

__global__ void nbody(const float4 *bodies, float4 *pulls, int n)
{
    __shared__ float4 tile[BLOCK];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int start = 0; start < n; start += BLOCK) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < BLOCK; k++) {
            const float4 other = tile[k];
            const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
            const float pull = other.w * inverse * inverse * inverse;
            x += dx * pull;
            y += dy * pull;
            z += dz * pull;
        }
        __syncthreads();
    }
    pulls[i] = make_float4(x, y, z, 0);
}

// The normal distribution by Abramowitz and Stegun 26.2.17.
__device__ float normal_below(float x)
{
    const float k = 1 / (1 + 0.2316419f * fabsf(x));
    const float sum = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float above = 0.39894228f * expf(-0.5f * x * x) * sum;
    return x > 0 ? 1 - above : above;
}

__global__ void black_scholes(const float *price, const float *strike, const float *years, float *call, float *put, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const float s = price[i], x = strike[i], t = years[i];
    const float spread = VOLATILITY * sqrtf(t);
    const float d1 = (logf(s / x) + (RISKFREE + 0.5f * VOLATILITY * VOLATILITY) * t) / spread;
    const float below1 = normal_below(d1), below2 = normal_below(d1 - spread), now = x * expf(-RISKFREE * t);
    call[i] = s * below1 - now * below2;
    put[i] = now * (1 - below2) - s * (1 - below1);
}

__global__ void stencil(const float *in, float *out, int n)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    const int i = y * n + x;
    out[i] = in[i] + 0.25f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] - 4 * in[i]);
}

__global__ void histogram(const uint32_t *in, uint32_t *bins, int n)
{
    __shared__ uint32_t part[256];
    part[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        const uint32_t four = in[i];
        atomicAdd(&part[four & 255], 1);
        atomicAdd(&part[four >> 8 & 255], 1);
        atomicAdd(&part[four >> 16 & 255], 1);
        atomicAdd(&part[four >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], part[threadIdx.x]);
}

__global__ void mandelbrot(int *counts, int n, int limit)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n)
        return;
    const float cr = -2.0f + 3.0f / MANDELBROT_N * x, ci = -1.5f + 3.0f / MANDELBROT_N * y;
    float zr = 0, zi = 0;
    int count = 0;
    while (count < limit && zr * zr + zi * zi <= 4.0f) {
        const float next = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = next;
        count++;
    }
    counts[y * n + x] = count;
}

__global__ void transpose(const float *in, float *out, int n)
{
    __shared__ float tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1];
    const int x = blockIdx.x * TRANSPOSE_TILE, y = blockIdx.y * TRANSPOSE_TILE;
    for (int j = threadIdx.y; j < TRANSPOSE_TILE; j += blockDim.y)
        tile[j][threadIdx.x] = in[(y + j) * n + x + threadIdx.x];
    __syncthreads();
    for (int j = threadIdx.y; j < TRANSPOSE_TILE; j += blockDim.y)
        out[(x + j) * n + y + threadIdx.x] = tile[threadIdx.x][j];
}

__device__ uint32_t warp_inclusive(uint32_t value)
{
    for (int step = 1; step < 32; step *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, value, step);
        if (threadIdx.x % 32 >= step)
            value += other;
    }
    return value;
}

// The sum of all tiles before this one: 32 at a time, back to the nearest whose prefix is known. Called by one warp.
__device__ uint32_t look_back(volatile uint32_t *states, int tile)
{
    const int lane = threadIdx.x % 32;
    uint32_t sum = 0;
    for (int from = tile - 1;; from -= 32) {
        const int other = from - lane;
        uint32_t state = other < 0 ? SCAN_PREFIX : 0;
        while (__any_sync(0xffffffffu, state == 0))
            if (state == 0)
                state = states[other];
        const uint32_t known = __ballot_sync(0xffffffffu, state & SCAN_PREFIX);
        const int last = known ? __ffs(known) - 1 : 31;
        uint32_t value = lane <= last ? state & SCAN_VALUE : 0;
        for (int step = 16; step > 0; step /= 2)
            value += __shfl_xor_sync(0xffffffffu, value, step);
        sum += value;
        if (known)
            return sum;
    }
}

__global__ void scan(const uint4 *in, uint4 *out, volatile uint32_t *states)
{
    __shared__ uint32_t warps[BLOCK / 32], before;
    __shared__ int ticket;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    if (thread == 0)
        ticket = atomicAdd(const_cast<uint32_t *>(states) + SCAN_TILES, 1);
    __syncthreads();
    const int tile = ticket, at = tile * (SCAN_TILE / 4) + thread * 2;
    uint4 low = in[at], high = in[at + 1];
    low.y += low.x, low.z += low.y, low.w += low.z;
    high.x += low.w, high.y += high.x, high.z += high.y, high.w += high.z;
    const uint32_t upto = warp_inclusive(high.w);
    if (lane == 31)
        warps[warp] = upto;
    __syncthreads();
    if (warp == 0) {
        const uint32_t sums = warp_inclusive(lane < BLOCK / 32 ? warps[lane] : 0);
        const uint32_t total = __shfl_sync(0xffffffffu, sums, 31);
        if (lane < BLOCK / 32)
            warps[lane] = sums;
        if (lane == 0)
            states[tile] = (tile == 0 ? SCAN_PREFIX : SCAN_SUM) | total;
        const uint32_t sum = tile == 0 ? 0 : look_back(states, tile);
        if (lane == 0) {
            states[tile] = SCAN_PREFIX | (sum + total);
            before = sum;
        }
    }
    __syncthreads();
    const uint32_t base = before + (warp ? warps[warp - 1] : 0) + upto - high.w;
    low.x += base, low.y += base, low.z += base, low.w += base;
    high.x += base, high.y += base, high.z += base, high.w += base;
    out[at] = low;
    out[at + 1] = high;
}

__global__ void sort(const uint32_t *in, uint32_t *out)
{
    __shared__ uint32_t keys[SORT_CHUNK];
    const int thread = threadIdx.x, base = blockIdx.x * SORT_CHUNK;
    keys[thread] = in[base + thread];
    keys[thread + SORT_CHUNK / 2] = in[base + thread + SORT_CHUNK / 2];
    for (int size = 2; size <= SORT_CHUNK; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            const int low = 2 * thread - (thread & (step - 1)), high = low + step;
            const uint32_t a = keys[low], b = keys[high];
            if ((a > b) == ((low & size) == 0)) {
                keys[low] = b;
                keys[high] = a;
            }
        }
    __syncthreads();
    out[base + thread] = keys[thread];
    out[base + thread + SORT_CHUNK / 2] = keys[thread + SORT_CHUNK / 2];
}

__global__ void spmv(const int *starts, const int *columns, const float *values, const float *x, float *y, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = starts[row]; i < starts[row + 1]; i++)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}

#ifndef __HIP__  // its instruction is NVIDIA's
// Pairs of halves as words: `a` by rows, `b` by columns. Four warps, 64x64 elements; a warp has 32x32 of them.
__global__ void hgemm_mma(const uint32_t *a, const uint32_t *b, float *c, int n)
{
    const int WIDE = 8, PITCH = WIDE + 4;  // words of 16 halves, and room that keeps columns in different banks
    __shared__ uint32_t tile_a[64][PITCH], tile_b[64][PITCH];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int group = lane / 4, pair = lane % 4, top = warp / 2 * 32, left = warp % 2 * 32;
    const int row = blockIdx.y * 64, column = blockIdx.x * 64;
    float sum[2][4][4] = {};
    for (int start = 0; start < n / 2; start += WIDE) {
        for (int i = thread; i < 64 * WIDE; i += 128) {
            tile_a[i / WIDE][i % WIDE] = a[(row + i / WIDE) * (n / 2) + start + i % WIDE];
            tile_b[i / WIDE][i % WIDE] = b[(column + i / WIDE) * (n / 2) + start + i % WIDE];
        }
        __syncthreads();
        for (int i = 0; i < 2; i++) {
            const int r = top + i * 16 + group;
            const uint32_t a0 = tile_a[r][pair], a1 = tile_a[r + 8][pair], a2 = tile_a[r][pair + 4], a3 = tile_a[r + 8][pair + 4];
            for (int j = 0; j < 4; j++) {
                const int s = left + j * 8 + group;
                const uint32_t b0 = tile_b[s][pair], b1 = tile_b[s][pair + 4];
                float *d = sum[i][j];
                asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                    : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            const int r = row + top + i * 16 + group, s = column + left + j * 8 + pair * 2;
            c[r * n + s] = sum[i][j][0];
            c[r * n + s + 1] = sum[i][j][1];
            c[(r + 8) * n + s] = sum[i][j][2];
            c[(r + 8) * n + s + 1] = sum[i][j][3];
        }
}
#endif

__global__ void tex_bilinear(cudaTextureObject_t image, float *out, int n)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n)
        out[y * n + x] = tex2D<float>(image, IMAGE_X(x, y), IMAGE_Y(x, y));
}

__global__ void tex_point(cudaTextureObject_t image, uchar4 *out, int n)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) {
        const uchar4 texel = tex2D<uchar4>(image, IMAGE_X(x, y), IMAGE_Y(x, y));
        out[y * n + x] = make_uchar4(texel.w, texel.z, texel.y, texel.x);
    }
}

__global__ void tex_trilinear(cudaTextureObject_t volume, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex3D<float>(volume, (i % 256 + 0.25f) / 256, (i / 256 % 256 + 0.25f) / 256, (i / 65536 + 0.25f) / 64);
}

__global__ void md5(uint32_t *hashes, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const uint32_t message[16] = HASH_MESSAGE_MD5(i);
    hashes[i] = md5_of(message);
}

__global__ void sha256(uint32_t *hashes, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint32_t message[16] = HASH_MESSAGE(uint32_t, i);
    hashes[i] = sha256_of(message);
}

__global__ void sha512(uint64_t *hashes, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint64_t message[16] = HASH_MESSAGE(uint64_t, i);
    hashes[i] = sha512_of(message);
}

// A row of the matrix by a block, two columns at a time by each thread.
__global__ void matvec_half(const half2 *matrix, const float2 *x, float *y, int pairs)
{
    __shared__ float part[BLOCK / 32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const half2 *row = matrix + blockIdx.x * pairs;
    float sum = 0;
    for (int i = threadIdx.x; i < pairs; i += BLOCK) {
        const float2 left = __half22float2(row[i]), right = x[i];
        sum += left.x * right.x + left.y * right.y;
    }
    sum = warp_sum(sum);
    if (lane == 0)
        part[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < BLOCK / 32 ? part[lane] : 0);
        if (lane == 0)
            y[blockIdx.x] = sum;
    }
}
