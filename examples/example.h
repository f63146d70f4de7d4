// What every example shares: checking calls, reporting a result, and one notation for two ways to reach the GPU.
//
// Normally an example is an ordinary runtime program: LAUNCH(kernel, grid, block)(arguments) is
// kernel<<<grid, block>>>(arguments), and SYMBOL(x) is x. With EXAMPLE_DLOPEN its host half is compiled alone; it opens
// libcuda.so.1 by itself and loads the embedded image of its device half (dlopen_driver.h).
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef EXAMPLE_DLOPEN
#define DEVICE_CODE 0
#include "dlopen_driver.h"
#else
#define DEVICE_CODE 1
#include <cuda_runtime.h>
#define LAUNCH(kernel, ...) kernel<<<__VA_ARGS__>>>
#define SYMBOL(name) name
#define ADDRESS_OF_MANAGED(name) (&name)
#endif

#ifdef EXAMPLE_PTX
#define KERNEL extern "C" __global__ void  // found by name in the embedded image
#else
#define KERNEL __global__ void
#endif

// Prints what differs and ends the program with 1.
[[noreturn]] inline void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::printf("FAILED: ");
    std::vprintf(format, arguments);
    std::printf("\n");
    va_end(arguments);
    std::fflush(stdout);
    std::_Exit(1);
}

inline void check(cudaError_t error, const char *call, const char *file, int line)
{
    if (error != cudaSuccess)
        fail("%s:%d: %s: %d %s (%s)", file, line, call, static_cast<int>(error), cudaGetErrorName(error), cudaGetErrorString(error));
}

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

// The first element that differs, if any, ends the program.
template <typename T>
void expect_equal(const char *what, const std::vector<T> &got, const std::vector<T> &expected)
{
    if (got.size() != expected.size())
        fail("%s: %zu elements, expected %zu", what, got.size(), expected.size());
    for (size_t i = 0; i < got.size(); i++)
        if (std::memcmp(&got[i], &expected[i], sizeof(T)) != 0)
            fail("%s[%zu] is %.9g, expected %.9g", what, i, static_cast<double>(got[i]), static_cast<double>(expected[i]));
}

inline void expect_equal(const char *what, long long got, long long expected)
{
    if (got != expected)
        fail("%s is %lld, expected %lld", what, got, expected);
}

// A small generator, the same on every machine.
struct Numbers {
    uint32_t state;
    uint32_t next() { return (state = state * 1664525u + 1013904223u) >> 8; }
};

inline int passed()
{
    std::printf("PASSED\n");
    return std::fflush(stdout) == 0 ? 0 : 1;
}
