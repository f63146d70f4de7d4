"""JAX's plugin for CUDA as it comes from PyPI: XLA makes the PTX, compiles it inside itself for a machine that is not there, and
hands the driver what it got; convolutions, transforms and factorizations are our cuDNN's, cuFFT's and cuSOLVER's. Results are
compared to those of JAX's own CPU backend, from the same source.

One thing stands in the way of a machine without a GPU: JAX looks for a device file of NVIDIA's driver."""

import jax
import jax.numpy as jnp
import numpy as np
from beside import FAILED, compare, run
from jax._src import hardware_utils
from jax.experimental import rnn

hardware_utils.has_visible_nvidia_gpu = lambda: True

# Unasked, XLA has a device that can multiply in TF32 do that.
jax.config.update("jax_default_matmul_precision", "highest")

GPU, CPU = jax.devices("cuda")[0], jax.devices("cpu")[0]
RANDOM = np.random.default_rng(7)
SMALL = RANDOM.standard_normal((64, 33)).astype(np.float32)
LARGE = RANDOM.standard_normal((257, 1031)).astype(np.float32)


def close(name, function, *arguments, bound=0.0):
    """The same source on both, off by no more than `bound` of the largest result."""
    got, expected = (jax.jit(function)(*jax.device_put(arguments, device)) for device in (GPU, CPU))
    compare(name, got, expected, bound)


def elementwise():
    close("add", lambda a: a + a, LARGE)
    close("tanh", jnp.tanh, LARGE, bound=1e-6)
    close("exp and log", lambda a: jnp.log1p(jnp.exp(a)), LARGE, bound=1e-6)
    close("integers", lambda a: (a * 3) % 7 ^ 5, np.arange(10_000, dtype=np.int32))


def softmax():
    close("softmax", jax.nn.softmax, LARGE, bound=1e-6)
    close("sums", lambda a: a.sum(axis=1), LARGE, bound=1e-5)
    close("largest", lambda a: a.max(axis=0), LARGE)


def gradients():
    def loss(a):
        return jnp.sum(jnp.tanh(a) ** 2 * jnp.cos(a))

    close("grad", jax.grad(loss), SMALL, bound=1e-5)
    close("second grad", jax.grad(lambda a: jnp.sum(jax.grad(loss)(a) ** 2)), SMALL, bound=1e-5)


def orders():
    close("sort", lambda a: jnp.sort(a, axis=1), LARGE)
    close("argsort", lambda a: jnp.argsort(a, axis=0), SMALL)
    close("cumsum", lambda a: jnp.cumsum(a, axis=1), SMALL, bound=1e-5)


def convolutions():
    pictures, filters = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((4, 3, 32, 32), (8, 3, 3, 3)))

    def convolved(a, b, **how):
        return jax.lax.conv_general_dilated(a, b, how.pop("strides", (1, 1)), "SAME", **how)

    close("convolution", convolved, pictures, filters, bound=1e-5)
    close("strided", lambda a, b: convolved(a, b, strides=(2, 1)), pictures, filters, bound=1e-5)
    close("dilated", lambda a, b: convolved(a, b, rhs_dilation=(2, 2)), pictures, filters, bound=1e-5)
    close("in groups", lambda a, b: convolved(a, b[:6, :1], feature_group_count=3), pictures, filters, bound=1e-5)
    layout = ("NHWC", "HWIO", "NHWC")
    channels_last = pictures.transpose(0, 2, 3, 1), filters.transpose(2, 3, 1, 0)
    close("channels last", lambda a, b: convolved(a, b, dimension_numbers=layout), *channels_last, bound=1e-5)


def recurrent():
    """`jax.experimental.rnn` is cuDNN's LSTM on the device, and a loop beside it that JAX has for tests."""
    batch, length, size, hidden, layers = 4, 12, 6, 10, 2
    x = RANDOM.standard_normal((batch, length, size)).astype(np.float32)
    lengths = np.full(batch, length, np.int32)
    for both in (False, True):
        start = np.zeros((layers * (2 if both else 1), batch, hidden), np.float32)
        weights = rnn.init_lstm_weight(jax.random.PRNGKey(1), size, hidden, layers, both)
        sizes = dict(input_size=size, hidden_size=hidden, num_layers=layers, dropout=0.0, bidirectional=both)

        def loss(x, weights, start, lengths):
            y, h, c = rnn.lstm(x, start, start, weights, lengths, **sizes)
            return jnp.sum(jnp.sin(y)) + jnp.sum(h * c)

        def expected_loss(x, weights, start, lengths):
            parts = rnn.unpack_lstm_weights(weights, size, hidden, layers, both)
            y, h, c = rnn.lstm_ref(x, start, start, *parts, lengths, **sizes)
            return jnp.sum(jnp.sin(y)) + jnp.sum(h * c)

        got, expected = (
            jax.tree.leaves(jax.jit(jax.value_and_grad(of, argnums=(0, 1)))(*jax.device_put((x, weights, start, lengths), device)))
            for of, device in ((loss, GPU), (expected_loss, CPU))
        )
        for one, other in zip(got, expected, strict=True):
            compare(f"LSTM in {'both directions' if both else 'one direction'}", one, other, bound=1e-5)


def training():
    """A network of two convolutions and a product learns by ten steps which of four places is bright."""
    pictures = RANDOM.standard_normal((32, 1, 16, 16)).astype(np.float32)
    labels = np.arange(32) % 4
    for picture, label in zip(pictures, labels):
        picture[0, 8 * (label // 2) :, 8 * (label % 2) :][:8, :8] += 1
    shapes = ((8, 1, 3, 3), (16, 8, 3, 3), (16 * 4 * 4, 4))
    start = [RANDOM.standard_normal(shape).astype(np.float32) / np.sqrt(np.prod(shape[1:])) for shape in shapes]

    def loss(weights, x, y):
        for weight in weights[:2]:
            x = jax.nn.relu(jax.lax.conv(x, weight, (2, 2), "SAME"))
        chances = jax.nn.log_softmax(x.reshape(len(x), -1) @ weights[2])
        return -jnp.mean(chances[jnp.arange(len(x)), y])

    def losses(weights, x, y):
        found = []
        for _ in range(10):
            value, slopes = jax.value_and_grad(loss)(weights, x, y)
            weights = [weight - 0.05 * slope for weight, slope in zip(weights, slopes)]
            found.append(value)
        return jnp.stack(found)

    close("losses", losses, start, pictures, labels, bound=1e-5)


def transforms():
    close("fft", lambda a: jnp.abs(jnp.fft.fft2(a)), LARGE, bound=1e-5)
    close("there and back", lambda a: jnp.fft.irfft(jnp.fft.rfft(a), 1031), LARGE, bound=1e-5)


def factorizations():
    close("eigenvalues", lambda a: jnp.linalg.eigvalsh(a @ a.T), SMALL, bound=1e-5)
    close("singular values", lambda a: jnp.linalg.svd(a, compute_uv=False), SMALL, bound=1e-5)
    close("Cholesky", lambda a: jnp.linalg.cholesky(a.T @ a), SMALL, bound=1e-5)
    close("QR", lambda a: jnp.abs(jnp.linalg.qr(a)[1]), SMALL, bound=1e-5)
    close("solve", lambda a: jnp.linalg.solve(a.T @ a + jnp.eye(33), a.T), SMALL, bound=1e-4)


if GPU.platform != "gpu":
    FAILED.append(f"the device is {GPU}")
run(elementwise, softmax, gradients, orders, convolutions, recurrent, training, transforms, factorizations)
