//! What was counted, kept in tools/data/settings.json so that each corpus can be counted by itself. Only a run writes there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::setup;

const FILE: &str = "tools/data/settings.json";

#[derive(Default, Serialize, Deserialize)]
pub struct Results {
    pub corpora: Vec<Counted>,
}

#[derive(Serialize, Deserialize)]
pub struct Counted {
    pub name: String,
    pub what: String,
    pub date: String,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Serialize, Deserialize)]
pub struct Counts {
    pub files: usize,
    /// Kernels of each setting by its name, `-` for those that are refused.
    pub settings: BTreeMap<String, usize>,
    /// Of those that are not in `simd`: setting and reason.
    pub reasons: Vec<Reason>,
}

#[derive(Serialize, Deserialize)]
pub struct Reason {
    pub setting: String,
    pub why: String,
    pub kernels: usize,
    /// One of them.
    pub example: String,
}

impl Counts {
    /// From the lines of the compiler's example. Kernels of one name that fare alike count once: headers give many files the same.
    pub fn of(said: &str, files: usize) -> Counts {
        let mut seen = BTreeSet::new();
        let mut settings: BTreeMap<String, usize> = BTreeMap::new();
        let mut reasons: BTreeMap<(String, String), (usize, String)> = BTreeMap::new();
        for line in said.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [_, kernel, setting, _, not_simd, not_warp] = fields[..] else { continue };
            if !seen.insert((kernel, setting, not_simd, not_warp)) {
                continue;
            }
            *settings.entry(setting.to_owned()).or_default() += 1;
            if setting != "simd" {
                let why = if setting == "lane" { not_warp } else { not_simd };
                let reason = reasons.entry((setting.to_owned(), without_numbers(first_of(why))));
                reason.or_insert_with(|| (0, kernel.to_owned())).0 += 1;
            }
        }
        let reason = |((setting, why), (kernels, example))| Reason { setting, why, kernels, example };
        let mut reasons: Vec<Reason> = reasons.into_iter().map(reason).collect();
        reasons.sort_by(|a, b| (&a.setting, b.kernels, &a.why).cmp(&(&b.setting, a.kernels, &b.why)));
        Counts { files, settings, reasons }
    }

    pub fn of_setting(&self, setting: &str) -> usize {
        self.settings.get(setting).copied().unwrap_or(0)
    }

    pub fn kernels(&self) -> usize {
        self.settings.values().sum()
    }

    pub fn line(&self) -> String {
        let [s, p, l, refused] = ["simd", "warp", "lane", "-"].map(|setting| self.of_setting(setting));
        format!("{} kernels: {s} in simd, {p} in warp, {l} in lane, {refused} refused", self.kernels())
    }
}

/// The first of several diagnostics, without its file and line.
fn first_of(why: &str) -> &str {
    let first = why.split("; ").next().unwrap_or(why);
    first.split_once("error: ").map_or(first, |(_, what)| what)
}

/// Reasons that differ in a number are one.
fn without_numbers(why: &str) -> String {
    let mut text = String::new();
    for c in why.chars() {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            _ => text.push(c),
        }
    }
    text
}

impl Results {
    pub fn read() -> Result<Results> {
        let Ok(text) = fs::read_to_string(setup::root().join(FILE)) else { return Ok(Results::default()) };
        serde_json::from_str(&text).context(FILE)
    }

    pub fn what(&self, name: &str) -> Option<&str> {
        self.corpora.iter().find(|it| it.name == name).map(|it| it.what.as_str())
    }

    pub fn put(&mut self, name: &str, what: &str, counts: Counts) {
        self.corpora.retain(|it| it.name != name);
        let (name, what, date) = (name.to_owned(), what.to_owned(), crate::samples::today());
        self.corpora.push(Counted { name, what, date, counts });
        self.corpora.sort_by(|a, b| a.name.cmp(&b.name));
    }

    pub fn save(&self) -> Result<()> {
        setup::keep(FILE, self)
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn kernels_that_fare_alike_count_once() {
        let said = "a.ptx\tk\tsimd\t16\t\t\nb.ptx\tk\tsimd\t16\t\t\nb.ptx\tm\tlane\t1\tx\twaits 12 times\nb.ptx\tn\tlane\t1\tx\twaits 7 times\n";
        let counts = Counts::of(said, 2);
        assert_eq!((counts.kernels(), counts.of_setting("lane")), (3, 2));
        let [reason] = &counts.reasons[..] else { panic!("one reason") };
        assert_eq!((reason.why.as_str(), reason.kernels, reason.example.as_str()), ("waits # times", 2, "m"));
    }
}
