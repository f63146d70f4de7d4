//! The manual pages and completions that lie beside the objects: each command has a page that man's formatter takes without a
//! warning, and shells read their files and complete by them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::Installed;

use super::report::{Outcome, Report};
use crate::setup;

pub fn run(installed: &Installed, report: &mut Report) {
    let share = installed.lib().with_file_name("share");
    report.note("each command of cudaway has a manual page", pages(installed, &share));
    report.note("man's formatter takes the manual pages without a warning", formatted(&share));
    report.note("bash completes cudaway's commands and options", bash(&share));
    for (shell, file) in
        [("zsh", "zsh/site-functions/_cudaway"), ("fish", "fish/vendor_completions.d/cudaway.fish")]
    {
        report.note(&format!("{shell} reads its completions of cudaway"), parsed(shell, &share.join(file)));
    }
}

/// The commands that `--help` lists are those that have pages.
fn pages(installed: &Installed, share: &Path) -> Result<()> {
    let tool = installed.lib().with_file_name("bin").join("cudaway");
    let help = setup::said(Command::new(tool).arg("--help"))?;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let mut wanted: BTreeSet<String> =
        listed.filter(|name| *name != "help").map(|name| format!("cudaway-{name}.1")).collect();
    ensure!(wanted.len() > 5, "{help}");
    wanted.insert("cudaway.1".to_owned());
    let found: BTreeSet<String> = files(&share.join("man/man1"))?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    let differences: Vec<_> = wanted.symmetric_difference(&found).collect();
    ensure!(differences.is_empty(), "commands or pages too many: {differences:?}");
    let run = fs::read_to_string(share.join("man/man1/cudaway-run.1"))?;
    ensure!(
        run.contains("cudaway run") && run.contains("\\-\\-no\\-claims"),
        "the page of run lacks its options"
    );
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

fn formatted(share: &Path) -> Outcome {
    if setup::which("groff").is_none() {
        return Outcome::Skipped("groff is not here (Debian: groff-base)".to_owned());
    }
    let check = || -> Result<()> {
        for page in files(&share.join("man/man1"))? {
            let mut groff = Command::new("groff");
            let output = groff.args(["-man", "-ww", "-z", "-Tutf8"]).arg(&page).output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
        }
        Ok(())
    };
    check().into()
}

/// What bash would offer for these words.
const BASH: &str = r#"
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_cudaway cudaway "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn bash(share: &Path) -> Result<()> {
    let file = share.join("bash-completion/completions/cudaway");
    for (words, wanted) in [(&["cudaway", "do"][..], "doctor"), (&["cudaway", "run", "--no"], "--no-claims")]
    {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", BASH, "bash"]).arg(&file).args(words);
        let said = setup::said(&mut bash)?;
        ensure!(said == wanted, "{words:?} is completed by {said:?}, not {wanted}");
    }
    Ok(())
}

fn parsed(shell: &str, file: &Path) -> Outcome {
    if setup::which(shell).is_none() {
        return Outcome::Skipped(format!("{shell} is not here"));
    }
    let check = || -> Result<()> {
        ensure!(file.exists(), "there is no {}", file.display());
        setup::said(Command::new(shell).arg("-n").arg(file)).map(drop)
    };
    check().into()
}
