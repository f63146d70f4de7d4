//! Whom our libraries believe (docs/security.md): a cache that somebody else could have filled is not used, a library that a variable
//! names is not opened if somebody else could have put it there, and a program with more rights than its user has follows none
//! of that user's variables. The attacks need other users, so root makes them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use testkit::{Ended, Installed, Run, TempDir};

use super::doctor::same_files;
use super::examples::quiet;
use super::report::{Outcome, Report};
use crate::setup;

const NOBODY: u32 = 65534;
const DISTRUST: &str = "the cache is not used, since somebody else could have put code there";

type Attack = (&'static str, fn(&Bench) -> Result<()>);

const ATTACKS: [Attack; 12] = [
    ("a cache below a shared TMPDIR that another user made first is not used", shared_temporary_folder),
    ("a cache that belongs to another user is not used", folder_of_another),
    ("a cache in a folder of another user's is not used", folder_in_anothers),
    ("a cache that is a link is not used", link),
    ("an entry that belongs to another user is not run", entry_of_another),
    ("a cache that root made for all is read by others", of_root),
    ("a cache of CUDAWAY_CACHE_PATH is used if it is root's, and not if it is another user's", shipped),
    ("what another user put where claims are kept is not preloaded", claims),
    ("a library that a variable names is opened only if nobody else can have put it there", named_libraries),
    (
        "a compiler that a variable names is started only if nobody else can have put it there",
        named_compilers,
    ),
    ("a set-user-ID program follows no variable of whoever started it", set_user_id),
    ("a set-user-ID program starts no compiler of whoever started it", compiler),
];

pub fn run(installed: &Installed, report: &mut Report) {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    for (name, attack) in ATTACKS {
        let outcome = if is_root {
            Bench::new(installed).and_then(|bench| attack(&bench)).into()
        } else {
            Outcome::Skipped("only root can be two users".to_owned())
        };
        report.note(name, outcome);
    }
}

/// A folder that everybody reaches, with our libraries and the program `answer`, which finds them whatever the environment says.
struct Bench {
    folder: TempDir,
    program: PathBuf,
    /// As it was built.
    cudaway: PathBuf,
}

impl Bench {
    fn new(installed: &Installed) -> Result<Bench> {
        let folder = testkit::temporary()?;
        chmod(folder.path(), 0o755)?;
        let lib = folder.path().join("lib");
        same_files(installed.lib(), &lib)?;
        let program = folder.path().join("answer");
        let source = setup::root().join("xtask/src/test/trust/answer.c");
        let path = format!("-Wl,--enable-new-dtags,-rpath,{}", lib.display());
        quiet(Command::new("cc").arg("-o").arg(&program).arg(source).args(["-ldl", &path]))?;
        Ok(Bench { folder, program, cudaway: installed.lib().with_file_name("bin").join("cudaway") })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A folder of this user's.
    fn make(&self, name: &str, user: u32, mode: u32) -> Result<PathBuf> {
        let path = self.path(name);
        fs::create_dir(&path)?;
        chown(&path, Some(user), Some(user))?;
        chmod(&path, mode)?;
        Ok(path)
    }

    /// A program, started by this user with these variables and with no place for a cache but what they say.
    fn start(&self, program: &Path, user: u32, variables: &[(&str, &Path)]) -> Result<Ended> {
        let user = user.to_string();
        let run = Run::new("setpriv").args(["--reuid", &user, "--regid", &user, "--clear-groups", "env"]);
        let run = run.args(["-u", "HOME", "-u", "TMPDIR", "-u", "XDG_CACHE_HOME"]);
        variables
            .iter()
            .fold(run, |run, (name, value)| run.arg(format!("{name}={}", value.display())))
            .arg(program)
            .run()
    }

    /// What the program's log says of the cache.
    fn log(&self, user: u32, variables: &[(&str, &Path)]) -> Result<String> {
        let usual =
            [("CUDAWAY_DEVICE", Path::new("cpu")), ("CUDAWAY_LOG", Path::new("cache=debug,cpu=info"))];
        let ended = self.start(&self.program, user, &[&usual, variables].concat())?;
        ensure!(ended.status.success() && ended.stdout == "the answer is 42\n", "{}", ended.describe());
        Ok(ended.stderr)
    }

    /// Nothing of this cache is read, nothing is written to it, and the log of each library says why, once.
    fn is_refused(&self, variables: &[(&str, &Path)], cache: &Path, why: &str) -> Result<()> {
        let before = listing(cache)?;
        let log = self.log(0, variables)?;
        ensure!(!log.contains("cache hit"), "code of another user's was run:\n{log}");
        ensure!(listing(cache)? == before, "something was written to {}", cache.display());
        let said: Vec<&str> = log.lines().filter(|line| line.contains(DISTRUST)).collect();
        // The driver has a cache, and the CPU device has one.
        let is_said = (1..=2).contains(&said.len()) && said.iter().all(|line| line.contains(why));
        ensure!(is_said, "the log does not say once for each that {why}:\n{log}");
        Ok(())
    }

    /// A cache in the folder, filled by this user.
    fn filled(&self, user: u32, cache: &Path) -> Result<()> {
        let variables = [("CUDAWAY_CACHE_DIR", cache)];
        self.log(user, &variables)?;
        let log = self.log(user, &variables)?;
        ensure!(log.contains("cache hit"), "a cache of the user's own is used:\n{log}");
        Ok(())
    }
}

/// Every file below the folder, and the time of its last change.
fn listing(folder: &Path) -> Result<BTreeMap<PathBuf, (i64, i64)>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let about = path.symlink_metadata()?;
        found.insert(path.clone(), (about.mtime(), about.mtime_nsec()));
        if about.is_dir() {
            found.extend(listing(&path)?);
        }
    }
    Ok(found)
}

/// Fills what root would take with what another user's kernels became: with `HOME` unset root ran it.
fn shared_temporary_folder(bench: &Bench) -> Result<()> {
    let shared = bench.make("shared", 0, 0o1777)?;
    let theirs = bench.make("theirs", NOBODY, 0o755)?;
    bench.filled(NOBODY, &theirs.join("cache"))?;
    for name in ["cudaway", "cudaway-0"] {
        quiet(Command::new("cp").arg("-a").arg(theirs.join("cache")).arg(shared.join(name)))?;
    }
    let variables = [("TMPDIR", &*shared)];
    bench.is_refused(&variables, &shared, "cudaway-0: it belongs to user 65534")?;
    fs::remove_dir_all(shared.join("cudaway-0"))?;
    // Made anew it is root's alone.
    bench.log(0, &variables)?;
    let made = shared.join("cudaway-0").metadata()?;
    ensure!((made.uid(), made.mode() & 0o7777) == (0, 0o700), "mode {:o}", made.mode());
    ensure!(bench.log(0, &variables)?.contains("cache hit"), "root's own is used");
    Ok(())
}

fn folder_of_another(bench: &Bench) -> Result<()> {
    let theirs = bench.make("theirs", NOBODY, 0o755)?;
    bench.filled(NOBODY, &theirs)?;
    bench.is_refused(&[("CUDAWAY_CACHE_DIR", &theirs)], &theirs, "it belongs to user 65534")
}

/// Who may rename what is in a folder can put any folder of root's there.
fn folder_in_anothers(bench: &Bench) -> Result<()> {
    let cache = bench.path("cache");
    bench.filled(0, &cache)?;
    let theirs = bench.make("theirs", NOBODY, 0o755)?;
    let inside = theirs.join("cache");
    fs::rename(&cache, &inside)?;
    bench.is_refused(&[("CUDAWAY_CACHE_DIR", &inside)], &inside, "theirs: it belongs to user 65534")?;
    let anybodys = bench.make("anybodys", 0, 0o777)?;
    let inside_anybodys = anybodys.join("cache");
    fs::rename(&inside, &inside_anybodys)?;
    bench.is_refused(
        &[("CUDAWAY_CACHE_DIR", &inside_anybodys)],
        &inside_anybodys,
        "anybodys: others may write there",
    )
}

fn link(bench: &Bench) -> Result<()> {
    let (cache, link) = (bench.path("cache"), bench.path("link"));
    bench.filled(0, &cache)?;
    symlink(&cache, &link)?;
    bench.is_refused(&[("CUDAWAY_CACHE_DIR", &link)], &cache, "it is a link")
}

fn entry_of_another(bench: &Bench) -> Result<()> {
    let cache = bench.path("cache");
    bench.filled(0, &cache)?;
    let entries = listing(&cache)?.into_keys().filter(|path| path.is_file());
    for entry in entries {
        chown(&entry, Some(NOBODY), None)?;
    }
    let log = bench.log(0, &[("CUDAWAY_CACHE_DIR", &cache)])?;
    ensure!(!log.contains("cache hit") && log.contains("it belongs to user 65534"), "{log}");
    // The folder is root's own, so its entries are written anew.
    ensure!(
        bench.log(0, &[("CUDAWAY_CACHE_DIR", &cache)])?.contains("cache hit"),
        "the entries are not rebuilt"
    );
    Ok(())
}

fn of_root(bench: &Bench) -> Result<()> {
    let cache = bench.path("cache");
    bench.filled(0, &cache)?;
    quiet(Command::new("chmod").args(["-R", "a+rX"]).arg(&cache))?;
    let before = listing(&cache)?;
    let log = bench.log(NOBODY, &[("CUDAWAY_CACHE_DIR", &cache)])?;
    ensure!(log.contains("cache hit") && !log.contains("compiled kernel"), "{log}");
    ensure!(listing(&cache)? == before, "a user changed it");
    Ok(())
}

/// What is read behind a user's own cache is held to the same rule.
fn shipped(bench: &Bench) -> Result<()> {
    let (shipped, own) = (bench.path("shipped"), bench.make("own", NOBODY, 0o700)?);
    bench.filled(0, &shipped)?;
    quiet(Command::new("chmod").args(["-R", "a+rX"]).arg(&shipped))?;
    let log = bench.log(NOBODY, &[("CUDAWAY_CACHE_DIR", &own), ("CUDAWAY_CACHE_PATH", &shipped)])?;
    ensure!(log.contains("cache hit"), "{log}");
    ensure!(!log.contains("compiled kernel"), "a user made again what is there:\n{log}");
    quiet(Command::new("chown").args(["-R", "65534"]).arg(&shipped))?;
    let mine = bench.path("mine");
    let variables = [("CUDAWAY_CACHE_DIR", &*mine), ("CUDAWAY_CACHE_PATH", &*shipped)];
    bench.is_refused(&variables, &shipped, "shipped: it belongs to user 65534")
}

/// `cudaway run` preloads what it made before and has kept.
fn claims(bench: &Bench) -> Result<()> {
    let cache = bench.path("cache");
    let plan = || -> Result<String> {
        let run = Run::new(&bench.cudaway).args(["run", "--dry-run", "--", "/bin/true"]);
        let ended = run.env("CUDAWAY_CACHE_DIR", &cache).env("TMPDIR", bench.folder.path()).run()?;
        ensure!(ended.status.success() && ended.stderr.is_empty(), "{}", ended.describe());
        Ok(ended.stdout)
    };
    let kept = cache.join("claims").display().to_string();
    ensure!(plan()?.contains(&kept), "the control keeps them in the cache");
    quiet(Command::new("chown").args(["-R", "65534"]).arg(cache.join("claims")))?;
    let said = plan()?;
    ensure!(!said.contains(&kept), "{said}");
    // They lie elsewhere now.
    ensure!(said.contains(&bench.path("cudaway-0/claims").display().to_string()), "{said}");
    Ok(())
}

/// A library that leaves a file in this folder when it is loaded.
fn witness(bench: &Bench, folder: &Path, name: &str) -> Result<PathBuf> {
    let (source, library) = (bench.path("witness.c"), folder.join(name));
    let text = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void loaded(void) {{ open(\"{}\", O_CREAT | O_WRONLY, 0644); }}\n",
        folder.join("loaded").display()
    );
    fs::write(&source, text)?;
    fs::create_dir_all(library.parent().context("a folder")?)?;
    quiet(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source))?;
    Ok(library)
}

/// What is in the folder of whoever starts the program.
fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The variables that name a library, and where from the variable's value its file lies.
const NAMED: [(&str, &str); 11] = [
    ("CUDAWAY_DEVICE", ""),
    ("CUDAWAY_BLAS", ""),
    ("CUDAWAY_DNN", ""),
    ("CUDAWAY_FFT", ""),
    ("CUDAWAY_RAND", ""),
    ("CUDAWAY_SOLVER", ""),
    ("CUDAWAY_SPARSE", ""),
    ("CUDAWAY_NVJITLINK", ""),
    ("CUDAWAY_ROCM_ROOT", "lib/libamdhip64.so"),
    ("HIP_PATH", "lib/libamdhip64.so"),
    ("ROCM_PATH", "lib/libamdhip64.so"),
];

/// How a library comes to lie where somebody else could have put it, or does not: what is done to a folder of root's that has the
/// good one, the path by which it is named then, and, if it is to be refused, the step at fault and why.
struct Placing {
    name: &'static str,
    place: fn(&Path) -> Result<()>,
    path: &'static str,
    fault: Option<(&'static str, &'static str)>,
}

const GROUP: u32 = 100;

const PLACINGS: [Placing; 13] = [
    Placing { name: "root's own", place: |_| Ok(()), path: "in/x.so", fault: None },
    Placing {
        name: "in a sticky folder",
        place: |folder| chmod(&folder.join("in"), 0o1777),
        path: "in/x.so",
        fault: None,
    },
    Placing {
        name: "by a link of root's",
        place: |folder| Ok(symlink("in/x.so", folder.join("link.so"))?),
        path: "link.so",
        fault: None,
    },
    Placing {
        name: "its group may write it",
        place: |folder| {
            chown(folder.join("in/x.so"), None, Some(GROUP))?;
            chmod(&folder.join("in/x.so"), 0o664)
        },
        path: "in/x.so",
        fault: Some(("in/x.so", "others may write there")),
    },
    Placing {
        name: "all may write it",
        place: |folder| chmod(&folder.join("in/x.so"), 0o646),
        path: "in/x.so",
        fault: Some(("in/x.so", "others may write there")),
    },
    Placing {
        name: "it belongs to another user",
        place: |folder| Ok(chown(folder.join("in/x.so"), Some(NOBODY), Some(NOBODY))?),
        path: "in/x.so",
        fault: Some(("in/x.so", "it belongs to user 65534")),
    },
    Placing {
        name: "another user's in a sticky folder",
        place: |folder| {
            chown(folder.join("in/x.so"), Some(NOBODY), Some(NOBODY))?;
            chmod(&folder.join("in"), 0o1777)
        },
        path: "in/x.so",
        fault: Some(("in/x.so", "it belongs to user 65534")),
    },
    Placing {
        name: "by a link to one that all may write",
        place: |folder| {
            chmod(&folder.join("in/x.so"), 0o666)?;
            Ok(symlink("in/x.so", folder.join("link.so"))?)
        },
        path: "link.so",
        fault: Some(("in/x.so", "others may write there")),
    },
    Placing {
        name: "by another user's link",
        place: |folder| {
            symlink("in/x.so", folder.join("link.so"))?;
            Ok(lchown(folder.join("link.so"), Some(NOBODY), Some(NOBODY))?)
        },
        path: "link.so",
        fault: Some(("link.so", "it belongs to user 65534")),
    },
    Placing {
        name: "by a link to a folder that all may write",
        place: |folder| {
            chmod(&folder.join("in"), 0o777)?;
            Ok(symlink(folder.join("in"), folder.join("link"))?)
        },
        path: "link/x.so",
        fault: Some(("in", "others may write there")),
    },
    Placing {
        name: "in a folder that all may write",
        place: |folder| chmod(&folder.join("in"), 0o777),
        path: "in/x.so",
        fault: Some(("in", "others may write there")),
    },
    Placing {
        name: "below a folder of another user's",
        place: |folder| Ok(chown(folder, Some(NOBODY), Some(NOBODY))?),
        path: "in/x.so",
        fault: Some(("", "it belongs to user 65534")),
    },
    Placing {
        name: "by a path through a folder that all may write and back",
        place: |folder| {
            fs::create_dir(folder.join("through"))?;
            chmod(&folder.join("through"), 0o777)
        },
        path: "through/../in/x.so",
        fault: Some(("through", "others may write there")),
    },
];

const UNTRUSTED: &str = "is not opened, since somebody else could have put it there";

impl Placing {
    /// Has the file lie there in a new folder, to be run if it could be; gives the path by which it is named.
    fn put(&self, bench: &Bench, name: &str, file: &Path) -> Result<PathBuf> {
        let folder = bench.make(name, 0, 0o755)?;
        fs::create_dir(folder.join("in"))?;
        chmod(&folder.join("in"), 0o755)?;
        let inside = folder.join("in/x.so");
        fs::copy(file, &inside)?;
        chmod(&inside, 0o644)?;
        (self.place)(&folder)?;
        chmod(&inside, inside.metadata()?.mode() & 0o777 | 0o111)?;
        Ok(folder.join(self.path))
    }

    /// Whether the log has one line of it, that says which step is at fault, why, and how to mend it; of what is right, none.
    fn is_told(&self, log: &str, path: &Path, folder: &Path) -> Result<()> {
        let said: Vec<&str> = log.lines().filter(|line| line.contains(UNTRUSTED)).collect();
        match (self.fault, &said[..]) {
            (None, []) => Ok(()),
            (Some((step, why)), [line]) => {
                let step: PathBuf = folder.join(step).components().collect();
                let words = format!("{} {UNTRUSTED}: {}: {why}", path.display(), step.display());
                let is_mode = why.starts_with("others");
                let mend =
                    if is_mode { format!("chmod go-w {}", step.display()) } else { "copy it".to_owned() };
                ensure!(
                    line.contains(&words) && line.contains(&mend),
                    "{line}\n does not say: {words} … {mend}"
                );
                Ok(())
            }
            _ => bail!("the log says {said:?}:\n{log}"),
        }
    }

    /// What came of it: whether it ran, and what the log says.
    fn judge(&self, has_run: bool, ended: &Ended, path: &Path, folder: &Path) -> Result<()> {
        let is_right = has_run == self.fault.is_none();
        ensure!(is_right, "it ran: {has_run}: {}", ended.describe());
        self.is_told(&ended.stderr, path, folder)
    }
}

/// Each variable with a library of its own, placed in each way.
fn named_libraries(bench: &Bench) -> Result<()> {
    let cache = bench.path("cache");
    for (variable, tail) in NAMED {
        let own = bench.make(variable, 0, 0o755)?;
        let (library, mark) = (witness(bench, &own, "witness.so")?, own.join("loaded"));
        for placing in &PLACINGS {
            let what = || format!("{variable} {}", placing.name);
            let folder = bench.path(&what());
            let path = placing.put(bench, &what(), &library)?;
            // In a folder that a variable names, the library has the name that is looked for there, by a link of root's.
            let (value, opened) = if tail.is_empty() {
                (path.clone(), path)
            } else {
                let root = bench.make(&format!("{} ROCm", what()), 0, 0o755)?;
                fs::create_dir(root.join("lib"))?;
                symlink(&path, root.join(tail))?;
                (root.clone(), root.join(tail))
            };
            let device = Path::new(if tail.is_empty() { "cpu" } else { "auto" });
            let variables = [
                ("CUDAWAY_DEVICE", device),
                ("CUDAWAY_CACHE_DIR", &cache),
                ("CUDAWAY_LOG", Path::new("warn")),
                (variable, &value),
            ];
            let ended = bench.start(&bench.program, 0, &variables)?;
            placing.judge(mark.exists(), &ended, &opened, &folder).with_context(what)?;
            _ = fs::remove_file(&mark);
            // A device that cannot be opened is none; else CUDAway does the work itself.
            let wanted =
                if variable == "CUDAWAY_DEVICE" { "cuInit answers 100\n" } else { "the answer is 42\n" };
            ensure!(ended.stdout == wanted, "{}: {}", what(), ended.describe());
        }
    }
    // A path that does not begin at the root is looked at as well, and a name is the loader's business.
    let own = bench.make("relative", 0, 0o755)?;
    let (library, mark) = (witness(bench, &own, "witness.so")?, own.join("loaded"));
    chmod(&library, 0o666)?;
    for (value, is_opened) in
        [("./witness.so", false), ("../relative/witness.so", false), ("witness.so", true)]
    {
        let run = Run::new(&bench.program).dir(&own).env("CUDAWAY_DEVICE", value).env("CUDAWAY_LOG", "warn");
        let ended = run.env("CUDAWAY_CACHE_DIR", &cache).env("LD_LIBRARY_PATH", &own).run()?;
        let is_right = mark.exists() == is_opened && ended.stderr.contains(UNTRUSTED) != is_opened;
        ensure!(is_right, "{value}: {}", ended.describe());
        _ = fs::remove_file(&mark);
    }
    Ok(())
}

/// The helper, a `libamd_comgr` that it opens, and ROCm's clang.
fn named_compilers(bench: &Bench) -> Result<()> {
    let source = bench.path("kernel.ptx");
    fs::write(&source, KERNEL)?;
    let marks = bench.make("marks", 0, 0o755)?;
    let mark = marks.join("loaded");
    let library = witness(bench, &marks, "witness.so")?;
    let script = bench.path("script");
    fs::write(&script, format!("#!/bin/sh\n: > {}\nexit 1\n", mark.display()))?;
    for (variable, file) in
        [("CUDAWAY_COMGR_HELPER", &script), ("CUDAWAY_GFX_COMPILER", &library), ("ROCM_PATH", &script)]
    {
        for placing in &PLACINGS {
            let what = || format!("{variable} {}", placing.name);
            let folder = bench.path(&what());
            let path = placing.put(bench, &what(), file)?;
            let run = Run::new(&bench.cudaway).args(["compile", "--target", "gfx1100", "--output"]);
            let run = run.arg(bench.path("out")).arg(&source).env("CUDAWAY_LOG", "warn");
            let run = run.env("CUDAWAY_CACHE_MAX_MB", "0");
            let (run, opened) = if variable == "ROCM_PATH" {
                let bin = bench.path(&format!("{} ROCm/llvm/bin", what()));
                fs::create_dir_all(&bin)?;
                fs::write(bin.join("ld.lld"), "")?;
                symlink(&path, bin.join("clang"))?;
                let root = bench.path(&format!("{} ROCm", what()));
                let run =
                    run.env(variable, root).env("CUDAWAY_GFX_COMPILER", "tools").env("PATH", "/nowhere");
                (run, bin.join("clang"))
            } else {
                (run.env(variable, &path), path)
            };
            let ended = run.run()?;
            placing.judge(mark.exists(), &ended, &opened, &folder).with_context(what)?;
            _ = fs::remove_file(&mark);
        }
    }
    Ok(())
}

fn set_user_id(bench: &Bench) -> Result<()> {
    let lent = bench.path("lent");
    fs::copy(&bench.program, &lent)?;
    chmod(&lent, 0o4755)?;
    let theirs = bench.make("theirs", NOBODY, 0o755)?;
    let hostile = witness(bench, &theirs, "lib/libamdhip64.so")?;
    let file = |name: &str| theirs.join(name);
    let (log, trace, dump, cache) = (file("log"), file("trace"), file("dump"), file("cache"));
    let variables: Vec<(&str, &Path)> = vec![
        ("CUDAWAY_LOG", Path::new("trace")),
        ("CUDAWAY_LOG_FILE", &log),
        ("CUDAWAY_TRACE", &trace),
        ("CUDAWAY_DUMP_DIR", &dump),
        ("CUDAWAY_CACHE_DIR", &cache),
        ("CUDAWAY_PROFILE", Path::new("1")),
        ("CUDAWAY_HOOKS", Path::new("dlsym,dlopen,log")),
        ("CUBLASLT_LOG_LEVEL", Path::new("5")),
        ("CUBLASLT_LOG_FILE", &log),
        ("HOME", &theirs),
        ("XDG_CACHE_HOME", &theirs),
        ("TMPDIR", &theirs),
    ];
    // Started with nothing but its user's own rights, it does as it is told.
    let ended = bench.start(
        &bench.program,
        NOBODY,
        &[&variables[..], &[("CUDAWAY_DEVICE", Path::new("cpu"))]].concat(),
    )?;
    ensure!(ended.status.success(), "{}", ended.describe());
    let made = names(&theirs)?;
    for wanted in ["cache", "dump", "log", "trace."] {
        ensure!(made.iter().any(|name| name.starts_with(wanted)), "the control made no {wanted}: {made:?}");
    }
    for name in made.iter().filter(|name| *name != "lib") {
        let path = theirs.join(name);
        if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
    }
    let libraries: [(&str, &Path); 12] = [
        ("CUDAWAY_DEVICE", &hostile),
        ("CUDAWAY_BLAS", &hostile),
        ("CUDAWAY_DNN", &hostile),
        ("CUDAWAY_FFT", &hostile),
        ("CUDAWAY_RAND", &hostile),
        ("CUDAWAY_SOLVER", &hostile),
        ("CUDAWAY_SPARSE", &hostile),
        ("CUDAWAY_NVJITLINK", &hostile),
        ("CUDAWAY_ROCM_ROOT", &theirs),
        ("HIP_PATH", &theirs),
        ("ROCM_PATH", &theirs),
        ("CUDAWAY_COMGR_HELPER", &hostile),
    ];
    for library in &libraries {
        let control = bench.start(&bench.program, NOBODY, &[*library, ("CUDAWAY_CACHE_DIR", &cache)])?;
        let takes = !["CUDAWAY_COMGR_HELPER"].contains(&library.0);
        ensure!(file("loaded").exists() == takes, "the control with {}: {}", library.0, control.describe());
        _ = fs::remove_file(file("loaded"));
    }
    _ = fs::remove_dir_all(&cache);
    let ended = bench.start(&lent, NOBODY, &[&variables[..], &libraries].concat())?;
    ensure!(ended.status.success() && ended.stdout == "the answer is 42\n", "{}", ended.describe());
    ensure!(ended.stderr.is_empty(), "{}", ended.describe());
    ensure!(names(&theirs)? == ["lib"], "left in its user's folder: {:?}", names(&theirs)?);
    Ok(())
}

const KERNEL: &str = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n";

/// `cudaway compile`, of a file that asks for a compiler for AMD GPUs.
fn compiler(bench: &Bench) -> Result<()> {
    let source = bench.path("kernel.ptx");
    fs::write(&source, KERNEL)?;
    // Beside `lib`, where the helper lies.
    fs::create_dir(bench.path("bin"))?;
    let (own, lent) = (bench.path("bin/cudaway"), bench.path("bin/lent"));
    for (path, mode) in [(&own, 0o755), (&lent, 0o4755)] {
        fs::copy(&bench.cudaway, path)?;
        chmod(path, mode)?;
    }
    let theirs = bench.make("theirs", NOBODY, 0o755)?;
    let marks = theirs.join("marks");
    fs::create_dir(&marks)?;
    chmod(&marks, 0o777)?;
    fs::create_dir(theirs.join("bin"))?;
    for name in ["helper", "bin/clang", "bin/ld.lld"] {
        let script = format!("#!/bin/sh\n: > {}/$(basename $0)\nexit 1\n", marks.display());
        fs::write(theirs.join(name), script)?;
        chmod(&theirs.join(name), 0o755)?;
    }
    fs::create_dir(theirs.join("llvm"))?;
    symlink("../bin", theirs.join("llvm/bin"))?;
    let (helper, bin) = (theirs.join("helper"), theirs.join("bin"));
    let path = PathBuf::from(format!("{}:/usr/bin:/bin", bin.display()));
    let variables: [(&str, &Path); 4] = [
        ("CUDAWAY_COMGR_HELPER", &helper),
        ("CUDAWAY_GFX_COMPILER", Path::new("tools")),
        ("ROCM_PATH", &theirs),
        ("PATH", &path),
    ];
    let start = |program: &Path, variables: &[(&str, &Path)]| -> Result<Vec<String>> {
        let words = ["compile", "--target", "gfx1100", "--output"];
        let script = format!(
            "exec {} {} {} {}",
            program.display(),
            words.join(" "),
            marks.join("out").display(),
            source.display()
        );
        let shell = bench.path("start");
        fs::write(&shell, format!("#!/bin/sh\n{script}\n"))?;
        chmod(&shell, 0o755)?;
        bench.start(&shell, NOBODY, &[variables, &[("CUDAWAY_CACHE_MAX_MB", Path::new("0"))]].concat())?;
        let mut made = names(&marks)?;
        made.retain(|name| name != "out");
        for name in &made {
            fs::remove_file(marks.join(name))?;
        }
        Ok(made)
    };
    ensure!(start(&own, &variables[..1])? == ["helper"], "the control starts the helper that it is told of");
    ensure!(start(&own, &variables[1..])? == ["clang"], "the control starts the clang that it is told of");
    for variables in [&variables[..1], &variables[1..]] {
        let started = start(&lent, variables)?;
        ensure!(started.is_empty(), "it started {started:?}");
    }
    Ok(())
}

fn chmod(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(|| path.display().to_string())
}
