//! What descriptors say of tensors and filters, and the views of memory that they give.
//!
//! The rule: a call has looked at types, sizes and addresses before its work is enqueued, and the work has views alone.

use core::ffi::{c_int, c_void};
use core::ops::Deref;

use cudnn_cpu::{Kind, View};

use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result, memory};

/// cuDNN's most sizes.
pub const MOST: usize = 8;

pub static TENSORS: Descriptors<Tensor> = Descriptors::new();
pub static FILTERS: Descriptors<Filter> = Descriptors::new();

/// Strides are counted in elements, of a vectorised tensor in vectors. One that was not set has no sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tensor {
    pub kind: cudnnDataType_t,
    pub sizes: Vec<c_int>,
    pub strides: Vec<c_int>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub kind: cudnnDataType_t,
    pub format: cudnnTensorFormat_t,
    pub sizes: Vec<c_int>,
}

/// What the type is in memory, and how many channels lie together in a vector.
pub fn kind(of: cudnnDataType_t) -> Result<(Kind, usize)> {
    Ok(match of {
        cudnnDataType_t::CUDNN_DATA_FLOAT => (Kind::F32, 1),
        cudnnDataType_t::CUDNN_DATA_DOUBLE => (Kind::F64, 1),
        cudnnDataType_t::CUDNN_DATA_HALF => (Kind::F16, 1),
        cudnnDataType_t::CUDNN_DATA_BFLOAT16 => (Kind::Bf16, 1),
        cudnnDataType_t::CUDNN_DATA_INT8 => (Kind::I8, 1),
        cudnnDataType_t::CUDNN_DATA_INT8x4 => (Kind::I8, 4),
        cudnnDataType_t::CUDNN_DATA_INT8x32 => (Kind::I8, 32),
        cudnnDataType_t::CUDNN_DATA_UINT8 => (Kind::U8, 1),
        cudnnDataType_t::CUDNN_DATA_UINT8x4 => (Kind::U8, 4),
        cudnnDataType_t::CUDNN_DATA_INT32 => (Kind::I32, 1),
        cudnnDataType_t::CUDNN_DATA_INT64 => (Kind::I64, 1),
        cudnnDataType_t::CUDNN_DATA_BOOLEAN => (Kind::Bool, 1),
        cudnnDataType_t::CUDNN_DATA_FP8_E4M3 => (Kind::E4M3, 1),
        cudnnDataType_t::CUDNN_DATA_FP8_E5M2 => (Kind::E5M2, 1),
        cudnnDataType_t(0..=23) => return Err(Error::NotSupported("a tensor of this type")),
        _ => return Err(Error::BadParam("there is no such type")),
    })
}

/// The same in graphs, which have types that no other call takes; a boolean is a bit there.
pub fn kind_in_graph(of: cudnnDataType_t) -> Result<(Kind, usize)> {
    Ok(match of {
        cudnnDataType_t::CUDNN_DATA_BOOLEAN => (Kind::Bit, 1),
        cudnnDataType_t::CUDNN_DATA_BYTE_BOOLEAN => (Kind::Bool, 1),
        cudnnDataType_t::CUDNN_DATA_INT4 => (Kind::I4, 1),
        cudnnDataType_t::CUDNN_DATA_UINT4 => (Kind::U4, 1),
        cudnnDataType_t::CUDNN_DATA_UINT32 => (Kind::U32, 1),
        cudnnDataType_t::CUDNN_DATA_FP4_E2M1 => (Kind::E2M1, 1),
        cudnnDataType_t::CUDNN_DATA_FP8_E8M0 => (Kind::E8M0, 1),
        // Of its parts.
        cudnnDataType_t::CUDNN_DATA_COMPLEX_FP32 => (Kind::F32, 1),
        cudnnDataType_t::CUDNN_DATA_COMPLEX_FP64 => (Kind::F64, 1),
        _ => kind(of)?,
    })
}

/// Whether numbers of this type are computed with in double precision: its own, and integers, whose sums stay exact there.
pub fn is_double(kind: Kind) -> bool {
    matches!(kind, Kind::F64 | Kind::I8 | Kind::U8 | Kind::I32 | Kind::I64 | Kind::U32)
}

/// A factor, which is a `double` where the tensor is one and else a `float`.
///
/// # Safety
/// `at` is NULL, or a number of that type in the host's memory.
pub unsafe fn factor(at: *const c_void, of: cudnnDataType_t) -> Result<f64> {
    require(!at.is_null(), "a factor is NULL")?;
    Ok(if of == cudnnDataType_t::CUDNN_DATA_DOUBLE {
        // SAFETY: not NULL; the caller's promise.
        unsafe { at.cast::<f64>().read_unaligned() }
    } else {
        // SAFETY: as above.
        f64::from(unsafe { at.cast::<f32>().read_unaligned() })
    })
}

/// Whether a result is what was computed, and what was there before is not read.
pub fn is_plain(alpha: f64, beta: f64) -> bool {
    alpha == 1.0 && beta == 0.0
}

/// Strides of a format for sizes in the order N, C and the others; of vectors, where channels are vectors of so many.
fn strides(format: cudnnTensorFormat_t, sizes: &[c_int], vector: usize) -> Vec<c_int> {
    let order: Vec<usize> = match format {
        cudnnTensorFormat_t::CUDNN_TENSOR_NHWC => {
            core::iter::once(0).chain(2..sizes.len()).chain(core::iter::once(1)).collect()
        }
        _ => (0..sizes.len()).collect(),
    };
    let mut strides = vec![1; sizes.len()];
    let mut stride: c_int = 1;
    for at in order.into_iter().rev() {
        strides[at] = stride;
        let size = if at == 1 { sizes[at] / vector as c_int } else { sizes[at] };
        stride = stride.wrapping_mul(size);
    }
    strides
}

/// Sizes and strides as views have them: channels in vectors are two sizes.
fn split(sizes: &[c_int], strides: &[c_int], vector: usize) -> (Vec<usize>, Vec<isize>) {
    let (mut split_sizes, mut split_strides) = (Vec::new(), Vec::new());
    for (at, (&size, &stride)) in sizes.iter().zip(strides).enumerate() {
        let stride = stride as isize * vector as isize;
        if at == 1 && vector > 1 {
            split_sizes.extend([size as usize / vector, vector]);
            split_strides.extend([stride, 1]);
        } else {
            split_sizes.push(size as usize);
            split_strides.push(stride);
        }
    }
    (split_sizes, split_strides)
}

fn looked_at(sizes: &[c_int]) -> Result {
    require(sizes.iter().all(|&size| size > 0), "a size is not positive")?;
    let count = sizes.iter().try_fold(1_i64, |count, &size| count.checked_mul(size.into()));
    supports(count.is_some_and(|count| count < 1 << 31), "a tensor of 2^31 elements")
}

/// Strides of scalars that lie one behind the other.
pub fn dense(format: cudnnTensorFormat_t, sizes: &[c_int]) -> Vec<c_int> {
    strides(format, sizes, 1)
}

impl Tensor {
    /// In one of the formats.
    pub fn of_format(format: cudnnTensorFormat_t, of: cudnnDataType_t, sizes: &[c_int]) -> Result<Tensor> {
        let vector = kind(of)?.1;
        looked_at(sizes)?;
        require(format <= cudnnTensorFormat_t::CUDNN_TENSOR_NCHW_VECT_C, "there is no such format")?;
        let is_vectorised = format == cudnnTensorFormat_t::CUDNN_TENSOR_NCHW_VECT_C;
        require(is_vectorised == (vector > 1), "vectors of channels go with types of vectors alone")?;
        require(
            sizes.get(1).is_none_or(|c| (*c as usize).is_multiple_of(vector)),
            "channels fill no whole vectors",
        )?;
        Ok(Tensor { kind: of, sizes: sizes.to_vec(), strides: strides(format, sizes, vector) })
    }

    /// With strides.
    pub fn of_strides(of: cudnnDataType_t, sizes: &[c_int], strides: &[c_int]) -> Result<Tensor> {
        let vector = kind(of)?.1;
        looked_at(sizes)?;
        let fits = |(&size, &stride): (&c_int, &c_int)| stride > 0 || (stride == 0 && size == 1);
        require(sizes.iter().zip(strides).all(fits), "a stride is not positive")?;
        require(
            sizes.get(1).is_none_or(|c| (*c as usize).is_multiple_of(vector)),
            "channels fill no whole vectors",
        )?;
        Ok(Tensor { kind: of, sizes: sizes.to_vec(), strides: strides.to_vec() })
    }

    /// From the first element to the last.
    pub fn bytes(&self) -> Result<usize> {
        let (element, vector) = kind(self.kind)?;
        if self.sizes.is_empty() {
            return Ok(0);
        }
        let (sizes, strides) = split(&self.sizes, &self.strides, vector);
        let last: usize =
            sizes.iter().zip(&strides).map(|(size, stride)| (size - 1) * *stride as usize).sum();
        Ok((last + 1) * element.bytes())
    }

    pub fn count(&self) -> usize {
        self.sizes.iter().map(|&size| size as usize).product()
    }

    pub fn element(&self) -> Result<Kind> {
        Ok(kind(self.kind)?.0)
    }

    /// Where it lies, for work that is asked for in this call.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    pub unsafe fn view(&self, at: *const c_void) -> Result<View> {
        let (element, vector) = kind(self.kind)?;
        require(!self.sizes.is_empty(), "a tensor's descriptor was not set")?;
        require(!at.is_null(), "a tensor's memory is NULL")?;
        require(at.addr().is_multiple_of(element.bytes()), "a tensor's memory is not aligned to its type")?;
        let (sizes, strides) = split(&self.sizes, &self.strides, vector);
        // SAFETY: cuDNN's contract: the memory has what its descriptor says until the stream has come there.
        let view = unsafe { View::new(at.cast::<u8>().cast_mut(), element, &sizes, &strides) };
        Ok(memory::tensor(view)?)
    }

    /// N, C and up to three other sizes, which depth, height and width are; in front are those that it lacks.
    pub fn images(&self) -> Result<(usize, usize, [usize; 3])> {
        supports((3..=5).contains(&self.sizes.len()), "a tensor of images has three to five sizes")?;
        Ok((self.sizes[0] as usize, self.sizes[1] as usize, three(&self.sizes[2..], 1)))
    }
}

/// Numbers of up to three sizes, with others in front where there are fewer.
pub fn three(of: &[c_int], otherwise: usize) -> [usize; 3] {
    let mut three = [otherwise; 3];
    three[3 - of.len()..].iter_mut().zip(of).for_each(|(to, &from)| *to = from as usize);
    three
}

impl Filter {
    pub fn new(of: cudnnDataType_t, format: cudnnTensorFormat_t, sizes: &[c_int]) -> Result<Filter> {
        let vector = kind(of)?.1;
        looked_at(sizes)?;
        require(format <= cudnnTensorFormat_t::CUDNN_TENSOR_NCHW_VECT_C, "there is no such format")?;
        require((sizes[1] as usize).is_multiple_of(vector), "channels fill no whole vectors")?;
        Ok(Filter { kind: of, format, sizes: sizes.to_vec() })
    }

    pub fn bytes(&self) -> Result<usize> {
        let count: usize = self.sizes.iter().map(|&size| size as usize).product();
        Ok(if self.sizes.is_empty() { 0 } else { count * kind(self.kind)?.0.bytes() })
    }

    /// Where it lies, in the order K, C and the others.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    pub unsafe fn view(&self, at: *const c_void) -> Result<View> {
        require(!self.sizes.is_empty(), "a filter's descriptor was not set")?;
        // SAFETY: the caller's promise.
        unsafe { self.tensor()?.view(at) }
    }

    /// As a call is given it.
    pub fn at(&self, memory: *const c_void) -> Result<Argument> {
        Ok(Argument::new(self.tensor()?, memory))
    }

    /// The same with strides.
    pub fn tensor(&self) -> Result<Tensor> {
        let strides = strides(self.format, &self.sizes, kind(self.kind)?.1);
        Ok(Tensor { kind: self.kind, sizes: self.sizes.clone(), strides })
    }
}

/// A tensor as a call is given it: what its memory is has not been looked at, and nobody has named it.
pub struct Argument {
    tensor: Tensor,
    pub memory: *mut c_void,
}

impl Deref for Argument {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.tensor
    }
}

impl Argument {
    pub fn new(tensor: Tensor, memory: *const c_void) -> Argument {
        Argument { tensor, memory: memory.cast_mut() }
    }

    /// Where it lies, for work of our own code's.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    pub unsafe fn view(&self) -> Result<View> {
        // SAFETY: the caller's promise.
        unsafe { self.tensor.view(self.memory) }
    }
}

pub fn argument(of: cudnnTensorDescriptor_t, memory: *const c_void) -> Result<Argument> {
    Ok(Argument::new(tensor(of)?, memory))
}

pub fn tensor(of: cudnnTensorDescriptor_t) -> Result<Tensor> {
    TENSORS.get(of)
}

pub fn filter(of: cudnnFilterDescriptor_t) -> Result<Filter> {
    FILTERS.get(of)
}

/// A descriptor with its memory.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn at(of: cudnnTensorDescriptor_t, memory: *const c_void) -> Result<(Tensor, View)> {
    let tensor = tensor(of)?;
    // SAFETY: the caller's promise.
    let view = unsafe { tensor.view(memory) }?;
    Ok((tensor, view))
}

/// The program's numbers.
///
/// # Safety
/// `at` is NULL, or has so many numbers while the call lasts.
pub unsafe fn list<'p, T>(at: *const T, count: c_int) -> Result<&'p [T]> {
    require(!at.is_null(), "an array is NULL")?;
    // SAFETY: not NULL; the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(at, usize::try_from(count).unwrap_or(0)) })
}

/// Writes as many of the numbers as were asked for; those behind ours get `otherwise`, where there is one.
///
/// # Safety
/// `to` is NULL, or has as many places as were asked for.
pub unsafe fn give<T: Copy>(to: *mut T, requested: c_int, numbers: &[T]) -> Result {
    require(!to.is_null(), "an array is NULL")?;
    for (at, number) in numbers.iter().take(usize::try_from(requested).unwrap_or(0)).enumerate() {
        // SAFETY: not NULL; the caller's promise.
        unsafe { to.add(at).write(*number) };
    }
    Ok(())
}
