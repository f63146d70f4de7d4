// What cuDNN's kernels take: tensors of any type and strides, and the places that a launch goes over.
//
// Each .ptx file here is what nvcc makes of the .cu file beside it (`cargo xtask test --only dnn` makes it anew and compares). No
// product is fused with a sum unless it says so (-fmad=false), and no function of the toolchain's libraries is called. The structures
// are those of crates/libraries/cudnn/api/src/kernels/tensor.rs.

#pragma once

#include "functions.cuh"

typedef long long i64;

// The most sizes that a launch goes over.
const int MOST = 8;

enum Kind {
    F32, F64, F16, BF16, E4M3, E5M2, I8, U8, I32, I64, BOOL,
    // No memory: a number.
    NUMBER,
    // No memory: the sum of each place times its stride.
    PLACE,
    // Nothing is there.
    NONE,
};

// How far apart elements are along the places that a launch goes over, and along those that a sum goes over.
struct Tensor {
    // An address, or a number's bits.
    u64 at;
    u32 kind;
    u32 unused;
    i64 outer[MOST];
    i64 inner[MOST];
};

// The last is the innermost.
struct Sizes {
    u32 count;
    u32 n;
    u32 of[MOST];
};

// Each thread's numbers of so many. 64 bits: a sum with the step may be more than 32.
#define FOR_NUMBERS(count, number) \
    for (u64 number = blockIdx.x * blockDim.x + threadIdx.x; number < (count); number += gridDim.x * blockDim.x)

// The distances of `N` tensors to the elements at one of the places.
template <int N> struct Offsets {
    i64 of[N];
};

template <int N, bool IS_INNER>
static __device__ Offsets<N> offsets(const Sizes &sizes, const Tensor *tensors, u32 number)
{
    Offsets<N> found;
#pragma unroll
    for (int k = 0; k < N; k++)
        found.of[k] = 0;
    for (int axis = (int)sizes.n - 1; axis >= 0; axis--) {
        u32 size = sizes.of[axis], left = number / size;
        i64 place = number - left * size;
        number = left;
#pragma unroll
        for (int k = 0; k < N; k++)
            found.of[k] += place * (IS_INNER ? tensors[k].inner[axis] : tensors[k].outer[axis]);
    }
    return found;
}

// ---- Elements. Numbers become the nearest of the type's, ties to even, and those beyond the last become that.

static __device__ float of_half(unsigned short bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

static __device__ unsigned short to_half(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

static __device__ unsigned short to_bfloat(float value)
{
    u32 bits = __float_as_uint(value);
    if (value != value)
        return (bits >> 16) | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Floats of 8 bits, of which `FRACTION` are the fraction and the others but one the exponent.
template <int FRACTION> static __device__ float of_eight(unsigned char bits)
{
    const int BIAS = FRACTION == 3 ? 7 : 15;
    const u32 LARGEST = FRACTION == 3 ? 0x7e : 0x7b;
    u32 size = bits & 0x7f, exponent = size >> FRACTION;
    float value;
    if (size > LARGEST)
        // E5M2 has an infinity in front of its NaN.
        value = __uint_as_float(FRACTION == 2 && size == 0x7c ? 0x7f800000 : 0x7fc00000);
    else if (exponent == 0)
        value = (float)size * __uint_as_float((u32)(1 - BIAS - FRACTION + 127) << 23);
    else
        value = __uint_as_float((size << (23 - FRACTION)) + ((u32)(127 - BIAS) << 23));
    return bits & 0x80 ? -value : value;
}

template <int FRACTION> static __device__ unsigned char to_eight(float value)
{
    const int BIAS = FRACTION == 3 ? 7 : 15;
    const u32 LARGEST = FRACTION == 3 ? 0x7e : 0x7b;
    u32 bits = __float_as_uint(value), sign = bits >> 24 & 0x80, size = bits & 0x7fffffff;
    if (size > 0x7f800000)
        return sign | 0x7f;
    u32 found;
    if (size < (u32)(128 - BIAS) << 23) {
        // A multiple of the least number: a sum with 1.5 * 2^23 has its last place at 1.
        float multiple = __uint_as_float(size) * __uint_as_float((u32)(BIAS - 1 + FRACTION + 127) << 23);
        found = __float_as_uint(multiple + 12582912.0f) - __float_as_uint(12582912.0f);
    } else {
        const int DROPPED = 23 - FRACTION;
        size += (1u << (DROPPED - 1)) - 1 + (size >> DROPPED & 1);
        found = (size - ((u32)(127 - BIAS) << 23)) >> DROPPED;
    }
    return sign | (found < LARGEST ? found : LARGEST);
}

// A float's value in a type of whole numbers.
template <class T> static __device__ T to_whole(float value, double least, double most)
{
    double whole = nearest((double)value);
    // A NaN is 0.
    if (whole != whole)
        return 0;
    if (whole <= least)
        return (T)least;
    return whole >= most ? (T)most : (T)whole;
}

static __device__ float load(const Tensor &tensor, i64 offset)
{
    switch (tensor.kind) {
    case F32:
        return ((const float *)tensor.at)[offset];
    case F64:
        return (float)((const double *)tensor.at)[offset];
    case F16:
        return of_half(((const unsigned short *)tensor.at)[offset]);
    case BF16:
        return __uint_as_float((u32)((const unsigned short *)tensor.at)[offset] << 16);
    case E4M3:
        return of_eight<3>(((const unsigned char *)tensor.at)[offset]);
    case E5M2:
        return of_eight<2>(((const unsigned char *)tensor.at)[offset]);
    case I8:
        return (float)((const signed char *)tensor.at)[offset];
    case U8:
        return (float)((const unsigned char *)tensor.at)[offset];
    case I32:
        return (float)((const int *)tensor.at)[offset];
    case I64:
        return (float)(double)((const i64 *)tensor.at)[offset];
    case BOOL:
        return ((const unsigned char *)tensor.at)[offset] ? 1.0f : 0.0f;
    case NUMBER:
        return __uint_as_float((u32)tensor.at);
    case PLACE:
        return (float)(i64)(tensor.at + offset);
    default:
        return 0.0f;
    }
}

static __device__ void store(const Tensor &tensor, i64 offset, float value)
{
    switch (tensor.kind) {
    case F32:
        ((float *)tensor.at)[offset] = value;
        break;
    case F64:
        ((double *)tensor.at)[offset] = value;
        break;
    case F16:
        ((unsigned short *)tensor.at)[offset] = to_half(value);
        break;
    case BF16:
        ((unsigned short *)tensor.at)[offset] = to_bfloat(value);
        break;
    case E4M3:
        ((unsigned char *)tensor.at)[offset] = to_eight<3>(value);
        break;
    case E5M2:
        ((unsigned char *)tensor.at)[offset] = to_eight<2>(value);
        break;
    case I8:
        ((signed char *)tensor.at)[offset] = to_whole<signed char>(value, -128.0, 127.0);
        break;
    case U8:
        ((unsigned char *)tensor.at)[offset] = to_whole<unsigned char>(value, 0.0, 255.0);
        break;
    case I32:
        ((int *)tensor.at)[offset] = to_whole<int>(value, -2147483648.0, 2147483647.0);
        break;
    case I64:
        ((i64 *)tensor.at)[offset] = value >= 0x1p63f ? 0x7fffffffffffffffll : to_whole<i64>(value, -0x1p63, 0x1p63);
        break;
    case BOOL:
        ((unsigned char *)tensor.at)[offset] = value != 0.0f;
        break;
    }
}

// ---- Functions of floats.

// What e^r, r up to half of ln 2, is more than 1 + r, by r * r. The names and numbers are those of
// crates/libraries/cudnn/cpu/src/elementary.rs.
static __device__ float curve(float r)
{
    float q = 0.008368852f + r * 0.0013814312f;
    q = 0.0416684f + r * q;
    q = 0.1666652f + r * q;
    return 0.49999994f + r * q;
}

static __device__ float two_to(int n)
{
    return __uint_as_float((u32)(n + 127) << 23);
}

static __device__ float power(float x)
{
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    const float MAGIC = 12582912.0f;
    float shifted = x * 1.44269504f + MAGIC, n = shifted - MAGIC;
    float r = (x - n * 0.6933594f) - n * -0.00021219444f;
    int whole = (int)(__float_as_uint(shifted) - __float_as_uint(MAGIC)), half = whole >> 1;
    float near = 1.0f + r + r * r * curve(r);
    return near * two_to(half) * two_to(whole - half);
}

// Of any number but less than 0, which has none.
static __device__ double logarithm_of_any(double x)
{
    double infinity = __longlong_as_double(0x7ff0000000000000ull);
    if (!(x > 0.0))
        return x == 0.0 ? -infinity : infinity - infinity;
    return x < infinity ? logarithm(x) : x;
}

static __device__ float absolute(float x)
{
    return __uint_as_float(__float_as_uint(x) & 0x7fffffff);
}

static __device__ float with_sign_of(float x, float sign)
{
    return __uint_as_float((__float_as_uint(x) & 0x7fffffff) | (__float_as_uint(sign) & 0x80000000));
}

static __device__ float hyperbolic_tangent(float x)
{
    float z = x * x, far = 1.0f - 2.0f / (power(2.0f * absolute(x)) + 1.0f);
    float q = 0.02058979f + z * -0.005648282f;
    q = -0.053725116f + z * q;
    q = 0.13331275f + z * q;
    q = -0.33333275f + z * q;
    float size = absolute(x) < 0.6f ? absolute(x) + absolute(x) * (z * q) : far;
    return with_sign_of(x != x ? x : size, x);
}

static __device__ float sigmoid(float x)
{
    return 1.0f / (1.0f + power(-x));
}
