// Matrix product through tiles in shared memory: barriers inside a loop, blocks that stick out of the matrix.
#include "example.h"

const int TILE = 16;

#if DEVICE_CODE
KERNEL matmul_tiled(const float *a, const float *b, float *c, int m, int k, int n)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    const int row = blockIdx.y * TILE + threadIdx.y;
    const int column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        const int across = start + threadIdx.x, down = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < m && across < k ? a[row * k + across] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = down < k && column < n ? b[down * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n)
        c[row * n + column] = sum;
}
#endif

int main()
{
    const int m = 250, k = 170, n = 230;
    std::vector<float> a(m * k), b(k * n), c(m * n, -1.0f), expected(m * n, 0.0f);
    // Small whole numbers: every partial sum is exact, so the order of additions does not matter.
    Numbers numbers{2};
    for (float &value : a)
        value = static_cast<float>(static_cast<int>(numbers.next() % 15) - 7);
    for (float &value : b)
        value = static_cast<float>(static_cast<int>(numbers.next() % 9) - 4);
    for (int row = 0; row < m; row++)
        for (int i = 0; i < k; i++)
            for (int column = 0; column < n; column++)
                expected[row * n + column] += a[row * k + i] * b[i * n + column];

    float *device_a, *device_b, *device_c;
    CHECK(cudaMalloc(&device_a, a.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_b, b.size() * sizeof(float)));
    CHECK(cudaMalloc(&device_c, c.size() * sizeof(float)));
    CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));

    const dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    std::printf("matmul_tiled: %dx%d times %dx%d, %ux%u blocks of %dx%d threads\n", m, k, k, n, grid.x, grid.y, TILE, TILE);
    LAUNCH(matmul_tiled, grid, block)((const float *)device_a, (const float *)device_b, device_c, m, k, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(c.data(), device_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    expect_equal("c", c, expected);
    return passed();
}
