//! A process that runs: is it on our libraries, and if not, what kept it from them.

use std::path::{Path, PathBuf};

use super::elf;
use super::files;
use super::finding::Finding;
use super::subject::Subject;
use crate::own;

/// What /proc tells.
#[derive(Debug, Default)]
struct Seen {
    /// The files that are mapped; `(deleted)` behind those that are no longer there.
    mapped: Vec<String>,
    /// LD_PRELOAD, as it was started.
    preload: String,
    is_secure: bool,
    has_loader: bool,
    /// The program has device code, no symbol table, and no runtime that is known by its code.
    is_stripped: bool,
    cgroup: String,
    is_elsewhere: bool,
    /// What has a DT_RPATH that leads to a libcuda: the file, its DT_RPATH.
    rpaths: Vec<(PathBuf, String)>,
    /// Its C library, and the newest glibc node of that.
    glibc: Option<(PathBuf, (u32, u32))>,
}

pub fn check(lib: &Path, subject: &Subject, pid: u32) -> Vec<Finding> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    match look(&proc, subject) {
        Ok(seen) => older(&seen, files::needs(lib)).map_or_else(|| judge(lib, &seen), |found| vec![found]),
        Err(error) => vec![Finding::fault(
            "process.unreadable",
            format!("{}: {error}", proc.display()),
            "what is mapped into a process only its user and root may see",
            "start doctor as that user, or as root",
        )],
    }
}

fn look(proc: &Path, subject: &Subject) -> std::io::Result<Seen> {
    let maps = std::fs::read_to_string(proc.join("maps"))?;
    let mut mapped: Vec<String> =
        maps.lines().filter_map(|line| line.find('/').map(|at| line[at..].to_owned())).collect();
    mapped.sort();
    mapped.dedup();
    let program = elf::read(&proc.join("exe")).unwrap_or_default();
    let namespace = |proc: &Path| std::fs::read_link(proc.join("ns/mnt")).ok();
    let libc = mapped
        .iter()
        .find(|path| file_name(path).starts_with("libc.so.6") || file_name(path).starts_with("libc-2."));
    let glibc = libc.and_then(|path| {
        let nodes = elf::read(&subject.path(Path::new(path))).ok()?.nodes;
        Some((PathBuf::from(path), nodes.iter().filter_map(|node| elf::glibc(node)).max()?))
    });
    Ok(Seen {
        has_loader: mapped.iter().any(|path| path.contains("/ld-linux") || path.contains("/ld-musl")),
        rpaths: mapped
            .iter()
            .filter(|path| is_driver(path))
            .flat_map(|path| rpaths(&mapped, path, subject))
            .collect(),
        mapped,
        preload: subject.variable("LD_PRELOAD").unwrap_or_default().to_owned(),
        is_secure: subject.is_secure,
        is_stripped: program.has_device_code && !program.has_symbols && !is_told(&proc.join("exe")),
        cgroup: std::fs::read_to_string(proc.join("cgroup")).unwrap_or_default(),
        is_elsewhere: namespace(proc) != namespace(Path::new("/proc/self")),
        glibc,
    })
}

/// Whether the takeover knows the runtime inside a program without names.
fn is_told(program: &Path) -> bool {
    std::fs::read(program).is_ok_and(|bytes| interpose::release_without_names(&bytes).is_some())
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_driver(path: &str) -> bool {
    file_name(path).starts_with("libcuda.so")
}

/// The mapped objects whose DT_RPATH has the folder that `library` lies in.
fn rpaths(mapped: &[String], library: &str, subject: &Subject) -> Vec<(PathBuf, String)> {
    let real = |path: &Path| subject.path(path).canonicalize().ok();
    let Some(folder) = Path::new(library).parent().and_then(real) else { return Vec::new() };
    let mut found = Vec::new();
    for object in mapped.iter().map(Path::new) {
        let Some(rpath) = elf::read(&subject.path(object)).ok().and_then(|it| it.rpath) else { continue };
        let own_folder = object.parent().unwrap_or(object);
        // What is preloaded of ours leads to ours, which misleads nobody.
        if real(own_folder) == Some(folder.join("preload")) {
            continue;
        }
        let origin = own_folder.to_string_lossy();
        let mut folders =
            rpath.split(':').map(|it| it.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin));
        if folders.any(|it| real(Path::new(&it)).as_ref() == Some(&folder)) {
            found.push((object.to_path_buf(), rpath.clone()));
        }
    }
    found
}

/// Ours ask for a newer glibc than the process has: it lives in an older system than we do, and nothing else matters.
fn older(seen: &Seen, (name, needed): (String, (u32, u32))) -> Option<Finding> {
    let (path, has) = seen.glibc.as_ref().filter(|(_, has)| *has < needed)?;
    Some(Finding::fault(
        "process.glibc",
        format!(
            "{name} needs glibc {}.{}, the process has {}.{} ({})",
            needed.0,
            needed.1,
            has.0,
            has.1,
            path.display()
        ),
        "preloaded, its loader ends it before main",
        "install a release of CUDAway for that system, or run the program in a newer one",
    ))
}

fn judge(lib: &Path, seen: &Seen) -> Vec<Finding> {
    let lib = own::files(lib);
    let drivers: Vec<&String> = seen.mapped.iter().filter(|path| is_driver(path)).collect();
    let is_ours = |path: &&String| Path::new(path.trim_end_matches(" (deleted)")).starts_with(&lib);
    let mut findings = Vec::new();
    if let Some(path) = seen.mapped.iter().find(|path| is_ours(path) && path.ends_with(" (deleted)")) {
        findings.push(Finding::warning(
            "process.deleted",
            format!("{path}: the file was replaced since the process began"),
            "the process runs the old one",
            "start it again",
        ));
    }
    let theirs = drivers.iter().find(|path| !is_ours(path));
    match (drivers.iter().any(is_ours), theirs) {
        (true, None) => findings
            .push(Finding::fine("process", format!("our libcuda.so.1 is mapped, from {}", lib.display()))),
        (true, Some(path)) => findings.push(Finding::fault(
            "process.two",
            format!("ours and {path} are both mapped"),
            "which of the two answers depends on who asks",
            "start it by `cudaway run`, and leave the other one's folder out of RPATH and LD_LIBRARY_PATH",
        )),
        (false, other) => findings.push(unreached(seen, other.map(|path| path.as_str()))),
    }
    let refusing = seen.mapped.iter().filter(|path| is_ours(path) && own::refuses(Path::new(path)));
    findings.extend(refusing.map(|path| {
        let seen = format!("{} is mapped, which only refuses", file_name(path));
        Finding::warning("process.refused", seen, own::REFUSED_WHY, own::REFUSED_FIX)
    }));
    if seen.is_stripped {
        findings.push(Finding::warning(
            "process.stripped",
            "the program has device code, no symbol table, and no CUDA runtime that is known by its code",
            "if another CUDA runtime is linked into it, its calls cannot be led to us",
            "build it with -cudart shared, or do not strip it",
        ));
    }
    findings
}

/// Why ours is not mapped: the first reason that holds.
fn unreached(seen: &Seen, other: Option<&str>) -> Finding {
    let preload = &seen.preload;
    let fault =
        |id, seen: String, fix: &str| Finding::fault(id, seen, "the process does not use our libraries", fix);
    if !seen.has_loader {
        return fault(
            "process.static",
            "no loader runs in the process: it is linked statically".to_owned(),
            "only the programs that it starts can be reached; start those by `cudaway run`",
        );
    }
    if seen.is_secure {
        return fault(
            "process.secure",
            "it runs in secure mode (set-user-ID, set-group-ID, capabilities, or an LSM's transition): the loader ignored LD_PRELOAD and LD_LIBRARY_PATH"
                .to_owned(),
            "run it without those rights, or take them from the file: `setcap -r FILE`, `chmod u-s FILE`",
        );
    }
    if preload.contains("libcuda") {
        return fault(
            "process.preload",
            format!("LD_PRELOAD is {preload}, and nothing of it is mapped"),
            "its files are not there for this process, or for another machine; see its first lines on stderr",
        );
    }
    if let (Some(path), Some((object, rpath))) = (other, seen.rpaths.first()) {
        return fault(
            "process.rpath",
            format!(
                "its libcuda is {path}, to which DT_RPATH ({rpath}) of {} leads, before LD_LIBRARY_PATH",
                object.display()
            ),
            "start it by `cudaway run`, which beats DT_RPATH; or take that out: `patchelf --remove-rpath FILE`",
        );
    }
    if let Some(path) = other {
        return fault("process.other", format!("its libcuda is {path}"), "start it by `cudaway run`");
    }
    if let Some(service) =
        seen.cgroup.lines().find_map(|line| line.rsplit('/').next().filter(|it| it.ends_with(".service")))
    {
        return fault(
            "process.service",
            format!(
                "it is of the service {service}, whose environment has neither LD_PRELOAD nor our folder"
            ),
            "`systemctl edit` the service: ExecStart= (empty), then ExecStart=cudaway run -- PROGRAM; then daemon-reload and restart",
        );
    }
    if seen.is_elsewhere {
        return fault(
            "process.container",
            "it lives in another mount namespace (a container, a snap)".to_owned(),
            "put our folder into the container and start doctor there",
        );
    }
    fault(
        "process.environment",
        "its environment has neither LD_PRELOAD nor our folder: it was not started by `cudaway run`, or somebody cleared the environment".to_owned(),
        "start it by `cudaway run`; where the environment is cleared (sudo, env -i, a supervisor), start `cudaway run` behind that",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(seen: &Seen) -> &'static str {
        judge(Path::new("/opt/cudaway/lib"), seen)[0].id
    }

    fn seen(mapped: &[&str]) -> Seen {
        let mapped: Vec<String> = mapped.iter().map(|it| (*it).to_owned()).collect();
        Seen { mapped, has_loader: true, ..Seen::default() }
    }

    #[test]
    fn each_way_to_miss_us_has_a_name_of_its_own() {
        assert_eq!(id(&seen(&["/opt/cudaway/lib/libcuda.so.1"])), "process");
        assert_eq!(id(&seen(&["/opt/cudaway/lib/libcuda.so.1", "/usr/lib/libcuda.so.1"])), "process.two");
        assert_eq!(id(&seen(&["/opt/cudaway/lib/libcuda.so.1 (deleted)"])), "process.deleted");
        assert_eq!(id(&seen(&["/opt/app/bundle/libcuda.so.1"])), "process.other");
        assert_eq!(id(&seen(&["/lib/libc.so.6"])), "process.environment");
        assert_eq!(id(&Seen { has_loader: false, ..seen(&[]) }), "process.static");
        assert_eq!(id(&Seen { is_secure: true, ..seen(&[]) }), "process.secure");
        assert_eq!(
            id(&Seen { cgroup: "0::/system.slice/ollama.service\n".to_owned(), ..seen(&[]) }),
            "process.service"
        );
        assert_eq!(id(&Seen { is_elsewhere: true, ..seen(&[]) }), "process.container");
        let preload = "/old/libcuda.so.1".to_owned();
        assert_eq!(id(&Seen { preload, ..seen(&[]) }), "process.preload");
        let rpaths = vec![("/opt/app/program".into(), "$ORIGIN/bundle".to_owned())];
        assert_eq!(id(&Seen { rpaths, ..seen(&["/opt/app/bundle/libcuda.so.1"]) }), "process.rpath");
        let old = Seen { glibc: Some(("/lib/libc.so.6".into(), (2, 28))), ..seen(&[]) };
        assert_eq!(older(&old, ("libcuda.so.1".to_owned(), (2, 31))).unwrap().id, "process.glibc");
        assert_eq!(older(&old, ("libcuda.so.1".to_owned(), (2, 17))), None);
        let stripped = Seen { is_stripped: true, ..seen(&["/opt/cudaway/lib/libcuda.so.1"]) };
        assert_eq!(judge(Path::new("/opt/cudaway/lib"), &stripped)[1].id, "process.stripped");
    }

    #[test]
    fn a_test_is_an_ordinary_process() {
        let own = look(Path::new("/proc/self"), &Subject::of(None)).unwrap();
        assert!(own.has_loader && !own.is_secure && !own.is_elsewhere);
        assert!(own.glibc.unwrap().1 >= (2, 17));
    }
}
