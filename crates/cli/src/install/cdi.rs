//! The description by which container engines add us to a container (Container Device Interface):
//! `podman run --device cudaway.dev/gpu=all …`, or `=cpu`.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::files::Root;

pub const PATH: &str = "/etc/cdi/cudaway.json";

pub fn spec(root: &Root, prefix: &Path) -> Result<String> {
    let lib = prefix.join("lib");
    let preloaded = loader::names::ALL.into_iter().filter(|name| loader::names::is_preloaded(name));
    let preload: Vec<String> =
        preloaded.map(|name| lib.join(name.to_string_lossy().as_ref()).display().to_string()).collect();
    let preload = preload.join(":");
    let devices = json!([
        { "name": "all", "containerEdits": { "env": ["CUDAWAY_DEVICE=auto"], "deviceNodes": gpu_nodes(root)? } },
        { "name": "cpu", "containerEdits": { "env": ["CUDAWAY_DEVICE=cpu"] } },
    ]);
    let spec = json!({
        // The oldest that has what is used here: engines refuse one that is newer than they are, such as Debian 12's podman.
        "cdiVersion": "0.3.0",
        "kind": "cudaway.dev/gpu",
        "devices": devices,
        "containerEdits": {
            "env": [format!("LD_PRELOAD={preload}")],
            "mounts": [{
                "hostPath": prefix,
                "containerPath": prefix,
                "options": ["ro", "nosuid", "nodev", "bind"],
            }],
        },
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&spec)?))
}

/// AMD's compute device and the render nodes, as far as the machine has them.
fn gpu_nodes(root: &Root) -> Result<Vec<Value>> {
    let mut paths = Vec::new();
    if root.at(Path::new("/dev/kfd")).exists() {
        paths.push("/dev/kfd".to_owned());
    }
    if let Ok(entries) = fs::read_dir(root.at(Path::new("/dev/dri"))) {
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with("renderD") {
                paths.push(format!("/dev/dri/{name}"));
            }
        }
    }
    paths.sort();
    Ok(paths.into_iter().map(|path| json!({ "path": path })).collect())
}
