//! `tools/data`: what is known of each export. Read by every generator, written by `--headers` and by hand.
//!
//! Rule: one export, one line, so that a changed fact is one changed line. `--headers` refreshes names, types and
//! versions, marks the pointers by C's types and `flows.json`, and keeps the signatures that people added (`"from": "hand"`).

use std::collections::BTreeMap;
#[cfg(feature = "headers")]
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::root;

pub const DRIVER_LIST: &str = "tools/data/cuda_driver_exports.txt";
pub const DRIVER: &str = "tools/data/cuda/driver.json";
pub const RUNTIME: &str = "tools/data/cuda/runtime.json";
pub const NVML: &str = "tools/data/nvml/nvml.json";
pub const BLAS: &str = "tools/data/cublas/cublas.json";
#[cfg(feature = "headers")]
const FLOWS: &str = "tools/data/cuda/flows.json";
pub const MAJORS: [&str; 3] = ["11", "12", "13"];

/// Which way data flows through a pointer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flow {
    /// CUDA only reads what it points to.
    In,
    /// CUDA writes the answer there and does not read it.
    Out,
    /// Read, then written: counts and sizes, structures that carry both questions and answers.
    Inout,
    /// Plain bytes of the application: copies, kernel arguments, user data.
    Buffer,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
}

/// `tools/data/cuda/flows.json`: where C's types say too little. `any` is by parameter name, then by function.
#[cfg(feature = "headers")]
type Flows = BTreeMap<String, BTreeMap<String, Flow>>;

#[cfg(feature = "headers")]
fn mark_flows(function: &str, signature: &mut Signature, flows: &Flows) {
    let plain = without_flavour(function).unwrap_or(function);
    for param in &mut signature.params {
        let exception = [plain, "any"].iter().find_map(|key| flows.get(*key)?.get(&param.name).copied());
        param.flow = match param.ty.as_str() {
            "*const c_void" | "*mut c_void" => exception.or(Some(Flow::Buffer)),
            ty if ty.starts_with("*const ") => Some(Flow::In),
            ty if ty.starts_with("*mut ") => exception.or(Some(Flow::Out)),
            _ => None,
        };
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub params: Vec<Param>,
    pub returns: String,
}

pub type Signatures = BTreeMap<String, Signature>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    Plain,
    Ptsz,
    Ptds,
}

/// Where a signature was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Header,
    /// Same as the plain spelling's: `_ptsz` and `_ptds` differ in meaning only.
    Plain,
    /// Written by a person; `--headers` keeps it.
    Hand,
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriverExport {
    /// The name `cuGetProcAddress` knows it by.
    pub base: String,
    /// The CUDA version (1000 * major + 10 * minor) that asks for this variant first; 0: not reachable by name.
    pub since: u32,
    pub flavour: Flavour,
    pub from: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuntimeExport {
    pub from: Source,
    /// The majors that have the name, and the signature in each; equal ones share an entry ("11 12").
    pub majors: BTreeMap<String, Option<Signature>>,
}

impl RuntimeExport {
    pub fn has(&self, major: &str) -> bool {
        self.majors.keys().any(|majors| majors.split(' ').any(|one| one == major))
    }

    pub fn signature(&self, major: &str) -> Option<&Signature> {
        self.majors.iter().find(|(majors, _)| majors.split(' ').any(|one| one == major))?.1.as_ref()
    }
}

pub fn driver() -> Result<BTreeMap<String, DriverExport>> {
    read_json(DRIVER)
}

pub fn runtime() -> Result<BTreeMap<String, RuntimeExport>> {
    read_json(RUNTIME)
}

/// Every name of NVML's header.
pub fn nvml() -> Result<Signatures> {
    read_json(NVML)
}

/// Every name of the headers of cuBLAS, its first API, cuBLASLt and cuBLASXt.
pub fn blas() -> Result<Signatures> {
    read_json(BLAS)
}

pub fn read_json<T: serde::de::DeserializeOwned>(path: &str) -> Result<T> {
    serde_json::from_str(&read(path)?).with_context(|| path.to_owned())
}

pub fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// The names of one major's libcudart, in the order that the runtime table and the forwarder share.
pub fn runtime_names(major: &str) -> Result<Vec<String>> {
    let text = read(&format!("tools/data/cuda/cudart_exports_{major}.txt"))?;
    Ok(text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once('@')?.0.to_owned()))
        .collect())
}

/// The rows of the canonical list: (export, base, since, flavour).
pub fn driver_list() -> Result<Vec<(String, String, u32, Flavour)>> {
    read(DRIVER_LIST)?
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [name, base, since, flavour, ..] = columns[..] else {
                anyhow::bail!("{DRIVER_LIST}: short row: {line}")
            };
            let flavour = match flavour {
                "plain" => Flavour::Plain,
                "_ptsz" => Flavour::Ptsz,
                "_ptds" => Flavour::Ptds,
                other => anyhow::bail!("{DRIVER_LIST}: flavour {other}"),
            };
            Ok((name.to_owned(), base.to_owned(), since.parse()?, flavour))
        })
        .collect()
}

pub fn without_flavour(name: &str) -> Option<&str> {
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"))
}

#[cfg(feature = "headers")]
pub fn write_driver_signatures(headers: &Signatures) -> Result<()> {
    let before = driver().unwrap_or_default();
    let flows: Flows = read_json(FLOWS)?;
    let mut exports = BTreeMap::new();
    for (name, base, since, flavour) in driver_list()? {
        let old = before.get(&name);
        let (from, mut signature) = find(headers, &name, old.map(|old| (old.from, old.signature.as_ref())));
        if let (Some(signature), true) = (&mut signature, from != Source::Hand) {
            mark_flows(&name, signature, &flows);
        }
        exports.insert(name, DriverExport { base, since, flavour, from, signature });
    }
    write_lines(DRIVER, &exports)
}

#[cfg(feature = "headers")]
pub fn write_runtime_signatures(headers: &BTreeMap<String, Signatures>) -> Result<()> {
    let before = runtime().unwrap_or_default();
    let flows: Flows = read_json(FLOWS)?;
    let mut exports: BTreeMap<String, RuntimeExport> = BTreeMap::new();
    for major in MAJORS {
        for name in runtime_names(major)? {
            let old = before.get(&name);
            let old_signature = old.and_then(|old| old.signature(major));
            let (from, mut signature) =
                find(&headers[major], &name, old.map(|old| (old.from, old_signature)));
            if let (Some(signature), true) = (&mut signature, from != Source::Hand) {
                mark_flows(&name, signature, &flows);
            }
            let export =
                exports.entry(name).or_insert_with(|| RuntimeExport { from, majors: BTreeMap::new() });
            let same =
                export.majors.iter().find(|(_, known)| **known == signature).map(|(key, _)| key.clone());
            match same {
                Some(key) => {
                    let value = export.majors.remove(&key).flatten();
                    export.majors.insert(format!("{key} {major}"), value);
                }
                None => {
                    export.majors.insert(major.to_owned(), signature);
                }
            }
        }
    }
    write_lines(RUNTIME, &exports)
}

#[cfg(feature = "headers")]
pub fn write_nvml_signatures(headers: &Signatures) -> Result<()> {
    write_lines(NVML, headers)
}

#[cfg(feature = "headers")]
pub fn write_blas_signatures(headers: &Signatures) -> Result<()> {
    write_lines(BLAS, headers)
}

#[cfg(feature = "headers")]
fn find(
    headers: &Signatures,
    name: &str,
    old: Option<(Source, Option<&Signature>)>,
) -> (Source, Option<Signature>) {
    if let Some((Source::Hand, signature)) = old {
        return (Source::Hand, signature.cloned());
    }
    if let Some(signature) = headers.get(name) {
        return (Source::Header, Some(signature.clone()));
    }
    match without_flavour(name).and_then(|plain| headers.get(plain)) {
        Some(signature) => (Source::Plain, Some(signature.clone())),
        None => (Source::Unknown, None),
    }
}

/// JSON with one key per line.
#[cfg(feature = "headers")]
fn write_lines<T: Serialize>(path: &str, map: &BTreeMap<String, T>) -> Result<()> {
    let mut text = String::from("{\n");
    for (index, (key, value)) in map.iter().enumerate() {
        let comma = if index + 1 == map.len() { "" } else { "," };
        writeln!(text, "{}: {}{comma}", serde_json::to_string(key)?, serde_json::to_string(value)?)?;
    }
    text.push_str("}\n");
    std::fs::write(root().join(path), text).with_context(|| path.to_owned())
}
