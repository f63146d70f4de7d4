//! `nvJitLinkResult`, whose finer codes came with CUDA 13.

use core::fmt;

/// What a call answers when it cannot do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    UnrecognizedOption,
    MissingArch,
    InvalidInput,
    PtxCompile,
    NvvmCompile,
    Internal,
    NullInput,
    IncompatibleOptions,
    IncorrectInputType,
}

/// The header that the caller was compiled with, told by the name that it calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 12, and names without a release.
    V12,
    V13,
}

pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// An error and the line for the link's log.
pub type Failure = (Error, String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::UnrecognizedOption => "an option is not one of nvJitLink's",
            Error::MissingArch => "no option says for which architecture",
            Error::InvalidInput => "invalid input",
            Error::PtxCompile => "the PTX cannot be compiled",
            Error::NvvmCompile => "there is LTO IR, which is not compiled here",
            Error::Internal => "internal error",
            Error::NullInput => "a pointer is NULL",
            Error::IncompatibleOptions => "options contradict each other",
            Error::IncorrectInputType => "the input is not of the type that was said",
        })
    }
}

impl Error {
    pub fn code(self, release: Release) -> i32 {
        match (self, release) {
            (Error::UnrecognizedOption, _) => 1,
            (Error::MissingArch, _) => 2,
            (Error::PtxCompile, _) => 4,
            (Error::NvvmCompile, _) => 5,
            (Error::Internal, _) => 6,
            (Error::NullInput, Release::V13) => 10,
            (Error::IncompatibleOptions, Release::V13) => 11,
            (Error::IncorrectInputType, Release::V13) => 12,
            // 12's header gives the new names this value.
            (_, _) => 3,
        }
    }
}
