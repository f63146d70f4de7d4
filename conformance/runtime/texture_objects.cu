// CUDA Runtime API, "Texture Object Management", and fetches as the Programming Guide has them.
#include "../check.h"

#include <cmath>

__global__ void fetch_1d(cudaTextureObject_t from, float *to) { to[threadIdx.x] = tex1Dfetch<float>(from, threadIdx.x); }
__global__ void at_2d(cudaTextureObject_t from, float x, float y, float *to) { *to = tex2D<float>(from, x, y); }
__global__ void at_2d_int(cudaTextureObject_t from, float x, float y, int *to) { *to = tex2D<int>(from, x, y); }
__global__ void at_layer(cudaTextureObject_t from, float x, float y, int layer, float *to)
{
    *to = tex2DLayered<float>(from, x, y, layer);
}
__global__ void at_level(cudaTextureObject_t from, float x, float y, float level, float *to)
{
    *to = tex2DLod<float>(from, x, y, level);
}

template <typename T> static T *memory(size_t n)
{
    T *at = nullptr;
    OK(cudaMallocManaged(&at, n * sizeof(T)));
    return at;
}

template <typename T> static cudaArray_t filled(std::initializer_list<T> values, size_t width, size_t height)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
    cudaArray_t made = nullptr;
    OK(cudaMallocArray(&made, &format, width, height));
    OK(cudaMemcpy2DToArray(made, 0, 0, values.begin(), width * sizeof(T), width * sizeof(T), height,
                           cudaMemcpyHostToDevice));
    return made;
}

static cudaTextureDesc description()
{
    cudaTextureDesc made = {};
    made.addressMode[0] = made.addressMode[1] = made.addressMode[2] = cudaAddressModeClamp;
    made.filterMode = cudaFilterModePoint;
    made.readMode = cudaReadModeElementType;
    return made;
}

static cudaTextureObject_t texture(cudaArray_t array, const cudaTextureDesc &how)
{
    cudaResourceDesc what = {};
    what.resType = cudaResourceTypeArray;
    what.res.array.array = array;
    cudaTextureObject_t made = 0;
    OK(cudaCreateTextureObject(&made, &what, &how, nullptr));
    return made;
}

static float at(cudaTextureObject_t from, float x, float y)
{
    float *to = memory<float>(1);
    at_2d<<<1, 1>>>(from, x, y, to);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    return *to;
}

PROMISE(points_are_the_texels_about_them)
{
    const cudaTextureObject_t t = texture(filled<float>({1, 2, 3, 4, 5, 6}, 3, 2), description());
    SAME(at(t, 0.0f, 0.0f), 1.0f);
    SAME(at(t, 0.9f, 0.0f), 1.0f);
    SAME(at(t, 1.0f, 1.0f), 5.0f);
    SAME(at(t, 2.5f, 1.5f), 6.0f);
}

PROMISE(clamping_repeats_the_edge)
{
    const cudaTextureObject_t t = texture(filled<float>({1, 2, 3, 4}, 2, 2), description());
    SAME(at(t, -5.0f, -5.0f), 1.0f);
    SAME(at(t, 50.0f, 0.5f), 2.0f);
    SAME(at(t, 50.0f, 50.0f), 4.0f);
}

PROMISE(a_border_is_zero)
{
    cudaTextureDesc how = description();
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeBorder;
    const cudaTextureObject_t t = texture(filled<float>({1, 2, 3, 4}, 2, 2), how);
    SAME(at(t, -0.5f, 0.5f), 0.0f);
    SAME(at(t, 2.5f, 0.5f), 0.0f);
    SAME(at(t, 1.5f, 0.5f), 2.0f);
}

PROMISE(normalized_coordinates_wrap_and_mirror)
{
    cudaTextureDesc how = description();
    how.normalizedCoords = 1;
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap;
    const cudaArray_t four = filled<float>({1, 2, 3, 4}, 4, 1);
    const cudaTextureObject_t wrapped = texture(four, how);
    SAME(at(wrapped, 0.125f, 0.5f), 1.0f);
    SAME(at(wrapped, 1.125f, 0.5f), 1.0f);
    SAME(at(wrapped, -0.125f, 0.5f), 4.0f);
    how.addressMode[0] = cudaAddressModeMirror;
    const cudaTextureObject_t mirrored = texture(four, how);
    SAME(at(mirrored, 1.125f, 0.5f), 4.0f);
    SAME(at(mirrored, -0.125f, 0.5f), 1.0f);
}

PROMISE(linear_filtering_mixes_neighbours)
{
    cudaTextureDesc how = description();
    how.filterMode = cudaFilterModeLinear;
    const cudaTextureObject_t t = texture(filled<float>({0, 10, 20, 30}, 2, 2), how);
    SAME(at(t, 0.5f, 0.5f), 0.0f);
    SAME(at(t, 1.0f, 0.5f), 5.0f);
    SAME(at(t, 1.0f, 1.0f), 15.0f);
    SAME(at(t, 0.75f, 0.5f), 2.5f);
}

PROMISE(bytes_are_read_as_fractions_when_asked)
{
    cudaTextureDesc how = description();
    how.readMode = cudaReadModeNormalizedFloat;
    const cudaTextureObject_t t = texture(filled<unsigned char>({0, 51, 255, 102}, 2, 2), how);
    SAME(at(t, 0.5f, 1.5f), 1.0f);
    TRUE(std::fabs(at(t, 1.5f, 0.5f) - 0.2f) < 1e-6f);
}

PROMISE(integers_are_read_as_they_are)
{
    const cudaTextureObject_t t = texture(filled<int>({-7, 8}, 2, 1), description());
    int *to = memory<int>(1);
    at_2d_int<<<1, 1>>>(t, 0.5f, 0.5f, to);
    OK(cudaDeviceSynchronize());
    SAME(*to, -7);
}

PROMISE(linear_memory_is_fetched_by_index)
{
    float *from = memory<float>(32), *to = memory<float>(32);
    for (int i = 0; i < 32; i++)
        from[i] = i * 1.5f;
    cudaResourceDesc what = {};
    what.resType = cudaResourceTypeLinear;
    what.res.linear.devPtr = from;
    what.res.linear.desc = cudaCreateChannelDesc<float>();
    what.res.linear.sizeInBytes = 32 * sizeof(float);
    const cudaTextureDesc how = description();
    cudaTextureObject_t made = 0;
    OK(cudaCreateTextureObject(&made, &what, &how, nullptr));
    fetch_1d<<<1, 32>>>(made, to);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++)
        SAME(to[i], i * 1.5f);
    OK(cudaDestroyTextureObject(made));
}

PROMISE(pitched_memory_is_a_texture)
{
    float *from = nullptr;
    size_t pitch = 0;
    OK(cudaMallocPitch(&from, &pitch, 3 * sizeof(float), 2));
    const float sent[6] = {1, 2, 3, 4, 5, 6};
    OK(cudaMemcpy2D(from, pitch, sent, 12, 12, 2, cudaMemcpyHostToDevice));
    cudaResourceDesc what = {};
    what.resType = cudaResourceTypePitch2D;
    what.res.pitch2D.devPtr = from;
    what.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    what.res.pitch2D.width = 3;
    what.res.pitch2D.height = 2;
    what.res.pitch2D.pitchInBytes = pitch;
    const cudaTextureDesc how = description();
    cudaTextureObject_t made = 0;
    OK(cudaCreateTextureObject(&made, &what, &how, nullptr));
    SAME(at(made, 1.5f, 1.5f), 5.0f);
    SAME(at(made, 2.5f, 0.5f), 3.0f);
}

PROMISE(layers_are_apart)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array = nullptr;
    OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(2, 2, 3), cudaArrayLayered));
    float sent[12];
    for (int i = 0; i < 12; i++)
        sent[i] = i;
    cudaMemcpy3DParms in = {};
    in.srcPtr = make_cudaPitchedPtr(sent, 8, 2, 2);
    in.dstArray = array;
    in.extent = make_cudaExtent(2, 2, 3);
    in.kind = cudaMemcpyHostToDevice;
    OK(cudaMemcpy3D(&in));
    const cudaTextureObject_t t = texture(array, description());
    float *to = memory<float>(1);
    at_layer<<<1, 1>>>(t, 1.5f, 0.5f, 2, to);
    OK(cudaDeviceSynchronize());
    SAME(*to, 9.0f);
}

PROMISE(levels_are_chosen)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap = nullptr;
    OK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(4, 4, 0), 3));
    for (unsigned level = 0; level < 3; level++) {
        cudaArray_t one = nullptr;
        OK(cudaGetMipmappedArrayLevel(&one, mipmap, level));
        const size_t side = 4u >> level;
        const std::vector<float> all(side * side, 10.0f * (level + 1));
        OK(cudaMemcpy2DToArray(one, 0, 0, all.data(), side * 4, side * 4, side, cudaMemcpyHostToDevice));
    }
    cudaResourceDesc what = {};
    what.resType = cudaResourceTypeMipmappedArray;
    what.res.mipmap.mipmap = mipmap;
    cudaTextureDesc how = description();
    how.normalizedCoords = 1;
    how.mipmapFilterMode = cudaFilterModeLinear;
    how.maxMipmapLevelClamp = 2;
    cudaTextureObject_t made = 0;
    OK(cudaCreateTextureObject(&made, &what, &how, nullptr));
    float *to = memory<float>(1);
    for (auto [level, value] : {std::pair{0.0f, 10.0f}, {1.0f, 20.0f}, {0.5f, 15.0f}, {9.0f, 30.0f}}) {
        at_level<<<1, 1>>>(made, 0.5f, 0.5f, level, to);
        OK(cudaDeviceSynchronize());
        SAME(*to, value);
    }
}

PROMISE(objects_tell_what_they_were_made_of)
{
    const cudaArray_t array = filled<float>({1, 2, 3, 4}, 2, 2);
    cudaTextureDesc how = description(), told = {};
    how.addressMode[1] = cudaAddressModeBorder;
    const cudaTextureObject_t t = texture(array, how);
    cudaResourceDesc what = {};
    OK(cudaGetTextureObjectResourceDesc(&what, t));
    SAME(what.resType, cudaResourceTypeArray);
    SAME(what.res.array.array, array);
    OK(cudaGetTextureObjectTextureDesc(&told, t));
    SAME(told.addressMode[0], cudaAddressModeClamp);
    SAME(told.addressMode[1], cudaAddressModeBorder);
    SAME(told.readMode, cudaReadModeElementType);
}

PROMISE(objects_that_cannot_be_are_refused)
{
    cudaResourceDesc what = {};
    what.resType = cudaResourceTypeArray;
    what.res.array.array = filled<float>({1, 2}, 2, 1);
    const cudaTextureDesc how = description();
    cudaTextureObject_t made = 0;
    IS(cudaCreateTextureObject(nullptr, &what, &how, nullptr), cudaErrorInvalidValue);
    IS(cudaCreateTextureObject(&made, nullptr, &how, nullptr), cudaErrorInvalidValue);
    IS(cudaCreateTextureObject(&made, &what, nullptr, nullptr), cudaErrorInvalidResourceHandle);
}

PROMISE(a_texture_of_nowhere_is_refused)
{
    cudaResourceDesc what = {};
    const cudaTextureDesc how = description();
    cudaTextureObject_t made = 0;
    what.resType = cudaResourceTypeLinear;
    what.res.linear.devPtr = nullptr;
    what.res.linear.desc = cudaCreateChannelDesc<float>();
    what.res.linear.sizeInBytes = 64;
    IS(cudaCreateTextureObject(&made, &what, &how, nullptr), cudaErrorInvalidValue);
}
