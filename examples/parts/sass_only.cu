// A kernel for one architecture and no other: nvcc gets no PTX target for it. Part of error_paths.
#include <cuda_runtime.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

__global__ void JOIN(sass_kernel_, SASS_ARCH)(int *out)
{
    *out = SASS_ARCH;
}

cudaError_t JOIN(launch_sass_, SASS_ARCH)(int *out)
{
    JOIN(sass_kernel_, SASS_ARCH)<<<1, 1>>>(out);
    return cudaGetLastError();
}
