// cuSOLVERMg: systems by LU and by Cholesky, an inverse, and eigenvalues of matrices whose columns lie in blocks on several devices, in all
// four types, with blocks that do not divide the columns, with fewer blocks than devices and with nothing at all. What is solved is
// measured as LAPACK's own tests do. With one device it stands for both, which cuSOLVERMg allows.
#define DISABLE_CUSOLVERMG_DEPRECATED
#include "example.h"

#include <cfloat>
#include <cmath>
#include <complex>
#include <cusolverMg.h>

static void check(cusolverStatus_t status, const char *call, const char *file, int line)
{
    if (status != CUSOLVER_STATUS_SUCCESS)
        fail("%s:%d: %s: %d", file, line, call, static_cast<int>(status));
}

static void expect_status(const char *what, cusolverStatus_t got, cusolverStatus_t expected)
{
    if (got != expected)
        fail("%s: %d, expected %d", what, static_cast<int>(got), static_cast<int>(expected));
}

template <typename T>
struct Of;
template <>
struct Of<float>
{
    typedef float Real;
    static const cudaDataType type = CUDA_R_32F, real = CUDA_R_32F;
    static float epsilon() { return FLT_EPSILON / 2; }
};
template <>
struct Of<double>
{
    typedef double Real;
    static const cudaDataType type = CUDA_R_64F, real = CUDA_R_64F;
    static double epsilon() { return DBL_EPSILON / 2; }
};
template <>
struct Of<std::complex<float>> : Of<float>
{
    static const cudaDataType type = CUDA_C_32F;
};
template <>
struct Of<std::complex<double>> : Of<double>
{
    static const cudaDataType type = CUDA_C_64F;
};

// Between -1 and 1.
static double drawn()
{
    static unsigned long long state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return static_cast<double>(state >> 11) / 4503599627370496.0 - 1;
}

static void draw(float &value) { value = static_cast<float>(drawn()); }
static void draw(double &value) { value = drawn(); }
template <typename R>
static void draw(std::complex<R> &value)
{
    R real = static_cast<R>(drawn());
    value = std::complex<R>(real, static_cast<R>(drawn()));
}

static float conjugate(float value) { return value; }
static double conjugate(double value) { return value; }
template <typename R>
static std::complex<R> conjugate(std::complex<R> value)
{
    return std::conj(value);
}

static double size_of_value(double value) { return std::abs(value); }
template <typename R>
static double size_of_value(std::complex<R> value)
{
    return std::abs(value);
}

// On the host, without gaps.
template <typename T>
struct Matrix
{
    int rows, columns;
    std::vector<T> values;

    Matrix(int rows, int columns) : rows(rows), columns(columns), values(static_cast<size_t>(rows) * columns) {}

    T &at(int row, int column) { return values[row + static_cast<size_t>(column) * rows]; }

    static Matrix of_drawn(int rows, int columns)
    {
        Matrix made(rows, columns);
        for (T &value : made.values)
            draw(value);
        return made;
    }

    Matrix times(Matrix &other)
    {
        Matrix made(rows, other.columns);
        for (int column = 0; column < other.columns; column++)
            for (int inner = 0; inner < columns; inner++)
                for (int row = 0; row < rows; row++)
                    made.at(row, column) += at(row, inner) * other.at(inner, column);
        return made;
    }

    Matrix adjoint()
    {
        Matrix made(columns, rows);
        for (int column = 0; column < columns; column++)
            for (int row = 0; row < rows; row++)
                made.at(column, row) = conjugate(at(row, column));
        return made;
    }

    // The largest sum of a column.
    double norm()
    {
        double largest = 0;
        for (int column = 0; column < columns; column++) {
            double sum = 0;
            for (int row = 0; row < rows; row++)
                sum += size_of_value(at(row, column));
            if (!(sum <= largest))
                largest = sum;
        }
        return largest;
    }

    double distance(Matrix &other)
    {
        Matrix made(rows, columns);
        for (size_t i = 0; i < values.size(); i++)
            made.values[i] = values[i] - other.values[i];
        return made.norm();
    }
};

static std::vector<int> devices;
static cusolverMgHandle_t handle;
static cudaLibMgGrid_t grid;

// What fills the rows that are nobody's.
static const int FILL = 0x5b;
static const int PAD = 3;

// Columns in blocks, of which each is on the next device.
template <typename T>
struct Distributed
{
    int ld, columns, block;
    std::vector<T *> parts;
    std::vector<int> local;

    Distributed(int ld, int columns, int block) : ld(ld), columns(columns), block(block)
    {
        local.assign(devices.size(), 0);
        for (int column = 0; column < columns; column++)
            local[device(column)]++;
        for (size_t i = 0; i < devices.size(); i++) {
            CHECK(cudaSetDevice(devices[i]));
            T *part = nullptr;
            if (local[i] > 0) {
                CHECK(cudaMalloc(&part, bytes(i)));
                CHECK(cudaMemset(part, FILL, bytes(i)));
            }
            parts.push_back(part);
        }
    }

    ~Distributed()
    {
        for (T *part : parts)
            cudaFree(part);
    }

    size_t bytes(size_t i) { return static_cast<size_t>(ld) * local[i] * sizeof(T); }
    int device(int column) { return column / block % static_cast<int>(devices.size()); }
    T *start(int column)
    {
        int round = column / block / static_cast<int>(devices.size());
        return parts[device(column)] + (static_cast<size_t>(round) * block + column % block) * ld;
    }

    void set(Matrix<T> &from)
    {
        for (int column = 0; column < columns; column++) {
            CHECK(cudaSetDevice(devices[device(column)]));
            CHECK(cudaMemcpy(start(column), &from.at(0, column), from.rows * sizeof(T), cudaMemcpyHostToDevice));
        }
    }

    Matrix<T> get(int rows)
    {
        Matrix<T> made(rows, columns);
        std::vector<unsigned char> whole(ld * sizeof(T));
        for (int column = 0; column < columns; column++) {
            CHECK(cudaSetDevice(devices[device(column)]));
            CHECK(cudaMemcpy(whole.data(), start(column), whole.size(), cudaMemcpyDeviceToHost));
            if (rows > 0)
                std::memcpy(static_cast<void *>(&made.at(0, column)), whole.data(), rows * sizeof(T));
            for (size_t i = rows * sizeof(T); i < whole.size(); i++)
                if (whole[i] != FILL)
                    fail("column %d: a row behind the last one was written", column);
        }
        return made;
    }

    void **list() { return reinterpret_cast<void **>(parts.data()); }
};

static cudaLibMgMatrixDesc_t describe(int ld, int columns, int block, cudaDataType type)
{
    cudaLibMgMatrixDesc_t made;
    CHECK(cusolverMgCreateMatrixDesc(&made, ld, columns, ld, block, type, grid));
    return made;
}

struct Areas
{
    std::vector<void *> parts;

    explicit Areas(size_t bytes)
    {
        for (int device : devices) {
            void *part;
            CHECK(cudaSetDevice(device));
            CHECK(cudaMalloc(&part, bytes));
            parts.push_back(part);
        }
    }
    ~Areas()
    {
        for (void *part : parts)
            cudaFree(part);
    }
};

static void expect_small(const char *what, int n, int block, double measure)
{
    if (!(measure < 30))
        fail("%s, n = %d in blocks of %d: %g, expected less than 30", what, n, block, measure);
}

static void expect_info(const char *what, int got, int expected)
{
    if (got != expected)
        fail("%s: info is %d, expected %d", what, got, expected);
}

template <typename T>
static double residual(Matrix<T> &a, Matrix<T> &x, Matrix<T> &b)
{
    double scale = a.norm() * x.norm() * Of<T>::epsilon() * (a.rows > 0 ? a.rows : 1);
    Matrix<T> product = a.times(x);
    return scale > 0 ? product.distance(b) / scale : product.distance(b);
}

template <typename T>
static void solve(int n, int block)
{
    const cudaDataType type = Of<T>::type;
    const double epsilon = Of<T>::epsilon();
    const int nrhs = 3, ld = n + PAD, of_right = 2;
    int info = -1;
    int64_t lwork = 0, other = 0;
    cudaLibMgMatrixDesc_t descr_a = describe(ld, n, block, type), descr_b = describe(ld, nrhs, of_right, type);
    Matrix<T> a = Matrix<T>::of_drawn(n, n), b = Matrix<T>::of_drawn(n, nrhs);
    {
        Distributed<T> on_a(ld, n, block), on_b(ld, nrhs, of_right);
        Distributed<int> pivots(1, n, block);
        on_a.set(a);
        CHECK(cusolverMgGetrf_bufferSize(handle, n, n, on_a.list(), 1, 1, descr_a, pivots.parts.data(), type, &lwork));
        CHECK(cusolverMgGetrs_bufferSize(handle, CUBLAS_OP_N, n, nrhs, on_a.list(), 1, 1, descr_a, pivots.parts.data(),
                                         on_b.list(), 1, 1, descr_b, type, &other));
        lwork = lwork > other ? lwork : other;
        Areas areas(lwork * sizeof(T));
        CHECK(cusolverMgGetrf(handle, n, n, on_a.list(), 1, 1, descr_a, pivots.parts.data(), type, areas.parts.data(),
                              lwork, &info));
        expect_info("getrf", info, 0);
        // P·A = L·U, with the pivots where their columns are.
        Matrix<T> factors = on_a.get(n), l(n, n), u(n, n), moved = a;
        Matrix<int> swaps = pivots.get(1);
        for (int column = 0; column < n; column++)
            for (int row = 0; row < n; row++) {
                l.at(row, column) = row > column ? factors.at(row, column) : row == column ? T(1) : T(0);
                u.at(row, column) = row <= column ? factors.at(row, column) : T(0);
            }
        for (int row = 0; row < n; row++) {
            int with = swaps.at(0, row) - 1;
            if (with < row || with >= n)
                fail("pivot %d is %d", row, with + 1);
            for (int column = 0; column < n; column++)
                std::swap(moved.at(row, column), moved.at(with, column));
        }
        Matrix<T> product = l.times(u);
        expect_small("LU", n, block, n == 0 ? 0 : moved.distance(product) / (a.norm() * n * epsilon));
        const cublasOperation_t operations[] = {CUBLAS_OP_N, CUBLAS_OP_C};
        for (cublasOperation_t operation : operations) {
            on_b.set(b);
            info = -1;
            CHECK(cusolverMgGetrs(handle, operation, n, nrhs, on_a.list(), 1, 1, descr_a, pivots.parts.data(), on_b.list(),
                                  1, 1, descr_b, type, areas.parts.data(), lwork, &info));
            expect_info("getrs", info, 0);
            Matrix<T> x = on_b.get(n), applied = operation == CUBLAS_OP_N ? a : a.adjoint();
            expect_small("getrs", n, block, residual(applied, x, b));
        }
    }
    // A positive definite one.
    Matrix<T> adjoint = a.adjoint(), positive = a.times(adjoint);
    for (int i = 0; i < n; i++)
        positive.at(i, i) = T(static_cast<typename Of<T>::Real>(size_of_value(positive.at(i, i)) + n));
    {
        Distributed<T> on_a(ld, n, block), on_b(ld, nrhs, of_right);
        on_a.set(positive);
        on_b.set(b);
        const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
        int64_t third = 0;
        CHECK(cusolverMgPotrf_bufferSize(handle, lower, n, on_a.list(), 1, 1, descr_a, type, &lwork));
        CHECK(cusolverMgPotrs_bufferSize(handle, lower, n, nrhs, on_a.list(), 1, 1, descr_a, on_b.list(), 1, 1, descr_b,
                                         type, &other));
        CHECK(cusolverMgPotri_bufferSize(handle, lower, n, on_a.list(), 1, 1, descr_a, type, &third));
        lwork = lwork > other ? lwork : other;
        lwork = lwork > third ? lwork : third;
        Areas areas(lwork * sizeof(T));
        info = -1;
        CHECK(cusolverMgPotrf(handle, lower, n, on_a.list(), 1, 1, descr_a, type, areas.parts.data(), lwork, &info));
        expect_info("potrf", info, 0);
        info = -1;
        CHECK(cusolverMgPotrs(handle, lower, n, nrhs, on_a.list(), 1, 1, descr_a, on_b.list(), 1, 1, descr_b, type,
                              areas.parts.data(), lwork, &info));
        expect_info("potrs", info, 0);
        Matrix<T> x = on_b.get(n);
        expect_small("potrs", n, block, residual(positive, x, b));
        info = -1;
        CHECK(cusolverMgPotri(handle, lower, n, on_a.list(), 1, 1, descr_a, type, areas.parts.data(), lwork, &info));
        expect_info("potri", info, 0);
        Matrix<T> inverse = on_a.get(n), identity(n, n);
        for (int column = 0; column < n; column++) {
            identity.at(column, column) = T(1);
            for (int row = 0; row < column; row++) {
                // What lies above the diagonal is as it was.
                if (inverse.at(row, column) != positive.at(row, column))
                    fail("potri: row %d of column %d was written", row, column);
                inverse.at(row, column) = conjugate(inverse.at(column, row));
            }
        }
        expect_small("potri", n, block, residual(positive, inverse, identity));
    }
    // Eigenvalues of a Hermitian one that is not definite.
    Matrix<T> hermitian(n, n);
    for (int column = 0; column < n; column++)
        for (int row = 0; row < n; row++)
            hermitian.at(row, column) = a.at(row, column) + adjoint.at(row, column);
    const cusolverEigMode_t modes[] = {CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_MODE_NOVECTOR};
    std::vector<typename Of<T>::Real> known;
    for (cusolverEigMode_t mode : modes) {
        Distributed<T> on_a(ld, n, block);
        on_a.set(hermitian);
        std::vector<typename Of<T>::Real> w(n + 1, 77);
        const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
        CHECK(cusolverMgSyevd_bufferSize(handle, mode, lower, n, on_a.list(), 1, 1, descr_a, w.data(), Of<T>::real, type,
                                         &lwork));
        Areas areas(lwork * sizeof(T));
        info = -1;
        CHECK(cusolverMgSyevd(handle, mode, lower, n, on_a.list(), 1, 1, descr_a, w.data(), Of<T>::real, type,
                              areas.parts.data(), lwork, &info));
        expect_info("syevd", info, 0);
        if (w[n] != 77)
            fail("syevd: more than %d eigenvalues were written", n);
        for (int i = 1; i < n; i++)
            if (!(w[i - 1] <= w[i]))
                fail("syevd: eigenvalue %d is smaller than the one before", i);
        if (mode == CUSOLVER_EIG_MODE_NOVECTOR) {
            for (int i = 0; i < n; i++)
                expect_small("eigenvalues alone", n, block,
                             std::abs(w[i] - known[i]) / (hermitian.norm() * n * epsilon));
            continue;
        }
        known = w;
        Matrix<T> z = on_a.get(n), scaled = z, identity(n, n), z_adjoint = z.adjoint();
        for (int column = 0; column < n; column++) {
            identity.at(column, column) = T(1);
            for (int row = 0; row < n; row++)
                scaled.at(row, column) = z.at(row, column) * w[column];
        }
        Matrix<T> applied = hermitian.times(z), gram = z_adjoint.times(z);
        if (n > 0) {
            expect_small("A·Z - Z·W", n, block, applied.distance(scaled) / (hermitian.norm() * n * epsilon));
            expect_small("Zᴴ·Z - 1", n, block, gram.distance(identity) / (n * epsilon));
        }
    }
    CHECK(cusolverMgDestroyMatrixDesc(descr_a));
    CHECK(cusolverMgDestroyMatrixDesc(descr_b));
}

// Factors of a matrix of more rows than columns, without pivots, and what a factorization that fails tells.
static void infos()
{
    const int n = 6, block = 2;
    int info = -1;
    cudaLibMgMatrixDesc_t descriptor = describe(n, n, block, CUDA_R_64F);
    Matrix<double> a(n, n);
    for (int i = 0; i < n; i++)
        a.at(i, i) = i == 3 ? 0 : i + 1;
    Distributed<double> on(n, n, block);
    on.set(a);
    CHECK(cusolverMgGetrf(handle, n, 4, on.list(), 1, 1, descriptor, nullptr, CUDA_R_64F, nullptr, 0, &info));
    expect_info("getrf of a singular matrix", info, 4);
    expect_equal("a diagonal's factors", on.get(n).values, a.values);
    info = -1;
    CHECK(cusolverMgPotrf(handle, CUBLAS_FILL_MODE_LOWER, n, on.list(), 1, 1, descriptor, CUDA_R_64F, nullptr, 0, &info));
    expect_info("potrf of a matrix that is not positive", info, 4);
    CHECK(cusolverMgDestroyMatrixDesc(descriptor));
}

static void refusals()
{
    const int n = 4;
    const cusolverStatus_t invalid = CUSOLVER_STATUS_INVALID_VALUE, none = CUSOLVER_STATUS_NOT_INITIALIZED;
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    const cudaDataType type = CUDA_R_64F;
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    std::vector<int> wrong(33, 0);
    expect_status("no device", cusolverMgDeviceSelect(handle, 0, wrong.data()), invalid);
    expect_status("33 devices", cusolverMgDeviceSelect(handle, 33, wrong.data()), invalid);
    expect_status("a list that is NULL", cusolverMgDeviceSelect(handle, 1, nullptr), invalid);
    wrong[0] = count;
    expect_status("a device that is not there", cusolverMgDeviceSelect(handle, 1, wrong.data()), invalid);
    expect_status("no handle", cusolverMgDeviceSelect(nullptr, 1, devices.data()), none);

    cudaLibMgGrid_t bad = &count;
    const cusolverMgGridMapping_t columns = CUDALIBMG_GRID_MAPPING_COL_MAJOR;
    expect_status("two rows", cusolverMgCreateDeviceGrid(&bad, 2, 1, devices.data(), columns), invalid);
    expect_status("no column", cusolverMgCreateDeviceGrid(&bad, 1, 0, devices.data(), columns), invalid);
    expect_status("no place for a grid", cusolverMgCreateDeviceGrid(nullptr, 1, 2, devices.data(), columns), invalid);

    cudaLibMgMatrixDesc_t descriptor = &count;
    expect_status("a negative size", cusolverMgCreateMatrixDesc(&descriptor, n, -1, n, 2, type, grid), invalid);
    expect_status("blocks of rows", cusolverMgCreateMatrixDesc(&descriptor, n, n, 2, 2, type, grid), invalid);
    expect_status("integers", cusolverMgCreateMatrixDesc(&descriptor, n, n, n, 2, CUDA_R_32I, grid), invalid);
    expect_status("no grid", cusolverMgCreateMatrixDesc(&descriptor, n, n, n, 2, type, nullptr), invalid);
    if (bad != &count || descriptor != &count)
        fail("a call that was refused has written");

    cudaLibMgMatrixDesc_t good = describe(n, n, 1, type);
    Matrix<double> a = Matrix<double>::of_drawn(n, n);
    Distributed<double> on(n, n, 1);
    on.set(a);
    int info = 1234;
    int64_t lwork = 1234;
    double w[n] = {5, 5, 5, 5};
    const auto potrf = [&](cusolverMgHandle_t of, cublasFillMode_t uplo, int size, void **list, int row, int column,
                           cudaLibMgMatrixDesc_t described, cudaDataType computed, int *told) {
        return cusolverMgPotrf(of, uplo, size, list, row, column, described, computed, nullptr, 0, told);
    };
    expect_status("NULL as a handle", potrf(nullptr, lower, n, on.list(), 1, 1, good, type, &info), none);
    expect_status("the upper triangle", potrf(handle, CUBLAS_FILL_MODE_UPPER, n, on.list(), 1, 1, good, type, &info), invalid);
    expect_status("a negative size", potrf(handle, lower, -1, on.list(), 1, 1, good, type, &info), invalid);
    expect_status("too large", potrf(handle, lower, n + 1, on.list(), 1, 1, good, type, &info), invalid);
    expect_status("the second row", potrf(handle, lower, n - 1, on.list(), 2, 1, good, type, &info), invalid);
    expect_status("the second column", potrf(handle, lower, n - 1, on.list(), 1, 2, good, type, &info), invalid);
    expect_status("another type", potrf(handle, lower, n, on.list(), 1, 1, good, CUDA_R_32F, &info), invalid);
    expect_status("no descriptor", potrf(handle, lower, n, on.list(), 1, 1, nullptr, type, &info), invalid);
    expect_status("no list", potrf(handle, lower, n, nullptr, 1, 1, good, type, &info), invalid);
    void *without[] = {on.parts[0], nullptr};
    expect_status("a device without memory", potrf(handle, lower, n, without, 1, 1, good, type, &info), invalid);
    expect_status("no place for info", potrf(handle, lower, n, on.list(), 1, 1, good, type, nullptr), invalid);
    expect_status("no such job",
                  cusolverMgSyevd(handle, static_cast<cusolverEigMode_t>(7), lower, n, on.list(), 1, 1, good, w, type, type,
                                  nullptr, 0, &info),
                  invalid);
    expect_status("no place for eigenvalues",
                  cusolverMgSyevd(handle, CUSOLVER_EIG_MODE_VECTOR, lower, n, on.list(), 1, 1, good, nullptr, type, type,
                                  nullptr, 0, &info),
                  invalid);
    expect_status("complex eigenvalues",
                  cusolverMgSyevd(handle, CUSOLVER_EIG_MODE_VECTOR, lower, n, on.list(), 1, 1, good, w, CUDA_C_64F, type,
                                  nullptr, 0, &info),
                  invalid);
    expect_status("a size for the upper triangle",
                  cusolverMgPotri_bufferSize(handle, CUBLAS_FILL_MODE_UPPER, n, on.list(), 1, 1, good, type, &lwork), invalid);

    // A grid of one device, and a handle that has two; one that has none.
    cudaLibMgGrid_t small;
    CHECK(cusolverMgCreateDeviceGrid(&small, 1, 1, devices.data(), columns));
    cudaLibMgMatrixDesc_t on_small;
    CHECK(cusolverMgCreateMatrixDesc(&on_small, n, n, n, 1, type, small));
    expect_status("a grid of fewer devices", potrf(handle, lower, n, on.list(), 1, 1, on_small, type, &info), invalid);
    cusolverMgHandle_t fresh;
    CHECK(cusolverMgCreate(&fresh));
    expect_status("no devices were selected", potrf(fresh, lower, n, on.list(), 1, 1, good, type, &info), invalid);
    CHECK(cusolverMgDestroy(fresh));
    expect_status("a handle that was destroyed", potrf(fresh, lower, n, on.list(), 1, 1, good, type, &info), none);
    expect_status("a handle that is destroyed again", cusolverMgDestroy(fresh), none);
    CHECK(cusolverMgDestroyGrid(small));
    expect_status("a grid that was destroyed", cusolverMgCreateMatrixDesc(&descriptor, n, n, n, 2, type, small), invalid);
    CHECK(cusolverMgDestroyMatrixDesc(on_small));
    expect_status("a descriptor that was destroyed", potrf(handle, lower, n, on.list(), 1, 1, on_small, type, &info), invalid);
    CHECK(cusolverMgDestroyMatrixDesc(good));

    expect_equal("the matrix behind refused calls", on.get(n).values, a.values);
    if (info != 1234 || lwork != 1234 || w[0] != 5 || w[3] != 5)
        fail("a call that was refused has written");
}

int main()
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    devices = {0, count > 1 ? 1 : 0};
    CHECK(cudaSetDevice(0));
    CHECK(cusolverMgCreate(&handle));
    CHECK(cusolverMgDeviceSelect(handle, 2, devices.data()));
    CHECK(cusolverMgCreateDeviceGrid(&grid, 1, 2, devices.data(), CUDALIBMG_GRID_MAPPING_COL_MAJOR));
    const int shapes[][2] = {{0, 4}, {1, 3}, {5, 8}, {17, 1}, {37, 5}, {64, 16}};
    for (const auto &shape : shapes) {
        solve<float>(shape[0], shape[1]);
        solve<double>(shape[0], shape[1]);
        solve<std::complex<float>>(shape[0], shape[1]);
        solve<std::complex<double>>(shape[0], shape[1]);
    }
    infos();
    refusals();
    CHECK(cusolverMgDestroyGrid(grid));
    CHECK(cusolverMgDestroy(handle));
    int current = -1;
    CHECK(cudaSetDevice(devices[1]));
    CHECK(cudaGetDevice(&current));
    if (current != devices[1])
        fail("the current device is %d", current);
    std::printf("cusolver_multi_device: LU, Cholesky, an inverse, eigenvalues, info, refusals, on %d device(s)\nPASSED\n",
                devices[1] + 1);
    return 0;
}
