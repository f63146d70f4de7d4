//! `cargo xtask build`: the shipped objects, linked as they must be and laid out as installed.
//!
//! Rule: every test runs against what this makes. Linker arguments live here and nowhere else, so a plain
//! `cargo build` of a shell gives an object for type checking only.
//!
//! Why rust-lld and version scripts: rustc hands the linker its own anonymous script, and GNU ld refuses a second,
//! named one beside it. rust-lld, the default linker of our toolchain, takes both.

pub mod gate;
pub mod note;
mod progress;
pub mod recipe;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};

use crate::codegen::{NODES, library};
use crate::{libraries, setup};
use progress::Progress;
pub use recipe::{Profile, Recipe};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub setup: setup::Args,
    /// Objects as they are shipped: optimised across crates too, which takes five times as long.
    #[arg(long, conflicts_with = "debug")]
    pub release: bool,
    /// Objects without optimisation.
    #[arg(long)]
    pub debug: bool,
    /// Only these objects, by file name (`libcuda.so.1`); the others stay as they are.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Another folder than target/cudaway/lib.
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// One shipped object.
pub struct Object {
    pub package: &'static str,
    /// File name and SONAME.
    pub name: &'static str,
    /// Below cmake/exports.
    pub version_script: Option<&'static str>,
    /// Other names for the file. One in [`PRELOAD`] is those libraries too, on a node for each.
    pub links: Vec<&'static str>,
    /// Below the folder of our objects, if not in it.
    pub folder: &'static str,
}

/// The folder of the objects that `cudaway run` preloads in place of many: each has the names of all libraries of a major.
///
/// glibc compares what a program asks for with the SONAME of what is loaded, of which an object has one, and with the names by
/// which it was found. So an object there "needs" its other names, and has its own folder as its `DT_RPATH`, where they are links
/// to the object itself: the loader finds that it has the file already and adds the name, at a tenth of what an object costs. Behind
/// it the path has the folder of our libraries, for a wheel, in which links do not survive: the names are found there too.
const PRELOAD: &str = "preload";
pub const PRELOAD_RPATH: &str = "$ORIGIN:$ORIGIN/..";

impl Object {
    /// Without a version script, other names or a folder of its own.
    fn plain(package: &'static str, name: &'static str) -> Object {
        Object { package, name, version_script: None, links: Vec::new(), folder: "" }
    }

    /// Where it lies, below the folder of our objects.
    pub fn path(&self, lib: &Path) -> PathBuf {
        lib.join(self.folder).join(self.name)
    }

    pub fn is_for_preload(&self) -> bool {
        self.folder == PRELOAD
    }

    /// Whether it is only names of one major's, on their node, that jump into a library of ours: written without Rust's std.
    pub fn is_shell(&self) -> bool {
        self.version_script.is_some() && self.package != "libcuda"
    }
}

/// All of them, the backend of a library behind its shells.
pub fn objects() -> &'static [Object] {
    static OBJECTS: OnceLock<Vec<Object>> = OnceLock::new();
    OBJECTS.get_or_init(|| {
        let mut objects = vec![Object {
            version_script: Some("libcuda.version"),
            links: vec!["libcuda.so"],
            ..Object::plain("libcuda", "libcuda.so.1")
        }];
        for (package, name, version_script) in RUNTIMES {
            objects.push(Object { version_script: Some(version_script), ..Object::plain(package, name) });
        }
        objects.push(Object::plain("libcudart", "libcudaway_cudart.so"));
        objects
            .push(Object { links: vec!["libnvidia-ml.so"], ..Object::plain("libnvml", "libnvidia-ml.so.1") });
        for library in libraries::all() {
            for object in &library.objects {
                objects.push(Object {
                    version_script: Some(object.version_script().leak()),
                    links: object.plain.then(|| &*format!("{}.so", object.stem).leak()).into_iter().collect(),
                    folder: &library.folder,
                    ..Object::plain(object.package().leak(), object.file().leak())
                });
            }
            objects.push(Object {
                folder: &library.folder,
                ..Object::plain(&library.package, &library.implementation)
            });
        }
        objects.push(Object::plain("libcudaway-cpu", "libcudaway_cpu.so"));
        objects.push(Object::plain("libcudaway-hooks", "libcudaway_hooks.so"));
        objects.push(Object::plain("libcudaway-audit", "libcudaway_audit.so"));
        for (major, runtime) in NODES {
            let links = library::other_names(major).into_iter().map(|name| &*name.leak());
            objects.push(Object {
                version_script: Some(format!("preload.{major}.version").leak()),
                links: links.collect(),
                folder: PRELOAD,
                ..Object::plain(format!("preload-{major}").leak(), runtime)
            });
        }
        objects
    })
}

/// The folders of a tree that have objects and programs; `lib` is that of our objects.
pub fn folders() -> BTreeSet<PathBuf> {
    let objects = objects().iter().map(|it| Path::new("lib").join(it.folder).components().collect());
    objects.chain(PROGRAMS.iter().map(|it| it.folder.into())).collect()
}

/// What of our objects and programs is not in a tree.
pub fn missing(tree: &Path) -> Vec<PathBuf> {
    let objects = objects().iter().flat_map(|object| {
        let at = object.path(Path::new("lib"));
        let links: Vec<PathBuf> = object.links.iter().map(|link| at.with_file_name(link)).collect();
        links.into_iter().chain([at])
    });
    let programs = PROGRAMS.iter().map(|it| Path::new(it.folder).join(it.name));
    objects.chain(programs).filter(|name| !tree.join(name).exists()).collect()
}

/// (package, SONAME, version script)
const RUNTIMES: [(&str, &str, &str); 3] = [
    ("libcudart-11", "libcudart.so.11.0", "libcudart.11.0.version"),
    ("libcudart-12", "libcudart.so.12", "libcudart.12.version"),
    ("libcudart-13", "libcudart.so.13", "libcudart.13.version"),
];

/// A shipped program.
pub struct Program {
    pub package: &'static str,
    pub name: &'static str,
    /// Beside our objects' folder `lib`.
    pub folder: &'static str,
    /// Links to it, beside that folder, and what stands in them.
    pub links: &'static [(&'static str, &'static str)],
}

pub const PROGRAMS: [Program; 2] = [
    // Started by our libraries, which look for it beside themselves.
    Program { package: "comgr", name: "cudaway-comgr", folder: "lib", links: &[] },
    Program {
        package: "cli",
        name: "cudaway",
        folder: "bin",
        // The tools that it is too: crates/cli/src/tools.rs.
        links: &[
            ("tools/ptxas", "../bin/cudaway"),
            ("tools/nvidia-smi", "../bin/cudaway"),
            ("tools/compiler/nvcc", "../../bin/cudaway"),
            ("tools/toolkit/bin/ptxas", "../../../bin/cudaway"),
        ],
    },
];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    setup::build_packages()?;
    for name in &args.only {
        let is_known = objects().iter().any(|object| object.name == name)
            || PROGRAMS.iter().any(|program| program.name == name);
        ensure!(is_known, "there is no object {name}");
    }
    // A body that was just written goes live with the build; `cargo xtask test` checks instead of writing.
    crate::codegen::refresh()?;
    let out = args.out.clone().unwrap_or_else(setup::lib_dir);
    let profile = match (args.debug, args.release) {
        (true, _) => Profile::Debug,
        (_, true) => Profile::Release,
        _ => Profile::Local,
    };
    lay_out(&args.only, &Recipe::here(profile), &out)
}

/// Builds all objects into target/cudaway/lib, to be tried; for `demo` and `test`, which did the set-up.
pub fn to_try() -> Result<()> {
    lay_out(&[], &Recipe::here(Profile::Local), &setup::lib_dir())
}

/// Builds these objects into target/cudaway/lib.
pub fn some_to_try(names: &[&str]) -> Result<()> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    lay_out(&names, &Recipe::here(Profile::Local), &setup::lib_dir())
}

/// Builds all objects optimised as they are shipped, into a folder of their own; for what measures them.
pub fn to_measure() -> Result<PathBuf> {
    let out = setup::root().join("target/measured/lib");
    lay_out(&[], &Recipe::here(Profile::Release), &out)?;
    Ok(out)
}

/// Builds the wanted objects and programs (all, if none is named) into `out` and the folders beside it.
pub fn lay_out(only: &[String], recipe: &Recipe, out: &Path) -> Result<()> {
    let wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    std::fs::create_dir_all(out).with_context(|| format!("could not make {}", out.display()))?;

    let programs = || PROGRAMS.iter().filter(|program| wanted(program.name));
    let objects = || objects().iter().filter(|object| wanted(object.name));
    let names = objects().map(|object| object.name).chain(programs().map(|program| program.name));
    let mut progress = Progress::of(names);
    let mut findings = Vec::new();
    for object in objects() {
        progress.begin(object.name);
        let built = link(object, recipe)?;
        let at = object.path(out);
        std::fs::create_dir_all(at.parent().context("a folder")?)?;
        place(&built, &at)?;
        for link in &object.links {
            symlink(object.name, &at.with_file_name(link))?;
        }
        if object.is_for_preload() {
            found_at_once(&out.join(PRELOAD))?;
        }
        findings.extend(gate::check(object, &at)?);
    }
    for program in programs() {
        progress.begin(program.name);
        let at = if program.folder == "lib" { out.to_path_buf() } else { out.with_file_name(program.folder) };
        std::fs::create_dir_all(&at).with_context(|| format!("could not make {}", at.display()))?;
        let at = at.join(program.name);
        place(&link_program(program, recipe)?, &at)?;
        for (name, target) in program.links {
            let link = out.with_file_name(name);
            std::fs::create_dir_all(link.parent().context("a folder")?)?;
            symlink(target, &link)?;
        }
        findings.extend(gate::check_program(program, &at)?);
        if program.package == "cli" {
            // Earlier builds made it, and there it would still answer for `nvcc`.
            let _ = std::fs::remove_dir_all(out.with_file_name("tools").join("nvcc"));
            share(&at, &out.with_file_name("share"))?;
        }
    }
    drop(progress);
    ensure!(findings.is_empty(), "the objects are not fit to ship:\n  {}", findings.join("\n  "));
    eprintln!("build: {}", out.display());
    Ok(())
}

/// Manual pages and what shells complete by, which the program writes itself.
fn share(program: &Path, folder: &Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(folder);
    setup::run(Command::new(program).arg("share").arg(folder))
}

fn link_program(program: &Program, recipe: &Recipe) -> Result<PathBuf> {
    let mut command = recipe.cargo_rustc();
    command.args(["--package", program.package, "--bin", program.name]);
    let mut arguments = vec!["link-arg=-Wl,-z,relro,-z,now".to_owned()];
    arguments.extend(recipe.link_arguments(program.name)?);
    link_with(&mut command, &arguments);
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("could not start {command:?}"))?;
    ensure!(output.status.success(), "{} did not build: {command:?}", program.name);
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    executable.with_context(|| format!("cargo named no program of {}", program.package))
}

/// Compiles one shell to a cdylib with the arguments its place asks for.
fn link(object: &Object, recipe: &Recipe) -> Result<PathBuf> {
    let mut arguments = vec![
        format!("link-arg=-Wl,-soname,{}", object.name),
        // Every symbol resolved, tables read-only after start, never unmapped: code of ours may run until the end.
        "link-arg=-Wl,-z,defs,-z,relro,-z,now,-z,nodelete".to_owned(),
    ];
    if object.name == "libcuda.so.1" {
        // Its constructor comes before those of the program's libraries, which may carry a static runtime to take over.
        arguments.push("link-arg=-Wl,-z,initfirst".to_owned());
        // What the driver means by its own names is its own functions, whoever else has one: cuGetProcAddress tells of the
        // driver's. It also spares every process 729 lookups.
        arguments.push("link-arg=-Wl,-Bsymbolic".to_owned());
    }
    if object.is_shell() {
        // What std would bring: the C library, in two before glibc 2.34, and a way to unwind, which nothing here does. What
        // start files bring, four names to look up for others' constructors, nothing here uses.
        let arguments_of_shells = ["link-arg=-nostartfiles", "link-arg=-ldl", "link-arg=-lc", "panic=abort"];
        arguments.extend(arguments_of_shells.map(str::to_owned));
    }
    if let Some(script) = object.version_script {
        // Below the checkout, where rustc runs: arguments are part of the names in the object.
        arguments.push(format!("link-arg=-Wl,--version-script=cmake/exports/{script}"));
    }
    if object.is_for_preload() {
        arguments.push(format!("link-arg=-Wl,--disable-new-dtags,-rpath,{PRELOAD_RPATH},--no-as-needed"));
        for name in &object.links {
            arguments.push(format!("link-arg={}", recipe::in_tree(&empty_library(name)?)));
        }
    }
    // Compiled crate by crate, code that never unwinds asks for an unwinder all the same, which a shell does not have.
    let recipe = if object.is_shell() { &recipe.across_crates() } else { recipe };
    arguments.extend(recipe.link_arguments(object.name)?);
    rustc(object.package, Kind::Cdylib, recipe, &arguments)
}

/// A library without contents, so that what is linked against it needs that name.
fn empty_library(name: &str) -> Result<PathBuf> {
    let at = setup::root().join("target/names").join(name);
    if !at.exists() {
        std::fs::create_dir_all(at.parent().context("a folder")?)?;
        let aside = at.with_file_name(format!(".{}.{name}", std::process::id()));
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-nostdlib", "-x", "c", "/dev/null"]).arg(format!("-Wl,-soname,{name}"));
        setup::run(cc.arg("-o").arg(&aside))?;
        std::fs::rename(&aside, &at)?;
    }
    Ok(at)
}

/// rustc's last arguments: of what everything of ours is made, and what this one asks for.
fn link_with(command: &mut Command, arguments: &[String]) {
    /// GCC's unwinder, in place of libgcc_s.so.1: not every system has that, and it takes a tenth of a millisecond to start.
    const UNWINDER: &str = "static:-bundle=gcc_eh";
    command.args(["--message-format", "json-render-diagnostics", "--"]);
    command.args(["-C", "strip=debuginfo", "-l", UNWINDER]);
    for argument in arguments {
        command.arg("-C").arg(argument);
    }
}

/// A package of the tests' as a static library, for who links it with a version script of his own.
pub fn static_library(package: &str) -> Result<PathBuf> {
    rustc(package, Kind::Staticlib, &Recipe::here(Profile::Local), &[])
}

#[derive(Clone, Copy)]
enum Kind {
    Cdylib,
    Staticlib,
}

/// Compiles one package's library; the path of its file.
fn rustc(package: &str, kind: Kind, recipe: &Recipe, link_arguments: &[String]) -> Result<PathBuf> {
    let (name, suffix) = match kind {
        Kind::Cdylib => ("cdylib", ".so"),
        Kind::Staticlib => ("staticlib", ".a"),
    };
    let mut command = recipe.cargo_rustc();
    command.args(["--lib", "--crate-type", name, "--package", package]);
    link_with(&mut command, link_arguments);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("could not start {command:?}"))?;
    ensure!(output.status.success(), "{package} did not build: {command:?}");
    last_artifact(&String::from_utf8_lossy(&output.stdout), name, suffix)
        .with_context(|| format!("cargo named no {name} of {package}"))
}

/// The file of this kind that cargo reported last: the package's own comes after all that it uses.
fn last_artifact(messages: &str, kind: &str, suffix: &str) -> Option<PathBuf> {
    let files = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let kinds = message["target"]["crate_types"].as_array()?;
        kinds.iter().any(|found| found == kind).then(|| message["filenames"].clone())
    })?;
    files
        .as_array()?
        .iter()
        .filter_map(|file| file.as_str())
        .find(|file| file.ends_with(suffix))
        .map(PathBuf::from)
}

/// Never in place: a program that has the old file mapped keeps it.
fn place(built: &Path, at: &Path) -> Result<()> {
    let aside = at.with_file_name(format!(".{}.{}", std::process::id(), file_name(at)));
    std::fs::copy(built, &aside).with_context(|| format!("could not copy {}", built.display()))?;
    std::fs::rename(&aside, at).with_context(|| format!("could not write {}", at.display()))
}

/// Below a folder of a `DT_RPATH` glibc looks into folders for the processor's features first, some twenty of them before 2.37.
/// Links from there back to the folder itself end the search with the first.
fn found_at_once(folder: &Path) -> Result<()> {
    let features = folder.join("glibc-hwcaps");
    std::fs::create_dir_all(&features)?;
    ["x86-64-v4", "x86-64-v3", "x86-64-v2"].iter().try_for_each(|level| symlink("..", &features.join(level)))
}

fn symlink(target: &str, at: &Path) -> Result<()> {
    let aside = at.with_file_name(format!(".{}.{}", std::process::id(), file_name(at)));
    std::os::unix::fs::symlink(target, &aside)?;
    std::fs::rename(&aside, at).with_context(|| format!("could not write {}", at.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cudaway run` puts `tools` into `PATH`, where a folder of a tool's name answers for the tool: who looks for `nvcc` where there is
    /// none was told of a missing permission. PyTorch takes only a missing file for an answer.
    #[test]
    fn no_folder_below_tools_has_the_name_of_a_tool() {
        let places = || PROGRAMS.iter().flat_map(|program| program.links).map(|(place, _)| Path::new(place));
        let names: Vec<String> = places().map(file_name).collect();
        assert!(names.contains(&"nvcc".to_owned()));
        for folder in places().filter_map(Path::parent) {
            assert!(!names.contains(&file_name(folder)), "{}", folder.display());
        }
    }
}
