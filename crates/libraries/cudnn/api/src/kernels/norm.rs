//! Normalizations and their gradients by kernels of api/kernels/rows.cu.

use cudnn_cpu::Kind;

use super::Call;
use super::rows::{How, Over};
use super::tensor::{Operand, packed};
use crate::Result;
use crate::hip::objects::Room;

/// The kernels' codes.
const CENTERED: u32 = 1;
const VARIANCE: u32 = 2;
const GIVEN: u32 = 4;

/// What is normalized: statistics are of the inner sizes.
pub struct Normal<'s> {
    pub over: Over<'s>,
    /// Whether the mean is taken off.
    pub is_centered: bool,
    pub epsilon: f64,
    pub x: Operand,
    pub scale: Operand,
}

/// Mean, and one over the deviation or the variance.
pub enum Statistics {
    /// They are made, and go where there is memory for them.
    Own([Operand; 2]),
    Given([Operand; 2]),
    /// With the variance.
    Estimated([Operand; 2]),
}

/// Averages over runs: the factor, those so far and those behind it, of means and of variances.
pub struct Running {
    pub factor: f64,
    pub before: [Operand; 2],
    pub after: [Operand; 2],
}

/// What a way back is given and gives.
pub struct Gradients {
    pub dy: Operand,
    pub dx: Operand,
    /// Of scale and bias.
    pub parameters: [Operand; 2],
    /// Which sizes one number of the scale is repeated over.
    pub is_repeated: Vec<bool>,
    /// Factors of dx and of the parameters' gradients, and of what lay there before.
    pub given: [[f32; 2]; 2],
}

impl Normal<'_> {
    fn how(&self, flags: u32) -> How {
        let mut how = How::new(flags | if self.is_centered { CENTERED } else { 0 });
        how.numbers[0] = self.epsilon;
        how
    }
}

impl Call {
    /// y of x; whether the kernel can do it.
    pub fn normalize(
        &self,
        of: &Normal,
        (y, bias): (&Operand, &Operand),
        statistics: Statistics,
        running: Option<Running>,
        given: [f32; 2],
    ) -> Result<bool> {
        let sizes = of.over.sizes;
        let (flags, [mean, second]) = match &statistics {
            Statistics::Own(both) => (0, both),
            Statistics::Given(both) => (GIVEN, both),
            Statistics::Estimated(both) => (GIVEN | VARIANCE, both),
        };
        let none = Operand::none;
        let (factor, before, after) = running.map_or((0.0, [none(), none()], [none(), none()]), |running| {
            (running.factor, running.before, running.after)
        });
        // Results of blocks that are done are not read by others.
        let read = [&of.x, &of.scale, bias, &before[0], &before[1]];
        let own = if flags == 0 { [mean, second] } else { [&after[0], &after[1]] };
        let written = [y, own[0], own[1], &after[0], &after[1]];
        let fits = |to: &&Operand| read.iter().all(|from| to.is_apart_or_in_place(from, sizes));
        if !written.iter().all(fits) {
            return Ok(false);
        }
        let mut how = How { given, ..of.how(flags) };
        how.numbers[1] = factor;
        let [before_mean, before_variance] = before;
        let [after_mean, after_variance] = after;
        let operands = [
            of.x.clone(),
            y.clone(),
            of.scale.clone(),
            bias.clone(),
            mean.clone(),
            second.clone(),
            before_mean,
            after_mean,
            before_variance,
            after_variance,
        ];
        self.rows(c"normalize", how, of.over, &operands)
    }

    /// Mean and one over the deviation of x in memory of the device's, which has to be there until the launches that read it are enqueued.
    fn statistics(&self, of: &Normal) -> Result<Option<(Room, [Operand; 2])>> {
        let (strides, count) = packed(of.over.sizes, of.over.is_inner);
        let bytes = 4 * count;
        let room = self.room(2 * bytes)?;
        let first = room.at().cast::<u8>().cast_const();
        let at = |first: *const u8| Operand::memory(first, Kind::F32, strides.clone());
        let Some(both) = at(first).zip(at(first.wrapping_add(bytes))).map(<[Operand; 2]>::from) else {
            return Ok(None);
        };
        let (none, own) = (Operand::none(), Statistics::Own(both.clone()));
        let is_made = self.normalize(of, (&none, &none), own, None, [1.0, 0.0])?;
        Ok(is_made.then_some((room, both)))
    }

    /// The gradients of x, scale and bias; statistics that are not given are x's own.
    pub fn normalize_backward(
        &self,
        of: &Normal,
        statistics: Option<[Operand; 2]>,
        by: &Gradients,
    ) -> Result<bool> {
        let Over { sizes, is_inner } = of.over;
        let (_room, [mean, inverse]) = match statistics {
            Some(both) => (None, both),
            None => match self.statistics(of)? {
                Some((room, both)) => (Some(room), both),
                None => return Ok(false),
            },
        };
        let read = [&of.x, &of.scale, &by.dy, &mean, &inverse];
        let is_apart = |to: &Operand| read.iter().all(|from| to.is_apart(sizes, (from, sizes)));
        let in_place = read.iter().all(|from| by.dx.is_apart_or_in_place(from, sizes));
        if !by.parameters.iter().all(is_apart) || !in_place {
            return Ok(false);
        }
        let how = |given: [f32; 2]| How { given, ..of.how(0) };
        let [dscale, dbias] = by.parameters.clone();
        // First, as dx may lie where x or dy does.
        let parameters = [of.x.clone(), by.dy.clone(), mean.clone(), inverse.clone(), dscale, dbias];
        let over_scale = Over { sizes, is_inner: &by.is_repeated };
        if !self.rows(c"scale_backward", how(by.given[1]), over_scale, &parameters)? {
            return Ok(false);
        }
        let images = [of.x.clone(), by.dx.clone(), of.scale.clone(), by.dy.clone(), mean, inverse];
        self.rows(c"normalize_backward", how(by.given[0]), Over { sizes, is_inner }, &images)
    }
}
