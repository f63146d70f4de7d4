"""What the proofs of typed calls share: matrices in bare arrays, by rows or in blocks, and descriptions of them."""

import ctypes

import numpy as np

from draw import coordinates, numbers
from library import DEVICE, HOST, ROUNDING, is_complex, size, stored, wide

LETTERS = {"r32f": "S", "r64f": "D", "c32f": "C", "c64f": "Z"}
SHAPES = ("random", "empty", "one row", "power law", "full")


def described(library, scope, base, upper=0, unit=0):
    matrix = scope.made("cusparseCreateMatDescr", "cusparseDestroyMatDescr")
    library("cusparseSetMatIndexBase", matrix, base)
    library("cusparseSetMatFillMode", matrix, upper)
    library("cusparseSetMatDiagType", matrix, unit)
    return matrix


def has(library, name):
    """Whether this release has a function."""
    return hasattr(library.own, name)


def info(library, scope, kind):
    return scope.made(f"cusparseCreate{kind}Info", f"cusparseDestroy{kind}Info")


def starts_of(i, lines):
    return np.concatenate([[0], np.cumsum(np.bincount(i, minlength=lines))]).astype(int)


class Rows:
    """A matrix by rows."""

    def __init__(self, library, scope, i, j, values, ty, rows, cols, base, upper=0, unit=0):
        self.i, self.j, self.nnz, self.base, self.ty = np.asarray(i, int), np.asarray(j, int), len(i), base, ty
        self.values = scope.array(stored(values, ty))
        self.wide = wide(self.values.values, ty)
        self.offsets = scope.array((starts_of(self.i, rows) + base).astype(np.int32))
        self.indices = scope.array((self.j + base).astype(np.int32))
        self.dense = np.zeros((rows, cols), np.complex128 if is_complex(ty) else np.float64)
        np.add.at(self.dense, (self.i, self.j), self.wide)
        self.descriptor = described(library, scope, base, upper, unit)
        self.numbers = (self.offsets.at, self.indices.at)
        self.arrays = (self.values.at, *self.numbers)


def rows(library, scope, rng, ty, m, n, base, shape=None, **more):
    i, j = coordinates(rng, shape or str(rng.choice(SHAPES)), m, n)
    return Rows(library, scope, i, j, numbers(rng, len(i), ty), ty, m, n, base, **more)


class Blocks:
    """A matrix of blocks of r rows and c columns each: `dense` is what it is, `pattern` where it has blocks."""

    def __init__(self, library, scope, pattern, dense, ty, block, by_columns, base, **more):
        (r, c), (self.mb, self.nb) = block, pattern.shape
        self.pattern, self.by_columns, self.block = pattern, by_columns, block
        i, j = np.nonzero(pattern)
        parts = dense.reshape(self.mb, r, self.nb, c).transpose(0, 2, 1, 3)[i, j]
        lying = parts.transpose(0, 2, 1) if by_columns else parts
        self.i, self.j, self.nnzb = i, j, len(i)
        self.values = scope.array(stored(lying.reshape(-1), ty))
        self.offsets = scope.array((starts_of(i, self.mb) + base).astype(np.int32))
        self.indices = scope.array((j + base).astype(np.int32))
        self.descriptor = described(library, scope, base, **more)
        self.numbers = (self.offsets.at, self.indices.at)
        self.arrays = (self.values.at, *self.numbers)
        self.ty = ty
        self.dense = self.read(self.values.values)

    def read(self, flat):
        r, c = self.block
        lying = wide(flat, self.ty).reshape((-1, c, r) if self.by_columns else (-1, r, c))
        parts = lying.transpose(0, 2, 1) if self.by_columns else lying
        dense = np.zeros((self.mb, self.nb, r, c), parts.dtype)
        dense[self.i, self.j] = parts
        return dense.transpose(0, 2, 1, 3).reshape(self.mb * r, self.nb * c)


def blocks(library, scope, rng, ty, mb, nb, block, base, **more):
    pattern = rng.random((mb, nb)) < 0.4
    dense = numbers(rng, mb * block[0] * nb * block[1], ty).reshape(mb * block[0], nb * block[1])
    return Blocks(library, scope, pattern, dense, ty, block, int(rng.integers(2)), base, **more)


class Factor:
    """Numbers that a call takes by their addresses, on the host or on the device."""

    def __init__(self, library, scope, handle, rng, ty):
        self.mode = int(rng.integers(2))
        self.scope, self.rng, self.ty, self.kept = scope, rng, ty, []
        library("cusparseSetPointerMode", handle, self.mode)

    def __call__(self, value, ty=None):
        array = stored(np.array([value]), ty or self.ty)
        self.kept.append(array)
        return self.scope.array(array).at if self.mode == DEVICE else ctypes.c_void_p(array.ctypes.data)

    def draw(self):
        """A number of few bits, 0 among them, and its address."""
        value = complex(*self.rng.choice([0.0, 1.0, 1.5, -0.5], 2)) if is_complex(self.ty) else float(
            self.rng.choice([0.0, 1.0, 1.5, -0.5]))
        return value, self(value)

    def total(self):
        """A place for a count, and how it is read when the stream is done."""
        if self.mode == DEVICE:
            place = self.scope.array(np.full(1, -7, np.int32))
            return place.at, lambda: int(place.get()[0])
        place = ctypes.c_int(-7)
        self.kept.append(place)
        return ctypes.byref(place), lambda: place.value


def rounding(ty):
    """A complex product is four real ones."""
    return ROUNDING[ty] * (4 if is_complex(ty) else 1)


def room(library, scope, name, *arguments):
    """The work area that a call asks for; older calls say its size as an int."""
    bytes_ = size() if name.endswith("Ext") else ctypes.c_int(-1)
    library(name, *arguments, ctypes.byref(bytes_))
    assert bytes_.value >= 0, name
    return scope.room(bytes_.value)


def written(library, array, values):
    """Other values for an array of the device's."""
    values = np.ascontiguousarray(values)
    library.runtime("cudaMemcpy", array.at, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes), 1)


def columns(scope, rng, rows_, cols, ty):
    """A dense matrix by columns with room between them: its array, leading dimension and what it is."""
    ld = max(1, rows_ + int(rng.integers(0, 3)))
    flat = stored(numbers(rng, ld * max(cols, 1), ty), ty)
    return Columns(scope.array(flat), ld, rows_, cols, ty)


class Columns:
    def __init__(self, array, ld, rows_, cols, ty):
        self.array, self.ld, self.rows, self.cols, self.ty, self.at = array, ld, rows_, cols, ty, array.at
        self.dense = self.read(array.values)

    def read(self, flat):
        return wide(flat, self.ty)[:self.ld * self.cols].reshape(self.cols, self.ld)[:, :self.rows].T

    def get(self):
        flat = self.array.get()
        inside = np.zeros(len(flat), bool)
        for column in range(self.cols):
            inside[column * self.ld:column * self.ld + self.rows] = True
        assert flat[~inside].tobytes() == self.array.values[~inside].tobytes(), "something was written between columns"
        return self.read(flat)
