/* cuBLAS over a HIP provider that is not the CPU device: streams, modes and captures on the way to hipBLAS. */
#include <stdio.h>

typedef void *handle;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(handle *, int), cuCtxSetCurrent(handle), cuStreamCreate(handle *, unsigned);
int cuStreamBeginCapture_v2(handle, int), cuStreamEndCapture(handle, handle *);
int cublasCreate_v2(handle *), cublasDestroy_v2(handle), cublasSetStream_v2(handle, handle);
int cublasSetPointerMode_v2(handle, int);
int cublasSdot_v2(handle, int, const float *, int, const float *, int, float *);
int cublasSdot_v2_64(handle, long long, const float *, long long, const float *, long long, float *);

static int n_failed;
static void expect(const char *what, int got, int wanted)
{
    if (got != wanted) {
        printf("FAILED: %s is %d, not %d\n", what, got, wanted);
        n_failed++;
    }
}

int main(void)
{
    handle context, stream, blas, graph;
    float x[8] = {0}, result;
    expect("cuInit", cuInit(0), 0);
    expect("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, 0), 0);
    expect("cuCtxSetCurrent", cuCtxSetCurrent(context), 0);
    expect("cuStreamCreate", cuStreamCreate(&stream, 1), 0);
    expect("cublasCreate", cublasCreate_v2(&blas), 0);

    expect("a call", cublasSdot_v2(blas, 1, x, 2, x, 3, &result), 0);
    expect("cublasSetStream", cublasSetStream_v2(blas, stream), 0);
    expect("cublasSetPointerMode", cublasSetPointerMode_v2(blas, 1), 0);
    expect("a call on a stream", cublasSdot_v2_64(blas, 4, x, 5, x, 6, &result), 0);
    /* The library's sizes have 32 bits: CUBLAS_STATUS_NOT_SUPPORTED. */
    expect("a long vector", cublasSdot_v2_64(blas, 1ll << 32, x, 1, x, 1, &result), 15);

    expect("cuStreamBeginCapture", cuStreamBeginCapture_v2(stream, 0), 0);
    expect("a captured call", cublasSdot_v2(blas, 1, x, 1, x, 1, &result), 15);
    /* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
    expect("cuStreamEndCapture", cuStreamEndCapture(stream, &graph), 901);
    expect("a call after it", cublasSdot_v2(blas, 7, x, 8, x, 9, &result), 0);

    expect("cublasDestroy", cublasDestroy_v2(blas), 0);
    expect("a destroyed handle", cublasSdot_v2(blas, 1, x, 1, x, 1, &result), 1);
    puts(n_failed ? "FAILED" : "PASSED");
    return n_failed != 0;
}
