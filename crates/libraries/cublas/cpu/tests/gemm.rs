//! Products of every form, by the crate and by the CBLASes that are installed.

mod exact;

use std::sync::Mutex;

use cublas_cpu::{Complex, Op, Scalar, cblas, gemm};
use exact::{Exact, SIZES, Source, Stored, factors};

/// Which library multiplies is the process's: tests that set it take turns.
static LIBRARY: Mutex<()> = Mutex::new(());

fn taking_turns<T>(body: impl FnOnce() -> T) -> T {
    let _guard = LIBRARY.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let result = body();
    cblas::leave();
    result
}

/// (m, n, k): every size in every place, beside small and uneven others.
fn shapes() -> Vec<(i64, i64, i64)> {
    SIZES.iter().flat_map(|&size| [(size, 5, 17), (17, size, 2), (5, 2, size), (size, size, size)]).collect()
}

#[expect(clippy::too_many_arguments, reason = "the BLAS's own, and who computes")]
fn check<S: Scalar>(by: &str, m: i64, n: i64, k: i64, op_a: Op, op_b: Op, alpha: S, beta: S) {
    let what = format!("{by}: {m}x{n}x{k} {op_a:?}{op_b:?} alpha {alpha:?} beta {beta:?}");
    let mut source = Source::new((m * 1000 + n * 100 + k) as u64);
    let (a_rows, a_columns) = if op_a.transposes() { (k, m) } else { (m, k) };
    let (b_rows, b_columns) = if op_b.transposes() { (n, k) } else { (k, n) };
    let mut a: Stored<S> = source.matrix(a_rows, a_columns);
    let mut b: Stored<S> = source.matrix(b_rows, b_columns);
    let mut c: Stored<S> = source.matrix(m, n);
    let (dense_a, dense_b, dense_c) = (a.dense().op(op_a), b.dense().op(op_b), c.dense());
    if alpha.is_zero() {
        a = a.map(|_, _, _| Stored::nan());
        b = b.map(|_, _, _| Stored::nan());
    }
    if beta.is_zero() {
        c = c.map(|_, _, _| Stored::nan());
    }
    let before = c.clone();
    // SAFETY: the matrices are as large as said.
    unsafe { gemm(op_a, op_b, m, n, k, alpha, a.ptr(), a.ld, b.ptr(), b.ld, beta, c.mut_ptr(), c.ld) };
    Exact::new(&[(alpha, &dense_a, &dense_b)], Some((beta, &dense_c))).assert_matrix(&what, &c, |_, _| true);
    c.assert_rest(&before, &what, |_, _| true);
}

fn every_form<S: Scalar>(by: &str) {
    for (m, n, k) in shapes() {
        for op_a in Op::ALL {
            for op_b in Op::ALL {
                let [zero, one, other] = factors::<S>();
                let pairs =
                    [(one, zero), (other, one), (other, other), (zero, other), (zero, zero), (one, other)];
                let pairs = if m * n * k > 10_000 { &pairs[..3] } else { &pairs[..] };
                for &(alpha, beta) in pairs {
                    check(by, m, n, k, op_a, op_b, alpha, beta);
                }
            }
        }
    }
}

fn by_the_crate<S: Scalar>() {
    taking_turns(|| every_form::<S>("crate"));
}
all_types!(by_the_crate);

/// Products with few columns, of a matrix that is larger than the caches near a core: read as it lies, by turns of rows.
fn few_columns<S: Scalar>() {
    taking_turns(|| {
        let [zero, one, other] = factors::<S>();
        for ((m, n, k), op_b, alpha, beta) in [
            ((1030, 1, 259), Op::N, one, one),
            ((520, 5, 507), Op::N, other, other),
            ((263, 7, 1001), Op::C, other, zero),
            ((65, 4, 4040), Op::T, one, other),
        ] {
            check("few columns", m, n, k, Op::N, op_b, alpha, beta);
        }
    });
}
all_types!(few_columns);

/// CUDAWAY_TEST_CBLAS may name more, separated by colons.
fn libraries() -> Vec<String> {
    let named = std::env::var("CUDAWAY_TEST_CBLAS").unwrap_or_default();
    let named = named.split(':').filter(|path| !path.is_empty()).map(str::to_owned);
    named.chain(cblas::NAMES.map(str::to_owned)).collect()
}

#[test]
fn by_each_cblas_that_is_installed() {
    let mut tried = 0;
    for path in libraries() {
        taking_turns(|| {
            let Ok(info) = cblas::open(&path) else { return };
            tried += 1;
            println!("{info:?}");
            assert_eq!(cblas::info().unwrap().path, path);
            every_form::<f32>(&path);
            every_form::<f64>(&path);
            every_form::<Complex<f32>>(&path);
            every_form::<Complex<f64>>(&path);
        });
    }
    if tried == 0 {
        testkit::skip!("none of {:?} is installed", cblas::NAMES);
    }
}

#[test]
fn a_library_without_a_product_is_refused_by_name() {
    taking_turns(|| {
        let error = cblas::open("libm.so.6").unwrap_err().to_string();
        assert_eq!(error, "libm.so.6 has no cblas_sgemm");
        assert!(
            cblas::open("/nowhere/libblas.so").unwrap_err().to_string().starts_with("/nowhere/libblas.so: ")
        );
        assert!(cblas::info().is_none());
    });
}
