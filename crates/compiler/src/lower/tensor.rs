//! Copies between tensors and shared memory: `cp{.reduce}.async.bulk.tensor`, its prefetch, and `tensormap`.
//!
//! What a tensor map says is known at run time only, so the copy itself is the host side's ([`Op::TensorCopy`]); what waits
//! for it, and the blocks it goes to, are lowered here.

use ptx::ast::{Operand, OperandKind, Type};

use super::bulk::{self, Kind, expect_operands, for_each_block, in_block};
use super::dialect::Need;
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::mbarrier::Object;
use super::operand::{immediate, split};
use crate::ir::{
    CLUSTER_SHIFT, IntBin, Mem, Op, Order, Scope, Space, TensorCopy, TensorDirection, Ty, Value,
};
use crate::tensor_map;

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

fn rank(i: &mut I<'_, '_>) -> Lower<u8> {
    i.need_one(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)])
}

/// How coordinates name elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// `.tile`, or nothing.
    Tile,
    /// `.im2col`, `.im2col_no_offs`
    Im2col,
    /// `.tile::gather4`, `.tile::scatter4`: a column and four rows of a matrix.
    FourRows,
}

/// `.tile`, `im2col` or `four_rows` of an instruction for so many dimensions.
fn mode(i: &mut I<'_, '_>, rank: u8, im2col: &'static str, four_rows: &'static str) -> Lower<Mode> {
    let modes = [("tile", Mode::Tile), (im2col, Mode::Im2col), (four_rows, Mode::FourRows)];
    let mode = i.take_one(&modes).unwrap_or(Mode::Tile);
    let fits = match mode {
        Mode::Tile => true,
        Mode::Im2col => rank >= 3,
        Mode::FourRows => rank == 2,
    };
    if fits { Ok(mode) } else { Err(Failure::Unsupported) }
}

impl Mode {
    fn copy(self, direction: TensorDirection, rank: u8) -> Op {
        let (im2col, four_rows) = (self == Mode::Im2col, self == Mode::FourRows);
        Op::TensorCopy(TensorCopy { direction, rank, im2col, four_rows })
    }

    fn n_coordinates(self, rank: u8) -> usize {
        if self == Mode::FourRows { 5 } else { rank.into() }
    }
}

/// `[map, {coordinates}]`: the map's generic address and five coordinates, of which `count` are written.
fn tensor<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>, count: usize) -> Lower<Vec<Value>> {
    let OperandKind::Address(address) = &operand.kind else {
        return fail(operand.span, "expected a tensor map and coordinates in brackets");
    };
    let (base, offset) = split(&address.base)?;
    let Some(name) = base else { return fail(operand.span, "expected the address of a tensor map") };
    let map = match l.entity(name) {
        Some(super::scope::Entity::Register(_)) => {
            let register = l.register(name, operand.span)?;
            let [var] = &*register.vars else { return fail(operand.span, "not an address") };
            let value = l.b.read(*var);
            l.resize(value, Ty::B64, false)
        }
        _ => {
            let (space, value) = l.symbol_address(name, operand.span)?;
            l.b.emit1(Op::Cvta { space, to_generic: true }, &[value], Ty::B64)
        }
    };
    let offset = l.long(offset as u64);
    let map = l.long_op(IntBin::Add, map, offset);
    let list = match address.more.as_slice() {
        [only] => match &only.kind {
            OperandKind::Vector(list) => list.as_slice(),
            _ => std::slice::from_ref(only),
        },
        _ => &[],
    };
    if list.len() != count {
        return fail(operand.span, format!("expected {count} coordinates"));
    }
    let mut values = vec![map];
    for coordinate in list {
        values.push(l.value(coordinate, Type::S32)?);
    }
    values.resize_with(6, || l.b.constant(Ty::B32, 0));
    Ok(values)
}

/// The 16-bit offsets of `.im2col`, lowest first in one value; there are two fewer than dimensions.
fn offsets<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>, rank: u8) -> Lower<Value> {
    let list = match &operand.kind {
        OperandKind::Vector(list) => list.as_slice(),
        _ => std::slice::from_ref(operand),
    };
    if list.len() + 2 != usize::from(rank) {
        return fail(operand.span, format!("expected {} offsets", rank.saturating_sub(2)));
    }
    let mut all = l.long(0);
    for (nth, offset) in list.iter().enumerate() {
        let value = l.value(offset, Type::U16)?;
        let value = l.resize(value, Ty::B64, false);
        let value = l.long_shift(IntBin::Shl, value, 16 * nth as u32);
        all = l.long_op(IntBin::Or, all, value);
    }
    Ok(all)
}

fn generic(l: &mut L<'_, '_, '_>, object: &Object) -> Value {
    let offset = l.long(object.offset as u64);
    let address = l.long_op(IntBin::Add, object.base, offset);
    l.b.emit1(Op::Cvta { space: Space::Shared, to_generic: true }, &[address], Ty::B64)
}

/// `cp{.reduce}.async.bulk.tensor.dim.dst.src{.redOp}{.mode}.completion… `: what stands behind `tensor`.
pub(super) fn copy<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, kind: Kind) -> Lower {
    let rank = rank(i)?;
    let group = i.take_one(&[("cta_group::1", Group::One), ("cta_group::2", Group::Pair)]);
    let direction = bulk::direction(i)?;
    if group.is_some() && direction.1 != "global" {
        return Err(Failure::Unsupported);
    }
    match direction {
        ("shared::cluster", "global") if kind == Kind::Copy => {
            load(l, i, rank, Some(group.unwrap_or(Group::One)))
        }
        ("shared::cta", "global") if kind == Kind::Copy => load(l, i, rank, None),
        ("global", "shared::cta") => store(l, i, rank, kind),
        _ => Err(Failure::Unsupported),
    }
}

/// `.cta_group`: where the mbarrier of a block that is copied to may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// In that block.
    One,
    /// In that block or in the other of its pair.
    Pair,
}

/// Loads to the cluster's window by `group`, or to the block's own.
fn load<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, rank: u8, group: Option<Group>) -> Lower {
    let mode = mode(i, rank, "im2col", "tile::gather4")?;
    i.need_one(&[("mbarrier::complete_tx::bytes", ())])?;
    let multicast = if group.is_some() { bulk::multicast(i) } else { None };
    let policy = i.cache_hints();
    i.done()?;
    let im2col = mode == Mode::Im2col;
    let flags = [im2col, multicast.is_some(), policy];
    expect_operands(i, 3 + flags.into_iter().filter(|&flag| flag).count())?;
    let target = l.object(i.operand(0)?, Some(Space::Shared))?;
    let mut args = tensor(l, i.operand(1)?, mode.n_coordinates(rank))?;
    let object = bulk::mbarrier(l, i.operand(2)?)?;
    let offsets = if im2col { offsets(l, i.operand(3)?, rank)? } else { l.long(0) };
    args.push(offsets);
    let op = mode.copy(TensorDirection::Load, rank);
    let arrive = |l: &mut L<'_, 'i, 'a>, target: Object, object: Object| {
        let mut args = args.clone();
        args.insert(1, generic(l, &target));
        let bytes = l.b.emit1(op.clone(), &args, Ty::B32);
        let bytes = l.resize(bytes, Ty::B64, false);
        l.complete_transactions(&object, bytes);
        Ok(())
    };
    let Some(mask_type) = multicast else { return arrive(l, target, object) };
    let mask = l.value(i.operand(3 + usize::from(im2col))?, mask_type)?;
    // PTX: of a pair that block is told which has the parity of the one that the mbarrier's address is in.
    let parity = (group == Some(Group::Pair)).then(|| {
        let offset = l.long(object.offset as u64);
        let address = l.long_op(IntBin::Add, object.base, offset);
        let rank = l.long_shift(IntBin::Shr, address, CLUSTER_SHIFT);
        let rank = l.b.emit1(Op::Trunc, &[rank], Ty::B32);
        l.word_op(IntBin::And, rank, 1)
    });
    for_each_block(l, mask, |l, rank| {
        let told = match parity {
            Some(parity) => {
                let first = l.word_op(IntBin::And, rank, !1);
                l.bitwise(IntBin::Or, Ty::B32, first, parity)
            }
            None => rank,
        };
        let (target, object) = (in_block(l, &target, rank), in_block(l, &object, told));
        arrive(l, target, object)
    })
}

fn store<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>, rank: u8, kind: Kind) -> Lower {
    let direction = match kind {
        Kind::Copy => TensorDirection::Store,
        Kind::Reduce => TensorDirection::Reduce(bulk::reduction_op(i)?),
    };
    let mode = mode(i, rank, "im2col_no_offs", "tile::scatter4")?;
    i.need_one(&[("bulk_group", ())])?;
    let policy = i.cache_hints();
    i.done()?;
    if mode == Mode::FourRows && kind == Kind::Reduce {
        return Err(Failure::Unsupported);
    }
    expect_operands(i, 2 + usize::from(policy))?;
    let mut args = tensor(l, i.operand(0)?, mode.n_coordinates(rank))?;
    let source = l.object(i.operand(1)?, Some(Space::Shared))?;
    args.insert(1, generic(l, &source));
    args.push(l.long(0));
    l.b.emit1(mode.copy(direction, rank), &args, Ty::B32);
    Ok(())
}

/// `cp.async.bulk.prefetch.tensor.dim.L2.global{.mode}{.L2::cache_hint} [map, {…}]{, offsets}{, policy}`: nothing to do.
pub(super) fn prefetch<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let rank = rank(i)?;
    i.need_one(&[("L2", ())])?;
    i.need_one(&[("global", ())])?;
    let mode = mode(i, rank, "im2col", "tile::gather4")?;
    let policy = i.cache_hints();
    i.done()?;
    let im2col = mode == Mode::Im2col;
    expect_operands(i, 1 + usize::from(im2col) + usize::from(policy))?;
    tensor(l, i.operand(0)?, mode.n_coordinates(rank))?;
    if im2col {
        offsets(l, i.operand(1)?, rank)?;
    }
    Ok(())
}

/// `tensormap.cp_fenceproxy…` and `tensormap.replace…`
pub(super) fn tensormap<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    match i.need_one(&[("cp_fenceproxy", false), ("replace", true)])? {
        false => copy_and_fence(l, i),
        true => replace(l, i),
    }
}

/// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], 128`: copies a
/// map and orders it before later uses.
fn copy_and_fence<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    // Where it is copied to stands first.
    let spaces =
        i.ast.modifiers.iter().map(|it| it.value).filter(|it| matches!(*it, "global" | "shared::cta"));
    if spaces.ne(["global", "shared::cta"]) {
        return Err(Failure::Unsupported);
    }
    for word in ["global", "shared::cta", "tensormap::generic", "release", "sync", "aligned"] {
        i.need_one(&[(word, ())])?;
    }
    let scope = i.scope().ok_or(Failure::Unsupported)?;
    i.done()?;
    let [to, from, size] = i.operands()?;
    let target = l.object(to, Some(Space::Global))?;
    let source = l.object(from, Some(Space::Shared))?;
    let size = l.count(Some(size))?;
    bulk::copy_loop(l, &target, &source, size);
    l.b.emit(Op::Fence { order: Order::Release, scope }, &[], &[]);
    Ok(())
}

/// `tensormap.replace.tile.field{.space}.b1024.type [map], {ord, }value`: the bytes that the field has in our map
/// ([`tensor_map`]) are stored, and those that say that it is one, since a program may begin with 128 zero bytes.
fn replace<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.need_one(&[("tile", ())])?;
    let field = i.take_map(Field::of_name).ok_or(Failure::Unsupported)?;
    let space = i.take_one(&[("global", Space::Global), ("shared::cta", Space::Shared)]);
    i.need_one(&[("b1024", ())])?;
    let ty = match field {
        Field::Address | Field::Stride => ("b64", Type::B64),
        _ => ("b32", Type::B32),
    };
    i.need_one(&[(ty.0, ())])?;
    i.done()?;
    expect_operands(i, if field.is_of_a_dimension() { 3 } else { 2 })?;
    let map = l.object(i.operand(0)?, space)?;
    let put = |l: &mut L<'_, 'i, 'a>, at: usize, bytes: usize, value: Value| {
        let mem = Mem { bits: 8 * bytes as u8, signed: false };
        let offset = map.offset + at as i64;
        let op = Op::Store { space: map.space, mem, offset, order: Order::Weak, scope: Scope::Sys };
        l.b.emit(op, &[map.base, value], &[]);
    };
    let magic = l.long(u64::from_le_bytes(tensor_map::MAGIC));
    put(l, 0, tensor_map::MAGIC.len(), magic);
    let value = i.operand(i.count() - 1)?;
    if let Some(need) = field.need(value) {
        l.require(value.span, "this value of the field", need)?;
    }
    if let Some(fixed) = field.fixed(value)? {
        if let Some((at, number)) = fixed {
            let number = l.b.constant(Ty::B16, number.into());
            put(l, at, 1, number);
        }
        return Ok(());
    }
    let axis = match field.is_of_a_dimension() {
        false => 0,
        true => match immediate(i.operand(1)?) {
            Some(axis @ 0..=4) => axis as usize,
            _ => return fail(i.operand(1)?.span, "which dimension is meant is a constant from 0 to 4"),
        },
    };
    let value = l.value(value, ty.1)?;
    let (at, bytes, value) = match field {
        Field::Address => (tensor_map::ADDRESS, 8, value),
        // The instruction's field is the number of dimensions less one.
        Field::Rank => (tensor_map::RANK, 1, l.word_op(IntBin::Add, value, 1)),
        // Five dimensions have four distances, the first's being an element.
        Field::Stride if axis == 4 => return Ok(()),
        Field::Stride => (tensor_map::STRIDES + 8 * axis, 8, value),
        Field::Dim => (tensor_map::DIMS + 4 * axis, 4, l.word_op(IntBin::Sub, value, 1)),
        Field::BoxDim => (tensor_map::BOX + 2 * axis, 2, value),
        // CUDA: dimension 0 has no step.
        Field::Step if axis == 0 => (tensor_map::STEPS, 1, l.word(1)),
        _ => (tensor_map::STEPS + axis, 1, value),
    };
    let value = match bytes {
        1 | 2 => l.b.emit1(Op::Trunc, &[value], Ty::B16),
        _ => value,
    };
    put(l, at, bytes, value);
    Ok(())
}

/// What `tensormap.replace` replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Address,
    Rank,
    BoxDim,
    Dim,
    Stride,
    Step,
    Element,
    Interleave,
    Swizzle,
    Atomicity,
    Fill,
}

impl Field {
    fn of_name(name: &str) -> Option<Field> {
        Some(match name {
            "global_address" => Field::Address,
            "rank" => Field::Rank,
            "box_dim" => Field::BoxDim,
            "global_dim" => Field::Dim,
            "global_stride" => Field::Stride,
            "element_stride" => Field::Step,
            "elemtype" => Field::Element,
            "interleave_layout" => Field::Interleave,
            "swizzle_mode" => Field::Swizzle,
            "swizzle_atomicity" => Field::Atomicity,
            "fill_mode" => Field::Fill,
            _ => return None,
        })
    }

    /// What a source needs for a value that the first tensor maps did not know.
    fn need(self, value: &Operand<'_>) -> Option<&'static Need> {
        static PACKED: Need = Need::new("8.7", "100f 110f 120f");
        static SWIZZLE_OF_96_BYTES: Need = Need::new("8.8", "103a 107a");
        match (self, immediate(value)?) {
            (Field::Element, 13..) => Some(&PACKED),
            (Field::Swizzle, 4) => Some(&SWIZZLE_OF_96_BYTES),
            _ => None,
        }
    }

    fn is_of_a_dimension(self) -> bool {
        matches!(self, Field::BoxDim | Field::Dim | Field::Stride | Field::Step)
    }

    /// Of fields whose value is a constant: the byte that it is in our map, and where; nothing is stored for a value that
    /// every map of ours has. Numbers are those of the manual's table, which are not the driver's.
    fn fixed(self, value: &Operand<'_>) -> Lower<Option<Option<(usize, u8)>>> {
        if !matches!(
            self,
            Field::Element | Field::Interleave | Field::Swizzle | Field::Atomicity | Field::Fill
        ) {
            return Ok(None);
        }
        let Some(number) = immediate(value) else {
            return fail(value.span, "the new value of this field is a constant");
        };
        let refused = |what: &str| fail(value.span, format!("{what} is not supported"));
        let byte = match (self, number) {
            (Field::Element, 0..=15) => {
                use tensor_map::Element::*;
                let elements = [
                    U8, U16, U32, S32, U64, S64, F16, F32, F32Ftz, F64, Bf16, Tf32, Tf32Ftz, U4, U4Padded,
                    U6Padded,
                ];
                Some((tensor_map::ELEMENT, elements[number as usize] as u8))
            }
            (Field::Interleave, 0) => None,
            (Field::Interleave, 1 | 2) => return refused("a tensor map of an interleaved layout"),
            (Field::Swizzle, 0..=3) => Some((tensor_map::SWIZZLE, number as u8)),
            (Field::Swizzle, 4) => return refused("a swizzle of 96 bytes"),
            (Field::Atomicity, 0..=3) => Some((tensor_map::ATOMICITY, number as u8)),
            (Field::Fill, 0 | 1) => Some((tensor_map::FILL, number as u8)),
            _ => return fail(value.span, "this field has no such value"),
        };
        Ok(Some(byte))
    }
}
