// CUDA C++ Programming Guide, processes and exit: what a fork and the end of the process mean for the driver.
#include "../device.h"

// The exit status of a forked child that does this; a child that hangs is ended after 30 seconds.
template <typename F> static int in_child(F body)
{
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        body();
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

PROMISE(a_child_uses_cuda_if_its_parent_did_not)
{
    SAME(in_child([] {
        start();
        CUdeviceptr word = allocate(4);
        launch(kernel("store"), word, 5);
        SAME(word_at(word), 5);
    }), 0);
    start();
    OK(cuMemFree(allocate(4)));
}

PROMISE(a_child_of_a_process_that_used_cuda_gets_errors)
{
    start();
    CUfunction store = kernel("store");
    CUdeviceptr word = allocate(4);
    launch(store, word, 5);
    OK(cuCtxSynchronize());
    SAME(in_child([&] {
        CUdeviceptr memory;
        TRUE(cuMemAlloc(&memory, 4) != CUDA_SUCCESS);
        TRUE(cuCtxSynchronize() != CUDA_SUCCESS);
        void *arguments[] = {&word, &word};
        CUresult launched = cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
        TRUE(launched != CUDA_SUCCESS || cuStreamSynchronize(nullptr) != CUDA_SUCCESS);
    }), 0);
    SAME(word_at(word), 5);
}

PROMISE(the_parent_goes_on_after_its_child_ended_normally)
{
    start();
    CUdeviceptr word = allocate(4);
    OK(cuMemsetD32(word, 3, 1));
    SAME(in_child([] { exit(0); }), 0);
    SAME(word_at(word), 3);
    launch(kernel("add"), word, 4);
    SAME(word_at(word), 7);
}

PROMISE(calls_while_the_process_exits_answer_deinitialized)
{
    int seen[2];
    TRUE(pipe(seen) == 0);
    static int out;
    out = seen[1];
    // Registered before the driver's own handler, so it runs after it.
    SAME(in_child([] {
        atexit([] {
            CUdeviceptr memory = 0;
            CUresult answers[] = {cuMemAlloc(&memory, 4), cuCtxSynchronize(), cuMemFree(1)};
            (void)!write(out, answers, sizeof answers);
        });
        start();
        allocate(4);
        exit(0);
    }), 0);
    CUresult answers[3] = {};
    TRUE(read(seen[0], answers, sizeof answers) == sizeof answers);
    for (CUresult answer : answers)
        IS(answer, CUDA_ERROR_DEINITIALIZED);
}

PROMISE(a_process_may_exit_with_work_in_flight)
{
    SAME(in_child([] {
        start();
        CUfunction add = kernel("add");
        CUdeviceptr word = allocate(4);
        for (int i = 0; i < 50; i++)
            launch(add, word, 1, create_stream(), 256);
        exit(0);
    }), 0);
}
