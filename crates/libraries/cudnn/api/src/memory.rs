//! The program's memory, as the work of a call follows it: where the host cannot read the device's, copies (`kit::far`).
//!
//! The rule: what a descriptor or a size says of memory is named where the call looks at it, behind `computing` or `on_stream`; what only
//! memory says (where rows of a ragged tensor begin, how many labels there are) in the work. A descriptor keeps the program's own address.

use cudnn_cpu::{Lines, View};
use kit::far::{self, Extent};
use kit::{Address, Result};

fn extent(lines: &Lines) -> Extent {
    Extent::lines_of(lines.count, lines.bytes, lines.pitch, 1)
}

/// A tensor that the call's work reads or writes.
pub fn tensor(view: View) -> Result<View> {
    let lines = view.lines();
    Ok(view.moved(lines.at, far::near(lines.at, extent(&lines))?))
}

/// So many numbers that it reads or writes.
pub fn array<T>(at: *mut T, count: usize) -> Result<Address<*mut T>> {
    Ok(Address(far::near(at, Extent::of::<T>(count))?))
}

/// [`tensor`] within the work, on its own thread.
///
/// # Panics
/// As [`far::near_in_work`].
pub fn tensor_in_work(view: View) -> View {
    let lines = view.lines();
    view.moved(lines.at, far::near_in_work(lines.at, extent(&lines)))
}

/// [`array`] within the work, on its own thread.
///
/// # Panics
/// As [`far::near_in_work`].
pub fn array_in_work<T>(at: *const T, count: usize) -> *const T {
    far::near_in_work(at.cast_mut(), Extent::of::<T>(count)).cast_const()
}
