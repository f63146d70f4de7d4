//! Causal convolutions of sequences. Source: cuDNN manual, "cudnn_subquadratic_ops library".
//!
//! They have no handle: the calling thread's device computes.

use core::ffi::{c_int, c_void};

use cudnn_cpu::View;
use cudnn_cpu::causal::{self, Activation, Shape};

use crate::error::{require, supports};
use crate::handle::on_stream;
use crate::tensor::kind;
use crate::types::*;
use crate::{Result, memory};

/// Sequences of channels, and how they lie: place by place where channels are the innermost.
#[derive(Clone, Copy)]
struct Sequences {
    batch: usize,
    shape: Shape,
    of: cudnnDataType_t,
    activation: Activation,
    is_by_place: bool,
}

impl Sequences {
    fn new(
        [batch, channels, length, taps]: [c_int; 4],
        of: cudnnDataType_t,
        activation: cudnnCausalConv1dActivation_t,
        is_by_place: bool,
    ) -> Result<Sequences> {
        require([batch, channels, length, taps].iter().all(|&size| size > 0), "a size is not positive")?;
        supports(matches!(taps, 2..=8 | 16 | 32 | 64 | 128 | 256), "a causal convolution of so many taps")?;
        let is_float = matches!(
            of,
            cudnnDataType_t::CUDNN_DATA_FLOAT
                | cudnnDataType_t::CUDNN_DATA_DOUBLE
                | cudnnDataType_t::CUDNN_DATA_HALF
                | cudnnDataType_t::CUDNN_DATA_BFLOAT16
        );
        supports(is_float, "a causal convolution of this type")?;
        let activation = match activation {
            cudnnCausalConv1dActivation_t::CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY => Activation::Identity,
            cudnnCausalConv1dActivation_t::CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU => Activation::Silu,
            _ => return Err(crate::Error::BadParam("there is no such activation")),
        };
        let [batch, channels, length, taps] = [batch, channels, length, taps].map(|size| size as usize);
        Ok(Sequences { batch, shape: Shape { channels, length, taps }, of, activation, is_by_place })
    }

    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn view(
        &self,
        at: *const c_void,
        of: cudnnDataType_t,
        sizes: &[usize],
        strides: &[isize],
    ) -> Result<View> {
        let kind = kind(of)?.0;
        require(!at.is_null(), "memory is NULL")?;
        require(at.addr().is_multiple_of(kind.bytes()), "memory is not aligned to its type")?;
        // SAFETY: cuDNN's contract: arrays of these sizes until the stream has come there.
        Ok(memory::tensor(unsafe { View::new(at.cast_mut().cast(), kind, sizes, strides) })?)
    }

    /// Sequences by channel.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn sequences(&self, at: *const c_void) -> Result<View> {
        let Shape { channels, length, .. } = self.shape;
        let all = (channels * length) as isize;
        let inner = if self.is_by_place { [1, channels as isize] } else { [length as isize, 1] };
        // SAFETY: the caller's promise.
        unsafe { self.view(at, self.of, &[self.batch, channels, length], &[all, inner[0], inner[1]]) }
    }

    /// Taps by channel.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn taps(&self, at: *const c_void, of: cudnnDataType_t) -> Result<View> {
        let Shape { channels, taps, .. } = self.shape;
        let strides = if self.is_by_place { [1, channels as isize] } else { [taps as isize, 1] };
        // SAFETY: the caller's promise.
        unsafe { self.view(at, of, &[channels, taps], &strides) }
    }

    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn bias(&self, at: *const c_void, of: cudnnDataType_t) -> Result<View> {
        // SAFETY: the caller's promise.
        unsafe { self.view(at, of, &[self.shape.channels], &[1]) }
    }

    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn forward(
        &self,
        stream: cudaStream_t,
        [x, weight, bias]: [*const c_void; 3],
        y: *mut c_void,
    ) -> Result {
        let context = on_stream(stream)?;
        // SAFETY: the caller's promise.
        let (x, w, b) = (unsafe { self.sequences(x) }?, unsafe { self.taps(weight, self.of) }?, unsafe {
            self.bias(bias, self.of)
        }?);
        // SAFETY: the caller's promise.
        let (y, of) = (unsafe { self.sequences(y) }?, *self);
        context.enqueue(move || {
            // SAFETY: cuDNN's contract: the memory is there until the stream has come here.
            unsafe {
                let made = causal::forward(&of.shape, of.activation, (&x.load(), &w.load(), &b.load()));
                y.store(&made, 1.0, 0.0);
            }
        })
    }

    /// The gradients of taps and biases are added to what is there.
    ///
    /// # Safety
    /// As [`cudnnCausalConv1dForward`].
    unsafe fn backward(
        &self,
        stream: cudaStream_t,
        [x, weight, bias, dy]: [*const c_void; 4],
        [dx, dweight, dbias]: [*mut c_void; 3],
        of_sums: cudnnDataType_t,
    ) -> Result {
        let is_double = self.of == cudnnDataType_t::CUDNN_DATA_DOUBLE;
        let wanted =
            if is_double { cudnnDataType_t::CUDNN_DATA_DOUBLE } else { cudnnDataType_t::CUDNN_DATA_FLOAT };
        supports(of_sums == wanted, "gradients of taps of this type")?;
        let context = on_stream(stream)?;
        // SAFETY: the caller's promise.
        let (x, w, b) = (unsafe { self.sequences(x) }?, unsafe { self.taps(weight, self.of) }?, unsafe {
            self.bias(bias, self.of)
        }?);
        // SAFETY: the caller's promise.
        let (dy, dx) = (unsafe { self.sequences(dy) }?, unsafe { self.sequences(dx) }?);
        // SAFETY: the caller's promise.
        let (dw, db, of) =
            (unsafe { self.taps(dweight, of_sums) }?, unsafe { self.bias(dbias, of_sums) }?, *self);
        context.enqueue(move || {
            // SAFETY: as above.
            unsafe {
                let inputs: (Vec<f64>, Vec<f64>, Vec<f64>) = (x.load(), w.load(), b.load());
                let inputs = (&inputs.0[..], &inputs.1[..], &inputs.2[..]);
                let (x, w, b) = causal::backward(&of.shape, of.activation, inputs, &dy.load());
                dx.store(&x, 1.0, 0.0);
                dw.store(&w, 1.0, 1.0);
                db.store(&b, 1.0, 1.0);
            }
        })
    }
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnCausalConv1dForward(
    stream: cudaStream_t,
    x: *const c_void,
    weight: *const c_void,
    bias: *const c_void,
    y: *mut c_void,
    batch: c_int,
    dim: c_int,
    seqLen: c_int,
    kernelSize: c_int,
    dataType: cudnnDataType_t,
    activation: cudnnCausalConv1dActivation_t,
) -> Result {
    let of = Sequences::new([batch, dim, seqLen, kernelSize], dataType, activation, false)?;
    // SAFETY: the caller's promise.
    unsafe { of.forward(stream, [x, weight, bias], y) }
}

/// # Safety
/// As [`cudnnCausalConv1dForward`].
pub unsafe fn cudnnCausalConv1dNwhForward(
    stream: cudaStream_t,
    x: *const c_void,
    weight: *const c_void,
    bias: *const c_void,
    y: *mut c_void,
    batch: c_int,
    dim: c_int,
    seqLen: c_int,
    kernelSize: c_int,
    dataType: cudnnDataType_t,
    activation: cudnnCausalConv1dActivation_t,
) -> Result {
    let of = Sequences::new([batch, dim, seqLen, kernelSize], dataType, activation, true)?;
    // SAFETY: the caller's promise.
    unsafe { of.forward(stream, [x, weight, bias], y) }
}

/// # Safety
/// As [`cudnnCausalConv1dForward`].
pub unsafe fn cudnnCausalConv1dBackward(
    stream: cudaStream_t,
    x: *const c_void,
    weight: *const c_void,
    bias: *const c_void,
    dy: *const c_void,
    dx: *mut c_void,
    dweight: *mut c_void,
    dbias: *mut c_void,
    batch: c_int,
    dim: c_int,
    seqLen: c_int,
    kernelSize: c_int,
    dataType: cudnnDataType_t,
    dwDataType: cudnnDataType_t,
    activation: cudnnCausalConv1dActivation_t,
) -> Result {
    let of = Sequences::new([batch, dim, seqLen, kernelSize], dataType, activation, false)?;
    // SAFETY: the caller's promise.
    unsafe { of.backward(stream, [x, weight, bias, dy], [dx, dweight, dbias], dwDataType) }
}

/// # Safety
/// As [`cudnnCausalConv1dForward`].
pub unsafe fn cudnnCausalConv1dNwhBackward(
    stream: cudaStream_t,
    x: *const c_void,
    weight: *const c_void,
    bias: *const c_void,
    dy: *const c_void,
    dx: *mut c_void,
    dweight: *mut c_void,
    dbias: *mut c_void,
    batch: c_int,
    dim: c_int,
    seqLen: c_int,
    kernelSize: c_int,
    dataType: cudnnDataType_t,
    dwDataType: cudnnDataType_t,
    activation: cudnnCausalConv1dActivation_t,
) -> Result {
    let of = Sequences::new([batch, dim, seqLen, kernelSize], dataType, activation, true)?;
    // SAFETY: the caller's promise.
    unsafe { of.backward(stream, [x, weight, bias, dy], [dx, dweight, dbias], dwDataType) }
}
