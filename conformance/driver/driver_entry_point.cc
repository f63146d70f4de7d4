// CUDA Driver API, "Driver Entry Point Access".
#include "../device.h"

#include <dlfcn.h>

static CUdriverProcAddressQueryResult ask(const char *name, void **address, int version, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT)
{
    auto status = static_cast<CUdriverProcAddressQueryResult>(-1);
    OK(cuGetProcAddress_v2(name, address, version, flags, &status));
    return status;
}

// Drivers are asked for what they know: some newer ones refuse a version above their own.
static int newest()
{
    const int driver = check::driver_version();
    return driver < CUDA_VERSION ? driver : CUDA_VERSION;
}

PROMISE(a_function_is_found_and_can_be_called)
{
    void *address = nullptr;
    SAME(ask("cuDeviceGetCount", &address, newest()), CU_GET_PROC_ADDRESS_SUCCESS);
    OK(cuInit(0));
    int count = 0;
    OK(reinterpret_cast<CUresult (*)(int *)>(address)(&count));
    TRUE(count > 0);
}

PROMISE(the_version_chooses_the_spelling)
{
    void *old = nullptr, *now = nullptr;
    SAME(ask("cuMemAlloc", &now, 3020), CU_GET_PROC_ADDRESS_SUCCESS);
    TRUE(now == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    SAME(ask("cuCtxCreate", &old, 11000), CU_GET_PROC_ADDRESS_SUCCESS);
    SAME(ask("cuCtxCreate", &now, 13000), CU_GET_PROC_ADDRESS_SUCCESS);
    TRUE(old == dlsym(RTLD_DEFAULT, "cuCtxCreate_v2"));
    TRUE(now == dlsym(RTLD_DEFAULT, "cuCtxCreate_v4"));
}

PROMISE(a_name_that_is_not_there_is_no_error)
{
    void *address = &address;
    SAME(ask("cuNoSuchFunction", &address, newest()), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    TRUE(address == nullptr);
}

PROMISE(a_version_before_the_function_is_not_sufficient)
{
    void *address = &address;
    SAME(ask("cuMemAllocAsync", &address, 10000), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    TRUE(address == nullptr);
}

PROMISE(flags_choose_the_default_stream)
{
    void *legacy = nullptr, *per_thread = nullptr;
    ask("cuStreamSynchronize", &legacy, newest(), CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    ask("cuStreamSynchronize", &per_thread, newest(), CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    TRUE(legacy == dlsym(RTLD_DEFAULT, "cuStreamSynchronize"));
    TRUE(per_thread == dlsym(RTLD_DEFAULT, "cuStreamSynchronize_ptsz"));
    ask("cuMemcpyHtoD", &per_thread, newest(), CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    TRUE(per_thread == dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2_ptds"));
}

PROMISE(functions_without_streams_are_the_same_by_both_flags)
{
    void *legacy = nullptr, *per_thread = nullptr;
    ask("cuMemAlloc", &legacy, newest(), CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    ask("cuMemAlloc", &per_thread, newest(), CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    TRUE(legacy == per_thread);
}

PROMISE(the_status_may_be_left_out)
{
    void *address = nullptr;
    OK(cuGetProcAddress_v2("cuInit", &address, newest(), 0, nullptr));
    TRUE(address == dlsym(RTLD_DEFAULT, "cuInit"));
}

PROMISE(a_name_and_a_place_are_needed)
{
    void *address = nullptr;
    const int version = newest();
    // NVIDIA's looks at neither and ends by signal 11.
    const int without[] = {
        check::apart([&] { return cuGetProcAddress_v2(nullptr, &address, version, 0, nullptr); }),
        check::apart([&] { return cuGetProcAddress_v2("cuInit", nullptr, version, 0, nullptr); }),
    };
    for (const int answer : without)
        TRUE(answer == CUDA_ERROR_INVALID_VALUE || (check::is_beside_nvidia() && answer == 128 + SIGSEGV));
}

PROMISE(the_per_thread_spelling_uses_the_threads_stream)
{
    start();
    void *address = nullptr;
    ask("cuStreamQuery", &address, newest(), CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    auto query = reinterpret_cast<CUresult (*)(CUstream)>(address);
    Gate gate(CU_STREAM_PER_THREAD);
    IS(query(nullptr), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    OK(query(nullptr));
}
