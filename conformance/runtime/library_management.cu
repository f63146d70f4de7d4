// CUDA Runtime API, "Library Management".
#include "../check.h"

#include <fcntl.h>

static const char PTX[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 number = 17;
.visible .entry put(.param .u64 to, .param .u32 value)
{
    .reg .b64 %a; .reg .b32 %v;
    ld.param.u64 %a, [to]; ld.param.u32 %v, [value];
    st.global.u32 [%a], %v;
    ret;
}
.visible .entry read_number(.param .u64 to)
{
    .reg .b64 %a; .reg .b32 %v;
    ld.param.u64 %a, [to]; ld.global.u32 %v, [number];
    st.global.u32 [%a], %v;
    ret;
}
)";

static cudaLibrary_t loaded()
{
    cudaLibrary_t library = nullptr;
    OK(cudaLibraryLoadData(&library, PTX, nullptr, nullptr, 0, nullptr, nullptr, 0));
    TRUE(library != nullptr);
    return library;
}

static int *memory()
{
    int *at = nullptr;
    OK(cudaMallocManaged(&at, 64));
    at[0] = -1;
    return at;
}

PROMISE(kernels_are_found_by_name_and_launched)
{
    cudaLibrary_t library = loaded();
    cudaKernel_t kernel = nullptr;
    OK(cudaLibraryGetKernel(&kernel, library, "put"));
    int *to = memory(), value = 5;
    void *arguments[] = {&to, &value};
    OK(cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(1), dim3(1), arguments, 0, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(*to, 5);
    OK(cudaLibraryUnload(library));
}

PROMISE(kernels_are_counted_and_listed)
{
    cudaLibrary_t library = loaded();
    unsigned count = 0;
    OK(cudaLibraryGetKernelCount(&count, library));
    SAME(count, 2);
    cudaKernel_t kernels[2] = {};
    OK(cudaLibraryEnumerateKernels(kernels, 2, library));
    TRUE(kernels[0] != nullptr && kernels[1] != nullptr && kernels[0] != kernels[1]);
    OK(cudaLibraryUnload(library));
}

PROMISE(variables_are_found_by_name)
{
    cudaLibrary_t library = loaded();
    void *at = nullptr;
    size_t bytes = 0;
    OK(cudaLibraryGetGlobal(&at, &bytes, library, "number"));
    SAME(bytes, 4);
    int value = 0;
    OK(cudaMemcpy(&value, at, 4, cudaMemcpyDeviceToHost));
    SAME(value, 17);
    value = 23;
    OK(cudaMemcpy(at, &value, 4, cudaMemcpyHostToDevice));
    cudaKernel_t kernel = nullptr;
    OK(cudaLibraryGetKernel(&kernel, library, "read_number"));
    int *to = memory();
    void *arguments[] = {&to};
    OK(cudaLaunchKernel(reinterpret_cast<const void *>(kernel), dim3(1), dim3(1), arguments, 0, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(*to, 23);
}

PROMISE(names_that_are_not_there_are_refused)
{
    cudaLibrary_t library = loaded();
    cudaKernel_t kernel = nullptr;
    IS(cudaLibraryGetKernel(&kernel, library, "nothing"), cudaErrorSymbolNotFound);
    void *at = nullptr;
    size_t bytes = 0;
    IS(cudaLibraryGetGlobal(&at, &bytes, library, "nothing"), cudaErrorSymbolNotFound);
}

PROMISE(what_is_no_code_is_an_error_when_some_of_it_is_needed)
{
    CUmoduleLoadingMode mode{};
    OK(cuInit(0));
    OK(cuModuleGetLoadingMode(&mode));
    cudaLibrary_t library = nullptr;
    const cudaError_t answer = cudaLibraryLoadData(&library, "no code at all", nullptr, nullptr, 0, nullptr, nullptr, 0);
    if (mode == CU_MODULE_EAGER_LOADING) {
        TRUE(answer != cudaSuccess);
        return;
    }
    OK(answer);
    cudaKernel_t kernel = nullptr;
    TRUE(cudaLibraryGetKernel(&kernel, library, "put") != cudaSuccess);
    OK(cudaLibraryUnload(library));
}

PROMISE(a_library_needs_a_place_and_code)
{
    cudaLibrary_t library = nullptr;
    IS(cudaLibraryLoadData(nullptr, PTX, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaErrorInvalidValue);
    IS(cudaLibraryLoadData(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0), cudaErrorInvalidValue);
}

PROMISE(a_library_is_loaded_from_a_file)
{
    char name[] = "/tmp/cudaway-library-XXXXXX";
    const int file = mkstemp(name);
    TRUE(write(file, PTX, sizeof PTX - 1) == sizeof PTX - 1);
    close(file);
    cudaLibrary_t library = nullptr;
    const cudaError_t answer = cudaLibraryLoadFromFile(&library, name, nullptr, nullptr, 0, nullptr, nullptr, 0);
    unlink(name);
    OK(answer);
    cudaKernel_t kernel = nullptr;
    OK(cudaLibraryGetKernel(&kernel, library, "put"));
    IS(cudaLibraryLoadFromFile(&library, "/nowhere/nothing.ptx", nullptr, nullptr, 0, nullptr, nullptr, 0),
       cudaErrorFileNotFound);
}
