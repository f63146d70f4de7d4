// cuFFT: transforms beside their definition, a convolution as particle-mesh programs do it (real to complex, a kernel, complex to
// real), rows of a larger array, half precision, a stream and a captured graph.
#include "example.h"

#include <cmath>
#include <cuda_fp16.h>
#include <cufft.h>
#include <cufftXt.h>

static void check(cufftResult result, const char *call, const char *file, int line)
{
    if (result != CUFFT_SUCCESS)
        fail("%s:%d: %s: result %d", file, line, call, static_cast<int>(result));
}

static const double turn = 2 * 3.14159265358979323846;

template <typename T>
static std::vector<T> fetched(const T *device, size_t count)
{
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

template <typename T>
static T *sent(const std::vector<T> &values)
{
    T *device;
    CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

static void expect_near(const char *what, size_t at, double got, double expected, double tolerance)
{
    if (!(std::fabs(got - expected) <= tolerance))
        fail("%s[%zu] is %.9g, expected %.9g", what, at, got, expected);
}

// The product of two spectra, and what the inverse transform multiplies by.
__global__ void multiply(cufftComplex *spectrum, const cufftComplex *other, int count, float scale)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        cufftComplex a = spectrum[i], b = other[i];
        spectrum[i] = make_cuComplex((a.x * b.x - a.y * b.y) * scale, (a.x * b.y + a.y * b.x) * scale);
    }
}

// Every length has a definition, in both directions.
static void definition()
{
    for (int n : {1, 2, 12, 17, 64, 101, 360}) {
        Numbers numbers = {static_cast<uint32_t>(n)};
        std::vector<cufftDoubleComplex> values(n);
        for (cufftDoubleComplex &value : values)
            value = make_cuDoubleComplex(numbers.next() / 16777216.0 - 0.5, numbers.next() / 16777216.0 - 0.5);
        cufftDoubleComplex *device = sent(values), *other = sent(values);
        cufftHandle plan;
        CHECK(cufftPlan1d(&plan, n, CUFFT_Z2Z, 1));
        for (int direction : {CUFFT_FORWARD, CUFFT_INVERSE}) {
            CHECK(cufftExecZ2Z(plan, device, other, direction));
            std::vector<cufftDoubleComplex> got = fetched(other, n);
            for (int k = 0; k < n; k++) {
                double re = 0, im = 0;
                for (int j = 0; j < n; j++) {
                    double angle = direction * turn * (static_cast<long long>(j) * k % n) / n;
                    re += values[j].x * std::cos(angle) - values[j].y * std::sin(angle);
                    im += values[j].x * std::sin(angle) + values[j].y * std::cos(angle);
                }
                expect_near("the definition", k, got[k].x, re, 1e-12);
                expect_near("the definition", k, got[k].y, im, 1e-12);
            }
        }
        CHECK(cufftDestroy(plan));
        CHECK(cudaFree(device));
        CHECK(cudaFree(other));
    }
}

// A box with a few charges, spread by a stencil: by transforms, and charge for charge.
static void convolution()
{
    const int x = 12, y = 10, z = 14, half = z / 2 + 1, count = x * y * half;
    std::vector<float> charges(x * y * z), stencil(x * y * z), expected(x * y * z);
    Numbers numbers = {7};
    for (int i = 0; i < 20; i++)
        charges[numbers.next() % charges.size()] += 1 + numbers.next() % 5;
    for (float &weight : stencil)
        weight = numbers.next() % 8;
    for (int i = 0; i < x * y * z; i++)
        if (charges[i] != 0)
            for (int j = 0; j < x * y * z; j++) {
                int to = ((i / (y * z) + j / (y * z)) % x * y + (i / z % y + j / z % y) % y) * z + (i % z + j % z) % z;
                expected[to] += charges[i] * stencil[j];
            }
    float *grid = sent(charges), *weights = sent(stencil);
    cufftComplex *spectrum, *other;
    CHECK(cudaMalloc(&spectrum, count * sizeof *spectrum));
    CHECK(cudaMalloc(&other, count * sizeof *other));
    cufftHandle forward, inverse;
    CHECK(cufftPlan3d(&forward, x, y, z, CUFFT_R2C));
    CHECK(cufftPlan3d(&inverse, x, y, z, CUFFT_C2R));
    CHECK(cufftExecR2C(forward, grid, spectrum));
    CHECK(cufftExecR2C(forward, weights, other));
    multiply<<<(count + 127) / 128, 128>>>(spectrum, other, count, 1.0f / (x * y * z));
    CHECK(cudaGetLastError());
    CHECK(cufftExecC2R(inverse, spectrum, grid));
    std::vector<float> got = fetched(grid, x * y * z);
    for (size_t i = 0; i < got.size(); i++)
        expect_near("a convolution", i, got[i], expected[i], 1e-3);
    CHECK(cufftDestroy(forward));
    CHECK(cufftDestroy(inverse));
}

// Rows of every second number within a wider array; what lies between stays.
static void rows()
{
    const int n = 16, batch = 5, stride = 2, distance = 40;
    std::vector<cufftComplex> values(batch * distance, make_cuComplex(-1, -2));
    for (int b = 0; b < batch; b++)
        for (int j = 0; j < n; j++)
            values[b * distance + j * stride] = make_cuComplex(static_cast<float>(std::cos(turn * (b + 1) * j / n)), 0);
    cufftComplex *device = sent(values);
    int length = n;
    cufftHandle plan;
    CHECK(cufftPlanMany(&plan, 1, &length, &length, stride, distance, &length, stride, distance, CUFFT_C2C, batch));
    CHECK(cufftExecC2C(plan, device, device, CUFFT_FORWARD));
    std::vector<cufftComplex> got = fetched(device, values.size());
    for (int b = 0; b < batch; b++)
        for (int j = 0; j < distance; j++) {
            const bool inside = j % stride == 0 && j / stride < n, peak = j / stride == b + 1 || j / stride == n - b - 1;
            expect_near("rows", b * distance + j, got[b * distance + j].x, !inside ? -1 : peak ? n / 2 : 0, 1e-5);
            expect_near("rows", b * distance + j, got[b * distance + j].y, !inside ? -2 : 0, 1e-5);
        }
    CHECK(cufftDestroy(plan));
}

static void halves()
{
    long long n = 64;
    size_t size;
    std::vector<__half> values(2 * n, __float2half(0));
    values[0] = __float2half(1);
    __half *device = sent(values);
    cufftHandle plan;
    CHECK(cufftCreate(&plan));
    CHECK(cufftXtMakePlanMany(plan, 1, &n, nullptr, 1, n, CUDA_C_16F, nullptr, 1, n, CUDA_C_16F, 1, &size, CUDA_C_16F));
    CHECK(cufftXtExec(plan, device, device, CUFFT_FORWARD));
    std::vector<__half> got = fetched(device, 2 * n);
    for (int i = 0; i < 2 * n; i++)
        expect_near("half precision", i, __half2float(got[i]), i % 2 == 0, 1e-3);
    CHECK(cufftDestroy(plan));
}

static void graph()
{
    const int n = 256;
    std::vector<cufftComplex> values(n, make_cuComplex(1, 0));
    cufftComplex *device = sent(values), *other = sent(values);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cufftHandle plan;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cufftPlan1d(&plan, n, CUFFT_C2C, 1));
    CHECK(cufftSetStream(plan, stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cufftExecC2C(plan, device, other, CUFFT_FORWARD));
    multiply<<<2, 128, 0, stream>>>(other, device, n, 0.5f);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    expect_near("a captured call does nothing yet", 1, fetched(other, 2)[1].x, 1, 0);
    for (int run = 0; run < 2; run++) {
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        std::vector<cufftComplex> got = fetched(other, n);
        for (int i = 0; i < n; i++)
            expect_near("a graph", i, got[i].x, i == 0 ? n / 2 : 0, 1e-4);
    }
    CHECK(cufftDestroy(plan));
    CHECK(cudaStreamDestroy(stream));
}

int main()
{
    definition();
    convolution();
    rows();
    halves();
    graph();
    cufftHandle plan = 0;
    if (cufftPlan1d(&plan, 0, CUFFT_C2C, 1) != CUFFT_INVALID_SIZE || cufftPlan1d(&plan, 8, static_cast<cufftType>(1), 1) != CUFFT_INVALID_TYPE ||
        cufftDestroy(4711) != CUFFT_INVALID_PLAN)
        fail("what cannot be planned is planned");
    std::printf("cufft_transforms: lengths, a convolution, rows, half precision, a graph\n");
    return passed();
}
