//! A kernel specification: Jupyter then offers "Python (CUDAway)", a notebook's Python that is started by `cudaway run`.
//!
//! Jupyter looks in `kernels` below its data folders, of which `JUPYTER_DATA_DIR`, or `jupyter` below `XDG_DATA_HOME`, is the user's
//! own, and `share/jupyter` below an environment's prefix that environment's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;

use super::files::{self, Root};
use super::manifest::Manifest;
use crate::own;

/// The name that `jupyter run --kernel` takes.
const NAME: &str = "cudaway";

/// The folder of our specification.
pub fn folder(prefix: Option<&Path>) -> Result<PathBuf> {
    let data = match prefix {
        Some(prefix) => std::path::absolute(prefix)?.join("share/jupyter"),
        None => own_data()?,
    };
    Ok(data.join("kernels").join(NAME))
}

fn own_data() -> Result<PathBuf> {
    let set = |name: &str| config::var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("JUPYTER_DATA_DIR")
        .or_else(|| Some(set("XDG_DATA_HOME")?.join("jupyter")))
        .or_else(|| Some(set("HOME")?.join(".local/share/jupyter")));
    let data = data.context("HOME is not set; --prefix PREFIX says whose Jupyter it is for")?;
    Ok(std::path::absolute(data)?)
}

pub fn install(prefix: Option<&Path>, python: &OsStr) -> Result<()> {
    let python = interpreter(python)?;
    let program = own::folder()?.join("bin/cudaway");
    ensure!(
        program.exists(),
        "this program does not lie in a tree of CUDAway's: there is no {}",
        program.display()
    );
    let words = |path: &Path| {
        path.to_str()
            .map(str::to_owned)
            .with_context(|| format!("{} is not UTF-8, as JSON is", path.display()))
    };
    let specification = json!({
        "argv": [words(&program)?, "run", "--", words(&python)?, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python (CUDAway)",
        "language": "python",
        "metadata": { "debugger": true },
    });
    let folder = folder(prefix)?;
    let root = Root(PathBuf::from("/"));
    let before = Manifest::read(&root, &folder)?;
    let mut written = Manifest::new(false);
    let text = format!("{}\n", serde_json::to_string_pretty(&specification)?);
    let done = files::write(&root, &folder.join("kernel.json"), text.as_bytes(), 0o644, &mut written);
    if let Some(before) = &before {
        written.adopt_folders(before);
        if done.is_err() {
            written.adopt(before);
        }
    }
    written.write(&root, &folder)?;
    done?;
    let again = prefix.map(|prefix| format!(" --prefix {}", prefix.display())).unwrap_or_default();
    println!(
        "Jupyter finds the kernel {NAME}, \"Python (CUDAway)\", in {}; cudaway uninstall --jupyter{again} undoes it",
        folder.display()
    );
    Ok(())
}

pub fn uninstall(prefix: Option<&Path>) -> Result<()> {
    let (root, folder) = (Root(PathBuf::from("/")), folder(prefix)?);
    let manifest = Manifest::read(&root, &folder)?;
    let manifest =
        manifest.with_context(|| format!("there is no {}", Manifest::path(&root, &folder).display()))?;
    manifest.remove(&root)?;
    manifest.forget(&root, &folder)
}

/// The interpreter's own path, as it calls itself: a link to it may be what makes it that of an environment. A kernel without
/// ipykernel would be offered and never start.
fn interpreter(python: &OsStr) -> Result<PathBuf> {
    const ASK: &str = "import sys, importlib.util as util; \
        print(sys.executable if util.find_spec('ipykernel') else '')";
    let shown = python.to_string_lossy();
    let output = Command::new(python).args(["-c", ASK]).output();
    let output =
        output.with_context(|| format!("cannot start {shown}; --python PROGRAM names another Python"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{shown}, asked for ipykernel: {}: {}", output.status, said.trim());
    let path = String::from_utf8(output.stdout).with_context(|| format!("the path of {shown}"))?;
    let path = path.trim_end_matches('\n');
    if path.is_empty() {
        bail!(
            "{shown} has no ipykernel, by which a Python is a kernel of Jupyter's: `{shown} -m pip install ipykernel`, or --python PROGRAM for another Python"
        );
    }
    Ok(path.into())
}
