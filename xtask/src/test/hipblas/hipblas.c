/* A hipBLAS for tests: seven functions that write down what they are called with, in the file that HIPBLAS_LOG names. */
#include <stdio.h>
#include <stdlib.h>

static void line(const char *name, long long a, long long b, long long c)
{
    FILE *log = fopen(getenv("HIPBLAS_LOG"), "a");
    fprintf(log, "%s %lld %lld %lld\n", name, a, b, c);
    fclose(log);
}

int hipblasCreate(void **handle) { line("hipblasCreate", 0, 0, 0); *handle = (void *)7; return 0; }
int hipblasDestroy(void *handle) { line("hipblasDestroy", (long long)handle, 0, 0); return 0; }
int hipblasSetStream(void *handle, void *stream) { line("hipblasSetStream", (long long)handle, stream != 0, 0); return 0; }
int hipblasSetPointerMode(void *handle, int mode) { line("hipblasSetPointerMode", (long long)handle, mode, 0); return 0; }
int hipblasSetAtomicsMode(void *handle, int mode) { line("hipblasSetAtomicsMode", (long long)handle, mode, 0); return 0; }

int hipblasSdot(void *handle, int n, const float *x, int incx, const float *y, int incy, float *result)
{
    line("hipblasSdot", n, incx, incy);
    return 0;
}

/* Of matrices that nothing transposes, on the device's memory, which is the CPU's here. */
int hipblasSgemm(void *handle, int transa, int transb, int m, int n, int k, const float *alpha, const float *a, int lda,
                 const float *b, int ldb, const float *beta, float *c, int ldc)
{
    line("hipblasSgemm", lda, ldb, ldc);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++)
                sum += a[i + l * lda] * b[l + j * ldb];
            c[i + j * ldc] = *alpha * sum + *beta * c[i + j * ldc];
        }
    return 0;
}
