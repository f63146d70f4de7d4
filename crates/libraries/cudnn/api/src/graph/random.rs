//! Random tensors of a graph: Philox as cuDNN's manual names it. Which subsequence an element has is published nowhere; here it is the element's
//! number, so that a way back has the numbers of the way forward.

use cudnn_cpu::random::word;

use super::descriptor::Descriptor;
use super::kernels::Run;
use super::layers::Takes;
use super::plan::{Layer, Operation, Tensor, Tensors, Work, described};
use crate::error::{require, supports};
use crate::kernels::moves::{self, Spread, Whole};
use crate::kernels::tensor::Operand;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;

struct Random {
    spread: Spread,
    seed: Seed,
    offset: Option<usize>,
}

enum Seed {
    Number(i64),
    Taken(usize),
}

pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RNG_YDESC)?;
    let by = described(
        of,
        Name::CUDNN_ATTR_OPERATION_RNG_DESC,
        cudnnBackendDescriptorType_t::CUDNN_BACKEND_RNG_DESCRIPTOR,
    )?;
    let spread = {
        let by = by.lock();
        let real = |name: Name| Ok::<f64, Error>(by.real(name)?.unwrap_or(-1.0));
        match by.number(Name::CUDNN_ATTR_RNG_DISTRIBUTION)? {
            0 => {
                let chance = real(Name::CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY)?;
                require((0.0..=1.0).contains(&chance), "a probability is not between 0 and 1")?;
                Spread::Bernoulli(chance)
            }
            1 => {
                let least = real(Name::CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM)?;
                let most = real(Name::CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM)?;
                require(most >= least, "a range ends before it begins")?;
                Spread::Uniform(least, most)
            }
            _ => return Err(Error::NotSupported("random numbers of this distribution")),
        }
    };
    let mut takes = Takes::default();
    let name = Name::CUDNN_ATTR_OPERATION_RNG_SEED;
    let seed = if of.nodes(name).is_empty() {
        Seed::Number(of.integer(name)?.unwrap_or(0))
    } else {
        let seed = tensors.needed(of, name)?;
        require(seed.is_one_number(), "a seed is not one number")?;
        Seed::Taken(takes.add(&seed))
    };
    let offset = tensors.of(of, Name::CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC)?;
    require(offset.as_ref().is_none_or(Tensor::is_one_number), "an offset is not one number")?;
    supports(y.sizes.iter().product::<usize>() > 0, "a random tensor without elements")?;
    let offset = takes.add_if(offset.as_ref());
    let work = Random { spread, seed, offset };
    Ok(Operation { work: Work::Layer(Box::new(work)), takes: takes.0, gives: vec![y.uid] })
}

/// Whether a number that is there with this probability is.
pub fn is_drawn(chance: f64, seed: i64, offset: i64, number: usize) -> bool {
    unit(seed, offset, number) < chance
}

/// Between 0 and 1, which it is not.
fn unit(seed: i64, offset: i64, number: usize) -> f64 {
    f64::from(word(seed as u64, number as u64, offset as u64)) * 2.0_f64.powi(-32)
}

impl Layer for Random {
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let seed = match self.seed {
            Seed::Number(seed) => seed,
            Seed::Taken(place) => taken[place].1[0] as i64,
        };
        let offset = self.offset.map_or(0, |place| taken[place].1[0] as i64);
        let number = |number: usize| match self.spread {
            Spread::Bernoulli(chance) => f64::from(u8::from(is_drawn(chance, seed, offset, number))),
            Spread::Uniform(least, most) => least + (most - least) * unit(seed, offset, number),
        };
        vec![(0..gives[0].sizes.iter().product()).map(number).collect()]
    }

    fn exact(&self, of: &Operation) -> Vec<i64> {
        of.takes.clone()
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let seed = match self.seed {
            Seed::Number(seed) => Some(Whole::Number(seed)),
            Seed::Taken(place) => run.whole(of.takes[place]),
        };
        let offset = self.offset.map_or(Some(Whole::Number(0)), |place| run.whole(of.takes[place]));
        let (Some(seed), Some(offset), Some(to)) = (seed, offset, run.own(of.gives[0])) else {
            return Ok(false);
        };
        let how = moves::Random { seed, offset, spread: self.spread, factor: 1.0 };
        run.call.draw(&how, (run.sizes(of.gives[0]), 0), &to, &Operand::none())
    }
}
