//! A graph's run on the memory of an AMD GPU: an operation is MIOpen's where that has it (`hip.rs`), else one of our own kernels' (`kernels.rs`),
//! else our own code's, on copies.
//!
//! The rule: who refuses an operation after all leaves it to the next. A virtual tensor lies in memory of the device's until the run is over,
//! unless our own code alone gives and takes it: in its own type where MIOpen gives or takes it, else in `float`.

use core::ops::Range;
use std::collections::BTreeMap;

use cudnn_cpu::Kind;
use kit::Address;

use super::layout::Layout;
use super::plan::{Given, Graph, Operation, Tensor};
use super::{hip, kernels};
use crate::Result;
use crate::hip::HipCall;
use crate::hip::objects::Room;
use crate::kernels::Call;
use crate::types::cudaStream_t;

/// What a run is given for each tensor that lies in memory.
pub type Places = BTreeMap<i64, Given>;

/// A graph's tensors by their numbers.
pub type Tensors = BTreeMap<i64, Tensor>;

/// An operation on the device's memory: whether it is done.
pub type Step<'g> = Box<dyn Fn(&Places) -> Result<bool> + 'g>;

/// Who does an operation.
enum Way<'g> {
    Hip(Step<'g>),
    Kernels(Step<'g>),
}

impl Way<'_> {
    fn run(&self, places: &Places) -> Result<bool> {
        match self {
            Way::Hip(step) | Way::Kernels(step) => step(places),
        }
    }
}

/// Who computes on the device's memory.
pub struct Device<'c> {
    pub hip: Option<&'c HipCall>,
    pub kernels: Option<&'c Call>,
    pub stream: cudaStream_t,
}

impl Device<'_> {
    /// Memory of the run's.
    fn room(&self, bytes: usize) -> Result<Room> {
        match self.kernels {
            Some(kernels) => kernels.room(bytes),
            None => Room::new(self.stream, bytes),
        }
    }
}

impl Graph {
    /// Runs the graph where one of its operations can be done on the device's memory, with `ours` for the others; whether that is so.
    ///
    /// # Safety
    /// As of [`Graph::run`], on the device.
    pub unsafe fn run_on_device(
        &self,
        device: &Device,
        given: &Places,
        mut ours: impl FnMut(Range<usize>, &Places) -> Result,
    ) -> Result<bool> {
        let steps = self.steps(device, given);
        if steps.iter().all(Vec::is_empty) {
            return Ok(false);
        }
        let Some(shared) = self.shared(&steps) else { return Ok(false) };
        let (mut places, mut rooms) = (given.clone(), Vec::new());
        for (uid, kind) in shared {
            // Where there is no room for all, our own code goes by parts.
            let bytes = self.tensors[&uid].span() * kind.bytes();
            let Ok(room) = device.room(bytes) else { return Ok(false) };
            places.insert(uid, Given::Made(Address(room.at().cast()), kind));
            rooms.push(room);
        }
        let mut next = 0;
        for (number, ways) in steps.iter().enumerate() {
            if ways.is_empty() {
                tracing::debug!(target: "cudaway::dnn", "operation {number} of a graph is our own code's: {}", self.operations[number].work.name());
                continue;
            }
            if next < number {
                ours(next..number, &places)?;
            }
            let mut is_done = false;
            for way in ways {
                is_done = is_done || way.run(&places)?;
            }
            if !is_done {
                tracing::debug!(target: "cudaway::dnn", "operation {number} of a graph is our own code's after all: {}", self.operations[number].work.name());
            }
            next = if is_done { number + 1 } else { number };
        }
        if next < steps.len() {
            ours(next..steps.len(), &places)?;
        }
        Ok(true)
    }

    /// Who can do each operation, the first one first. What is run by parts stays so unless all of it can be done, and so does what is
    /// computed in double precision.
    fn steps<'g>(&'g self, device: &Device<'g>, given: &'g Places) -> Vec<Vec<Way<'g>>> {
        let of = |operation: &'g Operation| self.ways(device, given, operation);
        let mut steps: Vec<Vec<Way<'g>>> = self.operations.iter().map(of).collect();
        if self.is_double_to_kernels {
            steps.iter_mut().for_each(Vec::clear);
        }
        for stretch in &self.stretches {
            let within = &mut steps[stretch.operations.clone()];
            if within.iter().any(Vec::is_empty) {
                within.iter_mut().for_each(Vec::clear);
            }
        }
        steps
    }

    fn ways<'g>(&'g self, device: &Device<'g>, given: &'g Places, of: &'g Operation) -> Vec<Way<'g>> {
        let mut ways = Vec::new();
        if let Some(hip) = device.hip
            && let Some(step) = (hip::Mapping { tensors: &self.tensors, given }).step(of)
        {
            ways.push(Way::Hip(Box::new(move |places| step(hip, places))));
        }
        ways.extend(device.kernels.and_then(|call| kernels::step(call, &self.tensors, of)).map(Way::Kernels));
        ways
    }

    /// The virtual tensors that are given on the device, or taken elsewhere than where they are given, and their types; none where one of
    /// them cannot lie in memory.
    fn shared(&self, steps: &[Vec<Way>]) -> Option<Vec<(i64, Kind)>> {
        let is_ours = |at: usize| steps[at].is_empty();
        let (mut parts, mut home) = (vec![0; steps.len()], BTreeMap::new());
        for (at, operation) in self.operations.iter().enumerate() {
            let begins = at > 0 && !(is_ours(at) && is_ours(at - 1));
            parts[at] = if at == 0 { 0 } else { parts[at - 1] + usize::from(begins) };
            home.extend(operation.gives.iter().map(|uid| (*uid, at)));
        }
        let takes = |at: usize, uid: i64| self.operations[at].takes.contains(&uid);
        let is_shared = |(uid, at): &(&i64, &usize)| {
            let is_elsewhere = |other: usize| takes(other, **uid) && parts[other] != parts[**at];
            self.tensors[*uid].is_virtual && (!is_ours(**at) || (0..steps.len()).any(is_elsewhere))
        };
        let kind = |(uid, at): (&i64, &usize)| {
            let tensor = &self.tensors[uid];
            let by_hip = |at: usize| matches!(steps[at].first(), Some(Way::Hip(_)));
            let meets_hip = by_hip(*at) || (0..steps.len()).any(|other| by_hip(other) && takes(other, *uid));
            let kind = if meets_hip { tensor.kind } else { Kind::F32 };
            (tensor.layout == Layout::Strided && kind.bits() >= 8).then_some((*uid, kind))
        };
        home.iter().filter(is_shared).map(kind).collect()
    }
}
