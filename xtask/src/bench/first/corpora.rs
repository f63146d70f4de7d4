//! Whose kernels are measured: sources of this tree, and packages of others that carry PTX or are compiled to it. What is fetched lies
//! below the download cache, for all checkouts; nothing of it is committed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::clients;
use crate::settings::corpora as of_this_tree;
use crate::setup;
use crate::test::corpus::ptx_of;
use crate::test::examples::quiet;
use crate::toolchain::{Release, Toolchain};

pub struct Corpus {
    pub name: &'static str,
    /// What it is and where it is from, for the page.
    pub what: &'static str,
    from: From,
}

enum From {
    /// Corpora of `cargo xtask settings`.
    Settings(&'static [&'static str]),
    /// What our check of a client (`cargo xtask clients`) hands to the driver, and the PTX of these files of its wheels.
    Client(&'static str, &'static [&'static str]),
    /// The PTX of a library, the one file of a wheel whose path has this.
    Wheel { pin: &'static str, part: &'static str },
    /// The PTX of a library at that path of a package.
    Npm { pin: &'static str, path: &'static str },
    /// benches/first/cutlass.cu with the headers of this wheel, by nvcc.
    Cutlass(&'static str),
    /// Sources of this wheel by NVRTC, as hashcat asks for them.
    Hashcat(&'static str),
}

pub const CORPORA: &[Corpus] = &[
    Corpus {
        name: "examples",
        what: "examples/\\*.cu, examples/corpus and the collectives of cooperative groups",
        from: From::Settings(&["examples", "corpus", "groups"]),
    },
    Corpus {
        name: "cub",
        what: "CUB of CCCL 3 by twelve pairs of types (examples/settings/cub_by_type.cu)",
        from: From::Settings(&["cub"]),
    },
    Corpus {
        name: "thrust",
        what: "Thrust of CCCL 3 by the same types (examples/settings/thrust_by_type.cu)",
        from: From::Settings(&["thrust"]),
    },
    Corpus {
        name: "cupy",
        what: "CuPy 14.2.0: what our check of it launches, and its modules of CUB and Thrust",
        from: From::Client("cupy", &["cupy/cuda/cub.", "cupy/cuda/thrust."]),
    },
    Corpus {
        name: "numba",
        what: "numba-cuda 0.30.4: what our check of it launches",
        from: From::Client("numba", &[]),
    },
    Corpus {
        name: "triton",
        what: "Triton 3.9.0: what our check of it launches",
        from: From::Client("triton", &[]),
    },
    Corpus {
        name: "ctransformers",
        what: "llama.cpp of 2023, PTX of sm_70: PyPI, ctransformers 0.2.27",
        from: From::Wheel { pin: "ctransformers==0.2.27", part: "lib/cuda/libctransformers.so" },
    },
    Corpus {
        name: "gpt4all",
        what: "llama.cpp of 2024, PTX of sm_75: PyPI, gpt4all 2.8.2",
        from: From::Wheel { pin: "gpt4all==2.8.2", part: "build/libllamamodel-mainline-cuda.so" },
    },
    Corpus {
        name: "node-llama-cpp",
        what: "llama.cpp of 2026, PTX of sm_90: npm, @node-llama-cpp/linux-x64-cuda 3.22.1",
        from: From::Npm {
            pin: "@node-llama-cpp/linux-x64-cuda@3.22.1",
            path: "package/bins/linux-x64-cuda/libggml-cuda.so",
        },
    },
    Corpus {
        name: "cutlass",
        what: "products by CUTLASS 4.2.0 (PyPI, nvidia-cutlass; benches/first/cutlass.cu)",
        from: From::Cutlass("nvidia-cutlass==4.2.0.0"),
    },
    Corpus {
        name: "hashcat",
        what: "kernels of hashcat 7 (PyPI, hashcat 25.8.10) through NVRTC 13.5",
        from: From::Hashcat("hashcat==25.8.10"),
    },
];

/// Of hashcat, by its numbers of algorithms: iterated SHA-512 and MD5, long kernels with tables of branches.
const HASHCAT: &[&str] = &["m00500-pure", "m01800-pure", "m07900-pure", "m11300-pure", "m13400-pure"];

/// What hashcat says of an NVIDIA device of compute capability 9.0, and of the hash.
const OPTIONS: &[&str] = &[
    "--gpu-architecture=compute_90",
    "--restrict",
    "--device-as-default-execution-space",
    "-DKERNEL_STATIC",
    "-DXM2S(x)=#x",
    "-DM2S(x)=XM2S(x)",
    "-DINCLUDE_PATH=.",
    "-DVENDOR_ID=32",
    "-DCUDA_ARCH=900",
    "-DHAS_ADD=1",
    "-DHAS_ADDC=1",
    "-DHAS_SUB=1",
    "-DHAS_SUBC=1",
    "-DHAS_BFE=1",
    "-DHAS_LOP3=1",
    "-DHAS_MOV64=1",
    "-DHAS_PRMT=1",
    "-DVECT_SIZE=1",
    "-DDEVICE_TYPE=4",
    "-DDGST_R0=0",
    "-DDGST_R1=1",
    "-DDGST_R2=2",
    "-DDGST_R3=3",
    "-DDGST_ELEM=16",
    "-DKERN_TYPE=0",
    "-DATTACK_EXEC=10",
    "-DATTACK_KERN=0",
    "-DATTACK_MODE=0",
    "-D_unroll",
];

impl Corpus {
    /// Its files of PTX. `lib`: our objects, which clients run on.
    pub fn ptx(&self, lib: &Path) -> Result<Vec<PathBuf>> {
        let home = setup::download_cache()?.join("first").join(self.name);
        fs::create_dir_all(&home)?;
        match self.from {
            From::Settings(names) => {
                let all = of_this_tree::all();
                let mut files = vec![];
                for corpus in all.iter().filter(|it| names.contains(&it.name)) {
                    files.extend(corpus.ptx()?);
                }
                Ok(files)
            }
            From::Client(name, parts) => {
                let (mut files, wheels) = clients::ptx_of_check(name, lib)?;
                for library in libraries(&wheels, parts)? {
                    files.extend(newest(&library, &home)?);
                }
                Ok(files)
            }
            From::Wheel { pin, part } => {
                setup::files_of_wheel(pin, part, &home)?;
                newest(&home.join(Path::new(part).file_name().context("a file")?), &home)
            }
            From::Npm { pin, path } => {
                let library = home.join(path);
                if !library.exists() {
                    fetching(pin)?;
                    let name =
                        setup::said(Command::new("npm").args(["pack", "--silent", pin]).current_dir(&home))
                            .context("npm")?;
                    quiet(Command::new("tar").args(["-xf", &name, path]).current_dir(&home))?;
                    fs::remove_file(home.join(name))?;
                }
                newest(&library, &home)
            }
            From::Cutlass(pin) => Ok(vec![cutlass(pin, &home)?]),
            From::Hashcat(pin) => hashcat(pin, &home),
        }
    }
}

fn fetching(what: &str) -> Result<()> {
    println!("setup: {what}");
    ensure!(!setup::offline(), "--offline, and {what} is missing");
    Ok(())
}

/// The whole of a wheel, unpacked.
fn unpacked(pin: &str, home: &Path) -> Result<PathBuf> {
    let dir = home.join(pin);
    if !dir.exists() {
        fetching(pin)?;
        let aside = home.join("unpacking");
        let _ = fs::remove_dir_all(&aside);
        let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check", "--target"];
        quiet(Command::new(setup::venv()?).args(pip).arg(&aside).arg(pin))?;
        fs::rename(aside, &dir)?;
    }
    Ok(dir)
}

/// Files below `wheels` whose path begins with one of these.
fn libraries(wheels: &Path, parts: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = vec![];
    for part in parts {
        let (folder, name) = part.rsplit_once('/').context("a folder and a name")?;
        for file in fs::read_dir(wheels.join(folder))? {
            let file = file?.path();
            let is_it = |it: &str| it.starts_with(name) && it.ends_with(".so");
            if file.file_name().and_then(|it| it.to_str()).is_some_and(is_it) {
                found.push(file);
            }
        }
    }
    Ok(found)
}

/// The PTX of a library, of the highest architecture that it has PTX for.
fn newest(library: &Path, home: &Path) -> Result<Vec<PathBuf>> {
    let out = home.join(format!("{}.ptx", library.file_stem().context("a file")?.to_string_lossy()));
    let files = if out.exists() {
        fs::read_dir(&out)?.map(|it| Ok(it?.path())).collect::<Result<Vec<_>>>()?
    } else {
        let aside = out.with_extension("new");
        let _ = fs::remove_dir_all(&aside);
        ptx_of(library, &aside)?;
        fs::rename(&aside, &out)?;
        return newest(library, home);
    };
    let newest = files.iter().filter_map(|it| arch(it)).max().unwrap_or_default();
    let mut files: Vec<PathBuf> = files.into_iter().filter(|it| arch(it) == Some(newest)).collect();
    files.sort();
    Ok(files)
}

/// Of a file as `ptx_of` names them: `0001.sm_90.ptx`.
fn arch(file: &Path) -> Option<u32> {
    let name = file.file_name()?.to_str()?.strip_suffix(".ptx")?;
    name.split_once(".sm_")?.1.parse().ok()
}

fn cutlass(pin: &str, home: &Path) -> Result<PathBuf> {
    let headers = unpacked(pin, home)?.join("cutlass_library/source/include");
    let source = setup::root().join("benches/first/cutlass.cu");
    let out = home.join("cutlass.ptx");
    let made = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
    if made(&out) <= made(&source) {
        let mut nvcc = Release::V13_5.get()?.nvcc();
        nvcc.args(["--ptx", "-arch=compute_90", "-std=c++17", "-O3", "--disable-warnings", "-I"]);
        quiet(nvcc.arg(headers).arg("-o").arg(&out).arg(source))?;
    }
    Ok(out)
}

fn hashcat(pin: &str, home: &Path) -> Result<Vec<PathBuf>> {
    let Toolchain { dir, .. } = Release::V13_5.get()?;
    let mut files = vec![];
    for name in HASHCAT {
        let out = home.join(format!("{name}.ptx"));
        if !out.exists() {
            println!("setup: {name}.cl by NVRTC");
            setup::wheels(&["nvidia-cuda-nvrtc==13.5.37"])?;
            let sources = unpacked(pin, home)?.join("hashcat/hashcat/OpenCL");
            let mut command = Command::new(setup::venv()?);
            command.current_dir(sources).arg(setup::root().join("tools/first/nvrtc.py"));
            command.arg(dir.join("lib/libnvrtc.so.13")).arg(format!("{name}.cl")).arg(&out);
            quiet(command.args(OPTIONS).arg("-I."))?;
        }
        files.push(out);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ptx_says_its_architecture() {
        assert_eq!(arch(Path::new("a/0001.sm_90.ptx")), Some(90));
        assert_eq!(arch(Path::new("a/0001.ptx")), None);
    }

    #[test]
    fn corpora_have_names_of_their_own_and_those_of_this_tree_are_there() {
        let mut names: Vec<&str> = CORPORA.iter().map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CORPORA.len());
        let known: Vec<&str> = of_this_tree::all().iter().map(|it| it.name).collect();
        for corpus in CORPORA {
            if let From::Settings(names) = corpus.from {
                assert!(names.iter().all(|name| known.contains(name)), "{}", corpus.name);
            }
        }
    }
}
