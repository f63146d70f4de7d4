// Products by cuBLASLt: layouts by columns and by rows, a bias, relu and gelu, what they save, batches, bytes, a transform
// of the memory order. Expected values are sums in double (of integers: exact), within the bound of float summation.
#include "example.h"

#include <cmath>
#include <cublasLt.h>
#include <cuda_fp16.h>

static void check(cublasStatus_t status, const char *call, const char *file, int line)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        fail("%s:%d: %s: status %d", file, line, call, static_cast<int>(status));
}

template <typename T>
struct Device {
    std::vector<T> host;
    T *at = nullptr;

    explicit Device(size_t n) : host(n) { CHECK(cudaMalloc(&at, n * sizeof(T))); }
    Device(size_t n, Numbers &numbers, float scale) : Device(n)
    {
        for (T &value : host)
            value = T((float(numbers.next() % 201) - 100.0f) * scale);
        CHECK(cudaMemcpy(at, host.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Device() { cudaFree(at); }
    Device(const Device &) = delete;
    std::vector<T> back() const
    {
        std::vector<T> values(host.size());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(values.data(), at, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }
};

struct Layout {
    cublasLtMatrixLayout_t layout;
    Layout(cudaDataType type, int rows, int columns, int ld) { CHECK(cublasLtMatrixLayoutCreate(&layout, type, rows, columns, ld)); }
    ~Layout() { cublasLtMatrixLayoutDestroy(layout); }
    template <typename T>
    Layout &with(cublasLtMatrixLayoutAttribute_t attribute, T value)
    {
        CHECK(cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
        return *this;
    }
};

struct Operation {
    cublasLtMatmulDesc_t desc;
    Operation(cublasComputeType_t compute, cudaDataType scale) { CHECK(cublasLtMatmulDescCreate(&desc, compute, scale)); }
    ~Operation() { cublasLtMatmulDescDestroy(desc); }
    template <typename T>
    Operation &with(cublasLtMatmulDescAttributes_t attribute, T value)
    {
        CHECK(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
        return *this;
    }
};

// With an algorithm that the heuristics give, as programs do it.
static void multiply(cublasLtHandle_t handle, const Operation &operation, const void *alpha, const void *a, const Layout &of_a,
                     const void *b, const Layout &of_b, const void *beta, void *d, const Layout &of_d)
{
    cublasLtMatmulPreference_t preference;
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const size_t most = 1 << 20;
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    CHECK(cublasLtMatmulAlgoGetHeuristic(handle, operation.desc, of_a.layout, of_b.layout, of_d.layout, of_d.layout, preference, 1, &found, &count));
    if (count != 1)
        fail("no algorithm");
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
    void *workspace = nullptr;
    if (found.workspaceSize != 0)
        CHECK(cudaMalloc(&workspace, found.workspaceSize));
    CHECK(cublasLtMatmul(handle, operation.desc, alpha, a, of_a.layout, b, of_b.layout, beta, d, of_d.layout, d, of_d.layout,
                         &found.algo, workspace, found.workspaceSize, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(workspace));
}

static void near(const char *what, double got, double expected, double bound)
{
    if (!(std::fabs(got - expected) <= bound))
        fail("%s is %.9g, expected %.9g within %.3g", what, got, expected, bound);
}

static const int m = 31, n = 18, k = 47;
static const double unit = 0x1p-24;

// D = activation(A B + bias), A by columns, B and D as given; what the activation saves.
static void epilogues(cublasLtHandle_t handle, Numbers &numbers)
{
    Device<float> a(m * k, numbers, 0.01f), b(k * n, numbers, 0.01f), bias(m, numbers, 0.01f), d(m * n, numbers, 1);
    Device<float> saved(m * n);
    Device<unsigned char> bits(128 / 8 * n);
    const float alpha = 1.5f, beta = 0;
    for (cublasLtEpilogue_t epilogue : {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_AUX_BIAS,
                                        CUBLASLT_EPILOGUE_GELU_AUX_BIAS}) {
        const bool is_relu = epilogue == CUBLASLT_EPILOGUE_RELU_BIAS || epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
        const bool is_gelu = epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
        Layout of_a(CUDA_R_32F, m, k, m), of_b(CUDA_R_32F, k, n, k), of_d(CUDA_R_32F, m, n, m);
        Operation operation(CUBLAS_COMPUTE_32F, CUDA_R_32F);
        operation.with(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue).with(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.at);
        if (epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS)
            operation.with(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, bits.at).with(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(128));
        if (is_gelu)
            operation.with(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, saved.at).with(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t(m));
        multiply(handle, operation, &alpha, a.at, of_a, b.at, of_b, &beta, d.at, of_d);
        const std::vector<float> got = d.back(), before = saved.back();
        const std::vector<unsigned char> mask = bits.back();
        for (int column = 0; column < n; column++)
            for (int row = 0; row < m; row++) {
                double sum = 0, size = 0;
                for (int i = 0; i < k; i++) {
                    const double product = double(a.host[i * m + row]) * b.host[column * k + i];
                    sum += product, size += std::fabs(product);
                }
                const double x = alpha * sum + bias.host[row];
                const double bound = 2 * (k + 3) * unit * (alpha * size + std::fabs(bias.host[row]));
                double expected = x;
                if (is_relu)
                    expected = x > 0 ? x : 0;
                if (is_gelu)
                    expected = 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
                near("an epilogue's result", got[column * m + row], expected, 2 * bound + 1e-6);
                if (is_gelu)
                    near("what gelu saves", before[column * m + row], x, bound);
                if (epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS && std::fabs(x) > bound) {
                    const bool bit = mask[column * 16 + row / 8] >> (row % 8) & 1;
                    if (bit != (x > 0))
                        fail("relu's bit of row %d column %d is %d", row, column, bit);
                }
            }
    }
}

// Everything by rows, halves in and floats out, a batch whose factors share B.
static void rows_and_batches(cublasLtHandle_t handle, Numbers &numbers)
{
    const int count = 3;
    Device<__half> a(m * k * count, numbers, 0.01f), b(k * n, numbers, 0.01f);
    Device<float> d(m * n * count, numbers, 0.01f);
    const std::vector<float> old = d.host;
    const float alpha = 1, beta = -2;
    Layout of_a(CUDA_R_16F, m, k, k), of_b(CUDA_R_16F, k, n, n), of_d(CUDA_R_32F, m, n, n);
    for (Layout *layout : {&of_a, &of_b, &of_d})
        layout->with(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_ROW).with(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    of_a.with(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(m * k));
    of_b.with(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(0));
    of_d.with(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(m * n));
    multiply(handle, Operation(CUBLAS_COMPUTE_32F, CUDA_R_32F), &alpha, a.at, of_a, b.at, of_b, &beta, d.at, of_d);
    const std::vector<float> got = d.back();
    for (int batch = 0; batch < count; batch++)
        for (int row = 0; row < m; row++)
            for (int column = 0; column < n; column++) {
                const int at = (batch * m + row) * n + column;
                double sum = 0, size = 0;
                for (int i = 0; i < k; i++) {
                    const double product = double(float(a.host[(batch * m + row) * k + i])) * double(float(b.host[i * n + column]));
                    sum += product, size += std::fabs(product);
                }
                near("a product by rows", got[at], sum + beta * old[at], 2 * (k + 3) * unit * (size + 2 * std::fabs(old[at])));
            }
}

// Bytes are exact.
static void bytes(cublasLtHandle_t handle, Numbers &numbers)
{
    const int rows = 32, columns = 16, depth = 64;
    Device<int8_t> a(depth * rows, numbers, 1), b(depth * columns, numbers, 1);
    Device<int32_t> d(rows * columns);
    const int32_t alpha = 3, beta = 0;
    Layout of_a(CUDA_R_8I, depth, rows, depth), of_b(CUDA_R_8I, depth, columns, depth), of_d(CUDA_R_32I, rows, columns, rows);
    Operation operation(CUBLAS_COMPUTE_32I, CUDA_R_32I);
    operation.with(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    multiply(handle, operation, &alpha, a.at, of_a, b.at, of_b, &beta, d.at, of_d);
    std::vector<int32_t> expected(rows * columns);
    for (int column = 0; column < columns; column++)
        for (int row = 0; row < rows; row++)
            for (int i = 0; i < depth; i++)
                expected[column * rows + row] += alpha * a.host[row * depth + i] * b.host[column * depth + i];
    expect_equal("a product of bytes", d.back(), expected);
}

static void transform(cublasLtHandle_t handle, Numbers &numbers)
{
    Device<float> a(m * n, numbers, 0.5f);
    Device<__half> c(m * n);
    Layout of_a(CUDA_R_32F, m, n, m), of_c(CUDA_R_16F, m, n, n);
    of_c.with(CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_ORDER_ROW);
    cublasLtMatrixTransformDesc_t desc;
    CHECK(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F));
    const float alpha = 2, beta = 0;
    CHECK(cublasLtMatrixTransform(handle, desc, &alpha, a.at, of_a.layout, &beta, nullptr, nullptr, c.at, of_c.layout, nullptr));
    CHECK(cublasLtMatrixTransformDescDestroy(desc));
    const std::vector<__half> got = c.back();
    for (int row = 0; row < m; row++)
        for (int column = 0; column < n; column++)
            near("a transform", double(float(got[row * n + column])), 2.0 * a.host[column * m + row], 0);
}

int main()
{
    Numbers numbers{5};
    cublasLtHandle_t handle;
    CHECK(cublasLtCreate(&handle));
    epilogues(handle, numbers);
    rows_and_batches(handle, numbers);
    bytes(handle, numbers);
    transform(handle, numbers);
    CHECK(cublasLtDestroy(handle));
    std::printf("cublas_lt: epilogues, rows and batches, bytes, a transform\n");
    return passed();
}
