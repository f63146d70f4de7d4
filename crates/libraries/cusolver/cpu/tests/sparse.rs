//! Sparse systems where each method's factors are worked on entry by entry and in blocks: residuals, and the columns that are told.

use cusolver_cpu::factors::Factored;
use cusolver_cpu::sparse::{Columns, Failure, Method, solve};
use cusolver_cpu::spectrum::{count_within, least_squares, nearest};
use cusolver_cpu::{Complex, Field};

/// Five points of a square grid, by rows.
fn grid(side: i32) -> (Vec<i32>, Vec<i32>, Vec<f64>) {
    let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
    for row in 0..side {
        for column in 0..side {
            for (down, right, value) in
                [(-1, 0, -1.0), (0, -1, -1.0), (0, 0, 4.0), (0, 1, -1.0), (1, 0, -1.0)]
            {
                let (i, j) = (row + down, column + right);
                if (0..side).contains(&i) && (0..side).contains(&j) {
                    columns.push(i * side + j);
                    values.push(value);
                }
            }
            starts.push(columns.len() as i32);
        }
    }
    (starts, columns, values)
}

#[test]
fn grids_of_all_sizes_are_solved_by_each_method_in_both_orders() {
    for side in [1, 2, 5, 12, 40] {
        let (starts, columns, values) = grid(side);
        let a = Columns::of_rows(0, &starts, &columns, &values).unwrap();
        let b: Vec<f64> = (0..side * side).map(|i| f64::from(i % 7) - 3.0).collect();
        for method in [Method::Lu, Method::Qr, Method::Cholesky] {
            for reorders in [false, true] {
                let solved = solve(method, &a, &b, 0.0, reorders).unwrap();
                assert_eq!(solved.singular, None, "{method:?} {side} {reorders}");
                let x = solved.x.unwrap();
                for row in 0..b.len() {
                    let entries = starts[row] as usize..starts[row + 1] as usize;
                    let product: f64 = entries.map(|at| values[at] * x[columns[at] as usize]).sum();
                    assert!((product - b[row]).abs() < 1e-10, "{method:?} {side} {reorders}: row {row}");
                }
            }
        }
    }
}

#[test]
fn a_system_without_rows_has_a_solution_without_numbers() {
    let a = Columns::<f64>::of_rows(1, &[], &[], &[]).unwrap();
    let solved = solve(Method::Qr, &a, &[], 0.0, true).unwrap();
    assert_eq!((solved.x, solved.singular), (Some(vec![]), None));
}

#[test]
fn entries_that_are_there_twice_are_added() {
    let a = Columns::of_rows(1, &[1, 3, 4], &[1, 1, 2], &[1.5_f64, 0.5, 4.0]).unwrap();
    for method in [Method::Lu, Method::Qr, Method::Cholesky] {
        let x = solve(method, &a, &[2.0, 2.0], 0.0, false).unwrap().x.unwrap();
        assert!((x[0] - 1.0).abs() < 1e-14 && (x[1] - 0.5).abs() < 1e-14, "{method:?}: {x:?}");
    }
}

#[test]
fn what_is_no_matrix_by_rows_is_refused() {
    let refused = |starts: &[i32], columns: &[i32]| Columns::of_rows(1, starts, columns, &[1.0, 2.0]).err();
    for (starts, columns) in
        [([1, 2, 3], [1, 3]), ([1, 2, 3], [0, 1]), ([1, 3, 2], [1, 2]), ([1, 2, 4], [1, 2])]
    {
        assert_eq!(refused(&starts, &columns), Some(Failure::NotAMatrix), "{starts:?} {columns:?}");
    }
    assert_eq!(refused(&[0, 1, 2], &[1, 2]), Some(Failure::NotAMatrix));
}

#[test]
fn a_column_without_entries_is_told_of_where_factors_are_worked_on_in_blocks() {
    let (n, empty) = (120, 70);
    let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
    for row in 0..n {
        for column in (0..n).filter(|column| *column != empty) {
            columns.push(column);
            values.push(if row == column { 99.0 } else { f64::from((row * 7 + column * 3) % 11) });
        }
        starts.push(columns.len() as i32);
    }
    let a = Columns::of_rows(0, &starts, &columns, &values).unwrap();
    for method in [Method::Lu, Method::Qr] {
        let solved = solve(method, &a, &vec![1.0; n as usize], 1e-9, false).unwrap();
        assert_eq!(solved.singular, Some(empty as usize), "{method:?}");
    }
}

#[test]
fn factors_solve_as_often_as_they_are_asked_and_say_their_columns_in_order() {
    let (starts, columns, values) = grid(12);
    let a = Columns::of_rows(0, &starts, &columns, &values).unwrap();
    for method in [Method::Lu, Method::Qr, Method::Cholesky] {
        for reorders in [false, true] {
            let Factored::Whole(factors) = f64::factored(method, &a, reorders).unwrap() else {
                panic!("{method:?} of a grid ended");
            };
            let mut order: Vec<usize> = factors.pivots().iter().map(|(column, _)| *column).collect();
            assert!(reorders || order.is_sorted(), "{method:?}: {order:?}");
            order.sort_unstable();
            assert_eq!(order, (0..144).collect::<Vec<_>>());
            for shift in [0.0, 1.0] {
                let b: Vec<f64> = (0..144).map(|i| f64::from(i % 5) + shift).collect();
                let product = a.times(&factors.solve(&b).unwrap());
                assert!(product.iter().zip(&b).all(|(p, b)| (p - b).abs() < 1e-10), "{method:?} {reorders}");
            }
        }
    }
}

#[test]
fn the_nearest_eigenvalue_of_a_grid_is_found_and_all_are_counted() {
    let (starts, columns, values) = grid(7);
    let a = Columns::of_rows(0, &starts, &columns, &values).unwrap();
    let line = |i: usize| 2.0 - 2.0 * (std::f64::consts::PI * i as f64 / 8.0).cos();
    let wanted = line(2) + line(2);
    let from: Vec<f64> = (0..49).map(|i| f64::from(i % 9) - 2.0).collect();
    let (found, _) = nearest(&a, wanted + 0.01, &from, 200, 1e-10).unwrap();
    assert!((found - wanted).abs() < 1e-8, "{found} for {wanted}");
    let wide = a.map(|value| Complex::new(value, 0.0));
    let within = |low, high| count_within(&wide, (Complex::new(low, -1.0), Complex::new(high, 1.0))).unwrap();
    let below =
        (1..8).flat_map(|i| (1..8).map(move |j| line(i) + line(j))).filter(|value| *value < 3.1).count();
    assert_eq!((within(-1.0, 9.0), within(-1.0, 3.1), within(8.5, 9.0)), (49, below as i64, 0));
}

/// A matrix with these eigenvalues; `fill` stands above its diagonal.
fn triangular(eigenvalues: &[Complex<f64>], fill: f64) -> Columns<Complex<f64>> {
    let n = eigenvalues.len();
    let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
    for (row, eigenvalue) in eigenvalues.iter().enumerate() {
        for column in row..n {
            columns.push(column as i32);
            values.push(if row == column { *eigenvalue } else { Complex::new(fill, -fill) });
        }
        starts.push(columns.len() as i32);
    }
    Columns::of_rows(0, &starts, &columns, &values).unwrap()
}

#[test]
fn eigenvalues_in_a_rectangle_are_counted_wherever_they_are() {
    let mut state = 1_u64;
    let mut drawn = |reach: f64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        reach * ((state >> 11) as f64 / 2.0_f64.powi(52) - 1.0)
    };
    for round in 0..1000 {
        let is_real = round % 2 == 0;
        let eigenvalues: Vec<_> = (0..1 + round % 12)
            .map(|_| Complex::new(drawn(3.0), if is_real { 0.0 } else { drawn(3.0) }))
            .collect();
        let (low, high) =
            (Complex::new(drawn(4.0), -drawn(1.0).abs()), Complex::new(drawn(4.0), drawn(1.0).abs()));
        let is_near = |value: &Complex<f64>| {
            [value.re - low.re, value.re - high.re, value.im - low.im, value.im - high.im]
                .iter()
                .any(|gap| gap.abs() < 1e-3)
        };
        if eigenvalues.iter().any(is_near) || (high.re - low.re).abs() < 0.1 {
            continue;
        }
        let inside = |value: &&Complex<f64>| {
            (value.re - low.re) * (value.re - high.re) < 0.0 && value.im > low.im && value.im < high.im
        };
        let wanted = eigenvalues.iter().filter(inside).count() as i64;
        let fill = if is_real { 0.0 } else { 0.3 };
        let found = count_within(&triangular(&eigenvalues, fill), (low, high)).unwrap();
        assert_eq!(found, wanted, "{eigenvalues:?} in {low} to {high}");
    }
}

#[test]
fn a_column_that_depends_on_others_is_taken_out_of_least_squares() {
    let a = Columns::of_rows_of(
        3,
        0,
        &[0, 2, 4, 5, 7],
        &[0, 1, 0, 1, 2, 0, 1],
        &[1.0, 2.0, 2.0, 4.0, 1.0, 1.0, 2.0],
    );
    let found = least_squares(&a.unwrap(), &[1.0_f64, 2.0, 3.0, 4.0], 1e-12).unwrap();
    assert_eq!(found.rank, 2);
    // One of the two columns is left: 6 x = 9, or 24 x = 18; and the third one's unknown is 3.
    let x = found.x[found.order[0]].abs() + found.x[found.order[1]].abs();
    assert!((x - 4.5).abs() < 1e-12 || (x - 3.75).abs() < 1e-12, "{:?}", found.x);
    assert!((found.left - 7.5_f64.sqrt()).abs() < 1e-12, "{}", found.left);
}
