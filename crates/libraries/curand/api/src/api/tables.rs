//! Direction vectors of Sobol's sequences for programs that make states of their own, and distributions for them.

use core::ffi::{c_uint, c_ulonglong};

use border::Out;

use crate::types::*;
use crate::{Error, Result, distribution, generator};

pub fn curandGetDirectionVectors32(
    vectors: Out<'_, *mut curandDirectionVectors32_t>,
    set: curandDirectionVectorSet_t,
) -> Result {
    let table = curand_cpu::directions32(match set {
        curandDirectionVectorSet_t::CURAND_DIRECTION_VECTORS_32_JOEKUO6 => false,
        curandDirectionVectorSet_t::CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6 => {
            generator::note_scrambles();
            true
        }
        _ => return Err(Error::OutOfRange("there is no such set of 32 bits")),
    });
    // C has no const there: the program only reads it.
    vectors.write(table.as_ptr().cast_mut());
    Ok(())
}

pub fn curandGetDirectionVectors64(
    vectors: Out<'_, *mut curandDirectionVectors64_t>,
    set: curandDirectionVectorSet_t,
) -> Result {
    let table = curand_cpu::directions64(match set {
        curandDirectionVectorSet_t::CURAND_DIRECTION_VECTORS_64_JOEKUO6 => false,
        curandDirectionVectorSet_t::CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6 => {
            generator::note_scrambles();
            true
        }
        _ => return Err(Error::OutOfRange("there is no such set of 64 bits")),
    });
    vectors.write(table.as_ptr().cast_mut());
    Ok(())
}

pub fn curandGetScrambleConstants32(constants: Out<'_, *mut c_uint>) -> Result {
    generator::note_scrambles();
    constants.write(curand_cpu::scramble32().as_ptr().cast_mut());
    Ok(())
}

pub fn curandGetScrambleConstants64(constants: Out<'_, *mut c_ulonglong>) -> Result {
    generator::note_scrambles();
    constants.write(curand_cpu::scramble64().as_ptr().cast_mut());
    Ok(())
}

/// In the memory of the calling thread's device, where `curand_discrete` reads it.
pub fn curandCreatePoissonDistribution(
    lambda: f64,
    discrete_distribution: Out<'_, curandDiscreteDistribution_t>,
) -> Result {
    generator::check_lambda(lambda)?;
    discrete_distribution.write(distribution::create(lambda)?);
    Ok(())
}

pub fn curandDestroyDistribution(discrete_distribution: curandDiscreteDistribution_t) -> Result {
    distribution::destroy(discrete_distribution)
}
