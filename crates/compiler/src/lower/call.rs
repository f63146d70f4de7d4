//! Calls: of device functions, through pointers, and of what the device runtime provides.

use ptx::Span;
use ptx::ast::{Ident, Operand, OperandKind, Type};

use super::function::Lowerer;
use super::instruction::{Failure, Instr, Lower, fail};
use super::layout::{self, Shape};
use super::link::{Device, Symbol};
use super::scope::{Entity, Register};
use crate::ir::{Mem, Op, Order, Scope, Space, Syscall, Term, Ty, Value};

type L<'l, 'i, 'a> = Lowerer<'l, 'i, 'a>;
type I<'i, 'a> = Instr<'i, 'a>;

/// `call{.uni} (ret), f, (args)`, `call (ret), ptr, (args), prototype`
pub(super) fn call<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    i.take("uni");
    i.done()?;
    let mut rest = i.ast.operands.as_slice();
    let mut returns: &[Operand<'a>] = &[];
    if let [Operand { kind: OperandKind::List(list), .. }, tail @ ..] = rest {
        (returns, rest) = (list, tail);
    }
    let [target, rest @ ..] = rest else { return fail(i.ast.span, "'call' lacks the function") };
    let mut arguments: &[Operand<'a>] = &[];
    let mut rest = rest;
    if let [Operand { kind: OperandKind::List(list), .. }, tail @ ..] = rest {
        (arguments, rest) = (list, tail);
    }
    let OperandKind::Name(name) = &target.kind else { return fail(target.span, "expected a function") };
    if matches!(l.entity(name), Some(Entity::Register(_))) {
        let [prototype] = rest else { return fail(i.ast.span, "an indirect call needs its prototype") };
        return indirect(l, i, target, returns, arguments, prototype);
    }
    if let [operand, ..] = rest {
        return fail(operand.span, "nothing stands behind the arguments of a function that is named");
    }
    let module = l.module;
    match module.linked.symbol(l.unit, name) {
        Some(Symbol::Function(id)) => {
            let device = &module.linked.functions[id.index()];
            let (parameters, results) = signature(device, target.span)?;
            let args = l.arguments(arguments, parameters, i.ast.span)?;
            // Linking compares no declarations. What is said to come back from a function that another source defines
            // without a result is nothing in particular.
            if results.is_empty() && device.defined.unit != l.unit {
                returns = &[];
            }
            let values = l.b.emit(Op::Call(id), &args, &layout::types(results));
            l.results(returns, results, &values, i.ast.span)
        }
        Some(Symbol::External(index)) => {
            syscall(l, i, &module.linked.externals[index as usize], returns, arguments)
        }
        Some(_) => fail(target.span, format!("'{name}' is not a device function")),
        None => fail(target.span, format!("function '{name}' is not declared")),
    }
}

fn signature(device: &Device, span: Span) -> Lower<(&[Shape], &[Shape])> {
    match &device.signature {
        Ok((parameters, results)) => Ok((parameters, results)),
        // The declaration is elsewhere, perhaps in another source: the call is what can be pointed at.
        Err((_, message)) => fail(span, message.clone()),
    }
}

fn indirect<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    target: &Operand<'a>,
    returns: &[Operand<'a>],
    arguments: &[Operand<'a>],
    prototype: &Operand<'a>,
) -> Lower {
    let OperandKind::Name(name) = &prototype.kind else {
        return fail(prototype.span, "expected a prototype");
    };
    let problem = |(span, message): layout::Problem| Failure::At(span, message);
    let (parameters, results) = match l.entity(name) {
        Some(Entity::Prototype(prototype)) => (
            layout::shapes(&prototype.parameters).map_err(problem)?,
            layout::shapes(&prototype.returns).map_err(problem)?,
        ),
        // `.calltargets`: all have the signature of the first.
        Some(Entity::Targets([first, ..])) => of_first_target(l, first)?,
        _ => return fail(prototype.span, format!("'{name}' is not a prototype")),
    };
    // As ptxas has it, one of 32 bits is the lower half.
    let address = match l.register(name_of(target)?, target.span)?.declared {
        Type::B32 | Type::U32 | Type::S32 => l.value(target, Type::U32)?,
        Type::B64 | Type::U64 | Type::S64 => l.value(target, Type::U64)?,
        _ => return fail(target.span, "the address of a function is an integer of 32 or 64 bits"),
    };
    let address = l.resize(address, Ty::B64, false);
    let mut args = vec![address];
    args.extend(l.arguments(arguments, &parameters, i.ast.span)?);
    let values = l.b.emit(Op::CallIndirect, &args, &layout::types(&results));
    l.results(returns, &results, &values, i.ast.span)
}

fn name_of<'a>(operand: &Operand<'a>) -> Lower<&'a str> {
    match operand.kind {
        OperandKind::Name(name) => Ok(name),
        _ => fail(operand.span, "expected a function"),
    }
}

fn of_first_target(l: &L<'_, '_, '_>, first: &Ident<'_>) -> Lower<(Vec<Shape>, Vec<Shape>)> {
    let linked = &l.module.linked;
    let device = match linked.symbol(l.unit, first.value) {
        Some(Symbol::Function(id)) => &linked.functions[id.index()],
        Some(Symbol::External(index)) => &linked.externals[index as usize],
        _ => return fail(first.span, format!("'{}' is not a device function", first.value)),
    };
    let (parameters, results) = signature(device, first.span)?;
    Ok((parameters.to_vec(), results.to_vec()))
}

/// Functions that no source defines and the device runtime provides.
fn syscall<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    device: &Device,
    returns: &[Operand<'a>],
    arguments: &[Operand<'a>],
) -> Lower {
    let name = &*device.name;
    if name == "cudaGraphSetConditional" {
        return set_conditional(l, i, device, arguments);
    }
    // name, meaning, argument types, result types
    let (syscall, takes, gives): (Syscall, &[Ty], &[Ty]) = match name {
        "vprintf" => (Syscall::Vprintf, &[Ty::B64, Ty::B64], &[Ty::B32]),
        "malloc" => (Syscall::Malloc, &[Ty::B64], &[Ty::B64]),
        "free" => (Syscall::Free, &[Ty::B64], &[]),
        crate::device_runtime::SYSCALL => (Syscall::DeviceRuntime, &[Ty::B64, Ty::B32], &[Ty::B64]),
        "__assertfail" => (Syscall::AssertFail, &[Ty::B64, Ty::B64, Ty::B32, Ty::B64, Ty::B64], &[]),
        _ => return Err(Failure::Undefined(i.ast.span, name.to_owned())),
    };
    let (args, results) = declared(l, i, device, arguments, takes, gives)?;
    let values = l.b.emit(Op::Syscall(syscall), &args, gives);
    if syscall == Syscall::AssertFail {
        // It does not come back.
        l.b.terminate(Term::Exit);
        return Ok(());
    }
    l.results(returns, results, &values, i.ast.span)
}

/// The arguments of such a function, which must be declared as the device runtime has it.
fn declared<'d, 'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    device: &'d Device,
    arguments: &[Operand<'a>],
    takes: &[Ty],
    gives: &[Ty],
) -> Lower<(Vec<Value>, &'d [Shape])> {
    let (parameters, results) = signature(device, i.ast.span)?;
    let bits = |types: &[Ty]| types.iter().map(|ty| ty.bits()).collect::<Vec<_>>();
    if bits(&layout::types(parameters)) != bits(takes) || bits(&layout::types(results)) != bits(gives) {
        return fail(
            i.ast.span,
            format!("'{}' is declared with other parameters than the device runtime's", device.name),
        );
    }
    let args = l.arguments(arguments, parameters, i.ast.span)?;
    Ok((args.into_iter().map(|arg| l.untyped(arg)).collect(), results))
}

/// A condition's handle is the address of its value: the driver makes it so (`driver::object::graph::condition`).
fn set_conditional<'i, 'a>(
    l: &mut L<'_, 'i, 'a>,
    i: &I<'i, 'a>,
    device: &Device,
    arguments: &[Operand<'a>],
) -> Lower {
    let (args, _) = declared(l, i, device, arguments, &[Ty::B64, Ty::B32], &[])?;
    let mem = Mem { bits: 32, signed: false };
    let store = Op::Store { space: Space::Global, mem, offset: 0, order: Order::Weak, scope: Scope::Sys };
    l.b.emit(store, &args, &[]);
    Ok(())
}

impl<'i, 'a> Lowerer<'_, 'i, 'a> {
    /// The chunks of all arguments, as the callee's parameters want them.
    fn arguments(&mut self, operands: &[Operand<'a>], shapes: &[Shape], span: Span) -> Lower<Vec<Value>> {
        if operands.len() != shapes.len() {
            return fail(
                span,
                format!("the function takes {} arguments, not {}", shapes.len(), operands.len()),
            );
        }
        let mut values = Vec::new();
        for (operand, shape) in operands.iter().zip(shapes) {
            let buffer = match &operand.kind {
                OperandKind::Name(name) => match self.entity(name) {
                    Some(Entity::Buffer(index)) => Some(index),
                    _ => None,
                },
                _ => None,
            };
            let Some(index) = buffer else {
                values.extend(self.register_argument(operand, shape)?);
                continue;
            };
            for at in 0..shape.count {
                let offset = i64::from(at) * i64::from(shape.chunk);
                let value = self.read_buffer(index, offset, shape.chunk, operand.span)?;
                values.push(self.resize(value, shape.ty, false));
            }
        }
        Ok(values)
    }

    /// A register or constant as argument, in the parameter's chunks.
    fn register_argument(&mut self, operand: &Operand<'a>, shape: &Shape) -> Lower<Vec<Value>> {
        if let Some(register) = self.named_register(operand)
            && (register.vars.len() > 1 || shape.count > 1)
        {
            self.check_fits(operand, &register, shape)?;
            return Ok(self.read_chunks(&register, shape));
        }
        let ty = match shape.ty {
            Ty::Pred => Type::Pred,
            Ty::B16 => Type::B16,
            Ty::B32 => Type::B32,
            Ty::B64 => Type::B64,
            Ty::B128 => Type::B128,
            Ty::F32 => Type::F32,
            Ty::F64 => Type::F64,
        };
        if shape.count != 1 {
            return fail(operand.span, "the argument is smaller than the parameter");
        }
        Ok(vec![self.value(operand, ty)?])
    }

    fn named_register(&mut self, operand: &Operand<'a>) -> Option<Register> {
        let OperandKind::Name(name) = operand.kind else { return None };
        match self.entity(name) {
            Some(Entity::Register(register)) => Some(register),
            _ => None,
        }
    }

    fn check_fits(&self, operand: &Operand<'a>, register: &Register, shape: &Shape) -> Lower {
        if self.fits(register, shape) {
            return Ok(());
        }
        let (has, takes) =
            (register.vars.len() as u32 * register.declared.bits(), shape.count * shape.chunk * 8);
        fail(operand.span, format!("the operand has {has} bits, the function's has {takes}"))
    }

    /// Puts what came back where the call says.
    fn results(&mut self, operands: &[Operand<'a>], shapes: &[Shape], values: &[Value], span: Span) -> Lower {
        if operands.len() != shapes.len() && !operands.is_empty() {
            return fail(
                span,
                format!("the function gives {} results, not {}", shapes.len(), operands.len()),
            );
        }
        let mut rest = values;
        for (operand, shape) in operands.iter().zip(shapes) {
            let (mine, tail) = rest.split_at((shape.count as usize).min(rest.len()));
            rest = tail;
            if let OperandKind::Name(name) = &operand.kind
                && let Some(Entity::Buffer(index)) = self.entity(name)
            {
                for (at, &value) in mine.iter().enumerate() {
                    let offset = at as i64 * i64::from(shape.chunk);
                    self.write_buffer(index, offset, shape.chunk, value, operand.span)?;
                }
            } else if let Some(register) = self.named_register(operand)
                && (register.vars.len() > 1 || mine.len() > 1)
            {
                self.check_fits(operand, &register, shape)?;
                self.write_chunks(&register, shape, mine);
            } else if let [value] = mine {
                self.write(operand, *value)?;
            } else if !matches!(operand.kind, OperandKind::Sink) {
                return fail(operand.span, "what comes back does not fit here");
            }
        }
        Ok(())
    }
}
