// Sine and cosine of any float.

#pragma once

#include "tensors.cuh"

static __device__ float infinity()
{
    return __uint_as_float(0x7f800000);
}

static __device__ float no_number()
{
    return __uint_as_float(0x7fc00000);
}

// 2 / pi in binary, from its first place behind the point on.
static __device__ const u32 TWO_BY_PI[7] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

// The sine and the cosine of any float.
static __device__ void sine_cosine_of_any(float x, double *sine, double *cosine)
{
    float a = absolute(x);
    if (!(a < infinity())) {
        *sine = *cosine = (double)no_number();
        return;
    }
    if (a < 0x1p30f) {
        sine_cosine((double)a, sine, cosine);
    } else {
        // A fraction of 24 bits by 2^first, times the 96 bits of 2 / pi from which on the product counts: above them are whole turns.
        u32 bits = __float_as_uint(a), fraction = (bits & 0x7fffff) | 0x800000, part[3];
        int first = (int)(bits >> 23) - 150 - 2, word = first / 32, by = first % 32;
        for (int k = 0; k < 3; k++)
            part[k] = by ? TWO_BY_PI[word + k] << by | TWO_BY_PI[word + k + 1] >> (32 - by) : TWO_BY_PI[word + k];
        u64 middle = (u64)fraction * part[1] + ((u64)fraction * part[2] >> 32);
        u64 turns = ((u64)fraction * part[0] << 32) + middle;
        // Two bits are quarters of a turn, the others what is beyond the nearest.
        u32 quarter = (u32)((turns + (1ull << 61)) >> 62);
        double rest = (double)(i64)(turns << 2) * 0x1.921fb54442d18p-64, s, c;
        sine_cosine(rest, &s, &c);
        double y = quarter & 1 ? c : s, z = quarter & 1 ? s : c;
        *sine = quarter & 2 ? -y : y;
        *cosine = quarter == 1 || quarter == 2 ? -z : z;
    }
    if (x < 0.0f)
        *sine = -*sine;
}
