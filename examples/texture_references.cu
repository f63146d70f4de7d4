// Texture and surface references, which CUDA 12 took away: named variables that the runtime binds to memory.
#include "example.h"

#include <cmath>

texture<float, cudaTextureType2D, cudaReadModeElementType> plane;
texture<unsigned char, cudaTextureType1D, cudaReadModeNormalizedFloat> fractions;
texture<int, cudaTextureType1D, cudaReadModeElementType> numbers_of;
texture<float4, cudaTextureType2D, cudaReadModeElementType> pitched;
surface<void, cudaSurfaceType2D> target;

__global__ void read_plane(float *out, float x0, float y0, float step, int n)
{
    const int x = threadIdx.x, y = threadIdx.y;
    out[y * n + x] = tex2D(plane, x0 + x * step, y0 + y * step);
}

__global__ void read_lines(float *out, int *whole, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = tex1D(fractions, i + 0.5f);
        whole[i] = tex1Dfetch(numbers_of, n - 1 - i);
    }
}

__global__ void read_pitched(float4 *out, int width)
{
    out[threadIdx.y * width + threadIdx.x] = tex2D(pitched, threadIdx.x + 0.5f, threadIdx.y + 0.5f);
}

__global__ void write_surface(int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height)
        surf2Dwrite(make_short2(x, -y), target, x * sizeof(short2), y);
}

static void arrays()
{
    const int width = 8, height = 8;
    std::vector<float> host(width * height);
    for (size_t i = 0; i < host.size(); i++)
        host[i] = static_cast<float>(i * 3 % 64);
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &format, width, height));
    CHECK(cudaMemcpyToArray(array, 0, 0, host.data(), host.size() * 4, cudaMemcpyHostToDevice));
    size_t offset = 77;
    expect_equal("offset before binding", cudaGetTextureAlignmentOffset(&offset, &plane), cudaErrorInvalidTextureBinding);
    (void)cudaGetLastError();

    // Halfway between elements the result is halfway between the values of four.
    plane.addressMode[0] = plane.addressMode[1] = cudaAddressModeClamp;
    plane.filterMode = cudaFilterModeLinear;
    plane.normalized = false;
    CHECK(cudaBindTextureToArray(plane, array));
    CHECK(cudaGetTextureAlignmentOffset(&offset, &plane));
    expect_equal("offset", static_cast<long long>(offset), 0);
    float *out;
    CHECK(cudaMalloc(&out, 49 * 4));
    read_plane<<<1, dim3(7, 7)>>>(out, 1.0f, 1.0f, 1.0f, 7);
    CHECK(cudaGetLastError());
    std::vector<float> got(49), expected(49);
    CHECK(cudaMemcpy(got.data(), out, 49 * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 7; x++) {
            const float *at = &host[y * width + x];
            expected[y * 7 + x] = (at[0] + at[1] + at[width] + at[width + 1]) / 4;
        }
    expect_equal("filtered", got, expected);

    // Bound again with other settings: normalized coordinates that wrap around.
    plane.addressMode[0] = plane.addressMode[1] = cudaAddressModeWrap;
    plane.filterMode = cudaFilterModePoint;
    plane.normalized = true;
    CHECK(cudaUnbindTexture(plane));
    CHECK(cudaBindTextureToArray(plane, array));
    read_plane<<<1, dim3(7, 7)>>>(out, -1.0f / 16, 1.0f / 16, 1.0f / 8, 7);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got.data(), out, 49 * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 7; x++)
            expected[y * 7 + x] = host[y * width + (x + 7) % 8];
    expect_equal("wrapped", got, expected);
    const textureReference *found = nullptr;
    CHECK(cudaGetTextureReference(&found, &plane));
    if (found != &plane)
        fail("the reference is not the variable");
    CHECK(cudaFree(out));
    CHECK(cudaFreeArray(array));
}

static void linear_memory()
{
    const int n = 300;
    std::vector<unsigned char> bytes(n);
    std::vector<int> words(n);
    for (int i = 0; i < n; i++) {
        bytes[i] = static_cast<unsigned char>(i * 7);
        words[i] = i * i - 1000;
    }
    cudaArray_t line;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned char>();
    CHECK(cudaMallocArray(&line, &format, n));
    CHECK(cudaMemcpyToArray(line, 0, 0, bytes.data(), n, cudaMemcpyHostToDevice));
    CHECK(cudaBindTextureToArray(fractions, line));
    int *memory, *whole;
    float *out;
    CHECK(cudaMalloc(&memory, n * 4));
    CHECK(cudaMalloc(&whole, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    CHECK(cudaMemcpy(memory, words.data(), n * 4, cudaMemcpyHostToDevice));
    size_t offset = 1;
    CHECK(cudaBindTexture(&offset, numbers_of, memory));  // without a size: all of it
    expect_equal("offset", static_cast<long long>(offset), 0);
    read_lines<<<3, 128>>>(out, whole, n);
    CHECK(cudaGetLastError());
    std::vector<float> got(n);
    std::vector<int> got_whole(n);
    CHECK(cudaMemcpy(got.data(), out, n * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got_whole.data(), whole, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        if (std::fabs(got[i] - bytes[i] / 255.0f) > 1e-7f)
            fail("byte %d as a fraction is %.9g", bytes[i], got[i]);
        expect_equal("fetched", got_whole[i], words[n - 1 - i]);
    }
    CHECK(cudaFree(memory));
    CHECK(cudaFree(whole));
    CHECK(cudaFree(out));
    CHECK(cudaFreeArray(line));

    const int width = 10, height = 5;
    std::vector<float4> pixels(width * height);
    for (size_t i = 0; i < pixels.size(); i++)
        pixels[i] = make_float4(i, -1.0f * i, 0.5f * i, 2);
    float4 *rows, *result;
    size_t pitch;
    CHECK(cudaMallocPitch(&rows, &pitch, width * 16, height));
    CHECK(cudaMalloc(&result, width * height * 16));
    CHECK(cudaMemcpy2D(rows, pitch, pixels.data(), width * 16, width * 16, height, cudaMemcpyHostToDevice));
    CHECK(cudaBindTexture2D(&offset, pitched, rows, width, height, pitch));
    read_pitched<<<1, dim3(width, height)>>>(result, width);
    CHECK(cudaGetLastError());
    std::vector<float4> back(pixels.size());
    CHECK(cudaMemcpy(back.data(), result, back.size() * 16, cudaMemcpyDeviceToHost));
    if (std::memcmp(back.data(), pixels.data(), back.size() * 16) != 0)
        fail("pitched rows differ");
    CHECK(cudaFree(rows));
    CHECK(cudaFree(result));
}

static void surfaces()
{
    const int width = 19, height = 11;
    cudaArray_t array;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<short2>();
    CHECK(cudaMallocArray(&array, &format, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaBindSurfaceToArray(target, array));
    write_surface<<<dim3(3, 2), dim3(8, 8)>>>(width, height);
    CHECK(cudaGetLastError());
    std::vector<short2> got(width * height);
    CHECK(cudaMemcpyFromArray(got.data(), array, 0, 0, got.size() * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            expect_equal("x", got[y * width + x].x, x);
            expect_equal("y", got[y * width + x].y, -y);
        }
    CHECK(cudaFreeArray(array));
}

int main()
{
    arrays();
    linear_memory();
    surfaces();
    std::printf("texture_references: arrays, linear memory, pitched rows and a surface\n");
    return passed();
}
