//! Factors of sparse matrices, as `faer` makes them, kept for as many right sides as there are.
//!
//! The rule: factors of a singular matrix are factors all the same; there are none only where a factorization ends early.

use cublas_cpu::Scalar;
use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::cholesky::llt::factor::LltError;
use faer::perm::PermRef;
use faer::sparse::linalg::cholesky::{
    self, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering, supernodal as blocks,
};
use faer::sparse::linalg::lu::simplicial as lu;
use faer::sparse::linalg::qr::{self, simplicial, supernodal};
use faer::sparse::linalg::{LuError, colamd};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMatRef};
use faer::traits::ComplexField;
use faer::{Conj, MatMut, Par, Side};

use crate::sparse::{Columns, Failure, Method};

/// What a factorization leaves.
pub enum Factored<F> {
    Whole(F),
    /// It had to end at a column of the matrix: a minor that is not positive, a column of LU without any entry that could be a pivot.
    Ended(usize),
}

/// Factors that are kept.
pub trait Factors<T>: Send + Sync {
    /// The solution of `A x = b`; of a matrix that has more rows than columns, the one that leaves least.
    ///
    /// # Errors
    /// There is not enough memory.
    fn solve(&self, b: &[T]) -> Result<Vec<T>, Failure>;

    /// The columns of the matrix in the order in which they were taken, each with its entry on the factor's diagonal.
    fn pivots(&self) -> Vec<(usize, T)>;

    /// LU's own.
    fn triangles(&self) -> Option<Triangles<T>> {
        None
    }
}

/// `A(rows, columns) = L·U`
pub struct Triangles<T> {
    pub rows: Vec<usize>,
    pub columns: Vec<usize>,
    /// Without its diagonal, which is of ones.
    pub lower: Columns<T>,
    pub upper: Columns<T>,
}

impl<T: Scalar> Triangles<T> {
    /// The solution of `Aᴴ x = b`.
    #[must_use]
    pub fn solve_adjoint(&self, b: &[T]) -> Vec<T> {
        let mut inner: Vec<T> = self.columns.iter().map(|column| b[*column]).collect();
        let (starts, rows, values) = self.upper.parts();
        for column in 0..inner.len() {
            let (mut sum, mut pivot) = (inner[column], T::zero());
            for at in starts[column]..starts[column + 1] {
                match rows[at] {
                    row if row == column => pivot = values[at].conj(),
                    row => sum -= values[at].conj() * inner[row],
                }
            }
            inner[column] = sum / pivot;
        }
        let (starts, rows, values) = self.lower.parts();
        for column in (0..inner.len()).rev() {
            let entries = starts[column]..starts[column + 1];
            let sum =
                entries.map(|at| values[at].conj() * inner[rows[at]]).fold(T::zero(), |sum, term| sum + term);
            inner[column] -= sum;
        }
        let mut x = inner.clone();
        self.rows.iter().zip(&inner).for_each(|(row, value)| x[*row] = *value);
        x
    }
}

/// The first column whose pivot is not above the bound, in the order in which columns were taken; one that is no number is not.
pub fn first_small<T: Scalar>(pivots: &[(usize, T)], tol: f64) -> Option<usize> {
    pivots.iter().find(|(_, pivot)| is_small(*pivot, tol.max(0.0))).map(|(column, _)| *column)
}

/// The types that `faer` factors.
pub(crate) fn factored_by_faer<T: Scalar + ComplexField>(
    method: Method,
    a: &Columns<T>,
    reorders: bool,
    par: Par,
) -> Result<Factored<Box<dyn Factors<T>>>, Failure> {
    fn kept<T, F: Factors<T> + 'static>(of: Factored<F>) -> Factored<Box<dyn Factors<T>>> {
        match of {
            Factored::Whole(factors) => Factored::Whole(Box::new(factors)),
            Factored::Ended(column) => Factored::Ended(column),
        }
    }
    Ok(match method {
        Method::Lu => kept(Lu::of(a, reorders, par)?),
        Method::Qr => kept(Factored::Whole(Qr::of(a, reorders, par)?)),
        Method::Cholesky => kept(Cholesky::of(a, reorders, par)?),
    })
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
        let (height, n) = a.size();
        let natural: Vec<usize> = (0..n).collect();
        let mut order = Order { forward: natural.clone(), inverse: natural };
        if reorders {
            let mut area = area(colamd::order_scratch::<usize>(height, n, a.parts().1.len()))?;
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

struct Lu<T> {
    par: Par,
    order: Order,
    rows: Order,
    factors: lu::SimplicialLu<usize, T>,
}

impl<T: Scalar + ComplexField> Lu<T> {
    fn of(a: &Columns<T>, reorders: bool, par: Par) -> Result<Factored<Self>, Failure> {
        let (_, n) = a.size();
        let order = Order::of(a, reorders)?;
        let mut rows = Order { forward: vec![0; n], inverse: vec![0; n] };
        let mut factors = lu::SimplicialLu::new();
        let mut buffer = area(lu::factorize_simplicial_numeric_lu_scratch::<usize, T>(n, n))?;
        let stack = MemStack::new(&mut buffer);
        let (forward, inverse) = (&mut rows.forward, &mut rows.inverse);
        let columns = order.as_faer();
        match lu::factorize_simplicial_numeric_lu(forward, inverse, &mut factors, a.faer(), columns, stack) {
            Ok(()) => Ok(Factored::Whole(Self { par, order, rows, factors })),
            Err(LuError::SymbolicSingular { index }) => Ok(Factored::Ended(order.forward[index])),
            Err(LuError::Generic(error)) => Err(error.into()),
        }
    }
}

impl<T: Scalar + ComplexField> Factors<T> for Lu<T> {
    fn solve(&self, b: &[T]) -> Result<Vec<T>, Failure> {
        let n = b.len();
        let mut x = b.to_vec();
        let mut buffer = area(lu::solve_in_place_scratch::<usize, T>(n, 1, self.par))?;
        self.factors.solve_in_place_with_conj(
            self.rows.as_faer(),
            self.order.as_faer(),
            Conj::No,
            MatMut::from_column_major_slice_mut(&mut x, n, 1),
            self.par,
            MemStack::new(&mut buffer),
        );
        Ok(x)
    }

    fn pivots(&self) -> Vec<(usize, T)> {
        let u = self.factors.u_factor_unsorted();
        let none = <T as num_traits::Zero>::zero();
        // A column's pivot is its last entry.
        let pivot = |place: usize| u.val_of_col(place).last().copied().unwrap_or(none);
        self.order.forward.iter().enumerate().map(|(place, column)| (*column, pivot(place))).collect()
    }

    fn triangles(&self) -> Option<Triangles<T>> {
        let n = self.rows.forward.len();
        let columns = |of: SparseColMatRef<'_, usize, T>, keeps: &dyn Fn(usize, usize) -> bool| {
            let mut entries = Vec::new();
            for column in 0..n {
                let rows = of.row_idx_of_col_raw(column).iter().zip(of.val_of_col(column));
                entries.extend(
                    rows.filter(|(row, _)| keeps(**row, column)).map(|(row, value)| (*row, column, *value)),
                );
            }
            entries.sort_unstable_by_key(|(row, column, _)| (*row, *column));
            Columns::with((n, n), entries.into_iter())
        };
        Some(Triangles {
            rows: self.rows.forward.clone(),
            columns: self.order.forward.clone(),
            lower: columns(self.factors.l_factor_unsorted(), &|row, column| row != column),
            upper: columns(self.factors.u_factor_unsorted(), &|_, _| true),
        })
    }
}

/// Factors with more entries for each column than this are worked on in blocks.
const BLOCKS_FROM: f64 = 40.0;

/// R, and the reflections that make it.
enum Reflections<T> {
    Single {
        parts: simplicial::SymbolicSimplicialQr<usize>,
        r: (Vec<usize>, Vec<usize>, Vec<T>),
        h: (Vec<usize>, Vec<usize>, Vec<T>),
        tau: Vec<T>,
    },
    Blocks {
        parts: Box<supernodal::SymbolicSupernodalQr<usize>>,
        indices: Vec<usize>,
        sizes: [Vec<usize>; 3],
        r: Vec<T>,
        h: Vec<T>,
        tau: Vec<T>,
    },
}

struct Qr<T> {
    par: Par,
    order: Order,
    height: usize,
    reflections: Reflections<T>,
}

impl<T: Scalar + ComplexField> Qr<T> {
    /// Of a matrix that is not wide.
    fn of(a: &Columns<T>, reorders: bool, par: Par) -> Result<Self, Failure> {
        let (height, n) = a.size();
        let order = Order::of(a, reorders)?;
        let by_rows = a.transposed();
        let mut buffer = area(StackReq::any_of(&[
            qr::col_etree_scratch::<usize>(height, n),
            qr::postorder_scratch::<usize>(n),
            qr::column_counts_aat_scratch::<usize>(n, height),
            simplicial::factorize_simplicial_symbolic_qr_scratch::<usize>(height, n),
            supernodal::factorize_supernodal_symbolic_qr_scratch::<usize>(height, n),
        ]))?;
        let stack = MemStack::new(&mut buffer);
        let (mut tree, mut post) = (vec![0; n], vec![0; n]);
        let (mut counts, mut firsts) = (vec![0; n], vec![0; height]);
        let columns = Some(order.as_faer());
        let tree = qr::col_etree(a.pattern(), columns, &mut tree, stack);
        qr::postorder(&mut post, tree, stack);
        qr::column_counts_ata(&mut counts, &mut firsts, by_rows.pattern(), columns, tree, &post, stack);
        let (entries, work) = counts.iter().fold((0.0, 0.0), |(entries, work), count| {
            let count = *count as f64;
            (entries + count, work + count * count)
        });
        let reflections = if work > BLOCKS_FROM * entries && has_pivots(tree.into_inner(), &firsts) {
            let parts = supernodal::factorize_supernodal_symbolic_qr(
                a.pattern(),
                columns,
                firsts,
                tree,
                &counts,
                stack,
                Default::default(),
            )?;
            Self::in_blocks(parts, &by_rows, &order, par)?
        } else {
            let parts = simplicial::factorize_simplicial_symbolic_qr(&firsts, tree, &counts, stack)?;
            Self::one_by_one(parts, a, &order)?
        };
        Ok(Self { par, order, height, reflections })
    }

    fn in_blocks(
        parts: supernodal::SymbolicSupernodalQr<usize>,
        by_rows: &Columns<T>,
        order: &Order,
        par: Par,
    ) -> Result<Reflections<T>, Failure> {
        let reflections = parts.householder();
        let panels = reflections.len_householder_row_idx() + reflections.n_supernodes();
        let mut indices = vec![0; reflections.len_householder_row_idx()];
        let mut sizes = [vec![0; panels], vec![0; panels], vec![0; panels]];
        let mut r = zeros(parts.R_adjoint().len_val())?;
        let (mut h, mut tau) = (zeros(reflections.len_householder_val())?, zeros(reflections.len_tau_val())?);
        let of =
            supernodal::factorize_supernodal_numeric_qr_scratch::<usize, T>(&parts, par, Default::default());
        let mut buffer = area(of)?;
        let [blocks, heights, widths] = &mut sizes;
        supernodal::factorize_supernodal_numeric_qr(
            &mut indices,
            blocks,
            heights,
            widths,
            &mut r,
            &mut h,
            &mut tau,
            by_rows.faer(),
            Some(order.as_faer()),
            &parts,
            par,
            MemStack::new(&mut buffer),
            Default::default(),
        );
        Ok(Reflections::Blocks { parts: Box::new(parts), indices, sizes, r, h, tau })
    }

    fn one_by_one(
        parts: simplicial::SymbolicSimplicialQr<usize>,
        a: &Columns<T>,
        order: &Order,
    ) -> Result<Reflections<T>, Failure> {
        let n = parts.ncols();
        let mut r = (vec![0; n + 1], vec![0; parts.len_r()], zeros(parts.len_r())?);
        let mut h = (vec![0; n + 1], vec![0; parts.len_householder()], zeros(parts.len_householder())?);
        let mut tau = zeros(n)?;
        let mut buffer = area(simplicial::factorize_simplicial_numeric_qr_scratch::<usize, T>(&parts))?;
        simplicial::factorize_simplicial_numeric_qr_unsorted(
            &mut r.0,
            &mut r.1,
            &mut r.2,
            &mut h.0,
            &mut h.1,
            &mut h.2,
            &mut tau,
            a.faer(),
            Some(order.as_faer()),
            &parts,
            MemStack::new(&mut buffer),
        );
        Ok(Reflections::Single { parts, r, h, tau })
    }
}

/// A matrix of `faer`'s whose rows are in no order.
fn unsorted<T>(
    (height, n): (usize, usize),
    (starts, rows, values): &(Vec<usize>, Vec<usize>, Vec<T>),
) -> SparseColMatRef<'_, usize, T> {
    SparseColMatRef::new(SymbolicSparseColMatRef::new_unsorted_checked(height, n, starts, None, rows), values)
}

impl<T: Scalar + ComplexField> Factors<T> for Qr<T> {
    fn solve(&self, b: &[T]) -> Result<Vec<T>, Failure> {
        let n = self.order.forward.len();
        let mut x = b.to_vec();
        x.resize(self.height, <T as num_traits::Zero>::zero());
        let side = MatMut::from_column_major_slice_mut(&mut x, self.height, 1);
        match &self.reflections {
            Reflections::Single { parts, r, h, tau } => {
                let mut buffer = area(parts.solve_in_place_scratch::<T>(1, self.par))?;
                let (r, h) = (unsorted((n, n), r), unsorted((self.height, n), h));
                let factors = simplicial::SimplicialQrRef::new(parts, r, h, tau);
                factors.solve_in_place_with_conj(Conj::No, side, self.par, MemStack::new(&mut buffer));
            }
            Reflections::Blocks { parts, indices, sizes: [blocks, heights, widths], r, h, tau } => {
                let mut buffer = area(parts.solve_in_place_scratch::<T>(1, self.par))?;
                // SAFETY: what `factorize_supernodal_numeric_qr` wrote, of these parts.
                let factors = unsafe {
                    supernodal::SupernodalQrRef::new_unchecked(
                        parts, indices, blocks, heights, widths, r, h, tau,
                    )
                };
                factors.solve_in_place_with_conj(Conj::No, side, self.par, MemStack::new(&mut buffer));
            }
        }
        // Column i of the factors is column `forward[i]` of the matrix.
        Ok(self.order.inverse.iter().map(|place| x[*place]).collect())
    }

    fn pivots(&self) -> Vec<(usize, T)> {
        let n = self.order.forward.len();
        let pivots: Vec<T> = match &self.reflections {
            Reflections::Single { r, .. } => {
                let r = unsorted((n, n), r);
                let none = <T as num_traits::Zero>::zero();
                // A column's entry on the diagonal is its last one.
                (0..n).map(|column| r.val_of_col(column).last().copied().unwrap_or(none)).collect()
            }
            Reflections::Blocks { parts, r, .. } => {
                diagonal(blocks::SupernodalLltRef::new(parts.R_adjoint(), r))
            }
        };
        self.order.forward.iter().copied().zip(pivots).collect()
    }
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

/// The diagonal of triangular blocks.
fn diagonal<T: Scalar + ComplexField>(factor: blocks::SupernodalLltRef<'_, usize, T>) -> Vec<T> {
    let of_block = |block: usize| {
        let values = factor.supernode(block).val();
        (0..values.ncols()).map(move |i| values[(i, i)])
    };
    (0..factor.symbolic().n_supernodes()).flat_map(of_block).collect()
}

struct Cholesky<T> {
    par: Par,
    n: usize,
    parts: SymbolicCholesky<usize>,
    values: Vec<T>,
}

impl<T: Scalar + ComplexField> Cholesky<T> {
    fn of(a: &Columns<T>, reorders: bool, par: Par) -> Result<Factored<Self>, Failure> {
        let (_, n) = a.size();
        // In the natural order `faer` 0.24 finds the structure of an upper triangle only.
        let a = a.upper();
        let ordering = if reorders { SymmetricOrdering::Amd } else { SymmetricOrdering::Identity };
        let parts =
            cholesky::factorize_symbolic_cholesky(a.pattern(), Side::Upper, ordering, Default::default())?;
        let mut values = zeros(parts.len_val())?;
        let mut buffer = area(parts.factorize_numeric_llt_scratch::<T>(par, Default::default()))?;
        let factored = parts.factorize_numeric_llt(
            &mut values,
            a.faer(),
            Side::Upper,
            Default::default(),
            par,
            MemStack::new(&mut buffer),
            Default::default(),
        );
        if let Err(LltError::NonPositivePivot { index }) = factored {
            // Blocks count from 0, single entries from 1.
            let place = match parts.raw() {
                SymbolicCholeskyRaw::Simplicial(_) => index.saturating_sub(1),
                SymbolicCholeskyRaw::Supernodal(_) => index,
            };
            return Ok(Factored::Ended(column(&parts, place)));
        }
        Ok(Factored::Whole(Self { par, n, parts, values }))
    }
}

/// The column of the matrix that has a place in Cholesky's factor.
fn column(parts: &SymbolicCholesky<usize>, place: usize) -> usize {
    parts.perm().map_or(place, |order| order.arrays().0[place])
}

impl<T: Scalar + ComplexField> Factors<T> for Cholesky<T> {
    fn solve(&self, b: &[T]) -> Result<Vec<T>, Failure> {
        let mut x = b.to_vec();
        let mut buffer = area(self.parts.solve_in_place_scratch::<T>(1, self.par))?;
        let side = MatMut::from_column_major_slice_mut(&mut x, self.n, 1);
        cholesky::LltRef::new(&self.parts, &self.values).solve_in_place_with_conj(
            Conj::No,
            side,
            self.par,
            MemStack::new(&mut buffer),
        );
        Ok(x)
    }

    fn pivots(&self) -> Vec<(usize, T)> {
        let pivots: Vec<T> = match self.parts.raw() {
            // A column's entry on the diagonal is its first one.
            SymbolicCholeskyRaw::Simplicial(parts) => {
                (0..self.n).map(|column| self.values[parts.col_ptr()[column]]).collect()
            }
            SymbolicCholeskyRaw::Supernodal(parts) => {
                diagonal(blocks::SupernodalLltRef::new(parts, &self.values))
            }
        };
        (0..).map(|place| column(&self.parts, place)).zip(pivots).collect()
    }
}
