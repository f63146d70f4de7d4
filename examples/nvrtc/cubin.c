/* NVRTC is asked for machine code of the device's own architecture, as NVIDIA's samples and many programs do, and what it gives is
   loaded, linked, packed by nvFatbin, and run. What NVRTC refuses, and what it makes no cubin of, stays so.

   cubin LIBNVRTC [LIBNVFATBIN]         the libraries are opened; with LATE set in the environment the driver after them
   cubin, built with -DLINKED           linked with libnvrtc and libcuda.so.1, with -DHAS_FATBIN=1 with libnvfatbin too

   Names and numbers are those of NVIDIA's headers, declared here so that none is needed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *Any;

#define NVRTC(X) \
    X(nvrtcVersion, (int *, int *)) \
    X(nvrtcCreateProgram, (Any *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcDestroyProgram, (Any *)) \
    X(nvrtcCompileProgram, (Any, int, const char *const *)) \
    X(nvrtcAddNameExpression, (Any, const char *)) \
    X(nvrtcGetLoweredName, (Any, const char *, const char **)) \
    X(nvrtcGetProgramLogSize, (Any, size_t *)) \
    X(nvrtcGetProgramLog, (Any, char *)) \
    X(nvrtcGetPTXSize, (Any, size_t *)) \
    X(nvrtcGetPTX, (Any, char *)) \
    X(nvrtcGetCUBINSize, (Any, size_t *)) \
    X(nvrtcGetCUBIN, (Any, char *))

#define NVFATBIN(X) \
    X(nvFatbinCreate, (Any *, const char **, size_t)) \
    X(nvFatbinDestroy, (Any *)) \
    X(nvFatbinAddCubin, (Any, const void *, size_t, const char *, const char *)) \
    X(nvFatbinSize, (Any, size_t *)) \
    X(nvFatbinGet, (Any, void *))

#define DRIVER(X) \
    X(cuInit, (unsigned)) \
    X(cuDeviceGetAttribute, (int *, int, int)) \
    X(cuDevicePrimaryCtxRetain, (Any *, int)) \
    X(cuCtxSetCurrent, (Any)) \
    X(cuModuleLoad, (Any *, const char *)) \
    X(cuModuleLoadData, (Any *, const void *)) \
    X(cuModuleUnload, (Any)) \
    X(cuModuleGetFunction, (Any *, Any, const char *)) \
    X(cuLinkCreate_v2, (unsigned, int *, Any *, Any *)) \
    X(cuLinkAddData_v2, (Any, int, void *, size_t, const char *, unsigned, int *, Any *)) \
    X(cuLinkComplete, (Any, Any *, size_t *)) \
    X(cuLinkDestroy, (Any)) \
    X(cuMemAlloc_v2, (uint64_t *, size_t)) \
    X(cuMemFree_v2, (uint64_t)) \
    X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t)) \
    X(cuLaunchKernel, (Any, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Any, void **, void **))

/* By the names that both releases' headers have for the first release of a major. */
#define NVJITLINK(X) \
    X(Create, (Any *, uint32_t, const char *const *)) \
    X(Destroy, (Any *)) \
    X(AddData, (Any, int, const void *, size_t, const char *)) \
    X(Complete, (Any)) \
    X(GetLinkedCubinSize, (Any, size_t *)) \
    X(GetLinkedCubin, (Any, void *))

#define POINTER(name, arguments) static int(*name) arguments;
#define EXTERN(name, arguments) extern int name arguments;
#define FIND(name, arguments) *(Any *)&name = find(library, #name);

static struct {
#define MEMBER(name, arguments) int(*name) arguments;
    NVJITLINK(MEMBER)
} nvJitLink;

static void fail(const char *what, int line)
{
    printf("FAILED in line %d: %s\n", line, what);
    fflush(stdout);
    _exit(1);
}
#define WANT(is) ((is) ? (void)0 : fail(#is, __LINE__))

static Any find(Any library, const char *name)
{
    Any found = dlsym(library, name);
    if (!found)
        fail(name, __LINE__);
    return found;
}

static Any opened(const char *path)
{
    Any library = dlopen(path, RTLD_NOW);
    if (!library)
        fail(dlerror(), __LINE__);
    return library;
}

#ifdef LINKED
NVRTC(EXTERN)
DRIVER(EXTERN)
#if HAS_FATBIN
NVFATBIN(EXTERN)
#else
NVFATBIN(POINTER)
#endif
static void open_all(int n, char **words)
{
    (void)n, (void)words;
}
#else
NVRTC(POINTER)
NVFATBIN(POINTER)
DRIVER(POINTER)
static int has_fatbin;
#define HAS_FATBIN has_fatbin

static void open_driver(void)
{
    Any library = opened("libcuda.so.1");
    DRIVER(FIND)
}

static void open_compilers(int n, char **words)
{
    WANT(n > 1);
    Any library = opened(words[1]);
    NVRTC(FIND)
    if ((has_fatbin = n > 2)) {
        library = opened(words[2]);
        NVFATBIN(FIND)
    }
}

static void open_all(int n, char **words)
{
    if (getenv("LATE")) {
        open_compilers(n, words);
        open_driver();
    } else {
        open_driver();
        open_compilers(n, words);
    }
}
#endif

static void open_nvjitlink(int major)
{
    char name[64];
    snprintf(name, sizeof name, "libnvJitLink.so.%d", major);
    Any library = opened(name);
#define OF_MAJOR(function, arguments) \
    snprintf(name, sizeof name, "__nvJitLink" #function "_%d_0", major); \
    *(Any *)&nvJitLink.function = find(library, name);
    NVJITLINK(OF_MAJOR)
}

enum { N = 64 };
enum { JIT_CUBIN = 0, JIT_OBJECT = 3, LINK_CUBIN = 1, LINK_ANY = 10 };
enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, COMPILATION = 6, ELF_ARCH_MISMATCH = 2 };

static char real_arch[64], virtual_arch[64], number[16];

/* A compiled program. */
struct Compiled {
    Any program;
    int status;
};

static struct Compiled compile(const char *source, const char *arch, const char *option, const char *expression)
{
    struct Compiled it;
    const char *options[] = {arch, option};
    WANT(nvrtcCreateProgram(&it.program, source, "test.cu", 0, NULL, NULL) == 0);
    if (expression)
        WANT(nvrtcAddNameExpression(it.program, expression) == 0);
    it.status = nvrtcCompileProgram(it.program, option ? 2 : 1, options);
    return it;
}

static size_t cubin_bytes(Any program)
{
    size_t size = 12345;
    WANT(nvrtcGetCUBINSize(program, &size) == 0);
    return size;
}

/* The cubin, and nothing written behind it. */
static char *cubin(Any program, size_t *bytes)
{
    size_t size = cubin_bytes(program);
    WANT(size > 0);
    char *code = malloc(size + 16);
    memset(code, 0x5a, size + 16);
    WANT(nvrtcGetCUBIN(program, code) == 0);
    for (int i = 0; i < 16; i++)
        WANT(code[size + i] == 0x5a);
    if (bytes)
        *bytes = size;
    return code;
}

static int is_elf(const char *image)
{
    return memcmp(image, "\177ELF", 4) == 0;
}

/* Launches a kernel that writes index * factor + 7. */
static void run(Any module, const char *name, int factor)
{
    Any function;
    uint64_t to;
    int got[N];
    WANT(cuModuleGetFunction(&function, module, name) == 0);
    WANT(cuMemAlloc_v2(&to, sizeof got) == 0);
    void *arguments[] = {&to, &factor};
    WANT(cuLaunchKernel(function, 2, 1, 1, N / 2, 1, 1, 0, NULL, arguments, NULL) == 0);
    WANT(cuMemcpyDtoH_v2(got, to, sizeof got) == 0);
    for (int i = 0; i < N; i++)
        WANT(got[i] == i * factor + 7);
    WANT(cuMemFree_v2(to) == 0);
    WANT(cuModuleUnload(module) == 0);
}

static void load_and_run(const void *image, const char *name)
{
    Any module;
    WANT(cuModuleLoadData(&module, image) == 0);
    run(module, name, 3);
}

static const char whole[] =
    "template <int ADD> __global__ void fill(int *to, int factor)\n"
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; to[i] = i * factor + ADD; }\n"
    "extern \"C\" __global__ void plain(int *to, int factor)\n"
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; to[i] = i * factor + 7; }\n";
static const char caller[] =
    "extern __device__ int line(int, int);\n"
    "extern \"C\" __global__ void ask(int *to, int factor)\n"
    "{ int i = blockIdx.x * blockDim.x + threadIdx.x; to[i] = line(i, factor); }\n";
static const char callee[] = "__device__ int line(int i, int factor) { return i * factor + 7; }\n";

static void a_cubin_is_loaded_and_run(void)
{
    const char *name;
    size_t bytes, ptx_bytes;
    struct Compiled it = compile(whole, real_arch, NULL, "fill<7>");
    WANT(it.status == 0);
    WANT(nvrtcGetLoweredName(it.program, "fill<7>", &name) == 0);
    char *image = cubin(it.program, &bytes);
    load_and_run(image, name);
    load_and_run(image, "plain");

    /* From a file, too. */
    char path[] = "/tmp/cubin-XXXXXX";
    int file = mkstemp(path);
    WANT(file >= 0 && write(file, image, bytes) == (ssize_t)bytes && close(file) == 0);
    Any module;
    WANT(cuModuleLoad(&module, path) == 0);
    run(module, "plain", -5);
    WANT(unlink(path) == 0);

    /* It is the PTX of the same compilation, which can be had as before. */
    WANT(nvrtcGetPTXSize(it.program, &ptx_bytes) == 0 && ptx_bytes == bytes);
    char *ptx = malloc(ptx_bytes);
    WANT(nvrtcGetPTX(it.program, ptx) == 0 && memcmp(ptx, image, bytes) == 0);
    WANT(nvrtcDestroyProgram(&it.program) == 0 && it.program == NULL);
    free(ptx);
    free(image);
}

static void where_nvrtc_makes_no_cubin_there_is_none(void)
{
    struct Compiled it = compile(whole, virtual_arch, NULL, NULL);
    char untouched[4] = "xyz";
    WANT(it.status == 0 && cubin_bytes(it.program) == 0);
    WANT(nvrtcGetCUBIN(it.program, untouched) == 0 && strcmp(untouched, "xyz") == 0);
    nvrtcDestroyProgram(&it.program);

    /* LTO IR alone. */
    it = compile(whole, real_arch, "-dlto", NULL);
    WANT(it.status == 0 && cubin_bytes(it.program) == 0);
    WANT(nvrtcGetCUBIN(it.program, untouched) == 0 && strcmp(untouched, "xyz") == 0);
    nvrtcDestroyProgram(&it.program);

    /* Mistakes: NVRTC's, and those that only its assembler finds. */
    it = compile("this is no C++\n", real_arch, NULL, NULL);
    WANT(it.status == COMPILATION && cubin_bytes(it.program) == 0);
    nvrtcDestroyProgram(&it.program);
    it = compile("__global__ void k() { asm(\"nonsense.u32 a, b;\"); }\n", real_arch, NULL, NULL);
    WANT(it.status == COMPILATION && cubin_bytes(it.program) == 0);
    size_t size;
    WANT(nvrtcGetProgramLogSize(it.program, &size) == 0 && size > 1);
    char *log = malloc(size);
    WANT(nvrtcGetProgramLog(it.program, log) == 0 && strstr(log, "nonsense"));
    free(log);
    nvrtcDestroyProgram(&it.program);

    /* Wrong calls. */
    WANT(nvrtcGetCUBINSize(NULL, &size) == INVALID_PROGRAM);
    WANT(nvrtcGetCUBIN(NULL, untouched) == INVALID_PROGRAM);
    it = compile(whole, real_arch, NULL, NULL);
    WANT(nvrtcGetCUBINSize(it.program, NULL) == INVALID_INPUT);
    WANT(nvrtcGetCUBIN(it.program, NULL) == INVALID_INPUT);
    nvrtcDestroyProgram(&it.program);
}

/* Relocatable cubins are put together by the driver, and by nvJitLink, whose cubin looks like one. */
static void cubins_are_linked(void)
{
    size_t bytes[2], size;
    char *parts[2];
    const char *sources[2] = {caller, callee};
    for (int i = 0; i < 2; i++) {
        struct Compiled it = compile(sources[i], real_arch, "-dc", NULL);
        WANT(it.status == 0);
        parts[i] = cubin(it.program, &bytes[i]);
        nvrtcDestroyProgram(&it.program);
    }
    Any link, image;
    WANT(cuLinkCreate_v2(0, NULL, NULL, &link) == 0);
    for (int i = 0; i < 2; i++)
        WANT(cuLinkAddData_v2(link, JIT_CUBIN, parts[i], bytes[i], "part", 0, NULL, NULL) == 0);
    WANT(cuLinkComplete(link, &image, &size) == 0 && is_elf(image));
    load_and_run(image, "ask");
    WANT(cuLinkDestroy(link) == 0);

    if (!nvJitLink.Create)
        return;
    const char *options[] = {real_arch};
    WANT(nvJitLink.Create(&link, 1, options) == 0);
    WANT(nvJitLink.AddData(link, LINK_CUBIN, parts[0], bytes[0], "caller") == 0);
    WANT(nvJitLink.AddData(link, LINK_ANY, parts[1], bytes[1], "callee") == 0);
    WANT(nvJitLink.Complete(link) == 0 && nvJitLink.GetLinkedCubinSize(link, &size) == 0);
    char *linked = malloc(size);
    WANT(nvJitLink.GetLinkedCubin(link, linked) == 0 && is_elf(linked));
    WANT(nvJitLink.Destroy(&link) == 0);
    load_and_run(linked, "ask");

    /* What was linked is a cubin to the next link, and to nvFatbin. */
    WANT(cuLinkCreate_v2(0, NULL, NULL, &link) == 0);
    WANT(cuLinkAddData_v2(link, JIT_CUBIN, linked, size, "linked", 0, NULL, NULL) == 0);
    WANT(cuLinkComplete(link, &image, NULL) == 0);
    load_and_run(image, "ask");
    WANT(cuLinkDestroy(link) == 0);
    if (HAS_FATBIN) {
        Any fatbin;
        WANT(nvFatbinCreate(&fatbin, NULL, 0) == 0);
        WANT(nvFatbinAddCubin(fatbin, linked, size, number, "linked") == 0);
        WANT(nvFatbinSize(fatbin, &size) == 0);
        image = malloc(size);
        WANT(nvFatbinGet(fatbin, image) == 0 && nvFatbinDestroy(&fatbin) == 0);
        load_and_run(image, "ask");
        free(image);
    }
    for (int i = 0; i < 2; i++)
        free(parts[i]);
    free(linked);
}

static void a_cubin_is_packed(void)
{
    size_t bytes, size;
    Any fatbin;
    struct Compiled it = compile(whole, real_arch, NULL, NULL);
    WANT(it.status == 0);
    char *code = cubin(it.program, &bytes);
    nvrtcDestroyProgram(&it.program);
    WANT(nvFatbinCreate(&fatbin, NULL, 0) == 0);
    WANT(nvFatbinAddCubin(fatbin, code, bytes, number, "whole") == 0);
    WANT(nvFatbinSize(fatbin, &size) == 0);
    char *image = malloc(size);
    WANT(nvFatbinGet(fatbin, image) == 0 && nvFatbinDestroy(&fatbin) == 0);
    load_and_run(image, "plain");

    /* What is no cubin, or one of another architecture, is refused as before. */
    WANT(nvFatbinCreate(&fatbin, NULL, 0) == 0);
    WANT(nvFatbinAddCubin(fatbin, "hello", 6, number, "hello") != 0);
    WANT(nvFatbinAddCubin(fatbin, code, bytes, "75", "other") == ELF_ARCH_MISMATCH);
    WANT(nvFatbinAddCubin(fatbin, code, bytes, "none", "other") != 0);
    WANT(nvFatbinAddCubin(fatbin, code, 0, number, "empty") != 0);
    WANT(nvFatbinDestroy(&fatbin) == 0);
    free(code);
    free(image);
}

static void *many(void *own)
{
    char source[256];
    for (int i = 0; i < 4; i++) {
        snprintf(source, sizeof source, "extern \"C\" __global__ void of_%d_%d(int *to) { *to = %d; }\n",
                 *(int *)own, i, i);
        struct Compiled it = compile(source, real_arch, NULL, NULL);
        WANT(it.status == 0);
        char *code = cubin(it.program, NULL), name[32];
        snprintf(name, sizeof name, "of_%d_%d", *(int *)own, i);
        WANT(strstr(code, name));
        nvrtcDestroyProgram(&it.program);
        free(code);
    }
    return NULL;
}

int main(int n, char **words)
{
    int major, minor, nvrtc_major, threads[4];
    pthread_t ids[4];
    Any context;
    open_all(n, words);
    WANT(cuInit(0) == 0);
    WANT(cuDeviceGetAttribute(&major, 75, 0) == 0 && cuDeviceGetAttribute(&minor, 76, 0) == 0);
    WANT(cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0);
    snprintf(number, sizeof number, "%d%d", major, minor);
    snprintf(real_arch, sizeof real_arch, "-arch=sm_%s", number);
    snprintf(virtual_arch, sizeof virtual_arch, "-arch=compute_%s", number);
    WANT(nvrtcVersion(&nvrtc_major, &minor) == 0);
    if (nvrtc_major > 11)
        open_nvjitlink(nvrtc_major);

    a_cubin_is_loaded_and_run();
    where_nvrtc_makes_no_cubin_there_is_none();
    cubins_are_linked();
    if (HAS_FATBIN)
        a_cubin_is_packed();
    for (int i = 0; i < 4; i++) {
        threads[i] = i;
        WANT(pthread_create(&ids[i], NULL, many, &threads[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    printf("NVRTC %d\nPASSED\n", nvrtc_major);
    return 0;
}
