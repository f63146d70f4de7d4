//! `SHOW=folder` keeps the instruction forms that a test loads, for docs/ptx.md's list of tests: those of texts that are
//! put together at run time are in no file. `SHOW=tools/data/ptx/shown cargo test -p hip-cpu --test matrix` writes it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Adds the forms of a text to the list of this test.
pub fn record(text: &str) {
    let Some(folder) = std::env::var_os("SHOW") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Some(test) = test_name() else { return };
    let mut seen = SEEN.lock();
    let before = seen.len();
    for statement in text.split(['\n', ';']) {
        seen.extend(form(statement));
    }
    if seen.len() == before {
        return;
    }
    let mut list = format!("# Forms that crates/hip-cpu/tests/{test} runs, written by SHOW.\n");
    for form in seen.iter() {
        let _ = writeln!(list, "{form}\t{test}");
    }
    let path: PathBuf = root.join(folder).join(format!("{}.tsv", test.trim_end_matches(".rs")));
    std::fs::write(path, list).expect("SHOW is a folder that can be written");
}

/// The executable without its hash.
fn test_name() -> Option<String> {
    let name = std::env::current_exe().ok()?.file_stem()?.to_str()?.to_owned();
    Some(format!("{}.rs", name.rsplit_once('-').map_or(name.as_str(), |(name, _)| name)))
}

/// Opcode and modifiers of an instruction.
fn form(statement: &str) -> Option<String> {
    let mut words = statement.split_whitespace();
    let mut word = words.next()?;
    if word.starts_with('@') {
        word = words.next()?;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_');
    let is_form =
        word.contains('.') && word.starts_with(|c: char| c.is_ascii_lowercase()) && word.chars().all(plain);
    is_form.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_s_form_is_its_opcode_with_modifiers() {
        assert_eq!(form("  @%p add.sat.s32 %r1, %r2, 1").as_deref(), Some("add.sat.s32"));
        assert_eq!(form(".reg .b32 %r<4>"), None);
        assert_eq!(form("ret"), None);
    }
}
