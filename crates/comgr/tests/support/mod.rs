//! Compilers for tests: with the helper that cargo built, a cache of their own, and chosen back ends.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};
use std::process::Command;

use cache::Cache;
use comgr::protocol::Compiler as Kind;
use comgr::{Backend, Compiler, Request, Setup};
use config::Config;

pub const TRANSLATOR: &str = "test";

pub struct Rig {
    /// Holds the helper's copy, by which its processes are told from another test's.
    folder: tempfile::TempDir,
    pub cache: &'static Cache,
}

impl Rig {
    pub fn new() -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let (built, own) = (env!("CARGO_BIN_EXE_cudaway-comgr"), folder.path().join("cudaway-comgr"));
        // By another process: a file that this one wrote cannot be run while another test's child still has it open.
        assert!(Command::new("cp").args([Path::new(built), &own]).status().unwrap().success());
        let cache = Box::leak(Box::new(Cache::new(Some(folder.path().join("cache")), 1 << 24)));
        Rig { folder, cache }
    }

    pub fn helper(&self) -> PathBuf {
        self.folder.path().join("cudaway-comgr")
    }

    pub fn setup(&self, backends: Vec<Backend>) -> Setup {
        let (helper, cache) = (Ok(self.helper()), self.cache);
        Setup { helper, backends, cache, n_helpers: 2, limit_s: comgr::protocol::LIMIT_S }
    }

    pub fn compiler(&self, backends: Vec<Backend>) -> Compiler {
        Compiler::new(self.setup(backends))
    }

    /// The helpers that run now.
    pub fn processes(&self) -> Vec<i32> {
        let own = self.helper();
        let numbers = std::fs::read_dir("/proc").unwrap().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers.filter(|n| std::fs::read_link(format!("/proc/{n}/exe")).is_ok_and(|exe| exe == own)).collect()
    }
}

fn all() -> Vec<Backend> {
    comgr::backends(&Config::read(1000, |_| None))
}

/// Debian's comgr 2.4 (ROCm 5.2): the strictest reader there is, which knows no GPU after gfx1036.
pub fn library() -> Vec<Backend> {
    let debian = Path::new("/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2");
    let found: Vec<_> =
        all().into_iter().filter(|it| it.compiler == Kind::Library(debian.to_path_buf())).collect();
    assert!(!found.is_empty(), "install libamd-comgr2");
    found
}

/// LLVM 19 as programs.
pub fn tools() -> Vec<Backend> {
    let found: Vec<_> =
        all().into_iter().filter(|it| it.to_string().starts_with("/usr/lib/llvm-19/")).collect();
    assert!(!found.is_empty(), "install clang-19 (or llvm-19) and lld-19");
    found
}

pub fn request<'a>(target: &'a str, text: &'a str) -> Request<'a> {
    Request { name: "a test", target, text, translator: TRANSLATOR }
}

/// `out[i] = number`, for `i` below `n`.
pub fn store(number: u32) -> String {
    format!(
        r#"target triple = "amdgcn-amd-amdhsa"
@shared = internal addrspace(3) global [64 x i32] undef, align 4
declare i32 @llvm.amdgcn.workitem.id.x()
define amdgpu_kernel void @store(ptr addrspace(1) %out, i32 %n) #0 {{
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %there = icmp ult i32 %i, %n
  br i1 %there, label %yes, label %no
yes:
  %mine = getelementptr [64 x i32], ptr addrspace(3) @shared, i32 0, i32 %i
  store volatile i32 {number}, ptr addrspace(3) %mine, align 4
  %value = load volatile i32, ptr addrspace(3) %mine, align 4
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %i
  store i32 %value, ptr addrspace(1) %to, align 4
  br label %no
no:
  ret void
}}
attributes #0 = {{ "amdgpu-flat-work-group-size"="1,64" "amdgpu-no-implicitarg-ptr" }}
!llvm.module.flags = !{{!0}}
!0 = !{{i32 1, !"amdgpu_code_object_version", i32 400}}
"#
    )
}

/// Double-precision `exp2`, which AMD's LLVM cannot select and ends the process for.
pub const FATAL: &str = r#"target triple = "amdgcn-amd-amdhsa"
declare double @llvm.exp2.f64(double)
define amdgpu_kernel void @fatal(ptr addrspace(1) %out, double %x) {
  %y = call double @llvm.exp2.f64(double %x)
  store double %y, ptr addrspace(1) %out, align 8
  ret void
}
"#;
