//! Clusters: blocks that one OS thread holds together, whose shared memories form one window.
//!
//! The window has `1 << CLUSTER_SHIFT` bytes for each block, by rank, of which only the block's own are mapped: every
//! address of it is good in all blocks of the cluster, and an access behind a block's memory faults.

use compiler::ir::CLUSTER_SHIFT;

use super::guard::Guard;
use super::lane::{Block, Resident, State, Stuck, Turn, patience, pause};
use super::{Fault, Grid, StepFn, Turns, Worker, block_index, tensor_memory};

const PAGE: usize = 4096;

/// The shared memory of a cluster.
#[derive(Default)]
struct Window {
    base: usize,
    n_blocks: usize,
    /// Usable bytes of each block.
    bytes: usize,
    tensor_memory: bool,
}

impl Window {
    /// Makes room; the contents are undefined afterwards.
    fn ensure(&mut self, n_blocks: usize, bytes: u32, tensor_memory: bool) -> Result<(), Fault> {
        let wanted = bytes as usize;
        let is_there = self.tensor_memory || !tensor_memory;
        if self.base != 0 && n_blocks <= self.n_blocks && wanted <= self.bytes && is_there {
            return Ok(());
        }
        self.release();
        let all = n_blocks << CLUSTER_SHIFT;
        // A page without access before it, and the unmapped rest of each block's part behind.
        // SAFETY: a fresh private mapping; the result is checked.
        let at = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), all + PAGE, libc::PROT_NONE, flags, -1, 0)
        };
        if at == libc::MAP_FAILED {
            return Err(Fault::Memory(all as u64));
        }
        (self.base, self.n_blocks) = (at as usize + PAGE, n_blocks);
        self.bytes = wanted.max(1).next_multiple_of(PAGE);
        self.tensor_memory = tensor_memory;
        let tensors = tensor_memory::START..tensor_memory::END;
        let parts = [0..self.bytes, if tensor_memory { tensors } else { 0..0 }];
        for rank in 0..n_blocks {
            let start = self.base + (rank << CLUSTER_SHIFT);
            for part in &parts {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                // SAFETY: a part of the mapping just made.
                let done = unsafe { libc::mprotect((start + part.start) as *mut _, part.len(), access) };
                if done != 0 {
                    self.release();
                    return Err(Fault::Memory(all as u64));
                }
            }
        }
        Ok(())
    }

    fn release(&mut self) {
        if self.base != 0 {
            let all = self.n_blocks << CLUSTER_SHIFT;
            // SAFETY: exactly what `ensure` mapped; no one runs on it.
            unsafe { libc::munmap((self.base - PAGE) as *mut _, all + PAGE) };
            (self.base, self.n_blocks, self.bytes) = (0, 0, 0);
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.release();
    }
}

/// A cluster's memory and state, kept by the OS thread from cluster to cluster.
#[derive(Default)]
pub struct Cluster {
    window: Window,
    blocks: Vec<Resident>,
    workers: Vec<Worker>,
    ended: Vec<bool>,
}

/// Runs clusters until there are no more and all have ended, the grid failed elsewhere, or other code is to go on and none of
/// these waits.
pub(super) fn run_clusters(
    step: (StepFn, &Guard),
    grid: &Grid<'_>,
    number: u32,
    spare: &mut Vec<Cluster>,
    turns: Turns<'_, impl Fn() -> Option<u64>, impl Fn() -> bool, impl Fn() -> bool>,
) -> Result<(), Fault> {
    let Turns { next, stopped, is_outdated, .. } = turns;
    let mut waiting: Vec<Cluster> = vec![];
    while !(waiting.is_empty() && is_outdated()) {
        let Some(index) = next() else { break };
        let mut cluster = spare.pop().unwrap_or_default();
        cluster.begin(grid, number, index)?;
        let held: usize = waiting.iter().map(|cluster| cluster.workers.len()).sum();
        let patience = patience(grid, held);
        match cluster.run(step, grid, patience, &stopped)?.0 {
            Turn::Ended => spare.push(cluster),
            Turn::Waits | Turn::BeginAnew => waiting.push(cluster),
        }
        if stopped() {
            return Ok(());
        }
    }
    let mut idle_rounds = 0u32;
    while !waiting.is_empty() {
        let mut advanced = false;
        let mut at = 0;
        while at < waiting.len() {
            let (turn, moved) = waiting[at].run(step, grid, 1, &stopped)?;
            advanced |= moved;
            match turn {
                Turn::Ended => spare.push(waiting.swap_remove(at)),
                Turn::Waits | Turn::BeginAnew => at += 1,
            }
        }
        if stopped() {
            return Ok(());
        }
        idle_rounds = if advanced { 0 } else { idle_rounds + 1 };
        pause(idle_rounds);
    }
    Ok(())
}

/// Linear index of the block at `rank` of cluster `index`; clusters and ranks count x fastest.
fn block_of(grid: [u32; 3], cluster: [u32; 3], index: u64, rank: u32) -> u64 {
    let clusters = std::array::from_fn(|axis| grid[axis] / cluster[axis]);
    let [cx, cy, cz] = block_index(index, clusters);
    let [rx, ry, rz] = block_index(u64::from(rank), cluster);
    let [x, y, z] = [cx * cluster[0] + rx, cy * cluster[1] + ry, cz * cluster[2] + rz].map(u64::from);
    x + u64::from(grid[0]) * (y + u64::from(grid[1]) * z)
}

impl Cluster {
    fn begin(&mut self, grid: &Grid<'_>, number: u32, index: u64) -> Result<(), Fault> {
        let shape = grid.launch.cluster;
        let n_blocks = shape.iter().product::<u32>();
        self.window.ensure(n_blocks as usize, grid.shared_bytes, grid.tensor_memory)?;
        self.blocks.resize_with(n_blocks as usize, Resident::default);
        self.workers.clear();
        self.ended.clear();
        self.ended.resize(n_blocks as usize, false);
        for rank in 0..n_blocks {
            let linear = block_of(grid.launch.grid, shape, index, rank);
            let mut worker = self.blocks[rank as usize].begin(grid, number, linear)?;
            worker.shared = self.window.base as *mut u8;
            worker.cluster_rank = rank;
            if grid.tensor_memory {
                // SAFETY: the cluster's window has a part up to `END` for each rank, and its blocks have not begun.
                unsafe { tensor_memory::clear(worker.shared.wrapping_add((rank as usize) << CLUSTER_SHIFT)) };
            }
            self.workers.push(worker);
        }
        Ok(())
    }

    /// Runs until all blocks have ended, or nothing moved in `patience` passes over them; says whether anything moved.
    fn run(
        &mut self,
        step: (StepFn, &Guard),
        grid: &Grid<'_>,
        patience: u32,
        stopped: &impl Fn() -> bool,
    ) -> Result<(Turn, bool), Fault> {
        let mut idle_passes = 0u32;
        let mut moved = false;
        loop {
            let mut advanced = false;
            for (rank, worker) in self.workers.iter().enumerate() {
                if self.ended[rank] {
                    continue;
                }
                let mut block = Block::of(&mut self.blocks[rank], grid, worker);
                let before = block.n_steps();
                match block.run(step, grid, worker, 1, stopped)? {
                    Turn::Ended => {
                        self.ended[rank] = true;
                        advanced = true;
                    }
                    Turn::Waits | Turn::BeginAnew => advanced |= block.n_steps() != before,
                }
                if stopped() {
                    return Ok((Turn::Waits, true));
                }
            }
            if self.ended.iter().all(|&ended| ended) {
                for worker in &self.workers {
                    let rank = worker.cluster_rank as usize;
                    grid.check_for_leak(worker.shared.wrapping_add(rank << CLUSTER_SHIFT))?;
                }
                return Ok((Turn::Ended, true));
            }
            advanced |= self.complete_barrier(grid);
            if advanced {
                moved = true;
                idle_passes = 0;
                continue;
            }
            if !self.blocks.iter().any(|block| block.any(State::Spinning)) {
                return Err(Fault::Deadlock(self.stuck()));
            }
            idle_passes += 1;
            if idle_passes >= patience {
                return Ok((Turn::Waits, moved));
            }
            pause(idle_passes);
        }
    }

    /// Lets the threads go on when every live one of the cluster has arrived.
    fn complete_barrier(&mut self, grid: &Grid<'_>) -> bool {
        let mut all = true;
        let mut any = false;
        for (resident, worker) in self.blocks.iter_mut().zip(&self.workers) {
            let block = Block::of(resident, grid, worker);
            any |= block.has_cluster_arrivals();
            all &= block.has_arrived_at_cluster();
        }
        if !any || !all {
            return false;
        }
        for (resident, worker) in self.blocks.iter_mut().zip(&self.workers) {
            Block::of(resident, grid, worker).pass_cluster_barrier();
        }
        true
    }

    fn stuck(&self) -> Stuck {
        self.blocks.iter().map(Resident::stuck).fold(Stuck::default(), |sum, it| Stuck {
            at_barrier: sum.at_barrier + it.at_barrier,
            at_collective: sum.at_collective + it.at_collective,
            ended: sum.ended + it.ended,
            ..sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::block_of;

    #[test]
    fn a_cluster_is_a_box_of_blocks() {
        // 6 × 4 blocks in clusters of 2 × 2: three clusters in a row.
        let [grid, cluster] = [[6, 4, 1], [2, 2, 1]];
        assert_eq!([0, 1, 2, 3].map(|rank| block_of(grid, cluster, 0, rank)), [0, 1, 6, 7]);
        assert_eq!([0, 1, 2, 3].map(|rank| block_of(grid, cluster, 4, rank)), [14, 15, 20, 21]);
    }
}
