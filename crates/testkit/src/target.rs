//! C programs for the processor that the test itself is built for, which need not be this machine's: then Cargo's linker for
//! it is a C compiler, and Cargo's runner is QEMU.

use std::path::Path;
use std::process::Command;

/// A C compiler for this test's processor.
#[must_use]
pub fn c_compiler() -> Command {
    Command::new(of_cargo("LINKER").unwrap_or_else(|| "cc".to_owned()))
}

/// The program, with variables for its loader, which QEMU's own must not see.
#[must_use]
pub fn program(path: &Path, loader: &[(&str, &str)]) -> Command {
    let Some(runner) = of_cargo("RUNNER") else {
        let mut command = Command::new(path);
        command.envs(loader.iter().copied());
        return command;
    };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    for (name, value) in loader {
        command.arg("-E").arg(format!("{name}={value}"));
    }
    command.arg(path);
    command
}

fn of_cargo(what: &str) -> Option<String> {
    let target = std::env::consts::ARCH.to_uppercase();
    std::env::var(format!("CARGO_TARGET_{target}_UNKNOWN_LINUX_GNU_{what}")).ok()
}
