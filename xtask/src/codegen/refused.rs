//! `libcudaway_refused.so`: behind the shells of libraries that CUDAway has nothing of. A call is refused, with its library's
//! status where it answers with one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::shells::HEAD;
use crate::libraries;

/// What is written by hand, in the crate itself: what gives a text or a version.
const BY_HAND: [&str; 10] = [
    "cuptiGetErrorMessage",
    "cuptiGetResultString",
    "cusparseLtGetErrorName",
    "cusparseLtGetErrorString",
    "ncclGetErrorString",
    "ncclGetLastError",
    "ncclGetVersion",
    "pncclGetErrorString",
    "pncclGetLastError",
    "pncclGetVersion",
];

/// What does not answer with its library's status: pointers, which are NULL, counts, which are 0, the numbers of processing
/// elements, which are -1 where there is none, and transfers, which give the status below zero. What gives nothing is not here.
const ANSWERS: [(&str, i32); 20] = [
    ("cuFileRead", -5007),
    ("cuFileReadv", -5007),
    ("cuFileUseCount", 0),
    ("cuFileWrite", -5007),
    ("cuFileWritev", -5007),
    ("ncclLLA2ACalcSlots", 0),
    ("ncclTeamLsa", 0),
    ("ncclTeamRail", 0),
    ("ncclTeamRankToLsa", 0),
    ("ncclTeamRankToWorld", 0),
    ("ncclTeamWorld", 0),
    ("nvshmem_align", 0),
    ("nvshmem_calloc", 0),
    ("nvshmem_malloc", 0),
    ("nvshmem_my_pe", -1),
    ("nvshmem_n_pes", -1),
    ("nvshmem_ptr", 0),
    ("nvshmemid_init_status", 0),
    ("nvshmemx_init_status", 0),
    ("nvshmemx_mc_ptr", 0),
];

/// `crates/libraries/refused/exports/src/generated/exports.rs`: the path, and the text.
pub fn exports() -> Result<(String, String)> {
    let library = libraries::named("refused");
    let mut rows = BTreeMap::new();
    for object in &library.objects {
        for name in object.names()? {
            // A profiling name of NCCL's answers as the other does.
            let plain = name.strip_prefix('p').filter(|name| name.starts_with("nccl")).unwrap_or(&name);
            let other = ANSWERS.iter().find(|(known, _)| *known == plain).map(|row| row.1);
            let answer = other.unwrap_or(i32::try_from(object.not_supported.0)?);
            rows.insert(name, (object.stem.strip_prefix("lib").context("a library")?, answer));
        }
    }
    let mut text = format!(
        "//! The exports of libcudaway_refused.so but for those that give a text or a version. {HEAD}\n\
         //! from tools/data/refused; do not edit.\n\n"
    );
    for (name, (library, answer)) in rows.iter().filter(|(name, _)| !BY_HAND.contains(&name.as_str())) {
        writeln!(text, "refuse!({name}, \"{name}\", \"{library}\", {answer});")?;
    }
    Ok(("crates/libraries/refused/exports/src/generated/exports.rs".to_owned(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that a release took away would stand here for nobody.
    #[test]
    fn each_exception_is_a_name_of_a_library() {
        let names = super::super::library::names(libraries::named("refused")).unwrap();
        for name in BY_HAND.into_iter().chain(ANSWERS.map(|row| row.0)) {
            assert!(names.contains(name), "{name}");
        }
    }
}
