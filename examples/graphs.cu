// Graphs: a captured fork and join, a graph made by hand with a node of every kind, updates, a clone, memory nodes and,
// where the program is linked for it, conditions that kernels set.
#include "example.h"

__device__ int on_device[4];

__global__ void add(int *data, int n, int value)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] += value;
}

__global__ void scale(int *data, int n, int factor)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] *= factor;
}

static const int n = 1000;

static cudaGraphExec_t instantiate(cudaGraph_t graph)
{
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static std::vector<int> run(cudaGraphExec_t exec, const int *device, cudaStream_t stream)
{
    std::vector<int> host(n);
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaMemcpyAsync(host.data(), device, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    return host;
}

static size_t count_nodes(cudaGraph_t graph)
{
    size_t count = 0;
    CHECK(cudaGraphGetNodes(graph, nullptr, &count));
    return count;
}

// Two streams, forked and joined by events: data becomes (0 + 1) * 3 in one half and (0 + 1) * 5 in the other.
static void captured(int *device, cudaStream_t stream, cudaStream_t other)
{
    cudaEvent_t fork, join;
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(device, 0, n * sizeof(int), stream));
    add<<<8, 128, 0, stream>>>(device, n, 1);
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(other, fork, 0));
    scale<<<4, 128, 0, stream>>>(device, n / 2, 3);
    scale<<<4, 128, 0, other>>>(device + n / 2, n - n / 2, 5);
    CHECK(cudaEventRecord(join, other));
    // Not joined yet: the stream cannot be waited for meanwhile.
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(other, &status));
    expect_equal("status of the other stream", status, cudaStreamCaptureStatusActive);
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    expect_equal("captured nodes", count_nodes(graph), 4);

    cudaGraphExec_t exec = instantiate(graph);
    std::vector<int> expected(n);
    for (int i = 0; i < n; i++)
        expected[i] = i < n / 2 ? 3 : 5;
    for (int launch = 0; launch < 3; launch++)
        expect_equal("captured", run(exec, device, stream), expected);

    // The same work again with another number: an update of the whole graph.
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMemsetAsync(device, 0, n * sizeof(int), stream));
    add<<<8, 128, 0, stream>>>(device, n, 2);
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(other, fork, 0));
    scale<<<4, 128, 0, stream>>>(device, n / 2, 3);
    scale<<<4, 128, 0, other>>>(device + n / 2, n - n / 2, 5);
    CHECK(cudaEventRecord(join, other));
    CHECK(cudaStreamWaitEvent(stream, join, 0));
    cudaGraph_t again;
    CHECK(cudaStreamEndCapture(stream, &again));
#if CUDART_VERSION >= 12000
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(exec, again, &info));
    expect_equal("update", info.result, cudaGraphExecUpdateSuccess);
#else
    cudaGraphNode_t node;
    cudaGraphExecUpdateResult result;
    CHECK(cudaGraphExecUpdate(exec, again, &node, &result));
    expect_equal("update", result, cudaGraphExecUpdateSuccess);
#endif
    for (int &value : expected)
        value *= 2;
    expect_equal("updated", run(exec, device, stream), expected);

    // A capture that is not joined gives no graph.
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(fork, stream));
    CHECK(cudaStreamWaitEvent(other, fork, 0));
    add<<<8, 128, 0, other>>>(device, n, 1);
    cudaGraph_t nothing;
    expect_equal("unjoined", cudaStreamEndCapture(stream, &nothing), cudaErrorStreamCaptureUnjoined);
    expect_equal("no graph", nothing == nullptr, 1);
    cudaGetLastError();
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(again));
    CHECK(cudaEventDestroy(fork));
    CHECK(cudaEventDestroy(join));
}

static void CUDART_CB count_call(void *data)
{
    ++*static_cast<int *>(data);
}

// A node of every kind, one behind the other.
static void by_hand(int *device, cudaStream_t stream)
{
    int from_host[4] = {10, 20, 30, 40}, to_host[4] = {0, 0, 0, 0}, calls = 0, factor = 2, length = n;
    cudaGraph_t graph, child;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphCreate(&child, 0));
    cudaEvent_t event;
    CHECK(cudaEventCreate(&event));

    cudaMemsetParams zero = {};
    zero.dst = device;
    zero.elementSize = 4;
    zero.value = 7;
    zero.width = n;
    zero.height = 1;
    cudaGraphNode_t memset, kernel, into_symbol, from_symbol, host, inner, empty, record, wait;
    CHECK(cudaGraphAddMemsetNode(&memset, graph, nullptr, 0, &zero));
    CHECK(cudaGraphAddMemcpyNodeToSymbol(&into_symbol, graph, &memset, 1, on_device, from_host, sizeof from_host, 0, cudaMemcpyHostToDevice));
    cudaKernelNodeParams launch = {};
    void *arguments[] = {&device, &length, &factor};
    launch.func = reinterpret_cast<void *>(scale);
    launch.gridDim = dim3(8);
    launch.blockDim = dim3(128);
    launch.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &memset, 1, &launch));
    cudaHostNodeParams call = {count_call, &calls};
    const cudaGraphNode_t both[] = {kernel, into_symbol};
    CHECK(cudaGraphAddHostNode(&host, graph, both, 2, &call));
    CHECK(cudaGraphAddMemcpyNodeFromSymbol(&from_symbol, graph, &host, 1, to_host, on_device, sizeof(int) * 2, sizeof(int) * 2, cudaMemcpyDeviceToHost));
    cudaGraphNode_t in_child;
    launch.func = reinterpret_cast<void *>(add);
    CHECK(cudaGraphAddKernelNode(&in_child, child, nullptr, 0, &launch));
    CHECK(cudaGraphAddChildGraphNode(&inner, graph, &host, 1, child));
    CHECK(cudaGraphAddEmptyNode(&empty, graph, &inner, 1));
    CHECK(cudaGraphAddEventRecordNode(&record, graph, &empty, 1, event));
    CHECK(cudaGraphAddEventWaitNode(&wait, graph, &record, 1, event));
    expect_equal("nodes by hand", count_nodes(graph), 9);

    // What was put in comes out.
    cudaKernelNodeParams found = {};
    CHECK(cudaGraphKernelNodeGetParams(kernel, &found));
    expect_equal("the kernel of the node", found.func == reinterpret_cast<void *>(scale), 1);
    expect_equal("the kernel's factor", *static_cast<int *>(found.kernelParams[2]), 2);
    cudaMemsetParams filled = {};
    CHECK(cudaGraphMemsetNodeGetParams(memset, &filled));
    expect_equal("the fill's width", filled.width, n);
    cudaMemcpy3DParms copied = {};
    CHECK(cudaGraphMemcpyNodeGetParams(from_symbol, &copied));
    expect_equal("the copy's bytes", copied.extent.width, 8);
    cudaGraphNodeType type;
    CHECK(cudaGraphNodeGetType(wait, &type));
    expect_equal("the last node's type", type, cudaGraphNodeTypeWaitEvent);

    cudaGraphExec_t exec = instantiate(graph);
    expect_equal("by hand", run(exec, device, stream), std::vector<int>(n, 7 * 2 + 2));
    expect_equal("calls of the host", calls, 1);
    expect_equal("from the symbol", to_host[0] * 100 + to_host[1], 30 * 100 + 40);
    CHECK(cudaEventQuery(event));

    // One node of the instantiated graph, then the node itself for a clone.
    factor = 10;
    launch.func = reinterpret_cast<void *>(scale);
    CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &launch));
    expect_equal("one node changed", run(exec, device, stream), std::vector<int>(n, 7 * 10 + 2));
    CHECK(cudaGraphNodeSetEnabled(exec, kernel, 0));
    expect_equal("one node turned off", run(exec, device, stream), std::vector<int>(n, 7 + 2));
    cudaGraph_t clone;
    CHECK(cudaGraphClone(&clone, graph));
    cudaGraphNode_t twin;
    CHECK(cudaGraphNodeFindInClone(&twin, memset, clone));
    zero.value = 1;
    CHECK(cudaGraphMemsetNodeSetParams(twin, &zero));
    cudaGraphExec_t of_clone = instantiate(clone);
    expect_equal("the clone", run(of_clone, device, stream), std::vector<int>(n, 1 * 2 + 2));
    expect_equal("the original", run(exec, device, stream), std::vector<int>(n, 7 + 2));

    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphExecDestroy(of_clone));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphDestroy(clone));
    CHECK(cudaGraphDestroy(child));
    CHECK(cudaEventDestroy(event));
}

// Memory that a graph allocates, and what becomes of it.
static void with_memory(int *device, cudaStream_t stream)
{
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    int *scratch;
    CHECK(cudaMallocAsync(&scratch, n * sizeof(int), stream));
    CHECK(cudaMemsetAsync(scratch, 0, n * sizeof(int), stream));
    add<<<8, 128, 0, stream>>>(scratch, n, 11);
    CHECK(cudaMemcpyAsync(device, scratch, n * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaFreeAsync(scratch, stream));
    cudaGraph_t graph;
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = instantiate(graph);
    for (int launch = 0; launch < 2; launch++)
        expect_equal("captured memory", run(exec, device, stream), std::vector<int>(n, 11));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));

    CHECK(cudaGraphCreate(&graph, 0));
    cudaMemAllocNodeParams allocation = {};
    allocation.poolProps.allocType = cudaMemAllocationTypePinned;
    allocation.poolProps.location.type = cudaMemLocationTypeDevice;
    allocation.bytesize = n * sizeof(int);
    cudaGraphNode_t alloc;
    CHECK(cudaGraphAddMemAllocNode(&alloc, graph, nullptr, 0, &allocation));
    exec = instantiate(graph);
    CHECK(cudaGraphLaunch(exec, stream));
    // Nobody freed it: a second launch is refused.
    expect_equal("launched twice", cudaGraphLaunch(exec, stream), cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaMemsetAsync(allocation.dptr, 0, n * sizeof(int), stream));
    CHECK(cudaFreeAsync(allocation.dptr, stream));
    CHECK(cudaStreamSynchronize(stream));
    // What is freed stays with the graphs until it is trimmed.
    uint64_t used = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    expect_equal("memory of graphs is counted", used >= n * sizeof(int), true);
    CHECK(cudaDeviceGraphMemTrim(0));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
    expect_equal("memory of graphs in use", used, 0);
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaDeviceGraphMemTrim(0));
}

static int n_destroyed = 0;

static void CUDART_CB destroyed(void *)
{
    n_destroyed++;
}

static void with_user_object()
{
    cudaUserObject_t object;
    CHECK(cudaUserObjectCreate(&object, nullptr, destroyed, 1, cudaUserObjectNoDestructorSync));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
    expect_equal("destroyed early", n_destroyed, 0);
    CHECK(cudaGraphDestroy(graph));
    expect_equal("destroyed with its graph", n_destroyed, 1);
}

#if defined(EXAMPLE_RDC) && CUDART_VERSION >= 12040
// Counts down; the loop goes on while there is something left.
__global__ void count_down(int *left, int *rounds, cudaGraphConditionalHandle handle)
{
    ++*rounds;
    cudaGraphSetConditional(handle, --*left > 0 ? 1 : 0);
}

__global__ void choose(cudaGraphConditionalHandle handle, const int *choice)
{
    cudaGraphSetConditional(handle, *choice);
}

// A conditional node behind others; its bodies' graphs come back in the parameters.
static cudaGraphNode_t add_condition(cudaGraph_t graph, cudaGraphNode_t *after, cudaGraphNodeParams *node)
{
    cudaGraphNode_t made;
#if CUDART_VERSION >= 13000
    CHECK(cudaGraphAddNode(&made, graph, after, nullptr, after ? 1 : 0, node));
#else
    CHECK(cudaGraphAddNode(&made, graph, after, after ? 1 : 0, node));
#endif
    return made;
}

#if CUDART_VERSION >= 12080
// A kernel chooses which of three fills is done; a fourth choice does none.
static void with_choice(int *device, cudaStream_t stream)
{
    int *choice;
    CHECK(cudaMalloc(&choice, sizeof(int)));
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
    void *arguments[] = {&handle, &choice};
    cudaKernelNodeParams launch = {};
    launch.func = reinterpret_cast<void *>(choose);
    launch.gridDim = launch.blockDim = dim3(1);
    launch.kernelParams = arguments;
    cudaGraphNode_t chooser;
    CHECK(cudaGraphAddKernelNode(&chooser, graph, nullptr, 0, &launch));
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.handle = handle;
    node.conditional.type = cudaGraphCondTypeSwitch;
    node.conditional.size = 3;
    add_condition(graph, &chooser, &node);
    for (unsigned body = 0; body < 3; body++) {
        cudaMemsetParams fill = {};
        fill.dst = device;
        fill.elementSize = 4;
        fill.value = 100 + body;
        fill.width = n;
        fill.height = 1;
        cudaGraphNode_t filled;
        CHECK(cudaGraphAddMemsetNode(&filled, node.conditional.phGraph_out[body], nullptr, 0, &fill));
    }
    cudaGraphExec_t exec = instantiate(graph);
    for (int value = 0; value < 4; value++) {
        CHECK(cudaMemset(device, 0, n * sizeof(int)));
        CHECK(cudaMemcpy(choice, &value, sizeof value, cudaMemcpyHostToDevice));
        expect_equal("chosen", run(exec, device, stream), std::vector<int>(n, value < 3 ? 100 + value : 0));
    }
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(choice));
}
#endif

static void with_conditions(cudaStream_t stream)
{
    int *counters;
    CHECK(cudaMalloc(&counters, 2 * sizeof(int)));
    const int start[2] = {5, 0};
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphConditionalHandle handle;
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.handle = handle;
    node.conditional.type = cudaGraphCondTypeWhile;
    node.conditional.size = 1;
    add_condition(graph, nullptr, &node);
    CHECK(cudaStreamBeginCaptureToGraph(stream, node.conditional.phGraph_out[0], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    count_down<<<1, 1, 0, stream>>>(counters, counters + 1, handle);
    CHECK(cudaGetLastError());
    cudaGraph_t body;
    CHECK(cudaStreamEndCapture(stream, &body));
    cudaGraphExec_t exec = instantiate(graph);
    for (int launch = 0; launch < 2; launch++) {
        CHECK(cudaMemcpy(counters, start, sizeof start, cudaMemcpyHostToDevice));
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        int after[2];
        CHECK(cudaMemcpy(after, counters, sizeof after, cudaMemcpyDeviceToHost));
        expect_equal("rounds of the loop", after[1], 5);
        expect_equal("left", after[0], 0);
    }
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(counters));
}
#endif

int main()
{
    int *device;
    cudaStream_t stream, other;
    CHECK(cudaMalloc(&device, n * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    captured(device, stream, other);
    by_hand(device, stream);
    with_memory(device, stream);
    with_user_object();
#if defined(EXAMPLE_RDC) && CUDART_VERSION >= 12040
    with_conditions(stream);
#if CUDART_VERSION >= 12080
    with_choice(device, stream);
#endif
#endif
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFree(device));
    std::printf("graphs: captured, by hand, updated, cloned, with memory\n");
    return passed();
}
