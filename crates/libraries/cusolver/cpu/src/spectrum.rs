//! Eigenvalues of sparse matrices: the one near a number, and how many are in a rectangle.

use cublas_cpu::{Complex, Real, Scalar};
use num_traits::{Float as _, One as _, ToPrimitive, Zero as _};

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

/// What the boundary's walk knows of a point.
struct Point {
    /// The argument of `det(A - z·I)`.
    argument: f64,
    /// How near the next eigenvalue may be: about the smallest singular value of `A - z·I`, than which none is nearer.
    clear: f64,
}

/// None where `A - z·I` has no inverse. `vector` has to do with no eigenvector, and becomes one that the inverse makes long.
fn look(
    a: &Columns<Complex<f64>>,
    z: Complex<f64>,
    vector: &mut [Complex<f64>],
) -> Result<Option<Point>, Failure> {
    let Factored::Whole(factors) = Complex::factored(Method::Lu, &a.shifted(z), true)? else {
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
    let mut longer = 0.0;
    for _ in 0..2 {
        let solved = factors.solve(vector)?;
        longer = length(&solved) / length(vector);
        vector.copy_from_slice(&normalized(triangles.solve_adjoint(&solved)));
    }
    Ok(Some(Point { argument: product.im.atan2(product.re), clear: longer.recip() }))
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

/// By how much an argument turns from one to the next, if that is about so much.
fn turn(from: f64, to: f64, about: f64) -> f64 {
    let turn = to - from;
    turn - core::f64::consts::TAU * ((turn - about) / core::f64::consts::TAU).round()
}

/// So much may an argument turn in a step, and so much may that differ from what the step before foretells.
const TURN: f64 = 1.5;
const SURE: f64 = 0.8;
/// A step's length beside what is clear of eigenvalues.
const STEP: f64 = 0.4;
/// The shortest step beside a side's length.
const SHORTEST: f64 = 1e-10;

/// How many eigenvalues, each as often as it is one, are in the rectangle between two corners: how often `det(A - z·I)` turns around 0 while
/// z goes along its boundary. One that lies on the boundary may count or not.
///
/// # Errors
/// There is not enough memory.
pub fn count_within(
    a: &Columns<Complex<f64>>,
    (one, other): (Complex<f64>, Complex<f64>),
) -> Result<i64, Failure> {
    let (mut low, mut high) =
        ((one.re.min(other.re), one.im.min(other.im)), (one.re.max(other.re), one.im.max(other.im)));
    let (width, height) = (high.0 - low.0, high.1 - low.1);
    if !(width > 0.0 && height > 0.0 && width.is_finite() && height.is_finite()) || a.size().1 == 0 {
        return Ok(0);
    }
    if a.is_hermitian() {
        // All are real: the sides along the real line may as well be far from it.
        if low.1 >= 0.0 || high.1 <= 0.0 {
            return Ok(0);
        }
        (low.1, high.1) = (low.1.min(-width), high.1.max(width));
    }
    let corners = [low, (high.0, low.1), high, (low.0, high.1), low].map(|(re, im)| Complex::new(re, im));
    let mut walk = Walk {
        a,
        nudge: Complex::new(width, height).times_real(1e-12),
        vector: vec![Complex::zero(); a.size().1],
        looks: 0,
    };
    let turned: f64 =
        corners.windows(2).map(|side| walk.along(side[0], side[1])).sum::<Result<f64, Failure>>()?;
    Ok((turned / core::f64::consts::TAU).round() as i64)
}

struct Walk<'a> {
    a: &'a Columns<Complex<f64>>,
    nudge: Complex<f64>,
    /// What the inverse made long at the point before.
    vector: Vec<Complex<f64>>,
    looks: usize,
}

impl Walk<'_> {
    /// As much of a vector that has to do with no eigenvector comes into the last point's: iterations that have come to one eigenvector
    /// would stay there when another one's eigenvalue has become the nearest.
    fn stir(&mut self) {
        self.looks += 1;
        let length = (self.vector.len() as f64).sqrt();
        for (at, v) in self.vector.iter_mut().enumerate() {
            // Turns that never come again.
            let turn = ((at + 1) * (at + 1) + at * self.looks) as f64;
            *v += Complex::from_polar(length.recip(), turn);
        }
    }

    /// A point, or one beside it that is no eigenvalue.
    fn at(&mut self, z: Complex<f64>) -> Result<Point, Failure> {
        let mut nudge = self.nudge;
        for at in 0..8 {
            let moved = if at == 0 { z } else { z + nudge };
            self.stir();
            if let Some(point) = look(self.a, moved, &mut self.vector)? {
                return Ok(point);
            }
            nudge = nudge.times_real(8.0);
        }
        Err(Failure::NoFactors)
    }

    /// By how much the argument turns along a side. A step stays where no eigenvalue is, so that the argument goes evenly there, and turns
    /// by about what the step before foretells; the first is the shortest.
    fn along(&mut self, from: Complex<f64>, to: Complex<f64>) -> Result<f64, Failure> {
        let whole = size(to - from);
        let (mut done, mut before, mut turned, mut rate) = (0.0, self.at(from)?, 0.0, 0.0);
        let mut step = SHORTEST * whole;
        while done < whole {
            step =
                step.min(STEP * before.clear).min(TURN / rate.abs()).max(SHORTEST * whole).min(whole - done);
            let (after, turn) = loop {
                let after = self.at(from + (to - from).times_real((done + step) / whole))?;
                let foretold = rate * step;
                let turn = turn(before.argument, after.argument, foretold);
                let is_sure = (turn - foretold).abs() < SURE && step <= 1.5 * after.clear;
                if is_sure || step <= SHORTEST * whole {
                    break (after, turn);
                }
                step = (0.25 * step).max(SHORTEST * whole);
            };
            (done, before, turned, rate) = (done + step, after, turned + turn, turn / step);
            step *= 4.0;
        }
        Ok(turned)
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
