//! Orders of rows and columns of small matrices whose answers are known.

use cusolver_cpu::ordering::{Pattern, permuted};

/// Of a matrix that counts from 1.
fn pattern(rows: &[&[i32]]) -> Pattern {
    let indices: Vec<i32> = rows.iter().flat_map(|row| row.iter().map(|column| column + 1)).collect();
    let mut starts = vec![1];
    for row in rows {
        starts.push(starts[starts.len() - 1] + i32::try_from(row.len()).unwrap());
    }
    let ends = &starts[1..];
    Pattern::of_rows(1, rows.len(), (&starts[..rows.len()], ends), &indices, |_| true).unwrap()
}

fn is_an_order(order: &[usize]) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..order.len())
}

#[test]
fn a_line_that_was_shuffled_is_a_band_again() {
    // 3 - 0 - 4 - 1 - 2, and 5 alone.
    let rows: [&[i32]; 6] = [&[3, 4], &[4, 2], &[], &[], &[], &[5]];
    let a = pattern(&rows);
    let order = a.reverse_cuthill_mckee();
    assert!(is_an_order(&order), "{order:?}");
    let place = &|node: usize| order.iter().position(|it| *it == node).unwrap();
    let far = rows.iter().enumerate().flat_map(|(row, columns)| {
        columns.iter().map(move |column| place(row).abs_diff(place(usize::try_from(*column).unwrap())))
    });
    assert_eq!(far.max(), Some(1), "{order:?}");
    assert!(is_an_order(&a.minimum_degree().unwrap()));
    assert!(!a.is_symmetric());
    assert!(pattern(&[&[1], &[0, 1]]).is_symmetric());
}

#[test]
fn rows_go_where_their_entries_are_on_the_diagonal() {
    // Only one order has them all: row 0 in column 2, row 1 in 0, row 2 in 1.
    let (order, count) = pattern(&[&[0, 2], &[0], &[0, 1]]).zero_free_diagonal();
    assert_eq!((order, count), (vec![1, 2, 0], 3));
    let (order, count) = pattern(&[&[0], &[0], &[1]]).zero_free_diagonal();
    assert!(is_an_order(&order));
    assert_eq!(count, 2);
}

#[test]
fn orders_of_rows_and_columns_take_entries_along() {
    let found = permuted((&[0, 2, 3], &[0, 1, 1]), (&[1, 0], &[1, 0])).unwrap();
    assert_eq!(found, (vec![0, 1, 3], vec![0, 0, 1], vec![2, 1, 0]));
    assert!(permuted((&[0, 2, 3], &[0, 1, 1]), (&[1, 1], &[1, 0])).is_err());
}
