//! Arrays as the HIP calls make, describe and copy them.

use std::ffi::c_void;
use std::ptr::null_mut;

use border::Out;
use hip_cpu::api::*;
use hip_sys::*;

fn array(width: usize, height: usize, depth: usize, channels: u32, flags: u32) -> hipArray_t {
    let desc = HIP_ARRAY3D_DESCRIPTOR {
        Width: width,
        Height: height,
        Depth: depth,
        Format: HIP_AD_FORMAT_UNSIGNED_INT8,
        NumChannels: channels,
        Flags: flags,
    };
    let mut array = null_mut();
    hipArray3DCreate(Out::from(&mut array), &desc).unwrap();
    array
}

fn nothing_3d() -> HIP_MEMCPY3D {
    // SAFETY: integers and pointers.
    unsafe { std::mem::zeroed() }
}

fn upload(array: hipArray_t, bytes: &[u8], size: [usize; 3]) {
    let copy = HIP_MEMCPY3D {
        srcMemoryType: hipMemoryTypeHost,
        srcHost: bytes.as_ptr().cast(),
        dstMemoryType: hipMemoryTypeArray,
        dstArray: array,
        WidthInBytes: size[0],
        Height: size[1],
        Depth: size[2],
        ..nothing_3d()
    };
    hipDrvMemcpy3D(&copy).unwrap();
}

fn download(array: hipArray_t, at: [usize; 3], size: [usize; 3]) -> Result<Vec<u8>, hipError_t> {
    let mut bytes = vec![0u8; size.iter().product()];
    let copy = HIP_MEMCPY3D {
        srcMemoryType: hipMemoryTypeArray,
        srcArray: array,
        srcXInBytes: at[0],
        srcY: at[1],
        srcZ: at[2],
        dstMemoryType: hipMemoryTypeHost,
        dstHost: bytes.as_mut_ptr().cast(),
        WidthInBytes: size[0],
        Height: size[1],
        Depth: size[2],
        ..nothing_3d()
    };
    hipDrvMemcpy3D(&copy)?;
    Ok(bytes)
}

/// Byte `x` of row `y` of slice `z`, all different.
fn pattern(size: [usize; 3]) -> Vec<u8> {
    (0..size.iter().product()).map(|i: usize| (i * 7 + 3) as u8).collect()
}

#[test]
fn a_box_comes_back_as_it_went_in_and_so_does_a_part_of_it() {
    let size = [20, 3, 4];
    let array = array(10, 3, 4, 2, 0);
    let bytes = pattern(size);
    upload(array, &bytes, size);
    assert_eq!(download(array, [0; 3], size).unwrap(), bytes);
    let part = download(array, [6, 1, 2], [5, 2, 2]).unwrap();
    let expected: Vec<u8> = (2..4)
        .flat_map(|z| (1..3).flat_map(move |y| (6..11).map(move |x| (z * 3 + y) * 20 + x)))
        .map(|i| bytes[i])
        .collect();
    assert_eq!(part, expected);
    assert_eq!(download(array, [16, 0, 0], [5, 1, 1]).unwrap_err(), hipErrorInvalidValue);
    assert_eq!(download(array, [0, 0, 4], [5, 1, 1]).unwrap_err(), hipErrorInvalidValue);
    hipArrayDestroy(array).unwrap();
    assert_eq!(download(array, [0; 3], [1, 1, 1]).unwrap_err(), hipErrorInvalidHandle);
}

#[test]
fn rows_go_between_arrays_memory_and_device() {
    let (from, to) = (array(8, 4, 0, 1, 0), array(16, 4, 0, 1, 0));
    upload(from, &pattern([8, 4, 1]), [8, 4, 1]);
    hipMemcpy2DArrayToArray(to, 3, 1, from, 2, 1, 5, 2, hipMemcpyDeviceToDevice).unwrap();
    let mut device = null_mut();
    hipMalloc(Out::from(&mut device), 64).unwrap();
    hipMemcpy2DFromArray(device, 8, to, 3, 1, 5, 2, hipMemcpyDeviceToDevice).unwrap();
    let mut back = [0u8; 16];
    hipMemcpy(back.as_mut_ptr().cast(), device, 16, hipMemcpyDeviceToHost).unwrap();
    let wanted = pattern([8, 4, 1]);
    assert_eq!(back[..5], wanted[10..15]);
    assert_eq!(back[8..13], wanted[18..23]);
    let short = hipMemcpy2DToArray(to, 0, 0, device, 4, 5, 2, hipMemcpyDeviceToDevice);
    assert_eq!(short, Err(hipErrorInvalidPitchValue));
    hipFree(device).unwrap();
    hipFreeArray(from).unwrap();
    hipFreeArray(to).unwrap();
}

#[test]
fn a_run_of_bytes_goes_on_in_the_next_row() {
    let (a, b) = (array(5, 3, 0, 1, 0), array(7, 3, 0, 1, 0));
    let bytes = pattern([15, 1, 1]);
    hipMemcpyHtoA(a, 0, bytes.as_ptr().cast(), 15).unwrap();
    hipMemcpyAtoA(b, 2, a, 1, 13).unwrap();
    let mut back = [0u8; 13];
    hipMemcpyAtoH(back.as_mut_ptr().cast(), b, 2, 13).unwrap();
    assert_eq!(back, bytes[1..14]);
    assert_eq!(download(a, [0, 1, 0], [5, 1, 1]).unwrap(), bytes[5..10]);
    assert_eq!(hipMemcpyAtoH(back.as_mut_ptr().cast(), b, 10, 13), Err(hipErrorInvalidValue));
    hipArrayDestroy(a).unwrap();
    hipArrayDestroy(b).unwrap();
}

#[test]
fn layers_are_slices_and_descriptors_say_what_was_asked_for() {
    let layered = array(4, 0, 3, 4, hipArrayLayered);
    let bytes = pattern([16, 1, 3]);
    upload(layered, &bytes, [16, 1, 3]);
    assert_eq!(download(layered, [0, 0, 2], [16, 1, 1]).unwrap(), bytes[32..]);
    let mut desc = std::mem::MaybeUninit::<HIP_ARRAY3D_DESCRIPTOR>::uninit();
    // SAFETY: writable.
    let answer = unsafe { Out::new(desc.as_mut_ptr(), "desc") }.unwrap();
    hipArray3DGetDescriptor(answer, layered).unwrap();
    // SAFETY: the call succeeded.
    let desc = unsafe { desc.assume_init() };
    assert_eq!((desc.Width, desc.Height, desc.Depth, desc.Flags), (4, 0, 3, hipArrayLayered));
    assert_eq!((desc.Format, desc.NumChannels), (HIP_AD_FORMAT_UNSIGNED_INT8, 4));
    let mut extent = hipExtent { width: 0, height: 9, depth: 0 };
    hipArrayGetInfo(None.into(), (&mut extent).into(), None.into(), layered).unwrap();
    assert_eq!((extent.width, extent.height, extent.depth), (4, 0, 3));
    hipArrayDestroy(layered).unwrap();
    let garbage = 0x1234 as hipArray_t;
    assert_eq!(hipArrayDestroy(garbage), Err(hipErrorInvalidHandle));
    assert_eq!(hipFreeArray(null_mut()), Ok(()));
}

#[test]
fn asynchronous_copies_keep_their_order() {
    let array = array(64, 0, 0, 1, 0);
    let mut stream = null_mut();
    hipStreamCreate(Out::from(&mut stream)).unwrap();
    let mut pinned: *mut c_void = null_mut();
    hipHostMalloc(Out::from(&mut pinned), 128, 0).unwrap();
    // SAFETY: 128 bytes of our own.
    let bytes = unsafe { std::slice::from_raw_parts_mut(pinned.cast::<u8>(), 128) };
    bytes[..64].copy_from_slice(&pattern([64, 1, 1]));
    bytes[64..].fill(0);
    hipMemcpyHtoAAsync(array, 0, pinned, 64, stream).unwrap();
    hipMemcpyAtoHAsync(bytes[64..].as_mut_ptr().cast(), array, 0, 64, stream).unwrap();
    hipStreamSynchronize(stream).unwrap();
    assert_eq!(bytes[64..], pattern([64, 1, 1]));
    hipStreamDestroy(stream).unwrap();
    hipHostFree(pinned).unwrap();
    hipArrayDestroy(array).unwrap();
}
