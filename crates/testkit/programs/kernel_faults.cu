// A kernel fails in the way that the argument names. What CUDA documents must follow: the error at the next
// synchronising call and at every later one, whole host data, and a device that is as good as new after the reset.
#include <cassert>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <vector>

static void check(bool holds, const char *what, int line)
{
    if (holds)
        return;
    std::printf("line %d: %s\n", line, what);
    std::fflush(stdout);
    std::_Exit(1);
}
#define CHECK(condition) check((condition), #condition, __LINE__)

static void expect(cudaError_t got, int code, const char *call, int line)
{
    if (static_cast<int>(got) == code)
        return;
    std::printf("line %d: %s gives %d, expected %d\n", line, call, static_cast<int>(got), code);
    std::fflush(stdout);
    std::_Exit(1);
}
#define EXPECT(code, call) expect((call), (code), #call, __LINE__)
#define OK(call) EXPECT(0, call)

__global__ void fill(int *data, int value)
{
    data[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void store_to(int *at)
{
    if (threadIdx.x == 3)
        *at = 1;
}

__global__ void sum_from(const int *at, int *out)
{
    atomicAdd(out, at[threadIdx.x * 1024]);
}

__global__ void asserts(const int *data)
{
    assert(data[threadIdx.x] < 40 || blockIdx.y != 1);
}

__global__ void traps()
{
    if (threadIdx.x == 1)
        __trap();
}

// Uses more of the stack at each level, and cannot be turned into a loop.
__device__ __noinline__ int deep(int n, const int *above)
{
    int own[32];
    for (int i = 0; i < 32; i++)
        own[i] = above[i ^ (n & 31)] + n;
    if (own[n & 31] == -1)
        return 0;
    return deep(n + 1, own) + own[(n + 7) & 31];
}

__global__ void recurses(int *data)
{
    data[threadIdx.x] = deep(static_cast<int>(threadIdx.x), data);
}

typedef int (*Operation)(int);

__device__ int twice(int value)
{
    return 2 * value;
}

__device__ int next(int value)
{
    return value + 1;
}

__device__ Operation operations[] = {twice, next, nullptr};

__global__ void calls(int *data, int which)
{
    data[threadIdx.x] = operations[threadIdx.x == 5 ? which : 0](data[threadIdx.x]);
}

__global__ void takes_all(int *counts)
{
    int got = 0;
    void *last = nullptr;
    while (void *block = malloc(1 << 20)) {
        last = block;
        got++;
    }
    counts[0] = got;
    counts[1] = malloc(static_cast<size_t>(1) << 40) == nullptr;
    free(last);
    counts[2] = malloc(1 << 19) != nullptr;
}

__global__ void frees_what_is_not_there(char *data)
{
    free(data + 1);
    void *block = malloc(64);
    free(block);
    free(block);
}

__global__ void prints(int n)
{
    for (int i = 0; i < n; i++)
        printf("a line of text with the number %d\n", i);
}

__global__ void unaligned(char *data)
{
    if (threadIdx.x == 0) {
        *reinterpret_cast<volatile int *>(data + 1) = 0x11223344;
        *reinterpret_cast<volatile long long *>(data + 9) = 0x0102030405060708ll;
        *reinterpret_cast<int4 *>(data + 36) = make_int4(1, 2, 3, 4);
    }
}

static const int n = 64;
static int *device_data;
static std::vector<int> host_data;

static void prepare()
{
    host_data.assign(n, 7);
    OK(cudaMalloc(&device_data, n * sizeof(int)));
    OK(cudaMemcpy(device_data, host_data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
}

static void works()
{
    int *data;
    std::vector<int> back(n);
    OK(cudaMalloc(&data, n * sizeof(int)));
    fill<<<2, n / 2>>>(data, 5);
    OK(cudaGetLastError());
    OK(cudaMemcpy(back.data(), data, n * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(back == std::vector<int>(n, 5));
    OK(cudaFree(data));
}

// Everything from here on answers with the kernel's error.
static void sticks(int code)
{
    void *more = nullptr;
    cudaStream_t stream;
    cudaEvent_t event;
    EXPECT(code, cudaPeekAtLastError());
    EXPECT(code, cudaGetLastError());
    EXPECT(code, cudaGetLastError());
    EXPECT(code, cudaMalloc(&more, 64));
    EXPECT(code, cudaMemcpy(host_data.data(), device_data, n * sizeof(int), cudaMemcpyDeviceToHost));
    EXPECT(code, cudaMemset(device_data, 0, n * sizeof(int)));
    EXPECT(code, cudaStreamCreate(&stream));
    EXPECT(code, cudaEventCreate(&event));
    EXPECT(code, cudaStreamQuery(nullptr));
    EXPECT(code, cudaStreamSynchronize(nullptr));
    EXPECT(code, cudaDeviceSynchronize());
    EXPECT(code, cudaFree(device_data));
    fill<<<1, n>>>(device_data, 9);
    EXPECT(code, cudaGetLastError());
    CHECK(host_data == std::vector<int>(n, 7));
    OK(cudaDeviceReset());
    OK(cudaGetLastError());
    works();
}

// No number will do: the system moves the stack about, and lets it grow down to whatever address is touched.
static int *unreadable(size_t bytes)
{
    void *at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return static_cast<int *>(at);
}

static void fails(int code)
{
    OK(cudaGetLastError());
    EXPECT(code, cudaDeviceSynchronize());
    sticks(code);
}

static sigjmp_buf landing;
static volatile int own_faults;

static void own_handler(int)
{
    own_faults++;
    siglongjmp(landing, 1);
}

// A fault of the program's own goes to the program's handler, whoever registered first.
static void own_fault()
{
    if (sigsetjmp(landing, 1) == 0)
        *reinterpret_cast<volatile int *>(8) = 1;
}

static void handlers()
{
    std::signal(SIGSEGV, own_handler);
    prepare();
    works();
    own_fault();
    CHECK(own_faults == 1);
    // Registered once more: now it comes before the device's handler.
    std::signal(SIGSEGV, own_handler);
    own_fault();
    CHECK(own_faults == 2);
    store_to<<<1, 32>>>(nullptr);
    fails(700);
    CHECK(own_faults == 2);
    own_fault();
    CHECK(own_faults == 3);
}

// The first call that waits for the kernel brings the error, whichever it is.
static void first_call(const char *which)
{
    std::vector<int> back(n);
    cudaStream_t stream;
    cudaEvent_t event;
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&event));
    store_to<<<1, 32, 0, stream>>>(nullptr);
    OK(cudaGetLastError());
    if (std::strcmp(which, "stream") == 0) {
        EXPECT(700, cudaStreamSynchronize(stream));
    } else if (std::strcmp(which, "event") == 0) {
        cudaEventRecord(event, stream);
        EXPECT(700, cudaEventSynchronize(event));
    } else {
        EXPECT(700, cudaMemcpy(back.data(), device_data, n * sizeof(int), cudaMemcpyDeviceToHost));
        CHECK(back == std::vector<int>(n, 0));
    }
    sticks(700);
}

// Two contexts of one device, by the driver's calls: the fault of one is nothing to the other.
static void contexts()
{
    static const char image[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                                ".visible .entry store(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
                                "ld.param.u64 %rd1, [p]; mov.u32 %r1, 77; st.global.u32 [%rd1], %r1; ret; }\n";
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(driver != nullptr);
#define CALL(name) reinterpret_cast<decltype(&name)>(dlsym(driver, #name))
    const auto create = reinterpret_cast<CUresult (*)(CUcontext *, unsigned, CUdevice)>(dlsym(driver, "cuCtxCreate_v2"));
    const auto destroy = reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(driver, "cuCtxDestroy_v2"));
    const auto allocate = reinterpret_cast<CUresult (*)(CUdeviceptr *, size_t)>(dlsym(driver, "cuMemAlloc_v2"));
    const auto copy = reinterpret_cast<CUresult (*)(void *, CUdeviceptr, size_t)>(dlsym(driver, "cuMemcpyDtoH_v2"));
    const auto set = CALL(cuCtxSetCurrent);
    const auto synchronize = CALL(cuCtxSynchronize);
    const auto get = CALL(cuModuleGetFunction);
    const auto load = CALL(cuModuleLoadData);
    const auto launch = CALL(cuLaunchKernel);
    CUcontext made[2];
    CUfunction store[2];
    CUdeviceptr data[2];
    for (int i = 0; i < 2; i++) {
        CUmodule module;
        CHECK(create(&made[i], 0, 0) == CUDA_SUCCESS);
        CHECK(load(&module, image) == CUDA_SUCCESS);
        CHECK(get(&store[i], module, "store") == CUDA_SUCCESS);
        CHECK(allocate(&data[i], 64) == CUDA_SUCCESS);
    }
    CUdeviceptr nowhere = 0;
    void *bad[] = {&nowhere}, *good[] = {&data[0]};
    // Current is the second; it fails.
    CHECK(launch(store[1], 1, 1, 1, 1, 1, 1, 0, nullptr, bad, nullptr) == CUDA_SUCCESS);
    CHECK(synchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    for (int round = 0; round < 2; round++) {
        int back = 0;
        CUdeviceptr more;
        CHECK(set(made[0]) == CUDA_SUCCESS);
        CHECK(launch(store[0], 1, 1, 1, 1, 1, 1, 0, nullptr, good, nullptr) == CUDA_SUCCESS);
        CHECK(synchronize() == CUDA_SUCCESS);
        CHECK(copy(&back, data[0], sizeof back) == CUDA_SUCCESS);
        CHECK(back == 77);
        CHECK(set(made[1]) == CUDA_SUCCESS);
        CHECK(synchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
        CHECK(allocate(&more, 64) == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    CHECK(destroy(made[1]) == CUDA_SUCCESS);
    CHECK(set(made[0]) == CUDA_SUCCESS);
    CHECK(synchronize() == CUDA_SUCCESS);
    CHECK(destroy(made[0]) == CUDA_SUCCESS);
    CHECK(set(nullptr) == CUDA_SUCCESS);
    // The runtime's own context saw none of it.
    works();
}

static void unaligned_works()
{
    char *data;
    char back[64];
    OK(cudaMalloc(&data, 64));
    OK(cudaMemset(data, 0, 64));
    unaligned<<<1, 32>>>(data);
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(back, data, 64, cudaMemcpyDeviceToHost));
    const int four[] = {1, 2, 3, 4};
    const long long eight = 0x0102030405060708ll;
    const int one = 0x11223344;
    CHECK(std::memcmp(back + 1, &one, 4) == 0);
    CHECK(std::memcmp(back + 9, &eight, 8) == 0);
    CHECK(std::memcmp(back + 36, four, 16) == 0);
}

static void heap()
{
    int *counts, back[3];
    OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 8 << 20));
    OK(cudaMalloc(&counts, sizeof back));
    takes_all<<<1, 1>>>(counts);
    OK(cudaMemcpy(back, counts, sizeof back, cudaMemcpyDeviceToHost));
    CHECK(back[0] >= 1 && back[0] <= 8 && back[1] == 1 && back[2] == 1);
    // Undefined on a GPU; here nothing may break.
    frees_what_is_not_there<<<1, 1>>>(reinterpret_cast<char *>(counts));
    OK(cudaDeviceSynchronize());
    works();
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    const char *way = argv[1];
    const auto is = [way](const char *name) { return std::strcmp(way, name) == 0; };
    if (is("handlers")) {
        handlers();
        std::puts("PASSED");
        return 0;
    }
    prepare();
    if (is("null")) {
        store_to<<<1, 32>>>(nullptr);
        fails(700);
    } else if (is("wild")) {
        sum_from<<<4, 32>>>(unreadable(32 * 4096), device_data);
        fails(700);
    } else if (is("noncanonical")) {
        sum_from<<<1, 32>>>(reinterpret_cast<int *>(0xdeadbeefdeadbee0ull), device_data);
        fails(700);
    } else if (is("assert")) {
        std::vector<int> data(n, 7);
        data[5] = data[33] = 41;
        OK(cudaMemcpy(device_data, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
        asserts<<<dim3(1, 2), dim3(8, 8)>>>(device_data);
        fails(710);
    } else if (is("trap")) {
        traps<<<2, 64>>>();
        fails(719);
    } else if (is("stack")) {
        recurses<<<1, 32>>>(device_data);
        fails(714);
    } else if (is("call")) {
        calls<<<1, 32>>>(device_data, 1);
        OK(cudaDeviceSynchronize());
        calls<<<1, 32>>>(device_data, 2);
        fails(718);
    } else if (is("contexts")) {
        contexts();
    } else if (is("heap")) {
        heap();
    } else if (is("printf")) {
        prints<<<1, 1>>>(40000);
        OK(cudaDeviceSynchronize());
    } else if (is("unaligned")) {
        unaligned_works();
    } else {
        first_call(way);
    }
    std::puts("PASSED");
    return 0;
}
