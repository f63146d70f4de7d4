//! What a generator begins with. A setting that is refused leaves the one before.

use core::ffi::{c_uint, c_ulonglong};

use curand_cpu::Ordering;

use crate::generator::{self, Setting};
use crate::types::*;
use crate::{Error, Result};

pub fn curandSetStream(generator: curandGenerator_t, stream: cudaStream_t) -> Result {
    generator::get(generator)?.set_stream(stream);
    Ok(())
}

pub fn curandSetPseudoRandomGeneratorSeed(generator: curandGenerator_t, seed: c_ulonglong) -> Result {
    generator::get(generator)?.set(Setting::Seed(seed))
}

pub fn curandSetGeneratorOffset(generator: curandGenerator_t, offset: c_ulonglong) -> Result {
    generator::get(generator)?.set(Setting::Offset(offset))
}

pub fn curandSetGeneratorOrdering(generator: curandGenerator_t, order: curandOrdering_t) -> Result {
    let generator = generator::get(generator)?;
    let ordering = match order {
        curandOrdering_t::CURAND_ORDERING_PSEUDO_BEST => Ordering::Best,
        curandOrdering_t::CURAND_ORDERING_PSEUDO_DEFAULT => Ordering::Default,
        curandOrdering_t::CURAND_ORDERING_PSEUDO_SEEDED => Ordering::Seeded,
        curandOrdering_t::CURAND_ORDERING_PSEUDO_LEGACY => Ordering::Legacy,
        // It is what suits a device, and depends on it.
        curandOrdering_t::CURAND_ORDERING_PSEUDO_DYNAMIC if !generator.is_on_host() => Ordering::Dynamic,
        curandOrdering_t::CURAND_ORDERING_QUASI_DEFAULT => Ordering::Quasi,
        _ => return Err(Error::OutOfRange("there is no such ordering here")),
    };
    generator.set(Setting::Ordering(ordering))
}

pub fn curandSetQuasiRandomGeneratorDimensions(
    generator: curandGenerator_t,
    num_dimensions: c_uint,
) -> Result {
    generator::get(generator)?.set(Setting::Dimensions(num_dimensions))
}

/// The state that the next numbers would make otherwise.
pub fn curandGenerateSeeds(generator: curandGenerator_t) -> Result {
    generator::get(generator)?.set(Setting::Seeds)
}
