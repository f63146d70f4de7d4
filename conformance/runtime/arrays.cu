// CUDA Runtime API, "Memory Management": arrays, mipmapped arrays and copies from and to them.
#include "../check.h"

#include <numeric>

static const cudaChannelFormatDesc INTS = cudaCreateChannelDesc<int>();

static std::vector<int> numbers(size_t n)
{
    std::vector<int> all(n);
    std::iota(all.begin(), all.end(), 1);
    return all;
}

static cudaArray_t array(size_t width, size_t height)
{
    cudaArray_t made = nullptr;
    OK(cudaMallocArray(&made, &INTS, width, height));
    TRUE(made != nullptr);
    return made;
}

PROMISE(arrays_describe_themselves)
{
    cudaChannelFormatDesc format;
    cudaExtent extent;
    unsigned flags = 99;
    OK(cudaArrayGetInfo(&format, &extent, &flags, array(16, 8)));
    SAME(format.x, 32);
    SAME(format.y, 0);
    SAME(format.f, cudaChannelFormatKindSigned);
    SAME(extent.width, 16);
    SAME(extent.height, 8);
    SAME(extent.depth, 0);
    SAME(flags, cudaArrayDefault);
    OK(cudaArrayGetInfo(&format, &extent, &flags, array(16, 0)));
    SAME(extent.height, 0);
    OK(cudaGetChannelDesc(&format, array(4, 4)));
    SAME(format.x, 32);
}

PROMISE(three_dimensional_and_layered_arrays_describe_themselves)
{
    cudaExtent extent;
    unsigned flags = 99;
    cudaArray_t made = nullptr;
    OK(cudaMalloc3DArray(&made, &INTS, make_cudaExtent(8, 4, 2)));
    OK(cudaArrayGetInfo(nullptr, &extent, &flags, made));
    SAME(extent.depth, 2);
    SAME(flags, cudaArrayDefault);
    OK(cudaMalloc3DArray(&made, &INTS, make_cudaExtent(8, 4, 3), cudaArrayLayered | cudaArraySurfaceLoadStore));
    OK(cudaArrayGetInfo(nullptr, &extent, &flags, made));
    SAME(extent.depth, 3);
    SAME(flags, cudaArrayLayered | cudaArraySurfaceLoadStore);
    OK(cudaMalloc3DArray(&made, &INTS, make_cudaExtent(8, 8, 6), cudaArrayCubemap));
    OK(cudaFreeArray(made));
}

PROMISE(arrays_that_cannot_be_are_refused)
{
    cudaArray_t made = nullptr;
    IS(cudaMalloc3DArray(&made, &INTS, make_cudaExtent(8, 4, 6), cudaArrayCubemap), cudaErrorInvalidValue);
    IS(cudaMalloc3DArray(&made, &INTS, make_cudaExtent(8, 8, 5), cudaArrayCubemap), cudaErrorInvalidValue);
    IS(cudaMallocArray(&made, &INTS, 0, 0), cudaErrorInvalidValue);
    IS(cudaMallocArray(nullptr, &INTS, 8, 8), cudaErrorInvalidValue);
}

PROMISE(channel_descriptions_follow_the_type)
{
    const cudaChannelFormatDesc four = cudaCreateChannelDesc<float4>();
    SAME(four.x, 32);
    SAME(four.w, 32);
    SAME(four.f, cudaChannelFormatKindFloat);
    const cudaChannelFormatDesc two = cudaCreateChannelDesc<uchar2>();
    SAME(two.x, 8);
    SAME(two.y, 8);
    SAME(two.z, 0);
    SAME(two.f, cudaChannelFormatKindUnsigned);
    const cudaChannelFormatDesc own = cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindSigned);
    SAME(own.y, 16);
}

PROMISE(rows_are_copied_to_and_from_an_array)
{
    cudaArray_t there = array(6, 4);
    const std::vector<int> sent = numbers(24);
    OK(cudaMemcpy2DToArray(there, 0, 0, sent.data(), 24, 24, 4, cudaMemcpyHostToDevice));
    std::vector<int> got(24);
    OK(cudaMemcpy2DFromArray(got.data(), 24, there, 0, 0, 24, 4, cudaMemcpyDeviceToHost));
    TRUE(got == sent);
    int part[4] = {};
    OK(cudaMemcpy2DFromArray(part, 8, there, 2 * sizeof(int), 1, 8, 2, cudaMemcpyDeviceToHost));
    SAME(part[0], 9);
    SAME(part[1], 10);
    SAME(part[2], 15);
    SAME(part[3], 16);
}

PROMISE(rows_are_copied_between_arrays)
{
    cudaArray_t first = array(6, 4), second = array(6, 4);
    const std::vector<int> sent = numbers(24);
    OK(cudaMemcpy2DToArray(first, 0, 0, sent.data(), 24, 24, 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DToArray(second, 0, 0, std::vector<int>(24).data(), 24, 24, 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2DArrayToArray(second, 4, 1, first, 0, 0, 8, 2, cudaMemcpyDeviceToDevice));
    std::vector<int> got(24);
    OK(cudaMemcpy2DFromArray(got.data(), 24, second, 0, 0, 24, 4, cudaMemcpyDeviceToHost));
    SAME(got[7], 1);
    SAME(got[8], 2);
    SAME(got[13], 7);
    SAME(got[14], 8);
    SAME(std::accumulate(got.begin(), got.end(), 0), 18);
}

PROMISE(boxes_are_copied_to_and_from_an_array)
{
    cudaArray_t there = nullptr;
    OK(cudaMalloc3DArray(&there, &INTS, make_cudaExtent(4, 3, 2)));
    const std::vector<int> sent = numbers(24);
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(const_cast<int *>(sent.data()), 16, 4, 3);
    in.dstArray = there;
    in.extent = make_cudaExtent(4, 3, 2);
    in.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&in));
    int got[4] = {};
    cudaMemcpy3DParms out = {};
    out.srcArray = there;
    out.srcPos = make_cudaPos(1, 1, 0);
    out.dstPtr = make_cudaPitchedPtr(got, 8, 2, 1);
    out.extent = make_cudaExtent(2, 1, 2);
    out.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3DAsync(&out, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(got[0], 6);
    SAME(got[1], 7);
    SAME(got[2], 18);
    SAME(got[3], 19);
}

PROMISE(copies_beyond_an_array_are_refused)
{
    std::vector<int> host(64);
    IS(cudaMemcpy2DToArray(array(4, 4), 0, 0, host.data(), 32, 32, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    IS(cudaMemcpy2DToArray(array(4, 4), 0, 1, host.data(), 16, 16, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
}

PROMISE(mipmapped_arrays_have_levels_of_half_the_size)
{
    cudaMipmappedArray_t mipmap = nullptr;
    OK(cudaMallocMipmappedArray(&mipmap, &INTS, make_cudaExtent(16, 8, 0), 4));
    for (unsigned level = 0; level < 4; level++) {
        cudaArray_t at = nullptr;
        cudaExtent extent;
        OK(cudaGetMipmappedArrayLevel(&at, mipmap, level));
        OK(cudaArrayGetInfo(nullptr, &extent, nullptr, at));
        SAME(extent.width, 16u >> level);
        SAME(extent.height, 8u >> level);
    }
    cudaArray_t at = nullptr;
    IS(cudaGetMipmappedArrayLevel(&at, mipmap, 4), cudaErrorInvalidValue);
    OK(cudaFreeMipmappedArray(mipmap));
}

PROMISE(more_levels_than_there_can_be_are_clamped)
{
    cudaMipmappedArray_t mipmap = nullptr;
    OK(cudaMallocMipmappedArray(&mipmap, &INTS, make_cudaExtent(8, 8, 0), 100));
    cudaArray_t at = nullptr;
    OK(cudaGetMipmappedArrayLevel(&at, mipmap, 3));
    IS(cudaGetMipmappedArrayLevel(&at, mipmap, 4), cudaErrorInvalidValue);
}
