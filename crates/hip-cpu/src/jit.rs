//! LLVM 19: IR text → object code, which `code.rs` links into the process. Nothing else touches LLVM.
//!
//! LLVM starts at the first compile, nothing happens at load. Every compile has its own LLVM context, so any number
//! of threads compile at once. The process may end while they do: libcudaway-cpu links LLVM so that its destructors
//! never run.

mod code;
pub(crate) mod exchanges;
mod halves;
mod pages;
mod workers;

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::mpsc::SyncSender;
use std::sync::{Once, OnceLock};

use compiler::back::cpu::{self, Options};
use llvm_sys::LLVMAttributeFunctionIndex;
use llvm_sys::analysis::{LLVMVerifierFailureAction, LLVMVerifyModule};
use llvm_sys::core::*;
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use llvm_sys::error_handling::LLVMInstallFatalErrorHandler;
use llvm_sys::ir_reader::LLVMParseIRInContext;
use llvm_sys::prelude::*;
use llvm_sys::support::LLVMParseCommandLineOptions;
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
use llvm_sys::transforms::pass_builder::*;
use parking_lot::Mutex;
use tracing::warn;

use crate::thread::Crew;

pub use code::Code;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the generated LLVM IR does not parse: {0}")]
    Parse(String),
    #[error("the generated LLVM IR is not valid: {0}")]
    Verify(String),
    #[error("LLVM's optimiser: {0}")]
    Optimise(String),
    #[error("LLVM's code generator: {0}")]
    Generate(String),
    #[error("loading object code: {0}")]
    Load(String),
}

/// The machine that code is made for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    pub cpu: String,
    pub features: String,
    /// Widest vector register in bits: 128, 256 or 512.
    pub vector_bits: u32,
}

impl Target {
    /// This machine, or the level of x86-64 that `CUDAWAY_CPU_TARGET` names, if the machine has it.
    pub fn host() -> &'static Target {
        static HOST: OnceLock<Target> = OnceLock::new();
        HOST.get_or_init(|| {
            start();
            // SAFETY: LLVM hands over C strings of its own, which `take` frees.
            let (cpu, features) = unsafe { (take(LLVMGetHostCPUName()), take(LLVMGetHostCPUFeatures())) };
            let features = without_half_precision(&features);
            let has = |name: &str| features.split(',').any(|f| f.strip_prefix('+') == Some(name));
            let vector_bits = if ["avx512f", "avx512bw", "avx512dq", "avx512vl"].iter().all(|f| has(f)) {
                512
            } else if has("avx2") {
                256
            } else {
                128
            };
            let machine = Target { cpu, features, vector_bits };
            let asked_for = config::get().cpu_target;
            match asked_for.and_then(|name| LEVELS.iter().find(|level| level.name == name)) {
                Some(level) if machine.has(level.features) => Target::held_to(level),
                Some(level) => {
                    warn!(target: "cudaway::config", "CUDAWAY_CPU_TARGET: this processor has not all of {}", level.name);
                    machine
                }
                None => machine,
            }
        })
    }

    /// The targets whose code runs here, the best first: this machine, then the levels of x86-64 that it has.
    pub fn usable() -> &'static [Target] {
        static USABLE: OnceLock<Vec<Target>> = OnceLock::new();
        USABLE.get_or_init(|| {
            let host = Target::host();
            let levels = LEVELS.iter().filter(|level| host.has(level.features)).map(Target::level);
            std::iter::once(host.clone()).chain(levels).collect()
        })
    }

    /// The target of that name: `native`, or a level of x86-64, which this machine need not have.
    pub fn named(name: &str) -> Option<Target> {
        if name == "native" {
            return Some(Target::host().clone());
        }
        LEVELS.iter().find(|level| level.name == name).map(Target::level)
    }

    /// For blocks of that shape on this target, as the translator chooses.
    pub fn options(&self, block: [u32; 3]) -> Options {
        let has_vnni = self.vector_bits >= 512 && self.has(&["avx512vnni"]);
        Options { has_vnni, ..Options::new(block, self.vector_bits) }
    }

    fn level(level: &Level) -> Target {
        Target { cpu: level.name.to_owned(), features: String::new(), vector_bits: level.vector_bits }
    }

    /// This machine held to a level. What it keeps in the cache is not the level's own code, which every better machine takes as well.
    fn held_to(level: &Level) -> Target {
        let features: Vec<String> = level.features.iter().map(|feature| format!("+{feature}")).collect();
        Target { features: features.join(","), ..Target::level(level) }
    }

    /// Whether it has all of these features.
    fn has(&self, features: &[&str]) -> bool {
        let own = || self.features.split(',').filter_map(|feature| feature.strip_prefix('+'));
        features.iter().all(|feature| own().any(|it| it == *feature))
    }

    /// This machine with its vector registers narrowed to `bits`, to run what a smaller one would.
    pub fn narrowed(bits: u32) -> Target {
        let host = Target::host();
        let mut target = host.clone();
        if bits < 512 && host.vector_bits >= 512 {
            target.cpu = "x86-64-v3".to_owned();
            let kept = host.features.split(',').filter(|f| !f.contains("avx512") && !f.contains("avx10"));
            target.features = kept.collect::<Vec<_>>().join(",");
            target.features.push_str(",-avx512f");
            target.vector_bits = 256;
        }
        if bits < 256 && host.vector_bits >= 256 {
            target.cpu = "x86-64-v2".to_owned();
            target.features = "-avx".to_owned();
            target.vector_bits = 128;
        }
        target
    }
}

/// A level of x86-64 (System V ABI, AMD64 supplement, "Micro-architecture levels"), by LLVM's name.
struct Level {
    name: &'static str,
    vector_bits: u32,
    /// What a processor that has the level has, by LLVM's names.
    features: &'static [&'static str],
}

/// The best first.
const LEVELS: [Level; 2] = [
    Level {
        name: "x86-64-v4",
        vector_bits: 512,
        features: &[
            "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx", "avx2", "bmi", "bmi2", "f16c",
            "fma", "lzcnt", "movbe", "xsave", "cx16", "crc32", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2",
            "ssse3",
        ],
    },
    Level {
        name: "x86-64-v3",
        vector_bits: 256,
        features: &[
            "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave", "cx16", "crc32", "sahf",
            "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3",
        ],
    },
];

/// The features but for arithmetic of halves in vectors: LLVM 19 swaps the operands of a masked `vcmpph` to take one of them from
/// the stack, and leaves the relation as it was, so that "less" becomes "greater" (llvm-project issue 159723, mended in pull
/// request 160304). Without it halves are compared as floats.
fn without_half_precision(features: &str) -> String {
    // AVX10 would bring it back.
    let kept = features.split(',').filter(|f| !f.contains("avx512fp16") && !f.contains("avx10"));
    kept.chain(["-avx512fp16"]).collect::<Vec<_>>().join(",")
}

/// How much LLVM is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effort {
    /// Code at once: no passes over the IR, the fast instruction selector and the fast register allocator, whose time grows
    /// with the text alone.
    Baseline,
    /// The same code generator behind the passes that look at a block of instructions by itself: values that blocks hand on stay in
    /// memory, so that nothing grows with the number of blocks that each is handed through. Of the text in vectors of a merge
    /// sort (82,000 lines, 7,200 blocks) it makes code in about a sixth of what fast code takes.
    Thrifty,
    /// Fast code.
    Best,
}

impl Effort {
    /// The pass pipeline.
    fn passes(self, in_order: bool) -> Option<&'static CStr> {
        match self {
            Effort::Best if in_order => Some(PASSES_IN_ORDER),
            Effort::Baseline => None,
            // With the pass that combines instructions it would take a sixth longer, and the code of sorts 8 % less.
            Effort::Thrifty => Some(c"function(early-cse,simplifycfg,early-cse)"),
            Effort::Best => Some(PASSES),
        }
    }

    fn level(self) -> LLVMCodeGenOptLevel {
        match self {
            Effort::Baseline | Effort::Thrifty => LLVMCodeGenOptLevel::LLVMCodeGenLevelNone,
            Effort::Best => LLVMCodeGenOptLevel::LLVMCodeGenLevelDefault,
        }
    }
}

/// LLVM 19's `default<O2>`, but for what looks for other things than kernels have (coroutines, OpenMP, profiles, instructions of
/// straight lines to join), and with two of its eight turns of the pass that combines instructions: in the middle of the work on
/// each function, and at the end, where loops are unrolled. That pass asks of every operand what can be known of it, of a
/// constant vector element by element, and takes half of the time of all passes; without the six turns the rows of `bench peers` stay
/// where they are, and CUB's kernels take LLVM 11 % less, Triton's attention 16 %.
const PASSES: &CStr = c"inferattrs,function<eager-inv>(simplifycfg,sroa,early-cse),ipsccp,globalopt,\
    function<eager-inv>(mem2reg,simplifycfg<switch-range-to-icmp>),\
    always-inline,require<globals-aa>,function(invalidate<aa>),\
    cgscc(inline,function-attrs<skip-non-recursive-function-attrs>,function<eager-inv;no-rerun>(\
    sroa,early-cse<memssa>,jump-threading,correlated-propagation,simplifycfg<switch-range-to-icmp>,\
    instcombine<no-verify-fixpoint>,aggressive-instcombine,tailcallelim,simplifycfg<switch-range-to-icmp>,\
    reassociate,constraint-elimination,\
    loop-mssa(loop-instsimplify,loop-simplifycfg,licm<no-allowspeculation>,loop-rotate,licm,simple-loop-unswitch<trivial>),\
    simplifycfg<switch-range-to-icmp>,\
    loop(loop-idiom,indvars,simple-loop-unswitch<trivial>,loop-deletion,loop-unroll-full),\
    sroa,vector-combine,mldst-motion,gvn,sccp,bdce,jump-threading,correlated-propagation,adce,memcpyopt,dse,\
    loop-mssa(licm),simplifycfg<switch-range-to-icmp;hoist-common-insts;sink-common-insts>),function-attrs),\
    deadargelim,globalopt,globaldce,rpo-function-attrs,recompute-globalsaa,\
    function<eager-inv>(loop(loop-rotate,loop-deletion),loop-vectorize,infer-alignment,loop-load-elim,\
    simplifycfg<forward-switch-cond;switch-range-to-icmp;switch-to-lookup;no-keep-loops;hoist-common-insts;sink-common-insts>,\
    vector-combine,loop-unroll<O2>,sroa<preserve-cfg>,infer-alignment,\
    instcombine<no-verify-fixpoint>,loop-mssa(licm),alignment-from-assumptions,loop-sink,instsimplify,div-rem-pairs,\
    tailcallelim,simplifycfg<switch-range-to-icmp;speculate-unpredictables>),globaldce,constmerge";

/// What is left for straight code of vectors to gain, without the pass that combines instructions: it takes all that a store
/// behind a guard is made of into the store's block, behind everything else. Of SHA-256's rounds and the words that they take
/// by turns it leaves all rounds behind all words, which then are spilled: a sixth more time in the code, and eight times as
/// much in the passes.
const PASSES_IN_ORDER: &CStr = c"function(sroa,early-cse<memssa>,simplifycfg,instsimplify,loop-mssa(loop-rotate,licm),gvn,instsimplify,adce,simplifycfg)";

/// Options of LLVM's for the whole process, in which this LLVM is ours alone; the first is a program's name.
///
/// * Both schedulers take time with the square of a block's memory accesses until there are so many that they treat them
///   alike: the one before the allocation of registers does so from 100 on for us, for 1,000, and the one behind it, which
///   processors that reorder by themselves gain nothing by, is left out. CUB's radix histogram (18,313 lines in setting `simd`) takes
///   0.15 s for 1.64 in the code generator.
/// * A value that thousands of blocks hand on is joined with each of its copies, and looked through whole each time: after 32 of 256
///   such joins its copies stay. CUB's merge sort of `__half` in 20,000 places takes 1.1 s for 3.3 in there.
/// * Which numbers would be as well off in mask registers is looked for along all that they are made of, and what is made of them, once for
///   each of them: with the square of a long block of integers. Of hashcat's MD5 (35,000 lines in setting `lane`) it takes half.
const OPTIONS: [&CStr; 5] = [
    c"cudaway",
    c"-disable-post-ra",
    c"-dag-maps-huge-region=100",
    c"-large-interval-freq-threshold=32",
    c"-disable-x86-domain-reassignment",
];

fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: initialisation under `Once`; the handler is a function of ours for the process's life.
        unsafe {
            LLVMInstallFatalErrorHandler(Some(fatal));
            LLVMInitializeX86TargetInfo();
            LLVMInitializeX86Target();
            LLVMInitializeX86TargetMC();
            LLVMInitializeX86AsmPrinter();
            LLVMInitializeX86AsmParser();
            let options: Vec<*const c_char> = OPTIONS.iter().map(|option| option.as_ptr()).collect();
            LLVMParseCommandLineOptions(options.len() as c_int, options.as_ptr(), ptr::null());
        }
    });
}

/// Where a compile's object code, or why there is none, goes.
type Answer = SyncSender<Result<Vec<u8>, Error>>;

thread_local! {
    /// Where this thread's compile answers.
    static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
}

/// LLVM would end the process after this ("cannot select …"). So it never returns: the compile fails, its thread stays.
extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a C string.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    let answer = ANSWER.try_with(|answer| answer.take()).ok().flatten();
    let Some(answer) = answer else {
        tracing::error!(target: "cudaway::cpu", "LLVM stops the process: {reason}");
        return;
    };
    let _ = answer.send(Err(Error::Generate(reason)));
    drop(answer);
    loop {
        std::thread::park();
    }
}

/// A message LLVM allocated with its own allocator; freed here.
unsafe fn take(message: *mut c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: the caller passes LLVM's C string, which no one else frees.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        text
    }
}

/// Turns LLVM's error into `Err`; consumes it.
unsafe fn check(error: LLVMErrorRef, wrap: fn(String) -> Error) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a non-null LLVMErrorRef that no one consumed yet.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(wrap(text))
    }
}

/// Frees with its matching function at the end of the scope.
struct Owned<T: Copy>(T, unsafe extern "C" fn(T));

impl<T: Copy> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: constructed with an object and its own dispose function, used once.
        unsafe { (self.1)(self.0) }
    }
}

/// A machine that code is made for, of one effort's code generator. What it has worked out of the processor's features stays, so
/// the next compile has it.
struct Machine {
    target: Target,
    level: LLVMCodeGenOptLevel,
    machine: Owned<LLVMTargetMachineRef>,
}

// SAFETY: one thread at a time has it; LLVM keeps nothing of a thread's in it.
unsafe impl Send for Machine {}

/// Machines that nobody uses now. Bound: as many as were used at once, for each target that code is made for.
static MACHINES: Mutex<Vec<Machine>> = Mutex::new(Vec::new());

impl Machine {
    fn get(target: &Target, effort: Effort) -> Result<Machine, Error> {
        let level = effort.level();
        let mut machines = MACHINES.lock();
        let nth = machines.iter().position(|it| it.level == level && it.target == *target);
        if let Some(nth) = nth {
            return Ok(machines.swap_remove(nth));
        }
        drop(machines);
        Machine::new(target, level)
    }

    /// Somebody else may have it. One whose compile failed is not kept.
    fn give_back(self) {
        MACHINES.lock().push(self);
    }

    fn new(target: &Target, level: LLVMCodeGenOptLevel) -> Result<Machine, Error> {
        let cpu = CString::new(target.cpu.as_str()).map_err(|e| Error::Generate(e.to_string()))?;
        let features = CString::new(target.features.as_str()).map_err(|e| Error::Generate(e.to_string()))?;
        // SAFETY: C strings live through the calls; the results are checked.
        unsafe {
            let triple = LLVMGetDefaultTargetTriple();
            let _triple = Owned(triple, LLVMDisposeMessage);
            let mut machine_kind = ptr::null_mut();
            let mut message = ptr::null_mut();
            if LLVMGetTargetFromTriple(triple, &mut machine_kind, &mut message) != 0 {
                return Err(Error::Generate(take(message)));
            }
            let machine = LLVMCreateTargetMachine(
                machine_kind,
                triple,
                cpu.as_ptr(),
                features.as_ptr(),
                level,
                LLVMRelocMode::LLVMRelocPIC,
                LLVMCodeModel::LLVMCodeModelDefault,
            );
            if machine.is_null() {
                return Err(Error::Generate(format!("no target machine for {}", target.cpu)));
            }
            let machine = Owned(machine, LLVMDisposeTargetMachine);
            Ok(Machine { target: target.clone(), level, machine })
        }
    }
}

/// Errors the code generator reports through the context instead of a return value.
extern "C" fn diagnosed(info: LLVMDiagnosticInfoRef, context: *mut c_void) {
    // SAFETY: `context` is the `Vec<String>` of `compile`, alive while LLVM works for it.
    unsafe {
        let text = take(LLVMGetDiagInfoDescription(info));
        match LLVMGetDiagInfoSeverity(info) {
            llvm_sys::LLVMDiagnosticSeverity::LLVMDSError => (*context.cast::<Vec<String>>()).push(text),
            _ => tracing::trace!(target: "cudaway::cpu", "LLVM: {text}"),
        }
    }
}

/// Bytes of a text whose making has left much free memory behind.
const LONG: usize = 4 << 20;

/// What was freed for a long text goes back to the system: LLVM's threads have heaps of their own, which do not use it.
fn give_back(text: &str) {
    if text.len() > LONG {
        // SAFETY: no condition.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Compiles IR text to an object file in memory, in a thread of ours, which belongs to the caller's crew meanwhile.
pub fn compile(name: &str, text: &str, target: &Target, effort: Effort) -> Result<Vec<u8>, Error> {
    give_back(text);
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    let (name, text, target) = (name.to_owned(), text.to_owned(), target.clone());
    let crew = Crew::own();
    workers::run(move || {
        let member = crew.as_ref().map(Crew::join);
        ANSWER.with(|answer| answer.replace(Some(send.clone())));
        // A panic is told by the answer that never comes.
        let result = catch_unwind(AssertUnwindSafe(|| compile_here(&name, &text, &target, effort)));
        ANSWER.with(|answer| answer.take());
        drop((name, text, member));
        if let Ok(result) = result {
            let _ = send.send(result);
        }
    })?;
    receive.recv().unwrap_or_else(|_| Err(Error::Generate("the compile panicked".to_owned())))
}

fn compile_here(name: &str, text: &str, target: &Target, effort: Effort) -> Result<Vec<u8>, Error> {
    start();
    let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
    let taken = Machine::get(target, effort)?;
    let machine = &taken.machine;
    let mut complaints: Vec<String> = Vec::new();
    // SAFETY: LLVM's C API as documented: every object is created, checked, and freed by its `Owned` in reverse
    // order; `complaints` outlives the context whose handler writes to it.
    unsafe {
        let context = Owned(LLVMContextCreate(), LLVMContextDispose);
        LLVMContextSetDiagnosticHandler(context.0, Some(diagnosed), (&raw mut complaints).cast());
        let module = parse(&context, &name, text)?;

        let layout = Owned(LLVMCreateTargetDataLayout(machine.0), LLVMDisposeTargetData);
        LLVMSetModuleDataLayout(module.0, layout.0);
        let triple = Owned(LLVMGetTargetMachineTriple(machine.0), LLVMDisposeMessage);
        LLVMSetTarget(module.0, triple.0);

        // The text is the same tier's for every run; tests verify it, a user does not wait for that.
        if effort != Effort::Baseline || cfg!(debug_assertions) {
            verify(module.0)?;
        }
        if let Some(passes) = effort.passes(is_in_order(module.0)) {
            optimise(module.0, machine.0, passes)?;
            halves::widen(context.0, module.0);
        }

        let mut object = ptr::null_mut();
        let mut message = ptr::null_mut();
        let kind = LLVMCodeGenFileType::LLVMObjectFile;
        if LLVMTargetMachineEmitToMemoryBuffer(machine.0, module.0, kind, &mut message, &mut object) != 0 {
            return Err(Error::Generate(take(message)));
        }
        let object = Owned(object, LLVMDisposeMemoryBuffer);
        if !complaints.is_empty() {
            return Err(Error::Generate(complaints.join("; ")));
        }
        let bytes = std::slice::from_raw_parts(
            LLVMGetBufferStart(object.0).cast::<u8>(),
            LLVMGetBufferSize(object.0),
        )
        .to_vec();
        drop((object, triple, layout, module, context));
        taken.give_back();
        Ok(bytes)
    }
}

/// Whether LLVM takes IR text for valid, without compiling it.
pub fn check_text(name: &str, text: &str) -> Result<(), Error> {
    start();
    // SAFETY: freed after the module that stands in it.
    let context = unsafe { Owned(LLVMContextCreate(), LLVMContextDispose) };
    let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
    verify(parse(&context, &name, text)?.0)
}

fn parse(context: &Owned<LLVMContextRef>, name: &CStr, text: &str) -> Result<Owned<LLVMModuleRef>, Error> {
    let mut module = ptr::null_mut();
    let mut message = ptr::null_mut();
    // SAFETY: the copy is NUL-terminated, as the reader wants, which frees it; `message` becomes a C string of LLVM's.
    unsafe {
        let buffer =
            LLVMCreateMemoryBufferWithMemoryRangeCopy(text.as_ptr().cast(), text.len(), name.as_ptr());
        if LLVMParseIRInContext(context.0, buffer, &mut module, &mut message) != 0 {
            return Err(Error::Parse(take(message)));
        }
    }
    Ok(Owned(module, LLVMDisposeModule))
}

fn verify(module: LLVMModuleRef) -> Result<(), Error> {
    let mut message = ptr::null_mut();
    let action = LLVMVerifierFailureAction::LLVMReturnStatusAction;
    // SAFETY: a module of the caller's; `message` becomes a C string of LLVM's.
    let (broken, message) = unsafe {
        let broken = LLVMVerifyModule(module, action, &mut message) != 0;
        (broken, take(message))
    };
    if broken { Err(Error::Verify(message)) } else { Ok(()) }
}

/// Whether a function of the module asks for it.
fn is_in_order(module: LLVMModuleRef) -> bool {
    let name = cpu::IN_ORDER;
    let has = |function| {
        // SAFETY: the module's function, and a name of so many bytes.
        unsafe {
            let (key, length) = (name.as_ptr().cast(), name.len() as u32);
            !LLVMGetStringAttributeAtIndex(function, LLVMAttributeFunctionIndex, key, length).is_null()
        }
    };
    let some = |function: LLVMValueRef| (!function.is_null()).then_some(function);
    // SAFETY: the caller's module and its functions.
    let (first, next) = unsafe { (LLVMGetFirstFunction(module), |&it: &_| some(LLVMGetNextFunction(it))) };
    std::iter::successors(some(first), next).any(has)
}

fn optimise(module: LLVMModuleRef, machine: LLVMTargetMachineRef, passes: &CStr) -> Result<(), Error> {
    // SAFETY: the caller's objects; the options are freed by their `Owned`.
    unsafe {
        let options = Owned(LLVMCreatePassBuilderOptions(), LLVMDisposePassBuilderOptions);
        check(LLVMRunPasses(module, passes.as_ptr(), machine, options.0), Error::Optimise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(text: &str) -> Result<Code, Error> {
        Code::load(&compile("test", text, Target::host(), Effort::Best)?)
    }

    /// The text once the passes of the best code went over it.
    fn optimised(text: &str) -> String {
        start();
        let taken = Machine::get(Target::host(), Effort::Best).unwrap();
        // SAFETY: as in `compile_here`.
        unsafe {
            let context = Owned(LLVMContextCreate(), LLVMContextDispose);
            let buffer =
                LLVMCreateMemoryBufferWithMemoryRangeCopy(text.as_ptr().cast(), text.len(), c"".as_ptr());
            let (mut module, mut message) = (ptr::null_mut(), ptr::null_mut());
            assert_eq!(LLVMParseIRInContext(context.0, buffer, &mut module, &mut message), 0);
            let module = Owned(module, LLVMDisposeModule);
            let passes = Effort::Best.passes(is_in_order(module.0)).unwrap();
            optimise(module.0, taken.machine.0, passes).unwrap();
            take(LLVMPrintModuleToString(module.0))
        }
    }

    #[test]
    fn what_is_to_stay_in_order_is_not_taken_behind_a_guard() {
        let text = |attribute: &str| {
            format!(
                "define void @f(ptr %to, ptr %other, i32 %a, i32 %b, i1 %some) {attribute} {{\n  %product = mul i32 %a, %b\n  %sum = add i32 %a, %b\n  \
                 store i32 %sum, ptr %to\n  br i1 %some, label %then, label %end\nthen:\n  \
                 store i32 %product, ptr %other\n  br label %end\nend:\n  ret void\n}}\n"
            )
        };
        let is_before = |text: &str| text.find(" = mul ").unwrap() < text.find("br i1").unwrap();
        assert!(is_before(&optimised(&text("\"cudaway-in-order\""))));
        assert!(!is_before(&optimised(&text(""))));
    }

    #[test]
    fn ir_text_becomes_a_function_that_runs() {
        let code = build("define i32 @f(i32 %a) {\n  %b = add i32 %a, 41\n  ret i32 %b\n}\n").unwrap();
        let f = code.function("f").unwrap();
        // SAFETY: the IR above has this signature.
        let f = unsafe { std::mem::transmute::<*const c_void, extern "C" fn(i32) -> i32>(f) };
        assert_eq!(f(1), 42);
    }

    #[test]
    fn text_that_does_not_parse_is_an_error_with_its_line() {
        let error = build("define i32 @f() {\n  ret i32 %nothing\n}\n").err().unwrap();
        assert!(error.to_string().contains("test:2:11"), "{error}");
        assert!(error.to_string().contains("undefined value '%nothing'"), "{error}");
    }

    #[test]
    fn text_that_breaks_ssa_is_an_error_of_the_verifier() {
        let text = "define i32 @f(i1 %c) {\n  br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 2\n  br label %b\nb:\n  ret i32 %x\n}\n";
        assert!(matches!(build(text), Err(Error::Verify(_))));
    }

    #[test]
    fn what_llvm_calls_fatal_fails_this_compile_only() {
        // No selection pattern: an intrinsic of another target.
        let text = "declare i32 @llvm.amdgcn.workitem.id.x()\ndefine i32 @f() {\n  %a = call i32 @llvm.amdgcn.workitem.id.x()\n  ret i32 %a\n}\n";
        let error = compile("test", text, Target::host(), Effort::Best).unwrap_err();
        assert!(matches!(error, Error::Generate(_)), "{error}");
        build("define i32 @f() {\n  ret i32 1\n}\n").unwrap();
    }

    #[test]
    fn code_for_the_levels_that_a_processor_has_runs_on_it() {
        let usable = Target::usable();
        assert_eq!(&usable[0], Target::host());
        for target in &usable[1..] {
            assert!(target.vector_bits <= Target::host().vector_bits);
            let text = "define i32 @f(i32 %a) {\n  %b = add i32 %a, 41\n  ret i32 %b\n}\n";
            let code = Code::load(&compile("test", text, target, Effort::Best).unwrap()).unwrap();
            assert!(!code.function("f").unwrap().is_null());
        }
        // The kernel's list says what this machine has.
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags: Vec<&str> =
            flags.lines().find(|line| line.starts_with("flags")).unwrap().split(' ').collect();
        let has = |names: &[&str]| names.iter().all(|name| flags.contains(name));
        let v3 = has(&["avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"]);
        let v4 = v3 && has(&["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]);
        let names: Vec<&str> = usable[1..].iter().map(|target| &*target.cpu).collect();
        assert_eq!(names.contains(&"x86-64-v3"), v3);
        assert_eq!(names.contains(&"x86-64-v4"), v4);
        assert!(Target::named("x86-64-v9").is_none());
    }

    /// Wrong code of LLVM 19 for halves is found by tests/random.rs, on processors that have them in vectors.
    #[test]
    fn vectors_of_halves_are_left_to_floats() {
        let features = "+avx512f,+avx512fp16,-avx10.1-512,+f16c,+avx10.1-256";
        assert_eq!(without_half_precision(features), "+avx512f,+f16c,-avx512fp16");
        assert!(!Target::host().features.contains("+avx512fp16"));
    }

    #[test]
    fn wide_division_and_memory_calls_are_found() {
        let code = build(
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n\
             define i64 @f(ptr %d, ptr %s, i64 %n, i128 %a, i128 %b) {\n\
             call void @llvm.memcpy.p0.p0.i64(ptr %d, ptr %s, i64 %n, i1 false)\n\
             %q = udiv i128 %a, %b\n %t = trunc i128 %q to i64\n ret i64 %t\n}\n",
        )
        .unwrap();
        assert!(!code.function("f").unwrap().is_null());
    }

    #[test]
    fn eight_threads_compile_at_once() {
        std::thread::scope(|scope| {
            for i in 0..8 {
                scope.spawn(move || {
                    let code = build(&format!("define i32 @f() {{\n  ret i32 {i}\n}}\n")).unwrap();
                    let f = code.function("f").unwrap();
                    // SAFETY: the IR above has this signature.
                    let f = unsafe { std::mem::transmute::<*const c_void, extern "C" fn() -> i32>(f) };
                    assert_eq!(f(), i);
                });
            }
        });
    }
}
