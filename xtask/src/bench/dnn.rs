//! `cargo xtask bench dnn`: layers of networks through cuDNN on the CPU device beside oneDNN, in one process.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::section;
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 1.0)]
    seconds: f32,
    /// Measure the objects in this folder; docs/performance.md is left as it is.
    #[arg(long)]
    lib: Option<PathBuf>,
    /// Measure the objects of target/cudaway/lib as they are, and not all as they are shipped.
    #[arg(long, conflicts_with = "lib")]
    local: bool,
    /// Only rows whose name has all of these words; docs/performance.md is left as it is.
    words: Vec<String>,
}

/// Of oneDNN's speed, on average.
const GOAL: f64 = 0.8;

/// Its C API, with threads of GNU's OpenMP: measured and never shipped.
const ONEDNN: (&str, &str) = ("onednn-cpu-gomp==2023.2.0", "data/lib/libdnnl.so.3.2");

/// What rows begin with.
const KINDS: [&str; 7] = ["convolution", "pooling", "activation", "sum", "softmax", "batch norm", "LSTM"];

pub fn run(args: &Args) -> Result<()> {
    let local = args.local.then(setup::lib_dir);
    let lib = super::objects(args.lib.as_deref().or(local.as_deref()))?;
    setup::wheels(&["numpy==2.4.6"])?;
    let onednn = setup::download_cache()?.join("onednn");
    setup::files_of_wheel(ONEDNN.0, ONEDNN.1, &onednn)?;
    let out = command(args, &lib, &onednn.join("libdnnl.so.3.2"))?.output().context("cannot start Python")?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let rows = said.lines().map(Row::read).collect::<Result<Vec<_>>>()?;
    ensure!(!rows.is_empty(), "no row's name has all of {:?}", args.words);
    let text = table(&rows, if args.local { ", the objects of target/cudaway/lib" } else { "" });
    println!("{text}");
    if args.lib.is_some() || !args.words.is_empty() { Ok(()) } else { section::write("dnn", &text) }
}

/// One thread each: those that wait for work would be counted as if they did some.
fn command(args: &Args, lib: &Path, onednn: &Path) -> Result<Command> {
    let mut command = Command::new(setup::venv()?);
    command.arg(setup::root().join("benches/dnn/dnn.py"));
    command.args([&lib.join("libcudnn.so.9"), &lib.join("libcudart.so.13"), onednn]);
    command.arg(args.seconds.to_string()).args(&args.words);
    command.env("LD_PRELOAD", format!("{0}/libcuda.so.1:{0}/libcudart.so.13", lib.display()));
    command.env("LD_LIBRARY_PATH", lib).env("CUDAWAY_DEVICE", "cpu");
    command.env("RAYON_NUM_THREADS", "1").env("OMP_NUM_THREADS", "1");
    Ok(command)
}

/// A line of the program, in seconds.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    ours: f64,
    theirs: f64,
}

impl Row {
    fn read(line: &str) -> Result<Row> {
        let parts: Vec<&str> = line.split('|').collect();
        let [name, ours, theirs] = parts[..] else { anyhow::bail!("the program says {line:?}") };
        Ok(Row { name: name.to_owned(), ours: ours.parse()?, theirs: theirs.parse()? })
    }

    fn ratio(&self) -> f64 {
        self.theirs / self.ours
    }
}

fn table(rows: &[Row], built: &str) -> String {
    let mean =
        |rows: &[&Row]| (rows.iter().map(|row| row.ratio().ln()).sum::<f64>() / rows.len() as f64).exp();
    let all = mean(&rows.iter().collect::<Vec<_>>());
    let met = if all >= GOAL { "met" } else { "not met" };
    let mut text = format!(
        "1 thread each{built}. Geometric mean of our speed beside oneDNN's {all:.2} (goal {GOAL}: {met}); by kind"
    );
    for kind in KINDS {
        let own: Vec<&Row> = rows.iter().filter(|row| row.name.starts_with(kind)).collect();
        if !own.is_empty() {
            let _ = write!(text, " {kind} {:.2},", mean(&own));
        }
    }
    text.pop();
    text += ".\n\n| what | ours, ms | oneDNN | speed beside oneDNN's |\n|---|---:|---:|---:|\n";
    for row in rows {
        let (ours, theirs) = (row.ours * 1e3, row.theirs * 1e3);
        let _ = writeln!(text, "| {} | {ours:.2} | {theirs:.2} | {:.2} |", row.name, row.ratio());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_beside_the_peer() {
        let row = Row::read("softmax 9 rows, forward|0.002|0.001").unwrap();
        assert!((row.ratio() - 0.5).abs() < 1e-9);
        assert!(Row::read("oops").is_err());
        let text = table(&[row], "");
        assert!(text.contains("0.50 (goal 0.8: not met); by kind softmax 0.50."), "{text}");
    }
}
