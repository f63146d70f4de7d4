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

PROMISE(no_device_is_visible_when_the_variable_says_so)
{
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

PROMISE(the_first_device_is_visible_by_its_number_and_what_follows_a_wrong_one_is_not)
{
    setenv("CUDA_VISIBLE_DEVICES", "0,99,1", 1);
    OK(cuInit(0));
    int count = 0;
    OK(cuDeviceGetCount(&count));
    SAME(count, 1);
}
