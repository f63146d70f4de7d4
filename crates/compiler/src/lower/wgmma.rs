//! `wgmma`: the matrix product of four warps, whose factors lie in shared memory as descriptors say. Source: PTX manual,
//! "Asynchronous Warpgroup Level Matrix Instructions".
//!
//! Each warp has 16 rows of A and D, in registers as `mma.m16n8` has them, and reads all of B. So a product is one of
//! `mma` for each 8 columns ([`Wgmma`]), done at once: fences and groups have nothing left to order. What the four warps have in
//! common is that a product is done when all of them have done it: whoever has waited for it may let shared memory be
//! overwritten. So they meet where they wait, which the manual has all threads of a warpgroup do together.

use ptx::ast::{Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mma::{bit_product, elements, is_legal, shape};
use super::operand::immediate;
use crate::ir::{BarrierKind, CLUSTER_SHIFT, IntBin, Op, Special, Ty, Value, WARPGROUP_BARRIERS};
use crate::matrix::{BitProduct, Element, InMemory, Mma, Part, Wgmma};

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
            meet(l);
            Ok(())
        }
        _ => {
            i.done()?;
            let [] = i.operands()?;
            Ok(())
        }
    }
}

/// The four warps wait for each other, at a barrier that no program can name.
fn meet(l: &mut L<'_, '_, '_>) {
    let warp = l.b.emit1(Op::Special(Special::WarpId), &[], Ty::B32);
    let warpgroup = l.word_op(IntBin::Shr, warp, 2);
    let id = l.word_op(IntBin::Add, warpgroup, WARPGROUP_BARRIERS);
    let count = l.word(WARPGROUP_THREADS);
    l.b.emit(Op::Barrier { kind: BarrierKind::Sync, aligned: true }, &[id, count], &[]);
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
    let mut mma =
        Mma { saturates, bit_product: bits.unwrap_or(BitProduct::Xor), ..Mma::plain([16, 8, k], [a, b, d]) };
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

    let factor = if is_in_registers {
        let values = l.values(a, Type::B32)?;
        if values.len() != mma.registers(Part::A) as usize {
            return fail(a.span, format!("expected {} registers", mma.registers(Part::A)));
        }
        match negative {
            true => values.into_iter().map(|it| l.word_op(IntBin::Xor, it, mma.signs())).collect(),
            false => values,
        }
    } else {
        vec![l.value(a, Type::B64)?]
    };
    let in_memory = InMemory { is_transposed: transposed[0], is_negative: negative };
    let wgmma =
        Wgmma { mma, columns: n, a: (!is_in_registers).then_some(in_memory), b_is_transposed: transposed[1] };
    let b = l.value(b, Type::B64)?;
    let warp = l.b.emit1(Op::Special(Special::WarpId), &[], Ty::B32);
    let warp = l.word_op(IntBin::And, warp, 3);
    // A descriptor has no bits for the block of a cluster: the matrix is this block's.
    let rank = l.b.emit1(Op::Special(Special::ClusterCtaRank), &[], Ty::B32);
    let window = l.word_op(IntBin::Shl, rank, CLUSTER_SHIFT);
    let ty = if mma.d == Element::F32 { Type::F32 } else { Type::B32 };
    let before = l.values(d, ty)?;
    let destinations = l.destinations(d)?;
    let expected = wgmma.results();
    if destinations.len() != expected.len() || before.len() != expected.len() {
        return fail(d.span, format!("expected {} registers", expected.len()));
    }
    let keeps = l.predicate(scale)?;
    let all = l.whole_warp();
    let given = [b].into_iter().chain(structure).chain([window, warp, keeps]).chain(before);
    let args: Vec<Value> = factor.into_iter().chain(given).chain([all]).collect();
    let results = l.b.emit(Op::Wgmma(wgmma), &args, &expected);
    for (var, value) in destinations.into_iter().zip(results) {
        l.write_extended(var, value, false, d.span)?;
    }
    Ok(())
}
