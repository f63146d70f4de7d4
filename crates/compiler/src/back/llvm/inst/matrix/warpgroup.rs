//! A warp's part of a product of four warps (`wgmma`) as one function, the same for every setting: it reads the factors in shared
//! memory, where their descriptors say, and adds to sums in memory.
//!
//! Eight rows of a factor by the 16 bytes along k that a register of a warp has are a core matrix, eight units of 16 bytes,
//! whichever way the matrix lies. So a register is eight loads.

use super::super::super::builder::{Builder, ROLLED_IS, Val};
use super::super::super::ty::Type;
use super::{Layout, Product, Result, Writer, core_matrix};
use crate::back::llvm::Unsupported;
use crate::matrix::{LANES, Mma, Part, Wgmma};

/// Bytes of a register of all lanes.
const REGISTER: u32 = 4 * LANES;

/// What the function takes: registers of D before and after, each as 32 lanes in a row, which may be one place; those of A, or its
/// descriptor; B's descriptor; the block's shared memory; the warp's number among four; whether D counts before.
pub struct Given {
    pub before: Val,
    pub after: Val,
    pub registers: Val,
    pub a: Val,
    pub b: Val,
    pub shared: Val,
    pub warp: Val,
    pub keeps: Val,
}

impl Given {
    fn params() -> Given {
        let [pointer, word, long] = [Type::ptr(), Type::int(32, 1), Type::int(64, 1)];
        Given {
            before: Val::new(pointer, "%before"),
            after: Val::new(pointer, "%after"),
            registers: Val::new(pointer, "%registers"),
            a: Val::new(long, "%a"),
            b: Val::new(long, "%b"),
            shared: Val::new(pointer, "%shared"),
            warp: Val::new(word, "%warp"),
            keeps: Val::new(Type::int(1, 1), "%keeps"),
        }
    }

    fn list(&self) -> String {
        let Given { before, after, registers, a, b, shared, warp, keeps } = self;
        [before, after, registers, a, b, shared, warp, keeps].map(Val::typed).join(", ")
    }
}

/// Calls the function, which is added to the module.
pub fn call(b: &mut Builder, wgmma: &Wgmma, given: &Given) -> Result<()> {
    let name = format!("@{}", name(wgmma));
    b.define(&name, |b| write(b, wgmma, &name))?;
    b.inst(format_args!("call void {name}({})", given.list()));
    Ok(())
}

/// Words that a lane brings besides registers of A and D where the product is an exchange ([`exchange`]).
pub const WORDS: u32 = 7;

/// The name of a function `i32 (ptr in, ptr out, ptr shared)`, which is added to the module: `in` has the registers of A, if A is not in
/// memory, the [`WORDS`] (both descriptors, each two words, where the block's own memory begins in the shared window, the warp's
/// number, whether D counts before), and the registers of D, each as 32 lanes in a row; `out` the result's.
pub fn exchange(b: &mut Builder, wgmma: &Wgmma) -> Result<String> {
    let name = format!("@{}.lanes", name(wgmma));
    b.declare("rolled loops", ROLLED_IS);
    b.define(&name, |b| {
        let params = "ptr %in, ptr %out, ptr %window";
        b.line(format_args!("define internal i32 {name}({params}) nounwind noinline {{"));
        b.start_block("entry");
        let n_registers = if wgmma.a.is_some() { 0 } else { wgmma.mma.registers(Part::A) };
        let at = |b: &mut Builder, register: u32| {
            let offset = register * REGISTER;
            b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %in, i64 {offset}"))
        };
        let words: Vec<Val> = (0..WORDS)
            .map(|word| {
                let at = at(b, n_registers + word);
                b.assign(Type::int(32, 1), format_args!("load i32, {}, align 4", at.typed()))
            })
            .collect();
        let long = |b: &mut Builder, first: usize| {
            let [low, high] = [0, 1].map(|nth| b.resize(&words[first + nth], 64, false));
            let high = b.bin_int("shl", &high, 32);
            b.or(&low, &high)
        };
        let [left, right] = [0, 2].map(|first| long(b, first));
        let own = b.resize(&words[4], 64, false);
        let given = Given {
            before: at(b, n_registers + WORDS),
            after: Val::new(Type::ptr(), "%out"),
            registers: Val::new(Type::ptr(), "%in"),
            a: left,
            b: right,
            shared: b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %window, {}", own.typed())),
            warp: words[5].clone(),
            keeps: b.icmp_int("ne", &words[6], 0),
        };
        call(b, wgmma, &given)?;
        b.inst("ret i32 0");
        b.line("}");
        Result::Ok(())
    })?;
    Ok(name)
}

fn name(wgmma: &Wgmma) -> String {
    let a = match wgmma.a {
        None => "registers".to_owned(),
        Some(how) => {
            let sign = if how.is_negative { "negative" } else { "memory" };
            format!("{sign}{}", u8::from(how.is_transposed))
        }
    };
    let b = u8::from(wgmma.b_is_transposed);
    format!("wgmma.n{}.{a}.{b}.{}", wgmma.columns, super::name(&wgmma.mma))
}

fn write(b: &mut Builder, wgmma: &Wgmma, name: &str) -> Result<()> {
    let mma = &wgmma.mma;
    let layout = Layout::of(mma).ok_or_else(|| Unsupported(format!("{wgmma:?}")))?;
    let given = Given::params();
    b.line(format_args!("define internal void {name}({}) nounwind noinline {{", given.list()));
    b.start_block("entry");
    let eights = wgmma.columns / 8;
    // So many times eight columns are summed at a time.
    let together = if eights.is_multiple_of(2) && layout.fits(b, 2) { 2 } else { 1 };
    let place = |b: &mut Builder, what: String, ty: String| {
        b.inst(format_args!("{what} = alloca {ty}, align 64"));
        what
    };
    let left = place(b, "%left".to_owned(), format!("[{} x i8]", layout.bytes(Part::A)));
    let rights: Vec<String> = (0..together)
        .map(|nth| place(b, format!("%right{nth}"), format!("[{} x i8]", layout.bytes(Part::B))))
        .collect();
    let slots: Vec<String> = (0..together as usize * layout.sums())
        .map(|nth| place(b, format!("%sum{nth}"), layout.sum_ty().to_string()))
        .collect();

    let registers = factor_a(b, wgmma, &given);
    layout.lay_out(b, Part::A, &registers, &left);
    let matrix = Matrix::of(b, &given.b, wgmma.b_is_transposed);
    let per_column = mma.registers(Part::D);
    let ty = Type::of(mma.d.register(), LANES);
    let zero = Builder::bits(ty, 0);
    let mut writer = Writer { b, mma, name: String::new() };
    writer.repeat(eights / together, |me, at| {
        let b = &mut *me.b;
        let eight = b.resize(at, 32, false);
        let eight = b.bin_int("mul", &eight, together.into());
        let mut products = vec![];
        for (nth, right) in (0..).zip(&rights) {
            let eight = b.bin_int("add", &eight, nth);
            let registers: Vec<Val> = (0..mma.registers(Part::B))
                .map(|register| matrix.register(b, &given.shared, &eight, along(mma, Part::B, register)))
                .collect();
            layout.lay_out(b, Part::B, &registers, right);
        }
        let offset = b.bin_int("mul", at, (together * per_column * REGISTER).into());
        let [before, after] = [&given.before, &given.after].map(|it| {
            b.assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", it.typed(), offset.typed()))
        });
        let nth_at = |b: &mut Builder, base: &Val, nth: u32| {
            let offset = nth * REGISTER;
            b.assign(Type::ptr(), format_args!("getelementptr i8, {}, i64 {offset}", base.typed()))
        };
        for (nth, right) in (0..).zip(&rights) {
            let c = (0..per_column).map(|register| {
                let at = nth_at(b, &before, nth * per_column + register);
                let sum = b.assign(ty, format_args!("load {ty}, {}, align 8", at.typed()));
                b.select(&given.keeps, &sum, &zero)
            });
            products.push(Product { a: left.clone(), b: right.clone(), c: c.collect() });
        }
        let results = layout.multiply(b, &products, &slots);
        for (nth, val) in (0..).zip(results.iter().flatten()) {
            let at = nth_at(b, &after, nth);
            b.inst(format_args!("store {}, {}, align 8", val.typed(), at.typed()));
        }
        Ok(())
    })?;
    b.inst("ret void");
    b.line("}");
    Ok(())
}

/// A's registers.
fn factor_a(b: &mut Builder, wgmma: &Wgmma, given: &Given) -> Vec<Val> {
    let mma = &wgmma.mma;
    let ty = Type::int(32, LANES);
    let registers = 0..mma.registers(Part::A);
    let Some(how) = wgmma.a else {
        return registers
            .map(|register| {
                let offset = register * REGISTER;
                let from = given.registers.typed();
                let at = b.assign(Type::ptr(), format_args!("getelementptr i8, {from}, i64 {offset}"));
                b.assign(ty, format_args!("load {ty}, {}, align 8", at.typed()))
            })
            .collect();
    };
    let matrix = Matrix::of(b, &given.a, how.is_transposed);
    let first = b.bin_int("shl", &given.warp, 1);
    registers
        .map(|register| {
            let down = mma.position(Part::A, 0, register, 0).row / 8;
            let eight = b.bin_int("add", &first, down.into());
            let value = matrix.register(b, &given.shared, &eight, along(mma, Part::A, register));
            if how.is_negative { b.bin_int("xor", &value, mma.signs().into()) } else { value }
        })
        .collect()
}

/// How many units of 16 bytes along k a register of the first lane is.
fn along(mma: &Mma, part: Part, register: u32) -> u32 {
    mma.position(part, 0, register, 0).column / (4 * mma.element(part).per_register())
}

/// A factor in shared memory, by the PTX manual's "Matrix descriptor" (`pass/wgmma.rs` has the same for one lane). All `i32`.
struct Matrix {
    is_transposed: bool,
    start: Val,
    /// Units side by side, as a power of two, and that number less one.
    units_log2: Val,
    mask: Val,
    /// Which row of the swizzle's pattern the matrix begins at.
    base: Val,
    /// Bytes from eight rows (along m or n) to the next.
    down: Val,
    /// Bytes from a unit along k to the next; of a transposed matrix from eight rows along k to the next.
    along: Val,
    /// Bytes from the first unit of a core matrix to each of the eight.
    units: Val,
}

impl Matrix {
    fn of(b: &mut Builder, descriptor: &Val, is_transposed: bool) -> Matrix {
        let low = b.resize(descriptor, 32, false);
        let high = b.bin_int("lshr", descriptor, 32);
        let high = b.resize(&high, 32, false);
        let bytes = |b: &mut Builder, word: &Val| {
            let field = b.bin_int("and", word, 0x3fff);
            b.bin_int("shl", &field, 4)
        };
        let start = bytes(b, &low);
        let leading = b.bin_int("lshr", &low, 16);
        let leading = bytes(b, &leading);
        let stride = bytes(b, &high);
        let base = b.bin_int("lshr", &high, 17);
        let base = b.bin_int("and", &base, 7);
        // 0: none, 1: 128 bytes, 2: 64 bytes, 3: 32 bytes.
        let swizzle = b.bin_int("lshr", &high, 30);
        let four = Builder::int(Type::int(32, 1), 4);
        let units_log2 = b.sub(&four, &swizzle);
        let units_log2 = b.bin_int("and", &units_log2, 3);
        let one = Builder::int(Type::int(32, 1), 1);
        let mask = b.bin("shl", &one, &units_log2);
        let mask = b.bin_int("sub", &mask, 1);
        let is_plain = b.icmp_int("eq", &swizzle, 0);
        let (down, along) = if is_transposed {
            (b.select(&is_plain, &stride, &leading), b.select(&is_plain, &leading, &stride))
        } else {
            let unit = Builder::int(Type::int(32, 1), 16);
            let along = b.select(&is_plain, &leading, &unit);
            (stride, along)
        };
        let pitch_log2 = b.bin_int("add", &units_log2, 4);
        let numbers = Val::new(Type::int(32, 8), "<i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>");
        let pitches = spread(b, &pitch_log2);
        let units = b.bin("shl", &numbers, &pitches);
        Matrix { is_transposed, start, units_log2, mask, base, down, along, units }
    }

    /// A register of all lanes: the eight rows with number `eight`, `along` units along k.
    fn register(&self, b: &mut Builder, shared: &Val, eight: &Val, along: u32) -> Val {
        let along = b.bin_int("mul", &self.along, along.into());
        let mut first = b.add(&self.start, &along);
        let mut rows = eight.clone();
        if self.is_transposed {
            let aside = b.and(eight, &self.mask);
            let aside = b.bin_int("shl", &aside, 4);
            first = b.add(&first, &aside);
            rows = b.bin("lshr", eight, &self.units_log2);
        }
        let down = b.mul(&rows, &self.down);
        first = b.add(&first, &down);
        let first = spread(b, &first);
        let plain = b.add(&first, &self.units);
        // The swizzle moves units within a row of its pattern.
        let [base, mask] = [&self.base, &self.mask].map(|it| spread(b, it));
        let row = b.bin_int("lshr", &plain, 7);
        let row = b.sub(&row, &base);
        let moved = b.and(&row, &mask);
        let moved = b.bin_int("shl", &moved, 4);
        let places = b.xor(&plain, &moved);
        let places = b.resize(&places, 64, false);
        let places: Vec<Val> = (0..8)
            .map(|nth| {
                let place = format!("extractelement {}, i64 {nth}", places.typed());
                b.assign(Type::int(64, 1), place)
            })
            .collect();
        core_matrix(b, shared, &places, self.is_transposed)
    }
}

/// A word in each of eight.
fn spread(b: &mut Builder, word: &Val) -> Val {
    let ty = Type::new(word.ty.scalar, 8);
    let one = b.assign(ty, format_args!("insertelement {ty} poison, {}, i64 0", word.typed()));
    b.assign(ty, format_args!("shufflevector {}, {ty} poison, <8 x i32> zeroinitializer", one.typed()))
}
