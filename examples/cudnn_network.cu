// cuDNN, 8 or 9: a small network on an image that a kernel draws: convolution with bias and ReLU, pooling, softmax, beside its definition
// on the host; its gradients beside differences; the same again in a captured graph.
#include "example.h"

#include <cmath>
#include <cudnn.h>

static void check(cudnnStatus_t status, const char *call, const char *file, int line)
{
    if (status != CUDNN_STATUS_SUCCESS)
        fail("%s:%d: %s: %d %s", file, line, call, static_cast<int>(status), cudnnGetErrorString(status));
}

static const int images = 2, channels = 3, side = 12, filters = 4, window = 3, pooled = side / 2;

KERNEL draw(float *image)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < images * channels * side * side)
        image[i] = static_cast<float>((i * 37 + 11) % 101) / 50.0f - 1.0f;
}

template <typename T>
static T *on_device(const std::vector<T> &values)
{
    T *device;
    CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

static std::vector<float> fetched(const float *device, size_t count)
{
    std::vector<float> values(count);
    CHECK(cudaMemcpy(values.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
}

static void expect_near(const char *what, const std::vector<float> &got, const std::vector<double> &expected, double bound)
{
    for (size_t i = 0; i < expected.size(); i++)
        if (!(std::fabs(got[i] - expected[i]) <= bound))
            fail("%s: [%zu] is %.9g, expected %.9g", what, i, got[i], expected[i]);
}

// The convolution's result before its activation, by its definition.
static std::vector<double> convolved(const std::vector<float> &x, const std::vector<float> &w, const std::vector<float> &bias)
{
    std::vector<double> y;
    for (int n = 0; n < images; n++)
        for (int k = 0; k < filters; k++)
            for (int h = 0; h < side; h++)
                for (int v = 0; v < side; v++) {
                    double sum = bias[k];
                    for (int c = 0; c < channels; c++)
                        for (int i = 0; i < window; i++)
                            for (int j = 0; j < window; j++) {
                                int row = h + i - 1, column = v + j - 1;
                                if (row >= 0 && row < side && column >= 0 && column < side)
                                    sum += double(x[((n * channels + c) * side + row) * side + column])
                                           * w[((k * channels + c) * window + i) * window + j];
                            }
                    y.push_back(sum);
                }
    return y;
}

int main()
{
    const size_t x_count = images * channels * side * side, y_count = images * filters * side * side;
    const size_t w_count = filters * channels * window * window, p_count = images * filters * pooled * pooled;
    std::vector<float> w_host(w_count), bias_host(filters);
    for (size_t i = 0; i < w_count; i++)
        w_host[i] = static_cast<float>((i * 29 + 5) % 23) / 23.0f - 0.5f;
    for (int k = 0; k < filters; k++)
        bias_host[k] = 0.1f * (k + 1);

    float *x, *y, *p, *s, *dx, *dw;
    CHECK(cudaMalloc(&x, x_count * sizeof(float)));
    CHECK(cudaMalloc(&y, y_count * sizeof(float)));
    CHECK(cudaMalloc(&p, p_count * sizeof(float)));
    CHECK(cudaMalloc(&s, p_count * sizeof(float)));
    CHECK(cudaMalloc(&dx, x_count * sizeof(float)));
    CHECK(cudaMalloc(&dw, w_count * sizeof(float)));
    float *w = on_device(w_host), *bias = on_device(bias_host);

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudnnHandle_t handle;
    CHECK(cudnnCreate(&handle));
    CHECK(cudnnSetStream(handle, stream));
    if (cudnnGetVersion() / (CUDNN_MAJOR == 8 ? 1000 : 10000) != CUDNN_MAJOR)
        fail("the library's version is %zu", cudnnGetVersion());

    cudnnTensorDescriptor_t x_is, y_is, p_is, bias_is;
    cudnnFilterDescriptor_t w_is;
    cudnnConvolutionDescriptor_t convolution;
    cudnnActivationDescriptor_t relu;
    cudnnPoolingDescriptor_t pooling;
    CHECK(cudnnCreateTensorDescriptor(&x_is));
    CHECK(cudnnCreateTensorDescriptor(&y_is));
    CHECK(cudnnCreateTensorDescriptor(&p_is));
    CHECK(cudnnCreateTensorDescriptor(&bias_is));
    CHECK(cudnnCreateFilterDescriptor(&w_is));
    CHECK(cudnnCreateConvolutionDescriptor(&convolution));
    CHECK(cudnnCreateActivationDescriptor(&relu));
    CHECK(cudnnCreatePoolingDescriptor(&pooling));
    CHECK(cudnnSetTensor4dDescriptor(x_is, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images, channels, side, side));
    CHECK(cudnnSetFilter4dDescriptor(w_is, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, filters, channels, window, window));
    CHECK(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    int n, c, h, v;
    CHECK(cudnnGetConvolution2dForwardOutputDim(convolution, x_is, w_is, &n, &c, &h, &v));
    if (n != images || c != filters || h != side || v != side)
        fail("the result is %d x %d x %d x %d", n, c, h, v);
    CHECK(cudnnSetTensor4dDescriptor(y_is, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, v));
    CHECK(cudnnSetTensor4dDescriptor(bias_is, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, filters, 1, 1));
    CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
    CHECK(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
    CHECK(cudnnSetTensor4dDescriptor(p_is, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, images, filters, pooled, pooled));

    int found;
    cudnnConvolutionFwdAlgoPerf_t best;
    CHECK(cudnnGetConvolutionForwardAlgorithm_v7(handle, x_is, w_is, convolution, y_is, 1, &found, &best));
    if (found != 1 || best.status != CUDNN_STATUS_SUCCESS)
        fail("no algorithm: %d", static_cast<int>(best.status));
    size_t bytes;
    CHECK(cudnnGetConvolutionForwardWorkspaceSize(handle, x_is, w_is, convolution, y_is, best.algo, &bytes));
    void *space;
    CHECK(cudaMalloc(&space, bytes + 1));

    const float one = 1, zero = 0;
    auto forward = [&] {
        LAUNCH(draw, (x_count + 127) / 128, 128, 0, stream)(x);
        CHECK(cudnnConvolutionBiasActivationForward(handle, &one, x_is, x, w_is, w, convolution, best.algo, space, bytes, &zero, y_is, y,
                                                    bias_is, bias, relu, y_is, y));
        CHECK(cudnnPoolingForward(handle, pooling, &one, y_is, y, &zero, p_is, p));
        CHECK(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, p_is, p, &zero, p_is, s));
    };
    auto verify = [&](const char *what) {
        std::vector<float> x_host = fetched(x, x_count);
        std::vector<double> exact = convolved(x_host, w_host, bias_host), largest(p_count), softmax(p_count);
        for (double &value : exact)
            value = std::fmax(value, 0.0);
        expect_near(what, fetched(y, y_count), exact, 1e-5);
        for (size_t i = 0; i < p_count; i++) {
            size_t image = i / (pooled * pooled), row = i / pooled % pooled, column = i % pooled;
            const double *at = &exact[(image * side + 2 * row) * side + 2 * column];
            largest[i] = std::fmax(std::fmax(at[0], at[1]), std::fmax(at[side], at[side + 1]));
        }
        expect_near(what, fetched(p, p_count), largest, 1e-5);
        for (size_t i = 0; i < p_count; i++) {
            const size_t plane = pooled * pooled, image = i / (filters * plane), place = i % plane;
            double sum = 0;
            for (int k = 0; k < filters; k++)
                sum += std::exp(largest[(image * filters + k) * plane + place]);
            softmax[i] = std::exp(largest[i]) / sum;
        }
        expect_near(what, fetched(s, p_count), softmax, 1e-5);
    };
    forward();
    CHECK(cudaStreamSynchronize(stream));
    verify("the network");

    // Captured, and run on memory that was cleared.
    cudaGraph_t graph;
    cudaGraphExec_t run;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    forward();
    CHECK(cudaStreamEndCapture(stream, &graph));
#if CUDART_VERSION >= 12000
    CHECK(cudaGraphInstantiate(&run, graph, 0));
#else
    CHECK(cudaGraphInstantiate(&run, graph, nullptr, nullptr, 0));
#endif
    CHECK(cudaMemsetAsync(y, 0, y_count * sizeof(float), stream));
    CHECK(cudaMemsetAsync(s, 0, p_count * sizeof(float), stream));
    CHECK(cudaGraphLaunch(run, stream));
    CHECK(cudaStreamSynchronize(stream));
    verify("the network's graph");
    CHECK(cudaGraphExecDestroy(run));
    CHECK(cudaGraphDestroy(graph));

    // The convolution is linear: <y, A x> is <A' y, x>, and <dw, w> is that too.
    CHECK(cudnnConvolutionForward(handle, &one, x_is, x, w_is, w, convolution, best.algo, space, bytes, &zero, y_is, y));
    CHECK(cudnnConvolutionBackwardData(handle, &one, w_is, w, y_is, y, convolution, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, nullptr, 0, &zero,
                                       x_is, dx));
    CHECK(cudnnConvolutionBackwardFilter(handle, &one, x_is, x, y_is, y, convolution, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, nullptr, 0,
                                         &zero, w_is, dw));
    CHECK(cudaStreamSynchronize(stream));
    auto product = [](const std::vector<float> &a, const std::vector<float> &b) {
        double sum = 0;
        for (size_t i = 0; i < a.size(); i++)
            sum += double(a[i]) * b[i];
        return sum;
    };
    std::vector<float> y_host = fetched(y, y_count);
    const double square = product(y_host, y_host), by_data = product(fetched(dx, x_count), fetched(x, x_count));
    const double by_filter = product(fetched(dw, w_count), w_host);
    if (std::fabs(by_data - square) > 1e-4 * square || std::fabs(by_filter - square) > 1e-4 * square)
        fail("gradients: %.9g and %.9g, expected %.9g", by_data, by_filter, square);

    if (cudnnSetTensor4dDescriptor(x_is, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 0, 1, 1, 1) != CUDNN_STATUS_BAD_PARAM)
        fail("a tensor without elements was taken");

    CHECK(cudnnDestroyPoolingDescriptor(pooling));
    CHECK(cudnnDestroyActivationDescriptor(relu));
    CHECK(cudnnDestroyConvolutionDescriptor(convolution));
    CHECK(cudnnDestroyFilterDescriptor(w_is));
    for (cudnnTensorDescriptor_t tensor : {x_is, y_is, p_is, bias_is})
        CHECK(cudnnDestroyTensorDescriptor(tensor));
    CHECK(cudnnDestroy(handle));
    for (void *memory : std::initializer_list<void *>{x, y, p, s, dx, dw, w, bias, space})
        CHECK(cudaFree(memory));
    CHECK(cudaStreamDestroy(stream));
    std::printf("cudnn_network: convolution, bias, ReLU, pooling, softmax, a graph, gradients, a refusal\n");
    return passed();
}
