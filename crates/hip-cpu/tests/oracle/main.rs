//! Every pure instruction form of tools/data/ptx/opcodes.tsv that `crates/oracle` knows, against it, bit by bit, in
//! settings that are drawn: special values crossed, all inputs of 16 bits, strides through 32, random ones, literals as operands.
//!
//! * `FORM=cvt cargo test -p hip-cpu --test oracle` takes the forms whose text contains that.
//! * `SWEEP=full` takes 2^20 random operands of each form, and every input of those with one 32-bit operand. Default: a
//!   quick look, some 2^14 of each. `SWEEP=glance` takes one block of rows, which `CASES` (`harness::cases`) has room for.
//! * `BLESS=1` writes the list of forms that were swept, tools/data/ptx/swept.tsv, and docs/accuracy.md.

mod approximate;
mod forms;
mod inputs;
mod kernel;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use forms::Instruction;
use hip_cpu::harness::Draw;
use inputs::{Columns, Size};
use kernel::{Batch, SETTINGS};
use oracle::{Operand, Rows};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn size() -> Size {
    match std::env::var("SWEEP").as_deref() {
        Ok("full") => Size::Full,
        Ok("glance") => Size::Glance,
        _ => Size::Quick,
    }
}

/// Instructions with the same operands, which one kernel takes at once.
fn grouped(instructions: Vec<Instruction>) -> Vec<Vec<Instruction>> {
    let mut groups: BTreeMap<String, Vec<Instruction>> = BTreeMap::new();
    for instruction in instructions {
        groups.entry(instruction.key()).or_default().push(instruction);
    }
    let batches = |group: Vec<Instruction>| {
        let mut group = group.into_iter().peekable();
        let mut batches = vec![];
        while group.peek().is_some() {
            batches.push(group.by_ref().take(16).collect());
        }
        batches
    };
    groups.into_values().flat_map(batches).collect()
}

/// What a sweep did.
#[derive(Default)]
struct Report {
    swept: BTreeSet<String>,
    n_values: u64,
    failures: Vec<String>,
}

/// Sweeps the forms of the chapters, each by itself and with literals in its operands' places.
fn sweep(chapters: &[&str]) -> Report {
    let wanted = std::env::var("FORM").unwrap_or_default();
    let rows = forms::read(&root().join("tools/data/ptx/opcodes.tsv"));
    let mut instructions = vec![];
    for (chapter, target, example) in &rows {
        if chapters.contains(&chapter.as_str()) && example.contains(&wanted) {
            instructions.extend(Instruction::parse(target, example));
        }
    }
    let mut report = Report::default();
    let (known, refused) = kernel::accepted(instructions);
    for text in refused {
        println!("not lowered: {text}");
    }
    report.swept = known.iter().map(|it| it.text.clone()).collect();
    let literals: Vec<Instruction> =
        known.iter().enumerate().flat_map(|(nth, it)| it.with_literals(nth)).collect();
    let mut all = known;
    all.extend(literals);
    for group in grouped(all) {
        check(&group, &mut report);
    }
    report
}

/// Of how many of the settings those are drawn that a group runs in.
fn n_settings(group: &[Instruction]) -> usize {
    let kinds = group[0].kinds();
    match group[0].has_given_literals() {
        // Literals concern the lowering, which the settings share: `lane` and another one see it, `lane` alone where all is literal.
        true if kinds.is_empty() => 1,
        true => 3,
        // Roundings of f64 are long in integers, and many lanes of them take LLVM seconds.
        false if size() == Size::Quick && kinds.iter().any(|kind| kind.is_f64()) => 3,
        // So many that their kernels' compilation is most of the time.
        false if size() == Size::Quick && group[0].mnemonic.starts_with('v') => 3,
        false if size() == Size::Quick => 5,
        false => SETTINGS.len(),
    }
}

/// Runs a group of instructions in settings that are drawn and compares each result with the oracle's.
fn check(group: &[Instruction], report: &mut Report) {
    let batch = Batch::new(group);
    let mut codes = vec![];
    let settings = &SETTINGS[..n_settings(group)];
    let settings = match size() {
        Size::Quick => Draw::now().ways(&group[0].text, settings),
        _ => settings.iter().collect(),
    };
    for setting in settings {
        match batch.compile(setting) {
            Ok(code) => codes.push((setting, code)),
            Err(error) => {
                report.failures.push(format!("{} and others in {}: {error}", group[0], setting.name))
            }
        }
    }
    let size = if group[0].has_given_literals() { Size::Glance } else { size() };
    for chunk in 0.. {
        let Some(columns) = Columns::of(&group[0].kinds(), chunk, size) else { break };
        let expected: Vec<Rows> = group.iter().map(|it| it.expected(&columns)).collect();
        for (setting, code) in &codes {
            let found = match batch.run(code, &columns) {
                Ok(found) => found,
                Err(error) => {
                    report.failures.push(format!("{} and others in {}: {error}", group[0], setting.name));
                    continue;
                }
            };
            for (nth, (instruction, expected)) in group.iter().zip(&expected).enumerate() {
                for index in 0..instruction.n_results() {
                    let found = found.plane(nth, index);
                    let differences = differences(instruction, index, found, expected);
                    report.n_values += found.len() as u64;
                    for &row in differences.iter().take(3) {
                        let operands: Vec<String> = instruction
                            .operands(&columns)
                            .iter()
                            .map(|it| match it {
                                Operand::Column(column) => format!("{:#x}", column[row]),
                                Operand::Constant(bits) => format!("{bits:#x}"),
                            })
                            .collect();
                        report.failures.push(format!(
                            "{instruction} in {}: {} gives {:#x}, not {:#x} (result {index}, {} like this)",
                            setting.name,
                            operands.join(", "),
                            found[row],
                            expected.planes[index][row],
                            differences.len(),
                        ));
                    }
                }
            }
        }
    }
}

/// Rows where the kernel's result is not the oracle's.
fn differences(instruction: &Instruction, index: usize, found: &[u64], expected: &Rows) -> Vec<usize> {
    let wanted = &expected.planes[index];
    if found == wanted.as_slice() {
        return vec![];
    }
    (0..found.len())
        .filter(|&row| {
            found[row] != wanted[row]
                && !expected.open[row]
                && !instruction.same(index, found[row].into(), wanted[row].into())
        })
        .collect()
}

/// Sweeps chapters, and keeps the list of what was swept as it is on disk.
fn sweep_and_list(test: &str, chapters: &[&str]) {
    let report = sweep(chapters);
    println!("{} forms, {} results compared", report.swept.len(), report.n_values);
    let shown: Vec<String> = report.failures.iter().take(60).map(|it| it.replace('\n', " ")).collect();
    assert!(report.failures.is_empty(), "{} failures:\n{}", report.failures.len(), shown.join("\n"));
    if std::env::var_os("FORM").is_some() {
        return;
    }
    keep_list(test, &report.swept);
}

/// The list of swept forms is as it is on disk; `BLESS=1` writes it.
fn keep_list(test: &str, swept: &BTreeSet<String>) {
    let path = root().join(format!("tools/data/ptx/swept/{test}.tsv"));
    let mut list = format!(
        "# Forms that crates/hip-cpu/tests/oracle sweeps, written by its test {test} with BLESS=1.\n"
    );
    for form in swept {
        list += &format!("{form}\toracle::{test}\n");
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &list).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == list, "{} is old: BLESS=1 cargo test -p hip-cpu --test oracle", path.display());
}

#[test]
fn integer() {
    sweep_and_list("integer", &["Integer"]);
}

#[test]
fn extended() {
    sweep_and_list("extended", &["Extended precision"]);
}

#[test]
fn float() {
    sweep_and_list("float", &["Floating point"]);
}

#[test]
fn half() {
    sweep_and_list("half", &["Half precision"]);
}

#[test]
fn compare() {
    sweep_and_list("compare", &["Comparison and selection"]);
}

#[test]
fn logic() {
    sweep_and_list("logic", &["Logic"]);
}

#[test]
fn convert() {
    sweep_and_list("convert", &["Conversion"]);
}

#[test]
fn video() {
    sweep_and_list("video", &["Video"]);
}
