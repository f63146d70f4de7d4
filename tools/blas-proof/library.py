"""libcublas and the runtime by ctypes, as a C program has them."""

import ctypes

import numpy as np

C_TYPES = {"c_int": ctypes.c_int, "i64": ctypes.c_int64, "c_longlong": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}
NOT_SUPPORTED = 15
HOST, DEVICE = 0, 1
ARENA = 1 << 24


def must(status, what):
    if status != 0:
        raise SystemExit(f"FAILED: {what}: {status}")


class Library:
    def __init__(self, cublas, cudart, signatures):
        self._cuda, self._blas = ctypes.CDLL(cudart), ctypes.CDLL(cublas)
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

    def has(self, name):
        return hasattr(self._blas, name)

    def function(self, name):
        if name not in self._functions:
            function = getattr(self._blas, name)
            function.argtypes = [_c_type(p["type"]) for p in self._signatures[name]["params"]]
            self._functions[name] = function
        return self._functions[name]


def _c_type(name):
    if name.startswith("*") or name == "cublasHandle_t":
        return ctypes.c_void_p
    return C_TYPES.get(name, ctypes.c_int)
