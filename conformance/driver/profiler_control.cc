// CUDA Driver API, "Profiler Control".
#include "../device.h"
extern "C" CUresult cuProfilerStart();
extern "C" CUresult cuProfilerStop();

PROMISE(profiling_starts_and_stops_without_a_profiler)
{
    start();
    OK(cuProfilerStart());
    OK(cuProfilerStart());
    OK(cuProfilerStop());
    OK(cuProfilerStop());
}

PROMISE(profiling_needs_a_context)
{
    OK(cuInit(0));
    IS(cuProfilerStart(), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuProfilerStop(), CUDA_ERROR_INVALID_CONTEXT);
}
