//! examples/ × forms: each built by a real nvcc as a user would build it, then run on our objects.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context as _, Result, bail, ensure};
use testkit::{Installed, Run};

use super::cores::on_cores;
use super::report::Report;
use crate::setup;
use crate::toolchain::{Release, Toolchain};

pub const NAMES: &[&str] = &[
    "device_query",
    "vector_add",
    "vector_add_driver",
    "saxpy_streams",
    "matmul_tiled",
    "reduce",
    "mandelbrot",
    "warp_in_step",
    "histogram",
    "constant_and_globals",
    "multi_gpu_threads",
    "device_relay",
    "error_paths",
    "textures",
    "textures_driver",
    "texture_references",
    "cooperative",
    "clusters",
    "tensor_maps",
    "flash_attention",
    "linking",
    "virtual_memory",
    "between_processes",
    "graphs",
    "mixed_units",
    "dynamic_parallelism",
    "device_graphs",
    "updatable_nodes",
    "cublas_sgemm",
    "cublas_lt",
    "cublas_first_api",
    "cudnn_network",
    "cufft_transforms",
    "curand_numbers",
    "cusolver_systems",
    "cusolver_multi_device",
    "cusparse_products",
];

/// How a program is built and reaches CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// nvcc's default: the runtime is linked statically.
    Static,
    /// `-cudart shared`
    Shared,
    /// `-rdc=true`: relocatable device code, joined by the device linker.
    Rdc,
    /// `--default-stream per-thread`
    PerThread,
    /// The program opens libcuda.so.1 by itself and has no runtime.
    Dlopen,
    /// A library with a static runtime, opened by a program that has none.
    Plugin,
}

pub const FORMS: &[Form] =
    &[Form::Static, Form::Shared, Form::Rdc, Form::PerThread, Form::Dlopen, Form::Plugin];

/// Examples that are also built as a plugin.
const PLUGINS: &[&str] = &["vector_add", "matmul_tiled", "constant_and_globals"];

/// Whether an example exists in a form and for a release.
fn exists(name: &str, form: Form, release: Release) -> bool {
    match (name, form) {
        (_, Form::Plugin) => PLUGINS.contains(&name),
        // Linking and device launches are about several units.
        ("mixed_units" | "dynamic_parallelism", _) => form == Form::Rdc,
        // They came with CUDA 12.
        ("device_graphs", _) => form == Form::Rdc && release != Release::V11_8,
        // So did nodes that kernels change, for which nothing is linked.
        ("updatable_nodes", _) => form == Form::Static && release != Release::V11_8,
        // They use more of the runtime than dlopen_driver.h has.
        (
            "textures" | "textures_driver" | "texture_references" | "cooperative" | "clusters"
            | "tensor_maps" | "flash_attention" | "linking" | "virtual_memory" | "between_processes"
            | "graphs" | "cudnn_network" | "cufft_transforms" | "device_relay" | "curand_numbers"
            | "cusolver_systems" | "cusparse_products",
            Form::Dlopen,
        ) => false,
        // No device code of its own: how that is linked makes no difference.
        (
            "cublas_sgemm" | "cublas_lt" | "cublas_first_api" | "cusolver_multi_device",
            Form::Rdc | Form::Dlopen,
        ) => false,
        // CUDA 12 took them away.
        ("texture_references", _) => release == Release::V11_8,
        // cooperative_groups.h needs libcu++, which Debian's CUDA 11.8 does not bring.
        // Tensor maps came with CUDA 12.
        ("cooperative" | "clusters" | "tensor_maps" | "flash_attention", _) => release != Release::V11_8,
        _ => true,
    }
}

impl Form {
    pub fn name(self) -> &'static str {
        match self {
            Form::Static => "static",
            Form::Shared => "shared",
            Form::Rdc => "rdc",
            Form::PerThread => "per-thread",
            Form::Dlopen => "dlopen",
            Form::Plugin => "plugin",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Form::Static => &[],
            Form::Shared => &["-cudart", "shared"],
            Form::Rdc => &["-rdc=true", "-DEXAMPLE_RDC"],
            Form::PerThread => &["--default-stream", "per-thread"],
            Form::Dlopen => &["-cudart", "none", "-DEXAMPLE_DLOPEN"],
            Form::Plugin => &["-shared", "-Xcompiler", "-fPIC", "-Dmain=plugin_main"],
        }
    }
}

/// Whether a run has this form of an example: the first that the example exists in, plugins, and of the others a third, so that each
/// form has some examples in each run.
fn is_drawn(name: &str, form: Form, release: Release, drawn: Option<u64>) -> bool {
    let place_of = |form: Form| FORMS.iter().position(|other| *other == form).unwrap_or_default();
    let first = FORMS.iter().find(|form| exists(name, **form, release));
    let nth = place_of(form) + NAMES.iter().position(|other| *other == name).unwrap_or_default();
    first == Some(&form)
        || form == Form::Plugin
        || drawn.is_none_or(|seed| (seed % 3 + nth as u64).is_multiple_of(3))
}

/// Builds all forms of all examples with one nvcc, or those that a seed draws, and runs each, on as many cores as there are.
pub fn matrix(
    toolchain: &Toolchain,
    installed: &Installed,
    filter: &[String],
    drawn: Option<u64>,
    report: &mut Report,
) {
    // Images of an older build of the translator must not answer for this one.
    let cache = out_dir().join("image-cache");
    let _ = fs::remove_dir_all(&cache);
    if let Some(seed) = drawn {
        println!(
            "a third of the forms beyond nvcc's default: EXAMPLES_SEED={seed}; --all and --only examples take all"
        );
    }
    let mut jobs = Vec::new();
    for form in FORMS {
        for name in NAMES {
            if !exists(name, *form, toolchain.release) || !is_drawn(name, *form, toolchain.release, drawn) {
                continue;
            }
            let label = format!("{}/{}/{name}", toolchain.release.version(), form.name());
            if filter.is_empty() || filter.iter().any(|part| label.contains(part.as_str())) {
                jobs.push((*form, *name, label));
            }
        }
    }
    let report = Mutex::new(report);
    on_cores(jobs, |(form, name, label)| {
        let note =
            |label: &str, outcome: Result<()>| report.lock().expect("no worker panics").note(label, outcome);
        let program = match build(toolchain, form, name, installed).context("building it") {
            Ok(program) => program,
            Err(error) => return note(&label, Err(error)),
        };
        let run = || command(form, &program, installed).env("CUDAWAY_CACHE_DIR", &cache);
        note(&label, check(name, run()));
        // The reference and the vector code of the CPU device, on the same programs.
        if form == Form::Static {
            for setting in ["lane", "simd"] {
                let outcome = check(name, run().env("CUDAWAY_CPU_SETTING", setting));
                note(&format!("{label}, setting {setting}"), outcome);
            }
        }
    });
}

/// One program's run: it passes, and both streams hold the program's own words and nothing else.
pub fn check(name: &str, run: Run) -> Result<()> {
    let ended = run.run()?;
    ensure!(ended.passed(), "{}", ended.describe());
    ensure!(ended.stderr.is_empty(), "stderr is not the program's own:\n{}", ended.describe());
    let expected = setup::root().join("examples/expected").join(format!("{name}.txt"));
    if expected.exists() {
        let expected = fs::read_to_string(&expected)?;
        if let Some(difference) = difference(&ended.stdout, &expected) {
            bail!("stdout is not the program's own: {difference}");
        }
    }
    Ok(())
}

/// How a user starts a program of this form.
pub fn command(form: Form, program: &Path, installed: &Installed) -> Run {
    match form {
        Form::Dlopen => installed.found(program),
        Form::Plugin => {
            let host = program.with_file_name("plugin_host");
            installed.preloaded(host).arg(program)
        }
        _ => installed.preloaded(program),
    }
}

/// The first line in which `got` is not `expected`; `<any>` stands for any one word, such as a measured time.
fn difference(got: &str, expected: &str) -> Option<String> {
    let (got_lines, expected_lines): (Vec<&str>, Vec<&str>) =
        (got.split('\n').collect(), expected.split('\n').collect());
    for at in 0..got_lines.len().max(expected_lines.len()) {
        let (got, expected) = (got_lines.get(at), expected_lines.get(at));
        let same = match (got, expected) {
            (Some(got), Some(expected)) if expected.contains("<any>") => {
                let (got, expected): (Vec<&str>, Vec<&str>) =
                    (got.split(' ').collect(), expected.split(' ').collect());
                got.len() == expected.len()
                    && got
                        .iter()
                        .zip(&expected)
                        .all(|(got, expected)| *expected == "<any>" || got == expected)
            }
            _ => got == expected,
        };
        if !same {
            return Some(format!("line {} is {:?}, expected {:?}", at + 1, got, expected));
        }
    }
    None
}

fn out_dir() -> PathBuf {
    setup::root().join("target/examples")
}

/// Builds one example in one form and returns the program; nothing is done when nothing changed.
pub fn build(toolchain: &Toolchain, form: Form, name: &str, installed: &Installed) -> Result<PathBuf> {
    let build = Build {
        toolchain,
        form,
        name,
        installed,
        dir: out_dir().join(toolchain.release.version()).join(form.name()),
    };
    let program = build.dir.join(name);
    let stamp = build.dir.join(format!("{name}.stamp"));
    let fingerprint = build.fingerprint()?;
    if program.exists() && fs::read_to_string(&stamp).is_ok_and(|text| text == fingerprint) {
        return Ok(program);
    }
    fs::create_dir_all(&build.dir)?;
    let _ = fs::remove_file(&stamp);
    build.program(&program)?;
    fs::write(&stamp, fingerprint)?;
    Ok(program)
}

struct Build<'a> {
    toolchain: &'a Toolchain,
    form: Form,
    name: &'a str,
    /// What `-lcuda` is where the toolkit has no stub.
    installed: &'a Installed,
    dir: PathBuf,
}

impl Build<'_> {
    /// The sources, this file and the compiler: what the program depends on.
    fn fingerprint(&self) -> Result<String> {
        let mut hasher = DefaultHasher::new();
        include_str!("examples.rs").hash(&mut hasher);
        self.toolchain.dir.hash(&mut hasher);
        for dir in ["examples", "examples/parts"] {
            let mut files: Vec<PathBuf> = fs::read_dir(setup::root().join(dir))?
                .map(|entry| Ok(entry?.path()))
                .collect::<Result<_>>()?;
            files.sort();
            for file in files.iter().filter(|file| file.is_file()) {
                // Only this example's own files and the shared headers.
                let stem = file.file_stem().unwrap_or_default().to_string_lossy();
                if dir.ends_with("parts")
                    || stem == self.name
                    || file.extension().is_some_and(|ext| ext == "h")
                {
                    fs::read(file)?.hash(&mut hasher);
                }
            }
        }
        Ok(format!("{:016x}\n", hasher.finish()))
    }

    fn source(&self, file: &str) -> PathBuf {
        setup::root().join("examples").join(file)
    }

    /// A file beside the program that belongs to it alone.
    fn part(&self, suffix: &str) -> PathBuf {
        self.dir.join(format!("{}{suffix}", self.name))
    }

    fn nvcc(&self) -> Command {
        let mut command = self.toolchain.nvcc();
        command.arg("-I").arg(setup::root().join("examples"));
        // Debian's CUDA 12.4 comes without libcu++; the newest release's serves it too.
        if self.toolchain.release == Release::V12_4
            && let Ok(newest) = Release::V13_5.get()
        {
            command.arg("-isystem").arg(newest.dir.join("include/cccl"));
        }
        command
    }

    fn program(&self, program: &Path) -> Result<()> {
        let mut inputs = Vec::new();
        let mut libraries: Vec<String> = Vec::new();
        match self.name {
            "vector_add_driver" => {
                let ptx = self.part(".ptx");
                quiet(
                    self.nvcc().arg("-ptx").arg("-o").arg(ptx).arg(self.source("parts/vector_add_kernel.cu")),
                )?;
                if self.form != Form::Dlopen {
                    libraries =
                        vec!["-L".to_owned(), self.stub()?.display().to_string(), "-lcuda".to_owned()];
                }
            }
            "constant_and_globals" if self.form == Form::Rdc => {
                inputs.push(self.source("parts/second_unit.cu"))
            }
            "linking" | "textures_driver" | "virtual_memory" => {
                libraries = vec!["-L".to_owned(), self.stub()?.display().to_string(), "-lcuda".to_owned()];
            }
            "cublas_sgemm" | "cublas_lt" | "cublas_first_api" => {
                self.toolchain.with_cublas()?;
                libraries = vec!["-L".to_owned(), self.stub()?.display().to_string(), "-lcublas".to_owned()];
                libraries.push("-lcublasLt".to_owned());
            }
            "cufft_transforms" => {
                self.toolchain.with_cufft()?;
                // Each release has a library of its own.
                let soname = match self.toolchain.release {
                    Release::V11_8 => "libcufft.so.10",
                    Release::V12_4 => "libcufft.so.11",
                    Release::V13_5 => "libcufft.so.12",
                };
                let library = self.installed.lib().join(soname);
                libraries = vec!["-Xlinker".to_owned(), library.display().to_string()];
            }
            "cudnn_network" => {
                self.toolchain.with_cudnn()?;
                // The older two have cuDNN 8's headers, as programs of their time.
                let soname = match self.toolchain.release {
                    Release::V11_8 | Release::V12_4 => "libcudnn.so.8",
                    Release::V13_5 => "libcudnn.so.9",
                };
                let library = self.installed.lib().join(soname);
                libraries = vec!["-Xlinker".to_owned(), library.display().to_string()];
            }
            "curand_numbers" => {
                self.toolchain.with_curand()?;
                libraries = vec![format!("-L{}", self.installed.lib().display()), "-lcurand".to_owned()];
            }
            "cusolver_systems" | "cusolver_multi_device" => {
                self.toolchain.with_cusolver()?;
                let stem = if self.name == "cusolver_systems" { "libcusolver" } else { "libcusolverMg" };
                let number = match self.toolchain.release {
                    Release::V11_8 | Release::V12_4 => 11,
                    Release::V13_5 => 12,
                };
                let library = self.installed.lib().join(format!("{stem}.so.{number}"));
                libraries = vec!["-Xlinker".to_owned(), library.display().to_string()];
            }
            "cusparse_products" => {
                self.toolchain.with_cusparse()?;
                let soname = match self.toolchain.release {
                    Release::V11_8 => "libcusparse.so.11",
                    Release::V12_4 | Release::V13_5 => "libcusparse.so.12",
                };
                let library = self.installed.lib().join(soname);
                libraries = vec!["-Xlinker".to_owned(), library.display().to_string()];
            }
            "mixed_units" => inputs.push(self.machine_code_unit()?),
            "error_paths" => {
                for arch in ["75", "80"] {
                    inputs.push(if self.form == Form::Dlopen {
                        self.sass_image(arch)?
                    } else {
                        self.sass_object(arch)?
                    });
                }
            }
            _ => {}
        }
        let source = self.source(&format!("{}.cu", self.name));
        if self.form == Form::Plugin {
            // Under a name of its own first: another worker may run the host that is there.
            let (host, made) = (self.dir.join("plugin_host"), self.part(".plugin_host"));
            let code = setup::root().join("crates/testkit/programs/plugin_host.c");
            quiet(Command::new("gcc").arg("-O1").arg("-o").arg(&made).arg(code).arg("-ldl"))?;
            fs::rename(made, host)?;
        }
        let mut link = self.nvcc();
        link.args(self.form.flags()).args(architectures(self.name)).arg("-o").arg(program);
        if self.form == Form::Dlopen {
            if self.name != "vector_add_driver" {
                inputs.push(self.device_half(&source)?);
            }
            let object = self.part(".host.o");
            quiet(
                self.nvcc().args(self.form.flags()).args(["-c", "-x", "c++", "-o"]).arg(&object).arg(&source),
            )?;
            inputs.push(object);
            link.args(["-ldl", "-lpthread"]);
        } else {
            inputs.push(source);
        }
        quiet(link.args(&inputs).args(&libraries))
    }

    /// The device half of a program that has no runtime: PTX text, or a fat binary for one of them, as a C array.
    fn device_half(&self, source: &Path) -> Result<PathBuf> {
        let (option, suffix) =
            if self.name == "matmul_tiled" { ("-fatbin", ".fatbin") } else { ("-ptx", ".ptx") };
        let image = self.part(suffix);
        quiet(self.nvcc().arg(option).arg("-DEXAMPLE_PTX").arg("-o").arg(&image).arg(source))?;
        self.embed(&image, "example_image")
    }

    /// An image for one architecture, without PTX, as a C array.
    fn sass_image(&self, arch: &str) -> Result<PathBuf> {
        let image = self.part(&format!(".sm_{arch}.fatbin"));
        quiet(self.sass(arch).arg("-fatbin").arg("-o").arg(&image))?;
        self.embed(&image, &format!("sass_{arch}"))
    }

    /// A runtime program's unit with a kernel for one architecture, without PTX.
    fn sass_object(&self, arch: &str) -> Result<PathBuf> {
        let object = self.part(&format!(".sm_{arch}.o"));
        quiet(self.sass(arch).arg("-c").arg("-o").arg(&object))?;
        Ok(object)
    }

    /// A relocatable unit for one architecture, without PTX.
    fn machine_code_unit(&self) -> Result<PathBuf> {
        let object = self.part(".unit.o");
        let mut command = self.nvcc();
        command.args(["-rdc=true", "-gencode=arch=compute_80,code=sm_80", "-c", "-o"]);
        quiet(command.arg(&object).arg(self.source("parts/machine_code_unit.cu")))?;
        Ok(object)
    }

    fn sass(&self, arch: &str) -> Command {
        let mut command = self.nvcc();
        command
            .arg(format!("-gencode=arch=compute_{arch},code=sm_{arch}"))
            .arg(format!("-DSASS_ARCH={arch}"));
        command.arg(self.source("parts/sass_only.cu"));
        command
    }

    /// bin2c, the toolkit's own way to put a file into a program.
    fn embed(&self, file: &Path, symbol: &str) -> Result<PathBuf> {
        let mut bin2c = self.toolchain.tool("bin2c");
        let made =
            bin2c.args(["--const", "--padd", "0", "--name", symbol]).arg(file).output().context("bin2c")?;
        ensure!(made.status.success(), "bin2c: {}", String::from_utf8_lossy(&made.stderr));
        let (source, object) = (self.part(&format!(".{symbol}.c")), self.part(&format!(".{symbol}.o")));
        fs::write(&source, made.stdout)?;
        quiet(self.nvcc().arg("-c").arg("-o").arg(&object).arg(source))?;
        Ok(object)
    }

    /// Where `-lcuda` is: the toolkit's link stub where it has one, else our own library, which answers to the same names.
    fn stub(&self) -> Result<PathBuf> {
        let stubs = self.toolchain.dir.join("lib/stubs");
        let dir = if stubs.exists() { stubs } else { self.installed.lib().to_path_buf() };
        ensure!(dir.join("libcuda.so").exists(), "there is no libcuda to link against: cargo xtask build");
        Ok(dir)
    }
}

/// What an example is compiled for, where nvcc's default does not do.
fn architectures(name: &str) -> &'static [&'static str] {
    match name {
        "clusters" | "tensor_maps" => &["-gencode=arch=compute_90,code=compute_90"],
        "flash_attention" => &["-gencode=arch=compute_90a,code=compute_90a"],
        // The device linker joins machine code; ours joins the PTX beside it.
        "mixed_units" => &["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_80,code=compute_80"],
        _ => &[],
    }
}

/// Runs a compiler; it speaks only when it fails.
pub fn quiet(command: &mut Command) -> Result<()> {
    let out = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        bail!("{command:?}\n{said}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FORMS, Form, NAMES, PLUGINS, Release, difference, exists, is_drawn};

    #[test]
    fn each_run_has_all_examples_and_forms_and_three_seeds_have_everything() {
        let release = Release::V13_5;
        let all: Vec<(&str, Form)> = NAMES
            .iter()
            .flat_map(|name| FORMS.iter().map(|form| (*name, *form)))
            .filter(|(name, form)| exists(name, *form, release))
            .collect();
        let drawn_by = |seed: u64| {
            let is_drawn = |it: &&(&str, Form)| is_drawn(it.0, it.1, release, Some(seed));
            all.iter().filter(is_drawn).copied().collect::<Vec<_>>()
        };
        for seed in 5..8 {
            let drawn = drawn_by(seed);
            assert!(all.iter().all(|(name, _)| drawn.iter().any(|(other, _)| other == name)), "{seed}");
            for form in FORMS {
                let n_drawn = drawn.iter().filter(|(_, other)| other == form).count();
                assert!(n_drawn >= PLUGINS.len(), "{seed}: {n_drawn} of {}", form.name());
            }
            assert!(drawn.len() * 3 < all.len() * 2, "{seed}: {} of {}", drawn.len(), all.len());
        }
        assert!(all.iter().all(|it| (5..8).any(|seed| drawn_by(seed).contains(it))));
    }

    #[test]
    fn any_stands_for_one_word_and_everything_else_is_compared_to_the_byte() {
        assert_eq!(difference("took 1.5 ms\nPASSED\n", "took <any> ms\nPASSED\n"), None);
        assert!(difference("took 1.5 s\nPASSED\n", "took <any> ms\nPASSED\n").is_some());
        assert!(difference("PASSED\n\n", "PASSED\n").is_some());
        assert!(difference("warning\nPASSED\n", "PASSED\n").is_some());
    }
}
