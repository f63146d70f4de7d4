//! `nvcc` before NVIDIA's: where machine code alone is asked for, the real one makes PTX under the name that is asked for. Every
//! other call is the real one's as it came.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use super::Tool;

/// As shells have it.
const NOT_FOUND: u8 = 127;

pub fn run(words: &[OsString]) -> Result<ExitCode> {
    let Some(real) = real() else {
        eprintln!(
            "nvcc: there is none in PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda. CUDAway's only stands before NVIDIA's, \
             which compiles"
        );
        return Ok(ExitCode::from(NOT_FOUND));
    };
    let words = with_ptx(words);
    if let Some(ptxas) = of_ptx(&words) {
        return Tool::Ptxas.run(&super::Words::new(ptxas.into_iter()));
    }
    Err(Command::new(&real).args(words).exec()).with_context(|| real.display().to_string())
}

/// NVIDIA's: what a search of PATH would find without us, else in the toolkit that the user names.
pub fn real() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]).map(|root| root.join("bin"));
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(toolkits).collect();
    folders.into_iter().map(|folder| folder.join("nvcc")).find(|nvcc| nvcc.is_file() && !is_ours(nvcc))
}

/// Another installation's counts as ours, lest the two start each other for ever.
pub fn is_ours(tool: &Path) -> bool {
    tool.canonicalize().is_ok_and(|file| file.file_name() == Some(OsStr::new("cudaway")))
}

/// The words with which the real one makes what has PTX in it.
fn with_ptx(words: &[OsString]) -> Vec<OsString> {
    let texts: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let has = |names: &[&str]| texts.iter().any(|text| names.contains(text));
    if has(&["--fatbin", "-fatbin"]) {
        return fat_with_ptx(words, &texts);
    }
    if !has(CUBIN) {
        return words.to_vec();
    }
    let ptx =
        |(word, text): (&OsString, &&str)| if CUBIN.contains(text) { "--ptx".into() } else { word.clone() };
    let mut words: Vec<OsString> = words.iter().zip(&texts).map(ptx).collect();
    if value(&texts, &["-o", "--output-file"]).is_none() {
        // Without a name it would be `.ptx`.
        let input = texts.iter().rev().find(|text| is_input(text));
        if let Some(stem) = input.and_then(|input| Path::new(input).file_stem()) {
            let folder = value(&texts, &["-odir", "--output-directory"]).unwrap_or_default();
            let mut name = Path::new(folder).join(stem).into_os_string();
            name.push(".cubin");
            words.extend(["-o".into(), name]);
        }
    }
    words
}

const CUBIN: &[&str] = &["--cubin", "-cubin"];

fn is_input(text: &str) -> bool {
    let extension = Path::new(text).extension().and_then(OsStr::to_str);
    !text.starts_with('-') && matches!(extension, Some("cu" | "c" | "cc" | "cpp" | "cxx" | "gpu" | "ptx"))
}

/// The value of an option, behind `=` or in the next word.
fn value<'t>(texts: &[&'t str], names: &[&str]) -> Option<&'t str> {
    let mut found = texts.iter().enumerate().filter_map(|(index, text)| match text.split_once('=') {
        Some((name, value)) => names.contains(&name).then_some(value),
        None => names.contains(text).then(|| texts.get(index + 1).copied()).flatten(),
    });
    found.next_back()
}

/// A fat binary has PTX of each architecture that it has machine code for.
fn fat_with_ptx(words: &[OsString], texts: &[&str]) -> Vec<OsString> {
    const PAIRS: &[&str] = &["-gencode", "--generate-code"];
    const CODES: &[&str] = &["-code", "--gpu-code"];
    let arch = value(texts, &["-arch", "--gpu-architecture"]).unwrap_or_default();
    let with_ptx = |before: &str, text: &str| {
        let is_of = |names: &[&str]| {
            names.contains(&before) || text.split_once('=').is_some_and(|(name, _)| names.contains(&name))
        };
        if is_of(PAIRS) {
            // `arch=compute_80,code=sm_80`, `code=[sm_80,sm_86]`
            let (pair, codes) = text.rsplit_once("code=")?;
            let arch = pair.split_once("arch=")?.1.trim_end_matches(',');
            let codes = codes.trim_matches(['[', ']']);
            return (!codes.contains("compute_")).then(|| format!("{pair}code=[{codes},{arch}]"));
        }
        let lacks = is_of(CODES) && arch.starts_with("compute_") && !text.contains("compute_");
        lacks.then(|| format!("{text},{arch}"))
    };
    let before = std::iter::once(&"").chain(texts);
    let changed = before.zip(texts).map(|(before, text)| with_ptx(before, text));
    words
        .iter()
        .zip(changed)
        .map(|(word, changed)| changed.map_or_else(|| word.clone(), Into::into))
        .collect()
}

/// ptxas's words, where what is to be made PTX is PTX already.
fn of_ptx(words: &[OsString]) -> Option<Vec<OsString>> {
    let texts: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let input = texts.iter().rev().find(|text| is_input(text)).filter(|input| input.ends_with(".ptx"))?;
    let output = value(&texts, &["-o", "--output-file"]).filter(|_| texts.contains(&"--ptx"))?;
    Some([*input, "-o", output].map(OsString::from).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(words: &str) -> String {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        with_ptx(&words).iter().map(|it| it.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn machine_code_becomes_ptx_of_the_same_name() {
        for (words, wanted) in [
            // PyCUDA's and CuPy's.
            ("--cubin -arch sm_90 -I/x kernel.cu", "--ptx -arch sm_90 -I/x kernel.cu -o kernel.cubin"),
            ("-cubin -o /t/a.cubin /t/a.cu", "--ptx -o /t/a.cubin /t/a.cu"),
            ("--cubin --output-file=b /t/a.cu", "--ptx --output-file=b /t/a.cu"),
            ("--cubin -odir /out a.b.cu", "--ptx -odir /out a.b.cu -o /out/a.b.cubin"),
        ] {
            assert_eq!(changed(words), wanted);
        }
    }

    #[test]
    fn fat_binaries_get_ptx_beside_machine_code() {
        for (words, wanted) in [
            (
                "--fatbin -gencode arch=compute_80,code=sm_80 a.cu",
                "--fatbin -gencode arch=compute_80,code=[sm_80,compute_80] a.cu",
            ),
            (
                "-fatbin -gencode=arch=compute_80,code=[sm_80,sm_86] a.cu",
                "-fatbin -gencode=arch=compute_80,code=[sm_80,sm_86,compute_80] a.cu",
            ),
            (
                "-fatbin -arch=compute_80 -code=sm_80 a.cu",
                "-fatbin -arch=compute_80 -code=sm_80,compute_80 a.cu",
            ),
            (
                "-fatbin -arch compute_80 -code sm_80 a.cu",
                "-fatbin -arch compute_80 -code sm_80,compute_80 a.cu",
            ),
            // These have it.
            ("--fatbin -arch=sm_80 a.cu", "--fatbin -arch=sm_80 a.cu"),
            (
                "--fatbin -gencode arch=compute_80,code=compute_80 a.cu",
                "--fatbin -gencode arch=compute_80,code=compute_80 a.cu",
            ),
        ] {
            assert_eq!(changed(words), wanted);
        }
    }

    #[test]
    fn all_else_goes_on_as_it_came() {
        for words in
            ["--version", "--ptx -arch=sm_80 a.cu", "-arch=sm_80 -c a.cu -o a.o", "--preprocess a.cu"]
        {
            assert_eq!(changed(words), words);
        }
    }

    #[test]
    fn ptx_that_shall_become_machine_code_needs_no_compiler() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let ptxas = |text: &str| of_ptx(&with_ptx(&words(text)));
        assert_eq!(ptxas("--cubin a.ptx"), Some(words("a.ptx -o a.cubin")));
        assert_eq!(ptxas("--cubin a.cu"), None);
        assert_eq!(ptxas("-c a.ptx -o a.o"), None);
    }
}
