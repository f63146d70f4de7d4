//! The rows of tools/data/ptx/opcodes.tsv as instructions that can be put into a kernel and asked of the oracle.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use oracle::{Approximate, Form, Operand, Rows, Type};

use crate::inputs::{Columns, Kind};

/// A register's kind, by the prefix of its name in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Pred,
    B8,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Class {
    /// Of `%rd1` and its like.
    fn of(register: &str) -> Option<Class> {
        Some(match register.strip_prefix('%')?.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "p" => Class::Pred,
            "b" => Class::B8,
            "h" => Class::B16,
            "r" => Class::B32,
            "rd" => Class::B64,
            "f" => Class::F32,
            "fd" => Class::F64,
            _ => return None,
        })
    }

    /// The type that declares, loads and stores it.
    pub fn ptx(self) -> &'static str {
        match self {
            Class::Pred => "pred",
            Class::B8 => "b8",
            Class::B16 => "b16",
            Class::B32 => "b32",
            Class::B64 => "b64",
            Class::F32 => "f32",
            Class::F64 => "f64",
        }
    }

    pub fn bits(self) -> u32 {
        match self {
            Class::Pred => 1,
            Class::B8 => 8,
            Class::B16 => 16,
            Class::B32 | Class::F32 => 32,
            Class::B64 | Class::F64 => 64,
        }
    }
}

#[derive(Clone, Debug)]
pub enum Source {
    /// What stands before and behind the register: `-`, `!`, `.b0`, and the braces around several.
    Register {
        class: Class,
        before: String,
        behind: String,
    },
    Literal {
        text: String,
        bits: u128,
    },
}

/// One form with its operands.
#[derive(Clone)]
pub struct Instruction {
    /// `add.sat.s32`, with what the operands add: `vadd.s32.u32.s32 d.b2 a.h0`.
    pub text: String,
    /// `add.sat.s32`
    pub mnemonic: String,
    pub target: u32,
    form: Arc<Form>,
    pub results: Vec<(Class, String)>,
    pub sources: Vec<Source>,
    /// CC.CF is an operand, or a result, of an addition's or a subtraction's kind.
    pub takes_carry: bool,
    pub gives_carry: bool,
}

/// Chapter, target and example, one per form; some rows say behind that why we have no such form.
pub fn read(path: &Path) -> Vec<(String, String, String)> {
    let table = std::fs::read_to_string(path).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.flat_map(|row| {
        let fields: Vec<&str> = row.split('\t').collect();
        let (&[chapter, target, example] | &[chapter, target, example, _]) = fields.as_slice() else {
            panic!("three fields, or four: {row}")
        };
        expand(example)
            .into_iter()
            .map(|form| (chapter.to_owned(), target.to_owned(), form))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// `a{b,c}d` is `abd` and `acd`. Braces with blanks inside are PTX's own.
fn expand(text: &str) -> Vec<String> {
    let alternatives = text.match_indices('{').find_map(|(open, _)| {
        let close = open + text[open..].find('}')?;
        (!text[open..close].contains(", ")).then_some((open, close))
    });
    let Some((open, close)) = alternatives else { return vec![text.to_owned()] };
    let choices = text[open + 1..close].split(',');
    choices.flat_map(|choice| expand(&format!("{}{choice}{}", &text[..open], &text[close + 1..]))).collect()
}

impl Instruction {
    /// An approximate instruction, for the kernel only: the oracle has no bits for it.
    pub fn approximate(target: &str, example: &str) -> Option<(Instruction, Approximate)> {
        let (mnemonic, _) = example.split_once(' ')?;
        let mut parts = mnemonic.split('.');
        let opcode = parts.next()?;
        let modifiers: Vec<&str> = parts.collect();
        let approximate = Approximate::parse(opcode, &modifiers)?;
        // A move of the same type stands in for the form: it has the same operands.
        let ty = modifiers.last().copied()?;
        let stand_in = match approximate.n_operands() {
            1 => Form::parse("neg", &[ty])?,
            _ => Form::parse("add", &[ty])?,
        };
        Some((Instruction::with(target, example, |_, _| Some(stand_in))?, approximate))
    }

    /// `None` when the oracle does not know the form.
    pub fn parse(target: &str, example: &str) -> Option<Instruction> {
        Instruction::with(target, example, Form::parse)
    }

    fn with(
        target: &str,
        example: &str,
        form: impl FnOnce(&str, &[&str]) -> Option<Form>,
    ) -> Option<Instruction> {
        let (mnemonic, operands) = example.split_once(' ')?;
        let mut parts = mnemonic.split('.');
        let opcode = parts.next()?;
        let mut modifiers: Vec<String> = parts.map(str::to_owned).collect();
        let mut operands = operands.split(',').map(str::trim);
        let mut notes = vec![];
        let mut results = vec![];
        for result in operands.next()?.split('|') {
            let (register, selector) = result.split_once('.').map_or((result, None), |(r, s)| (r, Some(s)));
            notes.extend(selector.map(|s| format!("d.{s}")));
            results.push((Class::of(register)?, selector.map(|s| format!(".{s}")).unwrap_or_default()));
        }
        let mut sources = vec![];
        for (operand, letter) in operands.zip(["a", "b", "c", "d", "e"]) {
            if let Some(bits) = literal(operand) {
                sources.push(Source::Literal { text: operand.to_owned(), bits });
                continue;
            }
            let before = operand.get(..1).filter(|sign| ["-", "!", "{"].contains(sign)).unwrap_or_default();
            let bare = operand[before.len()..].trim_end_matches('}');
            let brace = if operand.ends_with('}') { "}" } else { "" };
            let (register, selector) =
                bare.split_once('.').map_or((bare, None), |(register, it)| (register, Some(it)));
            notes.extend(selector.map(|s| format!("{letter}.{s}")));
            match before {
                "-" => notes.push(format!("{letter}.neg")),
                "!" => notes.push(format!("{letter}.not")),
                _ => {}
            }
            let behind = selector.map(|s| format!(".{s}")).unwrap_or_default() + brace;
            sources.push(Source::Register { class: Class::of(register)?, before: before.to_owned(), behind });
        }
        modifiers.extend(notes.iter().cloned());
        let modifiers: Vec<&str> = modifiers.iter().map(String::as_str).collect();
        let form = form(opcode, &modifiers)?;
        let takes_carry = form.operands().contains(&Type::Carry);
        if form.operands().len() != sources.len() + usize::from(takes_carry) {
            return None;
        }
        let text = [vec![mnemonic.to_owned()], notes].concat().join(" ");
        let target = target.trim_start_matches("sm_").trim_end_matches(|c: char| c.is_alphabetic());
        Some(Instruction {
            text,
            mnemonic: mnemonic.to_owned(),
            target: target.parse().ok()?,
            gives_carry: form.results().contains(&Type::Carry),
            takes_carry,
            form: Arc::new(form),
            results,
            sources,
        })
    }

    /// Instructions with the same key take the same columns of inputs.
    pub fn key(&self) -> String {
        let classes: Vec<_> = self
            .sources
            .iter()
            .map(|source| match source {
                Source::Register { class, .. } => Some(*class),
                Source::Literal { .. } => None,
            })
            .collect();
        format!("{} {} {classes:?} {:?}", self.target > 90, self.has_given_literals(), self.kinds())
    }

    /// What to fill each operand's column with; literals have none.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds = vec![];
        for (source, ty) in self.sources.iter().zip(self.form.operands()) {
            if let Source::Register { class, .. } = source {
                kinds.push(Kind::of(*ty, *class));
            }
        }
        kinds.extend(self.takes_carry.then_some(Kind::Bit));
        kinds
    }

    /// The oracle's operands.
    pub fn operands<'c>(&self, columns: &'c Columns) -> Vec<Operand<'c>> {
        let mut next = columns.columns.iter().map(|column| Operand::Column(column));
        let mut operands: Vec<Operand<'c>> = self
            .sources
            .iter()
            .map(|source| match source {
                Source::Literal { bits, .. } => Operand::Constant(*bits),
                Source::Register { .. } => next.next().unwrap(),
            })
            .collect();
        operands.extend(next);
        operands
    }

    /// The oracle's results for every row, as the result registers hold them.
    pub fn expected(&self, columns: &Columns) -> Rows {
        let widths: Vec<u32> = self.results.iter().map(|(class, _)| class.bits()).collect();
        self.form.eval_rows(&self.operands(columns), columns.len(), &widths)
    }

    /// Results that can be looked at: those with a register, and CC.CF.
    pub fn n_results(&self) -> usize {
        self.results.len() + usize::from(self.gives_carry)
    }

    /// Whether literals stand in operands that the form does not ask literals for.
    pub fn has_given_literals(&self) -> bool {
        self.sources
            .iter()
            .zip(self.form.operands())
            .any(|(source, ty)| matches!(source, Source::Literal { .. }) && *ty != Type::Immediate)
    }

    pub fn same(&self, index: usize, got: u128, wanted: u128) -> bool {
        self.form.same(index, got, wanted)
    }

    fn is_bit_field(&self) -> bool {
        ["bfe.", "bfi."].iter().any(|opcode| self.mnemonic.starts_with(opcode))
    }

    /// The instruction with a literal in place of one register operand, each form's another, and of all of them, where PTX lets
    /// a literal stand: numbers of 16 bits and more, no packed ones, no half floats, no selected parts, no SIMD video.
    pub fn with_literals(&self, nth: usize) -> Vec<Instruction> {
        let may = |index: usize| {
            let Source::Register { class, before, behind } = &self.sources[index] else { return None };
            let ty = self.form.operands()[index];
            let plain = before.is_empty() && behind.is_empty() && *class != Class::Pred;
            (plain && !self.mnemonic.starts_with("cvt") && !oracle::is_simd_video(&self.mnemonic))
                .then(|| Kind::of(ty, *class))
                .filter(Kind::has_literals)
        };
        let places: Vec<(usize, Kind)> =
            (0..self.sources.len()).filter_map(|index| Some((index, may(index)?))).collect();
        let put = |instruction: &mut Instruction, index: usize, kind: &Kind, seed: usize| {
            let (text, bits) = match kind.literal(seed) {
                // A position or a length that is a number has 8 bits.
                (_, bits) if self.is_bit_field() && index + 2 >= self.sources.len() => {
                    ((bits & 0xff).to_string(), bits & 0xff)
                }
                literal => literal,
            };
            instruction.sources[index] = Source::Literal { text, bits };
        };
        let mut all = vec![];
        if !places.is_empty() {
            let (index, kind) = &places[nth % places.len()];
            let mut one = self.clone();
            put(&mut one, *index, kind, nth * 7 + index);
            all.push(one);
        }
        // Nothing but literals: what the translator works out itself.
        let registers =
            self.sources.iter().filter(|source| matches!(source, Source::Register { .. })).count();
        if places.len() == registers && registers > 1 {
            let mut one = self.clone();
            for (index, kind) in &places {
                put(&mut one, *index, kind, nth * 13 + index * 3);
            }
            all.push(one);
        }
        all
    }
}

fn literal(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for (source, letter) in self.sources.iter().zip(["a", "b", "c", "d", "e"]) {
            if let Source::Literal { text, .. } = source {
                write!(f, " {letter}={text}")?;
            }
        }
        Ok(())
    }
}
