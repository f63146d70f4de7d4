"""libcublas, libcublasLt and the runtime by ctypes, as a C program has them."""

import ctypes

import numpy as np


class Complex32(ctypes.Structure):
    _fields_ = [("real", ctypes.c_float), ("imag", ctypes.c_float)]


class Complex64(ctypes.Structure):
    _fields_ = [("real", ctypes.c_double), ("imag", ctypes.c_double)]


C_TYPES = {
    "()": None,
    "c_int": ctypes.c_int,
    "c_char": ctypes.c_char,
    "i64": ctypes.c_int64,
    "u64": ctypes.c_uint64,
    "usize": ctypes.c_size_t,
    "c_longlong": ctypes.c_int64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
    "cuComplex": Complex32,
    "cuDoubleComplex": Complex64,
    "*const c_char": ctypes.c_char_p,
}
POINTERS = ("cublasHandle_t", "cublasLtHandle_t", "cudaStream_t", "cublasLtMatmulDesc_t", "cublasLtMatrixLayout_t",
            "cublasLtMatmulPreference_t", "cublasLtMatrixTransformDesc_t")
OK, NOT_INITIALIZED, INVALID_VALUE, NOT_SUPPORTED = 0, 1, 7, 15
HOST, DEVICE = 0, 1
ARENA = 1 << 26


def must(status, what):
    if status != 0:
        raise SystemExit(f"FAILED: {what}: {status}")


class Library:
    def __init__(self, cublas, cublaslt, cudart, signatures):
        self._cuda, self._blas, self._lt = (ctypes.CDLL(path) for path in (cudart, cublas, cublaslt))
        self._signatures = signatures
        self._functions = {}
        self._arena = ctypes.c_void_p()
        must(self._cuda.cudaMalloc(ctypes.byref(self._arena), ctypes.c_size_t(ARENA)), "cudaMalloc")
        self._handle = ctypes.c_void_p()
        must(self._blas.cublasCreate_v2(ctypes.byref(self._handle)), "cublasCreate_v2")

    @property
    def handle(self):
        return self._handle.value

    def pointer_mode(self, mode):
        must(self._blas.cublasSetPointerMode_v2(self._handle, mode), "cublasSetPointerMode_v2")

    def set_stream(self, stream):
        must(self._blas.cublasSetStream_v2(self._handle, stream), "cublasSetStream_v2")

    @property
    def arena(self):
        """Where images lie on the device."""
        return self._arena.value

    def send(self, image):
        self.copy(self._arena.value, image.ctypes.data, image.size, 1)

    def receive(self, size):
        image = np.empty(size, np.uint8)
        self.copy(image.ctypes.data, self._arena.value, size, 2)
        return image

    def copy(self, to, source, size, kind):
        status = self._cuda.cudaMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size), kind)
        must(status, "cudaMemcpy")

    def cuda(self, name, *arguments):
        """A call of the runtime's that has to succeed."""
        must(getattr(self._cuda, name)(*arguments), name)

    def has(self, name):
        return hasattr(self._lt if name.startswith("cublasLt") else self._blas, name)

    def function(self, name):
        if name not in self._functions:
            function = getattr(self._lt if name.startswith("cublasLt") else self._blas, name)
            signature = self._signatures[name]
            function.argtypes = [_c_type(p["type"]) for p in signature["params"]]
            function.restype = _c_type(signature["returns"], returns=True)
            self._functions[name] = function
        return self._functions[name]


def _c_type(name, returns=False):
    if name in C_TYPES and (returns or not name.startswith("*")):
        return C_TYPES[name]
    return ctypes.c_void_p if name.startswith("*") or name in POINTERS else ctypes.c_int


class Arena:
    """Takes memory of the device in a row."""

    def __init__(self, library):
        self.library, self.next = library, library.arena

    def put(self, array):
        address = self.next
        self.next += (array.nbytes + 255) // 256 * 256
        self.library.copy(address, array.ctypes.data, array.nbytes, 1)
        return address

    def get(self, address, like):
        out = np.empty_like(like)
        self.library.copy(out.ctypes.data, address, like.nbytes, 2)
        return out
