// CUDA Driver API, "Library Management".
#include "../device.h"

static CUlibrary library()
{
    CUlibrary loaded;
    OK(cuLibraryLoadData(&loaded, PTX, nullptr, nullptr, 0, nullptr, nullptr, 0));
    return loaded;
}

static CUkernel kernel_of(const char *name)
{
    CUkernel kernel;
    OK(cuLibraryGetKernel(&kernel, library(), name));
    return kernel;
}

PROMISE(a_library_and_its_kernels_need_no_context)
{
    OK(cuInit(0));
    CUlibrary loaded = library();
    CUkernel kernel = nullptr;
    OK(cuLibraryGetKernel(&kernel, loaded, "store"));
    TRUE(kernel != nullptr);
    IS(cuLibraryGetKernel(&kernel, loaded, "missing"), CUDA_ERROR_NOT_FOUND);
    OK(cuLibraryUnload(loaded));
}

PROMISE(a_function_of_a_kernel_belongs_to_the_current_context)
{
    OK(cuInit(0));
    CUkernel kernel = kernel_of("store");
    CUfunction function;
    IS(cuKernelGetFunction(&function, kernel), CUDA_ERROR_INVALID_CONTEXT);
    start();
    OK(cuKernelGetFunction(&function, kernel));
    CUdeviceptr word = allocate(4);
    launch(function, word, 9);
    SAME(word_at(word), 9);
}

PROMISE(a_kernel_is_launched_without_asking_for_its_function)
{
    start();
    CUdeviceptr word = allocate(4);
    launch(reinterpret_cast<CUfunction>(kernel_of("store")), word, 11);
    SAME(word_at(word), 11);
}

PROMISE(kernels_are_counted_listed_and_named)
{
    OK(cuInit(0));
    CUlibrary loaded = library();
    unsigned count = 0;
    OK(cuLibraryGetKernelCount(&count, loaded));
    SAME(count, 3);
    CUkernel kernels[3] = {};
    OK(cuLibraryEnumerateKernels(kernels, 3, loaded));
    std::string names;
    for (CUkernel kernel : kernels) {
        const char *name = nullptr;
        OK(cuKernelGetName(&name, kernel));
        names += name + std::string(" ");
        CUlibrary owner = nullptr;
        OK(cuKernelGetLibrary(&owner, kernel));
        TRUE(owner == loaded);
    }
    for (const char *name : {"nothing ", "store ", "add "})
        TRUE(names.find(name) != std::string::npos);
}

PROMISE(parameters_have_offsets_and_sizes)
{
    OK(cuInit(0));
    CUkernel kernel = kernel_of("store");
    size_t offset = 99, size = 99;
    // The manual asks for no context; NVIDIA's driver loads the code for the answer and wants one.
    const CUresult without = cuKernelGetParamInfo(kernel, 0, &offset, &size);
    TRUE(without == CUDA_SUCCESS || without == CUDA_ERROR_INVALID_CONTEXT);
    start();
    OK(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    SAME(offset, 0);
    SAME(size, 8);
    OK(cuKernelGetParamInfo(kernel, 1, &offset, &size));
    SAME(offset, 8);
    SAME(size, 4);
    OK(cuKernelGetParamInfo(kernel, 1, &offset, nullptr));
    IS(cuKernelGetParamInfo(kernel, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(globals_are_those_of_the_current_context)
{
    OK(cuInit(0));
    CUlibrary loaded = library();
    CUdeviceptr first = 0, second = 0;
    size_t size = 0;
    IS(cuLibraryGetGlobal(&first, &size, loaded, "word"), CUDA_ERROR_INVALID_CONTEXT);
    create_context();
    OK(cuLibraryGetGlobal(&first, &size, loaded, "word"));
    SAME(size, 4);
    SAME(word_at(first), 7);
    create_context();
    OK(cuLibraryGetGlobal(&second, nullptr, loaded, "word"));
    TRUE(first != second);
    IS(cuLibraryGetGlobal(&first, &size, loaded, "missing"), CUDA_ERROR_NOT_FOUND);
}

PROMISE(a_librarys_module_has_its_kernels)
{
    start();
    CUmodule module = nullptr;
    OK(cuLibraryGetModule(&module, library()));
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "store"));
    CUdeviceptr word = allocate(4);
    launch(function, word, 12);
    SAME(word_at(word), 12);
}

PROMISE(attributes_of_kernels_are_per_device)
{
    start();
    CUkernel kernel = kernel_of("store");
    int threads = 0;
    OK(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, first_device()));
    TRUE(threads >= 32 && threads <= 1024);
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 16384, kernel, first_device()));
    int dynamic = 0;
    OK(cuKernelGetAttribute(&dynamic, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, first_device()));
    SAME(dynamic, 16384);
    OK(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_SHARED, first_device()));
    IS(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 1000), CUDA_ERROR_INVALID_DEVICE);
}

PROMISE(a_managed_variable_is_reached_by_the_host)
{
    start();
    CUlibrary loaded;
    OK(cuLibraryLoadData(&loaded, R"(
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .global .attribute(.managed) .align 4 .u32 shared_word = 21;
        .global .align 4 .u32 other = 1;
        .visible .entry nothing() { ret; }
    )", nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUdeviceptr at = 0;
    size_t size = 0;
    OK(cuLibraryGetManaged(&at, &size, loaded, "shared_word"));
    SAME(size, 4);
    OK(cuCtxSynchronize());
    SAME(*reinterpret_cast<unsigned *>(at), 21);
    IS(cuLibraryGetManaged(&at, &size, loaded, "other"), CUDA_ERROR_NOT_FOUND);
}

PROMISE(a_library_outlives_contexts)
{
    OK(cuInit(0));
    CUkernel kernel = kernel_of("store");
    CUcontext first = create_context();
    CUdeviceptr word = allocate(4);
    launch(reinterpret_cast<CUfunction>(kernel), word, 1);
    OK(cuCtxDestroy(first));
    create_context();
    word = allocate(4);
    launch(reinterpret_cast<CUfunction>(kernel), word, 2);
    SAME(word_at(word), 2);
}

PROMISE(what_is_no_code_is_an_error_when_some_of_it_is_needed)
{
    OK(cuInit(0));
    CUmoduleLoadingMode mode{};
    OK(cuModuleGetLoadingMode(&mode));
    if (mode == CU_MODULE_EAGER_LOADING)
        SKIP("all is loaded at once");
    CUlibrary loaded;
    OK(cuLibraryLoadData(&loaded, "no code at all", nullptr, nullptr, 0, nullptr, nullptr, 0));
    CUkernel kernel;
    TRUE(cuLibraryGetKernel(&kernel, loaded, "store") != CUDA_SUCCESS);
    OK(cuLibraryUnload(loaded));
}

PROMISE(a_file_that_is_not_there_is_not_found)
{
    OK(cuInit(0));
    CUlibrary loaded;
    IS(cuLibraryLoadFromFile(&loaded, "/nowhere/at/all.ptx", nullptr, nullptr, 0, nullptr, nullptr, 0),
       CUDA_ERROR_FILE_NOT_FOUND);
}
