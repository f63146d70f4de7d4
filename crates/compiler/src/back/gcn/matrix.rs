//! Matrix products of a warp: by a matrix core (`cores`) where the GPU has one for them, else each lane computes the
//! elements of D that it holds, and reads the rows of A and the columns of B that they take from the lanes that have them.
//!
//! The order of the lanes' sums is the CPU's (`llvm::inst::matrix`): floats begin with C and add one exact product after the
//! other, k ascending; halves are rounded once, at the end; integers are summed before C is added.

use std::collections::HashMap;
use std::ops::Range;

use super::code::{Code, Result};
use super::cores::Core;
use crate::back::llvm::inst::{float, minifloat, round, wide};
use crate::back::llvm::{Builder, Type, Unsupported, Val};
use crate::ir::{Float, FloatMode, Inst, Num, Op, Round, Value};
use crate::matrix::{BitProduct, Element, LANES, Metadata, Mma, Part};

/// Results of products.
type Made = HashMap<Value, Val>;

/// Where an element is held: lane, register, which of the register's elements.
type Place = (u32, u32, u32);

struct Product<'m> {
    mma: &'m Mma,
    args: &'m [Val],
    /// Where the elements of A, B and C are held, by [`place`].
    held: [Vec<Option<Place>>; 3],
    /// Registers of other lanes that were read.
    read: HashMap<(u32, Vec<u32>), Val>,
    /// Metadata and scales of other lanes that were read, by the argument's number.
    words: HashMap<(usize, Vec<u32>), Val>,
}

impl Code<'_> {
    /// The instruction's core, where it is a product that has one.
    pub fn core_of(&self, inst: &Inst) -> Option<Core> {
        let Op::Mma(mma) = &inst.op else { return None };
        Core::of(self.unit.target, mma)
    }

    /// Products by cores, whose arguments are known or are results of such before them.
    pub fn core_products(&mut self, insts: &[&Inst]) -> Result {
        if !self.is_wide() {
            let made = self.by_cores(insts)?;
            self.name_all(made);
            return Ok(());
        }
        // A core writes all lanes of the wave, so both of its warps have to be here.
        let wave = Type::int(64, 1);
        let active = self.b.intrinsic("amdgcn.ballot", &[wave], wave, &[&Builder::int(Type::int(1, 1), 1)]);
        let is_whole = self.b.icmp_int("eq", &active, -1);
        let [cores, lanes, joined] = ["cores", "lanes", "joined"].map(|hint| self.b.label(hint));
        self.b.cond_br(&is_whole, &cores, &lanes);
        self.b.start_block(&cores);
        let by_cores = self.by_cores(insts)?;
        self.moved.clear();
        let cores = self.b.current_block().to_owned();
        self.b.br(&joined);
        self.b.start_block(&lanes);
        let mut by_lanes = Made::new();
        for inst in insts {
            let args: Vec<Val> = inst.args.iter().map(|arg| self.known(*arg, &by_lanes)).collect();
            let made = self.by_lanes(mma_of(inst), &args)?;
            by_lanes.extend(inst.results.iter().copied().zip(made));
        }
        let lanes = self.b.current_block().to_owned();
        self.b.br(&joined);
        self.b.start_block(&joined);
        for result in insts.iter().flat_map(|inst| &inst.results) {
            let (core, lane) = (&by_cores[result], &by_lanes[result]);
            let phi = format!("phi {} [ {}, %{cores} ], [ {}, %{lanes} ]", core.ty, core.text, lane.text);
            let phi = self.b.assign(core.ty, phi);
            self.name_all([(*result, phi)]);
        }
        Ok(())
    }

    fn known(&self, value: Value, made: &Made) -> Val {
        made.get(&value).cloned().unwrap_or_else(|| self.get(value))
    }

    /// Where a core has room for 16 columns and products of 8 have the same A, two are made at once.
    fn by_cores(&mut self, products: &[&Inst]) -> Result<Made> {
        let (mut made, mut left) = (Made::new(), products.to_vec());
        while !left.is_empty() {
            let inst = left.remove(0);
            let (mma, core) = (mma_of(inst), self.core_of(inst).expect("all have one"));
            let args: Vec<Val> = inst.args.iter().map(|arg| self.known(*arg, &made)).collect();
            let n_a = mma.registers(Part::A) as usize;
            let second = left.iter().position(|it| {
                let is_ready = |arg: &Value| self.is_named(*arg) || made.contains_key(arg);
                it.op == inst.op && it.args[..n_a] == inst.args[..n_a] && it.args.iter().all(is_ready)
            });
            let Some(second) = second.filter(|_| mma.n == 8 && core.columns() == 2) else {
                let results = self.by_core(&core, mma, &args)?;
                made.extend(inst.results.iter().copied().zip(results));
                continue;
            };
            let other = left.remove(second);
            let others: Vec<Val> = other.args.iter().map(|arg| self.known(*arg, &made)).collect();
            let (n_b, n_c) = (mma.registers(Part::B) as usize, mma.registers(Part::C) as usize);
            let columns = (n_a..n_a + n_b).flat_map(|at| [&args[at], &others[at]]);
            let sums = [&args, &others].map(|args| &args[n_a + n_b..][..n_c]).into_iter().flatten();
            let both: Vec<Val> = args[..n_a].iter().chain(columns).chain(sums).cloned().collect();
            let results = self.by_core(&core, &Mma { n: 16, ..*mma }, &both)?;
            made.extend(inst.results.iter().chain(&other.results).copied().zip(results));
        }
        Ok(made)
    }

    fn by_core(&mut self, core: &Core, mma: &Mma, args: &[Val]) -> Result<Vec<Val>> {
        let (a, rest) = args.split_at(mma.registers(Part::A) as usize);
        let (b, rest) = rest.split_at(mma.registers(Part::B) as usize);
        let per = mma.c.per_register();
        let c: Vec<Val> = match per {
            1 => rest[..mma.registers(Part::C) as usize].to_vec(),
            _ => (0..mma.registers(Part::C) * per)
                .map(|at| self.number(mma.c, &rest[(at / per) as usize], at % per))
                .collect(),
        };
        // Only the whole sum saturates.
        let adds_later = mma.d == Element::S32 && mma.saturates;
        let d = self.core_product(core, mma, a, b, (!adds_later).then_some(&c))?;
        if adds_later {
            return Ok(c.iter().zip(&d).map(|(c, d)| self.b.same("sadd.sat", &[c, d])).collect());
        }
        if mma.d != Element::F16 {
            return Ok(d);
        }
        let per = mma.d.per_register() as usize;
        Ok(d.chunks(per).map(|elements| self.register_of_d(mma, elements)).collect())
    }

    /// The elements of D that a lane has, by itself.
    pub fn by_lanes(&mut self, mma: &Mma, args: &[Val]) -> Result<Vec<Val>> {
        let mut product =
            Product { mma, args, held: Default::default(), read: HashMap::new(), words: HashMap::new() };
        for part in [Part::A, Part::B, Part::C] {
            let held = &mut product.held[part as usize];
            held.resize((mma.products() * mma.size(part).0 * mma.size(part).1) as usize, None);
            for lane in 0..LANES {
                for register in 0..mma.registers(part) {
                    for nth in 0..steps_of(mma.element(part)) {
                        let at = mma.position(part, lane, register, nth);
                        let column = column(mma.element(part), at.column);
                        let cell = &mut held[place(mma, part, at.product, at.row, column)];
                        cell.get_or_insert((lane, register, nth));
                    }
                }
            }
        }
        let per = mma.element(Part::D).per_register();
        let mut results = vec![];
        for register in 0..mma.registers(Part::D) {
            let mut elements = vec![];
            for nth in 0..per {
                elements.push(self.element_of_d(&mut product, register, nth)?);
            }
            results.push(self.register_of_d(mma, &elements));
        }
        Ok(results)
    }

    fn element_of_d(&mut self, product: &mut Product<'_>, register: u32, nth: u32) -> Result<Val> {
        let mma = product.mma;
        let c = self.element_of_c(product, register, nth)?;
        let depth = mma.size(Part::A).1 / if mma.a == Element::B1 { 32 } else { 1 };
        if let Some(scales) = mma.scales {
            let (mut total, deep) = (c, depth / scales.blocks);
            for block in 0..scales.blocks {
                let zero = Builder::fp(total.ty, 0.0);
                let sum = self.sum_of(product, (register, nth), zero, block * deep..(block + 1) * deep)?;
                total = self.add_scaled(product, (register, nth), block, &sum, &total)?;
            }
            return Ok(total);
        }
        let start = if mma.c == Element::S32 { Builder::int(c.ty, 0) } else { c.clone() };
        let sum = self.sum_of(product, (register, nth), start, 0..depth)?;
        Ok(match mma.d {
            Element::S32 if mma.saturates => self.b.same("sadd.sat", &[&c, &sum]),
            Element::S32 => self.b.add(&c, &sum),
            _ => sum,
        })
    }

    /// Adds the products of some steps.
    fn sum_of(
        &mut self,
        product: &mut Product<'_>,
        d: (u32, u32),
        mut sum: Val,
        steps: Range<u32>,
    ) -> Result<Val> {
        let mma = product.mma;
        for k in steps {
            let a = self.factor(product, Part::A, d, k)?;
            let b = match mma.selector {
                None => self.factor(product, Part::B, d, k)?,
                Some(_) => self.chosen(product, d, k)?,
            };
            sum = self.add_product(mma, &sum, &a, &b);
        }
        Ok(sum)
    }

    /// Adds a block's sum times its scales, which is exact in f64.
    fn add_scaled(
        &mut self,
        product: &mut Product<'_>,
        (register, nth): (u32, u32),
        block: u32,
        sum: &Val,
        total: &Val,
    ) -> Result<Val> {
        let mma = product.mma;
        let Some(scales) = mma.scales else { return Ok(sum.clone()) };
        let first = mma.lane_words().len() - 2;
        let mut numbers = vec![];
        for (at, part) in [Part::A, Part::B].into_iter().enumerate() {
            let lane_of = |lane| {
                let place = mma.position(Part::D, lane, register, nth);
                Mma::scale_lane(part, if part == Part::A { place.row } else { place.column })
            };
            let word = self.word_of(product, first + at, (0..LANES).map(lane_of).collect())?;
            let code = self.b.bin_int("lshr", &word, i128::from(8 * block));
            let code = self.b.bin_int("and", &code, 0xff);
            numbers.push(minifloat::scale(&mut self.b, scales.kind, &code));
        }
        let scale = self.b.fmul(&numbers[0], &numbers[1]);
        let [sum, total] = [sum, total].map(|it| self.b.cast("fpext", it, scale.ty));
        let total = self.b.fma(&sum, &scale, &total);
        Ok(self.b.cast("fptrunc", &total, total.ty.float()))
    }

    /// The metadata or scales of other lanes.
    fn word_of(&mut self, product: &mut Product<'_>, argument: usize, lanes: Vec<u32>) -> Result<Val> {
        let key = (argument, lanes);
        if let Some(word) = product.words.get(&key) {
            return Ok(word.clone());
        }
        let from = self.lane_of(&key.1)?;
        let word = self.read_lane(&product.args[argument], &from);
        product.words.insert(key, word.clone());
        Ok(word)
    }

    fn element_of_c(&mut self, product: &mut Product<'_>, register: u32, nth: u32) -> Result<Val> {
        let mma = product.mma;
        if mma.quads.is_some() && mma.c != mma.d {
            return self.factor(product, Part::C, (register, nth), 0);
        }
        // It lies as D does.
        let per_c = mma.element(Part::C).per_register();
        let index = register * mma.element(Part::D).per_register() + nth;
        let n_before = mma.registers(Part::A) + mma.registers(Part::B);
        let c_register = &product.args[(n_before + index / per_c) as usize];
        Ok(self.number(mma.c, c_register, index % per_c))
    }

    fn add_product(&mut self, mma: &Mma, sum: &Val, a: &Val, b: &Val) -> Val {
        match mma.a {
            Element::B1 => {
                let op = if mma.bit_product == BitProduct::And { "and" } else { "xor" };
                let bits = self.b.bin(op, a, b);
                let count = self.b.same("ctpop", &[&bits]);
                self.b.add(sum, &count)
            }
            Element::F64 if mma.round != Round::Nearest => wide::fma(&mut self.b, mma.round, a, b, sum),
            element if element.is_int() => {
                let product = self.b.mul(a, b);
                self.b.add(sum, &product)
            }
            _ => self.b.fma(a, b, sum),
        }
    }

    /// The element of A (B) that the element of D takes at step `k`, or its element of C.
    fn factor(&mut self, product: &mut Product<'_>, part: Part, d: (u32, u32), k: u32) -> Result<Val> {
        let mma = product.mma;
        let sources = sources(product, part, d, k)
            .ok_or_else(|| Unsupported("a product that lacks elements".to_owned()))?;
        let lanes: Vec<u32> = sources.iter().map(|source| source.0).collect();
        let before = [Part::A, Part::B].into_iter().take(part as usize);
        let first: u32 = before.map(|part| mma.registers(part)).sum();
        let mut value: Option<Val> = None;
        let mut seen = vec![];
        for &(_, register, nth) in &sources {
            if seen.contains(&(register, nth)) {
                continue;
            }
            seen.push((register, nth));
            let key = (first + register, lanes.clone());
            let word = match product.read.get(&key) {
                Some(word) => word.clone(),
                None => {
                    let own = product.args[key.0 as usize].clone();
                    let from = self.lane_of(&lanes)?;
                    let word = self.read_from(&own, &from, false);
                    product.read.insert(key, word.clone());
                    word
                }
            };
            let number = self.number(mma.element(part), &word, nth);
            value = Some(match value {
                None => number,
                // Lanes find it in different registers.
                Some(other) => {
                    let is_there = (0..LANES).filter(|&lane| {
                        let (_, there, which) = sources[lane as usize];
                        (there, which) == (register, nth)
                    });
                    let mask = is_there.fold(0u32, |mask, lane| mask | 1 << lane);
                    let lane = self.lane();
                    let bits = self.b.bin("lshr", &Builder::int(lane.ty, i128::from(mask)), &lane);
                    let is_there = self.b.cast("trunc", &bits, bits.ty.pred());
                    self.b.select(&is_there, &number, &other)
                }
            });
        }
        value.ok_or_else(|| Unsupported("a product of nothing".to_owned()))
    }

    /// The element of B that a sparse A's `k`-th of the row meets: the metadata says which of several.
    fn chosen(&mut self, product: &mut Product<'_>, d: (u32, u32), k: u32) -> Result<Val> {
        let mma = product.mma;
        let rows = (0..LANES).map(|lane| mma.position(Part::D, lane, d.0, d.1).row);
        let cells: Option<Vec<Metadata>> = rows.map(|row| mma.metadata(row, k)).collect();
        let cells = cells.filter(|cells| {
            cells.iter().all(|it| Metadata { lane: 0, ..*it } == Metadata { lane: 0, ..cells[0] })
        });
        let cells =
            cells.ok_or_else(|| Unsupported("a product whose lanes hold different metadata".to_owned()))?;
        let n_before = [Part::A, Part::B, Part::C].map(|part| mma.registers(part)).iter().sum::<u32>();
        let lanes: Vec<u32> = cells.iter().map(|cell| cell.lane).collect();
        let word = self.word_of(product, n_before as usize, lanes)?;
        let cell = cells[0];
        let bits = self.b.bin_int("lshr", &word, i128::from(cell.shift));
        let bits = self.b.bin_int("and", &bits, i128::from(cell.mask));
        let mut value = self.factor(product, Part::B, d, cell.base)?;
        for choice in 1..=cell.mask {
            let other = self.factor(product, Part::B, d, cell.base + cell.scale * choice)?;
            let is_it = self.b.icmp_int("eq", &bits, i128::from(choice));
            value = self.b.select(&is_it, &other, &value);
        }
        Ok(value)
    }

    /// A function of the own lane, of 32 in the warp or of 64 in the wave: every bit of it is a bit of the lane or a
    /// constant.
    pub fn lane_of(&mut self, lanes: &[u32]) -> Result<Val> {
        let (base, bits) = (lanes[0], lanes.len().trailing_zeros());
        let images: Vec<u32> = (0..bits).map(|bit| lanes[1 << bit] ^ base).collect();
        let moved = |lane: u32| {
            (0..bits).filter(|bit| lane >> bit & 1 == 1).fold(base, |sum, bit| sum ^ images[bit as usize])
        };
        let is_simple = images.iter().all(|image| image.count_ones() <= 1 && image & base == 0);
        if !is_simple || lanes.iter().zip(0..).any(|(from, lane)| moved(lane) != *from) {
            return Err(Unsupported("a product whose lanes lie otherwise".to_owned()));
        }
        let own = if bits == 6 { self.wave_lane() } else { self.lane() };
        let mut from = Builder::int(own.ty, i128::from(base));
        for distance in -5i32..=5 {
            let moved = (0..bits as i32).filter(|&bit| {
                let image = images[bit as usize];
                image != 0 && image.trailing_zeros() as i32 == bit + distance
            });
            let mask = moved.fold(0u32, |mask, bit| mask | 1 << bit);
            if mask == 0 {
                continue;
            }
            let bits = self.b.bin_int("and", &own, i128::from(mask));
            let bits = match distance {
                0 => bits,
                1.. => self.b.bin_int("shl", &bits, i128::from(distance)),
                _ => self.b.bin_int("lshr", &bits, i128::from(-distance)),
            };
            from = self.b.or(&from, &bits);
        }
        Ok(from)
    }

    /// The register of another lane, of the warp or of the whole wave, 32 or 64 bits.
    pub fn read_from(&mut self, register: &Val, from: &Val, of_wave: bool) -> Val {
        self.by_words(register, |me, word| match of_wave {
            true => me.read_wave_lane(word, from),
            false => me.read_lane(word, from),
        })
    }

    /// Does the same with both words of a register of 64 bits. The result is bits.
    pub fn by_words(&mut self, register: &Val, mut each: impl FnMut(&mut Self, &Val) -> Val) -> Val {
        let bits = self.b.to_bits(register);
        if bits.ty.bits() == 32 {
            return each(self, &bits);
        }
        let low = self.b.resize(&bits, 32, false);
        let high = self.b.bin_int("lshr", &bits, 32);
        let high = self.b.resize(&high, 32, false);
        let [low, high] = [low, high].map(|half| {
            let read = each(self, &half);
            self.b.resize(&read, 64, false)
        });
        let high = self.b.bin_int("shl", &high, 32);
        self.b.or(&low, &high)
    }

    /// The `nth` element of a register, as what is computed with.
    pub fn number(&mut self, element: Element, register: &Val, nth: u32) -> Val {
        let b = &mut self.b;
        let word = b.to_bits(register);
        let part = |b: &mut Builder, bits: u32, nth: u32| {
            let moved = b.bin_int("lshr", &word, i128::from(bits * nth));
            b.resize(&moved, bits, false)
        };
        match element {
            Element::B1 | Element::S32 => word,
            Element::F64 => b.bitcast(&word, word.ty.double()),
            Element::F32 => b.bitcast(&word, word.ty.float()),
            Element::Tf32 => {
                // The 13 bits below a tf32 do not take part.
                let bits = b.bin_int("and", &word, 0xffff_e000);
                b.bitcast(&bits, word.ty.float())
            }
            Element::F16 | Element::Bf16 => {
                let half = part(b, 16, nth);
                let ty = if element == Element::F16 { Float::F16 } else { Float::Bf16 };
                float::widen(b, ty, &half)
            }
            Element::E4m3 | Element::E5m2 => {
                let from = if element == Element::E4m3 { Num::E4m3x2 } else { Num::E5m2x2 };
                let pair = part(b, 16, nth / 2);
                let halves = minifloat::unpack(b, from, FloatMode::default(), &pair);
                let half = b.bin_int("lshr", &halves, i128::from(16 * (nth % 2)));
                let half = b.resize(&half, 16, false);
                float::widen(b, Float::F16, &half)
            }
            Element::E2m3 | Element::E3m2 | Element::E2m1 | Element::PackedE2m1 => {
                let bits = element.bits();
                let moved = b.bin_int("lshr", &word, i128::from(bits * nth));
                let code = b.bin_int("and", &moved, (1 << bits) - 1);
                minifloat::finite(b, element, &code)
            }
            Element::S8 | Element::U8 => {
                let byte = part(b, 8, nth);
                b.resize(&byte, 32, element == Element::S8)
            }
            Element::S4 | Element::U4 => {
                let top = b.bin_int("shl", &word, i128::from(28 - 4 * nth));
                b.bin_int(if element == Element::S4 { "ashr" } else { "lshr" }, &top, 28)
            }
        }
    }

    fn register_of_d(&mut self, mma: &Mma, elements: &[Val]) -> Val {
        let word = Type::int(32, 1);
        match mma.d {
            Element::F16 => {
                let mut all = Builder::int(word, 0);
                for (nth, element) in elements.iter().enumerate() {
                    let half = round::narrow_f32(&mut self.b, Float::F16, Round::Nearest, element);
                    let half = self.b.resize(&half, 32, false);
                    let half = self.b.bin_int("shl", &half, 16 * nth as i128);
                    all = self.b.or(&all, &half);
                }
                all
            }
            _ => elements[0].clone(),
        }
    }
}

fn mma_of(inst: &Inst) -> &Mma {
    let Op::Mma(mma) = &inst.op else { unreachable!("a product") };
    mma
}

/// Bits of a word are multiplied together.
fn steps_of(element: Element) -> u32 {
    if element == Element::B1 { 1 } else { element.per_register() }
}

fn column(element: Element, column: u32) -> u32 {
    if element == Element::B1 { column / 32 } else { column }
}

/// Number of an element of A or B.
fn place(mma: &Mma, part: Part, product: u32, row: u32, column: u32) -> usize {
    let (rows, columns) = mma.size(part);
    ((product * rows + row) * columns + column) as usize
}

/// Where each lane finds the element.
fn sources(product: &Product<'_>, part: Part, (register, nth): (u32, u32), k: u32) -> Option<Vec<Place>> {
    let places = (0..LANES).map(|lane| {
        let d = product.mma.position(Part::D, lane, register, nth);
        let (row, column) = match part {
            Part::A => (d.row, k),
            Part::B => (d.column, k),
            _ => (d.row, d.column),
        };
        *product.held[part as usize].get(place(product.mma, part, d.product, row, column))?
    });
    places.collect()
}
