// Calls that must fail, each with the error CUDA documents for it; afterwards everything still works.
#include "example.h"

#if DEVICE_CODE
__device__ int known = 5;

KERNEL add_known(int *data, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] += known;
}
#endif

static int refused = 0;

static void expect_error(cudaError_t got, int code, const char *name, const char *call)
{
    if (static_cast<int>(got) != code)
        fail("%s gives %d %s, expected %d %s", call, static_cast<int>(got), cudaGetErrorName(got), code, name);
    if (std::strcmp(cudaGetErrorName(got), name) != 0)
        fail("error %d is called %s, expected %s", code, cudaGetErrorName(got), name);
    refused++;
}

// `expected` is a code and its name.
#define EXPECT(expected, call) expect_error((call), expected, #call)

// Errors leave no trace: allocate, launch, compare.
static void still_works()
{
    const int n = 300;
    std::vector<int> data(n, 1);
    int *device_data;
    CHECK(cudaMalloc(&device_data, n * sizeof(int)));
    CHECK(cudaMemcpy(device_data, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    LAUNCH(add_known, 3, 128)(device_data, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(data.data(), device_data, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device_data));
    expect_equal("data", data, std::vector<int>(n, 6));
}

#if DEVICE_CODE
#define INVALID_VALUE 1, "cudaErrorInvalidValue"
#define INVALID_CONFIGURATION 9, "cudaErrorInvalidConfiguration"
// CUDA 13 passes on what the driver says of a launch that is nothing or more than the device has.
#if CUDART_VERSION >= 13000
#define NO_CONFIGURATION INVALID_VALUE
#else
#define NO_CONFIGURATION INVALID_CONFIGURATION
#endif
#define INVALID_SYMBOL 13, "cudaErrorInvalidSymbol"
#define INVALID_DEVICE 101, "cudaErrorInvalidDevice"
#define NO_KERNEL_IMAGE 209, "cudaErrorNoKernelImageForDevice"

static int not_on_the_device = 0;

cudaError_t launch_sass_75(int *out);
cudaError_t launch_sass_80(int *out);

static void bad_pointers()
{
    int value = 0, *data;
    CHECK(cudaMalloc(&data, 64));
    EXPECT(INVALID_VALUE, cudaMalloc((void **)nullptr, 16));
    EXPECT(INVALID_VALUE, cudaMemcpy(nullptr, &value, sizeof value, cudaMemcpyHostToDevice));
    EXPECT(INVALID_VALUE, cudaMemcpy(data, nullptr, sizeof value, cudaMemcpyHostToDevice));
    EXPECT(INVALID_VALUE, cudaMemset(nullptr, 0, 16));
    EXPECT(INVALID_VALUE, cudaFree(&value));
    EXPECT(INVALID_VALUE, cudaGetDeviceCount(nullptr));
    CHECK(cudaFree(nullptr));
    CHECK(cudaFree(data));
    cudaGetLastError();
}

static void unknown_symbols()
{
    int value = 0;
    void *address = nullptr;
    EXPECT(INVALID_SYMBOL, cudaMemcpyToSymbol(not_on_the_device, &value, sizeof value));
    EXPECT(INVALID_SYMBOL, cudaMemcpyFromSymbol(&value, not_on_the_device, sizeof value));
    EXPECT(INVALID_SYMBOL, cudaGetSymbolAddress(&address, not_on_the_device));
    cudaGetLastError();
}

static void bad_launches()
{
    int *data;
    CHECK(cudaMalloc(&data, 64));
    // Peeking leaves the error, getting takes it.
    add_known<<<1, 2048>>>(data, 0);
    EXPECT(NO_CONFIGURATION, cudaPeekAtLastError());
    EXPECT(NO_CONFIGURATION, cudaGetLastError());
    CHECK(cudaGetLastError());
    add_known<<<1, dim3(1, 1, 65)>>>(data, 0);
    EXPECT(NO_CONFIGURATION, cudaGetLastError());
    add_known<<<0, 32>>>(data, 0);
    EXPECT(NO_CONFIGURATION, cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(data));
}

static void sass_only()
{
    int *data, major = 0;
    CHECK(cudaMalloc(&data, 64));
    CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    // Neither image has PTX; one of the two is never for this device.
    if (major == 7)
        EXPECT(NO_KERNEL_IMAGE, launch_sass_80(data));
    else
        EXPECT(NO_KERNEL_IMAGE, launch_sass_75(data));
    CHECK(cudaGetLastError());
    CHECK(cudaFree(data));
}

static void other()
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(INVALID_DEVICE, cudaSetDevice(count));
    EXPECT(INVALID_DEVICE, cudaSetDevice(-1));
    cudaGetLastError();
    const struct {
        cudaError_t error;
        const char *text;
    } texts[] = {
        {cudaSuccess, "no error"},
        {cudaErrorInvalidValue, "invalid argument"},
        {cudaErrorInvalidConfiguration, "invalid configuration argument"},
        {cudaErrorInvalidSymbol, "invalid device symbol"},
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    };
    for (const auto &row : texts)
        if (std::strcmp(cudaGetErrorString(row.error), row.text) != 0)
            fail("error %d says \"%s\", expected \"%s\"", static_cast<int>(row.error), cudaGetErrorString(row.error), row.text);
}
#else
#define INVALID_VALUE 1, "CUDA_ERROR_INVALID_VALUE"
#define INVALID_DEVICE 101, "CUDA_ERROR_INVALID_DEVICE"
#define NO_BINARY 209, "CUDA_ERROR_NO_BINARY_FOR_GPU"
#define INVALID_PTX 218, "CUDA_ERROR_INVALID_PTX"
#define NOT_FOUND 500, "CUDA_ERROR_NOT_FOUND"

extern "C" const unsigned char sass_75[];
extern "C" const unsigned char sass_80[];

static CUmodule image()
{
    Device here;
    CHECK(device(here));
    return here.module;
}

static void bad_pointers()
{
    int value = 0;
    CUdeviceptr data;
    CHECK(EXPORTED(cuMemAlloc)(&data, 64));
    EXPECT(INVALID_VALUE, EXPORTED(cuMemAlloc)(nullptr, 16));
    EXPECT(INVALID_VALUE, EXPORTED(cuMemcpyHtoD)(0, &value, sizeof value));
    EXPECT(INVALID_VALUE, EXPORTED(cuMemcpyHtoD)(data, nullptr, sizeof value));
    EXPECT(INVALID_VALUE, EXPORTED(cuDeviceGetCount)(nullptr));
    CUdeviceptr nothing;
    EXPECT(INVALID_VALUE, EXPORTED(cuMemAlloc)(&nothing, 0));
    CHECK(EXPORTED(cuMemFree)(0));
    CHECK(EXPORTED(cuMemFree)(data));
}

static void unknown_symbols()
{
    CUfunction function;
    CUdeviceptr address;
    size_t bytes;
    EXPECT(NOT_FOUND, EXPORTED(cuModuleGetFunction)(&function, image(), "no_such_kernel"));
    EXPECT(NOT_FOUND, EXPORTED(cuModuleGetGlobal)(&address, &bytes, image(), "no_such_variable"));
}

static void bad_launches()
{
    CUfunction function;
    CUdeviceptr data = 0;
    int n = 0;
    void *parameters[] = {&data, &n};
    CHECK(EXPORTED(cuModuleGetFunction)(&function, image(), "add_known"));
    EXPECT(INVALID_VALUE, EXPORTED(cuLaunchKernel)(function, 1, 1, 1, 2048, 1, 1, 0, nullptr, parameters, nullptr));
    EXPECT(INVALID_VALUE, EXPORTED(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 65, 0, nullptr, parameters, nullptr));
    EXPECT(INVALID_VALUE, EXPORTED(cuLaunchKernel)(function, 0, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
    CHECK(cudaDeviceSynchronize());
}

static void sass_only()
{
    CUdevice handle;
    int major = 0;
    CUmodule module = nullptr;
    CHECK(EXPORTED(cuDeviceGet)(&handle, 0));
    CHECK(EXPORTED(cuDeviceGetAttribute)(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle));
    EXPECT(NO_BINARY, EXPORTED(cuModuleLoadData)(&module, major == 7 ? sass_80 : sass_75));

    char log[1024] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
    const char *broken = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry k() { add.s32 %r1, %r2 }\n";
    EXPECT(INVALID_PTX, EXPORTED(cuModuleLoadDataEx)(&module, broken, 2, options, values));
    if (log[0] == '\0')
        fail("the error log of a broken PTX text is empty");
}

static void other()
{
    int count = 0;
    CUdevice handle;
    const char *text;
    CHECK(cudaGetDeviceCount(&count));
    EXPECT(INVALID_DEVICE, EXPORTED(cuDeviceGet)(&handle, count));
    EXPECT(INVALID_DEVICE, EXPORTED(cuDeviceGet)(&handle, -1));
    EXPECT(INVALID_VALUE, EXPORTED(cuGetErrorName)(static_cast<CUresult>(123456), &text));
}
#endif

int main()
{
    still_works();
    bad_pointers();
    still_works();
    unknown_symbols();
    still_works();
    bad_launches();
    still_works();
    sass_only();
    still_works();
    other();
    still_works();
    std::printf("error_paths: %d calls refused as documented\n", refused);
    return passed();
}
