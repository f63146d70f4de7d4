"""Elements as they lie in memory: NumPy's type, the unit roundoff, and the wide type that the reference computes in."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Element:
    name: str
    dtype: np.dtype
    roundoff: float  # of a result stored in it

    @property
    def is_complex(self):
        return self.dtype.kind == "c"

    @property
    def is_integer(self):
        return self.dtype.kind in "iu"

    def wide(self, array):
        """The same numbers, exactly, in the widest type of the machine."""
        return array.astype(np.clongdouble if self.is_complex else np.longdouble)

    def poison(self, length):
        """Memory that nobody may read: NaN, or a number that stands out."""
        if self.is_integer:
            return np.full(length, 77, self.dtype)
        nan = complex(np.nan, np.nan) if self.is_complex else np.nan
        return np.full(length, nan).astype(self.dtype)

    def random(self, rng, length):
        if self.is_integer:
            return rng.integers(-9, 10, length).astype(self.dtype)
        values = rng.uniform(-1, 1, length)
        if self.is_complex:
            values = values + 1j * rng.uniform(-1, 1, length)
        return values.astype(self.dtype)


def _element(name, dtype, bits):
    return Element(name, np.dtype(dtype), 2.0**-bits if bits else 0.0)


F32, F64 = _element("f32", "f4", 24), _element("f64", "f8", 53)
C32, C64 = _element("c32", "c8", 24), _element("c64", "c16", 53)
F16, BF16 = _element("f16", "f2", 11), _element("bf16", ml_dtypes.bfloat16, 8)
E4M3, E5M2 = _element("e4m3", ml_dtypes.float8_e4m3fn, 4), _element("e5m2", ml_dtypes.float8_e5m2, 3)
I8, I32, I64 = _element("i8", "i1", 0), _element("i32", "i4", 0), _element("i64", "i8", 0)

# What C declares a parameter to point at.
OF_C = {
    "f32": F32,
    "f64": F64,
    "cuComplex": C32,
    "cuDoubleComplex": C64,
    "__half": F16,
    "__nv_bfloat16": BF16,
    "c_int": I32,
    "i64": I64,
}

# cudaDataType_t's numbers (library_types.h).
DATA_TYPE = {F32: 0, F64: 1, F16: 2, I8: 3, C32: 4, C64: 5, I32: 10, BF16: 14, E4M3: 28, E5M2: 29}
