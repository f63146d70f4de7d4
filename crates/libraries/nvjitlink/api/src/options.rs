//! The options of a link. Nearly all tune machine code, which is not made here: they are known, and have no effect.

use crate::result::{Error, Failure, Result};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// 90 of `-arch=sm_90a`.
    pub arch: u32,
    pub is_verbose: bool,
    /// Emits PTX (`-lto -ptx`).
    pub emits_ptx: bool,
    /// What is undefined stays so (`-r`).
    pub is_part: bool,
}

const FLAGS: &[&str] = &[
    "-time",
    "-verbose",
    "-lto",
    "-ptx",
    "-g",
    "-lineinfo",
    "-optimize-unused-variables",
    "-nvvm-latest",
    "-no-cache",
    "-device-stack-protector",
    "-r",
];

/// `-ftz` and others may also stand without a value.
const WITH_VALUE: &[&str] = &[
    "-arch",
    "-maxrregcount",
    "-O",
    "-Ofc",
    "-ftz",
    "-prec-div",
    "-prec-sqrt",
    "-fma",
    "-kernels-used",
    "-variables-used",
    "-Xptxas",
    "-Xnvvm",
    "-split-compile",
    "-split-compile-extended",
    "-jump-table-density",
    "-device-stack-protector",
];

impl Options {
    /// The error's text is for the link's log.
    pub fn read(words: &[String]) -> Result<Options, Failure> {
        let mut options = Options::default();
        let (mut has_lto, mut arch) = (false, None);
        for word in words {
            let unrecognized = |why: &str| (Error::UnrecognizedOption, format!("{why}: {word}"));
            match (word.as_str(), word.split_once('=')) {
                ("-lto", _) => has_lto = true,
                ("-ptx", _) => options.emits_ptx = true,
                ("-verbose", _) => options.is_verbose = true,
                ("-r", _) => options.is_part = true,
                (_, Some(("-arch", value))) => {
                    arch = Some(Arch::read(value).ok_or_else(|| unrecognized("unrecognized architecture"))?);
                }
                ("-O0" | "-O3", _) => {}
                (level, _) if level.starts_with("-O") && level.len() == 3 => {
                    return Err(unrecognized("unsupported optimization level"));
                }
                (name, None) if FLAGS.contains(&name) => {}
                (_, Some((name, _))) if WITH_VALUE.contains(&name) => {}
                _ => return Err(unrecognized("unrecognized option")),
            }
        }
        let arch = arch.ok_or((Error::MissingArch, String::new()))?;
        if options.emits_ptx && !has_lto {
            return Err((Error::IncompatibleOptions, "-ptx needs -lto".to_owned()));
        }
        if arch.is_virtual && !options.emits_ptx {
            return Err((Error::IncompatibleOptions, "a virtual architecture needs -ptx".to_owned()));
        }
        Ok(Options { arch: arch.number, ..options })
    }
}

struct Arch {
    number: u32,
    is_virtual: bool,
}

impl Arch {
    /// `sm_90`, `sm_90a`, `compute_100f`
    fn read(value: &str) -> Option<Arch> {
        let (kind, number) = value.split_once('_')?;
        let is_virtual = match kind {
            "sm" => false,
            "compute" => true,
            _ => return None,
        };
        let number = number.strip_suffix(['a', 'f']).unwrap_or(number).parse().ok()?;
        Some(Arch { number, is_virtual })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Options, Error> {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        Options::read(&words).map_err(|(error, _)| error)
    }

    /// As libnvJitLink.so.13 of CUDA 13.5 answers.
    #[test]
    fn options_are_taken_and_refused_as_nvidias_does() {
        for (words, answer) in [
            ("", Err(Error::MissingArch)),
            ("-arch=sm_80", Ok(80)),
            ("-arch=sm_90a", Ok(90)),
            ("-arch=sm_80 -foo", Err(Error::UnrecognizedOption)),
            ("-arch=zz", Err(Error::UnrecognizedOption)),
            ("-arch=sm_80 -ptx", Err(Error::IncompatibleOptions)),
            ("-arch=sm_80 -lto -ptx", Ok(80)),
            ("-arch=compute_80", Err(Error::IncompatibleOptions)),
            ("-arch=compute_80 -lto -ptx", Ok(80)),
            ("--arch=sm_80", Err(Error::UnrecognizedOption)),
            ("-arch sm_80", Err(Error::UnrecognizedOption)),
            ("-arch=sm_80 -O2", Err(Error::UnrecognizedOption)),
            ("-arch=sm_80 -O3 -maxrregcount=x", Ok(80)),
            ("-arch=sm_80 -r -Xptxas=-v -kernels-used=k", Ok(80)),
        ] {
            assert_eq!(read(words).map(|options| options.arch), answer, "{words}");
        }
    }
}
