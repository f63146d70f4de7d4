//! Every pure instruction form that the opcode table lists and the oracle can answer, with the kinds of its operands.

#[path = "../../../compiler/tests/opcodes/mod.rs"]
mod opcodes;

/// Kinds of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pred,
    B16,
    B32,
    B64,
    F32,
    F64,
}

impl Kind {
    pub const ALL: [Kind; 6] = [Kind::Pred, Kind::B16, Kind::B32, Kind::B64, Kind::F32, Kind::F64];

    /// What register names of this kind begin with.
    pub fn stem(self) -> &'static str {
        match self {
            Kind::Pred => "%p",
            Kind::B16 => "%h",
            Kind::B32 => "%r",
            Kind::B64 => "%d",
            Kind::F32 => "%f",
            Kind::F64 => "%g",
        }
    }

    pub fn ty(self) -> &'static str {
        match self {
            Kind::Pred => "pred",
            Kind::B16 => "b16",
            Kind::B32 => "b32",
            Kind::B64 => "b64",
            Kind::F32 => "f32",
            Kind::F64 => "f64",
        }
    }

    /// Of a register in the table's examples.
    fn of(example: &str) -> Option<Kind> {
        let stem = example.strip_prefix('%')?.trim_end_matches(|c: char| c.is_ascii_digit());
        Some(match stem {
            "p" => Kind::Pred,
            "h" => Kind::B16,
            "r" => Kind::B32,
            "rd" => Kind::B64,
            "f" => Kind::F32,
            "fd" => Kind::F64,
            _ => return None,
        })
    }
}

/// An operand of a form.
#[derive(Clone, Debug)]
pub enum Slot {
    Register(Kind),
    /// `!%p`
    Negated,
    /// As in the table.
    Literal(String),
}

/// `setp.lt.and.s32 p|q, a, b, c`
#[derive(Clone, Debug)]
pub struct Form {
    /// Opcode with modifiers.
    pub name: String,
    pub destinations: Vec<Kind>,
    pub sources: Vec<Slot>,
}

impl Form {
    /// Integer division, whose divisor must not be 0.
    pub fn divides(&self) -> bool {
        let is_division = self.name.starts_with("div.") || self.name.starts_with("rem.");
        is_division && !self.name.contains(".f")
    }

    fn parse(example: &str) -> Option<Form> {
        let (name, operands) = example.split_once(' ')?;
        let mut operands = operands.split(", ");
        let destinations = operands.next()?.split('|').map(Kind::of).collect::<Option<Vec<_>>>()?;
        let sources = operands
            .map(|text| match (Kind::of(text), text.strip_prefix('!')) {
                (Some(kind), _) => Some(Slot::Register(kind)),
                (None, Some(_)) => Some(Slot::Negated),
                _ if text.starts_with(|c: char| c.is_ascii_digit()) => Some(Slot::Literal(text.to_owned())),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Form { name: name.to_owned(), destinations, sources })
    }
}

/// The forms of each line of the table.
pub fn pure() -> Vec<Vec<Form>> {
    let target = |row: &opcodes::Row| row.target.strip_prefix("sm_").and_then(|it| it.parse().ok());
    let lines = opcodes::rows()
        .into_iter()
        .filter(|row| target(row).is_some_and(|target: u32| target <= 90))
        .map(|row| -> Vec<Form> {
            let all = opcodes::expand(&row.example);
            all.iter().filter_map(|it| Form::parse(it)).filter(|form| is_known(&form.name)).collect()
        });
    lines.filter(|forms| !forms.is_empty()).collect()
}

/// Only what has one exact answer.
fn is_known(name: &str) -> bool {
    let mut words = name.split('.');
    let opcode = words.next().unwrap_or_default();
    let modifiers: Vec<&str> = words.collect();
    let is_approximate = modifiers.iter().any(|it| matches!(*it, "approx" | "full"));
    // Without a rounding modifier it may become part of a sum, which the executor does not know.
    let is_float = modifiers.last().is_some_and(|it| it.starts_with('f') || it.starts_with("bf"));
    let rounds = modifiers.iter().any(|it| matches!(*it, "rn" | "rz" | "rm" | "rp"));
    let may_fuse = opcode == "mul" && is_float && !rounds;
    !is_approximate && !may_fuse && opcode != "mov" && crate::reference::knows(opcode, &modifiers)
}
