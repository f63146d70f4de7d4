//! tools/data/…samples-notes.json, which people write: limits, and reasons. A reason says of which result it is; where a run
//! gives another, the reason is out of date, and that is an error.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::cmake::Folder;
use super::collection::Collection;
use super::name_of;
use super::results::How;
use crate::setup;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Seconds, where it needs more than others.
    pub limit: Option<u64>,
    /// `CUDAWAY_DEVICE`, where the sample waives itself on what the collection is run on.
    pub devices: Option<String>,
    /// The result that `why` is the reason of.
    pub of: Option<How>,
    #[serde(default)]
    pub why: String,
    /// What the sample's README shows is not what the sample prints on NVIDIA's GPUs: `why` says how that is known.
    #[serde(default)]
    pub readme_is_wrong: bool,
}

/// By the name of the sample.
pub struct Notes {
    file: &'static str,
    notes: BTreeMap<String, Note>,
}

impl Notes {
    pub fn read(collection: &Collection) -> Result<Notes> {
        let file = collection.notes;
        let text = fs::read_to_string(setup::root().join(file)).context(file)?;
        Ok(Notes { file, notes: serde_json::from_str(&text).context(file)? })
    }

    pub fn of(&self, sample: &str) -> Option<&Note> {
        self.notes.get(sample)
    }

    pub fn file(&self) -> &str {
        self.file
    }

    /// Every name is a sample's.
    pub fn are_of(&self, folders: &[Folder]) -> Result<()> {
        for name in self.notes.keys() {
            let is_one = folders.iter().any(|it| name_of(it) == *name);
            ensure!(is_one, "{}: no sample is called {name}", self.file);
        }
        Ok(())
    }

    /// The reason for this result of a sample, if one is written down.
    pub fn why(&self, sample: &str, how: How) -> Option<&str> {
        let note = self.of(sample)?;
        (note.of == Some(how) && !note.why.is_empty()).then_some(note.why.as_str())
    }

    /// A reason of another result than the one that a sample has.
    pub fn out_of_date(&self, sample: &str, how: How) -> bool {
        how != How::NotRun && self.of(sample).is_some_and(|note| note.of.is_some_and(|of| of != how))
    }
}
