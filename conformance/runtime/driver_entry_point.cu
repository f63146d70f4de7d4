// CUDA Runtime API, "Driver Entry Point Access".
#include "../check.h"

PROMISE(the_driver_functions_are_found)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    OK(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &function, 12000, cudaEnableDefault, &found));
    SAME(found, cudaDriverEntryPointSuccess);
    int by_pointer = 0, by_runtime = 0;
    OK(reinterpret_cast<CUresult (*)(int *)>(function)(&by_pointer));
    OK(cudaDriverGetVersion(&by_runtime));
    SAME(by_pointer, by_runtime);
}

PROMISE(names_that_are_not_there_are_told_apart)
{
    void *function = &function;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
    OK(cudaGetDriverEntryPointByVersion("cuNothing", &function, 12000, cudaEnableDefault, &found));
    SAME(found, cudaDriverEntryPointSymbolNotFound);
    SAME(function, nullptr);
}

PROMISE(names_newer_than_the_version_are_told_apart)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
    OK(cudaGetDriverEntryPointByVersion("cuLibraryLoadData", &function, 11000, cudaEnableDefault, &found));
    SAME(found, cudaDriverEntryPointVersionNotSufficent);
}

PROMISE(flags_choose_the_spelling)
{
    void *legacy = nullptr, *per_thread = nullptr;
    cudaDriverEntryPointQueryResult found;
    OK(cudaGetDriverEntryPointByVersion("cuMemcpy", &legacy, 12000, cudaEnableLegacyStream, &found));
    OK(cudaGetDriverEntryPointByVersion("cuMemcpy", &per_thread, 12000, cudaEnablePerThreadDefaultStream, &found));
    TRUE(legacy != nullptr);
    TRUE(per_thread != nullptr);
    TRUE(legacy != per_thread);
}

PROMISE(a_name_and_a_place_are_needed)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    // NVIDIA's looks at neither and ends by signal 11.
    const int without[] = {
        check::apart([&] {
            return cudaGetDriverEntryPointByVersion(nullptr, &function, 12000, cudaEnableDefault, &found);
        }),
        check::apart([&] {
            return cudaGetDriverEntryPointByVersion("cuInit", nullptr, 12000, cudaEnableDefault, &found);
        }),
    };
    for (const int answer : without)
        TRUE(answer == cudaErrorInvalidValue || (check::is_beside_nvidia() && answer == 128 + SIGSEGV));
}

PROMISE(unknown_flags_are_refused)
{
    void *function = nullptr;
    cudaDriverEntryPointQueryResult found;
    IS(cudaGetDriverEntryPointByVersion("cuInit", &function, 12000, 0x80, &found), cudaErrorInvalidValue);
}
