// CUDA Runtime API, "Profiler Control".
#include "../check.h"

// Not every toolkit has the header of these two, cuda_profiler_api.h.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

PROMISE(starting_and_stopping_succeeds_without_a_profiler)
{
    OK(cudaProfilerStart());
    OK(cudaProfilerStop());
    OK(cudaProfilerStop());
    OK(cudaGetLastError());
}
