// What kernels have that make one result of many elements: a block makes one result after the other, of the elements that lie along the
// inner places. The structure is that of crates/libraries/cudnn/api/src/kernels/rows.rs.

#pragma once

#include "tensors.cuh"

// Threads of a block.
const int THREADS = 256;

// The most tensors that are taken or given.
const int TENSORS = 12;

struct Rows {
    Tensor tensors[TENSORS];
    Sizes outer;
    Sizes inner;
    double numbers[4];
    u32 code;
    // Of the result and of what lay there before.
    float by;
    float before;
};

// Each block's results.
#define FOR_RESULTS(how, number) for (u64 number = blockIdx.x; number < how.outer.count; number += gridDim.x)
// Each thread's elements of a result.
#define FOR_ELEMENTS(how, number) for (u64 number = threadIdx.x; number < how.inner.count; number += THREADS)

static __device__ double infinity()
{
    return __longlong_as_double(0x7ff0000000000000ull);
}

struct Add {
    static __device__ double of(double a, double b) { return a + b; }
};

// NaN give way.
struct Largest {
    static __device__ double of(double a, double b) { return a > b || b != b ? a : b; }
};

// What all threads have together; each has it then. Of external linkage: else its memory's name in PTX follows the folder that this is
// compiled in.
template <class Fold> __device__ __forceinline__ double together(double own)
{
    __shared__ double all[THREADS];
    __syncthreads();
    all[threadIdx.x] = own;
    for (int left = THREADS / 2; left > 0; left /= 2) {
        __syncthreads();
        if (threadIdx.x < left)
            all[threadIdx.x] = Fold::of(all[threadIdx.x], all[threadIdx.x + left]);
    }
    __syncthreads();
    return all[0];
}

static __device__ void write(const Tensor &to, i64 offset, double value)
{
    if (to.kind == F64)
        ((double *)to.at)[offset] = value;
    else
        store(to, offset, (float)value);
}

// `by` times the value and `before` times what lay there.
static __device__ void blend(const Rows &how, const Tensor &to, i64 offset, double value)
{
    if (how.by != 1.0f)
        value *= (double)how.by;
    if (how.before != 0.0f)
        value += (double)(how.before * load(to, offset));
    write(to, offset, value);
}
