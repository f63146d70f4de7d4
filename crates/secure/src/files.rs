//! Whose files may run in this process: the rule, for the cache and for what variables name (docs/security.md).
//!
//! A file belongs to this user or to root and nobody else may write to it; so that nobody can put another in its place, the same
//! holds for every folder on the way to it and every link that is followed, except that anybody may write to a folder that
//! is sticky, as `/tmp` is. So a path that passed leads to the same file until its user or root changes that, and the
//! loader may be given the path. No allocation: the libraries' shells have none.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::mem::MaybeUninit;

/// What is wrong with a file, or with a step of the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It belongs to this user.
    Owner(u32),
    /// Others may write to it: its permissions.
    Writable(u32),
    /// A file where a folder is needed, or what is no file.
    Kind,
    /// The system's error number.
    System(c_int),
}

impl Why {
    /// Whether it is there, and somebody else could have changed it.
    #[must_use]
    pub fn is_distrust(self) -> bool {
        matches!(self, Why::Owner(_) | Why::Writable(_))
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Owner(user) => write!(f, "it belongs to user {user}"),
            Why::Writable(mode) => write!(f, "others may write there (mode {mode:03o})"),
            Why::Kind => f.write_str("it is neither a file nor a folder on the way to one"),
            Why::System(number) => {
                let mut text = [0 as c_char; 256];
                // SAFETY: room of the length said, which it ends with a zero.
                let text = unsafe {
                    libc::strerror_r(*number, text.as_mut_ptr(), text.len());
                    CStr::from_ptr(text.as_ptr())
                };
                f.write_str(text.to_str().unwrap_or("an error of the system"))
            }
        }
    }
}

/// What the system says of a file or a folder.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// With the kind of file, as `st_mode` has it.
    pub mode: u32,
    pub owner: u32,
    pub group: u32,
}

impl About {
    fn is(self, kind: u32) -> bool {
        self.mode & libc::S_IFMT == kind
    }

    /// Its permissions, where others than this user may write to it.
    fn writable(self, user: u32) -> Option<u32> {
        // The group of the user's own number is the user alone: what makes such groups is what lets them write (pam_umask).
        let by_group = self.mode & 0o020 != 0 && self.group != user;
        (self.mode & 0o002 != 0 || by_group).then_some(self.mode & 0o777)
    }

    /// Whether nobody else can give what is in this folder another name.
    ///
    /// # Errors
    /// Why somebody could.
    pub fn may_lead(self, user: u32) -> Result<(), Why> {
        if !self.is(libc::S_IFDIR) {
            return Err(Why::Kind);
        }
        if !is_trusted_above(self.owner, user) {
            return Err(Why::Owner(self.owner));
        }
        match self.writable(user) {
            Some(mode) if self.mode & libc::S_ISVTX == 0 => Err(Why::Writable(mode)),
            _ => Ok(()),
        }
    }

    fn may_run(self, user: u32) -> Result<(), Why> {
        if !self.is(libc::S_IFREG) {
            return Err(Why::Kind);
        }
        if !is_trusted(self.owner, user) {
            return Err(Why::Owner(self.owner));
        }
        self.writable(user).map_or(Ok(()), |mode| Err(Why::Writable(mode)))
    }
}

#[must_use]
pub fn is_trusted(owner: u32, user: u32) -> bool {
    owner == 0 || owner == user
}

/// As [`is_trusted`], of what leads to a file or a folder of ours: in a user namespace (a rootless container) the system's own
/// folders may belong to a user whom the namespace does not know.
#[must_use]
pub fn is_trusted_above(owner: u32, user: u32) -> bool {
    is_trusted(owner, user) || is_unknown_here(owner)
}

/// As many bytes as a path may have, with its zero.
const PATH_BYTES: usize = 4096;
/// As many bytes as a file's name may have.
const NAME_BYTES: usize = 255;
/// As the system has it.
const MOST_LINKS: u32 = 40;
/// The kernel takes at most 340 lines for a namespace, of 33 bytes.
const MAP_BYTES: usize = 12 << 10;

/// What the steps so far lead to.
pub struct Reached {
    text: [u8; PATH_BYTES],
    n_bytes: usize,
}

impl Reached {
    #[expect(clippy::new_without_default, reason = "room for an answer, which has no default")]
    #[must_use]
    pub const fn new() -> Reached {
        Reached { text: [0; PATH_BYTES], n_bytes: 0 }
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        if self.n_bytes == 0 { b"/" } else { &self.text[..self.n_bytes] }
    }

    fn step(&mut self, name: &[u8]) -> Result<(), Why> {
        if name == b".." {
            self.n_bytes = self.text[..self.n_bytes].iter().rposition(|&byte| byte == b'/').unwrap_or(0);
            return Ok(());
        }
        let room = self.text.get_mut(self.n_bytes..self.n_bytes + 1 + name.len());
        let room = room.ok_or(Why::System(libc::ENAMETOOLONG))?;
        room[0] = b'/';
        room[1..].copy_from_slice(name);
        self.n_bytes += 1 + name.len();
        Ok(())
    }
}

/// Whether the file that this path leads to, from the working directory where it does not begin at the root, may run in this
/// process; where it may not, `reached` is the step that is at fault.
///
/// # Errors
/// What is wrong with that step.
pub fn may_run(path: &CStr, reached: &mut Reached) -> Result<(), Why> {
    let mut steps = Steps { folder: None, next: None };
    let answer = walk(path, crate::effective_user(), reached, &mut steps);
    close(&mut steps.folder);
    close(&mut steps.next);
    answer
}

/// The folder that was reached, and what was found in it. (Nothing here is dropped: a shell cannot unwind, nor link what would.)
struct Steps {
    folder: Option<Descriptor>,
    next: Option<Descriptor>,
}

fn walk(path: &CStr, user: u32, reached: &mut Reached, steps: &mut Steps) -> Result<(), Why> {
    let mut ahead = Ahead::new();
    ahead.prepend(path.to_bytes())?;
    if !path.to_bytes().starts_with(b"/") {
        let mut here = [0 as c_char; PATH_BYTES];
        // SAFETY: room of the length said.
        if unsafe { libc::getcwd(here.as_mut_ptr(), here.len()) }.is_null() {
            return Err(last_error());
        }
        // SAFETY: it ends with a zero.
        ahead.prepend(unsafe { CStr::from_ptr(here.as_ptr()) }.to_bytes())?;
    }
    let mut folder = *steps.folder.insert(Descriptor::root()?);
    let mut about = folder.about()?;
    let mut n_links = 0;
    let mut room = [0; NAME_BYTES + 1];
    while let Some(name) = ahead.next(&mut room)? {
        about.may_lead(user)?;
        let above = reached.n_bytes;
        reached.step(name.to_bytes())?;
        close(&mut steps.next);
        let next = *steps.next.insert(folder.step(name)?);
        let found = next.about()?;
        if !found.is(libc::S_IFLNK) {
            core::mem::swap(&mut steps.folder, &mut steps.next);
            (folder, about) = (next, found);
            continue;
        }
        if !is_trusted_above(found.owner, user) {
            return Err(Why::Owner(found.owner));
        }
        n_links += 1;
        if n_links > MOST_LINKS {
            return Err(Why::System(libc::ELOOP));
        }
        let mut target = [0; PATH_BYTES];
        let target = next.link(&mut target)?;
        ahead.prepend(target)?;
        reached.n_bytes = above;
        if target.starts_with(b"/") {
            reached.n_bytes = 0;
            close(&mut steps.folder);
            folder = *steps.folder.insert(Descriptor::root()?);
            about = folder.about()?;
        }
    }
    about.may_run(user)
}

/// The names that are still to be walked, at the end of the room.
struct Ahead {
    text: [u8; 2 * PATH_BYTES],
    start: usize,
}

impl Ahead {
    fn new() -> Ahead {
        Ahead { text: [0; 2 * PATH_BYTES], start: 2 * PATH_BYTES }
    }

    fn prepend(&mut self, path: &[u8]) -> Result<(), Why> {
        let start = self.start.checked_sub(path.len() + 1).ok_or(Why::System(libc::ENAMETOOLONG))?;
        self.text[start..start + path.len()].copy_from_slice(path);
        self.text[start + path.len()] = b'/';
        self.start = start;
        Ok(())
    }

    fn next<'r>(&mut self, room: &'r mut [u8; NAME_BYTES + 1]) -> Result<Option<&'r CStr>, Why> {
        loop {
            let ahead = &self.text[self.start..];
            let Some(first) = ahead.iter().position(|&byte| byte != b'/') else { return Ok(None) };
            let ahead = &ahead[first..];
            let n_bytes = ahead.iter().position(|&byte| byte == b'/').unwrap_or(ahead.len());
            let name = &ahead[..n_bytes];
            self.start += first + n_bytes;
            if name == b"." {
                continue;
            }
            if name.len() > NAME_BYTES {
                return Err(Why::System(libc::ENAMETOOLONG));
            }
            room[..n_bytes].copy_from_slice(name);
            room[n_bytes] = 0;
            return Ok(CStr::from_bytes_until_nul(room).ok());
        }
    }
}

/// Of what is there, whatever it is; it cannot be read.
#[derive(Clone, Copy)]
struct Descriptor(c_int);

impl Descriptor {
    fn root() -> Result<Descriptor, Why> {
        // SAFETY: a C string.
        Descriptor::checked(unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC) })
    }

    fn step(&self, name: &CStr) -> Result<Descriptor, Why> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: an open descriptor and a C string.
        Descriptor::checked(unsafe { libc::openat(self.0, name.as_ptr(), flags) })
    }

    fn checked(descriptor: c_int) -> Result<Descriptor, Why> {
        if descriptor < 0 { Err(last_error()) } else { Ok(Descriptor(descriptor)) }
    }

    fn about(&self) -> Result<About, Why> {
        let mut about = MaybeUninit::<libc::stat>::zeroed();
        // SAFETY: an open descriptor, and room that it fills where it answers 0.
        unsafe {
            if libc::fstat(self.0, about.as_mut_ptr()) != 0 {
                return Err(last_error());
            }
            let about = about.assume_init();
            Ok(About { mode: about.st_mode, owner: about.st_uid, group: about.st_gid })
        }
    }

    fn link<'r>(&self, room: &'r mut [u8; PATH_BYTES]) -> Result<&'r [u8], Why> {
        // SAFETY: an open descriptor, an empty name, which is the descriptor's own file, and room of the length said.
        let n_bytes = unsafe { libc::readlinkat(self.0, c"".as_ptr(), room.as_mut_ptr().cast(), room.len()) };
        let n_bytes = usize::try_from(n_bytes).map_err(|_| last_error())?;
        // It may have been cut off.
        room.get(..n_bytes).filter(|it| it.len() < PATH_BYTES).ok_or(Why::System(libc::ENAMETOOLONG))
    }
}

fn close(descriptor: &mut Option<Descriptor>) {
    if let Some(Descriptor(number)) = descriptor.take() {
        // SAFETY: it is ours and open.
        unsafe { libc::close(number) };
    }
}

fn last_error() -> Why {
    // SAFETY: errno's address is the thread's own and always valid.
    Why::System(unsafe { *libc::__errno_location() })
}

/// Whether this process's user namespace has no such user: the system shows all those as one number.
fn is_unknown_here(owner: u32) -> bool {
    let mut room = [0; MAP_BYTES];
    let overflow = read(c"/proc/sys/kernel/overflowuid", &mut room);
    if overflow.and_then(|text| numbers(text).next()) != Some(owner) {
        return false;
    }
    // Lines of: first number here, first number outside, how many.
    let Some(map) = read(c"/proc/self/uid_map", &mut room) else { return false };
    !map.split(|&byte| byte == b'\n').any(|line| {
        let mut line = numbers(line);
        let (first, _, n) = (line.next(), line.next(), line.next());
        first.zip(n).is_some_and(|(first, n)| owner.wrapping_sub(first) < n)
    })
}

fn numbers(text: &[u8]) -> impl Iterator<Item = u32> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.filter_map(|word| core::str::from_utf8(word).ok()?.parse().ok())
}

fn read<'r>(path: &CStr, room: &'r mut [u8; MAP_BYTES]) -> Option<&'r [u8]> {
    // SAFETY: a C string.
    let file =
        Descriptor::checked(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) }).ok()?;
    let mut n_bytes = 0;
    while let Some(rest) = room.get_mut(n_bytes..) {
        // SAFETY: an open descriptor and room of the length said.
        let n = unsafe { libc::read(file.0, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(n) {
            Ok(1..) => n_bytes += n.unsigned_abs(),
            _ => break,
        }
    }
    close(&mut Some(file));
    room.get(..n_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};

    use super::*;

    struct Bench(tempfile::TempDir);

    impl Bench {
        fn new() -> Bench {
            let bench = Bench(tempfile::tempdir().unwrap());
            fs::create_dir(bench.path("lib")).unwrap();
            fs::write(bench.path("lib/x.so"), "").unwrap();
            bench.chmod("lib", 0o755);
            bench.chmod("lib/x.so", 0o644);
            bench
        }

        fn path(&self, name: &str) -> PathBuf {
            // The folder for temporary files may be reached by a link, which is none of the test's.
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn chmod(&self, name: &str, mode: u32) {
            fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn ask(&self, name: &str) -> Result<(), (Why, PathBuf)> {
            ask(&self.path(name))
        }
    }

    fn ask(path: &Path) -> Result<(), (Why, PathBuf)> {
        let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        let mut reached = Reached::new();
        may_run(&path, &mut reached)
            .map_err(|why| (why, PathBuf::from(std::ffi::OsStr::from_bytes(reached.bytes()))))
    }

    #[test]
    fn a_file_that_others_may_write_does_not_run() {
        let bench = Bench::new();
        assert_eq!(bench.ask("lib/x.so"), Ok(()));
        for mode in [0o646, 0o666, 0o642] {
            bench.chmod("lib/x.so", mode);
            assert_eq!(bench.ask("lib/x.so"), Err((Why::Writable(mode), bench.path("lib/x.so"))));
        }
    }

    #[test]
    fn a_folder_that_others_may_write_leads_to_it_only_if_it_is_sticky() {
        let bench = Bench::new();
        bench.chmod("lib", 0o777);
        assert_eq!(bench.ask("lib/x.so"), Err((Why::Writable(0o777), bench.path("lib"))));
        bench.chmod("lib", 0o1777);
        assert_eq!(bench.ask("lib/x.so"), Ok(()));
    }

    #[test]
    fn a_link_is_followed_to_what_it_leads_to_and_that_is_looked_at() {
        let bench = Bench::new();
        symlink("lib/x.so", bench.path("relative")).unwrap();
        symlink(bench.path("lib"), bench.path("absolute")).unwrap();
        symlink("loop", bench.path("loop")).unwrap();
        for name in ["relative", "absolute/x.so", "absolute/../lib/./x.so", "lib//x.so"] {
            assert_eq!(bench.ask(name), Ok(()), "{name}");
        }
        assert_eq!(bench.ask("loop"), Err((Why::System(libc::ELOOP), bench.path("loop"))));
        bench.chmod("lib/x.so", 0o666);
        for name in ["relative", "absolute/x.so"] {
            assert_eq!(bench.ask(name), Err((Why::Writable(0o666), bench.path("lib/x.so"))), "{name}");
        }
        bench.chmod("lib/x.so", 0o644);
        bench.chmod("lib", 0o757);
        assert_eq!(bench.ask("relative"), Err((Why::Writable(0o757), bench.path("lib"))));
    }

    #[test]
    fn what_is_not_there_or_is_no_file_does_not_run() {
        let bench = Bench::new();
        assert_eq!(bench.ask("lib/y.so"), Err((Why::System(libc::ENOENT), bench.path("lib/y.so"))));
        assert_eq!(bench.ask("lib"), Err((Why::Kind, bench.path("lib"))));
        assert_eq!(bench.ask("lib/x.so/y"), Err((Why::Kind, bench.path("lib/x.so"))));
        let long = "n".repeat(NAME_BYTES + 1);
        assert_eq!(bench.ask(&long).unwrap_err().0, Why::System(libc::ENAMETOOLONG));
        assert_eq!(bench.ask(&"n/".repeat(PATH_BYTES)).unwrap_err().0, Why::System(libc::ENAMETOOLONG));
        assert_eq!(std::format!("{}", Why::System(libc::ENOENT)), "No such file or directory");
    }

    #[test]
    fn a_path_that_does_not_begin_at_the_root_begins_in_the_working_directory() {
        // Cargo starts tests in the package's folder.
        let here = std::env::current_dir().unwrap();
        assert_eq!(ask(Path::new("./Cargo.toml")), ask(&here.join("Cargo.toml")));
        assert_eq!(ask(Path::new("src/../no")).unwrap_err(), (Why::System(libc::ENOENT), here.join("no")));
    }

    #[test]
    fn the_group_of_the_users_own_number_is_the_user() {
        let about = |mode, owner, group| About { mode: libc::S_IFREG | mode, owner, group };
        assert_eq!(about(0o664, 1000, 1000).may_run(1000), Ok(()));
        assert_eq!(about(0o664, 1000, 100).may_run(1000), Err(Why::Writable(0o664)));
        assert_eq!(about(0o644, 0, 0).may_run(1000), Ok(()));
        assert_eq!(about(0o644, 1001, 1000).may_run(1000), Err(Why::Owner(1001)));
        let folder = |mode, owner, group| About { mode: libc::S_IFDIR | mode, owner, group };
        assert_eq!(folder(0o775, 1000, 1000).may_lead(1000), Ok(()));
        assert_eq!(folder(0o775, 0, 50).may_lead(1000), Err(Why::Writable(0o775)));
        assert_eq!(folder(0o1775, 0, 50).may_lead(1000), Ok(()));
        assert_eq!(folder(0o755, 1001, 1001).may_lead(1000), Err(Why::Owner(1001)));
    }
}
