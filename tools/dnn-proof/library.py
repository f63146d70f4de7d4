"""libcudnn's two majors and the runtime by ctypes, as a C program has them, and tensors in the device's memory in any layout."""

import ctypes
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "proof"))

import device
from device import POISON, Failure

P = ctypes.c_void_p
# By the major: what statuses are called here, and their numbers.
STATUS = {
    8: {"NOT_INITIALIZED": 1, "BAD_PARAM": 3, "NOT_SUPPORTED": 9},
    9: {"NOT_INITIALIZED": 1001, "BAD_PARAM": 2000, "NOT_SUPPORTED": 3000},
}
# The number of each type, its NumPy type, and the rounding of what is computed in.
FLOAT, DOUBLE, HALF, BFLOAT16, INT8, INT32 = 0, 1, 2, 9, 3, 4
TYPES = {FLOAT: np.float32, DOUBLE: np.float64, HALF: np.float16, BFLOAT16: ml_dtypes.bfloat16, INT8: np.int8, INT32: np.int32}
FLOATS = (FLOAT, DOUBLE, HALF, BFLOAT16)
EPS = {FLOAT: 2.0**-24, DOUBLE: 2.0**-53, HALF: 2.0**-11, BFLOAT16: 2.0**-8, INT8: 0.5, INT32: 0.5}
COMPUTED = {FLOAT: 2.0**-24, DOUBLE: 2.0**-53, HALF: 2.0**-24, BFLOAT16: 2.0**-24, INT8: 2.0**-53, INT32: 2.0**-53}


class Face(device.Library):
    """A libcudnn of one major and the libcudart beside it."""

    CREATE = "cudnnCreate"

    def __init__(self, major, path, cudart):
        super().__init__(path, cudart)
        self.major = major
        for name in ("cudnnGetVersion", "cudnnGetCudartVersion", "cudnnGetMaxDeviceVersion"):
            getattr(self.own, name).restype = ctypes.c_size_t
        self.own.cudnnGetErrorString.restype = ctypes.c_char_p

    def refused(self, wanted, name, *arguments):
        status = self.status(name, *arguments)
        if status != STATUS[self.major][wanted]:
            raise Failure(f"{name}: {status} for {wanted} of {self.major}")


class Library:
    """Both majors; a case draws the one that it is for."""

    def __init__(self, path, cudart):
        nine = Path(path)
        self.faces = [Face(8, str(nine.with_name("libcudnn.so.8")), cudart), Face(9, path, cudart)]

    def runtime(self, name, *arguments):
        self.faces[1].runtime(name, *arguments)

    def drawn(self, rng):
        return self.faces[int(rng.integers(0, 2))]


def ints(*numbers):
    return (ctypes.c_int * len(numbers))(*[int(number) for number in numbers])


def number(value, of):
    """A factor, which is a `double` for tensors of that type."""
    return ctypes.byref((ctypes.c_double if of == DOUBLE else ctypes.c_float)(value))


def rounded(values, of):
    return np.asarray(values).astype(TYPES[of])


def drawn(rng, sizes, of, spread=1.0):
    if of in (INT8, INT32):
        return rng.integers(-100, 100, sizes).astype(np.float64)
    return rounded(rng.standard_normal(sizes) * spread, of).astype(np.float64)


class Tensor:
    """A tensor in a layout, poison in its gaps."""

    def __init__(self, scope, values, of, layout="NCHW", rng=None):
        self.scope, self.of, self.sizes = scope, of, values.shape
        n = len(self.sizes)
        order = list(range(n))
        gaps = [0] * n
        if layout == "NHWC":
            order = [0] + list(range(2, n)) + [1]
        elif layout == "strided":
            order = [int(at) for at in rng.permutation(n)]
            gaps = [int(gap) for gap in rng.integers(0, 3, n)]
        self.strides, stride = [0] * n, 1
        for at in reversed(order):
            stride += gaps[at]
            self.strides[at] = stride
            stride *= self.sizes[at]
        self.length = 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides))
        dtype = np.dtype(TYPES[of])
        image = np.full(self.length * dtype.itemsize, POISON, np.uint8).view(dtype)
        self.view(image)[...] = values.astype(dtype)
        self.array = scope.array(image)
        self.descriptor = scope.made("cudnnCreateTensorDescriptor", "cudnnDestroyTensorDescriptor")
        library = scope.library
        if layout == "strided" or n < 4:
            library("cudnnSetTensorNdDescriptor", self.descriptor, of, n, ints(*self.sizes), ints(*self.strides))
        elif n == 4:
            library("cudnnSetTensor4dDescriptor", self.descriptor, int(layout == "NHWC"), of, *self.sizes)
        else:
            library("cudnnSetTensorNdDescriptorEx", self.descriptor, int(layout == "NHWC"), of, n, ints(*self.sizes))

    def view(self, image):
        strides = [stride * image.dtype.itemsize for stride in self.strides]
        return np.lib.stride_tricks.as_strided(image, self.sizes, strides)

    @property
    def at(self):
        return self.array.at

    @property
    def both(self):
        return self.descriptor, self.at

    def get(self):
        image = self.array.get().copy()
        values = self.view(image).astype(np.float64).copy()
        self.view(image)[...] = np.zeros(self.sizes, image.dtype)
        bytes_ = image.view(np.uint8)
        mask = np.zeros(self.length, np.uint8)
        strided = np.lib.stride_tricks.as_strided(mask, self.sizes, self.strides)
        strided[...] = 1
        gaps = np.repeat(mask == 0, image.dtype.itemsize)
        if (bytes_[gaps] != POISON).any():
            raise Failure("something was written between a tensor's elements")
        return values


class Filter(Tensor):
    """A filter in one of the two formats."""

    def __init__(self, scope, values, of, layout="NCHW"):
        super().__init__(scope, values, of, layout)
        self.descriptor = scope.made("cudnnCreateFilterDescriptor", "cudnnDestroyFilterDescriptor")
        if len(self.sizes) == 4:
            scope.library("cudnnSetFilter4dDescriptor", self.descriptor, of, int(layout == "NHWC"), *self.sizes)
        else:
            scope.library("cudnnSetFilterNdDescriptor", self.descriptor, of, int(layout == "NHWC"), len(self.sizes), ints(*self.sizes))


class Scope(device.Scope):
    def __init__(self, library):
        super().__init__(library)
        self.handle = self.made("cudnnCreate", "cudnnDestroy")

    def tensor(self, values, of, rng=None):
        layout = "NCHW" if rng is None else str(rng.choice(["NCHW", "NHWC", "strided"]))
        return Tensor(self, values, of, layout, rng)

    def filter(self, values, of, rng):
        return Filter(self, values, of, str(rng.choice(["NCHW", "NHWC"])))

    def activation(self, mode, coefficient=0.0, nan=0):
        it = self.made("cudnnCreateActivationDescriptor", "cudnnDestroyActivationDescriptor")
        self.library("cudnnSetActivationDescriptor", it, mode, nan, ctypes.c_double(coefficient))
        return it


def blended(alpha, result, beta, before):
    return alpha * result + (beta * before if beta else 0.0)


def factors(rng):
    return float(rng.choice([1.0, 0.5, -2.0])), float(rng.choice([0.0, 0.0, 1.0, -0.5]))


def near(found, expected, magnitude, of, depth=1, what=""):
    """Each is as far as roundings explain: of `depth` sums of that magnitude, and of the result's type."""
    sums = COMPUTED[of] * (6 * np.sqrt(depth) + 16) * (magnitude + np.abs(expected))
    bound = sums + 1.01 * EPS[of] * (np.abs(expected) + sums) + (2.0**-24 if of == HALF else 1e-37)
    if of in (INT8, INT32):
        bound = 0.51
    far = ~(np.abs(found - expected) <= bound)
    if far.any():
        at = tuple(index[0] for index in np.nonzero(far))
        raise Failure(f"{what}: {far.sum()} of {far.size} are far, the first {found[at]} for {expected[at]} at {at}")
