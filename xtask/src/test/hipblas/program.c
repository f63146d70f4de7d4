/* cuBLAS over a HIP provider that is not the CPU device: streams, modes and captures on the way to hipBLAS. */
#include <stddef.h>
#include <stdio.h>

typedef void *handle;
int cuInit(unsigned), cuDevicePrimaryCtxRetain(handle *, int), cuCtxSetCurrent(handle), cuStreamCreate(handle *, unsigned);
int cuStreamBeginCapture_v2(handle, int), cuStreamEndCapture(handle, handle *);
int cublasCreate_v2(handle *), cublasDestroy_v2(handle), cublasSetStream_v2(handle, handle);
int cublasSetPointerMode_v2(handle, int);
int cublasSdot_v2(handle, int, const float *, int, const float *, int, float *);
int cublasSdot_v2_64(handle, long long, const float *, long long, const float *, long long, float *);

int cublasXtCreate(handle *), cublasXtDeviceSelect(handle, int, int *), cublasXtDestroy(handle);
int cublasXtSgemm(handle, int, int, size_t, size_t, size_t, const float *, const float *, size_t, const float *, size_t,
                  const float *, float *, size_t);
int cuMemAlloc_v2(unsigned long long *, size_t), cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);

static int n_failed;
static void expect(const char *what, int got, int wanted)
{
    if (got != wanted) {
        printf("FAILED: %s is %d, not %d\n", what, got, wanted);
        n_failed++;
    }
}

/* cuBLASXt: C = A·B + C, with A on the host or the device, and B and C on the host. */
static void several_devices(void)
{
    handle xt;
    float a[] = {1, 2, 3, 4}, b[] = {5, 6, -1, 7, 8}, c[] = {1, 1, -1, -1, 1, 1, -1}, one = 1;
    unsigned long long on_device;
    int device = 0;
    expect("cublasXtCreate", cublasXtCreate(&xt), 0);
    expect("cublasXtDeviceSelect", cublasXtDeviceSelect(xt, 1, &device), 0);
    expect("cublasXtSgemm", cublasXtSgemm(xt, 0, 0, 2, 2, 2, &one, a, 2, b, 3, &one, c, 4), 0);
    expect("cuMemAlloc", cuMemAlloc_v2(&on_device, sizeof a), 0);
    expect("cuMemcpyHtoD", cuMemcpyHtoD_v2(on_device, a, sizeof a), 0);
    const float *there = (const float *)on_device;
    expect("a matrix of the device", cublasXtSgemm(xt, 0, 0, 2, 2, 2, &one, there, 2, b, 3, &one, c, 4), 0);
    const float wanted[] = {47, 69, -1, -1, 63, 93, -1};
    for (int i = 0; i < 7; i++)
        expect("an element of C", (int)c[i], (int)wanted[i]);
    expect("cublasXtDestroy", cublasXtDestroy(xt), 0);
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
    several_devices();
    puts(n_failed ? "FAILED" : "PASSED");
    return n_failed != 0;
}
