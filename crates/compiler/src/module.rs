//! A module: its sources skimmed and linked. Kernels are parsed and lowered when somebody asks for them.
//!
//! Numbers of functions and variables are the module's and do not depend on which kernel is lowered when: an address
//! that one kernel writes, another may read. Nothing here changes after loading, so any number of threads may lower.

use std::sync::{Arc, OnceLock};

use crate::ir::{FuncId, GlobalId};
use crate::lines::Lines;
use crate::lower::link::{self, Linked};
use crate::lower::{Lowering, taken};
use crate::program::{Diagnostic, Global, Header, Program, Source};

/// See the module's text above.
pub struct Module {
    pub(crate) lines: Lines,
    pub(crate) linked: Linked,
    globals: Arc<[Global]>,
    /// The functions that a pointer can hold; found when the first kernel calls through one.
    taken: OnceLock<Vec<FuncId>>,
}

impl Module {
    /// Skims and links. `Err` when something at module scope cannot be read or the sources do not link; what is wrong
    /// in a body is told when a kernel that reaches it is lowered.
    pub fn link(sources: Vec<Source>) -> Result<Module, Vec<Diagnostic>> {
        let lines = Lines::new(crate::device_runtime::with(sources));
        let (linked, globals) = link::link(&lines)?;
        Ok(Module { lines, linked, globals: globals.into(), taken: OnceLock::new() })
    }

    /// The texts it was loaded from.
    pub fn sources(&self) -> &[Source] {
        self.lines.sources()
    }

    /// What stands in front of each kernel's body, in order.
    pub fn kernels(&self) -> &[Header] {
        &self.linked.kernels
    }

    /// All variables, those declared in bodies included, by [`GlobalId`].
    pub fn globals(&self) -> &Arc<[Global]> {
        &self.globals
    }

    /// Where instructions stand.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// The variable of that name: a visible one, else one that belongs to a single source (nvcc leaves `.visible` out
    /// when it compiles a whole program).
    pub fn global(&self, name: &str) -> Option<(GlobalId, &Global)> {
        Global::named(&self.globals, name)
    }

    /// A program with one kernel, the one of this index.
    ///
    /// # Panics
    /// When there are fewer kernels.
    pub fn lower(&self, kernel: usize) -> Program {
        Lowering::new(self).program(kernel..kernel + 1)
    }

    /// The same with all calls inlined that can be, however long the kernel becomes.
    ///
    /// # Panics
    /// When there are fewer kernels.
    pub fn lower_whole(&self, kernel: usize) -> Program {
        Lowering::whole(self).program(kernel..kernel + 1)
    }

    /// A program with all kernels.
    pub fn lower_all(&self) -> Program {
        Lowering::new(self).program(0..self.kernels().len())
    }

    pub(crate) fn taken(&self) -> &[FuncId] {
        self.taken.get_or_init(|| taken::functions(self))
    }
}
