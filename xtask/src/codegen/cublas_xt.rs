//! cuBLASXt's routines: each is cuBLAS's own with wide integers, on the matrices as `cublas::xt` shows them to the device.

use anyhow::{Context as _, Result};

use super::facts::{Param, Signature, Signatures};

const PREFIX: &str = "cublasXt";

/// A routine's matrices and their rows and columns, in words of its parameters; the last one is written.
fn shapes(routine: &str) -> Option<&'static [(&'static str, &'static str)]> {
    Some(match routine {
        "gemm" => &[("A", "xt::shape(transa, m, k)"), ("B", "xt::shape(transb, k, n)"), ("C", "(m, n)")],
        "syrk" | "herk" => &[("A", "xt::shape(trans, n, k)"), ("C", "(n, n)")],
        "syr2k" | "her2k" | "syrkx" | "herkx" => {
            &[("A", "xt::shape(trans, n, k)"), ("B", "xt::shape(trans, n, k)"), ("C", "(n, n)")]
        }
        "symm" | "hemm" | "trmm" => &[("A", "xt::square(side, m, n)"), ("B", "(m, n)"), ("C", "(m, n)")],
        "trsm" => &[("A", "xt::square(side, m, n)"), ("B", "(m, n)")],
        // A is packed.
        "spmm" => &[("B", "(m, n)"), ("C", "(m, n)")],
        _ => return None,
    })
}

/// Letter of the type, and routine.
fn parts(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.split_at_checked(1)
}

/// cuBLAS's function that does the work of one of cuBLASXt's.
pub fn served_by(name: &str, signatures: &Signatures) -> Option<String> {
    let (letter, routine) = parts(name)?;
    shapes(routine)?;
    // What is packed is unpacked first.
    let routine = if routine == "spmm" { "symm" } else { routine };
    let names = [format!("cublas{letter}{routine}_v2_64"), format!("cublas{letter}{routine}_64")];
    names.into_iter().find(|name| signatures.contains_key(name))
}

/// The body of the export, for a routine.
pub fn statement(name: &str, signature: &Signature, signatures: &Signatures) -> Result<Option<String>> {
    let Some(served_by) = served_by(name, signatures) else { return Ok(None) };
    let shapes = parts(name).and_then(|(_, routine)| shapes(routine)).context("a routine has matrices")?;
    let written = shapes.last().map(|(matrix, _)| *matrix);
    let is_packed = signature.params.iter().any(|param| param.name == "AP");
    let mut lines = Vec::new();
    if is_packed {
        lines.push("let A = unsafe { call.unpacked(AP, side, uplo, (m, n)) }?;".to_owned());
    }
    for (matrix, shape) in shapes {
        let method = if Some(*matrix) == written { "result" } else { "matrix" };
        let ld = matrix.to_lowercase();
        lines.push(format!("let {matrix} = unsafe {{ call.{method}({matrix}, {shape}, ld{ld}) }}?;"));
    }
    let arguments: Vec<String> = signature.params.iter().map(argument).collect();
    lines.push(format!("Ok(unsafe {{ {served_by}({}) }})", arguments.join(", ")));
    let shown: Vec<_> = signature.params.iter().map(|param| format!("value {}", param.name)).collect();
    Ok(Some(format!(
        "::trace::call!(\"{name}\", ({}), {{\n        xt::call(\"{name}\", handle, |call| {{\n            {}\n        }})\n    }})",
        shown.join(", "),
        lines.join("\n            ")
    )))
}

fn argument(param: &Param) -> String {
    match param.name.as_str() {
        "handle" => "call.blas()".to_owned(),
        "AP" => "A.at, A.ld".to_owned(),
        matrix @ ("A" | "B" | "C") => format!("{matrix}.at"),
        ld if ld.starts_with("ld") => format!("{}.ld", ld[2..].to_uppercase()),
        size @ ("m" | "n" | "k") => format!("xt::size({size})?"),
        other => other.to_owned(),
    }
}
