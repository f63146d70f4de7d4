//! A warp's matrix product as one function over all lanes' registers, the same for every setting.
//!
//! `i32 (ptr in, ptr out, ptr)`: `in` has the registers of all arguments but the member mask, each as 32 lanes in a row, `out`
//! the result's. The function unpacks the fragments into plain matrices, multiplies rows of B by elements of A in blocks
//! of rows, and packs the result. Which element goes where is in constant tables.
//!
//! Order of the arithmetic, which PTX leaves open: floats start with C and add the products one by one by ascending k,
//! each with one rounding (`fma`); f16 results are rounded once more at the end. Integer sums are exact, then C is added.
//! With scales the products of a block along k are summed in this way from zero; the sum times both scales is exact in f64, is
//! added to C there, and the result is rounded.

mod registers;
pub mod rows;
pub mod warpgroup;

pub use registers::{Layout, Product};

use super::super::builder::{Builder, Val};
use super::super::ty::{Scalar, Type};
use super::{Result, float, minifloat, round};
use crate::ir::{Float, Round};
use crate::matrix::{BitProduct, Element, LANES, Metadata, Mma, Part, Scales};

/// The name of the product's function, which is added to the module.
pub fn function(b: &mut Builder, mma: &Mma) -> Result<String> {
    let name = format!("@{}", name(mma));
    b.define(&name, |b| Writer { b, mma, name: name.clone() }.write())?;
    Ok(name)
}

/// What products of one form are called.
pub fn name(mma: &Mma) -> String {
    let Mma { m, n, k, a, b, c, d, .. } = mma;
    let mut name = format!("mma.m{m}n{n}k{k}.{d:?}.{a:?}.{b:?}.{c:?}").to_lowercase();
    if let Some(quads) = mma.quads {
        let word = |by_columns| if by_columns { "col" } else { "row" };
        name += &format!(".quads.{}.{}", word(quads.a_by_columns), word(quads.b_by_columns));
    }
    if let Some(selector) = mma.selector {
        name += &format!(".sp{selector}");
    }
    if let Some(scales) = mma.scales {
        name += &format!(".{}x{:?}", scales.blocks, scales.kind).to_lowercase();
    }
    match mma.a {
        Element::B1 => name += &format!(".{:?}", mma.bit_product).to_lowercase(),
        Element::F64 => name += &format!(".{:?}", mma.round).to_lowercase(),
        _ => {}
    }
    if mma.saturates { name + ".satfinite" } else { name }
}

/// A register of all lanes of a core matrix: eight units of 16 bytes at `places` in shared memory, which are eight rows of four words, or
/// if it is transposed eight columns.
pub fn core_matrix(b: &mut Builder, shared: &Val, places: &[Val], is_transposed: bool) -> Val {
    let ty = Type::int(32, 4);
    let mut parts: Vec<Val> = places
        .iter()
        .map(|place| {
            let at = format!("getelementptr i8, {}, {}", shared.typed(), place.typed());
            let at = b.assign(Type::ptr(), at);
            b.assign(ty, format_args!("load {ty}, {}, align 4", at.typed()))
        })
        .collect();
    while let [_, _, ..] = parts[..] {
        parts = parts.chunks(2).map(|pair| beside(b, &pair[0], &pair[1])).collect();
    }
    let words = parts.swap_remove(0);
    if is_transposed { turned(b, &words) } else { words }
}

/// The eight units of a core matrix that is a register of all lanes, as [`core_matrix`] reads them.
pub fn units(b: &mut Builder, register: &Val, is_transposed: bool) -> Vec<Val> {
    let words = if is_transposed { turned(b, register) } else { register.clone() };
    (0..8)
        .map(|unit| {
            let picks: Vec<u32> = (4 * unit..4 * unit + 4).collect();
            shuffle(b, &words, &words, &picks)
        })
        .collect()
}

/// The 8 × 8 halves transposed: a unit has the eight rows of one column then, where a lane has two columns of one row.
fn turned(b: &mut Builder, words: &Val) -> Val {
    let halves = b.bitcast(words, Type::int(16, 2 * LANES));
    let picks: Vec<u32> = (0..2 * LANES).map(|nth| nth % 8 * 8 + nth / 8).collect();
    let turned = shuffle(b, &halves, &halves, &picks);
    b.bitcast(&turned, words.ty)
}

/// One vector behind the other.
fn beside(b: &mut Builder, first: &Val, second: &Val) -> Val {
    let picks: Vec<u32> = (0..2 * first.ty.lanes).collect();
    shuffle(b, first, second, &picks)
}

/// The elements with those numbers of both vectors.
fn shuffle(b: &mut Builder, first: &Val, second: &Val, picks: &[u32]) -> Val {
    let ty = Type::new(first.ty.scalar, picks.len() as u32);
    let picks: Vec<String> = picks.iter().map(|pick| format!("i32 {pick}")).collect();
    let mask = format!("<{} x i32> <{}>", picks.len(), picks.join(", "));
    b.assign(ty, format_args!("shufflevector {}, {}, {mask}", first.typed(), second.typed()))
}

/// What is computed with.
fn number(mma: &Mma) -> Scalar {
    match mma.c {
        Element::F64 => Scalar::Double,
        Element::S32 => Scalar::Int(32),
        _ => Scalar::Float,
    }
}

struct Writer<'w> {
    b: &'w mut Builder,
    mma: &'w Mma,
    name: String,
}

impl Writer<'_> {
    fn write(mut self) -> Result<()> {
        let name = self.name.clone();
        self.b.line(format_args!(
            "define internal i32 {name}(ptr noalias readonly %in, ptr noalias %out, ptr) nounwind noinline{} {{",
            if self.is_directed() { " strictfp" } else { "" }
        ));
        self.b.start_block("entry");
        self.set_rounding(self.mma.round);
        for part in [Part::A, Part::B, Part::C] {
            let count = self.elements(part);
            let slot = matrix(part);
            self.b.inst(format_args!("{slot} = alloca [{count} x {}], align 64", self.number()));
        }
        let mut from = 0;
        for part in [Part::A, Part::B, Part::C] {
            self.unpack(part, from)?;
            from += self.mma.registers(part) * LANES * self.mma.register_bytes();
        }
        if self.mma.selector.is_some() {
            self.columns(from);
            from += LANES * self.mma.register_bytes();
        }
        if let Some(scales) = self.mma.scales {
            self.scales(&scales, from);
        }
        self.multiply()?;
        self.pack()?;
        self.set_rounding(Round::Nearest);
        self.b.inst("ret i32 0");
        self.b.line("}");
        Ok(())
    }

    /// Rounds another way than kernels do: the CPU is told to.
    fn is_directed(&self) -> bool {
        self.mma.a == Element::F64 && self.mma.round != Round::Nearest
    }

    fn set_rounding(&mut self, round: Round) {
        if !self.is_directed() {
            return;
        }
        let mode = match round {
            Round::Zero => 0,
            Round::Nearest | Round::NearestAway => 1,
            Round::Up => 2,
            Round::Down => 3,
        };
        self.b.declare("llvm.set.rounding", "declare void @llvm.set.rounding(i32)");
        self.b.inst(format_args!("call void @llvm.set.rounding(i32 {mode}) strictfp"));
    }

    /// `a × b + c` with the rounding that is set.
    fn directed_fma(&mut self, a: &Val, b: &Val, c: &Val) -> Val {
        let ty = a.ty;
        let name = format!("llvm.experimental.constrained.fma.{}", ty.suffix());
        self.b.declare(&name, format!("declare {ty} @{name}({ty}, {ty}, {ty}, metadata, metadata)"));
        let args = [a, b, c].map(Val::typed).join(", ");
        let how = "metadata !\"round.dynamic\", metadata !\"fpexcept.ignore\"";
        self.b.assign(ty, format_args!("call {ty} @{name}({args}, {how}) strictfp"))
    }

    /// What is computed with.
    fn number(&self) -> Type {
        Type::new(number(self.mma), 1)
    }

    /// Steps along k: elements of a row of A as held, words of bits.
    fn depth(&self, part: Part) -> u32 {
        let columns = self.mma.size(part).1;
        if self.mma.element(part) == Element::B1 { columns / 32 } else { columns }
    }

    fn elements(&self, part: Part) -> u32 {
        self.mma.products() * self.mma.size(part).0 * self.depth(part)
    }

    /// Numbers that a register is unpacked to.
    fn per_register(&self, part: Part) -> u32 {
        if self.mma.element(part) == Element::B1 { 1 } else { self.mma.element(part).per_register() }
    }

    /// Where an element lies: A and C by rows, B with its rows along n, so that one k is a vector.
    fn index(&self, part: Part, lane: u32, register: u32, nth: u32) -> u32 {
        let at = self.mma.position(part, lane, register, nth);
        let (rows, columns) = (self.mma.size(part).0, self.depth(part));
        let column = if self.mma.element(part) == Element::B1 { at.column / 32 } else { at.column };
        at.product * rows * columns
            + if part == Part::B { column * rows + at.row } else { at.row * columns + column }
    }

    /// A constant table.
    fn table(&mut self, what: &str, items: &[u32]) -> String {
        let name = format!("{}.{what}", self.name);
        let (count, items) = (items.len(), items.iter().map(|it| format!("i32 {it}")).collect::<Vec<_>>());
        let text = format!("{name} = internal constant [{count} x i32] [{}], align 64", items.join(", "));
        self.b.declare(&name, text);
        name
    }

    /// The table of where the first elements of each step's registers belong: lanes go in fours, which have neighbouring
    /// elements of a row.
    fn places(&mut self, part: Part) -> String {
        let (step, lanes) = self.steps(part);
        let registers = self.mma.registers(part);
        let items: Vec<u32> = (0..registers)
            .step_by(step as usize)
            .flat_map(|register| (0..LANES).step_by(lanes as usize).map(move |lane| (register, lane)))
            .map(|(register, lane)| self.index(part, lane, register, 0))
            .collect();
        self.table(&format!("{part:?}"), &items)
    }

    /// Registers and lanes that are moved at once.
    fn steps(&self, part: Part) -> (u32, u32) {
        let is_pair = matches!(part, Part::C | Part::D) && self.per_register(part) == 1;
        match (self.mma.quads.is_some(), is_pair) {
            (true, _) => (1, 1),
            (false, true) => (2, 4),
            (false, false) => (1, 4),
        }
    }

    /// Runs `body` for `0 .. count`.
    fn repeat(&mut self, count: u32, body: impl FnOnce(&mut Self, &Val) -> Result<()>) -> Result<()> {
        let (head, done) = (self.b.label("loop"), self.b.label("done"));
        let before = self.b.current_block().to_owned();
        let (at, next) = (self.b.fresh(), self.b.fresh());
        let latch = format!("{head}.latch");
        self.b.br(&head);
        self.b.start_block(&head);
        self.b.inst(format_args!("{at} = phi i64 [ 0, %{before} ], [ {next}, %{latch} ]"));
        body(self, &Val::new(Type::int(64, 1), at.clone()))?;
        self.b.br(&latch);
        self.b.start_block(&latch);
        self.b.inst(format_args!("{next} = add i64 {at}, 1"));
        let more = self.b.assign(Type::int(1, 1), format_args!("icmp ult i64 {next}, {count}"));
        self.b.cond_br(&more, &head, &done);
        self.b.start_block(&done);
        Ok(())
    }

    fn element_pointer(&mut self, ty: Type, base: &str, index: &Val) -> Val {
        self.b.assign(Type::ptr(), format_args!("getelementptr {ty}, ptr {base}, {}", index.typed()))
    }

    fn load(&mut self, ty: Type, base: &str, index: &Val) -> Val {
        let scalar = Type::new(ty.scalar, 1);
        let at = self.element_pointer(scalar, base, index);
        self.b.assign(ty, format_args!("load {ty}, ptr {}, align {}", at.text, scalar.bits() / 8))
    }

    fn store(&mut self, base: &str, index: &Val, val: &Val) {
        let scalar = Type::new(val.ty.scalar, 1);
        let at = self.element_pointer(scalar, base, index);
        self.b.inst(format_args!("store {}, ptr {}, align {}", val.typed(), at.text, scalar.bits() / 8));
    }

    fn look_up(&mut self, table: &str, index: &Val) -> Val {
        let item = self.load(Type::int(32, 1), table, index);
        self.b.resize(&item, 64, false)
    }

    /// Where the registers of step `at` begin.
    fn first_word(&mut self, part: Part, at: &Val) -> Val {
        let (step, lanes) = self.steps(part);
        let in_fours = self.b.bin_int("mul", at, lanes.into());
        if step == 1 {
            return in_fours;
        }
        // Each second register is moved with the one before.
        let register = self.b.bin_int("and", &in_fours, -i128::from(LANES));
        self.b.add(&in_fours, &register)
    }

    /// `a0 b0 a1 b1 …` or back: what lies beside each other in a row is in two registers.
    fn shuffle(&mut self, a: &Val, b: &Val, picks: &[u32]) -> Val {
        shuffle(self.b, a, b, picks)
    }

    // ---- fragments ----

    fn unpack(&mut self, part: Part, from: u32) -> Result<()> {
        let (registers, per) = (self.mma.registers(part), self.per_register(part));
        let (step, lanes) = self.steps(part);
        let places = self.places(part);
        // From one element of a register to the next.
        let apart = match (part, lanes) {
            (Part::B, 4) => self.mma.n,
            (_, 4) => 1,
            _ => self.index(part, 0, 0, 1.min(per - 1)).abs_diff(self.index(part, 0, 0, 0)).max(1),
        };
        let word = Type::int(self.mma.register_bytes() * 8, lanes);
        let base = self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %in, i64 {from}"));
        let element = self.mma.element(part);
        self.repeat(registers / step * LANES / lanes, |me, at| {
            let first = me.first_word(part, at);
            let words = me.load(word, &base.text, &first);
            let mut values = me.numbers(element, &words);
            if step == 2 {
                let second = me.b.bin_int("add", &first, LANES.into());
                let words = me.load(word, &base.text, &second);
                let others = me.numbers(element, &words);
                values = me.shuffle(&values, &others, &[0, 4, 1, 5, 2, 6, 3, 7]);
            }
            let place = me.look_up(&places, at);
            if apart == 1 {
                me.store(matrix(part), &place, &values);
                return Ok(());
            }
            for nth in 0..values.ty.lanes {
                let value = me.b.assign(
                    Type::new(values.ty.scalar, 1),
                    format_args!("extractelement {}, i64 {nth}", values.typed()),
                );
                let place = me.b.bin_int("add", &place, i128::from(nth * apart));
                me.store(matrix(part), &place, &value);
            }
            Ok(())
        })
    }

    /// The elements of registers, lowest first, as what is computed with.
    fn numbers(&mut self, element: Element, words: &Val) -> Val {
        let count = words.ty.lanes;
        let b = &mut *self.b;
        let parts = |b: &mut Builder, bits: u32| b.bitcast(words, Type::int(bits, count * 32 / bits));
        match element {
            Element::B1 | Element::S32 => words.clone(),
            Element::F64 => b.bitcast(words, words.ty.double()),
            Element::F32 => b.bitcast(words, words.ty.float()),
            Element::Tf32 => {
                // The 13 bits below a tf32 do not take part.
                let bits = b.bin_int("and", words, 0xffff_e000);
                b.bitcast(&bits, words.ty.float())
            }
            Element::F16 => {
                let halves = parts(b, 16);
                float::widen(b, Float::F16, &halves)
            }
            Element::Bf16 => {
                let halves = parts(b, 16);
                float::widen(b, Float::Bf16, &halves)
            }
            Element::E4m3 | Element::E5m2 => {
                let codes = parts(b, 8);
                minifloat::of_bytes(b, element, &codes)
            }
            Element::E2m3 | Element::E3m2 | Element::E2m1 | Element::PackedE2m1 => {
                let each = if element == Element::PackedE2m1 { 4 } else { 8 };
                let codes = self.split(words, each);
                minifloat::finite(self.b, element, &codes)
            }
            Element::S8 | Element::U8 => {
                let bytes = parts(b, 8);
                b.resize(&bytes, 32, element == Element::S8)
            }
            Element::S4 | Element::U4 => {
                let top = self.at_top(words, 4);
                self.b.bin_int(if element == Element::S4 { "ashr" } else { "lshr" }, &top, 28)
            }
        }
    }

    /// Elements of so many bits, each at the top of 32.
    fn at_top(&mut self, words: &Val, bits: u32) -> Val {
        let (count, per) = (words.ty.lanes, 32 / bits);
        let picks: Vec<u32> = (0..per * count).map(|nth| nth / per).collect();
        let each = self.shuffle(words, words, &picks);
        let shift = |nth: u32| 32 - bits - bits * (nth % per);
        let shifts: Vec<String> = (0..per * count).map(|nth| format!("i32 {}", shift(nth))).collect();
        let shifts = Val::new(each.ty, format!("<{}>", shifts.join(", ")));
        self.b.bin("shl", &each, &shifts)
    }

    /// Elements of so many bits, each in 32.
    fn split(&mut self, words: &Val, bits: u32) -> Val {
        let top = self.at_top(words, bits);
        self.b.bin_int("lshr", &top, i128::from(32 - bits))
    }

    fn pack(&mut self) -> Result<()> {
        let (mma, part) = (self.mma, Part::D);
        let (step, lanes) = self.steps(part);
        let places = self.places(part);
        let per = self.per_register(part);
        let ty = Type::new(self.number().scalar, per * step * lanes);
        self.repeat(mma.registers(part) / step * LANES / lanes, |me, at| {
            let place = me.look_up(&places, at);
            let values = me.load(ty, matrix(Part::C), &place);
            let first = me.first_word(part, at);
            if step == 2 {
                let second = me.b.bin_int("add", &first, LANES.into());
                let others = me.shuffle(&values, &values, &[1, 3, 5, 7]);
                me.store("%out", &second, &others);
                let values = me.shuffle(&values, &values, &[0, 2, 4, 6]);
                me.store("%out", &first, &values);
                return Ok(());
            }
            let values = if mma.d == Element::F16 {
                let halves = round::narrow_f32(me.b, Float::F16, Round::Nearest, &values);
                me.b.bitcast(&halves, Type::int(32, lanes))
            } else {
                values
            };
            me.store("%out", &first, &values);
            Ok(())
        })
    }

    // ---- a sparse A ----

    /// The row of B for each element of A, from the metadata.
    fn columns(&mut self, from: u32) {
        let (rows, columns) = self.mma.size(Part::A);
        self.b.inst(format_args!("%columns = alloca [{} x i32], align 64", rows * columns));
        let count = rows * columns;
        let all = |row, column| self.mma.metadata(row, column);
        let cells: Vec<_> =
            (0..rows).flat_map(|row| (0..columns).filter_map(move |column| all(row, column))).collect();
        let list = |item: fn(&Metadata) -> u32| cells.iter().map(item).collect::<Vec<u32>>();
        let lanes = self.table("lane", &list(|cell| cell.lane));
        let shifts = self.table("shift", &list(|cell| cell.shift));
        let bases = self.table("base", &list(|cell| cell.base));
        let Some(any) = cells.first().copied() else { return };
        let word = Type::int(32, 1);
        let metadata = self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %in, i64 {from}"));
        let written: Result<()> = self.repeat(count, |me, at| {
            let lane = me.load(word, &lanes, at);
            let lane = me.b.resize(&lane, 64, false);
            let bits = me.load(word, &metadata.text, &lane);
            let shift = me.load(word, &shifts, at);
            let bits = me.b.bin("lshr", &bits, &shift);
            let bits = me.b.bin_int("and", &bits, any.mask.into());
            let bits = me.b.bin_int("mul", &bits, any.scale.into());
            let base = me.load(word, &bases, at);
            let column = me.b.add(&base, &bits);
            me.store("%columns", at, &column);
            Ok(())
        });
        debug_assert!(written.is_ok());
    }

    // ---- scales ----

    /// The scales of A and B as `double`s, those of a block side by side.
    fn scales(&mut self, scales: &Scales, from: u32) {
        let word = Type::int(32, LANES);
        for (nth, part) in (0..).zip([Part::A, Part::B]) {
            let rows = self.mma.size(part).0;
            let slot = scales_of(part);
            self.b.inst(format_args!("{slot} = alloca [{} x double], align 64", rows * scales.blocks));
            let at = from + nth * LANES * self.mma.register_bytes();
            let base = self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %in, i64 {at}"));
            let words = self.load(word, &base.text, &Builder::int(Type::int(64, 1), 0));
            let picks: Vec<u32> = (0..rows).map(|row| Mma::scale_lane(part, row)).collect();
            let words = self.shuffle(&words, &words, &picks);
            for block in 0..scales.blocks {
                let code = self.b.bin_int("lshr", &words, i128::from(8 * block));
                let code = self.b.bin_int("and", &code, 0xff);
                let numbers = minifloat::scale(self.b, scales.kind, &code);
                self.store(slot, &Builder::int(Type::int(64, 1), i128::from(block * rows)), &numbers);
            }
        }
    }

    /// Adds what the rows from `first` on have of a block's products, times the scales, to the result.
    fn add_scaled(&mut self, block: &Val, first: &Val, starts: &[Val]) {
        let (m, n) = (self.mma.m, self.mma.n);
        let (vector, wide) = (Type::new(self.number().scalar, n), Type::new(Scalar::Double, n));
        let of_b = self.b.bin_int("mul", block, n.into());
        let of_b = self.load(wide, scales_of(Part::B), &of_b);
        let of_a = self.b.bin_int("mul", block, m.into());
        let of_a = self.b.add(&of_a, first);
        for (row, start) in (0..).zip(starts) {
            let at = self.b.bin_int("add", &of_a, row.into());
            let one = self.load(Type::new(Scalar::Double, 1), scales_of(Part::A), &at);
            let one = self.spread(&one, n);
            let scale = self.b.fmul(&one, &of_b);
            let partial = self.sum(row, vector);
            let partial = self.b.cast("fpext", &partial, wide);
            let total = self.load(vector, matrix(Part::C), start);
            let total = self.b.cast("fpext", &total, wide);
            let total = self.b.fma(&partial, &scale, &total);
            let total = self.b.cast("fptrunc", &total, vector);
            self.store(matrix(Part::C), start, &total);
        }
    }

    // ---- the product ----

    fn multiply(&mut self) -> Result<()> {
        let mma = self.mma;
        let (rows, depth, n) = (mma.m, self.depth(Part::A), mma.n);
        // Four registers of 256 bits hold what is being summed.
        let block = (32 / n).clamp(1, 4);
        let vector = Type::new(self.number().scalar, n);
        for row in 0..block {
            self.b.inst(format_args!("%sum{row} = alloca {vector}, align 64"));
        }
        let per_product = rows / block;
        self.repeat(mma.products() * per_product, |me, at| {
            let first = me.b.bin_int("mul", at, block.into());
            let mut starts = vec![];
            for row in 0..block {
                let row_number = me.b.bin_int("add", &first, row.into());
                starts.push(me.b.bin_int("mul", &row_number, n.into()));
                let start = starts[row as usize].clone();
                let sum = if me.number().is_int() {
                    Builder::bits(vector, 0)
                } else {
                    me.load(vector, matrix(Part::C), &start)
                };
                me.set_sum(row, &sum);
            }
            let product = me.b.bin_int("udiv", at, per_product.into());
            let b_start = me.b.bin_int("mul", &product, (depth * n).into());
            let a_start = me.b.bin_int("mul", &first, depth.into());
            let accumulate = |me: &mut Self, k: &Val| {
                for row in 0..block {
                    let a_at = me.b.bin_int("add", &a_start, (row * depth).into());
                    let a_at = me.b.add(&a_at, k);
                    me.accumulate(row, &a_at, k, &b_start)?;
                }
                Ok(())
            };
            if let Some(scales) = mma.scales {
                let deep = depth / scales.blocks;
                return me.repeat(scales.blocks, |me, which| {
                    for row in 0..block {
                        me.set_sum(row, &Builder::fp(vector, 0.0));
                    }
                    let k_start = me.b.bin_int("mul", which, deep.into());
                    me.repeat(deep, |me, k| {
                        let k = me.b.add(&k_start, k);
                        accumulate(me, &k)
                    })?;
                    me.add_scaled(which, &first, &starts);
                    Ok(())
                });
            }
            me.repeat(depth, accumulate)?;
            for row in 0..block {
                let sum = me.sum(row, vector);
                let start = starts[row as usize].clone();
                let c = me.number().is_int().then(|| me.load(vector, matrix(Part::C), &start));
                let sum = me.finish(&sum, c.as_ref());
                me.store(matrix(Part::C), &start, &sum);
            }
            Ok(())
        })
    }

    fn sum(&mut self, row: u32, ty: Type) -> Val {
        self.b.assign(ty, format_args!("load {ty}, ptr %sum{row}, align 64"))
    }

    fn set_sum(&mut self, row: u32, sum: &Val) {
        self.b.inst(format_args!("store {}, ptr %sum{row}, align 64", sum.typed()));
    }

    /// Adds an element of A times its row of B.
    fn accumulate(&mut self, row: u32, a_at: &Val, k: &Val, b_start: &Val) -> Result<()> {
        let mma = self.mma;
        let n = mma.n;
        let number = self.number();
        let vector = Type::new(number.scalar, n);
        let k = if mma.selector.is_some() {
            let column = self.load(Type::int(32, 1), "%columns", a_at);
            self.b.resize(&column, 64, false)
        } else {
            k.clone()
        };
        let b_at = self.b.bin_int("mul", &k, n.into());
        let b_at = self.b.add(&b_at, b_start);
        let right = self.load(vector, matrix(Part::B), &b_at);
        let one = self.load(number, matrix(Part::A), a_at);
        let left = self.spread(&one, n);
        let sum = self.sum(row, vector);
        let sum = self.add_product(&sum, &left, &right);
        self.set_sum(row, &sum);
        Ok(())
    }

    /// A vector of the same number.
    fn spread(&mut self, one: &Val, count: u32) -> Val {
        let vector = Type::new(one.ty.scalar, count);
        let first =
            self.b.assign(vector, format_args!("insertelement {vector} poison, {}, i64 0", one.typed()));
        self.b.assign(
            vector,
            format_args!("shufflevector {}, {vector} poison, <{count} x i32> zeroinitializer", first.typed()),
        )
    }

    fn add_product(&mut self, sum: &Val, left: &Val, right: &Val) -> Val {
        match self.mma.a {
            Element::B1 => {
                let op = if self.mma.bit_product == BitProduct::And { "and" } else { "xor" };
                let bits = self.b.bin(op, left, right);
                let count = self.b.same("ctpop", &[&bits]);
                self.b.add(sum, &count)
            }
            Element::F64 if self.is_directed() => self.directed_fma(left, right, sum),
            element if element.is_int() => {
                let product = self.b.mul(left, right);
                self.b.add(sum, &product)
            }
            _ => self.b.fma(left, right, sum),
        }
    }

    /// The result, but for halves' rounding. Integers add C last.
    fn finish(&mut self, sum: &Val, c: Option<&Val>) -> Val {
        match (self.mma.d, c) {
            // The sum of the products fits 32 bits by far.
            (Element::S32, Some(c)) if self.mma.saturates => self.b.same("sadd.sat", &[c, sum]),
            (Element::S32, Some(c)) => self.b.add(c, sum),
            // Whoever observes a NaN of the sum makes it canonical (`llvm::nan`).
            _ => sum.clone(),
        }
    }
}

fn matrix(part: Part) -> &'static str {
    match part {
        Part::A => "%a",
        Part::B => "%b",
        // The result takes C's place.
        Part::C | Part::D => "%c",
    }
}

fn scales_of(part: Part) -> &'static str {
    if part == Part::A { "%scales.a" } else { "%scales.b" }
}
