//! Causal convolutions of sequences: each channel by itself, each place by those before it.

/// Arrays `batch × channels × length`, and `channels × taps`, of which the last is for the place itself.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub channels: usize,
    pub length: usize,
    pub taps: usize,
}

/// What a sum becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Identity,
    /// The sum times its sigmoid.
    Silu,
}

impl Activation {
    fn value(self, sum: f64) -> f64 {
        match self {
            Activation::Identity => sum,
            Activation::Silu => sum / (1.0 + (-sum).exp()),
        }
    }

    fn slope(self, sum: f64) -> f64 {
        match self {
            Activation::Identity => 1.0,
            Activation::Silu => {
                let sigmoid = 1.0 / (1.0 + (-sum).exp());
                sigmoid * (1.0 + sum * (1.0 - sigmoid))
            }
        }
    }
}

/// The sums of one sequence before the activation.
fn sums(taps: &[f64], bias: f64, x: &[f64], to: &mut [f64]) {
    to.fill(bias);
    for (nth, tap) in taps.iter().rev().enumerate() {
        to.iter_mut().skip(nth).zip(x).for_each(|(sum, x)| *sum += tap * x);
    }
}

pub fn forward(shape: &Shape, activation: Activation, (x, taps, bias): (&[f64], &[f64], &[f64])) -> Vec<f64> {
    let mut y = vec![0.0; x.len()];
    crate::pieces(&mut y, shape.length, shape.length * shape.taps, |number, y| {
        let channel = number % shape.channels;
        let (taps, x) = (&taps[channel * shape.taps..][..shape.taps], &x[number * shape.length..]);
        sums(taps, bias[channel], x, y);
        y.iter_mut().for_each(|sum| *sum = activation.value(*sum));
    });
    y
}

/// The gradients of the sequences, the taps and the biases.
pub fn backward(
    shape: &Shape,
    activation: Activation,
    (x, taps, bias): (&[f64], &[f64], &[f64]),
    dy: &[f64],
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (length, channels) = (shape.length, shape.channels);
    // What each sum's gradient is, sequence by sequence.
    let mut slopes = vec![0.0; x.len()];
    crate::pieces(&mut slopes, length, length * shape.taps, |number, slopes| {
        let channel = number % channels;
        sums(&taps[channel * shape.taps..][..shape.taps], bias[channel], &x[number * length..], slopes);
        for (slope, dy) in slopes.iter_mut().zip(&dy[number * length..]) {
            *slope = activation.slope(*slope) * dy;
        }
    });
    let mut dx = vec![0.0; x.len()];
    crate::pieces(&mut dx, length, length * shape.taps, |number, dx| {
        let taps = &taps[number % channels * shape.taps..][..shape.taps];
        let slopes = &slopes[number * length..][..length];
        for (nth, tap) in taps.iter().rev().enumerate() {
            dx.iter_mut().zip(slopes.iter().skip(nth)).for_each(|(dx, slope)| *dx += tap * slope);
        }
    });
    // A channel's sums are one core's.
    let sequences = x.len() / (length * channels).max(1);
    let mut sums = vec![0.0; channels * (shape.taps + 1)];
    crate::pieces(&mut sums, shape.taps + 1, sequences * length * shape.taps, |channel, sums| {
        for sequence in 0..sequences {
            let first = (sequence * channels + channel) * length;
            let (x, slopes) = (&x[first..][..length], &slopes[first..][..length]);
            for nth in 0..shape.taps.min(length) {
                let products = x.iter().zip(&slopes[nth..]).map(|(x, slope)| x * slope);
                sums[shape.taps - 1 - nth] += products.sum::<f64>();
            }
            sums[shape.taps] += slopes.iter().sum::<f64>();
        }
    });
    let d_taps = sums.chunks(shape.taps + 1).flat_map(|sums| &sums[..shape.taps]).copied().collect();
    let d_bias = sums.chunks(shape.taps + 1).map(|sums| sums[shape.taps]).collect();
    (dx, d_taps, d_bias)
}
