//! `mma.sync` and `mma.sp.sync`: the matrix product of a warp, fragments in registers.

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::operand::immediate;
use crate::ir::{IntBin, Op, Round, Special, Ty, U32, Value};
use crate::matrix::{BitProduct, Element, Mma, Part, Quads, Scale, Scales};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

pub(super) fn element(word: &str) -> Option<Element> {
    Some(match word {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "tf32" => Element::Tf32,
        "e4m3" => Element::E4m3,
        "e5m2" => Element::E5m2,
        "e2m3" => Element::E2m3,
        "e3m2" => Element::E3m2,
        "e2m1" => Element::E2m1,
        "f32" => Element::F32,
        "f64" => Element::F64,
        "s4" => Element::S4,
        "u4" => Element::U4,
        "s8" => Element::S8,
        "u8" => Element::U8,
        "s32" => Element::S32,
        "b1" => Element::B1,
        _ => return None,
    })
}

/// All element types, in the order written.
pub(super) fn elements(i: &mut I<'_, '_>) -> Vec<Element> {
    std::iter::from_fn(|| i.take_map(element)).collect()
}

/// `.row` (false) or `.col` (true)
pub(super) fn by_columns(i: &mut I<'_, '_>) -> Option<bool> {
    i.take_one(&[("row", false), ("col", true)])
}

/// `.xor.popc` or `.and.popc`
pub(super) fn bit_product(i: &mut I<'_, '_>) -> Lower<Option<BitProduct>> {
    let product = i.take_one(&[("xor", BitProduct::Xor), ("and", BitProduct::And)]);
    if product.is_some() {
        i.need_one(&[("popc", ())])?;
        let place = |is: fn(&str) -> bool| i.ast.modifiers.iter().position(|it| is(it.value));
        if place(|it| it == "popc") < place(|it| it == "xor" || it == "and") {
            return Err(Failure::Unsupported);
        }
    }
    Ok(product)
}

/// `m16n8k16`
pub(super) fn shape(word: &str) -> Option<[u32; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// `.kind::…` of `mma`
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    F8f6f4,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

const KINDS: &[(&str, Kind)] = &[
    ("kind::f8f6f4", Kind::F8f6f4),
    ("kind::mxf8f6f4", Kind::Mxf8f6f4),
    ("kind::mxf4", Kind::Mxf4),
    ("kind::mxf4nvf4", Kind::Mxf4nvf4),
];

impl Kind {
    /// `.block_scale{.scale_vec::size}` and `.ue8m0` or `.ue4m3`: how many each row of A has, and what they are. No `size` is the
    /// only one that the kind has.
    fn scales(self, i: &mut I<'_, '_>) -> Lower<Option<Scales>> {
        if self == Kind::F8f6f4 {
            return Ok(None);
        }
        i.need_one(&[("block_scale", ())])?;
        let size = i.take_one(&[("scale_vec::1X", 1), ("scale_vec::2X", 2), ("scale_vec::4X", 4)]);
        let kind = i.need_one(&[("ue8m0", Scale::Ue8m0), ("ue4m3", Scale::Ue4m3)])?;
        let blocks = match (self, size, kind) {
            (Kind::Mxf8f6f4, None | Some(1), Scale::Ue8m0) => 1,
            (Kind::Mxf4, None | Some(2), Scale::Ue8m0) => 2,
            (Kind::Mxf4nvf4, Some(2), Scale::Ue8m0) => 2,
            (Kind::Mxf4nvf4, Some(4), _) => 4,
            _ => return Err(Failure::Unsupported),
        };
        Ok(Some(Scales { blocks, kind }))
    }

    /// Whether NVIDIA's assembler has the shape and types for it.
    fn has(self, mma: &Mma, sparse: bool) -> bool {
        use Element::*;
        let any = |element| matches!(element, E4m3 | E5m2 | E2m3 | E3m2 | E2m1);
        let byte = |element| matches!(element, E4m3 | E5m2);
        let single = mma.c == F32 && mma.d == F32;
        let half = mma.c == F16 && mma.d == F16;
        let k = mma.k / if sparse { 2 } else { 1 };
        let types = match (self, k) {
            (Kind::F8f6f4, 16) if !sparse => (single || half) && byte(mma.a) && byte(mma.b),
            (Kind::F8f6f4, 32) => (single || half) && any(mma.a) && any(mma.b),
            (Kind::Mxf8f6f4, 32) => single && any(mma.a) && any(mma.b),
            (Kind::Mxf4 | Kind::Mxf4nvf4, 64) => single && mma.a == PackedE2m1 && mma.b == PackedE2m1,
            _ => false,
        };
        (mma.m, mma.n) == (16, 8) && types
    }
}

/// Whether the manual has the shape for these types.
pub(super) fn is_legal(mma: &Mma, sparse: bool) -> bool {
    use Element::*;
    let narrow = |element| matches!(element, S4 | U4);
    let byte = |element| matches!(element, S8 | U8);
    let small = |element| matches!(element, E4m3 | E5m2);
    let single = mma.c == F32 && mma.d == F32;
    let half = mma.c == F16 && mma.d == F16;
    let quads = mma.c == F16 && mma.d == F32;
    let whole = mma.c == S32 && mma.d == S32;
    let (m8, m16) = ((mma.m, mma.n) == (8, 8), (mma.m, mma.n) == (16, 8));
    let k = mma.k;
    match (mma.a, mma.b, sparse) {
        (F16, F16, false) if m8 => (single || half || quads) && k == 4,
        (F16, F16, false) => (single || half) && m16 && matches!(k, 8 | 16),
        (Bf16, Bf16, false) => single && m16 && matches!(k, 8 | 16),
        (Tf32, Tf32, false) => single && m16 && matches!(k, 4 | 8),
        (F64, F64, false) => mma.c == F64 && mma.d == F64 && (m8 && k == 4 || m16 && matches!(k, 4 | 8 | 16)),
        (B1, B1, false) => whole && (m8 && k == 128 || m16 && matches!(k, 128 | 256)),
        (a, b, false) if byte(a) && byte(b) => whole && (m8 && k == 16 || m16 && matches!(k, 16 | 32)),
        (a, b, false) if narrow(a) && narrow(b) => whole && (m8 && k == 32 || m16 && matches!(k, 32 | 64)),
        (a, b, false) if small(a) && small(b) => (single || half) && m16 && matches!(k, 16 | 32),
        (F16, F16, true) => (single || half) && m16 && matches!(k, 16 | 32),
        (Bf16, Bf16, true) => single && m16 && matches!(k, 16 | 32),
        (Tf32, Tf32, true) => single && m16 && matches!(k, 8 | 16),
        (a, b, true) if byte(a) && byte(b) => whole && m16 && matches!(k, 32 | 64),
        (a, b, true) if narrow(a) && narrow(b) => whole && m16 && matches!(k, 64 | 128),
        (a, b, true) if small(a) && small(b) => single && m16 && k == 64,
        _ => false,
    }
}

/// `mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype{.op.popc} d, a, b, c`, and
/// `mma.sp{::ordered_metadata}…` with the metadata and which lanes have it; with `.kind::…` narrower floats, and scales of blocks
/// along k with which byte of which lanes has them
pub(super) fn mma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let ordered = i.take_one(&[("sp", false), ("sp::ordered_metadata", true)]);
    let sparse = ordered.is_some();
    i.need_one(&[("sync", ())])?;
    i.need_one(&[("aligned", ())])?;
    let [m, n, k] = i.take_map(shape).ok_or(Failure::Unsupported)?;
    let a_by_columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let b_by_columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let saturates = i.take("satfinite");
    let bit_product = bit_product(i)?;
    let kind = i.take_one(KINDS);
    let scales = kind.map_or(Ok(None), |kind| kind.scales(i))?;
    let &[d, mut a, mut b, c] = elements(i).as_slice() else { return Err(Failure::Unsupported) };
    if matches!(kind, Some(Kind::Mxf4 | Kind::Mxf4nvf4)) {
        // Two of them share a byte.
        [a, b] = [a, b].map(|it| if it == Element::E2m1 { Element::PackedE2m1 } else { it });
    }
    let round = if a == Element::F64 { i.round().unwrap_or_default() } else { Round::Nearest };
    i.done()?;
    let quads = (a == Element::F16 && k == 4).then_some(Quads { a_by_columns, b_by_columns });
    let mut mma = Mma {
        m,
        n,
        k,
        a,
        b,
        c,
        d,
        quads,
        selector: None,
        scales,
        saturates,
        round,
        bit_product: bit_product.unwrap_or(BitProduct::Xor),
    };
    let is_plain = quads.is_some() || !a_by_columns && b_by_columns;
    let may_saturate = a.is_int() && a != Element::B1;
    let is_there = match kind {
        Some(kind) => ordered != Some(false) && kind.has(&mma, sparse),
        None => is_legal(&mma, sparse),
    };
    if !is_there
        || !is_plain
        || saturates && !may_saturate
        || bit_product.is_some() != (a == Element::B1)
        || round == Round::NearestAway
    {
        return Err(Failure::Unsupported);
    }
    let operand = |nth: usize| i.operand(nth);
    let parts = [operand(1)?, operand(2)?, operand(3)?];
    let mut extra = vec![];
    let mut next = 4;
    if sparse {
        let selector = operand(5)?;
        mma.selector = Some(0);
        let lanes = mma.metadata_lanes();
        mma.selector = match immediate(selector) {
            Some(selector) if selector < u64::from(4 / lanes) => Some(selector as u32),
            _ => {
                return fail(
                    selector.span,
                    format!("the sparsity selector is a constant below {}", 4 / lanes),
                );
            }
        };
        extra.push(l.value(operand(4)?, Type::B32)?);
        next = 6;
    }
    if let Some(scales) = scales {
        for part in [Part::A, Part::B] {
            extra.push(l.scale_word(part, &scales, operand(next)?, operand(next + 1)?)?);
            next += 2;
        }
    }
    if i.count() != next {
        return Err(Failure::Unsupported);
    }
    l.product(&mma, operand(0)?, parts, &extra)
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// All lanes of the warp.
    pub(super) fn whole_warp(&mut self) -> Value {
        self.b.constant(Ty::B32, u32::MAX.into())
    }

    /// The product of the registers that the operands list; more than it takes are repetitions.
    pub(super) fn product(
        &mut self,
        mma: &Mma,
        d: &Operand<'a>,
        parts: [&Operand<'a>; 3],
        extra: &[Value],
    ) -> Lower {
        let mut args = vec![];
        for (part, operand) in [Part::A, Part::B, Part::C].into_iter().zip(parts) {
            args.extend(self.fragment(mma, part, operand)?);
        }
        args.extend(extra);
        args.push(self.whole_warp());
        let results = self.b.emit(Op::Mma(*mma), &args, &mma.results());
        let destinations = self.destinations(d)?;
        if destinations.len() != results.len() {
            return fail(d.span, format!("expected {} registers", results.len()));
        }
        for (var, value) in destinations.into_iter().zip(results) {
            self.write_extended(var, value, false, d.span)?;
        }
        Ok(())
    }

    /// `scale-data, {byte-id, thread-id}`: the word of each lane in which the product looks for its scales, lowest byte first. Lanes
    /// of four with the id, of A two side by side, have them in the bytes from the id on.
    fn scale_word(
        &mut self,
        part: Part,
        scales: &Scales,
        word: &Operand<'a>,
        ids: &Operand<'a>,
    ) -> Lower<Value> {
        let (OperandKind::Vector(list), true) = (&ids.kind, immediate(word).is_none()) else {
            return fail(ids.span, "expected {byte-id, thread-id}");
        };
        let [byte, thread] = list.as_slice() else { return fail(ids.span, "expected {byte-id, thread-id}") };
        let &[mut word] = self.values(word, Type::B32)?.as_slice() else {
            return fail(word.span, "expected one register");
        };
        let (byte_step, threads) = (scales.blocks, if part == Part::A { 2 } else { 4 });
        match immediate(byte) {
            Some(0) => {}
            Some(id) if id < 4 && id % u64::from(byte_step) == 0 => {
                word = self.word_op(IntBin::Shr, word, 8 * id as u32);
            }
            Some(_) => return fail(byte.span, "no such byte of a word has the first scale"),
            None => {
                let id = self.value(byte, Type::U16)?;
                let id = self.b.emit1(Op::Zext, &[id], Ty::B32);
                let id = self.word_op(IntBin::And, id, 4 - byte_step);
                let bits = self.word_op(IntBin::Shl, id, 3);
                word = self.b.emit1(Op::Int(IntBin::Shr, U32), &[word, bits], Ty::B32);
            }
        }
        let id = match immediate(thread) {
            Some(0) => return Ok(word),
            Some(id) if id < threads => self.word(id as u32),
            Some(_) => return fail(thread.span, format!("a thread-id here is below {threads}")),
            None => {
                let id = self.value(thread, Type::U16)?;
                let id = self.b.emit1(Op::Zext, &[id], Ty::B32);
                self.word_op(IntBin::And, id, threads as u32 - 1)
            }
        };
        // The product looks at the first lanes of the four.
        let id = if part == Part::A { self.word_op(IntBin::Shl, id, 1) } else { id };
        let lane = self.b.emit1(Op::Special(Special::LaneId), &[], Ty::B32);
        let lane = self.b.emit1(Op::Int(IntBin::Add, U32), &[lane, id], Ty::B32);
        let lane = self.word_op(IntBin::And, lane, 31);
        Ok(self.value_of_lane(word, lane))
    }

    fn fragment(&mut self, mma: &Mma, part: Part, operand: &Operand<'a>) -> Lower<Vec<Value>> {
        let ty = match mma.element(part) {
            Element::F32 => Type::F32,
            Element::F64 => Type::F64,
            _ => Type::B32,
        };
        let mut values = self.values(operand, ty)?;
        let count = mma.registers(part) as usize;
        let written = super::wmma::written_registers(mma, part) as usize;
        if values.len() != written {
            return fail(operand.span, format!("expected {written} registers"));
        }
        values.truncate(count);
        Ok(values)
    }
}
