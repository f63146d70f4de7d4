"""Triton as it comes from PyPI, without PyTorch: its compiler and its own launcher, for several generations of GPUs, with
results compared to NumPy's. `cudaway run` gives it a `ptxas` that hands the PTX on: its own makes machine code."""

import math
import sys

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton_arrays import Array, close, main, random, same, zeros

# What the driver is told to say it is; chooses the instructions for products and copies.
CAPABILITIES = ("7.5", "8.0", "8.9", "9.0", "10.0")


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def load_and_store():
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.float16, np.float32, np.float64):
        x, y = (random().integers(0, 50, 1000).astype(dtype) for _ in range(2))
        out = zeros(1000, dtype)
        add_kernel[(4,)](Array(x), Array(y), out, 1000, BLOCK=256)
        same(f"add {dtype.__name__}", out.get(), x + y)


@triton.jit
def scalars_kernel(out, a, b, c, flag, wide, other: tl.constexpr):
    value = (a * 1000 + b + other + tl.num_programs(2)).to(tl.int64)
    if flag:
        value += wide
    place = tl.program_id(0) + 3 * tl.program_id(1) + 6 * tl.program_id(2)
    tl.store(out + place, value.to(tl.float64) + c)


def scalars():
    """Numbers as arguments: their types and, for 1 and multiples of 16, their values are compiled in."""
    out = zeros(24, np.float64)
    scalars_kernel[(3, 2, 4)](out, 16, 1, 0.25, True, 1 << 40, other=7)
    same("scalars", out.get(), np.full(24, 16000 + 1 + 7 + 4 + 2.0**40 + 0.25))


@triton.jit
def convert_kernel(x, out, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(TO))


def conversions():
    x = random().standard_normal(512).astype(np.float32) * 100
    for dtype, to in ((np.float16, tl.float16), (np.float64, tl.float64), (np.int32, tl.int32), (np.int8, tl.int8)):
        out = zeros(512, dtype)
        convert_kernel[(1,)](Array(x), out, TO=to, BLOCK=512)
        same(f"to {dtype.__name__}", out.get(), x.astype(np.int32).astype(dtype) if dtype == np.int8 else x.astype(dtype))
    out = Array(np.zeros(512, np.uint16), "bfloat16")
    convert_kernel[(1,)](Array(x), out, TO=tl.bfloat16, BLOCK=512)
    # To the nearest, ties to even.
    bits = x.view(np.uint32).astype(np.uint64)
    same("to bfloat16", out.get(), ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16))


@triton.jit
def reduce_kernel(x, sums, most, least, where, N: tl.constexpr):
    row = tl.program_id(0)
    values = tl.load(x + row * N + tl.arange(0, N))
    tl.store(sums + row, tl.sum(values, axis=0))
    tl.store(most + row, tl.max(values, axis=0))
    tl.store(least + row, tl.min(values, axis=0))
    tl.store(where + row, tl.argmax(values, axis=0))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def fold_kernel(x, columns, rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    values = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(columns + j, tl.reduce(values, 0, multiply))
    tl.store(rows + i, tl.xor_sum(values, axis=1))


def reductions():
    for dtype in (np.int32, np.float32):
        x = random().permutation(7 * 512).reshape(7, 512).astype(dtype)
        sums, most, least, where = zeros(7, dtype), zeros(7, dtype), zeros(7, dtype), zeros(7, np.int32)
        reduce_kernel[(7,)](Array(x), sums, most, least, where, N=512)
        same("sum", sums.get(), x.sum(1, dtype=dtype))
        same("max", most.get(), x.max(1))
        same("min", least.get(), x.min(1))
        same("argmax", where.get(), x.argmax(1).astype(np.int32))
    x = random().integers(-99, 99, (32, 64)).astype(np.int32)
    columns, rows = zeros(64, np.int32), zeros(32, np.int32)
    fold_kernel[(1,)](Array(x), columns, rows, ROWS=32, COLUMNS=64)
    same("product", columns.get(), np.multiply.reduce(x, 0, dtype=np.int32))
    same("xor", rows.get(), np.bitwise_xor.reduce(x, 1))


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + i, values / tl.sum(values, axis=0), mask=i < columns)


def softmax():
    x = random().standard_normal((7, 100)).astype(np.float32)
    for warps in (1, 4, 8):
        out = zeros(x.shape, np.float32)
        softmax_kernel[(7,)](Array(x), out, 100, BLOCK=128, num_warps=warps)
        powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
        close("softmax", out.get(), powers / powers.sum(1, keepdims=True), 1e-6)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=c.dtype.element_ty)
    for k in tl.range(0, K, BK, num_stages=STAGES):
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total, input_precision="ieee", out_dtype=c.dtype.element_ty)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def products():
    """Of small integers: exact in every type."""
    kinds = ((np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int8, np.int32))
    # Triton itself stops at bytes for 7.5.
    for dtype, out_dtype in kinds[: 3 if sys.argv[1] == "7.5" else 4]:
        for stages in (1, 3):
            a, b = (random().integers(-8, 9, (128, 128)).astype(dtype) for _ in range(2))
            c = zeros((128, 128), out_dtype)
            matmul_kernel[(2, 2)](Array(a), Array(b), c, 128, 128, 128, BM=64, BN=64, BK=32, STAGES=stages)
            same(f"product {dtype.__name__}", c.get(), (a.astype(np.int64) @ b.astype(np.int64)).astype(out_dtype))


@triton.jit
def atomics_kernel(x, bins, extremes, lock, total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    key = tl.load(x + i, mask=mask, other=0)
    tl.atomic_add(bins + key, 1, mask=mask)
    tl.atomic_max(extremes + i * 0, key, mask=mask)
    tl.atomic_min(extremes + 1 + i * 0, key, mask=mask)
    tl.atomic_or(extremes + 2 + i * 0, key, mask=mask)
    # One block after the other adds without an atomic.
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total, volatile=True) + tl.sum(tl.where(mask, key, 0), axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


def atomics():
    x = random().integers(1, 64, 1000).astype(np.int32)
    bins, extremes, lock, total = zeros(64, np.int32), Array(np.int32([0, 99, 0])), zeros(1, np.int32), zeros(1, np.int32)
    atomics_kernel[(4,)](Array(x), bins, extremes, lock, total, 1000, BLOCK=256)
    same("histogram", bins.get(), np.bincount(x, minlength=64).astype(np.int32))
    same("extremes", extremes.get(), np.int32([x.max(), x.min(), np.bitwise_or.reduce(x)]))
    same("lock", total.get(), x.sum(dtype=np.int32, keepdims=True))


@triton.jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scan_kernel(x, sums, products, orders, recurrence, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.store(sums + i, tl.cumsum(values, axis=0))
    tl.store(products + i, tl.cumsum(values, axis=0, reverse=True))
    tl.store(orders + i, tl.sort(values))
    _, b = tl.associative_scan((values * 0 + 3, values), 0, linear)
    tl.store(recurrence + i, b)


def scans():
    x = random().integers(-999, 999, 1024).astype(np.int32)
    outs = [zeros(1024, np.int32) for _ in range(4)]
    scan_kernel[(1,)](Array(x), *outs, N=1024)
    same("scan", outs[0].get(), np.cumsum(x, dtype=np.int32))
    same("scan from behind", outs[1].get(), np.cumsum(x[::-1], dtype=np.int32)[::-1])
    same("sort", outs[2].get(), np.sort(x))
    expected, b = [], 0
    for value in x.tolist():
        b = (b * 3 + value) & 0xFFFFFFFF
        expected.append(b)
    same("recurrence", outs[3].get(), np.uint32(expected).view(np.int32))


@triton.jit
def shapes_kernel(x, turned, taken, joined, bins, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(turned + i[:, None] * N + i[None, :], tl.trans(values))
    tl.store(taken + i[:, None] * N + i[None, :], tl.gather(values, (values * 0 + (N - 1) - i[None, :]), 1))
    row = tl.load(x + i)
    pairs = tl.interleave(row, row + 1)
    tl.store(joined + tl.arange(0, 2 * N), tl.flip(pairs))
    tl.store(bins + tl.arange(0, 16), tl.histogram(tl.reshape(values, (N * N,)) % 16, 16))


def shapes():
    x = random().integers(0, 999, (32, 32)).astype(np.int32)
    turned, taken, joined, bins = zeros(x.shape, np.int32), zeros(x.shape, np.int32), zeros(64, np.int32), zeros(16, np.int32)
    shapes_kernel[(1,)](Array(x), turned, taken, joined, bins, N=32)
    same("transpose", turned.get(), x.T)
    same("gather", taken.get(), x[:, ::-1])
    same("interleave and flip", joined.get(), np.stack([x[0], x[0] + 1], 1).ravel()[::-1])
    same("histogram", bins.get(), np.bincount(x.ravel() % 16, minlength=16).astype(np.int32))


@triton.jit
def functions_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    values = tl.load(x + i)
    tl.store(out + i, tl.sqrt_rn(values))
    tl.store(out + N + i, tl.div_rn(1.0, values))
    tl.store(out + 2 * N + i, tl.fma(values, values, values))
    tl.store(out + 3 * N + i, tl.floor(values))
    tl.store(out + 4 * N + i, libdevice.log1p(values))
    tl.store(out + 5 * N + i, tl.sin(values))
    tl.store(out + 6 * N + i, libdevice.erf(values))


def functions():
    x = random().random(256).astype(np.float32) * 9 + 0.1
    out = zeros((7, 256), np.float32)
    functions_kernel[(1,)](Array(x), out, N=256)
    got = out.get()
    wide = x.astype(np.float64)
    for name, row, expected in (("sqrt", got[0], np.sqrt(x)), ("reciprocal", got[1], np.float32(1) / x), ("floor", got[3], np.floor(x))):
        same(name, row, expected)
    close("fma", got[2], wide * wide + wide, 4e-6)
    close("log1p", got[4], np.log1p(wide), 3e-7)
    close("sin", got[5], np.sin(wide), 1e-6)
    close("erf", got[6], np.array([math.erf(value) for value in wide]), 3e-7)


@triton.jit
def random_kernel(out, seed, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.randint(seed, i))


def philox(seed, offset):
    """Philox 4x32-10, the first of its four words."""
    c, k = [offset, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0]


def random_numbers():
    out = zeros(256, np.int32)
    random_kernel[(1,)](out, 12345, N=256)
    same("Philox", out.get(), np.uint32([philox(12345, i) for i in range(256)]).view(np.int32))


@triton.jit(noinline=True)
def collatz(n):
    steps = 0
    while n != 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    return steps


@triton.jit
def calls_kernel(out, bits):
    i = tl.program_id(0)
    tl.store(out + i, collatz(i + 1))
    lanes = tl.arange(0, 32)
    reversed_ = tl.inline_asm_elementwise("brev.b32 $0, $1;", "=r,r", [lanes], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(bits + lanes, reversed_)


def calls():
    """Functions that are not inlined, loops of unknown length, and PTX of one's own."""
    out, bits = zeros(100, np.int32), zeros(32, np.int32)
    calls_kernel[(100,)](out, bits)
    expected = []
    for n in range(1, 101):
        steps = 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        expected.append(steps)
    same("calls", out.get(), np.int32(expected))
    same("brev", bits.get(), np.uint32([int(f"{i:032b}"[::-1], 2) for i in range(32)]).view(np.int32))


@triton.jit
def attention_kernel(q, k, v, out, N: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    left = tl.load(q + rows[:, None] * D + depth[None, :])
    most, weight = tl.full((BM,), -float("inf"), tl.float32), tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, N, BN):
        columns = start + tl.arange(0, BN)
        scores = tl.dot(left, tl.trans(tl.load(k + columns[:, None] * D + depth[None, :])))
        scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        shrink, powers = tl.exp(most - higher), tl.exp(scores - higher[:, None])
        weight = weight * shrink + tl.sum(powers, axis=1)
        total = total * shrink[:, None]
        total = tl.dot(powers.to(tl.float16), tl.load(v + columns[:, None] * D + depth[None, :]), total)
        most = higher
    tl.store(out + rows[:, None] * D + depth[None, :], total / weight[:, None])


def attention():
    n, d = 128, 64
    q, k, v = (random().standard_normal((n, d)).astype(np.float16) * np.float16(0.3) for _ in range(3))
    out = zeros((n, d), np.float32)
    attention_kernel[(n // 64,)](Array(q), Array(k), Array(v), out, N=n, D=d, BM=64, BN=32)
    scores = q.astype(np.float64) @ k.astype(np.float64).T
    scores[np.triu_indices(n, 1)] = -np.inf
    powers = np.exp(scores - scores.max(1, keepdims=True))
    # The powers are halves: 11 bits.
    close("attention", out.get(), powers / powers.sum(1, keepdims=True) @ v.astype(np.float64), 2e-3)


CHECKS = (
    load_and_store,
    scalars,
    conversions,
    reductions,
    softmax,
    products,
    atomics,
    scans,
    shapes,
    functions,
    random_numbers,
    calls,
    attention,
)


main(triton, dict.fromkeys(CAPABILITIES, CHECKS))
