//! Fills of 2^22 values by each kind of generator, beside NVIDIA's host generators where their wheel is installed. Both on
//! one thread: `RAYON_NUM_THREADS=1 cargo bench -p curand-cpu`.

#[allow(dead_code, reason = "the tests need more of it")]
#[path = "../tests/nvidia/mod.rs"]
mod nvidia;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use curand_cpu::{Generator, Kind};
use nvidia::Nvidia;

const VALUES: usize = 1 << 22;

fn fills(criterion: &mut Criterion) {
    let nvidia = Nvidia::open().ok();
    let kinds = [
        (Kind::Xorwow, 101),
        (Kind::Mrg32k3a, 121),
        (Kind::Mtgp32, 141),
        (Kind::Philox4x32, 161),
        (Kind::Sobol32, 201),
        (Kind::Sobol64, 203),
    ];
    for (kind, number) in kinds {
        let mut group = criterion.benchmark_group(format!("{kind:?}"));
        group.throughput(Throughput::Elements(VALUES as u64)).sample_size(10);
        let (mut single, mut double) = (vec![0f32; VALUES], vec![0f64; VALUES]);
        let mut ours = Generator::new(kind);
        group.bench_function("uniform f32", |b| b.iter(|| ours.fill_uniform_f32(&mut single)));
        group.bench_function("uniform f64", |b| b.iter(|| ours.fill_uniform_f64(&mut double)));
        group.bench_function("normal f32", |b| b.iter(|| ours.fill_normal_f32(&mut single, 0.0, 1.0)));
        group.bench_function("normal f64", |b| b.iter(|| ours.fill_normal_f64(&mut double, 0.0, 1.0)));
        let Some(theirs) = nvidia.as_ref().map(|nvidia| nvidia.generator(number)) else { continue };
        group.bench_function("uniform f32, NVIDIA", |b| {
            b.iter(|| theirs.fill("curandGenerateUniform", &mut single));
        });
        group.bench_function("uniform f64, NVIDIA", |b| {
            b.iter(|| theirs.fill("curandGenerateUniformDouble", &mut double));
        });
        group.bench_function("normal f32, NVIDIA", |b| {
            b.iter(|| theirs.fill_normal("curandGenerateNormal", &mut single, 0.0, 1.0));
        });
        group.bench_function("normal f64, NVIDIA", |b| {
            b.iter(|| theirs.fill_normal("curandGenerateNormalDouble", &mut double, 0.0, 1.0));
        });
    }
}

criterion_group!(benches, fills);
criterion_main!(benches);
