//! Elimination in a pattern that is given, beside elimination of the whole matrix.

use cusolver_cpu::refactor::{Lines, Outcome, Pattern, order};
use cusolver_cpu::sparse::Failure;

/// A's pattern of four rows, whose elimination fills one entry that it has not.
fn pattern() -> Pattern {
    let a = Lines::new(&[0, 2, 5, 8, 11], &[0, 1, 0, 1, 2, 1, 2, 3, 0, 2, 3]).unwrap();
    let nothing = Lines::new(&[0, 0, 0, 0, 0], &[]).unwrap();
    Pattern::new(&a, &nothing, &nothing, vec![0, 1, 2, 3], vec![0, 1, 2, 3]).unwrap()
}

const VALUES: [f64; 11] = [4.0, 1.0, 1.0, 5.0, 2.0, 2.0, 6.0, 1.0, 3.0, 1.0, 7.0];

#[test]
fn a_pattern_has_room_for_what_elimination_fills() {
    let pattern = pattern();
    let mut m = pattern.assembled(VALUES.into_iter());
    assert_eq!(pattern.factor(&mut m, 0.0, 0.0), Outcome::default());
    let bundled = pattern.bundled(&m, false);
    assert_eq!(bundled.starts, [0, 2, 5, 8, 12]);
    assert_eq!(bundled.indices, [0, 1, 0, 1, 2, 1, 2, 3, 0, 1, 2, 3]);
    // -3/4·1 of the row above, by its pivot of 19/4.
    assert!((bundled.values[9] + 0.75 / 4.75).abs() < 1e-15, "{:?}", bundled.values);
    let mut x = [1.0, 2.0, 3.0, 4.0];
    let natural = [0, 1, 2, 3];
    pattern.solve(&m, (&natural, &natural), &mut x);
    let rows = [[4.0, 1.0, 0.0, 0.0], [1.0, 5.0, 2.0, 0.0], [0.0, 2.0, 6.0, 1.0], [3.0, 0.0, 1.0, 7.0]];
    for (i, row) in rows.iter().enumerate() {
        let product: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
        assert!((product - (i + 1) as f64).abs() < 1e-14, "row {i}: {product}");
    }
}

#[test]
fn a_pivot_that_is_none_is_told_or_boosted() {
    let pattern = pattern();
    let mut values = VALUES;
    values[3] = 0.25;
    let mut m = pattern.assembled(values.into_iter());
    assert_eq!(pattern.factor(&mut m, 0.0, 0.0).zero_pivot, Some(1));
    let mut m = pattern.assembled(values.into_iter());
    assert_eq!(pattern.factor(&mut m, 0.0, 0.5), Outcome { zero_pivot: None, is_boosted: true });
    assert!((m[3] - 0.5).abs() < f64::EPSILON);
}

#[test]
fn what_is_no_pattern_is_refused() {
    assert_eq!(order(&[0, 1, 1]), Err(Failure::NotAMatrix));
    assert_eq!(order(&[0, 3, 1]), Err(Failure::NotAMatrix));
    for (starts, indices) in [
        (vec![0, 1, 3], vec![0, 1]),
        (vec![1, 1, 2], vec![0, 1]),
        (vec![0, 1, 2], vec![0, 2]),
        (vec![], vec![]),
    ] {
        assert_eq!(Lines::new(&starts, &indices), Err(Failure::NotAMatrix), "{starts:?}");
    }
    let lower = Lines::new(&[0, 1, 3], &[0, 0, 1]).unwrap();
    let refused = Pattern::new(&lower, &lower, &lower, vec![0, 1], vec![0, 1]).err();
    assert_eq!(refused, Some(Failure::NotAMatrix), "an upper factor that is a lower one");
}
