// A lookup while the loader relocates this library, which may be before it has relocated us.
#define _GNU_SOURCE
#include <dlfcn.h>
static int one(void) { return 1; }
static int two(void) { return 2; }
static int (*choose(void))(void) { return dlsym(RTLD_DEFAULT, "getpid") ? one : two; }
__attribute__((visibility("hidden"))) int local(void) __attribute__((ifunc("choose")));
int chosen(void) { return local(); }
