//! Normalization whose statistics are of any of an array's sizes: of layers, instances, batches, and by the mean of squares alone.
//!
//! Statistics, scales and biases have the array's number of sizes, and 1 where they are the same for all.

use crate::value::Value;

/// How statistics and scales go along sizes of the array: how often, and by how much each goes on, 0 or its stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Axis {
    count: usize,
    statistic: usize,
    scale: usize,
}

#[derive(Clone, Debug)]
pub struct Shape {
    outer: Vec<Axis>,
    /// The innermost sizes together, along which both go on by 0 or 1.
    row: Axis,
    statistics: usize,
    scales: usize,
    all: usize,
    /// Whether the mean is taken off.
    centered: bool,
}

/// Which of the two a sum is for.
#[derive(Clone, Copy)]
enum To {
    Statistic,
    Scale,
}

impl Shape {
    /// `None` where a size is neither the array's nor 1.
    pub fn new(x: &[usize], statistics: &[usize], scales: &[usize], centered: bool) -> Option<Shape> {
        let fits = |of: &[usize]| of.len() == x.len() && of.iter().zip(x).all(|(of, x)| of == x || *of == 1);
        if !fits(statistics) || !fits(scales) {
            return None;
        }
        let mut axes: Vec<Axis> = Vec::new();
        let (mut statistic, mut scale) = (1, 1);
        for at in (0..x.len()).rev() {
            let stride = |of: &[usize], stride: &mut usize| {
                let own = if of[at] == 1 { 0 } else { *stride };
                *stride *= of[at];
                own
            };
            let axis = Axis {
                count: x[at],
                statistic: stride(statistics, &mut statistic),
                scale: stride(scales, &mut scale),
            };
            if axis.count == 1 {
                continue;
            }
            // Sizes along which both go on as before are one.
            match axes.last_mut() {
                Some(last)
                    if axis.statistic == last.statistic * last.count
                        && axis.scale == last.scale * last.count =>
                {
                    last.count *= axis.count;
                }
                _ => axes.push(axis),
            }
        }
        axes.reverse();
        let row = axes.pop().unwrap_or(Axis { count: 1, statistic: 0, scale: 0 });
        Some(Shape {
            outer: axes,
            row,
            statistics: statistic,
            scales: scale,
            all: x.iter().product(),
            centered,
        })
    }

    /// Elements that one statistic is of.
    pub fn count(&self) -> usize {
        self.all / self.statistics.max(1)
    }

    fn rows(&self) -> usize {
        self.all / self.row.count.max(1)
    }

    /// Where the statistics and scales of a row begin.
    fn firsts(&self, mut row: usize) -> (usize, usize) {
        let (mut statistic, mut scale) = (0, 0);
        for axis in self.outer.iter().rev() {
            let place = row % axis.count;
            row /= axis.count;
            statistic += place * axis.statistic;
            scale += place * axis.scale;
        }
        (statistic, scale)
    }

    /// Sums of what `f` makes of each element, whose number it gets, and of the numbers of its statistic and its scale.
    fn sums<const N: usize>(
        &self,
        to: To,
        f: impl Fn(usize, usize, usize) -> [f64; N] + Sync + Send,
    ) -> Vec<[f64; N]> {
        let (length, count) = (
            self.row.count,
            match to {
                To::Statistic => self.statistics,
                To::Scale => self.scales,
            },
        );
        let step = match to {
            To::Statistic => self.row.statistic,
            To::Scale => self.row.scale,
        };
        let mut sums = vec![[0.0; N]; count];
        let add = |sum: &mut [f64; N], term: [f64; N]| {
            sum.iter_mut().zip(term).for_each(|(sum, term)| *sum += term)
        };
        let at = |row: usize, place: usize, (statistic, scale): (usize, usize)| {
            f(row * length + place, statistic + place * self.row.statistic, scale + place * self.row.scale)
        };
        let first = |(statistic, scale): (usize, usize)| match to {
            To::Statistic => statistic,
            To::Scale => scale,
        };
        if step == 0 {
            // A row has one sum.
            let mut rows = vec![[0.0; N]; self.rows()];
            crate::pieces(&mut rows, 1, 4 * length, |row, sum| {
                let firsts = self.firsts(row);
                (0..length).for_each(|place| add(&mut sum[0], at(row, place, firsts)));
            });
            rows.into_iter().enumerate().for_each(|(row, sum)| add(&mut sums[first(self.firsts(row))], sum));
        } else if count == length {
            // All rows have the same sums: each core has some of them.
            crate::pieces(&mut sums, 256, 1024 * self.rows(), |number, sums| {
                for row in 0..self.rows() {
                    let firsts = self.firsts(row);
                    for (place, sum) in sums.iter_mut().enumerate() {
                        add(sum, at(row, 256 * number + place, firsts));
                    }
                }
            });
        } else {
            for row in 0..self.rows() {
                let firsts = self.firsts(row);
                (0..length).for_each(|place| add(&mut sums[first(firsts) + place], at(row, place, firsts)));
            }
        }
        sums
    }

    /// An array of what `f` makes of each element's number, and of those of its statistic and its scale.
    fn map<V: Value>(&self, f: impl Fn(usize, usize, usize) -> V + Sync + Send) -> Vec<V> {
        let mut values = vec![V::zero(); self.all];
        let length = self.row.count;
        let at_once = (4096 / length).max(1);
        crate::pieces(&mut values, at_once * length, 4 * at_once * length, |number, values| {
            for (row, values) in values.chunks_mut(length).enumerate() {
                let row = number * at_once + row;
                let (statistic, scale) = self.firsts(row);
                for (place, value) in values.iter_mut().enumerate() {
                    let (statistic, scale) =
                        (statistic + place * self.row.statistic, scale + place * self.row.scale);
                    *value = f(row * length + place, statistic, scale);
                }
            }
        });
        values
    }
}

/// Means (zeros where they are not taken off) and variances, of all and not corrected.
pub fn statistics<V: Value>(of: &Shape, x: &[V]) -> (Vec<f64>, Vec<f64>) {
    let count = of.count().max(1) as f64;
    let means: Vec<f64> = if of.centered {
        of.sums(To::Statistic, |at, _, _| [x[at].get()]).into_iter().map(|[sum]| sum / count).collect()
    } else {
        vec![0.0; of.statistics]
    };
    let squares = of.sums(To::Statistic, |at, statistic, _| {
        let far = x[at].get() - means[statistic];
        [far * far]
    });
    let variances = squares.into_iter().map(|[sum]| sum / count).collect();
    (means, variances)
}

/// `scale · (x - mean) · inverse + bias`, where `inverse` is one over the deviation.
pub fn forward<V: Value>(
    of: &Shape,
    x: &[V],
    (means, inverses): (&[f64], &[f64]),
    scale: &[V],
    bias: Option<&[V]>,
) -> Vec<V> {
    of.map(|at, statistic, place| {
        let hat = V::of((x[at].get() - means[statistic]) * inverses[statistic]);
        let bias = bias.map_or(V::zero(), |bias| bias[place]);
        scale[place] * hat + bias
    })
}

/// The gradients of x, scale and bias, where statistics were x's own.
pub fn backward<V: Value>(
    of: &Shape,
    x: &[V],
    dy: &[V],
    (means, inverses): (&[f64], &[f64]),
    scale: &[V],
) -> (Vec<V>, Vec<V>, Vec<V>) {
    let hat = |at: usize, statistic: usize| (x[at].get() - means[statistic]) * inverses[statistic];
    let by_scale = of.sums(To::Scale, |at, statistic, _| {
        let dy = dy[at].get();
        [dy * hat(at, statistic), dy]
    });
    let count = of.count().max(1) as f64;
    let by_statistic = of.sums(To::Statistic, |at, statistic, place| {
        let gradient = dy[at].get() * scale[place].get();
        [gradient * hat(at, statistic), gradient]
    });
    let dx = of.map(|at, statistic, place| {
        let [of_hat, of_mean] = by_statistic[statistic];
        let mean = if of.centered { of_mean / count } else { 0.0 };
        let gradient = dy[at].get() * scale[place].get();
        V::of(inverses[statistic] * (gradient - mean - hat(at, statistic) * of_hat / count))
    });
    let of_scale = by_scale.iter().map(|sums| V::of(sums[0])).collect();
    (dx, of_scale, by_scale.iter().map(|sums| V::of(sums[1])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gradients are differences of the way forward.
    #[test]
    fn gradients_are_differences_whatever_statistics_are_of() {
        let x = [2, 3, 2, 2];
        let values = |seed: usize, count: usize| -> Vec<f64> {
            (0..count).map(|at| ((at * 37 + seed * 11) % 23) as f64 / 7.0 - 1.5).collect()
        };
        let (array, dy) = (values(1, 24), values(2, 24));
        for (statistics, scales, centered) in [
            ([2, 1, 1, 1], [1, 3, 2, 2], true),
            ([2, 1, 1, 1], [1, 3, 2, 2], false),
            ([2, 3, 1, 1], [1, 3, 1, 1], true),
            ([1, 3, 1, 1], [1, 3, 1, 1], true),
            ([2, 3, 2, 1], [1, 1, 1, 2], true),
            ([1, 3, 2, 2], [1, 3, 2, 2], true),
        ] {
            let of = Shape::new(&x, &statistics, &scales, centered).unwrap();
            let (scale, bias) = (values(3, scales.iter().product()), values(4, scales.iter().product()));
            let loss = |array: &[f64], scale: &[f64], bias: &[f64]| -> f64 {
                let (means, variances) = super::statistics(&of, array);
                let inverses: Vec<f64> =
                    variances.iter().map(|variance| 1.0 / (variance + 0.1).sqrt()).collect();
                let y = forward(&of, array, (&means, &inverses), scale, Some(bias));
                y.iter().zip(&dy).map(|(y, dy)| y * dy).sum()
            };
            let (means, variances) = super::statistics(&of, &array);
            let inverses: Vec<f64> = variances.iter().map(|variance| 1.0 / (variance + 0.1).sqrt()).collect();
            let (dx, dscale, dbias) = backward(&of, &array, &dy, (&means, &inverses), &scale);
            let lists = [(array.clone(), dx), (scale.clone(), dscale), (bias.clone(), dbias)];
            for (which, (list, gradient)) in lists.iter().enumerate() {
                for at in 0..list.len() {
                    let moved = |by: f64| {
                        let mut three = [array.clone(), scale.clone(), bias.clone()];
                        three[which][at] += by;
                        loss(&three[0], &three[1], &three[2])
                    };
                    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                    assert!((difference - gradient[at]).abs() < 1e-7, "{statistics:?} {which} {at}");
                }
            }
        }
        assert!(Shape::new(&x, &[2, 2, 1, 1], &x, true).is_none());
    }
}
