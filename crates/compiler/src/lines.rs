//! From a position in the PTX text to what a person looks up: its line, and the source line that `.loc` names.
//!
//! Kernel code carries positions as numbers of 31 bits that count through the texts of all sources.

use std::sync::{Arc, OnceLock};

use ptx::ast::{Item, Statement};
use ptx::{LineIndex, Span};

use crate::ir::Pos;
use crate::program::Source;

/// Where an instruction stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the PTX source.
    pub ptx: String,
    /// From 1.
    pub line: u32,
    /// File and line of the program's source, where the PTX has `.loc` (nvcc's `-lineinfo` or `-G`).
    pub source: Option<(String, u32)>,
    /// Where the compiler inlined that line.
    pub inlined_at: Option<(String, u32)>,
}

/// The lines of all sources of a program; what the texts say of them is read when somebody asks.
#[derive(Clone, Default)]
pub struct Lines {
    sources: Arc<[Source]>,
    read: Arc<[Text]>,
}

/// What was read of one source so far.
#[derive(Default)]
struct Text {
    /// Where each line begins.
    starts: OnceLock<Vec<u32>>,
    directives: OnceLock<Directives>,
}

/// Its `.file` and `.loc` directives.
struct Directives {
    /// In the text's order: from this byte on, instructions belong to this file and line.
    locations: Vec<(u32, Option<Location>)>,
    /// By the index of `.file`.
    files: Vec<(u64, String)>,
}

#[derive(Clone, Copy)]
struct Location {
    file: u64,
    line: u32,
    inlined_at: Option<(u64, u32)>,
}

/// Largest number of a position.
pub const MAX_NUMBER: u32 = u32::MAX >> 1;

impl Lines {
    pub(crate) fn new(sources: Vec<Source>) -> Lines {
        let read = sources.iter().map(|_| Text::default()).collect();
        Lines { sources: sources.into(), read }
    }

    /// The texts, in order.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// Line and column of a place in a source.
    pub(crate) fn position(&self, source: usize, span: Span) -> ptx::Position {
        let text = &self.sources[source].text;
        LineIndex::with(text, self.starts(source)).position(span.start)
    }

    fn starts(&self, source: usize) -> &[u32] {
        self.read[source].starts.get_or_init(|| ptx::line_starts(&self.sources[source].text))
    }

    /// The number that stands for a position in kernel code.
    pub fn number(&self, pos: Pos) -> u32 {
        let before = self.sources.iter().take(pos.source as usize);
        before.fold(pos.offset, |sum, source| sum.saturating_add(source.bytes())).min(MAX_NUMBER)
    }

    /// What a number of [`Lines::number`] stands for.
    pub fn place(&self, number: u32) -> Option<Place> {
        let mut offset = number;
        for (index, source) in self.sources.iter().enumerate() {
            if offset < source.bytes() {
                return Some(self.place_in(index, offset));
            }
            offset -= source.bytes();
        }
        None
    }

    fn place_in(&self, source: usize, offset: u32) -> Place {
        let Source { name, text } = &self.sources[source];
        let line = self.starts(source).partition_point(|&start| start <= offset) as u32;
        let Directives { locations, files } =
            self.read[source].directives.get_or_init(|| Directives::read(text));
        let at = locations.partition_point(|(from, _)| *from <= offset);
        let location = at.checked_sub(1).and_then(|at| locations[at].1);
        let named = |(file, line): (u64, u32)| {
            let name = files.iter().find(|(index, _)| *index == file);
            (name.map_or_else(|| format!("file {file}"), |(_, name)| name.clone()), line)
        };
        let source = location.map(|it| named((it.file, it.line)));
        let inlined_at = location.and_then(|it| it.inlined_at).map(named);
        Place { ptx: name.clone(), line, source, inlined_at }
    }
}

impl PartialEq for Lines {
    fn eq(&self, other: &Lines) -> bool {
        self.sources == other.sources
    }
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.sources.iter().map(|source| &source.name)).finish()
    }
}

impl Source {
    fn bytes(&self) -> u32 {
        u32::try_from(self.text.len()).unwrap_or(u32::MAX)
    }
}

impl Directives {
    fn read(text: &str) -> Directives {
        let mut read = Directives { locations: vec![], files: vec![] };
        for item in &ptx::parse(text).module.items {
            match item {
                Item::File(file) => read.files.push((file.index, file.name.value.to_owned())),
                Item::Function(function) => {
                    read.locations.push((function.span.start, None));
                    if let Some(body) = &function.body {
                        read.locate(&body.statements);
                    }
                }
                _ => {}
            }
        }
        read
    }

    /// Notes every `.loc`.
    fn locate(&mut self, statements: &[Statement<'_>]) {
        for statement in statements {
            match statement {
                Statement::Location(it) => {
                    let number = |line| u32::try_from(line).unwrap_or(u32::MAX);
                    let inlined_at = it.inlined_at.map(|(file, line, _)| (file, number(line)));
                    let location = Location { file: it.file, line: number(it.line), inlined_at };
                    self.locations.push((it.span.start, Some(location)));
                }
                Statement::Block(block) => self.locate(&block.statements),
                _ => {}
            }
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Some((file, line)) => write!(f, "{file}:{line}"),
            None => write!(f, "PTX line {} of {}", self.line, self.ptx),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::program::{Program, Source};

    const TEXT: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.file 1 \"a/b.cu\"\n\
        .visible .entry k() {\n.reg .b32 %r<2>;\n.loc 1 12 3\nmov.u32 %r1, 5;\nst.global.u32 [0], %r1;\n\
        .loc 1 14 1, function_name $L, inlined_at 1 20 2\nst.global.u32 [4], %r1;\nret;\n}\n.visible .entry plain() {\ntrap;\n}\n";

    #[test]
    fn a_position_leads_to_both_lines_in_every_source() {
        let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
        let other =
            TEXT.replace("entry k", "entry l").replace("entry plain", "entry bare").replace("12 3", "99 3");
        let program = Program::load(&[source("one", TEXT), source("two", &other)]).unwrap();
        let places = |kernel: &str| -> Vec<String> {
            let body = program.kernel(kernel).unwrap().body.as_ref().unwrap();
            let insts = body.blocks.iter().flat_map(|block| &block.insts);
            let effects = insts.filter(|inst| !inst.op.is_pure());
            effects
                .map(|inst| {
                    let place = program.lines.place(program.lines.number(inst.pos)).unwrap();
                    let inlined = place.inlined_at.as_ref().map_or(0, |it| it.1);
                    format!("{place} {}:{} {inlined}", place.ptx, place.line)
                })
                .collect()
        };
        assert_eq!(places("k"), ["a/b.cu:12 one:9 0", "a/b.cu:14 one:11 20"]);
        assert_eq!(places("l"), ["a/b.cu:99 two:9 0", "a/b.cu:14 two:11 20"]);
        assert_eq!(places("plain"), ["PTX line 15 of one one:15 0"]);
        assert_eq!(program.lines.place(u32::MAX), None);
    }
}
