//! The CPU target: picks the setting for a kernel and emits it. Entry points and structures: docs/architecture.md.

use crate::program::{Diagnostic, Kernel, Program};

/// How a block is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    Lane,
    Simd,
}

/// What the launcher knows when it asks for code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Threads of a block; constants in the code.
    pub block: [u32; 3],
    /// `None` chooses: S where the kernel allows it.
    pub setting: Option<Setting>,
    /// Lanes per group in S; `None` chooses.
    pub width: Option<u32>,
    /// Widest vector register of the CPU in bits: 128, 256 or 512 (AVX-512 masks).
    pub vector_bits: u32,
    /// A cluster has several blocks. They share one window and meet each other, which setting L can do.
    pub clustered: bool,
}

/// LLVM IR and what the launcher must know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// LLVM IR text with one exported function, [`ENTRY_SIMD`] or [`ENTRY_LANE`].
    pub text: String,
    pub setting: Setting,
    /// Lanes per group; 1 in L.
    pub width: u32,
    /// Bytes of the context arena per block (S) or of one thread record (L).
    pub context_bytes: u64,
    /// Bytes of one thread's local window, a multiple of 16.
    pub local_bytes: u64,
    /// Why the kernel does not run in S, for the log.
    pub why_not_simd: Option<String>,
}

pub const ENTRY_SIMD: &str = "cudaway_run";
pub const ENTRY_LANE: &str = "cudaway_step";

/// Emits `kernel`. `Err` holds the kernel's own diagnostics or what the back end lacks.
pub fn emit(program: &Program, kernel: &Kernel, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    let body = kernel.body.as_ref().map_err(Clone::clone)?;
    let body = &super::llvm::nan::canonical(body);
    let why_not_simd = match options.setting {
        Some(Setting::Lane) => Some("setting L was asked for".to_owned()),
        _ if options.clustered => Some("its clusters have several blocks".to_owned()),
        _ => match super::simd::emit(program, kernel, body, options) {
            Ok(compiled) => return Ok(compiled),
            Err(reason) => Some(reason),
        },
    };
    let mut compiled = super::lane::emit(program, kernel, body, options)?;
    compiled.why_not_simd = why_not_simd;
    Ok(compiled)
}
