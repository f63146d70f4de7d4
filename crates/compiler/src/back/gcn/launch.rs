//! The kernarg segment: PTX's parameters at PTX's own offsets, then one [`Launch`].

use crate::program::Header;

/// What a kernel is told besides its parameters, by whoever launches it: the block behind the parameters, little-endian,
/// laid out as written here (docs/architecture.md).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Address of the module's block of variables ([`super::Variables`]).
    pub variables: u64,
    /// Address of the services buffer, or 0.
    pub services: u64,
    /// Address of the workspace of a cooperative grid (`%envreg1` high word, `%envreg2` low word), else 0.
    pub workspace: u64,
    pub grid_id: u64,
    /// Nanoseconds of a tick of the GPU's constant clock, times 2^32.
    pub tick: u64,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// Multiprocessors of the device (`%nsmid`).
    pub multiprocessors: u32,
    /// Address of the heap of `malloc` ([`super::heap`]), or 0.
    pub heap: u64,
    /// Address of the queue of what comes after the grid ([`super::children`]), or 0.
    pub queue: u64,
    /// The graph for the device that the grid is part of (`%current_graph_exec`), or 0.
    pub graph: u64,
}

/// Offsets in it.
pub(crate) mod field {
    pub const VARIABLES: u32 = 0;
    pub const SERVICES: u32 = 8;
    pub const WORKSPACE: u32 = 16;
    pub const GRID_ID: u32 = 24;
    pub const TICK: u32 = 32;
    pub const GRID: u32 = 40;
    pub const BLOCK: u32 = 52;
    pub const DYNAMIC_SHARED: u32 = 64;
    pub const MULTIPROCESSORS: u32 = 68;
    pub const HEAP: u32 = 72;
    pub const QUEUE: u32 = 80;
    pub const GRAPH: u32 = 88;
}

impl Launch {
    pub const BYTES: u32 = 96;

    /// As it lies in the kernarg segment.
    pub fn to_bytes(&self) -> [u8; Launch::BYTES as usize] {
        let mut bytes = Vec::with_capacity(Launch::BYTES as usize);
        for word in [self.variables, self.services, self.workspace, self.grid_id, self.tick] {
            bytes.extend(word.to_le_bytes());
        }
        let words =
            self.grid.into_iter().chain(self.block).chain([self.dynamic_shared, self.multiprocessors]);
        bytes.extend(words.flat_map(u32::to_le_bytes));
        bytes.extend([self.heap, self.queue, self.graph].into_iter().flat_map(u64::to_le_bytes));
        let mut all = [0; Launch::BYTES as usize];
        all.copy_from_slice(&bytes);
        all
    }
}

/// Layout of a kernel's kernarg segment. The code object's metadata has it as one argument by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernarg {
    /// Bytes of PTX's parameters, which begin at 0.
    pub params_bytes: u32,
    /// Where [`Launch`] begins.
    pub launch: u32,
    /// Of the whole segment.
    pub bytes: u32,
}

impl Kernarg {
    pub fn of(header: &Header) -> Kernarg {
        let launch = header.params_bytes.next_multiple_of(8);
        Kernarg { params_bytes: header.params_bytes, launch, bytes: launch + Launch::BYTES }
    }

    /// The segment for a launch: `params` are the parameters as the driver has them.
    pub fn fill(&self, params: &[u8], launch: &Launch) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes as usize];
        let given = params.len().min(self.params_bytes as usize);
        bytes[..given].copy_from_slice(&params[..given]);
        bytes[self.launch as usize..].copy_from_slice(&launch.to_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_block_lies_as_its_fields_say() {
        assert_eq!(size_of::<Launch>(), Launch::BYTES as usize);
        let offsets = [
            (offset_of!(Launch, variables), field::VARIABLES),
            (offset_of!(Launch, services), field::SERVICES),
            (offset_of!(Launch, workspace), field::WORKSPACE),
            (offset_of!(Launch, grid_id), field::GRID_ID),
            (offset_of!(Launch, tick), field::TICK),
            (offset_of!(Launch, grid), field::GRID),
            (offset_of!(Launch, block), field::BLOCK),
            (offset_of!(Launch, dynamic_shared), field::DYNAMIC_SHARED),
            (offset_of!(Launch, multiprocessors), field::MULTIPROCESSORS),
            (offset_of!(Launch, heap), field::HEAP),
            (offset_of!(Launch, queue), field::QUEUE),
            (offset_of!(Launch, graph), field::GRAPH),
        ];
        for (is, said) in offsets {
            assert_eq!(is, said as usize);
        }
        let launch = Launch {
            variables: 1,
            tick: 2,
            block: [3, 4, 5],
            multiprocessors: 6,
            heap: 7,
            queue: 8,
            graph: 9,
            ..Launch::default()
        };
        let bytes = launch.to_bytes();
        let word = |at: u32| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        let fields =
            [field::TICK, field::BLOCK + 4, field::MULTIPROCESSORS, field::HEAP, field::QUEUE, field::GRAPH];
        assert_eq!((word(0), fields.map(word)), (1, [2, 4, 6, 7, 8, 9]));
    }

    #[test]
    fn the_parameters_stand_in_front_of_it() {
        let kernarg = Kernarg { params_bytes: 12, launch: 16, bytes: 112 };
        let bytes = kernarg.fill(&[9; 12], &Launch { variables: 0x55, ..Launch::default() });
        assert_eq!((bytes.len(), &bytes[..12], bytes[12], bytes[16]), (112, &[9; 12][..], 0, 0x55));
    }
}
