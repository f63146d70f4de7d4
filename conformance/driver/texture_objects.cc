// CUDA Driver API, "Texture Object Management" and "Surface Object Management".
#include "../device.h"

// `sample(u64 object, f32 *to, f32 x)` of a texture and `put(u64 object, u32 x, u32 value)` to a surface, of one dimension.
static constexpr char SAMPLER[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry sample(.param .u64 object, .param .u64 to, .param .f32 x)
{
    .reg .b64 %o, %p;
    .reg .f32 %x, %r, %g, %b, %a;
    ld.param.u64 %o, [object];
    ld.param.u64 %p, [to];
    ld.param.f32 %x, [x];
    tex.1d.v4.f32.f32 {%r, %g, %b, %a}, [%o, {%x}];
    st.global.f32 [%p], %r;
    ret;
}
.visible .entry fetch(.param .u64 object, .param .u64 to, .param .u32 x)
{
    .reg .b64 %o, %p;
    .reg .b32 %x;
    .reg .f32 %r, %g, %b, %a;
    ld.param.u64 %o, [object];
    ld.param.u64 %p, [to];
    ld.param.u32 %x, [x];
    tex.1d.v4.f32.s32 {%r, %g, %b, %a}, [%o, {%x}];
    st.global.f32 [%p], %r;
    ret;
}
.visible .entry put(.param .u64 object, .param .u32 x, .param .u32 value)
{
    .reg .b64 %o;
    .reg .b32 %x, %v;
    ld.param.u64 %o, [object];
    ld.param.u32 %x, [x];
    ld.param.u32 %v, [value];
    sust.b.1d.b32.trap [%o, {%x}], {%v};
    ret;
}
)";

static CUarray row(const std::vector<float> &values, unsigned flags = 0)
{
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.Width = values.size();
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    shape.Flags = flags;
    CUarray array;
    OK(cuArray3DCreate(&array, &shape));
    OK(cuMemcpyHtoA(array, 0, values.data(), values.size() * sizeof(float)));
    return array;
}

static CUDA_RESOURCE_DESC of(CUarray array)
{
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.array.hArray = array;
    return resource;
}

static CUDA_RESOURCE_DESC of(CUdeviceptr memory, size_t n_bytes)
{
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.devPtr = memory;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = n_bytes;
    return resource;
}

static CUtexObject texture(CUDA_RESOURCE_DESC resource, CUDA_TEXTURE_DESC how)
{
    CUtexObject object = 0;
    OK(cuTexObjectCreate(&object, &resource, &how, nullptr));
    return object;
}

static float sampled(CUtexObject object, float x)
{
    CUdeviceptr to = allocate(4);
    void *arguments[] = {&object, &to, &x};
    OK(cuLaunchKernel(kernel("sample", SAMPLER), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    float value = 0;
    OK(cuMemcpyDtoH(&value, to, 4));
    return value;
}

PROMISE(a_point_is_the_element_it_lies_in)
{
    start();
    CUDA_TEXTURE_DESC how{};
    how.filterMode = CU_TR_FILTER_MODE_POINT;
    how.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
    CUtexObject object = texture(of(row({10, 20, 30, 40})), how);
    SAME(sampled(object, 1.5f), 20.0f);
    SAME(sampled(object, 3.9f), 40.0f);
    SAME(sampled(object, 9.0f), 40.0f);
    SAME(sampled(object, -5.0f), 10.0f);
}

PROMISE(a_border_is_zero_outside)
{
    start();
    CUDA_TEXTURE_DESC how{};
    how.addressMode[0] = CU_TR_ADDRESS_MODE_BORDER;
    SAME(sampled(texture(of(row({10, 20})), how), 7.0f), 0.0f);
}

PROMISE(a_linear_filter_lies_between_the_elements)
{
    start();
    CUDA_TEXTURE_DESC how{};
    how.filterMode = CU_TR_FILTER_MODE_LINEAR;
    how.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
    CUtexObject object = texture(of(row({0, 100, 200, 300})), how);
    SAME(sampled(object, 1.5f), 100.0f);
    SAME(sampled(object, 2.0f), 150.0f);
}

PROMISE(normalised_coordinates_go_to_1_and_wrap)
{
    start();
    CUDA_TEXTURE_DESC how{};
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    how.addressMode[0] = CU_TR_ADDRESS_MODE_WRAP;
    CUtexObject object = texture(of(row({1, 2, 3, 4})), how);
    SAME(sampled(object, 0.375f), 2.0f);
    SAME(sampled(object, 1.375f), 2.0f);
    SAME(sampled(object, -0.125f), 4.0f);
}

PROMISE(linear_memory_is_fetched_by_index)
{
    start();
    float values[] = {5, 6, 7, 8};
    CUdeviceptr memory = allocate(sizeof values), to = allocate(4);
    OK(cuMemcpyHtoD(memory, values, sizeof values));
    CUtexObject object = texture(of(memory, sizeof values), {});
    int x = 2;
    void *arguments[] = {&object, &to, &x};
    OK(cuLaunchKernel(kernel("fetch", SAMPLER), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    float value = 0;
    OK(cuMemcpyDtoH(&value, to, 4));
    SAME(value, 7.0f);
}

// NVIDIA's driver takes it (its sample convolutionFFT2D relies on that): what is not fetched is not looked for.
PROMISE(linear_memory_may_be_said_to_be_longer_than_it_is)
{
    start();
    CUdeviceptr memory = allocate(4096), to = allocate(4);
    float values[1024];
    for (int i = 0; i < 1024; i++)
        values[i] = i;
    OK(cuMemcpyHtoD(memory, values, sizeof values));
    CUDA_TEXTURE_DESC how{};
    CUtexObject object = texture(of(memory, 1 << 20), how);
    CUDA_RESOURCE_DESC kept{};
    OK(cuTexObjectGetResourceDesc(&kept, object));
    SAME(kept.res.linear.sizeInBytes, size_t(1 << 20));
    unsigned x = 1023;
    void *arguments[] = {&object, &to, &x};
    OK(cuLaunchKernel(kernel("fetch", SAMPLER), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    float value = 0;
    OK(cuMemcpyDtoH(&value, to, 4));
    SAME(value, 1023.0f);
    OK(cuTexObjectDestroy(object));
}

PROMISE(an_object_tells_what_it_was_made_from)
{
    start();
    CUarray array = row({1, 2});
    CUDA_TEXTURE_DESC how{}, kept_how{};
    how.filterMode = CU_TR_FILTER_MODE_LINEAR;
    how.addressMode[0] = CU_TR_ADDRESS_MODE_MIRROR;
    how.flags = CU_TRSF_NORMALIZED_COORDINATES;
    CUtexObject object = texture(of(array), how);
    CUDA_RESOURCE_DESC kept{};
    OK(cuTexObjectGetResourceDesc(&kept, object));
    SAME(kept.resType, CU_RESOURCE_TYPE_ARRAY);
    TRUE(kept.res.array.hArray == array);
    OK(cuTexObjectGetTextureDesc(&kept_how, object));
    SAME(kept_how.filterMode, CU_TR_FILTER_MODE_LINEAR);
    SAME(kept_how.addressMode[0], CU_TR_ADDRESS_MODE_MIRROR);
    SAME(kept_how.flags, CU_TRSF_NORMALIZED_COORDINATES);
    OK(cuTexObjectDestroy(object));
}

PROMISE(linear_memory_is_aligned_for_textures)
{
    start();
    CUdeviceptr memory = allocate(4096);
    CUDA_RESOURCE_DESC resource = of(memory + 4, 64);
    CUDA_TEXTURE_DESC how{};
    CUtexObject object;
    IS(cuTexObjectCreate(&object, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
    IS(cuTexObjectCreate(&object, nullptr, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
    resource = of(memory, 64);
    IS(cuTexObjectCreate(nullptr, &resource, &how, nullptr), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_surface_is_written_by_bytes)
{
    start();
    CUarray array = row({0, 0, 0, 0}, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC resource = of(array);
    CUsurfObject object = 0;
    OK(cuSurfObjectCreate(&object, &resource));
    unsigned x = 8, value = 0x40400000; // 3.0f to element 2
    void *arguments[] = {&object, &x, &value};
    OK(cuLaunchKernel(kernel("put", SAMPLER), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    float values[4] = {};
    OK(cuMemcpyAtoH(values, array, 0, sizeof values));
    SAME(values[2], 3.0f);
    SAME(values[1] + values[3], 0.0f);
    CUDA_RESOURCE_DESC kept{};
    OK(cuSurfObjectGetResourceDesc(&kept, object));
    TRUE(kept.res.array.hArray == array);
    OK(cuSurfObjectDestroy(object));
}

PROMISE(surfaces_are_of_arrays)
{
    start();
    CUDA_RESOURCE_DESC resource = of(allocate(64), 64);
    CUsurfObject object;
    IS(cuSurfObjectCreate(&object, &resource), CUDA_ERROR_INVALID_VALUE);
}
