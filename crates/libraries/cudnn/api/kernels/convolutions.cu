// Convolutions and their gradients of any types and strides, as products of matrices whose elements are looked up: a block makes 64 rows
// by 64 columns of a group, a thread 4 by 4 of them. Sums are in `float`.

#include "tiles.cuh"

// Of images, filters and results the outer strides are those of their five sizes: of images and results the image, the channel and three
// of its own, of filters the filter, the channel and three of its taps.
struct Convolution {
    Tensor x;
    Tensor w;
    Tensor y;
    u32 images;
    u32 groups;
    // Of a group.
    u32 channels;
    u32 filters;
    u32 input[3];
    u32 taps[3];
    u32 output[3];
    int padding[3];
    u32 stride[3];
    u32 dilation[3];
    // Whether taps are in the opposite order.
    u32 is_flipped;
    // The factor of the result, and of what lay there before.
    float by;
    float before;
};

// A place of up to three sizes.
struct Place {
    u32 of[3];
};

// Takes the place along these sizes off a number, which is what is left then.
static __device__ Place place(u32 &number, const u32 *sizes)
{
    Place found;
#pragma unroll
    for (int axis = 2; axis >= 0; axis--) {
        u32 left = number / sizes[axis];
        found.of[axis] = number - left * sizes[axis];
        number = left;
    }
    return found;
}

static __device__ i64 offset(const Tensor &tensor, u32 first, u32 second, const Place &at)
{
    i64 found = first * tensor.outer[0] + second * tensor.outer[1];
#pragma unroll
    for (int axis = 0; axis < 3; axis++)
        found += at.of[axis] * tensor.outer[2 + axis];
    return found;
}

// Where a filter's tap lies.
static __device__ i64 tap_at(const Convolution &how, u32 group, u32 k, u32 c, Place tap)
{
#pragma unroll
    for (int axis = 0; axis < 3; axis++)
        if (how.is_flipped)
            tap.of[axis] = how.taps[axis] - 1 - tap.of[axis];
    return offset(how.w, group * how.filters + k, c, tap);
}

static __device__ float filter(const Convolution &how, u32 group, u32 k, u32 c, const Place &tap)
{
    return load(how.w, tap_at(how, group, k, c, tap));
}

// The image's element under a tap of a result's window; 0 in the padding.
static __device__ float image(const Convolution &how, u32 group, u32 n, u32 c, const Place &result, const Place &tap)
{
    Place at;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        u32 found = result.of[axis] * how.stride[axis] + tap.of[axis] * how.dilation[axis] - (u32)how.padding[axis];
        if (found >= how.input[axis])
            return 0.0f;
        at.of[axis] = found;
    }
    return load(how.x, offset(how.x, n, group * how.channels + c, at));
}

// The result whose window has the image's element under the tap; 0 where there is none.
static __device__ float result(const Convolution &how, u32 group, u32 n, u32 k, const Place &element, const Place &tap)
{
    Place at;
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        u32 far = element.of[axis] + (u32)how.padding[axis] - tap.of[axis] * how.dilation[axis];
        u32 found = far / how.stride[axis];
        if ((int)far < 0 || found * how.stride[axis] != far || found >= how.output[axis])
            return 0.0f;
        at.of[axis] = found;
    }
    return load(how.y, offset(how.y, n, group * how.filters + k, at));
}

// Filters by the elements under their taps.
struct Forward {
    static __device__ u32 rows(const Convolution &how) { return how.filters; }
    static __device__ u32 columns(const Convolution &how) { return how.images * how.output[0] * how.output[1] * how.output[2]; }
    static __device__ u32 depth(const Convolution &how) { return how.channels * how.taps[0] * how.taps[1] * how.taps[2]; }
    static __device__ float left(const Convolution &how, u32 group, u32 row, u32 k)
    {
        Place tap = place(k, how.taps);
        return filter(how, group, row, k, tap);
    }
    static __device__ float right(const Convolution &how, u32 group, u32 k, u32 column)
    {
        Place tap = place(k, how.taps), at = place(column, how.output);
        return image(how, group, column, k, at, tap);
    }
    static __device__ const Tensor &to(const Convolution &how) { return how.y; }
    static __device__ i64 at(const Convolution &how, u32 group, u32 row, u32 column)
    {
        Place at = place(column, how.output);
        return offset(how.y, column, group * how.filters + row, at);
    }
};

// Filters by the results that an element is in.
struct Data {
    static __device__ u32 rows(const Convolution &how) { return how.channels; }
    static __device__ u32 columns(const Convolution &how) { return how.images * how.input[0] * how.input[1] * how.input[2]; }
    static __device__ u32 depth(const Convolution &how) { return how.filters * how.taps[0] * how.taps[1] * how.taps[2]; }
    static __device__ float left(const Convolution &how, u32 group, u32 row, u32 k)
    {
        Place tap = place(k, how.taps);
        return filter(how, group, k, row, tap);
    }
    static __device__ float right(const Convolution &how, u32 group, u32 k, u32 column)
    {
        Place tap = place(k, how.taps), at = place(column, how.input);
        return result(how, group, column, k, at, tap);
    }
    static __device__ const Tensor &to(const Convolution &how) { return how.x; }
    static __device__ i64 at(const Convolution &how, u32 group, u32 row, u32 column)
    {
        Place at = place(column, how.input);
        return offset(how.x, column, group * how.channels + row, at);
    }
};

// Results by the elements under a tap.
struct Filter {
    static __device__ u32 rows(const Convolution &how) { return how.filters; }
    static __device__ u32 columns(const Convolution &how) { return how.channels * how.taps[0] * how.taps[1] * how.taps[2]; }
    static __device__ u32 depth(const Convolution &how) { return how.images * how.output[0] * how.output[1] * how.output[2]; }
    static __device__ float left(const Convolution &how, u32 group, u32 row, u32 k)
    {
        Place at = place(k, how.output);
        return load(how.y, offset(how.y, k, group * how.filters + row, at));
    }
    static __device__ float right(const Convolution &how, u32 group, u32 k, u32 column)
    {
        Place at = place(k, how.output), tap = place(column, how.taps);
        return image(how, group, k, column, at, tap);
    }
    static __device__ const Tensor &to(const Convolution &how) { return how.w; }
    static __device__ i64 at(const Convolution &how, u32 group, u32 row, u32 column)
    {
        Place tap = place(column, how.taps);
        return tap_at(how, group, row, column, tap);
    }
};

// Of external linkage: else the names of its memory in PTX follow the folder that this is compiled in.
template <class Of> __device__ __forceinline__ void convolve(const Convolution &how)
{
    __shared__ float left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];
    u32 rows = Of::rows(how), columns = Of::columns(how), depth = Of::depth(how), group = blockIdx.z;
    u32 first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    float sums[SIDE][SIDE] = {};
    for (u32 begin = 0; begin < depth; begin += DEPTH) {
        for (u32 number = threadIdx.x; number < TILE * DEPTH; number += blockDim.x) {
            // Filters' taps follow each other, and so do an image's elements.
            u32 row = number / DEPTH, k = number % DEPTH;
            bool is_there = first_row + row < rows && begin + k < depth;
            left[k][row] = is_there ? Of::left(how, group, first_row + row, begin + k) : 0.0f;
            row = number % TILE, k = number / TILE;
            is_there = first_column + row < columns && begin + k < depth;
            right[k][row] = is_there ? Of::right(how, group, begin + k, first_column + row) : 0.0f;
        }
        __syncthreads();
        multiply(left, right, sums);
        __syncthreads();
    }
    auto at = [&](u32 row, u32 column) { return Of::at(how, group, row, column); };
    give(Of::to(how), first_row, first_column, rows, columns, sums, how.by, how.before, at);
}

extern "C" __global__ void forward(Convolution how)
{
    convolve<Forward>(how);
}

extern "C" __global__ void backward_data(Convolution how)
{
    convolve<Data>(how);
}

extern "C" __global__ void backward_filter(Convolution how)
{
    convolve<Filter>(how);
}
