//! A kernel that strides through an array: baseline code is all that small arrays need, better code is made for large ones.

mod kept;

use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use border::Out;
use hip_cpu::api::*;
use kept::n_files;

/// Adds 1 to `n` words; a grid may have fewer threads.
const TEXT: &std::ffi::CStr = c".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .entry increase(.param .u64 words, .param .u32 n)\n{\n\
    .reg .pred %p;\n.reg .b32 %i, %x, %n, %step;\n.reg .b64 %words, %at;\n\
    ld.param.u64 %words, [words];\nld.param.u32 %n, [n];\nmov.u32 %i, %ctaid.x;\nmov.u32 %x, %ntid.x;\n\
    mov.u32 %step, %nctaid.x;\nmul.lo.u32 %step, %step, %x;\nmul.lo.u32 %i, %i, %x;\nmov.u32 %x, %tid.x;\n\
    add.u32 %i, %i, %x;\nsetp.ge.u32 %p, %i, %n;\n@%p bra END;\nAGAIN:\nmul.wide.u32 %at, %i, 4;\n\
    add.u64 %at, %at, %words;\nld.global.u32 %x, [%at];\nadd.u32 %x, %x, 1;\nst.global.u32 [%at], %x;\n\
    add.u32 %i, %i, %step;\nsetp.lt.u32 %p, %i, %n;\n@%p bra AGAIN;\nEND:\nret;\n}\n";

const MOST: usize = 1 << 22;

#[test]
fn small_arrays_need_no_better_code_and_large_ones_get_it() {
    let folder = std::env::temp_dir().join(format!("cudaway-strides-test-{}", std::process::id()));
    // SAFETY: nobody reads the environment before the first call.
    unsafe { std::env::set_var("CUDAWAY_CACHE_DIR", &folder) };
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: PTX text that ends with a NUL.
    unsafe { hipModuleLoadData(Out::from(&mut module), TEXT.as_ptr().cast()) }.unwrap();
    hipModuleGetFunction(Out::from(&mut function), module, c"increase").unwrap();
    let mut words = null_mut::<c_void>();
    hipMalloc(Out::from(&mut words), MOST * 4).unwrap();
    hipMemset(words, 0, MOST * 4).unwrap();
    let mut increase = |n: usize| {
        let mut n = n as u32;
        let mut arguments: [*mut c_void; 2] = [(&raw mut words).cast(), (&raw mut n).cast()];
        let at = arguments.as_mut_ptr();
        hipModuleLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, null_mut(), at, null_mut()).unwrap();
        hipDeviceSynchronize().unwrap();
    };
    // What launches ask about the kernel is kept, and its baseline code.
    for _ in 0..2 {
        increase(1500);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(n_files(&folder), 2);
    increase(MOST);
    let until = Instant::now() + Duration::from_secs(60);
    // And what it was launched with, and its best code.
    while n_files(&folder) < 4 {
        assert!(Instant::now() < until, "no better code was made");
        std::thread::sleep(Duration::from_millis(20));
    }
    increase(MOST);
    let mut found = vec![0u32; MOST];
    hipMemcpyDtoH(found.as_mut_ptr().cast(), words, MOST * 4).unwrap();
    assert!(found.iter().enumerate().all(|(i, &it)| it == if i < 1500 { 4 } else { 2 }));
    hipFree(words).unwrap();
    hipModuleUnload(module).unwrap();
    let _ = std::fs::remove_dir_all(&folder);
}
