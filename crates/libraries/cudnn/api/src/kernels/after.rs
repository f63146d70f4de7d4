//! What follows a convolution or a normalization in the same call: sums and an activation, of a result that stays in `float` until then.

use cudnn_cpu::Kind;
use cudnn_cpu::activation::Activation;
use cudnn_cpu::pointwise::Mix;

use super::Call;
use super::elements::How;
use super::tensor::{Operand, packed};
use crate::Result;
use crate::hip::objects::Room;

/// Sums with tensors, each with its factor, and then an activation.
pub struct After {
    pub added: Vec<(f32, Operand)>,
    pub function: Activation,
}

impl After {
    fn is_nothing(&self) -> bool {
        self.added.is_empty() && self.function == Activation::Identity
    }
}

impl Call {
    /// Floats of these sizes in memory of the device's, which has to be there until the launches that read it are enqueued.
    pub fn floats(&self, sizes: &[usize]) -> Result<Option<(Room, Operand)>> {
        let (strides, count) = packed(sizes, &vec![false; sizes.len()]);
        let room = self.room(4 * count)?;
        Ok(Operand::memory(room.at().cast(), Kind::F32, strides).map(|at| (room, at)))
    }

    /// Has `make` write what the rest is done with, with factors of the result and of what lay there before; whether kernels can do it.
    pub fn finished(
        &self,
        after: &After,
        (to, sizes): (&Operand, &[usize]),
        given: [f32; 2],
        make: impl FnOnce(&Operand, [f32; 2]) -> Result<bool>,
    ) -> Result<bool> {
        if after.is_nothing() {
            return make(to, given);
        }
        let Some((_room, made)) = self.floats(sizes)? else { return Ok(false) };
        if !make(&made, [1.0, 0.0])? {
            return Ok(false);
        }
        for (by, other) in &after.added {
            let sum = How::mix(Mix::Add, [1.0, *by]);
            if !self.elements(sum, sizes, &made, &[made.clone(), other.clone()])? {
                return Ok(false);
            }
        }
        let activation = How::activation(after.function).blended(given[0].into(), given[1].into());
        self.elements(activation, sizes, to, &[made])
    }
}
