// What products of matrices and convolutions have in common: a block makes 64 rows by 64 columns, a thread 4 by 4 of them.

#pragma once

#include "tensors.cuh"

const int TILE = 64;
const int DEPTH = 16;
const int SIDE = 4;

// Adds the products of what stands in shared memory to the thread's sums: of four rows that follow each other and every sixteenth column.
static __device__ __forceinline__ void multiply(const float (&left)[DEPTH][TILE + 1], const float (&right)[DEPTH][TILE + 1], float (&sums)[SIDE][SIDE])
{
    u32 x = threadIdx.x % (TILE / SIDE), y = threadIdx.x / (TILE / SIDE);
#pragma unroll
    for (int k = 0; k < DEPTH; k++)
#pragma unroll
        for (int i = 0; i < SIDE; i++)
#pragma unroll
            for (int j = 0; j < SIDE; j++)
                sums[i][j] = __fmaf_rn(left[k][y * SIDE + i], right[k][x + j * (TILE / SIDE)], sums[i][j]);
}

// Writes the thread's sums of a tile that begins there, of so many rows and columns in all: `at` says where an element lies.
template <class At>
static __device__ __forceinline__ void give(const Tensor &to, u32 first_row, u32 first_column, u32 rows, u32 columns, const float (&sums)[SIDE][SIDE],
                                            float by, float before, At at)
{
    u32 x = threadIdx.x % (TILE / SIDE), y = threadIdx.x / (TILE / SIDE);
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            u32 row = first_row + y * SIDE + i, column = first_column + x + j * (TILE / SIDE);
            if (row >= rows || column >= columns)
                continue;
            i64 offset = at(row, column);
            float value = by * sums[i][j];
            if (before != 0.0f)
                value += before * load(to, offset);
            store(to, offset, value);
        }
}
