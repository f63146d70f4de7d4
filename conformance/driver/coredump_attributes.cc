// CUDA Driver API, "Coredump Attributes Control API".
#include "../device.h"

#include <dlfcn.h>

PROMISE(nothing_is_dumped_on_exceptions_unless_it_is_asked_for)
{
    start();
    bool on = true;
    size_t size = sizeof on;
    OK(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size));
    TRUE(!on);
}

PROMISE(the_files_name_is_text)
{
    start();
    char name[] = "dump.of.mine", kept[1024] = "";
    size_t size = sizeof name;
    OK(cuCoredumpSetAttribute(CU_COREDUMP_FILE, name, &size));
    size = sizeof kept;
    OK(cuCoredumpGetAttribute(CU_COREDUMP_FILE, kept, &size));
    SAME(std::string(kept), "dump.of.mine");
}

PROMISE(settings_of_all_contexts_are_kept_too)
{
    OK(cuInit(0));
    char name[] = "dump.of.all", kept[1024] = "";
    size_t size = sizeof name;
    OK(cuCoredumpSetAttributeGlobal(CU_COREDUMP_FILE, name, &size));
    size = sizeof kept;
    OK(cuCoredumpGetAttributeGlobal(CU_COREDUMP_FILE, kept, &size));
    SAME(std::string(kept), "dump.of.all");
}

PROMISE(settings_of_a_context_need_one)
{
    OK(cuInit(0));
    bool on = true;
    size_t size = sizeof on;
    IS(cuCoredumpSetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size), CUDA_ERROR_INVALID_CONTEXT);
    IS(cuCoredumpGetAttribute(CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size), CUDA_ERROR_INVALID_CONTEXT);
}

PROMISE(a_callbacks_handle_need_not_be_asked_for)
{
    OK(cuInit(0));
    // By name: a driver that has not got them would end the process.
    const auto start = reinterpret_cast<decltype(&cuCoredumpRegisterStartCallback)>(
        dlsym(RTLD_DEFAULT, "cuCoredumpRegisterStartCallback"));
    const auto complete = reinterpret_cast<decltype(&cuCoredumpRegisterCompleteCallback)>(
        dlsym(RTLD_DEFAULT, "cuCoredumpRegisterCompleteCallback"));
    if (!start && check::is_driver_older())
        SKIP("the driver is older than the call");
    TRUE(start && complete);
    const auto callback = [](void *, int, CUdevice) {};
    OK(start(callback, nullptr, nullptr));
    OK(complete(callback, nullptr, nullptr));
    IS(start(nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}
