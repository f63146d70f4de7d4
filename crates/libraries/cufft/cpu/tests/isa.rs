//! The same transforms by every kind of vectors that the processor has.

use std::ffi::c_void;

use cufft_cpu::{Alone, Complex, Description, Direction, Embedding, Isa, Kind, Plan, Precision};

/// The definition, in `f64`.
fn definition(x: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let n = x.len();
    let root = |k: usize| Complex::cis(-std::f64::consts::TAU * (k % n) as f64 / n as f64);
    (0..n).map(|k| x.iter().enumerate().map(|(j, x)| x * root(j * k)).sum()).collect()
}

/// Other tests run the best vectors only.
#[test]
fn every_kind_of_vectors_gives_the_same_transform() {
    for isa in Isa::all() {
        for n in (1..=66).chain([128, 189, 240, 323, 360, 437, 512, 704, 1014]) {
            // Lines, and lines that alternate.
            for (stride, distance) in [(1, n as i64), (9, 1)] {
                let embedding = Some(Embedding { embed: &[n as i64], stride, distance });
                let description = Description {
                    n: &[n as i64],
                    input: embedding,
                    output: embedding,
                    kind: Kind::C2C,
                    precision: Precision::Single,
                    batch: 9,
                };
                let plan = Plan::with_isa(&description, isa).unwrap();
                let x: Vec<Complex<f32>> =
                    (0..9 * n).map(|i| Complex::new((i * i % 17) as f32 - 8.0, (i % 5) as f32)).collect();
                let mut y = x.clone();
                let start: *mut c_void = y.as_mut_ptr().cast();
                // SAFETY: `y` has the nine transforms, in either layout.
                unsafe { plan.execute(start, start, Direction::Forward, &Alone) }.unwrap();
                for transform in 0..9 {
                    let place = |j: usize| transform * distance as usize + j * stride as usize;
                    let line: Vec<Complex<f64>> = (0..n)
                        .map(|j| Complex::new(f64::from(x[place(j)].re), f64::from(x[place(j)].im)))
                        .collect();
                    for (k, expected) in definition(&line).into_iter().enumerate() {
                        let got = y[place(k)];
                        let off = (f64::from(got.re) - expected.re).hypot(f64::from(got.im) - expected.im);
                        assert!(off < 1e-4 * n as f64, "{isa:?} n {n} stride {stride}: {got} for {expected}");
                    }
                }
            }
        }
    }
}
