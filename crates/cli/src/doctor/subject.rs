//! Whom the checks are about: a process that runs, or whoever started doctor.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cache::trusted::Viewer;
use config::Config;

/// Its environment, its user, and the files as it sees them.
#[derive(Debug)]
pub struct Subject {
    pub pid: Option<u32>,
    /// Started with more rights than its user has: the loader and our libraries believe its environment no more.
    pub is_secure: bool,
    root: PathBuf,
    environment: Vec<(String, String)>,
    user: User,
}

/// `elf.h`: the entry of the auxiliary vector that says "secure mode".
const AT_SECURE: u64 = 23;

impl Subject {
    pub fn of(pid: Option<u32>) -> Subject {
        let proc =
            pid.map_or_else(|| PathBuf::from("/proc/self"), |pid| PathBuf::from(format!("/proc/{pid}")));
        let environment = match pid {
            Some(_) => read_environment(&std::fs::read(proc.join("environ")).unwrap_or_default()),
            None => std::env::vars_os()
                .map(|(name, value)| (name.to_string_lossy().into(), value.to_string_lossy().into()))
                .collect(),
        };
        let status = std::fs::read_to_string(proc.join("status")).unwrap_or_default();
        let root = pid.map_or_else(|| PathBuf::from("/"), |_| proc.join("root"));
        let auxiliary_vector = std::fs::read(proc.join("auxv")).unwrap_or_default();
        let is_secure = auxiliary(&auxiliary_vector, AT_SECURE) == Some(1);
        Subject { pid, is_secure, root, environment, user: User::read(&status) }
    }

    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    pub fn variable(&self, wanted: &str) -> Option<&str> {
        self.environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    pub fn config(&self) -> Config {
        Config::read(self.user.id, |name| self.believed(name).map(str::to_owned))
    }

    /// A variable as our libraries read it in that process.
    pub fn believed(&self, wanted: &str) -> Option<&str> {
        self.variable(wanted).filter(|_| !self.is_secure)
    }

    /// As it sees the machine's files.
    pub fn viewer(&self) -> Viewer<'_> {
        Viewer { root: &self.root, user: self.user.id }
    }

    /// Where a file of the process's is for us: its root may be another one (a container, a unit's own /dev).
    pub fn path(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether its user may read and write the file; `Err` when there is none.
    pub fn may_write(&self, path: &Path) -> std::io::Result<bool> {
        let file = self.path(path).metadata()?;
        Ok(self.user.may_write(file.permissions().mode(), file.uid(), file.gid()))
    }

    /// Whether its system is mounted such that nobody may write there.
    pub fn is_read_only(&self, path: &Path) -> bool {
        let Ok(path) = CString::new(self.path(path).as_os_str().as_bytes()) else { return false };
        let mut answer = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: a C string, and room for the answer.
        if unsafe { libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call succeeded and wrote it.
        unsafe { answer.assume_init() }.f_flag & libc::ST_RDONLY != 0
    }

    /// Whether it is of another user than we are, so that what we may do says nothing of it.
    pub fn is_another_user(&self) -> bool {
        // SAFETY: it only returns a number.
        self.pid.is_some() && self.user.id != unsafe { libc::geteuid() }
    }
}

/// Pairs of words: key, value.
fn auxiliary(bytes: &[u8], key: u64) -> Option<u64> {
    let word = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_ne_bytes);
    bytes.chunks_exact(16).find(|pair| word(&pair[..8]) == Some(key)).and_then(|pair| word(&pair[8..]))
}

pub fn read_environment(bytes: &[u8]) -> Vec<(String, String)> {
    let entries = bytes.split(|&byte| byte == 0).filter_map(|entry| {
        let text = String::from_utf8_lossy(entry);
        text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
    });
    entries.collect()
}

/// Who a process is, for rights.
#[derive(Debug, PartialEq, Eq)]
struct User {
    id: u32,
    groups: Vec<u32>,
}

impl User {
    /// `Uid:` real effective saved file; `Gid:` likewise; `Groups:` the others.
    fn read(status: &str) -> User {
        let numbers = |key: &str| -> Vec<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let mut groups = numbers("Groups:");
        groups.extend(numbers("Gid:").get(1));
        User { id: numbers("Uid:").get(1).copied().unwrap_or(u32::MAX), groups }
    }

    fn may_write(&self, mode: u32, owner: u32, group: u32) -> bool {
        let bits = if self.id == 0 {
            return true;
        } else if self.id == owner {
            mode >> 6
        } else if self.groups.contains(&group) {
            mode >> 3
        } else {
            mode
        };
        bits & 0o6 == 0o6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_may_what_its_groups_may() {
        let user = User::read(
            "Name:\tollama\nUid:\t998\t998\t998\t998\nGid:\t998\t998\t998\t998\nGroups:\t44 998\n",
        );
        assert_eq!(user.id, 998);
        // crw-rw---- root render
        assert!(!user.may_write(0o660, 0, 109));
        assert!(user.may_write(0o660, 0, 44));
        assert!(user.may_write(0o666, 0, 109));
        assert!(User { id: 0, groups: Vec::new() }.may_write(0o600, 5, 5));
    }

    #[test]
    fn the_environment_of_a_program_with_more_rights_than_its_user_is_not_believed() {
        let bytes: Vec<u8> = [6u64, 4096, 23, 1, 0, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(auxiliary(&bytes, AT_SECURE), Some(1));
        let mut subject = Subject::of(None);
        subject.environment = vec![("CUDAWAY_CACHE_DIR".into(), "/c".into())];
        assert_eq!(subject.config().cache_dir, Some("/c".into()));
        subject.is_secure = true;
        assert_eq!(subject.config().cache_dir, None);
        assert_eq!(subject.believed("CUDAWAY_CACHE_DIR"), None);
    }

    #[test]
    fn a_process_has_its_own_environment_and_root() {
        let own = Subject::of(Some(std::process::id()));
        let here = Subject::of(None);
        assert_eq!(own.variable("PATH"), here.variable("PATH"));
        assert!(
            own.path(Path::new("/etc/passwd")).starts_with("/proc")
                && own.path(Path::new("/etc/passwd")).exists()
        );
        assert!(!own.is_another_user());
        assert_eq!(
            read_environment(b"A=1=2\0B=\0junk\0"),
            [("A".into(), "1=2".into()), ("B".into(), String::new())]
        );
    }
}
