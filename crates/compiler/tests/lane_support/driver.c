#include <fenv.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#pragma STDC FENV_ACCESS ON
typedef unsigned __int128 cell;
static cell *read_all(const char *name, size_t cells) {
  cell *data = aligned_alloc(64, (cells * 16 + 127) / 64 * 64);
  FILE *file = fopen(name, "rb");
  if (!data || !file || fread(data, 16, cells, file) != cells) exit(2);
  return data;
}
static int write_all(const char *name, const cell *data, size_t cells) {
  FILE *file = fopen(name, "wb");
  return !file || fwrite(data, 16, cells, file) != cells || fclose(file);
}
static float flush(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static _Float16 half(uint16_t bits) { _Float16 h; memcpy(&h, &bits, 2); return h; }
static uint16_t half_bits(_Float16 h) { uint16_t bits; memcpy(&bits, &h, 2); return bits; }
static float brain(uint16_t bits) { uint32_t wide = (uint32_t)bits << 16; float f; memcpy(&f, &wide, 4); return f; }
/* Bits of the float with `exponent` and `mantissa` bits nearest x in the current rounding mode, by exact scaling in quad
   precision: x is scaled so that the last place of the result is 1, then rounded to an integer. */
static uint32_t narrow(__float128 x, int exponent, int mantissa) {
  int bias = (1 << (exponent - 1)) - 1, bits = exponent + mantissa;
  if (x != x) return (1u << bits) - 1;
  union { __float128 f; cell u; } raw = { .f = x };
  uint32_t sign = (uint32_t)(raw.u >> 127) << bits;
  raw.u = raw.u << 1 >> 1;
  if (raw.f == 0) return sign;
  uint32_t infinity = ((1u << exponent) - 1) << mantissa;
  int e = (int)(raw.u >> 112) - 16383;
  if (e == 16384) return sign | infinity;
  if (e < 1 - bias) e = 1 - bias;
  /* units of the last place: a whole part and a rest */
  union { __float128 f; cell u; } scale = { .u = (cell)(16383 - (e - mantissa)) << 112 };
  __float128 units = raw.f * scale.f;
  if (units >= (__float128)(1ull << 40)) units = (__float128)(1ull << 40);
  uint64_t whole = (uint64_t)units;
  __float128 rest = units - (__float128)whole;
  int up;
  switch (fegetround()) {
    case FE_UPWARD: up = rest > 0 && !sign; break;
    case FE_DOWNWARD: up = rest > 0 && sign; break;
    case FE_TOWARDZERO: up = 0; break;
    default: up = rest > 0.5 || (rest == 0.5 && whole & 1);
  }
  whole += up;
  uint64_t code = ((uint64_t)(e + bias - 1) << mantissa) + whole;
  if (code >= infinity) {
    int outward = fegetround() == FE_TONEAREST || fegetround() == (sign ? FE_DOWNWARD : FE_UPWARD);
    code = outward ? infinity : infinity - 1;
  }
  return sign | (uint32_t)code;
}
static uint16_t half_bits128(__float128 x) { return narrow(x, 5, 10); }
static uint16_t brain_bits(__float128 x) { return narrow(x, 8, 7); }
/* a * b + c (a * b is exact), rounded to odd, so that rounding it again rounds the exact value. */
static __float128 fma_odd(volatile __float128 a, volatile __float128 b, volatile __float128 c) {
  volatile __float128 product = a * b;
  int mode = fegetround();
  fesetround(FE_DOWNWARD);
  volatile union { __float128 f; cell u; } low, high;
  low.f = product + c;
  fesetround(FE_UPWARD);
  high.f = product + c;
  fesetround(mode);
  if (low.f == high.f) return product + c;
  return low.u & 1 ? low.f : high.f;
}
