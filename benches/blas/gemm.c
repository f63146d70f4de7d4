// SGEMM and DGEMM through cuBLAS and by OpenBLAS called directly, by turns, on the same matrices; the results agree.
// Arguments: libcublas.so.N, libopenblas.so.0, n, rounds. Prints a line per type: seconds of the fastest of each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*Create)(void **);
typedef int (*Sgemm)(void *, int, int, int, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
typedef int (*Dgemm)(void *, int, int, int, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
typedef void (*CblasSgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef void (*CblasDgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
typedef int (*Malloc)(void **, size_t);
typedef int (*Memcpy)(void *, const void *, size_t, int);
typedef int (*Synchronize)(void);

static void *find(void *library, const char *name)
{
    void *address = dlsym(library, name);  // RTLD_DEFAULT is a null pointer
    if (!address) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(1);
    }
    return address;
}

static void *open_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return library;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void check(int code, const char *what)
{
    if (code != 0) {
        fprintf(stderr, "%s: %d\n", what, code);
        exit(1);
    }
}

#define MEASURE(T, NAME, CUBLAS, CBLAS)                                                                                \
    do {                                                                                                               \
        const size_t count = (size_t)n * n;                                                                            \
        T *host[3], *device[3], *back = malloc(count * sizeof(T));                                                     \
        for (int i = 0; i < 3; i++) {                                                                                  \
            host[i] = malloc(count * sizeof(T));                                                                       \
            for (size_t j = 0; j < count; j++)                                                                         \
                host[i][j] = (T)(rand() % 2001 - 1000) / 1000;                                                         \
            check(cuda_malloc((void **)&device[i], count * sizeof(T)), "cudaMalloc");                                  \
            check(cuda_memcpy(device[i], host[i], count * sizeof(T), 1), "cudaMemcpy");                                \
        }                                                                                                              \
        const T one = 1, zero = 0;                                                                                     \
        double through = 1e9, direct = 1e9;                                                                            \
        for (int round = 0; round < rounds; round++) {                                                                 \
            double start = now();                                                                                      \
            check(CUBLAS(handle, 0, 0, n, n, n, &one, device[0], n, device[1], n, &zero, device[2], n), #CUBLAS);      \
            check(cuda_synchronize(), "cudaDeviceSynchronize");                                                        \
            double took = now() - start;                                                                               \
            through = took < through ? took : through;                                                                 \
            start = now();                                                                                             \
            CBLAS(102, 111, 111, n, n, n, 1, host[0], n, host[1], n, 0, host[2], n);                                   \
            took = now() - start;                                                                                      \
            direct = took < direct ? took : direct;                                                                    \
        }                                                                                                              \
        check(cuda_memcpy(back, device[2], count * sizeof(T), 2), "cudaMemcpy");                                       \
        for (size_t j = 0; j < count; j++)                                                                             \
            if (!(fabs((double)back[j] - (double)host[2][j]) <= 2e-6 * n)) {                                           \
                fprintf(stderr, "%s: element %zu is %g and %g\n", NAME, j, (double)back[j], (double)host[2][j]);       \
                exit(1);                                                                                               \
            }                                                                                                          \
        printf("%s %.6f %.6f\n", NAME, through, direct);                                                               \
    } while (0)

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    const int n = atoi(argv[3]), rounds = atoi(argv[4]);
    void *cublas = open_library(argv[1]), *blas = open_library(argv[2]);
    const Malloc cuda_malloc = (Malloc)find(RTLD_DEFAULT, "cudaMalloc");
    const Memcpy cuda_memcpy = (Memcpy)find(RTLD_DEFAULT, "cudaMemcpy");
    const Synchronize cuda_synchronize = (Synchronize)find(RTLD_DEFAULT, "cudaDeviceSynchronize");
    const Create create = (Create)find(cublas, "cublasCreate_v2");
    const Sgemm sgemm = (Sgemm)find(cublas, "cublasSgemm_v2");
    const Dgemm dgemm = (Dgemm)find(cublas, "cublasDgemm_v2");
    const CblasSgemm cblas_sgemm = (CblasSgemm)find(blas, "cblas_sgemm");
    const CblasDgemm cblas_dgemm = (CblasDgemm)find(blas, "cblas_dgemm");
    void *handle;
    check(create(&handle), "cublasCreate");
    MEASURE(float, "SGEMM", sgemm, cblas_sgemm);
    MEASURE(double, "DGEMM", dgemm, cblas_dgemm);
    return 0;
}
