// What both halves of the program do: fail, and ask for the last error, each through the runtime it was linked with.
#pragma once

#include <cuda_runtime.h>

// A call that cannot succeed anywhere: cudaErrorInvalidDevice, 101.
#define FAIL_HERE() cudaSetDevice(99)

extern "C" cudaError_t library_fails();
extern "C" cudaError_t library_peeks();
extern "C" cudaError_t library_gets();
extern "C" cudaError_t library_launches(int *result);
