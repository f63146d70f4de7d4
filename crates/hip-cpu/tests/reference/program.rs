//! The tree made walkable: each function a list of instructions, names looked up through their scopes.

use std::collections::HashMap;

use ptx::ast::{
    self, Declarator, Expression, Initializer, Instruction, Item, Space, Statement, Type, Variable,
};

use super::Result;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Entity {
    Register {
        slot: usize,
        ty: Type,
    },
    /// Index of the instruction behind it.
    Label(usize),
    /// Labels of a `.branchtargets`.
    Targets(Vec<String>),
    /// Offset in the frame's part of the thread's local memory.
    Local(u64),
    /// Offset and bytes in the frame's parameters.
    Param {
        offset: u64,
        bytes: u64,
    },
    /// Offset in the block's shared memory.
    Shared(u64),
    /// Address.
    Global(u64),
    /// Index in [`Program::functions`].
    Function(usize),
    /// `.callprototype` and `.calltargets`: nothing to do here.
    Prototype,
}

/// One `{ … }`.
#[derive(Default)]
struct Scope {
    parent: Option<usize>,
    names: HashMap<String, Entity>,
}

/// An instruction and the scope that its names are looked up in.
pub struct Step<'a> {
    pub instruction: Instruction<'a>,
    pub scope: usize,
}

/// A kernel or device function.
pub struct Function<'a> {
    pub name: &'a str,
    pub steps: Vec<Step<'a>>,
    scopes: Vec<Scope>,
    /// Bits of each register.
    pub registers: Vec<u32>,
    pub local_bytes: u64,
    pub param_bytes: u64,
    /// As declared, in order.
    pub parameters: Vec<Entity>,
    pub returns: Vec<Entity>,
}

/// A whole module.
pub struct Program<'a> {
    pub functions: Vec<Function<'a>>,
    names: HashMap<String, Entity>,
    /// Static shared memory of all functions.
    pub shared_bytes: u64,
    /// Initial bytes of the variables, from [`GLOBALS`] on.
    pub globals: Vec<u8>,
}

/// Where module variables lie.
pub const GLOBALS: u64 = 0x0100_0000_0000;
/// Function `n` has the address `FUNCTIONS + 16 n`.
pub const FUNCTIONS: u64 = 0x0200_0000_0000;

fn round_up(value: u64, align: u64) -> u64 {
    value.div_ceil(align) * align
}

/// Places something at the end of `bytes`.
fn place(bytes: &mut u64, size: u64, align: u64) -> u64 {
    let at = round_up(*bytes, align);
    *bytes = at + size;
    at
}

/// Bytes and alignment of one declared name; empty brackets have none.
fn size(variable: &Variable<'_>, declarator: &Declarator<'_>) -> Result<(u64, u64)> {
    let element = u64::from(variable.ty.value.bits().div_ceil(8)) * variable.vector.map_or(1, u64::from);
    let mut bytes = element;
    for dimension in &declarator.dimensions {
        bytes *= match dimension {
            Some(expression) => constant(expression)?,
            None => 0,
        };
    }
    Ok((bytes, variable.align.map_or(element, |align| align.value)))
}

fn constant(expression: &Expression<'_>) -> Result<u64> {
    expression.constant().ok().and_then(|it| it.integer()).ok_or_else(|| "not a number".to_owned())
}

/// The names a declarator declares.
fn names(declarator: &Declarator<'_>) -> Vec<String> {
    let stem = declarator.name.value;
    match declarator.range {
        Some(count) => (0..count).map(|nth| format!("{stem}{nth}")).collect(),
        None => vec![stem.to_owned()],
    }
}

impl<'a> Program<'a> {
    /// Takes a parsed module apart.
    pub fn new(module: &ast::Module<'a>) -> Result<Program<'a>> {
        let mut program =
            Program { functions: vec![], names: HashMap::new(), shared_bytes: 0, globals: vec![] };
        let mut defined = vec![];
        for item in &module.items {
            match item {
                Item::Variable(variable) => program.variable(variable)?,
                Item::Function(function) if function.body.is_some() => {
                    let entity = Entity::Function(defined.len());
                    program.names.insert(function.name.value.to_owned(), entity);
                    defined.push(function);
                }
                Item::Function(_) => {}
                Item::Alias(_) => return Err("'.alias' is not known here".to_owned()),
                _ => {}
            }
        }
        for function in defined {
            let function = Builder::build(function, &mut program.shared_bytes)?;
            program.functions.push(function);
        }
        // The dynamic part begins aligned.
        program.shared_bytes = round_up(program.shared_bytes, 16);
        for entity in program.names.values_mut() {
            if matches!(entity, Entity::Shared(u64::MAX)) {
                *entity = Entity::Shared(program.shared_bytes);
            }
        }
        Ok(program)
    }

    /// By name.
    pub fn function(&self, name: &str) -> Result<&Function<'a>> {
        match self.names.get(name) {
            Some(Entity::Function(index)) => Ok(&self.functions[*index]),
            _ => Err(format!("no function {name}")),
        }
    }

    /// What `name` means in a scope of `function`.
    pub fn lookup<'s>(&'s self, function: &'s Function<'a>, scope: usize, name: &str) -> Option<&'s Entity> {
        let mut at = Some(scope);
        while let Some(index) = at {
            if let Some(found) = function.scopes[index].names.get(name) {
                return Some(found);
            }
            at = function.scopes[index].parent;
        }
        self.names.get(name)
    }

    fn variable(&mut self, variable: &Variable<'_>) -> Result<()> {
        for declarator in &variable.names {
            let (bytes, align) = size(variable, declarator)?;
            let entity = match variable.space.value {
                // Empty brackets: the dynamic part, whose place is known at the end.
                Space::Shared if bytes == 0 => Entity::Shared(u64::MAX),
                Space::Shared => Entity::Shared(place(&mut self.shared_bytes, bytes, align)),
                Space::Global | Space::Const => {
                    let mut end = self.globals.len() as u64;
                    let at = place(&mut end, bytes, align.max(16));
                    self.globals.resize(end as usize, 0);
                    if let Some(initializer) = &declarator.initializer {
                        let mut to = at as usize;
                        self.initialize(initializer, variable.ty.value, &mut to)?;
                    }
                    Entity::Global(GLOBALS + at)
                }
                other => return Err(format!("a variable in {other:?} is not known here")),
            };
            self.names.insert(declarator.name.value.to_owned(), entity);
        }
        Ok(())
    }

    fn initialize(&mut self, initializer: &Initializer<'_>, ty: Type, at: &mut usize) -> Result<()> {
        match initializer {
            Initializer::Value(expression) => {
                let bytes = (ty.bits() / 8) as usize;
                let value = super::operand::immediate(expression, Some(ty))?;
                self.globals[*at..*at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                *at += bytes;
            }
            Initializer::List(list, _) => {
                for each in list {
                    self.initialize(each, ty, at)?;
                }
            }
            Initializer::Field(..) => return Err("a texture's fields are not known here".to_owned()),
        }
        Ok(())
    }
}

impl Function<'_> {
    /// Bytes of each parameter.
    pub fn parameter_sizes(&self) -> Vec<usize> {
        let size = |it: &Entity| if let Entity::Param { bytes, .. } = it { *bytes as usize } else { 0 };
        self.parameters.iter().map(size).collect()
    }

    /// The arguments laid out as the frame's parameters.
    pub fn argument_bytes(&self, values: &[Vec<u8>]) -> Result<Vec<u8>> {
        if values.len() != self.parameters.len() {
            return Err(format!("{} takes {} arguments", self.name, self.parameters.len()));
        }
        let mut all = vec![0; self.param_bytes as usize];
        for (value, parameter) in values.iter().zip(&self.parameters) {
            let Entity::Param { offset, .. } = parameter else { return Err("not in .param".to_owned()) };
            all[*offset as usize..][..value.len()].copy_from_slice(value);
        }
        Ok(all)
    }
}

struct Builder<'s, 'a> {
    function: Function<'a>,
    shared_bytes: &'s mut u64,
}

impl<'a> Builder<'_, 'a> {
    fn build(ast: &ast::Function<'a>, shared_bytes: &mut u64) -> Result<Function<'a>> {
        let function = Function {
            name: ast.name.value,
            steps: vec![],
            scopes: vec![Scope::default()],
            registers: vec![],
            local_bytes: 0,
            param_bytes: 0,
            parameters: vec![],
            returns: vec![],
        };
        let mut builder = Builder { function, shared_bytes };
        let entities = |builder: &mut Builder<'_, 'a>, list: &[Variable<'a>]| -> Result<Vec<Entity>> {
            list.iter()
                .map(|variable| {
                    builder.variable(0, variable)?;
                    Ok(builder.function.scopes[0].names[variable.names[0].name.value].clone())
                })
                .collect()
        };
        builder.function.parameters = entities(&mut builder, &ast.parameters)?;
        builder.function.returns = entities(&mut builder, &ast.returns)?;
        if let Some(body) = &ast.body {
            builder.block(0, &body.statements)?;
        }
        Ok(builder.function)
    }

    fn block(&mut self, scope: usize, statements: &[Statement<'a>]) -> Result<()> {
        for statement in statements {
            match statement {
                Statement::Variable(variable) => self.variable(scope, variable)?,
                Statement::Label(label) => {
                    let entity = Entity::Label(self.function.steps.len());
                    self.function.scopes[scope].names.insert(label.value.to_owned(), entity);
                }
                Statement::Instruction(instruction) => {
                    self.function.steps.push(Step { instruction: instruction.clone(), scope });
                }
                Statement::Block(block) => {
                    let inner = self.function.scopes.len();
                    self.function.scopes.push(Scope { parent: Some(scope), names: HashMap::new() });
                    self.block(inner, &block.statements)?;
                }
                Statement::BranchTargets(targets) => {
                    let list = targets.targets.iter().map(|it| it.value.to_owned()).collect();
                    self.declare(scope, targets.name.value.to_owned(), Entity::Targets(list));
                }
                Statement::CallPrototype(it) => {
                    self.declare(scope, it.name.value.to_owned(), Entity::Prototype);
                }
                Statement::CallTargets(it) => {
                    self.declare(scope, it.name.value.to_owned(), Entity::Prototype);
                }
                Statement::Location(_) | Statement::Pragma(_) => {}
                Statement::Invalid(_) => return Err("a statement could not be read".to_owned()),
            }
        }
        Ok(())
    }

    fn declare(&mut self, scope: usize, name: String, entity: Entity) {
        self.function.scopes[scope].names.insert(name, entity);
    }

    fn variable(&mut self, scope: usize, variable: &Variable<'a>) -> Result<()> {
        for declarator in &variable.names {
            let ty = variable.ty.value;
            for name in names(declarator) {
                let (bytes, align) = size(variable, declarator)?;
                let entity = match variable.space.value {
                    Space::Register if variable.vector.is_some() => {
                        return Err("vector registers are not known here".to_owned());
                    }
                    Space::Register => {
                        self.function.registers.push(ty.bits());
                        Entity::Register { slot: self.function.registers.len() - 1, ty }
                    }
                    Space::Param => {
                        let offset = place(&mut self.function.param_bytes, bytes, align);
                        Entity::Param { offset, bytes }
                    }
                    Space::Local => Entity::Local(place(&mut self.function.local_bytes, bytes, align)),
                    Space::Shared => Entity::Shared(place(self.shared_bytes, bytes, align)),
                    other => return Err(format!("a variable in {other:?} inside a function")),
                };
                self.declare(scope, name, entity);
            }
        }
        Ok(())
    }
}
