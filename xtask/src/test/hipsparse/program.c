/* cuSPARSE on a device that is not the CPU's: says what its calls answer, in a stream and in a capture, by hipSPARSE and by our own
   code. Types are those of cuda.h and cusparse.h, declared here so that they are not needed. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemcpyHtoD_v2(unsigned long long, const void *, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);
int cuStreamCreate(void **, unsigned);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cusparseCreate(void **);
int cusparseDestroy(void *);
int cusparseSetStream(void *, void *);
int cusparseCreateCsr(void **, long, long, long, void *, void *, void *, int, int, int, int);
int cusparseDestroySpMat(void *);
int cusparseCreateDnVec(void **, long, void *, int);
int cusparseSpMV_bufferSize(void *, int, const void *, void *, void *, const void *, void *, int, int, size_t *);
int cusparseSpMV(void *, int, const void *, void *, void *, const void *, void *, int, int, void *);
int cusparseCreateMatDescr(void **);
int cusparseDestroyMatDescr(void *);
int cusparseSetMatIndexBase(void *, int);
int cusparseCreateCsrilu02Info(void **);
int cusparseDestroyCsrilu02Info(void *);
int cusparseDcsrilu02_bufferSize(void *, int, int, void *, double *, const int *, const int *, void *, int *);
int cusparseDcsrilu02_analysis(void *, int, int, void *, const double *, const int *, const int *, void *, int, void *);
int cusparseXcsrilu02_zeroPivot(void *, void *, int *);
int cusparseDcsrgeam2_bufferSizeExt(void *, int, int, const double *, void *, int, const double *, const int *, const int *,
                                    const double *, void *, int, const double *, const int *, const int *, void *, const double *,
                                    const int *, const int *, size_t *);
int cusparseSpSV_createDescr(void **);
int cusparseSpSV_destroyDescr(void *);
int cusparseSpSV_bufferSize(void *, int, const void *, void *, void *, void *, int, int, void *, size_t *);
int cusparseSpSV_analysis(void *, int, const void *, void *, void *, void *, int, int, void *, void *);
int cusparseSpSV_solve(void *, int, const void *, void *, void *, void *, int, int, void *);
int cusparseSpSV_updateMatrix(void *, void *, void *, int);
int cusparseSpGEMM_createDescr(void **);
int cusparseSpGEMM_destroyDescr(void *);
int cusparseSpGEMM_workEstimation(void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *, size_t *, void *);
int cusparseSpGEMM_getNumProducts(void *, long *);
int cusparseSpGEMM_compute(void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *, size_t *, void *);
int cusparseSpGEMM_copy(void *, int, int, const void *, void *, void *, const void *, void *, int, int, void *);
int cusparseSpMatGetSize(void *, long *, long *, long *);
int cusparseCsrSetPointers(void *, void *, void *, void *);

static void check(int code, const char *what)
{
    if (code) {
        printf("FAILED %s: %d\n", what, code);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

/* The matrix 1 2 / 0 3, a vector 1 1, and a result. */
struct data {
    int offsets[4], columns[4];
    double values[3], x[2], y[2], area[4], diagonal[2];
};

/* The lower triangle of A, which is 1 0 / 0 3, by hipSPARSE; with another diagonal by our own code, which alone takes that. */
static void solve(void *handle, void *a, void *x, void *y, struct data *there)
{
    void *descr;
    double alpha = 2;
    size_t bytes = 0;
    struct data got;
    CHECK(cusparseSpSV_createDescr(&descr));
    CHECK(cusparseSpSV_bufferSize(handle, 0, &alpha, a, x, y, 1, 0, descr, &bytes));
    printf("the larger work area: %zu\n", bytes);
    CHECK(cusparseSpSV_analysis(handle, 0, &alpha, a, x, y, 1, 0, descr, there->area));
    CHECK(cusparseSpSV_solve(handle, 0, &alpha, a, x, y, 1, 0, descr));
    CHECK(cusparseSpSV_updateMatrix(handle, descr, there->values, 0));
    CHECK(cusparseSpSV_solve(handle, 0, &alpha, a, x, y, 1, 0, descr));
    CHECK(cusparseSpSV_updateMatrix(handle, descr, there->diagonal, 1));
    CHECK(cusparseSpSV_solve(handle, 0, &alpha, a, x, y, 1, 0, descr));
    CHECK(cuMemcpyDtoH_v2(&got, (unsigned long long)there, sizeof got));
    printf("with another diagonal: %g %g\n", got.y[0], got.y[1]);
    CHECK(cusparseSpSV_destroyDescr(descr));
}

/* A times A, whose products hipSPARSE does not count. */
static void multiply(void *handle, void *a, struct data *there)
{
    void *descr, *c;
    double alpha = 1, beta = 0;
    size_t bytes = 0;
    long products = 0, rows, cols, nnz = 0;
    CHECK(cusparseCreateCsr(&c, 2, 2, 0, there->offsets, 0, 0, 2, 2, 0, 1));
    CHECK(cusparseSpGEMM_createDescr(&descr));
    CHECK(cusparseSpGEMM_workEstimation(handle, 0, 0, &alpha, a, a, &beta, c, 1, 0, descr, &bytes, 0));
    printf("first work area: %zu\n", bytes);
    CHECK(cusparseSpGEMM_workEstimation(handle, 0, 0, &alpha, a, a, &beta, c, 1, 0, descr, &bytes, there->area));
    CHECK(cusparseSpGEMM_getNumProducts(descr, &products));
    printf("products: %ld\n", products);
    CHECK(cusparseSpGEMM_compute(handle, 0, 0, &alpha, a, a, &beta, c, 1, 0, descr, &bytes, 0));
    printf("second work area: %zu\n", bytes);
    CHECK(cusparseSpGEMM_compute(handle, 0, 0, &alpha, a, a, &beta, c, 1, 0, descr, &bytes, there->area));
    CHECK(cusparseSpMatGetSize(c, &rows, &cols, &nnz));
    printf("entries: %ld\n", nnz);
    CHECK(cusparseCsrSetPointers(c, there->offsets, there->columns, there->values));
    CHECK(cusparseSpGEMM_copy(handle, 0, 0, &alpha, a, a, &beta, c, 1, 0, descr));
    CHECK(cusparseSpGEMM_destroyDescr(descr));
    CHECK(cusparseDestroySpMat(c));
}

int main(void)
{
    struct data data = {{0, 2, 3}, {0, 1, 1}, {1, 2, 3}, {1, 1}, {7, 7}, {0}, {2, 4}}, got;
    void *context, *stream, *handle, *a, *x, *y, *descr, *info, *graph;
    unsigned long long at;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&at, sizeof data));
    CHECK(cuMemcpyHtoD_v2(at, &data, sizeof data));
    CHECK(cuStreamCreate(&stream, 1));
    struct data *there = (struct data *)at;
    CHECK(cusparseCreate(&handle));
    CHECK(cusparseCreateCsr(&a, 2, 2, 3, there->offsets, there->columns, there->values, 2, 2, 0, 1));
    CHECK(cusparseCreateDnVec(&x, 2, there->x, 1));
    CHECK(cusparseCreateDnVec(&y, 2, there->y, 1));
    double alpha = 2, fails = 9, refused = 10, beta = 0;
    size_t bytes = 0;
    CHECK(cusparseSpMV_bufferSize(handle, 0, &alpha, a, x, &beta, y, 1, 3, &bytes));
    printf("work area: %zu\n", bytes);
    CHECK(cusparseSetStream(handle, stream));
    CHECK(cusparseSpMV(handle, 0, &alpha, a, x, &beta, y, 1, 3, there->area));
    printf("execution failed: %d\n", cusparseSpMV(handle, 0, &fails, a, x, &beta, y, 1, 3, there->area));
    printf("no operation: %d\n", cusparseSpMV(handle, 3, &alpha, a, x, &beta, y, 1, 3, there->area));
    /* What hipSPARSE refuses is done. */
    CHECK(cusparseSpMV(handle, 0, &refused, a, x, &beta, y, 1, 3, there->area));
    CHECK(cuMemcpyDtoH_v2(&got, at, sizeof got));
    printf("ours: %g %g\n", got.y[0], got.y[1]);

    int lwork = 0, pivot = 0;
    CHECK(cusparseCreateMatDescr(&descr));
    CHECK(cusparseCreateCsrilu02Info(&info));
    CHECK(cusparseSetMatIndexBase(descr, 1));
    CHECK(cusparseDcsrilu02_bufferSize(handle, 2, 3, descr, there->values, there->offsets, there->columns, info, &lwork));
    printf("enough for our own code: %d\n", lwork > 0);
    CHECK(cusparseDcsrilu02_analysis(handle, 2, 3, descr, there->values, there->offsets, there->columns, info, 1, there->area));
    printf("no pivot: %d", cusparseXcsrilu02_zeroPivot(handle, info, &pivot));
    printf(" in %d\n", pivot);
    /* A function that this hipSPARSE lacks. */
    CHECK(cusparseDcsrgeam2_bufferSizeExt(handle, 2, 2, &alpha, descr, 3, there->values, there->offsets, there->columns, &alpha, descr, 3,
                                          there->values, there->offsets, there->columns, descr, there->values, there->offsets,
                                          there->columns, &bytes));
    CHECK(cusparseDestroyCsrilu02Info(info));
    CHECK(cusparseDestroyMatDescr(descr));

    solve(handle, a, x, y, there);
    multiply(handle, a, there);

    CHECK(cuStreamBeginCapture_v2(stream, 0));
    printf("size in a capture: %d\n", cusparseSpMV_bufferSize(handle, 0, &alpha, a, x, &beta, y, 1, 3, &bytes));
    printf("captured: %d\n", cusparseSpMV(handle, 0, &alpha, a, x, &beta, y, 1, 3, there->area));
    printf("ended: %d\n", cuStreamEndCapture(stream, &graph));
    CHECK(cusparseDestroySpMat(a));
    CHECK(cusparseDestroy(handle));
    printf("no handle: %d\n", cusparseSpMV(handle, 0, &alpha, a, x, &beta, y, 1, 3, there->area));
    puts("PASSED");
    return 0;
}
