//! Static runtimes without names: told by their code, release by release, and left alone where the code is another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::examples::{self, Form};
use super::report::{Outcome, Report};
use crate::codegen::signatures;
use crate::setup;
use crate::toolchain::Release;

/// Archives that a check needs in any case.
const ALWAYS: [&str; 3] = ["12.9.79", "13.0.96", "13.5.37"];

/// `whole`: by all that can be had. Otherwise by a third of what is downloaded, drawn by `STRIPPED_SEED`.
pub fn run(installed: &Installed, whole: bool, report: &mut Report) {
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return report.note("stripped", Outcome::Failed(error.to_string())),
    };
    let bench = Bench { installed, dir: dir.path() };
    report.note("a stripped program of nvcc 13.5 computes, its runtime taken over", bench.of_nvcc());
    let versions = match signatures::versions() {
        Ok(versions) => versions,
        Err(error) => return report.note("stripped", Outcome::Failed(format!("{error:#}"))),
    };
    let seed = super::seed("STRIPPED_SEED");
    let is_drawn = |nth: usize| whole || (seed % 3 + nth as u64).is_multiple_of(3);
    let not_drawn = || {
        let why = format!("not drawn by STRIPPED_SEED={seed}; --all and --only stripped take all of them");
        Outcome::Skipped(why)
    };
    for (nth, version) in versions.into_iter().enumerate() {
        let name = format!("a stripped program with the static runtime {version} is taken over whole");
        if !is_drawn(nth) && !ALWAYS.contains(&&*version) {
            report.note(&name, not_drawn());
            continue;
        }
        match signatures::archive_at_hand(&version) {
            Ok(Some(archive)) => report.note(&name, bench.of_archive(&version, &archive)),
            Ok(None) => report.note(
                &name,
                Outcome::Skipped("`cargo xtask codegen --signatures` downloads it (800 MB)".to_owned()),
            ),
            Err(error) => report.note(&name, Outcome::Failed(format!("{error:#}"))),
        }
    }
    for (nth, (release, pin)) in NVJPEG.into_iter().enumerate() {
        let name =
            format!("NVIDIA's own library {pin}, of {release}: its stripped runtime is taken over whole");
        report.note(&name, if is_drawn(nth) { bench.of_nvidia(pin).into() } else { not_drawn() });
    }
    report.note("what linkers change is told by instructions as by relocations", bench.instructions());
    report.note("a function of which one byte differs is left alone, and named", bench.altered());
    report.note("a runtime of which many functions differ is left alone", bench.another_build());
    report.note("functions whose beginnings are not listed are left alone", bench.without_table());
    report.note("a stripped library that was in use before is left alone", bench.in_use());
}

/// Stripped libraries of releases whose archives are not tried here, by the library's own count.
const NVJPEG: [(&str, &str); 6] = [
    ("CUDA 12.1", "nvidia-nvjpeg-cu12==12.1.0.39"),
    ("CUDA 12.1", "nvidia-nvjpeg-cu12==12.2.0.2"),
    ("CUDA 12.2", "nvidia-nvjpeg-cu12==12.1.1.14"),
    ("CUDA 12.3", "nvidia-nvjpeg-cu12==12.3.0.81"),
    ("CUDA 12.6", "nvidia-nvjpeg-cu12==12.3.3.54"),
    ("CUDA 12.8", "nvidia-nvjpeg-cu12==12.3.5.92"),
];

/// Opens nvJPEG and asks for a handle, for which it needs a device.
const JPEG: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW), *handle = NULL;
    int (*create)(void **) = library ? (int (*)(void **))dlsym(library, "nvjpegCreateSimple") : NULL;
    if (!create) return puts(dlerror());
    puts(create(&handle) == 0 ? "PASSED" : "FAILED");
    return 0;
}
"#;

/// A program that has the runtime and no kernels.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
int cudaMalloc(void **, unsigned long), cudaFree(void *), cudaMemcpy(void *, const void *, unsigned long, int);
int cudaRuntimeGetVersion(int *), cudaGetDeviceCount(int *);
int work(void) {
    int version = 0, n = 0, status;
    char sent[] = "there and back", got[sizeof sent] = "";
    void *there = NULL;
    cudaRuntimeGetVersion(&version);
    status = cudaGetDeviceCount(&n);
    if (status == 0) status = cudaMalloc(&there, sizeof sent);
    if (status == 0) status = cudaMemcpy(there, sent, sizeof sent, 1);
    if (status == 0) status = cudaMemcpy(got, there, sizeof sent, 2);
    if (status == 0) status = cudaFree(there);
    printf("version=%d devices=%d status=%d text=%s\n", version, n, status, got);
    puts(status == 0 && strcmp(sent, got) == 0 ? "PASSED" : "FAILED");
    return 0;
}
#ifndef LIBRARY
int main(void) { return work(); }
#endif
"#;

/// Opens a library, uses it, opens our driver, and uses the library again.
const LATE: &str = r#"
#include <dlfcn.h>
int main(int n, char **arguments) {
    int (*work)(void) = (int (*)(void))dlsym(dlopen(arguments[1], RTLD_NOW), "work");
    int (*init)(unsigned);
    work();
    init = (int (*)(unsigned))dlsym(dlopen(arguments[2], RTLD_NOW), "cuInit");
    init(0);
    work();
    return 0;
}
"#;

struct Bench<'a> {
    installed: &'a Installed,
    dir: &'a Path,
}

/// A stripped program, and at which of the file's offsets its functions begin.
struct Stripped {
    program: PathBuf,
    functions: BTreeMap<String, usize>,
}

impl Bench<'_> {
    fn of_nvcc(&self) -> Result<()> {
        let program = self.dir.join("of_nvcc");
        let whole = examples::build(&Release::V13_5.get()?, Form::Static, "vector_add", self.installed)?;
        setup::run(Command::new("strip").arg("-o").arg(&program).arg(whole))?;
        let log = self.passes(self.installed.preloaded(program))?;
        ensure!(log.contains("CUDA 13 runtime taken over"), "{log}");
        ensure!(log.contains("its code is that of 13.5.37\n"), "{log}");
        Ok(())
    }

    fn of_archive(&self, version: &str, archive: &Path) -> Result<()> {
        for flags in [&["-pie"][..], &["-no-pie"], &["-pie", "-fuse-ld=gold", "-Wl,--gc-sections"]] {
            let stripped = self.link(archive, flags)?;
            let log = self.passes(self.installed.preloaded(&stripped.program))?;
            let line = told(&log).with_context(|| format!("{version} {flags:?}: {log}"))?;
            ensure!(is_whole(line) && line.contains(version), "{version} {flags:?}: {line}");
        }
        Ok(())
    }

    fn of_nvidia(&self, pin: &str) -> Result<()> {
        let dir = setup::root().join(".cache/nvjpeg").join(pin);
        fs::create_dir_all(&dir)?;
        setup::files_of_wheel(pin, "/libnvjpeg.so.", &dir)?;
        let (source, program) = (self.dir.join("jpeg.c"), self.dir.join("jpeg"));
        fs::write(&source, JPEG)?;
        setup::run(Command::new("cc").arg("-w").arg("-o").arg(&program).arg(&source).arg("-ldl"))?;
        let log = self.passes(self.installed.preloaded(program).arg(dir.join("libnvjpeg.so.12")))?;
        let line = told(&log).with_context(|| log.clone())?;
        ensure!(is_whole(line), "{line}");
        Ok(())
    }

    /// What `codegen --signatures` takes from libraries is no less than what it takes from archives.
    fn instructions(&self) -> Result<()> {
        for version in ALWAYS {
            self.link(&signatures::archive(version)?, &["-shared", "-fPIC", "-DLIBRARY"])?;
            let untold = signatures::untold(version, &self.dir.join("whole"))?;
            ensure!(untold.is_empty(), "{version}: {}", untold.join(", "));
        }
        Ok(())
    }

    fn altered(&self) -> Result<()> {
        let stripped = self.newest(&[])?;
        stripped.change(|name| name == "cudaGraphCreate")?;
        let log = self.passes(self.installed.preloaded(&stripped.program))?;
        let line = told(&log).with_context(|| log.clone())?;
        ensure!(line.ends_with(" but for cudaGraphCreate, left alone"), "{line}");
        ensure!(line.contains("taken over, 457 of 458 functions"), "{line}");
        Ok(())
    }

    /// All functions of graphs and textures, and more: none that the program calls, or that their own code would.
    fn another_build(&self) -> Result<()> {
        let stripped = self.newest(&[])?;
        let n = stripped.change(|name| {
            ["cudaGraph", "cudaTexture", "cudaSurface", "cudaStream", "cudaMemcpy3D", "cudaEvent"]
                .iter()
                .any(|it| name.starts_with(it))
        })?;
        ensure!(n > 458 / 4, "{n} functions are too few");
        let log = self.log_of(self.installed.preloaded(&stripped.program))?.1;
        ensure!(!log.contains("runtime taken over"), "{log}");
        Ok(())
    }

    fn without_table(&self) -> Result<()> {
        let program = unlisted(Release::V13_5, self.dir)?;
        let log = self.log_of(self.installed.preloaded(program))?.1;
        ensure!(!log.contains("runtime taken over") && log.contains("symbol names were stripped"), "{log}");
        Ok(())
    }

    fn in_use(&self) -> Result<()> {
        let library = self.newest(&["-shared", "-fPIC", "-DLIBRARY"])?.program;
        let (source, program) = (self.dir.join("late.c"), self.dir.join("late"));
        fs::write(&source, LATE)?;
        setup::run(Command::new("cc").arg("-w").arg("-o").arg(&program).arg(&source).arg("-ldl"))?;
        let driver = self.installed.lib().join("libcuda.so.1");
        let (output, log) = self.log_of(Run::new(program).arg(&library).arg(&driver))?;
        ensure!(output.matches("version=13050").count() == 2, "{output}");
        ensure!(!log.contains("runtime taken over") && log.contains("was in use before"), "{log}");
        Ok(())
    }

    fn newest(&self, flags: &[&str]) -> Result<Stripped> {
        self.link(&signatures::archive("13.5.37")?, flags)
    }

    /// The program with this archive, stripped.
    fn link(&self, archive: &Path, flags: &[&str]) -> Result<Stripped> {
        let (source, whole, program) =
            (self.dir.join("program.c"), self.dir.join("whole"), self.dir.join("program"));
        fs::write(&source, PROGRAM)?;
        let mut cc = Command::new("cc");
        cc.args(["-w", "-O1"]).args(flags).arg("-o").arg(&whole).arg(&source).arg(archive);
        setup::run(cc.args(["-ldl", "-lrt", "-lpthread", "-lm", "-lstdc++"]))?;
        setup::run(Command::new("strip").arg("-o").arg(&program).arg(&whole))?;
        Ok(Stripped { functions: functions(&whole)?, program })
    }

    /// Runs a program that must pass, and gives our log of it.
    fn passes(&self, run: Run) -> Result<String> {
        let (output, log) = self.log_of(run.env("CUDAWAY_CACHE_DIR", self.dir.join("images")))?;
        ensure!(output.ends_with("PASSED\n"), "{output}\n{log}");
        Ok(log)
    }

    /// What a program says, which must end well, and what our log does.
    fn log_of(&self, run: Run) -> Result<(String, String)> {
        let log = self.dir.join("log");
        let _ = fs::remove_file(&log);
        let ended = run.env("CUDAWAY_LOG", "info").env("CUDAWAY_LOG_FILE", &log).run()?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        ensure!(!ended.crashed() && !ended.timed_out, "{}\n{said}", ended.describe());
        Ok((ended.stdout, said))
    }
}

/// A stripped program with a kernel and a runtime that cannot be told: it does not list where its functions begin.
pub fn unlisted(release: Release, dir: &Path) -> Result<PathBuf> {
    let (source, program) = (dir.join("unlisted.cu"), dir.join("unlisted"));
    let text = "#include <cstdio>\n__global__ void nothing() {}\n\
                int main() { int n = 0; printf(\"%d\\n\", cudaGetDeviceCount(&n)); if (n < 0) nothing<<<1, 1>>>(); }\n";
    fs::write(&source, text)?;
    let mut nvcc = release.get()?.nvcc();
    setup::run(
        nvcc.args(["-cudart", "static", "-Xlinker", "--no-eh-frame-hdr", "-o"]).arg(&program).arg(&source),
    )?;
    setup::run(Command::new("strip").arg(&program))?;
    Ok(program)
}

/// The line about a runtime that was told by its code.
fn told(log: &str) -> Option<&str> {
    log.lines().find(|line| line.contains("taken over, ") && line.contains("its code is that of"))
}

/// `… 458 of 458 functions redirected …`, none left alone
fn is_whole(line: &str) -> bool {
    let counts =
        line.split_once("taken over, ").and_then(|(_, rest)| rest.split_once(" functions redirected"));
    let is_all = |(done, all): (&str, &str)| done == all && all != "0";
    counts.and_then(|(counts, _)| counts.split_once(" of ")).is_some_and(is_all)
        && !line.contains("left alone")
}

impl Stripped {
    /// Turns a bit in the first byte of some functions; how many those are.
    fn change(&self, which: impl Fn(&str) -> bool) -> Result<usize> {
        let mut bytes = fs::read(&self.program)?;
        let mut n = 0;
        for (_, &at) in self.functions.iter().filter(|(name, _)| which(name)) {
            *bytes.get_mut(at).context("a function behind the file's end")? ^= 1;
            n += 1;
        }
        ensure!(n > 0, "no function has such a name");
        fs::write(&self.program, bytes)?;
        Ok(n)
    }
}

/// The runtime's functions by name, as offsets in the file. (Stripping leaves code where it is in the file.)
fn functions(program: &Path) -> Result<BTreeMap<String, usize>> {
    let said =
        |arguments: &str| setup::said(Command::new("readelf").arg(arguments).arg(program).env("LC_ALL", "C"));
    // Type, offset, address, …: of the segment that is executed.
    let segments = said("-lW")?;
    let code = segments.lines().find(|line| line.trim().starts_with("LOAD") && line.contains(" R E "));
    let mut fields = code.context("no code")?.split_whitespace().skip(1);
    let mut hexadecimal = || -> Result<usize> {
        let field = fields.next().context("a segment's row")?;
        Ok(usize::from_str_radix(field.trim_start_matches("0x"), 16)?)
    };
    let (offset, address) = (hexadecimal()?, hexadecimal()?);
    let mut found = BTreeMap::new();
    // Number, address, size, type, binding, visibility, section, name
    for line in said("-sW")?.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, at, _, "FUNC", _, _, section, name] = fields[..]
            && section != "UND"
            && name.starts_with("cuda")
        {
            found.insert(name.to_owned(), usize::from_str_radix(at, 16)? - address + offset);
        }
    }
    Ok(found)
}
