/* cuDNN on a device that is not the CPU's: says what its calls answer, in a stream and in a capture, by MIOpen and by our own code. Types
   are those of cuda.h and cudnn.h, declared here so that they are not needed. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
int cuStreamCreate(void **, unsigned);
int cuStreamSynchronize(void *);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);

struct perf {
    int algo, status;
    float time;
    size_t memory;
    int determinism, math, reserved[3];
};

int cudnnCreate(void **);
int cudnnDestroy(void *);
int cudnnSetStream(void *, void *);
int cudnnCreateTensorDescriptor(void **);
int cudnnSetTensor4dDescriptor(void *, int, int, int, int, int, int);
int cudnnCreateFilterDescriptor(void **);
int cudnnSetFilter4dDescriptor(void *, int, int, int, int, int, int);
int cudnnCreateConvolutionDescriptor(void **);
int cudnnSetConvolution2dDescriptor(void *, int, int, int, int, int, int, int, int);
int cudnnGetConvolutionForwardWorkspaceSize(void *, void *, void *, void *, void *, int, size_t *);
int cudnnFindConvolutionForwardAlgorithm(void *, void *, void *, void *, void *, int, int *, struct perf *);
int cudnnConvolutionForward(void *, const float *, void *, const float *, void *, const float *, void *, int, void *, size_t, const float *,
                            void *, float *);
int cudnnCreateActivationDescriptor(void **);
int cudnnSetActivationDescriptor(void *, int, int, double);
int cudnnActivationForward(void *, void *, const float *, void *, const float *, const float *, void *, float *);
int cudnnCreatePoolingDescriptor(void **);
int cudnnSetPooling2dDescriptor(void *, int, int, int, int, int, int, int, int);
int cudnnPoolingBackward(void *, void *, const float *, void *, const float *, void *, const float *, void *, const float *, const float *,
                         void *, float *);

static void check(int code, const char *what)
{
    if (code) {
        printf("FAILED %s: %d\n", what, code);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

struct data {
    float x[9], w[4], y[4], dy[4], dx[9], area[160];
};

static void show(const char *what, const float *values, int count, struct data *there, struct data *got)
{
    CHECK(cuMemcpyDtoH_v2(got, (unsigned long long)there, sizeof *got));
    printf("%s:", what);
    for (int i = 0; i < count; i++)
        printf(" %g", values[i]);
    puts("");
}

int main(void)
{
    struct data data = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 4}, {0}, {2, 2, 2, 2}}, got;
    void *context, *stream, *handle, *x, *y, *one, *w, *plain, *wide, *activation, *pooling, *graph;
    unsigned long long at;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&at, sizeof data));
    CHECK(cuMemcpyHtoD_v2(at, &data, sizeof data));
    CHECK(cuStreamCreate(&stream, 1));
    struct data *there = (struct data *)at;
    CHECK(cudnnCreate(&handle));
    CHECK(cudnnCreateTensorDescriptor(&x));
    CHECK(cudnnSetTensor4dDescriptor(x, 0, 0, 1, 1, 3, 3));
    CHECK(cudnnCreateTensorDescriptor(&y));
    CHECK(cudnnSetTensor4dDescriptor(y, 0, 0, 1, 1, 2, 2));
    CHECK(cudnnCreateTensorDescriptor(&one));
    CHECK(cudnnSetTensor4dDescriptor(one, 0, 0, 1, 1, 1, 1));
    CHECK(cudnnCreateFilterDescriptor(&w));
    CHECK(cudnnSetFilter4dDescriptor(w, 0, 0, 1, 1, 2, 2));
    CHECK(cudnnCreateConvolutionDescriptor(&plain));
    CHECK(cudnnSetConvolution2dDescriptor(plain, 0, 0, 1, 1, 1, 1, 1, 0));
    CHECK(cudnnCreateConvolutionDescriptor(&wide));
    CHECK(cudnnSetConvolution2dDescriptor(wide, 0, 0, 1, 1, 2, 2, 1, 0));

    float alpha = 1, beta = 0;
    size_t bytes = 7;
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, plain, y, 1, &bytes));
    printf("work area: %zu\n", bytes);
    CHECK(cudnnSetStream(handle, stream));
    for (int i = 0; i < 2; i++)
        CHECK(cudnnConvolutionForward(handle, &alpha, x, there->x, w, there->w, plain, 1, there->area, 640, &beta, y, there->y));
    show("MIOpen's", got.y, 4, there, &got);
    /* What MIOpen has no factors for is added by our own code. */
    CHECK(cudnnConvolutionForward(handle, &alpha, x, there->x, w, there->w, plain, 1, there->area, 640, &alpha, y, there->y));
    CHECK(cuStreamSynchronize(stream));
    show("ours", got.y, 4, there, &got);
    /* What it refuses is done. */
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, wide, one, 1, &bytes));
    CHECK(cudnnConvolutionForward(handle, &alpha, x, there->x, w, there->w, wide, 1, there->area, 640, &beta, one, there->y));
    CHECK(cuStreamSynchronize(stream));
    show("ours", got.y, 1, there, &got);
    printf("its work area: %zu\n", bytes);
    struct perf perfs[2];
    int count = 0;
    CHECK(cudnnFindConvolutionForwardAlgorithm(handle, x, w, plain, y, 2, &count, perfs));
    printf("found: %d, the first %d in %g ms with %zu bytes\n", count, perfs[0].algo, perfs[0].time, perfs[0].memory);

    CHECK(cudnnCreateActivationDescriptor(&activation));
    CHECK(cudnnSetActivationDescriptor(activation, 2, 0, 0));
    printf("no memory: %d\n", cudnnActivationForward(handle, activation, &alpha, x, there->x, &beta, x, there->dx));
    CHECK(cudnnCreatePoolingDescriptor(&pooling));
    CHECK(cudnnSetPooling2dDescriptor(pooling, 0, 0, 2, 2, 0, 0, 1, 1));
    CHECK(cudnnPoolingBackward(handle, pooling, &alpha, y, there->y, y, there->dy, x, there->x, &beta, x, there->dx));
    show("by what its way forward left", got.dx, 1, there, &got);

    CHECK(cuStreamBeginCapture_v2(stream, 0));
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, plain, y, 1, &bytes));
    printf("captured: %d\n",
           cudnnConvolutionForward(handle, &alpha, x, there->x, w, there->w, plain, 1, there->area, 640, &beta, y, there->y));
    printf("ended: %d\n", cuStreamEndCapture(stream, &graph));
    CHECK(cudnnDestroy(handle));
    puts("PASSED");
    return 0;
}
