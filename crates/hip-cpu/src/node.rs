//! Kernel nodes of graphs that kernels change: arguments, the grid, and whether they run.
//!
//! The driver names the node before a launch, and what the same thread launches next is the node's. What such a launch says holds
//! when the driver says that it is new; after that, what kernels have made of it.
//! Source: the documentation of `cudaGraphKernelNodeUpdatesApply` and of `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`.
//!
//! No lock is held while a launch runs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

use crate::launch::Launched;

/// What the device has of a node; nothing before an upload or a launch.
#[derive(Default)]
struct Node(Mutex<Option<State>>);

struct State {
    launched: Launched,
    is_enabled: bool,
}

static NODES: LazyLock<Mutex<HashMap<u64, Arc<Node>>>> = LazyLock::new(Mutex::default);

/// How a launch is that of a node.
#[derive(Clone)]
pub struct Use {
    node: Arc<Node>,
    /// The driver's node has changed since the device took it: what kernels have set is overwritten.
    pub is_new: bool,
    pub is_enabled: bool,
    /// It is taken, and not run.
    pub is_upload: bool,
}

thread_local! {
    static NEXT: RefCell<Option<Use>> = const { RefCell::new(None) };
}

/// What the calling thread launches next is the node's.
pub fn name_next(node: u64, is_new: bool, is_enabled: bool, is_upload: bool) {
    let node = NODES.lock().entry(node).or_default().clone();
    NEXT.set(Some(Use { node, is_new, is_enabled, is_upload }));
}

/// The node that this launch is of.
pub fn take_next() -> Option<Use> {
    NEXT.take()
}

/// The node is gone. What was queued of it runs as it would.
pub fn forget(node: u64) {
    let gone = NODES.lock().remove(&node);
    drop(gone);
}

impl Use {
    /// What is to be run in the place of what was queued, if anything.
    pub fn now(&self, queued: &Launched) -> Option<Launched> {
        let mut state = self.node.0.lock();
        if self.is_new || state.is_none() {
            *state = Some(State { launched: queued.without_node(), is_enabled: self.is_enabled });
        }
        if self.is_upload {
            return None;
        }
        state.as_ref().filter(|state| state.is_enabled).map(|state| state.launched.without_node())
    }
}

/// What a kernel may change.
pub enum Update {
    Grid([u32; 3]),
    /// Bytes of the arguments, from an offset on.
    Arguments(usize, Vec<u8>),
    Enabled(bool),
}

/// It is no node that the device has, or cannot become that.
#[derive(Debug, PartialEq, Eq)]
pub struct Refused;

/// Does all of it, or nothing.
pub fn update(updates: &[(u64, Update)]) -> Result<(), Refused> {
    let nodes: Option<Vec<_>> = {
        let known = NODES.lock();
        updates.iter().map(|(node, _)| known.get(node).cloned()).collect()
    };
    let nodes = nodes.ok_or(Refused)?;
    for (node, (_, update)) in nodes.iter().zip(updates) {
        let state = node.0.lock();
        let launched = &state.as_ref().ok_or(Refused)?.launched;
        let is_possible = match update {
            Update::Grid(grid) => launched.can_have_grid(*grid),
            Update::Arguments(offset, bytes) => {
                offset.checked_add(bytes.len()).is_some_and(|end| end <= launched.arguments().len())
            }
            Update::Enabled(_) => true,
        };
        if !is_possible {
            return Err(Refused);
        }
    }
    for (node, (_, update)) in nodes.iter().zip(updates) {
        let mut state = node.0.lock();
        let Some(State { launched, is_enabled }) = state.as_mut() else { continue };
        match update {
            Update::Grid(grid) => launched.set_grid(*grid),
            Update::Arguments(offset, bytes) => {
                // Another thread may have put another kernel there meanwhile.
                let place = launched.arguments_mut().get_mut(*offset..offset + bytes.len());
                place.into_iter().for_each(|place| place.copy_from_slice(bytes));
            }
            Update::Enabled(is_on) => *is_enabled = *is_on,
        }
    }
    Ok(())
}
