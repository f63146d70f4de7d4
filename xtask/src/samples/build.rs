//! Builds one sample with nvcc 13.5 and the machine's own compilers, as its CMakeLists asks but for two things: device code
//! is PTX of the one architecture that a driver of ours takes of those asked for, and the host's code is optimised.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::GRAPHICS;
use super::cmake::{self, Folder, Machine, Target};
use crate::setup;
use crate::toolchain::{Release, Toolchain};

/// The capability that the CPU device reports unless it is told another.
const DEVICE: u32 = 90;

const NVRTC: &str = "nvidia-cuda-nvrtc==13.5.37";
/// Headers that nvcc's wheels lack, and which of their wheels' files.
const HEADERS: &[(&str, &str)] = &[
    (NVRTC, "/include/nvrtc"),
    ("nvidia-nvjitlink==13.5.37", "/include/nvJitLink"),
    // With cudalibxt.h.
    ("nvidia-cufft==12.5.0.14", "/include/cu"),
    ("nvidia-curand==10.4.5.25", "/include/curand"),
    ("nvidia-cuda-profiler-api==13.5.25", "/include/cuda"),
];

/// Headers that lie in folders of their own.
const HEADERS_WHOLE: &[&str] = &["nvidia-nvtx==13.5.25"];

/// What CMake links besides a library: its `FindCUDAToolkit` knows what each of NVIDIA's needs.
const BESIDES: &[(&str, &[&str])] = &[("CUDA::cusolver", &["CUDA::cublas", "CUDA::cusparse"])];

/// What CMake finds where the compiler looks for libraries.
const TOOLKIT: &[&str] = &[
    "CUDA::cudart",
    "CUDA::cublas",
    "CUDA::cublasLt",
    "CUDA::cufft",
    "CUDA::curand",
    "CUDA::cusolver",
    "CUDA::cusolverMg",
    "CUDA::cusparse",
    "CUDA::nvrtc",
    "CUDA::nvJitLink",
];

/// Libraries as people call them.
const NAMES: &[(&str, &str)] = &[
    ("cufft_static", "cuFFT's static library"),
    ("cufft", "cuFFT"),
    ("curand", "cuRAND"),
    ("cusolverMg", "cuSOLVERMg"),
    ("cusolver", "cuSOLVER"),
    ("cusparse", "cuSPARSE"),
    ("nvjpeg", "nvJPEG"),
    ("npp", "NPP"),
];

pub struct Builder {
    toolchain: Toolchain,
    lib: PathBuf,
    /// Headers besides the toolkit's.
    include: PathBuf,
    nvrtc: PathBuf,
}

/// Why there is no program.
pub struct NotBuilt {
    pub said: String,
    pub is_graphics: bool,
    /// Nothing is known to be missing.
    pub is_broken: bool,
}

impl Builder {
    pub fn new(lib: &Path) -> Result<Builder> {
        let toolchain = Release::V13_5.get()?;
        toolchain.with_cusolver()?;
        toolchain.with_cusparse()?;
        setup::wheels(HEADERS_WHOLE)?;
        let include = setup::root().join("target/samples/include");
        for (pin, part) in HEADERS {
            setup::files_of_wheel(pin, part, &include)?;
        }
        let nvrtc = setup::download_cache()?.join("nvrtc/13.5");
        setup::files_of_wheel(NVRTC, "/lib/libnv", &nvrtc)?;
        Ok(Builder { toolchain, lib: lib.to_owned(), include, nvrtc })
    }

    pub fn machine(&self) -> Machine {
        Machine { toolkit: self.toolchain.dir.clone(), lib: self.lib.clone() }
    }

    /// The program, built anew where anything that is asked for has changed.
    pub fn build(&self, folder: &Folder) -> Result<PathBuf, NotBuilt> {
        let Some(target) = folder.targets.first() else { return Err(left_out(folder)) };
        let mut lacking: Vec<String> = linked(target).into_iter().filter_map(|it| self.lacks(it)).collect();
        lacking.dedup();
        let elsewhere = linked(target).into_iter().find_map(package);
        // Some name libraries that they do not use.
        self.compile(folder, target).map_err(|error| {
            let said = match (lacking.as_slice(), elsewhere) {
                ([], None) => without_folders(&format!("{error:#}")),
                ([], Some(package)) => format!("needs {package}"),
                (names, _) => format!("needs {}, which we do not have yet", names.join(", ")),
            };
            NotBuilt { said, is_graphics: false, is_broken: lacking.is_empty() && elsewhere.is_none() }
        })
    }

    fn compile(&self, folder: &Folder, target: &Target) -> Result<PathBuf> {
        let code = code(&folder.architectures);
        fs::create_dir_all(&folder.binary)?;
        let program = folder.binary.join(&target.name);
        let mut commands = Vec::new();
        let mut objects = Vec::new();
        for (at, source) in target.sources.iter().enumerate() {
            let object =
                folder.binary.join(format!("{at}-{}.o", source.file_stem().unwrap_or_default().display()));
            match source.extension().and_then(OsStr::to_str) {
                Some("cu" | "cpp" | "c") => {}
                _ => continue,
            }
            let mut command = self.compiler(source, target, &code);
            if target.as_cuda.contains(source) {
                command.args(["-x", "cu"]);
            }
            command.arg("-c").arg(source).arg("-o").arg(&object);
            commands.push(command);
            objects.push(object);
        }
        let mut link = self.linker(target, &code);
        link.args(&objects).args(self.libraries(target)).arg("-o").arg(&program);
        commands.push(link);
        for words in &folder.commands {
            commands.push(self.custom(words, &code)?);
        }
        let asked: String = commands.iter().map(|command| format!("{command:?}\n")).collect();
        let stamp = folder.binary.join(".built");
        if program.exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == asked) {
            return Ok(program);
        }
        let _ = fs::remove_file(&stamp);
        for command in &mut commands {
            done(command.current_dir(&folder.binary))?;
        }
        fs::write(&stamp, asked)?;
        Ok(program)
    }

    fn compiler(&self, source: &Path, target: &Target, code: &str) -> Command {
        let kind = match target.as_cuda.iter().any(|it| it == source) {
            true => Some("cu"),
            false => source.extension().and_then(OsStr::to_str),
        };
        let mut command = match kind {
            Some("cu") => self.nice_nvcc(),
            Some("c") => nice("cc"),
            _ => nice("c++"),
        };
        command.arg("-O2");
        for folder in target.includes.iter().map(PathBuf::from).chain([self.include.clone()]) {
            command.arg("-I").arg(folder);
        }
        if kind == Some("cu") {
            command.arg(code).args(&target.cuda_options).args(&target.compile_flags);
            if target.is_relocatable {
                command.arg("-rdc=true");
            }
            if uses_openmp(target) {
                command.args(["-Xcompiler", "-fopenmp"]);
            }
        } else {
            let include = self.toolchain.dir.join("include");
            command.arg("-fPIC").arg("-I").arg(&include).arg("-I").arg(include.join("cccl"));
            command.args(&target.compile_flags);
            if uses_openmp(target) {
                command.arg("-fopenmp");
            }
        }
        command
    }

    /// nvcc links what has device code, and adds the static runtime; the rest is linked as C++ is.
    fn linker(&self, target: &Target, code: &str) -> Command {
        if !has_device_code(target) {
            let mut command = nice("c++");
            command.args(&target.link_flags);
            return command;
        }
        let mut command = self.nice_nvcc();
        command.arg(code);
        for flag in &target.link_flags {
            match flag.strip_prefix("-Wl,") {
                Some(words) => command.args(words.split(',').flat_map(|word| ["-Xlinker", word])),
                None => command.args(["-Xcompiler", flag]),
            };
        }
        command
    }

    /// What its libraries are to the linker.
    fn libraries(&self, target: &Target) -> Vec<String> {
        let mut words = Vec::new();
        let with_path = |place: &Path, name: &str, words: &mut Vec<String>| {
            let found = cmake::library(place, name);
            words.extend(found.map(|path| path.display().to_string()));
        };
        for name in linked(target) {
            match name.strip_prefix("CUDA::") {
                // nvcc has the static one already.
                Some("cudart") if has_device_code(target) => {}
                Some("cudart") => with_path(&self.toolchain.dir.join("lib"), "cudart", &mut words),
                Some("cuda_driver") => with_path(&self.lib, "cuda", &mut words),
                Some("nvrtc") => {
                    with_path(&self.nvrtc, "nvrtc", &mut words);
                    words.extend(["-Xlinker".to_owned(), "-rpath".to_owned()]);
                    words.extend(["-Xlinker".to_owned(), self.nvrtc.display().to_string()]);
                }
                Some(name) => with_path(&self.lib, name, &mut words),
                None if name == "OpenMP::OpenMP_CXX" => words.push("-lgomp".to_owned()),
                None if name.starts_with('/') => words.push(name.to_owned()),
                None if package(name).is_some() => {}
                None => words.push(format!("-l{name}")),
            }
        }
        if !has_device_code(target) {
            words.extend(["-lpthread", "-ldl", "-lm"].map(str::to_owned));
        }
        words
    }

    /// The library that is asked for and not to be had.
    fn lacks(&self, library: &str) -> Option<String> {
        let name = library.strip_prefix("CUDA::")?;
        if ["cuda_driver", "cudart", "nvrtc"].contains(&name) || cmake::library(&self.lib, name).is_some() {
            return None;
        }
        let known = NAMES.iter().find(|(start, _)| name.starts_with(start));
        Some(known.map_or(name, |(_, called)| called).to_owned())
    }

    /// A custom command: one of CMake's own, or nvcc's, which makes PTX where it is asked for machine code.
    fn custom(&self, words: &[String], code: &str) -> Result<Command> {
        let (program, rest) = words.split_first().context("a command without words")?;
        if program == "nvcc" {
            let mut command = self.nice_nvcc();
            let is_code = |word: &&String| word.starts_with("-gencode");
            if rest.iter().any(|word| is_code(&word)) {
                command.arg(code);
            }
            command.args(rest.iter().filter(|word| !is_code(word)));
            return Ok(command);
        }
        let mut command = nice("cp");
        match rest {
            [e, verb, paths @ ..] if e == "-E" && verb == "copy_directory" => {
                command.arg("-rT").args(paths);
            }
            // The script's pattern found no file.
            [e, verb, _] if e == "-E" && verb.starts_with("copy") => command = nice("true"),
            [e, verb, paths @ ..] if e == "-E" && verb.starts_with("copy") => {
                command.args(paths);
            }
            _ => anyhow::bail!("a command that is not known: {}", words.join(" ")),
        }
        Ok(command)
    }

    fn nice_nvcc(&self) -> Command {
        let nvcc = self.toolchain.nvcc();
        let mut command = nice(nvcc.get_program());
        command.args(nvcc.get_args());
        command
    }
}

/// Its CMakeLists has no program for this machine.
fn left_out(folder: &Folder) -> NotBuilt {
    let (graphics, others): (Vec<&String>, Vec<&String>) =
        folder.missing.iter().partition(|name| GRAPHICS.contains(&name.as_str()));
    let names = |names: &[&String]| names.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(", ");
    let script = fs::read_to_string(folder.source.join("CMakeLists.txt")).unwrap_or_default();
    let said = match (&graphics[..], &others[..]) {
        ([], []) if folder.source.components().any(|it| it.as_os_str() == "Tegra") => {
            "for Tegra only".to_owned()
        }
        ([], []) if script.contains("WIN32") && script.contains("d3d") => "needs Direct3D".to_owned(),
        ([], []) if folder.is_left_out => "the CMakeLists above it leaves it out".to_owned(),
        ([], []) => "has no program of its own".to_owned(),
        ([], others) => format!("needs {}", names(others)),
        (graphics, _) => format!("needs {}", names(graphics)),
    };
    let is_graphics = !graphics.is_empty() || said == "needs Direct3D";
    NotBuilt { said, is_graphics, is_broken: false }
}

/// What was said, with files by their names: where they lie is this machine's affair.
pub fn without_folders(said: &str) -> String {
    let plain = |word: &str| match (word.find('/'), word.rfind('/')) {
        // A path from the root, perhaps in quotes or brackets.
        (Some(start), Some(end)) if !word[..start].contains(char::is_alphanumeric) => {
            format!("{}{}", &word[..start], &word[end + 1..])
        }
        _ => word.to_owned(),
    };
    said.split_inclusive(' ').map(plain).collect()
}

/// Whether its sources launch kernels: then a run without a launch proves nothing.
pub fn launches_kernels(folder: &Folder) -> bool {
    let sources = folder.targets.iter().flat_map(|target| &target.sources);
    sources.filter_map(|source| fs::read_to_string(source).ok()).any(|text| text.contains("<<<"))
}

fn has_device_code(target: &Target) -> bool {
    let is_cuda = |source: &PathBuf| source.extension() == Some(OsStr::new("cu"));
    !target.as_cuda.is_empty() || target.sources.iter().any(is_cuda)
}

/// The libraries that it names, and those that CMake adds. NVIDIA's may be named as the linker has them.
fn linked(target: &Target) -> Vec<&str> {
    let of_toolkit = |name: &str| TOOLKIT.iter().copied().find(|it| it.strip_prefix("CUDA::") == Some(name));
    let named = target.libraries.iter().map(|name| of_toolkit(name).unwrap_or(name));
    let named: Vec<&str> = named.collect();
    let added = BESIDES.iter().filter(|(name, _)| named.contains(name)).flat_map(|(_, besides)| *besides);
    let added: Vec<&str> = added.copied().filter(|name| !named.contains(name)).collect();
    [named, added].concat()
}

/// The package of a library that is neither ours nor the compiler's: none is there.
fn package(library: &str) -> Option<&str> {
    let (package, _) = library.split_once("::")?;
    (!["CUDA", "OpenMP"].contains(&package)).then_some(package)
}

fn uses_openmp(target: &Target) -> bool {
    target.libraries.iter().any(|name| name.starts_with("OpenMP::"))
}

/// The PTX that our driver would take of these architectures: the newest that is not newer than the device.
fn code(architectures: &[u32]) -> String {
    let newest = architectures.iter().copied().filter(|&it| it <= DEVICE).max().unwrap_or(DEVICE);
    format!("-gencode=arch=compute_{newest},code=compute_{newest}")
}

fn nice(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("nice");
    command.arg(program);
    command
}

/// Runs a compiler; what it says of a failure is its first error.
fn done(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find(|line| line.contains("error") || line.contains("undefined reference"));
    let line = line.or(text.lines().next()).unwrap_or("nothing was said");
    anyhow::bail!("{}", line.chars().take(200).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{code, linked, without_folders};
    use crate::samples::cmake::Target;

    #[test]
    fn libraries_bring_those_that_they_need() {
        let libraries = ["cusolver", "m", "CUDA::cusparse"].map(str::to_owned).to_vec();
        let target = Target { libraries, ..Target::default() };
        assert_eq!(linked(&target), ["CUDA::cusolver", "m", "CUDA::cusparse", "CUDA::cublas"]);
        assert!(linked(&Target::default()).is_empty());
    }

    #[test]
    fn files_are_named_without_their_folders() {
        assert_eq!(without_folders("at /a/b/c.cu:3 code=811 a/b"), "at c.cu:3 code=811 a/b");
        assert_eq!(without_folders("file </a/b/c.cu>, line"), "file <c.cu>, line");
    }

    #[test]
    fn the_architecture_is_the_newest_that_the_device_takes() {
        assert_eq!(code(&[75, 80, 90, 100, 120]), "-gencode=arch=compute_90,code=compute_90");
        assert_eq!(code(&[87, 110]), "-gencode=arch=compute_87,code=compute_87");
    }
}
