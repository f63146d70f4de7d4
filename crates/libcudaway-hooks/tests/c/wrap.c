// What OpenMP's tools and many preloads do: a function that finds the next one of its own name.
#define _GNU_SOURCE
#include <dlfcn.h>
int foo(int x) {
    static int depth;
    if (++depth > 5) return -1000;
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "foo");
    int answer = next ? next(x) + 100 : -1;
    depth--;
    return answer;
}
