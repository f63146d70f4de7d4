//! Normalization of an array `images × channels × pixels` with a mean and a variance for each channel, over images and pixels; with one
//! for each place, pixels are 1 and places the channels.

use cublas_cpu::vectorized;

use crate::value::Value;

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub images: usize,
    pub channels: usize,
    pub pixels: usize,
}

impl Shape {
    pub fn count(&self) -> usize {
        self.images * self.pixels
    }

    /// The runs of a channel.
    fn runs(self, channel: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
        (0..self.images).map(move |image| {
            let first = (image * self.channels + channel) * self.pixels;
            first..first + self.pixels
        })
    }

    /// Calls `body` for each run of the array: its channel, the place of its first element, and itself.
    fn rows<V: Value>(self, of: &mut [V], body: impl Fn(usize, usize, &mut [V]) + Sync + Send) {
        // Short runs together.
        let at_once = (4096 / self.pixels.max(1)).max(1);
        crate::pieces(of, self.pixels * at_once, 4 * self.pixels * at_once, |number, piece| {
            for (run, row) in piece.chunks_mut(self.pixels.max(1)).enumerate() {
                let run = number * at_once + run;
                body(run % self.channels, run * self.pixels, row);
            }
        });
    }
}

/// Sums that grow beside each other, as many as a vector has room for.
const LANES: usize = 16;

vectorized! {
    /// The sum, in double precision.
    fn sum[V: Value](x: &[V]) -> f64 {
        let mut sums = [0.0; LANES];
        let chunks = x.chunks_exact(LANES);
        let rest = chunks.remainder();
        for x in chunks {
            for lane in 0..LANES {
                sums[lane] += x[lane].get();
            }
        }
        for (sum, x) in sums.iter_mut().zip(rest) {
            *sum += x.get();
        }
        sums.iter().sum()
    }
}

vectorized! {
    /// The sum of squared differences from the mean.
    fn squares[V: Value](x: &[V], mean: f64) -> f64 {
        let mut sums = [0.0; LANES];
        let chunks = x.chunks_exact(LANES);
        let rest = chunks.remainder();
        for x in chunks {
            for lane in 0..LANES {
                let far = x[lane].get() - mean;
                sums[lane] += far * far;
            }
        }
        for (sum, x) in sums.iter_mut().zip(rest) {
            let far = x.get() - mean;
            *sum += far * far;
        }
        sums.iter().sum()
    }
}

vectorized! {
    /// The sums of `dy · (x - mean)` and of `dy`.
    fn sums_of_both[V: Value](x: &[V], dy: &[V], mean: f64) -> [f64; 2] {
        let (mut products, mut sums) = ([0.0; LANES], [0.0; LANES]);
        let (xs, dys) = (x.chunks_exact(LANES), dy.chunks_exact(LANES));
        let rest = xs.remainder().iter().zip(dys.remainder());
        for (x, dy) in xs.clone().zip(dys.clone()) {
            for lane in 0..LANES {
                let dy = dy[lane].get();
                products[lane] += dy * (x[lane].get() - mean);
                sums[lane] += dy;
            }
        }
        for (lane, (x, dy)) in rest.enumerate() {
            products[lane] += dy.get() * (x.get() - mean);
            sums[lane] += dy.get();
        }
        [products.iter().sum(), sums.iter().sum()]
    }
}

vectorized! {
    fn normalize[V: Value](y: &mut [V], x: &[V], numbers: [V; 4]) {
        let [mean, inverse, scale, bias] = numbers;
        for (y, x) in y.iter_mut().zip(x) {
            *y = scale * (*x - mean) * inverse + bias;
        }
    }
}

vectorized! {
    /// `factor · (dy - (dbias + (x - mean) · inverse · dscale) / count)`
    fn gradient[V: Value](dx: &mut [V], x: &[V], dy: &[V], numbers: [V; 6]) {
        let [mean, inverse, factor, dscale, dbias, count] = numbers;
        for ((dx, x), dy) in dx.iter_mut().zip(x).zip(dy) {
            let hat = (*x - mean) * inverse;
            *dx = factor * (*dy - (dbias + hat * dscale) / count);
        }
    }
}

/// Numbers of each channel, by `f` on several cores.
fn each<V: Value, const N: usize>(shape: Shape, f: impl Fn(usize) -> [f64; N] + Sync + Send) -> [Vec<V>; N] {
    let mut found = vec![[0.0; N]; shape.channels];
    crate::pieces(&mut found, 1, 4 * shape.count(), |channel, found| found[0] = f(channel));
    core::array::from_fn(|which| found.iter().map(|numbers| V::of(numbers[which])).collect())
}

/// Mean and variance (of all, not corrected) of each channel, summed in double precision.
pub fn statistics<V: Value>(shape: Shape, x: &[V]) -> [Vec<V>; 2] {
    each(shape, |channel| {
        let count = shape.count().max(1) as f64;
        let mean = shape.runs(channel).map(|run| sum(&x[run])).sum::<f64>() / count;
        [mean, shape.runs(channel).map(|run| squares(&x[run], mean)).sum::<f64>() / count]
    })
}

/// `scale · (x - mean) · inverse + bias`, where `inverse` is one over the deviation, written into `y`.
pub fn normalized<V: Value>(
    shape: Shape,
    x: &[V],
    (mean, inverse): (&[V], &[V]),
    scale: &[V],
    bias: &[V],
    y: &mut [V],
) {
    shape.rows(y, |c, first, row| {
        let x = &x[first..first + row.len()];
        normalize(row, x, [mean[c], inverse[c], scale[c], bias[c]]);
    });
}

/// The gradients of scale and bias, where statistics were x's own.
pub fn gradients<V: Value>(shape: Shape, x: &[V], dy: &[V], (mean, inverse): (&[V], &[V])) -> [Vec<V>; 2] {
    each::<V, 2>(shape, |channel| {
        let (mean, inverse) = (mean[channel].get(), inverse[channel].get());
        let mut sums = [0.0, 0.0];
        for run in shape.runs(channel) {
            let [product, sum] = sums_of_both(&x[run.clone()], &dy[run], mean);
            sums[0] += product * inverse;
            sums[1] += sum;
        }
        sums
    })
}

/// The gradient of x, written into `dx`, where those of scale and bias are known.
pub fn backward<V: Value>(
    shape: Shape,
    x: &[V],
    dy: &[V],
    (mean, inverse): (&[V], &[V]),
    scale: &[V],
    [dscale, dbias]: &[Vec<V>; 2],
    dx: &mut [V],
) {
    let count = V::of(shape.count().max(1) as f64);
    shape.rows(dx, |c, first, row| {
        let (x, dy) = (&x[first..first + row.len()], &dy[first..first + row.len()]);
        gradient(row, x, dy, [mean[c], inverse[c], scale[c] * inverse[c], dscale[c], dbias[c], count]);
    });
}
