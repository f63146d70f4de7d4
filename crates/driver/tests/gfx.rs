//! AMD GPUs: what HIP is handed. The provider in this process records code objects and launches; the compiler is Debian's real
//! comgr 2.4, which knows the first of its two devices and not the second.

mod null;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use comgr::CodeObject;
use cuda_abi::*;
use driver::Error;
use driver::api::{context, copy, device, execution, init, memory, module, texture};
use hip_sys::*;

const PTX: &CStr = c"
.version 8.0
.target sm_80
.address_size 64

.visible .global .align 4 .u32 counter = 41;
.visible .const .align 4 .u32 factors[2] = {3, 5};
.shared .align 4 .b8 tile[256];

.visible .entry scale(.param .u64 out, .param .u8 small, .param .u32 n)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .pred %p;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    mov.u64 %rd5, tile;
    add.u64 %rd6, %rd5, %rd2;
    st.shared.u32 [%rd6], %r2;
    ld.const.u32 %r3, [factors+4];
    ld.shared.u32 %r5, [%rd6];
    mul.lo.u32 %r4, %r5, %r3;
    mov.u64 %rd4, counter;
    ld.global.u32 %r6, [%rd4];
    add.u32 %r4, %r4, %r6;
    st.global.u32 [%rd3], %r4;
done:
    ret;
}

.visible .entry parts(.param .u64 out)
{
    .reg .b32 %r<8>;
    bar.sync 1, 64;
    ret;
}

.extern .func (.param .b64 p) malloc (.param .b64 n);
.visible .entry takes(.param .u64 out)
{
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    { .param .b64 n; .param .b64 p;
      st.param.b64 [n], %rd1; call.uni (p), malloc, (n); ld.param.b64 %rd2, [p]; }
    st.global.u64 [%rd1], %rd2;
    ret;
}

.visible .entry waits(.param .u64 out)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .pred %p;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p, %r1, 32;
    @%p bra again;
    mov.u32 %r2, 1;
    st.volatile.global.u32 [%rd1], %r2;
    ret;
again:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.eq.u32 %p, %r2, 0;
    @%p bra again;
    ret;
}

.visible .entry fetch(.param .u64 texture)
{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [texture];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd1, {%r1}];
    mov.u64 %rd2, counter;
    st.global.f32 [%rd2], %f0;
    ret;
}

.global .texref reference;
.visible .entry named()
{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [reference, {%r1}];
    mov.u64 %rd2, counter;
    st.global.f32 [%rd2], %f0;
    ret;
}

.visible .entry bad(.param .u64 p)
{
    frobnicate.u32 %r1, %r2;
    ret;
}
";

/// What `scale` takes by PTX's rules, and what stands behind it by docs/architecture.md.
const SEGMENT_BYTES: usize = 16 + 96;
const ARCHS: [&CStr; 2] = [c"gfx90a:sramecc+:xnack-", c"gfx1100"];

static LOADED: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static ASKED: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LAUNCHES: Mutex<Vec<Launch>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Launch {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared_bytes: c_uint,
    is_cooperative: bool,
    segment: Vec<u8>,
}

unsafe extern "C" fn properties(prop: *mut c_void, device: c_int) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    let prop = unsafe { &mut *prop.cast::<hipDeviceProp_tR0600>() };
    for (to, from) in prop.gcnArchName.iter_mut().zip(ARCHS[device as usize].to_bytes()) {
        *to = *from as c_char;
    }
    prop.totalGlobalMem = 1 << 30;
    hipSuccess
}

/// HIP is told no length: an ELF file's section headers are its end.
unsafe extern "C" fn load(module: *mut hipModule_t, image: *const c_void) -> hipError_t {
    let image = image.cast::<u8>();
    // SAFETY: an ELF header has 64 bytes.
    let header = unsafe { core::slice::from_raw_parts(image, 64) };
    if !header.starts_with(b"\x7fELF") {
        return hipErrorInvalidImage;
    }
    let number =
        |at: usize, n: usize| header[at..at + n].iter().rev().fold(0, |all, &b| all << 8 | usize::from(b));
    let len = number(40, 8) + number(58, 2) * number(60, 2);
    // SAFETY: so long is the file.
    let bytes = unsafe { core::slice::from_raw_parts(image, len) }.to_vec();
    let mut loaded = LOADED.lock().unwrap();
    loaded.push(bytes);
    // SAFETY: a writable handle.
    unsafe { *module = core::ptr::without_provenance_mut(loaded.len()) };
    hipSuccess
}

unsafe extern "C" fn unload(module: hipModule_t) -> hipError_t {
    let mut loaded = LOADED.lock().unwrap();
    let object = &mut loaded[module.addr() - 1];
    if object.is_empty() {
        hipErrorInvalidHandle
    } else {
        {
            object.clear();
            hipSuccess
        }
    }
}

unsafe extern "C" fn get_function(
    function: *mut hipFunction_t,
    module: hipModule_t,
    name: *const c_char,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned();
    let object = CodeObject::read(LOADED.lock().unwrap()[module.addr() - 1].clone()).unwrap();
    if object.kernel(&name).is_none() {
        return hipErrorNotFound;
    }
    ASKED.lock().unwrap().push(name);
    // SAFETY: a writable handle.
    unsafe { *function = module.cast() };
    hipSuccess
}

unsafe extern "C" fn launch(
    _: hipFunction_t,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared_bytes: c_uint,
    _: hipStream_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    if !params.is_null() {
        return hipErrorInvalidValue;
    }
    // SAFETY: HIP's list: pointer, size, end.
    let extra = unsafe { &*extra.cast::<[*mut c_void; 5]>() };
    assert_eq!([extra[0].addr(), extra[2].addr(), extra[4].addr()], [1, 2, 3]);
    // SAFETY: the size belongs to the buffer.
    let segment = unsafe { core::slice::from_raw_parts(extra[1].cast::<u8>(), *extra[3].cast::<usize>()) };
    let (grid, block, segment) = ([gx, gy, gz], [bx, by, bz], segment.to_vec());
    LAUNCHES.lock().unwrap().push(Launch { grid, block, shared_bytes, is_cooperative: false, segment });
    hipSuccess
}

unsafe extern "C" fn launch_cooperative(
    _: hipFunction_t,
    gx: c_uint,
    gy: c_uint,
    gz: c_uint,
    bx: c_uint,
    by: c_uint,
    bz: c_uint,
    shared_bytes: c_uint,
    _: hipStream_t,
    params: *mut *mut c_void,
) -> hipError_t {
    // The metadata has one argument, of the whole segment.
    // SAFETY: one pointer, to so many bytes.
    let segment = unsafe { core::slice::from_raw_parts((*params).cast::<u8>(), SEGMENT_BYTES) };
    let (grid, block, segment) = ([gx, gy, gz], [bx, by, bz], segment.to_vec());
    // The workspace is there while the launch is queued.
    let workspace = word64(&segment, 16 + 16);
    // SAFETY: the memory that the driver allocated for it.
    let words = unsafe { *core::ptr::with_exposed_provenance::<[u32; 2]>(workspace as usize) };
    assert_eq!(words, [8, 0]);
    LAUNCHES.lock().unwrap().push(Launch { grid, block, shared_bytes, is_cooperative: true, segment });
    hipSuccess
}

unsafe extern "C" fn allocate_async(at: *mut *mut c_void, bytes: usize, _: hipStream_t) -> hipError_t {
    // SAFETY: a writable pointer.
    unsafe { *at = libc::malloc(bytes) };
    hipSuccess
}

unsafe extern "C" fn free_async(at: *mut c_void, _: hipStream_t) -> hipError_t {
    // SAFETY: from `allocate_async`.
    unsafe { libc::free(at) };
    hipSuccess
}

/// Words of an object that HIP fills: an image descriptor, its own, a sampler descriptor, and more of its own.
const OBJECT_WORDS: usize = 24;
static LIVE: AtomicUsize = AtomicUsize::new(0);
static TEXTURES: Mutex<Vec<HIP_TEXTURE_DESC>> = Mutex::new(Vec::new());

unsafe extern "C" fn create_texture(
    to: *mut hipTextureObject_t,
    _: *const HIP_RESOURCE_DESC,
    desc: *const HIP_TEXTURE_DESC,
    _: *const HIP_RESOURCE_VIEW_DESC,
) -> hipError_t {
    // SAFETY: the driver calls with what HIP asks for.
    TEXTURES.lock().unwrap().push(unsafe { *desc });
    // As HIP's: the first axis' mode for all (here: clamp), coordinates that count elements, a border of zeros.
    let mut words = [0x5555_5555u32; OBJECT_WORDS];
    (words[12], words[15]) = (0o222 | 1 << 15, 0);
    LIVE.fetch_add(1, Ordering::Relaxed);
    // SAFETY: a writable handle.
    unsafe { *to = Box::into_raw(Box::new(words)).cast() };
    hipSuccess
}

unsafe extern "C" fn destroy_texture(object: hipTextureObject_t) -> hipError_t {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: from `create_texture`.
    drop(unsafe { Box::from_raw(object.cast::<[u32; OBJECT_WORDS]>()) });
    hipSuccess
}

/// From any event to any other: 2.5 ms.
unsafe extern "C" fn elapsed(ms: *mut f32, _: hipEvent_t, _: hipEvent_t) -> hipError_t {
    // SAFETY: the driver gives room for a float.
    unsafe { ms.write(2.5) };
    hipSuccess
}

fn lookup(name: &CStr) -> *mut c_void {
    match name.to_str().unwrap() {
        "hipGetDevicePropertiesR0600" => properties as *mut c_void,
        "hipModuleLoadData" => load as *mut c_void,
        "hipModuleUnload" => unload as *mut c_void,
        "hipModuleGetFunction" => get_function as *mut c_void,
        "hipModuleLaunchKernel" => launch as *mut c_void,
        "hipModuleLaunchCooperativeKernel" => launch_cooperative as *mut c_void,
        "hipTexObjectCreate" => create_texture as *mut c_void,
        "hipTexObjectDestroy" => destroy_texture as *mut c_void,
        "hipMallocAsync" => allocate_async as *mut c_void,
        "hipFreeAsync" => free_async as *mut c_void,
        // Variables are in the driver's block, not in code objects.
        "hipEventElapsedTime" => elapsed as *mut c_void,
        "hipModuleGetGlobal" => core::ptr::null_mut(),
        _ => null::lookup(name),
    }
}

/// The helper as `cargo xtask build` laid it out, else as cargo built it.
fn helper() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = root.join("target/cudaway/lib/cudaway-comgr");
    let own = std::env::current_exe().unwrap();
    let built = own.ancestors().nth(2).unwrap().join("cudaway-comgr");
    let found = [shipped, built].into_iter().find(|path| path.exists());
    found.expect("cargo xtask build --only cudaway-comgr, or cargo build -p comgr")
}

fn start() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let folder = std::env::temp_dir().join(format!("cudaway-gfx-{}", std::process::id()));
        // What a variable names is not started where others may write, and the checkout may lie there.
        let own_helper = folder.join("cudaway-comgr");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::copy(helper(), &own_helper).unwrap();
        // SAFETY: nothing else runs yet that reads the environment.
        unsafe {
            std::env::set_var("CUDAWAY_COMGR_HELPER", own_helper);
            std::env::set_var("CUDAWAY_GFX_COMPILER", "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2");
            std::env::set_var("CUDAWAY_CACHE_DIR", folder);
            std::env::set_var("CUDAWAY_TRACE", std::env::temp_dir().join("cudaway-gfx-trace"));
        }
        // SAFETY: every function above has its name's HIP signature.
        let hip = unsafe { Hip::from_lookup(lookup) };
        driver::process::choose(Provider::from_table(hip, "recorder"), true).unwrap();
        init::cuInit(0).unwrap();
    });
}

struct Scope(CUcontext);

fn on_device(device: CUdevice) -> Scope {
    start();
    let mut handle: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut handle).into(), 0, device).unwrap();
    Scope(handle)
}

impl Drop for Scope {
    fn drop(&mut self) {
        context::cuCtxDestroy_v2(self.0).unwrap();
    }
}

fn loaded() -> CUmodule {
    let mut handle: CUmodule = core::ptr::null_mut();
    // SAFETY: an image, which lives as long as the test.
    unsafe { module::cuModuleLoadData((&mut handle).into(), PTX.as_ptr().cast()) }.unwrap();
    handle
}

fn function(of: CUmodule, name: &CStr) -> Result<CUfunction, Error> {
    let mut handle: CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut handle).into(), of, name).map(|()| handle)
}

fn global(of: CUmodule, name: &CStr) -> (CUdeviceptr, usize) {
    let (mut at, mut bytes) = (0, 0);
    module::cuModuleGetGlobal_v2(Some(&mut at).into(), Some(&mut bytes).into(), of, name).unwrap();
    (at, bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn word64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// One test, because the recorder is the process's.
#[test]
fn hip_gets_code_objects_and_kernarg_segments() {
    let scope = on_device(0);
    let handle = loaded();
    assert!(LOADED.lock().unwrap().is_empty(), "a load compiles nothing");

    // Variables are there before any kernel is.
    let (counter, bytes) = global(handle, c"counter");
    assert_eq!(bytes, 4);
    let mut value = 0u32;
    memory_copy(&mut value, counter);
    assert_eq!(value, 41);
    let (factors, bytes) = global(handle, c"factors");
    assert_eq!(bytes, 8);
    let mut values = [0u32; 2];
    memory_copy(&mut values, factors);
    assert_eq!(values, [3, 5]);

    // A bad kernel fails alone.
    assert_eq!(function(handle, c"bad"), Err(Error::InvalidPtx));
    let scale = function(handle, c"scale").unwrap();
    assert_eq!(function(handle, c"scale").unwrap(), scale);
    assert_eq!(*ASKED.lock().unwrap(), ["scale"]);
    let object = CodeObject::read(LOADED.lock().unwrap()[0].clone()).unwrap();
    assert_eq!(object.target, "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-");
    assert_eq!(object.kernels.len(), 1);
    let kernel = object.kernel("scale").unwrap();
    assert_eq!(kernel.kernarg_bytes as usize, SEGMENT_BYTES);
    let args: Vec<_> = kernel.args.iter().map(|it| (it.offset, it.bytes as usize, &*it.kind)).collect();
    assert_eq!(args, [(0, SEGMENT_BYTES, "by_value")]);
    assert_eq!((kernel.wave, kernel.scratch_bytes), (64, 0));

    let attribute = |number| {
        let mut value = -1;
        module::cuFuncGetAttribute((&mut value).into(), number, scale).unwrap();
        value.unsigned_abs()
    };
    assert_eq!(attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS), kernel.vgprs);
    assert_eq!(attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 256);
    assert_eq!(attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES), 0);
    assert_eq!(attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 8);

    // Parameters come as a list or packed; HIP gets the same segment.
    let (mut out, mut small, mut n) = (0x1234_5678_9abc_u64, 7u8, 100u32);
    let mut list: [*mut c_void; 3] = [(&raw mut out).cast(), (&raw mut small).cast(), (&raw mut n).cast()];
    let stream: CUstream = core::ptr::null_mut();
    let none = core::ptr::null_mut();
    // SAFETY: the parameters are the kernel's, or none.
    unsafe { execution::cuLaunchKernel(scale, 2, 3, 4, 64, 2, 1, 512, stream, list.as_mut_ptr(), none) }
        .unwrap();
    let mut packed = [0u8; 16];
    packed[..8].copy_from_slice(&out.to_le_bytes());
    packed[8] = small;
    packed[12..].copy_from_slice(&n.to_le_bytes());
    let mut len = packed.len();
    let mut extra = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        packed.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut len).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    // SAFETY: the parameters are the kernel's, or none.
    unsafe { execution::cuLaunchKernel(scale, 2, 3, 4, 64, 2, 1, 512, stream, none, extra.as_mut_ptr()) }
        .unwrap();
    // SAFETY: the parameters are the kernel's, or none.
    unsafe { execution::cuLaunchCooperativeKernel(scale, 2, 3, 4, 64, 2, 1, 512, stream, list.as_mut_ptr()) }
        .unwrap();
    let mut grids = vec![];
    for (index, launch) in LAUNCHES.lock().unwrap().iter().enumerate() {
        let Launch { grid, block, shared_bytes, is_cooperative, segment } = launch;
        assert_eq!((*grid, *block, *shared_bytes), ([2, 3, 4], [64, 2, 1], 512));
        assert_eq!(*is_cooperative, index == 2);
        assert_eq!(segment.len(), SEGMENT_BYTES);
        assert_eq!(segment[..9], packed[..9]);
        assert_eq!(segment[12..16], packed[12..]);
        // The block behind the parameters, as docs/architecture.md has it.
        let base = word64(segment, 16);
        assert!(base <= factors.min(counter) && factors.max(counter) - base < 256);
        assert_eq!(word64(segment, 16 + 8), 0, "no services");
        assert_eq!(word64(segment, 16 + 72), 0, "no heap");
        assert_eq!(word64(segment, 16 + 80), 0, "no queue");
        assert_eq!(word64(segment, 16 + 16) != 0, *is_cooperative);
        grids.push(word64(segment, 16 + 24));
        // 25 MHz: 40 ns a tick.
        assert_eq!(word64(segment, 16 + 32), 40 << 32);
        let shape: Vec<u32> = (0..8).map(|index| word(segment, 16 + 40 + 4 * index)).collect();
        assert_eq!(shape, [2, 3, 4, 64, 2, 1, 512, 4]);
    }
    assert_eq!(grids.len(), 3);
    grids.dedup();
    assert_eq!(grids.len(), 3, "each grid has its number");

    warps_that_wait_have_waves_of_their_own(handle);
    a_cluster_has_one_block(handle);
    a_kernel_with_malloc_gets_the_contexts_heap(handle);
    kernels_get_hips_textures(handle);

    a_trace_has_what_hips_events_tell();

    // What was loaded goes with the module.
    module::cuModuleUnload(handle).unwrap();
    assert_eq!(LIVE.load(Ordering::Relaxed), 1);
    assert!(LOADED.lock().unwrap().iter().all(Vec::is_empty));
    drop(scope);

    // The second device's architecture is unknown to this comgr: that is not the kernel's fault.
    let _scope = on_device(1);
    let handle = loaded();
    assert_eq!(function(handle, c"scale"), Err(Error::JitCompilerNotFound));
    assert_eq!(function(handle, c"bad"), Err(Error::InvalidPtx));
    assert_eq!(global(handle, c"counter").1, 4);
    a_load_with_a_log_has_the_compilers_words();
}

/// A line for each launch: its kernel, its start after the device's first mark, and what lies between its events.
fn a_trace_has_what_hips_events_tell() {
    let file = std::env::temp_dir().join(format!("cudaway-gfx-trace.{}", std::process::id()));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), LAUNCHES.lock().unwrap().len(), "{text}");
    assert!(lines[0].starts_with(r#"{"kernel":"scale","plain":"scale","start":"#), "{text}");
    assert!(lines.iter().all(|line| line.ends_with(r#","ns":2500000}"#)), "{text}");
    let start = |line: &str| line.split("\"start\":").nth(1).unwrap().split(',').next().unwrap().to_owned();
    assert!(
        lines.iter().all(|line| start(line) == start(lines[0])),
        "all are 2.5 ms behind the first mark: {text}"
    );
}

/// A load that is asked for a log makes the kernels, as CUDA's does.
fn a_load_with_a_log_has_the_compilers_words() {
    let text =
        c".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry fine(.param .u64 p) { ret; }\n";
    let mut log = [0 as c_char; 4096];
    let mut names = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), core::ptr::without_provenance_mut(log.len())];
    let mut handle: CUmodule = core::ptr::null_mut();
    // SAFETY: what the arguments point to is this test's.
    let loaded = unsafe {
        module::cuModuleLoadDataEx(
            (&mut handle).into(),
            text.as_ptr().cast(),
            2,
            names.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    assert_eq!(loaded, Err(Error::JitCompilerNotFound));
    // SAFETY: the driver ended it with a zero.
    let said = unsafe { CStr::from_ptr(log.as_ptr()) }.to_str().unwrap();
    assert!(said.starts_with("fine: error: nothing here compiles for gfx1100 ("), "{said}");
    assert_eq!(values[1].addr(), said.len() + 1);
}

/// The device's waves have 64 lanes: a kernel whose warps may wait for each other is launched with twice the threads, as
/// far as a block has room for them.
fn warps_that_wait_have_waves_of_their_own(handle: CUmodule) {
    let launch = |f: CUfunction, block: [c_uint; 3]| {
        let mut out = 0u64;
        let mut list: [*mut c_void; 1] = [(&raw mut out).cast()];
        let (stream, none) = (core::ptr::null_mut(), core::ptr::null_mut());
        let [x, y, z] = block;
        // SAFETY: the parameters are the kernel's, or none.
        unsafe { execution::cuLaunchKernel(f, 1, 1, 1, x, y, z, 0, stream, list.as_mut_ptr(), none) }?;
        let launches = LAUNCHES.lock().unwrap();
        let last = launches.last().unwrap();
        // What the kernel is told is CUDA's block.
        let told = [0, 4, 8].map(|axis| word(&last.segment, 8 + 52 + axis));
        assert_eq!(told, block);
        Ok(last.block)
    };
    let most = |f: CUfunction| {
        let mut value = 0;
        let number = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        module::cuFuncGetAttribute((&mut value).into(), number, f).unwrap();
        value
    };
    let parts = function(handle, c"parts").unwrap();
    assert_eq!(most(parts), 512);
    assert_eq!(launch(parts, [40, 2, 1]), Ok([192, 1, 1]));
    assert_eq!(launch(parts, [512, 1, 1]), Ok([1024, 1, 1]));
    assert_eq!(launch(parts, [513, 1, 1]), Err(Error::LaunchOutOfResources));
    let waits = function(handle, c"waits").unwrap();
    assert_eq!(most(waits), 1024);
    let n_loaded = LOADED.lock().unwrap().len();
    assert_eq!(launch(waits, [64, 1, 1]), Ok([128, 1, 1]));
    assert_eq!(LOADED.lock().unwrap().len(), n_loaded);
    // Two warps in a wave are better than no launch: not every loop that could wait does.
    for _ in 0..2 {
        assert_eq!(launch(waits, [1024, 1, 1]), Ok([1024, 1, 1]));
        assert_eq!(LOADED.lock().unwrap().len(), n_loaded + 1);
    }
}

/// CUDA: a device without clusters answers so when it is asked, and the launch of one fails. One block is none.
fn a_cluster_has_one_block(handle: CUmodule) {
    let mut has = -1;
    let number = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
    device::cuDeviceGetAttribute((&mut has).into(), number, 0).unwrap();
    assert_eq!(has, 0);
    let scale = function(handle, c"scale").unwrap();
    let launch = |blocks: c_uint| {
        let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        let mut attribute = CUlaunchAttribute { id, ..Default::default() };
        attribute.value.clusterDim.x = blocks;
        attribute.value.clusterDim.y = 1;
        attribute.value.clusterDim.z = 1;
        let config = CUlaunchConfig {
            gridDimX: 4,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 64,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            hStream: core::ptr::null_mut(),
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let (mut out, mut small, mut n) = (0u64, 0u8, 0u32);
        let mut list: [*mut c_void; 3] =
            [(&raw mut out).cast(), (&raw mut small).cast(), (&raw mut n).cast()];
        // SAFETY: the parameters are the kernel's, or none.
        unsafe { execution::cuLaunchKernelEx(&config, scale, list.as_mut_ptr(), core::ptr::null_mut()) }
    };
    let launches = || LAUNCHES.lock().unwrap().len();
    let before = launches();
    assert_eq!(launch(2), Err(Error::NotSupported("clusters of blocks on AMD GPUs")));
    assert_eq!(launch(3), Err(Error::InvalidClusterSize));
    assert_eq!(launches(), before);
    assert_eq!(launch(1), Ok(()));
    assert_eq!(launches(), before + 1);
}

/// It is there from the first such launch on, as large as the limit says at that time.
fn a_kernel_with_malloc_gets_the_contexts_heap(handle: CUmodule) {
    let limit = CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE;
    let takes = function(handle, c"takes").unwrap();
    context::cuCtxSetLimit(limit, 3 << 20).unwrap();
    let heap = || {
        let mut out = 0u64;
        let mut list: [*mut c_void; 1] = [(&raw mut out).cast()];
        let (stream, none) = (core::ptr::null_mut(), core::ptr::null_mut());
        // SAFETY: the parameters are the kernel's, or none.
        unsafe { execution::cuLaunchKernel(takes, 1, 1, 1, 64, 1, 1, 0, stream, list.as_mut_ptr(), none) }
            .unwrap();
        word64(&LAUNCHES.lock().unwrap().last().unwrap().segment, 8 + 72)
    };
    let at = heap();
    // SAFETY: the recorder's memory is the process's, and the heap is longer.
    let begins = unsafe { *core::ptr::with_exposed_provenance::<[u64; 2]>(at as usize) };
    // How large it is, and where the first block will be: behind 128 lists and 64 locks.
    assert_eq!(begins, [3 << 20, 64 + 8 * 128 + 4 * 64]);
    assert_eq!(heap(), at);
    assert_eq!(context::cuCtxSetLimit(limit, 8 << 20), Err(Error::InvalidValue("limit: the heap is in use")));
}

/// The kernel gets HIP's handle, and the object has of the sampler what HIP is not told.
fn kernels_get_hips_textures(handle: CUmodule) {
    let (mut memory, mut alignment) = (0, 0);
    let number = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
    device::cuDeviceGetAttribute((&mut alignment).into(), number, 0).unwrap();
    let alignment = u64::from(alignment.unsigned_abs());
    memory::cuMemAlloc_v2((&mut memory).into(), 4096 + alignment as usize).unwrap();
    let at = memory.next_multiple_of(alignment);
    let mut resource = CUDA_RESOURCE_DESC {
        resType: CUresourcetype::CU_RESOURCE_TYPE_LINEAR,
        ..CUDA_RESOURCE_DESC::default()
    };
    resource.res.linear.devPtr = at;
    resource.res.linear.format = CUarray_format::CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = 4096;
    let made = |desc: &CUDA_TEXTURE_DESC| {
        let mut object = 0;
        texture::cuTexObjectCreate((&mut object).into(), &resource, desc, None).map(|()| {
            // SAFETY: `create_texture` made it.
            (object, unsafe { *core::ptr::with_exposed_provenance::<[u32; OBJECT_WORDS]>(object as usize) })
        })
    };
    let [wrap, clamp, border] = [
        CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
        CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
        CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
    ];
    // Coordinates that count elements are not repeated: all axes clamp, as HIP made it.
    let desc = CUDA_TEXTURE_DESC { addressMode: [clamp, wrap, wrap], maxAnisotropy: 4, ..Default::default() };
    let (object, words) = made(&desc).unwrap();
    assert_eq!(
        words[12..],
        [0o222 | 1 << 15, 0x5555_5555, 0x5555_5555, 0]
            .into_iter()
            .chain([0x5555_5555; 8])
            .collect::<Vec<_>>()
    );
    assert_eq!(TEXTURES.lock().unwrap().last().unwrap().maxAnisotropy, 0, "HIP has none");

    let fetch = function(handle, c"fetch").unwrap();
    let mut parameter = object;
    let mut list: [*mut c_void; 1] = [(&raw mut parameter).cast()];
    let (stream, none) = (core::ptr::null_mut(), core::ptr::null_mut());
    // SAFETY: the parameters are the kernel's, or none.
    unsafe { execution::cuLaunchKernel(fetch, 1, 1, 1, 32, 1, 1, 0, stream, list.as_mut_ptr(), none) }
        .unwrap();
    assert_eq!(word64(&LAUNCHES.lock().unwrap().last().unwrap().segment, 0), object);
    texture::cuTexObjectDestroy(object).unwrap();

    // By the ISA: 2 clamps, 0 wraps, 6 is the border; 2 is a white one, 1 an opaque black.
    let flags = CU_TRSF_NORMALIZED_COORDINATES;
    let desc = CUDA_TEXTURE_DESC { addressMode: [clamp, wrap, border], flags, ..Default::default() };
    let (object, words) = made(&desc).unwrap();
    assert_eq!((words[12], words[15]), (0o602 | 1 << 15, 0));
    texture::cuTexObjectDestroy(object).unwrap();
    let (object, words) = made(&CUDA_TEXTURE_DESC { borderColor: [1.0, 0.0, 0.0, 0.0], ..desc }).unwrap();
    assert_eq!((words[12], words[15]), (0o602 | 1 << 15, 2 << 30));
    texture::cuTexObjectDestroy(object).unwrap();
    let half = CUDA_TEXTURE_DESC { borderColor: [0.5; 4], ..desc };
    assert!(matches!(made(&half), Err(Error::NotSupported(_))));
    assert!(made(&CUDA_TEXTURE_DESC { addressMode: [clamp, wrap, wrap], ..half }).is_ok(), "nobody sees it");
    assert_eq!(LIVE.load(Ordering::Relaxed), 1, "the last");

    // A texture by its name: kernels find HIP's handle in the variable.
    let named = function(handle, c"named").unwrap();
    // SAFETY: the parameters are the kernel's, or none.
    unsafe { execution::cuLaunchKernel(named, 1, 1, 1, 32, 1, 1, 0, stream, none, none) }.unwrap();
    let mut reference: CUtexref = core::ptr::null_mut();
    texture::cuModuleGetTexRef((&mut reference).into(), handle, c"reference").unwrap();
    let mut missing: CUtexref = core::ptr::null_mut();
    let error = texture::cuModuleGetTexRef((&mut missing).into(), handle, c"counter");
    assert_eq!(error, Err(Error::NotFound));
    // SAFETY: the provider's memory is the process's; the variable has room for its handle there.
    let bound = || unsafe { reference.cast::<u64>().wrapping_add(1).read() };
    assert_eq!(bound(), 0);
    texture::cuTexRefSetFormat(reference, CUarray_format::CU_AD_FORMAT_FLOAT, 1).unwrap();
    let mut offset = 0;
    texture::cuTexRefSetAddress_v2(Some(&mut offset).into(), reference, at + 4, 400).unwrap();
    assert_eq!(offset, 4);
    let first = bound();
    assert_ne!(first, 0);
    texture::cuTexRefSetFilterMode(reference, CUfilter_mode::CU_TR_FILTER_MODE_LINEAR).unwrap();
    assert_eq!(TEXTURES.lock().unwrap().last().unwrap().filterMode, hipFilterModeLinear);
    assert_eq!(LIVE.load(Ordering::Relaxed), 2, "the object before is gone");
    assert_ne!(bound(), 0);
    memory::cuMemFree_v2(memory).unwrap();
}

fn memory_copy<T>(to: &mut T, from: CUdeviceptr) {
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(core::ptr::from_mut(to).cast(), from, size_of::<T>()) }.unwrap();
}
