//! `gemm` of 2048 in f32 and f64: by the crate, by a CBLAS through us, and by that CBLAS called directly.
//!
//! `CUDAWAY_TEST_CBLAS` names the library; without it the first that is installed is taken, or none is.

use std::ffi::c_int;
use std::hint::black_box;

use criterion::{
    BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime,
};
use cublas_cpu::{Op, Scalar, cblas, gemm};
use libloading::os::unix::Library;

const SIZE: i64 = 2048;

fn library() -> Option<String> {
    let named = std::env::var("CUDAWAY_TEST_CBLAS").ok();
    let info = named.map_or_else(cblas::find, |path| Some(cblas::open(&path).expect("CUDAWAY_TEST_CBLAS")));
    cblas::leave();
    info.map(|info| info.path)
}

struct Matrices<S>([Vec<S>; 3]);

impl<S: Scalar> Matrices<S> {
    fn new() -> Self {
        Self([
            vec![S::one(); (SIZE * SIZE) as usize],
            vec![S::one(); (SIZE * SIZE) as usize],
            vec![S::zero(); (SIZE * SIZE) as usize],
        ])
    }

    fn multiply(&mut self) {
        let [a, b, c] = &mut self.0;
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        // SAFETY: matrices of that size.
        unsafe { gemm(Op::N, Op::N, SIZE, SIZE, SIZE, S::one(), a, SIZE, b, SIZE, S::zero(), c, SIZE) };
        black_box(c);
    }
}

type Direct<S> = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    S,
    *const S,
    c_int,
    *const S,
    c_int,
    S,
    *mut S,
    c_int,
);

fn measure<S: Scalar>(group: &mut BenchmarkGroup<'_, WallTime>, symbol: &str) {
    let mut matrices = Matrices::<S>::new();
    group.bench_function(format!("{symbol} gemm crate"), |bencher| bencher.iter(|| matrices.multiply()));
    let Some(path) = library() else { return println!("skipped: no CBLAS is installed") };
    let width = cblas::open(&path).expect("it was opened before").width;
    group.bench_function(format!("{symbol} {path} through us"), |bencher| {
        bencher.iter(|| matrices.multiply())
    });
    cblas::leave();
    if width != cblas::Width::Lp64 {
        return println!("skipped: {path} has wide integers");
    }
    // SAFETY: opened before.
    let library = unsafe { Library::new(&path) }.expect("it was opened before");
    // SAFETY: the signature that the name has.
    let Ok(direct) = (unsafe { library.get::<Direct<S>>(symbol.as_bytes()) }) else { return };
    let [a, b, c] = &mut matrices.0;
    let n = SIZE as c_int;
    group.bench_function(format!("{symbol} {path} directly"), |bencher| {
        bencher.iter(|| {
            // SAFETY: matrices of that size, column by column, not transposed.
            unsafe {
                direct(
                    102,
                    111,
                    111,
                    n,
                    n,
                    n,
                    S::one(),
                    a.as_ptr(),
                    n,
                    b.as_ptr(),
                    n,
                    S::zero(),
                    c.as_mut_ptr(),
                    n,
                );
            }
        });
    });
}

fn products(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gemm 2048");
    group.sample_size(10).throughput(Throughput::Elements(2 * (SIZE * SIZE * SIZE) as u64));
    measure::<f32>(&mut group, "cblas_sgemm");
    measure::<f64>(&mut group, "cblas_dgemm");
    group.finish();
}

criterion_group!(benches, products);
criterion_main!(benches);
