//! Runs emitted operations on many inputs and compares with a reference that is not ours.
//!
//! Each case becomes a loop over rows of 16-byte cells, once scalar and once with vectors, in one module that clang
//! compiles together with a C driver. A reference is a Rust closure or a C expression run by the same driver under the
//! hardware's own rounding mode.

#![allow(dead_code, reason = "each test file uses its part")]

use compiler::back::llvm::{Builder, Type, Val, emit_pure};
use compiler::ir::{Op, Ty};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

type Results = Box<dyn Fn(&[u128]) -> Vec<u128>>;
type Judge = Box<dyn Fn(&[u128], &[u128]) -> Option<String>>;

/// Where a case's results come from.
pub enum Reference {
    /// All results of one row.
    Rust(Results),
    /// C statements that set `r0`, … from `a0`, … under the rounding mode.
    C { code: String, rounding: &'static str },
    /// Judges (row, results), for approximate functions: an error text when wrong.
    Judge(Judge),
}

/// How results are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Equal {
    Bits,
    /// Any NaN equals any NaN.
    Floats,
}

pub struct Case {
    pub name: String,
    pub op: Op,
    pub args: Vec<Ty>,
    pub results: Vec<Ty>,
    pub rows: Vec<Vec<u128>>,
    pub reference: Reference,
    pub equal: Equal,
}

#[derive(Default)]
pub struct Suite {
    pub cases: Vec<Case>,
}

/// xorshift64*: the same numbers every time.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

fn mask(ty: Ty) -> u128 {
    if ty.bits() == 128 { u128::MAX } else { (1 << ty.bits()) - 1 }
}

/// Numbers at which integer operations go wrong.
pub fn integers(ty: Ty) -> Vec<u128> {
    let bits = ty.bits();
    let top = 1u128 << (bits - 1);
    let mut all = vec![0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257];
    all.extend([
        top - 1,
        top,
        top + 1,
        mask(ty),
        mask(ty) - 1,
        mask(ty) >> 1,
        0x5555_5555,
        0x1234_5678_9abc_def0,
    ]);
    all.iter().map(|n| n & mask(ty)).collect()
}

/// Floats of a format by exponent and mantissa width: zeros, subnormals, limits, NaNs, simple numbers.
pub fn floats(exponent: u32, mantissa: u32) -> Vec<u128> {
    let bits = exponent + mantissa + 1;
    let one = ((1u128 << (exponent - 1)) - 1) << mantissa;
    let infinity = ((1u128 << exponent) - 1) << mantissa;
    let least = 1u128 << mantissa;
    let mut all = vec![0, 1, 2, least - 1, least, least + 1, one, one + 1, one - 1, infinity, infinity - 1];
    all.extend([infinity + (least >> 1), infinity + least - 1, infinity + 1]);
    let unit = least;
    all.extend([
        one + unit,
        one - unit,
        one + unit / 2,
        one + unit + unit / 2,
        one - unit - 1,
        one + 2 * unit,
    ]);
    all.extend([
        one + mantissa as u128 * unit,
        one + (mantissa as u128 + 1) * unit,
        one + unit * 7 + unit / 4,
    ]);
    let positive = all.clone();
    all.extend(positive.iter().map(|n| n | 1 << (bits - 1)));
    all
}

pub fn special(ty: Ty) -> Vec<u128> {
    match ty {
        Ty::F32 => floats(8, 23),
        Ty::F64 => floats(11, 52),
        Ty::Pred => vec![0, 1],
        _ => integers(ty),
    }
}

/// All pairs (triples…) of interesting numbers, thinned to `limit`, then as many random rows.
pub fn rows(args: &[Ty], limit: usize, seed: u64) -> Vec<Vec<u128>> {
    let columns: Vec<Vec<u128>> = args.iter().map(|ty| special(*ty)).collect();
    rows_of(&columns, args, limit, seed)
}

pub fn rows_of(columns: &[Vec<u128>], args: &[Ty], limit: usize, seed: u64) -> Vec<Vec<u128>> {
    let mut random = Random::new(seed);
    let total: usize = columns.iter().map(Vec::len).product();
    let mut rows = vec![];
    let pick = |mut index: usize| {
        columns
            .iter()
            .map(|column| {
                let value = column[index % column.len()];
                index /= column.len();
                value
            })
            .collect::<Vec<_>>()
    };
    if total <= limit {
        rows.extend((0..total).map(pick));
    } else {
        rows.extend((0..limit).map(|_| pick(random.next() as usize % total)));
    }
    for i in 0..limit {
        let mut row: Vec<u128> = args.iter().map(|ty| random.wide() & mask(*ty)).collect();
        // Floats of similar size, so that sums and quotients round.
        if i % 2 == 0 {
            for (value, ty) in row.iter_mut().zip(args) {
                match ty {
                    Ty::F32 => *value = *value & 0x83ff_ffff | 0x3c00_0000,
                    Ty::F64 => {
                        *value = *value & 0x800f_ffff_ffff_ffff | (0x3e0 + (*value >> 52 & 0x3f)) << 52
                    }
                    _ => {}
                }
            }
        }
        rows.push(row);
    }
    rows
}

impl Suite {
    pub fn rust(
        &mut self,
        name: impl Into<String>,
        op: Op,
        args: &[Ty],
        results: &[Ty],
        reference: impl Fn(&[u128]) -> Vec<u128> + 'static,
    ) {
        let name = name.into();
        let rows = rows(args, 1500, 1 + name.len() as u64);
        self.cases.push(Case {
            name,
            op,
            args: args.to_vec(),
            results: results.to_vec(),
            rows,
            reference: Reference::Rust(Box::new(reference)),
            equal: Equal::Bits,
        });
    }

    pub fn c(
        &mut self,
        name: impl Into<String>,
        op: Op,
        args: &[Ty],
        results: &[Ty],
        mode: &'static str,
        code: &str,
    ) {
        let name = name.into();
        let rows = rows(args, 4000, 77 + name.len() as u64);
        self.cases.push(Case {
            name,
            op,
            args: args.to_vec(),
            results: results.to_vec(),
            rows,
            reference: Reference::C { code: code.to_owned(), rounding: mode },
            equal: Equal::Floats,
        });
    }

    /// Compiles, runs and compares everything; panics with what differs.
    pub fn check(mut self, name: &str) {
        // Every vector loop takes 8 rows.
        for case in &mut self.cases {
            while case.rows.len() % 8 != 0 {
                case.rows.push(case.rows[0].clone());
            }
        }
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let module = self.module();
        std::fs::write(folder.join("ops.ll"), &module).unwrap();
        std::fs::write(folder.join("driver.c"), self.driver()).unwrap();
        let input: Vec<u8> = self
            .cases
            .iter()
            .flat_map(|case| case.rows.iter().flatten().flat_map(|cell| cell.to_le_bytes()))
            .collect();
        std::fs::write(folder.join("input"), input).unwrap();
        let run = |program: &str, args: &[&str]| {
            let output = Command::new(program).args(args).current_dir(&folder).output();
            let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        run("clang-19", &["-w", "-O2", "-march=x86-64-v3", "-mf16c", "-c", "ops.ll", "-o", "ops.o"]);
        // The object must stand alone in the cache: only what LLVM itself makes of loops is allowed.
        let undefined = run("llvm-nm-19", &["-u", "ops.o"]);
        let calls: Vec<&str> =
            undefined.split_whitespace().filter(|w| !["U", "memset", "memcpy"].contains(w)).collect();
        assert!(calls.is_empty(), "the emitted code calls {calls:?}");
        run(
            "clang-19",
            &[
                "-w",
                "-O1",
                "-march=x86-64-v3",
                "-frounding-math",
                "-ffp-contract=off",
                "driver.c",
                "ops.o",
                "-o",
                "ops",
                "-lm",
            ],
        );
        run("./ops", &[]);
        let output = std::fs::read(folder.join("output")).unwrap();
        self.compare(&output);
    }

    fn module(&self) -> String {
        let mut b = Builder::new();
        for (number, case) in self.cases.iter().enumerate() {
            for lanes in [1, 8] {
                function(&mut b, case, number, lanes);
            }
        }
        b.finish()
    }

    fn driver(&self) -> String {
        let mut c = String::from(include_str!("driver.c"));
        let mut calls = String::new();
        for (number, case) in self.cases.iter().enumerate() {
            let (n_rows, n_args, n_results) = (case.rows.len(), case.args.len(), case.results.len());
            for lanes in [1, 8] {
                let _ = writeln!(c, "void op_{number}_{lanes}(const cell *, cell *, long);");
                let _ = writeln!(
                    calls,
                    "  op_{number}_{lanes}(in, out, {n_rows}); out += {};",
                    n_rows * n_results
                );
            }
            if let Reference::C { code, rounding } = &case.reference {
                let _ = writeln!(c, "static void ref_{number}(const cell *in, cell *out, long n) {{");
                let _ = writeln!(c, "  fesetround({rounding});\n  for (long i = 0; i < n; i++) {{");
                for (at, ty) in case.args.iter().enumerate() {
                    let ty = c_type(*ty);
                    let _ = writeln!(
                        c,
                        "    volatile {ty} v{at}; memcpy((void *)&v{at}, in + i * {n_args} + {at}, sizeof v{at}); {ty} a{at} = v{at};"
                    );
                }
                for (at, ty) in case.results.iter().enumerate() {
                    let _ = writeln!(c, "    volatile {} r{at};", c_type(*ty));
                }
                let _ = writeln!(c, "    {code};");
                for at in 0..n_results {
                    let _ = writeln!(
                        c,
                        "    memcpy(out + i * {n_results} + {at}, (void *)&r{at}, sizeof r{at});"
                    );
                }
                let _ = writeln!(c, "  }}\n  fesetround(FE_TONEAREST);\n}}");
                let _ = writeln!(calls, "  ref_{number}(in, out, {n_rows}); out += {};", n_rows * n_results);
            }
            let _ = writeln!(calls, "  in += {};", n_rows * n_args);
        }
        let cells_in: usize = self.cases.iter().map(|case| case.rows.len() * case.args.len()).sum();
        let cells_out: usize = self.cases.iter().map(|case| case.rows.len() * case.results.len() * 3).sum();
        let _ = writeln!(
            c,
            "int main(void) {{\n  cell *in = read_all(\"input\", {cells_in}), *start = calloc({cells_out}, 16), *out = start;\n{calls}  return write_all(\"output\", start, out - start);\n}}"
        );
        c
    }

    fn compare(&self, output: &[u8]) {
        let mut cells = output.chunks_exact(16).map(|cell| u128::from_le_bytes(cell.try_into().unwrap()));
        let mut failures = vec![];
        let mut n_checked = 0usize;
        for case in &self.cases {
            let mut take = || -> Vec<Vec<u128>> {
                let row = |_| case.results.iter().map(|_| cells.next().unwrap()).collect();
                (0..case.rows.len()).map(row).collect()
            };
            let (scalar, vector) = (take(), take());
            let expected = match &case.reference {
                Reference::Rust(reference) => Some(case.rows.iter().map(|row| reference(row)).collect()),
                Reference::C { .. } => Some(take()),
                Reference::Judge(_) => None,
            };
            let mut n_wrong = 0;
            for (at, row) in case.rows.iter().enumerate() {
                for (lanes, got) in [(1, &scalar[at]), (8, &vector[at])] {
                    n_checked += 1;
                    let wrong = match (&expected, &case.reference) {
                        (Some(expected), _) => {
                            (!case.same(got, &expected[at])).then(|| format!("expected {:x?}", expected[at]))
                        }
                        (None, Reference::Judge(judge)) => judge(row, got),
                        _ => unreachable!(),
                    };
                    if let Some(wrong) = wrong {
                        n_wrong += 1;
                        if n_wrong <= 4 {
                            failures.push(format!(
                                "{} ({lanes} lanes): {row:x?} gave {got:x?}, {wrong}",
                                case.name
                            ));
                        }
                    }
                }
            }
            if n_wrong > 4 {
                failures.push(format!("{}: {n_wrong} wrong in all", case.name));
            }
        }
        println!("{} cases, {n_checked} results", self.cases.len());
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

impl Case {
    fn same(&self, got: &[u128], expected: &[u128]) -> bool {
        got.iter().zip(expected).zip(&self.results).all(|((got, expected), ty)| {
            got == expected || self.equal == Equal::Floats && is_nan(*ty, *got) && is_nan(*ty, *expected)
        })
    }
}

/// `B16` is taken for an f16.
fn is_nan(ty: Ty, bits: u128) -> bool {
    match ty {
        Ty::F32 => f32::from_bits(bits as u32).is_nan(),
        Ty::F64 => f64::from_bits(bits as u64).is_nan(),
        Ty::B16 => bits & 0x7fff > 0x7c00,
        _ => false,
    }
}

fn c_type(ty: Ty) -> &'static str {
    match ty {
        Ty::Pred => "uint8_t",
        Ty::B16 => "uint16_t",
        Ty::B32 => "uint32_t",
        Ty::B64 => "uint64_t",
        Ty::B128 => "cell",
        Ty::F32 => "float",
        Ty::F64 => "double",
    }
}

/// `void op_N_LANES(ptr in, ptr out, i64 rows)`
fn function(b: &mut Builder, case: &Case, number: usize, lanes: u32) {
    let (n_args, n_results) = (case.args.len() as i64, case.results.len() as i64);
    b.line(format_args!("define void @op_{number}_{lanes}(ptr %in, ptr %out, i64 %rows) {{"));
    b.start_block("entry");
    b.br("loop");
    b.start_block("loop");
    let index = Type::int(64, 1);
    let (i, next) = (b.fresh(), b.fresh());
    b.inst(format_args!("{i} = phi i64 [ 0, %entry ], [ {next}, %loop ]"));
    let i = Val::new(index, i);
    let mut args = vec![];
    for (at, ty) in case.args.iter().enumerate() {
        let to = Type::of(*ty, lanes);
        let mut vector = Val::new(to.ints(to.bits()), "poison");
        for lane in 0..i64::from(lanes) {
            let cell = b.bin_int("add", &i, i128::from(lane));
            let cell = b.bin_int("mul", &cell, i128::from(n_args));
            let cell = b.bin_int("add", &cell, at as i128);
            let pointer =
                b.assign(Type::ptr(), format_args!("getelementptr i128, ptr %in, i64 {}", cell.text));
            let bits = Type::int(ty.bits(), 1);
            let wide = b.assign(Type::int(128, 1), format_args!("load i128, {}", pointer.typed()));
            let value = b.cast("trunc", &wide, bits);
            vector = if lanes == 1 {
                value
            } else {
                let ty = vector.ty;
                b.assign(ty, format_args!("insertelement {}, {}, i32 {lane}", vector.typed(), value.typed()))
            };
        }
        args.push(b.bitcast(&vector, to).text);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let results = emit_pure(b, &case.op, &args, &case.args, &case.results, lanes)
        .unwrap_or_else(|error| panic!("{}: {error}", case.name));
    for (at, (name, ty)) in results.iter().zip(&case.results).enumerate() {
        let value = Val::new(Type::of(*ty, lanes), name.clone());
        let bits = b.to_bits(&value);
        for lane in 0..i64::from(lanes) {
            let scalar = Type::int(ty.bits(), 1);
            let one = match lanes {
                1 => bits.clone(),
                _ => b.assign(scalar, format_args!("extractelement {}, i32 {lane}", bits.typed())),
            };
            let wide = b.resize(&one, 128, false);
            let cell = b.bin_int("add", &i, i128::from(lane));
            let cell = b.bin_int("mul", &cell, i128::from(n_results));
            let cell = b.bin_int("add", &cell, at as i128);
            let pointer =
                b.assign(Type::ptr(), format_args!("getelementptr i128, ptr %out, i64 {}", cell.text));
            b.inst(format_args!("store {}, {}", wide.typed(), pointer.typed()));
        }
    }
    b.inst(format_args!("{next} = add i64 {}, {lanes}", i.text));
    let done = b.assign(Type::int(1, 1), format_args!("icmp uge i64 {next}, %rows"));
    b.cond_br(&done, "end", "loop");
    b.start_block("end");
    b.inst("ret void");
    b.line("}");
}
