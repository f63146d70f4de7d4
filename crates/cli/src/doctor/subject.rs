//! Whom the checks are about: a process that runs, or whoever started doctor.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use config::Config;

/// Its environment, its user, and the files as it sees them.
#[derive(Debug)]
pub struct Subject {
    pub pid: Option<u32>,
    environment: Vec<(String, String)>,
    user: User,
}

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
        Subject { pid, environment, user: User::read(&status) }
    }

    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    pub fn variable(&self, wanted: &str) -> Option<&str> {
        self.environment.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    pub fn config(&self) -> Config {
        Config::read(|name| self.variable(name).map(str::to_owned))
    }

    /// Where a file of the process's is for us: its root may be another one (a container, a unit's own /dev).
    pub fn path(&self, path: &Path) -> PathBuf {
        match self.pid {
            Some(pid) => {
                PathBuf::from(format!("/proc/{pid}/root")).join(path.strip_prefix("/").unwrap_or(path))
            }
            None => path.to_path_buf(),
        }
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
