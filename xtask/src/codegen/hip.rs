//! HIP's functions, from tools/data/hip/functions.json: the table through which the driver calls a provider (hip-sys; hip-recorder
//! has its exports of the same list), and the exports of the CPU device.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::facts;
use super::shells::HEAD;

const FUNCTIONS: &str = "tools/data/hip/functions.json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Function {
    name: String,
    chapter: String,
    /// Name, type in Rust, and the type that the CPU device has there where HIP's header has only `void *` or a first element.
    parameters: Vec<Vec<String>>,
    /// Whether the CPU device has it.
    #[serde(default)]
    cpu: bool,
    /// Whether only `hip_sys::negotiate` may call it: what it fills differs between ROCm's releases.
    #[serde(default)]
    negotiated: bool,
    /// The releases that brought it, for what is newer than the header that the list was read from, ROCm 6.4's.
    added: Option<String>,
}

/// Every generated file: the path, and the text.
pub fn files() -> Result<Vec<(String, String)>> {
    let functions: Vec<Function> =
        serde_json::from_str(&facts::read(FUNCTIONS)?).with_context(|| FUNCTIONS)?;
    for function in &functions {
        let whole = function.parameters.iter().all(|parameter| matches!(parameter.len(), 2 | 3));
        ensure!(whole, "{FUNCTIONS}: a parameter of {} is a name and a type, or two", function.name);
        let again = functions.iter().filter(|other| other.name == function.name).count();
        ensure!(again == 1, "{FUNCTIONS}: {} is there {again} times", function.name);
    }
    Ok(vec![
        ("crates/hip-sys/src/generated/functions.rs".to_owned(), table(&functions)?),
        ("crates/libcudaway-cpu/src/generated/exports.rs".to_owned(), exports(&functions)?),
    ])
}

fn table(functions: &[Function]) -> Result<String> {
    let mut text = format!(
        "//! The {} functions of HIP that the table has. {HEAD} from {FUNCTIONS}; do not edit.\n\n\
         /// Hands every function of the table to a macro: `fn name(argument: type, …);`, with this crate's and `core::ffi`'s types.\n\
         #[macro_export]\nmacro_rules! with_hip_functions {{\n    ($callback:ident) => {{\n        $callback! {{\n",
        functions.len()
    );
    let mut chapter = "";
    for function in functions {
        if function.chapter != chapter {
            chapter = &function.chapter;
            writeln!(text, "            // {chapter}")?;
        }
        if function.negotiated {
            writeln!(
                text,
                "            // `negotiate` alone calls it: the plain name fills the OLD layout in every ROCm, also in 6.x and 7.x."
            )?;
        }
        if let Some(added) = &function.added {
            writeln!(text, "            // ROCm {added}")?;
        }
        writeln!(text, "            fn {}({});", function.name, parameters(function, 1))?;
    }
    text.push_str("        }\n    };\n}\n");
    Ok(text)
}

fn exports(functions: &[Function]) -> Result<String> {
    let on_cpu = || functions.iter().filter(|function| function.cpu);
    let mut text = format!(
        "//! The {} functions of HIP that libcudaway_cpu.so has. {HEAD} from {FUNCTIONS}; do not edit.\n\n\
         use std::ffi::*;\n\nuse hip_sys::*;\n\nuse crate::exports::exports;\n\nexports! {{\n",
        on_cpu().count()
    );
    let mut chapter = "";
    for function in on_cpu() {
        if function.chapter != chapter {
            chapter = &function.chapter;
            writeln!(text, "    // {chapter}")?;
        }
        writeln!(text, "    {}({});", function.name, parameters(function, 2))?;
    }
    text.push_str("}\n");
    Ok(text)
}

/// `name: type, …`: the type at this place, or the last one there is.
fn parameters(function: &Function, place: usize) -> String {
    let parameter = |parameter: &Vec<String>| {
        let name = if parameter[0] == "fn" { "r#fn" } else { &parameter[0] };
        format!("{name}: {}", parameter.get(place).unwrap_or(&parameter[1]))
    };
    function.parameters.iter().map(parameter).collect::<Vec<_>>().join(", ")
}
