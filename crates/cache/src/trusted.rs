//! Folders and files that nobody but this user, or root, can have put there or can change.
//!
//! What lies in the cache is run, so it is a matter of trust whose it is. The rule: a folder of ours and every file in it belong to
//! the effective user or root, are no links, and are writable by nobody else. So that nobody can put another folder in its place,
//! the folders above belong to this user or root too, and what others may write is sticky, as `/tmp` is, or is the
//! user's own group's. Each step is taken from the descriptor of the one before and looked at on its own descriptor, so what was
//! looked at is what is used.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use secure::files;

/// Why a folder or a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {why}", path = path.display())]
    Untrusted { path: PathBuf, why: Why },
    #[error("{path}: {error}", path = path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl Error {
    /// Whether there is simply nothing there.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Error::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether it is there, and somebody else could have changed it.
    #[must_use]
    pub fn is_distrust(&self) -> bool {
        matches!(self, Error::Untrusted { .. })
    }
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("it belongs to user {0}")]
    Owner(u32),
    #[error("others may write there (mode {0:03o})")]
    Writable(u32),
    #[error("it is a link")]
    Link,
    #[error("it is neither a file nor a folder of ours")]
    Kind,
    #[error("it does not begin at the root")]
    Relative,
}

/// Who asks: a process may have another root than we have, and another user.
#[derive(Clone, Copy, Debug)]
pub struct Viewer<'a> {
    pub root: &'a Path,
    pub user: u32,
}

impl Viewer<'_> {
    fn own() -> Viewer<'static> {
        Viewer { root: Path::new("/"), user: rustix::process::geteuid().as_raw() }
    }
}

/// A folder that passed; everything in it is reached from its descriptor.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
    user: u32,
    /// Who may read what is made in it.
    readers: Readers,
}

/// Who may read what is made here. Only this user may ever write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    User,
    /// Everybody whom the process's mask (`umask`) does not exclude: what is made to be shipped.
    All,
}

impl Readers {
    fn folder_mode(self) -> Mode {
        match self {
            Readers::User => Mode::RWXU,
            Readers::All => {
                Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH)
            }
        }
    }

    fn file_mode(self) -> Mode {
        let own = Mode::RUSR.union(Mode::WUSR);
        match self {
            Readers::User => own,
            Readers::All => own.union(Mode::RGRP).union(Mode::ROTH),
        }
    }
}

/// Whether a step may make what is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsAnError,
    IsMade(Readers),
}

/// As the system has it.
const MOST_LINKS: usize = 40;
/// A descriptor of what is there, whatever it is, which cannot be read.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Folder {
    /// The folder at this path, which begins at the root.
    ///
    /// # Errors
    /// It is not there, or is not to be trusted.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        Folder::open_for(Viewer::own(), path)
    }

    /// As [`Folder::open`], as another process sees it.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn open_for(viewer: Viewer, path: &Path) -> Result<Folder, Error> {
        walk(viewer, path, Missing::IsAnError)
    }

    /// As [`Folder::open`]; what is missing of the path is made, for this user alone.
    ///
    /// # Errors
    /// It cannot be made, or is not to be trusted.
    pub fn create(path: &Path) -> Result<Folder, Error> {
        Folder::create_for(path, Readers::User)
    }

    /// As [`Folder::create`]; what is made here and in it, these may read.
    ///
    /// # Errors
    /// As [`Folder::create`].
    pub fn create_for(path: &Path, readers: Readers) -> Result<Folder, Error> {
        let folder = walk(Viewer::own(), path, Missing::IsMade(readers))?;
        Ok(Folder { readers, ..folder })
    }

    /// The folder of this name in it.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        self.below(name, Missing::IsAnError)
    }

    /// As [`Folder::folder`], made where there is none.
    ///
    /// # Errors
    /// As [`Folder::create`].
    pub fn create_folder(&self, name: &str) -> Result<Folder, Error> {
        self.below(name, Missing::IsMade(self.readers))
    }

    fn below(&self, name: &str, missing: Missing) -> Result<Folder, Error> {
        let path = self.path.join(name);
        let (descriptor, about) = step(&self.descriptor, name.as_ref(), missing).map_err(at(&path))?;
        judge(&about, FileType::Directory, &path, self.user)?;
        Ok(Folder { descriptor, path, user: self.user, readers: self.readers })
    }

    /// The file of this name, to be read.
    ///
    /// # Errors
    /// It is not there, or is not to be trusted.
    pub fn file(&self, name: &str) -> Result<File, Error> {
        let path = self.path.join(name);
        // Without blocking: a pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.descriptor, name, flags, Mode::empty());
        let descriptor = match opened {
            Err(Errno::LOOP) => return Err(Error::Untrusted { path, why: Why::Link }),
            opened => opened.map_err(at(&path))?,
        };
        let about = rustix::fs::fstat(&descriptor).map_err(at(&path))?;
        judge(&about, FileType::RegularFile, &path, self.user)?;
        Ok(descriptor.into())
    }

    /// A file of this name that was not there before.
    ///
    /// # Errors
    /// The system's.
    pub fn create_file(&self, name: &str) -> Result<File, Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.descriptor, name, flags, self.readers.file_mode());
        opened.map(File::from).map_err(at(&self.path.join(name)))
    }

    /// Gives a file of it another name in it, in place of what has that name.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let here = &self.descriptor;
        rustix::fs::renameat(here, from, here, to).map_err(at(&self.path.join(to)))
    }

    /// # Errors
    /// The system's.
    pub fn remove_file(&self, name: &str) -> Result<(), Error> {
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()).map_err(at(&self.path.join(name)))
    }

    /// Bytes of the file of this name and when it was changed last; `None` for what is no file of ours.
    pub fn look(&self, name: &str) -> Option<(u64, SystemTime)> {
        let about = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        judge(&about, FileType::RegularFile, &self.path, self.user).ok()?;
        let seconds = Duration::from_secs(u64::try_from(about.st_mtime).ok()?);
        let nanoseconds = Duration::from_nanos(about.st_mtime_nsec);
        Some((u64::try_from(about.st_size).ok()?, SystemTime::UNIX_EPOCH + seconds + nanoseconds))
    }

    /// The names in it, as far as they can be read.
    pub fn names(&self) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.descriptor, ".", flags, Mode::empty());
        let Ok(entries) = opened.and_then(rustix::fs::Dir::new) else { return Vec::new() };
        let name = |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok().map(str::to_owned);
        entries.flatten().filter_map(name).filter(|name| name != "." && name != "..").collect()
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn at(path: &Path) -> impl Fn(Errno) -> Error {
    |error| Error::Io { path: path.to_path_buf(), error: error.into() }
}

/// From the root down, through links that this user or root made, to a folder that is trusted.
fn walk(Viewer { root, user }: Viewer, path: &Path, missing: Missing) -> Result<Folder, Error> {
    let untrusted = |why| Error::Untrusted { path: path.to_path_buf(), why };
    if !path.is_absolute() {
        return Err(untrusted(Why::Relative));
    }
    let top = || {
        let descriptor =
            rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let about = rustix::fs::fstat(&descriptor)?;
        Ok((descriptor, about))
    };
    // What the steps so far lead to, for messages.
    let mut reached = PathBuf::from("/");
    let (mut folder, mut about) = top().map_err(at(&reached))?;
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    prepend(&mut ahead, path);
    let mut n_links = 0;
    while let Some(name) = ahead.pop_front() {
        judge_above(&about, &reached, user)?;
        let next =
            if name == ".." { reached.parent().unwrap_or(&reached).into() } else { reached.join(&name) };
        let (descriptor, found) = step(&folder, &name, missing).map_err(at(&next))?;
        if kind(&found) != FileType::Symlink {
            (folder, about, reached) = (descriptor, found, next);
            continue;
        }
        if ahead.is_empty() {
            return Err(Error::Untrusted { path: next, why: Why::Link });
        }
        if !files::is_trusted_above(found.st_uid, user) {
            return Err(Error::Untrusted { path: next, why: Why::Owner(found.st_uid) });
        }
        n_links += 1;
        if n_links > MOST_LINKS {
            return Err(at(&next)(Errno::LOOP));
        }
        let target = rustix::fs::readlinkat(&descriptor, "", Vec::new()).map_err(at(&next))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        prepend(&mut ahead, &target);
        if target.is_absolute() {
            reached = PathBuf::from("/");
            (folder, about) = top().map_err(at(&reached))?;
        }
    }
    judge(&about, FileType::Directory, &reached, user)?;
    Ok(Folder { descriptor: folder, path: path.to_path_buf(), user, readers: Readers::User })
}

/// Puts the path's steps before those that are still ahead.
fn prepend(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        if matches!(component, Component::Normal(_) | Component::ParentDir) {
            ahead.push_front(component.as_os_str().to_owned());
        }
    }
}

/// What has this name in the folder, not followed if it is a link.
fn step(folder: impl AsFd, name: &OsStr, missing: Missing) -> rustix::io::Result<(OwnedFd, Stat)> {
    let open = || rustix::fs::openat(&folder, name, LOOK, Mode::empty());
    let mut opened = open();
    if let (Missing::IsMade(readers), Err(Errno::NOENT)) = (missing, &opened) {
        match rustix::fs::mkdirat(&folder, name, readers.folder_mode()) {
            // Somebody was faster: it is looked at like any other.
            Ok(()) | Err(Errno::EXIST) => opened = open(),
            Err(error) => return Err(error),
        }
    }
    let descriptor = opened?;
    let about = rustix::fs::fstat(&descriptor)?;
    Ok((descriptor, about))
}

fn kind(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

/// Whether what was opened is this user's or root's, and nobody else's to write.
fn judge(about: &Stat, wanted: FileType, path: &Path, user: u32) -> Result<(), Error> {
    let mode = about.st_mode & 0o777;
    let why = if kind(about) == FileType::Symlink {
        Why::Link
    } else if kind(about) != wanted {
        Why::Kind
    } else if !files::is_trusted(about.st_uid, user) {
        Why::Owner(about.st_uid)
    } else if mode & 0o022 != 0 {
        Why::Writable(mode)
    } else {
        return Ok(());
    };
    Err(Error::Untrusted { path: path.to_path_buf(), why })
}

/// Whether nobody else can give what is in this folder, which leads to ours, another name.
fn judge_above(about: &Stat, path: &Path, user: u32) -> Result<(), Error> {
    let about = files::About { mode: about.st_mode, owner: about.st_uid, group: about.st_gid };
    let untrusted = |why| Error::Untrusted { path: path.to_path_buf(), why };
    about.may_lead(user).map_err(|why| match why {
        files::Why::Owner(owner) => untrusted(Why::Owner(owner)),
        files::Why::Writable(mode) => untrusted(Why::Writable(mode)),
        files::Why::Kind => untrusted(Why::Kind),
        files::Why::System(number) => {
            Error::Io { path: path.to_path_buf(), error: io::Error::from_raw_os_error(number) }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(error: Error) -> (PathBuf, Why) {
        match error {
            Error::Untrusted { path, why } => (path, why),
            Error::Io { .. } => panic!("{error}"),
        }
    }

    #[test]
    fn what_is_made_is_for_this_user_alone() {
        let there = tempfile::tempdir().unwrap();
        let path = there.path().join("a/b");
        let folder = Folder::create(&path).unwrap().create_folder("c").unwrap();
        drop(folder.create_file("f").unwrap());
        for (name, mode) in [("a", 0o700), ("a/b", 0o700), ("a/b/c", 0o700), ("a/b/c/f", 0o600)] {
            assert_eq!(there.path().join(name).metadata().unwrap().mode() & 0o7777, mode, "{name}");
        }
        assert!(Folder::open(&there.path().join("x")).unwrap_err().is_absence());
    }

    #[test]
    fn what_is_made_to_be_shipped_others_may_read_and_nobody_else_may_write() {
        let there = tempfile::tempdir().unwrap();
        let folder = Folder::create_for(&there.path().join("a/b"), Readers::All).unwrap();
        drop(folder.create_folder("c").unwrap().create_file("f").unwrap());
        for (name, mode) in [("a", 0o755), ("a/b", 0o755), ("a/b/c", 0o755), ("a/b/c/f", 0o644)] {
            let made = there.path().join(name).metadata().unwrap().mode() & 0o7777;
            assert!(made & !mode == 0 && made & 0o022 == 0, "{name}: {made:o}");
        }
        assert!(Folder::open(folder.path()).is_ok());
    }

    #[test]
    fn a_folder_that_others_may_write_is_not_used() {
        let there = tempfile::tempdir().unwrap();
        for mode in [0o722, 0o702, 0o777, 0o1777] {
            let path = there.path().join(format!("{mode:o}"));
            fs::create_dir(&path).unwrap();
            chmod(&path, mode);
            for found in [Folder::open(&path), Folder::create(&path)] {
                assert_eq!(why(found.unwrap_err()), (path.clone(), Why::Writable(mode & 0o777)));
            }
        }
    }

    #[test]
    fn a_folder_in_one_that_anybody_may_write_is_used_only_if_that_is_sticky() {
        let there = tempfile::tempdir().unwrap();
        let above = there.path().join("above");
        let path = above.join("ours");
        drop(Folder::create(&path).unwrap());
        chmod(&above, 0o777);
        assert_eq!(why(Folder::open(&path).unwrap_err()), (above.clone(), Why::Writable(0o777)));
        chmod(&above, 0o1777);
        assert!(Folder::open(&path).is_ok());
    }

    #[test]
    fn a_link_is_no_folder_of_ours_and_no_file() {
        let there = tempfile::tempdir().unwrap();
        let (real, link) = (there.path().join("real"), there.path().join("link"));
        let folder = Folder::create(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert_eq!(why(Folder::open(&link).unwrap_err()), (link.clone(), Why::Link));
        drop(folder.create_file("f").unwrap());
        symlink("f", real.join("g")).unwrap();
        symlink("/usr", real.join("sub")).unwrap();
        assert!(folder.file("f").is_ok());
        assert_eq!(why(folder.file("g").unwrap_err()).1, Why::Link);
        assert_eq!(why(folder.create_folder("sub").unwrap_err()).1, Why::Link);
        // On the way it may be one.
        assert_eq!(Folder::create(&link.join("deeper")).unwrap().path(), link.join("deeper"));
        assert!(real.join("deeper").is_dir());
    }

    #[test]
    fn links_on_the_way_are_followed_as_the_system_does() {
        let there = tempfile::tempdir().unwrap();
        fs::create_dir_all(there.path().join("a/b")).unwrap();
        symlink("../c", there.path().join("a/up")).unwrap();
        symlink("loop", there.path().join("loop")).unwrap();
        fs::create_dir(there.path().join("c")).unwrap();
        Folder::create(&there.path().join("a/b/../up/ours")).unwrap();
        assert!(there.path().join("c/ours").is_dir());
        assert!(!Folder::open(&there.path().join("loop/x")).unwrap_err().is_distrust());
        assert_eq!(why(Folder::open(Path::new("a")).unwrap_err()).1, Why::Relative);
    }

    #[test]
    fn a_file_that_others_may_write_or_that_is_a_pipe_is_not_read() {
        let there = tempfile::tempdir().unwrap();
        let folder = Folder::create(&there.path().join("ours")).unwrap();
        let path = folder.path().join("f");
        drop(folder.create_file("f").unwrap());
        chmod(&path, 0o622);
        assert_eq!(why(folder.file("f").unwrap_err()), (path, Why::Writable(0o622)));
        rustix::fs::mkfifoat(&folder.descriptor, "p", Readers::User.file_mode()).unwrap();
        assert_eq!(why(folder.file("p").unwrap_err()).1, Why::Kind);
    }

    #[test]
    fn a_new_file_is_new_and_takes_the_place_of_an_old_one_by_its_name() {
        let there = tempfile::tempdir().unwrap();
        let folder = Folder::create(&there.path().join("ours")).unwrap();
        fs::write(folder.path().join("g"), "old").unwrap();
        drop(folder.create_file("f").unwrap());
        assert!(folder.create_file("f").is_err());
        folder.rename("f", "g").unwrap();
        assert_eq!(folder.names(), ["g"]);
        assert_eq!(folder.look("g").unwrap().0, 0);
    }
}
