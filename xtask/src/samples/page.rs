//! docs/samples.md and docs/library-samples.md, from the results and the notes that are kept.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Result, ensure};

use super::collection::{CUDA_SAMPLES, Collection, LIBRARY_SAMPLES};
use super::notes::Notes;
use super::results::{How, Results, Sample};
use crate::setup;

const HEAD: &str = "# NVIDIA's cuda-samples on our libraries

Written by `cargo xtask samples` from `tools/data/samples.json`, which it writes too, and the reasons in
`tools/data/samples-notes.json`. The samples are NVIDIA's and no part of this tree: `--from DIR` or `SAMPLES=DIR` names a checkout
of github.com/NVIDIA/cuda-samples, else they are cloned. `--only NAME` runs one, `--resume` goes on where a run ended.

Each is built from what its own CMakeLists asks for, by nvcc 13.5, with PTX of one architecture (the one of those asked for that
our driver takes) and with `-O2` for the host's code, and run by `cudaway run` on the CPU device with the arguments of the samples'
own `test_args.json`. Those that ask for two devices get two CPU devices: their rows say so. *Waived* is a sample's own word: the device, or the machine, lacks what it shows. Times are seconds of a first
run, with nothing in the cache: on the clock, of the processor, then in kernels (on the clock, and the sum of those that ran
side by side) and to compile them. What is left is the sample's own, mostly the check on the host. The machine has two cores and ran
other programs beside, so the clock says more than it should.
";

const LIBRARY_HEAD: &str = "# NVIDIA's CUDALibrarySamples on our libraries

Written by `cargo xtask samples --library-samples` from `tools/data/library-samples.json`, which it writes too, and the reasons in
`tools/data/library-samples-notes.json`. The samples are NVIDIA's and no part of this tree: `--from DIR` or `LIBRARY_SAMPLES=DIR` names a
checkout of github.com/NVIDIA/CUDALibrarySamples, else it is cloned.

Tried are those for cuBLAS, cuBLASLt, cuFFT, cuRAND, cuSOLVER and cuSPARSE with odd names (there are none for cuDNN): of the folders of a library, in the order of the alphabet, the first, the third and so on. The others are
left for whoever wants to see ours meet what it was not made beside.

Each is built from what its own CMakeLists asks for, by nvcc 13.5 or the machine's own compiler, and run by `cudaway run` on two CPU
devices. Most print numbers and look at none of them. Where a sample's README shows what it printed on NVIDIA's GPU, it passes if it prints
the same here: words equal, numbers within 1e-5 of themselves and two of the last digit that is printed, as far as both go; else, and where
the README is known to be wrong, by its exit code. Times are seconds of a first run, as in [samples.md](samples.md).
";

/// The pages, by their paths.
pub fn all() -> Result<Vec<(String, String)>> {
    [&CUDA_SAMPLES, &LIBRARY_SAMPLES]
        .into_iter()
        .map(|collection| Ok((collection.page.to_owned(), markdown(collection)?)))
        .collect()
}

pub fn write(collection: &Collection) -> Result<()> {
    Ok(fs::write(setup::root().join(collection.page), markdown(collection)?)?)
}

fn markdown(collection: &Collection) -> Result<String> {
    let (results, notes) = (Results::read(collection)?, Notes::read(collection)?);
    let (drawing, rest): (Vec<&Sample>, Vec<&Sample>) = results.samples.iter().partition(|it| it.is_graphics);
    let head = if collection.page == LIBRARY_SAMPLES.page { LIBRARY_HEAD } else { HEAD };
    let mut text = head.to_owned();
    let _ = writeln!(text, "\nThe samples are those of commit `{}`.", &collection.pin[..12]);
    let _ = write!(text, "{}", totals(&rest));
    text.push_str("\n| sample | result | s | processor | kernels | compiled | launches | reason |\n");
    text.push_str("|---|---|--:|--:|--:|--:|--:|---|\n");
    for sample in rest {
        ensure!(
            !notes.out_of_date(&sample.name, sample.how),
            "{}: {} is {} now; its reason is of another result",
            notes.file(),
            sample.name,
            sample.how.word()
        );
        let _ = writeln!(text, "{}", row(sample, &notes));
    }
    if !drawing.is_empty() {
        text.push_str(
            "\n## With graphics\n\nThey draw, and are not tried.\n\n| sample | reason |\n|---|---|\n",
        );
        for sample in drawing {
            let _ = writeln!(text, "| {}/{} | {} |", sample.chapter, sample.name, sample.said);
        }
    }
    Ok(text)
}

fn totals(samples: &[&Sample]) -> String {
    let count = |how| samples.iter().filter(|it| it.how == how).count();
    let counts: Vec<String> = [How::Passed, How::Failed, How::Waived, How::NotBuilt, How::NotRun]
        .iter()
        .map(|&how| format!("{} {}", count(how), how.word()))
        .collect();
    format!("Of {} without graphics: {}.\n", samples.len(), counts.join(", "))
}

fn row(sample: &Sample, notes: &Notes) -> String {
    let said = match sample.how {
        How::NotBuilt => sample.said.clone(),
        _ if sample.said.is_empty() => String::new(),
        _ => format!("`{}`", sample.said.replace('`', "'")),
    };
    let why = notes.why(&sample.name, sample.how).unwrap_or_default();
    let devices = notes.of(&sample.name).and_then(|note| note.devices.as_ref());
    let devices = devices.map(|names| format!("run with `CUDAWAY_DEVICE={names}`")).unwrap_or_default();
    let reason =
        [said.as_str(), &devices, why].into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(": ");
    let times = if sample.runs == 0 {
        " | | | |".to_owned()
    } else {
        format!(
            "{:.1} | {:.1} | {:.1} | {:.1} | {}",
            sample.wall, sample.cpu, sample.kernels, sample.compile, sample.launches
        )
    };
    let Sample { name, chapter, how, .. } = sample;
    format!("| {chapter}/{name} | {} | {times} | {} |", how.word(), reason.replace('|', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_counted() {
        let sample = |how| {
            let text = format!(
                r#"{{"name":"a","chapter":"b","how":"{how}","wall":1,"cpu":1,"kernels":0,"compile":0,"launches":0,"runs":1,"said":"","date":""}}"#
            );
            serde_json::from_str::<Sample>(&text).unwrap()
        };
        let samples = ["passed", "passed", "waived", "not-built"].map(sample);
        let said = totals(&samples.iter().collect::<Vec<_>>());
        assert_eq!(said, "Of 4 without graphics: 2 passed, 0 failed, 1 waived, 1 not built, 0 not run.\n");
    }
}
