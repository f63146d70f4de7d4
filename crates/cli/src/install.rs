//! `cudaway install` and `uninstall`: the tree that this program lies in, copied to its place on a system.
//!
//! Nothing is changed in place: a file is written aside and renamed over the old one, so programs that have the old one
//! mapped keep it. What was done is in `manifest.json` under the prefix, which `uninstall` undoes.

mod cdi;
mod files;
mod jupyter;
mod manifest;
mod system;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use files::Root;
use manifest::Manifest;

use crate::own;

/// Copies CUDAway to a folder, and with --system has the loader find it.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    at: Place,
    /// Every program finds CUDAway first when it asks for CUDA's libraries: an entry in /etc/ld.so.conf.d, the loader's
    /// cache, and a description for containers in /etc/cdi. The command, its manual pages and completions get links in
    /// /usr/local.
    #[arg(long)]
    system: bool,
    /// Copies nothing: Jupyter gets a kernel "Python (CUDAway)", a Python that this program starts where it lies now. It is the
    /// user's own, or with --prefix that of the environment there.
    #[arg(long, conflicts_with_all = ["system", "root"])]
    jupyter: bool,
    /// The Python of that kernel; it needs ipykernel.
    #[arg(long, requires = "jupyter", default_value = "python3", value_name = "PROGRAM")]
    python: OsString,
}

/// Removes what `cudaway install` put there; files that were changed since are left and named.
#[derive(clap::Args)]
pub struct Removal {
    #[command(flatten)]
    at: Place,
    /// Jupyter's kernel "Python (CUDAway)": the user's own, or with --prefix that of the environment there.
    #[arg(long, conflicts_with = "root")]
    jupyter: bool,
}

#[derive(clap::Args)]
struct Place {
    /// Where it goes [default: /opt/cudaway]
    #[arg(long)]
    prefix: Option<PathBuf>,
    /// A folder that stands for `/`: for packagers, and for systems that are not running.
    #[arg(long, default_value = "/")]
    root: PathBuf,
}

impl Place {
    fn prefix(&self) -> &Path {
        self.prefix.as_deref().unwrap_or(Path::new("/opt/cudaway"))
    }

    fn root(&self) -> Result<Root> {
        let prefix = self.prefix();
        ensure!(prefix.is_absolute(), "--prefix {} is not an absolute path", prefix.display());
        Ok(Root(std::path::absolute(&self.root)?))
    }
}

pub fn install(arguments: &Arguments) -> Result<()> {
    if arguments.jupyter {
        return jupyter::install(arguments.at.prefix.as_deref(), &arguments.python);
    }
    let root = arguments.at.root()?;
    let prefix = arguments.at.prefix();
    let tree = own_tree()?;
    ensure!(tree != root.at(prefix), "{} is where this program lies already", prefix.display());
    let before = Manifest::read(&root, prefix)?;
    let mut written = Manifest::new(arguments.system);
    let done = (|| {
        files::copy_tree(&tree, &root, prefix, &mut written)?;
        if arguments.system { system::add(&root, prefix, &mut written) } else { Ok(()) }
    })();
    // Whatever happened, what lies there now is known.
    if let Some(before) = &before {
        written.adopt_folders(before);
        match &done {
            Ok(()) => before.without(&written).remove(&root)?,
            Err(_) => written.adopt(before),
        }
    }
    written.write(&root, prefix)?;
    done?;
    let was_system = before.is_some_and(|before| before.is_system);
    if arguments.system || was_system {
        system::refresh_cache(&root)?;
    }
    println!("installed in {}; cudaway uninstall --prefix {} undoes it", prefix.display(), prefix.display());
    Ok(())
}

pub fn uninstall(arguments: &Removal) -> Result<()> {
    if arguments.jupyter {
        return jupyter::uninstall(arguments.at.prefix.as_deref());
    }
    let root = arguments.at.root()?;
    let prefix = arguments.at.prefix();
    let manifest = Manifest::read(&root, prefix)?;
    let manifest =
        manifest.with_context(|| format!("there is no {}", Manifest::path(&root, prefix).display()))?;
    manifest.remove(&root)?;
    manifest.forget(&root, prefix)?;
    if manifest.is_system {
        system::refresh_cache(&root)?;
    }
    Ok(())
}

/// The tree that this program is part of.
fn own_tree() -> Result<PathBuf> {
    let tree = own::folder()?;
    let driver = tree.join("lib/libcuda.so.1");
    ensure!(
        driver.exists(),
        "this program does not lie in a tree of CUDAway's: there is no {}",
        driver.display()
    );
    Ok(tree)
}
