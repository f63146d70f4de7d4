"""Products of sparse matrices with dense ones, and of two sparse ones."""

import ctypes

import numpy as np
import scipy.sparse

from draw import SHAPES, Dense, Sparse, Vector, op
from library import (COL, DEVICE, H, HOST, I32, I64, N, NOT_SUPPORTED, ROW, T, TYPES, Failure, Scope, device, i64, is_complex, size,
                     stored, wide)
from near import check
from vectors import SparseVector, factor

# A and x, y, what is computed with.
UNIFORM = [("r32f",) * 4, ("r64f",) * 4, ("c32f",) * 4, ("c64f",) * 4]
MIXED = [("r8i", "r8i", "r32i", "r32i"), ("r8i", "r8i", "r32f", "r32f"), ("r16f", "r16f", "r32f", "r32f"),
         ("r16f", "r16f", "r16f", "r32f"), ("r16bf", "r16bf", "r32f", "r32f"), ("r16bf", "r16bf", "r16bf", "r32f"),
         ("c16f", "c16f", "c16f", "c32f"), ("c16bf", "c16bf", "c16bf", "c32f")]
REGULAR = [("r32f", "c32f", "c32f", "c32f"), ("r64f", "c64f", "c64f", "c64f"), ("r32f", "r64f", "r64f", "r64f")]


def factors(rng, compute):
    alpha, beta = rng.choice([1.0, -0.5, 2.0]), rng.choice([0.0, 1.0, -1.5])
    if compute == "r32i":
        return int(alpha * 2), int(beta * 2)
    return (alpha + 0.5j, beta * (1 - 0.25j)) if is_complex(compute) else (alpha, beta)


def sizes_of(rng, kind, block):
    # A block may not be larger than a Blocked-ELL matrix.
    if rng.integers(8) == 0 and kind != "bell":
        return 0, 0
    rows, cols = int(rng.integers(1, 40)), int(rng.integers(1, 40))
    return (rows * block, cols * block) if kind in ("bsr", "bell") else (rows, cols)


def widths(kind):
    """Of offsets and indices."""
    return ((I32, I32), (I64, I32), (I64, I64)) if kind in ("csr", "csc", "sell") else ((I32, I32), (I64, I64))


def algorithms(kind):
    return {"csr": (0, 2, 3), "csc": (0, 2, 3), "coo": (0, 1, 4), "sell": (0, 5), "bsr": (0, 6)}[kind]


def spmv(library, rng):
    handle, count = library.handle(), 0
    for types in UNIFORM + MIXED + REGULAR:
        for kind in ("csr", "csc", "coo", "sell", "bsr"):
            for offsets, indices in widths(kind):
                for base in (0, 1):
                    for operation in (N, T, H) if kind in ("csr", "csc", "coo") else (N,):
                        shape = SHAPES[int(rng.integers(len(SHAPES)))]
                        mode = int(rng.integers(2))
                        one_spmv(library, handle, rng, types, kind, offsets, indices, base, operation, shape, mode)
                        count += 1
    # Enough for several cores, with one row that is longer than all others.
    for operation in (N, T, H):
        for ty in ("r64f", "c32f"):
            one_spmv(library, handle, rng, (ty,) * 4, "csr", I32, I32, 0, operation, "power law", HOST, (4000, 3000))
            one_spmv(library, handle, rng, (ty,) * 4, "coo", I32, I32, 1, operation, "random", HOST, (300, 400))
            count += 2
    library("cusparseDestroy", handle)
    return count


def one_spmv(library, handle, rng, types, kind, offsets, indices, base, operation, shape, mode, sizes=None):
    a_type, x_type, y_type, compute = types
    what = f"{types} {kind} {offsets} {indices} from {base} op {operation} {shape} {mode}"
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        block = int(rng.integers(1, 5))
        rows, cols = sizes or sizes_of(rng, kind, block)
        a = Sparse(scope, rng, kind, a_type, rows, cols, shape, base, offsets, indices, block,
                   order=int(rng.integers(1, 3)), const=bool(rng.integers(2)),
                   sorted_coordinates=bool(rng.integers(4)))
        m, k = (rows, cols) if operation == N else (cols, rows)
        x, y = Vector(scope, rng, k, x_type, const=bool(rng.integers(2))), Vector(scope, rng, m, y_type)
        alpha, beta = factors(rng, compute)
        keep = factor(library, scope, alpha, compute, mode), factor(library, scope, beta, compute, mode)
        algorithm = int(rng.choice(algorithms(kind)))
        call = (handle, operation, keep[0][1], a.descriptor, x.descriptor, keep[1][1], y.descriptor, TYPES[compute][0],
                algorithm)
        bytes_ = size()
        library("cusparseSpMV_bufferSize", *call, ctypes.byref(bytes_))
        room = scope.room(bytes_.value)
        library("cusparseSpMV_preprocess", *call, room)
        library("cusparseSpMV", *call, room)
        library.synchronize()
        matrix = op(a.dense, operation)
        exact = alpha * (matrix @ x.dense) + beta * y.dense
        bound = abs(alpha) * (np.abs(matrix) @ np.abs(x.dense)) + abs(beta) * np.abs(y.dense)
        check(y.get(), exact, bound, k + 2, compute, y_type, what)


def spmvop(library, rng):
    """alpha A x + beta y into z, which may be y; a plan without an epilogue reads the values that the matrix has when it is run."""
    handle, count = library.handle(), 0
    for types in UNIFORM:
        for offsets, indices in widths("csr"):
            for base in (0, 1):
                for algorithm in (0, 1, 2):
                    for apart in (True, False):
                        shape = SHAPES[int(rng.integers(len(SHAPES)))]
                        one_spmvop(library, handle, rng, types[0], offsets, indices, base, algorithm, apart, shape, int(rng.integers(2)))
                        count += 1
    library("cusparseDestroy", handle)
    return count


def one_spmvop(library, handle, rng, ty, offsets, indices, base, algorithm, apart, shape, mode):
    what = f"{ty} {offsets} {indices} from {base} algorithm {algorithm} {'z' if apart else 'y'} {shape} {mode}"
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        rows, cols = sizes_of(rng, "csr", 1)
        a = Sparse(scope, rng, "csr", ty, rows, cols, shape, base, offsets, indices, const=bool(rng.integers(2)))
        x, y = Vector(scope, rng, cols, ty, const=True), Vector(scope, rng, rows, ty)
        z = Vector(scope, rng, rows, ty) if apart else y
        alpha, beta = factors(rng, ty)
        keep = factor(library, scope, alpha, ty, mode), factor(library, scope, beta, ty, mode)
        call = (N, a.descriptor, x.descriptor, y.descriptor, z.descriptor, TYPES[ty][0], algorithm)
        bytes_, description, plan = size(), ctypes.c_void_p(), ctypes.c_void_p()
        library("cusparseSpMVOp_bufferSize", handle, *call, ctypes.byref(bytes_))
        library("cusparseSpMVOp_createDescr", handle, ctypes.byref(description), *call, scope.room(bytes_.value))
        library("cusparseSpMVOp_createPlan", handle, description, ctypes.byref(plan), None, size())
        # A plan outlives what it was made of.
        library("cusparseSpMVOp_destroyDescr", description)
        matrix, before = a.dense, y.dense
        for times in (1, 2):
            library("cusparseSpMVOp", handle, plan, keep[0][1], keep[1][1], x.descriptor, y.descriptor, z.descriptor)
            library.synchronize()
            exact = alpha * (matrix @ x.dense) + beta * before
            bound = abs(alpha) * (np.abs(matrix) @ np.abs(x.dense)) + abs(beta) * np.abs(before)
            check(z.get(), exact, bound, cols + 2, ty, ty, f"{what}, {times}")
            if apart:
                check(y.get(), y.dense, np.abs(y.dense), 1, ty, ty, f"{what}: y stays")
            # Other values in the same places.
            doubled = stored(2 * wide(a.values.get(), ty), ty)
            a.values.copy(a.values.at.value, doubled.ctypes.data, doubled.nbytes, 1)
            matrix, before = 2 * a.dense, wide(y.get(), ty)
        library("cusparseSpMVOp_destroyPlan", plan)


def spmm(library, rng):
    handle, count = library.handle(), 0
    for types in UNIFORM + MIXED:
        for kind in ("csr", "csc", "coo", "bsr", "bell"):
            for offsets, indices in widths(kind):
                for operation in (N, T, H) if kind in ("csr", "csc", "coo") else (N,):
                    for operation_b in (N, T, H):
                        for batch in (1, 3) if kind in ("csr", "coo", "bsr") and operation_b == N else (1,):
                            one_spmm(library, handle, rng, types, kind, offsets, indices, operation, operation_b, batch)
                            count += 1
    library("cusparseDestroy", handle)
    return count


def one_spmm(library, handle, rng, types, kind, offsets, indices, operation, operation_b, batch):
    a_type, b_type, c_type, compute = types
    orders = [int(it) for it in rng.integers(1, 3, 2)]
    base, mode = (int(it) for it in rng.integers(0, 2, 2))
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    what = f"{types} {kind} {offsets} {indices} from {base} ops {operation} {operation_b} {orders} {shape} of {batch}"
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        block = int(rng.integers(1, 4))
        rows, cols = sizes_of(rng, kind, block)
        n = int(rng.integers(0, 12))
        a = Sparse(scope, rng, kind, a_type, rows, cols, shape, base, offsets, indices, block,
                   order=int(rng.integers(1, 3)))
        if batch > 1:
            # The same matrix in each of the batch: strides of 0.
            if kind == "csr":
                library("cusparseCsrSetStridedBatch", a.descriptor, batch, i64(0), i64(0))
            elif kind == "coo":
                library("cusparseCooSetStridedBatch", a.descriptor, batch, i64(0))
            else:
                library("cusparseBsrSetStridedBatch", a.descriptor, batch, i64(0), i64(0), i64(0))
        m, k = (rows, cols) if operation == N else (cols, rows)
        b_sizes = (k, n) if operation_b == N else (n, k)
        b = Dense(scope, rng, *b_sizes, b_type, orders[0], batch)
        c = Dense(scope, rng, m, n, c_type, orders[1], batch)
        if batch > 1 and c.stride == 0:
            return
        alpha, beta = factors(rng, compute)
        keep = factor(library, scope, alpha, compute, mode), factor(library, scope, beta, compute, mode)
        call = (handle, operation, operation_b, keep[0][1], a.descriptor, b.descriptor, keep[1][1], c.descriptor,
                TYPES[compute][0], 0)
        bytes_ = size()
        library("cusparseSpMM_bufferSize", *call, ctypes.byref(bytes_))
        room = scope.room(bytes_.value)
        library("cusparseSpMM_preprocess", *call, room)
        library("cusparseSpMM", *call, room)
        library.synchronize()
        left, right = op(a.dense, operation), op(b.dense, operation_b)
        exact = alpha * (left @ right) + beta * c.dense
        bound = abs(alpha) * (np.abs(left) @ np.abs(right)) + abs(beta) * np.abs(c.dense)
        check(c.get(), exact, bound, k + 2, compute, c_type, what)


def sddmm(library, rng):
    handle, count = library.handle(), 0
    types = UNIFORM + [types for types in MIXED if types[0][1:] in ("16f", "16bf")]
    for types in types:
        for kind in ("csr", "bsr"):
            for indices in (I32, I64):
                for operation in (N, T):
                    for operation_b in (N, T):
                        for mode in (HOST, DEVICE):
                            one_sddmm(library, handle, rng, types, kind, indices, operation, operation_b, mode)
                            count += 1
    library("cusparseDestroy", handle)
    return count


def one_sddmm(library, handle, rng, types, kind, indices, operation, operation_b, mode):
    a_type, b_type, c_type, compute = types
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        block, depth, base = int(rng.integers(1, 4)), int(rng.integers(0, 20)), int(rng.integers(2))
        rows, cols = sizes_of(rng, kind, block)
        order = int(rng.integers(1, 3))
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        c = Sparse(scope, rng, kind, c_type, rows, cols, shape, base, indices, indices, block, order=order)
        a = Dense(scope, rng, *((rows, depth) if operation == N else (depth, rows)), a_type, int(rng.integers(1, 3)))
        b = Dense(scope, rng, *((depth, cols) if operation_b == N else (cols, depth)), b_type, int(rng.integers(1, 3)))
        alpha, beta = factors(rng, compute)
        keep = factor(library, scope, alpha, compute, mode), factor(library, scope, beta, compute, mode)
        before = wide(c.values.values, c_type)
        call = (handle, operation, operation_b, keep[0][1], a.descriptor, b.descriptor, keep[1][1], c.descriptor,
                TYPES[compute][0], 0)
        bytes_ = size()
        library("cusparseSDDMM_bufferSize", *call, ctypes.byref(bytes_))
        room = scope.room(bytes_.value)
        library("cusparseSDDMM_preprocess", *call, room)
        library("cusparseSDDMM", *call, room)
        library.synchronize()
        left, right = op(a.dense[0], operation), op(b.dense[0], operation_b)
        full, bound = left @ right, np.abs(left) @ np.abs(right)
        if kind == "csr":
            i, j = c.i, c.j
        else:
            r, s = np.divmod(np.arange(block * block), block)
            r, s = (r, s) if order == ROW else (s, r)
            i = (c.i[:, None] * block + r[None, :]).reshape(-1)
            j = (c.j[:, None] * block + s[None, :]).reshape(-1)
        exact = alpha * full[i, j] + beta * before
        sizes = abs(alpha) * bound[i, j] + abs(beta) * np.abs(before)
        what = f"SDDMM {types} {kind} {indices} {operation} {operation_b} {rows}x{cols}x{depth} {shape}"
        check(wide(c.values.get(), c_type), exact, sizes, depth + 2, compute, c_type, what)


def spgemm(library, rng):
    handle, count = library.handle(), 0
    for ty, compute in (("r32f", "r32f"), ("r64f", "r64f"), ("c32f", "c32f"), ("c64f", "c64f"), ("r16f", "r32f"),
                        ("r16bf", "r32f")):
        for offsets, indices in ((I32, I32), (I64, I64)):
            for algorithm in range(6):
                for reuse in (False, True):
                    one_spgemm(library, handle, rng, ty, compute, offsets, indices, algorithm, reuse)
                    count += 1
    # Some seconds of counting.
    if rng.integers(6) == 0:
        too_many_entries(library, handle)
        count += 1
    library("cusparseDestroy", handle)
    return count


def too_many_entries(library, handle):
    """A product of 46,341² entries, one row of a column's by one of a row's: more than offsets of 32 bits number. The process stays whole."""
    n, ty = 46341, "r32f"
    with Scope(library) as scope:
        ones = scope.array(np.ones(n, np.float32))
        every, zeros = scope.array(np.arange(n + 1, dtype=np.int32)), scope.array(np.zeros(n + 1, np.int32))
        ends = scope.array(np.array([0, n], np.int32))
        create = lambda rows, cols, nnz, *arrays: scope.made(
            "cusparseCreateCsr", "cusparseDestroySpMat", i64(rows), i64(cols), i64(nnz), *arrays, I32, I32, 0, TYPES[ty][0])
        a = create(n, 1, n, every.at, zeros.at, ones.at)
        b = create(1, n, n, ends.at, every.at, ones.at)
        c = create(n, n, 0, zeros.at, None, None)
        description = scope.made("cusparseSpGEMM_createDescr", "cusparseSpGEMM_destroyDescr")
        one = factor(library, scope, 1, ty, 0)
        library("cusparseSetPointerMode", handle, 0)
        call = (handle, N, N, one[1], a, b, one[1], c, TYPES[ty][0], 0, description)
        bytes_of = size()
        library("cusparseSpGEMM_workEstimation", *call, ctypes.byref(bytes_of), None)
        room = scope.room(max(1, bytes_of.value))
        library("cusparseSpGEMM_workEstimation", *call, ctypes.byref(bytes_of), room)
        status = library.status("cusparseSpGEMM_compute", *call, ctypes.byref(bytes_of), room)
        assert status == 11, f"CUSPARSE_STATUS_INSUFFICIENT_RESOURCES, not {status}"
        counts = [ctypes.c_int64() for _ in range(3)]
        library("cusparseSpMatGetSize", c, *[ctypes.byref(it) for it in counts])
        assert counts[2].value == 0, "C has entries"


def one_spgemm(library, handle, rng, ty, compute, offsets, indices, algorithm, reuse):
    mode = int(rng.integers(2))
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        m, k, n = (int(it) for it in rng.integers(0 if rng.integers(6) == 0 else 1, 60, 3))
        shapes = [SHAPES[int(it)] for it in rng.integers(0, len(SHAPES), 2)]
        a = Sparse(scope, rng, "csr", ty, m, k, shapes[0], int(rng.integers(2)), offsets, indices)
        b = Sparse(scope, rng, "csr", ty, k, n, shapes[1], int(rng.integers(2)), offsets, indices)
        base = int(rng.integers(2))
        integer = lambda which: np.int32 if which == I32 else np.int64
        c_offsets = scope.array(np.zeros(m + 1, integer(offsets)))
        c = scope.made("cusparseCreateCsr", "cusparseDestroySpMat", i64(m), i64(n), i64(0), c_offsets.at, None, None,
                       offsets, indices, base, TYPES[ty][0])
        description = scope.made("cusparseSpGEMM_createDescr", "cusparseSpGEMM_destroyDescr")
        alpha, beta = factors(rng, compute)
        keep = factor(library, scope, alpha, compute, mode), factor(library, scope, beta, compute, mode)
        with_factors = (handle, N, N, keep[0][1], a.descriptor, b.descriptor, keep[1][1], c, TYPES[compute][0], algorithm,
                        description)
        without = (handle, N, N, a.descriptor, b.descriptor, c, algorithm, description)
        pattern = (scipy.sparse.csr_matrix((a.dense != 0).astype(np.int64))
                   if shapes[0] != "duplicates" else None)

        def twice(name, call, areas=1):
            sizes = [size() for _ in range(areas)]
            library(name, *call, *[it for one in sizes for it in (ctypes.byref(one), None)])
            rooms = [scope.room(max(1, one.value)) for one in sizes]
            library(name, *call, *[it for one, room in zip(sizes, rooms) for it in (ctypes.byref(one), room)])

        if reuse:
            twice("cusparseSpGEMMreuse_workEstimation", without)
            twice("cusparseSpGEMMreuse_nnz", without, 3)
        else:
            twice("cusparseSpGEMM_workEstimation", with_factors)
            products = ctypes.c_int64()
            library("cusparseSpGEMM_getNumProducts", description, ctypes.byref(products))
            lengths = np.bincount(b.i, minlength=k) if k else np.zeros(0, int)
            assert products.value == (lengths[a.j].sum() if a.nnz else 0), f"products: {products.value}"
            twice("cusparseSpGEMM_compute", with_factors)
        counts = [ctypes.c_int64() for _ in range(3)]
        library("cusparseSpMatGetSize", c, *[ctypes.byref(it) for it in counts])
        nnz = counts[2].value
        # What entries there are follows from where there are entries.
        one = lambda it: scipy.sparse.csr_matrix((np.ones(it.nnz), (it.i, it.j)), shape=(it.rows, it.cols))
        expected = one(a) @ one(b)
        expected.sort_indices()
        assert nnz == expected.nnz, f"{nnz} entries for {expected.nnz}"
        columns = scope.array(np.zeros(nnz, integer(indices)))
        before = stored(np.asarray(rng.integers(-4, 5, nnz), float), ty)
        values = scope.array(before)
        library("cusparseCsrSetPointers", c, c_offsets.at, columns.at, values.at)
        if reuse:
            twice("cusparseSpGEMMreuse_copy", without)
            library("cusparseSpGEMMreuse_compute", *with_factors)
        else:
            library("cusparseSpGEMM_copy", *with_factors)
        library.synchronize()
        assert (c_offsets.get() - base == expected.indptr).all(), "offsets"
        assert (columns.get() - base == expected.indices).all(), "columns"
        rows = np.repeat(np.arange(m), np.diff(expected.indptr))
        full, bound = a.dense @ b.dense, np.abs(a.dense) @ np.abs(b.dense)
        at = (rows, expected.indices)

        def right(first, times):
            exact, sizes = first, np.abs(first)
            for _ in range(times):
                exact = alpha * full[at] + beta * exact
                sizes = abs(alpha) * 2 * bound[at] + abs(beta) * sizes
            what = f"SpGEMM {ty} {offsets} {indices} {algorithm} {shapes} {m}x{k}x{n} reuse {reuse}"
            check(wide(values.get(), ty), exact, sizes, k + 2, compute, ty, what)

        right(wide(before, ty), 1)
        if reuse and ty == compute:
            library("cusparseSpGEMMreuse_compute", *with_factors)
            library.synchronize()
            right(wide(before, ty), 2)


def in_order(library, rng):
    """A held stream, a graph, and another stream's events: products see what ran before them."""
    handle = library.handle()
    stream = ctypes.c_void_p()
    library.runtime("cudaStreamCreate", ctypes.byref(stream))
    library("cusparseSetStream", handle, stream)
    library("cusparseSetPointerMode", handle, DEVICE)
    with Scope(library) as scope:
        a = Sparse(scope, rng, "csr", "r64f", 50, 50, "random")
        x, y = Vector(scope, rng, 50, "r64f"), Vector(scope, rng, 50, "r64f")
        alpha, beta = scope.array(np.array([1.0])), scope.array(np.array([0.0]))
        call = lambda x, y: library("cusparseSpMV", handle, N, alpha.at, a.descriptor, x.descriptor, beta.at,
                                    y.descriptor, TYPES["r64f"][0], 0, None)
        call(x, y)
        call(y, x)
        library.runtime("cudaStreamSynchronize", stream)
        twice = a.dense @ (a.dense @ x.dense)
        sizes = np.abs(a.dense) @ (np.abs(a.dense) @ np.abs(x.dense))
        check(x.get(), twice, sizes, 104, "r64f", "r64f", "two products")
        if device.ON_COPIES:
            before = y.get()
            status = device.refused_in_capture(library, stream, lambda: library.status(
                "cusparseSpMV", handle, N, alpha.at, a.descriptor, x.descriptor, beta.at, y.descriptor, TYPES["r64f"][0], 0, None))
            if status != NOT_SUPPORTED or (y.get() != before).any():
                raise Failure(f"a product in a capture: {status}")
            if not device.waits(library, stream, lambda: call(x, y)):
                raise Failure("a product did not wait for its stream")
            sizes = np.abs(a.dense) @ np.abs(x.get())
            check(y.get(), a.dense @ x.get(), sizes, 52, "r64f", "r64f", "behind a held stream")
            library("cusparseDestroy", handle)
            library.runtime("cudaStreamDestroy", stream)
            return 3
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        library.runtime("cudaStreamBeginCapture", stream, 0)
        call(x, y)
        call(y, x)
        library.runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
        now = x.get()
        check(now, twice, sizes, 104, "r64f", "r64f", "a capture runs nothing")
        library.runtime("cudaGraphInstantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        for _ in range(2):
            library.runtime("cudaGraphLaunch", ready, stream)
            library.runtime("cudaStreamSynchronize", stream)
            sizes = np.abs(a.dense) @ (np.abs(a.dense) @ np.abs(now))
            now = a.dense @ (a.dense @ now)
            check(x.get(), now, sizes, 104, "r64f", "r64f", "a graph's products")
            now = x.get()
        library.runtime("cudaGraphExecDestroy", ready)
        library.runtime("cudaGraphDestroy", graph)
        # A result that goes to the host is there when its graph has run.
        library("cusparseSetPointerMode", handle, HOST)
        sparse, result = SparseVector(scope, rng, 50, "r64f", I32, 0), np.array([7.0])
        library.runtime("cudaStreamBeginCapture", stream, 0)
        library("cusparseSpVV", handle, N, sparse.descriptor, x.descriptor, ctypes.c_void_p(result.ctypes.data),
                TYPES["r64f"][0], None)
        library.runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
        assert result[0] == 7
        library.runtime("cudaGraphInstantiate", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        library.runtime("cudaGraphLaunch", ready, stream)
        library.runtime("cudaStreamSynchronize", stream)
        terms = sparse.dense * x.get()[sparse.places]
        check(result, np.array([terms.sum()]), np.array([np.abs(terms).sum()]), 52, "r64f", "r64f", "a captured SpVV")
        library.runtime("cudaGraphExecDestroy", ready)
        library.runtime("cudaGraphDestroy", graph)
        # A call that would have to wait is refused while the stream is captured.
        graph = ctypes.c_void_p()
        d = Dense(scope, rng, 4, 4, "r32f", ROW)
        s = scope.made("cusparseCreateCsr", "cusparseDestroySpMat", i64(4), i64(4), i64(0), None, None, None, I32, I32, 0,
                       TYPES["r32f"][0])
        library.runtime("cudaStreamBeginCapture", stream, 0)
        status = library.status("cusparseDenseToSparse_analysis", handle, d.descriptor, s, 0, None)
        library.cudart.cudaStreamEndCapture(stream, ctypes.byref(graph))
        if status == 0:
            raise Failure("an analysis was captured")
        library.cudart.cudaGetLastError()
    library("cusparseDestroy", handle)
    library.runtime("cudaStreamDestroy", stream)
    return 7
