// Functions of doubles for the kernels of our libraries, which call none of the toolchain's. No product is fused with a sum unless it
// says so (-fmad=false).

#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

static __device__ double nearest(double x)
{
    double whole;
    asm("cvt.rni.f64.f64 %0, %1;" : "=d"(whole) : "d"(x));
    return whole;
}

// Of positive normal numbers, nearly always rounded correctly: in the tails what follows from it depends on each bit. With
// s = f / (2 + f), log(1 + f) is 2 s + 2 s^3 / 3 + 2 s^5 / 5 ...
static __device__ double logarithm(double x)
{
    u64 bits = __double_as_longlong(x);
    // The mantissa in [sqrt(1/2), sqrt(2)): 0x6a09e667f3bcd is that of sqrt(2).
    u64 mantissa = bits & 0x000fffffffffffffull;
    u32 upper = mantissa > 0x6a09e667f3bcdull;
    int power = (int)(bits >> 52) - 1023 + (int)upper;
    double f = __longlong_as_double(mantissa | (upper ? 0x3fe0000000000000ull : 0x3ff0000000000000ull)) - 1.0;
    // What s lacks: 1 / (2 + f) is (1 - s) / 2.
    double under = 2.0 + f, lacks = f - (under - 2.0);
    double s = f / under, rest = (__fma_rn(-s, under, f) - s * lacks) * (0.5 - 0.5 * s), z = s * s;
    double r = 2.0 / 23;
    r = __fma_rn(r, z, 2.0 / 21);
    r = __fma_rn(r, z, 2.0 / 19);
    r = __fma_rn(r, z, 2.0 / 17);
    r = __fma_rn(r, z, 2.0 / 15);
    r = __fma_rn(r, z, 2.0 / 13);
    r = __fma_rn(r, z, 2.0 / 11);
    r = __fma_rn(r, z, 2.0 / 9);
    r = __fma_rn(r, z, 2.0 / 7);
    r = __fma_rn(r, z, 2.0 / 5);
    r = __fma_rn(r, z, 2.0 / 3) * z;
    // log(2) in two parts, the first of which is exact in products with powers.
    double high = power * 0x1.62e42fee00000p-1, low = power * 0x1.a39ef35793c76p-33, twice = 2.0 * s;
    double sum = high + twice, lost = power ? (high - sum) + twice : 0.0;
    return sum + (lost + (low + __fma_rn(s, r, 2.0 * rest)));
}

static __device__ double exponential(double x)
{
    if (!(x < 709.8))
        return x != x ? x : __longlong_as_double(0x7ff0000000000000ull);
    if (x < -745.2)
        return 0.0;
    double power = nearest(x * 1.4426950408889634);
    double high = __fma_rn(power, -0x1.62e42fee00000p-1, x), low = power * 0x1.a39ef35793c76p-33;
    double r = high - low, error = (high - r) - low;
    double sum = 1.0 / 6227020800.0;
    sum = __fma_rn(sum, r, 1.0 / 479001600.0);
    sum = __fma_rn(sum, r, 1.0 / 39916800.0);
    sum = __fma_rn(sum, r, 1.0 / 3628800.0);
    sum = __fma_rn(sum, r, 1.0 / 362880.0);
    sum = __fma_rn(sum, r, 1.0 / 40320.0);
    sum = __fma_rn(sum, r, 1.0 / 5040.0);
    sum = __fma_rn(sum, r, 1.0 / 720.0);
    sum = __fma_rn(sum, r, 1.0 / 120.0);
    sum = __fma_rn(sum, r, 1.0 / 24.0);
    sum = __fma_rn(sum, r, 1.0 / 6.0);
    sum = __fma_rn(sum, r, 0.5);
    double one = 1.0 + r, value = one + ((1.0 - one) + r + __fma_rn(sum, r * r, error));
    // In two steps: the power alone may be no normal number.
    int whole = (int)power, first = whole / 2;
    double scale = __longlong_as_double((u64)(first + 1023) << 52);
    double rest = __longlong_as_double((u64)(whole - first + 1023) << 52);
    return value * scale * rest;
}

// Of angles from 0 to 2 pi.
static __device__ void sine_cosine(double angle, double *sine, double *cosine)
{
    double turns = nearest(angle * 0.6366197723675814);
    // A quarter of a turn in three parts; the first difference is exact.
    double near = __fma_rn(-turns, 0x1.921fb54442d18p+0, angle);
    double r = __fma_rn(-turns, 0x1.1a62633145c07p-54, near);
    double error = __fma_rn(-turns, 0x1.1a62633145c07p-54, near - r) + turns * 0x1.f1976b7ed8fbcp-110;
    double z = r * r, z_rest = __fma_rn(r, r, -z);
    double s = 1.0 / 355687428096000.0;
    s = __fma_rn(s, z, -1.0 / 1307674368000.0);
    s = __fma_rn(s, z, 1.0 / 6227020800.0);
    s = __fma_rn(s, z, -1.0 / 39916800.0);
    s = __fma_rn(s, z, 1.0 / 362880.0);
    s = __fma_rn(s, z, -1.0 / 5040.0);
    s = __fma_rn(s, z, 1.0 / 120.0);
    double c = 1.0 / 20922789888000.0;
    c = __fma_rn(c, z, -1.0 / 87178291200.0);
    c = __fma_rn(c, z, 1.0 / 479001600.0);
    c = __fma_rn(c, z, -1.0 / 3628800.0);
    c = __fma_rn(c, z, 1.0 / 40320.0);
    c = __fma_rn(c, z, -1.0 / 720.0);
    c = __fma_rn(c, z, 1.0 / 24.0);
    // r - r^3 / 6 and 1 - r^2 / 2 with what their roundings lose; of 1 / 6, too.
    const double sixth = 1.0 / 6.0, sixth_rest = 0x1.5555555555555p-57;
    double cube = r * z, cube_rest = __fma_rn(r, z, -cube) + r * z_rest, third = cube * -sixth;
    double third_rest = __fma_rn(cube, -sixth, -third) - cube_rest * sixth - cube * sixth_rest;
    double half = 0.5 * z, sum = r + third, one = 1.0 - half;
    s = sum + ((r - sum) + third + (third_rest + __fma_rn(s, cube * z, error * one)));
    c = one + ((1.0 - one - half) + __fma_rn(c, z * z, -r * error - 0.5 * z_rest));
    u32 quarter = (u32)turns & 3;
    double x = quarter & 1 ? c : s, y = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -x : x;
    *cosine = quarter == 1 || quarter == 2 ? -y : y;
}
