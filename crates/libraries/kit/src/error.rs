//! Why something fails that all libraries have; each gives it its own status.

use cuda_abi::CUresult;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the handle is not one that the library made")]
    Handle,
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("{call} answered {code:?}")]
    Driver { call: &'static str, code: CUresult },
}
