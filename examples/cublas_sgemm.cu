// Products of matrices by cuBLAS: every pair of operations, factors on the host and on the device, a stream, batches by
// pointers and by strides, half precision. Each element is compared with a sum in double, within the bound that
// floating-point summation has (Higham, Accuracy and Stability of Numerical Algorithms, 3.5).
#include "example.h"

#include <cmath>
#include <cublas_v2.h>
#include <cuda_fp16.h>

static void check(cublasStatus_t status, const char *call, const char *file, int line)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        fail("%s:%d: %s: status %d", file, line, call, static_cast<int>(status));
}

// Column after column, with `ld` elements from one column to the next; what lies between is never to change.
template <typename T>
struct Matrix {
    int rows, columns, ld;
    std::vector<T> host;
    T *device = nullptr;

    Matrix(int rows, int columns, int padding, Numbers &numbers)
        : rows(rows), columns(columns), ld(rows + padding), host(size_t(ld) * columns)
    {
        for (T &value : host)
            value = T(float(numbers.next() % 2001) / 1000.0f - 1.0f);
        CHECK(cudaMalloc(&device, bytes()));
        CHECK(cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice));
    }
    ~Matrix() { cudaFree(device); }
    Matrix(const Matrix &) = delete;

    size_t bytes() const { return host.size() * sizeof(T); }
    double at(int row, int column) const { return double(float(host[size_t(column) * ld + row])); }
    double at(cublasOperation_t operation, int row, int column) const
    {
        return operation == CUBLAS_OP_N ? at(row, column) : at(column, row);
    }
    std::vector<T> back() const
    {
        std::vector<T> values(host.size());
        // A per-thread default stream waits for no other stream.
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(values.data(), device, bytes(), cudaMemcpyDeviceToHost));
        return values;
    }
};

// |got - exact| <= gamma(k + 2) (|alpha| |A| |B| + |beta| |C|) + one rounding of the stored result.
template <typename In, typename Out>
void expect_product(const char *what, cublasOperation_t op_a, cublasOperation_t op_b, int k, double alpha,
                    const Matrix<In> &a, const Matrix<In> &b, double beta, const Matrix<Out> &c,
                    const std::vector<Out> &got, double unit_stored)
{
    const double unit = std::ldexp(1, -24), gamma = (k + 2) * unit / (1 - (k + 2) * unit);
    for (int column = 0; column < c.columns; column++) {
        for (int row = 0; row < c.ld; row++) {
            const double value = double(float(got[size_t(column) * c.ld + row]));
            if (row >= c.rows) {
                if (value != c.at(row, column))
                    fail("%s: wrote between the columns, row %d column %d", what, row, column);
                continue;
            }
            double sum = 0, size = 0;
            for (int i = 0; i < k; i++) {
                const double product = a.at(op_a, row, i) * b.at(op_b, i, column);
                sum += product;
                size += std::fabs(product);
            }
            const double old = beta == 0 ? 0 : beta * c.at(row, column), exact = alpha * sum + old;
            const double bound = gamma * (std::fabs(alpha) * size + std::fabs(old));
            if (!(std::fabs(value - exact) <= bound + unit_stored * (std::fabs(exact) + bound)))
                fail("%s: row %d column %d is %.9g, expected %.9g within %.3g", what, row, column, value, exact, bound);
        }
    }
}

static void operations(cublasHandle_t handle, Numbers &numbers)
{
    const int m = 67, n = 45, k = 129;
    const float alpha = 1.25f, beta = -0.5f;
    float *factors;
    CHECK(cudaMalloc(&factors, 2 * sizeof(float)));
    CHECK(cudaMemcpy(factors, &alpha, sizeof alpha, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(factors + 1, &beta, sizeof beta, cudaMemcpyHostToDevice));
    for (cublasOperation_t op_a : {CUBLAS_OP_N, CUBLAS_OP_T})
        for (cublasOperation_t op_b : {CUBLAS_OP_N, CUBLAS_OP_T})
            for (bool on_device : {false, true}) {
                Matrix<float> a(op_a == CUBLAS_OP_N ? m : k, op_a == CUBLAS_OP_N ? k : m, 3, numbers);
                Matrix<float> b(op_b == CUBLAS_OP_N ? k : n, op_b == CUBLAS_OP_N ? n : k, 0, numbers);
                Matrix<float> c(m, n, 5, numbers);
                CHECK(cublasSetPointerMode(handle, on_device ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST));
                CHECK(cublasSgemm(handle, op_a, op_b, m, n, k, on_device ? factors : &alpha, a.device, a.ld, b.device,
                                  b.ld, on_device ? factors + 1 : &beta, c.device, c.ld));
                expect_product("sgemm", op_a, op_b, k, alpha, a, b, beta, c, c.back(), 0);
            }
    CHECK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    CHECK(cudaFree(factors));

    // Nothing of C is read where beta is 0: not even a NaN.
    Matrix<float> a(m, k, 0, numbers), b(k, n, 0, numbers), c(m, n, 0, numbers);
    const std::vector<float> nan(c.host.size(), std::nanf(""));
    CHECK(cudaMemcpy(c.device, nan.data(), c.bytes(), cudaMemcpyHostToDevice));
    const float one = 1, zero = 0;
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a.device, m, b.device, k, &zero, c.device, m));
    expect_product("sgemm over NaN", CUBLAS_OP_N, CUBLAS_OP_N, k, 1, a, b, 0, c, c.back(), 0);
}

static void batches(cublasHandle_t handle, Numbers &numbers)
{
    const int m = 8, n = 5, k = 12, count = 7;
    const float alpha = 2, beta = 0.25f;
    Matrix<float> a(m, k * count, 0, numbers), b(k, n * count, 0, numbers), c(m, n * count, 0, numbers), d(m, n * count, 0, numbers);
    CHECK(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.device, m, m * k, b.device, k,
                                    k * n, &beta, c.device, m, m * n, count));
    std::vector<float *> pointers;
    for (int i = 0; i < count; i++)
        pointers.insert(pointers.end(), {a.device + i * m * k, b.device + i * k * n, d.device + i * m * n});
    std::vector<float *> sorted;
    for (int which = 0; which < 3; which++)
        for (int i = 0; i < count; i++)
            sorted.push_back(pointers[i * 3 + which]);
    float **lists;
    CHECK(cudaMalloc(&lists, sorted.size() * sizeof(float *)));
    CHECK(cudaMemcpy(lists, sorted.data(), sorted.size() * sizeof(float *), cudaMemcpyHostToDevice));
    CHECK(cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, lists, m, lists + count, k, &beta,
                             lists + 2 * count, m, count));
    const std::vector<float> by_strides = c.back(), by_pointers = d.back();
    for (int i = 0; i < count; i++) {
        const auto part = [i](const Matrix<float> &whole, int columns) {
            Numbers any{1};
            Matrix<float> one(whole.rows, columns, 0, any);
            const size_t elements = size_t(whole.rows) * columns;
            one.host.assign(whole.host.begin() + i * elements, whole.host.begin() + (i + 1) * elements);
            return one.host;
        };
        Numbers any{1};
        Matrix<float> ai(m, k, 0, any), bi(k, n, 0, any), ci(m, n, 0, any), di(m, n, 0, any);
        ai.host = part(a, k), bi.host = part(b, n), ci.host = part(c, n), di.host = part(d, n);
        const size_t from = size_t(i) * m * n, to = from + m * n;
        expect_product("strided batch", CUBLAS_OP_N, CUBLAS_OP_N, k, alpha, ai, bi, beta, ci,
                       {by_strides.begin() + from, by_strides.begin() + to}, 0);
        expect_product("batch of pointers", CUBLAS_OP_N, CUBLAS_OP_N, k, alpha, ai, bi, beta, di,
                       {by_pointers.begin() + from, by_pointers.begin() + to}, 0);
    }
    CHECK(cudaFree(lists));
}

static void half_precision(cublasHandle_t handle, Numbers &numbers)
{
    const int m = 33, n = 20, k = 64;
    const float alpha = 0.5f, beta = 1;
    Matrix<__half> a(m, k, 0, numbers), b(k, n, 0, numbers), c(m, n, 1, numbers);
    Matrix<float> wide(m, n, 0, numbers);
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.device, CUDA_R_16F, a.ld, b.device, CUDA_R_16F,
                       b.ld, &beta, c.device, CUDA_R_16F, c.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    expect_product("half to half", CUBLAS_OP_N, CUBLAS_OP_N, k, alpha, a, b, beta, c, c.back(), std::ldexp(1, -11));
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.device, CUDA_R_16F, a.ld, b.device, CUDA_R_16F,
                       b.ld, &beta, wide.device, CUDA_R_32F, wide.ld, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    expect_product("half to float", CUBLAS_OP_N, CUBLAS_OP_N, k, alpha, a, b, beta, wide, wide.back(), 0);
}

int main()
{
    Numbers numbers{3};
    cublasHandle_t handle;
    cudaStream_t stream;
    CHECK(cublasCreate(&handle));
    operations(handle, numbers);
    CHECK(cudaStreamCreate(&stream));
    CHECK(cublasSetStream(handle, stream));
    batches(handle, numbers);
    half_precision(handle, numbers);
    CHECK(cublasDestroy(handle));
    CHECK(cudaStreamDestroy(stream));
    std::printf("cublas_sgemm: operations, factors, batches, half precision\n");
    return passed();
}
