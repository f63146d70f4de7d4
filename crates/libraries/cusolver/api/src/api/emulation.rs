//! How `float` and `double` may be emulated by narrower types where `cusolverDnSetMathMode` allows it: what is set is kept and told, and all is
//! computed in the precision of its type. Source: cuSOLVER manual, "cuSolverDN Helper Function Reference".

use core::ffi::c_int;

use border::Out;

use crate::Result;
use crate::error::require;
use crate::handle;
use crate::types::*;

pub fn cusolverDnSetEmulationStrategy(
    handle: cusolverDnHandle_t,
    strategy: cudaEmulationStrategy_t,
) -> Result {
    let context = handle::get(handle)?;
    require(strategy <= cudaEmulationStrategy_t::CUDA_EMULATION_STRATEGY_EAGER, "there is no such strategy")?;
    context.change(|state| state.emulation.strategy = strategy);
    Ok(())
}

pub fn cusolverDnGetEmulationStrategy(
    handle: cusolverDnHandle_t,
    strategy: Out<'_, cudaEmulationStrategy_t>,
) -> Result {
    strategy.write(handle::get(handle)?.state().emulation.strategy);
    Ok(())
}

/// Any mask is taken: the manual has no answer for one that is none.
pub fn cusolverDnSetEmulationSpecialValuesSupport(
    handle: cusolverDnHandle_t,
    mask: cudaEmulationSpecialValuesSupport_t,
) -> Result {
    handle::get(handle)?.change(|state| state.emulation.special_values = mask);
    Ok(())
}

pub fn cusolverDnGetEmulationSpecialValuesSupport(
    handle: cusolverDnHandle_t,
    mask: Out<'_, cudaEmulationSpecialValuesSupport_t>,
) -> Result {
    mask.write(handle::get(handle)?.state().emulation.special_values);
    Ok(())
}

pub fn cusolverDnSetFixedPointEmulationMantissaControl(
    handle: cusolverDnHandle_t,
    control: cudaEmulationMantissaControl_t,
) -> Result {
    let context = handle::get(handle)?;
    require(
        control <= cudaEmulationMantissaControl_t::CUDA_EMULATION_MANTISSA_CONTROL_FIXED,
        "there is no such control of a mantissa's bits",
    )?;
    context.change(|state| state.emulation.mantissa_control = control);
    Ok(())
}

pub fn cusolverDnGetFixedPointEmulationMantissaControl(
    handle: cusolverDnHandle_t,
    control: Out<'_, cudaEmulationMantissaControl_t>,
) -> Result {
    control.write(handle::get(handle)?.state().emulation.mantissa_control);
    Ok(())
}

/// 0 is the library's own choice.
pub fn cusolverDnSetFixedPointEmulationMaxMantissaBitCount(
    handle: cusolverDnHandle_t,
    mantissaBitCount: c_int,
) -> Result {
    let context = handle::get(handle)?;
    require(mantissaBitCount >= 0, "a mantissa of less than no bits")?;
    context.change(|state| state.emulation.max_mantissa_bits = mantissaBitCount);
    Ok(())
}

pub fn cusolverDnGetFixedPointEmulationMaxMantissaBitCount(
    handle: cusolverDnHandle_t,
    mantissaBitCount: Out<'_, c_int>,
) -> Result {
    mantissaBitCount.write(handle::get(handle)?.state().emulation.max_mantissa_bits);
    Ok(())
}

/// Together with a fixed number of bits one that is not 0 is refused by what computes while `double` is emulated, not here.
pub fn cusolverDnSetFixedPointEmulationMantissaBitOffset(
    handle: cusolverDnHandle_t,
    mantissaBitOffset: c_int,
) -> Result {
    handle::get(handle)?.change(|state| state.emulation.mantissa_bit_offset = mantissaBitOffset);
    Ok(())
}

pub fn cusolverDnGetFixedPointEmulationMantissaBitOffset(
    handle: cusolverDnHandle_t,
    mantissaBitOffset: Out<'_, c_int>,
) -> Result {
    mantissaBitOffset.write(handle::get(handle)?.state().emulation.mantissa_bit_offset);
    Ok(())
}
