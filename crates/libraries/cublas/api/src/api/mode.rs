//! Streams, workspaces and modes of a handle. Source: cuBLAS manual, "cuBLAS Helper Function Reference".

use core::ffi::{c_int, c_void};

use border::Out;

use crate::handle;
use crate::{
    Result, cublasAtomicsMode_t, cublasHandle_t, cublasMath_t, cublasPointerMode_t, cudaStream_t, require,
};

/// The manual: the workspace goes back to the library's own.
pub fn cublasSetStream_v2(handle: cublasHandle_t, streamId: cudaStream_t) -> Result {
    handle::get(handle)?.set(|state| {
        state.stream = streamId;
        state.workspace = (0, 0);
    });
    Ok(())
}

pub fn cublasGetStream_v2(handle: cublasHandle_t, streamId: Out<'_, cudaStream_t>) -> Result {
    streamId.write(handle::get(handle)?.state().stream);
    Ok(())
}

/// Kept and used by nothing: no routine of the CPU's needs a workspace.
pub fn cublasSetWorkspace_v2(
    handle: cublasHandle_t,
    workspace: *mut c_void,
    workspaceSizeInBytes: usize,
) -> Result {
    let handle = handle::get(handle)?;
    require(workspace.addr().is_multiple_of(256), "a workspace is aligned to 256 bytes")?;
    handle.set(|state| state.workspace = (workspace.addr(), workspaceSizeInBytes));
    Ok(())
}

pub fn cublasSetPointerMode_v2(handle: cublasHandle_t, mode: cublasPointerMode_t) -> Result {
    let handle = handle::get(handle)?;
    require(mode.0 <= cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE.0, "there is no such pointer mode")?;
    handle.set(|state| state.pointer_mode = mode);
    Ok(())
}

pub fn cublasGetPointerMode_v2(handle: cublasHandle_t, mode: Out<'_, cublasPointerMode_t>) -> Result {
    mode.write(handle::get(handle)?.state().pointer_mode);
    Ok(())
}

/// No routine of the CPU's sums in an order that depends on time, so the mode changes nothing there.
pub fn cublasSetAtomicsMode(handle: cublasHandle_t, mode: cublasAtomicsMode_t) -> Result {
    let handle = handle::get(handle)?;
    require(mode.0 <= cublasAtomicsMode_t::CUBLAS_ATOMICS_ALLOWED.0, "there is no such atomics mode")?;
    handle.set(|state| state.atomics_mode = mode);
    Ok(())
}

pub fn cublasGetAtomicsMode(handle: cublasHandle_t, mode: Out<'_, cublasAtomicsMode_t>) -> Result {
    mode.write(handle::get(handle)?.state().atomics_mode);
    Ok(())
}

/// Modes allow less precision than the type has; the CPU always computes with all of it.
pub fn cublasSetMathMode(handle: cublasHandle_t, mode: cublasMath_t) -> Result {
    let handle = handle::get(handle)?;
    let flags = cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.0;
    let known = [
        cublasMath_t::CUBLAS_DEFAULT_MATH,
        cublasMath_t::CUBLAS_TENSOR_OP_MATH,
        cublasMath_t::CUBLAS_PEDANTIC_MATH,
        cublasMath_t::CUBLAS_TF32_TENSOR_OP_MATH,
        cublasMath_t::CUBLAS_FP32_EMULATED_BF16X9_MATH,
        cublasMath_t::CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH,
    ];
    require(known.contains(&cublasMath_t(mode.0 & !flags)), "there is no such math mode")?;
    handle.set(|state| state.math_mode = mode);
    Ok(())
}

pub fn cublasGetMathMode(handle: cublasHandle_t, mode: Out<'_, cublasMath_t>) -> Result {
    mode.write(handle::get(handle)?.state().math_mode);
    Ok(())
}

/// A hint to a GPU's scheduler.
pub fn cublasSetSmCountTarget(handle: cublasHandle_t, smCountTarget: c_int) -> Result {
    let handle = handle::get(handle)?;
    require(smCountTarget >= 0, "smCountTarget is negative")?;
    handle.set(|state| state.sm_count_target = smCountTarget);
    Ok(())
}

pub fn cublasGetSmCountTarget(handle: cublasHandle_t, smCountTarget: Out<'_, c_int>) -> Result {
    smCountTarget.write(handle::get(handle)?.state().sm_count_target);
    Ok(())
}
