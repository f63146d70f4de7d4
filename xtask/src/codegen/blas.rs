//! cuBLAS and cuBLASLt: the exports behind the shells `libcublas.so.N` and `libcublasLt.so.N`.
//!
//! A body stands under its C name in crates/libraries/cublas/api/src/api, as everywhere, or under its routine's name for all types:
//! `gemv` serves `cublasSgemv_v2`, `cublasZgemv_v2_64` and the others. Such a body takes integers as `i64` and, for
//! routines of a handle, `&Handle`; which type it is for follows from the pointers that it gets.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use syn::Item;

use super::bodies::Bodies;
use super::cublas_xt;
use super::facts::{Signature, Signatures};
use super::hip_blas::OnHip;
use super::library;
use super::shells::{self, HEAD, PROMISE};
use crate::libraries;
use crate::setup::root;

const MAJORS: [&str; 3] = ["11", "12", "13"];

/// A body for all types of a routine.
pub struct Routine {
    /// Below the crate: `api::level2::gemv`.
    path: String,
    has_handle: bool,
    is_unsafe: bool,
    n_params: usize,
}

pub type Routines = BTreeMap<String, Routine>;

/// The public functions of crates/libraries/cublas/api/src/api that do not stand under a C name.
pub fn routines() -> Result<Routines> {
    let mut routines = Routines::new();
    for entry in std::fs::read_dir(root().join("crates/libraries/cublas/api/src/api"))? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let file = syn::parse_file(&std::fs::read_to_string(&path)?)
            .with_context(|| format!("{} is not Rust yet", path.display()))?;
        for item in file.items {
            let Item::Fn(function) = item else { continue };
            let name = function.sig.ident.to_string();
            if !matches!(function.vis, syn::Visibility::Public(_)) || name.starts_with("cublas") {
                continue;
            }
            let inputs = &function.sig.inputs;
            let has_handle = inputs.first().is_some_and(
                |input| matches!(input, syn::FnArg::Typed(typed) if matches!(&*typed.ty, syn::Type::Reference(_))),
            );
            let routine = Routine {
                path: format!("api::{stem}::{name}"),
                has_handle,
                is_unsafe: function.sig.unsafety.is_some(),
                n_params: inputs.len(),
            };
            ensure!(routines.insert(name.clone(), routine).is_none(), "two bodies for the routine {name}");
        }
    }
    Ok(routines)
}

/// `gemmStridedBatched` → `gemm_strided_batched`
fn snake(name: &str) -> String {
    let mut text = String::new();
    for (index, c) in name.char_indices() {
        if c.is_ascii_uppercase() && index > 0 {
            text.push('_');
        }
        text.push(c.to_ascii_lowercase());
    }
    text
}

/// The routine that a C name is for some type: `cublasSgemv_v2_64` is `gemv`, `cublasIsamax_v2` is `amax`,
/// `cublasHSHgemvBatched` is `gemv_batched`. The type's letters are at most three.
fn routine_of<'r>(name: &str, routines: &'r Routines) -> Option<&'r Routine> {
    let name = name.strip_prefix("cublas")?;
    let name = name.strip_suffix("_64").unwrap_or(name);
    let name = name.strip_suffix("_v2").unwrap_or(name);
    (0..=3).filter(|&letters| name.is_char_boundary(letters)).find_map(|letters| {
        let (letters, routine) = name.split_at_checked(letters)?;
        let is_type = letters.chars().all(|c| "SDCZHTIscdz".contains(c));
        // Without letters the C name's own capital begins the word.
        let is_word = letters.is_empty() || routine.starts_with(|c: char| c.is_ascii_lowercase());
        (is_type && is_word).then(|| routines.get(&snake(routine)))?
    })
}

/// Bodies that no export calls.
pub fn unused(bodies: &Bodies, routines: &Routines, signatures: &Signatures) -> Vec<String> {
    let served: BTreeSet<&str> = signatures
        .keys()
        .filter_map(|name| routine_of(name, routines))
        .map(|routine| routine.path.as_str())
        .collect();
    let unused = routines.values().filter(|routine| !served.contains(routine.path.as_str()));
    let is_of_major = |name: &str| {
        let mut plain = MAJORS.iter().filter_map(|major| name.strip_suffix(&format!("_v{major}")));
        plain.any(|plain| signatures.contains_key(plain))
    };
    let without_export = bodies.keys().filter(|name| !signatures.contains_key(*name) && !is_of_major(name));
    unused.map(|routine| routine.path.clone()).chain(without_export.cloned()).collect()
}

/// Where the body of a name stands, below the crate, and whether it only ever refuses.
pub fn place<'b>(
    name: &str,
    signatures: &Signatures,
    bodies: &'b Bodies,
    routines: &'b Routines,
) -> Option<(&'b str, bool)> {
    let own = bodies.get(name).map(|body| (body.path.as_str(), body.refuses));
    own.or_else(|| Some((&routine_fits(name, signatures.get(name)?, routines)?.path, false)))
}

/// The later API's function of a name of the first, which has no handle: its name and signature.
fn first_api<'s>(
    name: &str,
    signature: &Signature,
    signatures: &'s Signatures,
) -> Option<(String, &'s Signature)> {
    let later = format!("{name}_v2");
    let is_first = signature.params.first().is_none_or(|param| param.ty != "cublasHandle_t");
    let found = signatures.get(&later).filter(|_| is_first)?;
    Some((later, found))
}

/// The name with a handle of cuBLAS's that does the work of a routine of the first API or of cuBLASXt, which has no body of
/// its own.
pub fn served_by(name: &str, signatures: &Signatures) -> Option<String> {
    let later = first_api(name, signatures.get(name)?, signatures).map(|(later, _)| later);
    later.or_else(|| cublas_xt::served_by(name, signatures))
}

/// The later function's call with the process's handle: letters become enums, values are passed by their addresses, and
/// what the function gives back is the later one's last parameter.
fn first_api_call(
    name: &str,
    signature: &Signature,
    (later, later_signature): &(String, &Signature),
) -> Result<String> {
    let mut arguments = vec!["handle".to_owned()];
    for (param, later) in signature.params.iter().zip(&later_signature.params[1..]) {
        let name = &param.name;
        arguments.push(match (param.ty.as_str(), later.ty.as_str()) {
            ("c_char", "cublasOperation_t") => format!("legacy::operation({name})"),
            ("c_char", "cublasFillMode_t") => format!("legacy::fill_mode({name})"),
            ("c_char", "cublasDiagType_t") => format!("legacy::diagonal({name})"),
            ("c_char", "cublasSideMode_t") => format!("legacy::side({name})"),
            (own, later) if own == later => name.clone(),
            // Rust takes a `*mut` for a `*const`.
            (own, later) if own.strip_prefix("*mut ").is_some_and(|of| later == format!("*const {of}")) => {
                name.clone()
            }
            (own, later) if later == format!("*const {own}") => format!("&raw const {name}"),
            // A value that the later function also writes.
            (own, later) if later == format!("*mut {own}") => format!("&mut {{ {name} }}"),
            (own, later) => anyhow::bail!("{name} of the first API is {own}, of the later {later}"),
        });
    }
    let has_result = signature.returns != "()";
    if has_result {
        arguments.push("result".to_owned());
    } else if signature.params.len() + 3 == later_signature.params.len() {
        // trmm in place: C is B.
        let [.., b, ldb] = &signature.params[..] else { anyhow::bail!("{name} has no B") };
        arguments.extend([b.name.clone(), ldb.name.clone()]);
    }
    ensure!(arguments.len() == later_signature.params.len(), "{name} and {later} do not fit");
    let call = format!("unsafe {{ {later}({}) }}", arguments.join(", "));
    Ok(if has_result {
        format!("legacy::value(|handle, result| {call})")
    } else {
        format!("legacy::call(|handle| {call})")
    })
}

/// The routine, unless the name is one of the first API, whose functions have no handle.
fn routine_fits<'r>(name: &str, signature: &Signature, routines: &'r Routines) -> Option<&'r Routine> {
    let takes_handle = signature.params.first().is_some_and(|param| param.ty == "cublasHandle_t");
    routine_of(name, routines)
        .filter(|routine| routine.has_handle == takes_handle && signature.returns == "cublasStatus_t")
}

/// Names whose body is another one for this major: `cublasGetProperty_v12`.
pub fn of_major<'n>(bodies: &Bodies, names: &'n [String], major: &str) -> Vec<(usize, &'n String)> {
    let has_own = |name: &str| bodies.contains_key(&format!("{name}_v{major}"));
    names.iter().enumerate().filter(|(_, name)| has_own(name)).collect()
}

/// What `libcudaway_blas.so` exports: [`names`], and those of majors with a body of their own.
pub fn all_exports() -> Result<BTreeSet<String>> {
    let mut exports = names()?;
    exports.extend(
        names_of_majors(&super::bodies::scan("crates/libraries/cublas/api")?)?
            .into_iter()
            .map(|(_, export)| export),
    );
    Ok(exports)
}

/// (name, export) of the majors' own.
fn names_of_majors(bodies: &Bodies) -> Result<BTreeSet<(String, String)>> {
    let mut found = BTreeSet::new();
    for object in &libraries::named("cuBLAS").objects {
        let (names, major) = (object.names()?, &object.soname);
        let own = of_major(bodies, &names, major);
        found.extend(own.into_iter().map(|(_, name)| (name.clone(), format!("{name}_v{major}"))));
    }
    Ok(found)
}

/// Every name of the three majors.
pub fn names() -> Result<BTreeSet<String>> {
    library::names(libraries::named("cuBLAS"))
}

/// `crates/libraries/cublas/exports/src/generated/exports.rs`
pub fn exports(
    signatures: &Signatures,
    bodies: &Bodies,
    routines: &Routines,
    on_hip: &OnHip,
) -> Result<String> {
    let unknown = Signature { params: Vec::new(), returns: "cublasStatus_t".to_owned() };
    let names = names()?;
    let mut text = format!(
        "//! The {} exports of libcudaway_blas.so. {HEAD} from tools/data/cublas\n\
         //! and crates/libraries/cublas/api/src/api; do not edit.\n\n{PROMISE}\n\
         use core::ffi::*;\n\nuse border::{{OptOut, Out, borrow, borrow_opt, c_string}};\nuse cublas::*;\n",
        names.len()
    );
    for name in &names {
        let signature = signatures.get(name).unwrap_or(&unknown);
        let body = bodies.get(name);
        let routine = routine_fits(name, signature, routines).filter(|_| body.is_none());
        let on_hip = on_hip.path(name);
        ensure!(
            body.is_none() || on_hip.is_none(),
            "{name} is handed on to hipBLAS: write its body as a routine (for all types, without the prefix), which is then the CPU's"
        );
        let of_first_api = first_api(name, signature, signatures).filter(|_| body.is_none());
        let of_xt = cublas_xt::statement(name, signature, signatures)?.filter(|_| body.is_none());
        let (statement, is_used) = if let Some(statement) = of_xt {
            (statement, true)
        } else if let Some(later) = of_first_api {
            (first_api_call(name, signature, &later)?, true)
        } else if routine.is_some() || on_hip.is_some() {
            (routine_call(name, signature, routine, on_hip)?, true)
        } else {
            let body = body.map(|body| (body, false));
            (shells::statement("::cublas", "cublasStatus_t", name, signature, body)?, body.is_some())
        };
        // cuBLAS has loggers of its own; ours stand around what `cudaway trace` sees.
        let statement = statement.replace("::trace::call", "::cublas::call");
        text += &shells::exported(name, signature, is_used, &statement);
    }
    for (name, export) in names_of_majors(bodies)? {
        let signature = signatures.get(&name).unwrap_or(&unknown);
        let body = bodies.get(&export).map(|body| (body, false));
        let statement = shells::statement("::cublas", "cublasStatus_t", &name, signature, body)?;
        let statement = statement.replace("::trace::call", "::cublas::call");
        text += &shells::exported(&export, signature, true, &statement);
    }
    Ok(text)
}

/// A call of the routine, or of hipBLAS's where the handle is an AMD GPU's.
fn routine_call(
    name: &str,
    signature: &Signature,
    routine: Option<&Routine>,
    on_hip: Option<String>,
) -> Result<String> {
    let call = match routine {
        Some(routine) => cpu_call(name, signature, routine)?,
        None => "Err(Error::NotSupported(\"it has no body yet\"))".to_owned(),
    };
    let shown = signature.params.iter().map(|param| format!("value {}", param.name)).collect::<Vec<_>>();
    let shown = shown.join(", ");
    let entry = if routine.is_none_or(|routine| routine.has_handle) {
        let names: Vec<_> = signature.params[1..].iter().map(|param| param.name.as_str()).collect();
        let hip_call = match on_hip {
            Some(path) => format!(
                "hip.call(handle, |hip| unsafe {{ ::cublas::hip::{path}({}) }})",
                [&["hip"], &names[..]].concat().join(", ")
            ),
            None => "hip.lacks()".to_owned(),
        };
        format!(
            "::cublas::on_handle(\"{name}\", {}, |handle| match handle.hip() {{\n            None => {call},\n            Some(hip) => {hip_call},\n        }})",
            signature.params[0].name,
        )
    } else {
        format!("::cublas::entry(\"{name}\", || {call})")
    };
    Ok(format!("::trace::call!(\"{name}\", ({shown}), {{\n        {entry}\n    }})"))
}

fn cpu_call(name: &str, signature: &Signature, routine: &Routine) -> Result<String> {
    ensure!(
        routine.n_params == signature.params.len(),
        "{} takes {} parameters, {name} has {}",
        routine.path,
        routine.n_params,
        signature.params.len()
    );
    let arguments = signature.params.iter().enumerate().map(|(index, param)| match param.ty.as_str() {
        "cublasHandle_t" if index == 0 => "handle".to_owned(),
        "c_int" => format!("i64::from({})", param.name),
        _ => param.name.clone(),
    });
    let call = format!("::cublas::{}({})", routine.path, arguments.collect::<Vec<_>>().join(", "));
    Ok(if routine.is_unsafe { format!("unsafe {{ {call} }}") } else { call })
}

/// What a function answers without a backend.
pub fn answer(signatures: &Signatures, name: &str) -> &'static str {
    let returns = signatures.get(name).map_or("cublasStatus_t", |signature| signature.returns.as_str());
    if returns == "cublasStatus_t" { "Status" } else { "Zero" }
}
