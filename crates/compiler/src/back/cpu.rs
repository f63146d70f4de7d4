//! The CPU target: picks the setting for a kernel and emits it. Entry points and structures: docs/architecture.md.

use std::borrow::Cow;

use super::llvm::inst::matrix::Layout;
use crate::ir::{Function, Op, Special};
use crate::pass::taken_apart;
use crate::program::{Diagnostic, Header, Kernel, Program};

/// How a block is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// Every thread by itself.
    Lane,
    /// Warps of 32 lanes, every warp by itself.
    Warp,
    /// Groups of lanes, the block from barrier to barrier.
    Simd,
}

impl Setting {
    /// Its name in documents and logs.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Lane => "lane",
            Setting::Warp => "warp",
            Setting::Simd => "simd",
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
    /// `None` chooses: `simd` where the kernel allows it, else `warp`, else `lane`. A setting that the kernel does not allow falls
    /// back in the same order; `lane` is not allowed where a warp's lanes have to go in step (`pass::in_step`).
    pub setting: Option<Setting>,
    /// Lanes per group in `simd`; `None` chooses.
    pub width: Option<u32>,
    /// Widest vector register of the CPU in bits: 128, 256 or 512 (AVX-512 masks).
    pub vector_bits: u32,
    /// The CPU sums up products of bytes by one instruction (AVX-512's VNNI).
    pub has_vnni: bool,
    /// A cluster has several blocks. They share one window and meet each other, which setting `lane` can do.
    pub clustered: bool,
    /// Every memory access asks the host first (docs/sanitizer.md); runs in `lane`.
    pub sanitize: bool,
    /// In `lane`, what takes more than a few lines is called, as in baseline code: for kernels whose text would be long.
    pub brief: bool,
}

impl Options {
    /// For blocks of that shape, as the translator chooses.
    pub fn new(block: [u32; 3], vector_bits: u32) -> Options {
        Options {
            block,
            open: false,
            setting: None,
            width: None,
            vector_bits,
            has_vnni: false,
            clustered: false,
            sanitize: false,
            brief: false,
        }
    }
}

/// LLVM IR and what the launcher must know to run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// LLVM IR text with one exported function, [`ENTRY_SIMD`], [`ENTRY_WARP`] or [`ENTRY_LANE`].
    pub text: String,
    pub setting: Setting,
    /// Lanes per group; 1 in `lane`.
    pub width: u32,
    /// Bytes of the context arena per block (`simd`), of one warp's record (`warp`) or of one thread's (`lane`).
    pub context_bytes: u64,
    /// Bytes of one thread's local window, a multiple of 16.
    pub local_bytes: u64,
    /// `lane`: a function that calls itself waits for other threads in between, `simd`: a block for other blocks; both by the
    /// service `suspend`.
    pub stackful: bool,
    /// `lane`: a block asks before the first thing that others see of it whether it is to go on, by the service `commit`; until then
    /// it can be given up and begun anew.
    pub is_gated: bool,
    /// Why the kernel does not run in `simd`, for the log.
    pub why_not_simd: Option<String>,
    /// Why it does not run in `warp` either.
    pub why_not_warp: Option<String>,
    /// Another width that gives the same in `simd` and may be as fast: which one is, a trial tells.
    pub rival: Option<u32>,
    /// `simd` and `warp`: values that live on where lanes that went together part, of all such places. LLVM joins them with what they are on the
    /// other ways there, which the text's length does not tell.
    pub handed_over: u32,
}

pub const ENTRY_SIMD: &str = "cudaway_run";
pub const ENTRY_WARP: &str = "cudaway_step";
pub const ENTRY_LANE: &str = "cudaway_step";

/// An attribute of the exported function: straight code of more values than registers, which LLVM is not to take out of its order.
pub const IN_ORDER: &str = "cudaway-in-order";

/// Emits `kernel`. `Err` holds the kernel's own diagnostics or what the back end lacks.
pub fn emit(program: &Program, kernel: &Kernel, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    let body = kernel.body.as_ref().map_err(Clone::clone)?;
    let body = &taken_apart(body, options);
    let body = &super::llvm::nan::canonical(body);
    let in_step = crate::pass::in_step::counts_on_it(body);
    let in_lanes_only = options.sanitize.then(|| "the sanitizer runs one lane at a time".to_owned());
    let refused = |wanted: &[Setting]| {
        let asked = options.setting.filter(|&setting| !(in_step && setting == Setting::Lane));
        let other = asked.filter(|setting| !wanted.contains(setting)).map(asked_for);
        other.or_else(|| in_lanes_only.clone())
    };
    let mut why_not_simd = refused(&[Setting::Simd]);
    if options.clustered {
        why_not_simd.get_or_insert_with(|| "its clusters have several blocks".to_owned());
    }
    if why_not_simd.is_none() {
        match super::simd::emit(program, kernel, body, options, in_step, false) {
            Ok(compiled) => return Ok(compiled),
            Err(reason) => why_not_simd = Some(reason),
        }
    }
    let mut why_not_warp = refused(&[Setting::Simd, Setting::Warp]);
    if why_not_warp.is_none() {
        match super::simd::emit(program, kernel, body, options, in_step, true) {
            Ok(compiled) => return Ok(Compiled { why_not_simd, ..compiled }),
            Err(reason) if in_step => {
                why_not_warp = Some(format!(
                    "{reason}; it counts on a warp's lanes going in step, which they do not in `lane`"
                ))
            }
            Err(reason) => why_not_warp = Some(reason),
        }
    }
    let compiled = super::lane::emit(program, kernel, body, options)?;
    Ok(Compiled { why_not_simd, why_not_warp, ..compiled })
}

/// The function for these options. A product of four warps with a sparse A has one of `mma` for each 8 columns. Where the host is
/// asked of each access nothing is left whole.
pub(super) fn taken_apart<'f>(function: &'f Function, options: &Options) -> Cow<'f, Function> {
    taken_apart::run(function, |op| match op {
        Op::Wgmma(wgmma) => options.sanitize || Layout::of(&wgmma.mma).is_none(),
        Op::CopyAsync(_) | Op::MatrixRows(_) => options.sanitize,
        _ => false,
    })
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
    let is_good = |body| crate::pass::open::is_as_good(body, most) && !super::simd::width::may_overlap(body);
    kernel.body.as_ref().is_ok_and(is_good)
}

/// Of any block.
const MOST_THREADS: u32 = 1024;

/// Of code in setting `lane` that reads the block's shape from the launch, and is for all of them.
pub const ANY_BLOCK: [u32; 3] = [0; 3];

/// Code for blocks of any shape that is made as soon as can be, in setting L: it gives what the code that [`emit`] chooses
/// gives, and stands in for it until that is there.
pub fn emit_baseline(
    program: &Program,
    kernel: &Kernel,
    clustered: bool,
    vector_bits: u32,
) -> Result<Compiled, Vec<Diagnostic>> {
    let body = kernel.body.as_ref().map_err(Clone::clone)?;
    let lane = Some(Setting::Lane);
    let options = Options { setting: lane, clustered, ..Options::new(ANY_BLOCK, vector_bits) };
    let body = &taken_apart(body, &options);
    let body = &super::llvm::nan::canonical(body);
    super::lane::emit(program, kernel, body, &options)
}

/// How many instructions threads of a launch come through.
pub use crate::pass::steps;

/// What a kernel's code costs to make and to run, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    pub instructions: u32,
    /// It may come to an instruction again.
    pub loops: bool,
    /// It multiplies matrices.
    pub products: bool,
    /// When others see something of a block for the first time, it may still have loops before it whose trips a launch decides.
    pub has_long_tail: bool,
    /// It counts on the lanes of a warp going in step, which they do not in baseline code.
    pub in_step: bool,
}

impl Weight {
    pub fn of(kernel: &Kernel) -> Option<Weight> {
        let body = kernel.body.as_ref().ok()?;
        let calls = |op: &Op| matches!(op, Op::Call(_));
        let is_called = body.blocks.iter().flat_map(|block| &block.insts).any(|inst| calls(&inst.op));
        let insts = || body.blocks.iter().flat_map(|block| &block.insts);
        Some(Weight {
            instructions: u32::try_from(insts().count()).unwrap_or(u32::MAX),
            loops: crate::pass::loops::any(body) || is_called,
            products: crate::matrix::multiplies(body),
            has_long_tail: is_called || crate::pass::effects::is_followed_by_long_loops(body),
            in_step: crate::pass::in_step::counts_on_it(body),
        })
    }

    /// Whether somebody who waits for the kernel is better off with baseline code meanwhile: the shortest is there in 1 ms, and the best
    /// code of the same kernel in 12. Who measures waits for the best code of each way to multiply, so the baseline code would be made for
    /// nothing.
    pub fn is_worth_baseline(self, is_measured: bool) -> bool {
        !(self.products && is_measured)
    }
}

fn asked_for(setting: Setting) -> String {
    format!("setting {} was asked for", setting.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Source;

    fn weight(body: &str) -> Weight {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words) {{\n\
             .reg .b32 %t;\n.reg .pred %p;\n.reg .b64 %at;\nld.param.u64 %at, [words];\nmov.u32 %t, %tid.x;\n{body}\
             st.global.u32 [%at], %t;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        Weight::of(program.kernel("k").unwrap()).unwrap()
    }

    #[test]
    fn products_that_are_measured_are_not_worth_baseline_code() {
        let line = "mad.lo.u32 %t, %t, %t, 7;\n";
        let in_loop =
            |times: usize| format!("AGAIN:\n{}setp.ne.u32 %p, %t, 5;\n@%p bra AGAIN;\n", line.repeat(times));
        assert!(weight(line).is_worth_baseline(true) && weight(&in_loop(1)).is_worth_baseline(true));
        assert!(!weight(line).loops && weight(&in_loop(1)).loops);
        let product = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%t, %t}, {%t}, {%t}, {%t, %t};\n";
        let product = weight(&(in_loop(300) + product));
        assert!(!product.is_worth_baseline(true) && product.is_worth_baseline(false));
    }
}
