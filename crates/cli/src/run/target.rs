//! What the kernel would start for a program's name: scripts are followed to their interpreters, ELF files are read.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader32, FileHeader64, Machine};
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader as _, SectionHeader as _};
use object::{Endianness, FileKind};

use crate::tools;

/// As many interpreters of interpreters as Linux follows.
const DEPTH: usize = 5;
const SCRIPT_LINE_BYTES: usize = 256;

/// Why there is nothing to start; the codes are those of env(1) and the shells.
#[derive(Debug)]
pub enum Missing {
    NotFound(String),
    NotExecutable(String),
}

/// An ELF file that is started, at once or after others.
#[derive(Debug)]
pub struct Image {
    pub path: PathBuf,
    pub machine: Machine,
    pub is_64: bool,
    /// The loader it names; none in a static program.
    pub interpreter: Option<PathBuf>,
    /// What lends it rights, for which the loader ignores the environment.
    pub secure: Option<&'static str>,
    /// It has device code and no symbol table.
    pub is_stripped_with_device_code: bool,
}

/// The file that the words `program` mean, as execvp(3) will find it.
pub fn find(program: &OsStr) -> Result<PathBuf, Missing> {
    let shown = program.to_string_lossy();
    if program.as_bytes().contains(&b'/') {
        let path = PathBuf::from(program);
        return match path.metadata() {
            Ok(metadata) if is_executable(&metadata) => Ok(path),
            Ok(_) => Err(Missing::NotExecutable(format!("{shown} is not executable"))),
            Err(error) => Err(Missing::NotFound(format!("{shown}: {error}"))),
        };
    }
    let path = tools::search_path().or_else(|| std::env::var_os("PATH"));
    let path = path.unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let candidates = || std::env::split_paths(&path).map(|folder| folder.join(program));
    let found = candidates().find(|path| path.metadata().is_ok_and(|it| is_executable(&it)));
    found.ok_or_else(|| match candidates().find(|path| path.is_file()) {
        Some(path) => Missing::NotExecutable(format!("{} is not executable", path.display())),
        None => Missing::NotFound(format!("{shown} is not in PATH")),
    })
}

fn is_executable(metadata: &Metadata) -> bool {
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// The ELF files that a start of `path` runs, in order: `#!/usr/bin/env python3` gives `env`, then `python3`.
pub fn images(path: &Path) -> Result<Vec<Image>, Missing> {
    let mut found = Vec::new();
    let mut next = Some(path.to_path_buf());
    for _ in 0..DEPTH {
        let Some(path) = next.take() else { break };
        if let Some(image) = read(&path) {
            found.push(image);
            continue;
        }
        let words = script_words(&path);
        // A text without `#!` is the shell's, for execvp(3).
        let interpreter = words.first().map_or_else(|| PathBuf::from("/bin/sh"), PathBuf::from);
        let interpreter = find(interpreter.as_os_str())?;
        if interpreter.file_name() == Some(OsStr::new("env")) {
            found.extend(read(&interpreter));
            next = words[1..].iter().find(|word| !is_option_of_env(word)).map(|it| find(it)).transpose()?;
        } else {
            next = Some(interpreter);
        }
    }
    Ok(found)
}

/// The words of a script's first line: the interpreter, and its argument (at blanks, as `env -S` has it).
fn script_words(path: &Path) -> Vec<OsString> {
    let mut start = Vec::new();
    let limit = u64::try_from(SCRIPT_LINE_BYTES).unwrap_or(u64::MAX);
    let read = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut start));
    let line = start.strip_prefix(b"#!").and_then(|rest| rest.split(|&byte| byte == b'\n').next());
    let (Ok(_), Some(line)) = (read, line) else { return Vec::new() };
    let words = line.split(|byte| b" \t\r".contains(byte)).filter(|word| !word.is_empty());
    words.map(|word| OsString::from_vec(word.to_vec())).collect()
}

fn is_option_of_env(word: &OsStr) -> bool {
    word.as_bytes().starts_with(b"-") || word.as_bytes().contains(&b'=')
}

/// An ELF file; `None` when it is none, or may not be read.
fn read(path: &Path) -> Option<Image> {
    let file = File::open(path).ok()?;
    let secure = secure(path, &file.metadata().ok()?);
    let data = ReadCache::new(file);
    let (facts, is_64) = match FileKind::parse(&data).ok()? {
        FileKind::Elf64 => (facts::<FileHeader64<Endianness>>(&data)?, true),
        FileKind::Elf32 => (facts::<FileHeader32<Endianness>>(&data)?, false),
        _ => return None,
    };
    let (machine, interpreter, is_stripped_with_device_code) = facts;
    Some(Image {
        path: path.to_path_buf(),
        machine,
        is_64,
        interpreter,
        secure,
        is_stripped_with_device_code,
    })
}

fn facts<E: FileHeader<Endian = Endianness>>(
    data: &ReadCache<File>,
) -> Option<(Machine, Option<PathBuf>, bool)> {
    let header = E::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let interpreter = segments.iter().find_map(|it| it.interpreter(endian, data).ok().flatten());
    let interpreter = interpreter.map(|path| PathBuf::from(OsStr::from_bytes(path)));
    let stripped = header.sections(endian, data).is_ok_and(|sections| {
        let has_device_code = sections.section_by_name(endian, b".nv_fatbin").is_some();
        has_device_code && !sections.iter().any(|it| it.sh_type(endian) == elf::SHT_SYMTAB)
    });
    Some((header.e_machine(endian), interpreter, stripped))
}

/// What makes the kernel start the file in secure mode (`AT_SECURE`) for the user that we are.
fn secure(path: &Path, metadata: &Metadata) -> Option<&'static str> {
    // SAFETY: they only return numbers.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let mode = metadata.permissions().mode();
    if mode & libc::S_ISUID != 0 && metadata.uid() != user {
        return Some("set-user-ID");
    }
    let runs_as_group = mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0;
    if runs_as_group && metadata.gid() != group {
        return Some("set-group-ID");
    }
    (user != 0 && has_capabilities(path)).then_some("given capabilities (setcap)")
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: two C strings; a length of 0 only asks for the attribute's size.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn names(path: &Path) -> Vec<String> {
        let images = images(path).unwrap();
        images.iter().map(|it| it.path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn scripts_are_followed_to_the_programs_that_run_them() {
        let folder = tempfile::tempdir().unwrap();
        let plain = script(folder.path(), "plain", "#!/bin/sh -e\necho\n");
        let shell = find(OsStr::new("/bin/sh")).unwrap();
        assert_eq!(images(&plain).unwrap()[0].path, shell);
        let through_env = script(folder.path(), "env", "#!/usr/bin/env -S A=1 sh -e\n");
        assert_eq!(names(&through_env), ["env", "sh"]);
        let nested = script(folder.path(), "nested", &format!("#! {}\n", plain.display()));
        assert_eq!(names(&nested), ["sh"]);
        assert_eq!(names(&script(folder.path(), "bare", "echo hello\n")), ["sh"]);
        let round = script(folder.path(), "round", &format!("#!{}/round\n", folder.path().display()));
        assert!(images(&round).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_started_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        std::fs::write(&text, "hello").unwrap();
        assert!(matches!(find(text.as_os_str()), Err(Missing::NotExecutable(_))));
        assert!(matches!(find(folder.path().as_os_str()), Err(Missing::NotExecutable(_))));
        assert!(matches!(find(OsStr::new("no-such-program")), Err(Missing::NotFound(_))));
        let lost = script(folder.path(), "lost", "#!/no/such/interpreter\n");
        assert!(matches!(images(&lost), Err(Missing::NotFound(_))));
    }

    #[test]
    fn this_test_names_its_loader() {
        let own = read(&std::env::current_exe().unwrap()).unwrap();
        assert!(own.is_64 && own.secure.is_none() && !own.is_stripped_with_device_code);
        let interpreter = own.interpreter.unwrap();
        assert!(interpreter.to_str().unwrap().contains("ld-linux"), "{interpreter:?}");
        // The loader itself names none.
        assert_eq!(read(&interpreter).unwrap().interpreter, None);
    }
}
