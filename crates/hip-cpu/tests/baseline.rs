//! A kernel that takes long to compile runs at once by code that is there sooner, and gives the same when the best code is there.

mod kept;

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{CString, c_void};
use std::fmt::Write;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

use border::Out;
use hip_cpu::api::*;
use hip_sys::hipFunction_t;
use kept::{files, n_files};

const STEPS: usize = 120;
const THREADS: usize = 256 * 40;

/// Each thread walks `STEPS` times through a table of 256 words, from its own number on; `end` is what it does with the sum.
fn text(end: &str) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry walk(.param .u64 table, .param .u64 out)\n{\n\
         .reg .pred %p;\n.reg .b32 %t, %b, %x, %sum, %ones;\n.reg .b64 %table, %out, %at;\n\
         ld.param.u64 %table, [table];\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\n\
         mad.lo.u32 %t, %b, 256, %t;\nmul.wide.u32 %at, %t, 4;\nadd.u64 %out, %out, %at;\nmov.u32 %x, %t;\n\
         mov.u32 %sum, 0;\n",
    );
    for step in 0..STEPS {
        let _ = writeln!(
            text,
            "and.b32 %x, %x, 255;\nmul.wide.u32 %at, %x, 4;\nadd.u64 %at, %at, %table;\nld.global.u32 %x, [%at];\n\
             setp.gt.u32 %p, %x, {};\n@%p bra L{step};\nxor.b32 %sum, %sum, %x;\nL{step}:\nadd.u32 %sum, %sum, %x;",
            step * 2000
        );
    }
    text + end + "st.global.u32 [%out], %sum;\nret;\n}\n"
}

/// Adds 16 to the sums of the warp: matrices of ones are multiplied, by a function that all kernels share until the better code is there.
const PRODUCT: &str = "mov.b32 %ones, 0x01010101;\n\
    mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%sum, %x}, {%ones}, {%ones}, {%sum, %sum};\n";

fn word(i: usize) -> u32 {
    (i as u32).wrapping_mul(2_654_435_761) >> 12
}

fn expected(thread: usize) -> u32 {
    let (mut x, mut sum) = (thread as u32, 0u32);
    for step in 0..STEPS {
        x = word((x & 255) as usize);
        if x <= step as u32 * 2000 {
            sum ^= x;
        }
        sum = sum.wrapping_add(x);
    }
    sum
}

#[test]
fn results_stay_the_same_when_the_better_code_comes() {
    let folder = std::env::temp_dir().join(format!("cudaway-quick-test-{}", std::process::id()));
    // SAFETY: nobody reads the environment before the first call.
    unsafe { std::env::set_var("CUDAWAY_CACHE_DIR", &folder) };
    // What launches know of the kernel is in the cache; the better code follows it there before it is taken.
    let walk = Walk::load("", 0);
    let before = n_files(&folder);
    walk.check_until(|| n_files(&folder) > before);
    // The cache has what is made for less for other runs, until it has the best in its place: a file that goes.
    let known = files(&folder);
    let walk = Walk::load(PRODUCT, 16);
    let seen: RefCell<HashSet<PathBuf>> = RefCell::default();
    walk.check_until(|| {
        // A temporary file goes in any case.
        let is_entry = |it: &PathBuf| it.extension().is_none_or(|of| of != "tmp") && !known.contains(it);
        seen.borrow_mut().extend(files(&folder).into_iter().filter(is_entry));
        seen.borrow().iter().any(|it| !it.exists())
    });
    let _ = std::fs::remove_dir_all(&folder);
}

struct Walk {
    function: hipFunction_t,
    table: *mut c_void,
    out: *mut c_void,
    wanted: Vec<u32>,
}

impl Walk {
    fn load(end: &str, more: u32) -> Walk {
        let text = CString::new(text(end)).unwrap();
        let (mut module, mut function) = (null_mut(), null_mut());
        // SAFETY: PTX text that ends with a NUL.
        unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
        hipModuleGetFunction(Out::from(&mut function), module, c"walk").unwrap();
        let (mut table, mut out) = (null_mut::<c_void>(), null_mut::<c_void>());
        hipMalloc(Out::from(&mut table), 256 * 4).unwrap();
        hipMalloc(Out::from(&mut out), THREADS * 4).unwrap();
        let mut words: Vec<u32> = (0..256).map(word).collect();
        hipMemcpyHtoD(table, words.as_mut_ptr().cast(), 256 * 4).unwrap();
        let wanted = (0..THREADS).map(|thread| expected(thread).wrapping_add(more)).collect();
        Walk { function, table, out, wanted }
    }

    fn check(&self) {
        let &Walk { function, mut table, mut out, ref wanted } = self;
        hipMemset(out, 0xff, THREADS * 4).unwrap();
        let mut arguments: [*mut c_void; 2] = [(&raw mut table).cast(), (&raw mut out).cast()];
        let grid = (THREADS / 256) as u32;
        let at = arguments.as_mut_ptr();
        hipModuleLaunchKernel(function, grid, 1, 1, 256, 1, 1, 0, null_mut(), at, null_mut()).unwrap();
        let mut found = vec![0u32; THREADS];
        hipMemcpyDtoH(found.as_mut_ptr().cast(), out, THREADS * 4).unwrap();
        assert!(found == *wanted);
    }

    /// Until better code has come, and 200 launches more.
    fn check_until(&self, has_come: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(300);
        self.check();
        while !has_come() {
            assert!(Instant::now() < until, "no better code came");
            self.check();
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..200 {
            self.check();
        }
    }
}
