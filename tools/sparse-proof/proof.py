"""cuSPARSE on the CPU device beside NumPy's and SciPy's wide numbers: what is tried is drawn anew from the seed that is given.

proof.py SEED libcusparse libcudart
"""

import sys

import conversions
import legacy
import products
import refusals
import systems
import vectors
from library import Library
from device import prove

FAMILIES = {
    "descriptors keep and tell what they are given": refusals.descriptors,
    "descriptors and calls that are wrong are refused with NVIDIA's numbers": refusals.refusals,
    "the handle, its stream and the library's version": refusals.handles,
    "cusparseAxpby, Gather, Scatter, Rot and SpVV": vectors.vectors,
    "cusparseSpMV in each format, type, width, base and operation": products.spmv,
    "cusparseSpMM in each format, type, order, operation and in batches": products.spmm,
    "cusparseSDDMM": products.sddmm,
    "cusparseSpGEMM and SpGEMMreuse beside SciPy": products.spgemm,
    "cusparseSpSV and SpSM solve, and take other values": systems.systems,
    "sparse to dense and back, cusparseCsr2cscEx2": conversions.conversions,
    "bare arrays: sorts, offsets, csrilu02, csric02 and gtsv2": legacy.legacy,
    "products run in stream order and with their graph": products.in_order,
}

prove(Library(sys.argv[2], sys.argv[3]), FAMILIES, int(sys.argv[1]))
