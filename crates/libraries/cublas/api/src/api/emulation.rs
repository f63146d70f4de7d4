//! How products in `f64` may be emulated with integers, and in `f32` with bfloat16. Nothing is emulated on any device here:
//! products have the precision of their type, which every one of these settings allows. They are kept for who asks.
//! Source: cuBLAS manual, "Floating Point Emulation".

use core::ffi::c_int;

use border::Out;

use crate::{
    Result, cublasEmulationStrategy_t, cublasHandle_t, cudaEmulationMantissaControl,
    cudaEmulationSpecialValuesSupport, handle, require,
};

/// What the program has set; the defaults are the manual's.
#[derive(Clone, Copy, Debug)]
pub struct Emulation {
    strategy: cublasEmulationStrategy_t,
    special_values: cudaEmulationSpecialValuesSupport,
    mantissa_control: cudaEmulationMantissaControl,
    max_mantissa_bits: c_int,
    mantissa_bit_offset: c_int,
    /// Where the number of bits that were used would be written; an address.
    mantissa_bit_count: usize,
}

impl Default for Emulation {
    fn default() -> Self {
        Emulation {
            strategy: cublasEmulationStrategy_t::CUBLAS_EMULATION_STRATEGY_DEFAULT,
            special_values: cudaEmulationSpecialValuesSupport::CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT,
            mantissa_control: cudaEmulationMantissaControl::CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC,
            max_mantissa_bits: 0,
            mantissa_bit_offset: 0,
            mantissa_bit_count: 0,
        }
    }
}

pub fn cublasSetEmulationStrategy(
    handle: cublasHandle_t,
    emulationStrategy: cublasEmulationStrategy_t,
) -> Result {
    let handle = handle::get(handle)?;
    require(emulationStrategy.0 <= 2, "there is no such strategy")?;
    handle.set(|state| state.emulation.strategy = emulationStrategy);
    Ok(())
}

pub fn cublasGetEmulationStrategy(
    handle: cublasHandle_t,
    emulationStrategy: Out<'_, cublasEmulationStrategy_t>,
) -> Result {
    emulationStrategy.write(handle::get(handle)?.state().emulation.strategy);
    Ok(())
}

pub fn cublasSetEmulationSpecialValuesSupport(
    handle: cublasHandle_t,
    mask: cudaEmulationSpecialValuesSupport,
) -> Result {
    let handle = handle::get(handle)?;
    require(mask.0 <= 0xffff, "there are no such special values")?;
    handle.set(|state| state.emulation.special_values = mask);
    Ok(())
}

pub fn cublasGetEmulationSpecialValuesSupport(
    handle: cublasHandle_t,
    mask: Out<'_, cudaEmulationSpecialValuesSupport>,
) -> Result {
    mask.write(handle::get(handle)?.state().emulation.special_values);
    Ok(())
}

pub fn cublasSetFixedPointEmulationMantissaControl(
    handle: cublasHandle_t,
    mantissaControl: cudaEmulationMantissaControl,
) -> Result {
    let handle = handle::get(handle)?;
    require(mantissaControl.0 <= 1, "there is no such control of the mantissa")?;
    handle.set(|state| state.emulation.mantissa_control = mantissaControl);
    Ok(())
}

pub fn cublasGetFixedPointEmulationMantissaControl(
    handle: cublasHandle_t,
    mantissaControl: Out<'_, cudaEmulationMantissaControl>,
) -> Result {
    mantissaControl.write(handle::get(handle)?.state().emulation.mantissa_control);
    Ok(())
}

pub fn cublasSetFixedPointEmulationMaxMantissaBitCount(
    handle: cublasHandle_t,
    maxMantissaBitCount: c_int,
) -> Result {
    let handle = handle::get(handle)?;
    require(maxMantissaBitCount >= 0, "maxMantissaBitCount is negative")?;
    handle.set(|state| state.emulation.max_mantissa_bits = maxMantissaBitCount);
    Ok(())
}

pub fn cublasGetFixedPointEmulationMaxMantissaBitCount(
    handle: cublasHandle_t,
    maxMantissaBitCount: Out<'_, c_int>,
) -> Result {
    maxMantissaBitCount.write(handle::get(handle)?.state().emulation.max_mantissa_bits);
    Ok(())
}

pub fn cublasSetFixedPointEmulationMantissaBitOffset(
    handle: cublasHandle_t,
    mantissaBitOffset: c_int,
) -> Result {
    let handle = handle::get(handle)?;

    handle.set(|state| state.emulation.mantissa_bit_offset = mantissaBitOffset);
    Ok(())
}

pub fn cublasGetFixedPointEmulationMantissaBitOffset(
    handle: cublasHandle_t,
    mantissaBitOffset: Out<'_, c_int>,
) -> Result {
    mantissaBitOffset.write(handle::get(handle)?.state().emulation.mantissa_bit_offset);
    Ok(())
}

/// Written by an emulated product alone, so never.
pub fn cublasSetFixedPointEmulationMantissaBitCountPointer(
    handle: cublasHandle_t,
    mantissaBitCount: *mut c_int,
) -> Result {
    handle::get(handle)?
        .set(|state| state.emulation.mantissa_bit_count = mantissaBitCount.expose_provenance());
    Ok(())
}

pub fn cublasGetFixedPointEmulationMantissaBitCountPointer(
    handle: cublasHandle_t,
    mantissaBitCount: Out<'_, *mut c_int>,
) -> Result {
    let address = handle::get(handle)?.state().emulation.mantissa_bit_count;
    mantissaBitCount.write(std::ptr::with_exposed_provenance_mut(address));
    Ok(())
}
