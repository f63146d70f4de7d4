//! `cargo xtask codegen`: `tools/data` and the bodies that exist → generated sources, version scripts, coverage.
//!
//! Rule: nothing here knows a CUDA name by heart; a wrong output is a wrong fact or a wrong rule.

pub mod blas;
mod bodies;
mod calls;
mod coverage;
mod cublas_xt;
mod differences;
pub mod facts;
#[cfg(feature = "headers")]
mod headers;
mod hip;
mod hip_blas;
mod hip_dnn;
mod hip_solver;
mod hip_sparse;
mod hooks;
mod libraries;
pub mod library;
mod mapper;
pub mod nvjitlink;
mod refused;
mod shells;
mod shown;
pub mod signatures;

use anyhow::{Context as _, Result, bail};

use crate::setup::root;
use crate::site::wrap;
use crate::{clients, cutlass, frontend, samples, session, settings};

#[derive(clap::Args)]
pub struct Args {
    /// Read NVIDIA's public headers again (from PyPI wheels) and refresh the types and signatures.
    #[arg(long)]
    headers: bool,
    /// Read NVIDIA's static runtimes again (from PyPI, Debian and Ubuntu: 4 GB the first time) and refresh what their functions
    /// are told by.
    #[arg(long)]
    signatures: bool,
    /// Change nothing; fail when a generated file is out of date.
    #[arg(long)]
    check: bool,
}

/// (major in names, SONAME and version node)
/// The names and the node of the shell with this file name.
pub fn shell(object: &str) -> Result<Option<(Vec<String>, String)>> {
    if let Some((major, node)) = NODES.iter().find(|(_, node)| *node == object) {
        return Ok(Some((facts::runtime_names(major)?, (*node).to_owned())));
    }
    library::shell(object)
}

pub const NODES: [(&str, &str); 3] =
    [("11", "libcudart.so.11.0"), ("12", "libcudart.so.12"), ("13", "libcudart.so.13")];

pub fn run(args: &Args) -> Result<()> {
    if args.headers {
        #[cfg(feature = "headers")]
        headers::run()?;
        #[cfg(not(feature = "headers"))]
        bail!("this xtask has no bindgen: cargo run -p xtask --features headers -- codegen --headers");
    }
    if args.signatures {
        signatures::run()?;
    }
    if args.check {
        return check(&stale(&written()?));
    }
    refresh()
}

/// Brings every generated file up to date.
pub fn refresh() -> Result<()> {
    let generated = written()?;
    let stale = stale(&generated);
    for (path, text) in generated.iter().filter(|(path, _)| stale.contains(path)) {
        write(path, text)?;
        eprintln!("codegen: wrote {path}");
    }
    Ok(())
}

/// Every generated file, README.md, of which one table is generated, and its picture.
fn written() -> Result<Vec<(String, String)>> {
    let mut files = generate()?;
    files.push(clients::readme::page()?);
    files.push(session::picture()?);
    Ok(files)
}

/// Every generated file, in memory: (path from the root, text).
pub fn generate() -> Result<Vec<(String, String)>> {
    let driver = facts::driver()?;
    let runtime = facts::runtime()?;
    let driver_bodies = bodies::scan("crates/driver")?;
    let mut runtime_bodies = bodies::scan("crates/runtime")?;
    let nvml = facts::nvml()?;
    let nvml_bodies = bodies::scan("crates/nvml")?;
    let blas = facts::blas()?;
    let (blas_bodies, blas_routines) = (bodies::scan("crates/libraries/cublas/api")?, blas::routines()?);
    let on_hip = hip_blas::OnHip::read(&blas)?;
    let solver = hip_solver::OnHip::read()?;
    let sparse = hip_sparse::OnHip::read()?;
    pass_refusals_on(&driver_bodies, &mut runtime_bodies)?;
    let mut unused = shells::unused_driver_bodies(&driver_bodies, &driver);
    unused.extend(shells::unused_runtime_bodies(&runtime_bodies, &runtime));
    unused.extend(shells::unused_nvml_bodies(&nvml_bodies, &nvml));
    unused.extend(blas::unused(&blas_bodies, &blas_routines, &blas));
    if !unused.is_empty() {
        bail!("no export has this name, so nobody could call it: {}", unused.join(", "));
    }

    let mut files = vec![
        (
            "crates/libcuda/src/generated/exports.rs".to_owned(),
            shells::driver_exports(&driver, &driver_bodies)?,
        ),
        ("crates/driver/src/generated/proc_address.rs".to_owned(), shells::proc_address(&driver)?),
        ("crates/libnvml/src/generated/exports.rs".to_owned(), shells::nvml_exports(&nvml, &nvml_bodies)?),
        (
            "crates/libraries/cublas/exports/src/generated/exports.rs".to_owned(),
            blas::exports(&blas, &blas_bodies, &blas_routines, &on_hip)?,
        ),
        (
            "docs/libraries.md".to_owned(),
            libraries::markdown(
                &blas,
                &blas_bodies,
                &blas_routines,
                &on_hip,
                &libraries::OnGpus { solver: &solver, sparse: &sparse, dnn: &hip_dnn::OnHip::read()? },
                &shown::Shown::read()?,
            )?,
        ),
        ("crates/libraries/cublas/api/src/generated/hip_calls.rs".to_owned(), on_hip.calls),
        ("crates/libcudaway-hooks/src/generated/names.rs".to_owned(), hooks::names(&nvml)?),
        ("cmake/exports/libcuda.version".to_owned(), shells::driver_version_script()),
    ];
    files.extend(shells::runtime_tables(&runtime, &runtime_bodies)?);
    for (major, node) in NODES {
        files.push((
            format!("crates/libcudart/forward/v{major}/src/generated/names.rs"),
            shells::forwarder(major, node, &runtime)?,
        ));
        let version = node.trim_start_matches("libcudart.so.");
        files.push((
            format!("cmake/exports/libcudart.{version}.version"),
            shells::runtime_version_script(major, node)?,
        ));
    }
    files.extend(hip::files()?);
    files.push(nvjitlink::exports()?);
    files.push(refused::exports()?);
    files.extend(library::files(&blas, &blas_bodies, &solver, &sparse)?);
    files.push(("crates/libraries/cusolver/api/src/generated/hip_calls.rs".to_owned(), solver.calls));
    files.push(("crates/libraries/cusparse/api/src/generated/hip_calls.rs".to_owned(), sparse.calls));
    files.extend(shells::preload_scripts());
    files.push((
        "tools/data/cuda-mapper.json".to_owned(),
        mapper::json(&driver, &runtime, &driver_bodies, &runtime_bodies)?,
    ));
    files.push((
        "docs/coverage.md".to_owned(),
        coverage::markdown(&driver, &runtime, &driver_bodies, &runtime_bodies, &nvml, &nvml_bodies)?,
    ));
    files.push(("docs/differences.md".to_owned(), differences::markdown()?));
    files.push((clients::page::PATH.to_owned(), clients::page::text()?));
    files.extend(samples::page::all()?);
    files.extend(cutlass::pages()?);
    files.extend(frontend::pages()?);
    files.push((settings::page::PATH.to_owned(), settings::page::text()?));
    for (path, text) in files.iter_mut().filter(|(path, _)| path.ends_with(".md")) {
        *text = wrap::wrapped(text).with_context(|| path.clone())?;
    }
    Ok(files)
}

/// A runtime call that only hands its arguments to driver calls which always answer an error does so too.
fn pass_refusals_on(driver: &bodies::Bodies, runtime: &mut bodies::Bodies) -> Result<()> {
    let reached = calls::reached_by_bodies("crates/runtime", calls::Below::Driver)?;
    for (name, body) in runtime {
        let called = reached.get(name).map_or(&[][..], |called| called);
        let all_refuse = called.iter().all(|call| driver.get(call).is_some_and(|body| body.refuses));
        body.refuses |= !called.is_empty() && all_refuse;
    }
    Ok(())
}

fn stale(generated: &[(String, String)]) -> Vec<String> {
    generated
        .iter()
        .filter(|(path, text)| std::fs::read_to_string(root().join(path)).ok().as_ref() != Some(text))
        .map(|(path, _)| path.clone())
        .collect()
}

fn check(stale: &[String]) -> Result<()> {
    if stale.is_empty() {
        return Ok(());
    }
    bail!("run `cargo xtask codegen` and commit what it writes; out of date: {}", stale.join(", "))
}

/// Written aside and renamed, so that a compiler running beside us never reads half a file.
fn write(path: &str, text: &str) -> Result<()> {
    let path = root().join(path);
    let folder = path.parent().context("a generated file lies in a folder")?;
    std::fs::create_dir_all(folder)?;
    let aside =
        folder.join(format!(".{}.{}", std::process::id(), path.file_name().unwrap_or_default().display()));
    std::fs::write(&aside, text).with_context(|| format!("could not write {}", aside.display()))?;
    std::fs::rename(&aside, &path).with_context(|| format!("could not write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_up_to_date() {
        check(&stale(&written().unwrap())).unwrap();
    }

    #[test]
    fn generated_files_are_marked_for_git() {
        let mut command = std::process::Command::new("git");
        command.current_dir(root()).args(["check-attr", "linguist-generated", "--"]);
        command.args(generate().unwrap().iter().map(|(path, _)| path));
        let said = command.output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let said = String::from_utf8(said.stdout).unwrap();
        let unmarked: Vec<&str> = said.lines().filter(|line| !line.ends_with(": set")).collect();
        assert!(unmarked.is_empty(), ".gitattributes does not have:\n{}", unmarked.join("\n"));
    }

    #[test]
    fn every_name_on_every_node_has_a_slot() {
        let pairs: usize = NODES.iter().map(|(major, _)| facts::runtime_names(major).unwrap().len()).sum();
        assert_eq!(pairs, 1288);
        assert_eq!(facts::driver_list().unwrap().len(), 729);
        assert_eq!(facts::driver().unwrap().len(), 729);
    }

    /// What NVIDIA's runtimes were seen to ask for at start: the map answers each of them.
    #[test]
    fn the_map_answers_every_request_that_a_real_runtime_makes() {
        let exports = facts::driver().unwrap();
        for version in ["11.8", "12.4", "12.9", "13.5"] {
            let requests =
                facts::read(&format!("tools/data/cuda/cudart_gpa_requests_{version}.txt")).unwrap();
            for line in requests.lines().filter(|line| !line.starts_with(['#', ' '])) {
                let [base, asked, flags] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
                let asked: u32 = asked.parse().unwrap();
                let per_thread = flags == "2";
                let found = exports.values().any(|export| {
                    export.base == base
                        && export.since == asked
                        && (export.flavour == facts::Flavour::Plain) != per_thread
                });
                assert!(found, "cudart {version} asks for {line}");
            }
        }
    }
}
