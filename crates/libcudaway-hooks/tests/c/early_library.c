// Lookups in a constructor and in a destructor.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
static int found(const char *name) { return dlsym(dlopen("libother.so", RTLD_NOW), name) != 0; }
int in_constructor;
__attribute__((constructor(101))) static void before(void) { in_constructor = found("cuInit") && dlsym(RTLD_DEFAULT, "getpid"); }
__attribute__((destructor)) static void after(void) { if (found("cuInit") && write(1, " after", 6)) {} }
