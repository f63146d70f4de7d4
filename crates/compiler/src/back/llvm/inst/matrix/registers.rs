//! A warp's matrix product for settings that hold a value's 32 lanes in one vector.
//!
//! An element of the result is in the same lane and register as its C, so the sums stay in registers. A and B are laid
//! out in memory once, as numbers: step by step along k, in each step the numbers in the order in which the lanes of the
//! result take them. A step loads the few numbers that a vector of the result takes, spreads them over the lanes, and
//! adds the products. The steps are a loop in the code too: of straight code LLVM keeps what several products take in
//! registers, more than there are. The order of the arithmetic is that of the function over memory, so the bits are too.

use std::collections::HashMap;

use super::super::super::builder::{Builder, ROLLED, Val};
use super::super::super::ty::Type;
use super::super::round;
use super::{Writer, number};
use crate::ir::{Float, Round};
use crate::matrix::{Element, LANES, Mma, Part};

/// Rows of a tile: the lanes of a register of A or B have 8 rows (B: along n), each some steps.
const TILE: u32 = 8;

/// Where the numbers of A and B stand in memory.
pub struct Layout<'m> {
    mma: &'m Mma,
    a: Side,
    b: Side,
}

/// One of several products with the same layout: where A and B are laid out, and C.
pub struct Product {
    pub a: String,
    pub b: String,
    pub c: Vec<Val>,
}

/// A or B.
struct Side {
    /// Each row's place among those of its tile, the same in all tiles.
    places: Vec<u32>,
    /// For each vector of the result.
    takes: Vec<Take>,
}

/// What a vector of the result takes of each step: some numbers side by side, and each lane's among them.
#[derive(PartialEq, Eq, Hash)]
struct Take {
    tile: u32,
    first: u32,
    count: u32,
    lanes: Vec<u32>,
}

impl<'m> Layout<'m> {
    /// `None` where the product has no such form.
    pub fn of(mma: &'m Mma) -> Option<Layout<'m>> {
        if mma.quads.is_some() || mma.selector.is_some() || mma.scales.is_some() {
            return None;
        }
        if mma.a == Element::F64 && mma.round != Round::Nearest {
            return None;
        }
        Some(Layout { mma, a: Side::of(mma, Part::A)?, b: Side::of(mma, Part::B)? })
    }

    /// Vectors of the result, which are summed.
    pub fn sums(&self) -> usize {
        self.a.takes.len()
    }

    pub fn sum_ty(&self) -> Type {
        Type::new(number(self.mma), LANES)
    }

    /// Bytes of A or B in memory.
    pub fn bytes(&self, part: Part) -> u64 {
        let (rows, columns) = self.mma.size(part);
        u64::from(rows * columns * self.sum_ty().bits() / 8)
    }

    /// Writes A or B to memory.
    pub fn lay_out(&self, b: &mut Builder, part: Part, registers: &[Val], at: &str) {
        let mut writer = Writer { b, mma: self.mma, name: String::new() };
        let side = self.side(part);
        let tiles = self.mma.size(part).0 / TILE;
        let steps = writer.per_register(part) * LANES / TILE;
        for (nth, register) in (0..).zip(registers) {
            let numbers = writer.by_steps(part, register, &side.places, steps);
            let (tile, step) = (nth % tiles, nth / tiles * steps);
            let start = writer.start(part, tile, 0) + step * TILE;
            let start = Builder::int(Type::int(64, 1), start.into());
            writer.store(at, &start, &numbers);
        }
    }

    /// Whether so many products can be summed at a time.
    pub fn fits(&self, b: &Builder, products: usize) -> bool {
        products * self.sums() <= at_once(b, self.sum_ty())
    }

    /// The results' registers. `slots` is memory for all vectors of all results, which LLVM turns into registers.
    pub fn multiply(&self, b: &mut Builder, products: &[Product], slots: &[String]) -> Vec<Vec<Val>> {
        let mut writer = Writer { b, mma: self.mma, name: String::new() };
        let ty = self.sum_ty();
        let starts: Vec<Val> = products.iter().flat_map(|product| writer.starts_of(&product.c)).collect();
        for (start, slot) in starts.iter().zip(slots) {
            let zero = ty.is_int().then(|| Builder::bits(ty, 0));
            writer.keep(slot, zero.as_ref().unwrap_or(start));
        }
        let all: Vec<usize> = (0..starts.len()).collect();
        for vectors in all.chunks(at_once(writer.b, ty)) {
            let unrolled = writer.unrolled(vectors.len() as u32);
            let places = writer.depth(Part::A) * TILE;
            writer.rolled(places, unrolled * TILE, |me, first| {
                for step in 0..unrolled {
                    let place = me.b.bin_int("add", first, (step * TILE).into());
                    self.step(me, products, vectors, slots, &place);
                }
            });
        }
        let mut sums = vec![];
        for (start, slot) in starts.iter().zip(slots) {
            let sum = writer.kept(slot, ty);
            sums.push(writer.finish(&sum, Some(start)));
        }
        sums.chunks(self.sums()).map(|sums| writer.registers_of(sums)).collect()
    }

    /// Adds one step's products to some vectors of the results.
    fn step(
        &self,
        me: &mut Writer<'_>,
        products: &[Product],
        vectors: &[usize],
        slots: &[String],
        place: &Val,
    ) {
        let mut taken: HashMap<(&str, &Take), Val> = HashMap::new();
        for &vector in vectors {
            let product = &products[vector / self.sums()];
            let [left, right] = [(Part::A, &product.a), (Part::B, &product.b)].map(|(part, from)| {
                let take = &self.side(part).takes[vector % self.sums()];
                let taken = taken.entry((from, take));
                taken.or_insert_with(|| me.take(part, from, take, place)).clone()
            });
            let slot = &slots[vector];
            let sum = me.kept(slot, left.ty);
            let sum = me.add_product(&sum, &left, &right);
            me.keep(slot, &sum);
        }
    }

    fn side(&self, part: Part) -> &Side {
        if part == Part::A { &self.a } else { &self.b }
    }
}

/// Vectors of results that are summed at a time: they fill half of the CPU's registers.
fn at_once(b: &Builder, ty: Type) -> usize {
    let bits = b.vector_bits().max(128);
    let registers = if bits >= 512 { 32 } else { 16 };
    let each = (ty.lanes * ty.bits()).div_ceil(bits);
    (registers / 2 / each).max(1) as usize
}

impl Side {
    fn of(mma: &Mma, part: Part) -> Option<Side> {
        let rows = mma.size(part).0;
        let mut places: Vec<Option<u32>> = vec![None; rows as usize];
        let mut used = vec![0; rows.div_ceil(TILE) as usize];
        let mut takes = vec![];
        let per = mma.element(Part::D).per_register();
        for vector in 0..mma.registers(Part::D) * per {
            let of_lane = |lane| {
                let at = mma.position(Part::D, lane, vector / per, vector % per);
                if part == Part::A { at.row } else { at.column }
            };
            let rows: Vec<u32> = (0..LANES).map(of_lane).collect();
            let tile = rows.first()? / TILE;
            let mut own = vec![];
            for &row in &rows {
                let used = &mut used[(row / TILE) as usize];
                let place = *places[row as usize].get_or_insert_with(|| {
                    *used += 1;
                    *used - 1
                });
                own.push(place);
            }
            let (first, last) = (*own.iter().min()?, *own.iter().max()?);
            let count = (last - first + 1).next_power_of_two();
            if rows.iter().any(|row| row / TILE != tile) || first + count > TILE {
                return None;
            }
            let lanes = own.iter().map(|place| place - first).collect();
            takes.push(Take { tile, first, count, lanes });
        }
        let places: Vec<u32> = places.into_iter().collect::<Option<_>>()?;
        let is_same = |(row, place): (usize, &u32)| places.get(row % TILE as usize) == Some(place);
        places.iter().enumerate().all(is_same).then_some(Side { places, takes })
    }
}

impl Writer<'_> {
    /// Steps in one trip of the loop: short ones would be mostly loop.
    fn unrolled(&self, vectors: u32) -> u32 {
        let depth = self.depth(Part::A);
        let wanted = (16 / vectors).clamp(1, 4);
        (1..=wanted).rev().find(|&steps| depth.is_multiple_of(steps)).unwrap_or(1)
    }

    /// The number in memory that a tile's place of step 0 is.
    fn start(&self, part: Part, tile: u32, place: u32) -> u32 {
        tile * TILE * self.depth(part) + place
    }

    /// A register's numbers by steps, each step's by places.
    fn by_steps(&mut self, part: Part, register: &Val, places: &[u32], steps: u32) -> Val {
        let mut picks = vec![0; (steps * TILE) as usize];
        for row in 0..TILE {
            for step in 0..steps {
                picks[(step * TILE + places[row as usize]) as usize] = row * steps + step;
            }
        }
        let element = self.mma.element(part);
        let bits = register.ty.bits() / self.per_register(part);
        if bits < 8 {
            let numbers = self.numbers(element, register);
            return self.shuffle(&numbers, &numbers, &picks);
        }
        // Narrow elements are moved before they are widened.
        let elements = self.b.bitcast(register, Type::int(bits, steps * TILE));
        let moved = self.shuffle(&elements, &elements, &picks);
        let words = self.b.bitcast(&moved, register.ty);
        self.numbers(element, &words)
    }

    /// The lanes' numbers for one step.
    fn take(&mut self, part: Part, from: &str, take: &Take, place: &Val) -> Val {
        let start = self.start(part, take.tile, take.first);
        let at = self.b.bin_int("add", place, start.into());
        let numbers = self.load(Type::new(self.number().scalar, take.count), from, &at);
        self.shuffle(&numbers, &numbers, &take.lanes)
    }

    /// Runs `body` for `0, step .. end`, in a loop that LLVM leaves one.
    fn rolled(&mut self, end: u32, step: u32, body: impl FnOnce(&mut Self, &Val)) {
        let (head, done) = (self.b.label("steps"), self.b.label("steps.done"));
        let before = self.b.current_block().to_owned();
        let (at, next) = (self.b.fresh(), self.b.fresh());
        self.b.br(&head);
        self.b.start_block(&head);
        self.b.inst(format_args!("{at} = phi i64 [ 0, %{before} ], [ {next}, %{head} ]"));
        body(self, &Val::new(Type::int(64, 1), at.clone()));
        self.b.inst(format_args!("{next} = add i64 {at}, {step}"));
        let more = self.b.assign(Type::int(1, 1), format_args!("icmp ult i64 {next}, {end}"));
        self.b.inst(format_args!("br i1 {}, label %{head}, label %{done}, {ROLLED}", more.text));
        self.b.start_block(&done);
    }

    fn keep(&mut self, slot: &str, sum: &Val) {
        self.b.inst(format_args!("store {}, ptr {slot}", sum.typed()));
    }

    fn kept(&mut self, slot: &str, ty: Type) -> Val {
        self.b.assign(ty, format_args!("load {ty}, ptr {slot}"))
    }

    /// C's elements as numbers: register by register, in each the lowest first.
    fn starts_of(&mut self, c: &[Val]) -> Vec<Val> {
        let per = self.per_register(Part::C);
        let mut all = vec![];
        for register in c {
            let numbers = self.numbers(self.mma.c, register);
            if per == 1 {
                all.push(numbers);
                continue;
            }
            for nth in 0..per {
                let picks: Vec<u32> = (0..LANES).map(|lane| lane * per + nth).collect();
                all.push(self.shuffle(&numbers, &numbers, &picks));
            }
        }
        all
    }

    /// Back to the registers of D.
    fn registers_of(&mut self, sums: &[Val]) -> Vec<Val> {
        match self.mma.d {
            Element::F16 => sums.chunks(2).map(|pair| self.halves(&pair[0], &pair[1])).collect(),
            _ => sums.to_vec(),
        }
    }

    fn halves(&mut self, low: &Val, high: &Val) -> Val {
        let [low, high] = [low, high].map(|sum| {
            let bits = round::narrow_f32(self.b, Float::F16, Round::Nearest, sum);
            let bits = self.b.bitcast(&bits, Type::int(16, LANES));
            self.b.resize(&bits, 32, false)
        });
        let high = self.b.bin_int("shl", &high, 16);
        self.b.or(&low, &high)
    }
}
