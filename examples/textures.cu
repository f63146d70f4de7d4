// Arrays, texture objects and surface objects of every shape. Expected values are the programming guide's formulas
// (appendix "Texture Fetching"), computed here on the host; filter weights have eight fractional bits there, so the
// coordinates are multiples of 1/16 and all products are exact; none is between two elements, since GPUs cut coordinates.
#include "example.h"

#include <cmath>
#include <functional>

#include <cuda_fp16.h>

struct Point {
    float x, y, z;
};

__global__ void fetch_1d(cudaTextureObject_t texture, const Point *at, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1D<float>(texture, at[i].x);
}

__global__ void fetch_linear(cudaTextureObject_t texture, int4 *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1Dfetch<int4>(texture, n - 1 - i);
}

__global__ void fetch_2d(cudaTextureObject_t texture, const Point *at, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2D<float>(texture, at[i].x, at[i].y);
}

__global__ void fetch_2d_float4(cudaTextureObject_t texture, const Point *at, float4 *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2D<float4>(texture, at[i].x, at[i].y);
}

__global__ void fetch_layer(cudaTextureObject_t texture, const Point *at, int layer, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2DLayered<float>(texture, at[i].x, at[i].y, layer);
}

__global__ void fetch_3d(cudaTextureObject_t texture, const Point *at, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex3D<float>(texture, at[i].x, at[i].y, at[i].z);
}

__global__ void fetch_cube(cudaTextureObject_t texture, const Point *at, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = texCubemap<float>(texture, at[i].x, at[i].y, at[i].z);
}

__global__ void fetch_level(cudaTextureObject_t texture, const Point *at, float level, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2DLod<float>(texture, at[i].x, at[i].y, level);
}

__global__ void gather(cudaTextureObject_t texture, const Point *at, float4 *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2Dgather<float4>(texture, at[i].x, at[i].y, 0);
}

// Transposes one surface into another; what lies outside reads as zero and is not written.
__global__ void transpose(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int value = surf2Dread<int>(from, x * 4, y, cudaBoundaryModeZero);
    if (x >= width + 1 || y >= height + 1)
        return;
    surf2Dwrite(value, to, y * 4, x, cudaBoundaryModeZero);
}

__global__ void write_layers(cudaSurfaceObject_t to, int width, int height)
{
    const int x = threadIdx.x, y = threadIdx.y, layer = blockIdx.x;
    if (x < width && y < height)
        surf2DLayeredwrite(make_ushort2(x + 16 * y, layer), to, x * sizeof(ushort2), y, layer);
}

// ---- the guide's formulas ----

using Texels = std::function<float(long, long, long)>;

// Where a coordinate leads: -1 is the border.
static long address(float x, long n, cudaTextureAddressMode mode, bool normalized)
{
    long i = static_cast<long>(std::floor(x));
    if (mode == cudaAddressModeBorder)
        return i < 0 || i >= n ? -1 : i;
    // Wrap and mirror need normalized coordinates; without them they are clamp.
    if (mode == cudaAddressModeWrap && normalized)
        return ((i % n) + n) % n;
    if (mode == cudaAddressModeMirror && normalized) {
        const long m = ((i % (2 * n)) + 2 * n) % (2 * n);
        return m < n ? m : 2 * n - 1 - m;
    }
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

struct Sampler {
    cudaTextureAddressMode mode;
    cudaTextureFilterMode filter;
    bool normalized;
    long size[3];

    // In elements. Mirror: frac(x) where floor(x) is even, else 1 - frac(x).
    float scale(float x, int d) const
    {
        if (!normalized)
            return x;
        if (mode == cudaAddressModeMirror && filter == cudaFilterModePoint) {
            const float whole = std::floor(x), fraction = x - whole;
            x = std::fmod(whole, 2.0f) == 0 ? fraction : 1 - fraction;
            return std::fmin(x * size[d], size[d] - 1 + 0.5f);
        }
        return x * size[d];
    }

    float at(const Texels &texels, float x, float y, float z) const
    {
        const float scaled[3] = {scale(x, 0), scale(y, 1), scale(z, 2)};
        if (filter == cudaFilterModePoint)
            return texel(texels, scaled[0], scaled[1], scaled[2]);
        float base[3], alpha[3];
        for (int d = 0; d < 3; d++) {
            const float b = scaled[d] - 0.5f;
            base[d] = std::floor(b);
            alpha[d] = std::round((b - base[d]) * 256.0f) / 256.0f;
            if (size[d] == 1)
                base[d] = 0, alpha[d] = 0;
        }
        float sum = 0;
        for (int corner = 0; corner < 8; corner++) {
            float weight = 1, place[3];
            for (int d = 0; d < 3; d++) {
                const int up = corner >> d & 1;
                weight *= up ? alpha[d] : 1 - alpha[d];
                place[d] = base[d] + up;
            }
            if (weight != 0)
                sum += weight * texel(texels, place[0], place[1], place[2]);
        }
        return sum;
    }

    float texel(const Texels &texels, float x, float y, float z) const
    {
        const float place[3] = {x, y, z};
        long index[3];
        for (int d = 0; d < 3; d++) {
            index[d] = size[d] == 1 ? 0 : address(place[d], size[d], mode, normalized);
            if (index[d] < 0)
                return 0;
        }
        return texels(index[0], index[1], index[2]);
    }
};

template <typename T>
struct Buffer {
    T *at = nullptr;
    explicit Buffer(const std::vector<T> &host)
    {
        CHECK(cudaMalloc(&at, host.size() * sizeof(T)));
        CHECK(cudaMemcpy(at, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Buffer() { CHECK(cudaFree(at)); }
    std::vector<T> download(size_t n) const
    {
        std::vector<T> host(n);
        CHECK(cudaMemcpy(host.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
        return host;
    }
};

static cudaTextureObject_t sampled(const cudaResourceDesc &resource, cudaTextureAddressMode mode,
                                   cudaTextureFilterMode filter, bool normalized,
                                   cudaTextureReadMode read = cudaReadModeElementType)
{
    cudaTextureDesc desc = {};
    desc.addressMode[0] = desc.addressMode[1] = desc.addressMode[2] = mode;
    desc.filterMode = filter;
    desc.readMode = read;
    desc.normalizedCoords = normalized;
    desc.maxMipmapLevelClamp = 100;
    desc.mipmapFilterMode = cudaFilterModeLinear;
    cudaTextureObject_t object = 0;
    CHECK(cudaCreateTextureObject(&object, &resource, &desc, nullptr));
    cudaTextureDesc back = {};
    CHECK(cudaGetTextureObjectTextureDesc(&back, object));
    expect_equal("addressMode", back.addressMode[1], mode);
    expect_equal("filterMode", back.filterMode, filter);
    expect_equal("readMode", back.readMode, read);
    expect_equal("normalizedCoords", back.normalizedCoords, normalized);
    return object;
}

static cudaResourceDesc of_array(cudaArray_t array)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

// Points on a grid of 1/16 around and inside of the texture.
static std::vector<Point> points(const long (&size)[3], bool normalized)
{
    Numbers numbers{7};
    std::vector<Point> all(500);
    for (Point &point : all) {
        float *const to[3] = {&point.x, &point.y, &point.z};
        for (int d = 0; d < 3; d++) {
            const long steps = (2 * size[d] + 4) * 16;
            const long at = static_cast<long>(numbers.next() % steps) - (size[d] / 2 + 2) * 16;
            *to[d] = static_cast<float>(at % 16 == 0 ? at + 1 : at) / 16.0f;
            if (normalized)
                *to[d] /= size[d];
        }
    }
    return all;
}

static int blocks(size_t n) { return static_cast<int>((n + 127) / 128); }

static void check_fetches(const char *what, const std::vector<Point> &at, const std::vector<float> &got,
                          const Sampler &sampler, const Texels &texels)
{
    std::vector<float> expected(at.size());
    for (size_t i = 0; i < at.size(); i++)
        expected[i] = sampler.at(texels, at[i].x, at[i].y, at[i].z);
    expect_equal(what, got, expected);
}

static const cudaTextureAddressMode modes[] = {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder};
static const cudaTextureFilterMode filters[] = {cudaFilterModePoint, cudaFilterModeLinear};

static void arrays_1d_and_2d()
{
    // Powers of two, so that normalized coordinates stay exact.
    const long width = 16, height = 8;
    std::vector<float> host(width * height);
    Numbers numbers{1};
    for (float &value : host)
        value = static_cast<float>(numbers.next() % 256);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t plane, line, copy;
    CHECK(cudaMallocArray(&plane, &format, width, height));
    CHECK(cudaMallocArray(&copy, &format, width, height));
    CHECK(cudaMallocArray(&line, &format, width));
    CHECK(cudaMemcpy2DToArray(plane, 0, 0, host.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DToArray(line, 0, 0, host.data(), width * 4, width * 4, 1, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DArrayToArray(copy, 0, 0, plane, 0, 0, width * 4, height, cudaMemcpyDeviceToDevice));

    cudaChannelFormatDesc found = {};
    cudaExtent extent = {};
    unsigned flags = 9;
    CHECK(cudaArrayGetInfo(&found, &extent, &flags, plane));
    expect_equal("bits of x", found.x, 32);
    expect_equal("bits of y", found.y, 0);
    expect_equal("width", static_cast<long long>(extent.width), width);
    expect_equal("height", static_cast<long long>(extent.height), height);
    expect_equal("depth", static_cast<long long>(extent.depth), 0);
    expect_equal("flags", flags, 0);

    // A part of the array comes back in rows of another pitch.
    std::vector<float> part(10 * 3, -1);
    CHECK(cudaMemcpy2DFromArray(part.data(), 10 * 4, copy, 2 * 4, 4, 7 * 4, 3, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 10; x++)
            expect_equal("part", static_cast<long long>(part[y * 10 + x]),
                         static_cast<long long>(x < 7 ? host[(y + 4) * width + x + 2] : -1));

    for (const bool normalized : {false, true})
        for (const cudaTextureAddressMode mode : modes)
            for (const cudaTextureFilterMode filter : filters) {
                const Sampler flat{mode, filter, normalized, {width, height, 1}};
                const std::vector<Point> at = points(flat.size, normalized);
                const Buffer<Point> device_at(at);
                const Buffer<float> out{std::vector<float>(at.size())};
                cudaTextureObject_t object = sampled(of_array(plane), mode, filter, normalized);
                fetch_2d<<<blocks(at.size()), 128>>>(object, device_at.at, out.at, at.size());
                CHECK(cudaGetLastError());
                check_fetches("tex2D", at, out.download(at.size()), flat,
                              [&](long x, long y, long) { return host[y * width + x]; });
                CHECK(cudaDestroyTextureObject(object));

                const Sampler thin{mode, filter, normalized, {width, 1, 1}};
                object = sampled(of_array(line), mode, filter, normalized);
                fetch_1d<<<blocks(at.size()), 128>>>(object, device_at.at, out.at, at.size());
                CHECK(cudaGetLastError());
                check_fetches("tex1D", at, out.download(at.size()), thin, [&](long x, long, long) { return host[x]; });
                CHECK(cudaDestroyTextureObject(object));
            }
    CHECK(cudaFreeArray(plane));
    CHECK(cudaFreeArray(copy));
    CHECK(cudaFreeArray(line));
}

static void formats()
{
    // Bytes read as fractions of 255, shorts of 32767, halves as they are.
    const int width = 8, height = 4;
    const std::vector<Point> at = [&] {
        std::vector<Point> all;
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                all.push_back({x + 0.5f, y + 0.5f, 0});
        return all;
    }();
    const Buffer<Point> device_at(at);
    std::vector<uchar4> bytes(at.size());
    std::vector<short> shorts(at.size());
    std::vector<__half> halves(at.size());
    Numbers numbers{5};
    for (size_t i = 0; i < at.size(); i++) {
        bytes[i] = make_uchar4(numbers.next(), numbers.next(), numbers.next(), i == 0 ? 255 : numbers.next());
        shorts[i] = i == 0 ? -32768 : static_cast<short>(numbers.next());
        halves[i] = __float2half(static_cast<float>(static_cast<int>(numbers.next() % 512) - 256) / 8);
    }

    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
    CHECK(cudaMallocArray(&array, &format, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, bytes.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    cudaTextureObject_t object = sampled(of_array(array), cudaAddressModeClamp, cudaFilterModePoint, false, cudaReadModeNormalizedFloat);
    const Buffer<float4> wide{std::vector<float4>(at.size())};
    fetch_2d_float4<<<blocks(at.size()), 128>>>(object, device_at.at, wide.at, at.size());
    CHECK(cudaGetLastError());
    const std::vector<float4> pixels = wide.download(at.size());
    for (size_t i = 0; i < at.size(); i++) {
        const float got[4] = {pixels[i].x, pixels[i].y, pixels[i].z, pixels[i].w};
        const unsigned char from[4] = {bytes[i].x, bytes[i].y, bytes[i].z, bytes[i].w};
        for (int c = 0; c < 4; c++)
            if (std::fabs(got[c] - from[c] / 255.0f) > 1e-7f)
                fail("byte %d as a fraction is %.9g", from[c], got[c]);
    }
    CHECK(cudaDestroyTextureObject(object));
    // Integers are not filtered, and 32-bit ones are no fractions.
    cudaTextureDesc wrong = {};
    wrong.filterMode = cudaFilterModeLinear;
    wrong.readMode = cudaReadModeElementType;
    const cudaResourceDesc resource = of_array(array);
    expect_equal("filtered integers", cudaCreateTextureObject(&object, &resource, &wrong, nullptr), cudaErrorInvalidFilterSetting);
    expect_equal("last error", cudaGetLastError(), cudaErrorInvalidFilterSetting);
    CHECK(cudaFreeArray(array));

    const Buffer<float> out{std::vector<float>(at.size())};
    format = cudaCreateChannelDesc<short>();
    CHECK(cudaMallocArray(&array, &format, width, height));
    // The older call counts bytes row after row.
    CHECK(cudaMemcpy2DToArray(array, 0, 0, shorts.data(), width * 2, width * 2, height, cudaMemcpyHostToDevice));
    object = sampled(of_array(array), cudaAddressModeClamp, cudaFilterModePoint, false, cudaReadModeNormalizedFloat);
    fetch_2d<<<blocks(at.size()), 128>>>(object, device_at.at, out.at, at.size());
    CHECK(cudaGetLastError());
    std::vector<float> got = out.download(at.size());
    for (size_t i = 0; i < at.size(); i++)
        if (std::fabs(got[i] - std::fmax(shorts[i] / 32767.0f, -1.0f)) > 1e-7f)
            fail("short %d as a fraction is %.9g", shorts[i], got[i]);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));

    format = cudaCreateChannelDescHalf();
    CHECK(cudaMallocArray(&array, &format, width, height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, halves.data(), width * 2, width * 2, height, cudaMemcpyHostToDevice));
    object = sampled(of_array(array), cudaAddressModeClamp, cudaFilterModePoint, false);
    fetch_2d<<<blocks(at.size()), 128>>>(object, device_at.at, out.at, at.size());
    CHECK(cudaGetLastError());
    got = out.download(at.size());
    for (size_t i = 0; i < at.size(); i++)
        if (got[i] != __half2float(halves[i]))
            fail("half %.9g is %.9g", __half2float(halves[i]), got[i]);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
}

static void plain_memory()
{
    const int n = 1000;
    std::vector<int4> host(n);
    for (int i = 0; i < n; i++)
        host[i] = make_int4(i, -i, i * i, 7);
    const Buffer<int4> memory(host), out{std::vector<int4>(n)};
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = memory.at;
    resource.res.linear.desc = cudaCreateChannelDesc<int4>();
    resource.res.linear.sizeInBytes = n * sizeof(int4);
    cudaTextureObject_t object = sampled(resource, cudaAddressModeClamp, cudaFilterModePoint, false);
    fetch_linear<<<blocks(n), 128>>>(object, out.at, n);
    CHECK(cudaGetLastError());
    const std::vector<int4> got = out.download(n);
    for (int i = 0; i < n; i++)
        if (std::memcmp(&got[i], &host[n - 1 - i], sizeof(int4)) != 0)
            fail("tex1Dfetch of element %d", n - 1 - i);
    cudaResourceDesc back = {};
    CHECK(cudaGetTextureObjectResourceDesc(&back, object));
    expect_equal("sizeInBytes", static_cast<long long>(back.res.linear.sizeInBytes), n * static_cast<long long>(sizeof(int4)));
    expect_equal("bits of w", back.res.linear.desc.w, 32);
    CHECK(cudaDestroyTextureObject(object));

    // Pitched rows, filtered.
    const long width = 20, height = 6;
    float *rows;
    size_t pitch = 0;
    CHECK(cudaMallocPitch(&rows, &pitch, width * 4, height));
    std::vector<float> texels(width * height);
    Numbers numbers{9};
    for (float &value : texels)
        value = static_cast<float>(numbers.next() % 200);
    CHECK(cudaMemcpy2D(rows, pitch, texels.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = rows;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = width;
    resource.res.pitch2D.height = height;
    resource.res.pitch2D.pitchInBytes = pitch;
    const Sampler sampler{cudaAddressModeBorder, cudaFilterModeLinear, false, {width, height, 1}};
    object = sampled(resource, sampler.mode, sampler.filter, false);
    const std::vector<Point> at = points(sampler.size, false);
    const Buffer<Point> device_at(at);
    const Buffer<float> values{std::vector<float>(at.size())};
    fetch_2d<<<blocks(at.size()), 128>>>(object, device_at.at, values.at, at.size());
    CHECK(cudaGetLastError());
    check_fetches("pitched tex2D", at, values.download(at.size()), sampler,
                  [&](long x, long y, long) { return texels[y * width + x]; });
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFree(rows));
}

static void copy_3d(cudaArray_t array, const std::vector<float> &host, cudaExtent extent)
{
    cudaMemcpy3DParms parms = {};
    parms.srcPtr = make_cudaPitchedPtr(const_cast<float *>(host.data()), extent.width * 4, extent.width, extent.height);
    parms.dstArray = array;
    parms.extent = extent;
    parms.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&parms));
}

static void volumes_layers_and_cubes()
{
    const long w = 8, h = 4, d = 6;
    std::vector<float> host(w * h * d);
    Numbers numbers{11};
    for (float &value : host)
        value = static_cast<float>(numbers.next() % 16);
    const Texels texels = [&](long x, long y, long z) { return host[(z * h + y) * w + x]; };
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();

    cudaArray_t volume, layers;
    CHECK(cudaMalloc3DArray(&volume, &format, make_cudaExtent(w, h, d)));
    CHECK(cudaMalloc3DArray(&layers, &format, make_cudaExtent(w, h, d), cudaArrayLayered));
    copy_3d(volume, host, make_cudaExtent(w, h, d));
    copy_3d(layers, host, make_cudaExtent(w, h, d));
    for (const cudaTextureFilterMode filter : filters) {
        const Sampler sampler{cudaAddressModeClamp, filter, false, {w, h, d}};
        // Three weights of eight bits need room: quarters are enough of a grid.
        std::vector<Point> at = points(sampler.size, false);
        for (Point &point : at)
            point = {std::floor(point.x * 4) / 4, std::floor(point.y * 4) / 4, std::floor(point.z * 4) / 4};
        const Buffer<Point> device_at(at);
        const Buffer<float> out{std::vector<float>(at.size())};
        cudaTextureObject_t object = sampled(of_array(volume), cudaAddressModeClamp, filter, false);
        fetch_3d<<<blocks(at.size()), 128>>>(object, device_at.at, out.at, at.size());
        CHECK(cudaGetLastError());
        check_fetches("tex3D", at, out.download(at.size()), sampler, texels);
        CHECK(cudaDestroyTextureObject(object));

        object = sampled(of_array(layers), cudaAddressModeClamp, filter, false);
        for (long layer = 0; layer < d; layer++) {
            fetch_layer<<<blocks(at.size()), 128>>>(object, device_at.at, layer, out.at, at.size());
            CHECK(cudaGetLastError());
            check_fetches("tex2DLayered", at, out.download(at.size()), {cudaAddressModeClamp, filter, false, {w, h, 1}},
                          [&](long x, long y, long) { return texels(x, y, layer); });
        }
        CHECK(cudaDestroyTextureObject(object));
    }

    // A box out of the volume into linear memory, at an offset.
    std::vector<float> box(3 * 2 * 2, -1);
    cudaMemcpy3DParms parms = {};
    parms.srcArray = volume;
    parms.srcPos = make_cudaPos(4, 1, 3);
    parms.dstPtr = make_cudaPitchedPtr(box.data(), 3 * 4, 3, 2);
    parms.extent = make_cudaExtent(3, 2, 2);
    parms.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&parms));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            for (int x = 0; x < 3; x++)
                expect_equal("box", static_cast<long long>(box[(z * 2 + y) * 3 + x]),
                             static_cast<long long>(texels(x + 4, y + 1, z + 3)));
    // Beyond the end of the array.
    parms.srcPos = make_cudaPos(6, 1, 3);
    expect_equal("box outside", cudaMemcpy3D(&parms), cudaErrorInvalidValue);
    expect_equal("last error", cudaGetLastError(), cudaErrorInvalidValue);
    CHECK(cudaFreeArray(volume));
    CHECK(cudaFreeArray(layers));

    // Six faces of one value each: +x, -x, +y, -y, +z, -z.
    const long n = 4;
    std::vector<float> faces(n * n * 6);
    for (size_t i = 0; i < faces.size(); i++)
        faces[i] = static_cast<float>(i / (n * n) + 1);
    cudaArray_t cube;
    CHECK(cudaMalloc3DArray(&cube, &format, make_cudaExtent(n, n, 6), cudaArrayCubemap));
    copy_3d(cube, faces, make_cudaExtent(n, n, 6));
    const std::vector<Point> at = {{1, .2f, -.3f}, {-2, .2f, 1}, {.1f, 1, .5f}, {.1f, -1, .5f}, {0, 0, 3}, {.7f, -.7f, -.9f}};
    const Buffer<Point> device_at(at);
    const Buffer<float> out{std::vector<float>(at.size())};
    cudaTextureObject_t object = sampled(of_array(cube), cudaAddressModeClamp, cudaFilterModePoint, true);
    fetch_cube<<<1, 128>>>(object, device_at.at, out.at, at.size());
    CHECK(cudaGetLastError());
    expect_equal("texCubemap", out.download(at.size()), std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(cube));
}

static void mipmaps_and_gathers()
{
    const long size = 16;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t mipmap;
    CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(size, size, 0), 3));
    for (unsigned level = 0; level < 3; level++) {
        cudaArray_t array;
        CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
        const long n = size >> level;
        const std::vector<float> flat(n * n, static_cast<float>(10 * (level + 1)));
        CHECK(cudaMemcpy2DToArray(array, 0, 0, flat.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
        cudaExtent extent;
        CHECK(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
        expect_equal("width of a level", static_cast<long long>(extent.width), n);
    }
    cudaArray_t none;
    expect_equal("level 3", cudaGetMipmappedArrayLevel(&none, mipmap, 3), cudaErrorInvalidValue);
    (void)cudaGetLastError();
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mipmap;
    cudaTextureObject_t object = sampled(resource, cudaAddressModeWrap, cudaFilterModeLinear, true);
    const std::vector<Point> at = {{.25f, .5f, 0}, {.75f, 1.5f, 0}};
    const Buffer<Point> device_at(at);
    const Buffer<float> out{std::vector<float>(at.size())};
    // Between two levels the result is between their values; beyond the last one it stays.
    const std::pair<float, float> levels[] = {{0, 10}, {1, 20}, {2, 30}, {.5f, 15}, {1.25f, 22.5f}, {9, 30}, {-3, 10}};
    for (const auto &level : levels) {
        fetch_level<<<1, 32>>>(object, device_at.at, level.first, out.at, at.size());
        CHECK(cudaGetLastError());
        expect_equal("tex2DLod", out.download(at.size()), std::vector<float>(at.size(), level.second));
    }
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeMipmappedArray(mipmap));

    // The four texels that a filter would take, in the guide's order: lower left, lower right, upper right, upper left.
    std::vector<float> host(size * size);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = static_cast<float>(i);
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &format, size, size, cudaArrayTextureGather));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host.data(), size * 4, size * 4, size, cudaMemcpyHostToDevice));
    object = sampled(of_array(array), cudaAddressModeClamp, cudaFilterModePoint, false);
    const std::vector<Point> corner = {{4, 6, 0}};
    const Buffer<Point> device_corner(corner);
    const Buffer<float4> four{std::vector<float4>(1)};
    gather<<<1, 32>>>(object, device_corner.at, four.at, 1);
    CHECK(cudaGetLastError());
    const float4 got = four.download(1)[0];
    expect_equal("gathered x", static_cast<long long>(got.x), 6 * size + 3);
    expect_equal("gathered y", static_cast<long long>(got.y), 6 * size + 4);
    expect_equal("gathered z", static_cast<long long>(got.z), 5 * size + 4);
    expect_equal("gathered w", static_cast<long long>(got.w), 5 * size + 3);
    CHECK(cudaDestroyTextureObject(object));
    CHECK(cudaFreeArray(array));
}

static void surfaces()
{
    const int width = 37, height = 21;
    std::vector<int> host(width * height);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = static_cast<int>(i) + 1;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
    cudaArray_t from, to, plain;
    CHECK(cudaMallocArray(&from, &format, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&to, &format, height, width, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&plain, &format, width, height));
    CHECK(cudaMemcpy2DToArray(from, 0, 0, host.data(), width * 4, width * 4, height, cudaMemcpyHostToDevice));
    cudaSurfaceObject_t source, target, none;
    cudaResourceDesc resource = of_array(from);
    CHECK(cudaCreateSurfaceObject(&source, &resource));
    cudaResourceDesc back = {};
    CHECK(cudaGetSurfaceObjectResourceDesc(&back, source));
    if (back.res.array.array != from)
        fail("the surface is not its array's");
    resource = of_array(to);
    CHECK(cudaCreateSurfaceObject(&target, &resource));
    resource = of_array(plain);
    // A surface may be made of it, though the manual wants cudaArraySurfaceLoadStore.
    expect_equal("surface of a plain array", cudaCreateSurfaceObject(&none, &resource), cudaSuccess);
    CHECK(cudaDestroySurfaceObject(none));
    transpose<<<dim3(5, 3), dim3(8, 8)>>>(source, target, width, height);
    CHECK(cudaGetLastError());
    std::vector<int> got(width * height);
    CHECK(cudaMemcpy2DFromArray(got.data(), height * 4, to, 0, 0, height * 4, width, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            expect_equal("transposed", got[x * height + y], host[y * width + x]);
    CHECK(cudaDestroySurfaceObject(source));
    CHECK(cudaDestroySurfaceObject(target));
    CHECK(cudaFreeArray(from));
    CHECK(cudaFreeArray(to));
    CHECK(cudaFreeArray(plain));

    const int layers = 3;
    const cudaChannelFormatDesc pairs = cudaCreateChannelDesc<ushort2>();
    cudaArray_t stack;
    CHECK(cudaMalloc3DArray(&stack, &pairs, make_cudaExtent(16, 8, layers), cudaArrayLayered | cudaArraySurfaceLoadStore));
    resource = of_array(stack);
    CHECK(cudaCreateSurfaceObject(&target, &resource));
    write_layers<<<layers, dim3(16, 8)>>>(target, 16, 8);
    CHECK(cudaGetLastError());
    std::vector<ushort2> all(16 * 8 * layers);
    cudaMemcpy3DParms parms = {};
    parms.srcArray = stack;
    parms.dstPtr = make_cudaPitchedPtr(all.data(), 16 * sizeof(ushort2), 16, 8);
    parms.extent = make_cudaExtent(16, 8, layers);
    parms.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&parms));
    for (size_t i = 0; i < all.size(); i++) {
        expect_equal("layer's x", all[i].x, static_cast<long long>(i % 128));
        expect_equal("layer's y", all[i].y, static_cast<long long>(i / 128));
    }
    CHECK(cudaDestroySurfaceObject(target));
    CHECK(cudaFreeArray(stack));
}

int main()
{
    arrays_1d_and_2d();
    formats();
    plain_memory();
    volumes_layers_and_cubes();
    mipmaps_and_gathers();
    surfaces();
    std::printf("textures: arrays, formats, plain memory, volumes, layers, cubes, mipmaps, gathers and surfaces\n");
    return passed();
}
