//! Reductions. Source: cuDNN manual, "cudnn_ops library", `cudnnReduceTensor`.

use core::ffi::c_void;

use border::{OptOut, Out};
use cudnn_cpu::Value;
use cudnn_cpu::reduction::{Reduction, reduce};

use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{compute, computing, on_hip, on_kernels};
use crate::hip;
use crate::tensor::{Tensor, argument, factor, is_double, tensor};
use crate::types::*;
use crate::{Error, Result, memory};

#[derive(Clone, Copy, Default)]
struct Settings {
    op: cudnnReduceTensorOp_t,
    computed: cudnnDataType_t,
    nan: cudnnNanPropagation_t,
    indices: cudnnReduceTensorIndices_t,
    index: cudnnIndicesType_t,
}

static REDUCTIONS: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreateReduceTensorDescriptor(descriptor: Out<'_, cudnnReduceTensorDescriptor_t>) -> Result {
    descriptor.write(REDUCTIONS.add());
    Ok(())
}

pub fn cudnnDestroyReduceTensorDescriptor(descriptor: cudnnReduceTensorDescriptor_t) -> Result {
    REDUCTIONS.remove(descriptor)
}

pub fn cudnnSetReduceTensorDescriptor(
    reduceTensorDesc: cudnnReduceTensorDescriptor_t,
    reduceTensorOp: cudnnReduceTensorOp_t,
    reduceTensorCompType: cudnnDataType_t,
    reduceTensorNanOpt: cudnnNanPropagation_t,
    reduceTensorIndices: cudnnReduceTensorIndices_t,
    reduceTensorIndicesType: cudnnIndicesType_t,
) -> Result {
    require(
        reduceTensorOp <= cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS,
        "there is no such operation",
    )?;
    crate::tensor::kind(reduceTensorCompType)?;
    require(
        reduceTensorNanOpt <= cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN,
        "there is no such propagation",
    )?;
    require(reduceTensorIndices.0 <= 1 && reduceTensorIndicesType.0 <= 3, "there are no such indices")?;
    REDUCTIONS.set(
        reduceTensorDesc,
        Settings {
            op: reduceTensorOp,
            computed: reduceTensorCompType,
            nan: reduceTensorNanOpt,
            indices: reduceTensorIndices,
            index: reduceTensorIndicesType,
        },
    )
}

pub fn cudnnGetReduceTensorDescriptor(
    reduceTensorDesc: cudnnReduceTensorDescriptor_t,
    reduceTensorOp: OptOut<'_, cudnnReduceTensorOp_t>,
    reduceTensorCompType: OptOut<'_, cudnnDataType_t>,
    reduceTensorNanOpt: OptOut<'_, cudnnNanPropagation_t>,
    reduceTensorIndices: OptOut<'_, cudnnReduceTensorIndices_t>,
    reduceTensorIndicesType: OptOut<'_, cudnnIndicesType_t>,
) -> Result {
    let settings = REDUCTIONS.get(reduceTensorDesc)?;
    reduceTensorOp.write(settings.op);
    reduceTensorCompType.write(settings.computed);
    reduceTensorNanOpt.write(settings.nan);
    reduceTensorIndices.write(settings.indices);
    reduceTensorIndicesType.write(settings.index);
    Ok(())
}

/// The reduction of a number of the header's.
pub(crate) fn of_number(op: cudnnReduceTensorOp_t) -> Reduction {
    match op {
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MUL => Reduction::Mul,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MIN => Reduction::Min,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MAX => Reduction::Max,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_AMAX => Reduction::Amax,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_AVG => Reduction::Mean,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_NORM1 => Reduction::Norm1,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_NORM2 => Reduction::Norm2,
        cudnnReduceTensorOp_t::CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS => Reduction::MulNoZeros,
        _ => Reduction::Add,
    }
}

impl Settings {
    fn reduction(self) -> Reduction {
        of_number(self.op)
    }

    /// Extremes alone have places.
    fn tells_places(self) -> bool {
        self.indices == cudnnReduceTensorIndices_t::CUDNN_REDUCE_TENSOR_FLATTENED_INDICES
            && matches!(self.reduction(), Reduction::Min | Reduction::Max | Reduction::Amax)
    }

    /// As MIOpen takes it: in single precision, and where no places are told.
    fn on_hip(self) -> Option<hip::elements::Reduction> {
        let fits = self.computed == cudnnDataType_t::CUDNN_DATA_FLOAT && !self.tells_places();
        Some(hip::elements::Reduction { op: self.op, nan: self.nan }).filter(|_| fits)
    }

    fn bytes_of_places(self, c: &Tensor) -> usize {
        if self.tells_places() { 4 * c.count() } else { 0 }
    }
}

fn fits(a: &Tensor, c: &Tensor) -> Result {
    let same = |(a, c): (&i32, &i32)| a == c || *c == 1;
    require(
        a.sizes.len() == c.sizes.len() && a.sizes.iter().zip(&c.sizes).all(same),
        "a size of the result is neither the tensor's nor 1",
    )
}

pub fn cudnnGetReductionIndicesSize(
    handle: cudnnHandle_t,
    reduceTensorDesc: cudnnReduceTensorDescriptor_t,
    aDesc: cudnnTensorDescriptor_t,
    cDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    let (a, c) = (tensor(aDesc)?, tensor(cDesc)?);
    fits(&a, &c)?;
    sizeInBytes.write(REDUCTIONS.get(reduceTensorDesc)?.bytes_of_places(&c));
    Ok(())
}

/// Our own code uses none.
pub fn cudnnGetReductionWorkspaceSize(
    handle: cudnnHandle_t,
    reduceTensorDesc: cudnnReduceTensorDescriptor_t,
    aDesc: cudnnTensorDescriptor_t,
    cDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    let context = computing(handle)?;
    let settings = REDUCTIONS.get(reduceTensorDesc)?;
    let (a, c) = (tensor(aDesc)?, tensor(cDesc)?);
    fits(&a, &c)?;
    let bytes = match context.hip(false)? {
        Some(hip) => hip.reduction_workspace(settings.on_hip().as_ref(), &a, &c)?,
        None => 0,
    };
    sizeInBytes.write(bytes);
    Ok(())
}

/// `c = alpha·(the reduction of a) + beta·c`. Places are counted among those that are reduced, in their order, from 0, the first of several.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnReduceTensor(
    handle: cudnnHandle_t,
    reduceTensorDesc: cudnnReduceTensorDescriptor_t,
    indices: *mut c_void,
    indicesSizeInBytes: usize,
    workspace: *mut c_void,
    workspaceSizeInBytes: usize,
    alpha: *const c_void,
    aDesc: cudnnTensorDescriptor_t,
    A: *const c_void,
    beta: *const c_void,
    cDesc: cudnnTensorDescriptor_t,
    C: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let settings = REDUCTIONS.get(reduceTensorDesc)?;
    let (a, c) = (argument(aDesc, A)?, argument(cDesc, C)?);
    fits(&a, &c)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, c.kind) }?, unsafe { factor(beta, c.kind) }?);
    if let Some(how) = settings.on_hip() {
        let area = (workspace, workspaceSizeInBytes);
        on_hip!(context, hip => hip.reduce(&how, (alpha, &a), (beta, &c), area));
    }
    let keeps_nan = settings.nan == cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN;
    if settings.computed != cudnnDataType_t::CUDNN_DATA_DOUBLE && !settings.tells_places() {
        let (by, factors) = ((settings.reduction(), keeps_nan), [alpha as f32, beta as f32]);
        on_kernels!(context, kernels => kernels.reduce_tensor(by, factors, [&a, &c]));
    }
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { a.view() }?, unsafe { c.view() }?);
    require(from.sizes().len() == to.sizes().len(), "vectors of channels in one tensor alone")?;
    let places = if settings.tells_places() {
        let is_32 = settings.index == cudnnIndicesType_t::CUDNN_32BIT_INDICES;
        supports(is_32, "indices of other than 32 bits")?;
        require(indicesSizeInBytes >= settings.bytes_of_places(&c), "there is too little room for indices")?;
        require(!indices.is_null() && indices.cast::<u32>().is_aligned(), "the indices' memory")?;
        indices.cast::<u32>()
    } else {
        core::ptr::null_mut()
    };
    let (reduction, places) = (settings.reduction(), memory::array(places, c.count())?);
    let is_double = is_double(from.kind())
        || is_double(to.kind())
        || settings.computed == cudnnDataType_t::CUDNN_DATA_DOUBLE;
    if a.kind != c.kind && settings.tells_places() {
        return Err(Error::NotSupported("indices of a reduction to another type"));
    }
    compute!(context, is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        let x = unsafe { from.dense::<V>() };
        let (values, found) = reduce(reduction, keeps_nan, from.sizes(), to.sizes(), &x);
        drop(x);
        // SAFETY: as above.
        unsafe { to.store(&values, V::of(alpha), V::of(beta)) };
        if !places.get().is_null() {
            // SAFETY: room was looked at.
            unsafe { core::ptr::copy_nonoverlapping(found.as_ptr(), places.get(), found.len()) };
        }
    })
}
