//! `cargo xtask session`: runs the session that README.md's picture shows, keeps what it said (docs/session.txt), and draws it
//! (docs/session.svg, of that text alone).
//!
//! Nothing in the picture is written by hand. A test runs the session again and compares.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use crate::codegen;
use crate::setup::{self, root};
use crate::toolchain::Release;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    setup: setup::Args,
}

/// What is typed. Their programs' sources are beside them, as a user's are.
const COMMANDS: [&str; 6] = [
    "nvcc -o vector_add vector_add.cu",
    "./vector_add",
    "cudaway run -- ./vector_add",
    "nvcc -lineinfo -o bad bad.cu",
    "cudaway run -- ./bad",
    "CUDAWAY_SANITIZE=memcheck cudaway run -- ./bad",
];

const SOURCES: [&str; 4] = ["vector_add.cu", "example.h", "dlopen_driver.h", "session/bad.cu"];

/// What stands for the folder in which it is run.
const HOME: &str = "/home/me";

const TEXT: &str = "docs/session.txt";
const PICTURE: &str = "docs/session.svg";

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    setup::build_packages()?;
    let text = said(&Installed::at(setup::lib_dir()))?;
    fs::write(root().join(TEXT), text).context(TEXT)?;
    codegen::refresh()
}

/// What the session says today is what the picture shows, up to addresses.
pub fn is_as_shown(installed: &Installed) -> Result<()> {
    let (shown, said) = (fs::read_to_string(root().join(TEXT)).context(TEXT)?, said(installed)?);
    let (shown, said) = (without_addresses(&shown), without_addresses(&said));
    ensure!(shown == said, "`cargo xtask session` draws it anew; it says:\n{said}");
    Ok(())
}

/// The session's text: each command after a prompt, and what it says.
fn said(installed: &Installed) -> Result<String> {
    let (folder, cache) = (testkit::temporary()?, testkit::temporary()?);
    for source in SOURCES {
        let from = root().join("examples").join(source);
        fs::copy(&from, folder.path().join(from.file_name().context("a name")?))?;
    }
    let tool = installed.lib().parent().context("a folder")?.join("bin");
    let nvcc = Release::V13_5.get()?.dir.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([tool, nvcc].into_iter().chain(std::env::split_paths(&path)))?;
    let mut text = String::new();
    for command in COMMANDS {
        // As a terminal has it, where both streams are one.
        let run = Run::new("sh").arg("-c").arg(format!("exec 2>&1; {command}")).dir(folder.path());
        let run = run.env("PATH", &path).env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", cache.path());
        let ended = run.limit(Duration::from_secs(300)).run()?;
        ensure!(!ended.timed_out && !ended.crashed(), "{command}: {}", ended.describe());
        let _ = write!(text, "$ {command}\n{}", ended.stdout);
    }
    // Where it lies may be a link's target.
    let places: [PathBuf; 2] = [folder.path().to_path_buf(), fs::canonicalize(folder.path())?];
    Ok(places.iter().fold(text, |text, place| text.replace(&place.display().to_string(), HOME)))
}

fn without_addresses(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let _ = write!(plain, "0x…{}", part.trim_start_matches(|letter: char| letter.is_ascii_hexdigit()));
    }
    plain
}

/// Columns of the window, after which lines go on below, as in a terminal.
const COLUMNS: usize = 100;
const LETTER: f64 = 8.0;
const LINE: f64 = 19.0;
const MARGIN: f64 = 18.0;

/// The picture, for `cargo xtask codegen`.
pub fn picture() -> Result<(String, String)> {
    let text = fs::read_to_string(root().join(TEXT)).context(TEXT)?;
    Ok((PICTURE.to_owned(), drawn(&text)))
}

fn drawn(text: &str) -> String {
    let lines: Vec<(&str, String)> = text.lines().flat_map(rows).collect();
    let (width, height) =
        (LETTER * COLUMNS as f64 + 2.0 * MARGIN, LINE * lines.len() as f64 + 2.0 * MARGIN - 4.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-size=\"13.3\" \
         font-family=\"'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace\">\n\
         <title>A session of CUDAway in a terminal</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f27\"/>\n"
    );
    for (row, (colour, line)) in lines.iter().enumerate() {
        let y = MARGIN + 10.0 + LINE * row as f64;
        // Whatever letters a viewer has, columns stay below each other.
        let length = LETTER * line.chars().count() as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{colour}\" textLength=\"{length}\" xml:space=\"preserve\">{}</text>",
            escaped(line)
        );
    }
    svg + "</svg>\n"
}

/// A line's rows, with their colour: commands, and what tells good from bad, stand out.
fn rows(line: &str) -> Vec<(&'static str, String)> {
    let colour = if line.starts_with("$ ") {
        "#ffffff"
    } else if line == "PASSED" {
        "#7ee787"
    } else if line.starts_with("FAILED") || line.starts_with("========= Invalid") {
        "#ff7b72"
    } else {
        "#aab4c3"
    };
    let letters: Vec<char> = line.chars().collect();
    if letters.is_empty() {
        return vec![(colour, String::new())];
    }
    letters.chunks(COLUMNS).map(|row| (colour, row.iter().collect())).collect()
}

fn escaped(line: &str) -> String {
    line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_are_left_out() {
        let text = "at 0x557b2a706190 is, 0x0\nof 400 bytes";
        assert_eq!(without_addresses(text), "at 0x… is, 0x…\nof 400 bytes");
        assert_eq!(without_addresses("plain"), "plain");
    }

    #[test]
    fn a_long_line_goes_on_below_and_nothing_is_markup() {
        let svg = drawn(&format!("$ a <b> & c\n{}\n", "x".repeat(COLUMNS + 1)));
        assert!(svg.contains("$ a &lt;b&gt; &amp; c</text>"), "{svg}");
        assert!(svg.contains(&format!("textLength=\"{}\"", LETTER * COLUMNS as f64)), "{svg}");
        assert!(svg.contains("textLength=\"8\" xml:space=\"preserve\">x</text>"), "{svg}");
    }
}
