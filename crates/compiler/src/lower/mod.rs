//! AST → SSA IR: sources are linked; kernels, when they are asked for, and the functions they need are lowered, calls
//! are inlined.
//!
//! One file per instruction family; `table` says which opcode goes where. A kernel with something unknown in it fails
//! alone and says what and where.

mod atomic;
mod barrier;
mod builder;
mod bulk;
mod byte_signs;
mod call;
mod cluster;
mod compare;
mod contract;
mod control;
mod convert;
mod copy;
mod declared;
mod dialect;
mod displacement;
mod float;
mod form;
mod function;
mod handed;
mod indirect;
pub(crate) use indirect::kernel_address;
pub use indirect::kernel_of_address;
pub(crate) mod inline;
mod instruction;
mod integer;
mod kept;
mod launch_control;
mod layout;
pub(crate) mod link;
mod logic;
mod matrix;
mod mbarrier;
mod memory;
mod mma;
mod narrow;
mod near;
mod operand;
mod print;
mod reference;
mod scope;
mod simplify;
mod special;
mod stack;
mod stochastic;
mod subnormal;
mod table;
pub(crate) mod taken;
mod tcgen05;
mod tensor;
mod texture;
mod vector;
pub mod verify;
mod video;
mod video_simd;
mod warp;
mod wgmma;
mod widening;
mod wmma;

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::ir::{FuncId, Function, Op, SharedId, SharedLayout, Special};
use crate::module::Module;
use crate::program::{Diagnostic, Kernel, Program, Shared};
use indirect::{Candidate, Signature};

/// Every opcode that is lowered, for the list in `docs/ptx.md`.
pub fn opcodes() -> impl Iterator<Item = &'static str> {
    table::TABLE.iter().map(|row| row.opcode)
}

/// Lowers kernels of a module, and the functions they need.
pub(crate) struct Lowering<'m> {
    module: &'m Module,
    /// Device functions that somebody needed, with what their own calls could not be given.
    functions: BTreeMap<FuncId, Result<Function, Vec<Diagnostic>>>,
    /// The module's shared variables, and those of bodies as they come.
    shared: Vec<Shared>,
    /// Whether all calls are inlined that can be.
    whole: bool,
}

/// A function's number in the module → its number in the program.
type Numbers = BTreeMap<FuncId, FuncId>;

/// The functions that kernels reach, by their number in the program.
#[derive(Default)]
struct Reached {
    table: Vec<Function>,
    /// Why a function was not lowered; its place in the table is a placeholder's.
    failures: Vec<Option<Vec<Diagnostic>>>,
    recursive: HashSet<FuncId>,
    /// Functions that some kernel calls.
    kept: HashSet<FuncId>,
}

impl<'m> Lowering<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        let shared = module.linked.shared.clone();
        Lowering { module, functions: BTreeMap::new(), shared, whole: false }
    }

    /// With all calls inlined that can be, however long kernels become.
    pub(crate) fn whole(module: &'m Module) -> Self {
        Lowering { whole: true, ..Lowering::new(module) }
    }

    /// The kernels of these indices.
    pub(crate) fn program(mut self, kernels: Range<usize>) -> Program {
        let entries = &self.module.linked.entries[kernels.clone()];
        let mut bodies: Vec<_> =
            entries.iter().map(|entry| function::lower(self.module, entry, &mut self.shared)).collect();
        self.lower_reachable(bodies.iter().flatten().flat_map(named).collect());

        let candidates = self.candidates(&bodies);
        let numbers: Numbers = self.functions.keys().copied().zip((0..).map(FuncId)).collect();
        let mut reached = self.reached();
        for function in bodies.iter_mut().flatten().chain(&mut reached.table) {
            indirect::resolve(function, &candidates);
            indirect::number_addresses(function);
            rename(function, &numbers);
        }
        reached.recursive = inline::recursive(&reached.table);
        let whole = self.whole;
        for (index, body) in kernels.clone().zip(&mut bodies) {
            let Ok(function) = body else { continue };
            if let Err(diagnostics) = reached.complete(function, self.module, index, whole) {
                *body = Err(diagnostics);
            }
        }
        let mut functions = reached.remaining(&mut bodies);
        for function in bodies.iter_mut().flatten().chain(&mut functions) {
            contract::run(function);
            subnormal::run(function);
            near::run(function);
        }
        self.assemble(kernels, bodies, functions)
    }

    /// Lowers these functions and every one that they can reach.
    fn lower_reachable(&mut self, mut work: Vec<FuncId>) {
        while let Some(id) = work.pop() {
            if self.functions.contains_key(&id) {
                continue;
            }
            let device = &self.module.linked.functions[id.index()];
            let function = function::lower(self.module, &device.defined, &mut self.shared);
            work.extend(function.iter().flat_map(named));
            self.functions.insert(id, function);
        }
    }

    /// The functions that calls through pointers may reach, which are lowered too: those whose address a pointer can hold
    /// and whose signature some call has.
    fn candidates(&mut self, bodies: &[Result<Function, Vec<Diagnostic>>]) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = vec![];
        let mut seen: HashSet<Signature> = HashSet::new();
        // What is reached may call through pointers of other signatures.
        loop {
            let code = bodies.iter().flatten().chain(self.functions.values().flatten());
            let wanted: HashSet<Signature> =
                code.flat_map(indirect::signatures).filter(|it| !seen.contains(it)).collect();
            if wanted.is_empty() {
                break;
            }
            let all = self.module.taken().iter().map(|&id| candidate(id, self.module));
            let new: Vec<Candidate> = all.filter(|it| wanted.contains(&it.signature())).collect();
            self.lower_reachable(new.iter().map(|it| it.id).collect());
            found.extend(new);
            seen.extend(wanted);
        }
        found.sort_by_key(|it| it.id);
        found
    }

    /// From here on a function that did not lower is a placeholder that nobody who would run it gets to see.
    fn reached(&mut self) -> Reached {
        let mut reached = Reached::default();
        for (id, function) in std::mem::take(&mut self.functions) {
            let (function, failure) = match function {
                Ok(function) => (function, None),
                Err(failure) => (placeholder(id, self.module), Some(failure)),
            };
            reached.table.push(function);
            reached.failures.push(failure);
        }
        reached
    }

    fn assemble(
        self,
        kernels: Range<usize>,
        bodies: Vec<Result<Function, Vec<Diagnostic>>>,
        functions: Vec<Function>,
    ) -> Program {
        let mut program = Program {
            globals: self.module.globals().clone(),
            shared: self.shared,
            functions,
            lines: self.module.lines.clone(),
            ..Program::default()
        };
        for (header, body) in self.module.kernels()[kernels].iter().zip(bodies) {
            if let Err(diagnostics) = &body {
                program.diagnostics.extend(diagnostics.iter().cloned());
            }
            let shared = body.as_ref().map(|body| shared_layout(body, &program)).unwrap_or_default();
            program.kernels.push(Kernel { header: header.clone(), shared, body });
        }
        program
    }
}

/// Stands where a function could not be lowered; nobody who would run it gets a body.
fn placeholder(id: FuncId, module: &Module) -> Function {
    let Candidate { args, results, .. } = candidate(id, module);
    builder::trapping(&module.linked.functions[id.index()].name, &args, &results)
}

fn candidate(id: FuncId, module: &Module) -> Candidate {
    let (args, results) = match &module.linked.functions[id.index()].signature {
        Ok((parameters, results)) => (layout::types(parameters), layout::types(results)),
        // It does not lower.
        Err(_) => (vec![], vec![]),
    };
    Candidate { id, args, results }
}

impl Reached {
    /// Checks that everything the kernel can run was lowered, and inlines its calls.
    fn complete(
        &mut self,
        function: &mut Function,
        module: &Module,
        kernel: usize,
        whole: bool,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut work: Vec<FuncId> = inline::callees(function).collect();
        let mut seen = vec![false; self.table.len()];
        let mut diagnostics = Vec::new();
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            diagnostics.extend(self.failures[id.index()].iter().flatten().cloned());
            work.extend(inline::callees(&self.table[id.index()]));
        }
        if !diagnostics.is_empty() {
            return Err(diagnostics);
        }
        let kept = match whole {
            true => HashSet::new(),
            false => kept::functions(function, &self.table, &self.recursive),
        };
        let is_called = |id: &FuncId| self.recursive.contains(id) || kept.contains(id);
        let inlined = inline::inline(function, &self.table, |id| !is_called(&id));
        self.kept.extend(kept);
        inlined.map_err(|message| {
            let entry = module.linked.entries[kernel];
            vec![module.lines.diagnostic(entry.unit, entry.name, Some(&function.name), message)]
        })
    }

    /// The functions that are still called after inlining. They get new numbers, in `bodies` too.
    fn remaining(self, bodies: &mut [Result<Function, Vec<Diagnostic>>]) -> Vec<Function> {
        let is_called = |id: &FuncId| self.recursive.contains(id) || self.kept.contains(id);
        let mut kept: BTreeMap<FuncId, Function> = BTreeMap::new();
        let mut work: Vec<FuncId> = bodies.iter().flatten().flat_map(inline::callees).collect();
        while let Some(id) = work.pop() {
            if kept.contains_key(&id) {
                continue;
            }
            let mut function = self.table[id.index()].clone();
            if inline::inline(&mut function, &self.table, |it| !is_called(&it)).is_err() {
                let Function { name, args, results, .. } = &function;
                function = builder::trapping(name, args, results);
            }
            work.extend(inline::callees(&function));
            kept.insert(id, function);
        }
        let numbers: Numbers = kept.keys().copied().zip((0..).map(FuncId)).collect();
        let mut functions: Vec<Function> = kept.into_values().collect();
        for function in bodies.iter_mut().flatten().chain(&mut functions) {
            rename(function, &numbers);
        }
        functions
    }
}

/// Places the shared variables that the kernel can reach, statically sized ones first.
fn shared_layout(body: &Function, program: &Program) -> SharedLayout {
    let used = |function: &Function| -> Vec<SharedId> {
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.filter_map(|inst| if let Op::SharedAddr(id) = inst.op { Some(id) } else { None }).collect()
    };
    let has_tensor_memory = |function: &Function| {
        let mut insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.any(|inst| inst.op == Op::Special(Special::TensorMemory))
    };
    let mut ids = used(body);
    // Functions that are still called may be reached through pointers.
    ids.extend(program.functions.iter().flat_map(used));
    ids.sort_unstable();
    ids.dedup();
    let mut layout = SharedLayout { align: 16, ..SharedLayout::default() };
    layout.tensor_memory = has_tensor_memory(body) || program.functions.iter().any(has_tensor_memory);
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

fn rename(function: &mut Function, numbers: &Numbers) {
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Op::Call(id) = &mut inst.op
            && let Some(&new) = numbers.get(id)
        {
            *id = new;
        }
    }
}
