//! docs/reach.md, cell by cell: by default those that need no toolchain but C's and Python, and no change of the machine's files.

use testkit::Installed;

use super::report::{Outcome, Report};
use crate::reach;

pub fn run(installed: &Installed, all: bool, report: &mut Report) {
    if !reach::has_namespaces() {
        let why = "this user may not make mount namespaces (unshare --mount)".to_owned();
        return report.note("docs/reach.md", Outcome::Skipped(why));
    }
    match reach::look(installed.lib(), !all, false) {
        Ok(found) => {
            println!("{} cells tried", found.n_cells);
            report.add(found.n_cells - found.differences.len());
            for (client, why) in found.skipped {
                report.note(&format!("reach: {client}"), Outcome::Skipped(why));
            }
            for difference in found.differences {
                report.note("reach", Outcome::Failed(difference));
            }
        }
        Err(error) => report.note("reach", Outcome::Failed(format!("{error:#}"))),
    }
}
