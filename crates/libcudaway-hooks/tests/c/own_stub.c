// A library with functions whose names begin with "cu" and that looks them up by itself, as cuDNN 9 does.
#define _GNU_SOURCE
#include <dlfcn.h>
int cudnnCreate(void) {
    static int depth;
    if (++depth > 5) return -1000;
    void *library = dlopen("libown_impl.so", RTLD_NOW);
    int (*found)(void) = library ? (int (*)(void))dlsym(library, "cudnnCreate") : 0;
    int answer = found ? found() : -1;
    depth--;
    return answer;
}
