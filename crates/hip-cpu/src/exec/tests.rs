//! The scheduler alone, with hand-written LLVM IR in the place of the back ends.

use std::time::{Duration, Instant};

use compiler::back::cpu::Setting;

use super::services::SERVICES;
use super::*;
use crate::jit::{Target, compile};

fn kernel(text: &str, setting: Setting) -> Kernel {
    let object = compile("test", text, Target::host(), crate::jit::Effort::Best).unwrap();
    let shape = CompiledShape {
        setting,
        width: 1,
        context_bytes: 112,
        local_bytes: 16,
        is_gated: false,
        stackful: false,
        why_not: [None, None],
        rival: None,
    };
    Kernel::load(&object, &shape).unwrap()
}

/// Of blocks of one thread, without parameters.
pub(super) fn empty_launch(grid: [u32; 3], cluster: [u32; 3]) -> Launch {
    Launch {
        params: std::ptr::null(),
        globals: std::ptr::null(),
        services: &raw const SERVICES,
        grid,
        block: [1; 3],
        dynamic_shared: 0,
        workers: pool::workers() as u32,
        grid_id: 1,
        functions: std::ptr::null(),
        workspace: std::ptr::null(),
        cluster,
        explicit_cluster: 0,
        children: std::ptr::null(),
        graph: 0,
    }
}

fn launch(kernel: &Kernel, grid: [u32; 3], block: [u32; 3], params: &[u64]) -> Result<(), Fault> {
    let launch = Launch { params: params.as_ptr().cast(), block, ..empty_launch(grid, [1; 3]) };
    run(&Grid {
        kernel,
        launch: &launch,
        shared_bytes: 256,
        tensor_memory: false,
        sanitizer: None,
        block_ns: None,
    })
}

/// A thread that asks once and writes `result[0]` to `out[block * 64 + thread]` as u64, then ends.
fn asking(ask: &str) -> String {
    format!(
        "define i32 @cudaway_step(ptr %launch, ptr %worker, ptr %thread) {{
           %tp = getelementptr i8, ptr %thread, i64 16
           %t = load i32, ptr %tp
           %t64 = zext i32 %t to i64
           %resume = load i32, ptr %thread
           %kind = getelementptr i8, ptr %thread, i64 32
           %flags = getelementptr i8, ptr %thread, i64 36
           %a0 = getelementptr i8, ptr %thread, i64 40
           %a1 = getelementptr i8, ptr %thread, i64 48
           %a2 = getelementptr i8, ptr %thread, i64 56
           %a3 = getelementptr i8, ptr %thread, i64 64
           switch i32 %resume, label %ask [ i32 1, label %answered i32 2, label %end ]
         ask:
           store i32 1, ptr %thread
           {ask}
         wait:
           ret i32 1
         answered:
           %r0 = getelementptr i8, ptr %thread, i64 72
           %r = load i64, ptr %r0
           %params = load ptr, ptr %launch
           %out = load ptr, ptr %params
           %bp = getelementptr i8, ptr %worker, i64 44
           %b = load i32, ptr %bp
           %b64 = zext i32 %b to i64
           %base = mul i64 %b64, 64
           %index = add i64 %base, %t64
           %at = getelementptr i64, ptr %out, i64 %index
           store i64 %r, ptr %at
           ret i32 0
         end:
           ret i32 0
         }}"
    )
}

fn answers(ask: &str, threads: u32) -> Result<Vec<u64>, Fault> {
    let kernel = kernel(&asking(ask), Setting::Lane);
    let mut out = vec![u64::MAX; 64 * 8];
    launch(&kernel, [8, 1, 1], [threads, 1, 1], &[out.as_mut_ptr() as u64])?;
    assert!(
        out.chunks(64).all(|block| block[..threads as usize] == out[..threads as usize]),
        "blocks differ"
    );
    Ok(out[..threads as usize].to_vec())
}

#[test]
fn a_ballot_counts_the_lanes_of_its_own_warp_only() {
    let ask = "store i32 3, ptr %kind
               store i32 3, ptr %flags
               %odd = and i64 %t64, 1
               store i64 %odd, ptr %a0
               store i64 4294967295, ptr %a1
               br label %wait";
    let out = answers(ask, 48).unwrap();
    assert_eq!(out[0], 0xaaaa_aaaa);
    assert_eq!(out[47], 0xaaaa, "the second warp has 16 lanes");
}

#[test]
fn a_shuffle_down_reads_the_next_lane() {
    let ask = "store i32 2, ptr %kind
               store i32 1, ptr %flags
               store i64 %t64, ptr %a0
               store i64 1, ptr %a1
               store i64 31, ptr %a2
               store i64 4294967295, ptr %a3
               br label %wait";
    let out = answers(ask, 64).unwrap();
    assert_eq!(out[3], 4);
    assert_eq!(out[31], 31, "out of range keeps the own value");
    assert_eq!(out[62], 63);
}

#[test]
fn threads_that_ended_count_as_arrived_at_a_full_barrier() {
    // Odd threads end at once; the others count themselves at the barrier.
    let ask = "%odd = and i32 %t, 1
               %is_odd = icmp eq i32 %odd, 1
               br i1 %is_odd, label %end, label %meet
             meet:
               store i32 1, ptr %kind
               store i32 2, ptr %flags
               store i64 1, ptr %a2
               br label %wait";
    let out = answers(ask, 64).unwrap();
    assert_eq!(out[0], 32);
    assert_eq!(out[1], u64::MAX, "an ended thread writes nothing");
}

#[test]
fn a_barrier_with_a_count_waits_for_so_many_only() {
    // Warp 0 arrives and goes on, warp 1 waits for 64.
    let ask = "%warp = lshr i32 %t, 5
               %flag = select i1 true, i32 %warp, i32 0
               %first = icmp eq i32 %flag, 0
               %kindof = select i1 %first, i32 1, i32 0
               store i32 1, ptr %kind
               store i32 %kindof, ptr %flags
               store i64 5, ptr %a0
               store i64 64, ptr %a1
               br label %wait";
    assert_eq!(answers(ask, 64).unwrap(), vec![0; 64]);
}

#[test]
fn lanes_that_wait_for_different_things_are_a_failure_not_a_hang() {
    // Lane 0 waits for all lanes, the others at the block's barrier.
    let ask = "%is0 = icmp eq i32 %t, 0
               %k = select i1 %is0, i32 8, i32 1
               store i32 %k, ptr %kind
               %m = select i1 %is0, i64 4294967295, i64 0
               store i64 %m, ptr %a0
               br label %wait";
    let error = answers(ask, 32).unwrap_err();
    let Fault::Deadlock(stuck) = error else { panic!("{error}") };
    assert_eq!((stuck.at_barrier, stuck.at_collective, stuck.ended), (31, 1, 0));
    assert_eq!(stuck.waiting[0].map(|it| it.thread), Some(0));
}

#[test]
fn match_any_groups_equal_values() {
    let ask = "store i32 4, ptr %kind
               %v = and i64 %t64, 3
               store i64 %v, ptr %a0
               store i64 4294967295, ptr %a1
               br label %wait";
    let out = answers(ask, 32).unwrap();
    assert_eq!(out[0], 0x1111_1111);
    assert_eq!(out[31], 0x8888_8888);
}

#[test]
fn redux_min_is_signed_when_asked() {
    let ask = "store i32 5, ptr %kind
               store i32 9, ptr %flags
               %v = sub i64 3, %t64
               %w = and i64 %v, 4294967295
               store i64 %w, ptr %a0
               store i64 4294967295, ptr %a1
               br label %wait";
    assert_eq!(answers(ask, 32).unwrap()[0], (-28i32).cast_unsigned().into());
}

#[test]
fn the_active_mask_holds_the_lanes_at_the_same_instruction() {
    let ask = "store i32 6, ptr %kind
               %half = lshr i32 %t, 4
               %site = getelementptr i8, ptr %thread, i64 88
               store i32 %half, ptr %site
               br label %wait";
    let out = answers(ask, 32).unwrap();
    assert_eq!((out[0], out[31]), (0xffff, 0xffff_0000));
}

#[test]
fn a_lane_may_wait_for_another_lane_of_its_warp() {
    // Thread 0 spins until thread 31 has written the flag in shared memory.
    let text = "define i32 @cudaway_step(ptr %launch, ptr %worker, ptr %thread) {
           %tp = getelementptr i8, ptr %thread, i64 16
           %t = load i32, ptr %tp
           %shared = load ptr, ptr %worker
           %resume = load i32, ptr %thread
           %new = icmp eq i32 %resume, 0
           br i1 %new, label %start, label %spin
         start:
           store i32 1, ptr %thread
           %is0 = icmp eq i32 %t, 0
           br i1 %is0, label %clear, label %other
         clear:
           store atomic i32 0, ptr %shared monotonic, align 4
           ret i32 2
         spin:
           %seen = load atomic i32, ptr %shared monotonic, align 4
           %set = icmp eq i32 %seen, 7
           br i1 %set, label %end, label %again
         again:
           ret i32 2
         other:
           %is31 = icmp eq i32 %t, 31
           br i1 %is31, label %write, label %end
         write:
           store atomic i32 7, ptr %shared monotonic, align 4
           ret i32 0
         end:
           ret i32 0
         }";
    let kernel = kernel(text, Setting::Lane);
    launch(&kernel, [4, 1, 1], [32, 1, 1], &[0]).unwrap();
}

#[test]
fn every_block_of_a_large_grid_runs_once() {
    // out[block] += 1 for each block of the range.
    let text = "define i32 @cudaway_run(ptr %launch, ptr %worker, i64 %first, i64 %count) {
           %params = load ptr, ptr %launch
           %out = load ptr, ptr %params
           %end = add i64 %first, %count
           br label %loop
         loop:
           %b = phi i64 [ %first, %0 ], [ %next, %loop ]
           %at = getelementptr i32, ptr %out, i64 %b
           %old = atomicrmw add ptr %at, i32 1 monotonic
           %next = add i64 %b, 1
           %more = icmp ult i64 %next, %end
           br i1 %more, label %loop, label %done
         done:
           ret i32 0
         }";
    let kernel = kernel(text, Setting::Simd);
    for grid in [[1, 1, 1], [3, 5, 7], [100_003, 1, 1]] {
        let n = grid.iter().product::<u32>() as usize;
        let mut out = vec![0u32; n];
        for _ in 0..20 {
            launch(&kernel, grid, [32, 1, 1], &[out.as_mut_ptr() as u64]).unwrap();
        }
        assert!(out.iter().all(|&n| n == 20));
    }
}

#[test]
fn a_trap_ends_the_grid_with_its_fault() {
    let text = "define i32 @cudaway_run(ptr %launch, ptr %worker, i64 %first, i64 %count) {
           %bad = icmp sge i64 %first, 40
           %status = select i1 %bad, i32 -1, i32 0
           ret i32 %status
         }";
    let kernel = kernel(text, Setting::Simd);
    assert_eq!(launch(&kernel, [1000, 1, 1], [32, 1, 1], &[]), Err(Fault::Trap));
}

#[test]
fn kernels_round_to_nearest_with_subnormals_whatever_the_host_does() {
    let text = "define i32 @cudaway_run(ptr %launch, ptr %worker, i64 %first, i64 %count) {
           %params = load ptr, ptr %launch
           %out = load ptr, ptr %params
           %x = load float, ptr %out
           %half = fmul float %x, 5.0e-1
           store float %half, ptr %out
           ret i32 0
         }";
    let kernel = kernel(text, Setting::Simd);
    let mut value = f32::MIN_POSITIVE;
    let read = || {
        let mut mxcsr = 0u32;
        // SAFETY: stores the control word to a local.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr) };
        mxcsr
    };
    let before = read();
    let flushing = before | 0x8040;
    // SAFETY: FTZ and DAZ on, as -ffast-math does; put back below.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const flushing) };
    launch(&kernel, [1, 1, 1], [1, 1, 1], &[(&raw mut value) as u64]).unwrap();
    let after = read();
    // SAFETY: the word read above.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const before) };
    assert_eq!(value.to_bits(), 0x0040_0000);
    assert_eq!(after & 0x8040, 0x8040, "the host's mode came back");
}

#[test]
fn blocks_may_wait_for_later_blocks_however_few_cores_there_are() {
    // Every block's only thread counts itself in, then spins until all 200 have.
    let text = "define i32 @cudaway_step(ptr %launch, ptr %worker, ptr %thread) {
           %params = load ptr, ptr %launch
           %count = load ptr, ptr %params
           %resume = load i32, ptr %thread
           %new = icmp eq i32 %resume, 0
           br i1 %new, label %start, label %spin
         start:
           store i32 1, ptr %thread
           %before = atomicrmw add ptr %count, i32 1 seq_cst
           br label %spin
         spin:
           %seen = load atomic i32, ptr %count monotonic, align 4
           %all = icmp eq i32 %seen, 200
           br i1 %all, label %end, label %again
         again:
           ret i32 2
         end:
           ret i32 0
         }";
    let kernel = kernel(text, Setting::Lane);
    for _ in 0..3 {
        let mut count = 0u32;
        launch(&kernel, [200, 1, 1], [1, 1, 1], &[(&raw mut count) as u64]).unwrap();
        assert_eq!(count, 200);
    }
}

#[test]
fn a_fault_in_one_block_ends_blocks_that_spin_for_ever() {
    let text = "define i32 @cudaway_step(ptr %launch, ptr %worker, ptr %thread) {
           %bp = getelementptr i8, ptr %worker, i64 44
           %b = load i32, ptr %bp
           %last = icmp eq i32 %b, 9
           %status = select i1 %last, i32 -1, i32 2
           ret i32 %status
         }";
    let kernel = kernel(text, Setting::Lane);
    assert_eq!(launch(&kernel, [10, 1, 1], [1, 1, 1], &[0]), Err(Fault::Trap));
}

/// `cudaway_run` that writes `word` for each of its blocks.
fn marking(word: u32) -> Kernel {
    let text = format!(
        "define i32 @cudaway_run(ptr %launch, ptr %worker, i64 %first, i64 %count) {{
         entry:
           %params = load ptr, ptr %launch
           %out = load ptr, ptr %params
           %end = add i64 %first, %count
           br label %block
         block:
           %b = phi i64 [ %first, %entry ], [ %next, %block ]
           %at = getelementptr i32, ptr %out, i64 %b
           store i32 {word}, ptr %at
           %next = add i64 %b, 1
           %more = icmp ult i64 %next, %end
           br i1 %more, label %block, label %done
         done:
           ret i32 0
         }}"
    );
    kernel(&text, Setting::Simd)
}

#[test]
fn code_that_was_replaced_runs_no_more_and_every_block_runs_once() {
    let first = marking(1);
    let mut out = vec![0u32; 5000];
    let params = [out.as_mut_ptr() as u64];
    let mut run = |kernel: &Kernel| {
        out.fill(0);
        launch(kernel, [5000, 1, 1], [32, 1, 1], &params).unwrap();
        out.clone()
    };
    assert_eq!(run(&first), [1; 5000]);
    first.replace_by(marking(2));
    assert_eq!(run(&first), [2; 5000]);
    // More than once.
    first.replace_by(marking(3));
    assert_eq!(run(&first), [3; 5000]);
    // While a grid runs, from some chunk on.
    let early = marking(1);
    std::thread::scope(|scope| {
        scope.spawn(|| early.replace_by(marking(2)));
        loop {
            let found = run(&early);
            assert!(found.iter().all(|&word| word == 1 || word == 2));
            if found == [2; 5000] {
                break;
            }
        }
    });
}

/// Blocks from `first` on; each adds its number to `out[0]`, after so many turns of an empty loop.
fn adding(turns: u64) -> String {
    format!(
        "define i32 @cudaway_run(ptr %launch, ptr %worker, i64 %first, i64 %count) {{
         entry:
           %params = load ptr, ptr %launch
           %out = load ptr, ptr %params
           %end = add i64 %first, %count
           br label %block
         block:
           %b = phi i64 [ %first, %entry ], [ %next, %done ]
           br label %turn
         turn:
           %i = phi i64 [ 0, %block ], [ %more, %turn ]
           call void asm sideeffect \"\", \"\"()
           %more = add i64 %i, 1
           %again = icmp ult i64 %more, {turns}
           br i1 %again, label %turn, label %done
         done:
           atomicrmw add ptr %out, i64 %b monotonic
           %next = add i64 %b, 1
           %is_end = icmp eq i64 %next, %end
           br i1 %is_end, label %all, label %block
         all:
           ret i32 0
         }}"
    )
}

/// What a trial between two codes with these turns ends in, and how often that was told.
fn verdict(turns: u64, rival_turns: u64) -> (bool, u32) {
    let first = kernel(&adding(turns), Setting::Simd);
    static TOLD: AtomicU32 = AtomicU32::new(0);
    let before = TOLD.load(Ordering::Relaxed);
    let told = |_, _| {
        TOLD.fetch_add(1, Ordering::Relaxed);
    };
    first.try_beside(kernel(&adding(rival_turns), Setting::Simd), Box::new(told));
    let own = &raw const first;
    let told = || TOLD.load(Ordering::Relaxed) - before;
    let all = || {
        let mut sum = 0u64;
        launch(&first, [1000, 1, 1], [1, 1, 1], &[(&raw mut sum).addr() as u64]).unwrap();
        assert_eq!(sum, 1000 * 999 / 2, "each block runs once, in either code");
    };
    for _ in 0..100_000 {
        all();
        if told() > 0 {
            break;
        }
    }
    all();
    (!std::ptr::eq(first.best(), own), told())
}

#[test]
fn of_two_codes_that_take_turns_the_one_with_a_thousandth_of_the_work_stays() {
    assert_eq!(verdict(200_000, 200), (true, 1));
    assert_eq!(verdict(200, 200_000), (false, 1));
}

/// A thread that counts for a while and writes which OS thread runs it to `out[block]`.
const WHO: &str = "define i32 @cudaway_step(ptr %launch, ptr %worker, ptr %thread) {
                   begin:
                     br label %count
                   count:
                     %i = phi i64 [ 0, %begin ], [ %next, %count ]
                     %next = add i64 %i, 1
                     call void asm sideeffect \"\", \"r\"(i64 %next)
                     %more = icmp ult i64 %next, 20000
                     br i1 %more, label %count, label %tell
                   tell:
                     %params = load ptr, ptr %launch
                     %out = load ptr, ptr %params
                     %np = getelementptr i8, ptr %worker, i64 24
                     %n = load i32, ptr %np
                     %bp = getelementptr i8, ptr %worker, i64 44
                     %b = load i32, ptr %bp
                     %b64 = zext i32 %b to i64
                     %at = getelementptr i32, ptr %out, i64 %b64
                     store i32 %n, ptr %at
                     ret i32 0
                   }";

/// How many OS threads ran blocks of a grid.
fn n_running(kernel: &Kernel) -> usize {
    let mut out = [u32::MAX; 200];
    launch(kernel, [out.len() as u32, 1, 1], [1, 1, 1], &[out.as_mut_ptr() as u64]).unwrap();
    out.iter().collect::<std::collections::HashSet<_>>().len()
}

#[test]
fn a_core_is_left_to_who_makes_better_code() {
    let (workers, best) = (pool::workers(), kernel(WHO, Setting::Lane));
    let heat: Arc<parking_lot::Mutex<Option<Arc<Heat>>>> = Arc::default();
    let kept = heat.clone();
    let weight =
        Weight { instructions: 10, loops: false, products: false, has_long_tail: false, in_step: false };
    let baseline = best.as_baseline(weight, Box::new(move |heat| *kept.lock() = Some(heat)));
    baseline.improve();
    for _ in 0..20 {
        // Its workers look for more right behind it.
        n_running(&best);
        assert!(n_running(&baseline) < workers.max(2));
    }
    // It will not come. All workers meet in one launch where each has a core to itself, which others may have meanwhile.
    drop(heat.lock().take());
    let end = Instant::now() + Duration::from_secs(20);
    assert!(std::iter::repeat_with(|| n_running(&baseline)).any(|n| n == workers || Instant::now() > end));
    assert!(Instant::now() <= end, "one was still left out after 20 s");
}

#[test]
fn launches_of_what_has_been_replaced_are_not_foretold() {
    let best = kernel(WHO, Setting::Lane);
    let weight =
        Weight { instructions: 10, loops: false, products: false, has_long_tail: false, in_step: false };
    let first = best.as_baseline(weight, Box::new(|_| ()));
    let launch = steps::Launch { params: &[], grid: [1; 3], block: [32, 1, 1] };
    assert!(first.queue(&launch).is_some_and(|ns| ns > 0));
    first.replace_by(best.again());
    assert_eq!(first.queue(&launch), None);
}
