// What filters make of coordinates, weights and elements, in bits: the manuals leave their arithmetic open ("9-bit fixed point format with 8
// bits of fractional value", and not how the weights of two and three axes are made). A line begins with what it is about:
//   W axes fractions… weights…           weights in parts of 2^20, of fractions in 4096ths: an element is 1, the others are 0
//   S axes fractions… elements… result   a sum, fractions in 256ths, floats of like and unlike sizes
//   B type alpha first second result     two elements of u8, u16, s8, s16 (normalized) or half, in bits
//   Q fractions… elements… result        four bytes of a square
//   C side normalized mode x result      elements are their own numbers, filtered: result tells index and fraction
//   P side normalized mode x result      the same without a filter
//   M lod result                         between a level of zeros and one of ones, in 4096ths
//   m lod result                         the same, where levels are not filtered
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                               \
    do {                                                                          \
        const cudaError_t error = call;                                           \
        if (error != cudaSuccess) {                                               \
            std::printf("%s: %s\n", #call, cudaGetErrorName(error));              \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

struct Point {
    float x, y, z;
};

__global__ void fetch(cudaTextureObject_t texture, int axes, const Point *at, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (axes == 0)
        out[i] = tex2DLod<float>(texture, 0.5f, 0.5f, at[i].x);
    else if (axes == 1)
        out[i] = tex1D<float>(texture, at[i].x);
    else if (axes == 2)
        out[i] = tex2D<float>(texture, at[i].x, at[i].y);
    else
        out[i] = tex3D<float>(texture, at[i].x, at[i].y, at[i].z);
}

static unsigned bits(float value)
{
    unsigned made;
    std::memcpy(&made, &value, sizeof made);
    return made;
}

static cudaTextureDesc how(bool linear, bool normalized = false, int mode = cudaAddressModeClamp)
{
    cudaTextureDesc made = {};
    for (cudaTextureAddressMode &to : made.addressMode)
        to = cudaTextureAddressMode(mode);
    made.filterMode = made.mipmapFilterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    made.normalizedCoords = normalized;
    return made;
}

template <class T>
static cudaArray_t filled(int axes, int side, const T *elements, cudaChannelFormatDesc format = cudaCreateChannelDesc<T>())
{
    cudaArray_t array;
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(side, axes > 1 ? side : 0, axes > 2 ? side : 0)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(const_cast<T *>(elements), side * sizeof(T), side, side);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(side, axes > 1 ? side : 1, axes > 2 ? side : 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    return array;
}

static std::vector<float> fetched(cudaArray_t array, const cudaTextureDesc &how, int axes, const std::vector<Point> &points)
{
    const int n = int(points.size());
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    Point *at;
    float *out;
    CHECK(cudaMalloc(&at, n * sizeof(Point)));
    CHECK(cudaMalloc(&out, n * sizeof(float)));
    CHECK(cudaMemcpy(at, points.data(), n * sizeof(Point), cudaMemcpyHostToDevice));
    fetch<<<(n + 127) / 128, 128>>>(texture, axes, at, out, n);
    std::vector<float> made(n);
    CHECK(cudaMemcpy(made.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFree(at));
    CHECK(cudaFree(out));
    return made;
}

static float drawn(int spread)
{
    const float mantissa = 1 + std::rand() % (1 << 23) / float(1 << 23);
    return (std::rand() % 2 ? -1 : 1) * std::ldexp(mantissa, spread ? std::rand() % spread - spread / 2 : 0);
}

static void weights()
{
    const int n = 4096;
    for (int axes = 1; axes <= 3; axes++) {
        std::vector<Point> points(n);
        std::vector<int> fractions(3 * n);
        for (int i = 0; i < n; i++) {
            // All of one axis; of several, steps of 1/256 first.
            for (int d = 0; d < 3; d++)
                fractions[3 * i + d] = axes == 1 ? i : i < n / 2 ? std::rand() % 256 * 16 : std::rand() % 4096;
            float *const to[3] = {&points[i].x, &points[i].y, &points[i].z};
            for (int d = 0; d < 3; d++)
                *to[d] = 0.5f + fractions[3 * i + d] / 4096.0f;
        }
        std::vector<std::vector<float>> made;
        for (int corner = 0; corner < 1 << axes; corner++) {
            float elements[8] = {};
            elements[corner] = 1;
            const cudaArray_t array = filled(axes, 2, elements);
            made.push_back(fetched(array, how(true), axes, points));
            CHECK(cudaFreeArray(array));
        }
        for (int i = 0; i < n; i++) {
            std::printf("W %d", axes);
            for (int d = 0; d < axes; d++)
                std::printf(" %d", fractions[3 * i + d]);
            for (const std::vector<float> &weights : made)
                std::printf(" %.0f", weights[i] * 1048576.0);
            std::printf("\n");
        }
    }
}

static void sums()
{
    for (int axes = 1; axes <= 3; axes++)
        for (int round = 0; round < 48; round++) {
            const int spreads[] = {0, 8, 24, 60};
            float elements[8];
            for (float &element : elements)
                element = drawn(spreads[round % 4]);
            std::vector<Point> points(32);
            std::vector<int> fractions(96);
            for (int i = 0; i < 32; i++) {
                float *const to[3] = {&points[i].x, &points[i].y, &points[i].z};
                for (int d = 0; d < 3; d++) {
                    fractions[3 * i + d] = std::rand() % 256;
                    *to[d] = 0.5f + fractions[3 * i + d] / 256.0f;
                }
            }
            const cudaArray_t array = filled(axes, 2, elements);
            const std::vector<float> made = fetched(array, how(true), axes, points);
            CHECK(cudaFreeArray(array));
            for (int i = 0; i < 32; i++) {
                std::printf("S %d", axes);
                for (int d = 0; d < axes; d++)
                    std::printf(" %d", fractions[3 * i + d]);
                for (int corner = 0; corner < 1 << axes; corner++)
                    std::printf(" %08x", bits(elements[corner]));
                std::printf(" %08x\n", bits(made[i]));
            }
        }
}

template <class T> static void narrow(const char *type, const cudaChannelFormatDesc &format, cudaTextureReadMode read)
{
    for (int round = 0; round < 24; round++) {
        T elements[2];
        for (T &element : elements) {
            element = T(std::rand());
            // Halves that are numbers.
            if (read == cudaReadModeElementType)
                element = T(round % 3 ? (element & 0x8fff) | 0x3000 : element & 0xbfff);
        }
        std::vector<Point> points(64);
        std::vector<int> alpha(64);
        for (int i = 0; i < 64; i++) {
            alpha[i] = i == 0 ? 0 : std::rand() % 256;
            points[i].x = 0.5f + alpha[i] / 256.0f;
        }
        cudaTextureDesc as = how(true);
        as.readMode = read;
        const cudaArray_t array = filled(1, 2, elements, format);
        const std::vector<float> made = fetched(array, as, 1, points);
        CHECK(cudaFreeArray(array));
        for (int i = 0; i < 64; i++)
            std::printf("B %s %d %x %x %08x\n", type, alpha[i], unsigned(elements[0]) & 0xffff, unsigned(elements[1]) & 0xffff, bits(made[i]));
    }
}

static void squares()
{
    for (int round = 0; round < 24; round++) {
        unsigned char elements[4];
        for (unsigned char &element : elements)
            element = (unsigned char)std::rand();
        std::vector<Point> points(64);
        std::vector<int> alpha(128);
        for (int i = 0; i < 64; i++) {
            alpha[2 * i] = std::rand() % 256;
            alpha[2 * i + 1] = std::rand() % 256;
            points[i] = {0.5f + alpha[2 * i] / 256.0f, 0.5f + alpha[2 * i + 1] / 256.0f, 0};
        }
        cudaTextureDesc as = how(true);
        as.readMode = cudaReadModeNormalizedFloat;
        const cudaArray_t array = filled(2, 2, elements);
        const std::vector<float> made = fetched(array, as, 2, points);
        CHECK(cudaFreeArray(array));
        for (int i = 0; i < 64; i++)
            std::printf("Q %d %d %d %d %d %d %08x\n", alpha[2 * i], alpha[2 * i + 1], elements[0], elements[1], elements[2], elements[3], bits(made[i]));
    }
}

static void coordinates()
{
    for (const int side : {2, 3, 7, 100, 256, 1000, 4097, 16384}) {
        std::vector<float> elements(side);
        for (int i = 0; i < side; i++)
            elements[i] = i;
        const cudaArray_t array = filled(1, side, elements.data());
        for (int normalized = 0; normalized < 2; normalized++)
            for (int mode = 0; mode < 4; mode++) {
                if (!normalized && mode < 2 && mode != cudaAddressModeClamp)
                    continue;
                std::vector<Point> points(96);
                for (int i = 0; i < 96; i++) {
                    // Anywhere, beside edges between elements, and outside.
                    const float anywhere = std::rand() / float(RAND_MAX) * side;
                    float x = i % 3 == 0 ? anywhere : i % 3 == 1 ? std::rand() % (side + 1) + (std::rand() % 17 - 8) / 4096.0f : 3 * anywhere - side;
                    points[i].x = normalized ? x / side : x;
                }
                for (int linear = 0; linear < 2; linear++) {
                    const std::vector<float> made = fetched(array, how(linear, normalized, mode), 1, points);
                    for (int i = 0; i < 96; i++)
                        std::printf("%c %d %d %d %08x %08x\n", linear ? 'C' : 'P', side, normalized, mode, bits(points[i].x), bits(made[i]));
                }
            }
        CHECK(cudaFreeArray(array));
    }
}

static void levels(bool linear)
{
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t whole;
    CHECK(cudaMallocMipmappedArray(&whole, &format, make_cudaExtent(2, 2, 0), 2));
    const float zeros[4] = {}, one = 1;
    cudaArray_t level;
    CHECK(cudaGetMipmappedArrayLevel(&level, whole, 0));
    CHECK(cudaMemcpy2DToArray(level, 0, 0, zeros, 8, 8, 2, cudaMemcpyHostToDevice));
    CHECK(cudaGetMipmappedArrayLevel(&level, whole, 1));
    CHECK(cudaMemcpy2DToArray(level, 0, 0, &one, 4, 4, 1, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = whole;
    cudaTextureDesc as = how(true, true);
    as.maxMipmapLevelClamp = 1;
    as.mipmapFilterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &as, nullptr));
    std::vector<Point> points(4097);
    for (int i = 0; i < 4097; i++)
        points[i].x = i / 4096.0f;
    Point *at;
    float *out;
    CHECK(cudaMalloc(&at, 4097 * sizeof(Point)));
    CHECK(cudaMalloc(&out, 4097 * sizeof(float)));
    CHECK(cudaMemcpy(at, points.data(), 4097 * sizeof(Point), cudaMemcpyHostToDevice));
    fetch<<<33, 128>>>(texture, 0, at, out, 4097);
    std::vector<float> made(4097);
    CHECK(cudaMemcpy(made.data(), out, 4097 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4097; i++)
        std::printf("%c %d %08x\n", linear ? 'M' : 'm', i, bits(made[i]));
}

int main()
{
    weights();
    sums();
    narrow<unsigned char>("u8", cudaCreateChannelDesc<unsigned char>(), cudaReadModeNormalizedFloat);
    narrow<unsigned short>("u16", cudaCreateChannelDesc<unsigned short>(), cudaReadModeNormalizedFloat);
    narrow<signed char>("s8", cudaCreateChannelDesc<signed char>(), cudaReadModeNormalizedFloat);
    narrow<short>("s16", cudaCreateChannelDesc<short>(), cudaReadModeNormalizedFloat);
    narrow<unsigned short>("half", cudaCreateChannelDescHalf(), cudaReadModeElementType);
    squares();
    coordinates();
    levels(true);
    levels(false);
}
