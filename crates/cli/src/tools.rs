//! Tools of CUDA's toolkit that programs start while they run. Links of their names lie in `tools` beside `bin` and lead to this
//! program, which does what its first word's name says (`cudaway ptxas …` does the same).
//!
//! They are this program and no scripts: it starts in a few milliseconds, has the translator, and needs no shell.

mod nvcc;
mod ptxas;
mod toolkit;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Result;
use clap::Parser;

use crate::{kept, own, smi};

/// What follows a tool's name: its own options.
#[derive(clap::Args)]
pub struct Words {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Ptxas,
    Nvcc,
    NvidiaSmi,
}

/// `cudaway smi` under the name that scripts know.
#[derive(Parser)]
#[command(name = "nvidia-smi", version)]
struct NvidiaSmi {
    #[command(flatten)]
    arguments: smi::Arguments,
}

impl Tool {
    /// The tool of a program's first word.
    pub fn named(program: &OsStr) -> Option<Tool> {
        match Path::new(program).file_name()?.to_str()? {
            "ptxas" => Some(Tool::Ptxas),
            "nvcc" => Some(Tool::Nvcc),
            "nvidia-smi" => Some(Tool::NvidiaSmi),
            _ => None,
        }
    }

    pub fn run(self, arguments: &Words) -> Result<ExitCode> {
        let words = &arguments.words[..];
        match self {
            Tool::Ptxas => Ok(ptxas::run(words)),
            Tool::Nvcc => nvcc::run(words),
            Tool::NvidiaSmi => smi::run(&NvidiaSmi::parse_from(nvidia_smi(words)).arguments),
        }
    }
}

impl Words {
    pub fn new(words: impl Iterator<Item = OsString>) -> Words {
        Words { words: words.collect() }
    }
}

/// Its command line; `-lms` is a short option of several letters, which nothing else has.
fn nvidia_smi(words: &[OsString]) -> Vec<OsString> {
    let usual = |word: &OsString| if word == "-lms" { "--loop-ms".into() } else { word.clone() };
    std::iter::once("nvidia-smi".into()).chain(words.iter().map(usual)).collect()
}

/// The tools' folder, in a tree that has it.
fn folder() -> Option<PathBuf> {
    own::tree().ok().map(|tree| tree.join("tools")).filter(|folder| folder.join("ptxas").exists())
}

/// Where our `nvcc` lies, if there is a compiler behind it: else it would only make programs believe that there is one.
fn compiler(tools: &Path) -> Option<PathBuf> {
    static BIN: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let real = nvcc::real()?;
        let bin = toolkit::bin(&real, tools, config::get().cache_dir.as_deref());
        bin.inspect_err(|error| {
            eprintln!("cudaway: no nvcc of ours goes before {}: {error:#}", real.display())
        })
        .ok()
    };
    BIN.get_or_init(find).clone()
}

/// The `PATH` of programs that `cudaway run` starts, where there is something to put into it.
pub fn search_path() -> Option<OsString> {
    let tools = folder()?;
    let ours: Vec<PathBuf> = compiler(&tools).into_iter().chain([tools]).collect();
    let theirs = std::env::var_os("PATH")?;
    let theirs: Vec<PathBuf> = std::env::split_paths(&theirs).filter(|it| !ours.contains(it)).collect();
    std::env::join_paths(ours.iter().chain(&theirs)).ok()
}

/// For programs that look for the tools in other ways.
pub fn variables() -> Vec<(&'static str, OsString)> {
    let Some(tools) = folder() else { return Vec::new() };
    let ptxas = OsString::from(tools.join("ptxas"));
    // Triton takes the second one for newer GPUs.
    let always = [("TRITON_PTXAS_PATH", ptxas.clone()), ("TRITON_PTXAS_BLACKWELL_PATH", ptxas)];
    let mut variables = always.to_vec();
    variables.extend(cache_of("CUPY_CACHE_DIR", "cupy"));
    if let Some(bin) = compiler(&tools) {
        variables.push(("NVCC", bin.join("nvcc").into()));
        variables.extend(cache_of("PYCUDA_CACHE_DIR", "pycuda"));
    }
    variables
}

/// A folder for a program's cache in ours: its own may hold machine code of the same sources, by the same compiler.
fn cache_of(variable: &'static str, name: &str) -> Option<(&'static str, OsString)> {
    let kept = kept::place(config::get().cache_dir.as_deref(), name)?;
    Some((variable, kept.into()))
}

/// The `CUDA_ROOT` of programs that `cudaway run` starts: JAX has XLA take `ptxas` from there before it looks into `PATH`, and else
/// from NVIDIA's wheel. Where the user names a toolkit by it, that one with our tools; else a folder with `bin/ptxas` and no more.
pub fn cuda_root() -> Option<(&'static str, OsString)> {
    let tools = folder()?;
    let theirs = std::env::var_os("CUDA_ROOT").filter(|theirs| !theirs.is_empty()).map(PathBuf::from);
    let ours = match theirs {
        // One without it has nothing of NVIDIA's to stand before, and we are there once.
        Some(theirs) if !theirs.join("bin/ptxas").is_file() || nvcc::is_ours(&theirs.join("bin/ptxas")) => {
            return None;
        }
        Some(theirs) => toolkit::root(&theirs, &tools, config::get().cache_dir.as_deref())
            .inspect_err(|error| {
                eprintln!("cudaway: no ptxas of ours goes before that of CUDA_ROOT: {error:#}");
            })
            .ok()?,
        None => toolkit_of(&tools)?,
    };
    Some(("CUDA_ROOT", ours.into()))
}

/// The folder with our `bin/ptxas` and no more.
fn toolkit_of(tools: &Path) -> Option<PathBuf> {
    Some(tools.join("toolkit")).filter(|folder| folder.join("bin/ptxas").exists())
}

/// The `XLA_FLAGS` likewise, for TensorFlow: its XLA takes `ptxas` from the folder that a flag names before it looks into NVIDIA's wheel,
/// and looks on for what that folder lacks. A folder that the user names stays.
pub fn xla_flags() -> Option<(&'static str, OsString)> {
    let root = toolkit_of(&folder()?)?;
    // Words are parted by spaces.
    let named = root.to_str().filter(|name| !name.contains(char::is_whitespace))?;
    let theirs = std::env::var_os("XLA_FLAGS").unwrap_or_default().into_string().ok()?;
    if theirs.contains("xla_gpu_cuda_data_dir") {
        return None;
    }
    Some(("XLA_FLAGS", format!("{theirs} --xla_gpu_cuda_data_dir={named}").trim_start().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidia_smi_takes_milliseconds_under_both_names() {
        for option in ["-lms", "--loop-ms"] {
            let words = ["--query-gpu=name", option, "500"].map(OsString::from);
            assert!(NvidiaSmi::try_parse_from(nvidia_smi(&words)).is_ok(), "{option}");
        }
    }

    #[test]
    fn a_tool_is_known_by_the_name_it_is_started_with() {
        for (program, tool) in [
            ("/opt/cudaway/tools/ptxas", Some(Tool::Ptxas)),
            ("nvcc", Some(Tool::Nvcc)),
            ("tools/nvidia-smi", Some(Tool::NvidiaSmi)),
            ("/usr/bin/cudaway", None),
            ("", None),
        ] {
            assert_eq!(Tool::named(OsStr::new(program)), tool, "{program}");
        }
    }
}
