//! Memory of graphs: blocks whose address an allocation node fixes and that launches hand out and take back.
//!
//! A block keeps its memory from the node's making until the graph, what was instantiated from it and the program's
//! own use of the block have all ended, so that the address holds across launches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use cuda_abi::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUdevice, CUdeviceptr, CUmemAllocationType,
    CUmemLocation, CUmemLocation_st__bindgen_ty_1, CUmemLocationType, CUmemPoolProps,
};
use parking_lot::Mutex;

use crate::object::memory::{self, Allocation, Kind, device_pointer};
use crate::object::{Context, Device};
use crate::{Error, Result};

/// Every block of a living context by its address. Lock order: this before a block's own state.
static BLOCKS: Mutex<BTreeMap<u64, Weak<Block>>> = Mutex::new(BTreeMap::new());
/// How many there are; 0 nearly always, which is all that freeing other memory looks at.
static N_BLOCKS: AtomicUsize = AtomicUsize::new(0);
/// Blocks that a launch handed out and nobody took back: they outlive their graph.
static OUT: Mutex<BTreeMap<u64, Arc<Block>>> = Mutex::new(BTreeMap::new());

/// One allocation node's memory.
pub struct Block {
    pub address: CUdeviceptr,
    pub len_bytes: usize,
    context: &'static Context,
    /// Which life of the context the memory is of.
    context_id: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_out: bool,
    /// Its context ended and took the memory with it: the address may be another allocation's by now.
    has_ended: bool,
    /// The id of the graph that made it.
    owner: u32,
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
    pub fn make(params: &CUDA_MEM_ALLOC_NODE_PARAMS, owner: u32) -> Result<Arc<Block>> {
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
        Block::allocate(context, params.bytesize, owner)
    }

    pub fn allocate(context: &'static Context, len_bytes: usize, owner: u32) -> Result<Arc<Block>> {
        if len_bytes == 0 {
            return Err(Error::InvalidValue("bytesize"));
        }
        context.bind()?;
        let mut at = core::ptr::null_mut();
        // SAFETY: `at` is writable.
        unsafe { context.hip().hipMalloc(&mut at, len_bytes) }?;
        let address = device_pointer(at);
        memory::enter(Allocation::new(address, len_bytes, Kind::Graph, context));
        let state = Mutex::new(State { owner, ..State::default() });
        let block = Arc::new(Block { address, len_bytes, context, context_id: context.id(), state });
        BLOCKS.lock().insert(address, Arc::downgrade(&block));
        N_BLOCKS.fetch_add(1, Ordering::Relaxed);
        usage(block.device(), |usage| usage.reserved.add(len_bytes as u64));
        Ok(block)
    }

    /// The block that begins at an address.
    #[inline]
    pub fn at(address: CUdeviceptr) -> Option<Arc<Block>> {
        if N_BLOCKS.load(Ordering::Relaxed) == 0 {
            return None;
        }
        BLOCKS.lock().get(&address)?.upgrade()
    }

    fn device(&self) -> CUdevice {
        self.context.device.ordinal
    }

    /// Notes a free node of graph `graph`. CUDA: the owning graph frees once, or other graphs do, never both.
    pub fn free_in(&self, graph: u32) -> Result {
        let mut state = self.state.lock();
        let by = if graph == state.owner { Freed::ByOwner } else { Freed::Elsewhere };
        if state.freed_by == Freed::ByOwner || (by == Freed::ByOwner && state.freed_by == Freed::Elsewhere) {
            return Err(Error::InvalidValue("dptr: freed by a node already"));
        }
        state.freed_by = by;
        Ok(())
    }

    /// A launch hands the block out. CUDA: what the last launch handed out must have been freed.
    pub fn hand_out(self: &Arc<Self>) -> Result {
        let mut state = self.state.lock();
        if state.has_ended {
            return Err(Error::ContextIsDestroyed);
        }
        if core::mem::replace(&mut state.is_out, true) {
            return Err(Error::InvalidValue("hGraphExec: memory of the last launch was not freed"));
        }
        drop(state);
        OUT.lock().insert(self.address, Arc::clone(self));
        usage(self.device(), |usage| usage.used.add(self.len_bytes as u64));
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
        usage(self.device(), |usage| usage.used.current -= self.len_bytes as u64);
        // Dropped with no lock held.
        let _last = OUT.lock().remove(&self.address);
        Ok(())
    }

    /// `cuMemFree` and `cuMemFreeAsync`. CUDA: a block that its own graph frees is freed nowhere else.
    pub fn free(&self) -> Result {
        if self.state.lock().freed_by == Freed::ByOwner {
            return Err(Error::InvalidValue("dptr: freed by its graph"));
        }
        self.take_back()
    }

    /// The counts after a block left [`BLOCKS`].
    fn is_no_more(&self) {
        N_BLOCKS.fetch_sub(1, Ordering::Relaxed);
        usage(self.device(), |usage| usage.reserved.current -= self.len_bytes as u64);
    }

    pub fn describe(&self) -> CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
        let location = CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: self.device() },
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
        if self.state.get_mut().has_ended {
            return;
        }
        BLOCKS.lock().remove(&self.address);
        self.is_no_more();
        if let Some(range) = memory::take(self.address, |range| range.kind == Kind::Graph) {
            let _ = self.context.bind().and_then(|()| memory::release(&range));
        }
    }
}

/// A context ends and takes the memory of its blocks with it, whoever still holds them.
pub fn forget_context(context_id: u64) {
    if N_BLOCKS.load(Ordering::Relaxed) == 0 {
        return;
    }
    // A block is never dropped with the lock held.
    let blocks: Vec<Arc<Block>> = BLOCKS.lock().values().filter_map(Weak::upgrade).collect();
    for block in blocks.iter().filter(|block| block.context_id == context_id) {
        BLOCKS.lock().remove(&block.address);
        // Handed out or not: the memory goes.
        let _ = block.take_back();
        block.state.lock().has_ended = true;
        block.is_no_more();
    }
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

/// Memory of graphs on one device.
#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub used: Bytes,
    pub reserved: Bytes,
}

/// Reads or changes what is known of a device's graph memory.
pub fn usage<R>(device: CUdevice, change: impl FnOnce(&mut Usage) -> R) -> R {
    static USAGE: Mutex<BTreeMap<CUdevice, Usage>> = Mutex::new(BTreeMap::new());
    change(USAGE.lock().entry(device).or_default())
}
