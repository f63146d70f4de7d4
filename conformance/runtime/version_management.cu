// CUDA Runtime API, "Version Management".
#include "../check.h"

PROMISE(the_runtime_has_the_version_of_its_headers_major)
{
    int version = 0;
    OK(cudaRuntimeGetVersion(&version));
    SAME(version / 1000, CUDART_VERSION / 1000);
}

PROMISE(the_driver_is_as_new_as_the_runtime_or_newer)
{
    int driver = 0, runtime = 0;
    OK(cudaDriverGetVersion(&driver));
    OK(cudaRuntimeGetVersion(&runtime));
    TRUE(driver / 1000 >= runtime / 1000);
}

PROMISE(both_apis_name_the_same_driver)
{
    int by_runtime = 0, by_driver = 0;
    OK(cudaDriverGetVersion(&by_runtime));
    OK(cuDriverGetVersion(&by_driver));
    SAME(by_runtime, by_driver);
}

PROMISE(versions_need_a_place)
{
    IS(cudaDriverGetVersion(nullptr), cudaErrorInvalidValue);
    IS(cudaRuntimeGetVersion(nullptr), cudaErrorInvalidValue);
}

PROMISE(asking_for_a_version_initialises_no_device)
{
    int version = 0;
    OK(cudaDriverGetVersion(&version));
    OK(cudaRuntimeGetVersion(&version));
    // NVIDIA's runtime initialises the driver for it, ours does not.
    OK(cuInit(0));
    unsigned flags = 0;
    int is_active = 1;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    SAME(is_active, 0);
}
