//! `docs/ptx.md` says which instructions work. It is written from `tools/data/ptx/opcodes.tsv` by lowering every
//! example there, so it cannot claim what is not so, and names the test that shows each form's values (`evidence` finds it).
//! `BLESS=1` rewrites it.

mod evidence;
mod opcodes;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write;
use std::path::Path;

use compiler::back::cpu::{Options, Setting, emit};
use compiler::gcn::{self, Target};
use compiler::lower::verify::verify;
use compiler::{Program, Source};
use evidence::Evidence;
use opcodes::{expand, kernel};

/// How far an example comes.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    Nothing,
    /// The IR has it; the reference setting of the CPU does not emit it.
    Lowered,
    Emitted,
}

/// The example in a kernel that has everything it names, for a target that has it.
fn load(example: &str, target: &str) -> Program {
    let version = kernel::newest(example);
    let (text, _) = kernel::text(version, kernel::known(target), kernel::is_independent(example), &[example]);
    let sources = [Source { name: "example.ptx".to_owned(), text }];
    Program::load(&sources).unwrap_or_else(|diagnostics| panic!("{example}: {diagnostics:?}"))
}

/// AMD GPUs with waves of 32 and of 64 lanes; what else differs between generations, code does not ask for yet.
const GPUS: [&str; 2] = ["gfx1100", "gfx942"];

/// On which of them the example can be made.
fn on_gpus(example: &str, target: &str) -> [bool; 2] {
    let program = load(example, target);
    GPUS.map(|name| {
        let target: Target = name.parse().expect("a target");
        program.kernels[0].body.is_ok()
            && gcn::emit(&program, &program.kernels[0], &target, gcn::Blocks::Declared).is_ok()
    })
}

/// How far the example comes.
fn reach(example: &str, target: &str) -> Reach {
    let program = load(example, target);
    match &program.kernels[0].body {
        Ok(body) => {
            if let Err(error) = verify(body) {
                panic!("{example}: {error}");
            }
            let options = Options { setting: Some(Setting::Lane), ..Options::new([64, 1, 1], 256) };
            match emit(&program, &program.kernels[0], &options) {
                Ok(_) => Reach::Emitted,
                Err(_) => Reach::Lowered,
            }
        }
        Err(diagnostics) => {
            // An example that is wrong itself would count as a missing instruction.
            for diagnostic in diagnostics {
                assert!(diagnostic.message.contains("is not supported"), "{example}: {diagnostic}");
            }
            Reach::Nothing
        }
    }
}

#[test]
fn the_list_of_instructions_is_what_the_lowering_does() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rows = opcodes::rows();
    let opcode = |example: &str| example.split(['.', ' ']).next().unwrap_or_default().to_owned();
    let known: HashSet<String> =
        rows.iter().flat_map(|row| expand(&row.example)).map(|example| opcode(&example)).collect();
    let evidence = Evidence::collect(&root, &|word| known.contains(word));
    let mut page = String::from(
        "<!-- Written by `BLESS=1 cargo test -p compiler --test coverage` from tools/data/ptx/opcodes.tsv. -->\n\
         # PTX instructions\n\n\
         Every example is lowered to IR and emitted in setting `lane` by the test that writes this page: yes, no, or how many of\n\
         the alternatives. wave32 and wave64: LLVM IR is made for AMD GPUs (gfx10 and later; gfx9); `crates/compiler/tests/gcn.rs`\n\
         has LLVM compile the kernels of `run/`, and `cargo xtask test --only amd-emu` runs their rows. gfx9 is gfx942 here, which has no textures; gfx900 to gfx90c\n\
         have those of the wave32 column. The last column names the tests that run the form and look at what it gives, in\n\
         `crates/hip-cpu/tests`: `oracle::…` sweeps it against exact arithmetic, `run/…` has rows with expected values.\n\
         The second column is what a module has to say of itself, `.target` and `.version`: sm_90 is that target or one that\n\
         came later, sm_100f its family, sm_90a that target alone; forms of one line that came with several versions have the first and\n\
         the last of them. `crates/compiler/tests/targets.rs` compares it with ptxas of\n\
         CUDA 13.5, form by form, on all targets from sm_50; under others a form fails as if it were no PTX. So do 10,000 forms\n\
         that are legal but for one thing, and what ptxas takes or refuses against the manual is listed in `tests/mutation` there.\n\
         What is a no makes the kernel that uses it fail alone, with file, line and column in the JIT log. Features of targets\n\
         such as sm_90a are listed but not counted. AMD GPUs have no `tcgen05`: a\n\
         block's tensor memory takes 256 KiB, where their blocks have 64 KiB of LDS.\n",
    );
    let (mut chapter, mut all, mut good, mut unshown) = ("", 0, 0, vec![]);
    let mut on_all_gpus = [0; 2];
    let forms: Vec<String> = rows.iter().flat_map(|row| expand(&row.example)).collect();
    let taken = kernel::Taken::ask(&forms);
    let mut n_seen = 0;
    for row in &rows {
        if row.chapter != chapter {
            chapter = &row.chapter;
            write!(page, "\n## {chapter}\n\n| instruction | from | works | wave32 | wave64 | test |\n|---|---|---|---|---|---|\n")
                .unwrap();
        }
        let examples = expand(&row.example);
        let from = taken.words(n_seen..n_seen + examples.len(), &row.target);
        n_seen += examples.len();
        let reached: Vec<Reach> = examples.iter().map(|it| reach(it, &row.target)).collect();
        let working = reached.iter().filter(|&&it| it == Reach::Emitted).count();
        let lowered = reached.iter().filter(|&&it| it != Reach::Nothing).count();
        // `sm_90a` and its like have features that no other target has.
        let is_own = row.target.ends_with(['a', 'f']);
        if !is_own || working > 0 {
            all += examples.len();
            good += working;
        }
        let state = match (working, lowered) {
            (0, 0) if is_own => format!("no: {}", row.reason.as_deref().unwrap_or("this target's own")),
            (0, 0) => row.reason.as_ref().map_or("no".to_owned(), |reason| format!("no: {reason}")),
            (0, n) if n == examples.len() => "IR only".to_owned(),
            (n, _) if n == examples.len() => "yes".to_owned(),
            (n, _) => format!("{n} of {}", examples.len()),
        };
        let mut gpus = [0; 2];
        for (example, _) in examples.iter().zip(&reached).filter(|(_, reach)| **reach != Reach::Nothing) {
            for (count, made) in gpus.iter_mut().zip(on_gpus(example, &row.target)) {
                *count += usize::from(made);
            }
        }
        let [wave32, wave64] = gpus.map(|count| match count {
            0 => "no".to_owned(),
            n if n == examples.len() => "yes".to_owned(),
            n => format!("{n} of {}", examples.len()),
        });
        on_all_gpus = [on_all_gpus[0] + gpus[0], on_all_gpus[1] + gpus[1]];
        let mut tests = BTreeSet::new();
        let mut without = vec![];
        for (example, _) in examples.iter().zip(&reached).filter(|(_, reach)| **reach != Reach::Nothing) {
            match evidence.of(example) {
                Some(test) => drop(tests.insert(test.to_owned())),
                None => without.push(example.split(' ').next().unwrap_or(example).to_owned()),
            }
        }
        let mut shown: Vec<String> = tests.into_iter().collect();
        match without.len() {
            0 => {}
            n if n == lowered => shown.push("none".to_owned()),
            n => shown.push(format!("none for {n} of {}", examples.len())),
        }
        unshown.extend(without);
        let example = row.example.replace('|', "\\|");
        let shown = shown.join(", ");
        writeln!(page, "| `{example}` | {from} | {state} | {wave32} | {wave64} | {shown} |").unwrap();
    }
    let [wave32, wave64] = on_all_gpus;
    write!(
        page,
        "\n{good} of {all} forms work on the CPU, {wave32} are made for GPUs with waves of 32 lanes, {wave64} for waves of 64. \
         No test shows {} of them.\n",
        unshown.len()
    )
    .unwrap();
    let golden = root.join("docs/ptx.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&golden, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(unshown.is_empty(), "no test shows {} forms:\n{}", unshown.len(), unshown.join("\n"));
    assert!(committed == page, "docs/ptx.md is old: BLESS=1 cargo test -p compiler --test coverage");
}

/// Chapters whose instructions name two things by the order of equal words: spaces of a copy, layouts of a product.
const ORDERED: &[&str] = &["Asynchronous copies", "Matrices", "Textures and surfaces", "Memory barriers"];

/// The example with its modifiers turned round, types in their own order: behind the others, or in front of them.
fn turned(example: &str, types_first: bool) -> Option<String> {
    let (name, operands) = example.split_once(' ').unwrap_or((example, ""));
    let mut words = name.split('.');
    let opcode = words.next()?;
    // `.xorsign.abs` is one word to PTX; `.pred` and vectors stand with the types.
    let joined = |word: &str| ["xorsign", "abs", "pred"].contains(&word);
    let (types, mut others): (Vec<&str>, Vec<&str>) =
        words.partition(|word| ptx::ast::Type::parse(word).is_some() || joined(word));
    if others.is_empty() || others.len() + types.len() < 2 {
        return None;
    }
    others.reverse();
    let (first, second) = if types_first { (types, others) } else { (others, types) };
    Some(format!("{opcode}.{} {operands}", [first, second].concat().join(".")))
}

#[test]
fn modifiers_come_in_any_order() {
    let mut n_turned = 0;
    let mut wrong = vec![];
    for row in opcodes::rows().iter().filter(|row| !ORDERED.contains(&row.chapter.as_str())) {
        for example in expand(&row.example) {
            let Ok(wanted) = &load(&example, &row.target).kernels[0].body else { continue };
            for types_first in [false, true] {
                let Some(other) = turned(&example, types_first) else { continue };
                n_turned += 1;
                let program = load(&other, &row.target);
                // A word of its name stands right behind the opcode; `targets.rs` has ptxas say of which.
                if program.diagnostics.iter().any(|it| {
                    it.message.ends_with("is not the name of an instruction")
                        || it.message.contains("' stands behind '")
                }) {
                    continue;
                }
                if program.kernels[0].body.as_ref().map(ToString::to_string).ok() != Some(wanted.to_string())
                {
                    wrong.push(format!("{example} and {other}"));
                }
            }
        }
    }
    assert!(n_turned > 1000, "only {n_turned}");
    assert!(wrong.is_empty(), "{} of {n_turned} differ:\n{}", wrong.len(), wrong.join("\n"));
}
