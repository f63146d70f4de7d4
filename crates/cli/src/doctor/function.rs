//! A kernel, from its text to its result, in a process of its own; NVML's word on the same device; and the cache.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use cache::trusted::Folder;
use libloading::Library;

use super::finding::Finding;
use super::subject::Subject;

const PTX: &CStr = c".version 6.0
.target sm_50
.address_size 64
.visible .entry answer(.param .u64 p)
{
    .reg .u64 %a;
    .reg .u32 %x;
    ld.param.u64 %a, [p];
    mov.u32 %x, %ntid.x;
    mul.lo.u32 %x, %x, 42;
    st.global.u32 [%a], %x;
    ret;
}
";

/// Whether compiled kernels can be kept.
pub fn cache(subject: &Subject) -> Finding {
    if subject.is_secure {
        return Finding::fine(
            "cache",
            "a program with more rights than its user keeps no compiled kernels".to_owned(),
        );
    }
    let Some(folder) = subject.config().cache_dir else {
        return Finding::warning(
            "cache",
            "there is no folder for compiled kernels",
            "every process compiles them anew",
            "set CUDAWAY_CACHE_DIR",
        );
    };
    if let Err(error) = Folder::open_for(subject.viewer(), &folder)
        && error.is_distrust()
    {
        return Finding::warning(
            "cache.untrusted",
            error.to_string(),
            "what lies there is run, and somebody else could have put it there: it is not used, so every process compiles its \
             kernels anew",
            "remove it, so that it is made anew for this user alone, or set CUDAWAY_CACHE_DIR",
        );
    }
    let written =
        if subject.is_another_user() { may_keep(subject, &folder) } else { keep(&subject.path(&folder)) };
    match written {
        Ok(()) => Finding::fine("cache", format!("compiled kernels are kept in {}", folder.display())),
        Err(error) => Finding::warning(
            "cache.unwritable",
            format!("{}: {error}", folder.display()),
            "every process compiles its kernels anew",
            format!(
                "chown it to this user, or set CUDAWAY_CACHE_DIR; a service needs ReadWritePaths={}",
                folder.display()
            ),
        ),
    }
}

/// Whether the caches that are only read may be read; nothing of those that are not there.
pub fn shipped_caches(subject: &Subject) -> Vec<Finding> {
    let folders =
        if subject.is_secure { vec![config::SYSTEM_CACHE.into()] } else { subject.config().cache_path };
    let finding = |folder: std::path::PathBuf| match Folder::open_for(subject.viewer(), &folder) {
        Ok(_) => Some(Finding::fine(
            "cache.shipped",
            format!("compiled kernels are read from {} too", folder.display()),
        )),
        Err(error) if error.is_distrust() => Some(Finding::warning(
            "cache.shipped.untrusted",
            error.to_string(),
            "what lies there is run, and somebody else could have put it there: it is not used",
            "have it belong to root, writable by nobody else (chown -R root:root, chmod -R go-w)",
        )),
        Err(_) => None,
    };
    folders.into_iter().filter_map(finding).collect()
}

fn keep(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".doctor.{}", std::process::id()));
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let written = made.and_then(|()| std::fs::write(&probe, "x"));
    _ = std::fs::remove_file(&probe);
    written
}

/// Without trying: a file of ours would be in its user's way. The folder, or what it would be made in, must take files.
fn may_keep(subject: &Subject, folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|folder| subject.path(folder).exists()).unwrap_or(Path::new("/"));
    if subject.is_read_only(there) || !subject.may_write(there)? {
        return Err(io::Error::other(format!("its user may not write to {}", there.display())));
    }
    Ok(())
}

/// What of a process's environment decides on its devices.
const DECISIVE: [&str; 6] = ["CUDAWAY_", "CUDA_VISIBLE", "HIP_", "HSA_", "ROCM_", "ROCR_"];

/// Starts ourselves, as the subject was started: what a driver does to a process stays there.
pub fn end_to_end(lib: &Path, subject: &Subject) -> Result<Finding> {
    let own = std::env::current_exe().context("where this program lies")?;
    let log = tempfile::NamedTempFile::new().context("a file for the log")?;
    let mut command = Command::new(own);
    command.args(["doctor", "--self-test", "--lib"]).arg(lib);
    let theirs = subject.environment().iter();
    command.envs(theirs.filter(|(name, _)| DECISIVE.iter().any(|it| name.starts_with(it))).cloned());
    command.env("CUDAWAY_LOG", "warn").env("CUDAWAY_LOG_FILE", log.path()).env_remove("CUDAWAY_TRACE");
    let output = command.output().context("doctor --self-test")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(Finding::fine("kernel", said));
    }
    let log = std::fs::read_to_string(log.path()).unwrap_or_default();
    let seen = if said.is_empty() { format!("the test ended with {}", output.status) } else { said };
    Ok(if seen.starts_with("cuInit") {
        Finding::fault(
            "device.provider",
            seen,
            format!("no device, no CUDA. The log: {}", log.trim()),
            "CUDAWAY_DEVICE=cpu works everywhere; for a GPU the log says what its library lacks",
        )
    } else {
        Finding::fault(
            "kernel",
            seen,
            format!("the same happens to programs. The log: {}", log.trim()),
            "CUDAWAY_LOG=debug tells more",
        )
    })
}

/// What the process that was started does.
pub fn test_here(lib: &Path) -> ExitCode {
    match open(lib, loader::names::DRIVER)
        .and_then(|cuda| kernel(&cuda))
        .and_then(|said| Ok(format!("{said}; {}", nvml(lib)?)))
    {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Calls a name of a library's with these argument types; anything but 0 is an error with the name.
macro_rules! call {
    ($library:expr, $name:ident($($value:expr => $type:ty),* $(,)?)) => {{
        // SAFETY: the name has this type in CUDA's ABI; pointers are to locals of ours that are large enough.
        let code = unsafe {
            match $library.get::<unsafe extern "C" fn($($type),*) -> c_int>(stringify!($name)) {
                Ok(function) => function($($value),*),
                Err(error) => return Err(format!("{}: {error}", stringify!($name))),
            }
        };
        if code != 0 {
            return Err(format!("{} answers {code}", stringify!($name)));
        }
    }};
}

fn open(lib: &Path, name: &CStr) -> Result<Library, String> {
    let path = lib.join(name.to_string_lossy().as_ref());
    // SAFETY: our own library.
    unsafe { Library::new(&path) }.map_err(|error| format!("{}: {error}", path.display()))
}

/// Runs a kernel by a driver's API; what to say of it.
pub fn kernel(cuda: &Library) -> Result<String, String> {
    let (mut device, mut name) = (0 as c_int, [0 as c_char; 128]);
    let mut handles: [*mut c_void; 3] = [core::ptr::null_mut(); 3];
    let (mut address, mut answer) = (0u64, 0u32);
    call!(cuda, cuInit(0 => c_uint));
    call!(cuda, cuDeviceGet(&mut device => *mut c_int, 0 => c_int));
    call!(cuda, cuDeviceGetName(name.as_mut_ptr() => *mut c_char, 128 => c_int, device => c_int));
    call!(cuda, cuDevicePrimaryCtxRetain(&mut handles[0] => *mut *mut c_void, device => c_int));
    call!(cuda, cuCtxSetCurrent(handles[0] => *mut c_void));
    call!(cuda, cuModuleLoadData(&mut handles[1] => *mut *mut c_void, PTX.as_ptr() => *const c_char));
    call!(cuda, cuModuleGetFunction(&mut handles[2] => *mut *mut c_void, handles[1] => *mut c_void, c"answer".as_ptr() => *const c_char));
    call!(cuda, cuMemAlloc_v2(&mut address => *mut u64, 4 => usize));
    let mut parameters: [*mut c_void; 1] = [(&raw mut address).cast()];
    call!(cuda, cuLaunchKernel(
        handles[2] => *mut c_void, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint,
        0 => c_uint, core::ptr::null_mut() => *mut c_void, parameters.as_mut_ptr() => *mut *mut c_void,
        core::ptr::null_mut() => *mut *mut c_void,
    ));
    call!(cuda, cuCtxSynchronize());
    call!(cuda, cuMemcpyDtoH_v2(&mut answer => *mut u32, address => u64, 4 => usize));
    if answer != 42 {
        return Err(format!("the kernel's answer is {answer}, not 42"));
    }
    // SAFETY: the driver ends the name with a zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(format!("a kernel ran on {name} and its answer is right"))
}

/// NVML must speak of the same device.
fn nvml(lib: &Path) -> Result<String, String> {
    let cuda = open(lib, loader::names::DRIVER)?;
    let nvml = open(lib, loader::names::NVML)?;
    let mut uuid = [0u8; 16];
    let (mut handle, mut text, mut version) =
        (core::ptr::null_mut::<c_void>(), [0 as c_char; 96], [0 as c_char; 80]);
    call!(cuda, cuDeviceGetUuid_v2(uuid.as_mut_ptr() => *mut u8, 0 => c_int));
    call!(nvml, nvmlInit_v2());
    call!(nvml, nvmlDeviceGetHandleByIndex_v2(0 => c_uint, &mut handle => *mut *mut c_void));
    call!(nvml, nvmlDeviceGetUUID(handle => *mut c_void, text.as_mut_ptr() => *mut c_char, 96 => c_uint));
    call!(nvml, nvmlSystemGetDriverVersion(version.as_mut_ptr() => *mut c_char, 80 => c_uint));
    let string = |text: &[c_char]| -> String {
        text.iter().map(|c| char::from(c.cast_unsigned())).take_while(|&c| c != '\0').collect()
    };
    let cudas: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    if string(&text).trim_start_matches("GPU-").replace('-', "") != cudas {
        return Err(format!("NVML's device is {}, CUDA's is {cudas}", string(&text)));
    }
    Ok(format!("NVML names the same device, driver {}", string(&version)))
}
