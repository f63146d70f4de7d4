// Code from before Volta, and some from after: a warp sorts numbers in global memory, and adds them in shared memory, with
// nothing that has its lanes meet. CUDA no longer promises that a warp's lanes go in step; on hardware they do here, and
// programs count on it.
#include "example.h"

#if DEVICE_CODE
// Batcher's bitonic network over a power of two of numbers, by one warp.
KERNEL sort_by_warp(int *numbers, int n)
{
    int *own = numbers + blockIdx.x * n;
    for (int size = 2; size <= n; size *= 2)
        for (int width = size / 2; width > 0; width /= 2)
            for (int i = threadIdx.x; i < n / 2; i += 32) {
                const int low = i + (i & -width), high = low + width;
                const int a = own[low], b = own[high];
                const bool is_up = (low & size) == 0;
                if (is_up ? b < a : a < b) {
                    own[low] = b;
                    own[high] = a;
                }
            }
}

// The sum of 64 words, as the reductions of old samples end.
KERNEL sum_by_warp(const unsigned *words, unsigned *sums)
{
    __shared__ volatile unsigned all[64];
    const int lane = threadIdx.x;
    const unsigned *own = words + blockIdx.x * 64;
    all[lane] = own[lane];
    all[lane + 32] = own[lane + 32];
    all[lane] += all[lane + 32];
    if (lane < 16)
        all[lane] += all[lane + 16];
    if (lane < 8)
        all[lane] += all[lane + 8];
    if (lane < 4)
        all[lane] += all[lane + 4];
    if (lane < 2)
        all[lane] += all[lane + 2];
    if (lane < 1)
        all[lane] += all[lane + 1];
    if (lane == 0)
        sums[blockIdx.x] = all[0];
}
#endif

static int order(const void *a, const void *b)
{
    const int x = *static_cast<const int *>(a), y = *static_cast<const int *>(b);
    return (x > y) - (x < y);
}

int main()
{
    const int GROUPS = 37, N = 1024;
    std::vector<int> numbers(GROUPS * N);
    unsigned state = 12345;
    for (int &number : numbers) {
        state = state * 1664525u + 1013904223u;
        number = static_cast<int>(state) >> 4;
    }
    int *on_device = nullptr;
    CHECK(cudaMalloc(&on_device, numbers.size() * sizeof(int)));
    CHECK(cudaMemcpy(on_device, numbers.data(), numbers.size() * sizeof(int), cudaMemcpyHostToDevice));

    unsigned *sums_on_device = nullptr;
    const int ROWS = GROUPS * N / 64;
    CHECK(cudaMalloc(&sums_on_device, ROWS * sizeof(unsigned)));
    LAUNCH(sum_by_warp, ROWS, 32)(reinterpret_cast<unsigned *>(on_device), sums_on_device);
    CHECK(cudaGetLastError());
    std::vector<unsigned> sums(ROWS), expected_sums(ROWS);
    CHECK(cudaMemcpy(sums.data(), sums_on_device, ROWS * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (int i = 0; i < GROUPS * N; i++)
        expected_sums[i / 64] += static_cast<unsigned>(numbers[i]);
    expect_equal("the sums", sums, expected_sums);

    // More than once: the first launch may run in other code than those behind it.
    for (int launch = 0; launch < 3; launch++) {
        CHECK(cudaMemcpy(on_device, numbers.data(), numbers.size() * sizeof(int), cudaMemcpyHostToDevice));
        LAUNCH(sort_by_warp, GROUPS, 32)(on_device, N);
        CHECK(cudaGetLastError());
        std::vector<int> sorted(numbers.size()), expected = numbers;
        CHECK(cudaMemcpy(sorted.data(), on_device, sorted.size() * sizeof(int), cudaMemcpyDeviceToHost));
        for (int group = 0; group < GROUPS; group++)
            std::qsort(expected.data() + group * N, N, sizeof(int), order);
        expect_equal("the numbers", sorted, expected);
    }
    CHECK(cudaFree(on_device));
    CHECK(cudaFree(sums_on_device));
    std::printf("warp_in_step: %d numbers\n", GROUPS * N);
    return passed();
}
