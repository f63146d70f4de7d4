//! Error handling: each host thread has its own last error.

use core::ffi::c_char;

use cuda_abi::runtime::cudaError_t;

use crate::error_names;
use crate::last_error::{last_error, set_last_error};

/// Returns the last error of this thread and forgets it, unless it is one that stays until the device is reset.
pub fn cudaGetLastError() -> cudaError_t {
    let error = last_error();
    if !is_sticky(error) {
        set_last_error(cudaError_t::cudaSuccess);
    }
    error
}

/// Returns the last error of this thread without forgetting it.
pub fn cudaPeekAtLastError() -> cudaError_t {
    last_error()
}

pub fn cudaGetErrorName(error: cudaError_t) -> *const c_char {
    error_names::find(error.0).map_or(error_names::UNRECOGNIZED, |(name, _)| name).as_ptr()
}

pub fn cudaGetErrorString(error: cudaError_t) -> *const c_char {
    error_names::find(error.0).map_or(error_names::UNRECOGNIZED, |(_, sentence)| sentence).as_ptr()
}

/// Errors after which the context is unusable: CUDA keeps answering them.
fn is_sticky(error: cudaError_t) -> bool {
    matches!(
        error,
        cudaError_t::cudaErrorECCUncorrectable
            | cudaError_t::cudaErrorNvlinkUncorrectable
            | cudaError_t::cudaErrorContained
            | cudaError_t::cudaErrorIllegalAddress
            | cudaError_t::cudaErrorLaunchTimeout
            | cudaError_t::cudaErrorAssert
            | cudaError_t::cudaErrorHardwareStackError
            | cudaError_t::cudaErrorIllegalInstruction
            | cudaError_t::cudaErrorMisalignedAddress
            | cudaError_t::cudaErrorInvalidAddressSpace
            | cudaError_t::cudaErrorInvalidPc
            | cudaError_t::cudaErrorLaunchFailure
            | cudaError_t::cudaErrorTensorMemoryLeak
            | cudaError_t::cudaErrorExternalDevice
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, entry};

    #[test]
    fn a_last_error_is_read_once_and_peeked_often() {
        entry("test", || Err(Error::InvalidSymbol));
        assert_eq!(cudaPeekAtLastError(), cudaError_t::cudaErrorInvalidSymbol);
        assert_eq!(cudaGetLastError(), cudaError_t::cudaErrorInvalidSymbol);
        assert_eq!(cudaGetLastError(), cudaError_t::cudaSuccess);
    }

    #[test]
    fn a_success_does_not_hide_an_earlier_error() {
        entry("test", || Err(Error::InvalidSymbol));
        entry("test", || Ok(()));
        assert_eq!(cudaGetLastError(), cudaError_t::cudaErrorInvalidSymbol);
    }

    #[test]
    fn a_broken_context_keeps_its_error() {
        entry("test", || Err(Error::Driver(cuda_abi::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)));
        assert_eq!(cudaGetLastError(), cudaError_t::cudaErrorIllegalAddress);
        assert_eq!(cudaGetLastError(), cudaError_t::cudaErrorIllegalAddress);
        set_last_error(cudaError_t::cudaSuccess);
    }

    #[test]
    fn a_panic_becomes_unknown() {
        assert_eq!(entry("test", || panic!("on purpose")), cudaError_t::cudaErrorUnknown);
        set_last_error(cudaError_t::cudaSuccess);
    }
}
