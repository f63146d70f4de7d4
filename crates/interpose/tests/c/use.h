#include "registered.h"
#include <stdio.h>
#ifdef TOLERANT
#define HANDLE_TEXT "not looked at"
#else
#define HANDLE_TEXT (const char *)*handle
#endif
// Calls everything and says who answered.
static void use_runtime(void) {
    void *pointer = 0;
    int version = 0;
    int malloc_answer = cudaMalloc(&pointer, 42);
    printf("name=%s malloc=%d pointer=%p ", cudaGetErrorName(7), malloc_answer, pointer);
    cudaRuntimeGetVersion(&version);
    printf("version=%d own=%d ", version, MAJORS_OWN());
    printf("mixed=%.2f ", cudaMemcpy2DAsync(1, 2.5, "3", 4.25f, 5, 6, 7, 8));
    cudaProfilerStop();
    printf("short=%d handle=%s\n", cudaPeekAtLastError(5), HANDLE_TEXT);
    fflush(stdout);
}
