"""Numba's CUDA target as it comes from PyPI (its own compiler writes PTX through NVVM), each result against NumPy's."""

import math

import numpy as np
from numba import cuda, float32, int32

FAILED = []


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        FAILED.append(f"{name}: {got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}")
    elif not np.array_equal(got, expected):
        at = np.argmax(np.ravel(got != expected))
        FAILED.append(f"{name}: element {at} is {np.ravel(got)[at]}, expected {np.ravel(expected)[at]}")


random = np.random.default_rng(2)
THREADS = 256


@cuda.jit
def add(a, b, out):
    at = cuda.grid(1)
    if at < out.size:
        out[at] = a[at] + b[at]


def vector_add():
    a = random.standard_normal(100_003).astype(np.float32)
    b = random.standard_normal(100_003).astype(np.float32)
    out = cuda.device_array_like(a)
    add[-(-a.size // THREADS), THREADS](cuda.to_device(a), cuda.to_device(b), out)
    same("vector add", out.copy_to_host(), a + b)
    # Host arrays as arguments: Numba copies them there and back.
    back = np.zeros_like(a)
    add[-(-a.size // THREADS), THREADS](a, b, back)
    same("vector add on host arrays", back, a + b)


@cuda.jit
def block_sums(values, out):
    tile = cuda.shared.array(THREADS, int32)
    thread, at = cuda.threadIdx.x, cuda.grid(1)
    tile[thread] = values[at] if at < values.size else 0
    cuda.syncthreads()
    step = THREADS // 2
    while step > 0:
        if thread < step:
            tile[thread] += tile[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        out[cuda.blockIdx.x] = tile[0]


def shared_reduction():
    values = random.integers(-1000, 1000, 100_003).astype(np.int32)
    n_blocks = -(-values.size // THREADS)
    out = cuda.device_array(n_blocks, np.int32)
    block_sums[n_blocks, THREADS](cuda.to_device(values), out)
    padded = np.resize(np.append(values, np.zeros(THREADS, np.int32)), n_blocks * THREADS)
    same("shared memory reduction", out.copy_to_host(), padded.reshape(n_blocks, THREADS).sum(1).astype(np.int32))


@cuda.jit
def count(values, bins, extremes):
    at = cuda.grid(1)
    if at < values.size:
        cuda.atomic.add(bins, values[at] % bins.size, 1)
        cuda.atomic.min(extremes, 0, values[at])
        cuda.atomic.max(extremes, 1, values[at])


def atomics():
    values = random.integers(0, 100_000, 50_000).astype(np.int64)
    bins, extremes = np.zeros(37, np.int64), np.array([2**40, -1], np.int64)
    count[-(-values.size // THREADS), THREADS](values, bins, extremes)
    same("atomic add", bins, np.bincount(values % 37, minlength=37).astype(np.int64))
    same("atomic min and max", extremes, [values.min(), values.max()])


@cuda.jit
def multiply(a, b, out):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    row, column = cuda.grid(2)
    y, x = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for step in range(a.shape[1] // 16):
        left[y, x] = a[row, step * 16 + x]
        right[y, x] = b[step * 16 + y, column]
        cuda.syncthreads()
        for k in range(16):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    out[row, column] = total


def tiled_product():
    # Small whole numbers: exact in any order.
    a = random.integers(-8, 8, (64, 96)).astype(np.float32)
    b = random.integers(-8, 8, (96, 48)).astype(np.float32)
    out = np.zeros((64, 48), np.float32)
    multiply[(4, 3), (16, 16)](a, b, out)
    same("tiled product", out, a @ b)


@cuda.jit
def shuffle(values, out):
    at = cuda.grid(1)
    value = values[at]
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
    out[at] = value + cuda.popc(cuda.ballot_sync(0xFFFFFFFF, values[at] % 2 == 0))


def warps():
    values = random.integers(0, 1000, 256).astype(np.int32)
    out = np.zeros_like(values)
    shuffle[2, 128](values, out)
    rows = values.reshape(-1, 32)
    same("warp shuffles and votes", out, np.repeat(rows.sum(1) + (rows % 2 == 0).sum(1), 32).astype(np.int32))


@cuda.jit
def functions(values, out):
    at = cuda.grid(1)
    if at < values.size:
        out[at] = math.sin(values[at]) * math.exp(values[at]) + math.sqrt(abs(values[at]))


def libdevice():
    values = random.standard_normal(10_000)
    out = np.zeros_like(values)
    functions[-(-values.size // THREADS), THREADS](values, out)
    exact = np.sin(values) * np.exp(values) + np.sqrt(np.abs(values))
    scale = np.abs(np.sin(values) * np.exp(values)) + np.sqrt(np.abs(values))
    if not np.all(np.abs(out - exact) <= 8 * np.finfo(np.float64).eps * scale):
        FAILED.append(f"libdevice: off by {np.max(np.abs(out - exact) / scale)}")


def streams():
    values = np.arange(10_000, dtype=np.float32)
    stream, done = cuda.stream(), cuda.event()
    device = cuda.to_device(values, stream=stream)
    out = cuda.device_array_like(device, stream=stream)
    add[-(-values.size // THREADS), THREADS, stream](device, device, out)
    done.record(stream)
    host = out.copy_to_host(stream=stream)
    done.synchronize()
    stream.synchronize()
    same("stream", host, values * 2)


for check in (vector_add, shared_reduction, atomics, tiled_product, warps, libdevice, streams):
    before = len(FAILED)
    check()
    print(check.__name__, "ok" if len(FAILED) == before else "FAILED")
for line in FAILED:
    print("FAILED:", line)
print("FAILED" if FAILED else "PASSED")
raise SystemExit(1 if FAILED else 0)
