// An allocator that looks libc's up when it is first called, as some replacements do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static char room[1 << 16];
static size_t used;
static void *(*next)(size_t);
static int inside;
void *malloc(size_t n) {
    if (!next && !inside) { inside = 1; next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc"); inside = 0; }
    if (next) return next(n);
    void *p = room + used;
    used += (n + 15) & ~15ul;
    return p;
}
