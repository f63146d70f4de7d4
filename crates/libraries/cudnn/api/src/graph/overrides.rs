//! Sizes that a run has in place of those that its graph was described with: the program gives those of the tensors in memory, and virtual ones
//! follow from them.
//!
//! cudnn-frontend, whose source tells the form, hands over the address of a `std::vector` of `std::vector`s of 64-bit integers: three addresses
//! each, of the first element, behind the last, and behind the room, as both C++ libraries of Linux lay it out.

use std::sync::Arc;

use super::descriptor::{Descriptor, Node};
use super::plan::{Overrides, Tensor};
use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Of = cudnnBackendDescriptorType_t;

/// A `std::vector<int64_t>`.
#[repr(C)]
struct List {
    first: *const i64,
    end: *const i64,
    _room: *const i64,
}

/// What a pack overrides.
pub fn of_pack(pack: &Descriptor) -> Result<Overrides> {
    let uids = pack.integers(Name::CUDNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS)?;
    if uids.is_empty() {
        return Ok(Overrides::new());
    }
    let list = |name: Name| -> Result<*const List> {
        let at = pack.integer(name)?.filter(|at| *at != 0);
        let at = at.ok_or(Error::BadParam("sizes that are overridden lack their lists"))?;
        Ok(core::ptr::with_exposed_provenance(at as usize))
    };
    let sizes = list(Name::CUDNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES)?;
    let strides = list(Name::CUDNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES)?;
    let numbers = |lists: *const List, at: usize| -> Result<Vec<i64>> {
        // SAFETY: cuDNN's contract: as many lists as there are numbers of tensors.
        let list = unsafe { &*lists.add(at) };
        let count = (list.end.addr().wrapping_sub(list.first.addr())) / size_of::<i64>();
        require(!list.first.is_null() && (1..=8).contains(&count), "a list of sizes is none")?;
        // SAFETY: as above: so many numbers.
        Ok(unsafe { core::slice::from_raw_parts(list.first, count) }.to_vec())
    };
    let mut overrides = Overrides::new();
    for (at, uid) in uids.into_iter().enumerate() {
        let (sizes, strides) = (numbers(sizes, at)?, numbers(strides, at)?);
        let is_fine = sizes.len() == strides.len()
            && sizes.iter().all(|&size| size > 0)
            && strides.iter().all(|&stride| stride >= 0);
        require(is_fine, "sizes that are overridden are not positive, or not as many as strides")?;
        let sizes = sizes.into_iter().map(|size| size as usize).collect();
        overrides.insert(uid, (sizes, strides.into_iter().map(|stride| stride as isize).collect()));
    }
    Ok(overrides)
}

/// The tensors that an operation takes and the one that it gives, for those whose result's sizes follow from theirs.
fn tensors(of: Of) -> Option<(&'static [Name], Name)> {
    Some(match of {
        Of::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR => (
            &[
                Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                Name::CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
            ],
            Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
        ),
        Of::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR => (
            &[Name::CUDNN_ATTR_OPERATION_MATMUL_ADESC, Name::CUDNN_ATTR_OPERATION_MATMUL_BDESC],
            Name::CUDNN_ATTR_OPERATION_MATMUL_CDESC,
        ),
        Of::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR => {
            (&[Name::CUDNN_ATTR_OPERATION_REDUCTION_XDESC], Name::CUDNN_ATTR_OPERATION_REDUCTION_YDESC)
        }
        Of::CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR => (
            &[Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC],
            Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC,
        ),
        _ => return None,
    })
}

/// The sizes of what is given, from those of what is taken and from what it was.
fn result(of: Of, taken: &[Vec<usize>], old: &[usize]) -> Vec<usize> {
    let n = old.len();
    let widest = |at: usize| taken.iter().filter_map(|sizes| sizes.get(at)).max().copied().unwrap_or(1);
    match of {
        Of::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR if taken.len() == 2 && n >= 2 => {
            let rows = taken[0].get(n - 2).copied().unwrap_or(1);
            let columns = taken[1].get(n - 1).copied().unwrap_or(1);
            (0..n - 2).map(widest).chain([rows, columns]).collect()
        }
        Of::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR => {
            (0..n).map(|at| if old[at] == 1 { 1 } else { widest(at) }).collect()
        }
        _ => (0..n).map(widest).collect(),
    }
}

/// Strides without gaps, the sizes in the order that they had.
fn strides(sizes: &[usize], old: &[isize]) -> Vec<isize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&at| old[at]);
    let (mut strides, mut stride) = (vec![0; sizes.len()], 1);
    for at in order {
        strides[at] = stride;
        stride *= sizes[at] as isize;
    }
    strides
}

/// With the sizes of virtual tensors that follow from others. An operation's turn comes when what it takes is known, which is at once where
/// they are in order.
pub fn inferred(nodes: &[Arc<Node>], mut overrides: Overrides) -> Result<Overrides> {
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for node in nodes {
            let node = node.lock();
            let Some((takes, gives)) = tensors(node.kind) else { continue };
            let get = |name: Name, overrides: &Overrides| -> Result<Option<Tensor>> {
                let tensor = node.node(name, Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
                tensor.map(|tensor| Tensor::overridden(&tensor.lock(), overrides)).transpose()
            };
            let Some(result_) = get(gives, &overrides)?.filter(|it| it.is_virtual) else { continue };
            let mut taken = Vec::new();
            for name in takes {
                taken.extend(get(*name, &overrides)?.map(|it| it.sizes));
            }
            let sizes = result(node.kind, &taken, &result_.sizes);
            if sizes != result_.sizes {
                let strides = strides(&sizes, &result_.strides);
                overrides.insert(result_.uid, (sizes, strides));
                is_changed = true;
            }
        }
    }
    Ok(overrides)
}
