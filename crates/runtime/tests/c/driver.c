// A driver of our own for the tests: its memory is the heap, its one kernel is known by name, and it writes down the calls.
// The prototypes are CUDA's public ones; only what the runtime calls in the tests is here.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long ptr_t;
static char trace[65536];
static int n_devices = 2, driver_version = 13050, image_error = 0;
static __thread void *current;
static int contexts[2];
// As NVIDIA's: a primary context that was reset is destroyed where it is current, until it is retained once more.
static int is_destroyed[2];
#define ALIVE() do { if (current && is_destroyed[(int *)current - contexts]) return 709; } while (0)
static char library, kernel_add;
static int global_word;
static int managed_word;

static void note(const char *name) {
    if (strlen(trace) + strlen(name) + 2 < sizeof trace) { strcat(trace, name); strcat(trace, " "); }
}
#define NOTE() note(__func__)

const char *test_trace(void) { return trace; }
void test_clear(void) { trace[0] = 0; }
void test_devices(int n) { n_devices = n; }
void test_image_error(int error) { image_error = error; }

int cuDriverGetVersion(int *v) { *v = driver_version; return 0; }
int cuInit(unsigned flags) { NOTE(); return n_devices ? 0 : 100; }
int cuDeviceGetCount(int *n) { *n = n_devices; return 0; }
int cuDeviceGet(int *d, int ordinal) { if (ordinal >= n_devices) return 101; *d = ordinal; return 0; }
int cuDeviceGetName(char *name, int len, int d) { snprintf(name, len, "Test device %d", d); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int d) { *bytes = 8ull << 30; return 0; }
int cuDeviceGetUuid_v2(char *uuid, int d) { for (int i = 0; i < 16; i++) uuid[i] = (char)(i + d); return 0; }
// An attribute's value is 1000 + its number, but for the launch limits.
int cuDeviceGetAttribute(int *v, int a, int d) {
    switch (a) {
    case 1: case 2: case 3: *v = a == 4 ? 64 : 1024; return 0;
    case 4: *v = 64; return 0;
    case 5: *v = 2147483647; return 0;
    case 6: case 7: *v = 65535; return 0;
    default: *v = 1000 + a; return a > 150;
    }
}
int cuDevicePrimaryCtxRetain(void **c, int d) { NOTE(); is_destroyed[d] = 0; *c = &contexts[d]; return 0; }
int cuDevicePrimaryCtxReset_v2(int d) { NOTE(); is_destroyed[d] = 1; return 0; }
int cuCtxGetCurrent(void **c) { *c = current; return 0; }
int cuCtxSetCurrent(void *c) { NOTE(); current = c; return 0; }
int cuCtxGetDevice(int *d) { ALIVE(); if (!current) return 201; *d = (int)((int *)current - contexts); return 0; }
int cuCtxSynchronize(void) { NOTE(); return 0; }
int cuMemAlloc_v2(ptr_t *p, size_t n) { NOTE(); ALIVE(); if (n == 0) return 1; if (n > 1ull << 40) return 2; *p = (ptr_t)malloc(n); return 0; }
int cuMemFree_v2(ptr_t p) { NOTE(); free((void *)p); return 0; }
int cuMemcpyHtoD_v2(ptr_t d, const void *s, size_t n) { NOTE(); if (!d || !s) return 1; memcpy((void *)d, s, n); return 0; }
int cuMemcpyDtoH_v2(void *d, ptr_t s, size_t n) { NOTE(); if (!d || !s) return 1; memcpy(d, (void *)s, n); return 0; }
int cuMemcpyDtoD_v2(ptr_t d, ptr_t s, size_t n) { NOTE(); memcpy((void *)d, (void *)s, n); return 0; }
int cuMemcpy(ptr_t d, ptr_t s, size_t n) { NOTE(); memcpy((void *)d, (void *)s, n); return 0; }
int cuMemcpyHtoDAsync_v2(ptr_t d, const void *s, size_t n, void *stream) {
    note(stream == (void *)2 ? "cuMemcpyHtoDAsync_v2(per-thread)" : "cuMemcpyHtoDAsync_v2"); memcpy((void *)d, s, n); return 0;
}
int cuMemcpyDtoHAsync_v2(void *d, ptr_t s, size_t n, void *stream) { NOTE(); memcpy(d, (void *)s, n); return 0; }
int cuMemcpyDtoDAsync_v2(ptr_t d, ptr_t s, size_t n, void *stream) { NOTE(); memmove((void *)d, (void *)s, n); return 0; }
int cuMemcpyAsync(ptr_t d, ptr_t s, size_t n, void *stream) { NOTE(); memmove((void *)d, (void *)s, n); return 0; }
int cuMemsetD8_v2(ptr_t d, unsigned char c, size_t n) { NOTE(); memset((void *)d, c, n); return 0; }
int cuMemsetD8_v2_ptds(ptr_t d, unsigned char c, size_t n) { NOTE(); memset((void *)d, c, n); return 0; }
int cuMemsetD8Async(ptr_t d, unsigned char c, size_t n, void *stream) { NOTE(); memset((void *)d, c, n); return 0; }
int cuMemsetD2D8_v2_ptds(ptr_t d, size_t pitch, unsigned char c, size_t w, size_t h) {
    NOTE(); for (size_t y = 0; y < h; y++) memset((char *)d + y * pitch, c, w); return 0;
}
int cuEventRecord(void *e, void *stream) { NOTE(); return 0; }
int cuEventQuery(void *e) { NOTE(); return 0; }
int cuEventSynchronize(void *e) { NOTE(); return 0; }
int cuEventElapsedTime(float *ms, void *a, void *b) { NOTE(); *ms = 1; return 0; }
int cuStreamWaitEvent(void *stream, void *e, unsigned flags) { NOTE(); return 0; }
int cuGraphLaunch(void *exec, void *stream) { NOTE(); return 0; }
int cuLaunchKernelEx(const void *config, void *f, void **args, void **extra) { NOTE(); return 0; }
int cuStreamSynchronize(void *stream) { NOTE(); return 0; }
int cuStreamQuery(void *stream) { NOTE(); return 600; }
int cuLibraryLoadData(void **l, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
    NOTE();
    if (image_error) return image_error;
    if (*(const uint32_t *)code != 0x466243b1) return 200;
    *l = &library; return 0;
}
int cuLibraryUnload(void *l) { NOTE(); return 0; }
int cuLibraryGetKernel(void **k, void *l, const char *name) { NOTE(); if (strcmp(name, "add")) return 500; *k = &kernel_add; return 0; }
int cuLibraryGetGlobal(ptr_t *p, size_t *n, void *l, const char *name) {
    NOTE(); if (strcmp(name, "word")) return 500; *p = (ptr_t)&global_word; *n = 4; return 0;
}
int cuLibraryGetManaged(ptr_t *p, size_t *n, void *l, const char *name) {
    NOTE(); if (strcmp(name, "managed")) return 500; *p = (ptr_t)&managed_word; *n = 4; return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **args, void **extra) {
    note(stream == (void *)2 ? "cuLaunchKernel(per-thread)" : "cuLaunchKernel");
    if (f != &kernel_add) return 400;
    if (!gx || !gy || !gz || !bx || !by || !bz || gy > 65535 || bx * by * bz > 1024) return 1;
    const int *a = *(const int **)args[0], *b = *(const int **)args[1];
    int *c = *(int **)args[2], n = *(int *)args[3];
    for (unsigned i = 0; i < gx * bx && (int)i < n; i++) c[i] = a[i] + b[i];
    return 0;
}

// Graphs: one node of each type is remembered.
static char graph, node, exec;
static unsigned char kernel_node[72], copy_node[200];
int cuGraphCreate(void **g, unsigned flags) { NOTE(); *g = &graph; return 0; }
int cuGraphAddKernelNode_v2(void **n, void *g, void **deps, size_t n_deps, const void *params) {
    NOTE(); memcpy(kernel_node, params, sizeof kernel_node); *n = &node; return 0;
}
int cuGraphKernelNodeGetParams_v2(void *n, void *params) { NOTE(); memcpy(params, kernel_node, sizeof kernel_node); return 0; }
int cuGraphKernelNodeCopyAttributes(void *dst, void *src) { note(dst == &node ? "copy_to_node" : "copy_from_node"); return 0; }
int cuGraphAddMemcpyNode(void **n, void *g, void **deps, size_t n_deps, const void *params, void *ctx) {
    NOTE(); if (ctx != current) return 1; memcpy(copy_node, params, sizeof copy_node); *n = &node; return 0;
}
int cuGraphMemcpyNodeGetParams(void *n, void *params) { NOTE(); memcpy(params, copy_node, sizeof copy_node); return 0; }
int cuGraphInstantiateWithFlags(void **e, void *g, unsigned long long flags) { NOTE(); *e = &exec; return 0; }
int cuGraphExecUpdate_v2(void *e, void *g, void *info) {
    NOTE(); struct { int result; void *node, *from; } refused = {3, &node, 0}; memcpy(info, &refused, sizeof refused); return 910;
}
int cuGraphAddDependencies(void *g, void **from, void **to, size_t n) { NOTE(); return 0; }
int cuGraphAddDependencies_v2(void *g, void **from, void **to, const void *data, size_t n) { NOTE(); return 0; }
int cuGraphAddNode(void **n, void *g, void **deps, size_t n_deps, char *params) {
    NOTE();
    // A conditional node: its context behind handle, type, size and the bodies' array, which is an answer.
    static void *bodies[1] = {&graph};
    if (*(int *)params != 13 || *(void **)(params + 16 + 24) != current) return 1;
    *(void ***)(params + 16 + 16) = bodies;
    *n = &node; return 0;
}
int cuStreamGetCaptureInfo_v2(void *s, int *status, unsigned long long *id, void **g, void *deps, size_t *n) {
    note(deps ? "info_with_nodes" : "info"); *status = 1; *id = 42; *g = &graph; *n = 0; return 0;
}
int cuStreamBeginCapture_v2(void *s, int mode) { note(s == (void *)2 ? "begin(per-thread)" : "begin"); return 0; }
int cuStreamEndCapture(void *s, void **g) { NOTE(); *g = &graph; return 904; }
