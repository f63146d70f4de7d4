//! Sparse vectors beside dense ones.

use crate::{Element, Index, Scalar};

/// `Y = alpha · X + beta · Y`
pub fn axpby<C: Scalar, I: Index, E: Element>(
    (alpha, beta): (C, C),
    (indices, values, base): (&[I], &[E], usize),
    y: &mut [E],
) {
    let load = |value: E| C::narrow(value.wide());
    if beta == C::ZERO {
        y.fill(E::default());
    } else if beta != C::ONE {
        y.iter_mut().for_each(|y| *y = E::narrow((beta * load(*y)).wide()));
    }
    for (index, value) in indices.iter().zip(values) {
        let y = &mut y[index.place(base)];
        *y = E::narrow((load(*y) + alpha * load(*value)).wide());
    }
}

pub fn gather<I: Index, E: Copy>(y: &[E], (indices, base): (&[I], usize), values: &mut [E]) {
    values.iter_mut().zip(indices).for_each(|(value, index)| *value = y[index.place(base)]);
}

pub fn scatter<I: Index, E: Copy>((indices, values, base): (&[I], &[E], usize), y: &mut [E]) {
    indices.iter().zip(values).for_each(|(index, value)| y[index.place(base)] = *value);
}

/// A Givens rotation of what both have.
pub fn rotate<C: Scalar, I: Index>(
    (c, s): (C, C),
    (indices, values, base): (&[I], &mut [C], usize),
    y: &mut [C],
) {
    for (index, x) in indices.iter().zip(values) {
        let y = &mut y[index.place(base)];
        (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
    }
}

/// The sum of `op(X) · Y`.
pub fn dot<C: Scalar, I: Index, X: Element, Y: Element>(
    (indices, values, base): (&[I], &[X], usize),
    conjugated: bool,
    y: &[Y],
) -> C {
    let mut sum = C::ZERO;
    for (index, value) in indices.iter().zip(values) {
        let value = C::narrow(value.wide()).conj_if(conjugated);
        sum += value * C::narrow(y[index.place(base)].wide());
    }
    sum
}
