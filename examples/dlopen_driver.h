// The runtime calls that the examples use, written over a libcuda.so.1 that the program opens by itself.
//
// Half of the driver's functions are found by dlsym under their exported names (cuMemAlloc_v2), as older programs do it,
// half by cuGetProcAddress under their base names, as newer ones do. Everything lives in a namespace, so no symbol of
// this program has the name of a CUDA runtime function.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <map>
#include <mutex>

extern "C" const unsigned char example_image[];  // the device half: PTX text or a fat binary

namespace dlopened {

inline void *library()
{
    static void *const handle = [] {
        void *opened = dlopen("libcuda.so.1", RTLD_NOW);
        if (!opened) {
            std::printf("FAILED: %s\n", dlerror());
            std::exit(1);
        }
        return opened;
    }();
    return handle;
}

inline void *exported(const char *name)
{
    void *found = dlsym(library(), name);
    if (!found) {
        std::printf("FAILED: dlsym(%s): %s\n", name, dlerror());
        std::exit(1);
    }
    return found;
}

#define DRIVER_STRING_(text) #text
#define DRIVER_STRING(text) DRIVER_STRING_(text)
// cuda.h renames functions by macros; the string is the name after that: the exported one.
#define EXPORTED(name)                                                                             \
    ([] {                                                                                          \
        static const auto found = reinterpret_cast<decltype(&name)>(::dlopened::exported(DRIVER_STRING(name))); \
        return found;                                                                              \
    }())

inline void *entry(const char *name)
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    const cuuint64_t flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
#else
    const cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT;
#endif
    void *found = nullptr;
#if CUDA_VERSION >= 12000
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = EXPORTED(cuGetProcAddress)(name, &found, CUDA_VERSION, flags, &answer);
#else
    const CUresult result = EXPORTED(cuGetProcAddress)(name, &found, CUDA_VERSION, flags);
#endif
    if (result != CUDA_SUCCESS || !found) {
        std::printf("FAILED: cuGetProcAddress(%s, %d): %d\n", name, CUDA_VERSION, static_cast<int>(result));
        std::exit(1);
    }
    return found;
}

// #name is the base name, before cuda.h's macros.
#define ENTRY(name)                                                                   \
    ([] {                                                                             \
        static const auto found = reinterpret_cast<decltype(&name)>(::dlopened::entry(#name)); \
        return found;                                                                 \
    }())

using cudaError_t = CUresult;
using cudaStream_t = CUstream;
using cudaEvent_t = CUevent;
constexpr cudaError_t cudaSuccess = CUDA_SUCCESS;
constexpr cudaError_t cudaErrorNotReady = CUDA_ERROR_NOT_READY;
constexpr unsigned cudaStreamNonBlocking = CU_STREAM_NON_BLOCKING;

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

inline const char *cudaGetErrorName(cudaError_t error)
{
    const char *text = nullptr;
    return EXPORTED(cuGetErrorName)(error, &text) == CUDA_SUCCESS ? text : "unknown error";
}

inline const char *cudaGetErrorString(cudaError_t error)
{
    const char *text = nullptr;
    return EXPORTED(cuGetErrorString)(error, &text) == CUDA_SUCCESS ? text : "unknown error";
}

#define DRIVER_TRY(call)                          \
    do {                                          \
        const CUresult driver_result = (call);    \
        if (driver_result != CUDA_SUCCESS)        \
            return driver_result;                 \
    } while (0)

// One device: its primary context and the program's image in it.
struct Device {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
};

inline thread_local int current_ordinal = 0;
inline thread_local bool bound = false;
inline thread_local cudaError_t last_error = CUDA_SUCCESS;

inline cudaError_t device(Device &out)
{
    static std::mutex lock;
    static std::map<int, Device> devices;
    const std::lock_guard<std::mutex> guard(lock);
    DRIVER_TRY(EXPORTED(cuInit)(0));
    Device &found = devices[current_ordinal];
    if (!found.context) {
        CUdevice handle;
        DRIVER_TRY(EXPORTED(cuDeviceGet)(&handle, current_ordinal));
        DRIVER_TRY(EXPORTED(cuDevicePrimaryCtxRetain)(&found.context, handle));
    }
    if (!bound) {
        DRIVER_TRY(EXPORTED(cuCtxSetCurrent)(found.context));
        bound = true;
    }
    if (!found.module)
        DRIVER_TRY(EXPORTED(cuModuleLoadData)(&found.module, example_image));
    out = found;
    return CUDA_SUCCESS;
}

#define DRIVER_BIND()        \
    ::dlopened::Device here; \
    DRIVER_TRY(::dlopened::device(here))

inline cudaError_t cudaGetDeviceCount(int *count)
{
    DRIVER_TRY(EXPORTED(cuInit)(0));
    return EXPORTED(cuDeviceGetCount)(count);
}

inline cudaError_t cudaSetDevice(int ordinal)
{
    current_ordinal = ordinal;
    bound = false;
    DRIVER_BIND();
    return CUDA_SUCCESS;
}

inline cudaError_t cudaGetDevice(int *ordinal)
{
    DRIVER_BIND();
    CUdevice handle;
    DRIVER_TRY(EXPORTED(cuCtxGetDevice)(&handle));
    *ordinal = handle;
    return CUDA_SUCCESS;
}

inline CUdeviceptr address(const void *pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

template <typename T>
cudaError_t cudaMalloc(T **pointer, size_t bytes)
{
    DRIVER_BIND();
    return EXPORTED(cuMemAlloc)(reinterpret_cast<CUdeviceptr *>(pointer), bytes);
}

inline cudaError_t cudaFree(void *pointer)
{
    DRIVER_BIND();
    return EXPORTED(cuMemFree)(address(pointer));
}

template <typename T>
cudaError_t cudaMallocHost(T **pointer, size_t bytes)
{
    DRIVER_BIND();
    return EXPORTED(cuMemAllocHost)(reinterpret_cast<void **>(pointer), bytes);
}

inline cudaError_t cudaFreeHost(void *pointer) { return EXPORTED(cuMemFreeHost)(pointer); }

inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    DRIVER_BIND();
    switch (kind) {
    case cudaMemcpyHostToDevice: return EXPORTED(cuMemcpyHtoD)(address(to), from, bytes);
    case cudaMemcpyDeviceToHost: return EXPORTED(cuMemcpyDtoH)(to, address(from), bytes);
    default: return EXPORTED(cuMemcpyDtoD)(address(to), address(from), bytes);
    }
}

inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    DRIVER_BIND();
    switch (kind) {
    case cudaMemcpyHostToDevice: return ENTRY(cuMemcpyHtoDAsync)(address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost: return ENTRY(cuMemcpyDtoHAsync)(to, address(from), bytes, stream);
    default: return ENTRY(cuMemcpyDtoDAsync)(address(to), address(from), bytes, stream);
    }
}

inline cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    DRIVER_BIND();
    return EXPORTED(cuMemsetD8)(address(at), static_cast<unsigned char>(value), bytes);
}

inline cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    DRIVER_BIND();
    return ENTRY(cuMemsetD8Async)(address(at), static_cast<unsigned char>(value), bytes, stream);
}

inline cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    DRIVER_BIND();
    return EXPORTED(cuStreamCreate)(stream, CU_STREAM_DEFAULT);
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    DRIVER_BIND();
    return EXPORTED(cuStreamCreate)(stream, flags);
}

inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return EXPORTED(cuStreamDestroy)(stream); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return ENTRY(cuStreamSynchronize)(stream); }
inline cudaError_t cudaStreamQuery(cudaStream_t stream) { return EXPORTED(cuStreamQuery)(stream); }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0)
{
    return ENTRY(cuStreamWaitEvent)(stream, event, flags);
}

inline cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    DRIVER_BIND();
    return EXPORTED(cuEventCreate)(event, CU_EVENT_DEFAULT);
}

inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr) { return ENTRY(cuEventRecord)(event, stream); }
inline cudaError_t cudaEventQuery(cudaEvent_t event) { return EXPORTED(cuEventQuery)(event); }
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) { return EXPORTED(cuEventSynchronize)(event); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return EXPORTED(cuEventDestroy)(event); }
inline cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) { return EXPORTED(cuEventElapsedTime)(ms, start, end); }

inline cudaError_t cudaDeviceSynchronize()
{
    DRIVER_BIND();
    return EXPORTED(cuCtxSynchronize)();
}

inline cudaError_t cudaPeekAtLastError() { return last_error; }

inline cudaError_t cudaGetLastError()
{
    const cudaError_t error = last_error;
    last_error = CUDA_SUCCESS;
    return error;
}

struct Symbol {
    const char *name;
};

inline cudaError_t find(void **pointer, size_t *bytes, Symbol symbol)
{
    DRIVER_BIND();
    return EXPORTED(cuModuleGetGlobal)(reinterpret_cast<CUdeviceptr *>(pointer), bytes, here.module, symbol.name);
}

template <typename T>
cudaError_t cudaGetSymbolAddress(T **pointer, Symbol symbol)
{
    return find(reinterpret_cast<void **>(pointer), nullptr, symbol);
}

inline cudaError_t cudaGetSymbolSize(size_t *bytes, Symbol symbol) { return find(nullptr, bytes, symbol); }

inline cudaError_t cudaMemcpyToSymbol(Symbol symbol, const void *from, size_t bytes, size_t offset = 0)
{
    void *base = nullptr;
    DRIVER_TRY(find(&base, nullptr, symbol));
    return cudaMemcpy(static_cast<char *>(base) + offset, from, bytes, cudaMemcpyHostToDevice);
}

inline cudaError_t cudaMemcpyFromSymbol(void *to, Symbol symbol, size_t bytes, size_t offset = 0)
{
    void *base = nullptr;
    DRIVER_TRY(find(&base, nullptr, symbol));
    return cudaMemcpy(to, static_cast<char *>(base) + offset, bytes, cudaMemcpyDeviceToHost);
}

template <typename T>
T *managed_address(const char *name)
{
    void *base = nullptr;
    if (find(&base, nullptr, Symbol{name}) != CUDA_SUCCESS) {
        std::printf("FAILED: no managed variable %s\n", name);
        std::exit(1);
    }
    return static_cast<T *>(base);
}

// LAUNCH(kernel, grid, block, shared, stream)(arguments): the arguments must have the parameters' exact types.
struct Launch {
    const char *kernel;
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;

    Launch(const char *kernel, dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = nullptr)
        : kernel(kernel), grid(grid), block(block), shared_bytes(shared_bytes), stream(stream)
    {
    }

    template <typename... Arguments>
    void operator()(Arguments... arguments) const
    {
        std::array<void *, sizeof...(arguments) + 1> parameters = {const_cast<void *>(static_cast<const void *>(&arguments))..., nullptr};
        const cudaError_t error = launch(parameters.data());
        if (error != CUDA_SUCCESS)
            last_error = error;
    }

  private:
    cudaError_t launch(void **parameters) const
    {
        DRIVER_BIND();
        CUfunction function;
        DRIVER_TRY(ENTRY(cuModuleGetFunction)(&function, here.module, kernel));
        return ENTRY(cuLaunchKernel)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared_bytes), stream, parameters, nullptr);
    }
};

}  // namespace dlopened

using namespace dlopened;

#define LAUNCH(kernel, ...) ::dlopened::Launch(#kernel, __VA_ARGS__)
#define SYMBOL(name) (::dlopened::Symbol{#name})
#define ADDRESS_OF_MANAGED(name) (::dlopened::managed_address<MANAGED_TYPE(name)>(#name))
