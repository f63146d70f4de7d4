// CUDA Runtime API, "Graph Management"; CUDA Programming Guide, "CUDA Graphs": captures, and memory of graphs.
#include "../check.h"

#include <atomic>
#include <thread>

constexpr size_t MIB = 1 << 20;

static cudaStream_t created()
{
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

static cudaEvent_t event()
{
    cudaEvent_t event = nullptr;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    return event;
}

static void after(cudaStream_t waits, cudaStream_t other)
{
    cudaEvent_t reached = event();
    OK(cudaEventRecord(reached, other));
    OK(cudaStreamWaitEvent(waits, reached, 0));
    OK(cudaEventDestroy(reached));
}

static cudaGraphExec_t instantiated(cudaGraph_t graph)
{
    cudaGraphExec_t exec = nullptr;
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

static cudaGraph_t empty()
{
    cudaGraph_t graph = nullptr;
    OK(cudaGraphCreate(&graph, 0));
    return graph;
}

static void launch(cudaGraphExec_t exec, cudaStream_t stream)
{
    OK(cudaGraphLaunch(exec, stream));
    OK(cudaStreamSynchronize(stream));
}

__global__ void set(unsigned *words, unsigned value, size_t count)
{
    const size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (at < count)
        words[at] = value + unsigned(at);
}

__global__ void sum(const unsigned *words, size_t count, unsigned *answer)
{
    const size_t at = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (at < count)
        atomicAdd(answer, words[at]);
}

// What `sum` finds where `set` wrote.
static unsigned expected(unsigned value, size_t count)
{
    return unsigned(count) * value + unsigned(count * (count - 1) / 2);
}

// ---- captures

static unsigned *one_word()
{
    unsigned *word = nullptr;
    OK(cudaMalloc(&word, sizeof *word));
    return word;
}

// What a word holds when the graph was launched.
static unsigned after_launch(cudaGraph_t graph, cudaStream_t stream, const unsigned *word)
{
    launch(instantiated(graph), stream);
    unsigned found = 0;
    OK(cudaMemcpy(&found, word, sizeof found, cudaMemcpyDefault));
    return found;
}

PROMISE(the_graph_of_a_capture_into_the_programs_own_need_not_be_asked_for)
{
    unsigned *word = one_word();
    cudaStream_t stream = created();
    cudaGraph_t graph = empty();
    OK(cudaStreamBeginCaptureToGraph(stream, graph, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
    set<<<1, 1, 0, stream>>>(word, 7, 1);
    OK(cudaStreamEndCapture(stream, nullptr));
    SAME(after_launch(graph, stream, word), 7u);
}

PROMISE(a_stream_that_was_joined_may_be_destroyed_before_the_capture_ends)
{
    unsigned *word = one_word();
    cudaStream_t stream = created(), forked = created();
    cudaGraph_t graph = nullptr;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    after(forked, stream);
    set<<<1, 1, 0, forked>>>(word, 5, 1);
    after(stream, forked);
    OK(cudaStreamDestroy(forked));
    OK(cudaStreamEndCapture(stream, &graph));
    SAME(after_launch(graph, stream, word), 5u);
}

PROMISE(work_that_is_not_joined_fails_the_capture_at_its_end)
{
    unsigned *word = one_word();
    cudaStream_t stream = created(), forked = created();
    cudaGraph_t graph = nullptr;
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    after(forked, stream);
    set<<<1, 1, 0, forked>>>(word, 5, 1);
    OK(cudaStreamDestroy(forked));
    cudaStreamCaptureStatus status;
    OK(cudaStreamIsCapturing(stream, &status));
    SAME(status, cudaStreamCaptureStatusActive);
    IS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
    TRUE(graph == nullptr);
}

// ---- launches

// A host node's work, which goes on until the gate opens.
struct Gate {
    std::atomic<bool> is_open{false};
    static void hold(void *gate)
    {
        while (!static_cast<Gate *>(gate)->is_open)
            usleep(1000);
    }
};

PROMISE(a_launch_comes_after_the_one_before_whatever_stream_that_was_in)
{
    static Gate gate;
    static std::atomic<int> n_entered{0};
    cudaStream_t one = created(), other = created();
    cudaGraph_t graph = empty();
    cudaGraphNode_t node;
    cudaHostNodeParams held{};
    held.fn = [](void *gate) {
        n_entered++;
        Gate::hold(gate);
    };
    held.userData = &gate;
    OK(cudaGraphAddHostNode(&node, graph, nullptr, 0, &held));
    cudaGraphExec_t exec = instantiated(graph);
    OK(cudaGraphLaunch(exec, one));
    OK(cudaGraphLaunch(exec, other));
    while (n_entered == 0)
        usleep(1000);
    usleep(60000);
    SAME(n_entered.load(), 1);
    IS(cudaStreamQuery(other), cudaErrorNotReady);
    gate.is_open = true;
    OK(cudaStreamSynchronize(other));
    SAME(n_entered.load(), 2);
}

// ---- memory

static size_t footprint(cudaGraphMemAttributeType attribute = cudaGraphMemAttrUsedMemCurrent)
{
    unsigned long long bytes = ~0ull;
    OK(cudaDeviceGetGraphMemAttribute(0, attribute, &bytes));
    return bytes;
}

static cudaGraphNode_t allocated(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, size_t bytes, unsigned **address)
{
    cudaMemAllocNodeParams params{};
    params.bytesize = bytes;
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    cudaGraphNode_t node;
    OK(cudaGraphAddMemAllocNode(&node, graph, after.data(), after.size(), &params));
    *address = static_cast<unsigned *>(params.dptr);
    return node;
}

static cudaGraphNode_t freed(cudaGraph_t graph, std::vector<cudaGraphNode_t> after, void *address)
{
    cudaGraphNode_t node;
    OK(cudaGraphAddMemFreeNode(&node, graph, after.data(), after.size(), address));
    return node;
}

// A graph that fills memory of its own, waits at the gate if there is one, and adds the sum of what it finds to `answer`.
static cudaGraphExec_t filling(size_t bytes, unsigned value, unsigned *answer, Gate *gate, unsigned **address, bool frees = true)
{
    cudaStream_t stream = created();
    cudaGraph_t graph = nullptr;
    const size_t count = bytes / sizeof **address;
    const unsigned blocks = unsigned((count + 255) / 256);
    OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    OK(cudaMallocAsync(reinterpret_cast<void **>(address), bytes, stream));
    set<<<blocks, 256, 0, stream>>>(*address, value, count);
    if (gate)
        OK(cudaLaunchHostFunc(stream, Gate::hold, gate));
    sum<<<blocks, 256, 0, stream>>>(*address, count, answer);
    if (frees)
        OK(cudaFreeAsync(*address, stream));
    OK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec = instantiated(graph);
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(stream));
    return exec;
}

static unsigned *answers(int count)
{
    unsigned *all = nullptr;
    OK(cudaMallocManaged(&all, count * sizeof *all));
    memset(all, 0, count * sizeof *all);
    return all;
}

PROMISE(allocations_whose_lives_do_not_meet_share_addresses)
{
    cudaGraph_t graph = empty();
    unsigned *first, *second, *beside, *smaller, *larger;
    cudaGraphNode_t a = allocated(graph, {}, MIB, &first);
    cudaGraphNode_t a_freed = freed(graph, {a}, first);
    cudaGraphNode_t b = allocated(graph, {a_freed}, MIB, &second);
    TRUE(second == first);
    // Not behind the node that frees.
    allocated(graph, {a}, MIB, &beside);
    TRUE(beside + MIB / sizeof *beside <= first || first + MIB / sizeof *first <= beside);
    cudaGraphNode_t b_freed = freed(graph, {b}, second);
    // Behind others that are behind it.
    cudaGraphNode_t nothing;
    OK(cudaGraphAddEmptyNode(&nothing, graph, &b_freed, 1));
    cudaGraphNode_t c = allocated(graph, {nothing}, MIB / 2, &smaller);
    TRUE(smaller == first);
    cudaGraphNode_t c_freed = freed(graph, {c}, smaller);
    allocated(graph, {c_freed}, 2 * MIB, &larger);
    TRUE(larger + 2 * MIB / sizeof *larger <= first || first + MIB / sizeof *first <= larger);
    IS(cudaGraphAddMemFreeNode(&nothing, graph, nullptr, 0, smaller), cudaErrorInvalidValue);
}

// How much a device takes for graphs is its own affair: NVIDIA's does in steps of 32 MiB, ours to the page. What holds for
// both: enough for what is alive, no more than a step for each, and nothing after a trim when nothing is used.
static size_t first_step(size_t n_bytes)
{
    const size_t taken = footprint();
    TRUE(taken >= n_bytes && (taken == n_bytes || taken == 32 * MIB));
    return taken;
}

static bool is_for(size_t n, size_t n_bytes, size_t step)
{
    const size_t taken = footprint();
    return taken >= n * n_bytes && taken <= n * step;
}

PROMISE(an_instantiated_graph_takes_memory_at_its_first_launch)
{
    unsigned *answer = answers(1), *address;
    OK(cudaDeviceGraphMemTrim(0));
    SAME(footprint(), 0u);
    cudaGraphExec_t exec = filling(8 * MIB, 3, answer, nullptr, &address);
    SAME(footprint(), 0u);
    cudaStream_t stream = created();
    launch(exec, stream);
    const size_t step = first_step(8 * MIB);
    TRUE(footprint(cudaGraphMemAttrReservedMemCurrent) >= 8 * MIB);
    launch(exec, stream);
    SAME(footprint(), step);
    SAME(*answer, 2 * expected(3, 2 * MIB));
    OK(cudaDeviceGraphMemTrim(0));
    SAME(footprint(), 0u);
    TRUE(footprint(cudaGraphMemAttrUsedMemHigh) >= 8 * MIB);
    // And again at the next one.
    launch(exec, stream);
    SAME(footprint(), step);
    SAME(*answer, 3 * expected(3, 2 * MIB));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaDeviceGraphMemTrim(0));
    SAME(footprint(cudaGraphMemAttrReservedMemCurrent), 0u);
    unsigned long long zero = 0;
    OK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
    SAME(footprint(cudaGraphMemAttrUsedMemHigh), 0u);
}

PROMISE(graphs_launched_in_one_stream_share_memory_and_not_addresses)
{
    constexpr int N = 6;
    unsigned *answer = answers(N), *addresses[N];
    cudaGraphExec_t execs[N];
    for (int i = 0; i < N; i++)
        execs[i] = filling(4 * MIB, i, answer + i, nullptr, addresses + i);
    cudaStream_t stream = created();
    size_t step = 0;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < N; i++) {
            OK(cudaGraphLaunch(execs[i], stream));
            step = step ? step : first_step(4 * MIB);
            SAME(footprint(), step);
        }
    OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < N; i++) {
        SAME(answer[i], 3 * expected(i, MIB));
        for (int j = 0; j < i; j++)
            TRUE(addresses[i] != addresses[j]);
    }
}

PROMISE(graphs_that_run_at_once_have_memory_of_their_own)
{
    static Gate gate;
    constexpr int N = 3;
    unsigned *answer = answers(N), *addresses[N];
    cudaStream_t streams[N];
    size_t step = 0;
    for (int i = 0; i < N; i++) {
        streams[i] = created();
        OK(cudaGraphLaunch(filling(4 * MIB, i, answer + i, &gate, addresses + i), streams[i]));
        step = step ? step : first_step(4 * MIB);
        TRUE(is_for(i + 1, 4 * MIB, step));
    }
    gate.is_open = true;
    for (int i = 0; i < N; i++)
        OK(cudaStreamSynchronize(streams[i]));
    for (int i = 0; i < N; i++)
        SAME(answer[i], expected(i, MIB));
}

PROMISE(graphs_that_shared_memory_may_run_at_once_later)
{
    static Gate gate;
    constexpr int N = 2;
    unsigned *answer = answers(N), *addresses[N];
    cudaGraphExec_t execs[N];
    cudaStream_t together = created(), alone = created();
    for (int i = 0; i < N; i++)
        execs[i] = filling(4 * MIB, i, answer + i, &gate, addresses + i);
    gate.is_open = true;
    for (cudaGraphExec_t exec : execs)
        OK(cudaGraphLaunch(exec, together));
    OK(cudaStreamSynchronize(together));
    const size_t step = first_step(4 * MIB);
    // The launch may wait until other memory can be mapped.
    gate.is_open = false;
    OK(cudaGraphLaunch(execs[0], together));
    std::thread opens([] {
        usleep(60000);
        gate.is_open = true;
    });
    OK(cudaGraphLaunch(execs[1], alone));
    opens.join();
    TRUE(is_for(N, 4 * MIB, step));
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++)
        SAME(answer[i], 2 * expected(i, MIB));
}

PROMISE(memory_that_a_graph_does_not_free_is_nobody_elses)
{
    constexpr int N = 3;
    unsigned *answer = answers(N), *addresses[N];
    cudaGraphExec_t execs[N];
    for (int i = 0; i < N; i++)
        execs[i] = filling(4 * MIB, i, answer + i, nullptr, addresses + i, false);
    cudaStream_t stream = created();
    size_t step = 0;
    for (int i = 0; i < N; i++) {
        launch(execs[i], stream);
        step = step ? step : first_step(4 * MIB);
        TRUE(is_for(i + 1, 4 * MIB, step));
        IS(cudaGraphLaunch(execs[i], stream), cudaErrorInvalidValue);
    }
    const size_t taken = footprint();
    OK(cudaDeviceGraphMemTrim(0));
    SAME(footprint(), taken);
    for (int i = 0; i < N; i++) {
        unsigned words[2];
        OK(cudaMemcpy(words, addresses[i] + MIB - 2, sizeof words, cudaMemcpyDefault));
        SAME(words[1], unsigned(i + MIB - 1));
    }
    OK(cudaFree(addresses[0]));
    OK(cudaFreeAsync(addresses[1], stream));
    cudaGraph_t graph = empty();
    freed(graph, {}, addresses[2]);
    launch(instantiated(graph), stream);
    // Freeing it does not give it back, trimming does.
    SAME(footprint(), taken);
    OK(cudaDeviceGraphMemTrim(0));
    SAME(footprint(), 0u);
    for (int i = 0; i < N; i++)
        launch(execs[i], stream);
    for (int i = 0; i < N; i++)
        SAME(answer[i], 2 * expected(i, MIB));
}

PROMISE(a_graph_may_be_destroyed_while_its_memory_is_the_programs)
{
    unsigned *answer = answers(1), *address;
    cudaGraphExec_t exec = filling(MIB, 9, answer, nullptr, &address, false);
    cudaStream_t stream = created();
    launch(exec, stream);
    OK(cudaGraphExecDestroy(exec));
    unsigned word = 0;
    OK(cudaMemcpy(&word, address, sizeof word, cudaMemcpyDefault));
    SAME(word, 9u);
    OK(cudaFree(address));
    // NVIDIA's gives it back at the next trim, ours at once: no graph is left that could use it.
    OK(cudaDeviceGraphMemTrim(0));
    SAME(footprint(), 0u);
    IS(cudaFree(address), cudaErrorInvalidValue);
}
