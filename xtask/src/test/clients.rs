//! A small check of each client of `cargo xtask clients`: our script in examples/clients, which compares what it computes with
//! NumPy, or a few of the client's own tests.

use testkit::Installed;

use super::report::{Outcome, Report};
use crate::clients::{CLIENTS, Client, at_hand, prepare, smoke};

/// Clients that are not at hand are installed only if `install`.
pub fn run(installed: &Installed, install: bool, report: &mut Report) {
    for client in CLIENTS {
        let outcome = if install || at_hand(client) {
            check(client, installed)
        } else {
            Outcome::Skipped("not installed; `cargo xtask clients` and --all do it".to_owned())
        };
        report.note(client.title, outcome);
    }
}

fn check(client: &Client, installed: &Installed) -> Outcome {
    let dir = match testkit::temporary() {
        Ok(dir) => dir,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    match prepare(client, dir.path()) {
        Ok(ready) => smoke(client, &ready, installed.lib()).into(),
        Err(error) => Outcome::Skipped(format!("it cannot be had: {error:#}")),
    }
}
