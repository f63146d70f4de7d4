//! What an operation graph does: its operations one after the other, each behind those whose results it takes.
//!
//! The rule: a graph is looked at whole when it is finalized, and is run or refused there with the reason. A tensor that is virtual lies in no
//! memory: its values are an array of the run's (but where it goes to MIOpen or comes from it: `hip.rs`).

use core::ops::Range;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cudnn_cpu::activation::Activation;
use cudnn_cpu::convolution::{self, Geometry};
use cudnn_cpu::pointwise::{self, Pointwise};
use cudnn_cpu::pooling::{Pooling, Window};
use cudnn_cpu::reduction::{Reduction, reduce};
use cudnn_cpu::{Kind, Value, View, matmul};
use kit::Address;

use super::attention::{Attention, AttentionBackward};
use super::descriptor::{Descriptor, Node};
use super::kernels::Run;
use super::layers::{self, Band, Norm, NormBackward, Slice, Softmax};
use super::layout::Layout;
use super::parts::{Part, Stretch};
use super::{blocks, grouped, moves, overrides, parts, pooling, random, rotation, statistics};
use crate::error::{require, supports};
use crate::tensor;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Of = cudnnBackendDescriptorType_t;

/// A tensor of the graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    pub uid: i64,
    pub kind: Kind,
    pub sizes: Vec<usize>,
    pub strides: Vec<isize>,
    pub is_virtual: bool,
    /// A number in the host's memory.
    pub(super) is_value: bool,
    /// The one number that it is whatever the run.
    pub(super) constant: Option<f64>,
    pub layout: Layout,
    /// Of a part: where it begins along the whole's first three sizes.
    pub first: [usize; 3],
}

/// An operation: what it does, takes and gives.
pub struct Operation {
    pub work: Work,
    pub takes: Vec<i64>,
    pub gives: Vec<i64>,
}

/// A layer that is computed in `f64` whatever the graph is: little is done for each element, so that one body serves both.
pub trait Layer: Send + Sync {
    /// What it makes of what it takes, for each tensor that it gives.
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>>;

    /// What is taken and counts others, which is exact in any type.
    fn counts(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Which tensors have numbers of more digits than a `float` that kernels take and give as they are.
    fn exact(&self, _of: &Operation) -> Vec<i64> {
        Vec::new()
    }

    /// Whether kernels have it.
    fn has_kernels(&self) -> bool {
        false
    }

    /// Enqueues its kernels; whether they can do it.
    fn run_on_kernels(&self, _run: &Run, _of: &Operation) -> Result<bool> {
        Ok(false)
    }

    /// Whether what it takes and gives are complex numbers.
    fn is_complex(&self) -> bool {
        false
    }

    /// Whether elements go from memory to memory, and to other places at most.
    fn only_moves(&self) -> bool {
        false
    }
}

pub enum Work {
    Layer(Box<dyn Layer>),
    Forward(Convolution),
    BackwardData(Convolution),
    BackwardFilter(Convolution),
    /// The factors of the first two.
    Pointwise(Pointwise, f64, f64),
    Matmul(Limits),
    Reduce(Reduction),
    /// The factor of the result.
    Pool(Pooling, Window, f64),
    /// The factor of the gradient.
    PoolBackward(Pooling, Window, f64),
    Norm(Norm),
    NormBackward(NormBackward),
    Softmax(Softmax),
    /// The size along which parts follow each other.
    Concat(usize),
    Slice(Slice),
    /// Whether elements stay where they lie; else they keep their order.
    Reshape(bool),
    Band(Band),
    Attention(Attention),
    AttentionBackward(AttentionBackward),
}

pub struct Convolution {
    pub(super) geometry: Geometry,
    /// Sizes of the filter that are turned round.
    pub(super) flipped: usize,
    pub(super) alpha: f64,
    pub(super) beta: f64,
}

pub struct Graph {
    pub(super) tensors: BTreeMap<i64, Tensor>,
    /// In an order in which each comes behind those that it takes from.
    pub(super) operations: Vec<Operation>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) is_double: bool,
    /// Whether that is for more than kernels take and give exactly.
    pub(super) is_double_to_kernels: bool,
    lacks: Option<i64>,
    /// What it was made of.
    pub nodes: Vec<Arc<Node>>,
}

/// Sizes and strides in place of those that a tensor was described with, by its number.
pub type Overrides = BTreeMap<i64, (Vec<usize>, Vec<isize>)>;

/// What a run is given for each tensor that is not virtual.
#[derive(Clone)]
pub enum Given {
    Memory(Address<*mut u8>),
    /// Of a virtual tensor, memory of the run's own, in this type and by the tensor's strides.
    Made(Address<*mut u8>, Kind),
    Value(f64),
}

impl Tensor {
    /// Looks at a tensor's descriptor.
    pub fn of(of: &Descriptor) -> Result<Tensor> {
        Tensor::overridden(of, &Overrides::new())
    }

    /// The same, of other sizes if there are some for it.
    pub fn overridden(of: &Descriptor, overrides: &Overrides) -> Result<Tensor> {
        let kind = cudnnDataType_t(of.number(Name::CUDNN_ATTR_TENSOR_DATA_TYPE)?);
        let (kind, vector) = tensor::kind_in_graph(kind)?;
        let count = of.integer(Name::CUDNN_ATTR_TENSOR_VECTOR_COUNT)?.unwrap_or(1);
        supports(vector == 1 && count == 1, "a graph with vectors of channels")?;
        let sizes = of.integers(Name::CUDNN_ATTR_TENSOR_DIMENSIONS)?;
        let strides = of.integers(Name::CUDNN_ATTR_TENSOR_STRIDES)?;
        require(
            !sizes.is_empty() && sizes.len() == strides.len(),
            "a tensor has not as many strides as sizes",
        )?;
        supports(sizes.len() <= tensor::MOST, "a tensor of more than eight sizes")?;
        require(sizes.iter().all(|&size| size > 0), "a tensor's size is not positive")?;
        require(strides.iter().all(|&stride| stride >= 0), "a tensor's stride is negative")?;
        let uid = of.integer(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID)?;
        let uid = uid.ok_or(Error::BadParam("a tensor has no unique number"))?;
        let mut sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
        let mut strides: Vec<isize> = strides.iter().map(|&stride| stride as isize).collect();
        if let Some(other) = overrides.get(&uid) {
            require(other.0.len() == sizes.len(), "sizes that are overridden are others in number")?;
            (sizes, strides) = other.clone();
        }
        let layout = Layout::of(of, &sizes, &strides)?;
        let is_value = of.number(Name::CUDNN_ATTR_TENSOR_IS_BY_VALUE)? != 0;
        supports(!(is_value && layout == Layout::Complex), "a complex number of the host's")?;
        Ok(Tensor {
            uid,
            kind,
            layout,
            sizes,
            strides,
            is_virtual: of.number(Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL)? != 0,
            is_value,
            constant: of.constant,
            first: [0; 3],
        })
    }

    /// The constant number of a descriptor that is being finalized, which lies in the program's memory until then.
    pub fn constant_of(of: &Descriptor) -> Result<Option<f64>> {
        let name = Name::CUDNN_ATTR_TENSOR_CONSTANT_VALUE;
        let Some(at) = of.integer(name)? else { return Ok(None) };
        let tensor = Tensor::of(of)?;
        require(at != 0 && tensor.is_one_number(), "a constant is not one number")?;
        let at = core::ptr::with_exposed_provenance_mut::<u8>(at as usize);
        // SAFETY: cuDNN's contract: a number of the tensor's type.
        Ok(Some(unsafe { View::new(at, tensor.kind, &[1], &[1]).load::<f64>() }[0]))
    }

    /// Whether it has one element.
    pub fn is_one_number(&self) -> bool {
        self.sizes.iter().all(|&size| size == 1)
    }

    /// Whether its memory is given when a plan is run.
    fn is_given(&self) -> bool {
        !self.is_virtual && self.constant.is_none()
    }

    /// Elements of memory from the first to the last.
    pub fn span(&self) -> usize {
        let last: usize =
            self.sizes.iter().zip(&self.strides).map(|(size, stride)| (size - 1) * *stride as usize).sum();
        last + 1
    }

    /// Whether elements lie in their order without gaps.
    pub fn is_packed(&self) -> bool {
        let mut stride = 1;
        (0..self.sizes.len()).rev().all(|at| {
            let is_next = self.sizes[at] == 1 || self.strides[at] == stride;
            stride *= self.sizes[at] as isize;
            is_next
        })
    }

    /// Its elements in their order.
    ///
    /// # Safety
    /// The memory has what the descriptor says.
    unsafe fn load<V: Value>(&self, at: *mut u8, offsets: &[f64]) -> Vec<V> {
        // SAFETY: the caller's word.
        unsafe { self.layout.load(at, self.kind, (&self.sizes, &self.strides), offsets) }
    }

    /// # Safety
    /// As of [`Tensor::load`].
    unsafe fn store<V: Value>(&self, at: *mut u8, offsets: &[f64], values: &[V]) {
        // SAFETY: the caller's word.
        unsafe { self.layout.store(at, self.kind, (&self.sizes, &self.strides), offsets, values) }
    }
}

/// The tensors that a graph's operations name, as they are looked at.
pub struct Tensors {
    seen: BTreeMap<i64, Tensor>,
    overrides: Overrides,
}

impl Tensors {
    pub fn of(&mut self, operation: &Descriptor, name: Name) -> Result<Option<Tensor>> {
        let node = operation.node(name, Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
        node.map(|node| self.seen(&node)).transpose()
    }

    fn seen(&mut self, node: &Node) -> Result<Tensor> {
        let (tensor, offsets) = {
            let descriptor = node.lock();
            let name = Name::CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC;
            (
                Tensor::overridden(&descriptor, &self.overrides)?,
                descriptor.node(name, Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?,
            )
        };
        // Where rows begin is given as any tensor is.
        if let Some(offsets) = offsets {
            self.seen(&offsets)?;
        }
        match self.seen.get(&tensor.uid) {
            Some(known) => require(*known == tensor, "two tensors have one unique number")?,
            None => _ = self.seen.insert(tensor.uid, tensor.clone()),
        }
        Ok(tensor)
    }

    /// All tensors of an attribute.
    pub fn all(&mut self, operation: &Descriptor, name: Name) -> Result<Vec<Tensor>> {
        operation
            .nodes(name)
            .iter()
            .map(|node| {
                let is_tensor = node.lock().kind == Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR;
                require(is_tensor, "a descriptor that is set is of another kind")?;
                self.seen(node)
            })
            .collect()
    }

    /// The tensors that are given to a part of the graph: what is not virtual there.
    pub fn adopt(&mut self, of: &Graph) -> Result<Vec<Tensor>> {
        let given: Vec<Tensor> = of.tensors.values().filter(|tensor| tensor.is_given()).cloned().collect();
        for tensor in &given {
            let known = self.seen.entry(tensor.uid).or_insert_with(|| tensor.clone());
            require(known == tensor, "two tensors have one unique number")?;
        }
        Ok(given)
    }

    pub fn needed(&mut self, operation: &Descriptor, name: Name) -> Result<Tensor> {
        self.of(operation, name)?.ok_or(Error::BadParam("an operation lacks a tensor"))
    }
}

pub fn described(operation: &Descriptor, name: Name, kind: Of) -> Result<Arc<Node>> {
    operation.node(name, kind)?.ok_or(Error::BadParam("an operation lacks its descriptor"))
}

pub fn three<T: Copy, U>(of: &[T], otherwise: U, into: impl Fn(T) -> U) -> Result<[U; 3]>
where
    U: Copy,
{
    supports((1..=3).contains(&of.len()), "one to three sizes of an image")?;
    let mut three = [otherwise; 3];
    three[3 - of.len()..].iter_mut().zip(of).for_each(|(to, &from)| *to = into(from));
    Ok(three)
}

/// A convolution of these images and filters to these results.
fn convolve(of: &Descriptor, x: &Tensor, w: &Tensor, y: &Tensor, factors: (f64, f64)) -> Result<Convolution> {
    let n =
        of.integer(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)?.unwrap_or(x.sizes.len() as i64 - 2) as usize;
    require(
        [x, w, y].iter().all(|tensor| tensor.sizes.len() == n + 2),
        "sizes are not as many as the convolution's",
    )?;
    let numbers = |name: Name, otherwise: i64| -> Result<Vec<i64>> {
        let numbers = of.integers(name)?;
        let numbers = if numbers.is_empty() { vec![otherwise; n] } else { numbers };
        require(numbers.len() == n, "numbers are not as many as the convolution's sizes")?;
        Ok(numbers)
    };
    let before = numbers(Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0)?;
    let behind = numbers(Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 0)?;
    let stride = numbers(Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1)?;
    let dilation = numbers(Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, 1)?;
    require(
        stride.iter().chain(&dilation).all(|&number| number > 0),
        "a stride or dilation is not positive",
    )?;
    require(before.iter().chain(&behind).all(|&padding| padding >= 0), "a padding is negative")?;
    for at in 0..n {
        let filter = (w.sizes[at + 2] as i64 - 1) * dilation[at] + 1;
        let places = x.sizes[at + 2] as i64 + before[at] + behind[at] - filter;
        let output = if places < 0 { 0 } else { 1 + places / stride[at] };
        require(output == y.sizes[at + 2] as i64, "the result's sizes are others")?;
    }
    let (channels, filters) = (w.sizes[1], w.sizes[0]);
    require(x.sizes[1].is_multiple_of(channels), "the images' channels are not those of the filters")?;
    let groups = x.sizes[1] / channels;
    let fits = filters.is_multiple_of(groups) && y.sizes[1] == filters && x.sizes[0] == y.sizes[0];
    require(fits, "the images, filters and results do not fit each other")?;
    let mode = cudnnConvolutionMode_t(of.number(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE)?);
    let geometry = Geometry {
        images: x.sizes[0],
        groups,
        channels,
        filters: filters / groups,
        input: three(&x.sizes[2..], 1, |size| size)?,
        filter: three(&w.sizes[2..], 1, |size| size)?,
        output: three(&y.sizes[2..], 1, |size| size)?,
        padding: three(&before, 0, |padding| padding as isize)?,
        stride: three(&stride, 1, |stride| stride as usize)?,
        dilation: three(&dilation, 1, |dilation| dilation as usize)?,
    };
    let flipped = if mode == cudnnConvolutionMode_t::CUDNN_CONVOLUTION { n } else { 0 };
    Ok(Convolution { geometry, flipped, alpha: factors.0, beta: factors.1 })
}

/// The function of a pointwise descriptor.
fn function(of: &Descriptor) -> Result<Pointwise> {
    let mode = cudnnPointwiseMode_t(of.number(Name::CUDNN_ATTR_POINTWISE_MODE)?);
    let real = |name: Name, otherwise: f64| Ok::<f64, Error>(of.real(name)?.unwrap_or(otherwise));
    Ok(match mode {
        cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD | cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_BWD => {
            let lower = real(Name::CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0.0)?;
            let upper = real(Name::CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, f64::INFINITY)?;
            let slope = real(Name::CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.0)?;
            let keeps_nan = of.number(Name::CUDNN_ATTR_POINTWISE_NAN_PROPAGATION)? == 1;
            let clip = pointwise::Clip { lower, upper, slope, keeps_nan };
            if mode == cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD {
                Pointwise::Clip(clip)
            } else {
                Pointwise::ClipBackward(clip)
            }
        }
        cudnnPointwiseMode_t::CUDNN_POINTWISE_TANH_FWD => Pointwise::Activation(Activation::Tanh),
        cudnnPointwiseMode_t::CUDNN_POINTWISE_SIGMOID_FWD => Pointwise::Activation(Activation::Sigmoid),
        cudnnPointwiseMode_t::CUDNN_POINTWISE_TANH_BWD => Pointwise::Backward(Activation::Tanh),
        cudnnPointwiseMode_t::CUDNN_POINTWISE_SIGMOID_BWD => Pointwise::Backward(Activation::Sigmoid),
        cudnnPointwiseMode_t::CUDNN_POINTWISE_ELU_FWD | cudnnPointwiseMode_t::CUDNN_POINTWISE_ELU_BWD => {
            let activation = Activation::Elu(real(Name::CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1.0)?);
            if mode == cudnnPointwiseMode_t::CUDNN_POINTWISE_ELU_FWD {
                Pointwise::Activation(activation)
            } else {
                Pointwise::Backward(activation)
            }
        }
        cudnnPointwiseMode_t::CUDNN_POINTWISE_SWISH_FWD | cudnnPointwiseMode_t::CUDNN_POINTWISE_SWISH_BWD => {
            let activation = Activation::Swish(real(Name::CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.0)?);
            if mode == cudnnPointwiseMode_t::CUDNN_POINTWISE_SWISH_FWD {
                Pointwise::Activation(activation)
            } else {
                Pointwise::Backward(activation)
            }
        }
        cudnnPointwiseMode_t::CUDNN_POINTWISE_SOFTPLUS_FWD => {
            Pointwise::Softplus(real(Name::CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1.0)?)
        }
        cudnnPointwiseMode_t::CUDNN_POINTWISE_SOFTPLUS_BWD => {
            Pointwise::SoftplusBackward(real(Name::CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1.0)?)
        }
        cudnnPointwiseMode_t::CUDNN_POINTWISE_GELU_FWD => Pointwise::Gelu,
        cudnnPointwiseMode_t::CUDNN_POINTWISE_GELU_APPROX_TANH_FWD => Pointwise::GeluByTanh,
        cudnnPointwiseMode_t::CUDNN_POINTWISE_GEN_INDEX => {
            Pointwise::Index(of.integer(Name::CUDNN_ATTR_POINTWISE_AXIS)?.unwrap_or(0) as usize)
        }
        _ => pointwise::PLAIN
            .iter()
            .find(|(number, _)| *number == mode.0)
            .map(|(_, function)| *function)
            .ok_or(Error::NotSupported("a pointwise operation of this mode"))?,
    })
}

impl Operation {
    fn of(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        match of.kind {
            Of::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR => {
                let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)?;
                let w = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)?;
                let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y)?;
                let (alpha, beta) = (
                    of.real(Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA)?,
                    of.real(Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA)?,
                );
                let by = described(
                    of,
                    Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                    Of::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                )?;
                let work = convolve(&by.lock(), &x, &w, &y, (alpha.unwrap_or(1.0), beta.unwrap_or(0.0)))?;
                Ok(Operation { work: Work::Forward(work), takes: vec![x.uid, w.uid], gives: vec![y.uid] })
            }
            Of::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR => {
                let dx = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX)?;
                let w = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W)?;
                let dy = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)?;
                let (alpha, beta) = (
                    of.real(Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA)?,
                    of.real(Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA)?,
                );
                let by = described(
                    of,
                    Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                    Of::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                )?;
                let work = convolve(&by.lock(), &dx, &w, &dy, (alpha.unwrap_or(1.0), beta.unwrap_or(0.0)))?;
                Ok(Operation {
                    work: Work::BackwardData(work),
                    takes: vec![w.uid, dy.uid],
                    gives: vec![dx.uid],
                })
            }
            Of::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR => {
                let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)?;
                let dw = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW)?;
                let dy = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)?;
                let (alpha, beta) = (
                    of.real(Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA)?,
                    of.real(Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA)?,
                );
                let by = described(
                    of,
                    Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                    Of::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                )?;
                let work = convolve(&by.lock(), &x, &dw, &dy, (alpha.unwrap_or(1.0), beta.unwrap_or(0.0)))?;
                Ok(Operation {
                    work: Work::BackwardFilter(work),
                    takes: vec![x.uid, dy.uid],
                    gives: vec![dw.uid],
                })
            }
            Of::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR => Operation::pointwise(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR => {
                let a = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MATMUL_ADESC)?;
                let b = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MATMUL_BDESC)?;
                let c = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MATMUL_CDESC)?;
                require(
                    matmul::fits(&a.sizes, &b.sizes, &c.sizes),
                    "the matrices' sizes do not fit each other",
                )?;
                let is_complex = [&a, &b, &c].iter().all(|it| it.layout == Layout::Complex);
                let has_limits = Limits::NAMES.iter().any(|name| of.knows(*name));
                if is_complex && !has_limits {
                    let work = Work::Layer(Box::new(Complex));
                    return Ok(Operation { work, takes: vec![a.uid, b.uid], gives: vec![c.uid] });
                }
                let mut takes = layers::Takes(vec![a.uid, b.uid]);
                let limits = Limits::of(of, tensors, &mut takes, [&a, &b, &c])?;
                Ok(Operation { work: Work::Matmul(limits), takes: takes.0, gives: vec![c.uid] })
            }
            Of::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR => {
                let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_REDUCTION_XDESC)?;
                let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_REDUCTION_YDESC)?;
                let by = described(
                    of,
                    Name::CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                    Of::CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                )?;
                let op = cudnnReduceTensorOp_t(by.lock().number(Name::CUDNN_ATTR_REDUCTION_OPERATOR)?);
                let known = op <= cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
                supports(known, "a reduction of this kind")?;
                let fits = x.sizes.len() == y.sizes.len()
                    && x.sizes.iter().zip(&y.sizes).all(|(x, y)| x.is_multiple_of(*y));
                require(fits, "a size of the result does not divide the tensor's")?;
                let split = x.sizes.iter().zip(&y.sizes).filter(|(x, y)| x != y && **y != 1).count();
                supports(x.sizes.len() + split <= cudnn_cpu::MOST, "a reduction of so many sizes")?;
                let work = Work::Reduce(crate::api::reduction::of_number(op));
                Ok(Operation { work, takes: vec![x.uid], gives: vec![y.uid] })
            }
            Of::CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR => pooling::forward(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR => pooling::backward(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR => Norm::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR => NormBackward::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR => Softmax::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR => layers::concat(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_SLICE_DESCRIPTOR => Slice::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR => layers::reshape(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR => Band::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR => Attention::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR => AttentionBackward::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR => statistics::sums(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR => {
                statistics::finalize(of, tensors)
            }
            Of::CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR => statistics::backward(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR => moves::transpose(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR => rotation::forward(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR => rotation::backward(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR => moves::pages(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR => random::operation(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR => blocks::quantize(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR => blocks::dequantize(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR => grouped::forward(of, tensors),
            Of::CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_BWD_DESCRIPTOR => grouped::backward(of, tensors),
            _ => Err(Error::Bad(
                cudnnStatus_t::CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                "no engine has an operation of this graph",
            )),
        }
    }

    fn pointwise(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        let by = described(
            of,
            Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
            Of::CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
        )?;
        let function = function(&by.lock())?;
        let x = tensors.of(of, Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC)?;
        let b = tensors.of(of, Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC)?;
        let t = tensors.of(of, Name::CUDNN_ATTR_OPERATION_POINTWISE_TDESC)?;
        let dy = tensors.of(of, Name::CUDNN_ATTR_OPERATION_POINTWISE_DYDESC)?;
        let y = tensors.of(of, Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC)?;
        let dx = tensors.of(of, Name::CUDNN_ATTR_OPERATION_POINTWISE_DXDESC)?;
        let alpha = of.real(Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1)?.unwrap_or(1.0);
        let beta = of.real(Name::CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2)?.unwrap_or(1.0);
        let function = match function {
            // A gradient is told by what the function was of, or by what it was.
            Pointwise::Backward(activation) if x.is_none() && y.is_some() => {
                let is_told = matches!(activation, Activation::Tanh | Activation::Sigmoid);
                supports(is_told, "this gradient, told by the function's result")?;
                Pointwise::BackwardOfResult(activation)
            }
            _ => function,
        };
        let (taken, given) = match function.takes() {
            _ if function.is_backward() => (vec![x.or(y), dy], dx),
            1 => (vec![x], y),
            2 => (vec![x, b], y),
            _ => (vec![x, b, t], y),
        };
        let taken = taken.into_iter().collect::<Option<Vec<_>>>();
        let (Some(taken), Some(given)) = (taken, given) else {
            return Err(Error::BadParam("a pointwise operation lacks a tensor"));
        };
        let repeats = |from: &Tensor| {
            from.sizes.len() == given.sizes.len()
                && from.sizes.iter().zip(&given.sizes).all(|(from, to)| from == to || *from == 1)
        };
        require(taken.iter().all(repeats), "a tensor's size is neither the result's nor 1")?;
        if let Pointwise::Index(axis) = function {
            require(axis < given.sizes.len(), "the tensor has no such axis")?;
        }
        let takes = taken.iter().map(|tensor| tensor.uid).collect();
        Ok(Operation { work: Work::Pointwise(function, alpha, beta), takes, gives: vec![given.uid] })
    }
}

impl Graph {
    /// Looks at the operations of a graph.
    pub fn new(nodes: &[Arc<Node>]) -> Result<Graph> {
        Graph::of_sizes(nodes, Overrides::new())
    }

    /// The same of tensors of other sizes.
    pub fn overridden(&self, overrides: Overrides) -> Result<Graph> {
        Graph::of_sizes(&self.nodes, overrides::inferred(&self.nodes, overrides)?)
    }

    fn of_sizes(nodes: &[Arc<Node>], overrides: Overrides) -> Result<Graph> {
        require(!nodes.is_empty(), "a graph has an operation")?;
        let mut tensors = Tensors { seen: BTreeMap::new(), overrides };
        let operations =
            nodes.iter().map(|node| Operation::of(&node.lock(), &mut tensors)).collect::<Result<Vec<_>>>()?;
        let mut tensors = tensors.seen;
        // NVIDIA's engine for graphs that only move elements and compute with each has a byte for a boolean; the others' have a bit.
        if operations.iter().all(|operation| operation.work.is_elementwise()) {
            let bits = tensors.values_mut().filter(|tensor| tensor.kind == Kind::Bit);
            bits.for_each(|tensor| tensor.kind = Kind::Bool);
        }
        let mut gives = BTreeSet::new();
        for operation in &operations {
            let is_complex = |uid: &i64| tensors[uid].layout == Layout::Complex;
            let knows_them = matches!(&operation.work, Work::Layer(of) if of.is_complex());
            let has_them = operation.takes.iter().chain(&operation.gives).any(is_complex);
            supports(knows_them || !has_them, "complex numbers but in products of them")?;
            for uid in &operation.gives {
                require(gives.insert(*uid), "two operations give one tensor")?;
                require(!tensors[uid].is_value, "an operation gives a number of the host's")?;
            }
        }
        let taken: BTreeSet<i64> =
            operations.iter().flat_map(|operation| &operation.takes).copied().collect();
        let is_virtual = |uid: &&i64| tensors[*uid].is_virtual;
        let lacks: Vec<i64> =
            taken.iter().filter(is_virtual).filter(|uid| !gives.contains(uid)).copied().collect();
        // One that another graph's attention gives, where there is a result for that to take.
        let is_part = lacks.len() == 1 && gives.iter().filter(is_virtual).any(|uid| !taken.contains(uid));
        require(lacks.is_empty() || is_part, "a virtual tensor is taken that nothing gives")?;
        let counts = operations.iter().flat_map(Operation::counts);
        let counts: BTreeSet<i64> =
            counts.chain(tensors.values().filter_map(|tensor| tensor.layout.offsets())).collect();
        let is_exact = |tensor: &Tensor| tensor.is_virtual || counts.contains(&tensor.uid);
        let is_wide = |tensor: &&Tensor| {
            tensor.kind == Kind::F64 || (tensor::is_double(tensor.kind) && !is_exact(tensor))
        };
        let wide: Vec<&Tensor> = tensors.values().filter(is_wide).collect();
        let exact: BTreeSet<i64> = operations.iter().flat_map(Operation::exact).collect();
        let is_double = !wide.is_empty();
        let is_double_to_kernels = wide.iter().any(|it| it.kind == Kind::F64 || !exact.contains(&it.uid));
        let operations = in_order(operations, &gives)?;
        let stretches = parts::stretches(&operations, &tensors);
        Ok(Graph {
            operations,
            stretches,
            tensors,
            is_double,
            is_double_to_kernels,
            lacks: lacks.first().copied(),
            nodes: nodes.to_vec(),
        })
    }

    /// The virtual tensor that another graph has to give, of one that is a part.
    pub fn lacks(&self) -> Option<i64> {
        self.lacks
    }

    pub fn tensors(&self) -> &BTreeMap<i64, Tensor> {
        &self.tensors
    }

    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// A virtual tensor's sizes.
    pub fn sizes(&self, uid: i64) -> Option<&[usize]> {
        self.tensors.get(&uid).filter(|tensor| tensor.is_virtual).map(|tensor| &tensor.sizes[..])
    }

    /// Whether one of the operations gives the tensor.
    pub fn gives(&self, uid: i64) -> bool {
        self.operations.iter().any(|operation| operation.gives.contains(&uid))
    }

    /// A part's result from all that it is given.
    pub fn result<V: Value>(&self, mut values: BTreeMap<i64, Vec<V>>, output: i64) -> Vec<V> {
        // SAFETY: no memory is given: all is among the values.
        unsafe { self.execute(0..self.operations.len(), &mut values, &BTreeMap::new(), Some(output)) };
        values.remove(&output).unwrap_or_default()
    }

    /// Whether a part of a graph, which takes scores of these sizes, can be run by rows of them.
    pub fn keeps_rows(&self, all: [usize; 3]) -> bool {
        parts::keeps_rows(&self.operations, &self.tensors, all)
    }

    /// As [`Graph::result`], of some rows: the input is those, the others are given whole.
    pub fn rows<V: Value>(
        &self,
        part: &Part,
        input: (i64, Vec<V>),
        others: &[(i64, &[V])],
        output: i64,
    ) -> Vec<V> {
        let mut values = BTreeMap::from([input]);
        for operation in &self.operations {
            let of = |uid: &i64| self.tensors[uid].part(part);
            let takes: Vec<_> = operation.takes.iter().map(of).collect();
            let to: Vec<_> = operation.gives.iter().map(|uid| of(uid).0).collect();
            let constant = |tensor: &Tensor| [V::of(tensor.constant.unwrap_or(0.0))];
            let constants: Vec<[V; 1]> = takes.iter().map(|(tensor, _)| constant(tensor)).collect();
            let taken: Vec<(&Tensor, &[V])> = operation
                .takes
                .iter()
                .zip(&takes)
                .zip(&constants)
                .map(|((uid, (tensor, places)), constant)| {
                    if let Some(own) = values.get(uid) {
                        return (tensor, &own[..]);
                    }
                    let other = others.iter().find(|(other, _)| other == uid);
                    (tensor, other.map_or(&constant[..], |(_, values)| &values[places.clone()]))
                })
                .collect();
            let made = operation.work.run(&to.iter().collect::<Vec<_>>(), None, &taken);
            values.extend(operation.gives.iter().copied().zip(made));
        }
        values.remove(&output).unwrap_or_default()
    }

    /// The tensors that a run has to be given, and whether they are numbers of the host's.
    pub fn wanted(&self) -> impl Iterator<Item = (i64, bool)> {
        self.tensors.values().filter(|tensor| tensor.is_given()).map(|tensor| (tensor.uid, tensor.is_value))
    }

    /// Looks at what is given for a tensor: an address of the device's, or of a number that is read here.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    pub unsafe fn given(&self, uid: i64, at: *mut u8) -> Result<Given> {
        let tensor = &self.tensors[&uid];
        require(!at.is_null(), "a tensor's memory is NULL")?;
        require(
            at.addr().is_multiple_of(tensor.kind.bytes()),
            "a tensor's memory is not aligned to its type",
        )?;
        if !tensor.is_value {
            return Ok(Given::Memory(Address(at)));
        }
        // SAFETY: cuDNN's contract: one number in the host's memory.
        let value = unsafe { View::new(at, tensor.kind, &[1], &[1]).load::<f64>() };
        Ok(Given::Value(value[0]))
    }

    /// # Safety
    /// The memory of all tensors is there.
    pub unsafe fn run(&self, given: &BTreeMap<i64, Given>) {
        // SAFETY: the caller's word.
        unsafe { self.run_part(0..self.operations.len(), given) };
    }

    /// Runs some operations. What goes to others or comes from them lies in memory.
    ///
    /// # Safety
    /// As of [`Graph::run`].
    pub unsafe fn run_part(&self, operations: Range<usize>, given: &BTreeMap<i64, Given>) {
        if self.is_double {
            // SAFETY: the caller's word.
            unsafe { self.execute::<f64>(operations, &mut BTreeMap::new(), given, None) };
        } else {
            // SAFETY: as above.
            unsafe { self.execute::<f32>(operations, &mut BTreeMap::new(), given, None) };
        }
    }

    /// Values are there until the last operation that takes them has run, but for the one that is asked for.
    ///
    /// # Safety
    /// As of [`Graph::run`].
    unsafe fn execute<V: Value>(
        &self,
        operations: Range<usize>,
        values: &mut BTreeMap<i64, Vec<V>>,
        given: &BTreeMap<i64, Given>,
        asked: Option<i64>,
    ) {
        let mut last: BTreeMap<i64, usize> = BTreeMap::new();
        for number in operations.clone() {
            last.extend(self.operations[number].takes.iter().map(|uid| (*uid, number)));
        }
        let mut number = operations.start;
        while number < operations.end {
            let stretch = self.stretches.iter().find(|it| it.operations.start == number);
            let end = stretch.map_or(number + 1, |it| it.operations.end);
            let is_later = |uid: &i64| last.get(uid).is_some_and(|last| *last >= end) || Some(*uid) == asked;
            let within = &self.operations[number..end];
            for uid in within.iter().flat_map(|it| &it.takes) {
                let is_own = stretch.is_some() && within.iter().any(|it| it.gives.contains(uid));
                if !values.contains_key(uid) && !is_own {
                    // SAFETY: the caller's word.
                    values.insert(*uid, unsafe { self.loaded(*uid, given) });
                }
            }
            let made = match stretch {
                Some(stretch) => stretch.run(&self.operations, &self.tensors, values, |uid| {
                    is_later(&uid) || self.placed(uid, given).is_some()
                }),
                // SAFETY: the caller's word.
                None => unsafe { self.made(&within[0], values, given) },
            };
            for (uid, made) in made {
                if let Some((tensor, at)) = self.placed(uid, given) {
                    // SAFETY: as above.
                    unsafe { tensor.store(at, &self.offsets(&tensor, given), &made) };
                }
                values.insert(uid, made);
            }
            values.retain(|uid, _| is_later(uid));
            number = end;
        }
    }

    /// What one operation gives.
    ///
    /// # Safety
    /// As of [`Graph::run`].
    unsafe fn made<V: Value>(
        &self,
        operation: &Operation,
        values: &BTreeMap<i64, Vec<V>>,
        given: &BTreeMap<i64, Given>,
    ) -> BTreeMap<i64, Vec<V>> {
        let to: Vec<&Tensor> = operation.gives.iter().map(|uid| &self.tensors[uid]).collect();
        let before = match (&operation.work, given.get(&to[0].uid)) {
            (
                Work::Forward(by) | Work::BackwardData(by) | Work::BackwardFilter(by),
                Some(Given::Memory(at)),
            ) if by.beta != 0.0 && !to[0].is_virtual => {
                // SAFETY: the caller's word.
                Some(unsafe { to[0].load(at.get(), &self.offsets(to[0], given)) })
            }
            _ => None,
        };
        let taken: Vec<(&Tensor, &[V])> =
            operation.takes.iter().map(|uid| (&self.tensors[uid], &values[uid][..])).collect();
        operation.gives.iter().copied().zip(operation.work.run(&to, before, &taken)).collect()
    }

    /// A tensor as it lies in memory, and where.
    fn placed(&self, uid: i64, given: &BTreeMap<i64, Given>) -> Option<(Cow<'_, Tensor>, *mut u8)> {
        let tensor = &self.tensors[&uid];
        match given.get(&uid)? {
            Given::Memory(at) => Some((Cow::Borrowed(tensor), at.get())),
            Given::Made(at, kind) => Some((Cow::Owned(Tensor { kind: *kind, ..tensor.clone() }), at.get())),
            Given::Value(_) => None,
        }
    }

    /// The elements of a tensor that no operation has given so far.
    ///
    /// # Safety
    /// As of [`Graph::run`].
    unsafe fn loaded<V: Value>(&self, uid: i64, given: &BTreeMap<i64, Given>) -> Vec<V> {
        let tensor = &self.tensors[&uid];
        match (tensor.constant, self.placed(uid, given)) {
            // SAFETY: the caller's word.
            (None, Some((tensor, at))) => unsafe { tensor.load(at, &self.offsets(&tensor, given)) },
            (constant, _) => {
                let given = match given.get(&uid) {
                    Some(Given::Value(value)) => *value,
                    // A run is given all that it wants.
                    _ => 0.0,
                };
                vec![V::of(constant.unwrap_or(given)); tensor.elements()]
            }
        }
    }

    /// Where a tensor's rows begin, if that is given.
    ///
    /// # Safety
    /// As of [`Graph::run`].
    unsafe fn offsets(&self, of: &Tensor, given: &BTreeMap<i64, Given>) -> Vec<f64> {
        match of.layout.offsets().and_then(|uid| Some((&self.tensors[&uid], given.get(&uid)?))) {
            // SAFETY: the caller's word.
            Some((tensor, Given::Memory(at))) => unsafe { tensor.load(at.get(), &[]) },
            Some((_, Given::Value(value))) => vec![*value],
            _ => Vec::new(),
        }
    }
}

/// Each operation behind those that it takes from.
fn in_order(operations: Vec<Operation>, given: &BTreeSet<i64>) -> Result<Vec<Operation>> {
    let (mut ordered, mut done, mut left) = (Vec::new(), BTreeSet::<i64>::new(), operations);
    while !left.is_empty() {
        let ready = |operation: &Operation| {
            operation.takes.iter().all(|uid| !given.contains(uid) || done.contains(uid))
        };
        let next = left.iter().position(ready).ok_or(Error::BadParam("operations wait for each other"))?;
        let operation = left.remove(next);
        done.extend(&operation.gives);
        ordered.push(operation);
    }
    Ok(ordered)
}

impl Operation {
    /// The tensors whose numbers count others.
    fn counts(&self) -> impl Iterator<Item = i64> {
        let places: Vec<usize> = match &self.work {
            Work::Attention(of) => of.counts().collect(),
            Work::AttentionBackward(of) => of.counts().collect(),
            Work::Band(of) => of.counts().collect(),
            Work::Layer(of) => of.counts(),
            Work::Matmul(of) => of.0.into_iter().flatten().collect(),
            _ => Vec::new(),
        };
        places.into_iter().map(|place| self.takes[place])
    }

    /// The tensors whose numbers kernels take and give exactly, whatever their type.
    fn exact(&self) -> Vec<i64> {
        match &self.work {
            Work::Layer(of) => of.exact(self),
            Work::Attention(of) => of.seeds().map(|place| self.takes[place]).collect(),
            _ => Vec::new(),
        }
    }
}

/// A product of complex matrices: real parts, then imaginary ones.
struct Complex;

impl Layer for Complex {
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let [(a, a_values), (b, b_values)] = [taken[0], taken[1]];
        let to = &gives[0].sizes;
        let count: usize = to.iter().product();
        let (a_parts, b_parts) =
            (a_values.split_at(a_values.len() / 2), b_values.split_at(b_values.len() / 2));
        let product = |a_values: &[f64], b_values: &[f64]| {
            let mut made = vec![0.0; count];
            matmul::product((a_values, &a.sizes), (b_values, &b.sizes), (&mut made, to));
            made
        };
        let both = |a: Vec<f64>, b: Vec<f64>, sign: f64| -> Vec<f64> {
            a.into_iter().zip(b).map(|(a, b)| a + sign * b).collect()
        };
        let real = both(product(a_parts.0, b_parts.0), product(a_parts.1, b_parts.1), -1.0);
        let imaginary = both(product(a_parts.0, b_parts.1), product(a_parts.1, b_parts.0), 1.0);
        vec![[real, imaginary].concat()]
    }

    fn is_complex(&self) -> bool {
        true
    }
}

/// How many of a product's rows and columns there are in each of a batch, and how many products a sum has: where they are among what it takes.
/// What is behind them is 0.
pub struct Limits([Option<usize>; 3]);

impl Limits {
    const NAMES: [Name; 3] = [
        Name::CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
        Name::CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
        Name::CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC,
    ];

    /// Of rows, columns and products, by place among what is taken.
    pub fn places(&self) -> [Option<usize>; 3] {
        self.0
    }

    fn of(
        of: &Descriptor,
        tensors: &mut Tensors,
        takes: &mut layers::Takes,
        matrices: [&Tensor; 3],
    ) -> Result<Limits> {
        let mut limits = [None; 3];
        for (limit, name) in limits.iter_mut().zip(Limits::NAMES) {
            let Some(tensor) = tensors.of(of, name)? else { continue };
            let batch = tensor.sizes[0];
            let is_one_each = tensor.sizes[1..].iter().all(|size| *size == 1);
            require(
                tensor.sizes.len() > 2 && is_one_each,
                "a product's limits are not one for each of a batch",
            )?;
            let fits = matrices.iter().all(|matrix| matrix.sizes.len() > 2 && matrix.sizes[0] == batch);
            supports(fits, "limits of a product whose matrices are repeated by batch")?;
            *limit = Some(takes.add(&tensor));
        }
        Ok(Limits(limits))
    }
}

/// Matrices with 0 behind so many rows and columns, which each of a batch has its own of.
fn cut<'v, V: Value>(
    values: &'v [V],
    sizes: &[usize],
    rows: Option<&[V]>,
    columns: Option<&[V]>,
) -> Cow<'v, [V]> {
    if rows.is_none() && columns.is_none() {
        return Cow::Borrowed(values);
    }
    let mut values = values.to_vec();
    let (n, of_batch) = (sizes.len(), sizes[1..].iter().product::<usize>());
    let limit = |of: Option<&[V]>, batch: usize, size: usize| {
        of.map_or(size, |of| (of[batch].get().max(0.0) as usize).min(size))
    };
    for (batch, matrices) in values.chunks_mut(of_batch.max(1)).enumerate() {
        let rows = limit(rows, batch, sizes[n - 2]);
        let columns = limit(columns, batch, sizes[n - 1]);
        for (number, row) in matrices.chunks_mut(sizes[n - 1]).enumerate() {
            let left = if number % sizes[n - 2] < rows { columns } else { 0 };
            row[left..].fill(V::of(0.0));
        }
    }
    Cow::Owned(values)
}

fn widened<V: Value>(values: &[V]) -> Cow<'_, [f64]> {
    Cow::Owned(values.iter().map(|value| value.get()).collect())
}

/// Sizes of a reduction whose result has 1 in place of each that is reduced: one of which a part is, is two.
fn split(from: &[usize], to: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let halves = |(&from, &to): (&usize, &usize)| {
        if from == to || to == 1 { vec![(from, to)] } else { vec![(to, to), (from / to, 1)] }
    };
    from.iter().zip(to).flat_map(halves).unzip()
}

impl Work {
    /// Whether it computes with each element by itself, or moves them.
    fn is_elementwise(&self) -> bool {
        match self {
            Work::Pointwise(..) | Work::Concat(_) | Work::Slice(_) | Work::Reshape(_) => true,
            Work::Layer(of) => of.only_moves(),
            _ => false,
        }
    }

    /// For the log.
    pub fn name(&self) -> &'static str {
        match self {
            Work::Layer(_) => "a layer",
            Work::Forward(_) => "a convolution",
            Work::BackwardData(_) | Work::BackwardFilter(_) => "a convolution's gradient",
            Work::Pointwise(..) => "a pointwise operation",
            Work::Matmul(_) => "a product",
            Work::Reduce(_) => "a reduction",
            Work::Pool(..) => "a resampling",
            Work::PoolBackward(..) => "a resampling's gradient",
            Work::Norm(_) => "a normalization",
            Work::NormBackward(_) => "a normalization's gradient",
            Work::Softmax(_) => "a softmax",
            Work::Concat(_) | Work::Slice(_) | Work::Reshape(_) => "a change of places",
            Work::Band(_) => "a mask along a diagonal",
            Work::Attention(_) => "attention",
            Work::AttentionBackward(_) => "attention's gradient",
        }
    }

    pub fn run<V: Value>(
        &self,
        given: &[&Tensor],
        before: Option<Vec<V>>,
        taken: &[(&Tensor, &[V])],
    ) -> Vec<Vec<V>> {
        let to = given[0];
        let count = to.sizes.iter().product();
        let mut made = before.unwrap_or_else(|| vec![V::of(0.0); count]);
        match self {
            Work::Forward(by) => {
                let w = by.turned(taken[1].0, taken[1].1);
                convolution::forward(
                    &by.geometry,
                    V::of(by.alpha),
                    taken[0].1,
                    &w,
                    V::of(by.beta),
                    &mut made,
                );
            }
            Work::BackwardData(by) => {
                let w = by.turned(taken[0].0, taken[0].1);
                convolution::backward_data(
                    &by.geometry,
                    V::of(by.alpha),
                    &w,
                    taken[1].1,
                    V::of(by.beta),
                    &mut made,
                );
            }
            Work::BackwardFilter(by) => {
                let mut turned = by.turned(to, &made);
                let (alpha, beta) = (V::of(by.alpha), V::of(by.beta));
                convolution::backward_filter(&by.geometry, alpha, taken[0].1, taken[1].1, beta, &mut turned);
                made = by.turned(to, &turned);
            }
            Work::Pointwise(function, alpha, beta) => {
                let arrays: Vec<Cow<[V]>> = taken
                    .iter()
                    .map(|(tensor, values)| pointwise::repeated(values, &tensor.sizes, &to.sizes))
                    .collect();
                made = function.apply(&arrays, (*alpha, *beta), &to.sizes);
                if let Pointwise::Index(axis @ 0..3) = function {
                    let first = V::of(to.first[*axis] as f64);
                    made.iter_mut().for_each(|place| *place += first);
                }
            }
            Work::Matmul(of) => {
                let [(a, a_values), (b, b_values)] = [taken[0], taken[1]];
                let [rows, columns, depth] = of.0.map(|place| place.map(|place| taken[place].1));
                let a_values = cut(a_values, &a.sizes, None, depth);
                let b_values = cut(b_values, &b.sizes, depth, None);
                matmul::product((&a_values, &a.sizes), (&b_values, &b.sizes), (&mut made, &to.sizes));
                if rows.is_some() || columns.is_some() {
                    made = cut(&made, &to.sizes, rows, columns).into_owned();
                }
            }
            Work::Reduce(of) => {
                let (from, to) = split(&taken[0].0.sizes, &to.sizes);
                made = reduce(*of, true, &from, &to, taken[0].1).0;
            }
            Work::Pool(mode, window, alpha) => {
                cudnn_cpu::pooling::forward(*mode, window, taken[0].1, &mut made);
                if *alpha != 1.0 {
                    made.iter_mut().for_each(|value| *value = V::of(*alpha) * *value);
                }
            }
            Work::PoolBackward(mode, window, alpha) => {
                let images = taken.get(1).map_or(&[][..], |(_, x)| x);
                cudnn_cpu::pooling::backward(*mode, window, images, taken[0].1, &mut made);
                made.iter_mut().for_each(|value| *value = V::of(*alpha) * *value);
            }
            Work::Concat(axis) => made = layers::join(*axis, taken),
            Work::Slice(of) => made = of.run(to, taken[0]),
            Work::Band(of) => made = of.run(taken),
            Work::Reshape(is_view) => made = layers::reshaped(*is_view, to, taken[0]),
            Work::Layer(of) => {
                let arrays: Vec<Cow<[f64]>> = taken.iter().map(|(_, values)| widened(values)).collect();
                let taken: Vec<(&Tensor, &[f64])> =
                    taken.iter().zip(&arrays).map(|((tensor, _), values)| (*tensor, &values[..])).collect();
                let made = of.run(given, &taken);
                return made
                    .into_iter()
                    .map(|values| values.into_iter().map(|value| V::of(value)).collect())
                    .collect();
            }
            Work::Norm(of) => return of.run(taken),
            Work::NormBackward(of) => return of.run(taken),
            Work::Softmax(of) => return of.run(taken),
            Work::Attention(of) => return of.run(taken),
            Work::AttentionBackward(of) => return of.run(taken),
        }
        vec![made]
    }
}

impl Convolution {
    /// The filter, turned round where the mode is a convolution's proper.
    fn turned<V: Value>(&self, of: &Tensor, values: &[V]) -> Vec<V> {
        if self.flipped == 0 {
            return values.to_vec();
        }
        // Turning all of a filter's own sizes round is turning its taps' order round.
        let taps: usize = of.sizes[of.sizes.len() - self.flipped..].iter().product();
        values.chunks(taps).flat_map(|taps| taps.iter().rev().copied()).collect()
    }
}
