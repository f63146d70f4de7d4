// Keys and values of 1 to 16 bytes, by what -DKEY_TYPE and -DVALUE_TYPE name.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

/// A structure of so many bytes with an order.
template <class Word, int Words> struct Row {
    Word word[Words];
    friend __host__ __device__ bool operator==(const Row &a, const Row &b)
    {
        for (int i = 0; i < Words; i++)
            if (a.word[i] != b.word[i])
                return false;
        return true;
    }
    friend __host__ __device__ bool operator!=(const Row &a, const Row &b) { return !(a == b); }
    friend __host__ __device__ bool operator<(const Row &a, const Row &b)
    {
        for (int i = 0; i < Words; i++)
            if (a.word[i] != b.word[i])
                return a.word[i] < b.word[i];
        return false;
    }
    friend __host__ __device__ Row operator+(const Row &a, const Row &b)
    {
        Row sum = {};
        for (int i = 0; i < Words; i++)
            sum.word[i] = a.word[i] + b.word[i];
        return sum;
    }
};

typedef Row<uint8_t, 3> Bytes3;
typedef Row<int, 3> Words3;
typedef Row<double, 2> Doubles2;
typedef __int128 Wide;

typedef KEY_TYPE Key;
typedef VALUE_TYPE Value;

struct Before {
    template <class T> __host__ __device__ bool operator()(const T &a, const T &b) const { return a < b; }
};
struct Plus {
    template <class T> __host__ __device__ T operator()(const T &a, const T &b) const { return a + b; }
};
struct IsSmall {
    Key than;
    __host__ __device__ bool operator()(const Key &key) const { return key < than; }
};

/// A radix sort takes its digits.
template <class T> struct HasDigits {
    static constexpr bool value = false;
};
#define HAS_DIGITS(type)                                                                                               \
    template <> struct HasDigits<type> {                                                                               \
        static constexpr bool value = true;                                                                            \
    };
HAS_DIGITS(uint8_t)
HAS_DIGITS(int16_t)
HAS_DIGITS(int)
HAS_DIGITS(long long)
HAS_DIGITS(Wide)
HAS_DIGITS(float)
HAS_DIGITS(double)
HAS_DIGITS(__half)
