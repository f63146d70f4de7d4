//! Approximate functions: the largest error over a dense sweep against f64 arithmetic, held to the PTX manual's bound;
//! tf32 and the 8-bit floats against all their values.

mod lane_support;

use compiler::ir::*;
use lane_support::{Case, Equal, Random, Reference, Suite};

/// Every float in `low ..= high` at an odd stride of bit patterns, and both ends.
fn sweep(low: f32, high: f32, count: u32) -> Vec<Vec<u128>> {
    // Ordered so that stepping from the most negative to the most positive works.
    let order = |x: f32| {
        let bits = x.to_bits() as i32;
        i64::from(if bits < 0 { i32::MIN.wrapping_sub(bits) } else { bits })
    };
    let value = |n: i64| {
        let bits = if n < 0 { (i64::from(i32::MIN) - n) as i32 } else { n as i32 };
        u128::from(bits as u32)
    };
    let (first, last) = (order(low), order(high));
    let step = ((last - first) / i64::from(count)).max(1) | 1;
    let mut rows: Vec<Vec<u128>> = (first..=last).step_by(step as usize).map(|n| vec![value(n)]).collect();
    rows.push(vec![value(last)]);
    rows
}

fn float(bits: u128) -> f32 {
    f32::from_bits(bits as u32)
}

/// One function over one range.
struct Sweep {
    name: &'static str,
    op: FloatUn,
    ftz: bool,
    range: (f32, f32),
    exact: fn(f64) -> f64,
    /// Relative to the result, or absolute.
    relative: f64,
    absolute: f64,
}

fn add(suite: &mut Suite, s: Sweep) {
    let mode = FloatMode { ftz: s.ftz, ..FloatMode::default() };
    let tiny = f64::from(f32::MIN_POSITIVE);
    let judge = move |row: &[u128], got: &[u128]| {
        let x = f64::from(float(row[0]));
        let x = if s.ftz && x.abs() < tiny { 0.0f64.copysign(x) } else { x };
        let exact = (s.exact)(x);
        let got = f64::from(float(got[0]));
        if exact.is_nan() {
            return (!got.is_nan()).then(|| "expected NaN".to_owned());
        }
        if exact.abs() > f64::from(f32::MAX) {
            return (got != f64::INFINITY.copysign(exact)).then(|| "expected infinity".to_owned());
        }
        if s.ftz && exact.abs() < tiny {
            return (got != 0.0 && got.abs() > tiny).then(|| format!("expected zero for {exact:e}"));
        }
        // A subnormal result cannot be nearer than half its own last place.
        let allowed = (exact.abs() * s.relative + s.absolute).max(2f64.powi(-149));
        let error = (got - exact).abs();
        (got.is_nan() || error > allowed)
            .then(|| format!("expected {exact:e}, error {error:e} > {allowed:e}"))
    };
    suite.cases.push(Case {
        name: s.name.to_owned(),
        op: Op::FloatUn(s.op, Float::F32, mode),
        args: vec![Ty::F32],
        results: vec![Ty::F32],
        rows: sweep(s.range.0, s.range.1, 60_000),
        reference: Reference::Judge(Box::new(judge)),
        equal: Equal::Floats,
    });
}

#[test]
fn approximations_stay_within_the_manuals_error() {
    const ULP: f64 = 1.0 / 8_388_608.0;
    let mut suite = Suite::default();
    let all = (f32::NEG_INFINITY, f32::INFINITY);
    let pi = std::f32::consts::PI;
    let mut function = |name, op, ftz, range, exact, relative, absolute| {
        add(&mut suite, Sweep { name, op, ftz, range, exact, relative, absolute });
    };
    let root22 = 2f64.powi(-22);
    // Two ulp over the full range.
    function("ex2.approx", FloatUn::Ex2Approx, false, all, f64::exp2, 2.0 * ULP, 0.0);
    function("ex2.approx.ftz", FloatUn::Ex2Approx, true, all, f64::exp2, 2.0 * ULP, 0.0);
    function("ex2.approx near 0", FloatUn::Ex2Approx, false, (-2.0, 2.0), f64::exp2, 2.0 * ULP, 0.0);
    function(
        "ex2.approx integers' surroundings",
        FloatUn::Ex2Approx,
        false,
        (63.4, 64.6),
        f64::exp2,
        2.0 * ULP,
        0.0,
    );
    // Absolute 2^-22 between ½ and 2, relative 2^-22 beyond.
    function("lg2.approx", FloatUn::Lg2Approx, false, all, f64::log2, root22, 0.0);
    function("lg2.approx.ftz", FloatUn::Lg2Approx, true, all, f64::log2, root22, 0.0);
    function("lg2.approx near 1", FloatUn::Lg2Approx, false, (0.5, 2.0), f64::log2, 0.0, root22);
    // Absolute 2^-20.5 in [-2 π, 2 π], 2^-14.7 in [-100 π, 100 π].
    let near = 2f64.powf(-20.5);
    let far = 2f64.powf(-14.7);
    function("sin.approx", FloatUn::SinApprox, false, (-2.0 * pi, 2.0 * pi), f64::sin, 0.0, near);
    function("sin.approx far", FloatUn::SinApprox, false, (-100.0 * pi, 100.0 * pi), f64::sin, 0.0, far);
    function("sin.approx middle", FloatUn::SinApprox, true, (1.0, 100.0 * pi), f64::sin, 0.0, far);
    function("cos.approx", FloatUn::CosApprox, false, (-2.0 * pi, 2.0 * pi), f64::cos, 0.0, near);
    function("cos.approx middle", FloatUn::CosApprox, true, (1.0, 100.0 * pi), f64::cos, 0.0, far);
    // Relative 2^-11.
    let coarse = 2f64.powi(-11);
    function("tanh.approx", FloatUn::TanhApprox, false, all, f64::tanh, coarse, 0.0);
    function("tanh.approx near 0", FloatUn::TanhApprox, false, (-1.0, 1.0), f64::tanh, coarse, 0.0);
    // One ulp.
    function("rcp.approx", FloatUn::RcpApprox, false, all, f64::recip, ULP, 0.0);
    function("rcp.approx.ftz", FloatUn::RcpApprox, true, all, f64::recip, ULP, 0.0);
    function("sqrt.approx", FloatUn::SqrtApprox, false, all, f64::sqrt, ULP, 0.0);
    let rsqrt = 2f64.powf(-22.9);
    function("rsqrt.approx", FloatUn::RsqrtApprox, false, all, |x| 1.0 / x.sqrt(), rsqrt, 0.0);
    function("rsqrt.approx.ftz", FloatUn::RsqrtApprox, true, all, |x| 1.0 / x.sqrt(), rsqrt, 0.0);
    suite.check("approx");
}

/// The special cases the manual tabulates, by bits.
#[test]
fn approximations_of_special_numbers() {
    const INF: u32 = 0x7f80_0000;
    const NAN: u32 = 0x7fff_ffff;
    const NEG: u32 = 0x8000_0000;
    let one = 1f32.to_bits();
    let tables: [(FloatUn, &[(u32, u32)]); 8] = [
        (
            FloatUn::Ex2Approx,
            &[(INF | NEG, 0), (INF, INF), (0, one), (NEG, one), (NAN, NAN), (3f32.to_bits(), 8f32.to_bits())],
        ),
        (
            FloatUn::Lg2Approx,
            &[
                (INF, INF),
                (INF | NEG, NAN),
                (0, INF | NEG),
                (NEG, INF | NEG),
                (one, 0),
                (NAN, NAN),
                (8f32.to_bits(), 3f32.to_bits()),
            ],
        ),
        (FloatUn::SinApprox, &[(INF, NAN), (INF | NEG, NAN), (0, 0), (NEG, NEG), (NAN, NAN)]),
        (FloatUn::CosApprox, &[(INF, NAN), (INF | NEG, NAN), (0, one), (NEG, one), (NAN, NAN)]),
        (FloatUn::TanhApprox, &[(INF, one), (INF | NEG, one | NEG), (0, 0), (NEG, NEG), (NAN, NAN)]),
        (FloatUn::RcpApprox, &[(INF, 0), (INF | NEG, NEG), (0, INF), (NEG, INF | NEG), (NAN, NAN)]),
        (
            FloatUn::RsqrtApprox,
            &[(INF, 0), (INF | NEG, NAN), (0, INF), (NEG, INF | NEG), (NAN, NAN), (one | NEG, NAN)],
        ),
        (
            FloatUn::SqrtApprox,
            &[(INF, INF), (INF | NEG, NAN), (0, 0), (NEG, NEG), (NAN, NAN), (one | NEG, NAN)],
        ),
    ];
    let mut suite = Suite::default();
    for (op, table) in tables {
        for ftz in [false, true] {
            let expected: Vec<(u32, u32)> = table.to_vec();
            suite.cases.push(Case {
                name: format!("{op:?} ftz={ftz}"),
                op: Op::FloatUn(op, Float::F32, FloatMode { ftz, ..FloatMode::default() }),
                args: vec![Ty::F32],
                results: vec![Ty::F32],
                rows: table.iter().map(|(x, _)| vec![u128::from(*x)]).collect(),
                reference: Reference::Rust(Box::new(move |row| {
                    let found = expected.iter().find(|(x, _)| u128::from(*x) == row[0]);
                    vec![u128::from(found.unwrap().1)]
                })),
                equal: Equal::Floats,
            });
        }
    }
    // Between 2^126 and 2^128 the divisor counts as infinite.
    let two = |op, name: &str, judge: fn(f32, f32, f32) -> bool| {
        let mut random = Random::new(9);
        let mut rows: Vec<Vec<u128>> =
            (0..4000).map(|_| vec![random.next() as u32 as u128, random.next() as u32 as u128]).collect();
        let specials = lane_support::floats(8, 23);
        rows.extend(specials.iter().flat_map(|x| specials.iter().map(|y| vec![*x, *y])));
        Case {
            name: name.to_owned(),
            op: Op::Float(op, Float::F32, FloatMode::default()),
            args: vec![Ty::F32; 2],
            results: vec![Ty::F32],
            rows,
            reference: Reference::Judge(Box::new(move |row, got| {
                let (x, y, got) = (float(row[0]), float(row[1]), float(got[0]));
                (!judge(x, y, got)).then(|| format!("{x:e} / {y:e} gave {got:e}"))
            })),
            equal: Equal::Floats,
        }
    };
    fn near(exact: f64, got: f32) -> bool {
        if exact.is_nan() {
            return got.is_nan();
        }
        let nearest = exact as f32;
        got == nearest || (f64::from(got) - exact).abs() <= exact.abs() * 2f64.powi(-22) + 2f64.powi(-148)
    }
    suite.cases.push(two(FloatBin::DivApprox, "div.approx", |x, y, got| {
        if y.abs() > 2f32.powi(126) && y.is_finite() {
            return if x.is_finite() {
                got == 0.0 && got.is_sign_negative() == (x.is_sign_negative() != y.is_sign_negative())
            } else {
                got.is_nan()
            };
        }
        near(f64::from(x) / f64::from(y), got)
    }));
    suite.cases.push(two(FloatBin::DivFull, "div.full", |x, y, got| near(f64::from(x) / f64::from(y), got)));
    suite.check("special");
}

#[test]
fn seeds_of_f64_have_twenty_good_bits() {
    let mut suite = Suite::default();
    for (op, name, function) in [
        (FloatUn::RcpApproxFtz64, "rcp.approx.ftz.f64", (|x| 1.0 / x) as fn(f64) -> f64),
        (FloatUn::RsqrtApproxFtz64, "rsqrt.approx.ftz.f64", |x| 1.0 / x.sqrt()),
    ] {
        let mut random = Random::new(3);
        let mut rows: Vec<Vec<u128>> = (0..20_000).map(|_| vec![u128::from(random.next())]).collect();
        rows.extend(lane_support::floats(11, 52).into_iter().map(|x| vec![x]));
        suite.cases.push(Case {
            name: name.to_owned(),
            op: Op::FloatUn(op, Float::F64, FloatMode { ftz: true, ..FloatMode::default() }),
            args: vec![Ty::F64],
            results: vec![Ty::F64],
            rows,
            reference: Reference::Judge(Box::new(move |row, got| {
                // The instruction sees the upper half alone: a NaN that lies in the lower one is an infinity.
                let x = f64::from_bits(row[0] as u64 & 0xffff_ffff_0000_0000);
                let got_bits = got[0] as u64;
                let got = f64::from_bits(got_bits);
                let exact = function(if x.abs() < f64::MIN_POSITIVE { 0.0f64.copysign(x) } else { x });
                let right = if exact.is_nan() {
                    got.is_nan()
                } else if exact.is_infinite() {
                    got == exact
                } else if exact.abs() < f64::MIN_POSITIVE {
                    got == 0.0
                } else {
                    // The result's lower half is zero: up to 2^-20 is cut off.
                    (got - exact).abs() <= exact.abs() * 2f64.powi(-20)
                };
                (!right || got_bits as u32 != 0).then(|| format!("expected {exact:e}"))
            })),
            equal: Equal::Floats,
        });
    }
    suite.check("seeds");
}

/// Value of an 8-bit float; `None` for NaN.
fn mini(code: u32, fraction: u32, bias: i32) -> Option<f64> {
    let (exponent, low) = ((code & 0x7f) >> fraction, f64::from(code & ((1 << fraction) - 1)));
    let unit = 2f64.powi(-(fraction as i32));
    if fraction == 3 && code & 0x7f == 0x7f || fraction == 2 && code & 0x7f > 0x7c {
        return None;
    }
    let size = match exponent {
        0 => low * unit * 2f64.powi(1 - bias),
        31 => f64::INFINITY,
        _ => (1.0 + low * unit) * 2f64.powi(exponent as i32 - bias),
    };
    Some(if code & 0x80 == 0 { size } else { -size })
}

/// The code nearest to `x`, found by looking at all of them.
fn to_mini(x: f32, fraction: u32, bias: i32) -> u128 {
    if x.is_nan() {
        return 0x7f;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let size = f64::from(x.abs()).min(1e9);
    let finite =
        (0..0x7f).filter_map(|code| mini(code, fraction, bias).filter(|v| v.is_finite()).map(|v| (code, v)));
    let (code, _) = finite
        .min_by(|(c, v), (d, w)| (v - size).abs().total_cmp(&(w - size).abs()).then((c & 1).cmp(&(d & 1))))
        .unwrap();
    u128::from(sign | code)
}

#[test]
fn small_formats() {
    let mut suite = Suite::default();
    let mode = FloatMode::default();
    for (num, fraction, bias) in [(Num::E4m3x2, 3, 7), (Num::E5m2x2, 2, 15)] {
        let op = Op::CvtPack { from: Float::F32, to: num, mode };
        suite.rust(format!("cvt.rn.satfinite.{num:?}.f32"), op, &[Ty::F32; 2], &[Ty::B16], move |a| {
            vec![to_mini(float(a[0]), fraction, bias) << 8 | to_mini(float(a[1]), fraction, bias)]
        });
        let last = suite.cases.last_mut().unwrap();
        // Every code, the middle between neighbours, and one ulp beside that.
        let values: Vec<f64> =
            (0..0x7f).filter_map(|code| mini(code, fraction, bias)).filter(|v| v.is_finite()).collect();
        for pair in values.windows(2) {
            let middle = ((pair[0] + pair[1]) / 2.0) as f32;
            for x in [pair[0] as f32, middle, middle.next_up(), middle.next_down(), -middle] {
                last.rows.push(vec![u128::from(x.to_bits()), u128::from((-x).to_bits())]);
            }
        }
        let op = Op::Cvt { from: num, to: Num::Float(Float::F16x2), mode };
        suite.rust(format!("cvt.rn.f16x2.{num:?}"), op, &[Ty::B16], &[Ty::B32], move |a| {
            let half = |code: u128| {
                let code = code as u32 & 0xff;
                match mini(code, fraction, bias) {
                    None => 0x7fff,
                    Some(value) => half_bits(value),
                }
            };
            vec![half(a[0] >> 8) << 16 | half(a[0])]
        });
        let last = suite.cases.last_mut().unwrap();
        last.rows.extend((0..256u128).map(|code| vec![code << 8 | (255 - code)]));
    }
    for (round, name) in [(Round::NearestAway, "rna"), (Round::Nearest, "rn"), (Round::Zero, "rz")] {
        let op = Op::Cvt { from: Num::Float(Float::F32), to: Num::Tf32, mode: FloatMode { round, ..mode } };
        suite.rust(format!("cvt.{name}.tf32.f32"), op, &[Ty::F32], &[Ty::B32], move |a| {
            let bits = a[0] as u32;
            if float(a[0]).is_nan() {
                return vec![0x7fff_ffff];
            }
            let (kept, rest) = (bits & !0x1fff, bits & 0x1fff);
            let up = match round {
                Round::Zero => false,
                Round::NearestAway => rest >= 0x1000,
                _ => rest > 0x1000 || rest == 0x1000 && kept & 0x2000 != 0,
            };
            vec![u128::from(if up { kept + 0x2000 } else { kept })]
        });
    }
    suite.check("small");
}

/// A value that an f16 holds exactly.
fn half_bits(value: f64) -> u128 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if size == 0.0 {
        return sign;
    }
    if size.is_infinite() {
        return sign | 0x7c00;
    }
    let exponent = (size.log2().floor() as i32).max(-14);
    let units = (size / 2f64.powi(exponent - 10)) as u128;
    sign | ((exponent + 14) as u128 * 1024 + units)
}
