//! The tree as PTX text.
//!
//! The text keeps the promises that make its result the same in any order: barriers only where the whole block comes
//! by, collectives only with the mask of exactly those that come by, shuffles only from lanes that take part, shared
//! places written by one thread between barriers or with operations whose order does not matter.

use std::fmt::Write;

use super::forms::{Form, Kind, Slot};
use super::{Condition, Guard, Kernel, Stmt, Trips};

/// Registers of each kind that statements use; those with higher numbers are used once.
const fn pool(kind: Kind) -> u32 {
    match kind {
        Kind::Pred => 4,
        Kind::B16 | Kind::B64 | Kind::F32 => 5,
        Kind::B32 => 8,
        Kind::F64 => 3,
    }
}

/// Bytes of the results of a thread.
pub const RESULT_BYTES: usize = 144;
/// Bytes of a thread's own scratch memory, and of its local array.
pub const SCRATCH_BYTES: usize = 64;
/// 4-byte lines of `lines`: a thread owns one word of each.
pub const LINES: usize = 8;
/// Bytes of the read-only data: words, then floats from 2048, then doubles from 3072.
pub const INPUT_BYTES: usize = 4096;
/// 8-byte places for everybody's operations.
pub const COUNTERS: usize = 14;

/// What can be loaded or stored: type, registers, bytes, lanes, and the part of the input it may come from.
const ACCESSES: &[(&str, Kind, u32, u32, u32, u32)] = &[
    ("b32", Kind::B32, 4, 1, 0, 255),
    ("u8", Kind::B32, 1, 1, 0, 255),
    ("s8", Kind::B32, 1, 1, 0, 255),
    ("u16", Kind::B16, 2, 1, 0, 255),
    ("s16", Kind::B32, 2, 1, 0, 255),
    ("b64", Kind::B64, 8, 1, 0, 255),
    ("f32", Kind::F32, 4, 1, 2048, 255),
    ("f64", Kind::F64, 8, 1, 3072, 127),
    ("v2.b32", Kind::B32, 4, 2, 0, 255),
    ("v4.u32", Kind::B32, 4, 4, 0, 127),
    ("v2.f32", Kind::F32, 4, 2, 2048, 127),
    ("v4.f32", Kind::F32, 4, 4, 2048, 63),
    ("v2.u64", Kind::B64, 8, 2, 0, 127),
    ("v4.s8", Kind::B32, 1, 4, 0, 255),
    ("u32", Kind::B64, 4, 1, 0, 255),
    ("s32", Kind::B64, 4, 1, 0, 255),
    ("s8", Kind::B16, 1, 1, 0, 255),
    ("v2.b16", Kind::B16, 2, 2, 0, 255),
    ("v2.f64", Kind::F64, 8, 2, 3072, 63),
];

/// Operations whose order does not matter, each with a place of its own.
const COMMUTING: &[(&str, &str, Kind)] = &[
    ("add", "u32", Kind::B32),
    ("min", "s32", Kind::B32),
    ("max", "u32", Kind::B32),
    ("and", "b32", Kind::B32),
    ("or", "b32", Kind::B32),
    ("xor", "b32", Kind::B32),
    ("inc", "u32", Kind::B32),
    ("dec", "u32", Kind::B32),
    ("add", "s32", Kind::B32),
    ("min", "u32", Kind::B32),
    ("add", "u64", Kind::B64),
    ("max", "s64", Kind::B64),
    ("min", "u64", Kind::B64),
    ("xor", "b64", Kind::B64),
];

/// Where a statement stands.
#[derive(Clone)]
struct Place {
    /// All threads of the block come by, in the same trip of every loop.
    uniform: bool,
    /// The threads of the warp that come by.
    mask: Option<String>,
    break_to: Option<String>,
    function: bool,
    /// Functions before this one may be called.
    callable: usize,
}

struct Emitter<'f> {
    forms: &'f [Vec<Form>],
    kernel: &'f Kernel,
    text: String,
    fresh: [u32; 6],
    labels: u32,
    has_exit: bool,
}

/// The module: one kernel `kernel(in, out, scratch, lines, counters, n)`.
pub fn module(kernel: &Kernel, forms: &[Vec<Form>]) -> String {
    let has_exit = kernel.functions.iter().chain([&kernel.body]).any(|list| exits(list));
    let threads: u32 = kernel.block.iter().product();
    let mut text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 slots[{}];\n\
         .shared .align 16 .b8 counts[{}];\n",
        threads * 16,
        COUNTERS * 8
    );
    let emitter =
        || Emitter { forms, kernel, text: String::new(), fresh: Kind::ALL.map(pool), labels: 0, has_exit };
    for (nth, body) in kernel.functions.iter().enumerate() {
        let function = emitter().function(nth, body);
        let _ =
            write!(text, ".func (.param .b64 ret) f{nth}(.param .b32 a, .param .b64 b)\n{{\n{function}}}\n");
    }
    let _ = write!(
        text,
        ".visible .entry kernel(.param .u64 in, .param .u64 out, .param .u64 scratch, .param .u64 lines, \
         .param .u64 counters, .param .u32 n)\n{{\n{}}}\n",
        emitter().entry()
    );
    text
}

fn exits(list: &[Stmt]) -> bool {
    list.iter().any(|it| match it {
        Stmt::Exit { .. } => true,
        Stmt::If { then, otherwise, .. } | Stmt::SplitBarrier { then, otherwise, .. } => {
            exits(then) || exits(otherwise)
        }
        Stmt::Loop { body, .. } => exits(body),
        Stmt::Switch { arms, .. } => arms.iter().any(|arm| exits(arm)),
        _ => false,
    })
}

fn register(kind: Kind, number: u8) -> String {
    format!("{}{}", kind.stem(), u32::from(number) % pool(kind))
}

fn guarded(guard: Guard) -> String {
    guard.map_or_else(String::new, |(number, negated)| {
        format!("@{}{} ", if negated { "!" } else { "" }, register(Kind::Pred, number))
    })
}

/// `{a, b}` or `a`: `lanes` registers from `number` on, all different.
fn registers(kind: Kind, number: u8, lanes: u32) -> String {
    let names: Vec<String> =
        (0..lanes).map(|nth| format!("{}{}", kind.stem(), (u32::from(number) + nth) % pool(kind))).collect();
    if lanes == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) }
}

macro_rules! line {
    ($self:ident, $($arg:tt)*) => {{
        let _ = writeln!($self.text, $($arg)*);
    }};
}

impl Emitter<'_> {
    fn fresh(&mut self, kind: Kind) -> String {
        let counter = &mut self.fresh[kind as usize];
        *counter += 1;
        format!("{}{}", kind.stem(), *counter - 1)
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn threads(&self) -> u32 {
        self.kernel.block.iter().product()
    }

    /// With the declarations in front.
    fn finish(self) -> String {
        let mut text = String::from(
            ".local .align 16 .b8 loc[64];\n.reg .b32 %lin, %gid, %warp;\n\
             .reg .b64 %in, %out, %scr, %lines, %cnt, %loc;\n",
        );
        for kind in Kind::ALL {
            let _ = writeln!(text, ".reg .{} {}<{}>;", kind.ty(), kind.stem(), self.fresh[kind as usize]);
        }
        text + &self.text
    }

    fn entry(mut self) -> String {
        let kernel = self.kernel;
        for (register, param) in
            [("in", "in"), ("out", "out"), ("scr", "scratch"), ("lines", "lines"), ("cnt", "counters")]
        {
            line!(self, "ld.param.u64 %{register}, [{param}];");
            line!(self, "cvta.to.global.u64 %{register}, %{register};");
        }
        self.position();
        line!(self, "mov.u32 %r0, %ctaid.x;\nmad.lo.u32 %gid, %r0, {}, %lin;", self.threads());
        line!(self, "mul.wide.u32 %d0, %gid, {RESULT_BYTES};\nadd.u64 %out, %out, %d0;");
        line!(self, "mul.wide.u32 %d0, %gid, {SCRATCH_BYTES};\nadd.u64 %scr, %scr, %d0;");
        line!(self, "and.b32 %r1, %gid, 63;\nmul.wide.u32 %d0, %r1, 8;\nadd.u64 %d0, %d0, %in;");
        line!(self, "ld.global.u32 %r2, [%d0];\nld.global.v2.u32 {{%r3, %r4}}, [%d0+512];");
        line!(self, "ld.global.v2.f32 {{%f0, %f1}}, [%d0+2048];\nld.global.f32 %f2, [%d0+2052];");
        line!(self, "ld.global.f64 %g0, [%d0+3072];\nld.global.f64 %g1, [%d0+3080];\nmov.f64 %g2, %g0;");
        line!(
            self,
            "mov.f32 %f3, 0f3FC00000;\nmov.f32 %f4, %f0;\nld.param.u32 %r5, [n];\nmov.u32 %r6, %laneid;"
        );
        line!(self, "mov.u32 %r7, {};\nmov.b64 %d1, {{%r2, %r3}};\nmov.u64 %d2, 77;", kernel.seed);
        line!(self, "ld.global.u64 %d3, [%d0+256];\ncvt.u64.u32 %d4, %gid;\ncvt.u64.u32 %d0, %lin;");
        self.rest_of_the_registers();
        // Own slot and the counters get their first values before anybody looks.
        let slot = self.own_slot("%lin");
        line!(self, "st.shared.v4.u32 [{slot}], {{%r2, %lin, %r3, %gid}};");
        line!(self, "setp.ne.u32 %p0, %lin, 0;");
        let behind = self.label();
        line!(self, "@%p0 bra {behind};");
        for at in 0..COUNTERS {
            line!(self, "st.shared.u64 [counts+{}], {};", at * 8, at * 1000);
        }
        line!(self, "{behind}:\nbar.sync 0;\nsetp.lt.s32 %p0, %r2, %r3;");
        let place = Place {
            uniform: true,
            mask: self.all_lanes(),
            break_to: None,
            function: false,
            callable: kernel.functions.len(),
        };
        self.list(&kernel.body, &place);
        self.results();
        line!(self, "ret;");
        self.finish()
    }

    fn function(mut self, nth: usize, body: &[Stmt]) -> String {
        self.position();
        line!(self, "mov.u32 %gid, %lin;\nld.param.b32 %r0, [a];\nld.param.b64 %d0, [b];");
        line!(self, "cvt.u32.u64 %r1, %d0;");
        for at in 2..pool(Kind::B32) {
            line!(self, "mad.lo.u32 %r{at}, %r{}, {}, %r{};", at - 1, 0x9e37 + at, at - 2);
        }
        for at in 1..pool(Kind::B64) {
            line!(self, "add.u64 %d{at}, %d{}, {};", at - 1, 0x1234_5678_9abc_u64 * u64::from(at));
        }
        for at in 0..pool(Kind::F32) {
            line!(self, "cvt.rn.f32.s32 %f{at}, %r{at};");
        }
        for at in 0..pool(Kind::F64) {
            line!(self, "cvt.rn.f64.s64 %g{at}, %d{at};");
        }
        self.rest_of_the_registers();
        line!(self, "setp.lt.s32 %p0, %r2, %r3;");
        // The odd ones are called by whole blocks only.
        let whole = nth % 2 == 1;
        let place = Place {
            uniform: whole,
            mask: self.all_lanes().filter(|_| whole),
            break_to: None,
            function: true,
            callable: nth,
        };
        self.list(body, &place);
        line!(self, "mov.b64 %d0, {{%r0, %r1}};\nxor.b64 %d0, %d0, %d1;\nst.param.b64 [ret], %d0;\nret;");
        self.finish()
    }

    /// The mask of a whole warp, if there are to be collectives.
    fn all_lanes(&self) -> Option<String> {
        self.kernel.warp.then(|| "0xffffffff".to_owned())
    }

    /// Index in the block, and the warp.
    fn position(&mut self) {
        line!(self, "mov.u32 %lin, %tid.x;");
        if self.kernel.block[1] * self.kernel.block[2] > 1 {
            line!(self, "mov.u32 %r1, %tid.y;\nmov.u32 %r2, %tid.z;\nmov.u32 %r3, %ntid.y;");
            line!(
                self,
                "mad.lo.u32 %r1, %r2, %r3, %r1;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %lin, %r1, %r3, %lin;"
            );
        }
        line!(self, "shr.u32 %warp, %lin, 5;");
    }

    fn rest_of_the_registers(&mut self) {
        for at in 0..pool(Kind::B16) {
            line!(self, "cvt.u16.u32 %h{at}, %r{at};");
        }
        for at in 0..pool(Kind::Pred) {
            line!(self, "setp.gt.s32 %p{at}, %r{at}, %r{};", at + 1);
        }
        for at in 0..16 {
            line!(self, "st.local.u32 [loc+{}], %r{};", at * 4, at % pool(Kind::B32));
        }
        line!(self, "mov.u64 %loc, loc;\ncvta.local.u64 %loc, %loc;");
    }

    /// All registers to the thread's part of `out`.
    fn results(&mut self) {
        line!(self, "st.global.v2.u64 [%out], {{%d0, %d1}};\nst.global.v2.u64 [%out+16], {{%d2, %d3}};");
        line!(self, "st.global.u64 [%out+32], %d4;\nst.global.f64 [%out+40], %g0;");
        line!(self, "st.global.v2.f64 [%out+48], {{%g1, %g2}};");
        line!(self, "st.global.v4.u32 [%out+64], {{%r0, %r1, %r2, %r3}};");
        line!(self, "st.global.v4.u32 [%out+80], {{%r4, %r5, %r6, %r7}};");
        line!(self, "st.global.v4.f32 [%out+96], {{%f0, %f1, %f2, %f3}};\nst.global.f32 [%out+112], %f4;");
        for at in 0..pool(Kind::B16) {
            line!(self, "st.global.u16 [%out+{}], %h{at};", 116 + 2 * at);
        }
        for at in 0..pool(Kind::Pred) {
            let bit = self.fresh(Kind::B32);
            line!(self, "selp.u32 {bit}, 1, 0, %p{at};\nst.global.u32 [%out+{}], {bit};", 128 + 4 * at);
        }
    }

    fn own_slot(&mut self, index: &str) -> String {
        let address = self.fresh(Kind::B32);
        let base = self.fresh(Kind::B32);
        line!(self, "mov.u32 {base}, slots;\nmad.lo.u32 {address}, {index}, 16, {base};");
        address
    }

    fn list(&mut self, list: &[Stmt], place: &Place) {
        for each in list {
            self.statement(each, place);
        }
    }

    fn statement(&mut self, statement: &Stmt, place: &Place) {
        match statement {
            Stmt::Pure { row, alternative, operands, immediate, guard } => {
                self.pure(*row, *alternative, operands, *immediate, *guard);
            }
            Stmt::If { condition, masked, then, otherwise } => {
                self.branch(condition, *masked, then, otherwise, place);
            }
            Stmt::Loop { trips, masked, body } => self.repeat(trips, *masked, body, place),
            Stmt::Switch { index, arms } => self.switch(*index, arms, place),
            Stmt::Break { condition } => {
                if let Some(label) = &place.break_to {
                    line!(self, "@{} bra {label};", register(Kind::Pred, *condition));
                }
            }
            Stmt::Exit { condition } => {
                // Rare enough that threads are left.
                let (p, t) = (self.fresh(Kind::Pred), self.fresh(Kind::B32));
                line!(self, "xor.b32 {t}, {}, %gid;\nand.b32 {t}, {t}, 3;", register(Kind::B32, *condition));
                let stay = self.label();
                line!(self, "setp.ne.u32 {p}, {t}, {};\n@{p} bra {stay};", condition >> 6);
                if !place.function {
                    line!(self, "st.global.v4.u32 [%out+64], {{%r0, %r1, %r2, %r3}};");
                    line!(self, "st.global.v2.u64 [%out], {{%d0, %d1}};");
                }
                line!(self, "exit;\n{stay}:");
            }
            Stmt::Collective { kind, operands } => self.collective(*kind, operands, place),
            Stmt::SplitBarrier { condition, then, otherwise } => {
                if self.kernel.wild && place.uniform {
                    self.split_barrier(*condition, then, otherwise, place);
                }
            }
            Stmt::Barrier { kind, operand } => {
                if place.uniform {
                    self.barrier(*kind, *operand);
                }
            }
            Stmt::Exchange { kind, operands } => {
                if place.uniform {
                    self.exchange(*kind, operands);
                }
            }
            Stmt::Atomic { kind, operand, guard } => self.atomic(*kind, *operand, *guard, place),
            Stmt::OwnAtomic { kind, operands } => {
                if !place.function {
                    self.own_atomic(*kind, operands);
                }
            }
            Stmt::Load { kind, operands, guard } => {
                if !place.function {
                    self.load(*kind, operands, *guard);
                }
            }
            Stmt::Store { place: at, kind, operands, guard } => {
                self.own_memory(*at, *kind, operands, Some(*guard), place);
            }
            Stmt::Fetch { place: at, kind, operands } => self.own_memory(*at, *kind, operands, None, place),
            Stmt::Call { function, operands } => self.call(*function, operands, place),
        }
    }

    fn pure(
        &mut self,
        row: u16,
        alternative: u16,
        operands: &[u8; 6],
        immediate: Option<(u8, u64)>,
        guard: Guard,
    ) {
        let forms = &self.forms[usize::from(row) % self.forms.len()];
        let form = forms[usize::from(alternative) % forms.len()].clone();
        let operands_seed = operands[0];
        let mut operands = operands.iter();
        let mut next = || *operands.next().expect("no form has more operands");
        let destinations: Vec<String> = match form.destinations.as_slice() {
            [kind] => vec![register(*kind, next())],
            // Both must not be the same register.
            [first, second] => {
                let number = next();
                vec![register(*first, number), register(*second, number.wrapping_add(1) % 4)]
            }
            _ => return,
        };
        let n_sources = form.sources.len();
        let mut sources = vec![];
        for (nth, slot) in form.sources.iter().enumerate() {
            let constant = immediate.filter(|(at, _)| usize::from(*at) % n_sources == nth).map(|it| it.1);
            sources.push(match slot {
                Slot::Literal(text) => text.clone(),
                Slot::Negated => format!("!{}", register(Kind::Pred, next())),
                Slot::Register(kind) => match constant.and_then(|value| written(&form, *kind, value)) {
                    Some(constant) => constant,
                    None => register(*kind, next()),
                },
            });
        }
        if form.divides()
            && let Slot::Register(kind) = form.sources[1]
        {
            // A division by 0 has no defined result.
            let odd = self.fresh(kind);
            line!(self, "or.{} {odd}, {}, 1;", kind.ty(), sources[1]);
            sources[1] = odd;
        }
        if ["addc", "subc", "madc"].iter().any(|it| form.name.starts_with(it)) {
            let sum = self.fresh(Kind::B32);
            line!(
                self,
                "{}.cc.u32 {sum}, {}, {};",
                ["add", "sub"][usize::from(operands_seed & 1)],
                register(Kind::B32, operands_seed),
                register(Kind::B32, operands_seed >> 4)
            );
        }
        line!(self, "{}{} {}, {};", guarded(guard), form.name, destinations.join("|"), sources.join(", "));
    }

    /// A predicate, whether all threads of the block agree on it, whether those of the warp do.
    fn condition(&mut self, condition: &Condition, place: &Place) -> (String, bool, bool) {
        let p = self.fresh(Kind::Pred);
        match condition {
            Condition::Uniform(number) => {
                let t = self.fresh(Kind::B32);
                line!(
                    self,
                    "mov.u32 {t}, %ctaid.x;\nadd.u32 {t}, {t}, {};\nand.b32 {t}, {t}, 2;",
                    number & 3
                );
                line!(self, "setp.eq.u32 {p}, {t}, 0;");
                (p, true, true)
            }
            Condition::Warp(number) => {
                let t = self.fresh(Kind::B32);
                line!(self, "and.b32 {t}, %warp, 1;\nsetp.eq.u32 {p}, {t}, {};", number & 1);
                (p, false, true)
            }
            Condition::Vote(number) => match &place.mask {
                Some(mask) => {
                    let mode = ["any", "all", "uni"][usize::from(number >> 4) % 3];
                    let own = register(Kind::Pred, *number);
                    line!(self, "vote.sync.{mode}.pred {p}, {own}, {mask};");
                    (p, false, true)
                }
                None => (register(Kind::Pred, *number), false, false),
            },
            Condition::Own(number) if number & 4 == 0 => (register(Kind::Pred, *number), false, false),
            Condition::Own(number) => {
                let compare = ["lt.s32", "eq.u32", "ge.u32", "ne.s32"][usize::from(number >> 6)];
                let (a, b) = (register(Kind::B32, *number), register(Kind::B32, number >> 3));
                line!(self, "setp.{compare} {p}, {a}, {b};");
                (p, false, false)
            }
        }
    }

    /// Where the threads for which `p` (or `!p`) holds go.
    fn side(
        &mut self,
        p: &str,
        uniform: bool,
        in_warp: bool,
        masked: bool,
        negated: bool,
        place: &Place,
    ) -> Place {
        let mut side = place.clone();
        side.uniform &= uniform;
        if !in_warp {
            side.mask = match &place.mask {
                Some(mask) if masked && (self.kernel.wild || !negated) => {
                    let own = self.fresh(Kind::B32);
                    let not = if negated { "!" } else { "" };
                    line!(self, "vote.sync.ballot.b32 {own}, {not}{p}, {mask};");
                    Some(own)
                }
                _ => None,
            };
        }
        side
    }

    fn branch(
        &mut self,
        condition: &Condition,
        masked: bool,
        then: &[Stmt],
        otherwise: &[Stmt],
        place: &Place,
    ) {
        let (p, uniform, in_warp) = self.condition(condition, place);
        let yes = self.side(&p, uniform, in_warp, masked, false, place);
        let no = self.side(&p, uniform, in_warp, masked, true, place);
        let (other, end) = (self.label(), self.label());
        line!(self, "@!{p} bra {other};");
        self.list(then, &yes);
        if !otherwise.is_empty() {
            line!(self, "bra {end};");
        }
        line!(self, "{other}:");
        self.list(otherwise, &no);
        line!(self, "{end}:");
    }

    fn repeat(&mut self, trips: &Trips, masked: bool, body: &[Stmt], place: &Place) {
        let (i, n, p) = (self.fresh(Kind::B32), self.fresh(Kind::B32), self.fresh(Kind::Pred));
        let (head, end) = (self.label(), self.label());
        let mut inner = place.clone();
        inner.break_to = None;
        line!(self, "mov.u32 {i}, 0;");
        match trips {
            Trips::Constant(number) => line!(self, "mov.u32 {n}, {};", number % 4),
            Trips::Uniform(number) => {
                line!(
                    self,
                    "mov.u32 {n}, %ctaid.x;\nadd.u32 {n}, {n}, {};\nand.b32 {n}, {n}, 3;",
                    number & 3
                );
            }
            Trips::Own(number) => {
                line!(self, "and.b32 {n}, {}, 3;", register(Kind::B32, *number));
                inner.uniform = false;
                inner.mask = None;
                inner.break_to = Some(end.clone());
            }
        }
        // Those who are still in the loop, kept up to date at its head.
        let own_mask = match (trips, &place.mask) {
            (Trips::Own(_), Some(mask)) if masked && self.kernel.wild => {
                let own = self.fresh(Kind::B32);
                line!(self, "mov.b32 {own}, {mask};");
                (inner.mask, inner.break_to) = (Some(own.clone()), None);
                Some(own)
            }
            _ => None,
        };
        line!(self, "{head}:\nsetp.ge.u32 {p}, {i}, {n};");
        if let Some(own) = own_mask {
            line!(self, "vote.sync.ballot.b32 {own}, !{p}, {own};");
        }
        line!(self, "@{p} bra {end};");
        self.list(body, &inner);
        line!(self, "add.u32 {i}, {i}, 1;\nbra {head};\n{end}:");
    }

    fn switch(&mut self, index: u8, arms: &[Vec<Stmt>], place: &Place) {
        let (t, list, end) = (self.fresh(Kind::B32), self.label(), self.label());
        let mut inner = place.clone();
        if index & 0x40 == 0 {
            line!(self, "mov.u32 {t}, %ctaid.x;");
        } else {
            line!(self, "and.b32 {t}, {}, 0xffff;", register(Kind::B32, index));
            (inner.uniform, inner.mask) = (false, None);
        }
        line!(self, "rem.u32 {t}, {t}, {};", arms.len());
        let labels: Vec<String> = arms.iter().map(|_| self.label()).collect();
        line!(self, "{list}: .branchtargets {};\nbrx.idx {t}, {list};", labels.join(", "));
        for (arm, label) in arms.iter().zip(labels) {
            line!(self, "{label}:");
            self.list(arm, &inner);
            line!(self, "bra {end};");
        }
        line!(self, "{end}:");
    }

    fn split_barrier(&mut self, condition: u8, then: &[Stmt], otherwise: &[Stmt], place: &Place) {
        let inner = Place { uniform: false, mask: None, ..place.clone() };
        let (other, end) = (self.label(), self.label());
        let p = self.fresh(Kind::Pred);
        line!(self, "setp.lt.s32 {p}, {}, %r1;\n@{p} bra {other};", register(Kind::B32, condition));
        self.list(then, &inner);
        line!(self, "barrier.sync 0;\nbra {end};\n{other}:");
        self.list(otherwise, &inner);
        line!(self, "barrier.sync 0;\n{end}:");
    }

    /// All lanes of the mask, but for those that have ended, are there, and no others.
    fn whole_warps(&self, mask: &str) -> bool {
        mask.starts_with("0x") && !self.has_exit && self.threads().is_multiple_of(32)
    }

    fn collective(&mut self, kind: u8, operands: &[u8; 4], place: &Place) {
        let Some(mask) = &place.mask else { return };
        let r = |nth: usize| register(Kind::B32, operands[nth]);
        let p = |nth: usize| register(Kind::Pred, operands[nth]);
        let d = |nth: usize| register(Kind::B64, operands[nth]);
        let choose = |list: &[&str]| list[usize::from(operands[3]) % list.len()].to_owned();
        match kind % 9 {
            0 | 1 if self.whole_warps(mask) => {
                let mode = choose(&["up", "down", "bfly", "idx"]);
                let segments =
                    [0u32, 0x1f00, 0x1e00, 0x1c00, 0x1800, 0x1000][usize::from(operands[3] >> 2) % 6];
                let clamp = segments | if mode == "up" { 0 } else { 0x1f };
                let (d, a) = (r(0), r(1));
                let b = if operands[3] & 0x80 == 0 { r(2) } else { (operands[2] % 32).to_string() };
                line!(self, "shfl.sync.{mode}.b32 {d}|{}, {a}, {b}, {clamp}, {mask};", p(2));
            }
            0 | 1 => {
                // From a lane that is there: the wanted one or itself.
                let (live, from, bit, is) = (
                    self.fresh(Kind::B32),
                    self.fresh(Kind::B32),
                    self.fresh(Kind::B32),
                    self.fresh(Kind::Pred),
                );
                line!(self, "setp.eq.u32 {is}, {live}, {live};", live = "%lin");
                line!(self, "vote.sync.ballot.b32 {live}, {is}, {mask};\nand.b32 {from}, {}, 31;", r(2));
                line!(self, "shr.u32 {bit}, {live}, {from};\nand.b32 {bit}, {bit}, 1;");
                line!(self, "setp.ne.u32 {is}, {bit}, 0;\nmov.u32 {bit}, %laneid;");
                line!(self, "selp.b32 {from}, {from}, {bit}, {is};");
                line!(self, "shfl.sync.idx.b32 {}, {}, {from}, 0x1f, {mask};", r(0), r(1));
            }
            2 => line!(self, "vote.sync.{}.pred {}, {}, {mask};", choose(&["all", "any", "uni"]), p(0), p(1)),
            3 => line!(self, "vote.sync.ballot.b32 {}, !{}, {mask};", r(0), p(1)),
            4 => line!(self, "match.any.sync.b32 {}, {}, {mask};", r(0), r(1)),
            5 => line!(self, "match.any.sync.b64 {}, {}, {mask};", r(0), d(1)),
            6 => line!(self, "match.all.sync.b32 {}|{}, {}, {mask};", r(0), p(0), r(1)),
            7 => {
                let form = choose(&[
                    "add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32",
                    "xor.b32",
                ]);
                line!(self, "redux.sync.{form} {}, {}, {mask};", r(0), r(1));
            }
            _ => line!(self, "bar.warp.sync {mask};"),
        }
    }

    fn barrier(&mut self, kind: u8, operand: u8) {
        let (r, p) = (register(Kind::B32, operand), register(Kind::Pred, operand));
        let counts = self.kernel.wild && !self.has_exit && self.threads().is_multiple_of(32);
        match kind % 6 {
            0 => line!(self, "barrier.sync 1;"),
            1 => line!(self, "bar.red.popc.u32 {r}, 0, {p};"),
            2 => line!(self, "bar.red.and.pred {p}, 0, {p};"),
            3 => line!(self, "bar.red.or.pred {p}, 2, !{p};"),
            4 if counts => line!(self, "bar.sync 3, {};", self.threads()),
            _ => line!(self, "bar.sync 0;"),
        }
    }

    fn exchange(&mut self, kind: u8, operands: &[u8; 3]) {
        let threads = self.threads();
        let (d, a) = (register(Kind::B32, operands[0]), register(Kind::B32, operands[1]));
        let t = self.fresh(Kind::B32);
        match kind % 5 {
            4 => {
                let at = usize::from(operands[2]) % COUNTERS * 8;
                line!(self, "bar.sync 0;\nld.shared.u32 {d}, [counts+{at}];\nbar.sync 0;");
            }
            3 => {
                let slot = self.own_slot("%lin");
                let double = register(Kind::B64, operands[1]);
                line!(self, "st.shared.v2.u64 [{slot}], {{{double}, %d0}};\nbar.sync 0;");
                line!(self, "add.u32 {t}, %lin, {};\nrem.u32 {t}, {t}, {threads};", operands[2]);
                let theirs = self.own_slot(&t);
                line!(self, "ld.shared.v2.u64 {{{double}, %d1}}, [{theirs}];\nbar.sync 0;");
            }
            kind => {
                let mut index = "%lin".to_owned();
                if kind == 2 {
                    index = self.fresh(Kind::B32);
                    line!(self, "sub.u32 {index}, {}, %lin;", threads - 1);
                }
                let slot = self.own_slot(&index);
                line!(self, "st.shared.u32 [{slot}], {a};\nbar.sync 0;");
                match kind {
                    0 => line!(self, "add.u32 {t}, %lin, {};", operands[2]),
                    1 => line!(self, "mov.u32 {t}, {};", register(Kind::B32, operands[2])),
                    _ => line!(self, "mov.u32 {t}, %lin;"),
                }
                line!(self, "rem.u32 {t}, {t}, {threads};");
                let theirs = self.own_slot(&t);
                line!(self, "ld.shared.u32 {d}, [{theirs}];\nbar.sync 0;");
            }
        }
    }

    fn atomic(&mut self, kind: u8, operand: u8, guard: Guard, place: &Place) {
        let at = usize::from(kind) % COMMUTING.len();
        let (operation, ty, value) = COMMUTING[at];
        // A bound must be the same for all.
        let value =
            if matches!(operation, "inc" | "dec") { "37".to_owned() } else { register(value, operand) };
        let shared = place.function || operand & 0x80 != 0;
        let (space, address) = if shared {
            ("shared", format!("counts+{}", at * 8))
        } else {
            ("global", format!("%cnt+{}", at * 8))
        };
        let guard = guarded(guard);
        if operand & 0x40 == 0 {
            line!(self, "{guard}red.{space}.{operation}.{ty} [{address}], {value};");
        } else {
            let old = self.fresh(if ty.ends_with("64") { Kind::B64 } else { Kind::B32 });
            line!(self, "{guard}atom.{space}.{operation}.{ty} {old}, [{address}], {value};");
        }
    }

    fn own_atomic(&mut self, kind: u8, operands: &[u8; 4]) {
        let r = |nth: usize| register(Kind::B32, operands[nth]);
        let d = |nth: usize| register(Kind::B64, operands[nth]);
        let at = operands[3] % 8 * 8;
        match kind % 8 {
            0 => line!(self, "atom.global.cas.b32 {}, [%scr+{at}], {}, {};", r(0), r(1), r(2)),
            1 => line!(self, "atom.global.exch.b64 {}, [%scr+{at}], {};", d(0), d(1)),
            2 => line!(self, "atom.global.cas.b64 {}, [%scr+{at}], {}, {};", d(0), d(1), d(2)),
            3 => line!(self, "atom.global.exch.b32 {}, [%scr+{at}], {};", r(0), r(1)),
            4 => {
                let h = |nth: usize| register(Kind::B16, operands[nth]);
                line!(self, "atom.global.cas.b16 {}, [%scr+{at}], {}, {};", h(0), h(1), h(2));
            }
            _ => {
                let (operation, ty, kind) = COMMUTING[usize::from(kind >> 3) % COMMUTING.len()];
                let (d, a) = (register(kind, operands[0]), register(kind, operands[1]));
                line!(self, "atom.global.{operation}.{ty} {d}, [%scr+{at}], {a};");
            }
        }
    }

    fn load(&mut self, kind: u8, operands: &[u8; 4], guard: Guard) {
        let (ty, kind, bytes, lanes, from, mask) = ACCESSES[usize::from(kind) % ACCESSES.len()];
        let (t, address) = (self.fresh(Kind::B32), self.fresh(Kind::B64));
        let index = match operands[2] % 3 {
            0 => "%gid".to_owned(),
            1 => "%r5".to_owned(),
            _ => register(Kind::B32, operands[1]),
        };
        let cache = ["", ".nc", ".ca", ".cg"][usize::from(operands[3]) % 4];
        line!(self, "and.b32 {t}, {index}, {mask};\nmul.wide.u32 {address}, {t}, {};", bytes * lanes);
        line!(self, "add.u64 {address}, {address}, %in;");
        let destination = registers(kind, operands[0], lanes);
        line!(self, "{}ld.global{cache}.{ty} {destination}, [{address}+{from}];", guarded(guard));
    }

    /// A store (with a guard) or a load of memory that only this thread uses.
    fn own_memory(&mut self, at: u8, kind: u8, operands: &[u8; 5], store: Option<Guard>, place: &Place) {
        let (ty, kind, bytes, lanes, ..) = ACCESSES[usize::from(kind) % ACCESSES.len()];
        let size = bytes * lanes;
        let at = if place.function { 2 + at % 2 } else { at % 6 };
        if at == 5 {
            return self.line_of_all(operands, store);
        }
        let offset = u32::from(operands[1]) % (SCRATCH_BYTES as u32 / size) * size;
        let (space, base) =
            [(".global", "%scr"), ("", "%scr"), (".local", "loc"), ("", "%loc"), (".global", "%scr")]
                [usize::from(at)];
        let address = if operands[2] & 3 == 0 {
            let (t, index) = (self.fresh(Kind::B32), register(Kind::B32, operands[3]));
            line!(
                self,
                "and.b32 {t}, {index}, {};\nmul.lo.u32 {t}, {t}, {size};",
                SCRATCH_BYTES as u32 / size - 1
            );
            let wide = self.fresh(Kind::B64);
            let start = if base == "loc" { "mov.u64".to_owned() } else { "mov.b64".to_owned() };
            let begin = self.fresh(Kind::B64);
            line!(
                self,
                "cvt.u64.u32 {wide}, {t};\n{start} {begin}, {base};\nadd.u64 {wide}, {wide}, {begin};"
            );
            wide
        } else {
            format!("{base}+{offset}")
        };
        let data = registers(kind, operands[0], lanes);
        match store {
            Some(guard) => line!(self, "{}st{space}.{ty} [{address}], {data};", guarded(guard)),
            None => line!(self, "ld{space}.{ty} {data}, [{address}];"),
        }
    }

    /// The thread's word of a line: neighbours are next to each other in memory.
    fn line_of_all(&mut self, operands: &[u8; 5], store: Option<Guard>) {
        let all = self.threads() * self.kernel.grid;
        let (t, address) = (self.fresh(Kind::B32), self.fresh(Kind::B64));
        line!(self, "add.u32 {t}, %gid, {};", u32::from(operands[1]) % LINES as u32 * all);
        line!(self, "mul.wide.s32 {address}, {t}, 4;\nadd.s64 {address}, {address}, %lines;");
        let (ty, kind) = [("u32", Kind::B32), ("f32", Kind::F32)][usize::from(operands[2]) % 2];
        let data = register(kind, operands[0]);
        match store {
            Some(guard) => line!(self, "{}st.global.{ty} [{address}], {data};", guarded(guard)),
            None => line!(self, "ld.global.{ty} {data}, [{address}];"),
        }
    }

    fn call(&mut self, function: u8, operands: &[u8; 4], place: &Place) {
        if place.callable == 0 {
            return;
        }
        let function = usize::from(function) % place.callable;
        if function % 2 == 1 && !place.uniform {
            return;
        }
        let uni = if place.uniform { ".uni" } else { "" };
        let (a, b) = (register(Kind::B32, operands[0]), register(Kind::B64, operands[1]));
        let d = register(Kind::B64, operands[2]);
        line!(self, "{{\n.param .b32 pa;\n.param .b64 pb;\n.param .b64 pr;\nst.param.b32 [pa], {a};");
        line!(self, "st.param.b64 [pb], {b};\ncall{uni} (pr), f{function}, (pa, pb);");
        line!(self, "ld.param.b64 {d}, [pr];\n}}");
    }
}

/// A constant in the place of a register, where PTX takes one.
fn written(form: &Form, kind: Kind, value: u64) -> Option<String> {
    let has = |word: &str| form.name.contains(word);
    if has("f16") || has("x2") || has("x4") || oracle::is_simd_video(&form.name) {
        return None;
    }
    Some(match kind {
        Kind::Pred => return None,
        Kind::B16 => (value & 0x7fff).to_string(),
        Kind::B32 if form.name.starts_with("cvt") => return None,
        // A position or a length that is a number has 8 bits.
        Kind::B32 if ["bfe.", "bfi."].iter().any(|it| form.name.starts_with(it)) => {
            (value & 0xff).to_string()
        }
        Kind::B32 => format!("{:#x}", value & 0xffff_ffff),
        Kind::B64 => format!("{value:#x}"),
        Kind::F32 => format!("0f{:08X}", value as u32),
        Kind::F64 => format!("0d{value:016X}"),
    })
}
