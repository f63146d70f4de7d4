"""cuDNN on the CPU device beside its definition in f64 (NumPy): what is tried is drawn anew from the seed that is given, through the names
of both majors.

proof.py SEED libcudnn.so.9 libcudart [WORD]: libcudnn.so.8 and the parts of both lie beside it.
"""

import sys

import convolutions
import eight
import experts
import graphs
import handles
import layers
import multihead
import networks
import recurrent
import rotations
import sequences
from device import prove
from library import Library

FAMILIES = {
    "handles, versions and what the library says of itself": handles.handles,
    "descriptors keep what they are told and refuse what NVIDIA's refuse": handles.descriptors,
    "calls that are wrong are refused, and write nothing": handles.refusals,
    "calls run in stream order and with their graph": handles.in_order,
    "the library's parts are there by name": handles.parts,
    "convolutions forward": convolutions.forward,
    "convolutions backward": convolutions.backward,
    "convolutions of bytes": convolutions.integers,
    "convolutions with bias and activation": convolutions.bias_and_activation,
    "algorithms are told of and measured": convolutions.algorithms,
    "tensors are transformed, added, set and scaled": layers.elementwise,
    "activations": layers.activations,
    "softmax": layers.softmax,
    "pooling": layers.pooling,
    "local response normalization": layers.lrn,
    "batch normalization": layers.normalization,
    "reductions": layers.reductions,
    "dropout": layers.dropout,
    "recurrent networks": recurrent.networks,
    "recurrent networks by 8's first API": recurrent.first_api,
    "recurrent networks drop between layers": recurrent.dropping,
    "recurrent networks are refused": recurrent.refusals,
    "multi-head attention": multihead.attention,
    "multi-head attention drops": multihead.dropping,
    "multi-head attention is refused": multihead.refusals,
    "CTC loss": sequences.ctc,
    "spatial transformers": sequences.spatial,
    "transforms with padding": sequences.transforms,
    "columns of images": sequences.columns,
    "causal convolutions": sequences.causal,
    "graphs of convolutions": graphs.convolutions,
    "graphs of pointwise operations": graphs.pointwise,
    "graphs of pointwise operations of any numbers": graphs.of_any_numbers,
    "graphs of products and reductions": graphs.products_and_reductions,
    "graphs of pooling": graphs.pooling,
    "graphs are refused when they are finalized": graphs.refusals,
    "graphs' plans are texts, and run with other sizes": graphs.written,
    "graphs of norms": networks.norms,
    "graphs of attention": networks.attention,
    "graphs of attention with masks": networks.masked,
    "graphs of attention in parts": networks.in_parts,
    "graphs of attention in parts with many scores": networks.large,
    "graphs that join, reshape and pool back": networks.shapes,
    "graphs become nodes of CUDA graphs": networks.native,
    "graphs of few bits with factors of blocks": experts.blocks,
    "graphs of mixtures of experts": experts.experts,
    "graphs of batch norms in parts": experts.statistics,
    "graphs that transpose and gather pages": experts.moved,
    "graphs of random numbers, and attention that drops": experts.random,
    "graphs of ragged rows": experts.ragged,
    "graphs of booleans": experts.booleans,
    "graphs of rotary positions": rotations.rotations,
    "graphs of rotary positions in front of attention": rotations.attention,
    "graphs of rotary positions are refused when they are finalized": rotations.refusals,
    "graphs of attention in 8 bits": eight.whole,
    "graphs of attention in 8 bits by blocks": eight.blocks,
    "graphs of attention in 8 bits are refused when they are finalized": eight.refusals,
    "graphs of complex products": experts.complexes,
    "graphs of routed layers are refused when they are finalized": experts.refusals,
    "graphs of layers are refused when they are finalized": networks.refusals,
}

prove(Library(sys.argv[2], sys.argv[3]), FAMILIES, int(sys.argv[1]), sys.argv[4] if len(sys.argv) > 4 else "")
