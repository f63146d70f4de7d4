//! Which compilers there may be, best first, found without opening any: opening is the helper's business.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use config::{Config, GfxCompiler, ROCM_LIBRARY_FOLDERS, named};

use crate::protocol::Compiler;

/// A compiler, and what tells it from the one that lies in the same place after an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    pub compiler: Compiler,
    fingerprint: String,
}

/// Newest first: the name's number is that of the interface, 2 up to ROCm 6, 3 from ROCm 7.
const LIBRARY_NAMES: [&str; 3] = ["libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"];

/// Where Debian and its like keep an LLVM; 19 is the one that is tested.
const LLVM_MAJORS: [u32; 7] = [19, 20, 21, 22, 18, 17, 16];

impl Backend {
    fn new(compiler: Compiler) -> Backend {
        let files: Vec<&Path> = match &compiler {
            Compiler::Library(path) => vec![path],
            Compiler::Tools { compiler, linker } => vec![compiler, linker],
        };
        let fingerprint = files.into_iter().map(fingerprint).collect::<Vec<_>>().join(";");
        Backend { compiler, fingerprint }
    }

    /// Part of the cache's key.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl std::fmt::Display for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.compiler {
            Compiler::Library(path) => write!(f, "{}", path.display()),
            Compiler::Tools { compiler, .. } => write!(f, "{}", compiler.display()),
        }
    }
}

/// A name that the loader looks for changes with the loader's own cache.
fn fingerprint(path: &Path) -> String {
    let is_name = path.components().count() == 1;
    let looked_at = if is_name { Path::new("/etc/ld.so.cache") } else { path };
    let real = looked_at.canonicalize().unwrap_or_else(|_| looked_at.to_path_buf());
    let (bytes, changed) =
        real.metadata().map_or((0, (0, 0)), |data| (data.len(), (data.mtime(), data.mtime_nsec())));
    format!("{} {} {bytes} {}.{:09}", path.display(), real.display(), changed.0, changed.1)
}

/// All that `config` allows, in the order in which they are asked.
#[must_use]
pub fn backends(config: &Config) -> Vec<Backend> {
    let var = config::var;
    let compilers = match &config.gfx_compiler {
        GfxCompiler::Library(path) if named::library(path).is_err() => Vec::new(),
        GfxCompiler::Library(path) => vec![Compiler::Library(path.clone())],
        GfxCompiler::Tools => tools(config.rocm_root.as_deref(), var),
        GfxCompiler::Auto => {
            let root = config.rocm_root.as_deref();
            libraries(root, var).into_iter().map(Compiler::Library).chain(tools(root, var)).collect()
        }
    };
    compilers.into_iter().map(Backend::new).collect()
}

/// Whether what lies there may be run; what the system's own variables (`PATH`, `LD_LIBRARY_PATH`) lead to is theirs to answer for.
type MayRun = fn(&Path) -> bool;

fn libraries(root: Option<&Path>, var: impl Fn(&str) -> Option<OsString> + Copy) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    let mut look_into = |folder: PathBuf, may_run: MayRun| {
        for path in LIBRARY_NAMES.map(|name| folder.join(name)) {
            // One library under several names counts once.
            if let Ok(file) = path.canonicalize()
                && !real.contains(&file)
                && may_run(&path)
            {
                real.push(file);
                found.push(path);
            }
        }
    };
    for rocm in config::rocm_roots(root, var) {
        ROCM_LIBRARY_FOLDERS.iter().for_each(|folder| look_into(rocm.join(folder), is_trusted_library));
    }
    if root.is_none() {
        // The loader's search, as far as it can be told from outside, then by the loader itself.
        let path = var("LD_LIBRARY_PATH").unwrap_or_default();
        let asked = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let usual = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"].map(PathBuf::from);
        asked.chain(usual).for_each(|folder| look_into(folder, |_| true));
        if found.is_empty() {
            found.extend(LIBRARY_NAMES.map(PathBuf::from));
        }
    }
    found
}

fn is_trusted_library(path: &Path) -> bool {
    named::library(path).is_ok()
}

fn is_trusted_program(path: &Path) -> bool {
    named::program(path).is_ok()
}

fn tools(root: Option<&Path>, var: impl Fn(&str) -> Option<OsString> + Copy) -> Vec<Compiler> {
    let rocm = config::rocm_roots(root, var).into_iter();
    let rocm = rocm.flat_map(|root| [root.join("llvm/bin"), root.join("lib/llvm/bin")]);
    let mut folders: Vec<(PathBuf, MayRun)> =
        rocm.map(|folder| (folder, is_trusted_program as MayRun)).collect();
    if root.is_none() {
        let of_llvm = LLVM_MAJORS.map(|major| PathBuf::from(format!("/usr/lib/llvm-{major}/bin")));
        let path = var("PATH").unwrap_or_default();
        let searched = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        // As a shell does.
        let any: MayRun = |_| true;
        folders.extend(of_llvm.into_iter().chain(searched).map(|folder| (folder, any)));
    }
    let mut found = Vec::new();
    for (folder, may_run) in folders {
        let linker = folder.join("ld.lld");
        let compiler = ["clang", "llc"].into_iter().map(|name| folder.join(name)).find(|path| path.exists());
        if let Some(compiler) = compiler
            && linker.exists()
            && may_run(&compiler)
            && may_run(&linker)
        {
            found.push(Compiler::Tools { compiler, linker });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_root_is_the_only_place_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        let lib = folder.path().join("lib");
        let bin = folder.path().join("llvm/bin");
        std::fs::create_dir_all(&lib).unwrap();
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(lib.join("libamd_comgr.so.2.4"), b"").unwrap();
        std::os::unix::fs::symlink("libamd_comgr.so.2.4", lib.join("libamd_comgr.so.2")).unwrap();
        std::os::unix::fs::symlink("libamd_comgr.so.2", lib.join("libamd_comgr.so")).unwrap();
        std::fs::write(bin.join("llc"), b"").unwrap();
        let elsewhere = |_: &str| Some(OsString::from("/elsewhere"));
        assert_eq!(libraries(Some(folder.path()), elsewhere), [lib.join("libamd_comgr.so.2")]);
        assert_eq!(tools(Some(folder.path()), elsewhere), [], "no linker");
        std::fs::write(bin.join("ld.lld"), b"").unwrap();
        let found = tools(Some(folder.path()), elsewhere);
        assert_eq!(found, [Compiler::Tools { compiler: bin.join("llc"), linker: bin.join("ld.lld") }]);
    }

    #[test]
    fn an_updated_library_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libamd_comgr.so.3");
        std::fs::write(&path, b"old").unwrap();
        let old = Backend::new(Compiler::Library(path.clone()));
        std::fs::write(&path, b"newer").unwrap();
        assert_ne!(old.fingerprint(), Backend::new(Compiler::Library(path)).fingerprint());
    }
}
