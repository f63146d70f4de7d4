// Kernel nodes of graphs that kernels change: their arguments, their grid, whether they run. What is expected follows from the
// documentation of cudaGraphKernelNodeUpdatesApply and of the attribute, or is computed here. Where a device has none of it, the
// attribute says so.
#include "example.h"

// Each block adds to its number.
__global__ void add(int *to, int value)
{
    atomicAdd(to + blockIdx.x, value);
}

// Where the arguments of `add` lie.
const size_t TO = 0, VALUE = sizeof(int *);

struct Wish {
    int value;
    unsigned blocks;
    int is_enabled;
};

// In front of the node in its own graph.
__global__ void change(cudaGraphDeviceNode_t node, const Wish *wish, int *answers)
{
    answers[0] = cudaGraphKernelNodeSetParam(node, VALUE, wish->value);
    answers[1] = cudaGraphKernelNodeSetGridDim(node, dim3(wish->blocks));
    answers[2] = cudaGraphKernelNodeSetEnabled(node, wish->is_enabled != 0);
}

// Several at once; with `is_wrong` the last one is none.
__global__ void change_all(cudaGraphDeviceNode_t first, cudaGraphDeviceNode_t second, int *to, bool is_wrong, int *answer)
{
    int value = 1000;
    // Its union has a dim3, and so no constructor.
    alignas(cudaGraphKernelNodeUpdate) unsigned char room[4 * sizeof(cudaGraphKernelNodeUpdate)];
    auto *updates = reinterpret_cast<cudaGraphKernelNodeUpdate *>(room);
    updates[0].node = first;
    updates[0].field = cudaGraphKernelNodeFieldParam;
    updates[0].updateData.param.pValue = &value;
    updates[0].updateData.param.offset = VALUE;
    updates[0].updateData.param.size = sizeof value;
    updates[1].node = second;
    updates[1].field = cudaGraphKernelNodeFieldParam;
    updates[1].updateData.param.pValue = &to;
    updates[1].updateData.param.offset = TO;
    updates[1].updateData.param.size = sizeof to;
    updates[2].node = second;
    updates[2].field = cudaGraphKernelNodeFieldGridDim;
    updates[2].updateData.gridDim = {3, 1, 1};
    updates[3].node = first;
    updates[3].field = is_wrong ? cudaGraphKernelNodeFieldInvalid : cudaGraphKernelNodeFieldEnabled;
    updates[3].updateData.isEnabled = 1;
    *answer = cudaGraphKernelNodeUpdatesApply(updates, 4);
}

// What is no update, and an error that is kept.
__global__ void wrong(cudaGraphDeviceNode_t node, cudaGraphDeviceNode_t other, int *answers)
{
    const int value = 1;
    answers[0] = cudaGraphKernelNodeSetParam(other, VALUE, value);
    answers[1] = cudaGraphKernelNodeSetParam(node, 4096, value);
    answers[2] = cudaGraphKernelNodeSetParam(node, VALUE, nullptr, sizeof value);
    answers[3] = cudaGraphKernelNodeSetGridDim(node, dim3(0));
    answers[4] = cudaGraphKernelNodeSetEnabled(nullptr, true);
}

static cudaStream_t stream;

template <typename T>
static std::vector<T> fetched(const T *device, size_t count)
{
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
}

static cudaGraphNode_t kernel_node(cudaGraph_t graph, cudaGraphNode_t after, void *kernel, unsigned blocks, std::vector<void *> arguments)
{
    cudaKernelNodeParams params = {};
    params.func = kernel;
    params.gridDim = dim3(blocks);
    params.blockDim = dim3(1);
    params.kernelParams = arguments.data();
    cudaGraphNode_t node;
    CHECK(cudaGraphAddKernelNode(&node, graph, after ? &after : nullptr, after ? 1 : 0, &params));
    return node;
}

static cudaError_t ask(cudaGraphNode_t node, int is_updatable, cudaGraphDeviceNode_t *handle)
{
    cudaLaunchAttributeValue value = {};
    value.deviceUpdatableKernelNode.deviceUpdatable = is_updatable;
    const cudaError_t error = cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value);
    *handle = value.deviceUpdatableKernelNode.devNode;
    (void)cudaGetLastError();
    return error;
}

static void expect_refused(const char *what, cudaError_t error)
{
    if (error == cudaSuccess)
        fail("%s succeeded", what);
    (void)cudaGetLastError();
}

static void run(cudaGraphExec_t exec)
{
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
}

// A node that its own graph changes each time.
static void within(int *numbers, int *answers, Wish *wish)
{
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    int value = 7;
    cudaGraphNode_t node = kernel_node(graph, nullptr, (void *)add, 1, {&numbers, &value});
    cudaGraphDeviceNode_t handle, again;
    CHECK(ask(node, 1, &handle));
    if (!handle)
        fail("no handle");
    CHECK(ask(node, 1, &again));
    if (again != handle)
        fail("another handle for the same node");
    cudaGraphNode_t changing = kernel_node(graph, nullptr, (void *)change, 1, {&handle, &wish, &answers});
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddDependencies(graph, &changing, &node, nullptr, 1));
#else
    CHECK(cudaGraphAddDependencies(graph, &changing, &node, 1));
#endif
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaMemset(numbers, 0, 4 * sizeof(int)));
    std::vector<int> expected(4);
    for (const Wish &next : {Wish{5, 2, 1}, Wish{100, 4, 0}, Wish{30, 4, 1}, Wish{-1, 1, 1}}) {
        CHECK(cudaMemcpy(wish, &next, sizeof next, cudaMemcpyHostToDevice));
        run(exec);
        expect_equal("answers", fetched(answers, 3), {0, 0, 0});
        for (unsigned i = 0; next.is_enabled && i < next.blocks; i++)
            expected[i] += next.value;
        expect_equal("what the node has added", fetched(numbers, 4), expected);
    }

    // Once only, and no way back.
    cudaGraphExec_t second;
    expect_refused("a second instantiation", cudaGraphInstantiate(&second, graph, 0));
    expect_refused("taking it back", ask(node, 0, &again));
    expect_refused("no number for it", ask(changing, 2, &again));
    expect_refused("destroying the node", cudaGraphDestroyNode(node));
    expect_refused("copying its attributes", cudaGraphKernelNodeCopyAttributes(node, changing));
    expect_refused("copying attributes to it", cudaGraphKernelNodeCopyAttributes(changing, node));
    cudaGraphExecUpdateResultInfo info;
    expect_refused("updating from the graph", cudaGraphExecUpdate(exec, graph, &info));
    if (info.result != cudaGraphExecUpdateErrorNotSupported)
        fail("the update's result is %d", info.result);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphInstantiate(&second, graph, 0));
    CHECK(cudaGraphExecDestroy(second));
    CHECK(cudaGraphDestroy(graph));
}

// Captured nodes that another kernel changes: it holds until the host has something to say.
static void from_outside(int *numbers, int *answers)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeDeviceUpdatableKernelNode;
    attribute.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(1);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    expect_refused("the attribute outside of a capture", cudaLaunchKernelEx(&config, add, numbers, 1));

    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaLaunchKernelEx(&config, add, numbers, 1));
    const cudaGraphDeviceNode_t first = attribute.val.deviceUpdatableKernelNode.devNode;
    CHECK(cudaLaunchKernelEx(&config, add, numbers, 10));
    const cudaGraphDeviceNode_t second = attribute.val.deviceUpdatableKernelNode.devNode;
    CHECK(cudaStreamEndCapture(stream, &graph));
    if (!first || !second || first == second)
        fail("two nodes have two handles");

    // Nothing is on the device yet; then the host's values are.
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaMemset(numbers, 0, 8 * sizeof(int)));
    run(exec);
    expect_equal("unchanged", fetched(numbers, 1), {11});

    // One wrong update among others: none is done.
    change_all<<<1, 1, 0, stream>>>(first, second, numbers + 4, true, answers);
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("a wrong update", fetched(answers, 1), {(int)cudaErrorInvalidValue});
    run(exec);
    expect_equal("still unchanged", fetched(numbers, 1), {22});

    // For each launch from now on.
    change_all<<<1, 1, 0, stream>>>(first, second, numbers + 4, false, answers);
    CHECK(cudaMemsetAsync(numbers, 0, 8 * sizeof(int), stream));
    run(exec);
    run(exec);
    expect_equal("all updates", fetched(answers, 1), {0});
    expect_equal("changed", fetched(numbers, 8), {2000, 0, 0, 0, 20, 20, 20, 0});

    wrong<<<1, 1, 0, stream>>>(first, reinterpret_cast<cudaGraphDeviceNode_t>(answers), answers);
    CHECK(cudaStreamSynchronize(stream));
    expect_equal("what is no update", fetched(answers, 5), std::vector<int>(5, cudaErrorInvalidValue));

    // The host's update takes the place of those.
    cudaGraphNode_t nodes[2];
    size_t count = 2;
    CHECK(cudaGraphGetNodes(graph, nodes, &count));
    cudaKernelNodeParams params;
    CHECK(cudaGraphKernelNodeGetParams(nodes[1], &params));
    int value = 6;
    void *arguments[] = {&numbers, &value};
    params.kernelParams = arguments;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[1], &params));
    CHECK(cudaGraphUpload(exec, stream));
    CHECK(cudaMemsetAsync(numbers, 0, 8 * sizeof(int), stream));
    run(exec);
    expect_equal("changed by the host", fetched(numbers, 8), {1006, 0, 0, 0, 0, 0, 0, 0});
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
}

// Whether the device has it.
static bool is_there(int *numbers)
{
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    int value = 0;
    cudaGraphDeviceNode_t handle;
    const cudaError_t error = ask(kernel_node(graph, nullptr, (void *)add, 1, {&numbers, &value}), 1, &handle);
    if (error != cudaErrorNotSupported)
        check(error, "the attribute", __FILE__, __LINE__);
    CHECK(cudaGraphDestroy(graph));
    return error == cudaSuccess;
}

int main()
{
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *numbers, *answers;
    Wish *wish;
    CHECK(cudaMalloc(&numbers, 8 * sizeof(int)));
    CHECK(cudaMalloc(&answers, 8 * sizeof(int)));
    CHECK(cudaMalloc(&wish, sizeof(Wish)));
    const bool can = is_there(numbers);
    if (can) {
        within(numbers, answers, wish);
        from_outside(numbers, answers);
    }
    CHECK(cudaStreamDestroy(stream));
    for (void *memory : {(void *)numbers, (void *)answers, (void *)wish})
        CHECK(cudaFree(memory));
    std::printf("updatable_nodes: %s\n", can ? "yes" : "no");
    return passed();
}
