// Two objects of one program, each with a CUDA runtime. Linked statically they are two instances, and an error is kept
// for the one that was called (manual, Error Handling); linked to one libcudart.so they share what is kept.
// The expected sequence follows the manual for both; `SHARED` says which one this program is.
#include "instance.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#ifndef SHARED
#define SHARED 0
#endif

static int failures = 0;

static void expect(const char *what, cudaError_t got, cudaError_t expected)
{
    if (got == expected)
        return;
    failures++;
    std::printf("FAILED: %s: %d %s, expected %d %s\n", what, got, cudaGetErrorName(got), expected, cudaGetErrorName(expected));
}

static const cudaError_t none = cudaSuccess, invalid = cudaErrorInvalidDevice, seen_by_both = SHARED ? invalid : none;

int main()
{
    // First something that works, so that both runtimes are up and neither keeps anything.
    int *result = nullptr, value = 0;
    expect("cudaMalloc", cudaMalloc(&result, sizeof *result), none);
    expect("main: nothing yet", cudaPeekAtLastError(), none);
    expect("library: nothing yet", library_peeks(), none);

    expect("main fails", FAIL_HERE(), invalid);
    expect("library: main's error", library_peeks(), seen_by_both);
    expect("library: a launch after main's error", library_launches(result), seen_by_both);
    expect("the launch ran", cudaMemcpy(&value, result, sizeof value, cudaMemcpyDefault), none);
    if (value != 7) {
        std::printf("FAILED: the launch wrote %d, expected 7\n", value);
        failures++;
    }
    expect("main: its own error, looked at", cudaPeekAtLastError(), invalid);

    // A thread has its own.
    std::thread([] {
        expect("another thread: main's error", cudaPeekAtLastError(), none);
        expect("another thread: main's error, in the library", library_peeks(), none);
    }).join();

    // Taken by one: gone there. Shared, there is one to take.
    expect("library takes it", library_gets(), seen_by_both);
    expect("main takes it", cudaGetLastError(), SHARED ? none : invalid);
    expect("main: taken", cudaGetLastError(), none);

    // The other way round, and a success does not clear it.
    expect("library fails", library_fails(), invalid);
    expect("main: a call that succeeds", cudaSetDevice(0), none);
    expect("main: the library's error", cudaPeekAtLastError(), seen_by_both);
    expect("library: its own error", library_peeks(), invalid);
    expect("library takes its own", library_gets(), invalid);
    expect("library: taken", library_gets(), none);
    expect("main: nothing is left", cudaGetLastError(), none);

    expect("cudaFree", cudaFree(result), none);
    std::puts(failures ? "FAILED" : "PASSED");
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
