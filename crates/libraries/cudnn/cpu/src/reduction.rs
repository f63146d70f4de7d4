//! Sums, products, extremes and norms over some sizes of an array.

use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Add,
    Mul,
    Min,
    Max,
    Amax,
    Mean,
    Norm1,
    Norm2,
    MulNoZeros,
}

/// The reduction, and where an extreme was found: the first place among those that are reduced, counted in their order. A size of
/// `output` is that of `input`, or 1 where it is reduced. Sums are in double precision.
pub fn reduce<V: Value>(
    of: Reduction,
    keeps_nan: bool,
    input: &[usize],
    output: &[usize],
    x: &[V],
) -> (Vec<V>, Vec<u32>) {
    let count: usize = output.iter().product();
    let strides = |sizes: &[usize]| {
        let mut strides = vec![1; sizes.len()];
        for at in (1..sizes.len()).rev() {
            strides[at - 1] = strides[at] * sizes[at];
        }
        strides
    };
    let (from, to) = (strides(input), strides(output));
    let reduced: Vec<usize> = (0..input.len()).filter(|&at| output[at] == 1 && input[at] != 1).collect();
    let n: usize = reduced.iter().map(|&at| input[at]).product();
    // The last of the reduced sizes is gone over in the innermost loop.
    let (last_count, last_stride) = reduced.last().map_or((1, 1), |&at| (input[at], from[at]));
    let rest = &reduced[..reduced.len().saturating_sub(1)];
    let mut found = vec![(V::zero(), 0_u32); count];
    crate::pieces(&mut found, 1, n, |number, found| {
        let base: usize = (0..output.len()).map(|at| number / to[at] % output[at] * from[at]).sum();
        let lines = (0..n / last_count.max(1)).map(|mut line| {
            let mut at = base;
            for &size in rest.iter().rev() {
                at += line % input[size] * from[size];
                line /= input[size];
            }
            at
        });
        let places = lines.flat_map(|line| (0..last_count).map(move |at| line + at * last_stride));
        found[0] = of.over(keeps_nan, n, places.map(|at| x[at]));
    });
    found.into_iter().unzip()
}

impl Reduction {
    fn over<V: Value>(self, keeps_nan: bool, n: usize, values: impl Iterator<Item = V>) -> (V, u32) {
        let mut sum = if matches!(self, Reduction::Mul | Reduction::MulNoZeros) { 1.0 } else { 0.0 };
        match self {
            Reduction::Add | Reduction::Mean => values.for_each(|value| sum += value.get()),
            Reduction::Norm1 => values.for_each(|value| sum += value.get().abs()),
            Reduction::Norm2 => values.for_each(|value| sum += value.get() * value.get()),
            Reduction::Mul => values.for_each(|value| sum *= value.get()),
            Reduction::MulNoZeros => {
                values.filter(|value| !value.is_zero()).for_each(|value| sum *= value.get());
            }
            Reduction::Min | Reduction::Max | Reduction::Amax => {
                return self.extreme(keeps_nan, values);
            }
        }
        let result = match self {
            Reduction::Mean => sum / n.max(1) as f64,
            Reduction::Norm2 => sum.sqrt(),
            _ => sum,
        };
        (V::of(result), 0)
    }

    fn extreme<V: Value>(self, keeps_nan: bool, values: impl Iterator<Item = V>) -> (V, u32) {
        let mut best: Option<(V, u32)> = None;
        for (at, value) in (0..).zip(values) {
            let value = if self == Reduction::Amax { value.abs() } else { value };
            let is_better = match best {
                None => true,
                Some((best, _)) if best.is_nan() => !keeps_nan && !value.is_nan(),
                Some(_) if value.is_nan() => keeps_nan,
                Some((best, _)) if self == Reduction::Min => value < best,
                Some((best, _)) => value > best,
            };
            if is_better {
                best = Some((value, at));
            }
        }
        best.unwrap_or((V::zero(), 0))
    }
}
