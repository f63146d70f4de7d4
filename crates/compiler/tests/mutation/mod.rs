//! Forms that were legal, with one thing changed: what a compiler has to refuse, mostly, and what it has to take all the
//! same.

use std::collections::{BTreeMap, BTreeSet};

/// Knuth's MMIX generator; its high bits are good enough to choose by.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        let mut draw = Draw(seed);
        draw.below(1);
        draw
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }

    pub fn one<'s, T>(&mut self, some: &'s [T]) -> &'s T {
        &some[self.below(some.len())]
    }
}

/// Modifiers of which one can stand where another stands.
const KINDS: &[&[&str]] = &[
    &[
        "pred", "b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "b128",
        "f16", "f16x2", "bf16", "bf16x2", "tf32", "f32", "f32x2", "f64", "u16x2", "s16x2", "e4m3", "e5m2",
        "e4m3x2", "e5m2x2", "e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "b4", "u4", "s4", "b1",
    ],
    &["rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi", "approx", "full"],
    &["weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio", "sc"],
    &["cta", "cluster", "gpu", "sys"],
    &[
        "global",
        "shared",
        "shared::cta",
        "shared::cluster",
        "local",
        "const",
        "param",
        "param::entry",
        "param::func",
    ],
    &["v2", "v4", "v8"],
    &["x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"],
    &["ca", "cg", "cs", "lu", "cv", "wb", "wt"],
    &[
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
        "num", "nan",
    ],
    &["and", "or", "xor", "add", "inc", "dec", "min", "max", "exch", "cas", "popc"],
    &["row", "col"],
    &["1d", "2d", "3d", "4d", "5d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms"],
    &["ftz", "sat", "relu", "satfinite", "NaN", "noftz", "cc", "wide", "lo", "hi", "abs", "oob"],
    &["clamp", "wrap", "trap", "zero"],
    &["up", "down", "bfly", "idx"],
    &["all", "any", "uni", "ballot", "sync", "aligned"],
];

/// Operands of each kind that the kernel of [`super::opcodes::kernel`] has.
const OPERANDS: &[&str] = &[
    "%p1",
    "!%p2",
    "%b1",
    "%h3",
    "%r4",
    "%rd5",
    "%q1",
    "%f6",
    "%fd7",
    "%v1",
    "%w1",
    "%r1.x",
    "%v1.x",
    "%tid.x",
    "%tid",
    "%laneid",
    "%clock64",
    "%h1|%h2",
    "%p1|%p2",
    "0",
    "1",
    "-1",
    "7",
    "32",
    "255",
    "65536",
    "0x100000000",
    "1.5",
    "0f3f800000",
    "0d3ff0000000000000",
    "WARP_SZ",
    "_",
    "[%r1]",
    "[%rd1]",
    "[%rd1+4]",
    "[%rd1+3]",
    "[%h1]",
    "[variable]",
    "[tile]",
    "[local]",
    "[parameter]",
    "[tile+8]",
    "[8]",
    "[%f1]",
    "variable",
    "tile",
    "local",
    "parameter",
    "function",
    "texture",
    "OUT",
    "{%r1}",
    "{%r1, %r2}",
    "{%r1, %r2, %r3, %r4}",
    "{%f1, %f2}",
    "{%f1, %f2, %f3, %f4}",
    "{%rd1, %rd2}",
    "{%h1, %h2}",
    "{%h1, %h2, %h3, %h4}",
    "{%fd1, %fd2}",
    "{%r1, _}",
    "{1, 2}",
    "%r1+4",
    "missing",
];

const REGISTERS: &[&str] = &["%p", "%b", "%h", "%r", "%rd", "%f", "%fd"];

/// What stands between commas, lists and brackets whole.
fn split(operands: &str) -> Vec<String> {
    let (mut parts, mut depth, mut part) = (vec![], 0, String::new());
    for letter in operands.chars() {
        match letter {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(part.trim().to_owned());
                part.clear();
                continue;
            }
            _ => {}
        }
        part.push(letter);
    }
    if !part.trim().is_empty() {
        parts.push(part.trim().to_owned());
    }
    parts
}

/// A form in its parts.
#[derive(Clone)]
struct Form {
    guard: Option<String>,
    opcode: String,
    modifiers: Vec<String>,
    operands: Vec<String>,
}

impl Form {
    fn read(text: &str) -> Form {
        let (guard, text) = match text.strip_prefix('@').and_then(|_| text.split_once(' ')) {
            Some((guard, rest)) => (Some(guard.to_owned()), rest),
            None => (None, text),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let mut words = name.split('.').map(str::to_owned);
        let opcode = words.next().unwrap();
        Form { guard, opcode, modifiers: words.collect(), operands: split(operands) }
    }

    fn write(&self) -> String {
        let mut text = String::new();
        if let Some(guard) = &self.guard {
            text = format!("{guard} ");
        }
        text += &self.opcode;
        for modifier in &self.modifiers {
            text.push('.');
            text += modifier;
        }
        if !self.operands.is_empty() {
            text.push(' ');
            text += &self.operands.join(", ");
        }
        text
    }
}

/// On which side ptxas stands with what is its own choice.
#[derive(Clone, Copy, PartialEq)]
pub enum Side {
    Taken,
    Refused,
}

impl Side {
    pub fn words(&self) -> &'static str {
        match self {
            Side::Taken => "we refuse",
            Side::Refused => "ptxas refuses",
        }
    }
}

/// A difference that stays, because ptxas departs from the manual there.
pub struct Own {
    pub why: &'static str,
    pub side: Side,
    pub fits: fn(&Mutations, &str) -> bool,
}

const fn taken(why: &'static str, fits: fn(&Mutations, &str) -> bool) -> Own {
    Own { why, side: Side::Taken, fits }
}

/// All of those.
pub const OWN: &[Own] = &[
    taken("it overlooks a word that belongs to other instructions", |mutations, form| {
        let form = Form::read(form);
        let own = mutations.own_of(&form);
        form.modifiers
            .iter()
            .any(|word| !own.contains(word) && !KINDS.iter().any(|it| it.contains(&word.as_str())))
    }),
    taken("it takes predicates in lists of registers", |_, form| {
        form.split('{').skip(1).any(|list| list.split('}').next().is_some_and(|list| list.contains("%p")))
    }),
    taken("it takes a function's name as a number of any type", |_, form| form.contains(" function")),
    taken("it reads a shape that the instruction has not, and goes by the number of registers", |_, form| {
        let is_matrix = form.starts_with("ldmatrix") || form.starts_with("stmatrix");
        is_matrix && [".x8.", ".x16.", ".x32.", ".x64.", ".x128."].iter().any(|it| form.contains(it))
            || ["suld", "sust", "sured", "tex", "tld4"].iter().any(|it| form.starts_with(it))
                && [".4d.", ".5d."].iter().any(|it| form.contains(it))
    }),
    taken(
        "it does not compare the number and the width of a surface's values with '.v2', '.v4' and the type",
        |_, form| form.starts_with("sust") || form.starts_with("suld") || form.starts_with("sured"),
    ),
    taken(
        "it does not look at operands behind those that an exchange or an operation on bits has, and not at those of a copy of \
         tensors that are no addresses",
        |_, form| {
            let is_of_bits = ["exch", "and", "or", "xor"].iter().any(|op| form.contains(&format!(".{op}.")));
            form.starts_with("atom") && is_of_bits
                || form.starts_with("cp.") && form.contains(".bulk.tensor.")
                || form.starts_with("cp.") && form.contains(".bulk.prefetch.tensor.")
        },
    ),
    taken("it takes 'testp' without a test", |_, form| form.starts_with("testp.f")),
    taken("it takes an offset for a cubemap, and one number for several offsets", |_, form| {
        form.starts_with("tex") || form.starts_with("tld4")
    }),
    taken("it adds numbers to registers of any type and width", |_, form| {
        Form::read(form).operands.iter().any(|it| !it.starts_with('[') && it.contains('+'))
    }),
    taken(
        "it takes 'fence.async', 'addc' and 'subc' of 16 bits, and predicates as what 'movmatrix' has",
        |_, form| {
            let has = |opcode: &str, words: &[&str]| {
                form.starts_with(opcode) && words.iter().any(|word| form.contains(word))
            };
            has("fence.", &[".async."])
                || has("addc.", &["16"])
                || has("subc.", &["16"])
                || has("movmatrix", &["%p"])
        },
    ),
    // The page of instructions says that we have none of these.
    taken("it knows tensor maps of interleaved layouts and '.ashift'", |_, form| {
        form.starts_with("tensormap.replace.") && form.contains(".interleave_layout.")
            || form.contains(".ashift")
    }),
    taken(
        "it does not look at how many values an asynchronous store has, nor for an order beside a scope",
        |_, form| form.starts_with("st.async."),
    ),
    taken("it takes one number for a vector", |_, form| form.starts_with("mov.v")),
    taken("it takes lists for the number of arrivals", |_, form| {
        form.starts_with("mbarrier.arrive") && form.contains('{')
    }),
    taken("it overlooks a type beside those that it looks for", |_, form| {
        let is_atomic = form.starts_with("atom") || form.starts_with("red");
        let is_product = form.starts_with("mma.") && form.contains(".f64");
        (is_atomic || form.starts_with("cvt")) && form.contains(".pred")
            || is_product && [".b1", ".b4", ".s4", ".u4"].iter().any(|it| form.contains(it))
    }),
    Own {
        why: "where all else has 32 bits of any type, products of m8n8 have no floats for A",
        side: Side::Refused,
        fits: |_, form| form.starts_with("mma.") && form.contains(".m8n8k") && form.contains("{%f"),
    },
    Own {
        why: "the manual has constants as addresses in every state space",
        side: Side::Refused,
        fits: |_, form| form.contains("[8]"),
    },
];

/// Everything that mutations are made of.
pub struct Mutations {
    forms: Vec<Form>,
    /// The places in `forms` by opcode: each opcode is as likely as its forms are different.
    by_opcode: Vec<Vec<usize>>,
    /// The modifiers that each opcode has somewhere.
    own: BTreeMap<String, Vec<String>>,
    /// The modifiers that forms have whose names begin with an opcode and a word: `tcgen05.mma`.
    own_of_name: BTreeMap<(String, String), BTreeSet<String>>,
    /// The modifiers of all.
    all: Vec<String>,
}

impl Mutations {
    pub fn of(forms: &[String]) -> Mutations {
        let forms: Vec<Form> = forms.iter().map(|it| Form::read(it)).collect();
        let mut own: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut own_of_name: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, form) in forms.iter().enumerate() {
            own.entry(form.opcode.clone()).or_default().extend(form.modifiers.iter().cloned());
            if let Some(first) = form.modifiers.first() {
                let name = (form.opcode.clone(), first.clone());
                own_of_name.entry(name).or_default().extend(form.modifiers.iter().cloned());
            }
            places.entry(&form.opcode).or_default().push(at);
        }
        let all: BTreeSet<String> = own.values().flatten().cloned().collect();
        let by_opcode = places.into_values().collect();
        let own = own.into_iter().map(|(opcode, words)| (opcode, words.into_iter().collect())).collect();
        Mutations { by_opcode, forms, own, own_of_name, all: all.into_iter().collect() }
    }

    /// The modifiers that a form's instruction has somewhere, of which the opcode is not all of its name.
    fn own_of(&self, form: &Form) -> BTreeSet<&String> {
        let has_name = matches!(form.opcode.as_str(), "tcgen05" | "tensormap");
        let name = form.modifiers.first().filter(|_| has_name);
        let words = name.and_then(|first| self.own_of_name.get(&(form.opcode.clone(), first.clone())));
        words.map_or_else(|| self.own[&form.opcode].iter().collect(), |words| words.iter().collect())
    }

    /// A form with one thing changed. Half of them are of an opcode drawn, half are any form.
    pub fn draw(&self, draw: &mut Draw) -> String {
        loop {
            let at = match draw.below(2) {
                0 => {
                    let places = draw.one(&self.by_opcode);
                    *draw.one(places)
                }
                _ => draw.below(self.forms.len()),
            };
            let form = &self.forms[at];
            let mut other = form.clone();
            self.change(&mut other, draw);
            if other.write() != form.write() {
                return other.write();
            }
        }
    }

    fn change(&self, form: &mut Form, draw: &mut Draw) {
        let (n_words, n_operands) = (form.modifiers.len(), form.operands.len());
        match draw.below(13) {
            // Another word of the same kind.
            0..=2 if n_words > 0 => {
                let at = draw.below(n_words);
                let kinds: Vec<&&[&str]> =
                    KINDS.iter().filter(|kind| kind.contains(&form.modifiers[at].as_str())).collect();
                form.modifiers[at] = match kinds.is_empty() {
                    true => draw.one(&self.own[&form.opcode]).clone(),
                    false => {
                        let kind = kinds[draw.below(kinds.len())];
                        (*draw.one(kind)).to_owned()
                    }
                };
            }
            // Another word that the opcode has.
            3 if n_words > 0 => {
                let at = draw.below(n_words);
                form.modifiers[at] = draw.one(&self.own[&form.opcode]).clone();
            }
            // One word less, twice, elsewhere.
            4 if n_words > 0 => drop(form.modifiers.remove(draw.below(n_words))),
            5 if n_words > 0 => {
                let at = draw.below(n_words);
                form.modifiers.insert(at, form.modifiers[at].clone());
            }
            6 if n_words > 1 => {
                let word = form.modifiers.remove(draw.below(n_words));
                form.modifiers.insert(draw.below(n_words), word);
            }
            // One more: of the opcode's, of any.
            7 => {
                let own = &self.own[&form.opcode];
                let word =
                    if own.is_empty() || draw.below(3) == 0 { draw.one(&self.all) } else { draw.one(own) };
                form.modifiers.insert(draw.below(n_words + 1), word.clone());
            }
            // A register of another kind: alone, or in what it stands in.
            8 | 9 if n_operands > 0 => {
                let at = draw.below(n_operands);
                form.operands[at] = other_register(&form.operands[at], draw);
            }
            10 if n_operands > 0 => {
                let at = draw.below(n_operands);
                form.operands[at] = (*draw.one(OPERANDS)).to_owned();
            }
            11 if n_operands > 0 => {
                let at = draw.below(n_operands);
                match draw.below(3) {
                    0 => drop(form.operands.remove(at)),
                    1 => form.operands.insert(at, form.operands[at].clone()),
                    _ => form.operands.push((*draw.one(OPERANDS)).to_owned()),
                }
            }
            // A list with an element more or less.
            12 if n_operands > 0 => {
                let at = draw.below(n_operands);
                let operand = &form.operands[at];
                let Some(inside) = operand.strip_prefix('{').and_then(|it| it.strip_suffix('}')) else {
                    return;
                };
                let mut parts = split(inside);
                match draw.below(3) {
                    0 => drop(parts.pop()),
                    1 => parts.extend(parts.last().cloned()),
                    _ => parts.extend(parts.clone()),
                }
                form.operands[at] = format!("{{{}}}", parts.join(", "));
            }
            _ => {}
        }
    }
}

/// The operand with one of its registers of another kind.
fn other_register(operand: &str, draw: &mut Draw) -> String {
    let starts: Vec<usize> = operand.match_indices('%').map(|it| it.0).collect();
    if starts.is_empty() {
        return operand.to_owned();
    }
    let start = *draw.one(&starts);
    let letters = operand[start + 1..].find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(0);
    format!("{}{}{}", &operand[..start], draw.one(REGISTERS), &operand[start + 1 + letters..])
}
