//! AST → SSA IR: sources are linked, every kernel and the functions it needs are lowered, calls are inlined.
//!
//! One file per instruction family; `table` says which opcode goes where. A kernel with something unknown in it fails
//! alone and says what and where.

mod atomic;
mod barrier;
mod builder;
mod bulk;
mod call;
mod cluster;
mod compare;
mod control;
mod convert;
mod copy;
mod float;
mod function;
mod indirect;
mod inline;
mod instruction;
mod integer;
mod layout;
mod link;
mod logic;
mod matrix;
mod mbarrier;
mod memory;
mod mma;
mod operand;
mod print;
mod reference;
mod scope;
mod simplify;
mod special;
mod stack;
mod table;
mod tensor;
mod texture;
pub mod verify;
mod video;
mod video_simd;
mod warp;
mod wmma;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ptx::ast::Directive;

use crate::ir::{FuncId, Function, Op, SharedId, SharedLayout};
use crate::lines::Lines;
use crate::program::{ClusterRules, Diagnostic, Global, Kernel, Program, Source, Target};
use indirect::Candidate;
use link::{Defined, Linked, Unit};

/// Every opcode that is lowered, for the list in `docs/ptx.md`.
pub fn opcodes() -> impl Iterator<Item = &'static str> {
    table::TABLE.iter().map(|row| row.opcode)
}

/// Parses, links and lowers; see [`Program::load`].
pub fn program(sources: &[Source]) -> Result<Program, Vec<Diagnostic>> {
    let units: Vec<Unit<'_>> = sources.iter().map(Unit::new).collect();
    let broken: Vec<Diagnostic> = units.iter().flat_map(module_errors).collect();
    if !broken.is_empty() {
        return Err(broken);
    }
    let linked = Linked::new(&units);
    if !linked.diagnostics.is_empty() {
        return Err(linked.diagnostics);
    }
    Lowering { linked, functions: HashMap::new() }.program()
}

/// See [`Program::check_names`].
pub fn check_names(sources: &[Source]) -> Result<(), Vec<Diagnostic>> {
    let units: Vec<Unit<'_>> = sources.iter().map(Unit::new).collect();
    let mut found: Vec<Diagnostic> = units.iter().flat_map(module_errors).collect();
    if found.is_empty() {
        found = Linked::new(&units).diagnostics;
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// What the parser could not read outside of functions: the source as a whole is broken.
fn module_errors(unit: &Unit<'_>) -> Vec<Diagnostic> {
    // Items stand in the order of the text.
    let spans: Vec<ptx::Span> = unit.parsed.module.functions().map(|function| function.span).collect();
    let inside = |span: ptx::Span| {
        let behind = spans.partition_point(|it| it.start <= span.start);
        behind.checked_sub(1).is_some_and(|at| spans[at].contains(span))
    };
    let errors = unit.parsed.diagnostics.iter().filter(|it| it.severity == ptx::Severity::Error);
    let mut found: Vec<Diagnostic> = errors
        .filter(|it| !inside(it.span))
        .map(|it| unit.diagnostic(it.span, None, it.message.clone()))
        .collect();
    let module = &unit.parsed.module;
    let start = ptx::Span::default();
    // With other errors about, a missing line is most likely one of them.
    if found.is_empty() && module.version.is_none() {
        found.push(unit.diagnostic(start, None, "the '.version' directive is missing".to_owned()));
    }
    if found.is_empty() && module.targets.is_empty() {
        found.push(unit.diagnostic(start, None, "the '.target' directive is missing".to_owned()));
    }
    if let Some(size) = module.address_size.filter(|size| size.value != 64) {
        found.push(unit.diagnostic(size.span, None, "32-bit addresses are not supported".to_owned()));
    }
    found
}

struct Lowering<'i, 'a> {
    linked: Linked<'i, 'a>,
    /// Device functions that somebody needed, with what their own calls could not be given.
    functions: HashMap<FuncId, Result<Function, Vec<Diagnostic>>>,
}

impl<'i, 'a> Lowering<'i, 'a> {
    fn program(mut self) -> Result<Program, Vec<Diagnostic>> {
        let kernels = self.linked.kernels.clone();
        let mut bodies: Vec<_> =
            kernels.iter().map(|kernel| function::lower(&mut self.linked, kernel.unit, kernel.ast)).collect();
        self.lower_reachable(&bodies);

        // From here on a function that did not lower is a placeholder that nobody who would run it gets to see.
        let count = self.linked.functions.len();
        let mut table: Vec<Function> = (0..count as u32)
            .map(|id| match self.functions.get(&FuncId(id)) {
                Some(Ok(function)) => function.clone(),
                _ => self.placeholder(FuncId(id)),
            })
            .collect();
        let candidates = self.candidates(&table, &bodies);
        for function in bodies.iter_mut().flatten().chain(&mut table) {
            indirect::resolve(function, &candidates);
            indirect::number_addresses(function);
        }
        let recursive = inline::recursive(&table);
        for (kernel, body) in kernels.iter().zip(&mut bodies) {
            let Ok(function) = body else { continue };
            if let Err(diagnostics) = self.complete(function, &table, kernel, &recursive) {
                *body = Err(diagnostics);
            }
        }
        let (functions, ids) = self.remaining(table, &bodies, &recursive);
        Ok(self.assemble(kernels, bodies, functions, &ids))
    }

    /// Lowers every device function that a kernel or a variable can reach.
    fn lower_reachable(&mut self, bodies: &[Result<Function, Vec<Diagnostic>>]) {
        let mut work: Vec<FuncId> = bodies.iter().flatten().flat_map(named).collect();
        let mut seen_globals = 0;
        loop {
            // Functions can bring variables with them, and variables functions.
            let globals = &self.linked.storage.globals[seen_globals..];
            work.extend(globals.iter().flat_map(|global| &global.relocations).filter_map(
                |it| match it.target {
                    Target::Function(id) => Some(id),
                    Target::Global(_) => None,
                },
            ));
            seen_globals = self.linked.storage.globals.len();
            let Some(id) = work.pop() else { break };
            if self.functions.contains_key(&id) {
                continue;
            }
            let Defined { unit, ast } = self.linked.functions[id.index()];
            let function = function::lower(&mut self.linked, unit, ast);
            if let Ok(function) = &function {
                work.extend(named(function));
            }
            self.functions.insert(id, function);
        }
    }

    /// The functions whose address a pointer can hold.
    fn candidates(&self, table: &[Function], bodies: &[Result<Function, Vec<Diagnostic>>]) -> Vec<Candidate> {
        let code = bodies
            .iter()
            .flatten()
            .chain(table)
            .flat_map(|function| &function.blocks)
            .flat_map(|it| &it.insts);
        let in_code = code.filter_map(|inst| if let Op::FuncAddr(id) = inst.op { Some(id) } else { None });
        let variables = self.linked.storage.globals.iter().flat_map(|global| &global.relocations);
        let in_variables = variables.filter_map(|it| match it.target {
            Target::Function(id) => Some(id),
            Target::Global(_) => None,
        });
        let ids: BTreeSet<FuncId> = in_code.chain(in_variables).collect();
        ids.into_iter()
            .map(|id| {
                let Function { args, results, .. } = &table[id.index()];
                Candidate { id, args: args.clone(), results: results.clone() }
            })
            .collect()
    }

    /// Stands where a function could not be lowered; nobody who would run it gets a body.
    fn placeholder(&self, id: FuncId) -> Function {
        let ast = self.linked.functions[id.index()].ast;
        let types = |variables| layout::shapes(variables).map(|it| layout::types(&it)).unwrap_or_default();
        builder::trapping(ast.name.value, &types(&ast.parameters), &types(&ast.returns))
    }

    /// Checks that everything the kernel can run was lowered, and inlines its calls.
    fn complete(
        &self,
        function: &mut Function,
        table: &[Function],
        kernel: &Defined<'i, 'a>,
        recursive: &HashSet<FuncId>,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut work: Vec<FuncId> = inline::callees(function).collect();
        let mut seen = vec![false; table.len()];
        let mut diagnostics = Vec::new();
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            if let Some(Err(own)) = self.functions.get(&id) {
                diagnostics.extend(own.iter().cloned());
            }
            work.extend(inline::callees(&table[id.index()]));
        }
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        inline::inline(function, table, |id| !recursive.contains(&id)).map_err(|message| {
            vec![self.linked.units[kernel.unit].diagnostic(
                kernel.ast.name.span,
                Some(&function.name),
                message,
            )]
        })
    }

    /// The functions that are still called after inlining, and their new numbers.
    fn remaining(
        &self,
        mut table: Vec<Function>,
        bodies: &[Result<Function, Vec<Diagnostic>>],
        recursive: &HashSet<FuncId>,
    ) -> (Vec<Function>, BTreeMap<FuncId, FuncId>) {
        let mut ids: BTreeMap<FuncId, FuncId> = BTreeMap::new();
        let mut work: Vec<FuncId> = bodies.iter().flatten().flat_map(inline::callees).collect();
        let original = table.clone();
        while let Some(id) = work.pop() {
            if ids.contains_key(&id) {
                continue;
            }
            ids.insert(id, id);
            let function = &mut table[id.index()];
            if inline::inline(function, &original, |it| !recursive.contains(&it)).is_err() {
                *function = self.placeholder(id);
            }
            work.extend(inline::callees(&table[id.index()]));
        }
        for (new, id) in ids.values_mut().enumerate() {
            *id = FuncId(new as u32);
        }
        let mut functions = Vec::with_capacity(ids.len());
        for old in ids.keys() {
            let mut function = table[old.index()].clone();
            rename(&mut function, &ids);
            functions.push(function);
        }
        (functions, ids)
    }

    fn assemble(
        self,
        kernels: Vec<Defined<'i, 'a>>,
        bodies: Vec<Result<Function, Vec<Diagnostic>>>,
        functions: Vec<Function>,
        ids: &BTreeMap<FuncId, FuncId>,
    ) -> Program {
        let mut program = Program {
            globals: self.linked.storage.globals,
            shared: self.linked.storage.shared,
            functions,
            lines: Lines::new(self.linked.units.iter().map(Unit::text).collect()),
            ..Program::default()
        };
        program.globals.iter_mut().for_each(write_function_addresses);
        for (defined, mut body) in kernels.into_iter().zip(bodies) {
            if let Ok(function) = &mut body {
                rename(function, ids);
            }
            let unit = &self.linked.units[defined.unit];
            let kernel = kernel(unit, defined, body, &program);
            if let Err(diagnostics) = &kernel.body {
                program.diagnostics.extend(diagnostics.iter().cloned());
            }
            program.kernels.push(kernel);
        }
        program
    }
}

fn kernel(
    unit: &Unit<'_>,
    defined: Defined<'_, '_>,
    body: Result<Function, Vec<Diagnostic>>,
    program: &Program,
) -> Kernel {
    let ast = defined.ast;
    let name = ast.name.value.to_owned();
    let (params, params_bytes, body) = match function::kernel_params(ast) {
        Ok((params, bytes)) => (params, bytes, body),
        Err((span, message)) => (vec![], 0, Err(vec![unit.diagnostic(span, Some(&name), message)])),
    };
    let dimensions = |directive: &Directive<'_>| {
        let mut sizes = [1; 3];
        for (size, argument) in sizes.iter_mut().zip(&directive.arguments) {
            *size = layout::number(argument).ok().and_then(|it| u32::try_from(it).ok()).unwrap_or(1);
        }
        sizes
    };
    let first = |name: &str| ast.directive(name).map(|it| dimensions(it)[0]);
    let shared = body.as_ref().map(|body| shared_layout(body, program)).unwrap_or_default();
    Kernel {
        params,
        params_bytes,
        shared,
        max_ntid: ast.directive("maxntid").map(dimensions),
        req_ntid: ast.directive("reqntid").map(dimensions),
        min_nctapersm: first("minnctapersm"),
        max_nreg: first("maxnreg"),
        cluster: ClusterRules {
            required: ast.directive("reqnctapercluster").map(dimensions),
            explicit: ast.directive("explicitcluster").is_some(),
            max_rank: first("maxclusterrank"),
        },
        target: unit.target(),
        name,
        body,
    }
}

/// Places the shared variables that the kernel can reach, statically sized ones first.
fn shared_layout(body: &Function, program: &Program) -> SharedLayout {
    let used = |function: &Function| -> Vec<SharedId> {
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.filter_map(|inst| if let Op::SharedAddr(id) = inst.op { Some(id) } else { None }).collect()
    };
    let mut ids = used(body);
    // Functions that are still called may be reached through pointers.
    ids.extend(program.functions.iter().flat_map(used));
    ids.sort_unstable();
    ids.dedup();
    let mut layout = SharedLayout { align: 16, ..SharedLayout::default() };
    for &id in &ids {
        let shared = &program.shared[id.index()];
        layout.align = layout.align.max(shared.align);
        if !shared.is_extern {
            let offset = layout.bytes.next_multiple_of(shared.align.max(1));
            layout.offsets.push((id, offset));
            layout.bytes = offset.saturating_add(shared.bytes);
        }
    }
    let dynamic = layout.bytes.next_multiple_of(layout.align);
    layout
        .offsets
        .extend(ids.into_iter().filter(|id| program.shared[id.index()].is_extern).map(|id| (id, dynamic)));
    layout
}

/// The functions whose name stands in the body: called or address taken.
fn named(function: &Function) -> impl Iterator<Item = FuncId> {
    function.blocks.iter().flat_map(|block| &block.insts).filter_map(|inst| match inst.op {
        Op::Call(id) | Op::FuncAddr(id) => Some(id),
        _ => None,
    })
}

/// Addresses of functions are numbers that are known now, so they are bytes and no relocations.
fn write_function_addresses(global: &mut Global) {
    let relocations = std::mem::take(&mut global.relocations);
    for relocation in relocations {
        let Target::Function(id) = relocation.target else {
            global.relocations.push(relocation);
            continue;
        };
        let value = indirect::address(id).wrapping_add_signed(relocation.addend) >> relocation.shift.min(63);
        let (start, length) = (relocation.offset as usize, usize::from(relocation.bytes));
        // The initialiser reserved the place.
        if let Some(place) = global.init.get_mut(start..start + length) {
            place.copy_from_slice(&value.to_le_bytes()[..length]);
        }
    }
}

fn rename(function: &mut Function, ids: &BTreeMap<FuncId, FuncId>) {
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Op::Call(id) = &mut inst.op
            && let Some(&new) = ids.get(id)
        {
            *id = new;
        }
    }
}
