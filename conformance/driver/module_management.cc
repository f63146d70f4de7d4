// CUDA Driver API, "Module Management".
#include "../device.h"

#include <thread>

static CUresult load_with_log(const char *ptx, std::string &log)
{
    char buffer[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {buffer, reinterpret_cast<void *>(sizeof buffer)};
    CUmodule module;
    CUresult result = cuModuleLoadDataEx(&module, ptx, 2, options, values);
    log = buffer;
    return result;
}

PROMISE(a_kernel_is_found_by_its_name)
{
    start();
    CUmodule module = load();
    CUfunction function = nullptr;
    OK(cuModuleGetFunction(&function, module, "store"));
    TRUE(function != nullptr);
    IS(cuModuleGetFunction(&function, module, "missing"), CUDA_ERROR_NOT_FOUND);
    IS(cuModuleGetFunction(&function, module, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(cuModuleGetFunction(nullptr, module, "store"), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_global_has_an_address_a_size_and_its_first_value)
{
    start();
    CUmodule module = load();
    CUdeviceptr at = 0;
    size_t size = 0;
    OK(cuModuleGetGlobal(&at, &size, module, "word"));
    SAME(size, 4);
    SAME(word_at(at), 7);
    CUdeviceptr again = 0;
    OK(cuModuleGetGlobal(&again, nullptr, module, "word"));
    SAME(again, at);
    size = 0;
    OK(cuModuleGetGlobal(nullptr, &size, module, "word"));
    SAME(size, 4);
    IS(cuModuleGetGlobal(&at, &size, module, "missing"), CUDA_ERROR_NOT_FOUND);
    IS(cuModuleGetGlobal(&at, &size, module, "store"), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(each_load_has_globals_of_its_own)
{
    start();
    CUdeviceptr first, second;
    OK(cuModuleGetGlobal(&first, nullptr, load(), "word"));
    OK(cuModuleGetGlobal(&second, nullptr, load(), "word"));
    TRUE(first != second);
    OK(cuMemsetD32(first, 1, 1));
    SAME(word_at(second), 7);
}

PROMISE(wrong_ptx_is_invalid_and_the_log_says_why)
{
    start();
    std::string log;
    IS(load_with_log(".version 7.0\n.target sm_75\n.address_size 64\n.entry k() { wrong.u32 %r; }", log),
       CUDA_ERROR_INVALID_PTX);
    TRUE(!log.empty());
}

PROMISE(ptx_of_a_version_to_come_is_unsupported)
{
    start();
    std::string log;
    IS(load_with_log(".version 99.0\n.target sm_75\n.address_size 64\n.entry k() { ret; }", log),
       CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

PROMISE(ptx_for_a_newer_device_is_invalid)
{
    start();
    int major = 0, minor = 0;
    OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    OK(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    auto for_target = [](int arch) {
        std::string log;
        std::string text = ".version 8.8\n.target sm_" + std::to_string(arch) +
                           "\n.address_size 64\n.visible .entry k() { ret; }";
        return load_with_log(text.c_str(), log);
    };
    OK(for_target(75));
    if (major * 10 + minor < 121)
        IS(for_target(121), CUDA_ERROR_INVALID_PTX);
}

PROMISE(the_size_of_the_log_comes_back)
{
    start();
    char buffer[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {buffer, reinterpret_cast<void *>(sizeof buffer)};
    CUmodule module;
    OK(cuModuleLoadDataEx(&module, PTX, 2, options, values));
    TRUE(reinterpret_cast<size_t>(values[1]) <= sizeof buffer);
    SAME(std::string(buffer), "");
}

PROMISE(options_for_the_compiler_are_taken)
{
    start();
    CUjit_option options[] = {CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_GENERATE_LINE_INFO, CU_JIT_WALL_TIME};
    void *values[] = {reinterpret_cast<void *>(32), reinterpret_cast<void *>(2), reinterpret_cast<void *>(1), nullptr};
    CUmodule module;
    OK(cuModuleLoadDataEx(&module, PTX, 4, options, values));
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "nothing"));
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    OK(cuCtxSynchronize());
}

PROMISE(a_module_comes_from_a_file_too)
{
    start();
    char path[] = "/tmp/promiseXXXXXX";
    int file = mkstemp(path);
    TRUE(write(file, PTX, sizeof PTX - 1) == sizeof PTX - 1);
    close(file);
    CUmodule module;
    CUresult result = cuModuleLoad(&module, path);
    unlink(path);
    OK(result);
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "add"));
    IS(cuModuleLoad(&module, "/nowhere/at/all.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
}

PROMISE(functions_are_counted_and_listed)
{
    start();
    CUmodule module = load();
    unsigned count = 0;
    OK(cuModuleGetFunctionCount(&count, module));
    SAME(count, 3);
    CUfunction functions[3] = {};
    OK(cuModuleEnumerateFunctions(functions, 3, module));
    std::string names;
    for (CUfunction function : functions) {
        const char *name = nullptr;
        OK(cuFuncGetName(&name, function));
        IS(cuFuncGetName(nullptr, function), CUDA_ERROR_INVALID_VALUE);
        names += name + std::string(" ");
    }
    for (const char *name : {"nothing ", "store ", "add "})
        TRUE(names.find(name) != std::string::npos);
}

PROMISE(a_function_knows_its_module)
{
    start();
    CUmodule module = load(), owner = nullptr;
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "add"));
    OK(cuFuncGetModule(&owner, function));
    TRUE(owner == module);
}

PROMISE(loading_is_eager_or_lazy)
{
    OK(cuInit(0));
    CUmoduleLoadingMode mode{};
    OK(cuModuleGetLoadingMode(&mode));
    TRUE(mode == CU_MODULE_EAGER_LOADING || mode == CU_MODULE_LAZY_LOADING);
}

PROMISE(modules_need_a_context)
{
    OK(cuInit(0));
    CUmodule module;
    IS(cuModuleLoadData(&module, PTX), CUDA_ERROR_INVALID_CONTEXT);
    start();
    IS(cuModuleLoadData(&module, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(cuModuleLoadData(nullptr, PTX), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(an_unloaded_module_gives_its_globals_back)
{
    start();
    constexpr size_t HALF = size_t(128) << 20;
    // Whether the address leads to memory still is open: a driver may keep what it cuts small variables from.
    const char *large = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .align 256 .b8 large[268435456];"
                        "\n.visible .entry k() { ret; }";
    size_t total = 0, during = 0, after = 0;
    CUmodule module = load(large);
    CUdeviceptr at;
    size_t size = 0;
    OK(cuModuleGetGlobal(&at, &size, module, "large"));
    SAME(size, 2 * HALF);
    OK(cuMemGetAddressRange(nullptr, nullptr, at));
    OK(cuMemGetInfo(&during, &total));
    OK(cuModuleUnload(module));
    OK(cuMemGetInfo(&after, &total));
    TRUE(after >= during + HALF);
}

PROMISE(the_info_log_is_text_of_its_size)
{
    start();
    char log[1024];
    std::memset(log, 'x', sizeof log);
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log), reinterpret_cast<void *>(1)};
    CUmodule module;
    OK(cuModuleLoadDataEx(&module, PTX, 3, options, values));
    TRUE(std::memchr(log, 0, sizeof log) != nullptr);
}

PROMISE(modules_are_loaded_by_many_threads_at_once)
{
    CUcontext context = start();
    std::vector<std::thread> threads;
    std::atomic<unsigned> sum{0};
    for (unsigned i = 0; i < 8; i++)
        threads.emplace_back([&, i] {
            OK(cuCtxSetCurrent(context));
            CUdeviceptr word = allocate(4);
            CUstream stream = create_stream();
            launch(kernel("store"), word, i, stream);
            OK(cuStreamSynchronize(stream));
            sum += word_at(word);
        });
    for (std::thread &thread : threads)
        thread.join();
    SAME(sum.load(), 28);
}
