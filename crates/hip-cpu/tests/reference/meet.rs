//! Meeting others: barriers and warp collectives, by the manual's rules.
//!
//! A `.sync` collective is complete when every thread of its mask that has not ended waits in the same instruction form
//! with the same mask. A barrier is complete when as many threads as it wants have arrived; who has ended counts as
//! arrived.

use std::collections::{BTreeMap, BTreeSet};

use ptx::ast::{Instruction, OperandKind, Type};

use super::operand::truncate;
use super::thread::{Status, Thread};
use super::{Block, Result, Value};

/// What a thread waits in.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// `popc`, `and`, `or` in `reduction`.
    Barrier { id: u32, count: Option<u32>, arrive: bool, reduction: Option<String>, predicate: bool },
    /// The instruction's full name, its sources without the mask.
    Warp { name: String, sources: Vec<Value>, mask: u32 },
    /// With the instruction's place.
    ActiveMask { at: usize },
}

/// Arrivals of threads that went on, by barrier.
#[derive(Default)]
pub struct Barriers(BTreeMap<u32, u32>);

impl<'a> Thread<'_, 'a> {
    /// What the instruction asks for.
    pub fn request(&self, block: &Block<'_>, instruction: &Instruction<'a>) -> Result<Request> {
        let operands = &instruction.operands;
        let value = |nth: usize, ty| {
            let operand = operands.get(nth).ok_or("an operand is missing")?;
            self.known(block, operand, Some(ty)).map(|it| truncate(it, ty.bits()))
        };
        match instruction.opcode.value {
            "activemask" => Ok(Request::ActiveMask { at: instruction.span.start as usize }),
            "bar" | "barrier" if !instruction.has("warp") => {
                if instruction.has("cluster") {
                    return Err("clusters are not known here".to_owned());
                }
                let reduction = ["popc", "and", "or"].iter().find(|it| instruction.has(it));
                let first = usize::from(reduction.is_some());
                let last = operands.len() - first;
                let count = if last > first + 1 { Some(value(first + 1, Type::U32)? as u32) } else { None };
                let predicate = reduction.is_some() && value(operands.len() - 1, Type::Pred)? != 0;
                Ok(Request::Barrier {
                    id: value(first, Type::U32)? as u32,
                    count,
                    arrive: instruction.has("arrive"),
                    reduction: reduction.map(|it| (*it).to_owned()),
                    predicate,
                })
            }
            opcode => {
                if opcode != "elect" && !instruction.has("sync") {
                    return Err("who takes part without .sync is up to the machine".to_owned());
                }
                let ty =
                    instruction.modifiers.iter().find_map(|it| Type::parse(it.value)).unwrap_or(Type::B32);
                let first = usize::from(opcode != "bar");
                let sources = (first..operands.len() - 1)
                    .map(|nth| match opcode {
                        // What is passed on may be open.
                        "shfl" if nth == 1 => self.source(block, &operands[nth], Some(ty)),
                        "shfl" => value(nth, Type::B32).map(Some),
                        _ => value(nth, ty).map(Some),
                    })
                    .collect::<Result<_>>()?;
                let mask = value(operands.len() - 1, Type::B32)? as u32;
                if mask >> (self.linear % 32) & 1 == 0 {
                    return Err("the thread is not in its own mask".to_owned());
                }
                Ok(Request::Warp { name: instruction.full_name(), sources, mask })
            }
        }
    }

    fn wants_second(&self, results: &mut Vec<Value>) {
        let frame = self.frame();
        let instruction = frame.instruction();
        if !matches!(instruction.operands[0].kind, OperandKind::Pair(..)) {
            results.truncate(1);
        }
    }
}

/// Lets go on whoever can; whether any could.
pub fn release(threads: &mut [Thread<'_, '_>], barriers: &mut Barriers) -> Result<bool> {
    let mut any = false;
    for thread in threads.iter_mut() {
        if let Status::Waits(Request::Barrier { id, arrive: true, .. }) = thread.status {
            *barriers.0.entry(id).or_default() += 1;
            thread.resume(&[])?;
            any = true;
        }
    }
    for warp in threads.chunks_mut(32) {
        any |= release_collectives(warp)?;
    }
    any |= release_barriers(threads, barriers)?;
    // A thread that asks who is with it lets the others come first.
    if !any {
        for warp in threads.chunks_mut(32) {
            any |= release_active_masks(warp)?;
        }
    }
    Ok(any)
}

fn release_active_masks(warp: &mut [Thread<'_, '_>]) -> Result<bool> {
    let mut masks: BTreeMap<usize, u128> = BTreeMap::new();
    for (lane, thread) in warp.iter().enumerate() {
        if let Status::Waits(Request::ActiveMask { at }) = thread.status {
            *masks.entry(at).or_default() |= 1 << lane;
        }
    }
    for thread in warp.iter_mut() {
        if let Status::Waits(Request::ActiveMask { at }) = thread.status {
            thread.resume(&[Some(masks[&at])])?;
        }
    }
    Ok(!masks.is_empty())
}

fn release_collectives(warp: &mut [Thread<'_, '_>]) -> Result<bool> {
    let mut any = false;
    for lane in 0..warp.len() {
        let Status::Waits(Request::Warp { name, mask, .. }) = warp[lane].status.clone() else { continue };
        let members: Vec<usize> =
            (0..warp.len()).filter(|&it| mask >> it & 1 == 1 && warp[it].status != Status::Ended).collect();
        let mut sources: BTreeMap<usize, Vec<Value>> = BTreeMap::new();
        for &member in &members {
            if let Status::Waits(Request::Warp { name: its, sources: values, mask: others }) =
                &warp[member].status
                && *its == name
                && *others == mask
            {
                sources.insert(member, values.clone());
            }
        }
        if sources.len() < members.len() {
            continue;
        }
        for &member in &members {
            let mut results = collective(&name, member, &sources)?;
            if !results.is_empty() {
                warp[member].wants_second(&mut results);
            }
            warp[member].resume(&results)?;
        }
        any = true;
    }
    Ok(any)
}

/// What `lane` gets, where `all` has the sources of each member.
fn collective(name: &str, lane: usize, all: &BTreeMap<usize, Vec<Value>>) -> Result<Vec<Value>> {
    let words: Vec<&str> = name.split('.').collect();
    let own = &all[&lane];
    let lanes_where = |holds: &dyn Fn(&[Value]) -> bool| -> u128 {
        all.iter().filter(|(_, it)| holds(it)).map(|(lane, _)| 1u128 << lane).sum()
    };
    let members = lanes_where(&|_| true);
    match words.as_slice() {
        ["bar", "warp", "sync"] => Ok(vec![]),
        ["elect", ..] => {
            let leader = *all.keys().next().expect("the thread itself is one");
            Ok(vec![Some(leader as u128), Some(u128::from(leader == lane))])
        }
        ["vote", "sync", mode, _] => {
            let holds = lanes_where(&|it| it[0] != Some(0));
            Ok(vec![Some(match *mode {
                "all" => u128::from(holds == members),
                "any" => u128::from(holds != 0),
                "uni" => u128::from(holds == 0 || holds == members),
                _ => holds,
            })])
        }
        ["match", "any", ..] => Ok(vec![Some(lanes_where(&|it| it[0] == own[0]))]),
        ["match", "all", ..] => {
            let same = lanes_where(&|it| it[0] == own[0]) == members;
            Ok(vec![Some(if same { members } else { 0 }), Some(u128::from(same))])
        }
        ["redux", "sync", operation, modifiers @ .., "f32"] => {
            let is = |modifier| modifiers.contains(&modifier);
            let number =
                |bits: u128| f32::from_bits(bits as u32 & if is("abs") { 0x7fff_ffff } else { u32::MAX });
            let all: Vec<f32> = all.values().filter_map(|it| it[0].map(number)).collect();
            let numbers = || all.iter().copied().filter(|it| !it.is_nan());
            let result = match *operation {
                _ if is("NaN") && all.iter().any(|it| it.is_nan()) => None,
                "min" => numbers().min_by(f32::total_cmp),
                "max" => numbers().max_by(f32::total_cmp),
                other => return Err(format!("redux.{other}.f32")),
            };
            Ok(vec![Some(result.map_or(0x7fff_ffff, f32::to_bits).into())])
        }
        ["redux", "sync", operation, ty] => {
            let signed = *ty == "s32";
            let number =
                |bits: u128| if signed { i64::from(bits as u32 as i32) } else { i64::from(bits as u32) };
            let numbers: Vec<i64> = all.values().filter_map(|it| it[0].map(number)).collect();
            let words = || all.values().filter_map(|it| it[0].map(|it| it as u32));
            let result = match *operation {
                "add" => numbers.iter().fold(0u32, |sum, it| sum.wrapping_add(*it as u32)),
                "min" => *numbers.iter().min().expect("the thread itself") as u32,
                "max" => *numbers.iter().max().expect("the thread itself") as u32,
                "and" => words().fold(u32::MAX, |a, b| a & b),
                "or" => words().fold(0, |a, b| a | b),
                "xor" => words().fold(0, |a, b| a ^ b),
                other => return Err(format!("redux.{other}")),
            };
            Ok(vec![Some(u128::from(result))])
        }
        ["shfl", "sync", mode, _] => shfl(mode, lane, own, all),
        _ => Err(format!("{name} is not known here")),
    }
}

/// The pseudocode of the manual's chapter on `shfl.sync`.
fn shfl(mode: &str, lane: usize, own: &[Value], all: &BTreeMap<usize, Vec<Value>>) -> Result<Vec<Value>> {
    let (Some(b), Some(c)) = (own[1], own[2]) else { return Err(super::OPEN.to_owned()) };
    let (b, c) = (b as usize, c as usize);
    let (bval, cval, mask) = (b & 0x1f, c & 0x1f, c >> 8 & 0x1f);
    let max_lane = lane & mask | cval & !mask;
    let min_lane = lane & mask;
    let (from, in_range) = match mode {
        "up" => {
            let from = lane as isize - bval as isize;
            (from, from >= max_lane as isize)
        }
        "down" => (((lane + bval) as isize), lane + bval <= max_lane),
        "bfly" => (((lane ^ bval) as isize), lane ^ bval <= max_lane),
        _ => {
            let from = min_lane | bval & !mask & 0x1f;
            (from as isize, from <= max_lane)
        }
    };
    let from = if in_range { from as usize } else { lane };
    let theirs = all.get(&from).ok_or_else(|| format!("shfl reads lane {from}, which takes no part"))?;
    Ok(vec![theirs[0], Some(u128::from(in_range))])
}

fn release_barriers(threads: &mut [Thread<'_, '_>], barriers: &mut Barriers) -> Result<bool> {
    let mut waiting: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (nth, thread) in threads.iter().enumerate() {
        if let Status::Waits(Request::Barrier { id, .. }) = thread.status {
            waiting.entry(id).or_default().push(nth);
        }
    }
    let mut any = false;
    for (id, here) in waiting {
        let Status::Waits(Request::Barrier { count, reduction, .. }) = threads[here[0]].status.clone() else {
            continue;
        };
        let ended = |nth: &usize| threads[*nth].status == Status::Ended;
        let arrived = here.len() as u32 + barriers.0.get(&id).copied().unwrap_or(0);
        let complete = match count {
            None => here.len() + (0..threads.len()).filter(ended).count() == threads.len(),
            Some(count) => {
                // A warp arrives as a whole, with those of its threads that have ended.
                let warps: BTreeSet<usize> = here.iter().map(|nth| nth / 32).collect();
                let gone = (0..threads.len()).filter(ended).filter(|nth| warps.contains(&(nth / 32))).count();
                arrived + gone as u32 >= count
            }
        };
        if !complete {
            continue;
        }
        let holds = |nth: &&usize| {
            matches!(threads[**nth].status, Status::Waits(Request::Barrier { predicate: true, .. }))
        };
        let n_true = here.iter().filter(holds).count();
        let result = match reduction.as_deref() {
            None => vec![],
            Some("popc") => vec![Some(n_true as u128)],
            Some("and") => vec![Some(u128::from(n_true == here.len()))],
            _ => vec![Some(u128::from(n_true > 0))],
        };
        for nth in here {
            threads[nth].resume(&result)?;
        }
        barriers.0.remove(&id);
        any = true;
    }
    Ok(any)
}
