// CUDA Runtime API, "Stream Management" and "Stream synchronization behavior".
#include "../check.h"

#include <atomic>
#include <thread>

static cudaStream_t created(unsigned flags = cudaStreamDefault)
{
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreateWithFlags(&stream, flags));
    TRUE(stream != nullptr);
    return stream;
}

// Work that goes on until the gate opens.
struct Gate {
    std::atomic<bool> is_open{false}, is_passed{false};
    void open() { is_open = true; }
    void hold(cudaStream_t stream)
    {
        OK(cudaLaunchHostFunc(
            stream,
            [](void *gate) {
                auto *self = static_cast<Gate *>(gate);
                while (!self->is_open)
                    usleep(1000);
                self->is_passed = true;
            },
            this));
    }
};

static void set(cudaStream_t stream, std::atomic<int> *value)
{
    OK(cudaLaunchHostFunc(stream, [](void *value) { *static_cast<std::atomic<int> *>(value) = 1; }, value));
}

// Long enough that work that may run would have.
static void a_while() { usleep(60000); }

PROMISE(streams_have_the_flags_they_were_made_with)
{
    unsigned flags = 9;
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamGetFlags(stream, &flags));
    SAME(flags, cudaStreamDefault);
    OK(cudaStreamGetFlags(created(cudaStreamNonBlocking), &flags));
    SAME(flags, cudaStreamNonBlocking);
    OK(cudaStreamDestroy(stream));
}

PROMISE(unknown_flags_are_refused)
{
    cudaStream_t stream = nullptr;
    IS(cudaStreamCreateWithFlags(&stream, 0x100), cudaErrorInvalidValue);
    IS(cudaStreamCreateWithPriority(&stream, 0x100, 0), cudaErrorInvalidValue);
    IS(cudaStreamCreate(nullptr), cudaErrorInvalidValue);
}

PROMISE(priorities_outside_the_range_are_clamped)
{
    int least = 0, greatest = 0, priority = 99;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cudaStream_t stream;
    OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 100));
    OK(cudaStreamGetPriority(stream, &priority));
    SAME(priority, greatest);
    OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, least + 100));
    OK(cudaStreamGetPriority(stream, &priority));
    SAME(priority, least);
    OK(cudaStreamGetPriority(created(), &priority));
    SAME(priority, 0);
}

PROMISE(each_stream_has_an_id_of_its_own)
{
    unsigned long long first = 0, again = 0, second = 0;
    cudaStream_t one = created(), other = created();
    OK(cudaStreamGetId(one, &first));
    OK(cudaStreamGetId(one, &again));
    OK(cudaStreamGetId(other, &second));
    SAME(first, again);
    TRUE(first != second);
    unsigned long long by_null = 0, by_name = 0;
    OK(cudaStreamGetId(nullptr, &by_null));
    OK(cudaStreamGetId(cudaStreamLegacy, &by_name));
    SAME(by_null, by_name);
}

PROMISE(a_stream_knows_its_device)
{
    int device = -1;
    OK(cudaStreamGetDevice(created(), &device));
    SAME(device, 0);
}

PROMISE(an_idle_stream_is_complete)
{
    OK(cudaStreamQuery(created()));
    OK(cudaStreamQuery(nullptr));
    OK(cudaStreamSynchronize(created()));
    OK(cudaStreamSynchronize(nullptr));
}

PROMISE(a_busy_stream_is_not_ready)
{
    static Gate gate;
    cudaStream_t stream = created(cudaStreamNonBlocking);
    gate.hold(stream);
    SAME(cudaStreamQuery(stream), cudaErrorNotReady);
    gate.open();
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamQuery(stream));
    TRUE(gate.is_passed.load());
}

PROMISE(synchronising_one_stream_does_not_wait_for_another)
{
    static Gate gate;
    cudaStream_t busy = created(cudaStreamNonBlocking), idle = created(cudaStreamNonBlocking);
    gate.hold(busy);
    OK(cudaStreamSynchronize(idle));
    TRUE(!gate.is_passed.load());
    gate.open();
    OK(cudaDeviceSynchronize());
}

PROMISE(work_of_one_stream_runs_in_order)
{
    static Gate gate;
    static std::atomic<int> later{0};
    cudaStream_t stream = created();
    gate.hold(stream);
    set(stream, &later);
    a_while();
    SAME(later.load(), 0);
    gate.open();
    OK(cudaStreamSynchronize(stream));
    SAME(later.load(), 1);
}

PROMISE(the_legacy_stream_waits_for_blocking_streams)
{
    static Gate gate;
    static std::atomic<int> later{0};
    gate.hold(created());
    set(cudaStreamLegacy, &later);
    a_while();
    SAME(later.load(), 0);
    SAME(cudaStreamQuery(cudaStreamLegacy), cudaErrorNotReady);
    gate.open();
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    SAME(later.load(), 1);
}

PROMISE(blocking_streams_wait_for_the_legacy_stream)
{
    static Gate gate;
    static std::atomic<int> later{0};
    cudaStream_t stream = created();
    gate.hold(nullptr);
    set(stream, &later);
    a_while();
    SAME(later.load(), 0);
    gate.open();
    OK(cudaStreamSynchronize(stream));
    SAME(later.load(), 1);
}

PROMISE(non_blocking_streams_and_the_legacy_stream_do_not_wait_for_each_other)
{
    static Gate first, second;
    static std::atomic<int> on_legacy{0}, on_stream{0};
    cudaStream_t stream = created(cudaStreamNonBlocking);
    first.hold(stream);
    set(nullptr, &on_legacy);
    OK(cudaStreamSynchronize(nullptr));
    SAME(on_legacy.load(), 1);
    first.open();
    OK(cudaStreamSynchronize(stream));
    second.hold(nullptr);
    set(stream, &on_stream);
    OK(cudaStreamSynchronize(stream));
    SAME(on_stream.load(), 1);
    second.open();
    OK(cudaDeviceSynchronize());
}

PROMISE(the_per_thread_stream_and_the_legacy_stream_wait_for_each_other)
{
    static Gate gate;
    static std::atomic<int> later{0};
    gate.hold(cudaStreamPerThread);
    set(cudaStreamLegacy, &later);
    a_while();
    SAME(later.load(), 0);
    gate.open();
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    SAME(later.load(), 1);
}

PROMISE(per_thread_streams_of_two_threads_do_not_wait_for_each_other)
{
    static Gate gate;
    static std::atomic<int> other{0};
    gate.hold(cudaStreamPerThread);
    std::thread([] {
        set(cudaStreamPerThread, &other);
        OK(cudaStreamSynchronize(cudaStreamPerThread));
    }).join();
    SAME(other.load(), 1);
    gate.open();
    OK(cudaDeviceSynchronize());
}

PROMISE(default_streams_cannot_be_destroyed)
{
    IS(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
    IS(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
    IS(cudaStreamDestroy(cudaStreamPerThread), cudaErrorInvalidResourceHandle);
}

PROMISE(destroying_a_stream_lets_its_work_finish)
{
    static Gate gate;
    cudaStream_t stream = created(cudaStreamNonBlocking);
    gate.hold(stream);
    OK(cudaStreamDestroy(stream));
    TRUE(!gate.is_passed.load());
    gate.open();
    OK(cudaDeviceSynchronize());
    TRUE(gate.is_passed.load());
}

PROMISE(a_stream_waits_for_an_event_of_another)
{
    static Gate gate;
    static std::atomic<int> later{0};
    cudaStream_t first = created(cudaStreamNonBlocking), second = created(cudaStreamNonBlocking);
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    gate.hold(first);
    OK(cudaEventRecord(event, first));
    OK(cudaStreamWaitEvent(second, event, 0));
    set(second, &later);
    a_while();
    SAME(later.load(), 0);
    gate.open();
    OK(cudaStreamSynchronize(second));
    SAME(later.load(), 1);
}

PROMISE(waiting_for_an_event_never_recorded_is_no_wait)
{
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    cudaStream_t stream = created();
    OK(cudaStreamWaitEvent(stream, event, 0));
    OK(cudaStreamSynchronize(stream));
}

PROMISE(waiting_refuses_unknown_flags_and_events)
{
    cudaEvent_t event;
    OK(cudaEventCreate(&event));
    IS(cudaStreamWaitEvent(created(), event, 0x80), cudaErrorInvalidValue);
    IS(cudaStreamWaitEvent(created(), nullptr, 0), cudaErrorInvalidResourceHandle);
}

static std::atomic<int> called{0};
static std::atomic<int> status{-1};
static std::atomic<cudaStream_t> called_with{nullptr};

PROMISE(callbacks_get_stream_status_and_data)
{
    cudaStream_t stream = created();
    int data = 5;
    auto callback = [](cudaStream_t stream, cudaError_t code, void *data) {
        called_with = stream;
        status = code;
        called = *static_cast<int *>(data);
    };
    OK(cudaStreamAddCallback(stream, callback, &data, 0));
    OK(cudaStreamSynchronize(stream));
    SAME(called.load(), 5);
    SAME(status.load(), cudaSuccess);
    SAME(called_with.load(), stream);
    IS(cudaStreamAddCallback(stream, callback, &data, 1), cudaErrorInvalidValue);
    IS(cudaStreamAddCallback(stream, nullptr, &data, 0), cudaErrorInvalidValue);
}

PROMISE(callbacks_hold_back_later_work)
{
    static Gate gate;
    static std::atomic<int> later{0};
    cudaStream_t stream = created(cudaStreamNonBlocking);
    auto callback = [](cudaStream_t, cudaError_t, void *) {
        while (!gate.is_open)
            usleep(1000);
    };
    OK(cudaStreamAddCallback(stream, callback, nullptr, 0));
    set(stream, &later);
    a_while();
    SAME(later.load(), 0);
    gate.open();
    OK(cudaStreamSynchronize(stream));
    SAME(later.load(), 1);
}

PROMISE(attributes_of_a_stream_can_be_set_and_copied)
{
    cudaStream_t first = created(), second = created();
    cudaStreamAttrValue value;
    std::memset(&value, 0, sizeof value);
    value.syncPolicy = cudaSyncPolicyYield;
    OK(cudaStreamSetAttribute(first, cudaStreamAttributeSynchronizationPolicy, &value));
    std::memset(&value, 0, sizeof value);
    OK(cudaStreamGetAttribute(first, cudaStreamAttributeSynchronizationPolicy, &value));
    SAME(value.syncPolicy, cudaSyncPolicyYield);
    OK(cudaStreamCopyAttributes(second, first));
    std::memset(&value, 0, sizeof value);
    OK(cudaStreamGetAttribute(second, cudaStreamAttributeSynchronizationPolicy, &value));
    SAME(value.syncPolicy, cudaSyncPolicyYield);
}

PROMISE(managed_memory_can_be_attached_to_a_stream)
{
    int *memory = nullptr;
    cudaStream_t stream = created();
    OK(cudaMallocManaged(&memory, 64, cudaMemAttachHost));
    OK(cudaStreamAttachMemAsync(stream, memory, 0, cudaMemAttachSingle));
    OK(cudaStreamSynchronize(stream));
    memory[0] = 3;
    SAME(memory[0], 3);
    IS(cudaStreamAttachMemAsync(stream, memory, 0, 0x80), cudaErrorInvalidValue);
}

PROMISE(a_stream_that_captures_nothing_says_so)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    OK(cudaStreamIsCapturing(created(), &status));
    SAME(status, cudaStreamCaptureStatusNone);
    OK(cudaStreamIsCapturing(nullptr, &status));
    SAME(status, cudaStreamCaptureStatusNone);
}

PROMISE(the_l2_cache_can_be_reset)
{
    OK(cudaCtxResetPersistingL2Cache());
}

PROMISE(a_stream_of_one_thread_serves_another)
{
    static std::atomic<int> done{0};
    cudaStream_t stream = created();
    std::thread([stream] {
        set(stream, &done);
        OK(cudaStreamSynchronize(stream));
    }).join();
    SAME(done.load(), 1);
    OK(cudaStreamDestroy(stream));
}
