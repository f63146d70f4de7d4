//! One function body: scopes, labels, guards, and the walk over its statements.
//!
//! A guarded instruction without side effects computes its result and selects it; one with side effects gets a block of
//! its own that the guard jumps around; branches take the guard as their condition.

use foldhash::{HashSet, HashSetExt as _};
use ptx::Span;
use ptx::ast::{
    Block, Function, FunctionKind, Guard, Instruction, Linkage, Operand, OperandKind, Space, Statement,
    Variable,
};

use super::builder::{Builder, Var};
use super::instruction::{Failure, Instr, Lower, fail, register_ty};
use super::layout::{self, Layout, Shape};
use super::link::{self, Defined};
use super::scope::{Entity, Found, ParamBuffer, Register, RegisterKind, Scopes};
use super::table::{self, Effect};
use crate::ir::{self, BlockId, Op, Pos, Term, Ty, Value};
use crate::module::Module;
use crate::program::{Cause, Diagnostic, Shared};

/// Lowers one function.
pub(crate) struct Lowerer<'l, 'i, 'a> {
    pub(super) module: &'l Module,
    /// The program's shared variables; the function adds its own.
    pub(super) shared: &'l mut Vec<Shared>,
    pub(super) unit: usize,
    pub(super) b: Builder,
    pub(super) scopes: Scopes<'i, 'a>,
    pub(super) buffers: Vec<ParamBuffer>,
    pub(super) is_kernel: bool,
    /// What a `ret` gives back.
    pub(super) returns: Vec<Returned>,
    /// The carry flag `CC.CF`, once somebody uses it.
    pub(super) carry: Option<Var>,
    /// The dynamic stack, once somebody uses it.
    pub(super) stack: Option<super::stack::Stack>,
    /// The condition under which the pure instruction or branch being lowered has effect.
    pub(super) guard: Option<Value>,
    name: &'a str,
    diagnostics: Vec<Diagnostic>,
}

/// Where a return value is when the function returns.
#[derive(Clone)]
pub(super) enum Returned {
    Buffer(usize),
    /// A register, in the chunks of its shape.
    Register(Register, Shape),
}

/// A kernel's parameters: names, offsets, sizes.
pub(crate) fn kernel_params(
    function: &Function<'_>,
) -> Result<(Vec<crate::program::Param>, u32), layout::Problem> {
    let mut params = Vec::new();
    let mut end = 0u64;
    for variable in &function.parameters {
        for name in &variable.names {
            let layout = layout::layout(variable, name)?;
            let offset = end.next_multiple_of(layout.align.max(1));
            end = offset + layout.bytes;
            if end > 1 << 16 {
                return Err((name.span, "the parameters are too large".to_owned()));
            }
            params.push(crate::program::Param {
                name: name.name.value.to_owned(),
                offset: offset as u32,
                bytes: layout.bytes as u32,
                align: layout.align as u32,
            });
        }
    }
    Ok((params, end as u32))
}

/// Parses the function that stands there and lowers it to SSA.
pub(crate) fn lower(
    module: &Module,
    defined: &Defined,
    shared: &mut Vec<Shared>,
) -> Result<ir::Function, Vec<Diagnostic>> {
    let unit = defined.unit;
    let text = &module.lines.sources()[unit].text;
    let name = defined.name.of(text);
    let parsed = ptx::parse_at(text, defined.span);
    let failed = |span: Span, message: String| module.lines.diagnostic(unit, span, Some(name), message);
    // What the parser could not read inside this function fails this function.
    let errors = parsed.diagnostics.iter().filter(|it| it.severity == ptx::Severity::Error);
    let diagnostics: Vec<Diagnostic> = errors.map(|it| failed(it.span, it.message.clone())).collect();
    let Some(function) = parsed.module.functions().next() else {
        return Err(if diagnostics.is_empty() {
            vec![failed(defined.name, "the function cannot be read".to_owned())]
        } else {
            diagnostics
        });
    };
    let is_kernel = function.kind == FunctionKind::Entry;
    let signature =
        if is_kernel { kernel_params(function).map(|_| (vec![], vec![])) } else { signature(function) };
    let (parameters, returns) = signature.map_err(|(span, message)| vec![failed(span, message)])?;
    let (b, arguments) = Builder::new(name, &layout::types(&parameters), &layout::types(&returns));
    let mut lowerer = Lowerer {
        module,
        shared,
        unit,
        b,
        scopes: Scopes::default(),
        buffers: vec![],
        is_kernel,
        returns: vec![],
        carry: None,
        stack: None,
        guard: None,
        name,
        diagnostics,
    };
    lowerer.function(function, &parameters, &returns, &arguments);
    lowerer.diagnostics.sort_by_key(|it| (it.line, it.column));
    if lowerer.diagnostics.is_empty() { Ok(lowerer.b.finish()) } else { Err(lowerer.diagnostics) }
}

/// The shapes of a device function's parameters and results.
pub(crate) fn signature(function: &Function<'_>) -> Result<(Vec<Shape>, Vec<Shape>), layout::Problem> {
    Ok((layout::shapes(&function.parameters)?, layout::shapes(&function.returns)?))
}

impl<'l, 'i, 'a> Lowerer<'l, 'i, 'a> {
    pub(super) fn error(&mut self, span: Span, message: impl Into<String>) {
        let diagnostic = self.module.lines.diagnostic(self.unit, span, Some(self.name), message.into());
        self.diagnostics.push(diagnostic);
    }

    fn undefined(&mut self, span: Span, name: String) {
        let cause = Cause::Undefined(name.clone());
        let message = if cause.is_device_runtime() {
            format!("'{name}' belongs to the device runtime, which does not have it here")
        } else {
            format!("'{name}' is not defined in any source")
        };
        let diagnostic = self.module.lines.diagnostic(self.unit, span, Some(self.name), message);
        self.diagnostics.push(Diagnostic { cause, ..diagnostic });
    }

    fn function(
        &mut self,
        function: &'i Function<'a>,
        parameters: &[Shape],
        returns: &[Shape],
        arguments: &[Value],
    ) {
        self.scopes.push();
        if self.is_kernel {
            match kernel_params(function) {
                Ok((params, bytes)) => {
                    let dialect = &self.module.linked.units[self.unit].dialect;
                    if let Some(message) = dialect.parameters(self.name, bytes.into()) {
                        self.error(function.name.span, message);
                    }
                    for param in params {
                        self.scopes.declare(&param.name, Entity::KernelParam(param.offset));
                    }
                }
                Err((span, message)) => self.error(span, message),
            }
        }
        let Some(body) = &function.body else { return };
        self.bind_parameters(function, body, parameters, arguments);
        for (variable, shape) in function.returns.iter().zip(returns) {
            let returned = if shape.register {
                let register = self.new_register(RegisterKind::of(variable));
                self.declare(variable, Entity::Register(register.clone()));
                Returned::Register(register, *shape)
            } else {
                let index = self.new_buffer(shape);
                self.declare(variable, Entity::Buffer(index));
                Returned::Buffer(index)
            };
            self.returns.push(returned);
        }
        // The entry block has no predecessors: a label at the very start gets a block of its own.
        self.block(body);
        if self.b.is_open() {
            self.return_now();
        }
        self.scopes.pop();
    }

    fn declare(&mut self, variable: &Variable<'a>, entity: Entity<'i, 'a>) {
        let Some(name) = variable.names.first() else { return };
        if !self.scopes.declare(name.name.value, entity) {
            self.error(name.name.span, format!("'{}' is declared twice", name.name.value));
        }
    }

    /// Parameters of a device function: in registers, or in local memory where their address is used.
    fn bind_parameters(
        &mut self,
        function: &'i Function<'a>,
        body: &'i Block<'a>,
        shapes: &[Shape],
        arguments: &[Value],
    ) {
        if self.is_kernel {
            return;
        }
        let mut addressed = HashSet::new();
        find_addressed(body, &mut addressed);
        let mut rest = arguments;
        for (variable, shape) in function.parameters.iter().zip(shapes) {
            let (values, tail) = rest.split_at((shape.count as usize).min(rest.len()));
            rest = tail;
            let entity = if shape.register {
                let register = self.new_register(RegisterKind::of(variable));
                self.write_chunks(&register, shape, values);
                Entity::Register(register)
            } else if variable.names.first().is_some_and(|name| addressed.contains(name.name.value)) {
                self.parameter_in_memory(variable, shape, values)
            } else {
                let index = self.new_buffer(shape);
                for (at, &value) in values.iter().enumerate() {
                    let var = self.buffers[index].vars[at];
                    self.b.write(var, value);
                }
                Entity::Buffer(index)
            };
            self.declare(variable, entity);
        }
    }

    fn parameter_in_memory(
        &mut self,
        variable: &Variable<'a>,
        shape: &Shape,
        values: &[Value],
    ) -> Entity<'i, 'a> {
        let name = variable.names.first().map_or("", |name| name.name.value);
        let bytes = u64::from(shape.chunk) * u64::from(shape.count);
        let local =
            self.new_local(name, Layout { bytes, align: shape.align, element: u64::from(shape.chunk) });
        let base = self.b.emit1(Op::LocalAddr(local), &[], Ty::B64);
        for (at, &value) in values.iter().enumerate() {
            let op = Op::Store {
                space: ir::Space::Local,
                mem: ir::Mem { bits: (shape.chunk * 8) as u8, signed: false },
                offset: at as i64 * i64::from(shape.chunk),
                order: ir::Order::Weak,
                scope: ir::Scope::Sys,
            };
            self.b.emit(op, &[base, value], &[]);
        }
        Entity::Local(local)
    }

    pub(super) fn new_local(&mut self, name: &str, layout: Layout) -> ir::LocalId {
        let Layout { bytes, align, element } = layout;
        let locals = self.b.locals();
        locals.push(ir::Local { name: name.to_owned(), bytes, align: align.max(1), element });
        ir::LocalId(locals.len() as u32 - 1)
    }

    pub(super) fn new_buffer(&mut self, shape: &Shape) -> usize {
        let vars = (0..shape.count).map(|_| self.b.new_var(shape.ty)).collect();
        self.buffers.push(ParamBuffer { chunk: shape.chunk, vars });
        self.buffers.len() - 1
    }

    /// `ret`: a kernel's thread ends, a device function gives back its values.
    pub(super) fn return_now(&mut self) {
        if self.is_kernel {
            return self.b.terminate(Term::Exit);
        }
        let mut values = Vec::new();
        for returned in self.returns.clone() {
            match returned {
                Returned::Register(register, shape) => values.extend(self.read_chunks(&register, &shape)),
                Returned::Buffer(index) => {
                    for var in self.buffers[index].vars.clone() {
                        values.push(self.b.read(var));
                    }
                }
            }
        }
        self.b.terminate(Term::Return(values));
    }

    /// A `{ }`; its labels are known in all of it.
    fn block(&mut self, block: &'i Block<'a>) {
        self.scopes.push();
        for statement in &block.statements {
            let duplicate = match statement {
                Statement::Label(name) => {
                    let target = self.b.new_block();
                    (!self.scopes.declare(name.value, Entity::Label(target))).then_some(name)
                }
                Statement::BranchTargets(list) | Statement::CallTargets(list) => {
                    let entity = Entity::Targets(&list.targets);
                    (!self.scopes.declare(list.name.value, entity)).then_some(&list.name)
                }
                Statement::CallPrototype(prototype) => {
                    let entity = Entity::Prototype(prototype);
                    (!self.scopes.declare(prototype.name.value, entity)).then_some(&prototype.name)
                }
                _ => None,
            };
            if let Some(name) = duplicate {
                self.error(name.span, format!("label '{}' is defined twice", name.value));
            }
        }
        for statement in &block.statements {
            self.statement(statement);
        }
        self.scopes.pop();
    }

    fn statement(&mut self, statement: &'i Statement<'a>) {
        self.hold(statement);
        match statement {
            Statement::Variable(variable) => {
                if let Err((span, message)) = self.variable(variable) {
                    self.error(span, message);
                }
            }
            Statement::Label(name) => {
                if let Found::Entity(Entity::Label(block)) = self.scopes.find(name.value) {
                    self.b.enter(block);
                }
            }
            Statement::Block(block) => self.block(block),
            Statement::Instruction(instruction) => {
                self.b.pos = Pos { source: self.unit as u32, offset: instruction.opcode.span.start };
                if let Err(failure) = self.instruction(instruction) {
                    self.guard = None;
                    self.report(instruction, failure);
                }
            }
            // `Invalid` has its own diagnostics from the parser.
            Statement::CallPrototype(_)
            | Statement::CallTargets(_)
            | Statement::BranchTargets(_)
            | Statement::Location(_)
            | Statement::Pragma(_)
            | Statement::Invalid(_) => {}
        }
    }

    /// Whether the source may have what is declared there.
    fn hold(&mut self, statement: &Statement<'_>) {
        let mut refused = vec![];
        let dialect = &self.module.linked.units[self.unit].dialect;
        match statement {
            Statement::Variable(variable) => dialect.variable(variable, &mut refused),
            Statement::CallPrototype(prototype) => dialect.prototype(prototype, &mut refused),
            Statement::BranchTargets(targets) => dialect.branch_targets(targets.span, &mut refused),
            Statement::Location(location) => dialect.location(location, &mut refused),
            Statement::Pragma(pragma) => dialect.pragma(pragma, &mut refused),
            _ => {}
        }
        for (span, message) in refused {
            self.error(span, message);
        }
    }

    fn report(&mut self, instruction: &Instruction<'a>, failure: Failure) {
        match failure {
            Failure::Unsupported => {
                let message = format!("instruction '{}' is not supported", instruction.full_name());
                self.error(instruction.opcode.span, message);
            }
            Failure::At(span, message) => self.error(span, message),
            Failure::Undefined(span, name) => self.undefined(span, name),
        }
    }

    fn instruction(&mut self, instruction: &'i Instruction<'a>) -> Lower {
        let Some(place) = table::place(instruction.opcode.value) else { return Err(Failure::Unsupported) };
        self.guarded(place, instruction)?;
        self.check_form(place, instruction)
    }

    fn guarded(&mut self, place: usize, instruction: &'i Instruction<'a>) -> Lower {
        self.module.linked.units[self.unit].dialect.check(place, instruction)?;
        let row = &table::TABLE[place];
        let mut instr = Instr::new(instruction);
        let Some(guard) = &instruction.guard else { return (row.lower)(self, &mut instr) };
        let condition = self.guard_value(guard)?;
        if row.effect == Effect::Pure || row.effect == Effect::Branch {
            self.guard = Some(condition);
            let result = (row.lower)(self, &mut instr);
            self.guard = None;
            return result;
        }
        let (inside, behind) = (self.b.new_block(), self.b.new_block());
        self.b.branch(condition, inside, behind);
        self.b.enter(inside);
        let result = (row.lower)(self, &mut instr);
        self.b.enter(behind);
        result
    }

    fn guard_value(&mut self, guard: &Guard<'a>) -> Lower<Value> {
        let register = self.register(guard.register.value, guard.register.span)?;
        if register.ty != Ty::Pred {
            return fail(guard.register.span, format!("'{}' is not a predicate", guard.register.value));
        }
        let value = self.b.read(register.vars[0]);
        Ok(if guard.negated { self.b.emit1(Op::Not, &[value], Ty::Pred) } else { value })
    }

    /// A declaration inside the body.
    fn variable(&mut self, variable: &'i Variable<'a>) -> Result<(), layout::Problem> {
        match variable.space.value {
            Space::Register => {
                layout::check_register(variable)?;
                self.declare_registers(variable);
            }
            Space::Param => {
                for name in &variable.names {
                    let single = Variable { names: vec![name.clone()], ..variable.clone() };
                    let shape = layout::shape(&single)?;
                    let index = self.new_buffer(&shape);
                    self.declare_new(name.name, Entity::Buffer(index));
                }
            }
            Space::Local => {
                for name in &variable.names {
                    let layout = layout::layout(variable, name)?;
                    let local = self.new_local(name.name.value, layout);
                    self.declare_new(name.name, Entity::Local(local));
                }
            }
            Space::Shared => {
                for name in &variable.names {
                    let layout = layout::layout(variable, name)?;
                    let full = format!("{}::{}", self.name, name.name.value);
                    let is_extern = variable.linkage == Linkage::Extern;
                    let shared = link::add_shared(self.shared, full, layout, is_extern);
                    self.declare_new(name.name, Entity::Shared(shared));
                }
            }
            Space::Global | Space::Const => {
                if super::reference::kind(variable).is_some() {
                    let message = "a texture, sampler or surface is declared in the module or as a parameter";
                    return Err((variable.span, message.to_owned()));
                }
                for name in &variable.names {
                    layout::layout(variable, name)?;
                    // It has its place since the module was loaded.
                    let Some(inside) = self.module.linked.inside.get(&(self.unit, name.name.span.start))
                    else {
                        return Err((name.span, format!("'{}' has no place in memory", name.name.value)));
                    };
                    if let Some(problem) = &inside.problem {
                        return Err(problem.clone());
                    }
                    self.declare_new(name.name, Entity::Global(inside.id));
                }
            }
            Space::Texture | Space::Special => {
                return Err((variable.space.span, "state space not allowed in a function".to_owned()));
            }
        }
        Ok(())
    }

    fn declare_new(&mut self, name: ptx::ast::Ident<'a>, entity: Entity<'i, 'a>) {
        if !self.scopes.declare(name.value, entity) {
            self.error(name.span, format!("'{}' is declared twice", name.value));
        }
    }

    fn declare_registers(&mut self, variable: &Variable<'a>) {
        for name in &variable.names {
            match name.range {
                Some(count) => {
                    self.scopes.declare_range(name.name.value, count, RegisterKind::of(variable));
                }
                None => {
                    let register = self.new_register(RegisterKind::of(variable));
                    self.declare_new(name.name, Entity::Register(register));
                }
            }
        }
    }

    /// What `name` means here, if it is declared in this function.
    pub(super) fn entity(&mut self, name: &str) -> Option<Entity<'i, 'a>> {
        match self.scopes.find(name) {
            Found::Entity(entity) => Some(entity),
            Found::Undeclared { scope, kind } => {
                let entity = Entity::Register(self.new_register(kind));
                self.scopes.declare_in(scope, name, entity.clone());
                Some(entity)
            }
            Found::Nothing => None,
        }
    }

    fn new_register(&mut self, RegisterKind { ty, lanes }: RegisterKind) -> Register {
        let declared = ty;
        let ty = register_ty(ty);
        Register { vars: (0..lanes).map(|_| self.b.new_var(ty)).collect(), ty, declared }
    }

    pub(super) fn register(&mut self, name: &str, span: Span) -> Lower<Register> {
        match self.entity(name) {
            Some(Entity::Register(register)) => Ok(register),
            Some(_) => fail(span, format!("'{name}' is not a register")),
            None => fail(span, format!("'{name}' is not declared")),
        }
    }

    pub(super) fn label(&mut self, name: &str, span: Span) -> Lower<BlockId> {
        match self.scopes.find(name) {
            Found::Entity(Entity::Label(block)) => Ok(block),
            Found::Entity(_) | Found::Undeclared { .. } => fail(span, format!("'{name}' is not a label")),
            Found::Nothing => fail(span, format!("label '{name}' is not defined")),
        }
    }
}

/// Names that appear anywhere but as the address of an `ld.param` or `st.param`.
fn find_addressed<'a>(block: &Block<'a>, names: &mut HashSet<&'a str>) {
    for statement in &block.statements {
        match statement {
            Statement::Block(block) => find_addressed(block, names),
            Statement::Instruction(instruction) => {
                let is_access = matches!(instruction.opcode.value, "ld" | "st")
                    && instruction.modifiers.iter().any(|it| it.value.starts_with("param"));
                for operand in &instruction.operands {
                    let mut note = |name| {
                        names.insert(name);
                    };
                    match &operand.kind {
                        OperandKind::Name(name) => note(name),
                        OperandKind::Expression(expression) => expression_names(expression, &mut note),
                        OperandKind::Address(address) if !is_access => {
                            expression_names(&address.base, &mut note);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// Every name in an operand.
pub(super) fn operand_names<'a>(operand: &Operand<'a>, note: &mut impl FnMut(&'a str)) {
    match &operand.kind {
        OperandKind::Name(name) | OperandKind::Member(name, _) => note(name),
        OperandKind::Sink => {}
        OperandKind::Expression(expression) => expression_names(expression, note),
        OperandKind::Address(address) => {
            expression_names(&address.base, note);
            address.more.iter().for_each(|it| operand_names(it, note));
        }
        OperandKind::Element(name, index) => {
            note(name);
            expression_names(index, note);
        }
        OperandKind::Vector(list) | OperandKind::List(list) => {
            list.iter().for_each(|it| operand_names(it, note));
        }
        OperandKind::Pair(left, right) => {
            operand_names(left, note);
            operand_names(right, note);
        }
        OperandKind::Not(inner) | OperandKind::Negate(inner) => operand_names(inner, note),
    }
}

fn expression_names<'a>(expression: &ptx::ast::Expression<'a>, note: &mut impl FnMut(&'a str)) {
    use ptx::ast::ExpressionKind as E;
    match &expression.kind {
        E::Name(name) => note(name),
        E::Unary(_, inner) | E::Generic(inner) | E::Mask(_, inner) | E::Cast { value: inner, .. } => {
            expression_names(inner, note);
        }
        E::Binary(_, left, right) => {
            expression_names(left, note);
            expression_names(right, note);
        }
        E::Conditional(parts) => parts.iter().for_each(|part| expression_names(part, note)),
        E::Integer { .. } | E::Single(_) | E::Double(_) => {}
    }
}
