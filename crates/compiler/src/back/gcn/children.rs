//! What kernels ask of the device runtime: grids, copies and fills that come after them, and questions. A kernel writes what is to
//! come after it into a queue, which the host sees ([`super::Launch::queue`]), and whoever launched runs it when the grid has ended,
//! before anything else of its stream. Answers are given here: the launcher has written into the queue what they depend on.
//!
//! Little-endian:
//!
//! | offset | type | what |
//! |---|---|---|
//! | 0 | u64 | bytes that records took; may be more than there are: what did not fit was refused |
//! | 8 | u64 | bytes for records |
//! | 16 | u64 | offset of the first record |
//! | 24 | u64 | records that were given a place among all |
//! | 32 | u32 | launches into the tail stream |
//! | 36 | u32 | how many of them there may be; as many are there: nothing is launched any more |
//! | 40 | u32 | streams and events that were made |
//! | 44 | u32 | kernels of the module |
//! | 48 | u32 × 3 | most blocks of a grid, by axis |
//! | 60 | u32 × 3 | most threads of a block, by axis |
//! | 72 | u32 | most threads of a block |
//! | 76 | u32 | most bytes of dynamic shared memory |
//! | 80 | u64 × 5 | `cudaLimit`, by number; all ones: not known |
//! | 128 | i32 × 128 | `cudaDeviceAttr`, by number; the least number there is: not known |
//! | 640 | u32 × 64 | by the number of a call: 1 where it was refused because it is not supported |
//! | 1024 | 192 bytes × 12 | names (64 bytes) and texts of [`answer::ALL`], each with a zero behind it |
//! | 3840 | u64 | address of what is known of graphs ([`graphs`]), or 0 |
//! | 3848 | u32 | 1: the grid is part of a launch of a graph |
//! | 3852 | u32 | 1: the graph waits in its own tail |
//! | 3856 | u64 | the graph for the device that the grid is part of, or 0 |
//! | 3864 | u32 × 3 | graphs in its tail, graphs that it has fired, and those fired beside it |
//! | 3880 | u64 | offset of what kernels are told of kernels ([`Facts`]), or 0 |
//! | 4096 | u32 × 16384 | what a handle is: 1 a stream, 2 an event, 0 neither or no more |
//! | 69632 | 32 bytes × kernels | u32 most threads of a block; u32 bytes of parameters; u32 × 3 the block it requires, or zeros |
//! | … | 224 bytes × kernels | [`Facts`], where the kernel asks for them |
//! | … | … | records, one behind the other, each from a multiple of 16 |
//!
//! A record begins with u32 its bytes, u32 its state ([`State`]), u64 its place among all, and u64 its stream. Of a launch follow u32
//! kernel, u32 dynamic shared memory, u32 × 3 grid, u32 × 3 block, u32 bytes of parameters, and at [`PARAMS`] the parameters. Of a
//! copy follow u64 × 9: address, pitch and bytes of a slice to and from, width, height, depth; of a fill address, pitch, bytes of a
//! slice, value, width, height, depth; of a graph u64 its handle and u64 [`Mode`].

mod answers;
pub mod graphs;

pub(super) use answers::functions;

use super::code::{Code, Result};
use super::launch::field;
use crate::back::llvm::{Builder, Type, Unsupported, Val};
pub use crate::device_runtime::graphs::Mode;
use crate::device_runtime::{Call, WHO_BYTES, answer};

pub const TAKEN: u64 = 0;
pub const CAPACITY: u64 = 8;
pub const FIRST: u64 = 16;
pub const PLACES: u64 = 24;
pub const N_TAIL: u64 = 32;
pub const TAIL_ROOM: u64 = 36;
pub const N_HANDLES: u64 = 40;
pub const N_KERNELS: u64 = 44;
pub const MOST_GRID: u64 = 48;
pub const MOST_BLOCK: u64 = 60;
pub const MOST_THREADS: u64 = 72;
pub const MOST_SHARED: u64 = 76;
pub const LIMITS: u64 = 80;
pub const N_LIMITS: u64 = 5;
pub const ATTRIBUTES: u64 = 128;
pub const N_ATTRIBUTES: u64 = 128;
pub const REFUSED: u64 = 640;
pub const NAMES: u64 = 1024;
pub const NAME_BYTES: u64 = 192;
pub const TEXT: u64 = 64;
pub const GRAPHS: u64 = 3840;
pub const IS_IN_GRAPH: u64 = 3848;
pub const IS_OWN_TAIL: u64 = 3852;
pub const OWN_GRAPH: u64 = 3856;
/// By [`Mode`].
pub const N_GRAPHS: u64 = 3864;
pub const FACTS: u64 = 3880;
pub const HANDLES: u64 = 4096;
pub const MOST_HANDLES: u64 = 16384;
pub const KERNELS: u64 = HANDLES + 4 * MOST_HANDLES;
pub const KERNEL_BYTES: u64 = 32;

/// Where a record's fields lie.
pub const STATE: u64 = 4;
pub const PLACE: u64 = 8;
pub const STREAM: u64 = 16;
pub const WHAT: u64 = 24;
pub const SHARED: u64 = 28;
pub const GRID: u64 = 32;
pub const BLOCK: u64 = 44;
pub const PARAMS_BYTES: u64 = 56;
pub const PARAMS: u64 = 64;
/// Of a copy's or a fill's record.
const MOVE_BYTES: u64 = 96;

/// What a record is. Those below [`State::Launch`] come to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Room for parameters; the launch says what they are for.
    Room = 1,
    /// The same, and what they are for.
    Asked = 2,
    /// Somebody launches it, or has failed to.
    Claimed = 3,
    Launch = 4,
    Copy = 5,
    Fill = 6,
    Graph = 7,
}

/// What a kernel is told of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// `cudaFuncAttributes`, of which CUDA 11's headers have the first 14.
    pub attributes: [u32; 36],
    /// Blocks that a multiprocessor holds, by the warps of a block less one, where none has dynamic shared memory.
    pub blocks: [u16; 32],
    /// Bytes of shared memory that its variables take, and how many a block may add.
    pub shared: u32,
    pub most_dynamic: u32,
    /// Bytes of shared memory that a multiprocessor has for its blocks.
    pub multiprocessor_shared: u32,
}

impl Facts {
    pub const BYTES: u64 = 224;
    /// Where its parts lie. The last one is 1: of a kernel that cannot be had nothing is known.
    const BLOCKS: u64 = 144;
    const SHARED: u64 = 208;
    const MOST_DYNAMIC: u64 = 212;
    const MULTIPROCESSOR: u64 = 216;
    const IS_KNOWN: u64 = 220;

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.attributes.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend(self.blocks.into_iter().flat_map(u16::to_le_bytes));
        let rest = [self.shared, self.most_dynamic, self.multiprocessor_shared, 1];
        bytes.extend(rest.into_iter().flat_map(u32::to_le_bytes));
        bytes
    }
}

/// The queue up to its first record, as far as no kernel writes it, for who launches: `kernels` by most threads, bytes of parameters
/// and required block.
pub struct Header {
    pub tail_room: u32,
    pub most_grid: [u32; 3],
    pub most_block: [u32; 3],
    pub most_threads: u32,
    pub most_shared: u32,
    pub limits: [Option<u64>; N_LIMITS as usize],
    pub attributes: Vec<(u32, i32)>,
    pub kernels: Vec<(u32, u32, [u32; 3])>,
    /// Of each kernel, where the launched one asks for that; of one that cannot be had there is nothing.
    pub facts: Option<Vec<Option<Facts>>>,
}

impl Header {
    /// Where the first record is.
    #[must_use]
    pub fn first(n_kernels: usize, has_facts: bool) -> u64 {
        let of_one = KERNEL_BYTES + if has_facts { Facts::BYTES } else { 0 };
        (KERNELS + of_one * n_kernels as u64).next_multiple_of(64)
    }

    /// For a queue of so many bytes.
    #[must_use]
    pub fn to_bytes(&self, queue_bytes: u64) -> Vec<u8> {
        let first = Header::first(self.kernels.len(), self.facts.is_some());
        let mut bytes = vec![0; first as usize];
        let mut put = |at: u64, value: &[u8]| bytes[at as usize..][..value.len()].copy_from_slice(value);
        put(CAPACITY, &queue_bytes.saturating_sub(first).to_le_bytes());
        put(FIRST, &first.to_le_bytes());
        put(TAIL_ROOM, &self.tail_room.to_le_bytes());
        put(N_KERNELS, &(self.kernels.len() as u32).to_le_bytes());
        for axis in 0..3 {
            put(MOST_GRID + 4 * axis as u64, &self.most_grid[axis].to_le_bytes());
            put(MOST_BLOCK + 4 * axis as u64, &self.most_block[axis].to_le_bytes());
        }
        put(MOST_THREADS, &self.most_threads.to_le_bytes());
        put(MOST_SHARED, &self.most_shared.to_le_bytes());
        for (at, limit) in (LIMITS..).step_by(8).zip(self.limits) {
            put(at, &limit.unwrap_or(u64::MAX).to_le_bytes());
        }
        for number in 0..N_ATTRIBUTES {
            put(ATTRIBUTES + 4 * number, &i32::MIN.to_le_bytes());
        }
        for &(number, value) in self.attributes.iter().filter(|(number, _)| u64::from(*number) < N_ATTRIBUTES)
        {
            put(ATTRIBUTES + 4 * u64::from(number), &value.to_le_bytes());
        }
        for (at, (_, name, text)) in (NAMES..).step_by(NAME_BYTES as usize).zip(answer::ALL) {
            put(at, name.to_bytes_with_nul());
            put(at + TEXT, text.to_bytes_with_nul());
        }
        for (at, (most_threads, params, block)) in
            (KERNELS..).step_by(KERNEL_BYTES as usize).zip(&self.kernels)
        {
            put(at, &most_threads.to_le_bytes());
            put(at + 4, &params.to_le_bytes());
            for (axis, side) in block.iter().enumerate() {
                put(at + 8 + 4 * axis as u64, &side.to_le_bytes());
            }
        }
        if let Some(facts) = &self.facts {
            let facts_at = KERNELS + KERNEL_BYTES * self.kernels.len() as u64;
            put(FACTS, &facts_at.to_le_bytes());
            for (at, facts) in (facts_at..).step_by(Facts::BYTES as usize).zip(facts) {
                facts.iter().for_each(|facts| put(at, &facts.to_bytes()));
            }
        }
        bytes
    }
}

/// Bytes of scratch in front of a kernel's local variables where it asks the device runtime: the thread's last error.
pub const ERROR_BYTES: u64 = 16;

fn word() -> Type {
    Type::int(32, 1)
}

fn wide() -> Type {
    Type::int(64, 1)
}

impl Code<'_> {
    /// A call of the device runtime by its number, with its arguments at a generic address.
    pub fn ask(&mut self, arguments: &Val, number: &Val) -> Result<Val> {
        let number = Builder::constant_int(number).and_then(|number| u64::try_from(number).ok());
        let is_second = number.is_some_and(Call::is_second);
        let call = number.and_then(Call::of);
        let call = call.ok_or_else(|| Unsupported("a call of the device runtime by no name".to_owned()))?;
        if call == Call::DeviceSynchronize {
            // The host runs a grid's children when the grid has ended.
            let why = "cudaDeviceSynchronize in a kernel: its grid would wait for grids that begin when it has ended";
            return Err(Unsupported(why.to_owned()));
        }
        match call {
            Call::GetLastError => {
                let code = self.last_error();
                self.set_last_error("0");
                return Ok(self.b.resize(&code, 64, false));
            }
            Call::PeekAtLastError => {
                let code = self.last_error();
                return Ok(self.b.resize(&code, 64, false));
            }
            _ => {}
        }
        let mut given: Vec<Val> = (0..call.n_longs())
            .map(|nth| {
                let at = self.b.bin_int("add", arguments, i128::from(WHO_BYTES as u64 + 8 * nth as u64));
                let at = self.b.cast("inttoptr", &at, Type::ptr());
                self.b.assign(wide(), format_args!("load i64, {}, align 8", at.typed()))
            })
            .collect();
        match call {
            // `free` takes what `malloc` gave, and leaves all else alone.
            Call::Free => {
                self.free(&given[0]);
                return Ok(Builder::int(wide(), 0));
            }
            Call::Malloc => given.push(self.malloc(&given[1].clone())),
            Call::FuncGetAttributes => {
                self.unit.asks_of_kernels.set(true);
                given.push(Builder::int(wide(), if is_second { 36 } else { 14 }));
            }
            Call::OccupancyMaxActiveBlocksPerMultiprocessor
            | Call::OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => {
                self.unit.asks_of_kernels.set(true);
                given.resize(5, Builder::int(wide(), 0));
            }
            _ => {}
        }
        let queue = self.launch(field::QUEUE, wide());
        let list: String = given.iter().map(|value| format!(", {}", value.typed())).collect();
        let name = function_of(call);
        let both = self.b.fresh();
        self.b
            .inst(format_args!("{both} = call {{ i64, i32 }} @cudaway_ask_{name}({}{list})", queue.typed()));
        let value = self.b.assign(wide(), format_args!("extractvalue {{ i64, i32 }} {both}, 0"));
        let code = self.b.assign(word(), format_args!("extractvalue {{ i64, i32 }} {both}, 1"));
        let before = self.last_error();
        let is_wrong = self.b.icmp_int("ne", &code, 0);
        let now = self.b.select(&is_wrong, &code, &before);
        self.set_last_error(&now.text);
        Ok(value)
    }

    fn last_error(&mut self) -> Val {
        self.b.assign(word(), "load i32, ptr addrspace(5) %window, align 4")
    }

    /// What a thread begins with.
    pub fn clear_last_error(&mut self) {
        self.set_last_error("0");
    }

    fn set_last_error(&mut self, code: &str) {
        self.b.inst(format_args!("store i32 {code}, ptr addrspace(5) %window, align 4"));
    }
}

/// The function below that answers a call.
fn function_of(call: Call) -> &'static str {
    use Call::*;
    match call {
        GetParameterBuffer => "buffer",
        GetParameterBufferV2 => "buffer_for",
        LaunchDevice => "launch",
        LaunchDeviceV2 => "launch_asked",
        GetErrorName => "name",
        GetErrorString => "text",
        GetDeviceCount => "one",
        GetDevice | DeviceGetCacheConfig | DeviceGetSharedMemConfig => "zero",
        RuntimeGetVersion => "version",
        StreamCreateWithFlags => "stream",
        EventCreateWithFlags => "event",
        StreamDestroy => "forget_stream",
        EventDestroy => "forget_event",
        StreamWaitEvent => "wait",
        EventRecord => "record",
        EventRecordWithFlags => "record_flagged",
        DeviceGetAttribute => "attribute",
        DeviceGetLimit => "limit",
        Malloc => "malloc",
        MemcpyAsync => "copy",
        Memcpy2DAsync => "copy_2d",
        Memcpy3DAsync => "copy_3d",
        MemsetAsync => "fill",
        Memset2DAsync => "fill_2d",
        Memset3DAsync => "fill_3d",
        GraphLaunch => "launch_graph",
        GraphKernelNodeSetParam => "set_param",
        GraphKernelNodeSetEnabled => "set_enabled",
        GraphKernelNodeSetGridDim => "set_grid",
        GraphKernelNodeUpdatesApply => "apply",
        FuncGetAttributes => "attributes",
        OccupancyMaxActiveBlocksPerMultiprocessor | OccupancyMaxActiveBlocksPerMultiprocessorWithFlags => {
            "occupancy"
        }
        // These are answered without the queue.
        DeviceSynchronize | GetLastError | PeekAtLastError | Free => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_queue_lie_behind_each_other() {
        const {
            assert!(LIMITS + 8 * N_LIMITS <= ATTRIBUTES);
            assert!(ATTRIBUTES + 4 * N_ATTRIBUTES <= REFUSED);
            assert!(WHAT + 72 <= MOVE_BYTES);
        }
        assert!(REFUSED + 4 * Call::ALL.len() as u64 <= NAMES);
        assert!(NAMES + NAME_BYTES * answer::ALL.len() as u64 <= GRAPHS);
        const { assert!(FACTS + 8 <= HANDLES) };
        let facts = Facts {
            attributes: [1; 36],
            blocks: [2; 32],
            shared: 3,
            most_dynamic: 4,
            multiprocessor_shared: 5,
        };
        let bytes = facts.to_bytes();
        let word = |at: u64| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        let words =
            [Facts::BLOCKS, Facts::SHARED, Facts::MOST_DYNAMIC, Facts::MULTIPROCESSOR, Facts::IS_KNOWN];
        assert_eq!((bytes.len() as u64, words.map(word)), (Facts::BYTES, [0x2_0002, 3, 4, 5, 1]));
        assert!(answer::ALL.iter().all(|(_, name, _)| name.count_bytes() < TEXT as usize));
        assert!(answer::ALL.iter().all(|(.., text)| text.count_bytes() < (NAME_BYTES - TEXT) as usize));
    }
}
