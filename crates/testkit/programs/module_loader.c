/* Loads a module file through libcuda.so.1, as a program with its own PTX does, and says what each call answered.
 *
 *   module_loader FILE [KERNEL...]     loads, asks for each kernel, launches it with one pointer to 32 ints
 *   module_loader --exact FILE         only loads, from memory that ends where the file ends: one byte too far faults
 *
 * Plain C against the documented ABI, so it needs no CUDA headers. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        printf("dlsym %s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

#define CALL(name, types) ((int (*) types)function(#name))

/* The file at the very end of a mapping whose next page cannot be read. */
static void *read_exact(FILE *file, size_t length)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (length + page - 1) / page * page;
    char *base = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + pages, page, PROT_NONE) != 0)
        return NULL;
    char *at = base + pages - length;
    return fread(at, 1, length, file) == length ? at : NULL;
}

int main(int argc, char **argv)
{
    const int exact = argc > 2 && strcmp(argv[1], "--exact") == 0;
    const char *path = argc > 1 + exact ? argv[1 + exact] : NULL;
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) {
        printf("cannot read %s\n", path ? path : "(no file)");
        return 2;
    }
    fseek(file, 0, SEEK_END);
    const size_t length = (size_t)ftell(file);
    rewind(file);
    char *image = exact ? read_exact(file, length) : calloc(1, length + 1);
    if (!image || (!exact && fread(image, 1, length, file) != length)) {
        printf("cannot read %s\n", path);
        return 2;
    }

    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        printf("%s\n", dlerror());
        return 2;
    }
    int device = 0, result = CALL(cuInit, (unsigned))(0);
    void *context = NULL, *module = NULL;
    if (result == 0)
        result = CALL(cuDeviceGet, (int *, int))(&device, 0);
    if (result == 0)
        result = CALL(cuDevicePrimaryCtxRetain, (void **, int))(&context, device);
    if (result == 0)
        result = CALL(cuCtxSetCurrent, (void *))(context);
    if (result != 0) {
        printf("no context: %d\n", result);
        return 2;
    }

    static char log[16384];
    int options[] = {5, 6}; /* CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES */
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    result = CALL(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))(&module, image, 2, options, values);
    printf("load %d\n", result);
    log[sizeof log - 1] = '\0';
    printf("log %s\n", log[0] ? log : "(empty)");
    for (int i = 2; result == 0 && !exact && i < argc; i++) {
        void *kernel = NULL;
        int answer = CALL(cuModuleGetFunction, (void **, void *, const char *))(&kernel, module, argv[i]);
        printf("function %s %d\n", argv[i], answer);
        if (answer != 0)
            continue;
        uint64_t memory = 0;
        int numbers[32];
        memset(numbers, 0xff, sizeof numbers);
        void *parameters[] = {&memory};
        answer = CALL(cuMemAlloc_v2, (uint64_t *, size_t))(&memory, sizeof numbers);
        if (answer == 0)
            answer = CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))(memory, numbers, sizeof numbers);
        if (answer == 0)
            answer = CALL(cuLaunchKernel, (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))(
                kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
        if (answer == 0)
            answer = CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))(numbers, memory, sizeof numbers);
        printf("launch %s %d:", argv[i], answer);
        for (int lane = 0; answer == 0 && lane < 32; lane++)
            printf(" %d", numbers[lane]);
        printf("\n");
    }
    if (module)
        printf("unload %d\n", CALL(cuModuleUnload, (void *))(module));
    return 0;
}
