/* A MIOpen that writes down its calls, and makes plain convolutions and sums in the host's memory. Signatures are those of miopen.h of ROCm 6,
   declared here so that it is not needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int note(const char *name, long a, long b, long c)
{
    FILE *log = fopen(getenv("MIOPEN_LOG"), "a");
    fprintf(log, "%s %ld %ld %ld\n", name, a, b, c);
    fclose(log);
    return 0;
}

struct tensor {
    int type, sizes[5];
};
struct convolution {
    int padding[3], stride[3], dilation[3];
};
struct perf {
    int algorithm;
    float time;
    size_t memory;
};

int miopenCreate(void **handle)
{
    *handle = (void *)5;
    return note("miopenCreate", 0, 0, 0);
}

int miopenDestroy(void *handle)
{
    return note("miopenDestroy", (long)handle, 0, 0);
}

int miopenSetStream(void *handle, void *stream)
{
    return note("miopenSetStream", (long)handle, stream != 0, 0);
}

int miopenCreateTensorDescriptor(struct tensor **tensor)
{
    *tensor = calloc(1, sizeof **tensor);
    return 0;
}

int miopenSetTensorDescriptor(struct tensor *tensor, int type, int count, const int *sizes, const int *strides)
{
    tensor->type = type;
    memcpy(tensor->sizes, sizes, count * sizeof *sizes);
    return 0;
}

int miopenDestroyTensorDescriptor(struct tensor *tensor)
{
    free(tensor);
    return 0;
}

int miopenCreateConvolutionDescriptor(struct convolution **convolution)
{
    *convolution = calloc(1, sizeof **convolution);
    return 0;
}

int miopenInitConvolutionNdDescriptor(struct convolution *convolution, int count, const int *padding, const int *stride, const int *dilation,
                                      int mode)
{
    memcpy(convolution->padding, padding, count * sizeof *padding);
    memcpy(convolution->stride, stride, count * sizeof *stride);
    memcpy(convolution->dilation, dilation, count * sizeof *dilation);
    return note("miopenInitConvolutionNdDescriptor", count, dilation[0], mode);
}

int miopenSetConvolutionAttribute(struct convolution *convolution, int attribute, int value)
{
    return note("miopenSetConvolutionAttribute", attribute, value, 0);
}

int miopenDestroyConvolutionDescriptor(struct convolution *convolution)
{
    free(convolution);
    return 0;
}

/* Answers miopenStatusNotImplemented for a dilation. */
int miopenConvolutionForwardGetWorkSpaceSize(void *handle, struct tensor *w, struct tensor *x, struct convolution *convolution,
                                             struct tensor *y, size_t *bytes)
{
    *bytes = 640;
    note("miopenConvolutionForwardGetWorkSpaceSize", w->sizes[2], x->sizes[2], y->sizes[2]);
    return convolution->dilation[0] == 1 ? 0 : 6;
}

int miopenFindConvolutionForwardAlgorithm(void *handle, struct tensor *x_is, const float *x, struct tensor *w_is, const float *w,
                                          struct convolution *convolution, struct tensor *y_is, float *y, int requested, int *returned,
                                          struct perf *found, void *area, size_t bytes, _Bool exhaustive)
{
    *returned = 1;
    *found = (struct perf){3, 2.5, 320};
    return note("miopenFindConvolutionForwardAlgorithm", requested, bytes, area != 0);
}

/* One image of one channel. */
int miopenConvolutionForward(void *handle, const float *alpha, struct tensor *x_is, const float *x, struct tensor *w_is, const float *w,
                             struct convolution *convolution, int algorithm, const float *beta, struct tensor *y_is, float *y, void *area,
                             size_t bytes)
{
    for (int row = 0; row < y_is->sizes[2]; row++)
        for (int column = 0; column < y_is->sizes[3]; column++) {
            float sum = 0;
            for (int r = 0; r < w_is->sizes[2]; r++)
                for (int c = 0; c < w_is->sizes[3]; c++)
                    sum += w[r * w_is->sizes[3] + c] * x[(row + r) * x_is->sizes[3] + column + c];
            y[row * y_is->sizes[3] + column] = *alpha * sum;
        }
    return note("miopenConvolutionForward", algorithm, bytes, area != 0);
}

int miopenCreateActivationDescriptor(void **activation)
{
    *activation = (void *)6;
    return 0;
}

int miopenSetActivationDescriptor(void *activation, int mode, double alpha, double beta, double gamma)
{
    return note("miopenSetActivationDescriptor", mode, alpha, beta);
}

int miopenDestroyActivationDescriptor(void *activation)
{
    return 0;
}

/* Answers miopenStatusAllocFailed. */
int miopenActivationForward(void *handle, void *activation, const float *alpha, struct tensor *x_is, const float *x, const float *beta,
                            struct tensor *y_is, float *y)
{
    note("miopenActivationForward", (long)activation, x_is->sizes[0], x_is->sizes[1]);
    return 4;
}

int miopenCreatePoolingDescriptor(void **pooling)
{
    *pooling = (void *)7;
    return 0;
}

int miopenSetNdPoolingDescriptor(void *pooling, int mode, int count, const int *window, const int *padding, const int *stride)
{
    return note("miopenSetNdPoolingDescriptor", mode, window[0], stride[0]);
}

int miopenSetPoolingIndexType(void *pooling, int type)
{
    return note("miopenSetPoolingIndexType", type, 0, 0);
}

int miopenSetPoolingWorkSpaceIndexMode(void *pooling, int mode)
{
    return note("miopenSetPoolingWorkSpaceIndexMode", mode, 0, 0);
}

int miopenDestroyPoolingDescriptor(void *pooling)
{
    return 0;
}

int miopenPoolingGetWorkSpaceSizeV2(void *pooling, struct tensor *y, size_t *bytes)
{
    *bytes = 64;
    return note("miopenPoolingGetWorkSpaceSizeV2", (long)pooling, y->sizes[2], 0);
}

/* Leaves a number in the work area and one in the result. */
int miopenPoolingForward(void *handle, void *pooling, const float *alpha, struct tensor *x_is, const float *x, const float *beta,
                         struct tensor *y_is, float *y, _Bool backward, float *area, size_t bytes)
{
    y[0] = 9;
    area[0] = 4;
    return note("miopenPoolingForward", backward, bytes, x[0]);
}

/* Gives back the number. */
int miopenPoolingBackward(void *handle, void *pooling, const float *alpha, struct tensor *y_is, const float *y, struct tensor *dy_is,
                          const float *dy, struct tensor *x_is, const float *x, const float *beta, struct tensor *dx_is, float *dx,
                          const float *area)
{
    dx[0] = 10 * area[0] + dy[0];
    return note("miopenPoolingBackward", y_is->sizes[2], dx_is->sizes[2], y[0]);
}

int miopenCreateReduceTensorDescriptor(void **reduction)
{
    *reduction = (void *)8;
    return 0;
}

int miopenSetReduceTensorDescriptor(void *reduction, int op, int computed, int nan, int indices, int type)
{
    return note("miopenSetReduceTensorDescriptor", op, computed, nan);
}

int miopenDestroyReduceTensorDescriptor(void *reduction)
{
    return 0;
}

int miopenGetReductionWorkspaceSize(void *handle, void *reduction, struct tensor *a, struct tensor *c, size_t *bytes)
{
    *bytes = 16;
    return note("miopenGetReductionWorkspaceSize", (long)reduction, a->sizes[3], c->sizes[3]);
}

/* The sum of one image of one channel, by way of the work area. */
int miopenReduceTensor(void *handle, void *reduction, void *indices, size_t indices_bytes, float *area, size_t bytes, const float *alpha,
                       struct tensor *a_is, const float *a, const float *beta, struct tensor *c_is, float *c)
{
    *area = 0;
    for (int i = 0; i < a_is->sizes[2] * a_is->sizes[3]; i++)
        *area += a[i];
    *c = *alpha * *area;
    return note("miopenReduceTensor", bytes, *alpha, *beta);
}
