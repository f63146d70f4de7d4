//! What names mean inside a function: nested scopes over the module's symbols.

use std::rc::Rc;

use foldhash::HashMap;
use ptx::ast::{CallPrototype, Ident, Type, Variable};

use super::builder::Var;
use crate::ir::{BlockId, GlobalId, LocalId, SharedId, Ty};

/// A `.reg` name: `vars` has more than one for a vector register.
#[derive(Clone, Debug)]
pub(crate) struct Register {
    pub(crate) vars: Rc<[Var]>,
    pub(crate) ty: Ty,
    /// What each was declared as: `.b8` is held in 16 bits.
    pub(crate) declared: Type,
}

/// A `.param` variable of a call or device function, held in registers: equal chunks that cover its bytes.
#[derive(Clone, Debug)]
pub(crate) struct ParamBuffer {
    pub(crate) chunk: u32,
    pub(crate) vars: Vec<Var>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Entity<'i, 'a> {
    Register(Register),
    /// A parameter of the kernel, at this offset of the parameter buffer.
    KernelParam(u32),
    /// A parameter in registers: an index of the lowerer's buffers.
    Buffer(usize),
    Local(LocalId),
    Global(GlobalId),
    Shared(SharedId),
    Label(BlockId),
    Prototype(&'i CallPrototype<'a>),
    /// `.branchtargets` and `.calltargets`
    Targets(&'i [Ident<'a>]),
}

/// What a `.reg` declares: registers of `ty`, or vectors of `lanes` of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterKind {
    pub(crate) ty: Type,
    pub(crate) lanes: u8,
}

impl RegisterKind {
    pub(crate) fn of(variable: &Variable<'_>) -> RegisterKind {
        RegisterKind { ty: variable.ty.value, lanes: variable.vector.unwrap_or(1) }
    }
}

/// `%r<100>`
struct Range {
    count: u32,
    kind: RegisterKind,
}

/// One `{ }`.
#[derive(Default)]
pub(crate) struct Scope<'i, 'a> {
    names: HashMap<String, Entity<'i, 'a>>,
    ranges: HashMap<&'a str, Range>,
}

/// All scopes that are open, outermost first.
#[derive(Default)]
pub(crate) struct Scopes<'i, 'a> {
    open: Vec<Scope<'i, 'a>>,
}

/// What looking up a name gave.
pub(crate) enum Found<'i, 'a> {
    Entity(Entity<'i, 'a>),
    /// A register of a range, read for the first time: declare it in that scope.
    Undeclared {
        scope: usize,
        kind: RegisterKind,
    },
    Nothing,
}

impl<'i, 'a> Scopes<'i, 'a> {
    pub(crate) fn push(&mut self) {
        self.open.push(Scope::default());
    }

    pub(crate) fn pop(&mut self) {
        self.open.pop();
    }

    fn innermost(&mut self) -> usize {
        if self.open.is_empty() {
            self.push();
        }
        self.open.len() - 1
    }

    /// Declares a name in the innermost scope; false if that scope has it already.
    pub(crate) fn declare(&mut self, name: &str, entity: Entity<'i, 'a>) -> bool {
        let scope = self.innermost();
        self.open[scope].names.insert(name.to_owned(), entity).is_none()
    }

    pub(crate) fn declare_in(&mut self, scope: usize, name: &str, entity: Entity<'i, 'a>) {
        self.open[scope].names.insert(name.to_owned(), entity);
    }

    pub(crate) fn declare_range(&mut self, stem: &'a str, count: u32, kind: RegisterKind) {
        let scope = self.innermost();
        self.open[scope].ranges.insert(stem, Range { count, kind });
    }

    /// What a register was declared as, and how many parts it has; it need not have been read before.
    pub(crate) fn declared(&self, name: &str) -> Option<(Type, usize)> {
        self.open.iter().rev().find_map(|scope| match scope.names.get(name) {
            Some(Entity::Register(register)) => Some(Some((register.declared, register.vars.len()))),
            Some(_) => Some(None),
            None => scope.in_range(name).map(|kind| Some((kind.ty, usize::from(kind.lanes)))),
        })?
    }

    pub(crate) fn find(&self, name: &str) -> Found<'i, 'a> {
        for (index, scope) in self.open.iter().enumerate().rev() {
            if let Some(entity) = scope.names.get(name) {
                return Found::Entity(entity.clone());
            }
            if let Some(kind) = scope.in_range(name) {
                return Found::Undeclared { scope: index, kind };
            }
        }
        Found::Nothing
    }
}

impl Scope<'_, '_> {
    /// `%r12` is in `%r<100>` and in `%r1<5>`.
    fn in_range(&self, name: &str) -> Option<RegisterKind> {
        if self.ranges.is_empty() {
            return None;
        }
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(10);
        (1..=digits).find_map(|length| {
            let (stem, number) = name.split_at(name.len() - length);
            let range = self.ranges.get(stem)?;
            let canonical = number.len() == 1 || !number.starts_with('0');
            let number: u32 = number.parse().ok().filter(|_| canonical)?;
            (number < range.count).then_some(range.kind)
        })
    }
}
