// Every device-wide algorithm of CUB for one type of keys and one of values. It is compiled to PTX, never run: what counts is
// the setting that our CPU device gives to each kernel (docs/settings.md).
#include <cub/cub.cuh>

#include "types.h"

struct Arguments {
    void *storage;
    size_t bytes;
    Key *keys, *keys_out;
    Value *values, *values_out;
    int *offsets, *count;
    char *flags;
    int n;
    Key bound;
};

/// What goes by digits, where `K` has them.
template <class K> static void by_digits(Arguments &a)
{
    if constexpr (HasDigits<K>::value) {
        K *keys = a.keys, *out = a.keys_out;
        cub::DeviceRadixSort::SortKeys(a.storage, a.bytes, keys, out, a.n);
        cub::DeviceRadixSort::SortPairs(a.storage, a.bytes, keys, out, a.values, a.values_out, a.n);
        cub::DeviceRadixSort::SortPairsDescending(a.storage, a.bytes, keys, out, a.values, a.values_out, a.n);
        cub::DeviceSegmentedRadixSort::SortPairs(a.storage, a.bytes, keys, out, a.values, a.values_out, a.n, 9,
                                                 a.offsets, a.offsets + 1);
        cub::DeviceSegmentedSort::SortPairs(a.storage, a.bytes, keys, out, a.values, a.values_out, a.n, 9, a.offsets,
                                            a.offsets + 1);
        if constexpr (sizeof(K) <= 8)
            cub::DeviceHistogram::HistogramEven(a.storage, a.bytes, keys, a.offsets, 65, (K)0, (K)64, a.n);
    }
}

static void sorts(Arguments &a)
{
    cub::DeviceMergeSort::SortKeys(a.storage, a.bytes, a.keys, a.n, Before());
    cub::DeviceMergeSort::SortPairs(a.storage, a.bytes, a.keys, a.values, a.n, Before());
    cub::DeviceMerge::MergePairs(a.storage, a.bytes, a.keys, a.values, a.n, a.keys, a.values, a.n, a.keys_out,
                                 a.values_out, Before());
}

static void sums(Arguments &a)
{
    cub::DeviceReduce::Reduce(a.storage, a.bytes, a.values, a.values_out, a.n, Plus(), Value());
    cub::DeviceReduce::ReduceByKey(a.storage, a.bytes, a.keys, a.keys_out, a.values, a.values_out, a.count, Plus(),
                                   a.n);
    cub::DeviceSegmentedReduce::Reduce(a.storage, a.bytes, a.values, a.values_out, 9, a.offsets, a.offsets + 1, Plus(),
                                       Value());
    cub::DeviceScan::ExclusiveScan(a.storage, a.bytes, a.values, a.values_out, Plus(), Value(), a.n);
    cub::DeviceScan::InclusiveScan(a.storage, a.bytes, a.values, a.values_out, Plus(), a.n);
    cub::DeviceScan::InclusiveScanByKey(a.storage, a.bytes, a.keys, a.values, a.values_out, Plus(), a.n);
    cub::DeviceScan::ExclusiveScanByKey(a.storage, a.bytes, a.keys, a.values, a.values_out, Plus(), Value(), a.n);
    cub::DeviceAdjacentDifference::SubtractLeftCopy(a.storage, a.bytes, a.values, a.values_out, a.n, Plus());
}

static void choices(Arguments &a)
{
    cub::DeviceSelect::If(a.storage, a.bytes, a.keys, a.keys_out, a.count, a.n, IsSmall{a.bound});
    cub::DeviceSelect::Flagged(a.storage, a.bytes, a.values, a.flags, a.values_out, a.count, a.n);
    cub::DeviceSelect::Unique(a.storage, a.bytes, a.keys, a.keys_out, a.count, a.n);
    cub::DeviceSelect::UniqueByKey(a.storage, a.bytes, a.keys, a.values, a.keys_out, a.values_out, a.count, a.n);
    cub::DevicePartition::If(a.storage, a.bytes, a.keys, a.keys_out, a.count, a.n, IsSmall{a.bound});
    cub::DevicePartition::Flagged(a.storage, a.bytes, a.values, a.flags, a.values_out, a.count, a.n);
    cub::DevicePartition::If(a.storage, a.bytes, a.keys, a.keys_out, a.keys_out, a.keys_out, a.count, a.n,
                             IsSmall{a.bound}, IsSmall{a.bound});
    cub::DeviceRunLengthEncode::Encode(a.storage, a.bytes, a.keys, a.keys_out, a.offsets, a.count, a.n);
    cub::DeviceRunLengthEncode::NonTrivialRuns(a.storage, a.bytes, a.keys, a.offsets, a.offsets, a.count, a.n);
}

static void others(Arguments &a)
{
    void **buffers = nullptr;
    cub::DeviceMemcpy::Batched(a.storage, a.bytes, buffers, buffers, a.offsets, 9);
    cub::DeviceTransform::Transform(a.values, a.values_out, a.n, [] __device__(Value value) { return value + value; });
}

int main()
{
    Arguments a = {};
    by_digits<Key>(a);
    sorts(a);
    sums(a);
    choices(a);
    others(a);
}
