// Prints the takeover's report at the end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
__attribute__((destructor)) static void report(void) {
    fflush(stdout);
    void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "takeover_report");
    if (function) function();
}
