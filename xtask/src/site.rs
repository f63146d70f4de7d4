//! `cargo xtask site`: the pages of docs/ as a site that any browser shows from files, in target/site/html. It wraps their prose
//! first, and refuses pages that the list of contents lacks and links that lead nowhere.
//!
//! mdbook is a program here and not a library of xtask's: it brings some two hundred crates along, which every build of xtask would
//! compile for pages that few make.

mod links;
mod stage;
pub mod wrap;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::setup::{self, root};

#[derive(clap::Args)]
pub struct Args {
    /// Change and build nothing; fail when the prose of a page is too wide, a page is in no list of contents, or a link leads nowhere.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    setup: setup::Args,
}

/// The release that `book.toml` is written for.
const MDBOOK: &str = "0.5.4";

/// Files at the root that users and contributors read, which the site has too.
pub const AT_ROOT: [&str; 5] =
    ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "AI_REFERENCE.md"];

/// Written by tests of other crates, which compare them byte by byte; their prose is short.
const OF_TESTS: [&str; 2] = ["docs/ptx.md", "docs/accuracy.md"];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    if !args.check {
        for path in pages()?.into_iter().filter(|path| !OF_TESTS.contains(&path.as_str())) {
            let text = read(&path)?;
            let wrapped = wrap::wrapped(&text).with_context(|| path.clone())?;
            if wrapped != text {
                fs::write(root().join(&path), wrapped)?;
                println!("site: wrapped {path}");
            }
        }
    }
    check()?;
    if args.check {
        return Ok(());
    }
    let stage = setup::root().join("target/site");
    stage::lay_out(&stage)?;
    let mut build = Command::new(mdbook()?);
    setup::run(build.arg("build").arg(&stage))?;
    println!("site: {}", stage.join("html/index.html").display());
    Ok(())
}

/// What is wrong with the pages as they are.
pub fn check() -> Result<()> {
    let mut findings = Vec::new();
    for path in pages()? {
        let text = read(&path)?;
        findings.extend(wrap::too_wide(&text).into_iter().map(|line| {
            format!("{path}:{line}: prose wider than {} columns: cargo xtask site", wrap::WIDEST)
        }));
        findings.extend(links::broken(&path, &text)?);
    }
    findings.extend(links::not_in_contents()?);
    ensure!(findings.is_empty(), "{} findings in the pages:\n  {}", findings.len(), findings.join("\n  "));
    Ok(())
}

/// The pages that people read, by their paths from the root.
pub fn pages() -> Result<Vec<String>> {
    let mut pages: Vec<String> = AT_ROOT.map(str::to_owned).to_vec();
    pages.push("python/README.md".to_owned());
    for entry in fs::read_dir(root().join("docs"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    Ok(pages)
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// The program, which is built once per machine, outside of the tree.
fn mdbook() -> Result<PathBuf> {
    let folder = setup::download_cache()?.join(format!("mdbook-{MDBOOK}"));
    let program = folder.join("bin/mdbook");
    if !program.exists() {
        let mut install = Command::new("cargo");
        // Not in the checkout: its toolchain and settings are not mdbook's.
        install.current_dir(folder.parent().unwrap_or(Path::new("/")));
        install.args(["install", "--quiet", "--locked", "--no-default-features", "--features", "search"]);
        install.arg("--root").arg(&folder).arg(format!("mdbook@{MDBOOK}"));
        ensure!(!setup::offline(), "--offline, and there is no mdbook; when online: {install:?}");
        println!("site: mdbook {MDBOOK} from crates.io into {}", folder.display());
        let _lock = setup::alone_in(&folder)?;
        setup::run(&mut install)?;
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    #[test]
    fn pages_are_as_they_should_be() {
        super::check().unwrap();
    }
}
