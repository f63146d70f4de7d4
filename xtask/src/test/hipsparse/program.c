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
    double values[3], x[2], y[2], area[4];
};

int main(void)
{
    struct data data = {{0, 2, 3}, {0, 1, 1}, {1, 2, 3}, {1, 1}, {7, 7}}, got;
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
