//! When a program begins to measure time, as far as its events tell. In a process of its own, whose events are all here.

use hip_cpu::api::*;
use hip_cpu::event;
use hip_sys::*;

fn create(flags: u32) -> hipEvent_t {
    let mut event = hipEvent_t::default();
    hipEventCreateWithFlags((&mut event).into(), flags).unwrap();
    event
}

fn record(event: hipEvent_t) {
    hipEventRecord(event, hipStream_t::default()).unwrap();
    hipEventSynchronize(event).unwrap();
}

fn read(start: hipEvent_t, stop: hipEvent_t) {
    let mut ms = 0.0;
    hipEventElapsedTime((&mut ms).into(), start, stop).unwrap();
}

fn begins(event: hipEvent_t) -> bool {
    event::of_handle(event).unwrap().begins_measuring()
}

#[test]
fn a_measurement_begins_where_all_that_was_recorded_has_been_read() {
    let [a, b, c] = [(); 3].map(|()| create(hipEventDefault));
    let mark = create(hipEventDisableTiming);
    record(a);
    record(b);
    assert!(!begins(a) && !event::is_measuring(), "nobody has asked for a time");
    read(a, b);
    assert!(begins(a) && event::is_measuring());
    assert!(!begins(mark), "it has no time");
    record(mark);
    record(a);
    assert!(!begins(b), "the work behind the first is what is measured");
    record(c);
    record(b);
    read(a, b);
    assert!(!begins(a), "the third may be another's first");
    record(c);
    hipEventDestroy(c).unwrap();
    assert!(begins(a), "nobody can read it any more");
    for event in [a, b, mark] {
        hipEventDestroy(event).unwrap();
    }
}
