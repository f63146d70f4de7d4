//! The IR as text, for golden tests and for people.

use std::fmt;

use crate::ir::{Block, Edge, Function, Inst, Term, Ty, Value};

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ty::Pred => "pred",
            Ty::B16 => "b16",
            Ty::B32 => "b32",
            Ty::B64 => "b64",
            Ty::B128 => "b128",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
        })
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types = |types: &[Ty]| types.iter().map(Ty::to_string).collect::<Vec<_>>().join(", ");
        writeln!(f, "function {}({}) -> ({})", self.name, types(&self.args), types(&self.results))?;
        for (index, local) in self.locals.iter().enumerate() {
            writeln!(f, "  local @l{index}: {} bytes, align {} ; {}", local.bytes, local.align, local.name)?;
        }
        for (index, block) in self.blocks.iter().enumerate() {
            self.block_text(f, index, block)?;
        }
        Ok(())
    }
}

impl Function {
    fn block_text(&self, f: &mut fmt::Formatter<'_>, index: usize, block: &Block) -> fmt::Result {
        let typed = |value: &Value| format!("{value}: {}", self.ty(*value));
        let params = block.params.iter().map(typed).collect::<Vec<_>>().join(", ");
        if params.is_empty() {
            writeln!(f, "bb{index}:")?
        } else {
            writeln!(f, "bb{index}({params}):")?
        }
        for inst in &block.insts {
            self.inst_text(f, inst)?;
        }
        match &block.term {
            Term::Jump(edge) => writeln!(f, "  jump {}", edge_text(edge)),
            Term::Branch { cond, then, otherwise } => {
                writeln!(f, "  branch {cond}, {}, {}", edge_text(then), edge_text(otherwise))
            }
            Term::Switch { index, targets } => {
                let targets = targets.iter().map(edge_text).collect::<Vec<_>>().join(", ");
                writeln!(f, "  switch {index}, [{targets}]")
            }
            Term::Return(values) => writeln!(f, "  return {}", list(values)),
            Term::Exit => writeln!(f, "  exit"),
        }
    }

    fn inst_text(&self, f: &mut fmt::Formatter<'_>, inst: &Inst) -> fmt::Result {
        write!(f, "  ")?;
        if !inst.results.is_empty() {
            let typed = |value: &Value| format!("{value}: {}", self.ty(*value));
            write!(f, "{} = ", inst.results.iter().map(typed).collect::<Vec<_>>().join(", "))?;
        }
        let op = tidy(&format!("{:?}", inst.op));
        if inst.args.is_empty() { writeln!(f, "{op}") } else { writeln!(f, "{op} {}", list(&inst.args)) }
    }
}

/// `Int { bits: 32, signed: true }` is `s32` to a reader.
fn tidy(text: &str) -> String {
    let mut text = text.to_owned();
    for bits in [8, 16, 32, 64] {
        for (signed, letter) in [("true", 's'), ("false", 'u')] {
            text = text
                .replace(&format!("Int {{ bits: {bits}, signed: {signed} }}"), &format!("{letter}{bits}"));
            text = text
                .replace(&format!("Mem {{ bits: {bits}, signed: {signed} }}"), &format!("{letter}{bits}"));
        }
    }
    let text = text.replace(", fuses: false", "").replace(", normal: 0", "").replace(", near: false", "");
    let default = "FloatMode { round: Nearest, ftz: false, sat: false, relu: false }";
    text.replace(default, "rn").replace(", order: Weak, scope: Sys", "")
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

fn edge_text(edge: &Edge) -> String {
    if edge.args.is_empty() {
        edge.block.to_string()
    } else {
        format!("{}({})", edge.block, list(&edge.args))
    }
}
