// What a C++ programmer writes for this machine instead of CUB's device-wide algorithms.
#include "native.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sizes.h"

void native_segmented_sort(const uint32_t *in, uint32_t *out, const int *starts, int segments)
{
#pragma omp parallel for schedule(dynamic, 16)
    for (int i = 0; i < segments; i++) {
        std::copy(in + starts[i], in + starts[i + 1], out + starts[i]);
        std::sort(out + starts[i], out + starts[i + 1]);
    }
}

// Least significant digits first, eight bits at a time: each thread counts and moves a share of its own. A pair is one word of 64 bits.
void native_sort_pairs(const uint32_t *keys, const uint32_t *values, uint32_t *keys_out, uint32_t *values_out, int n)
{
    static std::vector<uint64_t> pairs[2];
    static std::vector<uint32_t> counts;
    pairs[0].resize(n), pairs[1].resize(n), counts.resize(256 * omp_get_max_threads());
#pragma omp parallel
    {
        const int threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int from = int64_t(n) * thread / threads, to = int64_t(n) * (thread + 1) / threads;
        for (int i = from; i < to; i++)
            pairs[0][i] = uint64_t(values[i]) << 32 | keys[i];
        for (int shift = 0; shift < 32; shift += 8) {
            const uint64_t *source = pairs[shift / 8 % 2].data();
            uint64_t *target = pairs[1 - shift / 8 % 2].data();
            uint32_t own[256] = {};
            for (int i = from; i < to; i++)
                own[source[i] >> shift & 255]++;
            std::memcpy(&counts[256 * thread], own, sizeof own);
#pragma omp barrier
            uint32_t sum = 0;
            for (int digit = 0; digit < 256; digit++)
                for (int other = 0; other < threads; other++) {
                    if (other == thread)
                        own[digit] = sum;
                    sum += counts[256 * other + digit];
                }
            for (int i = from; i < to; i++)
                target[own[source[i] >> shift & 255]++] = source[i];
#pragma omp barrier
        }
        for (int i = from; i < to; i++) {
            keys_out[i] = static_cast<uint32_t>(pairs[0][i]);
            values_out[i] = pairs[0][i] >> 32;
        }
    }
}

// Bins of a stretch by vectors, then four tables; what is outside goes to a bin that nobody asks for.
void native_histogram_even(const float *samples, uint32_t *bins, int n)
{
    enum { STRETCH = 1024 };
    std::fill(bins, bins + EVEN_BINS, 0);
#pragma omp parallel
    {
        uint32_t part[4][EVEN_BINS + 1] = {};
#pragma omp for schedule(static) nowait
        for (int start = 0; start < n; start += STRETCH) {
            uint32_t at[STRETCH];
#pragma omp simd
            for (int i = 0; i < STRETCH; i++) {
                const float sample = samples[start + i];
                at[i] = sample >= 0 && sample < EVEN_UPPER ? static_cast<int>(sample * (EVEN_BINS / EVEN_UPPER)) : EVEN_BINS;
            }
            for (int i = 0; i < STRETCH; i += 4) {
                part[0][at[i]]++;
                part[1][at[i + 1]]++;
                part[2][at[i + 2]]++;
                part[3][at[i + 3]]++;
            }
        }
#pragma omp critical
        for (int i = 0; i < EVEN_BINS; i++)
            bins[i] += part[0][i] + part[1][i] + part[2][i] + part[3][i];
    }
}

// The k largest so far of what is kept, and the least of them as the bound that a sample must pass.
static float keep_largest(std::vector<float> &kept, int k)
{
    std::nth_element(kept.begin(), kept.begin() + (k - 1), kept.end(), std::greater<float>());
    kept.resize(k);
    return kept.back();
}

void native_topk(const float *in, float *out, int n, int k)
{
    enum { STRETCH = 64 };
    std::vector<float> all;
#pragma omp parallel
    {
        std::vector<float> kept;
        float bound = -__builtin_inff();
        bool full = false;
#pragma omp for schedule(static) nowait
        for (int start = 0; start < n; start += STRETCH) {
            int above = 0;
#pragma omp simd reduction(| : above)
            for (int i = 0; i < STRETCH; i++)
                above |= in[start + i] > bound;
            if (full && !above)
                continue;
            for (int i = start; i < start + STRETCH; i++)
                if (!full || in[i] > bound)
                    kept.push_back(in[i]);
            if (kept.size() >= size_t(4 * k)) {
                bound = keep_largest(kept, k);
                full = true;
            }
        }
#pragma omp critical
        all.insert(all.end(), kept.begin(), kept.end());
    }
    keep_largest(all, k);
    std::copy(all.begin(), all.end(), out);
}
