//! Functions of the module that baseline code and long code calls: for pure operations that take many instructions, or one that LLVM's fast
//! selector hands to the other one with all of the block before it, and for what a thread asks. So the text is short, and made fast.

use std::fmt::Write;

use foldhash::HashMap;

use super::code::{Code, Result};
use crate::back::cpu::ANY_BLOCK;
use crate::back::llvm::{Builder, Type, Val, emit_pure};
use crate::ir::{Inst, Op, Ty};

/// By operation, the functions for it: by the types of operands, the name if there is one.
pub type Called = HashMap<Op, Vec<(Vec<Ty>, Option<String>)>>;

/// Operations of more lines are called.
const MOST_LINES: usize = 6;

/// What the fast selector lacks: halves, vectors, and all intrinsics but a few.
const SLOW: [&str; 3] = ["half", "<", "@llvm."];

impl Code<'_> {
    /// Whether code is wanted at once.
    pub fn is_baseline(&self) -> bool {
        self.options.block == ANY_BLOCK
    }

    /// The results of a pure operation.
    pub fn pure(&mut self, inst: &Inst, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        let arg_tys: Vec<Ty> = inst.args.iter().map(|arg| self.function.ty(*arg)).collect();
        let result_tys: Vec<Ty> = inst.results.iter().map(|value| self.function.ty(*value)).collect();
        if let ([to], true) = (results, self.is_baseline() || self.options.brief)
            && let Some(name) = self.function_for(&inst.op, args, &arg_tys, &result_tys)?
        {
            return Ok(vec![self.b.assign(*to, format_args!("call {to} @{name}({})", list(args)))]);
        }
        let names: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        let values = emit_pure(&mut self.b, &inst.op, &names, &arg_tys, &result_tys, 1)?;
        Ok(values.into_iter().zip(results).map(|(name, ty)| Val::new(*ty, name)).collect())
    }

    /// The function for the operation; `None` where it is better written out.
    fn function_for(
        &mut self,
        op: &Op,
        args: &[Val],
        arg_tys: &[Ty],
        result_tys: &[Ty],
    ) -> Result<Option<String>> {
        let known = self.called.get(op).and_then(|all| all.iter().find(|it| it.0 == arg_tys));
        if let Some((_, name)) = known {
            return Ok(name.clone());
        }
        let name = self.new_function_for(op, args, arg_tys, result_tys)?;
        self.called.entry(op.clone()).or_default().push((arg_tys.to_vec(), name.clone()));
        Ok(name)
    }

    fn new_function_for(
        &mut self,
        op: &Op,
        args: &[Val],
        arg_tys: &[Ty],
        result_tys: &[Ty],
    ) -> Result<Option<String>> {
        let mut inner = self.b.another();
        inner.start_block("body");
        let params = params(args);
        let names: Vec<&str> = params.iter().map(|param| param.text.as_str()).collect();
        let values = emit_pure(&mut inner, op, &names, arg_tys, result_tys, 1)?;
        let is_slow = SLOW.iter().any(|word| inner.text().contains(word));
        if !is_slow && inner.text().lines().count() <= 1 + MOST_LINES {
            return Ok(None);
        }
        let name = self.b.shortened(&long_name(&format!("{op:?}"), args));
        let to = Type::of(result_tys[0], 1);
        inner.inst(format_args!("ret {to} {}", values[0]));
        self.define(&name, &to.to_string(), &params, inner);
        Ok(Some(name))
    }

    /// Adds a function, once per name.
    fn define(&mut self, name: &str, returned: &str, params: &[Val], inner: Builder) {
        if !self.b.is_declared(name) {
            // In better code LLVM may find that an operand makes it short.
            let noinline = if self.is_baseline() { "noinline " } else { "" };
            let header = format!("define internal {returned} @{name}({}) {noinline}nounwind", list(params));
            self.b.adopt(name, header, &[], inner);
        }
    }

    /// Calls the function that `write` gives for parameters like `args`, and the thread's record before them.
    pub fn told(&mut self, what: &str, args: &[Val], write: impl FnOnce(&mut Self, &[Val])) {
        let record = Val::new(Type::ptr(), "%thread");
        let all: Vec<Val> = std::iter::once(record).chain(args.iter().cloned()).collect();
        let name = self.b.shortened(&long_name(what, args));
        if !self.b.is_declared(&name) {
            let params: Vec<Val> = std::iter::once(all[0].clone()).chain(params(args)).collect();
            let inner = self.b.another();
            let mut outer = std::mem::replace(&mut self.b, inner);
            self.b.trade_names(&mut outer);
            let at_hand = std::mem::take(&mut self.at_hand);
            self.b.start_block("body");
            write(self, &params[1..]);
            self.b.inst("ret void");
            self.b.trade_names(&mut outer);
            let inner = std::mem::replace(&mut self.b, outer);
            self.at_hand = at_hand;
            self.define(&name, "void", &params, inner);
        }
        self.b.inst(format_args!("call void @{name}({})", list(&all)));
    }
}

fn params(args: &[Val]) -> Vec<Val> {
    args.iter().enumerate().map(|(nth, arg)| Val::new(arg.ty, format!("%p{nth}"))).collect()
}

fn list(args: &[Val]) -> String {
    args.iter().map(Val::typed).collect::<Vec<_>>().join(", ")
}

fn long_name(what: &str, args: &[Val]) -> String {
    let mut name = what.to_owned();
    for arg in args {
        let _ = write!(name, " {}", arg.ty.suffix());
    }
    name
}
