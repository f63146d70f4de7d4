//! What a source's `.version` and `.target` allow: the table of what each instruction form needs, and the check against
//! it, which every instruction passes before it is lowered.
//!
//! An instruction has to satisfy every rule that fits its words, so a form is described by what is special about it.
//! The versions and targets are what ptxas of CUDA 13.5 accepts; `cargo test -p compiler --test targets` compares all
//! forms of `tools/data/ptx/opcodes.tsv` with it. What no rule speaks of is allowed: programs that ptxas accepts must
//! never be refused here.

use std::sync::LazyLock;

use ptx::Span;
use ptx::ast::{Instruction, OperandKind};

use super::function::Lowerer;
use super::instruction::{Lower, fail};
use super::table;

/// A set of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Targets {
    /// A bit for each of [`KNOWN`].
    mask: u64,
    /// As the table writes it, without `sm_`.
    text: &'static str,
}

/// Number and letter of every target that ptxas of CUDA 13.5 knows, and the first `.version` that it may stand with; the
/// first entry is all that came before sm_50.
const KNOWN: &[(u16, u8, &str)] = &[
    (0, 0, "0.0"),
    (50, 0, "4.0"),
    (52, 0, "4.1"),
    (53, 0, "4.2"),
    (60, 0, "5.0"),
    (61, 0, "5.0"),
    (62, 0, "5.0"),
    (70, 0, "5.1"),
    (72, 0, "6.1"),
    (75, 0, "6.3"),
    (80, 0, "7.0"),
    (86, 0, "7.1"),
    (87, 0, "7.4"),
    (88, 0, "9.0"),
    (89, 0, "7.8"),
    (90, 0, "7.8"),
    (90, b'a', "8.0"),
    (100, 0, "8.6"),
    (100, b'f', "8.8"),
    (100, b'a', "8.6"),
    (103, 0, "8.8"),
    (103, b'f', "8.8"),
    (103, b'a', "8.8"),
    (107, 0, "9.4"),
    (107, b'f', "9.4"),
    (107, b'a', "9.4"),
    (110, 0, "9.0"),
    (110, b'f', "9.0"),
    (110, b'a', "9.0"),
    (120, 0, "8.7"),
    (120, b'f', "8.8"),
    (120, b'a', "8.7"),
    (121, 0, "8.8"),
    (121, b'f', "8.8"),
    (121, b'a', "8.8"),
];

/// `80` is sm_80 and all that came later, `100f` what belongs to the family of sm_100f and came no earlier, `90a` is
/// sm_90a alone. Blanks stand for "or".
const fn targets(text: &'static str) -> Targets {
    let bytes = text.as_bytes();
    let (mut mask, mut at) = (0, 0);
    while at < bytes.len() {
        let mut number = 0;
        while at < bytes.len() && bytes[at].is_ascii_digit() {
            number = number * 10 + (bytes[at] - b'0') as u16;
            at += 1;
        }
        let letter = if at < bytes.len() && bytes[at] != b' ' { bytes[at] } else { 0 };
        let mut known = 0;
        while known < KNOWN.len() {
            let (its_number, its_letter, _) = KNOWN[known];
            let is_one = match letter {
                b'a' => its_number == number && its_letter == b'a',
                b'f' => its_number >= number && its_number / 10 == number / 10 && its_letter != 0,
                _ => its_number >= number,
            };
            if is_one {
                mask |= 1 << known;
            }
            known += 1;
        }
        while at < bytes.len() && !bytes[at].is_ascii_digit() {
            at += 1;
        }
    }
    Targets { mask, text }
}

impl std::fmt::Display for Targets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (nth, target) in self.text.split(' ').enumerate() {
            let (or, later) = (
                if nth > 0 { " or " } else { "" },
                match target.as_bytes().last() {
                    Some(b'a') => "",
                    Some(b'f') => " (or its family)",
                    _ => " or later",
                },
            );
            write!(f, "{or}sm_{target}{later}")?;
        }
        Ok(())
    }
}

/// `8.6` as a number that can be compared.
const fn version(text: &str) -> u16 {
    let bytes = text.as_bytes();
    let (mut numbers, mut nth, mut at) = ([0u16; 2], 0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'.' => nth += 1,
            digit => numbers[nth] = numbers[nth] * 10 + (digit - b'0') as u16,
        }
        at += 1;
    }
    numbers[0] * 100 + numbers[1]
}

const ALL: Targets = targets("0");

/// What a form needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    /// The first `.version` that has it.
    from: u16,
    targets: Targets,
}

impl Need {
    pub(super) const fn new(from: &str, on: &'static str) -> Need {
        Need { from: version(from), targets: targets(on) }
    }
}

/// What instructions need in which all `words` are.
struct Rule {
    /// Modifiers, in this order, others between them or not. Besides: `!word` is a modifier that is missing, `v8&b32|f32` are
    /// two in any order, of which the second is one of two; `#3` says that there are three operands or more, `|` that a
    /// pair is written and `_` that the result is dropped.
    words: &'static [&'static str],
    need: Need,
    /// The first version that has it no longer.
    until: u16,
    /// The targets that the rule speaks of; others have no such limit.
    only: Targets,
}

const fn rule(words: &'static [&'static str], from: &str, on: &'static str) -> Rule {
    Rule { words, need: Need::new(from, on), until: u16::MAX, only: ALL }
}

/// A form that these targets lost with a version.
const fn lost(words: &'static [&'static str], until: &str, only: &'static str) -> Rule {
    Rule { words, need: Need::new("0.0", "0"), until: version(until), only: targets(only) }
}

/// A form that these targets have since this version, where the others have it since another.
const fn later(words: &'static [&'static str], from: &str, only: Targets) -> Rule {
    Rule { words, need: Need::new(from, "0"), until: u16::MAX, only }
}

impl Rule {
    /// The last of the rule's words in the instruction's modifiers, if all its words fit.
    fn fits(&self, instruction: &Instruction<'_>) -> Option<Option<usize>> {
        let modifiers = &instruction.modifiers;
        let mut from = 0;
        for word in self.words {
            let fits = match word.as_bytes() {
                [b'!', ..] => !instruction.has(&word[1..]),
                [b'#', digit] => instruction.operands.len() >= usize::from(digit - b'0'),
                [b'_'] => {
                    matches!(instruction.operands.first().map(|it| &it.kind), Some(OperandKind::Sink))
                }
                [b'|'] => {
                    matches!(instruction.operands.first().map(|it| &it.kind), Some(OperandKind::Pair(..)))
                }
                _ if word.contains('&') => {
                    let mut found = word.split('&').map(|part| {
                        modifiers.iter().position(|it| part.split('|').any(|one| it.value == one))
                    });
                    found.try_fold(from, |from, at| Some(from.max(at? + 1))).map(|last| from = last).is_some()
                }
                _ => {
                    let found = modifiers[from..].iter().position(|it| it.value == *word);
                    from += found? + 1;
                    true
                }
            };
            if !fits {
                return None;
            }
        }
        Some(from.checked_sub(1))
    }
}

/// Number and letter (or 0) of a directive's word: 90 and `a` of `.target sm_90a`.
pub(crate) fn architecture(word: &str) -> Option<(u32, u8)> {
    let word = word.strip_prefix("sm_")?;
    let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    Some((digits.parse().ok()?, word.as_bytes().get(digits.len()).copied().unwrap_or(0)))
}

/// Its place in [`KNOWN`].
fn known(word: &str) -> Option<usize> {
    match architecture(word)? {
        (..50, _) => Some(0),
        wanted => KNOWN.iter().position(|&(number, letter, _)| (u32::from(number), letter) == wanted),
    }
}

/// A version of the text as [`version`] has those of the table.
fn number((major, minor): (u32, u32)) -> u16 {
    u16::try_from(major.saturating_mul(100).saturating_add(minor)).unwrap_or(u16::MAX)
}

/// Why a target cannot stand with this version, if it cannot.
pub(crate) fn wrong_target(said: (u32, u32), target: &str) -> Option<String> {
    let since = KNOWN[known(target)?].2;
    let (major, minor) = said;
    (number(said) < version(since))
        .then(|| format!("'.target' {target} needs '.version' {since}, which is {major}.{minor} here"))
}

/// The rules with their opcodes' places in the opcode table, which are looked up once: every load asks for them.
static PLACED: LazyLock<Vec<(usize, &'static [Rule])>> = LazyLock::new(|| {
    RULES.iter().filter_map(|(opcode, rules)| Some((table::place(opcode)?, *rules))).collect()
});

/// What a source says of itself.
pub(crate) struct Dialect {
    version: (u32, u32),
    /// The same as the table writes it.
    number: u16,
    /// One bit of those of [`KNOWN`]; all of them for a target that is not known here.
    target: u64,
    /// By an opcode's place in the opcode table: the rules that this source does not meet. Most instructions have none.
    unmet: Vec<Vec<&'static Rule>>,
}

impl Dialect {
    /// `target` is the word of the directive: `sm_90a`.
    pub(crate) fn new(version: (u32, u32), target: Option<&str>) -> Dialect {
        let number = number(version);
        let target = target.and_then(known).map_or(u64::MAX, |at| 1 << at);
        let is_unmet = |rule: &&Rule| {
            let is_met =
                rule.need.targets.mask & target != 0 && (rule.need.from..rule.until).contains(&number);
            !is_met && rule.only.mask & target != 0
        };
        let mut unmet = vec![vec![]; table::TABLE.len()];
        for (place, rules) in &*PLACED {
            unmet[*place] = rules.iter().filter(is_unmet).collect();
        }
        Dialect { version, number, target, unmet }
    }

    /// Why this `what` of a source cannot be, if it cannot.
    pub(super) fn refusal(&self, need: &Need, what: impl FnOnce() -> String) -> Option<String> {
        if need.targets.mask & self.target == 0 {
            return Some(format!("{} needs '.target' {}", what(), need.targets));
        }
        if self.number < need.from {
            let (major, minor) = self.version;
            let (needed, its_minor) = (need.from / 100, need.from % 100);
            return Some(format!(
                "{} needs '.version' {needed}.{its_minor}, which is {major}.{minor} here",
                what()
            ));
        }
        None
    }

    /// Whether the source may have this instruction, whose opcode has that place in the opcode table.
    pub(super) fn check(&self, place: usize, instruction: &Instruction<'_>) -> Lower {
        let opcode = instruction.opcode.value;
        for rule in &self.unmet[place] {
            let Some(last) = rule.fits(instruction) else { continue };
            let span = last.map_or(instruction.opcode.span, |last| instruction.modifiers[last].span);
            let what = || match last {
                Some(last) => format!("'.{}' of '{}'", instruction.modifiers[last].value, opcode),
                None => format!("'{}'", instruction.full_name()),
            };
            let message = self.refusal(&rule.need, what).unwrap_or_else(|| {
                let (major, minor) = (rule.until / 100, rule.until % 100);
                format!(
                    "'{}' is gone since '.version' {major}.{minor} for this target",
                    instruction.full_name()
                )
            });
            return fail(span, message);
        }
        Ok(())
    }
}

impl Lowerer<'_, '_, '_> {
    /// Whether the source may have `what`, which is known by its operands.
    pub(super) fn require(&self, span: Span, what: &str, need: &Need) -> Lower {
        let dialect = &self.module.linked.units[self.unit].dialect;
        match dialect.refusal(need, || what.to_owned()) {
            Some(message) => fail(span, message),
            None => Ok(()),
        }
    }
}

/// sm_89 alone.
const SM_89: Targets = Targets { mask: targets("89").mask & !targets("90").mask, text: "89" };

macro_rules! rules {
    ($($opcode:literal => [$($rule:expr,)*],)*) => {
        /// By opcode, sorted; a test says so.
        static RULES: &[(&str, &[Rule])] = &[$(($opcode, &[$($rule),*]),)*];
    };
}

rules! {
    "abs" => [
        rule(&["bf16"], "7.0", "80"),
        rule(&["bf16x2"], "7.0", "80"),
        rule(&["f16"], "6.5", "53"),
        rule(&["f16x2"], "6.5", "53"),
    ],
    "activemask" => [
        rule(&[], "6.2", "0"),
    ],
    "add" => [
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
        rule(&["f32x2"], "8.6", "100"),
        rule(&["s16x2"], "8.0", "90"),
        rule(&["u16x2"], "8.0", "90"),
        rule(&["cc", "s64"], "4.3", "0"),
        rule(&["cc", "u64"], "4.3", "0"),
        rule(&["f32", "bf16"], "8.6", "100"),
        rule(&["f32", "f16"], "8.6", "100"),
    ],
    "addc" => [
        rule(&["cc", "s64"], "4.3", "0"),
        rule(&["cc", "u64"], "4.3", "0"),
    ],
    "alloca" => [
        rule(&[], "7.3", "52"),
    ],
    "applypriority" => [
        rule(&[], "7.4", "80"),
    ],
    "atom" => [
        rule(&["L2::cache_hint"], "7.4", "80"),
        rule(&["acq_rel"], "5.1", "70"),
        rule(&["acquire"], "5.1", "70"),
        rule(&["b128"], "8.3", "90"),
        rule(&["b16"], "6.3", "70"),
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["cluster"], "7.8", "90"),
        rule(&["cta"], "5.0", "60"),
        rule(&["f16"], "6.3", "70"),
        rule(&["f64"], "5.0", "60"),
        rule(&["gpu"], "5.0", "60"),
        rule(&["noftz"], "6.2", "60"),
        rule(&["relaxed"], "5.1", "70"),
        rule(&["release"], "5.1", "70"),
        rule(&["shared::cluster"], "7.8", "90"),
        rule(&["shared::cta"], "7.8", "0"),
        rule(&["sys"], "5.0", "60"),
        rule(&["v2"], "8.1", "90"),
        rule(&["v4"], "8.1", "90"),
        rule(&["v8"], "8.1", "90"),
        rule(&["noftz", "f32"], "9.4", "90"),
        rule(&["sys", "b128"], "8.4", "90"),
    ],
    "bar" => [
        rule(&["warp"], "5.1", "0"),
    ],
    "barrier" => [
        rule(&[], "5.1", "0"),
        rule(&["acquire"], "8.0", "90"),
        rule(&["cluster"], "7.8", "90"),
        rule(&["cta"], "7.8", "0"),
        rule(&["relaxed"], "8.0", "90"),
        rule(&["release"], "8.0", "90"),
    ],
    "bmsk" => [
        rule(&[], "7.6", "70"),
    ],
    "brx" => [
        rule(&[], "5.1", "0"),
    ],
    "clusterlaunchcontrol" => [
        rule(&[], "8.6", "100"),
        rule(&["multicast::cluster::all"], "8.6", "100f 110f 120f"),
    ],
    "cp" => [
        rule(&[], "7.0", "80"),
        rule(&["L2::128B"], "7.4", "80"),
        rule(&["L2::256B"], "7.4", "80"),
        rule(&["L2::64B"], "7.4", "80"),
        rule(&["L2::cache_hint"], "7.4", "80"),
        rule(&["bulk"], "8.0", "90"),
        rule(&["multicast::cluster::32b"], "9.4", "107f"),
        rule(&["cp_mask"], "8.6", "100"),
        rule(&["cta_group::1"], "8.6", "100f 110f"),
        rule(&["cta_group::2"], "8.6", "100f 110f"),
        rule(&["im2col::w"], "8.6", "100"),
        rule(&["im2col::w::128"], "8.6", "100f 110f"),
        rule(&["ignore_oob"], "9.2", "90"),
        rule(&["mbarrier", "shared::cta"], "7.8", "80"),
        rule(&["prefetch", "im2col::w"], "8.6", "100f 110f"),
        rule(&["shared::cluster", "im2col::w"], "8.6", "100f 110f"),
        rule(&["shared::cta", "global", "mbarrier::complete_tx::bytes"], "8.6", "90"),
    ],
    "createpolicy" => [
        rule(&[], "7.4", "80"),
    ],
    "cvt" => [
        rule(&["bf16"], "7.0", "80"),
        rule(&["bf16x2"], "7.0", "80"),
        rule(&["e2m1x2"], "8.6", "100f 110f 120f"),
        rule(&["e2m3x2"], "8.6", "100f 110f 120f"),
        rule(&["e3m2x2"], "8.6", "100f 110f 120f"),
        rule(&["e4m3x2"], "7.8", "89"),
        rule(&["e5m2x2"], "7.8", "89"),
        rule(&["f16x2"], "7.0", "80"),
        rule(&["pack"], "6.5", "72"),
        rule(&["relu"], "7.0", "80"),
        rule(&["rs"], "8.7", "100a 103a 107a"),
        rule(&["s2"], "6.5", "75"),
        rule(&["s4"], "6.5", "75"),
        rule(&["scaled::n2::ue8m0"], "9.2", "100f 110f 120f"),
        rule(&["tf32"], "7.0", "80"),
        rule(&["u2"], "6.5", "75"),
        rule(&["u4"], "6.5", "75"),
        rule(&["ue8m0x2"], "8.6", "100f 110f 120f"),
        rule(&["bf16", "bf16"], "7.8", "90"),
        rule(&["bf16", "f16"], "7.8", "90"),
        rule(&["bf16", "f64"], "7.8", "90"),
        rule(&["bf16", "s16"], "7.8", "90"),
        rule(&["bf16", "s32"], "7.8", "90"),
        rule(&["bf16", "s64"], "7.8", "90"),
        rule(&["bf16", "u16"], "7.8", "90"),
        rule(&["bf16", "u32"], "7.8", "90"),
        rule(&["bf16", "u64"], "7.8", "90"),
        rule(&["bf16x2", "e2m1x2"], "9.2", "100f 110f 120f"),
        rule(&["bf16x2", "e2m3x2"], "9.2", "100f 110f 120f"),
        rule(&["bf16x2", "e3m2x2"], "9.2", "100f 110f 120f"),
        rule(&["bf16x2", "e4m3x2"], "9.2", "100f 110f 120f"),
        rule(&["bf16x2", "e5m2x2"], "9.2", "100f 110f 120f"),
        rule(&["e2m1x2", "bf16x2"], "9.1", "100f 110f 120f"),
        rule(&["e2m1x2", "f16x2"], "9.1", "100f 110f 120f"),
        rule(&["e2m3x2", "bf16x2"], "9.1", "100f 110f 120f"),
        rule(&["e2m3x2", "f16x2"], "9.1", "100f 110f 120f"),
        rule(&["e3m2x2", "bf16x2"], "9.1", "100f 110f 120f"),
        rule(&["e3m2x2", "f16x2"], "9.1", "100f 110f 120f"),
        rule(&["e4m3x2", "bf16x2"], "9.1", "100f 110f 120f"),
        rule(&["e5m2x2", "bf16x2"], "9.1", "100f 110f 120f"),
        rule(&["f16", "bf16"], "7.8", "90"),
        rule(&["f32", "bf16"], "7.1", "80"),
        rule(&["f64", "bf16"], "7.8", "90"),
        rule(&["rmi", "bf16"], "7.8", "90"),
        rule(&["rn", "tf32"], "7.8", "90"),
        rule(&["rni", "bf16"], "7.8", "90"),
        rule(&["rpi", "bf16"], "7.8", "90"),
        rule(&["rz", "tf32"], "7.8", "90"),
        rule(&["rzi", "bf16"], "7.8", "90"),
        rule(&["satfinite", "bf16"], "8.1", "80"),
        rule(&["satfinite", "bf16x2"], "8.1", "80"),
        rule(&["satfinite", "f16"], "8.1", "70"),
        rule(&["satfinite", "tf32"], "8.1", "80"),
        rule(&["ftz", "f32", "bf16"], "7.8", "90"),
        rule(&["satfinite", "f16x2", "f32"], "8.1", "80"),
        later(&["e4m3x2"], "8.1", SM_89),
        later(&["e5m2x2"], "8.1", SM_89),
    ],
    "cvta" => [
        rule(&["param"], "7.7", "70"),
        rule(&["param::entry"], "8.3", "70"),
        rule(&["shared::cluster"], "7.8", "90"),
        rule(&["shared::cta"], "7.8", "0"),
    ],
    "discard" => [
        rule(&[], "7.4", "80"),
    ],
    "dp2a" => [
        rule(&[], "5.0", "61"),
    ],
    "dp4a" => [
        rule(&[], "5.0", "61"),
    ],
    "elect" => [
        rule(&[], "8.0", "90"),
    ],
    "ex2" => [
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["f16"], "7.0", "75"),
        rule(&["f16x2"], "7.0", "75"),
    ],
    "fence" => [
        rule(&[], "5.1", "70"),
        rule(&["cluster"], "7.8", "90"),
        rule(&["mbarrier_init"], "8.0", "90"),
        rule(&["proxy"], "7.5", "70"),
        rule(&["sync_restrict::shared::cluster"], "8.6", "90"),
        rule(&["sync_restrict::shared::cta"], "8.6", "90"),
        rule(&["acquire", "!proxy"], "8.6", "90"),
        rule(&["proxy", "async"], "8.0", "90"),
        rule(&["proxy", "tensormap::generic"], "8.3", "90"),
        rule(&["release", "!proxy", "!mbarrier_init"], "8.6", "90"),
    ],
    "fma" => [
        rule(&["bf16"], "7.0", "80"),
        rule(&["bf16x2"], "7.0", "80"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
        rule(&["f32x2"], "8.6", "100"),
        rule(&["oob"], "8.1", "90"),
        rule(&["relu"], "7.0", "80"),
        rule(&["f32", "bf16"], "8.6", "100"),
        rule(&["f32", "f16"], "8.6", "100"),
    ],
    "fns" => [
        rule(&[], "5.1", "0"),
    ],
    "getctarank" => [
        rule(&[], "7.8", "90"),
    ],
    "griddepcontrol" => [
        rule(&[], "7.8", "90"),
    ],
    "isspacep" => [
        rule(&["param"], "7.7", "70"),
        rule(&["param::entry"], "8.3", "70"),
        rule(&["shared::cluster"], "7.8", "90"),
        rule(&["shared::cta"], "7.8", "0"),
    ],
    "ld" => [
        rule(&["L1::evict_first"], "7.4", "70"),
        rule(&["L1::evict_last"], "7.4", "70"),
        rule(&["L1::evict_normal"], "7.4", "70"),
        rule(&["L1::evict_unchanged"], "7.4", "70"),
        rule(&["L1::no_allocate"], "7.4", "70"),
        rule(&["L2::128B"], "7.4", "75"),
        rule(&["L2::256B"], "7.4", "80"),
        rule(&["L2::64B"], "7.4", "75"),
        rule(&["L2::cache_hint"], "7.4", "80"),
        rule(&["acquire"], "5.1", "70"),
        rule(&["b128"], "8.3", "70"),
        rule(&["cluster"], "7.8", "90"),
        rule(&["mmio"], "8.2", "70"),
        rule(&["param::entry"], "8.3", "0"),
        rule(&["param::func"], "8.3", "0"),
        rule(&["relaxed"], "5.1", "70"),
        rule(&["shared::cluster"], "7.8", "90"),
        rule(&["shared::cta"], "7.8", "0"),
        rule(&["v8&b32|f32|s32|u32"], "8.8", "100"),
        rule(&["weak"], "5.1", "70"),
        rule(&["acquire", "mmio"], "9.3", "70"),
        rule(&["sys", "b128"], "8.4", "70"),
        rule(&["v4&b64|f64|s64|u64"], "8.8", "100"),
        rule(&["volatile&local"], "9.1", "0"),
    ],
    "ldmatrix" => [
        rule(&[], "6.5", "75"),
        rule(&["b8x16"], "8.6", "100f 110f 120f"),
        rule(&["m16n16"], "8.6", "100f 110f 120f"),
        rule(&["shared::cta"], "7.8", "75"),
    ],
    "lop3" => [
        rule(&[], "4.3", "0"),
        rule(&["and"], "8.2", "70"),
        rule(&["or"], "8.2", "70"),
    ],
    "mad" => [
        rule(&["cc", "s64"], "4.3", "0"),
        rule(&["cc", "u64"], "4.3", "0"),
        lost(&["f32", "!rn", "!rz", "!rm", "!rp"], "3.2", "0"),
    ],
    "madc" => [
        rule(&["cc", "s64"], "4.3", "0"),
        rule(&["cc", "u64"], "4.3", "0"),
    ],
    "mapa" => [
        rule(&[], "7.8", "90"),
    ],
    "match" => [
        rule(&[], "5.1", "70"),
    ],
    "max" => [
        rule(&["#4"], "8.8", "100"),
        rule(&["NaN"], "7.0", "80"),
        rule(&["bf16"], "7.0", "80"),
        rule(&["bf16x2"], "7.0", "80"),
        rule(&["f16"], "7.0", "80"),
        rule(&["f16x2"], "7.0", "80"),
        rule(&["relu"], "8.0", "90"),
        rule(&["s16x2"], "8.0", "90"),
        rule(&["u16x2"], "8.0", "90"),
        rule(&["xorsign"], "7.2", "86"),
    ],
    "mbarrier" => [
        rule(&[], "7.0", "80"),
        rule(&["cluster"], "8.0", "90"),
        rule(&["complete_tx"], "8.0", "90"),
        rule(&["cta"], "8.0", "80"),
        rule(&["expect_tx"], "8.0", "90"),
        rule(&["parity"], "7.1", "80"),
        rule(&["shared::cluster"], "8.0", "90"),
        rule(&["shared::cta"], "7.8", "80"),
        rule(&["try_wait"], "7.8", "90"),
        rule(&["arrive", "_"], "7.1", "80"),
        rule(&["arrive", "relaxed"], "8.6", "90"),
        rule(&["arrive_drop", "relaxed"], "8.6", "90"),
        rule(&["test_wait", "relaxed"], "8.6", "90"),
        rule(&["try_wait", "relaxed"], "8.6", "90"),
        rule(&["arrive", "!noComplete", "#3"], "7.8", "90"),
        rule(&["arrive_drop", "!noComplete", "#3"], "7.8", "90"),
    ],
    "membar" => [
        rule(&["async"], "8.0", "90"),
        rule(&["proxy"], "7.5", "60"),
    ],
    "min" => [
        rule(&["#4"], "8.8", "100"),
        rule(&["NaN"], "7.0", "80"),
        rule(&["bf16"], "7.0", "80"),
        rule(&["bf16x2"], "7.0", "80"),
        rule(&["f16"], "7.0", "80"),
        rule(&["f16x2"], "7.0", "80"),
        rule(&["relu"], "8.0", "90"),
        rule(&["s16x2"], "8.0", "90"),
        rule(&["u16x2"], "8.0", "90"),
        rule(&["xorsign"], "7.2", "86"),
    ],
    "mma" => [
        rule(&[], "6.4", "70"),
        rule(&["and"], "7.1", "80"),
        rule(&["bf16"], "7.0", "80"),
        rule(&["e2m1"], "8.7", "120f"),
        rule(&["e2m3"], "8.7", "120f"),
        rule(&["e3m2"], "8.7", "120f"),
        rule(&["e4m3"], "8.4", "89"),
        rule(&["e5m2"], "8.4", "89"),
        rule(&["f64"], "7.0", "80"),
        rule(&["kind::f8f6f4"], "8.6", "100f 110f 120f"),
        rule(&["kind::mxf8f6f4"], "8.7", "100f 110f 120f"),
        rule(&["m16n8k128"], "7.0", "80"),
        rule(&["m16n8k16"], "7.0", "80"),
        rule(&["m16n8k256"], "7.0", "80"),
        rule(&["m16n8k32"], "7.0", "80"),
        rule(&["m16n8k64"], "7.0", "80"),
        rule(&["m16n8k8"], "6.5", "75"),
        rule(&["s32"], "6.5", "75"),
        rule(&["sp"], "7.1", "80"),
        rule(&["sp::ordered_metadata"], "8.5", "80"),
        rule(&["tf32"], "7.0", "80"),
        rule(&["ue8m0"], "8.7", "120f"),
        rule(&["xor"], "7.0", "75"),
        rule(&["f16", "e4m3"], "8.7", "89"),
        rule(&["f16", "e5m2"], "8.7", "89"),
        rule(&["m16n8k128", "e2m1"], "8.7", "120a 121a"),
        rule(&["m16n8k16", "e4m3"], "8.7", "89"),
        rule(&["m16n8k16", "e5m2"], "8.7", "89"),
        rule(&["m16n8k16", "f64"], "7.8", "90"),
        rule(&["m16n8k4", "f64"], "7.8", "90"),
        rule(&["m16n8k64", "f16"], "8.7", "120f"),
        rule(&["m16n8k8", "f64"], "7.8", "90"),
        rule(&["scale_vec::4X", "ue8m0"], "9.1", "120f"),
        rule(&["sp::ordered_metadata", "kind::mxf4"], "8.7", "120a 121a"),
    ],
    "mov" => [
        rule(&["b128"], "8.3", "70"),
    ],
    "movmatrix" => [
        rule(&[], "7.8", "75"),
    ],
    "mul" => [
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
        rule(&["f32x2"], "8.6", "100"),
    ],
    "multimem" => [
        rule(&[], "8.1", "90"),
        rule(&["acc::f16"], "8.6", "100f 110f 120a 121a"),
        rule(&["e4m3"], "8.6", "100f 110f 120a 121a"),
        rule(&["e4m3x2"], "8.6", "100f 110f 120a 121a"),
        rule(&["e4m3x4"], "8.6", "100f 110f 120a 121a"),
        rule(&["e5m2"], "8.6", "100f 110f 120a 121a"),
        rule(&["e5m2x2"], "8.6", "100f 110f 120a 121a"),
        rule(&["e5m2x4"], "8.6", "100f 110f 120a 121a"),
        rule(&["shared::cta"], "9.1", "90"),
        rule(&["ld_reduce", "acc::f32"], "8.2", "90"),
    ],
    "nanosleep" => [
        rule(&[], "6.2", "70"),
    ],
    "neg" => [
        rule(&["bf16"], "7.0", "80"),
        rule(&["bf16x2"], "7.0", "80"),
        rule(&["f16"], "5.1", "53"),
        rule(&["f16x2"], "5.1", "53"),
    ],
    "prefetch" => [
        rule(&["L2::evict_last"], "7.4", "80"),
        rule(&["L2::evict_normal"], "7.4", "80"),
        rule(&["tensormap"], "8.0", "90"),
    ],
    "red" => [
        rule(&["L2::cache_hint"], "7.4", "80"),
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["cluster"], "7.8", "90"),
        rule(&["cta"], "5.0", "60"),
        rule(&["f16"], "6.3", "70"),
        rule(&["f64"], "5.0", "60"),
        rule(&["gpu"], "5.0", "60"),
        rule(&["mbarrier::complete_tx::bytes"], "8.1", "90"),
        rule(&["noftz"], "6.2", "60"),
        rule(&["relaxed"], "5.1", "70"),
        rule(&["release"], "5.1", "70"),
        rule(&["shared::cluster"], "7.8", "90"),
        rule(&["shared::cta"], "7.8", "0"),
        rule(&["sys"], "5.0", "60"),
        rule(&["v2"], "8.1", "90"),
        rule(&["v4"], "8.1", "90"),
        rule(&["v8"], "8.1", "90"),
        rule(&["async", "release"], "8.7", "100"),
        rule(&["noftz", "f32"], "9.4", "90"),
    ],
    "redux" => [
        rule(&[], "7.0", "80"),
        rule(&["f32"], "8.6", "100f"),
    ],
    "set" => [
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
        rule(&["s16", "f16"], "6.5", "53"),
        rule(&["s32", "f16"], "6.5", "53"),
        rule(&["s32", "f16x2"], "6.5", "53"),
        rule(&["u16", "f16"], "6.5", "53"),
        rule(&["u32", "f16"], "6.5", "53"),
        rule(&["u32", "f16x2"], "6.5", "53"),
    ],
    "setmaxnreg" => [
        rule(&[], "8.0", "90a 100f 110f 120f"),
    ],
    "setp" => [
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
    ],
    "shfl" => [
        rule(&["sync"], "5.1", "0"),
        lost(&["!sync"], "6.4", "70"),
    ],
    "st" => [
        rule(&["L1::evict_first"], "7.4", "70"),
        rule(&["L1::evict_last"], "7.4", "70"),
        rule(&["L1::evict_normal"], "7.4", "70"),
        rule(&["L1::evict_unchanged"], "7.4", "70"),
        rule(&["L1::no_allocate"], "7.4", "70"),
        rule(&["L2::cache_hint"], "7.4", "80"),
        rule(&["async"], "8.1", "90"),
        rule(&["b128"], "8.3", "70"),
        rule(&["bulk"], "8.6", "100"),
        rule(&["cluster"], "7.8", "90"),
        rule(&["mmio"], "8.2", "70"),
        rule(&["param::func"], "8.3", "0"),
        rule(&["relaxed"], "5.1", "70"),
        rule(&["release"], "5.1", "70"),
        rule(&["shared::cluster"], "7.8", "90"),
        rule(&["shared::cta"], "7.8", "0"),
        rule(&["v8&b32|f32|s32|u32"], "8.8", "100"),
        rule(&["weak"], "5.1", "70"),
        rule(&["async", "release"], "8.7", "100"),
        rule(&["sys", "b128"], "8.4", "70"),
        rule(&["v4&b64|f64|s64|u64"], "8.8", "100"),
        rule(&["volatile&local"], "9.1", "0"),
    ],
    "stackrestore" => [
        rule(&[], "7.3", "52"),
    ],
    "stacksave" => [
        rule(&[], "7.3", "52"),
    ],
    "stmatrix" => [
        rule(&[], "7.8", "90"),
        rule(&["m16n8"], "8.6", "100f 110f 120f"),
    ],
    "sub" => [
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
        rule(&["f32x2"], "8.6", "100"),
        rule(&["cc", "s64"], "4.3", "0"),
        rule(&["cc", "u64"], "4.3", "0"),
        rule(&["f32", "bf16"], "8.6", "100"),
        rule(&["f32", "f16"], "8.6", "100"),
    ],
    "subc" => [
        rule(&["cc", "s64"], "4.3", "0"),
        rule(&["cc", "u64"], "4.3", "0"),
    ],
    "suq" => [
        rule(&["array_size"], "4.1", "0"),
        rule(&["memory_layout"], "4.2", "0"),
    ],
    "sured" => [
        rule(&["b64"], "8.1", "0"),
        rule(&["s64"], "8.1", "0"),
        rule(&["max", "u64"], "8.1", "0"),
        rule(&["min", "u64"], "8.1", "0"),
    ],
    "sust" => [
        rule(&["p", "a1d"], "4.1", "0"),
        rule(&["p", "a2d"], "4.1", "0"),
    ],
    "szext" => [
        rule(&[], "7.6", "70"),
    ],
    "tanh" => [
        rule(&[], "7.0", "75"),
        rule(&["bf16"], "7.8", "90"),
        rule(&["bf16x2"], "7.8", "90"),
    ],
    "tcgen05" => [
        rule(&[], "8.6", "100f 110f"),
        rule(&["block32"], "8.8", "100f 110f"),
        rule(&["exclusive"], "9.4", "100f 110f"),
        rule(&["kind::i8"], "8.6", "100a 110a"),
        rule(&["kind::mxf4nvf4"], "8.7", "100f 110f"),
        rule(&["red"], "8.8", "103f 110f"),
        rule(&["scale_vec::1X"], "8.6", "100a 103a 107a 110a"),
        rule(&["scale_vec::2X"], "8.6", "100a 103a 107a 110a"),
        rule(&["scale_vec::4X"], "8.7", "100a 103a 107a 110a"),
        rule(&["shift"], "8.6", "100a 103a 107a 110a"),
        rule(&["multicast::cluster::32b"], "9.4", "107f"),
        rule(&["sync_restrict::shared::read::mma::a"], "9.4", "107f"),
        rule(&["sp", "kind::mxf4"], "8.6", "100a 103a 107a 110a"),
        rule(&["mma", "!sp", "kind::f16", "#7"], "8.6", "100f"),
        rule(&["mma", "!sp", "kind::tf32", "#7"], "8.6", "100f"),
    ],
    "tensormap" => [
        rule(&[], "8.3", "90"),
        rule(&["swizzle_atomicity"], "8.6", "100f 110f 120f"),
        rule(&["tile"], "8.3", "90a 100f 110f 120f"),
    ],
    "tex" => [
        rule(&["#5"], "4.3", "0"),
        rule(&["f16"], "4.2", "53"),
        rule(&["f16x2"], "4.2", "53"),
        rule(&["|"], "7.1", "60"),
        rule(&["grad", "acube"], "4.3", "0"),
        rule(&["grad", "cube"], "4.3", "0"),
        rule(&["#3", "!level", "!grad"], "4.3", "0"),
    ],
    "tld4" => [
        rule(&["#3"], "4.3", "0"),
        rule(&["a2d"], "4.3", "0"),
        rule(&["acube"], "4.3", "0"),
        rule(&["cube"], "4.3", "0"),
        rule(&["|"], "7.1", "60"),
    ],
    "txq" => [
        rule(&["array_size"], "4.1", "0"),
        rule(&["level"], "4.3", "0"),
        rule(&["num_mipmap_levels"], "4.1", "0"),
        rule(&["num_samples"], "4.1", "0"),
    ],
    "vote" => [
        rule(&["sync"], "5.1", "0"),
        lost(&["!sync"], "6.4", "70"),
    ],
    "wgmma" => [
        rule(&[], "8.0", "90a"),
        rule(&["sp"], "8.2", "90a"),
        rule(&["s8", "u8"], "8.4", "90a"),
        rule(&["u8", "s8"], "8.4", "90a"),
    ],
    "wmma" => [
        rule(&[], "5.1", "70"),
        rule(&["aligned"], "6.3", "70"),
        rule(&["and"], "7.1", "80"),
        rule(&["bf16"], "7.0", "80"),
        rule(&["m16n16k8"], "7.0", "80"),
        rule(&["m32n8k16"], "6.1", "70"),
        rule(&["m8n32k16"], "6.1", "70"),
        rule(&["m8n8k128"], "6.3", "75"),
        rule(&["m8n8k32"], "6.3", "75"),
        rule(&["m8n8k4"], "7.0", "80"),
        rule(&["s32"], "6.3", "72"),
        rule(&["s8"], "6.3", "72"),
        rule(&["shared::cta"], "7.8", "70"),
        rule(&["u8"], "6.3", "72"),
        lost(&["mma", "f16", "satfinite"], "6.5", "0"),
        lost(&["mma", "f32", "satfinite"], "6.5", "0"),
        lost(&["mma", "satfinite", "f16"], "6.5", "0"),
        lost(&["mma", "satfinite", "f32"], "6.5", "0"),
        lost(&["!aligned"], "6.3", "0"),
    ],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_speaks_of_instructions_that_are_there() {
        assert!(RULES.is_sorted_by(|a, b| a.0 < b.0));
        for (opcode, rules) in RULES {
            assert!(table::place(opcode).is_some(), "'{opcode}'");
            for rule in *rules {
                assert!(rule.need.targets.mask != 0 && rule.only.mask != 0, "'{opcode}' {:?}", rule.words);
            }
        }
    }

    #[test]
    fn a_family_has_what_came_later_in_it() {
        let dialect = |target: &str| Dialect::new((9, 5), Some(target));
        let allows = |on: &'static str, target: &str| targets(on).mask & dialect(target).target != 0;
        assert!(allows("100f", "sm_103a") && allows("100f", "sm_100a") && allows("100f", "sm_100f"));
        assert!(!allows("100f", "sm_100") && !allows("100f", "sm_110a") && !allows("103f", "sm_100a"));
        assert!(allows("90a", "sm_90a") && !allows("90a", "sm_90") && !allows("90a", "sm_100a"));
        assert!(allows("80", "sm_90a") && allows("80", "sm_121") && !allows("80", "sm_75"));
        assert!(!allows("50", "sm_35") && allows("0", "sm_35") && allows("90a", "sm_999"));
    }
}
