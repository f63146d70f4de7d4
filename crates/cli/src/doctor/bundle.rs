//! `--bundle FILE`: what was found, and what a maintainer asks next, in one archive for a bug report.
//!
//! No value leaves the machine that might be a secret: of a variable that is none of the loader's or CUDA's only the name is
//! told, and no command line is.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::finding::{self, Finding};
use super::subject::Subject;

/// Variables whose values tell how CUDA was found: by the start of their names.
const TOLD: [&str; 15] = [
    "CONDA_PREFIX",
    "CUDA",
    "CUPY_",
    "GPU_",
    "HIP_",
    "HSA_",
    "LD_",
    "LIBRARY_PATH",
    "NUMBA_",
    "NVIDIA_",
    "PATH",
    "ROC",
    "TRITON_",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
];
/// In whatever name, it is not told.
const SECRET: [&str; 8] = ["AUTH", "COOKIE", "CRED", "KEY", "PASS", "SECRET", "SIGN", "TOKEN"];

pub fn write(file: &Path, lib: &Path, subject: &Subject, findings: &[Finding]) -> Result<()> {
    let packer = match file.to_string_lossy() {
        name if name.ends_with(".tar.gz") || name.ends_with(".tgz") => "--gzip",
        name if name.ends_with(".tar.zst") => "--zstd",
        _ => bail!("--bundle {}: a name that ends in .tar.gz or .tar.zst is needed", file.display()),
    };
    let temporary = tempfile::tempdir().context("a folder for the bundle")?;
    let folder = temporary.path().join("cudaway-doctor");
    std::fs::create_dir(&folder)?;
    let proc = |name: &str| {
        let pid = subject.pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_else(|error| format!("{error}\n"))
    };
    for (name, text) in [
        ("report.txt", finding::text(findings)),
        ("report.json", finding::json(findings).to_string()),
        ("environment.txt", environment(subject.environment())),
        ("versions.txt", versions(lib)),
        ("maps.txt", proc("maps")),
        ("status.txt", proc("status")),
        ("cgroup.txt", proc("cgroup")),
    ] {
        std::fs::write(folder.join(name), text).with_context(|| name.to_owned())?;
    }
    let mut tar = Command::new("tar");
    tar.arg("--create")
        .arg(packer)
        .arg("--file")
        .arg(file)
        .arg("-C")
        .arg(temporary.path())
        .arg("cudaway-doctor");
    let output = tar.output().context("tar")?;
    if !output.status.success() {
        bail!("tar {packer}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn environment(variables: &[(String, String)]) -> String {
    let mut lines: Vec<String> = variables
        .iter()
        .map(|(name, value)| {
            let upper = name.to_uppercase();
            let is_told = TOLD.iter().any(|start| name.starts_with(start));
            let is_secret = SECRET.iter().any(|part| upper.contains(part)) || value.contains("://");
            if is_told && !is_secret { format!("{name}={value}") } else { format!("{name} (value left out)") }
        })
        .collect();
    lines.sort();
    lines.join("\n") + "\n"
}

/// Ours, the kernel's, the system's and the C library's.
fn versions(lib: &Path) -> String {
    // A folder that lacks a library is among the findings.
    let mut text = crate::version::verbose(lib).unwrap_or_else(|error| format!("{error:#}\n"));
    for (head, path) in [("kernel", "/proc/version"), ("system", "/etc/os-release")] {
        _ = writeln!(text, "\n{head}:\n{}", std::fs::read_to_string(path).unwrap_or_default().trim());
    }
    // SAFETY: it gives a string that lives as long as the process.
    let glibc = unsafe { core::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    _ = writeln!(text, "\nglibc {}", glibc.to_string_lossy());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_here() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let text = environment(&[
            pair("LD_PRELOAD", "/opt/cudaway/lib/libcuda.so.1"),
            pair("OPENAI_API_KEY", "sk-1"),
            pair("CUDAWAY_TOKEN", "t-2"),
            pair("PATH", "/usr/bin"),
            pair("ROCM_MIRROR", "https://me:p-3@mirror"),
            pair("DATABASE", "d-4"),
        ]);
        assert_eq!(
            text,
            "CUDAWAY_TOKEN (value left out)\nDATABASE (value left out)\nLD_PRELOAD=/opt/cudaway/lib/libcuda.so.1\n\
             OPENAI_API_KEY (value left out)\nPATH=/usr/bin\nROCM_MIRROR (value left out)\n"
        );
    }
}
