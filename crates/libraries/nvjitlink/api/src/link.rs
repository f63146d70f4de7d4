//! One link: its inputs, what came of them, and its logs.

use std::fmt::Write as _;

use compiler::{Cause, Diagnostic, Module, Source};

use crate::input::{self, Kind};
use crate::options::Options;
use crate::result::{Error, Failure, Result};

#[derive(Default)]
pub struct Link {
    options: Options,
    sources: Vec<Source>,
    /// Once it is complete: what came of it.
    outcome: Option<Option<Vec<u8>>>,
    pub errors: String,
    pub infos: String,
}

impl Link {
    /// A link with refused options is one too: its log says what is wrong.
    pub fn new(words: &[String]) -> (Link, Result) {
        match Options::read(words) {
            Ok(options) => (Link { options, ..Link::default() }, Ok(())),
            Err((error, why)) => {
                let mut link = Link { outcome: Some(None), ..Link::default() };
                let answer = if why.is_empty() { Err(error) } else { link.fail((error, why)) };
                (link, answer)
            }
        }
    }

    /// Writes down why the call fails.
    fn fail<T>(&mut self, (error, why): Failure) -> Result<T> {
        tracing::info!(target: "cudaway::nvjitlink", "{why}");
        let _ = writeln!(self.errors, "{}", why.trim_end());
        Err(error)
    }

    pub fn no_such_file<T>(&mut self, name: &str, why: &std::io::Error) -> Result<T> {
        self.fail((Error::InvalidInput, format!("{name}: {why}")))
    }

    pub fn add(&mut self, kind: Kind, bytes: &[u8], name: &str) -> Result {
        if self.outcome.is_some() {
            return self.fail((Error::Internal, format!("{name}: the link is complete")));
        }
        let found = input::read(kind, bytes, self.options.arch, name).and_then(|sources| {
            sources.iter().try_for_each(|source| self.check(source, kind))?;
            Ok(sources)
        });
        match found {
            Ok(sources) => {
                self.sources.extend(sources);
                Ok(())
            }
            Err(failure) => self.fail(failure),
        }
    }

    /// Looks into a text that others will complete: what it leaves undefined is no mistake yet.
    fn check(&self, source: &Source, kind: Kind) -> Result<(), Failure> {
        let wrong = |diagnostics: &[Diagnostic]| (Error::PtxCompile, lines(diagnostics));
        let module = Module::link(vec![source.clone()]).map_err(|diagnostics| wrong(&diagnostics))?;
        // Of containers the best text for this architecture was taken.
        let is_newer = |kernel: &&compiler::program::Header| kernel.target > self.options.arch;
        if let Some(newer) = module.kernels().iter().find(is_newer).filter(|_| kind == Kind::Ptx) {
            let (name, target, arch) = (&source.name, newer.target, self.options.arch);
            return Err((Error::PtxCompile, format!("{name}: PTX for sm_{target} in a link for sm_{arch}")));
        }
        let found = module.lower_all().diagnostics;
        let mistakes: Vec<_> =
            found.into_iter().filter(|it| !matches!(it.cause, Cause::Undefined(_))).collect();
        if mistakes.is_empty() { Ok(()) } else { Err(wrong(&mistakes)) }
    }

    pub fn complete(&mut self) -> Result {
        if self.outcome.is_some() {
            return Err(Error::Internal);
        }
        let linked = self.link();
        let answer = match &linked {
            Ok(_) => Ok(()),
            Err(failure) => self.fail(failure.clone()),
        };
        self.outcome = Some(linked.ok());
        answer
    }

    fn link(&mut self) -> Result<Vec<u8>, Failure> {
        if self.options.emits_ptx {
            let why = "one PTX text is linked of LTO IR only, which CUDAway does not read".to_owned();
            return Err((Error::IncorrectInputType, why));
        }
        let failed = |diagnostics: &[Diagnostic]| (Error::Internal, lines(diagnostics));
        let module = Module::link(self.sources.clone()).map_err(|diagnostics| failed(&diagnostics))?;
        let program = module.lower_all();
        // The driver provides those.
        let is_provided = |it: &Diagnostic| matches!(&it.cause, Cause::Undefined(name) if self.options.is_part || name.starts_with("__cuda_syscall_"));
        let missing: Vec<_> = program.diagnostics.iter().filter(|it| !is_provided(it)).cloned().collect();
        if !missing.is_empty() {
            return Err(failed(&missing));
        }
        if self.options.is_verbose {
            for kernel in &program.kernels {
                let _ =
                    writeln!(self.infos, "info    : '{}': {} bytes smem", kernel.name, kernel.shared.bytes);
            }
        }
        Ok(fatbin::cubin::wrap(self.options.arch, &compiler::image::encode(module.sources())))
    }

    /// What `cuModuleLoadData` takes.
    pub fn image(&self) -> Result<&[u8]> {
        self.outcome.as_ref().and_then(Option::as_deref).ok_or(Error::Internal)
    }

    /// PTX and LTO IR come of links of LTO IR only.
    pub fn other(&self) -> Result {
        Err(if self.options.emits_ptx { Error::Internal } else { Error::InvalidInput })
    }
}

/// A mistake per line, in ptxas's form.
fn lines(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for it in diagnostics {
        let _ = writeln!(text, "ptxas {}, line {}; error   : {}", it.source, it.line, it.message);
    }
    text
}
