//! A program is run once, and its loader asked to tell which file answers each of CUDA's names: what no look at files can say of
//! a program that opens its libraries while it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::finding::Finding;

/// A program that goes on for longer, or whose loader has more to tell, is ended.
const LIMIT: Duration = Duration::from_secs(20);
const LIMIT_BYTES: u64 = 256 << 20;

pub fn check(lib: &Path, command: &[OsString]) -> Result<Vec<Finding>> {
    let folder = tempfile::tempdir().context("a folder for what the loader says")?;
    let own = std::env::current_exe().context("where this program lies")?;
    let mut run = Command::new(own);
    run.args(["run", "--force", "--lib"]).arg(lib).arg("--").args([
        "env",
        "LD_DEBUG=libs,bindings",
        "LD_BIND_NOW=1",
    ]);
    let mut output = OsString::from("LD_DEBUG_OUTPUT=");
    output.push(folder.path().join("loader"));
    run.arg(output).args(command);
    // What the program says is not what doctor says; and it is ended with all that it started.
    run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = run.spawn().context("cudaway run")?;
    let is_ended = wait(&mut child, folder.path())?;
    let mut bound = Bound::default();
    for entry in std::fs::read_dir(folder.path())?.filter_map(Result::ok) {
        // A file for each process.
        (bound.started, bound.is_running) = Default::default();
        let lines = BufReader::new(File::open(entry.path())?).lines();
        lines.map_while(Result::ok).for_each(|line| bound.read(&line));
    }
    Ok(bound.judge(lib, is_ended))
}

/// Whether it ended by itself.
fn wait(child: &mut Child, folder: &Path) -> Result<bool> {
    let started = Instant::now();
    loop {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        if started.elapsed() > LIMIT || said_bytes(folder) > LIMIT_BYTES {
            let group = -libc::pid_t::try_from(child.id())?;
            // SAFETY: the group is the child's own, which was not waited for yet.
            unsafe { libc::kill(group, libc::SIGKILL) };
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn said_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// Which file answers for which of CUDA's names, to whom.
#[derive(Default)]
struct Bound {
    names: BTreeMap<PathBuf, BTreeSet<String>>,
    /// Files of CUDA's names that were looked for.
    tried: BTreeSet<PathBuf>,
    /// Libraries of this process whose own references are settled.
    started: BTreeSet<String>,
    /// Its `main` was reached.
    is_running: bool,
}

impl Bound {
    /// A line such as `  17:  trying file=/lib/libcuda.so.1`.
    fn read(&mut self, line: &str) {
        if let Some((_, path)) = line.split_once("trying file=") {
            if loader::names::of_path(path.as_bytes()).is_some() {
                self.tried.insert(path.into());
            }
            return;
        }
        if let Some((_, path)) = line.split_once("calling init: ") {
            self.started.insert(path.trim().to_owned());
        }
        self.is_running |= line.contains("transferring control: ");
        let Some((from, to, name)) = binding(line) else { return };
        // A library's own references lead to itself; `dlsym(handle, …)` is told in the same words, after its start.
        let is_asked = if from == to {
            self.is_running && self.started.contains(to)
        } else {
            // Ours among each other are no calls of the program's.
            loader::names::of_path(from.as_bytes()).is_none()
        };
        if is_asked && is_cudas(name) {
            self.names.entry(to.into()).or_default().insert(name.to_owned());
        }
    }

    fn judge(&self, lib: &Path, is_ended: bool) -> Vec<Finding> {
        let lib = crate::own::files(lib);
        let is_ours = |path: &Path| path.canonicalize().is_ok_and(|path| path.starts_with(&lib));
        let mut findings = Vec::new();
        if !is_ended {
            findings.push(Finding::fine(
                "loader.bounded",
                format!("the program was ended after {} s; what came later was not seen", LIMIT.as_secs()),
            ));
        }
        for (path, names) in &self.names {
            let first = names.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
            let seen = format!("{} answers for {} of CUDA's names: {first}", path.display(), names.len());
            // A static runtime, or the program itself, answers its own calls: it comes to the driver.
            if is_ours(path) || loader::names::of_path(path.as_os_str().as_encoded_bytes()).is_none() {
                findings.push(Finding::fine("loader", seen));
            } else {
                findings.push(Finding::fault(
                    "loader.past",
                    seen,
                    "these calls do not come to us",
                    format!("cudaway run --claim {}; or --audit, or --hooks dlopen", path.display()),
                ));
            }
        }
        if self.names.is_empty() {
            let tried: Vec<String> = self.tried.iter().map(|path| path.display().to_string()).collect();
            let tried =
                if tried.is_empty() { "none of CUDA's libraries".to_owned() } else { tried.join(", ") };
            findings.push(Finding::warning(
                "loader.none",
                format!("no CUDA name was bound; looked for: {tried}"),
                "the program did not come to CUDA: what it was given to do, or its configuration, does not lead there",
                "give it work for a GPU; a static program has no loader to ask",
            ));
        }
        findings
    }
}

/// Who asks, who answers, for what: `  17: binding file ./app [0] to /lib/libcuda.so.1 [0]: normal symbol `cuInit'`.
fn binding(line: &str) -> Option<(&str, &str, &str)> {
    let (from, rest) = line.split_once("binding file ")?.1.split_once(" [")?;
    let (to, rest) = rest.split_once("] to ")?.1.split_once(" [")?;
    Some((from, to, rest.split_once('`')?.1.split('\'').next()?))
}

/// `cuInit`, `cudaMalloc`, `__cudaRegisterFatBinary`, `nvmlInit_v2`; not `cublasCreate`, `cudnnCreate`, `curl_easy_init`.
fn is_cudas(name: &str) -> bool {
    let is_then_upper = |prefix: &str| {
        name.strip_prefix(prefix)
            .and_then(|rest| rest.chars().next())
            .is_some_and(|it| it.is_ascii_uppercase())
    };
    ["cu", "cuda", "__cuda", "nvml"].into_iter().any(is_then_upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answers_is_read_from_the_loaders_words() {
        let mut bound = Bound::default();
        for line in [
            "      17:\t  trying file=/opt/x/libcuda.so.1",
            "      17:\tbinding file ./app [0] to /opt/x/libcuda.so.1 [0]: normal symbol `cuInit'",
            "      17:\tbinding file ./app [0] to /lib/libc.so.6 [0]: normal symbol `malloc' [GLIBC_2.2.5]",
            "      17:\tbinding file /a/libcudart.so.12 [0] to /opt/x/libcuda.so.1 [0]: normal symbol `cuDeviceGet'",
            "      17:\tbinding file ./app [0] to /a/libcublas.so.12 [0]: normal symbol `cublasCreate_v2'",
            "      17:\tbinding file /b/libcuda.so.1 [0] to /b/libcuda.so.1 [0]: normal symbol `cuCtxCreate'",
            "      17:\tcalling init: /b/libcuda.so.1",
            "      17:\tbinding file /b/libcuda.so.1 [0] to /b/libcuda.so.1 [0]: normal symbol `cuInit'",
            "      17:\ttransferring control: ./app",
        ] {
            bound.read(line);
        }
        let found = bound.judge(Path::new("/opt/cudaway/lib"), true);
        assert_eq!(found.len(), 1, "{found:?}");
        bound.read(
            "      17:\tbinding file /b/libcuda.so.1 [0] to /b/libcuda.so.1 [0]: normal symbol `cuDeviceGet'",
        );
        let asked = bound.judge(Path::new("/opt/cudaway/lib"), true);
        assert_eq!(asked[0].seen, "/b/libcuda.so.1 answers for 1 of CUDA's names: cuDeviceGet");
        assert_eq!(found[0].id, "loader.past");
        assert_eq!(found[0].seen, "/opt/x/libcuda.so.1 answers for 1 of CUDA's names: cuInit");
        let none = Bound { tried: bound.tried, ..Bound::default() }.judge(Path::new("/"), true);
        assert_eq!(none[0].id, "loader.none");
        assert!(none[0].seen.ends_with("/opt/x/libcuda.so.1"));
    }
}
