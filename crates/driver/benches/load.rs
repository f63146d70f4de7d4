//! What `cuModuleLoadData` costs the driver, over a provider that answers at once: texts of which every body is looked
//! into, and long ones of which none is.

#[path = "../../hip-cpu/tests/many/mod.rs"]
mod many;
#[path = "../tests/null/mod.rs"]
mod null;

use std::ffi::CString;

use criterion::{Criterion, criterion_group, criterion_main};
use driver::api::{context, module};

fn load(criterion: &mut Criterion) {
    null::start();
    let mut ctx: cuda_abi::CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut ctx).into(), 0, 0).unwrap();
    let mut group = criterion.benchmark_group("cuModuleLoadData and cuModuleUnload");
    group.sample_size(20);
    for n_kernels in [1, 10, 40, 500, 5000] {
        let text = CString::new(many::text(n_kernels)).unwrap();
        let n_kb = text.as_bytes().len() >> 10;
        group.bench_function(format!("{n_kernels} kernels, {n_kb} KB"), |bencher| {
            bencher.iter(|| {
                let mut handle: cuda_abi::CUmodule = core::ptr::null_mut();
                // SAFETY: an image, which lives as long as the test.
                unsafe { module::cuModuleLoadData((&mut handle).into(), text.as_ptr().cast()) }.unwrap();
                module::cuModuleUnload(handle).unwrap();
            });
        });
    }
    group.finish();
}

criterion_group!(benches, load);
criterion_main!(benches);
