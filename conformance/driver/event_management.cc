// CUDA Driver API, "Event Management".
#include "../device.h"

PROMISE(an_event_that_was_never_recorded_is_complete)
{
    start();
    CUevent event = create_event();
    OK(cuEventQuery(event));
    OK(cuEventSynchronize(event));
    OK(cuStreamWaitEvent(create_stream(), event, CU_EVENT_WAIT_DEFAULT));
}

PROMISE(an_event_is_not_ready_before_the_work_in_front_of_it_ended)
{
    start();
    CUstream stream = create_stream();
    CUevent event = create_event();
    Gate gate(stream);
    OK(cuEventRecord(event, stream));
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
}

PROMISE(a_stream_is_ready_when_what_waited_for_its_last_event_is)
{
    start();
    CUstream last = create_stream(), streams[4];
    CUevent events[4], end = create_event();
    CUdeviceptr word = allocate(4);
    for (int i = 0; i < 4; i++) {
        streams[i] = create_stream();
        events[i] = create_event();
    }
    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < 4; i++) {
            OK(cuMemsetD32Async(word, i, 1, streams[i]));
            OK(cuEventRecord(events[i], streams[i]));
            OK(cuStreamWaitEvent(last, events[i], CU_EVENT_WAIT_DEFAULT));
        }
        OK(cuEventRecord(end, last));
        while (cuEventQuery(end) == CUDA_ERROR_NOT_READY) {
        }
        OK(cuStreamQuery(last));
        for (CUstream stream : streams)
            OK(cuStreamQuery(stream));
    }
}

PROMISE(an_event_is_ready_when_its_stream_is)
{
    start();
    CUstream stream = create_stream();
    CUevent event = create_event();
    for (int round = 0; round < 500; round++) {
        OK(cuEventRecord(event, stream));
        while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
        }
        OK(cuEventQuery(event));
    }
}

PROMISE(recording_again_replaces_what_was_recorded)
{
    start();
    CUstream stream = create_stream();
    CUevent event = create_event();
    OK(cuEventRecord(event, stream));
    OK(cuEventSynchronize(event));
    Gate gate(stream);
    OK(cuEventRecord(event, stream));
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuEventSynchronize(event));
}

PROMISE(a_wait_is_for_what_was_recorded_when_it_was_asked_for)
{
    start();
    CUstream first = create_stream(), second = create_stream(), third = create_stream();
    CUevent event = create_event();
    Gate early(first);
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, CU_EVENT_WAIT_DEFAULT));
    Gate late(third);
    OK(cuEventRecord(event, third));
    IS(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    early.open();
    OK(cuStreamSynchronize(second));
    IS(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    late.open();
    OK(cuEventSynchronize(event));
}

PROMISE(time_between_two_events_is_not_negative)
{
    start();
    CUevent first = create_event(), second = create_event();
    OK(cuEventRecord(first, nullptr));
    OK(cuEventRecord(second, nullptr));
    OK(cuEventSynchronize(second));
    float ms = -1;
    OK(cuEventElapsedTime(&ms, first, second));
    TRUE(ms >= 0);
}

PROMISE(time_needs_events_that_were_recorded)
{
    start();
    CUevent first = create_event(), second = create_event();
    float ms;
    IS(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(first, nullptr));
    OK(cuEventSynchronize(first));
    IS(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(second, nullptr));
    OK(cuEventSynchronize(second));
    IS(cuEventElapsedTime(nullptr, first, second), CUDA_ERROR_INVALID_HANDLE);
}

PROMISE(time_is_not_ready_before_both_events_are)
{
    start();
    CUstream stream = create_stream();
    CUevent first = create_event(), second = create_event();
    OK(cuEventRecord(first, stream));
    Gate gate(stream);
    OK(cuEventRecord(second, stream));
    float ms;
    IS(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuEventSynchronize(second));
    OK(cuEventElapsedTime(&ms, first, second));
}

PROMISE(events_without_timing_have_no_time)
{
    start();
    CUevent first = create_event(), second = create_event(CU_EVENT_DISABLE_TIMING);
    OK(cuEventRecord(first, nullptr));
    OK(cuEventRecord(second, nullptr));
    OK(cuEventSynchronize(second));
    float ms;
    IS(cuEventElapsedTime(&ms, first, second), CUDA_ERROR_INVALID_HANDLE);
}

PROMISE(events_for_other_processes_have_no_timing)
{
    start();
    CUevent event;
    IS(cuEventCreate(&event, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
    OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC));
    IS(cuEventCreate(&event, 0x100), CUDA_ERROR_INVALID_VALUE);
    IS(cuEventCreate(nullptr, 0), CUDA_ERROR_INVALID_VALUE);
}

PROMISE(an_event_may_be_destroyed_before_it_completed)
{
    start();
    CUstream stream = create_stream(), other = create_stream();
    CUevent event = create_event();
    Gate gate(stream);
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(other, event, CU_EVENT_WAIT_DEFAULT));
    OK(cuEventDestroy(event));
    IS(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    gate.open();
    OK(cuStreamSynchronize(other));
}

PROMISE(event_and_stream_belong_to_one_context)
{
    create_context();
    CUevent event = create_event();
    create_context();
    IS(cuEventRecord(event, create_stream()), CUDA_ERROR_INVALID_HANDLE);
}

PROMISE(flags_of_a_record_are_checked)
{
    start();
    CUevent event = create_event();
    OK(cuEventRecordWithFlags(event, nullptr, CU_EVENT_RECORD_DEFAULT));
    IS(cuEventRecordWithFlags(event, nullptr, 0x100), CUDA_ERROR_INVALID_VALUE);
}
