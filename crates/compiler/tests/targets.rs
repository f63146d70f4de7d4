//! What a source may say under its `.version` and `.target` is what NVIDIA's assembler takes: every form of
//! `tools/data/ptx/opcodes.tsv`, and directives and declarations, on every target from sm_50, beside ptxas of the toolkit in
//! `.venv`. A run asks for a sample of the pairs of version and target; `SEED=7` draws that sample again, `SEED=all` takes
//! every pair, `SEED=3/20` every twentieth from the third on. And 10,000 forms with one thing changed (`mutation`), the same
//! in every run, others by `SEED=7`: both have to take them, or both refuse them.

mod mutation;
mod opcodes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use compiler::{Diagnostic, Program, Source};
use mutation::Side;
use opcodes::kernel::{self, TARGETS, VERSIONS};

/// Pairs that a run asks for.
const SAMPLE: usize = 12;

fn ptxas() -> Option<PathBuf> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let pythons = std::fs::read_dir(lib).ok()?;
    let paths = pythons.flatten().map(|it| it.path().join("site-packages/nvidia/cu13/bin/ptxas"));
    paths.into_iter().find(|path| path.exists())
}

/// What ptxas is to compile for: its oldest GPU is sm_75, and a virtual one makes it stop behind the checks.
fn gpu(target: &str) -> String {
    let digits = target.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
    let letter = &target["sm_".len() + digits.len()..];
    format!("compute_{}{letter}", digits.parse::<u32>().unwrap().max(75))
}

/// ptxas with a bound on its memory: there are forms of which it takes all that it gets.
fn bounded(ptxas: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2000000; exec \"$0\" \"$@\""]).arg(ptxas);
    command
}

/// The forms that ptxas refuses, with what it says first. It checks in several passes, of which a later one is not begun
/// where an earlier one has found something: `is_thorough` asks again for what was not refused, until nothing is. Then
/// forms at which it crashes are not its verdict, and are in the second list.
fn refused_by_ptxas(
    ptxas: &Path,
    folder: &Path,
    version: &str,
    target: &str,
    forms: &[String],
    is_thorough: bool,
) -> (BTreeMap<usize, String>, BTreeSet<usize>) {
    let (mut refused, mut crashing) = (BTreeMap::new(), BTreeSet::new());
    let gpu = gpu(target);
    let mut work: Vec<(bool, Vec<usize>)> = [false, true]
        .map(|mode| {
            (mode, (0..forms.len()).filter(|&at| kernel::is_independent(&forms[at]) == mode).collect())
        })
        .into();
    while let Some((mode, mut left)) = work.pop() {
        if left.is_empty() {
            continue;
        }
        let some: Vec<&str> = left.iter().map(|&at| forms[at].as_str()).collect();
        let (text, first) = kernel::text(version, target, mode, &some);
        let (input, output) = (folder.join("forms.ptx"), folder.join("forms.cubin"));
        std::fs::write(&input, text).unwrap();
        let ran = bounded(ptxas).args(["--gpu-name", &gpu, "-o"]).args([&output, &input]).output().unwrap();
        assert!(is_thorough || ran.status.code().is_some(), "ptxas crashes for {version} {target}");
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        let (mut behind, n_before) = (left.len(), refused.len());
        for line in said.lines() {
            // What it makes of a form has lines of its own, in a file of another name.
            let Some((_, rest)) = line.split_once("forms.ptx, line ") else { continue };
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
        if is_thorough && refused.len() > n_before {
            left.retain(|at| !refused.contains_key(at));
        } else if is_thorough && !ran.status.success() {
            // It crashes, or names a line of what it makes of a form: which one it is, halves tell.
            let second = left.split_off(left.len() / 2);
            match (left.is_empty(), ran.status.code()) {
                (true, None) => crashing.extend(second),
                (true, Some(_)) => refused.extend(second.iter().map(|&at| (at, said.clone()))),
                (false, _) => work.push((mode, second)),
            }
        } else {
            left.drain(..behind);
        }
        work.push((mode, left));
    }
    (refused, crashing)
}

/// Whether ptxas fails at the form where it makes code of it, behind its checks.
fn fails_behind_the_checks(ptxas: &Path, folder: &Path, version: &str, target: &str, form: &str) -> bool {
    let (text, _) = kernel::text(version, target, kernel::is_independent(form), &[form]);
    let (input, output) = (folder.join("form.ptx"), folder.join("form.cubin"));
    std::fs::write(&input, text).unwrap();
    let gpu = gpu(target).replace("compute_", "sm_");
    // Without optimisations, which would find that nobody asks for the result.
    let mut command = bounded(ptxas);
    command.args(["-O0", "--gpu-name", &gpu, "-o"]).args([&output, &input]);
    !command.output().unwrap().status.success()
}

/// Whether what ptxas says is about an instruction that it makes of the form, and not about the form.
fn is_about_another(said: &str, form: &str) -> bool {
    let named = said.split_once("for instruction '").and_then(|it| it.1.split('\'').next());
    let opcode = named.map(|name| name.split('.').next().unwrap_or(name));
    opcode.is_some_and(|opcode| !form.split([' ', '.']).take(3).any(|word| word == opcode))
}

#[test]
fn a_form_is_taken_where_ptxas_takes_it() {
    let Some(ptxas) = ptxas() else { return testkit::skip!("ptxas in .venv") };
    let folder = testkit::temporary().unwrap();
    let forms: Vec<String> = opcodes::rows().iter().flat_map(|row| opcodes::expand(&row.example)).collect();
    assert!(forms.len() > 7000, "only {}", forms.len());
    let (seed, chosen) = drawn();
    let (mut wrong, mut n_refused) = (vec![], 0);
    for &(version, target) in &chosen {
        let (theirs, _) = refused_by_ptxas(&ptxas, folder.path(), version, target, &forms, false);
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

/// The seed, and the pairs of version and target that it draws.
fn drawn() -> (String, Vec<(&'static str, &'static str)>) {
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
        // Every twentieth pair from the third on: part of all of them.
        part if part.contains('/') => {
            let numbers = part.split_once('/').map(|(nth, of)| (nth.parse::<usize>(), of.parse::<usize>()));
            let Some((Ok(nth), Ok(of))) = numbers else { panic!("SEED is a number, `3/20` or `all`") };
            assert!((1..=of).contains(&nth), "of SEED={part}: parts are counted from 1");
            pairs.into_iter().skip(nth - 1).step_by(of).collect()
        }
        number => {
            let mut state: u64 = number.parse().expect("SEED is a number, `3/20` or `all`");
            let mut draw = || {
                // Knuth's MMIX generator; its high bits are good enough to choose by.
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                pairs[(state >> 33) as usize % pairs.len()]
            };
            draw();
            (0..SAMPLE).map(|_| draw()).collect()
        }
    };
    (seed, chosen)
}

/// Forms with one thing changed that are asked for: the same in every run, and others with `SEED=7`.
const CHANGED: usize = 10_000;

/// Pairs under which changed forms stand: what most forms are of, all that have targets of their own, and old ones.
const CHANGED_UNDER: &[(&str, &str)] = &[
    ("9.5", "sm_90a"),
    ("9.5", "sm_100a"),
    ("9.5", "sm_120a"),
    ("9.5", "sm_103f"),
    ("9.5", "sm_110a"),
    ("9.5", "sm_107a"),
    ("9.5", "sm_90"),
    ("9.0", "sm_90a"),
    ("8.6", "sm_100a"),
    ("8.0", "sm_80"),
    ("6.4", "sm_75"),
    ("6.3", "sm_70"),
];

#[test]
fn a_changed_form_is_taken_where_ptxas_takes_it() {
    let Some(ptxas) = ptxas() else { return testkit::skip!("ptxas in .venv") };
    let folder = testkit::temporary().unwrap();
    let forms: Vec<String> = opcodes::rows().iter().flat_map(|row| opcodes::expand(&row.example)).collect();
    let seed = std::env::var("SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(24);
    let (mutations, mut draw) = (mutation::Mutations::of(&forms), mutation::Draw::new(seed));
    let mut under: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for _ in 0..CHANGED {
        // Half under the two that have most.
        let pair = match draw.below(2) {
            0 => CHANGED_UNDER[draw.below(2)],
            _ => *draw.one(CHANGED_UNDER),
        };
        // The kernel has no such registers before.
        let has_quads = VERSIONS.iter().skip_while(|&&it| it != "8.3").any(|&it| it == pair.0);
        loop {
            let form = mutations.draw(&mut draw);
            if (has_quads || !form.contains("%q")) && under.entry(pair).or_default().insert(form) {
                break;
            }
        }
    }
    let (mut wrong, mut n_refused, mut n_crashing) = (vec![], 0, 0);
    let (mut n_own, mut n_failing) = (vec![0; mutation::OWN.len()], 0);
    for ((version, target), changed) in under {
        let changed: Vec<String> = changed.into_iter().collect();
        let (theirs, crashing) = refused_by_ptxas(&ptxas, folder.path(), version, target, &changed, true);
        let ours = kernel::refused_one_by_one(version, target, &changed);
        n_refused += theirs.len();
        n_crashing += crashing.len();
        for (at, form) in changed.iter().enumerate().filter(|it| !crashing.contains(&it.0)) {
            let (side, said) = match (theirs.get(&at), ours.get(&at)) {
                (None, Some(said)) => (Side::Taken, said),
                (Some(said), None) => (Side::Refused, said),
                _ => continue,
            };
            let fails = match side {
                Side::Taken => fails_behind_the_checks(&ptxas, folder.path(), version, target, form),
                Side::Refused => is_about_another(said, form),
            };
            if fails {
                n_failing += 1;
                continue;
            }
            let own = mutation::OWN.iter().position(|own| own.side == side && (own.fits)(&mutations, form));
            match own {
                Some(own) => n_own[own] += 1,
                None => wrong.push(format!("{form} | {version} {target}: only {} it: {said}", side.words())),
            }
        }
    }
    println!(
        "SEED={seed}: {CHANGED} changed forms, {n_refused} refusals, {n_crashing} that crash ptxas, {n_failing} at which \
         it fails behind its checks, {} its own choice",
        n_own.iter().sum::<usize>()
    );
    wrong.sort();
    let some = wrong.iter().take(200).map(String::as_str).collect::<Vec<_>>().join("\n");
    let unused: Vec<&str> =
        mutation::OWN.iter().zip(&n_own).filter(|it| *it.1 == 0).map(|it| it.0.why).collect();
    println!("not drawn of what is its own choice: {unused:?}");
    assert!(wrong.is_empty(), "SEED={seed}: {} verdicts of {CHANGED} differ:\n{some}", wrong.len());
}

/// What stands behind `.address_size`, of which each is refused somewhere.
const DECLARATIONS: &[&str] = &[
    ".func f() .noreturn { bra L; L: bra L; }",
    ".extern .func f() .noreturn;",
    ".visible .entry k() .reqnctapercluster 2, 1, 1 { ret; }",
    ".visible .entry k() .explicitcluster { ret; }",
    ".visible .entry k() .maxclusterrank 8 { ret; }",
    ".visible .entry k() .blocksareclusters .reqntid 32, 1, 1 .reqnctapercluster 2, 1, 1 { ret; }",
    ".func f() .abi_preserve 4 { ret; }",
    ".func f() .abi_preserve_control 4 { ret; }",
    ".visible .func f() { ret; }\n.visible .func g();\n.alias g, f;",
    ".common .global .b32 x;",
    ".visible .global .attribute(.unified(19, 95)) .b32 x;",
    ".visible .func .attribute(.unified(0x12345, 0x6789)) f() { ret; }",
    ".visible .entry k(.param .align 8 .b8 p[4353]) { ret; }",
    ".visible .entry k(.param .b32 q[1088], .param .b8 p) { ret; }",
    ".visible .entry k(.param .align 8 .b8 p[32765]) { ret; }",
    ".visible .func f(.param .b8 p[]) { ret; }",
    ".extern .func f(.param .b8 p[]);",
    ".visible .entry k() { .reg .b128 %q; ret; }",
    ".visible .entry k() { .local .b128 q; ret; }",
    ".visible .entry k(.param .b128 p) { ret; }",
    ".visible .func (.param .b128 r) f(.param .b128 p) { ret; }",
    ".visible .global .b128 x;",
    ".extern .global .b128 x;",
    ".visible .entry k() { .reg .f16x2 %h; ret; }",
    ".shared .f16x2 q;",
    ".visible .global .b32 y;\n.visible .global .u8 x[2] = { 0xff(y), 0xff00(y) };",
    ".visible .entry k() { .pragma \"used_bytes_mask 0xffff\";\n ret; }",
    ".visible .entry k() { .pragma \"nounroll\";\n .pragma \"frequency 10\";\n ret; }",
    ".visible .entry k() { .pragma \"enable_smem_spilling\";\n ret; }",
    ".file 1 \"a.cu\"\n.visible .entry k() { .loc 1 1 1\nL: .loc 1 2 1, function_name L, inlined_at 1 1 1\n ret; }",
    ".visible .entry k(.param .u32 p) { .reg .b32 %i; ld.param.u32 %i, [p]; t: .branchtargets A, B;\n brx.idx %i, t; A: ret; B: ret; }",
    ".visible .entry k(.param .u64 p) { .reg .b64 %f; ld.param.b64 %f, [p]; p1: .callprototype _ () .noreturn;\n call %f, (), p1; ret; }",
    ".visible .entry k(.param .u64 p) { .reg .b64 %f; ld.param.b64 %f, [p]; p1: .callprototype _ () .abi_preserve 4;\n call %f, (), p1; ret; }",
    ".visible .entry k(.param .u64 p) { .reg .b64 %f; .param .b8 q[4]; ld.param.b64 %f, [p];\n\
     p1: .callprototype _ (.param .b8 _[]);\n call %f, (q), p1; ret; }",
];

/// And those that every source may have.
const ORDINARY: &[&str] = &[
    ".visible .entry k() .maxntid 32, 1, 1 .minnctapersm 2 .maxnreg 32 { ret; }",
    ".visible .entry k() .reqntid 32, 1, 1 { ret; }",
    ".pragma \"nounroll\";\n.visible .entry k() { .pragma \"what it knows not\"; ret; }",
    ".weak .func f() { ret; }\n.weak .global .b32 x;\n.weak .shared .b32 y;\n.weak .entry k() { ret; }",
    ".visible .global .attribute(.managed) .b32 x;",
    ".visible .entry k(.param .u64 .ptr .shared .align 8 p, .param .align 128 .b8 q[4224]) { ret; }",
    ".visible .entry k() { .reg .f16 %h; .param .b32 p; ret; }",
    ".visible .func (.param .align 64 .b8 r[64]) f(.param .align 64 .b8 p[64]) { ret; }",
    ".visible .global .b32 y;\n.visible .global .u64 x[1] = { generic(y) };",
];

#[test]
fn a_declaration_is_taken_where_ptxas_takes_it() {
    let Some(ptxas) = ptxas() else { return testkit::skip!("ptxas in .venv") };
    let folder = testkit::temporary().unwrap();
    let (seed, chosen) = drawn();
    let (mut wrong, mut n_refused) = (vec![], vec![0; DECLARATIONS.len()]);
    for &(version, target) in &chosen {
        for (nth, declaration) in DECLARATIONS.iter().chain(ORDINARY).enumerate() {
            let text = format!(".version {version}\n.target {target}\n.address_size 64\n{declaration}\n");
            let (input, output) = (folder.path().join("declared.ptx"), folder.path().join("declared.cubin"));
            std::fs::write(&input, &text).unwrap();
            let mut command = Command::new(&ptxas);
            command.args(["--gpu-name", &gpu(target), "-o"]).args([&output, &input]);
            // Which is of what is linked later.
            if declaration.contains(".unified") || declaration.contains(".extern") {
                command.arg("--compile-only");
            }
            let ran = command.output().unwrap();
            assert!(ran.status.code().is_some(), "ptxas crashes for {version} {target} {declaration}");
            let theirs = (!ran.status.success()).then(|| {
                String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat())
                    .lines()
                    .next()
                    .unwrap_or("")
                    .to_owned()
            });
            let ours = diagnostics(&text);
            if theirs.is_some() && nth < DECLARATIONS.len() {
                n_refused[nth] += 1;
            }
            if theirs.is_some() == ours.is_empty() {
                wrong.push(format!(
                    "{version} {target} {declaration}: ptxas says {theirs:?}, we say {:?}",
                    ours.first().map(|it| &it.message)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "SEED={seed}: {} verdicts differ:\n{}", wrong.len(), wrong.join("\n"));
    let never: Vec<&str> =
        DECLARATIONS.iter().zip(&n_refused).filter(|it| *it.1 == 0).map(|it| *it.0).collect();
    assert!(seed != "all" || never.is_empty(), "ptxas refuses these nowhere: {never:?}");
}

/// What we say of a source.
fn diagnostics(text: &str) -> Vec<Diagnostic> {
    let loaded = Program::load(&[Source { name: "one.ptx".to_owned(), text: text.to_owned() }]);
    loaded.map_or_else(|diagnostics| diagnostics, |program| program.diagnostics)
}

/// What the first diagnostic from a line on points to, to the line's end, and its message.
fn refusal(text: &str, from: usize) -> Option<(String, String)> {
    let found = diagnostics(text).into_iter().find(|it| it.line as usize >= from)?;
    let line = text.lines().nth(found.line as usize - 1).unwrap();
    Some((line[found.column as usize - 1..].to_owned(), found.message))
}

#[test]
fn a_refusal_names_the_token_and_what_would_have_it() {
    let first = |version: &str, target: &str, form: &str| {
        let (text, first) = kernel::text(version, target, false, &[form]);
        refusal(&text, first).unwrap_or_else(|| panic!("{form} is taken"))
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
    for (form, at, said) in [
        ("add.u32 %r1, %f2, %r3", "%f2", "'%f2' is of type '.f32', the operand of type '.u32'"),
        ("add.f32 %f1, %f2, 1", "1;", "the constant is not of type '.f32'"),
        ("add.u32 %r1, %tid.x, %r3", "%tid.x", "'%tid' is read by 'mov' and 'cvt' alone"),
        ("ld.global.u32 %r1, [%f2]", "%f2", "'%f2' is not an address"),
        ("ld.relaxed.u32 %r1, [%rd1]", ".relaxed", "'ld.relaxed.u32' has a memory order, and no scope"),
        ("cvt.rn.rz.f32.s32 %f1, %r1", ".rz", "'.rz' is the second of its kind in 'cvt.rn.rz.f32.s32'"),
        ("cvta.global.to.u64 %rd1, %rd2", ".to", "'.to' of 'cvta.global.to.u64' stands behind 'cvta'"),
        ("mov.b32 _, %r1", "_", "'mov' cannot drop its result"),
        ("vadd.s32.s32.s32 %f1.b0, %r2, %r3, %r4", "%f1", "parts are of 32-bit registers"),
    ] {
        let (token, message) = first("9.5", "sm_90a", form);
        assert!(token.starts_with(at) || token.starts_with(at.trim_start_matches('.')), "{form}: {token}");
        assert_eq!(message, said, "{form}");
    }
    let declared = |version: &str, target: &str, declaration: &str| {
        let text = format!(".version {version}\n.target {target}\n.address_size 64\n{declaration}\n");
        refusal(&text, 1).unwrap_or_else(|| panic!("{declaration} is taken"))
    };
    let (token, message) = declared("8.0", "sm_80", ".visible .entry k() .maxclusterrank 8 { ret; }");
    assert!(token.trim_start_matches('.').starts_with("maxclusterrank"), "{token}");
    assert_eq!(message, "'.maxclusterrank' needs '.target' sm_90 or later");
    let (token, message) = declared("8.2", "sm_90", ".visible .entry k() { .reg .b128 %q; ret; }");
    assert!(token.trim_start_matches('.').starts_with("b128"), "{token}");
    assert_eq!(message, "type '.b128' needs '.version' 8.3, which is 8.2 here");
    let (token, message) = declared("8.0", "sm_90", ".visible .entry k(.param .b8 p[4353]) { ret; }");
    assert!(token.starts_with("k("), "{token}");
    assert_eq!(message, "'k' with 4353 bytes of parameters needs '.version' 8.1, which is 8.0 here");
    let (_, message) = declared("8.1", "sm_90", ".visible .entry k(.param .b8 p[32765]) { ret; }");
    assert_eq!(message, "'k' has 32765 bytes of parameters, and 32764 are the most");
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

/// Forms that older sources have and newer ones have not, under versions and targets that tables begin behind.
const OLD: &[(&str, &[(&str, &str)])] = &[
    (
        ".reg .f32 %f<4>; .reg .f64 %d<4>; mad.f32 %f1, %f2, %f3, %f1;",
        &[
            ("1.4", "sm_10"),
            ("2.0", "sm_20"),
            ("3.1", "sm_30"),
            ("3.2", "sm_32"),
            ("4.0", "sm_30"),
            ("4.0", "sm_50"),
        ],
    ),
    (
        ".reg .f64 %d<4>; mad.f64 %d1, %d2, %d3, %d1;",
        &[("1.4", "sm_13"), ("2.0", "sm_20"), ("3.1", "sm_30"), ("4.0", "sm_50")],
    ),
];

#[test]
fn an_old_form_is_taken_where_ptxas_takes_it() {
    let Some(ptxas) = ptxas() else { return testkit::skip!("ptxas in .venv") };
    let folder = testkit::temporary().unwrap();
    let mut wrong = vec![];
    for (body, pairs) in OLD {
        for &(version, target) in *pairs {
            let text = format!(".version {version}\n.target {target}\n.entry k() {{ {body} exit; }}\n");
            let (input, output) = (folder.path().join("old.ptx"), folder.path().join("old.cubin"));
            std::fs::write(&input, &text).unwrap();
            let mut command = Command::new(&ptxas);
            command.args(["--gpu-name", &gpu(target), "-o"]).args([&output, &input]);
            let theirs = command.output().unwrap().status.success();
            let loaded = Program::load(&[Source { name: "old.ptx".to_owned(), text }]);
            let ours = loaded.is_ok_and(|program| program.diagnostics.is_empty());
            if ours != theirs {
                wrong.push(format!("{version} {target} {body}: ptxas takes it: {theirs}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
