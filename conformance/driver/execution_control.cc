// CUDA Driver API, "Execution Control".
#include "../device.h"

static CUresult launch_shape(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                             unsigned shared = 0)
{
    return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, nullptr, nullptr, nullptr);
}

static CUresult launch_with(CUfunction function, CUlaunchAttribute attribute, unsigned blocks = 1, void **arguments = nullptr)
{
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cuLaunchKernelEx(&config, function, arguments, nullptr);
}

PROMISE(a_dimension_of_0_is_an_invalid_value)
{
    start();
    CUfunction nothing = kernel("nothing");
    IS(launch_shape(nothing, 0, 1, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    IS(launch_shape(nothing, 1, 0, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    IS(launch_shape(nothing, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(launch_shape(nothing, 1, 1, 1, 1, 1, 1));
}

PROMISE(dimensions_beyond_the_devices_are_an_invalid_value)
{
    start();
    CUfunction nothing = kernel("nothing");
    IS(launch_shape(nothing, 1, 1, 1, 1025, 1, 1), CUDA_ERROR_INVALID_VALUE);
    IS(launch_shape(nothing, 1, 1, 1, 32, 64, 1), CUDA_ERROR_INVALID_VALUE);
    IS(launch_shape(nothing, 1, 1, 1, 1, 1, 65), CUDA_ERROR_INVALID_VALUE);
    IS(launch_shape(nothing, 1, 65536, 1, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    IS(launch_shape(nothing, 1, 1, 65536, 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
    OK(launch_shape(nothing, 65537, 1, 1, 1, 1, 1));
    OK(cuCtxSynchronize());
}

PROMISE(shared_memory_beyond_what_was_allowed_is_an_invalid_value)
{
    start();
    CUfunction nothing = kernel("nothing");
    OK(launch_shape(nothing, 1, 1, 1, 1, 1, 1, 49152));
    int most = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    IS(launch_shape(nothing, 1, 1, 1, 1, 1, 1, most + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    OK(launch_shape(nothing, 1, 1, 1, 1, 1, 1, most));
    IS(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuCtxSynchronize());
}

PROMISE(more_than_48_kib_of_shared_memory_must_be_asked_for)
{
    start();
    if (attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) < 50000)
        SKIP("the device has no more");
    CUfunction nothing = kernel("nothing");
    IS(launch_shape(nothing, 1, 1, 1, 1, 1, 1, 50000), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
    OK(launch_shape(nothing, 1, 1, 1, 1, 1, 1, 50000));
}

PROMISE(function_attributes_say_what_the_ptx_says)
{
    start();
    constexpr char ptx[] = R"(
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .entry bounded() .maxntid 64, 1, 1
        {
            .shared .align 16 .b8 kept[1024];
            .reg .b32 %r;
            mov.u32 %r, 1;
            st.volatile.shared.u32 [kept], %r;
            ret;
        }
    )";
    CUfunction bounded = kernel("bounded", ptx);
    int value = 0;
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bounded));
    SAME(value, 64);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, bounded));
    SAME(value, 1024);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, bounded));
    SAME(value, 75);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, bounded));
    SAME(value, 10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                    attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, bounded));
    TRUE(value >= 0);
    IS(launch_shape(bounded, 1, 1, 1, 65, 1, 1), CUDA_ERROR_INVALID_VALUE);
    OK(launch_shape(bounded, 1, 1, 1, 64, 1, 1));
    IS(cuFuncGetAttribute(nullptr, CU_FUNC_ATTRIBUTE_NUM_REGS, bounded), CUDA_ERROR_INVALID_VALUE);
    IS(cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(1000), bounded), CUDA_ERROR_INVALID_VALUE);
    IS(cuFuncSetAttribute(bounded, CU_FUNC_ATTRIBUTE_NUM_REGS, 8), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(the_shared_memory_carveout_is_a_percentage)
{
    start();
    CUfunction nothing = kernel("nothing");
    int value = 0;
    OK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, nothing));
    SAME(value, 50);
    IS(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(arguments_may_come_in_a_buffer)
{
    start();
    CUdeviceptr word = allocate(4);
    struct {
        CUdeviceptr to;
        unsigned value;
    } packed{word, 13};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(kernel("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    SAME(word_at(word), 13);
}

PROMISE(arguments_in_both_ways_are_an_invalid_value)
{
    start();
    CUdeviceptr word = allocate(4);
    struct {
        CUdeviceptr to;
        unsigned value;
    } packed{word, 13};
    size_t size = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    void *arguments[] = {&packed.to, &packed.value};
    IS(cuLaunchKernel(kernel("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, extra), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(arguments_are_read_before_the_launch_returns)
{
    start();
    CUstream stream = create_stream();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    Gate gate(stream);
    unsigned value = 21;
    void *arguments[] = {&word, &value};
    OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
    value = 0;
    gate.open();
    OK(cuStreamSynchronize(stream));
    SAME(word_at(word), 21);
}

PROMISE(a_cooperative_grid_must_fit_the_device)
{
    start();
    CUfunction nothing = kernel("nothing");
    int blocks = 0;
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 1024, 0));
    unsigned most = blocks * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    OK(cuLaunchCooperativeKernel(nothing, most, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
    IS(cuLaunchCooperativeKernel(nothing, most + 1, 1, 1, 1024, 1, 1, 0, nullptr, nullptr),
       CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(cuCtxSynchronize());
}

PROMISE(a_launch_attribute_makes_a_grid_cooperative)
{
    start();
    CUfunction nothing = kernel("nothing");
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    OK(launch_with(nothing, cooperative));
    IS(launch_with(nothing, cooperative, 1 << 24), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
    cooperative.value.cooperative = 0;
    OK(launch_with(nothing, cooperative, 1 << 10));
    OK(cuCtxSynchronize());
}

PROMISE(ignored_attributes_change_nothing)
{
    start();
    CUdeviceptr word = allocate(4);
    unsigned value = 17;
    void *arguments[] = {&word, &value};
    CUlaunchAttribute ignored{};
    ignored.id = CU_LAUNCH_ATTRIBUTE_IGNORE;
    OK(launch_with(kernel("store"), ignored, 1, arguments));
    SAME(word_at(word), 17);
}

PROMISE(a_launch_may_carry_a_priority)
{
    start();
    int greatest = 0;
    OK(cuCtxGetStreamPriorityRange(nullptr, &greatest));
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = greatest;
    OK(launch_with(kernel("nothing"), priority));
    OK(cuCtxSynchronize());
}

PROMISE(clusters_must_divide_the_grid)
{
    start();
    if (!attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
        SKIP("the device has no clusters");
    CUfunction nothing = kernel("nothing");
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {2, 1, 1};
    OK(launch_with(nothing, cluster, 4));
    IS(launch_with(nothing, cluster, 3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
    OK(cuCtxSynchronize());
}

PROMISE(a_completion_event_is_recorded_with_the_launch)
{
    start();
    CUlaunchAttribute completion{};
    completion.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
    completion.value.launchCompletionEvent.event = create_event(CU_EVENT_DISABLE_TIMING);
    OK(launch_with(kernel("nothing"), completion));
    OK(cuEventSynchronize(completion.value.launchCompletionEvent.event));
}

PROMISE(parameters_have_offsets_and_sizes)
{
    start();
    CUfunction store = kernel("store");
    size_t offset = 99, size = 99;
    OK(cuFuncGetParamInfo(store, 1, &offset, &size));
    SAME(offset, 8);
    SAME(size, 4);
    IS(cuFuncGetParamInfo(store, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(a_function_can_be_loaded_ahead)
{
    start();
    CUfunction store = kernel("store");
    OK(cuFuncLoad(store));
    CUfunctionLoadingState state{};
    OK(cuFuncIsLoaded(&state, store));
    TRUE(state == CU_FUNCTION_LOADING_STATE_LOADED);
}

PROMISE(a_host_function_runs_in_the_streams_order)
{
    start();
    CUstream stream = create_stream();
    static CUdeviceptr word;
    static unsigned seen;
    OK(cuMemHostAlloc(reinterpret_cast<void **>(&word), 4, 0));
    launch(kernel("store"), word, 31, stream);
    OK(cuLaunchHostFunc(stream, [](void *data) { seen = **static_cast<unsigned **>(data); }, &word));
    OK(cuStreamSynchronize(stream));
    SAME(seen, 31);
    IS(cuLaunchHostFunc(stream, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(calls_of_before_cuda_4_still_launch)
{
    start();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    OK(cuFuncSetBlockShape(store, 1, 1, 1));
    OK(cuParamSetSize(store, 12));
    OK(cuParamSetv(store, 0, &word, 8));
    OK(cuParamSeti(store, 8, 55));
    OK(cuLaunchGrid(store, 1, 1));
    SAME(word_at(word), 55);
}

PROMISE(a_fault_stays_with_the_context)
{
    start();
    CUfunction store = kernel("store");
    launch(store, 0, 1);
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr memory;
    IS(cuMemAlloc(&memory, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

PROMISE(a_block_of_another_shape_than_required_does_not_run)
{
    start();
    constexpr char ptx[] = R"(
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .entry required() .reqntid 32, 2, 1 { ret; }
    )";
    CUfunction required = kernel("required", ptx);
    OK(launch_shape(required, 1, 1, 1, 32, 2, 1));
    OK(cuCtxSynchronize());
    CUresult launched = launch_shape(required, 1, 1, 1, 16, 2, 1);
    TRUE(launched != CUDA_SUCCESS || cuCtxSynchronize() != CUDA_SUCCESS);
}

PROMISE(a_failed_assertion_is_an_error_of_its_own)
{
    start();
    close(2); // the assertion's message
    constexpr char ptx[] = R"(
        .version 7.0
        .target sm_75
        .address_size 64
        .extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
        .global .align 1 .b8 text[2] = {120, 0};
        .visible .entry fails()
        {
            .reg .b64 %t;
            mov.u64 %t, text;
            cvta.global.u64 %t, %t;
            {
                .param .b64 m;
                .param .b64 f;
                .param .b32 l;
                .param .b64 n;
                .param .b64 s;
                st.param.b64 [m], %t;
                st.param.b64 [f], %t;
                st.param.b32 [l], 1;
                st.param.b64 [n], %t;
                st.param.b64 [s], 1;
                call __assertfail, (m, f, l, n, s);
            }
            ret;
        }
    )";
    OK(launch_shape(kernel("fails", ptx), 1, 1, 1, 1, 1, 1));
    IS(cuCtxSynchronize(), CUDA_ERROR_ASSERT);
}

PROMISE(an_error_of_a_kernel_comes_with_whatever_waits_for_it)
{
    start();
    CUstream stream = create_stream();
    CUfunction store = kernel("store");
    launch(store, 0, 1, stream);
    IS(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuStreamQuery(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    unsigned word = 0;
    IS(cuMemcpyDtoH(&word, 0, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

PROMISE(parameters_of_a_kernel_are_bytes_too)
{
    start();
    constexpr char ptx[] = R"(
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .entry pick(.param .align 8 .b8 pair[16])
        {
            .reg .b64 %p, %v;
            ld.param.u64 %p, [pair];
            ld.param.u64 %v, [pair+8];
            st.global.u32 [%p], %v;
            ret;
        }
    )";
    CUdeviceptr word = allocate(4);
    struct {
        CUdeviceptr to;
        unsigned long long value;
    } pair{word, 123};
    void *arguments[] = {&pair};
    OK(cuLaunchKernel(kernel("pick", ptx), 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    SAME(word_at(word), 123);
}

PROMISE(dynamic_shared_memory_is_as_long_as_asked_for)
{
    start();
    constexpr char ptx[] = R"(
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .entry size(.param .u64 to)
        {
            .reg .b64 %p;
            .reg .b32 %v;
            ld.param.u64 %p, [to];
            mov.u32 %v, %dynamic_smem_size;
            st.global.u32 [%p], %v;
            ret;
        }
    )";
    CUdeviceptr word = allocate(4);
    void *arguments[] = {&word};
    OK(cuLaunchKernel(kernel("size", ptx), 1, 1, 1, 1, 1, 1, 4096, nullptr, arguments, nullptr));
    SAME(word_at(word), 4096);
}
