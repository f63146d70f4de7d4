// Products of matrices of any types and strides: a block makes 64 rows by 64 columns, a thread 4 by 4 of them. Sums are in `float`.

#include "tiles.cuh"

struct Product {
    // a, b, what is given; how many rows and columns there are and how many products a sum has, in each of a batch: what is beyond is 0.
    Tensor tensors[6];
    // Which matrices: outer places.
    Sizes batch;
    u32 rows;
    u32 columns;
    u32 depth;
    // The factor of the product, and of what lay there before.
    float by;
    float before;
};

// The inner places are rows and columns.
static __device__ i64 at(const Tensor &tensor, u32 row, u32 column)
{
    return row * tensor.inner[0] + column * tensor.inner[1];
}

static __device__ u32 limited(const Tensor &limit, i64 offset, u32 size)
{
    if (limit.kind == NONE)
        return size;
    float most = load(limit, offset);
    return most <= 0.0f ? 0 : most < (float)size ? (u32)most : size;
}

extern "C" __global__ void product(Product how)
{
    __shared__ float left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    const Tensor &a = how.tensors[0], &b = how.tensors[1], &c = how.tensors[2];
    u32 first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    for (u32 matrix = blockIdx.z; matrix < how.batch.count; matrix += gridDim.z) {
        Offsets<6> first = offsets<6, false>(how.batch, how.tensors, matrix);
        u32 rows = limited(how.tensors[3], first.of[3], how.rows), columns = limited(how.tensors[4], first.of[4], how.columns);
        u32 depth = limited(how.tensors[5], first.of[5], how.depth);
        float sums[SIDE][SIDE] = {};
        for (u32 begin = 0; begin < depth; begin += DEPTH) {
            for (u32 number = threadIdx.x; number < TILE * DEPTH; number += blockDim.x) {
                // Threads follow each other along what lies together.
                bool is_deep = a.inner[1] == 1;
                u32 row = is_deep ? number / DEPTH : number % TILE, k = is_deep ? number % DEPTH : number / TILE;
                bool is_there = first_row + row < rows && begin + k < depth;
                left[k][row] = is_there ? load(a, first.of[0] + at(a, first_row + row, begin + k)) : 0.0f;
                is_deep = b.inner[0] == 1;
                row = is_deep ? number / DEPTH : number % TILE, k = is_deep ? number % DEPTH : number / TILE;
                is_there = first_column + row < columns && begin + k < depth;
                right[k][row] = is_there ? load(b, first.of[1] + at(b, begin + k, first_column + row)) : 0.0f;
            }
            __syncthreads();
            multiply(left, right, sums);
            __syncthreads();
        }
        auto to = [&](u32 row, u32 column) { return first.of[2] + at(c, row, column); };
        give(c, first_row, first_column, how.rows, how.columns, sums, how.by, how.before, to);
    }
}
