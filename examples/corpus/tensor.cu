// mma.h: 16×16×16 tiles in half with float sums, and in signed bytes; small integers, so every sum is exact.
#include <cuda_fp16.h>
#include <mma.h>

#include "example.h"

using namespace nvcuda;

template <typename In, typename Out>
__global__ void multiply(const In *a, const In *b, Out *c)
{
#if __CUDA_ARCH__ >= 720
    wmma::fragment<wmma::matrix_a, 16, 16, 16, In, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, In, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, Out> sum;
    wmma::fill_fragment(sum, Out(1));
    for (int k = 0; k < 32; k += 16) {
        wmma::load_matrix_sync(left, a + k, 32);
        wmma::load_matrix_sync(right, b + k, 32);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++)
        sum.x[i] = sum.x[i] * Out(2);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
#endif
}

template <typename In, typename Out>
void tile(const char *what, In (*convert)(int))
{
    std::vector<In> a(16 * 32), b(16 * 32);
    std::vector<int> left(a.size()), right(b.size());
    std::vector<Out> got(256), wanted(256);
    Numbers numbers{9};
    for (size_t i = 0; i < a.size(); i++) {
        a[i] = convert(left[i] = int(numbers.next() % 17) - 8);
        b[i] = convert(right[i] = int(numbers.next() % 17) - 8);
    }
    In *device_a, *device_b;
    Out *device_c;
    CHECK(cudaMalloc(&device_a, a.size() * sizeof(In)));
    CHECK(cudaMalloc(&device_b, b.size() * sizeof(In)));
    CHECK(cudaMalloc(&device_c, 256 * sizeof(Out)));
    CHECK(cudaMemcpy(device_a, a.data(), a.size() * sizeof(In), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_b, b.data(), b.size() * sizeof(In), cudaMemcpyHostToDevice));
    multiply<In, Out><<<1, 32>>>(device_a, device_b, device_c);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), device_c, 256 * sizeof(Out), cudaMemcpyDeviceToHost));
    for (int row = 0; row < 16; row++)
        for (int column = 0; column < 16; column++) {
            int sum = 1;
            for (int k = 0; k < 32; k++)
                sum += left[row * 32 + k] * right[column * 32 + k];
            wanted[row * 16 + column] = Out(2 * sum);
        }
    expect_equal(what, got, wanted);
}

int main()
{
    tile<__half, float>("half", [](int x) { return __float2half(float(x)); });
    tile<signed char, int>("signed char", [](int x) { return (signed char)x; });
    return passed();
}
