//! `cvt` is taken with the modifiers that NVIDIA's assembler takes, and with no others (`tools/data/ptx/cvt.tsv`).

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use compiler::{Program, Source};

/// The types that are tried, with a register of their size.
const TYPES: [(&str, &str); 12] = [
    ("u8", "%b"),
    ("s8", "%b"),
    ("u16", "%h"),
    ("s16", "%h"),
    ("u32", "%r"),
    ("s32", "%r"),
    ("u64", "%d"),
    ("s64", "%d"),
    ("f16", "%h"),
    ("bf16", "%h"),
    ("f32", "%f"),
    ("f64", "%g"),
];

const ROUNDINGS: [&str; 10] = ["", "rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"];

/// What ptxas takes, as `mods.dtype.atype`.
fn taken_by_ptxas() -> HashSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/data/ptx/cvt.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut taken = HashSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (types, modifiers) = line.split_once('\t').expect("types and modifiers");
        for types in types.split(' ') {
            for modifiers in modifiers.split(' ') {
                taken.insert(if modifiers == "-" {
                    types.to_owned()
                } else {
                    format!("{modifiers}.{types}")
                });
            }
        }
    }
    taken
}

#[test]
fn conversions_have_the_modifiers_that_ptxas_takes() {
    let mut forms = vec![];
    for rounding in ROUNDINGS {
        for flush in ["", "ftz"] {
            for clamp in ["", "sat", "satfinite", "relu"] {
                for (to, d) in TYPES {
                    for (from, a) in TYPES {
                        let words = [rounding, flush, clamp, to, from];
                        let words: Vec<&str> = words.into_iter().filter(|it| !it.is_empty()).collect();
                        forms.push((words.join("."), d, a));
                    }
                }
            }
        }
    }
    let mut text = ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry kernel() {\n\
                    .reg .b8 %b;\n.reg .b16 %h;\n.reg .b32 %r;\n.reg .b64 %d;\n.reg .f32 %f;\n.reg .f64 %g;\n"
        .to_owned();
    let first = text.lines().count() + 1;
    for (form, d, a) in &forms {
        writeln!(text, "cvt.{form} {d}, {a};").unwrap();
    }
    text += "ret;\n}\n";
    let program = Program::load(&[Source { name: "all.ptx".to_owned(), text }]).unwrap();
    let refused: HashSet<usize> = program.diagnostics.iter().map(|it| it.line as usize - first).collect();
    let taken = taken_by_ptxas();
    assert!(taken.len() > 800, "the list is not whole");
    for (nth, (form, ..)) in forms.iter().enumerate() {
        assert_eq!(!refused.contains(&nth), taken.contains(form), "cvt.{form}");
    }
}
