//! The largest or the mean of what a window meets.
//!
//! Arrays are images of so many channels, one behind the other, of up to three sizes.

use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first of those that are equal; whether a NaN is the largest of all.
    Max(bool),
    /// Divided by the window's size.
    MeanOfAll,
    /// Divided by how many are inside.
    MeanOfInside,
}

#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub window: [usize; 3],
    pub padding: [isize; 3],
    pub stride: [usize; 3],
}

impl Window {
    fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    fn outputs(&self) -> usize {
        self.output.iter().product()
    }

    /// What is inside along a size: first and end.
    fn inside(&self, axis: usize, place: usize) -> (usize, usize) {
        let begin = (place * self.stride[axis]) as isize - self.padding[axis];
        let end = (begin + self.window[axis] as isize).clamp(0, self.input[axis] as isize);
        (begin.clamp(0, end) as usize, end as usize)
    }

    /// Calls `body` with each place of the output and the places of the input that it meets.
    fn each(&self, mut body: impl FnMut(usize, &mut dyn Iterator<Item = usize>, usize)) {
        let [depth, height, width] = self.output;
        for d in 0..depth {
            let (d0, d1) = self.inside(0, d);
            for h in 0..height {
                let (h0, h1) = self.inside(1, h);
                for w in 0..width {
                    let (w0, w1) = self.inside(2, w);
                    let lines = (d0..d1).flat_map(|d| (h0..h1).map(move |h| (d, h)));
                    let mut places = lines.flat_map(|(d, h)| {
                        let line = (d * self.input[1] + h) * self.input[2];
                        line + w0..line + w1
                    });
                    let count = (d1 - d0) * (h1 - h0) * (w1 - w0);
                    body((d * height + h) * width + w, &mut places, count);
                }
            }
        }
    }

    /// Gives each place of the output what `with` makes of `start` and of what it meets, one after the other. Lines of the output are
    /// gone through as often as a window has places, so that each time is a loop over neighbours.
    fn fold<V: Value>(&self, x: &[V], y: &mut [V], start: V, with: impl Fn(V, V) -> V) {
        let ([_, lines, length], [_, height, width]) = (self.input, self.output);
        y.fill(start);
        for (number, y) in y.chunks_exact_mut(width.max(1)).enumerate() {
            let (d, h) = (self.inside(0, number / height), self.inside(1, number % height));
            for line in (d.0..d.1).flat_map(|d| (h.0..h.1).map(move |h| d * lines + h)) {
                let x = &x[line * length..][..length];
                for nth in 0..self.window[2] {
                    let (stride, ahead) = (self.stride[2] as isize, nth as isize - self.padding[2]);
                    // Where `w * stride + ahead` is inside: from the first that is not before it to the first that is behind it.
                    let first = (stride - 1 - ahead).max(0) / stride;
                    let end = ((length as isize - ahead + stride - 1).max(0) / stride).min(width as isize);
                    if first >= end {
                        continue;
                    }
                    let y = &mut y[first as usize..end as usize];
                    let x = &x[(first * stride + ahead) as usize..];
                    match stride {
                        1 => y.iter_mut().zip(x).for_each(|(y, &x)| *y = with(*y, x)),
                        _ => y
                            .iter_mut()
                            .zip(x.iter().step_by(stride as usize))
                            .for_each(|(y, &x)| *y = with(*y, x)),
                    }
                }
            }
        }
    }

    fn divisor(&self, mode: Pooling, inside: usize) -> usize {
        if mode == Pooling::MeanOfAll { self.window.iter().product() } else { inside }
    }
}

/// The place of the largest of those.
fn largest<V: Value>(x: &[V], places: &mut dyn Iterator<Item = usize>, keeps_nan: bool) -> Option<usize> {
    let mut found: Option<usize> = None;
    for at in places {
        let is_larger = match found {
            None => keeps_nan || !x[at].is_nan(),
            Some(best) if keeps_nan => !x[best].is_nan() && (x[at].is_nan() || x[at] > x[best]),
            Some(best) => x[at] > x[best],
        };
        if is_larger {
            found = Some(at);
        }
    }
    found
}

pub fn forward<V: Value>(mode: Pooling, of: &Window, x: &[V], y: &mut [V]) {
    let work = of.outputs() * of.window.iter().product::<usize>();
    crate::pieces(y, of.outputs(), work, |number, y| {
        let x = &x[number * of.inputs()..][..of.inputs()];
        match mode {
            // A NaN is no larger than what is there.
            Pooling::Max(false) => {
                of.fold(x, y, V::neg_infinity(), |best, x| if x > best { x } else { best })
            }
            Pooling::Max(true) => {
                of.fold(x, y, V::neg_infinity(), |best, x| if best >= x || best.is_nan() { best } else { x });
            }
            Pooling::MeanOfAll | Pooling::MeanOfInside => {
                of.fold(x, y, V::zero(), |sum, x| sum + x);
                of.each(|place, _, count| y[place] /= V::of(of.divisor(mode, count).max(1) as f64));
            }
        }
    });
}

pub fn backward<V: Value>(mode: Pooling, of: &Window, x: &[V], dy: &[V]) -> Vec<V> {
    let channels = dy.len() / of.outputs().max(1);
    let mut dx = vec![V::zero(); channels * of.inputs()];
    let work = of.outputs() * of.window.iter().product::<usize>();
    crate::pieces(&mut dx, of.inputs(), work, |number, dx| {
        let dy = &dy[number * of.outputs()..][..of.outputs()];
        of.each(|place, places, count| match mode {
            Pooling::Max(keeps_nan) => {
                if let Some(at) = largest(&x[number * of.inputs()..], places, keeps_nan) {
                    dx[at] += dy[place];
                }
            }
            _ => {
                let share = dy[place] / V::of(of.divisor(mode, count).max(1) as f64);
                places.for_each(|at| dx[at] += share);
            }
        });
    });
    dx
}
