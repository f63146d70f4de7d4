//! A plan: what `cufftHandle` stands for, but for streams and memory that CUDA knows.

use std::any::Any;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::OnceLock;

use half::{bf16, f16};
use num_complex::Complex;

use crate::area::Areas;
use crate::columns::radices;
use crate::cores::{Context, Cores, Rayon};
use crate::element::{Direction, Element, Kind, Precision, Real, Stored};
use crate::error::{Error, Result};
use crate::isa::Isa;
use crate::layout::{Description, Layout, Side, Strided};
use crate::program::{Memory, Program};
use crate::scratch::Area;
use crate::stage::{Array, Sink, Source, Stage};

/// A load callback: the element at this place of the input, counted in elements. Real inputs have no imaginary part.
pub type Load<'a, T> = &'a (dyn Fn(usize) -> Complex<T> + Sync);

/// A store callback: takes the element for this place of the output. Of real outputs the imaginary part is 0.
pub type Store<'a, T> = &'a (dyn Fn(usize, Complex<T>) + Sync);

/// Transforms of one description. It may be executed on several threads at a time.
pub struct Plan {
    layout: Layout,
    precision: Precision,
    programs: Box<dyn Any + Send + Sync>,
}

/// What computes in `T`.
struct Programs<T: 'static> {
    isa: Isa,
    /// By direction, where the kind has it.
    directions: [Option<Directed<T>>; 2],
    areas: Areas,
}

struct Directed<T: 'static> {
    /// Input and output are apart, and no two indices mean the same element of the output.
    apart: Option<Program<T>>,
    /// Input and output are the same memory, row for row.
    in_place: Option<Program<T>>,
    /// By way of a work area, transform for transform or all together.
    staged: OnceLock<Stage<T>>,
    whole: OnceLock<Stage<T>>,
}

impl Plan {
    /// Checks the description and makes the tables.
    pub fn new(description: &Description) -> Result<Self> {
        Self::with_isa(description, Isa::detect())
    }

    /// The same where axes have strides of their own.
    pub fn strided(strided: &Strided) -> Result<Self> {
        Self::of(Layout::strided(strided)?, strided.precision, Isa::detect())
    }

    /// By the vectors that are named, where a test wants others than the best.
    #[doc(hidden)]
    pub fn with_isa(description: &Description, isa: Isa) -> Result<Self> {
        assert!(Isa::all().contains(&isa), "the processor has no {isa:?}");
        Self::of(Layout::new(description)?, description.precision, isa)
    }

    fn of(layout: Layout, precision: Precision, isa: Isa) -> Result<Self> {
        for &n in &layout.n {
            see_room_for_tables(n, precision)?;
        }
        let direct = matches!(precision, Precision::Single | Precision::Double);
        let programs: Box<dyn Any + Send + Sync> = match precision {
            Precision::Double => Box::new(Programs::<f64>::new(&layout, isa, direct)?),
            _ => Box::new(Programs::<f32>::new(&layout, isa, direct)?),
        };
        Ok(Self { layout, precision, programs })
    }

    pub fn kind(&self) -> Kind {
        self.layout.kind
    }

    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Elements of the input from the first to the last that is looked at.
    pub fn input_extent(&self) -> usize {
        self.layout.input.whole_extent()
    }

    /// The same of the output.
    pub fn output_extent(&self) -> usize {
        self.layout.output.whole_extent()
    }

    /// The same of both where they are the same memory: of the input, then of the output.
    pub fn in_place_extents(&self) -> [usize; 2] {
        [0, 1].map(|side| self.layout.in_place[side].whole_extent())
    }

    /// Bytes of the memory that an execution out of place takes from the plan, which allocates it when it is first
    /// executed and keeps it.
    pub fn work_bytes(&self) -> usize {
        match self.precision {
            Precision::Double => self.programs::<f64>().map_or(0, Programs::work_bytes),
            _ => self.programs::<f32>().map_or(0, Programs::work_bytes),
        }
    }

    fn programs<T: Real>(&self) -> Result<&Programs<T>> {
        self.programs.downcast_ref().ok_or(Error::InvalidType)
    }

    /// Transforms `input` into `output`, which may be the same.
    ///
    /// # Safety
    /// The elements that the description says are there, of its precision; the output's may be written, and the
    /// input's if the two overlap. Nobody else uses them meanwhile.
    pub unsafe fn execute(
        &self,
        input: *const c_void,
        output: *mut c_void,
        direction: Direction,
        cores: &dyn Cores,
    ) -> Result<()> {
        // SAFETY: the caller's promise, of the type that the precision is.
        unsafe {
            match self.precision {
                Precision::Half => self.staged::<f32, f16>(input.cast(), output.cast(), direction, cores),
                Precision::Bfloat => self.staged::<f32, bf16>(input.cast(), output.cast(), direction, cores),
                Precision::Single => self.direct::<f32>(input.cast(), output.cast(), direction, cores),
                Precision::Double => self.direct::<f64>(input.cast(), output.cast(), direction, cores),
            }
        }
    }

    /// The same where elements are loaded or stored by callbacks, in the plan's precision: single or double. A callback
    /// is called once for each element, from several threads, and all loads of a transform come before its stores.
    ///
    /// # Safety
    /// As `execute`, for the side without a callback.
    pub unsafe fn execute_with<T: Real>(
        &self,
        input: *const c_void,
        output: *mut c_void,
        direction: Direction,
        cores: &dyn Cores,
        (load, store): (Option<Load<T>>, Option<Store<T>>),
    ) -> Result<()> {
        if matches!(self.precision, Precision::Half | Precision::Bfloat) {
            return Err(Error::NotSupported("callbacks of 16-bit types"));
        }
        let programs = self.programs::<T>()?;
        let in_place = std::ptr::eq(input, output);
        let (input_side, output_side) = self.sides(in_place);
        let whole = in_place || self.overlap::<T>(input.cast(), output.cast());
        // SAFETY: the caller's promise.
        let (from, to) = unsafe {
            let from = Array::new(input.cast::<T>().cast_mut(), input_side.complex);
            (from, Array::new(output.cast::<T>(), output_side.complex))
        };
        let stage = programs.stage(&self.layout, direction, whole)?;
        let source = Called { call: load, array: from };
        let sink = Called { call: store, array: to };
        stage.run((input_side, &source), (output_side, &sink), &programs.areas, cores)
    }

    fn sides(&self, in_place: bool) -> (&Side, &Side) {
        if in_place {
            (&self.layout.in_place[0], &self.layout.in_place[1])
        } else {
            (&self.layout.input, &self.layout.output)
        }
    }

    /// Whether two memories out of place share bytes; `S` is a real number of theirs.
    fn overlap<S>(&self, input: *const S, output: *const S) -> bool {
        let bytes = |side: &Side| side.whole_extent() * size_of::<S>() * if side.complex { 2 } else { 1 };
        let (input, output) = (input.addr(), output.addr());
        input < output.saturating_add(bytes(&self.layout.output))
            && output < input.saturating_add(bytes(&self.layout.input))
    }

    /// # Safety
    /// As `execute`.
    unsafe fn direct<T: Real>(
        &self,
        input: *const T,
        output: *mut T,
        direction: Direction,
        cores: &dyn Cores,
    ) -> Result<()> {
        let programs = self.programs::<T>()?;
        let directed = programs.directed(direction)?;
        let in_place = std::ptr::eq(input, output);
        let program = if in_place {
            directed.in_place.as_ref()
        } else if self.overlap(input, output) {
            None
        } else {
            directed.apart.as_ref()
        };
        let Some(program) = program else {
            // SAFETY: the caller's promise.
            return unsafe { self.staged::<T, T>(input, output, direction, cores) };
        };
        programs.areas.with(program.work, |work: *mut T| {
            // SAFETY: the caller's promise, and a work area of the size that was asked for.
            unsafe { program.run(Memory { input, output, work }, Context { cores, areas: &programs.areas }) }
        })?
    }

    /// # Safety
    /// As `execute`.
    unsafe fn staged<T: Real, S: Stored<T>>(
        &self,
        input: *const S,
        output: *mut S,
        direction: Direction,
        cores: &dyn Cores,
    ) -> Result<()> {
        let programs = self.programs::<T>()?;
        let in_place = std::ptr::eq(input, output);
        let (input_side, output_side) = self.sides(in_place);
        let apart =
            if in_place { lie_alike(input_side, output_side, true) } else { !self.overlap(input, output) };
        let stage = programs.stage(&self.layout, direction, !apart)?;
        // SAFETY: the caller's promise.
        let (source, sink) = unsafe {
            (Array::new(input.cast_mut(), input_side.complex), Array::new(output, output_side.complex))
        };
        stage.run((input_side, &source), (output_side, &sink), &programs.areas, cores)
    }
}

/// Bytes of tables that are asked for without asking whether they can be had.
const UNASKED: usize = 64 << 20;

/// Tables are made by code that ends the process where memory is missing, rustfft's too: whoever asks for long ones is
/// refused before. A prime takes most: its convolution, of up to four times the length, and as much to work in.
fn see_room_for_tables(n: usize, precision: Precision) -> Result<()> {
    if radices(n, 4).is_some() {
        // Our own tables are short where lengths are long.
        return Ok(());
    }
    let bytes = crate::layout::multiply(n, 10 * 2 * precision.bytes().max(size_of::<f32>()))?;
    if bytes > UNASKED {
        // Otherwise the compiler sees that nobody uses it, and asks nobody.
        black_box(Area::new(bytes)?.start::<u8>());
    }
    Ok(())
}

impl<T: Real> Programs<T> {
    fn new(layout: &Layout, isa: Isa, direct: bool) -> Result<Self> {
        let directions: &[Direction] = match layout.kind {
            Kind::C2C => &[Direction::Forward, Direction::Inverse],
            Kind::R2C => &[Direction::Forward],
            Kind::C2R => &[Direction::Inverse],
        };
        let mut programs = Self { isa, directions: [None, None], areas: Areas::default() };
        for &direction in directions {
            let [input, output] = &layout.in_place;
            let mut directed =
                Directed { apart: None, in_place: None, staged: OnceLock::new(), whole: OnceLock::new() };
            if direct && layout.output.is_disjoint() {
                let program = Program::new(layout, &layout.input, &layout.output, false, direction, isa)?;
                directed.apart = Some(program);
            }
            if direct && lie_alike(input, output, false) {
                directed.in_place = Some(Program::new(layout, input, output, true, direction, isa)?);
            }
            programs.directions[direction as usize] = Some(directed);
            if !direct {
                programs.stage(layout, direction, false)?;
            }
        }
        Ok(programs)
    }

    fn directed(&self, direction: Direction) -> Result<&Directed<T>> {
        self.directions[direction as usize].as_ref().ok_or(Error::InvalidValue("direction"))
    }

    fn stage(&self, layout: &Layout, direction: Direction, whole: bool) -> Result<&Stage<T>> {
        let directed = self.directed(direction)?;
        let stage = if whole { &directed.whole } else { &directed.staged };
        if let Some(stage) = stage.get() {
            return Ok(stage);
        }
        let made = Stage::new(layout, direction, self.isa, whole)?;
        Ok(stage.get_or_init(|| made))
    }

    fn work_bytes(&self) -> usize {
        let of = |directed: &Directed<T>| {
            let direct = directed.apart.as_ref().map_or(0, |program| program.work * size_of::<T>());
            direct.max(directed.staged.get().map_or(0, Stage::bytes))
        };
        self.directions.iter().flatten().map(of).max().unwrap_or(0)
    }
}

/// Whether, in the same memory, what one row is transformed into (one transform, with `transforms`) overwrites nothing
/// of another one.
fn lie_alike(input: &Side, output: &Side, transforms: bool) -> bool {
    if !input.is_disjoint() || !output.is_disjoint() {
        return false;
    }
    let unit = |side: &Side| if side.complex { 2 } else { 1 };
    let rank = input.counts.len();
    let kept = if transforms { 1 } else { rank };
    if input.complex == output.complex && !transforms {
        return input.dims().zip(output.dims()).all(|(a, b)| a.0 == 1 || a.1 == b.1);
    }
    let row = |side: &Side| {
        let inner = side.dims().skip(kept).map(|(count, stride)| (count - 1) * stride).sum::<usize>();
        (inner + 1) * unit(side)
    };
    let longest = row(input).max(row(output));
    input.dims().zip(output.dims()).take(kept).all(|(a, b)| {
        let (from, to) = (a.1 * unit(input), b.1 * unit(output));
        a.0 == 1 || from == to && from >= longest
    })
}

/// A callback if there is one, and memory if not.
struct Called<C, A> {
    call: Option<C>,
    array: A,
}

impl<T: Real> Source<T> for Called<Load<'_, T>, Array<T>> {
    fn load(&self, at: usize) -> Complex<T> {
        match self.call {
            Some(call) => call(at),
            None => self.array.load(at),
        }
    }
}

impl<T: Real> Sink<T> for Called<Store<'_, T>, Array<T>> {
    fn store(&self, at: usize, value: Complex<T>) {
        match self.call {
            Some(call) => call(at, value),
            None => self.array.store(at, value),
        }
    }
}

/// A Rust type that is an element of an array.
pub trait Value: Copy {
    const ELEMENT: Element;
}

macro_rules! value {
    ($($type:ty: $precision:ident),*) => {
        $(
            impl Value for $type {
                const ELEMENT: Element = Element { complex: false, precision: Precision::$precision };
            }

            impl Value for Complex<$type> {
                const ELEMENT: Element = Element { complex: true, precision: Precision::$precision };
            }
        )*
    };
}
value!(f16: Half, bf16: Bfloat, f32: Single, f64: Double);

impl Plan {
    /// The element types of both sides.
    pub fn elements(&self) -> [Element; 2] {
        [&self.layout.input, &self.layout.output]
            .map(|side| Element { complex: side.complex, precision: self.precision })
    }

    /// Transforms slices, which are as long as the plan asks for, on rayon's threads.
    pub fn transform<I: Value, O: Value>(
        &self,
        input: &[I],
        output: &mut [O],
        direction: Direction,
    ) -> Result<()> {
        if [I::ELEMENT, O::ELEMENT] != self.elements() {
            return Err(Error::InvalidType);
        }
        if input.len() < self.input_extent() || output.len() < self.output_extent() {
            return Err(Error::InvalidSize("a slice"));
        }
        // SAFETY: the slices have the elements, and Rust sees to it that nobody else uses them.
        unsafe { self.execute(input.as_ptr().cast(), output.as_mut_ptr().cast(), direction, &Rayon) }
    }

    /// Transforms a slice of either side's elements in place.
    pub fn transform_in_place<V: Value>(&self, both: &mut [V], direction: Direction) -> Result<()> {
        let elements = self.elements();
        let parts = |element: Element| if element.complex { 2 } else { 1 };
        if !elements.contains(&V::ELEMENT) {
            return Err(Error::InvalidType);
        }
        let extents = self.in_place_extents();
        let needed = (0..2).map(|side| extents[side] * parts(elements[side])).max().unwrap_or(0);
        if both.len() * parts(V::ELEMENT) < needed {
            return Err(Error::InvalidSize("a slice"));
        }
        let start = both.as_mut_ptr();
        // SAFETY: as above.
        unsafe { self.execute(start.cast(), start.cast(), direction, &Rayon) }
    }
}
