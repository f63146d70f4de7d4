//! Complex transforms along one axis of an array: all of its lines, however they lie.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;

use crate::columns::{Columns, Rows};
use crate::cores::Context;
use crate::element::{Direction, Real, root};
use crate::error::Result;
use crate::isa::{Isa, Kernels, RunSmall};
use crate::kernel::{Small, Tile};
use crate::line::Line;
use crate::{scratch, tables};

/// Tiles that stay in a core's second cache, in bytes.
const TILE: usize = 256 << 10;

/// Beyond this many bytes, a tile of lines that do not lie side by side costs more than its vectors gain.
const LARGE_TILE: usize = 4 << 20;

/// Indices that go over lines: how many, and how far apart what they count is on both sides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dim {
    pub(crate) count: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Several indices as one number, the last one running fastest.
#[derive(Clone, Debug)]
pub(crate) struct Dims(Vec<Dim>);

impl Dims {
    /// The same lines with as few indices as they take, those that are nearest each other last.
    pub(crate) fn new(mut dims: Vec<Dim>) -> Self {
        dims.retain(|dim| dim.count != 1);
        dims.sort_by_key(|dim| Reverse((dim.to, dim.from)));
        let mut merged: Vec<Dim> = Vec::new();
        for dim in dims {
            match merged.last_mut() {
                Some(last) if last.from == dim.count * dim.from && last.to == dim.count * dim.to => {
                    *last = Dim { count: last.count * dim.count, ..dim };
                }
                _ => merged.push(dim),
            }
        }
        Self(merged)
    }

    /// These indices, in this order.
    pub(crate) fn ordered(dims: Vec<Dim>) -> Self {
        Self(dims)
    }

    /// Whether line `i` is `i` steps from the first one.
    fn is_even(&self) -> bool {
        self.0.len() < 2
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|dim| dim.count).product()
    }

    /// Where line `index` begins, on both sides.
    pub(crate) fn at(&self, mut index: usize) -> (usize, usize) {
        // Divisions are what short lines would spend most of their time on.
        match self.0[..] {
            [] => return (0, 0),
            [dim] => return (index * dim.from, index * dim.to),
            _ => {}
        }
        let (mut from, mut to) = (0, 0);
        for dim in self.0.iter().rev() {
            let (rest, here) = (index / dim.count, index % dim.count);
            from += here * dim.from;
            to += here * dim.to;
            index = rest;
        }
        (from, to)
    }

    /// Takes the last index off, if it counts neighbours on both sides.
    fn split_neighbours(&self) -> Option<(Self, usize)> {
        let (last, others) = self.0.split_last()?;
        (last.from == 1 && last.to == 1).then(|| (Self(others.to_vec()), last.count))
    }
}

/// A transform of length `n` along each line; strides count complex numbers.
pub(crate) struct Axis<T: 'static> {
    n: usize,
    from: usize,
    to: usize,
    lines: Dims,
    method: Method<T>,
}

enum Method<T: 'static> {
    /// Lines whose numbers are neighbours, on both sides.
    Lines(Arc<Line<T>>),
    /// Lines that are neighbours themselves, on both sides: `count` of them for each of `lines`.
    Columns { columns: Arc<Columns<T>>, count: usize, vectors: usize },
    /// Lines whose numbers are neighbours and few, evenly apart.
    Small { run: RunSmall<T>, lanes: usize, roots: Vec<Complex<T>>, inverse: bool },
    /// As many lines as a vector has lanes, copied into a tile and back.
    Tiles(Arc<Columns<T>>),
    /// A line at a time, copied and copied back.
    Copies(Arc<Line<T>>),
}

impl<T: Real> Axis<T> {
    /// The passes that together do all lines: where neighbours are no whole number of vectors, there is one for the
    /// rest. Beside each is where it begins on either side.
    pub(crate) fn new(
        n: usize,
        from: usize,
        to: usize,
        lines: Dims,
        direction: Direction,
        isa: Isa,
    ) -> Vec<(Self, usize)> {
        let kernels = T::kernels(isa);
        let lanes = kernels.lanes;
        let row_bytes = lanes * size_of::<Complex<T>>();
        let columns = || tables::columns(n, direction, kernels);
        let small = || {
            let both = [Some(kernels), T::narrow_kernels(isa)];
            let of = |kernels: &'static Kernels<T>| Some(((*kernels.small.get(n / 4)?)?, kernels.lanes));
            both.into_iter().flatten().find_map(of)
        };
        if from == 1
            && to == 1
            && n.is_multiple_of(4)
            && lines.is_even()
            && lines.count() > 1
            && let Some((run, lanes)) = small()
        {
            let roots = (0..n).map(|k| root(k as u64, n as u64, direction)).collect();
            let inverse = direction == Direction::Inverse;
            return vec![(
                Self { n, from, to, lines, method: Method::Small { run, lanes, roots, inverse } },
                0,
            )];
        }
        if from == 1 && to == 1 {
            let line = tables::line(n, direction, isa);
            if line.is_wide(lanes) || lines.count() < lanes || n * row_bytes > TILE {
                return vec![(Self { n, from, to, lines, method: Method::Lines(line) }, 0)];
            }
        } else if let Some((others, count)) = lines.split_neighbours()
            && count >= lanes
            && n * row_bytes <= LARGE_TILE
            && let Some(columns) = columns()
        {
            let vectors = (TILE / (2 * n * row_bytes)).clamp(1, 4);
            let whole = count - count % lanes;
            let main = Method::Columns { columns, count: whole, vectors };
            let mut passes = vec![(Self { n, from, to, lines: others.clone(), method: main }, 0)];
            if whole < count {
                let mut rest = others.0;
                rest.push(Dim { count: count - whole, from: 1, to: 1 });
                let rest = Self::new(n, from, to, Dims::new(rest), direction, isa);
                passes.extend(rest.into_iter().map(|(pass, at)| (pass, at + whole)));
            }
            return passes;
        }
        let method = match columns() {
            Some(columns) if n * row_bytes <= LARGE_TILE && (lines.count() > 1 || n * row_bytes <= TILE) => {
                Method::Tiles(columns)
            }
            _ if from == 1 && to == 1 => Method::Lines(tables::line(n, direction, isa)),
            _ => Method::Copies(tables::line(n, direction, isa)),
        };
        vec![(Self { n, from, to, lines, method }, 0)]
    }

    /// How many pieces of work there are, and how many complex numbers each has.
    pub(crate) fn units(&self) -> (usize, usize) {
        let lines = self.lines.count();
        match &self.method {
            Method::Lines(_) | Method::Copies(_) => (lines, self.n),
            Method::Columns { columns, count, vectors } => {
                let wide = vectors * columns.kernels.lanes;
                (lines * count.div_ceil(wide), self.n * wide)
            }
            Method::Small { lanes, .. } => (lines.div_ceil(*lanes), self.n * lanes),
            Method::Tiles(columns) => (lines.div_ceil(columns.kernels.lanes), self.n * columns.kernels.lanes),
        }
    }

    /// Whether one unit is itself work for several cores.
    pub(crate) fn is_large(&self) -> bool {
        matches!(&self.method, Method::Lines(line) | Method::Copies(line) if line.is_large())
    }

    /// Does some of the units.
    ///
    /// # Safety
    /// All lines lie in memory that is there and nobody else uses, `from` and `to` are the same with the same strides,
    /// or lines on one side are apart from all lines on the other.
    pub(crate) unsafe fn run(
        &self,
        units: Range<usize>,
        from: *const Complex<T>,
        to: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        match &self.method {
            Method::Lines(line) => scratch::with(line.scratch(), |scratch| {
                for unit in units {
                    let (read, written) = self.lines.at(unit);
                    // SAFETY: the caller's promise.
                    unsafe { line.run(from.add(read), to.add(written), scratch, context)? };
                }
                Ok(())
            })?,
            Method::Copies(line) => scratch::with(self.n + line.scratch(), |scratch| {
                for unit in units {
                    let (read, written) = self.lines.at(unit);
                    // SAFETY: the caller's promise.
                    unsafe {
                        let (from, to) = (from.add(read), to.add(written));
                        (0..self.n).for_each(|j| *scratch.add(j) = *from.add(j * self.from));
                        line.run(scratch, scratch, scratch.add(self.n), context)?;
                        (0..self.n).for_each(|j| *to.add(j * self.to) = *scratch.add(j));
                    }
                }
                Ok(())
            })?,
            Method::Columns { columns, count, vectors } => {
                scratch::with(columns.scratch(*vectors), |scratch| {
                    let lanes = columns.kernels.lanes;
                    let wide = vectors * lanes;
                    let blocks = count.div_ceil(wide);
                    for unit in units {
                        let (read, written) = self.lines.at(unit / blocks);
                        let column = unit % blocks * wide;
                        let vectors = wide.min(count - column) / lanes;
                        // SAFETY: the caller's promise.
                        unsafe {
                            let from = Rows { at: from.add(read + column), row: self.from };
                            let to = Rows { at: to.add(written + column), row: self.to };
                            columns.run(from, to, vectors, scratch);
                        }
                    }
                })
            }
            Method::Small { run, lanes, roots, inverse } => {
                let lines = self.lines.count();
                let (from_line, to_line) = self.lines.at(1);
                let small = Small {
                    from,
                    from_line,
                    to,
                    to_line,
                    first: units.start * lanes,
                    end: (units.end * lanes).min(lines),
                    lines,
                    roots: roots.as_ptr(),
                    inverse: *inverse,
                };
                // SAFETY: the caller's promise.
                unsafe { run(&small) };
                Ok(())
            }
            Method::Tiles(columns) => {
                let lanes = columns.kernels.lanes;
                scratch::with(self.n * lanes + columns.scratch(1), |tile| {
                    let last = self.lines.count() - 1;
                    for unit in units {
                        // Where there are fewer lines than lanes, the last one is there several times.
                        let mut reads = [std::ptr::null_mut(); MOST_LANES];
                        let mut writes = [std::ptr::null_mut(); MOST_LANES];
                        for lane in 0..lanes {
                            let (read, written) = self.lines.at((unit * lanes + lane).min(last));
                            reads[lane] = from.wrapping_add(read).cast_mut();
                            writes[lane] = to.wrapping_add(written);
                        }
                        // SAFETY: the caller's promise.
                        unsafe {
                            gather(columns, &reads, self.from, tile, lanes);
                            let from = Rows { at: tile.cast_const(), row: lanes };
                            columns.run(from, Rows { at: tile, row: lanes }, 1, tile.add(self.n * lanes));
                            scatter(columns, &writes, self.to, tile, lanes);
                        }
                    }
                })
            }
        }
    }
}

/// Of all kinds of vectors.
pub(crate) const MOST_LANES: usize = 8;

/// # Safety
/// There are as many lines as lanes, of as many numbers as the columns, and a tile for them.
pub(crate) unsafe fn gather<T: Real>(
    columns: &Columns<T>,
    lines: &[*mut Complex<T>; MOST_LANES],
    stride: usize,
    tile: *mut Complex<T>,
    row: usize,
) {
    let (n, lanes) = (columns.n, columns.kernels.lanes);
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 {
            (columns.kernels.gather)(&Tile { lines: lines.as_ptr(), n, tile, row });
        } else {
            for j in 0..n {
                for (lane, line) in lines[..lanes].iter().enumerate() {
                    *tile.add(j * row + lane) = *line.add(j * stride);
                }
            }
        }
    }
}

/// # Safety
/// As `gather`.
pub(crate) unsafe fn scatter<T: Real>(
    columns: &Columns<T>,
    lines: &[*mut Complex<T>; MOST_LANES],
    stride: usize,
    tile: *mut Complex<T>,
    row: usize,
) {
    let (n, lanes) = (columns.n, columns.kernels.lanes);
    // SAFETY: the caller's promise.
    unsafe {
        if stride == 1 {
            (columns.kernels.scatter)(&Tile { lines: lines.as_ptr(), n, tile, row });
        } else {
            for j in 0..n {
                for (lane, line) in lines[..lanes].iter().enumerate() {
                    *line.add(j * stride) = *tile.add(j * row + lane);
                }
            }
        }
    }
}
