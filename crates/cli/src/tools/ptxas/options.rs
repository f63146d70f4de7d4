//! ptxas's options: words of one or two dashes, values behind `=` or in the next word.
//!
//! Nearly all tune machine code, so here it only matters whether the next word is theirs.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Fatal;

#[derive(Debug, Default)]
pub struct Options {
    pub input: Option<Input>,
    pub output: Option<PathBuf>,
    /// As it was given: `sm_90a`.
    pub gpu: String,
    pub verbose: bool,
    pub version: bool,
    pub help: bool,
    /// Others define what this text leaves undefined (`-c`).
    pub is_part: bool,
    /// `--fmad=false`: no product becomes part of a fused multiply-add.
    pub rounds_products: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    File(PathBuf),
    Text(String),
}

/// Both names of each option that has a value.
const WITH_VALUE: &[[&str; 2]] = &[
    ["Ofast-compile", "Ofc"],
    ["allow-expensive-optimizations", ""],
    ["def-load-cache", "dlcm"],
    ["def-store-cache", "dscm"],
    ["device-function-maxrregcount", "func-maxrregcount"],
    ["device-stack-protector", ""],
    ["enable-func-clone-sc", ""],
    ["entry", "e"],
    ["fmad", ""],
    ["force-load-cache", "flcm"],
    ["force-store-cache", "fscm"],
    ["gpu-name", "arch"],
    ["input-as-string", "ias"],
    ["machine", "m"],
    ["maxntid", ""],
    ["maxrregcount", ""],
    ["minnctapersm", ""],
    ["opt-level", "O"],
    ["options-file", "optf"],
    ["output-file", "o"],
    ["position-independent-code", "pic"],
    ["register-usage-level", "regUsageLevel"],
    ["sanitize", ""],
    ["split-compile", ""],
];

/// Both names of each option without a value.
const FLAGS: &[[&str; 2]] = &[
    ["apply-controls", ""],
    ["compile-as-tools-patch", "astoolspatch"],
    ["compile-only", "c"],
    ["compiler-annotations", "annotate"],
    ["device-debug", "g"],
    ["disable-optimizer-constants", "disable-optimizer-consts"],
    ["disable-warnings", "w"],
    ["dont-merge-basicblocks", "no-bb-merge"],
    ["extensible-whole-program", "ewp"],
    ["g-tensor-memory-access-check", "g-tmem-access-check"],
    ["generate-line-info", "lineinfo"],
    ["gno-tensor-memory-access-check", "gno-tmem-access-check"],
    ["help", "h"],
    ["jobserver", ""],
    ["legacy-bar-warp-wide-behavior", ""],
    ["make-errors-visible-at-exit", ""],
    ["optimize-float-atomics", "opt-fp-atomics"],
    ["override-directive-values", ""],
    ["preserve-relocs", ""],
    ["return-at-end", "ret-end"],
    ["sp-bounds-check", ""],
    ["suppress-async-bulk-multicast-advisory-warning", ""],
    ["suppress-debug-info", ""],
    ["suppress-double-demote-warning", ""],
    ["suppress-sparse-mma-advisory-info", ""],
    ["suppress-stack-size-warning", ""],
    ["verbose", "v"],
    ["version", "V"],
    ["warn-on-double-precision-use", "warn-double-usage"],
    ["warn-on-local-memory-usage", "warn-lmem-usage"],
    ["warn-on-spills", "warn-spills"],
    ["warning-as-error", "Werror"],
];

/// The long name of the option that has this one.
fn named(table: &[[&'static str; 2]], name: &str) -> Option<&'static str> {
    table.iter().find(|names| !name.is_empty() && names.contains(&name)).map(|names| names[0])
}

pub fn usage() -> String {
    let lines = |table: &[[&str; 2]], value: &str| {
        let row = |[long, short]: &[&str; 2]| match *short {
            "" => format!("  --{long}{value}\n"),
            short => format!("  --{long}{value} (-{short})\n"),
        };
        table.iter().map(row).collect::<String>()
    };
    format!(
        "ptxas [options] FILE.ptx -o FILE: checks PTX and writes it where machine code is asked for.\n\
         It knows these options; those about machine code change nothing but --fmad=false.\n{}{}",
        lines(WITH_VALUE, " VALUE"),
        lines(FLAGS, "")
    )
}

impl Options {
    pub fn read(words: &[OsString]) -> Result<Options, Fatal> {
        let mut options = Options { gpu: "sm_52".to_owned(), ..Options::default() };
        let words = words.iter().map(|word| word.to_string_lossy().into_owned());
        options.take(words.collect(), 0)?;
        Ok(options)
    }

    /// `depth`: of files that name files of options.
    fn take(&mut self, words: Vec<String>, depth: usize) -> Result<(), Fatal> {
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            if let Some(file) = word.strip_prefix('@') {
                self.take_file(file, depth)?;
                continue;
            }
            let option = word.trim_start_matches('-');
            if option.len() == word.len() || option.is_empty() {
                if self.input.replace(Input::File(word.into())).is_some() {
                    return Err("More than one input file".to_owned());
                }
                continue;
            }
            let (name, joined) = match option.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (option, None),
            };
            if let Some(name) = named(WITH_VALUE, name) {
                let value = joined.or_else(|| words.next());
                let value = value.ok_or_else(|| format!("The option '-{name}' lacks its value"))?;
                match name {
                    "options-file" => self.take_file(&value, depth)?,
                    name => self.set(name, value),
                }
            } else if let Some(name) = named(FLAGS, name) {
                self.raise(name);
            } else if joined.is_none() && !has_number(name) {
                // With its value behind it, it is one of those that are in no manual; they are about machine code too.
                return Err(format!("Unknown option '-{name}'"));
            }
        }
        Ok(())
    }

    fn take_file(&mut self, file: &str, depth: usize) -> Result<(), Fatal> {
        const DEEPEST: usize = 8;
        if depth >= DEEPEST {
            return Err(format!("{file}: files of options that name each other"));
        }
        let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        self.take(text.split_whitespace().map(str::to_owned).collect(), depth + 1)
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "output-file" => self.output = Some(value.into()),
            "gpu-name" => self.gpu = value,
            "input-as-string" => self.input = Some(Input::Text(value)),
            "fmad" => self.rounds_products = matches!(&*value, "false" | "0"),
            _ => {}
        }
    }

    fn raise(&mut self, name: &str) {
        match name {
            "verbose" => self.verbose = true,
            "version" => self.version = true,
            "help" => self.help = true,
            "compile-only" => self.is_part = true,
            _ => {}
        }
    }
}

/// `O3`, `m64`
fn has_number(name: &str) -> bool {
    name.strip_prefix(['O', 'm']).is_some_and(|number| number.parse::<u8>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Options, Fatal> {
        Options::read(&words.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    fn file(name: &str) -> Option<Input> {
        Some(Input::File(name.into()))
    }

    #[test]
    fn the_words_that_callers_write_are_understood() {
        // Triton's, XLA's, nvcc's.
        for words in [
            "-lineinfo --fmad=false -v --opt-level 0 --regAllocOptLevel=2 --gpu-name=sm_90a a.ptx -o out",
            "a.ptx -o out -arch=sm_90a --warn-on-spills -O3 -v -maxrregcount=32",
            "-arch sm_90a -m64 -v --generate-line-info a.ptx --output-file out",
            "-g -Werror --verbose --entry k,l -arch=sm_90a --output-file=out a.ptx",
        ] {
            let options = read(words).unwrap();
            assert_eq!((options.input, &*options.gpu, options.verbose), (file("a.ptx"), "sm_90a", true));
            assert_eq!(options.output.unwrap(), PathBuf::from("out"));
            assert!(!options.version && !options.help && !options.is_part);
        }
        assert!(read("--version").unwrap().version && read("-V").unwrap().version);
        assert!(read("-c a.ptx").unwrap().is_part);
        assert_eq!(read("a.ptx").unwrap().gpu, "sm_52");
        assert_eq!(read("-ias .version").unwrap().input, Some(Input::Text(".version".to_owned())));
    }

    #[test]
    fn options_stand_in_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        std::fs::write(&first, format!("-v\n--options-file={}\n", second.display())).unwrap();
        std::fs::write(&second, "-o out\n\ta.ptx").unwrap();
        let options = read(&format!("@{}", first.display())).unwrap();
        assert!(options.verbose && options.input == file("a.ptx") && options.output.is_some());
        std::fs::write(&second, format!("@{}", first.display())).unwrap();
        assert!(read(&format!("@{}", first.display())).unwrap_err().contains("name each other"));
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for (words, why) in [
            ("--no-such a.ptx", "'-no-such'"),
            ("a.ptx b.ptx", "More than one"),
            ("a.ptx -o", "lacks its value"),
            ("@/no/such", "/no/such"),
            ("-Ox a.ptx", "'-Ox'"),
        ] {
            let fatal = read(words).unwrap_err();
            assert!(fatal.contains(why), "{words}: {fatal}");
        }
    }
}
