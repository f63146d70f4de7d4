//! PTX that belongs together: what a load checks of it, and what is known of its kernels and variables before any device saw them.

use core::ffi::CStr;
use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::sync::{Arc, OnceLock};

use cache::{Cache, Key, SHORT_BYTES, dump};
use compiler::ir::GlobalId;
use compiler::texture::Opaque;
use compiler::{Cause, Source, gcn};

use super::module::LARGEST_CLUSTER;
use crate::image::{self, Failure, Image, MachineCode};
use crate::{Error, Result};

/// What is known of a kernel before any device saw it.
pub struct KernelInfo {
    pub name: CString,
    /// (offset, size) of each parameter in the parameter buffer.
    pub params: Vec<(usize, usize)>,
    pub max_threads: Option<u32>,
    /// Architecture its PTX was written for, such as 75.
    pub target: u32,
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`
    pub required_cluster: Option<[u32; 3]>,
    /// `.explicitcluster`: a launch without a cluster is an error.
    pub must_have_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: u32,
    /// Among its module's kernels.
    pub(super) index: usize,
    /// Why it cannot be had, if something in it cannot be translated; empty before anybody looked.
    pub(super) broken: OnceLock<Option<Failure>>,
}

/// A variable the host can ask for.
pub struct GlobalInfo {
    pub name: String,
    /// Among all of the module's.
    pub(super) id: GlobalId,
    pub len_bytes: usize,
    pub is_managed: bool,
}

/// PTX sources that belong together, linked once, good for any number of contexts.
pub struct Linked {
    pub(super) module: compiler::Module,
    pub kernels: Vec<Arc<KernelInfo>>,
    /// The kernels' indices.
    pub(super) by_name: HashMap<CString, usize>,
    pub globals: Vec<GlobalInfo>,
    /// All `.const` variables together.
    pub const_bytes: usize,
    /// The names of its `.surfref`s.
    pub surface_references: Vec<String>,
    /// Translation units without PTX.
    pub(super) machine_code: Vec<MachineCode>,
    /// The diagnostics of kernels that cannot be had, one per line, as far as kernels were looked into.
    pub complaints: String,
    /// Names that are used and defined nowhere, as far as kernels were looked into.
    pub undefined: Vec<String>,
}

/// Which bodies a load looks into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// All of them: the program reads what the load says of them.
    All,
    /// All of texts that are not longer than [`SHORT_BYTES`].
    Short,
}

/// Shorter texts are looked into sooner than the cache is asked whether somebody did.
const REMEMBERED_BYTES: usize = 4 << 10;

impl Linked {
    /// Reads and links what stands at module scope. A bad kernel is an error only when it is asked for.
    ///
    /// CPU differs: CUDA compiles all of a PTX text when it is loaded. Here a load looks into the bodies of a text of up
    /// to 64 KiB, or of one that comes with a buffer for the error log: if no kernel can be translated the load fails,
    /// and the log has what is wrong with each. Of longer texts a load reads what stands outside of bodies; a kernel is
    /// looked into when its function is asked for, or by its first launch.
    pub fn check(image: Image, bodies: Bodies) -> core::result::Result<Linked, Failure> {
        let Image { sources, machine_code, is_text } = image;
        for source in &sources {
            dump::keep(&source.name, "ptx", source.text.as_bytes());
        }
        let module = link(sources)?;
        if is_text {
            refuse_newer(&module)?;
        }
        let headers = module.kernels().iter().enumerate();
        let kernels: Vec<_> = headers.filter_map(|(index, header)| KernelInfo::new(index, header)).collect();
        let is_const =
            |global: &&compiler::program::Global| global.space == compiler::program::GlobalSpace::Const;
        let const_bytes = module.globals().iter().filter(is_const).map(|global| global.bytes as usize).sum();
        let is_surface = |global: &&compiler::program::Global| global.opaque == Some(Opaque::Surface);
        let surface_references =
            module.globals().iter().filter(is_surface).map(|global| global.name.clone()).collect();
        let mut linked = Linked {
            by_name: kernels.iter().enumerate().map(|(index, info)| (info.name.clone(), index)).collect(),
            kernels,
            globals: variables(module.globals()),
            const_bytes,
            surface_references,
            machine_code,
            complaints: String::new(),
            undefined: vec![],
            module,
        };
        let n_bytes = linked.n_bytes();
        if bodies == Bodies::All || n_bytes <= SHORT_BYTES {
            let key = (n_bytes >= REMEMBERED_BYTES).then(|| linked.key());
            linked.look_into_all(key.as_ref()).map_err(|failure| match failure.error {
                // Driver 580: what a text leaves undefined is an error of the text.
                Error::NoBinaryForGpu if is_text => Failure { error: Error::InvalidPtx, ..failure },
                _ => failure,
            })?;
        }
        Ok(linked)
    }

    /// Length of all texts.
    pub(super) fn n_bytes(&self) -> usize {
        self.sources().iter().map(|source| source.text.len()).sum()
    }

    /// What the cache finds a text by that has nothing wrong in it.
    fn key(&self) -> Key {
        cache::nothing_wrong(compiler::TRANSLATOR, self.sources().iter().map(|source| source.text.as_bytes()))
    }

    fn look_into_all(&mut self, key: Option<&Key>) -> core::result::Result<(), Failure> {
        if key.is_some_and(|key| Cache::global().get(key, "what is wrong with a text").is_some()) {
            // Nobody saw the kernels before.
            self.kernels.iter().for_each(|info| drop(info.broken.set(None)));
            return Ok(());
        }
        let program = self.module.lower_all();
        self.complaints = lines(&program.diagnostics);
        self.undefined = undefined(&program.diagnostics);
        for info in &self.kernels {
            let body = &program.kernels[info.index].body;
            // Nobody saw the kernel before.
            let _ = info.broken.set(body.as_ref().err().map(|diagnostics| failure(diagnostics)));
        }
        if let Some(key) = key.filter(|_| program.diagnostics.is_empty()) {
            Cache::global().put(key, &[]);
        }
        // Without a kernel that works there is nothing a module could be used for but its variables.
        match self.kernels.first().and_then(|first| self.failure(first)) {
            Some(first) if self.kernels.iter().all(|info| self.failure(info).is_some()) => {
                Err(Failure { error: first.error, message: self.complaints.clone() })
            }
            _ => Ok(()),
        }
    }

    /// The texts it was loaded from.
    pub fn sources(&self) -> &[Source] {
        self.module.sources()
    }

    /// All kernels, by the number that kernels name them by.
    pub fn kernels_of_code(&self) -> &[compiler::program::Header] {
        self.module.kernels()
    }

    /// All variables, by [`GlobalId`].
    pub fn globals_of_code(&self) -> &[compiler::program::Global] {
        self.module.globals()
    }

    /// LLVM IR of a kernel for an AMD GPU, or what of it cannot be translated.
    pub fn gfx_code(
        &self,
        info: &KernelInfo,
        target: &gcn::Target,
        blocks: gcn::Blocks,
    ) -> core::result::Result<gcn::Code, Failure> {
        gcn::compile_for(&self.module, info.index, target, blocks)
            .map_err(|diagnostics| failure(&diagnostics))
    }

    /// Reads and links names only.
    pub fn check_names(sources: &[Source]) -> core::result::Result<(), Failure> {
        link(sources.to_vec()).map(drop)
    }

    /// Looks into the bodies of a short text that others will complete: what it leaves undefined is no mistake.
    pub fn check_part(sources: &[Source]) -> core::result::Result<(), Failure> {
        let module = link(sources.to_vec())?;
        refuse_newer(&module)?;
        if sources.iter().map(|source| source.text.len()).sum::<usize>() > SHORT_BYTES {
            return Ok(());
        }
        let program = module.lower_all();
        let is_wrong = |it: &compiler::Diagnostic| it.cause == Cause::Code;
        let wrong: Vec<_> = program.diagnostics.iter().filter(|it| is_wrong(it)).cloned().collect();
        let is_broken = |body: &core::result::Result<_, Vec<_>>| {
            body.as_ref().is_err_and(|diagnostics| diagnostics.iter().any(is_wrong))
        };
        // As for a load: one bad kernel does not take the others down.
        if !wrong.is_empty() && program.kernels.iter().all(|kernel| is_broken(&kernel.body)) {
            return Err(failure(&wrong));
        }
        Ok(())
    }

    /// Why the kernel cannot be had; looks into it if nobody did before.
    pub fn failure<'k>(&self, info: &'k KernelInfo) -> Option<&'k Failure> {
        let look = || self.module.lower(info.index).kernels.pop()?.body.err().map(|it| failure(&it));
        info.broken.get_or_init(look).as_ref()
    }

    /// Whether the kernel uses CUDA Dynamic Parallelism.
    pub(super) fn launches_grids(&self, info: &KernelInfo) -> bool {
        let asks = self.module.sources().iter().any(|source| source.name == compiler::device_runtime::SOURCE);
        asks && compiler::device_runtime::launches(&self.module.lower(info.index))
    }

    /// The kernel of that name, unless it is known that it cannot be had: then the log says again what is wrong with it.
    pub fn kernel(&self, name: &CStr) -> Result<&Arc<KernelInfo>> {
        let index = *self.by_name.get(name).ok_or_else(|| self.not_found(name))?;
        let info = &self.kernels[index];
        match info.broken.get() {
            Some(Some(failure)) => Err(refuse(info, failure)),
            _ => Ok(info),
        }
    }

    /// What to answer for a kernel that the provider refused with `error`: the reason why, if it is the kernel's own.
    pub(super) fn refused(&self, info: &KernelInfo, error: Error) -> Error {
        self.failure(info).map_or(error, |failure| refuse(info, failure))
    }

    pub fn global(&self, name: &CStr) -> Result<&GlobalInfo> {
        let found = self.globals.iter().find(|global| global.name.as_bytes() == name.to_bytes());
        found.ok_or_else(|| match self.by_name.contains_key(name) {
            // CUDA: a name that is there and no variable's is an invalid value (measured on driver 580).
            true => Error::InvalidValue("name: a kernel's"),
            false => self.not_found(name),
        })
    }

    /// A name that the PTX has not: nobody's, or a translation unit's that has machine code only.
    fn not_found(&self, name: &CStr) -> Error {
        let name = name.to_string_lossy();
        match self.machine_code.iter().find(|unit| unit.names.contains(name.as_ref())) {
            Some(unit) => {
                let archs = &unit.archs;
                tracing::error!(
                    target: "cudaway::driver",
                    "{name} is there as machine code for {archs} only, without PTX; {}", image::REBUILD
                );
                Error::NoBinaryForGpu
            }
            None => Error::NotFound,
        }
    }
}

/// What stands at module scope.
fn link(sources: Vec<Source>) -> core::result::Result<compiler::Module, Failure> {
    compiler::Module::link(sources).map_err(|diagnostics| failure(&diagnostics))
}

/// CUDA: to the compiler of texts one for a newer device than ours is wrong (measured on driver 580, which knows sm_121, on
/// an sm_90); of a fat binary nothing fits, which is another error.
fn refuse_newer(module: &compiler::Module) -> core::result::Result<(), Failure> {
    let newest = module.kernels().iter().map(|kernel| kernel.target).max().unwrap_or_default();
    if newest <= config::get().architecture() {
        return Ok(());
    }
    let message = image::too_new(&format!("the PTX is for sm_{newest}"), newest);
    Err(Failure { error: Error::InvalidPtx, message })
}

impl KernelInfo {
    fn new(index: usize, header: &compiler::program::Header) -> Option<Arc<KernelInfo>> {
        let params = header.params.iter().map(|param| (param.offset as usize, param.bytes as usize));
        Some(Arc::new(KernelInfo {
            name: CString::new(&*header.name).ok()?,
            params: params.collect(),
            target: header.target,
            max_threads: header.max_threads(),
            required_block: header.req_ntid,
            required_cluster: header.cluster.required,
            must_have_cluster: header.cluster.explicit,
            max_cluster_rank: header.cluster.max_rank.unwrap_or(LARGEST_CLUSTER),
            index,
            broken: OnceLock::new(),
        }))
    }
}

/// The variables that the host can ask for by name. A visible one goes before a private one of the same name; nvcc
/// leaves `.visible` out altogether when it compiles a whole program.
fn variables(globals: &[compiler::program::Global]) -> Vec<GlobalInfo> {
    // Named textures, samplers and surfaces are no variables of the host's.
    let all = || globals.iter().enumerate();
    let named = |visible| all().filter(move |(_, it)| it.opaque.is_none() && it.visible == visible);
    let mut seen = HashSet::new();
    let first = named(true).chain(named(false)).filter(|(_, global)| seen.insert(&*global.name));
    first
        .map(|(index, global)| GlobalInfo {
            name: global.name.clone(),
            id: GlobalId(index as u32),
            len_bytes: global.bytes as usize,
            is_managed: global.managed,
        })
        .collect()
}

fn refuse(info: &KernelInfo, Failure { error, message }: &Failure) -> Error {
    let name = info.name.to_string_lossy();
    tracing::error!(target: "cudaway::driver", "kernel {name} cannot be translated:\n{message}");
    *error
}

/// CUDA's answer to sources that cannot be used.
fn reason(diagnostics: &[compiler::Diagnostic]) -> Error {
    let any = |is: fn(&Cause) -> bool| diagnostics.iter().any(|diagnostic| is(&diagnostic.cause));
    if any(|cause| *cause == Cause::Version) {
        Error::UnsupportedPtxVersion
    } else if any(|cause| *cause == Cause::Duplicate) {
        Error::InvalidSource
    } else if any(Cause::is_device_runtime) {
        Error::CdpNotSupported
    } else if any(|cause| matches!(cause, Cause::Undefined(_))) {
        Error::NoBinaryForGpu
    } else {
        Error::InvalidPtx
    }
}

fn failure(diagnostics: &[compiler::Diagnostic]) -> Failure {
    Failure { error: reason(diagnostics), message: lines(diagnostics) }
}

fn undefined(diagnostics: &[compiler::Diagnostic]) -> Vec<String> {
    let names = diagnostics.iter().filter_map(|diagnostic| match &diagnostic.cause {
        Cause::Undefined(name) => Some(name.clone()),
        Cause::Code | Cause::Version | Cause::Duplicate => None,
    });
    names.collect()
}

fn lines(diagnostics: &[compiler::Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}
