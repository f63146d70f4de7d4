//! The first error among threads that work on one thing.

use parking_lot::Mutex;

use crate::error::{Error, Result};

#[derive(Default)]
pub(crate) struct Status(Mutex<Option<Error>>);

impl Status {
    pub(crate) fn note(&self, result: Result<()>) {
        if let Err(error) = result {
            self.0.lock().get_or_insert(error);
        }
    }

    pub(crate) fn into_result(self) -> Result<()> {
        self.0.into_inner().map_or(Ok(()), Err)
    }
}
