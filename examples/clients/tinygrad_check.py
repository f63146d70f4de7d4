"""tinygrad as it comes from PyPI, with PTX that it writes itself, without a compiler of NVIDIA's; results are compared with NumPy's."""

import numpy as np
from tinygrad import Context, Device, Tensor, TinyJit, dtypes, nn
from tinygrad.nn.state import get_parameters

from beside import FAILED, compare, run

RANDOM = np.random.default_rng(12)
SINGLE = 2e-6


def same(name, got, expected):
    """Equal to the bit, in shape and in type."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape or got.dtype != expected.dtype or got.tobytes() != expected.tobytes():
        FAILED.append(f"{name}: {got.ravel()[:4]}…, expected {expected.ravel()[:4]}…")


def elementwise():
    for type_, dtype, bound in ((dtypes.float32, np.float32, SINGLE), (dtypes.float16, np.float16, 4e-3)):
        x, y = RANDOM.uniform(0.2, 3, (37, 61)).astype(dtype), RANDOM.uniform(0.2, 3, (37, 61)).astype(dtype)
        a, b = Tensor(x), Tensor(y)
        assert a.dtype == type_
        wide = x.astype(np.float64), y.astype(np.float64)
        expected = np.exp(wide[0]) * np.log(wide[1]) + np.sqrt(wide[0]) / wide[1] - np.sin(wide[0])
        compare(f"a formula, {type_}", (a.exp() * b.log() + a.sqrt() / b - a.sin()).numpy(), expected.astype(dtype), bound)


def integers():
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64):
        low = 0 if np.dtype(dtype).kind == "u" else -100
        x, y = RANDOM.integers(low, 100, 999).astype(dtype), RANDOM.integers(1, 20, 999).astype(dtype)
        a, b = Tensor(x), Tensor(y)
        same(f"sums and products, {dtype.__name__}", (a * b + (a ^ b) - (a & 7)).numpy(), x * y + (x ^ y) - (x & dtype(7)))
        same(f"quotients, {dtype.__name__}", (a // b).numpy(), x // y)
        same(f"remainders, {dtype.__name__}", (a % b).numpy(), x % y)
        same(f"comparisons, {dtype.__name__}", ((a > b) | (a == 3)).numpy(), (x > y) | (x == 3))


def reductions():
    x = RANDOM.standard_normal((64, 129, 7)).astype(np.float32)
    a = Tensor(x)
    compare("sums", a.sum(1).numpy(), x.sum(1), 1e-5)
    same("largest", a.max((0, 2)).numpy(), x.max((0, 2)))
    same("where", a.argmax(1).numpy(), x.argmax(1).astype(np.int32))
    compare("variances", a.var(0).numpy(), x.var(0, ddof=1), 1e-5)
    compare("sums so far", a.cumsum(1).numpy(), x.cumsum(1), 1e-5)
    values, places = Tensor(x[0]).sort(0)
    same("sorted", values.numpy(), np.sort(x[0], 0))
    same("their places", places.numpy(), np.argsort(x[0], 0, kind="stable").astype(np.int32))


def products():
    """Also in halves, for which there are `mma` instructions."""
    for dtype, bound in ((np.float32, 1e-6), (np.float16, 2e-3)):
        for m, k, n in ((64, 96, 128), (1, 300, 77), (33, 17, 5)):
            x, y = RANDOM.standard_normal((m, k)).astype(dtype), RANDOM.standard_normal((k, n)).astype(dtype)
            got = Tensor(x).matmul(Tensor(y), dtype=dtypes.float32).numpy()
            compare(f"{m}x{k}x{n}, {dtype.__name__}", got, (x.astype(np.float64) @ y).astype(np.float32), bound)


def convolutions():
    image, kernel = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((2, 6, 15, 18), (4, 3, 3, 5)))
    got = Tensor(image).conv2d(Tensor(kernel), groups=2, stride=2, padding=1).numpy()
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1))).astype(np.float64)
    expected = np.zeros(got.shape)
    for i in range(3):
        for j in range(5):
            part = padded[:, :, i : i + 2 * got.shape[2] - 1 : 2, j : j + 2 * got.shape[3] - 1 : 2]
            for group in range(2):
                out = slice(2 * group, 2 * group + 2)
                expected[:, out] += np.einsum("nchw,oc->nohw", part[:, 3 * group : 3 * group + 3], kernel[out, :, i, j])
    compare("a convolution", got, expected.astype(np.float32), SINGLE)


def indexing():
    x, rows = RANDOM.standard_normal((50, 40)).astype(np.float32), RANDOM.integers(0, 50, 90)
    same("rows", Tensor(x)[Tensor(rows.astype(np.int32))].numpy(), x[rows])
    same("strides", Tensor(x)[3:40:3, ::-2].numpy(), x[3:40:3, ::-2])
    expected = np.zeros((50, 40), np.int32)
    at, values = RANDOM.integers(0, 50, (300, 40)).astype(np.int32), RANDOM.integers(0, 99, (300, 40)).astype(np.int32)
    np.add.at(expected, (at, np.arange(40)[None].repeat(300, 0)), values)
    sums = Tensor.zeros(50, 40, dtype=dtypes.int32).scatter_reduce(0, Tensor(at), Tensor(values), "sum")
    same("scattered", sums.numpy(), expected)


def training():
    """Gradients of a small network are those that are told by hand, and descent finds what was asked for."""
    x, w, v = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((32, 20), (20, 24), (24, 3)))
    first, second = Tensor(w), Tensor(v)
    ((Tensor(x) @ first).tanh() @ second).square().sum().backward()
    hidden = np.tanh(x.astype(np.float64) @ w)
    out = 2 * (hidden @ v)
    compare("the last layer's gradient", second.grad.numpy(), (hidden.T @ out).astype(np.float32), 1e-5)
    compare("the first layer's gradient", first.grad.numpy(), (x.T @ ((out @ v.T) * (1 - hidden**2))).astype(np.float32), 1e-5)

    target = Tensor(np.sin(x[:, :1]))
    layers = [nn.Linear(20, 32), nn.Linear(32, 1)]
    descent = nn.optim.Adam(get_parameters(layers), lr=0.01)
    data = Tensor(x)

    # From its third call on it is a graph that is replayed.
    @TinyJit
    def step():
        descent.zero_grad()
        loss = (layers[1](layers[0](data).tanh()) - target).square().mean()
        loss.backward()
        descent.step()
        return loss.realize()

    with Context(TRAINING=1):
        losses = [step().item() for _ in range(120)]
    if not losses[-1] < 0.02 * losses[0]:
        FAILED.append(f"training: from {losses[0]} to {losses[-1]}")


def random_numbers():
    """Threefry is integers: the same numbers for a seed, and evenly spread."""
    found = []
    for _ in range(2):
        Tensor.manual_seed(4)
        found.append(Tensor.rand(20000).numpy())
    same("the same again", *found)
    counts = np.histogram(found[0], 20, (0, 1))[0]
    if np.square(counts - 1000).sum() / 1000 > 45:
        FAILED.append(f"random_numbers: not even, {counts}")


print(Device.DEFAULT, type(Device[Device.DEFAULT].renderer).__name__)
assert Device.DEFAULT == "CUDA", "CUDA is not used"
run(elementwise, integers, reductions, products, convolutions, indexing, training, random_numbers)
