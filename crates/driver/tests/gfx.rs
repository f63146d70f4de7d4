//! AMD GPUs: what HIP is handed. The provider in this process records code objects and launches; the compiler is Debian's real
//! comgr 2.4, which knows the first of its two devices and not the second.

mod null;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::Mutex;

use comgr::CodeObject;
use cuda_abi::*;
use driver::Error;
use driver::api::{context, copy, execution, init, module};
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

.visible .entry bad(.param .u64 p)
{
    frobnicate.u32 %r1, %r2;
    ret;
}
";

/// What `scale` takes by PTX's rules, and what stands behind it by docs/architecture.md.
const SEGMENT_BYTES: usize = 16 + 72;
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

fn lookup(name: &CStr) -> *mut c_void {
    match name.to_str().unwrap() {
        "hipGetDevicePropertiesR0600" => properties as *mut c_void,
        "hipModuleLoadData" => load as *mut c_void,
        "hipModuleUnload" => unload as *mut c_void,
        "hipModuleGetFunction" => get_function as *mut c_void,
        "hipModuleLaunchKernel" => launch as *mut c_void,
        "hipModuleLaunchCooperativeKernel" => launch_cooperative as *mut c_void,
        "hipMallocAsync" => allocate_async as *mut c_void,
        "hipFreeAsync" => free_async as *mut c_void,
        // Variables are in the driver's block, not in code objects.
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
        // SAFETY: nothing else runs yet that reads the environment.
        unsafe {
            std::env::set_var("CUDAWAY_COMGR_HELPER", helper());
            std::env::set_var("CUDAWAY_GFX_COMPILER", "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2");
            std::env::set_var("CUDAWAY_CACHE_DIR", folder);
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
    module::cuModuleLoadData((&mut handle).into(), PTX.as_ptr().cast()).unwrap();
    handle
}

fn function(of: CUmodule, name: &CStr) -> Result<CUfunction, Error> {
    let mut handle: CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut handle).into(), of, name.as_ptr()).map(|()| handle)
}

fn global(of: CUmodule, name: &CStr) -> (CUdeviceptr, usize) {
    let (mut at, mut bytes) = (0, 0);
    module::cuModuleGetGlobal_v2(Some(&mut at).into(), Some(&mut bytes).into(), of, name.as_ptr()).unwrap();
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
    execution::cuLaunchKernel(scale, 2, 3, 4, 64, 2, 1, 512, stream, list.as_mut_ptr(), none).unwrap();
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
    execution::cuLaunchKernel(scale, 2, 3, 4, 64, 2, 1, 512, stream, none, extra.as_mut_ptr()).unwrap();
    execution::cuLaunchCooperativeKernel(scale, 2, 3, 4, 64, 2, 1, 512, stream, list.as_mut_ptr()).unwrap();
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

    // What was loaded goes with the module.
    module::cuModuleUnload(handle).unwrap();
    assert!(LOADED.lock().unwrap().iter().all(Vec::is_empty));
    drop(scope);

    // The second device's architecture is unknown to this comgr: that is not the kernel's fault.
    let _scope = on_device(1);
    let handle = loaded();
    assert_eq!(function(handle, c"scale"), Err(Error::JitCompilerNotFound));
    assert_eq!(function(handle, c"bad"), Err(Error::InvalidPtx));
    assert_eq!(global(handle, c"counter").1, 4);
}

fn memory_copy<T>(to: &mut T, from: CUdeviceptr) {
    copy::cuMemcpyDtoH_v2(core::ptr::from_mut(to).cast(), from, size_of::<T>()).unwrap();
}
