//! What a ROCm release has otherwise than ROCm 6.4, after which the CPU device is made: read off the releases' own
//! libraries and headers (tools/data/README.md), not off `hip_sys::negotiate`, which is what this tests.

use core::ffi::{c_int, c_uint, c_void};
use std::sync::OnceLock;

use hip_sys::*;

use crate::argument::Argument;
use crate::{call, far, refuse};

/// `hipRuntimeGetVersion`'s answers: 5.2, 5.7 and 6.4 as measured, 7.2 after their pattern.
const RELEASES: [(&str, c_int); 4] =
    [("5.2", 50_221_153), ("5.7", 50_731_921), ("6.4", 60_443_484), ("7.2", 70_226_015)];

/// The release whose face this file has: `libhip_recorder-5.2.so`.
fn version() -> c_int {
    static VERSION: OnceLock<c_int> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let name = loader::place::file_name(version as fn() -> c_int as *const c_void).unwrap_or_default();
        let name = name.to_string_lossy();
        let release = RELEASES.iter().find(|(release, _)| name.contains(&format!("-{release}.so")));
        release.unwrap_or_else(|| refuse(&format!("no release of ROCm is known for {name}"))).1
    })
}

fn is_rocm_5() -> bool {
    version() < 60_000_000
}

/// Before ROCm 6: host 0, device 1, array 2, unified 3, managed 4.
const ROCM_5_MEMORY_TYPES: [hipMemoryType; 5] =
    [hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeArray, hipMemoryTypeUnified, hipMemoryTypeManaged];

/// This release's number as ROCm 6.4's. A number that the release does not have is the caller's fault.
fn memory_type(call: &str, number: hipMemoryType) -> hipMemoryType {
    let known: &[hipMemoryType] = if is_rocm_5() { &[0, 1, 2, 3, 4] } else { &ROCM_5_MEMORY_TYPES };
    if !known.contains(&number) {
        refuse(&format!("{call}: no hipMemoryType is {number} in this release"));
    }
    if is_rocm_5() { ROCM_5_MEMORY_TYPES[number as usize] } else { number }
}

/// ROCm 6.4's number as this release's.
fn memory_type_shown(kind: hipMemoryType) -> hipMemoryType {
    let number = ROCM_5_MEMORY_TYPES.iter().position(|&known| known == kind);
    number.filter(|_| is_rocm_5()).map_or(kind, |number| number as hipMemoryType)
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRuntimeGetVersion(runtimeVersion: *mut c_int) -> hipError_t {
    call("hipRuntimeGetVersion", &[("runtimeVersion", &runtimeVersion)], |_| {
        // SAFETY: the caller's promise.
        unsafe { runtimeVersion.write(version()) };
        Ok(())
    })
}

/// Bytes of `hipDeviceProp_t` before ROCm 6, which the plain name fills in every release.
const OLD_PROPERTIES_BYTES: usize = 792;

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipGetDeviceProperties(prop: *mut c_void, deviceId: c_int) -> hipError_t {
    call("hipGetDeviceProperties", &[("prop", &prop), ("deviceId", &deviceId)], |body| {
        let mut new = core::mem::MaybeUninit::<hipDeviceProp_tR0600>::zeroed();
        // SAFETY: `new` is the structure of ROCm 6.4.
        unsafe { body.hipGetDevicePropertiesR0600(new.as_mut_ptr().cast(), deviceId) }?;
        // SAFETY: the call filled it; it is plain data.
        let new = unsafe { new.assume_init() };
        let mut old = [0u8; OLD_PROPERTIES_BYTES];
        let mut put = |at: usize, bytes: &[u8]| old[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &new.name.map(|byte| byte as u8));
        put(256, &new.totalGlobalMem.to_ne_bytes());
        put(264, &new.sharedMemPerBlock.to_ne_bytes());
        put(276, &new.warpSize.to_ne_bytes());
        put(280, &new.maxThreadsPerBlock.to_ne_bytes());
        put(328, &new.major.to_ne_bytes());
        put(332, &new.minor.to_ne_bytes());
        put(336, &new.multiProcessorCount.to_ne_bytes());
        put(396, &new.gcnArchName.map(|byte| byte as u8));
        // SAFETY: the caller has room for the release's structure.
        unsafe { old.as_ptr().copy_to_nonoverlapping(prop.cast(), OLD_PROPERTIES_BYTES) };
        Ok(())
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipPointerGetAttributes(
    attributes: *mut hipPointerAttribute_t,
    ptr: *const c_void,
) -> hipError_t {
    call("hipPointerGetAttributes", &[("attributes", &attributes), ("ptr", &ptr)], |body| {
        // SAFETY: the caller's promise; 32 bytes in every release.
        unsafe {
            body.hipPointerGetAttributes(attributes, ptr)?;
            (*attributes).r#type = memory_type_shown((*attributes).r#type);
        }
        Ok(())
    })
}

/// Writes the memory type in this release's number, where that was asked for.
unsafe fn show_memory_type(attribute: hipPointer_attribute, data: *mut c_void) {
    if attribute == HIP_POINTER_ATTRIBUTE_MEMORY_TYPE && !data.is_null() {
        // SAFETY: this attribute's data is one number.
        unsafe {
            let number = data.cast::<hipMemoryType>();
            number.write(memory_type_shown(number.read()));
        }
    }
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipPointerGetAttribute(
    data: *mut c_void,
    attribute: hipPointer_attribute,
    ptr: hipDeviceptr_t,
) -> hipError_t {
    let arguments: [(&str, &dyn Argument); 3] = [("data", &data), ("attribute", &attribute), ("ptr", &ptr)];
    call("hipPointerGetAttribute", &arguments, |body| {
        // SAFETY: the caller's promise.
        unsafe {
            body.hipPointerGetAttribute(data, attribute, ptr)?;
            show_memory_type(attribute, data);
        }
        Ok(())
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDrvPointerGetAttributes(
    numAttributes: c_uint,
    attributes: *mut hipPointer_attribute,
    data: *mut *mut c_void,
    ptr: hipDeviceptr_t,
) -> hipError_t {
    let arguments: [(&str, &dyn Argument); 4] =
        [("numAttributes", &numAttributes), ("attributes", &attributes), ("data", &data), ("ptr", &ptr)];
    call("hipDrvPointerGetAttributes", &arguments, |body| {
        // SAFETY: the caller's promise: `numAttributes` of each.
        unsafe {
            body.hipDrvPointerGetAttributes(numAttributes, attributes, data, ptr)?;
            for index in 0..numAttributes as usize {
                show_memory_type(*attributes.add(index), *data.add(index));
            }
        }
        Ok(())
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemcpyParam2D(pCopy: *const hip_Memcpy2D) -> hipError_t {
    call("hipMemcpyParam2D", &[("pCopy", &pCopy)], |body| {
        // SAFETY: the caller's promise.
        unsafe { body.hipMemcpyParam2D(&flat("hipMemcpyParam2D", &*pCopy)) }
    })
}

/// # Safety
/// HIP's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipMemcpyParam2DAsync(
    pCopy: *const hip_Memcpy2D,
    stream: hipStream_t,
) -> hipError_t {
    call("hipMemcpyParam2DAsync", &[("pCopy", &pCopy), ("stream", &stream)], |body| {
        // SAFETY: the caller's promise.
        unsafe { body.hipMemcpyParam2DAsync(&flat("hipMemcpyParam2DAsync", &*pCopy), stream) }
    })
}

fn flat(call: &str, copy: &hip_Memcpy2D) -> hip_Memcpy2D {
    let mut copy = *copy;
    copy.srcMemoryType = memory_type(call, copy.srcMemoryType);
    copy.dstMemoryType = memory_type(call, copy.dstMemoryType);
    (copy.srcDevice, copy.dstDevice) = (far::near(copy.srcDevice), far::near(copy.dstDevice));
    copy
}

/// # Safety
/// HIP's; the descriptor is the release's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDrvMemcpy3D(pCopy: *const c_void) -> hipError_t {
    call("hipDrvMemcpy3D", &[("pCopy", &pCopy)], |body| {
        // SAFETY: the caller's promise.
        unsafe { body.hipDrvMemcpy3D(&solid("hipDrvMemcpy3D", pCopy)) }
    })
}

/// # Safety
/// HIP's; the descriptor is the release's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipDrvMemcpy3DAsync(pCopy: *const c_void, stream: hipStream_t) -> hipError_t {
    call("hipDrvMemcpy3DAsync", &[("pCopy", &pCopy), ("stream", &stream)], |body| {
        // SAFETY: the caller's promise.
        unsafe { body.hipDrvMemcpy3DAsync(&solid("hipDrvMemcpy3DAsync", pCopy), stream) }
    })
}

/// `HIP_MEMCPY3D` of the release, as ROCm 6.4's.
unsafe fn solid(call: &str, copy: *const c_void) -> HIP_MEMCPY3D {
    // SAFETY: the caller's promise.
    let mut copy = unsafe { if is_rocm_5() { old_solid(copy) } else { copy.cast::<HIP_MEMCPY3D>().read() } };
    copy.srcMemoryType = memory_type(call, copy.srcMemoryType);
    copy.dstMemoryType = memory_type(call, copy.dstMemoryType);
    copy
}

/// Before ROCm 6 the descriptor has 128 bytes: positions and sizes in 32 bits, pointers at their natural places.
unsafe fn old_solid(copy: *const c_void) -> HIP_MEMCPY3D {
    // SAFETY: the caller's descriptor has 128 bytes.
    let number = |at: usize| unsafe { copy.byte_add(at).cast::<u32>().read() } as usize;
    // SAFETY: as above.
    let pointer = |at: usize| unsafe { copy.byte_add(at).cast::<*mut c_void>().read() };
    // SAFETY: integers and pointers, for which zero is a value.
    let mut new = unsafe { core::mem::zeroed::<HIP_MEMCPY3D>() };
    (new.srcXInBytes, new.srcY, new.srcZ, new.srcLOD) = (number(0), number(4), number(8), number(12));
    new.srcMemoryType = number(16) as hipMemoryType;
    (new.srcHost, new.srcDevice, new.srcArray) = (pointer(24), pointer(32), pointer(40).cast());
    (new.srcPitch, new.srcHeight) = (number(48), number(52));
    (new.dstXInBytes, new.dstY, new.dstZ, new.dstLOD) = (number(56), number(60), number(64), number(68));
    new.dstMemoryType = number(72) as hipMemoryType;
    (new.dstHost, new.dstDevice, new.dstArray) = (pointer(80), pointer(88), pointer(96).cast());
    (new.dstPitch, new.dstHeight) = (number(104), number(108));
    (new.WidthInBytes, new.Height, new.Depth) = (number(112), number(116), number(120));
    new
}
