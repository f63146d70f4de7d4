//! Transforms of layouts, with padding. Source: cuDNN manual, "cudnn_ops library", `cudnnTransformTensorEx` and so on.
//!
//! Folding is not supported: which of the folded elements is which channel is written nowhere.

use core::ffi::{c_int, c_void};

use border::{OptOut, Out};
use cudnn_cpu::{Value, View};

use crate::Result;
use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{Context, compute, computing};
use crate::tensor::{MOST, TENSORS, Tensor, factor, filter, give, is_double, list, tensor};
use crate::types::*;

/// As many paddings as the tensor has sizes, and as many folds as it has behind the second one.
#[derive(Clone, Debug, Default)]
struct Settings {
    format: cudnnTensorFormat_t,
    before: Vec<i32>,
    after: Vec<i32>,
    folds: Vec<u32>,
    direction: cudnnFoldingDirection_t,
}

static TRANSFORMS: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreateTensorTransformDescriptor(
    transformDesc: Out<'_, cudnnTensorTransformDescriptor_t>,
) -> Result {
    transformDesc.write(TRANSFORMS.add());
    Ok(())
}

pub fn cudnnDestroyTensorTransformDescriptor(transformDesc: cudnnTensorTransformDescriptor_t) -> Result {
    TRANSFORMS.remove(transformDesc)
}

/// No padding and no folds where an array is NULL.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnSetTensorTransformDescriptor(
    transformDesc: cudnnTensorTransformDescriptor_t,
    nbDims: u32,
    destFormat: cudnnTensorFormat_t,
    padBeforeA: *const i32,
    padAfterA: *const i32,
    foldA: *const u32,
    direction: cudnnFoldingDirection_t,
) -> Result {
    TRANSFORMS.get(transformDesc)?;
    require((3..=MOST as u32).contains(&nbDims), "the number of sizes is out of bounds")?;
    require((0..3).contains(&destFormat.0), "there is no such format")?;
    require((0..2).contains(&direction.0), "there is no such direction")?;
    let n = nbDims as usize;
    let pads = |at: *const i32| -> Result<Vec<i32>> {
        // SAFETY: the caller's promise.
        if at.is_null() { Ok(vec![0; n]) } else { Ok(unsafe { list(at, n as c_int) }?.to_vec()) }
    };
    let (before, after) = (pads(padBeforeA)?, pads(padAfterA)?);
    require(before.iter().chain(&after).all(|pad| *pad >= 0), "a padding is negative")?;
    let folds =
        // SAFETY: the caller's promise.
        if foldA.is_null() { vec![1; n - 2] } else { unsafe { list(foldA, n as c_int - 2) }?.to_vec() };
    require(folds.iter().all(|fold| *fold > 0), "a fold is 0")?;
    TRANSFORMS.set(transformDesc, Settings { format: destFormat, before, after, folds, direction })
}

/// # Safety
/// As [`cudnnSetTensorTransformDescriptor`].
pub unsafe fn cudnnGetTensorTransformDescriptor(
    transformDesc: cudnnTensorTransformDescriptor_t,
    nbDimsRequested: u32,
    destFormat: OptOut<'_, cudnnTensorFormat_t>,
    padBeforeA: *mut i32,
    padAfterA: *mut i32,
    foldA: *mut u32,
    direction: OptOut<'_, cudnnFoldingDirection_t>,
) -> Result {
    let settings = settings(transformDesc)?;
    let requested = c_int::try_from(nbDimsRequested).unwrap_or(c_int::MAX);
    for (to, numbers) in [(padBeforeA, &settings.before), (padAfterA, &settings.after)] {
        if !to.is_null() {
            // SAFETY: the caller's promise.
            unsafe { give(to, requested, numbers) }?;
        }
    }
    if !foldA.is_null() {
        // SAFETY: the caller's promise.
        unsafe { give(foldA, requested.saturating_sub(2), &settings.folds) }?;
    }
    destFormat.write(settings.format);
    direction.write(settings.direction);
    Ok(())
}

fn settings(of: cudnnTensorTransformDescriptor_t) -> Result<Settings> {
    let settings = TRANSFORMS.get(of)?;
    require(!settings.before.is_empty(), "the transform's descriptor was not set")?;
    Ok(settings)
}

impl Settings {
    /// The sizes with padding.
    fn padded(&self, sizes: &[c_int]) -> Result<Vec<c_int>> {
        require(sizes.len() == self.before.len(), "the tensor has not the transform's number of sizes")?;
        supports(self.folds.iter().all(|fold| *fold == 1), "folds")?;
        let pads = self.before.iter().zip(&self.after);
        sizes
            .iter()
            .zip(pads)
            .map(|(size, (before, after))| {
                let sum = size.checked_add(*before).and_then(|sum| sum.checked_add(*after));
                sum.ok_or(crate::Error::BadParam("a padded size is too large"))
            })
            .collect()
    }
}

/// Describes what the transform makes of a tensor, and how many bytes that has.
pub fn cudnnInitTransformDest(
    transformDesc: cudnnTensorTransformDescriptor_t,
    srcDesc: cudnnTensorDescriptor_t,
    destDesc: cudnnTensorDescriptor_t,
    destSizeInBytes: Out<'_, usize>,
) -> Result {
    let (settings, from) = (settings(transformDesc)?, tensor(srcDesc)?);
    TENSORS.get(destDesc)?;
    let to = Tensor::of_format(settings.format, from.kind, &settings.padded(&from.sizes)?)?;
    destSizeInBytes.write(to.bytes()?);
    TENSORS.set(destDesc, to)
}

/// `dest = alpha·src + beta·dest`, and the padding is 0 in place of src.
///
/// # Safety
/// As [`cudnnSetTensorTransformDescriptor`].
unsafe fn transform(
    context: &Context,
    settings: &Settings,
    (alpha, beta): (*const c_void, *const c_void),
    (from, from_at): (&Tensor, View),
    (to, to_at): (&Tensor, View),
) -> Result {
    require(settings.padded(&from.sizes)? == to.sizes, "the sizes are not those that the transform makes")?;
    let is_plain = |of: &Tensor| crate::tensor::kind(of.kind).is_ok_and(|(_, vector)| vector == 1);
    let is_padded = settings.before.iter().chain(&settings.after).any(|pad| *pad != 0);
    supports(!is_padded || (is_plain(from) && is_plain(to)), "padding of vectors of channels")?;
    require(is_padded || from_at.len() == to_at.len(), "the tensors' sizes differ")?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, to.kind) }?, unsafe { factor(beta, to.kind) }?);
    let is_double = is_double(from_at.kind()) || is_double(to_at.kind());
    let sizes: Vec<usize> = to.sizes.iter().map(|&size| size as usize).collect();
    let firsts: Vec<usize> = settings.before.iter().map(|&pad| pad as usize).collect();
    let inner: Vec<usize> = from.sizes.iter().map(|&size| size as usize).collect();
    compute!(context, is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        unsafe {
            let mut values = from_at.load::<V>();
            if is_padded {
                values = padded(&values, &inner, &firsts, &sizes);
            }
            to_at.store(&values, V::of(alpha), V::of(beta));
        }
    })
}

/// The values in the middle of zeros.
fn padded<V: Value>(values: &[V], inner: &[usize], firsts: &[usize], sizes: &[usize]) -> Vec<V> {
    let mut all = vec![V::of(0.0); sizes.iter().product()];
    let n = sizes.len();
    for (row, values) in values.chunks(inner[n - 1]).enumerate() {
        let (mut left, mut at, mut stride) = (row, firsts[n - 1], sizes[n - 1]);
        for axis in (0..n - 1).rev() {
            at += (left % inner[axis] + firsts[axis]) * stride;
            left /= inner[axis];
            stride *= sizes[axis];
        }
        all[at..at + values.len()].copy_from_slice(values);
    }
    all
}

/// # Safety
/// As [`cudnnSetTensorTransformDescriptor`].
pub unsafe fn cudnnTransformTensorEx(
    handle: cudnnHandle_t,
    transDesc: cudnnTensorTransformDescriptor_t,
    alpha: *const c_void,
    srcDesc: cudnnTensorDescriptor_t,
    srcData: *const c_void,
    beta: *const c_void,
    destDesc: cudnnTensorDescriptor_t,
    destData: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let ((from, from_at), (to, to_at)) =
        // SAFETY: the caller's promise.
        (unsafe { crate::tensor::at(srcDesc, srcData) }?, unsafe { crate::tensor::at(destDesc, destData) }?);
    // SAFETY: the caller's promise.
    unsafe { transform(&context, &settings(transDesc)?, (alpha, beta), (&from, from_at), (&to, to_at)) }
}

/// # Safety
/// As [`cudnnSetTensorTransformDescriptor`].
pub unsafe fn cudnnTransformFilter(
    handle: cudnnHandle_t,
    transDesc: cudnnTensorTransformDescriptor_t,
    alpha: *const c_void,
    srcDesc: cudnnFilterDescriptor_t,
    srcData: *const c_void,
    beta: *const c_void,
    destDesc: cudnnFilterDescriptor_t,
    destData: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (from, to) = (filter(srcDesc)?, filter(destDesc)?);
    // SAFETY: the caller's promise.
    let (from_at, to_at) = (unsafe { from.view(srcData) }?, unsafe { to.view(destData) }?);
    let tensor =
        |of: &crate::tensor::Filter| Tensor { kind: of.kind, sizes: of.sizes.clone(), strides: Vec::new() };
    // SAFETY: the caller's promise.
    unsafe {
        transform(
            &context,
            &settings(transDesc)?,
            (alpha, beta),
            (&tensor(&from), from_at),
            (&tensor(&to), to_at),
        )
    }
}
