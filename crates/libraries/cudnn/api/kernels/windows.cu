// Pooling and its gradients, of any types and strides. Names and meanings are those of crates/libraries/cudnn/cpu/src/pooling.rs.

#include "tensors.cuh"

enum Mode {
    LARGEST,
    LARGEST_OR_NAN,
    // Divided by how many are inside or padding.
    MEAN_OF_ALL,
    // Divided by how many are inside.
    MEAN_OF_INSIDE,
};

// Tensors' outer strides are those of their five sizes: the image, the channel and three of its own.
struct Windows {
    Tensor x;
    // The way forward gives it, the way back takes it as the gradient.
    Tensor y;
    // Where in their windows the largest elements are, by lines; -1 where a window has none.
    Tensor places;
    u32 mode;
    u32 images;
    u32 channels;
    u32 input[3];
    u32 output[3];
    u32 window[3];
    int padding[3];
    u32 stride[3];
    // The factor of the result, and of what lay there before.
    float by;
    float before;
};

struct Place {
    u32 of[5];
};

// An element's place: image, channel and three sizes of its own.
static __device__ Place place(const Windows &how, const u32 *sizes, u32 number)
{
    Place found;
    for (int axis = 2; axis >= 0; axis--) {
        u32 left = number / sizes[axis];
        found.of[2 + axis] = number - left * sizes[axis];
        number = left;
    }
    found.of[0] = number / how.channels;
    found.of[1] = number - found.of[0] * how.channels;
    return found;
}

static __device__ i64 offset(const Tensor &tensor, const Place &at)
{
    i64 found = 0;
#pragma unroll
    for (int axis = 0; axis < 5; axis++)
        found += at.of[axis] * tensor.outer[axis];
    return found;
}

static __device__ u32 count(const Windows &how, const u32 *sizes)
{
    return how.images * how.channels * sizes[0] * sizes[1] * sizes[2];
}

// What a window has inside along a size: the first place in it, and the end.
struct Inside {
    int begin;
    int first;
    int end;
};

static __device__ Inside inside(const Windows &how, int axis, u32 output)
{
    Inside found;
    found.begin = (int)(output * how.stride[axis]) - how.padding[axis];
    int end = found.begin + (int)how.window[axis], most = (int)how.input[axis];
    found.end = end < 0 ? 0 : end < most ? end : most;
    found.first = found.begin < 0 ? 0 : found.begin < found.end ? found.begin : found.end;
    return found;
}

// How many places of a window count in a mean along a size; at least one.
static __device__ int counted(const Windows &how, int axis, const Inside &in)
{
    int end = in.begin + (int)how.window[axis], padded = (int)how.input[axis] + how.padding[axis];
    int found = how.mode == MEAN_OF_ALL ? (end < padded ? end : padded) - in.begin : in.end - in.first;
    return found > 1 ? found : 1;
}

static __device__ void blend(const Windows &how, const Tensor &to, i64 at, float value)
{
    value *= how.by;
    if (how.before != 0.0f)
        value += how.before * load(to, at);
    store(to, at, value);
}

extern "C" __global__ void pool(Windows how)
{
    u32 all = count(how, how.output);
    bool is_largest = how.mode <= LARGEST_OR_NAN, keeps_nan = how.mode == LARGEST_OR_NAN;
    FOR_NUMBERS(all, number)
    {
        Place at = place(how, how.output, (u32)number), from = at;
        Inside in[3];
        for (int axis = 0; axis < 3; axis++)
            in[axis] = inside(how, axis, at.of[2 + axis]);
        float best = is_largest ? -__uint_as_float(0x7f800000) : 0.0f;
        int found = -1;
        for (int d = in[0].first; d < in[0].end; d++)
            for (int h = in[1].first; h < in[1].end; h++)
                for (int w = in[2].first; w < in[2].end; w++) {
                    from.of[2] = d, from.of[3] = h, from.of[4] = w;
                    float x = load(how.x, offset(how.x, from));
                    if (!is_largest) {
                        best += x;
                        continue;
                    }
                    // The first one is taken even if it is no larger than nothing. A NaN is no larger, or the largest of all.
                    bool is_more = keeps_nan ? !(best >= x) && best == best : x > best || (found < 0 && x == best);
                    if (is_more || (found < 0 && keeps_nan)) {
                        best = x;
                        found = ((d - in[0].begin) * (int)how.window[1] + h - in[1].begin) * (int)how.window[2] + w - in[2].begin;
                    }
                }
        if (!is_largest && in[0].first < in[0].end && in[1].first < in[1].end)
            best /= (float)(counted(how, 0, in[0]) * counted(how, 1, in[1]) * counted(how, 2, in[2]));
        if (how.places.kind != NONE)
            store(how.places, offset(how.places, at), (float)found);
        if (how.y.kind != NONE)
            blend(how, how.y, offset(how.y, at), best);
    }
}

// The gradient of x, from those of all windows that have the element inside.
extern "C" __global__ void pool_backward(Windows how)
{
    u32 all = count(how, how.input);
    bool is_largest = how.mode <= LARGEST_OR_NAN;
    FOR_NUMBERS(all, number)
    {
        Place at = place(how, how.input, (u32)number), to = at;
        // Windows begin at or before the place and end behind it.
        u32 first[3], end[3];
        for (int axis = 0; axis < 3; axis++) {
            int padded = (int)at.of[2 + axis] + how.padding[axis], window = (int)how.window[axis], stride = (int)how.stride[axis];
            first[axis] = padded < window ? 0 : (u32)((padded - window) / stride + 1);
            u32 last = padded < 0 ? 0 : (u32)(padded / stride + 1);
            end[axis] = last < how.output[axis] ? last : how.output[axis];
        }
        float sum = 0.0f;
        for (u32 d = first[0]; d < end[0]; d++)
            for (u32 h = first[1]; h < end[1]; h++)
                for (u32 w = first[2]; w < end[2]; w++) {
                    Inside in[3] = {inside(how, 0, d), inside(how, 1, h), inside(how, 2, w)};
                    to.of[2] = d, to.of[3] = h, to.of[4] = w;
                    float dy = load(how.y, offset(how.y, to));
                    if (is_largest) {
                        int line = ((int)at.of[2] - in[0].begin) * (int)how.window[1] + (int)at.of[3] - in[1].begin;
                        int nth = line * (int)how.window[2] + (int)at.of[4] - in[2].begin;
                        if (load(how.places, offset(how.places, to)) == (float)nth)
                            sum += dy;
                    } else {
                        sum += dy / (float)(counted(how, 0, in[0]) * counted(how, 1, in[1]) * counted(how, 2, in[2]));
                    }
                }
        blend(how, how.x, offset(how.x, at), sum);
    }
}
