// Arrays, texture objects, texture and surface references through the driver's calls, with a kernel in PTX of its own.
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

// Reads a texture twice, by handle and by name, and writes the sum to a named surface and to memory.
static const char code[] = R"(
.version 7.0
.target sm_60
.address_size 64
.visible .global .texref named;
.visible .global .surfref target;
.visible .entry both(.param .u64 object, .param .u64 out, .param .u32 width)
{
    .reg .b32 %r<12>;
    .reg .f32 %f<12>;
    .reg .b64 %rd<8>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    cvt.rn.f32.u32 %f1, %r1;
    cvt.rn.f32.u32 %f2, %r2;
    add.f32 %f1, %f1, 0f3F000000;
    add.f32 %f2, %f2, 0f3F000000;
    ld.param.u64 %rd1, [object];
    tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];
    tex.2d.v4.f32.f32 {%f7, %f8, %f9, %f10}, [named, {%f1, %f2}];
    add.f32 %f11, %f3, %f7;
    shl.b32 %r3, %r1, 2;
    mov.b32 %r4, %f11;
    sust.b.2d.b32.trap [target, {%r3, %r2}], {%r4};
    ld.param.u32 %r5, [width];
    mad.lo.s32 %r6, %r2, %r5, %r1;
    ld.param.u64 %rd2, [out];
    cvta.to.global.u64 %rd3, %rd2;
    mul.wide.u32 %rd4, %r6, 4;
    add.s64 %rd5, %rd3, %rd4;
    st.global.f32 [%rd5], %f11;
    ret;
}
)";

int main()
{
    DRIVER(cuInit(0));
    CUdevice device;
    CUcontext context;
    DRIVER(cuDeviceGet(&device, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    DRIVER(cuCtxSetCurrent(context));
    int alignment = 0;
    DRIVER(cuDeviceGetAttribute(&alignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device));

    const size_t width = 16, height = 12, n = width * height;
    std::vector<float> first(n), second(n), got(n), expected(n);
    for (size_t i = 0; i < n; i++) {
        first[i] = static_cast<float>(i);
        second[i] = static_cast<float>(1000 * i);
        expected[i] = first[i] + second[i];
    }
    CUarray a, b, out;
    CUDA_ARRAY_DESCRIPTOR plain = {};
    plain.Width = width;
    plain.Height = height;
    plain.Format = CU_AD_FORMAT_FLOAT;
    plain.NumChannels = 1;
    DRIVER(cuArrayCreate(&a, &plain));
    DRIVER(cuArrayCreate(&b, &plain));
    CUDA_ARRAY3D_DESCRIPTOR stored = {};
    stored.Width = width;
    stored.Height = height;
    stored.Format = CU_AD_FORMAT_FLOAT;
    stored.NumChannels = 1;
    stored.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    DRIVER(cuArray3DCreate(&out, &stored));
    CUDA_ARRAY3D_DESCRIPTOR found;
    DRIVER(cuArray3DGetDescriptor(&found, out));
    expect_equal("width", static_cast<long long>(found.Width), width);
    expect_equal("flags", found.Flags, CUDA_ARRAY3D_SURFACE_LDST);
    stored.NumChannels = 3;
    CUarray none;
    expect_equal("three channels", cuArray3DCreate(&none, &stored), CUDA_ERROR_INVALID_VALUE);

    // Each way into an array: rows from the host, bytes from the host, from the device, from another array.
    CUDA_MEMCPY2D rows = {};
    rows.srcMemoryType = CU_MEMORYTYPE_HOST;
    rows.srcHost = first.data();
    rows.srcPitch = width * 4;
    rows.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    rows.dstArray = a;
    rows.WidthInBytes = width * 4;
    rows.Height = height;
    DRIVER(cuMemcpy2D(&rows));
    rows.dstXInBytes = 4;
    expect_equal("beyond the row", cuMemcpy2D(&rows), CUDA_ERROR_INVALID_VALUE);
    CUdeviceptr memory;
    DRIVER(cuMemAlloc(&memory, n * 4));
    DRIVER(cuMemcpyHtoA(b, 0, second.data(), width * 4));
    DRIVER(cuMemcpyHtoD(memory, second.data() + width, (n - width) * 4));
    // Of an array with rows, the calls that count bytes reach the first one.
    CUDA_MEMCPY2D behind = {};
    behind.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    behind.srcDevice = memory;
    behind.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    behind.dstArray = b;
    behind.dstY = 1;
    behind.WidthInBytes = width * 4;
    behind.Height = height - 1;
    DRIVER(cuMemcpy2D(&behind));
    CUarray copy;
    DRIVER(cuArrayCreate(&copy, &plain));
    DRIVER(cuMemcpyAtoA(copy, 0, b, 0, width * 4));
    behind.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    behind.srcArray = b;
    behind.srcY = 1;
    behind.dstArray = copy;
    DRIVER(cuMemcpy2D(&behind));

    CUmodule module;
    CUfunction both;
    CUtexref named;
    CUsurfref target;
    DRIVER(cuModuleLoadData(&module, code));
    DRIVER(cuModuleGetFunction(&both, module, "both"));
    DRIVER(cuModuleGetTexRef(&named, module, "named"));
    DRIVER(cuModuleGetSurfRef(&target, module, "target"));
    expect_equal("no such reference", cuModuleGetTexRef(&named, module, "target"), CUDA_ERROR_NOT_FOUND);
    CUdeviceptr variable;
    expect_equal("no variable", cuModuleGetGlobal(&variable, nullptr, module, "named"), CUDA_ERROR_NOT_FOUND);
    DRIVER(cuModuleGetTexRef(&named, module, "named"));
    DRIVER(cuTexRefSetArray(named, copy, CU_TRSA_OVERRIDE_FORMAT));
    DRIVER(cuTexRefSetAddressMode(named, 0, CU_TR_ADDRESS_MODE_CLAMP));
    DRIVER(cuTexRefSetAddressMode(named, 1, CU_TR_ADDRESS_MODE_CLAMP));
    DRIVER(cuTexRefSetFilterMode(named, CU_TR_FILTER_MODE_POINT));
    CUaddress_mode mode;
    CUarray bound;
    CUarray_format format;
    int channels;
    DRIVER(cuTexRefGetAddressMode(&mode, named, 1));
    expect_equal("address mode", mode, CU_TR_ADDRESS_MODE_CLAMP);
    DRIVER(cuTexRefGetArray(&bound, named));
    DRIVER(cuTexRefGetFormat(&format, &channels, named));
    if (bound != copy || format != CU_AD_FORMAT_FLOAT || channels != 1)
        fail("the reference does not say what was bound to it");
    DRIVER(cuSurfRefSetArray(target, out, 0));
    DRIVER(cuSurfRefGetArray(&bound, target));
    if (bound != out)
        fail("the surface reference does not say what was bound to it");
    expect_equal("a plain array as surface", cuSurfRefSetArray(target, a, 0), CUDA_ERROR_INVALID_VALUE);

    CUDA_RESOURCE_DESC resource = {};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = a;
    CUDA_TEXTURE_DESC sampler = {};
    sampler.addressMode[0] = sampler.addressMode[1] = sampler.addressMode[2] = CU_TR_ADDRESS_MODE_CLAMP;
    CUtexObject object, wrong;
    DRIVER(cuTexObjectCreate(&object, &resource, &sampler, nullptr));
    CUDA_TEXTURE_DESC said;
    CUDA_RESOURCE_DESC of;
    DRIVER(cuTexObjectGetTextureDesc(&said, object));
    DRIVER(cuTexObjectGetResourceDesc(&of, object));
    if (said.addressMode[2] != CU_TR_ADDRESS_MODE_CLAMP || of.res.array.hArray != a)
        fail("the object does not say what it was made of");
    CUDA_RESOURCE_VIEW_DESC view;
    expect_equal("no view", cuTexObjectGetResourceViewDesc(&view, object), CUDA_ERROR_INVALID_VALUE);
    // Plain memory that does not begin where textures may.
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = memory + alignment / 2;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 16;
    expect_equal("not aligned", cuTexObjectCreate(&wrong, &resource, &sampler, nullptr), CUDA_ERROR_INVALID_VALUE);

    unsigned row = width;
    void *arguments[] = {&object, &memory, &row};
    DRIVER(cuLaunchKernel(both, 1, 1, 1, width, height, 1, 0, nullptr, arguments, nullptr));
    DRIVER(cuMemcpyDtoH(got.data(), memory, n * 4));
    expect_equal("both", got, expected);
    std::vector<float> surface(n);
    DRIVER(cuMemcpyAtoH(surface.data(), out, 0, width * 4));
    CUDA_MEMCPY3D box = {};
    box.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    box.srcArray = out;
    box.srcY = 1;
    box.dstMemoryType = CU_MEMORYTYPE_HOST;
    box.dstHost = surface.data() + width;
    box.dstPitch = width * 4;
    box.WidthInBytes = width * 4;
    box.Height = height - 1;
    box.Depth = 1;
    CUstream stream;
    DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DRIVER(cuMemcpy3DAsync(&box, stream));
    DRIVER(cuStreamSynchronize(stream));
    expect_equal("surface", surface, expected);

    CUmipmappedArray levels;
    DRIVER(cuMipmappedArrayCreate(&levels, &found, 100));
    CUarray level;
    DRIVER(cuMipmappedArrayGetLevel(&level, levels, 4));
    DRIVER(cuArray3DGetDescriptor(&found, level));
    expect_equal("width of the fifth level", static_cast<long long>(found.Width), 1);
    expect_equal("a sixth level", cuMipmappedArrayGetLevel(&level, levels, 5), CUDA_ERROR_INVALID_VALUE);
    DRIVER(cuMipmappedArrayDestroy(levels));

    DRIVER(cuTexObjectDestroy(object));
    expect_equal("destroyed twice", cuTexObjectDestroy(object), CUDA_ERROR_INVALID_VALUE);
    DRIVER(cuModuleUnload(module));
    for (const CUarray array : {a, b, copy, out})
        DRIVER(cuArrayDestroy(array));
    expect_equal("destroyed array", cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
    DRIVER(cuStreamDestroy(stream));
    DRIVER(cuMemFree(memory));
    DRIVER(cuDevicePrimaryCtxRelease(device));
    std::printf("textures_driver: arrays, an object, a texture reference and a surface reference\n");
    return passed();
}
