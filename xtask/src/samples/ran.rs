//! A program that a folder has built, run once, and what of it is kept: for `cargo xtask cutlass` and `cargo xtask frontend`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use testkit::Ended;

use super::{How, Profile, once, processor, profile, tenths, today};
use crate::setup;

#[derive(Serialize, Deserialize)]
pub struct Ran {
    pub name: String,
    pub how: How,
    pub wall: f64,
    cpu: f64,
    kernels: f64,
    compile: f64,
    launches: u64,
    pub said: String,
    date: String,
}

/// How it is run.
pub struct Way<'a> {
    pub lib: &'a Path,
    /// A folder of its own, which keeps what it wrote.
    pub dir: &'a Path,
    pub limit: Duration,
    pub variables: &'a [(&'a str, &'a str)],
}

impl Ran {
    pub fn new(
        name: &str,
        program: &Path,
        arguments: &[String],
        way: &Way,
        judge: impl FnOnce(&Ended) -> (How, String),
    ) -> Result<Ran> {
        fs::create_dir_all(way.dir)?;
        let before = processor()?;
        let ended = once(program, arguments, way.lib, way.dir, way.limit, way.variables)?;
        let cpu = processor()? - before;
        fs::write(way.dir.join("run.txt"), format!("{}\n{}", ended.stdout, ended.stderr))?;
        let (how, said) = judge(&ended);
        let Profile { kernels, compile, launches } = profile(&ended.stderr);
        Ok(Ran {
            name: name.to_owned(),
            how,
            wall: tenths(ended.took.as_secs_f64()),
            cpu: tenths(cpu),
            kernels: tenths(kernels),
            compile: tenths(compile),
            launches,
            said,
            date: today(),
        })
    }

    /// Of a table: the result, the times and launches.
    pub fn cells(&self) -> String {
        format!(
            "{} | {:.1} | {:.1} | {:.1} | {:.1} | {}",
            self.how.word(),
            self.wall,
            self.cpu,
            self.kernels,
            self.compile,
            self.launches
        )
    }

    /// What it said, for a table.
    pub fn quoted(&self) -> String {
        let said = self.said.replace(['`', '|'], "'");
        if said.is_empty() { said } else { format!("`{said}`") }
    }
}

/// What a file of tools/data keeps of them.
pub fn kept<T: DeserializeOwned>(path: &str) -> Result<Vec<T>> {
    match fs::read_to_string(setup::root().join(path)) {
        Ok(text) => serde_json::from_str(&text).with_context(|| path.to_owned()),
        Err(_) => Ok(vec![]),
    }
}
