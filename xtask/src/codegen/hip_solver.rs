//! hipSOLVER behind cuSOLVER's dense API: for each name of a handle the function of hipSOLVER that does the same work. Its `hipsolverDn…`
//! functions have cuSOLVER's arguments in cuSOLVER's order in every release, which is checked here; numbers of enumerations differ.
//!
//! `tools/data/hip/cusolver.json` has what names and types do not say: what our own code keeps or does, and what is written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::facts::{self, Param, Signature, Signatures};

const HIPSOLVER: &str = "tools/data/hip/hipsolver.json";
const CUSOLVER: &str = "tools/data/hip/cusolver.json";
const SIGNATURES: &str = "tools/data/cusolver/cusolver.json";

/// What is known of cuSOLVER's names on hipSOLVER besides their names and types.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    /// Name, with T for the type's letter → when a call is our own code's, in Rust, and in words.
    own: BTreeMap<String, [String; 2]>,
    /// Names whose bodies are in crates/libraries/cusolver/api/src/hip/by_hand.rs.
    by_hand: BTreeSet<String>,
    /// Those of which a body is there for releases that lack the function.
    otherwise: BTreeSet<String>,
    /// What our own objects keep.
    ours: BTreeSet<String>,
}

/// Name → the releases that have a form of it → the form: `name: type, …`.
type Functions = BTreeMap<String, BTreeMap<String, String>>;

/// How a name of cuSOLVER's is answered on an AMD GPU.
pub enum Way {
    /// By this function of hipSOLVER's, but for what the words say.
    Function { name: String, own: Option<String> },
    /// By several of its functions, or one of another shape.
    ByHand,
    /// By what our objects keep.
    Ours,
    /// By no function of hipSOLVER's.
    Lacks,
}

/// What hipSOLVER does for cuSOLVER.
pub struct OnHip {
    /// `crates/libraries/cusolver/api/src/generated/hip_calls.rs`
    pub calls: String,
    exceptions: Exceptions,
    functions: Functions,
    signatures: Signatures,
}

impl OnHip {
    pub fn read() -> Result<OnHip> {
        let mut on_hip = OnHip {
            calls: String::new(),
            exceptions: facts::read_json(CUSOLVER)?,
            functions: facts::read_json(HIPSOLVER)?,
            signatures: facts::read_json(SIGNATURES)?,
        };
        on_hip.calls = on_hip.text()?;
        Ok(on_hip)
    }

    pub fn way(&self, name: &str) -> Way {
        if self.exceptions.ours.contains(name) {
            return Way::Ours;
        }
        if self.exceptions.by_hand.contains(name) {
            return Way::ByHand;
        }
        match function(name).filter(|function| self.functions.contains_key(function)) {
            Some(function) => {
                Way::Function { name: function, own: self.own(name).map(|[_, why]| why.clone()) }
            }
            None => Way::Lacks,
        }
    }

    fn own(&self, name: &str) -> Option<&[String; 2]> {
        self.exceptions.own.get(name).or_else(|| {
            let (start, rest) = name.split_at_checked("cusolverDn".len())?;
            self.exceptions.own.get(&format!("{start}T{}", rest.get(1..)?))
        })
    }

    /// The line of an export that hands a call on where hipSOLVER has it, with the handle's device being an AMD GPU.
    pub fn line(&self, krate: &str, name: &str) -> Option<String> {
        let module = match self.way(name) {
            Way::Function { .. } => "calls",
            Way::ByHand => "by_hand",
            Way::Ours | Way::Lacks => return None,
        };
        let params = self.signatures.get(name)?.params.get(1..)?;
        let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
        // What only asks for a size enqueues nothing.
        let enqueues = !(name.ends_with("_bufferSize") || tells(name));
        Some(format!("{krate}::on_hip!(handle, {enqueues}, {module}::{name}({}));", names.join(", ")))
    }

    fn text(&self) -> Result<String> {
        let mut used = BTreeSet::new();
        let mut routines = String::new();
        for (name, signature) in &self.signatures {
            let Way::Function { name: function, .. } = self.way(name) else { continue };
            routines += &self.routine(name, signature, &function)?;
            used.insert(function);
        }
        for known in self.exceptions.by_hand.iter().chain(&self.exceptions.otherwise) {
            ensure!(self.signatures.contains_key(known), "{CUSOLVER}: cuSOLVER has no {known}");
        }
        // These are called for our own objects.
        let others = self.functions.keys().filter(|name| !used.contains(*name)).cloned().collect::<Vec<_>>();
        for name in &others {
            let name = name.replacen("hip", "cu", 1);
            ensure!(self.exceptions.ours.contains(&name), "{HIPSOLVER}: nobody calls the one behind {name}");
        }
        used.extend(others);
        let mut text = String::from(
            "//! cuSOLVER's dense API on hipSOLVER, and the functions of hipSOLVER that it uses.\n\
             //! Generated by `cargo xtask codegen` from tools/data/cusolver and tools/data/hip; do not edit.\n\n\
             use core::ffi::*;\n\n\
             use crate::hip::call::{hand_on, no_iterations, routines};\n\
             use crate::hip::convert::*;\n\
             use crate::types::*;\n\n",
        );
        writeln!(text, "pub const NAMES: [&CStr; {}] = [", used.len())?;
        used.iter().try_for_each(|name| writeln!(text, "    c\"{name}\","))?;
        text += "];\n\n";
        for (index, name) in used.iter().enumerate() {
            writeln!(text, "pub const {name}: usize = {index};")?;
        }
        Ok(format!("{text}\nroutines! {{\n    hip;\n{routines}}}\n"))
    }

    fn routine(&self, name: &str, signature: &Signature, function: &str) -> Result<String> {
        let forms = &self.functions[function];
        ensure!(forms.len() == 1, "{HIPSOLVER}: {function} differs between releases");
        let form: Vec<&str> = forms.values().flat_map(|form| form.split(", ")).collect();
        let handle = signature.params.first().is_some_and(|param| param.ty == "cusolverDnHandle_t");
        ensure!(handle && form[0] == "handle: hipsolverHandle_t", "{name}: no handle comes first");
        let params = &signature.params[1..];
        let mut given = params.iter();
        let mut arguments = Vec::new();
        for theirs in &form[1..] {
            let (their_name, their_type) = theirs.split_once(": ").with_context(|| theirs.to_string())?;
            // The first generic functions have no work area on the host.
            if is_first_generic(name) && matches!(their_name, "lworkOnHost" | "workOnHost") {
                arguments.push(match their_type {
                    "*mut usize" => "*mut usize = &mut 0".to_owned(),
                    "usize" => "usize = 0".to_owned(),
                    _ => format!("{their_type} = core::ptr::null_mut()"),
                });
                continue;
            }
            let ours = given.next().with_context(|| format!("{name} has fewer arguments than {function}"))?;
            let type_of_theirs = theirs_of(&ours.ty);
            ensure!(
                type_of_theirs == their_type.replace("*const", "*mut"),
                "{name}: {} is a {}, {function}'s a {their_type}",
                ours.name,
                ours.ty
            );
            arguments.push(argument(ours));
        }
        ensure!(given.next().is_none(), "{name} has more arguments than {function}");
        let declared: Vec<_> = params.iter().map(|param| format!("{}: {}", param.name, param.ty)).collect();
        let mut text = format!("    fn {name}({}) {{\n", declared.join(", "));
        if let Some([condition, why]) = self.own(name) {
            writeln!(
                text,
                "        // Our own code's: {why}.\n        if {condition} {{ return Ok(false); }}"
            )?;
        }
        if tells(name) {
            // HIP differs: it copies from the device without looking at the stream.
            writeln!(text, "        hip.synchronize()?;")?;
        }
        if let Some(iter) = params.iter().find(|param| param.name == "iter") {
            writeln!(text, "        unsafe {{ no_iterations({}) }}?;", iter.name)?;
        }
        writeln!(text, "        hand_on!(hip, {function}({}));", arguments.join(", "))?;
        if self.exceptions.otherwise.contains(name) {
            let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
            let call = format!("crate::hip::by_hand::{name}(hip, {})", names.join(", "));
            writeln!(text, "        if unsafe {{ {call} }}? {{ return Ok(true); }}")?;
        }
        Ok(text + "    }\n")
    }
}

/// What an iteration came to.
fn tells(name: &str) -> bool {
    name.contains("jGet")
}

fn is_first_generic(name: &str) -> bool {
    let plain = name.strip_prefix("cusolverDn").map(|rest| rest.trim_end_matches("_bufferSize"));
    plain.is_some_and(|plain| matches!(plain, "Geqrf" | "Getrf" | "Getrs" | "Potrf" | "Potrs"))
}

/// hipSOLVER's name: the same, with the X of the later functions for the first generic ones. A solver that refines what a narrower type
/// gave is the one of its main type alone, as it is on the CPU device.
fn function(name: &str) -> Option<String> {
    let rest = name.strip_prefix("cusolverDn")?;
    if is_first_generic(name) {
        return Some(format!("hipsolverDnX{}{}", rest[..1].to_lowercase(), &rest[1..]));
    }
    let mut letters = rest.chars();
    match (letters.next(), letters.next(), letters.as_str()) {
        (Some(main @ ('S' | 'D' | 'C' | 'Z')), Some('A'..='Z'), solver)
            if solver.starts_with("gesv") || solver.starts_with("gels") =>
        {
            Some(format!("hipsolverDn{main}{main}{solver}"))
        }
        _ => Some(format!("hipsolverDn{rest}")),
    }
}

/// The type in hipSOLVER's headers, without `const`.
fn theirs_of(ty: &str) -> String {
    let ty = ty.replace("*const", "*mut");
    let (pointers, plain) =
        ty.rsplit_once(' ').map_or(("", ty.as_str()), |(pointers, plain)| (pointers, plain));
    let plain = match plain {
        "cuComplex" => "hipComplex",
        "cuDoubleComplex" => "hipDoubleComplex",
        "cudaDataType" => "hipDataType",
        "cublasFillMode_t" => "hipsolverFillMode_t",
        "cublasOperation_t" => "hipsolverOperation_t",
        "cublasSideMode_t" => "hipsolverSideMode_t",
        "cusolverEigMode_t" => "hipsolverEigMode_t",
        "cusolverEigRange_t" => "hipsolverEigRange_t",
        "cusolverEigType_t" => "hipsolverEigType_t",
        "cusolverDnParams_t" => "hipsolverDnParams_t",
        "gesvdjInfo_t" => "hipsolverGesvdjInfo_t",
        "syevjInfo_t" => "hipsolverSyevjInfo_t",
        plain => plain,
    };
    if pointers.is_empty() { plain.to_owned() } else { format!("{pointers} {plain}") }
}

/// `type = value`, as hipSOLVER gets it.
fn argument(param: &Param) -> String {
    let name = &param.name;
    let conversion = match param.ty.as_str() {
        "cublasFillMode_t" => "fill_mode",
        "cublasOperation_t" => "operation",
        "cublasSideMode_t" => "side_mode",
        "cusolverEigMode_t" => "eig_mode",
        "cusolverEigRange_t" => "eig_range",
        "cusolverEigType_t" => "eig_type",
        "cusolverDnParams_t" => return format!("*mut c_void = hip.params({name})?"),
        "gesvdjInfo_t" => return format!("*mut c_void = hip.gesvdj_info({name})?"),
        "syevjInfo_t" => return format!("*mut c_void = hip.syevj_info({name})?"),
        ty => return format!("{ty} = {name}"),
    };
    format!("c_uint = {conversion}({name})?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_function_of_its_main_type() {
        for (name, hip) in [
            ("cusolverDnSpotrf", "hipsolverDnSpotrf"),
            ("cusolverDnZCgesv", "hipsolverDnZZgesv"),
            ("cusolverDnDHgels_bufferSize", "hipsolverDnDDgels_bufferSize"),
            ("cusolverDnGetrf_bufferSize", "hipsolverDnXgetrf_bufferSize"),
            ("cusolverDnXgetrf", "hipsolverDnXgetrf"),
        ] {
            assert_eq!(function(name).as_deref(), Some(hip), "{name}");
        }
        assert_eq!(function("cusolverSpScsrlsvqr"), None);
    }
}
