//! Copies in batches, over the test's own provider.

mod null;

use cuda_abi::*;
use driver::Error;
use driver::api::{
    batch_copy, capture, context, copy, graph, graph_exec, graph_node, memory, memset, stream,
};

fn attributes(order: u32) -> CUmemcpyAttributes {
    CUmemcpyAttributes { srcAccessOrder: CUmemcpySrcAccessOrder(order), ..Default::default() }
}

/// A piece of memory as one side of a 3-D copy.
fn linear(at: CUdeviceptr, row_length: usize, layer_height: usize) -> CUmemcpy3DOperand {
    let mut operand = CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
        ..Default::default()
    };
    operand.op.ptr.ptr = at;
    operand.op.ptr.rowLength = row_length;
    operand.op.ptr.layerHeight = layer_height;
    operand
}

#[test]
fn a_batch_copies_all_and_names_the_one_that_is_wrong() {
    null::start();
    let mut handle: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut handle).into(), 0, 0).unwrap();
    let mut stream: CUstream = core::ptr::null_mut();
    stream::cuStreamCreate((&mut stream).into(), 1).unwrap();
    let mut memory = 0;
    memory::cuMemAlloc_v2((&mut memory).into(), 64).unwrap();
    memset::cuMemsetD8_v2(memory, 0, 64).unwrap();
    let source: [u8; 16] = core::array::from_fn(|index| index as u8);
    let host = source.as_ptr().expose_provenance() as CUdeviceptr;
    let read = || {
        let mut back = [0u8; 64];
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        unsafe { copy::cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), memory, 64) }.unwrap();
        back
    };

    let (mut targets, mut sources, mut sizes) = ([memory, memory + 8], [host + 4, host], [4, 2]);
    let mut batch =
        |attrs: &mut [CUmemcpyAttributes], firsts: &mut [usize], stream, sizes: &mut [usize; 2]| {
            let mut failed = 77;
            // SAFETY: the host's memory is large enough, and lives until the copy has been made.
            let answer = unsafe {
                batch_copy::cuMemcpyBatchAsync(
                    targets.as_mut_ptr(),
                    sources.as_mut_ptr(),
                    sizes.as_mut_ptr(),
                    2,
                    attrs.as_mut_ptr(),
                    firsts.as_mut_ptr(),
                    attrs.len(),
                    Some(&mut failed).into(),
                    stream,
                )
            };
            (answer, failed)
        };
    assert_eq!(batch(&mut [attributes(1), attributes(2)], &mut [0, 1], stream, &mut sizes), (Ok(()), 77));
    let found = read();
    assert_eq!((&found[..4], &found[8..10]), (&[4u8, 5, 6, 7][..], &[0u8, 1][..]));
    // CUDA: an order is named, entries begin with 0 and rise, and the legacy default stream takes no batches.
    let whole = (true, usize::MAX);
    let null = core::ptr::null_mut();
    for (attrs, firsts, on) in [
        (&mut [attributes(0)][..], &mut [0][..], stream),
        (&mut [attributes(1)], &mut [1], stream),
        (&mut [attributes(1), attributes(1)], &mut [0, 0], stream),
        (&mut [attributes(1), attributes(1)], &mut [0, 2], stream),
        (&mut [], &mut [], stream),
        (&mut [attributes(1)], &mut [0], null),
    ] {
        let (answer, failed) = batch(attrs, firsts, on, &mut sizes);
        assert_eq!((matches!(answer, Err(Error::InvalidValue(_))), failed), whole);
    }
    // Beyond the allocation.
    let (answer, failed) = batch(&mut [attributes(1)], &mut [0], stream, &mut [4, 60]);
    assert_eq!((answer.is_err(), failed), (true, 1));

    // Two layers of two rows of two bytes, out of rows of four and layers of two rows.
    let op = |layer_height| CUDA_MEMCPY3D_BATCH_OP {
        src: linear(host, 4, layer_height),
        dst: linear(memory + 32, 0, 0),
        extent: CUextent3D { width: 2, height: 2, depth: 2 },
        srcAccessOrder: CUmemcpySrcAccessOrder(1),
        flags: 0,
    };
    let mut list = [op(2)];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { batch_copy::cuMemcpy3DBatchAsync_v2(1, list.as_mut_ptr(), 0, stream) }.unwrap();
    assert_eq!(read()[32..40], [0, 1, 4, 5, 8, 9, 12, 13]);
    let mut short = [op(2), op(1)];
    let mut failed = 77;
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    let answer = unsafe {
        batch_copy::cuMemcpy3DBatchAsync(2, short.as_mut_ptr(), Some(&mut failed).into(), 0, stream)
    };
    assert_eq!((matches!(answer, Err(Error::InvalidValue(_))), failed), (true, 1));
    batch_copy::cuMemcpyWithAttributesAsync(memory, host + 8, 4, &attributes(2), stream).unwrap();
    assert_eq!(read()[..4], [8, 9, 10, 11]);
    // A batch of a captured stream is one node, of which addresses and sizes can change.
    capture::cuStreamBeginCapture(stream).unwrap();
    assert_eq!(batch(&mut [attributes(1)], &mut [0], stream, &mut [1, 1]).0, Ok(()));
    let mut captured: CUgraph = core::ptr::null_mut();
    capture::cuStreamEndCapture(stream, (&mut captured).into()).unwrap();
    let (mut node, mut n_nodes): (CUgraphNode, usize) = (core::ptr::null_mut(), 1);
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(captured, &mut node, &mut n_nodes) }.unwrap();
    let mut params = CUgraphNodeParams::default();
    graph_node::cuGraphNodeGetParams(node, (&mut params).into()).unwrap();
    assert_eq!(params.type_, CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY_BATCH);
    let mut exec: CUgraphExec = core::ptr::null_mut();
    graph_exec::cuGraphInstantiateWithFlags((&mut exec).into(), captured, 0).unwrap();
    let (mut to, mut from, mut lengths) = ([memory + 40, memory + 41], [host + 9, host + 3], [1usize, 0]);
    // SAFETY: the member that belongs to the type.
    let inner = unsafe { &mut params.__bindgen_anon_1.memcpyBatch };
    assert_eq!(inner.count, 2);
    (inner.dsts, inner.srcs, inner.sizes) = (to.as_mut_ptr(), from.as_mut_ptr(), lengths.as_mut_ptr());
    graph_exec::cuGraphExecNodeSetParams(exec, node, &params).unwrap();
    graph_exec::cuGraphLaunch(exec, stream).unwrap();
    assert_eq!(read()[40..42], [9, 0], "a size of 0 is no copy");
    params.__bindgen_anon_1.memcpyBatch.count = 1;
    assert!(graph_exec::cuGraphExecNodeSetParams(exec, node, &params).is_err(), "the count stays");
    context::cuCtxDestroy_v2(handle).unwrap();
}
