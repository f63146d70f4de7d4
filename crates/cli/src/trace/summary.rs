//! What a traced program did, in a screen: what was missing first.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::read::{Call, Process};
use crate::table;

#[derive(Default)]
struct Sum {
    n: u64,
    nanoseconds: u64,
    longest: u64,
    n_failed: u64,
}

impl Sum {
    fn add(&mut self, nanoseconds: u64, has_failed: bool) {
        self.n += 1;
        self.nanoseconds += nanoseconds;
        self.longest = self.longest.max(nanoseconds);
        self.n_failed += u64::from(has_failed);
    }
}

pub fn text(processes: &[Process]) -> String {
    let calls = || processes.iter().flat_map(|process| &process.calls);
    if calls().next().is_none() {
        return "cudaway: no CUDA call reached us\n".to_owned();
    }
    let mut text = String::new();
    let missing: BTreeMap<&str, u64> =
        calls().filter(|call| call.is_unsupported()).fold(BTreeMap::new(), |mut sum, call| {
            *sum.entry(call.name.as_str()).or_default() += 1;
            sum
        });
    if !missing.is_empty() {
        let names = missing.iter().map(|(name, n)| format!("{name} ({n})")).collect::<Vec<_>>();
        _ = writeln!(text, "not supported: {}\n", names.join(", "));
    }

    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for call in calls() {
        sums.entry(&call.name).or_default().add(call.nanoseconds, call.has_failed());
    }
    section(&mut text, "call", sums.iter().map(|(name, sum)| ((*name).to_owned(), sum)));

    let mut kernels: BTreeMap<String, Sum> = BTreeMap::new();
    for run in processes.iter().flat_map(|process| &process.runs) {
        kernels.entry(run.name.clone()).or_default().add(run.nanoseconds, false);
    }
    if kernels.is_empty() {
        // None ended before the program did, or its HIP has no events; who was launched is known all the same.
        for call in calls().filter(|call| call.depth == 0) {
            if let Some(kernel) = &call.kernel {
                kernels
                    .entry(format!("{kernel} (launching)"))
                    .or_default()
                    .add(call.nanoseconds, call.has_failed());
            }
        }
    }
    section(&mut text, "kernel", kernels.iter().map(|(name, sum)| (name.clone(), sum)));

    let mut compiles: BTreeMap<String, Sum> = BTreeMap::new();
    for compile in processes.iter().flat_map(|process| &process.compiles) {
        let what = format!("{} ({}, {})", compile.name, compile.block, compile.tier);
        compiles.entry(what).or_default().add(compile.nanoseconds, false);
    }
    section(&mut text, "code", compiles.iter().map(|(name, sum)| (name.clone(), sum)));

    let copies = copies(calls());
    if !copies.is_empty() {
        let words = copies.iter().map(|(way, (n, bytes))| format!("{way} {bytes} bytes in {n}"));
        _ = writeln!(text, "copies: {}", words.collect::<Vec<_>>().join(", "));
    }
    let threads: std::collections::BTreeSet<u64> = calls().map(|call| call.thread).collect();
    _ = writeln!(
        text,
        "{} calls by {} threads in {} processes",
        calls().count(),
        threads.len(),
        processes.len()
    );
    text
}

/// A table, the longest time first.
fn section<'s>(text: &mut String, what: &str, sums: impl Iterator<Item = (String, &'s Sum)>) {
    let mut sums: Vec<(String, &Sum)> = sums.collect();
    if sums.is_empty() {
        return;
    }
    sums.sort_by(|(a, x), (b, y)| y.nanoseconds.cmp(&x.nanoseconds).then_with(|| a.cmp(b)));
    let mut rows =
        vec![[what, "count", "total ms", "mean us", "max us", "failed"].map(str::to_owned).to_vec()];
    for (name, sum) in sums {
        rows.push(vec![
            name,
            sum.n.to_string(),
            format!("{:.3}", sum.nanoseconds as f64 / 1e6),
            format!("{:.2}", sum.nanoseconds as f64 / 1e3 / sum.n as f64),
            format!("{:.2}", sum.longest as f64 / 1e3),
            if sum.n_failed == 0 { String::new() } else { sum.n_failed.to_string() },
        ]);
    }
    text.push_str(&table::lines(&rows));
    text.push('\n');
}

/// Which way → how often, how many bytes. A runtime's call and the driver's that it makes are one copy.
fn copies<'c>(calls: impl Iterator<Item = &'c Call>) -> BTreeMap<&'static str, (u64, u64)> {
    let mut copies: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for call in calls.filter(|call| call.depth == 0 && call.result == Some(0)) {
        let is_copy = call.name.starts_with("cuMemcpy") || call.name.starts_with("cudaMemcpy");
        let bytes =
            call.given("ByteCount").or_else(|| call.given("count")).and_then(|n| n.parse::<u64>().ok());
        if let (true, Some(bytes)) = (is_copy, bytes) {
            let sum = copies.entry(way(call)).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
    }
    copies
}

fn way(call: &Call) -> &'static str {
    for (word, way) in [("HtoD", "to the device"), ("DtoH", "to the host"), ("DtoD", "on the device")] {
        if call.name.contains(word) {
            return way;
        }
    }
    let kind = call.given("kind").and_then(|kind| kind.split(['(', ')']).nth(1));
    match (kind, call.name.as_str()) {
        (Some("1"), _) => "to the device",
        (Some("2"), _) => "to the host",
        (Some("3"), _) => "on the device",
        (_, name) if name.contains("ToSymbol") => "to the device",
        (_, name) if name.contains("FromSymbol") => "to the host",
        _ => "wherever the addresses lie",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::read::process;

    #[test]
    fn what_is_missing_comes_first_and_a_copy_counts_once() {
        let line = |name: &str, start: u64, ns: u64, result: i64, given: &str| {
            format!(
                r#"{{"call":"{name}","thread":1,"start":{start},"ns":{ns},"result":{result},"in":{{{given}}},"out":{{}}}}"#
            )
        };
        let lines = [
            line("cudaMemcpy", 0, 1000, 0, r#""count":"4096","kind":"cudaMemcpyKind(1)""#),
            line("cuMemcpyHtoD_v2", 100, 800, 0, r#""ByteCount":"4096""#),
            line("cuMemcpyDtoH_v2", 2000, 100, 0, r#""ByteCount":"16""#),
            line("cuMulticastCreate", 3000, 10, 801, ""),
            line("nvmlDeviceGetMigMode", 4000, 10, 3, ""),
            r#"{"kernel":"_Z3addv","plain":"add()","start":5000,"ns":2500000}"#.to_owned(),
        ];
        let text = text(&[process(1, &lines.join("\n"))]);
        assert!(
            text.starts_with("not supported: cuMulticastCreate (1), nvmlDeviceGetMigMode (1)\n"),
            "{text}"
        );
        assert!(
            text.contains("copies: to the device 4096 bytes in 1, to the host 16 bytes in 1\n"),
            "{text}"
        );
        let row = text.lines().find(|line| line.starts_with("add()")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["add()", "1", "2.500", "2500.00", "2500.00"]);
        assert!(text.ends_with("5 calls by 1 threads in 1 processes\n"), "{text}");
    }

    #[test]
    fn a_program_without_a_call_is_said_to_be_one() {
        assert_eq!(text(&[]), "cudaway: no CUDA call reached us\n");
    }
}
