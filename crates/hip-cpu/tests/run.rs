//! Every `// run:` row of `tests/run/**/*.ptx`, in settings `lane`, `warp` and `simd` (`hip_cpu::harness::rows` has the form).
//! `ROWS=name` runs the files whose path below `run` contains it.

use std::path::{Path, PathBuf};

use hip_cpu::harness::Draw;
use rayon::prelude::*;

#[test]
fn every_row_gives_its_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    let wanted = std::env::var("ROWS").unwrap_or_default();
    let mut files = ptx_files(&folder);
    files.retain(|path| path.strip_prefix(&folder).unwrap().to_string_lossy().contains(&wanted));
    assert!(!files.is_empty(), "no file in tests/run matches ROWS={wanted}");
    files.sort();
    let draw = Draw::now();
    let run = |path: &PathBuf| {
        let name = path.strip_prefix(&folder).unwrap().to_string_lossy().into_owned();
        hip_cpu::harness::rows::run(&name, &std::fs::read_to_string(path).unwrap(), draw)
    };
    let reports: Vec<_> = files.par_iter().with_max_len(1).map(run).collect();
    let mut failures = vec![];
    let (mut n_rows, mut n_warp, mut n_simd) = (0, 0, 0);
    for report in reports {
        n_rows += report.n_rows;
        n_warp += report.n_warp;
        n_simd += report.n_simd;
        for line in report.refused {
            println!("not {line}");
        }
        failures.extend(report.failures);
    }
    println!("{n_rows} rows, {n_warp} of them also in warp, {n_simd} in simd");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// The PTX files of a folder and of those below it.
fn ptx_files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| if path.is_dir() { ptx_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .collect()
}
