// Thrust's algorithms on a million elements: what a program meets cold that sorts, scans, reduces and selects.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include "example.h"

struct LowerHalf {
    __host__ __device__ bool operator()(int a, int b) const { return (a & 0xffff) < (b & 0xffff); }
};

template <typename T>
std::vector<T> on_host(const thrust::device_vector<T> &device)
{
    std::vector<T> host(device.size());
    thrust::copy(device.begin(), device.end(), host.begin());
    return host;
}

int main()
{
    const int n = 1 << 20;
    std::mt19937 random(1);
    std::vector<int> numbers(n);
    std::vector<float> keys(n);
    for (int i = 0; i < n; i++) {
        numbers[i] = static_cast<int>(random());
        keys[i] = std::ldexp(static_cast<float>(static_cast<int>(random())), -20);
    }

    thrust::device_vector<int> sorted = numbers;
    thrust::sort(sorted.begin(), sorted.end());
    std::vector<int> expected = numbers;
    std::sort(expected.begin(), expected.end());
    expect_equal("sort", on_host(sorted), expected);

    thrust::device_vector<int> by_half = numbers;
    thrust::stable_sort(by_half.begin(), by_half.end(), LowerHalf());
    std::vector<int> expected_by_half = numbers;
    std::stable_sort(expected_by_half.begin(), expected_by_half.end(), LowerHalf());
    expect_equal("stable_sort with a comparator", on_host(by_half), expected_by_half);

    thrust::device_vector<int> counted(n), sums(n);
    thrust::sequence(counted.begin(), counted.end());
    thrust::exclusive_scan(counted.begin(), counted.end(), sums.begin());
    std::vector<int> expected_sums(n);
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        expected_sums[i] = static_cast<int>(sum);
        sum += static_cast<unsigned>(i);
    }
    expect_equal("exclusive_scan", on_host(sums), expected_sums);

    const long long total = thrust::reduce(counted.begin(), counted.end(), 0LL);
    if (total != static_cast<long long>(n) * (n - 1) / 2)
        fail("reduce: %lld", total);

    thrust::device_vector<float> sorted_keys = keys;
    thrust::sort_by_key(sorted_keys.begin(), sorted_keys.end(), counted.begin());
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    expect_equal("sort_by_key: values", on_host(counted), order);
    std::vector<float> expected_keys = keys;
    std::sort(expected_keys.begin(), expected_keys.end());
    expect_equal("sort_by_key: keys", on_host(sorted_keys), expected_keys);

    sorted.erase(thrust::unique(sorted.begin(), sorted.end()), sorted.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    expect_equal("unique", on_host(sorted), expected);

    std::puts("PASSED");
    return 0;
}
