//! Memory of kernels that are nodes of a program's graph: the graph keeps it, and so do those that were made of it.
//!
//! What is given back while the nodes are made serves the next ones, which run behind. A graph that is made again for other tensors has its
//! memory again, so that what was instantiated of it stays good.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use cuda_abi::CUdeviceptr;
use kit::driver::{check, driver};
use parking_lot::Mutex;

use crate::Result;
use crate::types::cudaGraph_t;

/// Memory of one graph's, as it was asked for.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Piece>>);

struct Piece {
    at: CUdeviceptr,
    bytes: usize,
    is_free: bool,
}

/// Of graphs that are gone: who destroys one may not call the driver.
static GONE: Mutex<Vec<CUdeviceptr>> = Mutex::new(Vec::new());
/// By the graph's handle.
static GRAPHS: Mutex<BTreeMap<usize, Weak<Kept>>> = Mutex::new(BTreeMap::new());

impl Kept {
    pub fn take(&self, bytes: usize) -> Result<CUdeviceptr> {
        let mut pieces = self.0.lock();
        let fitting = pieces.iter_mut().filter(|piece| piece.is_free && piece.bytes >= bytes);
        if let Some(piece) = fitting.min_by_key(|piece| piece.bytes) {
            piece.is_free = false;
            return Ok(piece.at);
        }
        let mut at = CUdeviceptr::default();
        // SAFETY: a place for the answer.
        check("cuMemAlloc_v2", unsafe { (driver()?.cuMemAlloc_v2)(&mut at, bytes) })?;
        pieces.push(Piece { at, bytes, is_free: false });
        Ok(at)
    }

    pub fn give_back(&self, at: CUdeviceptr) {
        self.0.lock().iter_mut().filter(|piece| piece.at == at).for_each(|piece| piece.is_free = true);
    }

    /// The memory of a graph that is to have nodes again, or of one that has none yet.
    pub fn of(graph: cudaGraph_t, is_again: bool) -> Result<Arc<Kept>> {
        free_gone()?;
        let mut graphs = GRAPHS.lock();
        graphs.retain(|_, kept| kept.strong_count() > 0);
        let known = graphs.get(&graph.addr()).and_then(Weak::upgrade).filter(|_| is_again);
        if let Some(kept) = known {
            return Ok(kept);
        }
        let kept = Arc::new(Kept::default());
        kit::graph::keep(graph, Arc::clone(&kept))?;
        graphs.insert(graph.addr(), Arc::downgrade(&kept));
        Ok(kept)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        GONE.lock().extend(self.0.get_mut().drain(..).map(|piece| piece.at));
    }
}

/// Gives back what graphs had that are gone.
pub fn free_gone() -> Result {
    let gone = core::mem::take(&mut *GONE.lock());
    for at in gone {
        // SAFETY: memory of ours that no graph has any more.
        check("cuMemFree_v2", unsafe { (driver()?.cuMemFree_v2)(at) })?;
    }
    Ok(())
}
