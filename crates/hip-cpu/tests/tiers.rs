//! Better code takes the place of baseline code in the middle of grids and between the launches of a stream, thousands of
//! times, at any moment: each result is what it is without. Every meeting of threads is in one of the kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use compiler::back::cpu::{Setting, Weight};
use hip_cpu::exec;
use hip_cpu::harness::{self, Arg, Globals, How};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";
const BLOCKS: u32 = 24;
const THREADS: u32 = 64;

/// A kernel that writes a word for each thread of `BLOCKS` × `THREADS`, in the setting that its best code has.
struct Case {
    setting: Setting,
    /// From `%g`, the thread's number in the grid, to `%x`.
    work: &'static str,
    expected: fn(u32) -> u32,
}

fn of_warp(g: u32, value: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    (g / 32 * 32..g / 32 * 32 + 32).map(value)
}

const CASES: [Case; 4] = [
    // A barrier, and a word of a neighbour's.
    Case {
        setting: Setting::Simd,
        work: "mul.lo.u32 %x, %g, %g;\nst.shared.u32 [%own], %x;\nbar.sync 0;\nxor.b32 %y, %t, 1;\nmul.lo.u32 %y, %y, 4;\n\
               add.u32 %y, %y, %words;\nld.shared.u32 %x, [%y];\n",
        expected: |g| (g ^ 1).wrapping_mul(g ^ 1),
    },
    // A warp's collectives in a loop.
    Case {
        setting: Setting::Simd,
        work: "mov.u32 %x, %g;\nmov.u32 %y, 16;\nAGAIN:\nshfl.sync.bfly.b32 %z, %x, %y, 31, -1;\nadd.u32 %x, %x, %z;\n\
               shr.u32 %y, %y, 1;\nsetp.ne.u32 %p, %y, 0;\n@%p bra AGAIN;\n",
        expected: |g| of_warp(g, |it| it).sum(),
    },
    // Named barriers of one warp each, from different places.
    Case {
        setting: Setting::Warp,
        work: "shr.u32 %y, %t, 5;\nadd.u32 %y, %y, 1;\nst.shared.u32 [%own], %g;\nbar.sync %y, 32;\nxor.b32 %z, %t, 31;\n\
               mul.lo.u32 %z, %z, 4;\nadd.u32 %z, %z, %words;\nld.shared.u32 %x, [%z];\n",
        expected: |g| g ^ 31,
    },
    // Lanes of a warp that come to a collective by different ways.
    Case {
        setting: Setting::Lane,
        work: "and.b32 %y, %g, 1;\nsetp.eq.u32 %p, %y, 0;\n@%p bra EVEN;\nmatch.any.sync.b32 %x, %y, 0xaaaaaaaa;\nbra.uni BOTH;\n\
               EVEN:\nmatch.any.sync.b32 %x, %y, 0x55555555;\nadd.u32 %x, %x, 1;\nBOTH:\n",
        expected: |g| if g % 2 == 0 { 0x5555_5556 } else { 0xaaaa_aaaa },
    },
];

fn text(case: &Case) -> String {
    format!(
        "{HEAD}.visible .entry k(.param .u64 out) {{\n.reg .pred %p;\n.reg .b32 %t, %b, %g, %x, %y, %z, %own, %words;\n\
         .reg .b64 %out, %at;\n.shared .b32 words[{THREADS}];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %b, %ctaid.x;\nmad.lo.u32 %g, %b, {THREADS}, %t;\nmov.u32 %words, words;\nmad.lo.u32 %own, %t, 4, %words;\n\
         {}mul.wide.u32 %at, %g, 4;\nadd.u64 %at, %at, %out;\nst.global.u32 [%at], %x;\nret;\n}}\n",
        case.work
    )
}

/// Any numbers, the same every time.
fn scrambled(nth: u64) -> u64 {
    let x = (nth ^ nth >> 31).wrapping_mul(0x7fb5_d329_728e_a185);
    (x ^ x >> 27).wrapping_mul(0x81da_def4_bc2d_d44d)
}

#[test]
fn code_changes_in_the_middle_of_grids_and_streams() {
    const LAUNCHES: u64 = 1500;
    for (nth, case) in CASES.iter().enumerate() {
        let program = harness::load(&text(case)).unwrap();
        let made = |how: &How| {
            let compiled = harness::emit(&program, "k", how).unwrap();
            harness::code("k", &compiled, how).unwrap()
        };
        let how = How::new(BLOCKS, THREADS);
        let (baseline, best) = (made(&how.clone().baseline()), made(&how));
        assert_eq!(best.setting, case.setting, "case {nth}");
        let weight = Weight::of(program.kernel("k").unwrap()).unwrap();
        let mut first = Arc::new(baseline.as_baseline(weight, Box::new(|_| ())));
        let (mut n_before, mut n_after) = (0, 0);
        let took = Instant::now();
        for launch in 0..LAUNCHES {
            let mut out = vec![0u8; (BLOCKS * THREADS) as usize * 4];
            let is_over = AtomicBool::new(false);
            let wait = Duration::from_nanos(scrambled(launch) % 60_000);
            std::thread::scope(|scope| {
                let replacing = scope.spawn(|| {
                    let start = Instant::now();
                    while start.elapsed() < wait {
                        std::hint::spin_loop();
                    }
                    let was_over = is_over.load(Ordering::Acquire);
                    first.replace_by(best.again());
                    was_over
                });
                let mut arguments = [Arg::Buffer(&mut out)];
                harness::run_code(&program, "k", &first, &how, &mut arguments, &mut Globals::default())
                    .unwrap();
                is_over.store(true, Ordering::Release);
                if replacing.join().unwrap() { n_after += 1 } else { n_before += 1 }
            });
            for (g, word) in out.chunks_exact(4).enumerate() {
                let (found, expected) =
                    (u32::from_le_bytes(word.try_into().unwrap()), (case.expected)(g as u32));
                assert_eq!(found, expected, "case {nth}, launch {launch}, thread {g}");
            }
            // Some launches of a stream run after the change.
            if launch % 4 == 3 {
                first = Arc::new(baseline.as_baseline(weight, Box::new(|_| ())));
            }
        }
        println!(
            "case {nth}: {n_before} changes before the grid's end, {n_after} behind it, {:?}",
            took.elapsed()
        );
        // The code did change while grids ran.
        assert!(n_before > 0);
    }
}

/// Blocks that wait for others go on in the code that they began in, beside blocks of the other code.
#[test]
fn blocks_that_wait_for_each_other_may_run_by_different_code() {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 flags, .param .u64 out) {{\n.reg .pred %p;\n.reg .b32 %t, %b, %x;\n\
         .reg .b64 %flags, %out, %at;\nld.param.u64 %flags, [flags];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %b, %ctaid.x;\nmul.wide.u32 %at, %b, 4;\nadd.u64 %flags, %flags, %at;\nadd.u64 %out, %out, %at;\n\
         setp.ne.u32 %p, %t, 0;\n@%p bra END;\nmov.u32 %x, 0;\nsetp.eq.u32 %p, %b, 0;\n@%p bra FIRST;\n\
         WAIT:\nld.acquire.gpu.u32 %x, [%flags+-4];\nsetp.eq.u32 %p, %x, 0;\n@%p bra WAIT;\n\
         FIRST:\nadd.u32 %x, %x, 1;\nst.global.u32 [%out], %x;\nst.release.gpu.u32 [%flags], %x;\nEND:\nret;\n}}\n"
    );
    let program = harness::load(&text).unwrap();
    let how = How::new(200, 32);
    let made = |how: &How| {
        let compiled = harness::emit(&program, "k", how).unwrap();
        harness::code("k", &compiled, how).unwrap()
    };
    let (baseline, best): (exec::Kernel, exec::Kernel) = (made(&how.clone().baseline()), made(&how));
    let weight = Weight::of(program.kernel("k").unwrap()).unwrap();
    for launch in 0..500 {
        let first = baseline.as_baseline(weight, Box::new(|_| ()));
        let (mut flags, mut out) = (vec![0u8; 200 * 4], vec![0u8; 200 * 4]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (start, wait) = (Instant::now(), Duration::from_nanos(scrambled(launch) % 100_000));
                while start.elapsed() < wait {
                    std::hint::spin_loop();
                }
                first.replace_by(best.again());
            });
            let mut arguments = [Arg::Buffer(&mut flags), Arg::Buffer(&mut out)];
            harness::run_code(&program, "k", &first, &how, &mut arguments, &mut Globals::default()).unwrap();
        });
        let found: Vec<u32> =
            out.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert!(
            found.iter().zip(1..).all(|(found, expected)| *found == expected),
            "launch {launch}: {found:?}"
        );
    }
}
