//! What needs a process of its own: faults stick to it, its stdout is looked at, its start and its end.
//!
//! Each test starts this file's own binary again with `CHILD` naming what to do there.

// SAFETY of every block here: HIP's contract, or a wrong call whose refusal is the test; pointers are to locals and to
// allocations of the test that are large enough and live until their streams are done.
#![allow(clippy::undocumented_unsafe_blocks, reason = "said once above")]

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::*;
use hip_sys::*;

const KERNELS: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
.global .align 1 .b8 text[10] = {98, 108, 111, 99, 107, 32, 37, 100, 10, 0};
.global .align 1 .b8 word[4] = {97, 98, 99, 0};

.visible .entry trapping()
{
    trap;
    ret;
}

.visible .entry wild(.param .u64 out)
{
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 4096;
    st.global.u32 [%rd1], 1;
    ret;
}

.visible .entry asserting()
{
    .reg .b64 %rd<5>;
    mov.u64 %rd1, word;
    cvta.global.u64 %rd2, %rd1;
    mov.u64 %rd3, 1;
    {
        .param .b64 message;
        .param .b64 file;
        .param .b32 line;
        .param .b64 function;
        .param .b64 size;
        st.param.b64 [message], %rd2;
        st.param.b64 [file], %rd2;
        st.param.b32 [line], 7;
        st.param.b64 [function], %rd2;
        st.param.b64 [size], %rd3;
        call.uni __assertfail, (message, file, line, function, size);
    }
    ret;
}

.visible .entry stuck(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p, %r1, 0;
    @%p bra ONE;
    bar.sync 1, 64;
    ret;
ONE:
    bar.sync 2, 64;
    ret;
}

.visible .entry printing()
{
    .local .align 8 .b8 buffer[8];
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    mov.u64 %rd1, buffer;
    cvta.local.u64 %rd2, %rd1;
    mov.u32 %r1, %ctaid.x;
    st.local.u32 [buffer], %r1;
    mov.u64 %rd3, text;
    cvta.global.u64 %rd4, %rd3;
    {
        .param .b64 format;
        .param .b64 arguments;
        .param .b32 result;
        st.param.b64 [format], %rd4;
        st.param.b64 [arguments], %rd2;
        call.uni (result), vprintf, (format, arguments);
        ld.param.b32 %r2, [result];
    }
    ret;
}

.visible .entry endless(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
AGAIN:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.eq.u32 %p, %r1, 0;
    @%p bra AGAIN;
    ret;
}
"#;

fn child(test: &str, task: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--quiet"]).env("CHILD", task);
    command.env_remove("CUDAWAY_LOG").env_remove("CUDAWAY_LOG_FILE");
    command.envs(variables.iter().copied());
    command.output().unwrap()
}

fn is_child(task: &str) -> bool {
    std::env::var("CHILD").is_ok_and(|child| child == task)
}

const NONE: hipStream_t = std::ptr::null_mut();

/// A launch that faults, then the same answer from everything until a reset.
fn faults(name: &str, threads: u32, expected: i32) {
    let m = module(KERNELS).unwrap();
    let f = function(m, name).unwrap();
    let p = malloc(4);
    launch!(f, 1, threads, NONE, p).unwrap();
    let hip = hip();
    unsafe {
        assert_eq!(code(hip.hipStreamSynchronize(NONE)), expected);
        assert_eq!(code(hip.hipDeviceSynchronize()), expected);
        assert_eq!(code(hip.hipMalloc(&mut std::ptr::null_mut(), 4)), expected);
        assert_eq!(code(launch!(f, 1, 32, NONE, p)), expected);
        hip.hipDeviceReset().unwrap();
        hip.hipDeviceSynchronize().unwrap();
    }
}

macro_rules! in_child {
    ($name:ident, $body:expr) => {
        in_child!($name, [], $body, |output: Output| assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ));
    };
    ($name:ident, $variables:expr, $body:expr, $check:expr) => {
        #[test]
        fn $name() {
            let name = stringify!($name);
            if is_child(name) {
                $body;
            } else if std::env::var_os("CHILD").is_none() {
                let variables: &[(&str, &str)] = &$variables;
                $check(child(name, name, variables));
            }
        }
    };
}

in_child!(a_trap_is_a_launch_failure_until_the_device_is_reset, faults("trapping", 1, 719));
in_child!(a_wild_store_is_an_illegal_address_and_the_process_lives, faults("wild", 64, 700));
in_child!(a_failed_assertion_is_reported_as_such, faults("asserting", 1, 710));
in_child!(threads_that_wait_for_each_other_for_ever_are_a_launch_failure, faults("stuck", 64, 719));

in_child!(
    device_printf_appears_on_stdout_at_synchronisation_in_order_with_the_hosts,
    [],
    {
        let f = function(module(KERNELS).unwrap(), "printing").unwrap();
        unsafe {
            libc_printf("first\n");
            launch!(f, 3, 1, NONE).unwrap();
            hip().hipDeviceSynchronize().unwrap();
            libc_printf("last\n");
        }
    },
    |output: Output| {
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines: Vec<_> =
            text.lines().filter(|l| l.starts_with("block") || ["first", "last"].contains(l)).collect();
        assert_eq!((lines.first(), lines.last()), (Some(&"first"), Some(&"last")), "{text}");
        lines.sort_unstable();
        assert_eq!(lines, ["block 0", "block 1", "block 2", "first", "last"]);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
);

/// Through C's buffer, as a program's own `printf`.
unsafe fn libc_printf(text: &str) {
    unsafe extern "C" {
        fn printf(format: *const std::ffi::c_char, ...) -> i32;
    }
    let text = std::ffi::CString::new(text).unwrap();
    unsafe { printf(c"%s".as_ptr(), text.as_ptr()) };
}

/// The log of one run of `vector_add` with this cache.
fn run_logged(cache: &Path, log: &Path) -> String {
    let _ = std::fs::remove_file(log);
    let variables = [
        ("CUDAWAY_CACHE_DIR", cache.to_str().unwrap()),
        ("CUDAWAY_LOG", "debug"),
        ("CUDAWAY_LOG_FILE", log.to_str().unwrap()),
    ];
    let output = child("a_second_start_compiles_nothing_and_damage_is_rebuilt", "add", &variables);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(log).unwrap()
}

#[test]
fn a_second_start_compiles_nothing_and_damage_is_rebuilt() {
    if is_child("add") {
        let f = function(module(VECTOR_ADD).unwrap(), "vector_add").unwrap();
        let (a, b, c) = (upload(&[1f32; 64]), upload(&[2f32; 64]), malloc(256));
        launch!(f, 1, 64, NONE, a, b, c, 64u32).unwrap();
        assert_eq!(download::<f32>(c, 64), [3f32; 64]);
        return;
    }
    if std::env::var_os("CHILD").is_some() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("cudaway-process-{}", std::process::id()));
    let (cache, log) = (folder.join("cache"), folder.join("log"));
    std::fs::create_dir_all(&folder).unwrap();
    let first = run_logged(&cache, &log);
    assert!(
        first.contains("cache miss vector_add") && first.contains("compiled kernel vector_add"),
        "{first}"
    );
    let second = run_logged(&cache, &log);
    assert!(second.contains("cache hit vector_add") && !second.contains("compiled kernel"), "{second}");
    // One flipped byte in each entry: the code, and what a launch must know of the kernel.
    let mut entries = vec![];
    for sub in std::fs::read_dir(&cache).unwrap() {
        entries.extend(std::fs::read_dir(sub.unwrap().path()).unwrap().map(|e| e.unwrap().path()));
    }
    assert!(!entries.is_empty());
    for entry in &entries {
        let mut bytes = std::fs::read(entry).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(entry, bytes).unwrap();
    }
    let third = run_logged(&cache, &log);
    assert!(third.contains("damaged") && third.contains("compiled kernel vector_add"), "{third}");
    let fourth = run_logged(&cache, &log);
    assert!(fourth.contains("cache hit vector_add"), "{fourth}");
    std::fs::remove_dir_all(&folder).unwrap();
}

in_child!(
    a_process_ends_while_kernels_run_and_streams_wait,
    [],
    {
        let m = module(KERNELS).unwrap();
        let f = function(m, "endless").unwrap();
        let p = upload(&[0u32]);
        launch!(f, 4, 32, stream(hipStreamNonBlocking), p).unwrap();
        let s = stream(hipStreamNonBlocking);
        unsafe { hip().hipStreamWaitValue32(s, p, 1, 1, u32::MAX) }.unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        // The harness would go on; a program's `exit` is what is meant.
        std::process::exit(17);
    },
    |output: Output| assert_eq!(
        output.status.code(),
        Some(17),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    )
);

in_child!(
    a_process_ends_while_another_thread_compiles,
    [("CUDAWAY_CACHE_MAX_MB", "0")],
    {
        let m = module(VECTOR_ADD).unwrap() as usize;
        for t in 0..4u32 {
            std::thread::spawn(move || {
                let f = function(m as hipModule_t, "vector_add").unwrap();
                let p = malloc(16);
                for block in 1..1000 {
                    let _ = launch!(f, 1, 4 * block + t, hipStreamPerThread, p, p, p, 0u32);
                }
            });
        }
        std::thread::sleep(std::time::Duration::from_millis(60));
        std::process::exit(18);
    },
    |output: Output| assert_eq!(
        output.status.code(),
        Some(18),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    )
);

in_child!(
    a_forked_child_that_leaves_cuda_alone_ends_normally,
    [],
    {
        let f = function(module(VECTOR_ADD).unwrap(), "vector_add").unwrap();
        let (a, c) = (upload(&[1f32; 4096]), malloc(4 * 4096));
        launch!(f, 16, 256, NONE, a, a, c, 4096u32).unwrap();
        unsafe extern "C" {
            fn fork() -> i32;
            fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
            fn exit(code: i32) -> !;
        }
        unsafe {
            let child = fork();
            if child == 0 {
                // As in CUDA, the device is not there in a forked child.
                let answer = code(hip().hipMalloc(&mut std::ptr::null_mut(), 4));
                exit(if answer == 3 { 5 } else { 6 });
            }
            let mut status = 0;
            waitpid(child, &mut status, 0);
            assert_eq!(status >> 8, 5);
            assert_eq!(status & 0x7f, 0, "the child was killed");
        }
        assert_eq!(download::<f32>(c, 4096), vec![2f32; 4096]);
    },
    |output: Output| assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr))
);
