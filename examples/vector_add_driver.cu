// vector_add on the driver API: a context, a module from a PTX file, a launch with its parameters in an array.
// The PTX file lies beside the program or is its first argument.
#include <cuda.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#ifdef EXAMPLE_DLOPEN
#include "dlopen_driver.h"
#define CU(name) EXPORTED(name)
extern "C" const unsigned char example_image[1] = {0};  // this program brings its PTX as a file
#else
#define CU(name) name
#endif

static void check(CUresult result, const char *call, int line)
{
    if (result == CUDA_SUCCESS)
        return;
    const char *name = "unknown";
    CU(cuGetErrorName)(result, &name);
    std::printf("FAILED: line %d: %s: %d %s\n", line, call, static_cast<int>(result), name);
    std::exit(1);
}

#define CHECK(call) check((call), #call, __LINE__)

int main(int argc, char **argv)
{
    std::string path = argc > 1 ? argv[1] : argv[0];
    if (argc < 2)
        path += ".ptx";
    std::ifstream file(path);
    const std::string ptx{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (ptx.empty()) {
        std::printf("FAILED: cannot read %s\n", path.c_str());
        return 1;
    }

    const int n = 100003;
    const size_t bytes = n * sizeof(float);
    std::vector<float> a(n), b(n), c(n, -1.0f);
    for (int i = 0; i < n; i++) {
        a[i] = i * 0.37f;
        b[i] = 1.0f / (i + 1);
    }

    CHECK(CU(cuInit)(0));
    CUdevice device;
    CUcontext context;
    CHECK(CU(cuDeviceGet)(&device, 0));
    CHECK(CU(cuDevicePrimaryCtxRetain)(&context, device));
    CHECK(CU(cuCtxPushCurrent)(context));

    CUmodule module;
    CUfunction kernel;
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    const CUresult loaded = CU(cuModuleLoadDataEx)(&module, ptx.c_str(), 2, options, values);
    if (loaded != CUDA_SUCCESS)
        std::printf("%s\n", log);
    check(loaded, "cuModuleLoadDataEx", __LINE__);
    CHECK(CU(cuModuleGetFunction)(&kernel, module, "vector_add"));

    CUdeviceptr device_a, device_b, device_c;
    CHECK(CU(cuMemAlloc)(&device_a, bytes));
    CHECK(CU(cuMemAlloc)(&device_b, bytes));
    CHECK(CU(cuMemAlloc)(&device_c, bytes));
    CHECK(CU(cuMemcpyHtoD)(device_a, a.data(), bytes));
    CHECK(CU(cuMemcpyHtoD)(device_b, b.data(), bytes));

    CUstream stream;
    CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_DEFAULT));
    int count = n;
    void *parameters[] = {&device_a, &device_b, &device_c, &count};
    CHECK(CU(cuLaunchKernel)(kernel, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream, parameters, nullptr));
    CHECK(CU(cuStreamSynchronize)(stream));
    CHECK(CU(cuMemcpyDtoH)(c.data(), device_c, bytes));

    // The same once more with the parameters packed into one buffer, onto the default stream.
    struct {
        CUdeviceptr a, b, c;
        int n;
    } packed = {device_a, device_c, device_b, n};
    size_t packed_bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_bytes, CU_LAUNCH_PARAM_END};
    CHECK(CU(cuLaunchKernel)(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
    std::vector<float> twice(n);
    CHECK(CU(cuCtxSynchronize)());
    CHECK(CU(cuMemcpyDtoH)(twice.data(), device_b, bytes));

    for (int i = 0; i < n; i++) {
        const float sum = a[i] + b[i], again = a[i] + sum;
        if (c[i] != sum || twice[i] != again) {
            std::printf("FAILED: element %d is %.9g and %.9g, expected %.9g and %.9g\n", i, c[i], twice[i], sum, again);
            return 1;
        }
    }
    CHECK(CU(cuMemFree)(device_a));
    CHECK(CU(cuMemFree)(device_b));
    CHECK(CU(cuMemFree)(device_c));
    CHECK(CU(cuStreamDestroy)(stream));
    CHECK(CU(cuModuleUnload)(module));
    CHECK(CU(cuCtxPopCurrent)(&context));
    CHECK(CU(cuDevicePrimaryCtxRelease)(device));
    std::printf("vector_add_driver: %d elements, twice\n", n);
    std::printf("PASSED\n");
    return 0;
}
