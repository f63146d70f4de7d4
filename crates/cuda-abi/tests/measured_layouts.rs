//! The sizes that NVIDIA's own runtimes were seen to write (facts/abi.md §3), against the types of each major.
//! The generated asserts compare the types with the headers; this compares the headers with the measurements.

use core::mem::{offset_of, size_of};

use cuda_abi::runtime::{self, v11, v12, v13};

#[test]
fn device_properties_differ_in_every_major() {
    assert_eq!(size_of::<v11::cudaDeviceProp>(), 728);
    assert_eq!(size_of::<v12::cudaDeviceProp>(), 1032);
    assert_eq!(size_of::<v13::cudaDeviceProp>(), 1008);
    assert_ne!(
        offset_of!(v12::cudaDeviceProp, unifiedAddressing),
        offset_of!(v13::cudaDeviceProp, unifiedAddressing)
    );
}

#[test]
fn function_attributes_grew_after_11() {
    assert_eq!(size_of::<v11::cudaFuncAttributes>(), 56);
    assert_eq!(size_of::<v12::cudaFuncAttributes>(), 144);
    assert_eq!(size_of::<v13::cudaFuncAttributes>(), 144);
}

#[test]
fn texture_descriptions_grew_after_11() {
    assert_eq!(size_of::<v11::cudaTextureDesc>(), 68);
    assert_eq!(size_of::<v12::cudaTextureDesc>(), 72);
}

#[test]
fn these_grew_in_13() {
    for (before, after, was, is) in [
        (size_of::<v12::cudaPointerAttributes>(), size_of::<v13::cudaPointerAttributes>(), 24, 88),
        (size_of::<v12::cudaResourceDesc>(), size_of::<v13::cudaResourceDesc>(), 64, 144),
        (size_of::<v12::cudaResourceViewDesc>(), size_of::<v13::cudaResourceViewDesc>(), 48, 112),
        (
            size_of::<v12::cudaExternalMemoryHandleDesc>(),
            size_of::<v13::cudaExternalMemoryHandleDesc>(),
            40,
            104,
        ),
        (
            size_of::<v12::cudaExternalMemoryBufferDesc>(),
            size_of::<v13::cudaExternalMemoryBufferDesc>(),
            24,
            88,
        ),
        (
            size_of::<v12::cudaExternalMemoryMipmappedArrayDesc>(),
            size_of::<v13::cudaExternalMemoryMipmappedArrayDesc>(),
            64,
            128,
        ),
        (
            size_of::<v12::cudaExternalSemaphoreHandleDesc>(),
            size_of::<v13::cudaExternalSemaphoreHandleDesc>(),
            32,
            96,
        ),
    ] {
        assert_eq!((before, after), (was, is));
    }
}

#[test]
fn these_are_one_type_for_all() {
    assert_eq!(size_of::<runtime::dim3>(), 12);
    assert_eq!(size_of::<runtime::cudaMemcpy3DParms>(), 160);
    assert_eq!(size_of::<runtime::cudaChannelFormatDesc>(), 20);
    assert_eq!(size_of::<runtime::cudaMemsetParams>(), 40);
    assert_eq!(size_of::<v13::cudaMemLocation>(), 8);
    assert_eq!(size_of::<v13::cudaGraphNodeParams>(), 256);
    assert_eq!(size_of::<v12::cudaMemPoolProps>(), 88);
    assert_eq!(size_of::<v13::cudaLaunchAttributeValue>(), 64);
    assert_eq!(size_of::<v12::cudaLaunchConfig_t>(), 56);
}

/// A runtime stream is a driver stream; no cast stands between the two.
#[test]
fn handles_are_shared_with_the_driver() {
    let stream: cuda_abi::CUstream = core::ptr::null_mut();
    let same: v12::cudaStream_t = stream;
    let event: cuda_abi::CUevent = core::ptr::null_mut();
    let same_event: v11::cudaEvent_t = event;
    assert!(same.is_null() && same_event.is_null());
}
