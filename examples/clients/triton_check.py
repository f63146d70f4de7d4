"""Triton's kernels, as far as PTX, launched through libcuda.so.1 by ctypes and compared with NumPy.

Triton's own launcher needs PyTorch; its compiler does not, and it is the compiler's PTX that counts here.
"""

import ctypes
import re

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + i, values / tl.sum(values, axis=0), mask=i < columns)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out + key, 1, mask=i < n)


@triton.jit
def prefix(x, out, total, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    values = tl.load(x + i)
    tl.store(out + i, tl.cumsum(values, axis=0))
    tl.store(total, tl.sum(tl.sort(values) * i, axis=0))


class Device:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise SystemExit(f"FAILED: {name}: {result}")

    def upload(self, data):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(data.nbytes))
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))
        return address

    def download(self, address, like):
        out = np.empty_like(like)
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), address, ctypes.c_size_t(out.nbytes))
        return out

    def run(self, kernel, signature, constants, arguments, grid, architecture, warps=4):
        names = kernel.arg_names
        types = dict(zip(names, signature)) | {name: "constexpr" for name in constants}
        values = {(names.index(name),): value for name, value in constants.items()}
        source = ASTSource(fn=kernel, signature=types, constexprs=values)
        compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": warps})
        ptx = compiled.asm["ptx"]
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, compiled.metadata.name.encode())
        # Behind the kernel's own parameters: scratch memory that these kernels do not use.
        n_params = len(re.findall(r"\.param", ptx[ptx.index(".entry") : ptx.index(")", ptx.index(".entry"))]))
        arguments = [*arguments, *(ctypes.c_uint64(0) for _ in range(n_params - len(arguments)))]
        shared = compiled.metadata.shared
        if shared > 48 << 10:
            self.call("cuFuncSetAttribute", function, 8, shared)
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(value) for value in arguments))
        self.call("cuLaunchKernel", function, *grid, 32 * compiled.metadata.num_warps, 1, 1, shared, None, pointers, None)
        self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)


def expect(what, got, wanted, tolerance=0.0):
    if not np.allclose(got, wanted, rtol=tolerance, atol=tolerance):
        raise SystemExit(f"FAILED: {what}: differs by {np.abs(got - wanted).max()}")


def main():
    device = Device()
    numbers = np.random.default_rng(1)
    for architecture in (75, 80, 89):
        x, y = (numbers.standard_normal(1000, dtype=np.float32) for _ in range(2))
        out = device.upload(np.zeros_like(x))
        device.run(add, ["*fp32", "*fp32", "*fp32", "i32"], {"BLOCK": 256}, [device.upload(x), device.upload(y), out, ctypes.c_int(1000)], (4, 1, 1), architecture)
        expect("add", device.download(out, x), x + y)

        table = numbers.standard_normal((7, 100), dtype=np.float32)
        out = device.upload(table)
        device.run(softmax, ["*fp32", "*fp32", "i32"], {"BLOCK": 128}, [device.upload(table), out, ctypes.c_int(100)], (7, 1, 1), architecture)
        powers = np.exp(table.astype(np.float64) - table.max(axis=1, keepdims=True))
        expect("softmax", device.download(out, table), powers / powers.sum(axis=1, keepdims=True), 1e-5)

        for kind, name, bound in ((np.float16, "fp16", 0.0), (np.float32, "fp32", 0.0)):
            a, b = (numbers.integers(-8, 9, (64, 64)).astype(kind) for _ in range(2))
            c = np.zeros((64, 64), np.float32)
            out = device.upload(c)
            sizes = [ctypes.c_int(64)] * 3
            device.run(matmul, [f"*{name}", f"*{name}", "*fp32", "i32", "i32", "i32"], {"BM": 32, "BN": 32, "BK": 32}, [device.upload(a), device.upload(b), out, *sizes], (2, 2, 1), architecture)
            expect(f"matmul {name}", device.download(out, c), a.astype(np.float64) @ b.astype(np.float64), bound)

        keys = numbers.integers(0, 16, 1000).astype(np.int32)
        out = device.upload(np.zeros(16, np.int32))
        device.run(histogram, ["*i32", "*i32", "i32"], {"BLOCK": 256}, [device.upload(keys), out, ctypes.c_int(1000)], (4, 1, 1), architecture)
        expect("histogram", device.download(out, np.zeros(16, np.int32)), np.bincount(keys, minlength=16))

        values = numbers.integers(0, 1000, 256).astype(np.int32)
        out, total = device.upload(values), device.upload(np.zeros(1, np.int32))
        device.run(prefix, ["*i32", "*i32", "*i32"], {"BLOCK": 256}, [device.upload(values), out, total], (1, 1, 1), architecture)
        expect("prefix", device.download(out, values), np.cumsum(values))
        expect("sort", device.download(total, np.zeros(1, np.int32))[0], (np.sort(values) * np.arange(256)).sum())
    print("PASSED")


main()
