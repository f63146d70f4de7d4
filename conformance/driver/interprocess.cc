// CUDA Driver API, "Memory Management", cuIpc*: memory and events of another process.
#include "../device.h"

struct Handles {
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

// Runs `owner` here and `guest` in a child that begins before either uses CUDA. The guest ends first.
template <typename Owner, typename Guest> static void with_guest(Owner owner, Guest guest)
{
    int there[2], back[2];
    TRUE(pipe(there) == 0 && pipe(back) == 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(30);
        close(there[1]);
        close(back[0]);
        start();
        Handles handles;
        TRUE(read(there[0], &handles, sizeof handles) == sizeof handles);
        guest(handles);
        TRUE(write(back[1], "x", 1) == 1);
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    start();
    auto finish = [&](const Handles &handles) {
        TRUE(write(there[1], &handles, sizeof handles) == sizeof handles);
        char done = 0;
        TRUE(read(back[0], &done, 1) == 1);
        int status = -1;
        waitpid(child, &status, 0);
        SAME(status, 0);
    };
    owner(finish);
}

PROMISE(memory_of_another_process_is_read_and_written)
{
    with_guest(
        [](auto finish) {
            CUdeviceptr memory = allocate(4096);
            OK(cuMemsetD32(memory, 41, 1024));
            OK(cuCtxSynchronize());
            Handles handles{};
            OK(cuIpcGetMemHandle(&handles.memory, memory));
            finish(handles);
            SAME(word_at(memory + 4000), 42);
            OK(cuMemFree(memory));
        },
        [](const Handles &handles) {
            CUdeviceptr memory;
            OK(cuIpcOpenMemHandle(&memory, handles.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            SAME(word_at(memory + 4092), 41);
            launch(kernel("store"), memory + 4000, 42);
            OK(cuCtxSynchronize());
            OK(cuIpcCloseMemHandle(memory));
            IS(cuIpcCloseMemHandle(memory), CUDA_ERROR_INVALID_VALUE);
        });
}

PROMISE(an_event_of_another_process_is_waited_for)
{
    with_guest(
        [](auto finish) {
            CUstream stream = create_stream();
            CUfunction store = kernel("store");
            CUdeviceptr word = allocate(4);
            CUevent event = create_event(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
            launch(store, word, 5, stream);
            OK(cuEventRecord(event, stream));
            Handles handles{};
            OK(cuIpcGetMemHandle(&handles.memory, word));
            OK(cuIpcGetEventHandle(&handles.event, event));
            finish(handles);
        },
        [](const Handles &handles) {
            CUevent event;
            CUdeviceptr word;
            OK(cuIpcOpenEventHandle(&event, handles.event));
            OK(cuIpcOpenMemHandle(&word, handles.memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
            CUstream stream = create_stream();
            OK(cuStreamWaitEvent(stream, event, 0));
            unsigned seen = 0;
            OK(cuMemcpyDtoHAsync(&seen, word, 4, stream));
            OK(cuStreamSynchronize(stream));
            SAME(seen, 5);
            OK(cuEventQuery(event));
        });
}

PROMISE(only_events_made_for_it_are_shared)
{
    start();
    CUipcEventHandle handle;
    TRUE(cuIpcGetEventHandle(&handle, create_event(CU_EVENT_DISABLE_TIMING)) != CUDA_SUCCESS);
}

PROMISE(only_memory_of_the_device_is_shared)
{
    start();
    CUipcMemHandle handle;
    int own = 0;
    IS(cuIpcGetMemHandle(&handle, reinterpret_cast<CUdeviceptr>(&own)), CUDA_ERROR_INVALID_VALUE);
    IS(cuIpcGetMemHandle(nullptr, allocate(4)), CUDA_ERROR_INVALID_VALUE);
}
