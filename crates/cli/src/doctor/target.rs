//! A program as it would be started: `cudaway run --verify` knows.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::finding::Finding;
use crate::own::{REFUSED_FIX, REFUSED_WHY};

pub fn check(lib: &Path, command: &[OsString]) -> Result<Vec<Finding>> {
    let own = std::env::current_exe().context("where this program lies")?;
    let output =
        Command::new(own).args(["run", "--verify", "--lib"]).arg(lib).arg("--").args(command).output();
    let output = output.context("cudaway run --verify")?;
    Ok(read(&String::from_utf8_lossy(&output.stderr), output.status.success()))
}

/// Its lines are `cudaway: not reached: why`, `cudaway: reached in part: why` and `cudaway: refused: why`.
fn read(said: &str, is_reached: bool) -> Vec<Finding> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("cudaway: "));
    let mut findings: Vec<Finding> = lines.map(finding).collect();
    if is_reached && findings.iter().all(|it| it.id == REFUSED) {
        findings.insert(0, Finding::fine("target", "the program's loader takes our libraries"));
    }
    findings
}

const REFUSED: &str = "target.refused";

fn finding(line: &str) -> Finding {
    if let Some(why) = line.strip_prefix("refused: ") {
        return Finding::warning(REFUSED, why, REFUSED_WHY, REFUSED_FIX);
    }
    if let Some(why) = line.strip_prefix("reached in part: ") {
        return Finding::warning(
            "target.partly",
            why,
            "some of its CUDA calls do not come to us",
            "try `cudaway run --hooks dlsym` or `--audit`, which reach more; `cudaway doctor --loader` starts the program and sees who answers",
        );
    }
    Finding::fault(
        "target.unreached",
        line.strip_prefix("not reached: ").unwrap_or(line),
        "the program would run without us",
        "remove the reason that is named above, or start it with `cudaway run --force` if only the programs that it starts matter",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_run_become_findings() {
        let found = read("cudaway: not reached: x is set-user-ID: …\ncudaway: reached in part: y\n", false);
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), ["target.unreached", "target.partly"]);
        assert_eq!(found[0].seen, "x is set-user-ID: …");
        assert_eq!(read("", true)[0].id, "target");
        let refused = read("cudaway: refused: it would load libnccl.so.2, which only refuses\n", true);
        assert_eq!(refused.iter().map(|it| it.id).collect::<Vec<_>>(), ["target", "target.refused"]);
    }
}
