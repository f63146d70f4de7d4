// Thrust's algorithms, timed: the same source by nvcc for CUDA, and by g++ for Thrust's OpenMP and TBB backends.
// A line for each row, fields joined by tabs: name, wall and CPU milliseconds of the fastest of the runs, each for itself.
// A row whose result is not what the standard library gives ends the program with 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/merge.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include "../cpu_time.h"

#if THRUST_DEVICE_SYSTEM == THRUST_DEVICE_SYSTEM_CUDA
#include <cuda_runtime.h>
static void finish() { cudaDeviceSynchronize(); }
#else
static void finish() {}
#endif

static const int N = 1 << 20, RUNS = 12;
// A row runs at least so long: twelve runs of a tenth of a millisecond tell little, and are no reason to make better code.
static const double MILLISECONDS = 100;

static double wall_milliseconds()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

struct LowerHalf {
    __host__ __device__ bool operator()(int a, int b) const { return (a & 0xffff) < (b & 0xffff); }
};
struct IsOdd {
    __host__ __device__ bool operator()(int x) const { return x & 1; }
};

static const char *only;

// `prepare` is not timed.
template <typename Prepare, typename Work, typename Check>
static void row(const char *name, Prepare prepare, Work work, Check check)
{
    if (only && !strstr(name, only))
        return;
    double wall = 1e30, cpu = 1e30;
    const double begin = wall_milliseconds();
    for (int run = 0; run < RUNS || wall_milliseconds() - begin < MILLISECONDS; run++) {
        prepare();
        finish();
        const double cpu_start = cpu_milliseconds(), wall_start = wall_milliseconds();
        work();
        finish();
        wall = std::min(wall, wall_milliseconds() - wall_start);
        cpu = std::min(cpu, cpu_milliseconds() - cpu_start);
    }
    if (!check()) {
        fprintf(stderr, "%s: wrong\n", name);
        exit(1);
    }
    printf("%s\t%.4f\t%.4f\n", name, wall, cpu);
    fflush(stdout);
}

template <typename T> static bool same(const thrust::device_vector<T> &device, const std::vector<T> &expected, size_t n)
{
    std::vector<T> host(n);
    thrust::copy(device.begin(), device.begin() + n, host.begin());
    return n == expected.size() && host == expected;
}

template <typename T> static bool same(const thrust::device_vector<T> &device, const std::vector<T> &expected)
{
    return same(device, expected, device.size());
}

int main(int argc, char **argv)
{
    only = argc > 1 ? argv[1] : nullptr;
    std::mt19937_64 random(1);
    std::vector<int> ints(N), few(N), other(N);
    std::vector<float> floats(N);
    std::vector<long long> longs(N);
    for (int i = 0; i < N; i++) {
        ints[i] = int(random());
        few[i] = int(random() % 1000) / 3;
        other[i] = int(random());
        floats[i] = float(int(random())) / 1024;
        longs[i] = (long long)random();
    }
    const thrust::device_vector<int> d_ints = ints;
    const thrust::device_vector<float> d_floats = floats;
    const thrust::device_vector<long long> d_longs = longs;
    thrust::device_vector<int> a(N), b(N), c(2 * N), d(2 * N);
    thrust::device_vector<float> f(N);
    thrust::device_vector<long long> l(N);
    std::vector<int> index(N);
    std::iota(index.begin(), index.end(), 0);
    const thrust::device_vector<int> d_index = index;
    size_t count = 0;

    auto sorted = ints;
    std::sort(sorted.begin(), sorted.end());
    row("sort, int", [&] { a = d_ints; }, [&] { thrust::sort(a.begin(), a.end()); }, [&] { return same(a, sorted); });
    auto down = ints;
    std::sort(down.begin(), down.end(), std::greater<int>());
    row("sort, int, descending", [&] { a = d_ints; },
        [&] { thrust::sort(a.begin(), a.end(), thrust::greater<int>()); }, [&] { return same(a, down); });
    auto sorted_longs = longs;
    std::sort(sorted_longs.begin(), sorted_longs.end());
    row("sort, 64 bits", [&] { l = d_longs; }, [&] { thrust::sort(l.begin(), l.end()); },
        [&] { return same(l, sorted_longs); });
    auto order = index;
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return floats[x] < floats[y]; });
    row("stable_sort_by_key, float and int", [&] { f = d_floats, a = d_index; },
        [&] { thrust::stable_sort_by_key(f.begin(), f.end(), a.begin()); }, [&] { return same(a, order); });
    auto halves = ints;
    std::stable_sort(halves.begin(), halves.end(), LowerHalf());
    row("stable_sort, comparator", [&] { a = d_ints; },
        [&] { thrust::stable_sort(a.begin(), a.end(), LowerHalf()); }, [&] { return same(a, halves); });

    std::vector<int> sums(N);
    std::partial_sum(few.begin(), few.end(), sums.begin());
    const thrust::device_vector<int> d_few = few;
    row("inclusive_scan", [] {}, [&] { thrust::inclusive_scan(d_few.begin(), d_few.end(), a.begin()); },
        [&] { return same(a, sums); });
    auto exclusive = sums;
    exclusive.insert(exclusive.begin(), 0);
    exclusive.pop_back();
    row("exclusive_scan", [] {}, [&] { thrust::exclusive_scan(d_few.begin(), d_few.end(), a.begin()); },
        [&] { return same(a, exclusive); });
    int total = 0;
    row("reduce", [] {}, [&] { total = thrust::reduce(d_few.begin(), d_few.end()); }, [&] { return total == sums.back(); });

    auto runs = few;
    std::sort(runs.begin(), runs.end());
    const thrust::device_vector<int> d_runs = runs;
    auto keys = runs;
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    row("unique, few", [&] { a = d_runs; }, [&] { count = thrust::unique(a.begin(), a.end()) - a.begin(); },
        [&] { return same(a, keys, count); });
    auto many = sorted;
    many.erase(std::unique(many.begin(), many.end()), many.end());
    const thrust::device_vector<int> d_sorted = sorted;
    row("unique, many", [&] { a = d_sorted; }, [&] { count = thrust::unique(a.begin(), a.end()) - a.begin(); },
        [&] { return same(a, many, count); });
    std::vector<int> by_key;
    for (size_t i = 0, k = 0; k < keys.size(); k++) {
        int sum = 0;
        for (; i < runs.size() && runs[i] == keys[k]; i++)
            sum += few[i];
        by_key.push_back(sum);
    }
    row("reduce_by_key", [] {},
        [&] {
            count = thrust::reduce_by_key(d_runs.begin(), d_runs.end(), d_few.begin(), a.begin(), b.begin()).first - a.begin();
        },
        [&] { return same(b, by_key, count); });
    std::vector<int> odd;
    std::copy_if(ints.begin(), ints.end(), std::back_inserter(odd), IsOdd());
    row("copy_if", [] {},
        [&] { count = thrust::copy_if(d_ints.begin(), d_ints.end(), a.begin(), IsOdd()) - a.begin(); },
        [&] { return same(a, odd, count); });

    std::sort(other.begin(), other.end());
    const thrust::device_vector<int> d_other = other;
    std::vector<int> expected;
    std::merge(sorted.begin(), sorted.end(), other.begin(), other.end(), std::back_inserter(expected));
    row("merge", [] {},
        [&] { thrust::merge(d_sorted.begin(), d_sorted.end(), d_other.begin(), d_other.end(), c.begin()); },
        [&] { return same(c, expected); });
    auto third = std::vector<int>();
    for (int i = 0; i < N; i += 3)
        third.push_back(sorted[i]);
    const thrust::device_vector<int> d_third = third;
    expected.clear();
    std::set_difference(sorted.begin(), sorted.end(), third.begin(), third.end(), std::back_inserter(expected));
    row("set_difference", [] {},
        [&] {
            count = thrust::set_difference(d_sorted.begin(), d_sorted.end(), d_third.begin(), d_third.end(), d.begin()) -
                    d.begin();
        },
        [&] { return same(d, expected, count); });
    return 0;
}
