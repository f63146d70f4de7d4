//! The lines of crates/trace, put in order: which call was made inside which, and which kernel a launch means.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

pub struct Process {
    pub pid: u32,
    /// By their start.
    pub calls: Vec<Call>,
    pub runs: Vec<KernelRun>,
    /// By their start.
    pub compiles: Vec<Compile>,
}

pub struct Call {
    pub name: String,
    pub thread: u64,
    pub start: u64,
    pub nanoseconds: u64,
    /// None of a call that gives no status.
    pub result: Option<i64>,
    pub given: Map<String, Value>,
    pub got: Map<String, Value>,
    /// How many calls it was made inside of: the runtime calls the driver.
    pub depth: usize,
    /// What a launch launched.
    pub kernel: Option<String>,
}

/// A kernel on a device.
pub struct KernelRun {
    pub name: String,
    pub start: u64,
    pub nanoseconds: u64,
}

/// Code for a kernel was made, or taken from the cache.
pub struct Compile {
    pub name: String,
    /// `cache`, `baseline`, `best`, …
    pub tier: String,
    pub block: String,
    pub start: u64,
    pub nanoseconds: u64,
}

impl Call {
    pub fn given(&self, name: &str) -> Option<&str> {
        self.given.get(name)?.as_str()
    }

    fn got(&self, name: &str) -> Option<&str> {
        self.got.get(name)?.as_str()
    }

    pub fn end(&self) -> u64 {
        self.start + self.nanoseconds
    }

    pub fn is_nvml(&self) -> bool {
        self.name.starts_with("nvml")
    }

    pub fn is_unsupported(&self) -> bool {
        // CUDA_ERROR_NOT_SUPPORTED, cudaErrorNotSupported; NVML_ERROR_NOT_SUPPORTED.
        self.result == Some(if self.is_nvml() { 3 } else { 801 })
    }

    pub fn has_failed(&self) -> bool {
        // 600 is an answer: not ready.
        self.result.is_some_and(|code| code != 0 && code != 600)
    }
}

/// The processes that wrote into `dir`, by number.
pub fn all(dir: &Path) -> Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let path = entry?.path();
        let Some(pid) = path.extension().and_then(|pid| pid.to_str()?.parse().ok()) else { continue };
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        processes.push(process(pid, &String::from_utf8_lossy(&bytes)));
    }
    processes.sort_by_key(|process| process.pid);
    Ok(processes)
}

pub fn process(pid: u32, text: &str) -> Process {
    let mut calls = Vec::new();
    let mut runs = Vec::new();
    let mut compiles = Vec::new();
    // The last line of a process that was killed may be half a line.
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let number = |key: &str| line[key].as_u64().unwrap_or(0);
        let object = |key: &str| line[key].as_object().cloned().unwrap_or_default();
        let (start, nanoseconds) = (number("start"), number("ns"));
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        if line["compiled"].is_string() {
            let (name, tier, block) = (text("plain"), text("tier"), text("block"));
            compiles.push(Compile { name, tier, block, start, nanoseconds });
        } else if let Some(name) = line["plain"].as_str() {
            runs.push(KernelRun { name: name.to_owned(), start, nanoseconds });
        } else if let Some(name) = line["call"].as_str() {
            calls.push(Call {
                name: name.to_owned(),
                thread: number("thread"),
                start,
                nanoseconds,
                result: line["result"].as_i64(),
                given: object("in"),
                got: object("out"),
                depth: 0,
                kernel: None,
            });
        }
    }
    // Of two that begin together the longer is the outer one.
    calls.sort_by_key(|call| (call.start, u64::MAX - call.nanoseconds));
    runs.sort_by_key(|run| run.start);
    compiles.sort_by_key(|compile: &Compile| compile.start);
    nest(&mut calls);
    Process { pid, calls, runs, compiles }
}

/// Depths, and the kernels of launches: a handle means the name that it was asked for by.
fn nest(calls: &mut [Call]) {
    let mut open: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut names: HashMap<String, String> = HashMap::new();
    for index in 0..calls.len() {
        let start = calls[index].start;
        let stack = open.entry(calls[index].thread).or_default();
        stack.retain(|&outer| calls[outer].end() > start);
        calls[index].depth = stack.len();
        learn(&calls[index], &mut names);
        if let Some(kernel) = launched(&calls[index], &names) {
            for outer in stack.iter() {
                calls[*outer].kernel = Some(kernel.clone());
            }
            calls[index].kernel = Some(kernel);
        }
        stack.push(index);
    }
}

fn learn(call: &Call, names: &mut HashMap<String, String>) {
    let (handle, name) = match call.name.as_str() {
        "cuModuleGetFunction" => (call.got("hfunc"), call.given("name").map(str::to_owned)),
        "cuLibraryGetKernel" => (call.got("pKernel"), call.given("name").map(str::to_owned)),
        "cuKernelGetFunction" => {
            (call.got("pFunc"), call.given("kernel").and_then(|kernel| names.get(kernel).cloned()))
        }
        _ => return,
    };
    if let (Some(handle), Some(name)) = (handle, name) {
        names.insert(handle.to_owned(), name);
    }
}

fn launched(call: &Call, names: &HashMap<String, String>) -> Option<String> {
    call.name.starts_with("cuLaunch").then(|| names.get(call.given("f")?).cloned())?
}

/// Every call of a process, a line each, calls inside of calls to the right.
pub fn listing(process: &Process) -> String {
    let mut text = format!("process {}: milliseconds since its first call, thread, call\n", process.pid);
    let first = process.calls.first().map_or(0, |call| call.start);
    for call in &process.calls {
        let shown = |map: &Map<String, Value>| {
            let words =
                map.iter().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
            words.collect::<Vec<_>>().join(", ")
        };
        let ms = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        let indent = call.depth * 2;
        _ = write!(
            text,
            "{:12.4} {:>8} {:indent$}{}({})",
            ms(call.start - first),
            call.thread,
            "",
            call.name,
            shown(&call.given)
        );
        if let Some(result) = call.result {
            _ = write!(text, " = {result}");
        }
        if !call.got.is_empty() {
            _ = write!(text, " {{{}}}", shown(&call.got));
        }
        if let Some(kernel) = &call.kernel {
            _ = write!(text, " <{kernel}>");
        }
        _ = writeln!(text, " {:.4} ms", ms(call.nanoseconds));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    pub const TEXT: &str = r#"
{"call":"cuModuleGetFunction","thread":7,"start":100,"ns":50,"result":0,"in":{"hfunc":"0x1","hmod":"0x9","name":"add"},"out":{"hfunc":"0xf00"}}
{"call":"cuLaunchKernel","thread":7,"start":1100,"ns":300,"result":0,"in":{"f":"0xf00"},"out":{}}
{"call":"cudaLaunchKernel","thread":7,"start":1000,"ns":500,"result":0,"in":{},"out":{}}
{"call":"cuMemAlloc_v2","thread":8,"start":1200,"ns":10,"result":2,"in":{"bytesize":"64"},"out":{}}
{"kernel":"_Z3addv","plain":"add()","start":1300,"ns":4000}
{"call":"cuHalf","thr"#;

    #[test]
    fn calls_are_nested_by_time_and_thread_and_launches_know_their_kernel() {
        let process = process(3, TEXT);
        let rows: Vec<_> =
            process.calls.iter().map(|it| (it.name.as_str(), it.depth, it.kernel.as_deref())).collect();
        assert_eq!(
            rows,
            [
                ("cuModuleGetFunction", 0, None),
                ("cudaLaunchKernel", 0, Some("add")),
                ("cuLaunchKernel", 1, Some("add")),
                ("cuMemAlloc_v2", 0, None),
            ]
        );
        assert!(process.calls[3].has_failed());
        assert_eq!(process.runs[0].name, "add()");
    }
}
