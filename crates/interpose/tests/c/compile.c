// Asks for code and prints what it gets. Linked with compiler.c or a library of it; with -DOPENS the library is the first argument.
// Words after it: "code", "unasked", "late DRIVER", "again N", "threads DRIVER", "maps".
#define _GNU_SOURCE
#include "compiler.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPENS
#define POINTER(name, arguments) static int(*name) arguments;
#define FIND(name, arguments) *(void **)&name = dlsym(library, #name);
FUNCTIONS(POINTER)
static void *library;
static void open_it(const char *path)
{
    library = dlopen(path, RTLD_NOW);
    if (!library) { puts(dlerror()); exit(1); }
    FUNCTIONS(FIND)
}
#else
#define EXTERN(name, arguments) extern int name arguments;
FUNCTIONS(EXTERN)
#endif

static void ask(const char *what, int has_cubin, int has_ptx)
{
    struct program it = {has_cubin, has_ptx};
    size_t size = 99;
    char code[128];
    memset(code, '.', sizeof code);
    int a = nvrtcGetCUBINSize(&it, &size), b = nvrtcGetCUBIN(&it, code);
    printf("%s: %d %zu %d %.8s\n", what, a, size, b, code + (code[0] == '\177'));
}
static void code(void)
{
    ask("both", 1, 1);
    ask("no cubin", 0, 1);
    ask("no PTX", 1, 0);
    size_t size;
    struct program it = {1, 1};
    printf("wrong: %d %d %d\n", nvrtcGetCUBINSize(0, &size), nvrtcGetCUBINSize(&it, 0), nvrtcGetCUBIN(0, 0));

    struct compiler *compiler;
    char text[] = ".version 8.0\nsome text", to[128];
    printf("compiler: %d %d", nvPTXCompilerCreate(&compiler, 0, text), nvPTXCompilerCreate(&compiler, sizeof text - 1, text));
    memset(text, '#', sizeof text - 1);
    printf(" %d", nvPTXCompilerGetCompiledProgramSize(compiler, &size));
    printf(" %d", nvPTXCompilerGetCompiledProgram(compiler, to));
    nvPTXCompilerCompile(compiler);
    memset(to, 0, sizeof to);
    printf(" %d %d", nvPTXCompilerGetCompiledProgramSize(compiler, &size), nvPTXCompilerGetCompiledProgram(compiler, to));
    printf(" %zu %s", size, to + (to[0] == '\177'));
    printf(" %d", nvPTXCompilerDestroy(&compiler));
    printf(" %d\n", nvPTXCompilerDestroy(&compiler));

    char fatbin[128] = "";
    printf("fatbin: %d", nvFatbinAddCubin(fatbin, "\177ELF", 4, "90", "elf"));
    printf(" %s", fatbin);
    printf(", %d", nvFatbinAddCubin(fatbin, ".version 8.0\n.target sm_90a\n", 29, "90", "text"));
    printf(" %s,", fatbin);
    printf(" %d", nvFatbinAddCubin(fatbin, ".version 8.0\n.target sm_90\n", 28, "80", "text"));
    printf(" %d\n", nvFatbinAddCubin(fatbin, "hello", 6, "80", "text"));
}

static void driver(const char *path)
{
    if (!dlopen(path, RTLD_NOW)) { puts(dlerror()); exit(1); }
}

static atomic_int is_over;
static void *use(void *unused)
{
    for (long i = 0; !is_over || i < 100; i++) {
        struct program *it = malloc(sizeof *it);
        it->has_cubin = it->has_ptx = 1;
        size_t size = 0;
        // As a compiler does, it is elsewhere in its code nearly all of the time.
        for (int n = 0; n < 20000; n++) if (nvrtcGetPTXSize(it, &size)) abort();
        if (nvrtcGetCUBINSize(it, &size) || !size) abort();
        char *to = malloc(size + 8);
        memset(to, 'x', size + 8);
        if (nvrtcGetCUBIN(it, to) || memcmp(to + size, "xxxxxxxx", 8) || to[size - 1]) abort();
        free(to);
        free(it);
    }
    return unused;
}

static int mapped(void)
{
    char line[512];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) n++;
    fclose(maps);
    return n;
}

int main(int n, char **words)
{
    int at = 1;
#ifdef OPENS
    open_it(words[at++]);
#endif
    for (; at < n; at++) {
        if (!strcmp(words[at], "code")) code();
        if (!strcmp(words[at], "unasked")) {
            struct program it = {1, 1};
            char to[128] = "";
            nvrtcGetCUBIN(&it, to);
            printf("unasked: %.8s\n", to + (to[0] == '\177'));
        }
        if (!strcmp(words[at], "late")) {
            struct program before = {1, 1};
            size_t size;
            char to[128] = "";
            nvrtcGetCUBINSize(&before, &size);
            driver(words[++at]);
            nvrtcGetCUBIN(&before, to);
            printf("asked before: %zu %.8s\n", size, to + (to[0] == '\177'));
        }
#ifdef OPENS
        if (!strcmp(words[at], "again")) {
            int before = 0;
            for (int i = atoi(words[++at]); i; i--) {
                dlclose(library);
                open_it(words[1]);
                if (!before) before = mapped();
            }
            printf("again: %s\n", mapped() > before + 2 ? "more and more is mapped" : "as before");
        }
#endif
        if (!strcmp(words[at], "threads")) {
            pthread_t threads[4];
            for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, use, 0);
            driver(words[++at]);
            is_over = 1;
            for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
            puts("threads: done");
        }
        if (!strcmp(words[at], "maps")) {
            char line[512];
            FILE *maps = fopen("/proc/self/maps", "r");
            while (fgets(line, sizeof line, maps)) if (strstr(line, "rwxp")) printf("%s", line);
            puts("maps: all");
        }
    }
    return 0;
}
