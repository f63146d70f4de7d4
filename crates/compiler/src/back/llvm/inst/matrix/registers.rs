//! A warp's matrix product in vector registers, for settings that hold a value's 32 lanes in one.
//!
//! An element of the result is in the same lane and register as its C. For each step along k its lane takes its row's
//! element of A and its column's element of B from the lanes that have them, which is one shuffle for all lanes; then
//! all lanes multiply and add. The order of the arithmetic is that of the function over memory, so the bits are too.

use std::collections::HashMap;

use super::super::super::builder::{Builder, Val};
use super::super::super::ty::Type;
use super::super::{Result, round};
use super::Writer;
use crate::ir::{Float, Round};
use crate::matrix::{Element, LANES, Mma, Part};

/// The result's registers, or `None` where the layout has no such form.
pub fn product(b: &mut Builder, mma: &Mma, args: &[Val]) -> Result<Option<Vec<Val>>> {
    if mma.quads.is_some() || mma.selector.is_some() {
        return Ok(None);
    }
    let mut writer = Writer { b, mma, name: String::new() };
    if writer.is_directed() {
        return Ok(None);
    }
    let Some(sources) = writer.sources() else { return Ok(None) };
    let (a_count, b_count) = (mma.registers(Part::A) as usize, mma.registers(Part::B) as usize);
    let (a, rest) = args.split_at(a_count);
    let (right, c) = rest.split_at(b_count);
    let starts = writer.elements_of(Part::C, c);
    let zero =
        |start: &Val| if writer.number().is_int() { Builder::bits(start.ty, 0) } else { start.clone() };
    let mut sums: Vec<Val> = starts.iter().map(zero).collect();
    let mut a = Operand { part: Part::A, registers: a, elements: HashMap::new() };
    let mut right = Operand { part: Part::B, registers: right, elements: HashMap::new() };
    // Step by step along k, so that few operands are held at a time.
    for k in 0..writer.depth(Part::A) as usize {
        let mut taken: HashMap<(Part, &Pick), Val> = HashMap::new();
        for (sum, picks) in sums.iter_mut().zip(&sources) {
            let (left_pick, right_pick) = &picks[k];
            let [left, right] = [(&mut a, left_pick), (&mut right, right_pick)].map(|(operand, pick)| {
                let taken = taken.entry((operand.part, pick));
                taken.or_insert_with(|| writer.take(operand, pick)).clone()
            });
            *sum = writer.add_product(sum, &left, &right);
        }
    }
    for (sum, start) in sums.iter_mut().zip(&starts) {
        *sum = writer.finish(sum, Some(start));
    }
    Ok(Some(writer.registers_of(&sums)))
}

/// A or B, and the elements that were unpacked from its registers.
struct Operand<'a> {
    part: Part,
    registers: &'a [Val],
    elements: HashMap<usize, Vec<Val>>,
}

/// Which vector, and each lane's lane in it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Pick {
    vector: usize,
    lanes: Vec<u32>,
}

impl Writer<'_> {
    /// For each vector of the result, the picks of A and B of each step along k.
    fn sources(&self) -> Option<Vec<Vec<(Pick, Pick)>>> {
        let (a, b) = (self.vectors_of(Part::A), self.vectors_of(Part::B));
        let per = self.per_register(Part::D);
        let mut all = vec![];
        for vector in 0..self.mma.registers(Part::D) * per {
            let cells: Vec<_> =
                (0..LANES).map(|lane| self.mma.position(Part::D, lane, vector / per, vector % per)).collect();
            let pick = |of: &HashMap<(u32, u32), (usize, u32)>, cell: &dyn Fn(usize) -> (u32, u32)| {
                let found: Option<Vec<_>> =
                    (0..cells.len()).map(|lane| of.get(&cell(lane)).copied()).collect();
                let found = found?;
                let vector = found.first()?.0;
                let lanes = found.iter().map(|(_, lane)| *lane).collect();
                found.iter().all(|it| it.0 == vector).then_some(Pick { vector, lanes })
            };
            let steps: Option<Vec<_>> = (0..self.depth(Part::A))
                .map(|k| {
                    let left = pick(&a, &|lane| (cells[lane].row, k))?;
                    let right = pick(&b, &|lane| (cells[lane].column, k))?;
                    Some((left, right))
                })
                .collect();
            all.push(steps?);
        }
        Some(all)
    }

    /// Vector and lane of each row and step.
    fn vectors_of(&self, part: Part) -> HashMap<(u32, u32), (usize, u32)> {
        let per = self.per_register(part);
        let mut places = HashMap::new();
        for register in 0..self.mma.registers(part) {
            for lane in 0..LANES {
                for nth in 0..per {
                    let at = self.mma.position(part, lane, register, nth);
                    let step = if self.mma.element(part) == Element::B1 { at.column / 32 } else { at.column };
                    places.insert((at.row, step), ((register * per + nth) as usize, lane));
                }
            }
        }
        places
    }

    /// The registers' elements as numbers: register by register, in each the lowest first.
    fn elements_of(&mut self, part: Part, registers: &[Val]) -> Vec<Val> {
        let per = self.per_register(part);
        let mut all = vec![];
        for register in registers {
            let numbers = self.numbers(self.mma.element(part), register);
            if per == 1 {
                all.push(numbers);
                continue;
            }
            for nth in 0..per {
                let picks: Vec<u32> = (0..LANES).map(|lane| lane * per + nth).collect();
                all.push(self.shuffle(&numbers, &numbers, &picks));
            }
        }
        all
    }

    /// The lanes' elements for one step.
    fn take(&mut self, operand: &mut Operand<'_>, pick: &Pick) -> Val {
        let per = self.per_register(operand.part) as usize;
        let (register, nth) = (pick.vector / per, pick.vector % per);
        let elements = operand.elements.entry(register).or_insert_with(|| {
            let register = &operand.registers[register..=register];
            self.elements_of(operand.part, register)
        });
        let vector = elements[nth].clone();
        self.shuffle(&vector, &vector, &pick.lanes)
    }

    /// Back to the registers of D.
    fn registers_of(&mut self, sums: &[Val]) -> Vec<Val> {
        match self.mma.d {
            Element::F16 => sums.chunks(2).map(|pair| self.halves(&pair[0], &pair[1])).collect(),
            _ => sums.to_vec(),
        }
    }

    fn halves(&mut self, low: &Val, high: &Val) -> Val {
        let [low, high] = [low, high].map(|sum| {
            let bits = round::narrow_f32(self.b, Float::F16, Round::Nearest, sum);
            let bits = self.finite(&bits, 0x8000, 0x7c00);
            let bits = self.b.bitcast(&bits, Type::int(16, LANES));
            self.b.resize(&bits, 32, false)
        });
        let high = self.b.bin_int("shl", &high, 16);
        self.b.or(&low, &high)
    }
}
