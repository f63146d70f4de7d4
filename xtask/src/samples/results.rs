//! How each sample ended, kept in tools/data so that each can be run by itself and the page still shows all.
//! Only a run writes there.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::cmake::Folder;
use super::collection::Collection;
use super::name_of;
use super::notes::Notes;
use crate::setup;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    Passed,
    Failed,
    /// It says itself that the device, or the machine, lacks what it shows.
    Waived,
    NotBuilt,
    /// No run has come to it yet.
    NotRun,
}

impl How {
    pub fn word(self) -> &'static str {
        match self {
            How::Passed => "passed",
            How::Failed => "failed",
            How::Waived => "waived",
            How::NotBuilt => "not built",
            How::NotRun => "not run",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    pub name: String,
    /// `0_Introduction`
    pub chapter: String,
    pub how: How,
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_graphics: bool,
    /// It was not built, and nothing is known to be missing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_broken: bool,
    /// Seconds of all its runs: on the clock, of the processor, in kernels, and to compile them.
    pub wall: f64,
    pub cpu: f64,
    pub kernels: f64,
    pub compile: f64,
    pub launches: u64,
    /// How often it was run, with the arguments that its makers test it with.
    pub runs: usize,
    /// Why it was not built, or what it said where it did not pass.
    pub said: String,
    pub date: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(it: &bool) -> bool {
    !it
}

impl Sample {
    pub fn new(folder: &Folder, home: &Path) -> Sample {
        let below = folder.binary.strip_prefix(home.join("build/Samples")).unwrap_or(&folder.binary);
        Sample {
            name: name_of(folder),
            chapter: below.parent().unwrap_or(below).display().to_string(),
            how: How::NotRun,
            is_graphics: false,
            is_broken: false,
            wall: 0.0,
            cpu: 0.0,
            kernels: 0.0,
            compile: 0.0,
            launches: 0,
            runs: 0,
            said: String::new(),
            date: super::run::today(),
        }
    }

    pub fn line(&self) -> String {
        format!("{} ({:.1} s, of the processor {:.1} s)", self.how.word(), self.wall, self.cpu)
    }
}

#[derive(Serialize, Deserialize)]
pub struct Results {
    /// The commit of the samples.
    pub commit: String,
    pub samples: Vec<Sample>,
}

impl Results {
    /// What earlier runs of the same commit left.
    pub fn read(collection: &Collection) -> Result<Results> {
        let (file, pin) = (collection.results, collection.pin);
        let Ok(text) = fs::read_to_string(setup::root().join(file)) else {
            return Ok(Results { commit: pin.to_owned(), samples: Vec::new() });
        };
        let results: Results = serde_json::from_str(&text).context(file)?;
        ensure!(results.commit == pin, "{file} is of {}, and the pin is {pin}: remove it", results.commit);
        Ok(results)
    }

    /// Whether a run has come to it.
    pub fn has(&self, name: &str) -> bool {
        self.samples.iter().any(|sample| sample.name == name && sample.how != How::NotRun)
    }

    /// Keeps a place for each sample, so that none is forgotten.
    pub fn know(&mut self, all: &[Sample]) {
        self.samples.retain(|old| all.iter().any(|it| it.name == old.name));
        for sample in all {
            if !self.samples.iter().any(|it| it.name == sample.name) {
                self.put(sample.clone());
            }
        }
    }

    pub fn put(&mut self, sample: Sample) {
        self.samples.retain(|it| it.name != sample.name);
        self.samples.push(sample);
        self.samples.sort_by(|a, b| (&a.chapter, &a.name).cmp(&(&b.chapter, &b.name)));
    }

    pub fn save(&self, collection: &Collection) -> Result<()> {
        setup::keep(collection.results, self)
    }

    /// Those that failed, or were not built though nothing is known to be missing, without a reason in the notes; and those
    /// whose reason is one of another result.
    pub fn unexplained(&self, notes: &Notes) -> Vec<String> {
        let bad = self.samples.iter().filter(|it| {
            let is_trouble = it.how == How::Failed || it.is_broken;
            is_trouble && notes.why(&it.name, it.how).is_none() || notes.out_of_date(&it.name, it.how)
        });
        bad.map(|it| it.name.clone()).collect()
    }
}
