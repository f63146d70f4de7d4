//! NVIDIA's own compilers asked for machine code: NVRTC, nvFatbin and nvPTXCompiler of several releases in programs of ours, which
//! load, link, pack and run what they get (examples/nvrtc).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run, TempDir};

use super::report::{Outcome, Report};
use super::tools::cudaway;
use crate::setup;

/// A release's libraries, from its wheels.
struct Release {
    version: &'static str,
    /// The ending of libnvrtc's name.
    nvrtc: &'static str,
    wheels: &'static [&'static str],
    /// The ending of libnvfatbin's name; 12.4 was the first to have one.
    nvfatbin: Option<&'static str>,
    /// Only with --all.
    is_further: bool,
}

const RELEASES: &[Release] = &[
    Release {
        version: "11.8",
        nvrtc: "11.2",
        wheels: &["nvidia-cuda-nvrtc-cu11==11.8.89"],
        nvfatbin: None,
        is_further: true,
    },
    Release {
        version: "12.0",
        nvrtc: "12",
        wheels: &["nvidia-cuda-nvrtc-cu12==12.0.140"],
        nvfatbin: None,
        is_further: true,
    },
    Release {
        version: "12.4",
        nvrtc: "12",
        wheels: &["nvidia-cuda-nvrtc-cu12==12.4.127", "nvidia-nvfatbin-cu12==12.4.127"],
        nvfatbin: Some("12"),
        is_further: false,
    },
    Release {
        version: "12.9",
        nvrtc: "12",
        wheels: &["nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-nvfatbin-cu12==12.9.82"],
        nvfatbin: Some("12"),
        is_further: true,
    },
    Release {
        version: "13.5",
        nvrtc: "13",
        wheels: &["nvidia-cuda-nvrtc==13.5.37", "nvidia-nvfatbin==13.5.37"],
        nvfatbin: Some("13"),
        is_further: false,
    },
];

const PTX_COMPILER: &str = "nvidia-nvptxcompiler==13.5.37";

pub fn run(all: bool, installed: &Installed, report: &mut Report) {
    for release in RELEASES {
        let version = release.version;
        if release.is_further && !all {
            let why = "asked for with --all, or by the part's name".to_owned();
            report.note(&format!("NVRTC {version} gives cubins"), Outcome::Skipped(why));
            continue;
        }
        let ready = Ready::new(release, installed);
        let ready = match ready {
            Ok(ready) => ready,
            Err(error) => {
                let why = format!("it cannot be had: {error:#}");
                report.note(&format!("NVRTC {version} gives cubins"), Outcome::Skipped(why));
                continue;
            }
        };
        let (opened, words) = (&ready.opened, &ready.libraries);
        for (how, run) in [
            ("opened, by cudaway run", cudaway(installed).arg("run").arg("--").arg(opened).args(words)),
            ("opened, preloaded", installed.preloaded(opened).args(words)),
            ("opened, before the driver", installed.found(opened).args(words).env("LATE", "1")),
            ("linked, by cudaway run", cudaway(installed).arg("run").arg("--").arg(&ready.linked)),
            ("linked, found", installed.found(&ready.linked)),
        ] {
            report.note(&format!("NVRTC {version} gives cubins, {how}"), ready.check(run));
        }
        report
            .note(&format!("NVRTC {version} as it is where the takeover is off"), ready.untouched(installed));
    }
    report.note("nvPTXCompiler 13.5 in a program gives what is loaded", ptx_compiler(installed));
}

/// A release's libraries and the programs that use them.
struct Ready {
    _folder: TempDir,
    log: PathBuf,
    libraries: Vec<PathBuf>,
    opened: PathBuf,
    linked: PathBuf,
    says: String,
}

impl Ready {
    fn new(release: &Release, installed: &Installed) -> Result<Ready> {
        let home = setup::download_cache()?.join("nvrtc").join(release.version);
        for wheel in release.wheels {
            setup::files_of_wheel(wheel, "/lib/libnv", &home)?;
        }
        let mut libraries = vec![home.join(format!("libnvrtc.so.{}", release.nvrtc))];
        libraries.extend(release.nvfatbin.map(|ending| home.join(format!("libnvfatbin.so.{ending}"))));
        let folder = testkit::temporary()?;
        let major = release.version.split('.').next().unwrap_or_default();
        let program = |name: &str, words: &[String]| -> Result<PathBuf> {
            let out = folder.path().join(name);
            let mut cc = compiler("examples/nvrtc/cubin.c");
            setup::run(cc.args(words).args(["-ldl", "-lpthread", "-o"]).arg(&out))?;
            Ok(out)
        };
        let opened = program("opened", &[])?;
        let mut words = vec![
            "-DLINKED".to_owned(),
            format!("-DHAS_FATBIN={}", u8::from(release.nvfatbin.is_some())),
            format!("-Wl,-rpath,{}", home.display()),
            installed.lib().join("libcuda.so.1").display().to_string(),
        ];
        words.extend(libraries.iter().map(|library| library.display().to_string()));
        let linked = program("linked", &words)?;
        let log = folder.path().join("log");
        Ok(Ready {
            _folder: folder,
            log,
            libraries,
            opened,
            linked,
            says: format!("NVRTC {major}\nPASSED\n"),
        })
    }

    /// It passes, prints nothing of ours, and the log says once what was given.
    fn check(&self, run: Run) -> Result<()> {
        let _ = fs::remove_file(&self.log);
        let ended = run.env("CUDAWAY_LOG", "info").env("CUDAWAY_LOG_FILE", &self.log).run()?;
        ensure!(
            ended.passed() && ended.stdout == self.says && ended.stderr.is_empty(),
            "{}",
            ended.describe()
        );
        let log = fs::read_to_string(&self.log).context("the log")?;
        let n = log.matches("nvrtcGetCUBIN: asked for machine code").count();
        ensure!(n == 1, "the log says {n} times that PTX was given:\n{log}");
        Ok(())
    }

    /// So that what passes above is not what passes anyway: NVIDIA's machine code is no image that can be loaded.
    fn untouched(&self, installed: &Installed) -> Result<()> {
        let run = installed.preloaded(&self.opened).args(&self.libraries).env("CUDAWAY_TAKEOVER", "0");
        let ended = run.run()?;
        let is_it = ended.stdout.ends_with(": cuModuleLoadData(&module, image) == 0\n");
        ensure!(ended.status.code() == Some(1) && is_it, "{}", ended.describe());
        Ok(())
    }
}

fn compiler(source: &str) -> Command {
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror"]).arg(setup::root().join(source));
    cc
}

fn ptx_compiler(installed: &Installed) -> Outcome {
    let home = match setup::download_cache() {
        Ok(cache) => cache.join("nvrtc/nvptxcompiler"),
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    match setup::files_of_wheel(PTX_COMPILER, "/lib/libnvptxcompiler", &home) {
        Ok(()) => ptx_compiler_of(&home, installed).into(),
        Err(error) => Outcome::Skipped(format!("it cannot be had: {error:#}")),
    }
}

fn ptx_compiler_of(home: &Path, installed: &Installed) -> Result<()> {
    let folder = testkit::temporary()?;
    for (form, options) in [("as is", &[][..]), ("position-dependent", &["-no-pie"])] {
        let out = folder.path().join("program");
        let mut cc = compiler("examples/nvrtc/ptxcompiler.c");
        cc.arg(home.join("libnvptxcompiler_static.a")).arg(installed.lib().join("libcuda.so.1"));
        setup::run(cc.args(options).args(["-lstdc++", "-lpthread", "-lm", "-ldl", "-o"]).arg(&out))?;
        let ended = installed.found(&out).run()?;
        ensure!(ended.passed() && ended.stderr.is_empty(), "{form}: {}", ended.describe());
        let without = installed.found(&out).env("CUDAWAY_TAKEOVER", "0").run()?;
        let is_it = without.stdout.ends_with(": cuModuleLoadData(&module, program) == 0\n");
        ensure!(is_it, "{form}, without us: {}", without.describe());
    }
    Ok(())
}
