//! Modules: linked sources whose variables have memory; functions: their kernels, lowered when asked for and compiled
//! per block shape.
//!
//! No lock is held while a kernel is lowered or compiled: threads that ask for several get them side by side.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use compiler::back::cpu;
use compiler::ir::SharedLayout;
use compiler::program::{Header, Target};
use compiler::{Program, Source};
use hip_sys::*;
use parking_lot::{Mutex, RwLock};

use crate::device;
use crate::error::Result;
use crate::exec;
use crate::foreseen::{self, Launched, List};
use crate::handle::Registry;
use crate::kernel::{self, Haste, Wanted};
use crate::memory::{self, Allocation, Kind};
use crate::pending;
use crate::profile;
use crate::progress::Waiting;
use crate::texture;
use crate::thread;

pub struct Module {
    pub linked: compiler::Module,
    /// Of the sources' text.
    pub digest: [u8; 32],
    globals: Vec<Allocation>,
    /// The same by address, as kernels read them.
    addresses: Vec<usize>,
    /// The kernels' indices, by name.
    indices: HashMap<String, usize>,
    /// Function handles given out, by name.
    functions: Mutex<HashMap<String, usize>>,
    /// The kernel that was lowered last: whoever asks for a kernel soon launches it.
    lowered: Mutex<Option<(usize, Arc<Program>)>>,
    /// How its kernels were launched, this time and before.
    launches: List,
    /// Its functions are gone; said under their lock.
    is_unloaded: AtomicBool,
}

/// The blocks that code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    Of([u32; 3]),
    /// Flat ones of any multiple of 32 threads up to this many (`compiler::back::cpu::Options::open`).
    Flat(u32),
}

impl Blocks {
    pub fn largest(self) -> [u32; 3] {
        match self {
            Blocks::Of(shape) => shape,
            Blocks::Flat(most) => [most, 1, 1],
        }
    }

    pub fn is_flat(self) -> bool {
        matches!(self, Blocks::Flat(_))
    }

    pub fn has(self, block: [u32; 3]) -> bool {
        match self {
            Blocks::Of(shape) => shape == block,
            Blocks::Flat(most) => cpu::is_open_shape(block) && block[0] <= most,
        }
    }
}

/// Whether kernels run as they are found to run best, and not as somebody asked.
fn may_be_flat() -> bool {
    let config = config::get();
    config.cpu_width.is_none() && !config.sanitize
}

impl std::fmt::Display for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Blocks::Of(shape) => write!(f, "block {shape:?}"),
            Blocks::Flat(most) => write!(f, "blocks of 32 to {most}"),
        }
    }
}

/// What code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    pub blocks: Blocks,
    /// Clusters have several blocks.
    pub clustered: bool,
}

pub struct Function {
    pub module: Arc<Module>,
    index: usize,
    facts: Facts,
    /// Kept for the sanitizer's reports only.
    watched: OnceLock<Arc<Program>>,
    /// Bound: what the program launches with.
    compiled: RwLock<Vec<(Variant, Arc<exec::Kernel>)>>,
    /// One compile of a function at a time; others go on.
    compiling: Mutex<()>,
    /// Blocks for which code of their own was asked for while other code ran.
    meanwhile: Mutex<Vec<[u32; 3]>>,
}

/// What launches and programs ask about a kernel besides its header.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Without the places of the variables.
    pub shared: SharedLayout,
    /// Bytes of one thread's local variables.
    pub local_bytes: u64,
    /// The flat blocks that one code is possible for.
    pub flat: Option<Flat>,
}

/// One code for all flat blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    /// Threads of the largest.
    pub most: u32,
    /// No worse than code for each of them.
    pub is_as_good: bool,
}

static MODULES: Registry<Module> = Registry::new();
static FUNCTIONS: Registry<Function> = Registry::new();

/// Modules that were not unloaded.
pub fn left() -> usize {
    MODULES.n_live()
}

/// What an image could not be loaded for: the code, and the diagnostics for the log buffer.
pub struct Refusal {
    pub error: hipError_t,
    pub text: String,
}

impl Refusal {
    fn new(error: hipError_t, text: impl Into<String>) -> Refusal {
        Refusal { error, text: text.into() }
    }
}

/// Reads an image of ours or one NUL-terminated PTX text.
///
/// # Safety
/// `image` points to either.
pub unsafe fn sources(image: *const u8) -> std::result::Result<Vec<Source>, Refusal> {
    use compiler::image::{HEADER_BYTES, MAGIC, decode, total_bytes};
    // Byte by byte: a text may end before the magic would.
    // SAFETY: each byte up to the first that differs belongs to the image.
    let is_image = MAGIC.iter().enumerate().all(|(i, &byte)| unsafe { image.add(i).read() } == byte);
    if is_image {
        // SAFETY: an image has a header, and as many bytes as it says.
        let bytes = unsafe {
            let header = image.cast::<[u8; HEADER_BYTES]>().read();
            let total =
                total_bytes(&header).ok_or_else(|| Refusal::new(hipErrorInvalidImage, "no length"))?;
            std::slice::from_raw_parts(image, total)
        };
        return decode(bytes).map_err(|error| Refusal::new(hipErrorInvalidImage, error.to_string()));
    }
    // SAFETY: then it is a C string.
    let text = unsafe { CStr::from_ptr(image.cast::<c_char>()) };
    if text.to_bytes().starts_with(b"\x7fELF") {
        return Err(Refusal::new(
            hipErrorNoBinaryForGpu,
            "machine code of another device; this one takes PTX",
        ));
    }
    let text =
        text.to_str().map_err(|_| Refusal::new(hipErrorInvalidImage, "neither an image nor PTX text"))?;
    if !text.contains(".version") {
        return Err(Refusal::new(hipErrorInvalidImage, "neither an image nor PTX text"));
    }
    Ok(vec![Source { name: "ptx".to_owned(), text: text.to_owned() }])
}

/// Of the texts: by what name a source is known depends on the way that it came.
pub fn digest(sources: &[Source]) -> [u8; 32] {
    cache::digest_of(sources.iter().map(|source| source.text.as_bytes()))
}

/// Loads sources that belong together; the module's handle. Kernels are not looked into.
pub fn load(sources: Vec<Source>) -> std::result::Result<hipModule_t, Refusal> {
    let digest = digest(&sources);
    let linked = compiler::Module::link(sources).map_err(|diagnostics| {
        let text: String = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
        Refusal::new(hipErrorInvalidKernelFile, text)
    })?;
    let module =
        Module::place(linked, digest).map_err(|error| Refusal::new(error, "no memory for its variables"))?;
    let module = Arc::new(module);
    if config::get().eager_loading {
        module.compile_ahead();
    }
    foreseen::loaded(&module);
    Ok(MODULES.add(module) as hipModule_t)
}

pub fn of_handle(handle: hipModule_t) -> Result<Arc<Module>> {
    MODULES.get(handle as usize)
}

/// The module's functions are gone with it; its memory when the last launch has ended.
pub fn unload(handle: hipModule_t) -> Result {
    let module = MODULES.remove(handle as usize)?;
    let mut functions = module.functions.lock();
    module.is_unloaded.store(true, Ordering::Relaxed);
    for function in functions.drain() {
        let _ = FUNCTIONS.remove(function.1);
    }
    // Its memory may stay a while, with a launch or a compilation; what the program has of its textures does not.
    module.globals.iter().for_each(|allocation| texture::forget(allocation.base));
    Ok(())
}

pub fn function_of_handle(handle: hipFunction_t) -> Result<Arc<Function>> {
    FUNCTIONS.get(handle as usize)
}

impl Module {
    fn place(linked: compiler::Module, digest: [u8; 32]) -> Result<Module> {
        let names = linked.kernels().iter().map(|header| header.name.clone());
        let mut module = Module {
            indices: names.zip(0..).collect(),
            linked,
            digest,
            globals: vec![],
            addresses: vec![],
            functions: Mutex::default(),
            lowered: Mutex::default(),
            launches: List::of(&digest),
            is_unloaded: AtomicBool::new(false),
        };
        for variable in module.linked.globals().iter() {
            let bytes = usize::try_from(variable.bytes).map_err(|_| hipErrorOutOfMemory)?;
            let kind = if variable.managed { Kind::Managed } else { Kind::Device };
            let allocation = memory::allocate_in(bytes.max(1), kind, hipMemAttachGlobal, 0, true)?;
            module.globals.push(allocation);
            if let Some(kind) = variable.opaque {
                texture::declare(allocation.base, bytes, kind);
            }
            module.addresses.push(allocation.base);
            let init = variable.init.get(..bytes).unwrap_or(&variable.init);
            // SAFETY: a fresh allocation of `bytes` zeros; `init` is not longer.
            unsafe { (allocation.base as *mut u8).copy_from_nonoverlapping(init.as_ptr(), init.len()) }
        }
        module.relocate();
        Ok(module)
    }

    /// Writes the addresses that initialisers hold.
    fn relocate(&self) {
        for (variable, allocation) in self.linked.globals().iter().zip(&self.globals) {
            for relocation in &variable.relocations {
                // Addresses of functions are bytes of the initialiser already.
                let Target::Global(id) = relocation.target else { continue };
                let value = self.addresses[id.index()] as u64;
                let value = value.wrapping_add_signed(relocation.addend) >> relocation.shift;
                let bytes = usize::from(relocation.bytes).min(8);
                let inside =
                    relocation.offset.checked_add(bytes as u64).is_some_and(|end| end <= variable.bytes);
                debug_assert!(inside, "a relocation of {} lies outside", variable.name);
                if inside {
                    let at = allocation.base + relocation.offset as usize;
                    // SAFETY: inside the variable.
                    unsafe { (at as *mut u8).copy_from_nonoverlapping(value.to_le_bytes().as_ptr(), bytes) }
                }
            }
        }
    }

    /// Addresses of the variables, by `GlobalId`.
    pub fn addresses(&self) -> *const *mut u8 {
        self.addresses.as_ptr().cast()
    }

    pub fn global(&self, name: &str) -> Result<Allocation> {
        let (id, variable) = self.linked.global(name).ok_or(hipErrorNotFound)?;
        let mut found = self.globals[id.index()];
        found.bytes = variable.bytes as usize;
        Ok(found)
    }

    /// Address of the `.texref` variable of that name.
    pub fn texref(&self, name: &str) -> Result<usize> {
        let (id, variable) = self.linked.global(name).ok_or(hipErrorNotFound)?;
        match variable.opaque {
            Some(compiler::texture::Opaque::Texture) => Ok(self.globals[id.index()].base),
            _ => Err(hipErrorNotFound),
        }
    }

    /// The handle of kernel `name`; one that cannot be translated is an error here and for itself alone.
    pub fn function(self: &Arc<Module>, name: &str) -> Result<hipFunction_t> {
        if let Some(&handle) = self.functions.lock().get(name) {
            return Ok(handle as hipFunction_t);
        }
        let index = *self.indices.get(name).ok_or(hipErrorNotFound)?;
        let facts = kernel::facts(self, index)?;
        let mut functions = self.functions.lock();
        // Another thread may have asked meanwhile.
        if let Some(&handle) = functions.get(name) {
            return Ok(handle as hipFunction_t);
        }
        if self.is_unloaded.load(Ordering::Relaxed) {
            return Err(hipErrorNotFound);
        }
        let function = Function {
            module: self.clone(),
            index,
            facts,
            watched: OnceLock::new(),
            compiled: RwLock::default(),
            compiling: Mutex::default(),
            meanwhile: Mutex::default(),
        };
        let handle = FUNCTIONS.add(Arc::new(function));
        functions.insert(name.to_owned(), handle);
        Ok(handle as hipFunction_t)
    }

    /// Compiles what can be compiled before it is launched, on all cores.
    fn compile_ahead(self: &Arc<Module>) {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(header) = self.linked.kernels().get(next.fetch_add(1, Ordering::Relaxed)) {
                // What cannot be translated is an error when it is asked for; the log has the reason.
                if let Ok(function) = self.function(&header.name).and_then(function_of_handle) {
                    function.compile_ahead();
                }
            }
        };
        let others = exec::pool::workers().min(self.linked.kernels().len()).saturating_sub(1);
        std::thread::scope(|scope| {
            for _ in 0..others {
                let worker = std::thread::Builder::new().name("cudaway-load".to_owned());
                // Without it there is one thread less.
                let _ = worker.spawn_scoped(scope, || {
                    thread::leave_signals_to_the_program();
                    work();
                });
            }
            work();
        });
    }

    pub fn launches(&self) -> &List {
        &self.launches
    }

    pub fn n_kernels(&self) -> usize {
        self.linked.kernels().len()
    }

    pub fn header(&self, kernel: usize) -> &Header {
        &self.linked.kernels()[kernel]
    }

    /// A program with this kernel alone. Bound: the last one is kept until it is compiled.
    pub fn lowered(&self, kernel: usize) -> Arc<Program> {
        let known = self.lowered.lock().clone().filter(|(index, _)| *index == kernel);
        if let Some((_, program)) = known {
            return program;
        }
        let program = Arc::new(self.linked.lower(kernel));
        *self.lowered.lock() = Some((kernel, program.clone()));
        program
    }

    /// Lets go of what [`Module::lowered`] keeps of the kernel.
    pub fn forget(&self, kernel: usize) {
        self.lowered.lock().take_if(|(index, _)| *index == kernel);
    }
}

/// Threads that a block of the kernel may have.
pub fn max_threads(kernel: &Header) -> u32 {
    let bound = kernel
        .req_ntid
        .or(kernel.max_ntid)
        .map_or(device::MAX_THREADS, |[x, y, z]| x.saturating_mul(y).saturating_mul(z));
    bound.min(device::MAX_THREADS)
}

/// Whether clusters of the kernel always have several blocks.
pub fn is_clustered(header: &Header) -> bool {
    header.cluster.required.is_some_and(|size| size != [1; 3])
}

/// What of a kernel can be made before anybody knows how it is launched.
pub fn variant_ahead(header: &Header, facts: &Facts) -> Option<Variant> {
    let clustered = is_clustered(header);
    let flat = facts.flat.filter(|_| may_be_flat() && !clustered);
    let blocks = match (header.req_ntid, flat) {
        (Some(block), _) => Blocks::Of(block),
        (None, Some(flat)) => Blocks::Flat(flat.most),
        (None, None) => return None,
    };
    Some(Variant { blocks, clustered })
}

impl Drop for Module {
    fn drop(&mut self) {
        for allocation in &self.globals {
            texture::forget(allocation.base);
            if let Some(taken) = memory::take(allocation.base, &[allocation.kind]) {
                memory::release(&taken);
            }
        }
    }
}

impl Function {
    pub fn header(&self) -> &Header {
        self.module.header(self.index)
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The kernel as the sanitizer wants it.
    pub fn watched(&self) -> &Arc<Program> {
        self.watched.get_or_init(|| self.module.lowered(self.index))
    }

    /// Threads a block may have.
    pub fn max_threads(&self) -> u32 {
        max_threads(self.header())
    }

    /// Bytes of static shared memory.
    pub fn shared_bytes(&self) -> u32 {
        u32::try_from(self.facts.shared.bytes).unwrap_or(u32::MAX)
    }

    /// Code for this block shape; the first launch that has none compiles.
    pub fn code(self: &Arc<Function>, block: [u32; 3], clustered: bool) -> Result<Arc<exec::Kernel>> {
        if let Some(code) = self.known(block, clustered) {
            return Ok(code);
        }
        let name = &self.header().name;
        profile::asked(name, block);
        let _waiting = Waiting::begin(name, block);
        self.make(block, clustered)
    }

    /// As [`Function::code`], of a launch that is still to come.
    pub fn get_ready(self: &Arc<Function>, block: [u32; 3], clustered: bool) {
        // A failure is told by the launch, which tries again.
        if let Ok(code) = self.make(block, clustered) {
            code.improve();
        }
    }

    fn make(self: &Arc<Function>, block: [u32; 3], clustered: bool) -> Result<Arc<exec::Kernel>> {
        let _one = self.compiling.lock();
        if let Some(code) = self.known(block, clustered) {
            return Ok(code);
        }
        self.compile(&self.variants(block, clustered), block, Haste::Soon)?;
        // Code for all flat blocks may have been taken from the cache: better one is made meanwhile.
        let code = self.known(block, clustered).ok_or(hipErrorUnknown)?;
        // Of baseline code the list has it when better code is asked for.
        if code.baseline_weight().is_none() {
            let launched = Launched { kernel: self.header().name.clone(), block, is_clustered: clustered };
            self.module.launches.add(&self.module.digest, launched);
        }
        Ok(code)
    }

    /// Whether a launch with such a block waits for nobody.
    pub fn has_code(&self, block: [u32; 3], clustered: bool) -> bool {
        let fits = |variant: &Variant| variant.clustered == clustered && variant.blocks.has(block);
        self.compiled.read().iter().any(|(variant, _)| fits(variant))
    }

    /// What code for such a block may be made for, the one to be made first: code for all flat blocks where that is as good, else it
    /// is taken only where somebody has made it.
    fn variants(&self, block: [u32; 3], clustered: bool) -> Vec<Variant> {
        let own = Variant { blocks: Blocks::Of(block), clustered };
        let flat = self.facts.flat.filter(|_| !clustered && may_be_flat());
        let open = |flat: Flat| Variant { blocks: Blocks::Flat(flat.most), clustered };
        match flat.filter(|flat| Blocks::Flat(flat.most).has(block)) {
            Some(flat) if flat.is_as_good => vec![open(flat)],
            Some(flat) => vec![own, open(flat)],
            None => vec![own],
        }
    }

    fn known(self: &Arc<Function>, block: [u32; 3], clustered: bool) -> Option<Arc<exec::Kernel>> {
        let compiled = self.compiled.read();
        let fits = |variant: &Variant| variant.clustered == clustered && variant.blocks.has(block);
        // Code for this shape alone goes before code for all flat ones.
        let all = compiled.iter().filter(|(variant, _)| fits(variant));
        let (variant, code) = all.min_by_key(|(variant, _)| variant.blocks.is_flat()).cloned()?;
        drop(compiled);
        if variant.blocks.is_flat() && self.facts.flat.is_some_and(|flat| !flat.is_as_good) {
            self.compile_meanwhile(block);
        }
        Some(code)
    }

    /// The first of the variants, unless the cache has one that comes after it.
    fn compile(&self, variants: &[Variant], block: [u32; 3], haste: Haste) -> Result {
        let clustered = variants.first().is_some_and(|it| it.clustered);
        let is_kin = |(variant, code): &&(Variant, Arc<exec::Kernel>)| {
            variant.clustered == clustered && code.baseline_weight().is_some()
        };
        let kin = self.compiled.read().iter().find(is_kin).map(|(_, code)| code.clone());
        let wanted = Wanted { index: self.index, variants: variants.to_vec(), block, haste, kin };
        let code = kernel::build(&self.module, &wanted)?;
        self.compiled.write().push(code);
        Ok(())
    }

    /// Before any launch: for the blocks that the kernel requires, else for all flat ones.
    fn compile_ahead(&self) {
        let Some(variant) = variant_ahead(self.header(), &self.facts) else { return };
        // A failure is told by the launch, which tries again.
        let _ = self.compile(&[variant], variant.blocks.largest(), Haste::Whole);
    }

    /// Code of its own for blocks that run by code for any length, once; launches take it when it is there.
    fn compile_meanwhile(self: &Arc<Function>, block: [u32; 3]) {
        {
            let mut asked = self.meanwhile.lock();
            if asked.contains(&block) {
                return;
            }
            asked.push(block);
        }
        let function = self.clone();
        pending::ask(self.header().name.clone(), Arc::default(), move || {
            let variant = Variant { blocks: Blocks::Of(block), clustered: false };
            let _ = function.compile(&[variant], block, Haste::Whole);
        });
    }

    /// Looks for a faster width for what has run long enough.
    pub fn reconsider(&self, code: &Arc<exec::Kernel>, block: [u32; 3]) {
        if let Some(width) = code.rival_due() {
            let is_it = |(_, known): &&(Variant, Arc<exec::Kernel>)| Arc::ptr_eq(known, code);
            let made_for = self.compiled.read().iter().find(is_it).map(|(variant, _)| variant.blocks);
            let blocks = made_for.unwrap_or(Blocks::Of(block));
            kernel::try_rival(&self.module, self.index, blocks, block, code, width);
        }
    }
}
