/* Loads FILE through libcuda.so.1 and does one thing with its kernel k, which takes a pointer to 32 ints:
 *
 *   launch   launches it with 32 threads
 *   launch_N the same N times
 *   wait     only waits, for as many seconds as SECONDS says, or two
 *   graph    instantiates a graph with such a launch, and waits
 *   unload   unloads the module at once, and waits */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *cuda;

#define CALL(name, types, ...)                                                                                                     \
    do {                                                                                                                           \
        int status = ((int(*) types)dlsym(cuda, #name))(__VA_ARGS__);                                                              \
        if (status)                                                                                                                \
            return printf(#name " answers %d\n", status), 1;                                                                       \
    } while (0)

/* CUDA_KERNEL_NODE_PARAMS of CUDA 11, which the call without a suffix takes. */
struct Node {
    void *func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
};

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    static char text[1 << 20];
    FILE *file = fopen(argv[1], "r");
    if (!file || !fread(text, 1, sizeof text - 1, file))
        return 2;
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda)
        return printf("%s\n", dlerror()), 2;
    void *context, *module, *function, *graph, *node, *exec;
    int device, out[32];
    unsigned long address;
    CALL(cuInit, (unsigned), 0);
    CALL(cuDeviceGet, (int *, int), &device, 0);
    CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, device);
    CALL(cuCtxSetCurrent, (void *), context);
    CALL(cuMemAlloc_v2, (unsigned long *, unsigned long), &address, sizeof out);
    CALL(cuModuleLoadData, (void **, const void *), &module, text);
    void *params[] = {&address};
    const int launches = !strcmp(argv[2], "launch") ? 1 : !strncmp(argv[2], "launch_", 7) ? atoi(argv[2] + 7) : 0;
    if (launches || !strcmp(argv[2], "graph"))
        CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module, "k");
    for (int nth = 0; nth < launches; nth++)
        CALL(cuLaunchKernel,
             (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), function, 1,
             1, 1, 32, 1, 1, 0, 0, params, 0);
    if (launches) {
        CALL(cuCtxSynchronize, (void));
        CALL(cuMemcpyDtoH_v2, (void *, unsigned long, unsigned long), out, address, sizeof out);
        return printf("%d\n", out[31]), 0;
    }
    if (!strcmp(argv[2], "graph")) {
        struct Node launch = {function, {1, 1, 1}, {32, 1, 1}, 0, params, 0};
        CALL(cuGraphCreate, (void **, unsigned), &graph, 0);
        CALL(cuGraphAddKernelNode, (void **, void *, void **, size_t, struct Node *), &node, graph, 0, 0, &launch);
        CALL(cuGraphInstantiateWithFlags, (void **, void *, unsigned long), &exec, graph, 0);
    }
    if (!strcmp(argv[2], "unload"))
        CALL(cuModuleUnload, (void *), module);
    const char *seconds = getenv("SECONDS");
    sleep(seconds ? atoi(seconds) : 2);
    return printf("waited\n"), 0;
}
