// Matrix products in C: panels packed once, a small block of sums held in registers.
#include <stdlib.h>
#include <string.h>

#include "native.h"
#include "sizes.h"

#ifdef __AVX512F__
enum { LANES = 16, ROWS = 8 };
#else
enum { LANES = 8, ROWS = 4 };
#endif
enum { WIDE = 2 * LANES, DEEP = 256, PANEL = 64 };  // PANEL: rows of `a` packed at a time
typedef float Vector __attribute__((ext_vector_type(LANES)));

// `b` as panels of WIDE columns, each panel by rows.
static float packed[GEMM_N * GEMM_N] __attribute__((aligned(64)));

// ROWS x WIDE elements of c, over `depth` steps.
static inline void block(const float *a, const float *b, float *c, int depth, int pitch, int first)
{
    Vector sum[ROWS][2];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            if (first)
                sum[i][j] = 0;
            else
                memcpy(&sum[i][j], c + (size_t)i * pitch + j * LANES, sizeof(Vector));
    for (int k = 0; k < depth; k++) {
        const Vector low = *(const Vector *)(b + (size_t)k * WIDE), high = *(const Vector *)(b + (size_t)k * WIDE + LANES);
#pragma clang loop unroll(full)
        for (int i = 0; i < ROWS; i++) {
            sum[i][0] += a[k * ROWS + i] * low;
            sum[i][1] += a[k * ROWS + i] * high;
        }
    }
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 2; j++)
            memcpy(c + (size_t)i * pitch + j * LANES, &sum[i][j], sizeof(Vector));
}

// Shared by both kinds of elements; `packed` is ready.
#define PRODUCT(ELEMENT)                                                                               \
    _Pragma("omp for schedule(dynamic)") for (int top = 0; top < n; top += PANEL)                      \
    {                                                                                                  \
        float rows[PANEL * DEEP];                                                                      \
        for (int start = 0; start < n; start += DEEP) {                                                \
            for (int i = 0; i < PANEL; i++)                                                            \
                for (int k = 0; k < DEEP; k++)                                                         \
                    rows[i / ROWS * ROWS * DEEP + k * ROWS + i % ROWS] = (ELEMENT);                    \
            for (int left = 0; left < n; left += WIDE)                                                 \
                for (int i = 0; i < PANEL; i += ROWS)                                                  \
                    block(rows + i * DEEP, packed + (size_t)left * n + (size_t)start * WIDE,           \
                          c + (size_t)(top + i) * n + left, DEEP, n, start == 0);                      \
        }                                                                                              \
    }

void native_sgemm(const float *a, const float *b, float *c, int n)
{
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int left = 0; left < n; left += WIDE)
            for (int k = 0; k < n; k++)
                memcpy(packed + (size_t)left * n + (size_t)k * WIDE, b + (size_t)k * n + left, WIDE * sizeof(float));
        PRODUCT(a[(size_t)(top + i) * n + start + k])
    }
}

// Halves are widened while they are packed: the machine multiplies floats. `b` is stored by columns.
void native_hgemm(const _Float16 *a, const _Float16 *b, float *c, int n)
{
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int left = 0; left < n; left += WIDE)
            for (int k = 0; k < n; k++)
                for (int j = 0; j < WIDE; j++)
                    packed[(size_t)left * n + (size_t)k * WIDE + j] = (float)b[(size_t)(left + j) * n + k];
        PRODUCT((float)a[(size_t)(top + i) * n + start + k])
    }
}
