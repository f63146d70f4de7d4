//! AMD GPUs and ROCm, as the user that the program runs as sees them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::subject::Subject;

pub fn check(subject: &Subject) -> Vec<Finding> {
    let mut findings = vec![kfd(subject)];
    findings.extend(render(subject));
    let config = subject.config();
    let named = config.rocm_root.as_deref();
    for root in config::rocm_roots(named, |name| subject.believed(name).map(Into::into)) {
        if let Ok(version) = std::fs::read_to_string(subject.path(&root.join(".info/version"))) {
            findings
                .push(Finding::fine("device.rocm", format!("ROCm {} in {}", version.trim(), root.display())));
        }
    }
    if let Some(named) = named.filter(|named| !subject.path(named).exists()) {
        findings.push(Finding::fault(
            "device.root",
            format!("CUDAWAY_ROCM_ROOT is {}, which is not there", named.display()),
            "a folder that is named is the only one that is looked into",
            "unset CUDAWAY_ROCM_ROOT, or correct it",
        ));
    }
    for name in ["HSA_OVERRIDE_GFX_VERSION", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"] {
        if let Some(value) = subject.variable(name) {
            findings.push(Finding::warning(
                "device.variable",
                format!("{name}={value}"),
                "ROCm then shows other GPUs, or says that they are others, than there are",
                format!("unset {name} unless it is meant"),
            ));
        }
    }
    findings
}

const KFD: &str = "/dev/kfd";

fn kfd(subject: &Subject) -> Finding {
    match subject.may_write(Path::new(KFD)) {
        Ok(true) => Finding::fine("device.kfd", "/dev/kfd is there and may be used"),
        Ok(false) => denied(subject, Path::new(KFD)),
        Err(_) => Finding::fine(
            "device.kfd",
            "no AMD GPU here (/dev/kfd is not there; a container needs --device /dev/kfd --device /dev/dri): the CPU is the device",
        ),
    }
}

/// The GPUs' own nodes, where there is a /dev/kfd: some may be kept from a user, not all.
fn render(subject: &Subject) -> Option<Finding> {
    subject.may_write(Path::new(KFD)).ok()?;
    let nodes = std::fs::read_dir(subject.path(Path::new("/dev/dri"))).ok()?;
    let names = nodes.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let nodes: Vec<PathBuf> = names
        .filter(|name| name.starts_with("renderD"))
        .map(|name| Path::new("/dev/dri").join(name))
        .collect();
    let may_use = |node: &PathBuf| subject.may_write(node).unwrap_or(false);
    if nodes.iter().any(may_use) {
        return None;
    }
    nodes.first().map(|node| denied(subject, node))
}

fn denied(subject: &Subject, node: &Path) -> Finding {
    let group = subject.path(node).metadata().map_or(0, |node| node.gid());
    let name = group_name(group).unwrap_or_else(|| group.to_string());
    Finding::fault(
        "device.group",
        format!("{} may be used by the group {name}, of which this user is not", node.display()),
        "ROCm then finds no GPU",
        format!("usermod -aG {name} USER, then log in again; for a service SupplementaryGroups={name}"),
    )
}

fn group_name(id: u32) -> Option<String> {
    let text = std::fs::read_to_string("/etc/group").ok()?;
    let line = text.lines().find(|line| line.split(':').nth(2) == Some(&id.to_string()))?;
    line.split(':').next().map(str::to_owned)
}
