//! A process that runs already and would take our objects in its stead, as `cudaway.activate()` of our Python package does: what it has
//! loaded stays, and a CUDA runtime inside of that is in use by now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::preflight::Finding;
use crate::own;

/// What the process has loaded and would keep past us; ours in `lib` are no runtimes of others.
pub fn check(pid: u32, lib: &Path) -> Result<Option<Finding>> {
    let maps = format!("/proc/{pid}/maps");
    let maps = std::fs::read_to_string(&maps).with_context(|| maps.clone())?;
    let own = own::files(lib);
    let others = files(&maps).into_iter().filter(|path| !path.starts_with(&own));
    let has_runtime = |path: &PathBuf| std::fs::read(path).is_ok_and(|bytes| interpose::has_runtime(&bytes));
    let found: Vec<String> = others.filter(has_runtime).map(|path| path.display().to_string()).collect();
    let finding = || {
        let files = found.join(", ");
        Finding::Unreached(format!("a CUDA runtime is in this process already, inside of {files}, and stays"))
    };
    Ok((!found.is_empty()).then(finding))
}

/// The files whose code is mapped, each once.
fn files(maps: &str) -> BTreeSet<PathBuf> {
    // address perms offset device inode path
    let file = |line: &str| {
        let path = &line[line.find('/')?..];
        let is_code = line.split_whitespace().nth(1)?.contains('x');
        (is_code && !path.ends_with(" (deleted)")).then(|| path.into())
    };
    maps.lines().filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0-55d1 r--p 00000000 fe:01 1 /usr/bin/python3.11
55d1-55d2 r-xp 00001000 fe:01 1 /usr/bin/python3.11
7f00-7f01 r-xp 00000000 fe:01 2 /opt/a b/libx.so
7f01-7f02 r--p 00000000 fe:01 3 /opt/data.bin
7f02-7f03 r-xp 00000000 fe:01 4 /opt/gone.so (deleted)
7f03-7f04 rw-p 00000000 00:00 0 [heap]
7f04-7f05 r-xp 00000000 00:00 0 [vdso]
";

    #[test]
    fn files_with_code_are_looked_at() {
        let found: Vec<PathBuf> = files(MAPS).into_iter().collect();
        assert_eq!(found, [Path::new("/opt/a b/libx.so"), Path::new("/usr/bin/python3.11")]);
    }

    #[test]
    fn this_process_has_no_runtime_of_cudas_inside() {
        assert_eq!(check(std::process::id(), Path::new("/no/such/folder")).unwrap(), None);
    }
}
