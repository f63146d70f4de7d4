//! Before `cuInit`, and what still works then. One test: the state is the process's.

mod null;

use cuda_abi::CUresult;
use driver::api::{context, cudaway, device, entry_point, errors, init, memory};
use driver::{Error, entry};

#[test]
fn calls_before_cu_init_are_not_initialized() {
    let (mut count, mut dptr, mut version) = (0, 0, 0);
    let init_code = |answer: driver::Result| entry("test", || answer);
    let not_initialized = CUresult::CUDA_ERROR_NOT_INITIALIZED;
    assert_eq!(init_code(device::cuDeviceGetCount((&mut count).into())), not_initialized);
    assert_eq!(init_code(memory::cuMemAlloc_v2((&mut dptr).into(), 16)), not_initialized);
    assert_eq!(init_code(context::cuCtxSynchronize()), not_initialized);
    assert_eq!(init_code(context::cuCtxSetCurrent(core::ptr::null_mut())), not_initialized);

    // The version, error names and entry points need no initialization.
    init::cuDriverGetVersion((&mut version).into()).unwrap();
    assert_eq!(version, 13050);
    let mut text: *const core::ffi::c_char = core::ptr::null();
    errors::cuGetErrorName(CUresult::CUDA_ERROR_NO_DEVICE, (&mut text).into()).unwrap();
    // SAFETY: a constant of the driver's.
    assert_eq!(unsafe { core::ffi::CStr::from_ptr(text) }, c"CUDA_ERROR_NO_DEVICE");
    assert_eq!(
        errors::cuGetErrorString(CUresult(4711), (&mut text).into()),
        Err(Error::InvalidValue("error"))
    );
    assert!(text.is_null());
    let mut function = core::ptr::null_mut();
    let mut status = cuda_abi::CUdriverProcAddressQueryResult(9);
    let find = |name: &core::ffi::CStr, function: &mut _, status: &mut _, version, flags| {
        // SAFETY: a C string.
        unsafe {
            entry_point::cuGetProcAddress_v2(
                name.as_ptr(),
                Into::into(function),
                version,
                flags,
                Some(status).into(),
            )
        }
    };
    find(c"cuNothing", &mut function, &mut status, 13050, 0).unwrap();
    assert_eq!(status.0, 1);
    find(c"cuMemAlloc_v2", &mut function, &mut status, 13050, 0).unwrap();
    assert_eq!(status.0, 1, "names with a suffix are not found");
    find(c"cuLibraryLoadData", &mut function, &mut status, 11080, 0).unwrap();
    assert_eq!(status.0, 2);
    assert_eq!(find(c"cuInit", &mut function, &mut status, 13050, 16), Err(Error::InvalidValue("flags")));

    // Choosing a provider is possible up to here.
    null::choose();
    assert_eq!(init::cuInit(1), Err(Error::InvalidValue("Flags")));
    init::cuInit(0).unwrap();
    init::cuInit(0).unwrap();
    device::cuDeviceGetCount((&mut count).into()).unwrap();
    assert_eq!(count, null::N_DEVICES);
    // SAFETY: a C string.
    assert_eq!(unsafe { cudaway::forward(c"libc.so.6".as_ptr(), 0, 0) }, 0);
    // SAFETY: the answer lives as long as the process.
    let config = unsafe { &*cudaway::config_now() };
    assert_eq!(config.n_providers, 1);
    // SAFETY: as above.
    assert_eq!(unsafe { &*config.providers }.n_devices, null::N_DEVICES);
}
