//! A descriptor of the graph API: a kind, attributes as the program set them, and what finalizing it has found.

use core::ffi::c_void;
use std::collections::BTreeMap;
use std::sync::Arc;

use kit::Registry;
use parking_lot::Mutex;

use super::plan::Graph;
use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

pub type Node = Mutex<Descriptor>;

pub static DESCRIPTORS: Registry<Node> = Registry::new();

type Name = cudnnBackendAttributeName_t;
type Kind = cudnnBackendDescriptorType_t;

#[derive(Clone)]
pub struct Descriptor {
    pub kind: Kind,
    attributes: BTreeMap<u32, Attribute>,
    pub is_final: bool,
    /// Of an operation graph, and of the engine, configuration and plan that are made for it.
    pub graph: Option<Arc<Graph>>,
    /// A tensor's constant number.
    pub constant: Option<f64>,
}

#[derive(Clone)]
pub struct Attribute {
    pub ty: cudnnBackendAttributeType_t,
    pub count: usize,
    pub bytes: Vec<u8>,
    /// The descriptors among its elements, which live as long.
    pub held: Vec<Arc<Node>>,
}

/// Bytes of an element.
fn element(ty: cudnnBackendAttributeType_t) -> Result<usize> {
    Ok(match ty {
        cudnnBackendAttributeType_t::CUDNN_TYPE_HANDLE
        | cudnnBackendAttributeType_t::CUDNN_TYPE_INT64
        | cudnnBackendAttributeType_t::CUDNN_TYPE_DOUBLE
        | cudnnBackendAttributeType_t::CUDNN_TYPE_VOID_PTR
        | cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR => 8,
        cudnnBackendAttributeType_t::CUDNN_TYPE_BOOLEAN | cudnnBackendAttributeType_t::CUDNN_TYPE_CHAR => 1,
        cudnnBackendAttributeType_t::CUDNN_TYPE_FRACTION => 16,
        cudnnBackendAttributeType_t(0..=32) => 4,
        _ => return Err(Error::BadParam("there is no such type of attributes")),
    })
}

/// The attributes that a kind of descriptors has, by their numbers.
fn has(kind: Kind, name: u32) -> bool {
    let range = match kind {
        Kind::CUDNN_BACKEND_POINTWISE_DESCRIPTOR => 0..100,
        Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR => 100..200,
        Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR => 200..300,
        Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR => 300..400,
        Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR => 400..500,
        Kind::CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR => 500..600,
        Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR => 600..700,
        Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR => 700..706,
        Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR => 706..712,
        Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR => 712..750,
        Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR => 750..770,
        Kind::CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR => 770..780,
        Kind::CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR => 780..800,
        Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR => 800..900,
        Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR => 900..1000,
        Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR => 1000..1100,
        Kind::CUDNN_BACKEND_LAYOUT_INFO_DESCRIPTOR => 1100..1200,
        Kind::CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR => 1200..1300,
        Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR => 1300..1500,
        Kind::CUDNN_BACKEND_MATMUL_DESCRIPTOR => 1500..1520,
        Kind::CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR => 1520..1600,
        Kind::CUDNN_BACKEND_REDUCTION_DESCRIPTOR => 1600..1610,
        Kind::CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR => 1610..1620,
        Kind::CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR => 1620..1700,
        Kind::CUDNN_BACKEND_RESAMPLE_DESCRIPTOR => 1700..1710,
        Kind::CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR => 1710..1720,
        Kind::CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR => 1720..1800,
        Kind::CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR => 1800..1900,
        Kind::CUDNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR => 1950..2000,
        Kind::CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR => 2000..2100,
        Kind::CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR => 2100..2200,
        Kind::CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR => 2200..2250,
        Kind::CUDNN_BACKEND_RNG_DESCRIPTOR => 2300..2310,
        Kind::CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR => 2310..2400,
        Kind::CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR => 2500..2600,
        Kind::CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR => 2600..2700,
        Kind::CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR => 2700..2800,
        Kind::CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR => 2800..2850,
        Kind::CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR => 2850..2900,
        Kind::CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_DESCRIPTOR => 2900..2950,
        Kind::CUDNN_BACKEND_OPERATION_MOE_GROUPED_MATMUL_BWD_DESCRIPTOR => 2950..3000,
        Kind::CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR => 3000..3100,
        Kind::CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR => 3100..3200,
        Kind::CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR => 3200..3300,
        Kind::CUDNN_BACKEND_OPERATION_SLICE_DESCRIPTOR => 3300..3400,
        Kind::CUDNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR => 3400..3410,
        Kind::CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR => 3410..3500,
        // What no engine of ours runs keeps what it is told, and is refused when a graph of it is finalized.
        _ => 0..u32::MAX,
    };
    range.contains(&name)
}

impl Descriptor {
    pub fn new(kind: Kind) -> Descriptor {
        Descriptor { kind, attributes: BTreeMap::new(), is_final: false, graph: None, constant: None }
    }

    /// One that the library makes: it is final.
    pub fn made(kind: Kind, graph: Arc<Graph>) -> Descriptor {
        Descriptor { is_final: true, graph: Some(graph), ..Descriptor::new(kind) }
    }

    /// # Safety
    /// So many elements are there.
    pub unsafe fn set(
        &mut self,
        name: Name,
        ty: cudnnBackendAttributeType_t,
        count: i64,
        elements: *const c_void,
    ) -> Result {
        require(has(self.kind, name.0), "the descriptor has no such attribute")?;
        let size = element(ty)?;
        let count = usize::try_from(count).map_err(|_| Error::BadParam("a count is negative"))?;
        require(!elements.is_null() || count == 0, "an attribute's elements are NULL")?;
        let mut bytes = vec![0_u8; count * size];
        if count > 0 {
            // SAFETY: the caller's word.
            unsafe { core::ptr::copy_nonoverlapping(elements.cast(), bytes.as_mut_ptr(), bytes.len()) };
        }
        let mut attribute = Attribute { ty, count, bytes, held: Vec::new() };
        if ty == cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR {
            let nodes = attribute.words().map(|word| find(core::ptr::without_provenance_mut(word as usize)));
            let nodes = nodes.collect::<Result<Vec<_>>>()?;
            let all_are = nodes.iter().all(|node| node.lock().is_final);
            if !all_are {
                return Err(Error::Bad(
                    cudnnStatus_t::CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                    "a descriptor that is set was not finalized",
                ));
            }
            attribute.held = nodes;
        }
        self.attributes.insert(name.0, attribute);
        Ok(())
    }

    /// How many elements it has, of which as many as there is room for are written.
    ///
    /// # Safety
    /// There is room for so many.
    pub unsafe fn get(
        &self,
        name: Name,
        ty: cudnnBackendAttributeType_t,
        room: i64,
        elements: *mut c_void,
    ) -> Result<usize> {
        require(has(self.kind, name.0), "the descriptor has no such attribute")?;
        let size = element(ty)?;
        let Some(attribute) = self.attributes.get(&name.0) else { return Ok(0) };
        require(attribute.ty == ty, "the attribute is of another type")?;
        let written = attribute.count.min(usize::try_from(room).unwrap_or(0));
        if written > 0 {
            require(!elements.is_null(), "the room for an attribute is NULL")?;
            // SAFETY: the caller's word.
            unsafe {
                core::ptr::copy_nonoverlapping(
                    attribute.bytes.as_ptr(),
                    elements.cast::<u8>(),
                    written * size,
                );
            };
        }
        Ok(attribute.count)
    }

    /// The descriptors that such an attribute has.
    pub fn described(&self, name: Name) -> Result<Vec<Arc<Node>>> {
        require(has(self.kind, name.0), "the descriptor has no such attribute")?;
        let Some(attribute) = self.attributes.get(&name.0) else { return Ok(Vec::new()) };
        let is_of_them = attribute.ty == cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR;
        require(is_of_them, "the attribute is of another type")?;
        Ok(attribute.held.clone())
    }

    /// All that it was told, by numbers.
    pub fn attributes(&self) -> impl Iterator<Item = (u32, &Attribute)> {
        self.attributes.iter().map(|(name, attribute)| (*name, attribute))
    }

    pub fn put(&mut self, name: u32, attribute: Attribute) {
        self.attributes.insert(name, attribute);
    }

    /// The bytes of an attribute.
    pub fn bytes(&self, name: Name) -> Option<&[u8]> {
        self.attributes.get(&name.0).map(|attribute| &attribute.bytes[..])
    }

    pub fn knows(&self, name: Name) -> bool {
        self.attributes.contains_key(&name.0)
    }

    /// Whole numbers, from whatever type has them; fractions that are whole too.
    pub fn integers(&self, name: Name) -> Result<Vec<i64>> {
        let Some(attribute) = self.attributes.get(&name.0) else { return Ok(Vec::new()) };
        match element(attribute.ty)? {
            8 => Ok(attribute.words().map(|word| word as i64).collect()),
            4 => Ok(attribute.halves().map(i64::from).collect()),
            1 => Ok(attribute.bytes.iter().map(|&byte| byte.into()).collect()),
            _ => {
                let words: Vec<u64> = attribute.words().collect();
                let whole = words.chunks(2).map(|pair| {
                    let (above, below) = (pair[0] as i64, pair[1] as i64);
                    if below == 0 || above % below != 0 {
                        return Err(Error::NotSupported("a fraction that is not whole"));
                    }
                    Ok(above / below)
                });
                whole.collect()
            }
        }
    }

    pub fn integer(&self, name: Name) -> Result<Option<i64>> {
        Ok(self.integers(name)?.first().copied())
    }

    /// A number of an enumeration or 0.
    pub fn number(&self, name: Name) -> Result<u32> {
        Ok(self.integer(name)?.unwrap_or(0) as u32)
    }

    /// A real number, of either type.
    pub fn real(&self, name: Name) -> Result<Option<f64>> {
        let Some(attribute) = self.attributes.get(&name.0) else { return Ok(None) };
        Ok(match attribute.ty {
            cudnnBackendAttributeType_t::CUDNN_TYPE_DOUBLE => attribute.words().next().map(f64::from_bits),
            cudnnBackendAttributeType_t::CUDNN_TYPE_FLOAT => {
                attribute.halves().next().map(|half| f64::from(f32::from_bits(half)))
            }
            _ => return Err(Error::BadParam("an attribute is no real number")),
        })
    }

    pub fn nodes(&self, name: Name) -> Vec<Arc<Node>> {
        self.attributes.get(&name.0).map(|attribute| attribute.held.clone()).unwrap_or_default()
    }

    /// The one descriptor of an attribute, which is of that kind.
    pub fn node(&self, name: Name, kind: Kind) -> Result<Option<Arc<Node>>> {
        let Some(node) = self.nodes(name).into_iter().next() else { return Ok(None) };
        require(node.lock().kind == kind, "a descriptor that is set is of another kind")?;
        Ok(Some(node))
    }
}

impl Attribute {
    /// One that was written down: its bytes, or the descriptors that it has, are as many as it says.
    pub fn read(
        ty: cudnnBackendAttributeType_t,
        count: usize,
        bytes: Vec<u8>,
        held: Vec<Arc<Node>>,
    ) -> Option<Attribute> {
        let is_whole = if held.is_empty() {
            element(ty).is_ok_and(|size| count.checked_mul(size) == Some(bytes.len()))
        } else {
            ty == cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR && held.len() == count
        };
        is_whole.then_some(Attribute { ty, count, bytes, held })
    }

    fn words(&self) -> impl Iterator<Item = u64> {
        self.bytes.chunks_exact(8).map(|bytes| u64::from_ne_bytes(core::array::from_fn(|at| bytes[at])))
    }

    fn halves(&self) -> impl Iterator<Item = u32> {
        self.bytes.chunks_exact(4).map(|bytes| u32::from_ne_bytes(core::array::from_fn(|at| bytes[at])))
    }
}

/// The descriptor behind a handle.
pub fn find(handle: cudnnBackendDescriptor_t) -> Result<Arc<Node>> {
    if handle.is_null() {
        return Err(Error::Bad(cudnnStatus_t::CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the descriptor is NULL"));
    }
    Ok(DESCRIPTORS.get(handle)?)
}
