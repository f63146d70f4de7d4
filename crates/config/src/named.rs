//! What a variable names to be run, by a path: it is only if nobody else can have put it there (`secure::files`, docs/security.md).

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use secure::files::{Reached, Why, may_run};

/// Whether this library may be opened. One that is not a path but a name is looked for by the loader, in folders that are the
/// system's or that the loader's own variables name. Where somebody else could have put it there the log says so, once.
///
/// # Errors
/// Why not, in words.
pub fn library(path: &Path) -> Result<(), String> {
    if path.as_os_str().as_bytes().contains(&b'/') { file(path) } else { Ok(()) }
}

/// As [`library`], of a program, which is a path always.
///
/// # Errors
/// As [`library`].
pub fn program(path: &Path) -> Result<(), String> {
    if path.as_os_str().as_bytes().contains(&b'/') { file(path) } else { file(&Path::new(".").join(path)) }
}

fn file(path: &Path) -> Result<(), String> {
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    let mut reached = Reached::new();
    let Err(why) = may_run(&text, &mut reached) else { return Ok(()) };
    if !why.is_distrust() {
        return Err(why.to_string());
    }
    let step = Path::new(OsStr::from_bytes(reached.bytes()));
    let what = format!("{}: {why}", step.display());
    if is_news(path) {
        tracing::warn!(
            target: "cudaway::config",
            "{} is not opened, since somebody else could have put it there: {what}; {}", path.display(), mend(why, step)
        );
    }
    Err(what)
}

/// What its user can do about it.
fn mend(why: Why, step: &Path) -> String {
    match why {
        Why::Writable(_) => {
            format!(
                "take that from them (`chmod go-w {}`), or copy it to a folder of your own",
                step.display()
            )
        }
        _ => "copy it to a folder of your own, or have it belong to you or to root".to_owned(),
    }
}

fn is_news(path: &Path) -> bool {
    static SAID: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_loaders_business_and_a_path_is_looked_at() {
        assert_eq!(library(Path::new("libnowhere.so")), Ok(()));
        assert_eq!(library(Path::new("./libnowhere.so")), Err("No such file or directory".to_owned()));
        assert_eq!(program(Path::new("nowhere")), Err("No such file or directory".to_owned()));
        // Cargo starts tests in the package's folder.
        assert_eq!(
            library(Path::new("./src")),
            Err("it is neither a file nor a folder on the way to one".to_owned())
        );
    }

    #[test]
    fn the_words_say_which_step_is_at_fault_and_what_to_do() {
        let step = Path::new("/a/b");
        assert!(mend(Why::Writable(0o777), step).contains("`chmod go-w /a/b`"));
        assert!(mend(Why::Owner(7), step).contains("belong to you or to root"));
        assert!(is_news(step) && !is_news(step));
    }
}
