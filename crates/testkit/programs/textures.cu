// A texture that is filtered, one of linear memory, and a surface, beside the same computed here.
#include <cmath>
#include <cstdio>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t error = (call);                                                        \
        if (error != cudaSuccess) {                                                        \
            printf("%s: %s\n", #call, cudaGetErrorName(error));                            \
            return 1;                                                                      \
        }                                                                                  \
    } while (0)

static const int WIDTH = 8, HEIGHT = 4, N = 64;

__global__ void sample(cudaTextureObject_t image, cudaTextureObject_t line, float *out)
{
    int i = threadIdx.x;
    float x = -0.4f + 0.03f * i, y = 1.3f - 0.04f * i;
    out[i] = tex2D<float>(image, x, y) + tex1Dfetch<uchar4>(line, i - 2).z;
}

__global__ void draw(cudaSurfaceObject_t canvas)
{
    int x = threadIdx.x, y = blockIdx.x;
    float2 before = surf2Dread<float2>(canvas, x * sizeof(float2), y);
    surf2Dwrite(make_float2(before.y, before.x + 100), canvas, x * sizeof(float2), y);
}

// x repeats, y stays at the edge.
static float filtered(const float *pixels, float x, float y)
{
    float xb = x * WIDTH - 0.5f, yb = y * HEIGHT - 0.5f;
    int i = (int)floorf(xb), j = (int)floorf(yb);
    float a = roundf((xb - i) * 256) / 256, b = roundf((yb - j) * 256) / 256;
    auto at = [&](int i, int j) {
        j = j < 0 ? 0 : j >= HEIGHT ? HEIGHT - 1 : j;
        return pixels[j * WIDTH + (i % WIDTH + WIDTH) % WIDTH];
    };
    return (1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) + (1 - a) * b * at(i, j + 1) + a * b * at(i + 1, j + 1);
}

int main()
{
    float pixels[WIDTH * HEIGHT];
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        pixels[i] = (float)((i * 37) % 23);
    cudaChannelFormatDesc one = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &one, WIDTH, HEIGHT));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, pixels, WIDTH * 4, WIDTH * 4, HEIGHT, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc desc = {};
    desc.addressMode[0] = cudaAddressModeWrap;
    desc.addressMode[1] = cudaAddressModeClamp;
    desc.filterMode = cudaFilterModeLinear;
    desc.normalizedCoords = 1;
    cudaTextureObject_t image, line;
    CHECK(cudaCreateTextureObject(&image, &resource, &desc, nullptr));

    uchar4 bytes[32], *memory;
    for (int i = 0; i < 32; i++)
        bytes[i] = make_uchar4(i, 2 * i, 3 * i + 5, 0);
    CHECK(cudaMalloc(&memory, sizeof bytes));
    CHECK(cudaMemcpy(memory, bytes, sizeof bytes, cudaMemcpyHostToDevice));
    cudaResourceDesc linear = {};
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = memory;
    linear.res.linear.desc = cudaCreateChannelDesc<uchar4>();
    linear.res.linear.sizeInBytes = sizeof bytes;
    cudaTextureDesc plain = {};
    CHECK(cudaCreateTextureObject(&line, &linear, &plain, nullptr));

    float *out, results[N];
    CHECK(cudaMalloc(&out, sizeof results));
    sample<<<1, N>>>(image, line, out);
    CHECK(cudaMemcpy(results, out, sizeof results, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        // Outside of linear memory there is 0.
        float want = filtered(pixels, -0.4f + 0.03f * i, 1.3f - 0.04f * i) + (i >= 2 && i < 34 ? bytes[i - 2].z : 0);
        // The filter's weights have 8 bits; a coordinate may be rounded the other way.
        if (fabsf(results[i] - want) > 0.2f)
            printf("%d: %f, not %f\n", i, results[i], want), wrong++;
    }

    float2 drawn[WIDTH * HEIGHT];
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        drawn[i] = make_float2(i, -i);
    cudaChannelFormatDesc two = cudaCreateChannelDesc<float2>();
    cudaArray_t canvas;
    CHECK(cudaMallocArray(&canvas, &two, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(canvas, 0, 0, drawn, WIDTH * 8, WIDTH * 8, HEIGHT, cudaMemcpyHostToDevice));
    resource.res.array.array = canvas;
    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    draw<<<HEIGHT, WIDTH>>>(surface);
    CHECK(cudaMemcpy2DFromArray(drawn, WIDTH * 8, canvas, 0, 0, WIDTH * 8, HEIGHT, cudaMemcpyDeviceToHost));
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        if (drawn[i].x != -i || drawn[i].y != i + 100)
            printf("surface %d: %f %f\n", i, drawn[i].x, drawn[i].y), wrong++;

    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaDestroyTextureObject(line));
    CHECK(cudaDestroyTextureObject(image));
    CHECK(cudaFreeArray(canvas));
    CHECK(cudaFreeArray(array));
    printf("%s\n", wrong ? "FAILED" : "PASSED");
    return wrong != 0;
}
