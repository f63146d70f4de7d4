//! Numbers. The checks come in this order: the generator, no numbers at all, its type, the distribution's parameters, the count.

use core::ffi::{c_uint, c_ulonglong};

use crate::draw::{Draw, Normal};
use crate::generator::{self, check_lambda, check_pairs};
use crate::types::*;
use crate::{Error, Result};

/// # Safety
/// `outputPtr` is NULL, or has room for `num` numbers until they have been written.
pub unsafe fn curandGenerate(generator: curandGenerator_t, outputPtr: *mut c_uint, num: usize) -> Result {
    let generator = generator::get(generator)?;
    if generator.kind.is_wide() && num > 0 {
        return Err(Error::Type("a generator of 64 bits makes no words of 32"));
    }
    // SAFETY: the caller's promise.
    unsafe { generator.write(outputPtr, num, Draw::Bits, |sequence, out| sequence.fill_u32(out)) }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `num` numbers until they have been written.
pub unsafe fn curandGenerateLongLong(
    generator: curandGenerator_t,
    outputPtr: *mut c_ulonglong,
    num: usize,
) -> Result {
    let generator = generator::get(generator)?;
    if !generator.kind.is_wide() && num > 0 {
        return Err(Error::Type("a generator of 32 bits makes no words of 64"));
    }
    // SAFETY: the caller's promise.
    unsafe { generator.write(outputPtr, num, Draw::Bits, |sequence, out| sequence.fill_u64(out)) }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `num` numbers until they have been written.
pub unsafe fn curandGenerateUniform(generator: curandGenerator_t, outputPtr: *mut f32, num: usize) -> Result {
    let generator = generator::get(generator)?;
    // SAFETY: the caller's promise.
    unsafe {
        generator.write(outputPtr, num, Draw::UniformSingle, |sequence, out| sequence.fill_uniform_f32(out))
    }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `num` numbers until they have been written.
pub unsafe fn curandGenerateUniformDouble(
    generator: curandGenerator_t,
    outputPtr: *mut f64,
    num: usize,
) -> Result {
    let generator = generator::get(generator)?;
    // SAFETY: the caller's promise.
    unsafe {
        generator.write(outputPtr, num, Draw::UniformDouble, |sequence, out| sequence.fill_uniform_f64(out))
    }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `n` numbers until they have been written.
pub unsafe fn curandGenerateNormal(
    generator: curandGenerator_t,
    outputPtr: *mut f32,
    n: usize,
    mean: f32,
    stddev: f32,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalSingle(Normal::of(mean, stddev, false));
    // SAFETY: the caller's promise.
    unsafe {
        generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_normal_f32(out, mean, stddev))
    }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `n` numbers until they have been written.
pub unsafe fn curandGenerateNormalDouble(
    generator: curandGenerator_t,
    outputPtr: *mut f64,
    n: usize,
    mean: f64,
    stddev: f64,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalDouble(Normal::of(mean, stddev, false));
    // SAFETY: the caller's promise.
    unsafe {
        generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_normal_f64(out, mean, stddev))
    }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `n` numbers until they have been written.
pub unsafe fn curandGenerateLogNormal(
    generator: curandGenerator_t,
    outputPtr: *mut f32,
    n: usize,
    mean: f32,
    stddev: f32,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalSingle(Normal::of(mean, stddev, true));
    // SAFETY: the caller's promise.
    unsafe {
        generator
            .write(outputPtr, n, draw, move |sequence, out| sequence.fill_log_normal_f32(out, mean, stddev))
    }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `n` numbers until they have been written.
pub unsafe fn curandGenerateLogNormalDouble(
    generator: curandGenerator_t,
    outputPtr: *mut f64,
    n: usize,
    mean: f64,
    stddev: f64,
) -> Result {
    let generator = generator::get(generator)?;
    check_pairs(generator.kind, n)?;
    let draw = Draw::NormalDouble(Normal::of(mean, stddev, true));
    // SAFETY: the caller's promise.
    unsafe {
        generator
            .write(outputPtr, n, draw, move |sequence, out| sequence.fill_log_normal_f64(out, mean, stddev))
    }
}

/// # Safety
/// `outputPtr` is NULL, or has room for `n` numbers until they have been written.
pub unsafe fn curandGeneratePoisson(
    generator: curandGenerator_t,
    outputPtr: *mut c_uint,
    n: usize,
    lambda: f64,
) -> Result {
    let generator = generator::get(generator)?;
    check_lambda(lambda)?;
    let draw = Draw::Poisson { mean: lambda };
    // SAFETY: the caller's promise.
    unsafe { generator.write(outputPtr, n, draw, move |sequence, out| sequence.fill_poisson(out, lambda)) }
}

/// There is one method that a program may ask for: the best.
///
/// # Safety
/// `outputPtr` is NULL, or has room for `n` numbers until they have been written.
pub unsafe fn curandGeneratePoissonMethod(
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
    // SAFETY: the caller's promise.
    unsafe { curandGeneratePoisson(generator, outputPtr, n, lambda) }
}
