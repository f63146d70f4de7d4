"""Dr.Jit as it comes from PyPI (it writes PTX for what a Python program has computed), with results compared to NumPy's."""

import math

import drjit as dr
import numpy as np
from drjit.cuda import Array3f, Float, Float16, Float64, Int, PCG32, Texture2f, UInt, UInt64
from drjit.cuda import Matrix4f64
from drjit.cuda.ad import Float64 as Float64D

from beside import FAILED, compare, run

N = 10_000
SINGLE = 1e-6
RANDOM = np.random.default_rng(3)


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype or got.tobytes() != expected.tobytes():
        FAILED.append(f"{name}: {got.ravel()[:4]}…, expected {expected.ravel()[:4]}…")


def arithmetic():
    a, b = RANDOM.uniform(0.1, 4, N), RANDOM.uniform(0.1, 4, N)
    for type_, dtype, bound in ((Float, np.float32, SINGLE), (Float64, np.float64, 1e-14), (Float16, np.float16, 2e-3)):
        x, y = a.astype(dtype), b.astype(dtype)
        dx, dy = type_(x), type_(y)
        got = dr.fma(dx, dy, dr.sqrt(dx)) / dy - dr.minimum(dx, dy)
        compare(f"a formula, {dtype.__name__}", got.numpy(), x + np.sqrt(x) / y - np.minimum(x, y), bound)
    for name in ("sin", "cos", "tan", "exp", "log", "atan", "tanh", "cbrt", "erf", "acos"):
        got = getattr(dr, name)(Float64(a / 5)).numpy()
        if name == "erf":
            expected = np.vectorize(math.erf)(a / 5)
        else:
            expected = getattr(np, {"atan": "arctan", "acos": "arccos"}.get(name, name))(a / 5)
        # Dr.Jit takes reciprocals of doubles to the 20 bits that `rcp.approx.ftz.f64` has.
        compare(name, got, expected, 2e-6 if name in ("tan", "tanh") else 1e-12)


def integers():
    a = RANDOM.integers(1, 2**31, N).astype(np.uint32)
    x = UInt(a)
    same("population", dr.popcnt(x).numpy(), np.array([bin(it).count("1") for it in a], np.uint32))
    same("leading zeros", dr.lzcnt(x).numpy(), np.array([32 - int(it).bit_length() for it in a], np.uint32))
    same("high half", dr.mul_hi(x, UInt(2654435769)).numpy(), (a.astype(np.uint64) * 2654435769 >> 32).astype(np.uint32))
    same("wide", (UInt64(x) * UInt64(x) // 97).numpy(), a.astype(np.uint64) ** 2 // 97)
    same("remainders", (Int(x) % 1000 - (Int(x) >> 3)).numpy(), a.astype(np.int32) % 1000 - (a.astype(np.int32) >> 3))


def gathers():
    values, at = RANDOM.standard_normal(N), RANDOM.integers(0, N, N)
    taken = dr.gather(Float64, Float64(values), UInt(at), active=UInt(at) % 3 != 0)
    same("gather", taken.numpy(), np.where(at % 3 != 0, values[at], 0.0))
    points = RANDOM.standard_normal((N, 3)).astype(np.float32)
    same("rows", dr.gather(Array3f, Float(points.ravel()), UInt(at)).numpy(), points[at].T)
    placed = dr.zeros(Float64, N)
    order = RANDOM.permutation(N)
    dr.scatter(placed, Float64(values), UInt(order))
    expected = np.zeros(N)
    expected[order] = values
    same("scatter", placed.numpy(), expected)


def atomics():
    at, values = RANDOM.integers(0, 50, N), RANDOM.integers(-99, 99, N).astype(np.int32)
    for op, how in ((dr.ReduceOp.Add, np.add), (dr.ReduceOp.Min, np.minimum), (dr.ReduceOp.Max, np.maximum)):
        sums, expected = dr.zeros(Int, 50), np.zeros(50, np.int32)
        dr.scatter_reduce(op, sums, Int(values), UInt(at))
        how.at(expected, at, values)
        same(f"scatter, {op}", sums.numpy(), expected)
    floats, expected = dr.zeros(Float64, 50), np.zeros(50)
    dr.scatter_add(floats, Float64(values * 0.1), UInt(at))
    np.add.at(expected, at, values * 0.1)
    compare("scatter, doubles", floats.numpy(), expected, 1e-12)
    counts = dr.zeros(UInt, 50)
    tickets = dr.scatter_inc(counts, UInt(at)).numpy()
    same("counts", counts.numpy(), np.bincount(at, minlength=50).astype(np.uint32))
    if len({*zip(at, tickets)}) != N:
        FAILED.append("atomics: two threads have one ticket")


def reductions():
    values = RANDOM.integers(-1000, 1000, N).astype(np.int32)
    x = Int(values)
    same("sum", dr.sum(x).numpy(), values.sum(keepdims=True).astype(np.int32))
    same("max", dr.max(x).numpy(), values.max(keepdims=True))
    same("sums so far", dr.cumsum(x).numpy(), np.cumsum(values).astype(np.int32))
    same("blocks", dr.block_sum(x, 25).numpy(), values.reshape(-1, 25).sum(1).astype(np.int32))
    blocks = values.reshape(-1, 100)
    wanted = (np.cumsum(blocks, 1) - blocks).ravel().astype(np.int32)
    same("sums so far in blocks", dr.block_prefix_sum(x, 100, exclusive=True).numpy(), wanted)
    same("places", dr.compress(x > 900).numpy(), np.flatnonzero(values > 900).astype(np.uint32))
    reals = RANDOM.standard_normal(N)
    compare("a dot product", dr.dot(Float64(reals), Float64(reals)).numpy(), (reals @ reals)[None], 1e-13)


@dr.syntax
def collatz(value):
    steps = UInt(0)
    while value != 1:
        if value % 2 == 0:
            value //= 2
        else:
            value = 3 * value + 1
        steps += 1
    return steps


def loops():
    """Loops and branches that become the kernel's own."""
    expected = []
    for value in range(1, 3000):
        steps = 0
        while value != 1:
            value, steps = value // 2 if value % 2 == 0 else 3 * value + 1, steps + 1
        expected.append(steps)
    same("Collatz", collatz(dr.arange(UInt, 2999) + 1).numpy(), np.array(expected, np.uint32))


def calls():
    """Functions by their numbers: the kernel calls them through a table."""
    which, x = RANDOM.integers(0, 4, N), RANDOM.standard_normal(N)
    functions = [
        lambda it: it * it,
        lambda it: dr.sin(it) + 1,
        lambda it: dr.gather(Float64, table, UInt(dr.abs(it)) % 5),
        lambda it: dr.select(it > 0, it, -2 * it),
    ]
    numbers = RANDOM.standard_normal(5)
    table = Float64(numbers)
    expected = np.choose(which, [x * x, np.sin(x) + 1, numbers[np.abs(x).astype(int) % 5], np.where(x > 0, x, -2 * x)])
    compare("calls", dr.switch(UInt(which), functions, Float64(x)).numpy(), expected, 1e-14)


def local_memory():
    """An array of each thread's own: its values in order, by insertion."""
    values = RANDOM.integers(0, 100, (8, 500)).astype(np.int32)
    kept = dr.alloc_local(Int, 8)
    for i in range(8):
        kept[i] = Int(values[i])
    one, other = UInt(0), UInt(0)

    def bubble(kept, one, other):
        first, second = kept[other], kept[other + 1]
        kept[other] = dr.minimum(first, second)
        kept[other + 1] = dr.maximum(first, second)
        at_end = other == 6
        return kept, dr.select(at_end, one + 1, one), dr.select(at_end, 0, other + 1)

    kept, _, _ = dr.while_loop((kept, one, other), lambda kept, one, other: one < 8, bubble)
    same("in order", np.stack([kept[UInt(i)].numpy() for i in range(8)]), np.sort(values, axis=0))


def derivatives():
    x = RANDOM.uniform(0.5, 2, N)
    for backwards in (True, False):
        value = Float64D(x)
        dr.enable_grad(value)
        result = dr.sin(value) * dr.exp(-value) + dr.reverse(value) ** 2
        expected = (np.cos(x) - np.sin(x)) * np.exp(-x) + 2 * (x if backwards else x[::-1])
        if backwards:
            dr.backward(result)
            found = dr.grad(value)
        else:
            dr.set_grad(value, 1)
            found = dr.forward_to(result)
        compare("backwards" if backwards else "forwards", found.numpy(), expected, 1e-13)


def matrices():
    made = RANDOM.standard_normal((4, 4, 300))
    found = Matrix4f64(made)
    compare("a product", (found @ found).numpy(), np.einsum("ikn,kjn->ijn", made, made), 1e-13)
    compare("determinants", dr.det(found).numpy(), np.linalg.det(made.transpose(2, 0, 1)), 1e-11)
    compare("an inverse", (dr.rcp(found) @ found).numpy(), np.repeat(np.eye(4)[..., None], 300, 2), 1e-5)


def textures():
    """The device's own units, which weigh by 256ths."""
    image = RANDOM.random((30, 40, 4)).astype(np.float32)
    texture = Texture2f(dr.cuda.TensorXf(image), use_accel=True, filter_mode=dr.FilterMode.Linear, wrap_mode=dr.WrapMode.Clamp)
    at = RANDOM.random((2, N))
    got = np.stack([it.numpy() for it in texture.eval(dr.cuda.Array2f(at.astype(np.float32)))])
    x, y = at[0] * 40 - 0.5, at[1] * 30 - 0.5
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    u, v = (x - i)[:, None], (y - j)[:, None]

    def texel(i, j):
        return image[np.clip(j, 0, 29), np.clip(i, 0, 39)]

    expected = (texel(i, j) * (1 - u) + texel(i + 1, j) * u) * (1 - v) + (texel(i, j + 1) * (1 - u) + texel(i + 1, j + 1) * u) * v
    compare("a texture", got.T.astype(np.float64), expected, 6e-3)


def random_numbers():
    """PCG32 is integers: what its author's program gives for this seed and sequence."""
    state = PCG32(size=N)
    units, pairs = state.next_float32(), state.next_uint32()
    lane = np.arange(N, dtype=np.uint64)
    increments = (lane + np.uint64(0xDA3E39CB94B95BDB)) << np.uint64(1) | np.uint64(1)
    multiplier = np.uint64(0x5851F42D4C957F2D)
    word = increments.copy()
    word = (word + lane + np.uint64(0x853C49E6748FEA9B)) * multiplier + increments

    def draw(word):
        shifted = ((word >> np.uint64(18) ^ word) >> np.uint64(27)).astype(np.uint32)
        turn = (word >> np.uint64(59)).astype(np.uint32)
        return shifted >> turn | shifted << (-turn.astype(np.int64) & 31).astype(np.uint32), word * multiplier + increments

    first, word = draw(word)
    second, word = draw(word)
    same("words", pairs.numpy(), second)
    same("units", units.numpy(), (first >> 9 | 0x3F800000).astype(np.uint32).view(np.float32) - np.float32(1))


def frozen():
    """Kernels that were recorded run again with other values."""

    @dr.freeze
    def step(x, by):
        return dr.cumsum(x * by) + dr.sum(x)

    for seed in range(3):
        values = np.random.default_rng(seed).integers(0, 9, 2000 + 100 * seed).astype(np.float64)
        got = step(Float64(values), dr.opaque(Float64, seed + 2)).numpy()
        same("recorded", got, np.cumsum(values * (seed + 2)) + values.sum())
    assert step.n_recordings >= 1


if not dr.has_backend(dr.JitBackend.CUDA):
    raise SystemExit("Dr.Jit finds no CUDA")
print(dr.__version__)
run(
    arithmetic,
    integers,
    gathers,
    atomics,
    reductions,
    loops,
    calls,
    local_memory,
    derivatives,
    matrices,
    textures,
    random_numbers,
    frozen,
)
