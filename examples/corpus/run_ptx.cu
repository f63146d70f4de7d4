// Launches the kernels of clang_kernels.cu from the PTX file that is the first argument.
#include <fstream>
#include <sstream>
#include <string>

#include <cuda.h>

#include "example.h"

static void check(CUresult result, const char *call)
{
    const char *name = "?";
    if (result != CUDA_SUCCESS) {
        cuGetErrorName(result, &name);
        fail("%s: %d %s", call, int(result), name);
    }
}
#define DRIVER(call) check((call), #call)

int main(int count, char **arguments)
{
    if (count < 2)
        fail("usage: run_ptx FILE");
    std::ifstream file(arguments[1]);
    std::stringstream text;
    text << file.rdbuf();
    CUdevice device;
    CUcontext context;
    CUmodule module;
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGet(&device, 0));
    DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    DRIVER(cuCtxSetCurrent(context));
    DRIVER(cuModuleLoadData(&module, text.str().c_str()));
    const int n = 1000;
    std::vector<float> in(n), got, wanted;
    for (int i = 0; i < n; i++)
        in[i] = float((i * 37) % 50);
    CUdeviceptr device_in, device_out;
    DRIVER(cuMemAlloc(&device_in, n * 4));
    DRIVER(cuMemAlloc(&device_out, (n + 32) * 4));
    DRIVER(cuMemcpyHtoD(device_in, in.data(), n * 4));
    auto run = [&](const char *name, int results) {
        CUfunction function;
        int size = n;
        void *values[] = {&device_in, &device_out, &size};
        DRIVER(cuModuleGetFunction(&function, module, name));
        DRIVER(cuMemsetD8(device_out, 0, (n + 32) * 4));
        DRIVER(cuLaunchKernel(function, (n + 127) / 128, 1, 1, 128, 1, 1, 0, nullptr, values, nullptr));
        got.resize(results);
        DRIVER(cuMemcpyDtoH(got.data(), device_out, results * 4));
    };
    run("polynomial", n);
    for (float x : in)
        wanted.push_back(1 + 2 * x + 3 * x * x + 4 * x * x * x);
    expect_equal("polynomial", got, wanted);
    run("block_sums", 8);
    wanted.assign(8, 0);
    for (int i = 0; i < n; i++)
        wanted[i / 128] += in[i];
    expect_equal("block_sums", got, wanted);
    run("exchange", 16);
    wanted.assign(16, 0);
    for (int i = 0; i < 1024; i++)
        wanted[i < n ? int(in[i]) % 16 : 0] += (i ^ 1) < n ? in[i ^ 1] : 0;
    expect_equal("exchange", got, wanted);
    DRIVER(cuModuleUnload(module));
    return passed();
}
