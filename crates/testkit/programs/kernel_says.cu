// What kernels say to the host: printf from several threads, an assertion that holds and one that does not, a trap, and a device
// that is as good as new after the reset. With an argument it ends by the trap.
#include <cassert>
#include <cstdio>

__global__ void say(const char *who, int n)
{
    const int i = threadIdx.x;
    if (i < n)
        printf("%s: block %d thread %2d half %.1f %s\n", who, blockIdx.x, i, i * 0.5, "and so on");
}

__global__ void check(int n)
{
    assert((int)threadIdx.x < n);
}

__global__ void stop()
{
    __trap();
}

int main(int argc, char **)
{
    char *who;
    if (cudaMallocManaged(&who, 16) != cudaSuccess)
        return 1;
    snprintf(who, 16, "kernel");
    say<<<2, 3>>>(who, 3);
    printf("says: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    check<<<1, 8>>>(8);
    printf("holds: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    if (argc > 1)
        stop<<<1, 1>>>();
    else
        check<<<1, 8>>>(7);
    printf("fails: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    printf("again: %s\n", cudaGetErrorName(cudaMalloc((void **)&who, 16)));
    printf("reset: %s\n", cudaGetErrorName(cudaDeviceReset()));
    printf("after: %s\n", cudaGetErrorName(cudaMalloc((void **)&who, 16)));
}
