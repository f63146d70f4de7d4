//! Whether a program would get us: what its file says, and what its own loader answers when it is asked.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::EM_X86_64;

use super::plan::Plan;
use super::target::Image;
use crate::own;

/// What stands in the way.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// It would run without us.
    Unreached(String),
    /// It would load a file in place of this library of ours.
    Past(&'static CStr, String),
    /// Some of its calls would come to us.
    Partly(String),
    /// Calls of this library's would come to us, and be refused.
    Refused(String),
}
use Finding::{Partly, Past, Refused, Unreached};

impl Finding {
    pub fn past(&self) -> Option<&'static CStr> {
        if let Past(ours, _) = self { Some(*ours) } else { None }
    }

    /// Whether the program is reached all the same.
    pub fn leaves_us(&self) -> bool {
        matches!(self, Partly(_) | Refused(_))
    }

    pub fn why(&self) -> &str {
        let (Unreached(why) | Past(_, why) | Partly(why) | Refused(why)) = self;
        why
    }
}

pub fn check(image: &Image, plan: &Plan) -> Vec<Finding> {
    let path = image.path.display();
    if let Some(why) = image.secure {
        return vec![Unreached(format!(
            "{path} is {why}: the loader ignores LD_PRELOAD and LD_LIBRARY_PATH there. If it starts another program \
             (sudo, su), start `cudaway run` by it"
        ))];
    }
    if !image.is_64 {
        return vec![Unreached(format!("{path} is a 32-bit program; our libraries have 64 bits"))];
    }
    if image.machine != EM_X86_64 {
        return vec![Unreached(format!("{path} is for another processor (ELF machine {})", image.machine.0))];
    }
    let Some(interpreter) = &image.interpreter else {
        if is_loader(&image.path) {
            return vec![Partly(format!("{path} is the loader itself; what it starts was not looked at"))];
        }
        return vec![Unreached(format!(
            "{path} is linked statically: no loader runs in it, so nothing can be put before it. Programs that it \
             starts are reached (--force)"
        ))];
    };
    if interpreter.to_string_lossy().contains("ld-musl") {
        return vec![Unreached(format!("{path} uses the C library musl; our libraries need glibc"))];
    }
    let mut findings = ask(interpreter, image, plan);
    if image.is_stripped_with_device_code {
        findings.push(Partly(format!(
            "{path} is stripped: if the CUDA runtime is linked into it, its calls cannot be led to us \
             (build with -cudart shared, or do not strip)"
        )));
    }
    findings
}

fn is_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-2.")
}

/// The program's loader lists what it would load, and runs nothing.
fn ask(interpreter: &Path, image: &Image, plan: &Plan) -> Vec<Finding> {
    let mut command = Command::new(interpreter);
    // `$ORIGIN` is of the file that is run, not of a link to it; told a path, the loader takes the path's.
    let path = image.path.canonicalize().unwrap_or_else(|_| image.path.clone());
    command.arg("--list").arg(path).envs(plan.variables.iter().map(|(name, value)| (name, value)));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return vec![Unreached(format!("its loader {}: {error}", interpreter.display()))],
    };
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    judge(&listed(&said(&output.stdout)), &said(&output.stderr), plan)
}

/// A library as the loader lists it: the name that was asked for, and the file, if there is one.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    name: String,
    file: Option<PathBuf>,
}

/// `\tlibm.so.6 => /lib/libm.so.6 (0x…)`, `\t/lib/ld.so (0x…)`, `\tlibx.so => not found`
fn listed(text: &str) -> Vec<Listed> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('\t'));
    lines
        .map(|line| {
            let (name, file) = line.split_once(" => ").unwrap_or((line, line));
            let place = file.rsplit_once(" (0x").map(|(file, _)| file);
            let name = name.rsplit_once(" (0x").map_or(name, |(name, _)| name);
            Listed { name: name.to_owned(), file: place.map(PathBuf::from) }
        })
        .collect()
}

fn judge(listed: &[Listed], complaints: &str, plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A version of glibc that is too old for us, a library that the program itself lacks.
    let complaint = complaints.lines().find(|line| {
        line.contains("cannot be preloaded")
            || plan.preload.iter().any(|it| line.contains(&*it.to_string_lossy()))
            || listed.is_empty()
    });
    if let Some(complaint) = complaint {
        findings.push(Unreached(format!("its loader says: {}", complaint.trim())));
    }
    let same = |a: &Path, b: &Path| {
        a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
    };
    for ours in &plan.preload {
        if findings.is_empty()
            && !listed.iter().any(|it| it.file.as_deref().is_some_and(|file| same(file, ours)))
        {
            findings.push(Unreached(format!("its loader does not take {}", ours.display())));
        }
    }
    for library in listed {
        let Some(file) = &library.file else { continue };
        let is_ours = plan.preload.iter().any(|ours| same(ours, file));
        let named = |path: &Path| loader::names::of_path(path.as_os_str().as_encoded_bytes());
        // A stub of ours is listed by the path it claims and the file it is.
        let is_claim = plan.preload.iter().any(|ours| ours.parent().is_some_and(|it| file.starts_with(it)));
        let Some(ours) = named(Path::new(&library.name)).or_else(|| named(file)) else { continue };
        if is_ours || is_claim {
            continue;
        }
        findings.push(Past(
            ours,
            format!(
                "it would load {} past us, as {}: try --audit, or --claim {}",
                file.display(),
                library.name,
                library.name
            ),
        ));
    }
    let refused = listed.iter().filter(|it| it.file.as_deref().is_some_and(own::refuses));
    findings.extend(
        refused.map(|library| Refused(format!("it would load {}, which only refuses", library.name))),
    );
    for library in listed.iter().filter(|it| it.file.is_none() && it.name.contains(".so")) {
        findings.push(Partly(format!("its loader does not find {}", library.name)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(preload: &[&str]) -> Plan {
        let preload = preload.iter().map(PathBuf::from).collect();
        Plan { preload, parts: Vec::new(), unclaimed: None, variables: Vec::new() }
    }

    const LISTED: &str = "\tlinux-vdso.so.1 (0x00007ffd)\n\t/opt/c/lib/libcuda.so.1 (0x00007f01)\n\
        \tlibc.so.6 => /lib/libc.so.6 (0x00007f02)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n";

    #[test]
    fn what_the_file_alone_tells_needs_no_loader() {
        let image = |path: &str, interpreter: Option<&str>, secure| Image {
            path: path.into(),
            machine: EM_X86_64,
            is_64: true,
            interpreter: interpreter.map(PathBuf::from),
            secure,
            is_stripped_with_device_code: false,
        };
        let (glibc, musl) = (Some("/no/such/ld-linux-x86-64.so.2"), Some("/lib/ld-musl-x86_64.so.1"));
        for (image, words) in [
            (image("/bin/su", glibc, Some("set-user-ID")), "set-user-ID"),
            (image("/bin/busybox", musl, None), "musl"),
            (image("/bin/busybox", None, None), "statically"),
            (image("/bin/x", glibc, None), "its loader /no/such"),
        ] {
            let findings = check(&image, &plan(&[]));
            assert!(matches!(&findings[..], [Unreached(why)] if why.contains(words)), "{findings:?}");
        }
        let loader = image("/lib64/ld-linux-x86-64.so.2", None, None);
        assert!(matches!(&check(&loader, &plan(&[]))[..], [Partly(_)]));
    }

    #[test]
    fn libraries_of_ours_that_refuse_are_told_and_others_of_their_names_are_not() {
        let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in ["libnccl.so.2", "libcudaway_refused.so", "libother.so.2"] {
            std::fs::write(ours.path().join(file), "").unwrap();
        }
        std::fs::write(theirs.path().join("libcufile.so.0"), "").unwrap();
        let line =
            |folder: &Path, name: &str| format!("\t{name} => {} (0x00007f04)\n", folder.join(name).display());
        let text = [
            LISTED.to_owned(),
            line(ours.path(), "libnccl.so.2"),
            line(ours.path(), "libother.so.2"),
            line(theirs.path(), "libcufile.so.0"),
        ]
        .concat();
        let found = judge(&listed(&text), "", &plan(&["/opt/c/lib/libcuda.so.1"]));
        assert!(matches!(&found[..], [Refused(why)] if why.contains("libnccl.so.2")), "{found:?}");
        assert!(found[0].leaves_us());
    }

    #[test]
    fn a_list_with_ours_in_it_is_fine() {
        assert_eq!(judge(&listed(LISTED), "", &plan(&["/opt/c/lib/libcuda.so.1"])), []);
    }

    #[test]
    fn a_list_without_ours_is_not() {
        let findings = judge(&listed(LISTED), "", &plan(&["/opt/d/lib/libcuda.so.1"]));
        assert!(
            matches!(&findings[0], Unreached(why) if why.contains("does not take /opt/d")),
            "{findings:?}"
        );
    }

    #[test]
    fn what_the_loader_says_of_ours_is_handed_on() {
        let said =
            "/bin/x: /lib/libc.so.6: version `GLIBC_2.34' not found (required by /opt/c/lib/libcuda.so.1)\n";
        let findings = judge(&[], said, &plan(&["/opt/c/lib/libcuda.so.1"]));
        assert_eq!(findings.len(), 1);
        assert!(matches!(&findings[0], Unreached(why) if why.contains("GLIBC_2.34")), "{findings:?}");
    }

    #[test]
    fn a_program_that_cannot_start_at_all_is_told_so() {
        let said = "x: error while loading shared libraries: libjli.so: cannot open shared object file\n";
        let findings = judge(&[], said, &plan(&["/opt/c/lib/libcuda.so.1"]));
        assert!(matches!(&findings[..], [Unreached(why)] if why.contains("libjli.so")), "{findings:?}");
    }

    #[test]
    fn a_bundled_copy_that_the_loader_prefers_is_named() {
        let list =
            format!("{LISTED}\t/app/libcuda.so.1 => /app/libcuda.so.1 (0x1)\n\tlibx.so.2 => not found\n");
        let findings = judge(&listed(&list), "", &plan(&["/opt/c/lib/libcuda.so.1"]));
        assert!(
            matches!(&findings[0], Past(ours, why) if *ours == loader::names::DRIVER && why.contains("--claim /app/libcuda.so.1")),
            "{findings:?}"
        );
        assert!(matches!(&findings[1], Partly(why) if why.contains("libx.so.2")), "{findings:?}");
    }
}
