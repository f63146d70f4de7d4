//! Litmus tests of PTX's memory model (chapter "Memory Consistency Model"): what threads may see of each other's writes.
//!
//! Each test is a shape (who writes and reads what), a form (which instructions keep the order) and a scope; it runs
//! [`RUNS`] times between lanes of a warp, between warps of a block and between blocks. An outcome that the model
//! forbids must never be seen; one that it allows may be, and is counted. `cargo test … -- --nocapture` shows the counts.
//!
//! The instances of a run have places of their own. In settings `lane` and `warp` the threads wait for each other before each
//! instance, so that they meet; setting `simd` does not take such a wait and runs free.

use std::fmt::Write;

use compiler::back::cpu::Setting;
use hip_cpu::harness::{self, Arg, Error, How, load};

const RUNS: usize = 1000;
/// Bytes between two instances' places: no cache line is shared.
const STRIDE: usize = 128;
/// `y` lies this far behind `x`.
const APART: usize = 64;
const SCOPES: [&str; 3] = ["cta", "gpu", "sys"];

/// One way to write the threads of a shape. `SCOPE` is replaced. `%x` and `%y` are addresses, `%a` and `%b` the results.
struct Form {
    name: &'static str,
    threads: &'static [&'static str],
    /// The model forbids the shape's outcome, if the scope includes all threads.
    forbidden: bool,
}

struct Shape {
    name: &'static str,
    forms: &'static [Form],
    /// `%a` and `%b` of each thread.
    outcome: fn(&[[u32; 2]]) -> bool,
}

const fn form(name: &'static str, threads: &'static [&'static str], forbidden: bool) -> Form {
    Form { name, threads, forbidden }
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "message_passing",
        outcome: |r| r[1] == [1, 0],
        forms: &[
            form(
                "relaxed",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;\nst.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nld.relaxed.SCOPE.global.u32 %b, [%x];",
                ],
                false,
            ),
            form(
                "release and acquire around weak data",
                &[
                    "st.weak.global.u32 [%x], 1;\nst.release.SCOPE.global.u32 [%y], 1;",
                    "ld.acquire.SCOPE.global.u32 %a, [%y];\nld.weak.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "fence.acq_rel",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;\nfence.acq_rel.SCOPE;\nst.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nfence.acq_rel.SCOPE;\nld.relaxed.SCOPE.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "fence.release and fence.acquire",
                &[
                    "st.weak.global.u32 [%x], 1;\nfence.release.SCOPE;\nst.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nfence.acquire.SCOPE;\nld.weak.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "fence.sc",
                &[
                    "st.weak.global.u32 [%x], 1;\nfence.sc.SCOPE;\nst.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nfence.sc.SCOPE;\nld.weak.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "red.release and atom.acquire",
                &[
                    "st.weak.global.u32 [%x], 1;\nred.release.SCOPE.global.add.u32 [%y], 1;",
                    "atom.acquire.SCOPE.global.or.b32 %a, [%y], 0;\nld.weak.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "atom.acq_rel.cas",
                &[
                    "st.weak.global.u32 [%x], 1;\natom.acq_rel.SCOPE.global.exch.b32 %a, [%y], 1;",
                    "atom.acq_rel.SCOPE.global.cas.b32 %a, [%y], 1, 1;\nld.weak.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "volatile and membar",
                &[
                    "st.volatile.global.u32 [%x], 1;\nMEMBAR;\nst.volatile.global.u32 [%y], 1;",
                    "ld.volatile.global.u32 %a, [%y];\nMEMBAR;\nld.volatile.global.u32 %b, [%x];",
                ],
                true,
            ),
        ],
    },
    Shape {
        name: "store_buffering",
        outcome: |r| r[0][0] == 0 && r[1][0] == 0,
        forms: &[
            form(
                "relaxed",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;\nld.relaxed.SCOPE.global.u32 %a, [%y];",
                    "st.relaxed.SCOPE.global.u32 [%y], 1;\nld.relaxed.SCOPE.global.u32 %a, [%x];",
                ],
                false,
            ),
            form(
                "release and acquire",
                &[
                    "st.release.SCOPE.global.u32 [%x], 1;\nld.acquire.SCOPE.global.u32 %a, [%y];",
                    "st.release.SCOPE.global.u32 [%y], 1;\nld.acquire.SCOPE.global.u32 %a, [%x];",
                ],
                false,
            ),
            form(
                "fence.acq_rel",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;\nfence.acq_rel.SCOPE;\nld.relaxed.SCOPE.global.u32 %a, [%y];",
                    "st.relaxed.SCOPE.global.u32 [%y], 1;\nfence.acq_rel.SCOPE;\nld.relaxed.SCOPE.global.u32 %a, [%x];",
                ],
                false,
            ),
            form(
                "fence.sc",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;\nfence.sc.SCOPE;\nld.relaxed.SCOPE.global.u32 %a, [%y];",
                    "st.relaxed.SCOPE.global.u32 [%y], 1;\nfence.sc.SCOPE;\nld.relaxed.SCOPE.global.u32 %a, [%x];",
                ],
                true,
            ),
            form(
                "volatile and membar",
                &[
                    "st.volatile.global.u32 [%x], 1;\nMEMBAR;\nld.volatile.global.u32 %a, [%y];",
                    "st.volatile.global.u32 [%y], 1;\nMEMBAR;\nld.volatile.global.u32 %a, [%x];",
                ],
                true,
            ),
        ],
    },
    Shape {
        name: "load_buffering",
        outcome: |r| r[0][0] == 1 && r[1][0] == 1,
        forms: &[
            form(
                "relaxed",
                &[
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\nst.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nst.relaxed.SCOPE.global.u32 [%x], 1;",
                ],
                false,
            ),
            form(
                "relaxed, the value read is written: nothing comes out of thin air",
                &[
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\nst.relaxed.SCOPE.global.u32 [%y], %a;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nst.relaxed.SCOPE.global.u32 [%x], %a;",
                ],
                true,
            ),
            form(
                "acquire and release",
                &[
                    "ld.acquire.SCOPE.global.u32 %a, [%x];\nst.release.SCOPE.global.u32 [%y], 1;",
                    "ld.acquire.SCOPE.global.u32 %a, [%y];\nst.release.SCOPE.global.u32 [%x], 1;",
                ],
                true,
            ),
            form(
                "fence.acq_rel",
                &[
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\nfence.acq_rel.SCOPE;\nst.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nfence.acq_rel.SCOPE;\nst.relaxed.SCOPE.global.u32 [%x], 1;",
                ],
                true,
            ),
        ],
    },
    Shape {
        name: "independent_reads_of_independent_writes",
        outcome: |r| r[2] == [1, 0] && r[3] == [1, 0],
        forms: &[
            form(
                "relaxed",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;",
                    "st.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\nld.relaxed.SCOPE.global.u32 %b, [%y];",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nld.relaxed.SCOPE.global.u32 %b, [%x];",
                ],
                false,
            ),
            form(
                "acquire",
                &[
                    "st.release.SCOPE.global.u32 [%x], 1;",
                    "st.release.SCOPE.global.u32 [%y], 1;",
                    "ld.acquire.SCOPE.global.u32 %a, [%x];\nld.acquire.SCOPE.global.u32 %b, [%y];",
                    "ld.acquire.SCOPE.global.u32 %a, [%y];\nld.acquire.SCOPE.global.u32 %b, [%x];",
                ],
                false,
            ),
            form(
                "fence.sc",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;",
                    "st.relaxed.SCOPE.global.u32 [%y], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\nfence.sc.SCOPE;\nld.relaxed.SCOPE.global.u32 %b, [%y];",
                    "ld.relaxed.SCOPE.global.u32 %a, [%y];\nfence.sc.SCOPE;\nld.relaxed.SCOPE.global.u32 %b, [%x];",
                ],
                true,
            ),
        ],
    },
    Shape {
        name: "coherence_of_reads",
        outcome: |r| r[1] == [2, 1] || r[1] == [2, 0] || r[1] == [1, 0],
        forms: &[
            form(
                "relaxed",
                &[
                    "st.relaxed.SCOPE.global.u32 [%x], 1;\nst.relaxed.SCOPE.global.u32 [%x], 2;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\nld.relaxed.SCOPE.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "volatile",
                &[
                    "st.volatile.global.u32 [%x], 1;\nst.volatile.global.u32 [%x], 2;",
                    "ld.volatile.global.u32 %a, [%x];\nld.volatile.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "mmio",
                &[
                    "st.mmio.relaxed.sys.global.u32 [%x], 1;\nst.mmio.relaxed.sys.global.u32 [%x], 2;",
                    "ld.mmio.relaxed.sys.global.u32 %a, [%x];\nld.mmio.relaxed.sys.global.u32 %b, [%x];",
                ],
                true,
            ),
            form(
                "atom",
                &[
                    "atom.relaxed.SCOPE.global.add.u32 %a, [%x], 1;\nred.relaxed.SCOPE.global.add.u32 [%x], 1;",
                    "ld.relaxed.SCOPE.global.u32 %a, [%x];\natom.relaxed.SCOPE.global.or.b32 %b, [%x], 0;",
                ],
                true,
            ),
        ],
    },
    Shape {
        name: "coherence_of_writes_and_whole_words",
        // The writer's last value is what everybody sees in the end, and no half of a word is ever alone.
        outcome: |r| r[1][0] != r[1][1],
        forms: &[
            form(
                "weak 64-bit words are not torn",
                &[
                    "mov.b64 %w, {%one, %one};\nst.global.u64 [%x], %w;",
                    "ld.global.u64 %w, [%x];\nmov.b64 {%a, %b}, %w;",
                ],
                true,
            ),
            form(
                "relaxed 64-bit words are not torn",
                &[
                    "mov.b64 %w, {%one, %one};\nst.relaxed.SCOPE.global.u64 [%x], %w;",
                    "ld.relaxed.SCOPE.global.u64 %w, [%x];\nmov.b64 {%a, %b}, %w;",
                ],
                true,
            ),
        ],
    },
];

/// Where the threads are.
#[derive(Clone, Copy, PartialEq)]
enum Placement {
    Lanes,
    Warps,
    Blocks,
}

impl Placement {
    const ALL: [Placement; 3] = [Placement::Lanes, Placement::Warps, Placement::Blocks];

    fn name(self) -> &'static str {
        match self {
            Placement::Lanes => "lanes of a warp",
            Placement::Warps => "warps of a block",
            Placement::Blocks => "blocks",
        }
    }

    /// Threads between two that take part, grid and block for `n` of them.
    fn shape(self, n: u32) -> (u32, u32, u32) {
        match self {
            Placement::Lanes => (1, 1, n),
            Placement::Warps => (32, 1, 32 * n),
            Placement::Blocks => (1, n, 1),
        }
    }
}

/// The kernel of a shape: `which` chooses form and scope, the same for all threads.
fn module(shape: &Shape, waits: bool) -> String {
    let n_threads = shape.forms[0].threads.len();
    let mut text = format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry litmus(.param .u64 places, .param .u64 gates, \
         .param .u64 results, .param .u32 which, .param .u32 between)\n{{\n\
         .reg .pred %p;\n.reg .b32 %i, %n, %a, %b, %role, %which, %t, %one;\n\
         .reg .b64 %x, %y, %gate, %result, %w;\n\
         ld.param.u64 %x, [places];\nld.param.u64 %gate, [gates];\nld.param.u64 %result, [results];\n\
         ld.param.u32 %which, [which];\nld.param.u32 %t, [between];\nmov.u32 %one, 1;\n\
         mov.u32 %role, %tid.x;\nrem.u32 %i, %role, %t;\nsetp.ne.u32 %p, %i, 0;\n@%p exit;\n\
         div.u32 %role, %role, %t;\nmov.u32 %t, %ctaid.x;\nadd.u32 %role, %role, %t;\n\
         mul.wide.u32 %w, %role, 8;\nadd.u64 %result, %result, %w;\nmov.u32 %i, 0;\n\
         LOOP:\nadd.u64 %y, %x, {APART};\nmov.u32 %a, 0;\nmov.u32 %b, 0;\n"
    );
    if waits {
        let _ = write!(
            text,
            "red.relaxed.gpu.global.add.u32 [%gate], 1;\n\
             WAIT:\nld.relaxed.gpu.global.u32 %n, [%gate];\nsetp.lt.u32 %p, %n, {n_threads};\n@%p bra WAIT;\n"
        );
    }
    let mut nth = 0;
    for form in shape.forms {
        for scope in SCOPES {
            let _ = write!(text, "setp.ne.u32 %p, %which, {nth};\n@%p bra F{nth};\n");
            for (role, code) in form.threads.iter().enumerate() {
                let membar = if scope == "gpu" { "gl" } else { scope };
                let code = code.replace("SCOPE", scope).replace("MEMBAR", &format!("membar.{membar}"));
                let _ = write!(
                    text,
                    "setp.ne.u32 %p, %role, {role};\n@%p bra R{nth}_{role};\n{code}\nbra DONE;\nR{nth}_{role}:\n"
                );
            }
            let _ = writeln!(text, "F{nth}:");
            nth += 1;
        }
    }
    let bytes = n_threads * 8;
    let _ = write!(
        text,
        "DONE:\nst.global.v2.u32 [%result], {{%a, %b}};\nadd.u64 %result, %result, {bytes};\n\
         add.u64 %x, %x, {STRIDE};\nadd.u64 %gate, %gate, {STRIDE};\nadd.u32 %i, %i, 1;\n\
         setp.lt.u32 %p, %i, {RUNS};\n@%p bra LOOP;\nret;\n}}\n"
    );
    text
}

/// Runs a shape in one setting and placement; answers what is wrong.
fn run(
    shape: &Shape,
    placement: Placement,
    setting: Setting,
    seen: &mut String,
) -> Result<Vec<String>, Error> {
    let n_threads = shape.forms[0].threads.len();
    let program = load(&module(shape, setting != Setting::Simd))?;
    let (between, grid, block) = placement.shape(n_threads as u32);
    let mut how = How::new(grid, block);
    how.setting = Some(setting);
    let compiled = harness::emit(&program, "litmus", &how)?;
    let code = harness::code("litmus", &compiled, &how)?;
    let mut wrong = vec![];
    for nth in 0..shape.forms.len() * SCOPES.len() {
        let (form, scope) = (&shape.forms[nth / SCOPES.len()], SCOPES[nth % SCOPES.len()]);
        // 64-bit words make the bytes aligned.
        let mut places = vec![0u64; RUNS * STRIDE / 8];
        let mut gates = vec![0u64; RUNS * STRIDE / 8];
        let mut results = vec![0u64; RUNS * n_threads];
        let mut args = [
            Arg::Buffer(bytes(&mut places)),
            Arg::Buffer(bytes(&mut gates)),
            Arg::Buffer(bytes(&mut results)),
            Arg::u32(nth as u32),
            Arg::u32(between),
        ];
        let mut globals = harness::Globals::place(&program);
        harness::run_code(&program, "litmus", &code, &how, &mut args, &mut globals)?;
        let halves = |word: &u64| [*word as u32, (*word >> 32) as u32];
        let count = results
            .chunks(n_threads)
            .filter(|run| (shape.outcome)(&run.iter().map(halves).collect::<Vec<_>>()))
            .count();
        let in_scope = scope != "cta" || placement != Placement::Blocks;
        let forbidden = form.forbidden && in_scope;
        let word = if forbidden { "forbidden" } else { "allowed" };
        let line = format!(
            "{} with {}.{scope} between {} in {}: {count} of {RUNS}, {word}",
            shape.name,
            form.name,
            placement.name(),
            setting.name()
        );
        if forbidden && count > 0 {
            wrong.push(line.clone());
        }
        let _ = writeln!(seen, "{line}");
    }
    Ok(wrong)
}

fn bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: eight bytes for each word; any bytes are a word.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
}

#[test]
fn outcomes_that_the_memory_model_forbids_are_never_seen() {
    let (mut seen, mut wrong, mut ran) = (String::new(), vec![], vec![]);
    for shape in SHAPES {
        for placement in Placement::ALL {
            for setting in [Setting::Lane, Setting::Warp, Setting::Simd] {
                match run(shape, placement, setting, &mut seen) {
                    Ok(found) => {
                        wrong.extend(found);
                        ran.push((placement.name(), setting));
                    }
                    // A lane that waits for another of its warp is not for them.
                    Err(Error::Refused { why, .. }) => {
                        let _ = writeln!(
                            seen,
                            "{} between {}: {} refuses, {why}",
                            shape.name,
                            placement.name(),
                            setting.name()
                        );
                    }
                    Err(error) => panic!("{} between {}: {error}", shape.name, placement.name()),
                }
            }
        }
    }
    println!("{seen}");
    for setting in [Setting::Lane, Setting::Warp, Setting::Simd] {
        assert!(ran.contains(&("blocks", setting)), "setting {} ran nothing between blocks", setting.name());
    }
    assert!(wrong.is_empty(), "forbidden outcomes:\n{}", wrong.join("\n"));
}
