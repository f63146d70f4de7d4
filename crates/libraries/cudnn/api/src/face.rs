//! Which major's name was called: statuses, versions and a few rules are its own.

use std::cell::Cell;

use crate::types::cudnnStatus_t;
use crate::{Error, Result, error};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    Eight,
    Nine,
}

thread_local! {
    static FACE: Cell<Face> = const { Cell::new(Face::Nine) };
}

/// That of the call that this thread is in.
pub fn current() -> Face {
    FACE.get()
}

fn choose(major: u32) {
    FACE.set(if major == 8 { Face::Eight } else { Face::Nine });
}

/// Runs one call's body and gives its answer in the major's terms.
pub fn entry(major: u32, name: &'static str, body: impl FnMut() -> Result) -> cudnnStatus_t {
    choose(major);
    error::border::entry(name, body)
}

/// As [`entry`], for a body that gives the C value itself.
pub fn entry_value<T>(major: u32, name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
    choose(major);
    error::border::entry_value(name, otherwise, body)
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(major: u32, name: &'static str) -> cudnnStatus_t {
    entry(major, name, || Err(Error::NotSupported(border::NO_BODY)))
}

impl Face {
    /// Major, minor, patch: of the headers that its names are of.
    pub fn release(self) -> [i32; 3] {
        match self {
            Face::Eight => [8, 9, 7],
            Face::Nine => [9, 27, 0],
        }
    }

    pub fn version(self) -> usize {
        let [major, minor, patch] = self.release().map(|number| number as usize);
        match self {
            Face::Eight => 1000 * major + 100 * minor + patch,
            Face::Nine => 10000 * major + 100 * minor + patch,
        }
    }
}
