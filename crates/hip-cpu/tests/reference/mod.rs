//! A plain executor of PTX: it walks the syntax tree, one thread at a time, and shares no code with the translator.
//!
//! Every thread has registers of its own and runs until it ends or has to meet others (a barrier, a `.sync` collective).
//! When no thread can go on, whoever waits is matched by the manual's rules. What a single instruction computes is
//! `oracle`'s business; control flow, memory and meetings are here. What the manual leaves open (an unwritten register,
//! memory nobody wrote, which NaN) is a value without bits that goes where it is copied; a result is not compared there,
//! and it is an error to decide by it.

#![allow(dead_code, reason = "several tests share this module, each uses a part")]

mod data;
mod meet;
mod memory;
mod operand;
mod program;
mod semantics;
mod thread;

use memory::{Memory, Region};
pub use program::Program;
pub use semantics::knows;
use thread::{Status, Thread};

/// The message says what is undefined, unknown here, or stuck.
pub type Result<T> = std::result::Result<T, String>;

/// Bits, or what the manual leaves open.
pub type Value = Option<u128>;

/// The error of a thread that decides by an open value.
pub const OPEN: &str = "the way is up to what the manual leaves open";

/// Memory that the kernel gets the address of.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    pub bytes: Vec<u8>,
    /// Of each byte, whether it is not open.
    pub defined: Vec<bool>,
}

impl Buffer {
    pub fn new(bytes: Vec<u8>) -> Buffer {
        let defined = vec![true; bytes.len()];
        Buffer { bytes, defined }
    }
}

/// A kernel argument.
pub enum Arg<'a> {
    /// The parameter's bytes.
    Value(Vec<u8>),
    /// A pointer parameter: the buffer's address is passed.
    Buffer(&'a mut Buffer),
}

/// What the threads of a block share.
pub struct Block<'l> {
    launch: &'l Launch,
    index: [u32; 3],
    shared: Region,
}

/// Shape of a launch.
#[derive(Clone, Debug)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
}

impl Launch {
    fn threads(&self) -> u32 {
        self.block.iter().product()
    }
}

/// Instructions of one thread before it counts as hanging.
const PATIENCE: u64 = 1_000_000;

/// Runs all blocks, one after the other; buffers are changed in place.
pub fn run(program: &Program<'_>, kernel: &str, launch: &Launch, args: &mut [Arg<'_>]) -> Result<()> {
    let kernel = program.function(kernel)?;
    let mut memory = Memory::new(program);
    let mut values = vec![];
    for arg in args.iter_mut() {
        values.push(match arg {
            Arg::Value(bytes) => bytes.clone(),
            Arg::Buffer(buffer) => memory.lend(buffer.clone()).to_le_bytes().to_vec(),
        });
    }
    let params = kernel.argument_bytes(&values)?;
    let [x, y, z] = launch.grid;
    let mut ran = Ok(());
    for linear in 0..x * y * z {
        let index = [linear % x, linear / x % y, linear / x / y];
        let shared = Region::undefined(0, program.shared_bytes + u64::from(launch.dynamic_shared));
        let mut block = Block { launch, index, shared };
        ran = run_block(program, kernel, &params, &mut block, &mut memory);
        if ran.is_err() {
            break;
        }
    }
    let mut buffers = memory.take_back();
    for arg in args {
        if let Arg::Buffer(buffer) = arg {
            **buffer = buffers.next().expect("one was lent for each");
        }
    }
    ran
}

fn run_block<'p, 'a>(
    program: &'p Program<'a>,
    kernel: &'p program::Function<'a>,
    params: &[u8],
    block: &mut Block<'_>,
    memory: &mut Memory,
) -> Result<()> {
    let mut threads: Vec<Thread<'p, 'a>> =
        (0..block.launch.threads()).map(|linear| Thread::new(program, kernel, params, linear)).collect();
    let mut barriers = meet::Barriers::default();
    loop {
        for thread in &mut threads {
            let mut left = PATIENCE;
            while thread.status == Status::Runs {
                thread.step(block, memory)?;
                left -= 1;
                if left == 0 {
                    return Err("a thread does not come to an end".to_owned());
                }
            }
        }
        if threads.iter().all(|thread| thread.status == Status::Ended) {
            return Ok(());
        }
        if !meet::release(&mut threads, &mut barriers)? {
            return Err("the threads wait for each other".to_owned());
        }
    }
}
