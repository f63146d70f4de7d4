//! Sources of ours whose kernels are counted: they are compiled to PTX by nvcc 13.5, for 9.0.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::setup;
use crate::test::examples::quiet;
use crate::toolchain::{Release, Toolchain};

/// Types of keys and values: 1 to 16 bytes, whole, floating and structures.
const PAIRS: &[(&str, &str)] = &[
    ("uint8_t", "int"),
    ("int16_t", "uint8_t"),
    ("__half", "float"),
    ("Bytes3", "int16_t"),
    ("int", "int"),
    ("int", "double"),
    ("float", "Words3"),
    ("long long", "int"),
    ("double", "long long"),
    ("Words3", "float"),
    ("Wide", "Wide"),
    ("Doubles2", "Doubles2"),
];

/// What nvcc 13.5 does not compile: CUDA 11's texture references, and what is written for clang.
const OTHERS: &[&str] = &["texture_references", "clang_kernels"];

/// Sources that are compiled once, or once for each pair of types.
pub struct Corpus {
    pub name: &'static str,
    /// What it is, for the page.
    pub what: &'static str,
    sources: Sources,
}

enum Sources {
    /// Every .cu file of a folder below examples.
    Folder(&'static str),
    File(&'static str),
    ByType(&'static str),
}

pub fn all() -> Vec<Corpus> {
    vec![
        Corpus { name: "examples", what: "examples/*.cu", sources: Sources::Folder("") },
        Corpus {
            name: "corpus",
            what: "examples/corpus: libm, narrow floats, virtual functions, wmma, inline assembly, CUB and Thrust for `int`",
            sources: Sources::Folder("corpus"),
        },
        Corpus {
            name: "groups",
            what: "cooperative groups: the collectives of tiles of 1 to 32 lanes, labeled, binary and coalesced groups \
                   (examples/settings/tiles.cu)",
            sources: Sources::File("tiles"),
        },
        Corpus {
            name: "cub",
            what: "CUB's device-wide algorithms by twelve pairs of types of 1 to 16 bytes (examples/settings/cub_by_type.cu)",
            sources: Sources::ByType("cub_by_type"),
        },
        Corpus {
            name: "thrust",
            what: "Thrust's algorithms by the same types (examples/settings/thrust_by_type.cu)",
            sources: Sources::ByType("thrust_by_type"),
        },
    ]
}

impl Corpus {
    /// Its files of PTX. What is newer than its source is not compiled again.
    pub fn ptx(&self) -> Result<Vec<PathBuf>> {
        let nvcc = Release::V13_5.get()?;
        nvcc.with_all()?;
        let below = setup::root().join("examples/settings");
        match self.sources {
            Sources::Folder(folder) => {
                let dir = setup::root().join("examples").join(folder);
                let found = std::fs::read_dir(&dir)?.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?;
                let mut sources: Vec<PathBuf> =
                    found.into_iter().filter(|path| path.extension().is_some_and(|it| it == "cu")).collect();
                sources.retain(|path| OTHERS.iter().all(|name| !path.ends_with(format!("{name}.cu"))));
                sources.sort();
                // Some launch kernels from kernels, or are parts of a program.
                let apart = ["-rdc=true".to_owned()];
                sources.iter().map(|source| compiled(&nvcc, self.name, source, "", &apart)).collect()
            }
            Sources::File(name) => {
                Ok(vec![compiled(&nvcc, self.name, &below.join(format!("{name}.cu")), "", &[])?])
            }
            Sources::ByType(name) => {
                let source = below.join(format!("{name}.cu"));
                let of_pair = |(nth, (key, value)): (usize, &(&str, &str))| {
                    let defines = [format!("-DKEY_TYPE={key}"), format!("-DVALUE_TYPE={value}")];
                    compiled(&nvcc, self.name, &source, &format!("-{nth}"), &defines)
                };
                PAIRS.iter().enumerate().map(of_pair).collect()
            }
        }
    }
}

fn compiled(
    nvcc: &Toolchain,
    corpus: &str,
    source: &Path,
    suffix: &str,
    options: &[String],
) -> Result<PathBuf> {
    let dir = setup::root().join("target/settings").join(corpus);
    std::fs::create_dir_all(&dir)?;
    let stem = source.file_stem().context("a file's name")?.to_string_lossy();
    let out = dir.join(format!("{stem}{suffix}.ptx"));
    let made = |path: &Path| std::fs::metadata(path).and_then(|it| it.modified()).ok();
    let shared = source.with_file_name("types.h");
    if made(&out).is_some_and(|out| Some(out) > made(source) && made(&shared).is_none_or(|it| out > it)) {
        return Ok(out);
    }
    let mut command: Command = nvcc.nvcc();
    command.args(["--ptx", "-arch=compute_90", "-std=c++17", "--extended-lambda", "-O3"]).args(options);
    command.arg("-I").arg(setup::root().join("examples")).arg("-o").arg(&out).arg(source);
    quiet(&mut command)?;
    Ok(out)
}
