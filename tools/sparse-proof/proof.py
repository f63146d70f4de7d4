"""cuSPARSE on the CPU device beside NumPy's and SciPy's wide numbers: what is tried is drawn anew from the seed that is given.

proof.py SEED libcusparse libcudart
"""

import sys

import conversions
import legacy
import products
import refusals
import solves
import sums
import systems
import typed
import vectors
from library import Library
from device import prove

# Calls that take bare arrays: what only CUDA 11 has is tried where the library has it.
TYPED = {
    "csrsv2, csrsm2, bsrsv2 and bsrsm2 solve with the values they are given, and tell where a pivot is zero": solves.solves,
    "bsrilu02 and bsric02": solves.factors,
    "gtsv2StridedBatch, gtsvInterleavedBatch and gpsvInterleavedBatch": solves.diagonals,
    "bsrmv, bsrxmv, bsrmm, gemvi and gemmi": typed.products,
    "csrgeam2 and csrgemm2": typed.sums,
    "matrices in blocks, and in blocks of another size": typed.blocking,
    "nnz, dense to sparse and back, compress and prune": typed.thinning,
    "csru2csr and back, csrcolor": typed.ordering,
    "gthr, gthrz, sctr, axpyi and roti": typed.entries,
    "coordinates in one array, cusparseCsrmvEx and cusparseConstrainedGeMM": sums.older,
}
FAMILIES = {
    "descriptors keep and tell what they are given": refusals.descriptors,
    "descriptors and calls that are wrong are refused with NVIDIA's numbers": refusals.refusals,
    "row and column numbers out of range write nothing elsewhere": refusals.out_of_range,
    "the handle, its stream and the library's version": refusals.handles,
    "cusparseAxpby, Gather, Scatter, Rot and SpVV": vectors.vectors,
    "cusparseSpMV in each format, type, width, base and operation": products.spmv,
    "cusparseSpMVOp without an epilogue": products.spmvop,
    "cusparseSpMM in each format, type, order, operation and in batches": products.spmm,
    "cusparseSDDMM": products.sddmm,
    "cusparseSpGEMM and SpGEMMreuse beside SciPy": products.spgemm,
    "cusparseSpGEAM": sums.sums,
    "sizes and arrays in structures": sums.structures,
    "cusparseSpSV and SpSM solve, and take other values": systems.systems,
    "sparse to dense and back, cusparseCsr2cscEx2": conversions.conversions,
    "bare arrays: sorts, offsets, csrilu02, csric02 and gtsv2": legacy.legacy,
    "products run in stream order and with their graph": products.in_order,
}

library = Library(sys.argv[2], sys.argv[3])
is_old = hasattr(library.own, "cusparseScsrsv2_solve")
prove(library, TYPED if is_old else {**FAMILIES, **TYPED}, int(sys.argv[1]), sys.argv[4] if len(sys.argv) > 4 else "")
