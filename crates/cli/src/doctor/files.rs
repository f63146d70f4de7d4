//! Our files: there, whole, and such as the loader takes them for NVIDIA's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::elf::{self, Library, Unfit};
use super::finding::Finding;

/// A library of ours: its file below `lib`, the version node that its names are on, and other names of it.
struct Shipped {
    name: String,
    node: Option<String>,
    links: Vec<String>,
}

fn shipped() -> Vec<Shipped> {
    let with_plain = [loader::names::DRIVER, loader::names::NVML];
    let objects = loader::names::ALL.iter().map(|file| {
        let name = file.to_string_lossy().into_owned();
        let family = loader::names::families().find(|family| family.files[0] == *file && family.is_plain);
        let plain = with_plain.contains(file) || family.is_some();
        let (stem, _) = name.split_once(".so").unwrap_or((&name, ""));
        let links = if plain { vec![format!("{stem}.so")] } else { Vec::new() };
        Shipped { node: loader::names::has_versions(file).then(|| name.clone()), links, name }
    });
    let implementations = ["libcudaway_cudart.so", "libcudaway_cpu.so"].into_iter();
    let implementations = implementations.chain(loader::names::IMPLEMENTATIONS);
    let implementations =
        implementations.map(|name| Shipped { name: name.to_owned(), node: None, links: Vec::new() });
    // What `cudaway run` preloads: the links there are names that the loader gives the object.
    let several = loader::names::PRELOADED.iter().map(|(runtime, links)| Shipped {
        name: format!("preload/{runtime}"),
        node: Some((*runtime).to_owned()),
        links: links.iter().map(|link| (*link).to_owned()).collect(),
    });
    let refusing = loader::names::REFUSING.iter().map(|(file, node)| (*file, Some((*node).to_owned())));
    let refusing = refusing.chain([(loader::names::REFUSING_IMPLEMENTATION, None)]);
    let refusing = refusing.map(|(file, node)| Shipped {
        name: format!("{}/{file}", loader::names::REFUSED),
        node,
        links: Vec::new(),
    });
    objects.chain(implementations).chain(several).chain(refusing).collect()
}

const REINSTALL: &str = "install CUDAway again into this folder";

pub fn check(lib: &Path) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for shipped in &shipped() {
        let path = lib.join(&shipped.name);
        match elf::read(&path) {
            Ok(library) => findings.extend(judge(shipped, &library)),
            Err(unfit) => findings.push(refuse(&path, unfit)),
        }
        findings.extend(shipped.links.iter().filter_map(|link| check_link(&path, link)));
        findings.extend(writable(&path));
    }
    if findings.is_empty() {
        findings.push(Finding::fine(
            "files",
            format!("{} has all our libraries, as they must be", lib.display()),
        ));
    }
    findings
}

/// Of a tree that came without its links and can have none: one finding in place of one for each.
pub fn tell_of_links(findings: &mut Vec<Finding>, why: &str) {
    findings.retain(|finding| finding.id != "files.link");
    findings.push(Finding::warning(
        "files.links",
        format!("our folder came without its links, as a Python wheel does, and none can be made: {why}"),
        "programs that ask for a library without a version in its name do not find ours by LD_LIBRARY_PATH alone, every program starts more slowly, and none finds our ptxas and nvcc",
        "set CUDAWAY_CACHE_DIR to a folder that only this user can write",
    ));
}

fn refuse(path: &Path, unfit: Unfit) -> Finding {
    let shown = path.display();
    match unfit {
        Unfit::Unreadable(why) => Finding::fault(
            "files.missing",
            format!("{shown}: {why}"),
            "programs ask for it by this name; what is not there is looked for elsewhere, or not found",
            REINSTALL,
        ),
        Unfit::NotElf => Finding::fault(
            "files.broken",
            format!("{shown} is no library"),
            "the loader refuses it, in every program that it is preloaded into",
            REINSTALL,
        ),
        Unfit::OtherMachine => Finding::fault(
            "files.machine",
            format!("{shown} is for another processor, or for 32 bits"),
            "the loader passes over it without a word and goes on to the next library of that name",
            "install the x86_64 build",
        ),
    }
}

fn judge(shipped: &Shipped, library: &Library) -> Vec<Finding> {
    let mut findings = Vec::new();
    let name = &shipped.name;
    if library.soname.as_deref() != name.rsplit('/').next() {
        findings.push(Finding::fault(
            "files.soname",
            format!("{name} calls itself {}", library.soname.as_deref().unwrap_or("nothing")),
            "the loader compares what programs ask for with this name; with another one a second library is loaded beside ours",
            REINSTALL,
        ));
    }
    if let Some(node) = &shipped.node
        && !library.nodes.iter().any(|it| it == node)
    {
        findings.push(Finding::fault(
            "files.node",
            format!("{name} does not have the version node {node}, but {:?}", library.nodes),
            "programs linked against NVIDIA's runtime ask for its names on this node; the loader ends them otherwise",
            REINSTALL,
        ));
    }
    let here = system_glibc();
    if library.glibc > here {
        findings.push(Finding::fault(
            "files.glibc",
            format!(
                "{name} needs glibc {}.{}, this system has {}.{}",
                library.glibc.0, library.glibc.1, here.0, here.1
            ),
            "preloaded, it keeps every program from starting",
            "install a release of CUDAway for this system, or a newer system",
        ));
    }
    findings
}

/// The one of ours that asks for the newest glibc, and for which.
pub fn needs(lib: &Path) -> (String, (u32, u32)) {
    let read = |shipped: &Shipped| elf::read(&lib.join(&shipped.name)).ok().map(|it| it.glibc);
    let needs = shipped().into_iter().filter_map(|shipped| Some((read(&shipped)?, shipped.name)));
    let needs = needs.map(|(glibc, name)| (name, glibc));
    needs.max_by_key(|(_, glibc)| *glibc).unwrap_or_default()
}

fn system_glibc() -> (u32, u32) {
    // SAFETY: it gives a string that lives as long as the process.
    let version = unsafe { core::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    elf::glibc(&version.to_string_lossy()).unwrap_or((u32::MAX, 0))
}

/// `libcuda.so` must lead to our `libcuda.so.1` beside it.
fn check_link(file: &Path, link: &str) -> Option<Finding> {
    let at = file.with_file_name(link);
    let wanted = file.canonicalize().ok()?;
    let seen = match at.canonicalize() {
        Ok(found) if found == wanted => return None,
        Ok(found) => format!("{} leads to {}", at.display(), found.display()),
        Err(_) => match std::fs::read_link(&at) {
            Ok(target) => format!("{} leads to {}, which is not there", at.display(), target.display()),
            Err(_) => format!("{} is not there", at.display()),
        },
    };
    Some(Finding::fault(
        "files.link",
        seen,
        "programs that ask for this name get another library, or none",
        format!("ln -sfn {} {}", file.file_name()?.to_string_lossy(), at.display()),
    ))
}

/// Whoever may write a preloaded library may run code in every program that it is preloaded into.
fn writable(path: &Path) -> Option<Finding> {
    let mode = path.metadata().ok()?.permissions().mode();
    (mode & libc::S_IWOTH != 0).then(|| {
        Finding::warning(
            "files.writable",
            format!("everybody may write {}", path.display()),
            "whoever does runs code in every program that uses CUDA",
            format!("chmod o-w {}", path.display()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(shipped: &Shipped, library: Library) -> Vec<&'static str> {
        judge(shipped, &library).iter().map(|finding| finding.id).collect()
    }

    #[test]
    fn each_fault_of_a_library_is_told_by_its_name() {
        let all = shipped();
        let runtime = all.iter().find(|shipped| shipped.name == "libcudart.so.12").unwrap();
        let good = || Library {
            soname: Some("libcudart.so.12".to_owned()),
            nodes: vec!["libcudart.so.12".to_owned()],
            glibc: (2, 17),
            ..Library::default()
        };
        assert_eq!(ids(runtime, good()), [] as [&str; 0]);
        assert_eq!(
            ids(runtime, Library { soname: Some("libshim.so".to_owned()), ..good() }),
            ["files.soname"]
        );
        assert_eq!(ids(runtime, Library { nodes: vec!["CUDART_1.0".to_owned()], ..good() }), ["files.node"]);
        assert_eq!(ids(runtime, Library { glibc: (2, 999), ..good() }), ["files.glibc"]);
    }

    #[test]
    fn an_empty_folder_has_nothing_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        let findings = check(folder.path());
        assert_eq!(findings.len(), shipped().len());
        assert!(findings.iter().all(|finding| finding.id == "files.missing"));
    }

    #[test]
    fn a_folder_that_is_missing_is_told_file_by_file() {
        let folder = tempfile::tempdir().unwrap();
        let findings = check(folder.path());
        for name in ["preload/libcudart.so.13", "refused/libnccl.so.2", "refused/libcudaway_refused.so"] {
            let at = folder.path().join(name).display().to_string();
            assert!(findings.iter().any(|finding| finding.seen.starts_with(&at)), "{name}");
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_or_elsewhere_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("libcuda.so.1"), "").unwrap();
        std::fs::write(at("other"), "").unwrap();
        let id = || check_link(&at("libcuda.so.1"), "libcuda.so").map(|finding| finding.seen);
        assert!(id().unwrap().ends_with("is not there"));
        std::os::unix::fs::symlink("libcuda.so.535", at("libcuda.so")).unwrap();
        assert!(id().unwrap().ends_with("leads to libcuda.so.535, which is not there"));
        std::fs::remove_file(at("libcuda.so")).unwrap();
        std::os::unix::fs::symlink("other", at("libcuda.so")).unwrap();
        assert!(id().unwrap().ends_with("other"));
        std::fs::remove_file(at("libcuda.so")).unwrap();
        std::os::unix::fs::symlink("libcuda.so.1", at("libcuda.so")).unwrap();
        assert_eq!(id(), None);
    }
}
