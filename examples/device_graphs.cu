// Graphs that kernels launch: fired, put into the tail, fired as siblings, and graphs that launch themselves again. What is expected
// follows from the programming guide's rules or is computed here. Where a device has none of it, instantiation says so.
#include "example.h"

#include <functional>

__global__ void add(int *data, int value)
{
    atomicAdd(data + threadIdx.x, value);
}

__global__ void copy_one(int *to, const int *from)
{
    *to = *from;
}

__global__ void fire(cudaGraphExec_t graph, cudaStream_t mode, int *answer)
{
    *answer = cudaGraphLaunch(graph, mode);
}

// How many launches are taken.
__global__ void fire_all(const cudaGraphExec_t *graphs, int n, cudaStream_t mode, int *n_taken)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (cudaGraphLaunch(graphs[i], mode) == cudaSuccess)
            atomicAdd(n_taken, 1);
}

// Notes a value, and puts up to two graphs into the tail.
__global__ void note(int *list, int value, cudaGraphExec_t first, cudaGraphExec_t second)
{
    list[1 + list[0]++] = value;
    if (first)
        cudaGraphLaunch(first, cudaStreamGraphTailLaunch);
    if (second)
        cudaGraphLaunch(second, cudaStreamGraphTailLaunch);
}

__global__ void halve_or_triple(unsigned *state)
{
    state[0] = state[0] % 2 ? 3 * state[0] + 1 : state[0] / 2;
    state[1]++;
}

// The second launch of itself in one run is one too many.
__global__ void again_unless_one(unsigned *state, int *second)
{
    if (state[0] == 1)
        return;
    const cudaGraphExec_t self = cudaGetCurrentGraphExec();
    if (cudaGraphLaunch(self, cudaStreamGraphTailLaunch) != cudaSuccess)
        state[2]++;
    *second = cudaGraphLaunch(self, cudaStreamGraphTailLaunch);
}

__global__ void tell_current(uintptr_t *current)
{
    *current = reinterpret_cast<uintptr_t>(cudaGetCurrentGraphExec());
}

__global__ void launches_grids(int *data)
{
    add<<<1, 32>>>(data, 1);
}

static cudaStream_t stream;

static cudaGraph_t captured(const std::function<void()> &work)
{
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    work();
    CHECK(cudaStreamEndCapture(stream, &graph));
    return graph;
}

// A graph for the device, uploaded.
static cudaGraphExec_t for_device(const std::function<void()> &work)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph = captured(work);
    CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaGraphDestroy(graph));
    return exec;
}

// An ordinary graph, launched once.
static void run(const std::function<void()> &work)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph = captured(work);
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

template <typename T>
static std::vector<T> fetched(const T *device, size_t count)
{
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

static void expect_int(const char *what, int got, int expected)
{
    if (got != expected)
        fail("%s: %d, expected %d", what, got, expected);
}

// What an instantiation for the device answers, and of which node. The graph is destroyed.
static void refused(const char *what, cudaGraph_t graph, cudaGraphInstantiateResult expected, cudaGraphNode_t node)
{
    cudaGraphExec_t exec;
    cudaGraphInstantiateParams params = {};
    params.flags = cudaGraphInstantiateFlagDeviceLaunch;
    if (cudaGraphInstantiateWithParams(&exec, graph, &params) == cudaSuccess)
        fail("%s: a graph for the device may have it", what);
    (void)cudaGetLastError();
    expect_int(what, params.result_out, expected);
    if (params.errNode_out != node)
        fail("%s: another node is named", what);
    CHECK(cudaGraphDestroy(graph));
}

static cudaGraphNode_t only_node(cudaGraph_t graph)
{
    cudaGraphNode_t node;
    size_t count = 1;
    CHECK(cudaGraphGetNodes(graph, &node, &count));
    return node;
}

static void CUDART_CB nothing(void *) {}

static void refusals(int *device)
{
    const auto unsupported = cudaGraphInstantiateNodeOperationNotSupported;
    cudaGraph_t graph = captured([&] { CHECK(cudaLaunchHostFunc(stream, nothing, nullptr)); });
    refused("a host function", graph, unsupported, only_node(graph));
    graph = captured([&] { launches_grids<<<1, 1, 0, stream>>>(device); });
    refused("a kernel that launches grids", graph, unsupported, only_node(graph));
    static int pageable[4];
    cudaGraphNode_t node;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, device, pageable, sizeof(pageable), cudaMemcpyHostToDevice));
    refused("pageable memory", graph, unsupported, node);
    CHECK(cudaGraphCreate(&graph, 0));
    refused("nothing", graph, cudaGraphInstantiateError, nullptr);
    cudaGraphExec_t exec;
    graph = captured([&] { add<<<1, 1, 0, stream>>>(device, 1); });
    const auto both = cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagAutoFreeOnLaunch;
    expect_int("both flags", cudaGraphInstantiate(&exec, graph, both), cudaErrorInvalidValue);
    (void)cudaGetLastError();
    CHECK(cudaGraphDestroy(graph));
}

static bool is_there(int *device)
{
    cudaGraph_t graph = captured([&] { add<<<1, 1, 0, stream>>>(device, 0); });
    cudaGraphExec_t exec;
    const cudaError_t answer = cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch);
    if (answer == cudaSuccess)
        CHECK(cudaGraphExecDestroy(exec));
    else if (answer != cudaErrorNotSupported)
        CHECK(answer);
    (void)cudaGetLastError();
    CHECK(cudaGraphDestroy(graph));
    return answer == cudaSuccess;
}

// A fired graph of a fill, a kernel, a copy through page-locked memory and a child graph; the tail sees what it has done.
static void fired(int *device, int *answer)
{
    int *pinned;
    CHECK(cudaMallocHost(&pinned, 32 * sizeof(int)));
    cudaGraph_t child = captured([&] { add<<<1, 32, 0, stream>>>(device + 64, 1000); });
    cudaGraph_t graph = captured([&] {
        CHECK(cudaMemsetAsync(device, 0, 32 * sizeof(int), stream));
        add<<<1, 32, 0, stream>>>(device, 5);
        CHECK(cudaMemcpyAsync(pinned, device, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaMemcpyAsync(device + 64, pinned, 32 * sizeof(int), cudaMemcpyHostToDevice, stream));
    });
    std::vector<cudaGraphNode_t> nodes(4);
    size_t count = nodes.size();
    CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
    cudaGraphNode_t last;
    CHECK(cudaGraphAddChildGraphNode(&last, graph, nodes.data(), count, child));
    cudaGraphInstantiateParams params = {};
    params.flags = cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUpload;
    params.uploadStream = stream;
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiateWithParams(&exec, graph, &params));
    expect_int("the result", params.result_out, cudaGraphInstantiateSuccess);
    cudaGraphExec_t tail = for_device([&] { copy_one<<<1, 1, 0, stream>>>(answer + 2, device + 64 + 31); });
    CHECK(cudaMemsetAsync(device, 0xff, 96 * sizeof(int), stream));
    run([&] {
        fire<<<1, 1, 0, stream>>>(tail, cudaStreamGraphTailLaunch, answer);
        fire<<<1, 1, 0, stream>>>(exec, cudaStreamGraphFireAndForget, answer + 1);
    });
    expect_equal("answers, and what the tail has seen", fetched(answer, 3), {0, 0, 1005});
    expect_equal("fired", fetched(device, 32), std::vector<int>(32, 5));
    expect_equal("fired, the child", fetched(device + 64, 32), std::vector<int>(32, 1005));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphExecDestroy(tail));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(child));
    CHECK(cudaFreeHost(pinned));
}

// What a graph of the tail puts into its own comes before what was in line already.
static void tails(int *list)
{
    const auto noting = [&](int value, cudaGraphExec_t first, cudaGraphExec_t second) {
        return for_device([=] { note<<<1, 1, 0, stream>>>(list, value, first, second); });
    };
    cudaGraphExec_t x = noting(211, nullptr, nullptr), y = noting(212, nullptr, nullptr), c = noting(22, nullptr, nullptr);
    cudaGraphExec_t b = noting(21, x, y);
    CHECK(cudaMemsetAsync(list, 0, 8 * sizeof(int), stream));
    run([&] {
        note<<<1, 1, 0, stream>>>(list, 1, b, c);
        note<<<1, 1, 0, stream>>>(list, 2, nullptr, nullptr);
    });
    expect_equal("tails", fetched(list, 7), {6, 1, 2, 21, 211, 212, 22});
    for (cudaGraphExec_t exec : {x, y, b, c})
        CHECK(cudaGraphExecDestroy(exec));
}

// A loop: the graph launches itself again until its number is 1. Launched by the host, then by a kernel.
static void loops(unsigned *state, int *answer)
{
    cudaGraphExec_t exec = for_device([&] {
        halve_or_triple<<<1, 1, 0, stream>>>(state);
        again_unless_one<<<1, 1, 0, stream>>>(state, answer);
    });
    for (const unsigned start : {27u, 97u}) {
        unsigned steps = 0;
        for (unsigned value = start; value != 1; steps++)
            value = value % 2 ? 3 * value + 1 : value / 2;
        const unsigned begin[] = {start, 0, 0};
        CHECK(cudaMemcpyAsync(state, begin, sizeof(begin), cudaMemcpyHostToDevice, stream));
        if (start == 27)
            CHECK(cudaGraphLaunch(exec, stream));
        else
            run([&] { fire<<<1, 1, 0, stream>>>(exec, cudaStreamGraphFireAndForget, answer + 1); });
        CHECK(cudaStreamSynchronize(stream));
        expect_equal("a loop", fetched(state, 3), {1u, steps, 0u});
        expect_int("a second launch of itself", fetched(answer, 1)[0], cudaErrorInvalidValue);
    }
    CHECK(cudaGraphExecDestroy(exec));
}

// As many as may be: 120 fired and 255 in the tail of one run, and again of the next.
static void limits(int *device, int *answer)
{
    std::vector<cudaGraphExec_t> many;
    for (int i = 0; i < 300; i++)
        many.push_back(for_device([&] { add<<<1, 1, 0, stream>>>(device, 1); }));
    cudaGraphExec_t *graphs;
    CHECK(cudaMalloc(&graphs, many.size() * sizeof(cudaGraphExec_t)));
    CHECK(cudaMemcpy(graphs, many.data(), many.size() * sizeof(cudaGraphExec_t), cudaMemcpyHostToDevice));
    for (const int most : {120, 255, 120}) {
        CHECK(cudaMemsetAsync(device, 0, sizeof(int), stream));
        CHECK(cudaMemsetAsync(answer, 0, sizeof(int), stream));
        cudaStream_t mode = most == 120 ? cudaStreamGraphFireAndForget : cudaStreamGraphTailLaunch;
        run([&] { fire_all<<<1, 64, 0, stream>>>(graphs, 300, mode, answer); });
        expect_int("launches taken", fetched(answer, 1)[0], most);
        expect_int("launches done", fetched(device, 1)[0], most);
    }
    for (cudaGraphExec_t exec : many)
        CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFree(graphs));
}

// Siblings are done when the stream is; an update counts after an upload.
static void siblings_and_updates(int *device, int *answer)
{
    cudaGraph_t graph = captured([&] { add<<<1, 32, 0, stream>>>(device, 3); });
    cudaGraph_t other = captured([&] { add<<<1, 32, 0, stream>>>(device, 40); });
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
    cudaGraphExec_t firing = for_device([&] {
        fire<<<1, 1, 0, stream>>>(exec, cudaStreamGraphFireAndForgetAsSibling, answer);
    });
    CHECK(cudaMemsetAsync(device, 0, 32 * sizeof(int), stream));
    run([&] { fire<<<1, 1, 0, stream>>>(firing, cudaStreamGraphFireAndForget, answer + 1); });
    expect_equal("not uploaded", fetched(answer, 2), {(int)cudaErrorInvalidValue, 0});
    // A launch by the host uploads it.
    CHECK(cudaGraphLaunch(exec, stream));
    run([&] { fire<<<1, 1, 0, stream>>>(firing, cudaStreamGraphFireAndForget, answer + 1); });
    expect_equal("uploaded", fetched(answer, 2), {0, 0});
    expect_equal("a sibling", fetched(device, 32), std::vector<int>(32, 3 + 3));
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, other, &info));
    CHECK(cudaGraphUpload(exec, stream));
    run([&] { fire<<<1, 1, 0, stream>>>(firing, cudaStreamGraphFireAndForget, answer + 1); });
    expect_equal("updated", fetched(device, 32), std::vector<int>(32, 3 + 3 + 40));
    for (cudaGraphExec_t one : {exec, firing})
        CHECK(cudaGraphExecDestroy(one));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(other));
}

// What is no launch: from outside of a graph, into an ordinary stream, of an ordinary graph. And who is told which graph it is in.
static void answers(int *device, int *answer, uintptr_t *current)
{
    cudaGraphExec_t exec = for_device([&] { tell_current<<<1, 1, 0, stream>>>(current); });
    cudaGraph_t graph = captured([&] { add<<<1, 1, 0, stream>>>(device, 1); });
    cudaGraphExec_t ordinary;
    CHECK(cudaGraphInstantiate(&ordinary, graph, 0));
    fire<<<1, 1, 0, stream>>>(exec, cudaStreamGraphFireAndForget, answer);
    run([&] {
        fire<<<1, 1, 0, stream>>>(exec, nullptr, answer + 1);
        fire<<<1, 1, 0, stream>>>(ordinary, cudaStreamGraphFireAndForget, answer + 2);
        tell_current<<<1, 1, 0, stream>>>(current + 1);
    });
    for (const int one : fetched(answer, 3))
        if (one == cudaSuccess)
            fail("a launch that is none succeeded");
    CHECK(cudaGraphLaunch(exec, stream));
    tell_current<<<1, 1, 0, stream>>>(current + 2);
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("the current graph", fetched(current, 3), {reinterpret_cast<uintptr_t>(exec), 0, 0});
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphExecDestroy(ordinary));
    CHECK(cudaGraphDestroy(graph));
}

int main()
{
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *device, *answer;
    unsigned *state;
    uintptr_t *current;
    CHECK(cudaMalloc(&device, 128 * sizeof(int)));
    CHECK(cudaMalloc(&answer, 4 * sizeof(int)));
    CHECK(cudaMalloc(&state, 3 * sizeof(unsigned)));
    CHECK(cudaMalloc(&current, 3 * sizeof(uintptr_t)));
    CHECK(cudaMemset(current, 0xff, 3 * sizeof(uintptr_t)));
    const bool can = is_there(device);
    if (can) {
        fired(device, answer);
        tails(device);
        loops(state, answer);
        limits(device, answer);
        siblings_and_updates(device, answer);
        answers(device, answer, current);
        refusals(device);
    }
    CHECK(cudaStreamDestroy(stream));
    for (void *memory : {(void *)device, (void *)answer, (void *)state, (void *)current})
        CHECK(cudaFree(memory));
    std::printf("device_graphs: %s\n", can ? "yes" : "no");
    return passed();
}
