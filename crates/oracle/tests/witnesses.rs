//! The oracle against other witnesses: this machine's IEEE arithmetic, Rust's conversions, the manual's own examples.

use oracle::{Form, eval};

/// Numbers that look random, special ones among them.
struct Inputs(u64);

impl Inputs {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn f64(&mut self) -> f64 {
        let bits = self.next();
        match self.next() % 8 {
            0 => f64::from_bits(bits & !(0x7ff << 52)),
            1 => [0.0, -0.0, f64::INFINITY, f64::MAX, 1.0, -1.5, f64::MIN_POSITIVE, f64::NAN]
                [bits as usize % 8],
            2 => f64::from_bits(bits & !0xffff_ffff_ffff),
            3..6 => f64::from_bits(bits & !(0x7ff << 52) | (1013 + bits % 20) << 52),
            _ => f64::from_bits(bits),
        }
    }

    fn f32(&mut self) -> f32 {
        let bits = self.next() as u32;
        match self.next() % 8 {
            0 => f32::from_bits(bits & !(0xff << 23)),
            1 => [0.0, -0.0, f32::INFINITY, f32::MAX, 1.0, -1.5, f32::MIN_POSITIVE, f32::NAN]
                [bits as usize % 8],
            2 => f32::from_bits(bits & !0xf_ffff),
            3..6 => f32::from_bits(bits & !(0xff << 23) | (117 + bits % 20) << 23),
            _ => f32::from_bits(bits),
        }
    }
}

fn form(text: &str) -> Form {
    let mut parts = text.split('.');
    let opcode = parts.next().unwrap();
    Form::parse(opcode, &parts.collect::<Vec<_>>()).unwrap_or_else(|| panic!("{text} is not known"))
}

#[test]
fn arithmetic_to_nearest_is_this_machines() {
    let mut inputs = Inputs(1);
    let [add, sub, mul, div, fma, sqrt] =
        ["add.f64", "sub.f64", "mul.f64", "div.rn.f64", "fma.rn.f64", "sqrt.rn.f64"].map(form);
    for _ in 0..200_000 {
        let (a, b, c) = (inputs.f64(), inputs.f64(), inputs.f64());
        let [x, y, z] = [a, b, c].map(|v| u128::from(v.to_bits()));
        let same = |form: &Form, operands: &[u128], wanted: f64| {
            let got = form.eval(operands).unwrap()[0];
            assert!(
                form.same(0, got, wanted.to_bits().into()),
                "{a:e} {b:e} {c:e}: {got:x} is not {wanted:e}"
            );
        };
        same(&add, &[x, y], a + b);
        same(&sub, &[x, y], a - b);
        same(&mul, &[x, y], a * b);
        same(&div, &[x, y], a / b);
        same(&fma, &[x, y, z], a.mul_add(b, c));
        same(&sqrt, &[x], a.sqrt());
    }
}

#[test]
fn single_precision_to_nearest_is_this_machines() {
    let mut inputs = Inputs(2);
    let [add, mul, div, fma, sqrt] =
        ["add.f32", "mul.f32", "div.rn.f32", "fma.rn.f32", "sqrt.rn.f32"].map(form);
    for _ in 0..200_000 {
        let (a, b, c) = (inputs.f32(), inputs.f32(), inputs.f32());
        let [x, y, z] = [a, b, c].map(|v| u128::from(v.to_bits()));
        let same = |form: &Form, operands: &[u128], wanted: f32| {
            let got = form.eval(operands).unwrap()[0];
            let wanted_bits = if wanted.is_nan() { 0x7fff_ffff } else { wanted.to_bits() };
            assert_eq!(got, u128::from(wanted_bits), "{a:e} {b:e} {c:e}: {got:x} is not {wanted:e}");
        };
        same(&add, &[x, y], a + b);
        same(&mul, &[x, y], a * b);
        same(&div, &[x, y], a / b);
        same(&fma, &[x, y, z], a.mul_add(b, c));
        same(&sqrt, &[x], a.sqrt());
    }
}

/// The directed results are the neighbours around the exact one: below and above, towards zero one of them, and both the
/// same exactly when the operation is exact.
#[test]
fn directed_roundings_enclose_the_nearest() {
    let mut inputs = Inputs(3);
    for op in ["add", "mul", "div", "fma"] {
        let [rn, rz, rm, rp] = ["rn", "rz", "rm", "rp"].map(|r| form(&format!("{op}.{r}.f32")));
        for _ in 0..50_000 {
            let operands: Vec<u128> =
                rn.operands().iter().map(|_| u128::from(inputs.f32().to_bits())).collect();
            let [near, zero, down, up] =
                [&rn, &rz, &rm, &rp].map(|form| f32::from_bits(form.eval(&operands).unwrap()[0] as u32));
            if near.is_nan() {
                assert!(zero.is_nan() && down.is_nan() && up.is_nan());
                continue;
            }
            assert!(down <= near && near <= up && (near == down || near == up), "{down} {near} {up}");
            assert_eq!(zero, if up.is_sign_negative() || down < 0.0 { up } else { down });
            assert!(down == up || down.next_up() == up, "{down} {up}");
            if op == "add" {
                let exact = f64::from(f32::from_bits(operands[0] as u32))
                    + f64::from(f32::from_bits(operands[1] as u32));
                assert!(f64::from(down) <= exact && exact <= f64::from(up));
            }
        }
    }
}

#[test]
fn conversions_are_rusts() {
    let mut inputs = Inputs(4);
    let [to_f32, to_f64, to_s32, to_u64, from_s64, from_u64] = [
        "cvt.rn.f32.f64",
        "cvt.f64.f32",
        "cvt.rzi.s32.f32",
        "cvt.rzi.u64.f32",
        "cvt.rn.f32.s64",
        "cvt.rn.f64.u64",
    ]
    .map(form);
    for _ in 0..100_000 {
        let (a, b, n) = (inputs.f64(), inputs.f32(), inputs.next() >> (inputs.next() % 64));
        let (x, y) = (u128::from(a.to_bits()), u128::from(b.to_bits()));
        if !a.is_nan() {
            assert_eq!(to_f32.eval(&[x]).unwrap()[0], u128::from((a as f32).to_bits()), "{a:e}");
        }
        if !b.is_nan() {
            assert_eq!(to_f64.eval(&[y]).unwrap()[0], u128::from(f64::from(b).to_bits()), "{b:e}");
            assert_eq!(to_s32.eval(&[y]).unwrap()[0], u128::from((b as i32) as u32), "{b:e}");
            assert_eq!(to_u64.eval(&[y]).unwrap()[0], u128::from(b as u64), "{b:e}");
        }
        assert_eq!(from_s64.eval(&[n.into()]).unwrap()[0], u128::from((n as i64 as f32).to_bits()));
        assert_eq!(from_u64.eval(&[n.into()]).unwrap()[0], u128::from((n as f64).to_bits()));
    }
}

fn is(text: &str, operands: &[u128], wanted: &[u128]) {
    let mut parts = text.split('.');
    let opcode = parts.next().unwrap();
    let got = eval(opcode, &parts.collect::<Vec<_>>(), operands);
    assert_eq!(got.as_deref(), Some(wanted), "{text} {operands:x?}");
}

/// Results that the manual gives beside its examples.
#[test]
fn the_manuals_examples_come_out() {
    is("fns.b32", &[0xaaaa_aaaa, 3, 1], &[3]);
    is("fns.b32", &[0xaaaa_aaaa, 3, 0xffff_ffff], &[3]);
    is("fns.b32", &[0xaaaa_aaaa, 2, 1], &[3]);
    is("fns.b32", &[0xaaaa_aaaa, 2, 0xffff_ffff], &[1]);
    is("bmsk.wrap.b32", &[1, 2], &[6]);
    is("szext.wrap.u32", &[0xffff_ffff, 0], &[0]);
    // lop3's table of a & b | c.
    is("lop3.b32", &[0xf0, 0xcc, 0xaa, 0xea], &[(0xf0 & 0xcc) | 0xaa]);
}

#[test]
fn formats_have_their_documented_extremes() {
    // 448 and 57344 are the largest numbers of e4m3 and e5m2; NaN is 0x7f in both (§5.2.3).
    is("cvt.rn.satfinite.e4m3x2.f32", &[0x7f80_0000, 0xc3e0_0000], &[0x7efe]);
    is("cvt.rn.satfinite.e5m2x2.f32", &[0x4760_0000, 0x7fc0_0000], &[0x7b7f]);
    is("cvt.rn.f16x2.e4m3x2", &[0x7e38], &[0x5f00_3c00]);
    // 6.0 is e2m1's largest, 0.5 its least.
    is("cvt.rn.satfinite.e2m1x2.f32", &[0x447a_0000, 0x3f00_0000], &[0x71]);
    is("cvt.rna.tf32.f32", &[0x3f80_1000], &[0x3f80_2000]);
    is("cvt.rn.tf32.f32", &[0x3f80_1000], &[0x3f80_0000]);
    is("cvt.rn.f16.f32", &[0x477f_f000], &[0x7c00]);
    is("cvt.rn.satfinite.f16.f32", &[0x477f_f000], &[0x7bff]);
    is("cvt.rn.bf16x2.f32", &[0x3f80_8000, 0xffc0_0000], &[0x3f80_7fff]);
}

#[test]
fn carries_go_in_and_out() {
    is("add.cc.u32", &[0xffff_ffff, 1], &[0, 1]);
    is("addc.cc.u32", &[0xffff_ffff, 0, 1], &[0, 1]);
    is("addc.u32", &[1, 1, 1], &[3]);
    // What ptxas folds `sub.cc` and an `addc` of zeros behind it to: 1 for 5 - 3, 0 for 3 - 5.
    is("sub.cc.u32", &[5, 3], &[2, 1]);
    is("sub.cc.u32", &[3, 5], &[0xffff_fffe, 0]);
    is("sub.cc.s64", &[0, 0], &[0, 1]);
    is("subc.u64", &[5, 2, 1], &[3]);
    is("subc.u64", &[5, 2, 0], &[2]);
    is("subc.cc.s32", &[5, 5, 0], &[0xffff_ffff, 0]);
    is("madc.hi.cc.u32", &[0xffff_ffff, 0xffff_ffff, 1, 1], &[0, 1]);
}

/// What ptxas makes of them: shifts that clamp for fields of 64 bits, no `.FTZ` on the way to f16, comparisons of the f64.
#[test]
fn where_the_hardware_is_not_as_the_manual_says() {
    is("bfe.u64", &[0xfedc_ba98, 256, 8], &[0]);
    is("bfe.u64", &[0xfedc_ba98, 4, 264], &[0xfed_cba9]);
    is("bfe.s64", &[1 << 63, 300, 300], &[u64::MAX.into()]);
    is("bfi.b64", &[0xff, 0x1234, 256, 8], &[0x1234]);
    is("bfe.u32", &[0xfedc_ba98, 260, 8], &[0xa9]);
    is("cvt.rp.ftz.f16.f32", &[1], &[1]);
    is("cvt.rm.ftz.f16.f32", &[0x8000_0001], &[0x8001]);
    is("cvt.rm.ftz.sat.f16.f32", &[0x8000_0001], &[0]);
    is("cvt.rp.ftz.bf16.f32", &[1], &[0]);
    is("cvt.rn.ftz.f32.f64", &[0x380f_ffff_efff_ffff], &[0]);
    is("cvt.rn.ftz.f32.f64", &[0x380f_ffff_f000_0000], &[0x80_0000]);
    is("cvt.rm.ftz.f32.f64", &[0xb80f_ffff_dfff_ffff], &[0x8000_0000]);
    is("cvt.rm.ftz.f32.f64", &[0xb80f_ffff_e000_0000], &[0x8000_0000]);
    is("cvt.rm.ftz.f32.f64", &[0xb80f_ffff_e000_0001], &[0x8080_0000]);
}

#[test]
fn what_is_no_instruction_is_not_known() {
    for text in [
        "add.sat.u32",
        "mul.wide.u64",
        "cvt.f32.f64",
        "setp.lo.s32",
        "fma.f32",
        "and.u32",
        "add.rn.u32",
        "foo.b32",
    ] {
        let mut parts = text.split('.');
        let opcode = parts.next().unwrap();
        assert!(Form::parse(opcode, &parts.collect::<Vec<_>>()).is_none(), "{text}");
    }
}
