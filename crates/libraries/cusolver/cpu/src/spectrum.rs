//! Eigenvalues of sparse matrices: the one near a number, and how many are in a rectangle.

use cublas_cpu::{Complex, Real, Scalar};
use num_traits::{Float as _, One as _, ToPrimitive};

use crate::Field;
use crate::factors::{Factored, Factors};
use crate::sparse::{Columns, Failure, Method};

/// Eigenvalue and eigenvector.
pub type Pair<T> = (T, Vec<T>);

fn size<T: Scalar>(of: T) -> f64 {
    of.modulus().to_f64().unwrap_or(f64::NAN)
}

/// The Euclidean length, by the largest component, so that no square leaves the range.
fn length<T: Scalar>(of: &[T]) -> f64 {
    let largest = of.iter().map(|v| size(*v)).fold(0.0, f64::max);
    if largest > 0.0 && largest.is_finite() {
        largest * of.iter().map(|v| (size(*v) / largest).powi(2)).sum::<f64>().sqrt()
    } else {
        of.iter().map(|v| size(*v)).sum()
    }
}

fn normalized<T: Scalar>(mut of: Vec<T>) -> Vec<T> {
    let length = T::Real::rounded(length(&of));
    of.iter_mut().for_each(|v| *v = v.over_real(length));
    of
}

/// The eigenvalue that is nearest to `near`, and its eigenvector, by inverse iteration from `from`, as cuSOLVER makes it: an eigenvalue is
/// that of the vector before, and the iteration ends when what it leaves, `|A x - mu x|`, is below `tol`, or after `most` turns.
///
/// # Errors
/// There is not enough memory.
pub fn nearest<T: Field>(
    a: &Columns<T>,
    near: T,
    from: &[T],
    most: usize,
    tol: f64,
) -> Result<Pair<T>, Failure> {
    let (mut mu, mut x) = (T::zero(), normalized(from.to_vec()));
    if most == 0 {
        return Ok((mu, x));
    }
    let factors = factors_near(a, near)?;
    for _ in 0..most {
        let product = a.times(&x);
        mu = x.iter().zip(&product).fold(T::zero(), |sum, (x, y)| sum + x.conj() * *y);
        let left: Vec<T> = product.iter().zip(&x).map(|(y, x)| *y - mu * *x).collect();
        if length(&left) < tol {
            break;
        }
        x = normalized(factors.solve(&x)?);
    }
    Ok((mu, x))
}

/// Factors of `A - near·I`, moved by some units in the last place where that is singular.
fn factors_near<T: Field>(a: &Columns<T>, near: T) -> Result<Box<dyn Factors<T>>, Failure> {
    let largest = a.entries().map(|(_, _, value)| size(value)).fold(size(near), f64::max);
    let unit = T::Real::epsilon().to_f64().unwrap_or(0.0) * if largest > 0.0 { largest } else { 1.0 };
    let mut step = 0.0;
    // From a unit to more than the largest entry is; numbers that are none have no factors anywhere.
    for _ in 0..24 {
        let shift = near + T::from_real(T::Real::rounded(step));
        if let Factored::Whole(factors) = T::factored(Method::Lu, &a.shifted(shift), true)?
            && factors.pivots().iter().all(|(_, pivot)| size(*pivot) > 0.0)
        {
            return Ok(factors);
        }
        step = if step == 0.0 { unit } else { 8.0 * step };
    }
    Err(Failure::NoFactors)
}

/// The argument of `det(A - at·I)`; none where it is 0.
fn argument(a: &Columns<Complex<f64>>, at: Complex<f64>) -> Result<Option<f64>, Failure> {
    let Factored::Whole(factors) = Complex::factored(Method::Lu, &a.shifted(at), true)? else {
        return Ok(None);
    };
    let Some(triangles) = factors.triangles() else { return Ok(None) };
    let mut product: Complex<f64> = Complex::one();
    for (_, pivot) in factors.pivots() {
        let modulus = size(pivot);
        if !(modulus > 0.0 && modulus.is_finite()) {
            return Ok(None);
        }
        product *= pivot.over_real(modulus);
        // What rounding makes of its length would add up.
        product = product.over_real(size(product));
    }
    if is_odd(&triangles.rows) != is_odd(&triangles.columns) {
        product = -product;
    }
    Ok(Some(product.im.atan2(product.re)))
}

fn is_odd(order: &[usize]) -> bool {
    let (mut seen, mut is_odd) = (vec![false; order.len()], false);
    for first in 0..order.len() {
        let mut at = first;
        while !core::mem::replace(&mut seen[at], true) {
            is_odd ^= order[at] != first;
            at = order[at];
        }
    }
    is_odd
}

/// By how much an argument turns from one to the next, if less than half a turn.
fn turn(from: f64, to: f64) -> f64 {
    let turn = to - from;
    turn - core::f64::consts::TAU * (turn / core::f64::consts::TAU).round()
}

/// So much may an argument turn between two points where it is not looked at again.
const SURE: f64 = 0.7;
/// How often a piece of the boundary is divided.
const DEPTH: u32 = 24;
/// Where: not in the middle, so that turns that are whole ones in a piece are none in its parts.
const CUT: f64 = 0.381_966;

/// How many eigenvalues, each as often as it is one, are in the rectangle between two corners: how often `det(A - z·I)` turns around 0 while
/// z goes along its boundary. One that lies on the boundary may count or not.
///
/// # Errors
/// There is not enough memory.
pub fn count_within(
    a: &Columns<Complex<f64>>,
    (one, other): (Complex<f64>, Complex<f64>),
) -> Result<i64, Failure> {
    let (low, high) =
        ((one.re.min(other.re), one.im.min(other.im)), (one.re.max(other.re), one.im.max(other.im)));
    let (width, height) = (high.0 - low.0, high.1 - low.1);
    if !(width > 0.0 && height > 0.0 && width.is_finite() && height.is_finite()) || a.size().1 == 0 {
        return Ok(0);
    }
    let corners = [low, (high.0, low.1), high, (low.0, high.1), low].map(|(re, im)| Complex::new(re, im));
    let look = Look { a, nudge: Complex::new(width, height).over_real(1e-12_f64.recip()) };
    // Each eigenvalue turns once at most, so that pieces see about one each.
    let pieces = (a.size().1 / 4).clamp(8, 300);
    let mut turned = 0.0;
    for side in corners.windows(2) {
        let along = |part: f64| side[0] + (side[1] - side[0]).times_real(part);
        let mut before = look.at(side[0])?;
        for piece in 0..pieces {
            let (from, to) = (piece as f64 / pieces as f64, (piece + 1) as f64 / pieces as f64);
            let after = look.at(along(to))?;
            turned += look.turned((from, before), (to, after), &along, DEPTH)?;
            before = after;
        }
    }
    Ok((turned / core::f64::consts::TAU).round() as i64)
}

struct Look<'a> {
    a: &'a Columns<Complex<f64>>,
    nudge: Complex<f64>,
}

impl Look<'_> {
    /// The argument there, or beside it where there is none.
    fn at(&self, z: Complex<f64>) -> Result<f64, Failure> {
        let mut nudge = self.nudge;
        for at in 0..8 {
            let moved = if at == 0 { z } else { z + nudge };
            if let Some(argument) = argument(self.a, moved)? {
                return Ok(argument);
            }
            nudge = nudge.times_real(8.0);
        }
        Err(Failure::NoFactors)
    }

    fn turned(
        &self,
        (from, before): (f64, f64),
        (to, after): (f64, f64),
        along: &dyn Fn(f64) -> Complex<f64>,
        depth: u32,
    ) -> Result<f64, Failure> {
        let cut = from + CUT * (to - from);
        let between = self.at(along(cut))?;
        let (first, second) = (turn(before, between), turn(between, after));
        if depth == 0 || first.abs() < SURE && second.abs() < SURE {
            return Ok(first + second);
        }
        Ok(self.turned((from, before), (cut, between), along, depth - 1)?
            + self.turned((cut, between), (to, after), along, depth - 1)?)
    }
}

/// What is found of a system of least squares.
pub struct Least<T> {
    pub rank: usize,
    pub x: Vec<T>,
    /// Its columns: the independent ones before the others.
    pub order: Vec<usize>,
    /// `|A x - b|`
    pub left: f64,
}

/// The x that leaves least of `A x - b`, by QR, with 0 for columns that depend on those before them: whose entry on R's diagonal is not above
/// `tol`.
///
/// # Errors
/// There is not enough memory.
pub fn least_squares<T: Field>(a: &Columns<T>, b: &[T], tol: f64) -> Result<Least<T>, Failure> {
    let (height, n) = a.size();
    let (mut kept, mut others): (Vec<usize>, Vec<usize>) = ((0..n).collect(), Vec::new());
    let mut right = b.to_vec();
    right.resize(height.max(n), T::zero());
    let found = loop {
        if kept.is_empty() {
            break Vec::new();
        }
        let chosen = a.chosen(&kept);
        let chosen = if kept.len() > height { chosen.heightened() } else { chosen };
        let Factored::Whole(factors) = T::factored(Method::Qr, &chosen, true)? else {
            return Err(Failure::NoFactors);
        };
        match crate::factors::first_small(&factors.pivots(), tol) {
            Some(place) => others.push(kept.remove(place)),
            None => break factors.solve(&right[..chosen.size().0])?,
        }
    };
    let mut x = vec![T::zero(); n];
    kept.iter().zip(&found).for_each(|(column, value)| x[*column] = *value);
    let product = a.times(&x);
    let left: Vec<T> = product.iter().zip(b).map(|(y, b)| *y - *b).collect();
    let rank = kept.len();
    kept.extend(others);
    Ok(Least { rank, x, order: kept, left: length(&left) })
}
