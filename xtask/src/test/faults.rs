//! What must hold when things are damaged: the cache, a kernel, a fat binary.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::{Ended, Installed, Run};

use super::examples::{self, Form};
use super::report::{Outcome, Report};
use crate::setup;
use crate::toolchain::Release;

const RELEASE: Release = Release::V13_5;

/// What is done to a file's bytes, and what to call it.
type Damage = (&'static str, fn(&mut Vec<u8>));

/// Second starts compile nothing; a damaged entry costs time, never correctness.
pub fn cache(installed: &Installed, report: &mut Report) {
    let program = match vector_add(installed) {
        Ok(program) => program,
        Err(error) => return report.note("cache", Outcome::Failed(format!("{error:#}"))),
    };
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return report.note("cache", Outcome::Failed(error.to_string())),
    };
    let images = dir.path().join("images");
    let start = |name: &str| -> Result<String> {
        let log = dir.path().join(name);
        let run = installed.preloaded(&program);
        let run =
            run.env("CUDAWAY_CACHE_DIR", &images).env("CUDAWAY_LOG", "debug").env("CUDAWAY_LOG_FILE", &log);
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        fs::read_to_string(&log).context("the log file")
    };
    let first = || -> Result<()> {
        let log = start("first.log")?;
        ensure!(
            !log.contains("cache hit"),
            "a first start cannot hit an empty cache:\n{}",
            cache_lines(&log)
        );
        ensure!(!files(&images)?.is_empty(), "nothing was written to {}", images.display());
        Ok(())
    };
    let second = || -> Result<()> {
        let before = files(&images)?;
        let log = start("second.log")?;
        ensure!(log.contains("cache hit"), "the log says no cache hit:\n{}", cache_lines(&log));
        ensure!(!log.contains("cache miss"), "the log says cache miss:\n{}", cache_lines(&log));
        ensure!(files(&images)? == before, "the second start wrote new entries");
        Ok(())
    };
    report.note("cache: a first start fills it", first());
    report.note("cache: a second start compiles nothing", second());
    report.note(
        "CUDAWAY_PROFILE=1 has a line for a kernel, from the cache too",
        profiled(installed, &program, &images),
    );

    // Every kind of damage, on every file.
    let damages: [Damage; 4] = [
        ("truncated", |bytes| bytes.truncate(bytes.len() / 2)),
        ("emptied", Vec::clear),
        ("a byte flipped in the middle", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x40;
        }),
        ("overwritten with other text", |bytes| bytes.fill(b'x')),
    ];
    for (kind, damage) in damages {
        let healed = || -> Result<()> {
            let entries = files(&images)?;
            for entry in &entries {
                let mut bytes = fs::read(entry)?;
                if !bytes.is_empty() {
                    damage(&mut bytes);
                }
                fs::write(entry, bytes)?;
            }
            let log = start(&format!("{}.log", kind.replace(' ', "-")))?;
            ensure!(!log.contains("cache hit"), "a damaged entry was used:\n{}", cache_lines(&log));
            let log = start(&format!("{}-again.log", kind.replace(' ', "-")))?;
            ensure!(log.contains("cache hit"), "the entry was not rebuilt:\n{}", cache_lines(&log));
            Ok(())
        };
        report.note(&format!("cache: an entry that is {kind} is rebuilt"), healed());
    }

    let unwritable = || -> Result<()> {
        // A file where the directory should be: not even root can write below it.
        let file = dir.path().join("a-file");
        fs::write(&file, "")?;
        let run = installed.preloaded(&program).env("CUDAWAY_CACHE_DIR", file.join("images"));
        let ended = run.run()?;
        ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
        Ok(())
    };
    report.note("cache: one that cannot be written costs time only", unwritable());
    report.note(
        "CUDA_MODULE_LOADING=EAGER: a load compiles what it loads, through the driver and the runtime",
        eager(installed, &program, dir.path()),
    );
}

/// A program that launches nothing has its kernels compiled; one of the runtime's, by its first call that makes a context.
fn eager(installed: &Installed, program: &Path, dir: &Path) -> Result<()> {
    let ptx = dir.join("eager.ptx");
    let kernels =
        ["first", "second"].map(|name| format!(".visible .entry {name}(.param .u64 p)\n{{\nret;\n}}\n"));
    fs::write(&ptx, format!(".version 6.0\n.target sm_50\n.address_size 64\n{}", kernels.concat()))?;
    let loader = module_loader(dir)?;
    let log = |run: Run, mode: &str| -> Result<String> {
        let images = dir.join(format!("eager-images-{mode}"));
        let run = run.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", &images);
        let ended = run.env("CUDA_MODULE_LOADING", mode).env("CUDAWAY_LOG", "trace").run()?;
        if images.exists() {
            fs::remove_dir_all(&images)?;
        }
        ensure!(ended.status.success(), "{}", ended.describe());
        Ok(ended.stderr)
    };
    for (mode, n_compiled) in [("EAGER", 2), ("LAZY", 0)] {
        let found = log(installed.found(&loader).arg(&ptx), mode)?;
        let n = found.matches("compiled kernel").count();
        ensure!(n == n_compiled, "{mode}: {n} kernels were compiled:\n{found}");
    }
    for (mode, is_first) in [("EAGER", true), ("LAZY", false)] {
        let found = log(installed.preloaded(program), mode)?;
        let compiled = found.find("compiled kernel").context("nothing was compiled")?;
        let launched = found.find("__cudaPushCallConfiguration").context("nothing was launched")?;
        ensure!((compiled < launched) == is_first, "{mode}: compiled out of order:\n{found}");
    }
    Ok(())
}

/// A kernel or a fat binary that is not what it should be.
pub fn run(installed: &Installed, report: &mut Report) {
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return report.note("faults", Outcome::Failed(error.to_string())),
    };
    let loader = match module_loader(dir.path()) {
        Ok(loader) => loader,
        Err(error) => return report.note("faults: module_loader", Outcome::Failed(format!("{error:#}"))),
    };
    report.note(
        "CUDAWAY_DUMP_DIR has a file for each kernel, and the PTX",
        dumped(installed, &loader, dir.path()),
    );
    report.note(
        "an unknown instruction fails its own kernel alone, by name, line and column",
        unknown_instruction(installed, &loader, dir.path()),
    );
    report.note(
        "a damaged fat binary never crashes its reader",
        damaged_images(installed, &loader, dir.path()),
    );
    report.note(
        "a program with a damaged fat binary fails with an error of its own",
        damaged_programs(installed, dir.path()),
    );
    report.note(
        "a shared build finds our libraries with LD_LIBRARY_PATH alone",
        library_path_alone(installed, dir.path()),
    );
    report.note("preloading the driver alone serves a static build", driver_alone(installed, dir.path()));
    report.note(
        "a fault inside the program's malloc reaches the program's handler",
        fault_in_malloc(installed, dir.path()),
    );
    match kernel_faults(dir.path()) {
        Ok(program) => failing_kernels(installed, &program, dir.path(), report),
        Err(error) => report.note("faults: kernel_faults", Outcome::Failed(format!("{error:#}"))),
    }
}

/// What a kernel does wrong, and what stderr then says.
const FAILING: &[(&str, &str)] = &[
    ("null", ""),
    ("wild", ""),
    ("noncanonical", ""),
    ("trap", ""),
    ("stack", ""),
    ("call", ""),
    ("heap", ""),
    ("unaligned", ""),
    ("contexts", ""),
    ("handlers", ""),
    ("stream", ""),
    ("event", ""),
    ("copy", ""),
    (
        "assert",
        ": void asserts(const int *): block: [0,1,0], thread: [5,0,0] Assertion `data[threadIdx.x] < 40 || blockIdx.y != 1` failed.\n",
    ),
];

/// The documented error at the documented call, again and again until the reset; the program checks that itself.
fn failing_kernels(installed: &Installed, program: &Path, dir: &Path, report: &mut Report) {
    for setting in ["auto", "warp", "lane"] {
        for (way, message) in FAILING {
            let run = installed.preloaded(program).arg(way).env("CUDAWAY_CPU_SETTING", setting);
            let outcome = run.env("CUDAWAY_CACHE_DIR", dir.join("kernels")).run().and_then(|ended| {
                ensure!(ended.passed(), "{}", ended.describe());
                let fits =
                    if message.is_empty() { ended.stderr.is_empty() } else { ended.stderr.contains(message) };
                ensure!(fits, "stderr says {:?}, expected {message:?}", ended.stderr);
                Ok(())
            });
            report.note(
                &format!("a failing kernel, {way}, setting {setting}: CUDA's error, and the process lives"),
                outcome,
            );
        }
    }
    let printed = || -> Result<()> {
        let ended = installed.preloaded(program).arg("printf").run()?;
        // More than the FIFO holds: CUDA would drop the oldest lines, here none is lost.
        let lines = ended.stdout.lines().filter(|line| line.starts_with("a line of text")).count();
        ensure!(ended.passed() && lines == 40_000, "{lines} lines; {}", ended.status);
        Ok(())
    };
    report.note("device printf beyond the FIFO's size loses nothing", printed());
}

fn kernel_faults(dir: &Path) -> Result<PathBuf> {
    let (source, program) = (programs().join("kernel_faults.cu"), dir.join("kernel_faults"));
    setup::run(RELEASE.get()?.nvcc().arg("-w").arg("-Xptxas=-w").arg("-o").arg(&program).arg(source))?;
    Ok(program)
}

fn vector_add(installed: &Installed) -> Result<PathBuf> {
    examples::build(&RELEASE.get()?, Form::Static, "vector_add", installed)
}

pub fn module_loader(dir: &Path) -> Result<PathBuf> {
    let (source, program) = (programs().join("module_loader.c"), dir.join("module_loader"));
    setup::run(Command::new("gcc").arg("-O1").arg("-o").arg(&program).arg(source).arg("-ldl"))?;
    Ok(program)
}

fn fault_in_malloc(installed: &Installed, dir: &Path) -> Result<()> {
    let (source, program) = (programs().join("fault_in_malloc.c"), dir.join("fault_in_malloc"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-rdynamic", "-pthread", "-o"]).arg(&program).arg(source).arg("-ldl");
    setup::run(&mut gcc)?;
    let ended = installed.found(&program).limit(Duration::from_secs(60)).run()?;
    ensure!(ended.status.success() && ended.stdout == "handled\n", "{}", ended.describe());
    Ok(())
}

fn programs() -> PathBuf {
    setup::root().join("crates/testkit/programs")
}

/// Names as long as those of templates, alike but for their ends; and the text that they came from.
fn dumped(installed: &Installed, loader: &Path, dir: &Path) -> Result<()> {
    let names = ["a", "b"].map(|end| "k".repeat(200) + end);
    let head = ".version 6.0\n.target sm_50\n.address_size 64\n".to_owned();
    let text = names
        .iter()
        .fold(head, |text, name| text + &format!(".visible .entry {name}(.param .u64 p)\n{{\nret;\n}}\n"));
    let (ptx, dump) = (dir.join("long.ptx"), dir.join("dump"));
    fs::write(&ptx, &text)?;
    let run = installed.found(loader).arg(&ptx).args(&names).env("CUDAWAY_DEVICE", "cpu");
    let run = run.env("CUDAWAY_CPU_TIER", "best");
    let ended = run.env("CUDAWAY_CACHE_DIR", dir.join("dumped")).env("CUDAWAY_DUMP_DIR", &dump).run()?;
    ensure!(ended.status.success(), "{}", ended.describe());
    let kept = |ending: &str| -> Result<Vec<String>> {
        let of_kind = files(&dump)?.into_iter().filter(|file| file.to_string_lossy().ends_with(ending));
        of_kind.map(|file| fs::read_to_string(&file).with_context(|| file.display().to_string())).collect()
    };
    let code = kept(".32x1x1.ll")?;
    ensure!(code.len() == 2, "two kernels, {} files of LLVM IR in {:?}", code.len(), files(&dump)?);
    ensure!(kept(".ptx")?.iter().any(|kept| kept.trim_end_matches('\0') == text), "no file has the PTX");
    Ok(())
}

fn unknown_instruction(installed: &Installed, loader: &Path, dir: &Path) -> Result<()> {
    let ptx = programs().join("one_unknown.ptx");
    let line = 1 + fs::read_to_string(&ptx)?
        .lines()
        .position(|line| line.contains("frobnicate"))
        .context("the bad line")?;
    let ended = installed
        .found(loader)
        .arg(&ptx)
        .arg("good")
        .arg("bad")
        .env("CUDAWAY_CACHE_DIR", dir.join("unknown"))
        .run()?;
    let said = |text: &str| ended.stdout.lines().any(|line| line == text);
    let sevens: String = (0..32).map(|lane| format!(" {}", lane * 7)).collect();
    ensure!(ended.status.success(), "{}", ended.describe());
    ensure!(
        said("function good 0") && said(&format!("launch good 0:{sevens}")),
        "the good kernel does not run:\n{}",
        ended.stdout
    );
    ensure!(said("function bad 218"), "the bad kernel gives no CUDA_ERROR_INVALID_PTX:\n{}", ended.stdout);
    let log: String = ended.stdout.split_once("log ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    let place = log
        .lines()
        .find(|text| text.contains("frobnicate"))
        .context("the JIT error log does not name the instruction")?;
    // file:line:column, the column being where the instruction begins.
    ensure!(place.contains(&format!(":{line}:2")), "expected …:{line}:2 in {place:?}");
    Ok(())
}

/// Bits flipped and tails cut from a real nvcc fat binary, loaded from memory that ends where it ends.
fn damaged_images(installed: &Installed, loader: &Path, dir: &Path) -> Result<()> {
    let toolchain = RELEASE.get()?;
    examples::build(&toolchain, Form::Dlopen, "matmul_tiled", installed)?;
    let image = fs::read(setup::root().join("target/examples/13.5/dlopen/matmul_tiled.fatbin"))?;
    let cache = dir.join("damaged");
    let check = |what: String, bytes: &[u8]| -> Result<()> {
        let file = dir.join("damaged.fatbin");
        fs::write(&file, bytes)?;
        let ended =
            installed.found(loader).arg("--exact").arg(&file).env("CUDAWAY_CACHE_DIR", &cache).run()?;
        ensure!(ended.status.code() == Some(0), "{what}: {}", ended.describe());
        Ok(())
    };
    check("undamaged".into(), &image)?;
    for step in 0..24 {
        // The container's header says how much follows, so a cut file with a truthful header is tried as well.
        let keep = image.len() * step / 24;
        let mut cut = image[..keep].to_vec();
        if keep >= 16 {
            let rest = u64::try_from(keep - 16)?;
            cut[8..16].copy_from_slice(&rest.to_le_bytes());
        } else {
            // Less than a header: the loader may not read past the magic number it knows.
            cut.resize(16, 0);
        }
        check(format!("cut to {keep} bytes"), &cut)?;
    }
    let mut random = Random(0x5eed);
    for flip in 0..60 {
        let mut bytes = image.clone();
        // Half of the flips in the headers, where lengths are; never in the container's own length, which is a promise.
        let range = if flip % 2 == 0 { 16..96.min(image.len()) } else { 16..image.len() };
        let at = range.start + usize::try_from(random.next())? % range.len();
        let bit = random.next() % 8;
        bytes[at] ^= 1 << bit;
        check(format!("bit {bit} of byte {at} flipped"), &bytes)?;
    }
    Ok(())
}

/// The same inside a static program: whatever its fat binary says, the program ends by itself.
fn damaged_programs(installed: &Installed, dir: &Path) -> Result<()> {
    let program = vector_add(installed)?;
    let original = fs::read(&program)?;
    let (offset, size) = section(&program, ".nv_fatbin")?;
    let cache = dir.join("damaged-programs");
    let run = |what: String, bytes: &[u8]| -> Result<Ended> {
        let file = dir.join("damaged-vector-add");
        let _ = fs::remove_file(&file);
        fs::copy(&program, &file)?;
        fs::write(&file, bytes)?;
        let ended = installed.preloaded(&file).env("CUDAWAY_CACHE_DIR", &cache).run()?;
        ensure!(!ended.crashed() && !ended.timed_out, "{what}: {}", ended.describe());
        Ok(ended)
    };
    ensure!(run("undamaged".into(), &original)?.passed(), "the undamaged copy does not pass");
    let mut refused = 0;
    for at in (0..96.min(size)).step_by(3) {
        let mut bytes = original.clone();
        bytes[offset + at] ^= 0x81;
        refused += usize::from(!run(format!("byte {at} of .nv_fatbin changed"), &bytes)?.passed());
    }
    let mut zeroed = original.clone();
    zeroed[offset + size / 2..offset + size].fill(0);
    refused += usize::from(!run("the second half of .nv_fatbin zeroed".into(), &zeroed)?.passed());
    ensure!(refused > 0, "no damage was ever noticed");
    Ok(())
}

fn library_path_alone(installed: &Installed, dir: &Path) -> Result<()> {
    let program = examples::build(&RELEASE.get()?, Form::Shared, "vector_add", installed)?;
    let ended = installed.found(program).env("CUDAWAY_CACHE_DIR", dir.join("plain")).run()?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    Ok(())
}

fn driver_alone(installed: &Installed, dir: &Path) -> Result<()> {
    let program = vector_add(installed)?;
    let run = installed.found(program).env("LD_PRELOAD", installed.lib().join("libcuda.so.1"));
    let ended = run.env("CUDAWAY_CACHE_DIR", dir.join("plain")).run()?;
    ensure!(ended.passed() && ended.stderr.is_empty(), "{}", ended.describe());
    Ok(())
}

/// File offset and size of a section, as readelf prints them.
fn section(program: &Path, name: &str) -> Result<(usize, usize)> {
    let out =
        Command::new("readelf").args(["-SW"]).arg(program).env("LC_ALL", "C").output().context("readelf")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let row = text
        .lines()
        .find(|line| line.split_whitespace().any(|word| word == name))
        .with_context(|| format!("{name} is missing"))?;
    // …] name type address offset size …
    let fields: Vec<&str> = row.split_once(']').context("a section row")?.1.split_whitespace().collect();
    let number = |at: usize| usize::from_str_radix(fields.get(at).copied().unwrap_or_default(), 16);
    Ok((number(3)?, number(4)?))
}

pub fn files(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

/// The log's lines about the cache, for a person.
/// Twice: the second start has its code from the cache.
fn profiled(installed: &Installed, program: &Path, images: &Path) -> Result<()> {
    for _ in 0..2 {
        let run = installed.preloaded(program).env("CUDAWAY_CACHE_DIR", images).env("CUDAWAY_PROFILE", "1");
        let ended = run.run()?;
        let line = ended.stderr.lines().find(|line| line.contains("vector_add"));
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        // All of the time, one launch, setting `simd`.
        let is_right = matches!(words[..], ["100.0", _, "1", _, _, _, _, "simd,", ..]);
        ensure!(ended.passed() && is_right, "{}", ended.describe());
    }
    Ok(())
}

fn cache_lines(log: &str) -> String {
    log.lines().filter(|line| line.contains("cache")).take(12).collect::<Vec<_>>().join("\n")
}

/// A small generator: the same damage on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}
