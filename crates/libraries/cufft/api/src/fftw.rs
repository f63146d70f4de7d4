//! cuFFTW: FFTW's plans, which know their memory. It is the host's or the CPU device's, and transforms are done when a call
//! returns.
//!
//! FFTW differs: strides and distances are looked at where no embedding is given, and in place is what a plan was made for.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use cuda_abi::{CUcontext, CUpointer_attribute};
use cufft_cpu::{Direction, Element, Kind, Precision, Rayon, Strided, Value};
use kit::driver::{check, driver};
use kit::engine::{self, Engine};
use kit::{Address, Registry};

use crate::types::{CUFFT_FORWARD, CUFFT_INVERSE, fftw_plan};
use crate::{Error, Result};

/// An axis, or an index that counts transforms: how many, and how far apart they are in elements of input and output.
#[derive(Clone, Copy, Debug)]
pub struct Dim {
    pub n: i64,
    pub input: i64,
    pub output: i64,
}

pub struct Plan {
    plan: cufft_cpu::Plan,
    direction: Direction,
    /// The memory that it was made for.
    memory: Address<(*mut c_void, *mut c_void)>,
    /// Transforms of several indices: all but the last, with distances in bytes.
    outer: Vec<Dim>,
    /// Operations of one execution, counted as a transform by twos has them.
    operations: f64,
}

impl Plan {
    /// `In` and `Out` are the element types, which say what is transformed.
    pub fn new<In: Value, Out: Value>(
        dims: &[Dim],
        batches: &[Dim],
        (input, output): (*mut In, *mut Out),
        sign: c_int,
    ) -> Result<Plan> {
        let direction = match sign {
            CUFFT_FORWARD => Direction::Forward,
            CUFFT_INVERSE => Direction::Inverse,
            _ => return Err(Error::Value("sign")),
        };
        let execution = Element { complex: true, precision: In::ELEMENT.precision };
        let (kind, precision) = Kind::of(In::ELEMENT, Out::ELEMENT, execution)?;
        let list = |of: fn(&Dim) -> i64| dims.iter().map(of).collect::<Vec<i64>>();
        let (n, from, to) = (list(|dim| dim.n), list(|dim| dim.input), list(|dim| dim.output));
        let (last, outer) = match batches.split_last() {
            Some((last, outer)) => (*last, outer),
            None => (Dim { n: 1, input: 0, output: 0 }, batches),
        };
        let sides = [(&from[..], last.input), (&to[..], last.output)];
        let plan = cufft_cpu::Plan::strided(&Strided { n: &n, sides, kind, precision, batch: last.n })?;
        let outer: Vec<Dim> = outer.iter().map(|dim| in_bytes::<In, Out>(dim)).collect::<Result<_>>()?;
        let is_in_place = core::ptr::eq(input.cast::<u8>(), output.cast());
        if is_in_place && outer.iter().any(|dim| dim.input != dim.output) {
            return Err(Error::NotSupported("transforms in place that are not where they came from"));
        }
        let volume: f64 = n.iter().map(|&n| n as f64).product();
        let count: f64 = batches.iter().map(|dim| dim.n as f64).product();
        let share = if kind == Kind::C2C { 1.0 } else { 0.5 };
        let operations = 5.0 * share * volume * volume.log2() * count;
        let memory = Address((input.cast(), output.cast()));
        Ok(Plan { plan, direction, memory, outer, operations })
    }

    pub fn operations(&self) -> f64 {
        self.operations
    }

    /// The precision and the kind, in words.
    pub fn text(&self) -> String {
        let precision = if self.plan.precision() == Precision::Double { "fftw" } else { "fftwf" };
        let kind = match self.plan.kind() {
            Kind::C2C => "dft",
            Kind::R2C => "dft-r2c",
            Kind::C2R => "dft-c2r",
        };
        format!("({precision}-{kind} {:.0} operations)", self.operations)
    }

    /// Transforms the memory that the plan was made for.
    ///
    /// # Safety
    /// As [`Self::execute_on`].
    pub unsafe fn execute(&self) -> Result {
        let (input, output) = self.memory.get();
        // SAFETY: the caller's promise.
        unsafe { self.execute_on(input, output) }
    }

    /// # Safety
    /// The memory has the elements that the plan was made of, and nobody else uses it.
    pub unsafe fn execute_on(&self, input: *const c_void, output: *mut c_void) -> Result {
        let width = self.plan.precision().bytes();
        if input.is_null()
            || output.is_null()
            || !input.addr().is_multiple_of(width)
            || !output.addr().is_multiple_of(width)
        {
            return Err(Error::Value("memory"));
        }
        wait(&[input, output])?;
        let turns: i64 = self.outer.iter().map(|dim| dim.n).product();
        for turn in 0..turns {
            let (mut rest, mut from, mut to) = (turn, 0, 0);
            for dim in self.outer.iter().rev() {
                from += rest % dim.n * dim.input;
                to += rest % dim.n * dim.output;
                rest /= dim.n;
            }
            let (input, output) =
                (input.wrapping_byte_offset(from as isize), output.wrapping_byte_offset(to as isize));
            // SAFETY: the caller's promise.
            unsafe { self.plan.execute(input, output, self.direction, &Rayon) }?;
        }
        Ok(())
    }
}

/// Distances that `execute_on` can multiply without asking.
fn in_bytes<In, Out>(dim: &Dim) -> Result<Dim> {
    let bytes = |distance: i64, width: usize| {
        let bytes = distance.checked_mul(width as i64).filter(|&bytes| bytes >= 0);
        bytes.filter(|bytes| bytes.checked_mul(dim.n).is_some()).ok_or(Error::Size("batch_dims"))
    };
    if dim.n < 1 {
        return Err(Error::Size("batch_dims"));
    }
    let (input, output) = (bytes(dim.input, size_of::<In>())?, bytes(dim.output, size_of::<Out>())?);
    Ok(Dim { n: dim.n, input, output })
}

/// What the device was asked for that has such memory is done first. Without a device, memory is the host's.
fn wait(memory: &[*const c_void]) -> Result {
    /// CU_MEMORYTYPE_DEVICE
    const DEVICE: u32 = 2;
    let Ok(driver) = driver() else { return Ok(()) };
    let mut context = CUcontext::default();
    // SAFETY: `context` outlives the call.
    check("cuCtxGetCurrent", unsafe { (driver.cuCtxGetCurrent)(&mut context) })?;
    if context.is_null() {
        return Ok(());
    }
    let is_device = |at: &*const c_void| {
        let mut kind = 0u32;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        // SAFETY: `kind` outlives the call; the driver looks the address up.
        let code =
            unsafe { (driver.cuPointerGetAttribute)((&raw mut kind).cast(), attribute, at.addr() as u64) };
        code == cuda_abi::CUresult::CUDA_SUCCESS && kind == DEVICE
    };
    if memory.iter().any(is_device) && engine::of_current_device(&config::get().fft)? == Engine::Hip {
        return Err(Error::NotSupported("cuFFTW on the memory of AMD GPUs"));
    }
    // SAFETY: nothing but a wait.
    Ok(check("cuCtxSynchronize", unsafe { (driver.cuCtxSynchronize_v2)(context) })?)
}

/// Axes as `fftw_plan_many_dft` has them: where an embedding is NULL, elements follow each other, and in place a row of real
/// numbers begins where its complex row does.
///
/// # Safety
/// `n`, and embeddings that are not NULL, have `rank` numbers.
pub unsafe fn axes<In: Value, Out: Value>(
    rank: c_int,
    n: *const c_int,
    input: (*const c_int, c_int),
    output: (*const c_int, c_int),
    in_place: bool,
) -> Result<Vec<Dim>> {
    let rank = usize::try_from(rank).ok().filter(|rank| (1..=cufft_cpu::MOST_RANK).contains(rank));
    let rank = rank.ok_or(Error::Value("rank"))?;
    if n.is_null() {
        return Err(Error::Value("n"));
    }
    // SAFETY: the caller's promise.
    let list = |list: *const c_int| (0..rank).map(|i| i64::from(unsafe { *list.add(i) })).collect::<Vec<_>>();
    let n = list(n);
    let is_real = In::ELEMENT.complex != Out::ELEMENT.complex;
    let last = n[rank - 1];
    let row = |complex: bool| match (is_real, complex) {
        (false, _) => last,
        (true, true) => last / 2 + 1,
        (true, false) if in_place => 2 * (last / 2 + 1),
        (true, false) => last,
    };
    let strides = |(embed, stride): (*const c_int, c_int), complex: bool| {
        let embed = if embed.is_null() {
            let mut dense = n.clone();
            dense[rank - 1] = row(complex);
            dense
        } else {
            list(embed)
        };
        let mut strides = vec![i64::from(stride); rank];
        for axis in (0..rank - 1).rev() {
            let step = strides[axis + 1].checked_mul(embed[axis + 1]);
            strides[axis] = step.ok_or(Error::Size("inembed or onembed"))?;
        }
        Ok::<_, Error>(strides)
    };
    let (from, to) = (strides(input, In::ELEMENT.complex)?, strides(output, Out::ELEMENT.complex)?);
    Ok((0..rank).map(|axis| Dim { n: n[axis], input: from[axis], output: to[axis] }).collect())
}

/// Axes of arrays whose elements follow each other.
pub fn dense<In: Value, Out: Value>(n: &[c_int], in_place: bool) -> Result<Vec<Dim>> {
    let none = (core::ptr::null(), 1);
    // SAFETY: the list has as many numbers as it is long.
    unsafe { axes::<In, Out>(n.len() as c_int, n.as_ptr(), none, none, in_place) }
}

/// Dimensions as the guru interface has them.
///
/// # Safety
/// `dims` has `rank` structures.
pub unsafe fn dims<D: Copy>(rank: c_int, dims: *const D, widen: impl Fn(D) -> Dim) -> Result<Vec<Dim>> {
    const MOST: usize = 16;
    let rank = usize::try_from(rank).ok().filter(|&rank| rank <= MOST).ok_or(Error::Value("rank"))?;
    if rank > 0 && dims.is_null() {
        return Err(Error::Value("dims"));
    }
    // SAFETY: the caller's promise.
    Ok((0..rank).map(|i| widen(unsafe { dims.add(i).read_unaligned() })).collect())
}

static PLANS: Registry<Plan> = Registry::new();

pub fn add(plan: Plan) -> fftw_plan {
    PLANS.add(plan)
}

pub fn get(plan: fftw_plan) -> Result<Arc<Plan>> {
    Ok(PLANS.get(plan)?)
}

pub fn remove(plan: fftw_plan) -> Result {
    PLANS.remove(plan)?;
    Ok(())
}
