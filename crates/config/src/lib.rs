//! Every `CUDAWAY_*` variable, read once per shared object, in one place.
//!
//! Where the environment is a stranger's (`secure`: set-user-ID programs and their like) nothing of it is read; whoever asks for
//! a variable that leads to files asks [`var`]. A value that cannot be understood never stops the program: the default holds and the first log line says so
//! (see [`Config::complaints`]). docs/environment.md is the user's copy of this list; a test keeps them equal.

#![forbid(unsafe_code)]

pub mod logging;
pub mod named;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// One entry of `CUDAWAY_DEVICE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// ROCm when it answers with at least one device, else the CPU.
    Auto,
    /// ROCm's `libamdhip64`.
    Hip,
    /// Our own `libcudaway_cpu.so`.
    Cpu,
    /// Any library with the HIP ABI.
    Path(PathBuf),
}

/// One entry of a library's variable, such as `CUDAWAY_BLAS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryChoice {
    /// For AMD GPUs ROCm's library or our own kernels, for the CPU device the CPU's own.
    Auto,
    Hip,
    Cpu,
    /// Our own kernels, on the CPU device too. cuRAND and cuDNN have some.
    Kernels,
    /// On AMD GPUs no kernels of ours: what ROCm's library has not got is computed on copies in the host's memory. cuDNN has that choice.
    Copies,
    /// On AMD GPUs our own code and neither ROCm's library nor kernels. cuDNN, cuSOLVER and cuSPARSE have that choice.
    Own,
    /// A library: with names of NVIDIA's, in front of ours; or one that does its work, such as hipBLAS or a CBLAS.
    Path(PathBuf),
}

impl LibraryChoice {
    /// The library that it names, where that may be opened ([`named::library`]).
    #[must_use]
    pub fn library(&self) -> Option<&Path> {
        match self {
            LibraryChoice::Path(path) if named::library(path).is_ok() => Some(path),
            _ => None,
        }
    }
}

/// `CUDAWAY_CPU_SETTING`: how the CPU device runs a block (docs/architecture.md, "Settings").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuSetting {
    /// `simd` where the kernel allows it, else `warp`, else `lane`.
    #[default]
    Auto,
    /// One lane at a time, exact independent thread scheduling: the reference.
    Lane,
    /// Warps by themselves, lanes as LLVM vectors; kernels that do not allow it still run in `lane` and the log says why.
    Warp,
    /// Lanes as LLVM vectors, the block together; kernels that do not allow it still run in `warp` or `lane`.
    Simd,
}

/// `CUDAWAY_CPU_TIER`: which code a kernel that the CPU device's cache lacks runs by (docs/architecture.md, "Tiers").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuTier {
    /// Baseline code for long kernels, until the best code is there.
    #[default]
    Auto,
    /// Baseline code alone, for all kernels.
    Baseline,
    /// Launches wait for the best code.
    Best,
}

/// `CUDAWAY_GFX_COMPILER`: what makes AMD code of LLVM IR.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GfxCompiler {
    /// ROCm's `libamd_comgr` where it is and knows the GPU, else `clang` and `ld.lld`.
    #[default]
    Auto,
    /// `clang` (or `llc`) and `ld.lld`.
    Tools,
    /// This `libamd_comgr`.
    Library(PathBuf),
}

/// What the environment asks for.
#[derive(Clone, Debug)]
pub struct Config {
    pub devices: Vec<DeviceChoice>,
    pub blas: Vec<LibraryChoice>,
    pub fft: Vec<LibraryChoice>,
    pub rand: Vec<LibraryChoice>,
    pub solver: Vec<LibraryChoice>,
    pub dnn: Vec<LibraryChoice>,
    pub sparse: Vec<LibraryChoice>,
    pub rocm_root: Option<PathBuf>,
    /// Reported compute capability (major, minor).
    pub compute_capability: (u32, u32),
    /// What `cuDriverGetVersion` answers, as 1000 × major + 10 × minor.
    pub driver_version: u32,
    /// `None` when no directory can be named; then nothing is cached.
    pub cache_dir: Option<PathBuf>,
    pub cache_max_bytes: u64,
    /// Caches that are only read, behind that one.
    pub cache_path: Vec<PathBuf>,
    /// `CUDA_MODULE_LOADING=EAGER`: kernels are compiled when they are loaded.
    pub eager_loading: bool,
    pub cpu_setting: CpuSetting,
    pub cpu_tier: CpuTier,
    /// How long a program that ends waits for code that is being made for the cache.
    pub exit_wait: Duration,
    /// Lanes per group in setting `simd`; `None` lets the translator choose.
    pub cpu_width: Option<u32>,
    /// The level of x86-64 that code is made for; `None` is this machine.
    pub cpu_target: Option<&'static str>,
    /// Worker threads of the CPU device; `None` is one per core this process may use.
    pub cpu_threads: Option<usize>,
    /// Reported memory of the CPU device in bytes; `None` is the machine's.
    pub cpu_memory_bytes: Option<u64>,
    /// Directory that receives the LLVM IR of every kernel compiled.
    pub dump_dir: Option<PathBuf>,
    /// The CPU device checks every memory access of a kernel (docs/sanitizer.md).
    pub sanitize: bool,
    /// The program `cudaway-comgr`; `None` is the one that lies beside our libraries.
    pub comgr_helper: Option<PathBuf>,
    pub gfx_compiler: GfxCompiler,
    /// The CPU device says on stderr, when the process ends, what every kernel took.
    pub profile: bool,
    /// The CPU device says on a terminal what launches wait for.
    pub progress: bool,
    /// The CPU device says on stderr, when the process ends, what the program did not free.
    pub leaks: bool,
    pub log: Option<String>,
    pub log_file: Option<PathBuf>,
    /// Every call is written to `PREFIX.PID` (crates/trace).
    pub trace: Option<PathBuf>,
    /// Values that were not understood, one sentence each.
    pub complaints: Vec<String>,
}

/// Highest compute capability for which the translator has everything a binary may then use.
pub const DEFAULT_COMPUTE_CAPABILITY: (u32, u32) = (9, 0);
/// CUDA 13.5.
pub const DEFAULT_DRIVER_VERSION: u32 = 13050;
pub const DEFAULT_CACHE_MAX_BYTES: u64 = 1 << 30;
pub const DEFAULT_EXIT_WAIT: Duration = Duration::from_millis(200);
/// A day.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(86_400);
/// Where packages and images put compiled kernels for all users.
pub const SYSTEM_CACHE: &str = "/usr/share/cudaway/cache";

/// The variables, for docs and tests: name and meaning. `CUDAWAY_TAKEOVER` is read by `interpose` before `main`,
/// `CUDAWAY_HOOKS` by the hooks object, `CUDAWAY_NVJITLINK` by libnvJitLink.so.N.
pub const VARIABLES: &[(&str, &str)] = &[
    ("CUDAWAY_BLAS", "who computes for cuBLAS: auto, hip, cpu or a library's path; a list combines them"),
    ("CUDAWAY_CACHE_DIR", "where compiled kernels are kept"),
    ("CUDAWAY_CACHE_MAX_MB", "bound of that directory in MiB; 0 keeps nothing"),
    ("CUDAWAY_CACHE_PATH", "directories with compiled kernels that are only read, joined by colons"),
    ("CUDAWAY_COMGR_HELPER", "the program cudaway-comgr, which compiles for AMD GPUs"),
    ("CUDAWAY_COMPUTE_CAPABILITY", "compute capability reported to programs, as X.Y"),
    ("CUDAWAY_CPU_MEMORY_MB", "memory of the CPU device in MiB"),
    (
        "CUDAWAY_CPU_SETTING",
        "auto, lane (one lane at a time), warp (warps of vector lanes) or simd (blocks of vector lanes)",
    ),
    ("CUDAWAY_CPU_TARGET", "native, x86-64-v3 or x86-64-v4: the processor that code is made for"),
    ("CUDAWAY_CPU_THREADS", "worker threads of the CPU device"),
    ("CUDAWAY_CPU_TIER", "auto, baseline or best: which code the first launches run by"),
    ("CUDAWAY_CPU_WIDTH", "lanes per group in setting simd: 1, 4, 8, 16, 32 or 64"),
    ("CUDAWAY_DEVICE", "auto, hip, cpu or a library's path; a list gives one device list in order"),
    ("CUDAWAY_DRIVER_VERSION", "driver version reported to programs, as X.Y"),
    ("CUDAWAY_DUMP_DIR", "directory that receives PTX and LLVM IR of every kernel compiled"),
    ("CUDAWAY_EXIT_WAIT", "seconds that a program that ends waits for code being made for the cache"),
    ("CUDAWAY_FFT", "who computes for cuFFT: auto, hip, cpu or a library's path; a list combines them"),
    ("CUDAWAY_GFX_COMPILER", "auto, tools (clang and ld.lld) or libamd_comgr's path"),
    ("CUDAWAY_HOOKS", "dlsym, dlopen, log: what libcudaway_hooks.so does"),
    ("CUDAWAY_LEAKS", "1 prints at the end what was never freed on the CPU device"),
    ("CUDAWAY_LOG", "off, error, warn, info, debug, trace, or area=level,…"),
    ("CUDAWAY_LOG_FILE", "log file instead of stderr"),
    ("CUDAWAY_NVJITLINK", "path of a libnvJitLink that goes in front of ours"),
    ("CUDAWAY_PROFILE", "1 prints at the end what every kernel took on the CPU device"),
    ("CUDAWAY_PROGRESS", "1 says on a terminal which kernels are compiled while launches wait"),
    (
        "CUDAWAY_RAND",
        "who makes cuRAND's numbers: auto, hip, cpu, kernels or a library's path; a list combines them",
    ),
    ("CUDAWAY_ROCM_ROOT", "ROCm's directory"),
    ("CUDAWAY_SANITIZE", "memcheck checks every memory access of kernels on the CPU device"),
    (
        "CUDAWAY_DNN",
        "who computes for cuDNN: auto, cpu, hip, kernels, copies, own, onednn or a library's path; a list combines them",
    ),
    (
        "CUDAWAY_SOLVER",
        "who computes for cuSOLVER: auto, cpu, hip, own or a library's path; a list combines them",
    ),
    (
        "CUDAWAY_SPARSE",
        "who computes for cuSPARSE: auto, cpu, hip, own or a library's path; a list combines them",
    ),
    ("CUDAWAY_TAKEOVER", "0 leaves static CUDA runtimes alone"),
    (
        "CUDAWAY_TRACE",
        "prefix of the files that get every call, a line of JSON each; cudaway trace reads them",
    ),
];

/// The process's configuration; the environment is read on the first call.
pub fn get() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| Config::read(secure::effective_user(), |name| var(name)?.into_string().ok()))
}

/// A variable that leads to files or libraries, ours or another's: nothing where the environment is a stranger's.
#[must_use]
pub fn var(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|_| !secure::is_secure_execution())
}

impl Config {
    /// The compute capability as PTX and fat binaries write architectures: 90 for 9.0.
    pub fn architecture(&self) -> u32 {
        let (major, minor) = self.compute_capability;
        major * 10 + minor
    }

    /// Reads the variables of this user's process through `var`, so that tests need no process environment.
    pub fn read(user: u32, var: impl Fn(&str) -> Option<String>) -> Config {
        let mut complaints = Vec::new();
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        let mut parse = |name: &str, expects: &str| -> Option<String> {
            var(name).inspect(|_| complaints.push(format!("{name} expects {expects}")))
        };
        // Each `parse` notes a complaint; `settle` takes it back when the value was understood.
        let mut settled = Vec::new();
        fn settle<T>(
            settled: &mut Vec<bool>,
            text: Option<String>,
            read: impl Fn(&str) -> Option<T>,
        ) -> Option<T> {
            let text = text?;
            let value = read(text.trim());
            settled.push(value.is_some());
            value
        }
        let version = |text: &str| -> Option<(u32, u32)> {
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        let compute_capability =
            settle(&mut settled, parse("CUDAWAY_COMPUTE_CAPABILITY", "X.Y, such as 8.6"), version);
        let driver_version =
            settle(&mut settled, parse("CUDAWAY_DRIVER_VERSION", "X.Y, such as 12.4"), version);
        let cache_max_mb =
            settle(&mut settled, parse("CUDAWAY_CACHE_MAX_MB", "a number"), |t| t.parse::<u64>().ok());
        let cpu_memory_mb =
            settle(&mut settled, parse("CUDAWAY_CPU_MEMORY_MB", "a number"), |t| t.parse::<u64>().ok());
        let cpu_threads = settle(&mut settled, parse("CUDAWAY_CPU_THREADS", "a number above 0"), |t| {
            t.parse::<usize>().ok().filter(|&n| n > 0)
        });
        let cpu_width = settle(&mut settled, parse("CUDAWAY_CPU_WIDTH", "1, 4, 8, 16, 32 or 64"), |t| {
            t.parse::<u32>().ok().filter(|n| [1, 4, 8, 16, 32, 64].contains(n))
        });
        const TARGETS: &str = "native, x86-64-v3 or x86-64-v4";
        let cpu_target = settle(&mut settled, parse("CUDAWAY_CPU_TARGET", TARGETS), |t| match t {
            "native" => Some(None),
            "x86-64-v3" => Some(Some("x86-64-v3")),
            "x86-64-v4" => Some(Some("x86-64-v4")),
            _ => None,
        });
        let cpu_setting =
            settle(&mut settled, parse("CUDAWAY_CPU_SETTING", "auto, lane, warp or simd"), |t| match t {
                "auto" => Some(CpuSetting::Auto),
                "lane" | "L" | "l" => Some(CpuSetting::Lane),
                "warp" | "P" | "p" => Some(CpuSetting::Warp),
                "simd" | "S" | "s" => Some(CpuSetting::Simd),
                _ => None,
            });
        let cpu_tier =
            settle(&mut settled, parse("CUDAWAY_CPU_TIER", "auto, baseline or best"), |t| match t {
                "auto" => Some(CpuTier::Auto),
                "baseline" => Some(CpuTier::Baseline),
                "best" => Some(CpuTier::Best),
                _ => None,
            });
        let exit_wait = settle(&mut settled, parse("CUDAWAY_EXIT_WAIT", "a number of seconds"), |t| {
            Duration::try_from_secs_f64(t.parse().ok()?).ok().filter(|time| *time <= MAX_EXIT_WAIT)
        });
        let sanitize = settle(&mut settled, parse("CUDAWAY_SANITIZE", "memcheck"), |t| match t {
            "memcheck" => Some(true),
            "0" | "off" => Some(false),
            _ => None,
        });
        let profile = settle(&mut settled, parse("CUDAWAY_PROFILE", "1"), |t| match t {
            "1" => Some(true),
            "0" | "off" => Some(false),
            _ => None,
        });
        let progress = settle(&mut settled, parse("CUDAWAY_PROGRESS", "1"), |t| match t {
            "1" => Some(true),
            "0" | "off" => Some(false),
            _ => None,
        });
        let leaks = settle(&mut settled, parse("CUDAWAY_LEAKS", "1"), |t| match t {
            "1" => Some(true),
            "0" | "off" => Some(false),
            _ => None,
        });
        let mut understood = settled.into_iter();
        complaints.retain(|_| !understood.next().unwrap_or(false));

        Config {
            devices: devices(var("CUDAWAY_DEVICE").as_deref().unwrap_or("auto")),
            blas: library(var("CUDAWAY_BLAS").as_deref().unwrap_or("auto")),
            fft: library(var("CUDAWAY_FFT").as_deref().unwrap_or("auto")),
            rand: library(var("CUDAWAY_RAND").as_deref().unwrap_or("auto")),
            dnn: library(var("CUDAWAY_DNN").as_deref().unwrap_or("auto")),
            solver: library(var("CUDAWAY_SOLVER").as_deref().unwrap_or("auto")),
            sparse: library(var("CUDAWAY_SPARSE").as_deref().unwrap_or("auto")),
            rocm_root: var("CUDAWAY_ROCM_ROOT").map(PathBuf::from),
            compute_capability: compute_capability.unwrap_or(DEFAULT_COMPUTE_CAPABILITY),
            driver_version: driver_version
                .map_or(DEFAULT_DRIVER_VERSION, |(major, minor)| major * 1000 + minor * 10),
            cache_dir: cache_dir(user, &var),
            cache_max_bytes: cache_max_mb.map_or(DEFAULT_CACHE_MAX_BYTES, |mb| mb << 20),
            cache_path: cache_path(var("CUDAWAY_CACHE_PATH").as_deref().unwrap_or(SYSTEM_CACHE)),
            eager_loading: var("CUDA_MODULE_LOADING").is_some_and(|value| value == "EAGER"),
            cpu_setting: cpu_setting.unwrap_or_default(),
            cpu_tier: cpu_tier.unwrap_or_default(),
            exit_wait: exit_wait.unwrap_or(DEFAULT_EXIT_WAIT),
            cpu_width,
            cpu_target: cpu_target.flatten(),
            cpu_threads,
            cpu_memory_bytes: cpu_memory_mb.map(|mb| mb << 20),
            dump_dir: var("CUDAWAY_DUMP_DIR").map(PathBuf::from),
            sanitize: sanitize.unwrap_or(false),
            comgr_helper: var("CUDAWAY_COMGR_HELPER").map(PathBuf::from),
            gfx_compiler: gfx_compiler(var("CUDAWAY_GFX_COMPILER").as_deref().unwrap_or("auto")),
            profile: profile.unwrap_or(false),
            progress: progress.unwrap_or(false),
            leaks: leaks.unwrap_or(false),
            log: var("CUDAWAY_LOG"),
            log_file: var("CUDAWAY_LOG_FILE").map(PathBuf::from),
            trace: var("CUDAWAY_TRACE").map(PathBuf::from),
            complaints,
        }
    }
}

fn gfx_compiler(text: &str) -> GfxCompiler {
    match text.trim() {
        "auto" => GfxCompiler::Auto,
        "tools" => GfxCompiler::Tools,
        path => GfxCompiler::Library(PathBuf::from(path)),
    }
}

/// Where ROCm may be, in order: the directory the user names (`CUDAWAY_ROCM_ROOT`), else what ROCm's own variables say,
/// then `/opt/rocm`. A directory that is named is the only one: a second ROCm must not win over the user's word.
#[must_use]
pub fn rocm_roots(named: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(root) = named {
        return vec![root.to_path_buf()];
    }
    let set = ["HIP_PATH", "ROCM_PATH"].into_iter().filter_map(var).filter(|value| !value.is_empty());
    set.map(PathBuf::from).chain([PathBuf::from("/opt/rocm")]).collect()
}

/// The folders below ROCm's directory in which its libraries are.
pub const ROCM_LIBRARY_FOLDERS: [&str; 3] = ["lib", "lib64", "lib/x86_64-linux-gnu"];

fn library(list: &str) -> Vec<LibraryChoice> {
    let choices = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    choices
        .map(|entry| match entry {
            "auto" => LibraryChoice::Auto,
            "hip" => LibraryChoice::Hip,
            "cpu" => LibraryChoice::Cpu,
            "kernels" => LibraryChoice::Kernels,
            "copies" => LibraryChoice::Copies,
            "own" => LibraryChoice::Own,
            path => LibraryChoice::Path(PathBuf::from(path)),
        })
        .collect()
}

fn devices(list: &str) -> Vec<DeviceChoice> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| match entry {
            "auto" => DeviceChoice::Auto,
            "hip" => DeviceChoice::Hip,
            "cpu" => DeviceChoice::Cpu,
            path => DeviceChoice::Path(PathBuf::from(path)),
        })
        .collect()
}

/// The entries of a list joined by colons; `:` alone has none.
fn cache_path(list: &str) -> Vec<PathBuf> {
    list.split(':')
        .filter(|entry| !entry.is_empty())
        .filter_map(|entry| std::path::absolute(entry).ok())
        .collect()
}

/// `$CUDAWAY_CACHE_DIR`, else `$XDG_CACHE_HOME/cudaway`, else `~/.cache/cudaway`, else `$TMPDIR/cudaway-USER`, since a folder for
/// temporary files is everybody's. One that does not begin at the root is none: it would be another after a change of directory.
fn cache_dir(user: u32, var: &impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| var(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let inside = |name: &str, tail: &str| absolute(name).map(|dir| dir.join(tail));
    var("CUDAWAY_CACHE_DIR")
        .and_then(|dir| std::path::absolute(dir).ok())
        .or_else(|| inside("XDG_CACHE_HOME", "cudaway"))
        .or_else(|| inside("HOME", ".cache/cudaway"))
        .or_else(|| inside("TMPDIR", &format!("cudaway-{user}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Config {
        Config::read(1000, |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[test]
    fn nothing_set_gives_the_documented_defaults() {
        let config = read(&[]);
        assert_eq!(config.devices, [DeviceChoice::Auto]);
        assert_eq!(config.compute_capability, (9, 0));
        assert_eq!(config.driver_version, 13050);
        assert_eq!(config.cache_dir, None);
        assert!(!config.sanitize);
        assert!(read(&[("CUDAWAY_SANITIZE", "memcheck")]).sanitize);
        assert!(!config.profile);
        assert!(read(&[("CUDAWAY_PROFILE", "1")]).profile);
        assert!(!config.progress);
        assert!(read(&[("CUDAWAY_PROGRESS", "1")]).progress);
        assert!(!config.leaks);
        assert!(read(&[("CUDAWAY_LEAKS", "1")]).leaks);
        assert!(config.complaints.is_empty());
    }

    #[test]
    fn a_value_that_is_not_understood_keeps_the_default_and_is_named() {
        let config = read(&[
            ("CUDAWAY_CPU_WIDTH", "7"),
            ("CUDAWAY_CPU_TARGET", "x86-64-v2"),
            ("CUDAWAY_COMPUTE_CAPABILITY", "8.6"),
            ("CUDAWAY_CPU_SETTING", "fast"),
        ]);
        assert_eq!(config.cpu_width, None);
        assert_eq!(config.cpu_target, None);
        assert_eq!(config.compute_capability, (8, 6));
        assert_eq!(
            config.complaints,
            [
                "CUDAWAY_CPU_WIDTH expects 1, 4, 8, 16, 32 or 64",
                "CUDAWAY_CPU_TARGET expects native, x86-64-v3 or x86-64-v4",
                "CUDAWAY_CPU_SETTING expects auto, lane, warp or simd"
            ]
        );
    }

    #[test]
    fn a_device_list_keeps_its_order() {
        let config = read(&[("CUDAWAY_DEVICE", "hip,cpu, /opt/x/libhip.so")]);
        assert_eq!(
            config.devices,
            [DeviceChoice::Hip, DeviceChoice::Cpu, DeviceChoice::Path("/opt/x/libhip.so".into())]
        );
    }

    #[test]
    fn the_compiler_for_amd_is_a_word_or_a_library() {
        assert_eq!(read(&[]).gfx_compiler, GfxCompiler::Auto);
        assert_eq!(read(&[("CUDAWAY_GFX_COMPILER", "tools")]).gfx_compiler, GfxCompiler::Tools);
        let path = "/opt/rocm/lib/libamd_comgr.so.3";
        assert_eq!(read(&[("CUDAWAY_GFX_COMPILER", path)]).gfx_compiler, GfxCompiler::Library(path.into()));
    }

    #[test]
    fn rocm_is_looked_for_where_the_user_says_else_where_rocm_says() {
        let var = |name: &str| (name == "ROCM_PATH").then(|| OsString::from("/r"));
        assert_eq!(rocm_roots(Some(Path::new("/u")), var), [PathBuf::from("/u")]);
        assert_eq!(rocm_roots(None, var), [PathBuf::from("/r"), PathBuf::from("/opt/rocm")]);
    }

    #[test]
    fn the_cache_directory_falls_back_in_the_documented_order() {
        assert_eq!(read(&[("HOME", "/h")]).cache_dir, Some("/h/.cache/cudaway".into()));
        assert_eq!(read(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]).cache_dir, Some("/x/cudaway".into()));
        assert_eq!(read(&[("HOME", "/h"), ("CUDAWAY_CACHE_DIR", "/c")]).cache_dir, Some("/c".into()));
        assert_eq!(read(&[("TMPDIR", "/tmp")]).cache_dir, Some("/tmp/cudaway-1000".into()));
    }

    #[test]
    fn caches_that_are_only_read_are_a_list_and_the_system_s_by_default() {
        assert_eq!(read(&[]).cache_path, [PathBuf::from("/usr/share/cudaway/cache")]);
        let list = read(&[("CUDAWAY_CACHE_PATH", "/a::/b/c:")]).cache_path;
        assert_eq!(list, [PathBuf::from("/a"), PathBuf::from("/b/c")]);
        assert!(read(&[("CUDAWAY_CACHE_PATH", ":")]).cache_path.is_empty());
    }

    #[test]
    fn the_cache_directory_does_not_move_with_the_program() {
        assert_eq!(read(&[("XDG_CACHE_HOME", "x"), ("HOME", "h"), ("TMPDIR", "t")]).cache_dir, None);
        let here = std::env::current_dir().unwrap();
        assert_eq!(read(&[("CUDAWAY_CACHE_DIR", "c")]).cache_dir, Some(here.join("c")));
    }

    #[test]
    fn every_variable_is_in_the_users_page_and_nothing_else_is() {
        let page = include_str!("../../../docs/environment.md");
        for (name, _) in VARIABLES {
            assert!(page.contains(&format!("`{name}`")), "{name} is missing in docs/environment.md");
        }
        let known: Vec<_> = VARIABLES.iter().map(|(name, _)| *name).collect();
        for word in
            page.split(|c: char| !(c.is_ascii_uppercase() || c == '_')).filter(|w| w.starts_with("CUDAWAY_"))
        {
            assert!(known.contains(&word), "docs/environment.md names {word}, which nothing reads");
        }
    }
}
