//! Products over storage types and their epilogues, against sums in f64 written from the definition.

use cublas_cpu::epilogue::{Activation, BiasGradient, Epilogue, Place};
use cublas_cpu::mixed::{Alpha, IntegerProduct, Product, integer_product, product};
use cublas_cpu::storage::{Compute, Storage};
use cublas_cpu::{Complex, Op};
use num_traits::ToPrimitive;

/// A matrix of bytes, rows padded by three elements.
struct Matrix {
    place: Place,
    rows: i64,
    columns: i64,
    /// The elements as the storage has them.
    first: Vec<f64>,
    _memory: Vec<u128>,
}

fn number<S: Compute>(value: f64) -> S {
    S::from_real(num_traits::NumCast::from(value).unwrap())
}

impl Matrix {
    fn new<S: Compute>(storage: Storage, rows: i64, columns: i64, value: impl Fn(i64, i64) -> f64) -> Self {
        let ld = rows + 3;
        let mut memory = vec![u128::MAX; ld as usize * columns.max(1) as usize * storage.size() / 16 + 1];
        let place = Place::new(storage, memory.as_mut_ptr(), ld);
        for column in 0..columns {
            let values: Vec<S> = (0..rows).map(|row| number(value(row, column))).collect();
            // SAFETY: the memory is as large as that.
            unsafe { S::write(storage, &values, place.address(0, column)) };
        }
        let mut matrix = Self { place, rows, columns, first: Vec::new(), _memory: memory };
        matrix.first = (0..rows * columns).map(|at| matrix.get::<S>(at % rows, at / rows)).collect();
        matrix
    }

    fn get<S: Compute>(&self, row: i64, column: i64) -> f64 {
        let mut value = [S::zero()];
        // SAFETY: as above.
        unsafe { S::read(self.place.storage, self.place.address(row, column), &mut value) };
        value[0].real().to_f64().unwrap()
    }

    fn op(&self, op: Op, row: i64, column: i64) -> f64 {
        let (row, column) = if op.transposes() { (column, row) } else { (row, column) };
        self.first[(row + column * self.rows) as usize]
    }

    /// The padding has the ones that it had.
    fn assert_padding(&self, what: &str) {
        for column in 0..self.columns {
            for at in 0..3 * self.place.storage.size() {
                // SAFETY: as above.
                let byte = unsafe { *self.place.address(self.rows, column).add(at) };
                assert_eq!(byte, 0xff, "{what}: column {column}");
            }
        }
    }
}

/// Small integers that look random.
fn small(seed: i64, limit: i64) -> impl Fn(i64, i64) -> f64 {
    move |row, column| {
        let mixed = (row * 7919 + column * 104_729 + seed * 31).wrapping_mul(2_654_435_761);
        (mixed.rem_euclid(1009) % (2 * limit + 1) - limit) as f64
    }
}

struct Sizes(i64, i64, i64);

fn operands<S: Compute>(
    sizes: &Sizes,
    ops: (Op, Op),
    storages: (Storage, Storage),
    limit: i64,
) -> (Matrix, Matrix) {
    let Sizes(m, n, k) = *sizes;
    let shape = |op: Op, rows, columns| if op.transposes() { (columns, rows) } else { (rows, columns) };
    let (a, b) = (shape(ops.0, m, k), shape(ops.1, k, n));
    (
        Matrix::new::<S>(storages.0, a.0, a.1, small(1, limit)),
        Matrix::new::<S>(storages.1, b.0, b.1, small(2, limit)),
    )
}

fn sum(a: &Matrix, b: &Matrix, ops: (Op, Op), k: i64, row: i64, column: i64) -> f64 {
    (0..k).map(|i| a.op(ops.0, row, i) * b.op(ops.1, i, column)).sum()
}

/// Integers small enough that every storage and every sum has them exactly.
fn exact<S: Compute>(storages: (Storage, Storage, Storage, Storage)) {
    // E5M2 has integers up to 8, bfloat16 up to 256.
    let width = storages.2.size().min(storages.3.size());
    let (most_k, limit) = if width == 1 {
        (2, 1)
    } else if width == 2 {
        (5, 2)
    } else {
        (i64::MAX, 2)
    };
    for sizes in [
        Sizes(1, 1, 1),
        Sizes(17, 5, 2),
        Sizes(5, 33, 0),
        Sizes(64, 2, 4),
        Sizes(1030, 3, 1100),
        Sizes(3, 1030, 5),
    ] {
        if sizes.2 > most_k {
            continue;
        }
        for ops in [(Op::N, Op::N), (Op::T, Op::N), (Op::N, Op::T), (Op::C, Op::C)] {
            let Sizes(m, n, k) = sizes;
            let (a, b) = operands::<S>(&sizes, ops, (storages.0, storages.1), limit);
            let c = Matrix::new::<S>(storages.2, m, n, small(3, 2));
            for (alpha, beta) in [(1.0, 0.0), (2.0, 1.0), (0.0, -1.0)] {
                let what = format!("{storages:?} {m}x{n}x{k} {ops:?} {alpha} {beta}");
                let d = Matrix::new::<S>(storages.3, m, n, |_, _| 1.0);
                let p = Product {
                    op_a: ops.0,
                    op_b: ops.1,
                    m,
                    n,
                    k,
                    alpha: Alpha::One(number::<S>(alpha)),
                    a: a.place,
                    b: b.place,
                    beta: number(beta),
                    c: c.place,
                    d: d.place,
                    epilogue: Epilogue::default(),
                };
                // SAFETY: the matrices are as large as said.
                unsafe { product(&p) };
                for column in 0..n {
                    for row in 0..m {
                        let expected =
                            alpha * sum(&a, &b, ops, k, row, column) + beta * c.get::<S>(row, column);
                        assert_eq!(d.get::<S>(row, column), expected, "{what}: ({row}, {column})");
                    }
                }
                d.assert_padding(&what);
            }
        }
    }
}

#[test]
fn every_storage_that_f32_sums_take() {
    use Storage::*;
    for a in [F16, BF16, E4M3, E5M2, I8, F32] {
        exact::<f32>((a, a, F32, F32));
        exact::<f32>((a, a, F16, F16));
    }
    exact::<f32>((E4M3, E5M2, BF16, E4M3));
    exact::<f32>((E5M2, E4M3, F16, E5M2));
    exact::<f32>((BF16, BF16, F32, BF16));
    exact::<f32>((I8, I8, I8, I8));
    exact::<f32>((I8, I8, I32, F32));
    exact::<f32>((F16, BF16, BF16, F32));
}

#[test]
fn the_wider_sums() {
    use Storage::*;
    exact::<f64>((F64, F64, F64, F64));
    exact::<Complex<f32>>((C8, C8, C32, C32));
    exact::<Complex<f32>>((C32, C32, C32, C32));
    exact::<Complex<f64>>((C64, C64, C64, C64));
}

#[test]
fn halves_are_summed_in_f32_and_rounded_once() {
    let (m, n, k) = (33, 9, 700);
    let value = |seed| move |row: i64, column: i64| (small(seed, 500)(row, column)) / 317.0;
    let (a, b) =
        (Matrix::new::<f32>(Storage::F16, m, k, value(1)), Matrix::new::<f32>(Storage::F16, k, n, value(2)));
    let d = Matrix::new::<f32>(Storage::F16, m, n, |_, _| f64::NAN);
    let mut p = plain::<f32>((m, n, k), &a, &b, &d);
    // SAFETY: the matrices are as large as said.
    unsafe { product(&p) };
    let wide = Matrix::new::<f32>(Storage::F32, m, n, |_, _| f64::NAN);
    (p.c, p.d) = (wide.place, wide.place);
    // SAFETY: as above.
    unsafe { product(&p) };
    for column in 0..n {
        for row in 0..m {
            let exact = sum(&a, &b, (Op::N, Op::N), k, row, column);
            let sizes: f64 = (0..k).map(|i| (a.get::<f32>(row, i) * b.get::<f32>(i, column)).abs()).sum();
            let bound = (k + 2) as f64 * f64::from(f32::EPSILON) / 2.0 * sizes;
            let off = (wide.get::<f32>(row, column) - exact).abs();
            assert!(off <= bound, "({row}, {column}): {off} > {bound}");
            let off = (d.get::<f32>(row, column) - exact).abs();
            assert!(off <= bound + exact.abs() / 2048.0 * 1.01, "half ({row}, {column}): {off}");
        }
    }
}

fn plain<S: Compute>((m, n, k): (i64, i64, i64), a: &Matrix, b: &Matrix, d: &Matrix) -> Product<S> {
    Product {
        op_a: Op::N,
        op_b: Op::N,
        m,
        n,
        k,
        alpha: Alpha::One(S::one()),
        a: a.place,
        b: b.place,
        beta: S::zero(),
        c: d.place,
        d: d.place,
        epilogue: Epilogue::default(),
    }
}

/// Every product is as large as it can be; 131 073 of them are more than 32 bits hold.
#[test]
fn sums_of_bytes_are_exact_and_wrap() {
    for (m, n, k) in [(1, 1, 131_073), (3, 2, 2500), (1, 1, 0), (1030, 2, 7)] {
        let a = Matrix::new::<f32>(Storage::I8, m, k, |_, _| -128.0);
        let b =
            Matrix::new::<f32>(
                Storage::I8,
                k,
                n,
                |row, column| if column == 1 && row % 2 == 0 { 127.0 } else { -128.0 },
            );
        for (alpha, beta) in [(1, 0), (3, -1), (0, 5)] {
            let mut c = vec![11_i32; ((m + 1) * n) as usize];
            let p = IntegerProduct {
                op_a: Op::N,
                op_b: Op::N,
                m,
                n,
                k,
                alpha,
                a: a.place,
                b: b.place,
                beta,
                c: c.as_ptr(),
                ldc: m + 1,
                d: c.as_mut_ptr(),
                ldd: m + 1,
            };
            // SAFETY: the matrices are as large as said.
            unsafe { integer_product(&p) };
            for column in 0..n {
                for row in 0..m {
                    let exact: i64 = (0..k)
                        .map(|i| (a.get::<f32>(row, i) * b.get::<f32>(i, column)) as i64)
                        .sum::<i64>()
                        .wrapping_mul(alpha.into());
                    let got = c[(row + column * (m + 1)) as usize];
                    assert_eq!(
                        got,
                        (exact + i64::from(beta) * 11) as i32,
                        "{m} {n} {k} {alpha} {beta} ({row}, {column})"
                    );
                }
                assert_eq!(c[(m + column * (m + 1)) as usize], 11, "padding");
            }
        }
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance, "{what}: {got} is not {expected}");
}

const EPILOGUE_SIZES: (i64, i64, i64) = (21, 6, 5);

/// The product, with a bias, before any activation.
fn before(a: &Matrix, b: &Matrix, bias: Option<&Matrix>, row: i64, column: i64) -> f64 {
    let added = bias.map_or(0.0, |bias| bias.get::<f32>(row, 0));
    sum(a, b, (Op::N, Op::N), EPILOGUE_SIZES.2, row, column) + added
}

#[test]
fn forward_epilogues() {
    let (m, n, k) = EPILOGUE_SIZES;
    let quarter = |seed| move |row: i64, column: i64| small(seed, 3)(row, column) / 4.0;
    let (a, b) = (
        Matrix::new::<f32>(Storage::F16, m, k, quarter(1)),
        Matrix::new::<f32>(Storage::F16, k, n, quarter(2)),
    );
    let bias = Matrix::new::<f32>(Storage::F16, m, 1, quarter(5));
    for activation in [Activation::None, Activation::Relu, Activation::Gelu] {
        let d = Matrix::new::<f32>(Storage::F32, m, n, |_, _| f64::NAN);
        let saved = Matrix::new::<f32>(Storage::F16, m, n, |_, _| 0.0);
        let mut bits = vec![0_u8; 128 / 8 * n as usize];
        let (mut largest, ld_bits) = (0.0f32, 128);
        let auxiliary = match activation {
            Activation::Relu => Some(Place::new(Storage::I8, bits.as_mut_ptr(), ld_bits)),
            Activation::Gelu => Some(saved.place),
            _ => None,
        };
        let mut p = plain::<f32>((m, n, k), &a, &b, &d);
        p.epilogue = Epilogue {
            bias: Some(bias.place),
            activation,
            auxiliary,
            largest: Some(&mut largest),
            scale: Some(0.5),
            ..Epilogue::default()
        };
        // SAFETY: everything is as large as said.
        unsafe { product(&p) };
        let mut expected_largest = 0.0_f64;
        for column in 0..n {
            for row in 0..m {
                let what = format!("{activation:?} ({row}, {column})");
                let x = before(&a, &b, Some(&bias), row, column);
                let y = match activation {
                    Activation::Relu => x.max(0.0),
                    Activation::Gelu => gelu(x),
                    _ => x,
                };
                expected_largest = expected_largest.max(y.abs());
                near(&what, d.get::<f32>(row, column), y / 2.0, 1e-6);
                let bit = bits[((row + column * ld_bits) / 8) as usize] >> (row % 8) & 1;
                assert_eq!(bit == 1, activation == Activation::Relu && x > 0.0, "{what}: bit");
                if activation == Activation::Gelu {
                    near(&what, saved.get::<f32>(row, column), x, 1e-6);
                }
            }
        }
        near("largest", largest.into(), expected_largest, 1e-6);
        d.assert_padding("D");
    }
}

#[test]
fn gradients() {
    let (m, n, k) = EPILOGUE_SIZES;
    let quarter = |seed| move |row: i64, column: i64| small(seed, 3)(row, column) / 4.0;
    let (a, b) = (
        Matrix::new::<f32>(Storage::BF16, m, k, quarter(1)),
        Matrix::new::<f32>(Storage::BF16, k, n, quarter(2)),
    );
    let saved = Matrix::new::<f32>(Storage::F32, m, n, quarter(7));
    // Bits in columns of 128.
    let through = |row: i64, column: i64| (row * 3 + column) % 4 != 0;
    let mut bits = vec![0_u8; 16 * n as usize];
    for column in 0..n {
        for row in (0..m).filter(|&row| through(row, column)) {
            bits[(column * 16 + row / 8) as usize] |= 1 << (row % 8);
        }
    }
    for activation in [Activation::ReluGradient, Activation::GeluGradient] {
        let d = Matrix::new::<f32>(Storage::F32, m, n, |_, _| f64::NAN);
        let bias = Matrix::new::<f32>(Storage::F32, m, 1, |_, _| f64::NAN);
        let mut p = plain::<f32>((m, n, k), &a, &b, &d);
        let relu = activation == Activation::ReluGradient;
        let auxiliary = if relu { Place::new(Storage::I8, bits.as_mut_ptr(), 128) } else { saved.place };
        p.epilogue = Epilogue {
            activation,
            auxiliary: Some(auxiliary),
            bias_gradient: Some((BiasGradient::Result, bias.place)),
            ..Epilogue::default()
        };
        // SAFETY: everything is as large as said.
        unsafe { product(&p) };
        for row in 0..m {
            let mut total = 0.0;
            for column in 0..n {
                let x = before(&a, &b, None, row, column);
                let at = saved.get::<f32>(row, column);
                let step = 1e-5;
                let slope = match relu {
                    true => f64::from(u8::from(through(row, column))),
                    false => (gelu(at + step) - gelu(at - step)) / (2.0 * step),
                };
                near(
                    &format!("{activation:?} ({row}, {column})"),
                    d.get::<f32>(row, column),
                    x * slope,
                    1e-5,
                );
                total += x * slope;
            }
            near("bias", bias.get::<f32>(row, 0), total, 1e-4);
        }
    }
}

#[test]
fn gradients_of_a_bias_before_the_product() {
    let (m, n, k) = EPILOGUE_SIZES;
    for op in [Op::N, Op::T] {
        let (a, b) = operands::<f32>(&Sizes(m, n, k), (op, op), (Storage::F16, Storage::F16), 3);
        for kind in [BiasGradient::A, BiasGradient::B] {
            let d = Matrix::new::<f32>(Storage::F16, m, n, |_, _| f64::NAN);
            let length = if kind == BiasGradient::A { m } else { n };
            let bias = Matrix::new::<f32>(Storage::F16, length, 1, |_, _| f64::NAN);
            let mut p = plain::<f32>((m, n, k), &a, &b, &d);
            (p.op_a, p.op_b) = (op, op);
            p.epilogue.bias_gradient = Some((kind, bias.place));
            // SAFETY: everything is as large as said.
            unsafe { product(&p) };
            for i in 0..length {
                let expected: f64 = (0..k)
                    .map(|j| if kind == BiasGradient::A { a.op(op, i, j) } else { b.op(op, j, i) })
                    .sum();
                assert_eq!(bias.get::<f32>(i, 0), expected, "{op:?} {kind:?} {i}");
            }
            assert_eq!(d.get::<f32>(1, 1), sum(&a, &b, (op, op), k, 1, 1));
        }
    }
}

#[test]
fn a_factor_for_each_row() {
    let (m, n, k) = EPILOGUE_SIZES;
    let (a, b) = operands::<f32>(&Sizes(m, n, k), (Op::N, Op::N), (Storage::F32, Storage::F32), 3);
    let d = Matrix::new::<f32>(Storage::F32, m, n, |_, _| f64::NAN);
    let factors: Vec<f32> = (0..m).map(|row| (row % 5) as f32).collect();
    let mut p = plain::<f32>((m, n, k), &a, &b, &d);
    p.alpha = Alpha::Rows(factors.as_ptr(), 1.0);
    // SAFETY: everything is as large as said.
    unsafe { product(&p) };
    for column in 0..n {
        for row in 0..m {
            let expected = before(&a, &b, None, row, column) * (row % 5) as f64;
            assert_eq!(d.get::<f32>(row, column), expected);
        }
    }
}
