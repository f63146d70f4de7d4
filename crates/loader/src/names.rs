//! Which library of ours has the place of one of NVIDIA's, told by the file's name alone.
//!
//! Exact names only: `libcuda.so`, its versions, and so on; never a prefix, which would catch `libcudnn.so.9`. No
//! allocation, so it can be asked inside a loader's callback.

#![forbid(unsafe_code)]

use core::ffi::CStr;

use crate::generated::libraries;

pub const DRIVER: &CStr = c"libcuda.so.1";
pub const NVML: &CStr = c"libnvidia-ml.so.1";
/// The newest major first: it is what a name without a version gets.
pub const RUNTIMES: [&CStr; 3] = [c"libcudart.so.13", c"libcudart.so.12", c"libcudart.so.11.0"];

/// Libraries with objects for several majors: `libcurand.so`.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// What the files' names begin with.
    pub stem: &'static [u8],
    /// The newest first: it is what a name without a version gets.
    pub files: &'static [&'static CStr],
    /// A function that no other library has.
    pub own: &'static CStr,
    /// There is a file without a version, too.
    pub is_plain: bool,
    /// It has names of another library's, or none, for who opens it by name: it is never preloaded, and `own` is empty.
    pub is_part: bool,
}

pub use libraries::{IMPLEMENTATIONS, PRELOADED, REFUSED, REFUSING, REFUSING_IMPLEMENTATION};

const RUNTIME: Family =
    Family { stem: b"libcudart.so", files: &RUNTIMES, own: c"cudaMalloc", is_plain: false, is_part: false };

/// The runtimes, and the libraries that tools/data describes.
pub fn families() -> impl Iterator<Item = &'static Family> {
    core::iter::once(&RUNTIME).chain(&libraries::FAMILIES)
}

const N_FILES: usize = {
    let (mut count, mut at) = (2 + RUNTIMES.len(), 0);
    while at < libraries::FAMILIES.len() {
        count += libraries::FAMILIES[at].files.len();
        at += 1;
    }
    count
};

/// Every object of ours with the name of one of NVIDIA's.
pub const ALL: [&CStr; N_FILES] = {
    let mut all = [DRIVER; N_FILES];
    all[1] = NVML;
    let (mut end, mut at) = (2, 0);
    while at < RUNTIMES.len() {
        all[end] = RUNTIMES[at];
        (end, at) = (end + 1, at + 1);
    }
    let mut family = 0;
    while family < libraries::FAMILIES.len() {
        let files = libraries::FAMILIES[family].files;
        let mut at = 0;
        while at < files.len() {
            all[end] = files[at];
            (end, at) = (end + 1, at + 1);
        }
        family += 1;
    }
    all
};

/// Whether programs are started with the object in front.
#[must_use]
pub fn is_preloaded(file: &CStr) -> bool {
    !families().any(|family| family.is_part && family.files.contains(&file))
}

/// Whether the library's names carry its own name as their version.
#[must_use]
pub fn has_versions(file: &CStr) -> bool {
    file != DRIVER && file != NVML
}

/// The object that a program which asks for the file `name` (no directory) gets: `libcuda.so.560.35.03` is `libcuda.so.1`.
#[must_use]
pub fn of(name: &[u8]) -> Option<&'static CStr> {
    if version(name, b"libcuda.so").is_some() {
        return Some(DRIVER);
    }
    if version(name, b"libnvidia-ml.so").is_some() {
        return Some(NVML);
    }
    let Family { stem, files, .. } = families().find(|family| version(name, family.stem).is_some())?;
    let major = version(name, stem)?.split(|&byte| byte == b'.').next().unwrap_or_default();
    let is_it = |file: &&&CStr| {
        let version = version(file.to_bytes(), stem).unwrap_or_default();
        major.is_empty() || version.split(|&byte| byte == b'.').next() == Some(major)
    };
    files.iter().find(is_it).copied()
}

/// As [`of`], of a path.
#[must_use]
pub fn of_path(path: &[u8]) -> Option<&'static CStr> {
    of(path.rsplit(|&byte| byte == b'/').next()?)
}

/// What follows `stem.` in the name, empty for the stem alone; digits and dots only.
fn version<'n>(name: &'n [u8], stem: &[u8]) -> Option<&'n [u8]> {
    let rest = name.strip_prefix(stem)?;
    if rest.is_empty() {
        return Some(rest);
    }
    let version = rest.strip_prefix(b".")?;
    let is_version = !version.is_empty() && version.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    is_version.then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_refuses_has_the_place_of_nothing_that_is_installed() {
        assert!(REFUSING.iter().all(|(file, _)| of(file.as_bytes()).is_none()), "{REFUSING:?}");
    }

    #[test]
    fn each_object_is_named_once_and_is_what_its_name_means() {
        for (at, file) in ALL.iter().enumerate() {
            assert_eq!(of(file.to_bytes()), Some(*file));
            assert!(!ALL[..at].contains(file), "{file:?}");
        }
    }

    #[test]
    fn every_name_of_a_library_is_that_library() {
        for (name, ours) in [
            ("libcuda.so", Some(DRIVER)),
            ("libcuda.so.1", Some(DRIVER)),
            ("libcuda.so.560.35.03", Some(DRIVER)),
            ("/usr/lib/wsl/lib/libcuda.so.1.1", Some(DRIVER)),
            ("libnvidia-ml.so.1", Some(NVML)),
            ("libcudart.so", Some(c"libcudart.so.13")),
            ("/usr/local/cuda/lib64/libcudart.so.12.4.127", Some(c"libcudart.so.12")),
            ("libcudart.so.11.8.89", Some(c"libcudart.so.11.0")),
            ("libcudart.so.10.2", None),
            ("libnvJitLink.so", Some(c"libnvJitLink.so.13")),
            ("/site-packages/nvidia/nvjitlink/lib/libnvJitLink.so.12", Some(c"libnvJitLink.so.12")),
            ("libnvJitLink.so.11", None),
            ("libcublas.so", Some(c"libcublas.so.13")),
            ("libcublas.so.12.4.5.8", Some(c"libcublas.so.12")),
            ("libcublasLt.so.11", Some(c"libcublasLt.so.11")),
            ("libcublas.so.10", None),
            ("libcufft.so", Some(c"libcufft.so.12")),
            ("libcufft.so.10.9.0.58", Some(c"libcufft.so.10")),
            ("libcufft.so.9", None),
            ("libcufftw.so.11", Some(c"libcufftw.so.11")),
            ("libcurand.so", Some(c"libcurand.so.10")),
            ("libcurand.so.10.3.10.19", Some(c"libcurand.so.10")),
            ("libcurand.so.11", None),
            ("libcudnn.so", Some(c"libcudnn.so.9")),
            ("libcudnn.so.8.9.7", Some(c"libcudnn.so.8")),
            ("libcudnn.so.7", None),
            ("/site-packages/nvidia/cudnn/lib/libcudnn_ops_infer.so.8", Some(c"libcudnn_ops_infer.so.8")),
            ("libcudnn_ops.so.9", Some(c"libcudnn_ops.so.9")),
            ("libcuda.so.1.bak", None),
            ("libcuda.so.", None),
            ("libcudadebugger.so.1", None),
            ("libcudart-d0da41ae.so.11.0", None),
            ("libcuda.so/x", None),
            ("", None),
        ] {
            assert_eq!(of_path(name.as_bytes()), ours, "{name}");
        }
    }
}
