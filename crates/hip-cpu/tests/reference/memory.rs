//! Memory as bytes that are defined or not. An access outside of every buffer, or misaligned, is an error.

use super::program::{GLOBALS, Program};
use super::{Buffer, Result, Value};

/// Where buffers begin; each has a page of nothing behind it.
const BUFFERS: u64 = 0x0300_0000_0000;
/// Generic addresses of the shared window and of the local window.
pub const SHARED_WINDOW: u64 = 0x0400_0000_0000;
pub const LOCAL_WINDOW: u64 = 0x0500_0000_0000;
const WINDOW_BYTES: u64 = 1 << 32;

/// Some bytes with consecutive addresses.
pub struct Region {
    base: u64,
    bytes: Vec<u8>,
    defined: Vec<bool>,
}

impl Region {
    /// Bytes that nobody wrote yet.
    pub fn undefined(base: u64, len: u64) -> Region {
        Region { base, bytes: vec![0; len as usize], defined: vec![false; len as usize] }
    }

    fn filled(base: u64, Buffer { bytes, defined }: Buffer) -> Region {
        Region { base, bytes, defined }
    }

    /// Grows or shrinks to `len`; what is new is undefined.
    pub fn resize(&mut self, len: u64) {
        self.bytes.resize(len as usize, 0);
        self.defined.resize(len as usize, false);
    }

    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn range(&self, address: u64, len: usize) -> Result<std::ops::Range<usize>> {
        let at = address
            .checked_sub(self.base)
            .filter(|at| at.checked_add(len as u64).is_some_and(|end| end <= self.len()))
            .ok_or_else(|| format!("{len} bytes at {address:#x} are out of bounds"))?;
        Ok(at as usize..at as usize + len)
    }

    pub fn read(&self, address: u64, len: usize) -> Result<Value> {
        let range = self.range(address, len)?;
        if !self.defined[range.clone()].iter().all(|&it| it) {
            return Ok(None);
        }
        let mut value = [0; 16];
        value[..len].copy_from_slice(&self.bytes[range]);
        Ok(Some(u128::from_le_bytes(value)))
    }

    pub fn write(&mut self, address: u64, len: usize, value: Value) -> Result<()> {
        let range = self.range(address, len)?;
        self.bytes[range.clone()].copy_from_slice(&value.unwrap_or(0).to_le_bytes()[..len]);
        self.defined[range].fill(value.is_some());
        Ok(())
    }
}

/// Global memory: the module's variables, then the buffers.
pub struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    pub fn new(program: &Program<'_>) -> Memory {
        Memory { regions: vec![Region::filled(GLOBALS, Buffer::new(program.globals.clone()))] }
    }

    /// The address of a buffer that is kept until [`Memory::take_back`].
    pub fn lend(&mut self, buffer: Buffer) -> u64 {
        let last = self.regions.last().map_or(0, |it| it.base + it.len());
        let base = last.max(BUFFERS).next_multiple_of(4096) + 4096;
        self.regions.push(Region::filled(base, buffer));
        base
    }

    /// The buffers in the order they were lent.
    pub fn take_back(self) -> impl Iterator<Item = Buffer> {
        let buffer = |region: Region| Buffer { bytes: region.bytes, defined: region.defined };
        self.regions.into_iter().skip(1).map(buffer)
    }

    pub fn region(&mut self, address: u64) -> Result<&mut Region> {
        self.regions
            .iter_mut()
            .rfind(|region| region.base <= address)
            .ok_or_else(|| format!("{address:#x} is in no memory"))
    }
}

/// The offset in a window, if the generic address is in it.
pub fn in_window(address: u64, window: u64) -> Option<u64> {
    address.checked_sub(window).filter(|&offset| offset < WINDOW_BYTES)
}
