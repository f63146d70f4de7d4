//! Float operations and conversions against the CPU's own arithmetic under its own rounding modes.

mod lane_support;

use compiler::ir::*;
use lane_support::Suite;

/// Rounding, the C library's name for it, PTX's name.
const ROUNDS: [(Round, &str, &str); 4] = [
    (Round::Nearest, "FE_TONEAREST", "rn"),
    (Round::Zero, "FE_TOWARDZERO", "rz"),
    (Round::Down, "FE_DOWNWARD", "rm"),
    (Round::Up, "FE_UPWARD", "rp"),
];

fn mode(round: Round) -> FloatMode {
    FloatMode { round, ..FloatMode::default() }
}

#[test]
fn arithmetic_in_every_rounding_mode() {
    let mut suite = Suite::default();
    for (round, c_mode, ptx) in ROUNDS {
        for (float, ty, suffix) in [(Float::F32, Ty::F32, "f"), (Float::F64, Ty::F64, "")] {
            let m = mode(round);
            let mut bin = |name: &str, op, code: &str| {
                suite.c(
                    format!("{name}.{ptx} {float:?}"),
                    Op::Float(op, float, m),
                    &[ty, ty],
                    &[ty],
                    c_mode,
                    code,
                );
            };
            bin("add", FloatBin::Add, "r0 = a0 + a1");
            bin("sub", FloatBin::Sub, "r0 = a0 - a1");
            bin("mul", FloatBin::Mul, "r0 = a0 * a1");
            bin("div", FloatBin::Div, "r0 = a0 / a1");
            let fma = format!("r0 = fma{suffix}(a0, a1, a2)");
            suite.c(format!("fma.{ptx} {float:?}"), Op::Fma(float, m), &[ty; 3], &[ty], c_mode, &fma);
            let sqrt = format!("r0 = sqrt{suffix}(a0)");
            suite.c(
                format!("sqrt.{ptx} {float:?}"),
                Op::FloatUn(FloatUn::Sqrt, float, m),
                &[ty],
                &[ty],
                c_mode,
                &sqrt,
            );
            let rcp = Op::FloatUn(FloatUn::Rcp, float, m);
            suite.c(format!("rcp.{ptx} {float:?}"), rcp, &[ty], &[ty], c_mode, "r0 = 1 / a0");
            if float == Float::F32 {
                let ftz = FloatMode { ftz: true, ..m };
                let op = |bin| Op::Float(bin, float, ftz);
                let two = [ty, ty];
                suite.c(
                    format!("add.{ptx}.ftz"),
                    op(FloatBin::Add),
                    &two,
                    &[ty],
                    c_mode,
                    "r0 = flush(flush(a0) + flush(a1))",
                );
                suite.c(
                    format!("mul.{ptx}.ftz"),
                    op(FloatBin::Mul),
                    &two,
                    &[ty],
                    c_mode,
                    "r0 = flush(flush(a0) * flush(a1))",
                );
                let code = "r0 = flush(fmaf(flush(a0), flush(a1), flush(a2)))";
                suite.c(format!("fma.{ptx}.ftz"), Op::Fma(float, ftz), &[ty; 3], &[ty], c_mode, code);
                let sat = FloatMode { sat: true, ..m };
                let code = "float s = a0 + a1; r0 = s > 0 ? (s < 1 ? s : 1) : 0";
                suite.c(
                    format!("add.{ptx}.sat"),
                    Op::Float(FloatBin::Add, float, sat),
                    &two,
                    &[ty],
                    c_mode,
                    code,
                );
            }
        }
    }
    suite.check("arithmetic");
}

/// Terms that take each other away to the last bits, or are too far apart for one to be seen in the other.
#[test]
fn sums_of_near_and_of_far_terms_in_every_rounding_mode() {
    let mut suite = Suite::default();
    let ty = Ty::F32;
    for (round, c_mode, ptx) in ROUNDS {
        let m = mode(round);
        suite.c(
            format!("fma.{ptx}"),
            Op::Fma(Float::F32, m),
            &[ty; 3],
            &[ty],
            c_mode,
            "r0 = fmaf(a0, a1, a2)",
        );
        let add = Op::Float(FloatBin::Add, Float::F32, m);
        suite.c(format!("add.{ptx}"), add, &[ty; 2], &[ty], c_mode, "r0 = a0 + a1");
    }
    let mut random = lane_support::Random::new(31);
    for case in &mut suite.cases {
        for at in 0..20_000 {
            let [x, y] = [random.next(), random.next()].map(|bits| f32::from_bits(bits as u32));
            let y = if case.args.len() == 3 { y } else { 1.0 };
            let opposite = (-x * y).to_bits();
            let nth = random.next();
            // The product's own negative or one some digits beside it, or of an exponent some 32 or 64 away.
            let addend = match at % 4 {
                0 => opposite,
                1 => opposite.wrapping_add(nth as u32 % 9).wrapping_sub(4),
                2 => opposite ^ (1 << (nth % 31)),
                _ => opposite.wrapping_add((nth as u32 % 129).wrapping_sub(64) << 23),
            };
            let mut row = vec![u128::from(x.to_bits()), u128::from(y.to_bits()), u128::from(addend)];
            if case.args.len() == 2 {
                row.remove(1);
            }
            case.rows.push(row);
        }
    }
    suite.check("sums");
}

/// What `FloatMode::near` promises: a number from 0 to 1, a factor of at least 1 and at most half of the addend.
#[test]
fn sums_near_their_constant_in_every_rounding_mode() {
    let mut suite = Suite::default();
    let ty = Ty::F32;
    for (round, c_mode, ptx) in ROUNDS.into_iter().filter(|it| it.0 != Round::Nearest) {
        for ftz in [false, true] {
            let op = Op::Fma(Float::F32, FloatMode { near: true, ftz, ..mode(round) });
            let code = if ftz { "r0 = flush(fmaf(flush(a0), a1, a2))" } else { "r0 = fmaf(a0, a1, a2)" };
            suite.c(format!("fma.{ptx} ftz {ftz}"), op, &[ty; 3], &[ty], c_mode, code);
        }
    }
    let mut random = lane_support::Random::new(32);
    let constants = [
        (252.0f32, 12_582_913.0f32),
        (-252.0, 12_582_913.0),
        (1.0, 2.0),
        (-3.5, -7.0),
        (1.0, 9e29),
        (1.25, 3.1),
    ];
    for case in &mut suite.cases {
        case.rows.clear();
        for at in 0..12_000 {
            let (factor, addend) = constants[at % constants.len()];
            let bits = random.next() as u32;
            let share = match at % 7 {
                0 => [0.0, 1.0, 0.5, f32::from_bits(1), f32::MIN_POSITIVE][bits as usize % 5],
                1 => f32::from_bits(bits % 0x3f80_0001),
                _ => (bits >> 8) as f32 / (1 << 24) as f32,
            };
            case.rows.push([share, factor, addend].map(|it| u128::from(it.to_bits())).to_vec());
        }
    }
    suite.check("near");
}

#[test]
fn halves_round_once() {
    let mut suite = Suite::default();
    let near = "FE_TONEAREST";
    let h = Ty::B16;
    let m = FloatMode::default();
    for (name, op, sign) in
        [("add", FloatBin::Add, "+"), ("sub", FloatBin::Sub, "-"), ("mul", FloatBin::Mul, "*")]
    {
        // Exact in f64, then one rounding.
        let code = format!("r0 = half_bits((_Float16)((double)half(a0) {sign} (double)half(a1)))");
        suite.c(format!("{name}.f16"), Op::Float(op, Float::F16, m), &[h, h], &[h], near, &code);
        let code = format!(
            "double d[2] = {{ (double)half(a0) {sign} (double)half(a1), (double)half(a0 >> 16) {sign} (double)half(a1 >> 16) }}; \
             r0 = half_bits((_Float16)d[0]) | (uint32_t)half_bits((_Float16)d[1]) << 16; \
             if (d[0] != d[0]) r0 = r0 & 0xffff0000 | 0x7fff; if (d[1] != d[1]) r0 = r0 & 0xffff | 0x7fff0000"
        );
        suite.c(
            format!("{name}.f16x2"),
            Op::Float(op, Float::F16x2, m),
            &[Ty::B32; 2],
            &[Ty::B32],
            near,
            &code,
        );
        let code = format!("r0 = brain_bits((__float128)brain(a0) {sign} (__float128)brain(a1))");
        suite.c(format!("{name}.bf16"), Op::Float(op, Float::Bf16, m), &[h, h], &[h], near, &code);
    }
    let code = "r0 = half_bits128(fma_odd(half(a0), half(a1), half(a2)))";
    suite.c("fma.f16", Op::Fma(Float::F16, m), &[h; 3], &[h], near, code);
    let code = "r0 = brain_bits(fma_odd(brain(a0), brain(a1), brain(a2)))";
    suite.c("fma.bf16", Op::Fma(Float::Bf16, m), &[h; 3], &[h], near, code);
    for case in &mut suite.cases {
        // Random halves as well as integers' corner cases: every exponent.
        let columns = case.args.iter().map(|_| lane_support::floats(5, 10)).collect::<Vec<_>>();
        if case.args[0] == Ty::B16 {
            case.rows.extend(lane_support::rows_of(&columns, &case.args, 30_000, 5));
        }
    }
    suite.check("halves");
}

#[test]
fn min_max_and_signs() {
    let mut suite = Suite::default();
    for (float, ty, suffix) in [(Float::F32, Ty::F32, "f"), (Float::F64, Ty::F64, "")] {
        for (name, c, is_max) in [("min", "<", 0), ("max", ">", 1)] {
            for nan in [false, true] {
                for xorsign_abs in [false, true] {
                    if ty == Ty::F64 && (nan || xorsign_abs) {
                        continue;
                    }
                    let op = match is_max {
                        0 => FloatBin::Min { nan, xorsign_abs },
                        _ => FloatBin::Max { nan, xorsign_abs },
                    };
                    let code = format!(
                        "int s = !!signbit(a0) ^ !!signbit(a1); if ({x}) {{ a0 = fabs{suffix}(a0); a1 = fabs{suffix}(a1); }} \
                         if (isnan(a0) || isnan(a1)) r0 = {nan} ? NAN : isnan(a0) ? a1 : a0; \
                         else if (a0 == 0 && a1 == 0) r0 = (signbit(a0) {join} signbit(a1)) ? -0.0 : 0.0; \
                         else r0 = a0 {c} a1 ? a0 : a1; \
                         if ({x}) r0 = copysign{suffix}(r0, s ? -1 : 1)",
                        x = u8::from(xorsign_abs),
                        nan = u8::from(nan),
                        join = if is_max == 1 { "&&" } else { "||" },
                    );
                    let label = format!("{name} {float:?} nan={nan} xorsign={xorsign_abs}");
                    suite.c(
                        label,
                        Op::Float(op, float, FloatMode::default()),
                        &[ty, ty],
                        &[ty],
                        "FE_TONEAREST",
                        &code,
                    );
                }
            }
        }
        let m = FloatMode::default();
        let bits = ty.bits();
        let top = 1u128 << (bits - 1);
        suite.rust(format!("neg {float:?}"), Op::FloatUn(FloatUn::Neg, float, m), &[ty], &[ty], move |a| {
            vec![a[0] ^ top]
        });
        suite.rust(format!("abs {float:?}"), Op::FloatUn(FloatUn::Abs, float, m), &[ty], &[ty], move |a| {
            vec![a[0] & !top]
        });
        suite.rust(
            format!("copysign {float:?}"),
            Op::Float(FloatBin::CopySign, float, m),
            &[ty, ty],
            &[ty],
            move |a| vec![a[1] & !top | a[0] & top],
        );
        let (fraction, all) = if bits == 32 { (23, 0xffu128) } else { (52, 0x7ff) };
        let class = move |bits: u128| (bits >> fraction & all, bits & ((1 << fraction) - 1));
        let mut test = |test: TestP, holds: fn(u128, u128, u128) -> bool| {
            suite.rust(
                format!("testp {test:?} {float:?}"),
                Op::TestP(test, float),
                &[ty],
                &[Ty::Pred],
                move |a| {
                    let (exponent, fraction) = class(a[0]);
                    vec![u128::from(holds(exponent, fraction, all))]
                },
            );
        };
        test(TestP::Finite, |e, _, all| e != all);
        test(TestP::Infinite, |e, f, all| e == all && f == 0);
        test(TestP::Number, |e, f, all| e != all || f == 0);
        test(TestP::NotANumber, |e, f, all| e == all && f != 0);
        test(TestP::Subnormal, |e, f, _| e == 0 && f != 0);
        test(TestP::Normal, |e, f, all| e != all && (e != 0 || f == 0));
        let comparisons = [
            (Cmp::Eq, "a0 == a1"),
            (Cmp::Ne, "a0 < a1 || a0 > a1"),
            (Cmp::Lt, "a0 < a1"),
            (Cmp::Le, "a0 <= a1"),
            (Cmp::Gt, "a0 > a1"),
            (Cmp::Ge, "a0 >= a1"),
        ];
        for (cmp, c) in comparisons {
            let both = [ty, ty];
            let op = |cmp| Op::Fcmp { cmp, ty: float, ftz: false };
            let near = "FE_TONEAREST";
            suite.c(
                format!("{cmp:?} {float:?}"),
                op(FloatCmp::Ordered(cmp)),
                &both,
                &[Ty::Pred],
                near,
                &format!("r0 = {c}"),
            );
            let code = format!("r0 = isnan(a0) || isnan(a1) || {c}");
            suite.c(
                format!("{cmp:?}u {float:?}"),
                op(FloatCmp::Unordered(cmp)),
                &both,
                &[Ty::Pred],
                near,
                &code,
            );
        }
    }
    let flushed = Op::Fcmp { cmp: FloatCmp::Ordered(Cmp::Eq), ty: Float::F32, ftz: true };
    suite.c("eq.ftz", flushed, &[Ty::F32; 2], &[Ty::Pred], "FE_TONEAREST", "r0 = flush(a0) == flush(a1)");
    suite.check("minmax");
}

const INTS: [(Int, &str, &str); 6] = [
    (U16, "uint16_t", "65535"),
    (S16, "int16_t", "32767"),
    (U32, "uint32_t", "4294967295"),
    (S32, "int32_t", "2147483647"),
    (U64, "uint64_t", "18446744073709551615ull"),
    (S64, "int64_t", "9223372036854775807ll"),
];

#[test]
fn conversions_in_every_rounding_mode() {
    let mut suite = Suite::default();
    for (round, c_mode, ptx) in ROUNDS {
        let cvt = |from, to| Op::Cvt { from, to, mode: mode(round) };
        for (int, c, most) in INTS {
            let ty = Ty::of_bits(int.bits.into());
            let num = Num::Int(int);
            for (float, to) in [(Float::F32, Ty::F32), (Float::F64, Ty::F64)] {
                let name = format!("cvt.{ptx} {int:?} to {float:?}");
                suite.c(name, cvt(num, Num::Float(float)), &[ty], &[to], c_mode, &format!("r0 = ({c})a0"));
                // To integers: the integral value in that mode, then saturation.
                let nan = if float == Float::F64 || int.bits == 64 {
                    format!("({c})((uint64_t)1 << {})", int.bits - 1)
                } else {
                    "0".to_owned()
                };
                let least = if int.signed { format!("(-{most} - 1)") } else { "0".to_owned() };
                let code = format!(
                    "double w = rint((double)a0); r0 = ({c})(isnan(w) ? {nan} : w >= (double){most} ? ({c}){most} : w <= (double){least} ? ({c}){least} : ({c})w)"
                );
                let code = if int.bits == 64 {
                    // 2^63 and 2^64 are the first numbers that do not fit.
                    code.replace(&format!("(double){most}"), if int.signed { "0x1p63" } else { "0x1p64" })
                } else {
                    code
                };
                let name = format!("cvt.{ptx}i {float:?} to {int:?}");
                suite.c(name, cvt(Num::Float(float), num), &[to], &[ty], c_mode, &code);
            }
            let name = format!("cvt.{ptx} {int:?} to f16");
            let code = format!("r0 = half_bits128((__float128)({c})a0)");
            suite.c(name, cvt(num, Num::Float(Float::F16)), &[ty], &[Ty::B16], c_mode, &code);
            let name = format!("cvt.{ptx} {int:?} to bf16");
            let code = format!("r0 = brain_bits((__float128)({c})a0)");
            suite.c(name, cvt(num, Num::Float(Float::Bf16)), &[ty], &[Ty::B16], c_mode, &code);
        }
        let f = Num::Float;
        suite.c(
            format!("cvt.{ptx}.f32.f64"),
            cvt(f(Float::F64), f(Float::F32)),
            &[Ty::F64],
            &[Ty::F32],
            c_mode,
            "r0 = a0",
        );
        suite.c(
            format!("cvt.{ptx}.f16.f32"),
            cvt(f(Float::F32), f(Float::F16)),
            &[Ty::F32],
            &[Ty::B16],
            c_mode,
            "r0 = half_bits128(a0)",
        );
        suite.c(
            format!("cvt.{ptx}.f16.f64"),
            cvt(f(Float::F64), f(Float::F16)),
            &[Ty::F64],
            &[Ty::B16],
            c_mode,
            "r0 = half_bits128(a0)",
        );
        suite.c(
            format!("cvt.{ptx}.bf16.f32"),
            cvt(f(Float::F32), f(Float::Bf16)),
            &[Ty::F32],
            &[Ty::B16],
            c_mode,
            "r0 = brain_bits(a0)",
        );
        suite.c(
            format!("cvt.{ptx}.bf16.f64"),
            cvt(f(Float::F64), f(Float::Bf16)),
            &[Ty::F64],
            &[Ty::B16],
            c_mode,
            "r0 = brain_bits(a0)",
        );
        for (float, ty, suffix) in [(Float::F32, Ty::F32, "f"), (Float::F64, Ty::F64, "")] {
            let op = Op::RoundInt { ty: float, mode: mode(round) };
            suite.c(
                format!("cvt.{ptx}i {float:?}"),
                op,
                &[ty],
                &[ty],
                c_mode,
                &format!("r0 = rint{suffix}(a0)"),
            );
        }
    }
    let near = "FE_TONEAREST";
    let cvt = |from, to| Op::Cvt { from: Num::Float(from), to: Num::Float(to), mode: FloatMode::default() };
    suite.c("cvt.f64.f32", cvt(Float::F32, Float::F64), &[Ty::F32], &[Ty::F64], near, "r0 = a0");
    suite.c("cvt.f32.f16", cvt(Float::F16, Float::F32), &[Ty::B16], &[Ty::F32], near, "r0 = half(a0)");
    suite.c("cvt.f32.bf16", cvt(Float::Bf16, Float::F32), &[Ty::B16], &[Ty::F32], near, "r0 = brain(a0)");
    let pack = |to| Op::CvtPack { from: Float::F32, to: Num::Float(to), mode: FloatMode::default() };
    let two = [Ty::F32; 2];
    suite.c(
        "cvt.f16x2.f32",
        pack(Float::F16x2),
        &two,
        &[Ty::B32],
        near,
        "r0 = (uint32_t)half_bits128(a0) << 16 | half_bits128(a1)",
    );
    suite.c(
        "cvt.bf16x2.f32",
        pack(Float::Bf16x2),
        &two,
        &[Ty::B32],
        near,
        "r0 = (uint32_t)brain_bits(a0) << 16 | brain_bits(a1)",
    );
    suite.check("conversions");
}

/// A half of either kind as f64; the reference for everything that is exact.
fn value(float: Float, bits: u128) -> f64 {
    if float == Float::Bf16 {
        return f64::from(f32::from_bits((bits as u32) << 16));
    }
    let (exponent, fraction) = ((bits >> 10 & 0x1f) as i32, (bits & 0x3ff) as f64);
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[test]
fn halves_compare_choose_and_clamp() {
    let mut suite = Suite::default();
    let h = Ty::B16;
    let is_nan = |float, bits| value(float, bits).is_nan();
    for float in [Float::F16, Float::Bf16] {
        let m = FloatMode::default();
        // Less, with -0 < +0.
        let less = move |a: u128, b: u128| {
            let (x, y) = (value(float, a), value(float, b));
            x < y || x == y && a & 0x8000 > b & 0x8000
        };
        for nan in [false, true] {
            for is_max in [false, true] {
                let xorsign_abs = false;
                let op = match is_max {
                    false => FloatBin::Min { nan, xorsign_abs },
                    true => FloatBin::Max { nan, xorsign_abs },
                };
                let label = format!("{op:?} {float:?}");
                suite.rust(label, Op::Float(op, float, m), &[h, h], &[h], move |a| {
                    let nans = (is_nan(float, a[0]), is_nan(float, a[1]));
                    vec![match nans {
                        (true, true) => 0x7fff,
                        (true, false) | (false, true) if nan => 0x7fff,
                        (true, false) => a[1],
                        (false, true) => a[0],
                        _ => {
                            if less(a[0], a[1]) != is_max {
                                a[0]
                            } else {
                                a[1]
                            }
                        }
                    }]
                });
            }
        }
        suite.rust(format!("neg {float:?}"), Op::FloatUn(FloatUn::Neg, float, m), &[h], &[h], |a| {
            vec![a[0] ^ 0x8000]
        });
        suite.rust(format!("abs {float:?}"), Op::FloatUn(FloatUn::Abs, float, m), &[h], &[h], |a| {
            vec![a[0] & 0x7fff]
        });
        for (cmp, holds) in [
            (Cmp::Lt, (|x, y| x < y) as fn(f64, f64) -> bool),
            (Cmp::Eq, |x, y| x == y),
            (Cmp::Ge, |x, y| x >= y),
        ] {
            let op = |cmp| Op::Fcmp { cmp, ty: float, ftz: false };
            suite.rust(
                format!("{cmp:?} {float:?}"),
                op(FloatCmp::Ordered(cmp)),
                &[h, h],
                &[Ty::Pred],
                move |a| vec![u128::from(holds(value(float, a[0]), value(float, a[1])))],
            );
        }
        // Clamps: the sum is exact in f64, the clamp's ends are exact in the format.
        let relu = FloatMode { relu: true, ..m };
        let c = if float == Float::F16 { ("half_bits128", "half") } else { ("brain_bits", "brain") };
        let sum = format!(
            "__float128 s = (__float128){1}(a0) + (__float128){1}(a1); r0 = s != s ? 0x7fff : {0}(s > 0 ? s : 0)",
            c.0, c.1
        );
        suite.c(
            format!("add.relu {float:?}"),
            Op::Float(FloatBin::Add, float, relu),
            &[h, h],
            &[h],
            "FE_TONEAREST",
            &sum,
        );
        let sat = FloatMode { sat: true, ..m };
        let sum = format!(
            "__float128 s = (__float128){1}(a0) + (__float128){1}(a1); r0 = {0}(s > 0 ? (s < 1 ? s : 1) : 0)",
            c.0, c.1
        );
        suite.c(
            format!("add.sat {float:?}"),
            Op::Float(FloatBin::Add, float, sat),
            &[h, h],
            &[h],
            "FE_TONEAREST",
            &sum,
        );
    }
    let ftz = FloatMode { ftz: true, ..FloatMode::default() };
    let flush = |bits: u128| if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits };
    suite.rust("add.ftz.f16", Op::Float(FloatBin::Add, Float::F16, ftz), &[h, h], &[h], move |a| {
        let (x, y) = (flush(a[0]), flush(a[1]));
        // One side zero: the sum is the other; enough to see the flushing of both inputs and results.
        if x & 0x7fff == 0 && y & 0x7fff == 0 {
            return vec![x & y];
        }
        vec![if x & 0x7fff == 0 { y } else { x }]
    });
    let tiny: Vec<u128> = vec![0, 1, 0x3ff, 0x8001, 0x83ff, 0x8000];
    let any: Vec<u128> = vec![0x400, 0x3c00, 0x8400, 0xbc00, 0x7bff, 1, 0x8000, 0];
    suite.cases.last_mut().unwrap().rows =
        tiny.iter().flat_map(|x| any.iter().map(|y| vec![*x, *y])).collect();
    for case in &mut suite.cases {
        if case.name != "add.ftz.f16" {
            let columns: Vec<_> = case.args.iter().map(|_| lane_support::floats(5, 10)).collect();
            case.rows.extend(lane_support::rows_of(&columns, &case.args, 3000, 8));
        }
    }
    suite.check("choose");
}

#[test]
fn conversions_flush_and_saturate() {
    let mut suite = Suite::default();
    let near = "FE_TONEAREST";
    let f = Num::Float;
    let modes = [
        (FloatMode { sat: true, ..FloatMode::default() }, "sat"),
        (FloatMode { ftz: true, ..FloatMode::default() }, "ftz"),
    ];
    for (mode, name) in modes {
        let input = if mode.ftz { "flush(a0)" } else { "a0" };
        let clamp = |code: &str| match mode.sat {
            true => format!("r0 = ({code}) > 0 ? (({code}) < 1 ? ({code}) : 1) : 0"),
            false => format!("r0 = {code}"),
        };
        let cvt = |from, to| Op::Cvt { from: f(from), to: f(to), mode };
        suite.c(
            format!("cvt.{name}.f32.f32"),
            cvt(Float::F32, Float::F32),
            &[Ty::F32],
            &[Ty::F32],
            near,
            &clamp(input),
        );
        suite.c(
            format!("cvt.{name}.f64.f32"),
            cvt(Float::F32, Float::F64),
            &[Ty::F32],
            &[Ty::F64],
            near,
            &clamp(input),
        );
        let narrowed = if mode.ftz { "flush((float)a0)" } else { "(float)a0" };
        suite.c(
            format!("cvt.{name}.f32.f64"),
            cvt(Float::F64, Float::F32),
            &[Ty::F64],
            &[Ty::F32],
            near,
            &clamp(narrowed),
        );
        let round = Op::RoundInt { ty: Float::F32, mode };
        suite.c(
            format!("cvt.rni.{name}.f32"),
            round,
            &[Ty::F32],
            &[Ty::F32],
            near,
            &clamp(&format!("rintf({input})")),
        );
        let half = format!(
            "float w = {input}; r0 = half_bits128({})",
            if mode.sat { "w > 0 ? (w < 1 ? w : 1) : 0" } else { "w" }
        );
        suite.c(
            format!("cvt.{name}.f16.f32"),
            cvt(Float::F32, Float::F16),
            &[Ty::F32],
            &[Ty::B16],
            near,
            &half,
        );
        let int =
            Op::Cvt { from: f(Float::F32), to: Num::Int(S32), mode: FloatMode { round: Round::Up, ..mode } };
        let code = format!(
            "double w = ceil((double){input}); r0 = (int32_t)(isnan(w) ? 0 : w >= 2147483647.0 ? 2147483647 : w <= -2147483648.0 ? -2147483647 - 1 : (int32_t)w)"
        );
        suite.c(format!("cvt.rpi.{name}.s32.f32"), int, &[Ty::F32], &[Ty::B32], near, &code);
    }
    suite.check("clamps");
}
