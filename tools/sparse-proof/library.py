"""libcusparse and the runtime by ctypes, as a C program has them, and arrays in the device's memory."""

import ctypes
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "proof"))

import device
from device import Failure, i64

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


class Library(device.Library):
    """A libcusparse and the libcudart beside it."""

    CREATE = "cusparseCreate"

    def __init__(self, cusparse, cudart):
        super().__init__(cusparse, cudart)
        self.own.cusparseGetErrorString.restype = ctypes.c_char_p
        self.own.cusparseGetErrorName.restype = ctypes.c_char_p


class Scope(device.Scope):
    def room(self, size):
        """A work area, which NULL is for no bytes."""
        if size == 0:
            return None
        return self.array(np.zeros(size, np.uint8)).at


def size():
    return ctypes.c_size_t(0)


def scalar(value, ty):
    """A number for a call, and its address on the host."""
    array = stored(np.array([value]), ty)
    return array, ctypes.c_void_p(array.ctypes.data)
