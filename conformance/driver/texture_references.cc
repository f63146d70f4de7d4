// CUDA Driver API, "Texture Reference Management [DEPRECATED]".
#include "../device.h"

static constexpr char FETCH[] = R"(
.version 7.0
.target sm_75
.address_size 64
.global .texref words;
.visible .entry fetch(.param .u64 to, .param .u32 x)
{
    .reg .b64 %p;
    .reg .b32 %x;
    .reg .f32 %r, %g, %b, %a;
    ld.param.u64 %p, [to];
    ld.param.u32 %x, [x];
    tex.1d.v4.f32.s32 {%r, %g, %b, %a}, [words, {%x}];
    st.global.f32 [%p], %r;
    ret;
}
)";

PROMISE(a_reference_of_a_module_reads_the_memory_it_is_bound_to)
{
    start();
    CUmodule module = load(FETCH);
    CUtexref words;
    OK(cuModuleGetTexRef(&words, module, "words"));
    IS(cuModuleGetTexRef(&words, module, "missing"), CUDA_ERROR_NOT_FOUND);
    float values[] = {1, 2, 3, 4};
    CUdeviceptr memory = allocate(sizeof values), to = allocate(4), bound = 0;
    OK(cuMemcpyHtoD(memory, values, sizeof values));
    OK(cuTexRefSetFormat(words, CU_AD_FORMAT_FLOAT, 1));
    size_t offset = 99;
    OK(cuTexRefSetAddress(&offset, words, memory, sizeof values));
    SAME(offset, 0);
    OK(cuTexRefGetAddress(&bound, words));
    SAME(bound, memory);
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "fetch"));
    launch(function, to, 3);
    float value = 0;
    OK(cuMemcpyDtoH(&value, to, 4));
    SAME(value, 4.0f);
}

PROMISE(what_is_set_is_told)
{
    start();
    CUtexref words;
    OK(cuModuleGetTexRef(&words, load(FETCH), "words"));
    OK(cuTexRefSetFormat(words, CU_AD_FORMAT_SIGNED_INT16, 2));
    OK(cuTexRefSetAddressMode(words, 0, CU_TR_ADDRESS_MODE_CLAMP));
    OK(cuTexRefSetFilterMode(words, CU_TR_FILTER_MODE_LINEAR));
    OK(cuTexRefSetFlags(words, CU_TRSF_READ_AS_INTEGER));
    CUarray_format format;
    int channels = 0;
    OK(cuTexRefGetFormat(&format, &channels, words));
    SAME(format, CU_AD_FORMAT_SIGNED_INT16);
    SAME(channels, 2);
    // What nobody asks for is ignored.
    channels = 0;
    OK(cuTexRefGetFormat(nullptr, &channels, words));
    SAME(channels, 2);
    OK(cuTexRefGetFormat(&format, nullptr, words));
    CUaddress_mode address;
    OK(cuTexRefGetAddressMode(&address, words, 0));
    SAME(address, CU_TR_ADDRESS_MODE_CLAMP);
    CUfilter_mode filter;
    OK(cuTexRefGetFilterMode(&filter, words));
    SAME(filter, CU_TR_FILTER_MODE_LINEAR);
    unsigned flags = 0;
    OK(cuTexRefGetFlags(&flags, words));
    TRUE((flags & CU_TRSF_READ_AS_INTEGER) != 0);
}

PROMISE(a_reference_is_bound_to_an_array_with_its_format)
{
    start();
    CUtexref words;
    OK(cuModuleGetTexRef(&words, load(FETCH), "words"));
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = 16;
    shape.Format = CU_AD_FORMAT_FLOAT;
    shape.NumChannels = 1;
    CUarray array, bound = nullptr;
    OK(cuArrayCreate(&array, &shape));
    OK(cuTexRefSetArray(words, array, CU_TRSA_OVERRIDE_FORMAT));
    OK(cuTexRefGetArray(&bound, words));
    TRUE(bound == array);
}
