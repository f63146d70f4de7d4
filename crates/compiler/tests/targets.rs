//! What a source may say under its `.version` and `.target` is what NVIDIA's assembler takes: every form of
//! `tools/data/ptx/opcodes.tsv`, on every target from sm_50, beside ptxas of the toolkit in `.venv`. A run asks for a
//! sample of the pairs of version and target; `SEED=7` draws that sample again, `SEED=all` takes every pair.

mod opcodes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::{Program, Source};
use opcodes::kernel::{self, TARGETS, VERSIONS};

/// Pairs that a run asks for.
const SAMPLE: usize = 12;

fn ptxas() -> Option<PathBuf> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let pythons = std::fs::read_dir(lib).ok()?;
    let paths = pythons.flatten().map(|it| it.path().join("site-packages/nvidia/cu13/bin/ptxas"));
    paths.into_iter().find(|path| path.exists())
}

/// The forms that ptxas refuses, with what it says first.
fn refused_by_ptxas(
    ptxas: &Path,
    folder: &Path,
    version: &str,
    target: &str,
    forms: &[String],
) -> BTreeMap<usize, String> {
    let mut refused = BTreeMap::new();
    let digits = target.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
    let letter = &target["sm_".len() + digits.len()..];
    // Its oldest GPU is sm_75; a virtual one makes it stop behind the checks.
    let gpu = format!("compute_{}{letter}", digits.parse::<u32>().unwrap().max(75));
    for mode in [false, true] {
        let mut left: Vec<usize> =
            (0..forms.len()).filter(|&at| kernel::is_independent(&forms[at]) == mode).collect();
        while !left.is_empty() {
            let some: Vec<&str> = left.iter().map(|&at| forms[at].as_str()).collect();
            let (text, first) = kernel::text(version, target, mode, &some);
            let (input, output) = (folder.join("forms.ptx"), folder.join("forms.cubin"));
            std::fs::write(&input, text).unwrap();
            let ran = Command::new(ptxas)
                .args(["--gpu-name", &gpu, "-o"])
                .args([&output, &input])
                .output()
                .unwrap();
            assert!(ran.status.code().is_some(), "ptxas crashes for {version} {target}");
            let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
            let mut behind = left.len();
            for line in said.lines() {
                let Some((_, rest)) = line.split_once(", line ") else { continue };
                let Some((number, message)) = rest.split_once(';') else { continue };
                let is_fatal = message.trim_start().starts_with("fatal");
                if !is_fatal && !message.trim_start().starts_with("error") {
                    continue;
                }
                let number: usize = number.parse().unwrap();
                // In front are declarations, which every target is given.
                let Some(at) = number.checked_sub(first).filter(|&at| at < left.len()) else { continue };
                refused.entry(left[at]).or_insert_with(|| message.trim().to_owned());
                if is_fatal {
                    behind = at + 1;
                }
            }
            left.drain(..behind);
        }
    }
    refused
}

#[test]
fn a_form_is_taken_where_ptxas_takes_it() {
    let Some(ptxas) = ptxas() else { return testkit::skip!("ptxas in .venv") };
    let folder = testkit::temporary().unwrap();
    let forms: Vec<String> = opcodes::rows().iter().flat_map(|row| opcodes::expand(&row.example)).collect();
    assert!(forms.len() > 7000, "only {}", forms.len());
    let pairs: Vec<(&str, &str)> = TARGETS
        .iter()
        .flat_map(|&(target, since)| {
            let versions = VERSIONS.iter().skip_while(move |&&version| version != since);
            versions.map(move |&version| (version, target))
        })
        .collect();
    let seed = std::env::var("SEED").unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        now.subsec_nanos().to_string()
    });
    let chosen: Vec<(&str, &str)> = match seed.as_str() {
        "all" => pairs,
        number => {
            let mut state: u64 = number.parse().expect("SEED is a number or `all`");
            let mut draw = || {
                // Knuth's MMIX generator; its high bits are good enough to choose by.
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                pairs[(state >> 33) as usize % pairs.len()]
            };
            draw();
            (0..SAMPLE).map(|_| draw()).collect()
        }
    };
    let (mut wrong, mut n_refused) = (vec![], 0);
    for &(version, target) in &chosen {
        let theirs = refused_by_ptxas(&ptxas, folder.path(), version, target, &forms);
        let (ours, missing) = kernel::refused(version, target, &forms);
        n_refused += theirs.len();
        for (at, form) in forms.iter().enumerate() {
            match (theirs.get(&at), ours.get(&at)) {
                // What is not there says so, whoever may use it.
                (None, None) => {}
                (Some(_), Some(_)) => {}
                (None, Some(said)) => {
                    wrong.push(format!("{version} {target} {form}: only we refuse it: {said}"))
                }
                (Some(said), None) => {
                    let what = if missing.contains(&at) {
                        "we say that it is missing"
                    } else {
                        "only ptxas refuses it"
                    };
                    wrong.push(format!("{version} {target} {form}: {what}: {said}"));
                }
            }
        }
    }
    println!("SEED={seed}: {} pairs, {n_refused} refusals", chosen.len());
    wrong.sort();
    let some = wrong.iter().take(200).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "SEED={seed}: {} verdicts differ:\n{some}", wrong.len());
}

#[test]
fn a_refusal_names_the_token_and_what_would_have_it() {
    let first = |version: &str, target: &str, form: &str| {
        let (text, _) = kernel::text(version, target, false, &[form]);
        let program = Program::load(&[Source { name: "one.ptx".to_owned(), text: text.clone() }]).unwrap();
        let diagnostic = program.diagnostics.first().unwrap_or_else(|| panic!("{form} is taken")).clone();
        let line = text.lines().nth(diagnostic.line as usize - 1).unwrap().to_owned();
        (line[diagnostic.column as usize - 1..].to_owned(), diagnostic.message)
    };
    let (token, message) = first("8.0", "sm_90", "wgmma.fence.sync.aligned");
    assert!(token.starts_with("wgmma"), "{token}");
    assert_eq!(message, "'wgmma.fence.sync.aligned' needs '.target' sm_90a");
    let (token, message) =
        first("8.6", "sm_90", "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r1], 16, %h1");
    assert!(token.starts_with("cp_mask") || token.starts_with(".cp_mask"), "{token}");
    assert_eq!(message, "'.cp_mask' of 'cp' needs '.target' sm_100 or later");
    let (token, message) = first("8.0", "sm_90", "fma.rn.oob.f16 %h1, %h2, %h3, %h4");
    assert!(token.trim_start_matches('.').starts_with("oob"), "{token}");
    assert_eq!(message, "'.oob' of 'fma' needs '.version' 8.1, which is 8.0 here");
    let (_, message) = first("8.6", "sm_100", "tcgen05.wait::ld.sync.aligned");
    assert_eq!(
        message,
        "'tcgen05.wait::ld.sync.aligned' needs '.target' sm_100f (or its family) or sm_110f (or its family)"
    );
    let (token, message) = first("7.7", "sm_80", "mov.u32 %r1, %cluster_ctarank");
    assert!(token.starts_with("%cluster_ctarank"), "{token}");
    assert_eq!(message, "'%cluster_ctarank' needs '.target' sm_90 or later");
    let (_, message) = first("6.4", "sm_70", "vote.all.pred %p1, %p2");
    assert_eq!(message, "'vote.all.pred' is gone since '.version' 6.4 for this target");
}

#[test]
fn a_target_is_taken_since_its_version() {
    let load = |version: &str, target: &str| {
        let (text, _) = kernel::text(version, target, false, &[]);
        Program::load(&[Source { name: "one.ptx".to_owned(), text }]).map(drop)
    };
    for &(target, since) in TARGETS {
        let before = VERSIONS.iter().take_while(|&&version| version != since).last();
        assert!(load(since, target).is_ok(), "{target}");
        if let Some(before) = before {
            let wrong = load(before, target).expect_err(target);
            assert_eq!(
                wrong[0].message,
                format!("'.target' {target} needs '.version' {since}, which is {before} here")
            );
        }
    }
}
