//! The copies of `cp.async.bulk.tensor`: boxes of a tensor in global memory to and from shared memory, as a tensor map
//! describes them. Kernels call [`copy`] as a service; a fault in here is the kernel's.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use compiler::tensor_map::{BYTES, Element, OOB_NAN, TensorMap};

/// Bytes of a row that are written or read together in shared memory.
const PIECE: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Store,
    /// By the operation of that number (`compiler::ir::TensorCopy::flags`).
    Reduce(u32),
}

/// A copy that is under way.
struct Copy {
    map: TensorMap,
    direction: Direction,
    shared: usize,
    /// Rows written so far.
    row: usize,
    row_bytes: usize,
}

/// A map, shared memory, coordinates, im2col's offsets, and what is to be done (`compiler::ir::TensorCopy::flags`).
pub type Copier = unsafe extern "C" fn(*const [u8; BYTES], *mut u8, i32, i32, i32, i32, i32, u64, u32) -> i32;

/// Gives the bytes in shared memory, or -1 when the map, its mode or the address do not fit.
///
/// # Safety
/// A kernel calls it: bad addresses fault as the kernel's.
pub unsafe extern "C" fn copy(
    map: *const [u8; BYTES],
    shared: *mut u8,
    c0: i32,
    c1: i32,
    c2: i32,
    c3: i32,
    c4: i32,
    offsets: u64,
    flags: u32,
) -> i32 {
    // Maps are aligned to 64 bytes, shared memory for these copies to 128.
    if !(map as usize).is_multiple_of(64) || !(shared as usize).is_multiple_of(128) {
        return -1;
    }
    // SAFETY: the kernel's address of a map; a wrong one is its fault.
    let Some(map) = TensorMap::decode(&unsafe { map.read() }) else { return -1 };
    let im2col = flags >> 4 & 1 == 1;
    if u32::from(map.rank) != flags & 15 || map.im2col.is_some() != im2col {
        return -1;
    }
    let direction = match flags >> 8 {
        0 => Direction::Load,
        1 => Direction::Store,
        op => Direction::Reduce(op),
    };
    let row_elements = match map.im2col {
        Some(im2col) => usize::from(im2col.channels_per_pixel),
        None => usize::from(map.box_dims[0]),
    };
    let row_bytes = row_elements / map.element.together() * map.element.shared_bytes();
    if !row_bytes.is_multiple_of(PIECE) {
        return -1;
    }
    let mut copy = Copy { map, direction, shared: shared as usize, row: 0, row_bytes };
    let first = [c0, c1, c2, c3, c4].map(i64::from);
    if im2col {
        copy.columns(first, [0, 16, 32].map(|bit| i64::from((offsets >> bit) as u16)));
    } else if flags >> 5 & 1 == 1 {
        let [column, rows @ ..] = first;
        rows.into_iter().for_each(|row| copy.row([column, row, 0, 0, 0]));
    } else {
        copy.tile(first);
    }
    // Padding is not counted: CUTLASS's products of padded elements wait for as many bytes as the elements have.
    (copy.row * row_elements / map.element.together() * map.element.bytes()) as i32
}

impl Copy {
    /// A box, with dimension 0 fastest.
    fn tile(&mut self, first: [i64; 5]) {
        let map = self.map;
        let steps = map.steps.map(|step| i64::from(step.max(1)));
        // PTX: ceil(box / step) elements are taken along each dimension but the first, which has no step.
        let count = |axis: usize| match axis < usize::from(map.rank) {
            true => i64::from(map.box_dims[axis].div_ceil(map.steps[axis].max(1).into())),
            false => 1,
        };
        for i4 in 0..count(4) {
            for i3 in 0..count(3) {
                for i2 in 0..count(2) {
                    for i1 in 0..count(1) {
                        let index = [0, i1, i2, i3, i4];
                        self.row(std::array::from_fn(|axis| first[axis] + index[axis] * steps[axis]));
                    }
                }
            }
        }
    }

    /// A column of pixels: along W, then H, then D inside the pixel box, then along N.
    fn columns(&mut self, first: [i64; 5], offsets: [i64; 3]) {
        let Some(im2col) = self.map.im2col else { return };
        let n_axes = usize::from(self.map.rank) - 2;
        let images = usize::from(self.map.rank) - 1;
        let mut base = first;
        for _ in 0..im2col.pixels_per_column {
            let mut pixel = base;
            for axis in 0..n_axes {
                pixel[1 + axis] += offsets[axis];
            }
            self.row(pixel);
            let mut axis = 0;
            while axis < n_axes {
                base[1 + axis] += i64::from(self.map.steps[1 + axis].max(1));
                let last = self.map.dims[1 + axis] as i64 - 1 + i64::from(im2col.upper[axis]);
                if base[1 + axis] <= last {
                    break;
                }
                base[1 + axis] = im2col.lower[axis].into();
                axis += 1;
            }
            if axis == n_axes {
                base[images] += 1;
            }
        }
    }

    /// One row: consecutive elements along dimension 0.
    fn row(&mut self, at: [i64; 5]) {
        let map = &self.map;
        let inside = |axis: usize| (0..map.dims[axis] as i64).contains(&at[axis]);
        let is_inside = (1..usize::from(map.rank)).all(inside);
        let mut address = map.address;
        for (at, stride) in at[1..usize::from(map.rank)].iter().zip(&map.strides) {
            address = address.wrapping_add_signed(at.wrapping_mul(*stride as i64));
        }
        let (bytes, together) = (map.element.bytes(), map.element.together());
        let in_shared = map.element.shared_bytes();
        let per_piece = PIECE / in_shared;
        // CUDA: rows of elements that share bytes begin and end with whole bytes.
        let (first, end) = (at[0].div_euclid(together as i64), map.dims[0].div_ceil(together as u64) as i64);
        // The manual does not say how rows shorter than a swizzle's span lie; each takes a whole span here, which is what
        // the programming guide wants room for.
        let pitch = match map.swizzle.span() {
            0 => self.row_bytes,
            span => span,
        };
        for piece in 0..self.row_bytes / PIECE {
            let linear = self.shared + self.row * pitch + piece * PIECE;
            let column = first + (piece * per_piece) as i64;
            if self.piece(address, linear, column, (is_inside, end)) {
                continue;
            }
            for element in 0..per_piece {
                let column = column + element as i64;
                let there = is_inside && (0..end).contains(&column);
                let global = address.wrapping_add_signed(column.wrapping_mul(bytes as i64)) as usize;
                let shared = map.swizzle.apply(linear + element * in_shared);
                // SAFETY: addresses of the kernel: a box in shared memory, and an element inside the tensor.
                unsafe {
                    match together {
                        16 => self.sixteen(global, shared, there),
                        _ => self.element(global, shared, there),
                    }
                }
            }
        }
        self.row += 1;
    }

    /// Moves a piece whose elements are all there, or fills it where none is, in two words. False: it goes by elements.
    fn piece(&self, row: u64, linear: usize, column: i64, (is_inside, end): (bool, i64)) -> bool {
        let element = self.map.element;
        let n_elements = (PIECE / element.shared_bytes()) as i64;
        let is_there = is_inside && column >= 0 && column + n_elements <= end;
        let is_absent = !is_inside || column >= end || column + n_elements <= 0;
        if !(is_there || is_absent) || !element.is_plain() || matches!(self.direction, Direction::Reduce(_)) {
            return false;
        }
        let global = row.wrapping_add_signed(column.wrapping_mul(self.bytes() as i64)) as usize;
        for word in [0, PIECE / 2] {
            let shared = self.map.swizzle.apply(linear + word);
            // SAFETY: addresses of the kernel: a box in shared memory, and elements inside the tensor.
            unsafe {
                match self.direction {
                    Direction::Load if is_there => write(shared, 8, read_apart(global + word)),
                    Direction::Load => write(shared, 8, self.fill_word()),
                    _ if is_there => write_apart(global + word, read(shared, 8)),
                    _ => {}
                }
            }
        }
        true
    }

    /// Sixteen elements that share bytes, with what nothing is in behind them in shared memory.
    ///
    /// # Safety
    /// As of `element`.
    unsafe fn sixteen(&self, global: usize, shared: usize, there: bool) {
        for word in 0..PIECE / 4 {
            let is_data = 4 * word < self.bytes();
            let (global, shared) = (global + 4 * word, shared + 4 * word);
            // SAFETY: the caller's promise, for each of their words.
            unsafe {
                match self.direction {
                    Direction::Load => {
                        let value = if is_data && there { read(global, 4) } else { 0 };
                        write(shared, 4, value);
                    }
                    Direction::Store if is_data && there => write(global, 4, read(shared, 4)),
                    _ => {}
                }
            }
        }
    }

    /// # Safety
    /// `shared` can be written or read, and `global` too where the element is `there`; both aligned.
    unsafe fn element(&self, global: usize, shared: usize, there: bool) {
        match self.direction {
            Direction::Load => {
                let value = if there {
                    // SAFETY: the caller's promise.
                    converted(self.map.element, unsafe { read(global, self.bytes()) })
                } else {
                    self.fill()
                };
                // SAFETY: the caller's promise.
                unsafe { write(shared, self.bytes(), value) }
            }
            Direction::Store if there => {
                // SAFETY: as above.
                unsafe { write(global, self.bytes(), read(shared, self.bytes())) }
            }
            Direction::Reduce(op) if there => {
                // SAFETY: as above.
                unsafe { reduce(self.map.element, op, global, read(shared, self.bytes())) }
            }
            _ => {}
        }
    }

    fn bytes(&self) -> usize {
        self.map.element.bytes()
    }

    /// What stands for an element out of bounds.
    fn fill(&self) -> u64 {
        self.fill_word() >> (64 - 8 * self.bytes())
    }

    /// As many elements out of bounds as a word has.
    fn fill_word(&self) -> u64 {
        let is_nan = self.map.nan_fill && self.map.element.is_float();
        if is_nan { u64::from(OOB_NAN) * 0x0001_0001_0001_0001 } else { 0 }
    }
}

/// Eight bytes of elements, each of which is aligned.
#[repr(C, packed)]
struct Apart(u64);

/// # Safety
/// Eight bytes can be read at `at`.
unsafe fn read_apart(at: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (at as *const Apart).read_volatile().0 }
}

/// # Safety
/// Eight bytes can be written at `at`.
unsafe fn write_apart(at: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { (at as *mut Apart).write_volatile(Apart(value)) }
}

/// # Safety
/// `bytes` (1, 2, 4 or 8) can be read at `at`, aligned.
unsafe fn read(at: usize, bytes: usize) -> u64 {
    // SAFETY: the caller's promise, in each arm.
    unsafe {
        match bytes {
            1 => (at as *const u8).read_volatile().into(),
            2 => (at as *const u16).read_volatile().into(),
            4 => (at as *const u32).read_volatile().into(),
            _ => (at as *const u64).read_volatile(),
        }
    }
}

/// # Safety
/// `bytes` (1, 2, 4 or 8) can be written at `at`, aligned.
unsafe fn write(at: usize, bytes: usize, value: u64) {
    // SAFETY: the caller's promise, in each arm.
    unsafe {
        match bytes {
            1 => (at as *mut u8).write_volatile(value as u8),
            2 => (at as *mut u16).write_volatile(value as u16),
            4 => (at as *mut u32).write_volatile(value as u32),
            _ => (at as *mut u64).write_volatile(value),
        }
    }
}

/// What the element types that say more than their width do on the way to shared memory.
fn converted(element: Element, bits: u64) -> u64 {
    let flush = |bits: u32| if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits };
    let round = |bits: u32| {
        if bits & 0x7f80_0000 == 0x7f80_0000 {
            return bits;
        }
        // To nearest even at 10 bits of fraction; the manual does not say which way.
        (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff
    };
    let word = bits as u32;
    match element {
        Element::F32Ftz => flush(word).into(),
        Element::Tf32 => round(word).into(),
        Element::Tf32Ftz => round(flush(word)).into(),
        _ => bits,
    }
}

/// One element of a reduction, atomically.
///
/// # Safety
/// `global` is an aligned element that can be read and written.
unsafe fn reduce(element: Element, op: u32, global: usize, with: u64) {
    let order = Ordering::Relaxed;
    // SAFETY: the caller's promise, in each arm. The result is not needed: every update succeeds in the end.
    unsafe {
        match element.bytes() {
            2 => {
                let at = AtomicU16::from_ptr(global as *mut u16);
                let _ =
                    at.fetch_update(order, order, |old| Some(reduced(element, op, old.into(), with) as u16));
            }
            4 => {
                let at = AtomicU32::from_ptr(global as *mut u32);
                let _ =
                    at.fetch_update(order, order, |old| Some(reduced(element, op, old.into(), with) as u32));
            }
            8 => {
                let at = AtomicU64::from_ptr(global as *mut u64);
                let _ = at.fetch_update(order, order, |old| Some(reduced(element, op, old, with)));
            }
            // PTX has no reductions of bytes.
            _ => {}
        }
    }
}

/// The operations of `compiler::ir::TensorCopy::flags`.
fn reduced(element: Element, op: u32, old: u64, with: u64) -> u64 {
    match element {
        Element::F16 => {
            half::to_bits(float_op(op, half::of_bits(old as u16), half::of_bits(with as u16))).into()
        }
        Element::Bf16 => {
            let widened = |bits: u64| f32::from_bits((bits as u32) << 16);
            bf16_bits(float_op(op, widened(old), widened(with))).into()
        }
        Element::F32 | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz => {
            let [old, with] = [old, with].map(|bits| f32::from_bits(converted(element, bits) as u32));
            float_op(op, old, with).to_bits().into()
        }
        Element::F64 if op == 2 => (f64::from_bits(old) + f64::from_bits(with)).to_bits(),
        Element::S32 if matches!(op, 3 | 4) => {
            let [old, with] = [old, with].map(|bits| (bits as u32).cast_signed());
            (if op == 3 { old.min(with) } else { old.max(with) }).cast_unsigned().into()
        }
        Element::S64 if matches!(op, 3 | 4) => {
            let [old, with] = [old, with].map(u64::cast_signed);
            (if op == 3 { old.min(with) } else { old.max(with) }).cast_unsigned()
        }
        _ => match op {
            2 => old.wrapping_add(with),
            3 => old.min(with),
            4 => old.max(with),
            5 if old >= with => 0,
            5 => old + 1,
            6 if old == 0 || old > with => with,
            6 => old - 1,
            7 => old & with,
            8 => old | with,
            _ => old ^ with,
        },
    }
}

/// Addition, and the smaller or larger number; a NaN loses.
fn float_op(op: u32, old: f32, with: f32) -> f32 {
    match op {
        3 if old == with => {
            if old.is_sign_negative() {
                old
            } else {
                with
            }
        }
        4 if old == with => {
            if old.is_sign_negative() {
                with
            } else {
                old
            }
        }
        3 => old.min(with),
        4 => old.max(with),
        _ => old + with,
    }
}

/// To nearest even; a NaN is the canonical one.
fn bf16_bits(value: f32) -> u16 {
    if value.is_nan() {
        return 0x7fff;
    }
    let bits = value.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

pub(super) mod half {
    pub fn of_bits(bits: u16) -> f32 {
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 0x3ff));
        match exponent {
            31 if fraction == 0.0 => sign * f32::INFINITY,
            31 => f32::NAN,
            0 => sign * fraction * 2f32.powi(-24),
            _ => sign * (1024.0 + fraction) * 2f32.powi(exponent - 25),
        }
    }

    /// To nearest even; a NaN is the canonical one.
    pub fn to_bits(value: f32) -> u16 {
        if value.is_nan() {
            return 0x7fff;
        }
        let sign = (value.to_bits() >> 16 & 0x8000) as u16;
        let magnitude = value.abs();
        if magnitude >= 65520.0 {
            return sign | 0x7c00;
        }
        // Units of the last place: 2^-24 below the normal numbers, 2^(exponent - 10) in them.
        let exponent = ((magnitude.to_bits() >> 23).cast_signed() - 127).max(-14);
        let units = (magnitude * 2f32.powi(10 - exponent)).round_ties_even() as u16;
        // A carry out of the fraction goes up into the exponent, as it should.
        sign | ((((exponent + 14) as u16) << 10) + units)
    }
}

#[cfg(test)]
mod tests {
    use compiler::ir::{TensorCopy, TensorDirection};

    use super::*;

    #[repr(align(128))]
    struct Aligned<const N: usize>([u8; N]);

    /// What a copy between `memory`, which the map describes, and `shared` reports.
    fn copied<const N: usize>(
        map: TensorMap,
        memory: &mut [u8],
        shared: &mut Aligned<N>,
        at: [i32; 5],
        direction: TensorDirection,
        four_rows: bool,
    ) -> i32 {
        let map = TensorMap { address: memory.as_mut_ptr() as u64, ..map };
        let bytes = Aligned(map.encode());
        let flags = TensorCopy { direction, rank: map.rank, im2col: false, four_rows }.flags();
        let [c0, c1, c2, c3, c4] = at;
        // SAFETY: a map of that memory, and room for the box.
        unsafe { copy(&raw const bytes.0, shared.0.as_mut_ptr(), c0, c1, c2, c3, c4, 0, flags) }
    }

    fn matrix(element: Element, columns: u64, rows: u64, row_bytes: u64, box_columns: u16) -> TensorMap {
        TensorMap {
            strides: [row_bytes, 0, 0, 0],
            dims: [columns, rows, 1, 1, 1],
            box_dims: [box_columns, 1, 1, 1, 1],
            steps: [1; 5],
            rank: 2,
            element,
            ..TensorMap::default()
        }
    }

    #[test]
    fn four_rows_are_gathered_and_scattered() {
        let mut memory: Vec<u8> = (0..8 * 32).map(|byte| byte as u8).collect();
        let map = matrix(Element::U8, 32, 8, 32, 16);
        let mut shared = Aligned([0xa5; 128]);
        let at = [16, 3, 0, 7, 9];
        let bytes = copied(map, &mut memory, &mut shared, at, TensorDirection::Load, true);
        assert_eq!(bytes, 64);
        for (place, row) in [3, 0, 7].into_iter().enumerate() {
            assert_eq!(shared.0[16 * place..][..16], memory[32 * row + 16..][..16], "row {row}");
        }
        assert_eq!(shared.0[48..64], [0; 16], "a row that is not there");
        assert_eq!(shared.0[64..], [0xa5; 64]);
        let before = memory.clone();
        shared.0[..64].fill(7);
        copied(map, &mut memory, &mut shared, at, TensorDirection::Store, true);
        for (at, (new, old)) in memory.iter().zip(&before).enumerate() {
            let is_stored = at % 32 >= 16 && [3, 0, 7].contains(&(at / 32));
            assert_eq!(*new, if is_stored { 7 } else { *old }, "byte {at}");
        }
    }

    #[test]
    fn elements_that_share_bytes_are_padded_in_shared_memory_or_not() {
        for (element, global, padded) in
            [(Element::U4, 8, 8), (Element::U4Padded, 8, 16), (Element::U6Padded, 12, 16)]
        {
            let row_bytes = 256 / 16 * global;
            let mut memory: Vec<u8> = (0..2 * row_bytes).map(|byte| byte as u8).collect();
            let map = matrix(element, 256, 2, row_bytes as u64, 128);
            let mut shared = Aligned([0xa5; 128]);
            let load = TensorDirection::Load;
            let bytes = copied(map, &mut memory, &mut shared, [128, 1, 0, 0, 0], load, false);
            assert_eq!(bytes as usize, row_bytes / 2, "{element:?}");
            let second_half = memory[row_bytes + row_bytes / 2..].chunks(global);
            for (there, here) in second_half.zip(shared.0.chunks(padded)) {
                assert_eq!((&here[..global], here[global..].iter().all(|&byte| byte == 0)), (there, true));
            }
            let before = memory.clone();
            let store = TensorDirection::Store;
            copied(map, &mut memory, &mut shared, [0, 0, 0, 0, 0], store, false);
            assert_eq!(memory[..row_bytes / 2], before[row_bytes + row_bytes / 2..], "{element:?}");
            assert_eq!(memory[row_bytes / 2..], before[row_bytes / 2..], "{element:?}");
        }
    }

    #[test]
    fn halves_round_to_nearest_even() {
        for bits in (0..0x7c00u16).chain(0x8000..0xfc00) {
            assert_eq!(half::to_bits(half::of_bits(bits)), bits);
        }
        // Between neighbours: ties go to the even one, everything else to the nearer.
        for bits in 0..0x7bffu16 {
            let (low, high) = (half::of_bits(bits), half::of_bits(bits + 1));
            let middle = (low + high) / 2.0;
            assert_eq!(half::to_bits(middle), bits + bits % 2);
            assert_eq!(half::to_bits(middle.next_up()), bits + 1);
            assert_eq!(half::to_bits(middle.next_down()), bits);
        }
        assert_eq!(half::to_bits(65520.0), 0x7c00);
        assert_eq!(half::to_bits(65519.0), 0x7bff);
    }
}
