//! The CPU target: picks the setting for a kernel and emits it. Entry points and structures: docs/architecture.md.

use crate::ir::{Op, Special};
use crate::program::{Diagnostic, Header, Kernel, Program};

/// How a block is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// L: every thread by itself.
    Lane,
    /// P: warps of 32 lanes, every warp by itself.
    Warp,
    /// S: groups of lanes, the block from barrier to barrier.
    Simd,
}

impl Setting {
    /// Its name in documents and logs.
    pub fn letter(self) -> &'static str {
        match self {
            Setting::Lane => "L",
            Setting::Warp => "P",
            Setting::Simd => "S",
        }
    }
}

/// What the launcher knows when it asks for code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Threads of a block; constants in the code.
    pub block: [u32; 3],
    /// The block is flat, and has any multiple of 32 threads up to those of `block`: a launch says how many.
    pub open: bool,
    /// `None` chooses: S where the kernel allows it, else P, else L. A setting that the kernel does not allow falls
    /// back in the same order.
    pub setting: Option<Setting>,
    /// Lanes per group in S; `None` chooses.
    pub width: Option<u32>,
    /// Widest vector register of the CPU in bits: 128, 256 or 512 (AVX-512 masks).
    pub vector_bits: u32,
    /// A cluster has several blocks. They share one window and meet each other, which setting L can do.
    pub clustered: bool,
    /// Every memory access asks the host first (docs/sanitizer.md); runs in L.
    pub sanitize: bool,
}

/// LLVM IR and what the launcher must know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// LLVM IR text with one exported function, [`ENTRY_SIMD`], [`ENTRY_WARP`] or [`ENTRY_LANE`].
    pub text: String,
    pub setting: Setting,
    /// Lanes per group; 1 in L.
    pub width: u32,
    /// Bytes of the context arena per block (S), of one warp's record (P) or of one thread's (L).
    pub context_bytes: u64,
    /// Bytes of one thread's local window, a multiple of 16.
    pub local_bytes: u64,
    /// L: a function that calls itself waits for other threads in between, S: a block for other blocks; both by the
    /// service `suspend`.
    pub stackful: bool,
    /// Why the kernel does not run in S, for the log.
    pub why_not_simd: Option<String>,
    /// Why it does not run in P either.
    pub why_not_warp: Option<String>,
    /// Another width that gives the same in S and may be as fast: which one is, a trial tells.
    pub rival: Option<u32>,
}

pub const ENTRY_SIMD: &str = "cudaway_run";
pub const ENTRY_WARP: &str = "cudaway_step";
pub const ENTRY_LANE: &str = "cudaway_step";

/// Emits `kernel`. `Err` holds the kernel's own diagnostics or what the back end lacks.
pub fn emit(program: &Program, kernel: &Kernel, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    let body = kernel.body.as_ref().map_err(Clone::clone)?;
    let body = &super::llvm::nan::canonical(body);
    let in_lanes_only = options.sanitize.then(|| "the sanitizer runs one lane at a time".to_owned());
    let refused = |wanted: &[Setting]| {
        let other = options.setting.filter(|setting| !wanted.contains(setting)).map(asked_for);
        other.or_else(|| in_lanes_only.clone())
    };
    let mut why_not_simd = refused(&[Setting::Simd]);
    if options.clustered {
        why_not_simd.get_or_insert_with(|| "its clusters have several blocks".to_owned());
    }
    if why_not_simd.is_none() {
        match super::simd::emit(program, kernel, body, options, false) {
            Ok(compiled) => return Ok(compiled),
            Err(reason) => why_not_simd = Some(reason),
        }
    }
    let mut why_not_warp = refused(&[Setting::Simd, Setting::Warp]);
    if why_not_warp.is_none() {
        match super::simd::emit(program, kernel, body, options, true) {
            Ok(compiled) => return Ok(Compiled { why_not_simd, ..compiled }),
            Err(reason) => why_not_warp = Some(reason),
        }
    }
    let compiled = super::lane::emit(program, kernel, body, options)?;
    Ok(Compiled { why_not_simd, why_not_warp, ..compiled })
}

/// The most threads of the flat blocks that open code for `kernel` is for; `None` when all its blocks are the same.
pub fn open_block(kernel: &Header) -> Option<u32> {
    let most = kernel.max_threads().map_or(MOST_THREADS, |most| most.min(MOST_THREADS)) / 32 * 32;
    (kernel.req_ntid.is_none() && most > 32).then_some(most)
}

/// Whether open code is for such blocks, if they are not too long.
pub fn is_open_shape([x, y, z]: [u32; 3]) -> bool {
    y == 1 && z == 1 && x > 0 && x.is_multiple_of(32)
}

/// Whether the kernel asks for its threads by one number only, as those of flat blocks do.
pub fn is_for_flat_blocks(kernel: &Kernel) -> bool {
    let asks = |op: &Op| matches!(op, Op::Special(Special::Tid(1 | 2)));
    kernel
        .body
        .as_ref()
        .is_ok_and(|body| !body.blocks.iter().flat_map(|block| &block.insts).any(|inst| asks(&inst.op)))
}

/// Whether code for each shape of `kernel`'s flat blocks, of `most` threads at most, would be no better than the open code.
pub fn is_as_good_open(kernel: &Kernel, most: u32) -> bool {
    kernel.body.as_ref().is_ok_and(|body| crate::pass::open::is_as_good(body, most))
}

/// Of any block.
const MOST_THREADS: u32 = 1024;

/// Lines of LLVM IR that LLVM compiles in some 150 ms.
const LONG: usize = 3_000;

/// For code in vectors that takes long to compile, code that gives the same and is there sooner: one thread after the
/// other. `None` where `compiled` is short, or a width was asked for, or one thread at a time could be told from many.
pub fn quick(program: &Program, kernel: &Kernel, options: &Options, compiled: &Compiled) -> Option<Compiled> {
    let is_chosen = options.setting.is_none() && options.width.is_none();
    // A block that waits for others stays with the code that it began in.
    let is_wide = compiled.setting == Setting::Simd && compiled.width > 1 && !compiled.stackful;
    if !is_chosen || !is_wide || compiled.text.lines().nth(LONG).is_none() {
        return None;
    }
    if !super::simd::is_any_good(kernel.body.as_ref().ok()?) {
        return None;
    }
    let one = Options { setting: Some(Setting::Simd), width: Some(1), ..options.clone() };
    emit(program, kernel, &one).ok().filter(|quick| quick.setting == Setting::Simd)
}

fn asked_for(setting: Setting) -> String {
    format!("setting {} was asked for", setting.letter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Source;

    /// Settings and widths of the code for a kernel that does `work` `times` times, and of what is there sooner.
    fn made(work: &str, times: usize) -> ((Setting, u32), Option<(Setting, u32)>) {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {{\n\
             .reg .b32 %t, %x;\n.reg .b64 %p, %at;\n.shared .b32 s[256];\n\
             ld.param.u64 %p, [words];\nmov.u32 %t, %tid.x;\nmul.lo.u32 %x, %t, %t;\n{}ret;\n}}\n",
            format!("{work}and.b32 %x, %x, 255;\nmul.wide.u32 %at, %x, 4;\nadd.u64 %at, %at, %p;\nld.global.u32 %x, [%at];\n\
                 st.global.u32 [%at], %t;\n")
            .repeat(times)
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let options = Options {
            block: [256, 1, 1],
            open: false,
            setting: None,
            width: None,
            vector_bits: 256,
            clustered: false,
            sanitize: false,
        };
        let kernel = program.kernel("k").unwrap();
        let compiled = emit(&program, kernel, &options).unwrap();
        let quick = quick(&program, kernel, &options, &compiled);
        ((compiled.setting, compiled.width), quick.map(|it| (it.setting, it.width)))
    }

    #[test]
    fn long_code_has_a_quick_form_unless_the_order_of_threads_could_be_seen() {
        let wide = (Setting::Simd, 16);
        assert_eq!(made("", 50), (wide, Some((Setting::Simd, 1))));
        assert_eq!(made("bar.sync 0;\n", 50), (wide, Some((Setting::Simd, 1))));
        assert_eq!(made("", 5), (wide, None));
        assert_eq!(made("atom.global.add.u32 %x, [%p], 1;\n", 50), (wide, None));
        assert_eq!(made("membar.gl;\n", 50), (wide, None));
        assert_eq!(made("activemask.b32 %x;\n", 50), ((Setting::Simd, 32), None));
    }
}
