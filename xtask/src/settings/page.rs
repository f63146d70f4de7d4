//! docs/settings.md, from what was counted.

use std::fmt::Write as _;

use anyhow::Result;

use super::results::{Counted, Reason, Results};
use crate::setup;

pub const PATH: &str = "docs/settings.md";

/// Of a hundred kernels so many may go one lane at a time.
const GOAL: f64 = 1.0;

const HEAD: &str = "# Settings of the CPU device, by kernel

Written by `cargo xtask settings` from `tools/data/settings.json`, which it writes too. The CPU device runs a kernel in one of three
settings ([architecture.md](architecture.md)): **simd**, all lanes of a group in vectors; **warp**, a warp in vectors, with warps that
may wait for each other; **lane**, one lane at a time, which is right for everything and slow. A kernel is looked at with blocks of 256
threads, or fewer where it says so itself, on a CPU with vectors of 512 bits. Kernels of one name that fare alike count once in a corpus.

`--only NAME` counts one corpus of this tree; `--add NAME=DIR` counts the PTX files of a folder, as `CUDAWAY_DUMP_DIR=DIR` leaves them
there when a program runs.
";

pub fn write(results: &Results) -> Result<()> {
    std::fs::write(setup::root().join(PATH), markdown(results))?;
    println!("written: {PATH}");
    Ok(())
}

/// As the committed counts give it.
pub fn text() -> Result<String> {
    Ok(markdown(&Results::read()?))
}

fn markdown(results: &Results) -> String {
    let mut text = HEAD.to_owned();
    text.push_str(
        "\n| corpus | files | kernels | simd | warp | lane | refused | lane, of a hundred | goal 1 | day |\n",
    );
    text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|---|---|\n");
    for Counted { name, date, counts, .. } in &results.corpora {
        let [s, p, l, refused] = ["simd", "warp", "lane", "-"].map(|setting| counts.of_setting(setting));
        let share = 100.0 * l as f64 / counts.kernels().max(1) as f64;
        let verdict = if share < GOAL { "met" } else { "missed" };
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {s} | {p} | {l} | {refused} | {share:.1} | {verdict} | {date} |",
            counts.files,
            counts.kernels()
        );
    }
    text.push('\n');
    for Counted { name, what, .. } in &results.corpora {
        let _ = writeln!(text, "- **{name}**: {what}");
    }
    let parts = [
        ("lane", "Why kernels go one lane at a time"),
        ("warp", "Why kernels run by warps"),
        ("-", "Why kernels are refused"),
    ];
    for (setting, title) in parts {
        text.push_str(&reasons(results, setting, title));
    }
    text
}

fn reasons(results: &Results, setting: &str, title: &str) -> String {
    let mut text = String::new();
    for Counted { name, counts, .. } in &results.corpora {
        for Reason { why, kernels, example, .. } in counts.reasons.iter().filter(|it| it.setting == setting) {
            let _ =
                writeln!(text, "| {name} | {kernels} | {} | `{}` |", why.replace('|', "\\|"), short(example));
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\n## {title}\n\n| corpus | kernels | why | for example |\n|---|--:|---|---|\n{text}")
}

/// Mangled names of templates have hundreds of letters.
fn short(name: &str) -> String {
    let mut text: String = name.chars().take(72).collect();
    if text.len() < name.len() {
        text.push('…');
    }
    text
}
