// Kernels that launch kernels: in which order what they ask for comes, and what they are told. Each line is by the programming guide,
// whatever device this runs on. Linked with libcudadevrt.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        const cudaError_t error = (call);                                                      \
        if (error != cudaSuccess) {                                                            \
            std::printf("FAILED line %d: %s\n", __LINE__, cudaGetErrorName(error));            \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)

__global__ void append(int *list, int value)
{
    list[1 + list[0]++] = value;
}

// Itself, two in the block's own stream, and what goes to its tail.
__global__ void node(int *list, int value, int depth)
{
    list[1 + list[0]++] = value;
    if (depth == 0)
        return;
    node<<<1, 1, 0, cudaStreamTailLaunch>>>(list, 10 * value + 3, depth - 1);
    node<<<1, 1>>>(list, 10 * value + 1, depth - 1);
    node<<<1, 1>>>(list, 10 * value + 2, depth - 1);
}

// Two streams and an event: what waits comes later, and a copy and a fill keep their places in their stream.
__global__ void streams(int *list, int *other)
{
    cudaStream_t first, second;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    append<<<1, 1, 0, first>>>(list, 1);
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
    append<<<1, 1, 0, second>>>(list, 2);
    cudaMemcpyAsync(other, list, 16, cudaMemcpyDeviceToDevice, second);
    cudaMemsetAsync(list, 0, 4, second);
    append<<<1, 1, 0, second>>>(list, 3);
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    // A handle that is no more.
    append<<<1, 1, 0, first>>>(list, 4);
    other[8] = cudaGetLastError();
}

// More parameters than a record of small ones has room for.
struct Large { int numbers[200]; };
__global__ void sum(Large large, long long *to)
{
    long long total = 0;
    for (int i = 0; i < 200; i++)
        total += large.numbers[i];
    *to = total;
}
__global__ void with_large(long long *to)
{
    Large large;
    for (int i = 0; i < 200; i++)
        large.numbers[i] = i * i;
    sum<<<1, 1>>>(large, to);
}

// Each thread has errors of its own.
__global__ void errors(int *codes, int *list)
{
    if (threadIdx.x % 2)
        append<<<1, 4096>>>(list, 1);
    codes[threadIdx.x] = cudaPeekAtLastError();
    codes[32 + threadIdx.x] = cudaGetLastError();
    codes[64 + threadIdx.x] = cudaGetLastError();
}

// A function that calls itself launches at its ends, and the error of its thread is the kernel's.
__device__ __noinline__ void halve(int *count, int from, int to)
{
    if (to - from == 1) {
        if (from == 5)
            append<<<1, 0>>>(count, 0);
        else
            append<<<1, 1>>>(count, from);
        return;
    }
    halve(count, from, (from + to) / 2);
    halve(count, (from + to) / 2, to);
}
__global__ void recursive(int *count, int *code)
{
    halve(count, 0, 8);
    *code = cudaGetLastError();
}

// Room for so many in the tail.
__global__ void tails(int *list, int *codes, int launches)
{
    for (int i = 0; i < launches; i++) {
        append<<<1, 1, 0, cudaStreamTailLaunch>>>(list, i);
        codes[i] = cudaGetLastError();
    }
}

// Every thread of several blocks: all of it arrives, once.
__global__ void mark(int *marks, int nth)
{
    atomicAdd(marks + nth, 1);
}
__global__ void all_threads(int *marks)
{
    const int nth = blockIdx.x * blockDim.x + threadIdx.x;
    mark<<<1, 2>>>(marks, nth);
    if (nth % 3 == 0)
        mark<<<1, 1, 0, cudaStreamTailLaunch>>>(marks, nth);
}

__global__ void speaking(int value)
{
    printf("child %d\n", value);
}
__global__ void parent_speaks()
{
    printf("parent\n");
    speaking<<<1, 1>>>(1);
    speaking<<<1, 1, 0, cudaStreamTailLaunch>>>(2);
}

__global__ void taking(int *answers)
{
    int *memory = nullptr;
    answers[0] = cudaMalloc(reinterpret_cast<void **>(&memory), 64);
    memory[3] = 7;
    answers[1] = memory[3];
    answers[2] = cudaFree(memory);
}

__global__ void trapping()
{
    asm volatile("trap;");
}
__global__ void launches_trap(int *list)
{
    append<<<1, 1>>>(list, 1);
    trapping<<<1, 1>>>();
    append<<<1, 1>>>(list, 2);
}

static void show(const char *what, const int *device, int n)
{
    int *host = static_cast<int *>(std::malloc(n * sizeof(int)));
    CHECK(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    std::printf("%s:", what);
    for (int i = 0; i < n; i++)
        std::printf(" %d", host[i]);
    std::printf("\n");
    std::fflush(stdout);
    std::free(host);
}

int main()
{
    int *list, *other;
    CHECK(cudaMalloc(&list, 4096));
    CHECK(cudaMalloc(&other, 4096));
    const auto clear = [&] {
        CHECK(cudaMemset(list, 0, 4096));
        CHECK(cudaMemset(other, 0, 4096));
    };

    clear();
    node<<<1, 1>>>(list, 1, 2);
    CHECK(cudaGetLastError());
    // What the host puts behind it comes behind all of that.
    append<<<1, 1>>>(list, 2);
    show("order", list, 15);

    clear();
    streams<<<1, 1>>>(list, other);
    CHECK(cudaGetLastError());
    show("streams", list, 3);
    show("copied", other, 9);

    clear();
    with_large<<<1, 1>>>(reinterpret_cast<long long *>(list));
    CHECK(cudaGetLastError());
    show("large", list, 1);

    clear();
    errors<<<1, 32>>>(other, list);
    CHECK(cudaGetLastError());
    show("errors", other, 4);
    show("taken", other + 32, 4);
    show("gone", other + 64, 4);
    show("launched", list, 1);

    clear();
    recursive<<<1, 1>>>(list, other);
    CHECK(cudaGetLastError());
    show("recursive", list, 8);
    show("its error", other, 1);

    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 3));
    clear();
    tails<<<1, 1>>>(list, other, 5);
    CHECK(cudaGetLastError());
    show("tails", list, 5);
    show("answers", other, 5);
    CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 2048));

    clear();
    all_threads<<<3, 40>>>(other);
    CHECK(cudaGetLastError());
    int marks[120], wrong = 0;
    CHECK(cudaMemcpy(marks, other, sizeof marks, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 120; i++)
        wrong += marks[i] != (i % 3 == 0 ? 3 : 2);
    std::printf("wrong marks: %d\n", wrong);

    // In a graph, and captured: what comes behind the node comes behind its children.
    clear();
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    append<<<1, 1, 0, stream>>>(list, 5);
    node<<<1, 1, 0, stream>>>(list, 1, 1);
    append<<<1, 1, 0, stream>>>(list, 6);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    show("graph", list, 13);

    std::fflush(stdout);
    parent_speaks<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    std::fflush(stdout);

    clear();
    taking<<<1, 1>>>(list);
    CHECK(cudaDeviceSynchronize());
    show("memory", list, 3);

    // A child's fault is the device's, and nothing is launched after it.
    launches_trap<<<1, 1>>>(list);
    const cudaError_t launched = cudaGetLastError(), waited = cudaDeviceSynchronize();
    std::printf("trap: %s\n", cudaGetErrorName(waited != cudaSuccess ? waited : launched));
    // What the lines above have to be, who runs this knows.
    std::printf("PASSED\n");
    return 0;
}
