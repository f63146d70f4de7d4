//! docs/performance.md: each bench writes the part between its two marks; what a person wrote around it stays.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use testkit::Run;

use crate::setup;
use crate::site::wrap;

/// What processors without 512-bit vectors have parts of their own for: theirs is other code.
const NARROW: &str = " without AVX-512";

/// Writes the part of `cargo xtask bench NAME`.
pub fn write(name: &str, text: &str) -> Result<()> {
    write_of(name, "", text)
}

/// The same for a bench with one part for each kind of processor.
pub fn write_by_processor(name: &str, text: &str) -> Result<()> {
    write_of(name, if has_avx512() { "" } else { NARROW }, text)
}

/// The level of x86-64 below AVX-512.
const LEVEL: &str = "x86-64-v3";

static IS_NARROWED: AtomicBool = AtomicBool::new(false);

/// From here on this processor is measured without its AVX-512.
pub fn narrow() {
    IS_NARROWED.store(true, Ordering::Relaxed);
}

pub fn is_narrowed() -> bool {
    IS_NARROWED.load(Ordering::Relaxed)
}

/// What our programs are told of it.
pub fn told(run: Run) -> Run {
    if is_narrowed() { run.env("CUDAWAY_CPU_TARGET", LEVEL) } else { run }
}

/// The compilers' flag for the processor of the peers.
pub fn march() -> String {
    format!("-march={}", if is_narrowed() { LEVEL } else { "native" })
}

/// Whether our code for this processor is made for vectors of 512 bits.
pub fn has_avx512() -> bool {
    !is_narrowed() && processor_has_avx512()
}

fn processor_has_avx512() -> bool {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    info.lines().any(|line| line.starts_with("flags") && line.split(' ').any(|flag| flag == "avx512f"))
}

fn write_of(name: &str, kind: &str, text: &str) -> Result<()> {
    let path = setup::root().join("docs/performance.md");
    let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    fs::write(&path, wrap::wrapped(&replaced(&page, name, kind, text)?)?)?;
    println!("written: docs/performance.md");
    Ok(())
}

fn replaced(page: &str, name: &str, kind: &str, text: &str) -> Result<String> {
    let start = format!("<!-- measured: written by `cargo xtask bench {name}`{kind} -->");
    let end = format!("<!-- end of {name}{kind} -->");
    let lost = || format!("docs/performance.md has lost the marks of {name}{kind}");
    let (head, rest) = page.split_once(&start).with_context(lost)?;
    let (_, tail) = rest.split_once(&end).with_context(lost)?;
    Ok(format!("{head}{start}\n{text}\n{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::{NARROW, replaced};

    const PAGE: &str = "a\n<!-- measured: written by `cargo xtask bench x` -->\nold\n<!-- end of x -->\nb\n\
                        <!-- measured: written by `cargo xtask bench x` without AVX-512 -->\nolder\n<!-- end of x without AVX-512 -->\nc";

    #[test]
    fn only_what_stands_between_the_marks_of_the_name_changes() {
        assert_eq!(replaced(PAGE, "x", "", "new").unwrap(), PAGE.replace("old\n", "new\n"));
        assert!(replaced(PAGE, "y", "", "new").is_err());
    }

    #[test]
    fn each_kind_of_processor_has_its_part() {
        assert_eq!(replaced(PAGE, "x", NARROW, "new").unwrap(), PAGE.replace("older", "new"));
        assert!(replaced(PAGE, "x", " on paper", "new").is_err());
    }
}
