// A language model's kernels in C, one row or head at a time; the quantised products as libraries for CPUs have them: bytes by the
// instructions that multiply and add four at once, or two where the processor has no such.
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "native.h"
#include "sizes.h"

typedef struct {
    _Float16 scale;
    uint8_t quants[16];
} WeightsQ4;

typedef struct {
    _Float16 d, dmin;
    uint8_t scales[12];
    uint8_t quants[128];
} WeightsQ4K;

typedef struct {
    _Float16 scale, sum;
    int8_t quants[32];
} ValuesQ8;

// Sums of four products of unsigned bytes, below 16, and signed ones.
static inline __m256i dot(__m256i quants, const int8_t *values)
{
    const __m256i right = _mm256_loadu_si256((const __m256i *)values);
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), quants, right);
#else
    return _mm256_madd_epi16(_mm256_maddubs_epi16(quants, right), _mm256_set1_epi16(1));
#endif
}

static inline float sum_of(__m256 all)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

void native_matvec_q4(const void *matrix, const void *x, float *y, int n)
{
    const ValuesQ8 *values = x;
    const __m128i low = _mm_set1_epi8(15);
#pragma omp parallel for schedule(static)
    for (int row = 0; row < n; row++) {
        const WeightsQ4 *weights = (const WeightsQ4 *)matrix + (size_t)row * (n / 32);
        __m256 sums = _mm256_setzero_ps();
        float less = 0;
        for (int i = 0; i < n / 32; i++) {
            const __m128i packed = _mm_loadu_si128((const __m128i *)weights[i].quants);
            const __m256i quants = _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(packed, 4), low), _mm_and_si128(packed, low));
            const float scale = weights[i].scale;
            sums = _mm256_fmadd_ps(_mm256_set1_ps(scale * (float)values[i].scale),
                                   _mm256_cvtepi32_ps(dot(quants, values[i].quants)), sums);
            less += scale * (float)values[i].sum;
        }
        y[row] = sum_of(sums) - 8 * less;
    }
}

void native_matvec_q4k(const void *matrix, const void *x, float *y, int n)
{
    const __m256i low = _mm256_set1_epi8(15);
#pragma omp parallel for schedule(static)
    for (int row = 0; row < n; row++) {
        __m256 sums = _mm256_setzero_ps();
        float less = 0;
        for (int i = 0; i < n / 256; i++) {
            const WeightsQ4K *weights = (const WeightsQ4K *)matrix + (size_t)row * (n / 256) + i;
            const ValuesQ8 *values = (const ValuesQ8 *)x + i * 8;
            // Eight scales, then eight mins: four of each lie whole, the others in two pieces.
            uint32_t words[3], runs[4];
            memcpy(words, weights->scales, sizeof words);
            runs[0] = words[0] & 0x3f3f3f3f;
            runs[1] = (words[2] & 0x0f0f0f0f) | (words[0] >> 6 & 0x03030303) << 4;
            runs[2] = words[1] & 0x3f3f3f3f;
            runs[3] = (words[2] >> 4 & 0x0f0f0f0f) | (words[1] >> 6 & 0x03030303) << 4;
            const uint8_t *scales = (const uint8_t *)runs, *mins = scales + 8;
            const float d = weights->d, dmin = weights->dmin;
            for (int run = 0; run < 8; run += 2) {
                const __m256i packed = _mm256_loadu_si256((const __m256i *)(weights->quants + run * 16));
                const __m256i quants[2] = {_mm256_and_si256(packed, low), _mm256_and_si256(_mm256_srli_epi16(packed, 4), low)};
                for (int half = 0; half < 2; half++) {
                    const ValuesQ8 *right = values + run + half;
                    sums = _mm256_fmadd_ps(_mm256_set1_ps(d * scales[run + half] * (float)right->scale),
                                           _mm256_cvtepi32_ps(dot(quants[half], right->quants)), sums);
                    less += dmin * mins[run + half] * (float)right->sum;
                }
            }
        }
        y[row] = sum_of(sums) - less;
    }
}

void native_softmax(const float *in, float *out, int rows, int columns, float scale)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        const float *from = in + (size_t)row * columns;
        float *to = out + (size_t)row * columns, most = -INFINITY, sum = 0, parts[64];
        // clang makes no vectors of one running maximum, as a NaN would have to stop it.
        memcpy(parts, from, sizeof parts);
        for (int i = 64; i < columns; i += 64) {
            for (int part = 0; part < 64; part++)
                parts[part] = from[i + part] > parts[part] ? from[i + part] : parts[part];
        }
        for (int part = 0; part < 64; part++)
            most = parts[part] > most ? parts[part] : most;
        most *= scale;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < columns; i++) {
            const float value = expf(from[i] * scale - most);
            to[i] = value;
            sum += value;
        }
        const float share = 1 / sum;
#pragma omp simd
        for (int i = 0; i < columns; i++)
            to[i] *= share;
    }
}

void native_attention(const float *queries, const _Float16 *keys, const _Float16 *values, float *out)
{
#pragma omp parallel for schedule(static)
    for (int head = 0; head < ATTENTION_HEADS; head++) {
        const float *query = queries + head * ATTENTION_WIDTH;
        const _Float16 *key = keys + (size_t)head * ATTENTION_KEYS * ATTENTION_WIDTH;
        const _Float16 *value = values + (size_t)head * ATTENTION_KEYS * ATTENTION_WIDTH;
        float weights[ATTENTION_KEYS], most = -INFINITY, all = 0, sums[ATTENTION_WIDTH] = {0};
        for (int k = 0; k < ATTENTION_KEYS; k++) {
            float sum = 0;
#pragma omp simd reduction(+ : sum)
            for (int i = 0; i < ATTENTION_WIDTH; i++)
                sum += query[i] * (float)key[k * ATTENTION_WIDTH + i];
            weights[k] = sum * ATTENTION_SCALE;
            most = weights[k] > most ? weights[k] : most;
        }
#pragma omp simd reduction(+ : all)
        for (int k = 0; k < ATTENTION_KEYS; k++) {
            weights[k] = expf(weights[k] - most);
            all += weights[k];
        }
        for (int k = 0; k < ATTENTION_KEYS; k++) {
#pragma omp simd
            for (int i = 0; i < ATTENTION_WIDTH; i++)
                sums[i] += weights[k] * (float)value[k * ATTENTION_WIDTH + i];
        }
        for (int i = 0; i < ATTENTION_WIDTH; i++)
            out[head * ATTENTION_WIDTH + i] = sums[i] / all;
    }
}
