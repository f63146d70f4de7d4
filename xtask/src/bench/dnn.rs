//! `cargo xtask bench dnn`: layers of networks through cuDNN on the CPU device beside oneDNN, in one process.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;

use super::by_turns::{Row, What, means};
use crate::setup;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 1.0)]
    seconds: f32,
    /// Measure cuDNN with oneDNN in front, as `CUDAWAY_DNN` puts it there.
    #[arg(long)]
    in_front: bool,
    #[command(flatten)]
    what: What,
}

/// Of oneDNN's speed, on average: without it, and with it in front.
const GOAL: f64 = 0.8;
const GOAL_IN_FRONT: f64 = 0.95;

/// Its C API, with threads of GNU's OpenMP: measured and never shipped.
const ONEDNN: (&str, &str) = ("onednn-cpu-gomp==2023.2.0", "data/lib/libdnnl.so.3.2");

/// What rows begin with.
const KINDS: [&str; 7] = ["convolution", "pooling", "activation", "sum", "softmax", "batch norm", "LSTM"];

/// The library, fetched if it has to be.
pub fn onednn() -> Result<PathBuf> {
    let folder = setup::download_cache()?.join("onednn");
    setup::files_of_wheel(ONEDNN.0, ONEDNN.1, &folder)?;
    Ok(folder.join("libdnnl.so.3.2"))
}

pub fn run(args: &Args) -> Result<()> {
    let lib = args.what.ours.objects()?;
    setup::wheels(&["numpy==2.4.6"])?;
    let onednn = onednn()?;
    let mut program = args.what.program("dnn/dnn.py", &lib)?;
    program.args([&lib.join("libcudnn.so.9"), &lib.join("libcudart.so.13"), &onednn]);
    if args.in_front {
        program.env("CUDAWAY_DNN", &onednn);
    } else {
        program.env_remove("CUDAWAY_DNN");
    }
    program.arg(args.seconds.to_string());
    // One thread each: those that wait for work would be counted as if they did some.
    program.envs([("RAYON_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")]);
    let rows = args.what.rows(program)?;
    let (name, goal, front) = match args.in_front {
        true => ("dnn --in-front", GOAL_IN_FRONT, ", with oneDNN in front"),
        false => ("dnn", GOAL, ""),
    };
    args.what.tell(name, &table(&rows, &format!("{}{front}", args.what.ours.built()), goal))
}

fn table(rows: &[Row<1>], built: &str, goal: f64) -> String {
    let mut text = format!(
        "1 thread each{built}. Geometric mean of our speed beside oneDNN's {}.\n\n\
         | what | ours, ms | oneDNN | speed beside oneDNN's |\n|---|---:|---:|---:|\n",
        means(rows, goal, &KINDS)
    );
    for row in rows {
        let (ours, theirs) = (row.ours * 1e3, row.theirs[0] * 1e3);
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
        assert!(Row::<1>::read("oops").is_err());
        let text = table(&[row], "", 0.8);
        assert!(text.contains("0.50 (goal 0.8: not met); by kind softmax 0.50."), "{text}");
    }
}
