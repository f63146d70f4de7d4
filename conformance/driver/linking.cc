// CUDA Driver API, "Module Management", cuLink*: several texts become one program.
#include "../device.h"

static constexpr char HELPER[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .func (.param .b32 out) twice(.param .b32 in)
{
    .reg .b32 %r;
    ld.param.b32 %r, [in];
    shl.b32 %r, %r, 1;
    st.param.b32 [out], %r;
    ret;
}
)";

static constexpr char CALLER[] = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .func (.param .b32 out) twice(.param .b32 in);
.visible .entry store_twice(.param .u64 to, .param .u32 value)
{
    .reg .b64 %p;
    .reg .b32 %v;
    ld.param.u64 %p, [to];
    ld.param.u32 %v, [value];
    {
        .param .b32 in;
        .param .b32 out;
        st.param.b32 [in], %v;
        call (out), twice, (in);
        ld.param.b32 %v, [out];
    }
    st.global.u32 [%p], %v;
    ret;
}
)";

static CUlinkState create_link()
{
    CUlinkState link;
    OK(cuLinkCreate(0, nullptr, nullptr, &link));
    return link;
}

static CUresult add(CUlinkState link, const char *ptx)
{
    return cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char *>(ptx), std::strlen(ptx) + 1, "input", 0, nullptr, nullptr);
}

PROMISE(a_function_of_one_text_is_called_by_another)
{
    start();
    CUlinkState link = create_link();
    OK(add(link, HELPER));
    OK(add(link, CALLER));
    void *image = nullptr;
    size_t size = 0;
    OK(cuLinkComplete(link, &image, &size));
    TRUE(image && size > 0);
    CUmodule module;
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    CUfunction function;
    OK(cuModuleGetFunction(&function, module, "store_twice"));
    CUdeviceptr word = allocate(4);
    launch(function, word, 21);
    SAME(word_at(word), 42);
}

PROMISE(what_is_missing_is_an_error_and_in_the_log)
{
    start();
    char log[2048] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    CUlinkState link;
    OK(cuLinkCreate(2, options, values, &link));
    OK(add(link, CALLER));
    void *image;
    size_t size;
    TRUE(cuLinkComplete(link, &image, &size) != CUDA_SUCCESS);
    TRUE(std::string(log).find("twice") != std::string::npos);
    OK(cuLinkDestroy(link));
}

PROMISE(wrong_ptx_is_invalid)
{
    start();
    IS(add(create_link(), ".version 7.0\n.target sm_75\n.address_size 64\n.entry k() { wrong.u32 %r; }"), CUDA_ERROR_INVALID_PTX);
}

PROMISE(a_file_that_is_not_there_is_not_found)
{
    start();
    IS(cuLinkAddFile(create_link(), CU_JIT_INPUT_PTX, "/nowhere/at/all.ptx", 0, nullptr, nullptr), CUDA_ERROR_FILE_NOT_FOUND);
}

PROMISE(a_link_without_a_place_for_it_is_an_invalid_value)
{
    start();
    IS(cuLinkCreate(0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}
