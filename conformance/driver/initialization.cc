// CUDA Driver API, "Initialization" and "Version Management".
#include "../check.h"

PROMISE(calls_before_init_answer_not_initialized)
{
    int count = 0;
    IS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CUdevice device;
    IS(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    CUdeviceptr memory;
    IS(cuMemAlloc(&memory, 16), CUDA_ERROR_NOT_INITIALIZED);
}

PROMISE(flags_of_init_must_be_0)
{
    IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(init_may_be_called_again)
{
    OK(cuInit(0));
    OK(cuInit(0));
}

PROMISE(the_version_is_known_before_init_and_counts_1000_major_10_minor)
{
    int version = 0;
    OK(cuDriverGetVersion(&version));
    TRUE(version >= 11000);
    SAME(version % 10, 0);
    IS(cuDriverGetVersion(nullptr), CUDA_ERROR_INVALID_VALUE);
}
