//! Where a handle's work is done, for a library that computes on the CPU device alone so far.

use config::LibraryChoice;
use cuda_abi::{CUcontext, CUgraph, CUstream};

use crate::engine::{self, Engine};
use crate::{Addresses, Error, Result, driver, graph, stream};

/// The device that a handle was made for.
pub struct Place {
    context: CUcontext,
    engine: Engine,
    /// What is not supported where the device is a GPU.
    elsewhere: &'static str,
}

// SAFETY: contexts are the driver's numbers, good on every thread.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// The calling thread's device.
    pub fn of_current_device(choices: &[LibraryChoice], elsewhere: &'static str) -> Result<Place> {
        let (context, engine) = engine::of_new_object(choices)?;
        Ok(Place { context, engine, elsewhere })
    }

    /// Whether it is an AMD GPU; the calling thread is in its context then.
    pub fn enter_hip(&self) -> Result<bool> {
        match self.engine {
            Engine::Cpu => Ok(false),
            Engine::Hip => driver::context(Some(self.context)).map(|_| true),
        }
    }

    /// What computes asks this first.
    pub fn can_compute(&self) -> Result {
        match self.engine {
            Engine::Cpu => Ok(()),
            Engine::Hip => Err(Error::NotSupported(self.elsewhere)),
        }
    }

    /// Runs the work when the stream has come to it.
    pub fn enqueue<A: Addresses + 'static>(
        &self,
        stream: CUstream,
        at: A,
        work: impl Fn(A) + Send + Sync + 'static,
    ) -> Result {
        self.enter()?;
        stream::enqueue(stream, at, work)
    }

    /// Puts the work into a graph that the program has made, as a node behind no other.
    pub fn add_to_graph<A: Addresses + 'static>(
        &self,
        graph: CUgraph,
        at: A,
        work: impl Fn(A) + Send + Sync + 'static,
    ) -> Result {
        self.enter()?;
        graph::fill(graph, |stream| stream::enqueue(stream, at, work))
    }

    /// Waits for a result that goes to the host, as a copy to its memory does; in a graph it is there when the graph has run.
    pub fn deliver(&self, stream: CUstream) -> Result {
        if stream::is_capturing(stream)? { Ok(()) } else { self.synchronize(stream) }
    }

    /// Waits for what the stream has to do. A call that tells the host what it found cannot be captured.
    pub fn synchronize(&self, stream: CUstream) -> Result {
        self.enter()?;
        stream::synchronize(stream)
    }

    fn enter(&self) -> Result {
        self.can_compute()?;
        driver::context(Some(self.context)).map(|_| ())
    }
}
