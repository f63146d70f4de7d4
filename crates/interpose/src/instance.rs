//! Which taken-over runtime an address belongs to. A static runtime is an instance of its own: CUDA keeps the last error
//! per instance and thread, and programs with several (CuPy's extension modules) rely on it.

use core::sync::atomic::{AtomicUsize, Ordering};

const CAPACITY: usize = 256;

/// The mapped addresses of one object.
struct Range {
    low: AtomicUsize,
    high: AtomicUsize,
}

static RANGES: [Range; CAPACITY] =
    [const { Range { low: AtomicUsize::new(0), high: AtomicUsize::new(0) } }; CAPACITY];
static N: AtomicUsize = AtomicUsize::new(0);

/// The object mapped at `low..high` was taken over. The caller holds the loader's lock or is alone.
/// Past the capacity further objects share one instance.
pub fn add(low: usize, high: usize) {
    let n = N.load(Ordering::Relaxed);
    let ranges = RANGES.get(..n).unwrap_or(&RANGES);
    // Where an object was unloaded, another may be mapped now.
    let reusable = ranges
        .iter()
        .find(|range| range.low.load(Ordering::Relaxed) < high && low < range.high.load(Ordering::Relaxed));
    let Some(range) = reusable.or_else(|| RANGES.get(n)) else { return };
    range.high.store(0, Ordering::Release);
    range.low.store(low, Ordering::Release);
    range.high.store(high, Ordering::Release);
    if reusable.is_none() {
        N.store(n + 1, Ordering::Release);
    }
}

/// The start of the object that was taken over first; `None` when none was.
pub fn any() -> Option<usize> {
    RANGES.get(..N.load(Ordering::Acquire))?.first().map(|range| range.low.load(Ordering::Acquire))
}

/// The start of the taken-over object that holds `address`; `None` for code that uses a shared runtime.
pub fn of(address: usize) -> Option<usize> {
    let ranges = RANGES.get(..N.load(Ordering::Acquire))?;
    ranges.iter().find_map(|range| {
        let low = range.low.load(Ordering::Acquire);
        (low <= address && address < range.high.load(Ordering::Acquire)).then_some(low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_object_that_holds_it_now() {
        assert_eq!(any(), None);
        add(0x1000, 0x2000);
        assert_eq!(any(), Some(0x1000));
        add(0x8000, 0x9000);
        assert_eq!(
            (of(0x1000), of(0x1fff), of(0x2000), of(0x8800)),
            (Some(0x1000), Some(0x1000), None, Some(0x8000))
        );
        // The first is unloaded, another object comes where it was.
        add(0x1800, 0x2800);
        assert_eq!((of(0x1000), of(0x2000)), (None, Some(0x1800)));
    }
}
