//! Stores that go past the caches.
//!
//! An ordinary store first reads the line it writes: a kernel that writes a large array moves it twice. Where a grid
//! writes more than the caches hold, whole aligned lines that nothing in the kernel reads are written without that. Such
//! stores are not ordered with others, so kernels that order anything (fences, atomics, volatile accesses) have none.

use super::Emitter;
use super::memory::Access;
use crate::back::llvm::{Type, Val};
use crate::ir::{Edge, Inst, IntBin, Op, Order, Space, Term, Value};
use crate::pass::divergence::Divergence;
use crate::pass::regions::Plan;
use crate::pass::visit::{Definition, definitions, term_values};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Bytes written by a grid from which on they are not expected back from a cache.
const FROM_BYTES: u64 = 32 << 20;
const LINE_BYTES: u64 = 64;

#[derive(Default)]
pub(super) struct Streams {
    /// Regions and addresses of stores.
    stores: HashSet<(usize, Value)>,
    /// What one thread writes by them, each counted once.
    bytes: u64,
}

impl Streams {
    pub(super) fn of(plan: &Plan, lanes: u32) -> Streams {
        let (mut streams, mut read, mut found) = (Streams::default(), BTreeSet::new(), vec![]);
        let sources = Sources::of(plan);
        for (number, region) in plan.regions.iter().enumerate() {
            for inst in region.function.blocks.iter().flat_map(|block| &block.insts) {
                match inst.op {
                    Op::Load { space: Space::Global | Space::Generic, order: Order::Weak, .. } => {
                        match sources.parameter(number, inst.args[0]) {
                            Some(at) => read.insert(at),
                            // It may read anything.
                            None => return Streams::default(),
                        };
                    }
                    Op::CopyAsync(_) => match sources.parameter(number, inst.args[1]) {
                        Some(at) => drop(read.insert(at)),
                        None => return Streams::default(),
                    },
                    Op::Load { order: Order::Weak, .. } => {}
                    Op::Store { space, order: Order::Weak, mem, .. } => {
                        let step = u64::from(mem.bits / 8) * (inst.args.len() as u64 - 1);
                        let is_line = matches!(region.together.of[inst.args[0].index()],
                            Divergence::Affine { stride, .. } if stride == step as i64);
                        let is_whole = step > 0 && (step * u64::from(lanes)).is_multiple_of(LINE_BYTES);
                        if matches!(space, Space::Global | Space::Generic)
                            && is_line
                            && is_whole
                            && let Some(at) = sources.parameter(number, inst.args[0])
                        {
                            found.push((at, number, inst.args[0], step));
                        }
                    }
                    ref op if op.is_pure() || op.is_barrier() || op.is_warp_collective() => {}
                    Op::Special(_) | Op::Cvta { .. } | Op::GlobalAddr(_) | Op::SharedAddr(_) => {}
                    Op::LocalAddr(_) | Op::ParamAddr(_) => {}
                    _ => return Streams::default(),
                }
            }
        }
        for (at, region, address, step) in found {
            if !read.contains(&at) && streams.stores.insert((region, address)) {
                streams.bytes += step;
            }
        }
        streams
    }

    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    pub(super) fn has(&self, region: usize, address: Value) -> bool {
        self.stores.contains(&(region, address))
    }
}

/// Values that are looked at for an address: addresses are short.
const MOST: usize = 64;

/// What is known of values that were looked at: of those that are being looked at, that they are the same as themselves.
type Seen = HashMap<(usize, Value), Option<Option<i64>>>;

/// Where addresses come from.
struct Sources<'a> {
    plan: &'a Plan,
    /// By region.
    places: Vec<Vec<Definition>>,
    /// By region and block: what may come before it.
    before: Vec<Vec<Vec<Before<'a>>>>,
    prologue: HashMap<Value, &'a Inst>,
}

/// Who hands values to a block: one of the same region, or the end of one before.
#[derive(Clone, Copy)]
enum Before<'a> {
    Edge(&'a Edge),
    End(usize, &'a Term),
}

impl<'a> Sources<'a> {
    fn of(plan: &'a Plan) -> Sources<'a> {
        let mut before: Vec<Vec<Vec<Before<'a>>>> =
            plan.regions.iter().map(|region| vec![vec![]; region.function.blocks.len()]).collect();
        for (number, region) in plan.regions.iter().enumerate() {
            for (block, next) in region.function.blocks.iter().zip(&region.next) {
                for edge in block.term.edges() {
                    before[number][edge.block.index()].push(Before::Edge(edge));
                }
                if let Some(next) = *next {
                    before[next][0].push(Before::End(number, &block.term));
                }
            }
        }
        let prologue = plan.prologue.iter().flat_map(|inst| inst.results.iter().map(move |&it| (it, inst)));
        Sources {
            plan,
            places: plan.regions.iter().map(|region| definitions(&region.function)).collect(),
            before,
            prologue: prologue.collect(),
        }
    }

    /// The parameter whose array an address is in, by its offset.
    fn parameter(&self, region: usize, address: Value) -> Option<i64> {
        self.found(region, address, &mut Seen::new())?
    }

    fn inst(&self, region: usize, value: Value) -> Option<&'a Inst> {
        match self.places[region][value.index()] {
            Definition::Inst(at, nth, _) => Some(&self.plan.regions[region].function.blocks[at].insts[nth]),
            _ => self.prologue.get(&value).copied(),
        }
    }

    /// `Some(None)` where it is what is being looked at, as it goes round a loop.
    fn found(&self, region: usize, value: Value, seen: &mut Seen) -> Option<Option<i64>> {
        let name = (region, value);
        if let Some(&found) = seen.get(&name) {
            return found;
        }
        if seen.len() == MOST {
            return None;
        }
        seen.insert(name, Some(None));
        let found = self.source(region, value, seen);
        seen.insert(name, found);
        found
    }

    fn source(&self, region: usize, value: Value, seen: &mut Seen) -> Option<Option<i64>> {
        if let Definition::Param(at, nth) = self.places[region][value.index()] {
            return self.of_all(&self.before[region][at], (region, nth), seen);
        }
        let inst = self.inst(region, value)?;
        match &inst.op {
            Op::Load { space: Space::Param, offset, .. } => match self.inst(region, inst.args[0])?.op {
                Op::ParamAddr(start) => Some(Some(i64::from(start) + offset)),
                Op::Const(start) => Some(Some(i64::try_from(start).ok()? + offset)),
                _ => None,
            },
            Op::Cvta { .. } | Op::Bitcast => self.found(region, inst.args[0], seen),
            // Sums are followed on the side that leads to a pointer.
            Op::Int(IntBin::Add, _) => inst.args.iter().find_map(|&arg| self.found(region, arg, seen)),
            _ => None,
        }
    }

    /// The one that the block's parameter comes from by all ways.
    fn of_all(
        &self,
        before: &[Before<'_>],
        (region, nth): (usize, usize),
        seen: &mut Seen,
    ) -> Option<Option<i64>> {
        let mut one = None;
        for before in before {
            let (from, value) = match *before {
                Before::Edge(edge) => (region, edge.args[nth]),
                Before::End(from, term) => (from, term_values(term)[nth]),
            };
            if let Some(at) = self.found(from, value, seen)?
                && *one.get_or_insert(at) != at
            {
                return None;
            }
        }
        Some(one)
    }
}

impl Emitter<'_> {
    /// `%streams`: whether this grid writes that much.
    pub(super) fn start_streams(&mut self) {
        if self.streams.is_empty() {
            return;
        }
        self.b.inst("%grid.z64 = zext i32 %grid.z to i64");
        self.b.inst("%grid.xy = mul i64 %grid.x64, %grid.y64");
        self.b.inst("%grid.xyz = mul i64 %grid.xy, %grid.z64");
        if self.threads.open {
            let each = self.times_threads(self.streams.bytes);
            self.b.inst(format_args!("%streamed = mul i64 %grid.xyz, {}", each.text));
            self.b.inst(format_args!("%streams = icmp uge i64 %streamed, {FROM_BYTES}"));
        } else {
            let each = self.streams.bytes * self.threads.total();
            let blocks = FROM_BYTES.div_ceil(each.max(1));
            self.b.inst(format_args!("%streams = icmp uge i64 %grid.xyz, {blocks}"));
        }
    }

    /// Before the grid's end is told to anyone.
    pub(super) fn end_streams(&mut self) {
        if !self.streams.is_empty() {
            self.b.declare("llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()".to_owned());
            self.b.inst("call void @llvm.x86.sse.sfence()");
        }
    }

    /// All lanes' elements, past the caches if the grid is large and they are whole lines.
    pub(super) fn store_streamed(&mut self, access: Access, all: &Val, at: &Val) {
        let address = self.b.cast("ptrtoint", at, Type::int(64, 1));
        let rest = self.b.bin_int("and", &address, i128::from(LINE_BYTES - 1));
        let is_line = self.b.icmp_int("eq", &rest, 0);
        let streams = Val::new(Type::int(1, 1), "%streams");
        let past = self.b.and(&is_line, &streams);
        self.fork(
            &past,
            |me| {
                let (all, at) = (all.typed(), &at.text);
                me.b.inst(format_args!("store {all}, ptr {at}, align {LINE_BYTES}, !nontemporal !3"));
                vec![]
            },
            |me| {
                me.store_whole(access, all, at);
                vec![]
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::back::cpu::{Options, emit};
    use crate::program::{Program, Source};

    /// Whether `c[i] = …` goes past the caches in a kernel that does `work` with its own places in two arrays.
    fn streams(work: &str) -> bool {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 c) {{\n\
             .reg .pred %p;\n.reg .b32 %t, %b, %x;\n.reg .b64 %a, %c, %at;\nld.param.u64 %a, [a];\nld.param.u64 %c, [c];\n\
             cvta.to.global.u64 %a, %a;\ncvta.to.global.u64 %c, %c;\n\
             mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\nmad.lo.u32 %t, %b, 256, %t;\n\
             mul.wide.u32 %at, %t, 4;\nadd.u64 %a, %a, %at;\nadd.u64 %c, %c, %at;\n\
             ld.global.u32 %x, [%a];\n{work}st.global.u32 [%c], %x;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let options = Options { width: Some(32), ..Options::new([256, 1, 1], 512) };
        let compiled = emit(&program, program.kernel("k").unwrap(), &options).unwrap();
        let fenced = compiled.text.contains("sfence");
        assert_eq!(fenced, compiled.text.contains("!nontemporal"));
        fenced
    }

    #[test]
    fn only_what_nothing_reads_or_orders_goes_past_the_caches() {
        assert!(streams(""));
        assert!(streams("st.global.u32 [%a], %t;\n"));
        assert!(!streams("ld.global.u32 %x, [%c];\n"), "it is in the cache already");
        assert!(!streams("ld.global.u64 %c, [%c];\n"), "it may be anywhere");
        assert!(!streams("membar.gl;\n"));
        assert!(!streams("red.global.add.u32 [%a], 1;\n"));
        assert!(!streams("ld.volatile.global.u32 %x, [%a];\n"));
        assert!(!streams("add.u64 %c, %c, %at;\n"), "no whole lines");
    }

    #[test]
    fn an_address_is_known_round_loops_and_behind_barriers() {
        let again = "mov.u32 %b, 0;\nAGAIN:\nst.global.u32 [%c], %b;\nadd.u64 %c, %c, 1024;\nadd.u32 %b, %b, 1;\n\
                     setp.lt.u32 %p, %b, 4;\n@%p bra AGAIN;\n";
        assert!(streams(again));
        assert!(streams("bar.sync 0;\n"));
        assert!(streams(&format!("bar.sync 0;\n{again}bar.sync 0;\n")));
        let either =
            "setp.eq.u32 %p, %b, 0;\n@%p bra THERE;\nmov.u64 %c, %a;\nst.global.u32 [%c+1024], %x;\nTHERE:\n";
        assert!(!streams(either), "it may be of either array");
    }
}
