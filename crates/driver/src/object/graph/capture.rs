//! Capture: streams that describe their work into a graph instead of doing it, and what is forbidden meanwhile.

use core::ffi::c_void;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::ThreadId;

use cuda_abi::{
    CUevent, CUgraph, CUgraphNode, CUgraphRecaptureCallback, CUgraphRecaptureStatus, CUresult, CUstream,
    CUstreamCaptureMode, CUstreamCaptureStatus,
};
use parking_lot::{Mutex, MutexGuard};

use super::{Dependency, Edge, Graph, Op, Site};
use crate::handle::Handle;
use crate::object::{Context, Shared, Stream};
use crate::{Error, Result};

/// Streams that are being captured and events that were recorded in a capture; 0 nearly always, which is all that other
/// calls look at.
static N_CAPTURING: AtomicUsize = AtomicUsize::new(0);
static N_EVENTS: AtomicUsize = AtomicUsize::new(0);
static CAPTURES: Mutex<Option<Captures>> = Mutex::new(None);

thread_local! {
    static MODE: Cell<CUstreamCaptureMode> =
        const { Cell::new(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// A stream, default streams included: its context's id and its own.
pub type StreamKey = (u64, u64);

#[derive(Default)]
struct Captures {
    of_stream: HashMap<StreamKey, Captured>,
    captures: HashMap<u64, Capture>,
    /// Events recorded in a capture: which one, and behind which nodes. They stay until they are recorded again.
    events: HashMap<u64, (u64, Vec<Dependency>)>,
}

#[derive(Clone, Copy)]
struct Captured {
    id: u64,
    /// The legacy default stream waits for it.
    is_blocking: bool,
}

struct Capture {
    graph: Arc<Graph>,
    origin: StreamKey,
    mode: CUstreamCaptureMode,
    thread: ThreadId,
    is_invalid: bool,
    /// The graph was the program's before.
    is_given: bool,
    /// What the next operation of each stream waits for.
    tails: HashMap<StreamKey, Vec<Dependency>>,
    recapture: Option<Recapture>,
}

/// A capture into a graph that has all its nodes: each must come again.
#[derive(Clone, Copy)]
struct Recapture {
    /// The places of the graph's nodes that were met.
    n_met: usize,
    callback: CUgraphRecaptureCallback,
    data: Shared<*mut c_void>,
}

impl Captures {
    fn of(&mut self, key: StreamKey) -> Option<&mut Capture> {
        self.captures.get_mut(&self.of_stream.get(&key)?.id)
    }

    /// Spoils what the capture has so far.
    fn invalidate(&mut self, wanted: impl Fn(&Capture) -> bool) {
        self.captures.values_mut().filter(|capture| wanted(capture)).for_each(|c| c.is_invalid = true);
    }

    /// The captures that the legacy default stream of a context would have to wait for.
    fn blocking(&self, context_id: u64) -> HashSet<u64> {
        let is_meant = |(key, of): &(&StreamKey, &Captured)| key.0 == context_id && of.is_blocking;
        self.of_stream.iter().filter(is_meant).map(|(_, of)| of.id).collect()
    }

    fn enter(&mut self, key: StreamKey, captured: Captured) {
        self.of_stream.insert(key, captured);
        N_CAPTURING.store(self.of_stream.len(), Ordering::Relaxed);
    }

    fn leave(&mut self, id: u64) {
        self.of_stream.retain(|_, of| of.id != id);
        N_CAPTURING.store(self.of_stream.len(), Ordering::Relaxed);
    }

    fn mark(&mut self, event: CUevent, place: Option<(u64, Vec<Dependency>)>) {
        match place {
            Some(place) => self.events.insert(event.bits(), place),
            None => self.events.remove(&event.bits()),
        };
        N_EVENTS.store(self.events.len(), Ordering::Relaxed);
    }
}

/// The per-thread default stream has one id in all threads, and is another stream in each.
pub fn key(stream: &Stream) -> StreamKey {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static THREAD: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    const PER_THREAD: u64 = 2;
    let id = match stream.id {
        PER_THREAD => u64::MAX - THREAD.with(|number| *number),
        id => id,
    };
    (stream.context.id(), id)
}

fn is_legacy(stream: &Stream) -> bool {
    stream.id == 1
}

/// Created without `CU_STREAM_NON_BLOCKING`; the per-thread default stream is such a one too.
fn is_blocking(stream: &Stream) -> bool {
    !is_legacy(stream) && stream.flags & 1 == 0
}

fn lock() -> MutexGuard<'static, Option<Captures>> {
    CAPTURES.lock()
}

/// Describes the operation instead of running it, if `stream` is being captured.
#[inline]
pub fn captured(stream: CUstream, op: impl FnOnce() -> Result<Arc<Op>>) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let (mut op, mut made) = (Some(op), None);
    record(stream, |_| {
        if let Some(op) = op.take() {
            made = Some(op()?);
        }
        made.clone().ok_or(Error::Unknown)
    })
}

/// As [`captured`], for operations that need to know where they go.
#[inline]
pub fn captured_into(stream: CUstream, op: impl FnMut(&Site) -> Result<Arc<Op>>) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    record(stream, op)
}

#[cold]
fn record(stream: CUstream, mut op: impl FnMut(&Site) -> Result<Arc<Op>>) -> Result<bool> {
    let stream = Stream::from_handle(stream)?;
    let key = key(&stream);
    loop {
        let (graph, tail, again) = {
            let mut all = lock();
            let Some(all) = all.as_mut() else { return Ok(false) };
            match all.of(key) {
                Some(capture) if capture.is_invalid => return Err(Error::StreamCaptureInvalidated),
                Some(capture) => (Arc::clone(&capture.graph), capture.tail(key), capture.recapture),
                None => return check_legacy(all, &stream).map(|()| false),
            }
        };
        let known = again.and_then(|again| graph.node(again.n_met).ok()).map(|node| node.op);
        // Making the operation may look functions up, so no lock is held.
        let op = op(&Site { graph: &graph, dependencies: &tail, known })?;
        let mut all = lock();
        let Some(capture) = all.as_mut().and_then(|all| all.of(key)) else { return Ok(false) };
        if capture.is_invalid {
            return Err(Error::StreamCaptureInvalidated);
        }
        if !Arc::ptr_eq(&capture.graph, &graph) {
            // Another thread ended that capture meanwhile, and began a new one.
            continue;
        }
        let tail = capture.tail(key);
        let Some(recapture) = capture.recapture else {
            let place = graph.n_places();
            graph.push(op, tail)?;
            capture.tails.insert(key, vec![(place, Edge::default())]);
            return Ok(true);
        };
        drop(all);
        let outcome = recapture.meet(&graph, op, &tail);
        let mut all = lock();
        if let Some(capture) = all.as_mut().and_then(|all| all.of(key))
            && Arc::ptr_eq(&capture.graph, &graph)
        {
            capture.is_invalid |= outcome.is_err();
            capture.recapture = Some(Recapture { n_met: recapture.n_met + 1, ..recapture });
            capture.tails.insert(key, vec![(recapture.n_met, Edge::default())]);
        }
        return outcome.map(|()| true);
    }
}

impl Recapture {
    /// Compares what comes with the node that was there, and takes it if the program agrees.
    fn meet(&self, graph: &Graph, op: Arc<Op>, tail: &[Dependency]) -> Result {
        let failed = |_| Error::GraphRecaptureFailure;
        let node = graph.node(self.n_met).map_err(failed)?;
        if node.op.kind() != op.kind() || node.dependencies != tail {
            return Err(Error::GraphRecaptureFailure);
        }
        if node.op.params.is_same(&op.params) {
            return Ok(());
        }
        let is_memory = node.op.params.check_update(&op.params, true).is_err();
        let status = match is_memory {
            false => CUgraphRecaptureStatus::CU_GRAPH_RECAPTURE_ELIGIBLE_FOR_UPDATE,
            true => CUgraphRecaptureStatus::CU_GRAPH_RECAPTURE_INELIGIBLE_FOR_UPDATE,
        };
        // CUDA: memory nodes have to be the same, whatever the program says.
        if matches!(node.op.params, super::Params::Alloc(_) | super::Params::Free(_)) {
            return Err(Error::GraphRecaptureFailure);
        }
        if let Some(callback) = self.callback {
            let (old, new) = (node.op.params.describe(), op.params.describe());
            // SAFETY: the program's function, with its own data and structures that live through the call.
            let answer = unsafe { callback(self.data.0, node.handle.0, &old, &new, status) };
            if answer != CUresult::CUDA_SUCCESS {
                return Err(Error::GraphRecaptureFailure);
            }
        }
        graph.set(self.n_met, op)
    }
}

/// CUDA: while a blocking stream is captured, the legacy default stream would have to wait for it, so it is not used.
fn check_legacy(all: &mut Captures, stream: &Stream) -> Result {
    if !is_legacy(stream) {
        return Ok(());
    }
    let spoiled = all.blocking(stream.context.id());
    if spoiled.is_empty() {
        return Ok(());
    }
    spoiled.iter().for_each(|id| {
        if let Some(capture) = all.captures.get_mut(id) {
            capture.is_invalid = true;
        }
    });
    Err(Error::StreamCaptureImplicit)
}

/// For calls that work on the legacy default stream without naming it.
#[inline]
pub fn forbid_legacy(context: &'static Context) -> Result {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    match lock().as_mut() {
        Some(all) => check_legacy(all, &Stream::default_of(context, false)),
        None => Ok(()),
    }
}

/// Calls that a capture cannot hold end it: CUDA invalidates the capture and says why.
#[inline]
pub fn forbid_in_capture(stream: CUstream) -> Result {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(()) };
    match all.of(key(&stream)) {
        Some(capture) => {
            capture.is_invalid = true;
            Err(Error::StreamCaptureUnsupported)
        }
        None => check_legacy(all, &stream),
    }
}

/// Calls that wait for all of a context: CUDA invalidates the captures in it.
pub fn forbid_in_context(context: &'static Context) -> Result {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(()) };
    if !all.of_stream.keys().any(|key| key.0 == context.id()) {
        return Ok(());
    }
    all.invalidate(|capture| {
        capture.tails.keys().any(|key| key.0 == context.id()) || capture.origin.0 == context.id()
    });
    Err(Error::StreamCaptureUnsupported)
}

/// Calls that CUDA names potentially unsafe, such as allocations: the modes of the captures and of this thread say
/// whether they are made. One that is not made invalidates the captures that forbid it.
#[inline]
pub fn forbid_unsafe() -> Result {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let mode = MODE.get();
    if mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED {
        return Ok(());
    }
    let is_global = mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    let thread = std::thread::current().id();
    let forbids = |capture: &Capture| match capture.mode {
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED => false,
        // CUDA: own captures forbid in either mode, others' only if both sides say "global".
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL => capture.thread == thread || is_global,
        _ => capture.thread == thread,
    };
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(()) };
    if !all.captures.values().any(forbids) {
        return Ok(());
    }
    all.invalidate(forbids);
    Err(Error::StreamCaptureUnsupported)
}

/// What this thread says of calls that are potentially unsafe; gives what it said before.
pub fn exchange_mode(mode: CUstreamCaptureMode) -> CUstreamCaptureMode {
    MODE.replace(mode)
}

/// `cuEventRecord` in a captured stream marks a place in the graph.
pub fn captured_event_record(event: CUevent, stream: CUstream) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 && N_EVENTS.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let stream = Stream::from_handle(stream)?;
    let key = key(&stream);
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(false) };
    let Some(id) = all.of_stream.get(&key).map(|of| of.id) else {
        check_legacy(all, &stream)?;
        all.mark(event, None);
        return Ok(false);
    };
    let Some(capture) = all.captures.get(&id) else { return Ok(false) };
    if capture.is_invalid {
        return Err(Error::StreamCaptureInvalidated);
    }
    let tail = capture.tails.get(&key).cloned().unwrap_or_default();
    all.mark(event, Some((id, tail)));
    Ok(true)
}

/// An event that is gone.
pub fn forget_event(event: CUevent) {
    if N_EVENTS.load(Ordering::Relaxed) > 0
        && let Some(all) = lock().as_mut()
    {
        all.mark(event, None);
    }
}

/// CUDA: an event that was last recorded in a captured stream is neither asked nor waited for by the host.
#[inline]
pub fn check_event(event: CUevent) -> Result {
    if N_EVENTS.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(()) };
    let Some(&(id, _)) = all.events.get(&event.bits()) else { return Ok(()) };
    if let Some(capture) = all.captures.get_mut(&id) {
        capture.is_invalid = true;
    }
    Err(Error::CapturedEvent)
}

/// `cuStreamWaitEvent` for an event of a capture takes the stream into it.
pub fn captured_event_wait(event: CUevent, stream: CUstream) -> Result<bool> {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 && N_EVENTS.load(Ordering::Relaxed) == 0 {
        return Ok(false);
    }
    let stream = Stream::from_handle(stream)?;
    let key = key(&stream);
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(false) };
    let own = all.of_stream.get(&key).map(|of| of.id);
    if let Some(capture) = all.of(key)
        && capture.is_invalid
    {
        return Err(Error::StreamCaptureInvalidated);
    }
    match (all.events.get(&event.bits()).cloned(), own) {
        (None, None) => check_legacy(all, &stream).map(|()| false),
        // CUDA: a captured stream cannot wait for work that is not captured.
        (None, Some(id)) => {
            all.captures.get_mut(&id).into_iter().for_each(|capture| capture.is_invalid = true);
            Err(Error::StreamCaptureIsolation)
        }
        // CUDA: two captures stay two.
        (Some((id, _)), Some(own)) if id != own => {
            for id in [id, own] {
                all.captures.get_mut(&id).into_iter().for_each(|capture| capture.is_invalid = true);
            }
            Err(Error::StreamCaptureMerge)
        }
        (Some((id, nodes)), own) => {
            let capture = all.captures.get_mut(&id).ok_or(Error::CapturedEvent)?;
            // CUDA: the legacy default stream cannot be captured.
            if is_legacy(&stream) {
                capture.is_invalid = true;
                return Err(Error::StreamCaptureImplicit);
            }
            join(capture.tails.entry(key).or_default(), &nodes);
            if own.is_none() {
                all.enter(key, Captured { id, is_blocking: is_blocking(&stream) });
            }
            Ok(true)
        }
    }
}

/// Adds dependencies that are not there yet.
fn join(tail: &mut Vec<Dependency>, more: &[Dependency]) {
    for &dependency in more {
        if !tail.contains(&dependency) {
            tail.push(dependency);
        }
    }
}

/// Where a capture goes to, if not into a graph of its own.
pub struct Into {
    pub graph: CUgraph,
    pub dependencies: Vec<(CUgraphNode, Edge)>,
}

/// Begins to capture a stream.
pub fn begin(stream: CUstream, mode: CUstreamCaptureMode, into: Option<Into>) -> Result {
    let stream = Stream::from_handle(stream)?;
    check_begin(&stream, mode)?;
    let (graph, tail, is_given) = match into {
        None => (Graph::from_handle(Graph::create()?)?, vec![], false),
        Some(Into { graph, dependencies }) => {
            let graph = Graph::from_handle(graph)?;
            let places = dependencies.iter().map(|&(node, edge)| Ok((graph.place(node)?, edge)));
            let tail = places.collect::<Result<Vec<_>>>()?;
            (graph, tail, true)
        }
    };
    start(&stream, mode, graph, is_given, tail, None)
}

/// Begins to capture the same work as a graph has, again.
pub fn begin_again(
    stream: CUstream,
    mode: CUstreamCaptureMode,
    graph: CUgraph,
    callback: CUgraphRecaptureCallback,
    data: *mut c_void,
) -> Result {
    let stream = Stream::from_handle(stream)?;
    check_begin(&stream, mode)?;
    let graph = Graph::from_handle(graph)?;
    // CUDA: the user objects of the graph are released first.
    graph.let_all_go();
    start(&stream, mode, graph, true, vec![], Some(Recapture { n_met: 0, callback, data: Shared(data) }))
}

fn check_begin(stream: &Stream, mode: CUstreamCaptureMode) -> Result {
    if mode.0 > CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED.0 {
        return Err(Error::InvalidValue("mode"));
    }
    // CUDA: the legacy default stream cannot be captured.
    if is_legacy(stream) {
        return Err(Error::StreamCaptureImplicit);
    }
    Ok(())
}

fn start(
    stream: &Stream,
    mode: CUstreamCaptureMode,
    graph: Arc<Graph>,
    is_given: bool,
    tail: Vec<Dependency>,
    recapture: Option<Recapture>,
) -> Result {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let key = key(stream);
    let mut all = lock();
    let all = all.get_or_insert_default();
    // CUDA: a stream is captured once at a time, and so is a graph.
    if all.of_stream.contains_key(&key) || graph.is_captured_into.swap(true, Ordering::Relaxed) {
        if !is_given {
            Graph::forget(graph.handle.0);
        }
        return Err(Error::IllegalState);
    }
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let capture = Capture {
        graph,
        origin: key,
        mode,
        thread: std::thread::current().id(),
        is_invalid: false,
        is_given,
        tails: HashMap::from([(key, tail)]),
        recapture,
    };
    all.captures.insert(id, capture);
    all.enter(key, Captured { id, is_blocking: is_blocking(stream) });
    Ok(())
}

/// Ends the capture that began on this stream and gives its graph.
pub fn end(stream: CUstream, wants_graph: bool) -> Result<CUgraph> {
    let key = key(&Stream::from_handle(stream)?);
    let mut guard = lock();
    let all = guard.as_mut().ok_or(Error::IllegalState)?;
    let id = all.of_stream.get(&key).ok_or(Error::IllegalState)?.id;
    let capture = all.captures.get_mut(&id).ok_or(Error::IllegalState)?;
    // CUDA: it ends where it began.
    if capture.origin != key {
        capture.is_invalid = true;
        return Err(Error::StreamCaptureUnmatched);
    }
    // CUDA: and, unless it is relaxed, on the thread that began it.
    let is_relaxed = capture.mode == CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    if !is_relaxed && capture.thread != std::thread::current().id() {
        return Err(Error::StreamCaptureWrongThread);
    }
    // CUDA: a graph that the program gave is its own already; any other would be lost, so the capture goes on.
    if !wants_graph && !capture.is_given {
        return Err(Error::InvalidValue("phGraph"));
    }
    let capture = all.captures.remove(&id).ok_or(Error::IllegalState)?;
    all.leave(id);
    drop(guard);
    capture.graph.is_captured_into.store(false, Ordering::Relaxed);
    capture.finish()
}

/// A stream that is destroyed describes nothing more. What it described stays in the graph: if nobody waits for it,
/// `end` says so. A capture that began on the stream goes with it.
pub fn forget_stream(stream: &Stream) {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let key = key(stream);
    let mut guard = lock();
    let Some(all) = guard.as_mut() else { return };
    let Some(of) = all.of_stream.get(&key).copied() else { return };
    let is_origin = all.captures.get(&of.id).is_some_and(|capture| capture.origin == key);
    if !is_origin {
        all.of_stream.remove(&key);
        N_CAPTURING.store(all.of_stream.len(), Ordering::Relaxed);
        return;
    }
    // Nobody can end it any more.
    let gone = all.captures.remove(&of.id);
    all.leave(of.id);
    drop(guard);
    if let Some(capture) = gone {
        capture.graph.is_captured_into.store(false, Ordering::Relaxed);
        capture.throw_away();
    }
}

/// A context that ends: its streams are captured no more. What they described so far goes.
pub fn forget_context(context_id: u64) {
    if N_CAPTURING.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut guard = lock();
    let Some(all) = guard.as_mut() else { return };
    let gone: Vec<Capture> = {
        let is_doomed = |_: &u64, capture: &mut Capture| capture.origin.0 == context_id;
        all.captures.extract_if(is_doomed).map(|(_, capture)| capture).collect()
    };
    let captures = &all.captures;
    all.of_stream.retain(|key, of| key.0 != context_id && captures.contains_key(&of.id));
    N_CAPTURING.store(all.of_stream.len(), Ordering::Relaxed);
    drop(guard);
    for capture in gone {
        capture.graph.is_captured_into.store(false, Ordering::Relaxed);
        capture.throw_away();
    }
}

impl Capture {
    /// What the next operation of a stream waits for.
    fn tail(&self, key: StreamKey) -> Vec<Dependency> {
        self.tails.get(&key).cloned().unwrap_or_default()
    }

    fn finish(self) -> Result<CUgraph> {
        let handle = self.graph.handle.0;
        let is_whole = self.recapture.is_none_or(|recapture| recapture.n_met == self.graph.n_places());
        let error = match (self.is_invalid, self.is_joined(), is_whole) {
            (true, ..) => Error::StreamCaptureInvalidated,
            (_, false, _) => Error::StreamCaptureUnjoined,
            (.., false) => Error::GraphRecaptureFailure,
            _ => return Ok(handle),
        };
        self.throw_away();
        Err(error)
    }

    /// CUDA: a capture that failed gives no graph; one that the program gave stays its own.
    fn throw_away(self) {
        if !self.is_given {
            Graph::forget(self.graph.handle.0);
        }
    }

    /// Whether everything in the graph is waited for by the stream the capture began on.
    fn is_joined(&self) -> bool {
        let mut reached = vec![false; self.graph.n_places()];
        let places = |tail: &Vec<Dependency>| tail.iter().map(|&(place, _)| place).collect::<Vec<_>>();
        let mut open = self.tails.get(&self.origin).map(places).unwrap_or_default();
        while let Some(place) = open.pop() {
            if !core::mem::replace(&mut reached[place], true)
                && let Ok(node) = self.graph.node(place)
            {
                open.extend(node.dependencies.iter().map(|&(place, _)| place));
            }
        }
        self.tails.values().flatten().all(|&(place, _)| reached[place])
    }
}

/// What is known of a stream's capture: status, id, graph, and the nodes the next operation waits for.
pub struct Info {
    pub status: CUstreamCaptureStatus,
    pub id: u64,
    pub graph: CUgraph,
    pub tail: Vec<(CUgraphNode, Edge)>,
}

pub fn info(stream: CUstream) -> Result<Info> {
    let none = Info {
        status: CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE,
        id: 0,
        graph: core::ptr::null_mut(),
        tail: Vec::new(),
    };
    let stream = Stream::from_handle(stream)?;
    let key = key(&stream);
    let mut all = lock();
    let Some(all) = all.as_mut() else { return Ok(none) };
    // CUDA: the legacy default stream cannot say while a blocking stream is captured; the question spoils nothing.
    if is_legacy(&stream) && !all.blocking(stream.context.id()).is_empty() {
        return Err(Error::StreamCaptureImplicit);
    }
    let Some(id) = all.of_stream.get(&key).map(|of| of.id) else { return Ok(none) };
    let Some(capture) = all.captures.get(&id) else { return Ok(none) };
    let handle = |&(place, edge): &Dependency| Some((capture.graph.node(place).ok()?.handle.0, edge));
    let tail = capture.tails.get(&key).into_iter().flatten().filter_map(handle).collect();
    Ok(Info {
        status: if capture.is_invalid {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
        } else {
            CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
        },
        id,
        graph: capture.graph.handle.0,
        tail,
    })
}

/// Changes what the next operation of a captured stream waits for.
pub fn update_dependencies(stream: CUstream, nodes: &[(CUgraphNode, Edge)], replaces: bool) -> Result {
    let key = key(&Stream::from_handle(stream)?);
    let mut all = lock();
    let capture = all.as_mut().and_then(|all| all.of(key)).ok_or(Error::IllegalState)?;
    if capture.is_invalid {
        return Err(Error::StreamCaptureInvalidated);
    }
    let places = nodes.iter().map(|&(node, edge)| Ok((capture.graph.place(node)?, edge)));
    let places = places.collect::<Result<Vec<_>>>()?;
    let tail = capture.tails.entry(key).or_default();
    if replaces {
        tail.clear();
    }
    join(tail, &places);
    Ok(())
}
