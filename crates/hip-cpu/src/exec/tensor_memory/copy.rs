//! `tcgen05.cp` and `tcgen05.shift`.

use compiler::tensor_memory::{FORMAT_SHIFT, KIND_SHIFT, WRONG};

use super::shared::Matrix;
use super::{Memory, Pair};

/// Rows that are copied, units of 16 bytes in each, and the lanes that a row goes to, from the address's on.
type Shape = (usize, usize, fn(row: usize) -> Vec<usize>);

/// As `compiler::tensor_memory::SHAPES` lists them.
const SHAPES: [Shape; 6] = [
    (128, 2, |row| vec![row]),
    (4, 2, |row| vec![32 * row]),
    (128, 1, |row| vec![row]),
    // Warps 0 and 2 have the first half, 1 and 3 the second.
    (64, 1, |row| vec![row, row + 64]),
    // Warps 0 and 1 have the first half, 2 and 3 the second.
    (64, 1, |row| [0, 32].map(|warp| row / 32 * 64 + warp + row % 32).to_vec()),
    (32, 1, |row| [0, 32, 64, 96].map(|warp| warp + row).to_vec()),
];

/// Columns of a unit.
const COLUMNS: usize = 4;

/// Each block of a pair copies from its own shared memory.
///
/// # Safety
/// A kernel asks for it, with the address of its block's tensor memory.
pub unsafe fn cp(own: Memory, pair: Option<&Pair>, operation: u64, address: u32, descriptor: u64) -> i32 {
    let Some(&(rows, units, lanes)) = SHAPES.get((operation >> KIND_SHIFT & 15) as usize) else {
        return WRONG;
    };
    let bits = operation >> FORMAT_SHIFT & 15;
    let (lane, column) = ((address >> 16) as usize, (address & 0xffff) as usize);
    for block in pair.map_or(vec![own], |pair| pair.memories.to_vec()) {
        let Some(matrix) = Matrix::of_units(block.shared(), descriptor) else { return WRONG };
        for row in 0..rows {
            for along in 0..units {
                // SAFETY: the caller's promise.
                let unit = unpacked(unsafe { matrix.unit(row, along) }, bits as u32);
                for to in lanes(row) {
                    for word in 0..COLUMNS {
                        let column = column + COLUMNS * along + word;
                        // SAFETY: the caller's promise.
                        unsafe { block.write(lane + to, column, (unit >> (32 * word)) as u32) };
                    }
                }
            }
        }
    }
    0
}

/// 16 elements of so many bits as 16 bytes, as `tcgen05.mma` has them in tensor memory: of 6 bits in the lowest ones, of 4 in
/// the middle.
fn unpacked(unit: u128, bits: u32) -> u128 {
    if bits == 0 {
        return unit;
    }
    let shift = if bits == 4 { 2 } else { 0 };
    (0..16).fold(0, |all, nth| {
        let element = unit >> (bits * nth) & ((1 << bits) - 1);
        all | element << (8 * nth + shift)
    })
}

/// Each of a warp's lanes but the last gets the 32 bytes of the next one.
///
/// # Safety
/// As for [`cp`].
pub unsafe fn shift(own: Memory, pair: Option<&Pair>, address: u32) -> i32 {
    let (lane, column) = ((address >> 16) as usize, (address & 0xffff) as usize);
    if !lane.is_multiple_of(32) {
        return WRONG;
    }
    for block in pair.map_or(vec![own], |pair| pair.memories.to_vec()) {
        for lane in lane..lane + 31 {
            for column in column..column + 2 * COLUMNS {
                // SAFETY: the caller's promise.
                unsafe { block.write(lane, column, block.read(lane + 1, column)) };
            }
        }
    }
    0
}
