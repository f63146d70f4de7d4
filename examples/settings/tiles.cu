// Cooperative groups' collectives for tiles of every size, and the groups that a branch or a label makes. It is compiled to PTX,
// never run: what counts is the setting that our CPU device gives to each kernel (docs/settings.md).
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

template <class Group> __device__ int votes(const Group &group, int x)
{
    return group.any(x > 3) + 2 * group.all(x > 5) + group.ballot(x & 1);
}

template <int Size> __global__ void shuffles(int *data)
{
    const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int x = data[i];
    x += tile.shfl(x, 0) + tile.shfl_up(x, 1) + tile.shfl_down(x, 1) + tile.shfl_xor(x, Size / 2);
    tile.sync();
    data[i] = x + votes(tile, x);
}

template <int Size, class T> __global__ void reductions(T *data)
{
    const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const T x = data[i];
    data[i] = cg::reduce(tile, x, cg::plus<T>()) + cg::reduce(tile, x, cg::less<T>()) +
              cg::inclusive_scan(tile, x, cg::plus<T>()) + cg::exclusive_scan(tile, x, cg::plus<T>());
}

template <int Size> __global__ void groups(int *data)
{
    const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int x = data[i];
    const auto same = cg::labeled_partition(tile, x % 3);
    int sum = cg::reduce(same, x, cg::plus<int>());
    const auto half = cg::binary_partition(tile, x > 4);
    sum += cg::reduce(half, x, cg::plus<int>());
    if (x & 1) {
        const auto active = cg::coalesced_threads();
        sum += cg::reduce(active, x, cg::plus<int>()) + active.thread_rank() + active.shfl(x, 0);
    }
    data[i] = sum;
}

template <int Size> __global__ void elected(int *data, int *count)
{
    const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (data[i] > 0) {
        const auto active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0)
            first = atomicAdd(count, active.size());
        data[i] = active.shfl(first, 0) + active.thread_rank();
    }
    tile.sync();
}

template <int Size> __global__ void match_labels(unsigned *data)
{
    const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int all;
    data[i] = tile.match_any(data[i]) + tile.match_all(data[i], all) + all;
}

template <int Size> void launch()
{
    shuffles<Size><<<1, 64>>>(nullptr);
    reductions<Size, int><<<1, 64>>>(nullptr);
    reductions<Size, float><<<1, 64>>>(nullptr);
    reductions<Size, double><<<1, 64>>>(nullptr);
    groups<Size><<<1, 64>>>(nullptr);
    elected<Size><<<1, 64>>>(nullptr, nullptr);
    match_labels<Size><<<1, 64>>>(nullptr);
}

int main()
{
    launch<1>();
    launch<2>();
    launch<4>();
    launch<8>();
    launch<16>();
    launch<32>();
}
