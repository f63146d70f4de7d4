//! The host side on ROCm 5.2, 5.7, 6.4 and 7.2 without the hardware: the manual's promises through a HIP library that has
//! a release's exports and layouts and looks at every argument (crates/hip-recorder), and calls of it that fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use testkit::{Installed, Run};

use super::conformance;
use super::examples::{self, Form};
use super::report::{Outcome, Report};
use crate::toolchain::Release;
use crate::{build, setup};

const RELEASES: [&str; 4] = ["5.2", "5.7", "6.4", "7.2"];

pub fn run(installed: &Installed, chapters: &[String], report: &mut Report) {
    if let Err(error) = all(installed, chapters, report) {
        report.note("ROCm's faces", Outcome::Failed(format!("{error:#}")));
    }
}

fn all(installed: &Installed, chapters: &[String], report: &mut Report) -> Result<()> {
    let archive = build::static_library("hip-recorder")?;
    // Not in the checkout: what a variable names is not opened where others may write, and a checkout may lie there.
    let folder = testkit::temporary()?;
    for release in RELEASES {
        let recorder = Recorder::link(release, &archive, folder.path(), installed)?;
        recorder.keeps_promises(installed, chapters, report)?;
        if release == "6.4" && chapters.is_empty() {
            report.note(
                "cuBLAS reaches hipBLAS on its stream and in its modes",
                recorder.reaches_hipblas(installed),
            );
            report.note(
                "cuRAND's numbers on a HIP device are the host's, or hipRAND's where that is asked for",
                recorder.makes_numbers(installed),
            );
            report.note(
                "cuSOLVER reaches hipSOLVER on its stream, with its numbers",
                recorder.reaches_hipsolver(installed),
            );
            for program in ["saxpy_streams", "graphs", "textures"] {
                let name =
                    format!("{program}: whichever HIP call fails, it gets an error and ends by itself");
                report.note(&name, recorder.survives_failures(program, installed));
            }
        }
    }
    Ok(())
}

/// cuSPARSE by hipSPARSE, for the part of its own.
pub(super) fn sparse(installed: &Installed, report: &mut Report) {
    let reaches = || {
        let archive = build::static_library("hip-recorder")?;
        let folder = testkit::temporary()?;
        Recorder::link("6.4", &archive, folder.path(), installed)?.reaches_hipsparse(installed)
    };
    report.note("cuSPARSE reaches hipSPARSE on its stream, with its numbers", reaches());
}

/// cuDNN by MIOpen, for the part of its own.
pub(super) fn dnn(installed: &Installed, report: &mut Report) {
    let reaches = || {
        let archive = build::static_library("hip-recorder")?;
        let folder = testkit::temporary()?;
        Recorder::link("6.4", &archive, folder.path(), installed)?.reaches_miopen(installed)
    };
    report.note("cuDNN reaches MIOpen on its stream, and its convolutions are MIOpen's", reaches());
}

/// The names that a release of ROCm exports.
fn exports(release: &str) -> Result<BTreeSet<String>> {
    let read = |file: &str| -> Result<BTreeSet<String>> {
        let path = setup::root().join("tools/data/hip").join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(text.split_whitespace().step_by(2).map(str::to_owned).collect())
    };
    match release {
        "7.2" => Ok(&read("hip_exports_6.4.txt")? | &read("hip_added_7.2.txt")?),
        release => read(&format!("hip_exports_{release}.txt")),
    }
}

/// crates/hip-recorder with one release's face.
pub(super) struct Recorder {
    release: &'static str,
    path: PathBuf,
    body: PathBuf,
}

impl Recorder {
    /// A GPU whose memory the host cannot read, made in a folder.
    pub(super) fn far(installed: &Installed, folder: &Path) -> Result<Recorder> {
        Recorder::link("6.4", &build::static_library("hip-recorder")?, folder, installed)
    }

    pub(super) fn on_far(&self, run: Run) -> Run {
        self.on(run).env("HIP_RECORDER_FAR", "1")
    }

    /// A version script keeps inside what the release lacks.
    fn link(release: &'static str, archive: &Path, out: &Path, installed: &Installed) -> Result<Recorder> {
        let script = out.join(format!("{release}.version"));
        let global: String = exports(release)?.iter().map(|name| format!("    {name};\n")).collect();
        fs::write(&script, format!("{{\n  global:\n{global}  local: *;\n}};\n"))?;
        let path = out.join(format!("libhip_recorder-{release}.so"));
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-o"]).arg(&path);
        cc.arg(format!("-Wl,--version-script={}", script.display()));
        cc.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive,--gc-sections");
        setup::run(cc.args(["-lgcc_s", "-lm", "-ldl", "-lpthread"]))?;
        Ok(Recorder { release, path, body: installed.lib().join("libcudaway_cpu.so") })
    }

    fn on(&self, run: Run) -> Run {
        run.env("CUDAWAY_DEVICE", &self.path).env("HIP_RECORDER_BODY", &self.body)
    }

    /// A promise is kept, or refused in the manual's words because the release lacks what it takes.
    fn keeps_promises(&self, installed: &Installed, chapters: &[String], report: &mut Report) -> Result<()> {
        let (mut n_kept, mut n_refused) = (0, 0);
        for (chapter, program) in conformance::programs(installed, chapters)? {
            for (promise, outcome) in conformance::promises(self.on(installed.found(&program?)))? {
                match outcome {
                    Outcome::Passed => n_kept += 1,
                    Outcome::Failed(why) if is_refusal(&why) => n_refused += 1,
                    Outcome::Failed(_) | Outcome::Skipped(_) => {
                        report.note(&format!("ROCm {}'s face: {chapter}: {promise}", self.release), outcome);
                    }
                }
            }
        }
        let name = format!(
            "ROCm {}'s face: {n_kept} promises kept, {n_refused} refused as not supported",
            self.release
        );
        let none = || Outcome::Failed("no promise was kept".to_owned());
        report.note(&name, if n_kept > 0 { Outcome::Passed } else { none() });
        Ok(())
    }

    /// cuBLAS on a device that is not the CPU's, with a hipBLAS that writes down its calls.
    fn reaches_hipblas(&self, installed: &Installed) -> Result<()> {
        let (source, dir) = (setup::root().join("xtask/src/test/hipblas"), testkit::temporary()?);
        let (library, program) = (dir.path().join("libhipblas.so"), dir.path().join("program"));
        setup::run(
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source.join("hipblas.c")),
        )?;
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(source.join("program.c"));
        cc.args(["libcublas.so.13", "libcuda.so.1"].map(|name| installed.lib().join(name)));
        setup::run(&mut cc)?;
        let log = dir.path().join("calls");
        let run = self.on(installed.found(&program)).env("CUDAWAY_BLAS", &library).env("HIPBLAS_LOG", &log);
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        // The handle is 7; the stream is NULL at first, which a new handle has. Modes are told once, and when they change.
        let wanted = [
            "hipblasCreate 0 0 0",
            "hipblasSetPointerMode 7 0 0",
            "hipblasSetAtomicsMode 7 0 0",
            "hipblasSdot 1 2 3",
            "hipblasSetStream 7 1 0",
            "hipblasSetPointerMode 7 1 0",
            "hipblasSdot 4 5 6",
            "hipblasSdot 7 8 9",
            "hipblasDestroy 7 0 0",
            // cuBLASXt's own handle; matrices of the host lie on the device without their padding.
            "hipblasCreate 0 0 0",
            "hipblasSetPointerMode 7 0 0",
            "hipblasSetAtomicsMode 7 0 0",
            "hipblasSgemm 2 2 2",
            "hipblasSgemm 2 2 2",
            "hipblasDestroy 7 0 0",
        ];
        let calls = fs::read_to_string(&log).context("the library's log")?;
        ensure!(calls.lines().eq(wanted), "hipBLAS was called so:\n{calls}");
        Ok(())
    }

    /// cuRAND on a device that is not the CPU's: by kernels, and by a hipRAND that writes down its calls.
    fn makes_numbers(&self, installed: &Installed) -> Result<()> {
        let (source, dir) = (setup::root().join("xtask/src/test/hiprand"), testkit::temporary()?);
        let (library, program) = (dir.path().join("libhiprand.so"), dir.path().join("program"));
        setup::run(
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source.join("hiprand.c")),
        )?;
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(source.join("program.c"));
        cc.args(["libcurand.so.10", "libcuda.so.1"].map(|name| installed.lib().join(name)));
        setup::run(&mut cc)?;

        let ended = self.on(installed.found(&program)).run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        let runs = (1..=3).map(|run| format!("run {run}: the host's\n")).collect::<String>();
        let wanted = format!(
            "words: the host's\ncaptured: 0\nwith another seed: 999\nended: 0\n{runs}wide: 0\nPASSED\n"
        );
        ensure!(ended.stdout == wanted, "kernels: {}", ended.stdout);

        let log = dir.path().join("calls");
        let named = format!("hip,{}", library.display());
        let run = self.on(installed.found(&program)).env("CUDAWAY_RAND", named).env("HIPRAND_LOG", &log);
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        // Neither graphs nor words of 64 bits of this hipRAND's: CURAND_STATUS_INTERNAL_ERROR, as for what is not supported; the capture is
        // invalid.
        ensure!(
            ended.stdout == "words: others\ncaptured: 999\nended: 901\nwide: 999\nPASSED\n",
            "hipRAND: {}",
            ended.stdout
        );
        let wanted = [
            "hiprandCreateGenerator 405 0 0",
            "hiprandSetPseudoRandomGeneratorSeed 9 42 0",
            "hiprandSetStream 9 1 0",
            "hiprandGenerate 9 1000 0",
            "hiprandSetStream 9 1 0",
            "hiprandGenerateNormalDouble 1000 3 2",
            "hiprandDestroyGenerator 9 0 0",
            "hiprandCreateGenerator 503 0 0",
            "hiprandSetStream 9 0 0",
            "hiprandDestroyGenerator 9 0 0",
        ];
        let calls = fs::read_to_string(&log).context("the library's log")?;
        ensure!(calls.lines().eq(wanted), "hipRAND was called so:\n{calls}");
        Ok(())
    }

    /// cuSOLVER on a device that is not the CPU's, with a hipSOLVER that writes down its calls.
    fn reaches_hipsolver(&self, installed: &Installed) -> Result<()> {
        let (source, dir) = (setup::root().join("xtask/src/test/hipsolver"), testkit::temporary()?);
        let (library, program) = (dir.path().join("libhipsolver.so"), dir.path().join("program"));
        setup::run(
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source.join("hipsolver.c")),
        )?;
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(source.join("program.c"));
        cc.args(["libcusolver.so.12", "libcuda.so.1"].map(|name| installed.lib().join(name)));
        setup::run(&mut cc)?;
        let log = dir.path().join("calls");
        let run =
            self.on(installed.found(&program)).env("CUDAWAY_SOLVER", &library).env("HIPSOLVER_LOG", &log);
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        // CUSOLVER_STATUS_MAPPING_ERROR is 5, where hipSOLVER's is 4; what has work for the stream is refused in a capture, which is
        // invalid then.
        let wanted = "work area: 640\nmapping error: 5\nno triangle: 3\nsweeps: 3\nsize in a capture: 0\ncaptured: 9\nended: 901\n\
                      no handle: 1\nPASSED\n";
        ensure!(ended.stdout == wanted, "{}", ended.stdout);
        let wanted = [
            "hipsolverDnCreate 0 0 0",
            "hipsolverDnSetDeterministicMode 5 241 0",
            "hipsolverDnDpotrf_bufferSize 121 4 5",
            "hipsolverDnSetStream 5 1 0",
            "hipsolverDnDpotrf 122 4 640",
            "hipsolverDnDpotrf 122 9 640",
            "hipsolverDnCreateSyevjInfo 0 0 0",
            "hipsolverDnXsyevjSetMaxSweeps 6 12 0",
            "hipsolverDnXsyevjSetSortEig 6 1 0",
            "hipsolverDnXsyevjGetSweeps 5 6 0",
            "hipsolverDnDestroySyevjInfo 6 0 0",
            "hipsolverDnDpotrf_bufferSize 121 4 5",
            "hipsolverDnDestroy 5 0 0",
        ];
        let calls = fs::read_to_string(&log).context("the library's log")?;
        ensure!(calls.lines().eq(wanted), "hipSOLVER was called so:\n{calls}");
        Ok(())
    }

    /// cuSPARSE on a device that is not the CPU's, with a hipSPARSE that writes down its calls.
    fn reaches_hipsparse(&self, installed: &Installed) -> Result<()> {
        let (source, dir) = (setup::root().join("xtask/src/test/hipsparse"), testkit::temporary()?);
        let (library, program) = (dir.path().join("libhipsparse.so"), dir.path().join("program"));
        setup::run(
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source.join("hipsparse.c")),
        )?;
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(source.join("program.c"));
        cc.args(["libcusparse.so.12", "libcuda.so.1"].map(|name| installed.lib().join(name)));
        setup::run(&mut cc)?;
        let log = dir.path().join("calls");
        let run =
            self.on(installed.found(&program)).env("CUDAWAY_SPARSE", &library).env("HIPSPARSE_LOG", &log);
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        // 10 · (1 + 2) and 10 · 3; 2/2 and 2/4; 2 + 1 + 1 products; what has work for the stream is refused in a capture, which is invalid then.
        let wanted = "work area: 640\nexecution failed: 6\nno operation: 3\nours: 30 30\nenough for our own code: 1\n\
                      no pivot: 9 in 2\nthe larger work area: 16\nwith another diagonal: 1 0.5\nfirst work area: 700\n\
                      products: 4\nsecond work area: 800\nentries: 3\nsize in a capture: 0\ncaptured: 10\nended: 901\n\
                      no handle: 1\nPASSED\n";
        ensure!(ended.stdout == wanted, "{}", ended.stdout);
        let wanted = [
            "hipsparseCreate 0 0 0",
            "hipsparseCreateCsr 2 2 1",
            "hipsparseSpMV_bufferSize 0 1 3",
            "hipsparseSetStream 5 1 0",
            "hipsparseSpMV 0 2 1",
            "hipsparseSpMV 0 9 1",
            "hipsparseSpMV 0 10 1",
            "hipsparseCreateCsrilu02Info 0 0 0",
            "hipsparseCreateMatDescr 0 0 0",
            "hipsparseSetMatFillMode 8 0 0",
            "hipsparseSetMatIndexBase 8 1 0",
            "hipsparseDcsrilu02_bufferSize 2 3 8",
            "hipsparseDcsrilu02_analysis 2 3 1",
            "hipsparseXcsrilu02_zeroPivot 5 9 0",
            "hipsparseDestroyCsrilu02Info 9 0 0",
            "hipsparseDestroyMatDescr 8 0 0",
            "hipsparseSpSV_createDescr 0 0 0",
            "hipsparseCreateCsr 2 2 1",
            "hipsparseSpSV_bufferSize 0 1 10",
            "hipsparseSpSV_analysis 0 10 1",
            "hipsparseSpSV_solve 0 2 10",
            "hipsparseSpSV_solve 0 2 10",
            "hipsparseSpSV_destroyDescr 10 0 0",
            "hipsparseDestroySpMat 6 0 0",
            "hipsparseSpGEMM_createDescr 0 0 0",
            "hipsparseCreateCsr 2 2 1",
            "hipsparseCreateCsr 2 2 1",
            "hipsparseCreateCsr 2 2 1",
            "hipsparseSpGEMM_workEstimation 0 11 0",
            "hipsparseSpGEMM_workEstimation 0 11 1",
            "hipsparseCsrSetPointers 6 0 0",
            "hipsparseSpGEMM_compute 0 11 0",
            "hipsparseSpGEMM_compute 0 11 1",
            "hipsparseSpMatGetSize 6 0 0",
            "hipsparseCsrSetPointers 6 0 0",
            "hipsparseSpGEMM_copy 0 11 0",
            "hipsparseSpGEMM_destroyDescr 11 0 0",
            "hipsparseDestroySpMat 6 0 0",
            "hipsparseDestroySpMat 6 0 0",
            "hipsparseDestroySpMat 6 0 0",
            "hipsparseSpMV_bufferSize 0 1 3",
            "hipsparseDestroySpMat 6 0 0",
            "hipsparseDestroy 5 0 0",
        ];
        let calls = fs::read_to_string(&log).context("the library's log")?;
        ensure!(calls.lines().eq(wanted), "hipSPARSE was called so:\n{calls}");
        Ok(())
    }

    /// cuDNN on a device that is not the CPU's, with a MIOpen that writes down its calls and makes plain convolutions and sums.
    fn reaches_miopen(&self, installed: &Installed) -> Result<()> {
        let (source, dir) = (setup::root().join("xtask/src/test/miopen"), testkit::temporary()?);
        let (library, program) = (dir.path().join("libMIOpen.so.1"), dir.path().join("program"));
        setup::run(
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source.join("miopen.c")),
        )?;
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(source.join("program.c"));
        cc.args(["libcudnn.so.9", "libcuda.so.1"].map(|name| installed.lib().join(name)));
        setup::run(&mut cc)?;
        let log = dir.path().join("calls");
        // The device that writes down calls runs no kernels.
        let chosen = format!("copies,{}", library.display());
        let run = self.on(installed.found(&program)).env("CUDAWAY_DNN", chosen).env("MIOPEN_LOG", &log);
        let ended = run.run()?;
        ensure!(ended.passed(), "{}", ended.describe());
        // 1·1 + 2·2 + 4·3 + 5·4 and so on; twice as much; 1·1 + 3·2 + 7·3 + 9·4 where filters are dilated; ten times what the way forward
        // left and the gradient; -(37 + 47 + 67 + 77). What has work for the stream is refused in a capture, which is invalid then.
        let wanted = "work area: 640\nMIOpen's: 37 47 67 77\nours: 74 94 134 154\nours: 64\nits work area: 0\n\
                      found: 2, the first 1 in 2.5 ms with 320 bytes\nno memory: 4004\nby what its way forward left: 42\n\
                      a graph's: -228\na node: 3000\ncaptured: 3000\nended: 901\nPASSED\n";
        ensure!(ended.stdout == wanted, "{}", ended.stdout);
        let wanted = [
            "miopenCreate 0 0 0",
            "miopenInitConvolutionNdDescriptor 2 1 0",
            "miopenSetConvolutionAttribute 1 1 0",
            "miopenConvolutionForwardGetWorkSpaceSize 2 3 2",
            "miopenSetStream 5 1 0",
            "miopenFindConvolutionForwardAlgorithm 16 640 1",
            "miopenConvolutionForward 3 320 1",
            "miopenConvolutionForward 3 320 1",
            "miopenInitConvolutionNdDescriptor 2 2 0",
            "miopenSetConvolutionAttribute 1 1 0",
            "miopenConvolutionForwardGetWorkSpaceSize 2 3 1",
            "miopenSetActivationDescriptor 2 1 1",
            "miopenActivationForward 6 1 9",
            "miopenSetNdPoolingDescriptor 0 2 1",
            "miopenSetPoolingIndexType 2 0 0",
            "miopenSetPoolingWorkSpaceIndexMode 1 0 0",
            "miopenPoolingGetWorkSpaceSizeV2 7 2 0",
            "miopenPoolingForward 1 64 1",
            "miopenPoolingBackward 2 3 64",
            // The convolution's search is the one before, by which its algorithm takes half of the memory that it was given.
            "miopenConvolutionForward 3 320 1",
            "miopenSetReduceTensorDescriptor 0 1 1",
            "miopenGetReductionWorkspaceSize 8 2 1",
            "miopenSetReduceTensorDescriptor 0 1 1",
            "miopenReduceTensor 16 1 0",
            "miopenConvolutionForward 3 320 1",
            "miopenSetReduceTensorDescriptor 0 1 1",
            "miopenGetReductionWorkspaceSize 8 2 1",
            "miopenSetReduceTensorDescriptor 0 1 1",
            "miopenReduceTensor 16 1 0",
            "miopenDestroy 5 0 0",
        ];
        let calls = fs::read_to_string(&log).context("the library's log")?;
        ensure!(calls.lines().eq(wanted), "MIOpen was called so:\n{calls}");
        Ok(())
    }

    /// Each HIP call that a program makes fails once: never a crash, a hang, or a result that is not there.
    fn survives_failures(&self, program: &str, installed: &Installed) -> Result<()> {
        let program = examples::build(&Release::V13_5.get()?, Form::Shared, program, installed)?;
        let dir = testkit::temporary()?;
        let run = || {
            let run = self.on(installed.preloaded(&program));
            run.env("CUDAWAY_CACHE_DIR", dir.path().join("images"))
        };
        let log = dir.path().join("calls");
        let whole = run().env("HIP_RECORDER_LOG", &log).run()?;
        ensure!(whole.passed(), "{}", whole.describe());
        let calls = fs::read_to_string(&log).context("the recorder's log")?;
        let calls: BTreeSet<&str> = calls.lines().filter_map(|line| line.split(' ').next()).collect();
        let mut n_failed = 0;
        for call in &calls {
            // hipErrorOutOfMemory where there is something to run out of, else hipErrorUnknown.
            let code = if call.contains("Malloc") { 2 } else { 999 };
            let ended = run().env("HIP_RECORDER_SCRIPT", format!("{call}@1={code}")).run()?;
            ensure!(ended.status.code().is_some(), "{call} fails: {}", ended.describe());
            ensure!(ended.passed() || ended.stdout.contains("FAILED"), "{call} fails: {}", ended.describe());
            n_failed += usize::from(!ended.passed());
        }
        ensure!(n_failed >= 8, "only {n_failed} of {} calls were missed: {calls:?}", calls.len());
        Ok(())
    }
}

/// CUDA's code for what a device cannot do.
fn is_refusal(why: &str) -> bool {
    let codes =
        ["NOT_SUPPORTED (801)", "NotSupported (801)", "UNSUPPORTED_LIMIT (215)", "UnsupportedLimit (215)"];
    codes.iter().any(|code| why.contains(&format!("{code}, not")))
}
