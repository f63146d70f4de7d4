//! Libraries through their C names, by programs in tools/dnn-proof, tools/solver-proof and tools/sparse-proof beside NumPy and SciPy:
//! tensors and matrices drawn anew in each run, and calls that are wrong. What they share is tools/proof.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Installed, Run};

use super::blas::tell;
use super::kernels;
use super::report::{Outcome, Report};
use super::rocm::Recorder;
use crate::bench::dnn;
use crate::libraries::Object;
use crate::setup;

const WHEELS: &[&str] = &["numpy==2.4.6", "ml_dtypes==0.5.4", "scipy==1.17.1"];

type Fetch = fn() -> Result<PathBuf>;

/// How a library is tried.
pub struct Proof {
    title: &'static str,
    /// Its name in its description.
    library: &'static str,
    seed: &'static str,
    /// Its variable.
    chosen_by: &'static str,
    script: &'static str,
    /// Whether the oldest object is tried too: it has names that the newest has not.
    oldest: bool,
    /// What its functions begin with, those that make and destroy a handle, and whether `GetVersion` takes one;
    /// none where the version is not that of the process's CUDA.
    names: &'static [&'static str],
    /// A library that goes in front of our own code on the CPU device, by its name and how it is fetched: the same is tried again with it.
    in_front: Option<(&'static str, Fetch)>,
    /// Whether it computes on an AMD GPU by our own code on copies in the host's memory: the same is tried again there.
    on_copies: bool,
    /// Kernels of its own, by their folder and names: the same is tried again with them on the CPU device.
    kernels: Option<(&'static str, &'static [&'static str])>,
}

/// Both majors, by its definition; each says its version there.
pub const DNN: Proof = Proof {
    title: "cuDNN beside its definition",
    library: "cuDNN",
    seed: "DNN_SEED",
    chosen_by: "CUDAWAY_DNN",
    script: "tools/dnn-proof/proof.py",
    oldest: false,
    names: &[],
    in_front: Some(("oneDNN", dnn::onednn)),
    on_copies: true,
    kernels: Some((
        "crates/libraries/cudnn/api/kernels",
        &["elements", "rows", "products", "attention", "convolutions", "windows", "moves", "cells"],
    )),
};

/// LAPACK's own measures, beside NumPy's and SciPy's LAPACK.
pub const SOLVER: Proof = Proof {
    title: "cuSOLVER beside LAPACK",
    library: "cuSOLVER",
    seed: "SOLVER_SEED",
    chosen_by: "CUDAWAY_SOLVER",
    script: "tools/solver-proof/proof.py",
    oldest: false,
    names: &["cusolver", "cusolverDnCreate", "cusolverDnDestroy"],
    in_front: None,
    on_copies: true,
    kernels: None,
};

/// Each format, type, width of indices and base.
pub const SPARSE: Proof = Proof {
    title: "cuSPARSE beside SciPy",
    library: "cuSPARSE",
    seed: "SPARSE_SEED",
    chosen_by: "CUDAWAY_SPARSE",
    script: "tools/sparse-proof/proof.py",
    oldest: true,
    names: &["cusparse", "cusparseCreate", "cusparseDestroy", "handle"],
    in_front: None,
    on_copies: true,
    kernels: None,
};

impl Proof {
    pub fn run(&self, installed: &Installed, report: &mut Report) {
        if let Err(error) = setup::wheels(WHEELS) {
            return report.note(self.title, Outcome::Skipped(format!("SciPy cannot be had: {error:#}")));
        }
        let seed = super::seed(self.seed);
        println!("again: {}={seed}", self.seed);
        self.tell(self.title, self.prove(installed, seed), report);
        if self.oldest {
            let title = format!("{}, CUDA 11's object", self.title);
            self.tell(&title, self.prove_oldest(installed, seed), report);
        }
        if self.on_copies {
            let title = format!("{}, on copies of memory that the host cannot read", self.title);
            self.tell(&title, self.prove_on_copies(installed, seed, false), report);
            if self.oldest {
                let title = format!("{title}, CUDA 11's object");
                self.tell(&title, self.prove_on_copies(installed, seed, true), report);
            }
        }
        if let Some((folder, names)) = self.kernels {
            let of_source = kernels::are_of_their_source(folder, names);
            let outcome = of_source.unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
            report.note(&format!("{}'s kernels are made of their sources", self.library), outcome);
            let title = format!("{}, by its kernels", self.title);
            self.tell(&title, self.prove_by_kernels(installed, seed, names), report);
        }
        if let Some((name, fetch)) = self.in_front {
            let title = format!("{}, {name} in front", self.title);
            match fetch() {
                Ok(path) => self.tell(&title, self.prove_in_front(installed, seed, &path), report),
                Err(error) => {
                    report.note(&title, Outcome::Skipped(format!("{name} cannot be had: {error:#}")));
                }
            }
        }
        if self.names.is_empty() {
            return;
        }
        let what = format!("each of {}'s objects says its CUDA's version", self.library);
        report.note(&what, self.versions(installed));
    }

    /// A program of ours on the CPU device.
    fn python(&self, installed: &Installed, script: &str) -> Result<Run> {
        let run = installed.found(setup::venv()?).env("CUDAWAY_DEVICE", "cpu");
        // NumPy's matrices are small here, and its threads would wait in turns for processors that other tests have.
        let run = run.env("OPENBLAS_NUM_THREADS", "1");
        Ok(run.env(self.chosen_by, "cpu").arg(setup::root().join(script)))
    }

    fn tell(&self, title: &str, ended: Result<Ended>, report: &mut Report) {
        match ended {
            Ok(ended) => tell(title, &ended, report),
            Err(error) => report.note(title, Outcome::Failed(format!("{error:#}"))),
        }
    }

    /// The library itself by its majors; not its parts, and none that stands beside it in its folder (cuSOLVERMg).
    fn objects(&self) -> impl DoubleEndedIterator<Item = &'static Object> {
        let objects = &crate::libraries::named(self.library).objects;
        let stem = objects.first().map(|object| object.stem.as_str());
        objects.iter().filter(move |object| !object.part && Some(object.stem.as_str()) == stem)
    }

    fn prove(&self, installed: &Installed, seed: u64) -> Result<Ended> {
        let newest = self.objects().next_back().context("an object")?;
        self.prove_object(installed, seed, &newest.file(), "libcudart.so.13")
    }

    fn prove_oldest(&self, installed: &Installed, seed: u64) -> Result<Ended> {
        let oldest = self.objects().next().context("an object")?;
        self.prove_object(installed, seed, &oldest.file(), "libcudart.so.11.0")
    }

    fn prove_object(&self, installed: &Installed, seed: u64, object: &str, runtime: &str) -> Result<Ended> {
        self.proof(installed, seed, object, runtime)?.run()
    }

    fn proof(&self, installed: &Installed, seed: u64, object: &str, runtime: &str) -> Result<Run> {
        let lib = installed.lib();
        let run = self.python(installed, self.script)?.arg(seed.to_string());
        Ok(run.arg(lib.join(object)).arg(lib.join(runtime)).limit(Duration::from_secs(1200)))
    }

    /// On a device that the driver takes for an AMD GPU, and whose memory the host cannot read: a copy that is missing ends the program.
    fn prove_on_copies(&self, installed: &Installed, seed: u64, oldest: bool) -> Result<Ended> {
        // Not in the checkout: what a variable names is not opened where others may write, and a checkout may lie there.
        let folder = testkit::temporary()?;
        let far = Recorder::far(installed, folder.path())?;
        let mut objects = self.objects();
        let object = if oldest { objects.next() } else { objects.next_back() }.context("an object")?;
        let runtime = if oldest { "libcudart.so.11.0" } else { "libcudart.so.13" };
        let run = self.proof(installed, seed, &object.file(), runtime)?;
        far.on_far(run).env(self.chosen_by, "own").env("PROOF_ON_COPIES", "1").run()
    }

    /// By kernels on the CPU device; the log says that each module computes. In baseline code: what is tried is the kernels, whose results
    /// are the same in any code, and the best code of all of them takes minutes.
    fn prove_by_kernels(&self, installed: &Installed, seed: u64, names: &[&str]) -> Result<Ended> {
        let newest = self.objects().next_back().context("an object")?;
        let run = self.proof(installed, seed, &newest.file(), "libcudart.so.13")?;
        let run = run.env(self.chosen_by, "kernels").env("PROOF_BY_KERNELS", "1");
        let ended = run.env("CUDAWAY_CPU_TIER", "baseline").env("CUDAWAY_LOG", "dnn=info").run()?;
        let computes =
            |name: &&str| ended.stderr.contains(&format!("our own kernels compute on the device: {name}"));
        ensure!(names.iter().all(computes), "a module does not compute: {}", ended.describe());
        Ok(ended)
    }

    /// With the library named in the variable; the log says that it computes.
    fn prove_in_front(&self, installed: &Installed, seed: u64, path: &Path) -> Result<Ended> {
        let newest = self.objects().next_back().context("an object")?;
        let run = self.proof(installed, seed, &newest.file(), "libcudart.so.13")?;
        let ended = run.env(self.chosen_by, path).env("CUDAWAY_LOG", "dnn=info").run()?;
        ensure!(ended.stderr.contains("computes what it has"), "it is not in front: {}", ended.describe());
        Ok(ended)
    }

    /// The version that each says is that of its CUDA's runtime.
    fn versions(&self, installed: &Installed) -> Result<()> {
        let library = crate::libraries::named(self.library);
        for object in self.objects() {
            for major in &object.cuda {
                let runtime = if *major == 11 { "11.0".to_owned() } else { major.to_string() };
                let ended = self
                    .python(installed, "tools/proof/version.py")?
                    .arg(installed.lib().join(object.file()))
                    .arg(installed.lib().join(format!("libcudart.so.{runtime}")))
                    .args(self.names)
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
}
