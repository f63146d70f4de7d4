// Rows of a language model's kernels, one token at a time, as llama.cpp's are built: quantised weights read by 16-bit words,
// products of four bytes, shuffles within warps. The formats are its `q4_0`, `q4_K` and, for what they are multiplied with, `q8_1`.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include "sizes.h"

// 32 weights: the low halves of the bytes, then the high ones, less 8, each by the scale.
struct WeightsQ4 {
    half scale;
    uint8_t quants[16];
};

// 256 weights in eight runs of 32: d · scale · quant − dmin · min, the runs' scales and mins of 6 bits.
struct WeightsQ4K {
    half2 d_dmin;
    uint8_t scales[12];
    uint8_t quants[128];
};

// 32 values: the scale, and the scale times the sum of all.
struct ValuesQ8 {
    half2 scale_sum;
    int8_t quants[32];
};

// A block's memory is aligned to two bytes only.
__device__ int word_of_halves(const uint8_t *bytes, int i)
{
    const uint16_t *halves = reinterpret_cast<const uint16_t *>(bytes);
    return halves[2 * i] | halves[2 * i + 1] << 16;
}

__device__ int word_of(const void *bytes, int i) { return static_cast<const int *>(bytes)[i]; }

template <int WIDTH>
__device__ float lanes_sum(float value)
{
    for (int step = WIDTH / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ float lanes_max(float value)
{
    for (int step = 16; step > 0; step /= 2)
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// The sum of MATVEC_WARPS warps' values, in the first warp's first lane; the others are done.
__device__ void store_row(float value, float *y)
{
    __shared__ float part[MATVEC_WARPS - 1][32];
    if (threadIdx.y > 0)
        part[threadIdx.y - 1][threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.y > 0)
        return;
    for (int warp = 0; warp < MATVEC_WARPS - 1; warp++)
        value += part[warp][threadIdx.x];
    value = lanes_sum<32>(value);
    if (threadIdx.x == 0)
        y[blockIdx.x] = value;
}

// A row by a block of four warps, 16 weights by each thread.
__global__ void matvec_q4(const WeightsQ4 *matrix, const ValuesQ8 *x, float *y, int blocks)
{
    const int thread = threadIdx.y * 32 + threadIdx.x, first = thread % 2 * 2;
    const WeightsQ4 *row = matrix + blockIdx.x * blocks;
    float total = 0;
    for (int i = thread / 2; i < blocks; i += MATVEC_WARPS * 16) {
        int dot = 0;
#pragma unroll
        for (int k = first; k < first + 2; k++) {
            const int quants = word_of_halves(row[i].quants, k);
            dot = __dp4a(quants & 0x0f0f0f0f, word_of(x[i].quants, k), dot);
            dot = __dp4a(quants >> 4 & 0x0f0f0f0f, word_of(x[i].quants, k + 4), dot);
        }
        const float2 scale_sum = __half22float2(x[i].scale_sum);
        total += __half2float(row[i].scale) * (dot * scale_sum.x - 4 * scale_sum.y);
    }
    store_row(total, y);
}

// The same, 16 weights of two neighbouring runs by each thread.
__global__ void matvec_q4k(const WeightsQ4K *matrix, const ValuesQ8 *x, float *y, int blocks)
{
    const int thread = threadIdx.y * 32 + threadIdx.x, pair = thread % 16 / 4, first = thread % 4;
    const WeightsQ4K *row = matrix + blockIdx.x * blocks;
    float total = 0;
    for (int i = thread / 16; i < blocks; i += MATVEC_WARPS * 2) {
        const int low = word_of(row[i].quants, pair * 8 + first), high = word_of(row[i].quants, pair * 8 + first + 4);
        const uint16_t *packed = reinterpret_cast<const uint16_t *>(row[i].scales);
        uint16_t runs[2];  // the two scales, the two mins
        if (pair < 2) {
            runs[0] = packed[pair] & 0x3f3f;
            runs[1] = packed[pair + 2] & 0x3f3f;
        } else {
            runs[0] = (packed[pair + 2] & 0x0f0f) | (packed[pair - 2] & 0xc0c0) >> 2;
            runs[1] = (packed[pair + 2] >> 4 & 0x0f0f) | (packed[pair] & 0xc0c0) >> 2;
        }
        const uint8_t *scales = reinterpret_cast<const uint8_t *>(runs), *mins = scales + 2;
        float products = 0, sums = 0;
#pragma unroll
        for (int run = 0; run < 2; run++) {
            const ValuesQ8 *values = x + i * 8 + pair * 2 + run;
            const int left = word_of(values->quants, first), right = word_of(values->quants, first + 4);
            const float scale = __low2float(values->scale_sum);
            const int dot = __dp4a(high >> 4 * run & 0x0f0f0f0f, right, __dp4a(low >> 4 * run & 0x0f0f0f0f, left, 0));
            products += scale * (dot * scales[run]);
            sums += scale * (__dp4a(0x01010101, right, __dp4a(0x01010101, left, 0)) * mins[run]);
        }
        const float2 d_dmin = __half22float2(row[i].d_dmin);
        total += d_dmin.x * products - d_dmin.y * sums;
    }
    store_row(total, y);
}

// What `join` makes of all threads' values, for all of them; `part` is free again.
template <typename Join>
__device__ float of_block(float value, float *part, float none, Join join)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = join(value);
    if (lane == 0)
        part[warp] = value;
    __syncthreads();
    value = join(lane < BLOCK / 32 ? part[lane] : none);
    __syncthreads();
    return value;
}

// A row by a block.
__global__ void softmax(const float *in, float *out, int columns, float scale)
{
    extern __shared__ float values[];
    __shared__ float part[BLOCK / 32];
    const float *row = in + blockIdx.x * columns;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        values[i] = row[i] * scale;
        most = fmaxf(most, values[i]);
    }
    most = of_block(most, part, -INFINITY, [](float value) { return lanes_max(value); });
    for (int i = threadIdx.x; i < columns; i += BLOCK) {
        values[i] = expf(values[i] - most);
        sum += values[i];
    }
    const float share = 1 / of_block(sum, part, 0, [](float value) { return lanes_sum<32>(value); });
    for (int i = threadIdx.x; i < columns; i += BLOCK)
        out[blockIdx.x * columns + i] = values[i] * share;
}

// One query by a block of four warps, in one pass over the keys, 32 of them by each warp at a time: eight lanes for a key, then the
// sums that are there are brought to the new maximum, and each lane adds four elements of the values.
__global__ void attention(const float *queries, const half *keys, const half *values, float *out, int count, float scale)
{
    __shared__ float shared[4][ATTENTION_WIDTH + 2];
    __shared__ float weights[4][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = lane % 8;
    const half2 *key = reinterpret_cast<const half2 *>(keys + blockIdx.x * count * ATTENTION_WIDTH);
    const half2 *value = reinterpret_cast<const half2 *>(values + blockIdx.x * count * ATTENTION_WIDTH);
    float2 query[ATTENTION_WIDTH / 16], sums[2] = {{0, 0}, {0, 0}};
#pragma unroll
    for (int i = 0; i < ATTENTION_WIDTH / 16; i++) {
        query[i] = reinterpret_cast<const float2 *>(queries + blockIdx.x * ATTENTION_WIDTH)[i * 8 + part];
        query[i].x *= scale;
        query[i].y *= scale;
    }
    float most = -INFINITY, total = 0;
    for (int start = warp * 32; start < count; start += 128) {
        float mine = 0;
#pragma unroll
        for (int k = 0; k < 32; k += 4) {
            const half2 *at = key + (start + k + lane / 8) * (ATTENTION_WIDTH / 2);
            float dot = 0;
#pragma unroll
            for (int i = 0; i < ATTENTION_WIDTH / 16; i++) {
                const float2 both = __half22float2(at[i * 8 + part]);
                dot += both.x * query[i].x + both.y * query[i].y;
            }
            dot = lanes_sum<8>(dot);
            if (part == k / 4)
                mine = dot;
        }
        const float now = fmaxf(most, lanes_max(mine)), less = expf(most - now), weight = expf(mine - now);
        most = now;
        total = total * less + weight;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            sums[i].x *= less;
            sums[i].y *= less;
        }
        weights[warp][part * 4 + lane / 8] = weight;
        __syncwarp();
#pragma unroll 8
        for (int k = 0; k < 32; k++) {
            const half2 *at = value + (start + k) * (ATTENTION_WIDTH / 2) + lane * 2;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const float2 both = __half22float2(at[i]);
                sums[i].x += weights[warp][k] * both.x;
                sums[i].y += weights[warp][k] * both.y;
            }
        }
        __syncwarp();
    }
    total = lanes_sum<32>(total);
    shared[warp][lane * 4] = sums[0].x;
    shared[warp][lane * 4 + 1] = sums[0].y;
    shared[warp][lane * 4 + 2] = sums[1].x;
    shared[warp][lane * 4 + 3] = sums[1].y;
    if (lane == 0) {
        shared[warp][ATTENTION_WIDTH] = most;
        shared[warp][ATTENTION_WIDTH + 1] = total;
    }
    __syncthreads();
    most = shared[0][ATTENTION_WIDTH];
    for (int other = 1; other < 4; other++)
        most = fmaxf(most, shared[other][ATTENTION_WIDTH]);
    float sum = 0, all = 0;
    for (int other = 0; other < 4; other++) {
        const float share = expf(shared[other][ATTENTION_WIDTH] - most);
        sum += share * shared[other][threadIdx.x];
        all += share * shared[other][ATTENTION_WIDTH + 1];
    }
    out[blockIdx.x * ATTENTION_WIDTH + threadIdx.x] = sum / all;
}
