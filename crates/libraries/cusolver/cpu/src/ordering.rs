//! Orders of rows and columns: those that keep factors sparse, and those that bring entries to the diagonal.
//!
//! An order says for each place which row or column of the matrix is there.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::SymbolicSparseColMatRef;
use faer::sparse::linalg::amd;

use crate::sparse::Failure;

/// Where a matrix of `columns` columns has entries, by rows.
pub struct Pattern {
    columns: usize,
    rows: Vec<Vec<usize>>,
}

impl Pattern {
    /// Of a matrix whose numbers count from `base`; row `i` lies from `starts[i]` to `ends[i]`. Entries of which `counts` says no are none.
    ///
    /// # Errors
    /// The arrays are no matrix.
    pub fn of_rows(
        base: i32,
        columns: usize,
        (starts, ends): (&[i32], &[i32]),
        indices: &[i32],
        counts: impl Fn(usize) -> bool,
    ) -> Result<Pattern, Failure> {
        let number = |number: i32| usize::try_from(i64::from(number) - i64::from(base)).ok();
        let row = |(start, end): (&i32, &i32)| -> Option<Vec<usize>> {
            let range = number(*start)?..number(*end)?;
            let indices = indices.get(range.clone())?;
            let entries = range.zip(indices).filter(|(at, _)| counts(*at));
            entries.map(|(_, index)| number(*index).filter(|column| *column < columns)).collect()
        };
        let rows = starts.iter().zip(ends).map(row).collect::<Option<Vec<_>>>();
        Ok(Pattern { columns, rows: rows.ok_or(Failure::NotAMatrix)? })
    }

    fn size(&self) -> usize {
        self.rows.len()
    }

    /// Whether each entry has one across the diagonal of a square matrix.
    #[must_use]
    pub fn is_symmetric(&self) -> bool {
        let mut entries: Vec<_> = self.entries().collect();
        entries.sort_unstable();
        entries.dedup();
        entries.iter().all(|(row, column)| entries.binary_search(&(*column, *row)).is_ok())
    }

    fn entries(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..).zip(&self.rows).flat_map(|(row, columns)| columns.iter().map(move |column| (row, *column)))
    }

    /// Of a square matrix and its transposed one the entries beside the diagonal, by rows.
    fn neighbours(&self) -> Vec<Vec<usize>> {
        let mut neighbours = vec![Vec::new(); self.size()];
        for (row, column) in self.entries().filter(|(row, column)| row != column) {
            neighbours[row].push(column);
            neighbours[column].push(row);
        }
        for line in &mut neighbours {
            line.sort_unstable();
            line.dedup();
        }
        neighbours
    }

    /// The order of Cuthill and McKee the other way round: entries come near the diagonal.
    #[must_use]
    pub fn reverse_cuthill_mckee(&self) -> Vec<usize> {
        let neighbours = self.neighbours();
        let degree = |node: &usize| neighbours[*node].len();
        let mut is_placed = vec![false; self.size()];
        let mut order = Vec::with_capacity(self.size());
        let mut nodes: Vec<usize> = (0..self.size()).collect();
        nodes.sort_by_key(degree);
        for node in nodes {
            if is_placed[node] {
                continue;
            }
            let first = far_end(&neighbours, node);
            is_placed[first] = true;
            let mut at = order.len();
            order.push(first);
            while at < order.len() {
                let begin = order.len();
                for next in &neighbours[order[at]] {
                    if !core::mem::replace(&mut is_placed[*next], true) {
                        order.push(*next);
                    }
                }
                order[begin..].sort_by_key(degree);
                at += 1;
            }
        }
        order.reverse();
        order
    }

    /// The approximate minimum degree order of a square matrix and its transposed one, by `faer`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn minimum_degree(&self) -> Result<Vec<usize>, Failure> {
        let n = self.size();
        let neighbours = self.neighbours();
        let mut starts = vec![0];
        starts.extend(neighbours.iter().scan(0, |sum, line| {
            *sum += line.len();
            Some(*sum)
        }));
        let entries: Vec<usize> = neighbours.concat();
        let pattern = SymbolicSparseColMatRef::new_checked(n, n, &starts, None, &entries);
        let (mut order, mut inverse) = (vec![0; n], vec![0; n]);
        let area = amd::order_scratch::<usize>(n, entries.len());
        let mut area = MemBuffer::try_new(area).map_err(|_| Failure::NoMemory)?;
        amd::order(&mut order, &mut inverse, pattern, amd::Control::default(), MemStack::new(&mut area))?;
        Ok(order)
    }

    /// An order of the rows of a square matrix by which as many diagonal elements as can be are entries, and how many.
    #[must_use]
    pub fn zero_free_diagonal(&self) -> (Vec<usize>, usize) {
        let n = self.size();
        let mut row_of = vec![usize::MAX; self.columns];
        // By whose turn a column was looked at.
        let mut seen = vec![usize::MAX; self.columns];
        for first in 0..n {
            // Rows that have to go, each with the entries that are looked at next, and the column by which it came.
            let mut path = vec![(first, 0, usize::MAX)];
            while let Some((row, next, _)) = path.last_mut() {
                let Some(column) = self.rows[*row].get(*next).copied() else {
                    path.pop();
                    continue;
                };
                *next += 1;
                if core::mem::replace(&mut seen[column], first) == first {
                    continue;
                }
                if row_of[column] != usize::MAX {
                    path.push((row_of[column], 0, column));
                    continue;
                }
                // Free: each row on the path takes the column behind it.
                let mut free = column;
                while let Some((row, _, by)) = path.pop() {
                    row_of[free] = row;
                    free = by;
                }
            }
        }
        let mut is_taken = vec![false; n];
        row_of.iter().filter(|row| **row < n).for_each(|row| is_taken[*row] = true);
        let found = is_taken.iter().filter(|is_taken| **is_taken).count();
        let mut left = (0..n).filter(|row| !is_taken[*row]);
        for row in row_of.iter_mut().filter(|row| **row == usize::MAX) {
            *row = left.next().unwrap_or(0);
        }
        (row_of, found)
    }
}

/// A node from which others are about as far as they can be: the far end of a far end, until that does not grow.
fn far_end(neighbours: &[Vec<usize>], start: usize) -> usize {
    let (mut node, mut length) = (start, 0);
    let mut seen = vec![usize::MAX; neighbours.len()];
    for turn in 0.. {
        let (mut level, mut depth) = (vec![node], 0);
        seen[node] = turn;
        loop {
            let mut next = Vec::new();
            for neighbour in level.iter().flat_map(|node| &neighbours[*node]) {
                if core::mem::replace(&mut seen[*neighbour], turn) != turn {
                    next.push(*neighbour);
                }
            }
            if next.is_empty() {
                break;
            }
            (level, depth) = (next, depth + 1);
        }
        if depth <= length && turn > 0 {
            break;
        }
        let last = level.into_iter().min_by_key(|node| neighbours[*node].len());
        (node, length) = (last.unwrap_or(node), depth);
    }
    node
}

/// Where rows begin, their columns, and which entry each was.
pub type Permuted = (Vec<usize>, Vec<usize>, Vec<usize>);

/// `B = A(rows, columns)` of a matrix by rows whose numbers count from 0: where B's rows begin, its columns, and which entry of A each is.
/// Columns ascend.
///
/// # Errors
/// The orders are none, or the arrays are no matrix.
pub fn permuted(
    (starts, indices): (&[usize], &[usize]),
    (rows, columns): (&[usize], &[usize]),
) -> Result<Permuted, Failure> {
    let mut place = vec![usize::MAX; columns.len()];
    for (at, column) in columns.iter().enumerate() {
        let place = place.get_mut(*column).filter(|place| **place == usize::MAX);
        *place.ok_or(Failure::NotAMatrix)? = at;
    }
    let mut is_used = vec![false; rows.len()];
    let (mut to_starts, mut entries) = (vec![0], Vec::with_capacity(indices.len()));
    for row in rows {
        let is_used = is_used.get_mut(*row).ok_or(Failure::NotAMatrix)?;
        if core::mem::replace(is_used, true) {
            return Err(Failure::NotAMatrix);
        }
        let begin = entries.len();
        let range = starts[*row]..starts[*row + 1];
        let line = indices.get(range.clone()).ok_or(Failure::NotAMatrix)?;
        for (from, column) in range.zip(line) {
            entries.push((*place.get(*column).ok_or(Failure::NotAMatrix)?, from));
        }
        entries[begin..].sort_unstable();
        to_starts.push(entries.len());
    }
    let (columns, from) = entries.into_iter().unzip();
    Ok((to_starts, columns, from))
}
