//! Several PTX modules become one program: whose name means what, and where variables' first bytes come from.
//!
//! `.visible`, `.weak` and `.common` names are shared by all sources, others belong to their own; a strong definition
//! wins over weak ones, two strong ones are an error; what is declared and defined nowhere fails its users only.

use std::collections::HashMap;

use ptx::ast::{
    BinaryOperator, Declarator, Expression, ExpressionKind, Function, FunctionKind, Initializer, Item,
    Linkage, Space, Statement, Type, Variable,
};
use ptx::{Constant, LineIndex, Parsed, Span};

use super::indirect;
use super::layout::{self, Layout};
use super::reference;
use crate::ir::{FuncId, GlobalId, SharedId};
use crate::lines::{Location, Text};
use crate::program::{Cause, Diagnostic, Global, GlobalSpace, Relocation, Shared, Source, Target};
use crate::texture::Opaque;

/// Initialisers place bytes at most this far into a variable; only the text's own length lets them be many.
const MAX_INIT_BYTES: u64 = 1 << 28;

/// One parsed source.
pub(crate) struct Unit<'a> {
    pub(crate) name: &'a str,
    pub(crate) parsed: Parsed<'a>,
    pub(crate) lines: LineIndex<'a>,
}

impl<'a> Unit<'a> {
    /// 75 of `.target sm_75`; 0 without one.
    pub(crate) fn target(&self) -> u32 {
        let digits = |word: &str| -> Option<u32> {
            word.strip_prefix("sm_")?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
        };
        self.parsed.module.targets.iter().find_map(|word| digits(word.value)).unwrap_or(0)
    }

    pub(crate) fn new(source: &'a Source) -> Self {
        Unit { name: &source.name, parsed: ptx::parse(&source.text), lines: LineIndex::new(&source.text) }
    }

    /// What reports about running kernels need of the source.
    pub(crate) fn text(&self) -> Text {
        let mut text =
            Text { name: self.name.to_owned(), starts: self.lines.starts().to_vec(), ..Text::default() };
        text.bytes = self.lines.bytes();
        for item in &self.parsed.module.items {
            match item {
                Item::File(file) => text.files.push((file.index, file.name.value.to_owned())),
                Item::Function(function) => {
                    text.locations.push((function.span.start, None));
                    if let Some(body) = &function.body {
                        locate(&body.statements, &mut text);
                    }
                }
                _ => {}
            }
        }
        text
    }

    pub(crate) fn diagnostic(&self, span: Span, function: Option<&str>, message: String) -> Diagnostic {
        let at = self.lines.position(span.start);
        Diagnostic {
            source: self.name.to_owned(),
            line: at.line,
            column: at.column,
            function: function.map(str::to_owned),
            message,
            cause: Cause::Code,
        }
    }
}

/// Notes every `.loc`.
fn locate(statements: &[Statement<'_>], text: &mut Text) {
    for statement in statements {
        match statement {
            Statement::Location(it) => {
                let number = |line| u32::try_from(line).unwrap_or(u32::MAX);
                let inlined_at = it.inlined_at.map(|(file, line, _)| (file, number(line)));
                let location = Location { file: it.file, line: number(it.line), inlined_at };
                text.locations.push((it.span.start, Some(location)));
            }
            Statement::Block(block) => locate(&block.statements, text),
            _ => {}
        }
    }
}

/// What a module-scope name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Symbol<'i, 'a> {
    Global(GlobalId),
    Shared(SharedId),
    Function(FuncId),
    /// Declared, defined in no source: a function of the device runtime, or a mistake of whoever uses it.
    External(&'i Function<'a>),
    /// A variable declared `.extern` that no source defines.
    Undefined,
    /// By its index among the kernels.
    Kernel(u32),
}

/// A device function with a body.
#[derive(Clone, Copy)]
pub(crate) struct Defined<'i, 'a> {
    pub(crate) unit: usize,
    pub(crate) ast: &'i Function<'a>,
}

/// Variables of the program; functions add their own static ones.
#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) globals: Vec<Global>,
    pub(crate) shared: Vec<Shared>,
}

impl Storage {
    pub(crate) fn add_shared(&mut self, name: String, layout: Layout, is_extern: bool) -> SharedId {
        self.shared.push(Shared { name, bytes: layout.bytes, align: layout.align, is_extern });
        SharedId(self.shared.len() as u32 - 1)
    }

    pub(crate) fn add_global(&mut self, name: String, layout: Layout, variable: &Variable<'_>) -> GlobalId {
        let space =
            if variable.space.value == Space::Const { GlobalSpace::Const } else { GlobalSpace::Global };
        self.globals.push(Global {
            name,
            space,
            bytes: layout.bytes,
            align: layout.align,
            init: vec![],
            relocations: vec![],
            opaque: None,
            managed: variable.attributes.iter().any(|attribute| attribute.name.value == "managed"),
            visible: matches!(variable.linkage, Linkage::Visible | Linkage::Weak | Linkage::Common),
        });
        GlobalId(self.globals.len() as u32 - 1)
    }
}

/// All names of all sources.
pub(crate) struct Linked<'i, 'a> {
    pub(crate) units: &'i [Unit<'a>],
    names: Vec<HashMap<&'a str, Symbol<'i, 'a>>>,
    /// By [`FuncId`].
    pub(crate) functions: Vec<Defined<'i, 'a>>,
    pub(crate) kernels: Vec<Defined<'i, 'a>>,
    pub(crate) storage: Storage,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Who defines a shared name, and whether others may.
struct Export<'i, 'a> {
    symbol: Symbol<'i, 'a>,
    linkage: Linkage,
    /// Index of the kernel, to replace a weak one.
    kernel: Option<usize>,
}

impl<'i, 'a> Linked<'i, 'a> {
    pub(crate) fn new(units: &'i [Unit<'a>]) -> Self {
        let mut linked = Linked {
            units,
            names: vec![HashMap::new(); units.len()],
            functions: vec![],
            kernels: vec![],
            storage: Storage::default(),
            diagnostics: vec![],
        };
        let mut exports: HashMap<&'a str, Export<'i, 'a>> = HashMap::new();
        let mut initialised: Vec<(GlobalId, usize, &'i Variable<'a>, &'i Declarator<'a>)> = vec![];
        for (index, unit) in units.iter().enumerate() {
            for item in &unit.parsed.module.items {
                match item {
                    Item::Variable(variable)
                        if variable.linkage != Linkage::Extern || is_shared(variable) =>
                    {
                        linked.define_variable(index, variable, &mut exports, &mut initialised);
                    }
                    Item::Function(function) if function.body.is_some() => {
                        linked.define_function(index, function, &mut exports);
                    }
                    _ => {}
                }
            }
        }
        for (index, unit) in units.iter().enumerate() {
            for item in &unit.parsed.module.items {
                linked.declare(index, item, &exports);
            }
        }
        for (id, unit, variable, name) in initialised {
            if let Some(initializer) = &name.initializer {
                linked.initialise(id, unit, variable, name, initializer);
            }
        }
        linked
    }

    pub(crate) fn symbol(&self, unit: usize, name: &str) -> Option<Symbol<'i, 'a>> {
        self.names[unit].get(name).copied()
    }

    fn error(&mut self, unit: usize, span: Span, message: impl Into<String>) {
        let diagnostic = self.units[unit].diagnostic(span, None, message.into());
        self.diagnostics.push(diagnostic);
    }

    fn duplicate(&mut self, unit: usize, span: Span, name: &str) {
        let message = format!("'{name}' is defined in more than one source");
        let diagnostic = self.units[unit].diagnostic(span, None, message);
        self.diagnostics.push(Diagnostic { cause: Cause::Duplicate, ..diagnostic });
    }

    fn define_variable(
        &mut self,
        unit: usize,
        variable: &'i Variable<'a>,
        exports: &mut HashMap<&'a str, Export<'i, 'a>>,
        initialised: &mut Vec<(GlobalId, usize, &'i Variable<'a>, &'i Declarator<'a>)>,
    ) {
        for name in &variable.names {
            let text = name.name.value;
            let opaque = reference::kind(variable);
            let layout = match layout::layout(variable, name).and_then(|plain| match opaque {
                Some(_) => reference::layout(name),
                None => Ok(plain),
            }) {
                Ok(layout) => layout,
                Err((span, message)) => {
                    self.error(unit, span, message);
                    continue;
                }
            };
            if self.names[unit].contains_key(text) {
                self.error(unit, name.name.span, format!("'{text}' is defined twice"));
                continue;
            }
            let symbol = match variable.space.value {
                Space::Shared => {
                    let is_extern = variable.linkage == Linkage::Extern;
                    Symbol::Shared(self.storage.add_shared(text.to_owned(), layout, is_extern))
                }
                Space::Global | Space::Const | Space::Texture => {
                    if let Some(symbol) = self.merge(unit, variable, name, layout, exports) {
                        self.names[unit].insert(text, symbol);
                        continue;
                    }
                    let id = self.storage.add_global(text.to_owned(), layout, variable);
                    match opaque {
                        Some(opaque) => self.initialise_reference(id, unit, opaque, name),
                        None => initialised.push((id, unit, variable, name)),
                    }
                    Symbol::Global(id)
                }
                _ => {
                    self.error(
                        unit,
                        name.name.span,
                        format!("'{text}': state space not allowed at module scope"),
                    );
                    continue;
                }
            };
            self.names[unit].insert(text, symbol);
            if !matches!(variable.linkage, Linkage::Local | Linkage::Extern) {
                let replaced = exports.get(text).is_none_or(|export| is_weak(export.linkage));
                if replaced {
                    exports.insert(text, Export { symbol, linkage: variable.linkage, kernel: None });
                }
            }
        }
    }

    /// A `.weak` or `.common` variable that another source has as well is the same variable.
    fn merge(
        &mut self,
        unit: usize,
        variable: &Variable<'a>,
        name: &Declarator<'a>,
        layout: Layout,
        exports: &HashMap<&'a str, Export<'i, 'a>>,
    ) -> Option<Symbol<'i, 'a>> {
        if matches!(variable.linkage, Linkage::Local | Linkage::Extern) {
            return None;
        }
        let export = exports.get(name.name.value)?;
        let text = name.name.value;
        match (export.symbol, is_weak(export.linkage), is_weak(variable.linkage)) {
            (Symbol::Global(id), _, true) => {
                let global = &mut self.storage.globals[id.index()];
                global.bytes = global.bytes.max(layout.bytes);
                global.align = global.align.max(layout.align);
                Some(export.symbol)
            }
            (_, true, false) => None,
            _ => {
                self.duplicate(unit, name.name.span, text);
                Some(export.symbol)
            }
        }
    }

    fn define_function(
        &mut self,
        unit: usize,
        function: &'i Function<'a>,
        exports: &mut HashMap<&'a str, Export<'i, 'a>>,
    ) {
        let text = function.name.value;
        if self.names[unit].contains_key(text) {
            return self.error(unit, function.name.span, format!("'{text}' is defined twice"));
        }
        let is_entry = function.kind == FunctionKind::Entry;
        // Kernels are launched by name from outside: all of them are shared names.
        let shared = is_entry || !matches!(function.linkage, Linkage::Local | Linkage::Extern);
        let mut kernel = None;
        if let Some(export) = exports.get(text).filter(|_| shared) {
            match (is_weak(export.linkage), is_weak(function.linkage)) {
                (_, true) => {
                    self.names[unit].insert(text, export.symbol);
                    return;
                }
                (true, false) => kernel = export.kernel,
                (false, false) => {
                    return self.duplicate(unit, function.name.span, text);
                }
            }
        }
        let defined = Defined { unit, ast: function };
        let symbol = if is_entry {
            let index = kernel.unwrap_or(self.kernels.len());
            match self.kernels.get_mut(index) {
                Some(weak) => *weak = defined,
                None => self.kernels.push(defined),
            }
            kernel = Some(index);
            Symbol::Kernel(index as u32)
        } else {
            self.functions.push(defined);
            Symbol::Function(FuncId(self.functions.len() as u32 - 1))
        };
        self.names[unit].insert(text, symbol);
        if shared {
            exports.insert(text, Export { symbol, linkage: function.linkage, kernel });
        }
    }

    /// Names that a source only declares, and its aliases.
    fn declare(&mut self, unit: usize, item: &'i Item<'a>, exports: &HashMap<&'a str, Export<'i, 'a>>) {
        match item {
            Item::Variable(variable) if variable.linkage == Linkage::Extern => {
                for name in &variable.names {
                    let text = name.name.value;
                    let symbol = exports.get(text).map_or(Symbol::Undefined, |export| export.symbol);
                    self.names[unit].entry(text).or_insert(symbol);
                }
            }
            // A strong definition elsewhere takes the place of this source's weak one.
            Item::Variable(variable) if is_weak(variable.linkage) => {
                for name in &variable.names {
                    if let Some(export) = exports.get(name.name.value) {
                        self.names[unit].insert(name.name.value, export.symbol);
                    }
                }
            }
            Item::Function(function) if function.body.is_none() => {
                let text = function.name.value;
                let symbol = exports.get(text).map_or(Symbol::External(function), |export| export.symbol);
                self.names[unit].entry(text).or_insert(symbol);
            }
            Item::Function(function) if is_weak(function.linkage) => {
                if let Some(export) = exports.get(function.name.value) {
                    self.names[unit].insert(function.name.value, export.symbol);
                }
            }
            Item::Alias(alias) => match self.symbol(unit, alias.target.value) {
                Some(symbol) => {
                    self.names[unit].insert(alias.name.value, symbol);
                }
                None => {
                    self.error(unit, alias.target.span, format!("'{}' is not defined", alias.target.value))
                }
            },
            _ => {}
        }
    }

    fn initialise_reference(&mut self, id: GlobalId, unit: usize, opaque: Opaque, name: &Declarator<'a>) {
        let global = &mut self.storage.globals[id.index()];
        global.opaque = Some(opaque);
        match reference::init(opaque, name, global.bytes) {
            Ok(init) => global.init = init,
            Err((span, message)) => self.error(unit, span, message),
        }
    }

    /// Writes the initialiser of a variable into its bytes.
    pub(crate) fn initialise(
        &mut self,
        id: GlobalId,
        unit: usize,
        variable: &Variable<'a>,
        name: &Declarator<'a>,
        initializer: &Initializer<'a>,
    ) {
        let bytes = self.storage.globals[id.index()].bytes;
        let mut dimensions = match layout::dimensions(name) {
            Ok(dimensions) => dimensions,
            Err((span, message)) => return self.error(unit, span, message),
        };
        dimensions.extend(variable.vector.map(u64::from));
        let mut image = Image { init: vec![], relocations: vec![], bytes, ty: variable.ty.value };
        let filled = image.fill(self, unit, initializer, 0, &dimensions);
        let global = &mut self.storage.globals[id.index()];
        global.init = image.init;
        global.relocations = image.relocations;
        if let Err((span, message)) = filled {
            self.error(unit, span, message);
        }
    }
}

fn is_shared(variable: &Variable<'_>) -> bool {
    variable.space.value == Space::Shared
}

fn is_weak(linkage: Linkage) -> bool {
    matches!(linkage, Linkage::Weak | Linkage::Common)
}

/// The first bytes of a variable, while they are collected.
struct Image {
    init: Vec<u8>,
    relocations: Vec<Relocation>,
    bytes: u64,
    ty: Type,
}

impl Image {
    /// Writes `initializer` at `offset` as an array of `dimensions`.
    fn fill(
        &mut self,
        linked: &Linked<'_, '_>,
        unit: usize,
        initializer: &Initializer<'_>,
        offset: u64,
        dimensions: &[u64],
    ) -> Result<(), layout::Problem> {
        let element = layout::scalar_bytes(self.ty);
        match initializer {
            Initializer::Value(value) => self.value(linked, unit, value, offset),
            Initializer::Field(name, _) => {
                Err((name.span, "only textures and samplers have fields".to_owned()))
            }
            Initializer::List(list, span) => {
                let inner = dimensions.get(1..).unwrap_or(&[]);
                // PTX also takes a flat list for an array of several dimensions.
                let is_flat = !list.iter().any(|it| matches!(it, Initializer::List(..)));
                let stride = if is_flat {
                    element
                } else {
                    inner.iter().fold(element, |bytes, &n| bytes.saturating_mul(n))
                };
                for (index, value) in list.iter().enumerate() {
                    let at = (index as u64).checked_mul(stride).and_then(|at| at.checked_add(offset));
                    let Some(at) = at else { return Err((*span, "too many initialisers".to_owned())) };
                    self.fill(linked, unit, value, at, inner)?;
                }
                Ok(())
            }
        }
    }

    fn value(
        &mut self,
        linked: &Linked<'_, '_>,
        unit: usize,
        value: &Expression<'_>,
        offset: u64,
    ) -> Result<(), layout::Problem> {
        let size = layout::scalar_bytes(self.ty);
        let end = offset.saturating_add(size);
        if end > self.bytes.max(size) {
            return Err((value.span, "more initialisers than the variable has room for".to_owned()));
        }
        if end > MAX_INIT_BYTES {
            return Err((value.span, "the initialiser is too large".to_owned()));
        }
        let bits = match value.constant() {
            Ok(constant) => bits_of(constant, self.ty),
            Err(ptx::NotConstant::Name) => {
                let address = Address::of(value, 1)?;
                if let Some(Symbol::Kernel(index)) = linked.symbol(unit, address.name) {
                    let number = indirect::kernel_address(index).wrapping_add_signed(address.addend);
                    u128::from(number >> address.mask.map_or(0, u64::trailing_zeros))
                } else {
                    let relocation = self.relocation(linked, unit, value, &address, offset)?;
                    self.relocations.push(relocation);
                    0
                }
            }
            Err(_) => return Err((value.span, "the expression has no value".to_owned())),
        };
        if self.init.len() < end as usize {
            self.init.resize(end as usize, 0);
        }
        self.init[offset as usize..end as usize].copy_from_slice(&bits.to_le_bytes()[..size as usize]);
        Ok(())
    }

    fn relocation(
        &self,
        linked: &Linked<'_, '_>,
        unit: usize,
        value: &Expression<'_>,
        address: &Address<'_>,
        offset: u64,
    ) -> Result<Relocation, layout::Problem> {
        let target = match linked.symbol(unit, address.name) {
            Some(Symbol::Global(id)) => Target::Global(id),
            Some(Symbol::Function(id)) => Target::Function(id),
            Some(_) => {
                return Err((value.span, format!("the address of '{}' is not constant", address.name)));
            }
            None => return Err((value.span, format!("'{}' is not defined", address.name))),
        };
        let (bytes, shift) = match address.mask {
            None => (layout::scalar_bytes(self.ty) as u8, 0),
            Some(mask) => (layout::scalar_bytes(self.ty) as u8, mask.trailing_zeros() as u8),
        };
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            return Err((value.span, "an address does not fit here".to_owned()));
        }
        Ok(Relocation { offset, bytes, target, addend: address.addend, shift })
    }
}

/// `generic(sym) + 8`, `0xff00(sym)`
struct Address<'e> {
    name: &'e str,
    addend: i64,
    mask: Option<u64>,
}

impl<'e> Address<'e> {
    fn of(value: &'e Expression<'_>, sign: i64) -> Result<Self, layout::Problem> {
        let constant = |value: &Expression<'_>| layout::number(value).map(|bits| bits as i64);
        match &value.kind {
            ExpressionKind::Name(name) if sign == 1 => Ok(Address { name, addend: 0, mask: None }),
            ExpressionKind::Generic(inner) => Address::of(inner, sign),
            ExpressionKind::Mask(mask, inner) if *mask != 0 => {
                Ok(Address { mask: Some(*mask), ..Address::of(inner, sign)? })
            }
            ExpressionKind::Binary(BinaryOperator::Add, left, right) => {
                let (inner, addend) = if right.constant().is_ok() {
                    (left, constant(right)?)
                } else {
                    (right, constant(left)?)
                };
                let inner = Address::of(inner, sign)?;
                Ok(Address { addend: inner.addend.wrapping_add(addend), ..inner })
            }
            ExpressionKind::Binary(BinaryOperator::Subtract, left, right) => {
                let inner = Address::of(left, sign)?;
                Ok(Address { addend: inner.addend.wrapping_sub(constant(right)?), ..inner })
            }
            _ => Err((value.span, "not a constant address".to_owned())),
        }
    }
}

/// The bits a constant has as a value of `ty`.
pub(crate) fn bits_of(constant: Constant, ty: Type) -> u128 {
    match (ty, constant) {
        (Type::F32, Constant::Single(bits)) => u128::from(bits),
        (Type::F32, other) => u128::from((other.double() as f32).to_bits()),
        (Type::F64, other) => u128::from(other.double().to_bits()),
        (_, Constant::Single(bits)) => u128::from(bits),
        (_, Constant::Double(value)) => u128::from(value.to_bits()),
        (_, Constant::Unsigned(value)) => u128::from(value),
        (_, Constant::Signed(value)) => value as i128 as u128,
    }
}
