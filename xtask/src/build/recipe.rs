//! How objects are compiled and linked: to be tried in this checkout, to be measured, or to be shipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use anyhow::Result;

use super::note;
use crate::dist::sysroot::Sysroot;
use crate::setup::{cargo, root};

pub struct Recipe {
    profile: Profile,
    shipped: Option<Rc<Shipped>>,
}

/// Cargo's profiles, which the checkout's Cargo.toml describes.
#[derive(Clone, Copy, PartialEq)]
pub enum Profile {
    /// Without optimisation.
    Debug,
    /// Optimised crate by crate.
    Local,
    /// Optimised across crates, which takes five times as long.
    Release,
}

/// What makes objects run on older systems, and the same bytes come out wherever they are built.
pub struct Shipped {
    pub target_dir: PathBuf,
    /// Paths of this machine, and what stands for them in the objects.
    pub remapped: Vec<(PathBuf, &'static str)>,
    pub epoch_s: u64,
    /// Their commit is written into the objects, which are linked anew for each.
    pub names_commit: bool,
    /// The oldest glibc that an object may need, by its file name.
    pub sysroot_of: Box<dyn Fn(&str) -> Sysroot>,
}

impl Recipe {
    /// Objects that run on this machine.
    pub fn here(profile: Profile) -> Recipe {
        Recipe { profile, shipped: None }
    }

    /// Objects that run on older systems too.
    pub fn shipped(shipped: Shipped, profile: Profile) -> Recipe {
        Recipe { profile, shipped: Some(Rc::new(shipped)) }
    }

    /// The same, but optimised across crates.
    pub fn across_crates(&self) -> Recipe {
        Recipe { profile: Profile::Release, shipped: self.shipped.clone() }
    }

    /// `cargo rustc` in the checkout, up to the package.
    pub fn cargo_rustc(&self) -> Command {
        let mut command = cargo();
        command.args(["rustc", "--quiet"]);
        command.args(match self.profile {
            Profile::Debug => ["--profile", "dev"],
            Profile::Local => ["--profile", "local"],
            Profile::Release => ["--profile", "release"],
        });
        let Some(shipped) = &self.shipped else { return command };
        let remaps = |flag: &str| {
            let flags = shipped.remapped.iter().map(|(from, to)| format!("{flag}={}={to}", from.display()));
            flags.collect::<Vec<_>>()
        };
        // The separator of CARGO_ENCODED_RUSTFLAGS, so that paths may have spaces.
        command.env("CARGO_ENCODED_RUSTFLAGS", remaps("--remap-path-prefix").join("\x1f"));
        let c_flags = remaps("-ffile-prefix-map").join(" ");
        command.env("CFLAGS", &c_flags).env("CXXFLAGS", &c_flags);
        command.env("CARGO_TARGET_DIR", &shipped.target_dir).env("CARGO_INCREMENTAL", "0");
        command.env("SOURCE_DATE_EPOCH", shipped.epoch_s.to_string());
        command
    }

    /// rustc's arguments about the linking of one object or program, beyond its own.
    pub fn link_arguments(&self, name: &str) -> Result<Vec<String>> {
        let names_commit = self.shipped.as_ref().is_some_and(|shipped| shipped.names_commit);
        let mut arguments = vec![format!("link-arg={}", in_tree(&note::object(names_commit)?))];
        if let Some(shipped) = &self.shipped {
            let sysroot = (shipped.sysroot_of)(name);
            arguments.push(format!("linker={}", in_tree(&sysroot.linker()?)));
            arguments.push(format!("link-arg={}", in_tree(&sysroot.newer_glibc()?)));
        }
        Ok(arguments)
    }
}

/// A file of the checkout, for rustc, which runs in it. Its arguments are part of the names in the object, where a checkout
/// elsewhere must not show.
pub fn in_tree(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
