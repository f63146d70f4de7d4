// What stands for NVIDIA's static runtime: a few of its public names, each answering "static".
// Compiled with hidden visibility, so that the linker makes the names local, as nvcc's link does.
#include "runtime.h"
// What NVIDIA's import, whatever the program uses of them.
#include <pthread.h>
int share(pthread_rwlockattr_t *attributes) { return pthread_rwlockattr_setpshared(attributes, PTHREAD_PROCESS_SHARED); }

const char *cudaGetErrorName(int error) { return "static"; }
int cudaMalloc(void **pointer, size_t size) { return -1; }
int cudaFree(void *pointer) { return -1; }
int cudaRuntimeGetVersion(int *version) { *version = VERSION; return 0; }
double cudaMemcpy2DAsync(int a, double b, const char *c, float d, long e, long f, long g, long h) { return -1; }
void **__cudaRegisterFatBinary(const void *wrapper) { static void *handle = "static"; return &handle; }
// A name that only one major has tells the majors apart where the version is not there to ask.
int MAJORS_OWN(void) { return -1; }

// A tail call to an internal function: five bytes, as NVIDIA's __cudaLaunchKernel.
int short_internal(int value) { return -value; }
__attribute__((naked)) int cudaPeekAtLastError(int value) { __asm__(".byte 0xe9; .long short_internal - . - 4"); }
// One byte and no room behind it.
__attribute__((naked, aligned(1))) void cudaProfilerStop(void) { __asm__("ret"); }
__attribute__((naked, aligned(1))) void behind_the_short_one(void) { __asm__("nop; ret"); }
