/* Runs a kernel by the driver, and asks the libraries for their versions: what a program with more rights than its
   user has might do. Prints what the kernel wrote. */
#include <dlfcn.h>
#include <stdio.h>

typedef int (*Init)(unsigned), (*Get)(int *, int), (*Retain)(void **, int), (*Current)(void *), (*Load)(void **, const void *),
    (*Function)(void **, void *, const char *), (*Allocate)(unsigned long *, unsigned long), (*Synchronize)(void),
    (*Copy)(void *, unsigned long, unsigned long),
    (*Launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);

static const char PTX[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                          ".visible .entry answer(.param .u64 p)\n{\n.reg .u64 %a;\n.reg .u32 %x;\n"
                          "ld.param.u64 %a, [p];\nmov.u32 %x, %ntid.x;\nmul.lo.u32 %x, %x, 42;\nst.global.u32 [%a], %x;\nret;\n}\n";

static void ask_version(const char *file, const char *name) {
    void *library = dlopen(file, RTLD_NOW);
    int (*property)(int, int *) = library ? (int (*)(int, int *))dlsym(library, name) : 0;
    int value[2] = {0, 0};
    if (property)
        property(0, value);
    else
        printf("%s is missing\n", file);
}

#define CALL(type, name, ...)                                                                                                      \
    do {                                                                                                                           \
        int status = ((type)dlsym(cuda, #name))(__VA_ARGS__);                                                                      \
        if (status)                                                                                                                \
            return printf(#name " answers %d\n", status), 1;                                                                       \
    } while (0)

int main(void) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *function;
    if (!cuda)
        return printf("%s\n", dlerror()), 1;
    int device, answer = 0;
    unsigned long address;
    CALL(Init, cuInit, 0);
    CALL(Get, cuDeviceGet, &device, 0);
    CALL(Retain, cuDevicePrimaryCtxRetain, &context, device);
    CALL(Current, cuCtxSetCurrent, context);
    CALL(Load, cuModuleLoadData, &module, PTX);
    CALL(Function, cuModuleGetFunction, &function, module, "answer");
    CALL(Allocate, cuMemAlloc_v2, &address, 4);
    void *parameters[] = {&address};
    CALL(Launch, cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0);
    CALL(Synchronize, cuCtxSynchronize);
    CALL(Copy, cuMemcpyDtoH_v2, &answer, address, 4);
    ask_version("libcublas.so.12", "cublasGetProperty");
    ask_version("libcublasLt.so.12", "cublasLtGetProperty");
    ask_version("libcudnn.so.9", "cudnnGetProperty");
    ask_version("libcufft.so.11", "cufftGetProperty");
    ask_version("libcurand.so.10", "curandGetProperty");
    ask_version("libcusolver.so.11", "cusolverGetProperty");
    ask_version("libcusparse.so.12", "cusparseGetProperty");
    ask_version("libnvJitLink.so.12", "nvJitLinkVersion");
    printf("the answer is %d\n", answer);
    return answer != 42;
}
