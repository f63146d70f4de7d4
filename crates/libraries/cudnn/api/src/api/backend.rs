//! The graph API. Source: cuDNN manual, "cudnn_graph library", backend.
//!
//! There is one engine: it runs a graph's operations one after the other, or refuses the graph when that is finalized, with the reason.

use core::ffi::c_void;
use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::Arc;

use border::{OptOut, Out};
use parking_lot::Mutex;

use crate::error::{require, supports};
use crate::graph::descriptor::{DESCRIPTORS, Descriptor, Node, find};
use crate::graph::device::Device;
use crate::graph::plan::{Given, Graph, Tensor};
use crate::graph::{overrides, written};
use crate::handle::{Context, computing};
use crate::kernels::kept::Kept;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Of = cudnnBackendDescriptorType_t;

pub fn cudnnBackendCreateDescriptor(
    descriptorType: cudnnBackendDescriptorType_t,
    descriptor: Out<'_, cudnnBackendDescriptor_t>,
) -> Result {
    let known = descriptorType <= Of::CUDNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR;
    supports(known, "descriptors of this kind")?;
    descriptor.write(DESCRIPTORS.add(Arc::new(Mutex::new(Descriptor::new(descriptorType)))));
    Ok(())
}

pub fn cudnnBackendDestroyDescriptor(descriptor: cudnnBackendDescriptor_t) -> Result {
    find(descriptor)?;
    DESCRIPTORS.remove(descriptor)?;
    Ok(())
}

/// It is as it was made.
pub fn cudnnBackendInitialize(descriptor: cudnnBackendDescriptor_t) -> Result {
    let node = find(descriptor)?;
    let mut descriptor = node.lock();
    *descriptor = Descriptor::new(descriptor.kind);
    Ok(())
}

/// # Safety
/// So many elements of the type are there.
pub unsafe fn cudnnBackendSetAttribute(
    descriptor: cudnnBackendDescriptor_t,
    attributeName: cudnnBackendAttributeName_t,
    attributeType: cudnnBackendAttributeType_t,
    elementCount: i64,
    arrayOfElements: *const c_void,
) -> Result {
    let node = find(descriptor)?;
    let mut descriptor = node.lock();
    if descriptor.is_final {
        return Err(Error::NotInitialized);
    }
    // SAFETY: cuDNN's contract: so many elements of the type.
    unsafe { descriptor.set(attributeName, attributeType, elementCount, arrayOfElements) }
}

/// The graph behind the one descriptor of an attribute.
fn graph_of(of: &Descriptor, name: Name, kind: Of) -> Result<Arc<Graph>> {
    let node = of.node(name, kind)?.ok_or(Error::BadParam("a descriptor lacks what it is for"))?;
    let graph = node.lock().graph.clone();
    let graph = graph.ok_or(Error::BadParam("a descriptor that is set has no graph"))?;
    require(graph.lacks().is_none(), "a virtual tensor is taken that nothing gives")?;
    Ok(graph)
}

/// Looks at the whole of it. A tensor, an operation and a graph are refused here, where they cannot be had.
pub fn cudnnBackendFinalize(descriptor: cudnnBackendDescriptor_t) -> Result {
    let node = find(descriptor)?;
    let mut descriptor = node.lock();
    match descriptor.kind {
        Of::CUDNN_BACKEND_TENSOR_DESCRIPTOR => {
            Tensor::of(&descriptor)?;
            descriptor.constant = Tensor::constant_of(&descriptor)?;
        }
        Of::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR => {
            // Where sizes are to change, graphs of other sizes share what was compiled: there is nothing that is.
            let graph = Graph::new(&descriptor.nodes(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS))?;
            descriptor.graph = Some(Arc::new(graph));
        }
        Of::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR => {
            let graph = graph_of(
                &descriptor,
                Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                Of::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
            )?;
            descriptor.graph = Some(graph);
        }
        Of::CUDNN_BACKEND_ENGINE_DESCRIPTOR => {
            let index = descriptor.integer(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX)?;
            require(index.is_some(), "an engine has a number")?;
            require(
                index.is_some_and(|index| (0..ENGINES).contains(&index)),
                "there is no engine of this number",
            )?;
            let graph = graph_of(
                &descriptor,
                Name::CUDNN_ATTR_ENGINE_OPERATION_GRAPH,
                Of::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
            )?;
            descriptor.graph = Some(graph);
        }
        Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR => {
            let graph = graph_of(
                &descriptor,
                Name::CUDNN_ATTR_ENGINECFG_ENGINE,
                Of::CUDNN_BACKEND_ENGINE_DESCRIPTOR,
            )?;
            descriptor.graph = Some(graph);
        }
        Of::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR => {
            let json = Name::CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
            let graph = match descriptor.bytes(json) {
                Some(text) => Arc::new(written::read(text)?),
                None => graph_of(
                    &descriptor,
                    Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                    Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                )?,
            };
            descriptor.graph = Some(graph);
        }
        Of::CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR => {
            let text = descriptor.bytes(Name::CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
            require(
                text.is_none_or(|text| text == DEVICE.as_bytes()),
                "the text describes no device of ours",
            )?;
        }
        Of::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR => {
            let uids = descriptor.integers(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)?;
            let places = descriptor.integers(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)?;
            require(uids.len() == places.len(), "tensors' numbers are not as many as their addresses")?;
            overrides::of_pack(&descriptor)?;
        }
        _ => {}
    }
    descriptor.is_final = true;
    Ok(())
}

/// A device's properties as a text: plans are the same for all of ours.
const DEVICE: &str = "{\"cudaway\": 1, \"device\": \"any\"}";

/// An attribute of what the library has made is written into a descriptor that the program has made.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn hand_out(kind: Of, graph: &Arc<Graph>, room: i64, elements: *mut c_void) -> Result {
    if room <= 0 || elements.is_null() {
        return Ok(());
    }
    // SAFETY: cuDNN's contract: handles of descriptors.
    let handle = unsafe { elements.cast::<cudnnBackendDescriptor_t>().read_unaligned() };
    let node = find(handle)?;
    let mut descriptor = node.lock();
    require(descriptor.kind == kind, "the descriptor to be filled is of another kind")?;
    *descriptor = Descriptor::made(kind, graph.clone());
    Ok(())
}

/// Writes one number.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn tell(number: i64, room: i64, elements: *mut c_void) {
    if room > 0 && !elements.is_null() {
        // SAFETY: cuDNN's contract: room for it.
        unsafe { elements.cast::<i64>().write_unaligned(number) };
    }
}

/// Writes as much of a text as there is room for, and says how long it is.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn tell_text(text: &str, room: i64, elements: *mut c_void) -> i64 {
    let count = text.len().min(usize::try_from(room).unwrap_or(0));
    if count > 0 && !elements.is_null() {
        // SAFETY: cuDNN's contract: room for so many characters.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr(), elements.cast::<u8>(), count) };
    }
    text.len() as i64
}

/// Writes 0, of 32 bits or of 64.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn tell_narrow(ty: cudnnBackendAttributeType_t, room: i64, elements: *mut c_void) -> Result {
    match ty {
        cudnnBackendAttributeType_t::CUDNN_TYPE_INT32 if room > 0 && !elements.is_null() => {
            // SAFETY: cuDNN's contract: room for it.
            unsafe { elements.cast::<i32>().write_unaligned(0) };
        }
        cudnnBackendAttributeType_t::CUDNN_TYPE_INT32 => {}
        // SAFETY: the caller's promise.
        cudnnBackendAttributeType_t::CUDNN_TYPE_INT64 => unsafe { tell(0, room, elements) },
        _ => return Err(Error::BadParam("the attribute is of another type")),
    }
    Ok(())
}

/// Numbers of engines. cudnn-frontend asks for 5 or 17 by itself, with knobs, for 8-bit attention's way back on compute capability 10 and 12.
const ENGINES: i64 = 18;

/// There is one engine by all its numbers, without knobs, whose plans take no work area and become nodes of CUDA graphs.
///
/// # Safety
/// As [`cudnnBackendSetAttribute`].
pub unsafe fn cudnnBackendGetAttribute(
    descriptor: cudnnBackendDescriptor_t,
    attributeName: cudnnBackendAttributeName_t,
    attributeType: cudnnBackendAttributeType_t,
    requestedElementCount: i64,
    elementCount: OptOut<'_, i64>,
    arrayOfElements: *mut c_void,
) -> Result {
    let node = find(descriptor)?;
    let (kind, graph) = {
        let descriptor = node.lock();
        if !descriptor.is_final {
            return Err(Error::NotInitialized);
        }
        (descriptor.kind, descriptor.graph.clone())
    };
    let (room, elements) = (requestedElementCount, arrayOfElements);
    let is_text = attributeType == cudnnBackendAttributeType_t::CUDNN_TYPE_CHAR;
    if (kind, attributeName)
        == (Of::CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, Name::CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)
    {
        require(is_text, "the attribute is of another type")?;
        // SAFETY: the caller's promise.
        elementCount.write(unsafe { tell_text(DEVICE, room, elements) });
        return Ok(());
    }
    if let Some(graph) = graph {
        let is_told = match (kind, attributeName) {
            (Of::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, Name::CUDNN_ATTR_ENGINEHEUR_RESULTS) => {
                // SAFETY: the caller's promise.
                unsafe { hand_out(Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &graph, room, elements) }?;
                true
            }
            (Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, Name::CUDNN_ATTR_ENGINECFG_ENGINE) => {
                // SAFETY: the caller's promise.
                unsafe { hand_out(Of::CUDNN_BACKEND_ENGINE_DESCRIPTOR, &graph, room, elements) }?;
                true
            }
            (
                Of::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                Name::CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
            ) => {
                // SAFETY: the caller's promise.
                unsafe { tell(ENGINES, room, elements) };
                true
            }
            (Of::CUDNN_BACKEND_ENGINE_DESCRIPTOR, Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX) => {
                let index = node.lock().integer(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX)?;
                // SAFETY: the caller's promise.
                unsafe { tell(index.unwrap_or(0), room, elements) };
                true
            }
            (Of::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
                if !node.lock().knows(Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) =>
            {
                // SAFETY: the caller's promise.
                unsafe { hand_out(Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &graph, room, elements) }?;
                true
            }
            (Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, Name::CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
            | (Of::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) =>
            {
                // SAFETY: the caller's promise.
                unsafe { tell(0, room, elements) };
                true
            }
            (Of::CUDNN_BACKEND_ENGINE_DESCRIPTOR, Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE) => {
                let is_note = attributeType == cudnnBackendAttributeType_t::CUDNN_TYPE_BEHAVIOR_NOTE;
                require(is_note, "the attribute is of another type")?;
                if room > 0 && !elements.is_null() {
                    let note = cudnnBackendBehaviorNote_t::CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API;
                    // SAFETY: cuDNN's contract: room for it.
                    unsafe { elements.cast::<cudnnBackendBehaviorNote_t>().write_unaligned(note) };
                }
                true
            }
            (Of::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, Name::CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED) => {
                // SAFETY: the caller's promise.
                unsafe { tell_narrow(attributeType, room, elements) }?;
                true
            }
            (
                Of::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
                Name::CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
            ) => {
                require(is_text, "the attribute is of another type")?;
                // SAFETY: the caller's promise.
                elementCount.write(unsafe { tell_text(&written::write(&graph), room, elements) });
                return Ok(());
            }
            _ => false,
        };
        if is_told {
            elementCount.write(1);
            return Ok(());
        }
    }
    if attributeType == cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR {
        let sources = node.lock().described(attributeName)?;
        let room = if elements.is_null() { 0 } else { usize::try_from(room).unwrap_or(0) };
        for (at, source) in sources.iter().enumerate().take(room) {
            // SAFETY: cuDNN's contract: so many handles of descriptors, which the program has made.
            let handle = unsafe { elements.cast::<cudnnBackendDescriptor_t>().add(at).read_unaligned() };
            let (filled, source) = (find(handle)?, source.lock().clone());
            let mut filled = filled.lock();
            require(filled.kind == source.kind, "the descriptor to be filled is of another kind")?;
            *filled = source;
        }
        elementCount.write(sources.len() as i64);
        return Ok(());
    }
    // SAFETY: cuDNN's contract: room for so many elements of the type.
    let count = unsafe { node.lock().get(attributeName, attributeType, room, elements) }?;
    elementCount.write(count as i64);
    Ok(())
}

/// A plan's graph, and what a pack gives for each tensor that it wants.
///
/// # Safety
/// As [`cudnnBackendSetAttribute`].
unsafe fn given_to(
    executionPlan: cudnnBackendDescriptor_t,
    variantPack: cudnnBackendDescriptor_t,
) -> Result<(Arc<Graph>, BTreeMap<i64, Given>)> {
    let graph = {
        let plan = find(executionPlan)?;
        let plan = final_of(&plan, Of::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        plan.ok_or(Error::BadParam("the plan has no graph"))?
    };
    let pack = find(variantPack)?;
    final_of(&pack, Of::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
    let (uids, places, overrides) = {
        let pack = pack.lock();
        (
            pack.integers(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)?,
            pack.integers(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)?,
            overrides::of_pack(&pack)?,
        )
    };
    let graph = if overrides.is_empty() { graph } else { Arc::new(graph.overridden(overrides)?) };
    let addresses: BTreeMap<i64, i64> = uids.into_iter().zip(places).collect();
    let mut given = BTreeMap::new();
    for (uid, _) in graph.wanted() {
        let address = addresses.get(&uid).ok_or(Error::BadParam("the pack lacks a tensor"))?;
        // The program's own address, as it gave it.
        let at = core::ptr::with_exposed_provenance_mut::<u8>(*address as usize);
        // SAFETY: the caller's promise.
        given.insert(uid, unsafe { graph.given(uid, at) }?);
    }
    Ok((graph, given))
}

/// # Safety
/// As [`cudnnBackendSetAttribute`].
pub unsafe fn cudnnBackendExecute(
    handle: cudnnHandle_t,
    executionPlan: cudnnBackendDescriptor_t,
    variantPack: cudnnBackendDescriptor_t,
) -> Result {
    let context = computing(handle)?;
    // SAFETY: the caller's promise.
    let (graph, given) = unsafe { given_to(executionPlan, variantPack) }?;
    let (hip, kernels) = (context.hip(true)?, context.kernels()?);
    if hip.is_some() || kernels.is_some() {
        let device = Device { hip: hip.as_ref(), kernels: kernels.as_ref(), stream: context.stream() };
        let ours = |operations: Range<usize>, given: &BTreeMap<i64, Given>| {
            let (graph, given) = (Arc::clone(&graph), given.clone());
            // What has been copied before has changed since on the device.
            kit::far::end();
            // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
            context.enqueue(move || unsafe { graph.run_part(operations.clone(), &given) })
        };
        // SAFETY: as above.
        if unsafe { graph.run_on_device(&device, &given, ours) }? {
            return Ok(());
        }
    }
    // SAFETY: as above.
    context.enqueue(move || unsafe { graph.run(&given) })
}

/// Makes a run of the plan the nodes of a graph that has none: one of our own code's, or the launches of our kernels.
///
/// # Safety
/// As [`cudnnBackendSetAttribute`].
pub unsafe fn cudnnBackendPopulateCudaGraph(
    handle: cudnnHandle_t,
    executionPlan: cudnnBackendDescriptor_t,
    variantPack: cudnnBackendDescriptor_t,
    graph: cudaGraph_t,
) -> Result {
    let context = computing(handle)?;
    // SAFETY: the caller's promise.
    let run = unsafe { given_to(executionPlan, variantPack) }?;
    require(
        !graph.is_null() && kit::graph::nodes(graph)?.is_empty(),
        "the graph is NULL or has nodes already",
    )?;
    // SAFETY: the caller's promise.
    unsafe { fill(&context, graph, run, false) }
}

/// The nodes of a graph that was populated are for another pack from now on.
///
/// # Safety
/// As [`cudnnBackendSetAttribute`].
pub unsafe fn cudnnBackendUpdateCudaGraph(
    handle: cudnnHandle_t,
    executionPlan: cudnnBackendDescriptor_t,
    variantPack: cudnnBackendDescriptor_t,
    graph: cudaGraph_t,
) -> Result {
    let context = computing(handle)?;
    // SAFETY: the caller's promise.
    let run = unsafe { given_to(executionPlan, variantPack) }?;
    require(!graph.is_null(), "the graph is NULL")?;
    let nodes = kit::graph::nodes(graph)?;
    let may_be_several = context.kernels()?.is_some();
    require(
        nodes.len() == 1 || (may_be_several && !nodes.is_empty()),
        "the graph is none that cudnnBackendPopulateCudaGraph has made",
    )?;
    nodes.into_iter().try_for_each(kit::graph::remove)?;
    // SAFETY: the caller's promise.
    unsafe { fill(&context, graph, run, true) }
}

/// Fills a graph that has no nodes, or has none any more.
///
/// # Safety
/// As [`cudnnBackendSetAttribute`].
unsafe fn fill(
    context: &Context,
    to: cudaGraph_t,
    (graph, given): (Arc<Graph>, BTreeMap<i64, Given>),
    is_again: bool,
) -> Result {
    if let Some(kernels) = context.kernels()? {
        let kept = Kept::of(to, is_again)?;
        let mut done = Ok(false);
        kit::graph::fill(to, |stream| {
            let call = kernels.for_graph(kept, stream);
            let device = Device { hip: None, kernels: Some(&call), stream };
            // SAFETY: cuDNN's contract: the tensors are there until the graph has come here.
            done = unsafe { graph.run_on_device(&device, &given, |_, _| Err(LACKS)) };
            Ok(())
        })?;
        match done {
            Ok(true) => return Ok(()),
            Err(error) if error != LACKS => return Err(error),
            // What was begun is our own code's as a whole.
            _ => kit::graph::nodes(to)?.into_iter().try_for_each(kit::graph::remove)?,
        }
    }
    context.add_to_graph(to, move || {
        // SAFETY: as above.
        unsafe { graph.run(&given) };
    })
}

const LACKS: Error = Error::NotSupported("what kernels have not got, in a graph");

/// The graph of a descriptor that is final and of that kind.
fn final_of(node: &Arc<Node>, kind: Of) -> Result<Option<Arc<Graph>>> {
    let descriptor = node.lock();
    require(descriptor.kind == kind, "a descriptor is of another kind")?;
    if !descriptor.is_final {
        return Err(Error::Bad(
            cudnnStatus_t::CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            "a descriptor was not finalized",
        ));
    }
    Ok(descriptor.graph.clone())
}

pub fn cudnnGetExecutionPlanWorkspaceSize(
    handle: cudnnHandle_t,
    executionPlan: cudnnBackendDescriptor_t,
    _variantPack: cudnnBackendDescriptor_t,
    workspaceSizeInBytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    final_of(&find(executionPlan)?, Of::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
    workspaceSizeInBytes.write(0);
    Ok(())
}
