//! Kernels that would be very long with all that they call in them: what is called from several places stays a function, with
//! the same results and local variables of its own.

use std::fmt::Write;

use hip_cpu::harness::{self, Arg, How};

const THREADS: usize = 64;
/// Steps of the inner function, and calls of the outer one.
const STEPS: u32 = 1_000;
const CALLS: u32 = 6;

/// A step of the inner function, on a word.
fn step(word: u32, nth: u32) -> u32 {
    word.rotate_left(nth % 31 + 1).wrapping_add(nth) ^ (word >> 3)
}

/// The kernel calls `outer`, which calls `inner` twice; both keep words in local arrays. The caller's array is handed down by its
/// generic address, and `isspacep` has to know it for what it is.
fn source() -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .func inner(.param .b64 place)\n{\n.local .align 4 .b8 kept[8];\n.reg .b32 %x, %y, %z;\n.reg .b64 %at, %own;\n\
         ld.param.u64 %at, [place];\nmov.u64 %own, kept;\nld.u32 %x, [%at];\nst.local.u32 [%own+4], %x;\n",
    );
    for nth in 0..STEPS {
        let _ = writeln!(
            text,
            "shf.l.wrap.b32 %y, %x, %x, {};\nadd.u32 %y, %y, {nth};\nshr.u32 %z, %x, 3;\nxor.b32 %x, %y, %z;",
            nth % 31 + 1
        );
    }
    text += "ld.local.u32 %y, [%own+4];\nadd.u32 %x, %x, %y;\nst.u32 [%at], %x;\nret;\n}\n\
             .func (.param .b32 result) outer(.param .b64 place, .param .b32 added)\n{\n.local .align 8 .b8 kept[16];\n\
             .reg .b32 %x, %y;\n.reg .pred %p;\n.reg .b64 %at, %own, %generic;\n\
             ld.param.u64 %at, [place];\nld.param.u32 %y, [added];\nmov.u64 %own, kept;\ncvta.local.u64 %generic, %own;\n\
             ld.u32 %x, [%at];\nadd.u32 %x, %x, %y;\nst.local.u32 [%own+8], %x;\nadd.u64 %generic, %generic, 8;\n\
             isspacep.local %p, %generic;\n@!%p trap;\nisspacep.local %p, %at;\n@!%p trap;\n\
             { .param .b64 a; st.param.b64 [a], %generic; call.uni inner, (a); }\n\
             { .param .b64 a; st.param.b64 [a], %at; call.uni inner, (a); }\n\
             ld.local.u32 %x, [%own+8];\nst.param.b32 [result], %x;\nret;\n}\n\
             .visible .entry k(.param .u64 words)\n{\n.local .align 4 .b8 state[4];\n.reg .b32 %t, %x, %sum;\n\
             .reg .b64 %at, %o, %own, %generic;\nld.param.u64 %at, [words];\nmov.u32 %t, %tid.x;\n\
             mul.wide.u32 %o, %t, 4;\nadd.u64 %at, %at, %o;\nmov.u64 %own, state;\ncvta.local.u64 %generic, %own;\n\
             st.local.u32 [%own], %t;\nmov.u32 %sum, 0;\n";
    for nth in 0..CALLS {
        // A barrier between calls: what the thread keeps lives on.
        let _ = writeln!(
            text,
            "{{ .param .b64 a; .param .b32 b; .param .b32 r; st.param.b64 [a], %generic; st.param.b32 [b], {nth};\n\
             call.uni (r), outer, (a, b); ld.param.b32 %x, [r]; }}\nadd.u32 %sum, %sum, %x;\nbar.sync 0;"
        );
    }
    text + "ld.local.u32 %x, [%own];\nxor.b32 %sum, %sum, %x;\nst.global.u32 [%at], %sum;\nret;\n}\n"
}

fn expected(thread: u32) -> u32 {
    let inner = |word: u32| (0..STEPS).fold(word, step).wrapping_add(word);
    let (mut state, mut sum) = (thread, 0u32);
    for nth in 0..CALLS {
        sum = sum.wrapping_add(inner(state.wrapping_add(nth)));
        state = inner(state);
    }
    sum ^ state
}

#[test]
fn what_is_called_often_stays_a_function() {
    let program = harness::load(&source()).unwrap();
    let expected: Vec<u8> = (0..THREADS as u32).flat_map(|thread| expected(thread).to_le_bytes()).collect();
    let how = || How::new(1, THREADS as u32);
    for how in [how().baseline(), how().lane(), how().lane().thrifty(), how()] {
        let compiled = harness::emit(&program, "k", &how).unwrap();
        // With all calls in it, the kernel has twelve times the inner function's four instructions for each step.
        let lines = compiled.text.lines().count();
        assert!(lines < 20 * STEPS as usize, "{lines} lines, {how:?}");
        assert!(!compiled.stackful, "{how:?}");
        let mut words = vec![0u8; THREADS * 4];
        harness::run(&program, "k", &how, &mut [Arg::Buffer(&mut words)]).unwrap();
        assert_eq!(words, expected, "{how:?}");
    }
}

#[test]
fn a_function_that_is_short_with_all_its_calls_is_put_into_its_callers() {
    let short = source().replace("shf.l.wrap.b32 %y, %x, %x, 7;\n", "ret;\n");
    let program = harness::load(&short).unwrap();
    let compiled = harness::emit(&program, "k", &How::new(1, THREADS as u32).baseline()).unwrap();
    assert!(!compiled.text.contains("call i32 @f"));
}
