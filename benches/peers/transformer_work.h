// The inputs of a language model's rows, in the formats of transformer.cuh, and what must come out. Scales are powers of two and sums
// stay whole numbers below 2^24, so that the products' rows are exact.
#pragma once

#include "work_tools.h"

namespace bench {

// An array of bytes that is filled from its start.
struct Bytes {
    Words words;
    size_t at = 0;
    explicit Bytes(size_t bytes) : words(bytes / 4) {}
    void put(uint32_t value, int bytes)
    {
        std::memcpy(reinterpret_cast<char *>(words.data()) + at, &value, bytes);
        at += bytes;
    }
};

// A vector of `n` whole numbers from -3 to 3 in the format `q8_1`, and the numbers.
inline Words values_q8(int n, std::vector<int> &numbers)
{
    Numbers random{2};
    Bytes made(n / 32 * 36);
    for (int block = 0; block < n; block += 32) {
        int sum = 0;
        for (int i = 0; i < 32; i++) {
            numbers.push_back(static_cast<int>(random.below(7)) - 3);
            sum += numbers.back();
        }
        made.put(half_of(1), 2);
        made.put(half_of(sum), 2);
        for (int i = 0; i < 32; i++)
            made.put(static_cast<uint32_t>(numbers[block + i]), 1);
    }
    return made.words;
}

// What `weights(row, column)` makes of the numbers, for every row.
template <typename Weights>
Work matvec_of(const Words &matrix, const Words &x, const std::vector<int> &numbers, Weights weights)
{
    return {{matrix, x, Words(MATVEC_N)}, [=](const Arrays &got, int) {
        return exact(got[2], [&](size_t row) {
            int sum = 0;
            for (size_t i = 0; i < MATVEC_N; i++)
                sum += weights(row, i) * numbers[i];
            return word(static_cast<float>(sum));
        });
    }};
}

inline Work matvec_q4()
{
    Numbers random{1};
    Bytes matrix(MATVEC_N * MATVEC_N / 32 * 18);
    std::vector<signed char> weights(MATVEC_N * MATVEC_N);
    for (size_t block = 0; block < weights.size(); block += 32) {
        const int scale = 1 << random.below(3);
        matrix.put(half_of(scale), 2);
        for (int i = 0; i < 16; i++) {
            const int low = random.below(16), high = random.below(16);
            weights[block + i] = scale * (low - 8);
            weights[block + 16 + i] = scale * (high - 8);
            matrix.put(low | high << 4, 1);
        }
    }
    std::vector<int> numbers;
    const Words x = values_q8(MATVEC_N, numbers);
    return matvec_of(matrix.words, x, numbers, [weights](size_t row, size_t i) { return weights[row * MATVEC_N + i]; });
}

inline Work matvec_q4k()
{
    Numbers random{1};
    Bytes matrix(MATVEC_N * MATVEC_N / 256 * 144);
    std::vector<short> weights(MATVEC_N * MATVEC_N);
    for (size_t block = 0; block < weights.size(); block += 256) {
        const int d = 1 << random.below(2), dmin = 1 << random.below(2);
        int scales[8], mins[8], quants[256];
        for (int run = 0; run < 8; run++) {
            scales[run] = random.below(64);
            mins[run] = random.below(64);
        }
        for (int i = 0; i < 256; i++) {
            quants[i] = random.below(16);
            weights[block + i] = d * scales[i / 32] * quants[i] - dmin * mins[i / 32];
        }
        matrix.put(half_of(d), 2);
        matrix.put(half_of(dmin), 2);
        for (int run = 0; run < 4; run++)
            matrix.put(scales[run] | scales[run + 4] >> 4 << 6, 1);
        for (int run = 0; run < 4; run++)
            matrix.put(mins[run] | mins[run + 4] >> 4 << 6, 1);
        for (int run = 4; run < 8; run++)
            matrix.put((scales[run] & 15) | (mins[run] & 15) << 4, 1);
        for (int pair = 0; pair < 4; pair++)
            for (int i = 0; i < 32; i++)
                matrix.put(quants[pair * 64 + i] | quants[pair * 64 + 32 + i] << 4, 1);
    }
    std::vector<int> numbers;
    const Words x = values_q8(MATVEC_N, numbers);
    return matvec_of(matrix.words, x, numbers, [weights](size_t row, size_t i) { return weights[row * MATVEC_N + i]; });
}

inline Work softmax()
{
    Numbers numbers{1};
    const Words in = fill(SOFTMAX_ROWS * SOFTMAX_COLUMNS, [&] { return numbers.between(-40, 40); });
    return {{in, Words(in.size())}, [in](const Arrays &got, int) {
        for (size_t row = 0; row < SOFTMAX_ROWS; row++) {
            const auto value = [&](size_t i) { return real(in[row * SOFTMAX_COLUMNS + i]) * static_cast<double>(SOFTMAX_SCALE); };
            double most = value(0), sum = 0;
            for (size_t i = 0; i < SOFTMAX_COLUMNS; i++)
                most = std::max(most, value(i));
            for (size_t i = 0; i < SOFTMAX_COLUMNS; i++)
                sum += std::exp(value(i) - most);
            for (size_t i = row % 7; i < SOFTMAX_COLUMNS; i += 7) {
                const double want = std::exp(value(i) - most) / sum;
                const size_t at = row * SOFTMAX_COLUMNS + i;
                const std::string wrong = near("element", at, real(got[1][at]), want, 1e-5 * want);
                if (!wrong.empty())
                    return wrong;
            }
        }
        return std::string();
    }};
}

inline Work attention()
{
    Numbers random{1};
    const size_t halves = static_cast<size_t>(ATTENTION_HEADS) * ATTENTION_KEYS * ATTENTION_WIDTH;
    const auto made = [&](std::vector<signed char> &numbers) {
        numbers.resize(halves);
        Words words(halves / 2);
        for (size_t i = 0; i < halves; i += 2) {
            numbers[i] = static_cast<int>(random.below(17)) - 8;
            numbers[i + 1] = static_cast<int>(random.below(17)) - 8;
            words[i / 2] = half_of(numbers[i]) | half_of(numbers[i + 1]) << 16;
        }
        return words;
    };
    std::vector<signed char> key, value;
    const Words keys = made(key), values = made(value);
    const Words queries = fill(ATTENTION_HEADS * ATTENTION_WIDTH, [&] { return random.between(-1, 1); });
    return {{queries, keys, values, Words(queries.size())}, [=](const Arrays &got, int) {
        for (size_t head = 0; head < ATTENTION_HEADS; head++) {
            std::vector<double> weights(ATTENTION_KEYS), sums(ATTENTION_WIDTH);
            double most = -1e300, all = 0;
            for (size_t k = 0; k < ATTENTION_KEYS; k++) {
                for (size_t i = 0; i < ATTENTION_WIDTH; i++)
                    weights[k] += real(queries[head * ATTENTION_WIDTH + i]) * static_cast<double>(ATTENTION_SCALE) *
                                  key[(head * ATTENTION_KEYS + k) * ATTENTION_WIDTH + i];
                most = std::max(most, weights[k]);
            }
            for (size_t k = 0; k < ATTENTION_KEYS; k++) {
                const double weight = std::exp(weights[k] - most);
                all += weight;
                for (size_t i = 0; i < ATTENTION_WIDTH; i++)
                    sums[i] += weight * value[(head * ATTENTION_KEYS + k) * ATTENTION_WIDTH + i];
            }
            for (size_t i = 0; i < ATTENTION_WIDTH; i++) {
                const size_t at = head * ATTENTION_WIDTH + i;
                const std::string wrong = near("element", at, real(got[3][at]), sums[i] / all, 1e-3);
                if (!wrong.empty())
                    return wrong;
            }
        }
        return std::string();
    }};
}

}  // namespace bench
