//! Convolutions. MIOpen runs only what a search with the same handle has found: the first call of each problem searches, and what was found
//! is kept as long as the handle (MIOpen itself keeps it in files of the user's).
//!
//! The rule: MIOpen's work area is the program's own, so that sizes and searches tell what MIOpen asks for; a graph's, whose plans take none, is
//! memory of ours.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::sync::Arc;

use cudnn_cpu::activation::Activation;
use parking_lot::Mutex;

use super::call::{HipCall, ONE, ZERO, call, done, settle};
use super::convert::{self, DATA_TYPES, number};
use super::library::{Memory, Perf, Raw};
use super::objects::{self, Layout, Made, by_channel};
use crate::Result;
use crate::tensor::{Argument, Tensor};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// x and w make y.
    Forward,
    /// dy and w make dx.
    Data,
    /// dy and x make dw.
    Filter,
}

/// A convolution as MIOpen keeps searches of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    direction: Direction,
    kind: c_uint,
    layout: Layout,
    /// Of images, filters and results.
    sizes: [Vec<c_int>; 3],
    /// Padding, stride and dilation.
    window: [Vec<c_int>; 3],
    groups: c_int,
}

/// What is said of a convolution beside its tensors.
pub struct Window<'w> {
    pub padding: &'w [c_int],
    pub stride: &'w [c_int],
    pub dilation: &'w [c_int],
    pub groups: c_int,
}

/// The program's work area.
#[derive(Clone, Copy)]
pub struct Area {
    at: Memory,
    bytes: usize,
}

impl Area {
    /// MIOpen takes none of no bytes, and none without an address.
    pub fn new(at: *mut c_void, bytes: usize) -> Area {
        if at.is_null() || bytes == 0 { Area { at: ptr::null_mut(), bytes: 0 } } else { Area { at, bytes } }
    }
}

/// An algorithm that a search has found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    algorithm: c_int,
    pub time: f32,
    pub memory: usize,
}

/// What searches of a problem have found.
pub struct Searched {
    objects: Arc<Objects>,
    /// By the last search, which is the one that MIOpen's handle keeps: the fastest first.
    found: Vec<Found>,
    /// That search's work area, none before the first.
    with: Option<usize>,
    /// What a search of all algorithms takes.
    wanted: usize,
    /// With a work area of so many bytes or less there is none.
    none_with: Option<usize>,
}

struct Objects {
    x: Made,
    w: Made,
    y: Made,
    convolution: Made,
}

/// Problems of a handle: behind so many all are forgotten.
const MOST: usize = 4096;
/// Algorithms of a search: MIOpen has fewer kinds.
const ALGORITHMS: usize = 16;

impl Problem {
    /// None where MIOpen has no such convolution.
    pub fn new(
        direction: Direction,
        window: &Window<'_>,
        x: &Tensor,
        w: &Tensor,
        y: &Tensor,
    ) -> Option<Problem> {
        let all = [x, w, y];
        if all.iter().any(|tensor| tensor.kind != x.kind) || !(2..=3).contains(&window.padding.len()) {
            return None;
        }
        let layout = Layout::common(all.iter().map(|tensor| (&*tensor.sizes, &*tensor.strides)))?;
        Some(Problem {
            direction,
            kind: number(x.kind, &DATA_TYPES)?,
            layout,
            sizes: all.map(|tensor| tensor.sizes.clone()),
            window: [window.padding, window.stride, window.dilation].map(<[c_int]>::to_vec),
            groups: window.groups,
        })
    }

    /// The memory in the order of the tensors as MIOpen takes them: what is read, and what is written.
    pub fn order<T>(&self, [x, w, y]: [T; 3]) -> ([T; 2], T) {
        match self.direction {
            Direction::Forward => ([x, w], y),
            Direction::Data => ([y, w], x),
            Direction::Filter => ([y, x], w),
        }
    }
}

/// The function of a direction.
macro_rules! by_direction {
    ($hip:ident, $direction:expr, [$forward:ident, $data:ident, $filter:ident]($($argument:expr),* $(,)?)) => {
        match $direction {
            Direction::Forward => call!($hip.library(), $forward($($argument),*)),
            Direction::Data => call!($hip.library(), $data($($argument),*)),
            Direction::Filter => call!($hip.library(), $filter($($argument),*)),
        }
    };
}

impl HipCall {
    /// The problem's descriptors and what is known of it; the first time, how much memory a search takes.
    fn known(&self, problem: &Problem) -> Result<Arc<Mutex<Searched>>> {
        if let Some(known) = self.handle.searches.lock().get(problem) {
            return Ok(Arc::clone(known));
        }
        let library = self.library();
        let tensor = |at: usize| objects::tensor(library, problem.kind, &problem.sizes[at], problem.layout);
        let window = problem.window.each_ref().map(Vec::as_slice);
        let objects = Objects {
            x: tensor(0)?,
            w: tensor(1)?,
            y: tensor(2)?,
            convolution: objects::convolution(library, window, problem.groups)?,
        };
        let asked = settle(self.work_area(problem, &objects), "a convolution", true)?;
        let searched = Searched {
            objects: Arc::new(objects),
            found: vec![],
            with: None,
            wanted: asked.unwrap_or(0),
            // One that it does not take is our own code's from here on.
            none_with: if asked.is_none() { Some(usize::MAX) } else { None },
        };
        let searched = Arc::new(Mutex::new(searched));
        let mut searches = self.handle.searches.lock();
        if searches.len() >= MOST {
            searches.clear();
        }
        searches.insert(problem.clone(), Arc::clone(&searched));
        Ok(searched)
    }

    fn work_area(&self, problem: &Problem, Objects { x, w, y, convolution }: &Objects) -> Result<usize> {
        let mut bytes = 0;
        let (mut first, result) = problem.order([x, w, y].map(Made::raw));
        if problem.direction == Direction::Forward {
            // This function takes the filters first.
            first.reverse();
        }
        by_direction!(
            self,
            problem.direction,
            [
                miopenConvolutionForwardGetWorkSpaceSize,
                miopenConvolutionBackwardDataGetWorkSpaceSize,
                miopenConvolutionBackwardWeightsGetWorkSpaceSize
            ](self.raw(), first[0], first[1], convolution.raw(), result, &mut bytes)
        )?;
        Ok(bytes)
    }

    /// The bytes with which MIOpen may choose among all of its algorithms; 0 where our own code computes.
    pub fn workspace(&self, problem: Option<&Problem>) -> Result<usize> {
        let Some(problem) = problem else { return Ok(0) };
        let asked = self.known(problem).map(|known| known.lock().wanted);
        Ok(settle(asked, "a convolution", true)?.unwrap_or(0))
    }

    /// The fastest algorithm for which the work area is enough, by a search where none was made with as much; writes the result then.
    fn algorithm(&self, problem: &Problem, at: [Memory; 3], area: Area) -> Result<Option<Found>> {
        let known = self.known(problem)?;
        let objects = {
            let searched = known.lock();
            if let Some(answer) = searched.answer(area.bytes) {
                return Ok(answer);
            }
            Arc::clone(&searched.objects)
        };
        let found = settle(self.search(problem, &objects, at, area), "a convolution", true)?;
        let mut searched = known.lock();
        searched.learn(found.unwrap_or_default(), area.bytes);
        Ok(searched.fitting(area.bytes))
    }

    fn search(
        &self,
        problem: &Problem,
        objects: &Objects,
        at: [Memory; 3],
        area: Area,
    ) -> Result<Vec<Found>> {
        let ([a, b], c) = problem.order([&objects.x, &objects.w, &objects.y].map(Made::raw));
        let ([a_at, b_at], c_at) = problem.order(at);
        let (mut perfs, mut count) = ([Perf::default(); ALGORITHMS], 0);
        by_direction!(
            self,
            problem.direction,
            [
                miopenFindConvolutionForwardAlgorithm,
                miopenFindConvolutionBackwardDataAlgorithm,
                miopenFindConvolutionBackwardWeightsAlgorithm
            ](
                self.raw(),
                a,
                a_at,
                b,
                b_at,
                objects.convolution.raw(),
                c,
                c_at,
                ALGORITHMS as c_int,
                &mut count,
                perfs.as_mut_ptr(),
                area.at,
                area.bytes,
                false
            )
        )?;
        let count = usize::try_from(count).unwrap_or(0).min(ALGORITHMS);
        Ok(perfs[..count].iter().copied().map(Found::from).collect())
    }

    /// What a search finds with this work area; writes the result.
    pub fn find(&self, problem: &Problem, at: [Memory; 3], area: Area) -> Result<Option<Found>> {
        let found = self.algorithm(problem, at, area);
        Ok(settle(found, "a convolution", true)?.flatten())
    }

    /// The convolution with alpha 1 and beta 0; what is written is apart from the others. Whether MIOpen has done it.
    pub fn convolve(&self, problem: &Problem, at: [Memory; 3], area: Area) -> Result<bool> {
        let Some(found) = self.find(problem, at, area)? else { return Ok(false) };
        let objects = Arc::clone(&self.known(problem)?.lock().objects);
        done(self.run(problem, &objects, at, area, found), "a convolution", true)
    }

    fn run(&self, problem: &Problem, objects: &Objects, at: [Memory; 3], area: Area, found: Found) -> Result {
        let ([a, b], c): ([Raw; 2], Raw) = problem.order([&objects.x, &objects.w, &objects.y].map(Made::raw));
        let ([a_at, b_at], c_at) = problem.order(at);
        let area = Area::new(area.at, found.memory);
        by_direction!(
            self,
            problem.direction,
            [miopenConvolutionForward, miopenConvolutionBackwardData, miopenConvolutionBackwardWeights](
                self.raw(),
                ONE,
                a,
                a_at,
                b,
                b_at,
                objects.convolution.raw(),
                found.algorithm,
                ZERO,
                c,
                c_at,
                area.at,
                area.bytes
            )
        )
    }

    /// The gradient of a bias, with alpha 1 and beta 0.
    pub fn bias_gradient(&self, dy: &Argument, db: &Argument) -> Result<bool> {
        let Some(kind) = number(dy.kind, &DATA_TYPES) else { return Ok(false) };
        if !by_channel(&[dy, db]) || !(4..=5).contains(&dy.sizes.len()) || !objects::are_there(&[dy, db]) {
            return Ok(false);
        }
        let run = || {
            let library = self.library();
            let from = objects::tensor(library, kind, &dy.sizes, Layout::ByChannel)?;
            let to = objects::tensor(library, kind, &db.sizes, Layout::ByChannel)?;
            let (dy, db) = (dy.memory, db.memory);
            call!(library, miopenConvolutionBackwardBias(self.raw(), ONE, from.raw(), dy, ZERO, to.raw(), db))
        };
        done(run(), "a bias's gradient", dy.memory != db.memory)
    }

    /// As [`Self::convolve`], and behind it a tensor of the result's sizes times a factor is added, a bias, and the function is made of it.
    pub fn convolve_and_finish(
        &self,
        problem: &Problem,
        at: [Memory; 3],
        area: Area,
        (y, added, bias, function): (&Argument, Option<(f64, &Argument)>, &Argument, Activation),
    ) -> Result<bool> {
        if !self.convolve(problem, at, area)? {
            return Ok(false);
        }
        // What is not done here our own code does from the convolution on.
        let sum = |term: (f64, &Argument)| self.mix(convert::ADD, [(1.0, y), term], (0.0, y), true);
        if let Some(added) = added
            && !sum(added)?
        {
            return Ok(false);
        }
        Ok(sum((1.0, bias))? && (function == Activation::Identity || self.activate(function, y, y, true)?))
    }
}

impl Searched {
    /// What earlier searches say of a work area; none where a search is to be made.
    fn answer(&self, bytes: usize) -> Option<Option<Found>> {
        if self.none_with.is_some_and(|none| bytes <= none) {
            return Some(None);
        }
        let with = self.with?;
        let was_as_large = bytes <= with || with >= self.wanted;
        self.fitting(bytes).filter(|_| was_as_large).map(Some)
    }

    fn fitting(&self, bytes: usize) -> Option<Found> {
        self.found.iter().find(|found| found.memory <= bytes).copied()
    }

    /// The answer to a search with so large a work area.
    fn learn(&mut self, mut found: Vec<Found>, bytes: usize) {
        found.retain(|found| found.memory <= bytes);
        if found.is_empty() {
            self.none_with = self.none_with.max(Some(bytes));
            return;
        }
        found.sort_by(|a, b| a.time.total_cmp(&b.time));
        (self.found, self.with) = (found, Some(bytes));
    }
}

impl From<Perf> for Found {
    fn from(Perf { algorithm, time, memory }: Perf) -> Found {
        Found { algorithm, time, memory }
    }
}
