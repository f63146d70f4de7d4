"""JAX's plugin for CUDA as it comes from PyPI: XLA makes the PTX, compiles it inside itself for a machine that is not there, and
hands the driver what it got. Results are compared to those of JAX's own CPU backend, from the same source.

Two things stand in the way of a machine without a GPU. JAX looks for a device file of NVIDIA's driver, and XLA wants a handle of
cuDNN: a stand-in (jax_cudnn.c) has one."""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

FOLDER = tempfile.TemporaryDirectory()
STAND_IN = os.path.join(FOLDER.name, "libcudnn.so.9")
subprocess.run(
    ["cc", "-shared", "-fPIC", "-Wl,-soname,libcudnn.so.9", "-o", STAND_IN, Path(__file__).with_name("jax_cudnn.c")],
    check=True,
)
# XLA finds it by its name.
ctypes.CDLL(STAND_IN, mode=ctypes.RTLD_GLOBAL)

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import hardware_utils

hardware_utils.has_visible_nvidia_gpu = lambda: True

FAILED = []
GPU, CPU = jax.devices("cuda")[0], jax.devices("cpu")[0]
RANDOM = np.random.default_rng(7)
SMALL = RANDOM.standard_normal((64, 33)).astype(np.float32)
LARGE = RANDOM.standard_normal((257, 1031)).astype(np.float32)


def close(name, function, *arguments, bound=0.0):
    """The same source on both, off by no more than `bound` of the largest result."""
    got, expected = (
        np.asarray(jax.jit(function)(*(jax.device_put(argument, device) for argument in arguments)))
        for device in (GPU, CPU)
    )
    worst = np.max(np.abs(got - expected)) / np.max(np.abs(expected))
    if got.shape != expected.shape or got.dtype != expected.dtype or not worst <= bound:
        FAILED.append(f"{name}: off by {worst}")


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


if GPU.platform != "gpu":
    FAILED.append(f"the device is {GPU}")
for check in (elementwise, softmax, gradients, orders):
    before = len(FAILED)
    try:
        check()
    except Exception as error:
        FAILED.append(f"{check.__name__}: {type(error).__name__}: {str(error)[:300]}")
    print(check.__name__, "ok" if len(FAILED) == before else "FAILED")
for line in FAILED:
    print("FAILED:", line)
print("FAILED" if FAILED else "PASSED")
raise SystemExit(1 if FAILED else 0)
