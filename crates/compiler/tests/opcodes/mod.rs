//! `tools/data/ptx/opcodes.tsv`, read. Several tests share this.

#![allow(dead_code, reason = "each test uses a part")]

pub mod kernel;

use std::path::Path;

/// One line: instruction forms that belong together.
pub struct Row {
    pub chapter: String,
    /// `sm_80`
    pub target: String,
    /// With braces.
    pub example: String,
    /// Why it is not there, for what is specific to a target.
    pub reason: Option<String>,
}

/// All lines, in order.
pub fn rows() -> Vec<Row> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/data/ptx/opcodes.tsv");
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let (&[chapter, target, example], rest) = fields
                .split_first_chunk::<3>()
                .map_or_else(|| panic!("three fields: {line}"), |(fields, rest)| (fields, rest));
            assert!(rest.len() < 2, "four fields at most: {line}");
            Row {
                chapter: chapter.to_owned(),
                target: target.to_owned(),
                example: example.to_owned(),
                reason: rest.first().map(|it| (*it).to_owned()),
            }
        })
        .collect()
}

/// `a{b,c}d` is `abd` and `acd`. Braces with blanks inside, and those around a single word, are PTX's own.
pub fn expand(text: &str) -> Vec<String> {
    let alternatives = text.match_indices('{').find_map(|(open, _)| {
        let close = open + text[open..].find('}')?;
        let inside = &text[open..close];
        (inside.contains(',') && !inside.contains(", ")).then_some((open, close))
    });
    let Some((open, close)) = alternatives else { return vec![text.to_owned()] };
    text[open + 1..close]
        .split(',')
        .flat_map(|choice| expand(&format!("{}{choice}{}", &text[..open], &text[close + 1..])))
        .collect()
}
