// Tensor maps: boxes of a matrix copied to shared memory and back by the copy engine, with bounds and a swizzle. For compute_90.
#include "example.h"

#include <cuda.h>

const int ROWS = 40, COLUMNS = 64, BOX_ROWS = 8, BOX_COLUMNS = 32;

#if __CUDA_ARCH__ >= 900
__device__ unsigned shared_address(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ void load(void *to, const CUtensorMap *map, int x, int y, unsigned long long *bar)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(BOX_ROWS * BOX_COLUMNS * 4) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(to)), "l"(map), "r"(x), "r"(y), "r"(shared_address(bar)) : "memory");
}

__device__ void wait(unsigned long long *bar, unsigned parity)
{
    unsigned over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(over) : "r"(shared_address(bar)), "r"(parity) : "memory");
}

__device__ void store(const CUtensorMap *map, int x, int y, const void *from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(x), "r"(y), "r"(shared_address(from)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#endif

// Each block takes boxes of `from`, adds 1 to what lies at each place and stores it to `to`. The box is swizzled: the
// pieces of 16 bytes of a row are exchanged by the row's number.
__global__ void add_one(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int n_boxes)
{
#if __CUDA_ARCH__ >= 900
    __shared__ alignas(1024) int box[BOX_ROWS][BOX_COLUMNS];
    __shared__ alignas(1024) int plain[BOX_ROWS][BOX_COLUMNS];
    __shared__ alignas(8) unsigned long long bar;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&bar)) : "memory");
        // For the copy engine.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    unsigned parity = 0;
    for (int number = blockIdx.x; number < n_boxes; number += gridDim.x, parity ^= 1) {
        // The last column and row of boxes stick out.
        const int x = number % 3 * BOX_COLUMNS - 16, y = number / 3 * BOX_ROWS - 4;
        if (threadIdx.x == 0)
            load(box, &from, x, y, &bar);
        wait(&bar, parity);
        const int row = threadIdx.x / BOX_COLUMNS, column = threadIdx.x % BOX_COLUMNS;
        plain[row][column] = box[row][column ^ (row % 8) * 4] + 1;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0)
            store(&to, x, y, plain);
        __syncthreads();
    }
#endif
}

typedef CUresult (*Encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                           const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                           CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

int main()
{
    void *found = nullptr;
    cudaDriverEntryPointQueryResult status;
#if CUDART_VERSION >= 13000
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status));
#else
    CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &status));
#endif
    expect_equal("entry point", status, cudaDriverEntryPointSuccess);
    const Encode encode = reinterpret_cast<Encode>(found);

    std::vector<int> host(ROWS * COLUMNS), got(ROWS * COLUMNS);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        host[i] = 7 * i;
    int *from, *to;
    CHECK(cudaMalloc(&from, host.size() * 4));
    CHECK(cudaMalloc(&to, host.size() * 4));
    CHECK(cudaMemcpy(from, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(to, 0, host.size() * 4));

    CUtensorMap maps[2];
    const cuuint64_t sizes[] = {COLUMNS, ROWS}, strides[] = {COLUMNS * 4};
    const cuuint32_t box[] = {BOX_COLUMNS, BOX_ROWS}, steps[] = {1, 1};
    for (int i = 0; i < 2; i++)
        expect_equal("encode", encode(&maps[i], CU_TENSOR_MAP_DATA_TYPE_INT32, 2, i == 0 ? from : to, sizes, strides, box, steps,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, i == 0 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                                      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                     CUDA_SUCCESS);
    const cuuint32_t large[] = {BOX_COLUMNS, 257};
    CUtensorMap refused;
    expect_equal("box of 257 rows", encode(&refused, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, from, sizes, strides, large, steps,
                                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 CUDA_ERROR_INVALID_VALUE);
    add_one<<<4, BOX_ROWS * BOX_COLUMNS>>>(maps[0], maps[1], 3 * 6);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), to, got.size() * 4, cudaMemcpyDeviceToHost));
    for (int &value : host)
        value++;
    expect_equal("the matrix", got, host);
    CHECK(cudaFree(from));
    CHECK(cudaFree(to));
    std::printf("tensor_maps: %d boxes of %d by %d\n", 3 * 6, BOX_ROWS, BOX_COLUMNS);
    return passed();
}
