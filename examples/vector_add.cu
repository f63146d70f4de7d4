// Adds two vectors, the first program of every CUDA course.
#include "example.h"

#if DEVICE_CODE
KERNEL vector_add(const float *a, const float *b, float *c, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
#endif

int main()
{
    const int n = (1 << 20) + 13;  // the last block is partly idle
    const size_t bytes = n * sizeof(float);
    std::vector<float> a(n), b(n), c(n, -1.0f), expected(n);
    Numbers numbers{1};
    for (int i = 0; i < n; i++) {
        a[i] = numbers.next() * 0x1p-20f - 8.0f;
        b[i] = numbers.next() * 0x1p-24f;
        expected[i] = a[i] + b[i];
    }

    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_c, bytes));
    CHECK(cudaMemcpy(device_a, a.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), bytes, cudaMemcpyHostToDevice));

    const int block = 256, grid = (n + block - 1) / block;
    std::printf("vector_add: %d elements, %d blocks of %d threads\n", n, grid, block);
    LAUNCH(vector_add, grid, block)((const float *)device_a, (const float *)device_b, device_c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());

    CHECK(cudaMemcpy(c.data(), device_c, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    expect_equal("c", c, expected);
    return passed();
}
