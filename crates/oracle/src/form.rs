//! An instruction's name and modifiers, taken apart, and the function that they stand for.

use crate::format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, Format, TF32};
use crate::{compare, convert, float, integer, logic, video, video_simd};

/// An operand's or result's type: the manual's fundamental types (§5.2) and the packed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A predicate.
    Pred,
    /// CC.CF, of the extended-precision instructions.
    Carry,
    /// An integer literal that the syntax asks for, `lop3`'s table for one.
    Immediate,
    Bits(u32),
    Unsigned(u32),
    Signed(u32),
    Float(Format),
    /// Several of one kind in a register, the first operand's in the low bits.
    PackedFloat(Format, u32),
    PackedUnsigned(u32, u32),
    PackedSigned(u32, u32),
}

/// `.ue8m0x2`: exponents of two.
pub(crate) const SCALES: Type = Type::PackedUnsigned(8, 2);

impl Type {
    /// The type that a modifier names.
    pub fn named(name: &str) -> Option<Type> {
        Some(match name {
            "pred" => Type::Pred,
            "f16" => Type::Float(F16),
            "bf16" => Type::Float(BF16),
            "tf32" => Type::Float(TF32),
            "f32" => Type::Float(F32),
            "f64" => Type::Float(F64),
            "f16x2" => Type::PackedFloat(F16, 2),
            "bf16x2" => Type::PackedFloat(BF16, 2),
            "f32x2" => Type::PackedFloat(F32, 2),
            "e4m3x2" => Type::PackedFloat(E4M3, 2),
            "e5m2x2" => Type::PackedFloat(E5M2, 2),
            "e2m1x2" => Type::PackedFloat(E2M1, 2),
            "e2m3x2" => Type::PackedFloat(E2M3, 2),
            "e3m2x2" => Type::PackedFloat(E3M2, 2),
            "e4m3x4" => Type::PackedFloat(E4M3, 4),
            "e5m2x4" => Type::PackedFloat(E5M2, 4),
            "e2m3x4" => Type::PackedFloat(E2M3, 4),
            "e3m2x4" => Type::PackedFloat(E3M2, 4),
            "ue8m0x2" => SCALES,
            "u16x2" => Type::PackedUnsigned(16, 2),
            "s16x2" => Type::PackedSigned(16, 2),
            _ => {
                let (kind, bits) = name.split_at_checked(1)?;
                let bits = match bits {
                    "2" => 2,
                    "4" => 4,
                    "8" => 8,
                    "16" => 16,
                    "32" => 32,
                    "64" => 64,
                    "128" => 128,
                    _ => return None,
                };
                match kind {
                    "b" => Type::Bits(bits),
                    "u" => Type::Unsigned(bits),
                    "s" => Type::Signed(bits),
                    _ => return None,
                }
            }
        })
    }

    pub fn bits(self) -> u32 {
        match self {
            Type::Pred | Type::Carry => 1,
            Type::Immediate => 32,
            Type::Bits(bits) | Type::Unsigned(bits) | Type::Signed(bits) => bits,
            Type::Float(format) => format.bits,
            // e2m1 takes four bits of a byte; the six-bit formats take eight.
            Type::PackedFloat(format, n) => format.bits * n,
            Type::PackedUnsigned(bits, n) | Type::PackedSigned(bits, n) => bits * n,
        }
    }

    pub fn is_integer(self) -> bool {
        matches!(self, Type::Bits(_) | Type::Unsigned(_) | Type::Signed(_))
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Type::Signed(_))
    }

    /// The value of an integer of this type.
    pub fn integer(self, bits: u128) -> i128 {
        let spare = 128 - self.bits();
        if self.is_signed() { ((bits << spare) as i128) >> spare } else { ((bits << spare) >> spare) as i128 }
    }

    /// The low bits that this type has.
    pub fn cut(self, value: i128) -> u128 {
        (value as u128) & (u128::MAX >> (128 - self.bits()))
    }

    /// The least and the largest integer of this type.
    pub fn range(self) -> (i128, i128) {
        let bits = self.bits();
        if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }
}

/// Results in the order of [`Form::results`]; what is left over is 0.
pub type Results = [u128; 2];

type Function = Box<dyn Fn(&[u128]) -> Option<Results> + Send + Sync>;

/// One instruction form, ready to be asked.
pub struct Form {
    operands: Vec<Type>,
    results: Vec<Type>,
    /// The manual says that the result is NaN and not which.
    any_nan: bool,
    function: Function,
}

impl Form {
    pub(crate) fn new(
        results: &[Type],
        operands: &[Type],
        function: impl Fn(&[u128]) -> Option<Results> + Send + Sync + 'static,
    ) -> Option<Form> {
        Some(Form {
            operands: operands.to_vec(),
            results: results.to_vec(),
            any_nan: results.contains(&Type::Float(F64)),
            function: Box::new(function),
        })
    }

    /// A form with one result that every set of operands has.
    pub(crate) fn total(
        result: Type,
        operands: &[Type],
        function: impl Fn(&[u128]) -> u128 + Send + Sync + 'static,
    ) -> Option<Form> {
        Form::new(&[result], operands, move |operands| Some([function(operands), 0]))
    }

    /// For results of which the manual says that they are NaN and not which.
    pub(crate) fn with_any_nan(self) -> Form {
        Form { any_nan: true, ..self }
    }

    /// For results whose bits are moved and not computed.
    pub(crate) fn with_payloads(self) -> Form {
        Form { any_nan: false, ..self }
    }

    /// Takes an instruction apart; `None` when a modifier is not the instruction's, or the instruction is not pure, or
    /// approximate.
    pub fn parse(opcode: &str, modifiers: &[&str]) -> Option<Form> {
        let mut modifiers = Modifiers::new(modifiers);
        let m = &mut modifiers;
        let form = match opcode {
            // By the type of the operands: one name, several chapters.
            "add" | "sub" | "mul" | "mad" | "fma" | "div" | "min" | "max" | "abs" | "neg"
                if m.names_a_float() =>
            {
                float::parse(opcode, m)
            }
            "rcp" | "sqrt" | "testp" | "copysign" | "fma" => float::parse(opcode, m),
            "set" | "setp" | "selp" | "slct" => compare::parse(opcode, m),
            "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shf" | "shl" | "shr" | "prmt" => {
                logic::parse(opcode, m)
            }
            "cvt" => convert::parse(m),
            "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset" => {
                video::parse(opcode, m)
            }
            _ if opcode.starts_with('v') => video_simd::parse(opcode, m),
            _ => integer::parse(opcode, m),
        };
        form.filter(|_| modifiers.is_empty())
    }

    pub fn operands(&self) -> &[Type] {
        &self.operands
    }

    pub fn results(&self) -> &[Type] {
        &self.results
    }

    /// The results' bits; `None` where the manual leaves them open.
    pub fn eval(&self, operands: &[u128]) -> Option<Results> {
        assert_eq!(operands.len(), self.operands.len(), "operands of {:?}", self.operands);
        (self.function)(operands)
    }

    /// The answers for many sets of operands at once, as registers of `widths` bits hold them: an integer narrower than its
    /// register is extended by its own sign (§9.4.1).
    pub fn eval_rows(&self, operands: &[Operand<'_>], n_rows: usize, widths: &[u32]) -> Rows {
        assert_eq!(operands.len(), self.operands.len(), "operands of {:?}", self.operands);
        let mut rows = Rows { planes: vec![vec![0; n_rows]; self.results.len()], open: vec![false; n_rows] };
        let mut values = vec![0; operands.len()];
        for row in 0..n_rows {
            for ((value, operand), ty) in values.iter_mut().zip(operands).zip(&self.operands) {
                let bits = match operand {
                    Operand::Column(column) => column[row].into(),
                    Operand::Constant(bits) => *bits,
                };
                // A type narrower than its register is in the register's low bits.
                *value = bits & (u128::MAX >> (128 - ty.bits()));
            }
            let Some(results) = (self.function)(&values) else {
                rows.open[row] = true;
                continue;
            };
            for (index, (plane, ty)) in rows.planes.iter_mut().zip(&self.results).enumerate() {
                let width = widths.get(index).copied().unwrap_or(ty.bits());
                let extends = ty.is_integer() && ty.bits() < width;
                let bits = if extends { ty.integer(results[index]) as u128 } else { results[index] };
                plane[row] = bits as u64 & (u64::MAX >> (64 - width));
            }
        }
        rows
    }

    /// Whether two answers for result number `index` are the same to the manual, which leaves the payload of an f64 NaN
    /// open, and that of `abs` and `neg` in other formats.
    pub fn same(&self, index: usize, a: u128, b: u128) -> bool {
        let both_nan = |format: Format, a, b| format.decode(a).is_nan() && format.decode(b).is_nan();
        a == b
            || self.any_nan
                && match self.results[index] {
                    Type::Float(format) => both_nan(format, a, b),
                    Type::PackedFloat(format, n) => (0..n).all(|lane| {
                        let [a, b] = [a, b].map(|x| x >> (lane * format.bits) & ((1 << format.bits) - 1));
                        a == b || both_nan(format, a, b)
                    }),
                    _ => false,
                }
    }
}

/// One operand of [`Form::eval_rows`].
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    Column(&'a [u64]),
    Constant(u128),
}

/// Answers of [`Form::eval_rows`]: a plane per result, and the rows that the manual leaves open.
#[derive(Debug)]
pub struct Rows {
    pub planes: Vec<Vec<u64>>,
    pub open: Vec<bool>,
}

/// The modifiers that nothing has asked for yet.
pub(crate) struct Modifiers<'a> {
    left: Vec<&'a str>,
}

impl<'a> Modifiers<'a> {
    pub fn new(modifiers: &[&'a str]) -> Modifiers<'a> {
        Modifiers { left: modifiers.to_vec() }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether `name` is there; it is taken away.
    pub fn take(&mut self, name: &str) -> bool {
        let at = self.left.iter().position(|it| *it == name);
        at.map(|at| self.left.remove(at)).is_some()
    }

    pub fn has(&self, name: &str) -> bool {
        self.left.contains(&name)
    }

    /// The first modifier that is one of `names`.
    pub fn take_one<T: Copy>(&mut self, names: &[(&str, T)]) -> Option<T> {
        names.iter().find_map(|&(name, meaning)| self.take(name).then_some(meaning))
    }

    /// What follows `prefix` in the first modifier that has it: `b0` of `a.b0`.
    pub fn take_at(&mut self, prefix: &str) -> Option<&'a str> {
        let at = self.left.iter().position(|it| it.starts_with(prefix))?;
        self.left.remove(at).strip_prefix(prefix)
    }

    /// The next type.
    pub fn ty(&mut self) -> Option<Type> {
        let at = self.left.iter().position(|name| Type::named(name).is_some())?;
        Type::named(self.left.remove(at))
    }

    fn names_a_float(&self) -> bool {
        let mut types = self.left.iter().filter_map(|name| Type::named(name));
        types.any(|ty| matches!(ty, Type::Float(_) | Type::PackedFloat(..)))
    }
}
