//! Which test shows what of cuBLAS: on the CPU what tools/blas-proof has called (tools/data/cublas/shown.json, which
//! `cargo xtask test --only blas` holds against the calls), on AMD GPUs which tests of crates/libraries/cublas/api/src/hip name it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use quote::ToTokens as _;

use super::facts;
use super::hip_blas::Way;

const HIP_TESTS: [&str; 2] =
    ["crates/libraries/cublas/api/src/hip/tests.rs", "crates/libraries/cublas/api/src/hip/tests/by_hand.rs"];
/// The test that calls whatever is generated (`calls::for_c`).
const GENERATED: &str = "every_generated_routine_hands_over_what_it_was_given";

/// Name of cuBLAS's → the test's.
pub struct Shown {
    on_cpu: BTreeMap<String, String>,
    on_hip: BTreeMap<String, String>,
}

impl Shown {
    pub fn read() -> Result<Shown> {
        let programs: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> =
            facts::read_json("tools/data/cublas/shown.json")?;
        let mut on_cpu = BTreeMap::new();
        // Where several cases call a name, a comparison with NumPy says most.
        for (program, cases) in programs.iter().rev() {
            for (case, names) in cases {
                for name in names {
                    on_cpu.entry(name.clone()).or_insert_with(|| format!("{program}: {case}"));
                }
            }
        }
        let mut on_hip = BTreeMap::new();
        for path in HIP_TESTS.iter().rev() {
            on_hip.extend(tests(&facts::read(path)?).context(*path)?);
        }
        ensure!(on_hip.contains_key(GENERATED), "{} has no test {GENERATED}", HIP_TESTS[0]);
        Ok(Shown { on_cpu, on_hip })
    }

    pub fn on_cpu(&self, name: &str) -> Option<&str> {
        self.on_cpu.get(name).map(String::as_str)
    }

    pub fn on_hip(&self, name: &str, way: &Way<'_>) -> Option<&str> {
        match way {
            Way::Functions(_) => Some(GENERATED),
            _ => self.on_hip.get(name).map(String::as_str),
        }
    }
}

/// The names that tests have in their code or in what they say of themselves → the test.
fn tests(text: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for item in syn::parse_file(text)?.items {
        let syn::Item::Fn(function) = item else { continue };
        if !function.attrs.iter().any(|attribute| attribute.path().is_ident("test")) {
            continue;
        }
        let test = function.sig.ident.to_string();
        let code = function.to_token_stream().to_string();
        let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        for name in words.filter(|word| word.starts_with("cublas")) {
            found.entry(name.to_owned()).or_insert_with(|| test.clone());
        }
        // So that its being there is known.
        found.entry(test.clone()).or_insert(test);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_by_the_first_test_that_has_it() {
        let text = "/// Of cublasLtMatmul.\n#[test] fn one() { f(calls::cublasSgemm_v2) }\n\
                    #[test] fn two() { by_hand::cublasSgemm_v2(); cublasDgemm_v2!() }\nfn three() { cublasCgemm_v2() }";
        let found = tests(text).unwrap();
        let shown: Vec<_> = found.iter().map(|(name, test)| (name.as_str(), test.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("cublasDgemm_v2", "two"),
                ("cublasLtMatmul", "one"),
                ("cublasSgemm_v2", "one"),
                ("one", "one"),
                ("two", "two")
            ]
        );
    }
}
