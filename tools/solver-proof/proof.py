"""cuSOLVER on the CPU device beside NumPy and SciPy: what is tried is drawn anew from the seed that is given. Results are measured as
LAPACK's own tests measure them, in NumPy's widest numbers.

proof.py SEED libcusolver libcudart [WORD]
"""

import sys

import eigen
import handles
import lowlevel
import mixed
import orthogonal
import refactorisation
import singular
import sparse
import spectrum
import systems
from library import Library
from device import prove

FAMILIES = {
    "how types may be emulated is kept": handles.emulation,
    "the handle, parameters and the library's version": handles.handles,
    "calls that are wrong are refused, and write nothing": handles.refusals,
    "calls run in stream order and with their graph": handles.in_order,
    "getrf, Xgetrf and what they solve": systems.lu,
    "info of singular matrices is LAPACK's": systems.singular_info,
    "laswp": systems.swaps,
    "potrf, potrs, potri, Xpotrf and Xpotrs": systems.cholesky,
    "potrfBatched and potrsBatched": systems.batches,
    "sytrf, sytri, Xsytrf and Xsytrs": systems.indefinite,
    "Xhetrf and Xhetrs, and factors without pivots": systems.hermitian_indefinite,
    "Xtrtri and lauum": systems.triangles,
    "gesv and gels of two precisions": mixed.mixed,
    "IRSXgesv and IRSXgels, and their parameters": mixed.parameters,
    "the 64-bit API's first names": systems.first_names,
    "geqrf, orgqr, ormqr and Xgeqrf": orthogonal.qr,
    "Xlarft": orthogonal.blocks,
    "gebrd and orgbr": orthogonal.bidiagonal,
    "sytrd, orgtr and ormtr": orthogonal.tridiagonal,
    "syevd and Xsyevd": eigen.syevd,
    "syevdx and Xsyevdx": eigen.syevdx,
    "sygvd, sygvdx and sygvj": eigen.sygvd,
    "syevj, syevjBatched and XsyevBatched": eigen.syevj,
    "Xstedc": eigen.stedc,
    "Xsygvd, Xsygvdx and XsygvStridedBatched": eigen.sygvd64,
    "Xgeev": eigen.geev,
    "gesvd and Xgesvd": singular.gesvd,
    "gesvdj and gesvdjBatched": singular.gesvdj,
    "gesvdaStridedBatched": singular.gesvda,
    "Xgesvdp and Xgesvdr": singular.approximate,
    "Xpolar": singular.polar,
    "orders of sparse matrices": sparse.orders,
    "csrlsvqr, csrlsvchol and csrlsvlu": sparse.systems,
    "what csrlsv tells of singular matrices": sparse.singular,
    "csrlsv that is wrong is refused, and waits for its stream": sparse.refusals,
    "csreigvsi": spectrum.eigenvalues,
    "csreigs": spectrum.boxes,
    "csrlsqvqr": spectrum.least,
    "csreigvsi, csreigs and csrlsqvqr that are wrong are refused": spectrum.refusals,
    "csrlu, csrqr and csrchol step by step": lowlevel.factors,
    "csrlu, csrqr and csrchol of singular matrices": lowlevel.singular,
    "csrqrsvBatched": lowlevel.batches,
    "csrlu, csrqr and csrchol that are wrong are refused, and wait for their stream": lowlevel.refusals,
    "cuSolverRF: factors again, in all formats": refactorisation.factors,
    "cuSolverRF: pivots that are none": refactorisation.pivots,
    "cuSolverRF: batches": refactorisation.batches,
    "cuSolverRF: what is told and refused": refactorisation.refusals,
}

prove(Library(sys.argv[2], sys.argv[3]), FAMILIES, int(sys.argv[1]), sys.argv[4] if len(sys.argv) > 4 else "")
