"""libcusolver and the runtime by ctypes, as a C program has them, and matrices in the device's memory."""

import ctypes
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "proof"))

import device
from device import POISON, Failure, i64

OK, NOT_INITIALIZED, INVALID, NOT_SUPPORTED = 0, 1, 3, 9
LOWER, UPPER = 0, 1
LEFT, RIGHT = 0, 1
N, T, C = 0, 1, 2
NOVECTOR, VECTOR = 0, 1
ALL, BY_NUMBER, BY_VALUE = 1001, 1002, 1003

# The letter of each type, its number in library_types.h, its NumPy type and that of its real numbers.
TYPES = {
    "S": (0, np.float32, np.float32),
    "D": (1, np.float64, np.float64),
    "C": (4, np.complex64, np.float32),
    "Z": (5, np.complex128, np.float64),
}
REAL = {"S": "S", "D": "D", "C": "S", "Z": "D"}

class Library(device.Library):
    """A libcusolver and the libcudart beside it."""

    CREATE = "cusolverDnCreate"


class Matrix:
    """A matrix by columns with a leading dimension, poison between them."""

    def __init__(self, scope, values, ld):
        self.rows, self.columns = values.shape
        self.ld, self.dtype = ld, values.dtype
        assert ld >= max(1, self.rows)
        image = np.full((self.columns, ld * values.dtype.itemsize), POISON, np.uint8).view(values.dtype)
        image[:, :self.rows] = values.T
        self.array = scope.array(image)

    @property
    def at(self):
        return self.array.at

    def get(self):
        image = self.array.get()
        gaps = np.ascontiguousarray(image[:, self.rows:]).view(np.uint8)
        if (gaps != POISON).any():
            raise Failure("something was written between a matrix's columns")
        return image[:, :self.rows].T.copy()


class Scope(device.Scope):
    def zeros(self, count, dtype):
        return self.array(np.zeros(count, dtype))

    def info(self, count=1):
        """Where info goes, with a number that nobody answers."""
        return self.array(np.full(count, -99, np.int32))


class Solver:
    """Calls with the work areas that they ask for."""

    def __init__(self, library, handle, scope, letter):
        self.library, self.handle, self.scope, self.letter = library, handle, scope, letter
        self.number, self.dtype, self.real = TYPES[letter]
        self.eps = np.finfo(self.real).eps

    def name(self, routine):
        """`syevd` is `heevd` of complex numbers, and so on."""
        if self.letter in "CZ":
            for real, wide in (("sy", "he"), ("or", "un")):
                kept = ("sytrf", "sytri")
                if routine.startswith(real) and not routine.startswith(kept):
                    routine = wide + routine[2:]
        return f"cusolverDn{self.letter}{routine}"

    def area(self, routine, *arguments, behind=()):
        size = ctypes.c_int(-1)
        self.library(self.name(routine + "_bufferSize"), self.handle, *arguments, ctypes.byref(size), *behind)
        assert size.value >= 0, f"{routine}: a work area of {size.value}"
        return self.scope.zeros(size.value, self.dtype).at, size.value

    def call(self, routine, *arguments):
        self.library(self.name(routine), self.handle, *arguments)

    def matrix(self, values, gap=None, rng=None):
        values = np.asarray(values).astype(self.dtype)
        gap = int(rng.integers(0, 4)) if gap is None else gap
        return Matrix(self.scope, values, max(1, values.shape[0]) + gap)
