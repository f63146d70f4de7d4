// CUDA Runtime API, "Execution Control", and what the Programming Guide says about launches that cannot be.
#include "../check.h"

#include <atomic>
#include <cassert>
#include <cooperative_groups.h>
#include <cstdint>

struct Mixed {
    char first;
    double second;
    int third[3];
};

__global__ void store(int *to, int value) { *to = value; }
__global__ void mixed(int *to, char a, double b, Mixed c, short d)
{
    to[0] = a;
    to[1] = static_cast<int>(b);
    to[2] = c.first + static_cast<int>(c.second) + c.third[2];
    to[3] = d;
}
__global__ void indices(int *to)
{
    const int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    atomicAdd(&to[block * (blockDim.x * blockDim.y * blockDim.z) + thread], 1);
}
__global__ void dynamic(int *to, int n)
{
    extern __shared__ int shared[];
    shared[n - 1] = n;
    __syncthreads();
    *to = shared[n - 1];
}
__global__ void __launch_bounds__(64) bounded(int *to) { *to = 1; }
__global__ void fixed_shared(int *to)
{
    __shared__ int block[256];
    block[threadIdx.x] = threadIdx.x;
    __syncthreads();
    *to = block[blockDim.x - 1 - threadIdx.x];
}
__global__ void whole_grid(int *to)
{
    atomicAdd(to, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0 && blockIdx.x == 0)
        to[1] = to[0];
}
__global__ void breaks() { __trap(); }
__global__ void writes_nowhere(int *at) { *at = 1; }
__global__ void asserts(int n) { assert(n == 1); }
template <typename T> __global__ void generic(T *to, T value) { *to = value; }

static int *memory(size_t n = 64)
{
    int *at = nullptr;
    OK(cudaMallocManaged(&at, n * sizeof *at));
    std::memset(at, 0, n * sizeof *at);
    return at;
}

PROMISE(a_launch_runs_with_its_arguments)
{
    int *to = memory();
    store<<<1, 1>>>(to, 42);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    SAME(*to, 42);
}

PROMISE(arguments_are_read_when_the_launch_is_made)
{
    int *to = memory();
    int value = 7;
    void *arguments[] = {&to, &value};
    OK(cudaLaunchHostFunc(nullptr, [](void *) { usleep(30000); }, nullptr));
    OK(cudaLaunchKernel(store, dim3(1), dim3(1), arguments, 0, nullptr));
    value = 8;
    OK(cudaDeviceSynchronize());
    SAME(*to, 7);
}

PROMISE(arguments_of_every_size_arrive)
{
    int *to = memory();
    mixed<<<1, 1>>>(to, 5, 6.5, Mixed{1, 2.0, {0, 0, 30}}, -9);
    OK(cudaDeviceSynchronize());
    SAME(to[0], 5);
    SAME(to[1], 6);
    SAME(to[2], 33);
    SAME(to[3], -9);
}

PROMISE(every_thread_of_a_grid_runs_once)
{
    const int n = 3 * 2 * 4 * 8 * 4 * 2;
    int *to = memory(n);
    indices<<<dim3(3, 2, 4), dim3(8, 4, 2)>>>(to);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        SAME(to[i], 1);
}

PROMISE(a_template_is_a_kernel_for_each_type)
{
    int *whole = memory();
    auto *fraction = reinterpret_cast<float *>(memory());
    generic<<<1, 1>>>(whole, 3);
    generic<<<1, 1>>>(fraction, 1.5f);
    OK(cudaDeviceSynchronize());
    SAME(*whole, 3);
    SAME(*fraction, 1.5f);
}

PROMISE(configurations_that_no_device_has_are_refused)
{
    // Up to CUDA 12 this was cudaErrorInvalidConfiguration.
    int *to = memory();
    store<<<1, 2048>>>(to, 1);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    store<<<dim3(1, 70000), 1>>>(to, 1);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    store<<<1, dim3(1, 1, 128)>>>(to, 1);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaDeviceSynchronize());
    SAME(*to, 0);
}

PROMISE(configurations_of_nothing_are_refused)
{
    int *to = memory();
    store<<<0, 1>>>(to, 1);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    store<<<1, 0>>>(to, 1);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaDeviceSynchronize());
    SAME(*to, 0);
}

PROMISE(a_launch_by_call_answers_what_the_last_error_says)
{
    int *to = memory(), value = 1;
    void *arguments[] = {&to, &value};
    SAME(cudaLaunchKernel(store, dim3(1), dim3(4096), arguments, 0, nullptr), cudaErrorInvalidValue);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
}

PROMISE(more_shared_memory_than_allowed_is_refused)
{
    int *to = memory();
    dynamic<<<1, 1, 100 << 10>>>(to, 4);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaDeviceSynchronize());
    SAME(*to, 0);
}

PROMISE(more_shared_memory_is_allowed_by_an_attribute)
{
    int most = 0;
    OK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, dynamic));
    SAME(attributes.maxDynamicSharedSizeBytes, most);
    int *to = memory();
    dynamic<<<1, 1, most>>>(to, most / 4);
    OK(cudaDeviceSynchronize());
    SAME(*to, most / 4);
    IS(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1), cudaErrorInvalidValue);
}

PROMISE(more_threads_than_the_kernel_is_bounded_to_do_not_run)
{
    int *to = memory();
    bounded<<<1, 128>>>(to);
    TRUE(cudaGetLastError() != cudaSuccess);
    OK(cudaDeviceSynchronize());
    SAME(*to, 0);
}

PROMISE(what_is_no_kernel_cannot_be_launched)
{
    // It could be a kernel's handle, which it is not. Up to CUDA 12 this was cudaErrorInvalidDeviceFunction.
    static int nothing;
    IS(cudaLaunchKernel(&nothing, dim3(1), dim3(1), nullptr, 0, nullptr), cudaErrorInvalidResourceHandle);
}

PROMISE(what_is_no_kernel_has_no_attributes)
{
    static int nothing;
    cudaFuncAttributes attributes;
    IS(cudaFuncGetAttributes(&attributes, static_cast<const void *>(&nothing)), cudaErrorInvalidResourceHandle);
    IS(cudaFuncSetAttribute(static_cast<const void *>(&nothing), cudaFuncAttributePreferredSharedMemoryCarveout, 50),
       cudaErrorInvalidResourceHandle);
}

PROMISE(attributes_tell_about_the_kernel)
{
    cudaFuncAttributes plain, shared, narrow;
    OK(cudaFuncGetAttributes(&plain, store));
    OK(cudaFuncGetAttributes(&shared, fixed_shared));
    OK(cudaFuncGetAttributes(&narrow, bounded));
    SAME(plain.sharedSizeBytes, 0);
    SAME(shared.sharedSizeBytes, 256 * sizeof(int));
    SAME(narrow.maxThreadsPerBlock, 64);
    TRUE(plain.maxThreadsPerBlock >= 64);
    TRUE(plain.numRegs > 0);
    // NVIDIA's driver, which compiles the PTX for the device, says the device's version.
    TRUE(plain.ptxVersion == 80 || plain.ptxVersion == plain.binaryVersion);
    TRUE(plain.binaryVersion >= 80);
    IS(cudaFuncGetAttributes(nullptr, store), cudaErrorInvalidValue);
}

PROMISE(attributes_that_do_not_exist_are_refused)
{
    IS(cudaFuncSetAttribute(store, static_cast<cudaFuncAttribute>(99), 1), cudaErrorInvalidValue);
    OK(cudaFuncSetAttribute(store, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    OK(cudaFuncSetCacheConfig(store, cudaFuncCachePreferL1));
}

PROMISE(a_kernel_tells_its_name)
{
    const char *name = nullptr;
    OK(cudaFuncGetName(&name, store));
    SAME(std::string(name), "_Z5storePii");
}

PROMISE(a_kernel_tells_its_parameters)
{
    size_t offset = 0, size = 0;
    OK(cudaFuncGetParamInfo((const void *)mixed, 0, &offset, &size));
    SAME(offset, 0);
    SAME(size, 8);
    OK(cudaFuncGetParamInfo((const void *)mixed, 1, &offset, &size));
    SAME(offset, 8);
    SAME(size, 1);
    OK(cudaFuncGetParamInfo((const void *)mixed, 2, &offset, &size));
    SAME(offset, 16);
    SAME(size, 8);
    OK(cudaFuncGetParamInfo((const void *)mixed, 3, &offset, &size));
    SAME(offset, 24);
    SAME(size, sizeof(Mixed));
    OK(cudaFuncGetParamInfo((const void *)mixed, 4, &offset, &size));
    SAME(offset, 24 + sizeof(Mixed));
    SAME(size, 2);
    IS(cudaFuncGetParamInfo((const void *)mixed, 5, &offset, &size), cudaErrorInvalidValue);
}

PROMISE(host_functions_run_in_the_streams_order)
{
    static int *to;
    static std::atomic<int> seen{-1};
    to = memory();
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    store<<<1, 1, 0, stream>>>(to, 5);
    OK(cudaLaunchHostFunc(stream, [](void *data) { seen = *static_cast<int *>(data); }, to));
    store<<<1, 1, 0, stream>>>(to, 6);
    OK(cudaStreamSynchronize(stream));
    SAME(seen.load(), 5);
    SAME(*to, 6);
    IS(cudaLaunchHostFunc(stream, nullptr, nullptr), cudaErrorInvalidValue);
}

PROMISE(a_launch_with_attributes_is_a_launch)
{
    int *to = memory();
    cudaStream_t stream;
    OK(cudaStreamCreate(&stream));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream;
    OK(cudaLaunchKernelEx(&config, store, to, 11));
    OK(cudaStreamSynchronize(stream));
    SAME(*to, 11);
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeIgnore;
    attributes[1].id = cudaLaunchAttributePriority;
    attributes[1].val.priority = 0;
    config.attrs = attributes;
    config.numAttrs = 2;
    OK(cudaLaunchKernelEx(&config, store, to, 12));
    OK(cudaStreamSynchronize(stream));
    SAME(*to, 12);
}

PROMISE(launches_with_attributes_refuse_bad_configurations)
{
    int *to = memory();
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(2000);
    IS(cudaLaunchKernelEx(&config, store, to, 1), cudaErrorInvalidValue);
}

PROMISE(a_cooperative_grid_meets)
{
    int *to = memory();
    void *arguments[] = {&to};
    OK(cudaLaunchCooperativeKernel(whole_grid, dim3(2), dim3(64), arguments, 0, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(to[1], 128);
}

PROMISE(a_cooperative_grid_has_to_fit)
{
    int *to = memory();
    void *arguments[] = {&to};
    IS(cudaLaunchCooperativeKernel(whole_grid, dim3(1 << 20), dim3(64), arguments, 0, nullptr),
       cudaErrorCooperativeLaunchTooLarge);
}

PROMISE(a_launch_that_succeeds_leaves_the_last_error)
{
    int *to = memory();
    SAME(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    store<<<1, 1>>>(to, 1);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaDeviceSynchronize());
}

PROMISE(a_trap_is_a_launch_failure_and_stays)
{
    breaks<<<1, 1>>>();
    IS(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
    void *at = nullptr;
    IS(cudaMalloc(&at, 16), cudaErrorLaunchFailure);
    IS(cudaGetLastError(), cudaErrorLaunchFailure);
    IS(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
}

PROMISE(a_store_to_nowhere_is_an_illegal_address_and_stays)
{
    writes_nowhere<<<1, 1>>>(reinterpret_cast<int *>(uintptr_t(0x10)));
    IS(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    void *at = nullptr;
    IS(cudaMalloc(&at, 16), cudaErrorIllegalAddress);
}

PROMISE(a_failed_assertion_is_an_assert_error_and_stays)
{
    asserts<<<1, 1>>>(1);
    OK(cudaDeviceSynchronize());
    std::fclose(stderr);
    close(2);
    asserts<<<1, 1>>>(2);
    IS(cudaDeviceSynchronize(), cudaErrorAssert);
    IS(cudaDeviceSynchronize(), cudaErrorAssert);
}

PROMISE(streams_of_launches_are_checked)
{
    int *to = memory();
    store<<<1, 1, 0, cudaStreamLegacy>>>(to, 1);
    OK(cudaGetLastError());
    store<<<1, 1, 0, cudaStreamPerThread>>>(to + 1, 2);
    OK(cudaGetLastError());
    OK(cudaDeviceSynchronize());
    SAME(to[0], 1);
    SAME(to[1], 2);
}

PROMISE(a_kernels_handle_is_the_drivers)
{
    cudaFunction_t function = nullptr;
    OK(cudaGetFuncBySymbol(&function, (const void *)store));
    int threads = 0;
    OK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    TRUE(threads >= 64);
    int *to = memory(), value = 13;
    void *arguments[] = {&to, &value};
    OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    OK(cudaDeviceSynchronize());
    SAME(*to, 13);
}
