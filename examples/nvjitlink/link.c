/* nvJitLink by the names of one release (-DRELEASE=12_4): two PTX texts are linked and run, and what cannot be linked is told.
   Names and numbers are those of nvJitLink.h and cuda.h, declared here so that neither is needed. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN3(name, release) __nvJitLink##name##_##release
#define JOIN2(name, release) JOIN3(name, release)
#define LINK(name) JOIN2(name, RELEASE)

typedef struct nvJitLink *Handle;
extern int LINK(Create)(Handle *, uint32_t, const char *const *);
extern int LINK(Destroy)(Handle *);
extern int LINK(AddData)(Handle, int, const void *, size_t, const char *);
extern int LINK(AddFile)(Handle, int, const char *);
extern int LINK(Complete)(Handle);
extern int LINK(GetLinkedCubinSize)(Handle, size_t *);
extern int LINK(GetLinkedCubin)(Handle, void *);
extern int LINK(GetLinkedPtxSize)(Handle, size_t *);
extern int LINK(GetErrorLogSize)(Handle, size_t *);
extern int LINK(GetErrorLog)(Handle, char *);
extern int nvJitLinkVersion(unsigned *, unsigned *);

extern int cuInit(unsigned);
extern int cuDevicePrimaryCtxRetain(void **, int);
extern int cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *);
extern int cuModuleGetFunction(void **, void *, const char *);
extern int cuMemAlloc_v2(uint64_t *, size_t);
extern int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

enum { PTX = 2, LTOIR = 3, FATBIN = 4 };
enum { MISSING_ARCH = 2, INVALID_INPUT = 3, PTX_COMPILE = 4, NVVM_COMPILE = 5, INTERNAL = 6 };

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
static const char caller[] = HEAD
    ".extern .func (.param .b32 r) answer();\n"
    ".visible .entry ask(.param .u64 to) {\n"
    " .reg .b64 %to; .reg .b32 %x; .param .b32 r;\n"
    " call (r), answer;\n ld.param.b32 %x, [r];\n ld.param.u64 %to, [to];\n st.global.u32 [%to], %x;\n ret;\n}\n";
static const char callee[] = HEAD
    ".visible .func (.param .b32 r) answer() {\n st.param.b32 [r], 42;\n ret;\n}\n";

static void want(int is, const char *what, int line) {
    if (!is) {
        printf("FAILED in line %d: %s\n", line, what);
        exit(1);
    }
}
#define WANT(is) want((is), #is, __LINE__)

static Handle create(void) {
    const char *options[] = {"-arch=sm_80", "-O3"};
    Handle link = NULL;
    WANT(LINK(Create)(&link, 2, options) == 0);
    return link;
}

/* The log says `words`, and its size counts the zero behind it. */
static int says(Handle link, const char *words) {
    size_t size = 0;
    WANT(LINK(GetErrorLogSize)(link, &size) == 0 && size > 0);
    char *log = malloc(size);
    WANT(LINK(GetErrorLog)(link, log) == 0);
    WANT(strlen(log) + 1 == size);
    int found = strstr(log, words) != NULL;
    if (!found) printf("the log is: %s", log);
    free(log);
    return found;
}

static void linked_and_run(void) {
    Handle link = create();
    size_t size = 0;
    WANT(LINK(GetErrorLogSize)(link, &size) == 0 && size == 0);
    WANT(LINK(AddData)(link, PTX, caller, strlen(caller), "caller") == 0);
    /* With its zero, too. */
    WANT(LINK(AddData)(link, PTX, callee, sizeof callee, NULL) == 0);
    WANT(LINK(GetLinkedCubinSize)(link, &size) == INTERNAL);
    WANT(LINK(Complete)(link) == 0);
    WANT(LINK(Complete)(link) == INTERNAL);
    WANT(LINK(GetLinkedPtxSize)(link, &size) == INVALID_INPUT);
    WANT(LINK(GetLinkedCubinSize)(link, &size) == 0 && size > 0);
    char *cubin = malloc(size);
    WANT(LINK(GetLinkedCubin)(link, cubin) == 0);
    WANT(LINK(Destroy)(&link) == 0 && link == NULL);

    void *context, *module, *function;
    uint64_t memory;
    unsigned answer = 0;
    WANT(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0);
    WANT(cuModuleLoadData(&module, cubin) == 0);
    free(cubin);
    WANT(cuModuleGetFunction(&function, module, "ask") == 0);
    WANT(cuMemAlloc_v2(&memory, sizeof answer) == 0);
    void *arguments[] = {&memory};
    WANT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL) == 0);
    WANT(cuMemcpyDtoH_v2(&answer, memory, sizeof answer) == 0);
    WANT(answer == 42);
}

static void refused(void) {
    Handle link = create();
    WANT(LINK(AddData)(link, LTOIR, "BC\xc0\xde and more", 13, "intermediate") == NVVM_COMPILE);
    WANT(says(link, "LTO IR") && says(link, "intermediate"));
    WANT(LINK(Destroy)(&link) == 0);

    link = create();
    WANT(LINK(AddData)(link, PTX, caller, strlen(caller), "caller") == 0);
    WANT(LINK(Complete)(link) == INTERNAL);
    WANT(says(link, "'answer'"));
    WANT(LINK(Destroy)(&link) == 0);

    link = create();
    const char mistake[] = HEAD ".visible .entry k() {\n no.such;\n ret;\n}\n";
    WANT(LINK(AddData)(link, PTX, mistake, strlen(mistake), "mistake") == PTX_COMPILE);
    WANT(says(link, "line 5; error"));
    WANT(LINK(AddFile)(link, PTX, "/no/such.ptx") == INVALID_INPUT);
    WANT(says(link, "/no/such.ptx"));
    WANT(LINK(Destroy)(&link) == 0);

    link = NULL;
    WANT(LINK(Create)(&link, 0, NULL) == MISSING_ARCH);
}

int main(void) {
    unsigned major = 0, minor = 0;
    WANT(nvJitLinkVersion(&major, &minor) == 0 && major == 12);
    linked_and_run();
    refused();
    puts("PASSED");
    return 0;
}
