//! What a forwarded driver call costs above the bare HIP call, over a provider that answers at once.

#[path = "../tests/null/mod.rs"]
mod null;

use core::ffi::c_void;
use core::ptr::null_mut;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cuda_abi::{CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig};
use driver::api::{context, copy, event, execution, memory, memset, module, stream};
use driver::{Result, entry, entry_per_thread};

/// A HIP call and the driver call that forwards to it, under one heading.
fn pair<H>(
    criterion: &mut Criterion,
    heading: &str,
    (hip_name, mut hip): (&str, impl FnMut() -> H),
    calls: &[(&'static str, &dyn Fn() -> Result)],
) {
    let mut group = criterion.benchmark_group(heading);
    group.bench_function(hip_name, |bencher| bencher.iter(|| black_box(hip())));
    for &(name, call) in calls {
        group.bench_function(name, |bencher| bencher.iter(|| black_box(entry(name, call))));
    }
    group.finish();
}

fn forward(criterion: &mut Criterion) {
    null::start();
    let hip = null::hip();
    let mut ctx: cuda_abi::CUcontext = null_mut();
    context::cuCtxCreate_v2((&mut ctx).into(), 0, 0).unwrap();
    let mut loaded: cuda_abi::CUmodule = null_mut();
    // SAFETY: an image, which lives as long as the test.
    unsafe { module::cuModuleLoadData((&mut loaded).into(), null::PTX.as_ptr().cast()) }.unwrap();
    let mut function: cuda_abi::CUfunction = null_mut();
    module::cuModuleGetFunction((&mut function).into(), loaded, c"good").unwrap();
    let mut own_stream: cuda_abi::CUstream = null_mut();
    stream::cuStreamCreate((&mut own_stream).into(), 1).unwrap();
    let mut own_event: cuda_abi::CUevent = null_mut();
    event::cuEventCreate((&mut own_event).into(), 2).unwrap();
    let mut dptr = 0;
    memory::cuMemAlloc_v2((&mut dptr).into(), 4096).unwrap();
    let to: *mut c_void = core::ptr::with_exposed_provenance_mut(dptr as usize);
    let mut host = [0u8; 8];
    let host: *mut c_void = host.as_mut_ptr().cast();
    let mut argument = dptr;
    let mut parameters = [(&raw mut argument).cast::<c_void>()];
    let parameters = parameters.as_mut_ptr();
    let none: *mut *mut c_void = null_mut();

    let mut attributes = [CUlaunchAttribute::default(); 2];
    attributes[0].id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let plain = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: own_stream,
        ..Default::default()
    };
    let with_attributes = CUlaunchConfig { attrs: attributes.as_mut_ptr(), numAttrs: 2, ..plain };
    // SAFETY: the null provider looks at nothing but the places that are passed, which are valid. So it is below.
    let bare = || unsafe {
        hip.hipModuleLaunchKernel(null_mut(), 1, 1, 1, 32, 1, 1, 0, null_mut(), parameters, none)
    };
    pair(
        criterion,
        "launch",
        ("hipModuleLaunchKernel", bare),
        &[
            ("cuLaunchKernel", &|| {
                // SAFETY: the parameters are the kernel's, or none.
                unsafe {
                    execution::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, own_stream, parameters, none)
                }
            }),
            // SAFETY: the parameters are the kernel's, or none.
            ("cuLaunchKernelEx", &|| unsafe {
                execution::cuLaunchKernelEx(&plain, function, parameters, none)
            }),
            ("cuLaunchKernelEx, two attributes", &|| {
                // SAFETY: the parameters are the kernel's, or none.
                unsafe { execution::cuLaunchKernelEx(&with_attributes, function, parameters, none) }
            }),
        ],
    );
    pair(
        criterion,
        "copy of 8 bytes",
        // SAFETY: see above.
        ("hipMemcpyAsync", || unsafe { hip.hipMemcpyAsync(to, host, 8, 1, null_mut()) }),
        &[
            // SAFETY: the host's memory is large enough, and lives until the copy has been made.
            ("cuMemcpyHtoDAsync_v2", &|| unsafe { copy::cuMemcpyHtoDAsync_v2(dptr, host, 8, own_stream) }),
            // SAFETY: the host's memory is large enough, and lives until the copy has been made.
            ("cuMemcpyDtoHAsync_v2", &|| unsafe { copy::cuMemcpyDtoHAsync_v2(host, dptr, 8, own_stream) }),
            ("cuMemcpyAsync", &|| copy::cuMemcpyAsync(dptr, dptr + 64, 8, own_stream)),
        ],
    );
    pair(
        criterion,
        "fill of 8 bytes",
        // SAFETY: see above.
        ("hipMemsetD8Async", || unsafe { hip.hipMemsetD8Async(to, 1, 8, null_mut()) }),
        &[("cuMemsetD8Async", &|| memset::cuMemsetD8Async(dptr, 1, 8, own_stream))],
    );
    pair(
        criterion,
        "event record",
        // SAFETY: see above.
        ("hipEventRecord", || unsafe { hip.hipEventRecord(null_mut(), null_mut()) }),
        &[("cuEventRecord", &|| event::cuEventRecord(own_event, own_stream))],
    );
    pair(
        criterion,
        "event query",
        // SAFETY: see above.
        ("hipEventQuery", || unsafe { hip.hipEventQuery(null_mut()) }),
        &[("cuEventQuery", &|| event::cuEventQuery(own_event))],
    );
    pair(
        criterion,
        "wait for event",
        // SAFETY: see above.
        ("hipStreamWaitEvent", || unsafe { hip.hipStreamWaitEvent(null_mut(), null_mut(), 0) }),
        &[("cuStreamWaitEvent", &|| stream::cuStreamWaitEvent(own_stream, own_event, 0))],
    );
    pair(
        criterion,
        "stream synchronize",
        // SAFETY: see above.
        ("hipStreamSynchronize", || unsafe { hip.hipStreamSynchronize(null_mut()) }),
        &[("cuStreamSynchronize", &|| stream::cuStreamSynchronize(own_stream))],
    );
    let both = || {
        let mut at = null_mut();
        // SAFETY: `at` is writable, then freed once.
        unsafe { hip.hipMalloc(&mut at, 64).and_then(|()| hip.hipFree(at)) }
    };
    let mut group = criterion.benchmark_group("allocate and free 64 bytes");
    group.bench_function("hipMalloc, hipFree", |bencher| bencher.iter(|| black_box(both())));
    group.bench_function("cuMemAlloc_v2, cuMemFree_v2", |bencher| {
        bencher.iter(|| {
            let mut at = 0;
            let _ = entry("cuMemAlloc_v2", || memory::cuMemAlloc_v2((&mut at).into(), 64));
            entry("cuMemFree_v2", || memory::cuMemFree_v2(at))
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("per-thread default stream");
    group.bench_function("cuMemsetD8Async_ptsz", |bencher| {
        bencher.iter(|| {
            let call = || memset::cuMemsetD8Async(dptr, 1, 8, null_mut());
            black_box(entry_per_thread("cuMemsetD8Async_ptsz", call))
        });
    });
    group.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
