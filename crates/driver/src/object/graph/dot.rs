//! A graph in the DOT language, for people.

use core::ffi::c_uint;
use std::fmt::Write;

use cuda_abi::{CUDA_MEMCPY3D, CUmemorytype};

use super::{Graph, Kernel, Node, Params};

/// `CU_GRAPH_DEBUG_DOT_FLAGS_*`
const VERBOSE: c_uint = 1;
const KERNEL_PARAMS: c_uint = 1 << 2;
const MEMCPY_PARAMS: c_uint = 1 << 3;
const MEMSET_PARAMS: c_uint = 1 << 4;
const HOST_PARAMS: c_uint = 1 << 5;
const EVENT_PARAMS: c_uint = 1 << 6;
const KERNEL_ATTRIBUTES: c_uint = 1 << 9;
const HANDLES: c_uint = 1 << 10;
const ALLOC_PARAMS: c_uint = 1 << 11;
const FREE_PARAMS: c_uint = 1 << 12;
const MEM_OP_PARAMS: c_uint = 1 << 13;
const TOPOLOGY: c_uint = 1 << 14;
const CONDITIONAL_PARAMS: c_uint = 1 << 15;
const MEMCPY_BATCH_PARAMS: c_uint = 1 << 16;

/// Topology, node types, ids, kernel names and directions of copies; more as the flags ask.
pub fn print(graph: &Graph, flags: c_uint) -> String {
    let mut text = String::from("digraph dot {\n");
    cluster(&mut text, graph, flags, &format!("graph_{}", graph.id));
    text.push_str("}\n");
    text
}

/// A graph as a box; its nodes' names begin with the box's.
fn cluster(text: &mut String, graph: &Graph, flags: c_uint, name: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "subgraph cluster_{name} {{\nlabel=\"{name}\" graph[style=\"dashed\"];");
    let nodes = graph.all();
    for (place, node) in &nodes {
        let _ = writeln!(
            text,
            "\"{name}_node_{place}\"[shape=\"record\" label=\"{}\"];",
            label(*place, node, flags)
        );
        let inner = match &node.op.params {
            Params::Child(child) => vec![child],
            Params::Conditional(conditional) => conditional.bodies.iter().collect(),
            _ => vec![],
        };
        for (index, inner) in inner.into_iter().enumerate() {
            cluster(text, &inner.0, flags, &format!("{name}_node_{place}_{index}"));
        }
    }
    for (place, node) in &nodes {
        for (number, (from, edge)) in node.dependencies.iter().enumerate() {
            let headlabel = match has(flags, TOPOLOGY) {
                true => format!(" [headlabel=\"{number}\"]"),
                false if !edge.is_plain() => String::from(" [style=\"dashed\"]"),
                false => String::new(),
            };
            let _ = writeln!(text, "\"{name}_node_{from}\" -> \"{name}_node_{place}\"{headlabel};");
        }
    }
    text.push_str("}\n");
}

fn has(flags: c_uint, flag: c_uint) -> bool {
    flags & (flag | VERBOSE) != 0
}

fn label(place: usize, node: &Node, flags: c_uint) -> String {
    let mut lines = vec![format!("{place}"), format!("topoId: {place}")];
    let params = &node.op.params;
    lines.push(match params {
        Params::Kernel(kernel) => format!("KERNEL {}", kernel.name),
        Params::Memcpy { copy, .. } => format!("MEMCPY {}", direction(copy)),
        Params::MemcpyBatch(_) => String::from("MEMCPY_BATCH"),
        Params::Memset { .. } => String::from("MEMSET"),
        Params::Host(_) => String::from("HOST"),
        Params::Child(_) => String::from("GRAPH"),
        Params::Empty => String::from("EMPTY"),
        Params::WaitEvent(_) => String::from("EVENT_WAIT"),
        Params::EventRecord(_) => String::from("EVENT_RECORD"),
        Params::Alloc(_) => String::from("MEM_ALLOC"),
        Params::Free(_) => String::from("MEM_FREE"),
        Params::BatchMemOp { .. } => String::from("BATCH_MEM_OP"),
        Params::Conditional(_) => String::from("CONDITIONAL"),
        Params::Signal { .. } => String::from("EXT_SEMAS_SIGNAL"),
        Params::Wait { .. } => String::from("EXT_SEMAS_WAIT"),
    });
    if has(flags, HANDLES) {
        lines.push(format!("handle: {:p}", node.handle.0));
    }
    lines.extend(details(params, flags));
    // A record's label keeps these characters for itself.
    let quoted = |line: &String| {
        line.chars().fold(String::new(), |mut text, c| {
            if matches!(c, '"' | '{' | '}' | '|' | '<' | '>' | '\\') {
                text.push('\\');
            }
            text.push(c);
            text
        })
    };
    format!("{{{}}}", lines.iter().map(quoted).collect::<Vec<_>>().join(" | "))
}

/// The parameters that the flags ask for.
fn details(params: &Params, flags: c_uint) -> Vec<String> {
    match params {
        Params::Kernel(kernel) => kernel_details(kernel, flags),
        Params::Memcpy { copy, .. } if has(flags, MEMCPY_PARAMS) => {
            vec![format!("{} x {} x {} bytes", copy.WidthInBytes, copy.Height, copy.Depth)]
        }
        Params::MemcpyBatch(batch) if has(flags, MEMCPY_BATCH_PARAMS) => {
            vec![format!("count: {}, bytes: {}", batch.sizes.len(), batch.sizes.iter().sum::<usize>())]
        }
        Params::Memset { fill, .. } if has(flags, MEMSET_PARAMS) => vec![
            format!("dst: {:#x}, pitch: {}", fill.dst, fill.pitch),
            format!("value: {:#x}, elementSize: {}", fill.value, fill.elementSize),
            format!("{} x {}", fill.width, fill.height),
        ],
        Params::Host(host) if has(flags, HOST_PARAMS) => {
            vec![format!("fn: {:#x}, userData: {:p}", host.fn_.map_or(0, |f| f as usize), host.userData)]
        }
        Params::WaitEvent(event) | Params::EventRecord(event) if has(flags, EVENT_PARAMS) => {
            vec![format!("event: {event:p}")]
        }
        Params::Alloc(block) if has(flags, ALLOC_PARAMS) => {
            vec![format!("dptr: {:#x}, bytesize: {}", block.address, block.len_bytes)]
        }
        Params::Free(block) if has(flags, FREE_PARAMS) => vec![format!("dptr: {:#x}", block.address)],
        Params::BatchMemOp { operations, .. } if has(flags, MEM_OP_PARAMS) => {
            vec![format!("count: {}", operations.len())]
        }
        Params::Conditional(conditional) if has(flags, CONDITIONAL_PARAMS) => vec![format!(
            "handle: {:#x}, type: {}, size: {}",
            conditional.condition.handle,
            conditional.kind.0,
            conditional.bodies.len()
        )],
        _ => vec![],
    }
}

fn kernel_details(kernel: &Kernel, flags: c_uint) -> Vec<String> {
    let params = &kernel.params;
    let mut lines = vec![];
    if has(flags, KERNEL_PARAMS) {
        lines.push(format!(
            "<<<({}, {}, {}), ({}, {}, {}), {}>>>",
            params.gridDimX,
            params.gridDimY,
            params.gridDimZ,
            params.blockDimX,
            params.blockDimY,
            params.blockDimZ,
            params.sharedMemBytes
        ));
    }
    if has(flags, HANDLES) {
        lines.push(format!("func: {:p}, kern: {:p}", params.func, params.kern));
    }
    if has(flags, KERNEL_ATTRIBUTES) {
        lines.extend(kernel.attributes.iter().map(|attribute| format!("attribute {}", attribute.id.0)));
    }
    lines
}

/// From where to where a copy goes, by the memory types it was given.
fn direction(copy: &CUDA_MEMCPY3D) -> String {
    let side = |kind| match kind {
        CUmemorytype::CU_MEMORYTYPE_HOST => "H",
        CUmemorytype::CU_MEMORYTYPE_DEVICE => "D",
        CUmemorytype::CU_MEMORYTYPE_ARRAY => "A",
        _ => "U",
    };
    format!("{}to{}", side(copy.srcMemoryType), side(copy.dstMemoryType))
}
