//! For tests and benches: PTX text in, a kernel run over byte buffers out. No streams, no HIP handles, no cache.

pub mod cases;
mod draw;
pub mod rows;
mod shown;

use std::collections::HashMap;

use compiler::back::cpu::{self, Compiled, Options, Setting};
use compiler::program::{Kernel, Target as Points};
use compiler::{Program, Source};

use crate::exec::sanitize::Run;
use crate::exec::{self, Fault, Grid, Launch, services::SERVICES};
use crate::jit::{self, Effort, Target};
use crate::memory::watched;

pub use draw::Draw;

/// A kernel argument.
#[derive(Debug)]
pub enum Arg<'a> {
    /// A value's bytes, little-endian, as long as the parameter.
    Value(Vec<u8>),
    /// A pointer parameter: the buffer's address is passed, the kernel works in place.
    Buffer(&'a mut [u8]),
}

impl Arg<'_> {
    pub fn u32(value: u32) -> Arg<'static> {
        Arg::Value(value.to_le_bytes().to_vec())
    }
    pub fn u64(value: u64) -> Arg<'static> {
        Arg::Value(value.to_le_bytes().to_vec())
    }
    pub fn f32(value: f32) -> Arg<'static> {
        Arg::Value(value.to_le_bytes().to_vec())
    }
    pub fn f64(value: f64) -> Arg<'static> {
        Arg::Value(value.to_le_bytes().to_vec())
    }
}

/// How a kernel is compiled and launched.
#[derive(Clone, Debug)]
pub struct How {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
    pub cooperative: bool,
    /// `None`: as the translator chooses. A setting that the kernel does not allow is an error here, no fall back.
    pub setting: Option<Setting>,
    pub width: Option<u32>,
    /// Vector register width; `None` is this machine's.
    pub vector_bits: Option<u32>,
    /// By code for flat blocks of any length.
    pub open: bool,
    pub effort: Effort,
}

impl From<rows::Shape> for How {
    fn from(shape: rows::Shape) -> How {
        let rows::Shape { grid, block, cluster, cooperative, dynamic_shared } = shape;
        How { grid, block, cluster, cooperative, dynamic_shared, ..How::new(1, 1) }
    }
}

impl How {
    pub fn new(grid: u32, block: u32) -> How {
        How {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            dynamic_shared: 0,
            cluster: [1; 3],
            cooperative: false,
            setting: None,
            width: None,
            vector_bits: None,
            open: false,
            effort: Effort::Best,
        }
    }

    /// By code for flat blocks of any length, where the block is one.
    pub fn opened(mut self) -> Option<How> {
        self.open = cpu::is_open_shape(self.block);
        self.open.then_some(self)
    }

    /// Setting `lane`.
    pub fn lane(mut self) -> How {
        self.setting = Some(Setting::Lane);
        self
    }

    /// Setting `lane` as it is there soonest.
    pub fn baseline(mut self) -> How {
        self.setting = Some(Setting::Lane);
        self.effort = Effort::Baseline;
        self
    }

    /// As kernels are compiled that LLVM would take too long for.
    pub fn thrifty(mut self) -> How {
        self.effort = Effort::Thrifty;
        self
    }

    /// Setting `warp`.
    pub fn warp(mut self) -> How {
        self.setting = Some(Setting::Warp);
        self
    }

    /// Setting `simd` with `width` lanes.
    pub fn simd(mut self, width: u32) -> How {
        self.setting = Some(Setting::Simd);
        self.width = Some(width);
        self
    }

    /// In each setting, in `lane` by baseline code too and in `simd` in groups and vectors of several widths.
    pub fn in_each_setting(&self) -> Vec<How> {
        let narrow = How { vector_bits: Some(256), ..self.clone() };
        let any = How { setting: Some(Setting::Simd), ..self.clone() };
        let how = || self.clone();
        vec![how().lane(), how().baseline(), any, narrow.simd(8), how().simd(64), how().warp()]
    }

    fn target(&self) -> Target {
        self.vector_bits.map_or_else(|| Target::host().clone(), Target::narrowed)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Translate(String),
    #[error("setting {} was asked for: {why}", setting.name())]
    Refused { setting: Setting, why: String },
    #[error("{error}\n{text}")]
    Jit { error: jit::Error, text: String },
    #[error("{0}")]
    Fault(Fault),
    #[error("the sanitizer found {0} errors")]
    Sanitizer(u64),
}

/// Loads one PTX text; diagnostics become the error's lines.
pub fn load(ptx: &str) -> Result<Program, Error> {
    shown::record(ptx);
    let source = Source { name: "test.ptx".to_owned(), text: ptx.to_owned() };
    Program::load(&[source]).map_err(|diagnostics| Error::Translate(lines(&diagnostics)))
}

fn lines(diagnostics: &[compiler::Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Emits LLVM IR for `kernel` as [`How`] says.
pub fn emit(program: &Program, kernel: &str, how: &How) -> Result<Compiled, Error> {
    let kernel = find(program, kernel)?;
    // The text is the one that is asked for, also on a machine that has no such registers, where LLVM makes do with those it has.
    let mut target = Target::host().clone();
    target.vector_bits = how.vector_bits.unwrap_or(target.vector_bits);
    if how.effort == Effort::Baseline {
        let made = cpu::emit_baseline(program, kernel, how.cluster != [1; 3], target.vector_bits);
        return made.map_err(|d| Error::Translate(lines(&d)));
    }
    let most = how.open.then(|| cpu::open_block(kernel)).flatten();
    let options = Options {
        open: most.is_some(),
        setting: how.setting,
        width: how.width,
        clustered: how.cluster != [1; 3],
        sanitize: is_sanitized(how.setting),
        // As `budget` has it of long kernels; it is of no account but in `lane`.
        brief: how.effort == Effort::Thrifty,
        ..target.options(most.map_or(how.block, |most| [most, 1, 1]))
    };
    let compiled = cpu::emit(program, kernel, &options).map_err(|d| Error::Translate(lines(&d)))?;
    match how.setting {
        Some(setting) if setting != compiled.setting => {
            let why = if setting == Setting::Simd { compiled.why_not_simd } else { compiled.why_not_warp };
            Err(Error::Refused { setting, why: why.unwrap_or_default() })
        }
        _ => Ok(compiled),
    }
}

fn find<'p>(program: &'p Program, name: &str) -> Result<&'p Kernel, Error> {
    program.kernel(name).ok_or_else(|| Error::Translate(format!("no kernel {name}")))
}

/// Addresses of the program's globals, placed and initialised.
#[derive(Default)]
pub struct Globals {
    memory: Vec<Vec<u128>>,
    addresses: Vec<*mut u8>,
}

impl Globals {
    /// Gives every variable zeroed memory, then its initial bytes and relocations.
    pub fn place(program: &Program) -> Globals {
        let mut globals = Globals::default();
        for variable in program.globals.iter() {
            // 128 bytes more, so that any alignment up to that can be had.
            let mut memory = vec![0u128; (variable.bytes as usize).div_ceil(16) + 16];
            let at = memory.as_mut_ptr().cast::<u8>();
            globals.addresses.push(at.wrapping_add(at.align_offset(128)));
            globals.memory.push(memory);
        }
        for (i, variable) in program.globals.iter().enumerate() {
            let bytes = globals.bytes(i, variable.bytes as usize);
            bytes[..variable.init.len()].copy_from_slice(&variable.init);
            for relocation in &variable.relocations {
                let Points::Global(id) = relocation.target else { continue };
                let value = (globals.addresses[id.index()] as i64).wrapping_add(relocation.addend)
                    >> relocation.shift;
                let bytes = globals.bytes(i, variable.bytes as usize);
                let at = relocation.offset as usize;
                bytes[at..at + relocation.bytes as usize]
                    .copy_from_slice(&value.to_le_bytes()[..relocation.bytes as usize]);
            }
        }
        globals
    }

    /// The bytes of variable number `i`.
    pub fn bytes(&mut self, i: usize, len: usize) -> &mut [u8] {
        assert!(len <= self.memory[i].len() * 16 - 128);
        // SAFETY: the memory has `len` bytes behind the address, and `&mut self` keeps them alone.
        unsafe { std::slice::from_raw_parts_mut(self.addresses[i], len) }
    }
}

/// Compiles and runs `kernel`; buffers are changed in place.
pub fn run(program: &Program, kernel: &str, how: &How, args: &mut [Arg<'_>]) -> Result<(), Error> {
    let compiled = emit(program, kernel, how)?;
    run_compiled(program, kernel, &compiled, how, args, &mut Globals::place(program))
}

/// Runs what [`emit`] gave, with globals that outlive the launch.
pub fn run_compiled(
    program: &Program,
    kernel: &str,
    compiled: &Compiled,
    how: &How,
    args: &mut [Arg<'_>],
    globals: &mut Globals,
) -> Result<(), Error> {
    run_code(program, kernel, &code(kernel, compiled, how)?, how, args, globals)
}

/// Machine code of what [`emit`] gave.
pub fn code(kernel: &str, compiled: &Compiled, how: &How) -> Result<exec::Kernel, Error> {
    let wrap = |error| Error::Jit { error, text: compiled.text.clone() };
    let object = jit::compile(kernel, &compiled.text, &how.target(), how.effort).map_err(wrap)?;
    exec::Kernel::load(&object, &compiled.into()).map_err(wrap)
}

/// Runs what [`code`] gave; the block must be the one it was made for.
pub fn run_code(
    program: &Program,
    kernel: &str,
    code: &exec::Kernel,
    how: &How,
    args: &mut [Arg<'_>],
    globals: &mut Globals,
) -> Result<(), Error> {
    let kept = cases::Running::new(program, kernel, how, args);
    launch(program, find(program, kernel)?, code, how, args, globals)?;
    if let Some(kept) = kept {
        kept.end(args);
    }
    Ok(())
}

fn launch(
    program: &Program,
    kernel: &Kernel,
    code: &exec::Kernel,
    how: &How,
    args: &mut [Arg<'_>],
    globals: &mut Globals,
) -> Result<(), Error> {
    let mut params =
        vec![exec::ParamLine::default(); kernel.params_bytes as usize / size_of::<exec::ParamLine>() + 1];
    assert_eq!(args.len(), kernel.params.len(), "{} takes {} arguments", kernel.name, kernel.params.len());
    for (arg, param) in args.iter_mut().zip(&kernel.params) {
        let bytes = match arg {
            Arg::Value(bytes) => bytes.clone(),
            Arg::Buffer(buffer) => (buffer.as_mut_ptr() as u64).to_le_bytes().to_vec(),
        };
        assert_eq!(bytes.len(), param.bytes as usize, "bytes of {}", param.name);
        // SAFETY: the parameter lies inside the buffer of `params_bytes`.
        unsafe {
            let at = params.as_mut_ptr().cast::<u8>().add(param.offset as usize);
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }
    let workspace = exec::Workspace::new();
    let launch = Launch {
        params: params.as_ptr().cast(),
        globals: globals.addresses.as_ptr(),
        services: &raw const SERVICES,
        grid: how.grid,
        block: how.block,
        dynamic_shared: how.dynamic_shared,
        workers: exec::pool::workers() as u32,
        grid_id: 1,
        functions: std::ptr::null(),
        workspace: if how.cooperative { &raw const workspace } else { std::ptr::null() },
        cluster: how.cluster,
        explicit_cluster: (how.cluster != [1; 3]).into(),
        children: std::ptr::null(),
        graph: 0,
    };
    let shared_bytes = exec::shared_bytes(&kernel.shared, how.dynamic_shared);
    let tensor_memory = kernel.shared.tensor_memory;
    let grid = |sanitizer| Grid {
        kernel: code,
        launch: &launch,
        shared_bytes,
        tensor_memory,
        sanitizer,
        block_ns: None,
    };
    if !is_sanitized(Some(code.setting)) {
        return exec::run(&grid(None)).map_err(Error::Fault);
    }
    let buffers = args.iter_mut().filter_map(|arg| match arg {
        Arg::Buffer(buffer) => Some((buffer.as_mut_ptr() as usize, buffer.len())),
        Arg::Value(_) => None,
    });
    let variables = globals.addresses.iter().zip(program.globals.iter());
    let variables = variables.map(|(&at, variable)| (at as usize, variable.bytes.max(1) as usize));
    let watched: Vec<(usize, usize)> = buffers.chain(variables).collect();
    watched.iter().for_each(|&(base, bytes)| watched::add(base, bytes));
    let run = Run::new(program, kernel, &launch);
    let result = exec::run(&grid(Some(&run)));
    let n_errors = run.n_errors();
    run.finish(result.err());
    watched.iter().for_each(|&(base, _)| watched::remove(base));
    result.map_err(Error::Fault)?;
    if n_errors > 0 { Err(Error::Sanitizer(n_errors)) } else { Ok(()) }
}

/// `CUDAWAY_SANITIZE` holds here too, for setting `lane`.
fn is_sanitized(setting: Option<Setting>) -> bool {
    watched::is_on() && setting == Some(Setting::Lane)
}

/// Kernels of one text by name, with the number of parameters: for tests that walk a file.
pub fn kernels(program: &Program) -> HashMap<String, usize> {
    program.kernels.iter().map(|k| (k.name.clone(), k.params.len())).collect()
}
