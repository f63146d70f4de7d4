// The first API of cuBLAS: no handle, letters for options, results by value, an error that waits to be asked for.
#include "example.h"

#include <cmath>
#include <cublas.h>

static void check(cublasStatus status, const char *call, const char *file, int line)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        fail("%s:%d: %s: status %d", file, line, call, static_cast<int>(status));
}

int main()
{
    const int n = 16;
    std::vector<float> a(n * n), b(n * n), c(n * n), x(n);
    Numbers numbers{9};
    for (std::vector<float> *values : {&a, &b, &x})
        for (float &value : *values)
            value = float(numbers.next() % 17) - 8;  // small whole numbers: every sum is exact

    cublasSgemm('n', 't', n, n, n, 1, nullptr, n, nullptr, n, 0, nullptr, n);
    if (cublasGetError() != CUBLAS_STATUS_NOT_INITIALIZED)
        fail("a routine before cublasInit says nothing");

    CHECK(cublasInit());
    float *device[4];
    for (float *&at : device)
        CHECK(cublasAlloc(n * n, sizeof(float), reinterpret_cast<void **>(&at)));
    CHECK(cublasSetMatrix(n, n, sizeof(float), a.data(), n, device[0], n));
    CHECK(cublasSetMatrix(n, n, sizeof(float), b.data(), n, device[1], n));
    CHECK(cublasSetVector(n, sizeof(float), x.data(), 1, device[3], 1));

    cublasSgemm('N', 't', n, n, n, 2, device[0], n, device[1], n, 0, device[2], n);
    CHECK(cublasGetError());
    CHECK(cublasGetMatrix(n, n, sizeof(float), device[2], n, c.data(), n));
    for (int column = 0; column < n; column++)
        for (int row = 0; row < n; row++) {
            float sum = 0;
            for (int i = 0; i < n; i++)
                sum += a[i * n + row] * b[i * n + column];
            if (c[column * n + row] != 2 * sum)
                fail("sgemm: row %d column %d is %g, expected %g", row, column, c[column * n + row], 2 * sum);
        }

    float dot = 0, size = 0;
    int largest = 0;
    for (int i = 0; i < n; i++) {
        dot += x[i] * x[i], size += std::fabs(x[i]);
        if (std::fabs(x[i]) > std::fabs(x[largest]))
            largest = i;
    }
    if (cublasSdot(n, device[3], 1, device[3], 1) != dot || cublasSasum(n, device[3], 1) != size)
        fail("sdot or sasum");
    if (cublasIsamax(n, device[3], 1) != largest + 1)
        fail("isamax");

    // In place: B = L B.
    cublasStrmm('L', 'l', 'n', 'N', n, n, 1, device[0], n, device[1], n);
    CHECK(cublasGetError());
    CHECK(cublasGetMatrix(n, n, sizeof(float), device[1], n, c.data(), n));
    for (int column = 0; column < n; column++)
        for (int row = 0; row < n; row++) {
            float sum = 0;
            for (int i = 0; i <= row; i++)
                sum += a[i * n + row] * b[column * n + i];
            if (c[column * n + row] != sum)
                fail("strmm: row %d column %d is %g, expected %g", row, column, c[column * n + row], sum);
        }

    cublasSgemm('q', 'n', n, n, n, 1, device[0], n, device[1], n, 0, device[2], n);
    if (cublasGetError() != CUBLAS_STATUS_INVALID_VALUE || cublasGetError() != CUBLAS_STATUS_SUCCESS)
        fail("a wrong letter is an invalid value, once");
    for (float *at : device)
        CHECK(cublasFree(at));
    CHECK(cublasShutdown());
    std::printf("cublas_first_api: products, sums, in place, errors\n");
    return passed();
}
