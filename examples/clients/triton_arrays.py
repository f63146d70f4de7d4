"""What the checks of Triton share: device memory without PyTorch, as Triton's own launcher takes it, and how results are held against NumPy's."""

import ctypes
import os
import subprocess
import sys

import numpy as np

FAILED = []
CUDA = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    result = getattr(CUDA, name)(*arguments)
    if result != 0:
        raise RuntimeError(f"{name}: {result}")


class Type(str):
    """The name of a type, which for a tensor descriptor has a size and a kind besides."""

    @property
    def itemsize(self):
        return {"8": 1, "16": 2, "32": 4, "64": 8}[self.partition("_")[0].lstrip("abfiltnou")]

    @property
    def is_floating_point(self):
        return "float" in self


class Array:
    """Device memory as Triton takes it: with an address and the name of a type."""

    def __init__(self, data, dtype=None):
        self.data, self.dtype = np.ascontiguousarray(data), Type(dtype or data.dtype)
        self.shape, self.strides_ = self.data.shape, [stride // self.data.itemsize for stride in self.data.strides]
        self.address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(self.address), self.data.nbytes)
        call("cuMemcpyHtoD_v2", self.address, self.data.ctypes.data_as(ctypes.c_void_p), self.data.nbytes)

    def data_ptr(self):
        return self.address.value

    def stride(self, axis=None):
        return self.strides_ if axis is None else self.strides_[axis]

    def get(self):
        out = np.empty_like(self.data)
        call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), self.address, out.nbytes)
        return out

    def __del__(self):
        call("cuMemFree_v2", self.address)


def zeros(shape, dtype):
    return Array(np.zeros(shape, dtype))


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    if got.shape != expected.shape or got.dtype != expected.dtype or not np.array_equal(got, expected):
        FAILED.append(f"{name}: {got.ravel()[:4]}…, expected {expected.ravel()[:4]}…")


def close(name, got, expected, bound):
    worst = np.max(np.abs(got.astype(np.float64) - expected))
    if got.shape != expected.shape or not worst <= bound:
        FAILED.append(f"{name}: off by {worst}")


def random():
    return np.random.default_rng(1)


def check_all(triton, capability, checks):
    triton.runtime.driver.active.set_current_device(0)
    for check in checks:
        before = len(FAILED)
        try:
            check()
        except Exception as error:
            FAILED.append(f"{check.__name__}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
        print(f"{capability}:{check.__name__}", "ok" if len(FAILED) == before else "FAILED", flush=True)
    for line in FAILED:
        print("FAILED:", line, flush=True)
    return bool(FAILED)


def main(triton, checks):
    """Checks by compute capability. A process has one device: another generation needs another process."""
    if len(sys.argv) >= 2:
        capability, *only = sys.argv[1:]
        raise SystemExit(check_all(triton, capability, [check for check in checks[capability] if not only or check.__name__ in only]))
    failed = False
    for capability in checks:
        environment = {**os.environ, "CUDAWAY_COMPUTE_CAPABILITY": capability}
        failed |= subprocess.run([sys.executable, sys.argv[0], capability], env=environment).returncode != 0
    print("FAILED" if failed else "PASSED")
    raise SystemExit(failed)
