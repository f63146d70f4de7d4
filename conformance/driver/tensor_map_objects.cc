// CUDA Driver API, "Tensor Map Object Management".
#include "../device.h"

// A tensor of 64 x 32 floats and boxes of 16 x 8, one thing of which a promise changes.
struct Tiled {
    alignas(64) CUtensorMap map{};
    CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    unsigned rank = 2;
    CUdeviceptr memory = 0;
    cuuint64_t sizes[5] = {64, 32, 1, 1, 1}, strides[4] = {256, 8192, 8192, 8192};
    cuuint32_t box[5] = {16, 8, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
    CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;

    Tiled()
    {
        start();
        if (!attribute(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED))
            SKIP("the device has no tensor maps");
        memory = allocate(64 * 32 * 4);
    }

    CUresult encode()
    {
        return cuTensorMapEncodeTiled(&map, type, rank, reinterpret_cast<void *>(memory), sizes, strides, box, steps,
                                      interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    }
};

PROMISE(a_plain_tensor_is_encoded)
{
    Tiled tensor;
    OK(tensor.encode());
    OK(cuTensorMapReplaceAddress(&tensor.map, reinterpret_cast<void *>(allocate(64 * 32 * 4))));
}

PROMISE(a_tensor_has_1_to_5_dimensions)
{
    Tiled tensor;
    tensor.rank = 0;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
    tensor.rank = 6;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
    tensor.rank = 1;
    OK(tensor.encode());
    tensor.rank = 5;
    OK(tensor.encode());
}

PROMISE(memory_is_aligned_to_16_bytes)
{
    Tiled tensor;
    tensor.memory += 8;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(strides_are_multiples_of_16_bytes)
{
    Tiled tensor;
    tensor.strides[0] = 264;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(sizes_are_not_0)
{
    Tiled tensor;
    tensor.sizes[1] = 0;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_box_has_1_to_256_elements_each_way)
{
    Tiled tensor;
    tensor.box[1] = 257;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
    tensor.box[1] = 0;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_row_of_a_box_is_a_multiple_of_16_bytes)
{
    Tiled tensor;
    tensor.box[0] = 3;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(steps_are_1_to_8)
{
    Tiled tensor;
    tensor.steps[1] = 9;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
    tensor.steps[1] = 0;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
    tensor.steps[1] = 2;
    OK(tensor.encode());
}

PROMISE(a_row_of_a_box_fits_into_the_swizzle)
{
    Tiled tensor;
    tensor.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
    tensor.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
    OK(tensor.encode());
    tensor.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
    OK(tensor.encode());
}

PROMISE(interleaved_layouts_have_three_dimensions)
{
    Tiled tensor;
    tensor.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(an_unknown_type_is_an_invalid_value)
{
    Tiled tensor;
    tensor.type = static_cast<CUtensorMapDataType>(1000);
    IS(tensor.encode(), CUDA_ERROR_INVALID_VALUE);
}
