//! The Python package as users have it: the wheel of the objects that were built, installed by pip into a fresh environment, with no
//! network. What it must do there is in python/tests.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Installed, Run, TempDir};

use super::report::{Outcome, Report};
use crate::clients::{CLIENTS, Ready, at_hand, prepare};
use crate::dist::{self, Wanted};
use crate::toolchain::Release;
use crate::{reach, setup};

/// pytest and what it needs, into `.venv`; the environment under test borrows them by `PYTHONPATH`.
const PYTEST: &[&str] =
    &["pytest==9.2.0", "pluggy==1.7.0", "iniconfig==2.3.1", "packaging==26.4", "Pygments==2.21.0"];

/// A kernel and a client of Jupyter's, in an environment of their own below the download cache; pip adds what they need.
const JUPYTER: &[&str] = &["ipykernel==7.4.0", "jupyter_client==8.10.0"];

/// Says which glibc a wheel needs, and whether all that its objects need is in it or in every system.
const AUDITWHEEL: &[&str] = &["auditwheel==6.8.2", "pyelftools==0.33", "packaging==26.4"];

/// Clients of the registries that cudaway.activate() is tried for, by our checks in examples/clients.
const ACTIVATED: [(&str, &str); 3] =
    [("cupy", "cupy_check.py"), ("numba", "numba_check.py"), ("triton", "triton_check.py")];

/// `install`: what is large and not at hand is downloaded.
pub fn run(installed: &Installed, install: bool, report: &mut Report) {
    let made = twice(installed);
    let wheel = made.as_ref().ok().cloned();
    report.note("cargo xtask dist --wheel --local gives the same wheel twice", made.map(drop));
    let Some(wheel) = wheel else { return };
    let ready = Bench::new(installed, &wheel);
    let name = "pip installs the wheel into a fresh environment, with the files of its list";
    let bench = match ready {
        Ok(bench) => bench,
        Err(error) => return report.note(name, Err(error)),
    };
    report.note(name, bench.passes(bench.python("installed.py")));
    report.note("auditwheel finds that the wheel is what its tag says", audited(&wheel));
    report.note(
        "pip does not take the wheel for a glibc that is older than it needs",
        older_glibc(&bench, &wheel),
    );
    report
        .note("cudaway run, and python -m cudaway, start a program on the wheel's libraries", starts(&bench));
    report.note("where no link can be made a wheel's program is reached all the same", without_links(&bench));
    report.note("links that others could have made are not used", distrusted(&bench));
    report.note("cudaway install copies a wheel's tree, and it has its links", copied(&bench));
    report.note(
        "cudaway.activate() has a process take our libraries by every name, and what it starts",
        bench.passes(bench.python("activated.py")),
    );
    for (what, refusal) in REFUSALS {
        report.note(&format!("cudaway.activate() says why it cannot work {what}"), refusal(&bench));
    }
    for (name, script) in ACTIVATED {
        report.note(&format!("cudaway.activate() works for {name}"), client(&bench, name, script, install));
    }
    pytest(&bench, report);
    report.note("pytest --cudaway runs CuPy's core_tests/test_core.py", suite_of_cupy(&bench, install));
    report.note("cudaway install --jupyter refuses a Python that is no kernel", no_kernel(&bench));
    report.note("a notebook runs in the kernel of cudaway install --jupyter", notebook(&bench, install));
    report.note("pip uninstall leaves nothing of the wheel", uninstall(&bench));
}

/// The wheel; the second time it is the same.
fn twice(installed: &Installed) -> Result<PathBuf> {
    let wheel = local(installed)?;
    let first = fs::read(&wheel)?;
    fs::remove_file(&wheel)?;
    let again = local(installed)?;
    ensure!(
        again == wheel && fs::read(&again)? == first,
        "{} differs; diffoscope tells where",
        wheel.display()
    );
    Ok(wheel)
}

fn local(installed: &Installed) -> Result<PathBuf> {
    let made = dist::local(installed.lib(), &Wanted { wheel: true, ..Wanted::default() })?;
    made.into_iter().next().context("no wheel was made")
}

/// An environment with the package in it, and the scripts of python/tests.
struct Bench<'a> {
    installed: &'a Installed,
    folder: TempDir,
    /// What was there before the package.
    before: BTreeSet<PathBuf>,
}

impl Bench<'_> {
    fn new<'a>(installed: &'a Installed, wheel: &Path) -> Result<Bench<'a>> {
        let folder = testkit::temporary()?;
        let home = folder.path().join("venv");
        setup::run(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&home))
            .context("python3 -m venv")?;
        setup::run(
            Command::new("cp")
                .arg("-r")
                .arg(setup::root().join("python/tests"))
                .arg(folder.path().join("tests")),
        )?;
        let before = files(&home)?;
        let bench = Bench { installed, folder, before };
        bench.pip(&["install", "--no-index", "--no-cache-dir"], &[wheel.as_os_str()])?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// That of the checkout's own environment, for this one.
    fn pip(&self, words: &[&str], more: &[&std::ffi::OsStr]) -> Result<()> {
        let mut pip = Command::new(setup::venv()?);
        pip.args(["-I", "-m", "pip", "--quiet", "--disable-pip-version-check", "--python"]);
        pip.arg(self.path("venv/bin/python")).args(words).args(more);
        setup::said(&mut pip).map(drop)
    }

    /// A program with a cache of its own.
    fn start(&self, program: impl AsRef<Path>) -> Run {
        let run = Run::new(program).dir(self.folder.path()).env("CUDAWAY_CACHE_DIR", self.path("cache"));
        run.env("CUDAWAY_DEVICE", "cpu").env("PYTHONDONTWRITEBYTECODE", "1")
    }

    /// A script of python/tests in the environment.
    fn python(&self, script: &str) -> Run {
        self.start(self.path("venv/bin/python")).arg(self.path("tests").join(script))
    }

    fn cudaway(&self) -> Run {
        self.start(self.path("venv/bin/cudaway"))
    }

    fn passes(&self, run: Run) -> Result<()> {
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        Ok(())
    }

    /// Where the package lies.
    fn package(&self) -> Result<PathBuf> {
        Ok(setup::packages_of(&self.path("venv/bin/python"))?.join("cudaway"))
    }

    /// The package once more, to be damaged: its files are the same ones until they are replaced.
    fn another(&self, name: &str) -> Result<PathBuf> {
        let at = self.path(name);
        fs::create_dir_all(&at)?;
        setup::run(Command::new("cp").arg("-al").arg(self.package()?).arg(&at))?;
        Ok(at)
    }
}

/// All that lies in a folder, below it.
fn files(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
            found.insert(entry.path());
        }
    }
    Ok(found)
}

fn audited(wheel: &Path) -> Outcome {
    if let Err(error) = setup::wheels(AUDITWHEEL) {
        return Outcome::Skipped(format!("auditwheel cannot be had: {error:#}"));
    }
    let ask = || -> Result<()> {
        let mut show = Command::new(setup::venv()?);
        let said = setup::said(show.args(["-I", "-m", "auditwheel", "show"]).arg(wheel))?;
        let name = wheel.file_stem().context("a name")?.to_string_lossy().into_owned();
        let tag = name.rsplit('-').next().unwrap_or_default();
        // Its lines are wrapped.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let wanted = format!("is consistent with the following platform tag: \"{tag}\"");
        ensure!(said.contains(&wanted), "not {tag}: {said}");
        Ok(())
    };
    ask().into()
}

/// glibc 2.16 is older than anything of ours.
fn older_glibc(bench: &Bench, wheel: &Path) -> Result<()> {
    let older = bench.path("older");
    let target = older.display().to_string();
    let install = |platform: &str| {
        let words = [
            "install",
            "--no-index",
            "--no-deps",
            "--no-compile",
            "--only-binary=:all:",
            "--target",
            &target,
            "--platform",
        ];
        bench.pip(&[&words[..], &[platform]].concat(), &[wheel.as_os_str()])
    };
    let refused = install("manylinux_2_16_x86_64").err().context("it was installed")?;
    ensure!(refused.to_string().contains("not a supported wheel on this platform"), "{refused:#}");
    ensure!(!older.join("cudaway").exists(), "it was installed");
    Ok(())
}

fn starts(bench: &Bench) -> Result<()> {
    let launch = bench.path("tests/launch.py");
    let python = bench.path("venv/bin/python");
    bench.passes(bench.cudaway().args(["run", "--"]).arg(&python).arg(&launch))?;
    let module = || bench.start(&python).args(["-m", "cudaway"]);
    bench.passes(module().args(["run", "--"]).arg(&python).arg(&launch))?;
    // The program itself takes our place: its exit code, and that of what it starts.
    let ended = module().args(["run", "--", "sh", "-c", "exit 7"]).run()?;
    ensure!(ended.status.code() == Some(7), "{}", ended.describe());
    // Nor is a signal ignored that Python ignores.
    let ended = bench.cudaway().args(["run", "--", "sh", "-c", "kill -XFSZ $$"]).run()?;
    ensure!(ended.crashed(), "{}", ended.describe());
    let ended = bench.start(&python).arg(&launch).run()?;
    ensure!(!ended.passed(), "there was a driver without us");
    // What is preloaded is one object for each major, which takes links.
    let ended = bench.cudaway().args(["run", "--dry-run", "--", "true"]).run()?;
    let preloaded = |name: &str| ended.stdout.contains(&format!("/lib/preload/{name}:"));
    let all = ["libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"].into_iter().all(preloaded);
    ensure!(all && !ended.stdout.contains("libcublas"), "{}", ended.stdout);
    Ok(())
}

/// In a mount namespace where each folder that could have them is one that everybody may write to.
fn without_links(bench: &Bench) -> Outcome {
    if !reach::has_namespaces() {
        return Outcome::Skipped("this user may not make a mount namespace".to_owned());
    }
    let start = || -> Result<()> {
        let (cache, temporary) = (bench.path("others-cache"), bench.path("others-room"));
        let script = "for folder in \"$CUDAWAY_CACHE_DIR\" \"$TMPDIR\" /dev/shm; do mount -t tmpfs -o mode=777 tmpfs \"$folder\"; done\n\
            \"$0\" doctor --json && exit 9\n\
            exec \"$0\" run -- \"$@\"\n";
        for folder in [&cache, &temporary] {
            fs::create_dir_all(folder)?;
        }
        let mut run = bench.start("unshare").args(["--mount", "--propagation", "private"]);
        if fs::metadata("/proc/self")?.uid() != 0 {
            run = run.arg("--map-root-user");
        }
        let run = run.args(["sh", "-c", script]).arg(bench.path("venv/bin/cudaway"));
        let run = run.arg(bench.path("venv/bin/python")).arg(bench.path("tests/launch.py"));
        let ended = run.env("CUDAWAY_CACHE_DIR", &cache).env("TMPDIR", &temporary).run()?;
        ensure!(ended.passed() && ended.stdout.contains("\"files.links\""), "{}", ended.describe());
        Ok(())
    };
    start().into()
}

/// The folder of links is preloaded from: whoever may write where it lies could put code there.
fn distrusted(bench: &Bench) -> Result<()> {
    let cache = bench.path("shared-cache");
    let plan = || -> Result<String> {
        let run = bench.cudaway().args(["run", "--dry-run", "--", "true"]).env("CUDAWAY_CACHE_DIR", &cache);
        let ended = run.run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        Ok(ended.stdout)
    };
    let links = cache.join("tree");
    let wanted = format!("LD_PRELOAD={}/", links.display());
    let said = plan()?;
    ensure!(said.contains(&wanted), "no `{wanted}`: {said}");
    fs::set_permissions(&links, fs::Permissions::from_mode(0o777))?;
    let said = plan()?;
    ensure!(said.contains("LD_PRELOAD=/") && !said.contains(&wanted), "{said}");
    Ok(())
}

fn copied(bench: &Bench) -> Result<()> {
    let prefix = bench.path("opt/cudaway");
    let succeeds = |run: Run| -> Result<Ended> {
        let ended = run.run()?;
        ensure!(ended.status.success(), "{}", ended.describe());
        Ok(ended)
    };
    succeeds(bench.cudaway().args(["install", "--prefix"]).arg(&prefix))?;
    let link = fs::read_link(prefix.join("lib/preload/libcublas.so.12"))?;
    ensure!(link == Path::new("libcudart.so.12"), "{}", link.display());
    ensure!(!prefix.join("links").exists(), "the list of links was copied");
    succeeds(bench.start(prefix.join("bin/cudaway")).arg("doctor"))?;
    succeeds(bench.start(prefix.join("bin/cudaway")).args(["uninstall", "--prefix"]).arg(&prefix))?;
    ensure!(!prefix.exists(), "{} is left", prefix.display());
    Ok(())
}

type Refusal = (&'static str, fn(&Bench) -> Outcome);

const REFUSALS: [Refusal; 10] = [
    ("after a library of NVIDIA's was loaded", |bench| loaded(bench).into()),
    ("after a library with a static runtime inside was loaded", |bench| static_runtime(bench).into()),
    ("after one of another installation of CUDAway was loaded", |bench| {
        let driver = bench.installed.lib().join("libcuda.so.1");
        refuses(bench.python("refused.py").arg("loaded").arg(driver), "another installation of CUDAway")
            .into()
    }),
    ("in a process with more rights than its user has", more_rights),
    ("on another processor", |bench| refuses(bench.python("refused.py").arg("processor"), "aarch64").into()),
    ("on another platform", |bench| refuses(bench.python("refused.py").arg("platform"), "darwin").into()),
    ("with another C library", |bench| refuses(bench.python("refused.py").arg("libc"), "glibc").into()),
    ("without the package's program", |bench| without_program(bench).into()),
    ("where the loader does not take a library of ours", |bench| broken(bench).into()),
    ("for an interpreter that our program finds unfit", |bench| unfit(bench).into()),
];

/// It says so in one sentence with these words in it.
fn refuses(run: Run, words: &str) -> Result<()> {
    let ended = run.run()?;
    ensure!(ended.passed() && ended.stdout.contains(words), "no `{words}`: {}", ended.describe());
    ensure!(ended.stdout.lines().count() == 2 && ended.stderr.is_empty(), "{}", ended.describe());
    Ok(())
}

fn loaded(bench: &Bench) -> Result<()> {
    for name in ["libcuda.so.1", "libcublas.so.12"] {
        let theirs = bench.path("theirs").join(name);
        fs::create_dir_all(bench.path("theirs"))?;
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-nostdlib", "-x", "c", "/dev/null"]).arg(format!("-Wl,-soname,{name}"));
        setup::run(cc.arg("-o").arg(&theirs))?;
        let said = format!("in this process already ({})", theirs.display());
        refuses(bench.python("refused.py").arg("loaded").arg(&theirs), &said)?;
    }
    Ok(())
}

/// A library with private functions of a runtime's names, as nvcc's static runtime leaves them.
fn static_runtime(bench: &Bench) -> Result<()> {
    let (source, library) = (bench.path("extension.c"), bench.path("extension.so"));
    let names = ["cudaMalloc", "cudaFree", "cudaMemcpy", "cudaLaunchKernel", "cudaDeviceSynchronize"];
    let functions = names
        .map(|name| format!("__attribute__((visibility(\"hidden\"))) int {name}(void) {{ return 35; }}\n"));
    fs::write(&source, functions.concat())?;
    setup::run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source))?;
    let said = format!("inside of {}, and stays", library.display());
    refuses(bench.python("refused.py").arg("loaded").arg(&library), &said)
}

/// A copy of Python that is root's and set-user-ID, started by somebody else.
fn more_rights(bench: &Bench) -> Outcome {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return Outcome::Skipped("only root can be two users".to_owned());
    }
    let ask = || -> Result<Outcome> {
        let home = setup::said(Command::new("python3").args(["-c", "import sys; print(sys.base_prefix)"]))?;
        let program = fs::canonicalize(bench.path("venv/bin/python"))?;
        let lent = bench.path("lent");
        setup::run(Command::new("cp").arg(program).arg(&lent))?;
        fs::set_permissions(bench.folder.path(), fs::Permissions::from_mode(0o755))?;
        let packages = bench.package()?.parent().context("a folder")?.to_path_buf();
        let start = |words: &[&str]| {
            let run =
                bench.start("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&lent);
            run.args(words).env("PYTHONHOME", &home).env("PYTHONPATH", &packages)
        };
        fs::set_permissions(&lent, fs::Permissions::from_mode(0o4755))?;
        let control =
            start(&["-c", "import ctypes, json, os; assert os.geteuid() == 0; print('PASSED')"]).run()?;
        if !control.passed() {
            return Ok(Outcome::Skipped(format!(
                "this Python does not start with another's rights: {}",
                control.describe()
            )));
        }
        let script = bench.path("tests/refused.py").display().to_string();
        Ok(refuses(start(&[&script, "as it is"]), "more rights than its user has").into())
    };
    ask().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")))
}

fn without_program(bench: &Bench) -> Result<()> {
    let at = bench.another("without")?;
    fs::remove_file(at.join("cudaway/tree/bin/cudaway"))?;
    let run = bench.python("refused.py").arg("as it is").env("PYTHONPATH", at);
    refuses(run, "tree/bin/cudaway: this package has no libraries with it")
}

fn broken(bench: &Bench) -> Result<()> {
    let at = bench.another("broken")?;
    let library = at.join("cudaway/tree/lib/libnvidia-ml.so.1");
    fs::remove_file(&library)?;
    fs::write(&library, "no library")?;
    refuses(bench.python("refused.py").arg("as it is").env("PYTHONPATH", at), "cannot be preloaded")
}

/// An interpreter that is not what it was when it started: the tool looks at its file, which is a 32-bit program's now.
fn unfit(bench: &Bench) -> Result<()> {
    let other = bench.path("other-python");
    let mut bytes = fs::read("/bin/true")?;
    *bytes.get_mut(4).context("an ELF file")? = 1;
    fs::write(&other, bytes)?;
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755))?;
    let script = format!(
        "import sys; sys.executable = {:?}; sys.argv[1:] = ['as it is']; exec(open({:?}).read())",
        other,
        bench.path("tests/refused.py")
    );
    refuses(bench.start(bench.path("venv/bin/python")).arg("-c").arg(script), "a 32-bit program")
}

fn client(bench: &Bench, name: &str, script: &str, is_wanted: bool) -> Outcome {
    with_client(bench, name, is_wanted, |ready, packages| {
        let run = bench.start(&ready.python).arg(bench.path("tests/client.py"));
        let run = run.arg(setup::root().join("examples/clients").join(script));
        bench.passes(run.env("PYTHONPATH", packages).limit(Duration::from_secs(600)))
    })
}

/// A check with a client that is installed, and the folder that has the package.
fn with_client(
    bench: &Bench,
    name: &str,
    is_wanted: bool,
    check: impl FnOnce(&Ready, &Path) -> Result<()>,
) -> Outcome {
    let Some(client) = CLIENTS.iter().find(|client| client.name == name) else {
        return Outcome::Failed(format!("there is no client {name}"));
    };
    if !at_hand(client) {
        return Outcome::Skipped("not installed; `cargo xtask clients` and --all do it".to_owned());
    }
    if !is_wanted {
        return Outcome::Skipped("asked for with --only wheel and --all".to_owned());
    }
    let check = || {
        let ready = prepare(client, &bench.path(name))?;
        check(&ready, bench.package()?.parent().context("a folder")?)
    };
    check().into()
}

/// A file of CuPy's own suite, by one command, from a copy of its checkout. Its tests want NVIDIA's nvcc to be found.
fn suite_of_cupy(bench: &Bench, is_wanted: bool) -> Outcome {
    with_client(bench, "cupy", is_wanted, |ready, packages| {
        let checkout = bench.path("cupy-checkout");
        setup::run(Command::new("cp").arg("-r").arg(&ready.tests).arg(&checkout))?;
        let nvcc = Release::V13_5.get()?.dir.join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([nvcc].into_iter().chain(std::env::split_paths(&path)))?;
        let run =
            bench.start(&ready.python).args(["-m", "pytest", "--cudaway", "-q", "-p", "no:cacheprovider"]);
        let run = run.arg("tests/cupy_tests/core_tests/test_core.py").dir(checkout);
        let run = run.env("PYTHONPATH", packages).env("PATH", path);
        let run = run.env("CUPY_CACHE_DIR", bench.path("cupy-cache"));
        let ended = run.limit(Duration::from_secs(600)).run()?;
        ensure!(ended.status.success() && ended.stdout.contains("14 passed"), "{}", ended.describe());
        Ok(())
    })
}

fn pytest(bench: &Bench, report: &mut Report) {
    let packages = setup::wheels(PYTEST).and_then(|()| setup::packages_of(&setup::venv()?));
    let outcome = |check: fn(&Bench, &Path) -> Result<()>| match &packages {
        Ok(packages) => check(bench, packages).into(),
        Err(error) => Outcome::Skipped(format!("pytest cannot be had: {error:#}")),
    };
    report.note(
        "pytest --cudaway runs tests on our libraries, with its output and its exit status",
        outcome(suite),
    );
    report.note(
        "pytest --cudaway says why where pytest cannot be started once more",
        outcome(not_a_command_line),
    );
}

fn with_pytest(bench: &Bench, packages: &Path, words: &[&str]) -> Result<Ended> {
    let run = bench.start(bench.path("venv/bin/python")).env("PYTHONPATH", packages);
    run.args(words).args(["-p", "no:cacheprovider", "tests/suite"]).run()
}

fn suite(bench: &Bench, packages: &Path) -> Result<()> {
    for (words, status, summary, is_shown) in [
        // Without the option nothing of ours is there.
        (&[][..], 1, "2 failed", true),
        (&["--cudaway"], 1, "1 failed, 1 passed", false),
        (&["--cudaway", "-k", "launches"], 0, "1 passed, 1 deselected", false),
        (&["--cudaway", "-k", "launches", "-s"], 0, "1 passed, 1 deselected", true),
        (&["--cudaway", "-k", "launches", "--capture=sys"], 0, "1 passed, 1 deselected", false),
        (&["--cudaway", "-k", "none"], 5, "2 deselected", false),
        // Of a configuration file.
        (&["-o", "addopts=--cudaway", "-k", "launches"], 0, "1 passed, 1 deselected", false),
    ] {
        let ended = with_pytest(bench, packages, &[&["-m", "pytest"], words].concat())?;
        let text = || format!("{words:?}: {}\n{}", ended.describe(), ended.stdout);
        ensure!(ended.status.code() == Some(status) && ended.stdout.contains(summary), "{}", text());
        ensure!(
            ended.stderr.is_empty() && ended.stdout.contains("said and not shown") == is_shown,
            "{}",
            text()
        );
        let begun = ended.stdout.matches("test session starts").count();
        ensure!(begun == 1 && ended.stdout.contains("by `cudaway run`") != words.is_empty(), "{}", text());
    }
    // A pytest that `cudaway run` has started already goes on as it is.
    let run =
        bench.cudaway().args(["run", "--"]).arg(bench.path("venv/bin/python")).env("PYTHONPATH", packages);
    let words = ["-m", "pytest", "--cudaway", "-p", "no:cacheprovider", "-k", "launches", "tests/suite"];
    let ended = run.args(words).run()?;
    ensure!(ended.status.success(), "{}", ended.describe());
    Ok(())
}

fn not_a_command_line(bench: &Bench, packages: &Path) -> Result<()> {
    let script = "import sys, pytest; sys.exit(pytest.main(['--cudaway', 'tests/suite']))";
    let ended = with_pytest(bench, packages, &["-c", script])?;
    // pytest's own number for a mistake in its usage.
    ensure!(ended.status.code() == Some(4) && ended.stderr.contains("pytest.main()"), "{}", ended.describe());
    Ok(())
}

fn no_kernel(bench: &Bench) -> Result<()> {
    let data = bench.path("jupyter");
    let ended = bench.cudaway().args(["install", "--jupyter"]).env("JUPYTER_DATA_DIR", &data).run()?;
    let python = bench.path("venv/bin/python").display().to_string();
    let is_told =
        ended.stderr.contains(&format!("{python} has no ipykernel")) && ended.stderr.contains("--python");
    ensure!(ended.status.code() == Some(1) && is_told && !data.exists(), "{}", ended.describe());
    Ok(())
}

fn notebook(bench: &Bench, install: bool) -> Outcome {
    let home = match setup::download_cache() {
        Ok(cache) => cache.join("jupyter"),
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    let pins = JUPYTER.join(" ");
    let stamp = home.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|it| it == pins) {
        return kernel(bench, &home).into();
    }
    if !install {
        return Outcome::Skipped(
            "Jupyter's kernel is not at hand; --only wheel and --all download it (30 MB)".to_owned(),
        );
    }
    if setup::offline() {
        return Outcome::Skipped(format!("--offline, and {pins} are missing in {}", home.display()));
    }
    let get = || -> Result<()> {
        println!("setup: {pins} to install into {}", home.display());
        setup::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
        let mut pip = Command::new(home.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(JUPYTER);
        setup::run(&mut pip)?;
        Ok(fs::write(&stamp, &pins)?)
    };
    match get() {
        Ok(()) => kernel(bench, &home).into(),
        Err(error) => Outcome::Skipped(format!("Jupyter's kernel cannot be had: {error:#}")),
    }
}

/// The kernel's specification is made by the wheel's program, and Jupyter finds it: the user's own, and an environment's.
fn kernel(bench: &Bench, jupyter: &Path) -> Result<()> {
    let (python, data, prefix) = (jupyter.join("bin/python"), bench.path("jupyter"), bench.path("prefix"));
    let prefix_words = ["--prefix", prefix.to_str().context("a path")?];
    for (words, variable, found) in [
        (&[][..], "JUPYTER_DATA_DIR", data.clone()),
        (&prefix_words[..], "JUPYTER_PATH", prefix.join("share/jupyter")),
    ] {
        let start = |run: Run| run.env("JUPYTER_DATA_DIR", &data).env("PYTHONDONTWRITEBYTECODE", "1").run();
        let ended =
            start(bench.cudaway().args(["install", "--jupyter", "--python"]).arg(&python).args(words))?;
        ensure!(ended.status.success(), "{}", ended.describe());
        ensure!(found.join("kernels/cudaway/kernel.json").exists(), "{}", ended.describe());
        let run = bench.start(&python).arg(bench.path("tests/notebook.py")).env(variable, &found);
        let ended = start(
            run.env("IPYTHONDIR", bench.path("ipython")).env("JUPYTER_RUNTIME_DIR", bench.path("runtime")),
        )?;
        ensure!(ended.passed(), "{words:?}: {}", ended.describe());
        let ended = start(bench.cudaway().args(["uninstall", "--jupyter"]).args(words))?;
        ensure!(ended.status.success() && !found.join("kernels").exists(), "{}", ended.describe());
    }
    Ok(())
}

fn uninstall(bench: &Bench) -> Result<()> {
    bench.pip(&["uninstall", "--yes", "cudaway"], &[])?;
    let after = files(&bench.path("venv"))?;
    ensure!(
        after == bench.before,
        "left or lost: {:?}",
        after.symmetric_difference(&bench.before).collect::<Vec<_>>()
    );
    Ok(())
}
