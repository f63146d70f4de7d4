"""libcusolver and the runtime by ctypes, as a C program has them, and matrices in the device's memory."""

import ctypes

import numpy as np

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

POISON = 0xA5


class Failure(Exception):
    pass


class Library:
    """A libcusolver and the libcudart beside it."""

    def __init__(self, cusolver, cudart):
        self.cusolver, self.cudart = ctypes.CDLL(cusolver), ctypes.CDLL(cudart)
        self.called = set()

    def status(self, name, *arguments):
        """Calls a function; Python's integers are C's `int`s, what is wider says so itself."""
        self.called.add(name)
        return getattr(self.cusolver, name)(*arguments)

    def __call__(self, name, *arguments):
        status = self.status(name, *arguments)
        if status != OK:
            raise Failure(f"{name}: {status}")

    def runtime(self, name, *arguments):
        status = getattr(self.cudart, name)(*arguments)
        if status != 0:
            raise Failure(f"{name}: {status}")

    def handle(self):
        handle = ctypes.c_void_p()
        self("cusolverDnCreate", ctypes.byref(handle))
        return handle

    def synchronize(self):
        self.runtime("cudaDeviceSynchronize")


class Array:
    """Numbers in the device's memory, poison before and behind them."""

    GUARD = 64

    def __init__(self, library, values):
        self.library, self.values = library, np.ascontiguousarray(values)
        self.bytes = self.values.nbytes
        image = np.full(self.bytes + 2 * self.GUARD, POISON, np.uint8)
        image[self.GUARD:self.GUARD + self.bytes] = np.frombuffer(self.values.tobytes(), np.uint8)
        self.base = ctypes.c_void_p()
        library.runtime("cudaMalloc", ctypes.byref(self.base), ctypes.c_size_t(image.nbytes))
        self.copy(self.base.value, image.ctypes.data, image.nbytes, 1)

    def copy(self, to, at, count, kind):
        self.library.runtime("cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(at), ctypes.c_size_t(count), kind)

    @property
    def at(self):
        return ctypes.c_void_p(self.base.value + self.GUARD)

    def get(self):
        image = np.zeros(self.bytes + 2 * self.GUARD, np.uint8)
        self.copy(image.ctypes.data, self.base.value, image.nbytes, 2)
        ends = np.concatenate([image[:self.GUARD], image[self.GUARD + self.bytes:]])
        if (ends != POISON).any():
            raise Failure("something was written beside an array")
        middle = image[self.GUARD:self.GUARD + self.bytes]
        return np.frombuffer(middle.tobytes(), self.values.dtype).reshape(self.values.shape)

    def free(self):
        self.library.runtime("cudaFree", self.base)


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


class Scope:
    """What a case makes, taken down behind it."""

    def __init__(self, library):
        self.library, self.undo = library, []

    def array(self, values):
        array = Array(self.library, values)
        self.undo.append(array.free)
        return array

    def zeros(self, count, dtype):
        return self.array(np.zeros(count, dtype))

    def info(self, count=1):
        """Where info goes, with a number that nobody answers."""
        return self.array(np.full(count, -99, np.int32))

    def made(self, create, destroy):
        handle = ctypes.c_void_p()
        self.library(create, ctypes.byref(handle))
        self.undo.append(lambda: self.library(destroy, handle))
        return handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for undo in reversed(self.undo):
            undo()


def i64(value):
    return ctypes.c_int64(int(value))


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
