//! Where an array's elements lie, as `cufftMakePlanMany64` and `cufftXtMakePlanMany` say it.
//!
//! Element `(x, y, z)` of transform `b` lies at `b * distance + ((x * embed[1] + y) * embed[2] + z) * stride`;
//! `embed[0]` has no meaning. A missing embedding on either side means the basic layout on both: elements follow each
//! other, strides and distances are not looked at, and the real side of a transform in place is padded, so that each
//! row of it begins where its complex row does.

use crate::element::{Kind, Precision};
use crate::error::{Error, Result};

/// cuFFT's three dimensions.
pub const MOST_RANK: usize = 3;

/// The longest transform along one axis.
pub const LONGEST: i64 = 1 << 31;

/// One side's `embed`, `stride` and `dist`, in elements of that side's type.
#[derive(Clone, Copy, Debug)]
pub struct Embedding<'a> {
    pub embed: &'a [i64],
    pub stride: i64,
    pub distance: i64,
}

/// What a plan is made of.
#[derive(Clone, Copy, Debug)]
pub struct Description<'a> {
    /// Lengths of the real or complex transform, one to three, the outermost first.
    pub n: &'a [i64],
    /// `None` where the program gave no `inembed`.
    pub input: Option<Embedding<'a>>,
    /// `None` where the program gave no `onembed`.
    pub output: Option<Embedding<'a>>,
    pub kind: Kind,
    pub precision: Precision,
    pub batch: i64,
}

/// What a plan is made of whose axes have strides of their own, in elements of each side's type, the outermost first.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    pub n: &'a [i64],
    /// Strides and distance of the input, then of the output: in the same memory as apart.
    pub sides: [(&'a [i64], i64); 2],
    pub kind: Kind,
    pub precision: Precision,
    pub batch: i64,
}

impl Description<'_> {
    /// What [`crate::Plan::new`] would say of it, but for memory: no table is made.
    pub fn check(&self) -> Result<()> {
        Layout::new(self).map(drop)
    }

    /// Bytes from the first to the last element of input and output, out of place and in place.
    pub fn bytes(&self) -> Result<[[usize; 2]; 2]> {
        let layout = Layout::new(self)?;
        let of =
            |side: &Side| side.whole_extent() * self.precision.bytes() * if side.complex { 2 } else { 1 };
        Ok([[of(&layout.input), of(&layout.output)], layout.in_place.each_ref().map(of)])
    }
}

/// One side of a plan, checked; strides count elements of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    pub(crate) complex: bool,
    /// How many elements there are along each axis; a Hermitian half has fewer.
    pub(crate) counts: Vec<usize>,
    pub(crate) strides: Vec<usize>,
    pub(crate) distance: usize,
    pub(crate) batch: usize,
}

impl Side {
    /// Elements that follow each other; rows are `row` elements apart.
    pub(crate) fn dense(complex: bool, counts: &[usize], row: usize, batch: usize) -> Result<Self> {
        let mut strides = vec![1; counts.len()];
        let mut volume = row;
        for (axis, stride) in strides.iter_mut().enumerate().rev().skip(1) {
            *stride = volume;
            volume = multiply(volume, counts[axis])?;
        }
        Self { complex, counts: counts.to_vec(), strides, distance: volume, batch }.checked()
    }

    fn embedded(complex: bool, counts: &[usize], embedding: &Embedding, batch: usize) -> Result<Self> {
        if embedding.embed.len() != counts.len() {
            return Err(Error::InvalidValue("embed"));
        }
        let natural = |value: i64, name| usize::try_from(value).map_err(|_| Error::InvalidValue(name));
        let stride = natural(embedding.stride, "stride")?;
        if stride == 0 {
            return Err(Error::InvalidValue("stride"));
        }
        let mut strides = vec![stride; counts.len()];
        for axis in (0..counts.len() - 1).rev() {
            let embed = natural(embedding.embed[axis + 1], "embed")?;
            if embed == 0 {
                return Err(Error::InvalidValue("embed"));
            }
            strides[axis] = multiply(strides[axis + 1], embed)?;
        }
        let distance = natural(embedding.distance, "dist")?;
        Self { complex, counts: counts.to_vec(), strides, distance, batch }.checked()
    }

    fn strided(
        complex: bool,
        counts: &[usize],
        (strides, distance): (&[i64], i64),
        batch: usize,
    ) -> Result<Self> {
        if strides.len() != counts.len() {
            return Err(Error::InvalidValue("strides"));
        }
        let natural = |value: i64, name| usize::try_from(value).map_err(|_| Error::InvalidValue(name));
        let strides = strides.iter().map(|&stride| natural(stride, "stride")).collect::<Result<Vec<_>>>()?;
        let distance = natural(distance, "dist")?;
        Self { complex, counts: counts.to_vec(), strides, distance, batch }.checked()
    }

    /// Every element's place can be computed in the widest type.
    fn checked(self) -> Result<Self> {
        let last = self.dims().try_fold(0, |last: usize, (count, stride)| {
            last.checked_add(multiply(count - 1, stride)?).ok_or(Error::InvalidSize("dist"))
        })?;
        let bytes = multiply(last.saturating_add(1), 16)?;
        isize::try_from(bytes).map_err(|_| Error::InvalidSize("dist"))?;
        Ok(self)
    }

    /// Counts and strides of the batch and of the axes.
    pub(crate) fn dims(&self) -> impl Iterator<Item = (usize, usize)> {
        let axes = self.counts.iter().copied().zip(self.strides.iter().copied());
        std::iter::once((self.batch, self.distance)).chain(axes)
    }

    /// Elements of one transform.
    pub(crate) fn volume(&self) -> usize {
        self.counts.iter().product()
    }

    /// Elements from the first to the last one of a transform, both included.
    pub(crate) fn extent(&self) -> usize {
        self.dims().skip(1).map(|(count, stride)| (count - 1) * stride).sum::<usize>() + 1
    }

    /// Elements from the first to the last one of all, both included.
    pub(crate) fn whole_extent(&self) -> usize {
        self.extent() + (self.batch - 1) * self.distance
    }

    /// Whether no two indices can mean the same element, as far as comparing strides tells.
    pub(crate) fn is_disjoint(&self) -> bool {
        let mut dims: Vec<(usize, usize)> = self.dims().filter(|&(count, _)| count > 1).collect();
        dims.sort_by_key(|&(_, stride)| stride);
        let mut extent = 1;
        dims.into_iter().all(|(count, stride)| {
            let apart = stride >= extent;
            extent += (count - 1) * stride;
            apart
        })
    }

    /// Where element `index` of one transform lies, counted in order.
    pub(crate) fn at(&self, mut index: usize) -> usize {
        let mut at = 0;
        for (count, stride) in self.counts.iter().zip(&self.strides).rev() {
            at += index % count * stride;
            index /= count;
        }
        at
    }
}

/// What is asked for, checked.
struct Lengths {
    n: Vec<usize>,
    batch: usize,
    /// Elements along each axis, of input and output.
    counts: [Vec<usize>; 2],
}

impl Lengths {
    fn new(n: &[i64], kind: Kind, batch: i64) -> Result<Self> {
        if !(1..=MOST_RANK).contains(&n.len()) {
            return Err(Error::InvalidValue("rank"));
        }
        if n.iter().any(|n| !(1..=LONGEST).contains(n)) {
            return Err(Error::InvalidSize("n"));
        }
        if batch < 1 {
            return Err(Error::InvalidSize("batch"));
        }
        let batch = usize::try_from(batch).map_err(|_| Error::InvalidSize("batch"))?;
        let n: Vec<usize> = n.iter().map(|&n| n as usize).collect();
        let mut halves = n.clone();
        if let Some(last) = halves.last_mut() {
            *last = *last / 2 + 1;
        }
        let counts = match kind {
            Kind::C2C => [n.clone(), n.clone()],
            Kind::R2C => [n.clone(), halves],
            Kind::C2R => [halves, n.clone()],
        };
        Ok(Self { n, batch, counts })
    }
}

/// A plan's two sides, and what they are in place.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) n: Vec<usize>,
    pub(crate) kind: Kind,
    pub(crate) batch: usize,
    pub(crate) input: Side,
    pub(crate) output: Side,
    /// The two sides where input and output are the same memory.
    pub(crate) in_place: [Side; 2],
}

impl Layout {
    pub(crate) fn new(description: &Description) -> Result<Self> {
        let Description { kind, batch, .. } = *description;
        let Lengths { n, batch, counts: [input_counts, output_counts] } =
            Lengths::new(description.n, kind, batch)?;
        let last = n.len() - 1;
        let (input_complex, output_complex) = (kind != Kind::R2C, kind != Kind::C2R);
        let sides = match (&description.input, &description.output) {
            (Some(input), Some(output)) => {
                let input = Side::embedded(input_complex, &input_counts, input, batch)?;
                let output = Side::embedded(output_complex, &output_counts, output, batch)?;
                (input.clone(), output.clone(), [input, output])
            }
            _ => {
                let side = |complex, counts: &[usize]| Side::dense(complex, counts, counts[last], batch);
                let padded = |complex, counts: &[usize]| {
                    let row = if complex { counts[last] } else { 2 * (n[last] / 2 + 1) };
                    Side::dense(complex, counts, row, batch)
                };
                let in_place =
                    [padded(input_complex, &input_counts)?, padded(output_complex, &output_counts)?];
                (side(input_complex, &input_counts)?, side(output_complex, &output_counts)?, in_place)
            }
        };
        Ok(Self { n, kind, batch, input: sides.0, output: sides.1, in_place: sides.2 })
    }

    pub(crate) fn strided(strided: &Strided) -> Result<Self> {
        let Strided { kind, batch, sides: [input, output], .. } = *strided;
        let Lengths { n, batch, counts: [input_counts, output_counts] } =
            Lengths::new(strided.n, kind, batch)?;
        let input = Side::strided(kind != Kind::R2C, &input_counts, input, batch)?;
        let output = Side::strided(kind != Kind::C2R, &output_counts, output, batch)?;
        Ok(Self { n, kind, batch, input: input.clone(), output: output.clone(), in_place: [input, output] })
    }

    /// What a work area looks like in which `batch` transforms are done in place.
    pub(crate) fn work(&self, batch: usize) -> Result<Self> {
        let rank = self.n.len();
        let mut work = self.clone();
        for side in &mut work.in_place {
            let row = match (self.kind, side.complex) {
                (Kind::C2C, _) => self.n[rank - 1],
                (_, true) => self.n[rank - 1] / 2 + 1,
                (_, false) => 2 * (self.n[rank - 1] / 2 + 1),
            };
            *side = Side::dense(side.complex, &side.counts, row, batch)?;
        }
        work.batch = batch;
        [work.input, work.output] = work.in_place.clone();
        Ok(work)
    }
}

/// Elements below each other, as a size that can be addressed.
pub(crate) fn multiply(a: usize, b: usize) -> Result<usize> {
    a.checked_mul(b).ok_or(Error::InvalidSize("n"))
}
