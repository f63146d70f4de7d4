//! What an instruction may not be, though its lowering would know what to do with it: words that do not go together
//! (`words`), names whose words stand elsewhere (`names`), registers and constants of other types than the operand's
//! (`operands`).
//!
//! Where the manual leaves a question open, it is as ptxas of CUDA 13.5 has it; `cargo test -p compiler --test targets`
//! compares 10,000 changed forms with it. What no table speaks of is allowed: programs that ptxas accepts must never be
//! refused here.

mod names;
mod operands;
mod words;

use std::sync::LazyLock;

use ptx::ast::{Ident, Instruction, Type};

use super::function::Lowerer;
use super::instruction::{Lower, fail};
use super::table;

/// Words that cannot be together: an instruction in which all of `clauses` hold is refused.
///
/// A clause is words with `|` between them, of which one is there; with `!` in front none is. `0=u32|s32` speaks of the
/// first type, `1=` of the second.
struct Clash {
    clauses: &'static [&'static str],
    /// What is wrong, behind the instruction's name.
    message: &'static str,
}

const fn clash(clauses: &'static [&'static str], message: &'static str) -> Clash {
    Clash { clauses, message }
}

/// What operands are where `clauses` hold: one word each, see [`operands::Want`].
struct Typed {
    clauses: &'static [&'static str],
    operands: &'static str,
}

const fn typed(clauses: &'static [&'static str], operands: &'static str) -> Typed {
    Typed { clauses, operands }
}

/// What is known of an opcode, by its place in the opcode table.
#[derive(Default)]
struct Known {
    names: Vec<&'static str>,
    clashes: Vec<(Vec<Clause>, &'static str)>,
    typed: Vec<(Vec<Clause>, &'static str)>,
}

/// A clause, read once: every instruction asks.
struct Clause {
    is_negated: bool,
    /// The place of the type that it speaks of.
    ty: Option<usize>,
    words: Vec<&'static str>,
}

impl Clause {
    fn read(text: &'static str) -> Clause {
        let (is_negated, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (ty, words) = match text.split_once('=') {
            Some((nth, words)) => (nth.parse().ok(), words),
            None => (None, text),
        };
        Clause { is_negated, ty, words: words.split('|').collect() }
    }

    fn all(texts: &[&'static str]) -> Vec<Clause> {
        texts.iter().map(|text| Clause::read(text)).collect()
    }
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut known: Vec<Known> = table::TABLE.iter().map(|_| Known::default()).collect();
    let mut of = |opcode: &str, with: &mut dyn FnMut(&mut Known)| {
        if let Some(place) = table::place(opcode) {
            with(&mut known[place]);
        }
    };
    for (opcodes, names) in names::NAMES {
        opcodes.split(' ').for_each(|opcode| of(opcode, &mut |it| it.names.extend(*names)));
    }
    for (opcodes, clashes) in words::CLASHES {
        opcodes.split(' ').for_each(|opcode| {
            of(opcode, &mut |it| {
                it.clashes.extend(clashes.iter().map(|it| (Clause::all(it.clauses), it.message)));
            })
        });
    }
    for (opcodes, typed) in operands::TYPED {
        opcodes.split(' ').for_each(|opcode| {
            of(opcode, &mut |it| {
                it.typed.extend(typed.iter().map(|it| (Clause::all(it.clauses), it.operands)));
            })
        });
    }
    known
});

/// The types among the modifiers, in order.
fn types(instruction: &Instruction<'_>) -> Vec<Type> {
    instruction.modifiers.iter().filter_map(|it| Type::parse(it.value)).collect()
}

/// Whether the clause holds, with the word that makes it hold.
fn holds<'i, 'a>(
    clause: &Clause,
    instruction: &'i Instruction<'a>,
    types: &[Type],
) -> Option<Option<&'i Ident<'a>>> {
    let word = match clause.ty {
        Some(nth) => {
            let Some(ty) = types.get(nth) else { return clause.is_negated.then_some(None) };
            let word = || instruction.modifiers.iter().find(|it| it.value == ty.name());
            return (clause.words.contains(&ty.name()) != clause.is_negated).then(word);
        }
        None => instruction.modifiers.iter().find(|it| clause.words.contains(&it.value)),
    };
    match clause.is_negated {
        true => word.is_none().then_some(None),
        false => word.map(Some),
    }
}

impl<'a> Lowerer<'_, '_, 'a> {
    /// Whether the instruction, which was lowered and whose opcode has that place in the opcode table, may be.
    pub(super) fn check_form(&mut self, place: usize, instruction: &Instruction<'a>) -> Lower {
        let known = &KNOWN[place];
        names::check(&known.names, instruction)?;
        let types = types(instruction);
        for (clauses, message) in &known.clashes {
            let mut first = None;
            let all = clauses.iter().all(|clause| match holds(clause, instruction, &types) {
                Some(word) => {
                    first = first.or(word);
                    true
                }
                None => false,
            });
            if all {
                let span = first.map_or(instruction.opcode.span, |word| word.span);
                return fail(span, format!("'{}' {}", instruction.full_name(), message));
            }
        }
        words::check_priorities(instruction)?;
        let mut seen = 0u32;
        for modifier in &instruction.modifiers {
            let Some(group) = words::alternative(modifier.value) else { continue };
            if seen & 1 << group != 0 {
                let message = format!(
                    "'.{}' is the second of its kind in '{}'",
                    modifier.value,
                    instruction.full_name()
                );
                return fail(modifier.span, message);
            }
            seen |= 1 << group;
        }
        let typed = known
            .typed
            .iter()
            .find(|(clauses, _)| clauses.iter().all(|clause| holds(clause, instruction, &types).is_some()));
        self.check_operands(typed.map_or("", |it| it.1), instruction, &types)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_speak_of_instructions_that_are_there() {
        let opcodes = names::NAMES.iter().map(|it| it.0);
        let opcodes = opcodes.chain(words::CLASHES.iter().map(|it| it.0));
        for opcode in opcodes.chain(operands::TYPED.iter().map(|it| it.0)).flat_map(|it| it.split(' ')) {
            assert!(table::place(opcode).is_some(), "'{opcode}'");
        }
    }
}
