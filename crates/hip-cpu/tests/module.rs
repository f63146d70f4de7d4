//! Modules whose kernels are lowered when they are asked for: what they share, what fails, what the cache saves.

mod many;

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Once;

use border::Out;
use hip_cpu::api::*;
use hip_cpu::error::Result;
use hip_sys::*;

/// A cache of this process's own: what an earlier run left would hide what is tested.
fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/hip-cpu-module");
        let _ = std::fs::remove_dir_all(folder);
        // SAFETY: nobody reads the environment before the first call.
        unsafe { std::env::set_var("CUDAWAY_CACHE_DIR", folder) };
    });
}

fn load(text: &str) -> Result<hipModule_t> {
    begin();
    let text = CString::new(text).unwrap();
    let mut module = null_mut();
    // SAFETY: PTX text that ends with a NUL.
    unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }?;
    Ok(module)
}

fn function(module: hipModule_t, name: &str) -> Result<hipFunction_t> {
    let name = CString::new(name).unwrap();
    let mut function = null_mut();
    hipModuleGetFunction(Out::from(&mut function), module, &name)?;
    Ok(function)
}

/// One thread of `name` with the address of a word as first parameter and 3 as second; the word.
fn run(module: hipModule_t, name: &str) -> u32 {
    let f = function(module, name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let (mut memory, mut three, mut word) = (null_mut::<c_void>(), 3u32, 0u32);
    hipMalloc(Out::from(&mut memory), 4).unwrap();
    hipMemset(memory, 0, 4).unwrap();
    let mut arguments: [*mut c_void; 2] = [(&raw mut memory).cast(), (&raw mut three).cast()];
    hipModuleLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, null_mut(), arguments.as_mut_ptr(), null_mut()).unwrap();
    hipDeviceSynchronize().unwrap();
    hipMemcpyDtoH((&raw mut word).cast(), memory, 4).unwrap();
    hipFree(memory).unwrap();
    word
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// What is known of a kernel says that it has tensor memory; the second time the cache says so.
#[test]
fn launches_have_tensor_memory() {
    let text = ".version 9.1\n.target sm_100a\n.address_size 64
.visible .entry tensors(.param .u64 out, .param .u32 n) {
  .shared .align 16 .b8 tile[16];
  .reg .b64 %rd<2>; .reg .b32 %r<5>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r4, [n];
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;
  ld.shared.u32 %r1, [tile];
  add.u32 %r2, %r4, 7;
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r1+31], {%r2};
  tcgen05.wait::st.sync.aligned;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r1+31];
  tcgen05.wait::ld.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
  st.global.u32 [%rd1], %r3;
  ret;
}
";
    for _ in 0..2 {
        let module = load(text).unwrap();
        assert_eq!(run(module, "tensors"), 10);
        hipModuleUnload(module).unwrap();
    }
}

#[test]
fn a_function_pointer_that_one_kernel_writes_another_calls() {
    let text = format!(
        "{HEAD}.global .u64 pointer;
.func (.reg .b32 r) plus(.reg .b32 a, .reg .b32 b) {{ add.u32 r, a, b; ret; }}
.func (.reg .b32 r) times(.reg .b32 a, .reg .b32 b) {{ mul.lo.u32 r, a, b; ret; }}
.global .u64 table[2] = {{plus, times}};
.visible .entry calls(.param .u64 out, .param .u32 n) {{
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.global.u64 %rd1, [pointer];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 5;
  P: .callprototype (.reg .b32 _) _ (.reg .b32 _, .reg .b32 _);
  call (%r3), %rd1, (%r1, %r2), P;
  ld.param.u64 %rd2, [out];
  st.global.u32 [%rd2], %r3;
  ret;
}}
.func (.reg .b32 r) minus(.reg .b32 a, .reg .b32 b) {{ sub.u32 r, a, b; ret; }}
.visible .entry takes_minus(.param .u64 out, .param .u32 n) {{
  .reg .b64 %rd<2>; mov.u64 %rd1, minus; st.global.u64 [pointer], %rd1; ret;
}}
.visible .entry takes_second(.param .u64 out, .param .u32 n) {{
  .reg .b64 %rd<2>; ld.global.u64 %rd1, [table+8]; st.global.u64 [pointer], %rd1; ret;
}}
"
    );
    for order in [["takes_minus", "takes_second"], ["takes_second", "takes_minus"]] {
        let module = load(&text).unwrap();
        for name in order {
            run(module, name);
            assert_eq!(run(module, "calls"), if name == "takes_minus" { 3u32.wrapping_sub(5) } else { 15 });
        }
        hipModuleUnload(module).unwrap();
    }
}

#[test]
fn a_variable_inside_a_function_is_one_for_all_kernels() {
    let text = format!(
        "{HEAD}.func (.reg .b32 r) count() {{
  .global .u32 calls = 40;
  {{ .const .u32 calls = 1; .reg .b32 %s; ld.const.u32 %s, [calls]; mov.b32 r, %s; }}
  .reg .b64 %rd<2>;
  mov.u64 %rd1, calls;
  atom.global.add.u32 r, [%rd1], r;
  ret;
}}
.visible .entry a(.param .u64 out, .param .u32 n) {{
  .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, [out];
  call (%r1), count, (); st.global.u32 [%rd1], %r1; ret;
}}
.visible .entry b(.param .u64 out, .param .u32 n) {{
  .global .u32 own = 1000; .reg .b64 %rd<2>; .reg .b32 %r<3>; ld.param.u64 %rd1, [out];
  call (%r1), count, (); ld.global.u32 %r2, [own]; add.u32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1; ret;
}}
"
    );
    let module = load(&text).unwrap();
    assert_eq!(["b", "a", "b", "a"].map(|name| run(module, name)), [1040, 41, 1042, 43]);
    // Another module has its own.
    assert_eq!(run(load(&text).unwrap(), "a"), 40);
}

#[test]
fn a_large_module_loads_with_a_broken_kernel_and_only_that_one_fails() {
    let mut text = many::text(300);
    text.push_str(".visible .entry broken(.param .u64 out, .param .u32 n) { frobnicate.u32 %r1; } // }\n");
    text.push_str(&many::text(301)[many::text(300).len()..]);
    let module = load(&text).unwrap();
    assert_eq!(function(module, "broken"), Err(hipErrorInvalidKernelFile));
    assert_eq!(function(module, "broken"), Err(hipErrorInvalidKernelFile), "the second time too");
    assert_eq!(function(module, "nothing"), Err(hipErrorNotFound));
    for n in [300, 0, 299] {
        assert_eq!(run(module, &format!("kernel_{n}")), n);
    }
    // What stands outside of bodies is read at once.
    text.push_str(".visible .entry k( { ret; }\n");
    assert_eq!(load(&text), Err(hipErrorInvalidKernelFile));
}

#[test]
fn threads_ask_for_kernels_of_one_module_at_once() {
    let module = load(&many::text(24)).unwrap() as usize;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                for n in 0..6 {
                    // Neighbours ask for the same kernels in other orders.
                    let n = (thread / 2 * 6 + (n * (thread % 2 * 2 + 1)) % 5 + n / 5 * 5) as u32 % 24;
                    assert_eq!(run(module as hipModule_t, &format!("kernel_{n}")), n);
                }
            });
        }
    });
}

#[test]
fn what_is_asked_of_a_function_is_the_same_from_the_cache() {
    let text = format!(
        "{HEAD}.func f() {{ .shared .align 256 .b8 far[3]; .reg .b32 %r; mov.u32 %r, far; st.shared.u32 [%r], 1; ret; }}
.visible .entry k(.param .u64 out, .param .u32 n) {{
  .shared .u64 near; .local .align 8 .b8 own[20]; .reg .b64 %rd<3>; .reg .b32 %r<2>;
  mov.u64 %rd1, own; ld.param.u64 %rd2, [out]; st.local.u32 [%rd1+4], 77; ld.local.u32 %r1, [%rd1+4];
  st.shared.u32 [near], %r1; st.global.u32 [%rd2], %r1; call f; ret;
}}
"
    );
    let attribute = |f, what| {
        let mut value = -1;
        hipFuncGetAttribute(Out::from(&mut value), what, f).unwrap();
        value
    };
    let told = || {
        let module = load(&text).unwrap();
        let f = function(module, "k").unwrap();
        let shared = attribute(f, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
        (shared, attribute(f, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), run(module, "k"))
    };
    let first = told();
    assert!(first.0 >= 11 && first.1 >= 20, "{first:?}");
    assert_eq!(first.2, 77);
    assert_eq!(told(), first);
}
