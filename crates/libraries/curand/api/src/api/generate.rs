//! Numbers. The checks come in this order: the generator, no numbers at all, its type, the distribution's parameters, the count.

use core::ffi::{c_uint, c_ulonglong};

use crate::draw::{Draw, Normal};
use crate::generator::{self, check_lambda, check_pairs};
use crate::types::*;
use crate::{Error, Result};

pub fn curandGenerate(generator: curandGenerator_t, outputPtr: *mut c_uint, num: usize) -> Result {
    let generator = generator::get(generator)?;
    if generator.kind.is_wide() && num > 0 {
        return Err(Error::Type("a generator of 64 bits makes no words of 32"));
    }
    generator.write(outputPtr, num, Draw::Bits, |sequence, out| sequence.fill_u32(out))
}

pub fn curandGenerateLongLong(
    generator: curandGenerator_t,
    outputPtr: *mut c_ulonglong,
    num: usize,
) -> Result {
    let generator = generator::get(generator)?;
    if !generator.kind.is_wide() && num > 0 {
        return Err(Error::Type("a generator of 32 bits makes no words of 64"));
    }
    generator.write(outputPtr, num, Draw::Bits, |sequence, out| sequence.fill_u64(out))
}

pub fn curandGenerateUniform(generator: curandGenerator_t, outputPtr: *mut f32, num: usize) -> Result {
    generator::get(generator)?
        .write(outputPtr, num, Draw::UniformSingle, |sequence, out| sequence.fill_uniform_f32(out))
}

pub fn curandGenerateUniformDouble(generator: curandGenerator_t, outputPtr: *mut f64, num: usize) -> Result {
    generator::get(generator)?
        .write(outputPtr, num, Draw::UniformDouble, |sequence, out| sequence.fill_uniform_f64(out))
}

pub fn curandGenerateNormal(
    generator: curandGenerator_t,
    outputPtr: *mut f32,
    n: usize,
    mean: f32,
    stddev: f32,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalSingle(Normal::of(mean, stddev, false));
    generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_normal_f32(out, mean, stddev))
}

pub fn curandGenerateNormalDouble(
    generator: curandGenerator_t,
    outputPtr: *mut f64,
    n: usize,
    mean: f64,
    stddev: f64,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalDouble(Normal::of(mean, stddev, false));
    generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_normal_f64(out, mean, stddev))
}

pub fn curandGenerateLogNormal(
    generator: curandGenerator_t,
    outputPtr: *mut f32,
    n: usize,
    mean: f32,
    stddev: f32,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalSingle(Normal::of(mean, stddev, true));
    generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_log_normal_f32(out, mean, stddev))
}

pub fn curandGenerateLogNormalDouble(
    generator: curandGenerator_t,
    outputPtr: *mut f64,
    n: usize,
    mean: f64,
    stddev: f64,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalDouble(Normal::of(mean, stddev, true));
    generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_log_normal_f64(out, mean, stddev))
}

pub fn curandGeneratePoisson(
    generator: curandGenerator_t,
    outputPtr: *mut c_uint,
    n: usize,
    lambda: f64,
) -> Result {
    let generator = generator::get(generator)?;
    check_lambda(lambda)?;
    let draw = Draw::Poisson { mean: lambda };
    generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_poisson(out, lambda))
}

/// There is one method that a program may ask for: the best.
pub fn curandGeneratePoissonMethod(
    generator: curandGenerator_t,
    outputPtr: *mut c_uint,
    n: usize,
    lambda: f64,
    method: curandMethod_t,
) -> Result {
    generator::get(generator)?;
    if method != curandMethod_t::CURAND_CHOOSE_BEST {
        return Err(Error::OutOfRange("there is one method, the best"));
    }
    curandGeneratePoisson(generator, outputPtr, n, lambda)
}
