// cuSPARSE: a matrix that a kernel writes, times a vector, a dense matrix and itself, in formats that are made of each other; a system with
// its lower triangle; a product in a captured graph. Its values are small integers, so that products are exact.
#include "example.h"

#include <cmath>
#include <cusparse.h>

static void check(cusparseStatus_t status, const char *call, const char *file, int line)
{
    if (status != CUSPARSE_STATUS_SUCCESS)
        fail("%s:%d: %s: %d %s", file, line, call, static_cast<int>(status), cusparseGetErrorString(status));
}

static const int side = 24, n = side * side;

// The Laplacian of a grid: 4 on the diagonal, -1 for each neighbour. A row has room for five entries; offsets are written by the host.
KERNEL laplacian(const int *offsets, int *columns, double *values)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n)
        return;
    int at = offsets[row], x = row % side, y = row / side;
    auto add = [&](bool is_there, int column, double value) {
        if (is_there) {
            columns[at] = column;
            values[at++] = value;
        }
    };
    add(y > 0, row - side, -1);
    add(x > 0, row - 1, -1);
    add(true, row, 4);
    add(x < side - 1, row + 1, -1);
    add(y < side - 1, row + side, -1);
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

static void *room(size_t bytes)
{
    void *device = nullptr;
    if (bytes > 0)
        CHECK(cudaMalloc(&device, bytes));
    return device;
}

int main()
{
    std::vector<int> offsets(n + 1);
    for (int row = 0; row < n; row++) {
        int x = row % side, y = row / side;
        offsets[row + 1] = offsets[row] + 1 + (y > 0) + (x > 0) + (x < side - 1) + (y < side - 1);
    }
    const int nnz = offsets[n];
    int *rows = on_device(offsets), *columns = on_device(std::vector<int>(nnz));
    double *values = on_device(std::vector<double>(nnz));
    LAUNCH(laplacian, (n + 127) / 128, 128)(rows, columns, values);

    std::vector<double> v(n);
    for (int i = 0; i < n; i++)
        v[i] = i * 7 % 11 - 5;
    const std::vector<double> once = times(v), twice = times(once);
    double *x = on_device(v), *y = on_device(std::vector<double>(n));

    cusparseHandle_t handle;
    CHECK(cusparseCreate(&handle));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaDeviceSynchronize());
    CHECK(cusparseSetStream(handle, stream));
    cusparseSpMatDescr_t a;
    CHECK(cusparseCreateCsr(&a, n, n, nnz, rows, columns, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    cusparseDnVecDescr_t vx, vy;
    CHECK(cusparseCreateDnVec(&vx, n, x, CUDA_R_64F));
    CHECK(cusparseCreateDnVec(&vy, n, y, CUDA_R_64F));
    const double one = 1, zero = 0;
    size_t bytes = 0;
    const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;

    // A vector, and the same again in a graph that is launched twice: A³x after y became x.
    CHECK(cusparseSpMV_bufferSize(handle, plain, &one, a, vx, &zero, vy, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
    void *area = room(bytes);
    CHECK(cusparseSpMV(handle, plain, &one, a, vx, &zero, vy, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, area));
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("A x", fetched(y, n), once);
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cusparseSpMV(handle, plain, &one, a, vy, &zero, vx, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, area));
    CHECK(cudaMemcpyAsync(y, x, n * sizeof(double), cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&ready, graph, 0));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("A A x in a graph", fetched(y, n), twice);
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("A A A x in a graph", fetched(y, n), times(twice));
    CHECK(cudaGraphExecDestroy(ready));
    CHECK(cudaGraphDestroy(graph));

    // A matrix by rows of three columns, x, A x and A A x.
    std::vector<double> three(3 * n), expected(3 * n);
    const std::vector<double> thrice = times(twice);
    for (int i = 0; i < n; i++) {
        three[3 * i] = v[i], three[3 * i + 1] = once[i], three[3 * i + 2] = twice[i];
        expected[3 * i] = once[i], expected[3 * i + 1] = twice[i], expected[3 * i + 2] = thrice[i];
    }
    double *b = on_device(three), *c = on_device(std::vector<double>(3 * n));
    cusparseDnMatDescr_t mb, mc;
    CHECK(cusparseCreateDnMat(&mb, n, 3, 3, b, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    CHECK(cusparseCreateDnMat(&mc, n, 3, 3, c, CUDA_R_64F, CUSPARSE_ORDER_ROW));
    CHECK(cusparseSpMM_bufferSize(handle, plain, plain, &one, a, mb, &zero, mc, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, &bytes));
    CHECK(cusparseSpMM(handle, plain, plain, &one, a, mb, &zero, mc, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, room(bytes)));
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("A B", fetched(c, 3 * n), expected);

    // The matrix times itself, whose size is known when it was computed.
    cusparseSpMatDescr_t square;
    int *square_rows = on_device(std::vector<int>(n + 1));
    CHECK(cusparseCreateCsr(&square, n, n, 0, square_rows, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                            CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
    cusparseSpGEMMDescr_t product;
    CHECK(cusparseSpGEMM_createDescr(&product));
    size_t first = 0, second = 0;
    CHECK(cusparseSpGEMM_workEstimation(handle, plain, plain, &one, a, a, &zero, square, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT,
                                        product, &first, nullptr));
    CHECK(cusparseSpGEMM_workEstimation(handle, plain, plain, &one, a, a, &zero, square, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT,
                                        product, &first, room(first)));
    CHECK(cusparseSpGEMM_compute(handle, plain, plain, &one, a, a, &zero, square, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, product,
                                 &second, nullptr));
    CHECK(cusparseSpGEMM_compute(handle, plain, plain, &one, a, a, &zero, square, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, product,
                                 &second, room(second)));
    int64_t square_n, square_m, square_nnz;
    CHECK(cusparseSpMatGetSize(square, &square_n, &square_m, &square_nnz));
    // Thirteen points are two steps or fewer away, without those outside of the grid.
    int expected_nnz = 0;
    for (int row = 0; row < n; row++)
        for (int other = 0; other < n; other++)
            expected_nnz += std::abs(row % side - other % side) + std::abs(row / side - other / side) <= 2;
    if (square_nnz != expected_nnz)
        fail("A A has %lld entries, expected %d", static_cast<long long>(square_nnz), expected_nnz);
    int *square_columns = on_device(std::vector<int>(square_nnz));
    double *square_values = on_device(std::vector<double>(square_nnz));
    CHECK(cusparseCsrSetPointers(square, square_rows, square_columns, square_values));
    CHECK(cusparseSpGEMM_copy(handle, plain, plain, &one, a, a, &zero, square, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, product));
    CHECK(cudaMemcpyAsync(x, v.data(), n * sizeof(double), cudaMemcpyHostToDevice, stream));
    CHECK(cusparseSpMV(handle, plain, &one, square, vx, &zero, vy, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, area));
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("(A A) x", fetched(y, n), twice);

    // To dense and back to coordinates; the product with those.
    double *dense = on_device(std::vector<double>(size_t(n) * n));
    cusparseDnMatDescr_t full;
    CHECK(cusparseCreateDnMat(&full, n, n, n, dense, CUDA_R_64F, CUSPARSE_ORDER_COL));
    CHECK(cusparseSparseToDense_bufferSize(handle, a, full, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, &bytes));
    CHECK(cusparseSparseToDense(handle, a, full, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, room(bytes)));
    cusparseSpMatDescr_t coordinates;
    CHECK(cusparseCreateCoo(&coordinates, n, n, 0, nullptr, nullptr, nullptr, CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ONE,
                            CUDA_R_64F));
    CHECK(cusparseDenseToSparse_bufferSize(handle, full, coordinates, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, &bytes));
    void *conversion = room(bytes);
    CHECK(cusparseDenseToSparse_analysis(handle, full, coordinates, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, conversion));
    int64_t found;
    CHECK(cusparseSpMatGetSize(coordinates, &square_n, &square_m, &found));
    if (found != nnz)
        fail("%lld entries of the dense matrix, expected %d", static_cast<long long>(found), nnz);
    int64_t *i = on_device(std::vector<int64_t>(nnz)), *j = on_device(std::vector<int64_t>(nnz));
    double *w = on_device(std::vector<double>(nnz));
    CHECK(cusparseCooSetPointers(coordinates, i, j, w));
    CHECK(cusparseDenseToSparse_convert(handle, full, coordinates, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, conversion));
    CHECK(cusparseSpMV(handle, CUSPARSE_OPERATION_TRANSPOSE, &one, coordinates, vx, &zero, vy, CUDA_R_64F,
                       CUSPARSE_SPMV_ALG_DEFAULT, area));
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("Aᵀ x by coordinates", fetched(y, n), once);

    // The lower triangle's system.
    cusparseFillMode_t lower = CUSPARSE_FILL_MODE_LOWER;
    CHECK(cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_FILL_MODE, &lower, sizeof lower));
    cusparseSpSVDescr_t solver;
    CHECK(cusparseSpSV_createDescr(&solver));
    CHECK(cusparseSpSV_bufferSize(handle, plain, &one, a, vx, vy, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver, &bytes));
    CHECK(cusparseSpSV_analysis(handle, plain, &one, a, vx, vy, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver, room(bytes)));
    CHECK(cusparseSpSV_solve(handle, plain, &one, a, vx, vy, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, solver));
    CHECK(cudaStreamSynchronize(stream));
    const std::vector<double> solution = fetched(y, n);
    for (int row = 0; row < n; row++) {
        double left = 4 * solution[row] - (row >= side ? solution[row - side] : 0) - (row % side > 0 ? solution[row - 1] : 0);
        if (!(std::fabs(left - v[row]) < 1e-13))
            fail("the triangle's row %d: %g, expected %g", row, left, v[row]);
    }
    CHECK(cusparseSpSV_destroyDescr(solver));

    CHECK(cusparseSpGEMM_destroyDescr(product));
    for (cusparseSpMatDescr_t matrix : {a, square, coordinates})
        CHECK(cusparseDestroySpMat(matrix));
    for (cusparseDnMatDescr_t matrix : {mb, mc, full})
        CHECK(cusparseDestroyDnMat(matrix));
    CHECK(cusparseDestroyDnVec(vx));
    CHECK(cusparseDestroyDnVec(vy));
    CHECK(cusparseDestroy(handle));
    std::printf("cusparse_products: a vector, a matrix, itself, a graph, coordinates, a triangle\n");
    return passed();
}
