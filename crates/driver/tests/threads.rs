//! Many threads at once.

mod null;

use driver::api::{context, copy, memory, memset, stream};

/// Threads share one context, its stream and its kernel; each has memory of its own.
#[test]
fn threads_that_share_everything_lose_nothing() {
    null::start();
    let mut primary: cuda_abi::CUcontext = core::ptr::null_mut();
    driver::api::device::cuDevicePrimaryCtxRetain((&mut primary).into(), 1).unwrap();
    let primary = primary.addr();
    let threads: Vec<_> = (0..8u8)
        .map(|number| {
            std::thread::spawn(move || {
                context::cuCtxSetCurrent(core::ptr::without_provenance_mut(primary)).unwrap();
                for round in 0..200u8 {
                    let mut dptr = 0;
                    memory::cuMemAlloc_v2((&mut dptr).into(), 128).unwrap();
                    let mut own: cuda_abi::CUstream = core::ptr::null_mut();
                    stream::cuStreamCreate((&mut own).into(), 0).unwrap();
                    memset::cuMemsetD8Async(dptr, number ^ round, 128, own).unwrap();
                    let mut host = [0u8; 128];
                    copy::cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), dptr, 128, own).unwrap();
                    stream::cuStreamSynchronize(own).unwrap();
                    assert_eq!(host, [number ^ round; 128]);
                    stream::cuStreamDestroy_v2(own).unwrap();
                    memory::cuMemFree_v2(dptr).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    driver::api::device::cuDevicePrimaryCtxRelease_v2(1).unwrap();
}
