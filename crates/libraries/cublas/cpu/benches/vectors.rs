//! Vectors, and matrices with vectors, beside the same by OpenBLAS: the library in `CBLAS`, or the loader's
//! `libopenblas.so.0`. Without one there are our numbers only.

use std::ffi::c_int;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use cublas_cpu::{Op, level1, level2};
use libloading::os::unix::Library;

const N: usize = 2048;
const LONG: usize = 1 << 20;

type Axpy<T> = unsafe extern "C" fn(c_int, T, *const T, c_int, *mut T, c_int);
type Dot<T> = unsafe extern "C" fn(c_int, *const T, c_int, *const T, c_int) -> T;
type Norm<T> = unsafe extern "C" fn(c_int, *const T, c_int) -> T;
type Extreme<T> = unsafe extern "C" fn(c_int, *const T, c_int) -> usize;
type Gemv<T> =
    unsafe extern "C" fn(c_int, c_int, c_int, c_int, T, *const T, c_int, *const T, c_int, T, *mut T, c_int);
type Trsv<T> = unsafe extern "C" fn(c_int, c_int, c_int, c_int, c_int, *const T, c_int, *mut T, c_int);

/// cblas.h's numbers.
const COLUMN_MAJOR: c_int = 102;
const TRANSPOSE: [(Op, c_int); 2] = [(Op::N, 111), (Op::T, 112)];
const UPPER: c_int = 121;
const UNIT: c_int = 132;

fn theirs() -> Option<Library> {
    let path = std::env::var("CBLAS").unwrap_or_else(|_| "libopenblas.so.0".to_owned());
    // SAFETY: OpenBLAS's initialisers ask for nothing.
    let library = unsafe { Library::new(&path) };
    library.inspect_err(|error| eprintln!("skipped: the numbers of a CBLAS, since {error}")).ok()
}

/// `F` is cblas.h's signature of that name.
fn function<F: Copy>(library: Option<&Library>, name: &str) -> Option<F> {
    // SAFETY: as said.
    library.map(|library| *unsafe { library.get::<F>(format!("cblas_{name}")) }.unwrap())
}

macro_rules! of_type {
    ($bench:ident, $type:ty, $letter:literal) => {
        fn $bench(c: &mut Criterion) {
            let theirs = theirs();
            macro_rules! cblas {
                ($kind:ident, $name:expr) => {
                    function::<$kind<$type>>(theirs.as_ref(), $name)
                };
            }
            let a: Vec<$type> = (0..N * N).map(|i| 0.01 * (i % 7) as $type).collect();
            let x: Vec<$type> = (0..LONG).map(|i| (i % 5) as $type).collect();
            let mut y = vec![1.0 as $type; LONG];
            let (pa, px, py, n, wide) = (a.as_ptr(), x.as_ptr(), y.as_mut_ptr(), N as c_int, N as i64);

            for (op, number) in TRANSPOSE {
                let name = format!("{}gemv {op:?} {N}", $letter);
                c.bench_function(&name, |b| {
                    // SAFETY: the matrix and the vectors are as large as that.
                    b.iter(|| unsafe { level2::gemv(op, wide, wide, 1.0, pa, wide, px, 1, 0.0, py, 1) });
                });
                if let Some(gemv) = cblas!(Gemv, concat!($letter, "gemv")) {
                    c.bench_function(&format!("{name}, OpenBLAS"), |b| {
                        // SAFETY: as above.
                        b.iter(|| unsafe { gemv(COLUMN_MAJOR, number, n, n, 1.0, pa, n, px, 1, 0.0, py, 1) });
                    });
                }
                let name = format!("{}trsv {op:?} {N}", $letter);
                c.bench_function(&name, |b| {
                    let (uplo, diag) = (cublas_cpu::Uplo::Upper, cublas_cpu::Diag::Unit);
                    // SAFETY: as above.
                    b.iter(|| unsafe {
                        py.write_bytes(0, N);
                        level2::trsv(uplo, op, diag, wide, pa, wide, py, 1);
                    });
                });
                if let Some(trsv) = cblas!(Trsv, concat!($letter, "trsv")) {
                    c.bench_function(&format!("{name}, OpenBLAS"), |b| {
                        // SAFETY: as above.
                        b.iter(|| unsafe {
                            py.write_bytes(0, N);
                            trsv(COLUMN_MAJOR, UPPER, number, UNIT, n, pa, n, py, 1);
                        });
                    });
                }
            }
            for length in [N, LONG] {
                let (n, wide) = (length as c_int, length as i64);
                macro_rules! beside {
                    ($name:literal, $ours:expr, $kind:ident, |$function:ident| $theirs:expr) => {
                        let name = format!("{}{} {length}", $letter, $name);
                        c.bench_function(&name, |b| b.iter(|| black_box($ours)));
                        if let Some($function) = cblas!($kind, concat!($letter, $name)) {
                            c.bench_function(&format!("{name}, OpenBLAS"), |b| b.iter(|| black_box($theirs)));
                        }
                    };
                }
                // SAFETY: the vectors are as long as that.
                unsafe {
                    beside!("axpy", level1::axpy(wide, 0.5, px, 1, py, 1), Axpy, |axpy| axpy(
                        n, 0.5, px, 1, py, 1
                    ));
                    beside!("dot", level1::dotu::<$type, $type, $type>(wide, px, 1, py, 1), Dot, |dot| dot(
                        n, px, 1, py, 1
                    ));
                    beside!("nrm2", level1::nrm2::<$type, $type>(wide, px, 1), Norm, |nrm2| nrm2(n, px, 1));
                    beside!("asum", level1::asum::<$type, $type>(wide, px, 1), Norm, |asum| asum(n, px, 1));
                }
            }
            let name = format!("i{}amax {LONG}", $letter);
            let wide = LONG as i64;
            c.bench_function(&name, |b| {
                // SAFETY: the vector is as long as that.
                b.iter(|| unsafe { level1::iamax::<$type, $type>(wide, black_box(py), 1) });
            });
            if let Some(amax) = cblas!(Extreme, concat!("i", $letter, "amax")) {
                c.bench_function(&format!("{name}, OpenBLAS"), |b| {
                    // SAFETY: as above.
                    b.iter(|| unsafe { amax(LONG as c_int, black_box(py), 1) });
                });
            }
        }
    };
}
of_type!(single, f32, "s");
of_type!(double, f64, "d");

criterion_group!(benches, single, double);
criterion_main!(benches);
