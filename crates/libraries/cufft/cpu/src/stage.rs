//! Transforms by way of a work area: types that are not computed in, callbacks, and memories that overlap.

use std::marker::PhantomData;

use num_complex::Complex;

use crate::area::Areas;
use crate::cores::{Context, Cores};
use crate::element::{Direction, Real, Stored};
use crate::error::Result;
use crate::isa::Isa;
use crate::layout::{Layout, Side};
use crate::program::{Memory, Program};

/// What a work area holds at a time, in bytes, if more than one transform does.
const HELD: usize = 4 << 20;

/// Elements per core's turn.
const TURN: usize = 1 << 13;

/// Where elements come from, by their place in the program's array. A real one has no imaginary part.
pub(crate) trait Source<T>: Sync {
    fn load(&self, at: usize) -> Complex<T>;
}

/// Where elements go.
pub(crate) trait Sink<T>: Sync {
    fn store(&self, at: usize, value: Complex<T>);
}

/// Elements in memory, complex ones or real ones.
pub(crate) struct Array<S> {
    start: *mut S,
    complex: bool,
    elements: PhantomData<S>,
}

// SAFETY: the memory is lent to all threads of a transform.
unsafe impl<S: Send> Sync for Array<S> {}

impl<S> Array<S> {
    /// # Safety
    /// All elements that a transform asks for are there.
    pub(crate) unsafe fn new(start: *mut S, complex: bool) -> Self {
        Self { start, complex, elements: PhantomData }
    }
}

impl<T: Real, S: Stored<T>> Source<T> for Array<S> {
    fn load(&self, at: usize) -> Complex<T> {
        // SAFETY: `new`'s caller promises the elements. They may lie anywhere: bytes have no alignment here.
        unsafe {
            if self.complex {
                let [re, im] = self.start.add(2 * at).cast::<[S; 2]>().read_unaligned();
                Complex::new(re.load(), im.load())
            } else {
                self.start.add(at).read_unaligned().load().into()
            }
        }
    }
}

impl<T: Real, S: Stored<T>> Sink<T> for Array<S> {
    fn store(&self, at: usize, value: Complex<T>) {
        // SAFETY: as above.
        unsafe {
            if self.complex {
                let pair = [S::store(value.re), S::store(value.im)];
                self.start.add(2 * at).cast::<[S; 2]>().write_unaligned(pair);
            } else {
                self.start.add(at).write_unaligned(S::store(value.re));
            }
        }
    }
}

/// Programs for the work area: as many transforms as it holds, and the rest.
pub(crate) struct Stage<T: 'static> {
    parts: Vec<Part<T>>,
}

/// One filling of the work area, `times` after each other.
struct Part<T: 'static> {
    layout: Layout,
    program: Program<T>,
    times: usize,
}

impl<T: Real> Stage<T> {
    /// `whole` asks for all transforms in one filling: nothing is stored before all is loaded.
    pub(crate) fn new(layout: &Layout, direction: Direction, isa: Isa, whole: bool) -> Result<Self> {
        let one = layout.work(1)?;
        let bytes = numbers(&one)? * size_of::<T>();
        let held = if whole { layout.batch } else { (HELD / bytes.max(1)).clamp(1, layout.batch) };
        let mut parts = Vec::new();
        for (batch, times) in [(held, layout.batch / held), (layout.batch % held, 1)] {
            if batch > 0 {
                let layout = layout.work(batch)?;
                let [input, output] = &layout.in_place;
                let program = Program::new(&layout, input, output, true, direction, isa)?;
                parts.push(Part { program, times, layout });
            }
        }
        Ok(Self { parts })
    }

    /// Bytes of the work area.
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| numbers(&part.layout).unwrap_or(usize::MAX)).max().unwrap_or(0)
            * size_of::<T>()
    }

    /// Loads by `source` from places of `input`, stores by `sink` to places of `output`.
    pub(crate) fn run(
        &self,
        (input, source): (&Side, &impl Source<T>),
        (output, sink): (&Side, &impl Sink<T>),
        areas: &Areas,
        cores: &dyn Cores,
    ) -> Result<()> {
        let mut first = 0;
        for part in &self.parts {
            let [loaded, stored] = &part.layout.in_place;
            areas.with(numbers(&part.layout)?, |area: *mut T| {
                for _ in 0..part.times {
                    // SAFETY: the area is as large as the layout, and nobody else's.
                    unsafe {
                        let work = Array::new(area, loaded.complex);
                        copy((input, source, first), (loaded, &work, 0), part.layout.batch, cores);
                        part.program.run(
                            Memory { input: area, output: area, work: area },
                            Context { cores, areas },
                        )?;
                        let work = Array::new(area, stored.complex);
                        copy((stored, &work, 0), (output, sink, first), part.layout.batch, cores);
                    }
                    first += part.layout.batch;
                }
                Ok(())
            })??;
        }
        Ok(())
    }
}

/// Real numbers of a work area.
fn numbers(layout: &Layout) -> Result<usize> {
    let [input, output] = &layout.in_place;
    let of =
        |side: &Side| crate::layout::multiply(side.distance * if side.complex { 2 } else { 1 }, layout.batch);
    Ok(of(input)?.max(of(output)?))
}

/// Copies `batch` transforms, the first of which has the number that is said on either side.
fn copy<T: Real>(
    (from, source, from_first): (&Side, &impl Source<T>, usize),
    (to, sink, to_first): (&Side, &impl Sink<T>, usize),
    batch: usize,
    cores: &dyn Cores,
) {
    let inner = *from.counts.last().expect("a rank is at least 1");
    let rows = from.volume() / inner;
    let turn = (TURN / inner).max(1);
    let (from_step, to_step) = (from.strides[from.strides.len() - 1], to.strides[to.strides.len() - 1]);
    let total = rows * batch;
    let copy_rows = |turns: usize| {
        for row in turns * turn..total.min((turns + 1) * turn) {
            let (transform, row) = (row / rows, row % rows * inner);
            let from = (from_first + transform) * from.distance + from.at(row);
            let to = (to_first + transform) * to.distance + to.at(row);
            for j in 0..inner {
                sink.store(to + j * to_step, source.load(from + j * from_step));
            }
        }
    };
    // Elements that are the program's several times are stored in order.
    if to.is_disjoint() {
        cores.each(total.div_ceil(turn), &copy_rows)
    } else {
        (0..total.div_ceil(turn)).for_each(copy_rows)
    }
}
