//! MIOpen's descriptors, made of ours for a call, and memory of the device's for what it needs between two of its own.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::sync::Arc;

use cuda_abi::CUdeviceptr;
use kit::driver::{check, driver};

use super::call::call;
use super::convert::{self, DATA_TYPES, number};
use super::library::{Library, Memory, Raw};
use crate::Result;
use crate::kernels::kept::Kept;
use crate::tensor::{Argument, Tensor, dense};
use crate::types::*;

/// What ends a descriptor.
type Destroy = unsafe extern "C" fn(Raw) -> c_int;

/// One of MIOpen's descriptors.
pub struct Made {
    raw: Raw,
    destroy: Option<Destroy>,
}

// SAFETY: descriptors may be used by any thread.
unsafe impl Send for Made {}
// SAFETY: nobody writes one behind its making.
unsafe impl Sync for Made {}

impl Made {
    pub fn raw(&self) -> Raw {
        self.raw
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: made by the function's partner, ended once.
            unsafe { destroy(self.raw) };
        }
    }
}

/// A new descriptor by the function that makes it and the one that ends it.
macro_rules! make {
    ($library:expr, $create:ident, $destroy:ident) => {{
        let mut raw = ptr::null_mut();
        call!($library, $create(&mut raw))?;
        Made { raw, destroy: $library.functions.$destroy }
    }};
}

/// How elements lie: one behind the other in the order of N, C and the others, or with C last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    ByChannel,
    ChannelsLast,
}

impl Layout {
    fn format(self) -> cudnnTensorFormat_t {
        match self {
            Layout::ByChannel => cudnnTensorFormat_t::CUDNN_TENSOR_NCHW,
            Layout::ChannelsLast => cudnnTensorFormat_t::CUDNN_TENSOR_NHWC,
        }
    }

    /// Whether the tensor lies so. What is of size 1 has any stride.
    fn is_of(self, sizes: &[c_int], strides: &[c_int]) -> bool {
        let wanted = dense(self.format(), sizes);
        sizes.iter().zip(strides).zip(wanted).all(|((&size, &stride), wanted)| size == 1 || stride == wanted)
    }

    /// The one that all of them have.
    pub fn common<'t>(tensors: impl Iterator<Item = (&'t [c_int], &'t [c_int])> + Clone) -> Option<Layout> {
        [Layout::ByChannel, Layout::ChannelsLast]
            .into_iter()
            .find(|layout| tensors.clone().all(|(sizes, strides)| layout.is_of(sizes, strides)))
    }
}

/// Whether elements of all of them lie one behind the other by channels.
pub fn by_channel(tensors: &[&Tensor]) -> bool {
    tensors.iter().all(|tensor| Layout::ByChannel.is_of(&tensor.sizes, &tensor.strides))
}

/// MIOpen's number for the type, where it is one for other things than convolutions.
pub fn plain_type(of: cudnnDataType_t) -> Option<c_uint> {
    number(of, &DATA_TYPES).filter(|_| of != cudnnDataType_t::CUDNN_DATA_BFLOAT16)
}

/// Whether MIOpen can follow the memory: it does not look.
pub fn are_there(arguments: &[&Argument]) -> bool {
    arguments.iter().all(|argument| {
        let bytes = argument.element().map_or(1, |element| element.bytes());
        !argument.memory.is_null() && argument.memory.addr().is_multiple_of(bytes)
    })
}

/// A tensor that lies so.
pub fn tensor(library: &Library, kind: c_uint, sizes: &[c_int], layout: Layout) -> Result<Made> {
    let made = make!(library, miopenCreateTensorDescriptor, miopenDestroyTensorDescriptor);
    let strides = dense(layout.format(), sizes);
    let count = sizes.len() as c_int;
    call!(library, miopenSetTensorDescriptor(made.raw, kind, count, sizes.as_ptr(), strides.as_ptr()))?;
    Ok(made)
}

pub fn convolution(
    library: &Library,
    [padding, stride, dilation]: [&[c_int]; 3],
    groups: c_int,
) -> Result<Made> {
    let made = make!(library, miopenCreateConvolutionDescriptor, miopenDestroyConvolutionDescriptor);
    call!(
        library,
        miopenInitConvolutionNdDescriptor(
            made.raw,
            padding.len() as c_int,
            padding.as_ptr(),
            stride.as_ptr(),
            dilation.as_ptr(),
            convert::CROSS_CORRELATION
        )
    )?;
    if groups != 1 {
        call!(library, miopenSetConvolutionGroupCount(made.raw, groups))?;
    }
    // Our own code's convolutions are all deterministic. Before ROCm 5.7 there is no such setting.
    if let Err(error) = call!(library, miopenSetConvolutionAttribute(made.raw, convert::DETERMINISTIC, 1)) {
        tracing::debug!(target: "cudaway::dnn", "convolutions may differ from run to run: {error}");
    }
    Ok(made)
}

pub fn activation(library: &Library, (mode, [alpha, beta, gamma]): (c_uint, [f64; 3])) -> Result<Made> {
    let made = make!(library, miopenCreateActivationDescriptor, miopenDestroyActivationDescriptor);
    call!(library, miopenSetActivationDescriptor(made.raw, mode, alpha, beta, gamma))?;
    Ok(made)
}

pub fn pooling(library: &Library, mode: c_uint, [window, padding, stride]: [&[c_int]; 3]) -> Result<Made> {
    let made = make!(library, miopenCreatePoolingDescriptor, miopenDestroyPoolingDescriptor);
    call!(
        library,
        miopenSetNdPoolingDescriptor(
            made.raw,
            mode,
            window.len() as c_int,
            window.as_ptr(),
            padding.as_ptr(),
            stride.as_ptr()
        )
    )?;
    // Indices of any image fit.
    call!(library, miopenSetPoolingIndexType(made.raw, convert::INDICES_OF_32))?;
    call!(library, miopenSetPoolingWorkSpaceIndexMode(made.raw, convert::INDICES_OF_IMAGE))?;
    Ok(made)
}

pub fn lrn(library: &Library, of: cudnn_cpu::lrn::Lrn) -> Result<Made> {
    let made = make!(library, miopenCreateLRNDescriptor, miopenDestroyLRNDescriptor);
    let n = of.n as c_uint;
    call!(library, miopenSetLRNDescriptor(made.raw, convert::ACROSS_CHANNELS, n, of.alpha, of.beta, of.k))?;
    Ok(made)
}

/// A reduction in single precision that tells no places.
pub fn reduction(library: &Library, op: c_uint, nan: c_uint) -> Result<Made> {
    let made = make!(library, miopenCreateReduceTensorDescriptor, miopenDestroyReduceTensorDescriptor);
    let [indices, of_32] = convert::NO_INDICES;
    call!(library, miopenSetReduceTensorDescriptor(made.raw, op, convert::SINGLE, nan, indices, of_32))?;
    Ok(made)
}

/// Copies on the device in stream order, where the two are not one.
pub fn copy(stream: cudaStream_t, from: Memory, to: Memory, bytes: usize) -> Result {
    if from == to {
        return Ok(());
    }
    let [from, to] = [from, to].map(|at| at.addr() as CUdeviceptr);
    // SAFETY: the driver looks at the addresses.
    let code = unsafe { (driver()?.cuMemcpyDtoDAsync_v2)(to, from, bytes, stream) };
    Ok(check("cuMemcpyDtoDAsync_v2", code)?)
}

/// Memory of the device's that is there in stream order.
pub struct Room {
    at: CUdeviceptr,
    of: Source,
}

/// Who has the memory when it is not needed any more.
enum Source {
    Stream(cudaStream_t),
    Graph(Arc<Kept>),
}

impl Room {
    pub fn new(stream: cudaStream_t, bytes: usize) -> Result<Room> {
        let mut at = CUdeviceptr::default();
        if bytes > 0 {
            // SAFETY: a place for the answer.
            let code = unsafe { (driver()?.cuMemAllocAsync)(&mut at, bytes, stream) };
            check("cuMemAllocAsync", code)?;
        }
        Ok(Room { at, of: Source::Stream(stream) })
    }

    /// What a graph keeps.
    pub fn kept(of: Arc<Kept>, at: CUdeviceptr) -> Room {
        Room { at, of: Source::Graph(of) }
    }

    /// NULL where it has no bytes.
    pub fn at(&self) -> Memory {
        ptr::with_exposed_provenance_mut::<c_void>(self.at as usize)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        match &self.of {
            Source::Graph(kept) => kept.give_back(self.at),
            Source::Stream(stream) => {
                if self.at != 0
                    && let Ok(driver) = driver()
                {
                    // SAFETY: of `new`; what was enqueued before uses it before it is gone.
                    unsafe { (driver.cuMemFreeAsync)(self.at, *stream) };
                }
            }
        }
    }
}
