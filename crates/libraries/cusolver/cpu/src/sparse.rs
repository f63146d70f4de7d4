//! Systems of sparse matrices: `faer`'s LU, QR and Cholesky, over orderings that keep factors sparse, or none.
//!
//! The rule: a matrix that is singular for the caller's bound is told of and solved all the same, as cuSOLVER does it; there is no solution
//! only where a factorization ends early.

use std::collections::TryReserveError;

use cublas_cpu::Scalar;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::LltError;
use faer::perm::PermRef;
use faer::sparse::linalg::cholesky::{self, SymbolicCholeskyRaw, SymmetricOrdering, supernodal as blocks};
use faer::sparse::linalg::lu::simplicial as lu;
use faer::sparse::linalg::qr::{self, simplicial, supernodal};
use faer::sparse::linalg::{LuError, colamd};
use faer::sparse::{FaerError, SparseColMatRef, SymbolicSparseColMatRef};
use faer::traits::ComplexField;
use faer::{Conj, MatMut, Par, Side};

use crate::Field;

/// How a system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Rows are exchanged so that pivots are a column's largest.
    Lu,
    Qr,
    /// Of a Hermitian matrix, whose upper triangle is not read.
    Cholesky,
}

/// Why there is nothing that could be told of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Rows begin and end where they cannot, or an entry is in no column.
    NotAMatrix,
    NoMemory,
}

/// What is found of a system.
pub struct Solved<T> {
    /// None where the factorization had to end early.
    pub x: Option<Vec<T>>,
    /// The first column whose pivot is not above the bound.
    pub singular: Option<usize>,
}

/// A square matrix by columns, whose rows ascend and are in each column once.
pub struct Columns<T> {
    n: usize,
    starts: Vec<usize>,
    rows: Vec<usize>,
    values: Vec<T>,
}

impl<T: Scalar> Columns<T> {
    /// Of a matrix by rows, whose numbers count from `base`. Entries that are there twice are added.
    ///
    /// # Errors
    /// The arrays are no matrix.
    pub fn of_rows(base: i32, starts: &[i32], columns: &[i32], values: &[T]) -> Result<Self, Failure> {
        let n = starts.len().saturating_sub(1);
        let number = |number: i32| usize::try_from(i64::from(number) - i64::from(base)).ok();
        let starts: Option<Vec<usize>> = starts.iter().map(|start| number(*start)).collect();
        let starts = starts.ok_or(Failure::NotAMatrix)?;
        let ascends = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = starts.last().is_none_or(|end| *end <= columns.len().min(values.len()));
        if !ascends || !ends {
            return Err(Failure::NotAMatrix);
        }
        // Row after row, so that each column's rows ascend.
        let mut counts = vec![0; n + 1];
        let mut entries = Vec::with_capacity(columns.len());
        for row in 0..n {
            for at in starts[row]..starts[row + 1] {
                let column = number(columns[at]).filter(|column| *column < n).ok_or(Failure::NotAMatrix)?;
                counts[column + 1] += 1;
                entries.push((row, column, values[at]));
            }
        }
        Ok(Self::sorted(n, counts, &entries))
    }

    /// `counts[column + 1]` of the entries are in a column, and rows ascend.
    fn sorted(n: usize, mut counts: Vec<usize>, entries: &[(usize, usize, T)]) -> Self {
        for column in 0..n {
            counts[column + 1] += counts[column];
        }
        let (mut next, zero) = (counts.clone(), <T as num_traits::Zero>::zero());
        let mut placed = vec![(0, zero); entries.len()];
        for &(row, column, value) in entries {
            placed[next[column]] = (row, value);
            next[column] += 1;
        }
        let mut made = Self { n, starts: vec![0], rows: Vec::new(), values: Vec::new() };
        for column in 0..n {
            let begin = made.rows.len();
            for &(row, value) in &placed[counts[column]..counts[column + 1]] {
                match made.values.last_mut() {
                    Some(last) if made.rows.len() > begin && made.rows.last() == Some(&row) => *last += value,
                    _ => {
                        made.rows.push(row);
                        made.values.push(value);
                    }
                }
            }
            made.starts.push(made.rows.len());
        }
        made
    }

    fn entries(&self) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        (0..self.n).flat_map(move |column| {
            (self.starts[column]..self.starts[column + 1])
                .map(move |at| (self.rows[at], column, self.values[at]))
        })
    }

    fn with(n: usize, entries: impl Iterator<Item = (usize, usize, T)>) -> Self {
        let entries: Vec<_> = entries.collect();
        let mut counts = vec![0; n + 1];
        entries.iter().for_each(|(_, column, _)| counts[column + 1] += 1);
        Self::sorted(n, counts, &entries)
    }

    fn transposed(&self) -> Self {
        Self::with(self.n, self.entries().map(|(row, column, value)| (column, row, value)))
    }

    /// The upper triangle of the Hermitian matrix that has this one's lower triangle.
    fn upper(&self) -> Self {
        let lower = self.entries().filter(|(row, column, _)| row >= column);
        Self::with(self.n, lower.map(|(row, column, value)| (column, row, value.conj())))
    }

    fn pattern(&self) -> SymbolicSparseColMatRef<'_, usize> {
        SymbolicSparseColMatRef::new_checked(self.n, self.n, &self.starts, None, &self.rows)
    }

    fn faer(&self) -> SparseColMatRef<'_, usize, T> {
        SparseColMatRef::new(self.pattern(), &self.values)
    }
}

/// Solves `A x = b`. Columns may be taken in another order where `reorders`; which one is first among those whose pivots are not above
/// `tol` then depends on it, as it does in cuSOLVER.
///
/// # Errors
/// There is not enough memory.
pub fn solve<T: Field>(
    method: Method,
    a: &Columns<T>,
    b: &[T],
    tol: f64,
    reorders: bool,
) -> Result<Solved<T>, Failure> {
    if a.n == 0 {
        return Ok(Solved { x: Some(Vec::new()), singular: None });
    }
    T::sparse(method, a, b, tol, reorders)
}

/// The types that `faer` factors.
pub(crate) fn solve_by_faer<T: Scalar + ComplexField>(
    method: Method,
    a: &Columns<T>,
    b: &[T],
    tol: f64,
    reorders: bool,
    par: Par,
) -> Result<Solved<T>, Failure> {
    let tol = tol.max(0.0);
    match method {
        Method::Lu => by_lu(a, b, tol, reorders, par),
        Method::Qr => by_qr(a, b, tol, reorders, par),
        Method::Cholesky => by_cholesky(a, b, tol, reorders, par),
    }
}

impl From<TryReserveError> for Failure {
    fn from(_: TryReserveError) -> Self {
        Failure::NoMemory
    }
}

impl From<FaerError> for Failure {
    fn from(_: FaerError) -> Self {
        Failure::NoMemory
    }
}

fn area(of: StackReq) -> Result<MemBuffer, Failure> {
    MemBuffer::try_new(of).map_err(|_| Failure::NoMemory)
}

fn zeros<T: Scalar>(count: usize) -> Result<Vec<T>, Failure> {
    let mut made = Vec::new();
    made.try_reserve_exact(count)?;
    made.resize(count, <T as num_traits::Zero>::zero());
    Ok(made)
}

/// Whether a pivot is not above the bound; one that is no number is not.
fn is_small<T: Scalar>(pivot: T, tol: f64) -> bool {
    let size = num_traits::ToPrimitive::to_f64(&Scalar::modulus(pivot)).unwrap_or(f64::NAN);
    !matches!(size.partial_cmp(&tol), Some(core::cmp::Ordering::Greater))
}

/// An order of columns, and its inverse.
struct Order {
    forward: Vec<usize>,
    inverse: Vec<usize>,
}

impl Order {
    /// The one that keeps the factors of LU and QR sparse, or that of the columns.
    fn of<T: Scalar>(a: &Columns<T>, reorders: bool) -> Result<Order, Failure> {
        let natural: Vec<usize> = (0..a.n).collect();
        let mut order = Order { forward: natural.clone(), inverse: natural };
        if reorders {
            let mut area = area(colamd::order_scratch::<usize>(a.n, a.n, a.rows.len()))?;
            let stack = MemStack::new(&mut area);
            let control = colamd::Control::default();
            colamd::order(&mut order.forward, &mut order.inverse, a.pattern(), control, stack)?;
        }
        Ok(order)
    }

    fn as_faer(&self) -> PermRef<'_, usize> {
        PermRef::new_checked(&self.forward, &self.inverse, self.forward.len())
    }
}

fn by_lu<T: Scalar + ComplexField>(
    a: &Columns<T>,
    b: &[T],
    tol: f64,
    reorders: bool,
    par: Par,
) -> Result<Solved<T>, Failure> {
    let n = a.n;
    let order = Order::of(a, reorders)?;
    let (mut rows, mut places) = (vec![0; n], vec![0; n]);
    let mut factors = lu::SimplicialLu::new();
    let mut buffer = area(lu::factorize_simplicial_numeric_lu_scratch::<usize, T>(n, n))?;
    let stack = MemStack::new(&mut buffer);
    let columns = order.as_faer();
    match lu::factorize_simplicial_numeric_lu(&mut rows, &mut places, &mut factors, a.faer(), columns, stack)
    {
        Ok(()) => (),
        Err(LuError::SymbolicSingular { index }) => {
            return Ok(Solved { x: None, singular: Some(order.forward[index]) });
        }
        Err(LuError::Generic(error)) => return Err(error.into()),
    }
    let u = factors.u_factor_unsorted();
    // A column's pivot is its last entry.
    let pivot = |column: usize| u.val_of_col(column).last().copied();
    let small = (0..n).find(|column| pivot(*column).is_none_or(|pivot| is_small(pivot, tol)));
    let mut x = b.to_vec();
    let mut buffer = area(lu::solve_in_place_scratch::<usize, T>(n, 1, par))?;
    factors.solve_in_place_with_conj(
        PermRef::new_checked(&rows, &places, n),
        columns,
        Conj::No,
        MatMut::from_column_major_slice_mut(&mut x, n, 1),
        par,
        MemStack::new(&mut buffer),
    );
    Ok(Solved { x: Some(x), singular: small.map(|column| order.forward[column]) })
}

/// Factors with more entries for each column than this are worked on in blocks.
const BLOCKS_FROM: f64 = 40.0;

fn by_qr<T: Scalar + ComplexField>(
    a: &Columns<T>,
    b: &[T],
    tol: f64,
    reorders: bool,
    par: Par,
) -> Result<Solved<T>, Failure> {
    let n = a.n;
    let order = Order::of(a, reorders)?;
    let by_rows = a.transposed();
    let mut buffer = area(StackReq::any_of(&[
        qr::col_etree_scratch::<usize>(n, n),
        qr::postorder_scratch::<usize>(n),
        qr::column_counts_aat_scratch::<usize>(n, n),
        simplicial::factorize_simplicial_symbolic_qr_scratch::<usize>(n, n),
        supernodal::factorize_supernodal_symbolic_qr_scratch::<usize>(n, n),
    ]))?;
    let stack = MemStack::new(&mut buffer);
    let (mut tree, mut post) = (vec![0; n], vec![0; n]);
    let (mut counts, mut firsts) = (vec![0; n], vec![0; n]);
    let columns = Some(order.as_faer());
    let tree = qr::col_etree(a.pattern(), columns, &mut tree, stack);
    qr::postorder(&mut post, tree, stack);
    qr::column_counts_ata(&mut counts, &mut firsts, by_rows.pattern(), columns, tree, &post, stack);
    let (entries, work) = counts.iter().fold((0.0, 0.0), |(entries, work), count| {
        let count = *count as f64;
        (entries + count, work + count * count)
    });
    let mut x = b.to_vec();
    let side = MatMut::from_column_major_slice_mut(&mut x, n, 1);
    let small = if work > BLOCKS_FROM * entries && has_pivots(tree.into_inner(), &firsts) {
        let parts = supernodal::factorize_supernodal_symbolic_qr(
            a.pattern(),
            columns,
            firsts,
            tree,
            &counts,
            stack,
            Default::default(),
        )?;
        let reflections = parts.householder();
        let panels = reflections.len_householder_row_idx() + reflections.n_supernodes();
        let mut indices = vec![0; reflections.len_householder_row_idx()];
        let (mut sizes, mut heights, mut widths) = (vec![0; panels], vec![0; panels], vec![0; panels]);
        let mut r = zeros(parts.R_adjoint().len_val())?;
        let (mut h, mut tau) = (zeros(reflections.len_householder_val())?, zeros(reflections.len_tau_val())?);
        let mut buffer = area(StackReq::or(
            supernodal::factorize_supernodal_numeric_qr_scratch::<usize, T>(&parts, par, Default::default()),
            parts.solve_in_place_scratch::<T>(1, par),
        ))?;
        let stack = MemStack::new(&mut buffer);
        let factors = supernodal::factorize_supernodal_numeric_qr(
            &mut indices,
            &mut sizes,
            &mut heights,
            &mut widths,
            &mut r,
            &mut h,
            &mut tau,
            by_rows.faer(),
            columns,
            &parts,
            par,
            stack,
            Default::default(),
        );
        factors.solve_in_place_with_conj(Conj::No, side, par, stack);
        small_in_blocks(blocks::SupernodalLltRef::new(parts.R_adjoint(), factors.R_val()), tol)
    } else {
        let parts = simplicial::factorize_simplicial_symbolic_qr(&firsts, tree, &counts, stack)?;
        let (mut r_starts, mut h_starts) = (vec![0; n + 1], vec![0; n + 1]);
        let (mut r_rows, mut h_rows) = (vec![0; parts.len_r()], vec![0; parts.len_householder()]);
        let (mut r, mut h) = (zeros(parts.len_r())?, zeros(parts.len_householder())?);
        let mut tau = zeros(n)?;
        let mut buffer = area(StackReq::or(
            simplicial::factorize_simplicial_numeric_qr_scratch::<usize, T>(&parts),
            parts.solve_in_place_scratch::<T>(1, par),
        ))?;
        let stack = MemStack::new(&mut buffer);
        let factors = simplicial::factorize_simplicial_numeric_qr_unsorted(
            &mut r_starts,
            &mut r_rows,
            &mut r,
            &mut h_starts,
            &mut h_rows,
            &mut h,
            &mut tau,
            a.faer(),
            columns,
            &parts,
            stack,
        );
        factors.solve_in_place_with_conj(Conj::No, side, par, stack);
        // A column's entry on the diagonal is its last one.
        let pivot = |column: usize| factors.R().val_of_col(column).last().copied();
        (0..n).find(|column| pivot(*column).is_none_or(|pivot| is_small(pivot, tol)))
    };
    // Column i of the factors is column `forward[i]` of the matrix.
    let solution = order.inverse.iter().map(|place| x[*place]).collect();
    Ok(Solved { x: Some(solution), singular: small.map(|column| order.forward[column]) })
}

/// Whether a row is left for each column's pivot, which blocks of `faer` 0.24's QR take for granted. Of the rows that begin in a column or come
/// from those below it in the tree, one stays there and the others go on.
fn has_pivots(tree: &[isize], firsts: &[usize]) -> bool {
    let mut rows = vec![0_usize; tree.len()];
    // A row without entries begins nowhere.
    for &first in firsts {
        if let Some(count) = rows.get_mut(first) {
            *count += 1;
        }
    }
    (0..tree.len()).all(|column| {
        let left = rows[column].checked_sub(1);
        if let (Some(left), Ok(parent)) = (left, usize::try_from(tree[column])) {
            rows[parent] += left;
        }
        left.is_some()
    })
}

/// The first column of triangular blocks whose entry on the diagonal is small.
fn small_in_blocks<T: Scalar + ComplexField>(
    factor: blocks::SupernodalLltRef<'_, usize, T>,
    tol: f64,
) -> Option<usize> {
    (0..factor.symbolic().n_supernodes()).find_map(|block| {
        let block = factor.supernode(block);
        let values = block.val();
        (0..values.ncols()).find(|i| is_small(values[(*i, *i)], tol)).map(|i| block.start() + i)
    })
}

fn by_cholesky<T: Scalar + ComplexField>(
    a: &Columns<T>,
    b: &[T],
    tol: f64,
    reorders: bool,
    par: Par,
) -> Result<Solved<T>, Failure> {
    let n = a.n;
    // In the natural order `faer` 0.24 finds the structure of an upper triangle only.
    let a = a.upper();
    let ordering = if reorders { SymmetricOrdering::Amd } else { SymmetricOrdering::Identity };
    let parts =
        cholesky::factorize_symbolic_cholesky(a.pattern(), Side::Upper, ordering, Default::default())?;
    let column = |place: usize| parts.perm().map_or(place, |order| order.arrays().0[place]);
    let mut values = zeros(parts.len_val())?;
    let mut buffer = area(StackReq::or(
        parts.factorize_numeric_llt_scratch::<T>(par, Default::default()),
        parts.solve_in_place_scratch::<T>(1, par),
    ))?;
    let stack = MemStack::new(&mut buffer);
    let factored = parts.factorize_numeric_llt(
        &mut values,
        a.faer(),
        Side::Upper,
        Default::default(),
        par,
        stack,
        Default::default(),
    );
    let mut x = b.to_vec();
    match factored {
        Ok(factors) => {
            let side = MatMut::from_column_major_slice_mut(&mut x, n, 1);
            factors.solve_in_place_with_conj(Conj::No, side, par, stack);
        }
        Err(LltError::NonPositivePivot { index }) => {
            // Blocks count from 0, single entries from 1.
            let place = match parts.raw() {
                SymbolicCholeskyRaw::Simplicial(_) => index.saturating_sub(1),
                SymbolicCholeskyRaw::Supernodal(_) => index,
            };
            return Ok(Solved { x: None, singular: Some(column(place)) });
        }
    }
    let small = match parts.raw() {
        // A column's entry on the diagonal is its first one.
        SymbolicCholeskyRaw::Simplicial(parts) => {
            (0..n).find(|column| is_small(values[parts.col_ptr()[*column]], tol))
        }
        SymbolicCholeskyRaw::Supernodal(parts) => {
            small_in_blocks(blocks::SupernodalLltRef::new(parts, &values), tol)
        }
    };
    Ok(Solved { x: Some(x), singular: small.map(column) })
}
