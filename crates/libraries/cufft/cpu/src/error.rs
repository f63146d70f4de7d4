//! Why a plan or a transform is refused; the C API has a `cufftResult` for each.

use thiserror::Error;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// `CUFFT_INVALID_SIZE`: a length below 1, or more elements than can be addressed.
    #[error("{0} is not a size that can be transformed")]
    InvalidSize(&'static str),
    /// `CUFFT_INVALID_VALUE`: an argument that has no meaning.
    #[error("{0} has no such value")]
    InvalidValue(&'static str),
    /// `CUFFT_INVALID_TYPE`: types that are none of the transforms'.
    #[error("the types of input, output and execution do not go together")]
    InvalidType,
    /// `CUFFT_ALLOC_FAILED`: there is no memory for tables or for a work area.
    #[error("no memory for {0} bytes")]
    AllocFailed(usize),
    /// `CUFFT_NOT_SUPPORTED`: it has a meaning that is not here.
    #[error("{0} is not supported")]
    NotSupported(&'static str),
}
