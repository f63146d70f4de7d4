"""libcusparse and the runtime by ctypes, as a C program has them, and arrays in the device's memory."""

import ctypes

import ml_dtypes
import numpy as np

OK, NOT_INITIALIZED, INVALID, NOT_SUPPORTED = 0, 1, 3, 10
HOST, DEVICE = 0, 1
N, T, H = 0, 1, 2
COL, ROW = 1, 2
I32, I64 = 2, 3

# library_types.h: the number of each type, and its NumPy type. NumPy has no complex type of 16-bit parts: a pair stands for it.
HALF_PAIR = np.dtype([("re", np.float16), ("im", np.float16)])
BFLOAT_PAIR = np.dtype([("re", ml_dtypes.bfloat16), ("im", ml_dtypes.bfloat16)])
TYPES = {
    "r8i": (3, np.int8), "r16f": (2, np.float16), "r16bf": (14, ml_dtypes.bfloat16),
    "r32f": (0, np.float32), "r64f": (1, np.float64), "r32i": (10, np.int32),
    "c32f": (4, np.complex64), "c64f": (5, np.complex128), "c16f": (6, HALF_PAIR), "c16bf": (15, BFLOAT_PAIR),
}
# Half a unit in the last place.
ROUNDING = {"r8i": 0.0, "r32i": 0.0, "r16f": 2.0**-11, "r16bf": 2.0**-8, "c16f": 2.0**-11, "c16bf": 2.0**-8,
            "r32f": 2.0**-24, "c32f": 2.0**-24, "r64f": 2.0**-53, "c64f": 2.0**-53}


def is_complex(ty):
    return ty[0] == "c"


def stored(wide, ty):
    """Wide numbers as memory has them."""
    wide = np.asarray(wide)
    if ty in ("c16f", "c16bf"):
        out = np.zeros(wide.shape, TYPES[ty][1])
        out["re"], out["im"] = wide.real, wide.imag
        return out
    if not is_complex(ty):
        wide = wide.real
    return wide.astype(TYPES[ty][1])


def wide(array, ty):
    """What memory has as NumPy's widest numbers that are exact."""
    if ty in ("c16f", "c16bf"):
        return array["re"].astype(np.float64) + 1j * array["im"].astype(np.float64)
    return array.astype(np.complex128 if is_complex(ty) else np.float64)


class Failure(Exception):
    pass


class Library:
    """A libcusparse and the libcudart beside it."""

    def __init__(self, cusparse, cudart):
        self.cusparse, self.cudart = ctypes.CDLL(cusparse), ctypes.CDLL(cudart)
        self.cusparse.cusparseGetErrorString.restype = ctypes.c_char_p
        self.cusparse.cusparseGetErrorName.restype = ctypes.c_char_p
        self.called = set()

    def status(self, name, *arguments):
        """Calls a function; Python's integers are C's `int`s, what is wider says so itself."""
        self.called.add(name)
        return getattr(self.cusparse, name)(*arguments)

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
        self("cusparseCreate", ctypes.byref(handle))
        return handle

    def synchronize(self):
        self.runtime("cudaDeviceSynchronize")


class Array:
    """An array in the device's memory, with poison around it."""

    GUARD = 64

    def __init__(self, library, values):
        self.library, self.values = library, np.ascontiguousarray(values)
        self.bytes = self.values.nbytes
        image = np.full(self.bytes + 2 * self.GUARD, 0xA5, np.uint8)
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
        if (ends != 0xA5).any():
            raise Failure("something was written beside an array")
        middle = image[self.GUARD:self.GUARD + self.bytes]
        return np.frombuffer(middle.tobytes(), self.values.dtype).reshape(self.values.shape)

    def free(self):
        self.library.runtime("cudaFree", self.base)


class Scope:
    """What a case makes, taken down behind it."""

    def __init__(self, library):
        self.library, self.undo = library, []

    def array(self, values):
        array = Array(self.library, values)
        self.undo.append(array.free)
        return array

    def made(self, create, destroy, *arguments):
        handle = ctypes.c_void_p()
        self.library(create, ctypes.byref(handle), *arguments)
        self.undo.append(lambda: self.library(destroy, handle))
        return handle

    def room(self, size):
        """A work area, which NULL is for no bytes."""
        if size == 0:
            return None
        return self.array(np.zeros(size, np.uint8)).at

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for undo in reversed(self.undo):
            undo()


def i64(value):
    return ctypes.c_int64(int(value))


def size():
    return ctypes.c_size_t(0)


def scalar(value, ty):
    """A number for a call, and its address on the host."""
    array = stored(np.array([value]), ty)
    return array, ctypes.c_void_p(array.ctypes.data)
