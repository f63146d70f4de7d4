// The rows as a C programmer writes them for this machine: OpenMP across cores, vectors within.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void native_empty(void);
void native_vecadd(const float *a, const float *b, float *c, int n);
void native_saxpy(float a, const float *x, float *y, int n);
void native_sgemm(const float *a, const float *b, float *c, int n);
void native_hgemm(const _Float16 *a, const _Float16 *b, float *c, int n);
void native_reduce(const float *in, float *sums, int n);
void native_nbody(const float *bodies, float *pulls, int n);
void native_black_scholes(const float *price, const float *strike, const float *years, float *call, float *put, int n);
void native_stencil(const float *in, float *out, int n);
void native_histogram(const uint8_t *in, uint32_t *bins, int n);
void native_mandelbrot(int *counts, int n, int limit);
void native_transpose(const float *in, float *out, int n);
void native_scan(const uint32_t *in, uint32_t *out, int n);
void native_sort(const uint32_t *in, uint32_t *out, int n);
void native_spmv(const int *starts, const int *columns, const float *values, const float *x, float *y, int rows);
void native_tex_bilinear(const float *in, float *out, int n);
void native_tex_point(const uint32_t *in, uint32_t *out, int n);
void native_tex_trilinear(const float *in, float *out, int samples);

void native_md5(uint32_t *hashes, int n);
void native_sha256(uint32_t *hashes, int n);
void native_sha512(uint64_t *hashes, int n);
void native_matvec_half(const _Float16 *matrix, const float *x, float *y, int n);
void native_matvec_q4(const void *matrix, const void *x, float *y, int n);
void native_matvec_q4k(const void *matrix, const void *x, float *y, int n);
void native_softmax(const float *in, float *out, int rows, int columns, float scale);
void native_attention(const float *queries, const _Float16 *keys, const _Float16 *values, float *out);

void native_segmented_sort(const uint32_t *in, uint32_t *out, const int *starts, int segments);
void native_sort_pairs(const uint32_t *keys, const uint32_t *values, uint32_t *keys_out, uint32_t *values_out, int n);
void native_histogram_even(const float *samples, uint32_t *bins, int n);
void native_topk(const float *in, float *out, int n, int k);

#ifdef __cplusplus
}
#endif
