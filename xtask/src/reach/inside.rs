//! The part that runs in a mount namespace of its own, where there is a driver of NVIDIA's (a stand-in), and where files of
//! /etc can be changed without anybody else seeing it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::Run;

use super::clients::{CLIENTS, Client, Need, REAL, SYSTEM};
use crate::setup;

/// A way to be in front of a program: a column of docs/reach.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Preload,
    Path,
    CudawayRun,
    Hooks,
    Audit,
    SoPreload,
    Conf,
    File,
}

pub const METHODS: [(Method, &str); 8] = [
    (Method::Preload, "`LD_PRELOAD`"),
    (Method::Path, "`LD_LIBRARY_PATH`"),
    (Method::CudawayRun, "`cudaway run`"),
    (Method::Hooks, "`--hooks`"),
    (Method::Audit, "`--audit`"),
    (Method::SoPreload, "`ld.so.preload`"),
    (Method::Conf, "`ld.so.conf`, first"),
    (Method::File, "the file itself"),
];

/// Those that change nothing but the environment.
pub const QUICK: [Method; 5] =
    [Method::Preload, Method::Path, Method::CudawayRun, Method::Hooks, Method::Audit];

/// Ours, where every user can read it. In the namespace only.
const OURS: &str = "/mnt/ours";
const PRELOAD: &str = "/etc/ld.so.preload";
const CONF: &str = "/etc/ld.so.conf.d/00-cudaway.conf";

/// Prints a line for each cell: client, method and answer, between tabs.
pub fn run(built: &Path, lib: &Path, missing: &[Need], is_quick: bool) -> Result<()> {
    prepare(built, lib)?;
    for (method, column) in METHODS {
        if is_quick && !QUICK.contains(&method) {
            continue;
        }
        begin(method)?;
        for client in CLIENTS.iter().filter(|client| !missing.contains(&client.need)) {
            println!("{}\t{column}\t{}", client.name, answer(method, client, built)?);
        }
        end(method)?;
    }
    Ok(())
}

fn prepare(built: &Path, lib: &Path) -> Result<()> {
    let mount = |words: &[&str]| setup::run(Command::new("mount").args(words));
    mount(&["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/mnt"])?;
    for (name, over) in [("system", SYSTEM), ("etc", "/etc")] {
        let (upper, work) = (format!("/mnt/{name}/upper"), format!("/mnt/{name}/work"));
        fs::create_dir_all(&upper)?;
        fs::create_dir_all(&work)?;
        let options = format!("lowerdir={over},upperdir={upper},workdir={work}");
        mount(&["-t", "overlay", "-o", &options, "overlay", over])?;
    }
    let system = |name: &str| Path::new(SYSTEM).join(name);
    fs::copy(built.join(REAL), system(REAL))?;
    for (link, target) in [("libcuda.so.1", REAL), ("libcuda.so", "libcuda.so.1")] {
        let _ = fs::remove_file(system(link));
        std::os::unix::fs::symlink(target, system(link))?;
    }
    setup::run(&mut Command::new("ldconfig"))?;

    let (ours, bin) = (Path::new(OURS).join("lib"), Path::new(OURS).join("bin"));
    fs::create_dir_all(&ours)?;
    fs::create_dir_all(&bin)?;
    for entry in fs::read_dir(lib)? {
        let entry = entry?;
        let name = entry.file_name();
        // No client uses a device.
        if name.to_string_lossy().contains(".so") && name != "libcudaway_cpu.so" {
            setup::run(Command::new("cp").arg("-P").arg(entry.path()).arg(&ours))?;
        }
    }
    let cudaway = lib.with_file_name("bin").join("cudaway");
    setup::run(Command::new("cp").arg("-a").arg(lib.join("preload")).arg(&ours))?;
    fs::copy(&cudaway, bin.join("cudaway")).with_context(|| cudaway.display().to_string())?;

    let lent = Path::new("/mnt/set-user-id");
    fs::copy(built.join("client"), lent)?;
    fs::set_permissions(lent, std::os::unix::fs::PermissionsExt::from_mode(0o4755))?;
    Ok(())
}

fn begin(method: Method) -> Result<()> {
    match method {
        Method::SoPreload => fs::write(PRELOAD, format!("{OURS}/lib/libcuda.so.1\n"))?,
        Method::Conf => {
            fs::write(CONF, format!("{OURS}/lib\n"))?;
            setup::run(&mut Command::new("ldconfig"))?;
        }
        Method::File => {
            let file = Path::new(SYSTEM).join(REAL);
            fs::remove_file(&file)?;
            fs::copy(Path::new(OURS).join("lib/libcuda.so.1"), &file)?;
        }
        _ => {}
    }
    Ok(())
}

fn end(method: Method) -> Result<()> {
    match method {
        Method::SoPreload => fs::remove_file(PRELOAD)?,
        Method::Conf => {
            fs::remove_file(CONF)?;
            setup::run(&mut Command::new("ldconfig"))?;
        }
        _ => {}
    }
    Ok(())
}

/// `yes` or `no`; where `cudaway run` says that it does not reach the program, `forced` if it does with `--force`, else `refused`.
fn answer(method: Method, client: &Client, built: &Path) -> Result<&'static str> {
    let words = client.words(built);
    let options: &[&str] = match method {
        Method::CudawayRun => &[],
        Method::Hooks => &["--no-claims", "--hooks", "dlsym,dlopen"],
        Method::Audit => &["--no-claims", "--audit"],
        _ => return Ok(if reached(start(method, &words))?.0 { "yes" } else { "no" }),
    };
    let cudaway = |more: &[&str]| {
        let program = format!("{OURS}/bin/cudaway");
        let before = [&[program.as_str(), "run"], options, more, &["--"]].concat();
        start(method, &before.into_iter().map(str::to_owned).chain(words.clone()).collect::<Vec<_>>())
    };
    let (is_ours, code) = reached(cudaway(&[]))?;
    if is_ours {
        return Ok("yes");
    }
    if code != Some(126) {
        return Ok("no");
    }
    Ok(if reached(cudaway(&["--force"]))?.0 { "forced" } else { "refused" })
}

fn start(method: Method, words: &[String]) -> Run {
    let mut run = Run::new(&words[0]).env("CUDAWAY_CACHE_DIR", "/mnt/cache").limit(Duration::from_secs(120));
    match method {
        Method::Preload => run = run.env("LD_PRELOAD", format!("{OURS}/lib/libcuda.so.1")),
        Method::Path => run = run.env("LD_LIBRARY_PATH", format!("{OURS}/lib")),
        _ => {}
    }
    words[1..].iter().fold(run, Run::arg)
}

fn reached(run: Run) -> Result<(bool, Option<i32>)> {
    let ended = run.run()?;
    Ok((ended.stdout.lines().next() == Some("ours"), ended.status.code()))
}
