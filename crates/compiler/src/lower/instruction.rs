//! One instruction while it is lowered: its modifiers are taken one by one, in whatever order they were written, and
//! what nobody took makes the instruction unsupported. So a modifier is never overlooked.

use ptx::Span;
use ptx::ast::{Instruction, Operand, Type};

use crate::ir::{Float, FloatMode, Int, Order, Round, Scope, Ty};

/// Why an instruction was not lowered.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The instruction as a whole: `instruction 'foo.bar' is not supported`.
    Unsupported,
    /// Something about it.
    At(Span, String),
    /// It names something that no source defines.
    Undefined(Span, String),
}

/// The result of lowering something.
pub(crate) type Lower<T = ()> = Result<T, Failure>;

pub(crate) fn fail<T>(span: Span, message: impl Into<String>) -> Lower<T> {
    Err(Failure::At(span, message.into()))
}

/// The register type a PTX type lives in.
pub(crate) fn register_ty(ty: Type) -> Ty {
    match ty {
        Type::Pred => Ty::Pred,
        Type::F32 => Ty::F32,
        Type::F64 => Ty::F64,
        _ => match ty.bits() {
            0..=16 => Ty::B16,
            17..=32 => Ty::B32,
            33..=64 => Ty::B64,
            _ => Ty::B128,
        },
    }
}

/// `.u32`, `.s64`; and `.b32` where the sign does not matter.
pub(crate) fn int(ty: Type) -> Option<Int> {
    let (bits, signed) = match ty {
        Type::B8 | Type::U8 => (8, false),
        Type::B16 | Type::U16 => (16, false),
        Type::B32 | Type::U32 => (32, false),
        Type::B64 | Type::U64 => (64, false),
        Type::S8 => (8, true),
        Type::S16 => (16, true),
        Type::S32 => (32, true),
        Type::S64 => (64, true),
        _ => return None,
    };
    Some(Int { bits, signed })
}

pub(crate) fn float(ty: Type) -> Option<Float> {
    Some(match ty {
        Type::F16 => Float::F16,
        Type::F16x2 => Float::F16x2,
        Type::Bf16 => Float::Bf16,
        Type::Bf16x2 => Float::Bf16x2,
        Type::F32 => Float::F32,
        Type::F64 => Float::F64,
        _ => return None,
    })
}

/// Widths of integer instructions.
pub(crate) const ALL: &[u8] = &[16, 32, 64];
pub(crate) const WIDE: &[u8] = &[32, 64];
pub(crate) const WORD: &[u8] = &[32];

/// Types of floating-point instructions.
pub(crate) const FLOATS: &[Float] =
    &[Float::F16, Float::Bf16, Float::F16x2, Float::Bf16x2, Float::F32, Float::F64];
pub(crate) const SINGLE_OR_DOUBLE: &[Float] = &[Float::F32, Float::F64];
pub(crate) const SINGLE: &[Float] = &[Float::F32];

pub(crate) struct Instr<'i, 'a> {
    pub(crate) ast: &'i Instruction<'a>,
    /// A bit for each modifier; no instruction has so many that there is none for one.
    taken: u64,
}

impl<'i, 'a> Instr<'i, 'a> {
    pub(crate) fn new(ast: &'i Instruction<'a>) -> Self {
        Instr { ast, taken: 0 }
    }

    /// Takes the modifier if it is there.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        self.take_map(|it| (it == word).then_some(())).is_some()
    }

    /// Takes the first modifier for which `map` has an answer.
    pub(crate) fn take_map<T>(&mut self, map: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        for (modifier, bit) in self.ast.modifiers.iter().zip(bits()) {
            if self.taken & bit != 0 {
                continue;
            }
            if let Some(answer) = map(modifier.value) {
                self.taken |= bit;
                return Some(answer);
            }
        }
        None
    }

    /// The modifiers that have a bit, and whether each was taken.
    fn modifiers(&self) -> impl Iterator<Item = (&'a str, bool)> {
        self.ast.modifiers.iter().zip(bits()).map(|(modifier, bit)| (modifier.value, self.taken & bit != 0))
    }

    /// Takes the modifier that one of the rows names.
    pub(crate) fn take_one<T: Copy>(&mut self, rows: &[(&str, T)]) -> Option<T> {
        self.take_map(|word| rows.iter().find(|row| row.0 == word).map(|row| row.1))
    }

    /// Takes one of `rows`, of which one must be there.
    pub(crate) fn need_one<T: Copy>(&mut self, rows: &[(&str, T)]) -> Lower<T> {
        self.take_one(rows).ok_or(Failure::Unsupported)
    }

    /// Takes the next type, in the order written.
    pub(crate) fn ty(&mut self) -> Lower<Type> {
        self.take_map(Type::parse).ok_or(Failure::Unsupported)
    }

    /// Looks at the first type that was not taken.
    pub(crate) fn peek_ty(&self) -> Option<Type> {
        self.modifiers().filter(|(_, taken)| !taken).find_map(|(word, _)| Type::parse(word))
    }

    /// Takes the next type, which must be an integer type of one of these widths.
    pub(crate) fn int(&mut self, widths: &[u8]) -> Lower<(Type, Int)> {
        let ty = self.ty()?;
        let int = int(ty).filter(|int| widths.contains(&int.bits));
        Ok((ty, int.ok_or(Failure::Unsupported)?))
    }

    /// Takes the next type, which must be one of these floating-point types.
    pub(crate) fn float(&mut self, types: &[Float]) -> Lower<(Type, Float)> {
        let ty = self.ty()?;
        let float = float(ty).filter(|float| types.contains(float));
        Ok((ty, float.ok_or(Failure::Unsupported)?))
    }

    /// `.rn`, `.rz`, `.rm`, `.rp`.
    pub(crate) fn round(&mut self) -> Option<Round> {
        self.take_one(&[
            ("rn", Round::Nearest),
            ("rz", Round::Zero),
            ("rm", Round::Down),
            ("rp", Round::Up),
            ("rna", Round::NearestAway),
        ])
    }

    /// Rounding, `.ftz`, `.sat`, `.relu`, as far as written.
    pub(crate) fn float_mode(&mut self) -> FloatMode {
        let round = self.round();
        self.float_mode_of(round)
    }

    /// The same where the rounding was taken already.
    pub(crate) fn float_mode_of(&mut self, round: Option<Round>) -> FloatMode {
        FloatMode {
            round: round.unwrap_or_default(),
            ftz: self.take("ftz"),
            sat: self.take("sat"),
            relu: self.take("relu"),
            fuses: false,
            normal: 0,
            near: false,
        }
    }

    /// Memory order, if one is written.
    pub(crate) fn order(&mut self) -> Option<Order> {
        self.take_one(&[
            ("weak", Order::Weak),
            ("volatile", Order::Volatile),
            ("relaxed", Order::Relaxed),
            ("acquire", Order::Acquire),
            ("release", Order::Release),
            ("acq_rel", Order::AcqRel),
            ("sc", Order::SeqCst),
        ])
    }

    pub(crate) fn scope(&mut self) -> Option<Scope> {
        self.take_one(&[
            ("cta", Scope::Cta),
            ("cluster", Scope::Cluster),
            ("gpu", Scope::Gpu),
            ("sys", Scope::Sys),
        ])
    }

    /// Cache operators and eviction or prefetch hints: they change speed on a GPU, never a result.
    /// Says whether a cache policy operand comes last.
    pub(crate) fn cache_hints(&mut self) -> bool {
        let mut policy = false;
        while let Some(word) = self.take_map(|word| {
            let plain = matches!(word, "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "nc");
            (plain || word.starts_with("L1::") || word.starts_with("L2::")).then_some(word)
        }) {
            policy |= word == "L2::cache_hint";
        }
        policy
    }

    /// Exactly `N` operands.
    pub(crate) fn operands<const N: usize>(&self) -> Lower<[&'i Operand<'a>; N]> {
        let operands: &'i [Operand<'a>] = &self.ast.operands;
        if let Ok(all) = <&[Operand<'a>; N]>::try_from(operands) {
            return Ok(all.each_ref());
        }
        let plural = if N == 1 { "" } else { "s" };
        let message = format!("'{}' takes {N} operand{plural}, not {}", self.ast.full_name(), operands.len());
        fail(self.ast.span, message)
    }

    /// The operand at `index`.
    pub(crate) fn operand(&self, index: usize) -> Lower<&'i Operand<'a>> {
        match self.ast.operands.get(index) {
            Some(operand) => Ok(operand),
            None => fail(self.ast.span, format!("'{}' lacks operand {}", self.ast.full_name(), index + 1)),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.ast.operands.len()
    }

    /// Every modifier has been understood. As ptxas has it, some may be said twice.
    pub(crate) fn done(&self) -> Lower {
        const REPEATABLE: &[&str] =
            &["NaN", "approx", "cc", "relu", "sat", "satfinite", "shiftamt", "sync", "uni"];
        let is_said_before = |word: &str| self.modifiers().any(|(other, taken)| taken && other == word);
        let all =
            self.modifiers().all(|(word, taken)| taken || REPEATABLE.contains(&word) && is_said_before(word));
        if all && self.modifiers().count() == self.ast.modifiers.len() {
            Ok(())
        } else {
            Err(Failure::Unsupported)
        }
    }
}

/// Of the first modifier, of the second, …
fn bits() -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(|nth| 1 << nth)
}
