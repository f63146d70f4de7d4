//! Operands: the values of each type where instructions go wrong, all of them crossed, strides, and random ones.

use oracle::{Format, Rounding, Type, Value};

use crate::forms::Class;

impl Columns {
    /// Columns of these rows, filled up to whole blocks.
    pub fn from_rows(rows: &[Vec<u64>]) -> Columns {
        let n = rows.len().next_multiple_of(BLOCK);
        let row = |i: usize| &rows[i % rows.len()];
        let columns = (0..rows[0].len()).map(|column| (0..n).map(|i| row(i)[column]).collect()).collect();
        Columns { columns, n }
    }
}

/// What a column is filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// 0 or 1.
    Bit,
    /// Integers in a register of so many bits.
    Int(u32),
    Float(Format),
    /// Several of one format in a register.
    Packed(Format, u32),
    /// Halves of a register with integers.
    Halves,
}

impl Kind {
    pub fn of(ty: Type, class: Class) -> Kind {
        match ty {
            Type::Pred | Type::Carry => Kind::Bit,
            Type::Float(format) => Kind::Float(format),
            Type::PackedFloat(format, n) => Kind::Packed(format, n),
            Type::PackedUnsigned(..) | Type::PackedSigned(..) => Kind::Halves,
            _ => Kind::Int(class.bits()),
        }
    }

    pub fn bits(self) -> u32 {
        match self {
            Kind::Bit => 1,
            Kind::Int(bits) => bits,
            Kind::Float(format) => format.bits,
            Kind::Packed(format, n) => (format.bits * n).max(8),
            Kind::Halves => 32,
        }
    }

    pub fn is_f64(&self) -> bool {
        matches!(self, Kind::Float(format) if format.bits == 64)
    }

    pub fn has_literals(&self) -> bool {
        match self {
            Kind::Int(bits) => *bits >= 16,
            Kind::Float(format) => format.bits >= 32 && format.padding == 0,
            _ => false,
        }
    }

    /// One of the special values as PTX writes it.
    pub fn literal(self, seed: usize) -> (String, u128) {
        let specials = specials(self);
        let bits = u128::from(specials[seed % specials.len()]);
        let text = match self {
            Kind::Float(format) if format.bits == 64 => format!("0d{bits:016X}"),
            Kind::Float(_) => format!("0f{bits:08X}"),
            // As a negative number where it is one to a signed type: the bits are the same.
            Kind::Int(n) if seed % 2 == 1 && bits >> (n - 1) == 1 => format!("{}", bits as i128 - (1 << n)),
            _ => format!("{bits:#x}"),
        };
        (text, bits)
    }
}

/// The table's splitmix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// Values at which integer instructions change what they do.
fn integers(bits: u32) -> Vec<u64> {
    let mut all: Vec<u64> = vec![0, 1, 2, 3, 5, 6, 7, 10, 15, 17, 23, 24, 25, 31, 33, 47, 48, 63, 65, 100];
    for power in [3, 4, 5, 6, 7, 8, 15, 16, 23, 24, 31, 32, 33, 47, 62, 63] {
        if power < bits {
            let power = 1u64 << power;
            all.extend([power - 1, power, power + 1, power.wrapping_neg(), (power + 1).wrapping_neg()]);
        }
    }
    all.extend([0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210]);
    all.extend([0xff00_ff00_ff00_ff00, 0x8000_7fff_8000_7fff, 0x7f80_7f80_7f80_807f, 0xf0, 0xcc]);
    all.extend([1u64, 2, 3, 16].map(u64::wrapping_neg));
    for value in &mut all {
        *value &= mask(bits);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Zeros, ones, extremes, subnormals, infinities, NaNs; ties of every rounding; limits of the integer types.
fn floats(format: Format) -> Vec<u64> {
    let f64_ = match Type::named("f64") {
        Some(Type::Float(format)) => format,
        _ => unreachable!(),
    };
    let fraction = format.fraction_bits as i32;
    let least = format.least_exponent();
    let mut values: Vec<f64> =
        vec![1.0, 2.0, 3.0, 0.5, 1.5, 2.5, 3.5, 0.1, 10.0, 1.0 / 3.0, 255.5, 127.5, 256.0];
    values
        .extend([254.5, 128.5, 32767.5, 65535.5, 65519.0, 65520.0, 448.0, 464.0, 57344.0, 61440.0, 6.0, 5.0]);
    for power in [7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64, 100, 120, -1, -9, -10, -24, -25, -126, -149] {
        values.push(2f64.powi(power));
    }
    // Halfway between neighbours of the narrower formats, and one unit of this format beside it.
    let mut bits: Vec<u64> = vec![];
    for narrow in [1, 2, 3, 7, 10, 23] {
        let tie = 2f64.powi(-narrow - 1);
        values.extend([1.0 + tie, 1.0 + 3.0 * tie, 1.0 - tie / 2.0]);
        values.extend([2f64.powi(-14) * tie, 2f64.powi(-14) * 3.0 * tie, 2f64.powi(-6) * tie]);
    }
    for value in values {
        let value = format.round(Rounding::Zero, f64_.decode(value.to_bits().into())) as u64;
        bits.extend([value, value + 1, value.saturating_sub(1)]);
    }
    let one = |exponent: i32, mantissa: u128| {
        let value = Value::Finite { negative: false, mantissa, exponent, rest: false };
        format.round(Rounding::Zero, value) as u64
    };
    let unit = 1u64 << format.padding;
    let smallest = one(least - fraction, 1);
    let normal = one(least, 1);
    bits.extend([0, smallest, 2 * unit, normal, normal - unit, normal + unit, normal + 2 * unit]);
    bits.extend([one(least + 1, 1), one(least + fraction, 1), one(-least / 2, 3), one(least / 2, 5)]);
    let infinity = format.infinity(false) as u64;
    let nan = format.nan() as u64;
    if format.bits == 16 {
        // What tensor copies fill with.
        bits.push(0x7ff7);
    }
    // Quiet and signalling, with payloads; what is beyond a format without infinities is NaN, or cut off.
    bits.extend([infinity, infinity - unit, infinity - 2 * unit, infinity + unit, infinity + 5 * unit, nan]);
    bits.extend([nan & !(unit << (format.fraction_bits - 1)), infinity | unit << (format.fraction_bits - 1)]);
    let sign = 1u64 << (format.bits - 1);
    let keep = mask(format.bits) & !(unit - 1);
    let mut all: Vec<u64> = bits.iter().flat_map(|&it| [it & keep, (it ^ sign) & keep]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub fn specials(kind: Kind) -> Vec<u64> {
    match kind {
        Kind::Bit => vec![0, 1],
        Kind::Int(bits) => integers(bits),
        Kind::Float(format) => floats(format),
        Kind::Packed(format, n) => {
            let one = floats(format);
            let at = |i: usize| one[i % one.len()];
            (0..one.len())
                .map(|i| {
                    (0..n as usize).fold(0, |all, lane| {
                        all | at(i * (1 + 36 * lane) + 5 * lane) << (lane as u32 * format.bits)
                    })
                })
                .collect()
        }
        Kind::Halves => {
            let one = integers(16);
            (0..one.len()).map(|i| one[i] | one[(i * 17 + 3) % one.len()] << 16).collect()
        }
    }
}

fn random_float(random: &mut Random, format: Format, specials: &[u64]) -> u64 {
    let bits = random.next();
    let keep = mask(format.bits) & !((1 << format.padding) - 1);
    let choice = random.below(8);
    if choice == 0 {
        return specials[random.below(specials.len())];
    }
    if choice == 1 {
        return bits & keep;
    }
    // Exponents near each other, where sums cancel and integers lie; few bits, many, or only the high ones.
    let spread = if choice < 5 { 8 } else { 160 };
    let exponent = random.below(spread) as i32 - spread as i32 / 2 - format.fraction_bits as i32;
    let mantissa = match choice % 3 {
        0 => bits & 0xff,
        1 => bits | 0xffff_ffff,
        _ => bits,
    } & mask(format.fraction_bits + 1);
    let mantissa =
        u128::from(mantissa | 1u64.checked_shl(format.fraction_bits).unwrap_or(0) >> random.below(2));
    let value = Value::Finite { negative: bits >> 63 == 1, mantissa, exponent, rest: false };
    format.round(Rounding::Zero, value) as u64
}

fn random(random: &mut Random, kind: Kind, specials: &[u64]) -> u64 {
    match kind {
        Kind::Bit => random.next() & 1,
        Kind::Int(bits) => match random.below(6) {
            0 => specials[random.below(specials.len())],
            1 => (random.next() & mask(bits)) >> random.below(bits as usize),
            2 => !((random.next() & mask(bits)) >> random.below(bits as usize)) & mask(bits),
            _ => random.next() & mask(bits),
        },
        Kind::Float(format) => random_float(random, format, specials),
        Kind::Packed(format, n) => {
            let one: Vec<u64> = specials.iter().map(|it| it & mask(format.bits)).collect();
            (0..n).fold(0, |all, lane| all | random_float(random, format, &one) << (lane * format.bits))
        }
        Kind::Halves => random.next() & mask(32),
    }
}

/// Rows of operands, column by column.
pub struct Columns {
    pub columns: Vec<Vec<u64>>,
    n: usize,
}

/// How many rows.
#[derive(Clone, Copy, PartialEq)]
pub enum Size {
    /// For forms that differ from swept ones by a literal.
    Glance,
    Quick,
    Full,
}

/// Rows are padded to whole blocks.
pub const BLOCK: usize = 256;

/// Crossed special values, at most.
const CROSSED: usize = 1 << 12;
/// Random rows of a quick sweep.
const RANDOM: usize = 1 << 12;
/// Rows of one chunk of a full sweep.
const CHUNK: u64 = 1 << 18;

impl Columns {
    pub fn len(&self) -> usize {
        self.n
    }

    /// The inputs of a sweep, chunk by chunk, until `None`.
    pub fn of(kinds: &[Kind], chunk: usize, size: Size) -> Option<Columns> {
        let full = size == Size::Full;
        let rows: Vec<Vec<u64>> = match kinds {
            [] => (chunk == 0).then(|| vec![vec![]])?,
            _ if size == Size::Glance => (chunk == 0).then(|| glance(kinds))?,
            [one] if one.bits() <= 16 => {
                (chunk == 0).then(|| (0..=mask(one.bits())).map(|it| vec![it]).collect())?
            }
            [one] if one.bits() == 32 && full => {
                let first = chunk as u64 * CHUNK;
                (first <= mask(32)).then(|| (first..first + CHUNK).map(|it| vec![it]).collect())?
            }
            _ if chunk == 0 => quick(kinds),
            _ if full && (chunk as u64) <= (1 << 20) / CHUNK => randoms(kinds, chunk, CHUNK as usize),
            _ => return None,
        };
        Some(Columns::from_rows(&rows))
    }
}

fn glance(kinds: &[Kind]) -> Vec<Vec<u64>> {
    let specials: Vec<Vec<u64>> = kinds.iter().map(|kind| specials(*kind)).collect();
    let longest = specials.iter().map(Vec::len).max().unwrap_or(1);
    (0..2 * longest)
        .map(|i| specials.iter().enumerate().map(|(nth, it)| it[i * (1 + 2 * nth) % it.len()]).collect())
        .collect()
}

fn quick(kinds: &[Kind]) -> Vec<Vec<u64>> {
    let specials: Vec<Vec<u64>> = kinds.iter().map(|kind| specials(*kind)).collect();
    let product: usize = specials.iter().map(Vec::len).product();
    let mut rows = vec![];
    let mut pick = Random(17);
    for nth in 0..product.min(CROSSED) {
        // Every combination, or as many chosen blindly.
        let mut index = if product <= CROSSED { nth } else { pick.below(product) };
        rows.push(
            specials
                .iter()
                .map(|column| {
                    let value = column[index % column.len()];
                    index /= column.len();
                    value
                })
                .collect(),
        );
    }
    if let [one] = kinds
        && one.bits() == 32
    {
        // 65521 is prime: every residue of the low bits and every exponent is met.
        rows.extend((0..=u64::from(u32::MAX)).step_by(65521).map(|it| vec![it]));
        return rows;
    }
    rows.extend(randoms(kinds, 0, RANDOM));
    rows
}

fn randoms(kinds: &[Kind], chunk: usize, n: usize) -> Vec<Vec<u64>> {
    let specials: Vec<Vec<u64>> = kinds.iter().map(|kind| specials(*kind)).collect();
    let mut source = Random(chunk as u64 + 1);
    (0..n)
        .map(|_| {
            kinds.iter().zip(&specials).map(|(kind, specials)| random(&mut source, *kind, specials)).collect()
        })
        .collect()
}
