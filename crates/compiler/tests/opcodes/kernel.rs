//! A kernel that has everything the table's examples name, with some of them, one on each line.

use std::collections::{BTreeMap, BTreeSet};

use compiler::{Program, Source};

/// The targets from sm_50, and the first `.version` that each may stand with.
pub const TARGETS: &[(&str, &str)] = &[
    ("sm_50", "4.0"),
    ("sm_52", "4.1"),
    ("sm_53", "4.2"),
    ("sm_60", "5.0"),
    ("sm_61", "5.0"),
    ("sm_62", "5.0"),
    ("sm_70", "5.1"),
    ("sm_72", "6.1"),
    ("sm_75", "6.3"),
    ("sm_80", "7.0"),
    ("sm_86", "7.1"),
    ("sm_87", "7.4"),
    ("sm_88", "9.0"),
    ("sm_89", "7.8"),
    ("sm_90", "7.8"),
    ("sm_90a", "8.0"),
    ("sm_100", "8.6"),
    ("sm_100f", "8.8"),
    ("sm_100a", "8.6"),
    ("sm_103", "8.8"),
    ("sm_103f", "8.8"),
    ("sm_103a", "8.8"),
    ("sm_107", "9.4"),
    ("sm_107f", "9.4"),
    ("sm_107a", "9.4"),
    ("sm_110", "9.0"),
    ("sm_110f", "9.0"),
    ("sm_110a", "9.0"),
    ("sm_120", "8.7"),
    ("sm_120f", "8.8"),
    ("sm_120a", "8.7"),
    ("sm_121", "8.8"),
    ("sm_121f", "8.8"),
    ("sm_121a", "8.8"),
];

/// PTX's versions that the first of those targets may stand with.
pub const VERSIONS: &[&str] = &[
    "4.0", "4.1", "4.2", "4.3", "5.0", "5.1", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2",
    "7.3", "7.4", "7.5", "7.6", "7.7", "7.8", "8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8",
    "9.0", "9.1", "9.2", "9.3", "9.4", "9.5",
];

/// Whether the form is independent texture mode's: it has a sampler of its own.
pub fn is_independent(form: &str) -> bool {
    form.contains(" sampler") || form.contains("[sampler") || form.contains("[%rd1, %rd2, {")
}

/// The newest version that has the form: products of floating-point matrices lost `.satfinite`.
pub fn newest(form: &str) -> &'static str {
    let is_lost = form.starts_with("wmma.mma") && form.contains(".satfinite ") && !form.contains(".s32");
    if is_lost { "6.4" } else { "9.5" }
}

/// The target for forms that are there from `lowest`, which may be older than those above.
pub fn known(lowest: &str) -> &str {
    match TARGETS.iter().any(|&(target, _)| target == lowest) {
        true => lowest,
        false => "sm_50",
    }
}

/// The text, and the line of the first form.
pub fn text(version: &str, target: &str, independent: bool, forms: &[&str]) -> (String, usize) {
    let (mode, sampler) = match independent {
        true => (", texmode_independent", ".global .samplerref sampler;\n"),
        false => ("", ""),
    };
    // Not of every target.
    let quads = if forms.iter().any(|form| form.contains("%q")) { ".reg .b128 %q<10>;\n" } else { "" };
    let mut text = format!(
        ".version {version}\n.target {target}{mode}\n.address_size 64\n\
         .global .texref texture;\n.global .surfref surface;\n{sampler}\
         .visible .global .u32 variable;\n.visible .func function() {{ ret; }}\n\
         .visible .entry kernel(.param .align 16 .b8 parameter[64]) {{\n.shared .align 16 .b8 tile[64];\n.local .align 16 .b8 local[64];\n\
         .reg .pred %p<10>;\n.reg .b8 %b<10>;\n.reg .b16 %h<20>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n{quads}\
         .reg .f32 %f<20>;\n.reg .f64 %fd<20>;\n.reg .v2 .b32 %v<10>;\n.reg .v4 .b32 %w<10>;\n\
         targets: .branchtargets OUT, OUT;\nprototype: .callprototype _ ();\n"
    );
    let first = text.lines().count() + 1;
    for form in forms {
        text.push_str(form);
        text.push_str(";\n");
    }
    text.push_str("OUT:\nret;\n}\n");
    (text, first)
}

/// The forms that we refuse under this version and target, with what we say; and those that we have not.
pub fn refused(version: &str, target: &str, forms: &[String]) -> (BTreeMap<usize, String>, BTreeSet<usize>) {
    let (mut refused, mut missing) = (BTreeMap::new(), BTreeSet::new());
    for mode in [false, true] {
        let some: Vec<usize> = (0..forms.len()).filter(|&at| is_independent(&forms[at]) == mode).collect();
        let texts: Vec<&str> = some.iter().map(|&at| forms[at].as_str()).collect();
        let (text, first) = self::text(version, target, mode, &texts);
        let program = Program::load(&[Source { name: "forms.ptx".to_owned(), text }])
            .unwrap_or_else(|diagnostics| panic!("{version} {target}: {diagnostics:?}"));
        for diagnostic in &program.diagnostics {
            // In front are declarations, which every target is given.
            let Some(at) = (diagnostic.line as usize).checked_sub(first) else { continue };
            let at = some[at];
            if diagnostic.message.contains("is not supported") {
                missing.insert(at);
            } else {
                refused.entry(at).or_insert_with(|| diagnostic.message.clone());
            }
        }
    }
    (refused, missing)
}

/// The forms that we refuse, for whatever reason, with what we say: of forms that may be no PTX at all, and which may be
/// refused only where all else is right.
pub fn refused_one_by_one(version: &str, target: &str, forms: &[String]) -> BTreeMap<usize, String> {
    let mut refused = BTreeMap::new();
    for mode in [false, true] {
        let mut left: Vec<usize> =
            (0..forms.len()).filter(|&at| is_independent(&forms[at]) == mode).collect();
        loop {
            let texts: Vec<&str> = left.iter().map(|&at| forms[at].as_str()).collect();
            let (text, first) = self::text(version, target, mode, &texts);
            let loaded = Program::load(&[Source { name: "forms.ptx".to_owned(), text }]);
            let diagnostics = match &loaded {
                Ok(program) => &program.diagnostics,
                Err(diagnostics) => diagnostics,
            };
            let n_before = refused.len();
            for diagnostic in diagnostics {
                let at = (diagnostic.line as usize).checked_sub(first).and_then(|at| left.get(at));
                let &at = at.unwrap_or_else(|| panic!("{version} {target}: {diagnostic}"));
                refused.entry(at).or_insert_with(|| diagnostic.message.clone());
            }
            if diagnostics.is_empty() {
                break;
            }
            assert!(refused.len() > n_before, "{version} {target}: {diagnostics:?}");
            left.retain(|at| !refused.contains_key(at));
        }
    }
    refused
}

/// Where forms are taken: by the form, the targets of [`TARGETS`] and the first version.
pub struct Taken {
    targets: Vec<Vec<bool>>,
    since: Vec<&'static str>,
}

impl Taken {
    /// Asks for every form under every target, and under every version.
    pub fn ask(forms: &[String]) -> Taken {
        let mut targets = vec![vec![true; TARGETS.len()]; forms.len()];
        for (nth, (target, _)) in TARGETS.iter().enumerate() {
            for at in refused("9.5", target, forms).0.into_keys() {
                targets[at][nth] = false;
            }
        }
        // A target that came after all of these is held to the version alone.
        let mut since = vec![VERSIONS[0]; forms.len()];
        for pair in VERSIONS.windows(2) {
            for (at, said) in refused(pair[0], "sm_999", forms).0 {
                if said.contains(" needs '.version' ") {
                    since[at] = pair[1];
                }
            }
        }
        Taken { targets, since }
    }

    /// In words for forms of the table that belong together, which are there from the target `lowest`.
    pub fn words(&self, forms: std::ops::Range<usize>, lowest: &str) -> String {
        let all = |nth: usize| forms.clone().all(|at| self.targets[at][nth]);
        let set: Vec<bool> = (0..TARGETS.len()).map(all).collect();
        let since = |pick: fn(usize, usize) -> usize| {
            let place = |at: usize| VERSIONS.iter().position(|&it| it == self.since[at]).unwrap();
            VERSIONS[forms.clone().map(place).reduce(pick).unwrap()]
        };
        let (first, last) = (since(usize::min), since(usize::max));
        if set.iter().all(|is| !is) {
            return format!("{lowest}, PTX {first}, gone in 6.5");
        }
        let mut words = named(&set, lowest);
        if last != VERSIONS[0] {
            words += &match first == last {
                true => format!(", PTX {first}"),
                false if first == VERSIONS[0] => format!(", some PTX {last}"),
                false => format!(", PTX {first} to {last}"),
            };
        }
        words
    }
}

/// A set of targets as the manual names it.
fn named(set: &[bool], lowest: &str) -> String {
    let number =
        |nth: usize| -> u32 { TARGETS[nth].0[3..].trim_end_matches(char::is_alphabetic).parse().unwrap() };
    let letter = |nth: usize| TARGETS[nth].0.chars().last().filter(char::is_ascii_alphabetic);
    let first = set.iter().position(|&is| is).expect("a target has it");
    let end = set.iter().rposition(|&is| is).unwrap() + 1;
    if letter(first).is_none() && set[first..end].iter().all(|&is| is) {
        let from = if first == 0 { lowest } else { TARGETS[first].0 };
        return match end == set.len() {
            true => from.to_owned(),
            // What warps did without saying which of their lanes.
            false => format!("{from} to {}, all before PTX 6.4", TARGETS[end - 1].0),
        };
    }
    let mut left = set.to_vec();
    let mut names = vec![];
    for nth in 0..set.len() {
        if !left[nth] {
            continue;
        }
        let family: Vec<usize> = (nth..set.len())
            .filter(|&it| number(it) / 10 == number(nth) / 10 && letter(it).is_some())
            .collect();
        names.push(TARGETS[nth].0);
        match letter(nth) {
            Some('f') if family.iter().all(|&it| left[it]) => {
                family.iter().for_each(|&it| left[it] = false);
            }
            _ => left[nth] = false,
        }
    }
    names.join(", ")
}
