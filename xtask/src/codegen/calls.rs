//! Which functions of the layer below a body reaches (HIP's for the driver, the driver's for the runtime): read from the
//! calls in the source, through the crate's own functions. Set-up is left out.
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

/// What every runtime call does first, so that it says nothing about any of them: binding the thread to its context.
const SET_UP: &[&str] = &["attach"];

/// Methods of the standard library that our types also have: the name alone says nothing.
const EVERYWHERE: &[&str] = &[
    "load", "store", "get", "get_mut", "set", "insert", "remove", "push", "pop", "len", "iter", "lock",
    "take", "write", "read", "replace", "name", "find", "next", "call", "wait", "contains", "clear",
    "as_ptr", "cast", "map", "drop",
];

/// The layer below, by the prefix of its names.
#[derive(Clone, Copy, Debug)]
pub enum Below {
    Hip,
    Driver,
}

impl Below {
    fn owns(self, name: &str) -> bool {
        let prefix = match self {
            Self::Hip => "hip",
            Self::Driver => "cu",
        };
        name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    }
}

struct Function {
    file: usize,
    owner: Option<String>,
    name: String,
    below: Below,
    /// Calls into the layer below.
    reached: BTreeSet<String>,
    calls: BTreeSet<Call>,
}

/// C name of a body → the functions of the layer below that it reaches, sorted.
pub fn reached_by_bodies(krate: &str, below: Below) -> Result<BTreeMap<String, Vec<String>>> {
    let mut functions = Vec::new();
    let mut n_files = 0;
    read_folder(&root().join(krate).join("src"), below, &mut n_files, &mut functions)?;

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
            Call::Function(name) => {
                only(&|function| function.owner.is_none() && function.file == from.file, name)
                    .or_else(|| only(&|function| function.owner.is_none(), name))
            }
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
        if function.owner.is_some() || !function.name.trim_start_matches('_').starts_with("cu") {
            continue;
        }
        let (mut seen, mut at) = (vec![start], 0);
        let mut below = BTreeSet::new();
        while at < seen.len() {
            let current = &functions[seen[at]];
            below.extend(current.reached.iter().cloned());
            for call in &current.calls {
                if matches!(call, Call::Function(name) if SET_UP.contains(&name.as_str())) {
                    continue;
                }
                if let Some(next) = resolve(current, call)
                    && !seen.contains(&next)
                {
                    seen.push(next);
                }
            }
            at += 1;
        }
        reached.insert(function.name.clone(), below.into_iter().collect());
    }
    Ok(reached)
}

fn read_folder(
    folder: &Path,
    below: Below,
    n_files: &mut usize,
    functions: &mut Vec<Function>,
) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "generated") {
            read_folder(&path, below, n_files, functions)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = syn::parse_file(&std::fs::read_to_string(&path)?)
                .with_context(|| format!("{} is not Rust yet", path.display()))?;
            *n_files += 1;
            read_items(&file.items, below, *n_files, functions);
        }
    }
    Ok(())
}

fn read_items(items: &[Item], below: Below, file: usize, functions: &mut Vec<Function>) {
    for item in items {
        match item {
            Item::Fn(function) => {
                functions.push(read_block(
                    below,
                    file,
                    None,
                    &function.sig.ident.to_string(),
                    &function.block,
                ));
            }
            Item::Impl(block) => {
                let Type::Path(path) = &*block.self_ty else { continue };
                let owner = path.path.segments.last().map(|last| last.ident.to_string());
                for item in &block.items {
                    if let ImplItem::Fn(method) = item {
                        let name = method.sig.ident.to_string();
                        functions.push(read_block(below, file, owner.clone(), &name, &method.block));
                    }
                }
            }
            _ => {}
        }
    }
}

fn read_block(below: Below, file: usize, owner: Option<String>, name: &str, block: &syn::Block) -> Function {
    let mut function = Function {
        file,
        owner,
        name: name.to_owned(),
        below,
        reached: BTreeSet::new(),
        calls: BTreeSet::new(),
    };
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
        .map(|word| {
            word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)).collect::<String>()
        })
        .collect()
}

impl<'ast> Visit<'ast> for Function {
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let name = call.method.to_string();
        if matches!(name.as_str(), "get_or_init" | "get_or_try_init" | "call_once" | "call_once_force") {
            return self.visit_expr(&call.receiver);
        }
        if self.below.owns(&name) {
            self.reached.insert(name);
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
            "fn cuMemFree_v2(p: u64) -> Result { let c = Context::current()?; unsafe { c.hip().hipFree(p) }?; ONCE.get_or_init(|| c.hipInit(0)); forget(p); Ok(()) }",
        )
        .unwrap();
        let function = read_block(Below::Hip, 1, None, "cuMemFree_v2", &item.block);
        assert_eq!(function.reached.iter().collect::<Vec<_>>(), ["hipFree"]);
        assert!(function.calls.contains(&Call::Associated("Context".into(), "current".into())));
        assert!(function.calls.contains(&Call::Function("forget".into())));
    }
}
