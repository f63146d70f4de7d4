//! Singular values and vectors of real bidiagonal matrices: QR with implicit shifts of small ones, and of large ones divide and conquer with
//! the vectors of Gu and Eisenstat. Numbers are about 1 in size; callers scale.
//!
//! A matrix falls into the rows above one in its middle, that row, and the rows below. The two parts are solved first; the first of them has
//! a column more than rows, and so has the second where the whole has. The middle row then stands across their singular values, and those of
//! the whole are the roots of a secular equation's zeros, whose poles are the parts' squared.

use cublas_cpu::{Real, vectorized};

use crate::dense::Dense;
use crate::divide::{self, Merged, Part, Roots};

/// So small matrices are solved by rotations.
const LEAF: usize = 32;
/// Sweeps for each singular value, of all together, before it is said that there is no convergence.
const PATIENCE: usize = 60;

/// Left and right vectors.
type Sides<R> = (Dense<R>, Dense<R>);

/// Singular values, descending, in the diagonal's place, and vectors if they are wanted. `e` has what stands above the diagonal, and is
/// overwritten. None: no convergence.
pub fn singular<R: Real>(d: &mut [R], e: &mut [R], vectors: bool) -> Option<Option<Sides<R>>> {
    let n = d.len();
    if !vectors {
        let converged = sweeps(d, e, &mut Vectors::none(), &mut Vectors::none());
        d.sort_unstable_by(|one, other| other.partial_cmp(one).unwrap_or(std::cmp::Ordering::Equal));
        return converged.then_some(None);
    }
    let mut u = Dense::zeros(n as i64, n as i64);
    let mut v = u.clone();
    let room = if n > LEAF { (n + 1) * (n + 1) } else { 0 };
    let mut work = Work {
        s: vec![R::zero(); room],
        t: vec![R::zero(); room],
        gathered: vec![R::zero(); room],
        made: vec![R::zero(); room],
    };
    let converged = solve(d, e, false, &mut u.values, &mut v.values, n, &mut work);
    d.reverse();
    for side in [&mut u, &mut v] {
        for column in 0..n as i64 / 2 {
            let (one, other) = side.pair_mut(column, n as i64 - 1 - column);
            one.swap_with_slice(other);
        }
    }
    converged.then_some(Some((u, v)))
}

/// Memory for merges.
struct Work<R> {
    /// Right and left vectors of the matrix with the middle row.
    s: Vec<R>,
    t: Vec<R>,
    gathered: Vec<R>,
    made: Vec<R>,
}

/// Of n rows, and a column more where it is `wide`, whose vectors begin at the starts of `u` and `v`, with their leading dimension. Values
/// come ascending; the column more is the last one of V's, with which the matrix makes nothing.
fn solve<R: Real>(
    d: &mut [R],
    e: &mut [R],
    wide: bool,
    u: &mut [R],
    v: &mut [R],
    ld: usize,
    work: &mut Work<R>,
) -> bool {
    let n = d.len();
    let columns = n + usize::from(wide);
    if n <= LEAF {
        let (mut left, mut right) = (Vectors::axes(n), Vectors::axes(columns));
        if wide {
            narrow(d, e, &mut left, &mut right);
        }
        let converged = sweeps(d, &mut e[..n - 1], &mut left, &mut right);
        left.write(n, u, ld);
        right.write(columns, v, ld);
        divide::sort(d, [(u, n), (v, columns)], ld);
        return converged;
    }
    let half = n / 2;
    let middle = (d[half], e[half]);
    let converged = {
        let ((above, below), (first, second)) = (d.split_at_mut(half), e.split_at_mut(half));
        let corner = (half + 1) * (ld + 1);
        solve(above, first, true, u, v, ld, work)
            && solve(&mut below[1..], &mut second[1..], wide, &mut u[corner..], &mut v[corner..], ld, work)
    };
    converged && merge(d, middle, wide, u, v, ld, work)
}

/// The rotation that leads `(f, g)` to `(r, 0)`: cosine, sine and r.
#[inline(always)]
fn rotation<R: Real>(f: R, g: R) -> (R, R, R) {
    if g.is_zero() {
        return (R::one(), R::zero(), f);
    }
    if f.is_zero() {
        return (R::zero(), R::one(), g);
    }
    let square = f * f + g * g;
    // Squares of less have lost digits.
    if square > R::min_positive_value() / (R::epsilon() * R::epsilon()) {
        let r = square.sqrt();
        let by = r.recip();
        return (f * by, g * by, r);
    }
    let most = f.abs().max(g.abs());
    let (f, g) = (f / most, g / most);
    let r = (f * f + g * g).sqrt();
    (f / r, g / r, r * most)
}

/// Rows of a vector that turn at a time: no loop has rows left over, which in short ones would take longer than the others.
const ROWS: usize = 8;

/// Vectors that turn with the matrix, columns of so many groups of rows; none where there are no groups.
struct Vectors<R> {
    values: Vec<[R; ROWS]>,
    groups: usize,
}

impl<R: Real> Vectors<R> {
    fn none() -> Self {
        Self { values: vec![], groups: 0 }
    }

    fn axes(count: usize) -> Self {
        let groups = count.div_ceil(ROWS);
        let mut values = vec![[R::zero(); ROWS]; groups * count];
        (0..count).for_each(|i| values[i * groups + i / ROWS][i % ROWS] = R::one());
        Self { values, groups }
    }

    /// Into columns that are so far apart.
    fn write(&self, count: usize, to: &mut [R], ld: usize) {
        for column in 0..count {
            let from = self.values[column * self.groups..][..self.groups].as_flattened();
            to[column * ld..][..count].copy_from_slice(&from[..count]);
        }
    }

    /// A column's opposite.
    fn turn_round(&mut self, column: usize) {
        let column = &mut self.values[column * self.groups..][..self.groups];
        column.as_flattened_mut().iter_mut().for_each(|value| *value = -*value);
    }

    /// A column and the next: `(c·x + s·y, c·y - s·x)`.
    #[inline(always)]
    fn turn(&mut self, first: usize, c: R, s: R) {
        let groups = self.groups;
        if groups == 0 {
            return;
        }
        let (before, from) = self.values.split_at_mut((first + 1) * groups);
        let (x, y) = (&mut before[first * groups..][..groups], &mut from[..groups]);
        for group in 0..groups {
            let (one, other) = (x[group], y[group]);
            for row in 0..ROWS {
                x[group][row] = c * one[row] + s * other[row];
                y[group][row] = c * other[row] - s * one[row];
            }
        }
    }
}

vectorized! {
/// Takes the last column's number away, of a matrix with one more than rows: by rotations from the right, of which it becomes a lower
/// bidiagonal matrix, and from the left, of which it becomes an upper one again.
fn narrow[R: Real](d: &mut [R], e: &mut [R], u: &mut Vectors<R>, v: &mut Vectors<R>) {
    let n = d.len();
    for i in 0..n {
        let (c, s, r) = rotation(d[i], e[i]);
        d[i] = r;
        if i + 1 < n {
            e[i] = s * d[i + 1];
            d[i + 1] *= c;
        } else {
            e[i] = R::zero();
        }
        v.turn(i, c, s);
    }
    for i in 0..n - 1 {
        let (c, s, r) = rotation(d[i], e[i]);
        d[i] = r;
        e[i] = s * d[i + 1];
        d[i + 1] *= c;
        u.turn(i, c, s);
    }
}
}

/// The smaller singular value of `[f g; 0 h]`.
#[inline(always)]
fn smaller<R: Real>(f: R, g: R, h: R) -> R {
    let (f, g, h) = (f.abs(), g.abs(), h.abs());
    let (least, most) = (f.min(h), f.max(h));
    if least.is_zero() {
        return R::zero();
    }
    let (one, two) = (R::one(), R::one() + R::one());
    let (sum, apart) = (one + least / most, (most - least) / most);
    if g < most {
        let by = g / most * (g / most);
        return least * (two / ((sum * sum + by).sqrt() + (apart * apart + by).sqrt()));
    }
    let by = most / g;
    if by.is_zero() {
        return least * most / g;
    }
    let (sum, apart) = (sum * by, apart * by);
    two * (least * (one / ((one + sum * sum).sqrt() + (one + apart * apart).sqrt()))) * by
}

vectorized! {
/// QR with implicit shifts (Golub and Kahan), from the larger end to the smaller one. The vectors turn with the matrix.
fn sweeps[R: Real](d: &mut [R], e: &mut [R], u: &mut Vectors<R>, v: &mut Vectors<R>) -> bool {
    let n = d.len();
    let norm = d.iter().chain(e.iter()).fold(R::zero(), |most, value| most.max(value.abs()));
    // Numbers are about 1 in size where they are not small: what has lost digits is nothing beside that.
    let nothing =
        (R::epsilon() * norm * R::rounded(0.25)).max(R::min_positive_value() / (R::epsilon() * R::epsilon()));
    let mut high = n.saturating_sub(1);
    let (mut steps, mut downwards, mut block) = (0, true, (n, n));
    while high > 0 {
        let is_nothing = |i: usize, d: &[R], e: &[R]| {
            e[i].abs() <= (R::epsilon() * R::rounded(0.5) * (d[i].abs() + d[i + 1].abs())).max(nothing)
        };
        let mut low = high;
        while low > 0 && !is_nothing(low - 1, d, e) {
            low -= 1;
        }
        if low > 0 {
            e[low - 1] = R::zero();
        }
        if low == high {
            high -= 1;
            continue;
        }
        steps += 1;
        if steps > PATIENCE * n {
            return false;
        }
        // One that falls apart goes on as it began.
        if low > block.1 || high < block.0 {
            downwards = d[low].abs() >= d[high].abs();
        }
        block = (low, high);
        // What is at least as small as the least singular value: beside nothing a shift would only disturb.
        let mut least = d[low].abs();
        for i in low..high {
            let sum = least + e[i].abs();
            least = if sum.is_zero() { sum } else { d[i + 1].abs() * (least / sum) };
        }
        let (start, end) = if downwards { (low, high - 1) } else { (high, low) };
        let mut shift = smaller(d[end], e[end], d[end + 1]);
        let share = shift / d[start].abs();
        if least <= nothing || share * share <= R::epsilon() || share.is_nan() {
            shift = R::zero();
        }
        let mut f = d[start];
        if !shift.is_zero() {
            let sign = if f < R::zero() { -R::one() } else { R::one() };
            f = (f.abs() - shift) * (sign + shift / f);
        }
        if downwards {
            let mut g = e[low];
            for i in low..high {
                let (c, s, r) = rotation(f, g);
                if i > low {
                    e[i - 1] = r;
                }
                f = c * d[i] + s * e[i];
                e[i] = c * e[i] - s * d[i];
                g = s * d[i + 1];
                d[i + 1] *= c;
                v.turn(i, c, s);
                let (c, s, r) = rotation(f, g);
                d[i] = r;
                f = c * e[i] + s * d[i + 1];
                d[i + 1] = c * d[i + 1] - s * e[i];
                if i + 1 < high {
                    g = s * e[i + 1];
                    e[i + 1] *= c;
                }
                u.turn(i, c, s);
            }
            e[high - 1] = f;
        } else {
            let mut g = e[high - 1];
            for i in (low + 1..=high).rev() {
                let (c, s, r) = rotation(f, g);
                if i < high {
                    e[i] = r;
                }
                f = c * d[i] + s * e[i - 1];
                e[i - 1] = c * e[i - 1] - s * d[i];
                g = s * d[i - 1];
                d[i - 1] *= c;
                u.turn(i - 1, c, -s);
                let (c, s, r) = rotation(f, g);
                d[i] = r;
                f = c * e[i - 1] + s * d[i - 1];
                d[i - 1] = c * d[i - 1] - s * e[i - 1];
                if i > low + 1 {
                    g = s * e[i - 2];
                    e[i - 2] *= c;
                }
                v.turn(i - 1, c, -s);
            }
            e[low] = f;
        }
    }
    for (i, value) in d.iter_mut().enumerate() {
        if *value < R::zero() {
            *value = -*value;
            v.turn_round(i);
        }
    }
    d.iter().all(|value| value.is_finite())
}
}

/// Puts two solved parts and the row between them together; the first part has as many rows as that row's number is.
fn merge<R: Real>(
    d: &mut [R],
    (alpha, beta): (R, R),
    wide: bool,
    u: &mut [R],
    v: &mut [R],
    ld: usize,
    work: &mut Work<R>,
) -> bool {
    let n = d.len();
    let (half, columns) = (n / 2, n + usize::from(wide));
    // The middle row across the parts' right vectors; in its own place the one with which the first part makes nothing.
    let mut z: Vec<R> = (0..n)
        .map(|i| if i <= half { alpha * v[half + i * ld] } else { beta * v[half + 1 + i * ld] })
        .collect();
    u[half + half * ld] = R::one();
    d[half] = R::zero();
    if wide {
        // Of the two with which the parts make nothing one becomes the whole's.
        let other = beta * v[half + 1 + n * ld];
        let (c, s, r) = rotation(z[half], other);
        let (before, last) = v.split_at_mut(n * ld);
        divide::turn(&mut before[half * ld..half * ld + columns], &mut last[..columns], c, s);
        z[half] = r;
    }
    let most = |of: &[R]| of.iter().fold(R::zero(), |most, value| most.max(value.abs()));
    let largest = most(d).max(alpha.abs()).max(beta.abs());
    if largest.is_zero() {
        return true;
    }
    // Of less the squares have lost digits, and it is nothing beside the whole matrix's 1.
    let least = (R::min_positive_value() / R::epsilon()).sqrt();
    let nothing = (R::rounded(8.0) * R::epsilon() * largest).max(least);
    let mut parts: Vec<Part> = (0..n).map(|i| if i < half { Part::Above } else { Part::Below }).collect();
    parts[half] = Part::Both;
    // The pole of the middle row is 0 and always kept.
    if z[half].abs() <= nothing {
        z[half] = if z[half] < R::zero() { -nothing } else { nothing };
    }
    let mut order = divide::ascending(d);
    order.retain(|&i| i != half);
    let (mut settled, mut kept) = (vec![], vec![half]);
    let mut before: Option<usize> = None;
    for &next in &order {
        if z[next].abs() <= nothing {
            settled.push(next);
            continue;
        }
        let Some(last) = before.replace(next) else { continue };
        if d[next] - d[last] > nothing {
            kept.push(last);
            continue;
        }
        // Two that are as good as the same: one of them gets all of both vectors' part in z.
        let (c, s, size) = rotation(z[next], -z[last]);
        (z[next], z[last]) = (size, R::zero());
        if parts[last] != parts[next] {
            (parts[last], parts[next]) = (Part::Both, Part::Both);
        }
        let (first, second) = (last.min(next), last.max(next));
        for (side, rows) in [(&mut *u, n), (&mut *v, columns)] {
            let (low, high) = side.split_at_mut(second * ld);
            let (x, y) = (&mut low[first * ld..first * ld + rows], &mut high[..rows]);
            divide::turn(x, y, c, if first == last { s } else { -s });
        }
        settled.push(last);
    }
    kept.extend(before);
    let count = kept.len();
    // Nothing is nearer to the pole 0 than what is nothing.
    let poles: Vec<R> = kept
        .iter()
        .map(|&i| if i == half { R::zero() } else { d[i].max(nothing * R::rounded(0.5)) })
        .collect();
    let weights: Vec<R> = kept.iter().map(|&i| z[i]).collect();
    let mut values = vec![R::zero(); count];
    let (s, t) = (&mut work.s[..count * count], &mut work.t[..count * count]);
    let Some(exact) = divide::zeros(&poles, &weights, R::one(), &mut values, s, Roots) else { return false };
    for (right, left) in s.chunks_exact_mut(count).zip(t.chunks_exact_mut(count)) {
        directions(right, left, &exact, &poles);
    }
    values.extend(settled.iter().map(|&i| d[i]));
    let order = divide::ascending(&values);
    d.iter_mut().zip(&order).for_each(|(d, &from)| *d = values[from]);
    let merged = Merged { kept: &kept, settled: &settled, parts: &parts, order: &order };
    merged.vectors(v, ld, columns, half + 1, &mut work.s, &mut work.gathered, &mut work.made);
    merged.vectors(u, ld, n, half + 1, &mut work.t, &mut work.gathered, &mut work.made);
    true
}

vectorized! {
/// A right and a left vector of length 1, of the weights by how far their poles are from a zero, which is what is in `right`.
fn directions[R: Real](right: &mut [R], left: &mut [R], exact: &[R], poles: &[R]) {
    let count = right.len();
    assert!(left.len() == count && exact.len() == count && poles.len() == count, "one for each");
    for i in 0..count {
        right[i] = exact[i] / right[i];
        left[i] = poles[i] * right[i];
    }
    left[0] = -R::one();
    for side in [right, left] {
        let mut lanes = [R::zero(); 8];
        let (chunks, rest) = side.as_chunks::<8>();
        for chunk in chunks {
            for lane in 0..8 {
                lanes[lane] += chunk[lane] * chunk[lane];
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            lanes[lane] += *value * *value;
        }
        let by = lanes.into_iter().fold(R::zero(), |sum, lane| sum + lane).sqrt().recip();
        for value in side.iter_mut() {
            *value *= by;
        }
    }
}
}
