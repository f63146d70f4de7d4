/* cuSOLVER on a device that is not the CPU's: says what its calls answer, in a stream and in a capture. Types are those of cuda.h and
   cusolverDn.h, declared here so that they are not needed. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuStreamCreate(void **, unsigned);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int cusolverDnCreate(void **);
int cusolverDnDestroy(void *);
int cusolverDnSetStream(void *, void *);
int cusolverDnDpotrf_bufferSize(void *, int, int, double *, int, int *);
int cusolverDnDpotrf(void *, int, int, double *, int, double *, int, int *);
int cusolverDnCreateSyevjInfo(void **);
int cusolverDnDestroySyevjInfo(void *);
int cusolverDnXsyevjSetMaxSweeps(void *, int);
int cusolverDnXsyevjGetSweeps(void *, void *, int *);

static void check(int code, const char *what)
{
    if (code) {
        printf("FAILED %s: %d\n", what, code);
        exit(1);
    }
}
#define CHECK(call) check(call, #call)

int main(void)
{
    void *context, *stream, *handle, *info, *graph;
    unsigned long long at;
    int lwork = 0, sweeps = 0;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&at, 1 << 16));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cusolverDnCreate(&handle));
    CHECK(cusolverDnDpotrf_bufferSize(handle, 1, 4, (double *)at, 5, &lwork));
    printf("work area: %d\n", lwork);
    CHECK(cusolverDnSetStream(handle, stream));
    CHECK(cusolverDnDpotrf(handle, 0, 4, (double *)at, 5, (double *)at, lwork, (int *)at));
    printf("mapping error: %d\n", cusolverDnDpotrf(handle, 0, 9, (double *)at, 9, (double *)at, lwork, (int *)at));
    printf("no triangle: %d\n", cusolverDnDpotrf(handle, 2, 4, (double *)at, 5, (double *)at, lwork, (int *)at));

    CHECK(cusolverDnCreateSyevjInfo(&info));
    CHECK(cusolverDnXsyevjSetMaxSweeps(info, 12));
    CHECK(cusolverDnXsyevjGetSweeps(handle, info, &sweeps));
    printf("sweeps: %d\n", sweeps);
    CHECK(cusolverDnDestroySyevjInfo(info));

    CHECK(cuStreamBeginCapture_v2(stream, 0));
    printf("size in a capture: %d\n", cusolverDnDpotrf_bufferSize(handle, 1, 4, (double *)at, 5, &lwork));
    printf("captured: %d\n", cusolverDnDpotrf(handle, 0, 4, (double *)at, 5, (double *)at, lwork, (int *)at));
    printf("ended: %d\n", cuStreamEndCapture(stream, &graph));
    CHECK(cusolverDnDestroy(handle));
    printf("no handle: %d\n", cusolverDnDpotrf(handle, 0, 4, (double *)at, 5, (double *)at, lwork, (int *)at));
    puts("PASSED");
    return 0;
}
