//! Spatial transformers: a grid of places by an affine map, and images sampled at them, in two directions each.
//!
//! Places are counted from -1 to 1, which are the centres of the first and the last pixel. What is outside of an image is 0.

use crate::value::Value;

/// Images, channels, height and width of what is sampled, and height and width of the grid.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub images: usize,
    pub channels: usize,
    pub input: [usize; 2],
    pub output: [usize; 2],
}

/// A place along a size of the grid.
fn place<V: Value>(at: usize, size: usize) -> V {
    if size > 1 { V::of(2.0 * at as f64 / (size - 1) as f64 - 1.0) } else { V::zero() }
}

/// For each image and pixel the place's x and y: the image's two rows of three times x, y and 1.
pub fn grid<V: Value>(images: usize, [height, width]: [usize; 2], theta: &[V]) -> Vec<V> {
    let mut grid = Vec::with_capacity(images * height * width * 2);
    for theta in theta.chunks(6).take(images) {
        for row in 0..height {
            for column in 0..width {
                let (x, y) = (place::<V>(column, width), place::<V>(row, height));
                grid.push(theta[0] * x + theta[1] * y + theta[2]);
                grid.push(theta[3] * x + theta[4] * y + theta[5]);
            }
        }
    }
    grid
}

/// The gradient of the maps.
pub fn grid_backward<V: Value>(images: usize, [height, width]: [usize; 2], dgrid: &[V]) -> Vec<V> {
    let mut dtheta = Vec::with_capacity(6 * images);
    for image in 0..images {
        let mut sums = [0.0; 6];
        for row in 0..height {
            for column in 0..width {
                let (x, y) = (place::<f64>(column, width), place::<f64>(row, height));
                let at = 2 * ((image * height + row) * width + column);
                for (line, sums) in sums.chunks_mut(3).enumerate() {
                    let d = dgrid[at + line].get();
                    sums.iter_mut().zip([x, y, 1.0]).for_each(|(sum, by)| *sum += d * by);
                }
            }
        }
        dtheta.extend(sums.map(V::of));
    }
    dtheta
}

/// The four pixels around a place: where they are in a channel, if inside, with their shares; and how the shares go with x and y.
struct Around<V> {
    at: [Option<usize>; 4],
    share: [V; 4],
    by_x: [V; 4],
    by_y: [V; 4],
}

impl Shape {
    fn around<V: Value>(&self, x: V, y: V) -> Around<V> {
        let [height, width] = self.input;
        let scale = |size: usize| V::of(size.saturating_sub(1) as f64 / 2.0);
        let (of_x, of_y) = (scale(width), scale(height));
        let (x, y) = ((x + V::one()) * of_x, (y + V::one()) * of_y);
        let (left, top) = (x.floor(), y.floor());
        let (right, below) = (x - left, y - top);
        let inside = |at: V, add: usize, size: usize| {
            let at = at.get() + add as f64;
            (at >= 0.0 && at < size as f64).then_some(at as usize)
        };
        let pixel =
            |down: usize, over: usize| Some(inside(top, down, height)? * width + inside(left, over, width)?);
        let (rest, under) = (V::one() - right, V::one() - below);
        Around {
            at: [pixel(0, 0), pixel(0, 1), pixel(1, 0), pixel(1, 1)],
            share: [rest * under, right * under, rest * below, right * below],
            by_x: [-under, under, -below, below].map(|by| by * of_x),
            by_y: [-rest, -right, rest, right].map(|by| by * of_y),
        }
    }

    fn pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn inputs(&self) -> usize {
        self.input[0] * self.input[1]
    }
}

/// Images sampled at the grid's places.
pub fn sample<V: Value>(of: &Shape, x: &[V], grid: &[V]) -> Vec<V> {
    let (inputs, pixels) = (of.inputs(), of.pixels());
    let mut y = vec![V::zero(); of.images * of.channels * pixels];
    crate::pieces(&mut y, of.channels * pixels, 8 * of.channels * pixels, |image, y| {
        for pixel in 0..pixels {
            let place = &grid[2 * (image * pixels + pixel)..][..2];
            let around = of.around(place[0], place[1]);
            for channel in 0..of.channels {
                let x = &x[(image * of.channels + channel) * inputs..][..inputs];
                let shares = around.at.iter().zip(around.share);
                y[channel * pixels + pixel] = shares
                    .filter_map(|(at, share)| at.map(|at| x[at] * share))
                    .fold(V::zero(), |sum, part| sum + part);
            }
        }
    });
    y
}

/// Gradients of images and of the grid.
pub fn sample_backward<V: Value>(of: &Shape, x: &[V], grid: &[V], dy: &[V]) -> (Vec<V>, Vec<V>) {
    let (inputs, pixels) = (of.inputs(), of.pixels());
    let (mut dx, mut dgrid) = (vec![V::zero(); x.len()], vec![V::zero(); grid.len()]);
    let images = of.images * of.channels * pixels;
    let both = |image: usize, dx: &mut [V], dgrid: &mut [V]| {
        for pixel in 0..pixels {
            let place = &grid[2 * (image * pixels + pixel)..][..2];
            let around = of.around(place[0], place[1]);
            let (mut by_x, mut by_y) = (V::zero(), V::zero());
            for channel in 0..of.channels {
                let x = &x[(image * of.channels + channel) * inputs..][..inputs];
                let d = dy[(image * of.channels + channel) * pixels + pixel];
                for (corner, at) in around.at.iter().enumerate() {
                    if let Some(at) = *at {
                        dx[channel * inputs + at] += d * around.share[corner];
                        by_x += d * x[at] * around.by_x[corner];
                        by_y += d * x[at] * around.by_y[corner];
                    }
                }
            }
            (dgrid[2 * pixel], dgrid[2 * pixel + 1]) = (by_x, by_y);
        }
    };
    let (dx_size, dgrid_size) = ((of.channels * inputs).max(1), (2 * pixels).max(1));
    if images >= crate::WORTH {
        use rayon::prelude::*;
        dx.par_chunks_mut(dx_size)
            .zip(dgrid.par_chunks_mut(dgrid_size))
            .enumerate()
            .for_each(|(image, (dx, dgrid))| both(image, dx, dgrid));
    } else {
        for (image, (dx, dgrid)) in dx.chunks_mut(dx_size).zip(dgrid.chunks_mut(dgrid_size)).enumerate() {
            both(image, dx, dgrid);
        }
    }
    (dx, dgrid)
}
