//! What a system keeps below `share` for a program: pages for man, and what shells complete a command line by. Both are made of
//! the same description as `--help`, so they cannot say anything else.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::Arguments as Program;

/// Prints the file that a shell completes command lines of this program by.
///
/// An installation has these files already, below its folder share. Otherwise, for bash:
/// cudaway completions bash > ~/.local/share/bash-completion/completions/cudaway
#[derive(clap::Args)]
pub struct Completions {
    /// The shell that the file is for.
    shell: Shell,
}

/// Writes pages for man and files for the completion of shells, as packages lay them out.
#[derive(clap::Args)]
pub struct Share {
    /// The folder share, which is made if it is not there.
    folder: PathBuf,
}

/// Where each shell looks for what packages bring.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/cudaway"),
    (Shell::Zsh, "zsh/site-functions/_cudaway"),
    (Shell::Fish, "fish/vendor_completions.d/cudaway.fish"),
];

pub fn completions(arguments: &Completions) -> Result<()> {
    io::stdout().write_all(&completion(arguments.shell)).context("cannot write to standard output")
}

pub fn share(arguments: &Share) -> Result<()> {
    let manual = arguments.folder.join("man/man1");
    fs::create_dir_all(&manual).with_context(|| format!("cannot make {}", manual.display()))?;
    pages(&manual)?;
    for (shell, name) in COMPLETIONS {
        let at = arguments.folder.join(name);
        let folder = at.parent().context("a file lies in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&at, completion(shell)).with_context(|| format!("cannot write {}", at.display()))?;
    }
    Ok(())
}

fn completion(shell: Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Program::command(), "cudaway", &mut text);
    text
}

/// A page for the program, and one for each command, such as `cudaway-run.1`.
fn pages(folder: &Path) -> Result<()> {
    let mut program = Program::command().disable_help_subcommand(true);
    program.build();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
    for command in std::iter::once(&program).chain(commands) {
        let page = Man::new(command.clone())
            .manual("CUDAway")
            .source(concat!("cudaway ", env!("CARGO_PKG_VERSION")));
        page.generate_to(folder).with_context(|| format!("cannot write to {}", folder.display()))?;
    }
    Ok(())
}
