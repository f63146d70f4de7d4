//! Operations of a graph by MIOpen, on the memory of an AMD GPU.
//!
//! The rule: an operation is MIOpen's where calls of the legacy API that MIOpen takes compute exactly what it says.

use core::ffi::{c_int, c_void};
use core::ptr;

use cudnn_cpu::Kind;
use cudnn_cpu::activation::Activation;
use cudnn_cpu::pointwise::{Pointwise, Two};
use cudnn_cpu::pooling::{Pooling, Window};
use cudnn_cpu::reduction::Reduction;

use super::device::{Places, Tensors};
use super::layers::{Norm, NormBackward};
use super::layout::Layout;
use super::plan::{Convolution, Given, Operation, Tensor, Work};
use crate::api::convolution::are_apart;
use crate::hip::convolution::{Area, Direction, Problem};
use crate::hip::objects::{self, Room, by_channel};
use crate::hip::{HipCall, activation, convert, convolution, elements, norm, pooling};
use crate::types::*;
use crate::{Result, tensor};

/// An operation by MIOpen: whether that has done it.
type Step = Box<dyn Fn(&HipCall, &Places) -> Result<bool>>;

/// A tensor as calls of the legacy API take it, and its number.
struct Named {
    uid: i64,
    tensor: tensor::Tensor,
}

impl Named {
    /// A tensor that lies by strides in the device's memory, of a type that MIOpen has.
    fn of(tensor: &Tensor) -> Option<Named> {
        let kind = match tensor.kind {
            Kind::F32 => cudnnDataType_t::CUDNN_DATA_FLOAT,
            Kind::F16 => cudnnDataType_t::CUDNN_DATA_HALF,
            Kind::Bf16 => cudnnDataType_t::CUDNN_DATA_BFLOAT16,
            _ => return None,
        };
        let sizes =
            tensor.sizes.iter().map(|&size| c_int::try_from(size).ok()).collect::<Option<Vec<_>>>()?;
        let strides = tensor.strides.iter().map(|&stride| c_int::try_from(stride).ok());
        let strides = strides.collect::<Option<Vec<_>>>()?;
        let of = tensor::Tensor { kind, sizes, strides };
        let is_there = tensor.layout == Layout::Strided && !tensor.is_value && tensor.constant.is_none();
        is_there.then_some(Named { uid: tensor.uid, tensor: of })
    }

    fn at(&self, places: &Places) -> tensor::Argument {
        tensor::Argument::new(self.tensor.clone(), memory(self.uid, places))
    }
}

/// NULL, which no call takes, where it lies in no memory.
fn memory(uid: i64, places: &Places) -> *mut c_void {
    match places.get(&uid) {
        Some(Given::Memory(at) | Given::Made(at, _)) => at.get().cast(),
        _ => ptr::null_mut(),
    }
}

/// What operations are looked at with.
pub struct Mapping<'g> {
    pub tensors: &'g Tensors,
    pub given: &'g Places,
}

impl Mapping<'_> {
    /// The operation by MIOpen, if that has it.
    pub fn step(&self, of: &Operation) -> Option<Step> {
        match (&of.work, &of.takes[..]) {
            (Work::Forward(by), &[x, w]) => self.convolution(by, Direction::Forward, [x, w, of.gives[0]]),
            (Work::BackwardData(by), &[w, dy]) => self.convolution(by, Direction::Data, [of.gives[0], w, dy]),
            (Work::BackwardFilter(by), &[x, dy]) => {
                self.convolution(by, Direction::Filter, [x, of.gives[0], dy])
            }
            (Work::Pointwise(function, 1.0, _), &[x]) => self.activation(*function, [x, of.gives[0]]),
            (Work::Pointwise(function, ..), &[x, dy]) if function.is_backward() => {
                self.activation_gradient(*function, [x, dy, of.gives[0]])
            }
            (Work::Pointwise(Pointwise::Two(two), alpha, beta), &[a, b]) => {
                self.mix(*two, [(*alpha, a), (*beta, b)], of.gives[0])
            }
            (Work::Reduce(by), &[x]) => self.reduction(*by, [x, of.gives[0]]),
            (Work::Pool(mode, window, 1.0), &[x]) => self.pooling(*mode, window, [x, of.gives[0]]),
            (Work::PoolBackward(mode, window, 1.0), &[dy, x]) => {
                self.pooling_gradient(*mode, window, [x, dy, of.gives[0]])
            }
            (Work::Softmax(by), &[x]) if by.is_alone() => self.softmax([x, of.gives[0]]),
            (Work::Norm(by), _) => self.norm(by, of),
            (Work::NormBackward(by), _) => self.norm_gradient(by, of),
            _ => None,
        }
    }

    /// Tensors of one type, in `float` or half.
    fn plain<const N: usize>(&self, uids: [i64; N]) -> Option<[Named; N]> {
        let all: Vec<Named> = uids.iter().map(|uid| Named::of(&self.tensors[uid])).collect::<Option<_>>()?;
        let kind = objects::plain_type(all[0].tensor.kind);
        kind.filter(|_| all.iter().all(|one| one.tensor.kind == all[0].tensor.kind))?;
        all.try_into().ok()
    }

    /// The same where they lie by channels.
    fn images<const N: usize>(&self, uids: [i64; N]) -> Option<[Named; N]> {
        self.plain(uids).filter(|all| all.iter().all(|one| by_channel(&[&one.tensor])))
    }

    /// And where their sizes are the same too.
    fn alike<const N: usize>(&self, uids: [i64; N]) -> Option<[Named; N]> {
        self.images(uids).filter(|all| all.iter().all(|one| one.tensor.sizes == all[0].tensor.sizes))
    }

    /// Where element by element lies in the same order, by channels or with channels last.
    fn in_step<const N: usize>(&self, uids: [i64; N]) -> Option<[Named; N]> {
        self.plain(uids).filter(|all| {
            let mut both = all.iter().map(|one| (&*one.tensor.sizes, &*one.tensor.strides));
            objects::Layout::common(both.clone()).is_some()
                && both.all(|(sizes, _)| sizes == all[0].tensor.sizes)
        })
    }

    /// Numbers in single precision, one for each channel of the images.
    fn parameters<const N: usize>(&self, images: &Named, uids: [i64; N]) -> Option<[Named; N]> {
        let mut sizes = vec![1; images.tensor.sizes.len()];
        *sizes.get_mut(1)? = images.tensor.sizes[1];
        self.images(uids).filter(|all| {
            let fits = |one: &Named| one.tensor.sizes == sizes;
            all.iter().all(fits) && all[0].tensor.kind == cudnnDataType_t::CUDNN_DATA_FLOAT
        })
    }

    /// A number that is in the host's memory.
    fn number(&self, uid: i64) -> Option<f64> {
        self.tensors[&uid].constant.or(match self.given.get(&uid) {
            Some(Given::Value(value)) => Some(*value),
            _ => None,
        })
    }

    /// Images, filters and results in this order; the work area is memory of ours.
    fn convolution(&self, by: &Convolution, direction: Direction, uids: [i64; 3]) -> Option<Step> {
        let [x, w, y] = uids.map(|uid| Named::of(&self.tensors[&uid]));
        let (x, w, y) = (x?, w?, y?);
        let (window, groups) = by.on_hip()?;
        let [padding, stride, dilation] = window.each_ref().map(|list| last(list, x.tensor.sizes.len() - 2));
        let window = convolution::Window { padding, stride, dilation, groups };
        let problem = Problem::new(direction, &window, &x.tensor, &w.tensor, &y.tensor)?;
        Some(Box::new(move |hip, places| {
            let bytes = hip.workspace(Some(&problem))?;
            // Where there is no memory for it, an algorithm that needs none is searched for.
            let area = Room::new(hip.stream, bytes).ok();
            let area = Area::new(area.as_ref().map_or(ptr::null_mut(), Room::at), bytes);
            let at = [&x, &w, &y].map(|one| one.at(places));
            let ([a, b], written) = problem.order(at.each_ref());
            Ok(are_apart(&[a, b], written)
                && hip.convolve(&problem, at.each_ref().map(|one| one.memory), area)?)
        }))
    }

    fn activation(&self, function: Pointwise, uids: [i64; 2]) -> Option<Step> {
        let function = function_of(function)?;
        let [x, y] = self.in_step(uids)?;
        Some(Box::new(move |hip, places| {
            let (x, y) = (x.at(places), y.at(places));
            hip.activate(function, &x, &y, x.memory != y.memory)
        }))
    }

    /// What the function made, which MIOpen takes too, is made again.
    fn activation_gradient(&self, function: Pointwise, uids: [i64; 3]) -> Option<Step> {
        let function = function_of(function)?;
        let [x, dy, dx] = self.in_step(uids)?;
        Some(Box::new(move |hip, places| {
            let room = Room::new(hip.stream, x.tensor.bytes()?)?;
            let y = tensor::Argument::new(x.tensor.clone(), room.at());
            let (x, dy, dx) = (x.at(places), dy.at(places), dx.at(places));
            Ok(hip.activate(function, &x, &y, true)?
                && hip.activation_gradient(function, [&x, &y, &dy], &dx)?)
        }))
    }

    /// Of extremes MIOpen does not say what becomes of NaN, which a graph's keep.
    fn mix(&self, two: Two, [a, b]: [(f64, i64); 2], to: i64) -> Option<Step> {
        let (op, b) = match two {
            Two::Add => (convert::ADD, b),
            Two::Sub => (convert::ADD, (-b.0, b.1)),
            Two::Mul => (convert::MUL, b),
            _ => return None,
        };
        let is_whole = |(_, uid): (f64, i64)| self.tensors[&uid].sizes == self.tensors[&to].sizes;
        // What is repeated comes second.
        let [(alpha, a), (beta, b)] = if is_whole(a) { [a, b] } else { [b, a] };
        let [a, b, c] = self.images([a, b, to])?;
        let fits = a.tensor.sizes == c.tensor.sizes && (4..=5).contains(&c.tensor.sizes.len());
        let step: Step = Box::new(move |hip, places| {
            let (a, b, c) = (a.at(places), b.at(places), c.at(places));
            let apart = a.memory != c.memory && b.memory != c.memory;
            hip.mix(op, [(alpha, &a), (beta, &b)], (0.0, &c), apart)
        });
        Some(step).filter(|_| fits)
    }

    /// NaN go on, as in our own code; of parts of a size there is none.
    fn reduction(&self, by: Reduction, uids: [i64; 2]) -> Option<Step> {
        let is_it = |op: &cudnnReduceTensorOp_t| crate::api::reduction::of_number(*op) == by;
        let op = convert::REDUCTIONS.iter().map(|(op, _)| *op).find(is_it)?;
        let [x, y] = self.images(uids)?;
        let (from, to) = (&x.tensor.sizes, &y.tensor.sizes);
        let is_whole = from.iter().zip(to).all(|(from, to)| from == to || *to == 1);
        let fits = is_whole && from.len() <= 6 && from != to;
        let how = elements::Reduction { op, nan: cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN };
        let step: Step = Box::new(move |hip, places| {
            let (x, y) = (x.at(places), y.at(places));
            let bytes = hip.reduction_workspace(Some(&how), &x, &y)?;
            let room = Room::new(hip.stream, bytes)?;
            hip.reduce(&how, (1.0, &x), (0.0, &y), (room.at(), bytes))
        });
        Some(step).filter(|_| fits)
    }

    fn pooling(&self, mode: Pooling, window: &Window, uids: [i64; 2]) -> Option<Step> {
        let [x, y] = self.images(uids)?;
        let (window, n) = (pooling_window(mode, window)?, x.tensor.sizes.len() - 2);
        Some(Box::new(move |hip, places| {
            let [window, padding, stride] = window.each_ref().map(|list| last(list, n));
            hip.pool(&pooling::Window { mode, window, padding, stride }, &x.at(places), &y.at(places))
        }))
    }

    /// Of the largest alone: for means MIOpen takes images and results too, which the operation lacks.
    fn pooling_gradient(&self, mode: Pooling, window: &Window, uids: [i64; 3]) -> Option<Step> {
        let [x, dy, dx] = self.images(uids)?;
        let (window, n) = (pooling_window(mode, window)?, x.tensor.sizes.len() - 2);
        Some(Box::new(move |hip, places| {
            let [window, padding, stride] = window.each_ref().map(|list| last(list, n));
            let how = pooling::Window { mode, window, padding, stride };
            hip.pooling_gradient(&how, &x.at(places), None, &dy.at(places), &dx.at(places))
        }))
    }

    /// Over the last size.
    fn softmax(&self, uids: [i64; 2]) -> Option<Step> {
        let mut both = self.alike(uids)?;
        let count = *both[0].tensor.sizes.last()?;
        for Named { tensor, .. } in &mut both {
            let rows = c_int::try_from(tensor.count() / count as usize).ok()?;
            let format = cudnnTensorFormat_t::CUDNN_TENSOR_NCHW;
            *tensor = tensor::Tensor::of_format(format, tensor.kind, &[rows, count, 1, 1]).ok()?;
        }
        let [x, y] = both;
        let algorithm = cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_ACCURATE;
        let how = activation::Softmax { algorithm, mode: cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL };
        Some(Box::new(move |hip, places| hip.softmax(&how, (1.0, &x.at(places)), (0.0, &y.at(places)))))
    }

    /// Of a batch that is trained on. Averages over runs, which MIOpen changes where they lie, are copied first.
    fn norm(&self, by: &Norm, of: &Operation) -> Option<Step> {
        let uids = by.training(of)?;
        let [x, y] = self.alike(uids.images)?;
        let parameters = self.parameters(&x, uids.factors)?;
        let optional =
            |uids: Option<[i64; 2]>| uids.map_or(Some(()), |uids| self.parameters(&x, uids).map(drop));
        optional(uids.saved)?;
        let epsilon = self.number(uids.epsilon)?;
        let running = match uids.running {
            Some((factor, before, after)) => {
                optional(Some(before)).and(optional(Some(after)))?;
                Some((self.number(factor)?, before, after))
            }
            None => None,
        };
        let [scale, bias] = uids.factors;
        let shape = parameters.into_iter().next()?.tensor;
        Some(Box::new(move |hip, places| {
            let pair = |uids: [i64; 2]| uids.map(|uid| memory(uid, places));
            let or_none = |uids: Option<[i64; 2]>| uids.map_or([ptr::null_mut(); 2], pair);
            let how = norm::Norm { of_channels: true, parameters: &shape, epsilon };
            let averages = running.map_or(Ok((0.0, or_none(None))), |(factor, before, after)| {
                for (from, to) in pair(before).into_iter().zip(pair(after)) {
                    objects::copy(hip.stream, from, to, shape.bytes()?)?;
                }
                Ok::<_, crate::Error>((factor, pair(after)))
            })?;
            let images = [&x.at(places), &y.at(places)];
            hip.normalize_training(&how, images, pair([scale, bias]), averages, or_none(uids.saved))
        }))
    }

    fn norm_gradient(&self, by: &NormBackward, of: &Operation) -> Option<Step> {
        let uids = by.of_batch(of)?;
        let [x, dy, dx] = self.alike(uids.images)?;
        let [shape, ..] = self.parameters(&x, uids.parameters)?;
        let shape = shape.tensor;
        let saved = uids.saved;
        if let Some(saved) = saved {
            self.parameters(&x, saved)?;
        }
        let epsilon = match uids.epsilon {
            Some(uid) => self.number(uid),
            // Statistics that are given have it.
            None => saved.map(|_| 0.0),
        }?;
        let [scale, gradients @ ..] = uids.parameters;
        Some(Box::new(move |hip, places| {
            let pair = |uids: [i64; 2]| uids.map(|uid| memory(uid, places));
            let how = norm::Norm { of_channels: true, parameters: &shape, epsilon };
            let images = [&x.at(places), &dy.at(places), &dx.at(places)];
            let saved = saved.map_or([ptr::null_mut(); 2], pair);
            hip.normalization_gradient(&how, images, memory(scale, places), pair(gradients), saved)
        }))
    }
}

/// The last of three sizes' numbers.
fn last(of: &[c_int; 3], n: usize) -> &[c_int] {
    &of[3 - n.min(3)..]
}

/// The function of the legacy API that an operation or its gradient is of, where MIOpen has it.
fn function_of(of: Pointwise) -> Option<Activation> {
    let function = match of {
        Pointwise::Activation(function) | Pointwise::Backward(function) => function,
        Pointwise::Clip(clip) | Pointwise::ClipBackward(clip) if clip.lower == 0.0 && clip.slope == 0.0 => {
            if clip.upper == f64::INFINITY {
                Activation::Relu(clip.keeps_nan)
            } else {
                Activation::ClippedRelu(clip.upper, clip.keeps_nan)
            }
        }
        _ => return None,
    };
    convert::activation(function).map(|_| function)
}

fn three(of: [usize; 3]) -> Option<[c_int; 3]> {
    let [a, b, c] = of.map(|size| c_int::try_from(size).ok());
    Some([a?, b?, c?])
}

/// Whether results have as many places as the formula gives with the same padding on both sides.
fn is_symmetric(
    input: [usize; 3],
    covered: [usize; 3],
    padding: [isize; 3],
    stride: [usize; 3],
    output: [usize; 3],
) -> bool {
    (0..3).all(|at| {
        let places = input[at] as isize + 2 * padding[at] - covered[at] as isize;
        places >= 0 && 1 + places as usize / stride[at] == output[at]
    })
}

/// A window with its padding and strides, of what MIOpen has.
fn pooling_window(mode: Pooling, of: &Window) -> Option<[[c_int; 3]; 3]> {
    convert::pooling(mode)?;
    let fits = is_symmetric(of.input, of.window, of.padding, of.stride, of.output);
    let lists = [three(of.window)?, three(of.padding.map(isize::unsigned_abs))?, three(of.stride)?];
    Some(lists).filter(|_| fits)
}

impl Convolution {
    /// Padding, strides and dilations, and the groups, where MIOpen has it.
    fn on_hip(&self) -> Option<([[c_int; 3]; 3], c_int)> {
        let of = &self.geometry;
        let covered = core::array::from_fn(|at| (of.filter[at] - 1) * of.dilation[at] + 1);
        let fits = tensor::is_plain(self.alpha, self.beta)
            && self.flipped == 0
            && is_symmetric(of.input, covered, of.padding, of.stride, of.output);
        let lists = [three(of.padding.map(isize::unsigned_abs))?, three(of.stride)?, three(of.dilation)?];
        Some((lists, c_int::try_from(of.groups).ok()?)).filter(|_| fits)
    }
}
