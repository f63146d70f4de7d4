// A kernel that writes behind the end of its array. README.md's picture has what CUDAWAY_SANITIZE=memcheck says of it.
#include <cstdio>

__global__ void fill(int *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) data[i] = i;
}

int main()
{
    int *data, n = 100;
    cudaMalloc(&data, n * sizeof(int));
    fill<<<2, 64>>>(data, n);
    std::puts(cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
