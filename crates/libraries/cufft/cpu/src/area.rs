//! Work areas of a plan: one for each execution at a time, kept for the next one.

use parking_lot::Mutex;

use crate::error::Result;
use crate::scratch::Area;

/// Areas that a plan keeps: more executions than that at a time allocate theirs.
const KEPT: usize = 64;

#[derive(Default)]
pub(crate) struct Areas(Mutex<Vec<Area>>);

impl Areas {
    /// Calls `work` with that many numbers, whose values mean nothing.
    pub(crate) fn with<T, R>(&self, count: usize, work: impl FnOnce(*mut T) -> R) -> Result<R> {
        let bytes = crate::layout::multiply(count, size_of::<T>())?;
        if bytes == 0 {
            return Ok(work(std::ptr::NonNull::dangling().as_ptr()));
        }
        let mut areas = self.0.lock();
        let fitting = areas.iter().enumerate().filter(|(_, area)| area.bytes() >= bytes);
        let kept = fitting.min_by_key(|(_, area)| area.bytes()).map(|(i, _)| i).map(|i| areas.swap_remove(i));
        drop(areas);
        let area = match kept {
            Some(area) => area,
            None => Area::new(bytes)?,
        };
        let result = work(area.start());
        let mut areas = self.0.lock();
        if areas.len() == KEPT {
            areas.remove(0);
        }
        areas.push(area);
        Ok(result)
    }
}
