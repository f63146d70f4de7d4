//! `cargo xtask bench rand`: numbers of cuRAND's generators on the CPU device beside NVIDIA's host generators and Intel's MKL, in one process.

use std::fmt::Write as _;

use anyhow::Result;

use super::by_turns::{Row, What};
use super::sparse::mkl;
use crate::setup;
use crate::toolchain::CURAND_13_5;

#[derive(clap::Args)]
pub struct Args {
    /// Seconds that each row is measured for, by turns; the fastest turn counts.
    #[arg(long, default_value_t = 2.0)]
    seconds: f32,
    #[command(flatten)]
    what: What,
}

/// Of the speed of NVIDIA's host generators, on average.
const GOAL: f64 = 1.5;
/// Of the speed at which memory is filled, which the two generators that programs use most have where MKL is faster.
const GOAL_OF_MEMORY: f64 = 0.8;
const MOST_USED: [&str; 2] = ["XORWOW uniform", "Philox4x32-10 uniform"];

pub fn run(args: &Args) -> Result<()> {
    let lib = args.what.ours.objects()?;
    setup::wheels(&["numpy==2.4.6"])?;
    let nvidia = setup::download_cache()?.join("libcurand");
    setup::files_of_wheel(CURAND_13_5, "lib/libcurand.so", &nvidia)?;
    let mkl = mkl()?;
    let mut program = args.what.program("rand/rand.py", &lib)?;
    program.args([lib.join("libcurand.so.10"), lib.join("libcudart.so.13"), nvidia.join("libcurand.so.10")]);
    program.arg(mkl.join("libmkl_rt.so.3")).arg(args.seconds.to_string());
    program.env("LD_LIBRARY_PATH", format!("{}:{}", lib.display(), mkl.display()));
    program.env_remove("CUDAWAY_RAND").env("OMP_NUM_THREADS", "1");
    program.envs([("MKL_THREADING_LAYER", "INTEL"), ("MKL_INTERFACE_LAYER", "LP64")]);
    let rows = args.what.rows(program)?;
    args.what.tell("rand", &table(&rows, args.what.ours.built()))
}

/// How often as fast as another, which has no such thing if its time is 0.
fn beside(ours: f64, theirs: f64) -> Option<f64> {
    (theirs > 0.0).then(|| theirs / ours)
}

/// Beside NVIDIA's host generators, MKL where it has such a thing, and memory.
fn table(rows: &[Row<3>], built: &str) -> String {
    let logs: Vec<f64> = rows.iter().map(|row| (row.theirs[0] / row.ours).ln()).collect();
    let mean = f64::exp(logs.iter().sum::<f64>() / logs.len() as f64);
    let met = |is: bool| if is { "met" } else { "not met" };
    let mut text = format!(
        "CPU time for 2^24 numbers{built}. Geometric mean of our speed beside NVIDIA's host generators {mean:.2} (goal {GOAL}: {}); \
         uniform numbers at MKL's speed or {GOAL_OF_MEMORY} of memory's:",
        met(mean >= GOAL)
    );
    for row in rows.iter().filter(|row| MOST_USED.contains(&&*row.name)) {
        let [_, mkl, memory] = row.theirs.map(|theirs| beside(row.ours, theirs));
        let is = mkl.is_some_and(|it| it >= 1.0) || memory.is_some_and(|it| it >= GOAL_OF_MEMORY);
        let _ = write!(text, " {} {},", row.name.trim_end_matches(" uniform"), met(is));
    }
    text.pop();
    text += ".\n\n| numbers | ours, ms | NVIDIA's | MKL's | memory filled | beside NVIDIA's | MKL's | memory |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|\n";
    let shown = |number: Option<f64>| number.map_or("–".to_owned(), |it| format!("{it:.2}"));
    for Row { name, ours, theirs } in rows {
        let _ = write!(text, "| {name} | {:.2} |", ours * 1e3);
        for theirs in theirs {
            let _ = write!(text, " {} |", shown(beside(1e-3, *theirs)));
        }
        for theirs in theirs {
            let _ = write!(text, " {} |", shown(beside(*ours, *theirs)));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_that_mkl_lacks_may_be_as_fast_as_memory() {
        let row = |line: &str| Row::read(line).unwrap();
        let rows = [
            row("XORWOW uniform|0.010|0.030|0.000000|0.008"),
            row("Philox4x32-10 uniform|0.010|0.020|0.009|0.004"),
        ];
        let text = table(&rows, "");
        assert!(text.contains("2.45 (goal 1.5: met)"), "{text}");
        assert!(text.contains("memory's: XORWOW met, Philox4x32-10 not met."), "{text}");
        assert!(text.contains("| XORWOW uniform | 10.00 | 30.00 | – | 8.00 | 3.00 | – | 0.80 |"), "{text}");
    }
}
