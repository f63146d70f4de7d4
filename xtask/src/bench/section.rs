//! docs/performance.md: each bench writes the part between its two marks; what a person wrote around it stays.

use std::fs;

use anyhow::{Context as _, Result};

use crate::setup;
use crate::site::wrap;

/// Writes the part of `cargo xtask bench NAME`.
pub fn write(name: &str, text: &str) -> Result<()> {
    let path = setup::root().join("docs/performance.md");
    let page = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    fs::write(&path, wrap::wrapped(&replaced(&page, name, text)?)?)?;
    println!("written: docs/performance.md");
    Ok(())
}

fn replaced(page: &str, name: &str, text: &str) -> Result<String> {
    let start = format!("<!-- measured: written by `cargo xtask bench {name}` -->");
    let end = format!("<!-- end of {name} -->");
    let lost = || format!("docs/performance.md has lost the marks of {name}");
    let (head, rest) = page.split_once(&start).with_context(lost)?;
    let (_, tail) = rest.split_once(&end).with_context(lost)?;
    Ok(format!("{head}{start}\n{text}\n{end}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_what_stands_between_the_marks_of_the_name_changes() {
        let page = "a\n<!-- measured: written by `cargo xtask bench x` -->\nold\n<!-- end of x -->\nb";
        let new = "a\n<!-- measured: written by `cargo xtask bench x` -->\nnew\n<!-- end of x -->\nb";
        assert_eq!(replaced(page, "x", "new").unwrap(), new);
        assert!(replaced(page, "y", "new").is_err());
    }
}
