"""Sums of sparse matrices, the structures of CUDA 13 that hold sizes and arrays, and generic calls of CUDA 11 alone."""

import ctypes

import numpy as np

from bare import described, has
from draw import Dense, SHAPES, Sparse, Vector, op
from library import COL, H, I32, I64, N, T, TYPES, Scope, i64, is_complex, size, stored, wide
from near import check
from vectors import factor

TYPE = ("r32f", "r64f", "c32f", "c64f")


def sums(library, rng):
    handle, count = library.handle(), 0
    for ty in TYPE:
        for width in (I32, I64):
            for operations in ((N, N), (N, N), (N, N), (N, T), (H, N), (T, H)):
                one(library, handle, rng, ty, width, operations)
                count += 1
    library("cusparseDestroy", handle)
    return count


def one(library, handle, rng, ty, width, operations):
    mode = int(rng.integers(2))
    library("cusparseSetPointerMode", handle, mode)
    with Scope(library) as scope:
        m, n = (int(it) for it in rng.integers(0 if rng.integers(6) == 0 else 1, 30, 2))
        given = [Sparse(scope, rng, "csr", ty, *((m, n) if operation == N else (n, m)),
                        SHAPES[int(rng.integers(len(SHAPES)))], int(rng.integers(2)), width, width) for operation in operations]
        base = int(rng.integers(2))
        integer = np.int32 if width == I32 else np.int64
        offsets = scope.array(np.full(m + 1, -9, integer))
        c = scope.made("cusparseCreateCsr", "cusparseDestroySpMat", i64(m), i64(n), i64(0), offsets.at, None, None, width,
                       width, base, TYPES[ty][0])
        values = [float(rng.choice([0.0, 1.0, 1.5, -0.5])) + (0.5j if is_complex(ty) and rng.integers(2) else 0) for _ in given]
        keep = [factor(library, scope, value, ty, mode) for value in values]
        known = scope.made("cusparseSpGEAM_createDescr", "cusparseSpGEAM_destroyDescr")
        call = (handle, *operations, keep[0][1], given[0].descriptor, keep[1][1], given[1].descriptor, c, TYPES[ty][0],
                int(rng.integers(2)), known)
        bytes_ = size()
        library("cusparseSpGEAM_bufferSize", *call, ctypes.byref(bytes_))
        room = scope.room(bytes_.value)
        library("cusparseSpGEAM_nnz", *call, room)
        # A matrix whose factor is 0 is not in the sum.
        pattern = np.zeros((m, n), bool)
        for it, value, operation in zip(given, values, operations):
            if value != 0:
                pattern[(it.i, it.j) if operation == N else (it.j, it.i)] = True
        i, j = np.nonzero(pattern)
        sizes = [ctypes.c_int64() for _ in range(3)]
        library("cusparseSpMatGetSize", c, *[ctypes.byref(it) for it in sizes])
        assert [it.value for it in sizes] == [m, n, len(i)], f"{[it.value for it in sizes]} for {len(i)}"
        starts = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=m) if m else np.zeros(0, int))])
        assert (offsets.get() == starts + base).all(), "offsets"
        columns, out = scope.array(np.full(len(i), -9, integer)), scope.array(stored(np.zeros(len(i)), ty))
        library("cusparseCsrSetPointers", c, offsets.at, columns.at, out.at)
        library("cusparseSpGEAM", *call, room)
        library.synchronize()
        assert (columns.get() == j + base).all(), "columns"
        terms = [value * op(it.dense, operation) for it, value, operation in zip(given, values, operations)]
        exact = (terms[0] + terms[1])[i, j]
        # Entries that are there twice are added one by one.
        check(wide(out.get(), ty), exact, (np.abs(terms[0]) + np.abs(terms[1]) + 8)[i, j], 6, ty, ty, f"SpGEAM {operations}")
        wrong = (*call[:7], given[0].descriptor if (m, n) != (n, m) and operations[0] != N else None, *call[8:])
        assert library.status("cusparseSpGEAM", *wrong, room) == 3, "C is none, or of another size"


class Pointers(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int), ("data", ctypes.c_void_p * 8)]


class Sizes(ctypes.Structure):
    _fields_ = [("format", ctypes.c_int), ("data", ctypes.c_int64 * 8)]


def structures(library, rng):
    if not has(library, "cusparseSpMatGetSizes"):
        return 0
    count = 0
    for kind, number in (("csr", 1), ("csc", 2), ("coo", 3), ("bell", 5), ("bsr", 6), ("sell", 7)):
        with Scope(library) as scope:
            a = Sparse(scope, rng, kind, "r64f", 8, 12, "random", 1, block=2)
            sizes, pointers = Sizes(), Pointers()
            library("cusparseSpMatGetSizes", a.descriptor, ctypes.byref(sizes))
            library("cusparseSpMatGetPointers", a.descriptor, ctypes.byref(pointers))
            assert sizes.format == number and pointers.format == number, kind
            told = list(sizes.data)
            if kind in ("csr", "csc", "coo"):
                assert told[:3] == [8, 12, a.nnz], told
            elif kind == "bsr":
                assert told[:5] == [4, 6, a.nnz // 4, 2, 2], told
            elif kind == "bell":
                assert told[:4] == [8, 12, 2, a.nnz // 8], told
            else:
                assert told[:3] + told[4:5] == [8, 12, a.nnz, 2] and told[3] == len(a.values.values), told
            places = [it.at.value for it in ([a.indices, a.values] if kind == "bell" else [a.offsets, a.indices, a.values])]
            assert list(pointers.data)[:len(places)] == places, kind
            other = Pointers(number, (ctypes.c_void_p * 8)(0x100, 0x200, 0x300))
            library("cusparseSpMatSetPointers", a.descriptor, ctypes.byref(other))
            library("cusparseSpMatGetPointers", a.descriptor, ctypes.byref(pointers))
            assert list(pointers.data)[:len(places)] == [0x100, 0x200, 0x300][:len(places)], kind
            wrong = Pointers(number % 7 + 1, other.data)
            assert library.status("cusparseSpMatSetPointers", a.descriptor, ctypes.byref(wrong)) == 3, kind
            assert library.status("cusparseSpMatGetSizes", a.descriptor, None) == 3
            count += 1
    return count


def older(library, rng):
    """Of CUDA 11 alone."""
    if not has(library, "cusparseCreateCooAoS"):
        return 0
    handle, count = library.handle(), 0
    library("cusparseSetPointerMode", handle, 0)
    for ty in TYPE:
        for base in (0, 1):
            for operation in (N, T, H):
                coordinates(library, handle, rng, ty, base, operation)
                bare_product(library, handle, rng, ty, base, operation)
                count += 1
            constrained(library, handle, rng, ty, base)
    library("cusparseDestroy", handle)
    return count


def coordinates(library, handle, rng, ty, base, operation):
    with Scope(library) as scope:
        rows, cols = (int(it) for it in rng.integers(1, 20, 2))
        width = int(rng.choice([I32, I64]))
        a = Sparse(scope, rng, "coo", ty, rows, cols, "random", base, width, width)
        pairs = np.stack([a.offsets.values, a.indices.values], 1).reshape(-1)
        together = scope.array(pairs)
        descriptor = scope.made("cusparseCreateCooAoS", "cusparseDestroySpMat", i64(rows), i64(cols), i64(a.nnz), together.at,
                                a.values.at, width, base, TYPES[ty][0])
        told = [i64(0) for _ in range(3)] + [ctypes.c_void_p() for _ in range(2)] + [ctypes.c_int() for _ in range(3)]
        library("cusparseCooAoSGet", descriptor, *(ctypes.byref(it) for it in told))
        assert [it.value for it in told] == [rows, cols, a.nnz, together.at.value, a.values.at.value, width, base, TYPES[ty][0]]
        product(library, handle, scope, rng, a, descriptor, ty, operation, "coordinates in one array")
        b = Dense(scope, rng, cols, 2, ty, COL)
        c = Dense(scope, rng, rows, 2, ty, COL)
        one = stored(np.ones(1), ty)
        at = ctypes.c_void_p(one.ctypes.data)
        assert library.status("cusparseSpMM", handle, N, N, at, descriptor, b.descriptor, at, c.descriptor, TYPES[ty][0], 0,
                              None) == 10


def product(library, handle, scope, rng, a, descriptor, ty, operation, what):
    m, k = (a.rows, a.cols) if operation == N else (a.cols, a.rows)
    x, y = Vector(scope, rng, k, ty), Vector(scope, rng, m, ty)
    factors = stored(np.array([1.5, -0.5]), ty)
    ats = [ctypes.c_void_p(factors.ctypes.data + n * factors.itemsize) for n in range(2)]
    if descriptor is not None:
        library("cusparseSpMV", handle, operation, ats[0], descriptor, x.descriptor, ats[1], y.descriptor, TYPES[ty][0], 0, None)
    else:
        number = TYPES[ty][0]
        matrix = described(library, scope, a.base)
        call = (handle, 0, operation, a.rows, a.cols, a.nnz, ats[0], number, matrix, a.values.at, number, a.offsets.at,
                a.indices.at, x.array.at, number, ats[1], number, y.array.at, number, number)
        bytes_ = size()
        library("cusparseCsrmvEx_bufferSize", *call, ctypes.byref(bytes_))
        library("cusparseCsrmvEx", *call, scope.room(bytes_.value))
        mixed = (*call[:-1], TYPES["r32i"][0])
        assert library.status("cusparseCsrmvEx", *mixed, None) == 10, "types that do not go together"
    library.synchronize()
    matrix = op(a.dense, operation)
    bound = 1.5 * np.abs(matrix) @ np.abs(x.dense) + 0.5 * np.abs(y.dense)
    check(y.get(), 1.5 * (matrix @ x.dense) - 0.5 * y.dense, bound, k + 2, ty, ty, f"{what} {ty} {operation}")


def bare_product(library, handle, rng, ty, base, operation):
    with Scope(library) as scope:
        rows, cols = (int(it) for it in rng.integers(1, 20, 2))
        a = Sparse(scope, rng, "csr", ty, rows, cols, SHAPES[int(rng.integers(len(SHAPES)))], base)
        product(library, handle, scope, rng, a, None, ty, operation, "CsrmvEx")


def constrained(library, handle, rng, ty, base):
    with Scope(library) as scope:
        rows, cols, depth = (int(it) for it in rng.integers(1, 20, 3))
        c = Sparse(scope, rng, "csr", ty, rows, cols, "random", base)
        a, b = Dense(scope, rng, rows, depth, ty, COL), Dense(scope, rng, depth, cols, ty, COL)
        one, before = stored(np.ones(1), ty), wide(c.values.values, ty)
        at = ctypes.c_void_p(one.ctypes.data)
        call = (handle, N, N, at, a.descriptor, b.descriptor, at, c.descriptor, TYPES[ty][0])
        bytes_ = size()
        library("cusparseConstrainedGeMM_bufferSize", *call, ctypes.byref(bytes_))
        library("cusparseConstrainedGeMM", *call, scope.room(bytes_.value))
        library.synchronize()
        left, right = a.dense[0], b.dense[0]
        bound = (np.abs(left) @ np.abs(right))[c.i, c.j] + np.abs(before)
        check(wide(c.values.get(), ty), (left @ right)[c.i, c.j] + before, bound, depth + 2, ty, ty, "ConstrainedGeMM")
