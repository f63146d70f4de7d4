//! `curandDiscreteDistribution_t`: a distribution in device memory, laid out as NVIDIA's headers read it in kernels.

use std::collections::BTreeMap;
use std::mem::offset_of;

use cuda_abi::{CUcontext, CUdeviceptr, CUstream};
use curand_cpu::Distribution;
use kit::{driver, stream};
use parking_lot::Mutex;

use crate::types::*;
use crate::{Error, Result};

/// Those that are there: their addresses, and the contexts that they are of.
static MADE: Mutex<BTreeMap<u64, Context>> = Mutex::new(BTreeMap::new());

struct Context(CUcontext);

// SAFETY: a number of the driver's, good on every thread.
unsafe impl Send for Context {}

/// What lies in one piece of device memory, in this order, in front of the bars' ends and their others.
#[derive(Default)]
#[repr(C)]
struct Head {
    distribution: curandDiscreteDistribution_st,
    m2: curandDistributionM2Shift_st,
    histogram: curandHistogramM2_st,
}

/// A Poisson distribution of that mean, for the calling thread's device.
pub fn create(mean: f64) -> Result<curandDiscreteDistribution_t> {
    let context = driver::context(None)?;
    let distribution = Distribution::poisson(mean);
    let n_bars = match &distribution {
        Distribution::Histogram { ends, .. } => ends.len(),
        Distribution::Normal { .. } => 0,
    };
    let bytes = size_of::<Head>() + n_bars * (size_of::<f64>() + size_of::<u32>());
    let driver = driver::driver()?;
    let mut at = CUdeviceptr::default();
    // SAFETY: `at` outlives the call.
    let code = unsafe { (driver.cuMemAlloc_v2)(&mut at, bytes) };
    driver::check("cuMemAlloc", code).map_err(|_| Error::Allocation)?;
    let image = image(&distribution, at);
    // SAFETY: the bytes are there until the stream was waited for.
    let code =
        unsafe { (driver.cuMemcpyHtoDAsync_v2)(at, image.as_ptr().cast(), image.len(), CUstream::default()) };
    let copied =
        driver::check("cuMemcpyHtoDAsync", code).and_then(|()| stream::synchronize(CUstream::default()));
    if let Err(error) = copied {
        // SAFETY: allocated above, and nobody knows of it.
        unsafe { (driver.cuMemFree_v2)(at) };
        return Err(error.into());
    }
    MADE.lock().insert(at, Context(context));
    Ok(std::ptr::with_exposed_provenance_mut(at as usize))
}

/// The bytes at the address `at`.
fn image(distribution: &Distribution, at: CUdeviceptr) -> Vec<u8> {
    let (mut ends, mut others) = (&[][..], &[][..]);
    let mut head = Head::default();
    match distribution {
        Distribution::Normal { mean, deviation } => {
            head.distribution.method = curandMethod_t::CURAND_DISCRETE_GAUSS;
            (head.distribution.mean, head.distribution.stddev) = (*mean, *deviation);
        }
        Distribution::Histogram { first, ends: theirs, others: their_others } => {
            (ends, others) = (theirs, their_others);
            head.distribution.method = curandMethod_t::CURAND_M2;
            head.distribution.M2 = at + offset_of!(Head, m2) as u64;
            head.m2.histogram = at + offset_of!(Head, histogram) as u64;
            // Behind the last bar stands what a uniform number of 1 finds.
            (head.m2.shift, head.m2.length) = (*first, ends.len() as u32 - 1);
            head.histogram.V = at + size_of::<Head>() as u64;
            head.histogram.K = head.histogram.V + size_of_val(ends) as u64;
        }
    }
    // SAFETY: plain numbers, without padding between them.
    let head = unsafe { core::slice::from_raw_parts((&raw const head).cast::<u8>(), size_of::<Head>()) };
    let ends = ends.iter().flat_map(|end| end.to_ne_bytes());
    let others = others.iter().flat_map(|other| other.to_ne_bytes());
    head.iter().copied().chain(ends).chain(others).collect()
}

/// What was launched in front of the call still reads it.
pub fn destroy(distribution: curandDiscreteDistribution_t) -> Result {
    let at = distribution.addr() as u64;
    let Context(context) = MADE.lock().remove(&at).ok_or(Error::NotInitialized)?;
    let driver = driver::driver()?;
    driver::context(Some(context))?;
    // SAFETY: `create` allocated it, and no handle leads there any more. The driver waits for what was launched.
    driver::check("cuMemFree", unsafe { (driver.cuMemFree_v2)(at) })?;
    Ok(())
}
