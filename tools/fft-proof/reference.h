// What a transform is, by its definition, in the 64 bits of x87's numbers; and what the manual says of layouts, spelled out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <cufftXt.h>
#include <string>
#include <vector>

[[noreturn]] inline void fail(const std::string &what)
{
    std::printf("FAILED: %s\n", what.c_str());
    std::fflush(stdout);
    std::_Exit(1);
}

inline void check(int got, int expected, const char *call, int line)
{
    if (got != expected)
        fail("line " + std::to_string(line) + ": " + call + ": " + std::to_string(got) + ", expected " + std::to_string(expected));
}

#define CHECK(call) check(static_cast<int>(call), 0, #call, __LINE__)
#define ANSWERS(expected, call) check(static_cast<int>(call), expected, #call, __LINE__)

struct Dice {
    uint64_t state;
    uint64_t next()
    {
        state += 0x9E3779B97F4A7C15ull;
        uint64_t z = state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    long long below(long long n) { return static_cast<long long>(next() % static_cast<uint64_t>(n)); }
    long long between(long long least, long long most) { return least + below(most - least + 1); }
    double unit() { return static_cast<double>(next() >> 11) / (1ull << 52) - 1; }
};

struct Number {
    long double re, im;
};

inline Number root(long long k, long long n, int sign)
{
    const long double turn = 2 * 3.14159265358979323846264338327950288L;
    return {cosl(turn * k / n), sign * sinl(turn * k / n)};
}

// One axis after the other.
inline void transform(std::vector<Number> &data, const std::vector<long long> &n, int sign)
{
    long long inner = 1;
    for (int axis = static_cast<int>(n.size()) - 1; axis >= 0; axis--) {
        const long long length = n[axis], lines = static_cast<long long>(data.size()) / length;
        std::vector<Number> roots(length), line(length);
        for (long long k = 0; k < length; k++)
            roots[k] = root(k, length, sign);
        for (long long l = 0; l < lines; l++) {
            Number *first = &data[l / inner * inner * length + l % inner];
            for (long long j = 0; j < length; j++)
                line[j] = first[j * inner];
            for (long long k = 0; k < length; k++) {
                long double re = 0, im = 0;
                for (long long j = 0, turns = 0; j < length; j++, turns = (turns + k) % length) {
                    re += line[j].re * roots[turns].re - line[j].im * roots[turns].im;
                    im += line[j].re * roots[turns].im + line[j].im * roots[turns].re;
                }
                first[k * inner] = {re, im};
            }
        }
        inner *= length;
    }
}

struct Precision {
    const char *name;
    int bytes;
    cudaDataType real, complex;
    // Of the relative error in L2, and whether it grows with the number of bits of the length.
    double bound;
    bool grows;
};

static const Precision PRECISIONS[] = {
    {"half", 2, CUDA_R_16F, CUDA_C_16F, 1e-3, false},
    {"bfloat16", 2, CUDA_R_16BF, CUDA_C_16BF, 8e-3, false},
    {"single", 4, CUDA_R_32F, CUDA_C_32F, 1e-6, true},
    {"double", 8, CUDA_R_64F, CUDA_C_64F, 1e-15, true},
};

inline double load(const Precision &of, const unsigned char *at)
{
    if (of.bytes == 8) {
        double value;
        std::memcpy(&value, at, 8);
        return value;
    }
    if (of.bytes == 4) {
        float value;
        std::memcpy(&value, at, 4);
        return value;
    }
    if (of.real == CUDA_R_16F) {
        __half value;
        std::memcpy(&value, at, 2);
        return __half2float(value);
    }
    __nv_bfloat16 value;
    std::memcpy(&value, at, 2);
    return __bfloat162float(value);
}

// Stores the number, and gives what it has become.
inline double store(const Precision &of, unsigned char *at, double number)
{
    if (of.bytes == 8) {
        std::memcpy(at, &number, 8);
    } else if (of.bytes == 4) {
        float value = static_cast<float>(number);
        std::memcpy(at, &value, 4);
    } else if (of.real == CUDA_R_16F) {
        __half value = __float2half_rn(static_cast<float>(number));
        std::memcpy(at, &value, 2);
    } else {
        __nv_bfloat16 value = __float2bfloat16_rn(static_cast<float>(number));
        std::memcpy(at, &value, 2);
    }
    return load(of, at);
}

// One side of a plan, in elements of its type.
struct Side {
    bool complex;
    std::vector<long long> counts;
    std::vector<long long> embed;
    long long stride, distance;

    // Where element `i` of transform `b` lies, in real numbers.
    long long at(long long b, long long i) const
    {
        long long place = 0, step = 1;
        for (int axis = static_cast<int>(counts.size()) - 1; axis >= 0; axis--) {
            place += i % counts[axis] * step;
            i /= counts[axis];
            step *= embed[axis];
        }
        return (b * distance + place * stride) * (complex ? 2 : 1);
    }

    long long volume() const
    {
        long long volume = 1;
        for (long long count : counts)
            volume *= count;
        return volume;
    }

    // Real numbers from the first to behind the last.
    long long extent(long long batch) const { return at(batch - 1, volume() - 1) + (complex ? 2 : 1); }
};

enum Kind { C2C, R2C, C2R };

// A plan that is drawn, and what the manual makes of it.
struct Case {
    Precision precision;
    Kind kind;
    std::vector<long long> n;
    long long batch;
    bool in_place, basic;
    int sign;
    Side input, output;

    long long volume() const
    {
        long long volume = 1;
        for (long long length : n)
            volume *= length;
        return volume;
    }

    cufftType type() const
    {
        const bool wide = precision.bytes == 8;
        return kind == C2C ? (wide ? CUFFT_Z2Z : CUFFT_C2C) : kind == R2C ? (wide ? CUFFT_D2Z : CUFFT_R2C) : (wide ? CUFFT_Z2D : CUFFT_C2R);
    }

    std::string text() const
    {
        std::string text = precision.name;
        text += kind == C2C ? " C2C" : kind == R2C ? " R2C" : " C2R";
        for (long long length : n)
            text += " " + std::to_string(length);
        text += " batch " + std::to_string(batch) + (in_place ? " in place" : "") + (sign < 0 ? " forward" : " inverse");
        for (const Side *side : {&input, &output}) {
            text += basic ? " basic" : " embed";
            for (long long length : side->embed)
                text += " " + std::to_string(length);
            text += " stride " + std::to_string(side->stride) + " distance " + std::to_string(side->distance);
        }
        return text;
    }
};

inline Side dense(bool complex, const std::vector<long long> &counts, long long row)
{
    Side side{complex, counts, counts, 1, row};
    side.embed.back() = row;
    for (size_t axis = 0; axis + 1 < counts.size(); axis++)
        side.distance *= counts[axis];
    return side;
}

inline Side drawn(bool complex, const std::vector<long long> &counts, long long batch, Dice &dice)
{
    Side side = dense(complex, counts, counts.back());
    for (long long &length : side.embed)
        length += dice.below(3);
    side.distance = 1;
    for (long long length : side.embed)
        side.distance *= length;
    side.stride = dice.between(1, 3);
    side.distance = side.distance * side.stride + dice.below(5);
    // The transforms of a batch lie between each other.
    if (dice.below(4) == 0) {
        side.stride = batch + dice.below(2);
        side.distance = 1;
    }
    return side;
}

inline long long drawn_length(int rank, Dice &dice)
{
    static const long long primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
    const long long most = rank == 1 ? 1100 : rank == 2 ? 60 : 18;
    switch (dice.below(4)) {
    case 0: {
        long long length = 1;
        while (length * 2 <= most && dice.below(8) != 0)
            length *= 2;
        return length;
    }
    case 1: {
        long long length = 1;
        for (int i = 0; i < 8; i++) {
            long long prime = primes[dice.below(5)];
            if (length * prime <= most)
                length *= prime;
        }
        return length;
    }
    case 2:
        return std::min(most, primes[dice.below(16)]);
    default:
        return dice.between(1, most);
    }
}

inline Case draw(const Precision &precision, Dice &dice)
{
    Case drawn_case{precision, static_cast<Kind>(dice.below(3)), {}, dice.between(1, 5), dice.below(3) == 0, dice.below(2) == 0, 0, {}, {}};
    Case &c = drawn_case;
    const int rank = static_cast<int>(dice.between(1, 3));
    for (int axis = 0; axis < rank; axis++)
        c.n.push_back(drawn_length(rank, dice));
    c.sign = c.kind == R2C ? -1 : c.kind == C2R ? 1 : dice.below(2) ? 1 : -1;
    std::vector<long long> half = c.n;
    half.back() = c.n.back() / 2 + 1;
    const std::vector<long long> &from = c.kind == C2R ? half : c.n, &to = c.kind == R2C ? half : c.n;
    const bool from_complex = c.kind != R2C, to_complex = c.kind != C2R;
    auto row = [&](bool complex, const std::vector<long long> &counts) {
        // In place, a row of real numbers begins where its complex row does.
        return !complex && c.in_place ? 2 * half.back() : counts.back();
    };
    if (c.basic || (c.in_place && c.kind != C2C)) {
        c.input = dense(from_complex, from, row(from_complex, from));
        c.output = dense(to_complex, to, row(to_complex, to));
        if (!c.basic) {
            // Longer rows, on both sides alike.
            const long long more = dice.below(4);
            for (Side *side : {&c.input, &c.output}) {
                const long long longer = side->embed.back() + (side->complex ? more : 2 * more);
                *side = dense(side->complex, side->counts, longer);
            }
        }
    } else {
        c.input = drawn(from_complex, from, c.batch, dice);
        c.output = c.in_place ? c.input : drawn(to_complex, to, c.batch, dice);
    }
    return c;
}
