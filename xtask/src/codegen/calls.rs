//! Which HIP functions a driver body reaches: read from the calls in the source, through the crate's own functions.
//!
//! A name is followed when it is clear which function is meant: `Type::method`, a function of the same file, `stream.method()`
//! where the crate has a type `Stream`, a method that only one type of the crate has and the standard library has not. What a trait object or a closure hides is not seen; a `HIP:` line in the doc comment adds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, ExprMethodCall, ImplItem, Item, Type};

use crate::setup::root;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    Function(String),
    Associated(String, String),
    /// The receiver, if it says its type, and the method.
    Method(Option<String>, String),
}

/// Methods of the standard library that our types also have: the name alone says nothing.
const EVERYWHERE: &[&str] = &[
    "load", "store", "get", "get_mut", "set", "insert", "remove", "push", "pop", "len", "iter", "lock", "take", "write",
    "read", "replace", "name", "find", "next", "call", "wait", "contains", "clear", "as_ptr", "cast", "map", "drop",
];

#[derive(Default)]
struct Function {
    file: usize,
    owner: Option<String>,
    name: String,
    hip: BTreeSet<String>,
    calls: BTreeSet<Call>,
}

/// C name of a body → the HIP functions it reaches, sorted.
pub fn hip_of_bodies(krate: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut functions = Vec::new();
    let mut n_files = 0;
    read_folder(&root().join(krate).join("src"), &mut n_files, &mut functions)?;

    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        by_name.entry(&function.name).or_default().push(index);
    }
    let resolve = |from: &Function, call: &Call| -> Option<usize> {
        let only = |wanted: &dyn Fn(&Function) -> bool, name: &str| {
            let mut found = by_name.get(name)?.iter().copied().filter(|index| wanted(&functions[*index]));
            let first = found.next()?;
            found.next().is_none().then_some(first)
        };
        match call {
            Call::Function(name) => only(&|function| function.owner.is_none() && function.file == from.file, name)
                .or_else(|| only(&|function| function.owner.is_none(), name)),
            Call::Associated(owner, name) => {
                let owner = if owner == "Self" { from.owner.as_ref()? } else { owner };
                only(&|function| function.owner.as_ref() == Some(owner), name)
                    .or_else(|| only(&|function| function.owner.is_none(), name))
            }
            Call::Method(receiver, name) => receiver
                .as_ref()
                .and_then(|receiver| {
                    let owner = if receiver == "self" { from.owner.clone()? } else { camel(receiver) };
                    only(&|function| function.owner.as_ref() == Some(&owner), name)
                })
                .or_else(|| {
                    let unclear = EVERYWHERE.contains(&name.as_str());
                    if unclear { None } else { only(&|function| function.owner.is_some(), name) }
                }),
        }
    };

    let mut reached = BTreeMap::new();
    for (start, function) in functions.iter().enumerate() {
        if function.owner.is_some() || !function.name.starts_with("cu") {
            continue;
        }
        let (mut seen, mut at) = (vec![start], 0);
        let mut hip = BTreeSet::new();
        while at < seen.len() {
            let current = &functions[seen[at]];
            hip.extend(current.hip.iter().cloned());
            for call in &current.calls {
                if let Some(next) = resolve(current, call)
                    && !seen.contains(&next)
                {
                    seen.push(next);
                }
            }
            at += 1;
        }
        reached.insert(function.name.clone(), hip.into_iter().collect());
    }
    Ok(reached)
}

fn read_folder(folder: &Path, n_files: &mut usize, functions: &mut Vec<Function>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "generated") {
            read_folder(&path, n_files, functions)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = syn::parse_file(&std::fs::read_to_string(&path)?)
                .with_context(|| format!("{} is not Rust yet", path.display()))?;
            *n_files += 1;
            read_items(&file.items, *n_files, functions);
        }
    }
    Ok(())
}

fn read_items(items: &[Item], file: usize, functions: &mut Vec<Function>) {
    for item in items {
        match item {
            Item::Fn(function) => {
                functions.push(read_block(file, None, &function.sig.ident.to_string(), &function.block));
            }
            Item::Impl(block) => {
                let Type::Path(path) = &*block.self_ty else { continue };
                let owner = path.path.segments.last().map(|last| last.ident.to_string());
                for item in &block.items {
                    if let ImplItem::Fn(method) = item {
                        let name = method.sig.ident.to_string();
                        functions.push(read_block(file, owner.clone(), &name, &method.block));
                    }
                }
            }
            _ => {}
        }
    }
}

fn read_block(file: usize, owner: Option<String>, name: &str, block: &syn::Block) -> Function {
    let mut function = Function { file, owner, name: name.to_owned(), ..Function::default() };
    function.visit_block(block);
    function
}

/// `stream` of `stream.wait()`, `Stream` of `Stream::from_handle(h)?.wait()`.
fn receiver(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
        Expr::Try(inner) => receiver(&inner.expr),
        Expr::Paren(inner) => receiver(&inner.expr),
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else { return None };
            let owner = path.path.segments.iter().rev().nth(1)?.ident.to_string();
            owner.starts_with(|c: char| c.is_ascii_uppercase()).then_some(owner)
        }
        _ => None,
    }
}

/// `memory_pool` → `MemoryPool`
fn camel(name: &str) -> String {
    name.split('_')
        .map(|word| word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>())
        .collect()
}

fn is_hip(name: &str) -> bool {
    name.strip_prefix("hip").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

impl<'ast> Visit<'ast> for Function {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        if is_hip(&name) {
            self.hip.insert(name);
        } else {
            self.calls.insert(Call::Method(receiver(&call.receiver), name));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let names: Vec<String> = path.path.segments.iter().map(|part| part.ident.to_string()).collect();
            match &names[..] {
                [name] => _ = self.calls.insert(Call::Function(name.clone())),
                [.., owner, name] if owner.starts_with(|c: char| c.is_ascii_uppercase()) => {
                    self.calls.insert(Call::Associated(owner.clone(), name.clone()));
                }
                [.., name] => _ = self.calls.insert(Call::Function(name.clone())),
                [] => {}
            }
        }
        visit::visit_expr_call(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hip_calls_are_found_in_a_block() {
        let item: syn::ItemFn = syn::parse_str(
            "fn cuMemFree_v2(p: u64) -> Result { let c = Context::current()?; unsafe { c.hip().hipFree(p) }?; forget(p); Ok(()) }",
        )
        .unwrap();
        let function = read_block(1, None, "cuMemFree_v2", &item.block);
        assert_eq!(function.hip.iter().collect::<Vec<_>>(), ["hipFree"]);
        assert!(function.calls.contains(&Call::Associated("Context".into(), "current".into())));
        assert!(function.calls.contains(&Call::Function("forget".into())));
    }
}
