//! What a forwarded driver call costs above the bare HIP call, over a provider that answers at once.

#[path = "../tests/null/mod.rs"]
mod null;

use core::ffi::c_void;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cuda_abi::CUcontext;
use driver::api::{context, copy, event, execution, memory, module, stream};
use driver::entry;

fn forward(criterion: &mut Criterion) {
    null::start();
    let hip = null::hip();
    let mut ctx: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut ctx).into(), 0, 0).unwrap();
    let mut loaded: cuda_abi::CUmodule = core::ptr::null_mut();
    module::cuModuleLoadData((&mut loaded).into(), null::PTX.as_ptr().cast()).unwrap();
    let mut function: cuda_abi::CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut function).into(), loaded, c"good".as_ptr()).unwrap();
    let mut own_stream: cuda_abi::CUstream = core::ptr::null_mut();
    stream::cuStreamCreate((&mut own_stream).into(), 1).unwrap();
    let mut own_event: cuda_abi::CUevent = core::ptr::null_mut();
    event::cuEventCreate((&mut own_event).into(), 2).unwrap();
    let mut dptr = 0;
    memory::cuMemAlloc_v2((&mut dptr).into(), 4096).unwrap();
    let host = [0u8; 8];
    let mut argument = dptr;
    let mut parameters = [(&raw mut argument).cast::<c_void>()];
    let none: *mut *mut c_void = core::ptr::null_mut();

    let mut launch = criterion.benchmark_group("launch");
    launch.bench_function("hipModuleLaunchKernel", |bencher| {
        // SAFETY: the null provider looks at nothing.
        bencher.iter(|| unsafe {
            black_box(hip.hipModuleLaunchKernel(
                none.cast(),
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                none.cast(),
                parameters.as_mut_ptr(),
                none,
            ))
        });
    });
    launch.bench_function("cuLaunchKernel", |bencher| {
        bencher.iter(|| {
            black_box(entry("cuLaunchKernel", || {
                execution::cuLaunchKernel(
                    function,
                    1,
                    1,
                    1,
                    32,
                    1,
                    1,
                    0,
                    own_stream,
                    parameters.as_mut_ptr(),
                    none,
                )
            }))
        });
    });
    launch.finish();

    let mut copies = criterion.benchmark_group("copy of 8 bytes");
    copies.bench_function("hipMemcpyAsync", |bencher| {
        let to = core::ptr::with_exposed_provenance_mut(dptr as usize);
        // SAFETY: both ranges are valid.
        bencher
            .iter(|| unsafe { black_box(hip.hipMemcpyAsync(to, host.as_ptr().cast(), 8, 1, none.cast())) });
    });
    copies.bench_function("cuMemcpyHtoDAsync_v2", |bencher| {
        bencher.iter(|| {
            black_box(entry("cuMemcpyHtoDAsync_v2", || {
                copy::cuMemcpyHtoDAsync_v2(dptr, host.as_ptr().cast(), 8, own_stream)
            }))
        });
    });
    copies.finish();

    let mut records = criterion.benchmark_group("event");
    records.bench_function("hipEventRecord", |bencher| {
        // SAFETY: the null provider looks at nothing.
        bencher.iter(|| unsafe { black_box(hip.hipEventRecord(none.cast(), none.cast())) });
    });
    records.bench_function("cuEventRecord", |bencher| {
        bencher.iter(|| black_box(entry("cuEventRecord", || event::cuEventRecord(own_event, own_stream))));
    });
    records.finish();

    let mut synchronize = criterion.benchmark_group("stream");
    synchronize.bench_function("hipStreamSynchronize", |bencher| {
        // SAFETY: the null provider looks at nothing.
        bencher.iter(|| unsafe { black_box(hip.hipStreamSynchronize(none.cast())) });
    });
    synchronize.bench_function("cuStreamSynchronize", |bencher| {
        bencher.iter(|| black_box(entry("cuStreamSynchronize", || stream::cuStreamSynchronize(own_stream))));
    });
    synchronize.finish();

    let mut allocate = criterion.benchmark_group("allocate and free 64 bytes");
    allocate.bench_function("hipMalloc, hipFree", |bencher| {
        bencher.iter(|| {
            let mut at = core::ptr::null_mut();
            // SAFETY: `at` is writable, then freed once.
            unsafe { hip.hipMalloc(&mut at, 64).and_then(|()| hip.hipFree(at)) }
        });
    });
    allocate.bench_function("cuMemAlloc_v2, cuMemFree_v2", |bencher| {
        bencher.iter(|| {
            let mut at = 0;
            let _ = entry("cuMemAlloc_v2", || memory::cuMemAlloc_v2((&mut at).into(), 64));
            entry("cuMemFree_v2", || memory::cuMemFree_v2(at))
        });
    });
    allocate.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
