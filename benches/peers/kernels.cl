// The rows in OpenCL C: the CUDA kernels' twins, with the same `int` indices. Each row is built by itself, with ROW_name.
#include "sizes.h"
#include "transformer.cl"

#ifdef ROW_empty
__kernel void empty() {}
#endif

#ifdef ROW_vecadd
__kernel void vecadd(__global const float *a, __global const float *b, __global float *c, int n)
{
    const int i = get_global_id(0);
    if (i < n)
        c[i] = a[i] + b[i];
}
#endif

#ifdef ROW_saxpy
__kernel void saxpy(float a, __global const float *x, __global float *y, int n)
{
    const int i = get_global_id(0);
    if (i < n)
        y[i] = a * x[i] + y[i];
}
#endif

#ifdef ROW_sgemm_tiled
__kernel void sgemm_tiled(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float tile_a[GEMM_TILE][GEMM_TILE], tile_b[GEMM_TILE][GEMM_TILE];
    const int tx = get_local_id(0), ty = get_local_id(1);
    const int row = get_group_id(1) * GEMM_TILE + ty, column = get_group_id(0) * GEMM_TILE + tx;
    float sum = 0;
    for (int start = 0; start < n; start += GEMM_TILE) {
        tile_a[ty][tx] = a[row * n + start + tx];
        tile_b[ty][tx] = b[(start + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < GEMM_TILE; k++)
            sum += tile_a[ty][k] * tile_b[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
#endif

#ifdef ROW_sgemm_blocked
__kernel void sgemm_blocked(__global const float *a, __global const float *b, __global float *c, int n)
{
    __local float tile_a[GEMM_STEP][GEMM_BLOCK], tile_b[GEMM_STEP][GEMM_BLOCK];
    const int tx = get_local_id(0), ty = get_local_id(1), thread = ty * 16 + tx;
    const int top = get_group_id(1) * GEMM_BLOCK, left = get_group_id(0) * GEMM_BLOCK;
    float sum[4][4] = {{0}};
    for (int start = 0; start < n; start += GEMM_STEP) {
        for (int i = thread; i < GEMM_BLOCK * GEMM_STEP; i += 256) {
            tile_a[i % GEMM_STEP][i / GEMM_STEP] = a[(top + i / GEMM_STEP) * n + start + i % GEMM_STEP];
            tile_b[i / GEMM_BLOCK][i % GEMM_BLOCK] = b[(start + i / GEMM_BLOCK) * n + left + i % GEMM_BLOCK];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
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
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            c[(top + ty * 4 + i) * n + left + tx * 4 + j] = sum[i][j];
}
#endif

#ifdef ROW_reduce_barrier
__kernel void reduce_barrier(__global const float *in, __global float *sums, int n)
{
    __local float part[BLOCK];
    const int i = get_global_id(0), thread = get_local_id(0);
    part[thread] = i < n ? in[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_way = get_local_size(0) / 2; half_way > 0; half_way /= 2) {
        if (thread < half_way)
            part[thread] += part[thread + half_way];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (thread == 0)
        sums[get_group_id(0)] = part[0];
}
#endif

#ifdef ROW_reduce_shuffle
// Sub-groups of 32 where the device has them, else of its own size: the same tree.
#ifdef WARP
__attribute__((intel_reqd_sub_group_size(WARP)))
#endif
__kernel void reduce_shuffle(__global const float *in, __global float *sums, int n)
{
    __local float part[BLOCK];
    const int i = get_global_id(0), lane = get_sub_group_local_id(), warp = get_sub_group_id();
    float value = i < n ? in[i] : 0;
    for (int step = get_sub_group_size() / 2; step > 0; step /= 2)
        value += intel_sub_group_shuffle_down(value, value, step);
    if (lane == 0)
        part[warp] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (warp == 0) {
        value = 0;
        for (int other = lane; other < get_num_sub_groups(); other += get_sub_group_size())
            value += part[other];
        for (int step = get_sub_group_size() / 2; step > 0; step /= 2)
            value += intel_sub_group_shuffle_down(value, value, step);
        if (lane == 0)
            sums[get_group_id(0)] = value;
    }
}
#endif

#ifdef ROW_nbody
__kernel void nbody(__global const float4 *bodies, __global float4 *pulls, int n)
{
    __local float4 tile[BLOCK];
    const int i = get_global_id(0);
    const float4 own = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int start = 0; start < n; start += BLOCK) {
        tile[get_local_id(0)] = bodies[start + (int)get_local_id(0)];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < BLOCK; k++) {
            const float4 other = tile[k];
            const float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
            const float inverse = rsqrt(dx * dx + dy * dy + dz * dz + SOFTENING);
            const float pull = other.w * inverse * inverse * inverse;
            x += dx * pull;
            y += dy * pull;
            z += dz * pull;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    pulls[i] = (float4)(x, y, z, 0);
}
#endif

#ifdef ROW_black_scholes
float normal_below(float x)
{
    const float k = 1 / (1 + 0.2316419f * fabs(x));
    const float sum = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float above = 0.39894228f * exp(-0.5f * x * x) * sum;
    return x > 0 ? 1 - above : above;
}

__kernel void black_scholes(__global const float *price, __global const float *strike, __global const float *years,
                            __global float *call, __global float *put, int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    const float s = price[i], x = strike[i], t = years[i];
    const float spread = VOLATILITY * sqrt(t);
    const float d1 = (log(s / x) + (RISKFREE + 0.5f * VOLATILITY * VOLATILITY) * t) / spread;
    const float below1 = normal_below(d1), below2 = normal_below(d1 - spread), now = x * exp(-RISKFREE * t);
    call[i] = s * below1 - now * below2;
    put[i] = now * (1 - below2) - s * (1 - below1);
}
#endif

#ifdef ROW_stencil
__kernel void stencil(__global const float *in, __global float *out, int n)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
        return;
    const int i = y * n + x;
    out[i] = in[i] + 0.25f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] - 4 * in[i]);
}
#endif

#ifdef ROW_histogram
__kernel void histogram(__global const uint *in, __global uint *bins, int n)
{
    __local uint part[256];
    const int thread = get_local_id(0), all = get_global_size(0);
    part[thread] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_global_id(0); i < n; i += all) {
        const uint four = in[i];
        atomic_add(&part[four & 255], 1u);
        atomic_add(&part[four >> 8 & 255], 1u);
        atomic_add(&part[four >> 16 & 255], 1u);
        atomic_add(&part[four >> 24], 1u);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&bins[thread], part[thread]);
}
#endif

#ifdef ROW_mandelbrot
__kernel void mandelbrot(__global int *counts, int n, int limit)
{
    const int x = get_global_id(0), y = get_global_id(1);
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
#endif

#ifdef ROW_transpose
__kernel void transpose(__global const float *in, __global float *out, int n)
{
    __local float tile[TRANSPOSE_TILE][TRANSPOSE_TILE + 1];
    const int x = get_group_id(0) * TRANSPOSE_TILE, y = get_group_id(1) * TRANSPOSE_TILE;
    const int tx = get_local_id(0), down = get_local_size(1);
    for (int j = get_local_id(1); j < TRANSPOSE_TILE; j += down)
        tile[j][tx] = in[(y + j) * n + x + tx];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = get_local_id(1); j < TRANSPOSE_TILE; j += down)
        out[(x + j) * n + y + tx] = tile[tx][j];
}
#endif

#ifdef ROW_scan
// Without shuffles and ballots the block's scan is a tree in local memory, and one work-item looks back.
__kernel void scan(__global const uint4 *in, __global uint4 *out, volatile __global uint *states)
{
    __local uint upto[2][BLOCK], before;
    __local int ticket;
    const int thread = get_local_id(0);
    if (thread == 0)
        ticket = atomic_add(states + SCAN_TILES, 1u);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int tile = ticket, at = tile * (SCAN_TILE / 4) + thread * 2;
    uint4 low = in[at], high = in[at + 1];
    low.y += low.x, low.z += low.y, low.w += low.z;
    high.x += low.w, high.y += high.x, high.z += high.y, high.w += high.z;
    upto[0][thread] = high.w;
    barrier(CLK_LOCAL_MEM_FENCE);
    int now = 0;
    for (int step = 1; step < BLOCK; step *= 2) {
        upto[1 - now][thread] = upto[now][thread] + (thread >= step ? upto[now][thread - step] : 0);
        now = 1 - now;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (thread == 0) {
        const uint total = upto[now][BLOCK - 1];
        atomic_xchg(states + tile, (tile == 0 ? SCAN_PREFIX : SCAN_SUM) | total);
        uint sum = 0;
        for (int other = tile - 1; other >= 0; other--) {
            uint state = 0;
            while (state == 0)
                state = states[other];
            sum += state & SCAN_VALUE;
            if (state & SCAN_PREFIX)
                break;
        }
        atomic_xchg(states + tile, SCAN_PREFIX | (sum + total));
        before = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint base = before + upto[now][thread] - high.w;
    out[at] = low + base;
    out[at + 1] = high + base;
}
#endif

#ifdef ROW_sort
__kernel void sort(__global const uint *in, __global uint *out)
{
    __local uint keys[SORT_CHUNK];
    const int thread = get_local_id(0), base = get_group_id(0) * SORT_CHUNK;
    keys[thread] = in[base + thread];
    keys[thread + SORT_CHUNK / 2] = in[base + thread + SORT_CHUNK / 2];
    for (int size = 2; size <= SORT_CHUNK; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            const int low = 2 * thread - (thread & (step - 1)), high = low + step;
            const uint a = keys[low], b = keys[high];
            if ((a > b) == ((low & size) == 0)) {
                keys[low] = b;
                keys[high] = a;
            }
        }
    barrier(CLK_LOCAL_MEM_FENCE);
    out[base + thread] = keys[thread];
    out[base + thread + SORT_CHUNK / 2] = keys[thread + SORT_CHUNK / 2];
}
#endif

#ifdef ROW_spmv
__kernel void spmv(__global const int *starts, __global const int *columns, __global const float *values, __global const float *x,
                   __global float *y, int rows)
{
    const int row = get_global_id(0);
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = starts[row]; i < starts[row + 1]; i++)
        sum += values[i] * x[columns[i]];
    y[row] = sum;
}
#endif

#ifdef ROW_tex_bilinear
__kernel void tex_bilinear(__read_only image2d_t image, __global float *out, int n)
{
    const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < n && y < n)
        out[y * n + x] = read_imagef(image, sampler, (float2)(IMAGE_X(x, y), IMAGE_Y(x, y))).x;
}
#endif

#ifdef ROW_tex_point
__kernel void tex_point(__read_only image2d_t image, __global uchar4 *out, int n)
{
    const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < n && y < n)
        out[y * n + x] = convert_uchar4(read_imageui(image, sampler, (float2)(IMAGE_X(x, y), IMAGE_Y(x, y)))).wzyx;
}
#endif

#ifdef ROW_tex_trilinear
__kernel void tex_trilinear(__read_only image3d_t volume, __global float *out, int n)
{
    const sampler_t sampler = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;
    const int i = get_global_id(0);
    if (i < n) {
        const float4 at = (float4)((i % 256 + 0.25f) / 256, (i / 256 % 256 + 0.25f) / 256, (i / 65536 + 0.25f) / 64, 0);
        out[i] = read_imagef(volume, sampler, at).x;
    }
}
#endif

#if defined(ROW_md5) || defined(ROW_sha256) || defined(ROW_sha512)
#define HASH_FUNCTION static inline
#define HASH_U32 uint
#define HASH_U64 ulong
#define HASH_U32_OF(number) (number)
#define HASH_U64_OF(number) (number)
#include "hash.h"
#endif

#ifdef ROW_md5
__kernel void md5(__global uint *hashes, int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    const uint message[16] = HASH_MESSAGE_MD5(i);
    hashes[i] = md5_of(message);
}
#endif

#ifdef ROW_sha256
__kernel void sha256(__global uint *hashes, int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    uint message[16] = HASH_MESSAGE(uint, i);
    hashes[i] = sha256_of(message);
}
#endif

#ifdef ROW_sha512
__kernel void sha512(__global ulong *hashes, int n)
{
    const int i = get_global_id(0);
    if (i >= n)
        return;
    ulong message[16] = HASH_MESSAGE(ulong, i);
    hashes[i] = sha512_of(message);
}
#endif

#ifdef ROW_matvec_half
__kernel void matvec_half(__global const half *matrix, __global const float2 *x, __global float *y, int pairs)
{
    __local float part[BLOCK];
    const int thread = get_local_id(0);
    __global const half *row = matrix + get_group_id(0) * pairs * 2;
    float sum = 0;
    for (int i = thread; i < pairs; i += BLOCK) {
        const float2 left = vload_half2(i, row), right = x[i];
        sum += left.x * right.x + left.y * right.y;
    }
    store_row(sum, part, BLOCK, y);
}
#endif
