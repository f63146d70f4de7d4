//! Memory of graphs: blocks whose address an allocation node fixes and that launches hand out and take back.
//!
//! A block's addresses stay its own from the node's making until the graph, what was instantiated from it and the
//! program's own use of the block have all ended, so that the address holds across launches; only blocks of the same graph
//! whose lives cannot meet have the same (`storage`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use cuda_abi::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUdevice, CUdeviceptr, CUmemAllocationType,
    CUmemLocation, CUmemLocation_st__bindgen_ty_1, CUmemLocationType, CUmemPoolProps,
};
use parking_lot::Mutex;

use super::Site;
use super::storage::{self, Arena, Mark};
use crate::object::{Context, Device, Stream};
use crate::{Error, Result};

/// The youngest block at each address, of living contexts. Lock order: this before a block's own state.
static BLOCKS: Mutex<BTreeMap<u64, Weak<Block>>> = Mutex::new(BTreeMap::new());
/// How many there are; 0 nearly always, which is all that freeing other memory looks at.
static N_BLOCKS: AtomicUsize = AtomicUsize::new(0);
/// Blocks that a launch handed out and nobody took back: they outlive their graph.
static OUT: Mutex<BTreeMap<u64, Arc<Block>>> = Mutex::new(BTreeMap::new());

/// One allocation node's memory.
pub struct Block {
    pub address: CUdeviceptr,
    pub len_bytes: usize,
    pub arena: Arc<Arena>,
    device: CUdevice,
    /// Which life of its context the memory is of.
    context_id: u64,
    /// The id of the graph that made it.
    owner: u32,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_out: bool,
    freed_by: Freed,
}

/// Which graph has a free node for a block.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Freed {
    #[default]
    Nowhere,
    ByOwner,
    Elsewhere,
}

impl Block {
    /// What an allocation node asks for.
    pub fn make(params: &CUDA_MEM_ALLOC_NODE_PARAMS, site: &Site) -> Result<Arc<Block>> {
        let props = &params.poolProps;
        // CUDA: no handle types in graphs.
        if params.bytesize == 0
            || props.allocType != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED
            || props.handleTypes.0 != 0
        {
            return Err(Error::InvalidValue("nodeParams"));
        }
        if props.location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
            return Err(Error::NotSupported("allocation nodes of host memory"));
        }
        // SAFETY: a device location has its number in this member.
        let device = Device::get(unsafe { props.location.__bindgen_anon_1.id })?;
        let current = Context::current()?;
        let context = if core::ptr::eq(current.device, device) { current } else { Context::primary(device)? };
        Block::allocate(context, params.bytesize, site)
    }

    pub fn allocate(context: &'static Context, len_bytes: usize, site: &Site) -> Result<Arc<Block>> {
        if len_bytes == 0 {
            return Err(Error::InvalidValue("bytesize"));
        }
        if let Some(block) = site.known_block().filter(|block| block.len_bytes == len_bytes) {
            return Ok(block);
        }
        let (address, arena) = site.graph.room(context, len_bytes, site.dependencies)?;
        let block = Arc::new(Block {
            address,
            len_bytes,
            arena,
            device: context.device.ordinal,
            context_id: context.id(),
            owner: site.graph.id,
            state: Mutex::default(),
        });
        let mut blocks = BLOCKS.lock();
        blocks.insert(address, Arc::downgrade(&block));
        N_BLOCKS.store(blocks.len(), Ordering::Relaxed);
        Ok(block)
    }

    /// The block that begins at an address: the youngest, as all before it are freed by their graph.
    #[inline]
    pub fn at(address: CUdeviceptr) -> Option<Arc<Block>> {
        if N_BLOCKS.load(Ordering::Relaxed) == 0 {
            return None;
        }
        BLOCKS.lock().get(&address)?.upgrade()
    }

    /// Notes a free node of graph `graph`. CUDA: the owning graph frees once, or other graphs do, never both.
    pub fn free_in(&self, graph: u32) -> Result {
        let mut state = self.state.lock();
        let by = if graph == self.owner { Freed::ByOwner } else { Freed::Elsewhere };
        if state.freed_by == Freed::ByOwner || (by == Freed::ByOwner && state.freed_by == Freed::Elsewhere) {
            return Err(Error::InvalidValue("dptr: freed by a node already"));
        }
        state.freed_by = by;
        Ok(())
    }

    /// A launch hands the block out. CUDA: what the last launch handed out must have been freed.
    pub fn hand_out(self: &Arc<Self>) -> Result {
        let mut state = self.state.lock();
        if state.is_out {
            return Err(Error::InvalidValue("hGraphExec: memory of the last launch was not freed"));
        }
        self.arena.hand_out()?;
        state.is_out = true;
        drop(state);
        OUT.lock().insert(self.address, Arc::clone(self));
        Ok(())
    }

    pub fn is_out(&self) -> bool {
        self.state.lock().is_out
    }

    /// Takes the block back from the work that a launch handed it to.
    pub fn take_back(&self) -> Result {
        if !core::mem::replace(&mut self.state.lock().is_out, false) {
            return Err(Error::InvalidValue("dptr: not allocated"));
        }
        self.arena.take_back();
        // Dropped with no lock held.
        let _last = OUT.lock().remove(&self.address);
        Ok(())
    }

    /// `cuMemFree`: nothing uses the block any more. CUDA: one that its own graph frees is freed nowhere else.
    pub fn free(&self) -> Result {
        self.check_free()?;
        self.take_back()
    }

    /// `cuMemFreeAsync`: what is queued on the stream may still use it.
    pub fn free_behind(&self, stream: &Stream) -> Result {
        self.check_free()?;
        let mark = Mark::new(stream.context)?;
        mark.put(stream)?;
        self.arena.is_used_until(stream, &mark);
        self.take_back()
    }

    fn check_free(&self) -> Result {
        let state = self.state.lock();
        if state.freed_by == Freed::ByOwner {
            return Err(Error::InvalidValue("dptr: freed by its graph"));
        }
        if !state.is_out {
            return Err(Error::InvalidValue("dptr: not allocated"));
        }
        Ok(())
    }

    pub fn describe(&self) -> CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
        let location = CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: self.device },
        };
        let allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
            poolProps: CUmemPoolProps { allocType, location, ..Default::default() },
            accessDescs: core::ptr::null(),
            accessDescCount: 0,
            bytesize: self.len_bytes,
            dptr: self.address,
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut blocks = BLOCKS.lock();
        // A younger block may have the address by now.
        if blocks.get(&self.address).is_some_and(|block| core::ptr::eq(block.as_ptr(), self)) {
            blocks.remove(&self.address);
            N_BLOCKS.store(blocks.len(), Ordering::Relaxed);
        }
    }
}

/// A context ends and takes the memory of its blocks with it, whoever still holds them.
pub fn forget_context(context_id: u64) {
    if N_BLOCKS.load(Ordering::Relaxed) > 0 {
        // A block is never dropped with the lock held.
        let blocks: Vec<Arc<Block>> = BLOCKS.lock().values().filter_map(Weak::upgrade).collect();
        for block in blocks.iter().filter(|block| block.context_id == context_id) {
            // Handed out or not: the memory goes.
            let _ = block.take_back();
            let mut blocks = BLOCKS.lock();
            blocks.remove(&block.address);
            N_BLOCKS.store(blocks.len(), Ordering::Relaxed);
        }
    }
    storage::forget_context(context_id);
}

/// A number of bytes and the most there were.
#[derive(Clone, Copy, Default)]
pub struct Bytes {
    pub current: u64,
    pub high: u64,
}

impl Bytes {
    fn add(&mut self, n: u64) {
        self.current += n;
        self.high = self.high.max(self.current);
    }
}

/// Memory of graphs on one device: what is mapped by a graph, and what there is for graphs. Memory that no graph maps is
/// given back, so both are the same here but for their high-water marks, which the program sets back one by one.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub used: Bytes,
    pub reserved: Bytes,
}

impl Usage {
    pub fn add(&mut self, n: u64) {
        self.used.add(n);
        self.reserved.add(n);
    }

    pub fn subtract(&mut self, n: u64) {
        self.used.current -= n;
        self.reserved.current -= n;
    }
}

/// Reads or changes what is known of a device's graph memory.
pub fn usage<R>(device: CUdevice, change: impl FnOnce(&mut Usage) -> R) -> R {
    static USAGE: Mutex<BTreeMap<CUdevice, Usage>> = Mutex::new(BTreeMap::new());
    change(USAGE.lock().entry(device).or_default())
}
