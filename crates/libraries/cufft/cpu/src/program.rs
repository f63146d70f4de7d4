//! The passes over memory that make a transform of one to three dimensions.
//!
//! The innermost axis comes first, but for complex to real. Axes whose array fits a core's cache are done piece by
//! piece, all passes of a piece before the next piece.

use num_complex::Complex;

use crate::axis::{Axis, Dim, Dims};
use crate::cores::Context;
use crate::element::{Direction, Kind, Real};
use crate::error::Result;
use crate::isa::Isa;
use crate::layout::{Layout, Side};
use crate::real::RealAxis;
use crate::status::Status;

/// What a core works on piece by piece, in bytes: half of a second cache.
const PIECE: usize = 512 << 10;

/// Real numbers that are worth a core's turn.
const TURN: usize = 1 << 15;

/// The memories that a program goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Input,
    Output,
    Work,
}

/// Where the memories begin. One that a program does not use may be null.
#[derive(Clone, Copy)]
pub(crate) struct Memory<T> {
    pub(crate) input: *const T,
    pub(crate) output: *mut T,
    pub(crate) work: *mut T,
}

// SAFETY: whoever gave the pointers lends the memory to all threads that work on it.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: as above; threads write to different elements.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T> Memory<T> {
    fn at(&self, place: Place) -> *mut T {
        match place {
            Place::Input => self.input.cast_mut(),
            Place::Output => self.output,
            Place::Work => self.work,
        }
    }
}

enum Work<T: 'static> {
    Complex(Axis<T>),
    Real(RealAxis<T>),
}

/// One axis, or what is left of one, from one memory into another. Offsets count real numbers.
struct Pass<T: 'static> {
    work: Work<T>,
    from: Place,
    to: Place,
    offset: [usize; 2],
    /// What the pieces' steps are on both sides.
    pieces: Dims,
}

/// Passes that are done for one piece of the array, then for the next.
struct Group<T: 'static> {
    pieces: usize,
    passes: Vec<Pass<T>>,
}

pub(crate) struct Program<T: 'static> {
    groups: Vec<Group<T>>,
    /// Real numbers of the work area.
    pub(crate) work: usize,
}

/// A side in one of the memories, with strides in real numbers.
struct Located {
    place: Place,
    distance: usize,
    strides: Vec<usize>,
    complex: bool,
}

impl Located {
    fn new(side: &Side, place: Place) -> Self {
        let unit = if side.complex { 2 } else { 1 };
        let strides = side.strides.iter().map(|stride| stride * unit).collect();
        Self { place, distance: side.distance * unit, strides, complex: side.complex }
    }

    fn unit(&self) -> usize {
        if self.complex { 2 } else { 1 }
    }
}

impl<T: Real> Program<T> {
    /// `keeps` says that the input is not to be written to where another memory can be had.
    pub(crate) fn new(
        layout: &Layout,
        input: &Side,
        output: &Side,
        in_place: bool,
        direction: Direction,
        isa: Isa,
    ) -> Result<Self> {
        let rank = layout.n.len();
        let inner = rank - 1;
        let complex = if layout.kind == Kind::C2R { input } else { output };
        // The steps: an axis, from where to where.
        let (input, output) = (Located::new(input, Place::Input), Located::new(output, Place::Output));
        let mut work = 0;
        let mut middle = None;
        let mut steps: Vec<(usize, &Located, &Located)> = Vec::new();
        match layout.kind {
            Kind::C2C | Kind::R2C => {
                steps.push((inner, &input, &output));
                steps.extend((0..inner).rev().map(|axis| (axis, &output, &output)));
            }
            Kind::C2R if rank == 1 => steps.push((0, &input, &output)),
            Kind::C2R => {
                if !in_place {
                    // Whole cache lines from row to row, an odd number of them: rows of a power of two would all
                    // fall into the same few sets of a cache.
                    let row = (complex.counts[inner].div_ceil(8) | 1) * 8;
                    let side = Side::dense(true, &complex.counts, row, layout.batch)?;
                    work = 2 * crate::layout::multiply(side.distance, layout.batch)?;
                    middle = Some(Located::new(&side, Place::Work));
                }
                let middle = middle.as_ref().unwrap_or(&input);
                steps.push((0, &input, middle));
                steps.extend((1..inner).map(|axis| (axis, middle, middle)));
                steps.push((inner, middle, &output));
            }
        }

        // Axes from `first` on fit the cache together.
        let bytes =
            |first: usize| complex.counts[first..].iter().product::<usize>() * size_of::<Complex<T>>();
        let first = (0..rank).find(|&first| bytes(first) <= PIECE).unwrap_or(rank);
        let mut groups: Vec<Group<T>> = Vec::new();
        let mut joins = false;
        for (axis, from, to) in steps {
            // A piece is what the batch's index and those of the axes before `outer` leave.
            let fits = axis >= first && rank - first > 1;
            let outer = if fits { Some(first) } else { None };
            let mut lines = Vec::new();
            let mut pieces = Vec::new();
            let (units, both) = match (from.complex, to.complex) {
                (true, true) => ([2, 2], true),
                _ => ([from.unit(), to.unit()], false),
            };
            let batch = (layout.batch, from.distance, to.distance);
            let axes = (0..rank).map(|other| (complex.counts[other], from.strides[other], to.strides[other]));
            for (index, (count, from, to)) in std::iter::once(batch).chain(axes).enumerate() {
                if index == axis + 1 {
                    continue;
                }
                // Index 0 is the batch, 1 the outermost axis.
                if outer.is_some_and(|first| index < first + 1) {
                    pieces.push(Dim { count, from, to });
                } else {
                    lines.push(Dim { count, from: from / units[0], to: to / units[1] });
                }
            }
            let lines = Dims::new(lines);
            let (from_stride, to_stride) = (from.strides[axis] / units[0], to.strides[axis] / units[1]);
            let n = layout.n[axis];
            let works: Vec<(Work<T>, usize)> = if both {
                let passes = Axis::new(n, from_stride, to_stride, lines, direction, isa);
                passes.into_iter().map(|(pass, at)| (Work::Complex(pass), at)).collect()
            } else {
                let pass = RealAxis::new(n, from_stride, to_stride, lines, direction, isa);
                vec![(Work::Real(pass), 0)]
            };
            let count = pieces.iter().map(|dim| dim.count).product();
            let pieces = Dims::ordered(pieces);
            let passes = works.into_iter().map(|(work, at)| Pass {
                work,
                from: from.place,
                to: to.place,
                offset: [at * units[0], at * units[1]],
                pieces: pieces.clone(),
            });
            match groups.last_mut() {
                Some(group) if fits && joins => group.passes.extend(passes),
                _ => groups.push(Group { pieces: count, passes: passes.collect() }),
            }
            joins = fits;
        }
        Ok(Self { groups, work })
    }

    /// # Safety
    /// The memories have the elements that the sides say, which nobody else uses.
    pub(crate) unsafe fn run(&self, memory: Memory<T>, context: Context) -> Result<()> {
        let status = Status::default();
        for group in &self.groups {
            let cores_count = context.cores.count();
            if group.pieces >= 2 * cores_count && group.pieces > 1 {
                let numbers: usize = group.passes.first().map_or(0, |pass| pass.work.numbers());
                let turn = (TURN / numbers.max(1)).clamp(1, group.pieces.div_ceil(cores_count));
                context.cores.each(group.pieces.div_ceil(turn), &|piece| {
                    for piece in piece * turn..group.pieces.min((piece + 1) * turn) {
                        for pass in &group.passes {
                            // SAFETY: the caller's promise; pieces are apart.
                            status.note(unsafe { pass.run(piece, memory, context.alone()) });
                        }
                    }
                });
            } else {
                for piece in 0..group.pieces {
                    for pass in &group.passes {
                        // SAFETY: the caller's promise.
                        status.note(unsafe { pass.run(piece, memory, context) });
                    }
                }
            }
        }
        status.into_result()
    }
}

impl<T: Real> Work<T> {
    fn units(&self) -> (usize, usize) {
        match self {
            Self::Complex(axis) => axis.units(),
            Self::Real(axis) => axis.units(),
        }
    }

    fn is_large(&self) -> bool {
        match self {
            Self::Complex(axis) => axis.is_large(),
            Self::Real(axis) => axis.is_large(),
        }
    }

    /// Real numbers that a pass over a piece goes through.
    fn numbers(&self) -> usize {
        let (units, numbers) = self.units();
        2 * units * numbers
    }
}

impl<T: Real> Pass<T> {
    /// # Safety
    /// As `Program::run`.
    unsafe fn run(&self, piece: usize, memory: Memory<T>, context: Context) -> Result<()> {
        let (from, to) = self.pieces.at(piece);
        let (from, to) = (from + self.offset[0], to + self.offset[1]);
        let (units, numbers) = self.work.units();
        let cores_count = context.cores.count();
        let turn = (TURN / (2 * numbers)).clamp(1, units.div_ceil(cores_count).max(1));
        let status = Status::default();
        let do_turn = |turns: usize| {
            let range = turns * turn..units.min((turns + 1) * turn);
            let (from, to) = (memory.at(self.from).wrapping_add(from), memory.at(self.to).wrapping_add(to));
            // SAFETY: the caller's promise; units are apart.
            status.note(unsafe {
                match &self.work {
                    Work::Complex(axis) => axis.run(range, from.cast(), to.cast(), context.alone()),
                    Work::Real(axis) => axis.run(range, from, to, context.alone()),
                }
            });
        };
        if cores_count == 1 || units * numbers < TURN / 2 || (units < 2 * cores_count && self.work.is_large())
        {
            let range = 0..units;
            let (from, to) = (memory.at(self.from).wrapping_add(from), memory.at(self.to).wrapping_add(to));
            // SAFETY: the caller's promise.
            return unsafe {
                match &self.work {
                    Work::Complex(axis) => axis.run(range, from.cast(), to.cast(), context),
                    Work::Real(axis) => axis.run(range, from, to, context),
                }
            };
        }
        context.cores.each(units.div_ceil(turn), &do_turn);
        status.into_result()
    }
}
