//! Where the memory of graphs lies: addresses that belong to a graph for good, and memory that launches map there.
//!
//! As in CUDA, nodes whose lives in a graph do not meet share addresses, and graphs whose launches do not meet share
//! memory. What is mapped stays so between launches, until another launch needs it or [`trim`] gives it back. Where a
//! provider cannot map memory, addresses come with memory of their own.
//! Lock order: `MEMORIES`, an arena's state, a memory's. Nothing is waited for under any of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use cuda_abi::CUdeviceptr;
use hip_sys::{
    HipError, hipDeviceAttributeVirtualMemoryManagementSupported, hipErrorNotReady, hipErrorOutOfMemory,
    hipEvent_t, hipEventDisableTiming, hipMemAccessDesc, hipMemAllocationProp, hipMemAllocationPropFlags,
    hipMemAllocationTypePinned, hipMemGenericAllocationHandle_t, hipMemLocation, hipMemLocationTypeDevice,
};
use parking_lot::Mutex;

use super::allocation::{Block, usage};
use super::capture::StreamKey;
use crate::object::memory::{self, Allocation, Kind, device_pointer, raw};
use crate::object::{Context, Device, Shared, Stream};
use crate::{Error, Result};

/// What is mapped somewhere. An entry goes with the last arena that has it.
static MEMORIES: Mutex<Vec<Weak<Memory>>> = Mutex::new(Vec::new());
static ARENAS: Mutex<Vec<Weak<Arena>>> = Mutex::new(Vec::new());
/// How many arenas there are; 0 nearly always, which is all that contexts that end look at.
static N_ARENAS: AtomicUsize = AtomicUsize::new(0);

/// Allocations begin at multiples of it, as CUDA's do.
const ALIGNMENT: usize = 512;
/// What cannot be mapped in smaller pieces: a multiple of every provider's granularity.
const PAGE: usize = 2 << 20;

/// A point of a stream: what was queued there before has ended once the mark is reached.
pub struct Mark {
    event: Shared<hipEvent_t>,
    context: &'static Context,
}

impl Mark {
    pub fn new(context: &'static Context) -> Result<Arc<Mark>> {
        let mut event: hipEvent_t = core::ptr::null_mut();
        // SAFETY: `event` is a writable handle.
        unsafe { context.hip().hipEventCreateWithFlags(&mut event, hipEventDisableTiming) }?;
        Ok(Arc::new(Mark { event: Shared(event), context }))
    }

    /// Whether the mark can be put into a stream.
    pub fn serves(&self, stream: &Stream) -> bool {
        core::ptr::eq(self.context, stream.context)
    }

    pub fn put(&self, stream: &Stream) -> Result {
        // SAFETY: both are alive.
        Ok(unsafe { self.context.hip().hipEventRecord(self.event.0, stream.hip.0) }?)
    }

    pub fn is_reached(&self) -> bool {
        // SAFETY: the event is alive.
        let answer = unsafe { self.context.hip().hipEventQuery(self.event.0) };
        // After a fault nothing runs any more.
        !matches!(answer, Err(HipError::Code { code, .. }) if code == hipErrorNotReady)
    }

    /// Waits on the host. A fault ends the wait as well.
    pub fn wait(&self) {
        // SAFETY: the event is alive.
        let _ = unsafe { self.context.hip().hipEventSynchronize(self.event.0) };
    }

    /// Makes a stream wait.
    pub fn precede(&self, stream: &Stream) -> Result {
        if !self.context.device.provider.is_of_one_library(stream.context.device.provider) {
            self.wait();
            return Ok(());
        }
        // SAFETY: both are alive.
        Ok(unsafe { stream.hip().hipStreamWaitEvent(stream.hip.0, self.event.0, 0) }?)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: nobody else has it; HIP keeps what is queued.
        let _ = unsafe { self.context.hip().hipEventDestroy(self.event.0) };
    }
}

/// Physical memory.
struct Memory {
    device: &'static Device,
    hip: Shared<hipMemGenericAllocationHandle_t>,
    len_bytes: usize,
    hold: Mutex<Hold>,
}

/// Who needs a memory.
#[derive(Default)]
struct Hold {
    /// Allocations there that nobody freed yet.
    n_out: usize,
    /// Launches that are being queued.
    n_launches: usize,
    /// The last work that was queued for it.
    last: Option<(StreamKey, Arc<Mark>)>,
}

impl Hold {
    fn is_idle(&self) -> bool {
        self.n_out == 0
            && self.n_launches == 0
            && self.last.as_ref().is_none_or(|(_, mark)| mark.is_reached())
    }

    /// Whether a launch may have it: what came last has ended, or ends before the launch begins.
    fn is_free_for(&self, stream: StreamKey, own: Option<&Arc<Mark>>) -> bool {
        let comes_after = |(key, mark): &(StreamKey, Arc<Mark>)| {
            *key == stream || own.is_some_and(|own| Arc::ptr_eq(own, mark))
        };
        self.n_out == 0
            && self.n_launches == 0
            && self.last.as_ref().is_none_or(|last| comes_after(last) || last.1.is_reached())
    }
}

impl Memory {
    fn create(device: &'static Device, len_bytes: usize) -> Result<Arc<Memory>> {
        let made = Memory::ask(device, len_bytes).or_else(|error| match error {
            HipError::Code { code, .. } if code == hipErrorOutOfMemory => {
                trim(device);
                Memory::ask(device, len_bytes)
            }
            other => Err(other),
        })?;
        let memory = Arc::new(Memory { device, hip: Shared(made), len_bytes, hold: Mutex::default() });
        usage(device.ordinal, |usage| usage.add(len_bytes as u64));
        let mut all = MEMORIES.lock();
        all.retain(|memory| memory.strong_count() > 0);
        all.push(Arc::downgrade(&memory));
        Ok(memory)
    }

    fn ask(
        device: &'static Device,
        len_bytes: usize,
    ) -> core::result::Result<hipMemGenericAllocationHandle_t, HipError> {
        let wanted = hipMemAllocationProp {
            r#type: hipMemAllocationTypePinned,
            requestedHandleType: 0,
            location: location(device),
            win32HandleMetaData: core::ptr::null_mut(),
            allocFlags: hipMemAllocationPropFlags { compressionType: 0, gpuDirectRDMACapable: 0, usage: 0 },
        };
        let mut made: hipMemGenericAllocationHandle_t = core::ptr::null_mut();
        // SAFETY: `made` is writable, the properties readable.
        unsafe { device.hip().hipMemCreate(&mut made, len_bytes, &wanted, 0) }?;
        Ok(made)
    }

    /// Keeps it for a launch if nobody else needs it.
    fn claim(&self, is_free: impl Fn(&Hold) -> bool) -> bool {
        let mut hold = self.hold.lock();
        let claims = is_free(&hold);
        hold.n_launches += usize::from(claims);
        claims
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        usage(self.device.ordinal, |usage| usage.subtract(self.len_bytes as u64));
        // SAFETY: the last arena let go of it.
        let _ = unsafe { self.device.hip().hipMemRelease(self.hip.0) };
    }
}

fn location(device: &Device) -> hipMemLocation {
    hipMemLocation { r#type: hipMemLocationTypeDevice, id: device.hip_ordinal }
}

fn maps_memory(device: &Device) -> bool {
    device.hip_attribute(hipDeviceAttributeVirtualMemoryManagementSupported) == Some(1)
        && ["hipMemCreate", "hipMemMap", "hipMemSetAccess", "hipMemAddressReserve"]
            .iter()
            .all(|name| device.hip().has(name))
}

/// Addresses of one graph, with room for some allocations.
pub struct Arena {
    address: CUdeviceptr,
    len_bytes: usize,
    context: &'static Context,
    /// Which life of the context the addresses are of.
    context_id: u64,
    /// It was allocated with its memory, which is never another's.
    is_fixed: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    memory: Option<Arc<Memory>>,
    /// The last work that was queued for these addresses.
    last: Option<Arc<Mark>>,
    /// Bytes from the start that allocations have, and where those begin.
    len_taken: usize,
    starts: Vec<CUdeviceptr>,
    has_ended: bool,
}

impl Arena {
    fn make(context: &'static Context, wanted: usize) -> Result<Arc<Arena>> {
        context.bind()?;
        let (hip, is_fixed) = (context.hip(), !maps_memory(context.device));
        let mut at = core::ptr::null_mut();
        let len_bytes = if is_fixed {
            // SAFETY: `at` is writable.
            unsafe { hip.hipMalloc(&mut at, wanted) }?;
            usage(context.device.ordinal, |usage| usage.add(wanted as u64));
            wanted
        } else {
            let whole = wanted.checked_next_multiple_of(PAGE).ok_or(Error::OutOfMemory)?;
            // SAFETY: `at` is writable; no address is wished for.
            unsafe { hip.hipMemAddressReserve(&mut at, whole, 0, core::ptr::null_mut(), 0) }?;
            whole
        };
        let arena = Arc::new(Arena {
            address: device_pointer(at),
            len_bytes,
            context,
            context_id: context.id(),
            is_fixed,
            state: Mutex::default(),
        });
        N_ARENAS.fetch_add(1, Ordering::Relaxed);
        let mut all = ARENAS.lock();
        all.retain(|arena| arena.strong_count() > 0);
        all.push(Arc::downgrade(&arena));
        Ok(arena)
    }

    /// Room for an allocation, if there is some left.
    fn take(&self, len_bytes: usize) -> Option<CUdeviceptr> {
        let mut state = self.state.lock();
        let start = state.len_taken.checked_next_multiple_of(ALIGNMENT)?;
        let end = start.checked_add(len_bytes).filter(|&end| end <= self.len_bytes)?;
        let address = self.address + start as u64;
        state.len_taken = end;
        state.starts.push(address);
        memory::enter(Allocation::new(address, len_bytes, Kind::Graph, self.context));
        Some(address)
    }

    /// An allocation of it is the program's, until [`Arena::take_back`].
    pub fn hand_out(&self) -> Result {
        let state = self.state.lock();
        if state.has_ended {
            return Err(Error::ContextIsDestroyed);
        }
        if let Some(memory) = &state.memory {
            memory.hold.lock().n_out += 1;
        }
        Ok(())
    }

    pub fn take_back(&self) {
        if let Some(memory) = &self.state.lock().memory {
            memory.hold.lock().n_out -= 1;
        }
    }

    /// Nothing that is queued behind the mark needs what lies here.
    pub fn is_used_until(&self, stream: &Stream, mark: &Arc<Mark>) {
        let mut state = self.state.lock();
        state.last = Some(Arc::clone(mark));
        if let Some(memory) = &state.memory {
            memory.hold.lock().last = Some((super::capture::key(stream), Arc::clone(mark)));
        }
    }

    /// Maps a memory here, in place of what was mapped. HIP differs: to take a mapping away may wait for all that runs,
    /// so a launch that cannot have the memory of the launch before may wait.
    fn map(&self, memory: Arc<Memory>) -> Result {
        let last = self.state.lock().last.take();
        if let Some(last) = last {
            last.wait();
        }
        let mut state = self.state.lock();
        if state.has_ended {
            return Err(Error::ContextIsDestroyed);
        }
        let old = state.memory.take();
        if old.is_some() {
            self.unmap()?;
        }
        let hip = self.context.hip();
        // SAFETY: addresses of ours in which nothing is mapped, and memory that is alive and at least as long.
        unsafe { hip.hipMemMap(raw(self.address), self.len_bytes, 0, memory.hip.0, 0) }?;
        let both = hipMemAccessDesc { location: location(self.context.device), flags: 3 };
        // SAFETY: what was just mapped; the entry is readable.
        let opened = unsafe { hip.hipMemSetAccess(raw(self.address), self.len_bytes, &both, 1) };
        if let Err(error) = opened {
            let _ = self.unmap();
            return Err(error.into());
        }
        state.memory = Some(memory);
        drop(state);
        // Given back with no lock held, if nobody else has it.
        drop(old);
        Ok(())
    }

    fn unmap(&self) -> Result {
        // SAFETY: what is mapped here was mapped as a whole, and the work that was queued for it has ended.
        Ok(unsafe { self.context.hip().hipMemUnmap(raw(self.address), self.len_bytes) }?)
    }

    /// Gives addresses and memory back.
    fn end(&self) {
        let mut state = self.state.lock();
        if core::mem::replace(&mut state.has_ended, true) {
            return;
        }
        let (memory, last) = (state.memory.take(), state.last.take());
        let starts = core::mem::take(&mut state.starts);
        drop(state);
        if let Some(last) = last {
            last.wait();
        }
        for start in starts {
            memory::take(start, |range| range.kind == Kind::Graph);
        }
        N_ARENAS.fetch_sub(1, Ordering::Relaxed);
        let (hip, at) = (self.context.hip(), raw(self.address));
        // What HIP says changes nothing: the addresses are not used again.
        if self.is_fixed {
            usage(self.context.device.ordinal, |usage| usage.subtract(self.len_bytes as u64));
            // SAFETY: nobody has the allocation any more.
            let _ = self.context.bind().map(|()| unsafe { hip.hipFree(at) });
            return;
        }
        if memory.is_some() {
            let _ = self.unmap();
        }
        // SAFETY: nothing is mapped there any more.
        let _ = unsafe { hip.hipMemAddressFree(at, self.len_bytes) };
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.end();
    }
}

/// A context ends: what graphs have of it ends too, whoever still holds it.
pub fn forget_context(context_id: u64) {
    if N_ARENAS.load(Ordering::Relaxed) == 0 {
        return;
    }
    for arena in all_arenas().iter().filter(|arena| arena.context_id == context_id) {
        arena.end();
    }
}

fn all_arenas() -> Vec<Arc<Arena>> {
    ARENAS.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Gives back the memory of a device that no launch and no allocation uses. Graphs get other memory when they are launched.
pub fn trim(device: &'static Device) {
    let is_idle = |memory: &Arc<Memory>| core::ptr::eq(memory.device, device) && memory.claim(Hold::is_idle);
    let idle: Vec<Arc<Memory>> = MEMORIES.lock().iter().filter_map(Weak::upgrade).filter(is_idle).collect();
    if idle.is_empty() {
        return;
    }
    for arena in all_arenas() {
        let mut state = arena.state.lock();
        let is_here = |memory: &mut Arc<Memory>| idle.iter().any(|idle| Arc::ptr_eq(idle, memory));
        let gone = state.memory.take_if(is_here);
        if gone.is_some() {
            // It cannot fail for what is mapped; if it did, the addresses would keep the memory until they end.
            let _ = arena.unmap();
        }
    }
    idle.iter().for_each(|memory| memory.hold.lock().n_launches -= 1);
}

/// Where allocations of a graph lie, and which of those places a later node may have.
#[derive(Default)]
pub struct Storage {
    /// The arena that was made last.
    open: Option<Arc<Arena>>,
    slots: HashMap<CUdeviceptr, Slot>,
    /// The addresses that were freed, by the place of the node that did.
    freed: HashMap<usize, CUdeviceptr>,
}

struct Slot {
    len_bytes: usize,
    arena: Arc<Arena>,
}

impl Storage {
    pub fn has_room(&self) -> bool {
        !self.freed.is_empty()
    }

    /// What the node at `place` freed, if an allocation fits there.
    pub fn take_freed(
        &mut self,
        place: usize,
        context: &Context,
        len_bytes: usize,
    ) -> Option<(CUdeviceptr, Arc<Arena>)> {
        let address = *self.freed.get(&place)?;
        let slot = self.slots.get(&address)?;
        if slot.len_bytes < len_bytes || slot.arena.context_id != context.id() {
            return None;
        }
        self.freed.remove(&place);
        Some((address, Arc::clone(&slot.arena)))
    }

    /// A new address.
    pub fn take_new(
        &mut self,
        context: &'static Context,
        len_bytes: usize,
    ) -> Result<(CUdeviceptr, Arc<Arena>)> {
        let open = self.open.as_ref().filter(|arena| arena.context_id == context.id() && !arena.is_fixed);
        let (address, arena) = match open.and_then(|arena| Some((arena.take(len_bytes)?, arena))) {
            Some((address, arena)) => (address, Arc::clone(arena)),
            None => {
                let arena = Arena::make(context, len_bytes)?;
                let address = arena.take(len_bytes).ok_or(Error::OutOfMemory)?;
                self.open = Some(Arc::clone(&arena));
                (address, arena)
            }
        };
        self.slots.insert(address, Slot { len_bytes, arena: Arc::clone(&arena) });
        Ok((address, arena))
    }

    /// The node at `place` frees what lies at an address. That of another graph is not given out again.
    pub fn is_freed(&mut self, address: CUdeviceptr, place: usize) {
        if self.slots.contains_key(&address) {
            self.freed.insert(place, address);
        }
    }
}

/// The memory that a launch needs, kept for it while it is queued.
pub struct Claim<'a> {
    arenas: &'a [Arc<Arena>],
    /// Blocks of other graphs that the launch frees.
    freed: &'a [Arc<Block>],
    memories: Vec<Arc<Memory>>,
}

impl<'a> Claim<'a> {
    /// Sees to it that each arena has memory. `own` is the mark behind the graph's launch before, which this one
    /// comes after.
    pub fn new(
        arenas: &'a [Arc<Arena>],
        freed: &'a [Arc<Block>],
        stream: &Stream,
        own: Option<&Arc<Mark>>,
    ) -> Result<Claim<'a>> {
        let key = super::capture::key(stream);
        let mut claim = Claim { arenas, freed, memories: Vec::new() };
        for block in freed {
            let memory = block.arena.state.lock().memory.clone();
            claim.memories.extend(memory.inspect(|memory| memory.hold.lock().n_launches += 1));
        }
        let is_free = |hold: &Hold| hold.is_free_for(key, own);
        let mut homeless = Vec::new();
        {
            let all = MEMORIES.lock();
            for arena in arenas.iter().filter(|arena| !arena.is_fixed) {
                let memory = arena.state.lock().memory.clone();
                match memory.filter(|memory| memory.claim(is_free)) {
                    Some(memory) => claim.memories.push(memory),
                    None => homeless.push((arena, None)),
                }
            }
            for (arena, found) in &mut homeless {
                // A longer one would be lost to graphs that need it.
                let fits = |memory: &Arc<Memory>| {
                    core::ptr::eq(memory.device, arena.context.device)
                        && (arena.len_bytes..=2 * arena.len_bytes).contains(&memory.len_bytes)
                        && memory.claim(is_free)
                };
                *found = all.iter().filter_map(Weak::upgrade).find(fits);
                claim.memories.extend(found.clone());
            }
        }
        for (arena, found) in homeless {
            let memory = match found {
                Some(memory) => memory,
                None => {
                    let memory = Memory::create(arena.context.device, arena.len_bytes)?;
                    memory.hold.lock().n_launches += 1;
                    claim.memories.push(Arc::clone(&memory));
                    memory
                }
            };
            arena.map(memory)?;
        }
        Ok(claim)
    }

    /// Everything is queued, up to the mark.
    pub fn is_queued(self, stream: &Stream, mark: &Arc<Mark>) {
        self.arenas.iter().for_each(|arena| arena.is_used_until(stream, mark));
        self.freed.iter().for_each(|block| block.arena.is_used_until(stream, mark));
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.memories.iter().for_each(|memory| memory.hold.lock().n_launches -= 1);
    }
}
