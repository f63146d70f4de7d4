"""What the proofs of libraries share: a library of NVIDIA's names and the runtime by ctypes, as a C program has them, memory of the
device with poison around it, and the loop over what is tried.
"""

import ctypes
import os
import sys
import threading
import traceback

import numpy as np

POISON = 0xA5

# The host cannot read the device's memory: what is computed is computed on copies, before a call comes back, and in no graph.
ON_COPIES = "PROOF_ON_COPIES" in os.environ
# Kernels of the library's own compute what they have.
BY_KERNELS = "PROOF_BY_KERNELS" in os.environ


class Failure(Exception):
    pass


class Library:
    """A library and the libcudart beside it. 0 is success in both."""

    # The function that makes a handle.
    CREATE = None

    def __init__(self, path, cudart):
        self.own, self.cudart = ctypes.CDLL(path), ctypes.CDLL(cudart)
        self.called = set()

    def status(self, name, *arguments):
        """Calls a function; Python's integers are C's `int`s, what is wider says so itself."""
        self.called.add(name)
        return getattr(self.own, name)(*arguments)

    def __call__(self, name, *arguments):
        status = self.status(name, *arguments)
        if status != 0:
            raise Failure(f"{name}: {status}")

    def runtime(self, name, *arguments):
        status = getattr(self.cudart, name)(*arguments)
        if status != 0:
            raise Failure(f"{name}: {status}")

    def handle(self):
        handle = ctypes.c_void_p()
        self(self.CREATE, ctypes.byref(handle))
        return handle

    def synchronize(self):
        self.runtime("cudaDeviceSynchronize")


class Array:
    """An array in the device's memory, with poison around it."""

    GUARD = 64

    def __init__(self, library, values):
        self.library, self.values = library, np.ascontiguousarray(values)
        self.bytes = self.values.nbytes
        image = np.full(self.bytes + 2 * self.GUARD, POISON, np.uint8)
        image[self.GUARD:self.GUARD + self.bytes] = np.frombuffer(self.values.tobytes(), np.uint8)
        self.base = ctypes.c_void_p()
        library.runtime("cudaMalloc", ctypes.byref(self.base), ctypes.c_size_t(image.nbytes))
        self.copy(self.base.value, image.ctypes.data, image.nbytes, 1)

    def copy(self, to, at, count, kind):
        self.library.runtime("cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(at), ctypes.c_size_t(count), kind)

    @property
    def at(self):
        return ctypes.c_void_p(self.base.value + self.GUARD)

    def get(self):
        image = np.zeros(self.bytes + 2 * self.GUARD, np.uint8)
        self.copy(image.ctypes.data, self.base.value, image.nbytes, 2)
        ends = np.concatenate([image[:self.GUARD], image[self.GUARD + self.bytes:]])
        if (ends != POISON).any():
            raise Failure("something was written beside an array")
        middle = image[self.GUARD:self.GUARD + self.bytes]
        return np.frombuffer(middle.tobytes(), self.values.dtype).reshape(self.values.shape)

    def free(self):
        self.library.runtime("cudaFree", self.base)


class Scope:
    """What a case makes, taken down behind it."""

    def __init__(self, library):
        self.library, self.undo = library, []

    def array(self, values):
        array = Array(self.library, values)
        self.undo.append(array.free)
        return array

    def made(self, create, destroy, *arguments):
        handle = ctypes.c_void_p()
        self.library(create, ctypes.byref(handle), *arguments)
        self.undo.append(lambda: self.library(destroy, handle))
        return handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for undo in reversed(self.undo):
            undo()


def waits(library, stream, call):
    """Whether a call comes back only when the stream, which is held for a while, has come to it."""
    gate, is_free = threading.Event(), []
    hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: gate.wait(30))
    library.runtime("cudaLaunchHostFunc", stream, hold, None)

    def free():
        is_free.append(True)
        gate.set()

    threading.Timer(0.2, free).start()
    call()
    return bool(is_free)


def refused_in_capture(library, stream, call):
    """What a call answers while its stream is captured; the capture goes on."""
    graph = ctypes.c_void_p()
    library.runtime("cudaStreamBeginCapture", stream, 0)
    status = call()
    library.runtime("cudaStreamEndCapture", stream, ctypes.byref(graph))
    library.runtime("cudaGraphDestroy", graph)
    return status


def i64(value):
    return ctypes.c_int64(int(value))


def prove(library, families, seed, word=""):
    """Tries the families whose names have the word, each with numbers of its own; ends the process with 1 where one fails."""
    library.runtime("cudaFree", ctypes.c_void_p())
    failed = False
    for number, (name, family) in enumerate(families.items()):
        if word not in name:
            continue
        try:
            count = family(library, np.random.default_rng([seed, number]))
            print(f"ok {name} ({count} cases)")
        except Exception:
            failed = True
            print(f"FAILED {name}")
            print("    " + traceback.format_exc().replace("\n", "\n    "))
        sys.stdout.flush()
    if failed:
        sys.exit(1)
    print("PASSED")
