//! Where a handle's work is done, for a library whose numbers are our code for the CPU: on the CPU device in its memory, on an AMD GPU
//! on copies of what the library says that its work follows.

use config::LibraryChoice;
use cuda_abi::{CUcontext, CUgraph, CUstream};

use crate::engine::{self, Engine};
use crate::{Addresses, Error, Result, driver, far, graph, stream};

/// The device that a handle was made for.
pub struct Place {
    context: CUcontext,
    engine: Engine,
}

// SAFETY: contexts are the driver's numbers, good on every thread.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// The calling thread's device, for a library that names all memory that its work follows ([`far`]).
    pub fn on_copies(choices: &[LibraryChoice]) -> Result<Place> {
        let (context, engine) = engine::of_new_object(choices)?;
        Ok(Place { context, engine })
    }

    /// Whether it is an AMD GPU; the calling thread is in its context then.
    pub fn enter_hip(&self) -> Result<bool> {
        match self.engine {
            Engine::Cpu => Ok(false),
            Engine::Hip => driver::context(Some(self.context)).map(|_| true),
        }
    }

    /// Whether kernels of the library's own compute: on an AMD GPU, unless the variable asks for the host's code, and on the CPU device
    /// where it asks for them. The calling thread is in its context then.
    pub fn enter_kernels(&self, choices: &[LibraryChoice]) -> Result<bool> {
        let on_host = [LibraryChoice::Own, LibraryChoice::Copies];
        let on_gpu = self.engine == Engine::Hip && !on_host.iter().any(|choice| choices.contains(choice));
        let is_there = on_gpu || choices.contains(&LibraryChoice::Kernels);
        if is_there {
            driver::context(Some(self.context))?;
        }
        Ok(is_there)
    }

    /// What computes asks this first, before it looks at its arguments: what it names from here on is copied.
    pub fn can_compute(&self) -> Result {
        if self.engine == Engine::Hip {
            far::begin();
        }
        Ok(())
    }

    /// Runs the work when the stream has come to it; where it works on copies, that is now, and it is done when this comes back.
    pub fn enqueue<A: Addresses + 'static>(
        &self,
        stream: CUstream,
        at: A,
        work: impl Fn(A) + Send + Sync + 'static,
    ) -> Result {
        self.enter()?;
        match self.engine {
            Engine::Cpu => stream::enqueue(stream, at, work),
            Engine::Hip => {
                let at = at.near()?;
                far::run(stream, || work(at))
            }
        }
    }

    /// Waits for the stream and does the work on this thread: what it answers the call has to know, so that it cannot be captured.
    pub fn now<A: Addresses, R>(&self, stream: CUstream, at: A, work: impl FnOnce(A) -> R) -> Result<R> {
        self.synchronize(stream)?;
        match self.engine {
            Engine::Cpu => Ok(work(at)),
            Engine::Hip => {
                let at = at.near()?;
                far::run(stream, || work(at))
            }
        }
    }

    /// Puts the work into a graph that the program has made, as a node behind no other.
    pub fn add_to_graph<A: Addresses + 'static>(
        &self,
        graph: CUgraph,
        at: A,
        work: impl Fn(A) + Send + Sync + 'static,
    ) -> Result {
        self.enter()?;
        if self.engine == Engine::Hip {
            return Err(Error::NotSupported("our own code on copies of an AMD GPU's memory, in a graph"));
        }
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
