//! Processes that use a device.

use std::path::Path;

use super::file;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process {
    pub pid: u32,
    /// Bytes of the device's memory; `None` where the system does not say.
    pub memory_bytes: Option<u64>,
}

/// Processes with a context on the CPU device. They have its mark among their mappings (crates/hip-cpu, `presence`), which
/// their own user and root may see, and mostly threads named `cudaway-…`, which everybody may. A process that only asks NVML
/// has neither. The device's memory is the machine's, so what a process holds of it is what is resident.
pub fn of_cpu_device(root: &Path) -> Vec<Process> {
    let mut found: Vec<Process> = file::entries(root.join("proc"))
        .iter()
        .filter_map(|process| {
            let pid: u32 = file::name(process).parse().ok()?;
            let threads = file::entries(process.join("task"));
            let uses = threads.iter().any(|thread| is_of_the_device(thread, pid)) || is_marked(process);
            uses.then(|| Process { pid, memory_bytes: resident_bytes(process) })
        })
        .collect();
    found.sort_unstable();
    found
}

fn is_of_the_device(thread: &Path, pid: u32) -> bool {
    // A process's first thread is the program's own (`cudaway-comgr` is one).
    file::name(thread) != pid.to_string()
        && file::text(thread.join("comm")).is_some_and(|name| name.starts_with("cudaway-"))
}

fn is_marked(process: &Path) -> bool {
    file::text(process.join("maps")).is_some_and(|maps| maps.contains(" /memfd:cudaway-device"))
}

fn resident_bytes(process: &Path) -> Option<u64> {
    let status = file::text(process.join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Processes with queues on the GPU that KFD calls `gpu_id`, and what they hold of its memory.
pub fn of_kfd(root: &Path, gpu_id: u32) -> Vec<Process> {
    let mut found: Vec<Process> = file::entries(root.join("sys/class/kfd/kfd/proc"))
        .iter()
        .filter_map(|process| {
            let pid = file::name(process).parse().ok()?;
            let memory_bytes = file::number(process.join(format!("vram_{gpu_id}")))?;
            Some(Process { pid, memory_bytes: Some(memory_bytes) })
        })
        .collect();
    found.sort_unstable();
    found
}
