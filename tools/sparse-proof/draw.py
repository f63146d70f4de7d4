"""Matrices that are drawn, and their descriptors in every format."""

import ctypes

import numpy as np

from library import COL, I32, ROW, TYPES, i64, is_complex, stored, wide

SHAPES = ("random", "empty", "one row", "power law", "duplicates", "no rows", "full")


def numbers(rng, count, ty):
    """Small multiples of 1/8, so that no type rounds what is drawn; integers where the type has no others."""
    if ty in ("r8i", "r32i"):
        return rng.integers(-7, 8, count).astype(np.float64)
    draw = lambda: rng.integers(-16, 17, count) / 8.0
    return draw() + 1j * draw() if is_complex(ty) else draw()


def coordinates(rng, shape, rows, cols):
    """Row and column numbers, by rows."""
    if shape == "empty" or rows == 0 or cols == 0:
        return np.zeros(0, int), np.zeros(0, int)
    if shape == "full":
        return np.repeat(np.arange(rows), cols), np.tile(np.arange(cols), rows)
    if shape == "one row":
        row = rng.integers(rows)
        return np.full(cols, row), np.arange(cols)
    if shape == "power law":
        lengths = np.minimum((rng.pareto(1.0, rows) + 0.5).astype(int), cols)
        i = np.repeat(np.arange(rows), lengths)
        j = np.concatenate([np.sort(rng.choice(cols, n, replace=False)) for n in lengths] or [np.zeros(0, int)])
        return i, j.astype(int)
    wanted = int(rng.integers(1, max(2, rows * cols // 3)))
    flat = np.sort(rng.choice(rows * cols, min(wanted, rows * cols), replace=False))
    if shape == "duplicates":
        # Half of the places twice, and no more entries than places.
        flat = flat[:rows * cols // 2 + 1]
        flat = np.sort(np.concatenate([flat, flat[:min(len(flat) // 2, rows * cols - len(flat))]]))
    return flat // cols, flat % cols


class Sparse:
    """One matrix: what it is (dense, wide) and a descriptor of it."""

    def __init__(self, scope, rng, kind, ty, rows, cols, shape="random", base=0, offsets=I32, indices=I32, block=2,
                 order=ROW, const=False, sorted_coordinates=True):
        self.kind, self.ty, self.rows, self.cols, self.base = kind, ty, rows, cols, base
        number, _ = TYPES[ty]
        index = lambda values, which: (np.asarray(values) + base).astype(np.int32 if which == I32 else np.int64)
        name = "cusparseCreateConst" if const else "cusparseCreate"
        self.dense = np.zeros((rows, cols), np.complex128 if is_complex(ty) else np.float64)
        if kind in ("csr", "csc", "coo"):
            i, j = coordinates(rng, shape, rows, cols)
            values = stored(numbers(rng, len(i), ty), ty)
            np.add.at(self.dense, (i, j), wide(values, ty))
            if kind == "csc":
                by = np.argsort(j, kind="stable")
                i, j, values = i[by], j[by], values[by]
            if kind == "coo" and not sorted_coordinates:
                by = rng.permutation(len(i))
                i, j, values = i[by], j[by], values[by]
            self.i, self.j, self.nnz = i, j, len(i)
            self.values = scope.array(values)
            if kind == "coo":
                self.offsets, self.indices = scope.array(index(i, indices)), scope.array(index(j, indices))
                kinds = (indices, base, number)
            else:
                major, minor = (i, j) if kind == "csr" else (j, i)
                lines = rows if kind == "csr" else cols
                counts = np.bincount(major, minlength=lines) if lines else np.zeros(0, int)
                starts = np.concatenate([[0], np.cumsum(counts)])
                self.offsets, self.indices = scope.array(index(starts, offsets)), scope.array(index(minor, indices))
                kinds = (offsets, indices, base, number)
            self.descriptor = scope.made(
                name + kind.capitalize(), "cusparseDestroySpMat", i64(rows), i64(cols), i64(self.nnz), self.offsets.at,
                self.indices.at, self.values.at, *kinds)
            return
        if kind == "sell":
            i, j = coordinates(rng, shape, rows, cols)
            values = wide(stored(numbers(rng, len(i), ty), ty), ty)
            np.add.at(self.dense, (i, j), values)
            starts, columns, all_values = [0], [], []
            for first in range(0, rows, block):
                lines = [np.flatnonzero(i == row) for row in range(first, first + block)]
                length = max((len(line) for line in lines), default=0)
                for k in range(length):
                    for line in lines:
                        columns.append(j[line[k]] + base if k < len(line) else -1)
                        all_values.append(values[line[k]] if k < len(line) else 0)
                starts.append(len(columns))
            self.values = scope.array(stored(np.array(all_values, values.dtype), ty))
            self.offsets = scope.array(index(starts, offsets))
            self.indices = scope.array(np.array(columns, np.int32 if indices == I32 else np.int64))
            self.nnz = len(i)
            self.descriptor = scope.made(
                name + "SlicedEll", "cusparseDestroySpMat", i64(rows), i64(cols), i64(self.nnz), i64(len(columns)),
                i64(block), self.offsets.at, self.indices.at, self.values.at, offsets, indices, base, number)
            return
        block_rows, block_cols = rows // block, cols // block
        assert block_rows * block == rows and block_cols * block == cols
        if kind == "bsr":
            i, j = coordinates(rng, shape if shape != "duplicates" else "random", block_rows, block_cols)
            blocks = numbers(rng, len(i) * block * block, ty).reshape(-1, block, block)
            blocks = wide(stored(blocks, ty), ty)
            for row, column, values in zip(i, j, blocks):
                self.dense[row * block:(row + 1) * block, column * block:(column + 1) * block] += values
            counts = np.bincount(i, minlength=block_rows) if block_rows else np.zeros(0, int)
            self.i, self.j, self.nnz, self.block, self.order = i, j, len(i) * block * block, block, order
            lying = blocks if order == ROW else blocks.transpose(0, 2, 1)
            self.values = scope.array(stored(lying.reshape(-1), ty))
            self.offsets = scope.array(index(np.concatenate([[0], np.cumsum(counts)]), indices))
            self.indices = scope.array(index(j, indices))
            self.descriptor = scope.made(
                name + "Bsr", "cusparseDestroySpMat", i64(block_rows), i64(block_cols), i64(len(i)), i64(block),
                i64(block), self.offsets.at, self.indices.at, self.values.at, indices, indices, base, number, order)
            return
        assert kind == "bell"
        width = int(rng.integers(0, block_cols + 1)) if block_cols else 0
        columns = np.full((block_rows, width), -1)
        values = np.zeros((rows, width * block), self.dense.dtype)
        for row in range(block_rows):
            filled = int(rng.integers(0, width + 1))
            columns[row, :filled] = np.sort(rng.choice(block_cols, filled, replace=False))
            for k in range(filled):
                part = wide(stored(numbers(rng, block * block, ty), ty), ty).reshape(block, block)
                values[row * block:(row + 1) * block, k * block:(k + 1) * block] = part
                column = columns[row, k] * block
                self.dense[row * block:(row + 1) * block, column:column + block] = part
        dtype = np.int32 if indices == I32 else np.int64
        self.indices = scope.array(np.where(columns < 0, -1, columns + base).astype(dtype))
        self.values = scope.array(stored(values, ty))
        self.nnz = rows * width * block
        self.descriptor = scope.made(
            name + "BlockedEll", "cusparseDestroySpMat", i64(rows), i64(cols), i64(block), i64(width * block),
            self.indices.at, self.values.at, indices, base, number)


class Vector:
    def __init__(self, scope, rng, size, ty, const=False, values=None):
        self.ty = ty
        self.dense = wide(stored(numbers(rng, size, ty) if values is None else values, ty), ty)
        self.array = scope.array(stored(self.dense, ty))
        name = "cusparseCreateConstDnVec" if const else "cusparseCreateDnVec"
        self.descriptor = scope.made(name, "cusparseDestroyDnVec", i64(size), self.array.at, TYPES[ty][0])

    def get(self):
        return wide(self.array.get(), self.ty)


class Dense:
    """A dense matrix with room between its lines, or a batch of them."""

    def __init__(self, scope, rng, rows, cols, ty, order, batch=1, const=False):
        self.ty, self.rows, self.cols, self.order, self.batch = ty, rows, cols, order, batch
        line, lines = (rows, cols) if order == COL else (cols, rows)
        self.ld = max(1, line + int(rng.integers(0, 3)))
        self.stride = self.ld * lines + int(rng.integers(0, 3)) if batch > 1 else 0
        self.count = self.ld * lines if batch == 1 else self.stride * batch
        flat = stored(numbers(rng, self.count, ty), ty)
        self.array = scope.array(flat)
        self.first = flat
        self.dense = self.read(flat)
        name = "cusparseCreateConstDnMat" if const else "cusparseCreateDnMat"
        self.descriptor = scope.made(name, "cusparseDestroyDnMat", i64(rows), i64(cols), i64(self.ld), self.array.at,
                                     TYPES[ty][0], order)
        if batch > 1:
            scope.library("cusparseDnMatSetStridedBatch", self.descriptor, batch, i64(self.stride))

    def places(self):
        i, j = np.arange(self.rows)[:, None], np.arange(self.cols)[None, :]
        one = i + j * self.ld if self.order == COL else i * self.ld + j
        return np.stack([one + number * self.stride for number in range(self.batch)]).astype(int)

    def read(self, flat):
        return wide(flat[self.places()], self.ty)

    def get(self):
        flat = self.array.get()
        rest = np.ones(self.count, bool)
        rest[self.places().reshape(-1)] = False
        if flat[rest].tobytes() != self.first[rest].tobytes():
            raise AssertionError("something was written between lines")
        return self.read(flat)


def op(matrix, operation):
    return {0: lambda it: it, 1: lambda it: np.swapaxes(it, -1, -2), 2: lambda it: np.swapaxes(it, -1, -2).conj()}[
        operation](matrix)
