"""One format to another."""

import ctypes

import numpy as np
import scipy.sparse

from draw import SHAPES, Dense, Sparse, numbers
from library import COL, I32, I64, ROW, TYPES, Scope, i64, size, stored, wide
from products import sizes_of, widths


def conversions(library, rng):
    handle, count = library.handle(), 0
    for ty in ("r32f", "r64f", "c32f", "c64f", "r16f", "r16bf", "r8i"):
        for order in (COL, ROW):
            for base in (0, 1):
                for kind in ("csr", "csc", "coo", "bsr", "bell"):
                    for offsets, indices in widths(kind):
                        to_dense(library, handle, rng, ty, order, base, kind, offsets, indices)
                        if kind in ("csr", "csc", "coo", "bell"):
                            from_dense(library, handle, rng, ty, order, base, kind, offsets, indices)
                        count += 2
    for ty in TYPES:
        for base in (0, 1):
            for numeric in (0, 1):
                turn(library, handle, rng, ty, base, numeric)
                count += 1
    library("cusparseDestroy", handle)
    return count


def to_dense(library, handle, rng, ty, order, base, kind, offsets, indices):
    with Scope(library) as scope:
        block = int(rng.integers(1, 4))
        rows, cols = sizes_of(rng, kind, block)
        # Sums of entries that are there twice may be too great for 8 bits.
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        a = Sparse(scope, rng, kind, ty, rows, cols, shape, base, offsets, indices, block)
        b = Dense(scope, rng, rows, cols, ty, order)
        bytes_ = size()
        library("cusparseSparseToDense_bufferSize", handle, a.descriptor, b.descriptor, 0, ctypes.byref(bytes_))
        library("cusparseSparseToDense", handle, a.descriptor, b.descriptor, 0, scope.room(bytes_.value))
        library.synchronize()
        # Sums of two small multiples of 1/8 are exact in every type.
        assert (b.get()[0] == a.dense).all(), f"to dense: {ty} {kind} {order} {shape}"


def from_dense(library, handle, rng, ty, order, base, kind, offsets, indices):
    with Scope(library) as scope:
        block = int(rng.integers(1, 4))
        rows, cols = sizes_of(rng, kind, block)
        a = Dense(scope, rng, rows, cols, ty, order)
        # Half of it zeros.
        flat = a.first.copy()
        flat[rng.random(len(flat)) < 0.5] = np.zeros((), flat.dtype)
        library.runtime("cudaMemcpy", a.array.at, ctypes.c_void_p(flat.ctypes.data), ctypes.c_size_t(flat.nbytes), 1)
        a.first, a.dense = flat, a.read(flat)
        dense = a.dense[0]
        what = f"from dense: {ty} {kind} {order} from {base} {rows}x{cols}"
        dtypes = [np.int32 if it == I32 else np.int64 for it in (offsets, indices)]
        if kind == "bell":
            b = Sparse(scope, rng, "bell", ty, rows, cols, "random", base, offsets, indices, block)
            run(library, scope, handle, a.descriptor, b.descriptor)
            columns = b.indices.values
            values = wide(b.values.get(), ty)
            for row in range(columns.shape[0]):
                for k, column in enumerate(columns[row]):
                    got = values[row * block:(row + 1) * block, k * block:(k + 1) * block]
                    column = column - base
                    want = (np.zeros_like(got) if columns[row][k] < 0 else
                            dense[row * block:(row + 1) * block, column * block:(column + 1) * block])
                    assert (got == want).all(), what
            return
        lines = {"csr": rows, "csc": cols}.get(kind)
        number = TYPES[ty][0]
        if kind == "coo":
            b = scope.made("cusparseCreateCoo", "cusparseDestroySpMat", i64(rows), i64(cols), i64(0), None, None, None,
                           indices, base, number)
        else:
            starts = scope.array(np.zeros(lines + 1, dtypes[0]))
            b = scope.made("cusparseCreate" + kind.capitalize(), "cusparseDestroySpMat", i64(rows), i64(cols), i64(0),
                           starts.at, None, None, offsets, indices, base, number)
        bytes_ = size()
        library("cusparseDenseToSparse_bufferSize", handle, a.descriptor, b, 0, ctypes.byref(bytes_))
        room = scope.room(bytes_.value)
        library("cusparseDenseToSparse_analysis", handle, a.descriptor, b, 0, room)
        counts = [ctypes.c_int64() for _ in range(3)]
        library("cusparseSpMatGetSize", b, *[ctypes.byref(it) for it in counts])
        nnz = counts[2].value
        assert nnz == np.count_nonzero(dense), what
        minor, values = scope.array(np.zeros(nnz, dtypes[1])), scope.array(np.zeros(nnz, TYPES[ty][1]))
        if kind == "coo":
            starts = scope.array(np.zeros(nnz, dtypes[1]))
        library(f"cusparse{kind.capitalize()}SetPointers", b, starts.at, minor.at, values.at)
        library("cusparseDenseToSparse_convert", handle, a.descriptor, b, 0, room)
        library.synchronize()
        turned = dense.T if kind == "csc" else dense
        i, j = np.nonzero(turned)
        assert (minor.get() - base == j).all() and (wide(values.get(), ty) == turned[i, j]).all(), what
        if kind == "coo":
            assert (starts.get() - base == i).all(), what
        else:
            want = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=lines)[:lines])]) if lines else np.zeros(1)
            assert (starts.get() - base == want).all(), what


def run(library, scope, handle, a, b):
    bytes_ = size()
    library("cusparseDenseToSparse_bufferSize", handle, a, b, 0, ctypes.byref(bytes_))
    room = scope.room(bytes_.value)
    library("cusparseDenseToSparse_analysis", handle, a, b, 0, room)
    library("cusparseDenseToSparse_convert", handle, a, b, 0, room)
    library.synchronize()


def turn(library, handle, rng, ty, base, numeric):
    with Scope(library) as scope:
        rows, cols = sizes_of(rng, "csr", 1)
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        a = Sparse(scope, rng, "csr", ty, rows, cols, shape, base)
        poison = np.full(a.nnz, -77, np.int32)
        to_offsets, to_rows = scope.array(np.full(cols + 1, -77, np.int32)), scope.array(poison)
        to_values = scope.array(np.zeros(a.nnz, TYPES[ty][1]))
        call = (handle, rows, cols, a.nnz, a.values.at, a.offsets.at, a.indices.at, to_values.at, to_offsets.at,
                to_rows.at, TYPES[ty][0], numeric, base, 1)
        bytes_ = size()
        library("cusparseCsr2cscEx2_bufferSize", *call, ctypes.byref(bytes_))
        library("cusparseCsr2cscEx2", *call, scope.room(bytes_.value))
        library.synchronize()
        what = f"Csr2cscEx2 {ty} from {base} {shape} {rows}x{cols}"
        by = np.argsort(a.j, kind="stable")
        if cols:
            want = np.concatenate([[0], np.cumsum(np.bincount(a.j, minlength=cols))]) + base
            assert (to_offsets.get() == want).all(), what
        assert (to_rows.get() == a.i[by] + base).all(), what
        want = a.values.values[by] if numeric else np.zeros(a.nnz, TYPES[ty][1])
        assert to_values.get().tobytes() == want.tobytes(), what
