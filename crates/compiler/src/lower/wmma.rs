//! `wmma`: matrices between memory and fragments, and their product. PTX leaves the fragments' layout open; it is that
//! of `mma.sync` here ([`crate::matrix`]). Loads and stores are each lane's own, behind a meeting of the warp.

use std::collections::HashMap;

use ptx::ast::Type;

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mma::{bit_product, by_columns, elements, shape};
use super::operand::{Place, immediate, space};
use crate::ir::{IntBin, Mem, Op, Order, Round, Scope, Space, Ty, U16, U64, Value};
use crate::matrix::{BitProduct, Element, Mma, Part};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// The registers of a fragment as PTX lists them: 16-bit floats of A and B for the shapes of `wmma` have eight, which is
/// more than the elements of some matrices fill.
pub(super) fn written_registers(mma: &Mma, part: Part) -> u32 {
    let is_wmma = mma.m * mma.n == 256;
    if is_wmma && mma.a == Element::F16 && matches!(part, Part::A | Part::B) {
        8
    } else {
        mma.registers(part)
    }
}

/// A product of one shape and one type of element; C and D fit it.
fn of_shape([m, n, k]: [u32; 3], a: Element) -> Mma {
    let c = match a {
        Element::F64 => Element::F64,
        a if a.is_int() => Element::S32,
        _ => Element::F32,
    };
    Mma::plain([m, n, k], [a, a, c])
}

/// Whether the manual has the shape for elements of A and B.
fn is_legal(mma: &Mma) -> bool {
    let shape = (mma.m, mma.n, mma.k);
    match mma.a {
        Element::F16 | Element::Bf16 | Element::S8 | Element::U8 => {
            matches!(shape, (16, 16, 16) | (32, 8, 16) | (8, 32, 16))
        }
        Element::Tf32 => shape == (16, 16, 8),
        Element::F64 => shape == (8, 8, 4),
        Element::S4 | Element::U4 => shape == (8, 8, 32),
        Element::B1 => shape == (8, 8, 128),
        _ => false,
    }
}

/// Of what product `element` is a C or D; its shape says.
fn accumulated(shape: [u32; 3], element: Element) -> Option<Mma> {
    let candidates: &[Element] = match element {
        Element::F16 => &[Element::F16],
        Element::F32 => &[Element::F16, Element::Tf32],
        Element::F64 => &[Element::F64],
        Element::S32 => &[Element::S8, Element::S4, Element::B1],
        _ => &[],
    };
    let mma = candidates.iter().map(|&a| of_shape(shape, a)).find(is_legal)?;
    Some(Mma { c: element, d: element, ..mma })
}

/// `wmma.load.{a,b,c}…`, `wmma.store.d…`, `wmma.mma…`
pub(super) fn wmma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    match i.need_one(&[("load", 0), ("store", 1), ("mma", 2)])? {
        0 => load(l, i),
        1 => store(l, i),
        _ => product(l, i),
    }
}

/// `wmma.mma{.op.popc}.sync.aligned.alayout.blayout.shape{.rnd}.dtype{.atype.btype}.ctype{.satfinite} d, a, b, c`
fn product<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("sync", ())])?;
    // Before PTX 6.3 it was not written.
    i.take("aligned");
    let bits = bit_product(i)?;
    let a_by_columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let b_by_columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let shape = i.take_map(shape).ok_or(Failure::Unsupported)?;
    let saturates = i.take("satfinite");
    let (d, a, b, c) = match *elements(i).as_slice() {
        [d, c] => (d, Element::F16, Element::F16, c),
        [d, a, b, c] if a != Element::F16 => (d, a, b, c),
        _ => return Err(Failure::Unsupported),
    };
    let round = if a == Element::F64 { i.round() } else { None };
    i.done()?;
    let mut mma = of_shape(shape, a);
    let fits = match a {
        Element::F16 => [c, d].iter().all(|it| matches!(it, Element::F16 | Element::F32)),
        _ => (c, d) == (mma.c, mma.d),
    };
    let may_saturate = a == Element::F16 || a.is_int() && a != Element::B1;
    // Elements smaller than a byte lie along k in memory too.
    let is_plain = a.bits() >= 8 || !a_by_columns && b_by_columns;
    if !is_legal(&mma)
        || a != b
        || !fits
        || !is_plain
        || saturates && !may_saturate
        || bits.is_some() != (a == Element::B1)
        || round == Some(Round::NearestAway)
    {
        return Err(Failure::Unsupported);
    }
    mma = Mma {
        c,
        d,
        // Floats do not, whatever the manual of PTX 6.4 and earlier says: on an H200 infinities and NaNs stay what they are.
        saturates: saturates && a.is_int(),
        round: round.unwrap_or_default(),
        bit_product: bits.unwrap_or(BitProduct::Xor),
        ..mma
    };
    let [d, a, b, c] = i.operands()?;
    l.product(&mma, d, [a, b, c], &[])
}

/// A matrix in memory and the fragment that it fills.
struct Transfer {
    mma: Mma,
    part: Part,
    /// Neighbours in memory are neighbours along k, or in a row of C.
    along: bool,
    space: Option<Space>,
}

fn transfer(i: &mut I<'_, '_>, part: Part) -> Lower<Transfer> {
    i.need_one(&[("sync", ())])?;
    // Before PTX 6.3 it was not written.
    i.take("aligned");
    let columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let shape = i.take_map(shape).ok_or(Failure::Unsupported)?;
    let space = i.take_map(space);
    let &[element] = elements(i).as_slice() else { return Err(Failure::Unsupported) };
    i.done()?;
    let mma = match part {
        Part::A | Part::B => Some(of_shape(shape, element)).filter(is_legal),
        Part::C | Part::D => accumulated(shape, element),
    };
    let mma = mma.ok_or(Failure::Unsupported)?;
    let along = columns == (part == Part::B);
    if !matches!(space, None | Some(Space::Global | Space::Shared)) || element.bits() < 8 && !along {
        return Err(Failure::Unsupported);
    }
    Ok(Transfer { mma, part, along, space })
}

/// `wmma.load.{a,b,c}.sync.aligned.layout.shape{.ss}.type r, [p]{, stride}`
fn load<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let part = i.need_one(&[("a", Part::A), ("b", Part::B), ("c", Part::C)])?;
    let transfer = transfer(i, part)?;
    let d = i.operand(0)?;
    let mut matrix = matrix(l, i, &transfer, 1)?;
    let values = matrix.load(l);
    let destinations = l.destinations(d)?;
    let written = written_registers(&transfer.mma, part) as usize;
    if destinations.len() != written {
        return fail(d.span, format!("expected {written} registers"));
    }
    for (var, value) in destinations.into_iter().zip(values.iter().cycle()) {
        l.write_extended(var, *value, false, d.span)?;
    }
    Ok(())
}

/// `wmma.store.d.sync.aligned.layout.shape{.ss}.type [p], r{, stride}`
fn store<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("d", ())])?;
    let transfer = transfer(i, Part::D)?;
    let operand = i.operand(1)?;
    let ty = match transfer.mma.d {
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
        _ => Type::B32,
    };
    let values = l.values(operand, ty)?;
    let mut matrix = matrix(l, i, &transfer, 0)?;
    let count = transfer.mma.registers(Part::D) as usize;
    if values.len() != count {
        return fail(operand.span, format!("expected {count} registers"));
    }
    matrix.store(l, &values);
    Ok(())
}

/// Addresses of this lane's elements.
struct Matrix<'t> {
    of: &'t Transfer,
    space: Space,
    offset: i64,
    /// Of the lane's first element.
    first: Value,
    /// Bytes from row to row (or column to column), as far as not known.
    stride: Result<u64, Value>,
    /// `first` and so many rows.
    rows: HashMap<u32, Value>,
}

fn matrix<'i, 'a, 't>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    of: &'t Transfer,
    address: usize,
) -> Lower<Matrix<'t>> {
    let operand = i.operand(address)?;
    let (space, base, offset) = match l.place(operand, of.space)? {
        Place::Memory { space, base, offset } => (space, base, offset),
        Place::Buffer { .. } => return fail(operand.span, "a matrix cannot be a parameter"),
    };
    let bits = u64::from(of.mma.element(of.part).bits());
    let (rows, columns) = of.mma.size(of.part);
    let stride = match i.count() {
        2 => Ok(u64::from(if of.along { columns } else { rows }) * bits / 8),
        3 => {
            let elements = i.operand(2)?;
            match immediate(elements) {
                Some(elements) => Ok(elements.wrapping_mul(bits) / 8),
                None => {
                    let elements = l.value(elements, Type::U32)?;
                    let wide = l.b.emit1(Op::Zext, &[elements], Ty::B64);
                    let all = l.by_constant(IntBin::Mul, wide, bits);
                    let three = l.b.constant(Ty::B32, 3);
                    Err(l.b.emit1(Op::Int(IntBin::Shr, U64), &[all, three], Ty::B64))
                }
            }
        }
        _ => return fail(i.ast.span, "expected a fragment, an address and perhaps a stride"),
    };
    let members = l.whole_warp();
    l.b.emit(Op::WarpSync, &[members], &[]);
    let (group, four) = l.row_and_lane();
    let [group, four] = [group, four].map(|it| l.b.emit1(Op::Zext, &[it], Ty::B64));
    // Lane 1 holds the elements right of lane 0's, lane 4 those below.
    let right = u64::from(of.mma.position(of.part, 1, 0, 0).column);
    let (steps, rest, rest_bytes) = if of.along {
        (group, four, right * bits / 8)
    } else {
        (l.by_constant(IntBin::Mul, four, right), group, bits / 8)
    };
    let down = match stride {
        Ok(bytes) => l.by_constant(IntBin::Mul, steps, bytes),
        Err(bytes) => l.b.emit1(Op::Int(IntBin::Mul, U64), &[steps, bytes], Ty::B64),
    };
    let aside = l.by_constant(IntBin::Mul, rest, rest_bytes);
    let lane_offset = l.b.emit1(Op::Int(IntBin::Add, U64), &[down, aside], Ty::B64);
    let first = l.b.emit1(Op::Int(IntBin::Add, U64), &[base, lane_offset], Ty::B64);
    Ok(Matrix { of, space, offset, first, stride, rows: HashMap::new() })
}

impl Lowerer<'_, '_, '_> {
    fn by_constant(&mut self, op: IntBin, a: Value, b: u64) -> Value {
        let b = self.b.constant(Ty::B64, b.into());
        self.b.emit1(Op::Int(op, U64), &[a, b], Ty::B64)
    }
}

impl Matrix<'_> {
    fn element(&self) -> Element {
        self.of.mma.element(self.of.part)
    }

    /// Address and constant offset of an element of this lane.
    fn at(&mut self, l: &mut L<'_, '_, '_>, register: u32, nth: u32) -> (Value, i64) {
        // Lane 0 is at the first row and column of every tile.
        let at = self.of.mma.position(self.of.part, 0, register, nth);
        let (steps, along) = if self.of.along { (at.row, at.column) } else { (at.column, at.row) };
        let bytes = self.offset.wrapping_add(i64::from(along * self.element().bits() / 8));
        match self.stride {
            Ok(stride) => (self.first, bytes.wrapping_add(u64::from(steps).wrapping_mul(stride) as i64)),
            Err(stride) => {
                let first = self.first;
                let row = *self.rows.entry(steps).or_insert_with(|| match steps {
                    0 => first,
                    _ => {
                        let down = l.by_constant(IntBin::Mul, stride, steps.into());
                        l.b.emit1(Op::Int(IntBin::Add, U64), &[first, down], Ty::B64)
                    }
                });
                (row, bytes)
            }
        }
    }

    /// Registers that one access covers, and whether a register is one access.
    fn accesses(&self) -> (u32, bool) {
        let element = self.element();
        let whole = self.of.along || element.per_register() == 1;
        let is_pair =
            matches!(self.of.part, Part::C | Part::D) && element.per_register() == 1 && self.of.along;
        (if is_pair { 2 } else { 1 }, whole)
    }

    fn load(&mut self, l: &mut L<'_, '_, '_>) -> Vec<Value> {
        let element = self.element();
        let (group, whole) = self.accesses();
        let ty = element.register();
        let mut values = vec![];
        for register in (0..self.of.mma.registers(self.of.part)).step_by(group as usize) {
            if whole {
                let (address, offset) = self.at(l, register, 0);
                let types = vec![ty; group as usize];
                values.extend(self.access(l, address, offset, ty.bits(), &types));
                continue;
            }
            let parts: Vec<Value> = (0..element.per_register())
                .map(|nth| {
                    let (address, offset) = self.at(l, register, nth);
                    self.access(l, address, offset, element.bits(), &[Ty::B16])[0]
                })
                .collect();
            values.push(join(l, element, &parts));
        }
        values
    }

    fn access(
        &self,
        l: &mut L<'_, '_, '_>,
        address: Value,
        offset: i64,
        bits: u32,
        types: &[Ty],
    ) -> Vec<Value> {
        let mem = Mem { bits: bits as u8, signed: false };
        let op = Op::Load { space: self.space, mem, offset, order: Order::Weak, scope: Scope::Sys };
        l.b.emit(op, &[address], types)
    }

    fn store(&mut self, l: &mut L<'_, '_, '_>, values: &[Value]) {
        let element = self.element();
        let (group, whole) = self.accesses();
        for (index, chunk) in values.chunks(group as usize).enumerate() {
            let register = index as u32 * group;
            if whole {
                let place = self.at(l, register, 0);
                self.put(l, place, element.register().bits(), chunk);
                continue;
            }
            // Only halves are stored in parts.
            let halves = l.b.emit(Op::Unpack, &chunk[..1], &[Ty::B16, Ty::B16]);
            for (nth, half) in halves.into_iter().enumerate() {
                let place = self.at(l, register, nth as u32);
                self.put(l, place, element.bits(), &[half]);
            }
        }
    }

    fn put(&self, l: &mut L<'_, '_, '_>, (address, offset): (Value, i64), bits: u32, values: &[Value]) {
        let mem = Mem { bits: bits as u8, signed: false };
        let op = Op::Store { space: self.space, mem, offset, order: Order::Weak, scope: Scope::Sys };
        let args: Vec<Value> = std::iter::once(address).chain(values.iter().copied()).collect();
        l.b.emit(op, &args, &[]);
    }
}

/// Elements of 16 or 8 bits as one register, lowest first.
fn join(l: &mut L<'_, '_, '_>, element: Element, parts: &[Value]) -> Value {
    if element.bits() == 16 {
        return l.b.emit1(Op::Pack, parts, Ty::B32);
    }
    let eight = l.b.constant(Ty::B32, 8);
    let halves: Vec<Value> = parts
        .chunks(2)
        .map(|pair| {
            let high = l.b.emit1(Op::Int(IntBin::Shl, U16), &[pair[1], eight], Ty::B16);
            l.b.emit1(Op::Int(IntBin::Or, U16), &[pair[0], high], Ty::B16)
        })
        .collect();
    l.b.emit1(Op::Pack, &halves, Ty::B32)
}
