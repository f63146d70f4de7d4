//! A kernel of which nobody can say how wide it runs best is tried in two widths while the program launches it, and gives
//! the same in both.

mod kept;

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use border::Out;
use hip_cpu::api::*;
use kept::n_files;

const WORDS: usize = 4096;
const THREADS: usize = 256 * 400;

/// Each thread walks from its own word to the word that names, and so on, as many steps as its number says.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry walk(.param .u64 table, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %t, %b, %x, %n, %sum;
    .reg .b64 %table, %out, %at;
    ld.param.u64 %table, [table];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %b, %ctaid.x;
    mad.lo.u32 %t, %b, 256, %t;
    mul.wide.u32 %at, %t, 4;
    add.u64 %out, %out, %at;
    mul.lo.u32 %n, %t, 40503;
    and.b32 %n, %n, 31;
    and.b32 %x, %t, 4095;
    mov.u32 %sum, 0;
again:
    mul.wide.u32 %at, %x, 4;
    add.u64 %at, %at, %table;
    ld.global.u32 %x, [%at];
    xor.b32 %sum, %sum, %x;
    mul.lo.u32 %sum, %sum, 16777619;
    sub.u32 %n, %n, 1;
    setp.ge.s32 %p, %n, 0;
    @%p bra again;
    st.global.u32 [%out], %sum;
    ret;
}
";

fn word(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761) >> 20
}

fn expected(thread: usize) -> u32 {
    let (mut x, mut sum) = (thread as u32 & 4095, 0u32);
    for _ in 0..=(thread as u32).wrapping_mul(40503) & 31 {
        x = word(x as usize);
        sum = (sum ^ x).wrapping_mul(16_777_619);
    }
    sum
}

#[test]
fn results_stay_the_same_while_two_widths_take_turns() {
    let folder = std::env::temp_dir().join(format!("cudaway-rival-test-{}", std::process::id()));
    // SAFETY: nobody reads the environment before the first call.
    unsafe { std::env::set_var("CUDAWAY_CACHE_DIR", &folder) };
    let text = CString::new(PTX).unwrap();
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: PTX text that ends with a NUL.
    unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
    hipModuleGetFunction(Out::from(&mut function), module, c"walk").unwrap();
    let (mut table, mut out) = (null_mut::<c_void>(), null_mut::<c_void>());
    hipMalloc(Out::from(&mut table), WORDS * 4).unwrap();
    hipMalloc(Out::from(&mut out), THREADS * 4).unwrap();
    let mut words: Vec<u32> = (0..WORDS).map(word).collect();
    hipMemcpyHtoD(table, words.as_mut_ptr().cast(), WORDS * 4).unwrap();
    let wanted: Vec<u32> = (0..THREADS).map(expected).collect();
    let mut check = || {
        hipMemset(out, 0xff, THREADS * 4).unwrap();
        let mut arguments: [*mut c_void; 2] = [(&raw mut table).cast(), (&raw mut out).cast()];
        let (grid, at) = ((THREADS / 256) as u32, arguments.as_mut_ptr());
        hipModuleLaunchKernel(function, grid, 1, 1, 256, 1, 1, 0, null_mut(), at, null_mut()).unwrap();
        let mut found = vec![0u32; THREADS];
        hipMemcpyDtoH(found.as_mut_ptr().cast(), out, THREADS * 4).unwrap();
        assert!(found == wanted);
    };
    // What launches know of the kernel, its code, and the code in the other width.
    let until = Instant::now() + Duration::from_secs(120);
    while n_files(&folder) < 3 {
        check();
        assert!(Instant::now() < until, "no other width was made");
    }
    for _ in 0..200 {
        check();
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
