/* cuDNN on a device that is not the CPU's: says what its calls and a graph's plan answer, in a stream and in a capture, by MIOpen and by our
   own code. Types
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

int cudnnBackendCreateDescriptor(int, void **);
int cudnnBackendSetAttribute(void *, int, int, long long, const void *);
int cudnnBackendFinalize(void *);
int cudnnBackendExecute(void *, void *, void *);
int cudnnBackendPopulateCudaGraph(void *, void *, void *, void *);
int cuGraphCreate(void **, unsigned);

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

/* The types of attributes. */
enum { HANDLE = 0, DATA_TYPE = 1, BOOLEAN = 2, INT64 = 3, POINTER = 6, CONVOLUTION_MODE = 7, POINTWISE_MODE = 14, DESCRIPTOR = 15, REDUCTION = 18 };

static void *descriptor(int kind)
{
    void *descriptor;
    CHECK(cudnnBackendCreateDescriptor(kind, &descriptor));
    return descriptor;
}

static void *set(void *descriptor, int name, int type, long long count, const void *elements)
{
    CHECK(cudnnBackendSetAttribute(descriptor, name, type, count, elements));
    return descriptor;
}

static void *set_one(void *descriptor, int name, void *other)
{
    return set(descriptor, name, DESCRIPTOR, 1, &other);
}

static void *final(void *descriptor)
{
    CHECK(cudnnBackendFinalize(descriptor));
    return descriptor;
}

/* One image of one channel. */
static void *tensor(long long uid, long long size, char is_virtual)
{
    long long sizes[4] = {1, 1, size, size}, strides[4] = {size * size, size * size, size, 1};
    int type = 0;
    void *tensor = set(descriptor(17), 906, INT64, 1, &uid);
    set(tensor, 901, DATA_TYPE, 1, &type);
    set(tensor, 902, INT64, 4, sizes);
    set(tensor, 903, INT64, 4, strides);
    return final(set(tensor, 907, BOOLEAN, 1, &is_virtual));
}

/* The sum of all elements of a convolution times -1: the convolution and the sum are MIOpen's, what is between them is ours. */
static void *plan_of(void *handle)
{
    long long two = 2, none[2] = {0, 0}, ones[2] = {1, 1}, engine = 0;
    int mode = 1, negative = 16, sum = 0;
    void *x = tensor(1, 3, 0), *w = tensor(2, 2, 0), *made = tensor(3, 2, 1), *turned = tensor(4, 2, 1), *y = tensor(5, 1, 0), *nodes[3];
    void *by = set(descriptor(1), 101, CONVOLUTION_MODE, 1, &mode);
    set(by, 106, INT64, 1, &two);
    set(by, 105, INT64, 2, none);
    set(by, 104, INT64, 2, none);
    set(by, 103, INT64, 2, ones);
    set(by, 102, INT64, 2, ones);
    nodes[2] = set_one(descriptor(10), 702, final(by));
    set_one(set_one(nodes[2], 703, w), 704, x);
    final(set_one(nodes[2], 705, made));
    nodes[1] = set_one(descriptor(13), 750, final(set(descriptor(0), 0, POINTWISE_MODE, 1, &negative)));
    final(set_one(set_one(nodes[1], 751, made), 753, turned));
    nodes[0] = set_one(descriptor(22), 1612, final(set(descriptor(21), 1600, REDUCTION, 1, &sum)));
    final(set_one(set_one(nodes[0], 1610, turned), 1611, y));
    void *graph = final(set(set(descriptor(15), 800, HANDLE, 1, &handle), 801, DESCRIPTOR, 3, nodes));
    void *one = final(set(set_one(descriptor(2), 1300, graph), 1301, INT64, 1, &engine));
    return final(set_one(set(descriptor(5), 400, HANDLE, 1, &handle), 401, final(set_one(descriptor(3), 300, one))));
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

    long long uids[3] = {1, 2, 5};
    void *plan = plan_of(handle), *places[3] = {there->x, there->w, there->y};
    void *pack = final(set(set(descriptor(16), 1000, INT64, 3, uids), 1001, POINTER, 3, places));
    for (int i = 0; i < 2; i++)
        CHECK(cudnnBackendExecute(handle, plan, pack));
    CHECK(cuStreamSynchronize(stream));
    show("a graph's", got.y, 1, there, &got);
    CHECK(cuGraphCreate(&graph, 0));
    printf("a node: %d\n", cudnnBackendPopulateCudaGraph(handle, plan, pack, graph));

    CHECK(cuStreamBeginCapture_v2(stream, 0));
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, plain, y, 1, &bytes));
    printf("captured: %d\n",
           cudnnConvolutionForward(handle, &alpha, x, there->x, w, there->w, plain, 1, there->area, 640, &beta, y, there->y));
    printf("ended: %d\n", cuStreamEndCapture(stream, &graph));
    CHECK(cudnnDestroy(handle));
    puts("PASSED");
    return 0;
}
