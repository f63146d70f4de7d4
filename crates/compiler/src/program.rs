//! A linked program: the globals, shared variables, device functions and kernels of one or several PTX sources.
//! [`Module`] is what was loaded, [`Program`] some of its kernels, lowered.

use std::sync::Arc;

use crate::ir::{Function, GlobalId, SharedLayout};
use crate::lines::Lines;
use crate::module::Module;

/// One PTX text and the name diagnostics give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    pub text: String,
}

/// Something that is wrong, where, and in which kernel or function if in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub source: String,
    pub line: u32,
    pub column: u32,
    pub function: Option<String>,
    pub message: String,
    pub cause: Cause,
}

/// What kind of mistake a diagnostic is about, where whoever loads the program answers differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    #[default]
    Code,
    /// The text is of a PTX version that came after this translator.
    Version,
    /// Two sources define the same name.
    Duplicate,
    /// This name is declared and used, and no source defines it.
    Undefined(String),
}

impl Cause {
    /// An undefined name that only the device runtime (libcudadevrt over the driver) could provide: launches from a kernel,
    /// streams and events in a kernel, queries of the device.
    #[must_use]
    pub fn is_device_runtime(&self) -> bool {
        const PREFIXES: &[&str] = &["__cuda_syscall_", "__cudaCDP2", "cnp", crate::device_runtime::SYSCALL];
        let is_call = |name: &str| {
            name.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        };
        matches!(self, Cause::Undefined(name) if PREFIXES.iter().any(|it| name.starts_with(it)) || is_call(name))
    }
}

impl std::fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}: error: {}", self.source, self.line, self.column, self.message)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobalSpace {
    Global,
    Const,
}

/// What a relocation points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Global(crate::ir::GlobalId),
    Function(crate::ir::FuncId),
}

/// An address inside a variable's initialiser, to be written when the variable is placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    pub offset: u64,
    /// Bytes written, little-endian.
    pub bytes: u8,
    pub target: Target,
    pub addend: i64,
    /// Bits to drop from the right before writing (`mask()` picks one byte).
    pub shift: u8,
}

/// A `.global` or `.const` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Global {
    pub name: String,
    pub space: GlobalSpace,
    pub bytes: u64,
    pub align: u64,
    /// Bytes of one of its declared type.
    pub element: u64,
    /// Initial bytes; what is missing up to `bytes` is zero.
    pub init: Vec<u8>,
    pub relocations: Vec<Relocation>,
    pub managed: bool,
    /// A texture, sampler or surface reference, or an array of them.
    pub opaque: Option<crate::texture::Opaque>,
    /// Visible to the host and to other sources (`.visible`, `.weak`, `.common`), or private to its source.
    pub visible: bool,
}

/// A `.shared` variable; `bytes` is 0 for an `extern` array of unknown size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    pub name: String,
    pub bytes: u64,
    pub align: u64,
    /// Bytes of one of its declared type.
    pub element: u64,
    pub is_extern: bool,
}

/// A kernel parameter in the parameter buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub offset: u32,
    pub bytes: u32,
    pub align: u32,
}

/// What a kernel says about the clusters of blocks it runs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterRules {
    /// `.reqnctapercluster`: blocks of a cluster.
    pub required: Option<[u32; 3]>,
    /// `.explicitcluster`: the kernel or the launch must say how large a cluster is.
    pub explicit: bool,
    /// `.maxclusterrank`: blocks of a cluster at most.
    pub max_rank: Option<u32>,
}

/// What is said in front of a kernel's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub name: String,
    pub params: Vec<Param>,
    pub params_bytes: u32,
    pub max_ntid: Option<[u32; 3]>,
    pub req_ntid: Option<[u32; 3]>,
    pub min_nctapersm: Option<u32>,
    pub max_nreg: Option<u32>,
    pub cluster: ClusterRules,
    /// Architecture its source was written for: 75 of `.target sm_75`; 0 when the source names none.
    pub target: u32,
}

impl Header {
    /// Threads that `.maxntid` lets a block have.
    pub fn max_threads(&self) -> Option<u32> {
        self.max_ntid.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z))
    }
}

/// A kernel that was lowered. Its header's fields are its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    pub header: Header,
    pub shared: SharedLayout,
    /// The body with every direct call inlined, or why there is none.
    pub body: Result<Function, Vec<Diagnostic>>,
}

impl std::ops::Deref for Kernel {
    type Target = Header;

    fn deref(&self) -> &Header {
        &self.header
    }
}

/// Kernels of a [`Module`], lowered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// All of the module's.
    pub globals: Arc<[Global]>,
    pub shared: Vec<Shared>,
    /// Device functions that are still called (indirectly, or recursively), by `FuncId`.
    pub functions: Vec<Function>,
    pub kernels: Vec<Kernel>,
    /// Everything that was wrong anywhere, kernels' own diagnostics included.
    pub diagnostics: Vec<Diagnostic>,
    /// Where instructions stand.
    pub lines: Lines,
}

impl Program {
    /// Parses, links and lowers all kernels. `Err` when a source does not parse or the sources do not link;
    /// a kernel with something unknown in it is an `Err` body in an `Ok` program.
    pub fn load(sources: &[Source]) -> Result<Program, Vec<Diagnostic>> {
        Ok(Module::link(sources.to_vec())?.lower_all())
    }

    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// See [`Module::global`].
    pub fn global(&self, name: &str) -> Option<(GlobalId, &Global)> {
        Global::named(&self.globals, name)
    }
}

impl Global {
    /// The variable of that name: a visible one, else one that belongs to a single source (nvcc leaves `.visible` out
    /// when it compiles a whole program).
    pub(crate) fn named<'g>(globals: &'g [Global], name: &str) -> Option<(GlobalId, &'g Global)> {
        let named = || globals.iter().enumerate().filter(|(_, global)| global.name == name);
        let (index, global) = named().find(|(_, global)| global.visible).or_else(|| named().next())?;
        Some((GlobalId(index as u32), global))
    }
}
