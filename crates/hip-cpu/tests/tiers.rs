//! Better code takes the place of baseline code in the middle of grids and between the launches of a stream, thousands of
//! times, at any moment: each result is what it is without. Every meeting of threads is in one of the kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
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

/// Of a kernel's text: its baseline code, in whose place better code is asked for by nobody yet, what keeps it wanted, and its weight.
fn wanted(text: &str, how: &How) -> (compiler::Program, exec::Kernel, Wanted) {
    let program = harness::load(text).unwrap();
    let how = how.clone().baseline();
    let compiled = harness::emit(&program, "k", &how).unwrap();
    assert!(compiled.is_gated);
    let code = harness::code("k", &compiled, &how).unwrap();
    let weight = Weight::of(program.kernel("k").unwrap()).unwrap();
    let wishes = Wanted::default();
    let told = wishes.clone();
    let first = code.as_baseline(weight, Box::new(move |heat| told.lock().unwrap().push(heat)));
    (program, first, wishes)
}

/// Somebody makes better code as long as this has something.
type Wanted = Arc<std::sync::Mutex<Vec<Arc<exec::Heat>>>>;

/// The best code of the text's kernel.
fn best(text: &str, how: &How) -> exec::Kernel {
    let program = harness::load(text).unwrap();
    harness::code("k", &harness::emit(&program, "k", how).unwrap(), how).unwrap()
}

/// A kernel whose threads do `work`, then write `mark` to their words of `out`; `flag` is another parameter.
fn marking(work: &str, mark: u32) -> String {
    format!(
        "{HEAD}.visible .entry k(.param .u64 flag, .param .u64 out) {{\n.reg .pred %p;\n.reg .b32 %t, %b, %x, %y;\n\
         .reg .b64 %flag, %out, %at;\nld.param.u64 %flag, [flag];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
         mov.u32 %b, %ctaid.x;\nmad.lo.u32 %x, %b, {THREADS}, %t;\nmul.wide.u32 %at, %x, 4;\nadd.u64 %out, %out, %at;\n\
         mov.u32 %x, 0;\n{work}\
         mov.u32 %y, {mark};\nst.global.u32 [%out], %y;\nret;\n}}\n"
    )
}

/// Runs `first` over the grid while `meanwhile` does what it does: the words of `out`. The words of `flag` are the kernel's first
/// parameter.
fn run_while(
    program: &compiler::Program,
    first: &exec::Kernel,
    how: &How,
    (flag, n_words): (&[AtomicU32; 2], usize),
    meanwhile: impl FnOnce() + Send,
) -> Vec<u32> {
    let mut out = vec![0u8; n_words * 4];
    std::thread::scope(|scope| {
        scope.spawn(meanwhile);
        let mut arguments = [Arg::u64(flag.as_ptr() as u64), Arg::Buffer(&mut out)];
        harness::run_code(program, "k", first, how, &mut arguments, &mut Globals::default()).unwrap();
    });
    out.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Waits for a word that the host writes.
const WAIT: &str = "WAIT:\nld.volatile.global.u32 %x, [%flag];\nsetp.eq.u32 %p, %x, 0;\n@%p bra WAIT;\n";
const N_WORDS: usize = (BLOCKS * THREADS) as usize;

#[test]
fn blocks_that_nobody_has_seen_begin_anew_in_better_code() {
    let how = How::new(BLOCKS, THREADS);
    // Threads that go on and on together, and wait for nobody else.
    let together = WAIT.replace("WAIT:\n", "WAIT:\nbar.sync 0;\n");
    let (program, first, _wishes) = wanted(&marking(&together, 1), &how);
    let better = best(&marking("", 2), &how);
    let words = run_while(&program, &first, &how, (&Default::default(), N_WORDS), || {
        std::thread::sleep(Duration::from_millis(20));
        first.replace_by(better);
    });
    assert_eq!(words, [2; N_WORDS]);
}

#[test]
fn blocks_that_were_seen_end_as_they_began() {
    let how = How::new(1, THREADS);
    let seen = "atom.global.add.u32 %x, [%flag+4], 1;\nbar.sync 0;\n".to_owned() + WAIT;
    // The flag, and the count that the threads add to.
    let flag: [AtomicU32; 2] = Default::default();
    let (program, first, _wishes) = wanted(&marking(&seen, 1), &how);
    let better = best(&marking("", 2), &how);
    let words = run_while(&program, &first, &how, (&flag, THREADS as usize), || {
        while flag[1].load(Ordering::Acquire) < THREADS {
            std::thread::yield_now();
        }
        first.replace_by(better);
        std::thread::sleep(Duration::from_millis(20));
        flag[0].store(1, Ordering::Release);
    });
    assert_eq!(flag[1].load(Ordering::Acquire), THREADS, "each thread once");
    assert_eq!(words, [1; THREADS as usize]);
}

/// A thread of it takes long enough to tell that a block of them had better wait.
fn long() -> String {
    "AGAIN:\nadd.u32 %x, %x, 1;\nxor.b32 %y, %x, %t;\nsetp.lt.u32 %p, %x, 40000000;\n@%p bra AGAIN;\n"
        .to_owned()
}

#[test]
fn long_blocks_wait_for_better_code() {
    let how = How::new(BLOCKS, THREADS);
    let (program, first, wishes) = wanted(&marking(&long(), 1), &how);
    let better = best(&marking("", 2), &how);
    let words = run_while(&program, &first, &how, (&Default::default(), N_WORDS), || {
        while wishes.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        // A thread has come to its store by then, and waits.
        std::thread::sleep(Duration::from_secs(1));
        first.replace_by(better);
        wishes.lock().unwrap().clear();
    });
    assert_eq!(words, [2; N_WORDS]);
}

#[test]
fn long_blocks_run_by_what_there_is_when_no_better_code_comes() {
    // Two threads: long, and not too long for a test.
    let how = How::new(2, 2);
    let (program, first, wishes) = wanted(&marking(&long(), 1), &how);
    let words = run_while(&program, &first, &how, (&Default::default(), 64 + 2), || {
        while wishes.lock().unwrap().is_empty() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(300));
        // Whoever made it has given up.
        wishes.lock().unwrap().clear();
    });
    let expected = (0..66).map(|at| u32::from(at % 64 < 2)).collect::<Vec<_>>();
    assert_eq!(words, expected);
}

/// Blocks that wait for the block before them, of which some are given up: nobody is waited for in vain.
#[test]
fn blocks_that_others_wait_for_may_begin_anew() {
    // Each block takes its time before it adds one to the count of the block before it.
    let chain = |trips: u32| {
        format!(
            "{HEAD}.visible .entry k(.param .u64 flags, .param .u64 out) {{\n.reg .pred %p;\n.reg .b32 %t, %b, %x;\n\
             .reg .b64 %flags, %out, %at;\nld.param.u64 %flags, [flags];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\n\
             mov.u32 %b, %ctaid.x;\nmul.wide.u32 %at, %b, 4;\nadd.u64 %flags, %flags, %at;\nadd.u64 %out, %out, %at;\n\
             mov.u32 %x, 0;\nSOME:\nadd.u32 %x, %x, 1;\nsetp.lt.u32 %p, %x, {trips};\n@%p bra SOME;\nbar.sync 0;\n\
             setp.ne.u32 %p, %t, 0;\n@%p bra END;\nmov.u32 %x, 0;\nsetp.eq.u32 %p, %b, 0;\n@%p bra FIRST;\n\
             WAIT:\nld.acquire.gpu.u32 %x, [%flags+-4];\nsetp.eq.u32 %p, %x, 0;\n@%p bra WAIT;\n\
             FIRST:\nadd.u32 %x, %x, 1;\nst.global.u32 [%out], %x;\nst.release.gpu.u32 [%flags], %x;\nEND:\nret;\n}}\n"
        )
    };
    let how = How::new(200, 32);
    let text = chain(300);
    let (program, first, _wishes) = wanted(&text, &how);
    let better = best(&text, &how);
    let weight = Weight::of(program.kernel("k").unwrap()).unwrap();
    for launch in 0..300 {
        let kept: Wanted = Arc::default();
        let told = kept.clone();
        let first = first.as_baseline(weight, Box::new(move |heat| told.lock().unwrap().push(heat)));
        let (mut flags, mut out) = (vec![0u8; 200 * 4], vec![0u8; 200 * 4]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_micros(scrambled(launch) % 3000));
                first.replace_by(better.again());
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
