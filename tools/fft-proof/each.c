/* `each LIBCUFFT LIBCUFFTW LIBCUDART VERSION`: transforms through the objects of one CUDA, as a program of it does them. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void *find(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        printf("FAILED: no %s\n", name);
        exit(1);
    }
    return function;
}

static void check(int got, int expected, const char *what)
{
    if (got != expected) {
        printf("FAILED: %s: %d, expected %d\n", what, got, expected);
        exit(1);
    }
}

/* Of a cosine of four waves. */
static void spectrum(const float *data)
{
    for (int i = 0; i < 30; i++)
        if (fabs(data[2 * i] - (i == 4 || i == 26 ? 15 : 0)) > 1e-4 || fabs(data[2 * i + 1]) > 1e-4) {
            printf("FAILED: number %d is %g + %gi\n", i, data[2 * i], data[2 * i + 1]);
            exit(1);
        }
}

int main(int count, char **arguments)
{
    void *runtime = count == 5 ? dlopen(arguments[3], RTLD_NOW) : NULL;
    void *fftw = runtime ? dlopen(arguments[2], RTLD_NOW) : NULL;
    if (!fftw || !(library = dlopen(arguments[1], RTLD_NOW))) {
        printf("FAILED: %s\n", dlerror());
        return 1;
    }
    int (*allocate)(void **, size_t) = dlsym(runtime, "cudaMalloc");
    int (*copy)(void *, const void *, size_t, int) = dlsym(runtime, "cudaMemcpy");
    int (*version)(int *) = find("cufftGetVersion");
    int (*plan)(int *, int, int, int) = find("cufftPlan1d");
    int (*execute)(int, void *, void *, int) = find("cufftExecC2C");
    int (*destroy)(int) = find("cufftDestroy");

    float data[2 * 30] = {0};
    for (int i = 0; i < 30; i++)
        data[2 * i] = cos(2 * M_PI * 4 * i / 30);
    void *device;
    int handle, said;
    check(allocate(&device, sizeof data), 0, "cudaMalloc");
    check(copy(device, data, sizeof data, 1), 0, "cudaMemcpy");
    check(plan(&handle, 30, 0x29, 1), 0, "cufftPlan1d");
    check(execute(handle, device, device, -1), 0, "cufftExecC2C");
    check(destroy(handle), 0, "cufftDestroy");
    check(copy(data, device, sizeof data, 2), 0, "cudaMemcpy");
    spectrum(data);

    library = fftw;
    void *(*plan_dft)(int, void *, void *, int, unsigned) = find("fftwf_plan_dft_1d");
    void (*execute_plan)(void *) = find("fftwf_execute");
    for (int i = 0; i < 30; i++)
        data[2 * i] = cos(2 * M_PI * 4 * i / 30), data[2 * i + 1] = 0;
    void *made = plan_dft(30, data, data, -1, 0);
    if (!made) {
        printf("FAILED: no plan\n");
        return 1;
    }
    execute_plan(made);
    spectrum(data);

    check(version(&said), 0, "cufftGetVersion");
    check(said, atoi(arguments[4]), "the version");
    printf("version %d\n", said);
    return 0;
}
