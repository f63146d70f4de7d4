//! hipBLAS behind cuBLAS: for each routine of a handle, the hipBLAS functions that do the same work, in the forms that they
//! have in ROCm's releases, with each argument converted by its C types.
//!
//! `tools/data/hip/cublas.json` has what names and types do not say: routines under another name, those written by hand, and
//! those that hipBLAS has nothing for, each with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::facts::{self, Param, Signature};

const HIPBLAS: &str = "tools/data/hip/hipblas.json";
const HIPBLASLT: &str = "tools/data/hip/hipblaslt.json";
const CUBLAS: &str = "tools/data/hip/cublas.json";

/// What is known of cuBLAS's routines on hipBLAS besides their names and types.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    /// cuBLAS routine → hipBLAS functions that are tried after the one of the same name.
    other_names: BTreeMap<String, Vec<String>>,
    /// What is done, in crates/libraries/cublas/api/src/hip/by_hand/otherwise.rs, where a release has no function that fits.
    otherwise: BTreeMap<String, String>,
    /// Routines whose bodies are in crates/libraries/cublas/api/src/hip/by_hand.
    by_hand: BTreeSet<String>,
    /// Calls that only say or change what our own handle keeps.
    ours: BTreeSet<String>,
    /// Why hipBLAS cannot do the work of a routine.
    none: BTreeMap<String, String>,
}

/// Name → the releases that have a form of it, oldest first → the form: `name: type, …`.
type Functions = BTreeMap<String, BTreeMap<String, String>>;

/// One hipBLAS function as some releases have it.
struct Form<'f> {
    name: &'f str,
    params: Vec<(&'f str, &'f str)>,
    /// In Rust, for a function that has another form in other releases.
    condition: Option<String>,
}

/// A routine of a handle that hipBLAS has, and what is tried in turn: (function, condition, arguments).
struct Routine<'f> {
    name: &'f str,
    params: &'f [Param],
    calls: Vec<(&'f str, Option<String>, String)>,
    /// A function with wide integers, when there is none of these.
    otherwise: Option<&'f str>,
}

/// What hipBLAS does for cuBLAS.
pub struct OnHip {
    /// `crates/libraries/cublas/api/src/generated/hip_calls.rs`
    pub calls: String,
    generated: BTreeMap<String, Vec<String>>,
    by_hand: BTreeSet<String>,
    ours: BTreeSet<String>,
    none: BTreeMap<String, String>,
    other_names: BTreeMap<String, Vec<String>>,
    lt: BTreeSet<String>,
}

/// How a name of cuBLAS's is answered on an AMD GPU.
pub enum Way<'a> {
    /// By one of these functions of hipBLAS's.
    Functions(&'a [String]),
    ByHand,
    /// Not at all; why.
    Lacks(&'a str),
    /// By what our handle keeps.
    Ours,
    /// It takes no handle of cuBLAS's.
    Elsewhere,
}

impl OnHip {
    pub fn read(signatures: &facts::Signatures) -> Result<OnHip> {
        let functions: Functions = facts::read_json(HIPBLAS)?;
        let exceptions: Exceptions = facts::read_json(CUBLAS)?;
        let routines = routines(&functions, signatures, &exceptions)?;
        Ok(OnHip {
            calls: calls(&routines)?,
            generated: routines
                .iter()
                .map(|routine| {
                    let functions: BTreeSet<_> = routine.calls.iter().map(|call| call.0.to_owned()).collect();
                    (routine.name.to_owned(), functions.into_iter().collect())
                })
                .collect(),
            by_hand: exceptions.by_hand,
            ours: exceptions.ours,
            none: exceptions.none,
            other_names: exceptions.other_names,
            lt: facts::read_json::<Functions>(HIPBLASLT)?.into_keys().collect(),
        })
    }

    /// The function below `cublas::hip` that does a routine's work.
    pub fn path(&self, name: &str) -> Option<String> {
        let module = match (self.generated.contains_key(name), self.by_hand.contains(name)) {
            (true, _) => "calls",
            (false, true) => "by_hand",
            (false, false) => return None,
        };
        Some(format!("{module}::{name}"))
    }

    /// Whether hipBLASLt has a function for the name.
    pub fn has_lt(&self, name: &str) -> bool {
        name.strip_prefix("cu").is_some_and(|plain| self.lt.contains(&format!("hip{plain}")))
            || self
                .other_names
                .get(name)
                .is_some_and(|others| others.iter().any(|other| self.lt.contains(other)))
    }

    pub fn way(&self, name: &str) -> Way<'_> {
        if let Some(functions) = self.generated.get(name) {
            Way::Functions(functions)
        } else if let Some(reason) = self.none.get(name) {
            Way::Lacks(reason)
        } else if self.by_hand.contains(name) {
            Way::ByHand
        } else if self.ours.contains(name) {
            Way::Ours
        } else {
            Way::Elsewhere
        }
    }
}

fn calls(routines: &[Routine<'_>]) -> Result<String> {
    let used: BTreeSet<&str> =
        routines.iter().flat_map(|routine| routine.calls.iter().map(|call| call.0)).collect();

    let mut text = String::from(
        "//! cuBLAS's routines on hipBLAS, and the entries of hipBLAS that they use.\n\
         //! Generated by `cargo xtask codegen` from tools/data/cublas and tools/data/hip; do not edit.\n\n\
         use core::ffi::{c_int, c_longlong, c_void};\n\n\
         use crate::hip::Release;\n\
         use crate::hip::call::{hand_on, routines};\n\
         use crate::hip::convert::*;\n\
         use crate::hip::library::Entry;\n\
         use crate::*;\n\n",
    );
    for (index, name) in used.iter().enumerate() {
        writeln!(text, "pub const {name}: Entry = Entry {{ index: {index}, name: c\"{name}\" }};")?;
    }
    writeln!(text, "\npub const N_ENTRIES: usize = {};\n\nroutines! {{\n    hip;", used.len())?;
    for routine in routines {
        write_routine(&mut text, routine)?;
    }
    text.push_str("}\n");
    Ok(text)
}

fn write_routine(text: &mut String, routine: &Routine<'_>) -> Result<()> {
    let params: Vec<_> = routine.params.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
    writeln!(text, "    fn {}({}) {{", routine.name, params.join(", "))?;
    for (name, condition, arguments) in &routine.calls {
        let call = format!("hand_on!(hip, {name}({arguments}));");
        match condition {
            Some(condition) => writeln!(text, "        if {condition} {{ {call} }}")?,
            None => writeln!(text, "        {call}")?,
        }
    }
    if let Some(function) = routine.otherwise {
        let arguments = routine.params.iter().map(|param| match param.ty.as_str() {
            "c_int" => format!("i64::from({})", param.name),
            _ => param.name.clone(),
        });
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let call = format!("unsafe {{ crate::hip::by_hand::otherwise::{function}(hip, {arguments}) }}");
        writeln!(text, "        if let Some(answer) = {call} {{ return answer; }}")?;
    }
    text.push_str("    }\n");
    Ok(())
}

/// The routines that take cuBLAS's handle and are work for a device, without the handle.
fn of_a_handle(signature: &Signature) -> Option<&[Param]> {
    let (handle, rest) = signature.params.split_first()?;
    (handle.ty == "cublasHandle_t").then_some(rest)
}

fn routines<'f>(
    functions: &'f Functions,
    signatures: &'f facts::Signatures,
    exceptions: &'f Exceptions,
) -> Result<Vec<Routine<'f>>> {
    let mut routines = Vec::new();
    for (name, signature) in signatures {
        let Some(params) = of_a_handle(signature) else { continue };
        let said = [
            exceptions.by_hand.contains(name),
            exceptions.ours.contains(name),
            exceptions.none.contains_key(name),
        ];
        let calls = if said.contains(&true) {
            Vec::new()
        } else {
            candidates(name, functions, exceptions)?
                .into_iter()
                .filter_map(|form| Some((form.name, form.condition, arguments(params, &form.params)?)))
                .collect()
        };
        ensure!(
            said.iter().filter(|&&is_so| is_so).count() + usize::from(!calls.is_empty()) == 1,
            "{name}: {HIPBLAS} has nothing that fits, or {CUBLAS} speaks of it more than once"
        );
        if !calls.is_empty() {
            let otherwise = exceptions.otherwise.get(name).map(String::as_str);
            routines.push(Routine { name, params, calls, otherwise });
        }
    }
    Ok(routines)
}

/// hipBLAS's functions of the routine's name, the widest integers and the newest data types first.
fn candidates<'f>(
    routine: &str,
    functions: &'f Functions,
    exceptions: &'f Exceptions,
) -> Result<Vec<Form<'f>>> {
    let plain = routine.strip_prefix("cublas").with_context(|| routine.to_owned())?;
    let (plain, is_wide) = plain.strip_suffix("_64").map_or((plain, false), |plain| (plain, true));
    let stem = format!("hipblas{}", plain.strip_suffix("_v2").unwrap_or(plain));
    let mut stems = vec![stem];
    stems.extend(exceptions.other_names.get(routine).into_iter().flatten().cloned());
    let mut forms = Vec::new();
    for suffix in if is_wide { &["_64", ""][..] } else { &[""] } {
        for stem in &stems {
            // ROCm 6 has functions of today's data types under names with `_v2`, beside the old ones. There are such names
            // for complex numbers too, which were renamed and are as before.
            let has_types =
                |forms: &BTreeMap<String, String>| forms.values().any(|form| form.contains("hipDataType"));
            let version_2 = functions.get_key_value(&format!("{stem}_v2{suffix}"));
            let plain = functions.get_key_value(&format!("{stem}{suffix}"));
            for (name, known) in version_2.filter(|(_, forms)| has_types(forms)).into_iter().chain(plain) {
                forms.extend(forms_of(name, known)?);
            }
        }
    }
    Ok(forms)
}

fn forms_of<'f>(name: &'f str, known: &'f BTreeMap<String, String>) -> Result<Vec<Form<'f>>> {
    known
        .iter()
        .map(|(releases, params)| {
            let params = params.split(", ").map(|param| param.split_once(": ").context(name.to_owned()));
            let majors: Vec<&str> = releases
                .split(' ')
                .filter_map(|release| release.split_once('.'))
                .map(|(major, _)| major)
                .collect();
            let (Some(first), Some(last)) = (majors.first(), majors.last()) else {
                bail!("{name}: no release")
            };
            let is_oldest = known.keys().all(|other| releases <= other);
            let condition = match (known.len(), is_oldest) {
                (1, _) => None,
                (_, true) => Some(format!("hip.release() <= Release::Rocm{last}")),
                (_, false) => Some(format!("hip.release() >= Release::Rocm{first}")),
            };
            Ok(Form { name, params: params.collect::<Result<_>>()?, condition })
        })
        .collect()
}

/// The arguments behind the handle, `type = value`; `None` where the function asks for something else than the routine has.
fn arguments(routine: &[Param], function: &[(&str, &str)]) -> Option<String> {
    let (_handle, function) = function.split_first()?;
    if routine.len() != function.len() {
        return None;
    }
    let first_type = routine.iter().find(|param| param.ty.starts_with("cudaDataType"));
    let arguments: Option<Vec<String>> = routine
        .iter()
        .zip(function)
        .map(|(param, (_, hip))| {
            let value = value(&param.name, &param.ty, hip, first_type.map(|param| param.name.as_str()))?;
            Some(format!("{hip} = {value}"))
        })
        .collect();
    Some(arguments?.join(", "))
}

/// What is handed on for a parameter of cuBLAS's type `cuda` where hipBLAS's is `hip`. `data_type` names the routine's first
/// parameter that says a type of data.
fn value(name: &str, cuda: &str, hip: &str, data_type: Option<&str>) -> Option<String> {
    Some(match (cuda, hip) {
        _ if cuda.starts_with('*') => return pointer(name, cuda, hip),
        ("c_int", "c_int")
        | ("i64" | "c_longlong", "i64")
        | ("cudaDataType" | "cudaDataType_t", "hipDataType") => name.to_owned(),
        ("i64" | "c_longlong", "c_int") => format!("narrow({name})?"),
        ("cublasOperation_t", "hipblasOperation_t") => format!("operation({name})?"),
        ("cublasFillMode_t", "hipblasFillMode_t") => format!("fill_mode({name})?"),
        ("cublasDiagType_t", "hipblasDiagType_t") => format!("diagonal({name})?"),
        ("cublasSideMode_t", "hipblasSideMode_t") => format!("side_mode({name})?"),
        ("cudaDataType" | "cudaDataType_t", "hipblasDatatype_t") => format!("old_data_type({name})?"),
        ("cublasComputeType_t", "hipblasComputeType_t") => format!("compute_type({name})?"),
        ("cublasComputeType_t", "hipblasDatatype_t") => format!("old_compute_type({name}, {})?", data_type?),
        ("cublasGemmAlgo_t", "hipblasGemmAlgo_t") => format!("algorithm({name})"),
        _ => return None,
    })
}

fn pointer(name: &str, cuda: &str, hip: &str) -> Option<String> {
    let (cuda_stars, cuda_to) = pointee(cuda);
    let (hip_stars, hip_to) = pointee(hip);
    let same = match cuda_to {
        "cuComplex" => "hipComplex",
        "cuDoubleComplex" => "hipDoubleComplex",
        "__half" => "hipblasHalf",
        "__nv_bfloat16" => "hipblasBfloat16",
        other => other,
    };
    if cuda_stars.len() != hip_stars.len() || same != hip_to {
        return None;
    }
    Some(match (cuda_stars == hip_stars, cuda_stars[0]) {
        (true, _) => name.to_owned(),
        // hipBLAS does not say `const` everywhere where nothing is written.
        (false, "*const") => format!("{name}.cast_mut().cast()"),
        (false, _) => format!("{name}.cast()"),
    })
}

/// `*const *mut f32` → (`*const`, `*mut`), `f32`.
fn pointee(ty: &str) -> (Vec<&str>, &str) {
    let mut words: Vec<&str> = ty.split(' ').collect();
    let to = words.pop().unwrap_or_default();
    (words, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_handed_on_as_hipblas_wants_it() {
        assert_eq!(value("n", "i64", "c_int", None).as_deref(), Some("narrow(n)?"));
        assert_eq!(value("x", "*const cuComplex", "*const hipComplex", None).as_deref(), Some("x"));
        assert_eq!(
            value("A", "*const *const f32", "*const *mut f32", None).as_deref(),
            Some("A.cast_mut().cast()")
        );
        // Not the same thing: an index of 32 bits, where 64 are asked for.
        assert_eq!(value("result", "*mut i64", "*mut c_int", None), None);
        assert_eq!(value("alpha", "*const f32", "*const f64", None), None);
    }

    #[test]
    fn a_form_of_some_releases_has_a_condition() {
        let known = BTreeMap::from([
            ("5.2 5.7 6.4".to_owned(), "handle: hipblasHandle_t".to_owned()),
            ("7.2".to_owned(), "handle: hipblasHandle_t, n: c_int".to_owned()),
        ]);
        let conditions: Vec<_> = forms_of("f", &known).unwrap().into_iter().map(|f| f.condition).collect();
        assert_eq!(
            conditions,
            [
                Some("hip.release() <= Release::Rocm6".to_owned()),
                Some("hip.release() >= Release::Rocm7".to_owned())
            ]
        );
    }
}
