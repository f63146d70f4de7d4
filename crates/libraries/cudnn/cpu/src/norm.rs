//! Normalization of an array `images × channels × pixels` with a mean and a variance for each channel, over images and pixels; with one
//! for each place, pixels are 1 and places the channels.

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

    fn all(&self) -> usize {
        self.images * self.channels * self.pixels
    }

    /// The runs of a channel.
    fn runs(self, channel: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
        (0..self.images).map(move |image| {
            let first = (image * self.channels + channel) * self.pixels;
            first..first + self.pixels
        })
    }

    /// An array with `f` of each element and its channel.
    fn map<V: Value>(self, f: impl Fn(usize, usize) -> V + Sync + Send) -> Vec<V> {
        let mut result = vec![V::zero(); self.all()];
        // Short runs together.
        let at_once = (4096 / self.pixels.max(1)).max(1);
        crate::pieces(&mut result, self.pixels * at_once, 4 * self.pixels * at_once, |number, piece| {
            for (run, piece) in piece.chunks_mut(self.pixels.max(1)).enumerate() {
                let run = number * at_once + run;
                let (channel, first) = (run % self.channels, run * self.pixels);
                piece.iter_mut().enumerate().for_each(|(at, to)| *to = f(first + at, channel));
            }
        });
        result
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
        let sum = |f: &dyn Fn(f64) -> f64| {
            shape.runs(channel).map(|run| x[run].iter().map(|x| f(x.get())).sum::<f64>()).sum::<f64>() / count
        };
        let mean = sum(&|x| x);
        [mean, sum(&|x| (x - mean) * (x - mean))]
    })
}

/// `scale · (x - mean) · inverse + bias`, where `inverse` is one over the deviation.
pub fn normalized<V: Value>(
    shape: Shape,
    x: &[V],
    (mean, inverse): (&[V], &[V]),
    scale: &[V],
    bias: &[V],
) -> Vec<V> {
    shape.map(|at, c| scale[c] * (x[at] - mean[c]) * inverse[c] + bias[c])
}

/// The gradients of x, scale and bias, where statistics were x's own.
pub fn backward<V: Value>(
    shape: Shape,
    x: &[V],
    dy: &[V],
    (mean, inverse): (&[V], &[V]),
    scale: &[V],
) -> (Vec<V>, Vec<V>, Vec<V>) {
    let [dscale, dbias] = each::<V, 2>(shape, |channel| {
        let (mean, inverse) = (mean[channel].get(), inverse[channel].get());
        let mut sums = [0.0, 0.0];
        for run in shape.runs(channel) {
            for (x, dy) in x[run.clone()].iter().zip(&dy[run]) {
                sums[0] += dy.get() * (x.get() - mean) * inverse;
                sums[1] += dy.get();
            }
        }
        sums
    });
    let count = V::of(shape.count().max(1) as f64);
    let dx = shape.map(|at, c| {
        let hat = (x[at] - mean[c]) * inverse[c];
        scale[c] * inverse[c] * (dy[at] - (dbias[c] + hat * dscale[c]) / count)
    });
    (dx, dscale, dbias)
}
