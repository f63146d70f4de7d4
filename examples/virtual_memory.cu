// Addresses reserved once, memory mapped behind them piece by piece: an array that grows without moving.
#include "example.h"

#include <cuda.h>
#include <unistd.h>

static void check_driver(CUresult result, const char *call, int line)
{
    const char *name = "?";
    if (result != CUDA_SUCCESS) {
        cuGetErrorName(result, &name);
        fail("line %d: %s: %d %s", line, call, static_cast<int>(result), name);
    }
}
#define DRIVER(call) check_driver((call), #call, __LINE__)

static void expect_refused(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        fail("%s succeeded", what);
}

__global__ void fill(unsigned *to, unsigned first, size_t n)
{
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        to[i] = first + 3 * static_cast<unsigned>(i);
}

__global__ void sum(const unsigned *from, size_t n, unsigned long long *total)
{
    unsigned long long own = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x)
        own += from[i];
    atomicAdd(total, own);
}

int main()
{
    CHECK(cudaFree(nullptr));
    CUdevice device;
    DRIVER(cuCtxGetDevice(&device));
    int supported = 0;
    DRIVER(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device));
    expect_equal("virtual memory attribute", supported, 1);

    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    size_t piece = 0;
    DRIVER(cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));

    const int most = 4;
    CUdeviceptr base = 0;
    DRIVER(cuMemAddressReserve(&base, most * piece, 0, 0, 0));
    expect_refused(cuMemsetD32(base, 0, 1), "writing where nothing is mapped");

    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CUmemGenericAllocationHandle pieces[most];
    unsigned long long *total, host_total;
    CHECK(cudaMalloc(&total, sizeof *total));
    unsigned *const array = reinterpret_cast<unsigned *>(base);
    // What the array holds stays where it is while it grows.
    for (int i = 0; i < most; i++) {
        DRIVER(cuMemCreate(&pieces[i], piece, &properties, 0));
        DRIVER(cuMemMap(base + i * piece, piece, 0, pieces[i], 0));
        if (i == 0)
            expect_refused(cuMemsetD32(base, 0, 1), "writing before access is set");
        DRIVER(cuMemSetAccess(base + i * piece, piece, &access, 1));
        const size_t per_piece = piece / sizeof(unsigned), n = (i + 1) * per_piece;
        fill<<<8, 128>>>(array + i * per_piece, 3 * static_cast<unsigned>(i * per_piece), per_piece);
        CHECK(cudaMemset(total, 0, sizeof *total));
        sum<<<8, 128>>>(array, n, total);
        CHECK(cudaMemcpy(&host_total, total, sizeof host_total, cudaMemcpyDeviceToHost));
        expect_equal("sum while growing", host_total, 3ull * n * (n - 1) / 2);
    }
    unsigned long long flags = 0;
    DRIVER(cuMemGetAccess(&flags, &properties.location, base + piece));
    expect_equal("access", flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));

    // A copy that begins in one piece and ends in another.
    const size_t across = piece / sizeof(unsigned) - 100;
    std::vector<unsigned> got(200), expected(200);
    CHECK(cudaMemcpy(got.data(), array + across, 200 * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < 200; i++)
        expected[i] = 3 * static_cast<unsigned>(across + i);
    expect_equal("copy across pieces", got, expected);
    expect_refused(cuMemcpyDtoH(got.data(), base + most * piece - 4, 8), "a copy over the end");

    // The same memory at two addresses.
    CUdeviceptr again = 0;
    DRIVER(cuMemAddressReserve(&again, piece, 0, 0, 0));
    DRIVER(cuMemMap(again, piece, 0, pieces[1], 0));
    DRIVER(cuMemSetAccess(again, piece, &access, 1));
    fill<<<1, 32>>>(reinterpret_cast<unsigned *>(again), 7, 64);
    CHECK(cudaMemcpy(got.data(), reinterpret_cast<unsigned *>(base + piece), 64 * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 64; i++)
        expect_equal("through the other address", got[i], 7 + 3 * i);

    // A handle found by address, and one that went through a file descriptor.
    CUmemGenericAllocationHandle found, imported;
    DRIVER(cuMemRetainAllocationHandle(&found, reinterpret_cast<void *>(again)));
    CUmemAllocationProp asked = {};
    DRIVER(cuMemGetAllocationPropertiesFromHandle(&asked, found));
    expect_equal("type of a found handle", static_cast<int>(asked.type), static_cast<int>(CU_MEM_ALLOCATION_TYPE_PINNED));
    int descriptor = -1;
    DRIVER(cuMemExportToShareableHandle(&descriptor, found, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    DRIVER(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void *>(static_cast<uintptr_t>(descriptor)),
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    DRIVER(cuMemUnmap(again, piece));
    DRIVER(cuMemMap(again, piece, 0, imported, 0));
    DRIVER(cuMemSetAccess(again, piece, &access, 1));
    CHECK(cudaMemcpy(got.data(), reinterpret_cast<unsigned *>(again), 64 * sizeof(unsigned), cudaMemcpyDeviceToHost));
    expect_equal("through a descriptor", got[63], 7u + 3 * 63);

    expect_refused(cuMemAddressFree(base, most * piece), "giving back addresses in use");
    DRIVER(cuMemUnmap(again, piece));
    DRIVER(cuMemAddressFree(again, piece));
    DRIVER(cuMemRelease(imported));
    DRIVER(cuMemRelease(found));
    for (CUmemGenericAllocationHandle handle : pieces)
        DRIVER(cuMemRelease(handle));
    DRIVER(cuMemUnmap(base, most * piece));
    DRIVER(cuMemAddressFree(base, most * piece));
    expect_refused(cuMemRelease(pieces[0]), "releasing twice");
    CHECK(cudaFree(total));
    std::puts("virtual_memory: 4 pieces, 2 addresses, 1 descriptor");
    std::puts("PASSED");
    return 0;
}
