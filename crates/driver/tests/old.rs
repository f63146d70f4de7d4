//! Calls as they were before CUDA 3.2: 32-bit addresses and sizes, in contexts of that time only.

mod null;

use core::ffi::c_void;
use std::sync::{Mutex, MutexGuard};

use cuda_abi::*;
use driver::Error;
use driver::api::{context, memory, module, old, texture};

/// One test at a time: what one gives back of the low memory is the next one's.
fn turn() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A context that the calls of that time made, current until dropped.
struct OldContext(CUcontext);

fn old_context() -> OldContext {
    null::start();
    let mut handle: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate((&mut handle).into(), 0, 0).unwrap();
    OldContext(handle)
}

impl Drop for OldContext {
    fn drop(&mut self) {
        context::cuCtxDestroy_v2(self.0).unwrap();
    }
}

fn allocate(len_bytes: u32) -> Result<u32, Error> {
    let mut at = 0;
    old::cuMemAlloc((&mut at).into(), len_bytes).map(|()| at)
}

#[test]
fn memory_lies_where_32_bits_reach_and_can_be_copied_to_and_from() {
    let _turn = turn();
    let _context = old_context();
    let a = allocate(64).unwrap();
    let b = allocate(4096).unwrap();
    let words: Vec<u32> = (0..16).collect();
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { old::cuMemcpyHtoD(a, words.as_ptr().cast(), 64) }.unwrap();
    old::cuMemsetD8(b, 0xee, 4096).unwrap();
    old::cuMemcpyDtoD(b + 8, a, 64).unwrap();
    let mut back = [0u32; 18];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { old::cuMemcpyDtoH(back.as_mut_ptr().cast(), b, 72) }.unwrap();
    assert_eq!(back[..2], [0xeeee_eeee; 2]);
    assert_eq!(back[2..], words[..]);
    let (mut base, mut len_bytes) = (0, 0);
    old::cuMemGetAddressRange(Some(&mut base).into(), Some(&mut len_bytes).into(), b + 100).unwrap();
    assert_eq!((base, len_bytes), (b, 4096));
    old::cuMemFree(a).unwrap();
    assert_eq!(old::cuMemFree(a), Err(Error::InvalidValue("dptr")));
    assert_eq!(allocate(0), Err(Error::InvalidValue("bytesize")));
}

#[test]
fn a_context_that_ends_gives_its_low_memory_back() {
    let _turn = turn();
    let context = old_context();
    let at = allocate(1 << 20).unwrap();
    let page: *mut c_void = core::ptr::without_provenance_mut(at as usize);
    // SAFETY: only asks about the page: 0 when it is mapped.
    assert_eq!(unsafe { libc::msync(page, 4096, libc::MS_ASYNC) }, 0);
    drop(context);
    // SAFETY: as above.
    assert_eq!(unsafe { libc::msync(page, 4096, libc::MS_ASYNC) }, -1);
}

/// CUDA: contexts and calls of different API versions do not mix.
#[test]
fn a_context_of_today_refuses_calls_of_then() {
    let _turn = turn();
    null::start();
    let mut today: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut today).into(), 0, 0).unwrap();
    assert_eq!(allocate(64), Err(Error::InvalidContext));
    assert_eq!(old::cuMemsetD32(0, 0, 1), Err(Error::InvalidContext));
    let (mut free, mut total) = (0, 0);
    assert_eq!(old::cuMemGetInfo((&mut free).into(), (&mut total).into()), Err(Error::InvalidContext));
    context::cuCtxDestroy_v2(today).unwrap();
    assert_eq!(allocate(64), Err(Error::InvalidContext), "and so does having none");
}

#[test]
fn an_address_above_4_gib_is_an_error_and_never_cut_off() {
    let _turn = turn();
    let _context = old_context();
    let mut page_locked: *mut c_void = core::ptr::null_mut();
    memory::cuMemHostAlloc((&mut page_locked).into(), 16, 0).unwrap();
    assert!(page_locked.addr() > u32::MAX as usize, "the test needs one above");
    let mut at = 7u32;
    let answer = old::cuMemHostGetDevicePointer((&mut at).into(), page_locked, 0);
    assert_eq!((answer, at), (Err(Error::InvalidValue("dptr: above 4 GiB")), 7));
}

#[test]
fn copies_of_rows_take_the_old_structure() {
    let _turn = turn();
    let _context = old_context();
    let pitch = 256u32;
    let at = allocate(pitch * 3).unwrap();
    let source: Vec<u8> = (0..30).collect();
    let mut copy = CUDA_MEMCPY2D_v1 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.as_ptr().cast(),
        srcPitch: 10,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: at,
        dstPitch: pitch,
        WidthInBytes: 10,
        Height: 3,
        ..Default::default()
    };
    old::cuMemcpy2D(&copy).unwrap();
    let mut rows = [[0u8; 10]; 3];
    for (y, row) in (0..3).zip(&mut rows) {
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        unsafe { old::cuMemcpyDtoH(row.as_mut_ptr().cast(), at + y * pitch, 10) }.unwrap();
    }
    assert_eq!(rows.as_flattened(), source);
    copy.WidthInBytes = pitch + 1;
    assert_eq!(old::cuMemcpy2D(&copy).unwrap_err().result(), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn a_reference_that_belongs_to_no_module_keeps_its_settings_until_destroyed() {
    let _turn = turn();
    let _context = old_context();
    let mut reference: CUtexref = core::ptr::null_mut();
    texture::cuTexRefCreate((&mut reference).into()).unwrap();
    let at = allocate(1024).unwrap();
    let mut offset = 9;
    old::cuTexRefSetAddress(Some(&mut offset).into(), reference, at, 1024).unwrap();
    let mut bound = 0;
    old::cuTexRefGetAddress((&mut bound).into(), reference).unwrap();
    assert_eq!((bound, offset), (at, 0));
    texture::cuTexRefSetFlags(reference, 2).unwrap();
    let mut flags = 0;
    texture::cuTexRefGetFlags((&mut flags).into(), reference).unwrap();
    assert_eq!(flags, 2);

    let mut loaded: CUmodule = core::ptr::null_mut();
    // SAFETY: an image, which lives as long as the test.
    unsafe { module::cuModuleLoadData((&mut loaded).into(), null::PTX.as_ptr().cast()) }.unwrap();
    let mut kernel: CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut kernel).into(), loaded, c"good").unwrap();
    assert_eq!(old::cuParamSetTexRef(kernel, 0, reference), Err(Error::InvalidValue("texunit")));
    assert_eq!(old::cuParamSetTexRef(kernel, -1, reference), Ok(()));

    texture::cuTexRefDestroy(reference).unwrap();
    assert_eq!(texture::cuTexRefDestroy(reference), Err(Error::InvalidHandle("hTexRef")));
}
