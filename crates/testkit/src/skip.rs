//! Tests that cannot run here. libtest knows no such ending: a test that returns has passed. `skip!` says which test it is and
//! what is missing, and `cargo xtask test` counts it as skipped, by name.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Names the file that gets a line for each test that skipped; without it they speak on stderr alone.
pub const VARIABLE: &str = "CUDAWAY_TEST_SKIPS";

/// A test that returned because something is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Skip {
    /// The test's binary, as a crate.
    pub binary: String,
    /// As libtest prints it.
    pub test: String,
    pub missing: String,
}

/// Says that the test which this stands in cannot run, and what is missing. The test then returns.
///
/// ```
/// # fn test() {
/// let Some(tool) = std::env::var_os("TOOL") else { return testkit::skip!("TOOL names no tool") };
/// # drop(tool)
/// # }
/// ```
#[macro_export]
macro_rules! skip {
    ($($missing:tt)+) => {{
        fn here() {}
        $crate::skip::note(::core::any::type_name_of_val(&here), &::std::format!($($missing)+))
    }};
}

/// What `skip!` does: `here` is the path of a function inside the test.
pub fn note(here: &str, missing: &str) {
    tell(&Skip::of(here, missing), std::env::var_os(VARIABLE).as_deref());
}

/// A test that is counted as passed though it skipped is what nobody must get: the file that is asked for can be written.
fn tell(skip: &Skip, file: Option<&OsStr>) {
    // libtest keeps what `eprintln!` prints to itself.
    let _ = writeln!(io::stderr(), "skipped {}: {}", skip.test, skip.missing);
    let Some(file) = file else { return };
    let line = format!("{}\t{}\t{}\n", skip.binary, skip.test, skip.missing);
    // Tests of several processes append: a line is one write.
    let written = OpenOptions::new().create(true).append(true).open(file);
    let written = written.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{VARIABLE}={}: {error}", file.display()));
}

impl Skip {
    fn of(here: &str, missing: &str) -> Skip {
        let path: Vec<&str> = here.split("::").filter(|part| !part.starts_with("{{")).collect();
        let (binary, test) = (path[0], &path[1..path.len() - 1]);
        let missing = missing.split_whitespace().collect::<Vec<_>>().join(" ");
        Skip { binary: binary.to_owned(), test: test.join("::"), missing }
    }
}

/// What stands in the file, each once. No test skipped where there is none.
pub fn read(file: &Path) -> io::Result<Vec<Skip>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        text => text?,
    };
    let skip = |line: &str| {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        let (binary, test) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        Skip { binary, test, missing: fields.next().unwrap_or_default() }
    };
    let mut skips: Vec<Skip> = text.lines().map(skip).collect();
    skips.sort();
    skips.dedup();
    Ok(skips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_skips_stands_in_the_file_once() {
        let folder = crate::temporary().unwrap();
        let file = folder.path().join("skips");
        assert_eq!(read(&file).unwrap(), []);
        let skip = Skip::of("texture::sampled::edges::{{closure}}::here", "no\nemulator");
        let expected = Skip {
            binary: "texture".to_owned(),
            test: "sampled::edges".to_owned(),
            missing: "no emulator".to_owned(),
        };
        assert_eq!(skip, expected);
        tell(&skip, Some(file.as_os_str()));
        tell(&skip, Some(file.as_os_str()));
        tell(&Skip { test: "sampled::centres".to_owned(), ..skip.clone() }, Some(file.as_os_str()));
        let read = read(&file).unwrap();
        assert_eq!(
            read.iter().map(|it| &*it.test).collect::<Vec<_>>(),
            ["sampled::centres", "sampled::edges"]
        );
        assert_eq!(read[1], expected);
    }

    #[test]
    #[should_panic(expected = "CUDAWAY_TEST_SKIPS=/nowhere/skips")]
    fn a_file_that_cannot_be_written_is_a_failure() {
        tell(&Skip::of("a::b::here", "x"), Some(OsStr::new("/nowhere/skips")));
    }

    /// The one that shows the mechanism: it skips where it is asked to, as a test of `cargo xtask`'s does.
    #[test]
    fn this_one_skips_when_it_is_asked_to() {
        if std::env::var_os("CUDAWAY_TEST_SKIP_ONE").is_some() {
            return skip!("what {} names", "CUDAWAY_TEST_SKIP_ONE");
        }
        assert!(std::env::var_os("CUDAWAY_TEST_SKIP_ONE").is_none());
    }

    /// From the macro to the file, through a process of its own, whose libtest says that the test passed.
    #[test]
    fn a_skip_reaches_the_file_that_the_variable_names() {
        let folder = crate::temporary().unwrap();
        let file = folder.path().join("skips");
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "skip::tests::this_one_skips_when_it_is_asked_to"]);
        let ran = own.env("CUDAWAY_TEST_SKIP_ONE", "1").env(VARIABLE, &file).output().unwrap();
        assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains("skipped skip::tests::this_one"), "{ran:?}");
        let test = "skip::tests::this_one_skips_when_it_is_asked_to".to_owned();
        let missing = "what CUDAWAY_TEST_SKIP_ONE names".to_owned();
        assert_eq!(read(&file).unwrap(), [Skip { binary: "testkit".to_owned(), test, missing }]);
    }
}
