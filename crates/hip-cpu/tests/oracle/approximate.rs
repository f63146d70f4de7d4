//! The approximate instructions: special results as the manual's tables have them, errors measured against MPFR and held
//! to the manual's bounds, the same bits in every setting. docs/accuracy.md is written from what is measured.
//! CPUs with AVX-512 may have other bits than those without, so both are measured where they can be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use oracle::{Approximate, Format, Function, Unit, Verdict};

use crate::forms::{self, Instruction};
use crate::inputs::{Columns, Kind, Random, specials};
use crate::kernel::{Batch, SETTINGS};
use crate::root;

/// The largest error seen in one domain.
#[derive(Clone, Default)]
struct Measured {
    error: f64,
    worst: String,
    inputs: u64,
}

/// Rows of inputs: every one of 16 bits; else specials, a stride through all bit patterns, and many where the function
/// has its bounds.
fn rows(it: Approximate, full: bool) -> Vec<Vec<u64>> {
    let format = it.format;
    let bits = format.bits;
    if bits == 16 {
        // The upper element of a pair goes through them in another order.
        let pair = |i: u64| if it.n == 2 { i | (i.wrapping_mul(40503) & 0xffff) << 16 } else { i };
        return (0..1 << 16).map(|i| vec![pair(i)]).collect();
    }
    let special = specials(Kind::Float(format));
    let mut random = Random(bits.into());
    let mut unit = move || random.next() as f64 / 2f64.powi(64);
    let mut rows: Vec<Vec<u64>> = vec![];
    if it.n_operands() == 2 {
        rows.extend(special.iter().flat_map(|a| special.iter().map(|b| vec![*a, *b])));
        let mut pick = Random(5);
        rows.extend((0..if full { 1 << 20 } else { 1 << 15 }).map(|_| {
            let (a, b) = (pick.next(), pick.next());
            vec![a & 0xffff_ffff, b & 0xffff_ffff]
        }));
        return rows;
    }
    rows.extend(special.iter().map(|a| vec![*a]));
    if bits == 64 {
        let mut pick = Random(6);
        rows.extend((0..if full { 1 << 20 } else { 1 << 15 }).map(|_| vec![pick.next()]));
        return rows;
    }
    let step = if full { 1021 } else { 65521 };
    rows.extend((0..=u64::from(u32::MAX)).step_by(step).map(|a| vec![a]));
    #[expect(clippy::approx_constant, reason = "an end that floats have, not the constant")]
    let ranges: &[(f64, f64)] = match it.function {
        Function::Sin | Function::Cos => &[(-6.283, 6.283), (-314.15, 314.15), (-1000.0, 1000.0)],
        Function::Lg2 => &[(0.5, 2.0), (0.99, 1.01)],
        Function::Ex2 => &[(-150.0, 128.0), (-1.0, 1.0)],
        Function::Tanh => &[(-10.0, 10.0), (-1.0, 1.0)],
        _ => &[(1.0, 4.0)],
    };
    for (low, high) in ranges {
        rows.extend(
            (0..if full { 1 << 18 } else { 1 << 14 })
                .map(|_| vec![((low + (high - low) * unit()) as f32).to_bits().into()]),
        );
    }
    rows
}

fn show(format: Format, bits: u64) -> String {
    match format.bits {
        64 => format!("{:e} ({bits:#018x})", f64::from_bits(bits)),
        32 => format!("{:e} ({bits:#010x})", f32::from_bits(bits as u32)),
        _ => format!("{bits:#06x}"),
    }
}

/// Runs one instruction in every setting, and judges each result.
fn measure(instruction: &Instruction, it: Approximate, failures: &mut Vec<String>) -> Vec<Measured> {
    let full = crate::size() == crate::inputs::Size::Full;
    let rows = rows(it, full);
    let columns = Columns::from_rows(&rows);
    let batch = Batch::new(std::slice::from_ref(instruction));
    let mut first: BTreeMap<bool, (&str, Vec<u64>)> = BTreeMap::new();
    for setting in &SETTINGS {
        let found = match batch.compile(setting).and_then(|code| batch.run(&code, &columns)) {
            Ok(found) => found.plane(0, 0).to_vec(),
            Err(error) => {
                failures.push(format!("{instruction} in {}: {error}", setting.name));
                continue;
            }
        };
        let (name, first) =
            first.entry(setting.has_wide_vectors()).or_insert_with(|| (setting.name, found.clone()));
        if let Some(row) = (0..found.len()).find(|&row| first[row] != found[row]) {
            let operands: Vec<u64> = columns.columns.iter().map(|column| column[row]).collect();
            failures.push(format!(
                "{instruction} in {}: {operands:#x?} gives {:#x}, and {:#x} in {name}",
                setting.name, found[row], first[row]
            ));
        }
    }
    let mut worst = vec![Measured::default(); it.domains().len()];
    for (_, found) in first.values() {
        for (worst, measured) in worst.iter_mut().zip(judge(instruction, it, &rows, found, failures)) {
            if worst.inputs == 0 || measured.error > worst.error {
                *worst = measured;
            }
        }
    }
    worst
}

/// Holds one way's results against the manual's tables and bounds.
fn judge(
    instruction: &Instruction,
    it: Approximate,
    rows: &[Vec<u64>],
    found: &[u64],
    failures: &mut Vec<String>,
) -> Vec<Measured> {
    let mut measured = vec![Measured::default(); it.domains().len()];
    let mut n_wrong = 0;
    for (row, &found) in rows.iter().zip(found) {
        for lane in 0..it.n {
            let element =
                |word: u64| u128::from(word >> (lane * it.format.bits)) & ((1 << it.format.bits) - 1);
            let operands: Vec<u128> = row.iter().map(|word| element(*word)).collect();
            let got = element(found);
            let named = || {
                let operands: Vec<String> =
                    operands.iter().map(|bits| show(it.format, *bits as u64)).collect();
                operands.join(", ")
            };
            match it.judge(&operands, got) {
                Verdict::Special => {}
                Verdict::Wrong { wanted } => {
                    // The payload of an f64 NaN is the machine's.
                    let nan = |bits| it.format.decode(bits).is_nan();
                    if it.format.bits == 64 && !it.ftz && nan(got) && nan(wanted) {
                        continue;
                    }
                    n_wrong += 1;
                    if n_wrong <= 4 {
                        failures.push(format!("{instruction}: {} gives {got:#x}, not {wanted:#x}", named()));
                    }
                }
                Verdict::Error { domain, error } => {
                    let measured = &mut measured[domain];
                    measured.inputs += 1;
                    assert!(!error.is_nan(), "{instruction}: {}", named());
                    if error > measured.error {
                        measured.error = error;
                        measured.worst = named();
                    }
                }
            }
        }
    }
    for (measured, domain) in measured.iter().zip(it.domains()) {
        if let Some((bound, value)) = domain.bound
            && measured.error > value
        {
            failures.push(format!(
                "{instruction}, {}: an error of {:e} at {}, above {bound}",
                domain.name, measured.error, measured.worst
            ));
        }
    }
    measured
}

const HEAD: &str = "<!-- Written by `BLESS=1 cargo test -p hip-cpu --test oracle approximations`. -->
# Accuracy

## What is exact

Every instruction of PTX that is not approximate gives the manual's bits. `cargo test -p hip-cpu --test oracle` compares
each pure form of `tools/data/ptx/opcodes.tsv` with `crates/oracle`, written from the manual in exact arithmetic, in
settings `lane`, `warp` and `simd` (8 lanes, and 16 of 128-bit vectors; `SWEEP=full`: 32 and 64 lanes too): all special
values of the operands' types crossed (at most 4,096 combinations), 4,096 random operands, all inputs of one 16-bit
operand, a stride of 65,521 through those of one 32-bit operand, and literals in the operands' places. `SWEEP=full` takes
2^20 random operands and all 2^32 inputs. The forms are listed in `tools/data/ptx/swept/`. Forms with f64 operands and
video instructions run in `lane` and `simd` alone, unless `SWEEP=full`.

The payload of f64 NaNs, and that of `abs` and `neg` of NaN in other formats, is the machine's, as the manual leaves it.

## The approximate instructions

Largest error over the inputs, against MPFR at 120 bits; the same bits in every setting. `rsqrt.approx.f32` has other
bits on CPUs with AVX-512, closer to the exact ones; the larger error stands here. Errors are in the bound's unit;
1 ulp is that of the exact result, relative errors of results below the least normal number are relative to that number.
Inputs: all of 16 bits; of 32 bits a stride of 65,521 through all of them, special values, and some 2^14 random ones in
each range where a bound holds; for two operands special values crossed and 2^15 random pairs; for f64 2^15 random.
Inputs whose result the manual's tables fix (infinities, zeros, NaN, flushed numbers) are checked and not counted.

| instruction | operands | the manual's bound | measured | worst input | inputs |
|---|---|---|---|---|---|
";

const TAIL: &str = "
## On NVIDIA's hardware

An H200 (driver 580.159.04, CUDA 13.0) was at hand on 2026-11-26. `cargo run -p hip-cpu --example rows_on_cuda` takes the
rows of `crates/hip-cpu/tests/run` and, with `--cases`, launches that tests kept (`CASES=folder`, `harness::cases`) through
the real `libcuda.so.1` and prints each difference.

| what | agree | differ | not taken by that driver |
|---|--:|--:|---|
| rows of `tests/run` | 3,866 | 55 | files for PTX 9.1 and later, for `sm_100`, or with a letter beyond ASCII in a comment |
| `wgmma`, dense and sparse, all types (`SEED=11`) | 74 | 0 | |
| `mma` and `wmma`, kernels | 627 | 219 | 9 |
| random programs, 298 kernels | 281 | 5 | 12 |
| pure forms with literals in their operands' places (`SWEEP=glance`), kernels of 16 | 302 | 42 | 64 |

What differed, and what became of it. The GPU was followed: the remainder by zero has all bits set; a factor alone makes
`fma.oob` zero, not its summand; `vshl.sat` clamps what is left in 34 bits; `cvt.ftz` from f64 flushes what it would not
round up to 2^-126 by the narrowest of margins; conversions of NaN from f64 and bf16 to f32 keep sign and payload;
`.satfinite` of `wmma` in halves (192 kernels and 16 of an older spelling) does nothing; `%nwarpid` is 64, how many warps a
multiprocessor holds.

It was not followed, where the manual leaves the result open or says otherwise:

* payloads of NaN: two f64 NaNs give the later operand's; `abs` of NaN is canonical in f16 and bf16, and keeps its sign in
  f64; a NaN that becomes a tf32 or, from f64, a half is cut short;
* fragments of some `wmma.load` lie otherwise in registers, which the manual leaves open, and `mma` with f32 sums adds its
  products more exactly than one after the other in f32 (2^24 and eight times 1 give 2^24 + 8);
* scalar video instructions with a merge into `.h1` or a byte and no clamping take the upper half of the sum, `vmad` with
  `.po` and `.shr` clamps first, mixed signs clamp otherwise: all of that against the manual's pseudo code;
* a predicated `set` with a floating-point result changes the register of lanes whose predicate is false;
* `mbarrier.try_wait` sees what the thread itself does behind it; `cp.async.mbarrier.arrive` arrives later; `%warpid` is a
  hardware slot;
* products and sums fuse across blocks where that driver's compiler moves them together.

`conformance/`, 515 promises of NVIDIA's manuals in 53 chapters, on that driver (with cudart 13.5 in front of it for the
runtime's): 475 kept, 39 answered otherwise than our tests wanted, one skipped. Fourteen were ours, in both APIs, and are
mended; the others are the version's (what CUDA 13.5 has and 13.0 has not), NVIDIA's own (the memory of graphs comes in
steps of 32 MiB) or a crash of its, and the tests now say what both do.

cuRAND's generators of that device (cuRAND 10.4) gave the numbers of ours: XORWOW, MRG32k3a, MTGP32, MT19937, Philox and
both Sobol sequences by every ordering but the dynamic one, which depends on the device; bits, uniform and Poisson numbers
equal, normal ones within their last bits. Scrambled sequences have our own scrambles.

Textures: what the manuals leave open of a filter was measured (`tools/on-nvidia/filters.cu`) and is the
GPU's now. Of a normalised coordinate 21 bits behind the point are kept, or 8 more than numbers of elements need, cut off;
mirrored ones are filtered before they are reflected. Weights are 256ths that are 256 together: a plane's is divided between its
columns (what is behind in x has its part rounded, ties up) and a column's between its rows. A level's weight is cut to 8 bits.
Sums of normalised integers are rounded to 16 bits, whatever the elements have. All of it agrees: 12,288 sets of weights, 9,216
coordinates, 8,194 levels, 7,576 of 7,680 sums of integers (signed bytes differ by one 16-bit step at times). Sums of floats have
the same bits in 4,295 of 4,608; the GPU rounds ties away from zero and loses low bits of elements that are much smaller than
their neighbours, ours are exact. It rounds sums of halves to halves, ours are not rounded. With `cudaAddressModeBorder` for the
second dimension of a 1-D texture it mixes half the border in; here a 1-D texture has one dimension.

Wrong calls, measured and followed: CUDA 13's runtime says `cudaErrorInvalidValue` of a launch with a dimension of 0; a text that
is no PTX is `CUDA_ERROR_INVALID_IMAGE` to a link; a link in which something is undefined answers `CUDA_ERROR_INVALID_SOURCE` and
takes no more inputs; a text that leaves a function undefined is `CUDA_ERROR_INVALID_PTX` to a load; the pointer of a pool can be
exported when the pool was. Kernels may make streams without a flag, and launch from each other 2,048 deep. A tensor map that is
refused has been written to all the same; here it stays. `cuMemcpy` from an address behind which nothing is mapped ends a process
there; here it is refused.

cuDNN 9 on that device (`going_on.py` with the part `dnn`'s own checks) refuses much of what is computed here, wants its workspaces,
and multiplies in TF32 unless told otherwise; where both compute, means that count padding differed (a window that reaches beyond
the padding is divided by what is not beyond it: followed), and nothing else by more than rounding explains but cells of LSTMs with
projections, which it did not write in three small cases.

Open, to be asked again: `tensor_maps` ended in an illegal instruction there before its barrier was made known to the copy engine,
and `between_processes`, `textures`, `textures_driver`, `linking` and `dynamic_parallelism` are since written for what was measured;
`curand_numbers` ended in a double free of NVIDIA's; chapters of `conformance` that hold a stream back hang there unless
`CUDA_MODULE_LOADING=EAGER` loads their kernels before (`tools/on-nvidia/run.py` sets it).
";

#[test]
fn approximations() {
    let wanted = std::env::var("FORM").unwrap_or_default();
    let mut page = HEAD.to_owned();
    let mut failures = vec![];
    let mut seen = BTreeSet::new();
    for (_, target, example) in forms::read(&root().join("tools/data/ptx/opcodes.tsv")) {
        let says_so = ["approx", "full"].iter().any(|it| example.split([' ', '.']).any(|part| part == *it));
        let Some((instruction, it)) = Instruction::approximate(&target, &example) else {
            assert!(!says_so, "{example} is approximate and has no line here");
            continue;
        };
        if !example.contains(&wanted) || !seen.insert(instruction.text.clone()) {
            continue;
        }
        for (measured, domain) in measure(&instruction, it, &mut failures).iter().zip(it.domains()) {
            if measured.inputs == 0 {
                continue;
            }
            let error = match domain.unit {
                Unit::Ulp => format!("{:.3} ulp", measured.error),
                Unit::Relative | Unit::Absolute if measured.error == 0.0 => "0".to_owned(),
                Unit::Relative => format!("2^{:.2} relative", measured.error.log2()),
                Unit::Absolute => format!("2^{:.2} absolute", measured.error.log2()),
            };
            let bound = domain.bound.map_or("none", |(text, _)| text);
            let _ = writeln!(
                page,
                "| `{}` | {} | {bound} | {error} | {} | {} |",
                instruction.mnemonic,
                domain.name.replace('|', "\\|"),
                measured.worst,
                measured.inputs
            );
        }
    }
    page += TAIL;
    println!("{} approximate instructions", seen.len());
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    if !wanted.is_empty() || crate::size() == crate::inputs::Size::Full {
        println!("{page}");
        return;
    }
    crate::keep_list("approximations", &seen);
    let path = root().join("docs/accuracy.md");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/accuracy.md is old: BLESS=1 cargo test -p hip-cpu --test oracle approximations"
    );
}
