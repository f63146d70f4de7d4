// What stands for our libcudart.so.N: the same names, each answering as ours.
#include <stddef.h>
#include <stdint.h>
static void *handle = (void *)"ours";
const char *cudaGetErrorName(int error) { return error == 7 ? "ours" : "ours, bad argument"; }
int cudaMalloc(void **pointer, size_t size) { *pointer = (void *)(uintptr_t)size; return 0; }
int cudaFree(void *pointer) { return 0; }
int cudaRuntimeGetVersion(int *version) { *version = MAJOR * 1000 + 1; return 0; }
double cudaMemcpy2DAsync(int a, double b, const char *c, float d, long e, long f, long g, long h) {
    return a + b + (c[0] - '0') + d + e + f + g + h;
}
void **__cudaRegisterFatBinary(const void *wrapper) { return *(const uint64_t *)wrapper == 0x1466243b1 ? &handle : 0; }
int MAJORS_OWN(void) { return MAJOR; }
int cudaPeekAtLastError(int value) { return value; }
void cudaProfilerStop(void) {}
