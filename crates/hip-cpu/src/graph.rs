//! Graphs that kernels launch: what was uploaded for the device, and the environments that launches of graphs run in.
//!
//! A graph that the host launches is a part of a stream, between [`begin`] and [`end`]. What its kernels launch runs beside it on
//! threads of its own, and the stream goes on when all of it has ended: each launch has an [`Environment`], which is complete when
//! its own steps and those of all graphs fired from it are done; then come the graphs that it gave to its tail, one after the other.
//! Source: CUDA Programming Guide, "Device Graph Launch".
//!
//! Lock order: an environment's `state` → `GRAPHS`. No lock is held while steps run.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::LazyLock;

use compiler::device_runtime::graphs::{MOST_FIRED, MOST_IN_TAIL, Mode};
use parking_lot::{Condvar, Mutex};

use crate::device;
use crate::error::Result;
use crate::runner;
use crate::stream::{Op, Stream};
use hip_sys::hipErrorNotSupported;

/// What a graph does, as it was uploaded.
pub struct Program {
    steps: Vec<Op>,
    context: usize,
}

/// A graph by its handle, as it is in the device.
struct Known {
    program: Arc<Program>,
    /// Launches from the device that have not ended. A graph that has one is launched by nobody but itself.
    n_launches: u32,
}

static GRAPHS: LazyLock<Mutex<HashMap<u64, Known>>> = LazyLock::new(Mutex::default);

/// Why a kernel's launch of a graph is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is no graph that was instantiated for the device and uploaded")]
    Unknown,
    #[error("an earlier launch of it from the device has not ended")]
    Running,
    #[error("the launching graph has fired {MOST_FIRED} graphs already")]
    TooManyFired,
    #[error("{MOST_IN_TAIL} graphs wait in the launching graph's tail already")]
    TooManyTails,
    #[error("there is no thread for it")]
    NoThread,
}

/// A launch that is under way.
struct Begun {
    graph: u64,
    program: Arc<Program>,
}

#[derive(Default)]
struct State {
    /// Graphs fired in all, and those that have not ended.
    n_fired: u32,
    n_running: u32,
    tail: VecDeque<Begun>,
    /// The graph itself waits in its tail.
    is_own_tail: bool,
}

/// What one launch of a graph encloses.
pub struct Environment {
    /// The handle of the running graph, where that is one for the device; else 0.
    pub graph: u64,
    /// Where the launch was made; `None`: all of what a stream does for one launch by the host.
    outer: Option<Arc<Environment>>,
    context: usize,
    state: Mutex<State>,
    done: Condvar,
}

impl Environment {
    fn new(graph: u64, outer: Option<Arc<Environment>>, context: usize) -> Arc<Environment> {
        Arc::new(Environment { graph, outer, context, state: Mutex::default(), done: Condvar::new() })
    }

    /// A kernel that runs in this environment launches a graph.
    pub fn launch(self: &Arc<Environment>, graph: u64, mode: Mode) -> std::result::Result<(), Refusal> {
        // CUDA: it launches itself into its tail, or not at all.
        if graph != 0 && graph == self.graph && mode != Mode::Tail {
            return Err(Refusal::Running);
        }
        match mode {
            Mode::FireAndForget => self.fire(graph),
            Mode::Sibling => self.outer.as_ref().unwrap_or(self).fire(graph),
            Mode::Tail => self.put_last(graph),
        }
    }

    fn fire(self: &Arc<Environment>, graph: u64) -> std::result::Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.n_fired == MOST_FIRED {
            return Err(Refusal::TooManyFired);
        }
        let begun = Begun::new(graph, false)?;
        state.n_fired += 1;
        state.n_running += 1;
        drop(state);
        let environment = self.clone();
        let fired = runner::run_beside(move || {
            run_in_line(VecDeque::from([begun]), &environment);
            environment.one_has_ended();
        });
        fired.map_err(|runner::NoThread| {
            self.state.lock().n_fired -= 1;
            self.one_has_ended();
            Refusal::NoThread
        })
    }

    fn put_last(&self, graph: u64) -> std::result::Result<(), Refusal> {
        let mut state = self.state.lock();
        if state.tail.len() == MOST_IN_TAIL as usize {
            return Err(Refusal::TooManyTails);
        }
        // CUDA: a graph may launch itself again, once at a time.
        let is_own = graph == self.graph && !state.is_own_tail;
        state.tail.push_back(Begun::new(graph, is_own)?);
        state.is_own_tail |= is_own;
        Ok(())
    }

    fn one_has_ended(&self) {
        self.state.lock().n_running -= 1;
        self.done.notify_all();
    }

    /// Waits for all that was fired; what comes then.
    fn end(&self) -> VecDeque<Begun> {
        let mut state = self.state.lock();
        while state.n_running > 0 {
            self.done.wait(&mut state);
        }
        std::mem::take(&mut state.tail)
    }
}

impl Begun {
    /// A launch by a kernel. `is_own`: by a kernel of the graph itself, which runs.
    fn new(graph: u64, is_own: bool) -> std::result::Result<Begun, Refusal> {
        let mut graphs = GRAPHS.lock();
        let known = graphs.get_mut(&graph).ok_or(Refusal::Unknown)?;
        if known.n_launches > 0 && !is_own {
            return Err(Refusal::Running);
        }
        known.n_launches += 1;
        Ok(Begun { graph, program: known.program.clone() })
    }
}

impl Drop for Begun {
    /// It has ended.
    fn drop(&mut self) {
        if let Some(known) = GRAPHS.lock().get_mut(&self.graph) {
            known.n_launches = known.n_launches.saturating_sub(1);
        }
    }
}

/// Runs launches one after the other, all in one environment: what a graph leaves in its tail comes before what was in line already.
fn run_in_line(mut line: VecDeque<Begun>, outer: &Arc<Environment>) {
    while let Some(begun) = line.pop_front() {
        let environment = Environment::new(begun.graph, Some(outer.clone()), outer.context);
        begun.program.run(&environment);
        let tail = environment.end();
        drop(begun);
        for next in tail.into_iter().rev() {
            line.push_front(next);
        }
    }
}

impl Program {
    fn run(&self, environment: &Arc<Environment>) {
        let before = device::enter(self.context);
        for step in &self.steps {
            // CUDA: after a fault nothing more runs on the device.
            if device::healthy().is_err() {
                break;
            }
            match step {
                Op::Launch(launched) => launched.execute(Some(environment)),
                data => data.move_bytes(),
            }
        }
        device::enter(before);
    }
}

/// At its turn in a stream the steps become what launches of the graph from the device run.
pub fn upload(graph: u64, steps: Vec<Op>, stream: &Arc<Stream>) -> Result {
    if !steps.iter().all(Op::can_be_repeated) {
        return Err(hipErrorNotSupported);
    }
    stream.enqueue(Op::Upload(graph, Arc::new(Program { steps, context: device::context() })));
    Ok(())
}

/// The upload, when the stream gets to it.
pub fn keep(graph: u64, program: Arc<Program>) {
    let mut graphs = GRAPHS.lock();
    let n_launches = graphs.get(&graph).map_or(0, |known| known.n_launches);
    let before = graphs.insert(graph, Known { program, n_launches });
    drop(graphs);
    drop(before);
}

/// The graph is destroyed. What was launched of it ends as it would.
pub fn forget(graph: u64) {
    let before = GRAPHS.lock().remove(&graph);
    drop(before);
}

/// A launch by the host begins in a stream of this context. `graph` is 0 where that is none for the device.
pub fn begin(graph: u64, context: usize) -> Arc<Environment> {
    let stream = Environment::new(0, None, context);
    Environment::new(graph, Some(stream), context)
}

/// Its own steps are done: runs what is in its tail, and waits for all that was launched.
pub fn end(environment: &Environment) {
    let Some(stream) = &environment.outer else { return };
    run_in_line(environment.end(), stream);
    stream.end();
}
