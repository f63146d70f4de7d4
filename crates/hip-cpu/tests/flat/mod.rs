//! A module of kernels that fill words by the number of their thread, and how many of them are compiled.

use std::ffi::{CStr, CString, c_void};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use border::Out;
use hip_cpu::api::*;
use hip_sys::{hipFunction_t, hipModule_t};

pub const N: usize = 3 << 10;

/// `long` and `short` are for blocks of any shape, `tall` asks for the second coordinate, `fixed` for blocks of 96.
fn text() -> String {
    let mut text = String::from(".version 8.0\n.target sm_80\n.address_size 64\n");
    for (name, directive, n_steps, tid) in
        [("long", "", 80, "x"), ("short", "", 2, "x"), ("tall", "", 2, "y"), ("fixed", ".reqntid 96", 2, "x")]
    {
        let _ = write!(
            text,
            ".visible .entry {name}(.param .u64 out) {directive}\n{{\n.reg .b32 %t, %b, %n, %i, %x;\n\
             .reg .b64 %out, %at;\nld.param.u64 %out, [out];\nmov.u32 %t, %tid.{tid};\nmov.u32 %b, %ctaid.x;\n\
             mov.u32 %n, %ntid.{tid};\nmad.lo.u32 %i, %b, %n, %t;\nmul.wide.u32 %at, %i, 4;\n\
             add.u64 %at, %at, %out;\nmov.u32 %x, %i;\n{}st.global.u32 [%at], %x;\nret;\n}}\n",
            "mad.lo.u32 %x, %x, 1664525, 1013904223;\nxor.b32 %x, %x, %i;\nshr.u32 %t, %x, 7;\n\
             add.u32 %x, %x, %t;\n"
                .repeat(n_steps)
        );
    }
    text
}

fn expected(i: u32, n_steps: usize) -> u32 {
    (0..n_steps).fold(i, |x, _| {
        let x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) ^ i;
        x.wrapping_add(x >> 7)
    })
}

fn n_files(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries.flatten().map(|it| if it.path().is_dir() { n_files(&it.path()) } else { 1 }).sum()
}

pub struct Loaded {
    folder: PathBuf,
    module: hipModule_t,
    out: *mut c_void,
}

impl Loaded {
    /// # Safety
    /// Nobody reads the environment before.
    pub unsafe fn with_a_cache_of_its_own(name: &str) -> Loaded {
        let folder = std::env::temp_dir().join(format!("cudaway-{name}-test-{}", std::process::id()));
        // SAFETY: the caller's promise.
        unsafe {
            std::env::set_var("CUDAWAY_CACHE_DIR", &folder);
            // What the cache has is counted: nothing comes later.
            std::env::set_var("CUDAWAY_CPU_TIER", "best");
        }
        let text = CString::new(text()).unwrap();
        let (mut module, mut out) = (null_mut(), null_mut::<c_void>());
        // SAFETY: PTX text that ends with a NUL.
        unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
        hipMalloc(Out::from(&mut out), N * 4).unwrap();
        Loaded { folder, module, out }
    }

    /// Facts and objects that the cache has.
    pub fn n_cached(&self) -> usize {
        n_files(&self.folder)
    }

    pub fn function(&self, name: &CStr) -> hipFunction_t {
        let mut function = null_mut();
        hipModuleGetFunction(Out::from(&mut function), self.module, name).unwrap();
        function
    }

    /// Fills all words with blocks of this shape, and looks at them.
    pub fn fill(&mut self, name: &CStr, n_steps: usize, [x, y, z]: [u32; 3]) {
        let function = self.function(name);
        hipMemset(self.out, 0xff, N * 4).unwrap();
        let mut arguments: [*mut c_void; 1] = [(&raw mut self.out).cast()];
        let (grid, at) = (N as u32 / (x * y * z), arguments.as_mut_ptr());
        hipModuleLaunchKernel(function, grid, 1, 1, x, y, z, 0, null_mut(), at, null_mut()).unwrap();
        let mut found = vec![0u32; N];
        hipMemcpyDtoH(found.as_mut_ptr().cast(), self.out, N * 4).unwrap();
        let wanted: Vec<u32> = (0..N as u32).map(|i| expected(i, n_steps)).collect();
        assert!(found == wanted, "{name:?} in blocks of {x} × {y} × {z}");
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
