// CUDA Runtime API, "Execution Context Management".
#include "../check.h"

__global__ void count(unsigned *to) { atomicAdd(to, 1u); }

static cudaExecutionContext_t green_context()
{
    cudaDevResource all = {};
    OK(cudaDeviceGetDevResource(0, &all, cudaDevResourceTypeSm));
    cudaDevResourceDesc_t description;
    OK(cudaDevResourceGenerateDesc(&description, &all, 1));
    cudaExecutionContext_t green;
    OK(cudaGreenCtxCreate(&green, description, 0, 0));
    return green;
}

PROMISE(a_device_has_one_execution_context)
{
    cudaExecutionContext_t first, again;
    OK(cudaDeviceGetExecutionCtx(&first, 0));
    OK(cudaDeviceGetExecutionCtx(&again, 0));
    TRUE(first == again);
    int device = -1;
    OK(cudaExecutionCtxGetDevice(&device, first));
    SAME(device, 0);
    TRUE(cudaExecutionCtxDestroy(first) != cudaSuccess);
}

PROMISE(kernels_run_in_streams_of_a_green_context)
{
    const cudaExecutionContext_t green = green_context();
    cudaStream_t stream;
    OK(cudaExecutionCtxStreamCreate(&stream, green, cudaStreamNonBlocking, 0));
    unsigned *counter, seen = 0;
    OK(cudaMalloc(&counter, sizeof *counter));
    OK(cudaMemset(counter, 0, sizeof *counter));
    OK(cudaDeviceSynchronize());
    count<<<10, 100, 0, stream>>>(counter);
    OK(cudaGetLastError());
    OK(cudaExecutionCtxSynchronize(green));
    OK(cudaMemcpy(&seen, counter, sizeof seen, cudaMemcpyDeviceToHost));
    SAME(seen, 1000u);
    OK(cudaStreamDestroy(stream));
    OK(cudaExecutionCtxDestroy(green));
    TRUE(cudaExecutionCtxSynchronize(green) != cudaSuccess);
}

PROMISE(an_event_of_a_context_is_behind_all_of_its_streams)
{
    cudaExecutionContext_t device;
    OK(cudaDeviceGetExecutionCtx(&device, 0));
    cudaStream_t streams[3];
    unsigned *counter, seen = 0;
    OK(cudaMalloc(&counter, sizeof *counter));
    OK(cudaMemset(counter, 0, sizeof *counter));
    OK(cudaDeviceSynchronize());
    for (cudaStream_t &stream : streams) {
        OK(cudaExecutionCtxStreamCreate(&stream, device, cudaStreamNonBlocking, 0));
        for (int i = 0; i < 20; i++)
            count<<<50, 64, 0, stream>>>(counter);
    }
    cudaEvent_t event;
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    OK(cudaExecutionCtxRecordEvent(device, event));
    OK(cudaEventSynchronize(event));
    for (cudaStream_t stream : streams)
        OK(cudaStreamQuery(stream));
    OK(cudaMemcpy(&seen, counter, sizeof seen, cudaMemcpyDeviceToHost));
    SAME(seen, 3u * 20 * 50 * 64);
}

PROMISE(ids_tell_contexts_apart)
{
    const cudaExecutionContext_t a = green_context(), b = green_context();
    cudaExecutionContext_t device;
    OK(cudaDeviceGetExecutionCtx(&device, 0));
    unsigned long long ids[3] = {};
    OK(cudaExecutionCtxGetId(a, &ids[0]));
    OK(cudaExecutionCtxGetId(b, &ids[1]));
    OK(cudaExecutionCtxGetId(device, &ids[2]));
    TRUE(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
}

PROMISE(a_private_table_that_is_unknown_is_an_error)
{
    cudaUUID_t id = {};
    const void *table = &id;
    TRUE(cudaGetExportTable(&table, &id) != cudaSuccess);
    TRUE(table == nullptr);
}

PROMISE(a_kernel_knows_how_many_parameters_it_has)
{
    size_t parameters = 0;
    const cudaError_t answer = cudaFuncGetParamCount(reinterpret_cast<const void *>(&count), &parameters);
    if (answer == cudaErrorCallRequiresNewerDriver && check::is_driver_older())
        SKIP("the driver is older than the call");
    OK(answer);
    SAME(parameters, 1u);
}
