// __constant__, __device__ and __managed__ variables, initialised, copied to and from, and shared by two kernels.
#include "example.h"

const int N = 1000;
#define MANAGED_TYPE(name) long long

#if DEVICE_CODE
#ifdef EXAMPLE_RDC
extern __device__ int second_unit_calls;
__device__ int cube(int value);
#else
#include "parts/second_unit.cu"
#endif

__constant__ int coefficients[4] = {1, 2, 3, 4};
__constant__ float scale = 0.5f;
__device__ int results[N];
__device__ int offset = 7;
__device__ const int table[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ int *pointer_to_offset = &offset;  // an address in an initialiser
__managed__ long long total = 100;

KERNEL polynomial(int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const int x = i % 50;
    int value = coefficients[0] + coefficients[1] * x + coefficients[2] * x * x + coefficients[3] * cube(x);
    value += *pointer_to_offset + table[i % 8];
    results[i] = static_cast<int>(value * scale);
    atomicAdd(reinterpret_cast<unsigned long long *>(&total), static_cast<unsigned long long>(results[i]));
}

KERNEL next_offset()
{
    offset += results[1] + static_cast<int>(total % 10);
}
#endif

struct Model {
    int coefficients[4] = {1, 2, 3, 4};
    int offset = 7;
    float scale = 0.5f;
    long long total = 100;
    std::vector<int> results = std::vector<int>(N, 0);

    void polynomial()
    {
        static const int table[8] = {2, 3, 5, 7, 11, 13, 17, 19};
        for (int i = 0; i < N; i++) {
            const int x = i % 50;
            int value = coefficients[0] + coefficients[1] * x + coefficients[2] * x * x + coefficients[3] * x * x * x;
            value += offset + table[i % 8];
            results[i] = static_cast<int>(value * scale);
            total += results[i];
        }
    }
};

int main()
{
    Model model;
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));  // a managed variable has no address without a device
    volatile long long *const managed = ADDRESS_OF_MANAGED(total);
    std::vector<int> got(N);
    const auto compare = [&](const char *when) {
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpyFromSymbol(got.data(), SYMBOL(results), N * sizeof(int)));
        expect_equal(when, got, model.results);
        expect_equal("the managed total", *managed, model.total);
    };

    std::printf("constant_and_globals: total %lld\n", static_cast<long long>(*managed));
    expect_equal("the managed total before any kernel", *managed, 100);
    LAUNCH(polynomial, (N + 127) / 128, 128)(N);
    model.polynomial();
    compare("results with initial values");

    // Part of an array, a scalar, and a managed variable written by the host.
    const int middle[2] = {-5, 6};
    CHECK(cudaMemcpyToSymbol(SYMBOL(coefficients), middle, sizeof middle, sizeof(int)));
    model.coefficients[1] = -5;
    model.coefficients[2] = 6;
    const float quarter = 0.25f;
    CHECK(cudaMemcpyToSymbol(SYMBOL(scale), &quarter, sizeof quarter));
    model.scale = quarter;
    *managed = model.total = 31;
    LAUNCH(polynomial, (N + 127) / 128, 128)(N);
    model.polynomial();
    compare("results after cudaMemcpyToSymbol");

    // One kernel changes what the next one reads.
    LAUNCH(next_offset, 1, 1)();
    CHECK(cudaGetLastError());
    LAUNCH(polynomial, (N + 127) / 128, 128)(N);
    model.offset += model.results[1] + static_cast<int>(model.total % 10);
    model.polynomial();
    compare("results after the device changed a global");

    int *address = nullptr;
    size_t bytes = 0;
    CHECK(cudaGetSymbolAddress((void **)&address, SYMBOL(offset)));
    CHECK(cudaGetSymbolSize(&bytes, SYMBOL(results)));
    expect_equal("the size of results", static_cast<long long>(bytes), N * static_cast<long long>(sizeof(int)));
    int offset_now = 0, calls = 0;
    CHECK(cudaMemcpy(&offset_now, address, sizeof offset_now, cudaMemcpyDeviceToHost));
    expect_equal("offset through its address", offset_now, model.offset);
    CHECK(cudaMemcpyFromSymbol(&calls, SYMBOL(second_unit_calls), sizeof calls));
    expect_equal("calls into the second unit", calls, 3 * N);
    return passed();
}
