//! Finds the bodies people wrote: `pub fn cu…` under a crate's `src/api`.
//!
//! The body decides how a pointer arrives: as `Out`, as `OptOut`, as a reference, or raw.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use quote::ToTokens;
use syn::{Attribute, FnArg, Item, ReturnType, Type, UseTree, Visibility};

use crate::setup::root;

/// How a body takes one C parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    AsIs,
    /// `Out<'_, T>`
    Out,
    /// `OptOut<'_, T>`
    OptOut,
    /// `&T`: NULL is an error.
    Reference,
    /// `Option<&T>`
    OptReference,
    /// `&CStr`: NULL is an error.
    Text,
}

#[derive(Clone, Debug)]
pub struct Body {
    /// Path below the crate: `api::memory::cuMemAlloc_v2`.
    pub path: String,
    pub takes: Vec<Take>,
    pub is_unsafe: bool,
    /// Returns the crate's `Result`; otherwise the C value itself.
    pub is_result: bool,
    /// It checks its arguments and then always answers an error.
    pub refuses: bool,
    /// The HIP functions its doc comment names on the `HIP:` line.
    pub hip: Vec<String>,
}

pub type Bodies = BTreeMap<String, Body>;

/// All bodies of one crate, keyed by name. A crate without `src/api` has none yet.
pub fn scan(krate: &str) -> Result<Bodies> {
    let mut bodies = Bodies::new();
    let mut renames = Vec::new();
    let api = root().join(krate).join("src/api");
    if api.is_dir() {
        scan_folder(&api, "api", &mut bodies, &mut renames)?;
    }
    // `pub use …cudaFoo_v12 as cudaFoo_v11;`: one body under two names.
    for (name, target, path) in renames {
        if let Some(body) = bodies.get(&target) {
            let body = Body { path, ..body.clone() };
            bodies.entry(name).or_insert(body);
        }
    }
    Ok(bodies)
}

fn scan_folder(
    folder: &Path,
    module: &str,
    bodies: &mut Bodies,
    renames: &mut Vec<(String, String, String)>,
) -> Result<()> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() {
            scan_folder(&path, &format!("{module}::{stem}"), bodies, renames)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path)?;
            let file =
                syn::parse_file(&text).with_context(|| format!("{} is not Rust yet", path.display()))?;
            let module = if stem == "mod" { module.to_owned() } else { format!("{module}::{stem}") };
            scan_items(&file.items, &module, bodies, renames).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

fn scan_items(
    items: &[Item],
    module: &str,
    bodies: &mut Bodies,
    renames: &mut Vec<(String, String, String)>,
) -> Result<()> {
    for item in items {
        match item {
            Item::Fn(function) if is_public(&function.vis) && is_cuda(&function.sig.ident.to_string()) => {
                let name = function.sig.ident.to_string();
                let body = Body {
                    path: format!("{module}::{name}"),
                    takes: function.sig.inputs.iter().map(take).collect(),
                    is_unsafe: function.sig.unsafety.is_some(),
                    is_result: returns_result(&function.sig.output),
                    refuses: only_refuses(&function.block),
                    hip: hip_names(&function.attrs),
                };
                if let Some(other) = bodies.insert(name.clone(), body) {
                    bail!("{name} has two bodies, the other one is {}", other.path);
                }
            }
            Item::Use(item) if is_public(&item.vis) => use_names(&item.tree, module, renames),
            _ => {}
        }
    }
    Ok(())
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// `cuInit`, `cudaMalloc`, `__cudaRegisterVar`, `nvmlInit`, `cublasLtCreate`; not `cudaway_forward`.
fn is_cuda(name: &str) -> bool {
    if name.starts_with("fftw_") {
        return true;
    }
    let name = name.strip_prefix("__").unwrap_or(name);
    let rest = ["cublas", "cudnn", "cufft", "curand", "cusparse", "cusolver", "cuda", "cu", "nvml"]
        .into_iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

fn use_names(tree: &UseTree, module: &str, renames: &mut Vec<(String, String, String)>) {
    match tree {
        UseTree::Path(path) => use_names(&path.tree, module, renames),
        UseTree::Group(group) => group.items.iter().for_each(|tree| use_names(tree, module, renames)),
        UseTree::Rename(rename) => {
            let (name, target) = (rename.rename.to_string(), rename.ident.to_string());
            if is_cuda(&name) {
                renames.push((name.clone(), target, format!("{module}::{name}")));
            }
        }
        UseTree::Name(_) | UseTree::Glob(_) => {}
    }
}

fn take(input: &FnArg) -> Take {
    let FnArg::Typed(typed) = input else { return Take::AsIs };
    match &*typed.ty {
        Type::Reference(reference) if reference.elem.to_token_stream().to_string() == "CStr" => Take::Text,
        Type::Reference(_) => Take::Reference,
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Take::AsIs };
            match last.ident.to_string().as_str() {
                "Out" => Take::Out,
                "OptOut" => Take::OptOut,
                "Option" if last.arguments.to_token_stream().to_string().starts_with("< &") => {
                    Take::OptReference
                }
                _ => Take::AsIs,
            }
        }
        _ => Take::AsIs,
    }
}

fn returns_result(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else { return false };
    matches!(&**ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Result"))
}

/// Whether the last thing a body can say is an error: `Err(…)` or `refuse(…)` at its end.
fn only_refuses(block: &syn::Block) -> bool {
    let Some(syn::Stmt::Expr(syn::Expr::Call(call), None)) = block.stmts.last() else { return false };
    matches!(call.func.to_token_stream().to_string().as_str(), "refuse" | "Err")
}

/// "HIP: `hipMalloc`, `hipMemset`." → both names.
fn hip_names(attributes: &[Attribute]) -> Vec<String> {
    let mut names = Vec::new();
    for attribute in attributes {
        let syn::Meta::NameValue(meta) = &attribute.meta else { continue };
        let text = meta.value.to_token_stream().to_string();
        if !meta.path.is_ident("doc") || !text.contains("HIP:") {
            continue;
        }
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')) {
            if word.starts_with("hip") && word.len() > 3 && !names.iter().any(|known| known == word) {
                names.push(word.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_decides_how_pointers_arrive() {
        let file = syn::parse_file(
            "/// Allocates.\n///\n/// HIP: `hipMalloc`, `hipMemset`.\n\
             pub fn cuMemAlloc_v2(a: Out<'_, u64>, b: OptOut<'_, u32>, c: &T, d: Option<&T>, e: *mut u8) -> Result { x() }\n\
             pub unsafe fn cudaGetLastError() -> cudaError_t { x() }\n\
             pub fn cudaway_forward() {}\nfn cuHelper() {}\npub use self::cudaA_v12 as cudaA_v11;",
        )
        .unwrap();
        let (mut bodies, mut renames) = (Bodies::new(), Vec::new());
        scan_items(&file.items, "api::memory", &mut bodies, &mut renames).unwrap();
        assert_eq!(bodies.keys().collect::<Vec<_>>(), ["cuMemAlloc_v2", "cudaGetLastError"]);
        let body = &bodies["cuMemAlloc_v2"];
        assert_eq!(body.path, "api::memory::cuMemAlloc_v2");
        assert_eq!(body.takes, [Take::Out, Take::OptOut, Take::Reference, Take::OptReference, Take::AsIs]);
        assert_eq!(body.hip, ["hipMalloc", "hipMemset"]);
        assert!(body.is_result && !body.is_unsafe);
        assert!(!bodies["cudaGetLastError"].is_result && bodies["cudaGetLastError"].is_unsafe);
        assert_eq!(renames[0].0, "cudaA_v11");
    }

    #[test]
    fn a_body_that_can_only_say_not_supported_is_told_from_one_that_refuses_an_option() {
        let refuses = |body: &str| only_refuses(&syn::parse_str(body).unwrap());
        assert!(refuses("{ check()?; Err(Error::NotSupported(\"x\")) }"));
        assert!(refuses("{ if n == 0 { return Ok(()); } refuse(\"x\") }"));
        assert!(!refuses("{ if n == 0 { return Err(Error::NotSupported(\"x\")); } Ok(()) }"));
    }
}
