"""CuPy as it comes from PyPI, each result against NumPy's (or, for our own kernels, against what their text says).

Integer results and pure moves are compared to the bit. Floating point sums may differ by the order of addition, so their
tolerance is a bound for that; elementary functions are held to two units in the last place.
"""

import cupy
import numpy as np

FAILED = []


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    got, expected = cupy.asnumpy(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        FAILED.append(f"{name}: {got.dtype}{got.shape}, expected {expected.dtype}{expected.shape}")
    elif not np.array_equal(got, expected):
        at = np.argmax(np.ravel(got != expected))
        FAILED.append(f"{name}: element {at} is {np.ravel(got)[at]}, expected {np.ravel(expected)[at]}")


def close(name, got, expected, bound):
    """Every element within `bound`, a number or an array of them."""
    got, expected = cupy.asnumpy(got).astype(np.complex128), np.asarray(expected, dtype=np.complex128)
    if got.shape != expected.shape:
        FAILED.append(f"{name}: shape {got.shape}, expected {expected.shape}")
        return
    off = np.ravel(np.broadcast_to(np.abs(got - expected) / bound, got.shape))
    # A NaN anywhere is a difference, too.
    if not np.all(off <= 1):
        at = np.argmax(np.where(np.isnan(off), np.inf, off))
        FAILED.append(f"{name}: element {at} is {np.ravel(got)[at]}, expected {np.ravel(expected)[at]}")


def within_ulps(name, got, exact, ulps):
    """`got` in its own precision within `ulps` units in the last place of `exact`, which is in double precision."""
    close(name, got, exact, ulps * np.spacing(np.abs(np.asarray(exact)).astype(cupy.asnumpy(got).dtype)).astype(np.float64))


def sum_bound(values, axis=None):
    """How far two orders of adding `values` may lie apart: n additions, half an ulp of the sum of magnitudes each."""
    magnitudes = np.abs(values.astype(np.float64))
    n = values.size if axis is None else values.shape[axis]
    # Both sides add in trees, which are far better than the n of a plain loop.
    return 4 * np.log2(n) * np.finfo(values.dtype).eps * magnitudes.sum(axis=axis)


random = np.random.default_rng(1)
x = random.standard_normal(100_003).astype(np.float32)
y = random.standard_normal(100_003).astype(np.float32)
X, Y = cupy.asarray(x), cupy.asarray(y)
x64, y64 = x.astype(np.float64), y.astype(np.float64)


def reductions():
    close("sum", X.sum(), x64.sum(), sum_bound(x))
    same("max", X.max(), x.max())
    same("min", X.min(), x.min())
    same("argmax", X.argmax(), x.argmax())
    same("argmin", X.argmin(), x.argmin())
    close("mean", X.mean(), x64.mean(), sum_bound(x) / x.size)
    close("std", X.std(), x64.std(), 1e-5)
    close("cumsum", cupy.cumsum(X), np.cumsum(x64), sum_bound(x))
    same("count_nonzero", cupy.count_nonzero(X > 0), np.intp(np.count_nonzero(x > 0)))
    same("any, all", cupy.stack([(X > 4).any(), (X > -9).all()]), [(x > 4).any(), (x > -9).all()])
    # Sums of small whole numbers are exact in any order.
    w = random.integers(-8, 8, (31, 257, 5))
    W = cupy.asarray(w.astype(np.float32))
    for axis in (0, 1, 2, (0, 2), None):
        same(f"exact sum over {axis}", W.sum(axis=axis), w.sum(axis=axis).astype(np.float32))
        same(f"integer sum over {axis}", cupy.asarray(w).sum(axis=axis), w.sum(axis=axis))


def elementary():
    within_ulps("exp", cupy.exp(X), np.exp(x64), 2)
    within_ulps("log", cupy.log(abs(X)), np.log(np.abs(x64)), 2)
    within_ulps("sin", cupy.sin(X * 10), np.sin((x * np.float32(10)).astype(np.float64)), 2)
    within_ulps("cos", cupy.cos(X * 10), np.cos((x * np.float32(10)).astype(np.float64)), 2)
    within_ulps("sqrt", cupy.sqrt(abs(X)), np.sqrt(np.abs(x64)), 0.5)
    within_ulps("division", X / Y, x64 / y64, 0.5)
    same("correctly rounded", cupy.stack([X + Y, X - Y, X * Y, X / Y]), np.stack([x + y, x - y, x * y, x / y]))
    a = random.standard_normal((257, 129))
    A = cupy.asarray(a)
    close("tanh of doubles", cupy.tanh(A), np.tanh(a), 4e-16)
    close("exp of doubles", cupy.exp(A), np.exp(a), 4e-16 * np.exp(a))
    same("rounding", cupy.stack([cupy.floor(X), cupy.ceil(X), cupy.trunc(X), cupy.rint(X)]),
         np.stack([np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)]))
    same("special values", cupy.isnan(cupy.asarray([0.0, np.nan, np.inf]) * np.inf), [True, True, False])


def moves():
    a = random.standard_normal((257, 129))
    A = cupy.asarray(a)
    same("transpose", A.T.copy(), a.T)
    same("slices", A[::-2, 3:99:5].copy(), a[::-2, 3:99:5])
    same("where", cupy.where(X > Y, X, Y), np.where(x > y, x, y))
    same("take", X[cupy.asarray(np.arange(0, 100_003, 7))], x[::7])
    same("masked", X[X > 1], x[x > 1])
    same("concatenate", cupy.concatenate([A, A * 2], axis=1), np.concatenate([a, a * 2], axis=1))
    same("broadcast", A + cupy.arange(129), a + np.arange(129))
    same("roll", cupy.roll(X, 1234), np.roll(x, 1234))
    close("axis 0", A.sum(0), a.sum(0), sum_bound(a, 0))
    close("axis 1", A.sum(1), a.sum(1), sum_bound(a, 1))


def orders():
    i = random.integers(0, 1000, 50_000)
    I = cupy.asarray(i)
    same("sort", cupy.sort(X), np.sort(x))
    same("argsort", cupy.argsort(I, kind="stable"), np.argsort(i, kind="stable"))
    same("unique", cupy.unique(I), np.unique(i))
    same("bincount", cupy.bincount(I), np.bincount(i))
    same("searchsorted", cupy.searchsorted(cupy.sort(X), Y), np.searchsorted(np.sort(x), y))


def integers():
    a = random.integers(-(2**31), 2**31, 50_000)
    d = random.integers(1, 1000, 50_000) * random.choice([-1, 1], 50_000)
    for kind in (np.int64, np.int32):
        a_, d_ = a.astype(kind), d.astype(kind)
        A, D = cupy.asarray(a_), cupy.asarray(d_)
        same(f"{kind.__name__} //", A // D, a_ // d_)
        same(f"{kind.__name__} %", A % D, a_ % d_)
        same(f"{kind.__name__} shifts", (A << 3) ^ (A >> 5), (a_ << 3) ^ (a_ >> 5))
        same(f"{kind.__name__} * wraps", A * A * A, a_ * a_ * a_)
    u = a.astype(np.uint8)
    same("uint8 wraps", cupy.asarray(u) * cupy.asarray(u) + 200, u * u + np.uint8(200))


def other_types():
    h, g = x.astype(np.float16), y.astype(np.float16)
    H, G = cupy.asarray(h), cupy.asarray(g)
    same("half", cupy.stack([H + G, H * G, H - G]), np.stack([h + g, h * g, h - g]))
    same("half to float and back", H.astype(cupy.float32).astype(cupy.float16), h)
    same("float to half", X.astype(cupy.float16), h)
    z, w = (x + 1j * y).astype(np.complex64), (y - 2j * x).astype(np.complex64)
    Z, W = cupy.asarray(z), cupy.asarray(w)
    same("complex conjugate", Z.conj(), z.conj())
    product = z.astype(np.complex128) * w.astype(np.complex128)
    close("complex product", Z * W, product, 1e-6 * np.abs(z.astype(np.complex128)) * np.abs(w))
    close("complex magnitude", cupy.abs(Z), np.abs(z.astype(np.complex128)), 1e-6 * (1 + np.abs(z)))


def own_kernels():
    elementwise = cupy.ElementwiseKernel("float32 a, float32 b", "float32 c", "c = a * b + sqrtf(fabsf(a))", "check_elementwise")
    close("ElementwiseKernel", elementwise(X, Y), x64 * y64 + np.sqrt(np.abs(x64)), 1e-6 * (np.abs(x64 * y64) + np.sqrt(np.abs(x64))))

    reduction = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "check_squares")
    close("ReductionKernel", reduction(X), (x64 * x64).sum(), sum_bound(x * x))
    same("ReductionKernel over an axis", reduction(cupy.arange(12.0).reshape(3, 4), axis=1), (np.arange(12.0) ** 2).reshape(3, 4).sum(1))

    raw = cupy.RawKernel(r"""
        extern "C" __global__ void reversed_blocks(const int *in, int *out, int n)
        {
            __shared__ int tile[128];
            int at = blockIdx.x * blockDim.x + threadIdx.x;
            tile[threadIdx.x] = at < n ? in[at] : -1;
            __syncthreads();
            int got = tile[blockDim.x - 1 - threadIdx.x];
            if (at < n)
                out[at] = got + __shfl_xor_sync(0xffffffffu, got, 1);
        }""", "reversed_blocks")
    n = 128 * 9
    numbers = np.arange(n, dtype=np.int32) * 3
    out = cupy.zeros(n, dtype=cupy.int32)
    raw((9,), (128,), (cupy.asarray(numbers), out, np.int32(n)))
    back = numbers.reshape(9, 128)[:, ::-1].ravel()
    same("RawKernel", out, back + back.reshape(-1, 2)[:, ::-1].ravel())

    module = cupy.RawModule(code=r"""
        __constant__ float scale[4];
        template <typename T> __global__ void scaled(T *values, int n)
        {
            int at = blockIdx.x * blockDim.x + threadIdx.x;
            if (at < n)
                values[at] *= T(scale[at % 4]);
        }""", name_expressions=["scaled<float>", "scaled<double>"])
    scale = np.asarray([1, 2, 4, 0.5], dtype=np.float32)
    cupy.ndarray((4,), cupy.float32, module.get_global("scale"))[...] = cupy.asarray(scale)
    for kind in ("float", "double"):
        values = x.astype(np.float32 if kind == "float" else np.float64)
        V = cupy.asarray(values)
        module.get_function(f"scaled<{kind}>")((-(-x.size // 256),), (256,), (V, np.int32(x.size)))
        same(f"RawModule, scaled<{kind}>", V, values * np.resize(scale, x.size).astype(values.dtype))

    counts = cupy.zeros(16, dtype=cupy.int32)
    adder = cupy.ElementwiseKernel("int32 v", "raw int32 counts", "atomicAdd(&counts[v & 15], v)", "check_atomics")
    adder(cupy.arange(10_000, dtype=cupy.int32), counts)
    same("atomics", counts, np.arange(10_000).reshape(-1, 16).sum(0).astype(np.int32))


def streams():
    stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    with stream:
        doubled = X * 2
        written = stream.record()
    other.wait_event(written)
    with other:
        plus_one = doubled + 1
    other.synchronize()
    same("streams", plus_one, x * 2 + 1)
    host = cupy.cuda.alloc_pinned_memory(x.nbytes)
    pinned = np.frombuffer(host, np.float32, x.size)
    with stream:
        doubled.get(stream=stream, out=pinned)
    stream.synchronize()
    same("copy to pinned memory", pinned, x * 2)
    began, ended = cupy.cuda.Event(), cupy.cuda.Event()
    began.record()
    cupy.sort(Y)
    ended.record()
    ended.synchronize()
    if not 0 < cupy.cuda.get_elapsed_time(began, ended) < 600_000:
        FAILED.append("events: no time passed")


def errors():
    """A refused call raises what CUDA says, and is forgotten afterwards."""
    try:
        cupy.cuda.Device(99).use()
        FAILED.append("device 99: no error")
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status != 101:
            FAILED.append(f"device 99: {error}")
    try:
        cupy.RawKernel('extern "C" __global__ void too_large() {}', "too_large")((1,), (2048,), ())
        FAILED.append("2048 threads in a block: no error")
    except cupy.cuda.driver.CUDADriverError as error:
        if error.status != 1:
            FAILED.append(f"2048 threads in a block: {error}")
    same("after an error", X + 1, x + 1)


for check in (reductions, elementary, moves, orders, integers, other_types, own_kernels, streams, errors):
    before = len(FAILED)
    check()
    print(check.__name__, "ok" if len(FAILED) == before else "FAILED")
for line in FAILED:
    print("FAILED:", line)
print("FAILED" if FAILED else "PASSED")
raise SystemExit(1 if FAILED else 0)
