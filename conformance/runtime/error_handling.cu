// CUDA Runtime API, "Error Handling".
#include "../check.h"

PROMISE(get_last_error_answers_the_last_failure_once)
{
    SAME(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaGetLastError());
}

PROMISE(peeking_leaves_the_error)
{
    SAME(cudaMalloc(nullptr, 16), cudaErrorInvalidValue);
    IS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    IS(cudaPeekAtLastError(), cudaErrorInvalidValue);
    IS(cudaGetLastError(), cudaErrorInvalidValue);
    OK(cudaPeekAtLastError());
}

PROMISE(unknown_codes_have_a_string_that_says_so)
{
    SAME(std::string(cudaGetErrorName(static_cast<cudaError_t>(12345))), "unrecognized error code");
    SAME(std::string(cudaGetErrorString(static_cast<cudaError_t>(12345))), "unrecognized error code");
    SAME(std::string(cudaGetErrorName(cudaErrorInvalidValue)), "cudaErrorInvalidValue");
}
