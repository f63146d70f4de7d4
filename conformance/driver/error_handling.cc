// CUDA Driver API, "Error Handling".
#include "../check.h"

PROMISE(codes_have_names_and_strings_before_init)
{
    const char *text = nullptr;
    OK(cuGetErrorName(CUDA_ERROR_INVALID_VALUE, &text));
    SAME(std::string(text), "CUDA_ERROR_INVALID_VALUE");
    OK(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
    SAME(std::string(text), "invalid argument");
    OK(cuGetErrorName(CUDA_SUCCESS, &text));
    SAME(std::string(text), "CUDA_SUCCESS");
}

PROMISE(an_unknown_code_answers_invalid_value_and_null)
{
    const char *text = "before";
    IS(cuGetErrorName(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    TRUE(text == nullptr);
    text = "before";
    IS(cuGetErrorString(static_cast<CUresult>(12345), &text), CUDA_ERROR_INVALID_VALUE);
    TRUE(text == nullptr);
}
