//! Why a call fails, cuDNN's number for it, and the border that says so.

use core::ffi::c_int;
use std::cell::RefCell;

use ::border::BadPointer;

use crate::face::{self, Face};
use crate::types::cudnnStatus_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the handle is not one that was created")]
    NotInitialized,
    #[error("{0}")]
    BadParam(&'static str),
    /// Of the graph API, whose statuses say more in 9.
    #[error("{1}")]
    Bad(cudnnStatus_t, &'static str),
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    #[error("{call} answers {code}")]
    Hip { call: &'static str, code: c_int },
    #[error("{0}")]
    Kit(kit::Error),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("{0} panicked")]
    Internal(&'static str),
}

impl Error {
    /// In the terms of the major that was called.
    pub fn code(self) -> cudnnStatus_t {
        let status = match self {
            Error::NotInitialized | Error::NoDevice(_) => cudnnStatus_t::CUDNN_STATUS_NOT_INITIALIZED,
            Error::BadParam(_) => cudnnStatus_t::CUDNN_STATUS_BAD_PARAM,
            Error::Bad(status, _) => status,
            Error::Hip { code: crate::hip::convert::ALLOC_FAILED, .. } => {
                cudnnStatus_t::CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
            }
            Error::Kit(_) | Error::Hip { .. } => cudnnStatus_t::CUDNN_STATUS_EXECUTION_FAILED,
            Error::NotSupported(_) => cudnnStatus_t::CUDNN_STATUS_NOT_SUPPORTED,
            Error::Internal(_) => cudnnStatus_t::CUDNN_STATUS_INTERNAL_ERROR,
        };
        match face::current() {
            Face::Eight => eights(status),
            Face::Nine => status,
        }
    }
}

/// 8's number: 9 has the same ones in its thousands, and finer ones.
fn eights(status: cudnnStatus_t) -> cudnnStatus_t {
    cudnnStatus_t(match status.0 {
        0 => 0,
        1002 | 1003 => 14,
        1005 => 10,
        1006 => 12,
        1007 => 13,
        1000..2000 => 1,
        2000..3000 => 3,
        3007 => 6,
        3008 => 11,
        3000..4000 => 9,
        4003 | 4004 => 2,
        4006 => 7,
        4000..5000 => 4,
        _ => 8,
    })
}

impl From<kit::Error> for Error {
    fn from(error: kit::Error) -> Self {
        match error {
            // Of descriptors: that of a library is looked for by `handle::get`.
            kit::Error::Handle => Error::BadParam("a descriptor is not one that was created"),
            kit::Error::NoDevice(what) => Error::NoDevice(what),
            kit::Error::NotSupported(what) => Error::NotSupported(what),
            kit::Error::Driver { .. } => Error::Kit(error),
        }
    }
}

impl From<BadPointer> for Error {
    fn from(BadPointer(name): BadPointer) -> Self {
        Error::BadParam(name)
    }
}

impl trace::Answer for cudnnStatus_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

pub mod border {
    //! No panic crosses it, every call has a span with its C name, and what is not supported logs itself once.

    use super::{Error, tell};
    use crate::types::cudnnStatus_t;

    kit::border! {
        target: "cudaway::dnn",
        span: "dnn",
        variable: dnn,
        status: cudnnStatus_t,
        success: cudnnStatus_t::CUDNN_STATUS_SUCCESS,
        error: Error,
        failed: tell,
    }
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What the thread's last failed call said, which is gone with that, as in NVIDIA's library.
pub fn take_last() -> String {
    LAST.try_with(RefCell::take).unwrap_or_default()
}

fn tell(name: &'static str, error: &Error) {
    // Behind the thread's end, where a program's destructors still call, nobody asks for it.
    let _ = LAST.try_with(|last| last.replace(format!("{name}: {error}")));
    crate::api::lifecycle::tell_callback(name, error);
}

/// `BAD_PARAM` unless it holds.
pub fn require(holds: bool, what: &'static str) -> Result {
    if holds { Ok(()) } else { Err(Error::BadParam(what)) }
}

/// `NOT_SUPPORTED` unless it holds.
pub fn supports(holds: bool, what: &'static str) -> Result {
    if holds { Ok(()) } else { Err(Error::NotSupported(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::{entry, missing};

    #[test]
    fn a_status_has_the_number_of_the_major_that_was_called() {
        for (error, eight, nine) in [
            (Error::NotInitialized, 1, 1001),
            (Error::BadParam("x"), 3, 2000),
            (Error::Bad(cudnnStatus_t::CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "x"), 3, 2004),
            (Error::NotSupported("x"), 9, 3000),
            (Error::Internal("x"), 4, 4000),
        ] {
            assert_eq!(entry(8, "call", || Err(error)).0, eight);
            assert_eq!(entry(9, "call", || Err(error)).0, nine);
        }
        assert_eq!(entry(8, "call", || panic!("of the test's")).0, 4);
        assert_eq!((missing(8, "call").0, missing(9, "call").0), (9, 3000));
        assert_eq!(take_last(), "call: not supported: it has no body yet");
        assert_eq!(take_last(), "");
    }
}
