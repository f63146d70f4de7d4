//! What an instruction computes: asked of `oracle`.

use ptx::ast::{Instruction, Type};

use super::operand::{extend, signed, truncate};
use super::{Result, Value};

/// A pure instruction.
pub struct Form {
    form: oracle::Form,
    /// The type of constants, by the modifiers.
    ty: Option<Type>,
    /// Bits and sign of the result of a conversion, whose register may be wider.
    extends: Option<(u32, bool)>,
}

/// Whether it is a pure instruction with one exact answer.
pub fn knows(opcode: &str, modifiers: &[&str]) -> bool {
    oracle::Form::parse(opcode, modifiers).is_some()
}

impl Form {
    pub fn of(instruction: &Instruction<'_>) -> Result<Form> {
        let modifiers: Vec<&str> = instruction.modifiers.iter().map(|it| it.value).collect();
        let opcode = instruction.opcode.value;
        let form = oracle::Form::parse(opcode, &modifiers)
            .ok_or_else(|| format!("{} is not known to the oracle", instruction.full_name()))?;
        let types: Vec<Type> = modifiers.iter().filter_map(|it| Type::parse(it)).collect();
        let extends = types
            .first()
            .filter(|_| opcode == "cvt" && !instruction.has("pack"))
            .map(|ty| (ty.bits(), signed(*ty)));
        Ok(Form { form, ty: types.last().copied(), extends })
    }

    /// The type that a constant is written in.
    pub fn source_type(&self, nth: usize) -> Option<Type> {
        match self.form.operands().get(nth) {
            Some(oracle::Type::Float(format)) if format.bits == 32 => Some(Type::F32),
            Some(oracle::Type::Float(format)) if format.bits == 64 => Some(Type::F64),
            Some(_) => None,
            None => self.ty,
        }
    }

    pub fn extends(&self) -> Option<(u32, bool)> {
        self.extends
    }

    pub fn writes_carry(&self) -> bool {
        self.form.results().last() == Some(&oracle::Type::Carry)
    }

    /// Results, the carry last.
    pub fn compute(&self, mut sources: Vec<Value>, carry: Value) -> Result<Vec<Value>> {
        let operands = self.form.operands();
        if operands.last() == Some(&oracle::Type::Carry) {
            sources.push(carry);
        }
        if sources.len() != operands.len() {
            return Err(format!("takes {} operands, not {}", operands.len(), sources.len()));
        }
        let open = vec![None; self.form.results().len()];
        let Some(sources) = sources.into_iter().collect::<Option<Vec<u128>>>() else { return Ok(open) };
        let sources: Vec<u128> =
            sources.iter().zip(operands).map(|(source, ty)| truncate(*source, ty.bits())).collect();
        let Some(results) = self.form.eval(&sources) else { return Ok(open) };
        // Another NaN than this one would do as well.
        let settled = |nth: usize| {
            let ty = self.form.results()[nth];
            !(0..ty.bits()).any(|bit| self.form.same(nth, results[nth], results[nth] ^ 1 << bit))
        };
        Ok((0..open.len()).map(|nth| settled(nth).then_some(results[nth])).collect())
    }
}

/// The new value in memory; `None` where the manual leaves it open.
pub fn atomic(operation: &str, ty: Type, old: u128, b: u128, c: Option<u128>) -> Result<Value> {
    let number = |bits: u128| extend(bits, ty.bits(), signed(ty), 128) as i128;
    Ok(Some(match operation {
        "exch" => b,
        "cas" if old == b => c.ok_or("cas takes two values")?,
        "cas" => old,
        "and" => old & b,
        "or" => old | b,
        "xor" => old ^ b,
        "inc" if old >= b => 0,
        "inc" => old + 1,
        "dec" if old == 0 || old > b => b,
        "dec" => old - 1,
        "add" | "min" | "max" if is_float(ty) => {
            let form = oracle::Form::parse(operation, &[ty.name()]).ok_or("not known to the oracle")?;
            return Ok(form.eval(&[old, b]).map(|results| results[0]));
        }
        "add" => truncate(old.wrapping_add(b), ty.bits()),
        "min" => {
            if number(b) < number(old) {
                b
            } else {
                old
            }
        }
        "max" => {
            if number(b) > number(old) {
                b
            } else {
                old
            }
        }
        other => return Err(format!("atom.{other} is not known here")),
    }))
}

fn is_float(ty: Type) -> bool {
    matches!(ty, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::F64)
}
