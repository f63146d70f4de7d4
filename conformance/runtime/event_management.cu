// CUDA Runtime API, "Event Management".
#include "../check.h"

#include <atomic>

static std::atomic<bool> is_open{false};

static void hold(cudaStream_t stream)
{
    OK(cudaLaunchHostFunc(
        stream,
        [](void *) {
            while (!is_open)
                usleep(1000);
        },
        nullptr));
}

static cudaEvent_t created(unsigned flags = cudaEventDefault)
{
    cudaEvent_t event = nullptr;
    OK(cudaEventCreateWithFlags(&event, flags));
    TRUE(event != nullptr);
    return event;
}

static cudaStream_t stream()
{
    cudaStream_t stream = nullptr;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

PROMISE(events_can_be_made_in_every_manner)
{
    cudaEvent_t event = nullptr;
    OK(cudaEventCreate(&event));
    OK(cudaEventDestroy(event));
    OK(cudaEventDestroy(created(cudaEventBlockingSync)));
    OK(cudaEventDestroy(created(cudaEventDisableTiming)));
    OK(cudaEventDestroy(created(cudaEventBlockingSync | cudaEventDisableTiming)));
}

PROMISE(events_between_processes_can_be_made_where_the_device_has_them)
{
    int has = 0;
    OK(cudaDeviceGetAttribute(&has, cudaDevAttrIpcEventSupport, 0));
    cudaEvent_t event = nullptr;
    IS(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming),
       has ? cudaSuccess : cudaErrorNotSupported);
}

PROMISE(events_between_processes_have_no_timing)
{
    cudaEvent_t event = nullptr;
    IS(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
}

PROMISE(unknown_flags_are_refused)
{
    cudaEvent_t event = nullptr;
    IS(cudaEventCreateWithFlags(&event, 0x100), cudaErrorInvalidValue);
    IS(cudaEventCreate(nullptr), cudaErrorInvalidValue);
}

PROMISE(an_event_never_recorded_is_complete)
{
    OK(cudaEventQuery(created()));
    OK(cudaEventSynchronize(created()));
}

PROMISE(an_event_completes_when_the_work_before_it_has)
{
    cudaStream_t on = stream();
    cudaEvent_t event = created();
    hold(on);
    OK(cudaEventRecord(event, on));
    SAME(cudaEventQuery(event), cudaErrorNotReady);
    is_open = true;
    OK(cudaEventSynchronize(event));
    OK(cudaEventQuery(event));
}

PROMISE(work_behind_an_event_is_not_waited_for)
{
    cudaStream_t on = stream();
    cudaEvent_t event = created();
    OK(cudaEventRecord(event, on));
    hold(on);
    OK(cudaEventSynchronize(event));
    SAME(cudaStreamQuery(on), cudaErrorNotReady);
    is_open = true;
    OK(cudaStreamSynchronize(on));
}

PROMISE(a_second_record_replaces_the_first)
{
    cudaStream_t on = stream();
    cudaEvent_t event = created();
    OK(cudaEventRecord(event, on));
    OK(cudaEventSynchronize(event));
    hold(on);
    OK(cudaEventRecord(event, on));
    SAME(cudaEventQuery(event), cudaErrorNotReady);
    is_open = true;
    OK(cudaEventSynchronize(event));
}

PROMISE(elapsed_time_is_from_the_first_to_the_second)
{
    cudaStream_t on = stream();
    cudaEvent_t start = created(), end = created();
    OK(cudaEventRecord(start, on));
    OK(cudaLaunchHostFunc(on, [](void *) { usleep(30000); }, nullptr));
    OK(cudaEventRecord(end, on));
    OK(cudaEventSynchronize(end));
    float ms = -1, back = 1;
    OK(cudaEventElapsedTime(&ms, start, end));
    TRUE(ms >= 29.0f);
    OK(cudaEventElapsedTime(&back, end, start));
    TRUE(back <= -29.0f);
    OK(cudaEventElapsedTime(&ms, start, start));
    SAME(ms, 0.0f);
}

PROMISE(elapsed_time_needs_both_events_recorded)
{
    float ms = 0;
    cudaEvent_t recorded = created();
    OK(cudaEventRecord(recorded, nullptr));
    OK(cudaEventSynchronize(recorded));
    IS(cudaEventElapsedTime(&ms, recorded, created()), cudaErrorInvalidResourceHandle);
    IS(cudaEventElapsedTime(&ms, created(), recorded), cudaErrorInvalidResourceHandle);
}

PROMISE(elapsed_time_needs_timing)
{
    float ms = 0;
    cudaEvent_t timed = created(), untimed = created(cudaEventDisableTiming);
    OK(cudaEventRecord(timed, nullptr));
    OK(cudaEventRecord(untimed, nullptr));
    OK(cudaDeviceSynchronize());
    IS(cudaEventElapsedTime(&ms, timed, untimed), cudaErrorInvalidResourceHandle);
    IS(cudaEventElapsedTime(nullptr, timed, timed), cudaErrorInvalidValue);
}

PROMISE(elapsed_time_of_events_under_way_is_not_ready)
{
    cudaStream_t on = stream();
    cudaEvent_t start = created(), end = created();
    OK(cudaEventRecord(start, on));
    hold(on);
    OK(cudaEventRecord(end, on));
    float ms = 0;
    SAME(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    is_open = true;
    OK(cudaEventSynchronize(end));
    OK(cudaEventElapsedTime(&ms, start, end));
}

PROMISE(destroying_an_event_under_way_does_not_wait)
{
    cudaStream_t on = stream();
    cudaEvent_t event = created();
    hold(on);
    OK(cudaEventRecord(event, on));
    OK(cudaEventDestroy(event));
    SAME(cudaStreamQuery(on), cudaErrorNotReady);
    is_open = true;
    OK(cudaStreamSynchronize(on));
}

PROMISE(records_with_flags_are_records)
{
    cudaStream_t on = stream();
    cudaEvent_t event = created();
    OK(cudaEventRecordWithFlags(event, on, cudaEventRecordDefault));
    OK(cudaEventSynchronize(event));
    IS(cudaEventRecordWithFlags(event, on, 0x80), cudaErrorInvalidValue);
}

PROMISE(null_events_are_refused)
{
    IS(cudaEventRecord(nullptr, nullptr), cudaErrorInvalidResourceHandle);
    IS(cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle);
    IS(cudaEventSynchronize(nullptr), cudaErrorInvalidResourceHandle);
    IS(cudaEventDestroy(nullptr), cudaErrorInvalidResourceHandle);
}

PROMISE(an_event_of_the_legacy_stream_stands_behind_blocking_streams)
{
    cudaStream_t blocking;
    OK(cudaStreamCreate(&blocking));
    cudaEvent_t event = created();
    hold(blocking);
    OK(cudaEventRecord(event, cudaStreamLegacy));
    SAME(cudaEventQuery(event), cudaErrorNotReady);
    is_open = true;
    OK(cudaEventSynchronize(event));
}
