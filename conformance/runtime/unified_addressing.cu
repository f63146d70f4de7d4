// CUDA Runtime API, "Unified Addressing".
#include "../check.h"

__device__ int variable;

static cudaPointerAttributes attributes(const void *of)
{
    cudaPointerAttributes found;
    std::memset(&found, 0x5a, sizeof found);
    OK(cudaPointerGetAttributes(&found, of));
    return found;
}

PROMISE(device_memory_is_device_memory)
{
    char *memory = nullptr;
    OK(cudaMalloc(&memory, 64));
    for (int offset : {0, 17, 63}) {
        const cudaPointerAttributes found = attributes(memory + offset);
        SAME(found.type, cudaMemoryTypeDevice);
        SAME(found.device, 0);
        SAME(found.devicePointer, static_cast<void *>(memory + offset));
        SAME(found.hostPointer, nullptr);
    }
}

PROMISE(pinned_memory_is_host_memory_with_a_device_pointer)
{
    char *memory = nullptr;
    OK(cudaMallocHost(&memory, 64));
    const cudaPointerAttributes found = attributes(memory + 5);
    SAME(found.type, cudaMemoryTypeHost);
    SAME(found.device, 0);
    SAME(found.hostPointer, static_cast<void *>(memory + 5));
    TRUE(found.devicePointer != nullptr);
}

PROMISE(registered_memory_is_host_memory)
{
    void *memory = std::aligned_alloc(4096, 4096);
    SAME(attributes(memory).type, cudaMemoryTypeUnregistered);
    OK(cudaHostRegister(memory, 4096, cudaHostRegisterDefault));
    SAME(attributes(memory).type, cudaMemoryTypeHost);
    SAME(attributes(memory).hostPointer, memory);
    OK(cudaHostUnregister(memory));
    SAME(attributes(memory).type, cudaMemoryTypeUnregistered);
}

PROMISE(managed_memory_is_managed_for_both)
{
    char *memory = nullptr;
    OK(cudaMallocManaged(&memory, 64));
    const cudaPointerAttributes found = attributes(memory);
    SAME(found.type, cudaMemoryTypeManaged);
    SAME(found.hostPointer, static_cast<void *>(memory));
    SAME(found.devicePointer, static_cast<void *>(memory));
}

PROMISE(ordinary_memory_is_unregistered_and_no_error)
{
    int local = 0;
    const cudaPointerAttributes found = attributes(&local);
    SAME(found.type, cudaMemoryTypeUnregistered);
    SAME(found.devicePointer, nullptr);
    SAME(found.hostPointer, static_cast<void *>(&local));
    OK(cudaGetLastError());
}

PROMISE(device_variables_are_device_memory)
{
    void *at = nullptr;
    OK(cudaGetSymbolAddress(&at, variable));
    SAME(attributes(at).type, cudaMemoryTypeDevice);
}

PROMISE(memory_of_pools_is_device_memory)
{
    void *memory = nullptr;
    OK(cudaMallocAsync(&memory, 64, nullptr));
    OK(cudaStreamSynchronize(nullptr));
    SAME(attributes(memory).type, cudaMemoryTypeDevice);
}

PROMISE(freed_memory_is_forgotten)
{
    void *memory = nullptr;
    OK(cudaMalloc(&memory, 64 << 20));
    OK(cudaFree(memory));
    SAME(attributes(memory).type, cudaMemoryTypeUnregistered);
}

PROMISE(the_answer_needs_a_place)
{
    int local = 0;
    IS(cudaPointerGetAttributes(nullptr, &local), cudaErrorInvalidValue);
}
