//! `wgmma`: the matrix product of four warps, whose factors lie in shared memory as descriptors say. Source: PTX manual,
//! "Asynchronous Warpgroup Level Matrix Instructions".
//!
//! Each warp has 16 rows of A and D, in registers as `mma.m16n8` has them, and reads all of B. So a product is one of
//! `mma` for each 8 columns, done at once: fences and groups have nothing left to order. What the four warps have in common
//! is that none goes on before all have read their factors: whoever waits for a product may let shared memory be overwritten.

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mma::{bit_product, elements, is_legal, shape};
use super::operand::immediate;
use crate::ir::{
    BarrierKind, CLUSTER_SHIFT, Cmp, IntBin, Mem, Op, Order, Round, Scope, Space, Special, Ty, U32, Value,
    WARPGROUP_BARRIERS,
};
use crate::matrix::{BitProduct, Element, Mma, Part};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

const WARPGROUP_THREADS: u32 = 128;

/// `wgmma.mma_async{.sp}…`, `wgmma.fence.sync.aligned`, `wgmma.commit_group.sync.aligned`, `wgmma.wait_group.sync.aligned n`
pub(super) fn wgmma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let what = i.need_one(&[("mma_async", 0), ("fence", 1), ("commit_group", 2), ("wait_group", 3)])?;
    let sparse = what == 0 && i.take("sp");
    i.need_one(&[("sync", ())])?;
    // As ptxas has it: the manual wants the word.
    i.take("aligned");
    match what {
        0 => product(l, i, sparse),
        3 => {
            i.done()?;
            let [n] = i.operands()?;
            if immediate(n).is_none() {
                return fail(n.span, "the number of groups is a constant");
            }
            Ok(())
        }
        _ => {
            i.done()?;
            let [] = i.operands()?;
            Ok(())
        }
    }
}

/// `setmaxnreg.{inc,dec}.sync.aligned.u32 n`: registers are not shared out here.
pub(super) fn setmaxnreg<'i, 'a>(_: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("inc", ()), ("dec", ())])?;
    for word in ["sync", "aligned"] {
        i.need_one(&[(word, ())])?;
    }
    i.need_one(&[("u32", ()), ("s32", ())])?;
    i.done()?;
    let [count] = i.operands()?;
    match immediate(count) {
        Some(count) if (24..=256).contains(&count) && count % 8 == 0 => Ok(()),
        _ => fail(count.span, "the number of registers is a constant from 24 to 256, a multiple of 8"),
    }
}

/// `.shape{.satfinite}.dtype.atype.btype{.and.popc} d, a, b-desc, {metadata, selector, }scale-d{, imm-scale-a, imm-scale-b{{, imm-trans-a}, imm-trans-b}}`
///
/// A sparse A has half of its columns, as `mma.sp` of the same k has them in registers, and lies in shared memory as a dense
/// one of half the width; the metadata lies among the lanes of each warp as `mma.sp` has it.
fn product<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, sparse: bool) -> Lower {
    let [m, n, k] = i.take_map(shape).ok_or(Failure::Unsupported)?;
    let mut saturates = i.take("satfinite");
    let &[d, a, b] = elements(i).as_slice() else { return Err(Failure::Unsupported) };
    saturates |= i.take("satfinite");
    let bits = bit_product(i)?;
    i.done()?;
    let mut mma = Mma {
        m: 16,
        n: 8,
        k,
        a,
        b,
        c: d,
        d,
        quads: None,
        selector: None,
        scales: None,
        saturates,
        round: Round::Nearest,
        bit_product: bits.unwrap_or(BitProduct::Xor),
    };
    let is_bits = a == Element::B1;
    // Whole numbers have fewer widths.
    let has_width = n.is_multiple_of(8)
        && (8..=256).contains(&n)
        && (!a.is_int() || n == 8 || n == 24 || n.is_multiple_of(16));
    // `mma.sp` has no sums of bytes in f16.
    let is_known = is_legal(&mma, sparse)
        || sparse && d == Element::F16 && is_legal(&Mma { c: Element::F32, d: Element::F32, ..mma }, true);
    if m != 64
        || k * a.bits() != if sparse { 512 } else { 256 }
        || !has_width
        || !is_known
        || saturates && (!a.is_int() || is_bits)
        || bits != is_bits.then_some(BitProduct::And)
        || matches!(a, Element::S4 | Element::U4)
    {
        return Err(Failure::Unsupported);
    }
    let operands: Vec<&Operand<'a>> = (0..i.count()).map(|at| i.operand(at)).collect::<Lower<_>>()?;
    let structure = match (sparse, &operands[..]) {
        (true, [_, _, _, metadata, selector, ..]) => {
            mma.selector = Some(0);
            let choices = u64::from(4 / mma.metadata_lanes());
            mma.selector = match immediate(selector) {
                Some(selector) if selector < choices => Some(selector as u32),
                _ => {
                    return fail(
                        selector.span,
                        format!("the sparsity selector is a constant below {choices}"),
                    );
                }
            };
            Some(l.value(metadata, Type::B32)?)
        }
        (true, _) => return fail(i.ast.span, "expected d, a, b, metadata, a selector and scale-d"),
        _ => None,
    };
    let [d, a, b, rest @ ..] = &operands[..] else {
        return fail(i.ast.span, "expected d, a, b and scale-d");
    };
    let n_before = if sparse { 5 } else { 3 };
    let [scale, signs @ ..] = &rest[n_before - 3..] else {
        return fail(i.ast.span, "expected d, a, b and scale-d");
    };
    let is_in_registers = matches!(a.kind, OperandKind::Vector(_));
    let has_transposes = mma.a.bits() == 16;
    let expected = match (mma.a.is_int(), has_transposes, is_in_registers) {
        (true, ..) => 0,
        (_, false, _) => 2,
        (_, true, true) => 3,
        (_, true, false) => 4,
    };
    if signs.len() != expected {
        return fail(i.ast.span, format!("expected {} operands", n_before + 1 + expected));
    }
    let (negates, transposes) = signs.split_at(expected.min(2));
    let mut negative = false;
    for sign in negates {
        match immediate(sign).map(|it| it as i64) {
            Some(1) => {}
            Some(-1) => negative = !negative,
            _ => return fail(sign.span, "a factor of a matrix is 1 or -1"),
        }
    }
    let mut transposed = [false; 2];
    for (flag, operand) in transposed.iter_mut().rev().zip(transposes.iter().rev()) {
        *flag = match immediate(operand) {
            Some(bit @ (0 | 1)) => bit == 1,
            _ => return fail(operand.span, "how a matrix lies is 0 or 1"),
        };
    }

    let lane = Lane::of(l);
    let mut a = if is_in_registers {
        l.values(a, Type::B32).and_then(|values| match values.len() == mma.registers(Part::A) as usize {
            true => Ok(values),
            false => fail(a.span, format!("expected {} registers", mma.registers(Part::A))),
        })?
    } else {
        let matrix = Matrix::of(l, a, transposed[0])?;
        let first = l.word_op(IntBin::Shl, lane.warp, 1);
        let rows = |l: &mut L<'_, 'i, 'a>, down: u32| l.word_op(IntBin::Add, first, down);
        matrix.fragment(l, &lane, &mma, Part::A, rows)
    };
    if negative {
        let signs = match mma.a.bits() {
            8 => 0x8080_8080,
            16 => 0x8000_8000,
            _ => 0x8000_0000,
        };
        a = a.into_iter().map(|value| l.word_op(IntBin::Xor, value, signs)).collect();
    }
    let matrix = Matrix::of(l, b, transposed[1])?;
    let columns: Vec<Vec<Value>> = (0..n / 8)
        .map(|column| {
            let rows = |l: &mut L<'_, 'i, 'a>, _: u32| l.word(column);
            matrix.fragment(l, &lane, &mma, Part::B, rows)
        })
        .collect();
    lane.meet(l);

    let ty = if mma.d == Element::F32 { Type::F32 } else { Type::B32 };
    let per_column = mma.registers(Part::D) as usize;
    let before = l.values(d, ty)?;
    let destinations = l.destinations(d)?;
    if destinations.len() != per_column * columns.len() || before.len() != destinations.len() {
        return fail(d.span, format!("expected {} registers", per_column * columns.len()));
    }
    let keeps = l.predicate(scale)?;
    let zero = l.b.constant(mma.d.register(), 0);
    let all = l.whole_warp();
    let mut results = vec![];
    for (b, before) in columns.into_iter().zip(before.chunks(per_column)) {
        let c = before.iter().map(|&it| l.b.emit1(Op::Select, &[keeps, it, zero], mma.d.register()));
        let c: Vec<Value> = c.collect();
        let args = [&a[..], &b, &c, structure.as_slice(), &[all]].concat();
        results.extend(l.b.emit(Op::Mma(mma), &args, &mma.results()));
    }
    for (var, value) in destinations.into_iter().zip(results) {
        l.write_extended(var, value, false, d.span)?;
    }
    Ok(())
}

impl Lowerer<'_, '_, '_> {
    fn words(&mut self, op: IntBin, a: Value, b: Value) -> Value {
        self.b.emit1(Op::Int(op, U32), &[a, b], Ty::B32)
    }

    fn sum(&mut self, terms: &[Value]) -> Value {
        let (&first, rest) = terms.split_first().expect("a sum has terms");
        rest.iter().fold(first, |sum, &term| self.words(IntBin::Add, sum, term))
    }
}

/// Where this thread stands.
struct Lane {
    /// The row of eight.
    group: Value,
    /// Which of the four registers of that row.
    four: Value,
    /// The warp's number among four.
    warp: Value,
    warpgroup: Value,
}

impl Lane {
    fn of(l: &mut L<'_, '_, '_>) -> Lane {
        let (group, four) = l.row_and_lane();
        let warp = l.b.emit1(Op::Special(Special::WarpId), &[], Ty::B32);
        Lane {
            group,
            four,
            warp: l.word_op(IntBin::And, warp, 3),
            warpgroup: l.word_op(IntBin::Shr, warp, 2),
        }
    }

    /// The four warps wait for each other, at a barrier that no program can name.
    fn meet(&self, l: &mut L<'_, '_, '_>) {
        let id = l.word_op(IntBin::Add, self.warpgroup, WARPGROUP_BARRIERS);
        let count = l.word(WARPGROUP_THREADS);
        l.b.emit(Op::Barrier { kind: BarrierKind::Sync, aligned: true }, &[id, count], &[]);
    }
}

/// A factor in shared memory. Units of 16 bytes are what a swizzle moves; up to eight of them lie side by side.
struct Matrix {
    /// Neighbours in memory are neighbours along m or n, not along k.
    is_transposed: bool,
    start: Value,
    /// Bytes from row to row of eight, as a power of two.
    pitch_log2: Value,
    /// Units side by side, as a power of two, and that number less one.
    units_log2: Value,
    mask: Value,
    /// Which row of the swizzle's pattern the matrix begins at.
    base: Value,
    /// Bytes from eight rows (along m or n) to the next.
    down: Value,
    /// Bytes from a unit along k to the next; of a transposed matrix from eight rows along k to the next.
    along: Value,
}

impl Matrix {
    /// "Matrix descriptor": bits 0 to 13 are the start, 16 to 29 the leading dimension's offset, 32 to 45 the stride
    /// dimension's (each without its four lowest bits), 49 to 51 the base offset, 62 and 63 the swizzle.
    fn of<'a>(l: &mut L<'_, '_, 'a>, descriptor: &Operand<'a>, is_transposed: bool) -> Lower<Matrix> {
        let descriptor = l.value(descriptor, Type::B64)?;
        let halves = l.b.emit(Op::Unpack, &[descriptor], &[Ty::B32, Ty::B32]);
        let (low, high) = (halves[0], halves[1]);
        let bytes = |l: &mut L<'_, '_, 'a>, word: Value| {
            let field = l.word_op(IntBin::And, word, 0x3fff);
            l.word_op(IntBin::Shl, field, 4)
        };
        // A descriptor has no bits for the block of a cluster: the matrix is this block's.
        let start = bytes(l, low);
        let rank = l.b.emit1(Op::Special(Special::ClusterCtaRank), &[], Ty::B32);
        let window = l.word_op(IntBin::Shl, rank, CLUSTER_SHIFT);
        let start = l.words(IntBin::Add, start, window);
        let leading = l.word_op(IntBin::Shr, low, 16);
        let leading = bytes(l, leading);
        let stride = bytes(l, high);
        let base = l.word_op(IntBin::Shr, high, 17);
        let base = l.word_op(IntBin::And, base, 7);
        // 0: none, 1: 128 bytes, 2: 64 bytes, 3: 32 bytes.
        let swizzle = l.word_op(IntBin::Shr, high, 30);
        let four = l.word(4);
        let units_log2 = l.words(IntBin::Sub, four, swizzle);
        let units_log2 = l.word_op(IntBin::And, units_log2, 3);
        let one = l.word(1);
        let units = l.words(IntBin::Shl, one, units_log2);
        let mask = l.word_op(IntBin::Sub, units, 1);
        let zero = l.word(0);
        let is_plain = l.b.emit1(Op::Icmp(Cmp::Eq, U32), &[swizzle, zero], Ty::Pred);
        let select = |l: &mut L<'_, '_, 'a>, yes, no| l.b.emit1(Op::Select, &[is_plain, yes, no], Ty::B32);
        let (down, along) = if is_transposed {
            (select(l, stride, leading), select(l, leading, stride))
        } else {
            let unit = l.word(16);
            (stride, select(l, leading, unit))
        };
        let pitch_log2 = l.word_op(IntBin::Add, units_log2, 4);
        Ok(Matrix { is_transposed, start, pitch_log2, units_log2, mask, base, down, along })
    }

    /// This lane's registers of a fragment of `mma`. `rows` gives which eight rows of the matrix those are that lie so many
    /// eights down in the fragment.
    fn fragment<'l, 'i, 'a>(
        &self,
        l: &mut L<'l, 'i, 'a>,
        lane: &Lane,
        mma: &Mma,
        part: Part,
        rows: impl Fn(&mut L<'l, 'i, 'a>, u32) -> Value,
    ) -> Vec<Value> {
        let registers = 0..mma.registers(part);
        let per = mma.element(part).per_register();
        registers
            .map(|register| {
                let at = mma.position(part, 0, register, 0);
                let eight = rows(l, at.row / 8);
                // A register's four neighbours fill a unit.
                let step = l.word(at.column / (4 * per));
                let along = l.words(IntBin::Mul, step, self.along);
                if !self.is_transposed {
                    let down = l.words(IntBin::Mul, eight, self.down);
                    let row = l.words(IntBin::Shl, lane.group, self.pitch_log2);
                    let within = l.word_op(IntBin::Shl, lane.four, 2);
                    let address = l.sum(&[self.start, down, row, along, within]);
                    return self.load(l, address, 32);
                }
                let aside = l.words(IntBin::And, eight, self.mask);
                let aside = l.word_op(IntBin::Shl, aside, 4);
                let down = l.words(IntBin::Shr, eight, self.units_log2);
                let down = l.words(IntBin::Mul, down, self.down);
                let within = l.word_op(IntBin::Shl, lane.group, 1);
                let first = l.sum(&[self.start, aside, down, along, within]);
                let row = l.word_op(IntBin::Shl, lane.four, 1);
                let halves = [0, 1].map(|next| {
                    let row = l.word_op(IntBin::Add, row, next);
                    let row = l.words(IntBin::Shl, row, self.pitch_log2);
                    let address = l.words(IntBin::Add, first, row);
                    self.load(l, address, 16)
                });
                l.b.emit1(Op::Pack, &halves, Ty::B32)
            })
            .collect()
    }

    /// What lies at an address of the matrix as if there were no swizzle.
    fn load(&self, l: &mut L<'_, '_, '_>, address: Value, bits: u8) -> Value {
        let row = l.word_op(IntBin::Shr, address, 7);
        let row = l.words(IntBin::Sub, row, self.base);
        let moved = l.words(IntBin::And, row, self.mask);
        let moved = l.word_op(IntBin::Shl, moved, 4);
        let address = l.words(IntBin::Xor, address, moved);
        let address = l.b.emit1(Op::Zext, &[address], Ty::B64);
        let mem = Mem { bits, signed: false };
        let op = Op::Load { space: Space::Shared, mem, offset: 0, order: Order::Weak, scope: Scope::Sys };
        l.b.emit1(op, &[address], Ty::of_bits(bits.into()))
    }
}
