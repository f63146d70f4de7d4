//! Code objects for AMD GPUs, made without one. The driver makes the same ones and finds these in its cache, so it also fills caches
//! in advance.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use comgr::CodeObject;
use compiler::Module;
use compiler::gcn::{self, Target};

use crate::table;

/// A kernel to be made for a target.
struct Job<'m> {
    module: &'m Module,
    kernel: usize,
    target: &'m Target,
}

/// What became of it: the code object and its kernel's name in there, or why there is none.
type Made = core::result::Result<(CodeObject, String), Failed>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Failed {
    /// For no kernel of this target.
    All(String),
    This(String),
}

/// Writes a file for each kernel and target into the folder; how many there could not be.
pub fn run(modules: &[Module], targets: &[&Target], output: &Path) -> Result<usize> {
    let mut n_failed = 0;
    let jobs: Vec<Job> = targets
        .iter()
        .flat_map(|target| {
            modules.iter().flat_map(move |module| {
                (0..module.kernels().len()).map(move |kernel| Job { module, kernel, target })
            })
        })
        .collect();

    let made = make_all(&jobs);
    std::fs::create_dir_all(output).with_context(|| output.display().to_string())?;
    let mut files = FileNames::default();
    let mut rows = vec![head()];
    let mut told: Vec<&Target> = Vec::new();
    for (job, made) in jobs.iter().zip(made) {
        match made {
            Ok((object, symbol)) => {
                let path = output.join(files.name(&symbol, job.target));
                std::fs::write(&path, &object.bytes).with_context(|| path.display().to_string())?;
                rows.push(row(job, &object, &symbol));
            }
            Err(Failed::This(why)) => {
                n_failed += 1;
                eprintln!("{} cannot be had for {}:\n{}\n", job.name(), job.target, why.trim_end());
            }
            Err(Failed::All(why)) => {
                n_failed += 1;
                if !told.contains(&job.target) {
                    told.push(job.target);
                    eprintln!("{}\n", why.trim_end());
                }
            }
        }
    }
    print!("{}", table::lines(&rows));
    Ok(n_failed)
}

impl Job<'_> {
    fn name(&self) -> &str {
        &self.module.kernels()[self.kernel].name
    }

    fn make(&self) -> Made {
        let code = gcn::compile(self.module, self.kernel, self.target);
        let code = code.map_err(|diagnostics| Failed::This(lines(&diagnostics)))?;
        let request = comgr::Request {
            name: self.name(),
            target: self.target.name(),
            text: &code.text,
            translator: compiler::TRANSLATOR,
        };
        let object = comgr::Compiler::global().compile(&request).map_err(|error| match error {
            comgr::Error::NoHelper(_) | comgr::Error::NoCompiler { .. } => Failed::All(error.to_string()),
            error => Failed::This(error.to_string()),
        })?;
        Ok((object, code.symbol))
    }
}

/// All of them, on all cores; in the jobs' order.
fn make_all(jobs: &[Job]) -> Vec<Made> {
    let next = AtomicUsize::new(0);
    let made: Mutex<Vec<Option<Made>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        while let Some((index, job)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, jobs.get(n)?)))
        {
            let answer = job.make();
            made.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[index] = Some(answer);
        }
    };
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    std::thread::scope(|scope| (0..n_threads).for_each(|_| drop(scope.spawn(work))));
    let made = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    made.into_iter()
        .map(|made| made.unwrap_or_else(|| Err(Failed::This("the translator failed".to_owned()))))
        .collect()
}

pub fn lines(diagnostics: &[compiler::Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn head() -> Vec<String> {
    ["kernel", "target", "VGPRs", "SGPRs", "LDS", "scratch", "bytes"].map(str::to_owned).to_vec()
}

/// Registers of a lane and of a wave, bytes of a block and of a lane, bytes of the file.
fn row(job: &Job, object: &CodeObject, symbol: &str) -> Vec<String> {
    let mut row = vec![job.name().to_owned(), job.target.to_string()];
    match object.kernel(symbol) {
        Some(kernel) => row.extend(
            [kernel.vgprs, kernel.sgprs, kernel.lds_bytes, kernel.scratch_bytes]
                .map(|number| number.to_string()),
        ),
        None => row.extend(["?"; 4].map(str::to_owned)),
    }
    row.push(object.bytes.len().to_string());
    row
}

/// Different names for different kernels; two translation units may both have one of the same name.
#[derive(Default)]
struct FileNames(HashMap<String, usize>);

/// Below what file systems take, with room for what follows.
const LONGEST_NAME: usize = 180;

impl FileNames {
    fn name(&mut self, symbol: &str, target: &Target) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
        let short: String = symbol.chars().filter(|&c| is_plain(c)).take(LONGEST_NAME).collect();
        let name = format!("{short}.{}", target.name().replace(':', "."));
        let n = self.0.entry(name.clone()).or_default();
        *n += 1;
        if *n == 1 { format!("{name}.co") } else { format!("{name}.{n}.co") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_of_their_own() {
        let mut files = FileNames::default();
        let target: Target = "gfx90a:xnack-".parse().unwrap();
        assert_eq!(files.name("add", &target), "add.gfx90a.xnack-.co");
        assert_eq!(files.name("add", &target), "add.gfx90a.xnack-.2.co");
        assert_eq!(files.name("../add", &target), "..add.gfx90a.xnack-.co");
        assert!(files.name(&"x".repeat(4000), &target).len() < 255);
    }
}
