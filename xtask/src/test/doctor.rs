//! `cudaway doctor` on made-up services: each has one fault, and the doctor must name that one and no other.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::{Ended, Installed, Run, TempDir};

use super::examples::quiet;
use super::report::{Outcome, Report};
use super::tools::cudaway;
use crate::toolchain::Release;

pub fn run(installed: &Installed, report: &mut Report) {
    report.note("cudaway doctor finds nothing wrong with what was built", healthy(installed));
    faults(installed, report);
    report.note(
        "cudaway doctor --pid: a stripped runtime that is told by its code is no fault",
        told(installed),
    );
    report.note("cudaway doctor --pid: a libcuda of somebody else's", theirs(installed));
    report.note("cudaway doctor -- PROGRAM: a library that only refuses is told", linked(installed));
    report.note("cudaway doctor --loader: who answers, asked of the program's loader", loader(installed));
    report.note("cudaway doctor --unit: what systemctl says of a unit, and its process", unit(installed));
    report.note("cudaway doctor --bundle: an archive without secrets", bundle(installed));
}

/// A fault, how to make it, and what doctor must say of it.
struct Fault {
    name: &'static str,
    plant: fn(&Bench) -> Result<Service>,
    causes: &'static [&'static str],
    /// It takes other users, or a /dev of its own.
    needs_root: bool,
}

const fn fault(
    name: &'static str,
    plant: fn(&Bench) -> Result<Service>,
    causes: &'static [&'static str],
) -> Fault {
    Fault { name, plant, causes, needs_root: false }
}

const FAULTS: [Fault; 15] = [
    fault("wrong SONAME", soname, &["files.soname"]),
    fault("stale symlink", link, &["files.link"]),
    fault("RPATH bundle", rpath, &["process.rpath"]),
    Fault { needs_root: true, ..fault("setuid", setuid, &["process.secure"]) },
    fault("cleared environment", cleared, &["process.environment"]),
    Fault { needs_root: true, ..fault("missing group", group, &["device.group"]) },
    // Of the machine, and of the process.
    fault("old glibc need", glibc, &["files.glibc", "process.glibc"]),
    fault("unwritable cache", cache, &["cache.unwritable"]),
    fault("cache that others may write", shared_cache, &["cache.untrusted"]),
    fault("shipped cache that others may write", shipped_cache, &["cache.shipped.untrusted"]),
    fault("wrong node", node, &["files.node"]),
    fault("stripped static runtime", stripped, &["process.stripped"]),
    fault("other-arch library", machine, &["files.machine"]),
    fault("provider that fails to load", provider, &["device.provider"]),
    fault("library that only refuses", refusing, &["process.refused"]),
];

fn faults(installed: &Installed, report: &mut Report) {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let (planted, skipped): (Vec<&Fault>, Vec<&Fault>) =
        FAULTS.iter().partition(|it| is_root || !it.needs_root);
    let names = |faults: &[&Fault]| faults.iter().map(|it| it.name).collect::<Vec<_>>().join(", ");
    let failures: Vec<String> = planted
        .iter()
        .filter_map(|fault| Some(format!("{}: {:#}", fault.name, diagnosed(installed, fault).err()?)))
        .collect();
    let outcome = if failures.is_empty() { Outcome::Passed } else { Outcome::Failed(failures.join("\n")) };
    let n = planted.len() - failures.len();
    report.note(
        &format!("cudaway doctor: {n} of {} planted faults: {}", planted.len(), names(&planted)),
        outcome,
    );
    if !skipped.is_empty() {
        let why = "only root can make them".to_owned();
        report.note(&format!("cudaway doctor: {}", names(&skipped)), Outcome::Skipped(why));
    }
}

fn diagnosed(installed: &Installed, fault: &Fault) -> Result<()> {
    let bench = Bench::new(installed)?;
    let service = (fault.plant)(&bench)?;
    let ended = bench.look(installed, &service)?;
    // Where the tests themselves are a service's, that is how a service without our variables is told.
    let (found, _) = found(&ended)?;
    if fault.causes == ["process.environment"] && found.contains("process.service") {
        return expect(&ended, &["process.service"], 2);
    }
    // What only slows it down is a warning, or what it may do without.
    let slow = ["cache.unwritable", "cache.untrusted", "cache.shipped.untrusted", "process.stripped"];
    let is_warning = slow.contains(&fault.causes[0]) || fault.causes == ["process.refused"];
    expect(&ended, fault.causes, if is_warning { 1 } else { 2 })
}

/// Opens the libraries that it is told, whether they are there or not, and waits for its end.
const SERVICE: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int n, char **words) {
    for (int i = 1; i < n; i++)
        dlopen(words[i], RTLD_NOW | RTLD_GLOBAL);
    puts("ready");
    fflush(stdout);
    return alarm(600), pause();
}
"#;
const DRIVER: &str = "int cuInit(unsigned flags) { return flags ? 1 : 0; }\n";

/// Makes the folder `to` with the files and links of `from`: the same files, or on another disk copies.
pub fn same_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let (at, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if let Ok(target) = fs::read_link(&at) {
            symlink(target, to)?;
        } else if at.is_dir() {
            same_files(&at, &to)?;
        } else {
            fs::hard_link(&at, &to).or_else(|_| fs::copy(&at, &to).map(|_| ()))?;
        }
    }
    Ok(())
}

/// A service's folder: our libraries, of which one may be spoilt, a cache, programs.
struct Bench {
    folder: TempDir,
    lib: PathBuf,
}

impl Bench {
    fn new(installed: &Installed) -> Result<Bench> {
        let folder = testkit::temporary()?;
        let lib = folder.path().join("lib");
        fs::create_dir(folder.path().join("cache"))?;
        // Services of other users come here too.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        fs::set_permissions(folder.path().join("cache"), fs::Permissions::from_mode(0o700))?;
        same_files(installed.lib(), &lib)?;
        Ok(Bench { folder, lib })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A library or program of this text; it takes the place of one that is there.
    fn cc(&self, name: &str, text: &str, options: &[&str]) -> Result<PathBuf> {
        let (out, source) = (self.path(name), self.path("source.c"));
        fs::create_dir_all(out.parent().context("a folder")?)?;
        _ = fs::remove_file(&out);
        fs::write(&source, text)?;
        quiet(Command::new("cc").arg("-o").arg(&out).arg(&source).args(options).arg("-ldl"))?;
        Ok(out)
    }

    fn library(&self, name: &str, text: &str, options: &[&str]) -> Result<PathBuf> {
        self.cc(name, text, &[&["-shared", "-fPIC"], options].concat())
    }

    /// A file for `-Wl,--version-script`.
    fn nodes(&self, text: &str) -> Result<String> {
        let file = self.path("nodes");
        fs::write(&file, text)?;
        Ok(format!("-Wl,--version-script={}", file.display()))
    }

    fn service(&self) -> Result<PathBuf> {
        self.cc("service", SERVICE, &[])
    }

    /// As `cudaway run` would start it, at its barest.
    fn in_front(&self, program: &Path) -> Command {
        let mut command = self.beside(program);
        command.env("LD_PRELOAD", self.lib.join("libcuda.so.1"));
        command
    }

    /// With our folder for the loader to search, and nothing preloaded.
    fn beside(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", self.folder.path());
        command.env("LD_LIBRARY_PATH", &self.lib);
        command.env("CUDAWAY_DEVICE", "cpu").env("CUDAWAY_CACHE_DIR", self.path("cache"));
        command
    }

    fn look(&self, installed: &Installed, service: &Service) -> Result<Ended> {
        doctor(installed).arg("--lib").arg(&self.lib).arg("--pid").arg(service.pid()).run()
    }
}

/// A program that said it is ready; it is ended when it is dropped.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Service {
    fn start(mut command: Command) -> Result<Service> {
        let mut service = Service(command.stdout(Stdio::piped()).spawn().context("the service")?);
        let mut said = [0; 5];
        service
            .0
            .stdout
            .as_mut()
            .context("a pipe")?
            .read_exact(&mut said)
            .context("the service did not come up")?;
        Ok(service)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

fn soname(bench: &Bench) -> Result<Service> {
    bench.library("lib/libcuda.so.1", DRIVER, &["-Wl,-soname,libshim.so"])?;
    Service::start(bench.in_front(&bench.service()?))
}

/// What the driver package left there.
fn link(bench: &Bench) -> Result<Service> {
    fs::remove_file(bench.lib.join("libcuda.so"))?;
    symlink("libcuda.so.535.54.03", bench.lib.join("libcuda.so"))?;
    let mut command = bench.in_front(&bench.service()?);
    command.arg("libcuda.so");
    Service::start(command)
}

fn rpath(bench: &Bench) -> Result<Service> {
    let bundled = bench.library("bundle/libcuda.so.1", DRIVER, &["-Wl,-soname,libcuda.so.1"])?;
    let options =
        [&*bundled.to_string_lossy(), "-Wl,--no-as-needed,--disable-new-dtags,-rpath,$ORIGIN/bundle"];
    let program = bench.cc("service", SERVICE, &[options[1], options[0]])?;
    Service::start(bench.beside(&program))
}

fn setuid(bench: &Bench) -> Result<Service> {
    let program = bench.service()?;
    chown(&program, Some(NOBODY), None)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
    Service::start(bench.in_front(&program))
}

const NOBODY: u32 = 65534;

/// As sudo leaves it, or a supervisor.
fn cleared(bench: &Bench) -> Result<Service> {
    let mut command = bench.in_front(&bench.service()?);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", bench.folder.path());
    Service::start(command)
}

/// A node for AMD GPUs that a group may use, and a service of a user who is not in it. The /dev is the service's own.
fn group(bench: &Bench) -> Result<Service> {
    let script = "mount -t tmpfs tmpfs /dev && mknod /dev/kfd c 511 0 && chgrp video /dev/kfd && chmod 660 /dev/kfd && \
                  LD_PRELOAD=$CUDA exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$0\"";
    chown(bench.path("cache"), Some(NOBODY), None)?;
    let mut command = bench.beside(Path::new("unshare"));
    command
        .args(["--mount", "sh", "-c", script])
        .arg(bench.service()?)
        .env("CUDA", bench.lib.join("libcuda.so.1"));
    Service::start(command)
}

/// Linked in a system of some day to come: the loader refuses it, and the service goes on without CUDA.
fn glibc(bench: &Bench) -> Result<Service> {
    let options = [&*bench.nodes("GLIBC_2.99 { global: later; };")?, "-nostdlib", "-Wl,-soname,libc.so.6"];
    let later = bench.library("later/libc.so.6", "void later(void) {}\n", &options)?;
    let driver = "void later(void);\nint cuInit(unsigned flags) { later(); return flags ? 1 : 0; }\n";
    let options = ["-nostdlib", "-Wl,-soname,libcuda.so.1", &*later.to_string_lossy()];
    bench.library("lib/libcuda.so.1", driver, &options)?;
    let mut command = bench.beside(&bench.service()?);
    command.arg("libcuda.so.1");
    Service::start(command)
}

/// Nobody can make a folder there, root neither.
fn cache(bench: &Bench) -> Result<Service> {
    let mut command = bench.in_front(&bench.service()?);
    command.env("CUDAWAY_CACHE_DIR", "/proc/cudaway");
    Service::start(command)
}

fn shared_cache(bench: &Bench) -> Result<Service> {
    fs::set_permissions(bench.path("cache"), fs::Permissions::from_mode(0o777))?;
    Service::start(bench.in_front(&bench.service()?))
}

fn shipped_cache(bench: &Bench) -> Result<Service> {
    let shipped = bench.path("shipped");
    fs::create_dir(&shipped)?;
    fs::set_permissions(&shipped, fs::Permissions::from_mode(0o777))?;
    let mut command = bench.in_front(&bench.service()?);
    command.env("CUDAWAY_CACHE_PATH", &shipped);
    Service::start(command)
}

fn node(bench: &Bench) -> Result<Service> {
    let nodes = bench.nodes("CUDART_1.0 { global: cudaGetLastError; };")?;
    let text = "int cudaGetLastError(void) { return 0; }\n";
    bench.library("lib/libcudart.so.12", text, &["-Wl,-soname,libcudart.so.12", &nodes])?;
    Service::start(bench.in_front(&bench.service()?))
}

/// One whose runtime cannot be told, for it does not list where its functions begin.
fn stripped(bench: &Bench) -> Result<Service> {
    stripped_with(bench, &["-Xlinker", "--no-eh-frame-hdr"])
}

fn stripped_with(bench: &Bench, flags: &[&str]) -> Result<Service> {
    let (source, program) = (bench.path("service.cu"), bench.path("service"));
    let text = SERVICE.replace("    for", "    nothing<<<1, 1>>>();\n    for");
    fs::write(&source, format!("__global__ void nothing() {{}}\n{text}"))?;
    let mut nvcc = Release::V13_5.get()?.nvcc();
    quiet(nvcc.args(["-cudart", "static"]).args(flags).arg("-o").arg(&program).arg(&source))?;
    quiet(Command::new("strip").arg(&program))?;
    Service::start(bench.in_front(&program))
}

/// For AArch64: `e_machine` is 183.
fn machine(bench: &Bench) -> Result<Service> {
    let nvml = bench.lib.join("libnvidia-ml.so.1");
    let mut bytes = fs::read(&nvml)?;
    bytes[18] = 183;
    fs::remove_file(&nvml)?;
    fs::write(&nvml, bytes)?;
    Service::start(bench.in_front(&bench.service()?))
}

/// A library of the right name without HIP's functions.
fn provider(bench: &Bench) -> Result<Service> {
    let library =
        bench.library("hip/libamdhip64.so.6", "int nothing;\n", &["-Wl,-soname,libamdhip64.so.6"])?;
    let mut command = bench.in_front(&bench.service()?);
    command.env("CUDAWAY_DEVICE", library);
    Service::start(command)
}

/// Two libraries that programs link and of which there is nothing, beside others.
fn refusing(bench: &Bench) -> Result<Service> {
    let refused = bench.lib.join("refused");
    let mut command = bench.in_front(&bench.service()?);
    command.arg(refused.join("libnccl.so.2")).arg(refused.join("libcufile.so.0")).arg("libcurand.so.10");
    Service::start(command)
}

/// A program that links one is told so before it is started: as `cudaway run` would start it, and where NVIDIA's is in front.
fn linked(installed: &Installed) -> Result<()> {
    let bench = Bench::new(installed)?;
    let text =
        "int ncclGetVersion(int *);\nint main(void) { int version; return ncclGetVersion(&version) == 0; }\n";
    let refused = bench.lib.join("refused/libnccl.so.2");
    let program = bench.cc("program", text, &[&*refused.to_string_lossy(), "-Wl,--allow-shlib-undefined"])?;
    let look = |run: Run| run.arg("--lib").arg(&bench.lib).arg("--").arg(&program).run();
    expect(&look(doctor(installed))?, &["target.refused"], 1)?;
    bench.library(
        "theirs/libnccl.so.2",
        "int ncclGetVersion(int *version) { return *version = 0; }\n",
        &["-Wl,-soname,libnccl.so.2"],
    )?;
    expect(&look(doctor(installed).env("LD_LIBRARY_PATH", bench.path("theirs")))?, &[], 0)
}

/// Not the machine's own ROCm or NVIDIA driver, which may have findings of their own.
fn doctor(installed: &Installed) -> Run {
    cudaway(installed).arg("doctor").arg("--json").env("CUDAWAY_DEVICE", "cpu")
}

/// What doctor found that is not fine, by its names, and how it ended.
fn found(ended: &Ended) -> Result<(BTreeSet<String>, Option<i32>)> {
    let answer: serde_json::Value = serde_json::from_str(&ended.stdout).with_context(|| ended.describe())?;
    let findings = answer["findings"].as_array().context("no findings")?;
    let findings: Vec<_> = findings.iter().filter(|finding| finding["level"] != "ok").collect();
    for finding in &findings {
        let has = |key: &str| finding[key].as_str().is_some_and(|text| !text.is_empty());
        ensure!(
            has("seen") && has("why") && has("fix"),
            "a finding without its reason or its cure: {finding}"
        );
    }
    let ids = findings.iter().filter_map(|finding| finding["id"].as_str().map(str::to_owned));
    Ok((ids.collect(), ended.status.code()))
}

fn expect(ended: &Ended, wanted: &[&str], code: i32) -> Result<()> {
    let (ids, ended_with) = found(ended)?;
    let wanted: BTreeSet<String> = wanted.iter().map(|id| (*id).to_owned()).collect();
    ensure!(
        ids == wanted && ended_with == Some(code),
        "expected {wanted:?} and {code}, there are {ids:?}: {}",
        ended.describe()
    );
    Ok(())
}

fn healthy(installed: &Installed) -> Result<()> {
    expect(&doctor(installed).arg("--").arg("/bin/true").run()?, &[], 0)?;
    let bench = Bench::new(installed)?;
    let service = Service::start(bench.in_front(&bench.service()?))?;
    expect(&bench.look(installed, &service)?, &[], 0)
}

/// Opened by the program itself, from wherever.
fn told(installed: &Installed) -> Result<()> {
    let bench = Bench::new(installed)?;
    expect(&bench.look(installed, &stripped_with(&bench, &[])?)?, &[], 0)
}

fn theirs(installed: &Installed) -> Result<()> {
    let bench = Bench::new(installed)?;
    let mut command = bench.beside(&bench.service()?);
    command.arg(bench.library("theirs/libcuda.so.1", DRIVER, &[])?);
    expect(&bench.look(installed, &Service::start(command)?)?, &["process.other"], 2)
}

/// Opens a libcuda by a path that no look at the program tells, and asks for a name of it.
const OPENER: &str = r#"
#include <dlfcn.h>
int main(int n, char **words) {
    void *library = n > 1 ? dlopen(words[1], RTLD_NOW) : 0;
    return library && !dlsym(library, "cuInit");
}
"#;

fn loader(installed: &Installed) -> Result<()> {
    let bench = Bench::new(installed)?;
    let program = bench.cc("opener", OPENER, &[])?;
    let look = |words: &[&Path]| {
        let run = doctor(installed).arg("--lib").arg(&bench.lib).arg("--loader").arg("--").arg(&program);
        words.iter().fold(run, Run::arg).run()
    };
    expect(&look(&[])?, &["loader.none"], 1)?;
    expect(&look(&[Path::new("libcuda.so.1")])?, &[], 0)?;
    let theirs = bench.library("theirs/libcuda.so.1", DRIVER, &[])?;
    expect(&look(&[&theirs])?, &["loader.past"], 2)
}

/// A stand-in for systemctl prints what systemd would; the process is real.
fn unit(installed: &Installed) -> Result<()> {
    let bench = Bench::new(installed)?;
    let service = Service::start(bench.in_front(&bench.service()?))?;
    fs::create_dir(bench.path("bin"))?;
    let look = |properties: &str| -> Result<Ended> {
        let systemctl = bench.path("bin/systemctl");
        let script =
            format!("#!/bin/sh\n[ \"$1 $5\" = 'show app.service' ] || exit 1\ncat <<'.'\n{properties}\n.\n");
        fs::write(&systemctl, script)?;
        fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755))?;
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", bench.path("bin").display());
        doctor(installed)
            .arg("--lib")
            .arg(&bench.lib)
            .arg("--unit")
            .arg("app.service")
            .env("PATH", path)
            .run()
    };
    let environment = format!("Environment=A=1 LD_PRELOAD={}/libcuda.so.1", bench.lib.display());
    let ours = format!("LoadState=loaded\nMainPID={}\n{environment}", service.pid());
    expect(&look(&ours)?, &[], 0)?;
    expect(
        &look(&format!("{ours}\nNeedDaemonReload=yes\nPrivateDevices=yes"))?,
        &["unit.reload", "unit.devices"],
        1,
    )?;
    expect(&look("LoadState=loaded\nMainPID=0\nEnvironment=")?, &["unit.environment"], 2)?;
    expect(&look("LoadState=not-found\nMainPID=0")?, &["unit.missing"], 2)
}

fn bundle(installed: &Installed) -> Result<()> {
    let bench = Bench::new(installed)?;
    let mut command = bench.in_front(&bench.service()?);
    command.env("API_TOKEN", "hush-hush");
    let service = Service::start(command)?;
    for name in ["report.tar.gz", "report.tar.zst"] {
        let file = bench.path(name);
        let run = doctor(installed).arg("--lib").arg(&bench.lib).arg("--pid").arg(service.pid());
        let ended = run.arg("--bundle").arg(&file).run()?;
        expect(&ended, &[], 0)?;
        let out = bench.path("unpacked");
        fs::create_dir_all(&out)?;
        quiet(Command::new("tar").arg("-xf").arg(&file).arg("-C").arg(&out))?;
        let read =
            |name: &str| fs::read_to_string(out.join("cudaway-doctor").join(name)).context(name.to_owned());
        ensure!(read("report.json")?.trim() == ended.stdout.trim(), "the archive has another report");
        ensure!(read("maps.txt")?.contains("/libcuda.so.1"), "maps.txt is not the service's");
        ensure!(read("versions.txt")?.contains("libcudaway_cpu.so"), "versions.txt lacks our libraries");
        let environment = read("environment.txt")?;
        ensure!(environment.contains("API_TOKEN (value left out)\n"), "{environment}");
        for file in fs::read_dir(out.join("cudaway-doctor"))? {
            let file = file?.path();
            if fs::read_to_string(&file)?.contains("hush-hush") {
                bail!("{} has the secret", file.display());
            }
        }
        fs::remove_dir_all(&out)?;
    }
    Ok(())
}
