// What promises about the driver start from: the first device with a context, a kernel from PTX text, and a stream
// that waits until it is told to go on.
#pragma once

#include "check.h"

#include <atomic>

inline CUdevice first_device()
{
    CUdevice device;
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    return device;
}

inline int attribute(CUdevice_attribute which)
{
    int value = 0;
    OK(cuDeviceGetAttribute(&value, which, first_device()));
    return value;
}

// The first device's primary context, current on this thread.
inline CUcontext start()
{
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, first_device()));
    OK(cuCtxSetCurrent(context));
    return context;
}

inline CUcontext create_context(unsigned flags = 0)
{
    CUcontext context;
    OK(cuCtxCreate(&context, nullptr, flags, first_device()));
    return context;
}

inline CUstream create_stream(unsigned flags = CU_STREAM_NON_BLOCKING)
{
    CUstream stream;
    OK(cuStreamCreate(&stream, flags));
    return stream;
}

inline CUevent create_event(unsigned flags = CU_EVENT_DEFAULT)
{
    CUevent event;
    OK(cuEventCreate(&event, flags));
    return event;
}

inline CUdeviceptr allocate(size_t n_bytes)
{
    CUdeviceptr memory;
    OK(cuMemAlloc(&memory, n_bytes));
    return memory;
}

inline unsigned word_at(CUdeviceptr memory)
{
    unsigned word = 0;
    OK(cuMemcpyDtoH(&word, memory, sizeof word));
    return word;
}

// Three kernels: `nothing()`, `store(u32 *to, u32 value)` and `add(u32 *to, u32 value)`, the last of every thread.
constexpr char PTX[] = R"(
.version 7.0
.target sm_75
.address_size 64

.global .align 4 .u32 word = 7;

.visible .entry nothing() { ret; }

.visible .entry store(.param .u64 to, .param .u32 value)
{
    .reg .b64 %p;
    .reg .b32 %v;
    ld.param.u64 %p, [to];
    ld.param.u32 %v, [value];
    st.global.u32 [%p], %v;
    ret;
}

.visible .entry add(.param .u64 to, .param .u32 value)
{
    .reg .b64 %p;
    .reg .b32 %v, %old;
    ld.param.u64 %p, [to];
    ld.param.u32 %v, [value];
    atom.global.add.u32 %old, [%p], %v;
    ret;
}
)";

inline CUmodule load(const char *ptx = PTX)
{
    CUmodule module;
    OK(cuModuleLoadData(&module, ptx));
    return module;
}

inline CUfunction kernel(const char *name, const char *ptx = PTX)
{
    CUfunction function;
    OK(cuModuleGetFunction(&function, load(ptx), name));
    return function;
}

// One block of `n_threads` threads of `store` or `add`.
inline void launch(CUfunction function, CUdeviceptr to, unsigned value, CUstream stream = nullptr, unsigned n_threads = 1)
{
    void *arguments[] = {&to, &value};
    OK(cuLaunchKernel(function, 1, 1, 1, n_threads, 1, 1, 0, stream, arguments, nullptr));
}

// Holds a stream at a host function until it is opened.
struct Gate {
    std::atomic<bool> is_open{false};

    explicit Gate(CUstream stream) { OK(cuLaunchHostFunc(stream, wait, this)); }

    void open() { is_open = true; }

    static void wait(void *gate)
    {
        while (!static_cast<Gate *>(gate)->is_open)
            usleep(100);
    }
};
