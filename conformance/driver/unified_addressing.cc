// CUDA Driver API, "Unified Addressing".
#include "../device.h"

template <typename T> static T told(CUpointer_attribute which, CUdeviceptr pointer)
{
    T value{};
    OK(cuPointerGetAttribute(&value, which, pointer));
    return value;
}

PROMISE(device_memory_is_told_by_any_address_in_it)
{
    CUcontext context = start();
    CUdeviceptr memory = allocate(4096);
    SAME(told<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 100), CU_MEMORYTYPE_DEVICE);
    TRUE(told<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, memory) == context);
    SAME(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 100), memory + 100);
    SAME(told<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory), first_device());
    SAME(told<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, memory), 0);
    SAME(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 100), memory);
    SAME(told<size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 100), 4096);
    SAME(told<int>(CU_POINTER_ATTRIBUTE_MAPPED, memory), 1);
    void *host;
    IS(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(page_locked_memory_has_both_addresses)
{
    start();
    void *host;
    OK(cuMemHostAlloc(&host, 64, 0));
    auto at = reinterpret_cast<CUdeviceptr>(host);
    SAME(told<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CU_MEMORYTYPE_HOST);
    TRUE(told<void *>(CU_POINTER_ATTRIBUTE_HOST_POINTER, at) == host);
    CUdeviceptr device;
    OK(cuMemHostGetDevicePointer(&device, host, 0));
    SAME(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at), device);
}

PROMISE(registered_memory_is_host_memory_until_it_is_unregistered)
{
    start();
    static char bytes[8192] __attribute__((aligned(4096)));
    auto at = reinterpret_cast<CUdeviceptr>(bytes);
    CUmemorytype type;
    IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostRegister(bytes, sizeof bytes, 0));
    SAME(told<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + 5000), CU_MEMORYTYPE_HOST);
    OK(cuMemHostUnregister(bytes));
    IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(managed_memory_says_so)
{
    start();
    CUdeviceptr memory;
    OK(cuMemAllocManaged(&memory, 64, CU_MEM_ATTACH_GLOBAL));
    SAME(told<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, memory), 1);
    SAME(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory), memory);
    SAME(told<CUdeviceptr>(CU_POINTER_ATTRIBUTE_HOST_POINTER, memory), memory);
}

PROMISE(buffers_have_ids_that_are_never_used_again)
{
    start();
    CUdeviceptr first = allocate(64), second = allocate(64);
    auto id = told<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first);
    TRUE(id != told<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, second));
    SAME(told<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, first + 8), id);
    OK(cuMemFree(first));
    TRUE(told<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, allocate(64)) != id);
}

PROMISE(an_unknown_pointer_is_an_invalid_value_for_one_attribute)
{
    start();
    int own = 0;
    CUmemorytype type;
    IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&own)),
       CUDA_ERROR_INVALID_VALUE);
    IS(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, allocate(4)), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(an_unknown_pointer_has_null_answers_for_many)
{
    start();
    int own = 0;
    auto context = reinterpret_cast<CUcontext>(1);
    CUdeviceptr device = 1;
    unsigned type = 1;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *data[] = {&context, &device, &type};
    OK(cuPointerGetAttributes(3, which, data, reinterpret_cast<CUdeviceptr>(&own)));
    TRUE(context == nullptr);
    SAME(device, 0);
    SAME(type, 0);
}

PROMISE(many_attributes_are_told_at_once)
{
    CUcontext wanted = start(), context;
    CUdeviceptr memory = allocate(64), device;
    unsigned type;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *data[] = {&context, &device, &type};
    OK(cuPointerGetAttributes(3, which, data, memory));
    TRUE(context == wanted);
    SAME(device, memory);
    SAME(type, CU_MEMORYTYPE_DEVICE);
}

PROMISE(synchronous_operations_are_asked_for_by_attribute)
{
    start();
    CUdeviceptr memory = allocate(64);
    unsigned on = 1;
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
    SAME(told<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory), 1);
    IS(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(memory_of_a_module_is_device_memory)
{
    start();
    CUdeviceptr at;
    OK(cuModuleGetGlobal(&at, nullptr, load(), "word"));
    SAME(told<CUmemorytype>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at), CU_MEMORYTYPE_DEVICE);
}

PROMISE(memory_of_a_pool_names_the_pool_and_other_memory_none)
{
    start();
    CUmemoryPool pool = nullptr;
    OK(cuDeviceGetDefaultMemPool(&pool, first_device()));
    CUdeviceptr memory;
    OK(cuMemAllocAsync(&memory, 64, nullptr));
    OK(cuCtxSynchronize());
    TRUE(told<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory) == pool);
    TRUE(told<CUmemoryPool>(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, allocate(64)) == nullptr);
}

PROMISE(one_device_uses_page_locked_memory_at_the_hosts_address)
{
    start();
    void *host;
    OK(cuMemHostAlloc(&host, 64, 0));
    CUdeviceptr device;
    OK(cuMemHostGetDevicePointer(&device, host, 0));
    SAME(device, reinterpret_cast<CUdeviceptr>(host));
}
