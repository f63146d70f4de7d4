//! Eigenvalues and eigenvectors of real symmetric tridiagonal matrices: QL with implicit shifts of small ones, and of large ones Cuppen's
//! divide and conquer with the vectors of Gu and Eisenstat. Numbers are about 1 in size; callers scale.
//!
//! The two halves of a matrix, each without what stands between them, are solved first. What stands there is a matrix of rank one, by which
//! the eigenvalues move to the zeros of a secular equation, one between every two of the halves' together.

use cublas_cpu::{Op, Real, gemm, vectorized};

use rayon::prelude::*;

use crate::dense::Dense;

/// So small matrices are solved by rotations.
const LEAF: usize = 32;
/// Rotations of QL for one eigenvalue before it is said that there is no convergence.
const PATIENCE: usize = 60;
/// Steps to a zero of the secular equation: each that goes astray halves the interval.
const STEPS: usize = 120;
/// Smaller problems are not worth a second core.
const SHARED: usize = 128;
/// How many sums are added side by side, so that they are worked on as vectors.
const LANES: usize = 8;

/// Eigenvalues, ascending, in the diagonal's place, and eigenvectors if they are wanted. `e` has what stands beside the diagonal, and is
/// overwritten. None: no convergence.
pub fn eigen<R: Real>(d: &mut [R], e: &mut [R], vectors: bool) -> Option<Option<Dense<R>>> {
    let n = d.len();
    if !vectors {
        let converged = rotations(d, e, &mut [], 0);
        d.sort_unstable_by(|one, other| one.partial_cmp(other).unwrap_or(std::cmp::Ordering::Equal));
        return converged.then_some(None);
    }
    let mut q = Dense::zeros(n as i64, n as i64);
    let room = if n > LEAF { n * n } else { 0 };
    let mut work =
        Work { s: vec![R::zero(); room], gathered: vec![R::zero(); room], made: vec![R::zero(); room] };
    solve(d, e, &mut q.values, n, &mut work).then_some(Some(q))
}

/// Memory for merges.
struct Work<R> {
    /// Eigenvectors of the diagonal and the matrix of rank one.
    s: Vec<R>,
    /// The halves' vectors that they are multiplied with.
    gathered: Vec<R>,
    made: Vec<R>,
}

/// Of the matrix whose vectors begin at the start of `q`, with its leading dimension.
fn solve<R: Real>(d: &mut [R], e: &mut [R], q: &mut [R], ld: usize, work: &mut Work<R>) -> bool {
    let n = d.len();
    if n <= LEAF {
        (0..n).for_each(|i| q[i + i * ld] = R::one());
        let converged = rotations(d, e, q, ld);
        sort(d, [(q, n)], ld);
        return converged;
    }
    let half = n / 2;
    let beside = e[half - 1];
    // A matrix of rank one takes as much off the diagonal as stands beside it.
    d[half - 1] -= beside.abs();
    d[half] -= beside.abs();
    let (above, below) = d.split_at_mut(half);
    let (first, second) = e.split_at_mut(half);
    let corner = half + half * ld;
    let converged =
        solve(above, &mut first[..half - 1], q, ld, work) && solve(below, second, &mut q[corner..], ld, work);
    converged && merge(d, beside, q, ld, half, work)
}

/// Puts values and the columns that belong to them, of so many rows in each of `sides`, into ascending order.
pub(crate) fn sort<R: Real, const N: usize>(d: &mut [R], mut sides: [(&mut [R], usize); N], ld: usize) {
    let n = d.len();
    for i in 0..n.saturating_sub(1) {
        let least = (i + 1..n).fold(i, |least, j| if d[j] < d[least] { j } else { least });
        if least != i {
            d.swap(i, least);
            for (side, rows) in &mut sides {
                let (before, from) = side.split_at_mut(least * ld);
                before[i * ld..i * ld + *rows].swap_with_slice(&mut from[..*rows]);
            }
        }
    }
}

vectorized! {
/// QL with implicit shifts; the vectors, as many rows as there are eigenvalues, turn with the matrix where there are any (`ld` is not 0).
fn rotations[R: Real](d: &mut [R], e: &mut [R], q: &mut [R], ld: usize) -> bool {
    let n = d.len();
    let (zero, one, two) = (R::zero(), R::one(), R::one() + R::one());
    // Less than this is nothing beside 1, and its square leaves the type's range.
    let least = R::min_positive_value().sqrt() * R::rounded(4.0);
    for l in 0..n {
        let mut steps = 0;
        loop {
            let is_nothing = |m: usize, e: &[R], d: &[R]| {
                e[m].abs() <= (R::epsilon() * (d[m].abs() + d[m + 1].abs())).max(least)
            };
            let m = (l..n - 1).find(|&m| is_nothing(m, e, d)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            steps += 1;
            if steps > PATIENCE {
                return false;
            }
            let towards = (d[l + 1] - d[l]) / (two * e[l]);
            let length = (towards * towards + one).sqrt();
            let shift = if towards < zero { towards - length } else { towards + length };
            // An enormous quotient is a shift that is the element itself.
            let mut g = d[m] - d[l] + if shift.is_finite() { e[l] / shift } else { zero };
            let (mut s, mut c, mut taken) = (one, one, zero);
            let mut ended = false;
            for i in (l..m).rev() {
                let (f, b) = (s * e[i], c * e[i]);
                let r = (f * f + g * g).sqrt();
                e_at(e, i + 1, r);
                if r <= least {
                    // It has come apart here.
                    d[i + 1] -= taken;
                    e_at(e, m, zero);
                    ended = true;
                    break;
                }
                let by = r.recip();
                (s, c) = (f * by, g * by);
                let rest = d[i + 1] - taken;
                let turned = (d[i] - rest) * s + two * c * b;
                taken = s * turned;
                d[i + 1] = rest + taken;
                g = c * turned - b;
                if ld > 0 {
                    let (before, from) = q.split_at_mut((i + 1) * ld);
                    let (x, y) = (&mut before[i * ld..i * ld + n], &mut from[..n]);
                    for (x, y) in x.iter_mut().zip(y) {
                        (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
                    }
                }
            }
            if !ended {
                d[l] -= taken;
                e[l] = g;
                e_at(e, m, zero);
            }
        }
    }
    true
}
}

/// What would stand beyond the last is nowhere.
#[inline(always)]
fn e_at<R: Real>(e: &mut [R], at: usize, value: R) {
    if let Some(place) = e.get_mut(at) {
        *place = value;
    }
}

/// Which rows a vector has anything in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Above,
    Both,
    Below,
}

/// Puts two solved halves together, of which the first one has `half` rows.
fn merge<R: Real>(d: &mut [R], beside: R, q: &mut [R], ld: usize, half: usize, work: &mut Work<R>) -> bool {
    let n = d.len();
    let sign = if beside < R::zero() { -R::one() } else { R::one() };
    let root = R::rounded(0.5).sqrt();
    let mut z: Vec<R> = (0..n)
        .map(|i| if i < half { q[half - 1 + i * ld] * root } else { sign * q[half + i * ld] * root })
        .collect();
    let rho = beside.abs() + beside.abs();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&one, &other| d[one].partial_cmp(&d[other]).unwrap_or(std::cmp::Ordering::Equal));
    let most = |of: &[R]| of.iter().fold(R::zero(), |most, value| most.max(value.abs()));
    let nothing = R::rounded(8.0) * R::epsilon() * most(d).max(most(&z));
    let mut parts: Vec<Part> = (0..n).map(|i| if i < half { Part::Above } else { Part::Below }).collect();
    // Eigenvalues that stay as they are, and the others.
    let (mut settled, mut kept) = (vec![], vec![]);
    let mut before: Option<usize> = None;
    for &next in &order {
        if rho * z[next].abs() <= nothing {
            settled.push(next);
            continue;
        }
        let Some(last) = before.replace(next) else { continue };
        let size = (z[last] * z[last] + z[next] * z[next]).sqrt();
        let (c, s) = (z[next] / size, -z[last] / size);
        if ((d[next] - d[last]) * c * s).abs() > nothing {
            kept.push(last);
            continue;
        }
        // Two that are as good as the same: one of them gets all of both vectors' part in z.
        (z[next], z[last]) = (size, R::zero());
        if parts[last] != parts[next] {
            (parts[last], parts[next]) = (Part::Both, Part::Both);
        }
        let (first, second) = (last.min(next), last.max(next));
        let (low, high) = q.split_at_mut(second * ld);
        let (x, y) = (&mut low[first * ld..first * ld + n], &mut high[..n]);
        turn(x, y, c, if first == last { s } else { -s });
        let (one, other) = (d[last], d[next]);
        d[last] = one * c * c + other * s * s;
        d[next] = one * s * s + other * c * c;
        settled.push(last);
    }
    kept.extend(before);
    let count = kept.len();
    let poles: Vec<R> = kept.iter().map(|&i| d[i]).collect();
    let weights: Vec<R> = kept.iter().map(|&i| z[i]).collect();
    let mut values = vec![R::zero(); count];
    let s = &mut work.s[..count * count];
    let Some(exact) = zeros(&poles, &weights, rho, &mut values, s, Plain) else { return false };
    for_columns(count, s, |column| direction(column, &exact));
    values.extend(settled.iter().map(|&i| d[i]));
    let order = ascending(&values);
    d.iter_mut().zip(&order).for_each(|(d, &from)| *d = values[from]);
    let merged = Merged { kept: &kept, settled: &settled, parts: &parts, order: &order };
    merged.vectors(q, ld, n, half, &mut work.s, &mut work.gathered, &mut work.made);
    true
}

pub(crate) fn ascending<R: Real>(values: &[R]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order
        .sort_by(|&one, &other| values[one].partial_cmp(&values[other]).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// Two halves' vectors that become those of the whole.
pub(crate) struct Merged<'a> {
    /// Columns that are multiplied with those of the matrix between the halves, and columns that stay as they are.
    pub kept: &'a [usize],
    pub settled: &'a [usize],
    /// By a column's number.
    pub parts: &'a [Part],
    /// The column, of the products and behind them the settled ones, that comes to each place.
    pub order: &'a [usize],
}

impl Merged<'_> {
    /// In `q`'s first columns, of so many rows, of which the first half has `half`. `s` has the vectors between the halves, as many as are
    /// kept; the rows of these are put into another order. `gathered` and `made` are memory.
    pub(crate) fn vectors<R: Real>(
        &self,
        q: &mut [R],
        ld: usize,
        n: usize,
        half: usize,
        s: &mut [R],
        gathered: &mut [R],
        made: &mut [R],
    ) {
        let Self { kept, settled, parts, order } = *self;
        let count = kept.len();
        let s = &mut s[..count * count];
        // Rows by the part that the halves' vectors have anything in, so that products leave the others out.
        let mut rows: Vec<usize> = (0..count).collect();
        rows.sort_by_key(|&row| parts[kept[row]]);
        let without = |part: Part| rows.iter().filter(|&&row| parts[kept[row]] != part).count();
        let (above, below) = (without(Part::Below), without(Part::Above));
        let mut column = vec![R::zero(); count];
        for s in s.chunks_exact_mut(count.max(1)) {
            column.copy_from_slice(s);
            s.iter_mut().zip(&rows).for_each(|(s, &row)| *s = column[row]);
        }
        let rest = n - half;
        let (upper, lower) = gathered.split_at_mut(half * above);
        for (&row, into) in rows[..above].iter().zip(upper.chunks_exact_mut(half)) {
            into.copy_from_slice(&q[kept[row] * ld..][..half]);
        }
        for (&row, into) in rows[count - below..].iter().zip(lower.chunks_exact_mut(rest)) {
            into.copy_from_slice(&q[kept[row] * ld + half..][..rest]);
        }
        let made = &mut made[..n * order.len()];
        let product = |rows: usize, inner: usize, a: &[R], s: &[R], c: &mut [R]| {
            let (m, k, count) = (rows as i64, inner as i64, count as i64);
            let (zero, one, ld) = (R::zero(), R::one(), count.max(1));
            assert!(a.len() >= rows * inner && c.len() + n >= rows + n * count as usize);
            let (a, s, c, ldc) = (a.as_ptr(), s.as_ptr(), c.as_mut_ptr(), n as i64);
            // SAFETY: matrices of these sizes; S's rows reach from its start on by `inner` in each column.
            unsafe { gemm(Op::N, Op::N, m, count, k, one, a, m.max(1), s, ld, zero, c, ldc) };
        };
        if count > 0 {
            product(half, above, upper, s, made);
            product(rest, below, lower, &s[count - below..], &mut made[half..]);
        }
        for (&i, into) in settled.iter().zip(made[n * count..].chunks_exact_mut(n)) {
            into.copy_from_slice(&q[i * ld..i * ld + n]);
        }
        for (to, &from) in order.iter().enumerate() {
            q[to * ld..to * ld + n].copy_from_slice(&made[from * n..(from + 1) * n]);
        }
    }
}

vectorized! {
/// `(x, y) = (c·x + s·y, c·y - s·x)`
pub(crate) fn turn[R: Real](x: &mut [R], y: &mut [R], c: R, s: R) {
    for (x, y) in x.iter_mut().zip(y) {
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}
}

/// What the places on the line are whose numbers a secular equation has as poles.
pub(crate) trait Poles<R: Real>: Copy + Send + Sync {
    /// By how much one is beyond another.
    fn beyond(self, one: R, other: R) -> R;
    /// The place that is this much beyond one.
    fn place(self, origin: R, by: R) -> R;
}

/// The poles themselves.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl<R: Real> Poles<R> for Plain {
    #[inline(always)]
    fn beyond(self, one: R, other: R) -> R {
        one - other
    }

    #[inline(always)]
    fn place(self, origin: R, by: R) -> R {
        origin + by
    }
}

/// Their roots, which are not negative: no digit is lost where two are near each other.
#[derive(Clone, Copy)]
pub(crate) struct Roots;

impl<R: Real> Poles<R> for Roots {
    #[inline(always)]
    fn beyond(self, one: R, other: R) -> R {
        (one - other) * (one + other)
    }

    #[inline(always)]
    fn place(self, origin: R, by: R) -> R {
        let root = (origin * origin + by).max(R::zero()).sqrt();
        if root.is_zero() { root } else { origin + by / (origin + root) }
    }
}

/// Zeros of the secular equation of ascending poles, and by how much each pole is beyond each zero as the columns of `s`. The answer is the
/// weights of which these zeros are exactly those: vectors of them are orthogonal, however near each other the zeros are. None: a zero was
/// not found.
pub(crate) fn zeros<R: Real, P: Poles<R>>(
    poles: &[R],
    weights: &[R],
    rho: R,
    values: &mut [R],
    s: &mut [R],
    line: P,
) -> Option<Vec<R>> {
    let count = poles.len();
    let squares: Vec<R> = weights.iter().map(|weight| *weight * *weight).collect();
    let work = |(number, (value, column)): (usize, (&mut R, &mut [R]))| {
        let found = zero(number, poles, &squares, rho, column, line);
        *value = found.unwrap_or(R::nan());
        found.is_some()
    };
    // A batch's matrices have cores of their own.
    let found = if count < SHARED {
        values.iter_mut().zip(s.chunks_exact_mut(count.max(1))).enumerate().all(work)
    } else {
        values
            .par_iter_mut()
            .zip(s.par_chunks_exact_mut(count))
            .enumerate()
            .map(work)
            .reduce(|| true, |one, other| one && other)
    };
    if !found {
        return None;
    }
    let mut exact: Vec<R> = (0..count).map(|i| s[i + i * count]).collect();
    for (number, column) in s.chunks_exact(count.max(1)).enumerate() {
        ratios(&mut exact, column, poles, number, line);
    }
    exact.iter_mut().zip(weights).for_each(|(exact, weight)| {
        let size = (-*exact).max(R::zero()).sqrt();
        *exact = if *weight < R::zero() { -size } else { size };
    });
    Some(exact)
}

/// Does `work` for the columns of a square matrix.
pub(crate) fn for_columns<R: Real>(count: usize, s: &mut [R], work: impl Fn(&mut [R]) + Send + Sync) {
    if count < SHARED {
        s.chunks_exact_mut(count.max(1)).for_each(work);
    } else {
        s.par_chunks_exact_mut(count).for_each(work);
    }
}

vectorized! {
/// Multiplies each weight's square with how far it is from this zero by how far from its pole.
fn ratios[R: Real, P: Poles<R>](exact: &mut [R], column: &[R], poles: &[R], number: usize, line: P) {
    let pole = poles[number];
    for range in [0..number, number + 1..poles.len()] {
        let (exact, column, poles) = (&mut exact[range.clone()], &column[range.clone()], &poles[range]);
        for ((exact, from), other) in exact.iter_mut().zip(column).zip(poles) {
            *exact *= *from / line.beyond(*other, pole);
        }
    }
}
}

vectorized! {
/// A vector of length 1 of the weights by how far their poles are from a zero.
fn direction[R: Real](column: &mut [R], exact: &[R]) {
    let mut lanes = [R::zero(); LANES];
    let (chunks, rest) = column.as_chunks_mut::<LANES>();
    let (weights, more) = exact.as_chunks::<LANES>();
    for (chunk, weights) in chunks.iter_mut().zip(weights) {
        for lane in 0..LANES {
            chunk[lane] = weights[lane] / chunk[lane];
            lanes[lane] += chunk[lane] * chunk[lane];
        }
    }
    for (lane, (value, weight)) in rest.iter_mut().zip(more).enumerate() {
        *value = *weight / *value;
        lanes[lane] += *value * *value;
    }
    let by = lanes.into_iter().fold(R::zero(), |sum, lane| sum + lane).sqrt().recip();
    column.iter_mut().for_each(|value| *value *= by);
}
}

/// `Σ w/(d - y)` and its derivative.
#[inline(always)]
fn sums<R: Real>(distances: &[R], squares: &[R], y: R) -> (R, R) {
    let (mut value, mut slope) = ([R::zero(); LANES], [R::zero(); LANES]);
    let (chunks, rest) = distances.as_chunks::<LANES>();
    let (weights, more) = squares.as_chunks::<LANES>();
    for (chunk, weights) in chunks.iter().zip(weights) {
        for lane in 0..LANES {
            let by = R::one() / (chunk[lane] - y);
            let term = weights[lane] * by;
            value[lane] += term;
            slope[lane] += term * by;
        }
    }
    for (lane, (distance, weight)) in rest.iter().zip(more).enumerate() {
        let by = R::one() / (*distance - y);
        let term = *weight * by;
        value[lane] += term;
        slope[lane] += term * by;
    }
    let total = |lanes: [R; LANES]| lanes.into_iter().fold(R::zero(), |sum, lane| sum + lane);
    (total(value), total(slope))
}

vectorized! {
/// The zero behind the pole of this number: `1/rho + Σ w/(d - y) = 0`. It is looked for as a distance from the pole that is nearer. How far
/// each pole is from it goes to `column`.
fn zero[R: Real, P: Poles<R>](number: usize, poles: &[R], squares: &[R], rho: R, column: &mut [R], line: P) -> Option<R> {
    let (zero, half) = (R::zero(), R::rounded(0.5));
    let is_last = number + 1 == poles.len();
    let constant = rho.recip();
    let gap = if is_last {
        rho * squares.iter().fold(zero, |sum, square| sum + *square)
    } else {
        line.beyond(poles[number + 1], poles[number])
    };
    let mut origin = poles[number];
    let distances = |column: &mut [R], origin: R| {
        column.iter_mut().zip(poles).for_each(|(distance, pole)| *distance = line.beyond(*pole, origin));
    };
    distances(column, origin);
    let (mut low, mut high) = (zero, gap);
    let mut y = gap * half;
    let mut is_first = true;
    for _ in 0..STEPS {
        let (near, far) = (number, number + 1);
        let (left, left_slope) = sums(&column[..far], &squares[..far], y);
        let (right, right_slope) = sums(&column[far..], &squares[far..], y);
        let f = constant + left + right;
        if is_first && !is_last && f < zero {
            // It is nearer to the other pole.
            origin = poles[far];
            distances(column, origin);
            (low, high, y) = (y - gap, zero, y - gap);
        } else if f < zero {
            low = y;
        } else {
            high = y;
        }
        is_first = false;
        let uncertain = R::rounded(8.0) * (left.abs() + right.abs()) + constant + y.abs() * (left_slope + right_slope);
        if f.abs() <= R::epsilon() * uncertain {
            break;
        }
        // What the two nearest poles, with the others' values and slopes added to theirs, would give.
        let here = column[near] - y;
        let step = if is_last {
            f * here / (f - (left_slope + right_slope) * here)
        } else {
            let there = column[far] - y;
            let c = f - left_slope * here - right_slope * there;
            let a = (here + there) * f - here * there * (left_slope + right_slope);
            let b = here * there * f;
            let root = (a * a - R::rounded(4.0) * b * c).max(zero).sqrt();
            if a <= zero { (a - root) / (c + c) } else { (b + b) / (a + root) }
        };
        let mut next = y + step;
        if !(next > low && next < high) {
            next = low + (high - low) * half;
        }
        if next == y || next == low || next == high {
            break;
        }
        y = next;
    }
    // No number is no zero.
    if !y.is_finite() {
        return None;
    }
    column.iter_mut().for_each(|distance| *distance -= y);
    Some(line.place(origin, y))
}
}
