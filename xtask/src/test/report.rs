//! What passed, failed and was skipped, said as it happens and once more at the end.

use std::time::Instant;

use anyhow::Result;

/// How one check ended.
pub enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl From<Result<()>> for Outcome {
    fn from(result: Result<()>) -> Outcome {
        match result {
            Ok(()) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }
}

#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: Vec<(String, String)>,
    skipped: Vec<(String, String)>,
}

impl Report {
    pub fn note(&mut self, name: &str, outcome: impl Into<Outcome>) {
        match outcome.into() {
            Outcome::Passed => {
                println!("ok      {name}");
                self.passed += 1;
            }
            Outcome::Failed(why) => {
                println!("FAILED  {name}: {why}");
                self.failed.push((name.to_owned(), why));
            }
            Outcome::Skipped(why) => {
                println!("skipped {name}: {why}");
                self.skipped.push((name.to_owned(), why));
            }
        }
    }

    /// Adds what another runner said as it happened.
    pub fn add(&mut self, passed: usize) {
        self.passed += passed;
    }

    /// Adds what a part found that had a report of its own.
    pub fn join(&mut self, other: Report) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
    }

    /// The closing lines; the last of them is the total. A failure ends the process with 1.
    pub fn finish(self, started: Instant) {
        println!("\n== result after {:.0} s", started.elapsed().as_secs_f64());
        for (name, why) in &self.skipped {
            println!("skipped {name}: {why}");
        }
        for (name, why) in &self.failed {
            println!("FAILED  {name}: {why}");
        }
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed.len(), self.skipped.len());
        if !self.failed.is_empty() {
            std::process::exit(1);
        }
    }
}
