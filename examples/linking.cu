// Device code put together while the program runs: PTX texts that call each other, linked by the driver.
#include "example.h"

#include <cuda.h>

static void check_driver(CUresult result, const char *call, int line)
{
    const char *name = "?";
    if (result != CUDA_SUCCESS) {
        cuGetErrorName(result, &name);
        fail("line %d: %s: %d %s", line, call, static_cast<int>(result), name);
    }
}
#define DRIVER(call) check_driver((call), #call, __LINE__)

// Calls a function and reads a variable of the other text.
static const char caller[] = R"(
.version 7.0
.target sm_52
.address_size 64
.extern .func (.param .b32 result) scaled (.param .b32 value);
.extern .const .align 4 .u32 offset;
.visible .global .align 4 .u32 calls;
.visible .entry apply(.param .u64 out, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<12>;
    .reg .b64 %rd<6>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [n];
    setp.ge.u32 %p, %r4, %r5;
    @%p ret;
    {
        .param .b32 argument;
        .param .b32 answer;
        st.param.b32 [argument], %r4;
        call (answer), scaled, (argument);
        ld.param.b32 %r6, [answer];
    }
    ld.const.u32 %r7, [offset];
    add.u32 %r8, %r6, %r7;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r8;
    mov.u64 %rd5, calls;
    red.global.add.u32 [%rd5], 1;
    ret;
}
)";
static const char callee[] = R"(
.version 7.0
.target sm_52
.address_size 64
.visible .const .align 4 .u32 offset = 1000;
.visible .func (.param .b32 result) scaled (.param .b32 value)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [value];
    mul.lo.u32 %r2, %r1, 3;
    st.param.b32 [result], %r2;
    ret;
}
)";

static CUresult add(CUlinkState state, const char *text, size_t length, const char *name)
{
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char *>(text), length, name, 0, nullptr, nullptr);
}

int main()
{
    DRIVER(cuInit(0));
    CUdevice device;
    CUcontext context;
    DRIVER(cuDeviceGet(&device, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    DRIVER(cuCtxSetCurrent(context));

    char errors[1024] = "", infos[1024] = "";
    float ms = -1;
    CUjit_option options[] = {CU_JIT_WALL_TIME, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {&ms, errors, reinterpret_cast<void *>(sizeof errors), infos, reinterpret_cast<void *>(sizeof infos)};
    CUlinkState state;
    DRIVER(cuLinkCreate(5, options, values, &state));
    DRIVER(add(state, caller, sizeof caller, "caller.ptx"));
    DRIVER(add(state, callee, sizeof callee, "callee.ptx"));
    // A name is defined once: what brings it again is refused, and the link with it.
    expect_equal("defined twice", add(state, callee, sizeof callee, "again.ptx"), CUDA_ERROR_INVALID_SOURCE);
    if (!std::strstr(errors, "scaled"))
        fail("the error log does not name the function: %s", errors);
    void *image;
    size_t bytes;
    expect_equal("of a name twice", cuLinkComplete(state, &image, &bytes), CUDA_ERROR_INVALID_SOURCE);
    DRIVER(cuLinkDestroy(state));

    DRIVER(cuLinkCreate(0, nullptr, nullptr, &state));
    DRIVER(add(state, caller, sizeof caller, "caller.ptx"));
    DRIVER(add(state, callee, sizeof callee, "callee.ptx"));
    DRIVER(cuLinkComplete(state, &image, &bytes));
    CUmodule module;
    DRIVER(cuModuleLoadData(&module, image));
    DRIVER(cuLinkDestroy(state));

    const unsigned n = 1000;
    CUfunction apply;
    CUdeviceptr out, calls;
    size_t calls_bytes;
    DRIVER(cuModuleGetFunction(&apply, module, "apply"));
    DRIVER(cuMemAlloc(&out, n * 4));
    unsigned count = n;
    void *arguments[] = {&out, &count};
    DRIVER(cuLaunchKernel(apply, 8, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
    std::vector<unsigned> got(n);
    DRIVER(cuMemcpyDtoH(got.data(), out, n * 4));
    for (unsigned i = 0; i < n; i++)
        expect_equal("applied", got[i], 3 * i + 1000);
    DRIVER(cuModuleGetGlobal(&calls, &calls_bytes, module, "calls"));
    expect_equal("bytes of the variable", static_cast<long long>(calls_bytes), 4);
    DRIVER(cuMemcpyDtoH(&count, calls, 4));
    expect_equal("calls", count, n);
    DRIVER(cuModuleUnload(module));
    DRIVER(cuMemFree(out));

    // Without the second text something is missing.
    DRIVER(cuLinkCreate(0, nullptr, nullptr, &state));
    DRIVER(add(state, caller, sizeof caller, "caller.ptx"));
    if (cuLinkComplete(state, &image, &bytes) == CUDA_SUCCESS)
        fail("a link with a function missing was completed");
    DRIVER(cuLinkDestroy(state));
    DRIVER(cuLinkCreate(0, nullptr, nullptr, &state));
    expect_equal("no PTX", add(state, "words", 6, "words"), CUDA_ERROR_INVALID_IMAGE);
    DRIVER(cuLinkDestroy(state));
    DRIVER(cuDevicePrimaryCtxRelease(device));
    std::printf("linking: two texts, one program\n");
    return passed();
}
