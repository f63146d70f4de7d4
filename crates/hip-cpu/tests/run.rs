//! Every `// run:` row of `tests/run/*.ptx`, in setting L and in setting S (`hip_cpu::harness::rows` has the form).
//! `ROWS=name` runs the files whose name contains it.

use std::path::Path;

#[test]
fn every_row_gives_its_results_in_every_setting() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run");
    let wanted = std::env::var("ROWS").unwrap_or_default();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "ptx"))
        .filter(|path| path.file_name().unwrap().to_string_lossy().contains(&wanted))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no file in tests/run matches ROWS={wanted}");
    let mut failures = vec![];
    let (mut n_rows, mut n_simd) = (0, 0);
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let report = hip_cpu::harness::rows::run(&name, &std::fs::read_to_string(&path).unwrap());
        n_rows += report.n_rows;
        n_simd += report.n_simd;
        for line in report.not_simd {
            println!("not in S: {line}");
        }
        failures.extend(report.failures);
    }
    println!("{n_rows} rows, {n_simd} of them also in S");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
