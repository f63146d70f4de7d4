//! Several PTX modules become one program: whose name means what.
//!
//! `.visible`, `.weak` and `.common` names are shared by all sources, others belong to their own; a strong definition
//! wins over weak ones, two strong ones are an error; what is declared and defined nowhere fails its users only.
//! Bodies are not read here, but for those that declare variables of the module's storage.

mod initialiser;
mod unit;

use std::collections::HashMap;

use ptx::ast::{
    Block, Declarator, Directive, Function, FunctionKind, Item, Linkage, Space, Statement, Variable,
};
use ptx::{Skimmed, Span};

use super::layout::{self, Layout, Shape};
use super::{function, reference};
use crate::ir::{FuncId, GlobalId, SharedId};
use crate::lines::Lines;
use crate::program::{Cause, ClusterRules, Diagnostic, Global, GlobalSpace, Header, Shared, Target};
use crate::texture::Opaque;
pub(crate) use initialiser::bits_of;
use initialiser::{Image, write_function_addresses};
pub(crate) use unit::Unit;
use unit::module_errors;

/// What a module-scope name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Symbol {
    Global(GlobalId),
    Shared(SharedId),
    Function(FuncId),
    /// Declared, defined in no source: a function of the device runtime, or a mistake of whoever uses it. An index of
    /// [`Linked::externals`].
    External(u32),
    /// A variable declared `.extern` that no source defines.
    Undefined,
    /// By its index among the kernels.
    Kernel(u32),
}

/// Where a function stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defined {
    pub(crate) unit: usize,
    /// From its linkage to the end of its body.
    pub(crate) span: Span,
    pub(crate) name: Span,
}

/// A device function.
pub(crate) struct Device {
    pub(crate) defined: Defined,
    pub(crate) name: Box<str>,
    /// Parameters and results.
    pub(crate) signature: Result<(Vec<Shape>, Vec<Shape>), layout::Problem>,
}

/// A variable that a body declares in the module's storage.
pub(crate) struct Inside {
    pub(crate) id: GlobalId,
    /// What is wrong with its initialiser.
    pub(crate) problem: Option<layout::Problem>,
}

/// What lowering asks of a linked module.
pub(crate) struct Linked {
    pub(crate) units: Vec<Unit>,
    names: Vec<Names>,
    /// By [`FuncId`].
    pub(crate) functions: Vec<Device>,
    pub(crate) externals: Vec<Device>,
    /// What stands in front of each kernel, and where it stands.
    pub(crate) kernels: Vec<Header>,
    pub(crate) entries: Vec<Defined>,
    /// Those of module scope; functions add their own.
    pub(crate) shared: Vec<Shared>,
    /// By source and by where the name stands.
    pub(crate) inside: HashMap<(usize, u32), Inside>,
    /// Functions whose address is in a variable.
    pub(crate) pointed: Vec<FuncId>,
}

type Names = HashMap<Box<str>, Symbol>;

impl Linked {
    pub(crate) fn symbol(&self, unit: usize, name: &str) -> Option<Symbol> {
        self.names[unit].get(name).copied()
    }
}

/// Skims the texts and links them: what lowering asks, and all variables.
pub(crate) fn link(lines: &Lines) -> Result<(Linked, Vec<Global>), Vec<Diagnostic>> {
    let skimmed: Vec<Skimmed<'_>> = lines.sources().iter().map(|source| ptx::skim(&source.text)).collect();
    let units = skimmed.iter().enumerate();
    let broken: Vec<Diagnostic> =
        units.flat_map(|(unit, it)| module_errors(lines, unit, &it.parsed)).collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    Linker::new(lines, &skimmed).link()
}

impl Lines {
    pub(crate) fn diagnostic(
        &self,
        unit: usize,
        span: Span,
        function: Option<&str>,
        message: String,
    ) -> Diagnostic {
        let at = self.position(unit, span);
        Diagnostic {
            source: self.sources()[unit].name.clone(),
            line: at.line,
            column: at.column,
            function: function.map(str::to_owned),
            message,
            cause: Cause::Code,
        }
    }
}

/// A variable whose initialiser is still to be written.
struct Initialised<'i, 'a> {
    id: GlobalId,
    unit: usize,
    variable: &'i Variable<'a>,
    name: &'i Declarator<'a>,
}

/// All names of all sources, while they are collected.
struct Linker<'i, 'a> {
    lines: &'i Lines,
    skimmed: &'i [Skimmed<'a>],
    /// Our device runtime among the sources.
    runtime: Option<usize>,
    names: Vec<Names>,
    functions: Vec<(usize, &'i Function<'a>)>,
    externals: Vec<(usize, &'i Function<'a>)>,
    kernels: Vec<(usize, &'i Function<'a>)>,
    globals: Vec<Global>,
    shared: Vec<Shared>,
    inside: HashMap<(usize, u32), Inside>,
    initialised: Vec<Initialised<'i, 'a>>,
    exports: HashMap<&'a str, Export>,
    diagnostics: Vec<Diagnostic>,
}

/// Who defines a shared name, and whether others may.
#[derive(Clone, Copy)]
struct Export {
    symbol: Symbol,
    linkage: Linkage,
    /// Index of the kernel, to replace a weak one.
    kernel: Option<usize>,
    /// Of our device runtime.
    is_ours: bool,
}

impl<'i, 'a> Linker<'i, 'a> {
    fn new(lines: &'i Lines, skimmed: &'i [Skimmed<'a>]) -> Self {
        Linker {
            lines,
            skimmed,
            runtime: lines.sources().iter().position(|it| it.name == crate::device_runtime::SOURCE),
            names: vec![HashMap::new(); skimmed.len()],
            functions: vec![],
            externals: vec![],
            kernels: vec![],
            globals: vec![],
            shared: vec![],
            inside: HashMap::new(),
            initialised: vec![],
            exports: HashMap::new(),
            diagnostics: vec![],
        }
    }

    fn link(mut self) -> Result<(Linked, Vec<Global>), Vec<Diagnostic>> {
        let units: Vec<Unit> = self.skimmed.iter().map(|it| Unit::new(&it.parsed.module)).collect();
        for (index, (unit, skimmed)) in units.iter().zip(self.skimmed).enumerate() {
            let mut refused = vec![];
            for item in &skimmed.parsed.module.items {
                unit.dialect.item(item, &mut refused);
            }
            for (span, message) in refused {
                self.error(index, span, message);
            }
        }
        // The device runtime of ours is the one that counts.
        let runtime = self.runtime;
        let others = (0..self.skimmed.len()).filter(|&index| Some(index) != runtime);
        for index in runtime.into_iter().chain(others) {
            let unit = &self.skimmed[index];
            for item in &unit.parsed.module.items {
                match item {
                    Item::Variable(variable)
                        if variable.linkage != Linkage::Extern || is_shared(variable) =>
                    {
                        self.define_variable(index, variable);
                    }
                    Item::Function(function) if function.body.is_some() => {
                        self.define_function(index, function);
                    }
                    _ => {}
                }
            }
        }
        for (index, unit) in self.skimmed.iter().enumerate() {
            for item in &unit.parsed.module.items {
                self.declare(index, item);
            }
        }
        for Initialised { id, unit, variable, name } in std::mem::take(&mut self.initialised) {
            if let Err((span, message)) = self.initialise(id, unit, variable, name) {
                self.error(unit, span, message);
            }
        }
        for (unit, skimmed) in self.skimmed.iter().enumerate() {
            self.declare_inside(unit, skimmed);
        }
        if self.diagnostics.is_empty() { Ok(self.finish(units)) } else { Err(self.diagnostics) }
    }

    fn finish(mut self, units: Vec<Unit>) -> (Linked, Vec<Global>) {
        let relocations = self.globals.iter().flat_map(|global| &global.relocations);
        let pointed = relocations.filter_map(|it| match it.target {
            Target::Function(id) => Some(id),
            Target::Global(_) => None,
        });
        let pointed = pointed.collect();
        self.globals.iter_mut().for_each(write_function_addresses);
        let kernels = self.kernels.iter().map(|&(unit, ast)| header(units[unit].target, ast)).collect();
        let linked = Linked {
            units,
            names: self.names,
            functions: self.functions.into_iter().map(device).collect(),
            externals: self.externals.into_iter().map(device).collect(),
            kernels,
            entries: self.kernels.into_iter().map(defined).collect(),
            shared: self.shared,
            inside: self.inside,
            pointed,
        };
        (linked, self.globals)
    }

    fn symbol(&self, unit: usize, name: &str) -> Option<Symbol> {
        self.names[unit].get(name).copied()
    }

    fn enter(&mut self, unit: usize, name: &str, symbol: Symbol) {
        self.names[unit].insert(name.into(), symbol);
    }

    fn add_global(&mut self, name: String, layout: Layout, variable: &Variable<'_>) -> GlobalId {
        let space =
            if variable.space.value == Space::Const { GlobalSpace::Const } else { GlobalSpace::Global };
        self.globals.push(Global {
            name,
            space,
            bytes: layout.bytes,
            align: layout.align,
            element: layout.element,
            init: vec![],
            relocations: vec![],
            opaque: None,
            managed: variable.attributes.iter().any(|attribute| attribute.name.value == "managed"),
            visible: matches!(variable.linkage, Linkage::Visible | Linkage::Weak | Linkage::Common),
        });
        GlobalId(self.globals.len() as u32 - 1)
    }

    /// Gives the `.global` and `.const` variables of bodies their place: they live as long as the module, whichever
    /// kernel comes to them first.
    fn declare_inside(&mut self, unit: usize, skimmed: &Skimmed<'a>) {
        if skimmed.declaring.is_empty() {
            return;
        }
        for function in skimmed.parsed.module.functions() {
            let Some(body) = &function.body else { continue };
            if skimmed.declaring.binary_search(&body.span.start).is_err() {
                continue;
            }
            let text = &self.lines.sources()[unit].text;
            let parsed = ptx::parse_at(text, function.span);
            let bodies = parsed.module.functions().filter_map(|it| it.body.as_ref());
            bodies.for_each(|body| self.declare_in_block(unit, function.name.value, body));
        }
    }

    fn declare_in_block(&mut self, unit: usize, function: &str, block: &Block<'_>) {
        for statement in &block.statements {
            match statement {
                Statement::Block(block) => self.declare_in_block(unit, function, block),
                Statement::Variable(variable)
                    if matches!(variable.space.value, Space::Global | Space::Const)
                        && reference::kind(variable).is_none() =>
                {
                    for name in &variable.names {
                        // What is wrong with its size is told when the function is lowered.
                        let Ok(layout) = layout::layout(variable, name) else { continue };
                        let full = format!("{function}::{}", name.name.value);
                        let id = self.add_global(full, layout, variable);
                        let problem = self.initialise(id, unit, variable, name).err();
                        self.inside.insert((unit, name.name.span.start), Inside { id, problem });
                    }
                }
                _ => {}
            }
        }
    }

    fn error(&mut self, unit: usize, span: Span, message: impl Into<String>) {
        let diagnostic = self.lines.diagnostic(unit, span, None, message.into());
        self.diagnostics.push(diagnostic);
    }

    fn duplicate(&mut self, unit: usize, span: Span, name: &str) {
        let message = format!("'{name}' is defined in more than one source");
        let diagnostic = self.lines.diagnostic(unit, span, None, message);
        self.diagnostics.push(Diagnostic { cause: Cause::Duplicate, ..diagnostic });
    }

    fn define_variable(&mut self, unit: usize, variable: &'i Variable<'a>) {
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
                    Symbol::Shared(add_shared(&mut self.shared, text.to_owned(), layout, is_extern))
                }
                Space::Global | Space::Const | Space::Texture => {
                    if let Some(symbol) = self.merge(unit, variable, name, layout) {
                        self.enter(unit, text, symbol);
                        continue;
                    }
                    let id = self.add_global(text.to_owned(), layout, variable);
                    match opaque {
                        Some(opaque) => self.initialise_reference(id, unit, opaque, name),
                        None => self.initialised.push(Initialised { id, unit, variable, name }),
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
            self.enter(unit, text, symbol);
            if !matches!(variable.linkage, Linkage::Local | Linkage::Extern) {
                let replaced = self.exports.get(text).is_none_or(|export| is_weak(export.linkage));
                if replaced {
                    self.exports.insert(
                        text,
                        Export { symbol, linkage: variable.linkage, kernel: None, is_ours: false },
                    );
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
    ) -> Option<Symbol> {
        if matches!(variable.linkage, Linkage::Local | Linkage::Extern) {
            return None;
        }
        let export = *self.exports.get(name.name.value)?;
        let text = name.name.value;
        match (export.symbol, is_weak(export.linkage), is_weak(variable.linkage)) {
            (Symbol::Global(id), _, true) => {
                let global = &mut self.globals[id.index()];
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

    fn define_function(&mut self, unit: usize, function: &'i Function<'a>) {
        let text = function.name.value;
        if self.names[unit].contains_key(text) {
            return self.error(unit, function.name.span, format!("'{text}' is defined twice"));
        }
        let is_entry = function.kind == FunctionKind::Entry;
        // Kernels are launched by name from outside: all of them are shared names.
        let shared = is_entry || !matches!(function.linkage, Linkage::Local | Linkage::Extern);
        let mut kernel = None;
        if let Some(export) = self.exports.get(text).copied().filter(|_| shared) {
            match (is_weak(export.linkage), is_weak(function.linkage)) {
                (_, true) => {
                    return self.enter(unit, text, export.symbol);
                }
                _ if export.is_ours => return self.enter(unit, text, export.symbol),
                (true, false) => kernel = export.kernel,
                (false, false) => {
                    return self.duplicate(unit, function.name.span, text);
                }
            }
        }
        let defined = (unit, function);
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
        self.enter(unit, text, symbol);
        if shared {
            let is_ours = self.runtime == Some(unit);
            self.exports.insert(text, Export { symbol, linkage: function.linkage, kernel, is_ours });
        }
    }

    /// Names that a source only declares, and its aliases.
    fn declare(&mut self, unit: usize, item: &'i Item<'a>) {
        match item {
            Item::Variable(variable) if variable.linkage == Linkage::Extern => {
                for name in &variable.names {
                    let text = name.name.value;
                    let symbol = self.exports.get(text).map_or(Symbol::Undefined, |export| export.symbol);
                    self.names[unit].entry(text.into()).or_insert(symbol);
                }
            }
            // A strong definition elsewhere takes the place of this source's weak one.
            Item::Variable(variable) if is_weak(variable.linkage) => {
                for name in &variable.names {
                    if let Some(export) = self.exports.get(name.name.value) {
                        self.enter(unit, name.name.value, export.symbol);
                    }
                }
            }
            Item::Function(function) if function.body.is_none() => {
                let text = function.name.value;
                if self.names[unit].contains_key(text) {
                    return;
                }
                let symbol = match self.exports.get(text) {
                    Some(export) => export.symbol,
                    None => {
                        self.externals.push((unit, function));
                        Symbol::External(self.externals.len() as u32 - 1)
                    }
                };
                self.enter(unit, text, symbol);
            }
            Item::Function(function) if is_weak(function.linkage) => {
                if let Some(export) = self.exports.get(function.name.value) {
                    self.enter(unit, function.name.value, export.symbol);
                }
            }
            Item::Alias(alias) => match self.symbol(unit, alias.target.value) {
                Some(symbol) => self.enter(unit, alias.name.value, symbol),
                None => {
                    self.error(unit, alias.target.span, format!("'{}' is not defined", alias.target.value))
                }
            },
            _ => {}
        }
    }

    fn initialise_reference(&mut self, id: GlobalId, unit: usize, opaque: Opaque, name: &Declarator<'a>) {
        let global = &mut self.globals[id.index()];
        global.opaque = Some(opaque);
        match reference::init(opaque, name, global.bytes) {
            Ok(init) => global.init = init,
            Err((span, message)) => self.error(unit, span, message),
        }
    }

    /// Writes the initialiser of a variable into its bytes.
    fn initialise(
        &mut self,
        id: GlobalId,
        unit: usize,
        variable: &Variable<'_>,
        name: &Declarator<'_>,
    ) -> Result<(), layout::Problem> {
        let Some(initializer) = &name.initializer else { return Ok(()) };
        let bytes = self.globals[id.index()].bytes;
        let mut dimensions = layout::dimensions(name)?;
        dimensions.extend(variable.vector.map(u64::from));
        let mut image = Image { init: vec![], relocations: vec![], bytes, ty: variable.ty.value };
        let filled = image.fill(&self.names[unit], initializer, 0, &dimensions);
        let global = &mut self.globals[id.index()];
        global.init = image.init;
        global.relocations = image.relocations;
        filled
    }
}

/// Adds a shared variable to those of a module or of a program.
pub(crate) fn add_shared(
    shared: &mut Vec<Shared>,
    name: String,
    layout: Layout,
    is_extern: bool,
) -> SharedId {
    shared.push(Shared {
        name,
        bytes: layout.bytes,
        align: layout.align,
        element: layout.element,
        is_extern,
    });
    SharedId(shared.len() as u32 - 1)
}

fn defined((unit, ast): (usize, &Function<'_>)) -> Defined {
    Defined { unit, span: ast.span, name: ast.name.span }
}

fn device((unit, ast): (usize, &Function<'_>)) -> Device {
    Device { defined: defined((unit, ast)), name: ast.name.value.into(), signature: function::signature(ast) }
}

fn header(target: u32, ast: &Function<'_>) -> Header {
    // What is wrong with the parameters is told when the kernel is lowered.
    let (params, params_bytes) = function::kernel_params(ast).unwrap_or_default();
    let dimensions = |directive: &Directive<'_>| {
        let mut sizes = [1; 3];
        for (size, argument) in sizes.iter_mut().zip(&directive.arguments) {
            *size = layout::number(argument).ok().and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
        }
        sizes
    };
    let first = |name: &str| ast.directive(name).map(|it| dimensions(it)[0]);
    Header {
        name: ast.name.value.to_owned(),
        params,
        params_bytes,
        max_ntid: ast.directive("maxntid").map(dimensions),
        req_ntid: ast.directive("reqntid").map(dimensions),
        min_nctapersm: first("minnctapersm"),
        max_nreg: first("maxnreg"),
        cluster: ClusterRules {
            required: ast.directive("reqnctapercluster").map(dimensions),
            explicit: ast.directive("explicitcluster").is_some(),
            max_rank: first("maxclusterrank"),
        },
        target,
    }
}

fn is_shared(variable: &Variable<'_>) -> bool {
    variable.space.value == Space::Shared
}

fn is_weak(linkage: Linkage) -> bool {
    matches!(linkage, Linkage::Weak | Linkage::Common)
}
