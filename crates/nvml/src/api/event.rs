//! Event Handling. None of our devices tells of an event, so nothing can be registered, and a wait ends with its time; the sets
//! are real, as monitors make one before they ask what there is to wait for.

use core::ffi::{c_uint, c_ulonglong};
use std::time::{Duration, Instant};

use border::Out;
use parking_lot::{Condvar, Mutex};

use crate::types::{nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t, nvmlEventTypeAll};
use crate::{Device, Error, Result};

/// The sets that there are, by the numbers that their handles are, and the last number given.
struct Sets {
    open: Vec<usize>,
    last: usize,
}

static SETS: Mutex<Sets> = Mutex::new(Sets { open: Vec::new(), last: 0 });
static FREED: Condvar = Condvar::new();

const NO_EVENTS: Error = Error::NotSupported("the devices tell of no events");

impl Sets {
    fn find(&self, set: nvmlEventSet_t) -> Result<usize> {
        self.open.iter().position(|&number| number == set.addr()).ok_or(Error::InvalidArgument("set"))
    }
}

pub fn nvmlEventSetCreate(set: Out<'_, nvmlEventSet_t>) -> Result {
    let mut sets = SETS.lock();
    sets.last += 1;
    let number = sets.last;
    sets.open.push(number);
    set.write(core::ptr::without_provenance_mut(number));
    Ok(())
}

pub fn nvmlEventSetFree(set: nvmlEventSet_t) -> Result {
    let mut sets = SETS.lock();
    let at = sets.find(set)?;
    sets.open.swap_remove(at);
    FREED.notify_all();
    Ok(())
}

pub fn nvmlDeviceGetSupportedEventTypes(device: nvmlDevice_t, eventTypes: Out<'_, c_ulonglong>) -> Result {
    Device::of(device)?;
    eventTypes.write(0);
    Ok(())
}

/// NVML: types that it does not know are a wrong argument, those that the device does not have are not supported.
pub fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    eventTypes: c_ulonglong,
    set: nvmlEventSet_t,
) -> Result {
    Device::of(device)?;
    SETS.lock().find(set)?;
    if eventTypes & !c_ulonglong::from(nvmlEventTypeAll) != 0 {
        return Err(Error::InvalidArgument("eventTypes"));
    }
    if eventTypes == 0 { Ok(()) } else { Err(NO_EVENTS) }
}

pub fn nvmlEventSetWait_v2(set: nvmlEventSet_t, data: Out<'_, nvmlEventData_t>, timeoutms: c_uint) -> Result {
    let _ = data;
    let until = Instant::now() + Duration::from_millis(timeoutms.into());
    let mut sets = SETS.lock();
    loop {
        sets.find(set)?;
        // It lets go of the lock meanwhile.
        if FREED.wait_until(&mut sets, until).timed_out() {
            return Err(Error::Timeout);
        }
    }
}

pub fn nvmlEventSetWait(set: nvmlEventSet_t, data: Out<'_, nvmlEventData_t>, timeoutms: c_uint) -> Result {
    nvmlEventSetWait_v2(set, data, timeoutms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_waited_for_until_its_time_or_its_end() {
        let mut set = core::ptr::null_mut();
        nvmlEventSetCreate(Out::from(&mut set)).unwrap();
        let number = set.addr();
        let wait = |milliseconds| {
            let mut data = nvmlEventData_t::default();
            let set = core::ptr::without_provenance_mut(number);
            nvmlEventSetWait_v2(set, Out::from(&mut data), milliseconds)
        };
        let started = Instant::now();
        assert_eq!(wait(30), Err(Error::Timeout));
        assert!(started.elapsed() >= Duration::from_millis(30));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(60_000));
            std::thread::sleep(Duration::from_millis(20));
            nvmlEventSetFree(core::ptr::without_provenance_mut(number)).unwrap();
            assert_eq!(waiting.join().unwrap(), Err(Error::InvalidArgument("set")));
        });
        assert_eq!(nvmlEventSetFree(set), Err(Error::InvalidArgument("set")));
        assert_eq!(wait(0), Err(Error::InvalidArgument("set")));
    }
}
