// What rows' inputs are made with and results are compared by.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "sizes.h"

namespace bench {

using Words = std::vector<uint32_t>;
using Arrays = std::vector<Words>;

struct Work {
    Arrays arrays;  // the kernels' arrays, in their order, as they are before the first launch
    // What is wrong with the arrays after so many launches; nothing when all is right.
    std::function<std::string(const Arrays &, int)> wrong;
};

struct Numbers {
    uint32_t state;
    uint32_t next() { return (state = state * 1664525u + 1013904223u) >> 8; }
    uint32_t below(uint32_t limit) { return next() % limit; }
    float whole(int from, int to) { return static_cast<float>(from + static_cast<int>(below(to - from + 1))); }
    float between(float from, float to) { return from + (to - from) * (next() / 16777216.0f); }
};

inline uint32_t word(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

inline float real(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

template <typename Make>
Words fill(size_t n, Make make)
{
    Words words(n);
    for (uint32_t &each : words)
        each = word(make());
    return words;
}

inline Words whole(size_t n, uint32_t seed, int from, int to)
{
    Numbers numbers{seed};
    return fill(n, [&] { return numbers.whole(from, to); });
}

inline Words random_words(size_t n, uint32_t seed)
{
    Numbers numbers{seed};
    Words words(n);
    for (uint32_t &each : words)
        each = numbers.next() << 16 ^ numbers.next();
    return words;
}

// Compares `got[i]` with what `expected(i)` says, to the last bit.
template <typename Expected>
std::string exact(const Words &got, Expected expected, size_t step = 1)
{
    for (size_t i = 0; i < got.size(); i += step) {
        const uint32_t want = expected(i);
        // 0 and -0 are equal numbers, and both come out of whole numbers.
        if (got[i] != want && !(((got[i] | want) & 0x7fffffffu) == 0))
            return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + " (" + std::to_string(real(got[i])) +
                   "), expected " + std::to_string(want) + " (" + std::to_string(real(want)) + ")";
    }
    return "";
}

inline std::string near(const char *what, size_t i, double got, double want, double bound)
{
    if (std::fabs(got - want) <= bound)
        return "";
    return std::string(what) + " " + std::to_string(i) + " is " + std::to_string(got) + ", expected " + std::to_string(want);
}

// The half of a whole number of at most 11 bits.
inline uint32_t half_of(int value)
{
    if (value == 0)
        return 0;
    uint32_t magnitude = value < 0 ? -value : value, exponent = 31 - __builtin_clz(magnitude);
    return (value < 0 ? 0x8000u : 0u) | (exponent + 15) << 10 | ((magnitude << (10 - exponent)) & 0x3ffu);
}

}  // namespace bench
