//! `cargo xtask samples`: NVIDIA's cuda-samples, and of CUDALibrarySamples those for libraries of ours, built as their CMakeLists
//! ask and run on our libraries as a user would; docs/samples.md and docs/library-samples.md are made of what came of it.

mod build;
mod cmake;
mod collection;
mod notes;
pub mod page;
pub mod ran;
mod readme;
mod results;
mod run;

pub use results::How;
pub use run::{Profile, judge, once, processor, profile, tenths, today};

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::setup;
use build::Builder;
use cmake::Folder;
use collection::{CUDA_SAMPLES, LIBRARY_SAMPLES};
use notes::Notes;
use results::{Results, Sample};

#[derive(clap::Args)]
pub struct Args {
    /// In place of cuda-samples those of github.com/NVIDIA/CUDALibrarySamples for our libraries, of which every second is tried.
    #[arg(long)]
    library_samples: bool,
    /// A checkout of the samples; else the variable SAMPLES, or LIBRARY_SAMPLES; else they are cloned.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Only these, comma separated: names of their folders.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Go on where an earlier run ended: what has a result stays.
    #[arg(long)]
    resume: bool,
    /// Build them, and run none.
    #[arg(long)]
    build_only: bool,
    /// Seconds that a sample may run, where the notes in tools/data give it no limit of its own.
    #[arg(long, default_value_t = 120)]
    limit: u64,
    /// Our objects.
    #[arg(long, value_name = "DIR")]
    lib: Option<PathBuf>,
    #[command(flatten)]
    setup: setup::Args,
}

/// Packages whose absence means that a sample draws.
const GRAPHICS: &[&str] = &["OpenGL", "GLUT", "EGL", "Vulkan", "X11"];

pub fn run(args: &Args) -> Result<()> {
    args.setup.apply();
    let lib = fs::canonicalize(args.lib.clone().unwrap_or_else(setup::lib_dir))
        .context("our objects; first: cargo xtask build")?;
    ensure!(lib.join("libcuda.so.1").exists(), "{} has no libcuda.so.1", lib.display());
    let collection = if args.library_samples { &LIBRARY_SAMPLES } else { &CUDA_SAMPLES };
    let checkout = collection.find(args.from.as_deref())?;
    let notes = Notes::read(collection)?;
    let builder = Builder::new(&lib)?;
    let home = setup::root().join("target").join(collection.name);
    let folders = match args.library_samples {
        true => library_folders(&checkout, &home, &builder)?,
        false => folders(&checkout, &home, &builder)?,
    };
    notes.are_of(&folders)?;
    if let Some(unknown) = args.only.iter().find(|name| !folders.iter().any(|it| name_of(it) == **name)) {
        bail!("no sample is called {unknown}");
    }
    let arguments = run::Arguments::read(&checkout)?;
    let places: Vec<Sample> = folders.iter().map(|folder| Sample::new(folder, &home)).collect();
    let before = Results::read(collection)?;
    for folder in &folders {
        let name = name_of(folder);
        if !args.only.is_empty() && !args.only.contains(&name) {
            continue;
        }
        if args.resume && before.has(&name) {
            continue;
        }
        let mut sample = Sample::new(folder, &home);
        match builder.build(folder) {
            Ok(_) if args.build_only => {
                println!("{name}: built");
                continue;
            }
            Ok(program) => {
                let note = notes.of(&name);
                let limit = note.and_then(|note| note.limit).unwrap_or(args.limit);
                let runs = arguments.of(&program);
                let readme = fs::read_to_string(folder.source.join("README.md")).ok();
                let is_wrong = note.is_some_and(|note| note.readme_is_wrong);
                let shown = readme.filter(|_| args.library_samples && !is_wrong);
                let asked = run::Asked {
                    runs: &runs,
                    limit: Duration::from_secs(limit),
                    must_launch: build::launches_kernels(folder),
                    shown: shown.and_then(|text| readme::shown(&text, &name)),
                    devices: note.and_then(|note| note.devices.as_deref()).unwrap_or(collection.devices),
                };
                run::all(&program, &lib, &asked, &mut sample)?;
            }
            Err(why) => {
                sample.how = How::NotBuilt;
                sample.is_graphics = why.is_graphics;
                sample.is_broken = why.is_broken;
                sample.said = why.said;
            }
        }
        println!("{name}: {} {}", sample.line(), sample.said);
        if !args.build_only {
            // Read again: another run may have written meanwhile.
            let mut results = Results::read(collection)?;
            results.know(&places);
            results.put(sample);
            results.save(collection)?;
        }
    }
    page::write(collection)?;
    let unexplained = Results::read(collection)?.unexplained(&notes);
    ensure!(
        unexplained.is_empty(),
        "they fail for no reason that is written down: {}",
        unexplained.join(", ")
    );
    Ok(())
}

/// A sample is built in a folder of its name.
fn name_of(folder: &Folder) -> String {
    folder.binary.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// All samples: those that the scripts lead to, and those that they leave out here.
fn folders(checkout: &Path, home: &Path, builder: &Builder) -> Result<Vec<Folder>> {
    fs::create_dir_all(home)?;
    // Samples look for their files four folders above where they were built, as below a checkout.
    for name in ["Samples", "Common"] {
        let _ = fs::remove_file(home.join(name));
        symlink(checkout.join(name), home.join(name))?;
    }
    let (source, binary) = (checkout.join("Samples"), home.join("build/Samples"));
    let mut found = cmake::read(&source, &binary, &builder.machine())?;
    found.retain(|folder| !folder.is_parent);
    let mut left_out = Vec::new();
    scripts_below(&source, &mut left_out)?;
    left_out.retain(|path| !found.iter().any(|folder| folder.source == *path));
    for path in left_out {
        let below = path.strip_prefix(&source)?.to_owned();
        found.push(Folder {
            binary: binary.join(below),
            source: path,
            is_left_out: true,
            ..Folder::default()
        });
    }
    found.sort_by(|a, b| a.source.cmp(&b.source));
    Ok(found)
}

/// Of each library's samples every second, a folder for each program. Each has a script of its own, which no other leads to.
fn library_folders(checkout: &Path, home: &Path, builder: &Builder) -> Result<Vec<Folder>> {
    const LIBRARIES: &[&str] = &[
        "cuBLAS/Emulation",
        "cuBLAS/Extensions",
        "cuBLAS/Level-1",
        "cuBLAS/Level-2",
        "cuBLAS/Level-3",
        "cuBLASLt",
        "cuFFT",
        "cuRAND/Host",
        "cuSOLVER",
        "cuSPARSE",
    ];
    let mut found = Vec::new();
    for library in LIBRARIES {
        let mut samples = Vec::new();
        for entry in fs::read_dir(checkout.join(library)).context(*library)? {
            let path = entry?.path();
            samples.extend(path.join("CMakeLists.txt").exists().then_some(path));
        }
        samples.sort();
        for source in samples.into_iter().step_by(2) {
            let binary = home.join("build/Samples").join(source.strip_prefix(checkout)?);
            for folder in cmake::read(&source, &binary, &builder.machine())? {
                found.extend(folder.targets.iter().map(|target| Folder {
                    binary: folder.binary.join(&target.name),
                    targets: vec![target.clone()],
                    ..folder.clone()
                }));
            }
        }
    }
    Ok(found)
}

/// Folders with a CMakeLists and no folder with one below.
fn scripts_below(dir: &Path, found: &mut Vec<PathBuf>) -> Result<bool> {
    let before = found.len();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            scripts_below(&path, found)?;
        }
    }
    if found.len() == before && dir.join("CMakeLists.txt").exists() {
        found.push(dir.to_owned());
    }
    Ok(found.len() > before)
}
