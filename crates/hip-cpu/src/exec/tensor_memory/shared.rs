//! Matrices in shared memory, as "Shared memory descriptor" and "Canonical Layouts" have them. Units of 16 bytes are what a
//! swizzle moves, pairs of them in the mode with an atomicity of 32 bytes.

use super::element::Element;

/// Bytes of a unit.
const UNIT: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Swizzle {
    None,
    Bytes(usize),
    /// 128 bytes, of which 32 stay together.
    Pairs,
}

impl Swizzle {
    /// Bytes of a row of the pattern.
    fn width(self) -> usize {
        match self {
            Swizzle::None => UNIT,
            Swizzle::Bytes(bytes) => bytes,
            Swizzle::Pairs => 128,
        }
    }
}

/// A matrix of rows along m or n, and columns along k.
pub struct Matrix {
    /// A block's shared memory.
    memory: *const u8,
    start: usize,
    leading: usize,
    stride: usize,
    /// Which row of the swizzle's pattern the matrix begins at.
    base: usize,
    swizzle: Swizzle,
    is_transposed: bool,
    element: Element,
}

impl Matrix {
    /// `None` where the manual has no such matrix.
    pub fn of(memory: *const u8, descriptor: u64, element: Element, is_transposed: bool) -> Option<Matrix> {
        let bytes = |first: u32| ((descriptor >> first & 0x3fff) << 4) as usize;
        let swizzle = match descriptor >> 61 {
            0 => Swizzle::None,
            1 => Swizzle::Pairs,
            2 => Swizzle::Bytes(128),
            4 => Swizzle::Bytes(64),
            6 => Swizzle::Bytes(32),
            _ => return None,
        };
        // Bits 46 to 48 are 0b001; bit 52 says that the leading dimension is an address, which only K = 96 has.
        if descriptor >> 46 & 7 != 1 || descriptor >> 52 & 1 == 1 {
            return None;
        }
        let is_fit = match is_transposed {
            true if element == Element::Tf32 => swizzle == Swizzle::Pairs,
            true => element.may_be_transposed() && swizzle != Swizzle::Pairs,
            false => true,
        };
        is_fit.then_some(Matrix {
            memory,
            start: bytes(0),
            leading: bytes(16),
            stride: bytes(32),
            base: (descriptor >> 49 & 7) as usize,
            swizzle,
            is_transposed,
            element,
        })
    }

    /// A matrix of units, as `tcgen05.cp` has it.
    pub fn of_units(memory: *const u8, descriptor: u64) -> Option<Matrix> {
        Matrix::of(memory, descriptor, Element::U8, false)
    }

    /// Where the unit lies that is `along` units along k (or, transposed, along m or n) in the row (or at that k).
    fn address(&self, row: usize, along: usize) -> usize {
        let width = self.swizzle.width();
        let is_plain = self.swizzle == Swizzle::None;
        let at = if !self.is_transposed {
            let across = if is_plain { along * self.leading } else { along * UNIT };
            row / 8 * self.stride + row % 8 * width + across
        } else {
            let units = width / UNIT;
            let rows = if self.swizzle == Swizzle::Pairs { 4 } else { 8 };
            let (down, aside) =
                if is_plain { (self.leading, self.stride) } else { (self.stride, self.leading) };
            row / rows * down + row % rows * width + along / units * aside + along % units * UNIT
        };
        let at = self.start + at;
        let turned = (at >> 7).wrapping_sub(self.base);
        match self.swizzle {
            Swizzle::Pairs => at ^ (turned & 3) << 5,
            _ => at ^ (turned & (width / UNIT - 1)) << 4,
        }
    }

    /// # Safety
    /// The block's shared memory; what lies outside of it faults as the kernel's.
    pub unsafe fn unit(&self, row: usize, along: usize) -> u128 {
        // SAFETY: the caller's promise. A swizzle keeps units aligned to 16 bytes.
        unsafe { self.memory.wrapping_add(self.address(row, along)).cast::<u128>().read_unaligned() }
    }

    /// The bits of elements 0 to `n_columns` of a row, in `into`.
    ///
    /// # Safety
    /// As for [`Matrix::unit`].
    pub unsafe fn row(&self, row: usize, into: &mut [u32]) {
        let per_unit = self.element.per_unit();
        if self.is_transposed {
            for (k, into) in into.iter_mut().enumerate() {
                // SAFETY: the caller's promise.
                let unit = unsafe { self.unit(k, row / per_unit) };
                *into = self.element.of_unit(unit, row % per_unit);
            }
            return;
        }
        for (along, into) in into.chunks_mut(per_unit).enumerate() {
            // SAFETY: the caller's promise.
            let unit = unsafe { self.unit(row, along) };
            for (nth, into) in into.iter_mut().enumerate() {
                *into = self.element.of_unit(unit, nth);
            }
        }
    }
}
