//! cuSOLVER through its C names, by programs in tools/solver-proof: matrices drawn anew in each run, results in LAPACK's own measures and
//! beside NumPy's and SciPy's LAPACK, and calls that are wrong.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Installed};

use super::blas::tell;
use super::report::{Outcome, Report};
use crate::setup;

const WHEELS: &[&str] = &["numpy==2.4.6", "ml_dtypes==0.5.4", "scipy==1.17.1"];

pub fn run(installed: &Installed, report: &mut Report) {
    let title = "cuSOLVER beside LAPACK";
    if let Err(error) = setup::wheels(WHEELS) {
        return report.note(title, Outcome::Skipped(format!("SciPy cannot be had: {error:#}")));
    }
    let seed = super::seed("SOLVER_SEED");
    println!("again: SOLVER_SEED={seed}");
    match proof(installed, seed) {
        Ok(ended) => tell(title, &ended, report),
        Err(error) => report.note(title, Outcome::Failed(format!("{error:#}"))),
    }
    report.note("each of cuSOLVER's objects says its CUDA's version", versions(installed));
}

fn proof(installed: &Installed, seed: u64) -> Result<Ended> {
    let lib = installed.lib();
    installed
        .found(setup::venv()?)
        .env("CUDAWAY_DEVICE", "cpu")
        .env("CUDAWAY_SOLVER", "cpu")
        .arg(setup::root().join("tools/solver-proof/proof.py"))
        .arg(seed.to_string())
        .arg(lib.join("libcusolver.so.12"))
        .arg(lib.join("libcudart.so.13"))
        .limit(Duration::from_secs(1200))
        .run()
}

/// The version that each says is that of its CUDA's runtime.
fn versions(installed: &Installed) -> Result<()> {
    let library = crate::libraries::named("cuSOLVER");
    for object in &library.objects {
        for major in &object.cuda {
            let runtime = if *major == 11 { "11.0".to_owned() } else { major.to_string() };
            let ended = installed
                .found(setup::venv()?)
                .env("CUDAWAY_DEVICE", "cpu")
                .arg(setup::root().join("tools/solver-proof/version.py"))
                .arg(installed.lib().join(object.file()))
                .arg(installed.lib().join(format!("libcudart.so.{runtime}")))
                .limit(Duration::from_secs(60))
                .run()?;
            let wanted = library.releases.get(major).context("a release")?;
            ensure!(
                ended.passed() && ended.stdout.lines().next() == Some(wanted),
                "{} in CUDA {major}, which is {wanted}: {}",
                object.file(),
                ended.describe()
            );
        }
    }
    Ok(())
}
