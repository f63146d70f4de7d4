// Algorithms of Thrust for one type of keys and one of values. It is compiled to PTX, never run: what counts is the setting
// that our CPU device gives to each kernel (docs/settings.md).
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/device_ptr.h>
#include <thrust/equal.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/find.h>
#include <thrust/gather.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include "types.h"

int main(int n, char **)
{
    Key *keys = nullptr, *others = nullptr, *out = nullptr, *end = keys + n, *last = others + n;
    Value *values = nullptr, *more = nullptr, *results = nullptr;
    int *places = nullptr;
    const auto device = thrust::device;
    const IsSmall small = {};
    thrust::sort(device, keys, end, Before());
    thrust::stable_sort_by_key(device, keys, end, values, Before());
    thrust::merge_by_key(device, keys, end, others, last, values, more, out, results, Before());
    thrust::set_union(device, keys, end, others, last, out, Before());
    thrust::set_intersection(device, keys, end, others, last, out, Before());
    thrust::set_difference_by_key(device, keys, end, others, last, values, more, out, results, Before());
    thrust::set_symmetric_difference(device, keys, end, others, last, out, Before());
    thrust::unique(device, keys, end);
    thrust::unique_by_key(device, keys, end, values);
    thrust::reduce_by_key(device, keys, end, values, out, results, thrust::equal_to<Key>(), Plus());
    thrust::inclusive_scan_by_key(device, keys, end, values, results, thrust::equal_to<Key>(), Plus());
    thrust::inclusive_scan(device, values, values + n, results, Plus());
    thrust::reduce(device, values, values + n, Value(), Plus());
    thrust::partition(device, keys, end, small);
    thrust::stable_partition(device, keys, end, small);
    thrust::remove_if(device, keys, end, small);
    thrust::minmax_element(device, keys, end, Before());
    thrust::find_if(device, keys, end, small);
    thrust::equal(device, keys, end, others);
    thrust::lower_bound(device, keys, end, others, last, places, Before());
    thrust::adjacent_difference(device, values, values + n, results, Plus());
    thrust::gather(device, places, places + n, values, results);
    thrust::scatter(device, values, values + n, places, results);
    thrust::reverse(device, keys, end);
}
