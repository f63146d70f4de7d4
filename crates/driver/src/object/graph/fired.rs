//! Graphs that kernels on AMD GPUs launch: run by the thread that has waited for the kernel, in the stream of the launch.
//!
//! HIP differs: its kernels launch no graphs. What a kernel fires runs when the kernel has ended and before its graph goes on; what it
//! puts into its graph's tail comes behind the graph, each with all that comes of it. That is an order that CUDA allows: what is fired
//! has none with the rest of its graph.
//! Source: CUDA Programming Guide, "Device Graph Launch".

use core::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use compiler::device_runtime::graphs::Mode;
use cuda_abi::{CUgraphExec, CUstream};

use super::exec::{Exec, Uploaded};
use crate::Result;
use crate::handle::Handle;
use crate::object::Context;
use crate::object::gfx::graphs;

/// Graphs that run inside of each other, each fired by a kernel of the one before. This thread's stack bounds them.
const MOST_INSIDE: u32 = 64;

/// A launch that is under way.
struct Begun {
    graph: u64,
    context: &'static Context,
    what: Uploaded,
}

impl Drop for Begun {
    /// It has ended.
    fn drop(&mut self) {
        graphs::has_ended(self.context, self.graph);
    }
}

/// What one launch of a graph encloses.
pub struct Environment {
    /// The handle of the running graph, where that is one for the device; else 0.
    graph: u64,
    /// Where the launch was made; `None`: all of what a stream does for one launch by the host.
    outer: Option<Rc<Environment>>,
    stream: CUstream,
    context: &'static Context,
    n_fired: Cell<u32>,
    tail: RefCell<VecDeque<Begun>>,
    is_own_tail: Cell<bool>,
}

thread_local! {
    /// That this thread's launches are part of.
    static CURRENT: RefCell<Option<Rc<Environment>>> = const { RefCell::new(None) };
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// What a kernel is told of the graph that it is part of, and writes.
#[derive(Clone, Copy, Default)]
pub struct Told {
    pub is_in_graph: bool,
    pub graph: u64,
    pub is_own_tail: bool,
    /// By [`Mode`].
    pub n_graphs: [u32; 3],
}

fn current() -> Option<Rc<Environment>> {
    CURRENT.with_borrow(Clone::clone)
}

/// The graph for the device that this thread's launches are part of, or 0.
pub fn current_graph() -> u64 {
    CURRENT.with_borrow(|current| current.as_ref().map_or(0, |environment| environment.graph))
}

/// What a kernel is told that this thread launches.
pub fn told() -> Told {
    let Some(environment) = current() else { return Told::default() };
    let n_tail = u32::try_from(environment.tail.borrow().len()).unwrap_or(u32::MAX);
    let mut n_graphs = [n_tail, environment.n_fired.get(), environment.beside().n_fired.get()];
    if INSIDE.get() >= MOST_INSIDE {
        n_graphs[1..].fill(Mode::FireAndForget.most());
    }
    Told { is_in_graph: true, graph: environment.graph, is_own_tail: environment.is_own_tail.get(), n_graphs }
}

/// What it has made of that.
pub fn has_counted(told: Told) {
    let Some(environment) = current() else { return };
    environment.is_own_tail.set(told.is_own_tail);
    if INSIDE.get() < MOST_INSIDE {
        environment.n_fired.set(told.n_graphs[1].min(Mode::FireAndForget.most()));
        if let Some(outer) = &environment.outer {
            outer.n_fired.set(told.n_graphs[2].min(Mode::Sibling.most()));
        }
    }
}

/// A kernel of this thread's launches a graph, which was counted as launched.
pub fn launch(graph: u64, mode: Mode) -> Result {
    let Some(environment) = current() else { return Ok(()) };
    // One that was destroyed meanwhile does nothing any more.
    let Some((what, context)) = Exec::uploaded(CUgraphExec::from_bits(graph)) else { return Ok(()) };
    let begun = Begun { graph, context, what };
    match mode {
        Mode::Tail => environment.tail.borrow_mut().push_back(begun),
        Mode::FireAndForget => return run_in_line(VecDeque::from([begun]), &environment),
        Mode::Sibling => return run_in_line(VecDeque::from([begun]), environment.beside()),
    }
    Ok(())
}

/// Runs launches one after the other, all in one environment: what a graph leaves in its tail comes before what was in line already.
fn run_in_line(mut line: VecDeque<Begun>, outer: &Rc<Environment>) -> Result {
    INSIDE.set(INSIDE.get() + 1);
    let mut answer = Ok(());
    while let Some(begun) = line.pop_front() {
        let environment = Environment::new(begun.graph, Some(Rc::clone(outer)), outer.stream, outer.context);
        let before = CURRENT.replace(Some(Rc::clone(&environment)));
        answer = begun.what.run(outer.stream);
        CURRENT.set(before);
        let tail = environment.tail.take();
        drop(begun);
        if answer.is_err() {
            break;
        }
        tail.into_iter().rev().for_each(|next| line.push_front(next));
    }
    INSIDE.set(INSIDE.get() - 1);
    answer
}

impl Environment {
    fn new(
        graph: u64,
        outer: Option<Rc<Environment>>,
        stream: CUstream,
        context: &'static Context,
    ) -> Rc<Environment> {
        let (n_fired, tail, is_own_tail) = (Cell::new(0), RefCell::default(), Cell::new(false));
        Rc::new(Environment { graph, outer, stream, context, n_fired, tail, is_own_tail })
    }

    fn beside(self: &Rc<Environment>) -> &Rc<Environment> {
        self.outer.as_ref().unwrap_or(self)
    }
}

/// A launch by the host: what this thread launches until it ends is part of it.
pub struct Host {
    environment: Rc<Environment>,
    before: Option<Rc<Environment>>,
}

impl Host {
    pub fn begin(graph: u64, stream: CUstream, context: &'static Context) -> Host {
        let outer = Environment::new(0, None, stream, context);
        let environment = Environment::new(graph, Some(outer), stream, context);
        let before = CURRENT.replace(Some(Rc::clone(&environment)));
        Host { environment, before }
    }
}

impl Drop for Host {
    /// Its own steps are queued: what is in its tail comes.
    fn drop(&mut self) {
        let environment = Rc::clone(&self.environment);
        CURRENT.set(self.before.take());
        let ran = run_in_line(environment.tail.take(), environment.beside());
        if let Err(error) = ran {
            environment.context.fail(error);
        }
    }
}
