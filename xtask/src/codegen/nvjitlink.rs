//! nvJitLink: the exports behind the shells `libnvJitLink.so.N`. Every release of NVIDIA's adds a name for each call,
//! `__nvJitLinkCreate_12_4`; all of them mean the same, in the result codes of their major.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::library;
use super::shells::HEAD;
use crate::libraries;

/// (call, body in crates/libraries/nvjitlink/api, parameters), from nvJitLink.h
const CALLS: [(&str, &str, &str); 16] = [
    ("Create", "create", "handle: *mut *mut c_void, count: u32, options: *const *const c_char"),
    ("Destroy", "destroy", "handle: *mut *mut c_void"),
    (
        "AddData",
        "add_data",
        "handle: *mut c_void, kind: c_int, data: *const c_void, size: usize, name: *const c_char",
    ),
    ("AddFile", "add_file", "handle: *mut c_void, kind: c_int, path: *const c_char"),
    ("Complete", "complete", "handle: *mut c_void"),
    ("GetLinkedCubinSize", "linked_cubin_size", "handle: *mut c_void, size: *mut usize"),
    ("GetLinkedCubin", "linked_cubin", "handle: *mut c_void, cubin: *mut c_void"),
    ("GetLinkedPtxSize", "not_linked_size", "handle: *mut c_void, size: *mut usize"),
    ("GetLinkedPtx", "not_linked", "handle: *mut c_void, ptx: *mut c_void"),
    ("GetLinkedLTOIRSize", "not_linked_size", "handle: *mut c_void, size: *mut usize"),
    ("GetLinkedLTOIR", "not_linked", "handle: *mut c_void, ltoir: *mut c_void"),
    ("GetErrorLogSize", "error_log_size", "handle: *mut c_void, size: *mut usize"),
    ("GetErrorLog", "error_log", "handle: *mut c_void, log: *mut c_char"),
    ("GetInfoLogSize", "info_log_size", "handle: *mut c_void, size: *mut usize"),
    ("GetInfoLog", "info_log", "handle: *mut c_void, log: *mut c_char"),
    ("Version", "version", "major: *mut c_uint, minor: *mut c_uint"),
];

/// `crates/libraries/nvjitlink/exports/src/generated/exports.rs`: the path, and the text.
pub fn exports() -> Result<(String, String)> {
    let names = library::names(libraries::named("nvJitLink"))?;
    let mut text = format!(
        "//! The {} exports of libcudaway_nvjitlink.so. {HEAD}\n//! from tools/data/nvjitlink; do not edit.\n\n\
         // SAFETY of every block here: the calls' contract makes a C caller's non-NULL pointers good for the call.\n\
         #![allow(clippy::missing_safety_doc, clippy::undocumented_unsafe_blocks)]\n\
         #![allow(non_snake_case, reason = \"C names\")]\n\n\
         use core::ffi::{{c_char, c_int, c_uint, c_void}};\n\nuse nvjitlink::Release;\n",
        names.len()
    );
    for name in &names {
        let call = name.trim_start_matches("__").strip_prefix("nvJitLink").with_context(|| name.clone())?;
        let (call, release) = match call.split_once('_') {
            Some((call, release)) if release.starts_with("13") => (call, "V13"),
            Some((call, _)) => (call, "V12"),
            None => (call, "V12"),
        };
        let row = CALLS.iter().find(|row| row.0 == call);
        let (_, body, params) = row.with_context(|| format!("no body for {name}"))?;
        let arguments = params.split(", ").filter_map(|param| param.split_once(':')).map(|(name, _)| name);
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        writeln!(
            text,
            "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}({params}) -> c_int {{\n    \
             unsafe {{ ::nvjitlink::{body}(Release::{release}, {arguments}) }}\n}}"
        )?;
    }
    Ok(("crates/libraries/nvjitlink/exports/src/generated/exports.rs".to_owned(), text))
}
