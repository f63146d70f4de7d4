//! Which test shows an instruction form: found in the tests' own texts, so that nobody has to keep a list.
//!
//! Value rows and kernels are parsed; texts inside Rust tests are searched for words that are instructions; what a test
//! puts together at run time it says itself: `tools/data/ptx/swept` (the oracle's sweeps) and `tools/data/ptx/shown`
//! (`SHOW=tools/data/ptx/shown cargo test -p hip-cpu --test matrix` and so on, see hip-cpu's harness).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ptx::ast::{Block, ExpressionKind, Instruction, Operand, OperandKind, Statement};

/// Tests by form.
#[derive(Default)]
pub struct Evidence {
    tests: HashMap<String, String>,
}

/// Opcode and modifiers in alphabetical order, since PTX lets them stand in any; of a move, what is special about its
/// source.
fn key<'a>(opcode: &str, modifiers: impl Iterator<Item = &'a str>, special: Option<&str>) -> String {
    if let Some(special) = special {
        return format!("mov {special}");
    }
    let mut modifiers: Vec<&str> = modifiers.collect();
    modifiers.sort_unstable();
    format!("{opcode}.{}", modifiers.join("."))
}

/// `add.sat.s32` as written.
fn key_of_name(name: &str) -> String {
    let mut words = name.split('.');
    key(words.next().unwrap_or_default(), words, None)
}

/// `%tid.x`, `WARP_SZ`: not one of the registers that a text declares.
fn special(operand: &Operand<'_>) -> Option<String> {
    let name = match &operand.kind {
        OperandKind::Name(name) => (*name).to_owned(),
        OperandKind::Member(name, member) => format!("{name}.{member}"),
        OperandKind::Expression(expression) => match expression.kind {
            ExpressionKind::Name(name) => name.to_owned(),
            _ => return None,
        },
        _ => return None,
    };
    let stem = name.split('.').next()?.strip_prefix('%').unwrap_or(&name);
    SPECIAL.iter().any(|it| stem.starts_with(it)).then_some(name)
}

/// What special registers' names begin with.
const SPECIAL: &[&str] = &[
    "tid",
    "ntid",
    "laneid",
    "warpid",
    "nwarpid",
    "ctaid",
    "nctaid",
    "smid",
    "nsmid",
    "gridid",
    "current_graph",
    "cluster",
    "ncluster",
    "is_explicit",
    "lanemask",
    "clock",
    "pm0",
    "pm1",
    "pm2",
    "pm3",
    "pm4",
    "pm5",
    "pm6",
    "pm7",
    "envreg",
    "globaltimer",
    "reserved_smem",
    "total_smem",
    "aggr_smem",
    "dynamic_smem",
    "current_graph",
    "WARP_SZ",
];

fn instruction_key(instruction: &Instruction<'_>) -> String {
    let special = match instruction.operands.as_slice() {
        [_, source] if instruction.opcode.value == "mov" => special(source),
        _ => None,
    };
    key(instruction.opcode.value, instruction.modifiers.iter().map(|it| it.value), special.as_deref())
}

/// Every instruction of a text.
fn instructions(text: &str, found: &mut impl FnMut(&Instruction<'_>)) {
    fn walk<'a>(block: &Block<'a>, found: &mut impl FnMut(&Instruction<'a>)) {
        for statement in &block.statements {
            match statement {
                Statement::Instruction(instruction) => found(instruction),
                Statement::Block(block) => walk(block, found),
                _ => {}
            }
        }
    }
    let parsed = ptx::parse(text);
    for body in parsed.module.functions().filter_map(|it| it.body.as_ref()) {
        walk(body, &mut |instruction| found(instruction));
    }
}

impl Evidence {
    /// Of all tests below the repository's root; `opcodes` are the words that instructions begin with.
    pub fn collect(root: &Path, opcodes: &dyn Fn(&str) -> bool) -> Evidence {
        let mut evidence = Evidence::default();
        for folder in ["swept", "shown"] {
            for path in files(&root.join("tools/data/ptx").join(folder), "tsv") {
                let text = std::fs::read_to_string(path).unwrap();
                for line in text.lines().filter(|line| !line.starts_with('#')) {
                    let (form, test) = line.split_once('\t').expect("form and test");
                    // Behind a blank stands what is special about the operands.
                    evidence.add(key_of_name(form.split(' ').next().unwrap_or(form)), test);
                }
            }
        }
        let tests = root.join("crates/hip-cpu/tests");
        for folder in ["run", "kernels"] {
            for path in files(&tests.join(folder), "ptx") {
                let name = path.strip_prefix(&tests).unwrap().display().to_string();
                let text = std::fs::read_to_string(&path).unwrap();
                instructions(&text, &mut |it| evidence.add(instruction_key(it), &name));
            }
        }
        for path in files(&tests, "rs") {
            let name = path.strip_prefix(&tests).unwrap().display().to_string();
            // The generator and the executor handle forms without a value to compare.
            if !["generate", "reference", "oracle"].iter().any(|it| name.starts_with(it)) {
                evidence.search(&std::fs::read_to_string(&path).unwrap(), &name, opcodes);
            }
        }
        evidence
    }

    /// Words of a Rust text that are instructions with modifiers. `SCOPE` stands for each scope.
    fn search(&mut self, text: &str, test: &str, opcodes: &dyn Fn(&str) -> bool) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':');
        for word in text.split(|c| !is_part(c)).filter(|word| word.contains('.')) {
            let word = word.trim_end_matches(['.', ':']);
            if !opcodes(word.split('.').next().unwrap_or_default()) {
                continue;
            }
            for scope in ["cta", "gpu", "sys"] {
                self.add(key_of_name(&word.replace("SCOPE", scope)), test);
            }
        }
    }

    /// The first to show it is named.
    fn add(&mut self, key: String, test: &str) {
        self.tests.entry(key).or_insert_with(|| test.to_owned());
    }

    /// The test that shows an example of the table.
    pub fn of(&self, example: &str) -> Option<&str> {
        let (name, operands) = example.split_once(' ').unwrap_or((example, ""));
        let source = operands.split_once(", ").map(|(_, source)| source).unwrap_or_default();
        let stem = source.split('.').next().unwrap_or_default();
        let is_special = name.starts_with("mov.")
            && SPECIAL.iter().any(|it| stem.strip_prefix('%').unwrap_or(stem).starts_with(it));
        let mut words = name.split('.');
        let opcode = words.next().unwrap_or_default();
        let key = key(opcode, words, is_special.then_some(source));
        self.tests.get(&key).map(String::as_str)
    }
}

/// All files below `folder` that end so, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut all = vec![];
    let Ok(entries) = std::fs::read_dir(folder) else { return all };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            all.push(path);
        }
    }
    all.sort();
    all
}
