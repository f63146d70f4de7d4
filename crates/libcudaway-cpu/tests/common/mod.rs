//! The library as a program sees it: opened by path, called through the HIP table.
#![allow(dead_code, reason = "each test file uses a part")]
// SAFETY of every block here: HIP's contract; out-pointers are to locals, sizes are those of what they point to.
#![allow(clippy::undocumented_unsafe_blocks, reason = "said once above")]

use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use hip_sys::*;

/// Cargo builds the shared object beside the test.
pub fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(1).unwrap().join("libcudaway_cpu.so")
}

pub fn hip() -> &'static Hip {
    static PROVIDER: OnceLock<Provider> = OnceLock::new();
    &PROVIDER.get_or_init(|| Provider::open(library().as_os_str()).unwrap()).hip
}

pub type Answer<T = ()> = Result<T, HipError>;

pub fn code<T>(answer: Answer<T>) -> c_int {
    answer.err().map_or(0, |error| error.code().0)
}

pub fn malloc(bytes: usize) -> *mut c_void {
    let mut p = std::ptr::null_mut();
    unsafe { hip().hipMalloc(&mut p, bytes) }.unwrap();
    p
}

pub fn pinned(bytes: usize) -> *mut c_void {
    let mut p = std::ptr::null_mut();
    unsafe { hip().hipHostMalloc(&mut p, bytes, 0) }.unwrap();
    p
}

pub fn upload<T: Copy>(values: &[T]) -> *mut c_void {
    let p = malloc(size_of_val(values));
    unsafe { hip().hipMemcpyHtoD(p, values.as_ptr().cast_mut().cast(), size_of_val(values)) }.unwrap();
    p
}

pub fn download<T: Copy + Default>(from: *mut c_void, n: usize) -> Vec<T> {
    let mut values = vec![T::default(); n];
    unsafe { hip().hipMemcpyDtoH(values.as_mut_ptr().cast(), from, n * size_of::<T>()) }.unwrap();
    values
}

pub fn module(ptx: &str) -> Answer<hipModule_t> {
    let text = CString::new(ptx).unwrap();
    let mut module = std::ptr::null_mut();
    unsafe { hip().hipModuleLoadData(&mut module, text.as_ptr().cast()) }?;
    Ok(module)
}

pub fn function(module: hipModule_t, name: &str) -> Answer<hipFunction_t> {
    let name = CString::new(name).unwrap();
    let mut function = std::ptr::null_mut();
    unsafe { hip().hipModuleGetFunction(&mut function, module, name.as_ptr()) }?;
    Ok(function)
}

pub fn stream(flags: u32) -> hipStream_t {
    let mut stream = std::ptr::null_mut();
    unsafe { hip().hipStreamCreateWithFlags(&mut stream, flags) }.unwrap();
    stream
}

pub fn event() -> hipEvent_t {
    let mut event = std::ptr::null_mut();
    unsafe { hip().hipEventCreate(&mut event) }.unwrap();
    event
}

/// Launches with arguments of any plain type.
#[macro_export]
macro_rules! launch {
    ($function:expr, $grid:expr, $block:expr, $stream:expr $(, $argument:expr)* $(,)?) => {{
        let mut arguments: Vec<*mut std::ffi::c_void> = vec![];
        $( let mut argument = $argument; arguments.push((&raw mut argument).cast()); )*
        let (function, grid, block, stream) = ($function, $grid, $block, $stream);
        #[allow(unused_unsafe, reason = "some callers are in an unsafe block")]
        unsafe {
            common::hip().hipModuleLaunchKernel(
                function, grid, 1, 1, block, 1, 1, 0, stream, arguments.as_mut_ptr(), std::ptr::null_mut(),
            )
        }
    }};
}

pub const VECTOR_ADD: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry vector_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<11>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.s32 %p, %r5, %r1;
    @%p bra DONE;
    cvta.to.global.u64 %rd4, %rd1;
    mul.wide.s32 %rd5, %r5, 4;
    add.s64 %rd6, %rd4, %rd5;
    cvta.to.global.u64 %rd7, %rd2;
    add.s64 %rd8, %rd7, %rd5;
    ld.global.f32 %f1, [%rd8];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f2, %f1;
    cvta.to.global.u64 %rd9, %rd3;
    add.s64 %rd10, %rd9, %rd5;
    st.global.f32 [%rd10], %f3;
DONE:
    ret;
}
";
