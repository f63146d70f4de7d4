// CUB and Thrust, as programs use them: device-wide reduce, scan, sort and select, and block-wide primitives.
#include <algorithm>
#include <numeric>

#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>

#include "example.h"

struct IsOdd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};
struct Squared {
    __host__ __device__ long long operator()(int x) const { return (long long)x * x; }
};

__global__ void block_wide(const int *in, int *out)
{
    typedef cub::BlockScan<int, 128> Scan;
    typedef cub::BlockReduce<int, 128> Reduce;
    __shared__ union {
        typename Scan::TempStorage scan;
        typename Reduce::TempStorage reduce;
    } storage;
    const int value = in[threadIdx.x];
    int sum;
    Scan(storage.scan).ExclusiveSum(value, sum);
    __syncthreads();
    const int most = Reduce(storage.reduce).Reduce(value, [](int a, int b) { return a > b ? a : b; });
    out[threadIdx.x] = sum;
    if (threadIdx.x == 0)
        out[128] = most;
}

int main()
{
    const int n = 20000;
    std::vector<int> in(n);
    Numbers numbers{5};
    for (int &x : in)
        x = int(numbers.next() % 100000) - 50000;
    thrust::device_vector<int> device(in.begin(), in.end()), out(n);
    int *const d_in = thrust::raw_pointer_cast(device.data()), *const d_out = thrust::raw_pointer_cast(out.data());
    int *selected;
    CHECK(cudaMalloc(&selected, sizeof(int)));
    void *room = nullptr;
    size_t bytes = 0;
    std::vector<int> got(n), wanted(n);
    auto fetch = [&](int count) {
        got.resize(count);
        CHECK(cudaMemcpy(got.data(), d_out, count * sizeof(int), cudaMemcpyDeviceToHost));
    };
#define CUB(call)                        \
    room = nullptr, bytes = 0;           \
    CHECK(cub::call);                    \
    CHECK(cudaMalloc(&room, bytes + 1)); \
    CHECK(cub::call);                    \
    CHECK(cudaFree(room))

    CUB(DeviceReduce::Sum(room, bytes, d_in, d_out, n));
    fetch(1);
    expect_equal("sum", got[0], std::accumulate(in.begin(), in.end(), 0));
    CUB(DeviceScan::InclusiveSum(room, bytes, d_in, d_out, n));
    fetch(n);
    std::partial_sum(in.begin(), in.end(), wanted.begin());
    expect_equal("scan", got, wanted);
    CUB(DeviceRadixSort::SortKeys(room, bytes, d_in, d_out, n));
    fetch(n);
    wanted = in;
    std::sort(wanted.begin(), wanted.end());
    expect_equal("sort", got, wanted);
    CUB(DeviceSelect::If(room, bytes, d_in, d_out, selected, n, IsOdd()));
    int count = 0;
    CHECK(cudaMemcpy(&count, selected, sizeof(int), cudaMemcpyDeviceToHost));
    fetch(count);
    wanted.clear();
    std::copy_if(in.begin(), in.end(), std::back_inserter(wanted), IsOdd());
    expect_equal("select", got, wanted);
    block_wide<<<1, 128>>>(d_in, d_out);
    fetch(129);
    wanted.assign(129, 0);
    for (int i = 1; i < 128; i++)
        wanted[i] = wanted[i - 1] + in[i - 1];
    wanted[128] = *std::max_element(in.begin(), in.begin() + 128);
    expect_equal("block", got, wanted);

    const long long squares = thrust::transform_reduce(device.begin(), device.end(), Squared(), 0ll, thrust::plus<long long>());
    long long expected = 0;
    for (int x : in)
        expected += Squared()(x);
    expect_equal("squares", squares, expected);
    thrust::sort(device.begin(), device.end(), thrust::greater<int>());
    CHECK(cudaMemcpy(got.data(), d_in, 129 * sizeof(int), cudaMemcpyDeviceToHost));
    std::sort(in.begin(), in.end(), std::greater<int>());
    expect_equal("thrust::sort", got, std::vector<int>(in.begin(), in.begin() + 129));
    return passed();
}
