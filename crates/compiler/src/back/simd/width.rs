//! How many threads run together in setting `simd`.
//!
//! Vectors pay where lanes do the same arithmetic on neighbouring data. Where each lane leaves a loop at its own trip
//! and reads from places of its own, all lanes wait for the longest, and a gather is as many loads as lanes: such a
//! kernel runs one thread after the other, in plain scalar code.

use super::layout_locals;
use crate::back::cpu::Options;
use crate::ir::{Cmp, FloatBin, FloatUn, Function, Inst, IntBin, Op, Order, Space, Term, Ty, Value};
use crate::pass::divergence::{Among, Divergence, structure};
use crate::pass::dominators::successors;
use crate::pass::liveness::live_in;
use crate::pass::pressure::{Pressure, TRIPS};
use crate::pass::regions::{Plan, Region, plan};
use crate::pass::value_ranges::Threads;

/// 32 where lanes of a warp meet or the kernel counts on their going in step, else what fills two registers, or a row of
/// the block.
pub(super) fn width(body: &Function, options: &Options, total: u64, in_step: bool) -> Result<u32, String> {
    let insts = || body.blocks.iter().flat_map(|block| &block.insts);
    let warps = meets(body);
    if warps || in_step {
        let who = if warps { "warp collectives need" } else { "lanes that go in step need" };
        return match options.width {
            Some(width) if width != 32 => Err(format!("{who} groups of 32, not of {width}")),
            _ => Ok(32),
        };
    }
    if let Some(width) = options.width {
        return if width.is_power_of_two() && (1..=64).contains(&width) {
            Ok(width)
        } else {
            Err(format!("groups of {width} threads are not possible"))
        };
    }
    if stores_in_step(body) {
        return Ok(32);
    }
    // Compile time grows with the vectors' length.
    let is_huge = insts().count() > 4000;
    let usual = if is_huge {
        8
    } else if options.vector_bits >= 512 {
        32
    } else {
        16
    };
    let row = options.block[0];
    let is_flat = options.block[1] == 1 && options.block[2] == 1;
    let width = if !is_flat && row.is_power_of_two() && (4..usual).contains(&row) {
        if is_tile(body, options.vector_bits) && total.is_multiple_of(MOST.into()) { MOST } else { row }
    } else {
        usual
    };
    let fitting = u32::try_from(total.next_power_of_two()).unwrap_or(usual).max(4);
    Ok(width.min(fitting))
}

/// Whether threads of a warp meet.
fn meets(body: &Function) -> bool {
    body.blocks.iter().flat_map(|block| &block.insts).any(|inst| inst.op.is_warp_collective())
}

/// Whether all threads of a warp store to shared memory before any goes on, which old code counts on.
fn stores_in_step(body: &Function) -> bool {
    let mut insts = body.blocks.iter().flat_map(|block| &block.insts);
    insts.any(|inst| {
        matches!(inst.op, Op::Store { space: Space::Shared | Space::Generic, order: Order::Volatile, .. })
    })
}

/// Threads of the largest group.
const MOST: u32 = 64;

/// Whether loops read tiles in shared memory into few sums: then several rows of the block together share what they read,
/// and what they hold still fits the registers.
fn is_tile(body: &Function, vector_bits: u32) -> bool {
    let Some((_, loops, _)) = structure(body) else { return false };
    let live = live_in(body);
    let reads = |inst: &Inst| matches!(inst.op, Op::Load { space: Space::Shared, .. });
    let inner = (0..body.blocks.len()).filter(|&at| loops.of[at].is_some());
    let sums: Vec<usize> = inner
        .filter(|&at| body.blocks[at].insts.iter().filter(|inst| reads(inst)).count() > 1)
        .map(|at| {
            let carried = live[at]
                .iter()
                .map(|index| Value(index as u32))
                .chain(body.blocks[at].params.iter().copied());
            let mut floats: Vec<Value> =
                carried.filter(|&it| matches!(body.ty(it), Ty::F32 | Ty::F64)).collect();
            floats.sort_unstable();
            floats.dedup();
            floats.len()
        })
        .collect();
    // Half of the registers: 32 of 512 bits, 16 of fewer.
    let most = if vector_bits >= 512 { 4 } else { 1 };
    !sums.is_empty() && sums.iter().all(|&sums| sums <= most)
}

/// Trips of the longest of a group's lanes for one of the mean.
const LONGEST: f64 = 2.0;
/// What the last trip's mispredicted branch costs one thread.
const MISPREDICTED: f64 = 10.0;

/// How often faster the model says that scalar code is, for it to be taken; and where that depends on the data's trips.
const SCALAR_FROM: f64 = 1.25;
const CLOSE: std::ops::Range<f64> = 0.5..4.0;

/// Threads of a group, and another number that may be as fast.
pub(super) struct Choice {
    pub width: u32,
    pub rival: Option<u32>,
    /// What the group holds does not fit the registers, and the code is straight ([`IN_ORDER`](crate::back::cpu::IN_ORDER)).
    pub in_order: bool,
}

/// The width of this plan, or 1 where the kernel is clearly faster one thread after the other.
pub(super) fn choice(body: &Function, plan: &Plan, threads: Threads, vector_bits: u32) -> Choice {
    let (width, in_order) =
        if is_free(body) { held(plan, threads.width, vector_bits) } else { (threads.width, false) };
    let more =
        || (is_free(body) && !in_order).then(|| overlapping(plan, threads, width, vector_bits)).flatten();
    if let Some(gain) = scalar_gain(plan, vector_bits) {
        if gain > SCALAR_FROM {
            return Choice { width: 1, rival: CLOSE.contains(&gain).then_some(width), in_order: false };
        }
        return Choice { width, rival: CLOSE.contains(&gain).then_some(1).or_else(more), in_order: false };
    }
    // Spills against more groups in flight.
    let registers = registers(vector_bits);
    let is_tight = width > 8
        && plan
            .regions
            .iter()
            .any(|region| loop_bits(region) * u64::from(width) > registers * u64::from(vector_bits));
    Choice { width, rival: is_tight.then_some(width / 2).or_else(more), in_order }
}

/// More threads to a group, where operations wait for each other for long, so that several threads' operations fill the time, and what a
/// loop carries nearly fits the registers for so many. Straight code may spill: few of its values are awaited. Where threads leave a
/// loop at their own trips, more of them wait for the longest.
fn overlapping(plan: &Plan, threads: Threads, width: u32, vector_bits: u32) -> Option<u32> {
    let pressures = plan.regions.iter().map(|region| (region, Pressure::of(region)));
    let (region, most) = pressures.max_by(|(_, a), (_, b)| a.work.total_cmp(&b.work))?;
    let carried = loop_bits(region);
    let more = if carried > 0 && vector_bits < 512 { MOST / 2 } else { MOST };
    let registers = registers(vector_bits);
    let is_held = carried * u64::from(more) <= registers * u64::from(vector_bits) * 5 / 4;
    let fits = !threads.open && threads.total().is_multiple_of(more.into());
    let waits =
        most.chain >= LONG && most.work * f64::from(width) / f64::from(vector_bits) <= BEGUN * most.chain;
    (width > 1 && width < more && fits && waits && is_held && is_short(&region.function)).then_some(more)
}

/// Whether the kernel in blocks of whole groups of 64 may be tried so.
pub(in crate::back) fn may_overlap(body: &Function) -> bool {
    if !is_short(body) || !is_any_good(body) || !is_free(body) {
        return false;
    }
    let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
    let plan = plan(body, threads, layout_locals(body).1, Among::Block);
    plan.is_ok_and(|plan| overlapping(&plan, threads, threads.width, 512).is_some())
}

/// Operations on vectors of full length that a CPU could begin in a cycle, and a half more: it also waits for what is not counted.
const BEGUN: f64 = 3.0;
/// Cycles of operations that wait for each other, above which the CPU does not find the next group's by itself.
const LONG: f64 = 60.0;
/// Instructions of a kernel that LLVM compiles for many threads in a fraction of a second.
const SHORT: usize = 600;

fn is_short(function: &Function) -> bool {
    function.blocks.iter().map(|block| block.insts.len()).sum::<usize>() <= SHORT
}

/// Vector registers of a CPU.
fn registers(vector_bits: u32) -> u64 {
    if vector_bits >= 512 { 32 } else { 16 }
}

/// Whether nobody counts on a group's being a warp.
fn is_free(body: &Function) -> bool {
    !meets(body) && !stores_in_step(body)
}

/// Half as many threads, or a quarter, where the values of more do not fit the registers: then most operations come with a
/// load or a store, which pays only where too few operations are ready at a time. And whether even so straight code has more
/// values than registers.
fn held(plan: &Plan, width: u32, vector_bits: u32) -> (u32, bool) {
    // With 32 registers, rotates and logic of three operands there is less to hold, and less to do in the meantime.
    if vector_bits >= 512 {
        return (width, false);
    }
    let pressures = plan.regions.iter().map(Pressure::of);
    let Some(most) = pressures.max_by(|a, b| a.work.total_cmp(&b.work)) else { return (width, false) };
    let registers = |width: u32, bits: f64| bits * f64::from(width) / f64::from(vector_bits);
    let mut held = width;
    while registers(held, most.live) > CROWDED
        && registers(held, most.bits()) > 1.5
        && registers(held / 2, most.work) > BUSY * most.chain
    {
        held /= 2;
    }
    let is_straight = plan.regions.iter().all(|region| region.loops.all.is_empty());
    (held, is_straight && registers(held, most.live) > REGISTERS)
}

/// Of a CPU without 512-bit vectors.
const REGISTERS: f64 = 16.0;
/// Registers' worth of values from which on spills cost more than a shorter queue.
const CROWDED: f64 = 24.0;
/// Operations on vectors that a CPU begins in a cycle.
const BUSY: f64 = 4.0;

/// Most bits that a lane carries into a block of a loop.
fn loop_bits(region: &Region) -> u64 {
    let live = live_in(&region.function);
    let bits = |value: Value| match region.together.of[value.index()].is_varying() {
        true => u64::from(region.function.ty(value).bits()),
        false => 0,
    };
    let blocks = (0..region.function.blocks.len()).filter(|&at| region.loops.of[at].is_some());
    let carried = blocks.map(|at| {
        let params = region.function.blocks[at].params.iter().copied();
        live[at].iter().map(|index| Value(index as u32)).chain(params).map(bits).sum()
    });
    carried.max().unwrap_or(0)
}

/// How often faster the kernel is one thread after the other than in the groups of this plan, if that is in question.
fn scalar_gain(plan: &Plan, vector_bits: u32) -> Option<f64> {
    // Regions cost their turns through the block's context; and nobody may count on lanes going together.
    let [region] = &plan.regions[..] else { return None };
    if !region.function.blocks.iter().flat_map(|block| &block.insts).all(|inst| is_plain(&inst.op)) {
        return None;
    }
    let graph = successors(&region.function);
    let leaves = |index: usize| {
        let parts = |at: usize| region.together.divergent[at] && !is_bound(region, at);
        let mut blocks = region.loops.all[index].blocks.iter();
        blocks.any(|&at| parts(at) && graph[at].iter().any(|&to| !region.loops.contains(index, to)))
    };
    let ragged: Vec<bool> = (0..region.loops.all.len()).map(leaves).collect();
    if !ragged.contains(&true) {
        return None;
    }
    let (mut scalar, mut vector) = (0.0, 0.0);
    for (at, block) in region.function.blocks.iter().enumerate() {
        let (mut often, mut waits) = (1.0, 1.0);
        let mut around = region.loops.of[at];
        while let Some(index) = around {
            if ragged[index] && region.loops.all[index].header == at {
                scalar += often * MISPREDICTED;
            }
            often *= TRIPS;
            waits *= if ragged[index] { LONGEST } else { 1.0 };
            around = region.loops.all[index].parent;
        }
        for inst in &block.insts {
            let (one, each) = cost(region, inst, vector_bits);
            scalar += often * one;
            vector += often * waits * each;
        }
    }
    Some(vector / scalar)
}

/// Whether block `at` ends in a bound on an index: all lanes come to it in one trip, or in two that follow each other.
fn is_bound(region: &Region, at: usize) -> bool {
    let block = &region.function.blocks[at];
    let Term::Branch { cond, .. } = block.term else { return false };
    let made = block.insts.iter().find(|inst| inst.results.first() == Some(&cond));
    made.is_some_and(|inst| {
        let lines = inst.args.iter().all(|arg| !region.together.of[arg.index()].is_varying());
        matches!(inst.op, Op::Icmp(Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge, _)) && lines
    })
}

/// Neither the order in which threads do it, nor whether they do it together, can be seen.
fn is_plain(op: &Op) -> bool {
    match op {
        Op::Load { order, .. } | Op::Store { order, .. } => *order == Order::Weak,
        Op::CopyAsync(_) => true,
        op => op.is_pure() || matches!(op, Op::Special(_) | Op::LocalAddr(_) | Op::Cvta { .. }),
    }
}

/// Whether groups of any width give the same, one thread at a time too.
pub(super) fn is_any_good(body: &Function) -> bool {
    let mut insts = body.blocks.iter().flat_map(|block| &block.insts);
    insts.all(|inst| is_plain(&inst.op) || matches!(inst.op, Op::Barrier { .. }))
}

/// Cycles of one thread: in scalar code, and its part of a group's.
fn cost(region: &Region, inst: &Inst, vector_bits: u32) -> (f64, f64) {
    let divergence = |index: usize| inst.args.get(index).map(|arg| region.together.of[arg.index()]);
    let accesses = |bits: u16, n: usize| {
        let step = i64::from(bits / 8) * n as i64;
        let vector = match divergence(0) {
            Some(Divergence::Affine { stride, .. }) if stride == step => 0.1,
            // Vectors of the memory in between, and shuffles (`window.rs`).
            Some(Divergence::Affine { stride, .. }) if stride.abs() <= 4 * step => 0.3,
            Some(Divergence::Uniform) => 0.0,
            Some(_) if region.offsets_together.get(inst.args[0]).is_some() => 0.5,
            // A gather, or loads and inserts: measured on Zen 5.
            _ => 2.2,
        };
        (0.4 * n as f64, vector * n as f64)
    };
    let bits = inst.results.first().map_or(32, |&result| region.function.ty(result).bits()).max(8);
    let part = f64::from(bits) / f64::from(vector_bits);
    let (scalar, vector) = match &inst.op {
        Op::Const(_) => (0.0, 0.0),
        Op::Load { mem, .. } => return accesses(mem.bits.into(), inst.results.len()),
        Op::Store { mem, .. } => return accesses(mem.bits.into(), inst.args.len().saturating_sub(1)),
        Op::CopyAsync(_) => (2.0, 4.0),
        Op::Dp4a { .. } => (4.0, 2.0 * part),
        // Lane by lane in both.
        Op::Int(IntBin::Div | IntBin::Rem, _) => (6.0, 6.0),
        Op::FloatUn(FloatUn::Neg | FloatUn::Abs, ..) => (0.25, 0.5 * part),
        Op::Float(FloatBin::Div | FloatBin::DivApprox | FloatBin::DivFull, ..) | Op::FloatUn(..) => {
            (4.0, 8.0 * part)
        }
        _ => (0.25, 0.5 * part),
    };
    let is_scalar = inst.results.iter().all(|result| !region.together.of[result.index()].is_varying());
    (scalar, if is_scalar { 0.0 } else { vector })
}

#[cfg(test)]
mod tests {
    use crate::back::cpu::{IN_ORDER, Options, Setting, emit};
    use crate::program::{Program, Source};

    /// Width, and what may be as fast, of a kernel in which each thread goes round `work` as often as its own word says.
    fn chosen(work: &str, vector_bits: u32) -> (u32, Option<u32>) {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {{\n\
             .reg .b32 %n, %i, %at, %column;\n.reg .f32 %sum, %x;\n.reg .b64 %p, %own, %q;\n.reg .pred %more;\n\
             ld.param.u64 %p, [words];\nmov.u32 %at, %tid.x;\nmad.wide.u32 %own, %at, 4, %p;\n\
             ld.global.u32 %n, [%own];\ncvt.rn.f32.u32 %sum, %at;\nmov.u32 %i, 0;\n\
             again:\n{work}add.u32 %i, %i, 1;\nsetp.lt.u32 %more, %i, %n;\n@%more bra again;\n\
             st.global.f32 [%own], %sum;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let options = Options::new([256, 1, 1], vector_bits);
        let compiled = emit(&program, program.kernel("k").unwrap(), &options).unwrap();
        assert_eq!(compiled.setting, Setting::Simd);
        (compiled.width, compiled.rival)
    }

    #[test]
    fn threads_that_fetch_from_anywhere_for_as_long_as_each_likes_run_one_by_one() {
        let work = "add.u32 %column, %n, %i;\nmad.wide.u32 %q, %column, 4, %p;\nld.global.u32 %column, [%q];\n\
                    mad.wide.u32 %q, %column, 4, %p;\nld.global.f32 %x, [%q];\nadd.f32 %sum, %sum, %x;\n";
        assert_eq!((chosen(work, 512), chosen(work, 256)), ((1, Some(32)), (1, Some(16))));
    }

    #[test]
    fn threads_that_compute_for_as_long_as_each_likes_run_together() {
        let work =
            "mul.f32 %x, %sum, %sum;\nfma.rn.f32 %sum, %x, %x, %sum;\nadd.f32 %sum, %sum, 0f3f800000;\n";
        assert_eq!((chosen(work, 512), chosen(work, 256)), ((32, Some(64)), (16, Some(32))));
    }

    #[test]
    fn threads_whose_operations_do_not_wait_for_each_other_get_no_larger_groups() {
        let constant = |nth: u32| format!("0f{:08x}", 0x3f80_0000 + nth);
        let in_turn: String =
            (0..40).map(|nth| format!("fma.rn.f32 %sum, %sum, {}, %sum;\n", constant(nth))).collect();
        let products = |nth| {
            format!(
                "mul.f32 %x, %sum, {};\nmov.b32 %column, %x;\nxor.b32 %at, %at, %column;\n",
                constant(nth)
            )
        };
        let beside: String = (0..40).map(products).chain(["mov.b32 %sum, %at;\n".to_owned()]).collect();
        assert_eq!((chosen(&in_turn, 512).1, chosen(&beside, 512).1), (Some(64), None));
    }

    /// Threads of a group, for a kernel without loops that turns and adds `words` of `bits`: each word with the next, or
    /// `in_turn` each with what was made of the one before; and whether LLVM is to keep its order.
    fn held(words: usize, bits: u32, in_turn: bool, vector_bits: u32) -> (u32, bool) {
        let mut text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .reg .b32 %at;\n.reg .b{bits} %v<{words}>, %up, %down;\n.reg .b64 %p, %own;\nld.param.u64 %p, [out];\n\
             mov.u32 %at, %tid.x;\nmad.wide.u32 %own, %at, {}, %p;\n",
            bits / 8
        );
        for word in 0..words {
            text += &format!("ld.global.u{bits} %v{word}, [%own+{}];\n", word * 4096);
        }
        for step in 0..8 * words {
            let (own, before, next) = (step % words, (step + words - 1) % words, (step + words / 2) % words);
            let other = if in_turn { before } else { next };
            text += &format!(
                "shl.b{bits} %up, %v{own}, 7;\nshr.u{bits} %down, %v{other}, 11;\nxor.b{bits} %up, %up, %down;\n\
                 add.u{bits} %v{own}, %up, %v{other};\n"
            );
        }
        for word in 0..words {
            text += &format!("st.global.u{bits} [%own+{}], %v{word};\n", word * 4096);
        }
        text += "ret;\n}\n";
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let options = Options::new([256, 1, 1], vector_bits);
        let compiled = emit(&program, program.kernel("k").unwrap(), &options).unwrap();
        assert_eq!(compiled.setting, Setting::Simd);
        (compiled.width, compiled.text.contains(IN_ORDER))
    }

    #[test]
    fn groups_are_as_small_as_the_registers_ask_for_where_there_is_enough_to_do_at_a_time() {
        assert_eq!((held(24, 32, false, 256), held(24, 64, false, 256)), ((8, true), (4, true)));
        assert_eq!((held(6, 32, false, 256), held(24, 32, true, 256)), ((16, false), (16, true)));
        assert_eq!(held(24, 32, false, 512), (32, false));
    }
}
