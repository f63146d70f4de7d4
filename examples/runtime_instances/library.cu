// The half with a runtime of its own, where it is linked statically.
#include "instance.h"

__global__ void write_seven(int *result)
{
    *result = 7;
}

// `volatile` keeps each call a call; with -DTAIL_CALLS `return f()` may become a jump that leaves no trace of us.
#ifdef TAIL_CALLS
#define ANSWER(call) return call
#else
#define ANSWER(call)                 \
    volatile cudaError_t error = call; \
    return error
#endif

extern "C" cudaError_t library_fails()
{
    ANSWER(FAIL_HERE());
}

extern "C" cudaError_t library_peeks()
{
    ANSWER(cudaPeekAtLastError());
}

extern "C" cudaError_t library_gets()
{
    ANSWER(cudaGetLastError());
}

// What CUB does: a launch is believed when nothing is kept after it.
extern "C" cudaError_t library_launches(int *result)
{
    write_seven<<<1, 1>>>(result);
    ANSWER(cudaPeekAtLastError());
}
