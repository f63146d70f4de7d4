//! Runs every value row of `tests/run` through a CUDA driver, NVIDIA's where there is one, and prints what docs/accuracy.md
//! wants to know: device, driver, rows that agree, and each that does not. With `--cases`, what tests launched instead
//! (`harness::cases`).
//!
//! `cargo run -p hip-cpu --example rows_on_cuda [-- libcuda.so.1]`

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};

use clap::Parser;
use cuda_abi::{
    CUfunction_attribute, CUjit_option, CUlaunchAttribute, CUlaunchAttributeID,
    CUlaunchAttributeValue_union__bindgen_ty_1, CUlaunchConfig,
};
use hip_cpu::harness::cases::{Argument, Case};
use hip_cpu::harness::{self, rows};
use libloading::Library;

#[derive(clap::Parser)]
struct Options {
    #[arg(default_value = "libcuda.so.1")]
    driver: String,
    /// Where `tests/run` is, or the folder that CASES named.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The folder has cases.
    #[arg(long, requires = "folder")]
    cases: bool,
    /// Only each so manieth file, from which on: `3/8` is for the fourth of eight processes. A fault ends all that a process can do.
    #[arg(long, value_parser = part)]
    part: Option<(usize, usize)>,
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let part = text.split_once('/').and_then(|(nth, of)| Some((nth.parse().ok()?, of.parse().ok()?)));
    part.filter(|(nth, of)| nth < of).ok_or_else(|| "not a number, a slash and a greater one".to_owned())
}

/// A driver's functions are `extern "C"` and give 0 for success.
struct Driver(Library);

macro_rules! call {
    ($driver:expr, $name:ident($($value:expr => $ty:ty),* $(,)?)) => {{
        // SAFETY: the name has this signature in every CUDA driver, and the pointers below are to live variables.
        let status = unsafe {
            match $driver.0.get::<unsafe extern "C" fn($($ty),*) -> c_int>(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(function) => function($($value),*),
                Err(error) => return Err(error.to_string()),
            }
        };
        if status != 0 {
            return Err(format!("{} gives error {status}", stringify!($name)));
        }
    }};
}

type Handle = *mut c_void;

impl Driver {
    /// Makes a context; the device's name and the driver's version.
    fn start(&self) -> Result<String, String> {
        let (mut device, mut version) = (0, 0);
        let mut name = [0u8; 256];
        call!(self, cuInit(0 => c_uint));
        call!(self, cuDriverGetVersion(&mut version => *mut c_int));
        call!(self, cuDeviceGet(&mut device => *mut c_int, 0 => c_int));
        call!(self, cuDeviceGetName(name.as_mut_ptr().cast() => *mut c_char, 256 => c_int, device => c_int));
        let mut context: Handle = std::ptr::null_mut();
        call!(self, cuCtxCreate_v2(&mut context => *mut Handle, 0 => c_uint, device => c_int));
        let name = CStr::from_bytes_until_nul(&name).map_err(|error| error.to_string())?;
        Ok(format!("{}, CUDA {}.{}", name.to_string_lossy(), version / 1000, version % 1000 / 10))
    }

    /// Loads a text; an error is what the driver's compiler says.
    fn load(&self, image: &CStr) -> Result<Handle, String> {
        let mut module: Handle = std::ptr::null_mut();
        let mut log = vec![0u8; 4096];
        let mut options =
            [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut::<c_void>(log.len() - 1)];
        let done = self.load_into(&mut module, image, &mut options, &mut values);
        let said = CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().replace('\n', "; "));
        done.map_err(|error| format!("{error}: {}", said.unwrap_or_default()))?;
        Ok(module)
    }

    fn load_into(
        &self,
        module: &mut Handle,
        image: &CStr,
        options: &mut [CUjit_option],
        values: &mut [Handle],
    ) -> Result<(), String> {
        call!(self, cuModuleLoadDataEx(
            module => *mut Handle,
            image.as_ptr().cast() => *const c_void,
            options.len() as c_uint => c_uint,
            options.as_mut_ptr() => *mut CUjit_option,
            values.as_mut_ptr() => *mut Handle,
        ));
        Ok(())
    }

    /// The rows of one file, or its case.
    fn file(&self, name: &str, text: &str, is_case: bool, report: &mut Report) -> Result<(), String> {
        if is_case { self.kept(name, text, report) } else { self.rows(name, text, report) }
    }

    fn kept(&self, name: &str, text: &str, report: &mut Report) -> Result<(), String> {
        let different = self.case(text)?;
        different.iter().for_each(|line| println!("{name}: {line}"));
        if different.is_empty() {
            report.agree += 1
        } else {
            report.differ += 1
        }
        Ok(())
    }

    fn rows(&self, name: &str, text: &str, report: &mut Report) -> Result<(), String> {
        let program = harness::load(text).map_err(|error| error.to_string())?;
        let image = CString::new(text).map_err(|error| error.to_string())?;
        for row in rows::parse(text)? {
            let kernel = program.kernel(&row.kernel).ok_or_else(|| format!("no kernel {}", row.kernel))?;
            let sizes: Vec<usize> = kernel.params.iter().map(|param| param.bytes as usize).collect();
            // Each row finds the module's variables as they were written.
            let module = self.load(&image)?;
            let found = self.row(module, &row, &sizes)?;
            call!(self, cuModuleUnload(module => Handle));
            let mut at = 0;
            let mut agrees = true;
            for (index, wanted) in row.results.iter().enumerate() {
                let got = &found[at..at + wanted.bytes()];
                at += wanted.bytes();
                if !wanted.matches(got) {
                    agrees = false;
                    let call = format!("{}({})", row.kernel, row.arguments.join(", "));
                    println!(
                        "{name}:{}: {call}, result {index}: {}, not {wanted:?}",
                        row.line,
                        wanted.show(got)
                    );
                }
            }
            if agrees { report.agree += 1 } else { report.differ += 1 }
        }
        Ok(())
    }

    fn row(&self, module: Handle, row: &rows::Row, sizes: &[usize]) -> Result<Vec<u8>, String> {
        let name = CString::new(row.kernel.as_str()).map_err(|error| error.to_string())?;
        let mut function: Handle = std::ptr::null_mut();
        call!(self, cuModuleGetFunction(
            &mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char,
        ));
        let bytes: usize = row.results.iter().map(|result| result.bytes()).sum();
        let mut found = vec![0xa5u8; bytes.max(1)];
        let mut memory = 0u64;
        call!(self, cuMemAlloc_v2(&mut memory => *mut u64, found.len() => usize));
        call!(self, cuMemcpyHtoD_v2(memory => u64, found.as_ptr().cast() => *const c_void, found.len() => usize));
        let mut values = vec![memory.to_le_bytes().to_vec()];
        for (text, bytes) in row.arguments.iter().zip(&sizes[1..]) {
            values.push(rows::argument(text, *bytes).ok_or_else(|| format!("argument {text}"))?);
        }
        self.launch(function, &row.how, &mut values)?;
        call!(self, cuMemcpyDtoH_v2(found.as_mut_ptr().cast() => *mut c_void, memory => u64, found.len() => usize));
        call!(self, cuMemFree_v2(memory => u64));
        Ok(found)
    }

    /// Launches a function and waits for it.
    fn launch(&self, function: Handle, how: &rows::Shape, values: &mut [Vec<u8>]) -> Result<(), String> {
        let mut pointers: Vec<Handle> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz], [x, y, z]) = (how.grid, how.block, how.cluster);
        let mut attributes = vec![];
        if how.cluster != [1; 3] {
            // More than 8 blocks are not on every GPU, and have to be asked for.
            let non_portable = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED.0;
            call!(self, cuFuncSetAttribute(
                function => Handle, non_portable as c_int => c_int, (x * y * z > 8).into() => c_int,
            ));
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
            let mut attribute = CUlaunchAttribute { id, ..Default::default() };
            attribute.value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            attributes.push(attribute);
        }
        if how.cooperative {
            let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            let mut attribute = CUlaunchAttribute { id, ..Default::default() };
            attribute.value.cooperative = 1;
            attributes.push(attribute);
        }
        let config = CUlaunchConfig {
            gridDimX: gx,
            gridDimY: gy,
            gridDimZ: gz,
            blockDimX: bx,
            blockDimY: by,
            blockDimZ: bz,
            sharedMemBytes: how.dynamic_shared,
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as c_uint,
            ..Default::default()
        };
        call!(self, cuLaunchKernelEx(
            &raw const config => *const CUlaunchConfig,
            function => Handle,
            pointers.as_mut_ptr() => *mut Handle,
            std::ptr::null_mut() => *mut Handle,
        ));
        call!(self, cuCtxSynchronize());
        Ok(())
    }

    /// A case, in the current context: what its buffers have that they had not on our device.
    fn case(&self, text: &str) -> Result<Vec<String>, String> {
        let Case { kernel, shape, arguments } = Case::read(text).ok_or("not a case")?;
        let image = CString::new(text).map_err(|error| error.to_string())?;
        let name = CString::new(kernel).map_err(|error| error.to_string())?;
        let module = self.load(&image)?;
        let mut function: Handle = std::ptr::null_mut();
        call!(self, cuModuleGetFunction(
            &mut function => *mut Handle, module => Handle, name.as_ptr() => *const c_char,
        ));
        if shape.dynamic_shared > 48 << 10 {
            let most = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.0;
            call!(self, cuFuncSetAttribute(
                function => Handle, most as c_int => c_int, shape.dynamic_shared as c_int => c_int,
            ));
        }
        let mut values = vec![];
        for argument in &arguments {
            values.push(match argument {
                Argument::Value(bytes) => bytes.clone(),
                Argument::Buffer { before, .. } => {
                    let mut memory = 0u64;
                    call!(self, cuMemAlloc_v2(&mut memory => *mut u64, before.len().max(1) => usize));
                    call!(self, cuMemcpyHtoD_v2(
                        memory => u64, before.as_ptr().cast() => *const c_void, before.len() => usize,
                    ));
                    memory.to_le_bytes().to_vec()
                }
            });
        }
        self.launch(function, &shape, &mut values)?;
        let mut different = vec![];
        for (index, (argument, value)) in arguments.iter().zip(&values).enumerate() {
            let Argument::Buffer { after, .. } = argument else { continue };
            let memory =
                u64::from_le_bytes(value.as_slice().try_into().map_err(|_| "a pointer has 8 bytes")?);
            let mut found = vec![0u8; after.len()];
            call!(self, cuMemcpyDtoH_v2(
                found.as_mut_ptr().cast() => *mut c_void, memory => u64, found.len() => usize,
            ));
            call!(self, cuMemFree_v2(memory => u64));
            different.extend(differences(index, &found, after));
        }
        call!(self, cuModuleUnload(module => Handle));
        Ok(different)
    }
}

/// Where a buffer has other bytes: the first eight words of them, and how many there are.
fn differences(index: usize, found: &[u8], ours: &[u8]) -> Option<String> {
    let words = |bytes: &[u8]| bytes.chunks(4).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (found, ours) = (words(found), words(ours));
    let places: Vec<usize> = (0..ours.len()).filter(|&at| found[at] != ours[at]).collect();
    let shown = |word: &[u8]| word.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>();
    let first = places.iter().take(8);
    let first: Vec<String> =
        first.map(|&at| format!("word {at} {} not {}", shown(&found[at]), shown(&ours[at]))).collect();
    (!places.is_empty())
        .then(|| format!("buffer {index}, {} of {} words: {}", places.len(), ours.len(), first.join(", ")))
}

#[derive(Default)]
struct Report {
    agree: u32,
    differ: u32,
    files_not_run: u32,
}

fn ptx_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            ptx_files(&path, files);
        } else if path.extension().is_some_and(|it| it == "ptx") {
            files.push(path);
        }
    }
}

fn main() -> Result<(), String> {
    let options = Options::parse();
    // SAFETY: a CUDA driver's constructors may run in any process.
    let driver = Driver(unsafe { Library::new(&options.driver) }.map_err(|error| error.to_string())?);
    println!("{}", driver.start()?);
    let folder =
        options.folder.clone().unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/run"));
    let mut files = vec![];
    ptx_files(&folder, &mut files);
    files.sort();
    let (nth, of) = options.part.unwrap_or((0, 1));
    let mut report = Report::default();
    for path in files.iter().skip(nth).step_by(of) {
        let name = path.strip_prefix(&folder).unwrap_or(path).display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
        if let Err(error) = driver.file(&name, &text, options.cases, &mut report) {
            println!("{name}: {error}");
            report.files_not_run += 1;
        }
    }
    println!(
        "{} rows agree, {} differ, {} files ended early",
        report.agree, report.differ, report.files_not_run
    );
    if report.agree == 0 || report.differ + report.files_not_run > 0 {
        return Err("not every row agrees".to_owned());
    }
    Ok(())
}
