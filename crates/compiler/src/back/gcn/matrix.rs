//! Matrix products of a warp: each lane computes the elements of D that it holds, and reads the rows of A and the columns
//! of B that they take from the lanes that have them.
//!
//! The order of the sums is the CPU's (`llvm::inst::matrix`): floats begin with C and add one exact product after the
//! other, k ascending; halves are rounded once, at the end; integers are summed before C is added.

use std::collections::HashMap;

use super::code::{Code, Result};
use crate::back::llvm::inst::{float, matrix, minifloat, round, wide};
use crate::back::llvm::{Builder, Type, Unsupported, Val};
use crate::ir::{Float, FloatMode, Num, Round};
use crate::matrix::{BitProduct, Element, LANES, Metadata, Mma, Part};

/// Lanes that an element is read from, one for each lane, and where it is in them.
struct Source {
    lanes: Vec<u32>,
    register: u32,
    nth: u32,
}

struct Product<'m> {
    mma: &'m Mma,
    args: &'m [Val],
    /// Where the elements of A and of B are held, by [`place`].
    held: [Vec<Option<(u32, u32, u32)>>; 2],
    /// Registers of other lanes that were read.
    read: HashMap<(bool, u32, Vec<u32>), Val>,
    /// Metadata of other lanes that was read.
    metadata: HashMap<Vec<u32>, Val>,
}

impl Code<'_> {
    pub fn mma(&mut self, mma: &Mma, args: &[Val]) -> Result<Vec<Val>> {
        let mut product =
            Product { mma, args, held: [vec![], vec![]], read: HashMap::new(), metadata: HashMap::new() };
        for part in [Part::A, Part::B] {
            let held = &mut product.held[usize::from(part == Part::B)];
            held.resize((mma.products() * mma.size(part).0 * mma.size(part).1) as usize, None);
            for lane in 0..LANES {
                for register in 0..mma.registers(part) {
                    for nth in 0..steps_of(mma.element(part)) {
                        let at = mma.position(part, lane, register, nth);
                        let column = column(mma.element(part), at.column);
                        let cell = &mut held[place(mma, part, at.product, at.row, column)];
                        cell.get_or_insert((lane, register, nth));
                    }
                }
            }
        }
        let per = mma.element(Part::D).per_register();
        let mut results = vec![];
        for register in 0..mma.registers(Part::D) {
            let mut elements = vec![];
            for nth in 0..per {
                elements.push(self.element_of_d(&mut product, register, nth)?);
            }
            results.push(self.register_of_d(mma, &elements));
        }
        Ok(results)
    }

    fn element_of_d(&mut self, product: &mut Product<'_>, register: u32, nth: u32) -> Result<Val> {
        let mma = product.mma;
        let n_a = mma.registers(Part::A) + mma.registers(Part::B);
        // C lies as D does.
        let per_c = mma.element(Part::C).per_register();
        let index = register * mma.element(Part::D).per_register() + nth;
        let c_register = &product.args[(n_a + index / per_c) as usize];
        let c = self.number(mma.c, c_register, index % per_c);
        let mut sum = if mma.c == Element::S32 { Builder::int(c.ty, 0) } else { c.clone() };
        let depth = mma.size(Part::A).1 / if mma.a == Element::B1 { 32 } else { 1 };
        for k in 0..depth {
            let a = self.factor(product, Part::A, (register, nth), k)?;
            let b = match mma.selector {
                None => self.factor(product, Part::B, (register, nth), k)?,
                Some(_) => self.chosen(product, (register, nth), k)?,
            };
            sum = self.add_product(mma, &sum, &a, &b);
        }
        Ok(match mma.d {
            Element::S32 if mma.saturates => self.b.same("sadd.sat", &[&c, &sum]),
            Element::S32 => self.b.add(&c, &sum),
            _ => sum,
        })
    }

    fn add_product(&mut self, mma: &Mma, sum: &Val, a: &Val, b: &Val) -> Val {
        match mma.a {
            Element::B1 => {
                let op = if mma.bit_product == BitProduct::And { "and" } else { "xor" };
                let bits = self.b.bin(op, a, b);
                let count = self.b.same("ctpop", &[&bits]);
                self.b.add(sum, &count)
            }
            Element::F64 if mma.round != Round::Nearest => wide::fma(&mut self.b, mma.round, a, b, sum),
            element if element.is_int() => {
                let product = self.b.mul(a, b);
                self.b.add(sum, &product)
            }
            _ => self.b.fma(a, b, sum),
        }
    }

    /// The element of A (B) that the element of D takes at step `k`.
    fn factor(&mut self, product: &mut Product<'_>, part: Part, d: (u32, u32), k: u32) -> Result<Val> {
        let mma = product.mma;
        let source = source(product, part, d, k)
            .ok_or_else(|| Unsupported("a product whose lanes hold different elements".to_owned()))?;
        let first = if part == Part::A { 0 } else { mma.registers(Part::A) };
        let key = (part == Part::A, source.register, source.lanes);
        let word = match product.read.get(&key) {
            Some(word) => word.clone(),
            None => {
                let own = product.args[(first + source.register) as usize].clone();
                let from = self.lane_of(&key.2)?;
                let word = self.read_register(&own, &from);
                product.read.insert(key, word.clone());
                word
            }
        };
        Ok(self.number(mma.element(part), &word, source.nth))
    }

    /// The element of B that a sparse A's `k`-th of the row meets: the metadata says which of several.
    fn chosen(&mut self, product: &mut Product<'_>, d: (u32, u32), k: u32) -> Result<Val> {
        let mma = product.mma;
        let rows = (0..LANES).map(|lane| mma.position(Part::D, lane, d.0, d.1).row);
        let cells: Option<Vec<Metadata>> = rows.map(|row| mma.metadata(row, k)).collect();
        let cells = cells.filter(|cells| {
            cells.iter().all(|it| Metadata { lane: 0, ..*it } == Metadata { lane: 0, ..cells[0] })
        });
        let cells =
            cells.ok_or_else(|| Unsupported("a product whose lanes hold different metadata".to_owned()))?;
        let n_before = [Part::A, Part::B, Part::C].map(|part| mma.registers(part)).iter().sum::<u32>();
        let lanes: Vec<u32> = cells.iter().map(|cell| cell.lane).collect();
        let word = match product.metadata.get(&lanes) {
            Some(word) => word.clone(),
            None => {
                let from = self.lane_of(&lanes)?;
                let word = self.read_lane(&product.args[n_before as usize], &from);
                product.metadata.insert(lanes, word.clone());
                word
            }
        };
        let cell = cells[0];
        let bits = self.b.bin_int("lshr", &word, i128::from(cell.shift));
        let bits = self.b.bin_int("and", &bits, i128::from(cell.mask));
        let mut value = self.factor(product, Part::B, d, cell.base)?;
        for choice in 1..=cell.mask {
            let other = self.factor(product, Part::B, d, cell.base + cell.scale * choice)?;
            let is_it = self.b.icmp_int("eq", &bits, i128::from(choice));
            value = self.b.select(&is_it, &other, &value);
        }
        Ok(value)
    }

    /// A function of the own lane: every bit of it is a bit of the lane or a constant.
    fn lane_of(&mut self, lanes: &[u32]) -> Result<Val> {
        let base = lanes[0];
        let images: Vec<u32> = (0..5).map(|bit| lanes[1 << bit] ^ base).collect();
        let is_moved = |lane: u32| {
            (0..5).filter(|bit| lane >> bit & 1 == 1).fold(base, |sum, bit| sum ^ images[bit as usize])
        };
        let is_simple = images.iter().all(|image| image.count_ones() <= 1 && image & base == 0);
        if !is_simple || (0..LANES).any(|lane| is_moved(lane) != lanes[lane as usize]) {
            return Err(Unsupported("a product whose lanes lie otherwise".to_owned()));
        }
        let own = self.lane();
        let mut from = Builder::int(own.ty, i128::from(base));
        for distance in -4i32..=4 {
            let moved = (0..5i32).filter(|&bit| {
                let image = images[bit as usize];
                image != 0 && image.trailing_zeros() as i32 == bit + distance
            });
            let mask = moved.fold(0u32, |mask, bit| mask | 1 << bit);
            if mask == 0 {
                continue;
            }
            let bits = self.b.bin_int("and", &own, i128::from(mask));
            let bits = match distance {
                0 => bits,
                1.. => self.b.bin_int("shl", &bits, i128::from(distance)),
                _ => self.b.bin_int("lshr", &bits, i128::from(-distance)),
            };
            from = self.b.or(&from, &bits);
        }
        Ok(from)
    }

    /// The register of another lane, 32 or 64 bits.
    fn read_register(&mut self, register: &Val, from: &Val) -> Val {
        let bits = self.b.to_bits(register);
        if bits.ty.bits() == 32 {
            return self.read_lane(&bits, from);
        }
        let low = self.b.resize(&bits, 32, false);
        let high = self.b.bin_int("lshr", &bits, 32);
        let high = self.b.resize(&high, 32, false);
        let [low, high] = [low, high].map(|half| {
            let read = self.read_lane(&half, from);
            self.b.resize(&read, 64, false)
        });
        let high = self.b.bin_int("shl", &high, 32);
        self.b.or(&low, &high)
    }

    /// The `nth` element of a register, as what is computed with.
    fn number(&mut self, element: Element, register: &Val, nth: u32) -> Val {
        let b = &mut self.b;
        let word = b.to_bits(register);
        let part = |b: &mut Builder, bits: u32, nth: u32| {
            let moved = b.bin_int("lshr", &word, i128::from(bits * nth));
            b.resize(&moved, bits, false)
        };
        match element {
            Element::B1 | Element::S32 => word,
            Element::F64 => b.bitcast(&word, word.ty.double()),
            Element::F32 => b.bitcast(&word, word.ty.float()),
            Element::Tf32 => {
                // The 13 bits below a tf32 do not take part.
                let bits = b.bin_int("and", &word, 0xffff_e000);
                b.bitcast(&bits, word.ty.float())
            }
            Element::F16 | Element::Bf16 => {
                let half = part(b, 16, nth);
                let ty = if element == Element::F16 { Float::F16 } else { Float::Bf16 };
                float::widen(b, ty, &half)
            }
            Element::E4m3 | Element::E5m2 => {
                let from = if element == Element::E4m3 { Num::E4m3x2 } else { Num::E5m2x2 };
                let pair = part(b, 16, nth / 2);
                let halves = minifloat::unpack(b, from, FloatMode::default(), &pair);
                let half = b.bin_int("lshr", &halves, i128::from(16 * (nth % 2)));
                let half = b.resize(&half, 16, false);
                float::widen(b, Float::F16, &half)
            }
            Element::S8 | Element::U8 => {
                let byte = part(b, 8, nth);
                b.resize(&byte, 32, element == Element::S8)
            }
            Element::S4 | Element::U4 => {
                let top = b.bin_int("shl", &word, i128::from(28 - 4 * nth));
                b.bin_int(if element == Element::S4 { "ashr" } else { "lshr" }, &top, 28)
            }
        }
    }

    fn register_of_d(&mut self, mma: &Mma, elements: &[Val]) -> Val {
        let word = Type::int(32, 1);
        match mma.d {
            Element::F16 => {
                let mut all = Builder::int(word, 0);
                for (nth, element) in elements.iter().enumerate() {
                    let half = round::narrow_f32(&mut self.b, Float::F16, Round::Nearest, element);
                    let half = self.finite(mma, &half, 0x8000, 0x7c00);
                    let half = self.b.resize(&half, 32, false);
                    let half = self.b.bin_int("shl", &half, 16 * nth as i128);
                    all = self.b.or(&all, &half);
                }
                all
            }
            Element::F32 => {
                let bits = self.b.to_bits(&elements[0]);
                let bits = self.finite(mma, &bits, 0x8000_0000, 0x7f80_0000);
                self.b.bitcast(&bits, bits.ty.float())
            }
            _ => elements[0].clone(),
        }
    }

    fn finite(&mut self, mma: &Mma, bits: &Val, sign: i128, infinity: i128) -> Val {
        if mma.saturates { matrix::finite(&mut self.b, bits, sign, infinity) } else { bits.clone() }
    }
}

/// Bits of a word are multiplied together.
fn steps_of(element: Element) -> u32 {
    if element == Element::B1 { 1 } else { element.per_register() }
}

fn column(element: Element, column: u32) -> u32 {
    if element == Element::B1 { column / 32 } else { column }
}

/// Number of an element of A or B.
fn place(mma: &Mma, part: Part, product: u32, row: u32, column: u32) -> usize {
    let (rows, columns) = mma.size(part);
    ((product * rows + row) * columns + column) as usize
}

/// `None` where lanes find it in different registers.
fn source(product: &Product<'_>, part: Part, (register, nth): (u32, u32), k: u32) -> Option<Source> {
    let mut lanes = vec![];
    let mut place = None;
    for lane in 0..LANES {
        let d = product.mma.position(Part::D, lane, register, nth);
        let row = if part == Part::A { d.row } else { d.column };
        let held = &product.held[usize::from(part == Part::B)];
        let (from, register, nth) = (*held.get(self::place(product.mma, part, d.product, row, k))?)?;
        if *place.get_or_insert((register, nth)) != (register, nth) {
            return None;
        }
        lanes.push(from);
    }
    let (register, nth) = place?;
    Some(Source { lanes, register, nth })
}
