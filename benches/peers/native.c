// The rows in C. Where clang has to be told that a sum's order is free, `omp simd reduction` tells it.
#include "native.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#include "sizes.h"

// A message a lane: clang makes no vectors of such loops by itself.
typedef uint32_t Words __attribute__((vector_size(64)));
typedef uint64_t Longs __attribute__((vector_size(64)));
#define HASH_FUNCTION static inline __attribute__((always_inline))
#define HASH_U32 Words
#define HASH_U64 Longs
#define HASH_U32_OF(number) ((Words){0} + (number))
#define HASH_U64_OF(number) ((Longs){0} + (number))
#include "hash.h"

void native_empty(void)
{
#pragma omp parallel
    __asm__ volatile("");
}

void native_vecadd(const float *restrict a, const float *restrict b, float *restrict c, int n)
{
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++)
        c[i] = a[i] + b[i];
}

void native_saxpy(float a, const float *restrict x, float *restrict y, int n)
{
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

void native_reduce(const float *in, float *sums, int n)
{
#pragma omp parallel for schedule(static)
    for (int block = 0; block < n / BLOCK; block++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < BLOCK; i++)
            sum += in[block * BLOCK + i];
        sums[block] = sum;
    }
}

// Bodies as four arrays: a C programmer would not keep them interleaved.
void native_nbody(const float *bodies, float *pulls, int n)
{
    static float at[4][BODIES];
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++)
            for (int axis = 0; axis < 4; axis++)
                at[axis][i] = bodies[i * 4 + axis];
#pragma omp for schedule(static)
        for (int i = 0; i < n; i++) {
            const float own_x = at[0][i], own_y = at[1][i], own_z = at[2][i];
            float x = 0, y = 0, z = 0;
#pragma omp simd reduction(+ : x, y, z)
            for (int j = 0; j < n; j++) {
                const float dx = at[0][j] - own_x, dy = at[1][j] - own_y, dz = at[2][j] - own_z;
                const float inverse = 1 / sqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
                const float pull = at[3][j] * inverse * inverse * inverse;
                x += dx * pull;
                y += dy * pull;
                z += dz * pull;
            }
            pulls[i * 4] = x, pulls[i * 4 + 1] = y, pulls[i * 4 + 2] = z, pulls[i * 4 + 3] = 0;
        }
    }
}

static inline float normal_below(float x)
{
    const float k = 1 / (1 + 0.2316419f * fabsf(x));
    const float sum = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    const float above = 0.39894228f * expf(-0.5f * x * x) * sum;
    return x > 0 ? 1 - above : above;
}

void native_black_scholes(const float *restrict price, const float *restrict strike, const float *restrict years, float *restrict call,
                          float *restrict put, int n)
{
#pragma omp parallel for simd schedule(static)
    for (int i = 0; i < n; i++) {
        const float s = price[i], x = strike[i], t = years[i];
        const float spread = VOLATILITY * sqrtf(t);
        const float d1 = (logf(s / x) + (RISKFREE + 0.5f * VOLATILITY * VOLATILITY) * t) / spread;
        const float below1 = normal_below(d1), below2 = normal_below(d1 - spread), now = x * expf(-RISKFREE * t);
        call[i] = s * below1 - now * below2;
        put[i] = now * (1 - below2) - s * (1 - below1);
    }
}

void native_stencil(const float *restrict in, float *restrict out, int n)
{
#pragma omp parallel for schedule(static)
    for (int y = 1; y < n - 1; y++) {
        const float *row = in + (size_t)y * n;
        float *to = out + (size_t)y * n;
#pragma omp simd
        for (int x = 1; x < n - 1; x++)
            to[x] = row[x] + 0.25f * (row[x - 1] + row[x + 1] + row[x - n] + row[x + n] - 4 * row[x]);
    }
}

// Four tables, so that equal neighbours do not wait for each other's store.
void native_histogram(const uint8_t *in, uint32_t *bins, int n)
{
    memset(bins, 0, 256 * sizeof *bins);
#pragma omp parallel
    {
        uint32_t part[4][256] = {{0}};
#pragma omp for schedule(static) nowait
        for (int i = 0; i < n / 4; i++) {
            uint32_t four;
            memcpy(&four, in + (size_t)i * 4, 4);
            part[0][four & 255]++;
            part[1][four >> 8 & 255]++;
            part[2][four >> 16 & 255]++;
            part[3][four >> 24]++;
        }
#pragma omp critical
        for (int i = 0; i < 256; i++)
            bins[i] += part[0][i] + part[1][i] + part[2][i] + part[3][i];
    }
}

// Sixteen points at a time, until none is left inside.
enum { POINTS = 16 };
typedef float Reals __attribute__((ext_vector_type(POINTS)));
typedef int Counts __attribute__((ext_vector_type(POINTS)));

void native_mandelbrot(int *counts, int n, int limit)
{
#pragma omp parallel for schedule(dynamic, 4)
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x += POINTS) {
            const float ci = -1.5f + 3.0f / MANDELBROT_N * y;
            Reals cr, zr = 0, zi = 0;
            for (int i = 0; i < POINTS; i++)
                cr[i] = -2.0f + 3.0f / MANDELBROT_N * (x + i);
            Counts count = 0;
            for (int step = 0; step < limit; step++) {
                const Counts inside = zr * zr + zi * zi <= 4.0f;  // -1 where it is
                if (!__builtin_reduce_or(inside))
                    break;
                count -= inside;
                const Reals next = zr * zr - zi * zi + cr;
                zi = 2 * zr * zi + ci;
                zr = next;
            }
            memcpy(counts + (size_t)y * n + x, &count, sizeof count);
        }
}

// Tiles, so that both sides are read and written in whole cache lines.
void native_transpose(const float *restrict in, float *restrict out, int n)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int y = 0; y < n; y += 32)
        for (int x = 0; x < n; x += 32) {
            float tile[32][32];
            for (int j = 0; j < 32; j++)
                for (int i = 0; i < 32; i++)
                    tile[j][i] = in[(size_t)(y + j) * n + x + i];
            for (int i = 0; i < 32; i++)
                for (int j = 0; j < 32; j++)
                    out[(size_t)(x + i) * n + y + j] = tile[j][i];
        }
}

// Two ways over the elements, one share per thread: its sum, then its prefixes.
void native_scan(const uint32_t *in, uint32_t *out, int n)
{
    uint32_t sums[256] = {0};
#pragma omp parallel
    {
        const int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int from = (int)((int64_t)n * thread / threads), to = (int)((int64_t)n * (thread + 1) / threads);
        uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = from; i < to; i++)
            sum += in[i];
        sums[thread] = sum;
#pragma omp barrier
        sum = 0;
        for (int i = 0; i < thread; i++)
            sum += sums[i];
        for (int i = from; i < to; i++)
            out[i] = sum += in[i];
    }
}

// The same network as the kernels'; the steps of whole vectors first, the last ones by shuffles within a vector.
typedef uint32_t Keys __attribute__((ext_vector_type(16)));

static inline Keys exchange(Keys keys, Keys other, Keys take_larger)
{
    const Keys larger = keys > other ? keys : other, smaller = keys > other ? other : keys;
    return take_larger ? larger : smaller;
}

static inline Keys within(Keys keys, int step, Keys lanes, Keys descends)
{
    Keys other;
    switch (step) {
    case 8: other = __builtin_shufflevector(keys, keys, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7); break;
    case 4: other = __builtin_shufflevector(keys, keys, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11); break;
    case 2: other = __builtin_shufflevector(keys, keys, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13); break;
    default: other = __builtin_shufflevector(keys, keys, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14); break;
    }
    const Keys upper = (Keys)((lanes & (uint32_t)step) != 0);
    return exchange(keys, other, upper ^ descends);
}

static void sort_chunk(Keys *keys)
{
    const Keys lanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    for (uint32_t size = 2; size <= SORT_CHUNK; size *= 2) {
        uint32_t step = size / 2;
        for (; step >= 16; step /= 2)
            for (uint32_t at = 0; at < SORT_CHUNK / 16; at++) {
                const uint32_t other = at | step / 16;
                if (other == at)
                    continue;
                const Keys down = (Keys)0 - (uint32_t)((at * 16 & size) != 0), a = keys[at], b = keys[other];
                keys[at] = exchange(a, b, down);
                keys[other] = exchange(b, a, ~down);
            }
        for (uint32_t at = 0; at < SORT_CHUNK / 16; at++) {
            const Keys down = (Keys)(((lanes + at * 16) & size) != 0);
            Keys part = keys[at];
            for (uint32_t s = step; s > 0; s /= 2)
                part = within(part, (int)s, lanes, down);
            keys[at] = part;
        }
    }
}

void native_sort(const uint32_t *in, uint32_t *out, int n)
{
#pragma omp parallel for schedule(static)
    for (int base = 0; base < n; base += SORT_CHUNK) {
        Keys keys[SORT_CHUNK / 16];
        memcpy(keys, in + base, sizeof keys);
        sort_chunk(keys);
        memcpy(out + base, keys, sizeof keys);
    }
}

void native_spmv(const int *starts, const int *columns, const float *values, const float *x, float *y, int rows)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        float sum = 0;
        for (int i = starts[row]; i < starts[row + 1]; i++)
            sum += values[i] * x[columns[i]];
        y[row] = sum;
    }
}

static inline int held(int at, int n)
{
    return at < 0 ? 0 : at >= n ? n - 1 : at;
}

// Weights have eight fractional bits, as a texture's have.
static inline int foot(float at, float *weight)
{
    const int fixed = (int)floorf((at - 0.5f) * 256 + 0.5f);
    *weight = (fixed & 255) * (1 / 256.0f);
    return fixed >> 8;
}

void native_tex_bilinear(const float *restrict in, float *restrict out, int n)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < n; row++)
#pragma omp simd
        for (int i = 0; i < n; i++) {
            float a, b;
            const int x = foot(IMAGE_X(i, row), &a), y = foot(IMAGE_Y(i, row), &b);
            const int left = held(x, n), right = held(x + 1, n), above = held(y, n) * n, below = held(y + 1, n) * n;
            out[row * n + i] = (1 - a) * (1 - b) * in[above + left] + a * (1 - b) * in[above + right] + (1 - a) * b * in[below + left] +
                               a * b * in[below + right];
        }
}

void native_tex_point(const uint32_t *restrict in, uint32_t *restrict out, int n)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < n; row++)
#pragma omp simd
        for (int i = 0; i < n; i++) {
            const int x = held((int)floorf(IMAGE_X(i, row)), n), y = held((int)floorf(IMAGE_Y(i, row)), n);
            out[row * n + i] = __builtin_bswap32(in[y * n + x]);
        }
}

void native_tex_trilinear(const float *restrict in, float *restrict out, int samples)
{
    enum { N = VOLUME_N };
#pragma omp parallel for schedule(static)
    for (int row = 0; row < samples / 256; row++) {
        float b, c;
        const int y = foot((row % 256 + 0.25f) / 256 * N, &b), z = foot((row / 256 + 0.25f) / 64 * N, &c);
        const float *rows[4];
        for (int i = 0; i < 4; i++)
            rows[i] = in + (held(z + (i >> 1), N) * N + held(y + (i & 1), N)) * N;
        const float weights[4] = {(1 - b) * (1 - c), b * (1 - c), (1 - b) * c, b * c};
#pragma omp simd
        for (int i = 0; i < 256; i++) {
            float a, sum = 0;
            const int x = foot((i + 0.25f) / 256 * N, &a);
            const int left = held(x, N), right = held(x + 1, N);
            for (int j = 0; j < 4; j++)
                sum += weights[j] * ((1 - a) * rows[j][left] + a * rows[j][right]);
            out[row * 256 + i] = sum;
        }
    }
}

static const Words LANES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const Longs LONG_LANES = {0, 1, 2, 3, 4, 5, 6, 7};

void native_md5(uint32_t *restrict hashes, int n)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i += 16) {
        const Words number = LANES + (uint32_t)i;
        Words message[16] = {number, number * 2654435761u};
        message[2] = message[2] + 128;
        message[14] = message[14] + 64;
        *(Words *)(hashes + i) = md5_of(message);
    }
}

void native_sha256(uint32_t *restrict hashes, int n)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i += 16) {
        const Words number = LANES + (uint32_t)i;
        Words message[16] = {number, number * 2654435761u};
        message[2] = message[2] + ((uint32_t)1 << 31);
        message[15] = message[15] + 64;
        *(Words *)(hashes + i) = sha256_of(message);
    }
}

void native_sha512(uint64_t *restrict hashes, int n)
{
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; i += 8) {
        const Longs number = LONG_LANES + (uint64_t)i;
        Longs message[16] = {number, number * 2654435761u};
        message[2] = message[2] + ((uint64_t)1 << 63);
        message[15] = message[15] + 128;
        *(Longs *)(hashes + i) = sha512_of(message);
    }
}

void native_matvec_half(const _Float16 *matrix, const float *x, float *y, int n)
{
#pragma omp parallel for schedule(static)
    for (int row = 0; row < n; row++) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < n; i++)
            sum += (float)matrix[(size_t)row * n + i] * x[i];
        y[row] = sum;
    }
}
