//! cuDNN's numbers as MIOpen has them (tools/data/hip/miopen_numbers.json): the same in ROCm 5.2 to 7.2.

use core::ffi::{c_int, c_uint};

use cudnn_cpu::activation::Activation;
use cudnn_cpu::pooling::Pooling;

use crate::types::*;

pub const DATA_TYPES: [(cudnnDataType_t, c_uint); 3] = [
    (cudnnDataType_t::CUDNN_DATA_HALF, 0),
    (cudnnDataType_t::CUDNN_DATA_FLOAT, 1),
    (cudnnDataType_t::CUDNN_DATA_BFLOAT16, 5),
];

pub const OPERATIONS: [(cudnnOpTensorOp_t, c_uint); 4] = [
    (cudnnOpTensorOp_t::CUDNN_OP_TENSOR_ADD, 0),
    (cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MUL, 1),
    (cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MIN, 2),
    (cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MAX, 3),
];

pub const REDUCTIONS: [(cudnnReduceTensorOp_t, c_uint); 8] = [
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_ADD, 0),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MUL, 1),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MIN, 2),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MAX, 3),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_AMAX, 4),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_AVG, 5),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_NORM1, 6),
    (cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_NORM2, 7),
];

pub const PROPAGATIONS: [(cudnnNanPropagation_t, c_uint); 2] =
    [(cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN, 0), (cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN, 1)];

pub const SOFTMAX_ALGORITHMS: [(cudnnSoftmaxAlgorithm_t, c_uint); 3] = [
    (cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_FAST, 0),
    (cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_ACCURATE, 1),
    (cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG, 2),
];

pub const SOFTMAX_MODES: [(cudnnSoftmaxMode_t, c_uint); 2] = [
    (cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_INSTANCE, 0),
    (cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL, 1),
];

/// `miopenTensorOpAdd`
pub const ADD: c_uint = 0;
/// `miopenTensorOpMul`
pub const MUL: c_uint = 1;
/// `miopenFloat`
pub const SINGLE: c_uint = 1;
/// `miopenConvolution`, which does not turn filters round.
pub const CROSS_CORRELATION: c_uint = 0;
/// `MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC`, since ROCm 5.7.
pub const DETERMINISTIC: c_uint = 1;
/// `miopenLRNCrossChannel`
pub const ACROSS_CHANNELS: c_uint = 1;
/// `miopenIndexUint32`
pub const INDICES_OF_32: c_uint = 2;
/// `miopenPoolingWorkspaceIndexImage`: indices count the image's elements, not the window's.
pub const INDICES_OF_IMAGE: c_uint = 1;
/// `MIOPEN_REDUCE_TENSOR_NO_INDICES` with `MIOPEN_32BIT_INDICES`.
pub const NO_INDICES: [c_uint; 2] = [0, 0];
/// `miopenBNPerActivation`
pub const EACH_PLACE: c_uint = 0;
/// `miopenBNSpatial`
pub const EACH_CHANNEL: c_uint = 1;

pub const ALLOC_FAILED: c_int = 4;

/// Of arguments that MIOpen does not take, before it has begun: `miopenStatusInvalidValue`, `BadParm`, `NotImplemented` and `UnsupportedOp`.
pub const REFUSALS: [c_int; 4] = [2, 3, 6, 8];

/// `miopenStatusInternalError` and `UnknownError`: what it has no kernel for, and what it says of arguments in most places, but also what
/// breaks on the way.
pub const UNCLEAR: [c_int; 2] = [5, 7];

pub fn number<T: Copy + PartialEq>(value: T, pairs: &[(T, c_uint)]) -> Option<c_uint> {
    pairs.iter().find(|(ours, _)| *ours == value).map(|(_, theirs)| *theirs)
}

/// The function with its alpha, beta and gamma. That NaN are kept MIOpen does not promise; it has no swish.
pub fn activation(of: Activation) -> Option<(c_uint, [f64; 3])> {
    Some(match of {
        Activation::Identity => (0, [0.0; 3]),
        Activation::Sigmoid => (1, [0.0; 3]),
        // beta · tanh(alpha · x)
        Activation::Tanh => (2, [1.0, 1.0, 0.0]),
        Activation::Relu(false) => (3, [0.0; 3]),
        Activation::ClippedRelu(ceiling, false) => (7, [ceiling, 0.0, 0.0]),
        Activation::Elu(alpha) => (9, [alpha, 0.0, 0.0]),
        _ => return None,
    })
}

/// As [`activation`]: not where NaN are kept.
pub fn pooling(of: Pooling) -> Option<c_uint> {
    Some(match of {
        Pooling::Max(false) => 0,
        Pooling::MeanOfInside => 1,
        Pooling::MeanOfAll => 2,
        Pooling::Max(true) => return None,
    })
}
