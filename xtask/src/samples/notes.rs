//! tools/data/samples-notes.json, which people write: limits, and reasons. A reason says of which result it is; where a run
//! gives another, the reason is out of date, and that is an error.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::cmake::Folder;
use super::name_of;
use super::results::How;
use crate::setup;

const FILE: &str = "tools/data/samples-notes.json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Seconds, where it needs more than others.
    pub limit: Option<u64>,
    /// The result that `why` is the reason of.
    pub of: Option<How>,
    #[serde(default)]
    pub why: String,
}

/// By the name of the sample.
pub struct Notes(BTreeMap<String, Note>);

impl Notes {
    pub fn read() -> Result<Notes> {
        let text = fs::read_to_string(setup::root().join(FILE)).context(FILE)?;
        Ok(Notes(serde_json::from_str(&text).context(FILE)?))
    }

    pub fn of(&self, sample: &str) -> Option<&Note> {
        self.0.get(sample)
    }

    /// Every name is a sample's.
    pub fn are_of(&self, folders: &[Folder]) -> Result<()> {
        for name in self.0.keys() {
            ensure!(folders.iter().any(|it| name_of(it) == *name), "{FILE}: no sample is called {name}");
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
