#include <stddef.h>
#include <stdint.h>
const char *cudaGetErrorName(int error);
int cudaMalloc(void **pointer, size_t size);
int cudaFree(void *pointer);
int cudaRuntimeGetVersion(int *version);
double cudaMemcpy2DAsync(int a, double b, const char *c, float d, long e, long f, long g, long h);
void **__cudaRegisterFatBinary(const void *wrapper);
int MAJORS_OWN(void);
int cudaPeekAtLastError(int value);
void cudaProfilerStop(void);
