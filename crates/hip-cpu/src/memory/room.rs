//! Whether memory that is asked for is there. Linux hands out more than it has and ends a process when that comes out; a
//! device says that its memory is used up.

use std::fs;
use std::path::{Path, PathBuf};

use super::kept;

/// Bytes from which on a request is looked into, and in which many small ones are.
const LARGE: usize = 64 << 20;

/// Whether `bytes` more are there, where `promised` have been handed out before, used or not. Small requests are let through.
pub fn is_there(bytes: usize, promised: usize) -> bool {
    let is_step = promised / LARGE != promised.saturating_add(bytes) / LARGE;
    let Some(left) = is_step.then(|| left(promised)).flatten() else { return true };
    if kept::bytes() > left.saturating_sub(bytes) {
        kept::empty();
    }
    bytes <= left
}

/// What is there besides the `promised`; `None` where somebody has said what the device has, or the system does not tell.
pub fn left(promised: usize) -> Option<usize> {
    if config::get().cpu_memory_bytes.is_some() {
        return None;
    }
    // What was handed out and is not yet written to is still counted as available. What is kept was written to, and comes back.
    let kept = kept::bytes();
    let written = resident().map_or(promised, |resident| resident.saturating_sub(kept));
    Some((available()? + kept).saturating_sub(promised.saturating_sub(written)))
}

/// The machine's memory, or the limit of a control group that this process is in, if that is less.
pub fn total() -> usize {
    let machine = kib("/proc/meminfo", "MemTotal:").unwrap_or(1 << 30);
    groups().iter().filter_map(|group| group.limit()).fold(machine, usize::min)
}

/// What may still be used: of the machine, and of each control group.
fn available() -> Option<usize> {
    let machine = kib("/proc/meminfo", "MemAvailable:")?;
    Some(groups().iter().filter_map(Group::left).fold(machine, usize::min))
}

/// What this process has written to, of memory that is no file's.
fn resident() -> Option<usize> {
    Some(kib("/proc/self/status", "RssAnon:")? + kib("/proc/self/status", "RssShmem:")?)
}

/// Bytes of a line `name 123 kB`.
fn kib(path: &str, name: &str) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// A control group's folder, of version 2 or 1.
struct Group {
    folder: PathBuf,
    names: &'static Names,
}

struct Names {
    root: &'static str,
    limit: &'static str,
    used: &'static str,
    /// Of `memory.stat`: pages of files that nobody misses.
    reclaimable: &'static str,
}

const SECOND: Names = Names {
    root: "/sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    reclaimable: "inactive_file ",
};
const FIRST: Names = Names {
    root: "/sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file ",
};

/// This process's groups and all around them: each has a limit of its own.
fn groups() -> Vec<Group> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups_of(&own)
}

/// By the text of `/proc/self/cgroup`, lines `id:controllers:path`.
fn groups_of(own: &str) -> Vec<Group> {
    let mut groups = vec![];
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let names = match controllers {
            "" => &SECOND,
            them if them.split(',').any(|it| it == "memory") => &FIRST,
            _ => continue,
        };
        for part in Path::new(path).ancestors() {
            let folder = Path::new(names.root).join(part.strip_prefix("/").unwrap_or(part));
            groups.push(Group { folder, names });
        }
    }
    groups
}

impl Group {
    fn number(&self, name: &str) -> Option<usize> {
        fs::read_to_string(self.folder.join(name)).ok()?.trim().parse().ok()
    }

    /// `None` without one: `max` is no number.
    fn limit(&self) -> Option<usize> {
        self.number(self.names.limit)
    }

    fn left(&self) -> Option<usize> {
        let limit = self.limit()?;
        let used = self.number(self.names.used)?;
        let stat = fs::read_to_string(self.folder.join("memory.stat")).unwrap_or_default();
        let reclaimable =
            stat.lines().find_map(|line| line.strip_prefix(self.names.reclaimable)?.trim().parse().ok());
        Some(limit.saturating_sub(used.saturating_sub(reclaimable.unwrap_or(0))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_with_all_around_them() {
        let folders = |text: &str| -> Vec<String> {
            groups_of(text).iter().map(|group| group.folder.display().to_string()).collect()
        };
        assert_eq!(
            folders("0::/user.slice/a b:c\n"),
            ["/sys/fs/cgroup/user.slice/a b:c", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup/"]
        );
        assert_eq!(
            folders("5:cpu,memory:/x\n4:pids:/x\n"),
            ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory/"]
        );
        assert_eq!(folders("no line\n"), [""; 0]);
    }

    #[test]
    fn a_groups_limit_counts_what_files_give_back() {
        let folder = std::env::temp_dir().join(format!("cudaway-group-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        let group = Group { folder: folder.clone(), names: &SECOND };
        write("memory.max", "max\n");
        let without = (group.limit(), group.left());
        write("memory.max", "1000\n");
        write("memory.current", "900\n");
        write("memory.stat", "anon 1\ninactive_file 300\n");
        let with = (group.limit(), group.left());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((without, with), ((None, None), (Some(1000), Some(400))));
    }

    #[test]
    fn what_the_machine_cannot_have_is_not_there() {
        assert!(available().unwrap() <= total());
        assert!(is_there(1 << 20, 0) && is_there(LARGE, 0));
        assert!(!is_there(total(), 0), "this test itself takes some");
        assert!(!is_there(LARGE, total() + resident().unwrap()), "all of it was handed out before");
    }
}
