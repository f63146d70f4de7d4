//! The three structures of a kernel node: the first lacks two members, the other two have the same ones.

use crate::{CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v3};

/// `$to` with the members that all versions have, and the rest as said.
macro_rules! with_members_of {
    ($from:ident, $to:ident { $($more:ident: $value:expr),* }) => {
        $to {
            func: $from.func,
            gridDimX: $from.gridDimX,
            gridDimY: $from.gridDimY,
            gridDimZ: $from.gridDimZ,
            blockDimX: $from.blockDimX,
            blockDimY: $from.blockDimY,
            blockDimZ: $from.blockDimZ,
            sharedMemBytes: $from.sharedMemBytes,
            kernelParams: $from.kernelParams,
            extra: $from.extra,
            $($more: $value),*
        }
    };
}

/// Before CUDA 12: without a CUkernel, in the current context.
impl From<&CUDA_KERNEL_NODE_PARAMS_v1> for CUDA_KERNEL_NODE_PARAMS {
    fn from(from: &CUDA_KERNEL_NODE_PARAMS_v1) -> Self {
        let (kern, ctx) = (core::ptr::null_mut(), core::ptr::null_mut());
        with_members_of!(from, CUDA_KERNEL_NODE_PARAMS { kern: kern, ctx: ctx })
    }
}

impl From<&CUDA_KERNEL_NODE_PARAMS_v3> for CUDA_KERNEL_NODE_PARAMS {
    fn from(from: &CUDA_KERNEL_NODE_PARAMS_v3) -> Self {
        with_members_of!(from, CUDA_KERNEL_NODE_PARAMS { kern: from.kern, ctx: from.ctx })
    }
}

impl From<&CUDA_KERNEL_NODE_PARAMS> for CUDA_KERNEL_NODE_PARAMS_v3 {
    fn from(from: &CUDA_KERNEL_NODE_PARAMS) -> Self {
        with_members_of!(from, CUDA_KERNEL_NODE_PARAMS_v3 { kern: from.kern, ctx: from.ctx })
    }
}
