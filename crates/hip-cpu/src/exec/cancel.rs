//! What `clusterlaunchcontrol.try_cancel` asks: a cluster of the running grid that has not begun is taken off the queue, and the
//! block that asked does its work.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Launch, block_index};

/// Where the threads that run a grid take its blocks from, or its clusters where it has such.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    pub next: *const AtomicU64,
    pub total: u64,
}

thread_local! {
    /// Of the grid whose blocks this OS thread runs.
    static QUEUE: Cell<Option<Queue>> = const { Cell::new(None) };
}

/// The queue that was offered before comes back on drop.
pub(super) struct Offered(Option<Queue>);

impl Queue {
    /// To the blocks that this OS thread runs until the result is dropped, which is before the counter is.
    pub fn offered(self) -> Offered {
        Offered(QUEUE.replace(Some(self)))
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        QUEUE.set(self.0);
    }
}

/// Bit 63 and the index of the first block of a cluster that is not begun any more (`compiler::lower::launch_control`), or 0 where
/// none is left to cancel.
///
/// # Safety
/// A kernel calls it with its launch.
pub(super) unsafe extern "C" fn cancel_cluster(launch: *const Launch) -> u64 {
    let Some(queue) = QUEUE.get() else { return 0 };
    // SAFETY: the kernel's launch, alive while it runs.
    let (grid, cluster, workspace) = unsafe { ((*launch).grid, (*launch).cluster, (*launch).workspace) };
    // Blocks of a cooperative grid wait for all of its others.
    if !workspace.is_null() {
        return 0;
    }
    // SAFETY: of the grid that runs the calling block; see `offered`.
    let index = unsafe { &*queue.next }.fetch_add(1, Ordering::Relaxed);
    if index >= queue.total {
        return 0;
    }
    let clusters = std::array::from_fn(|axis| grid[axis] / cluster[axis]);
    let [x, y, z]: [u64; 3] = {
        let place = block_index(index, clusters);
        std::array::from_fn(|axis| u64::from(place[axis]) * u64::from(cluster[axis]))
    };
    1 << 63 | x << 32 | y << 16 | z
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_cluster_is_the_next_of_the_queue() {
        let mut launch = crate::exec::tests::empty_launch([6, 4, 2], [2, 2, 1]);
        let next = AtomicU64::new(4);
        // SAFETY: a launch that is alive.
        let ask = |launch: &Launch| unsafe { cancel_cluster(launch) };
        assert_eq!(ask(&launch), 0, "no grid runs");
        {
            let _offered = Queue { next: &next, total: 8 }.offered();
            assert_eq!(ask(&launch), 1 << 63 | 2 << 32 | 2 << 16);
            assert_eq!(next.load(Ordering::Relaxed), 5);
            next.store(7, Ordering::Relaxed);
            assert_eq!(ask(&launch), 1 << 63 | 2 << 32 | 1);
            assert_eq!(ask(&launch), 0, "all have begun");
            next.store(0, Ordering::Relaxed);
            launch.workspace = std::ptr::dangling();
            assert_eq!(ask(&launch), 0, "a cooperative grid");
            launch.workspace = std::ptr::null();
        }
        assert_eq!(ask(&launch), 0, "its grid has ended");
    }
}
