//! A container image (OCI image layout 1.0), written without an engine: a bare Debian 12 as one layer, CUDAway installed into it as
//! `cudaway install --system` does as the other, and the index, manifest and configuration that tell of them.
//!
//! CUDAway's layer has the same bytes for the same commit. The layer below has Debian's packages of the day.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::setup;
use crate::test::debian::bootstrapped;

const SUITE: &str = "bookworm";
const PREFIX: &str = "/opt/cudaway";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layer: its archive in the image, and the sum of what is packed in it.
struct Layer {
    blob: Value,
    diff_id: String,
    created_by: &'static str,
}

/// The image of the tree, whose parts are `trees`, as a folder and as a tar archive of it, whose path is the answer.
pub fn pack(trees: &[&Path], epoch_s: u64, is_local: bool) -> Result<PathBuf> {
    let plain = bootstrapped(SUITE, &format!("plain-{SUITE}"), &[], |_| Ok(()))?;
    let work = super::out().join("oci");
    let _ = fs::remove_dir_all(&work);
    let (image, base, union) = (work.join("image"), work.join("base"), work.join("union"));
    fs::create_dir_all(image.join("blobs/sha256"))?;
    fs::write(image.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}")?;

    setup::run(Command::new("cp").arg("--archive").arg(&plain).arg(&base))?;
    clean(&base)?;
    let lower = files(&base)?;
    // Linked, not copied: whatever is installed is written aside and renamed, so the base keeps its own.
    setup::run(Command::new("cp").args(["--archive", "--link"]).arg(&base).arg(&union))?;
    install(trees, &work.join("tree"), &union)?;
    let added: BTreeSet<PathBuf> = files(&union)?.into_iter().filter(|name| !lower.contains(name)).collect();
    // The loader's cache is of both; with it the image needs no first start.
    let upper = added.into_iter().chain([PathBuf::from("etc/ld.so.cache")]).collect();
    // What is tried once need not be small.
    let pack = |root: &Path, names: &BTreeSet<PathBuf>, created_by: &'static str| {
        layer(&image, root, names, epoch_s, if is_local { "-1" } else { "-9" }, created_by)
    };
    let layers = [
        pack(&base, &lower, "debootstrap --variant=minbase bookworm")?,
        pack(&union, &upper, "cudaway install --system")?,
    ];
    describe(&image, &layers, epoch_s)?;
    let archive = super::out().join("cudaway-oci-x86_64.tar");
    super::tar(&image, &[Path::new(".")], &archive, epoch_s)?;
    Ok(archive)
}

/// What debootstrap and apt leave for themselves, and what differs from machine to machine.
fn clean(root: &Path) -> Result<()> {
    for folder in ["var/cache/apt/archives", "var/lib/apt/lists", "var/log", "debootstrap", "tmp"] {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten() {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }?;
        }
    }
    for file in
        ["etc/resolv.conf", "etc/hostname", "etc/machine-id", "var/cache/ldconfig/aux-cache", "installed"]
    {
        let _ = fs::remove_file(root.join(file));
    }
    Ok(())
}

/// As a system gets it: the tree that an archive has, copied by its own tool.
fn install(trees: &[&Path], tree: &Path, union: &Path) -> Result<()> {
    fs::create_dir_all(tree)?;
    for part in trees {
        setup::run(Command::new("cp").args(["--archive", "--no-target-directory"]).arg(part).arg(tree))?;
    }
    // A new file, since the one of the layer below is linked.
    let cache = union.join("etc/ld.so.cache");
    fs::remove_file(&cache).with_context(|| cache.display().to_string())?;
    let mut install = Command::new(tree.join("bin/cudaway"));
    install.args(["install", "--system", "--prefix", PREFIX, "--root"]).arg(union);
    setup::run(install.stdout(std::process::Stdio::null()))?;
    // That one is for the engines of a host.
    fs::remove_dir_all(union.join("etc/cdi"))?;
    let _ = fs::remove_dir_all(union.join("var/cache/ldconfig"));
    Ok(())
}

/// Everything below a folder, folders too, by paths from it.
fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(name.clone());
            }
            found.insert(name);
        }
    }
    Ok(found)
}

fn layer(
    image: &Path,
    root: &Path,
    names: &BTreeSet<PathBuf>,
    epoch_s: u64,
    level: &str,
    created_by: &'static str,
) -> Result<Layer> {
    let tar = image.with_file_name("layer.tar");
    let names: Vec<&Path> = names.iter().map(PathBuf::as_path).collect();
    super::tar(root, &names, &tar, epoch_s)?;
    let diff_id = sum(&tar)?;
    setup::run(Command::new("gzip").args(["--force", "--no-name", level]).arg(&tar))?;
    let packed = image.with_file_name("layer.tar.gz");
    let blob = keep(image, &packed, "application/vnd.oci.image.layer.v1.tar+gzip")?;
    Ok(Layer { blob, diff_id, created_by })
}

fn describe(image: &Path, layers: &[Layer], epoch_s: u64) -> Result<()> {
    let created = setup::said(Command::new("date").args(["-u", "+%FT%TZ", "-d"]).arg(format!("@{epoch_s}")))?;
    let version = env!("CARGO_PKG_VERSION");
    let labels = json!({
        "org.opencontainers.image.title": "CUDAway",
        "org.opencontainers.image.description": "CUDA programs without an NVIDIA GPU",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    });
    let config = json!({
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Cmd": ["cudaway", "doctor"],
            "Labels": labels,
        },
        "rootfs": { "type": "layers", "diff_ids": layers.iter().map(|it| &it.diff_id).collect::<Vec<_>>() },
        "history": layers.iter().map(|it| json!({ "created": created, "created_by": it.created_by })).collect::<Vec<_>>(),
    });
    let config = keep_json(image, &config, "application/vnd.oci.image.config.v1+json")?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": layers.iter().map(|it| &it.blob).collect::<Vec<_>>(),
        "annotations": labels,
    });
    let mut manifest = keep_json(image, &manifest, MANIFEST)?;
    manifest["platform"] = json!({ "architecture": "amd64", "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": version });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    Ok(fs::write(image.join("index.json"), serde_json::to_vec(&index)?)?)
}

fn keep_json(image: &Path, value: &Value, media_type: &str) -> Result<Value> {
    let at = image.with_file_name("blob.json");
    fs::write(&at, serde_json::to_vec(value)?)?;
    keep(image, &at, media_type)
}

/// Moves a file to where its contents are its name, and describes it.
fn keep(image: &Path, from: &Path, media_type: &str) -> Result<Value> {
    let digest = sum(from)?;
    let size = from.metadata()?.len();
    let hex = digest.strip_prefix("sha256:").context("a sum")?;
    fs::rename(from, image.join("blobs/sha256").join(hex))?;
    Ok(json!({ "mediaType": media_type, "digest": digest, "size": size }))
}

fn sum(file: &Path) -> Result<String> {
    let said = setup::said(Command::new("sha256sum").arg("--binary").arg(file))?;
    let sum = said.split(' ').next().unwrap_or_default();
    ensure!(sum.len() == 64, "sha256sum said {said}");
    Ok(format!("sha256:{sum}"))
}
