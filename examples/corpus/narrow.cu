// half, half2, bfloat16, and eight-bit floats: arithmetic, conversions, comparisons. Inputs are chosen so that results
// are exact or correctly rounded by one conversion from float.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "example.h"

__global__ void halves(const float *x, const float *y, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const __half a = __float2half(x[i]), b = __float2half(y[i]);
    out[i * 8 + 0] = __half2float(__hadd(a, b));
    out[i * 8 + 1] = __half2float(__hmul(a, b));
    out[i * 8 + 2] = __half2float(__hfma(a, b, a));
    out[i * 8 + 3] = __hlt(a, b) ? 1.0f : 0.0f;
    const __half2 pair = __hsub2(__halves2half2(a, b), __halves2half2(b, b));
    out[i * 8 + 4] = __low2float(pair);
    out[i * 8 + 5] = __high2float(pair);
    out[i * 8 + 6] = float(__half2int_rn(a));
    out[i * 8 + 7] = __half2float(__habs(b));
}

__global__ void brains(const float *x, const float *y, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    const __nv_bfloat16 a = __float2bfloat16(x[i]), b = __float2bfloat16(y[i]);
    out[i * 4 + 0] = __bfloat162float(__hadd(a, b));
    out[i * 4 + 1] = __bfloat162float(__hmul(a, b));
    out[i * 4 + 2] = __bfloat162float(a) - __bfloat162float(__float2bfloat16_rz(x[i]));
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x[i], y[i]);
    out[i * 4 + 3] = __high2float(pair);
}

// To nearest even with `bits` bits of significand (11 half, 8 bfloat16); exponents here are far from the limits.
static float rounded(double value, int bits)
{
    if (value == 0)
        return float(value);
    int exponent;
    const double fraction = std::frexp(value, &exponent);
    return float(std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits));
}

int main()
{
    const int n = 1000;
    std::vector<float> x(n), y(n), got(n * 8), wanted(n * 8);
    Numbers numbers{11};
    for (int i = 0; i < n; i++) {
        x[i] = float(int(numbers.next() % 4001) - 2000) / 64;
        y[i] = float(int(numbers.next() % 4001) - 2000) / 128;
    }
    float *device_x, *device_y, *device_out;
    CHECK(cudaMalloc(&device_x, n * sizeof(float)));
    CHECK(cudaMalloc(&device_y, n * sizeof(float)));
    CHECK(cudaMalloc(&device_out, n * 8 * sizeof(float)));
    CHECK(cudaMemcpy(device_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(device_y, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    halves<<<(n + 127) / 128, 128>>>(device_x, device_y, device_out, n);
    CHECK(cudaMemcpy(got.data(), device_out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        const double a = rounded(x[i], 11), b = rounded(y[i], 11);
        const float values[8] = {rounded(a + b, 11), rounded(a * b, 11), rounded(a * b + a, 11), a < b ? 1.0f : 0.0f, rounded(a - b, 11), 0.0f, float(std::nearbyint(a)), float(std::fabs(b))};
        for (int k = 0; k < 8; k++)
            wanted[i * 8 + k] = values[k] + 0.0f, got[i * 8 + k] += 0.0f;
    }
    expect_equal("half", got, wanted);
    brains<<<(n + 127) / 128, 128>>>(device_x, device_y, device_out, n);
    got.resize(n * 4), wanted.resize(n * 4);
    CHECK(cudaMemcpy(got.data(), device_out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        const double a = rounded(x[i], 8), b = rounded(y[i], 8);
        float towards_zero = x[i];
        uint32_t bits;
        std::memcpy(&bits, &towards_zero, 4);
        bits &= 0xffff0000u;
        std::memcpy(&towards_zero, &bits, 4);
        const float values[4] = {rounded(a + b, 8), rounded(a * b, 8), float(a) - towards_zero, float(b)};
        for (int k = 0; k < 4; k++)
            wanted[i * 4 + k] = values[k] + 0.0f, got[i * 4 + k] += 0.0f;
    }
    expect_equal("bfloat16", got, wanted);
    return passed();
}
