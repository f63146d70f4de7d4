//! `CUDAWAY_DUMP_DIR`: what kernels were compiled from, for people to read.

use std::path::PathBuf;

use crate::digest_of;

/// Characters of a name that stand in a file's: file systems take 255 bytes in all.
const NAME_CHARACTERS: usize = 96;

/// Whether anything is kept.
#[must_use]
pub fn is_on() -> bool {
    config::get().dump_dir.is_some()
}

/// Keeps `bytes` in a file `NAME.HASH.ENDING`. The hash is of the whole name and the bytes, so that kernels whose names begin alike, and
/// those of one name in several modules, have a file each.
pub fn keep(name: &str, ending: &str, bytes: &[u8]) {
    let Some(folder) = &config::get().dump_dir else { return };
    let path = folder.join(file_name(name, ending, bytes));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, bytes));
    if let Err(error) = written {
        tracing::warn!(target: "cudaway::compiler", "{}: {error}", path.display());
    }
}

fn file_name(name: &str, ending: &str, bytes: &[u8]) -> PathBuf {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let short: String = name.chars().filter(is_plain).take(NAME_CHARACTERS).collect();
    let hash: String =
        digest_of([name.as_bytes(), bytes])[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{short}.{hash}.{ending}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_whose_names_begin_alike_have_files_of_their_own() {
        let long = "k".repeat(300);
        let names = [
            file_name(&format!("{long}a"), "ll", b"text"),
            file_name(&format!("{long}b"), "ll", b"text"),
            file_name(&format!("{long}a"), "ll", b"another module's"),
            file_name("a$b", "ll", b"text"),
            file_name("ab", "ll", b"text"),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{}", name.display());
            assert!(name.as_os_str().len() < 128 && name.to_str().unwrap().ends_with(".ll"));
        }
        assert_eq!(file_name("a", "ll", b"text"), file_name("a", "ll", b"text"));
        assert!(file_name("../x", "co", b"").to_str().unwrap().starts_with("x."));
    }
}
