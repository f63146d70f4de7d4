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
    clashes: Vec<&'static Clash>,
    typed: Vec<&'static Typed>,
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
        opcodes.split(' ').for_each(|opcode| of(opcode, &mut |it| it.clashes.extend(*clashes)));
    }
    for (opcodes, typed) in operands::TYPED {
        opcodes.split(' ').for_each(|opcode| of(opcode, &mut |it| it.typed.extend(*typed)));
    }
    known
});

/// The types among the modifiers, in order.
fn types(instruction: &Instruction<'_>) -> Vec<Type> {
    instruction.modifiers.iter().filter_map(|it| Type::parse(it.value)).collect()
}

/// Whether the clause holds, with the word that makes it hold.
fn holds<'i, 'a>(
    clause: &str,
    instruction: &'i Instruction<'a>,
    types: &[Type],
) -> Option<Option<&'i Ident<'a>>> {
    let (is_negated, clause) = match clause.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, clause),
    };
    let found = match clause.split_once('=') {
        Some((nth, words)) => {
            let ty = nth.parse::<usize>().ok().and_then(|nth| types.get(nth));
            let Some(ty) = ty else { return is_negated.then_some(None) };
            let is_one = words.split('|').any(|it| it == ty.name());
            let word = || instruction.modifiers.iter().find(|it| it.value == ty.name());
            if is_one || is_negated { Some((is_one, word())) } else { None }
        }
        None => {
            let word = instruction.modifiers.iter().find(|it| clause.split('|').any(|word| word == it.value));
            word.map(|word| (true, Some(word)))
        }
    };
    match found {
        Some((true, word)) => (!is_negated).then_some(word),
        Some((false, word)) => Some(word),
        None => is_negated.then_some(None),
    }
}

impl<'a> Lowerer<'_, '_, 'a> {
    /// Whether the instruction, which was lowered and whose opcode has that place in the opcode table, may be.
    pub(super) fn check_form(&mut self, place: usize, instruction: &Instruction<'a>) -> Lower {
        let known = &KNOWN[place];
        names::check(&known.names, instruction)?;
        let types = types(instruction);
        for clash in &known.clashes {
            let mut first = None;
            let all = clash.clauses.iter().all(|clause| match holds(clause, instruction, &types) {
                Some(word) => {
                    first = first.or(word);
                    true
                }
                None => false,
            });
            if all {
                let span = first.map_or(instruction.opcode.span, |word| word.span);
                return fail(span, format!("'{}' {}", instruction.full_name(), clash.message));
            }
        }
        for group in words::ALTERNATIVES {
            let mut found = instruction.modifiers.iter().filter(|it| group.contains(&it.value));
            if let (Some(_), Some(second)) = (found.next(), found.next()) {
                let message =
                    format!("'.{}' is the second of its kind in '{}'", second.value, instruction.full_name());
                return fail(second.span, message);
            }
        }
        let typed = known
            .typed
            .iter()
            .find(|it| it.clauses.iter().all(|clause| holds(clause, instruction, &types).is_some()));
        self.check_operands(typed.map_or("", |it| it.operands), instruction, &types)
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
