//! Products on matrix cores: WMMA of gfx11 and gfx12, MFMA of the CDNA GPUs.
//!
//! A core multiplies tiles of 16 × 16 whose elements lie elsewhere than in PTX's fragments. Transposed (Dᵀ = Bᵀ × Aᵀ)
//! they lie near: A's 16 rows are the lanes of half a row of the wave, and D has as many registers as PTX. Which element
//! of k meets which is left to us, as long as A and B agree, so registers are moved whole: by an exchange of a bit of the
//! lane with one of the register's number ([`Code::exchange`], within pairs of lanes), and by one read from another lane.
//! The order of the sums is the hardware's, as PTX leaves it.

use super::code::{Code, Result};
use super::target::{Family, Target};
use crate::back::llvm::{Builder, Scalar, Type, Val};
use crate::ir::Round;
use crate::matrix::{Element, LANES, Mma};

/// How a tile lies in a wave. In all, D's columns are lanes 0 to 15 and again those above.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tile {
    /// Each half of the lanes has all of A and of B. D's row is 2 × register + half.
    Gfx11,
    /// Each half has half of k. D's row is register + 8 × half.
    Gfx12,
    /// Each 16 lanes have a quarter of k. D's row is register + 4 × quarter.
    Cdna,
    /// f64: D's row is 4 × register + quarter.
    CdnaDouble,
}

/// An instruction of a matrix core.
pub struct Core {
    tile: Tile,
    /// LLVM's name of it.
    name: &'static str,
    /// Registers of A, and of B, that one instruction takes.
    words: usize,
    /// What these registers are together.
    operand: Type,
    /// Signs are arguments.
    is_wmma_int: bool,
}

impl Core {
    /// What the target has for a product; `None` where lanes have to compute it.
    pub fn of(target: &Target, mma: &Mma) -> Option<Core> {
        if mma.quads.is_some() || mma.selector.is_some() || mma.scales.is_some() {
            return None;
        }
        match target.family() {
            Family::Gfx11 | Family::Gfx12 => Core::wmma(target.family(), mma),
            Family::Gfx9 => Core::mfma(target.processor(), mma),
            Family::Gfx10 => None,
        }
    }

    fn wmma(family: Family, mma: &Mma) -> Option<Core> {
        use Element::*;
        let tile = if family == Family::Gfx11 { Tile::Gfx11 } else { Tile::Gfx12 };
        let (name, words, scalar) = match (mma.a, mma.b) {
            (F16, F16) => ("wmma.f32.16x16x16.f16", 8, Scalar::Half),
            (S8 | U8, S8 | U8) => ("wmma.i32.16x16x16.iu8", 4, Scalar::Int(32)),
            // B stands on the left.
            (E4m3, E4m3) if tile == Tile::Gfx12 => ("wmma.f32.16x16x16.fp8.fp8", 4, Scalar::Int(32)),
            (E4m3, E5m2) if tile == Tile::Gfx12 => ("wmma.f32.16x16x16.bf8.fp8", 4, Scalar::Int(32)),
            (E5m2, E4m3) if tile == Tile::Gfx12 => ("wmma.f32.16x16x16.fp8.bf8", 4, Scalar::Int(32)),
            (E5m2, E5m2) if tile == Tile::Gfx12 => ("wmma.f32.16x16x16.bf8.bf8", 4, Scalar::Int(32)),
            (Bf16, Bf16) | (E4m3 | E5m2, E4m3 | E5m2) => ("wmma.f32.16x16x16.bf16", 8, Scalar::Int(16)),
            (S4 | U4, S4 | U4) if tile == Tile::Gfx12 => ("wmma.i32.16x16x32.iu4", 4, Scalar::Int(32)),
            (S4 | U4, S4 | U4) => ("wmma.i32.16x16x16.iu4", 2, Scalar::Int(32)),
            _ => return None,
        };
        let words = if tile == Tile::Gfx12 { words / 2 } else { words };
        Some(Core { tile, name, words, operand: vector(scalar, words), is_wmma_int: mma.a.is_int() })
    }

    fn mfma(processor: &str, mma: &Mma) -> Option<Core> {
        use Element::*;
        let is_mi100 = processor == "gfx908";
        if !is_mi100 && !matches!(processor, "gfx90a" | "gfx940" | "gfx941" | "gfx942" | "gfx950") {
            return None;
        }
        let has_wide_int = !matches!(processor, "gfx908" | "gfx90a");
        let tile = if mma.a == F64 { Tile::CdnaDouble } else { Tile::Cdna };
        let (name, words, operand) = match (mma.a, mma.b) {
            (F16, F16) => ("mfma.f32.16x16x16f16", 2, Type::new(Scalar::Half, 4)),
            // CDNA 3's fp8 is another than PTX's.
            (Bf16, Bf16) | (E4m3 | E5m2, E4m3 | E5m2) => match is_mi100 {
                true => ("mfma.f32.16x16x8bf16", 1, Type::int(16, 2)),
                false => ("mfma.f32.16x16x16bf16.1k", 2, Type::int(16, 4)),
            },
            (Tf32, Tf32) => ("mfma.f32.16x16x4f32", 1, Type::new(Scalar::Float, 1)),
            (S8, S8) if has_wide_int => ("mfma.i32.16x16x32.i8", 2, Type::int(64, 1)),
            (S8, S8) => ("mfma.i32.16x16x16i8", 1, Type::int(32, 1)),
            (F64, F64) if !is_mi100 && mma.round == Round::Nearest => {
                ("mfma.f64.16x16x4f64", 1, Type::new(Scalar::Double, 1))
            }
            _ => return None,
        };
        Some(Core { tile, name, words, operand, is_wmma_int: false })
    }

    /// Whether such elements are made bf16 for it, which holds each of them.
    fn widens(&self, element: Element) -> bool {
        matches!(element, Element::E4m3 | Element::E5m2) && self.name.contains("bf16")
    }

    /// Lanes that share a row of A have different elements of k.
    fn is_cdna(&self) -> bool {
        matches!(self.tile, Tile::Cdna | Tile::CdnaDouble)
    }

    /// What D's registers are.
    fn number(&self, mma: &Mma) -> Scalar {
        match mma.a {
            Element::F64 => Scalar::Double,
            it if it.is_int() => Scalar::Int(32),
            _ => Scalar::Float,
        }
    }

    /// How many D has.
    fn sums(&self) -> usize {
        if self.is_cdna() { 4 } else { 8 }
    }

    /// Tiles of 8 columns that one instruction multiplies with 16 rows. On CDNA two warps bring one each.
    pub fn columns(&self) -> usize {
        if self.is_cdna() { 1 } else { 2 }
    }

    /// Lane `lane` of the core takes column `column` of tile `tile` of B: one of D's rows.
    fn column_of(&self, lane: u32) -> (u32, u32) {
        let bit = |nth: u32| lane >> nth & 1;
        match self.tile {
            Tile::Gfx11 => (bit(0) << 2 | bit(2) << 1 | bit(1), bit(3)),
            Tile::Gfx12 => (bit(3) << 2 | bit(1) << 1 | bit(0), bit(2)),
            // Here the "tile" is the warp.
            Tile::Cdna => (lane & 7, bit(3)),
            Tile::CdnaDouble => (bit(0) << 2 | bit(3) << 1 | bit(2), bit(1)),
        }
    }
}

fn vector(scalar: Scalar, words: usize) -> Type {
    let bits = Type::new(scalar, 1).bits();
    Type::new(scalar, words as u32 * 32 / bits)
}

/// D's column that lane `lane` of a core has is row 8 × tile + row of A.
fn row_of(lane: u32) -> (u32, u32) {
    (lane >> 1 & 7, lane & 1)
}

/// Which lane each lane reads.
fn table(lanes: u32, from: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..lanes).map(from).collect()
}

impl Code<'_> {
    /// Flat C (two neighbours in every tile of 8 × 8, tiles from top to bottom, then from left to right) to D. `c` is
    /// `None` for 0.
    pub fn core_product(
        &mut self,
        core: &Core,
        mma: &Mma,
        a: &[Val],
        b: &[Val],
        c: Option<&[Val]>,
    ) -> Result<Vec<Val>> {
        let (down, along) = ((mma.m / 8) as usize, (mma.n / 8) as usize);
        let mut d = vec![None; 2 * down * along];
        for rows in (0..down).collect::<Vec<_>>().chunks(2) {
            let steps = steps(a, down, rows);
            let left = self.moved_once(&format!("a {:?}", mma.a), core, &steps, |me| {
                let steps = me.core_words(core, mma.a, &steps);
                me.rows_of_a(core, &steps)
            })?;
            for columns in (0..along).collect::<Vec<_>>().chunks(core.columns()) {
                let steps = self::steps(b, along, columns);
                let right = self.moved_once(&format!("b {:?}", mma.b), core, &steps, |me| {
                    let steps = me.core_words(core, mma.b, &steps);
                    Ok(vec![me.columns_of_b(core, &steps)?])
                })?;
                // Without a second tile the rows of one count for nothing.
                let place = |row: usize, column: usize, nth: usize| {
                    2 * (column * down + rows[row % rows.len()]) + nth
                };
                let mut sums = vec![];
                for &column in columns {
                    let Some(c) = c else { continue };
                    let cells = [0, 1].map(|nth| [0, 1].map(|row| c[place(row, column, nth)].clone()));
                    let held = cells.each_ref().map(|pair| pair.to_vec());
                    sums.extend(
                        self.moved_once("c", core, &held, |me| Ok(vec![me.sums_of(&cells)?]))?.concat(),
                    );
                }
                let sums = self.multiply(core, mma, &left, &right[0], &sums);
                for (&column, sums) in columns.iter().zip(sums.chunks(4)) {
                    let cells = self.cells_of(sums, Type::new(core.number(mma), 1))?;
                    for (nth, pair) in cells.iter().enumerate() {
                        for row in 0..rows.len() {
                            d[place(row, column, nth)] = Some(pair[row].clone());
                        }
                    }
                    let held = [0, 1].map(|nth| {
                        [0, 1].map(|row| d[place(row, column, nth)].clone().expect("written")).to_vec()
                    });
                    self.moved.insert(key("c", core, &held), vec![sums.to_vec()]);
                }
            }
        }
        Ok(d.into_iter().flatten().collect())
    }

    /// What others of the block have moved as well is taken from there.
    fn moved_once(
        &mut self,
        part: &str,
        core: &Core,
        held: &[Vec<Val>],
        make: impl FnOnce(&mut Self) -> Result<Vec<Vec<Val>>>,
    ) -> Result<Vec<Vec<Val>>> {
        let key = key(part, core, held);
        if let Some(moved) = self.moved.get(&key) {
            return Ok(moved.clone());
        }
        let moved = make(self)?;
        self.moved.insert(key, moved.clone());
        Ok(moved)
    }

    /// Registers of A or B as bits. A step of four elements each may become two of two.
    fn core_words(&mut self, core: &Core, element: Element, steps: &[Vec<Val>]) -> Vec<Vec<Val>> {
        if core.widens(element) {
            let halves = steps.iter().flat_map(|step| [0, 2].map(|first| (step, first)));
            return halves
                .map(|(step, first)| step.iter().map(|it| self.bf16_pair(element, it, first)).collect())
                .collect();
        }
        let word = |me: &mut Self, register: &Val| {
            let bits = me.b.to_bits(register);
            // The 13 bits below a tf32 do not take part.
            if element == Element::Tf32 { me.b.bin_int("and", &bits, 0xffff_e000) } else { bits }
        };
        steps.iter().map(|step| step.iter().map(|it| word(self, it)).collect()).collect()
    }

    /// Two neighbours of a register as bf16: the upper half of the same number as f32.
    fn bf16_pair(&mut self, element: Element, register: &Val, first: u32) -> Val {
        let [low, high] = [first, first + 1].map(|nth| {
            let number = self.number(element, register, nth);
            self.b.to_bits(&number)
        });
        let low = self.b.bin_int("lshr", &low, 16);
        let high = self.b.bin_int("and", &high, 0xffff_0000);
        self.b.or(&low, &high)
    }

    /// Registers of A for each pass; CDNA has one for each of a wave's two warps.
    fn rows_of_a(&mut self, core: &Core, steps: &[Vec<Val>]) -> Result<Vec<Vec<Val>>> {
        if !core.is_cdna() {
            return Ok(vec![self.sixteen(core, steps, row_of)?]);
        }
        let own = table(64, |lane| (lane & 1) << 5 | row_of(lane).0 << 2 | lane >> 4 & 3);
        let own = self.lane_of(&own)?;
        let other = self.b.bin_int("xor", &own, 32);
        let is_second_warp = self.lane_bit(5);
        let is_second_tile = self.lane_bit(0);
        let mut passes = vec![vec![], vec![]];
        for step in steps {
            let (first, second) = (&step[0], step.last().unwrap_or(&step[0]));
            // Each warp offers one tile in `own` and the other one in `other`; the two tiles' lanes read different warps.
            let offered = self.b.select(&is_second_warp, second, first);
            let own = self.read_from(&offered, &own, true);
            let offered = self.b.select(&is_second_warp, first, second);
            let other = self.read_from(&offered, &other, true);
            passes[0].push(self.b.select(&is_second_tile, &other, &own));
            passes[1].push(self.b.select(&is_second_tile, &own, &other));
        }
        Ok(passes)
    }

    fn columns_of_b(&mut self, core: &Core, steps: &[Vec<Val>]) -> Result<Vec<Val>> {
        if !core.is_cdna() {
            return self.sixteen(core, steps, |lane| core.column_of(lane));
        }
        let from = table(64, |lane| {
            let (column, warp) = core.column_of(lane & 15);
            warp << 5 | column << 2 | lane >> 4 & 3
        });
        let from = self.lane_of(&from)?;
        Ok(steps.iter().map(|step| self.read_from(&step[0], &from, true)).collect())
    }

    /// Of 8 or 16 rows, one to a lane (`at` gives row and tile), the registers that a core of RDNA takes.
    fn sixteen(
        &mut self,
        core: &Core,
        steps: &[Vec<Val>],
        at: impl Fn(u32) -> (u32, u32),
    ) -> Result<Vec<Val>> {
        let has_two = steps[0].len() == 2;
        let mut words = vec![];
        for step in steps {
            let pair = has_two.then(|| self.exchange(&step[0], &step[1]));
            for high in 0..if core.tile == Tile::Gfx11 { 2 } else { 1 } {
                for low in 0..2 {
                    let from = table(LANES, |lane| {
                        let (row, tile) = at(lane & 15);
                        let high = if core.tile == Tile::Gfx11 { high } else { lane >> 4 };
                        row << 2 | high << 1 | if has_two { tile } else { low }
                    });
                    let from = self.lane_of(&from)?;
                    let word = pair.as_ref().map_or(&step[0], |pair| &pair[low as usize]);
                    words.push(self.read_from(word, &from, false));
                }
            }
        }
        Ok(words)
    }

    /// The two neighbours of the tiles above each other, as a core has them.
    fn sums_of(&mut self, cells: &[[Val; 2]; 2]) -> Result<Vec<Val>> {
        let from = self.lane_of(&table(LANES, |lane| row_of(lane).0 << 2 | lane >> 4 << 1 | lane & 1))?;
        let cells = cells.each_ref().map(|pair| pair.each_ref().map(|cell| self.b.to_bits(cell)));
        let [even, odd] = cells.map(|[top, bottom]| self.exchange(&top, &bottom));
        let words = [&even[0], &odd[0], &even[1], &odd[1]];
        Ok(words.map(|word| self.read_from(word, &from, false)).into())
    }

    /// The way back, to numbers.
    fn cells_of(&mut self, sums: &[Val], number: Type) -> Result<[[Val; 2]; 2]> {
        let from = self.lane_of(&table(LANES, |lane| (lane >> 1 & 1) << 4 | lane >> 2 << 1 | lane & 1))?;
        let words: Vec<Val> = sums.iter().map(|sum| self.read_from(sum, &from, false)).collect();
        Ok([0, 1].map(|nth| {
            let pair = self.exchange(&words[nth], &words[nth + 2]);
            pair.map(|cell| self.b.bitcast(&cell, number))
        }))
    }

    /// The instructions. `sums` are bits, none for 0.
    fn multiply(&mut self, core: &Core, mma: &Mma, a: &[Vec<Val>], b: &[Val], sums: &[Val]) -> Vec<Val> {
        let number = Type::new(core.number(mma), core.sums() as u32);
        let mut start = Val::new(number, if sums.is_empty() { "zeroinitializer" } else { "undef" });
        for (place, sum) in sums.iter().enumerate() {
            let sum = self.b.bitcast(sum, number.lane());
            start = self.insert(&start, &sum, place);
        }
        let results: Vec<Val> = a
            .iter()
            .map(|a| {
                let mut sum = start.clone();
                for (a, b) in a.chunks(core.words).zip(b.chunks(core.words)) {
                    let [a, b] = [a, b].map(|words| self.core_operand(core, words));
                    sum = self.core_instruction(core, mma, &a, &b, &sum);
                }
                sum
            })
            .collect();
        (0..core.sums())
            .map(|place| {
                let parts: Vec<Val> = results.iter().map(|all| self.extract(all, place)).collect();
                let part = match &parts[..] {
                    [first, second] => {
                        let is_second_warp = self.lane_bit(5);
                        self.b.select(&is_second_warp, second, first)
                    }
                    _ => parts[0].clone(),
                };
                self.b.to_bits(&part)
            })
            .collect()
    }

    /// Fewer registers than the instruction takes are followed by zeros, in A and in B.
    fn core_operand(&mut self, core: &Core, words: &[Val]) -> Val {
        if core.words == 1 {
            return self.b.bitcast(&words[0], core.operand);
        }
        let mut all = Val::new(Type::int(32, core.words as u32), "zeroinitializer");
        for (place, word) in words.iter().enumerate() {
            all = self.insert(&all, word, place);
        }
        self.b.bitcast(&all, core.operand)
    }

    fn core_instruction(&mut self, core: &Core, mma: &Mma, a: &Val, b: &Val, sum: &Val) -> Val {
        let name = format!("amdgcn.{}", core.name);
        let flag = |is: bool| Builder::int(Type::int(1, 1), i128::from(is));
        let zero = Builder::int(Type::int(32, 1), 0);
        // Transposed: B is on the left.
        let overloads = match core.tile {
            Tile::Gfx11 => vec![sum.ty],
            Tile::Gfx12 => vec![sum.ty, core.operand],
            _ => vec![],
        };
        if core.is_wmma_int {
            let signs = [mma.b, mma.a].map(|it| flag(matches!(it, Element::S8 | Element::S4)));
            let args = [&signs[0], b, &signs[1], a, sum, &flag(false)];
            return self.b.intrinsic(&name, &overloads, sum.ty, &args);
        }
        match core.is_cdna() {
            true => self.b.intrinsic(&name, &overloads, sum.ty, &[b, a, sum, &zero, &zero, &zero]),
            false => self.b.intrinsic(&name, &overloads, sum.ty, &[b, a, sum]),
        }
    }

    /// Exchanges the lowest bit of the lane's number with the bit that tells the two registers apart.
    fn exchange(&mut self, low: &Val, high: &Val) -> [Val; 2] {
        let is_odd = self.lane_bit(0);
        let [from_low, from_high] = [low, high].map(|word| self.neighbour(word));
        [self.b.select(&is_odd, &from_high, low), self.b.select(&is_odd, high, &from_low)]
    }

    /// The register of the other lane of a pair.
    fn neighbour(&mut self, word: &Val) -> Val {
        self.by_words(word, |me, word| {
            let whole = |n: i128| Builder::int(Type::int(32, 1), n);
            // quad_perm:[1,0,3,2] on all rows and banks
            let args = [&Val::new(word.ty, "undef"), word, &whole(0xb1), &whole(15), &whole(15)];
            let bound = Builder::int(Type::int(1, 1), 1);
            let args: Vec<&Val> = args.into_iter().chain([&bound]).collect();
            me.b.intrinsic("amdgcn.update.dpp", &[word.ty], word.ty, &args)
        })
    }

    fn lane_bit(&mut self, bit: u32) -> Val {
        let lane = self.wave_lane();
        let bit = self.b.bin_int("and", &lane, 1 << bit);
        self.b.icmp_int("ne", &bit, 0)
    }

    fn insert(&mut self, all: &Val, one: &Val, place: usize) -> Val {
        let line = format!("insertelement {}, {}, i32 {place}", all.typed(), one.typed());
        self.b.assign(all.ty, line)
    }

    fn extract(&mut self, all: &Val, place: usize) -> Val {
        self.b.assign(all.ty.lane(), format_args!("extractelement {}, i32 {place}", all.typed()))
    }
}

fn key(part: &str, core: &Core, held: &[Vec<Val>]) -> String {
    let step = |step: &Vec<Val>| step.iter().map(|it| it.text.as_str()).collect::<Vec<_>>().join(" ");
    format!("{part} {} {}", core.name, held.iter().map(step).collect::<Vec<_>>().join(", "))
}

/// The registers of the tiles `which`, step by step along k.
fn steps(registers: &[Val], tiles: usize, which: &[usize]) -> Vec<Vec<Val>> {
    registers.chunks(tiles).map(|step| which.iter().map(|&tile| step[tile].clone()).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tiles_of_a_step_are_not_two_steps_of_a_tile() {
        let core = Core::wmma(Family::Gfx11, &product()).unwrap();
        let [x, y] = ["%x", "%y"].map(|name| Val::new(Type::int(32, 1), name));
        let tiles = key("b", &core, &[vec![x.clone(), y.clone()]]);
        assert_ne!(tiles, key("b", &core, &[vec![x], vec![y]]));
    }

    /// AMD's matrix instruction calculator says of each lane's registers which row of D they hold.
    #[test]
    fn each_row_of_d_is_a_column_of_b() {
        let rows = |tile, row: fn(u32, u32) -> u32| {
            let core = Core { tile, ..Core::wmma(Family::Gfx11, &product()).unwrap() };
            let registers = core.sums() as u32;
            for lane in 0..if core.is_cdna() { 64 } else { 32 } {
                for register in 0..registers {
                    let (column, tile) = core.column_of(row(lane / 16, register));
                    // PTX's neighbours are two registers; the others are two more and the lane's bit 4.
                    assert_eq!(column, lane >> 4 << 2 & 4 | register & 3);
                    assert_eq!(tile, if core.is_cdna() { lane >> 5 } else { register >> 2 });
                }
            }
        };
        rows(Tile::Gfx11, |part, register| 2 * register + part);
        rows(Tile::Gfx12, |part, register| 8 * part + register);
        rows(Tile::Cdna, |part, register| 4 * part + register);
        rows(Tile::CdnaDouble, |part, register| part + 4 * register);
    }

    fn product() -> Mma {
        Mma::plain([16, 8, 16], [Element::F16, Element::F16, Element::F32])
    }
}
