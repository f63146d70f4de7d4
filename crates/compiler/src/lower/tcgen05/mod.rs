//! `tcgen05`: tensor memory, and the tensor cores that work on it. Source: PTX manual, "TensorCore 5th Generation Family
//! Instructions".
//!
//! A block has a tensor memory of its own ([`TENSOR_MEMORY`]); that of the other block of a pair is as far away as its shared
//! memory. What the manual calls asynchronous is done at once, which every order that it allows is behind: fences
//! and waits have nothing left to order but the lanes of a warp.
//!
//! [`TENSOR_MEMORY`]: crate::ir::TENSOR_MEMORY

mod copy;
mod product;
mod transfer;

use ptx::ast::{Operand, Type};

use super::bulk::{for_each_block, in_block, in_window, multicast};
use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::operand::immediate;
use crate::ir::{Cmp, IntBin, Mem, Op, Order, S32, Scope, Space, Special, Syscall, Ty, U32, Value};
use crate::tensor_memory::{ALLOC, DEALLOC, N_WORDS, NOT_YET, PAIR, RANK_SHIFT, RANKS_SHIFT, RELINQUISH};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `tcgen05.operation…`
pub(super) fn tcgen05<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    if i.take("fence::before_thread_sync") || i.take("fence::after_thread_sync") {
        i.done()?;
        let [] = i.operands()?;
        return Ok(());
    }
    if i.take("wait::ld") || i.take("wait::st") {
        whole_warp(i)?;
        i.done()?;
        let [] = i.operands()?;
        l.meet();
        return Ok(());
    }
    let what = i.take_map(|word| {
        let known =
            ["alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "mma", "commit", "cp", "shift"];
        known.into_iter().find(|it| *it == word)
    });
    match what {
        Some("alloc") => alloc(l, i),
        Some("dealloc") => dealloc(l, i),
        Some("relinquish_alloc_permit") => relinquish(l, i),
        Some("ld") => transfer::load(l, i),
        Some("st") => transfer::store(l, i),
        Some("mma") => product::mma(l, i),
        Some("commit") => commit(l, i),
        Some("cp") => copy::cp(l, i),
        Some("shift") => copy::shift(l, i),
        _ => Err(Failure::Unsupported),
    }
}

/// `.cta_group::1` or `.cta_group::2`, which is [`PAIR`].
fn group(i: &mut I<'_, '_>) -> Lower<u64> {
    i.need_one(&[("cta_group::1", 0), ("cta_group::2", PAIR)])
}

/// `.sync.aligned`
fn whole_warp(i: &mut I<'_, '_>) -> Lower {
    i.need_one(&[("sync", ())])?;
    i.need_one(&[("aligned", ())])
}

/// `tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32 [dst], nCols`
fn alloc<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let group = group(i)?;
    whole_warp(i)?;
    let space = i.take_one(&[("shared::cta", Space::Shared), ("shared", Space::Shared)]);
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [target, columns] = i.operands()?;
    let target = l.object(target, space)?;
    let columns = n_columns(l, columns)?;
    l.by_one_lane(|l| {
        let address = l.asked_until_it_is(ALLOC | group, &[columns]);
        let mem = Mem { bits: 32, signed: false };
        let (space, offset) = (target.space, target.offset);
        let store = Op::Store { space, mem, offset, order: Order::Weak, scope: Scope::Sys };
        l.b.emit(store, &[target.base, address], &[]);
    });
    Ok(())
}

/// `tcgen05.dealloc.cta_group.sync.aligned.b32 taddr, nCols`
fn dealloc<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let group = group(i)?;
    whole_warp(i)?;
    i.need_one(&[("b32", ())])?;
    i.done()?;
    let [address, columns] = i.operands()?;
    let address = l.value(address, Type::B32)?;
    let address = l.resize(address, Ty::B64, false);
    let columns = n_columns(l, columns)?;
    l.by_one_lane(|l| {
        l.asked_until_it_is(DEALLOC | group, &[columns, address]);
    });
    Ok(())
}

/// `tcgen05.relinquish_alloc_permit.cta_group.sync.aligned`
fn relinquish<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let group = group(i)?;
    whole_warp(i)?;
    i.done()?;
    let [] = i.operands()?;
    l.by_one_lane(|l| {
        l.asked_until_it_is(RELINQUISH | group, &[]);
    });
    Ok(())
}

/// `tcgen05.commit.cta_group.mbarrier::arrive::one{.sync_restrict}{.shared::cluster}{.multicast::cluster{::32b}}.b64 [mbar]{, mask}`:
/// what came before is done, and so is what `.sync_restrict` would have the mbarrier wait for alone.
fn commit<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    group(i)?;
    i.need_one(&[("mbarrier::arrive::one", ())])?;
    let space = i.take_one(&[("shared::cluster", Space::Shared)]);
    i.take("sync_restrict::shared::read::mma::a");
    let multicast = multicast(i);
    i.need_one(&[("b64", ())])?;
    i.done()?;
    expect(i, 1 + usize::from(multicast.is_some()))?;
    let object = l.object(i.operand(0)?, space)?;
    let Some(mask_type) = multicast else {
        l.arrive_once(&object);
        return Ok(());
    };
    let mask = l.value(i.operand(1)?, mask_type)?;
    let object = in_window(l, object);
    for_each_block(l, mask, |l, rank| {
        let object = in_block(l, &object, rank);
        l.arrive_once(&object);
        Ok(())
    })
}

fn expect(i: &I<'_, '_>, n_operands: usize) -> Lower {
    super::bulk::expect_operands(i, n_operands)
}

/// A power of two from 32 to 512, as far as the text says.
fn n_columns<'a>(l: &mut L<'_, '_, 'a>, operand: &Operand<'a>) -> Lower<Value> {
    if let Some(columns) = immediate(operand)
        && !((32..=512).contains(&columns) && columns.is_power_of_two())
    {
        return fail(operand.span, "the number of columns is a power of two from 32 to 512");
    }
    l.count(Some(operand))
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// The lanes of the warp have come here, with all that they did before.
    fn meet(&mut self) {
        let all = self.whole_warp();
        self.b.emit(Op::WarpSync, &[all], &[]);
    }

    /// One lane of the warp does it when all have come, and the others go on when it is done.
    fn by_one_lane(&mut self, body: impl FnOnce(&mut Self)) {
        self.meet();
        let lane = self.b.emit1(Op::Special(Special::LaneId), &[], Ty::B32);
        let zero = self.word(0);
        let is_first = self.b.emit1(Op::Icmp(Cmp::Eq, U32), &[lane, zero], Ty::Pred);
        let (inside, behind) = (self.b.new_block(), self.b.new_block());
        self.b.branch(is_first, inside, behind);
        self.b.enter(inside);
        body(self);
        self.b.jump(behind);
        self.b.enter(behind);
        self.meet();
    }

    /// Offset of the block's tensor memory in the shared window (`B64`).
    fn tensor_memory(&mut self) -> Value {
        let offset = self.b.emit1(Op::Special(Special::TensorMemory), &[], Ty::B32);
        self.b.emit1(Op::Zext, &[offset], Ty::B64)
    }

    /// What the host side answers (`B32`).
    fn asked(&mut self, operation: u64, words: &[Value]) -> Value {
        let memory = self.tensor_memory();
        let memory = self.b.emit1(Op::Cvta { space: Space::Shared, to_generic: true }, &[memory], Ty::B64);
        let mut first = self.long(operation);
        if operation & PAIR != 0 {
            let places = [(Special::ClusterCtaRank, RANK_SHIFT), (Special::ClusterNctaRank, RANKS_SHIFT)];
            for (special, shift) in places {
                let number = self.b.emit1(Op::Special(special), &[], Ty::B32);
                let number = self.b.emit1(Op::Zext, &[number], Ty::B64);
                let number = self.long_shift(IntBin::Shl, number, shift);
                first = self.long_op(IntBin::Or, first, number);
            }
        }
        let mut args = vec![memory, first];
        args.extend(words);
        args.resize_with(N_WORDS + 2, || self.long(0));
        self.b.emit1(Op::Syscall(Syscall::TensorMemory), &args, Ty::B32)
    }

    /// The answer, when it is there; what the manual does not have is a trap.
    fn asked_until_it_is(&mut self, operation: u64, words: &[Value]) -> Value {
        let (again, behind) = (self.b.new_block(), self.b.new_block());
        self.b.enter(again);
        let answer = self.asked(operation, words);
        let not_yet = self.word(NOT_YET.cast_unsigned());
        let waits = self.b.emit1(Op::Icmp(Cmp::Eq, U32), &[answer, not_yet], Ty::Pred);
        self.b.branch(waits, again, behind);
        self.b.enter(behind);
        self.trap_below_zero(answer);
        answer
    }

    fn trap_below_zero(&mut self, answer: Value) {
        let (wrong, on) = (self.b.new_block(), self.b.new_block());
        let zero = self.word(0);
        let is_wrong = self.b.emit1(Op::Icmp(Cmp::Lt, S32), &[answer, zero], Ty::Pred);
        self.b.branch(is_wrong, wrong, on);
        self.b.enter(wrong);
        self.b.emit(Op::Trap, &[], &[]);
        self.b.jump(on);
        self.b.enter(on);
    }
}
