// cuSOLVER: the Laplacian of a grid, which a kernel writes, factored and solved by LU, by Cholesky (in a captured graph) and by QR; its
// eigenvalues, which are known, by both methods; singular values of a part of it; a singular matrix's info.
#include "example.h"

#include <cmath>
#include <cusolverDn.h>

static void check(cusolverStatus_t status, const char *call, const char *file, int line)
{
    if (status != CUSOLVER_STATUS_SUCCESS)
        fail("%s:%d: %s: %d", file, line, call, static_cast<int>(status));
}

static const int side = 9, n = side * side, ld = n + 3;

// 4 on the diagonal, -1 for each neighbour.
KERNEL laplacian(double *a)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= n)
        return;
    int x = column % side, y = column / side;
    for (int row = 0; row < n; row++) {
        int distance = abs(row % side - x) + abs(row / side - y);
        a[row + column * ld] = distance == 0 ? 4 : distance == 1 ? -1 : 0;
    }
}

// The same on the host, by its definition.
static std::vector<double> times(const std::vector<double> &v)
{
    std::vector<double> result(n);
    for (int row = 0; row < n; row++) {
        int x = row % side, y = row / side;
        result[row] = 4 * v[row] - (y > 0 ? v[row - side] : 0) - (x > 0 ? v[row - 1] : 0)
                      - (x < side - 1 ? v[row + 1] : 0) - (y < side - 1 ? v[row + side] : 0);
    }
    return result;
}

template <typename T>
static T *on_device(const std::vector<T> &values)
{
    T *device;
    CHECK(cudaMalloc(&device, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(device, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

template <typename T>
static std::vector<T> fetched(const T *device, size_t count)
{
    std::vector<T> values(count);
    CHECK(cudaMemcpy(values.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

static void expect_near(const char *what, const std::vector<double> &got, const std::vector<double> &expected)
{
    for (size_t i = 0; i < expected.size(); i++)
        if (!(std::fabs(got[i] - expected[i]) < 1e-11))
            fail("%s: element %zu is %.17g, expected %.17g", what, i, got[i], expected[i]);
}

static void expect_info(const char *what, const int *info, int expected)
{
    int found = fetched(info, 1)[0];
    if (found != expected)
        fail("%s: info %d, expected %d", what, found, expected);
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cusolverDnHandle_t handle;
    CHECK(cusolverDnCreate(&handle));
    CHECK(cusolverDnSetStream(handle, stream));

    std::vector<double> x(n);
    for (int i = 0; i < n; i++)
        x[i] = i * 7 % 11 - 5;
    const std::vector<double> b = times(x);
    double *a = on_device(std::vector<double>(ld * n)), *right = on_device(b);
    int *pivots = on_device(std::vector<int>(n)), *info = on_device(std::vector<int>(1, -1));
    const int blocks = (n + 63) / 64;
    int room = 0;

    // LU: of the transposed matrix, which is the same one.
    CHECK(cusolverDnDgetrf_bufferSize(handle, n, n, a, ld, &room));
    double *area = on_device(std::vector<double>(room + 1));
    LAUNCH(laplacian, blocks, 64, 0, stream)(a);
    CHECK(cusolverDnDgetrf(handle, n, n, a, ld, area, pivots, info));
    CHECK(cusolverDnDgetrs(handle, CUBLAS_OP_T, n, 1, a, ld, pivots, right, n, info));
    CHECK(cudaStreamSynchronize(stream));
    expect_info("getrs", info, 0);
    expect_near("getrs", fetched(right, n), x);

    // Cholesky in a graph: what a kernel writes is factored and solved, twice.
    CHECK(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, n, a, ld, &room));
    double *other = on_device(std::vector<double>(room + 1));
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    LAUNCH(laplacian, blocks, 64, 0, stream)(a);
    CHECK(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, n, a, ld, other, room, info));
    CHECK(cusolverDnDpotrs(handle, CUBLAS_FILL_MODE_LOWER, n, 1, a, ld, right, n, info));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&ready, graph, 0));
    const std::vector<double> twice = times(b);
    CHECK(cudaMemcpyAsync(right, twice.data(), n * sizeof(double), cudaMemcpyHostToDevice, stream));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect_near("potrs in a graph", fetched(right, n), x);
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));

    // QR: R's diagonal has the determinant's size, which the eigenvalues give too.
    std::vector<double> known;
    double logarithm = 0;
    for (int i = 1; i <= side; i++)
        for (int j = 1; j <= side; j++) {
            const double pi = 3.14159265358979323846;
            known.push_back(4 - 2 * std::cos(i * pi / (side + 1)) - 2 * std::cos(j * pi / (side + 1)));
            logarithm += std::log(known.back());
        }
    for (size_t i = 1; i < known.size(); i++)
        for (size_t j = i; j > 0 && known[j] < known[j - 1]; j--)
            std::swap(known[j], known[j - 1]);
    double *tau = on_device(std::vector<double>(n));
    CHECK(cusolverDnDgeqrf_bufferSize(handle, n, n, a, ld, &room));
    double *third = on_device(std::vector<double>(room + 1));
    LAUNCH(laplacian, blocks, 64, 0, stream)(a);
    CHECK(cusolverDnDgeqrf(handle, n, n, a, ld, tau, third, room, info));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<double> qr = fetched(a, size_t(ld) * n);
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += std::log(std::fabs(qr[i + i * ld]));
    if (!(std::fabs(sum - logarithm) < 1e-11 * n))
        fail("R's determinant is e^%.17g, expected e^%.17g", sum, logarithm);

    // Eigenvalues by divide and conquer, with their vectors, and by Jacobi's method.
    double *w = on_device(std::vector<double>(n));
    const cusolverEigMode_t with = CUSOLVER_EIG_MODE_VECTOR, without = CUSOLVER_EIG_MODE_NOVECTOR;
    CHECK(cusolverDnDsyevd_bufferSize(handle, with, CUBLAS_FILL_MODE_UPPER, n, a, ld, w, &room));
    double *fourth = on_device(std::vector<double>(room + 1));
    LAUNCH(laplacian, blocks, 64, 0, stream)(a);
    CHECK(cusolverDnDsyevd(handle, with, CUBLAS_FILL_MODE_UPPER, n, a, ld, w, fourth, room, info));
    CHECK(cudaStreamSynchronize(stream));
    expect_info("syevd", info, 0);
    expect_near("syevd", fetched(w, n), known);
    const std::vector<double> vectors = fetched(a, size_t(ld) * n);
    for (int j = 0; j < n; j++) {
        const std::vector<double> v(vectors.begin() + j * ld, vectors.begin() + j * ld + n), av = times(v);
        double length = 0;
        for (int i = 0; i < n; i++) {
            length += v[i] * v[i];
            if (!(std::fabs(av[i] - known[j] * v[i]) < 1e-12))
                fail("eigenvector %d: element %d is off by %g", j, i, av[i] - known[j] * v[i]);
        }
        if (!(std::fabs(length - 1) < 1e-12))
            fail("eigenvector %d has the length %.17g", j, std::sqrt(length));
    }
    syevjInfo_t parameters;
    CHECK(cusolverDnCreateSyevjInfo(&parameters));
    CHECK(cusolverDnXsyevjSetTolerance(parameters, 1e-14));
    CHECK(cusolverDnDsyevj_bufferSize(handle, without, CUBLAS_FILL_MODE_LOWER, n, a, ld, w, &room, parameters));
    double *fifth = on_device(std::vector<double>(room + 1));
    LAUNCH(laplacian, blocks, 64, 0, stream)(a);
    CHECK(cusolverDnDsyevj(handle, without, CUBLAS_FILL_MODE_LOWER, n, a, ld, w, fifth, room, info, parameters));
    int sweeps = 0;
    CHECK(cusolverDnXsyevjGetSweeps(handle, parameters, &sweeps));
    expect_near("syevj", fetched(w, n), known);
    if (sweeps < 1 || sweeps > 100)
        fail("syevj made %d sweeps", sweeps);
    CHECK(cusolverDnDestroySyevjInfo(parameters));

    // Singular values of a matrix that is its own eigenvalues' sizes, through the 64-bit API.
    double *s = on_device(std::vector<double>(n));
    size_t on_gpu = 0, on_host = 0;
    CHECK(cusolverDnXgesvd_bufferSize(handle, nullptr, 'N', 'N', n, n, CUDA_R_64F, a, ld, CUDA_R_64F, s, CUDA_R_64F, nullptr, 1,
                                      CUDA_R_64F, nullptr, 1, CUDA_R_64F, &on_gpu, &on_host));
    char *bytes = on_device(std::vector<char>(on_gpu + 1));
    std::vector<char> host(on_host + 1);
    LAUNCH(laplacian, blocks, 64, 0, stream)(a);
    CHECK(cusolverDnXgesvd(handle, nullptr, 'N', 'N', n, n, CUDA_R_64F, a, ld, CUDA_R_64F, s, CUDA_R_64F, nullptr, 1, CUDA_R_64F,
                           nullptr, 1, CUDA_R_64F, bytes, on_gpu, host.data(), on_host, info));
    CHECK(cudaStreamSynchronize(stream));
    std::vector<double> falling(known.rbegin(), known.rend());
    expect_near("Xgesvd", fetched(s, n), falling);

    // A column of zeros, and a diagonal that is not positive.
    CHECK(cudaMemsetAsync(a, 0, size_t(ld) * n * sizeof(double), stream));
    CHECK(cusolverDnDgetrf(handle, n, n, a, ld, area, pivots, info));
    CHECK(cudaStreamSynchronize(stream));
    expect_info("getrf of zeros", info, 1);
    CHECK(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_UPPER, n, a, ld, other, n, info));
    CHECK(cudaStreamSynchronize(stream));
    expect_info("potrf of zeros", info, 1);
    if (cusolverDnDgetrf(handle, n, n, a, n - 1, area, pivots, info) != CUSOLVER_STATUS_INVALID_VALUE)
        fail("a leading dimension that is too small was not refused");

    CHECK(cusolverDnDestroy(handle));
    CHECK(cudaStreamDestroy(stream));
    std::printf("cusolver_systems: LU, Cholesky, QR, eigenvalues, singular values, a graph, info\n");
    return passed();
}
