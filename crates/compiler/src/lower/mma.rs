//! `mma.sync` and `mma.sp.sync`: the matrix product of a warp, fragments in registers.

use ptx::ast::{Operand, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::operand::immediate;
use crate::ir::{Op, Round, Ty, Value};
use crate::matrix::{BitProduct, Element, Mma, Part, Quads};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

pub(super) fn element(word: &str) -> Option<Element> {
    Some(match word {
        "f16" => Element::F16,
        "bf16" => Element::Bf16,
        "tf32" => Element::Tf32,
        "e4m3" => Element::E4m3,
        "e5m2" => Element::E5m2,
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
    }
    Ok(product)
}

/// `m16n8k16`
pub(super) fn shape(word: &str) -> Option<[u32; 3]> {
    let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
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
/// `mma.sp{::ordered_metadata}…` with the metadata and which lanes have it
pub(super) fn mma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let sparse = i.take_map(|word| matches!(word, "sp" | "sp::ordered_metadata").then_some(())).is_some();
    i.need_one(&[("sync", ())])?;
    i.need_one(&[("aligned", ())])?;
    let [m, n, k] = i.take_map(shape).ok_or(Failure::Unsupported)?;
    let a_by_columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let b_by_columns = by_columns(i).ok_or(Failure::Unsupported)?;
    let saturates = i.take("satfinite");
    let bit_product = bit_product(i)?;
    let &[d, a, b, c] = elements(i).as_slice() else { return Err(Failure::Unsupported) };
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
        saturates,
        round,
        bit_product: bit_product.unwrap_or(BitProduct::Xor),
    };
    let is_plain = quads.is_some() || !a_by_columns && b_by_columns;
    let may_saturate = a.is_int() && a != Element::B1;
    if !is_legal(&mma, sparse)
        || !is_plain
        || saturates && !may_saturate
        || bit_product.is_some() != (a == Element::B1)
        || round == Round::NearestAway
    {
        return Err(Failure::Unsupported);
    }
    if !sparse {
        let [d, a, b, c] = i.operands()?;
        return l.product(&mma, d, [a, b, c], None);
    }
    let [d, a, b, c, metadata, selector] = i.operands()?;
    mma.selector = Some(0);
    let lanes = mma.metadata_lanes();
    mma.selector = match immediate(selector) {
        Some(selector) if selector < u64::from(4 / lanes) => Some(selector as u32),
        _ => return fail(selector.span, format!("the sparsity selector is a constant below {}", 4 / lanes)),
    };
    let metadata = l.value(metadata, Type::B32)?;
    l.product(&mma, d, [a, b, c], Some(metadata))
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
        metadata: Option<Value>,
    ) -> Lower {
        let mut args = vec![];
        for (part, operand) in [Part::A, Part::B, Part::C].into_iter().zip(parts) {
            args.extend(self.fragment(mma, part, operand)?);
        }
        args.extend(metadata);
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
